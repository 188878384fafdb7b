/* bag_sums_plain.c - sums of rows, for any machine. */
#pragma GCC optimize("O2")
#include "bag_sums.h"

#define LANES 4
#include "runtime/vector.h"

#include "bag_sums_vector.h"
