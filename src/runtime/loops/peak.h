/* peak.h - the loops of peak.c, for each instruction set (peak_vector.h). */
#ifndef CFXI_PEAK_H
#define CFXI_PEAK_H

#include "runtime/isa.h"

enum { CFXI_PEAK_READS = 128 };

typedef struct cfxi_peak_loops {
    float (*multiply)(int64_t n, float by);     /* n multiply-adds of all chains */
    float (*read)(const float *at, int64_t n);  /* n is a multiple of CFXI_PEAK_READS */
    int64_t floats;                             /* in all chains together */
} cfxi_peak_loops;

CFXI_ISA_TABLES(cfxi_peak_loops, cfxi_rt_peak_loops)

#endif
