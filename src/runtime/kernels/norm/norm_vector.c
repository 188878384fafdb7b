/* norm_vector.c - normalize (vectors to length 1) and local_response_norm. */
#include "runtime/spatial.h"

#include <math.h>

/* A tensor as [outer, n, inner] around one dimension. */
typedef struct around {
    int64_t outer;
    int64_t n;
    int64_t inner;
} around;

static around split_at(const cfx_tensor *t, size_t dim)
{
    around a = {1, t->ndim ? t->size[dim] : 1, 1};
    for (size_t d = 0; d < t->ndim; d++) {
        a.outer *= d < dim ? t->size[d] : 1;
        a.inner *= d > dim ? t->size[d] : 1;
    }
    return a;
}

/* ---- normalize ----------------------------------------------------------------------------- */

cfx_status cfxi_rule_normalize(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype type = (cfx_dtype)x->dtype;
    size_t dim;
    if (!cfx_dtype_is_float(type) && !cfx_dtype_is_complex(type))
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.vector_norm: Expected a floating point or complex "
                         "tensor as input. Got %s", cfx_dtype_name(type));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), x->ndim, &dim));
    return cfxi_rt_result_like(c, 0, type, x);
}

typedef struct job {
    around a;
    double p;
    double eps;
    int parts;     /* numbers of an element: 2 if complex */
    bool narrow;   /* float32, else float64 */
    const void *x;
    void *y;
} job;

static double number_at(const job *j, int64_t i)
{
    return j->narrow ? (double)((const float *)j->x)[i] : ((const double *)j->x)[i];
}

static double size_at(const job *j, int64_t i)
{
    return j->parts == 1 ? fabs(number_at(j, i))
                         : hypot(number_at(j, 2 * i), number_at(j, 2 * i + 1));
}

/* The norm of n elements `step` apart. */
static double norm_of(const job *j, int64_t first, int64_t step)
{
    double sum = isinf(j->p) && j->p < 0 ? INFINITY : 0;
    for (int64_t i = 0; i < j->a.n; i++) {
        double size = size_at(j, first + i * step);
        if (isinf(j->p))
            sum = isnan(size) || (j->p > 0 ? size > sum : size < sum) ? size : sum;
        else
            sum += j->p == 2 ? size * size : j->p == 1 ? size : j->p == 0 ? size != 0
                                                               : pow(size, j->p);
    }
    return isinf(j->p) || j->p == 0 || j->p == 1 ? sum : j->p == 2 ? sqrt(sum)
                                                                   : pow(sum, 1 / j->p);
}

static void normalize_vectors(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    for (int64_t v = begin; v < end; v++) {
        int64_t first = v / j->a.inner * j->a.n * j->a.inner + v % j->a.inner;
        double norm = norm_of(j, first, j->a.inner);
        norm = norm < j->eps ? j->eps : norm;
        for (int64_t i = 0; i < j->a.n; i++)
            for (int part = 0; part < j->parts; part++) {
                int64_t at = (first + i * j->a.inner) * j->parts + part;
                if (j->narrow)
                    ((float *)j->y)[at] = (float)(number_at(j, at) / norm);
                else
                    ((double *)j->y)[at] = number_at(j, at) / norm;
            }
    }
}

cfx_status cfxi_kernel_normalize(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)t->dtype);
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), t->ndim, &dim));
    job j = {.a = split_at(t, dim), .p = cfxi_rt_float(c, 1), .eps = cfxi_rt_float(c, 3),
             .parts = type == CFX_DTYPE_COMPLEX128 ? 2 : 1, .narrow = type == CFX_DTYPE_FLOAT32};
    cfx_tensor *x = cfxi_rt_contiguous(c, t, type);
    cfx_tensor *y = x ? cfxi_rt_work(c, 0, type, true) : NULL;
    if (y) {
        j.x = x->data;
        j.y = y->data;
        cfxi_rt_parallel(c->rt, j.a.n ? j.a.outer * j.a.inner : 0, 1 + 8192 / (j.a.n + 1),
                         normalize_vectors, &j);
    }
    cfx_status status = cfxi_rt_work_done(c, 0, y, y ? CFX_OK : c->err->status);
    cfx_tensor_release(x);
    return status;
}

/* ---- local_response_norm ------------------------------------------------------------------- */

cfx_status cfxi_rule_local_response_norm(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype type = (cfx_dtype)x->dtype;
    int64_t size;
    CFX_TRY(cfxi_rt_number(c, 1, &size));
    if (x->ndim < 3)
        return cfxi_fail(c, CFX_E_VALUE, "Expected 3D or higher dimensionality input (got %u "
                         "dimensions)", x->ndim);
    if (size < 1)
        return cfxi_fail(c, CFX_E_SHAPE, "size must be at least 1, but got %lld", (long long)size);
    if (!cfx_dtype_is_float(type) && type != CFX_DTYPE_INT64)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s", cfx_dtype_name(type));
    bool empty = false;  /* comes back as it is */
    for (size_t d = 0; d < x->ndim; d++)
        empty = empty || x->size[d] == 0;
    return cfxi_rt_result_like(c, 0, type == CFX_DTYPE_INT64 && !empty ? CFX_DTYPE_FLOAT32 : type,
                               x);
}

/* x / (k + alpha * mean of the squares of neighbouring channels)^beta; channels that are not there
 * count as 0. Means of integers are cut off. */
static void respond(const around *a, int64_t size, const double params[3], bool whole,
                    const double *x, double *y)
{
    for (int64_t o = 0; o < a->outer; o++)
        for (int64_t i = 0; i < a->n; i++)
            for (int64_t j = 0; j < a->inner; j++) {
                int64_t at = (o * a->n + i) * a->inner + j;
                int64_t lo = i - size / 2 < 0 ? 0 : i - size / 2;
                int64_t hi = i + (size - 1) / 2 >= a->n ? a->n - 1 : i + (size - 1) / 2;
                double sum = 0;
                for (int64_t k = lo; k <= hi; k++) {
                    double v = x[(o * a->n + k) * a->inner + j];
                    sum += v * v;
                }
                double mean = whole ? trunc(sum / (double)size) : sum / (double)size;
                y[at] = x[at] / pow(params[2] + params[0] * mean, params[1]);
            }
}

cfx_status cfxi_kernel_local_response_norm(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    const double params[3] = {cfxi_rt_float(c, 2), cfxi_rt_float(c, 3), cfxi_rt_float(c, 4)};
    around a = split_at(t, 1);
    cfx_tensor *x = cfxi_rt_contiguous(c, t, CFX_DTYPE_FLOAT64);
    cfx_tensor *y = x ? cfxi_rt_work(c, 0, CFX_DTYPE_FLOAT64, true) : NULL;
    if (y && cfxi_tensor_numel(y) > 0)
        respond(&a, cfxi_rt_int(c, 1), params, t->dtype == CFX_DTYPE_INT64, (const double *)x->data,
                (double *)y->data);
    cfx_status status = cfxi_rt_work_done(c, 0, y, y ? CFX_OK : c->err->status);
    cfx_tensor_release(x);
    return status;
}
