/* For language bindings and back ends; may change between versions.
 *
 * embed/weights.h - reads tensors from memory, writes them to a sink; .npz files; the table of
 * formats.
 */
#ifndef CFX_EMBED_WEIGHTS_H
#define CFX_EMBED_WEIGHTS_H

#include <cfx/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Read from bytes in memory, which are copied. Otherwise like cfx_tensor_load_npy and
 * cfx_state_load. */
CFX_API cfx_tensor *cfx_tensor_read_npy(const void *data, size_t size,
                                        const cfx_allocator *allocator, cfx_error *err);
CFX_API cfx_state *cfx_state_read(const void *data, size_t size, const cfx_allocator *allocator,
                                  cfx_error *err);

/* Write to a sink. Otherwise like cfx_tensor_save_npy and cfx_state_save_safetensors. */
CFX_API cfx_status cfx_tensor_write_npy(const cfx_tensor *t, cfx_sink out, cfx_error *err);
CFX_API cfx_status cfx_state_write_safetensors(const cfx_state *s, cfx_sink out, cfx_error *err);

/* Write a .npz archive for NumPy: uncompressed, with elements aligned to 64 bytes.
 * CFX_E_UNSUPPORTED for bfloat16. */
CFX_API cfx_status cfx_state_save_npz(const cfx_state *s, const char *path, cfx_error *err);
CFX_API cfx_status cfx_state_write_npz(const cfx_state *s, cfx_sink out, cfx_error *err);

/* ---- formats ------------------------------------------------------------------------------- */

/* What a file holds. */
typedef enum cfx_content {
    CFX_CONTENT_GRAPH,
    CFX_CONTENT_TENSOR,
    CFX_CONTENT_TENSORS,
    CFX_CONTENT_MODEL
} cfx_content;

/* A row of the table of file formats. */
typedef struct cfx_file_format {
    const char *name;       /* "npy" */
    const char *extension;  /* ".npy" */
    const char *summary;
    cfx_content content;
} cfx_file_format;

/* The table, in alphabetical order; NULL past the end. */
CFX_API const cfx_file_format *cfx_file_format_get(size_t i);
/* NULL if there is no format of this name. */
CFX_API const cfx_file_format *cfx_file_format_find(const char *name);
/* The format of a path, by its extension, and of data, by its first bytes; NULL if it is not in the
 * table. */
CFX_API const cfx_file_format *cfx_file_format_of_path(const char *path);
CFX_API const cfx_file_format *cfx_file_format_of_data(const void *data, size_t size);
/* "a graph", "one tensor", "named tensors", "a model". */
CFX_API const char *cfx_content_words(cfx_content content);
/* The extensions of the formats with this content, for messages: ".npz or .safetensors". Returns
 * `out`. */
enum { CFX_FILE_FORMAT_LIST_SIZE = 200 };
CFX_API const char *cfx_file_format_list(cfx_content content, char out[CFX_FILE_FORMAT_LIST_SIZE]);

/* ---- one format ---------------------------------------------------------------------------- */

/* Loads the tensor of a .npy file; the caller releases it. NULL with *err set: CFX_E_IO if the file
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
