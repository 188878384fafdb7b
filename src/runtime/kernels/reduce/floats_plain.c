/* floats_plain.c - loops over floats for any machine, and the choice among those for this one. */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#define FLOATS cfxi_reduce_floats_plain
#include "floats.h"

const cfxi_floats *cfxi_reduce_floats_of(const cfx_runtime *rt)
{
#if defined(__x86_64__)
    if (rt->isa == CFX_ISA_AVX512)
        return &cfxi_reduce_floats_avx512;
    if (rt->isa == CFX_ISA_AVX2)
        return &cfxi_reduce_floats_avx2;
#endif
    (void)rt;
    return &cfxi_reduce_floats_plain;
}
