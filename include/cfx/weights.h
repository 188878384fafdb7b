/* weights.h - tensors in files: .safetensors, .npy, .npz.
 *
 *     cfx_state *weights = cfx_state_load("model.safetensors", NULL, &err);
 *     cfx_state_assign(parameters, weights, CFX_LOAD_STRICT, &err);
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

/* ---- one tensor: .npy ---------------------------------------------------------------------- */

/* The caller's to release; NULL with *err set, CFX_E_IO if the file cannot be read. */
CFX_API cfx_tensor *cfx_tensor_load_npy(const char *path, const cfx_allocator *allocator,
                                        cfx_error *err);
/* Of bytes in memory, which are copied. */
CFX_API cfx_tensor *cfx_tensor_read_npy(const void *data, size_t size,
                                        const cfx_allocator *allocator, cfx_error *err);
CFX_API cfx_status cfx_tensor_save_npy(const cfx_tensor *t, const char *path, cfx_error *err);
/* CFX_E_UNSUPPORTED for bfloat16, which NumPy does not know. */
CFX_API cfx_status cfx_tensor_write_npy(const cfx_tensor *t, cfx_sink out, cfx_error *err);

/* ---- named tensors: .safetensors, .npz ----------------------------------------------------- */

/* By what the file holds, whatever its name is. In the order of the file. The caller's to free; the
 * tensors outlive it if they are retained. */
CFX_API cfx_state *cfx_state_load(const char *path, const cfx_allocator *allocator,
                                  cfx_error *err);
CFX_API cfx_state *cfx_state_read(const void *data, size_t size, const cfx_allocator *allocator,
                                  cfx_error *err);

/* Elements are aligned to 64 bytes from the file's beginning where sizes allow it. */
CFX_API cfx_status cfx_state_save_safetensors(const cfx_state *s, const char *path, cfx_error *err);
CFX_API cfx_status cfx_state_write_safetensors(const cfx_state *s, cfx_sink out, cfx_error *err);

/* A .npz archive, which NumPy reads: not compressed, elements aligned to 64 bytes.
 * CFX_E_UNSUPPORTED for bfloat16. */
CFX_API cfx_status cfx_state_save_npz(const cfx_state *s, const char *path, cfx_error *err);
CFX_API cfx_status cfx_state_write_npz(const cfx_state *s, cfx_sink out, cfx_error *err);

/* ---- by name ------------------------------------------------------------------------------- */

enum {
    CFX_LOAD_STRICT = 0,       /* both have the same names */
    CFX_LOAD_MISSING = 1,      /* names that `from` lacks keep their tensors */
    CFX_LOAD_UNEXPECTED = 2    /* names that only `from` has are ignored */
};

/* Gives each name of `s` the tensor that `from` has under it: the same one, retained, not a copy of
 * its elements. Types and shapes must be the same. If anything does not fit, it is CFX_E_KEY,
 * nothing changes, and the message lists all of it. */
CFX_API cfx_status cfx_state_assign(cfx_state *s, const cfx_state *from, unsigned flags,
                                    cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
