/* dots_neon.c - tiles of bfloat16, whose pairs are taken apart. */
#include "dots.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#include "dots_round.h"

#define NAME "neon"
#define DOTS ISA(cfxi_tiles_dots)
#define MOST_PANELS 2
#define MOST_ROWS {5, 2}
#define FORMS(X) X(1, 1) X(1, 2) X(1, 3) X(1, 4) X(1, 5) X(2, 1) X(2, 2)
#include "dots_vector.h"
#endif
