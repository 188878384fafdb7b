/* norm_batch.c - batch_norm and instance_norm, with running statistics. */
#include "norm_impl.h"

#include <math.h>

enum { WEIGHT = 1, BIAS, MEAN, VAR, TRAINING, MOMENTUM, EPS };

/* It returns the running statistics instead of writing to them. */
static bool is_functional(cfx_operator op)
{
    return op == CFX_OPID__native_batch_norm_legit_functional;
}

/* ---- rules --------------------------------------------------------------------------------- */

static cfx_status check_vectors(cfxi_call *c)
{
    static const char *const names[] = {"", "weight", "bias", "running_mean", "running_var"};
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t channels = x->ndim < 2 ? 0 : x->size[1];
    for (size_t i = WEIGHT; i <= VAR; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        if (t && (t->ndim != 1 || !cfxi_rt_same_size(c, t->size[0], channels)))
            return cfxi_fail(c, CFX_E_SHAPE, "%s should contain %lld elements not %lld", names[i],
                             (long long)channels,
                             (long long)(t->ndim == 1 ? t->size[0] : cfxi_tensor_numel(t)));
    }
    if (x->ndim == 0 || (x->ndim == 1 && x->size[0] != 0))  /* an empty one passes */
        return cfxi_fail(c, CFX_E_SHAPE, "Expected at least 2 dimensions, got %u", x->ndim);
    if (!cfxi_rt_bool(c, TRAINING))
        for (size_t i = MEAN; i <= VAR; i++)
            if (!cfxi_rt_tensor(c, i))
                return cfxi_fail(c, CFX_E_SHAPE, "%s must be defined in evaluation mode", names[i]);
    const bool writes = cfxi_rt_bool(c, TRAINING) && !is_functional(c->op);
    for (size_t i = MEAN; writes && i <= VAR; i++)
        if (cfxi_rt_tensor(c, i) && cfx_tensor_is_read_only(cfxi_rt_tensor(c, i)))
            return cfxi_fail(c, CFX_E_VALUE, "%s would be updated, but its memory is read-only",
                             names[i]);
    return CFX_OK;
}

static cfx_status check_types(cfxi_call *c, cfx_dtype *stats)
{
    const cfx_tensor *params[4];
    for (size_t i = 0; i < 4; i++)
        params[i] = cfxi_rt_tensor(c, WEIGHT + i);
    return cfxi_norm_types(c, cfxi_rt_tensor(c, 0), params, 4, stats);
}

cfx_status cfxi_rule_batch_norm(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype stats;
    CFX_TRY(check_vectors(c));
    CFX_TRY(check_types(c, &stats));
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim));
    if (cfxi_rt_prefers_channels_last(x))
        cfxi_rt_result_channels_last(c, 0);
    if (c->op == CFX_OPID_batch_norm)
        return CFX_OK;
    int64_t kept = cfxi_rt_bool(c, TRAINING) && x->ndim > 1 ? x->size[1] : 0;
    CFX_TRY(cfxi_rt_result(c, 1, stats, &kept, 1));
    CFX_TRY(cfxi_rt_result(c, 2, stats, &kept, 1));
    for (size_t i = MEAN; is_functional(c->op) && i <= VAR; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        CFX_TRY(cfxi_rt_result(c, i, (cfx_dtype)t->dtype, t->size, t->ndim));
    }
    return CFX_OK;
}

cfx_status cfxi_rule_instance_norm(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    CFX_TRY(check_vectors(c));
    CFX_TRY(check_types(c, NULL));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim);
}

/* ---- statistics ---------------------------------------------------------------------------- */

typedef struct batches {
    cfxi_norm n;
    bool training;
    int64_t batch;
    int64_t channels;
    int64_t length;    /* of a channel of an image */
    double momentum;
    double eps;
    double *mean;      /* one for each channel; of instance_norm, for each of each image */
    double *var;
    void *factor;      /* of each channel, in the type of computation: y = x * factor + shift */
    void *shift;
    bool instances;
    bool last;         /* x and y are [batch, length, channels], */
    int64_t x_step;    /* and so many bytes are from pixel to pixel */
    int64_t y_step;
} batches;

/* Of instances, or of a channel through the whole batch. */
static void gather_statistics(void *ctx, int64_t begin, int64_t end)
{
    const batches *s = ctx;
    const cfxi_norm *n = &s->n;
    const cfxi_rows *rows = cfxi_reduce_rows(&n->rows);
    int64_t images = s->instances ? 1 : s->batch;
    double count = (double)(images * s->length);
    for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        double squares = 0;
        for (int64_t b = 0; b < images; b++)
            sum += rows->sum(cfxi_norm_at(n, n->x, (b * s->channels + i) * s->length), s->length);
        s->mean[i] = sum / count;
        for (int64_t b = 0; b < images; b++)
            squares += rows->squares(cfxi_norm_at(n, n->x, (b * s->channels + i) * s->length),
                                     s->length, s->mean[i]);
        s->var[i] = squares / count;
    }
}

static void update(cfx_tensor *t, int64_t i, double momentum, double value)
{
    void *at = cfxi_norm_vector_at(t, i);
    cfx_dtype type = (cfx_dtype)t->dtype;
    cfxi_tensor_store_float(type, at,
                            (1 - momentum) * cfxi_tensor_load_float(type, at) + momentum * value);
}

/* Running statistics follow the batch; the variance as an estimate from a sample. Those of
 * instances follow the mean of the images. */
static void update_running(const batches *s, cfx_tensor *mean, cfx_tensor *var)
{
    int64_t images = s->instances ? s->batch : 1;
    double count = (double)(s->instances ? s->length : s->batch * s->length);
    for (int64_t i = 0; i < s->channels; i++) {
        double m = 0;
        double v = 0;
        for (int64_t b = 0; b < images; b++) {
            m += s->mean[b * s->channels + i] / (double)images;
            v += s->var[b * s->channels + i] * count / (count - 1) / (double)images;
        }
        if (mean)
            update(mean, i, s->momentum, m);
        if (var)
            update(var, i, s->momentum, v);
    }
}

static void read_running(const batches *s, const cfx_tensor *mean, const cfx_tensor *var)
{
    for (int64_t i = 0; i < s->channels; i++) {
        s->mean[i] = cfxi_tensor_load_float((cfx_dtype)mean->dtype, cfxi_norm_vector_at(mean, i));
        s->var[i] = cfxi_tensor_load_float((cfx_dtype)var->dtype, cfxi_norm_vector_at(var, i));
    }
}

/* ---- applying ------------------------------------------------------------------------------ */

static void apply_channels(void *ctx, int64_t begin, int64_t end)
{
    const batches *s = ctx;
    const cfxi_norm *n = &s->n;
    const cfxi_rows *rows = cfxi_reduce_rows(&n->rows);
    for (int64_t i = begin; i < end; i++) {
        int64_t channel = i % s->channels;
        int64_t stat = s->instances && s->training ? i : channel;
        double a = cfxi_norm_number(n, n->w, channel, 1) / sqrt(s->var[stat] + s->eps);
        double b = cfxi_norm_number(n, n->b, channel, 0) - s->mean[stat] * a;
        rows->scale(cfxi_norm_at(n, n->y, i * s->length), cfxi_norm_at(n, n->x, i * s->length),
                    s->length, a, b);
    }
}

static void apply_pixels(void *ctx, int64_t begin, int64_t end)
{
    const batches *s = ctx;
    const cfxi_norm *n = &s->n;
    const cfxi_rows *rows = cfxi_reduce_rows(&n->rows);
    for (int64_t i = begin; i < end; i++)
        rows->affine(n->y->data + i * s->y_step, n->x->data + i * s->x_step, s->channels, 0, 1,
                     s->factor, s->shift);
}

static void set_factors(const batches *s)
{
    const cfxi_norm *n = &s->n;
    for (int64_t i = 0; i < s->channels; i++) {
        double a = cfxi_norm_number(n, n->w, i, 1) / sqrt(s->var[i] + s->eps);
        double b = cfxi_norm_number(n, n->b, i, 0) - s->mean[i] * a;
        cfxi_tensor_store_float(n->rows.type, (char *)s->factor + i * n->item, a);
        cfxi_tensor_store_float(n->rows.type, (char *)s->shift + i * n->item, b);
    }
}

static void apply(cfxi_call *c, batches *s)
{
    if (s->last) {
        set_factors(s);
        cfxi_rt_parallel(c->rt, s->batch * s->length, 1 + 32768 / (s->channels + 1), apply_pixels,
                         s);
    } else {
        cfxi_rt_parallel(c->rt, s->batch * s->channels, 1 + 32768 / (s->length + 1), apply_channels,
                         s);
    }
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* An image of one place, or with channels last, and statistics that are known: by pixels. */
static bool goes_by_pixels(const cfxi_call *c, batches *s)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    s->x_step = cfxi_rt_row_step(x, 1);
    s->y_step = cfxi_rt_row_step(y, 1);
    if (s->training || s->instances || x->dtype != s->n.rows.type || !s->x_step || !s->y_step ||
        !cfxi_tensor_has_whole_strides(x))
        return false;
    return s->length == 1 || (cfxi_rt_prefers_channels_last(x) && cfxi_rt_prefers_channels_last(y));
}

static void store_statistics(cfxi_call *c, const batches *s)
{
    for (int64_t i = 0; s->training && i < s->channels; i++) {
        cfx_tensor *mean = cfxi_rt_result_at(c, 1);
        cfx_tensor *rstd = cfxi_rt_result_at(c, 2);
        cfxi_tensor_store_float((cfx_dtype)mean->dtype, cfxi_norm_vector_at(mean, i), s->mean[i]);
        cfxi_tensor_store_float((cfx_dtype)rstd->dtype, cfxi_norm_vector_at(rstd, i),
                                1 / sqrt(s->var[i] + s->eps));
    }
}

static cfx_status normalise(cfxi_call *c, batches *s)
{
    const bool apart = is_functional(c->op);
    cfx_tensor *mean = apart ? cfxi_rt_result_at(c, MEAN) : cfxi_rt_tensor(c, MEAN);
    cfx_tensor *var = apart ? cfxi_rt_result_at(c, VAR) : cfxi_rt_tensor(c, VAR);
    int64_t stats = s->channels * (s->instances && s->training ? s->batch : 1);
    char *room = cfxi_rt_scratch(c->rt, (size_t)(2 * stats + 2 * s->channels + 1) * sizeof(double));
    if (!room)
        return cfxi_base_nomem(c->err);
    s->mean = (double *)room;
    s->var = s->mean + stats;
    s->factor = s->var + stats;
    s->shift = s->var + stats + s->channels;
    if (s->training) {
        cfxi_rt_parallel(c->rt, stats, 1 + 16384 / (s->length + 1), gather_statistics, s);
        if (s->batch > 0 && s->length > 0)
            update_running(s, mean, var);
    } else {
        read_running(s, mean, var);
    }
    apply(c, s);
    if (c->op != CFX_OPID_batch_norm && !s->instances)
        store_statistics(c, s);
    cfxi_rt_scratch_free(c->rt, room);
    return CFX_OK;
}

static cfx_status run(cfxi_call *c, bool instances)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    for (size_t i = MEAN; is_functional(c->op) && i <= VAR; i++)  /* results, and arguments */
        CFX_TRY(cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, i), cfxi_rt_tensor(c, i), c->err));
    if (x->ndim < 2)
        return CFX_OK;
    batches s = {.training = cfxi_rt_bool(c, TRAINING), .batch = x->size[0], .channels = x->size[1],
                 .length = 1, .momentum = cfxi_rt_float(c, MOMENTUM), .eps = cfxi_rt_float(c, EPS),
                 .instances = instances};
    for (size_t d = 2; d < x->ndim; d++)
        s.length *= x->size[d];
    s.n.rows.type = cfxi_rt_compute_dtype((cfx_dtype)x->dtype);
    s.last = goes_by_pixels(c, &s);
    cfx_status status = cfxi_norm_open(c, &s.n, cfxi_rt_tensor(c, WEIGHT), cfxi_rt_tensor(c, BIAS),
                                       s.last);
    if (status == CFX_OK)
        status = normalise(c, &s);
    return cfxi_norm_close(c, &s.n, status);
}

cfx_status cfxi_kernel_batch_norm(cfxi_call *c) { return run(c, false); }
cfx_status cfxi_kernel_native_batch_norm(cfxi_call *c) { return run(c, false); }
cfx_status cfxi_kernel__native_batch_norm_legit_functional(cfxi_call *c) { return run(c, false); }
cfx_status cfxi_kernel_instance_norm(cfxi_call *c) { return run(c, true); }
