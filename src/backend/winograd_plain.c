/* winograd_plain.c - Winograd's transforms in portable C. */
#include "winograd.h"

#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 4
#include "runtime/vector.h"

#include "winograd_vector.h"
