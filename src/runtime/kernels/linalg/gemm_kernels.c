/* gemm_kernels.c - the inner loops of matrix products, for each type and instruction set.
 *
 * Sizes of tiles: as many sums as registers hold, less those for a line of B and an element of A.
 * AVX-512 has 32 registers (12 x 2 sums), AVX2 16 (6 x 2), plain C counts on 16 of 16 bytes.
 * Products are added with one rounding where the machine can: ISO C alone would forbid it.
 */
#include "gemm_impl.h"

#pragma GCC optimize("fp-contract=fast")

#define NAME(x) plain_f32_##x
#define REAL float
#define LANES 4
#define COLUMNS 2
#define ROWS 4
#define BLOCK 1
#include "gemm_kernel.h"

#define NAME(x) plain_f64_##x
#define REAL double
#define LANES 2
#define COLUMNS 2
#define ROWS 4
#define BLOCK 1
#include "gemm_kernel.h"

#if defined(__x86_64__)

#pragma GCC push_options
#pragma GCC target("avx2,fma")

#define NAME(x) avx2_f32_##x
#define REAL float
#define LANES 8
#define COLUMNS 2
#define ROWS 6
#define BLOCK 8
#include "gemm_kernel.h"

#define NAME(x) avx2_f64_##x
#define REAL double
#define LANES 4
#define COLUMNS 2
#define ROWS 6
#define BLOCK 4
#include "gemm_kernel.h"

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma")

#define NAME(x) avx512_f32_##x
#define REAL float
#define LANES 16
#define COLUMNS 2
#define ROWS 12
#define BLOCK 8
#include "gemm_kernel.h"

#define NAME(x) avx512_f64_##x
#define REAL double
#define LANES 8
#define COLUMNS 2
#define ROWS 12
#define BLOCK 4
#include "gemm_kernel.h"

#pragma GCC pop_options
#endif

const cfxi_gemm_kernel *cfxi_linalg_gemm_kernel_of(cfx_isa isa, cfx_dtype dtype)
{
    static const cfxi_gemm_kernel *const kernels[CFX_ISA_COUNT][2] = {
        [CFX_ISA_PLAIN] = {&plain_f32_kernel, &plain_f64_kernel},
#if defined(__x86_64__)
        [CFX_ISA_AVX2] = {&avx2_f32_kernel, &avx2_f64_kernel},
        [CFX_ISA_AVX512] = {&avx512_f32_kernel, &avx512_f64_kernel},
#endif
    };
    const cfxi_gemm_kernel *found = kernels[isa][dtype == CFX_DTYPE_FLOAT64];
    return found ? found : kernels[CFX_ISA_PLAIN][dtype == CFX_DTYPE_FLOAT64];
}
