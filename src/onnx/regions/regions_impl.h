/* regions_impl.h - graphs in attributes as regions: what If and the loops share. */
#ifndef CFXI_ONNX_REGIONS_IMPL_H
#define CFXI_ONNX_REGIONS_IMPL_H

#include "onnx/import/engine_impl.h"
#include "onnx/import/rules_impl.h"

/* ---- a graph in an attribute (region_outer.c) ---------------------------------------------- */

/* Names that come from outside of a region, and the variables that are passed for them: one for
 * each item of a list of sizes. */
typedef struct cfxi_outer {
    cfxi_import *m;
    cfxi_import_frame *outer;
    cfxi_hash_set seen;
    cfxi_vec values;  /* of cfxi_imported * of the frame around */
    cfxi_vec vars;    /* of cfx_var */
} cfxi_outer;

/* Notes what a graph uses of those around it; false if memory is out. */
bool cfxi_import_outer_use(cfxi_outer *k, const cfxi_onnx_graph *g);
void cfxi_import_outer_free(cfxi_outer *k);
/* Gives a frame of the region the values that are passed: `in` are the variables inside. False, and
 * the scope fails, if memory is out. */
bool cfxi_import_outer_bind(const cfxi_outer *k, cfxi_import_frame *f, const cfx_var *in);

/* The graph in an attribute of the node; NULL, and the scope fails, if it is missing. */
const cfxi_onnx_graph *cfxi_import_region_of(cfxi_import_call *c, const char *name);
/* A frame for a graph in an attribute of the node. */
cfxi_import_frame cfxi_import_region_frame(cfxi_import_call *c, cfxi_import_frame *outer,
                                           const cfxi_onnx_graph *g);
/* Gives a name of the frame a value; false, and the scope fails, if memory is out. */
bool cfxi_import_region_define(cfxi_import *m, cfxi_import_frame *f, cfxi_text name, cfx_var var);
/* Imports the graph in the frame, and gives its outputs, each by one; NULL, and the scope fails. */
const cfxi_imported **cfxi_import_region_run(cfxi_import *m, cfxi_import_frame *f,
                                             const cfxi_onnx_graph *g);
/* Room for n variables, as long as the import lasts; NULL, and the scope fails. */
cfx_var *cfxi_import_room(cfxi_import_call *c, size_t n);

/* ---- loops (region_loop.c) ----------------------------------------------------------------- */

/* A loop's variables: a counter and a condition (of a while loop), what it carries, what it reads a
 * part of in each round, what it uses of the graphs around, and lists of what each round gives. */
typedef struct cfxi_looping {
    cfxi_import_call *c;
    cfxi_outer captured;
    const cfxi_onnx_graph *body;
    bool counts;            /* a counted loop: no condition */
    bool masks;             /* one in which rounds from the limit on change nothing it carries */
    cfx_var limit;          /* of a while loop: how often at most; EMPTY: no limit */
    size_t carried;
    size_t sliced;          /* tensors of a Scan, inputs of a SequenceMap */
    const int64_t *axes;    /* of tensors: along which they are read; NULL: 0 */
    const int64_t *turned;  /* and whether from the end; NULL: they are not */
    const bool *sequences;  /* of a SequenceMap: which are lists; others are passed as they are */
    size_t lists;           /* of outputs of each round */
    bool any_rows;          /* the outputs of the body do not say what rows the lists have */
    cfx_dtype *row_dtypes;  /* for each list: what its rows are, once the body has been read */
    int *row_ranks;         /*   and how many dimensions they have; -1: not known */
} cfxi_looping;

/* Where the parts of the state are. */
static inline size_t cfxi_import_at_carried(const cfxi_looping *l)
{
    return l->counts ? 0 : 2;
}
static inline size_t cfxi_import_at_sliced(const cfxi_looping *l)
{
    return cfxi_import_at_carried(l) + l->carried;
}
static inline size_t cfxi_import_at_captured(const cfxi_looping *l)
{
    return cfxi_import_at_sliced(l) + l->sliced;
}
static inline size_t cfxi_import_at_lists(const cfxi_looping *l)
{
    return cfxi_import_at_captured(l) + l->captured.vars.size;
}
static inline size_t cfxi_import_state_size(const cfxi_looping *l)
{
    return cfxi_import_at_lists(l) + l->lists;
}

/* What a round reads of `x`, sliced input i. */
cfx_var cfxi_import_slice_of(const cfxi_looping *l, size_t i, cfx_var x, cfx_var round,
                             const cfx_var *in);
/* A list after a round that gave `x` for it. */
cfx_var cfxi_import_add_row(const cfxi_looping *l, size_t i, cfx_var list, cfx_var x);
/* A round of a counted loop; ctx: cfxi_looping. */
cfx_var cfxi_import_counted_round(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in);
/* Inputs of the node, from one on; NULL, and the scope fails, if memory is out. */
cfx_var *cfxi_import_inputs_from(cfxi_import_call *c, size_t from);
/* The state before the first round; *n of them. `inputs`: what is carried, and what is sliced. NULL
 * if memory is out. */
cfx_var *cfxi_import_first_state(cfxi_looping *l, const cfx_var *inputs, cfx_var go_on, size_t *n);
/* What `all`, the state of n parts after the last round, gives: what was carried, then the lists.
 * NULL, and the scope fails, if memory is out. */
cfx_var *cfxi_import_loop_results(const cfxi_looping *l, cfx_var all, size_t n,
                                  const int64_t *axes, const int64_t *turned);
/* Sets the outputs of the node; does nothing without results. */
void cfxi_import_set_results(const cfxi_looping *l, const cfx_var *results);

#endif
