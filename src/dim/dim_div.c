/* dim_div.c - sums, products, floor divisions and remainders of sizes, in their simplest form.
 *
 * All of it holds for floor semantics, whatever the signs: for integers q and r,
 *     (q*d + r)//d = q + r//d    (q*d + r)%d = r%d    (g*a)//(g*b) = a//b    (g*a)%(g*b) = g*(a%b)
 *     (a//b + k)//c = (a + k*b)//(b*c) for numbers b, c > 0
 */
#include "dim_impl.h"

int64_t cfxi_dim_floor(int64_t a, int64_t b)
{
    if (b == -1)
        return a == INT64_MIN ? INT64_MAX : -a;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t cfxi_dim_combine(cfx_dims *dims, int64_t factor_a, int64_t a, int64_t factor_b, int64_t b,
                         cfx_error *err)
{
    cfxi_poly sum = {0};
    cfxi_poly p;
    if (cfxi_dim_poly_from(dims, a, &p, err) != CFX_OK ||
        cfxi_dim_poly_add(dims, &sum, factor_a, dims->one, &p, err) != CFX_OK ||
        cfxi_dim_poly_from(dims, b, &p, err) != CFX_OK ||
        cfxi_dim_poly_add(dims, &sum, factor_b, dims->one, &p, err) != CFX_OK)
        return CFX_DIM_UNKNOWN;
    return cfxi_dim_poly_dim(dims, &sum, err);
}

int64_t cfxi_dim_times(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    cfxi_poly p;
    cfxi_poly q;
    if (cfxi_dim_poly_from(dims, a, &p, err) != CFX_OK ||
        cfxi_dim_poly_from(dims, b, &q, err) != CFX_OK ||
        cfxi_dim_poly_mul(dims, &p, &q, &p, err) != CFX_OK)
        return CFX_DIM_UNKNOWN;
    return cfxi_dim_poly_dim(dims, &p, err);
}

/* ---- dividing ------------------------------------------------------------------------------ */

/* A division on its way: p/d is `quotient` + rest/d. */
typedef struct division {
    cfxi_poly quotient;
    cfxi_poly rest;
    cfxi_poly d;
    int64_t number;           /* d, if it is a number; else 0 */
    int64_t factor;           /* what rest and d were divided by: a number ... */
    const cfxi_monomial *m;   /* ... times a monomial */
    int64_t low;              /* what was dropped of rest when it was divided by `factor` */
} division;

static cfx_status negate(cfx_dims *dims, cfxi_poly *p, cfx_error *err)
{
    cfxi_poly none = {0};
    CFX_TRY(cfxi_dim_poly_add(dims, &none, -1, dims->one, p, err));
    *p = none;
    return CFX_OK;
}

/* By a number above 0: every factor is taken apart. */
static cfx_status divide_by_number(const cfx_dims *dims, division *v)
{
    cfxi_poly rest = {0};
    for (size_t i = 0; i < v->rest.n; i++) {
        int64_t q = cfxi_dim_floor(v->rest.t[i].factor, v->number);
        int64_t r = v->rest.t[i].factor - q * v->number;
        if (q)
            v->quotient.t[v->quotient.n++] = (cfxi_term){q, v->rest.t[i].m};
        if (r)
            rest.t[rest.n++] = (cfxi_term){r, v->rest.t[i].m};
    }
    v->rest = rest;
    if (cfxi_dim_poly_is_number(dims, &rest))
        return CFX_OK;
    cfxi_poly both = {.n = 2, .t = {{cfxi_dim_poly_content(dims, &rest, false), NULL},
                                    {v->number, NULL}}};
    v->factor = cfxi_dim_poly_content(dims, &both, true);
    v->low = cfxi_dim_poly_constant(dims, &rest) % v->factor;
    cfxi_dim_poly_shrink(&v->rest, v->factor);
    v->number /= v->factor;
    return CFX_OK;
}

/* Long division, as far as leading terms divide. */
static cfx_status divide_by_sum(cfx_dims *dims, division *v, cfx_error *err)
{
    enum { STEPS = 64 };
    cfxi_poly work = v->rest;
    cfxi_poly rest = {0};
    const cfxi_term lead = v->d.t[0];
    for (int step = 0; work.n && step < STEPS; step++) {
        const cfxi_monomial *m = NULL;
        const cfxi_term first = work.t[0];
        if (first.factor % lead.factor == 0)
            CFX_TRY(cfxi_dim_monomial_div(dims, first.m, lead.m, &m, err));
        if (m) {
            int64_t q = first.factor / lead.factor;
            const cfxi_poly one = {.n = 1, .t = {{1, dims->one}}};
            CFX_TRY(cfxi_dim_poly_add(dims, &v->quotient, q, m, &one, err));
            CFX_TRY(cfxi_dim_poly_add(dims, &work, -q, m, &v->d, err));
        } else {
            rest.t[rest.n++] = first;
            memmove(work.t, work.t + 1, --work.n * sizeof *work.t);
        }
    }
    CFX_TRY(cfxi_dim_poly_add(dims, &rest, 1, dims->one, &work, err));
    v->rest = rest;
    return CFX_OK;
}

/* Divides `p` by a number and a monomial that divide it. */
static cfx_status take_out(cfx_dims *dims, cfxi_poly *p, int64_t factor, const cfxi_monomial *m,
                           cfx_error *err)
{
    cfxi_dim_poly_shrink(p, factor);
    for (size_t i = 0; i < p->n; i++)
        CFX_TRY(cfxi_dim_monomial_div(dims, p->t[i].m, m, &p->t[i].m, err));
    return CFX_OK;
}

/* What rest and d have in common leaves both. */
static cfx_status cancel(cfx_dims *dims, division *v, cfx_error *err)
{
    const cfxi_monomial *m = v->d.t[0].m;
    cfxi_poly both = {.n = 2, .t = {{cfxi_dim_poly_content(dims, &v->d, true), NULL},
                                    {cfxi_dim_poly_content(dims, &v->rest, true), NULL}}};
    for (size_t i = 0; i < v->d.n; i++)
        CFX_TRY(cfxi_dim_monomial_common(dims, m, v->d.t[i].m, &m, err));
    for (size_t i = 0; i < v->rest.n; i++)
        CFX_TRY(cfxi_dim_monomial_common(dims, m, v->rest.t[i].m, &m, err));
    v->m = m;
    v->factor = cfxi_dim_poly_content(dims, &both, true);
    CFX_TRY(take_out(dims, &v->rest, v->factor, m, err));
    CFX_TRY(take_out(dims, &v->d, v->factor, m, err));
    if (cfxi_dim_poly_is_number(dims, &v->d))
        v->number = cfxi_dim_poly_constant(dims, &v->d);
    return CFX_OK;
}

/* *negative: both were negated, so that d begins with a positive factor. */
static cfx_status divide(cfx_dims *dims, int64_t a, int64_t b, division *v, bool *negative,
                         cfx_error *err)
{
    memset(v, 0, sizeof *v);
    v->m = dims->one;
    v->factor = 1;
    if (b == 0)
        return cfx_error_set(err, CFX_E_VALUE, "division of a size by zero");
    CFX_TRY(cfxi_dim_poly_from(dims, a, &v->rest, err));
    CFX_TRY(cfxi_dim_poly_from(dims, b, &v->d, err));
    *negative = v->d.t[0].factor < 0;
    if (*negative) {
        CFX_TRY(negate(dims, &v->rest, err));
        CFX_TRY(negate(dims, &v->d, err));
    }
    if (cfxi_dim_poly_is_number(dims, &v->d)) {
        v->number = cfxi_dim_poly_constant(dims, &v->d);
        return divide_by_number(dims, v);
    }
    CFX_TRY(divide_by_sum(dims, v, err));
    return v->rest.n ? cancel(dims, v, err) : CFX_OK;
}

/* rest//d is 0 or -1, if that can be proven. */
static bool small_quotient(cfx_dims *dims, int64_t rest, int64_t d, int64_t *q, cfx_error *err)
{
    cfxi_range r = cfxi_dim_range(dims, rest);
    if (!cfx_dim_is_symbol(d)) {
        *q = cfxi_dim_floor(r.lo, d);
        return r.lo != INT64_MIN && r.hi != INT64_MAX && *q == cfxi_dim_floor(r.hi, d);
    }
    *q = 0;
    if (cfxi_dim_at_least(dims, rest, 0))
        return cfxi_dim_at_least(dims, cfxi_dim_combine(dims, 1, d, -1, rest, err), 1);
    *q = -1;
    return cfxi_dim_at_least(dims, cfxi_dim_combine(dims, -1, rest, 0, 0, err), 1) &&
           cfxi_dim_at_least(dims, cfxi_dim_combine(dims, 1, d, 1, rest, err), 0);
}

/* (x//b + k)//c as (x + k*b)//(b*c); UNKNOWN if it is not of that form. */
static int64_t merge_divisions(cfx_dims *dims, const division *v, cfx_error *err)
{
    int64_t product;
    int64_t shift;
    const cfxi_poly *r = &v->rest;
    int64_t k = cfxi_dim_poly_constant(dims, r);
    if (!v->number || r->n - (k != 0) != 1 || r->t[0].factor != 1 || r->t[0].m->degree != 1)
        return CFX_DIM_UNKNOWN;
    const cfxi_dim_expr *e = cfxi_dim_at(dims, r->t[0].m->atoms[0]);
    if (e->kind != CFXI_DIM_DIV || cfx_dim_is_symbol(e->b) || e->b < 0 ||
        __builtin_mul_overflow(e->b, v->number, &product) ||
        __builtin_mul_overflow(e->b, k, &shift))
        return CFX_DIM_UNKNOWN;
    int64_t a = cfxi_dim_combine(dims, 1, e->a, 1, shift, err);
    return a == CFX_DIM_UNKNOWN ? a : cfxi_dim_div(dims, a, product, err);
}

/* rest//d, after everything that can be taken out of it was. */
static int64_t divide_rest(cfx_dims *dims, const division *v, cfx_error *err)
{
    int64_t q;
    int64_t rest = cfxi_dim_poly_dim(dims, &v->rest, err);
    int64_t d = v->number ? v->number : cfxi_dim_poly_dim(dims, &v->d, err);
    if (rest == CFX_DIM_UNKNOWN || d == CFX_DIM_UNKNOWN || d == 1)
        return rest;
    if (small_quotient(dims, rest, d, &q, err))
        return q;
    int64_t merged = merge_divisions(dims, v, err);
    if (merged != CFX_DIM_UNKNOWN || err->status != CFX_OK)
        return merged;
    return cfxi_dim_atom(dims, CFXI_DIM_DIV, rest, d, err);
}

int64_t cfxi_dim_div(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    division v;
    bool negative;
    int64_t rest = 0;
    if (divide(dims, a, b, &v, &negative, err) != CFX_OK)
        return CFX_DIM_UNKNOWN;
    int64_t quotient = cfxi_dim_poly_dim(dims, &v.quotient, err);
    if (v.rest.n && v.number > 1 && v.m != dims->one)  /* what cancelled has left a number */
        rest = cfxi_dim_div(dims, cfxi_dim_poly_dim(dims, &v.rest, err), v.number, err);
    else if (v.rest.n)
        rest = divide_rest(dims, &v, err);
    if (quotient == CFX_DIM_UNKNOWN || rest == CFX_DIM_UNKNOWN)
        return CFX_DIM_UNKNOWN;
    return cfxi_dim_combine(dims, 1, quotient, 1, rest, err);
}

/* ---- remainders ---------------------------------------------------------------------------- */

/* Replaces x%b by x where the number divides b; *any: something was. */
static cfx_status merge_remainders(cfx_dims *dims, const division *v, cfxi_poly *out, bool *any,
                                   cfx_error *err)
{
    *any = false;
    out->n = 0;
    for (size_t i = 0; i < v->rest.n; i++) {
        const cfxi_term t = v->rest.t[i];
        const cfxi_dim_expr *e = t.m->degree == 1 ? cfxi_dim_at(dims, t.m->atoms[0]) : NULL;
        cfxi_poly part = {.n = 1, .t = {{1, t.m}}};
        if (v->number && e && e->kind == CFXI_DIM_MOD && !cfx_dim_is_symbol(e->b) &&
            e->b % v->number == 0) {
            *any = true;
            CFX_TRY(cfxi_dim_poly_from(dims, e->a, &part, err));
        }
        CFX_TRY(cfxi_dim_poly_add(dims, out, t.factor, dims->one, &part, err));
    }
    return CFX_OK;
}

static int64_t remainder_of_rest(cfx_dims *dims, const division *v, cfx_error *err)
{
    int64_t q;
    bool any;
    cfxi_poly merged;
    int64_t rest = cfxi_dim_poly_dim(dims, &v->rest, err);
    int64_t d = v->number ? v->number : cfxi_dim_poly_dim(dims, &v->d, err);
    if (rest == CFX_DIM_UNKNOWN || d == CFX_DIM_UNKNOWN)
        return CFX_DIM_UNKNOWN;
    if (d == 1)
        return 0;
    if (small_quotient(dims, rest, d, &q, err))
        return cfxi_dim_combine(dims, 1, rest, -q, d, err);
    if (merge_remainders(dims, v, &merged, &any, err) != CFX_OK)
        return CFX_DIM_UNKNOWN;
    if (any)
        return cfxi_dim_mod(dims, cfxi_dim_poly_dim(dims, &merged, err), d, err);
    return cfxi_dim_atom(dims, CFXI_DIM_MOD, rest, d, err);
}

int64_t cfxi_dim_mod(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    division v;
    bool negative;
    int64_t rest;
    cfxi_poly p;
    cfxi_poly result = {0};
    if (a == CFX_DIM_UNKNOWN || divide(dims, a, b, &v, &negative, err) != CFX_OK)
        return CFX_DIM_UNKNOWN;
    if (v.rest.n == 0 && v.low == 0)
        return 0;
    if (v.number > 1 && v.m != dims->one)
        rest = cfxi_dim_mod(dims, cfxi_dim_poly_dim(dims, &v.rest, err), v.number, err);
    else
        rest = remainder_of_rest(dims, &v, err);
    const cfxi_poly one = {.n = 1, .t = {{1, dims->one}}};
    if (rest == CFX_DIM_UNKNOWN || cfxi_dim_poly_from(dims, rest, &p, err) != CFX_OK ||
        cfxi_dim_poly_add(dims, &result, v.factor, v.m, &p, err) != CFX_OK ||
        cfxi_dim_poly_add(dims, &result, v.low, dims->one, &one, err) != CFX_OK ||
        (negative && negate(dims, &result, err) != CFX_OK))
        return CFX_DIM_UNKNOWN;
    return cfxi_dim_poly_dim(dims, &result, err);
}

/* ---- max and min --------------------------------------------------------------------------- */

int64_t cfxi_dim_extreme(cfx_dims *dims, cfxi_dim_kind kind, int64_t a, int64_t b, cfx_error *err)
{
    int64_t difference = cfxi_dim_combine(dims, 1, a, -1, b, err);
    if (difference == CFX_DIM_UNKNOWN)
        return difference;
    if (cfxi_dim_at_least(dims, difference, 0))
        return kind == CFXI_DIM_MAX ? a : b;
    if (cfxi_dim_at_least(dims, cfxi_dim_combine(dims, -1, difference, 0, 0, err), 0))
        return kind == CFXI_DIM_MAX ? b : a;
    return cfxi_dim_atom(dims, kind, a < b ? a : b, a < b ? b : a, err);
}
