/* bag_sums.h - sums of rows of float32, for each instruction set (bag_sums_vector.h). */
#ifndef CFXI_INDEX_BAG_SUMS_H
#define CFXI_INDEX_BAG_SUMS_H

#include "runtime/isa.h"

/* Some rows of a table, of which a bag is made. */
typedef struct cfxi_bag_rows {
    const char *table;       /* the first column that is added, of row 0 */
    int64_t stride;          /* bytes from row to row */
    const int64_t *indices;
    int64_t n;
    int64_t known;           /* indices, of which the first n are of this bag: n or more */
    const double *samples;   /* what each is multiplied by; NULL: 1 */
    int64_t padding;         /* the row that is left out; -1: none */
} cfxi_bag_rows;

/* In double, so that every instruction set gives the same. */
typedef struct cfxi_bag_sums {
    /* sum = that of `columns` columns of all rows */
    void (*rows)(const cfxi_bag_rows *r, int64_t columns, double *sum);
    /* sum += by * x */
    void (*add)(double *sum, double by, const float *x, int64_t n);
} cfxi_bag_sums;

CFXI_ISA_TABLES(cfxi_bag_sums, cfxi_index_bag_sums)

const cfxi_bag_sums *cfxi_index_bag_sums_of(cfx_isa isa);  /* (embedding_bag.c) */

#endif
