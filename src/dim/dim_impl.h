/* dim_impl.h - how expressions of sizes are kept.
 *
 * An atom is a symbol, or a//b, a%b, max(a, b), min(a, b) of sizes that no rule makes simpler. A
 * monomial is a product of atoms, in the order of their numbers. A sum is a list of monomials with
 * integer factors, in falling order (more atoms first, then by their numbers: an order that
 * multiplication keeps, so that sums can be divided by sums); numbers are sums of the monomial
 * without atoms. Atoms, monomials and sums are hash-consed: each exists once.
 *
 * Inside, `err` is never NULL.
 *
 * A size is a number, or names an atom or a sum by its place in `exprs`. A sum that is only one
 * atom is that atom.
 */
#ifndef CFXI_DIM_IMPL_H
#define CFXI_DIM_IMPL_H

#include "ir/graph_impl.h"

#include <cfx/embed/dim.h>

enum {
    CFXI_DIM_TERMS = 48,    /* of a sum */
    CFXI_DIM_DEGREE = 16,   /* atoms of a monomial */
    CFXI_DIM_DEPTH = 48,    /* divisions inside divisions */
    CFXI_DIM_WEIGHT = 2000  /* atoms in all, as it prints */
};

typedef enum cfxi_dim_kind {
    CFXI_DIM_SYMBOL,
    CFXI_DIM_DIV,
    CFXI_DIM_MOD,
    CFXI_DIM_MAX,
    CFXI_DIM_MIN,
    CFXI_DIM_SUM
} cfxi_dim_kind;

/* Bounds, INT64_MIN and INT64_MAX for none. */
typedef struct cfxi_range {
    int64_t lo;
    int64_t hi;
} cfxi_range;

typedef struct cfxi_monomial {
    uint32_t hash;
    uint32_t degree;
    uint32_t atoms[];  /* places in `exprs`, ascending; one that is there twice is squared */
} cfxi_monomial;

typedef struct cfxi_term {
    int64_t factor;  /* not 0 */
    const cfxi_monomial *m;
} cfxi_term;

/* A sum being computed. */
typedef struct cfxi_poly {
    size_t n;
    cfxi_term t[CFXI_DIM_TERMS];
} cfxi_poly;

typedef struct cfxi_dim_expr {
    uint32_t kind;
    uint32_t hash;
    uint32_t id;
    uint16_t depth;
    bool fresh;         /* a symbol that nobody named */
    bool busy;          /* being resolved */
    bool exact;         /* of a DIV by a number: nothing remains, so that b*(a//b) is a */
    uint32_t weight;
    uint32_t resolved_at;
    uint32_t ranged_at;
    uint32_t valued_at;
    int64_t a, b;       /* of DIV, MOD, MAX, MIN */
    int64_t equal;      /* of an atom: what it was assumed to be; 0 with `is_equal` unset */
    bool is_equal;
    int64_t resolved;   /* with all assumptions used; valid if resolved_at is the epoch */
    cfxi_range bounds;  /* of a symbol */
    cfxi_range range;   /* valid if ranged_at is the epoch */
    int64_t value;      /* of the running cfxi_dim_eval */
    const char *name;   /* of a symbol */
    size_t n;           /* of a SUM */
    cfxi_term t[];
} cfxi_dim_expr;

/* What was assumed: a == b or a <= b. */
typedef struct cfxi_assumption {
    int64_t a;
    int64_t b;
    bool equal;
} cfxi_assumption;

/* What was known of an atom before an assumption changed it. */
typedef struct cfxi_dim_before {
    cfxi_dim_expr *atom;
    int64_t equal;
    cfxi_range bounds;
    bool is_equal;
    bool exact;
} cfxi_dim_before;

/* How much is assumed at some time. */
typedef struct cfxi_dim_state {
    size_t changes;
    size_t assumptions;
    size_t facts;
    size_t zeros;
} cfxi_dim_state;

struct cfx_dims {
    const cfx_allocator *allocator;
    cfxi_arena arena;
    cfxi_hash_set monomials;
    cfxi_hash_set table;          /* of atoms but symbols, and sums */
    cfxi_vec exprs;            /* cfxi_dim_expr *, by id */
    cfxi_vec assumptions;      /* cfxi_assumption */
    cfxi_vec changes;          /* cfxi_dim_before: of atoms, in order */
    cfxi_vec facts;            /* int64_t: sizes that are assumed to be 0 or more */
    cfxi_vec zeros;            /* int64_t: sizes that are assumed to be 0 and are no substitution */
    const cfxi_monomial *one;
    uint32_t epoch;            /* grows with every assumption; 1 with none */
    uint32_t evaluation;
    uint32_t num_fresh;
    cfx_status failed;         /* an assumption could not be written down */
    bool cautious;             /* sizes that may be 1 are not assumed to be others: see
                                  cfxi_rt_join_sizes */
};

/* Assumptions that hold on one way alone are taken back: all that were made after the mark. Symbols
 * and expressions stay. */
cfxi_dim_state cfxi_dim_mark(const cfx_dims *dims);
void cfxi_dim_undo(cfx_dims *dims, cfxi_dim_state to);

/* ---- expressions (dim_poly.c) -------------------------------------------------------------- */

static inline cfxi_dim_expr *cfxi_dim_at(const cfx_dims *dims, size_t id)
{
    return ((cfxi_dim_expr **)dims->exprs.data)[id];
}
/* Of a size that is a symbol; NULL if `dims` does not have it. */
static inline cfxi_dim_expr *cfxi_dim_expr_of(const cfx_dims *dims, int64_t d)
{
    uint64_t id = (uint64_t)d - (uint64_t)INT64_MIN;
    return dims && id < dims->exprs.size ? cfxi_dim_at(dims, id) : NULL;
}
/* The symbol that the next new expression will be. */
static inline int64_t cfxi_dim_next(const cfx_dims *dims)
{
    return INT64_MIN + (int64_t)(dims ? dims->exprs.size : 0);
}
static inline int64_t cfxi_dim_of(const cfxi_dim_expr *e)
{
    return INT64_MIN + (int64_t)e->id;
}

cfx_status cfxi_dim_overflow(cfx_error *err);
/* A new symbol; the name is copied. NULL with *err set. */
cfxi_dim_expr *cfxi_dim_new_symbol(cfx_dims *dims, const char *name, size_t size, int64_t min,
                                   cfx_error *err);
/* The atom `kind` of a and b, made if it is new; CFX_DIM_UNKNOWN with *err set. */
int64_t cfxi_dim_atom(cfx_dims *dims, cfxi_dim_kind kind, int64_t a, int64_t b, cfx_error *err);
const cfxi_monomial *cfxi_dim_monomial_one(cfx_dims *dims, cfx_error *err);  /* without atoms */
/* a / b if b divides a; *out is NULL if it does not. */
cfx_status cfxi_dim_monomial_div(cfx_dims *dims, const cfxi_monomial *a, const cfxi_monomial *b,
                                 const cfxi_monomial **out, cfx_error *err);
/* Atoms that both have. */
cfx_status cfxi_dim_monomial_common(cfx_dims *dims, const cfxi_monomial *a, const cfxi_monomial *b,
                                    const cfxi_monomial **out, cfx_error *err);

/* A size as a sum, and back. */
cfx_status cfxi_dim_poly_from(cfx_dims *dims, int64_t d, cfxi_poly *out, cfx_error *err);
int64_t cfxi_dim_poly_dim(cfx_dims *dims, const cfxi_poly *p, cfx_error *err);
/* p += factor * m * q */
cfx_status cfxi_dim_poly_add(cfx_dims *dims, cfxi_poly *p, int64_t factor, const cfxi_monomial *m,
                             const cfxi_poly *q, cfx_error *err);
cfx_status cfxi_dim_poly_mul(cfx_dims *dims, const cfxi_poly *a, const cfxi_poly *b, cfxi_poly *out,
                             cfx_error *err);
/* The number without atoms. */
static inline int64_t cfxi_dim_poly_constant(const cfx_dims *dims, const cfxi_poly *p)
{
    return p->n && p->t[p->n - 1].m == dims->one ? p->t[p->n - 1].factor : 0;
}
static inline bool cfxi_dim_poly_is_number(const cfx_dims *dims, const cfxi_poly *p)
{
    return p->n == 0 || (p->n == 1 && p->t[0].m == dims->one);
}
/* The greatest common divisor of the factors; without that of the number if `!constant`. 0: none.
 * */
int64_t cfxi_dim_poly_content(const cfx_dims *dims, const cfxi_poly *p, bool constant);
/* p = floor of each factor / by; exact where by divides it. */
void cfxi_dim_poly_shrink(cfxi_poly *p, int64_t by);

/* ---- arithmetic on resolved sizes (dim_div.c) ---------------------------------------------- */

int64_t cfxi_dim_floor(int64_t a, int64_t b);  /* of numbers; b is not 0 */
/* factor_a * a + factor_b * b */
int64_t cfxi_dim_combine(cfx_dims *dims, int64_t factor_a, int64_t a, int64_t factor_b, int64_t b,
                         cfx_error *err);
int64_t cfxi_dim_times(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
int64_t cfxi_dim_div(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
int64_t cfxi_dim_mod(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
int64_t cfxi_dim_extreme(cfx_dims *dims, cfxi_dim_kind kind, int64_t a, int64_t b, cfx_error *err);

/* ---- what is known (dim_range.c) ----------------------------------------------------------- */

cfxi_range cfxi_dim_range(cfx_dims *dims, int64_t d);
/* Whether d is provably `least` or more. Never wrong; does not find every proof. */
bool cfxi_dim_at_least(cfx_dims *dims, int64_t d, int64_t least);

/* ---- assumptions (dim_assume.c) ------------------------------------------------------------ */

/* d with every assumption used; d itself if none concerns it, or on failure (*err is set). */
int64_t cfxi_dim_resolve(cfx_dims *dims, int64_t d, cfx_error *err);

/* A new symbol "u0", "u1", ... that may be 0; and one for a number that is not a size and may be
 * negative. CFX_DIM_UNKNOWN with CFX_E_NOMEM. (dim.c) */
int64_t cfxi_dim_fresh(cfx_dims *dims, cfx_error *err);
int64_t cfxi_dim_fresh_number(cfx_dims *dims, cfx_error *err);

/* The value of `d` if each symbol has the value that `value` tells; CFX_E_KEY if that is
 * CFX_DIM_UNKNOWN and no assumption tells it either. (dim_text.c) */
typedef int64_t cfxi_dim_value_fn(void *ctx, const char *name);
cfx_status cfxi_dim_eval(const cfx_dims *dims, int64_t d, cfxi_dim_value_fn *value, void *ctx,
                         int64_t *out, cfx_error *err);

#endif
