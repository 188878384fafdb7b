/* matmul.c - matmul and its kin: products of vectors, matrices and batches, and what is added. */
#include "product_impl.h"
#include "runtime/runtime_impl.h"

#include <math.h>

/* ---- what the rules share ------------------------------------------------------------------ */

static cfx_status same_types(cfxi_call *c, const cfx_tensor *a, const cfx_tensor *b)
{
    if (a->dtype != b->dtype)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "expected m1 and m2 to have the same dtype, but got: %s != %s",
                         cfx_dtype_name((cfx_dtype)a->dtype), cfx_dtype_name((cfx_dtype)b->dtype));
    if (a->dtype == CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "matrix products are not implemented for bool");
    return CFX_OK;
}

static cfx_status inner_sizes(cfxi_call *c, int64_t a, int64_t b)
{
    if (!cfxi_rt_same_size(c, a, b))
        return cfxi_fail(c, CFX_E_SHAPE, "shapes cannot be multiplied: inner sizes %lld and %lld "
                         "differ", (long long)a, (long long)b);
    return CFX_OK;
}

static cfx_status ndim_is(cfxi_call *c, const char *name, const cfx_tensor *t, size_t ndim)
{
    if (t->ndim != ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "%s must be a %zuD tensor, but has %u dimensions", name,
                         ndim, t->ndim);
    return CFX_OK;
}

/* `t`, to which a product of these sizes is added, must be broadcast to them. */
static cfx_status expands_to(cfxi_call *c, const cfx_tensor *t, const int64_t *sizes, size_t ndim)
{
    if (t->ndim > ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "the number of sizes provided (%zu) must be greater or "
                         "equal to the number of dimensions in the tensor (%u)", ndim, t->ndim);
    for (size_t d = 0; d < t->ndim; d++) {
        int64_t to = sizes[ndim - t->ndim + d];
        if (!cfxi_rt_broadcasts(c, t->size[d], to))
            return cfxi_fail(c, CFX_E_SHAPE, "The expanded size of the tensor (%lld) must match "
                             "the existing size (%lld) at non-singleton dimension %zu",
                             (long long)to, (long long)t->size[d], ndim - t->ndim + d);
    }
    return CFX_OK;
}

static const cfxi_factors one = {.alpha = {1, 0}};

/* ---- matmul -------------------------------------------------------------------------------- */

cfx_status cfxi_rule_matmul(cfxi_call *c)
{
    cfx_tensor a = cfxi_linalg_shown(cfxi_rt_tensor(c, 0));
    cfx_tensor b = cfxi_linalg_shown(cfxi_rt_tensor(c, 1));
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    if (a.ndim == 0 || b.ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "both arguments to matmul need to be at least 1D, but "
                         "they are %uD and %uD", a.ndim, b.ndim);
    CFX_TRY(same_types(c, &a, &b));
    CFX_TRY(inner_sizes(c, a.size[a.ndim - 1], b.size[b.ndim > 1 ? b.ndim - 2 : 0]));
    int64_t m = a.ndim > 1 ? a.size[a.ndim - 2] : 0;
    int64_t n = b.size[b.ndim - 1];
    bool rows = a.ndim > 1;
    bool columns = b.ndim > 1;
    a.ndim = (uint8_t)(a.ndim > 2 ? a.ndim - 2 : 0);
    b.ndim = (uint8_t)(b.ndim > 2 ? b.ndim - 2 : 0);
    const cfx_tensor *both[] = {&a, &b};
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    if (rows)
        sizes[ndim++] = m;
    if (columns)
        sizes[ndim++] = n;
    return cfxi_rt_result(c, 0, (cfx_dtype)a.dtype, sizes, ndim);
}

/* Vectors are matrices with one row or column. */
cfx_status cfxi_kernel_matmul(cfxi_call *c)
{
    cfx_tensor a = cfxi_linalg_shown(cfxi_rt_tensor(c, 0));
    cfx_tensor b = cfxi_linalg_shown(cfxi_rt_tensor(c, 1));
    cfx_tensor out = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    bool row = a.ndim == 1;
    bool column = b.ndim == 1;
    if (row)
        cfxi_linalg_unsqueeze(&a, 0);
    if (column)
        cfxi_linalg_unsqueeze(&b, 1);
    if (column)
        cfxi_linalg_unsqueeze(&out, out.ndim);
    if (row)
        cfxi_linalg_unsqueeze(&out, (size_t)out.ndim - 1);
    return cfxi_linalg_product(c, &out, &a, &b, &one);
}

cfx_status cfxi_rule_mm(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const cfx_tensor *b = cfxi_rt_tensor(c, 1);
    CFX_TRY(ndim_is(c, "self", a, 2));
    CFX_TRY(ndim_is(c, "mat2", b, 2));
    return cfxi_rule_matmul(c);
}
cfx_status cfxi_kernel_mm(cfxi_call *c) { return cfxi_kernel_matmul(c); }

cfx_status cfxi_rule_bmm(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const cfx_tensor *b = cfxi_rt_tensor(c, 1);
    CFX_TRY(ndim_is(c, "batch1", a, 3));
    CFX_TRY(ndim_is(c, "batch2", b, 3));
    if (!cfxi_rt_same_size(c, a->size[0], b->size[0]) ||
        !cfxi_rt_same_size(c, a->size[2], b->size[1]))
        return cfxi_fail(c, CFX_E_SHAPE, "Expected size for first two dimensions of batch2 tensor "
                         "to be: [%lld, %lld] but got: [%lld, %lld].", (long long)a->size[0],
                         (long long)a->size[2], (long long)b->size[0], (long long)b->size[1]);
    return cfxi_rule_matmul(c);
}
cfx_status cfxi_kernel_bmm(cfxi_call *c) { return cfxi_kernel_matmul(c); }

cfx_status cfxi_rule_mv(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const cfx_tensor *b = cfxi_rt_tensor(c, 1);
    if (a->ndim != 2 || b->ndim != 1)
        return cfxi_fail(c, CFX_E_SHAPE, "vector + matrix @ vector expected, got 1, %u, %u",
                         a->ndim, b->ndim);
    return cfxi_rule_matmul(c);
}
cfx_status cfxi_kernel_mv(cfxi_call *c) { return cfxi_kernel_matmul(c); }

cfx_status cfxi_rule_dot(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const cfx_tensor *b = cfxi_rt_tensor(c, 1);
    if (a->ndim != 1 || b->ndim != 1)
        return cfxi_fail(c, CFX_E_SHAPE, "1D tensors expected, but got %uD and %uD tensors",
                         a->ndim, b->ndim);
    return cfxi_rule_matmul(c);
}
cfx_status cfxi_kernel_dot(cfxi_call *c) { return cfxi_kernel_matmul(c); }

/* The first vector's conjugate. */
cfx_status cfxi_kernel_vdot(cfxi_call *c)
{
    cfx_tensor *a = cfxi_rt_tensor(c, 0);
    if (!cfx_dtype_is_complex((cfx_dtype)a->dtype))
        return cfxi_kernel_matmul(c);
    cfx_tensor *b = cfxi_rt_tensor(c, 1);
    size_t size = cfxi_tensor_itemsize(a);
    double sum[2] = {0, 0};
    for (int64_t i = 0; i < a->size[0]; i++) {
        double x[2], y[2];
        cfxi_tensor_load_complex((cfx_dtype)a->dtype, a->data + i * a->stride[0], x);
        cfxi_tensor_load_complex((cfx_dtype)b->dtype, b->data + i * b->stride[0], y);
        sum[0] += x[0] * y[0] + x[1] * y[1];
        sum[1] += x[0] * y[1] - x[1] * y[0];
    }
    (void)size;
    cfxi_tensor_store_complex((cfx_dtype)a->dtype, cfxi_rt_result_at(c, 0)->data, sum);
    return CFX_OK;
}

/* ---- outer --------------------------------------------------------------------------------- */

cfx_status cfxi_rule_outer(cfxi_call *c)
{
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    for (size_t i = 0; i < 2; i++)
        if (both[i]->ndim != 1)
            return cfxi_fail(c, CFX_E_SHAPE, "outer: Expected 1-D argument %s, but got %u-D",
                             i ? "vec2" : "self", both[i]->ndim);
    const int64_t sizes[] = {both[0]->size[0], both[1]->size[0]};
    return cfxi_rt_result(c, 0, cfxi_tensor_promote(both, 2), sizes, 2);
}

/* An element-wise product, broadcast. */
cfx_status cfxi_kernel_outer(cfxi_call *c)
{
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    cfx_tensor a = cfxi_linalg_shown(cfxi_rt_tensor(c, 0));
    cfx_tensor b = cfxi_linalg_shown(cfxi_rt_tensor(c, 1));
    const cfx_dtype dtype = (cfx_dtype)out->dtype;
    if (dtype == CFX_DTYPE_BOOL) {
        for (int64_t i = 0; i < a.size[0]; i++)
            for (int64_t j = 0; j < b.size[0]; j++)
                out->data[i * b.size[0] + j] = a.data[i * a.stride[0]] && b.data[j * b.stride[0]];
        return CFX_OK;
    }
    cfx_tensor *left = cfxi_rt_contiguous(c, &a, dtype);
    cfx_tensor *right = left ? cfxi_rt_contiguous(c, &b, dtype) : NULL;
    cfx_status status = right ? CFX_OK : c->err->status;
    if (right) {
        a = cfxi_linalg_shown(left);
        b = cfxi_linalg_shown(right);
        cfxi_linalg_unsqueeze(&a, 1);
        cfxi_linalg_unsqueeze(&b, 0);
        status = cfxi_linalg_product(c, out, &a, &b, &one);
    }
    cfx_tensor_release(right);
    cfx_tensor_release(left);
    return status;
}

/* ---- products that are added to something -------------------------------------------------- */

/* A Scalar as a complex number; of integers, the integer it is cut to. */
static void factor(const cfxi_call *c, size_t i, cfx_dtype dtype, double out[2])
{
    out[0] = c->args[i].kind == CFX_DATUM_COMPLEX ? c->args[i].as.c[0] : cfxi_rt_scalar(c, i);
    out[1] = c->args[i].kind == CFX_DATUM_COMPLEX ? c->args[i].as.c[1] : 0;
    if (cfx_dtype_is_integer(dtype))
        out[0] = fabs(out[0]) < 9e18 ? (double)(int64_t)out[0] : (double)INT64_MIN;
}

/* Arguments: self, left, right, beta, alpha. The product of these sizes is what comes out. */
static cfx_status added_rule(cfxi_call *c, const int64_t *sizes, size_t ndim)
{
    const cfx_tensor *self = cfxi_rt_tensor(c, 0);
    const cfx_tensor *a = cfxi_rt_tensor(c, 1);
    CFX_TRY(same_types(c, a, cfxi_rt_tensor(c, 2)));
    if (self->dtype != a->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "self and mat2 must have the same dtype, but got %s and "
                         "%s",
                         cfx_dtype_name((cfx_dtype)self->dtype),
                         cfx_dtype_name((cfx_dtype)a->dtype));
    CFX_TRY(expands_to(c, self, sizes, ndim));
    return cfxi_rt_result(c, 0, (cfx_dtype)a->dtype, sizes, ndim);
}

/* out = beta self + alpha a b */
static cfx_status added_product(cfxi_call *c, cfx_tensor *out, const cfx_tensor *a,
                                const cfx_tensor *b)
{
    const cfx_tensor *self = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = (cfx_dtype)out->dtype;
    cfxi_factors f = {.bias = NULL};
    factor(c, 3, dtype, f.beta);
    factor(c, 4, dtype, f.alpha);
    bool is_bias = f.beta[0] == 1 && f.beta[1] == 0 && self->ndim == 1 && self->size[0] > 1 &&
                   self->stride[0] == (int64_t)cfxi_tensor_itemsize(self) &&
                   cfx_dtype_is_float(dtype) && out->ndim == 2 && self->size[0] == out->size[1];
    if (is_bias) {
        f.beta[0] = 0;
        f.bias = self;
    } else if (f.beta[0] != 0 || f.beta[1] != 0) {
        CFX_TRY(cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), self, c->err));
    }
    return cfxi_linalg_product(c, out, a, b, &f);
}

cfx_status cfxi_rule_addmm(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 1);
    const cfx_tensor *b = cfxi_rt_tensor(c, 2);
    CFX_TRY(ndim_is(c, "mat1", a, 2));
    CFX_TRY(ndim_is(c, "mat2", b, 2));
    CFX_TRY(inner_sizes(c, a->size[1], b->size[0]));
    const int64_t sizes[] = {a->size[0], b->size[1]};
    return added_rule(c, sizes, 2);
}
cfx_status cfxi_kernel_addmm(cfxi_call *c)
{
    return added_product(c, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 2));
}

cfx_status cfxi_rule_addmv(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 1);
    const cfx_tensor *b = cfxi_rt_tensor(c, 2);
    if (a->ndim != 2 || b->ndim != 1)
        return cfxi_fail(c, CFX_E_SHAPE, "vector + matrix @ vector expected, got %u, %u, %u",
                         cfxi_rt_tensor(c, 0)->ndim, a->ndim, b->ndim);
    CFX_TRY(inner_sizes(c, a->size[1], b->size[0]));
    return added_rule(c, a->size, 1);
}
cfx_status cfxi_kernel_addmv(cfxi_call *c)
{
    cfx_tensor b = cfxi_linalg_shown(cfxi_rt_tensor(c, 2));
    cfx_tensor out = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    cfxi_linalg_unsqueeze(&b, 1);
    cfxi_linalg_unsqueeze(&out, 1);
    return added_product(c, &out, cfxi_rt_tensor(c, 1), &b);
}

static cfx_status batches_fit(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 1);
    const cfx_tensor *b = cfxi_rt_tensor(c, 2);
    CFX_TRY(ndim_is(c, "batch1", a, 3));
    CFX_TRY(ndim_is(c, "batch2", b, 3));
    if (!cfxi_rt_same_size(c, a->size[0], b->size[0]))
        return cfxi_fail(c, CFX_E_SHAPE, "batch1 and batch2 must have same number of batches, got "
                         "%lld and %lld", (long long)a->size[0], (long long)b->size[0]);
    return inner_sizes(c, a->size[2], b->size[1]);
}

cfx_status cfxi_rule_baddbmm(cfxi_call *c)
{
    CFX_TRY(batches_fit(c));
    const cfx_tensor *a = cfxi_rt_tensor(c, 1);
    const int64_t sizes[] = {a->size[0], a->size[1], cfxi_rt_tensor(c, 2)->size[2]};
    return added_rule(c, sizes, 3);
}
cfx_status cfxi_kernel_baddbmm(cfxi_call *c)
{
    return added_product(c, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 2));
}

cfx_status cfxi_rule_addbmm(cfxi_call *c)
{
    CFX_TRY(batches_fit(c));
    const int64_t sizes[] = {cfxi_rt_tensor(c, 1)->size[1], cfxi_rt_tensor(c, 2)->size[2]};
    return added_rule(c, sizes, 2);
}

/* The sum over the batch is one product: [m, batch * k] by [batch * k, n]. */
cfx_status cfxi_kernel_addbmm(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 1);
    const cfx_tensor *b = cfxi_rt_tensor(c, 2);
    const int64_t *s = a->size;
    const int64_t turned[] = {s[1], s[0], s[2]};
    cfx_tensor from = cfxi_linalg_shown(a);
    from.size[0] = s[1], from.size[1] = s[0];
    from.stride[0] = a->stride[1], from.stride[1] = a->stride[0];
    cfx_tensor *left = cfx_tensor_new((cfx_dtype)a->dtype, turned, 3, c->rt->allocator, c->err);
    cfx_tensor *right = left ? cfxi_rt_contiguous(c, b, (cfx_dtype)b->dtype) : NULL;
    cfx_status status = right ? cfxi_rt_copy(c->rt, left, &from, c->err) : c->err->status;
    if (status == CFX_OK) {
        const int64_t item = (int64_t)cfxi_tensor_itemsize(a);
        cfx_tensor wide = cfxi_linalg_shown(left);
        cfx_tensor tall = cfxi_linalg_shown(right);
        wide.ndim = tall.ndim = 2;
        wide.size[0] = s[1], wide.size[1] = s[0] * s[2];
        tall.size[0] = s[0] * s[2], tall.size[1] = b->size[2];
        wide.stride[0] = wide.size[1] * item, wide.stride[1] = item;
        tall.stride[0] = tall.size[1] * item, tall.stride[1] = item;
        status = added_product(c, cfxi_rt_result_at(c, 0), &wide, &tall);
    }
    cfx_tensor_release(right);
    cfx_tensor_release(left);
    return status;
}

/* ---- linear -------------------------------------------------------------------------------- */

cfx_status cfxi_rule_linear(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *w = cfxi_rt_tensor(c, 1);
    const cfx_tensor *bias = cfxi_rt_tensor(c, 2);
    int64_t sizes[CFX_MAX_DIMS];
    if (x->ndim == 0 || w->ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "both arguments to linear need to be at least 1D, but "
                         "they are %uD and %uD", x->ndim, w->ndim);
    if (w->ndim > 2)
        return cfxi_fail(c, CFX_E_SHAPE, "t() expects a tensor with <= 2 dimensions, but self is "
                         "%uD", w->ndim);
    CFX_TRY(same_types(c, x, w));
    CFX_TRY(inner_sizes(c, x->size[x->ndim - 1], w->size[w->ndim - 1]));
    size_t ndim = (size_t)x->ndim - 1;
    memcpy(sizes, x->size, ndim * sizeof *sizes);
    if (w->ndim == 2)
        sizes[ndim++] = w->size[0];
    if (bias && bias->dtype != x->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "self and mat2 must have the same dtype, but got %s and "
                         "%s",
                         cfx_dtype_name((cfx_dtype)bias->dtype),
                         cfx_dtype_name((cfx_dtype)x->dtype));
    if (bias)
        CFX_TRY(expands_to(c, bias, sizes, ndim));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, ndim);
}

cfx_status cfxi_kernel_linear(cfxi_call *c)
{
    const cfx_tensor *bias = cfxi_rt_tensor(c, 2);
    cfx_tensor x = cfxi_linalg_shown(cfxi_rt_tensor(c, 0));
    cfx_tensor w = cfxi_linalg_shown(cfxi_rt_tensor(c, 1));
    cfx_tensor out = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    cfxi_factors f = one;
    if (w.ndim == 1) {
        cfxi_linalg_unsqueeze(&w, 0);
        cfxi_linalg_unsqueeze(&out, out.ndim);
    }
    if (x.ndim == 1) {
        cfxi_linalg_unsqueeze(&x, 0);
        cfxi_linalg_unsqueeze(&out, 0);
    }
    int64_t size = w.size[0];
    int64_t stride = w.stride[0];
    w.size[0] = w.size[1], w.stride[0] = w.stride[1];
    w.size[1] = size, w.stride[1] = stride;
    if (bias && bias->ndim == 1 && bias->size[0] == size && cfx_dtype_is_float(out.dtype) &&
        bias->stride[0] == (int64_t)cfxi_tensor_itemsize(bias)) {
        f.bias = bias;
    } else if (bias) {
        f.beta[0] = 1;
        CFX_TRY(cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), bias, c->err));
    }
    return cfxi_linalg_product(c, &out, &x, &w, &f);
}
