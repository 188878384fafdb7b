/* depthwise_avx512.c - lines of depthwise convolutions, 16 channels at a time. */
#include "depthwise.h"

#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,fma,prefer-vector-width=512")
#pragma GCC optimize("O2", "fp-contract=fast")

#define LANES 16
#define FUNCTION cfxi_backend_depthwise_avx512
#include "depthwise_vector.h"
#endif
