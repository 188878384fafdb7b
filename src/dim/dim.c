/* dim.c - sizes that are expressions of symbols: what dim.h declares, over dim_*.c. */
#include "dim_impl.h"

/* ---- sets ---------------------------------------------------------------------------------- */

cfx_dims *cfx_dims_new(const cfx_allocator *allocator, cfx_error *err)
{
    cfx_error own;
    allocator = cfxi_base_allocator(allocator);
    cfx_dims *dims = cfxi_base_alloc(allocator, sizeof *dims);
    if (!dims) {
        cfxi_base_nomem(err);
        return NULL;
    }
    memset(dims, 0, sizeof *dims);
    dims->allocator = allocator;
    dims->epoch = 1;
    cfxi_base_arena_init(&dims->arena, allocator);
    dims->one = cfxi_dim_monomial_one(dims, cfxi_base_error_or(err, &own));
    if (!dims->one) {
        cfx_dims_free(dims);
        return NULL;
    }
    return dims;
}

void cfx_dims_free(cfx_dims *dims)
{
    if (!dims)
        return;
    cfxi_base_set_free(&dims->monomials, dims->allocator);
    cfxi_base_set_free(&dims->table, dims->allocator);
    cfxi_base_vec_free(&dims->exprs, sizeof(cfxi_dim_expr *), dims->allocator);
    cfxi_base_vec_free(&dims->assumptions, sizeof(cfxi_assumption), dims->allocator);
    cfxi_base_vec_free(&dims->changes, sizeof(cfxi_dim_before), dims->allocator);
    cfxi_base_vec_free(&dims->facts, sizeof(int64_t), dims->allocator);
    cfxi_base_vec_free(&dims->zeros, sizeof(int64_t), dims->allocator);
    cfxi_base_arena_release(&dims->arena);
    cfxi_base_free(dims->allocator, dims, sizeof *dims);
}

/* ---- symbols ------------------------------------------------------------------------------- */

/* There are few: a list is enough. */
static cfxi_dim_expr *find_symbol(const cfx_dims *dims, const char *name, size_t size)
{
    for (size_t i = 0; i < dims->exprs.size; i++) {
        cfxi_dim_expr *e = cfxi_dim_at(dims, i);
        if (e->kind == CFXI_DIM_SYMBOL && strlen(e->name) == size &&
            memcmp(e->name, name, size) == 0)
            return e;
    }
    return NULL;
}

int64_t cfx_dims_symbol(cfx_dims *dims, const char *name, int64_t min, cfx_error *err)
{
    cfx_error own;
    size_t size = strlen(name);
    err = cfxi_base_error_or(err, &own);
    if (!cfxi_base_is_identifier(name, size)) {
        cfx_error_set(err, CFX_E_VALUE, "'%.60s' is not a valid name for a size", name);
        return CFX_DIM_UNKNOWN;
    }
    cfxi_dim_expr *e = find_symbol(dims, name, size);
    if (!e)
        e = cfxi_dim_new_symbol(dims, name, size, min, err);
    return e ? cfxi_dim_of(e) : CFX_DIM_UNKNOWN;
}

static int64_t fresh(cfx_dims *dims, int64_t least, cfx_error *err)
{
    cfx_error own;
    char name[CFXI_NUMBER_SIZE + 1] = "u";
    size_t size;
    err = cfxi_base_error_or(err, &own);
    do {
        size = 1 + cfxi_base_format_int(dims->num_fresh++, name + 1);
    } while (find_symbol(dims, name, size));
    cfxi_dim_expr *e = cfxi_dim_new_symbol(dims, name, size, least, err);
    if (!e)
        return CFX_DIM_UNKNOWN;
    e->fresh = true;
    return cfxi_dim_of(e);
}

int64_t cfxi_dim_fresh(cfx_dims *dims, cfx_error *err) { return fresh(dims, 0, err); }

int64_t cfxi_dim_fresh_number(cfx_dims *dims, cfx_error *err)
{
    return fresh(dims, INT64_MIN, err);
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

typedef int64_t binary_fn(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);

static int64_t add(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    return cfxi_dim_combine(dims, 1, a, 1, b, err);
}
static int64_t sub(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    return cfxi_dim_combine(dims, 1, a, -1, b, err);
}
static int64_t max(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    return cfxi_dim_extreme(dims, CFXI_DIM_MAX, a, b, err);
}
static int64_t min(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    return cfxi_dim_extreme(dims, CFXI_DIM_MIN, a, b, err);
}

/* With a symbol among the operands. */
static int64_t compute(cfx_dims *dims, binary_fn *fn, int64_t a, int64_t b, cfx_error *err)
{
    cfx_error own = {0};
    if (a == CFX_DIM_UNKNOWN || b == CFX_DIM_UNKNOWN)
        return CFX_DIM_UNKNOWN;
    if (!dims) {
        cfx_error_set(err, CFX_E_VALUE, "a symbolic size cannot be used here: no cfx_dims was "
                      "given");
        return CFX_DIM_UNKNOWN;
    }
    a = cfxi_dim_resolve(dims, a, &own);
    b = cfxi_dim_resolve(dims, b, &own);
    int64_t result = own.status == CFX_OK ? fn(dims, a, b, &own) : CFX_DIM_UNKNOWN;
    if (own.status == CFX_OK)
        result = cfxi_dim_resolve(dims, result, &own);
    if (dims->failed != CFX_OK)
        cfxi_base_nomem(&own);
    if (own.status == CFX_OK)
        return result;
    if (err)
        *err = own;
    return CFX_DIM_UNKNOWN;
}

static bool is_symbolic(int64_t a, int64_t b)
{
    return a <= CFX_DIM_UNKNOWN || b <= CFX_DIM_UNKNOWN;
}

static int64_t checked(bool overflow, int64_t result, cfx_error *err)
{
    if (!overflow && result > CFX_DIM_UNKNOWN)
        return result;
    cfxi_dim_overflow(err);
    return CFX_DIM_UNKNOWN;
}

int64_t cfx_dim_add(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    int64_t sum;
    if (is_symbolic(a, b))
        return compute(dims, add, a, b, err);
    bool overflow = __builtin_add_overflow(a, b, &sum);
    return checked(overflow, sum, err);
}

int64_t cfx_dim_sub(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    int64_t difference;
    if (is_symbolic(a, b))
        return compute(dims, sub, a, b, err);
    bool overflow = __builtin_sub_overflow(a, b, &difference);
    return checked(overflow, difference, err);
}

int64_t cfx_dim_mul(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    int64_t product;
    if (is_symbolic(a, b))
        return compute(dims, cfxi_dim_times, a, b, err);
    bool overflow = __builtin_mul_overflow(a, b, &product);
    return checked(overflow, product, err);
}

static int64_t by_zero(cfx_error *err)
{
    cfx_error_set(err, CFX_E_VALUE, "division of a size by zero");
    return CFX_DIM_UNKNOWN;
}

int64_t cfx_dim_div(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    if (b == 0)
        return by_zero(err);
    if (is_symbolic(a, b))
        return compute(dims, cfxi_dim_div, a, b, err);
    return cfxi_dim_floor(a, b);
}

int64_t cfx_dim_mod(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    if (b == 0)
        return by_zero(err);
    if (is_symbolic(a, b))
        return compute(dims, cfxi_dim_mod, a, b, err);
    return b == -1 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}

int64_t cfx_dim_max(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    if (is_symbolic(a, b))
        return compute(dims, max, a, b, err);
    return a > b ? a : b;
}

int64_t cfx_dim_min(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err)
{
    if (is_symbolic(a, b))
        return compute(dims, min, a, b, err);
    return a < b ? a : b;
}
