/* nll.c - losses of classes: nll_loss and cross_entropy, with class numbers or probabilities.
 *
 * Logarithms of probabilities are [batch][classes][rest], contiguous; each of batch x rest has a
 * loss. */
#include "loss_impl.h"

#include <math.h>

typedef struct classes {
    const cfx_tensor *log_p;
    const cfx_tensor *numbers;   /* of classes, contiguous, or NULL */
    const int64_t *target;       /* its elements */
    const cfx_tensor *shares;    /* probabilities, contiguous, or NULL */
    const double *weight;        /* of each class, or NULL */
    int64_t count;
    int64_t rest;
    int64_t ignore;
    double smoothing;
} classes;

/* (self, target, weight, reduction, ignore_index, label_smoothing) */
enum { SELF, TARGET, WEIGHT, REDUCTION, IGNORE, SMOOTHING };

static size_t class_dim(const cfx_tensor *x) { return x->ndim > 1; }

static bool has_shares(const cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    const cfx_tensor *t = cfxi_rt_tensor(c, TARGET);
    return c->op == CFX_OPID_cross_entropy && t->ndim == x->ndim &&
           cfx_dtype_is_float((cfx_dtype)t->dtype);
}

/* ---- rule ---------------------------------------------------------------------------------- */

static cfx_status check_target(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *t)
{
    size_t dim = class_dim(x);
    if (has_shares(c)) {
        for (size_t d = 0; d < x->ndim; d++)
            if (!cfxi_rt_same_size(c, x->size[d], t->size[d]))
                return cfxi_fail(c, CFX_E_SHAPE,
                                 "input and target must have the same shape for probabilities");
        return CFX_OK;
    }
    if (x->ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "input tensor should be 1D or more");
    if (t->dtype != CFX_DTYPE_INT64 && t->dtype != CFX_DTYPE_UINT8)
        return cfxi_fail(c, CFX_E_SHAPE, "expected scalar type Long but found %s",
                         cfx_dtype_name((cfx_dtype)t->dtype));
    if (x->ndim == 1 && t->ndim == 1 && t->size[0] == 1)
        return CFX_OK;
    if (t->ndim + 1 != x->ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "0D or 1D target tensor expected, multi-target not "
                         "supported");
    for (size_t d = 0; d < t->ndim; d++)
        if (!cfxi_rt_same_size(c, t->size[d], x->size[d < dim ? d : d + 1]))
            return cfxi_fail(c, CFX_E_VALUE, "Expected input batch_size (%lld) to match target "
                             "batch_size (%lld).", (long long)x->size[d < dim ? d : d + 1],
                             (long long)t->size[d]);
    return CFX_OK;
}

static cfx_status nll_rule(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    const cfx_tensor *t = cfxi_rt_tensor(c, TARGET);
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    int64_t sizes[CFX_MAX_DIMS];
    size_t n = 0;
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    CFX_TRY(cfxi_loss_check_reduction(c, REDUCTION));
    CFX_TRY(check_target(c, x, t));
    if (w && (w->ndim != 1 || !cfxi_rt_same_size(c, w->size[0], x->size[class_dim(x)])))
        return cfxi_fail(c, CFX_E_SHAPE, "weight tensor should be defined either for all classes "
                         "or no classes");
    if (cfxi_loss_reduction_of(c, REDUCTION) == CFXI_REDUCE_NONE) {
        if (!has_shares(c) && x->ndim == 1)
            return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, t->size, t->ndim);
        for (size_t d = 0; d < x->ndim; d++)
            if (d != class_dim(x))
                sizes[n++] = x->size[d];
    }
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, n);
}

cfx_status cfxi_rule_nll_loss(cfxi_call *c) { return nll_rule(c); }

cfx_status cfxi_rule_cross_entropy(cfxi_call *c)
{
    double s = cfxi_rt_float(c, SMOOTHING);
    if (!(s >= 0 && s <= 1))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "label_smoothing must be between 0.0 and 1.0. Got: %g", s);
    return nll_rule(c);
}

/* ---- computing ----------------------------------------------------------------------------- */

static double log_p_at(const classes *k, int64_t b, int64_t class, int64_t r)
{
    int64_t at = (b * k->count + class) * k->rest + r;
    cfx_dtype dtype = (cfx_dtype)k->log_p->dtype;
    return cfxi_tensor_load_float(dtype, k->log_p->data + at * (int64_t)cfx_dtype_size(dtype));
}

static double weight_at(const classes *k, int64_t class)
{
    return k->weight ? k->weight[class] : 1;
}

/* The loss where the target is probabilities. */
static double share_loss(const classes *k, int64_t b, int64_t r)
{
    double sum = 0;
    cfx_dtype dtype = (cfx_dtype)k->shares->dtype;
    for (int64_t class = 0; class < k->count; class++) {
        int64_t at = (b * k->count + class) * k->rest + r;
        double t =
            cfxi_tensor_load_float(dtype, k->shares->data + at * (int64_t)cfx_dtype_size(dtype));
        t = t * (1 - k->smoothing) + k->smoothing / (double)k->count;
        sum -= weight_at(k, class) * log_p_at(k, b, class, r) * t;
    }
    return sum;
}

static double number_loss(const classes *k, int64_t b, int64_t r, int64_t class)
{
    double l = -weight_at(k, class) * log_p_at(k, b, class, r);
    if (k->smoothing == 0)
        return l;
    double all = 0;
    for (int64_t i = 0; i < k->count; i++)
        all -= weight_at(k, i) * log_p_at(k, b, i, r);
    return (1 - k->smoothing) * l + k->smoothing / (double)k->count * all;
}

/* Those that have elements: without classes there may be more than a loop gets through, and their
 * mean is not a number, as in PyTorch. `y` has a loss for each; or NULL. */
static int64_t count_samples(const classes *k, const cfx_tensor *y)
{
    if (y || k->target)
        return cfxi_tensor_numel(y ? y : k->numbers);
    return k->count ? cfxi_tensor_numel(k->log_p) / k->count : 0;
}

static cfx_status add_losses(cfxi_call *c, const classes *k, cfxi_reduce_how how)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_dtype dtype = (cfx_dtype)y->dtype;
    double sum = 0;
    double weights = 0;
    const int64_t samples = count_samples(k, how == CFXI_REDUCE_NONE ? y : NULL);
    for (int64_t i = 0; i < samples; i++) {
        int64_t b = i / k->rest;
        int64_t r = i % k->rest;
        int64_t class = k->target ? k->target[i] : 0;
        bool ignored = k->target && class == k->ignore;
        if (!ignored && k->target && (class < 0 || class >= k->count))
            return cfxi_fail(c, CFX_E_INDEX, "Target %lld is out of bounds.", (long long)class);
        double l = ignored ? 0 : k->target ? number_loss(k, b, r, class) : share_loss(k, b, r);
        sum += l;
        if (!ignored)
            weights += k->target ? weight_at(k, class) : 1;
        if (how == CFXI_REDUCE_NONE)
            cfxi_tensor_store_float(dtype, y->data + i * (int64_t)cfx_dtype_size(dtype), l);
    }
    if (how != CFXI_REDUCE_NONE)
        cfxi_tensor_store_float(dtype, y->data, how == CFXI_REDUCE_MEAN ? sum / weights : sum);
    return CFX_OK;
}

static cfx_status nll_kernel(cfxi_call *c, const cfx_tensor *x, double smoothing)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, TARGET);
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    bool shares = has_shares(c);
    size_t dim = class_dim(x);
    cfx_tensor *log_p = cfxi_rt_contiguous(c, x, (cfx_dtype)x->dtype);
    cfx_tensor *target = cfxi_rt_contiguous(c, t, shares ? (cfx_dtype)t->dtype : CFX_DTYPE_INT64);
    cfx_tensor *weight = w ? cfxi_rt_contiguous(c, w, CFX_DTYPE_FLOAT64) : NULL;
    cfx_status status = log_p && target && (weight || !w) ? CFX_OK : c->err->status;
    if (status == CFX_OK) {
        classes k = {.log_p = log_p, .count = x->size[dim], .rest = 1,
                     .ignore = cfxi_rt_int(c, IGNORE), .smoothing = smoothing,
                     .weight = weight ? (const double *)weight->data : NULL};
        k.shares = shares ? target : NULL;
        k.numbers = shares ? NULL : target;
        k.target = shares ? NULL : (const int64_t *)target->data;
        for (size_t d = 2; d < x->ndim; d++)
            k.rest *= x->size[d];
        status = add_losses(c, &k, cfxi_loss_reduction_of(c, REDUCTION));
    }
    cfx_tensor_release(log_p);
    cfx_tensor_release(target);
    cfx_tensor_release(weight);
    return status;
}

cfx_status cfxi_kernel_nll_loss(cfxi_call *c) { return nll_kernel(c, cfxi_rt_tensor(c, SELF), 0); }

cfx_status cfxi_kernel_cross_entropy(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    cfx_datum args[] = {c->args[SELF], cfx_datum_int((int64_t)class_dim(x))};
    cfx_tensor *log_p = cfxi_rt_sub_tensor(c, CFX_OPID_log_softmax, args, 2);
    if (!log_p)
        return c->err->status;
    cfx_status status = nll_kernel(c, log_p, cfxi_rt_float(c, SMOOTHING));
    cfx_tensor_release(log_p);
    return status;
}
