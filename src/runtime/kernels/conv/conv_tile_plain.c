/* conv_tile_plain.c - tiles of convolution in portable C. */
#include "conv_impl.h"

#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 4
#include "runtime/vector.h"

#define ROWS 4
#include "conv_tile_vector.h"
