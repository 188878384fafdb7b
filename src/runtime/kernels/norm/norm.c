/* norm.c - layer_norm, group_norm, rms_norm and their native forms; what all normalisations share.
 */
#include "norm_impl.h"

#include <float.h>
#include <math.h>

/* ---- operands ------------------------------------------------------------------------------ */

cfx_status cfxi_norm_open(cfxi_call *c, cfxi_norm *n, const cfx_tensor *weight,
                          const cfx_tensor *bias, bool any_layout)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)x->dtype);
    *n = (cfxi_norm){.rows = {c->rt, type}, .item = (int64_t)cfx_dtype_size(type)};
    n->x = any_layout ? cfxi_rt_typed(c, x, type) : cfxi_rt_contiguous(c, x, type);
    if (n->x && weight)
        n->w = cfxi_rt_contiguous(c, weight, type);
    if (n->x && bias && (!weight || n->w))
        n->b = cfxi_rt_contiguous(c, bias, type);
    if (n->x && (!weight || n->w) && (!bias || n->b))
        n->y = cfxi_rt_work(c, 0, type, !any_layout);
    return n->y ? CFX_OK : c->err->status;
}

cfx_status cfxi_norm_close(cfxi_call *c, cfxi_norm *n, cfx_status status)
{
    status = cfxi_rt_work_done(c, 0, n->y, status);
    cfx_tensor_release(n->b);
    cfx_tensor_release(n->w);
    cfx_tensor_release(n->x);
    return status;
}

bool cfxi_norm_lies_last(const cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    return x->dtype == cfxi_rt_compute_dtype((cfx_dtype)x->dtype) &&
           cfxi_rt_prefers_channels_last(x) && cfxi_tensor_is_channels_last(x) &&
           cfxi_tensor_is_channels_last(cfxi_rt_result_at(c, 0));
}

cfx_status cfxi_norm_types(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *const *params,
                           size_t n, cfx_dtype *stats)
{
    cfx_dtype type = (cfx_dtype)x->dtype;
    bool narrow = type == CFX_DTYPE_FLOAT16 || type == CFX_DTYPE_BFLOAT16;
    if (!cfx_dtype_is_float(type))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s", cfx_dtype_name(type));
    if (stats)
        *stats = type;
    for (size_t i = 0; i < n; i++) {
        if (!params[i] || params[i]->dtype == type)
            continue;
        if (!narrow || params[i]->dtype != CFX_DTYPE_FLOAT32)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "mixed dtype (CPU): expect parameter to have scalar type of Float");
        if (stats)
            *stats = CFX_DTYPE_FLOAT32;
    }
    return CFX_OK;
}

/* The number of elements of dimensions [from, to). */
static int64_t extent(const cfx_tensor *t, size_t from, size_t to)
{
    int64_t n = 1;
    for (size_t d = from; d < to; d++)
        n *= t->size[d];
    return n;
}

/* ---- layer_norm ---------------------------------------------------------------------------- */

/* The sizes in argument 1 must be the last of argument 0, and those of `params`. */
static cfx_status check_normalized(cfxi_call *c, const cfx_tensor *const *params, size_t *count)
{
    static const char *const names[] = {"weight", "bias"};
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t shape[CFX_MAX_DIMS];
    CFX_TRY(cfxi_rt_ints(c, 1, shape, count));
    if (*count == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected normalized_shape to be at least 1-dimensional, "
                         "i.e., containing at least one element, but got normalized_shape = []");
    for (size_t i = 0; i < 2; i++) {
        bool fits = !params[i] || params[i]->ndim == *count;
        for (size_t d = 0; fits && params[i] && d < *count; d++)
            fits = cfxi_rt_same_size(c, params[i]->size[d], shape[d]);
        if (!fits)
            return cfxi_fail(c, CFX_E_SHAPE, "Expected %s to be of same shape as normalized_shape, "
                             "but got %s of shape [%s] and normalized_shape = [%s]", names[i],
                             names[i], cfxi_rt_shape_of(params[i]).text,
                             cfxi_rt_shape_ints(shape, *count, ", ").text);
    }
    bool fits = x->ndim >= *count;
    for (size_t d = 0; fits && d < *count; d++)
        fits = cfxi_rt_same_size(c, x->size[x->ndim - *count + d], shape[d]);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "Given normalized_shape=[%s], expected input with shape "
                         "[*, %s], but got input of size[%s]",
                         cfxi_rt_shape_ints(shape, *count, ", ").text,
                         cfxi_rt_shape_ints(shape, *count, ", ").text, cfxi_rt_shape_of(x).text);
    return CFX_OK;
}

/* Also native_layer_norm, which returns mean and 1/deviation of each row. */
cfx_status cfxi_rule_layer_norm(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *params[] = {cfxi_rt_tensor(c, 2), cfxi_rt_tensor(c, 3)};
    int64_t sizes[CFX_MAX_DIMS];
    cfx_dtype stats;
    size_t count;
    CFX_TRY(check_normalized(c, params, &count));
    CFX_TRY(cfxi_norm_types(c, x, params, 2, &stats));
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim));
    if (c->op != CFX_OPID_native_layer_norm)
        return CFX_OK;
    for (size_t d = 0; d < x->ndim; d++)
        sizes[d] = d < x->ndim - count ? x->size[d] : 1;
    CFX_TRY(cfxi_rt_result(c, 1, stats, sizes, x->ndim));
    return cfxi_rt_result(c, 2, stats, sizes, x->ndim);
}

typedef struct layers {
    cfxi_norm n;
    int64_t length;
    double eps;
    cfx_tensor *mean;  /* NULL: not asked for */
    cfx_tensor *rstd;
} layers;

static void layer_rows(void *ctx, int64_t begin, int64_t end)
{
    const layers *l = ctx;
    const cfxi_norm *n = &l->n;
    const cfxi_rows *rows = cfxi_reduce_rows(&n->rows);
    for (int64_t i = begin; i < end; i++) {
        const void *x = cfxi_norm_at(n, n->x, i * l->length);
        double mean = rows->sum(x, l->length) / (double)l->length;
        double var = rows->squares(x, l->length, mean) / (double)l->length;
        double rstd = 1 / sqrt(var + l->eps);
        rows->affine(cfxi_norm_at(n, n->y, i * l->length), x, l->length, mean, rstd,
                     cfxi_norm_at(n, n->w, 0), cfxi_norm_at(n, n->b, 0));
        if (l->mean) {
            size_t item = cfxi_tensor_itemsize(l->mean);
            cfxi_tensor_store_float((cfx_dtype)l->mean->dtype, l->mean->data + (size_t)i * item,
                                    mean);
            cfxi_tensor_store_float((cfx_dtype)l->rstd->dtype, l->rstd->data + (size_t)i * item,
                                    rstd);
        }
    }
}

static int64_t grain_of(int64_t length) { return 1 + 32768 / (length + 1); }

static cfx_status layer_norm(cfxi_call *c, bool native)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t count = cfxi_rt_tensor(c, 2) ? cfxi_rt_tensor(c, 2)->ndim : 0;
    layers l = {.eps = cfxi_rt_float(c, 4)};
    cfx_datum_items(c->args[1], &count);
    l.length = extent(x, x->ndim - count, x->ndim);
    if (native) {
        l.mean = cfxi_rt_result_at(c, 1);
        l.rstd = cfxi_rt_result_at(c, 2);
    }
    cfx_status status = cfxi_norm_open(c, &l.n, cfxi_rt_tensor(c, 2), cfxi_rt_tensor(c, 3), false);
    if (status == CFX_OK)
        cfxi_rt_parallel(c->rt, extent(x, 0, x->ndim - count), grain_of(l.length), layer_rows, &l);
    return cfxi_norm_close(c, &l.n, status);
}

cfx_status cfxi_kernel_layer_norm(cfxi_call *c) { return layer_norm(c, false); }
cfx_status cfxi_kernel_native_layer_norm(cfxi_call *c) { return layer_norm(c, true); }

/* ---- group_norm ---------------------------------------------------------------------------- */

static cfx_status check_groups(cfxi_call *c, int64_t groups, const cfx_tensor *const *params)
{
    static const char *const names[] = {"weight", "bias"};
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (x->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected at least 2 dimensions for input tensor but "
                         "received %u", x->ndim);
    if (groups <= 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected num groups to be greater than 0, got %lld",
                         (long long)groups);
    if (!cfx_dim_is_symbol(x->size[1]) && x->size[1] % groups != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected number of channels in input to be divisible by "
                         "num_groups, but got input of shape [%s] and num_groups=%lld",
                         cfxi_rt_shape_of(x).text, (long long)groups);
    for (size_t i = 0; i < 2; i++)
        if (params[i] && (params[i]->ndim != 1 ||
                          !cfxi_rt_same_size(c, params[i]->size[0], x->size[1])))
            return cfxi_fail(c, CFX_E_SHAPE, "Expected %s to be a vector of size equal to the "
                             "number of channels in input, but got %s of shape [%s] and input of "
                             "shape [%s]", names[i], names[i], cfxi_rt_shape_of(params[i]).text,
                             cfxi_rt_shape_of(x).text);
    return CFX_OK;
}

cfx_status cfxi_rule_group_norm(cfxi_call *c)
{
    bool native = c->op == CFX_OPID_native_group_norm;
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *params[] = {cfxi_rt_tensor(c, native ? 1 : 2),
                                  cfxi_rt_tensor(c, native ? 2 : 3)};
    cfx_dtype stats;
    int64_t groups;
    CFX_TRY(cfxi_rt_number(c, native ? 6 : 1, &groups));
    CFX_TRY(check_groups(c, groups, params));
    CFX_TRY(cfxi_norm_types(c, x, params, 2, &stats));
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim));
    if (cfxi_rt_prefers_channels_last(x))
        cfxi_rt_result_channels_last(c, 0);
    if (!native)
        return CFX_OK;
    const int64_t sizes[] = {x->size[0], groups};
    CFX_TRY(cfxi_rt_result(c, 1, stats, sizes, 2));
    return cfxi_rt_result(c, 2, stats, sizes, 2);
}

typedef struct groups {
    cfxi_norm n;
    int64_t groups;
    int64_t channels;  /* of a group */
    int64_t length;    /* of a channel */
    double eps;
    cfx_tensor *mean;
    cfx_tensor *rstd;
} groups;

static void store_stats(const groups *g, int64_t i, double mean, double rstd)
{
    if (!g->mean)
        return;
    const int64_t item = (int64_t)cfxi_tensor_itemsize(g->mean);
    cfxi_tensor_store_float((cfx_dtype)g->mean->dtype, g->mean->data + i * item, mean);
    cfxi_tensor_store_float((cfx_dtype)g->rstd->dtype, g->rstd->data + i * item, rstd);
}

static void group_items(void *ctx, int64_t begin, int64_t end)
{
    const groups *g = ctx;
    const cfxi_norm *n = &g->n;
    const cfxi_rows *rows = cfxi_reduce_rows(&n->rows);
    int64_t all = g->channels * g->length;
    for (int64_t i = begin; i < end; i++) {
        const void *x = cfxi_norm_at(n, n->x, i * all);
        double mean = rows->sum(x, all) / (double)all;
        double var = rows->squares(x, all, mean) / (double)all;
        double rstd = 1 / sqrt(var + g->eps);
        for (int64_t j = 0; j < g->channels; j++) {
            int64_t at = i * all + j * g->length;
            int64_t channel = i % g->groups * g->channels + j;
            double a = rstd * cfxi_norm_number(n, n->w, channel, 1);
            double b = cfxi_norm_number(n, n->b, channel, 0) - mean * a;
            rows->scale(cfxi_norm_at(n, n->y, at), cfxi_norm_at(n, n->x, at), g->length, a, b);
        }
        store_stats(g, i, mean, rstd);
    }
}

/* What a piece of an image with channels last is: `share` lines of it. */
typedef struct last_groups {
    const groups *g;
    int64_t shares;   /* of an image */
    double *sums;     /* [image][share][channel] */
    char *mean;       /* [image][channel], in the type of computation; then the factors, shifts */
    char *factor;
    char *shift;
    bool squares;
} last_groups;

static int64_t share_at(const last_groups *l, int64_t i)
{
    return l->g->length * i / l->shares;
}

static void sum_shares(void *ctx, int64_t begin, int64_t end)
{
    const last_groups *l = ctx;
    const cfxi_norm *n = &l->g->n;
    const cfxi_rows *rows = cfxi_reduce_rows(&n->rows);
    const int64_t channels = l->g->groups * l->g->channels;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / l->shares;
        const int64_t first = share_at(l, i % l->shares);
        double *sums = l->sums + i * channels;
        memset(sums, 0, (size_t)channels * sizeof *sums);
        rows->columns(sums, cfxi_norm_at(n, n->x, (image * l->g->length + first) * channels),
                      share_at(l, i % l->shares + 1) - first, channels,
                      l->squares ? l->mean + image * channels * n->item : NULL);
    }
}

/* The mean of each group over what sums_shares has summed. */
static double group_mean(const last_groups *l, int64_t image, int64_t group)
{
    const groups *g = l->g;
    double sum = 0;
    for (int64_t s = 0; s < l->shares; s++)
        for (int64_t j = 0; j < g->channels; j++)
            sum += l->sums[((image * l->shares + s) * g->groups + group) * g->channels + j];
    return sum / (double)(g->channels * g->length);
}

/* The means of groups, for each channel; or, with squares, what an element is multiplied by and
 * what is added then. */
static void set_channels(const last_groups *l, int64_t images)
{
    const groups *g = l->g;
    const cfxi_norm *n = &g->n;
    for (int64_t i = 0; i < images * g->groups; i++) {
        const double value = group_mean(l, i / g->groups, i % g->groups);
        const double rstd = 1 / sqrt(value + g->eps);
        double mean = value;
        for (int64_t j = 0; j < g->channels; j++) {
            const int64_t channel = i % g->groups * g->channels + j;
            const int64_t at = (i * g->channels + j) * n->item;
            if (!l->squares) {
                cfxi_tensor_store_float(n->rows.type, l->mean + at, value);
                continue;
            }
            mean = cfxi_tensor_load_float(n->rows.type, l->mean + at);
            const double a = rstd * cfxi_norm_number(n, n->w, channel, 1);
            cfxi_tensor_store_float(n->rows.type, l->factor + at, a);
            cfxi_tensor_store_float(n->rows.type, l->shift + at,
                                    cfxi_norm_number(n, n->b, channel, 0) - mean * a);
        }
        if (l->squares)
            store_stats(g, i, mean, rstd);
    }
}

static void apply_shares(void *ctx, int64_t begin, int64_t end)
{
    const last_groups *l = ctx;
    const cfxi_norm *n = &l->g->n;
    const cfxi_rows *rows = cfxi_reduce_rows(&n->rows);
    const int64_t channels = l->g->groups * l->g->channels;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / l->shares;
        const int64_t row = image * channels * n->item;
        for (int64_t p = share_at(l, i % l->shares); p < share_at(l, i % l->shares + 1); p++) {
            const int64_t at = (image * l->g->length + p) * channels;
            rows->affine(cfxi_norm_at(n, n->y, at), cfxi_norm_at(n, n->x, at), channels, 0, 1,
                         l->factor + row, l->shift + row);
        }
    }
}

/* Images [N, pixels, channels]: the sums of channels, shared by threads, and then of groups. */
static cfx_status group_pixels(cfxi_call *c, const groups *g, int64_t images)
{
    enum { SHARE = 1 << 15 };  /* elements */
    const int64_t channels = g->groups * g->channels;
    int64_t shares = channels * g->length / SHARE + 1;
    shares = shares > 16 ? 16 : shares;
    double *room = cfxi_rt_scratch(
        c->rt, (size_t)(images * channels) * (size_t)(shares + 3) * sizeof(double));
    if (!room)
        return cfxi_base_nomem(c->err);
    char *more = (char *)(room + images * channels * shares);
    const int64_t vectors = images * channels * (int64_t)sizeof(double);
    last_groups l = {g, shares, room, more, more + vectors, more + 2 * vectors, false};
    cfxi_rt_parallel(c->rt, images * shares, 1, sum_shares, &l);
    set_channels(&l, images);
    l.squares = true;
    cfxi_rt_parallel(c->rt, images * shares, 1, sum_shares, &l);
    set_channels(&l, images);
    cfxi_rt_parallel(c->rt, images * shares, 1, apply_shares, &l);
    cfxi_rt_scratch_free(c->rt, room);
    return CFX_OK;
}

static cfx_status group_norm(cfxi_call *c, bool native)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    groups g = {.groups = cfxi_rt_int(c, native ? 6 : 1), .eps = cfxi_rt_float(c, native ? 7 : 4)};
    size_t at = native ? 1 : 2;
    if (!native && cfxi_tensor_numel(x) == 0)
        return CFX_OK;  /* any number of groups divides no channels */
    g.channels = x->size[1] / g.groups;
    g.length = extent(x, 2, x->ndim);
    if (native) {
        g.mean = cfxi_rt_result_at(c, 1);
        g.rstd = cfxi_rt_result_at(c, 2);
    }
    const bool last = !c->rt->reference && cfxi_norm_lies_last(c);
    cfx_status status =
        cfxi_norm_open(c, &g.n, cfxi_rt_tensor(c, at), cfxi_rt_tensor(c, at + 1), last);
    if (status == CFX_OK && last)
        status = group_pixels(c, &g, x->size[0]);
    else if (status == CFX_OK)
        cfxi_rt_parallel(c->rt, x->size[0] * g.groups, grain_of(g.channels * g.length), group_items,
                         &g);
    return cfxi_norm_close(c, &g.n, status);
}

cfx_status cfxi_kernel_group_norm(cfxi_call *c) { return group_norm(c, false); }
cfx_status cfxi_kernel_native_group_norm(cfxi_call *c) { return group_norm(c, true); }

/* ---- rms_norm ------------------------------------------------------------------------------ */

cfx_status cfxi_rule_rms_norm(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *params[] = {cfxi_rt_tensor(c, 2), NULL};
    cfx_dtype type = (cfx_dtype)x->dtype;
    size_t count;
    if (!cfx_dtype_is_float(type) && !cfx_dtype_is_complex(type))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s", cfx_dtype_name(type));
    CFX_TRY(check_normalized(c, params, &count));
    CFX_TRY(cfxi_rt_result(c, 0, type, x->size, x->ndim));
    if (cfxi_rt_prefers_channels_last(x))
        cfxi_rt_result_channels_last(c, 0);
    return CFX_OK;
}

static void rms_rows(void *ctx, int64_t begin, int64_t end)
{
    const layers *l = ctx;
    const cfxi_norm *n = &l->n;
    const cfxi_rows *rows = cfxi_reduce_rows(&n->rows);
    for (int64_t i = begin; i < end; i++) {
        const void *x = cfxi_norm_at(n, n->x, i * l->length);
        double square = rows->squares(x, l->length, 0) / (double)l->length;
        rows->affine(cfxi_norm_at(n, n->y, i * l->length), x, l->length, 0,
                     1 / sqrt(square + l->eps), cfxi_norm_at(n, n->w, 0), NULL);
    }
}

/* The same of complex numbers, where the mean square is complex, too. */
static void rms_complex(const layers *l, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        const double *x = (const double *)l->n.x->data + 2 * i * l->length;
        double *y = (double *)l->n.y->data + 2 * i * l->length;
        const double *w = l->n.w ? (const double *)l->n.w->data : NULL;
        double sum[2] = {l->eps * (double)l->length, 0};
        for (int64_t j = 0; j < l->length; j++) {
            sum[0] += x[2 * j] * x[2 * j] - x[2 * j + 1] * x[2 * j + 1];
            sum[1] += 2 * x[2 * j] * x[2 * j + 1];
        }
        double size = hypot(sum[0], sum[1]) / (double)l->length;
        double angle = -atan2(sum[1], sum[0]) / 2;
        double f[2] = {cos(angle) / sqrt(size), sin(angle) / sqrt(size)};
        for (int64_t j = 0; j < l->length; j++) {
            double re = x[2 * j] * f[0] - x[2 * j + 1] * f[1];
            double im = x[2 * j] * f[1] + x[2 * j + 1] * f[0];
            y[2 * j] = w ? re * w[2 * j] - im * w[2 * j + 1] : re;
            y[2 * j + 1] = w ? re * w[2 * j + 1] + im * w[2 * j] : im;
        }
    }
}

static double epsilon_of(cfx_dtype type)
{
    return type == CFX_DTYPE_FLOAT64 || type == CFX_DTYPE_COMPLEX128 ? DBL_EPSILON
           : type == CFX_DTYPE_FLOAT16                              ? 0x1p-10
           : type == CFX_DTYPE_BFLOAT16                             ? 0x1p-7
                                                                    : (double)FLT_EPSILON;
}

cfx_status cfxi_kernel_rms_norm(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    layers l = {.eps =
                    cfxi_rt_is_none(c, 3) ? epsilon_of((cfx_dtype)x->dtype) : cfxi_rt_float(c, 3)};
    size_t count;
    cfx_datum_items(c->args[1], &count);
    l.length = extent(x, x->ndim - count, x->ndim);
    cfx_status status = cfxi_norm_open(c, &l.n, cfxi_rt_tensor(c, 2), NULL, false);
    int64_t rows = extent(x, 0, x->ndim - count);
    if (status == CFX_OK && l.n.rows.type == CFX_DTYPE_COMPLEX128)
        rms_complex(&l, l.length ? rows : 0);
    else if (status == CFX_OK)
        cfxi_rt_parallel(c->rt, rows, grain_of(l.length), rms_rows, &l);
    return cfxi_norm_close(c, &l.n, status);
}
