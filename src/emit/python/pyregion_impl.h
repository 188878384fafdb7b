/* pyregion_impl.h - what pycond.c and pyloop.c share: regions, their inputs and what they give. */
#ifndef CFXI_PYREGION_IMPL_H
#define CFXI_PYREGION_IMPL_H

#include "pycode_impl.h"

/* What is known of a region while it is written. */
typedef struct cfxi_py_run {
    cfx_graph *region;
    cfxi_py_frame frame;
    const cfx_node *output;
    const cfxi_name **names;  /* variables whose holder changes in the region, ... */
    cfx_node **holders;       /* ... and who it was */
    size_t n_names;
} cfxi_py_run;

/* One of `a, b = x, 0`. */
typedef struct cfxi_py_assignment {
    const cfxi_name *name;  /* NULL: nothing to do */
    cfx_value value;
    cfx_node *node;         /* whose type is written with the name, or NULL */
} cfxi_py_assignment;

typedef struct cfxi_py_way_out cfxi_py_way_out;

/* A place in the text that one can go back to. */
typedef struct cfxi_py_text_mark {
    size_t body, lines, pieces;
} cfxi_py_text_mark;

/* ---- arguments of the operators ------------------------------------------------------------ */

cfx_value cfxi_emit_py_parameter(const cfx_node *n, size_t i);
cfx_graph *cfxi_emit_py_region(const cfx_node *n, size_t i);
/* The values that the regions are called with; none if they are left out. */
cfx_value cfxi_emit_py_operands(const cfx_node *n);
/* The values for the inputs of a region must be as many as those. */
cfx_status cfxi_emit_py_check_count(const cfx_node *n, cfx_value values, size_t wanted,
                                    const char *what, cfx_error *err);
size_t cfxi_emit_py_count_inputs(const cfx_graph *region);
/* What a region gives; INVALID if that is not there. */
cfx_value cfxi_emit_py_output_value(const cfx_graph *region);
const cfx_node *cfxi_emit_py_output_of(const cfx_graph *region);

static inline bool cfxi_emit_py_is_sequence(cfx_value v)
{
    return v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_LIST;
}

static inline bool cfxi_emit_py_is_node_of(cfx_value v, const cfx_graph *g)
{
    return v.kind == CFX_KIND_NODE && v.as.node->graph == g;
}

static inline bool cfxi_emit_py_has_type(const cfx_node *n)
{
    return n->ext && n->ext->type.kind != CFX_KIND_INVALID && n->ext->type.kind != CFX_KIND_NONE;
}

/* ---- text ---------------------------------------------------------------------------------- */

void cfxi_emit_py_put_line(cfx_pycode *gen, const char *text);
cfxi_py_text_mark cfxi_emit_py_mark_text(const cfx_pycode *gen);
void cfxi_emit_py_go_back(cfx_pycode *gen, cfxi_py_text_mark mark);
/* Whether a value is in its variable already. */
bool cfxi_emit_py_is_there(cfx_pycode *gen, const cfxi_py_assignment *a);
cfxi_py_assignment *cfxi_emit_py_new_assignments(cfx_pycode *gen, size_t n);
/* `a, b = x, 0`: what is not yet in its variable, all at once, since one may be made of another.
 * *any: whether there is something; the line is left open then. */
cfx_status cfxi_emit_py_put_assignment(cfx_pycode *gen, const cfxi_py_assignment *items, size_t n,
                                       const cfx_node *where, bool *any, cfx_error *err);
/* `a, b = state`, where the values come in one. */
cfx_status cfxi_emit_py_unpack_inputs(cfx_pycode *gen, const cfx_node *first, cfx_value values,
                                      const cfx_node *n, cfx_error *err);
/* "a = b = " for what is used no more after a block: variables of `own` that nobody holds, and what
 * the node and its condition use last. Returns how many; none if the function ends there. */
size_t cfxi_emit_py_put_dead(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                             const cfxi_py_assignment *own, size_t n_own);
/* The same as a line, if there are any. */
void cfxi_emit_py_clear_line(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                             const cfxi_py_assignment *own, size_t n_own);

/* ---- regions ------------------------------------------------------------------------------- */

cfx_status cfxi_emit_py_enter(cfx_pycode *gen, cfx_graph *region, const cfx_node *n,
                              cfxi_py_run *run, cfx_error *err);
/* In the region the variable is the input's, until it is left. */
cfx_status cfxi_emit_py_lend(cfx_pycode *gen, cfxi_py_run *run, const cfxi_name *name,
                             const cfx_node *input, cfx_error *err);
cfx_status cfxi_emit_py_leave(cfx_pycode *gen, cfxi_py_run *run, cfx_error *err);
/* The statements of a region up to its output. */
cfx_status cfxi_emit_py_region_body(cfx_pycode *gen, cfxi_py_run *run, cfx_error *err);
/* An input goes by the name of a value outside, or is a literal; else it needs a variable. */
cfx_status cfxi_emit_py_bind_input(cfx_pycode *gen, cfx_node *input, const cfx_value *v,
                                   cfx_error *err);
bool cfxi_emit_py_has_variable(const cfx_pycode *gen, const cfx_node *input);
/* What is wanted in a variable, each value in the first one that asks for it. */
cfx_status cfxi_emit_py_want_all(cfx_pycode *gen, const cfxi_py_run *run,
                                 const cfxi_py_assignment *items, size_t n, cfx_error *err);
/* The end of a branch or a turn: what is not where it should be gets there. */
cfx_status cfxi_emit_py_assign_results(cfx_pycode *gen, cfxi_py_run *run,
                                       const cfxi_py_assignment *items, size_t n, cfx_error *err);
/* Whether all users of `n` take an item of it, each of `size`. */
cfx_status cfxi_emit_py_only_items(cfx_pycode *gen, const cfx_node *n, size_t size, bool *only,
                                   cfx_error *err);

/* ---- break (pybreak.c) --------------------------------------------------------------------- */

/* How a loop that a turn can leave is written. */
typedef enum cfxi_py_head {
    CFXI_PY_HEAD_NONE,     /* as any other, with a variable that says whether it goes on */
    CFXI_PY_HEAD_TRUE,     /* while True: */
    CFXI_PY_HEAD_TEST,     /* while test: */
    CFXI_PY_HEAD_RANGE     /* for i in range(count): */
} cfxi_py_head;

typedef struct cfxi_py_exit {
    cfxi_py_head head;
    size_t go, index;      /* which of the state says that it goes on, and counts (or SIZE_MAX) */
    cfx_node *cond;        /* the branch that leaves; the body ends there */
    size_t item;           /* which of its items says so; SIZE_MAX: it gives nothing else */
    cfx_node *turn;        /* the cond that asks the test at the end of a turn, ... */
    cfx_graph *test;       /* ... which is this region of it */
    cfx_value count;       /* of a range, as the body sees it */
    size_t n_before;       /* so many nodes before the loop compute what it begins with */
} cfxi_py_exit;

cfx_status cfxi_emit_py_find_exit(cfx_pycode *gen, cfx_node *n, cfxi_py_exit *e, cfx_error *err);

typedef enum cfxi_py_leaving {
    CFXI_PY_UNKNOWN,
    CFXI_PY_STAYS,
    CFXI_PY_LEAVES,
    CFXI_PY_MAY_LEAVE      /* it ends with another such branch */
} cfxi_py_leaving;

/* Whether a branch leaves the loop, which its item (SIZE_MAX: all that it gives) says. */
cfxi_py_leaving cfxi_emit_py_leaves(const cfx_graph *region, size_t item);
/* The branch that a region ends with and that decides it, with its item that says so; or NULL. */
cfx_node *cfxi_emit_py_next_leaving(const cfx_graph *region, size_t item, size_t *inner);

/* What is to be done where a branch leaves the loop, from the inside out. */
struct cfxi_py_way_out {
    const cfxi_py_way_out *outer;
    const cfx_node *cond;              /* the branch that does */
    size_t item;                       /* which of its items says so */
    const cfxi_py_assignment *items;   /* what is behind it: results of the branch around it, or */
    size_t n;                          /* the state of the loop */
    const cfx_node *where;
};

/* ---- the operators ------------------------------------------------------------------------- */

cfx_status cfxi_emit_py_cond(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, cfx_error *err);
cfx_status cfxi_emit_py_for_loop(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                                 cfx_error *err);
cfx_status cfxi_emit_py_while_loop(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                                   cfx_error *err);
/* A value that a loop begins with, and nobody needs afterwards, has the name of the state from the
 * start: `acc = torch.zeros(3)`, not `zeros`. */
cfx_status cfxi_emit_py_plan_loop(cfx_pycode *gen, const cfxi_py_frame *frame, cfx_node *n,
                                  cfxi_py_form form, cfx_error *err);

#endif
