/* dim_range.c - what is known of a size: between which numbers it lies, and proofs of a >= b. */
#include "dim_impl.h"

/* ---- arithmetic of bounds: infinite ones stay so, what overflows becomes infinite ---------- */

static int64_t add_bounds(int64_t a, int64_t b, int64_t infinite)
{
    int64_t sum;
    if (a == infinite || b == infinite)
        return infinite;
    if (__builtin_add_overflow(a, b, &sum))
        return a < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static int64_t mul_bounds(int64_t a, int64_t b)
{
    int64_t product;
    if (a == 0 || b == 0)
        return 0;
    bool infinite = a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX;
    if (infinite || __builtin_mul_overflow(a, b, &product))
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return product;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static cfxi_range mul_ranges(cfxi_range a, cfxi_range b)
{
    int64_t ll = mul_bounds(a.lo, b.lo);
    int64_t lh = mul_bounds(a.lo, b.hi);
    int64_t hl = mul_bounds(a.hi, b.lo);
    int64_t hh = mul_bounds(a.hi, b.hi);
    return (cfxi_range){least(least(ll, lh), least(hl, hh)), most(most(ll, lh), most(hl, hh))};
}

/* A bound divided by a bound that is 1 or more. */
static int64_t div_bounds(int64_t a, int64_t b)
{
    if (a == INT64_MIN || a == INT64_MAX)
        return b == INT64_MAX ? (a < 0 ? INT64_MIN : INT64_MAX) : a;
    if (b == INT64_MAX)
        return a < 0 ? -1 : 0;
    return cfxi_dim_floor(a, b);
}

static cfxi_range div_ranges(cfxi_range a, cfxi_range b)
{
    if (b.lo < 1)
        return (cfxi_range){INT64_MIN, INT64_MAX};
    return (cfxi_range){div_bounds(a.lo, a.lo < 0 ? b.lo : b.hi),
                        div_bounds(a.hi, a.hi < 0 ? b.hi : b.lo)};
}

static cfxi_range mod_ranges(cfxi_range a, cfxi_range b)
{
    if (b.lo >= 1)
        return (cfxi_range){0, least(b.hi == INT64_MAX ? INT64_MAX : b.hi - 1,
                                     a.lo >= 0 ? a.hi : INT64_MAX)};
    if (b.hi <= -1)
        return (cfxi_range){b.lo == INT64_MIN ? INT64_MIN : b.lo + 1, 0};
    return (cfxi_range){INT64_MIN, INT64_MAX};
}

/* ---- ranges -------------------------------------------------------------------------------- */

static cfxi_range monomial_range(cfx_dims *dims, const cfxi_monomial *m)
{
    cfxi_range r = {1, 1};
    for (size_t i = 0; i < m->degree; i++)
        r = mul_ranges(r, cfxi_dim_range(dims, cfxi_dim_of(cfxi_dim_at(dims, m->atoms[i]))));
    return r;
}

static cfxi_range terms_range(cfx_dims *dims, const cfxi_term *t, size_t n)
{
    cfxi_range sum = {0, 0};
    for (size_t i = 0; i < n; i++) {
        cfxi_range r = mul_ranges((cfxi_range){t[i].factor, t[i].factor},
                                  monomial_range(dims, t[i].m));
        sum.lo = add_bounds(sum.lo, r.lo, INT64_MIN);
        sum.hi = add_bounds(sum.hi, r.hi, INT64_MAX);
    }
    return sum;
}

static cfxi_range range_of(cfx_dims *dims, const cfxi_dim_expr *e)
{
    if (e->kind == CFXI_DIM_SYMBOL)
        return e->bounds;
    if (e->kind == CFXI_DIM_SUM)
        return terms_range(dims, e->t, e->n);
    cfxi_range a = cfxi_dim_range(dims, e->a);
    cfxi_range b = cfxi_dim_range(dims, e->b);
    if (e->kind == CFXI_DIM_DIV)
        return div_ranges(a, b);
    if (e->kind == CFXI_DIM_MOD)
        return mod_ranges(a, b);
    if (e->kind == CFXI_DIM_MAX)
        return (cfxi_range){most(a.lo, b.lo), most(a.hi, b.hi)};
    return (cfxi_range){least(a.lo, b.lo), least(a.hi, b.hi)};
}

cfxi_range cfxi_dim_range(cfx_dims *dims, int64_t d)
{
    cfxi_dim_expr *e = cfx_dim_is_symbol(d) ? cfxi_dim_expr_of(dims, d) : NULL;
    if (!e)
        return cfx_dim_is_symbol(d) || d == CFX_DIM_UNKNOWN ? (cfxi_range){INT64_MIN, INT64_MAX}
                                                             : (cfxi_range){d, d};
    if (e->ranged_at != dims->epoch) {
        e->range = range_of(dims, e);
        e->ranged_at = dims->epoch;
    }
    return e->range;
}

/* ---- proofs -------------------------------------------------------------------------------- */

enum { PROOF_DEPTH = 3, PROOF_DEGREE = 6, PROOF_FACTS = 32 };

/* With every atom x written as x' + its least value, x' >= 0, no factor is negative. */
static cfx_status prove_shifted(cfx_dims *dims, const cfxi_poly *p, bool *proven, cfx_error *err)
{
    cfxi_poly sum = {0};
    *proven = false;
    for (size_t i = 0; i < p->n; i++) {
        cfxi_poly product = {.n = 1, .t = {{p->t[i].factor, dims->one}}};
        if (p->t[i].m->degree > PROOF_DEGREE)
            return CFX_OK;
        for (size_t k = 0; k < p->t[i].m->degree; k++) {
            cfxi_poly atom;
            const cfxi_poly one = {.n = 1, .t = {{1, dims->one}}};
            int64_t d = cfxi_dim_of(cfxi_dim_at(dims, p->t[i].m->atoms[k]));
            int64_t lo = cfxi_dim_range(dims, d).lo;
            if (lo == INT64_MIN)
                return CFX_OK;
            CFX_TRY(cfxi_dim_poly_from(dims, d, &atom, err));
            CFX_TRY(cfxi_dim_poly_add(dims, &atom, lo, dims->one, &one, err));
            CFX_TRY(cfxi_dim_poly_mul(dims, &product, &atom, &product, err));
        }
        CFX_TRY(cfxi_dim_poly_add(dims, &sum, 1, dims->one, &product, err));
    }
    for (size_t i = 0; i < sum.n; i++)
        if (sum.t[i].factor < 0)
            return CFX_OK;
    *proven = true;
    return CFX_OK;
}

/* By the bounds of its parts alone. */
static cfx_status prove_plainly(cfx_dims *dims, const cfxi_poly *p, bool *proven, cfx_error *err)
{
    cfxi_poly rest = *p;
    const cfxi_monomial *common = p->n ? p->t[0].m : dims->one;
    *proven = terms_range(dims, p->t, p->n).lo >= 0;
    if (*proven || p->n < 2)
        return CFX_OK;
    for (size_t i = 1; i < p->n && common->degree; i++)
        CFX_TRY(cfxi_dim_monomial_common(dims, common, p->t[i].m, &common, err));
    if (common->degree && monomial_range(dims, common).lo >= 0)
        for (size_t i = 0; i < p->n; i++)
            CFX_TRY(cfxi_dim_monomial_div(dims, p->t[i].m, common, &rest.t[i].m, err));
    *proven = terms_range(dims, rest.t, rest.n).lo >= 0;
    return *proven ? CFX_OK : prove_shifted(dims, &rest, proven, err);
}

static cfx_status prove(cfx_dims *dims, const cfxi_poly *p, int depth, bool *proven,
                        cfx_error *err);

/* p without its i-th term, times c, plus factor * d + number. */
static cfx_status substitute(cfx_dims *dims, const cfxi_poly *p, size_t i, int64_t c,
                             int64_t factor, int64_t d, int64_t number, cfxi_poly *out,
                             cfx_error *err)
{
    cfxi_poly with;
    cfxi_poly rest = *p;
    const cfxi_poly one = {.n = 1, .t = {{1, dims->one}}};
    memmove(rest.t + i, rest.t + i + 1, (--rest.n - i) * sizeof *rest.t);
    CFX_TRY(cfxi_dim_poly_from(dims, d, &with, err));
    out->n = 0;
    CFX_TRY(cfxi_dim_poly_add(dims, out, c, dims->one, &rest, err));
    CFX_TRY(cfxi_dim_poly_add(dims, out, factor, dims->one, &with, err));
    return cfxi_dim_poly_add(dims, out, number, dims->one, &one, err);
}

/* k*(a//c) lies between k*(a - c + 1)/c and k*a/c. To show p > -1 it is enough to show c*p > -c
 * with the lower of them. Of c only a lower bound may be known: a//c is largest for that, if
 * a >= 0. */
static cfx_status prove_by_quotient(cfx_dims *dims, const cfxi_poly *p, size_t i,
                                    const cfxi_dim_expr *e, int depth, bool *proven,
                                    cfx_error *err)
{
    cfxi_poly lower;
    int64_t k = p->t[i].factor;
    int64_t c = cfxi_dim_range(dims, e->b).lo;
    bool number = c == e->b;
    if (c < 1 || (!number && (k > 0 || cfxi_dim_range(dims, e->a).lo < 0)))
        return CFX_OK;
    int64_t slack = c - 1;
    if (k > 0 && (__builtin_mul_overflow(k, c - 1, &slack) || (slack = c - 1 - slack, false)))
        return CFX_OK;
    CFX_TRY(substitute(dims, p, i, c, k, e->a, slack, &lower, err));
    return prove(dims, &lower, depth - 1, proven, err);
}

/* max is at least each of its parts, and one of them; min likewise. */
static cfx_status prove_by_extreme(cfx_dims *dims, const cfxi_poly *p, size_t i,
                                   const cfxi_dim_expr *e, int depth, bool *proven,
                                   cfx_error *err)
{
    cfxi_poly with;
    bool either = (e->kind == CFXI_DIM_MAX) == (p->t[i].factor > 0);
    CFX_TRY(substitute(dims, p, i, 1, p->t[i].factor, e->a, 0, &with, err));
    CFX_TRY(prove(dims, &with, depth - 1, proven, err));
    if (*proven == either)
        return CFX_OK;
    CFX_TRY(substitute(dims, p, i, 1, p->t[i].factor, e->b, 0, &with, err));
    return prove(dims, &with, depth - 1, proven, err);
}

static cfx_status prove_by_facts(cfx_dims *dims, const cfxi_poly *p, bool *proven, cfx_error *err)
{
    const int64_t *facts = dims->facts.data;
    for (size_t i = 0; i < dims->facts.size && i < PROOF_FACTS && !*proven; i++) {
        cfxi_poly fact;
        cfxi_poly rest = *p;
        CFX_TRY(cfxi_dim_poly_from(dims, facts[i], &fact, err));
        CFX_TRY(cfxi_dim_poly_add(dims, &rest, -1, dims->one, &fact, err));
        CFX_TRY(prove_plainly(dims, &rest, proven, err));
    }
    return CFX_OK;
}

/* Whether p >= 0. */
static cfx_status prove(cfx_dims *dims, const cfxi_poly *p, int depth, bool *proven,
                        cfx_error *err)
{
    CFX_TRY(prove_plainly(dims, p, proven, err));
    if (*proven || depth == 0)
        return CFX_OK;
    CFX_TRY(prove_by_facts(dims, p, proven, err));
    for (size_t i = 0; i < p->n && !*proven; i++) {
        if (p->t[i].m->degree != 1)
            continue;
        const cfxi_dim_expr *e = cfxi_dim_at(dims, p->t[i].m->atoms[0]);
        if (e->kind == CFXI_DIM_DIV)
            CFX_TRY(prove_by_quotient(dims, p, i, e, depth, proven, err));
        else if (e->kind == CFXI_DIM_MAX || e->kind == CFXI_DIM_MIN)
            CFX_TRY(prove_by_extreme(dims, p, i, e, depth, proven, err));
    }
    return CFX_OK;
}

bool cfxi_dim_at_least(cfx_dims *dims, int64_t d, int64_t least_value)
{
    cfxi_poly p;
    cfx_error err = {0};
    bool proven = false;
    const cfxi_poly one = {.n = 1, .t = {{1, dims->one}}};
    if (d == CFX_DIM_UNKNOWN)
        return false;
    if (!cfx_dim_is_symbol(d))
        return d >= least_value;
    cfx_status status = cfxi_dim_poly_from(dims, d, &p, &err);
    if (status == CFX_OK && least_value)
        status = cfxi_dim_poly_add(dims, &p, -least_value, dims->one, &one, &err);
    if (status == CFX_OK)
        status = prove(dims, &p, PROOF_DEPTH, &proven, &err);
    if (err.status == CFX_E_NOMEM)
        dims->failed = CFX_E_NOMEM;
    return status == CFX_OK && proven;
}
