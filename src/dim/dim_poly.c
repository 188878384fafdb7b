/* dim_poly.c - sums of products of atoms, each of which exists once. dim_impl.h is the manual. */
#include "dim_impl.h"

cfx_status cfxi_dim_overflow(cfx_error *err)
{
    return cfx_error_set(err, CFX_E_SHAPE, "a size does not fit in 64 bits");
}

static cfx_status too_large(cfx_error *err)
{
    return cfx_error_set(err, CFX_E_LIMIT,
                         "a size expression is too large; replace some symbolic sizes by numbers");
}

/* ---- monomials ----------------------------------------------------------------------------- */

static uint32_t hash_atoms(const uint32_t *atoms, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++)
        h = cfxi_base_hash_mix(h, atoms[i]);
    return (uint32_t)h;
}

static bool same_atoms(const void *item, const void *key, size_t size)
{
    const cfxi_monomial *m = item;
    return m->degree == size &&
           (size == 0 || memcmp(m->atoms, key, size * sizeof *m->atoms) == 0);
}

static uint32_t monomial_hash(const void *item) { return ((const cfxi_monomial *)item)->hash; }

static const cfxi_monomial *monomial_of(cfx_dims *dims, const uint32_t *atoms, size_t n,
                                        cfx_error *err)
{
    uint32_t hash = hash_atoms(atoms, n);
    cfxi_monomial *m = cfxi_base_set_find(&dims->monomials, hash, same_atoms, atoms, n);
    if (m)
        return m;
    if (!cfxi_base_set_reserve(&dims->monomials, monomial_hash, dims->allocator) ||
        !(m = cfxi_base_arena_alloc(&dims->arena, sizeof *m + n * sizeof *atoms))) {
        cfxi_base_nomem(err);
        return NULL;
    }
    m->hash = hash;
    m->degree = (uint32_t)n;
    if (n)
        memcpy(m->atoms, atoms, n * sizeof *atoms);
    cfxi_base_set_insert(&dims->monomials, hash, m);
    return m;
}

const cfxi_monomial *cfxi_dim_monomial_one(cfx_dims *dims, cfx_error *err)
{
    return monomial_of(dims, NULL, 0, err);
}

/* The product of two monomials; NULL with *err set. */
static const cfxi_monomial *monomial_mul(cfx_dims *dims, const cfxi_monomial *a,
                                         const cfxi_monomial *b, cfx_error *err)
{
    uint32_t atoms[2 * CFXI_DIM_DEGREE];
    size_t n = 0;
    if (a->degree == 0 || b->degree == 0)
        return a->degree ? a : b;
    for (size_t i = 0, k = 0; i < a->degree || k < b->degree;)
        atoms[n++] = k == b->degree || (i < a->degree && a->atoms[i] <= b->atoms[k])
                         ? a->atoms[i++]
                         : b->atoms[k++];
    if (n > CFXI_DIM_DEGREE) {
        too_large(err);
        return NULL;
    }
    return monomial_of(dims, atoms, n, err);
}

cfx_status cfxi_dim_monomial_div(cfx_dims *dims, const cfxi_monomial *a, const cfxi_monomial *b,
                                 const cfxi_monomial **out, cfx_error *err)
{
    uint32_t atoms[CFXI_DIM_DEGREE];
    size_t n = 0;
    size_t k = 0;
    *out = NULL;
    for (size_t i = 0; i < a->degree; i++) {
        if (k < b->degree && b->atoms[k] == a->atoms[i])
            k++;
        else
            atoms[n++] = a->atoms[i];
    }
    if (k < b->degree)
        return CFX_OK;
    *out = monomial_of(dims, atoms, n, err);
    return *out ? CFX_OK : CFX_E_NOMEM;
}

cfx_status cfxi_dim_monomial_common(cfx_dims *dims, const cfxi_monomial *a, const cfxi_monomial *b,
                                    const cfxi_monomial **out, cfx_error *err)
{
    uint32_t atoms[CFXI_DIM_DEGREE];
    size_t n = 0;
    for (size_t i = 0, k = 0; i < a->degree && k < b->degree;) {
        if (a->atoms[i] == b->atoms[k]) {
            atoms[n++] = a->atoms[i++];
            k++;
        } else if (a->atoms[i] < b->atoms[k]) {
            i++;
        } else {
            k++;
        }
    }
    *out = monomial_of(dims, atoms, n, err);
    return *out ? CFX_OK : CFX_E_NOMEM;
}

/* Above 0 if a comes first. */
static int compare_monomials(const cfxi_monomial *a, const cfxi_monomial *b)
{
    if (a == b)
        return 0;
    if (a->degree != b->degree)
        return a->degree > b->degree ? 1 : -1;
    for (size_t i = 0; i < a->degree; i++)
        if (a->atoms[i] != b->atoms[i])
            return a->atoms[i] < b->atoms[i] ? 1 : -1;
    return 0;
}

/* ---- sums ---------------------------------------------------------------------------------- */

cfx_status cfxi_dim_poly_from(cfx_dims *dims, int64_t d, cfxi_poly *out, cfx_error *err)
{
    out->n = 0;
    if (!cfx_dim_is_symbol(d)) {
        if (d)
            out->t[out->n++] = (cfxi_term){d, dims->one};
        return CFX_OK;
    }
    const cfxi_dim_expr *e = cfxi_dim_expr_of(dims, d);
    if (!e)
        return cfx_error_set(err, CFX_E_VALUE, "the symbolic size belongs to another cfx_dims");
    if (e->kind == CFXI_DIM_SUM) {
        memcpy(out->t, e->t, e->n * sizeof *e->t);
        out->n = e->n;
        return CFX_OK;
    }
    const cfxi_monomial *m = monomial_of(dims, &e->id, 1, err);
    if (!m)
        return CFX_E_NOMEM;
    out->t[out->n++] = (cfxi_term){1, m};
    return CFX_OK;
}

static cfx_status push(cfxi_poly *p, int64_t factor, const cfxi_monomial *m, cfx_error *err)
{
    if (factor == 0)
        return CFX_OK;
    if (p->n == CFXI_DIM_TERMS)
        return too_large(err);
    p->t[p->n++] = (cfxi_term){factor, m};
    return CFX_OK;
}

/* Multiplying all monomials of a sum by one keeps their order: a merge. */
cfx_status cfxi_dim_poly_add(cfx_dims *dims, cfxi_poly *p, int64_t factor, const cfxi_monomial *m,
                             const cfxi_poly *q, cfx_error *err)
{
    cfxi_poly sum = {0};
    size_t i = 0;
    for (size_t k = 0; factor && k < q->n; k++) {
        int64_t f;
        const cfxi_monomial *product = monomial_mul(dims, q->t[k].m, m, err);
        if (!product)
            return err->status;
        if (__builtin_mul_overflow(q->t[k].factor, factor, &f))
            return cfxi_dim_overflow(err);
        while (i < p->n && compare_monomials(p->t[i].m, product) > 0) {
            CFX_TRY(push(&sum, p->t[i].factor, p->t[i].m, err));
            i++;
        }
        if (i < p->n && p->t[i].m == product && __builtin_add_overflow(f, p->t[i++].factor, &f))
            return cfxi_dim_overflow(err);
        CFX_TRY(push(&sum, f, product, err));
    }
    for (; i < p->n; i++)
        CFX_TRY(push(&sum, p->t[i].factor, p->t[i].m, err));
    *p = sum;
    return CFX_OK;
}

cfx_status cfxi_dim_poly_mul(cfx_dims *dims, const cfxi_poly *a, const cfxi_poly *b, cfxi_poly *out,
                             cfx_error *err)
{
    cfxi_poly product = {0};
    for (size_t i = 0; i < a->n; i++)
        CFX_TRY(cfxi_dim_poly_add(dims, &product, a->t[i].factor, a->t[i].m, b, err));
    *out = product;
    return CFX_OK;
}

int64_t cfxi_dim_poly_content(const cfx_dims *dims, const cfxi_poly *p, bool constant)
{
    uint64_t gcd = 0;
    for (size_t i = 0; i < p->n; i++)
        if (constant || p->t[i].m != dims->one)
            gcd = cfxi_base_gcd(gcd, p->t[i].factor);
    return gcd > INT64_MAX ? 1 : (int64_t)gcd;
}

void cfxi_dim_poly_shrink(cfxi_poly *p, int64_t by)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        int64_t q = p->t[i].factor / by;
        q -= p->t[i].factor % by != 0 && (p->t[i].factor < 0) != (by < 0);
        if (q)
            p->t[n++] = (cfxi_term){q, p->t[i].m};
    }
    p->n = n;
}

/* ---- interning ----------------------------------------------------------------------------- */

static uint32_t hash_expr(const cfxi_dim_expr *e)
{
    uint64_t h = cfxi_base_hash_mix(e->kind, e->n);
    if (e->kind != CFXI_DIM_SUM)
        return (uint32_t)cfxi_base_hash_mix(cfxi_base_hash_mix(h, (uint64_t)e->a), (uint64_t)e->b);
    for (size_t i = 0; i < e->n; i++)
        h = cfxi_base_hash_mix(cfxi_base_hash_mix(h, (uint64_t)e->t[i].factor), e->t[i].m->hash);
    return (uint32_t)h;
}

static bool same_expr(const void *item, const void *key, size_t size)
{
    const cfxi_dim_expr *e = item;
    const cfxi_dim_expr *k = key;
    (void)size;
    if (e->kind != k->kind || e->n != k->n || e->a != k->a || e->b != k->b)
        return false;
    for (size_t i = 0; i < e->n; i++)
        if (e->t[i].factor != k->t[i].factor || e->t[i].m != k->t[i].m)
            return false;
    return true;
}

static uint32_t expr_hash(const void *item) { return ((const cfxi_dim_expr *)item)->hash; }

/* Gives an expression its number. */
static cfx_status enroll(cfx_dims *dims, cfxi_dim_expr *e, cfx_error *err)
{
    if (!cfxi_base_vec_reserve(&dims->exprs, 1, sizeof e, dims->allocator))
        return cfxi_base_nomem(err);
    if (dims->exprs.size >= UINT32_MAX / 2)
        return too_large(err);
    e->id = (uint32_t)dims->exprs.size;
    ((cfxi_dim_expr **)dims->exprs.data)[dims->exprs.size++] = e;
    return CFX_OK;
}

cfxi_dim_expr *cfxi_dim_new_symbol(cfx_dims *dims, const char *name, size_t size, int64_t min,
                                   cfx_error *err)
{
    cfxi_dim_expr *e = cfxi_base_arena_zeros(&dims->arena, 1, sizeof *e);
    char *copy = cfxi_base_arena_zeros(&dims->arena, size + 1, 1);
    if (!e || !copy) {
        cfxi_base_nomem(err);
        return NULL;
    }
    memcpy(copy, name, size);
    *e = (cfxi_dim_expr){.kind = CFXI_DIM_SYMBOL, .name = copy, .weight = 1,
                         .bounds = {min, INT64_MAX}};
    return enroll(dims, e, err) == CFX_OK ? e : NULL;
}

/* How deep divisions nest in `d`, and how many atoms it prints. */
static void measure(const cfx_dims *dims, int64_t d, cfxi_dim_expr *e)
{
    const cfxi_dim_expr *part = cfxi_dim_expr_of(dims, d);
    if (!cfx_dim_is_symbol(d) || !part)
        return;
    if (e->depth < part->depth)
        e->depth = part->depth;
    e->weight += part->weight;
}

/* The expression like `key`, which is on the caller's stack. */
static int64_t intern(cfx_dims *dims, cfxi_dim_expr *key, cfx_error *err)
{
    key->hash = hash_expr(key);
    cfxi_dim_expr *e = cfxi_base_set_find(&dims->table, key->hash, same_expr, key, 0);
    if (e)
        return cfxi_dim_of(e);
    if (key->depth > CFXI_DIM_DEPTH || key->weight > CFXI_DIM_WEIGHT) {
        too_large(err);
        return CFX_DIM_UNKNOWN;
    }
    size_t size = sizeof *e + key->n * sizeof *e->t;
    if (!cfxi_base_set_reserve(&dims->table, expr_hash, dims->allocator) ||
        !(e = cfxi_base_arena_alloc(&dims->arena, size))) {
        cfxi_base_nomem(err);
        return CFX_DIM_UNKNOWN;
    }
    memcpy(e, key, size);
    if (enroll(dims, e, err) != CFX_OK)
        return CFX_DIM_UNKNOWN;
    cfxi_base_set_insert(&dims->table, e->hash, e);
    return cfxi_dim_of(e);
}

int64_t cfxi_dim_atom(cfx_dims *dims, cfxi_dim_kind kind, int64_t a, int64_t b, cfx_error *err)
{
    cfxi_dim_expr key = {.kind = kind, .a = a, .b = b, .weight = 1};
    measure(dims, a, &key);
    measure(dims, b, &key);
    key.depth++;
    return intern(dims, &key, err);
}

int64_t cfxi_dim_poly_dim(cfx_dims *dims, const cfxi_poly *p, cfx_error *err)
{
    union {
        cfxi_dim_expr e;
        char room[sizeof(cfxi_dim_expr) + CFXI_DIM_TERMS * sizeof(cfxi_term)];
    } key = {.e = {.kind = CFXI_DIM_SUM, .n = p->n}};
    if (cfxi_dim_poly_is_number(dims, p)) {
        int64_t number = cfxi_dim_poly_constant(dims, p);
        if (number <= CFX_DIM_UNKNOWN) {
            cfxi_dim_overflow(err);
            return CFX_DIM_UNKNOWN;
        }
        return number;
    }
    if (p->n == 1 && p->t[0].factor == 1 && p->t[0].m->degree == 1)
        return cfxi_dim_of(cfxi_dim_at(dims, p->t[0].m->atoms[0]));
    for (size_t i = 0; i < p->n; i++) {
        key.e.t[i] = p->t[i];
        for (size_t k = 0; k < p->t[i].m->degree; k++)
            measure(dims, cfxi_dim_of(cfxi_dim_at(dims, p->t[i].m->atoms[k])), &key.e);
    }
    return intern(dims, &key.e, err);
}
