/* observer_search.c - which part of a histogram's range to keep: the one that loses least when its
 * elements become integers, by PyTorch's search (HistogramObserver); or one without the outermost
 * elements.
 *
 * The search goes inward from both ends, by steps of the part of all elements that is cut off, and
 * stops when the next step would lose more. What is lost is the square of the distance to the
 * nearest integer's value, if elements are evenly spread over each bin. Numbers are rounded where
 * PyTorch rounds them, so that both stop at the same place.
 */
#include "observer_impl.h"

#include <math.h>

static const double step_size = 1e-5;

/* ---- the loss ------------------------------------------------------------------------------- */

/* The integral of the squares between two distances. */
static inline float square_sum(float begin, float end)
{
    return (end * end * end - begin * begin * begin) / 3;
}

/* NaN, of bins that are too narrow for a float, is 0. */
static inline double within(double x, double most) { return x > 0 ? (x < most ? x : most) : 0; }

/* Of bins first..last as the range of the integers, for all elements. */
static double loss(const cfx_observer *o, double integers, int64_t first, int64_t last)
{
    const int64_t bins = o->spec.bins;
    const double bin_width = ((double)o->high[0] - (double)o->low[0]) / (double)bins;
    const double step = bin_width * (double)(last - first + 1) / integers;
    const float bin = (float)bin_width, width = (float)step, half = (float)(step / 2);
    const float whole = square_sum(-half, half);
    double sum = 0;
    if (step == 0)
        return 0;
    for (int64_t i = 0; i < bins; i++) {
        const float begin = (float)(i - first) * bin;
        const float end = begin + bin;
        const float from = (float)(int64_t)within((double)begin / (double)width, integers - 1);
        const float to = (float)(int64_t)within((double)end / (double)width, integers - 1);
        const float density = o->histogram[i] / bin;
        const float before = density * square_sum(begin - (from + 0.5f) * width, half);
        const float between = (to - from - 1) * (density * whole);
        const float after = density * square_sum(-half, end - (to * width + half));
        sum += (double)(before + between + after);
    }
    return sum;
}

/* ---- the search ----------------------------------------------------------------------------- */

typedef struct search {
    const cfx_observer *o;
    double integers;
    double total;
    float *sums;           /* of the first i + 1 bins */
    int64_t first, last;   /* the bins that are kept */
    double alpha, beta;    /* the parts of all elements that the ends cut off */
    double least;          /* the loss so far */
} search;

static double add_up(const cfx_observer *o, float *sums)
{
    double sum = 0;
    for (int64_t i = 0; i < o->spec.bins; i++) {
        sum += (double)o->histogram[i];
        sums[i] = (float)sum;
    }
    return (double)sums[o->spec.bins - 1];
}

/* One step inward, from the end that has more bins to give; false if that loses more. */
static bool step_inward(search *s)
{
    const double alpha = s->alpha + step_size, beta = s->beta - step_size;
    const float low = (float)(alpha * s->total), high = (float)(beta * s->total);
    int64_t left = s->first, right = s->last;
    while (left < s->last && s->sums[left] < low)
        left++;
    while (right > s->first && s->sums[right] > high)
        right--;
    if (left - s->first > s->last - right) {
        s->alpha = alpha;
        right = s->last;
    } else {
        s->beta = beta;
        left = s->first;
    }
    if (left == s->first && right == s->last)
        return true;
    const double now = loss(s->o, s->integers, left, right);
    if (now > s->least)
        return false;
    s->least = now;
    s->first = left;
    s->last = right;
    return true;
}

void cfxi_quantize_search(const cfx_observer *o, float range[2])
{
    const float bin = (o->high[0] - o->low[0]) / (float)o->spec.bins;
    search s = {.o = o, .integers = ldexp(1, 8 * (int)cfx_dtype_size(o->spec.dtype)),
                .sums = o->fresh, .last = o->spec.bins - 1, .beta = 1, .least = INFINITY};
    s.total = add_up(o, s.sums);
    while (s.alpha < s.beta && step_inward(&s))
        continue;
    range[0] = o->low[0] + bin * (float)s.first;
    range[1] = o->low[0] + bin * (float)(s.last + 1);
}

/* ---- percentiles ---------------------------------------------------------------------------- */

/* Where so many elements are below, if they are evenly spread over each bin. */
static double place_of(const cfx_observer *o, double below)
{
    const double bin = ((double)o->high[0] - (double)o->low[0]) / (double)o->spec.bins;
    double sum = 0;
    for (int64_t i = 0; i < o->spec.bins; i++) {
        const double here = (double)o->histogram[i];
        if (here > 0 && sum + here >= below)
            return (double)o->low[0] + bin * ((double)i + (below - sum) / here);
        sum += here;
    }
    return (double)o->high[0];
}

void cfxi_quantize_percentile(const cfx_observer *o, float range[2])
{
    double total = 0;
    for (int64_t i = 0; i < o->spec.bins; i++)
        total += (double)o->histogram[i];
    const double cut = total * (1 - o->spec.percentile / 100) / 2;
    range[0] = cut > 0 ? (float)place_of(o, cut) : o->low[0];
    range[1] = cut > 0 ? (float)place_of(o, total - cut) : o->high[0];
}
