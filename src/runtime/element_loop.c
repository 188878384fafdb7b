/* element_loop.c - element by element: the layout of results, and the rows that kernels work
 * through. */
#include "runtime_impl.h"

/* ---- layout of results --------------------------------------------------------------------- */

/* Whether dimension `inner` should lie outside `outer`: 1 yes, -1 no, 0 the operands do not say. */
static int should_swap(const cfx_tensor *const *tensors, size_t n, const int64_t *sizes,
                       size_t ndim, size_t inner, size_t outer)
{
    for (size_t k = 0; k < n; k++) {
        const cfx_tensor *t = tensors[k];
        size_t skip = t ? ndim - t->ndim : ndim;
        if (inner < skip || outer < skip)
            continue;
        int64_t a = t->size[inner - skip] == 1 && sizes[inner] != 1 ? 0 : t->stride[inner - skip];
        int64_t b = t->size[outer - skip] == 1 && sizes[outer] != 1 ? 0 : t->stride[outer - skip];
        if (a == 0 || b == 0)
            continue;
        a = a < 0 ? -a : a;
        b = b < 0 ? -b : b;
        if (a != b)
            return a > b ? 1 : -1;
        if (sizes[inner] > sizes[outer])
            return 1;
    }
    return 0;
}

/* The dimensions of a result, outermost first. */
static void order_dims(const cfx_tensor *const *tensors, size_t n, const int64_t *sizes,
                       size_t ndim, uint8_t order[CFX_MAX_DIMS])
{
    uint8_t perm[CFX_MAX_DIMS];  /* innermost first */
    for (size_t d = 0; d < ndim; d++)
        perm[d] = (uint8_t)(ndim - 1 - d);
    for (size_t i = 1; i < ndim; i++) {
        size_t at = i;
        for (size_t j = i; j-- > 0;) {
            int swap = should_swap(tensors, n, sizes, ndim, perm[j], perm[at]);
            if (swap < 0)
                break;
            if (swap > 0) {
                uint8_t moved = perm[at];
                perm[at] = perm[j];
                perm[j] = moved;
                at = j;
            }
        }
    }
    for (size_t d = 0; d < ndim; d++)
        order[d] = perm[ndim - 1 - d];
}

typedef struct likeness {
    bool contiguous;     /* all of them */
    bool channels_last;
    bool same_shape;
    bool known;          /* none is abstract */
} likeness;

static likeness compare(const cfx_tensor *const *tensors, size_t n, const int64_t *sizes,
                        size_t ndim)
{
    likeness l = {true, true, true, true};
    for (size_t k = 0; k < n; k++) {
        const cfx_tensor *t = tensors[k];
        if (!t)
            continue;
        l.known = l.known && t->storage;
        l.same_shape = l.same_shape && t->ndim == ndim &&
                       memcmp(t->size, sizes, ndim * sizeof *sizes) == 0;
        l.contiguous = l.contiguous && cfx_tensor_is_contiguous(t);
        l.channels_last = l.channels_last && cfxi_tensor_is_channels_last(t);
    }
    return l;
}

cfx_status cfxi_rt_result_broadcast(cfxi_call *c, size_t i, cfx_dtype dtype,
                                    const cfx_tensor *const *tensors, size_t n)
{
    static const uint8_t channels_last[2][5] = {{0, 2, 3, 1}, {0, 2, 3, 4, 1}};
    int64_t sizes[CFX_MAX_DIMS];
    uint8_t order[CFX_MAX_DIMS];
    size_t ndim;
    CFX_TRY(cfxi_rt_broadcast(c, tensors, n, sizes, &ndim));
    CFX_TRY(cfxi_rt_result(c, i, dtype, sizes, ndim));
    likeness l = compare(tensors, n, sizes, ndim);
    if (!l.known || ndim < 2 || (l.same_shape && l.contiguous))
        return CFX_OK;
    const uint8_t *chosen = order;
    if (l.same_shape && l.channels_last)
        chosen = channels_last[ndim - 4];
    else
        order_dims(tensors, n, sizes, ndim, order);
    cfxi_tensor_ordered_strides(sizes, ndim, cfx_dtype_size(dtype), chosen,
                                cfxi_rt_result_at(c, i)->stride);
    return CFX_OK;
}

cfx_status cfxi_rt_result_like(cfxi_call *c, size_t i, cfx_dtype dtype, const cfx_tensor *t)
{
    return cfxi_rt_result_broadcast(c, i, dtype, &t, 1);
}

/* ---- rows ---------------------------------------------------------------------------------- */

typedef struct plan {
    size_t num;   /* operands */
    size_t ndim;
    int64_t size[CFX_MAX_DIMS];  /* innermost first */
    int64_t step[CFX_MAX_DIMS][CFXI_MOST_OPERANDS];
    char *data[CFXI_MOST_OPERANDS];
    cfxi_plane_fn *fn;
    void *ctx;
} plan;

static int64_t step_of(const cfx_tensor *t, size_t d, size_t ndim)
{
    size_t skip = ndim - t->ndim;
    return d < skip || t->size[d - skip] == 1 ? 0 : t->stride[d - skip];
}

/* Whether dimension a of the plan lies inside dimension b. */
static bool lies_inside(const plan *p, size_t a, size_t b)
{
    for (size_t k = 0; k < p->num; k++) {
        int64_t sa = p->step[a][k] < 0 ? -p->step[a][k] : p->step[a][k];
        int64_t sb = p->step[b][k] < 0 ? -p->step[b][k] : p->step[b][k];
        if (sa != 0 && sb != 0 && sa != sb)
            return sa < sb;
    }
    return false;
}

static void swap_dims(plan *p, size_t a, size_t b)
{
    int64_t size = p->size[a];
    int64_t step[CFXI_MOST_OPERANDS];
    p->size[a] = p->size[b];
    p->size[b] = size;
    memcpy(step, p->step[a], sizeof step);
    memcpy(p->step[a], p->step[b], sizeof step);
    memcpy(p->step[b], step, sizeof step);
}

/* Dimensions that follow one another without a gap in all operands become one. */
static void coalesce(plan *p)
{
    size_t to = 0;
    for (size_t d = 1; d < p->ndim; d++) {
        bool joins = true;
        for (size_t k = 0; k < p->num; k++)
            joins = joins && p->step[d][k] == p->step[to][k] * p->size[to];
        if (joins) {
            p->size[to] *= p->size[d];
        } else if (++to != d) {
            p->size[to] = p->size[d];
            memcpy(p->step[to], p->step[d], sizeof p->step[to]);
        }
    }
    p->ndim = p->ndim ? to + 1 : 0;
}

enum { SHORT_ROW = 16 };

static void make_plan(plan *p, const cfx_tensor *const *operands, bool by_rows)
{
    const cfx_tensor *first = operands[0];
    for (size_t d = first->ndim; d-- > 0;) {
        if (first->size[d] == 1)
            continue;
        p->size[p->ndim] = first->size[d];
        for (size_t k = 0; k < p->num; k++)
            p->step[p->ndim][k] = step_of(operands[k], d, first->ndim);
        for (size_t at = p->ndim++; at > 0 && lies_inside(p, at, at - 1); at--)
            swap_dims(p, at, at - 1);
    }
    coalesce(p);
    /* A long strided row is better than many short ones. */
    size_t longest = 0;
    for (size_t d = 1; d < p->ndim; d++)
        if (p->size[d] > p->size[longest])
            longest = d;
    if (by_rows && longest > 0 && p->size[0] < SHORT_ROW)
        swap_dims(p, 0, longest);
    for (; p->ndim < 2; p->ndim++)
        p->size[p->ndim] = 1;
}

/* Elements begin..end of the order that the plan has. */
static void run_piece(void *ctx, int64_t begin, int64_t end)
{
    const plan *p = ctx;
    int64_t at[CFX_MAX_DIMS];
    char *data[CFXI_MOST_OPERANDS];
    int64_t rest = begin;
    memcpy(data, p->data, sizeof data);
    for (size_t d = 0; d < p->ndim; d++) {
        at[d] = rest % p->size[d];
        rest /= p->size[d];
        for (size_t k = 0; k < p->num; k++)
            data[k] += at[d] * p->step[d][k];
    }
    while (begin < end) {
        int64_t n = p->size[0] - at[0];
        n = n > end - begin ? end - begin : n;
        int64_t rows = n < p->size[0] ? 1 : (end - begin) / n;
        rows = rows > p->size[1] - at[1] ? p->size[1] - at[1] : rows;
        p->fn(p->ctx, n, rows, data, p->step[0], p->step[1]);
        begin += n * rows;
        for (size_t k = 0; k < p->num; k++)
            data[k] += rows * p->step[1][k] - at[0] * p->step[0][k];
        at[0] = 0;
        at[1] += rows;
        for (size_t d = 1; d < p->ndim && at[d] == p->size[d]; d++) {
            at[d] = 0;
            for (size_t k = 0; k < p->num; k++)
                data[k] -= p->step[d][k] * p->size[d];
            if (d + 1 == p->ndim)
                break;
            at[d + 1]++;
            for (size_t k = 0; k < p->num; k++)
                data[k] += p->step[d + 1][k];
        }
    }
}

static void run_plan(cfx_runtime *rt, plan *p, const cfx_tensor *const *operands, int64_t grain,
                     bool by_rows)
{
    int64_t all = cfxi_tensor_numel(operands[0]);
    if (all == 0)
        return;
    for (size_t k = 0; k < p->num; k++)
        p->data[k] = operands[k]->data;
    make_plan(p, operands, by_rows);
    if (all <= grain)
        run_piece(p, 0, all);
    else
        cfxi_rt_parallel(rt, all, grain, run_piece, p);
}

void cfxi_rt_loop_planes(cfx_runtime *rt, const cfx_tensor *const *operands, size_t n,
                         int64_t grain, cfxi_plane_fn *fn, void *ctx)
{
    plan p = {.num = n, .fn = fn, .ctx = ctx};
    run_plan(rt, &p, operands, grain, false);
}

typedef struct by_row {
    cfxi_loop_fn *fn;
    void *ctx;
    size_t num;
} by_row;

static void each_row(void *ctx, int64_t n, int64_t rows, char *const *at, const int64_t *step,
                     const int64_t *row_step)
{
    const by_row *b = ctx;
    char *data[CFXI_MOST_OPERANDS];
    memcpy(data, at, b->num * sizeof *data);
    for (int64_t r = 0; r < rows; r++) {
        b->fn(b->ctx, n, data, step);
        for (size_t k = 0; k < b->num; k++)
            data[k] += row_step[k];
    }
}

void cfxi_rt_loop(cfx_runtime *rt, const cfx_tensor *const *operands, size_t n, int64_t grain,
                  cfxi_loop_fn *fn, void *ctx)
{
    by_row b = {fn, ctx, n};
    plan p = {.num = n, .fn = each_row, .ctx = &b};
    run_plan(rt, &p, operands, grain, true);
}
