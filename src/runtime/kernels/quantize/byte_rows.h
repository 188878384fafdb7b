/* byte_rows.h - rows of 8-bit integers that stand for real numbers, side by side: for each
 * instruction set. They give the bits that docs/quantization.md says. */
#ifndef CFXI_BYTE_ROWS_H
#define CFXI_BYTE_ROWS_H

#include "integer_impl.h"

#include "runtime/isa.h"

/* Integers of one operand: int8 or uint8, less its zero point. */
typedef struct cfxi_integer_bytes {
    const uint8_t *x;
    bool is_signed;
    int32_t zero;
    float factor;  /* what a difference is multiplied by, in units of the result's scale */
} cfxi_integer_bytes;

/* How floats become 8-bit integers as quantize_per_tensor makes them. */
typedef struct cfxi_integer_quantizing {
    float inverse;  /* of the scale */
    cfxi_integer_range range;
    int32_t nan;    /* what that becomes */
} cfxi_integer_quantizing;

/* False for what the vectors do not compute so: other types, zero points far outside of them.
 * (to_integers.c) */
bool cfxi_integer_quantizing_of(cfx_dtype dtype, float inverse, float zero, float low, float high,
                                cfxi_integer_quantizing *q);

/* Results may take the place of an operand of bytes. */
typedef struct cfxi_integer_rows {
    void (*quantize)(int64_t n, const float *from, const cfxi_integer_quantizing *q, uint8_t *to);
    /* (x - zero) * factor */
    void (*dequantize)(int64_t n, const cfxi_integer_bytes *x, float *to);
    /* `rows` rows of n elements, step[0] bytes apart in `to`, step[1] in x and step[2] in y:
     * fma(x - zero, factor, (y - zero) * factor). NULL where nothing rounds such a sum once. */
    void (*add)(int64_t n, int64_t rows, const int64_t step[3], const cfxi_integer_bytes *x,
                const cfxi_integer_bytes *y, cfxi_integer_range range, uint8_t *to);
    /* Likewise (x - zero) * (y - zero) * x's factor. */
    void (*mul)(int64_t n, int64_t rows, const int64_t step[3], const cfxi_integer_bytes *x,
                const cfxi_integer_bytes *y, cfxi_integer_range range, uint8_t *to);
    /* table[x[i]], by the bits of x. */
    void (*look_up)(int64_t n, const uint8_t table[256], const uint8_t *x, uint8_t *to);
    /* sums[i] += the sum of x[i] - zero over `rows` rows, `step` bytes apart. */
    void (*add_rows)(int64_t n, const cfxi_integer_bytes *x, int64_t rows, int64_t step,
                     int32_t *sums);
    /* The sum of x[i] - zero. */
    int32_t (*sum)(int64_t n, const cfxi_integer_bytes *x);
    /* The integer of float(sums[i]) * factor. */
    void (*finish)(int64_t n, const int32_t *sums, float factor, cfxi_integer_range range,
                   uint8_t *to);
    /* The least and greatest of n floats, and of *low and *high; false if not all are finite. */
    bool (*range)(int64_t n, const float *x, float *low, float *high);
} cfxi_integer_rows;

CFXI_ISA_TABLES(cfxi_integer_rows, cfxi_integer_rows_all)
const cfxi_integer_rows *cfxi_integer_rows_of(cfx_isa isa);  /* (integer_elements.c) */

#endif
