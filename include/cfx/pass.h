/* pass.h - transforms: a pass is a function and a row of one table. */
#ifndef CFX_PASS_H
#define CFX_PASS_H

#include <cfx/effect.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes `g` and its regions. `modules` is what its paths lead to, or NULL: then a pass leaves
 * alone what it would have to look up. `opts` is the pass's own option struct or NULL. *changed
 * (may be NULL) tells whether anything was. If it fails, the graph is valid, but may be half
 * changed. */
typedef cfx_status cfx_pass_fn(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                               bool *changed, cfx_error *err);

typedef struct cfx_pass {
    const char *name;
    const char *summary;
    const char *needs;
    const char *keeps;
    cfx_pass_fn *run;
} cfx_pass;

#define CFX_PASS(name, summary, needs, keeps) CFX_API cfx_pass_fn cfx_pass_##name;
#include <cfx/pass.def>
#undef CFX_PASS

/* The table, in alphabetical order; NULL past the end. */
CFX_API const cfx_pass *cfx_pass_get(size_t i);
CFX_API const cfx_pass *cfx_pass_find(const char *name);

/* Runs a pass. Debug builds also verify the graph afterwards, if it was well formed before. */
CFX_API cfx_status cfx_pass_run(const cfx_pass *pass, cfx_graph *g, const cfx_module_tree *modules,
                                const void *opts, bool *changed, cfx_error *err);

/* An option that is a number or a flag: it can be set by its name. */
typedef struct cfx_pass_option {
    const char *pass;      /* whose it is */
    const char *name;
    const char *summary;
    bool is_flag;          /* 0 or 1; else a count */
    uint32_t offset;       /* in the pass's option struct */
    uint64_t default_value;  /* what it is if it is not set */
} cfx_pass_option;

typedef struct cfx_pass_setting {
    const char *name;
    uint64_t value;
} cfx_pass_setting;

/* Those of a pass (pass_option.def); NULL past the end. */
CFX_API const cfx_pass_option *cfx_pass_get_option(const cfx_pass *pass, size_t i);
/* Runs a pass as cfx_pass_run does, with these of its options. CFX_E_KEY for one that it does not
 * have, and CFX_E_VALUE for a flag that is neither 0 nor 1, before any change. */
CFX_API cfx_status cfx_pass_run_with(const cfx_pass *pass, cfx_graph *g,
                                     const cfx_module_tree *modules,
                                     const cfx_pass_setting *settings, size_t n, bool *changed,
                                     cfx_error *err);

/* ---- the passes: what they do in detail, and their options --------------------------------- */

/* annotate: gives nodes without a type the one that the operator table says they have: tensors,
 * numbers, bools and strings. What a method or a sign does is known only if its first argument is
 * a tensor; `inputs_are_tensors` takes inputs and attributes without a type for some. */
typedef struct cfx_annotate_options {
    bool inputs_are_tensors;
} cfx_annotate_options;

/* collapse_reshapes: lets a view, reshape, flatten or ravel read what the view or reshape before it
 * reads, and takes out transposes and permutations that undo each other and a contiguous() of what
 * is contiguous. Results share the same memory in the same strides as before; what would not for
 * tensors of some size stays, and so does what shares memory with something that is written to. */

/* const_fold: without modules, replaces calls of the functions of `operator` on numbers by what
 * they give (what would overflow or fail stays). With modules, also computes calls of operators of
 * the table without an effect whose arguments are attributes, results of such calls and literals;
 * what others read of it becomes a literal, or an attribute "_folded_<n>" that is read where the
 * call stood.
 * Attributes that something in the graph writes to count as unknown. A value that was folded does
 * not follow later changes of the attributes, so this is for inference. If a call fails, nothing
 * has been changed, unless it came to light with a region.
 * Where it is known which way a branch or loop goes, what it comes down to is put in its place: a
 * cond whose predicate is a literal, or that of a cond around it or `not` of that; a loop that runs
 * once or not at all. Literals among the operands, and in state that never changes, are put where
 * regions read them. */

/* cse: replaces each call, and each get_attr, by an earlier node with the same opcode, target and
 * arguments, and erases it. Arguments are compared exactly (1, 1.0 and True differ, 0.0 and -0.0
 * do, nan equals nothing; host objects by identity, regions by what they compute). A call
 * in a region of a branch or loop that was made before it, with the same arguments, is replaced by
 * a further input, unless something in the whole graph writes. Only nodes without an effect are
 * merged, none across a call that may write to what it reads (cfx_node_each_touch), and none whose
 * value may be written to. `modules` tells what modules share. Fails with
 * CFX_E_GRAPH, before any change, on a graph that cfx_graph_lint complains about.
 * `effect` is asked for every node but placeholders and outputs: a cfx_effect, or -1 to stop with
 * CFX_E_HOST; the worse of that and cfx_node_effect counts, but for a call_module that is not in
 * place the answer alone. It can read the graph but not edit it. */
typedef cfx_effect_opinion cfx_cse_options;

/* dce: erases what has no users and no effect, from the end backwards; placeholders, the output and
 * what writes to its arguments (cfx_node_effect) stay. Of branches and loops also goes what nobody
 * needs of them: items of the result that are not taken, operands that no region reads, state that
 * feeds only itself; of those whose regions are not used elsewhere, too. A loop is taken to end:
 * one without an effect whose result nobody needs goes. `like_torch_fx`: an in-place method or
 * function that nobody uses goes, too (cfx_node_is_impure), though others may see what it wrote, as
 * torch.fx's eliminate_dead_code has it. Fails with CFX_E_GRAPH, before any change, on a graph that
 * cfx_graph_lint complains about. `is_impure` overrides the answer: it is asked for every node,
 * used or not, even for placeholders and outputs (twice, if there are regions); 1 keep, 0 erase if
 * unused, -1 stop with CFX_E_HOST. */
typedef struct cfx_dce_options {
    int (*is_impure)(void *ctx, cfx_node *n);
    void *ctx;
    bool like_torch_fx;
} cfx_dce_options;

/* functionalize: replaces in-place calls (x.add_(1), operator.iadd, F.relu(x, inplace=True)) by
 * those that return a new tensor, and what is used later of the old one by the new one. Only where
 * the memory is the graph's own and no view of it is used later; `left` (may be NULL) is told of
 * every other one, and why; it can read the graph but not edit it, and a status that is not CFX_OK
 * stops the pass.
 * `same_dtypes` promises that no operand would make the result another dtype: see functionalize.c.
 * Fails with CFX_E_GRAPH, before any change, on a graph that cfx_graph_lint complains about. */
typedef struct cfx_functionalize_options {
    bool same_dtypes;
    cfx_status (*left)(void *ctx, cfx_node *n, const char *why, cfx_error *err);
    void *ctx;
} cfx_functionalize_options;

/* fuse_bn: computes the weights of each convolution (also transposed) or linear layer and of the
 * batch-norm that follows it into one layer, as torch.nn.utils.fusion does. Both may be modules of
 * torch.nn, or functions whose weights are get_attr nodes. Left alone are: a layer whose result has
 * other users, a module or weight that is called, read or written to elsewhere (by the graph or its
 * regions), modules with hooks, of derived classes, quantized or with integers for weights, and
 * batch-norms that are training, have no running statistics, or have arguments that are not known.
 * A linear layer is taken to have inputs of two dimensions, as in torch.fx. New weights of
 * functions become buffers beside the old ones, which stay. */

/* hoist: lets calls in a loop that depend on nothing that changes be made before it; the loop is
 * given what they give as state that never changes. Only if they would have been made anyway (in
 * the test of a while_loop; in a body that is known to run) or cannot fail; never what has an
 * effect, nor out of a loop that writes. And lets those who take a result of a loop or branch that
 * is only handed through (state that never changes, what both branches return alike) take it from
 * where it came from; dce then drops it. Fails with CFX_E_GRAPH, before any change, on a graph that
 * cfx_graph_lint complains about. */

/* inline: replaces each call of a module that was captured, too, by the nodes of that module, again
 * and again. Paths get the module's path before them, scopes nest in the call's. A call is left
 * alone if its arguments do not fit the inputs, or if there are inputs for any number of arguments.
 * Fails with CFX_E_LIMIT, before any change, if a module contains a call of itself. `copied` (may
 * be NULL) is told of every node and its copy; a status that is not CFX_OK stops the pass. */
typedef struct cfx_inline_options {
    cfx_status (*copied)(void *ctx, cfx_node *from, cfx_node *to, cfx_error *err);
    void *ctx;
} cfx_inline_options;

/* lift_attrs: gives the branches of cond what they read with get_attr as further operands, so that
 * they stand alone; those of a cond inside another climb to the top. A cond is left alone if its
 * regions are passed by keyword, are used elsewhere, or have other inputs than one for each
 * operand. */

/* lift_params: makes each get_attr that reads a tensor an input, before all others, and those of
 * the same path one; in the order of their first readers. What the branches of cond read is lifted
 * first (lift_attrs); what loops read stays. `lifted` (may be NULL) is told the paths in order.
 *
 * unlift_params: the reverse. The first inputs, one for each path, read these paths again. Fails
 * with CFX_E_VALUE, before any change, if there are not so many inputs, or if `modules` has none of
 * a name. */
typedef struct cfx_lift_params_options {
    cfx_status (*lifted)(void *ctx, const char *path, cfx_error *err);
    void *ctx;
} cfx_lift_params_options;
typedef struct cfx_unlift_params_options {
    const char *const *paths;
    size_t n;
} cfx_unlift_params_options;

/* merge_matmul: computes matrix products that have their right-hand side in common (the same node,
 * or reads of the same path) as one: the left-hand sides are concatenated, and the product is
 * split. Those that wait for the result of another one stay apart. Nodes are reordered as far as
 * need be, but what has an effect keeps its order, and nothing passes a node that writes. The
 * left-hand sides are taken to have two dimensions, as in torch.fx. `split(result, inputs)` is the
 * function that splits (NULL: torch.split, with the sizes of the inputs). */
typedef struct cfx_merge_matmul_options {
    const cfx_target *split;
} cfx_merge_matmul_options;

/* normalize: spells calls of table operators in one way: arguments by position as far as can be and
 * without defaults, and methods, overloads and signs as functions of torch where their first
 * argument is known to be a tensor (see annotate). One of both alone if asked for. */
typedef struct cfx_normalize_options {
    bool args_only;
    bool operators_only;
    bool inputs_are_tensors;
} cfx_normalize_options;

/* reinplace: lets calls write their results into their first operand where nothing needs it any
 * more, and drops scatters that only put such a result back; see reinplace.c.
 * `fits` tells whether the result of `n` has the dtype and sizes of `x`, and `x` no element twice:
 * 1, 0, or -1 to stop with CFX_E_HOST (NULL: only for operators that always keep them).
 * `same_elements` tells whether two values hold the same elements, of one memory or of its copies,
 * in whatever sizes (NULL: only if they are the same node). Both can read the graph, not edit it.
 * Fails with CFX_E_GRAPH, before any change, on a graph that cfx_graph_lint complains about. */
typedef struct cfx_reinplace_options {
    int (*fits)(void *ctx, cfx_node *n, cfx_node *x);
    bool (*same_elements)(void *ctx, cfx_node *a, cfx_node *b);
    void *ctx;
} cfx_reinplace_options;
/* remove_dropout: replaces dropout that does nothing by its input: modules that are not training,
 * functions whose `training` is given as False. With `training` also modules of torch.nn.Dropout
 * itself that are, as torch.fx.experimental.optimization does. */
typedef struct cfx_remove_dropout_options {
    bool training;
} cfx_remove_dropout_options;

/* toposort: moves nodes so that everything is defined before it is used: always the first of the
 * nodes that could be next, or with `breadth_first` the one that was ready first (as torch.fx's
 * legalize_graph). CFX_E_GRAPH, before any change, on a graph with a cycle, which it names. */
typedef struct cfx_toposort_options {
    bool breadth_first;
} cfx_toposort_options;

/* unroll: puts the turns of a loop one after the other, if it is known that it runs `max_turns`
 * times at most, and if that makes no more than `max_nodes` nodes of it: a for_loop with a literal
 * for its count, a while_loop whose tests can be computed from the numbers that it starts with and
 * have no effect. (NULL: 16 and 1,000.) Numbers are folded on the way, and branches whose predicate
 * becomes known are put in their places. */
typedef struct cfx_unroll_options {
    size_t max_turns;
    size_t max_nodes;
} cfx_unroll_options;

/* ---- memory layouts ------------------------------------------------------------------------- */

/* A part of a graph that can compute in another memory layout: its nodes, in order, and the
 * conversions of what it takes and of what it gives. */
typedef struct cfx_layout_part {
    cfx_node *const *nodes, *const *starts, *const *ends;
    size_t n_nodes, n_starts, n_ends;
} cfx_layout_part;

/* `enter` and `leave` are methods that convert to the layout and back. `supports` is asked for each
 * call: 1 it takes and gives the layout, 2 it does if one of its inputs has it, 0 it does not, -1
 * stop with CFX_E_HOST. `choose` is asked for each part, which has its conversions then: 1 to leave
 * it so, 0 to undo that, -1 to stop. Both can read the graph but not edit it. */
typedef struct cfx_relayout_options {
    const char *enter, *leave;
    int (*supports)(void *ctx, cfx_node *n);
    int (*choose)(void *ctx, const cfx_layout_part *part);
    void *ctx;
} cfx_relayout_options;

/* Lets the parts that are chosen compute in another layout: what hangs together by values or by
 * calls of the same module is one part. Regions are left alone. As good as linear in nodes and
 * edges. */
CFX_API cfx_status cfx_graph_relayout(cfx_graph *g, const cfx_relayout_options *how, bool *changed,
                                      cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
