/* tensor.h - tensors: an element type, a shape, strides in bytes, reference-counted storage.
 *
 * A tensor is a view of its storage. Several tensors can share one storage, which lives as long as
 * the last of them. Tensors are reference-counted; every function that returns one returns a new
 * reference. The count is thread-safe. Sizes and elements are not: while one thread changes them,
 * no other thread may read them.
 *
 * A tensor without storage is *abstract*: it has only a shape and a type. Shapes propagate through
 * a graph as abstract tensors. Only their sizes may be symbolic (dim.h).
 *
 * An allocator (NULL: malloc) must outlive all tensors that were created with it, including views.
 */
#ifndef CFX_TENSOR_H
#define CFX_TENSOR_H

#include <cfx/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CFX_MAX_DIMS = 8 };

typedef struct cfx_tensor cfx_tensor;

/* ---- creating ------------------------------------------------------------------------------- */

/* A contiguous tensor, aligned to 64 bytes, with uninitialised elements. NULL with *err set:
 * CFX_E_SHAPE for a negative size, more than CFX_MAX_DIMS sizes or a byte count that overflows;
 * CFX_E_TYPE for an element type without arithmetic (quantized); CFX_E_NOMEM. The functions below
 * fail in the same way. `sizes` may be NULL if `ndim` is 0, which means one element. */
CFX_API cfx_tensor *cfx_tensor_new(cfx_dtype dtype, const int64_t *sizes, size_t ndim,
                                   const cfx_allocator *allocator, cfx_error *err);

/* A tensor over the caller's memory. `data` is the first element; `strides` (in bytes, may be
 * negative; NULL: contiguous) must stay within that memory. `release` (may be NULL) is called with
 * `ctx` when the last tensor that shares the memory is freed, but not if this function fails. */
CFX_API cfx_tensor *cfx_tensor_from_memory(cfx_dtype dtype, const int64_t *sizes,
                                           const int64_t *strides, size_t ndim, void *data,
                                           bool read_only, void (*release)(void *ctx), void *ctx,
                                           const cfx_allocator *allocator, cfx_error *err);

/* A view that shares the storage of `base`, which may be released before the view. Its first
 * element is `offset` bytes after the first element of `base`. CFX_E_SHAPE if an element would lie
 * outside the storage. A view of an abstract tensor is abstract. */
CFX_API cfx_tensor *cfx_tensor_view(cfx_tensor *base, cfx_dtype dtype, const int64_t *sizes,
                                    const int64_t *strides, size_t ndim, int64_t offset,
                                    cfx_error *err);

CFX_API cfx_tensor *cfx_tensor_retain(cfx_tensor *t);   /* returns `t`; NULL is allowed */
CFX_API void cfx_tensor_release(cfx_tensor *t);          /* NULL is allowed */

/* ---- reading ------------------------------------------------------------------------------- */

/* These cannot fail. `t` must not be NULL. */
CFX_API cfx_dtype cfx_tensor_dtype(const cfx_tensor *t);
CFX_API size_t cfx_tensor_ndim(const cfx_tensor *t);
CFX_API const int64_t *cfx_tensor_sizes(const cfx_tensor *t);     /* borrowed; ndim of them */
CFX_API const int64_t *cfx_tensor_strides(const cfx_tensor *t);   /* in bytes */
CFX_API int64_t cfx_tensor_numel(const cfx_tensor *t);            /* no size may be symbolic */
CFX_API void *cfx_tensor_data(const cfx_tensor *t);               /* NULL if it is abstract */
CFX_API bool cfx_tensor_is_abstract(const cfx_tensor *t);
CFX_API bool cfx_tensor_is_read_only(const cfx_tensor *t);
CFX_API bool cfx_tensor_is_contiguous(const cfx_tensor *t);       /* row-major and dense */

/* Writes what torch.Tensor's repr shows: "tensor([[1., 2.]])", with "..." for the middle of large
 * tensors; "tensor(..., size=(2, 3))" if it is abstract. */
CFX_API cfx_status cfx_tensor_print(const cfx_tensor *t, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
