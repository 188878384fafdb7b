/* pixels_plain.c - rows of channels combined, in portable C. */
#include "pixels.h"

#pragma GCC optimize("O2", "no-trapping-math")
#define LANES 4
#include "runtime/vector.h"

#include "pixels_vector.h"
