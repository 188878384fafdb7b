/* norms.c - norms of vectors and matrices: sums of powers of absolute values, greatest, least. */
#include "product_impl.h"
#include "linalg_impl.h"

#include "runtime/kernels/reduce/reduce_impl.h"

#include <math.h>

/* ---- sums of powers ------------------------------------------------------------------------ */

/* k->number is the order. */
static void norm_begin(const cfxi_reduction *k, void *acc)
{
    *(double *)acc = k->number == -INFINITY ? INFINITY : 0;
}

static inline double joined(double order, double acc, double size)
{
    if (order == INFINITY)
        return size > acc || size != size ? size : acc;
    if (order == -INFINITY)
        return size < acc || size != size ? size : acc;
    return acc + size;
}

/* What one element of this absolute value adds. */
static inline double power(double order, double size)
{
    if (order == 2)
        return size * size;
    if (order == 1 || order == INFINITY || order == -INFINITY)
        return size;
    return order == 0 ? size != 0 : pow(size, order);
}

static double size_at(const cfxi_reduction *k, const void *x, int64_t i)
{
    const double *d = x;
    switch (k->compute) {
    case CFXI_F32: return fabs((double)((const float *)x)[i]);
    case CFXI_F64: return fabs(d[i]);
    case CFXI_C128: return hypot(d[2 * i], d[2 * i + 1]);
    case CFXI_I64: break;
    }
    return 0;
}

static void norm_run(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    double sum = *(double *)acc;
    (void)first;
    if (k->compute == CFXI_F32 && k->number == 2)
        sum += k->floats->spread(x, n, 0);
    else
        for (int64_t i = 0; i < n; i++)
            sum = joined(k->number, sum, power(k->number, size_at(k, x, i)));
    *(double *)acc = sum;
}

static void norm_row(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first)
{
    double *sums = acc;
    (void)first;
    if (k->compute == CFXI_F32 && k->number == 2) {
        const float *f = x;
        for (int64_t i = 0; i < n; i++)
            sums[i] += (double)f[i] * (double)f[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        sums[i] = joined(k->number, sums[i], power(k->number, size_at(k, x, i)));
}

static void norm_merge(const cfxi_reduction *k, void *acc, const void *later)
{
    *(double *)acc = joined(k->number, *(double *)acc, *(const double *)later);
}

static void norm_store(const cfxi_reduction *k, const void *acc, int64_t i)
{
    const cfx_tensor *t = k->out[0];
    double sum = *(const double *)acc;
    double p = k->number;
    double norm = p == 2                                            ? sqrt(sum)
                  : p == 0 || p == 1 || p == INFINITY || p == -INFINITY ? sum
                                                                    : pow(sum, 1 / p);
    cfxi_tensor_store_float((cfx_dtype)t->dtype, t->data + i * (int64_t)cfxi_tensor_itemsize(t),
                            norm);
}

static const cfxi_reducer norm_reducer = {
    sizeof(double), norm_begin, norm_run, norm_row, NULL, norm_merge, norm_store,
};

static cfx_status vector_norm(cfxi_call *c, const cfx_tensor *x, double order, uint32_t mask,
                              cfx_tensor *out)
{
    cfxi_reduction k = {.reducer = &norm_reducer,
                        .compute = cfxi_reduce_run_type_of((cfx_dtype)x->dtype),
                        .out = {out, NULL},
                        .number = order};
    return cfxi_reduce(c, x, mask, &k);
}

/* ---- types --------------------------------------------------------------------------------- */

static cfx_dtype real_of(cfx_dtype d)
{
    return d == CFX_DTYPE_COMPLEX64    ? CFX_DTYPE_FLOAT32
           : d == CFX_DTYPE_COMPLEX128 ? CFX_DTYPE_FLOAT64
                                       : d;
}

/* The type of a norm of `x`, where argument `arg` may name another (SIZE_MAX: none). */
static cfx_status norm_type(cfxi_call *c, const cfx_tensor *x, size_t arg, cfx_dtype *out)
{
    cfx_dtype own = (cfx_dtype)x->dtype;
    cfx_dtype type = arg == SIZE_MAX ? own : cfxi_rt_dtype_or(c, arg, own);
    if (!cfx_dtype_is_float(own) && !cfx_dtype_is_complex(own))
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.vector_norm: Expected a floating point or complex "
                         "tensor as input. Got %s", cfx_dtype_name(own));
    if (cfx_dtype_is_complex(own) != cfx_dtype_is_complex(type))
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.vector_norm: dtype should be %s for %s inputs, "
                         "but got %s", cfx_dtype_is_complex(own) ? "complex" : "real",
                         cfx_dtype_is_complex(own) ? "complex" : "real", cfx_dtype_name(type));
    if (cfxi_tensor_promote_types(own, type) != type)
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.vector_norm: the dtype of the input (%s) should "
                         "be convertible without narrowing to the specified dtype (%s)",
                         cfx_dtype_name(own), cfx_dtype_name(type));
    *out = real_of(type);
    return CFX_OK;
}

/* Orders below 0 and infinity need an element. */
static cfx_status has_identity(cfxi_call *c, const cfx_tensor *x, double order, uint32_t mask)
{
    for (size_t d = 0; d < x->ndim && (order < 0 || order == INFINITY); d++)
        if (mask >> d & 1 && x->size[d] == 0)
            return cfxi_fail(c, CFX_E_SHAPE, "linalg.vector_norm cannot compute the %g norm on "
                             "the dimension %zu because this dimension is empty and the operation "
                             "does not have an identity", order, d);
    return CFX_OK;
}

/* ---- orders -------------------------------------------------------------------------------- */

typedef enum kind { VECTOR, FROBENIUS, NUCLEAR, SPECTRAL, COLUMNS, ROWS } kind;

typedef struct norm {
    kind kind;
    double order;
    uint32_t mask;
    size_t row, column;  /* of the matrices */
    bool keepdim;
    cfx_dtype dtype;
} norm;

/* Matrices lie in dimensions `row` and `column`. */
static cfx_status matrix_order(cfxi_call *c, const cfx_tensor *x, cfx_datum order, norm *n)
{
    const char *name = cfx_datum_text(order, NULL);
    double p = order.kind == CFX_DATUM_FLOAT ? order.as.f
               : order.kind == CFX_DATUM_INT ? (double)order.as.i
                                             : 0;
    if (x->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.matrix_norm: The input tensor A must have at "
                         "least 2 dimensions.");
    if (n->row == n->column)
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.matrix_norm: dims must be different");
    n->mask = 1u << n->row | 1u << n->column;
    n->order = p;
    if (name && strcmp(name, "fro") == 0)
        n->kind = FROBENIUS;
    else if (name && strcmp(name, "nuc") == 0)
        n->kind = NUCLEAR;
    else if (!name && fabs(p) == 2)
        n->kind = SPECTRAL;
    else if (!name && fabs(p) == 1)
        n->kind = COLUMNS;
    else if (!name && fabs(p) == INFINITY)
        n->kind = ROWS;
    else if (name)
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.matrix_norm: Order %s not supported.", name);
    else
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.matrix_norm: Order %g not supported.", p);
    if (n->kind == FROBENIUS)
        n->order = 2;
    return CFX_OK;
}

static cfx_status last_two(cfxi_call *c, size_t arg, const cfx_tensor *x, norm *n)
{
    int64_t dims[CFX_MAX_DIMS];
    size_t count;
    CFX_TRY(cfxi_rt_ints(c, arg, dims, &count));
    if (count == 0) {
        dims[0] = -2;
        dims[1] = -1;
    } else if (count != 2) {
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.matrix_norm: dim must be a 2-tuple");
    }
    if (x->ndim < 2)
        return CFX_OK;  /* said by matrix_order */
    CFX_TRY(cfxi_rt_dim(c, dims[0], x->ndim, &n->row));
    return cfxi_rt_dim(c, dims[1], x->ndim, &n->column);
}

/* What the arguments of a row mean. */
static cfx_status vector_norm_of(cfxi_call *c, norm *n)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    *n = (norm){.kind = VECTOR, .order = cfxi_rt_scalar(c, 1), .keepdim = cfxi_rt_bool(c, 3)};
    CFX_TRY(norm_type(c, x, 4, &n->dtype));
    return cfxi_reduce_reduced_dims(c, 2, x->ndim, true, &n->mask);
}

static cfx_status matrix_norm_of(cfxi_call *c, norm *n)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    *n = (norm){.keepdim = cfxi_rt_bool(c, 3)};
    CFX_TRY(norm_type(c, x, 4, &n->dtype));
    CFX_TRY(last_two(c, 2, x, n));
    return matrix_order(c, x, c->args[1], n);
}

/* Of vectors if there is one dimension, or no order; else of matrices. */
static cfx_status linalg_norm_of(cfxi_call *c, norm *n)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dims;
    cfx_datum_items(c->args[2], &dims);
    *n = (norm){.kind = VECTOR, .order = 2, .keepdim = cfxi_rt_bool(c, 3)};
    CFX_TRY(norm_type(c, x, 4, &n->dtype));
    if (cfxi_rt_is_none(c, 1))
        return cfxi_reduce_reduced_dims(c, 2, x->ndim, true, &n->mask);
    if (cfxi_rt_is_none(c, 2) && x->ndim != 1 && x->ndim != 2 && !cfxi_rt_str(c, 1))
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.norm: If dim is not specified but ord is, the "
                         "input must be 1D or 2D. Got %uD.", x->ndim);
    if (!cfxi_rt_str(c, 1) && (dims == 1 || (cfxi_rt_is_none(c, 2) && x->ndim == 1))) {
        n->order = cfxi_rt_scalar(c, 1);
        return cfxi_reduce_reduced_dims(c, 2, x->ndim, true, &n->mask);
    }
    CFX_TRY(last_two(c, 2, x, n));
    return matrix_order(c, x, c->args[1], n);
}

/* torch.norm: "fro" is of all the elements, numbers are of vectors over any dimensions. */
static cfx_status norm_of(cfxi_call *c, norm *n)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const char *name = cfxi_rt_str(c, 1);
    *n = (norm){.kind = VECTOR, .order = 2, .keepdim = cfxi_rt_bool(c, 3)};
    CFX_TRY(norm_type(c, x, SIZE_MAX, &n->dtype));
    if (name && strcmp(name, "nuc") == 0) {
        CFX_TRY(last_two(c, 2, x, n));
        return matrix_order(c, x, c->args[1], n);
    }
    if (name && strcmp(name, "fro") != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "norm: order '%s' is not supported", name);
    if (!name && !cfxi_rt_is_none(c, 1))
        n->order = cfxi_rt_scalar(c, 1);
    return cfxi_reduce_reduced_dims(c, 2, x->ndim, true, &n->mask);
}

static cfx_status read_norm(cfxi_call *c, norm *n)
{
    switch ((int)c->op) {
    case CFX_OPID_linalg_vector_norm: return vector_norm_of(c, n);
    case CFX_OPID_linalg_matrix_norm: return matrix_norm_of(c, n);
    case CFX_OPID_linalg_norm: return linalg_norm_of(c, n);
    default: return norm_of(c, n);
    }
}

cfx_status cfxi_rule_norm(cfxi_call *c)
{
    norm n;
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    CFX_TRY(read_norm(c, &n));
    if (n.kind == VECTOR)
        CFX_TRY(has_identity(c, x, n.order, n.mask));
    return cfxi_reduce_reduced_result(c, 0, n.dtype, x, n.mask, n.keepdim);
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* The greatest (least for negative orders) sum of absolute values along rows or columns. */
static cfx_status line_norm(cfxi_call *c, const cfx_tensor *x, const norm *n, cfx_tensor *out)
{
    size_t along = n->kind == COLUMNS ? n->row : n->column;
    size_t across = n->kind == COLUMNS ? n->column : n->row;
    cfx_tensor kept = cfxi_linalg_shown(x);
    kept.size[along] = 1;
    cfx_tensor *sums = cfx_tensor_new(n->dtype, kept.size, kept.ndim, c->rt->allocator, c->err);
    if (!sums)
        return c->err->status;
    cfx_status status = vector_norm(c, x, 1, 1u << along, sums);
    const bool no_lines = x->size[across] == 0;
    if (status == CFX_OK && no_lines && n->order < 0)
        status = cfxi_fail(c, CFX_E_INDEX, "amin(): Expected reduction dim %zu to have non-zero "
                           "size.", across);
    if (no_lines)  /* the greatest of none is 0, as norms are never less */
        memset(out->data, 0, (size_t)cfxi_tensor_numel(out) * cfxi_tensor_itemsize(out));
    else if (status == CFX_OK)
        status = vector_norm(c, sums, n->order < 0 ? -INFINITY : INFINITY, 1u << across, out);
    cfx_tensor_release(sums);
    return status;
}

/* From singular values: their sum, the greatest, the least. */
static cfx_status singular_norm(cfxi_call *c, const cfx_tensor *x, const norm *n, cfx_tensor *out)
{
    cfx_tensor matrices = cfxi_linalg_shown(x);
    size_t at = 0;
    for (size_t d = 0; d < x->ndim; d++)
        if (d != n->row && d != n->column) {
            matrices.size[at] = x->size[d];
            matrices.stride[at++] = x->stride[d];
        }
    matrices.size[at] = x->size[n->row], matrices.stride[at++] = x->stride[n->row];
    matrices.size[at] = x->size[n->column], matrices.stride[at] = x->stride[n->column];
    cfx_tensor *values = cfxi_linalg_singular_values(c, &matrices);
    if (!values)
        return c->err->status;
    double order = n->kind == NUCLEAR ? 1 : n->order < 0 ? -INFINITY : INFINITY;
    cfx_tensor flat = cfxi_linalg_shown(out);
    if (n->keepdim) {  /* the values have one dimension for the matrices, and it is the last */
        flat.ndim = (uint8_t)(out->ndim - 2);
        for (size_t d = 0; d < flat.ndim; d++)
            flat.size[d] = values->size[d];
    }
    cfx_status status = vector_norm(c, values, order, 1u << (values->ndim - 1), &flat);
    cfx_tensor_release(values);
    return status;
}

cfx_status cfxi_kernel_norm(cfxi_call *c)
{
    norm n;
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    CFX_TRY(read_norm(c, &n));
    switch (n.kind) {
    case VECTOR:
    case FROBENIUS: return vector_norm(c, x, n.order, n.mask, out);
    case COLUMNS:
    case ROWS: return line_norm(c, x, &n, out);
    case NUCLEAR:
    case SPECTRAL: break;
    }
    return singular_norm(c, x, &n, out);
}
cfx_status cfxi_kernel_linalg_norm(cfxi_call *c) { return cfxi_kernel_norm(c); }
cfx_status cfxi_kernel_linalg_vector_norm(cfxi_call *c) { return cfxi_kernel_norm(c); }
cfx_status cfxi_kernel_linalg_matrix_norm(cfxi_call *c) { return cfxi_kernel_norm(c); }
