/* capture.h - control flow, tracing modules into graphs, and transforming them.
 *
 *     cfx_module *captured = cfx_trace(s, mlp);      a module whose forward is a graph
 *     cfx_transform(s, captured, "fuse_bn,dce");     passes rewrite the graph
 *     cfx_var y = cfx_call(s, captured, x);          the result is the same
 *
 * A module that a function here returns is borrowed from the scope, as in module.h. NULL means that
 * the scope has failed.
 */
#ifndef CFX_CAPTURE_H
#define CFX_CAPTURE_H

#pragma GCC system_header /* see scope.h */

#include <cfx/module.h>
#include <cfx/package.h>
#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- control flow that depends on data ------------------------------------------------------ */

/* A branch, or the test or body of a loop. It receives `ctx` (usually the module) and the variables
 * that were passed to the construct. While tracing it must not use any other variable of the
 * enclosing function: pass the ones it needs. */
typedef cfx_var cfx_block(cfx_scope *s, void *ctx, const cfx_var *in);
/* The body of a counted loop also gets the index of the iteration, a variable that starts at 0. */
typedef cfx_var cfx_loop_body(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in);

/* cfx_if(s, pred, then, otherwise, ctx, x, y) returns the result of one of the two blocks. On
 * tensors only that block runs. While tracing both run, and they must return the same number of
 * values of the same types. */
CFX_API cfx_var cfx_if_at(cfx_at at, cfx_var pred, cfx_block *then, cfx_block *otherwise, void *ctx,
                          cfx_vars in);
#define cfx_if(s, pred, then, otherwise, ctx, ...)                                                 \
    cfx_if_at(CFX_HERE(s), cfx_v(pred), then, otherwise, ctx, CFX_VARS(__VA_ARGS__))

/* cfx_while(s, test, body, ctx, x, y): while test(x, y) is true, (x, y) = body(x, y). A body with
 * one variable returns that variable; one with several returns a cfx_tuple. The loop returns the
 * same. It can be interrupted (cfx_runtime_options). */
CFX_API cfx_var cfx_while_at(cfx_at at, cfx_block *test, cfx_block *body, void *ctx,
                             cfx_vars state);
#define cfx_while(s, test, body, ctx, ...)                                                         \
    cfx_while_at(CFX_HERE(s), test, body, ctx, CFX_VARS(__VA_ARGS__))

/* cfx_for(s, count, body, ctx, x, y): (x, y) = body(i, x, y) for i from 0 to count - 1. */
CFX_API cfx_var cfx_for_at(cfx_at at, cfx_var count, cfx_loop_body *body, void *ctx,
                           cfx_vars state);
#define cfx_for(s, count, body, ctx, ...)                                                          \
    cfx_for_at(CFX_HERE(s), cfx_v(count), body, ctx, CFX_VARS(__VA_ARGS__))

/* ---- capturing ----------------------------------------------------------------------------- */

typedef struct cfx_trace_options {
    /* Types and shapes of the inputs, in the syntax of cfx_datum_parse: "x=float32[N, 3, 224, 224],
     * mask=bool[N]"; "?" for an input of which nothing is known. With them, sizes are known while
     * tracing, and a shape mismatch is an error with the user's line. NULL: nothing is known. */
    const char *shapes;
    /* Inputs to capture as constants: "mask=None, causal=True". Any value that a default can have
     * is allowed. The captured module takes only the remaining inputs, in their order. NULL:
     * none. */
    const char *concrete_args;
    /* Whether a call of `m` becomes a single node. NULL: true for leaf classes and for all modules
     * of torch.nn except Sequential. */
    bool (*is_leaf)(void *ctx, const cfx_module *m, const char *path);
    void *ctx;
} cfx_trace_options;

/* Calls `m` with variables that stand for its inputs. Returns a module with the same class name
 * whose forward is the recorded graph, and which has the children, parameters and buffers that the
 * graph uses. They are shared with `m` until a pass replaces them. */
CFX_API cfx_module *cfx_trace_at(cfx_at at, cfx_module *m, cfx_trace_options options);
#define cfx_trace(s, m, ...)                                                                       \
    cfx_trace_at(CFX_HERE(s), m, CFX_OPTIONS(cfx_trace_options, __VA_ARGS__))

/* A module over a graph that was parsed or built; it retains the graph. It has the children,
 * parameters and buffers of `from` (may be NULL) that the graph names. */
CFX_API cfx_module *cfx_module_from_graph_at(cfx_at at, cfx_graph *g, const char *class_name,
                                             cfx_module *from);
#define cfx_module_from_graph(s, g, class_name, from)                                              \
    cfx_module_from_graph_at(CFX_HERE(s), g, class_name, from)

/* The graph of a captured module: borrowed; it may be edited. NULL for other modules. */
CFX_API cfx_graph *cfx_module_graph(const cfx_module *m);
/* A cfx_module_tree over `m`, for passes and generators (tree.h). It borrows `m`, which must
 * outlive it. If `m` is NULL, its callbacks fail with CFX_E_KEY. */
CFX_API cfx_module_tree cfx_module_as_tree(cfx_module *m);

/* Runs passes over a captured module, by name and in order: "remove_dropout,fuse_bn". Options use
 * the syntax of the command line: "unroll=4" (cfx_pass_list_next). Children, parameters and buffers
 * that the graph no longer names are dropped. */
CFX_API void cfx_transform_at(cfx_at at, cfx_module *m, const char *passes);
#define cfx_transform(s, m, passes) cfx_transform_at(CFX_HERE(s), m, passes)

/* Replaces each occurrence of `pattern` in a captured module by `replacement`, and returns the
 * number of replacements. Calls count as equal however they are spelled, commutative operands in
 * either order; branches and loops are searched, too. Both are modules with the same number of
 * inputs and outputs; those not captured yet are traced. Parts that `replacement` uses are added to
 * `m` by their names; a part that `m` has under the same name stays. match.h gives more control and
 * explains near misses. */
CFX_API size_t cfx_replace_pattern_at(cfx_at at, cfx_module *m, cfx_module *pattern,
                                      cfx_module *replacement);
#define cfx_replace_pattern(s, m, pattern, replacement)                                            \
    cfx_replace_pattern_at(CFX_HERE(s), m, pattern, replacement)

/* ---- files --------------------------------------------------------------------------------- */

/* Writes a module for `cfx run` and cfx_module_read. A module that is not captured yet is traced.
 * A path that ends in .cfx becomes one file with graph, layers and weights (package.h), which
 * Python's cfx.load reads, too. With any other name, a lowered copy of the graph goes to `path` as
 * IR text, and the weights beside it ("model.safetensors" for "model.ir"). Each file is replaced as
 * a whole. */
CFX_API void cfx_module_write_at(cfx_at at, cfx_module *m, const char *path);
#define cfx_module_write(s, m, path) cfx_module_write_at(CFX_HERE(s), m, path)
/* Reads what cfx_module_write, or cfx.save in Python, wrote: a captured module that can be called.
 * Returns NULL if the scope fails. */
CFX_API cfx_module *cfx_module_read_at(cfx_at at, const char *path);
#define cfx_module_read(s, path) cfx_module_read_at(CFX_HERE(s), path)

/* A module over a graph that calls no modules, with its weights by name. It retains both the graph
 * and the tensors. Returns NULL if the scope fails. */
CFX_API cfx_module *cfx_module_from_weights_at(cfx_at at, cfx_graph *g, const char *class_name,
                                               const cfx_state *weights);
#define cfx_module_from_weights(s, g, class_name, weights)                                         \
    cfx_module_from_weights_at(CFX_HERE(s), g, class_name, weights)

/* What a package of a captured module consists of, for those who save it with other texts: writes
 * graph.ir and module.ir, and adds the tensors to `weights`, each once. */
CFX_API cfx_status cfx_module_describe(cfx_module *m, cfx_sink graph, cfx_sink modules,
                                       cfx_state *weights, cfx_error *err);

/* The module of a package that is loaded (package.h). Its weights are the package's, which may be
 * freed afterwards. */
CFX_API cfx_module *cfx_module_from_package_at(cfx_at at, const cfx_package *p);
#define cfx_module_from_package(s, p) cfx_module_from_package_at(CFX_HERE(s), p)

/* ---- models in files of their own ----------------------------------------------------------- */

/* A source file defines these so that `cfx trace FILE.c`, a program that loads it, or generated C
 * can create its model. cfx_model creates the model, ready for use. cfx_example is optional and
 * creates an example input for it. */
CFX_API cfx_module *cfx_model(cfx_scope *s);
CFX_API cfx_var cfx_example(cfx_scope *s);

#ifdef __cplusplus
}
#endif
#endif
