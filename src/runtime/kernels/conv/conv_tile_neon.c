/* conv_tile_neon.c - tiles of convolution, 4 places in a vector. */
#include "conv_impl.h"

#if defined(__aarch64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define NEON
#define LANES 4
#include "runtime/vector.h"

#define ROWS 8
#include "conv_tile_vector.h"
#endif
