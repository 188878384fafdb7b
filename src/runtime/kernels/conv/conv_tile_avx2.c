/* conv_tile_avx2.c - tiles of convolution, 8 places in a vector. */
#include "conv_impl.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 8
#include "runtime/vector.h"

#define ROWS 4
#include "conv_tile_vector.h"
#endif
