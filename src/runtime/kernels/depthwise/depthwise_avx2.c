/* depthwise_avx2.c - lines of depthwise convolutions, 8 channels at a time. */
#include "depthwise.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 8
#include "runtime/vector.h"

#include "depthwise_floats.h"
#endif
