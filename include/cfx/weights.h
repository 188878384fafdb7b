/* weights.h - tensors in files: .safetensors, .npy, .npz, ... (`cfx formats` lists them).
 *
 *     cfx_state *weights = cfx_weights_load("model.safetensors", NULL, &err);
 *     cfx_state_take(parameters, weights, CFX_TAKE_STRICT, &err);
 *
 * Loading maps the file: tensors point into it where they can (their elements lie aligned, in this
 * machine's byte order) and keep the map alive. What is written to them stays in memory; the file
 * never changes, but must not be made shorter while it is mapped. Nothing in a file is trusted:
 * one that is damaged gives CFX_E_VALUE with what is wrong and where, one that holds what cfx has
 * no tensors for (structured types, objects, deflated archives) CFX_E_UNSUPPORTED.
 *
 * Saving writes a new file beside the old one and then replaces it, so that nobody ever sees half a
 * file. The same tensors give the same bytes.
 */
#ifndef CFX_WEIGHTS_H
#define CFX_WEIGHTS_H

#include <cfx/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- formats ------------------------------------------------------------------------------- */

/* What a file holds. */
typedef enum cfx_content { CFX_CONTENT_GRAPH, CFX_CONTENT_TENSOR, CFX_CONTENT_TENSORS } cfx_content;

/* A row of the table of file formats. */
typedef struct cfx_file_format {
    const char *name;       /* "npy" */
    const char *extension;  /* ".npy" */
    const char *summary;
    cfx_content content;
} cfx_file_format;

/* The table, in alphabetical order; NULL past the end. */
CFX_API const cfx_file_format *cfx_file_format_at(size_t i);
/* NULL if there is none of that name. */
CFX_API const cfx_file_format *cfx_file_format_find(const char *name);
/* By the extension of a path, and by what the data begins with; NULL if that is none of the
 * table's. */
CFX_API const cfx_file_format *cfx_file_format_of_path(const char *path);
CFX_API const cfx_file_format *cfx_file_format_of_data(const void *data, size_t size);
/* "a graph", "one tensor", "named tensors". */
CFX_API const char *cfx_content_words(cfx_content content);
/* The extensions of the formats that hold this, for messages: ".npz or .safetensors". Returns
 * `out`. */
enum { CFX_FILE_FORMAT_LIST_SIZE = 200 };
CFX_API const char *cfx_file_format_list(cfx_content content, char out[CFX_FILE_FORMAT_LIST_SIZE]);

/* ---- one tensor ---------------------------------------------------------------------------- */

/* In any format that holds one tensor, by what the file holds. The caller's to release. NULL with
 * *err set: CFX_E_IO if the file cannot be read, CFX_E_VALUE if it is in none of these formats. */
CFX_API cfx_tensor *cfx_tensor_load(const char *path, const cfx_allocator *allocator,
                                    cfx_error *err);
/* In the format of the path's extension; .npy if that is none of the table's. CFX_E_VALUE if the
 * extension is that of a format that holds something else. */
CFX_API cfx_status cfx_tensor_save(const cfx_tensor *t, const char *path, cfx_error *err);

/* ---- one tensor: .npy ---------------------------------------------------------------------- */

/* The caller's to release; NULL with *err set, CFX_E_IO if the file cannot be read. */
CFX_API cfx_tensor *cfx_npy_load(const char *path, const cfx_allocator *allocator, cfx_error *err);
/* Of bytes in memory, which are copied. */
CFX_API cfx_tensor *cfx_npy_read(const void *data, size_t size, const cfx_allocator *allocator,
                                 cfx_error *err);
CFX_API cfx_status cfx_npy_save(const cfx_tensor *t, const char *path, cfx_error *err);
/* CFX_E_UNSUPPORTED for bfloat16, which NumPy does not know. */
CFX_API cfx_status cfx_npy_write(const cfx_tensor *t, cfx_sink out, cfx_error *err);

/* ---- named tensors ------------------------------------------------------------------------- */

/* By what the file holds, whatever its name is. In the order of the file. The caller's to free; the
 * tensors outlive it if they are retained. */
CFX_API cfx_state *cfx_weights_load(const char *path, const cfx_allocator *allocator,
                                    cfx_error *err);
CFX_API cfx_state *cfx_weights_read(const void *data, size_t size, const cfx_allocator *allocator,
                                    cfx_error *err);

/* In the format of the path's extension; .safetensors if that is none of the table's. CFX_E_VALUE
 * if the extension is that of a format that holds something else. */
CFX_API cfx_status cfx_weights_save(const cfx_state *s, const char *path, cfx_error *err);

/* ---- named tensors: .safetensors, .npz ----------------------------------------------------- */

/* Elements are aligned to 64 bytes from the file's beginning where sizes allow it. */
CFX_API cfx_status cfx_safetensors_save(const cfx_state *s, const char *path, cfx_error *err);
CFX_API cfx_status cfx_safetensors_write(const cfx_state *s, cfx_sink out, cfx_error *err);

/* A .npz archive, which NumPy reads: not compressed, elements aligned to 64 bytes.
 * CFX_E_UNSUPPORTED for bfloat16. */
CFX_API cfx_status cfx_npz_save(const cfx_state *s, const char *path, cfx_error *err);
CFX_API cfx_status cfx_npz_write(const cfx_state *s, cfx_sink out, cfx_error *err);

/* ---- by name ------------------------------------------------------------------------------- */

enum {
    CFX_TAKE_STRICT = 0,       /* both have the same names */
    CFX_TAKE_MISSING = 1,      /* names that `from` lacks keep their tensors */
    CFX_TAKE_UNEXPECTED = 2    /* names that only `from` has are ignored */
};

/* Gives each name of `s` the tensor that `from` has under it: the same one, retained, not a copy of
 * its elements. Types and shapes must be the same. If anything does not fit, it is CFX_E_KEY,
 * nothing changes, and the message lists all of it. */
CFX_API cfx_status cfx_state_take(cfx_state *s, const cfx_state *from, unsigned flags,
                                  cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
