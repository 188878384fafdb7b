/* rules_impl.h - what the rules of several families share: arithmetic on sizes, windows that move
 * over images, types and ranges of quantized tensors. */
#ifndef CFXI_IMPORT_RULES_IMPL_H
#define CFXI_IMPORT_RULES_IMPL_H

#include "import_impl.h"

#include <cfx/embed/tensor.h>

/* ---- numbers (import_numbers.c) ------------------------------------------------------------ */

/* Arithmetic on sizes: constants are computed at once, others become nodes. `over` divides by a
 * positive number and rounds down. */
cfx_var cfxi_import_plus(cfx_scope *s, cfx_var a, cfx_var b);
cfx_var cfxi_import_minus(cfx_scope *s, cfx_var a, cfx_var b);
cfx_var cfxi_import_times(cfx_scope *s, cfx_var a, cfx_var b);
cfx_var cfxi_import_over(cfx_scope *s, cfx_var a, cfx_var b);
cfx_var cfxi_import_larger(cfx_scope *s, cfx_var a, cfx_var b);
cfx_var cfxi_import_smaller(cfx_scope *s, cfx_var a, cfx_var b);

/* The size of a dimension of any variable: a number if it is known. */
cfx_var cfxi_import_dim_of(cfx_scope *s, cfx_var v, int dim);
/* A tuple of n variables. */
cfx_var cfxi_import_tuple(cfx_scope *s, const cfx_var *items, size_t n);
/* Whether input i has no elements: how the resizing operators leave an input out. */
bool cfxi_import_is_empty(cfxi_import_call *c, size_t i);
/* The integers of input i, which has one dimension of known size, or none: numbers, or items of the
 * tensor. How many; -1, and the scope fails, if that is not known or more than `most`. */
int cfxi_import_each_int(cfxi_import_call *c, size_t i, cfx_var *out, int most);
/* Input i as a list of floats: known ones, or items of the tensor. It must have one dimension of
 * known size. */
cfx_var cfxi_import_floats_of(cfxi_import_call *c, size_t i);
/* Pads the last n dimensions with a value: `before` and `after` of each; `x` itself if all are
 * 0. */
cfx_var cfxi_import_pad_ends(cfx_scope *s, cfx_var x, const cfx_var *before, const cfx_var *after,
                             int n, cfx_var value);
/* `x` in float32 if it has 16 bits, else itself. */
cfx_var cfxi_import_widened(cfx_scope *s, cfx_var x);
/* `x` in another type; itself if it has that, or `dtype` is CFX_DTYPE_COUNT. */
cfx_var cfxi_import_cast_to(cfx_scope *s, cfx_var x, cfx_dtype dtype);
/* Reshapes one dimension of values to dimension `axis` of `rank`: [n] becomes [1, n, 1, 1]. */
cfx_var cfxi_import_along(cfx_scope *s, cfx_var x, int axis, int rank);

/* ---- shapes (import_shape.c) --------------------------------------------------------------- */

/* `x`, of the rank of input 0, without these dimensions of size 1; sorts the axes. One call for
 * each: aten.squeeze.dim takes no tuple. */
cfx_var cfxi_import_squeezed(cfxi_import_call *c, cfx_var x, cfx_var *axes, int n);

/* ---- windows (import_window.c) ------------------------------------------------------------- */

/* A window that moves over the last n dimensions of input 0. */
typedef struct cfxi_window {
    int n;
    int64_t kernel[CFX_MAX_DIMS];
    int64_t stride[CFX_MAX_DIMS];
    int64_t dilation[CFX_MAX_DIMS];
    cfx_var before[CFX_MAX_DIMS];  /* what is padded */
    cfx_var after[CFX_MAX_DIMS];
} cfxi_window;

/* Reads kernel_shape (or the sizes of the weight, input `weight`), strides, dilations, pads and
 * auto_pad. False, and the scope fails, if they do not fit. */
bool cfxi_import_window(cfxi_import_call *c, int weight, cfxi_window *w);
/* The part of dimension i that the window covers at one place. */
int64_t cfxi_import_reach(const cfxi_window *w, int i);
/* Whether the padding is constant and the same on both sides. */
bool cfxi_import_is_symmetric(const cfxi_window *w);
/* One of its lists as a variable; `before` must be constant. */
cfx_var cfxi_import_window_ints(cfx_scope *s, const cfxi_window *w, const int64_t *list);
cfx_var cfxi_import_window_padding(cfx_scope *s, const cfxi_window *w);
/* Input 0, or `x`, padded with zeros where the window wants that and the row cannot: the window has
 * none afterwards, unless it is the same on both sides. */
cfx_var cfxi_import_padded(cfx_scope *s, cfx_var x, cfxi_window *w);
/* The convolution of x and a weight of n + 2 dimensions. */
cfx_var cfxi_import_convolve(cfxi_import_call *c, cfx_var x, cfx_var weight, cfx_var bias,
                             cfxi_window *w);

/* ---- quantized tensors (import_quantize.c) ------------------------------------------------- */

/* `x`, a float tensor, rounded and limited to a type of ONNX, with the zero point (EMPTY: 0)
 * added. */
cfx_var cfxi_import_saturate(cfxi_import_call *c, cfx_var x, cfx_var zero, int64_t type);

#endif
