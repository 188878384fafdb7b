/* weights.h - tensors in files: .safetensors, .npy, .npz, ... (`cfx formats` lists them).
 *
 *     cfx_state *weights = cfx_state_load("model.safetensors", NULL, &err);
 *     cfx_state_assign(parameters, weights, CFX_LOAD_STRICT, &err);
 *
 * Loading maps the file. Tensors point into it where they can (aligned elements in this machine's
 * byte order), and keep the map alive. Writing to such a tensor changes memory only, never the
 * file; the file must not be truncated while it is mapped. Nothing in a file is trusted: a damaged
 * one gives CFX_E_VALUE with what is wrong and where; what cfx has no tensors for (structured
 * types, objects, compressed archives) gives CFX_E_UNSUPPORTED.
 *
 * Saving writes a new file next to the old one and then replaces it, so nobody ever sees half a
 * file. The same tensors give the same bytes.
 */
#ifndef CFX_WEIGHTS_H
#define CFX_WEIGHTS_H

#include <cfx/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One tensor of a file in any format that holds one, by what the file contains. For the caller to
 * release; NULL with *err set: CFX_E_IO if the file cannot be read, CFX_E_VALUE if it is in none of
 * these formats. */
CFX_API cfx_tensor *cfx_tensor_load(const char *path, const cfx_allocator *allocator,
                                    cfx_error *err);
/* Writes a file in the format of the path's extension; .npy if that is none of the table's.
 * CFX_E_VALUE if the extension is that of a format that holds something else. */
CFX_API cfx_status cfx_tensor_save(const cfx_tensor *t, const char *path, cfx_error *err);

/* All tensors of a .safetensors or .npz file, in the order of the file. The contents decide which
 * format it is, not the name. For the caller to free; tensors that are retained outlive it. NULL
 * with *err set. */
CFX_API cfx_state *cfx_state_load(const char *path, const cfx_allocator *allocator, cfx_error *err);
/* Writes a file in the format of the path's extension; .safetensors if that is none of the table's.
 * CFX_E_VALUE if the extension is that of a format that holds something else. */
CFX_API cfx_status cfx_state_save(const cfx_state *s, const char *path, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
