/* analysis_impl.h - what analyses and passes share. */
#ifndef CFXI_ANALYSIS_IMPL_H
#define CFXI_ANALYSIS_IMPL_H

#include "ir/graph_impl.h"

#include <cfx/effect.h>
#include <cfx/library.h>

/* Calls `fn` for each region of `g`, which it may change, until one fails. A pass calls back into
 * the host, which may do anything to the table of references, so they are collected and held
 * first. (regions.c) */
typedef cfx_status cfxi_region_fn(cfx_graph *region, void *ctx, cfx_error *err);
cfx_status cfxi_analysis_each_region(cfx_graph *g, cfxi_region_fn *fn, void *ctx, cfx_error *err);
bool cfxi_analysis_has_regions(const cfx_graph *g);

/* ---- lists of nodes, and adding some (node_lists.c) ---------------------------------------- */

/* Puts `n` at the end of a cfxi_vec of cfx_node *. */
cfx_status cfxi_analysis_nodes_push(cfxi_vec *nodes, cfx_node *n, const cfx_allocator *allocator,
                                    cfx_error *err);
int cfxi_analysis_compare_order(const void *a,
                                const void *b); /* for qsort: in the order of their graph */

/* A call with these arguments at the insertion point; NULL with *err set. */
cfx_node *cfxi_analysis_add_call(cfx_graph *g, cfx_opcode op, cfx_target target,
                                 const cfx_value *args, size_t n, cfx_error *err);
/* Likewise, of the function that the host knows by this name, or else of the name itself. */
cfx_node *cfxi_analysis_add_function(cfx_graph *g, const char *name, const cfx_value *args,
                                     size_t n, cfx_error *err);
cfx_node *cfxi_analysis_add_getitem(cfx_graph *g, cfx_node *n, size_t i, cfx_error *err);
/* A get_attr before a node, with its location and scope; NULL with *err set. */
cfx_node *cfxi_analysis_add_reader(cfx_node *before, const char *path, cfx_error *err);

/* Gives a node other arguments where it has nodes that `instead` maps to values: all at once, since
 * one by one would be quadratic in a list of many. Hooks hear of each use. */
cfx_status cfxi_analysis_replace_inputs(cfx_node *n, cfx_node_map *instead, cfx_error *err);

/* Says that a new node stands where `like`, of the same graph, does in the user's program. */
static inline void cfxi_analysis_place_like(cfx_node *n, const cfx_node *like)
{
    n->location = like->location;
    n->scope = like->scope;
}

static inline bool cfxi_analysis_is_getitem(const cfx_node *n)
{
    return n->op == CFX_OP_CALL_FUNCTION && cfx_node_operator(n) == CFX_OPID_getitem;
}

/* What passes look modules up in: NULL for a table that has but a library. */
static inline const cfx_module_tree *cfxi_analysis_modules_or_null(const cfx_module_tree *modules)
{
    return modules && (modules->class_name || modules->get) ? modules : NULL;
}

static inline const cfx_library *cfxi_analysis_library_of(const cfx_module_tree *modules)
{
    return modules ? modules->library : NULL;
}

/* ---- effects (effects_impl.h has the model) ------------------------------------------------- */

/* Whether a row writes to any of its parameters. (effect.c) */
bool cfxi_analysis_operator_writes(cfx_operator op);
/* Whether a call is told to be `inplace`, has an `out`, or for another reason that is among its
 * arguments writes to one of them. (effect.c) */
bool cfxi_analysis_is_in_place(const cfx_node *n);
bool cfxi_analysis_has_out(const cfx_node *n);
bool cfxi_analysis_arguments_write(const cfx_node *n);

/* A name among sorted rows. (effect.c) */
bool cfxi_analysis_is_listed(const char *name, size_t size, const char *const *rows, size_t n);

/* The result of a function of `operator` for these numbers; INVALID if it is not such a function,
 * if they are not numbers, or if only Python can compute it. (scalar.c) */
cfx_value cfxi_analysis_scalar_call(const char *name, const cfx_value *args, size_t n);

#endif
