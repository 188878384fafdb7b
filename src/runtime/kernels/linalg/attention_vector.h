/* attention_vector.h - rows of attention; included once for each instruction set, after vector.h.
 */
#include "attention_impl.h"

#include <math.h>

static void mask(float *scores, int64_t n, float scale, const uint8_t *seen, const float *added)
{
    if (seen)
        for (int64_t i = 0; i < n; i++)
            scores[i] = seen[i] ? scores[i] * scale : -INFINITY;
    else
        for (int64_t i = 0; i < n; i++)
            scores[i] = scores[i] * scale + added[i];
}

/* `width` vectors of the result; the last one may have `left` < LANES elements. */
INLINE void mix_of(int rows, int width, int64_t left, const float *weights, int64_t weights_row,
                   const float *v, int64_t v_row, int64_t n, float *out, int64_t out_row)
{
    V sums[CFXI_FEW_QUERIES][4] = {{{0}}};
    for (int64_t j = 0; j < n; j++, v += v_row) {
        V line[4];
        UNROLL for (int w = 0; w < width; w++)
            line[w] = v_load(v + w * LANES, left);
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int w = 0; w < width; w++)
                sums[i][w] = FMA(SET(weights[i * weights_row + j]), line[w], sums[i][w]);
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int w = 0; w < width; w++) {
            float *at = out + i * out_row + w * LANES;
            v_store(at, v_load(at, left) + sums[i][w], left);
        }
}

INLINE void mix_rows(int rows, const float *weights, int64_t weights_row, const float *v,
                     int64_t v_row, int64_t n, int64_t size, float *out, int64_t out_row)
{
    int64_t e = 0;
    for (; e + 4 * LANES <= size; e += 4 * LANES)
        mix_of(rows, 4, LANES, weights, weights_row, v + e, v_row, n, out + e, out_row);
    for (; e < size; e += LANES) {
        if (size - e >= LANES)
            mix_of(rows, 1, LANES, weights, weights_row, v + e, v_row, n, out + e, out_row);
        else
            mix_of(rows, 1, size - e, weights, weights_row, v + e, v_row, n, out + e, out_row);
    }
}

static void mix(int rows, const float *weights, int64_t weights_row, const float *v, int64_t v_row,
                int64_t n, int64_t size, float *out, int64_t out_row)
{
    switch (rows) {
    case 1: mix_rows(1, weights, weights_row, v, v_row, n, size, out, out_row); break;
    case 2: mix_rows(2, weights, weights_row, v, v_row, n, size, out, out_row); break;
    case 3: mix_rows(3, weights, weights_row, v, v_row, n, size, out, out_row); break;
    default: mix_rows(4, weights, weights_row, v, v_row, n, size, out, out_row); break;
    }
}

const cfxi_attention_rows ISA(cfxi_linalg_attention_rows) = {mask, mix};
