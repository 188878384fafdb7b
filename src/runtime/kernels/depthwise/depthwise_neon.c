/* depthwise_neon.c - lines of depthwise convolutions, 4 channels at a time. */
#include "depthwise.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "depthwise_floats.h"
#endif
