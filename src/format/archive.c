/* archive.c - zip archives whose entries are stored as they are.
 *
 * The directory at the end tells where entries begin and how large they are; numbers above 4 GiB
 * stand in an extra field. Entries that are written begin at a multiple of 64, so that a mapped
 * file needs no copies. cfx does not inflate or deflate.
 */
#include "format_impl.h"

#include <stdlib.h>

enum {
    END_SIZE = 22,      /* of the record at the end of the archive */
    ENTRY_SIZE = 46,    /* of an entry of the directory, without its name */
    LOCAL_SIZE = 30,    /* of what stands before the contents of an entry */
    WIDE_END_SIZE = 56,
    COMMENT_MOST = 65535,
    NAME_MOST = 65535,
    PADDING_ID = 0xd935 /* of the extra field that aligns what follows */
};

#define WIDE 0xffffffffu  /* in the place of a number that stands in the extra field */

/* ---- reading: numbers ---------------------------------------------------------------------- */

static cfx_status complain(const cfxi_archive *a, const char *what, uint64_t at, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_VALUE, "%s, byte %llu: %s", a->what, (unsigned long long)at,
                         what);
}

static uint64_t number(const cfxi_archive *a, uint64_t at, size_t bytes)
{
    return cfxi_format_little(a->bytes->data + at, bytes);
}

static bool has(const cfxi_archive *a, uint64_t at, uint64_t bytes)
{
    return at <= a->bytes->size && bytes <= a->bytes->size - at;
}

static bool is_at(const cfxi_archive *a, uint64_t at, const char *mark)
{
    return memcmp(a->bytes->data + at, mark, 4) == 0;
}

/* ---- reading: the directory ---------------------------------------------------------------- */

/* Where the record at the end begins; a comment may follow it. */
static bool find_end(const cfxi_archive *a, uint64_t *end)
{
    size_t size = a->bytes->size;
    for (size_t back = END_SIZE; back <= size && back <= END_SIZE + COMMENT_MOST; back++) {
        size_t at = size - back;
        if (is_at(a, at, "PK\x05\x06") && number(a, at + 20, 2) == back - END_SIZE) {
            *end = at;
            return true;
        }
    }
    return false;
}

/* How many entries there are and where the first is. */
static cfx_status find_directory(const cfxi_archive *a, uint64_t *count, uint64_t *first,
                                 cfx_error *err)
{
    uint64_t end;
    if (!find_end(a, &end))
        return complain(a, "it has no ZIP directory", a->bytes->size, err);
    *count = number(a, end + 10, 2);
    *first = number(a, end + 16, 4);
    if (*count != 0xffff && *first != WIDE)
        return CFX_OK;
    if (end < 20 || !is_at(a, end - 20, "PK\x06\x07"))
        return CFX_OK;  /* the numbers are meant as they are */
    uint64_t wide = number(a, end - 12, 8);
    if (!has(a, wide, WIDE_END_SIZE) || !is_at(a, wide, "PK\x06\x06"))
        return complain(a, "its directory is damaged", end - 20, err);
    *count = number(a, wide + 32, 8);
    *first = number(a, wide + 48, 8);
    return CFX_OK;
}

/* What the directory says of an entry. */
typedef struct row {
    uint64_t method;
    uint64_t size;
    uint64_t stored;  /* its size in the archive */
    uint64_t offset;
} row;

/* Sizes that do not fit 4 bytes stand in the extra field 1: size, size in the archive, offset. */
static cfx_status read_wide(const cfxi_archive *a, uint64_t at, uint64_t size, row *r,
                            cfx_error *err)
{
    uint64_t *fields[] = {&r->size, &r->stored, &r->offset};
    for (uint64_t end = at + size; end - at >= 4;) {
        uint64_t id = number(a, at, 2);
        uint64_t length = number(a, at + 2, 2);
        at += 4;
        if (length > end - at)
            return complain(a, "an extra field is longer than its entry", at, err);
        for (size_t i = 0, used = 0; id == 1 && i < 3; i++) {
            if (*fields[i] != WIDE || used + 8 > length)
                continue;
            *fields[i] = number(a, at + used, 8);
            used += 8;
        }
        at += length;
    }
    return CFX_OK;
}

/* Where the contents are, by the header in front of them. */
static cfx_status find_contents(const cfxi_archive *a, const row *r, cfxi_entry *e, cfx_error *err)
{
    if (!has(a, r->offset, LOCAL_SIZE) || !is_at(a, r->offset, "PK\x03\x04"))
        return complain(a, "expected a file header", r->offset, err);
    uint64_t at = r->offset + LOCAL_SIZE + number(a, r->offset + 26, 2) +
                  number(a, r->offset + 28, 2);
    if (!has(a, at, r->size))
        return complain(a, "a file is longer than the archive", r->offset, err);
    e->at = (size_t)at;
    e->size = (size_t)r->size;
    e->header = (size_t)r->offset;
    return CFX_OK;
}

static cfx_status check_row(const cfxi_archive *a, const row *r, const cfxi_entry *e,
                            const char *advice, cfx_error *err)
{
    if (e->name_size == 0 || memchr(e->name, 0, e->name_size) ||
        !cfxi_base_utf8_valid(e->name, e->name_size))
        return complain(a, "a file has no valid name", r->offset, err);
    if (r->method != 0)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "%s: '%.*s' is compressed; %s", a->what,
                             e->name_size > 100 ? 100 : (int)e->name_size, e->name, advice);
    if (r->size != r->stored)
        return complain(a, "a file has two sizes", r->offset, err);
    return CFX_OK;
}

/* The entry at *at, which moves on to the next. */
static cfx_status read_entry(const cfxi_archive *a, uint64_t *at, const char *advice,
                             cfxi_entry *e, cfx_error *err)
{
    if (!has(a, *at, ENTRY_SIZE) || !is_at(a, *at, "PK\x01\x02"))
        return complain(a, "expected a directory entry", *at, err);
    uint64_t name = number(a, *at + 28, 2);
    uint64_t extra = number(a, *at + 30, 2);
    uint64_t comment = number(a, *at + 32, 2);
    if (!has(a, *at + ENTRY_SIZE, name + extra + comment))
        return complain(a, "a directory entry is cut off", *at, err);
    if (number(a, *at + 8, 2) & 1)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "%s: encrypted archives are not supported",
                             a->what);
    row r = {.method = number(a, *at + 10, 2), .stored = number(a, *at + 20, 4),
             .size = number(a, *at + 24, 4), .offset = number(a, *at + 42, 4)};
    *e = (cfxi_entry){.name = a->bytes->data + *at + ENTRY_SIZE, .name_size = (size_t)name,
                      .crc = (uint32_t)number(a, *at + 16, 4)};
    CFX_TRY(read_wide(a, *at + ENTRY_SIZE + name, extra, &r, err));
    CFX_TRY(check_row(a, &r, e, advice, err));
    CFX_TRY(find_contents(a, &r, e, err));
    *at += ENTRY_SIZE + name + extra + comment;
    return CFX_OK;
}

/* ---- reading: all entries ------------------------------------------------------------------ */

static int compare_names(const cfxi_entry *x, const char *name, size_t size)
{
    const int order = memcmp(x->name, name, x->name_size < size ? x->name_size : size);
    return order ? order : x->name_size < size ? -1 : x->name_size > size;
}

static int by_name(const void *a, const void *b)
{
    const cfxi_entry *x = *(const cfxi_entry *const *)a;
    const cfxi_entry *y = *(const cfxi_entry *const *)b;
    return compare_names(x, y->name, y->name_size);
}

static int by_place(const void *a, const void *b)
{
    const cfxi_entry *x = *(const cfxi_entry *const *)a;
    const cfxi_entry *y = *(const cfxi_entry *const *)b;
    return x->header < y->header ? -1 : x->header > y->header;
}

/* Whether the header in front of an entry has the name that the directory has. */
static bool has_its_name(const cfxi_archive *a, const cfxi_entry *e)
{
    return number(a, e->header + 26, 2) == e->name_size && e->header + LOCAL_SIZE + e->name_size <=
           e->at && memcmp(a->bytes->data + e->header + LOCAL_SIZE, e->name, e->name_size) == 0;
}

/* No byte belongs to two entries, and no two have one name. The entries end up sorted by name. */
static cfx_status check_together(const cfxi_archive *a, cfx_error *err)
{
    const size_t n = a->by_name.size;
    const cfxi_entry **all = a->by_name.data;
    if (n > 1)
        qsort(all, n, sizeof *all, by_place);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && all[i]->header < all[i - 1]->at + all[i - 1]->size)
            return complain(a, "files overlap", all[i]->header, err);
        if (!has_its_name(a, all[i]))
            return complain(a, "a file has another name than in the directory", all[i]->header,
                            err);
    }
    if (n < 2)
        return CFX_OK;
    qsort(all, n, sizeof *all, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&all[i - 1], &all[i]) == 0)
            return complain(a, "two files have the same name", all[i]->header, err);
    return CFX_OK;
}

static cfx_status read_entries(cfxi_archive *a, uint64_t count, uint64_t at, const char *advice,
                               cfx_error *err)
{
    const cfx_allocator *allocator = a->bytes->allocator;
    if (count > a->bytes->size / ENTRY_SIZE)  /* nothing is allocated for what cannot be there */
        return complain(a, "it has more files than it has room for", at, err);
    if (!cfxi_base_vec_reserve(&a->entries, (size_t)count + 1, sizeof(cfxi_entry), allocator) ||
        !cfxi_base_vec_reserve(&a->by_name, (size_t)count + 1, sizeof(cfxi_entry *), allocator))
        return cfxi_base_nomem(err);
    cfxi_entry *all = a->entries.data;
    const cfxi_entry **sorted = a->by_name.data;
    for (uint64_t i = 0; i < count; i++) {
        CFX_TRY(read_entry(a, &at, advice, &all[i], err));
        sorted[i] = &all[i];
        a->entries.size++;
        a->by_name.size++;
    }
    return check_together(a, err);
}

cfx_status cfxi_format_archive_open(cfxi_archive *a, cfxi_bytes *b, const char *what,
                                    const char *advice, cfx_error *err)
{
    uint64_t count = 0;
    uint64_t at = 0;
    memset(a, 0, offsetof(cfxi_archive, crc));
    a->bytes = b;
    a->what = what;
    cfxi_format_crc_init(&a->crc);
    CFX_TRY(find_directory(a, &count, &at, err));
    return read_entries(a, count, at, advice, err);
}

void cfxi_format_archive_close(cfxi_archive *a)
{
    cfxi_base_vec_free(&a->entries, sizeof(cfxi_entry), a->bytes->allocator);
    cfxi_base_vec_free(&a->by_name, sizeof(cfxi_entry *), a->bytes->allocator);
}

const cfxi_entry *cfxi_format_archive_find(const cfxi_archive *a, const char *name)
{
    const cfxi_entry *const *all = a->by_name.data;
    size_t low = 0;
    size_t high = a->by_name.size;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_names(all[middle], name, strlen(name));
        if (order == 0)
            return all[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

cfx_status cfxi_format_archive_check(const cfxi_archive *a, const cfxi_entry *e, cfx_error *err)
{
    if (cfxi_format_crc_more(&a->crc, 0, a->bytes->data + e->at, e->size) == e->crc)
        return CFX_OK;
    return complain(a, "a file has a wrong checksum", e->header, err);
}

/* ---- writing: sizes and sums --------------------------------------------------------------- */

/* A sink that only looks, or looks at what it passes on. */
typedef struct tally {
    const cfxi_crc *crc;
    cfxi_sha256 *sha256;  /* or NULL */
    cfxi_out *out;        /* or NULL */
    uint64_t size;
    uint32_t sum;
} tally;

static cfx_status count_bytes(void *ctx, const char *data, size_t size)
{
    tally *t = ctx;
    t->sum = cfxi_format_crc_more(t->crc, t->sum, data, size);
    t->size += size;
    if (t->sha256)
        cfxi_format_sha256_more(t->sha256, data, size);
    if (t->out)
        cfxi_base_out_write(t->out, data, size);
    return t->out ? t->out->status : CFX_OK;
}

static cfx_status look(cfxi_part *p, const cfxi_crc *crc, cfx_error *err)
{
    cfxi_sha256 sha256;
    tally t = {.crc = crc, .sha256 = p->hashed ? &sha256 : NULL};
    cfxi_format_sha256_begin(&sha256);
    CFX_TRY(p->write(p->ctx, (cfx_sink){count_bytes, &t}, err));
    cfxi_format_sha256_end(&sha256, p->sha256);
    p->size = t.size;
    p->crc = t.sum;
    p->planned = true;
    return CFX_OK;
}

/* Bytes of the extra field with the numbers that are too large for their places. */
static size_t wide_size(uint64_t size, uint64_t offset)
{
    size_t n = (size >= WIDE ? 16u : 0u) + (offset >= WIDE ? 8u : 0u);
    return n ? n + 4 : 0;
}

/* The size of the header of a part, padded so that its contents are aligned. */
static uint64_t header_size(cfxi_part *p)
{
    uint64_t size = LOCAL_SIZE + strlen(p->name) + wide_size(p->size, 0);
    p->padding = (uint32_t)(CFXI_ALIGN - (p->offset + size) % CFXI_ALIGN) % CFXI_ALIGN;
    if (p->padding > 0 && p->padding < 6)  /* a field has 6 bytes at least */
        p->padding += CFXI_ALIGN;
    return size + p->padding;
}

cfx_status cfxi_format_archive_plan(cfxi_part *parts, size_t n, cfx_error *err)
{
    cfxi_crc crc;
    uint64_t at = 0;
    cfxi_format_crc_init(&crc);
    for (size_t i = 0; i < n; i++) {
        cfxi_part *p = &parts[i];
        const size_t size = strlen(p->name);
        if (size == 0 || size > NAME_MOST || !cfxi_base_utf8_valid(p->name, size))
            return cfx_error_set(err, CFX_E_VALUE, "'%.100s' is not a valid name for a file",
                                 p->name);
        if (!p->planned)
            CFX_TRY(look(p, &crc, err));
        p->offset = at;
        at += header_size(p) + p->size;
    }
    return CFX_OK;
}

/* ---- writing: records ---------------------------------------------------------------------- */

static void put(cfxi_out *out, uint64_t v, size_t bytes)
{
    for (; bytes > 0; bytes--, v >>= 8)
        cfxi_base_out_char(out, (char)(v & 0xff));
}

static uint64_t narrow(uint64_t v) { return v < WIDE ? v : WIDE; }

static void put_wide(cfxi_out *out, uint64_t size, uint64_t offset)
{
    const size_t n = wide_size(size, offset);
    if (n == 0)
        return;
    put(out, 1, 2);
    put(out, n - 4, 2);
    for (int i = 0; i < 2 && size >= WIDE; i++)
        put(out, size, 8);
    if (offset >= WIDE)
        put(out, offset, 8);
}

/* What stands in both places that describe a file, up to the size of its extra field. */
static void put_fields(cfxi_out *out, const cfxi_part *p, bool wide, size_t extra)
{
    bool ascii = true;
    for (const char *c = p->name; *c; c++)
        ascii = ascii && (unsigned char)*c < 0x80;
    put(out, wide ? 45 : 20, 2);     /* the version that can read it */
    put(out, ascii ? 0 : 0x800, 2);  /* names are UTF-8 */
    put(out, 0, 2);                  /* stored */
    put(out, 0x00210000, 4);         /* 1 January 1980: the same contents give the same bytes */
    put(out, p->crc, 4);
    put(out, narrow(p->size), 4);
    put(out, narrow(p->size), 4);
    put(out, strlen(p->name), 2);
    put(out, extra, 2);
}

static void put_header(cfxi_out *out, const cfxi_part *p)
{
    const size_t wide = wide_size(p->size, 0);
    cfxi_base_out_write(out, "PK\x03\x04", 4);
    put_fields(out, p, wide > 0, wide + p->padding);
    cfxi_base_out_str(out, p->name);
    put_wide(out, p->size, 0);
    if (p->padding) {
        put(out, PADDING_ID, 2);
        put(out, p->padding - 4, 2);
        put(out, CFXI_ALIGN, 2);
        for (uint32_t i = 6; i < p->padding; i++)
            cfxi_base_out_char(out, '\0');
    }
}

static uint64_t put_entry(cfxi_out *out, const cfxi_part *p)
{
    const size_t wide = wide_size(p->size, p->offset);
    cfxi_base_out_write(out, "PK\x01\x02", 4);
    put(out, wide ? 45 : 20, 2);  /* the version that wrote it */
    put_fields(out, p, wide > 0, wide);
    put(out, 0, 2);               /* the size of a comment */
    put(out, 0, 4);
    put(out, 0, 4);               /* the file's attributes */
    put(out, narrow(p->offset), 4);
    cfxi_base_out_str(out, p->name);
    put_wide(out, p->size, p->offset);
    return ENTRY_SIZE + strlen(p->name) + wide;
}

/* The record at the end, and the one before it where numbers are too large for that. */
static void put_end(cfxi_out *out, uint64_t count, uint64_t at, uint64_t size)
{
    if (count >= 0xffff || at >= WIDE || size >= WIDE) {
        cfxi_base_out_write(out, "PK\x06\x06", 4);
        put(out, 44, 8);
        put(out, 45, 2);
        put(out, 45, 2);
        put(out, 0, 8);  /* it is the only disk, of one */
        put(out, count, 8);
        put(out, count, 8);
        put(out, size, 8);
        put(out, at, 8);
        cfxi_base_out_write(out, "PK\x06\x07", 4);
        put(out, 0, 4);
        put(out, at + size, 8);
        put(out, 1, 4);
    }
    cfxi_base_out_write(out, "PK\x05\x06", 4);
    put(out, 0, 4);
    put(out, count < 0xffff ? count : 0xffff, 2);
    put(out, count < 0xffff ? count : 0xffff, 2);
    put(out, narrow(size), 4);
    put(out, narrow(at), 4);
    put(out, 0, 2);
}

/* ---- writing: all -------------------------------------------------------------------------- */

static cfx_status put_part(cfxi_out *out, const cfxi_part *p, const cfxi_crc *crc, cfx_error *err)
{
    tally t = {.crc = crc, .out = out};
    put_header(out, p);
    CFX_TRY(p->write(p->ctx, (cfx_sink){count_bytes, &t}, err));
    if (t.size != p->size || t.sum != p->crc)
        return cfx_error_set(err, CFX_E_VALUE, "'%.100s' has changed while it was written; do not "
                             "change what is being saved", p->name);
    return CFX_OK;
}

cfx_status cfxi_format_archive_write(const cfxi_part *parts, size_t n, cfx_sink sink,
                                     cfx_error *err)
{
    cfxi_crc crc;
    cfxi_out out;
    uint64_t size = 0;
    cfx_status status = CFX_OK;
    cfxi_format_crc_init(&crc);
    cfxi_base_out_begin(&out, sink);
    for (size_t i = 0; i < n && status == CFX_OK; i++)
        status = put_part(&out, &parts[i], &crc, err);
    for (size_t i = 0; i < n && status == CFX_OK; i++)
        size += put_entry(&out, &parts[i]);
    if (status == CFX_OK) {
        const cfxi_part *last = n ? &parts[n - 1] : NULL;
        cfxi_part placed = last ? *last : (cfxi_part){0};
        put_end(&out, n, last ? last->offset + header_size(&placed) + last->size : 0, size);
    }
    const cfx_status ended = cfxi_base_out_end(&out, status == CFX_OK ? err : NULL);
    return status == CFX_OK ? ended : status;
}
