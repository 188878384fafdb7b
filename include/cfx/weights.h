/* weights.h - loads and saves tensors: .safetensors, .npy, .npz, ... (`cfx formats` lists them).
 *
 *     cfx_state *weights = cfx_state_load("model.safetensors", NULL, &err);
 *     cfx_state_assign(parameters, weights, CFX_LOAD_STRICT, &err);
 *
 * Loading maps the file. Where possible (aligned elements in the machine's byte order), tensors
 * point into the mapping and keep it alive. Writing to such a tensor changes memory only, never the
 * file; the file must not be truncated while it is mapped. File contents are not trusted: a damaged
 * file gives CFX_E_VALUE with what is wrong and where. Contents that cfx tensors cannot represent
 * (structured types, objects, compressed archives) give CFX_E_UNSUPPORTED.
 *
 * Saving writes a new file next to the old one and then replaces it, so no reader ever sees a
 * partial file. The same tensors give the same bytes.
 */
#ifndef CFX_WEIGHTS_H
#define CFX_WEIGHTS_H

#include <cfx/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the tensor of a file in any single-tensor format, which is detected from the contents. The
 * caller releases it. NULL with *err set: CFX_E_IO if the file cannot be read, CFX_E_VALUE if it is
 * in none of these formats. */
CFX_API cfx_tensor *cfx_tensor_load(const char *path, const cfx_allocator *allocator,
                                    cfx_error *err);
/* Saves a tensor in the format of the path's extension, or as .npy if the extension is unknown.
 * CFX_E_VALUE if the extension belongs to a format that does not hold a single tensor. */
CFX_API cfx_status cfx_tensor_save(const cfx_tensor *t, const char *path, cfx_error *err);

/* Loads all tensors of a .safetensors or .npz file, in file order. The format is detected from the
 * contents, not from the name. The caller frees the state; retained tensors outlive it. NULL with
 * *err set. */
CFX_API cfx_state *cfx_state_load(const char *path, const cfx_allocator *allocator, cfx_error *err);
/* Saves a state in the format of the path's extension, or as .safetensors if the extension is
 * unknown. CFX_E_VALUE if the extension belongs to a format that does not hold named tensors. */
CFX_API cfx_status cfx_state_save(const cfx_state *s, const char *path, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
