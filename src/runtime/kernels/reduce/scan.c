/* scan.c - cumulative sums, products and extremes along a dimension; differences. */
#include "reduce_impl.h"

#include <math.h>

typedef enum scan_kind { SUM, PRODUCT, GREATEST, LEAST, LOGSUMEXP } scan_kind;

typedef struct scan {
    scan_kind kind;
    cfxi_run_type type;
    const cfx_tensor *x;
    cfx_tensor *y;
    cfx_tensor *index;  /* of GREATEST and LEAST */
    cfx_isa isa;
    int64_t n;
    int64_t step[3];    /* in bytes: of x, y, index */
} scan;

/* What a scan carries from one run of a lane to the next. */
typedef struct carry {
    union {
        double f;
        int64_t i;
        double c[2];
    } as;
    int64_t index;
} carry;

/* ---- sums and products --------------------------------------------------------------------- */

static void sums(const scan *s, carry *k, void *x, int64_t n)
{
    float *f = x;
    double *d = x;
    uint64_t *u = x;
    uint64_t total = (uint64_t)k->as.i;
    double sum = k->as.f;
    switch (s->type) {
    case CFXI_F32:
        for (int64_t i = 0; i < n; i++)
            f[i] = (float)(sum += f[i]);
        k->as.f = sum;
        break;
    case CFXI_F64:
        for (int64_t i = 0; i < n; i++)
            d[i] = sum += d[i];
        k->as.f = sum;
        break;
    case CFXI_I64:
        for (int64_t i = 0; i < n; i++)
            u[i] = total += u[i];
        k->as.i = (int64_t)total;
        break;
    case CFXI_C128:
        for (int64_t i = 0; i < n; i++) {
            d[2 * i] = k->as.c[0] += d[2 * i];
            d[2 * i + 1] = k->as.c[1] += d[2 * i + 1];
        }
    }
}

static void products(const scan *s, carry *k, void *x, int64_t n)
{
    float *f = x;
    double *d = x;
    uint64_t *u = x;
    for (int64_t i = 0; i < n; i++) {
        double re = k->as.c[0];
        double im = k->as.c[1];
        switch (s->type) {
        case CFXI_F32: f[i] = (float)(k->as.f = (float)(k->as.f * f[i])); break;
        case CFXI_F64: d[i] = k->as.f *= d[i]; break;
        case CFXI_I64: u[i] = (uint64_t)(k->as.i = (int64_t)((uint64_t)k->as.i * u[i])); break;
        case CFXI_C128:
            k->as.c[0] = re * d[2 * i] - im * d[2 * i + 1];
            k->as.c[1] = re * d[2 * i + 1] + im * d[2 * i];
            d[2 * i] = k->as.c[0];
            d[2 * i + 1] = k->as.c[1];
        }
    }
}

/* ---- logarithms of sums -------------------------------------------------------------------- */

static double log_add(double a, double b)
{
    double most = a > b || a != a ? a : b;
    double least = most == a && a == a ? b : a;
    if (isinf(most) && most == least)
        return most;
    return most + log1p(exp(least - most));
}

static void log_add_complex(double a[2], const double b[2])
{
    const double *most = a[0] >= b[0] ? a : b;
    const double *least = a[0] >= b[0] ? b : a;
    if (least[0] == -INFINITY) {
        double re = most[0];
        double im = most[1];
        a[0] = re;
        a[1] = im;
        return;
    }
    /* most + log(1 + exp(least - most)) */
    double size = exp(least[0] - most[0]);
    double angle = least[1] - most[1];
    double re = 1 + size * cos(angle);
    double im = size * sin(angle);
    double out[2] = {most[0] + log(hypot(re, im)), most[1] + atan2(im, re)};
    a[0] = out[0];
    a[1] = out[1];
}

static void log_sums(const scan *s, carry *k, void *x, int64_t n)
{
    float *f = x;
    double *d = x;
    for (int64_t i = 0; i < n; i++) {
        if (s->type == CFXI_F32) {
            f[i] = (float)(k->as.f = log_add(k->as.f, f[i]));
        } else if (s->type == CFXI_F64) {
            d[i] = k->as.f = log_add(k->as.f, d[i]);
        } else {
            log_add_complex(k->as.c, d + 2 * i);
            d[2 * i] = k->as.c[0];
            d[2 * i + 1] = k->as.c[1];
        }
    }
}

/* ---- extremes ------------------------------------------------------------------------------ */

/* The last of equal elements, and of NaN, is where it is. */
static void extremes(const scan *s, carry *k, void *x, int64_t *index, int64_t n, int64_t first)
{
    float *f = x;
    double *d = x;
    int64_t *v = x;
    bool least = s->kind == LEAST;
    for (int64_t i = 0; i < n; i++) {
        bool takes = k->index < 0;
        if (s->type == CFXI_I64) {
            takes = takes || (least ? v[i] <= k->as.i : v[i] >= k->as.i);
            k->as.i = takes ? v[i] : k->as.i;
            v[i] = k->as.i;
        } else {
            double e = s->type == CFXI_F32 ? f[i] : d[i];
            takes = takes || e != e ||
                    (k->as.f == k->as.f && (least ? e <= k->as.f : e >= k->as.f));
            k->as.f = takes ? e : k->as.f;
            if (s->type == CFXI_F32)
                f[i] = (float)k->as.f;
            else
                d[i] = k->as.f;
        }
        k->index = takes ? first + i : k->index;
        index[i] = k->index;
    }
}

/* ---- lanes --------------------------------------------------------------------------------- */

static carry scan_begin(const scan *s)
{
    carry k = {.index = -1};
    if (s->kind == PRODUCT && s->type == CFXI_I64)
        k.as.i = 1;
    else if (s->kind == PRODUCT)
        k.as.c[0] = 1;
    else if (s->kind == LOGSUMEXP)
        k.as.c[0] = -INFINITY;
    return k;
}

static void scan_lane(void *ctx, char *const at[], void *scratch, int64_t lane)
{
    _Alignas(64) double buf[2 * CFXI_RUN];
    int64_t index[CFXI_RUN];
    const scan *s = ctx;
    carry k = scan_begin(s);
    (void)scratch;
    (void)lane;
    for (int64_t first = 0; first < s->n; first += CFXI_RUN) {
        int64_t n = s->n - first < CFXI_RUN ? s->n - first : CFXI_RUN;
        cfxi_reduce_load_run(s->isa, s->type, buf, (cfx_dtype)s->x->dtype,
                             at[0] + first * s->step[0], s->step[0], n);
        switch (s->kind) {
        case SUM: sums(s, &k, buf, n); break;
        case PRODUCT: products(s, &k, buf, n); break;
        case LOGSUMEXP: log_sums(s, &k, buf, n); break;
        case GREATEST:
        case LEAST:
            extremes(s, &k, buf, index, n, first);
            cfxi_reduce_store_run(s->isa, CFXI_I64, index, CFX_DTYPE_INT64,
                                  at[2] + first * s->step[2], s->step[2], n);
        }
        cfxi_reduce_store_run(s->isa, s->type, buf, (cfx_dtype)s->y->dtype,
                              at[1] + first * s->step[1], s->step[1], n);
    }
}

static cfx_status scan_run(cfxi_call *c, scan_kind kind)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    bool extreme = kind == GREATEST || kind == LEAST;
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    scan s = {.kind = kind, .type = cfxi_reduce_run_type_of((cfx_dtype)y->dtype), .x = x, .y = y,
              .isa = c->rt->isa, .n = 1};
    cfx_tensor *all[3] = {x, y, extreme ? cfxi_rt_result_at(c, 1) : NULL};
    s.index = all[2];
    if (x->ndim)
        s.n = x->size[dim];
    for (size_t t = 0; t < 3 && all[t] && x->ndim; t++)
        s.step[t] = all[t]->stride[dim];
    return cfxi_reduce_lanes(c, all, extreme ? 3 : 2, dim, 4 * s.n, 0, scan_lane, &s);
}

/* ---- rules --------------------------------------------------------------------------------- */

cfx_status cfxi_rule_cumsum(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_dtype dtype = (cfx_dtype)x->dtype;
    size_t dim;
    if (!cfx_dtype_is_float(dtype) && !cfx_dtype_is_complex(dtype))
        dtype = CFX_DTYPE_INT64;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    return cfxi_rt_result(c, 0, cfxi_rt_dtype_or(c, 2, dtype), x->size, x->ndim);
}

cfx_status cfxi_rule_cummax(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    if (cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for complex numbers");
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim));
    return cfxi_rt_result(c, 1, CFX_DTYPE_INT64, x->size, x->ndim);
}

cfx_status cfxi_rule_logcumsumexp(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    size_t dim;
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype) && !cfx_dtype_is_complex((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, &dim));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim);
}

cfx_status cfxi_kernel_cumsum(cfxi_call *c) { return scan_run(c, SUM); }
cfx_status cfxi_kernel_cumprod(cfxi_call *c) { return scan_run(c, PRODUCT); }
cfx_status cfxi_kernel_cummax(cfxi_call *c) { return scan_run(c, GREATEST); }
cfx_status cfxi_kernel_cummin(cfxi_call *c) { return scan_run(c, LEAST); }
cfx_status cfxi_kernel_logcumsumexp(cfxi_call *c) { return scan_run(c, LOGSUMEXP); }

/* ---- differences --------------------------------------------------------------------------- */

/* (self, n, dim, prepend, append) */
typedef struct differences {
    cfx_isa isa;
    cfxi_run_type type;
    bool bools;
    const cfx_tensor *parts[3];  /* prepend, self, append; NULL if there is none */
    cfx_tensor *y;
    size_t dim;
    int64_t length;              /* of the parts together */
    int64_t times;
} differences;

static cfx_status check_part(cfxi_call *c, const cfx_tensor *x, const cfx_tensor *part, size_t dim)
{
    if (part->ndim != x->ndim)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "diff expects prepend or append to be the same dimension as input");
    for (size_t d = 0; d < x->ndim; d++)
        if (d != dim && !cfxi_rt_same_size(c, x->size[d], part->size[d]))
            return cfxi_fail(c, CFX_E_SHAPE, "diff expects the shape of tensor to prepend or append"
                             " to match that of input except along the differencing dimension");
    return CFX_OK;
}

cfx_status cfxi_rule_diff(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *all[3] = {cfxi_rt_tensor(c, 3), x, cfxi_rt_tensor(c, 4)};
    int64_t times;
    size_t dim;
    CFX_TRY(cfxi_rt_number(c, 1, &times));
    if (x->ndim == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "diff expects input to be at least one-dimensional");
    if (times < 0)
        return cfxi_fail(c, CFX_E_SHAPE, "order must be non-negative but got %lld",
                         (long long)times);
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), x->ndim, &dim));
    int64_t length = x->size[dim];
    for (size_t i = 0; i < 3; i += 2) {
        if (!times)
            all[i] = NULL;  /* nothing is put before or after, either */
        if (!all[i])
            continue;
        CFX_TRY(check_part(c, x, all[i], dim));
        length = cfx_dim_add(c->dims, length, all[i]->size[dim], c->err);
    }
    length = cfx_dim_sub(c->dims, length, times, c->err);
    if (!cfx_dim_is_symbol(length) && length < 0)
        length = 0;
    cfx_tensor shape = *x;  /* a header to go by, never handed on */
    shape.size[dim] = length;
    const cfx_tensor *like = &shape;
    cfx_dtype dtype = cfxi_tensor_promote(all, 3);
    return all[0] || all[2] ? cfxi_rt_result(c, 0, dtype, shape.size, x->ndim)
                            : cfxi_rt_result_broadcast(c, 0, dtype, &like, 1);
}

static void subtract(const differences *k, void *x, int64_t i)
{
    float *f = x;
    double *d = x;
    uint64_t *u = x;
    switch (k->type) {
    case CFXI_F32: f[i] = f[i + 1] - f[i]; break;
    case CFXI_F64: d[i] = d[i + 1] - d[i]; break;
    case CFXI_I64: u[i] = k->bools ? u[i + 1] != u[i] : u[i + 1] - u[i]; break;
    case CFXI_C128:
        d[2 * i] = d[2 * i + 2] - d[2 * i];
        d[2 * i + 1] = d[2 * i + 3] - d[2 * i + 1];
    }
}

static void diff_lane(void *ctx, char *const at[], void *scratch, int64_t lane)
{
    const differences *k = ctx;
    char *to = scratch;
    (void)lane;
    for (size_t i = 0; i < 3; i++) {
        const cfx_tensor *part = k->parts[i];
        if (!part)
            continue;
        cfxi_reduce_load_run(k->isa, k->type, to, (cfx_dtype)part->dtype, at[i],
                             part->stride[k->dim], part->size[k->dim]);
        to += (size_t)part->size[k->dim] * cfxi_reduce_run_size(k->type);
    }
    for (int64_t pass = 1; pass <= k->times && pass < k->length; pass++)
        for (int64_t i = 0; i < k->length - pass; i++)
            subtract(k, scratch, i);
    cfxi_reduce_store_run(k->isa, k->type, scratch, (cfx_dtype)k->y->dtype, at[3],
                          k->y->stride[k->dim], k->y->size[k->dim]);
}

cfx_status cfxi_kernel_diff(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    differences k = {.isa = c->rt->isa, .type = cfxi_reduce_run_type_of((cfx_dtype)y->dtype),
                     .bools = y->dtype == CFX_DTYPE_BOOL, .y = y, .times = cfxi_rt_int(c, 1),
                     .parts = {cfxi_rt_tensor(c, 3), x, cfxi_rt_tensor(c, 4)}};
    cfx_tensor *all[4] = {x, x, x, y};
    size_t scratch;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), x->ndim, &k.dim));
    for (size_t i = 0; i < 3; i++) {
        if (!k.times && i != 1)
            k.parts[i] = NULL;
        if (!k.parts[i])
            continue;
        all[i] = (cfx_tensor *)k.parts[i];
        k.length += k.parts[i]->size[k.dim];
    }
    if (!cfxi_base_mul_size((size_t)k.length, cfxi_reduce_run_size(k.type), 0, &scratch))
        return cfxi_base_nomem(c->err);
    return cfxi_reduce_lanes(c, all, 4, k.dim, 4 * k.length, scratch, diff_lane, &k);
}
