/* depthwise_bytes_neon.c - lines of depthwise convolutions of bytes, 4 channels at a time. */
#include "depthwise_bytes.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "depthwise_bytes_vector.h"
#endif
