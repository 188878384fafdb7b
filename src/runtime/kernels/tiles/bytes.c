/* bytes.c - which tiles of 8-bit integers a machine has, and which of them suit a matrix. */
#include "bytes.h"

CFXI_ISA_CHOICE(cfxi_bytes, cfxi_tiles_bytes_of_isa, cfxi_tiles_bytes)

enum { LEAST_ROWS = 8 };  /* for which it pays to set up AMX */

const cfxi_bytes *cfxi_tiles_bytes_of(cfx_isa isa, cfxi_int8 int8, int64_t rows, int64_t k)
{
#if defined(__x86_64__)
    if (int8 >= CFXI_INT8_TILES && rows >= LEAST_ROWS && k % cfxi_tiles_bytes_amx.steps == 0)
        return &cfxi_tiles_bytes_amx;
    if (int8 >= CFXI_INT8_DOTS)
        return isa == CFX_ISA_AVX512 ? &cfxi_tiles_bytes_vnni : &cfxi_tiles_bytes_avxvnni;
#else
    (void)int8, (void)rows, (void)k;
#endif
    return cfxi_tiles_bytes_of_isa(isa);
}

cfxi_tiling cfxi_tiles_bytes_tiling(const cfxi_bytes *bytes, int64_t rows, int64_t panels)
{
    return cfxi_tiles_cut(bytes->most_rows, bytes->cycles, rows, panels);
}
