/* dim_assume.c - comparing sizes, and what is assumed of them when that depends.
 *
 * "N == M" makes the later symbol stand for the earlier one wherever a size is used from then on;
 * "N + 1 == M*K" is solved for an atom that stands alone. What cannot be solved is kept as a fact
 * that comparisons look at. Bounds that follow are kept, too.
 */
#include "dim_impl.h"

/* ---- using assumptions --------------------------------------------------------------------- */

/* The first atom of a term that times some of its factor is what it divides; NULL if there is none.
 * */
static const cfxi_dim_expr *exact_part(const cfx_dims *dims, const cfxi_term *t)
{
    for (size_t k = 0; k < t->m->degree; k++) {
        const cfxi_dim_expr *e = cfxi_dim_at(dims, t->m->atoms[k]);
        if (e->exact && t->factor % e->b == 0)
            return e;
    }
    return NULL;
}

/* 4*(N//4) becomes N where nothing remains. Each step takes a division away. */
static cfx_status undo_divisions(cfx_dims *dims, cfxi_poly *p, cfx_error *err)
{
    for (size_t i = 0; i < p->n; i++) {
        cfxi_poly atom;
        cfxi_poly whole;
        const cfxi_monomial *rest;
        const cfxi_term t = p->t[i];
        const cfxi_dim_expr *e = exact_part(dims, &t);
        if (!e)
            continue;
        CFX_TRY(cfxi_dim_poly_from(dims, cfxi_dim_of(e), &atom, err));
        CFX_TRY(cfxi_dim_poly_from(dims, e->a, &whole, err));
        CFX_TRY(cfxi_dim_monomial_div(dims, t.m, atom.t[0].m, &rest, err));
        CFX_TRY(cfxi_dim_poly_add(dims, p, -t.factor, rest, &atom, err));
        CFX_TRY(cfxi_dim_poly_add(dims, p, t.factor / e->b, rest, &whole, err));
        i = SIZE_MAX;  /* from the beginning: the terms have moved */
    }
    return CFX_OK;
}

static int64_t resolve_sum(cfx_dims *dims, const cfxi_dim_expr *e, cfx_error *err)
{
    cfxi_poly sum = {0};
    for (size_t i = 0; i < e->n; i++) {
        cfxi_poly product = {.n = 1, .t = {{e->t[i].factor, dims->one}}};
        for (size_t k = 0; k < e->t[i].m->degree; k++) {
            cfxi_poly atom;
            int64_t d = cfxi_dim_of(cfxi_dim_at(dims, e->t[i].m->atoms[k]));
            d = cfxi_dim_resolve(dims, d, err);
            if (err->status != CFX_OK || cfxi_dim_poly_from(dims, d, &atom, err) != CFX_OK ||
                cfxi_dim_poly_mul(dims, &product, &atom, &product, err) != CFX_OK)
                return CFX_DIM_UNKNOWN;
        }
        if (cfxi_dim_poly_add(dims, &sum, 1, dims->one, &product, err) != CFX_OK)
            return CFX_DIM_UNKNOWN;
    }
    if (undo_divisions(dims, &sum, err) != CFX_OK)
        return CFX_DIM_UNKNOWN;
    return cfxi_dim_poly_dim(dims, &sum, err);
}

static int64_t resolve_atom(cfx_dims *dims, const cfxi_dim_expr *e, cfx_error *err)
{
    int64_t a = cfxi_dim_resolve(dims, e->a, err);
    int64_t b = cfxi_dim_resolve(dims, e->b, err);
    if (err->status != CFX_OK)
        return CFX_DIM_UNKNOWN;
    /* Computed anew also if a and b are the same: more may be known of them now. */
    return e->kind == CFXI_DIM_DIV   ? cfxi_dim_div(dims, a, b, err)
           : e->kind == CFXI_DIM_MOD ? cfxi_dim_mod(dims, a, b, err)
                                     : cfxi_dim_extreme(dims, e->kind, a, b, err);
}

static int64_t resolve_expr(cfx_dims *dims, cfxi_dim_expr *e, cfx_error *err)
{
    int64_t d = cfxi_dim_of(e);
    if (e->is_equal)
        return cfxi_dim_resolve(dims, e->equal, err);
    if (e->kind == CFXI_DIM_SUM)
        d = resolve_sum(dims, e, err);
    else if (e->kind != CFXI_DIM_SYMBOL)
        d = resolve_atom(dims, e, err);
    return d == cfxi_dim_of(e) || d == CFX_DIM_UNKNOWN ? d : cfxi_dim_resolve(dims, d, err);
}

/* `busy` ends a chain of assumptions that comes back to where it began. */
int64_t cfxi_dim_resolve(cfx_dims *dims, int64_t d, cfx_error *err)
{
    cfxi_dim_expr *e = cfx_dim_is_symbol(d) ? cfxi_dim_expr_of(dims, d) : NULL;
    if (!e || dims->epoch == 1 || e->busy)
        return d;
    if (e->resolved_at == dims->epoch)
        return e->resolved;
    e->busy = true;
    int64_t resolved = resolve_expr(dims, e, err);
    e->busy = false;
    if (err->status != CFX_OK)
        return d;
    e->resolved = resolved;
    e->resolved_at = dims->epoch;
    return resolved;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* b - a, resolved; UNKNOWN if it cannot be told. */
static int64_t difference(cfx_dims *dims, int64_t a, int64_t b)
{
    cfx_error err = {0};
    int64_t d = CFX_DIM_UNKNOWN;
    if (a == CFX_DIM_UNKNOWN || b == CFX_DIM_UNKNOWN || !dims)
        return d;
    a = cfxi_dim_resolve(dims, a, &err);
    b = cfxi_dim_resolve(dims, b, &err);
    if (err.status == CFX_OK)
        d = cfxi_dim_combine(dims, 1, b, -1, a, &err);
    if (err.status == CFX_OK && d != CFX_DIM_UNKNOWN)
        d = cfxi_dim_resolve(dims, d, &err);
    if (err.status == CFX_E_NOMEM)
        dims->failed = CFX_E_NOMEM;
    return err.status == CFX_OK ? d : CFX_DIM_UNKNOWN;
}

static int64_t negated(cfx_dims *dims, int64_t d)
{
    cfx_error err = {0};
    d = cfxi_dim_combine(dims, -1, d, 0, 0, &err);
    if (err.status == CFX_E_NOMEM)
        dims->failed = CFX_E_NOMEM;
    return d;
}

static bool is_assumed_zero(const cfx_dims *dims, int64_t d, int64_t minus)
{
    const int64_t *zeros = dims->zeros.data;
    for (size_t i = 0; i < dims->zeros.size; i++)
        if (zeros[i] == d || zeros[i] == minus)
            return true;
    return false;
}

/* The factors have a divisor that the number has not: 2*N is never 5. */
static bool never_zero(cfx_dims *dims, int64_t d)
{
    cfxi_poly p;
    cfx_error err = {0};
    if (cfxi_dim_poly_from(dims, d, &p, &err) != CFX_OK)
        return false;
    int64_t content = cfxi_dim_poly_content(dims, &p, false);
    return content > 1 && cfxi_dim_poly_constant(dims, &p) % content != 0;
}

static int compare_zero(cfx_dims *dims, int64_t d)
{
    if (d == CFX_DIM_UNKNOWN)
        return -1;
    if (!cfx_dim_is_symbol(d))
        return d == 0;
    int64_t minus = negated(dims, d);
    if (is_assumed_zero(dims, d, minus))
        return 1;
    return cfxi_dim_at_least(dims, d, 1) || cfxi_dim_at_least(dims, minus, 1) ||
                   never_zero(dims, d)
               ? 0
               : -1;
}

/* Sets are const to who only compares; that computes expressions all the same. */
static cfx_dims *writable(const cfx_dims *dims) { return (cfx_dims *)(uintptr_t)dims; }

static bool are_numbers(int64_t a, int64_t b)
{
    return !cfx_dim_is_symbol(a) && !cfx_dim_is_symbol(b) && a != CFX_DIM_UNKNOWN &&
           b != CFX_DIM_UNKNOWN;
}

int cfx_dim_compare_eq(const cfx_dims *dims, int64_t a, int64_t b)
{
    if (are_numbers(a, b))
        return a == b;
    if (a == b && a != CFX_DIM_UNKNOWN)
        return 1;
    return compare_zero(writable(dims), difference(writable(dims), a, b));
}

int cfx_dim_compare_lt(const cfx_dims *dims, int64_t a, int64_t b)
{
    if (are_numbers(a, b))
        return a < b;
    if (a == b && a != CFX_DIM_UNKNOWN)
        return 0;
    int64_t d = difference(writable(dims), a, b);
    if (d == CFX_DIM_UNKNOWN)
        return -1;
    if (cfxi_dim_at_least(writable(dims), d, 1))
        return 1;
    return cfxi_dim_at_least(writable(dims), negated(writable(dims), d), 0) ? 0 : -1;
}

/* ---- assuming ------------------------------------------------------------------------------ */

/* Before an atom is changed. */
static cfx_status remember(cfx_dims *dims, cfxi_dim_expr *e, cfx_error *err)
{
    cfxi_vec *v = &dims->changes;
    if (!cfxi_base_vec_reserve(v, 1, sizeof(cfxi_dim_before), dims->allocator))
        return cfxi_base_nomem(err);
    ((cfxi_dim_before *)v->data)[v->size++] =
        (cfxi_dim_before){e, e->equal, e->bounds, e->is_equal, e->exact};
    return CFX_OK;
}

cfxi_dim_state cfxi_dim_mark(const cfx_dims *dims)
{
    return (cfxi_dim_state){dims->changes.size, dims->assumptions.size, dims->facts.size,
                           dims->zeros.size};
}

void cfxi_dim_undo(cfx_dims *dims, cfxi_dim_state to)
{
    while (dims->changes.size > to.changes) {
        const cfxi_dim_before *b = (cfxi_dim_before *)dims->changes.data + --dims->changes.size;
        b->atom->equal = b->equal;
        b->atom->bounds = b->bounds;
        b->atom->is_equal = b->is_equal;
        b->atom->exact = b->exact;
    }
    dims->assumptions.size = to.assumptions;
    dims->facts.size = to.facts;
    dims->zeros.size = to.zeros;
    dims->epoch++;
}

/* From here on d >= 0. */
static cfx_status learn(cfx_dims *dims, int64_t d, cfx_error *err)
{
    cfxi_poly p;
    if (d == CFX_DIM_UNKNOWN)
        return err->status;
    if (cfxi_dim_at_least(dims, d, 0))
        return CFX_OK;
    CFX_TRY(cfxi_dim_poly_from(dims, d, &p, err));
    int64_t k = p.n ? p.t[0].factor : 0;
    int64_t c = cfxi_dim_poly_constant(dims, &p);
    cfxi_dim_expr *e = p.n && p.t[0].m->degree == 1 ? cfxi_dim_at(dims, p.t[0].m->atoms[0]) : NULL;
    if (e && e->kind == CFXI_DIM_SYMBOL && p.n - (c != 0) == 1 && c != INT64_MIN) {
        CFX_TRY(remember(dims, e, err));
        if (k > 0)  /* k*N + c >= 0: N >= ceil(-c/k) */
            e->bounds.lo = -cfxi_dim_floor(c, k);
        else  /* N <= floor(c/-k), which is floor(-c/k) */
            e->bounds.hi = cfxi_dim_floor(-c, k);
        dims->epoch++;
        return CFX_OK;
    }
    if (!cfxi_base_vec_reserve(&dims->facts, 1, sizeof d, dims->allocator))
        return cfxi_base_nomem(err);
    ((int64_t *)dims->facts.data)[dims->facts.size++] = d;
    dims->epoch++;
    return CFX_OK;
}

/* Whether the atom is part of d, however deep. */
static bool occurs(const cfx_dims *dims, int64_t d, uint32_t atom)
{
    const cfxi_dim_expr *e = cfx_dim_is_symbol(d) ? cfxi_dim_expr_of(dims, d) : NULL;
    if (!e)
        return false;
    if (e->id == atom)
        return true;
    if (e->kind == CFXI_DIM_SYMBOL)
        return false;
    if (e->kind != CFXI_DIM_SUM)
        return occurs(dims, e->a, atom) || occurs(dims, e->b, atom);
    for (size_t i = 0; i < e->n; i++)
        for (size_t k = 0; k < e->t[i].m->degree; k++)
            if (occurs(dims, cfxi_dim_of(cfxi_dim_at(dims, e->t[i].m->atoms[k])), atom))
                return true;
    return false;
}

/* Symbols that nobody named go first, then symbols, then the later atom. */
static uint64_t eagerness(const cfxi_dim_expr *e)
{
    return ((uint64_t)(e->kind == CFXI_DIM_SYMBOL) << 40) + ((uint64_t)e->fresh << 41) + e->id + 1;
}

/* Solves p == 0 for an atom: NULL if there is none that stands alone. */
static cfxi_dim_expr *solve(cfx_dims *dims, const cfxi_poly *p, int64_t *value, cfx_error *err)
{
    cfxi_dim_expr *best = NULL;
    for (size_t i = 0; i < p->n; i++) {
        int64_t k = p->t[i].factor;
        if (p->t[i].m->degree != 1 || (k != 1 && k != -1))
            continue;
        cfxi_dim_expr *e = cfxi_dim_at(dims, p->t[i].m->atoms[0]);
        if (best && eagerness(best) > eagerness(e))
            continue;
        cfxi_poly rest = *p;
        memmove(rest.t + i, rest.t + i + 1, (--rest.n - i) * sizeof *rest.t);
        cfxi_poly right = {0};
        if (cfxi_dim_poly_add(dims, &right, -k, dims->one, &rest, err) != CFX_OK)
            return NULL;
        int64_t d = cfxi_dim_poly_dim(dims, &right, err);
        if (d == CFX_DIM_UNKNOWN)
            return NULL;
        if (occurs(dims, d, e->id))
            continue;
        best = e;
        *value = d;
    }
    return best;
}

/* What follows from an atom being `value`: the bounds that the atom has, the value has. */
static cfx_status learn_bounds(cfx_dims *dims, const cfxi_dim_expr *e, int64_t value,
                               cfx_error *err)
{
    cfxi_range r = cfxi_dim_range(dims, cfxi_dim_of(e));
    if (r.lo != INT64_MIN)
        CFX_TRY(learn(dims, cfxi_dim_combine(dims, 1, value, -1, r.lo, err), err));
    if (r.hi != INT64_MAX)
        CFX_TRY(learn(dims, cfxi_dim_combine(dims, -1, value, 1, r.hi, err), err));
    if (e->kind != CFXI_DIM_DIV || cfx_dim_is_symbol(e->b) || e->b < 0)
        return CFX_OK;
    int64_t low = cfxi_dim_combine(dims, 1, e->a, -e->b, value, err);  /* a - b*value: 0 to b - 1 */
    CFX_TRY(learn(dims, low, err));
    return learn(dims, cfxi_dim_combine(dims, -1, low, 1, e->b - 1, err), err);
}

/* p == 0 stays what it is without factors that are not 0. */
static cfx_status cancel(cfx_dims *dims, cfxi_poly *p, cfx_error *err)
{
    int64_t content = cfxi_dim_poly_content(dims, p, true);
    const cfxi_monomial *common = p->t[0].m;
    if (content > 1)
        cfxi_dim_poly_shrink(p, content);
    for (size_t i = 1; i < p->n; i++)
        CFX_TRY(cfxi_dim_monomial_common(dims, common, p->t[i].m, &common, err));
    for (size_t k = 0; k < common->degree; k++) {
        cfxi_poly atom;
        int64_t d = cfxi_dim_of(cfxi_dim_at(dims, common->atoms[k]));
        if (cfxi_dim_range(dims, d).lo < 1)
            continue;
        CFX_TRY(cfxi_dim_poly_from(dims, d, &atom, err));
        for (size_t i = 0; i < p->n; i++)
            CFX_TRY(cfxi_dim_monomial_div(dims, p->t[i].m, atom.t[0].m, &p->t[i].m, err));
    }
    return CFX_OK;
}

/* Nothing remains of a/b: neither does it of a%b, and b*(a//b) is a. */
static cfx_status assume_exact(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    int64_t parts[] = {cfxi_dim_div(dims, a, b, err), cfxi_dim_mod(dims, a, b, err)};
    if (parts[0] == CFX_DIM_UNKNOWN || parts[1] == CFX_DIM_UNKNOWN)
        return err->status;
    for (int i = 0; i < 2; i++) {
        cfxi_dim_expr *e = cfx_dim_is_symbol(parts[i]) ? cfxi_dim_expr_of(dims, parts[i]) : NULL;
        if (!e || e->a != a || e->b != b)
            continue;
        CFX_TRY(remember(dims, e, err));
        e->exact = e->kind == CFXI_DIM_DIV;
        e->is_equal = e->kind == CFXI_DIM_MOD;
        e->equal = 0;
    }
    return CFX_OK;
}

/* Of p == f*(a//b) - f/b*a the division; NULL if p has not that form. */
static cfx_status find_exact(cfx_dims *dims, const cfxi_poly *p, cfxi_dim_expr **out,
                             cfx_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < p->n && !*out; i++) {
        cfxi_poly rest = *p;
        cfxi_poly whole;
        cfxi_dim_expr *e = p->t[i].m->degree == 1 ? cfxi_dim_at(dims, p->t[i].m->atoms[0]) : NULL;
        if (!e || e->kind != CFXI_DIM_DIV || cfx_dim_is_symbol(e->b) ||
            p->t[i].factor % e->b != 0)
            continue;
        CFX_TRY(cfxi_dim_poly_from(dims, e->a, &whole, err));
        memmove(rest.t + i, rest.t + i + 1, (--rest.n - i) * sizeof *rest.t);
        CFX_TRY(cfxi_dim_poly_add(dims, &rest, p->t[i].factor / e->b, dims->one, &whole, err));
        if (rest.n == 0)
            *out = e;
    }
    return CFX_OK;
}

/* From here on d == 0; *e is the division that leaves nothing if that is what it says. */
static cfx_status assume_zero(cfx_dims *dims, int64_t d, cfxi_dim_expr **exact, cfx_error *err)
{
    cfxi_poly p;
    int64_t value = 0;
    CFX_TRY(cfxi_dim_poly_from(dims, d, &p, err));
    CFX_TRY(cancel(dims, &p, err));
    CFX_TRY(find_exact(dims, &p, exact, err));
    if (*exact) {
        dims->epoch++;
        return assume_exact(dims, (*exact)->a, (*exact)->b, err);
    }
    cfxi_dim_expr *e = solve(dims, &p, &value, err);
    if (e && e->kind == CFXI_DIM_MOD && value == 0 && !cfx_dim_is_symbol(e->b))
        CFX_TRY(assume_exact(dims, e->a, e->b, err));
    if (e) {
        CFX_TRY(learn_bounds(dims, e, value, err));
        CFX_TRY(remember(dims, e, err));
        e->equal = value;
        e->is_equal = true;
    } else {
        CFX_TRY(err->status);
        if (!cfxi_base_vec_reserve(&dims->zeros, 1, sizeof d, dims->allocator))
            return cfxi_base_nomem(err);
        ((int64_t *)dims->zeros.data)[dims->zeros.size++] = d;
    }
    dims->epoch++;
    return CFX_OK;
}

static void assume(cfx_dims *dims, int64_t a, int64_t b, bool equal, int64_t d)
{
    cfx_error err = {0};
    cfx_status status = CFX_OK;
    if (!cfxi_base_vec_reserve(&dims->assumptions, 1, sizeof(cfxi_assumption), dims->allocator))
        status = CFX_E_NOMEM;
    if (status == CFX_OK) {
        cfxi_dim_expr *exact = NULL;
        cfxi_assumption *one = (cfxi_assumption *)dims->assumptions.data + dims->assumptions.size++;
        *one = (cfxi_assumption){a, b, equal};
        status = equal ? assume_zero(dims, d, &exact, &err) : learn(dims, d, &err);
        if (exact) {  /* "N%4 == 0" says it best */
            int64_t rest = cfxi_dim_atom(dims, CFXI_DIM_MOD, exact->a, exact->b, &err);
            if (rest != CFX_DIM_UNKNOWN)
                *one = (cfxi_assumption){rest, 0, true};
        }
    }
    if (status == CFX_E_NOMEM || err.status == CFX_E_NOMEM)
        dims->failed = CFX_E_NOMEM;
}

bool cfx_dim_expect_eq(cfx_dims *dims, int64_t a, int64_t b)
{
    if (are_numbers(a, b) || a == b)
        return a == b;
    int64_t d = difference(dims, b, a);
    int known = compare_zero(dims, d);
    if (known >= 0 || d == CFX_DIM_UNKNOWN)
        return known != 0;
    bool turn = !cfx_dim_is_symbol(a) || (cfx_dim_is_symbol(b) && b < a);  /* the earlier first */
    assume(dims, turn ? b : a, turn ? a : b, true, d);
    return true;
}

bool cfx_dim_expect_le(cfx_dims *dims, int64_t a, int64_t b)
{
    if (are_numbers(a, b) || a == b)
        return a <= b;
    int64_t d = difference(dims, a, b);
    if (d == CFX_DIM_UNKNOWN || cfxi_dim_at_least(dims, d, 0))
        return true;
    if (cfxi_dim_at_least(dims, negated(dims, d), 1))
        return false;
    assume(dims, a, b, false, d);
    return true;
}

cfx_status cfx_dims_print_assumptions(const cfx_dims *dims, cfx_sink out, size_t *n,
                                      cfx_error *err)
{
    cfxi_out text;
    const cfxi_assumption *all = dims->assumptions.data;
    if (n)
        *n = dims->assumptions.size;
    if (dims->failed != CFX_OK)
        return cfxi_base_nomem(err);
    cfxi_base_out_begin(&text, out);
    for (size_t i = 0; i < dims->assumptions.size && text.status == CFX_OK; i++) {
        text.status = cfx_dims_print(dims, all[i].a, cfxi_base_out_sink(&text), err);
        cfxi_base_out_str(&text, all[i].equal ? " == " : " <= ");
        if (text.status == CFX_OK)
            text.status = cfx_dims_print(dims, all[i].b, cfxi_base_out_sink(&text), err);
        cfxi_base_out_char(&text, '\n');
    }
    return cfxi_base_out_end(&text, err);
}
