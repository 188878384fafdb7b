/* attention_neon.c - rows of attention, in vectors of four. */
#include "attention_impl.h"

#if defined(__aarch64__)
#pragma GCC optimize("O3", "fp-contract=fast", "no-math-errno", "no-trapping-math")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "attention_vector.h"
#endif
