/* depthwise_plain.c - lines of depthwise convolutions in portable C. */
#include "depthwise.h"

#pragma GCC optimize("O2", "fp-contract=fast")

#define LANES 4
#define FUNCTION cfxi_backend_depthwise_plain
#include "depthwise_vector.h"
