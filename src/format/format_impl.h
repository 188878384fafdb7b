/* format_impl.h - what the readers and writers of files share. */
#ifndef CFXI_FORMAT_IMPL_H
#define CFXI_FORMAT_IMPL_H

#include "tensor/tensor_impl.h"

#include <cfx/embed/weights.h>

/* ---- files (file.c) ------------------------------------------------------------------------ */

/* Bytes that tensors can point into: a mapped file, or memory of the caller's. Counted. */
typedef struct cfxi_bytes {
    atomic_int refs;
    bool mapped;    /* else they belong to the caller of the reader, and tensors are copies */
    char *data;
    size_t size;
    const cfx_allocator *allocator;
} cfxi_bytes;

cfxi_bytes *cfxi_format_bytes_map(const char *path, const cfx_allocator *allocator, cfx_error *err);
cfxi_bytes *cfxi_format_bytes_borrow(const void *data, size_t size, const cfx_allocator *allocator,
                                     cfx_error *err);
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
 * be one. */
cfx_tensor *cfxi_format_bytes_tensor(cfxi_bytes *b, size_t at, const cfxi_layout *l,
                                     cfx_error *err);

/* Writes a file by `write(ctx, sink)`, and puts it in the place of `path` when all is on disk. */
typedef cfx_status cfxi_write_fn(const void *ctx, cfx_sink out, cfx_error *err);
cfx_status cfxi_format_file_replace(const char *path, cfxi_write_fn *write, const void *ctx,
                                    cfx_error *err);
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
cfx_status cfxi_format_json_end(cfxi_json *j);  /* nothing but white space is left */

#endif
