/* compare.c - comparisons that are made of others: isclose, allclose, equal, isin. */
#include "blocks.h"

#include <stdlib.h>

/* ---- sums of rows -------------------------------------------------------------------------- */

/* A row of one or two operands, of which the first is let go; NULL if it or the row fails. */
static cfx_tensor *apply(cfxi_call *c, cfx_operator op, cfx_tensor *taken, const cfx_tensor *other)
{
    cfx_datum args[2] = {cfx_datum_tensor(taken), cfx_datum_tensor((cfx_tensor *)other)};
    cfx_tensor *made = taken ? cfxi_rt_sub_tensor(c, op, args, other ? 2 : 1) : NULL;
    cfx_tensor_release(taken);
    return made;
}

static cfx_tensor *apply_number(cfxi_call *c, cfx_operator op, cfx_tensor *taken, double number)
{
    cfx_datum args[2] = {cfx_datum_tensor(taken), cfx_datum_float(number)};
    cfx_tensor *made = taken ? cfxi_rt_sub_tensor(c, op, args, 2) : NULL;
    cfx_tensor_release(taken);
    return made;
}

/* The same of two that are both let go. */
static cfx_tensor *join(cfxi_call *c, cfx_operator op, cfx_tensor *a, cfx_tensor *b)
{
    cfx_tensor *made = NULL;
    if (a && b)
        made = apply(c, op, cfx_tensor_retain(a), b);
    cfx_tensor_release(a);
    cfx_tensor_release(b);
    return made;
}

static cfx_tensor *start(const cfx_tensor *t) { return cfx_tensor_retain((cfx_tensor *)t); }

/* ---- isclose ------------------------------------------------------------------------------- */

static cfx_status check_close(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const cfx_tensor *b = cfxi_rt_tensor(c, 1);
    if (a->dtype != b->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "%s did not match %s", cfx_dtype_name(cfx_tensor_dtype(a)),
                         cfx_dtype_name(cfx_tensor_dtype(b)));
    if (cfxi_rt_float(c, 2) < 0)
        return cfxi_fail(c, CFX_E_SHAPE, "rtol must be greater than or equal to zero, but got %g",
                         cfxi_rt_float(c, 2));
    if (cfxi_rt_float(c, 3) < 0)
        return cfxi_fail(c, CFX_E_SHAPE, "atol must be greater than or equal to zero, but got %g",
                         cfxi_rt_float(c, 3));
    return CFX_OK;
}

cfx_status cfxi_rule_isclose(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    CFX_TRY(check_close(c));
    return cfxi_rt_result_broadcast(c, 0, CFX_DTYPE_BOOL, both, 2);
}

/* |a - b| <= atol + |rtol b| where that is finite; in float32 for integers. */
static cfx_tensor *within(cfxi_call *c, const cfx_tensor *a, const cfx_tensor *b)
{
    cfx_dtype dtype = cfxi_elementwise_float_of(cfx_tensor_dtype(b));
    cfx_tensor *floats = dtype == cfx_tensor_dtype(b) ? start(b) : cfxi_rt_contiguous(c, b, dtype);
    if (!floats)
        return NULL;
    cfx_tensor *allowed = apply_number(c, CFX_OPID_mul, start(floats), cfxi_rt_float(c, 2));
    allowed = apply(c, CFX_OPID_abs, allowed, NULL);
    allowed = apply_number(c, CFX_OPID_add, allowed, cfxi_rt_float(c, 3));
    cfx_tensor *actual = apply(c, CFX_OPID_abs, apply(c, CFX_OPID_sub, start(a), floats), NULL);
    cfx_tensor_release(floats);
    cfx_tensor *finite = actual ? apply(c, CFX_OPID_isfinite, start(actual), NULL) : NULL;
    return join(c, CFX_OPID_logical_and, finite, join(c, CFX_OPID_le, actual, allowed));
}

static cfx_tensor *close_together(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const cfx_tensor *b = cfxi_rt_tensor(c, 1);
    cfx_tensor *close = apply(c, CFX_OPID_eq, start(a), b);
    if (cfxi_rt_bool(c, 4)) {
        cfx_tensor *nans = join(c, CFX_OPID_logical_and, apply(c, CFX_OPID_isnan, start(a), NULL),
                                apply(c, CFX_OPID_isnan, start(b), NULL));
        close = join(c, CFX_OPID_logical_or, close, nans);
    }
    bool exact =
        a->dtype == CFX_DTYPE_BOOL || (cfxi_rt_float(c, 2) == 0 && cfxi_rt_float(c, 3) == 0);
    return exact ? close : join(c, CFX_OPID_logical_or, close, within(c, a, b));
}

cfx_status cfxi_kernel_isclose(cfxi_call *c)
{
    cfx_tensor *close = close_together(c);
    if (!close)
        return c->err->status;
    cfx_status status = cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), close, c->err);
    cfx_tensor_release(close);
    return status;
}

/* ---- all of them --------------------------------------------------------------------------- */

static void find_false(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    bool any = false;
    for (int64_t i = 0; i < n; i++)
        any |= at[0][i * step[0]] == 0;
    if (any)
        atomic_store_explicit((atomic_int *)ctx, 1, memory_order_relaxed);
}

static bool all_true(cfx_runtime *rt, const cfx_tensor *t)
{
    atomic_int found = 0;
    cfxi_rt_loop(rt, &t, 1, 32768, find_false, &found);
    return !atomic_load(&found);
}

/* A bool that only the elements tell. */
static void unknown_bool(cfxi_call *c)
{
    cfx_datum d = cfx_datum_bool(false);
    d.symbolic = 1;
    cfxi_rt_result_datum(c, 0, d);
}

cfx_status cfxi_rule_allclose(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    CFX_TRY(check_close(c));
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    unknown_bool(c);
    return CFX_OK;
}

cfx_status cfxi_kernel_allclose(cfxi_call *c)
{
    cfx_tensor *close = close_together(c);
    if (!close)
        return c->err->status;
    cfxi_rt_result_datum(c, 0, cfx_datum_bool(all_true(c->rt, close)));
    cfx_tensor_release(close);
    return CFX_OK;
}

cfx_status cfxi_rule_equal(cfxi_call *c)
{
    unknown_bool(c);
    return CFX_OK;
}

cfx_status cfxi_kernel_equal(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const cfx_tensor *b = cfxi_rt_tensor(c, 1);
    bool same = a->ndim == b->ndim && memcmp(a->size, b->size, a->ndim * sizeof *a->size) == 0;
    if (same) {
        cfx_tensor *equal = apply(c, CFX_OPID_eq, start(a), b);
        if (!equal)
            return c->err->status;
        same = all_true(c->rt, equal);
        cfx_tensor_release(equal);
    }
    cfxi_rt_result_datum(c, 0, cfx_datum_bool(same));
    return CFX_OK;
}

/* ---- isin ---------------------------------------------------------------------------------- */

cfx_status cfxi_rule_isin(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *both[2] = {x, cfxi_rt_tensor(c, 1)};
    for (size_t k = 0; k < 2; k++)
        if (both[k]->dtype == CFX_DTYPE_BOOL || cfx_dtype_is_complex(cfx_tensor_dtype(both[k])))
            return cfxi_fail(c, CFX_E_SHAPE, "Unsupported input type encountered for isin(): %s",
                             cfx_dtype_name(cfx_tensor_dtype(both[k])));
    return cfxi_rt_result_broadcast(c, 0, CFX_DTYPE_BOOL, &x, 1);
}

static int order_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static int order_ints(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

typedef struct search {
    const void *sorted;
    size_t n;
    int (*order)(const void *, const void *);
    bool invert;
} search;

static void search_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const search *s = ctx;
    for (int64_t i = 0; i < n; i++) {
        bool found = bsearch(at[1] + i * step[1], s->sorted, s->n, 8, s->order) != NULL;
        at[0][i * step[0]] = found != s->invert;
    }
}

/* Nothing equals NaN: those among the candidates go, and those that are looked for become one. */
static int64_t drop_nan(double *x, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i] == x[i])
            x[kept++] = x[i];
    return kept;
}

static int order_nan_apart(const void *a, const void *b)
{
    double x = *(const double *)a;
    return x != x ? 1 : order_doubles(a, b);
}

cfx_status cfxi_kernel_isin(cfxi_call *c)
{
    const cfx_tensor *args[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    bool whole = cfx_dtype_is_integer(cfxi_tensor_promote(args, 2));
    cfx_dtype in = whole ? CFX_DTYPE_INT64 : CFX_DTYPE_FLOAT64;
    int64_t n = cfxi_tensor_numel(args[1]);
    cfx_tensor *x = cfxi_rt_contiguous(c, args[0], in);
    cfx_tensor *all = x ? cfx_tensor_new(in, args[1]->size, args[1]->ndim, c->rt->allocator, c->err)
                        : NULL;
    cfx_status status = all ? cfxi_rt_copy(c->rt, all, args[1], c->err) : c->err->status;
    if (status == CFX_OK) {
        if (!whole)
            n = drop_nan((double *)all->data, n);
        if (n > 1)
            qsort(all->data, (size_t)n, 8, whole ? order_ints : order_doubles);
        search s = {all->data, (size_t)n, whole ? order_ints : order_nan_apart, cfxi_rt_bool(c, 3)};
        const cfx_tensor *operands[2] = {cfxi_rt_result_at(c, 0), x};
        cfxi_rt_loop(c->rt, operands, 2, 4096, search_row, &s);
    }
    cfx_tensor_release(x);
    cfx_tensor_release(all);
    return status;
}
