/* attention_plain.c - rows of attention, in portable C. */
#include "attention_impl.h"

#pragma GCC optimize("O3", "fp-contract=fast", "no-math-errno", "no-trapping-math")
#define LANES 4
#include "runtime/vector.h"

#include "attention_vector.h"
