/* depthwise_avx2.c - lines of depthwise convolutions, 8 channels at a time. */
#include "depthwise.h"

#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#pragma GCC optimize("O2", "fp-contract=fast")

#define LANES 8
#define FUNCTION cfxi_backend_depthwise_avx2
#include "depthwise_vector.h"
#endif
