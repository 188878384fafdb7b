/* format_impl.h - what the readers and writers of files share. */
#ifndef CFXI_FORMAT_IMPL_H
#define CFXI_FORMAT_IMPL_H

#include "tensor/tensor_impl.h"

#include <cfx/embed/weights.h>

/* ---- files (file.c) ------------------------------------------------------------------------ */

/* Bytes that tensors can point into: a mapped file, or memory of the caller's. Counted. */
typedef struct cfxi_bytes {
    atomic_int refs;
    bool mapped;    /* tensors may point into them; else they are the caller's, and copied */
    bool read_only; /* a file is mapped, and nobody writes to it */
    char *data;
    size_t size;
    const cfx_allocator *allocator;
    struct cfxi_bytes *whole;  /* that these are a part of: retained; or NULL */
    size_t room;    /* bytes of memory that is to be freed; 0: none, */
    size_t shift;   /* and how far behind its beginning `data` is */
    bool apart;     /* no two tensors have bytes in common: pages of one that was copied can go */
    bool foreign;   /* memory of the caller's that tensors may point into, until */
    void (*release)(void *ctx);  /* this is called; may be NULL */
    void *release_ctx;
} cfxi_bytes;

/* Puts the name of a file before a message: "w.safetensors: safetensors header, byte 3: ...". */
void cfxi_format_name_file(cfx_error *err, const char *path);
cfxi_bytes *cfxi_format_bytes_map(const char *path, const cfx_allocator *allocator, cfx_error *err);
cfxi_bytes *cfxi_format_bytes_borrow(const void *data, size_t size, const cfx_allocator *allocator,
                                     cfx_error *err);
/* A file read into memory: it may be truncated afterwards. */
cfxi_bytes *cfxi_format_bytes_load(const char *path, const cfx_allocator *allocator,
                                   cfx_error *err);
/* What an open file holds, from its beginning: mapped, or read if it cannot be or `copy`. */
cfxi_bytes *cfxi_format_bytes_of_fd(int file, bool copy, const cfx_allocator *allocator,
                                    cfx_error *err);
/* Says that nobody writes to a mapped file: its pages may leave memory. Takes NULL, and bytes of
 * any other kind, which stay as they are. Returns `b`. */
cfxi_bytes *cfxi_format_bytes_protect(cfxi_bytes *b);
/* A copy in memory of ours, aligned as tensors are. Takes over `from`; NULL is allowed. */
cfxi_bytes *cfxi_format_bytes_copy(cfxi_bytes *from, const cfx_allocator *allocator,
                                   cfx_error *err);
/* A part of other bytes, which it retains. */
cfxi_bytes *cfxi_format_bytes_part(cfxi_bytes *b, size_t at, size_t size, cfx_error *err);
void cfxi_format_bytes_release(cfxi_bytes *b);

/* How elements lie in bytes. */
typedef struct cfxi_layout {
    cfx_dtype dtype;
    size_t ndim;
    int64_t sizes[CFX_MAX_DIMS];
    bool fortran;   /* the first dimension is the innermost */
    size_t swap;    /* bytes of the units whose order is turned; 0: none are */
} cfxi_layout;

/* The bytes that the elements take; false if that does not fit. */
bool cfxi_format_layout_bytes(const cfxi_layout *l, size_t *bytes);
/* A tensor of the bytes from `at` on, which are there: a view of the map, or a copy where it must
 * be one. Large elements that are not aligned are copied when somebody needs them. */
cfx_tensor *cfxi_format_bytes_tensor(cfxi_bytes *b, size_t at, const cfxi_layout *l,
                                     cfx_error *err);

/* Bytes from which on elements that are not aligned stay in the file until they are needed. */
enum { CFXI_FETCH_LARGE = 1 << 16 };
/* Copies them then: `ctx` is the cfxi_bytes. (bulk.c) */
void cfxi_format_fetch(void *ctx, char *to, const char *from, size_t size);
/* Lets the pages of a file that are mapped there leave memory, until somebody reads them; they were
 * not written to. (bulk.c) */
void cfxi_format_give_back(char *data, size_t size);
/* Asks for room on disk for what is about to be written: blocks are found at once, and a disk that
 * is too full is known before. False, with errno, in that case alone. (bulk.c) */
bool cfxi_format_reserve(int file, uint64_t size);

/* Writes a file of `size` bytes (0: not known) by `write(ctx, sink)`, and puts it in the place of
 * `path` when all is on disk. */
typedef cfx_status cfxi_write_fn(const void *ctx, cfx_sink out, cfx_error *err);
cfx_status cfxi_format_file_replace(const char *path, uint64_t size, cfxi_write_fn *write,
                                    const void *ctx, cfx_error *err);
/* The elements, row by row. */
void cfxi_format_out_elements(cfxi_out *out, const cfx_tensor *t);

/* Numbers as files have them: little-endian, of any alignment. */
static inline uint64_t cfxi_format_little(const char *at, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = bytes; i-- > 0;)
        v = v << 8 | (unsigned char)at[i];
    return v;
}

/* ---- checksums (checksum.c) ---------------------------------------------------------------- */

/* Tables for CRC-32, eight bytes at a time: row k is of a byte that k zeros follow. */
typedef struct cfxi_crc {
    uint32_t row[8][256];
} cfxi_crc;
void cfxi_format_crc_init(cfxi_crc *crc);
/* The checksum of what `sum` is of (0: nothing) and these bytes after it. */
uint32_t cfxi_format_crc_more(const cfxi_crc *crc, uint32_t sum, const void *data, size_t size);

typedef struct cfxi_sha256 {
    uint32_t state[8];
    uint64_t size;           /* of all bytes so far */
    unsigned char block[64];  /* the last size % 64 of them */
} cfxi_sha256;
void cfxi_format_sha256_begin(cfxi_sha256 *h);
void cfxi_format_sha256_more(cfxi_sha256 *h, const void *data, size_t size);
/* As 64 hexadecimal digits and a NUL. */
void cfxi_format_sha256_end(cfxi_sha256 *h, char out[65]);

/* ---- archives (archive.c) ------------------------------------------------------------------ */

/* An entry of a zip archive: a part of its bytes. */
typedef struct cfxi_entry {
    const char *name;  /* valid UTF-8 without NUL; not terminated */
    size_t name_size;
    size_t at;         /* where its contents begin */
    size_t size;
    size_t header;     /* where its header begins, for messages */
    uint32_t crc;
} cfxi_entry;

/* The entries of an archive, in the order of its directory. */
typedef struct cfxi_archive {
    cfxi_bytes *bytes;    /* borrowed */
    const char *what;     /* it is called in messages: "npz archive" */
    cfxi_vec entries;     /* cfxi_entry */
    cfxi_vec by_name;     /* const cfxi_entry *, sorted */
    cfxi_crc crc;
} cfxi_archive;

/* Reads and checks the directory: entries are stored as they are, lie inside of the bytes, do not
 * overlap, and have names that differ. `advice` ends the message about a compressed entry.
 * CFX_E_VALUE with the byte, CFX_E_UNSUPPORTED, CFX_E_NOMEM; cfxi_format_archive_close is due in
 * any case. */
cfx_status cfxi_format_archive_open(cfxi_archive *a, cfxi_bytes *b, const char *what,
                                    const char *advice, cfx_error *err);
void cfxi_format_archive_close(cfxi_archive *a);
/* An entry by its name, borrowed; NULL if there is none. */
const cfxi_entry *cfxi_format_archive_find(const cfxi_archive *a, const char *name);
/* Compares the contents of an entry with its checksum: CFX_E_VALUE. */
cfx_status cfxi_format_archive_check(const cfxi_archive *a, const cfxi_entry *e, cfx_error *err);

/* A part of an archive that is to be written: `write(ctx, sink)` writes the contents, twice, and
 * the same both times. The rest is filled in by cfxi_format_archive_plan. */
typedef struct cfxi_part {
    const char *name;    /* borrowed */
    cfxi_write_fn *write;
    const void *ctx;
    bool hashed;         /* whether `sha256` is wanted */
    bool planned;        /* whether the sums below are known */
    uint64_t offset;
    uint64_t size;
    uint32_t crc;
    uint32_t padding;
    char sha256[65];
} cfxi_part;

/* Finds sizes and checksums of parts, and their places one after the other. A part that was planned
 * before keeps its sums: one whose contents depend on others' can be planned after them. */
cfx_status cfxi_format_archive_plan(cfxi_part *parts, size_t n, cfx_error *err);
/* Writes parts that were planned. CFX_E_VALUE if the contents of one have changed since:
 * then what was written is no archive. */
cfx_status cfxi_format_archive_write(const cfxi_part *parts, size_t n, cfx_sink sink,
                                     cfx_error *err);

/* ---- the table (format_table.c, format.def) ------------------------------------------------ */

/* Whether data is in a format, by how it begins. It may be cut off or damaged further on. */
typedef bool cfxi_is_fn(const char *data, size_t size);
/* `name` is that of the file, for messages. */
typedef cfx_tensor *cfxi_read_tensor_fn(cfxi_bytes *b, const char *name, cfx_error *err);
typedef cfx_status cfxi_write_tensor_fn(const cfx_tensor *t, cfx_sink out, cfx_error *err);
/* Adds the tensors to `s`. The caller puts the file's name before messages. */
typedef cfx_status cfxi_read_tensors_fn(cfxi_bytes *b, cfx_state *s, cfx_error *err);
typedef cfx_status cfxi_write_tensors_fn(const cfx_state *s, cfx_sink out, cfx_error *err);

#define CFX_FORMAT_GRAPH(name, extension, summary) cfxi_is_fn cfxi_format_##name##_is;
#define CFX_FORMAT_MODEL(name, extension, summary) cfxi_is_fn cfxi_format_##name##_is;
#define CFX_FORMAT_TENSOR(name, extension, summary)                                                \
    cfxi_is_fn cfxi_format_##name##_is;                                                            \
    cfxi_read_tensor_fn cfxi_format_##name##_read;                                                 \
    cfxi_write_tensor_fn cfxi_format_##name##_write;
#define CFX_FORMAT_TENSORS(name, extension, summary)                                               \
    cfxi_is_fn cfxi_format_##name##_is;                                                            \
    cfxi_read_tensors_fn cfxi_format_##name##_read;                                                \
    cfxi_write_tensors_fn cfxi_format_##name##_write;
#include "format.def"

/* Read bytes in any format that holds this; `path` (may be NULL) only helps with messages. They
 * fail with CFX_E_VALUE, naming the formats, if the bytes are in none of them. */
cfx_tensor *cfxi_format_read_tensor(cfxi_bytes *b, const char *path, cfx_error *err);
cfx_status cfxi_format_read_tensors(cfxi_bytes *b, const char *path, cfx_state *s, cfx_error *err);

/* A .npy file that is a part of the bytes. (npy.c) */
cfx_tensor *cfxi_format_npy_parse(cfxi_bytes *b, size_t at, size_t size, const char *name,
                                  cfx_error *err);

/* ---- JSON (json_read.c) -------------------------------------------------------------------- */

/* Reads a text from left to right; the first complaint sticks, with the byte it is about. */
typedef struct cfxi_json {
    const char *text;
    size_t size;
    size_t at;
    const char *what;  /* is being read: "the header" */
    cfx_error *err;
    cfx_status status;
} cfxi_json;

cfx_status cfxi_format_json_complain(cfxi_json *j, cfx_status status, const char *what);
/* Members of an object, or items of a list:
 *     bool first = cfxi_format_json_open(&j, '{');
 *     while (cfxi_format_json_more(&j, '}', &first)) ... */
bool cfxi_format_json_open(cfxi_json *j, char open);
bool cfxi_format_json_more(cfxi_json *j, char close, bool *first);
/* A string, unescaped, appended to *out (emptied first); terminated, valid UTF-8, without NUL. */
cfx_status cfxi_format_json_string(cfxi_json *j, cfx_buffer *out);
/* The member's name and the ':' behind it. */
cfx_status cfxi_format_json_key(cfxi_json *j, cfx_buffer *out);
/* A number from 0 to INT64_MAX without sign, point or exponent. */
cfx_status cfxi_format_json_size(cfxi_json *j, int64_t *out);
/* Any value, of which nothing is kept: what a later version has added. Nested at most so deep. */
enum { CFXI_JSON_DEPTH = 64 };
cfx_status cfxi_format_json_skip(cfxi_json *j, cfx_buffer *scratch);
cfx_status cfxi_format_json_end(cfxi_json *j);  /* nothing but white space is left */

#endif
