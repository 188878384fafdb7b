/* state.h - the parameters and buffers of a model: tensors by dotted name.
 *
 * weights.h reads and writes them as files. Several threads may read one state at once while no
 * thread changes it.
 */
#ifndef CFX_STATE_H
#define CFX_STATE_H

#include <cfx/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_state cfx_state;

/* An empty state; NULL with CFX_E_NOMEM. The allocator (NULL: malloc) must outlive it. */
CFX_API cfx_state *cfx_state_new(const cfx_allocator *allocator, cfx_error *err);
/* Releases its tensors. NULL is allowed. */
CFX_API void cfx_state_free(cfx_state *s);

/* Adds a tensor, or replaces the tensor of this name. Copies the name and retains the tensor. */
CFX_API cfx_status cfx_state_set(cfx_state *s, const char *name, cfx_tensor *t, cfx_error *err);
/* The tensor of this name: borrowed; NULL if there is none. */
CFX_API cfx_tensor *cfx_state_get(const cfx_state *s, const char *name);

CFX_API size_t cfx_state_size(const cfx_state *s);  /* the number of tensors */
/* The i-th entry, in the order in which names were first set: returns its name, and its tensor
 * through *t (may be NULL). Both are borrowed. */
CFX_API const char *cfx_state_entry(const cfx_state *s, size_t i, cfx_tensor **t);

/* How strictly the names of two states must agree. */
enum {
    CFX_LOAD_STRICT = 0,      /* both have the same names */
    CFX_LOAD_MISSING = 1,     /* names that the source lacks keep their tensors */
    CFX_LOAD_UNEXPECTED = 2   /* names that only the source has are ignored */
};

/* Assigns to each name of `s` the tensor that `from` has under this name: the same tensor,
 * retained, not a copy of its elements. Types and shapes must agree. If anything does not match,
 * nothing changes, and the message of CFX_E_KEY lists every mismatch. `flags` are CFX_LOAD_...
 * or'ed. */
CFX_API cfx_status cfx_state_assign(cfx_state *s, const cfx_state *from, unsigned flags,
                                    cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
