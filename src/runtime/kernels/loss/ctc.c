/* ctc.c - connectionist temporal classification, and the margin loss of several labels.
 *
 * ctc_loss: -log of the probability that the outputs, blanks and repetitions taken away, spell the
 * target. With blanks put around the labels (length 2S + 1), alpha[s] is the log of the probability
 * of all that ends at s (Graves et al. 2006). */
#include "loss_impl.h"

#include <math.h>

/* (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity) */
enum { LOG_PROBS, TARGETS, INPUT_LENGTHS, TARGET_LENGTHS, BLANK, REDUCTION, ZERO_INFINITY };

cfx_status cfxi_rule_ctc_loss(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, LOG_PROBS);
    cfx_dtype dtype = (cfx_dtype)x->dtype;
    if (!cfx_dtype_is_float(dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s", cfx_dtype_name(dtype));
    if (x->ndim != 2 && x->ndim != 3)
        return cfxi_fail(c, CFX_E_SHAPE, "log_probs must be (T, N, C) or (T, C)");
    int64_t classes = x->size[x->ndim - 1];
    if (!cfx_dim_is_symbol(classes) &&
        (cfxi_rt_int(c, BLANK) < 0 || cfxi_rt_int(c, BLANK) >= classes))
        return cfxi_fail(c, CFX_E_SHAPE, "blank must be in label range");
    CFX_TRY(cfxi_loss_check_reduction(c, REDUCTION));
    bool each = cfxi_loss_reduction_of(c, REDUCTION) == CFXI_REDUCE_NONE;
    return cfxi_rt_result(c, 0, dtype, x->size + 1, each && x->ndim == 3 ? 1 : 0);
}

typedef struct ctc {
    const cfx_tensor *x;
    int64_t x_steps[3];  /* bytes: time, batch, class */
    int64_t blank;
    double *alpha;       /* two rows */
    int64_t width;
} ctc;

static double log_add(double a, double b)
{
    double most = a > b ? a : b;
    if (most == -INFINITY)
        return most;
    return most + log1p(exp((a > b ? b : a) - most));
}

static double x_at(const ctc *k, int64_t time, int64_t batch, int64_t class)
{
    return cfxi_tensor_load_float((cfx_dtype)k->x->dtype,
                                  k->x->data + time * k->x_steps[0] + batch * k->x_steps[1] +
                               class * k->x_steps[2]);
}

/* The label at place s of the target with blanks. */
static int64_t label_at(const ctc *k, const int64_t *target, int64_t s)
{
    return s % 2 ? target[s / 2] : k->blank;
}

static double ctc_one(const ctc *k, int64_t batch, int64_t times, const int64_t *target, int64_t n)
{
    int64_t places = 2 * n + 1;
    double *before = k->alpha;
    double *now = k->alpha + k->width;
    if (times == 0)
        return n == 0 ? 0 : INFINITY;
    for (int64_t s = 0; s < places; s++)
        before[s] = s < 2 ? x_at(k, 0, batch, label_at(k, target, s)) : -INFINITY;
    for (int64_t t = 1; t < times; t++) {
        for (int64_t s = 0; s < places; s++) {
            int64_t label = label_at(k, target, s);
            double a = before[s];
            if (s > 0)
                a = log_add(a, before[s - 1]);
            if (s > 1 && s % 2 && label != label_at(k, target, s - 2))
                a = log_add(a, before[s - 2]);
            now[s] = a + x_at(k, t, batch, label);
        }
        double *swap = before;
        before = now;
        now = swap;
    }
    return -(n ? log_add(before[places - 1], before[places - 2]) : before[0]);
}

/* Lengths given as a tensor or a list: `n` of them into out. */
static cfx_status read_lengths(cfxi_call *c, size_t arg, int64_t *out, int64_t n)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, arg);
    size_t count;
    const cfx_datum *items = cfxi_rt_list(c, arg, &count);
    if ((t ? cfxi_tensor_numel(t) : (int64_t)count) != n || (t && t->ndim > 1))
        return cfxi_fail(c, CFX_E_SHAPE, "input_lengths and target_lengths must be of size "
                         "batch_size");
    for (int64_t i = 0; i < n; i++) {
        if (!t && items[i].kind != CFX_DATUM_INT)
            return cfxi_fail(c, CFX_E_TYPE, "lengths must be integers, not %s",
                             cfx_datum_kind_name((cfx_datum_kind)items[i].kind));
        out[i] = t ? cfxi_tensor_load_int((cfx_dtype)t->dtype,
                                          t->data + (t->ndim ? i * t->stride[0] : 0))
                   : items[i].as.i;
        if (out[i] < 0)
            return cfxi_fail(c, CFX_E_SHAPE, "lengths must not be negative");
    }
    return CFX_OK;
}

static cfx_status check_batch(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *targets,
                              const int64_t *lengths, int64_t n)
{
    const int64_t all = cfxi_tensor_numel(targets);
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (lengths[i] > x->size[0])
            return cfxi_fail(c, CFX_E_SHAPE, "Expected input_lengths to have value at most %lld, "
                             "but got value %lld", (long long)x->size[0], (long long)lengths[i]);
        if (targets->ndim == 2 && lengths[n + i] > targets->size[1])
            return cfxi_fail(c, CFX_E_SHAPE, "Expected tensor to have size at least %lld at "
                             "dimension 1", (long long)lengths[n + i]);
        if (lengths[n + i] <= all - sum)
            sum += lengths[n + i];
        else
            sum = all + 1;  /* too many, however many they are */
    }
    if (targets->ndim == 2 ? targets->size[0] != n : sum > all)
        return cfxi_fail(c, CFX_E_SHAPE, "the number of targets does not match target_lengths");
    return CFX_OK;
}

static cfx_status ctc_batch(cfxi_call *c, const ctc *k, const cfx_tensor *targets,
                            const int64_t *lengths, int64_t n)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_dtype dtype = (cfx_dtype)y->dtype;
    cfxi_reduce_how how = cfxi_loss_reduction_of(c, REDUCTION);
    const int64_t *labels = (const int64_t *)targets->data;
    int64_t classes = k->x->size[k->x->ndim - 1];
    double total = 0;
    for (int64_t i = 0, at = 0; i < n; i++) {
        const int64_t *target = targets->ndim == 2 ? labels + i * targets->size[1] : labels + at;
        at += lengths[n + i];
        for (int64_t s = 0; s < lengths[n + i]; s++)
            if (target[s] < 0 || target[s] >= classes)
                return cfxi_fail(c, CFX_E_SHAPE, "a target is out of range: it must be a class "
                                 "index");
        double loss = ctc_one(k, i, lengths[i], target, lengths[n + i]);
        if (cfxi_rt_bool(c, ZERO_INFINITY) && loss == INFINITY)
            loss = 0;
        if (how == CFXI_REDUCE_NONE)
            cfxi_tensor_store_float(dtype, y->data + i * (int64_t)cfx_dtype_size(dtype), loss);
        total += how == CFXI_REDUCE_MEAN ? loss / (double)(lengths[n + i] ? lengths[n + i] : 1)
                                         : loss;
    }
    if (how != CFXI_REDUCE_NONE)
        cfxi_tensor_store_float(dtype, y->data,
                                how == CFXI_REDUCE_MEAN ? total / (double)n : total);
    return CFX_OK;
}

cfx_status cfxi_kernel_ctc_loss(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, LOG_PROBS);
    int64_t n = x->ndim == 3 ? x->size[1] : 1;
    ctc k = {.x = x, .blank = cfxi_rt_int(c, BLANK)};
    size_t size;
    k.x_steps[0] = x->stride[0];
    k.x_steps[1] = x->ndim == 3 ? x->stride[1] : 0;
    k.x_steps[2] = x->stride[x->ndim - 1];
    cfx_tensor *targets = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, TARGETS), CFX_DTYPE_INT64);
    if (!targets)
        return c->err->status;
    k.width = 2 * cfxi_tensor_numel(targets) + 1;
    int64_t *lengths = NULL;
    if (cfxi_base_mul_size((size_t)(n + k.width), 2 * sizeof(int64_t), 0, &size))
        lengths = cfxi_rt_scratch(c->rt, size);
    cfx_status status = lengths ? CFX_OK : cfxi_base_nomem(c->err);
    if (status == CFX_OK)
        status = read_lengths(c, INPUT_LENGTHS, lengths, n);
    if (status == CFX_OK)
        status = read_lengths(c, TARGET_LENGTHS, lengths + n, n);
    if (status == CFX_OK)
        status = check_batch(c, x, targets, lengths, n);
    if (status == CFX_OK) {
        k.alpha = (double *)(lengths + 2 * n);
        status = ctc_batch(c, &k, targets, lengths, n);
    }
    cfxi_rt_scratch_free(c->rt, lengths);
    cfx_tensor_release(targets);
    return status;
}

/* ---- multilabel_margin_loss ---------------------------------------------------------------- */

/* (self, target, reduction): labels of a row end at the first -1. */
cfx_status cfxi_rule_multilabel_margin_loss(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *t = cfxi_rt_tensor(c, 1);
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype) || t->dtype != CFX_DTYPE_INT64)
        return cfxi_fail(c, CFX_E_SHAPE, "expected a floating-point input and an int64 target");
    bool fits = x->ndim <= 2 && t->ndim == x->ndim;
    for (size_t d = 0; fits && d < x->ndim; d++)
        fits = cfxi_rt_same_size(c, x->size[d], t->size[d]);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "inconsistent target size: target must have the size of "
                         "input");
    CFX_TRY(cfxi_loss_check_reduction(c, 2));
    bool each = cfxi_loss_reduction_of(c, 2) == CFXI_REDUCE_NONE;
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, each && x->ndim == 2 ? 1 : 0);
}

static bool is_label(const int64_t *t, int64_t n, int64_t class)
{
    for (int64_t i = 0; i < n && t[i] >= 0; i++)
        if (t[i] == class)
            return true;
    return false;
}

static cfx_status margin_row(cfxi_call *c, const double *x, const int64_t *t, int64_t n,
                             double *loss)
{
    *loss = 0;
    for (int64_t j = 0; j < n && t[j] >= 0; j++)
        if (t[j] >= n)
            return cfxi_fail(c, CFX_E_SHAPE, "a target is out of range: it must be a class index");
    for (int64_t i = 0; i < n; i++) {
        if (is_label(t, n, i))
            continue;
        for (int64_t j = 0; j < n && t[j] >= 0; j++) {
            double z = 1 - x[t[j]] + x[i];
            *loss += z > 0 ? z : 0;
        }
    }
    *loss /= (double)n;
    return CFX_OK;
}

static cfx_status margin_rows(cfxi_call *c, const double *x, const int64_t *t, int64_t rows,
                              int64_t n)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_dtype dtype = (cfx_dtype)y->dtype;
    cfxi_reduce_how how = cfxi_loss_reduction_of(c, 2);
    double total = 0;
    for (int64_t row = 0; row < rows; row++) {
        double loss;
        CFX_TRY(margin_row(c, x + row * n, t + row * n, n, &loss));
        if (how == CFXI_REDUCE_NONE)
            cfxi_tensor_store_float(dtype, y->data + row * (int64_t)cfx_dtype_size(dtype), loss);
        total += loss;
    }
    if (how != CFXI_REDUCE_NONE)
        cfxi_tensor_store_float(dtype, y->data,
                                how == CFXI_REDUCE_MEAN ? total / (double)rows : total);
    return CFX_OK;
}

cfx_status cfxi_kernel_multilabel_margin_loss(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    int64_t n = x->ndim ? x->size[x->ndim - 1] : 1;
    cfx_tensor *dense = cfxi_rt_contiguous(c, x, CFX_DTYPE_FLOAT64);
    cfx_tensor *labels = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 1), CFX_DTYPE_INT64);
    cfx_status status = dense && labels ? CFX_OK : c->err->status;
    if (status == CFX_OK)
        status = margin_rows(c, (const double *)dense->data, (const int64_t *)labels->data,
                             x->ndim == 2 ? x->size[0] : 1, n);
    cfx_tensor_release(dense);
    cfx_tensor_release(labels);
    return status;
}
