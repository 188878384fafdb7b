/* products.c - products made of others: tensordot, bilinear, kron, chain_matmul, cross; distances
 * between rows; the trace. */
#include "product_impl.h"
#include "runtime/runtime_impl.h"

#include <math.h>

static const cfxi_factors one = {.alpha = {1, 0}};

/* A contiguous copy of what `t` shows, always our own. */
static cfx_tensor *copy_of(cfxi_call *c, const cfx_tensor *t)
{
    cfx_tensor *copy = cfx_tensor_new((cfx_dtype)t->dtype, t->size, t->ndim, c->rt->allocator,
                                      c->err);
    if (copy && cfxi_rt_copy(c->rt, copy, t, c->err) != CFX_OK) {
        cfx_tensor_release(copy);
        return NULL;
    }
    return copy;
}

/* Two dimensions over contiguous memory. */
static cfx_tensor as_matrix(const cfx_tensor *t, int64_t rows, int64_t columns)
{
    cfx_tensor m = cfxi_linalg_shown(t);
    m.ndim = 2;
    m.size[0] = rows, m.size[1] = columns;
    m.stride[1] = (int64_t)cfxi_tensor_itemsize(t), m.stride[0] = m.stride[1] * columns;
    return m;
}

/* ---- tensordot ----------------------------------------------------------------------------- */

typedef struct contraction {
    size_t n;
    size_t dims[2][CFX_MAX_DIMS];
} contraction;

static bool is_contracted(const contraction *k, size_t side, size_t dim)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->dims[side][i] == dim)
            return true;
    return false;
}

static cfx_status read_contraction(cfxi_call *c, contraction *k)
{
    const cfx_tensor *t[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    int64_t dims[CFX_MAX_DIMS];
    size_t counts[2];
    for (size_t side = 0; side < 2; side++) {
        CFX_TRY(cfxi_rt_ints(c, 2 + side, dims, &counts[side]));
        k->n = 0;
        for (size_t i = 0; i < counts[side]; i++) {
            CFX_TRY(cfxi_rt_dim(c, dims[i], t[side]->ndim, &k->dims[side][i]));
            if (is_contracted(k, side, k->dims[side][i]))
                return cfxi_fail(c, CFX_E_SHAPE, "dim %zu appears multiple times in the list of "
                                 "dims",
                                 k->dims[side][i]);
            k->n++;
        }
    }
    if (counts[0] != counts[1])
        return cfxi_fail(c, CFX_E_SHAPE, "both dimension lists should have same length");
    for (size_t i = 0; i < k->n; i++) {
        int64_t a = t[0]->size[k->dims[0][i]];
        int64_t b = t[1]->size[k->dims[1][i]];
        if (b != 1 && !cfxi_rt_broadcasts(c, a, b))
            return cfxi_fail(c, CFX_E_SHAPE, "contracted dimensions need to match, but first has "
                             "size %lld in dim %zu and second has size %lld in dim %zu",
                             (long long)a, k->dims[0][i], (long long)b, k->dims[1][i]);
    }
    return CFX_OK;
}

cfx_status cfxi_rule_tensordot(cfxi_call *c)
{
    contraction k;
    int64_t sizes[2 * CFX_MAX_DIMS];
    size_t n = 0;
    CFX_TRY(read_contraction(c, &k));
    for (size_t side = 0; side < 2; side++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, side);
        for (size_t d = 0; d < t->ndim; d++)
            if (!is_contracted(&k, side, d))
                sizes[n++] = t->size[d];
    }
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    if (a->dtype != cfxi_rt_tensor(c, 1)->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "both inputs should have same dtype");
    if (a->dtype == CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "matrix products are not implemented for bool");
    if (n > CFX_MAX_DIMS)
        return cfxi_fail(c, CFX_E_SHAPE, "the result would have %zu dimensions; cfx supports up to "
                         "%d", n,
                         CFX_MAX_DIMS);
    return cfxi_rt_result(c, 0, (cfx_dtype)a->dtype, sizes, n);
}

/* One side with its free dimensions before (or after) the contracted ones, which are broadcast to
 * the other's sizes; contiguous. */
static cfx_tensor *arranged(cfxi_call *c, const contraction *k, size_t side, int64_t *free_size)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, side);
    const cfx_tensor *other = cfxi_rt_tensor(c, 1 - side);
    cfx_tensor view = cfxi_linalg_shown(t);
    size_t at = side == 1 ? k->n : 0;
    *free_size = 1;
    for (size_t d = 0; d < t->ndim; d++)
        if (!is_contracted(k, side, d)) {
            *free_size *= t->size[d];
            view.size[at] = t->size[d], view.stride[at++] = t->stride[d];
        }
    at = side == 1 ? 0 : at;
    for (size_t i = 0; i < k->n; i++, at++) {
        size_t d = k->dims[side][i];
        view.size[at] = t->size[d], view.stride[at] = t->stride[d];
        if (t->size[d] == 1)
            view.size[at] = other->size[k->dims[1 - side][i]], view.stride[at] = 0;
    }
    return copy_of(c, &view);
}

cfx_status cfxi_kernel_tensordot(cfxi_call *c)
{
    contraction k;
    int64_t m, n, inner = 1;
    CFX_TRY(read_contraction(c, &k));
    cfx_tensor *a = arranged(c, &k, 0, &m);
    cfx_tensor *b = a ? arranged(c, &k, 1, &n) : NULL;
    cfx_status status = b ? CFX_OK : c->err->status;
    if (b) {
        for (size_t i = 0; i < k.n; i++)
            inner *= b->size[i];
        cfx_tensor left = as_matrix(a, m, inner);
        cfx_tensor right = as_matrix(b, inner, n);
        cfx_tensor out = as_matrix(cfxi_rt_result_at(c, 0), m, n);
        status = cfxi_linalg_product(c, &out, &left, &right, &one);
    }
    cfx_tensor_release(b);
    cfx_tensor_release(a);
    return status;
}

/* ---- bilinear ------------------------------------------------------------------------------ */

cfx_status cfxi_rule_bilinear(cfxi_call *c)
{
    const cfx_tensor *x[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    const cfx_tensor *w = cfxi_rt_tensor(c, 2);
    const cfx_tensor *bias = cfxi_rt_tensor(c, 3);
    int64_t sizes[CFX_MAX_DIMS];
    if (x[0]->ndim != x[1]->ndim || x[0]->ndim == 0 || w->ndim != 3)
        return cfxi_fail(c, CFX_E_SHAPE, "bilinear(): input dimensions do not match: got %u and %u",
                         x[0]->ndim, x[1]->ndim);
    size_t last = (size_t)x[0]->ndim - 1;
    for (size_t d = 0; d < last; d++) {
        if (!cfxi_rt_same_size(c, x[0]->size[d], x[1]->size[d]))
            return cfxi_fail(c, CFX_E_SHAPE, "bilinear(): input batch dimensions do not match at "
                             "dim %zu", d);
        sizes[d] = x[0]->size[d];
    }
    for (size_t i = 0; i < 2; i++)
        if (!cfxi_rt_same_size(c, x[i]->size[last], w->size[1 + i]) || x[i]->dtype != w->dtype)
            return cfxi_fail(c, CFX_E_SHAPE, "bilinear(): input%zu size or type does not match "
                             "weight",
                             i + 1);
    if (bias && (bias->ndim != 1 || !cfxi_rt_same_size(c, bias->size[0], w->size[0]) ||
                 bias->dtype != w->dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "bilinear(): bias size or type does not match weight");
    if (w->dtype == CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "matrix products are not implemented for bool");
    sizes[last] = w->size[0];
    return cfxi_rt_result(c, 0, (cfx_dtype)w->dtype, sizes, last + 1);
}

/* x1 [n, i] by W as [i, o j] is [n, o, j], and that by x2 [n, j, 1]. */
static cfx_status bilinear(cfxi_call *c, const cfx_tensor *x1, const cfx_tensor *x2,
                           cfx_tensor *between)
{
    const cfx_tensor *w = cfxi_rt_tensor(c, 2);
    const cfx_tensor *bias = cfxi_rt_tensor(c, 3);
    cfx_tensor turned = cfxi_linalg_shown(w);
    turned.size[0] = w->size[1], turned.stride[0] = w->stride[1];
    turned.size[1] = w->size[0], turned.stride[1] = w->stride[0];
    cfx_tensor *weights = copy_of(c, &turned);
    if (!weights)
        return c->err->status;
    const int64_t rows = between->size[0];
    const int64_t columns = w->size[0] * w->size[2];
    cfx_tensor left = as_matrix(x1, rows, w->size[1]);
    cfx_tensor right = as_matrix(weights, w->size[1], columns);
    cfx_tensor middle = as_matrix(between, rows, columns);
    cfx_status status = cfxi_linalg_product(c, &middle, &left, &right, &one);
    cfx_tensor_release(weights);
    cfx_tensor out = as_matrix(cfxi_rt_result_at(c, 0), rows, w->size[0]);
    cfx_tensor vectors = as_matrix(x2, rows, w->size[2]);
    cfxi_factors f = one;
    if (status == CFX_OK && bias) {
        f.beta[0] = 1;
        status = cfxi_rt_copy(c->rt, &out, bias, c->err);
    }
    cfxi_linalg_unsqueeze(&out, 2);
    cfxi_linalg_unsqueeze(&vectors, 2);
    return status == CFX_OK ? cfxi_linalg_product(c, &out, between, &vectors, &f) : status;
}

cfx_status cfxi_kernel_bilinear(cfxi_call *c)
{
    const cfx_tensor *w = cfxi_rt_tensor(c, 2);
    cfx_dtype dtype = (cfx_dtype)w->dtype;
    if (cfxi_tensor_numel(cfxi_rt_result_at(c, 0)) == 0)
        return CFX_OK;
    cfx_tensor *x1 = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 0), dtype);
    cfx_tensor *x2 = x1 ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 1), dtype) : NULL;
    const int64_t sizes[] = {cfxi_tensor_numel(cfxi_rt_result_at(c, 0)) / w->size[0], w->size[0],
                             w->size[2]};
    cfx_dtype wide = dtype == CFX_DTYPE_FLOAT16 || dtype == CFX_DTYPE_BFLOAT16 ? CFX_DTYPE_FLOAT32
                                                                              : dtype;
    cfx_tensor *between = x2 ? cfx_tensor_new(wide, sizes, 3, c->rt->allocator, c->err) : NULL;
    cfx_status status = between ? bilinear(c, x1, x2, between) : c->err->status;
    cfx_tensor_release(between);
    cfx_tensor_release(x2);
    cfx_tensor_release(x1);
    return status;
}

/* ---- kron ---------------------------------------------------------------------------------- */

cfx_status cfxi_rule_kron(cfxi_call *c)
{
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim = both[0]->ndim > both[1]->ndim ? both[0]->ndim : both[1]->ndim;
    if (2 * ndim > CFX_MAX_DIMS)
        return cfxi_fail(c, CFX_E_SHAPE, "kron supports up to %d dimensions", CFX_MAX_DIMS / 2);
    for (size_t d = 0; d < ndim; d++) {
        sizes[d] = 1;
        for (size_t i = 0; i < 2; i++)
            if (d + both[i]->ndim >= ndim)
                sizes[d] = cfx_dim_mul(c->dims, sizes[d], both[i]->size[d + both[i]->ndim - ndim],
                                       c->err);
    }
    return cfxi_rt_result(c, 0, cfxi_tensor_promote(both, 2), sizes, ndim);
}

/* A reference to `t` with other sizes and strides over the same memory. */
static cfx_datum view_datum(cfxi_call *c, const cfx_tensor *t, const cfx_tensor *shape)
{
    cfx_tensor *v = cfxi_tensor_header((cfx_dtype)t->dtype, shape->size, shape->ndim,
                                       c->rt->allocator, c->err);
    if (v) {
        memcpy(v->stride, shape->stride, sizeof v->stride);
        v->number = t->number;
        if (cfxi_tensor_share(v, t, shape->data - t->data, c->err) != CFX_OK) {
            cfx_tensor_release(v);
            v = NULL;
        }
    }
    return cfx_datum_tensor(v);
}

/* [a0, 1, a1, 1, ...] by [1, b0, 1, b1, ...] */
cfx_status cfxi_kernel_kron(cfxi_call *c)
{
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    cfx_datum args[2];
    for (size_t i = 0; i < 2; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        cfx_tensor shape = cfxi_linalg_shown(t);
        shape.ndim = (uint8_t)(2 * out->ndim);
        for (size_t d = 0; d < out->ndim; d++) {
            bool has = d + t->ndim >= out->ndim;
            size_t from = d + t->ndim - out->ndim;
            shape.size[2 * d + i] = has ? t->size[from] : 1;
            shape.stride[2 * d + i] = has ? t->stride[from] : 0;
            shape.size[2 * d + 1 - i] = 1;
            shape.stride[2 * d + 1 - i] = 0;
        }
        args[i] = view_datum(c, t, &shape);
    }
    cfx_tensor *product = args[0].kind == CFX_DATUM_TENSOR && args[1].kind == CFX_DATUM_TENSOR
                              ? cfxi_rt_sub_tensor(c, CFX_OPID_mul, args, 2) : NULL;
    cfx_status status = product ? CFX_OK : c->err->status;
    if (product) {
        cfx_tensor to = cfxi_linalg_shown(product);
        to.data = out->data;
        to.dtype = out->dtype;
        cfxi_tensor_contiguous_strides(to.size, to.ndim, cfxi_tensor_itemsize(out), to.stride);
        status = cfxi_rt_copy(c->rt, &to, product, c->err);
    }
    cfx_tensor_release(product);
    cfx_datum_release(args[1]);
    cfx_datum_release(args[0]);
    return status;
}

/* ---- chain_matmul -------------------------------------------------------------------------- */

cfx_status cfxi_rule_chain_matmul(cfxi_call *c)
{
    size_t n;
    const cfx_datum *m = cfxi_rt_list(c, 0, &n);
    if (n == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "chain_matmul(): Expected one or more matrices");
    for (size_t i = 0; i < n; i++) {
        const cfx_tensor *t = m[i].as.tensor;
        if (t->ndim != 2)
            return cfxi_fail(c, CFX_E_SHAPE, "Tensor dimension is %u, expected 2 instead.",
                             t->ndim);
        if (i > 0 && (!cfxi_rt_same_size(c, m[i - 1].as.tensor->size[1], t->size[0]) ||
                      t->dtype != m[0].as.tensor->dtype))
            return cfxi_fail(c, CFX_E_SHAPE, "multi_dot(): tensors %zu and %zu cannot be "
                             "multiplied",
                             i - 1, i);
    }
    const int64_t sizes[] = {m[0].as.tensor->size[0], m[n - 1].as.tensor->size[1]};
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)m[0].as.tensor->dtype, sizes, 2));
    return n == 1 ? cfxi_rt_result_view(c, 0, m[0].as.tensor, m[0].as.tensor->stride, 0) : CFX_OK;
}

/* From the side whose end is the smaller: the products in between stay small. */
cfx_status cfxi_kernel_chain_matmul(cfxi_call *c)
{
    size_t n;
    const cfx_datum *m = cfxi_rt_list(c, 0, &n);
    bool from_left = m[0].as.tensor->size[0] <= m[n - 1].as.tensor->size[1];
    cfx_tensor *product = cfx_tensor_retain(m[from_left ? 0 : n - 1].as.tensor);
    for (size_t i = 1; product && i < n; i++) {
        cfx_datum next = m[from_left ? i : n - 1 - i];
        const cfx_datum so_far = cfx_datum_tensor(product);
        const cfx_datum args[] = {from_left ? so_far : next, from_left ? next : so_far};
        cfx_tensor *longer = cfxi_rt_sub_tensor(c, CFX_OPID_mm, args, 2);
        cfx_tensor_release(product);
        product = longer;
    }
    if (!product)
        return c->err->status;
    cfx_status status = cfxi_rt_result_view(c, 0, product, product->stride, 0);
    cfx_tensor_release(product);
    return status;
}

/* ---- cross --------------------------------------------------------------------------------- */

static cfx_status cross_dim(cfxi_call *c, const int64_t *sizes, size_t ndim, size_t *dim)
{
    int64_t given;
    if (!cfxi_rt_is_none(c, 2)) {
        CFX_TRY(cfxi_rt_number(c, 2, &given));
        return cfxi_rt_dim(c, given, ndim, dim);
    }
    for (*dim = 0; *dim < ndim; ++*dim)
        if (sizes[*dim] == 3)
            return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE, "no dimension of size 3 in input");
}

cfx_status cfxi_rule_cross(cfxi_call *c)
{
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim, dim;
    if (both[0]->ndim != both[1]->ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.cross: inputs must have the same number of "
                         "dimensions.");
    CFX_TRY(cross_dim(c, both[0]->size, both[0]->ndim, &dim));
    for (size_t i = 0; i < 2; i++)
        if (both[i]->ndim <= dim || !cfxi_rt_same_size(c, both[i]->size[dim], 3))
            return cfxi_fail(c, CFX_E_SHAPE, "linalg.cross: inputs dimension %zu must have length "
                             "3",
                             dim);
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    return cfxi_rt_result(c, 0, cfxi_tensor_promote(both, 2), sizes, ndim);
}

/* Component `k` along `dim`. */
static cfx_tensor component(const cfx_tensor *t, size_t dim, int64_t k)
{
    cfx_tensor shape = cfxi_linalg_shown(t);
    shape.size[dim] = 1;
    shape.data += k % 3 * t->stride[dim];
    return shape;
}

/* a_i * b_j as a new tensor, or NULL. */
static cfx_tensor *component_product(cfxi_call *c, size_t dim, int64_t i, int64_t j)
{
    const cfx_tensor *t[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    cfx_datum args[2];
    cfx_tensor *product = NULL;
    for (size_t k = 0; k < 2; k++) {
        cfx_tensor shape = component(t[k], dim, k ? j : i);
        args[k] = view_datum(c, t[k], &shape);
    }
    if (args[0].kind == CFX_DATUM_TENSOR && args[1].kind == CFX_DATUM_TENSOR)
        product = cfxi_rt_sub_tensor(c, CFX_OPID_mul, args, 2);
    cfx_datum_release(args[0]);
    cfx_datum_release(args[1]);
    return product;
}

cfx_status cfxi_kernel_cross(cfxi_call *c)
{
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    size_t dim;
    cfx_status status = CFX_OK;
    if (cfxi_tensor_numel(out) == 0)
        return CFX_OK;
    CFX_TRY(cross_dim(c, cfxi_rt_tensor(c, 0)->size, out->ndim, &dim));
    for (int64_t k = 0; k < 3 && status == CFX_OK; k++) {
        cfx_tensor *plus = component_product(c, dim, k + 1, k + 2);
        cfx_tensor *minus = plus ? component_product(c, dim, k + 2, k + 1) : NULL;
        const cfx_datum args[] = {cfx_datum_tensor(plus), cfx_datum_tensor(minus)};
        cfx_tensor *difference = minus ? cfxi_rt_sub_tensor(c, CFX_OPID_sub, args, 2) : NULL;
        cfx_tensor to = component(out, dim, k);
        status = difference ? cfxi_rt_copy(c->rt, &to, difference, c->err) : c->err->status;
        cfx_tensor_release(difference);
        cfx_tensor_release(minus);
        cfx_tensor_release(plus);
    }
    return status;
}
cfx_status cfxi_kernel_linalg_cross(cfxi_call *c) { return cfxi_kernel_cross(c); }

/* ---- trace --------------------------------------------------------------------------------- */

cfx_status cfxi_rule_trace(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = (cfx_dtype)t->dtype;
    if (t->ndim != 2)
        return cfxi_fail(c, CFX_E_SHAPE, "trace: expected a matrix, but got tensor with dim %u",
                         t->ndim);
    bool counts = dtype == CFX_DTYPE_BOOL || cfx_dtype_is_integer(dtype);
    return cfxi_rt_result(c, 0, counts ? CFX_DTYPE_INT64 : dtype, NULL, 0);
}

cfx_status cfxi_kernel_trace(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    const cfx_tensor *out = cfxi_rt_result_at(c, 0);
    const cfx_dtype dtype = (cfx_dtype)t->dtype;
    int64_t n = t->size[0] < t->size[1] ? t->size[0] : t->size[1];
    uint64_t count = 0;
    double sum[2] = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        const char *at = t->data + i * (t->stride[0] + t->stride[1]);
        double x[2];
        if (out->dtype == CFX_DTYPE_INT64) {
            count += (uint64_t)cfxi_tensor_load_int(dtype, at);
            continue;
        }
        cfxi_tensor_load_complex(dtype, at, x);
        sum[0] += x[0];
        sum[1] += x[1];
    }
    if (out->dtype == CFX_DTYPE_INT64)
        cfxi_tensor_store_int(CFX_DTYPE_INT64, out->data, (int64_t)count);
    else
        cfxi_tensor_store_complex(dtype, out->data, sum);
    return CFX_OK;
}

/* ---- cdist --------------------------------------------------------------------------------- */

cfx_status cfxi_rule_cdist(cfxi_call *c)
{
    cfx_tensor a = cfxi_linalg_shown(cfxi_rt_tensor(c, 0));
    cfx_tensor b = cfxi_linalg_shown(cfxi_rt_tensor(c, 1));
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    if (a.ndim < 2 || b.ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "cdist only supports at least 2D tensors, got: %uD and "
                         "%uD",
                         a.ndim, b.ndim);
    if (!cfxi_rt_same_size(c, a.size[a.ndim - 1], b.size[b.ndim - 1]))
        return cfxi_fail(c, CFX_E_SHAPE, "X1 and X2 must have the same number of columns. X1: %lld "
                         "X2: %lld", (long long)a.size[a.ndim - 1],
                         (long long)b.size[b.ndim - 1]);
    if (!cfx_dtype_is_float((cfx_dtype)a.dtype) || !cfx_dtype_is_float((cfx_dtype)b.dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "cdist only supports floating-point dtypes");
    if (!(cfxi_rt_float(c, 2) >= 0))
        return cfxi_fail(c, CFX_E_SHAPE, "cdist only supports non-negative p values");
    int64_t rows = a.size[a.ndim - 2];
    int64_t columns = b.size[b.ndim - 2];
    const cfx_tensor *both[] = {&a, &b};
    cfx_dtype dtype = cfxi_tensor_promote(both, 2);
    a.ndim = (uint8_t)(a.ndim - 2), b.ndim = (uint8_t)(b.ndim - 2);
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    sizes[ndim++] = rows;
    sizes[ndim++] = columns;
    return cfxi_rt_result(c, 0, dtype, sizes, ndim);
}

typedef struct distances {
    const cfx_tensor *a, *b;  /* contiguous, of type double, batches broadcast */
    cfx_tensor *out;
    double p;
} distances;

static double distance(const double *a, const double *b, int64_t n, double p)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(a[i] - b[i]);
        if (p == 2)
            sum += d * d;
        else if (p == 1)
            sum += d;
        else if (p == 0)
            sum += d != 0;
        else if (p == INFINITY)
            sum = d > sum || d != d ? d : sum;
        else
            sum += pow(d, p);
    }
    return p == 2 ? sqrt(sum) : p == 0 || p == 1 || p == INFINITY ? sum : pow(sum, 1 / p);
}

static void distance_rows(void *ctx, int64_t begin, int64_t end)
{
    const distances *d = ctx;
    const cfx_tensor *out = d->out;
    const int64_t rows = out->size[out->ndim - 2];
    const int64_t columns = out->size[out->ndim - 1];
    const int64_t width = d->a->size[d->a->ndim - 1];
    for (int64_t i = begin; i < end; i++) {
        const double *a = (const double *)d->a->data + i * width;
        const double *b = (const double *)d->b->data + i / rows * columns * width;
        for (int64_t j = 0; j < columns; j++)
            cfxi_tensor_store_float((cfx_dtype)out->dtype,
                                    out->data +
                                        (i * columns + j) * (int64_t)cfxi_tensor_itemsize(out),
                                    distance(a, b + j * width, width, d->p));
    }
}

/* A copy as double, its batch broadcast to that of the result. */
static cfx_tensor *spread(cfxi_call *c, const cfx_tensor *t, const cfx_tensor *out)
{
    int64_t sizes[CFX_MAX_DIMS];
    memcpy(sizes, out->size, sizeof sizes);
    sizes[out->ndim - 2] = t->size[t->ndim - 2];
    sizes[out->ndim - 1] = t->size[t->ndim - 1];
    cfx_tensor *copy = cfx_tensor_new(CFX_DTYPE_FLOAT64, sizes, out->ndim, c->rt->allocator,
                                      c->err);
    if (copy && cfxi_rt_copy(c->rt, copy, t, c->err) != CFX_OK) {
        cfx_tensor_release(copy);
        return NULL;
    }
    return copy;
}

cfx_status cfxi_kernel_cdist(cfxi_call *c)
{
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    if (cfxi_tensor_numel(out) == 0)
        return CFX_OK;
    cfx_tensor *a = spread(c, cfxi_rt_tensor(c, 0), out);
    cfx_tensor *b = a ? spread(c, cfxi_rt_tensor(c, 1), out) : NULL;
    cfx_status status = b ? CFX_OK : c->err->status;
    if (b) {
        distances d = {a, b, out, cfxi_rt_float(c, 2)};
        int64_t work = out->size[out->ndim - 1] * (a->size[a->ndim - 1] + 1);
        cfxi_rt_parallel(c->rt, cfxi_tensor_numel(out) / out->size[out->ndim - 1],
                         work > 32768 ? 1 : 32768 / work + 1, distance_rows, &d);
    }
    cfx_tensor_release(b);
    cfx_tensor_release(a);
    return status;
}
