/* range.c - numbers at equal distances: arange, linspace, logspace. */
#include "runtime/python_impl.h"
#include "runtime/view_impl.h"

#include <math.h>

static double real_of(cfx_datum d)
{
    return d.kind == CFX_DATUM_BOOL    ? (double)d.as.b
           : d.kind == CFX_DATUM_INT   ? (double)d.as.i
           : d.kind == CFX_DATUM_FLOAT ? d.as.f
                                       : d.as.c[0];
}

static double imaginary_of(cfx_datum d) { return d.kind == CFX_DATUM_COMPLEX ? d.as.c[1] : 0; }

static int64_t whole_of(cfx_datum d)
{
    double f = real_of(d);
    if (d.kind == CFX_DATUM_INT)
        return d.as.i;
    return f >= -0x1p63 && f < 0x1p63 ? (int64_t)f : INT64_MIN;
}

/* ---- arange -------------------------------------------------------------------------------- */

typedef struct range {
    cfx_datum start;
    cfx_datum end;
    cfx_datum step;
    bool known;      /* else its length is */
    bool whole;      /* all are integers */
    cfx_dtype dtype;
} range;

static bool is_whole(cfx_datum d) { return d.kind == CFX_DATUM_INT || d.kind == CFX_DATUM_BOOL; }

/* arange(end), or arange_start(start, end, step); the dtype follows. */
static cfx_status read_range(cfxi_call *c, range *r)
{
    bool starts = c->op == CFX_OPID_arange_start;
    *r = (range){.start = cfx_datum_int(0), .step = cfx_datum_int(1)};
    CFX_TRY(cfxi_rt_python_number(c, c->args[starts], &r->end));
    if (starts) {
        CFX_TRY(cfxi_rt_python_number(c, c->args[0], &r->start));
        CFX_TRY(cfxi_rt_python_number(c, c->args[2], &r->step));
    }
    r->known = !r->start.symbolic && !r->end.symbolic && !r->step.symbolic;
    r->whole = is_whole(r->start) && is_whole(r->end) && is_whole(r->step);
    r->dtype = cfxi_rt_dtype_or(c, starts ? 3 : 1, r->whole ? CFX_DTYPE_INT64 : CFX_DTYPE_FLOAT32);
    if (r->dtype == CFX_DTYPE_BOOL || cfx_dtype_is_complex(r->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "\"arange_cpu\" not implemented for '%s'",
                         cfx_dtype_name(r->dtype));
    return cfxi_rt_check_device(c, starts ? 5 : 3);
}

/* How many numbers of 64 bits: exact. */
static cfx_status count_whole(cfxi_call *c, const range *r, int64_t *n)
{
    int64_t start = whole_of(r->start);
    int64_t end = whole_of(r->end);
    int64_t step = whole_of(r->step);
    if (step == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "step must be nonzero");
    if ((step > 0 && end < start) || (step < 0 && end > start))
        return cfxi_fail(c, CFX_E_SHAPE, "upper bound and lower bound inconsistent with step sign");
    uint64_t span = step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
    uint64_t each = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t count = span == 0 ? 0 : (span - 1) / each + 1;
    if (count > INT64_MAX)
        return cfxi_fail(c, CFX_E_SHAPE, "invalid size, possible overflow?");
    *n = (int64_t)count;
    return CFX_OK;
}

static cfx_status count_real(cfxi_call *c, const range *r, int64_t *n)
{
    double start = real_of(r->start);
    double end = real_of(r->end);
    double step = real_of(r->step);
    if (step == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "step must be nonzero");
    if (!isfinite(start) || !isfinite(end))
        return cfxi_fail(c, CFX_E_SHAPE, "unsupported range: %g -> %g", start, end);
    if ((step > 0 && end < start) || (step < 0 && end > start) || step != step)
        return cfxi_fail(c, CFX_E_SHAPE, "upper bound and lower bound inconsistent with step sign");
    double count = ceil((end - start) / step);
    if (!(count >= 0 && count < 0x1p62))
        return cfxi_fail(c, CFX_E_SHAPE, "invalid size, possible overflow?");
    *n = (int64_t)count;
    return CFX_OK;
}

/* Of sizes that are symbols. */
static int64_t count_symbols(cfxi_call *c, const range *r)
{
    if (!r->whole)
        return cfxi_rt_fresh(c);
    int64_t start = whole_of(r->start);
    int64_t step = whole_of(r->step);
    int64_t length = cfx_dim_sub(c->dims, whole_of(r->end), start, c->err);
    if (step == 1)
        return length;
    if (step < 0 && !cfx_dim_is_symbol(step))
        return cfxi_rt_fresh(c);
    int64_t more = cfx_dim_sub(c->dims, step, 1, c->err);
    return cfx_dim_div(c->dims, cfx_dim_add(c->dims, length, more, c->err), step, c->err);
}

cfx_status cfxi_rule_arange(cfxi_call *c)
{
    range r;
    int64_t n = 0;
    CFX_TRY(read_range(c, &r));
    if (!r.known)
        n = count_symbols(c, &r);
    else if (r.dtype == CFX_DTYPE_INT64)
        CFX_TRY(count_whole(c, &r, &n));
    else
        CFX_TRY(count_real(c, &r, &n));
    return cfxi_rt_result(c, 0, r.dtype, &n, 1);
}

cfx_status cfxi_kernel_arange(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    range r;
    CFX_TRY(read_range(c, &r));
    char *at = y->data;
    size_t item = cfxi_tensor_itemsize(y);
    if (cfx_dtype_is_integer(r.dtype)) {
        uint64_t value = (uint64_t)whole_of(r.start);
        uint64_t step = (uint64_t)whole_of(r.step);
        if (r.dtype == CFX_DTYPE_INT64) {
            for (int64_t i = 0; i < y->size[0]; i++)
                ((uint64_t *)(void *)y->data)[i] = value + (uint64_t)i * step;
            return CFX_OK;
        }
        for (int64_t i = 0; i < y->size[0]; i++, at += item, value += step)
            cfxi_tensor_store_int(r.dtype, at, (int64_t)value);
        return CFX_OK;
    }
    double start = real_of(r.start);
    double step = real_of(r.step);
    for (int64_t i = 0; i < y->size[0]; i++, at += item)
        cfxi_tensor_store_float(r.dtype, at, start + (double)i * step);
    return CFX_OK;
}
cfx_status cfxi_kernel_arange_start(cfxi_call *c) { return cfxi_kernel_arange(c); }

/* ---- linspace, logspace -------------------------------------------------------------------- */

static cfx_status spaced(cfxi_call *c, size_t dtype_arg)
{
    bool complex = false;
    int64_t steps = cfxi_rt_int(c, 2);
    for (size_t i = 0; i < 2; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        if (t && t->ndim > 0)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "%s only supports 0-dimensional start and end tensors, but got %s "
                             "with %u dimension(s).", cfx_operator_name(c->op), i ? "end" : "start",
                             t->ndim);
        complex = complex || c->args[i].kind == CFX_DATUM_COMPLEX ||
                  (t && cfx_dtype_is_complex((cfx_dtype)t->dtype));
    }
    cfx_dtype dtype = cfxi_rt_dtype_or(c, dtype_arg,
                                       complex ? CFX_DTYPE_COMPLEX64 : CFX_DTYPE_FLOAT32);
    CFX_TRY(cfxi_rt_check_device(c, dtype_arg + 2));
    if (steps < 0 && !cfx_dim_is_symbol(steps))
        return cfxi_fail(c, CFX_E_SHAPE, "number of steps must be non-negative");
    if (complex && !cfx_dtype_is_complex(dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "%s(): inferred dtype %s can't be safely cast to "
                         "passed dtype %s", cfx_operator_name(c->op),
                         cfx_dtype_name(CFX_DTYPE_COMPLEX64), cfx_dtype_name(dtype));
    return cfxi_rt_result(c, 0, dtype, &steps, 1);
}

cfx_status cfxi_rule_linspace(cfxi_call *c) { return spaced(c, 3); }
cfx_status cfxi_rule_logspace(cfxi_call *c) { return spaced(c, 4); }

/* As an element of a type of 16 bits would hold it: PyTorch computes those step by step. */
static double rounded(cfx_dtype dtype, double f)
{
    uint16_t element;
    if (dtype != CFX_DTYPE_FLOAT16 && dtype != CFX_DTYPE_BFLOAT16)
        return f;
    cfxi_tensor_store_float(dtype, &element, f);
    return cfxi_tensor_load_float(dtype, &element);
}

/* Number i of n, counted from the nearer end so that both are exact. */
static double between(cfx_dtype dtype, double start, double end, int64_t i, int64_t n)
{
    if (n == 1)
        return start;
    bool front = i < n / 2;
    double steps = rounded(dtype, (double)(front ? i : n - 1 - i));
    start = rounded(dtype, start);
    end = rounded(dtype, end);
    double step = rounded(dtype, rounded(dtype, end - start) / rounded(dtype, (double)(n - 1)));
    step = rounded(dtype, step * steps);
    return front ? start + step : end - step;
}

/* What the type can hold: integers are cut before they are divided. */
static double as_dtype(cfx_dtype dtype, double f)
{
    return cfx_dtype_is_integer(dtype) ? trunc(f) : f;
}

/* base ** (re + im*i) */
static void raise(double base, double re, double im, double out[2])
{
    double length = pow(base, re);
    double turn = im * log(base);
    out[0] = im == 0 ? length : length * cos(turn);
    out[1] = im == 0 ? 0 : length * sin(turn);
}

static cfx_status fill_spaced(cfxi_call *c, bool powers)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_dtype dtype = (cfx_dtype)y->dtype;
    int64_t n = y->size[0];
    cfx_datum start;
    cfx_datum end;
    CFX_TRY(cfxi_rt_python_number(c, c->args[0], &start));
    CFX_TRY(cfxi_rt_python_number(c, c->args[1], &end));
    double base = powers ? cfxi_rt_float(c, 3) : 0;
    double first = as_dtype(dtype, real_of(start));
    double last = as_dtype(dtype, real_of(end));
    for (int64_t i = 0; i < n; i++) {
        double value[2] = {between(dtype, first, last, i, n),
                           between(dtype, imaginary_of(start), imaginary_of(end), i, n)};
        if (powers)
            raise(base, value[0], value[1], value);
        if (cfx_dtype_is_complex(dtype))
            cfxi_tensor_store_complex(dtype, y->data + i * y->stride[0], value);
        else
            cfxi_tensor_store_float(dtype, y->data + i * y->stride[0], value[0]);
    }
    return CFX_OK;
}

cfx_status cfxi_kernel_linspace(cfxi_call *c) { return fill_spaced(c, false); }
cfx_status cfxi_kernel_logspace(cfxi_call *c) { return fill_spaced(c, true); }
