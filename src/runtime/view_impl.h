/* view_impl.h - views: other sizes and strides over the memory of a tensor.
 *
 * A view is described step by step (a slice here, a dimension removed there) and then made a result
 * or a tensor of its own. Sizes may be symbols; strides and the offset mean something only where
 * the tensor has memory.
 */
#ifndef CFXI_VIEW_IMPL_H
#define CFXI_VIEW_IMPL_H

#include "runtime_impl.h"

typedef struct cfxi_view {
    cfx_dtype dtype;
    size_t ndim;
    int64_t size[CFX_MAX_DIMS];
    int64_t stride[CFX_MAX_DIMS];  /* in bytes */
    int64_t offset;                /* in bytes, from the first element of the tensor */
} cfxi_view;

/* All of `t`. */
cfxi_view cfxi_rt_view_of(const cfx_tensor *t);

/* Result i is this view of `base`: abstract if only the rule is asked or `base` is. For rules: a
 * view looks at no element, so such rows are BY_RULE. */
cfx_status cfxi_rt_view_result(cfxi_call *c, size_t i, const cfx_tensor *base, const cfxi_view *v);
/* The view as a tensor; NULL with c->err set. */
cfx_tensor *cfxi_rt_view_tensor(cfxi_call *c, const cfx_tensor *base, const cfxi_view *v);

/* The same on the caller's stack, for as long as `base` lives: neither retained nor released. */
void cfxi_rt_view_borrow(cfx_tensor *t, const cfx_tensor *base, const cfxi_view *v);

/* Removes dimension `at`; puts one before it (CFX_E_SHAPE if there are CFX_MAX_DIMS already). */
void cfxi_rt_view_remove(cfxi_view *v, size_t at);
cfx_status cfxi_rt_view_insert(cfxi_call *c, cfxi_view *v, size_t at, int64_t size, int64_t stride);
void cfxi_rt_view_swap(cfxi_view *v, size_t a, size_t b);
/* Along two dimensions; the diagonal is the new last one. */
cfx_status cfxi_rt_view_diagonal(cfxi_call *c, cfxi_view *v, int64_t offset, int64_t dim1,
                                     int64_t dim2);
/* By the arguments size, stride, storage_offset from number `first`. */
cfx_status cfxi_rt_view_strided(cfxi_call *c, const cfx_tensor *x, size_t first, cfxi_view *v);
/* The index-th along `dim`, which disappears. */
cfx_status cfxi_rt_view_select(cfxi_call *c, cfxi_view *v, size_t dim, int64_t index);
/* Bounds as Python's slices have them, cut to the size; `step` is positive. */
cfx_status cfxi_rt_view_slice(cfxi_call *c, cfxi_view *v, size_t dim, int64_t start, int64_t end,
                              int64_t step);
/* `sizes` with -1 where a dimension keeps its own. */
cfx_status cfxi_rt_view_expand(cfxi_call *c, cfxi_view *v, const int64_t *sizes, size_t n);
/* The other sizes over the same elements in the same order: false if no strides do that. */
bool cfxi_rt_view_reshape(cfxi_view *v, const int64_t *sizes, size_t n);

/* Replaces the -1 among `sizes` (at most one) so that they hold as many elements as `v`;
 * CFX_E_SHAPE in PyTorch's words if they cannot. */
cfx_status cfxi_rt_infer_sizes(cfxi_call *c, const cfxi_view *v, int64_t *sizes, size_t n);

/* The product of the sizes of `t`, which may be symbols. */
int64_t cfxi_rt_numel_dim(cfxi_call *c, const int64_t *sizes, size_t ndim);
/* An INT that may be a symbol. */
cfx_datum cfxi_rt_size_datum(int64_t size);
/* An INT as an index or a bound of a slice. A number as small as symbols are would be taken for
 * one: it is outside of every size, as any other that small. */
static inline int64_t cfxi_rt_index_of(cfx_datum number)
{
    return !number.symbolic && number.as.i <= CFX_DIM_UNKNOWN ? CFX_DIM_UNKNOWN + 1 : number.as.i;
}
/* Product and sum that wrap around: strides of views that nobody will read. */
static inline int64_t cfxi_rt_wrap_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Fails as PyTorch does for a `memory_format` that a tensor of `ndim` cannot have. Gives the format
 * that argument i names, or PRESERVE for None. */
cfx_status cfxi_rt_memory_format(cfxi_call *c, size_t i, size_t ndim,
                                          cfx_memory_format *out);
/* Result i has the sizes of `t` in this format (PRESERVE: its own, as cfxi_rt_result_like). */
cfx_status cfxi_rt_result_format(cfxi_call *c, size_t i, cfx_dtype dtype,
                                          const cfx_tensor *t, cfx_memory_format format);
/* Dense strides with the channels (dimension 1) innermost, for 4 or 5 dimensions. */
void cfxi_rt_channels_last_strides(cfx_tensor *t);

/* Fails unless argument i is None or names the CPU: cfx computes nowhere else. */
cfx_status cfxi_rt_check_device(cfxi_call *c, size_t i);

/* Writes "[2, 3]" for messages. */
enum { CFXI_SIZES_TEXT = 96 };
const char *cfxi_rt_sizes_text(const int64_t *sizes, size_t n, char out[CFXI_SIZES_TEXT]);

#endif
