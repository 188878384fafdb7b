/* python_sort.c - a stable sort that brings items into the order in which Python's sort does, also
 * where there is none, as with NaN: fewer than CFXI_SHORT_SORT items are inserted one by one. */
#include "base_impl.h"

static void turn_round(size_t *order, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        const size_t last = order[n - 1 - i];
        order[n - 1 - i] = order[i];
        order[i] = last;
    }
}

typedef struct sorting {
    cfxi_less_fn *less;
    void *ctx;
    bool failed;
} sorting;

static bool is_less(sorting *s, size_t a, size_t b)
{
    const int answer = s->failed ? 0 : s->less(s->ctx, a, b);
    s->failed = s->failed || answer < 0;
    return answer > 0;
}

/* How many from the first on are in order; if each is less than the one before, they are turned
 * round. */
static size_t first_run(sorting *s, size_t *order, size_t n)
{
    size_t i = 2;
    if (n < 2)
        return n;
    const bool down = is_less(s, order[1], order[0]);
    while (i < n && is_less(s, order[i], order[i - 1]) == down)
        i++;
    if (down)
        turn_round(order, i);
    return i;
}

/* Each of the others goes behind all that it is not less than, as halving finds them. */
static void insert_all(sorting *s, size_t *order, size_t n)
{
    for (size_t i = first_run(s, order, n); i < n && !s->failed; i++) {
        const size_t item = order[i];
        size_t low = 0;
        size_t high = i;
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (is_less(s, item, order[middle]))
                high = middle;
            else
                low = middle + 1;
        }
        memmove(order + low + 1, order + low, (i - low) * sizeof *order);
        order[low] = item;
    }
}

/* Two sorted runs, of `half` and of n - half, as one. */
static void merge(sorting *s, const size_t *from, size_t half, size_t n, size_t *to)
{
    size_t a = 0;
    size_t b = half;
    for (size_t i = 0; i < n; i++) {
        const bool second = a == half || (b < n && is_less(s, from[b], from[a]));
        to[i] = from[second ? b++ : a++];
    }
}

/* Longer and longer runs, from one array to the other; they end up in `order`. */
static void merge_all(sorting *s, size_t *order, size_t *room, size_t n)
{
    size_t *from = order;
    size_t *to = room;
    for (size_t run = 1; run < n && !s->failed; run *= 2) {
        for (size_t at = 0; at < n; at += 2 * run) {
            const size_t rest = n - at;
            merge(s, from + at, rest < run ? rest : run, rest < 2 * run ? rest : 2 * run, to + at);
        }
        size_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != order)
        memcpy(order, from, n * sizeof *order);
}

bool cfxi_base_sort(size_t *order, size_t *room, size_t n, bool reverse, cfxi_less_fn *less,
                    void *ctx)
{
    sorting s = {.less = less, .ctx = ctx};
    for (size_t i = 0; i < n; i++)
        order[i] = reverse ? n - 1 - i : i;
    if (n < CFXI_SHORT_SORT)
        insert_all(&s, order, n);
    else
        merge_all(&s, order, room, n);
    if (reverse)
        turn_round(order, n);
    return !s.failed;
}
