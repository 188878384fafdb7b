/* depthwise_plain.c - lines of depthwise convolutions in portable C. */
#include "depthwise.h"

#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 4
#include "runtime/vector.h"

#include "depthwise_floats.h"
