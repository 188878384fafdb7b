/* tensor.h - arrays of numbers: an element type, a shape, strides in bytes, counted memory.
 *
 * A tensor is a view: several can share one storage, which lives as long as the last of them.
 * Tensors are counted; every function that returns one returns a new reference. The count may be
 * changed by several threads at once; sizes and elements, as in any C program, only by one while
 * nobody else reads them.
 *
 * A tensor without storage has a shape and a type only ("abstract"): shapes propagate through a
 * graph as such tensors. Their sizes may be symbols (dim.h); those of other tensors never are.
 *
 * An allocator (NULL: malloc) must outlive all tensors that were made with it, views included.
 */
#ifndef CFX_TENSOR_H
#define CFX_TENSOR_H

#include <cfx/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CFX_MAX_DIMS = 8 };

typedef struct cfx_tensor cfx_tensor;

/* ---- making -------------------------------------------------------------------------------- */

/* Contiguous, aligned to 64 bytes; elements are whatever the memory held. NULL with *err set:
 * CFX_E_SHAPE for a negative size, more than CFX_MAX_DIMS sizes or more bytes than fit, CFX_E_TYPE
 * for an element type without arithmetic (quantized), CFX_E_NOMEM. So do the functions below.
 * `sizes` may be NULL if `ndim` is 0: one element. */
CFX_API cfx_tensor *cfx_tensor_new(cfx_dtype dtype, const int64_t *sizes, size_t ndim,
                                   const cfx_allocator *allocator, cfx_error *err);

/* Over memory of the caller's: `data` is the first element, `strides` (bytes, may be negative;
 * NULL: contiguous) must stay within what the caller has. `release` (may be NULL) is called with
 * `ctx` once the last tensor that shares it is gone; if this fails it is not called. */
CFX_API cfx_tensor *cfx_tensor_from_memory(cfx_dtype dtype, const int64_t *sizes,
                                           const int64_t *strides, size_t ndim, void *data,
                                           bool read_only, void (*release)(void *ctx), void *ctx,
                                           const cfx_allocator *allocator, cfx_error *err);

/* Shares the storage of `base`, which may be released before it: the first element is `offset`
 * bytes after the first of `base`. CFX_E_SHAPE if an element would lie outside the storage. A view
 * of an abstract tensor is abstract. */
CFX_API cfx_tensor *cfx_tensor_view(cfx_tensor *base, cfx_dtype dtype, const int64_t *sizes,
                                    const int64_t *strides, size_t ndim, int64_t offset,
                                    cfx_error *err);

CFX_API cfx_tensor *cfx_tensor_retain(cfx_tensor *t);   /* returns `t`; NULL is allowed */
CFX_API void cfx_tensor_release(cfx_tensor *t);          /* NULL is allowed */

/* ---- reading ------------------------------------------------------------------------------- */

/* These cannot fail, and want a tensor. */
CFX_API cfx_dtype cfx_tensor_dtype(const cfx_tensor *t);
CFX_API size_t cfx_tensor_ndim(const cfx_tensor *t);
CFX_API const int64_t *cfx_tensor_sizes(const cfx_tensor *t);     /* borrowed; ndim of them */
CFX_API const int64_t *cfx_tensor_strides(const cfx_tensor *t);   /* in bytes */
CFX_API int64_t cfx_tensor_numel(const cfx_tensor *t);            /* if no size is a symbol */
CFX_API void *cfx_tensor_data(const cfx_tensor *t);               /* NULL if it is abstract */
CFX_API bool cfx_tensor_is_abstract(const cfx_tensor *t);
CFX_API bool cfx_tensor_is_read_only(const cfx_tensor *t);
CFX_API bool cfx_tensor_is_contiguous(const cfx_tensor *t);       /* row-major and dense */

/* Writes what torch.Tensor's repr shows: "tensor([[1., 2.]])", with "..." for the middle of large
 * ones; "tensor(..., size=(2, 3))" if it is abstract. (print.c) */
CFX_API cfx_status cfx_tensor_print(const cfx_tensor *t, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
