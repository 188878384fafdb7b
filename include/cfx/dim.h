/* dim.h - symbolic sizes: N, N + 1, 2*N, (N - 3)//2 + 1.
 *
 * A size is an int64_t: either a number, or a symbol of a cfx_dims, which holds the expressions.
 * Expressions are kept in a normal form (sums of products), and equal expressions share one symbol,
 * so comparing two sizes is comparing two integers. If an operator's rule depends on a fact that
 * cannot be known (does N equal M?), cfx assumes the answer that lets the rule succeed, and records
 * the assumption.
 */
#ifndef CFX_DIM_H
#define CFX_DIM_H

#include <cfx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_dims cfx_dims;

/* A size that depends on the data, such as the number of nonzero elements. The value never occurs
 * as a size. (-1 would not do: differences of sizes can be negative.) */
#define CFX_DIM_UNKNOWN (INT64_MIN / 2)

static inline bool cfx_dim_is_symbol(int64_t d) { return d < INT64_MIN / 2; }

/* Only one thread at a time may use a cfx_dims. Tensors with symbolic sizes may outlive it, but
 * only the cfx_dims knows what the symbols mean. NULL with CFX_E_NOMEM. */
CFX_API cfx_dims *cfx_dims_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_dims_free(cfx_dims *dims);  /* NULL is allowed */

/* Parses "N", "N + 1", "2*N", "(N + 1)//2", "N%8" or "max(N, 3)". New names become symbols that are
 * at least 2, because sizes 0 and 1 behave differently: 0 is empty and 1 broadcasts.
 * CFX_DIM_UNKNOWN with *err set: CFX_E_SYNTAX with the column, or CFX_E_NOMEM. */
CFX_API int64_t cfx_dims_parse(cfx_dims *dims, const char *text, size_t size, cfx_error *err);
CFX_API cfx_status cfx_dims_print(const cfx_dims *dims, int64_t d, cfx_sink out, cfx_error *err);

/* Arithmetic. `dims` may be NULL if both operands are numbers. If an operand is unknown, so is the
 * result. On failure the result is CFX_DIM_UNKNOWN: CFX_E_SHAPE for an overflow, CFX_E_VALUE for a
 * division by zero. */
CFX_API int64_t cfx_dim_add(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
CFX_API int64_t cfx_dim_sub(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
CFX_API int64_t cfx_dim_mul(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
CFX_API int64_t cfx_dim_div(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);  /* floor */
CFX_API int64_t cfx_dim_mod(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);  /* sign of b */
CFX_API int64_t cfx_dim_max(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
CFX_API int64_t cfx_dim_min(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);

/* Whether two sizes are equal. If that depends on symbols, equality is assumed from now on, and the
 * result is true. */
CFX_API bool cfx_dim_expect_eq(cfx_dims *dims, int64_t a, int64_t b);

/* Writes the assumptions, one per line ("N == M", "N <= 512"). *n receives their number. */
CFX_API cfx_status cfx_dims_print_assumptions(const cfx_dims *dims, cfx_sink out, size_t *n,
                                              cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
