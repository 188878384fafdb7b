/* dots_avx2.c - tiles of bfloat16 for machines that multiply floats alone. */
#include "dots.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 8
#include "runtime/vector.h"

#include "dots_round.h"

#define NAME "avx2"
#define DOTS ISA(cfxi_tiles_dots)
#define MOST_PANELS 2
#define MOST_ROWS {5, 2}
#define FORMS(X) X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(1, 5) X(2, 1) X(2, 2)
#include "dots_vector.h"
#endif
