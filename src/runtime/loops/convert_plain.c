/* convert_plain.c - conversions of element types, for any machine. */
#pragma GCC optimize("Os", "no-trapping-math")
#include "convert.h"

#define LANES 4
#include "runtime/vector.h"

#include "convert_vector.h"
