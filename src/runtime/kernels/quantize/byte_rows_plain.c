/* byte_rows_plain.c - rows of 8-bit integers in portable C. */
#include "byte_rows.h"

#pragma GCC optimize("O2")
#define LANES 4
#include "runtime/vector.h"

#include "byte_rows_vector.h"
