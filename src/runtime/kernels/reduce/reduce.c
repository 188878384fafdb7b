/* reduce.c - reductions over any dimensions, and work along one.
 *
 * The dimensions that are kept number the results; those that are reduced, the elements of each.
 * If the elements that lie next to each other belong to one result, a run of them goes into one
 * accumulator; if they belong to neighbouring results, a row of them goes into a row of
 * accumulators: memory is read in its order either way. Where there are fewer results than work
 * for the threads, the elements are cut into pieces with accumulators of their own, merged in
 * order at the end; how they are cut depends on the sizes alone, so results do not depend on the
 * number of threads.
 */
#include "reduce_impl.h"

/* ---- shapes -------------------------------------------------------------------------------- */

static cfx_status add_dim(cfxi_call *c, int64_t dim, size_t ndim, uint32_t *mask)
{
    size_t d;
    CFX_TRY(cfxi_rt_dim(c, dim, ndim, &d));
    if (*mask & 1u << d)
        return cfxi_fail(c, CFX_E_SHAPE, "dim %zu appears multiple times in the list of dims", d);
    *mask |= 1u << d;
    return CFX_OK;
}

cfx_status cfxi_reduce_reduced_dims(cfxi_call *c, size_t arg, size_t ndim, bool empty_is_all,
                                    uint32_t *mask)
{
    const uint32_t all = (1u << (ndim ? ndim : 1)) - 1;
    *mask = 0;
    if (cfxi_rt_is_none(c, arg)) {
        *mask = all;
        return CFX_OK;
    }
    if (c->args[arg].kind == CFX_DATUM_INT)
        return add_dim(c, cfxi_rt_int(c, arg), ndim, mask);
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, arg, &n);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(add_dim(c, items[i].as.i, ndim, mask));
    if (n == 0 && empty_is_all)
        *mask = all;
    return CFX_OK;
}

cfx_status cfxi_reduce_reduced_result(cfxi_call *c, size_t i, cfx_dtype dtype, const cfx_tensor *x,
                                      uint32_t mask, bool keepdim)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t n = 0;
    for (size_t d = 0; d < x->ndim; d++) {
        if (!(mask & 1u << d))
            sizes[n++] = x->size[d];
        else if (keepdim)
            sizes[n++] = 1;
    }
    return cfxi_rt_result(c, i, dtype, sizes, n);
}

cfx_status cfxi_reduce_reduced_not_empty(cfxi_call *c, const cfx_tensor *x, uint32_t mask,
                                         const char *name)
{
    for (size_t d = 0; d < x->ndim; d++)
        if (mask & 1u << d && x->size[d] == 0)
            return cfxi_fail(c, CFX_E_INDEX,
                             "%s(): Expected reduction dim %zu to have non-zero size.", name, d);
    return CFX_OK;
}

/* ---- how memory is walked ------------------------------------------------------------------ */

typedef struct walk {
    size_t ndim;
    int64_t size[CFX_MAX_DIMS];    /* outermost first */
    int64_t stride[CFX_MAX_DIMS];
    int64_t count;
} walk;

typedef struct position {
    int64_t at[CFX_MAX_DIMS];
    int64_t offset;
} position;

/* Joins a dimension to the one before if they are one run of memory. */
static void walk_add(walk *w, int64_t size, int64_t stride)
{
    w->count *= size;
    if (size == 1)
        return;
    if (w->ndim && w->stride[w->ndim - 1] == size * stride) {
        w->size[w->ndim - 1] *= size;
        w->stride[w->ndim - 1] = stride;
        return;
    }
    w->size[w->ndim] = size;
    w->stride[w->ndim++] = stride;
}

static int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

/* The kept dimensions as they are numbered; the reduced ones by their strides. */
static void walk_split(const cfx_tensor *x, uint32_t mask, walk *kept, walk *reduced)
{
    size_t order[CFX_MAX_DIMS];
    size_t n = 0;
    *kept = *reduced = (walk){.count = 1};
    for (size_t d = 0; d < x->ndim; d++) {
        if (!(mask & 1u << d)) {
            walk_add(kept, x->size[d], x->stride[d]);
            continue;
        }
        size_t at = n++;
        for (; at && distance(x->stride[order[at - 1]]) < distance(x->stride[d]); at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (size_t i = 0; i < n; i++)
        walk_add(reduced, x->size[order[i]], x->stride[order[i]]);
}

static position walk_seek(const walk *w, int64_t i)
{
    position p = {.offset = 0};
    for (size_t d = w->ndim; d-- > 0;) {
        p.at[d] = i % w->size[d];
        i /= w->size[d];
        p.offset += p.at[d] * w->stride[d];
    }
    return p;
}

/* n elements further along the last dimension, which must have them. */
static void walk_next(const walk *w, position *p, int64_t n)
{
    if (w->ndim == 0)
        return;
    size_t d = w->ndim - 1;
    p->at[d] += n;
    p->offset += n * w->stride[d];
    while (d > 0 && p->at[d] == w->size[d]) {
        p->offset += w->stride[d - 1] - w->size[d] * w->stride[d];
        p->at[d--] = 0;
        p->at[d]++;
    }
}

/* ---- reductions ---------------------------------------------------------------------------- */

enum {
    ROW = 256,          /* accumulators side by side */
    LEAST_ROW = 16,     /* below that, runs with strides are quicker */
    PIECE = 32768,      /* elements that are worth a thread's while */
    MOST_PIECES = 64
};

typedef struct job {
    const cfxi_reduction *k;
    const cfx_tensor *x;
    walk kept;
    walk reduced;
    bool rows;
    int64_t row;        /* results in one item of work */
    int64_t per_line;   /* items in a run of the last kept dimension */
    int64_t pieces;     /* of each item */
    char *partial;      /* accumulators, if there are several pieces */
} job;

static void add_run(const job *j, const char *base, int64_t begin, int64_t end, char *acc)
{
    _Alignas(64) double buf[2 * CFXI_RUN];
    const walk *w = &j->reduced;
    position p = walk_seek(w, begin);
    int64_t line = w->ndim ? w->size[w->ndim - 1] : 1;
    int64_t stride = w->ndim ? w->stride[w->ndim - 1] : 0;
    while (begin < end) {
        int64_t n = line - (w->ndim ? p.at[w->ndim - 1] : 0);
        n = n < end - begin ? n : end - begin;
        n = n < CFXI_RUN ? n : CFXI_RUN;
        const void *x = cfxi_reduce_read_run(j->k->rt->isa, j->k->compute, buf,
                                             (cfx_dtype)j->x->dtype, base + p.offset, stride, n);
        j->k->reducer->run(j->k, acc, x, n, begin);
        walk_next(w, &p, n);
        begin += n;
    }
}

static void add_rows(const job *j, const char *base, int64_t begin, int64_t end, int64_t width,
                     char *acc)
{
    _Alignas(64) double buf[2 * ROW];
    const walk *w = &j->reduced;
    const cfxi_reducer *r = j->k->reducer;
    cfx_dtype dtype = (cfx_dtype)j->x->dtype;
    int64_t stride = j->kept.stride[j->kept.ndim - 1];
    size_t last = w->ndim - 1;
    bool direct = r->four && dtype == cfxi_reduce_run_dtype(j->k->compute) &&
                  stride == (int64_t)cfx_dtype_size(dtype);
    position p = walk_seek(w, begin);
    while (begin < end) {
        const char *at = base + p.offset;
        int64_t step = 1;
        if (direct && end - begin >= 4 && w->size[last] - p.at[last] >= 4) {
            r->four(j->k, acc, at, w->stride[last], width);
            step = 4;
        } else {
            const void *x =
                cfxi_reduce_read_run(j->k->rt->isa, j->k->compute, buf, dtype, at, stride, width);
            r->row(j->k, acc, x, width, begin);
        }
        walk_next(w, &p, step);
        begin += step;
    }
}

/* The first result of an item, and how many it has. */
static int64_t item_first(const job *j, int64_t item, int64_t *width)
{
    if (!j->rows) {
        *width = 1;
        return item;
    }
    int64_t line = j->kept.size[j->kept.ndim - 1];
    int64_t at = item % j->per_line * j->row;
    *width = line - at < j->row ? line - at : j->row;
    return item / j->per_line * line + at;
}

/* Accumulates piece number `piece` of an item. */
static void add_piece(const job *j, int64_t item, int64_t piece, char *acc)
{
    int64_t width;
    int64_t n = j->reduced.count;
    int64_t length = (n + j->pieces - 1) / j->pieces;
    int64_t begin = piece * length < n ? piece * length : n;
    int64_t end = begin + length < n ? begin + length : n;
    const char *base = j->x->data + walk_seek(&j->kept, item_first(j, item, &width)).offset;
    for (int64_t i = 0; i < width; i++)
        j->k->reducer->begin(j->k, acc + (size_t)i * j->k->reducer->size);
    if (begin == end)
        return;
    if (j->rows)
        add_rows(j, base, begin, end, width, acc);
    else
        add_run(j, base, begin, end, acc);
}

static void store_item(const job *j, int64_t item, const char *acc)
{
    int64_t width;
    int64_t first = item_first(j, item, &width);
    for (int64_t i = 0; i < width; i++)
        j->k->reducer->store(j->k, acc + (size_t)i * j->k->reducer->size, first + i);
}

/* The same where the elements of a result are one line of memory: nothing to look up. */
static void whole_lines(const job *j, int64_t begin, int64_t end)
{
    _Alignas(64) double buf[2 * CFXI_RUN];
    _Alignas(16) char acc[CFXI_ACCUMULATOR];
    const cfxi_reducer *r = j->k->reducer;
    cfx_dtype dtype = (cfx_dtype)j->x->dtype;
    cfx_isa isa = j->k->rt->isa;
    int64_t count = j->reduced.count;
    int64_t stride = j->reduced.ndim ? j->reduced.stride[0] : 0;
    position p = walk_seek(&j->kept, begin);
    for (; begin < end; begin++) {
        const char *at = j->x->data + p.offset;
        r->begin(j->k, acc);
        for (int64_t first = 0; first < count; first += CFXI_RUN) {
            int64_t n = count - first < CFXI_RUN ? count - first : CFXI_RUN;
            const void *x = cfxi_reduce_read_run(isa, j->k->compute, buf, dtype,
                                                 at + first * stride, stride, n);
            r->run(j->k, acc, x, n, first);
        }
        r->store(j->k, acc, begin);
        walk_next(&j->kept, &p, 1);
    }
}

static void whole_items(void *ctx, int64_t begin, int64_t end)
{
    _Alignas(64) char acc[ROW * CFXI_ACCUMULATOR];
    const job *j = ctx;
    if (!j->rows && j->reduced.ndim <= 1) {
        whole_lines(j, begin, end);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        add_piece(j, item, 0, acc);
        store_item(j, item, acc);
    }
}

static void pieces_of_items(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    size_t size = (size_t)j->row * j->k->reducer->size;
    for (int64_t i = begin; i < end; i++)
        add_piece(j, i / j->pieces, i % j->pieces, j->partial + (size_t)i * size);
}

static void merge_items(const job *j, int64_t items)
{
    size_t one = j->k->reducer->size;
    size_t size = (size_t)j->row * one;
    for (int64_t item = 0; item < items; item++) {
        char *acc = j->partial + (size_t)(item * j->pieces) * size;
        for (int64_t piece = 1; piece < j->pieces; piece++)
            for (size_t i = 0; i < size; i += one)
                j->k->reducer->merge(j->k, acc + i, acc + (size_t)piece * size + i);
        store_item(j, item, acc);
    }
}

cfx_status cfxi_reduce(cfxi_call *c, const cfx_tensor *x, uint32_t mask, cfxi_reduction *k)
{
    job j = {.k = k, .x = x, .row = 1, .per_line = 1, .pieces = 1};
    walk_split(x, mask, &j.kept, &j.reduced);
    k->rt = c->rt;
    k->floats = cfxi_reduce_floats_of(c->rt->isa);
    k->count = j.reduced.count;
    if (j.kept.count == 0)
        return CFX_OK;
    size_t kd = j.kept.ndim;
    size_t rd = j.reduced.ndim;
    j.rows = kd && rd && j.kept.size[kd - 1] >= LEAST_ROW &&
             distance(j.kept.stride[kd - 1]) < distance(j.reduced.stride[rd - 1]);
    int64_t items = j.kept.count;
    if (j.rows) {
        int64_t line = j.kept.size[kd - 1];
        j.row = line < ROW ? line : ROW;
        j.per_line = (line + j.row - 1) / j.row;
        items = items / line * j.per_line;
    }
    int64_t work = j.reduced.count * j.row;
    if (items < 16 && work >= 2 * PIECE && j.reduced.count > 1) {
        j.pieces = work / PIECE < MOST_PIECES ? work / PIECE : MOST_PIECES;
        j.pieces = j.pieces < j.reduced.count ? j.pieces : j.reduced.count;
    }
    if (j.pieces == 1) {
        cfxi_rt_parallel(c->rt, items, work > PIECE ? 1 : PIECE / (work + 1) + 1, whole_items, &j);
        return CFX_OK;
    }
    j.partial = cfxi_rt_scratch(c->rt, (size_t)(items * j.pieces * j.row) * k->reducer->size);
    if (!j.partial)
        return cfxi_base_nomem(c->err);
    cfxi_rt_parallel(c->rt, items * j.pieces, 1, pieces_of_items, &j);
    merge_items(&j, items);
    cfxi_rt_scratch_free(c->rt, j.partial);
    return CFX_OK;
}

/* ---- lanes --------------------------------------------------------------------------------- */

enum { MOST_LANES = 8 };  /* tensors */

typedef struct lanes {
    cfx_tensor *const *tensors;
    size_t n;
    size_t dim;
    cfxi_lane_fn *fn;
    void *ctx;
    char *scratch;
    size_t scratch_size;
    int64_t per_slot;
    int64_t count;
} lanes;

static void lane_begin(const lanes *l, size_t t, int64_t i, char **at)
{
    const cfx_tensor *x = l->tensors[t];
    *at = x->data;
    for (size_t d = x->ndim; d-- > 0;) {
        if (d == l->dim)
            continue;
        *at += i % x->size[d] * x->stride[d];
        i /= x->size[d];
    }
}

static void some_slots(void *ctx, int64_t begin, int64_t end)
{
    const lanes *l = ctx;
    char *at[MOST_LANES];
    for (int64_t slot = begin; slot < end; slot++) {
        int64_t last = (slot + 1) * l->per_slot < l->count ? (slot + 1) * l->per_slot : l->count;
        for (int64_t i = slot * l->per_slot; i < last; i++) {
            for (size_t t = 0; t < l->n; t++)
                lane_begin(l, t, i, &at[t]);
            l->fn(l->ctx, at, l->scratch + (size_t)slot * l->scratch_size, i);
        }
    }
}

cfx_status cfxi_reduce_lanes(cfxi_call *c, cfx_tensor *const *tensors, size_t n, size_t dim,
                             int64_t cost, size_t scratch_size, cfxi_lane_fn *fn, void *ctx)
{
    lanes l = {tensors, n, dim, fn, ctx, NULL, (scratch_size + 63) / 64 * 64, 0, 1};
    for (size_t d = 0; d < tensors[0]->ndim; d++)
        if (d != dim)
            l.count *= tensors[0]->size[d];
    if (l.count == 0)
        return CFX_OK;
    /* Lanes are dealt to slots, each with its scratch: a few for every thread. */
    int64_t slots = 4 * (int64_t)cfxi_rt_pool_threads(c->rt->pool);
    int64_t total;
    if (__builtin_mul_overflow(l.count, cost, &total) || total > PIECE)
        slots = slots < l.count ? slots : l.count;
    else
        slots = 1;
    l.per_slot = (l.count + slots - 1) / slots;
    if (l.scratch_size) {
        size_t size;
        if (!cfxi_base_mul_size((size_t)slots, l.scratch_size, 0, &size) ||
            !(l.scratch = cfxi_rt_scratch(c->rt, size)))
            return cfxi_base_nomem(c->err);
    }
    cfxi_rt_parallel(c->rt, slots, 1, some_slots, &l);
    cfxi_rt_scratch_free(c->rt, l.scratch);
    return CFX_OK;
}
