/* loss.c - losses of one element and its target each: mse_loss, binary_cross_entropy, kl_div, ...
 *
 * They are computed in double, stored in the type of the result, and reduced as sum and mean do. */
#include "runtime/kernels/elementwise/elementwise_impl.h"
#include "loss_impl.h"

#include <math.h>

/* ---- reduction ----------------------------------------------------------------------------- */

cfxi_reduce_how cfxi_loss_reduction_of(const cfxi_call *c, size_t arg)
{
    static const char *const words[] = {"none", "mean", "sum", "batchmean"};
    const char *word = cfxi_rt_str(c, arg);
    if (!word) {
        int64_t i = cfxi_rt_int(c, arg);
        return i >= 0 && i <= 2 ? (cfxi_reduce_how)i : CFXI_REDUCE_UNKNOWN;
    }
    for (int i = 0; i < CFXI_REDUCE_UNKNOWN; i++)
        if (strcmp(word, words[i]) == 0)
            return (cfxi_reduce_how)i;
    return CFXI_REDUCE_UNKNOWN;
}

cfx_status cfxi_loss_check_reduction(cfxi_call *c, size_t arg)
{
    if (cfxi_loss_reduction_of(c, arg) != CFXI_REDUCE_UNKNOWN)
        return CFX_OK;
    if (c->args[arg].symbolic)
        return cfxi_fail(c, CFX_E_VALUE, "reduction must be a known value");
    return cfxi_fail(c, CFX_E_VALUE, "%s is not a valid value for reduction",
                     cfxi_rt_str(c, arg) ? cfxi_rt_str(c, arg) : "the number");
}

static cfx_status divide_by_batch(cfxi_call *c, int64_t batch)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    double sum = cfxi_tensor_load_float((cfx_dtype)y->dtype, y->data);
    cfxi_tensor_store_float((cfx_dtype)y->dtype, y->data, sum / (double)batch);
    return CFX_OK;
}

cfx_status cfxi_loss_reduce_losses(cfxi_call *c, cfx_tensor *all, cfxi_reduce_how how)
{
    if (!all)
        return c->err->status;
    cfx_datum d = cfx_datum_tensor(all);
    int64_t batch = all->ndim ? all->size[0] : 1;
    if (how == CFXI_REDUCE_NONE) {
        cfxi_rt_result_datum(c, 0, d);
        return CFX_OK;
    }
    cfx_operator op = how == CFXI_REDUCE_MEAN ? CFX_OPID_mean : CFX_OPID_sum;
    cfx_tensor *one = cfxi_rt_sub_tensor(c, op, &d, 1);
    cfx_tensor_release(all);
    if (!one)
        return c->err->status;
    cfxi_rt_result_datum(c, 0, cfx_datum_tensor(one));
    return how == CFXI_REDUCE_BATCHMEAN ? divide_by_batch(c, batch) : CFX_OK;
}

/* ---- the losses ---------------------------------------------------------------------------- */

typedef struct loss {
    cfx_operator op;
    cfx_runtime *rt;
    cfx_dtype dtypes[5];  /* of the result and the operands */
    size_t operands;      /* with the result */
    cfx_dtype common;     /* of the operands */
    bool complex_l1;
    double number;        /* beta, delta, margin, eps */
    bool flag[2];         /* log_target; log_input, full */
    atomic_bool outside;
} loss;

static double clamped_log(double l) { return l < -100 ? -100 : l; }

static double poisson_nll(const loss *k, double x, double t)
{
    double l = k->flag[0] ? exp(x) - cfxi_loss_wrapped(k->common, t * x)
                          : x - t * log(x + k->number);
    if (k->flag[1] && t > 1)
        l += t * log(t) - t + 0.5 * log(2 * 3.14159265358979323846 * t);
    return l;
}

/* v: input, target, then what else the row takes; 1 where it is missing. */
static double element_loss(const loss *k, const double *v)
{
    double x = v[0];
    double t = v[1];
    double d = fabs(x - t);
    double n = k->number;
    switch ((int)k->op) {
    case CFX_OPID_mse_loss: return d * d;
    case CFX_OPID_l1_loss: return d;
    case CFX_OPID_smooth_l1_loss: return d < n ? 0.5 * d * d / n : d - 0.5 * n;
    case CFX_OPID_huber_loss: return d <= n ? 0.5 * d * d : n * (d - 0.5 * n);
    case CFX_OPID_binary_cross_entropy:
        return -(t * clamped_log(log(x)) + (1 - t) * clamped_log(log1p(-x))) * v[2];
    case CFX_OPID_binary_cross_entropy_with_logits:
        return ((1 - t) * x + ((v[3] - 1) * t + 1) *
                (log1p(exp(-fabs(x))) + (x < 0 ? -x : x != x ? x : 0))) * v[2];
    case CFX_OPID_kl_div:
        if (k->flag[0])
            return exp(t) * (t - x);
        return (t == 0 ? 0 : t * log(t)) - t * x;
    case CFX_OPID_poisson_nll_loss: return poisson_nll(k, x, t);
    case CFX_OPID_hinge_embedding_loss:
        return (t != 1 && !(n - x <= 0) ? n - x : 0) + (t != -1 ? x : 0);
    case CFX_OPID_margin_ranking_loss:
        d = cfxi_loss_wrapped(k->common, -v[2] * (x - t)) + n;
        return d > 0 || d != d ? d : 0;
    case CFX_OPID_soft_margin_loss: return log1p(exp(-t * x));
    }
    return 0;
}

enum { BLOCK = 256 };

static void loss_block(loss *k, int64_t n, char *const *at, const int64_t *step)
{
    double v[4][BLOCK];
    double out[BLOCK];
    for (size_t o = 1; o < k->operands; o++)
        cfxi_reduce_load_run(k->rt->isa, CFXI_F64, v[o - 1], k->dtypes[o], at[o], step[o], n);
    for (int64_t i = 0; i < n; i++) {
        const double one[4] = {v[0][i], v[1][i], k->operands > 3 ? v[2][i] : 1,
                               k->operands > 4 ? v[3][i] : 1};
        if (k->op == CFX_OPID_binary_cross_entropy && !(one[0] >= 0 && one[0] <= 1))
            atomic_store(&k->outside, true);
        out[i] = element_loss(k, one);
    }
    cfxi_reduce_store_run(k->rt->isa, CFXI_F64, out, k->dtypes[0], at[0], step[0], n);
}

static void complex_distance(const loss *k, int64_t n, char *const *at, const int64_t *step)
{
    for (int64_t i = 0; i < n; i++) {
        double x[2];
        double t[2];
        cfxi_tensor_load_complex(k->dtypes[1], at[1] + i * step[1], x);
        cfxi_tensor_load_complex(k->dtypes[2], at[2] + i * step[2], t);
        cfxi_tensor_store_float(k->dtypes[0], at[0] + i * step[0], hypot(x[0] - t[0], x[1] - t[1]));
    }
}

static void loss_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    loss *k = ctx;
    char *here[CFXI_MOST_OPERANDS];
    for (size_t o = 0; o < k->operands; o++)
        here[o] = at[o];
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t some = n - done < BLOCK ? n - done : BLOCK;
        if (k->complex_l1)
            complex_distance(k, some, here, step);
        else
            loss_block(k, some, here, step);
        for (size_t o = 0; o < k->operands; o++)
            here[o] += some * step[o];
    }
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Where a row has its operands, its reduction, and the number it goes by. */
typedef struct layout {
    cfx_operator op;
    int operand[4];   /* -1: none */
    int reduction;
    int number;       /* -1: none */
    int flag[2];      /* -1: none */
} layout;

static const layout layouts[] = {
    {CFX_OPID_mse_loss, {0, 1, -1, -1}, 2, -1, {-1, -1}},
    {CFX_OPID_l1_loss, {0, 1, -1, -1}, 2, -1, {-1, -1}},
    {CFX_OPID_smooth_l1_loss, {0, 1, -1, -1}, 2, 3, {-1, -1}},
    {CFX_OPID_huber_loss, {0, 1, -1, -1}, 2, 3, {-1, -1}},
    {CFX_OPID_binary_cross_entropy, {0, 1, 2, -1}, 3, -1, {-1, -1}},
    {CFX_OPID_binary_cross_entropy_with_logits, {0, 1, 2, 3}, 4, -1, {-1, -1}},
    {CFX_OPID_kl_div, {0, 1, -1, -1}, 2, -1, {3, -1}},
    {CFX_OPID_poisson_nll_loss, {0, 1, -1, -1}, 5, 4, {2, 3}},
    {CFX_OPID_hinge_embedding_loss, {0, 1, -1, -1}, 3, 2, {-1, -1}},
    {CFX_OPID_margin_ranking_loss, {0, 1, 2, -1}, 4, 3, {-1, -1}},
    {CFX_OPID_soft_margin_loss, {0, 1, -1, -1}, 2, -1, {-1, -1}},
};

static const layout *layout_of(cfx_operator op)
{
    size_t i = 0;
    while (layouts[i].op != op)
        i++;
    return &layouts[i];
}

static void operands_of(const cfxi_call *c, const layout *l, const cfx_tensor *t[4])
{
    for (size_t i = 0; i < 4; i++)
        t[i] = l->operand[i] < 0 ? NULL : cfxi_rt_tensor(c, (size_t)l->operand[i]);
}

static cfx_dtype loss_dtype(const cfxi_call *c, const cfx_tensor *const *t)
{
    cfx_dtype dtype = cfxi_tensor_promote(t, 4);
    if (dtype == CFX_DTYPE_COMPLEX64)
        return CFX_DTYPE_FLOAT32;
    if (dtype == CFX_DTYPE_COMPLEX128)
        return CFX_DTYPE_FLOAT64;
    bool keeps = c->op == CFX_OPID_l1_loss;  /* the others have a number that is a float */
    return cfx_dtype_is_float(dtype) || keeps ? dtype : CFX_DTYPE_FLOAT32;
}

static cfx_status check_same(cfxi_call *c, const cfx_tensor *const *t)
{
    bool same = t[0]->ndim == t[1]->ndim;
    for (size_t d = 0; same && d < t[0]->ndim; d++)
        same = cfxi_rt_same_size(c, t[0]->size[d], t[1]->size[d]);
    return same ? CFX_OK
                : cfxi_fail(c, CFX_E_VALUE, "Target size must be the same as input size");
}

static bool needs_float(cfx_operator op)
{
    return op == CFX_OPID_mse_loss || op == CFX_OPID_smooth_l1_loss || op == CFX_OPID_huber_loss ||
           op == CFX_OPID_binary_cross_entropy_with_logits || op == CFX_OPID_soft_margin_loss;
}

static cfx_status check_loss(cfxi_call *c, const layout *l, const cfx_tensor *const *t)
{
    double n = l->number < 0 ? 1 : cfxi_rt_float(c, (size_t)l->number);
    cfx_dtype dtype = cfxi_tensor_promote(t, 2);
    if (c->op == CFX_OPID_binary_cross_entropy ||
        c->op == CFX_OPID_binary_cross_entropy_with_logits)
        CFX_TRY(check_same(c, t));
    if (c->op == CFX_OPID_smooth_l1_loss && n < 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "smooth_l1_loss does not support negative values for beta.");
    if (c->op == CFX_OPID_huber_loss && !(n > 0))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "huber_loss does not support non-positive values for delta.");
    if (c->op == CFX_OPID_l1_loss || c->op == CFX_OPID_margin_ranking_loss)
        CFX_TRY(cfxi_elementwise_check_subtraction(c));
    if (c->op == CFX_OPID_kl_div && !cfx_dtype_is_float(dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "kl_div: Integral inputs not supported.");
    if ((needs_float(c->op) && !cfx_dtype_is_float(dtype)) ||
        (cfx_dtype_is_complex(dtype) && c->op != CFX_OPID_l1_loss))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s", cfx_dtype_name(dtype));
    return CFX_OK;
}

cfx_status cfxi_rule_loss(cfxi_call *c)
{
    const layout *l = layout_of(c->op);
    const cfx_tensor *t[4];
    operands_of(c, l, t);
    CFX_TRY(cfxi_loss_check_reduction(c, (size_t)l->reduction));
    CFX_TRY(check_loss(c, l, t));
    CFX_TRY(cfxi_rt_result_broadcast(c, 0, loss_dtype(c, t), t, 4));
    cfxi_reduce_how how = cfxi_loss_reduction_of(c, (size_t)l->reduction);
    cfx_dtype dtype = (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype;
    if (how == CFXI_REDUCE_NONE)
        return CFX_OK;
    if (how == CFXI_REDUCE_MEAN && !cfx_dtype_is_float(dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "mean(): could not infer output dtype. Input dtype must "
                         "be either a floating point or complex dtype. Got: %s",
                         cfx_dtype_name(dtype));
    if (how == CFXI_REDUCE_SUM && !cfx_dtype_is_float(dtype))
        dtype = CFX_DTYPE_INT64;
    return cfxi_rt_result(c, 0, dtype, NULL, 0);
}

/* One loss for each element, of the sizes that the operands have together. */
static cfx_tensor *losses(cfxi_call *c, loss *k, const cfx_tensor *const t[4], cfx_dtype dtype)
{
    const cfx_tensor *operands[CFXI_MOST_OPERANDS];
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    const cfx_tensor *first = t[0];
    cfx_tensor *one = NULL;
    if (cfxi_rt_broadcast(c, t, 4, sizes, &ndim) != CFX_OK)
        return NULL;
    cfx_tensor *y = cfx_tensor_new(dtype, sizes, ndim, c->rt->allocator, c->err);
    if (!y)
        return NULL;
    operands[0] = y;
    k->operands = 1;
    for (size_t i = 0; i < 4; i++) {
        if (t[i]) {
            operands[k->operands++] = t[i];
        } else if (i == 2 && t[3]) {  /* a weight of 1 stands before pos_weight */
            one = cfx_tensor_new(CFX_DTYPE_FLOAT32, NULL, 0, c->rt->allocator, c->err);
            if (!one) {
                cfx_tensor_release(y);
                return NULL;
            }
            *(float *)one->data = 1;
            operands[k->operands++] = one;
        }
    }
    for (size_t o = 0; o < k->operands; o++)
        k->dtypes[o] = (cfx_dtype)operands[o]->dtype;
    k->rt = c->rt;
    k->complex_l1 = cfx_dtype_is_complex((cfx_dtype)first->dtype) ||
                    cfx_dtype_is_complex((cfx_dtype)t[1]->dtype);
    cfxi_rt_loop(c->rt, operands, k->operands, 2048, loss_row, k);
    cfx_tensor_release(one);
    return y;
}

/* |input - target| in their own type, where integers wrap around. */
static cfx_tensor *whole_distances(cfxi_call *c)
{
    cfx_tensor *apart = cfxi_rt_sub_tensor(c, CFX_OPID_sub, c->args, 2);
    cfx_datum d = cfx_datum_tensor(apart);
    cfx_tensor *all = apart ? cfxi_rt_sub_tensor(c, CFX_OPID_abs, &d, 1) : NULL;
    cfx_tensor_release(apart);
    return all;
}

static cfx_status loss_kernel(cfxi_call *c)
{
    const layout *l = layout_of(c->op);
    const cfx_tensor *t[4];
    loss k = {.op = c->op};
    operands_of(c, l, t);
    k.common = cfxi_tensor_promote(t, 4);
    k.number = l->number < 0 ? 0 : cfxi_rt_float(c, (size_t)l->number);
    for (size_t i = 0; i < 2; i++)
        k.flag[i] = l->flag[i] >= 0 && cfxi_rt_bool(c, (size_t)l->flag[i]);
    cfxi_reduce_how how = cfxi_loss_reduction_of(c, (size_t)l->reduction);
    bool whole = c->op == CFX_OPID_l1_loss && cfx_dtype_is_integer(k.common);
    cfx_tensor *all = whole ? whole_distances(c) : losses(c, &k, t, loss_dtype(c, t));
    if (all && atomic_load(&k.outside)) {
        cfx_tensor_release(all);
        return cfxi_fail(c, CFX_E_SHAPE, "all elements of input should be between 0 and 1");
    }
    if (all && how == CFXI_REDUCE_NONE) {  /* the result's strides are the operands' */
        cfx_status status = cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), all, c->err);
        cfx_tensor_release(all);
        return status;
    }
    return cfxi_loss_reduce_losses(c, all, how);
}

#define LOSS(id) cfx_status cfxi_kernel_##id(cfxi_call *c) { return loss_kernel(c); }
LOSS(mse_loss)
LOSS(l1_loss)
LOSS(smooth_l1_loss)
LOSS(huber_loss)
LOSS(binary_cross_entropy)
LOSS(binary_cross_entropy_with_logits)
LOSS(kl_div)
LOSS(poisson_nll_loss)
LOSS(hinge_embedding_loss)
LOSS(margin_ranking_loss)
LOSS(soft_margin_loss)
