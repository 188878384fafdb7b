/* guard_impl.h - how guards are kept.
 *
 * An expression is a list of items in the order in which they are computed: operands, then what is
 * done to them. x.shape[0] * 2 + 1 is TERM 0, NUMBER 2, MUL, NUMBER 1, ADD. Every function takes
 * one operand or two; max(a, b, c) is max(max(a, b), c). A set has the items of all its guards in
 * one array.
 */
#ifndef CFXI_GUARD_IMPL_H
#define CFXI_GUARD_IMPL_H

#include "runtime/python_impl.h"

#include <cfx/embed/guard.h>

enum {
    CFXI_GUARD_ITEMS = 400,  /* of an expression */
    CFXI_GUARD_DEPTH = 64    /* numbers that are kept while it is computed */
};

typedef enum cfxi_guard_op {
    CFXI_GUARD_NUMBER,
    CFXI_GUARD_TERM,
#define CFX_GUARD_FUNCTION(id, text, form, binding, name) CFXI_GUARD_##id,
#include <cfx/guard.def>
#undef CFX_GUARD_FUNCTION
    CFXI_GUARD_OP_COUNT
} cfxi_guard_op;

typedef enum cfxi_guard_form {
    CFXI_GUARD_OPERAND,
    CFXI_GUARD_INFIX,
    CFXI_GUARD_PREFIX,
    CFXI_GUARD_CALL
} cfxi_guard_form;

/* A row of guard.def. */
typedef struct cfxi_guard_function {
    const char *text;
    const char *name;
    uint8_t form;      /* cfxi_guard_form */
    uint8_t binding;
    uint8_t action;    /* cfxi_py_action; NOTHING: int, float */
    uint8_t operands;
} cfxi_guard_function;
extern const cfxi_guard_function cfxi_guard_functions[CFXI_GUARD_OP_COUNT];
extern const char *const cfxi_guard_signs[CFX_GUARD_RELATION_COUNT];
extern const char *const cfxi_guard_kinds[CFX_GUARD_KIND_COUNT];
extern const char *const cfxi_guard_askers[CFX_GUARD_ASKER_COUNT];

typedef struct cfxi_guard_item {
    uint32_t op;
    uint32_t term;     /* of TERM: which */
    cfx_datum number;  /* of NUMBER: an INT or FLOAT */
} cfxi_guard_item;

/* An expression in the making. */
typedef struct cfxi_guard_code {
    size_t n;
    size_t depth;      /* operands that are there at the end */
    cfxi_guard_item items[CFXI_GUARD_ITEMS];
} cfxi_guard_code;

typedef struct cfxi_guard_term {
    size_t input;
    size_t dim;        /* or CFX_GUARD_NUMBER */
} cfxi_guard_term;

typedef struct cfxi_guard_row {
    cfx_guard guard;   /* `line` is in the arena */
    uint8_t relation;
    bool truth;
    uint32_t first;    /* of its items; those of the left side first */
    uint32_t left;     /* how many */
    uint32_t right;
} cfxi_guard_row;

struct cfx_guards {
    const cfx_allocator *allocator;
    cfxi_arena arena;  /* names, lines */
    size_t num_inputs;
    const char **names;
    cfxi_vec terms;    /* of cfxi_guard_term */
    cfxi_vec items;    /* of cfxi_guard_item */
    cfxi_vec rows;     /* of cfxi_guard_row */
};

static inline cfxi_guard_row *cfxi_guard_at(const cfx_guards *g, size_t i)
{
    return (cfxi_guard_row *)g->rows.data + i;
}
static inline const cfxi_guard_item *cfxi_guard_items(const cfx_guards *g,
                                                      const cfxi_guard_row *row, bool right)
{
    return (const cfxi_guard_item *)g->items.data + row->first + (right ? row->left : 0);
}
static inline const cfxi_guard_term *cfxi_guard_terms(const cfx_guards *g)
{
    return g->terms.data;
}

/* ---- sets (guards.c) ----------------------------------------------------------------------- */

/* The number of a term, added if it is new; false if memory is out. */
bool cfxi_guard_term_of(cfx_guards *g, size_t input, size_t dim, uint32_t *term);
/* Adds a guard; its line is copied. `value`: whether the answer was a number. */
cfx_status cfxi_guard_add(cfx_guards *g, const cfx_guard *guard, cfx_guard_relation relation,
                          bool truth, const cfxi_guard_code *left, const cfxi_guard_code *right,
                          cfx_error *err);
/* Takes guards from the end of the set until `n` are left. */
void cfxi_guard_cut(cfx_guards *g, size_t n);

/* ---- expressions (guard_expr.c) ------------------------------------------------------------ */

/* Each adds to the code; false if it becomes too long or too deep. The operands of a function are
 * there. */
bool cfxi_guard_push_number(cfxi_guard_code *code, cfx_datum number);
bool cfxi_guard_push_term(cfxi_guard_code *code, uint32_t term);
bool cfxi_guard_push_function(cfxi_guard_code *code, cfxi_guard_op op);

/* What an expression is if the terms have these values, which may be sizes that are symbols of
 * `dims` (else NULL), or not known. INVALID with *err set. */
cfx_datum cfxi_guard_evaluate(const cfxi_guard_item *items, size_t n, const cfx_datum *values,
                              cfx_dims *dims, cfx_error *err);
/* Whether the guard has the answer that it had: a BOOL, symbolic if that depends; INVALID with *err
 * set. */
cfx_datum cfxi_guard_answer(const cfx_guards *g, const cfxi_guard_row *row, const cfx_datum *values,
                            cfx_dims *dims, cfx_error *err);
/* Whether it has a value for all terms: nothing is divided by what may be 0. */
bool cfxi_guard_is_total(const cfxi_guard_item *items, size_t n);

/* ---- from graphs (guard_nodes.c) ----------------------------------------------------------- */

struct cfxi_guard_sizes;

/* What of a number of the graph the inputs decide. */
typedef enum cfxi_guard_found { CFXI_GUARD_DECIDED, CFXI_GUARD_OPEN, CFXI_GUARD_FAILED }
    cfxi_guard_found;

typedef struct cfxi_guard_reader {
    cfx_guards *guards;
    const cfx_settle_options *options;
    const cfx_node_map *inputs;             /* {placeholder: its number} */
    const struct cfxi_guard_sizes *sizes;   /* of tensors inside; or NULL */
    cfxi_vec *wanted;                       /* gets the nodes whose sizes are needed; or NULL */
    size_t visits;                          /* of values, while a number is read */
    cfx_error *err;
} cfxi_guard_reader;

/* The function of numbers that a node calls; NUMBER: none. */
cfxi_guard_op cfxi_guard_function_of(const cfx_node *n);
/* Adds the expression of a number to the code. FAILED with *err set if memory is out. */
cfxi_guard_found cfxi_guard_read(cfxi_guard_reader *r, cfx_value v, cfxi_guard_code *code);

/* ---- sizes inside of a graph (guard_sizes.c) ----------------------------------------------- */

/* The sizes of nodes inside of a graph, by those of its inputs. */
typedef struct cfxi_guard_sizes cfxi_guard_sizes;

/* Infers them for the nodes of `wanted` (const cfx_node *). NULL with *err set if memory is out or
 * the host failed. */
cfxi_guard_sizes *cfxi_guard_sizes_new(cfx_guards *guards, cfx_graph *g, const cfxi_vec *wanted,
                                       const cfx_settle_options *options, cfx_error *err);
void cfxi_guard_sizes_free(cfxi_guard_sizes *sizes);
/* The expression of a node, which may be relied upon, over variables (cfxi_guard_sizes_variable);
 * NULL if there is none. */
const cfxi_guard_item *cfxi_guard_sizes_get(const cfxi_guard_sizes *sizes, const cfx_node *n,
                                            size_t *count);
/* What a TERM of such an expression is. */
cfxi_guard_term cfxi_guard_sizes_variable(const cfxi_guard_sizes *sizes, uint32_t i);

/* ---- what others imply (guard_reduce.c) ---------------------------------------------------- */

/* Drops guards that always hold or follow from others. */
cfx_status cfxi_guard_reduce(cfx_guards *g, const cfx_settle_options *options, cfx_error *err);

#endif
