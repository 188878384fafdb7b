/* weight_rows.h - matrices of integers that stand for floats, as linear layers and embeddings read
 * them. (weight_rows.c) */
#ifndef CFXI_WEIGHT_ROWS_H
#define CFXI_WEIGHT_ROWS_H

#include "byte_rows.h"

typedef struct cfxi_integer_weights {
    const cfx_tensor *weight, *scale;
    const cfx_tensor *zero;         /* or NULL */
    int64_t rows, length;           /* elements of a row */
    int64_t group;                  /* those with one scale: at most `length`, at least 1 */
    bool packed;                    /* int4, two in a byte */
    const cfxi_integer_rows *fast;  /* NULL: plain loops */
} cfxi_integer_weights;

/* In a rule or kernel: arguments weight, weight_scale and weight_zero, number `first` and on, and
 * group_size and size, number `last` and on; fails unless they fit together. */
cfx_status cfxi_integer_weights_of(cfxi_call *c, size_t first, size_t last,
                                   cfxi_integer_weights *w);
/* n elements of a row of int4, from number `from` on: -8..7, the first in the lower half of a byte;
 * bytes are `step` apart. */
void cfxi_integer_unpack(const char *row, int64_t step, int64_t from, int64_t n, int8_t *to);
/* Elements [from, from + n) of a row: (integer - zero) * scale. */
void cfxi_integer_weights_row(const void *weights, int64_t row, int64_t from, int64_t n, float *to);

#endif
