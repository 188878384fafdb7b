/* npz.c - named tensors in a .npz file: a zip archive of .npy files.
 *
 * The archive's directory at its end tells where its files begin and how large they are; sizes over
 * 4 GiB stand in an extra field. Files are stored as they are: cfx does not inflate or deflate.
 */
#include "format_impl.h"

#include <stdio.h>

enum {
    END_SIZE = 22,      /* of the record at the end of the archive */
    ENTRY_SIZE = 46,    /* of an entry of the directory, without its name */
    LOCAL_SIZE = 30,    /* of what stands before each file */
    COMMENT_MOST = 65535,
    NAME_MOST = 1000,
    PADDING_ID = 0xd935 /* of the extra field that aligns what follows */
};

#define WIDE 0xffffffffu  /* in the place of a number that stands in the extra field */

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
    uint64_t stored;  /* its size in the archive */
    uint64_t offset;
} entry;

bool cfxi_format_npz_is(const char *data, size_t size)
{
    return size >= 4 && (memcmp(data, "PK\x03\x04", 4) == 0 || memcmp(data, "PK\x05\x06", 4) == 0);
}

static cfx_status complain(const archive *z, const char *what, uint64_t at)
{
    return cfx_error_set(z->err, CFX_E_VALUE, "npz archive, byte %llu: %s",
                         (unsigned long long)at, what);
}

static uint64_t number(const archive *z, uint64_t at, size_t bytes)
{
    return cfxi_format_little(z->bytes->data + at, bytes);
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

/* The checksum of what `crc` is of (0: nothing) and these bytes after it. */
static uint32_t crc_more(const uint32_t table[256], uint32_t crc, const char *data, uint64_t size)
{
    uint32_t c = crc ^ 0xffffffffu;
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
        return complain(z, "it has no ZIP directory", z->bytes->size);
    *count = number(z, end + 10, 2);
    *first = number(z, end + 16, 4);
    if (*count != 0xffff && *first != WIDE)
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
    uint64_t *fields[] = {&e->size, &e->stored, &e->offset};
    for (uint64_t end = at + size; end - at >= 4;) {
        uint64_t id = number(z, at, 2);
        uint64_t length = number(z, at + 2, 2);
        at += 4;
        if (length > end - at)
            return complain(z, "an extra field is longer than its entry", at);
        for (size_t i = 0, used = 0; id == 1 && i < 3; i++) {
            if (*fields[i] != WIDE || used + 8 > length)
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
        return complain(z, "expected a directory entry", *at);
    uint64_t name = number(z, *at + 28, 2);
    uint64_t extra = number(z, *at + 30, 2);
    uint64_t comment = number(z, *at + 32, 2);
    if (!has(z, *at + ENTRY_SIZE, name + extra + comment))
        return complain(z, "a directory entry is cut off", *at);
    if (number(z, *at + 8, 2) & 1)
        return cfx_error_set(z->err, CFX_E_UNSUPPORTED, "npz archive: encrypted archives are not "
                             "supported");
    *e = (entry){
        .name = z->bytes->data + *at + ENTRY_SIZE,
        .name_size = (size_t)name,
        .method = number(z, *at + 10, 2),
        .crc = number(z, *at + 16, 4),
        .stored = number(z, *at + 20, 4),
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
        !cfxi_base_utf8_valid(e->name, size))
        return complain(z, "a file has no valid name", e->offset);
    memcpy(out, e->name, size);
    out[size] = '\0';
    if (cfx_state_get(z->state, out))
        return complain(z, "two files have the same name", e->offset);
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
        return complain(z, "expected a file header", e->offset);
    uint64_t at = e->offset + LOCAL_SIZE + number(z, e->offset + 26, 2) +
                  number(z, e->offset + 28, 2);
    if (!has(z, at, e->size))
        return complain(z, "a file is longer than the archive", e->offset);
    if (e->size > z->left)  /* else a small archive could name one large file very often */
        return complain(z, "files overlap", e->offset);
    z->left -= e->size;
    if (crc_more(z->crc, 0, z->bytes->data + at, e->size) != e->crc)
        return complain(z, "a file has a wrong checksum", e->offset);
    snprintf(where, sizeof where, "npz archive, '%.80s'", name);
    cfxi_base_utf8_clean(where);
    cfx_tensor *t = cfxi_format_npy_parse(z->bytes, (size_t)at, (size_t)e->size, where, z->err);
    if (!t)
        return z->err->status;
    cfx_status status = cfx_state_set(z->state, name, t, z->err);
    cfx_tensor_release(t);
    return status;
}

cfx_status cfxi_format_npz_read(cfxi_bytes *b, cfx_state *s, cfx_error *err)
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

/* ---- writing ------------------------------------------------------------------------------- */

/* A tensor on its way into an archive. */
typedef struct member {
    const char *name;
    const cfx_tensor *tensor;
    uint64_t offset;
    uint64_t size;
    uint32_t crc;
    uint32_t padding;  /* bytes of the extra field that aligns the elements */
} member;

/* A sink that only looks. */
typedef struct tally {
    const uint32_t *table;
    member *m;
} tally;

static cfx_status count_bytes(void *ctx, const char *data, size_t size)
{
    const tally *t = ctx;
    t->m->crc = crc_more(t->table, t->m->crc, data, size);
    t->m->size += size;
    return CFX_OK;
}

static void put(cfxi_out *out, uint64_t v, size_t bytes)
{
    for (; bytes > 0; bytes--, v >>= 8)
        cfxi_base_out_char(out, (char)(v & 0xff));
}

static uint64_t narrow(uint64_t v) { return v < WIDE ? v : WIDE; }

/* Bytes of the extra field with the numbers that are too large for their places. */
static size_t wide_size(uint64_t size, uint64_t offset)
{
    size_t n = (size >= WIDE ? 16u : 0u) + (offset >= WIDE ? 8u : 0u);
    return n ? n + 4 : 0;
}

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
static void put_fields(cfxi_out *out, const member *m, bool wide, size_t extra)
{
    bool ascii = true;
    for (const char *c = m->name; *c; c++)
        ascii = ascii && (unsigned char)*c < 0x80;
    put(out, wide ? 45 : 20, 2);     /* the version that can read it */
    put(out, ascii ? 0 : 0x800, 2);  /* names are UTF-8 */
    put(out, 0, 2);                  /* stored */
    put(out, 0x00210000, 4);         /* 1 January 1980: the same tensors give the same bytes */
    put(out, m->crc, 4);
    put(out, narrow(m->size), 4);
    put(out, narrow(m->size), 4);
    put(out, strlen(m->name) + 4, 2);
    put(out, extra, 2);
}

static void put_name(cfxi_out *out, const member *m)
{
    cfxi_base_out_str(out, m->name);
    cfxi_base_out_write(out, ".npy", 4);
}

/* Elements begin at a multiple of 64, so that a mapped file needs no copies. */
static uint64_t local_size(member *m)
{
    uint64_t size = LOCAL_SIZE + strlen(m->name) + 4 + wide_size(m->size, 0);
    m->padding = (uint32_t)(CFXI_ALIGN - (m->offset + size) % CFXI_ALIGN) % CFXI_ALIGN;
    if (m->padding > 0 && m->padding < 6)  /* a field has 6 bytes at least */
        m->padding += CFXI_ALIGN;
    return size + m->padding;
}

static cfx_status put_member(cfxi_out *out, const member *m, cfx_error *err)
{
    const size_t wide = wide_size(m->size, 0);
    cfxi_base_out_write(out, "PK\x03\x04", 4);
    put_fields(out, m, wide > 0, wide + m->padding);
    put_name(out, m);
    put_wide(out, m->size, 0);
    if (m->padding) {
        put(out, PADDING_ID, 2);
        put(out, m->padding - 4, 2);
        put(out, CFXI_ALIGN, 2);
        for (uint32_t i = 6; i < m->padding; i++)
            cfxi_base_out_char(out, '\0');
    }
    return cfxi_format_npy_write(m->tensor, cfxi_base_out_sink(out), err);
}

static void put_entry(cfxi_out *out, const member *m)
{
    const size_t wide = wide_size(m->size, m->offset);
    cfxi_base_out_write(out, "PK\x01\x02", 4);
    put(out, wide ? 45 : 20, 2);  /* the version that wrote it */
    put_fields(out, m, wide > 0, wide);
    put(out, 0, 2);               /* the size of a comment */
    put(out, 0, 4);
    put(out, 0, 4);               /* the file's attributes */
    put(out, narrow(m->offset), 4);
    put_name(out, m);
    put_wide(out, m->size, m->offset);
}

/* The record at the end, and the one before it where numbers are too large for that. */
static void put_end(cfxi_out *out, uint64_t count, uint64_t at, uint64_t size)
{
    const bool wide = count >= 0xffff || at >= WIDE || size >= WIDE;
    if (wide) {
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

/* Names, sizes and checksums of all; *end is where the directory begins. */
static cfx_status plan_members(const cfx_state *s, member *all, uint64_t *end, cfx_error *err)
{
    uint32_t table[256];
    make_crc(table);
    *end = 0;
    for (size_t i = 0; i < cfx_state_size(s); i++) {
        cfx_tensor *t;
        cfx_error why = {0};
        member *m = &all[i];
        tally count = {table, m};
        *m = (member){.name = cfx_state_entry(s, i, &t), .tensor = t, .offset = *end};
        size_t size = strlen(m->name);
        if (size == 0 || size >= NAME_MOST || !cfxi_base_utf8_valid(m->name, size))
            return cfx_error_set(err, CFX_E_VALUE, "'%.100s' is not a valid tensor name for a file",
                                 m->name);
        if (cfxi_format_npy_write(m->tensor, (cfx_sink){count_bytes, &count}, &why) != CFX_OK)
            return cfx_error_set(err, why.status, "'%.100s': %.300s", m->name, why.message);
        *end += local_size(m) + m->size;
    }
    return CFX_OK;
}

static cfx_status put_archive(const member *all, size_t n, uint64_t at, cfx_sink sink,
                              cfx_error *err)
{
    cfxi_out out;
    uint64_t size = 0;
    cfx_status status = CFX_OK;
    cfxi_base_out_begin(&out, sink);
    for (size_t i = 0; i < n && status == CFX_OK; i++)
        status = put_member(&out, &all[i], err);
    for (size_t i = 0; i < n && status == CFX_OK; i++) {
        put_entry(&out, &all[i]);
        size += ENTRY_SIZE + strlen(all[i].name) + 4 + wide_size(all[i].size, all[i].offset);
    }
    if (status == CFX_OK)
        put_end(&out, n, at, size);
    const cfx_status ended = cfxi_base_out_end(&out, status == CFX_OK ? err : NULL);
    return status == CFX_OK ? ended : status;
}

cfx_status cfxi_format_npz_write(const cfx_state *s, cfx_sink sink, cfx_error *err)
{
    cfxi_vec all = {0};
    uint64_t at;
    const size_t n = cfx_state_size(s);
    if (!cfxi_base_vec_reserve(&all, n + 1, sizeof(member), cfxi_base_allocator(NULL)))
        return cfxi_base_nomem(err);
    cfx_status status = plan_members(s, all.data, &at, err);
    if (status == CFX_OK)
        status = put_archive(all.data, n, at, sink, err);
    cfxi_base_vec_free(&all, sizeof(member), cfxi_base_allocator(NULL));
    return status;
}
