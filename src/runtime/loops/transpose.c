/* transpose.c - matrices of elements of any size turned over. */
#include "transpose.h"

static CFXI_ISA_CHOICE(cfxi_transposes, transposes_of, cfxi_rt_transposes)

#define TRANSPOSE(type)                                                                            \
    for (int64_t r = 0; r < rows; r++)                                                             \
        for (int64_t k = 0; k < columns; k++)                                                      \
            ((type *)(to + r * to_row))[k] = ((const type *)(from + k * from_column))[r]

void cfxi_rt_transpose(cfx_isa isa, size_t size, int64_t rows, int64_t columns, char *to,
                       int64_t to_row, const char *from, int64_t from_column)
{
    switch (size) {
    case 1: TRANSPOSE(uint8_t); break;
    case 2: TRANSPOSE(uint16_t); break;
    case 4: transposes_of(isa)->words(rows, columns, to, to_row, from, from_column); break;
    case 8: TRANSPOSE(uint64_t); break;
    default: {
        typedef struct wide { uint64_t a, b; } wide;
        TRANSPOSE(wide);
    }
    }
}
