/* picked_slices.c - moving the slices that indices pick. */
#include "picked_slices_impl.h"

#include <math.h>

/* ---- joining elements ---------------------------------------------------------------------- */

static double larger(double a, double b) { return a != a || a > b ? a : b; }  /* NaN stays */
static double smaller(double a, double b) { return a != a || a < b ? a : b; }

static double join_floats(cfxi_join how, double a, double b)
{
    switch (how) {
    case CFXI_JOIN_SET: return b;
    case CFXI_JOIN_ADD: return a + b;
    case CFXI_JOIN_MUL: return a * b;
    case CFXI_JOIN_MAX: return larger(a, b);
    case CFXI_JOIN_MIN: return smaller(a, b);
    }
    return b;
}

static int64_t join_ints(cfxi_join how, int64_t a, int64_t b)
{
    switch (how) {
    case CFXI_JOIN_SET: return b;
    case CFXI_JOIN_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case CFXI_JOIN_MUL: return cfxi_rt_wrap_mul(a, b);
    case CFXI_JOIN_MAX: return a > b ? a : b;
    case CFXI_JOIN_MIN: return a < b ? a : b;
    }
    return b;
}

static void join_complex(cfxi_join how, cfx_dtype dtype, char *a, const char *b)
{
    double x[2];
    double y[2];
    cfxi_tensor_load_complex(dtype, a, x);
    cfxi_tensor_load_complex(dtype, b, y);
    double sum[2] = {x[0] + y[0], x[1] + y[1]};
    double product[2] = {x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]};
    cfxi_tensor_store_complex(dtype, a, how == CFXI_JOIN_ADD   ? sum
                                 : how == CFXI_JOIN_MUL ? product
                                                        : y);
}

static void add_float32(int64_t n, char *a, int64_t a_step, const char *b, int64_t b_step)
{
    if (a_step == 4 && b_step == 4) {
        for (int64_t i = 0; i < n; i++)
            ((float *)a)[i] += ((const float *)b)[i];
        return;
    }
    for (; n > 0; n--, a += a_step, b += b_step)
        *(float *)a += *(const float *)b;
}

void cfxi_index_join_run(cfx_dtype dtype, cfxi_join how, int64_t n, char *a, int64_t a_step,
                         const char *b, int64_t b_step)
{
    if (dtype == CFX_DTYPE_FLOAT32 && how == CFXI_JOIN_ADD) {
        add_float32(n, a, a_step, b, b_step);
        return;
    }
    for (; n > 0; n--, a += a_step, b += b_step) {
        if (cfx_dtype_is_complex(dtype))
            join_complex(how, dtype, a, b);
        else if (cfx_dtype_is_float(dtype))
            cfxi_tensor_store_float(dtype, a, join_floats(how, cfxi_tensor_load_float(dtype, a),
                                                          cfxi_tensor_load_float(dtype, b)));
        else
            cfxi_tensor_store_int(dtype, a, join_ints(how, cfxi_tensor_load_int(dtype, a),
                                                      cfxi_tensor_load_int(dtype, b)));
    }
}

/* ---- walking ------------------------------------------------------------------------------- */

void cfxi_index_walk_add(cfxi_walk *w, int64_t size, int64_t own, int64_t other)
{
    if (size == 1)
        return;
    size_t last = w->n - 1;
    if (w->n > 0 && w->own[last] == size * own && w->other[last] == size * other) {
        w->size[last] *= size;
        w->own[last] = own;
        w->other[last] = other;
        return;
    }
    w->size[w->n] = size;
    w->own[w->n] = own;
    w->other[w->n++] = other;
}

static int64_t walk_numel(const cfxi_walk *w)
{
    int64_t n = 1;
    for (size_t i = 0; i < w->n; i++)
        n *= w->size[i];
    return n;
}

/* The offsets of position `i` on both sides. */
static void walk_to(const cfxi_walk *w, int64_t i, int64_t *own, int64_t *other)
{
    *own = 0;
    *other = 0;
    for (size_t d = w->n; d-- > 0;) {
        *own += i % w->size[d] * w->own[d];
        *other += i % w->size[d] * w->other[d];
        i /= w->size[d];
    }
}

/* n elements from `b` to `a`. */
static void copy_run(size_t item, int64_t n, char *a, int64_t a_step, const char *b, int64_t b_step)
{
    if (a_step == (int64_t)item && b_step == (int64_t)item) {
        memcpy(a, b, (size_t)n * item);
        return;
    }
    for (; n > 0; n--, a += a_step, b += b_step) {
        switch (item) {
        case 1: *a = *b; break;
        case 2: memcpy(a, b, 2); break;
        case 4: memcpy(a, b, 4); break;
        case 8: memcpy(a, b, 8); break;
        default: memcpy(a, b, 16); break;
        }
    }
}

/* One slice: its inner dimensions from number d on. */
static void move_slice(const cfxi_picks *p, cfxi_pick_action action, size_t d, char *own,
                       char *other)
{
    const cfxi_walk *w = &p->inner;
    if (d + 1 < w->n) {
        for (int64_t i = 0; i < w->size[d]; i++)
            move_slice(p, action, d + 1, own + i * w->own[d], other + i * w->other[d]);
        return;
    }
    size_t item = cfx_dtype_size(p->dtype);
    int64_t n = w->n ? w->size[d] : 1;
    int64_t own_step = w->n ? w->own[d] : (int64_t)item;
    int64_t other_step = w->n ? w->other[d] : (int64_t)item;
    if (action == CFXI_PICK_GET)
        copy_run(item, n, other, other_step, own, own_step);
    else if (action == CFXI_PICK_PUT)
        copy_run(item, n, own, own_step, other, other_step);
    else
        cfxi_index_join_run(p->dtype, CFXI_JOIN_ADD, n, own, own_step, other, other_step);
}

typedef struct task {
    const cfxi_picks *picks;
    cfxi_pick_action action;
    char *own;
    char *other;
} task;

/* Single elements, the commonest case of small slices. */
static void get_elements(const cfxi_picks *p, int64_t first, int64_t n, const char *own,
                         char *other)
{
    size_t item = cfx_dtype_size(p->dtype);
    for (int64_t i = first; i < first + n; i++, other += p->step) {
        if (item == 4)
            memcpy(other, own + p->at[i], 4);
        else if (item == 8)
            memcpy(other, own + p->at[i], 8);
        else
            memcpy(other, own + p->at[i], item);
    }
}

/* Slices begin..end of all, outer dimensions first. */
static void run_range(void *ctx, int64_t begin, int64_t end)
{
    const task *t = ctx;
    const cfxi_picks *p = t->picks;
    while (begin < end) {
        int64_t pick = begin % p->n;
        int64_t n = p->n - pick < end - begin ? p->n - pick : end - begin;
        int64_t own;
        int64_t other;
        walk_to(&p->outer, begin / p->n, &own, &other);
        char *from = t->own + own;
        char *to = t->other + other + pick * p->step;
        if (p->inner.n == 0 && t->action == CFXI_PICK_GET)
            get_elements(p, pick, n, from, to);
        else
            for (int64_t i = 0; i < n; i++)
                move_slice(p, t->action, 0, from + p->at[pick + i], to + i * p->step);
        begin += n;
    }
}

void cfxi_index_picks_run(cfx_runtime *rt, const cfxi_picks *p, cfxi_pick_action action, char *own,
                          char *other)
{
    task t = {p, action, own, other};
    int64_t inner = walk_numel(&p->inner);
    int64_t slices = walk_numel(&p->outer) * p->n;
    if (inner == 0 || slices == 0)
        return;
    int64_t grain = 1 + (1 << 15) / inner;
    if (action == CFXI_PICK_GET)
        cfxi_rt_parallel(rt, slices, grain, run_range, &t);
    else  /* the last of several writes to one place must win, as must each sum */
        run_range(&t, 0, slices);
}

cfx_status cfxi_index_pick_along(cfxi_call *c, cfxi_picks *p, const cfx_tensor *x, size_t dim,
                                 const int64_t *indices, bool wraps, cfx_status refusal)
{
    int64_t size = x->ndim ? x->size[dim] : 1;
    int64_t stride = x->ndim ? x->stride[dim] : 0;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t index = indices[i];
        if (index >= size || index < (wraps ? -size : 0))
            return cfxi_fail(c, refusal,
                             "index %lld is out of bounds for dimension %zu with size %lld",
                             (long long)index, dim, (long long)size);
        p->at[i] += (index < 0 ? index + size : index) * stride;
    }
    return CFX_OK;
}
