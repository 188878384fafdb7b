/* transpose.h - loops that turn matrices over, for each instruction set (transpose_vector.h). */
#ifndef CFXI_TRANSPOSE_H
#define CFXI_TRANSPOSE_H

#include "runtime/isa.h"

typedef struct cfxi_transposes {
    void (*words)(int64_t rows, int64_t columns, char *to, int64_t to_row, const char *from,
                  int64_t from_column);  /* of 4 bytes: see cfxi_rt_transpose */
} cfxi_transposes;

CFXI_ISA_TABLES(cfxi_transposes, cfxi_rt_transposes)

#endif
