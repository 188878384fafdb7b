/* npz.c - named tensors in a .npz file: a zip archive of .npy files.
 *
 * The archive's directory at its end tells where its files begin and how large they are; sizes over
 * 4 GiB stand in an extra field. Files must be stored as they are: cfx does not inflate.
 */
#include "format_impl.h"

#include <stdio.h>

enum {
    END_SIZE = 22,      /* of the record at the end of the archive */
    ENTRY_SIZE = 46,    /* of an entry of the directory, without its name */
    LOCAL_SIZE = 30,    /* of what stands before each file */
    COMMENT_MOST = 65535,
    NAME_MOST = 1000
};

typedef struct archive {
    cfxi_bytes *bytes;
    cfx_state *state;
    uint32_t crc[256];
    uint64_t left;  /* bytes that files can still have: none is part of two */
    cfx_error *err;
} archive;

typedef struct entry {
    const char *name;
    size_t name_size;
    uint64_t method;
    uint64_t crc;
    uint64_t size;
    uint64_t offset;
} entry;

bool cfxi_is_zip(const cfxi_bytes *b)
{
    return b->size >= 4 && (memcmp(b->data, "PK\x03\x04", 4) == 0 ||
                            memcmp(b->data, "PK\x05\x06", 4) == 0);
}

static cfx_status complain(const archive *z, const char *what, uint64_t at)
{
    return cfx_error_set(z->err, CFX_E_VALUE, "npz archive, byte %llu: %s",
                         (unsigned long long)at, what);
}

static uint64_t number(const archive *z, uint64_t at, size_t bytes)
{
    return cfxi_little(z->bytes->data + at, bytes);
}

static bool has(const archive *z, uint64_t at, uint64_t bytes)
{
    return at <= z->bytes->size && bytes <= z->bytes->size - at;
}

/* ---- checksums ----------------------------------------------------------------------------- */

static void make_crc(uint32_t table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        table[i] = c;
    }
}

static uint32_t crc_of(const uint32_t table[256], const char *data, uint64_t size)
{
    uint32_t c = 0xffffffffu;
    for (uint64_t i = 0; i < size; i++)
        c = table[(c ^ (unsigned char)data[i]) & 0xff] ^ c >> 8;
    return c ^ 0xffffffffu;
}

/* ---- the directory ------------------------------------------------------------------------- */

/* Where the record at the end begins; a comment may follow it. */
static bool find_end(const archive *z, uint64_t *end)
{
    size_t size = z->bytes->size;
    for (size_t back = END_SIZE; back <= size && back <= END_SIZE + COMMENT_MOST; back++) {
        size_t at = size - back;
        if (memcmp(z->bytes->data + at, "PK\x05\x06", 4) == 0 &&
            number(z, at + 20, 2) == back - END_SIZE) {
            *end = at;
            return true;
        }
    }
    return false;
}

/* How many entries there are and where the first is. */
static cfx_status find_directory(const archive *z, uint64_t *count, uint64_t *first)
{
    uint64_t end;
    if (!find_end(z, &end))
        return complain(z, "it has no directory", z->bytes->size);
    *count = number(z, end + 10, 2);
    *first = number(z, end + 16, 4);
    if (*count != 0xffff && *first != 0xffffffffu)
        return CFX_OK;
    if (end < 20 || memcmp(z->bytes->data + end - 20, "PK\x06\x07", 4) != 0)
        return CFX_OK;  /* the numbers are meant as they are */
    uint64_t wide = number(z, end - 12, 8);
    if (!has(z, wide, 56) || memcmp(z->bytes->data + wide, "PK\x06\x06", 4) != 0)
        return complain(z, "its directory is damaged", end - 20);
    *count = number(z, wide + 32, 8);
    *first = number(z, wide + 48, 8);
    return CFX_OK;
}

/* Sizes that do not fit 4 bytes stand in the extra field 1: size, size in the archive, offset. */
static cfx_status read_wide(const archive *z, uint64_t at, uint64_t size, entry *e)
{
    uint64_t *fields[] = {&e->size, NULL, &e->offset};
    uint64_t stored = 0xffffffffu;
    fields[1] = &stored;
    for (uint64_t end = at + size; end - at >= 4;) {
        uint64_t id = number(z, at, 2);
        uint64_t length = number(z, at + 2, 2);
        at += 4;
        if (length > end - at)
            return complain(z, "an extra field is longer than its place", at);
        for (size_t i = 0, used = 0; id == 1 && i < 3; i++) {
            if (*fields[i] != 0xffffffffu || used + 8 > length)
                continue;
            *fields[i] = number(z, at + used, 8);
            used += 8;
        }
        at += length;
    }
    return CFX_OK;
}

/* The entry at *at, which moves on to the next. */
static cfx_status read_entry(const archive *z, uint64_t *at, entry *e)
{
    if (!has(z, *at, ENTRY_SIZE) || memcmp(z->bytes->data + *at, "PK\x01\x02", 4) != 0)
        return complain(z, "expected an entry of the directory", *at);
    uint64_t name = number(z, *at + 28, 2);
    uint64_t extra = number(z, *at + 30, 2);
    uint64_t comment = number(z, *at + 32, 2);
    if (!has(z, *at + ENTRY_SIZE, name + extra + comment))
        return complain(z, "an entry of the directory is cut off", *at);
    if (number(z, *at + 8, 2) & 1)
        return cfx_error_set(z->err, CFX_E_UNSUPPORTED, "npz archive: it is encrypted");
    *e = (entry){
        .name = z->bytes->data + *at + ENTRY_SIZE,
        .name_size = (size_t)name,
        .method = number(z, *at + 10, 2),
        .crc = number(z, *at + 16, 4),
        .size = number(z, *at + 24, 4),
        .offset = number(z, *at + 42, 4),
    };
    CFX_TRY(read_wide(z, *at + ENTRY_SIZE + name, extra, e));
    *at += ENTRY_SIZE + name + extra + comment;
    return CFX_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

/* "fc.weight" of "fc.weight.npy". */
static cfx_status name_of(const archive *z, const entry *e, char out[NAME_MOST])
{
    size_t size = e->name_size;
    if (size >= 4 && memcmp(e->name + size - 4, ".npy", 4) == 0)
        size -= 4;
    if (size == 0 || size >= NAME_MOST || memchr(e->name, 0, size) ||
        !cfxi_utf8_valid(e->name, size))
        return complain(z, "a file without a proper name", e->offset);
    memcpy(out, e->name, size);
    out[size] = '\0';
    if (cfx_state_get(z->state, out))
        return complain(z, "two files of one name", e->offset);
    return CFX_OK;
}

static cfx_status read_member(archive *z, const entry *e)
{
    char name[NAME_MOST];
    char where[120];
    CFX_TRY(name_of(z, e, name));
    if (e->method != 0)
        return cfx_error_set(z->err, CFX_E_UNSUPPORTED, "npz archive: '%.100s' is compressed; "
                             "write it with numpy.savez instead of savez_compressed", name);
    if (!has(z, e->offset, LOCAL_SIZE) ||
        memcmp(z->bytes->data + e->offset, "PK\x03\x04", 4) != 0)
        return complain(z, "expected a file", e->offset);
    uint64_t at = e->offset + LOCAL_SIZE + number(z, e->offset + 26, 2) +
                  number(z, e->offset + 28, 2);
    if (!has(z, at, e->size))
        return complain(z, "a file that is longer than the archive", e->offset);
    if (e->size > z->left)  /* else a small archive could name one large file very often */
        return complain(z, "files that overlap", e->offset);
    z->left -= e->size;
    if (crc_of(z->crc, z->bytes->data + at, e->size) != e->crc)
        return complain(z, "a file whose checksum is wrong", e->offset);
    snprintf(where, sizeof where, "npz archive, '%.80s'", name);
    cfxi_utf8_clean(where);
    cfx_tensor *t = cfxi_npy_parse(z->bytes, (size_t)at, (size_t)e->size, where, z->err);
    if (!t)
        return z->err->status;
    cfx_status status = cfx_state_set(z->state, name, t, z->err);
    cfx_tensor_release(t);
    return status;
}

cfx_status cfxi_npz_parse(cfxi_bytes *b, cfx_state *s, cfx_error *err)
{
    archive z = {.bytes = b, .state = s, .left = b->size, .err = err};
    uint64_t count = 0;
    uint64_t at = 0;
    make_crc(z.crc);
    CFX_TRY(find_directory(&z, &count, &at));
    for (uint64_t i = 0; i < count; i++) {
        entry e = {0};
        CFX_TRY(read_entry(&z, &at, &e));
        CFX_TRY(read_member(&z, &e));
    }
    return CFX_OK;
}
