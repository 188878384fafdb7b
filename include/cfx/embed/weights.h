/* For language bindings and back ends; may change between versions.
 *
 * embed/weights.h - tensors in memory and to a sink; .npz files.
 */
#ifndef CFX_EMBED_WEIGHTS_H
#define CFX_EMBED_WEIGHTS_H

#include <cfx/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From bytes in memory, which are copied. Otherwise as cfx_tensor_load_npy and cfx_state_load. */
CFX_API cfx_tensor *cfx_tensor_read_npy(const void *data, size_t size,
                                        const cfx_allocator *allocator, cfx_error *err);
CFX_API cfx_state *cfx_state_read(const void *data, size_t size, const cfx_allocator *allocator,
                                  cfx_error *err);

/* To a sink. Otherwise as cfx_tensor_save_npy and cfx_state_save_safetensors. */
CFX_API cfx_status cfx_tensor_write_npy(const cfx_tensor *t, cfx_sink out, cfx_error *err);
CFX_API cfx_status cfx_state_write_safetensors(const cfx_state *s, cfx_sink out, cfx_error *err);

/* A .npz archive, which NumPy reads: not compressed, elements aligned to 64 bytes.
 * CFX_E_UNSUPPORTED for bfloat16. */
CFX_API cfx_status cfx_state_save_npz(const cfx_state *s, const char *path, cfx_error *err);
CFX_API cfx_status cfx_state_write_npz(const cfx_state *s, cfx_sink out, cfx_error *err);

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
CFX_API const cfx_file_format *cfx_file_format_get(size_t i);
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

/* ---- one format ---------------------------------------------------------------------------- */

/* One tensor of a .npy file, for the caller to release; NULL with *err set, CFX_E_IO if the file
 * cannot be read. */
CFX_API cfx_tensor *cfx_tensor_load_npy(const char *path, const cfx_allocator *allocator,
                                        cfx_error *err);
/* CFX_E_UNSUPPORTED for bfloat16, which NumPy does not have; CFX_E_IO. */
CFX_API cfx_status cfx_tensor_save_npy(const cfx_tensor *t, const char *path, cfx_error *err);
/* Elements are aligned to 64 bytes in the file where sizes allow it. */
CFX_API cfx_status cfx_state_save_safetensors(const cfx_state *s, const char *path, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
