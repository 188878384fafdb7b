/* observe_vector.h - the least, the greatest and the counts of elements, for one instruction set;
 * included once for each, after vector.h.
 */
#include <math.h>

enum { STRIPE = 4 * LANES };

/* x * 0 is NaN for what is not finite, and stays NaN in a sum. */
static bool range(const float *x, int64_t n, float out[2])
{
    V low[4], high[4], bad[4];
    UNROLL for (int k = 0; k < 4; k++) {
        low[k] = SET(INFINITY);
        high[k] = SET(-INFINITY);
        bad[k] = SET(0.f);
    }
    int64_t i = 0;
    for (; i + STRIPE <= n; i += STRIPE)
        UNROLL for (int k = 0; k < 4; k++) {
            const V v = LOAD(x + i + k * LANES);
            low[k] = MIN(v, low[k]);
            high[k] = MAX(v, high[k]);
            bad[k] = FMA(v, SET(0.f), bad[k]);
        }
    UNROLL for (int k = 1; k < 4; k++) {
        low[0] = MIN(low[k], low[0]);
        high[0] = MAX(high[k], high[0]);
        bad[0] += bad[k];
    }
    float least = -v_most(-low[0]), most = v_most(high[0]), rest = v_sum(bad[0]);
    for (; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
        rest += x[i] * 0.f;
    }
    out[0] = least;
    out[1] = most;
    return rest == 0.f;
}

INLINE V choose(VI mask, V x, V y)
{
    return (V)((mask & (VI)x) | (~mask & (VI)y));
}

static int64_t column(const float *x, int64_t rows, int64_t stride, float *low, float *high)
{
    int64_t bad = 0;
    for (int64_t r = 0; r < rows; r++) {
        const float v = x[r * stride];
        const bool finite = v * 0.f == 0.f;
        bad += !finite;
        *low = finite && v < *low ? v : *low;
        *high = finite && v > *high ? v : *high;
    }
    return bad;
}

/* Down one vector of columns after the other: the ranges stay in registers. */
static int64_t columns(const float *x, int64_t rows, int64_t stride, int64_t n, float *low,
                       float *high)
{
    int64_t bad = 0;
    int64_t c = 0;
    for (; c + LANES <= n; c += LANES) {
        V least = LOAD(low + c), most = LOAD(high + c);
        VI finite = VI_SET(0);
        for (int64_t r = 0; r < rows; r++) {
            const V v = LOAD(x + r * stride + c);
            const VI is = v * SET(0.f) == SET(0.f);
            finite += is;
            least = MIN(choose(is, v, SET(INFINITY)), least);
            most = MAX(choose(is, v, SET(-INFINITY)), most);
        }
        STORE(low + c, least);
        STORE(high + c, most);
        bad += rows * LANES;
        UNROLL for (int i = 0; i < LANES; i++)
            bad += finite[i];
    }
    for (; c < n; c++)
        bad += column(x + c, rows, stride, low + c, high + c);
    return bad;
}

/* The order of the operations is PyTorch's (torch.histc): others round to other bins. */
static void count(const float *x, int64_t n, const cfxi_bins *bins)
{
    const V low = SET(bins->low), width = SET(bins->width), most = SET((float)bins->n);
    const int32_t last = bins->n - 1;
    uint32_t *counts = bins->counts;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const VI at = __builtin_convertvector((LOAD(x + i) - low) * most / width, VI);
        UNROLL for (int k = 0; k < LANES; k++)
            counts[CFXI_COUNTERS * (at[k] < last ? at[k] : last) + k % CFXI_COUNTERS]++;
    }
    for (; i < n; i++) {
        const int32_t at = (int32_t)((x[i] - bins->low) * (float)bins->n / bins->width);
        counts[CFXI_COUNTERS * (at < last ? at : last) + i % CFXI_COUNTERS]++;
    }
}

const cfxi_observes ISA(cfxi_quantize_observes) = {range, columns, count};
