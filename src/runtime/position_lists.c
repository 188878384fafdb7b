/* position_lists.c - a tensor whose elements are those of another, at places listed for each
 * dimension: what padding and resizing to the nearest are. */
#include "spatial.h"

int64_t *cfxi_rt_places_new(cfxi_call *c, int64_t *map[CFX_MAX_DIMS])
{
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    int64_t all = 1;
    for (size_t d = 0; d < y->ndim; d++)
        all += y->size[d];
    int64_t *room = cfxi_rt_scratch(c->rt, (size_t)all * sizeof *room);
    int64_t *next = room;
    for (size_t d = 0; room && d < y->ndim; next += y->size[d++])
        map[d] = next;
    return room;
}

typedef struct places {
    const char *x;
    char *y;
    size_t unit;                   /* bytes of an element, */
    int64_t units;                 /* and how many of them are copied together */
    size_t item;                   /* their bytes */
    size_t ndim;                   /* at least 1; the last dimension is the innermost in memory */
    int64_t size[CFX_MAX_DIMS];
    int64_t xs[CFX_MAX_DIMS];
    int64_t ys[CFX_MAX_DIMS];
    int64_t *map[CFX_MAX_DIMS];
    int64_t lo;                    /* [lo, hi) of the last: neighbours in the input, too */
    int64_t hi;
    bool inside;                   /* no place of the last is outside of the input */
    const char *value;
    bool zero;                     /* it is */
} places;

static void fill(const places *p, char *to, int64_t n)
{
    if (p->zero) {
        memset(to, 0, (size_t)n * p->item);
        return;
    }
    for (int64_t i = 0; i < n * p->units; i++)
        memcpy(to + (size_t)i * p->unit, p->value, p->unit);
}

static void copy_places(const places *p, const char *from, char *to, int64_t begin, int64_t end)
{
    const int64_t *map = p->map[p->ndim - 1];
    const int64_t step = p->xs[p->ndim - 1];
    if (p->inside && p->item == sizeof(uint32_t) && step == (int64_t)sizeof(uint32_t)) {
        for (int64_t i = begin; i < end; i++)  /* a loop without a branch */
            memcpy(to + i * step, from + map[i] * step, sizeof(uint32_t));
        return;
    }
    if (p->item == sizeof(uint32_t) && p->units == 1) {
        for (int64_t i = begin; i < end; i++)
            memcpy(to + i * (int64_t)sizeof(uint32_t), map[i] < 0 ? p->value : from + map[i] * step,
                   sizeof(uint32_t));
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        if (map[i] < 0)
            fill(p, to + (size_t)i * p->item, 1);
        else
            memcpy(to + (size_t)i * p->item, from + map[i] * step, p->item);
    }
}

static void take_row(const places *p, const char *from, char *to)
{
    int64_t n = p->size[p->ndim - 1];
    int64_t step = p->xs[p->ndim - 1];
    if (!from) {
        fill(p, to, n);
        return;
    }
    copy_places(p, from, to, 0, p->lo);
    if (step == (int64_t)p->item)
        memcpy(to + (size_t)p->lo * p->item, from + p->map[p->ndim - 1][p->lo] * step,
               (size_t)(p->hi - p->lo) * p->item);
    else
        copy_places(p, from, to, p->lo, p->hi);
    copy_places(p, from, to, p->hi, n);
}

/* Where the rows of the last but one dimension begin that row number `row` is one of; *from is NULL
 * if they lie outside of the input. */
static void find_plane(const places *p, int64_t row, const char **from, char **to)
{
    *from = p->x;
    *to = p->y;
    if (p->ndim < 2)
        return;
    int64_t rest = row / p->size[p->ndim - 2];
    for (size_t d = p->ndim - 2; d-- > 0; rest /= p->size[d]) {
        const int64_t o = rest % p->size[d];
        *to += o * p->ys[d];
        *from = *from && p->map[d][o] >= 0 ? *from + p->map[d][o] * p->xs[d] : NULL;
    }
}

/* A row that takes what the one before took is copied from there. */
static void take_rows(void *ctx, int64_t begin, int64_t end)
{
    static const int64_t one[] = {0};
    const places *p = ctx;
    const size_t bytes = (size_t)p->size[p->ndim - 1] * p->item;
    const bool many = p->ndim > 1;
    const int64_t rows = many ? p->size[p->ndim - 2] : 1;
    const int64_t *map = many ? p->map[p->ndim - 2] : one;
    const int64_t xs = many ? p->xs[p->ndim - 2] : 0;
    const int64_t ys = many ? p->ys[p->ndim - 2] : 0;
    while (begin < end) {
        const char *from;
        char *to;
        find_plane(p, begin, &from, &to);
        int64_t o = begin % rows;
        const int64_t first = o;
        const int64_t last = rows - o < end - begin ? rows : o + (end - begin);
        begin += last - o;
        for (; o < last; o++) {
            if (o > first && map[o] == map[o - 1])
                memcpy(to + o * ys, to + (o - 1) * ys, bytes);
            else
                take_row(p, from && map[o] >= 0 ? from + map[o] * xs : NULL, to + o * ys);
        }
    }
}

/* The longest run of neighbours. */
static void find_run(places *p)
{
    const int64_t *map = p->map[p->ndim - 1];
    int64_t n = p->size[p->ndim - 1];
    p->lo = p->hi = 0;
    p->inside = true;
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && map[i] >= 0 && map[end] == map[i] + (end - i); end++)
            ;
        if (map[i] >= 0 && end - i > p->hi - p->lo) {
            p->lo = i;
            p->hi = end;
        }
        p->inside = p->inside && map[i] >= 0;
    }
}

/* A last dimension that is taken as a whole, and without gaps, becomes part of an item. */
static void merge_items(places *p, const cfx_tensor *x, const uint8_t *order)
{
    while (p->ndim > 1) {
        const size_t d = p->ndim - 1;
        const int64_t n = p->size[d];
        find_run(p);
        if (p->lo != 0 || p->hi != n || x->size[order[d]] != n || p->map[d][0] != 0 ||
            p->xs[d] != (int64_t)p->item || p->ys[d - 1] != n * (int64_t)p->item)
            return;
        p->units *= n;
        p->item *= (size_t)n;
        p->ndim--;
    }
}

void cfxi_rt_places_take(cfx_runtime *rt, cfx_tensor *y, const cfx_tensor *x,
                            int64_t *const map[CFX_MAX_DIMS], const char *value)
{
    uint8_t order[CFX_MAX_DIMS];  /* as the result lies in memory, outermost first */
    places p = {.x = x->data, .y = y->data, .unit = cfxi_tensor_itemsize(y), .units = 1,
                .item = cfxi_tensor_itemsize(y), .ndim = y->ndim, .value = value};
    if (y->ndim == 0) {
        memcpy(y->data, x->data, p.item);
        return;
    }
    for (uint8_t d = 0; d < y->ndim; d++) {
        uint8_t at = d;
        for (; at > 0 && y->stride[order[at - 1]] < y->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (size_t i = 0; i < y->ndim; i++) {
        p.size[i] = y->size[order[i]];
        p.xs[i] = x->stride[order[i]];
        p.ys[i] = y->stride[order[i]];
        p.map[i] = map[order[i]];
    }
    p.zero = value != NULL;
    for (size_t i = 0; value && i < p.unit; i++)
        p.zero = p.zero && value[i] == 0;
    merge_items(&p, x, order);
    find_run(&p);
    int64_t inner = p.size[p.ndim - 1] * p.units;
    cfxi_rt_parallel(rt, cfxi_tensor_numel(y) / inner, 1 + 32768 / inner, take_rows, &p);
}
