/* transpose_plain.c - matrices turned over, for any machine. */
#pragma GCC optimize("O2")
#include "transpose.h"

#define LANES 4
#include "runtime/vector.h"

#include "transpose_vector.h"
