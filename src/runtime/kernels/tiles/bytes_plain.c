/* bytes_plain.c - tiles of 8-bit integers in portable C. */
#include "tiles.h"

#define LANES 4
#include "runtime/vector.h"

INLINE VI MADD(VI a, VI b)
{
    return ((VI)((VU)a << 16) >> 16) * ((VI)((VU)b << 16) >> 16) + (a >> 16) * (b >> 16);
}

#define NAME "plain"
#define BYTES ISA(cfxi_tiles_bytes)
#define MOST_PANELS 1
#define MOST_ROWS {2}
#define FORMS(X) X(1, 1) X(1, 2)
#include "bytes_vector.h"
