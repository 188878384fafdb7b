/* conv_backward.c - gradients of a convolution, made of other rows.
 *
 * Of the input: the opposite convolution of the gradient. Of the weight: products of the gradient
 * with the columns that the convolution has read (one group, images), or else a convolution of the
 * input with the gradient, in which batch and channels have changed places, and stride and dilation
 * too. Of the bias: a sum.
 */
#include "conv_impl.h"

enum { GRAD, INPUT, WEIGHT, BIAS_SIZES, STRIDE, PADDING, DILATION, TRANSPOSED, EXTRA, GROUPS,
       MASK };

/* Sizes and the like in the last `n` of three. */
typedef struct gradients {
    size_t n;  /* dimensions of the images */
    bool transposed;
    int64_t groups;
    const cfx_tensor *large;  /* the input; of a transposed convolution, the gradient */
    const cfx_tensor *small;  /* the other one */
    const cfx_tensor *weight;
    int64_t stride[CFXI_SPATIAL];
    int64_t padding[CFXI_SPATIAL];
    int64_t dilation[CFXI_SPATIAL];
} gradients;

/* ---- calls that chain: NULL for NULL -------------------------------------------------------- */

static cfx_tensor *then(cfxi_call *c, cfx_operator op, cfx_tensor *x, cfx_datum other)
{
    const cfx_datum args[] = {cfx_datum_tensor(x), other};
    const bool given = x && other.kind != CFX_DATUM_INVALID;
    cfx_tensor *y = given ? cfxi_rt_sub_tensor(c, op, args, 2) : NULL;
    cfx_tensor_release(x);
    return y;
}

static cfx_datum list_of(cfxi_call *c, const int64_t *numbers, size_t n)
{
    cfx_datum items[CFX_MAX_DIMS];
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(numbers[i]);
    return cfx_datum_seq(CFX_DATUM_LIST, items, n, c->rt->allocator, c->err);
}

static cfx_tensor *swap(cfxi_call *c, cfx_tensor *x, int64_t a, int64_t b)
{
    const cfx_datum args[] = {cfx_datum_tensor(x), cfx_datum_int(a), cfx_datum_int(b)};
    cfx_tensor *y = x ? cfxi_rt_sub_tensor(c, CFX_OPID_transpose, args, 3) : NULL;
    cfx_tensor_release(x);
    return y;
}

/* `lists` are stride, padding, dilation and output_padding. */
static cfx_tensor *convolve(cfxi_call *c, const gradients *g, cfx_datum x, cfx_datum w,
                            const int64_t *const lists[4], bool transposed)
{
    cfx_datum made[4];
    bool good = true;
    for (size_t i = 0; i < 4; i++) {
        made[i] = list_of(c, lists[i] + CFXI_SPATIAL - g->n, g->n);
        good = good && made[i].kind != CFX_DATUM_INVALID;
    }
    const cfx_datum args[] = {x, w, cfx_datum_none(), made[0], made[1], made[2],
                              cfx_datum_bool(transposed), made[3], cfx_datum_int(g->groups)};
    cfx_tensor *y = good ? cfxi_rt_sub_tensor(c, CFX_OPID_convolution, args, 9) : NULL;
    for (size_t i = 0; i < 4; i++)
        cfx_datum_release(made[i]);
    return y;
}

/* ---- the input ------------------------------------------------------------------------------ */

/* What the windows of the convolution have left over at the end of dimension `d`. */
static int64_t left_over(cfxi_call *c, const gradients *g, size_t d)
{
    const size_t at = d + g->n - CFXI_SPATIAL + 2;
    int64_t steps = cfx_dim_sub(c->dims, g->small->size[at], 1, c->err);
    int64_t taps = cfx_dim_sub(c->dims, g->weight->size[at], 1, c->err);
    int64_t read = cfx_dim_add(c->dims, cfx_dim_mul(c->dims, steps, g->stride[d], c->err),
                               cfx_dim_mul(c->dims, taps, g->dilation[d], c->err), c->err);
    read = cfx_dim_sub(c->dims, read, cfx_dim_mul(c->dims, 2, g->padding[d], c->err), c->err);
    return cfx_dim_sub(c->dims, cfx_dim_sub(c->dims, g->large->size[at], read, c->err), 1, c->err);
}

static cfx_tensor *input_gradient(cfxi_call *c, const gradients *g)
{
    int64_t extra[CFXI_SPATIAL] = {0};
    for (size_t d = CFXI_SPATIAL - g->n; !g->transposed && d < CFXI_SPATIAL; d++)
        extra[d] = left_over(c, g, d);
    const int64_t *const lists[] = {g->stride, g->padding, g->dilation, extra};
    return convolve(c, g, c->args[GRAD], c->args[WEIGHT], lists, !g->transposed);
}

/* ---- the weight ----------------------------------------------------------------------------- */

/* [batch, channels, ...] as [channels, all others]: one product for the whole batch, and no sum of
 * its parts. */
static cfx_tensor *flat(cfxi_call *c, cfx_tensor *x)
{
    x = swap(c, x, 0, 1);
    int64_t sizes[2] = {x ? x->size[0] : 0, 1};
    for (size_t d = 1; x && d < x->ndim; d++)
        sizes[1] = cfx_dim_mul(c->dims, sizes[1], x->size[d], c->err);
    return cfxi_rt_then_list(c, CFX_OPID_reshape, x, sizes, 2);
}

static cfx_tensor *by_columns(cfxi_call *c, const gradients *g)
{
    const int64_t *const windows[] = {g->weight->size + 2, g->dilation + 1, g->padding + 1,
                                      g->stride + 1};
    cfx_datum args[5] = {cfx_datum_tensor((cfx_tensor *)g->large)};
    bool good = true;
    for (size_t i = 0; i < 4; i++) {
        args[i + 1] = list_of(c, windows[i], 2);
        good = good && args[i + 1].kind != CFX_DATUM_INVALID;
    }
    cfx_tensor *columns = good ? cfxi_rt_sub_tensor(c, CFX_OPID_im2col, args, 5) : NULL;
    for (size_t i = 1; i < 5; i++)
        cfx_datum_release(args[i]);
    columns = flat(c, columns);
    cfx_tensor *across = columns ? swap(c, cfx_tensor_retain(columns), 0, 1) : NULL;
    cfx_tensor *y = across ? flat(c, cfx_tensor_retain((cfx_tensor *)g->small)) : NULL;
    y = across ? then(c, CFX_OPID_matmul, y, cfx_datum_tensor(across)) : NULL;
    cfx_tensor_release(across);
    cfx_tensor_release(columns);
    return cfxi_rt_then_list(c, CFX_OPID_reshape, y, g->weight->size, g->weight->ndim);
}

/* The channels of each group to the front, and the groups of the batch in their place. */
static cfx_tensor *turned(cfxi_call *c, const gradients *g)
{
    const cfx_tensor *x = g->large;
    int64_t sizes[CFX_MAX_DIMS] = {x->size[0], g->groups, g->weight->size[1]};
    int64_t order[CFX_MAX_DIMS] = {2, 1, 0};
    int64_t joined[CFX_MAX_DIMS] = {g->weight->size[1],
                                    cfx_dim_mul(c->dims, g->groups, x->size[0], c->err)};
    for (size_t d = 0; d < g->n; d++) {
        sizes[3 + d] = joined[2 + d] = x->size[2 + d];
        order[3 + d] = (int64_t)(3 + d);
    }
    cfx_tensor *y = cfx_tensor_retain((cfx_tensor *)x);
    y = cfxi_rt_then_list(c, CFX_OPID_reshape, y, sizes, 3 + g->n);
    y = cfxi_rt_then_list(c, CFX_OPID_permute, y, order, 3 + g->n);
    return cfxi_rt_then_list(c, CFX_OPID_reshape, y, joined, 2 + g->n);
}

static cfx_tensor *by_convolution(cfxi_call *c, const gradients *g)
{
    static const int64_t none[CFXI_SPATIAL];
    cfx_tensor *x = turned(c, g);
    cfx_tensor *w = x ? swap(c, cfx_tensor_retain((cfx_tensor *)g->small), 0, 1) : NULL;
    const int64_t *const lists[] = {g->dilation, g->padding, g->stride, none};
    cfx_tensor *y = w ? convolve(c, g, cfx_datum_tensor(x), cfx_datum_tensor(w), lists, false)
                      : NULL;
    cfx_tensor_release(w);
    cfx_tensor_release(x);
    for (size_t d = 2; y && d < 2 + g->n; d++) {  /* taps that the convolution does not have */
        const cfx_datum args[] = {cfx_datum_tensor(y), cfx_datum_int((int64_t)d), cfx_datum_int(0),
                                  cfx_datum_int(g->weight->size[d])};
        cfx_tensor *part = cfxi_rt_sub_tensor(c, CFX_OPID_narrow, args, 4);
        cfx_tensor_release(y);
        y = part;
    }
    y = swap(c, y, 0, 1);
    const cfx_datum whole = cfx_datum_tensor(y);
    cfx_tensor *dense = y ? cfxi_rt_sub_tensor(c, CFX_OPID_contiguous, &whole, 1) : NULL;
    cfx_tensor_release(y);
    return dense;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static cfx_status read(cfxi_call *c, gradients *g)
{
    const cfx_tensor *grad = cfxi_rt_tensor(c, GRAD);
    const cfx_tensor *input = cfxi_rt_tensor(c, INPUT);
    *g = (gradients){.weight = cfxi_rt_tensor(c, WEIGHT),
                     .transposed = cfxi_rt_bool(c, TRANSPOSED)};
    if (g->weight->ndim < 3 || g->weight->ndim > 5 || grad->ndim != g->weight->ndim ||
        input->ndim != g->weight->ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "the gradient, the input and the weight must have the "
                         "same number of dimensions, from 3 to 5");
    g->n = g->weight->ndim - 2u;
    g->large = g->transposed ? grad : input;
    g->small = g->transposed ? input : grad;
    CFX_TRY(cfxi_rt_number(c, GROUPS, &g->groups));
    if (g->groups <= 0)
        return cfxi_fail(c, CFX_E_SHAPE, "non-positive groups is not supported");
    CFX_TRY(cfxi_rt_window_ints(c, STRIDE, g->n, 1, NULL, "stride", g->stride));
    CFX_TRY(cfxi_rt_window_ints(c, PADDING, g->n, 0, NULL, "padding", g->padding));
    return cfxi_rt_window_ints(c, DILATION, g->n, 1, NULL, "dilation", g->dilation);
}

static cfx_tensor *bias_gradient(cfxi_call *c, const gradients *g)
{
    static const int64_t dims[] = {0, 2, 3, 4};
    return cfxi_rt_then_list(c, CFX_OPID_sum, cfxi_rt_hold(c, GRAD), dims, g->n + 1);
}

cfx_status cfxi_rule_convolution_backward(cfxi_call *c)
{
    gradients g;
    size_t n;
    const cfx_datum *wanted = cfxi_rt_list(c, MASK, &n);
    CFX_TRY(read(c, &g));
    if (n != 3)
        return cfxi_fail(c, CFX_E_SHAPE, "'output_mask' must have 3 items, not %zu", n);
    for (size_t i = 0; i < 3; i++) {
        if (!wanted[i].as.b) {
            cfxi_rt_result_datum(c, i, cfx_datum_none());
            continue;
        }
        const bool columns = g.n == 2 && g.groups == 1;
        cfx_tensor *t = i == 0   ? input_gradient(c, &g)
                        : i == 2 ? bias_gradient(c, &g)
                        : columns ? by_columns(c, &g) : by_convolution(c, &g);
        if (!t)
            return c->err->status;
        cfxi_rt_result_datum(c, i, cfx_datum_tensor(t));
    }
    return CFX_OK;
}
