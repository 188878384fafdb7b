/* graph_methods.h - the methods of Graph, by the file that has them; graph_type.c lists them. */
#ifndef GRAPH_METHODS_H
#define GRAPH_METHODS_H

#include "base/pycfx.h"

#define FAST_ARGS PyGraph *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames

/* graph_type.c: a Graph object of class `type` for a core graph that has none; a new reference. */
PyObject *graph_wrap_as(PyTypeObject *type, module_state *st, cfx_graph *g);

/* graph_copy.c: gives the nodes of a copy, region by region, copies of the metadata of those they
 * were made from; -1 with an exception. */
int copy_all_meta(PyGraph *source, PyGraph *copy);

/* graph_hooks.c: makes the core call the hooks of the owning module; -1 with an exception. */
int graph_add_hooks(PyGraph *self);
PyObject *graph_on_edit(PyGraph *self, PyObject *callable);

/* graph_create.c */
bool need_node(PyGraph *self, PyObject *o);  /* false with a TypeError if it is no Node */
PyObject *graph_create_node(FAST_ARGS);
PyObject *graph_placeholder(FAST_ARGS);
PyObject *graph_get_attr(FAST_ARGS);
PyObject *graph_call_function(FAST_ARGS);
PyObject *graph_call_method(FAST_ARGS);
PyObject *graph_call_module(FAST_ARGS);
PyObject *graph_output(FAST_ARGS);
PyObject *graph_erase_node(FAST_ARGS);
PyObject *graph_set_insert_point(PyGraph *self, PyObject *args);
PyObject *graph_clear_nodes(PyGraph *self, PyObject *unused);

/* graph_find.c */
PyObject *graph_find_nodes(FAST_ARGS);
PyObject *graph_find_name(PyGraph *self, PyObject *name);
PyObject *graph_paths(PyGraph *self, PyObject *calls_only);

/* graph_split.c */
/* A new list of Nodes; the core nodes of a list, to be freed with PyMem_Free. NULL with an
 * exception. */
PyObject *list_nodes(PyGraph *self, cfx_node *const *nodes, size_t n);
cfx_node **read_nodes(PyGraph *self, PyObject *list);
PyObject *graph_split(PyGraph *self, PyObject *args);
PyObject *graph_stages(PyGraph *self, PyObject *args);
PyObject *graph_split_constants(PyGraph *self, PyObject *args);
PyObject *graph_extract(PyGraph *self, PyObject *args);

/* graph_copy.c: a shallow copy of the metadata of a node, if it has any; and of all nodes that
 * those of a part stand for, in its order. -1 with an exception. */
int copy_meta(PyGraph *graph, const cfx_node *from, cfx_node *to);
int copy_part_meta(PyGraph *copy, cfx_node *const *origins, size_t n);
/* Whether `g` is not yet in the set `done`; adds it. -1 with an exception. A region is visited
 * once, however often it is an argument: regions nest, so two uses on each level would double the
 * work. */
int first_visit(PyObject *done, const cfx_graph *g);
/* An array with room for one more than `n` items of that size: `items`, or a larger copy, and *room
 * grows. NULL with an exception, and `items` is as it was. */
void *with_room(void *items, size_t n, size_t *room, size_t size);
PyObject *graph_clone(PyGraph *self, PyObject *unused);
PyObject *graph_node_copy(FAST_ARGS);
PyObject *graph_graph_copy(FAST_ARGS);

/* graph_draw.c, graph_items.c */
PyObject *graph_dot(FAST_ARGS);
PyObject *graph_annotate_getitem(PyGraph *self, PyObject *unused);

/* graph_check.c */
PyObject *graph_faults(PyGraph *self, PyObject *strict);
/* What `callable` answers for a node: a new reference; NULL with an exception. */
PyObject *ask_node(PyObject *callable, cfx_node *n);
PyObject *graph_dce(PyGraph *self, PyObject *is_impure);
PyObject *graph_str(PyGraph *self);
PyObject *graph_table(PyGraph *self, PyObject *unused);
PyObject *graph_text(PyGraph *self, PyObject *unused);
PyObject *graph_parse(PyObject *type, PyObject *text);
PyObject *graph_equal(PyGraph *self, PyObject *args);
PyObject *graph_structural_hash(PyGraph *self, PyObject *args);

/* modules.c */
PyObject *graph_pass(PyGraph *self, PyObject *args);
PyObject *graph_inline(PyGraph *self, PyObject *module);
PyObject *graph_lift_params(PyGraph *self, PyObject *module);
PyObject *graph_unlift_params(PyGraph *self, PyObject *args);
PyObject *graph_remove_dropout(PyGraph *self, PyObject *args);
PyObject *graph_merge_matmul(PyGraph *self, PyObject *split);
PyObject *graph_may_depend_on(PyGraph *self, PyObject *args);
PyObject *graph_relayout(PyGraph *self, PyObject *args);

/* graph_compare.c */
PyObject *graph_correspond(PyGraph *self, PyObject *other);
PyObject *graph_blame(PyGraph *self, PyObject *verdicts);
PyObject *graph_merge_modes(PyGraph *self, PyObject *args);
PyObject *graph_minimize(PyGraph *self, PyObject *args);

/* quantize/prepare.c */
PyObject *graph_quantize_prepare(PyGraph *self, PyObject *args);
PyObject *graph_quantize_convert(PyGraph *self, PyObject *args);

/* passes.c */
PyObject *graph_functionalize(PyGraph *self, PyObject *same_dtypes);
PyObject *graph_reinplace(PyGraph *self, PyObject *callbacks);
PyObject *graph_repeated(PyGraph *self, PyObject *args);
PyObject *graph_toposort(PyGraph *self, PyObject *breadth_first);

/* match.c */
PyObject *graph_match(PyGraph *self, PyObject *args);
PyObject *graph_explain(PyGraph *self, PyObject *args);
PyObject *graph_anchors(PyGraph *self, PyObject *match_output);

/* graph_parts.c */
PyObject *graph_partition(PyGraph *self, PyObject *args);
PyObject *graph_check_parts(PyGraph *self, PyObject *parts);
PyObject *graph_edges(PyGraph *self, PyObject *args);
PyObject *graph_insert_fused(PyGraph *self, PyObject *args);
PyObject *graph_reached(PyGraph *self, PyObject *args);

/* placement.c: the numbers of a list, to be freed with PyMem_Free; NULL with an exception. */
double *read_doubles(PyObject *list);
PyObject *graph_place(PyGraph *self, PyObject *args);

static inline bool is_call(const cfx_node *n)
{
    cfx_opcode op = cfx_node_op(n);
    return op == CFX_OP_CALL_FUNCTION || op == CFX_OP_CALL_METHOD || op == CFX_OP_CALL_MODULE;
}

/* splitter_extend.c */
PyObject *graph_reverse_deps(PyGraph *self, PyObject *limit);
PyObject *graph_fuse_users(PyGraph *self, PyObject *args);
PyObject *graph_merge_groups(PyGraph *self, PyObject *fusions);
PyObject *graph_parents_of(PyGraph *self, PyObject *tag);
PyObject *graph_extend_acc(PyGraph *self, PyObject *args);

/* splitter.c */
PyObject *graph_deps(PyGraph *self, PyObject *unused);
PyObject *graph_fuse_deps(PyGraph *self, PyObject *args);
PyObject *graph_acc_groups(PyGraph *self, PyObject *args);
PyObject *graph_drop_acc(PyGraph *self, PyObject *args);
PyObject *graph_move_non_tensors(PyGraph *self, PyObject *args);
PyObject *graph_fusion_groups(PyGraph *self, PyObject *args);

/* sources.c */
PyObject *graph_sources(PyGraph *self, PyObject *wanted);
PyObject *graph_boundary(PyGraph *self, PyObject *nodes);

/* graph_cse.c */
PyObject *graph_cse(PyGraph *self, PyObject *args);

/* references.c: warns or raises, as torch.fx does, where the owning module lacks what a new node
 * refers to; -1 with an exception. */
int check_reference(PyGraph *graph, cfx_opcode op, PyObject *path);
PyObject *graph_check_paths(PyGraph *self, PyObject *unused);

/* columns.c */
PyObject *graph_columns(PyGraph *self, PyObject *args);
PyObject *graph_fill(PyGraph *self, PyObject *args);

/* regions.c */
PyObject *graph_outline(PyGraph *self, PyObject *args);

#endif
