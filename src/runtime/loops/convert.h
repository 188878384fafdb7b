/* convert.h - loops that convert elements, for each instruction set (convert_vector.h). */
#ifndef CFXI_CONVERT_H
#define CFXI_CONVERT_H

#include "runtime/isa.h"

typedef void cfxi_convert_fn(int64_t n, const void *from, void *to);

typedef struct cfxi_converts {
    cfxi_convert_fn *fn[CFX_DTYPE_COMPLEX128 + 1][CFX_DTYPE_COMPLEX128 + 1];  /* [from][to]; NULL */
} cfxi_converts;

CFXI_ISA_TABLES(cfxi_converts, cfxi_rt_converts)

#endif
