/* dots.c - which tiles of bfloat16 a machine has, and which of them suit a matrix. */
#include "dots.h"

CFXI_ISA_CHOICE(cfxi_dots, cfxi_tiles_dots_of_isa, cfxi_tiles_dots)

const cfxi_dots *cfxi_tiles_dots_of(cfx_isa isa, cfxi_bf16 bf16, int64_t rows, int64_t pairs)
{
#if defined(__x86_64__)
    /* Machines with AMX add products of pairs slowly: pairs that are taken apart cost half as much,
     * but for one row, which only waits for its weights. */
    if (bf16 == CFXI_BF16_TILES && cfxi_tiles_suit_amx(rows, pairs, cfxi_tiles_dots_amx.pairs))
        return &cfxi_tiles_dots_amx;
    if (bf16 == CFXI_BF16_DOTS || (bf16 == CFXI_BF16_TILES && rows == 1))
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
