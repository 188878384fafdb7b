/* random_compare.c - whether two results are the same, but for what rounding does. */
#include "random_compare.h"

#include "tensor/tensor_impl.h"

#include <cfx/dim.h>
#include <math.h>

static double tolerance_of(cfx_dtype dtype)
{
    return dtype == CFX_DTYPE_FLOAT64 || dtype == CFX_DTYPE_COMPLEX128 ? 1e-6
           : dtype == CFX_DTYPE_FLOAT16                                ? 4e-3
           : dtype == CFX_DTYPE_BFLOAT16                               ? 3e-2
                                                                       : 1e-4;
}

static bool near(double a, double b, double tolerance)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * (1 + fabs(b));
}

static bool same_number(cfx_datum a, cfx_datum b, double tolerance)
{
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case CFX_DATUM_BOOL: return a.as.b == b.as.b;
    case CFX_DATUM_FLOAT: return near(a.as.f, b.as.f, tolerance);
    case CFX_DATUM_COMPLEX:
        return near(a.as.c[0], b.as.c[0], tolerance) && near(a.as.c[1], b.as.c[1], tolerance);
    case CFX_DATUM_INT:
    case CFX_DATUM_DTYPE:
    case CFX_DATUM_LAYOUT:
    case CFX_DATUM_MEMORY_FORMAT: return a.as.i == b.as.i;
    default: return true;
    }
}

static bool same_elements(const cfx_tensor *a, const cfx_tensor *b)
{
    int64_t at[CFX_MAX_DIMS] = {0};
    cfx_dtype dtype = (cfx_dtype)a->dtype;
    for (int64_t left = cfxi_tensor_numel(a); left > 0; left--) {
        const char *x = a->data;
        const char *y = b->data;
        for (size_t i = 0; i < a->ndim; i++) {
            x += at[i] * a->stride[i];
            y += at[i] * b->stride[i];
        }
        if (!same_number(cfx_datum_load(dtype, x), cfx_datum_load(dtype, y), tolerance_of(dtype)))
            return false;
        for (size_t i = a->ndim; i-- > 0 && ++at[i] == a->size[i];)
            at[i] = 0;
    }
    return true;
}

/* The same type, and sizes where both are known. */
static bool same_shape(const cfx_tensor *a, const cfx_tensor *b)
{
    if (a->dtype != b->dtype || a->ndim != b->ndim)
        return false;
    for (size_t i = 0; i < a->ndim; i++)
        if (a->size[i] != b->size[i] && !cfx_dim_is_symbol(b->size[i]) &&
            b->size[i] != CFX_DIM_UNKNOWN)
            return false;
    return true;
}

bool random_same(cfx_datum a, cfx_datum b, bool values)
{
    size_t n;
    size_t m;
    const cfx_datum *x = cfx_datum_items(a, &n);
    const cfx_datum *y = cfx_datum_items(b, &m);
    if (b.symbolic)
        return a.kind == b.kind || (a.kind == CFX_DATUM_BOOL && b.kind == CFX_DATUM_INT);
    if (a.kind != b.kind || n != m)
        return false;
    if (a.kind == CFX_DATUM_TENSOR)
        return same_shape(a.as.tensor, b.as.tensor) &&
               (!values || cfxi_tensor_numel(a.as.tensor) > 100000 ||
                same_elements(a.as.tensor, b.as.tensor));
    for (size_t i = 0; i < n; i++)
        if (!random_same(x[i], y[i], values))
            return false;
    return n > 0 || !values || same_number(a, b, 1e-6);
}
