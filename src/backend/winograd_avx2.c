/* winograd_avx2.c - Winograd's transforms, 8 channels at a time. */
#include "winograd.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 8
#include "runtime/vector.h"

#include "winograd_vector.h"
#endif
