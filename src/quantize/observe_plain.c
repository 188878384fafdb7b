/* observe_plain.c - what is seen of elements, for any machine. */
#pragma GCC optimize("O2")
#include "observe.h"

#define LANES 4
#include "runtime/vector.h"

#include "observe_vector.h"
