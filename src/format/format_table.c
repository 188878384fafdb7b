/* format_table.c - the table of file formats, and reading and writing by it. */
#include "format_impl.h"

#include <stdio.h>

typedef struct format {
    cfx_file_format row;
    bool (*is)(const char *data, size_t size);
    cfxi_read_tensor_fn *read_tensor;
    cfxi_write_tensor_fn *write_tensor;
    cfxi_read_tensors_fn *read_tensors;
    cfxi_write_tensors_fn *write_tensors;
} format;

static const format formats[] = {
#define CFX_FORMAT_GRAPH(name, extension, summary)                                                 \
    {{#name, extension, summary, CFX_CONTENT_GRAPH}, cfxi_format_##name##_is, NULL, NULL, NULL,    \
     NULL},
#define CFX_FORMAT_MODEL(name, extension, summary)                                                 \
    {{#name, extension, summary, CFX_CONTENT_MODEL}, cfxi_format_##name##_is, NULL, NULL, NULL,    \
     NULL},
#define CFX_FORMAT_TENSOR(name, extension, summary)                                                \
    {{#name, extension, summary, CFX_CONTENT_TENSOR}, cfxi_format_##name##_is,                     \
     cfxi_format_##name##_read, cfxi_format_##name##_write, NULL, NULL},
#define CFX_FORMAT_TENSORS(name, extension, summary)                                               \
    {{#name, extension, summary, CFX_CONTENT_TENSORS}, cfxi_format_##name##_is, NULL, NULL,        \
     cfxi_format_##name##_read, cfxi_format_##name##_write},
#include "format.def"
};

enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

/* ---- the table ----------------------------------------------------------------------------- */

const cfx_file_format *cfx_file_format_get(size_t i)
{
    return i < FORMAT_COUNT ? &formats[i].row : NULL;
}

const cfx_file_format *cfx_file_format_find(const char *name)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(formats[i].row.name, name) == 0)
            return &formats[i].row;
    return NULL;
}

static const format *by_path(const char *path)
{
    const size_t size = strlen(path);
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        const size_t end = strlen(formats[i].row.extension);
        if (size > end && strcmp(path + size - end, formats[i].row.extension) == 0)
            return &formats[i];
    }
    return NULL;
}

static const format *by_data(const char *data, size_t size)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (formats[i].is(data, size))
            return &formats[i];
    return NULL;
}

const cfx_file_format *cfx_file_format_of_path(const char *path)
{
    const format *f = by_path(path);
    return f ? &f->row : NULL;
}

const cfx_file_format *cfx_file_format_of_data(const void *data, size_t size)
{
    const format *f = by_data(data, size);
    return f ? &f->row : NULL;
}

const char *cfx_file_format_list(cfx_content content, char out[CFX_FILE_FORMAT_LIST_SIZE])
{
    size_t used = 0;
    size_t left = 0;
    const char *between = "";
    out[0] = '\0';
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        left += formats[i].row.content == content;
    for (size_t i = 0; i < FORMAT_COUNT && used < CFX_FILE_FORMAT_LIST_SIZE; i++) {
        if (formats[i].row.content != content)
            continue;
        used += (size_t)snprintf(out + used, CFX_FILE_FORMAT_LIST_SIZE - used, "%s%s",
                                 *between && left == 1 ? " or " : between,
                                 formats[i].row.extension);
        between = ", ";
        left--;
    }
    return out;
}

const char *cfx_content_words(cfx_content content)
{
    static const char *const words[] = {
        [CFX_CONTENT_GRAPH] = "a graph",
        [CFX_CONTENT_MODEL] = "a model",
        [CFX_CONTENT_TENSOR] = "one tensor",
        [CFX_CONTENT_TENSORS] = "named tensors",
    };
    return words[content];
}

/* ---- reading ------------------------------------------------------------------------------- */

/* The format of a file whose content must be `wanted`; NULL with *err set. The data decides. The
 * extension decides where the data is in no known format: the reader then says what is wrong. */
static const format *expect_format(const cfxi_bytes *b, const char *path, cfx_content wanted,
                                   cfx_error *err)
{
    char list[CFX_FILE_FORMAT_LIST_SIZE];
    const format *f = by_data(b->size ? b->data : "", b->size);
    const format *named = path ? by_path(path) : NULL;
    if (!f)
        f = named;
    if (f && f->row.content == wanted)
        return f;
    cfx_file_format_list(wanted, list);
    if (f)
        cfx_error_set(err, CFX_E_VALUE, "a %s file holds %s; give a file with %s: %s",
                      f->row.extension, cfx_content_words(f->row.content),
                      cfx_content_words(wanted), list);
    else
        cfx_error_set(err, CFX_E_VALUE, "not a file with %s: cfx reads %s",
                      cfx_content_words(wanted), list);
    return NULL;
}

cfx_tensor *cfxi_format_read_tensor(cfxi_bytes *b, const char *path, cfx_error *err)
{
    char name[300];
    const format *f = expect_format(b, path, CFX_CONTENT_TENSOR, err);
    snprintf(name, sizeof name, path ? "'%.250s'" : "%s", path ? path : f ? f->row.name : "");
    return f ? f->read_tensor(b, name, err) : NULL;
}

cfx_status cfxi_format_read_tensors(cfxi_bytes *b, const char *path, cfx_state *s, cfx_error *err)
{
    const format *f = expect_format(b, path, CFX_CONTENT_TENSORS, err);
    return f ? f->read_tensors(b, s, err) : err->status;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* The format that a path asks for: the one of its extension, or `otherwise`. NULL with *err set if
 * that holds something else. */
static const format *format_to_write(const char *path, const char *otherwise, cfx_error *err)
{
    char list[CFX_FILE_FORMAT_LIST_SIZE];
    const cfx_file_format *fallback = cfx_file_format_find(otherwise);
    const format *f = by_path(path);
    if (!f)
        return (const format *)fallback;
    if (f->row.content == fallback->content)
        return f;
    cfx_error_set(err, CFX_E_VALUE, "'%.100s': a %s file holds %s; write %s to %s", path,
                  f->row.extension, cfx_content_words(f->row.content),
                  cfx_content_words(fallback->content),
                  cfx_file_format_list(fallback->content, list));
    return NULL;
}

typedef struct writing {
    const format *format;
    const void *what;
} writing;

static cfx_status write_tensor(const void *ctx, cfx_sink out, cfx_error *err)
{
    const writing *w = ctx;
    return w->format->write_tensor(w->what, out, err);
}

static cfx_status write_tensors(const void *ctx, cfx_sink out, cfx_error *err)
{
    const writing *w = ctx;
    return w->format->write_tensors(w->what, out, err);
}

cfx_status cfx_tensor_save(const cfx_tensor *t, const char *path, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(cfxi_base_expect(t, "tensor", err));
    CFX_TRY(cfxi_base_expect(path, "path", err));
    const writing w = {format_to_write(path, "npy", err), t};
    return w.format ? cfxi_format_file_replace(path, 0, write_tensor, &w, err) : err->status;
}

cfx_status cfx_state_save(const cfx_state *s, const char *path, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    CFX_TRY(cfxi_base_expect(s, "state", err));
    CFX_TRY(cfxi_base_expect(path, "path", err));
    const writing w = {format_to_write(path, "safetensors", err), s};
    return w.format ? cfxi_format_file_replace(path, 0, write_tensors, &w, err) : err->status;
}

/* ---- formats by their names ---------------------------------------------------------------- */

cfx_status cfx_tensor_write_npy(const cfx_tensor *t, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(t, "tensor", err));
    return cfxi_format_npy_write(t, out, err);
}

cfx_status cfx_state_write_npz(const cfx_state *s, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(s, "state", err));
    return cfxi_format_npz_write(s, out, err);
}

cfx_status cfx_state_write_safetensors(const cfx_state *s, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(s, "state", err));
    return cfxi_format_safetensors_write(s, out, err);
}

static cfx_status save_as(const char *name, const void *what, const char *path, cfx_error *err)
{
    const writing w = {(const format *)cfx_file_format_find(name), what};
    return cfxi_format_file_replace(path, 0, w.format->write_tensor ? write_tensor : write_tensors,
                                    &w, err);
}

cfx_status cfx_tensor_save_npy(const cfx_tensor *t, const char *path, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(t, "tensor", err));
    return save_as("npy", t, path, err);
}

cfx_status cfx_state_save_npz(const cfx_state *s, const char *path, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(s, "state", err));
    return save_as("npz", s, path, err);
}

cfx_status cfx_state_save_safetensors(const cfx_state *s, const char *path, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(s, "state", err));
    return save_as("safetensors", s, path, err);
}
