/* depthwise_groups_avx512.c - lines of convolutions of small groups, 16 channels at a time. */
#include "depthwise.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 16
#include "runtime/vector.h"

#define GROUPS
#include "depthwise_floats.h"
#endif
