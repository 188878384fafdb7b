/* lower_impl.h - what the files of lowering share: a call in the making, what nodes give.
 *
 * A call of any spelling is bound to a row of the operator table (lower_bind.c): which row, of those
 * that the spelling can mean (lower_forms.c), the arguments tell. For that it must be known of nodes
 * whether they give a tensor or a number (lower_what.c). Calls of modules are bound likewise, with
 * attributes for what is not passed (lower_module.c); those that are more than one call have a
 * function each (lower_special.c). lower_write.c puts the result in the place of the node.
 */
#ifndef CFXI_LOWER_IMPL_H
#define CFXI_LOWER_IMPL_H

#include "bind_impl.h"

#include <cfx/lower.h>

/* What a value is, as far as it is known before anything runs. */
typedef enum cfxi_what {
    CFXI_WHAT_ANY,
    CFXI_WHAT_TENSOR,
    CFXI_WHAT_TENSORS,  /* a tuple or list of them */
    CFXI_WHAT_NUMBER,   /* also a bool */
    CFXI_WHAT_NUMBERS,  /* a size */
    CFXI_WHAT_DTYPE,
    CFXI_WHAT_DEVICE,
    CFXI_WHAT_LIMITS,   /* of torch.finfo, torch.iinfo */
    CFXI_WHAT_NONE
} cfxi_what;

typedef struct cfxi_lower {
    cfx_graph *g;
    const cfx_modules *modules;
    cfx_node_map *what;  /* of nodes, as integers */
    cfx_lower_fn *each;  /* or NULL */
    void *ctx;
    size_t refused;      /* nodes that cannot be lowered */
    cfx_error first;     /* of them */
    cfx_error *err;      /* never NULL */
} cfxi_lower;

/* A call of a row in the making. */
typedef struct cfxi_lowered {
    cfx_operator op;
    cfx_value args[CFXI_MOST_PARAMS];           /* by the row's parameters; INVALID: not given */
    cfx_schema_text defaults[CFXI_MOST_PARAMS]; /* what is then meant */
    size_t n;                                   /* how many parameters the row has */
    cfx_value packed;                           /* a list that was made for it, or INVALID */
    cfx_value out;                              /* where the result is to be written, or INVALID */
    bool in_place;                              /* inplace=True */
    char why[200];                              /* why it is not one */
} cfxi_lowered;

/* ---- what values are (lower_what.c) -------------------------------------------------------- */

cfxi_what cfxi_lower_what(const cfxi_lower *l, cfx_value v);
/* Notes what a lowered call, an input or an attribute gives. */
cfx_status cfxi_lower_note(cfxi_lower *l, const cfx_node *n);
/* Whether a value can be what a parameter of this type takes; `strictly`: of what it may also take
 * for the sake of convenience, nothing. */
bool cfxi_lower_fits(const cfxi_lower *l, const char *type, cfx_value v, bool strictly);

/* ---- calls (lower_bind.c, lower_forms.c) --------------------------------------------------- */

/* What else a spelling of `from` can mean: the i-th form; false past the last. *list is its own
 * list of parameters, or NULL. */
bool cfxi_lower_form(cfx_operator from, size_t i, cfx_operator *to, const char **list);

/* The arguments of a call as those of a row; false, with c->why, if they do not fit, or memory is
 * out (then l->err says so). */
bool cfxi_lower_bind(cfxi_lower *l, const cfx_node *n, cfx_operator op, const char *list,
                     bool strictly, cfxi_lowered *c);
/* Lets go of what binding made. */
void cfxi_lower_unbind(cfxi_lower *l, cfxi_lowered *c);
/* The row that the call means, by its arguments; false likewise. */
bool cfxi_lower_choose(cfxi_lower *l, const cfx_node *n, cfxi_lowered *c);
/* Starts an empty call of a row. */
void cfxi_lowered_begin(cfxi_lowered *c, cfx_operator op);
/* Passes `v` for the parameter of this name. */
void cfxi_lowered_set(cfxi_lowered *c, const char *param, cfx_value v);

/* ---- the graph (lower_write.c) ------------------------------------------------------------- */

/* Makes `n` the call; reports it if it cannot be. */
cfx_status cfxi_lower_write(cfxi_lower *l, cfx_node *n, cfxi_lowered *c);
/* A call of a row before `n`, with its location; NULL with l->err set. */
cfx_node *cfxi_lower_add(cfxi_lower *l, cfx_node *n, cfx_operator op, const cfx_value *args,
                         size_t count);
/* Says why `n` cannot be lowered: CFX_OK, so that the others are looked at, too. */
cfx_status cfxi_lower_refuse(cfxi_lower *l, const cfx_node *n, const char *format, ...)
    CFX_PRINTF(3, 4);

/* ---- modules (lower_module.c, lower_special.c) --------------------------------------------- */

cfx_status cfxi_lower_module(cfxi_lower *l, cfx_node *n);
/* An attribute of the module that `n` calls; INVALID if there is none, or if it fails (l->err). A
 * tensor is a get_attr before `n`. Floating. */
cfx_value cfxi_lower_attribute(cfxi_lower *l, cfx_node *n, const char *name);
/* Modules that are more than one call: *done tells whether the class is one. */
cfx_status cfxi_lower_special(cfxi_lower *l, cfx_node *n, const char *class_name, bool *done);

#endif
