/* floats_avx2.c - loops over floats, eight at a time. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#define FLOATS cfxi_reduce_floats_avx2
#include "floats.h"
#else
typedef int nothing_here;
#endif
