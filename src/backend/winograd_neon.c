/* winograd_neon.c - Winograd's transforms, 4 channels at a time. */
#include "winograd.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "winograd_vector.h"
#endif
