/* gemm_types.h - the inner loops of matrix products for both types of one instruction set; included
 * after vector.h.
 *
 * Expects COLUMNS and ROWS of a tile, whose sums, a line of B and an element of A fit into the
 * registers: columns are counted in vectors.
 */
#define NAME(x) f32_##x
#define REAL float
#define VEC V
#define TOTAL v_sum
#if LANES == 4
#define BLOCK 1
#else
#define BLOCK 8
#endif
#include "gemm_vector.h"

#define NAME(x) f64_##x
#define REAL double
#define VEC VD
#define TOTAL vd_sum
#if LANES == 4
#define BLOCK 1
#else
#define BLOCK 4
#endif
#include "gemm_vector.h"

const cfxi_gemm_kernels ISA(cfxi_linalg_gemm_all) = {&f32_kernel, &f64_kernel};
