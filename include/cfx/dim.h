/* dim.h - sizes that are not known yet: N, N + 1, 2*N, (N - 3)//2 + 1.
 *
 * A size is an int64_t: a number, or a symbol of a cfx_dims, which holds the expressions. Equal
 * expressions are one symbol: expressions are kept in a normal form (sums of products), so
 * comparing two sizes is comparing two integers. Where an operator's rule asks what cannot be known
 * (is N the same as M?), the answer is the one that lets it go on, and the assumption is written
 * down.
 */
#ifndef CFX_DIM_H
#define CFX_DIM_H

#include <cfx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_dims cfx_dims;

/* A size that nobody knows before computing: how many elements are not zero. No number that occurs
 * (-1 is one: sizes are subtracted from each other). */
#define CFX_DIM_UNKNOWN (INT64_MIN / 2)

static inline bool cfx_dim_is_symbol(int64_t d) { return d < INT64_MIN / 2; }

/* One thread at a time uses it. Tensors whose sizes are symbols may outlive it, but only it knows
 * what the symbols mean. */
CFX_API cfx_dims *cfx_dims_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_dims_free(cfx_dims *dims);  /* NULL is allowed */

/* The symbol of this name, at least `min`: a batch is 2 or more unless one says otherwise (sizes 0
 * and 1 behave differently: they broadcast, and empty). CFX_DIM_UNKNOWN with *err set if memory is
 * out; so do the functions below. */
CFX_API int64_t cfx_dims_symbol(cfx_dims *dims, const char *name, int64_t min, cfx_error *err);
/* A new symbol "u0", "u1", ... that may be 0. */
CFX_API int64_t cfx_dims_fresh(cfx_dims *dims, cfx_error *err);
/* Likewise for a number that is no size: it may be negative. */
CFX_API int64_t cfx_dims_fresh_number(cfx_dims *dims, cfx_error *err);

/* Reads "N", "N + 1", "2*N", "(N + 1)//2", "N%8", "max(N, 3)"; new names become symbols, at least
 * 2. CFX_E_SYNTAX, with the column. */
CFX_API int64_t cfx_dims_parse(cfx_dims *dims, const char *text, size_t size, cfx_error *err);
CFX_API cfx_status cfx_dims_print(const cfx_dims *dims, int64_t d, cfx_sink out, cfx_error *err);

/* Arithmetic; of numbers it needs no `dims` (NULL is allowed). Overflow is CFX_E_SHAPE, a division
 * by zero CFX_E_VALUE; the result is then CFX_DIM_UNKNOWN. An unknown operand gives an unknown
 * result. */
CFX_API int64_t cfx_dim_add(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
CFX_API int64_t cfx_dim_sub(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
CFX_API int64_t cfx_dim_mul(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
CFX_API int64_t cfx_dim_div(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);  /* floor */
CFX_API int64_t cfx_dim_mod(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);  /* sign of b */
CFX_API int64_t cfx_dim_max(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
CFX_API int64_t cfx_dim_min(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);

/* 1 it is so, 0 it is not, -1 it depends (or no proof was found). */
CFX_API int cfx_dim_compare_eq(const cfx_dims *dims, int64_t a, int64_t b);
CFX_API int cfx_dim_compare_lt(const cfx_dims *dims, int64_t a, int64_t b);

/* Whether they are the same: if it depends, that is assumed from here on, and the answer is true.
 * */
CFX_API bool cfx_dim_expect_eq(cfx_dims *dims, int64_t a, int64_t b);
CFX_API bool cfx_dim_expect_le(cfx_dims *dims, int64_t a, int64_t b);

/* Writes the assumptions, one a line ("N == M", "N <= 512"); returns how many through *n. */
CFX_API cfx_status cfx_dims_print_assumptions(const cfx_dims *dims, cfx_sink out, size_t *n,
                                              cfx_error *err);

/* The value of `d` when each symbol has the value that `value` tells; CFX_E_KEY if that is
 * CFX_DIM_UNKNOWN and no assumption tells it either. */
typedef int64_t cfx_dim_value_fn(void *ctx, const char *name);
CFX_API cfx_status cfx_dims_eval(const cfx_dims *dims, int64_t d, cfx_dim_value_fn *value,
                                 void *ctx, int64_t *out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
