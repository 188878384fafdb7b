/* capture.h - what a module does, as a graph: control flow, tracing, transforming.
 *
 *     cfx_module *captured = cfx_trace(s, mlp);      a module whose forward is a graph,
 *     cfx_transform(s, captured, "fuse_bn,dce");     which passes can change,
 *     cfx_var y = cfx_call(s, captured, x);          and which computes the same
 *
 * A module that a function here returns is borrowed from the scope, as in module.h. NULL means that
 * the scope has failed.
 */
#ifndef CFX_CAPTURE_H
#define CFX_CAPTURE_H

#pragma GCC system_header /* see scope.h */

#include <cfx/module.h>
#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- control flow that depends on data ------------------------------------------------------ */

/* A branch, or the test or body of a loop. It gets `ctx` (usually the module) and the variables
 * that were passed after it. While tracing it may use no other variables of the function around it:
 * pass those that it needs. */
typedef cfx_var cfx_block(cfx_scope *s, void *ctx, const cfx_var *in);
/* The body of a counted loop also gets the index of the iteration, a variable that starts at 0. */
typedef cfx_var cfx_loop_body(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in);

/* cfx_if(s, pred, then, otherwise, ctx, x, y) returns what one of the two blocks returns. On
 * tensors only that block runs. While tracing both run, and must return the same number of
 * values of the same types. */
CFX_API cfx_var cfx_if_at(cfx_at at, cfx_var pred, cfx_block *then, cfx_block *otherwise, void *ctx,
                          cfx_vars in);
#define cfx_if(s, pred, then, otherwise, ctx, ...)                                                 \
    cfx_if_at(CFX_HERE(s), cfx_v(pred), then, otherwise, ctx, CFX_VARS(__VA_ARGS__))

/* cfx_while(s, test, body, ctx, x, y): while test(x, y) is true, (x, y) = body(x, y). A body with
 * one variable returns it, one with several returns a cfx_tuple; so does the loop. The loop can be
 * interrupted (cfx_runtime_options). */
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
    /* Types and shapes of the inputs, as cfx_datum_parse reads them: "x=float32[N, 3, 224, 224],
     * mask=bool[N]". A shape that does not fit is then an error while tracing, with its line, and
     * sizes are known. NULL: nothing is known. */
    const char *shapes;
    /* Inputs that are captured as constants: "mask=None, causal=True", whatever a default can be.
     * The captured module takes the other inputs only, in their order. NULL: none. */
    const char *concrete_args;
    /* Whether a call of `m` becomes one node. NULL: true for leaf classes and for the modules of
     * torch.nn except Sequential. */
    bool (*is_leaf)(void *ctx, const cfx_module *m, const char *path);
    void *ctx;
} cfx_trace_options;

/* Calls `m` with variables that stand for its inputs. Returns a module of the same class name whose
 * forward is the graph of what `m` did, with the children, parameters and buffers that the graph
 * uses. They are the same objects until a pass replaces them. */
CFX_API cfx_module *cfx_trace_at(cfx_at at, cfx_module *m, cfx_trace_options options);
#define cfx_trace(s, m, ...)                                                                       \
    cfx_trace_at(CFX_HERE(s), m, CFX_OPTIONS(cfx_trace_options, __VA_ARGS__))

/* A module over a graph that was parsed or built, which it retains. It has the children, parameters
 * and buffers of `from` (may be NULL) that the graph names. */
CFX_API cfx_module *cfx_module_from_graph_at(cfx_at at, cfx_graph *g, const char *class_name,
                                             cfx_module *from);
#define cfx_module_from_graph(s, g, class_name, from)                                              \
    cfx_module_from_graph_at(CFX_HERE(s), g, class_name, from)

/* The graph of a captured module: borrowed, and may be edited. NULL for other modules. */
CFX_API cfx_graph *cfx_module_graph(const cfx_module *m);
/* The module as passes and generators want it (tree.h). It borrows `m`, which must outlive it. For
 * NULL, its callbacks fail with CFX_E_KEY. */
CFX_API cfx_module_tree cfx_module_as_tree(cfx_module *m);

/* Runs passes over a captured module, by name and in order: "remove_dropout,fuse_bn", with the
 * options that the command takes: "unroll=4" (cfx_pass_list_next). Children, parameters and buffers
 * that the graph no longer names are dropped. */
CFX_API void cfx_transform_at(cfx_at at, cfx_module *m, const char *passes);
#define cfx_transform(s, m, passes) cfx_transform_at(CFX_HERE(s), m, passes)

/* Replaces each place in a captured module that computes what `pattern` does by `replacement`, and
 * returns how many there were. Calls count as equal however they are spelled, operands that commute
 * in either order; branches and loops are searched, too. Pattern and replacement have as many
 * inputs and outputs as each other; a module that is not captured yet is traced. Parts that
 * `replacement` uses are added to `m` by their names; a part that `m` has under the same name
 * stays. match.h has more options, and explains near misses. */
CFX_API size_t cfx_replace_pattern_at(cfx_at at, cfx_module *m, cfx_module *pattern,
                                      cfx_module *replacement);
#define cfx_replace_pattern(s, m, pattern, replacement)                                            \
    cfx_replace_pattern_at(CFX_HERE(s), m, pattern, replacement)

/* ---- files --------------------------------------------------------------------------------- */

/* Writes a module so that `cfx run` can run it, and cfx_module_read read it: a lowered copy of its
 * graph as IR text to `path`, and its weights beside that, "model.safetensors" for "model.ir". A
 * module that is not captured yet is traced. Each file is replaced as a whole. */
CFX_API void cfx_module_write_at(cfx_at at, cfx_module *m, const char *path);
#define cfx_module_write(s, m, path) cfx_module_write_at(CFX_HERE(s), m, path)
/* Reads what cfx_module_write wrote: a captured module that computes. NULL, and the scope fails. */
CFX_API cfx_module *cfx_module_read_at(cfx_at at, const char *path);
#define cfx_module_read(s, path) cfx_module_read_at(CFX_HERE(s), path)

/* ---- models in files of their own ----------------------------------------------------------- */

/* What a file defines so that others can make its model by name: `cfx trace FILE.c`, a program that
 * loads it, and generated C. cfx_model makes the model, ready for use. cfx_example, which may be
 * left out, makes an input for it. */
CFX_API cfx_module *cfx_model(cfx_scope *s);
CFX_API cfx_var cfx_example(cfx_scope *s);

#ifdef __cplusplus
}
#endif
#endif
