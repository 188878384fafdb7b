/* depthwise_bytes_avx2.c - lines of depthwise convolutions of bytes, 8 channels at a time. */
#include "depthwise_bytes.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 8
#include "runtime/vector.h"

#include "depthwise_bytes_vector.h"
#endif
