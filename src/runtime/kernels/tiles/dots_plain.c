/* dots_plain.c - tiles of bfloat16 in portable C. */
#include "dots.h"

#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 4
#include "runtime/vector.h"

#include "dots_round.h"

#define NAME "plain"
#define DOTS ISA(cfxi_tiles_dots)
#define MOST_PANELS 1
#define MOST_ROWS {2}
#define FORMS(X) X(1, 1) X(1, 2)
#include "dots_vector.h"
