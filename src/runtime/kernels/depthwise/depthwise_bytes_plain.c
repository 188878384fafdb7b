/* depthwise_bytes_plain.c - lines of depthwise convolutions of 8-bit integers in portable C. */
#include "depthwise_bytes.h"

#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 4
#include "runtime/vector.h"

#include "depthwise_bytes_vector.h"
