/* depthwise_groups_avx2.c - lines of convolutions of small groups, 8 channels at a time. */
#include "depthwise.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 8
#include "runtime/vector.h"

#define GROUPS
#include "depthwise_floats.h"
#endif
