/* attention_vector.h - rows of attention; included once for each instruction set, after vector.h.
 */
#include "attention_impl.h"

#include <math.h>

/* ---- softmax ------------------------------------------------------------------------------- */

static void mask_row(float *scores, int64_t n, float scale, const uint8_t *seen, const float *added)
{
    if (seen)
        for (int64_t i = 0; i < n; i++)
            scores[i] = seen[i] ? scores[i] * scale : -INFINITY;
    else
        for (int64_t i = 0; i < n; i++)
            scores[i] = scores[i] * scale + added[i];
}

/* The greatest of x * scale, which is written back; NaN is passed over. */
static float scaled_most(float *x, int64_t n, float scale, float most)
{
    V m[2] = {SET(most), SET(most)};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        UNROLL for (int v = 0; v < 2; v++) {
            const V s = LOAD(x + i + v * LANES) * SET(scale);
            STORE(x + i + v * LANES, s);
            m[v] = MAX(s, m[v]);
        }
    most = v_most(MAX(m[0], m[1]));
    for (; i < n; i++) {
        x[i] *= scale;
        most = x[i] > most ? x[i] : most;
    }
    return most;
}

static float weigh(float *x, int64_t n, float scale, const uint8_t *seen, const float *added,
                   cfxi_weighed *w)
{
    if (seen || added)
        mask_row(x, n, scale, seen, added);
    const float most = scaled_most(x, n, seen || added ? 1 : scale, w->most);
    const float less = most == -INFINITY ? 0 : most;  /* all are masked: exp(-inf) is 0 */
    V sums[2] = {{0}};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        UNROLL for (int v = 0; v < 2; v++) {
            const V e = v_exp(LOAD(x + i + v * LANES) - SET(less));
            STORE(x + i + v * LANES, e);
            sums[v] += e;
        }
    float total = 0;
    for (; i < n; i += LANES) {
        const int64_t left = n - i < LANES ? n - i : LANES;
        float e[LANES];
        STORE(e, v_exp((left < LANES ? LOAD_SOME(x + i, left) : LOAD(x + i)) - SET(less)));
        for (int64_t j = 0; j < left; j++)
            total += x[i + j] = e[j];
    }
    const float earlier = w->most == -INFINITY ? 0 : w->most == most ? 1 : expf(w->most - less);
    w->total = w->total * earlier + (total + v_sum(sums[0] + sums[1]));
    w->most = most;
    return earlier;
}

static void scale_row(float *x, int64_t n, float by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

/* ---- few queries ---------------------------------------------------------------------------- */

/* Keys are read once, where they lie: four of them at a time. */
INLINE void dots_of(int rows, int columns, const float *q, int64_t q_row, const float *k,
                    int64_t k_row, int64_t size, float *scores, int64_t scores_row)
{
    V sums[CFXI_FEW_QUERIES][4] = {{{0}}};
    int64_t p = 0;
    for (; p + LANES <= size; p += LANES) {
        V left[CFXI_FEW_QUERIES];
        UNROLL for (int i = 0; i < rows; i++)
            left[i] = LOAD(q + i * q_row + p);
        UNROLL for (int j = 0; j < columns; j++) {
            const V right = LOAD(k + j * k_row + p);
            UNROLL for (int i = 0; i < rows; i++)
                sums[i][j] = FMA(left[i], right, sums[i][j]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < columns; j++) {
            float sum = v_sum(sums[i][j]);
            for (int64_t r = p; r < size; r++)
                sum += q[i * q_row + r] * k[j * k_row + r];
            scores[i * scores_row + j] = sum;
        }
}

INLINE void dots_rows(int rows, const float *q, int64_t q_row, const float *k, int64_t k_row,
                      int64_t n, int64_t size, float *scores, int64_t scores_row)
{
    int64_t j = 0;
    for (; j + 4 <= n; j += 4)
        dots_of(rows, 4, q, q_row, k + j * k_row, k_row, size, scores + j, scores_row);
    for (; j < n; j++)
        dots_of(rows, 1, q, q_row, k + j * k_row, k_row, size, scores + j, scores_row);
}

static void dots(int rows, const float *q, int64_t q_row, const float *k, int64_t k_row, int64_t n,
                 int64_t size, float *scores, int64_t scores_row)
{
    switch (rows) {
    case 1: dots_rows(1, q, q_row, k, k_row, n, size, scores, scores_row); break;
    case 2: dots_rows(2, q, q_row, k, k_row, n, size, scores, scores_row); break;
    case 3: dots_rows(3, q, q_row, k, k_row, n, size, scores, scores_row); break;
    default: dots_rows(4, q, q_row, k, k_row, n, size, scores, scores_row); break;
    }
}

/* `width` vectors of the result; the last one may have `left` < LANES elements. */
INLINE void mix_of(int rows, int width, int64_t left, const float *weights, int64_t weights_row,
                   const float *v, int64_t v_row, int64_t n, float *out, int64_t out_row)
{
    V sums[CFXI_FEW_QUERIES][4] = {{{0}}};
    for (int64_t j = 0; j < n; j++, v += v_row) {
        V line[4];
        UNROLL for (int w = 0; w < width; w++)
            line[w] = left < LANES ? LOAD_SOME(v, left) : LOAD(v + w * LANES);
        UNROLL for (int i = 0; i < rows; i++)
            UNROLL for (int w = 0; w < width; w++)
                sums[i][w] = FMA(SET(weights[i * weights_row + j]), line[w], sums[i][w]);
    }
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int w = 0; w < width; w++) {
            float *at = out + i * out_row + w * LANES;
            if (left < LANES)
                STORE_SOME(at, LOAD_SOME(at, left) + sums[i][w], left);
            else
                STORE(at, LOAD(at) + sums[i][w]);
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

const cfxi_attention_rows ISA(cfxi_linalg_attention_rows) = {weigh, scale_row, dots, mix};
