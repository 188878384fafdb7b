/* norm_backward.c - gradients of batch_norm and group_norm: sums of each channel, then a line. */
#include "norm_backward_impl.h"
#include "runtime/view_impl.h"

#include <math.h>

/* ---- arguments and results ------------------------------------------------------------------ */

bool cfxi_norm_wants(const cfxi_call *c, size_t mask, size_t i)
{
    size_t n;
    const cfx_datum *wanted = cfxi_rt_list(c, mask, &n);
    return i < n && wanted[i].as.b;
}

cfx_status cfxi_norm_check_gradient(cfxi_call *c, size_t mask)
{
    const cfx_tensor *g = cfxi_rt_tensor(c, 0);
    const cfx_tensor *x = cfxi_rt_tensor(c, 1);
    size_t n;
    cfxi_rt_list(c, mask, &n);
    if (n != 3)
        return cfxi_fail(c, CFX_E_SHAPE, "'output_mask' must have 3 items, not %zu", n);
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    bool fits = g->ndim == x->ndim && g->dtype == x->dtype;
    for (size_t d = 0; fits && d < x->ndim; d++)
        fits = cfxi_rt_same_size(c, g->size[d], x->size[d]);
    return fits ? CFX_OK
                : cfxi_fail(c, CFX_E_SHAPE, "the gradient must have the type and the sizes of the "
                            "input, [%s]", cfxi_rt_shape_of(x).text);
}

cfx_status cfxi_norm_gradient_results(cfxi_call *c, size_t mask, const cfx_tensor *weight,
                                      const int64_t *sizes, size_t ndim)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 1);
    const cfx_dtype type = (cfx_dtype)(weight ? weight->dtype : x->dtype);
    for (size_t i = 0; i < 3; i++) {
        if (!cfxi_norm_wants(c, mask, i))
            cfxi_rt_result_datum(c, i, cfx_datum_none());
        else if (i == 0)
            CFX_TRY(cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x));
        else
            CFX_TRY(cfxi_rt_result(c, i, type, sizes, ndim));
    }
    return CFX_OK;
}

void cfxi_norm_store(const cfxi_call *c, size_t i, int64_t at, double value)
{
    if (c->results[i].kind != CFX_DATUM_TENSOR)
        return;
    cfx_tensor *t = cfxi_rt_result_at(c, i);
    cfxi_tensor_store_float((cfx_dtype)t->dtype, t->data + at * (int64_t)cfxi_tensor_itemsize(t),
                            value);
}

static cfx_status check_vector(cfxi_call *c, size_t i, int64_t n, const char *name)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, i);
    if (t && (t->ndim != 1 || !cfxi_rt_same_size(c, t->size[0], n)))
        return cfxi_fail(c, CFX_E_SHAPE, "'%s' must have one element for each of the %lld channels",
                         name, (long long)n);
    return CFX_OK;
}

/* ---- batch_norm ----------------------------------------------------------------------------- */

enum { GRAD, INPUT, WEIGHT, RUNNING_MEAN, RUNNING_VAR, SAVED_MEAN, SAVED_FACTOR, TRAIN, EPS, MASK };

cfx_status cfxi_rule_native_batch_norm_backward(cfxi_call *c)
{
    static const char *const names[] = {"weight", "running_mean", "running_var", "save_mean",
                                        "save_invstd"};
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const bool train = cfxi_rt_bool(c, TRAIN);
    CFX_TRY(cfxi_norm_check_gradient(c, MASK));
    if (x->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected at least 2 dimensions, got %u", x->ndim);
    for (size_t i = WEIGHT; i <= SAVED_FACTOR; i++) {
        const bool read = i == WEIGHT || train == (i >= SAVED_MEAN);
        if (read && i != WEIGHT && !cfxi_rt_tensor(c, i))
            return cfxi_fail(c, CFX_E_SHAPE, "'%s' must be given if 'train' is %s",
                             names[i - WEIGHT], train ? "True" : "False");
        if (read)
            CFX_TRY(check_vector(c, i, x->size[1], names[i - WEIGHT]));
    }
    return cfxi_norm_gradient_results(c, MASK, cfxi_rt_tensor(c, WEIGHT), &x->size[1], 1);
}

typedef struct batches {
    const cfxi_call *c;
    cfxi_float_rows rows;
    int64_t item;
    const char *g;    /* [batch][channels][length], in the type of computation */
    const char *x;
    char *dx;         /* or NULL */
    int64_t batch;
    int64_t channels;
    int64_t length;
    double count;     /* elements of a channel */
} batches;

static double number(const cfx_tensor *t, int64_t i)
{
    return cfxi_tensor_load_float((cfx_dtype)t->dtype, cfxi_norm_vector_at(t, i));
}

static void batch_channels(void *ctx, int64_t begin, int64_t end)
{
    const batches *s = ctx;
    const cfxi_rows *rows = cfxi_reduce_rows(&s->rows);
    const bool train = cfxi_rt_bool(s->c, TRAIN);
    const cfx_tensor *w = cfxi_rt_tensor(s->c, WEIGHT);
    const cfx_tensor *means = cfxi_rt_tensor(s->c, train ? SAVED_MEAN : RUNNING_MEAN);
    const cfx_tensor *scales = cfxi_rt_tensor(s->c, train ? SAVED_FACTOR : RUNNING_VAR);
    const double eps = cfxi_rt_float(s->c, EPS);
    for (int64_t i = begin; i < end; i++) {
        const double mean = number(means, i);
        const double rstd = train ? number(scales, i) : 1 / sqrt(number(scales, i) + eps);
        double sums[2] = {0, 0};
        for (int64_t b = 0; b < s->batch; b++) {
            const int64_t at = (b * s->channels + i) * s->length * s->item;
            rows->dots(s->g + at, s->x + at, NULL, s->length, mean, sums);
        }
        cfxi_norm_store(s->c, 1, i, sums[1] * rstd);
        cfxi_norm_store(s->c, 2, i, sums[0]);
        const double a = rstd * (w ? number(w, i) : 1);
        const double by = train ? -a * rstd * rstd * sums[1] / s->count : 0;
        const double shift = train ? -a * sums[0] / s->count : 0;
        for (int64_t b = 0; s->dx && b < s->batch; b++) {
            const int64_t at = (b * s->channels + i) * s->length * s->item;
            rows->blend(s->dx + at, s->g + at, s->x + at, NULL, s->length, mean, a, by, shift);
        }
    }
}

/* With the channels first, if that makes rows longer. */
static cfx_tensor turned(const cfx_tensor *t, bool turn)
{
    cfx_tensor header = *t;  /* never released */
    header.size[0] = t->size[turn];
    header.size[1] = t->size[!turn];
    header.stride[0] = t->stride[turn];
    header.stride[1] = t->stride[!turn];
    return header;
}

enum { SHORT = 16 };  /* elements: rows for which a copy is worth it */

static cfx_status batch_backward(cfxi_call *c, batches *s, bool turn)
{
    const cfx_tensor g = turned(cfxi_rt_tensor(c, GRAD), turn);
    const cfx_tensor x = turned(cfxi_rt_tensor(c, INPUT), turn);
    const bool wanted = cfxi_norm_wants(c, MASK, 0);
    cfx_tensor *dense[3] = {cfxi_rt_contiguous(c, &g, s->rows.type)};
    dense[1] = dense[0] ? cfxi_rt_contiguous(c, &x, s->rows.type) : NULL;
    dense[2] = !dense[1] || !wanted ? NULL
               : turn ? cfx_tensor_new(s->rows.type, x.size, x.ndim, c->rt->allocator, c->err)
                      : cfxi_rt_work(c, 0, s->rows.type, true);
    cfx_status status = dense[1] && (!wanted || dense[2]) ? CFX_OK : c->err->status;
    if (status == CFX_OK) {
        s->g = dense[0]->data;
        s->x = dense[1]->data;
        s->dx = dense[2] ? dense[2]->data : NULL;
        cfxi_rt_parallel(c->rt, s->channels, 1 + 16384 / (s->batch * s->length + 1),
                         batch_channels, s);
    }
    if (turn && wanted && status == CFX_OK) {
        cfx_tensor to = turned(cfxi_rt_result_at(c, 0), true);
        status = cfxi_rt_copy(c->rt, &to, dense[2], c->err);
    }
    if (turn || !wanted)
        cfx_tensor_release(dense[2]);
    else
        status = cfxi_rt_work_done(c, 0, dense[2], status);
    cfx_tensor_release(dense[1]);
    cfx_tensor_release(dense[0]);
    return status;
}

cfx_status cfxi_kernel_native_batch_norm_backward(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)x->dtype);
    batches s = {.c = c, .rows = {c->rt, type}, .item = (int64_t)cfx_dtype_size(type),
                 .batch = x->size[0], .channels = x->size[1], .length = 1};
    for (size_t d = 2; d < x->ndim; d++)
        s.length *= x->size[d];
    s.count = (double)(s.batch * s.length);
    const bool turn = s.length < SHORT && s.batch > 1;
    if (turn) {
        s.length *= s.batch;
        s.batch = 1;
    }
    return batch_backward(c, &s, turn);
}

/* ---- group_norm ----------------------------------------------------------------------------- */

enum { G_MEAN = 2, G_RSTD, G_WEIGHT, G_BATCH, G_CHANNELS, G_LENGTH, G_GROUPS, G_MASK };

cfx_status cfxi_rule_native_group_norm_backward(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const int64_t channels = cfxi_rt_int(c, G_CHANNELS);
    const int64_t batch = cfxi_rt_int(c, G_BATCH);
    int64_t groups;
    CFX_TRY(cfxi_norm_check_gradient(c, G_MASK));
    CFX_TRY(cfxi_rt_number(c, G_GROUPS, &groups));
    int64_t all = cfx_dim_mul(c->dims, batch, channels, c->err);
    all = cfx_dim_mul(c->dims, all, cfxi_rt_int(c, G_LENGTH), c->err);
    if (groups < 1 || !cfxi_rt_same_size(c, cfx_dim_mod(c->dims, channels, groups, c->err), 0))
        return cfxi_fail(c, CFX_E_SHAPE, "the channels cannot be divided into %lld groups",
                         (long long)groups);
    if (!cfxi_rt_same_size(c, cfxi_rt_numel_dim(c, x->size, x->ndim), all))
        return cfxi_fail(c, CFX_E_SHAPE, "N * C * HxW is not the number of elements of the input");
    CFX_TRY(check_vector(c, G_WEIGHT, channels, "weight"));
    for (size_t i = G_MEAN; i <= G_RSTD; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        if (t->ndim != 2 || !cfxi_rt_same_size(c, t->size[0], batch) ||
            !cfxi_rt_same_size(c, t->size[1], groups))
            return cfxi_fail(c, CFX_E_SHAPE, "'%s' must have an element for each group of each "
                             "image", i == G_MEAN ? "mean" : "rstd");
    }
    return cfxi_norm_gradient_results(c, G_MASK, cfxi_rt_tensor(c, G_WEIGHT), &channels, 1);
}

typedef struct grouped {
    const cfxi_call *c;
    cfxi_float_rows rows;
    int64_t item;
    const char *g;     /* [batch][channels][length] */
    const char *x;
    char *dx;          /* or NULL */
    cfx_tensor *mean;  /* [batch][groups], float64 */
    cfx_tensor *rstd;
    int64_t channels;
    int64_t length;
    int64_t groups;
    double *sums;      /* of each channel of each image: see cfxi_rows */
} grouped;

static void group_range(void *ctx, int64_t begin, int64_t end)
{
    const grouped *s = ctx;
    const cfxi_rows *rows = cfxi_reduce_rows(&s->rows);
    const cfx_tensor *w = cfxi_rt_tensor(s->c, G_WEIGHT);
    const int64_t wide = s->channels / s->groups;
    const double count = (double)(wide * s->length);
    for (int64_t i = begin; i < end; i++) {
        const double mean = ((const double *)s->mean->data)[i];
        const double rstd = ((const double *)s->rstd->data)[i];
        const int64_t first = i % s->groups * wide;
        double all[2] = {0, 0};
        for (int64_t k = 0; k < wide; k++) {
            const int64_t at = (i * wide + k) * s->length * s->item;
            double *sums = s->sums + 2 * (i * wide + k);
            sums[0] = sums[1] = 0;
            rows->dots(s->g + at, s->x + at, NULL, s->length, mean, sums);
            all[0] += sums[0] * (w ? number(w, first + k) : 1);
            all[1] += sums[1] * (w ? number(w, first + k) : 1);
        }
        for (int64_t k = 0; s->dx && k < wide; k++) {
            const int64_t at = (i * wide + k) * s->length * s->item;
            rows->blend(s->dx + at, s->g + at, s->x + at, NULL, s->length, mean,
                        rstd * (w ? number(w, first + k) : 1),
                        -rstd * rstd * rstd * all[1] / count, -rstd * all[0] / count);
        }
    }
}

static void group_parameters(const grouped *s, int64_t batch)
{
    const int64_t wide = s->channels / s->groups;
    for (int64_t k = 0; k < s->channels; k++) {
        double dw = 0;
        double db = 0;
        for (int64_t b = 0; b < batch; b++) {
            const double *sums = s->sums + 2 * (b * s->channels + k);
            dw += sums[1] * ((const double *)s->rstd->data)[b * s->groups + k / wide];
            db += sums[0];
        }
        cfxi_norm_store(s->c, 1, k, dw);
        cfxi_norm_store(s->c, 2, k, db);
    }
}

/* What it reads, dense; false if memory is out. */
static bool group_open(cfxi_call *c, grouped *s, cfx_tensor *dense[4])
{
    static const size_t which[] = {GRAD, INPUT, G_MEAN, G_RSTD};
    for (size_t i = 0; i < 4; i++) {
        dense[i] = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, which[i]),
                                      i < 2 ? s->rows.type : CFX_DTYPE_FLOAT64);
        if (!dense[i])
            return false;
    }
    s->g = dense[0]->data;
    s->x = dense[1]->data;
    s->mean = dense[2];
    s->rstd = dense[3];
    return true;
}

cfx_status cfxi_kernel_native_group_norm_backward(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)x->dtype);
    const int64_t batch = cfxi_rt_int(c, G_BATCH);
    grouped s = {.c = c, .rows = {c->rt, type}, .item = (int64_t)cfx_dtype_size(type),
                 .channels = cfxi_rt_int(c, G_CHANNELS), .length = cfxi_rt_int(c, G_LENGTH),
                 .groups = cfxi_rt_int(c, G_GROUPS)};
    cfx_tensor *dense[4] = {0};
    const bool wanted = cfxi_norm_wants(c, G_MASK, 0);
    cfx_tensor *dx = wanted ? cfxi_rt_work(c, 0, type, true) : NULL;
    cfx_status status = (!wanted || dx) && group_open(c, &s, dense) ? CFX_OK : c->err->status;
    if (status == CFX_OK) {
        s.sums = cfxi_rt_scratch(c->rt, (size_t)(2 * batch * s.channels + 1) * sizeof *s.sums);
        status = s.sums ? CFX_OK : cfxi_base_nomem(c->err);
    }
    if (status == CFX_OK) {
        s.dx = dx ? dx->data : NULL;
        cfxi_rt_parallel(c->rt, batch * s.groups,
                         1 + 16384 / (s.channels / s.groups * s.length + 1), group_range, &s);
        group_parameters(&s, batch);
        cfxi_rt_scratch_free(c->rt, s.sums);
    }
    for (size_t i = 0; i < 4; i++)
        cfx_tensor_release(dense[i]);
    return wanted ? cfxi_rt_work_done(c, 0, dx, status) : status;
}
