/* fuzz_archive.c - any bytes as a zip archive: no crash; what is read lies inside of the bytes and
 * is found by its name; written as an archive of our own, it reads back as the same. */
#include "format/format_impl.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_archive: %s\n%s\n", what, detail);
    abort();
}

/* The contents of an entry. */
typedef struct piece {
    const char *data;
    size_t size;
    char *name;
} piece;

static cfx_status write_piece(const void *ctx, cfx_sink out, cfx_error *err)
{
    const piece *p = ctx;
    (void)err;
    return out.write(out.ctx, p->data, p->size);
}

static void check_entry(const cfxi_archive *a, const cfxi_entry *e, const piece *p)
{
    if (e->at > a->bytes->size || e->size > a->bytes->size - e->at || e->header > e->at)
        fail("an entry is not inside", p->name);
    if (cfxi_format_archive_find(a, p->name) != e)
        fail("an entry is not found", p->name);
    cfx_error err = {.status = CFX_OK};
    if (cfxi_format_archive_check(a, e, &err) != CFX_OK && err.message[0] == '\0')
        fail("a wrong checksum without a message", p->name);
}

static piece *pieces_of(const cfxi_archive *a)
{
    const cfxi_entry *all = a->entries.data;
    piece *pieces = calloc(a->entries.size + 1, sizeof *pieces);
    for (size_t i = 0; i < a->entries.size; i++) {
        pieces[i] = (piece){a->bytes->data + all[i].at, all[i].size,
                            calloc(all[i].name_size + 1, 1)};
        memcpy(pieces[i].name, all[i].name, all[i].name_size);
        check_entry(a, &all[i], &pieces[i]);
    }
    return pieces;
}

/* The same entries, in the same order, with the same contents and right checksums. */
static void compare(const cfx_buffer *file, const piece *pieces, size_t n)
{
    cfx_error err = {.status = CFX_OK};
    cfxi_archive a;
    cfxi_bytes *b = cfxi_format_bytes_borrow(file->data, file->size, NULL, &err);
    if (cfxi_format_archive_open(&a, b, "archive", "no", &err) != CFX_OK)
        fail("what was written cannot be read", err.message);
    const cfxi_entry *all = a.entries.data;
    if (a.entries.size != n)
        fail("the number of entries changed", "");
    for (size_t i = 0; i < n; i++)
        if (all[i].size != pieces[i].size || all[i].at % CFXI_ALIGN != 0 ||
            strncmp(pieces[i].name, all[i].name, all[i].name_size) != 0 ||
            memcmp(b->data + all[i].at, pieces[i].data, all[i].size) != 0 ||
            cfxi_format_archive_check(&a, &all[i], NULL) != CFX_OK)
            fail("an entry changed", pieces[i].name);
    cfxi_format_archive_close(&a);
    cfxi_format_bytes_release(b);
}

static void write_again(const piece *pieces, size_t n)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer file;
    cfx_buffer_init(&file, NULL);
    cfxi_part *parts = calloc(n + 1, sizeof *parts);
    for (size_t i = 0; i < n; i++)
        parts[i] = (cfxi_part){.name = pieces[i].name, .write = write_piece, .ctx = &pieces[i]};
    const cfx_status planned = cfxi_format_archive_plan(parts, n, &err);
    if (planned == CFX_OK) {
        if (cfxi_format_archive_write(parts, n, cfx_buffer_sink(&file), &err) != CFX_OK)
            fail("what was read cannot be written", err.message);
        compare(&file, pieces, n);
    } else if (planned != CFX_E_VALUE || err.message[0] == '\0') {  /* a name that is too long */
        fail("an error without a reason", err.message);
    }
    free(parts);
    cfx_buffer_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfxi_archive a;
    cfxi_bytes *b = cfxi_format_bytes_borrow(data, size, NULL, &err);
    if (cfxi_format_archive_open(&a, b, "archive", "store it", &err) == CFX_OK) {
        piece *pieces = pieces_of(&a);
        write_again(pieces, a.entries.size);
        for (size_t i = 0; i < a.entries.size; i++)
            free(pieces[i].name);
        free(pieces);
    } else if (err.message[0] == '\0') {
        fail("an error without a message", "");
    }
    cfxi_format_archive_close(&a);
    cfxi_format_bytes_release(b);
    return 0;
}
