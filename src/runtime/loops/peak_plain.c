/* peak_plain.c - multiply-adds and reads, for any machine. */
#pragma GCC optimize("O2", "fp-contract=fast")
#include "peak.h"

#define LANES 4
#include "runtime/vector.h"

#include "peak_vector.h"
