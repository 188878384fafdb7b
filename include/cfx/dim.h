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

/* Reads "N", "N + 1", "2*N", "(N + 1)//2", "N%8", "max(N, 3)"; new names become symbols, at least
 * 2 (sizes 0 and 1 behave differently: they broadcast, and empty). CFX_DIM_UNKNOWN with *err set:
 * CFX_E_SYNTAX with the column, CFX_E_NOMEM. */
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

/* Whether two sizes are equal. If that depends on symbols, it is assumed from here on, and the
 * answer is true. */
CFX_API bool cfx_dim_expect_eq(cfx_dims *dims, int64_t a, int64_t b);

/* Writes the assumptions, one a line ("N == M", "N <= 512"); returns how many through *n. */
CFX_API cfx_status cfx_dims_print_assumptions(const cfx_dims *dims, cfx_sink out, size_t *n,
                                              cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
