/* lower_impl.h - what the files of lowering share: a call in the making, what nodes give.
 *
 * A call of any spelling is bound to a row of the operator table (lower_bind.c): which row, of
 * those that the spelling can mean (lower_forms.c), the arguments tell. For that it must be known
 * of nodes whether they give a tensor or a number (lower_kinds.c). Calls of modules are bound
 * likewise, with attributes for what is not passed (lower_module.c); those that are more than one
 * call have a function each (lower_special.c). lower_write.c puts the result in the place of the
 * node.
 */
#ifndef CFXI_LOWER_IMPL_H
#define CFXI_LOWER_IMPL_H

#include "analysis/call_arguments_impl.h"
#include "base/map_impl.h"

#include <cfx/library.h>
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
    const cfx_module_tree *modules;  /* or NULL */
    const cfx_library *library;  /* or NULL */
    cfx_node_map *what;  /* of nodes, as integers */
    cfx_lower_options options;
    cfxi_pointers tied;  /* by the tensors that are read: their first paths, as copies */
    size_t refused;      /* nodes that cannot be lowered */
    cfx_error first;     /* of them */
    cfx_error *err;      /* never NULL */
} cfxi_lower;

/* A call of a row in the making. */
typedef struct cfxi_lowered {
    cfx_operator op;
    const cfx_custom_operator *custom;          /* a library's row instead of `op`; or NULL */
    cfx_value args[CFXI_MOST_PARAMS];           /* by the row's parameters; INVALID: not given */
    cfx_schema_text defaults[CFXI_MOST_PARAMS]; /* what is then meant */
    size_t n;                                   /* how many parameters the row has */
    cfx_value packed;                           /* a list that was made for it, or INVALID */
    cfx_value out;                              /* where the result is to be written, or INVALID */
    bool in_place;                              /* inplace=True */
    cfx_value max_norm;                         /* of rows that an embedding reads, or INVALID */
    cfx_value norm_type;                        /* likewise; INVALID: 2 */
    bool first_only;                            /* of several results the first is given */
    bool of_python;                             /* a sign of Python's, which takes containers */
    bool batch_mean;                            /* what it gives is to be divided by the batch */
    char why[200];                              /* why it is not one */
} cfxi_lowered;

/* ---- what values are (lower_kinds.c) ------------------------------------------------------- */

cfxi_what cfxi_lower_what(const cfxi_lower *l, cfx_value v);
/* Notes what a lowered call, an input or an attribute gives. */
cfx_status cfxi_lower_note(cfxi_lower *l, const cfx_node *n);
/* Fixes the mode of every module that `g` asks, in regions, too. `modules` may be NULL: then none
 * is training. (lower_mode.c) */
cfx_status cfxi_lower_modes(cfx_graph *g, const cfx_module_tree *modules, cfx_error *err);
/* Whether a value can be what a parameter of this type takes; `strictly`: of what it may also take
 * for the sake of convenience, nothing. */
bool cfxi_lower_fits(const cfxi_lower *l, const char *type, cfx_value v, bool strictly);

/* ---- regions (lower_region.c) -------------------------------------------------------------- */

/* Notes what the inputs of a node's regions are. */
cfx_status cfxi_lower_note_inputs(cfxi_lower *l, const cfx_node *n);
/* What item `i` of what such a node gives is; SIZE_MAX: all of it. */
cfxi_what cfxi_lower_region_item(const cfxi_lower *l, const cfx_node *n, size_t i);

/* ---- methods of lists (lower_list.c) ------------------------------------------------------- */

/* Puts rows in the place of a method that changes a list; *done is false if it is none. */
cfx_status cfxi_lower_list_method(cfxi_lower *l, cfx_node *n, bool *done);

/* ---- views of dicts (lower_dict.c) --------------------------------------------------------- */

/* Refuses a view that may be looked at after the dict has changed. */
cfx_status cfxi_lower_check_view(cfxi_lower *l, cfx_node *n, bool *refused);

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
void cfxi_lower_lowered_begin(cfxi_lowered *c, cfx_operator op);

/* cfx.ops.NAME, as lowering writes it: that row and no other, all arguments by position. */
bool cfxi_lower_calls_row(const cfx_node *n);
/* A call of Python's print. (lower_print.c) */
cfx_status cfxi_lower_print(cfxi_lower *l, cfx_node *n);

/* ---- operators of a library (lower_library.c) ---------------------------------------------- */

/* A call of a row of a library keeps its target; its arguments are bound by the schema. */
cfx_status cfxi_lower_custom(cfxi_lower *l, cfx_node *n, const cfx_custom_operator *f);

/* ---- the graph (lower_write.c) ------------------------------------------------------------- */

/* A default as the schema writes it, as a value: it fills the gap before an argument that is given.
 * Floating. */
cfx_value cfxi_lower_row_default(cfx_graph *g, const cfx_schema_param *param, cfx_schema_text t,
                                 cfx_error *err);
/* Makes `n` the call; reports it if it cannot be. */
cfx_status cfxi_lower_write(cfxi_lower *l, cfx_node *n, cfxi_lowered *c);
/* Gives `n` the target and the arguments of the call, and nothing else. */
cfx_status cfxi_lower_set_call(cfxi_lower *l, cfx_node *n, const cfxi_lowered *c);
/* The call as a node before `n`, which stays what it is; NULL with l->err set. */
cfx_node *cfxi_lower_before(cfxi_lower *l, cfx_node *n, const cfxi_lowered *c);
/* A call of a row before `n`, or after it, with its location; NULL with l->err set. */
cfx_node *cfxi_lower_add(cfxi_lower *l, cfx_node *n, cfx_operator op, const cfx_value *args,
                         size_t count);
cfx_node *cfxi_lower_add_after(cfxi_lower *l, cfx_node *n, cfx_operator op, const cfx_value *args,
                               size_t count);
/* The call, and its results written to c->out. (lower_out.c) */
cfx_status cfxi_lower_out(cfxi_lower *l, cfx_node *n, cfxi_lowered *c);
/* Says why `n` cannot be lowered: CFX_OK, so that the others are looked at, too. */
cfx_status cfxi_lower_refuse(cfxi_lower *l, const cfx_node *n, const char *format, ...)
    CFX_PRINTF(3, 4);

/* ---- modules (lower_module.c) -------------------------------------------------------------- */

cfx_status cfxi_lower_module(cfxi_lower *l, cfx_node *n);
/* A call of a module as one of a row, whose parameters the class passes as `list` says (NULL: by
 * the row's names). */
cfx_status cfxi_lower_as(cfxi_lower *l, cfx_node *n, cfx_operator op, const char *list);
/* An attribute of the module that `n` calls; INVALID if there is none, or if it fails (l->err). A
 * tensor is a get_attr before `n`. Floating. */
cfx_value cfxi_lower_attribute(cfxi_lower *l, cfx_node *n, const char *name);

/* The path by which to read the tensor at `path`: with join_tied the first one that led to it.
 * Borrowed; NULL with l->err set. */
const char *cfxi_lower_path(cfxi_lower *l, const char *path);
void cfxi_lower_paths_free(cfxi_lower *l);

/* ---- modules that are more than one call (lower_special.c) --------------------------------- */

typedef cfx_status cfxi_special_fn(cfxi_lower *l, cfx_node *n);
cfxi_special_fn cfxi_lower_lstm, cfxi_lower_gru, cfxi_lower_rnn;             /* lower_rnn.c */
cfxi_special_fn cfxi_lower_lstm_cell, cfxi_lower_gru_cell, cfxi_lower_rnn_cell;
cfxi_special_fn cfxi_lower_attention, cfxi_lower_encoder_layer, cfxi_lower_encoder,
    cfxi_lower_decoder_layer, cfxi_lower_decoder, cfxi_lower_transformer;  /* lower_attention.c */

/* *done tells whether the class is one. */
cfx_status cfxi_lower_special(cfxi_lower *l, cfx_node *n, const char *class_name, bool *done);

/* Likewise, of torch.ao.quantization's reference form. (lower_reference.c) */
cfx_status cfxi_lower_reference(cfxi_lower *l, cfx_node *n, const char *class_name, bool *done);

/* For those: attributes that are there, and arguments of `forward`. */
bool cfxi_lower_flag(cfxi_lower *l, cfx_node *n, const char *name);
int64_t cfxi_lower_int(cfxi_lower *l, cfx_node *n, const char *name);
cfx_value cfxi_lower_argument(const cfx_node *n, size_t i, const char *name);  /* None if absent */
static inline bool cfxi_lower_value_is_none(cfx_value v)
{
    return v.kind == CFX_KIND_NONE || v.kind == CFX_KIND_INVALID;
}
/* Calls a row before `n`; INVALID if that fails or an argument is INVALID, so that calls chain. */
cfx_value cfxi_lower_row(cfxi_lower *l, cfx_node *n, cfx_operator op, const cfx_value *args,
                         size_t count);
/* x.size(dim), and x.shape[start:stop] as the tuple that it is: for inputs that may lack a batch,
 * which only their dimensions tell. Both chain as cfxi_lower_row does. */
cfx_value cfxi_lower_size(cfxi_lower *l, cfx_node *n, cfx_value x, int64_t dim);
cfx_value cfxi_lower_sizes(cfxi_lower *l, cfx_node *n, cfx_value x, int64_t start, int64_t stop);
/* x.reshape(sizes), of a list that is written down. */
cfx_value cfxi_lower_reshape(cfxi_lower *l, cfx_node *n, cfx_value x, const cfx_value *sizes,
                             size_t count);
/* x.reshape(before + sizes + after), tuples; INVALID for none. */
cfx_value cfxi_lower_reshape_by(cfxi_lower *l, cfx_node *n, cfx_value x, cfx_value before,
                                cfx_value sizes, cfx_value after);
/* Makes `n` a call of a row; whether l->err was set before is looked at here, too. */
cfx_status cfxi_lower_finish(cfxi_lower *l, cfx_node *n, cfx_operator op, const cfx_value *args,
                             size_t count);

#endif
