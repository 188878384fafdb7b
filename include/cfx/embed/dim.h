/* For language bindings and back ends; may change between versions.
 *
 * embed/dim.h - creates and compares symbolic sizes.
 */
#ifndef CFX_EMBED_DIM_H
#define CFX_EMBED_DIM_H

#include <cfx/dim.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The symbol of this name, with the lower bound `min`. Use 2 for a batch: sizes 0 and 1 behave
 * differently. CFX_DIM_UNKNOWN with CFX_E_NOMEM. */
CFX_API int64_t cfx_dims_symbol(cfx_dims *dims, const char *name, int64_t min, cfx_error *err);

/* Whether a == b, and whether a < b: 1 yes, 0 no, -1 if it depends on symbols or no proof was
 * found. */
CFX_API int cfx_dim_compare_eq(const cfx_dims *dims, int64_t a, int64_t b);
CFX_API int cfx_dim_compare_lt(const cfx_dims *dims, int64_t a, int64_t b);

/* Whether a <= b. If that depends on symbols, it is assumed from now on, and the result is true. */
CFX_API bool cfx_dim_expect_le(cfx_dims *dims, int64_t a, int64_t b);

#ifdef __cplusplus
}
#endif
#endif
