/* tiles.c - which tiles a machine has. */
#include "tiles.h"

const cfxi_tiles *cfxi_backend_tiles(cfx_isa isa)
{
    switch (isa) {
#if defined(__x86_64__)
    case CFX_ISA_AVX512: return &cfxi_backend_tiles_avx512;
    case CFX_ISA_AVX2: return &cfxi_backend_tiles_avx2;
#else
    case CFX_ISA_AVX512: case CFX_ISA_AVX2:
#endif
    case CFX_ISA_PLAIN: case CFX_ISA_COUNT: break;
    }
    return &cfxi_backend_tiles_plain;
}
