/* observer_histogram.c - histograms of elements, whose range grows: PyTorch's HistogramObserver bin
 * for bin, so that the same scales come out.
 *
 * A tensor within the range seen so far is counted while its range is looked at, block by block.
 * Only if it turns out to be outside is it read once more.
 */
#include "observer_impl.h"

#include <math.h>

enum { FINER = 16 };  /* what an old bin is divided into before it goes to new ones */

/* ---- counting ------------------------------------------------------------------------------- */

typedef struct counting {
    cfx_observer *o;
    cfxi_bins bins;
    float limits[2];   /* of the bins */
    float range[2];    /* of the elements so far */
    int64_t bad, counted;
    bool count;        /* while all elements were within the limits */
    bool exact;        /* the loops' arithmetic would overflow */
} counting;

/* A range of one value gets bins around it. */
static void set_limits(counting *c, float low, float high)
{
    const int32_t n = (int32_t)c->o->spec.bins;
    c->limits[0] = low;
    c->limits[1] = high;
    if (low == high) {
        low -= 1;
        high += 1;
    }
    c->bins = (cfxi_bins){.low = low, .width = high - low, .n = n, .counts = c->o->counts};
    c->exact = !isfinite(c->bins.width * (float)n) || c->bins.width == 0;
}

/* Adds what was counted to o->fresh, before it could overflow, and begins anew. */
static void flush(counting *c)
{
    float *fresh = c->o->fresh;
    uint32_t *counts = c->o->counts;
    for (int32_t i = 0; i < c->bins.n && c->counted > 0; i++) {
        uint64_t sum = 0;
        for (int k = 0; k < CFXI_COUNTERS; k++)
            sum += counts[CFXI_COUNTERS * i + k];
        fresh[i] += (float)sum;
    }
    memset(counts, 0, CFXI_COUNTERS * (size_t)c->bins.n * sizeof *counts);
    c->counted = 0;
}

static void begin(counting *c)
{
    memset(c->o->fresh, 0, (size_t)c->o->spec.bins * sizeof(float));
    memset(c->o->counts, 0, CFXI_COUNTERS * (size_t)c->o->spec.bins * sizeof(uint32_t));
    c->counted = 0;
}

/* The bin of an element, in double: for ranges up to those of all floats. */
static int32_t bin_of(const cfxi_bins *bins, double high, float x)
{
    const double width = high - (double)bins->low;
    const double at = width > 0 ? ((double)x - (double)bins->low) * bins->n / width : 0;
    return at < 0 ? 0 : at < bins->n ? (int32_t)at : bins->n - 1;
}

static void count_exactly(counting *c, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        c->bins.counts[CFXI_COUNTERS * bin_of(&c->bins, (double)c->limits[1], x[i])]++;
}

static void count_finite(counting *c, const float *x, int64_t n)
{
    if (c->counted > INT32_MAX)
        flush(c);
    c->counted += n;
    if (c->exact)
        count_exactly(c, x, n);
    else
        c->o->loops->count(x, n, &c->bins);
}

static void count(counting *c, const float *x, int64_t n, bool finite)
{
    enum { SOME = 256 };
    float kept[SOME];
    int64_t used = 0;
    if (finite) {
        count_finite(c, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i]))
            kept[used++] = x[i];
        if (used == SOME || i + 1 == n) {
            count_finite(c, kept, used);
            used = 0;
        }
    }
}

/* Looks at a block, and counts it if it can. */
static void see(void *ctx, const float *x, int64_t n)
{
    counting *c = ctx;
    float range[2] = {INFINITY, -INFINITY};
    const int64_t bad = cfxi_quantize_range(c->o->loops, x, n, range);
    c->bad += bad;
    c->range[0] = range[0] < c->range[0] ? range[0] : c->range[0];
    c->range[1] = range[1] > c->range[1] ? range[1] : c->range[1];
    c->count = c->count && c->range[0] >= c->limits[0] && c->range[1] <= c->limits[1];
    if (c->count && bad < n)
        count(c, x, n, bad == 0);
}

/* Counts a block that was looked at before. */
static void count_again(void *ctx, const float *x, int64_t n)
{
    counting *c = ctx;
    count(c, x, n, c->bad == 0);
}

/* ---- other ranges --------------------------------------------------------------------------- */

/* The i-th of n numbers from `low` to `high`, as torch.linspace has it: from both ends, rounded
 * once. */
static float spaced(float low, float high, float step, int64_t n, int64_t i)
{
    return i < n / 2 ? fmaf(step, (float)i, low) : fmaf(-step, (float)(n - i - 1), high);
}

/* Each bin is divided into some of equal weight, each of which goes to the new bin that its middle
 * is in. */
static void spread(const cfx_observer *o, const float *histogram, const float old[2],
                   const float new[2], float *out)
{
    const int64_t bins = o->spec.bins;
    const int64_t pieces = bins * FINER;
    const float step = (old[1] - old[0]) / (float)pieces;
    const float new_step = (new[1] - new[0]) / (float)bins;
    int64_t at = 0;
    for (int64_t i = 0; i < pieces; i++) {
        const float middle = spaced(old[0], old[1], step, pieces + 1, i) + 0.5f * step;
        while (at + 1 < bins && spaced(new[0], new[1], new_step, bins + 1, at + 1) <= middle)
            at++;
        out[at] += histogram[i / FINER] / FINER;
    }
}

/* Writes the histogram of `old` limits as one of `new` limits, which are around them. */
static void rebin(const cfx_observer *o, const float *histogram, const float old[2],
                  const float new[2], float *out)
{
    const size_t bins = (size_t)o->spec.bins;
    if (old[0] == new[0] && old[1] == new[1]) {
        memcpy(out, histogram, bins * sizeof *out);
        return;
    }
    memset(out, 0, bins * sizeof *out);
    if (old[0] < old[1]) {
        spread(o, histogram, old, new, out);
        return;
    }
    const cfxi_bins place = {.low = new[0], .n = (int32_t)bins};
    float *one = &out[bin_of(&place, (double)new[1], old[0])];
    for (size_t i = 0; i < bins; i++)
        *one += histogram[i];
}

/* ---- a call, and another observer ----------------------------------------------------------- */

/* Adds o->fresh, whose range is `new`, to the histogram. */
static void add_fresh(cfx_observer *o, const float new[2])
{
    const float old[2] = {o->low[0], o->high[0]};
    const size_t bins = (size_t)o->spec.bins;
    const float *before = o->histogram;
    if (o->calls > 0 && (old[0] != new[0] || old[1] != new[1])) {
        rebin(o, o->histogram, old, new, o->fresh + bins);
        before = o->fresh + bins;
    }
    for (size_t i = 0; i < bins; i++)
        o->histogram[i] = before[i] + o->fresh[i];
    o->low[0] = new[0];
    o->high[0] = new[1];
}

void cfxi_quantize_observe_histogram(cfx_observer *o, const cfx_tensor *t)
{
    const cfxi_part p = cfxi_quantize_part(t);
    counting c = {.o = o, .range = {INFINITY, -INFINITY}, .count = o->calls > 0};
    begin(&c);
    set_limits(&c, o->calls > 0 ? o->low[0] : 0, o->calls > 0 ? o->high[0] : 0);
    cfxi_quantize_walk(&p, o->isa, see, &c);
    cfxi_quantize_observer_count(&o->not_finite, c.bad);
    if (c.range[0] > c.range[1])
        return;
    if (!c.count) {
        begin(&c);
        set_limits(&c, c.range[0] < o->low[0] ? c.range[0] : o->low[0],
                   c.range[1] > o->high[0] ? c.range[1] : o->high[0]);
        cfxi_quantize_walk(&p, o->isa, count_again, &c);
    }
    flush(&c);
    add_fresh(o, c.limits);
    cfxi_quantize_observer_count(&o->calls, 1);
}

void cfxi_quantize_merge_histogram(cfx_observer *o, const cfx_observer *from)
{
    const float other[2] = {from->low[0], from->high[0]};
    const float both[2] = {other[0] < o->low[0] ? other[0] : o->low[0],
                           other[1] > o->high[0] ? other[1] : o->high[0]};
    rebin(o, from->histogram, other, both, o->fresh);
    add_fresh(o, both);
}
