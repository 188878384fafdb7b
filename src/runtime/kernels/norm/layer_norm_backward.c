/* layer_norm_backward.c - gradients of layer_norm: by rows of the input, by columns of weight and
 * bias. */
#include "norm_backward_impl.h"

enum { GRAD, INPUT, SHAPE, MEAN, RSTD, WEIGHT, BIAS, MASK };

cfx_status cfxi_rule_native_layer_norm_backward(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    int64_t shape[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_norm_check_gradient(c, MASK));
    CFX_TRY(cfxi_rt_ints(c, SHAPE, shape, &n));
    bool fits = n > 0 && n <= x->ndim && (!w || w->ndim == n);
    for (size_t d = 0; fits && d < n; d++)
        fits = cfxi_rt_same_size(c, shape[d], x->size[x->ndim - n + d]) &&
               (!w || cfxi_rt_same_size(c, shape[d], w->size[d]));
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "normalized_shape must be the last sizes of the input, "
                         "and those of the weight");
    for (size_t i = MEAN; i <= RSTD; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        fits = t->ndim == x->ndim;
        for (size_t d = 0; fits && d < x->ndim; d++)
            fits = cfxi_rt_same_size(c, t->size[d], d < x->ndim - n ? x->size[d] : 1);
        if (!fits)
            return cfxi_fail(c, CFX_E_SHAPE, "'%s' must have one element for each row of the input",
                             i == MEAN ? "mean" : "rstd");
    }
    return cfxi_norm_gradient_results(c, MASK, w, shape, n);
}

enum { OPEN_GRAD, OPEN_INPUT, OPEN_MEAN, OPEN_RSTD, OPEN_WEIGHT, OPEN };
enum { COLUMNS = 256, ROWS = 32 };  /* of a piece; sums of ROWS rows are kept in the type of x */

typedef struct layers {
    cfxi_call *c;
    cfxi_float_rows rows;
    cfx_tensor *in[OPEN];  /* dense, in the type of computation; the weight may be NULL */
    cfx_tensor *dx;        /* or NULL */
    int64_t item;
    int64_t count;         /* rows */
    int64_t length;
} layers;

static const char *row_at(const layers *l, size_t which, int64_t row, int64_t column)
{
    return l->in[which]->data + (row * l->length + column) * l->item;
}

static double number(const layers *l, size_t which, int64_t i)
{
    return cfxi_tensor_load_float(l->rows.type, l->in[which]->data + i * l->item);
}

static void some_rows(void *ctx, int64_t begin, int64_t end)
{
    const layers *l = ctx;
    const cfxi_rows *rows = cfxi_reduce_rows(&l->rows);
    const void *w = l->in[OPEN_WEIGHT] ? l->in[OPEN_WEIGHT]->data : NULL;
    const double n = (double)l->length;
    for (int64_t i = begin; i < end; i++) {
        const char *g = row_at(l, OPEN_GRAD, i, 0);
        const char *x = row_at(l, OPEN_INPUT, i, 0);
        const double mean = number(l, OPEN_MEAN, i);
        const double rstd = number(l, OPEN_RSTD, i);
        double sums[2] = {0, 0};
        rows->dots(g, x, w, l->length, mean, sums);
        rows->blend(l->dx->data + i * l->length * l->item, g, x, w, l->length, mean, rstd,
                    -rstd * rstd * rstd * sums[1] / n, -rstd * sums[0] / n);
    }
}

/* Columns [first, first + n) of all rows. */
static void sum_columns(const layers *l, int64_t first, int64_t n)
{
    const cfxi_rows *rows = cfxi_reduce_rows(&l->rows);
    double sums[2][COLUMNS] = {{0}};
    double part[2][COLUMNS];  /* room for elements of either type */
    for (int64_t i = 0; i < l->count; i++) {
        if (i % ROWS == 0)
            memset(part, 0, sizeof part);
        rows->gather(part[0], part[1], row_at(l, OPEN_GRAD, i, first),
                     row_at(l, OPEN_INPUT, i, first), n, number(l, OPEN_MEAN, i),
                     number(l, OPEN_RSTD, i));
        if (i % ROWS != ROWS - 1 && i != l->count - 1)
            continue;
        for (int64_t k = 0; k < 2 * n; k++)
            sums[k / n][k % n] += cfxi_tensor_load_float(
                l->rows.type, (const char *)part[k / n] + k % n * l->item);
    }
    for (int64_t k = 0; k < n; k++) {
        cfxi_norm_store(l->c, 1, first + k, sums[0][k]);
        cfxi_norm_store(l->c, 2, first + k, sums[1][k]);
    }
}

static void some_columns(void *ctx, int64_t begin, int64_t end)
{
    const layers *l = ctx;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * COLUMNS;
        sum_columns(l, first, l->length - first < COLUMNS ? l->length - first : COLUMNS);
    }
}

static bool open_all(cfxi_call *c, layers *l)
{
    static const size_t which[] = {GRAD, INPUT, MEAN, RSTD, WEIGHT};
    for (size_t i = 0; i < OPEN; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, which[i]);
        l->in[i] = t ? cfxi_rt_contiguous(c, t, l->rows.type) : NULL;
        if (t && !l->in[i])
            return false;
    }
    return true;
}

cfx_status cfxi_kernel_native_layer_norm_backward(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)x->dtype);
    const bool wanted = cfxi_norm_wants(c, MASK, 0);
    layers l = {.c = c, .rows = {c->rt, type}, .item = (int64_t)cfx_dtype_size(type), .count = 1,
                .length = 1};
    size_t n;
    cfx_datum_items(c->args[SHAPE], &n);
    for (size_t d = 0; d < x->ndim; d++)
        *(d < x->ndim - n ? &l.count : &l.length) *= x->size[d];
    l.dx = wanted ? cfxi_rt_work(c, 0, type, true) : NULL;
    cfx_status status = (!wanted || l.dx) && open_all(c, &l) ? CFX_OK : c->err->status;
    if (status == CFX_OK && wanted)
        cfxi_rt_parallel(c->rt, l.count, 1 + 16384 / (l.length + 1), some_rows, &l);
    if (status == CFX_OK && (cfxi_norm_wants(c, MASK, 1) || cfxi_norm_wants(c, MASK, 2)))
        cfxi_rt_parallel(c->rt, (l.length + COLUMNS - 1) / COLUMNS,
                         1 + 64 / (l.count + 1), some_columns, &l);
    for (size_t i = 0; i < OPEN; i++)
        cfx_tensor_release(l.in[i]);
    return wanted ? cfxi_rt_work_done(c, 0, l.dx, status) : status;
}
