/* floats_avx512.c - loops over floats, sixteen at a time. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#define FLOATS cfxi_reduce_floats_avx512
#include "floats.h"
#else
typedef int nothing_here;
#endif
