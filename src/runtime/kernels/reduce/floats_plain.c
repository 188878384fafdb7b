/* floats_plain.c - loops over floats, for any machine. */
#include "reduce_impl.h"

#pragma GCC optimize("Os", "no-math-errno", "no-trapping-math")
#define LANES 4
#include "runtime/vector.h"

#include "floats.h"
