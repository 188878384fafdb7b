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

#ifdef __cplusplus
}
#endif
#endif
