/* winograd_avx512.c - Winograd's transforms, 16 channels at a time. */
#include "winograd.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 16
#include "runtime/vector.h"

#include "winograd_vector.h"
#endif
