/* spatial.h - what convolution, pooling, normalisation and resizing share: images of up to three
 * dimensions, and the types they are computed in. */
#ifndef CFXI_SPATIAL_H
#define CFXI_SPATIAL_H

#include "runtime_impl.h"

enum { CFXI_SPATIAL = 3 };

/* ---- types --------------------------------------------------------------------------------- */

/* What elements are computed in: float32 for floats of 16 bits, int64 for integers and bool,
 * complex128. */
cfx_dtype cfxi_rt_compute_dtype(cfx_dtype dtype);
/* `t` itself (retained) if it is of that type, with strides of whole elements, else a contiguous
 * copy; NULL with c->err set. NULL for NULL. */
cfx_tensor *cfxi_rt_typed(cfxi_call *c, const cfx_tensor *t, cfx_dtype dtype);
/* A tensor to compute result i in: the result itself if it has this type (and is contiguous, if
 * that is asked for), else a contiguous temporary. cfxi_rt_work_done releases it, after the
 * elements went where they belong unless `status` is a failure, and returns that or its own
 * status. */
cfx_tensor *cfxi_rt_work(cfxi_call *c, size_t i, cfx_dtype dtype, bool contiguous);
cfx_status cfxi_rt_work_done(cfxi_call *c, size_t i, cfx_tensor *work, cfx_status status);

/* ---- layout -------------------------------------------------------------------------------- */

/* Whether PyTorch takes the tensor for NHWC (NDHWC): those strides, and not the ordinary ones. */
bool cfxi_rt_prefers_channels_last(const cfx_tensor *t);
/* The bytes from row to row, if a tensor is a list of rows, each with its dimension `dim` side by
 * side, and the other dimensions are as if they were one: with or without gaps between rows. 0 if
 * it is none. One row is as long as it is. */
int64_t cfxi_rt_row_step(const cfx_tensor *t, size_t dim);
/* In a rule: gives result i NHWC (NDHWC) strides. */
void cfxi_rt_result_channels_last(cfxi_call *c, size_t i);

/* ---- windows ------------------------------------------------------------------------------- */

/* No window, step, padding or distance is larger, so that kernels can multiply two of them and add
 * some more without a check. PyTorch's pooling has the same limit. */
#define CFXI_WINDOW_MOST INT32_MAX

/* An int[] of `n` numbers (one stands for all; none for `otherwise`) into the last n of out[3]; the
 * others become `fill`. `name` is for the message. CFX_E_SHAPE if a number that is known is beyond
 * CFXI_WINDOW_MOST, in either direction. */
cfx_status cfxi_rt_window_ints(cfxi_call *c, size_t i, size_t n, int64_t fill,
                               const int64_t *otherwise, const char *name,
                               int64_t out[CFXI_SPATIAL]);

/* "[2, 4, 8, 8]" for messages; symbols are "?". */
typedef struct cfxi_shape_text { char text[120]; } cfxi_shape_text;
cfxi_shape_text cfxi_rt_shape_of(const cfx_tensor *t);
cfxi_shape_text cfxi_rt_shape_ints(const int64_t *sizes, size_t n, const char *between);

/* ---- places (position_lists.c) ------------------------------------------------------------- */

/* Lists for result 0, one number for each size of it: the places of the argument that it takes
 * along a dimension. Returns the scratch memory they lie in, or NULL. */
int64_t *cfxi_rt_places_new(cfxi_call *c, int64_t *map[CFX_MAX_DIMS]);
/* y[i, j, ...] = x[map[0][i], map[1][j], ...], or `value` (one element) where one of them is -1.
 * Both are of one type, y is dense and not empty. */
void cfxi_rt_places_take(cfx_runtime *rt, cfx_tensor *y, const cfx_tensor *x,
                            int64_t *const map[CFX_MAX_DIMS], const char *value);

#endif
