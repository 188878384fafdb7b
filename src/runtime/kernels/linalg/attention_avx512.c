/* attention_avx512.c - rows of attention, in vectors of sixteen. */
#include "attention_impl.h"

#if defined(__x86_64__)
#pragma GCC optimize("O3", "fp-contract=fast", "no-math-errno", "no-trapping-math")
#define LANES 16
#include "runtime/vector.h"

#include "attention_vector.h"
#endif
