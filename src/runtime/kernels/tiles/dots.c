/* dots.c - which tiles of bfloat16 a machine has, and which of them suit a matrix. */
#include "dots.h"

CFXI_ISA_CHOICE(cfxi_dots, cfxi_tiles_dots_of_isa, cfxi_tiles_dots)

enum { LEAST_ROWS = 8 };  /* for which it pays to set up AMX */

const cfxi_dots *cfxi_tiles_dots_of(cfx_isa isa, cfxi_bf16 bf16, int64_t rows, int64_t pairs)
{
#if defined(__x86_64__)
    if (bf16 >= CFXI_BF16_TILES && rows >= LEAST_ROWS && pairs % cfxi_tiles_dots_amx.pairs == 0)
        return &cfxi_tiles_dots_amx;
    if (bf16 >= CFXI_BF16_DOTS)
        return &cfxi_tiles_dots_bf16;
#else
    (void)bf16, (void)rows, (void)pairs;
#endif
    return cfxi_tiles_dots_of_isa(isa);
}

cfxi_tiling cfxi_tiles_dots_tiling(const cfxi_dots *dots, int64_t rows, int64_t panels)
{
    return cfxi_tiles_cut(dots->most_rows, dots->cycles, rows, panels);
}
