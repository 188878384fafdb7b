/* conv_tile_avx512.c - tiles of convolution, 16 places in a vector. */
#include "conv_impl.h"

#if defined(__x86_64__)
#pragma GCC optimize("O2", "fp-contract=fast")
#define LANES 16
#include "runtime/vector.h"

#define ROWS 8
#include "conv_tile_vector.h"
#endif
