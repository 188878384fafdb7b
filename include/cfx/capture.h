/* capture.h - modules written in C, calling them, and capturing what they do as a graph.
 *
 *     static const cfx_class mlp_class = {.name = "MLP", .inputs = "x", .forward = forward};
 *
 *     cfx_scope *s = cfx_scope_new(NULL, &err);
 *     cfx_module *mlp = cfx_module_new(s, &mlp_class);
 *     cfx_module_add(s, mlp, "fc1", cfx_nn_linear(s, 784, 512));
 *     cfx_module_add(s, mlp, "fc2", cfx_nn_linear(s, 512, 10));
 *
 *     cfx_var y = cfx_call(s, mlp, x);               computed
 *     cfx_module *captured = cfx_trace(s, mlp);      a module whose forward is a graph,
 *     cfx_transform(s, captured, "fuse_bn,dce");     which passes can change
 *     cfx_var z = cfx_call(s, captured, x);          and which computes the same
 *
 * A module belongs to the scope in which it was made: it lives until that is freed, or as long as
 * someone has retained it; parents retain their children. Modules can be read by several threads at
 * once, each with its own scope, while nobody changes them.
 *
 * The classes of torch.nn are made by the functions of layers.h (cfx_nn_linear, ...); they have the
 * attributes, parameters and buffers of PyTorch's, under the same names, and are initialised as
 * there. So a file of weights that PyTorch wrote fits the same model in C.
 */
#ifndef CFX_CAPTURE_H
#define CFX_CAPTURE_H

#pragma GCC system_header /* see scope.h */

#include <cfx/module.h>
#include <cfx/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_module cfx_module;

/* ---- classes ------------------------------------------------------------------------------- */

/* What a user's modules do. One of the `forward`s is set, by how many inputs it takes; it must
 * return a variable. A class outlives its modules, usually as static const. */
typedef struct cfx_class {
    const char *name;    /* "MLP": in messages, and in what is generated */
    /* Their names: "x", "query, key, mask=None, scale=0.5"; NULL: "x" for forward. Defaults are
     * None, numbers and True or False. */
    const char *inputs;
    cfx_var (*forward)(cfx_scope *s, cfx_module *self, cfx_var x);
    cfx_var (*forward2)(cfx_scope *s, cfx_module *self, cfx_var x, cfx_var y);
    cfx_var (*forward3)(cfx_scope *s, cfx_module *self, cfx_var x, cfx_var y, cfx_var z);
    cfx_var (*forward_n)(cfx_scope *s, cfx_module *self, const cfx_var *in, size_t n);
    bool leaf;           /* a call of it is one node when it is captured: it is not looked into */
} cfx_class;

/* ---- making modules ------------------------------------------------------------------------ */

/* `type` NULL: it only holds others, and cannot be called. NULL if the scope has failed or fails;
 * every function here accepts that NULL, so that a chain of calls needs one check at the end. */
CFX_API cfx_module *cfx_module_new_at(cfx_at at, const cfx_class *type);
#define cfx_module_new(s, type) cfx_module_new_at(CFX_HERE(s), type)
CFX_API cfx_module *cfx_module_retain(cfx_module *m);   /* returns `m`; NULL is allowed */
CFX_API void cfx_module_release(cfx_module *m);         /* NULL is allowed */

/* Adds a child and returns it. The scope fails if the name is taken, is no identifier or number
 * ("0"), or if `child` contains `m`. */
CFX_API cfx_module *cfx_module_add_at(cfx_at at, cfx_module *m, const char *name,
                                      cfx_module *child);
#define cfx_module_add(s, m, name, child) cfx_module_add_at(CFX_HERE(s), m, name, child)

/* Adds a parameter, or a buffer: retained. `t` NULL is None: a bias that is not there. */
CFX_API void cfx_module_add_parameter_at(cfx_at at, cfx_module *m, const char *name, cfx_tensor *t);
CFX_API void cfx_module_add_buffer_at(cfx_at at, cfx_module *m, const char *name, cfx_tensor *t);
#define cfx_module_add_parameter(s, m, name, t) cfx_module_add_parameter_at(CFX_HERE(s), m, name, t)
#define cfx_module_add_buffer(s, m, name, t) cfx_module_add_buffer_at(CFX_HERE(s), m, name, t)

/* Adds a parameter that has no tensor before weights are loaded or taken, and then whichever they
 * have under its name. */
CFX_API void cfx_module_declare_at(cfx_at at, cfx_module *m, const char *name);
#define cfx_module_declare(s, m, name) cfx_module_declare_at(CFX_HERE(s), m, name)

/* Sets any other attribute, a number, text or list of them: "eps", "num_heads". */
CFX_API void cfx_module_set_at(cfx_at at, cfx_module *m, const char *name, cfx_var v);
#define cfx_module_set(s, m, name, v) cfx_module_set_at(CFX_HERE(s), m, name, cfx_v(v))

/* A pointer of the user's, for what `forward` needs to know. */
CFX_API void cfx_module_set_data(cfx_module *m, void *data);
CFX_API void *cfx_module_data(const cfx_module *m);

/* ---- reading modules ----------------------------------------------------------------------- */

/* The module at a path below `m` ("fc1", "layers.0.attn"), borrowed; NULL if there is none. */
CFX_API cfx_module *cfx_module_child(const cfx_module *m, const char *path);
CFX_API size_t cfx_module_num_children(const cfx_module *m);
/* The i-th child in the order in which they were added: *name (may be NULL) is borrowed, too. */
CFX_API cfx_module *cfx_module_get_child(const cfx_module *m, size_t i, const char **name);
/* "MLP", "torch.nn.Linear"; "" for one that only holds others. */
CFX_API const char *cfx_module_class_name(const cfx_module *m);
/* An attribute, a parameter or a buffer, borrowed; INVALID if there is none. */
CFX_API cfx_datum cfx_module_attribute(const cfx_module *m, const char *path);
/* A parameter or a buffer to compute with: its tensor, or while tracing a get_attr. */
CFX_API cfx_var cfx_module_param_at(cfx_at at, cfx_module *m, const char *path);
#define cfx_module_param(s, m, path) cfx_module_param_at(CFX_HERE(s), m, path)

/* Whether dropout drops and batch-norm learns: true for a new module; sets all below it, too. */
CFX_API void cfx_module_train(cfx_module *m, bool training);
CFX_API bool cfx_module_is_training(const cfx_module *m);

/* ---- weights ------------------------------------------------------------------------------- */

/* All parameters and buffers by dotted name, in order; those that are shared come under each name.
 * The caller's to free; NULL, and the scope fails. */
CFX_API cfx_state *cfx_module_state_at(cfx_at at, const cfx_module *m);
#define cfx_module_state(s, m) cfx_module_state_at(CFX_HERE(s), m)
/* Gives them the tensors of `from`, or of a file (weights.h: CFX_TAKE_...). All or none. Those that
 * are one tensor stay one if they are given the same elements. */
CFX_API void cfx_module_load_state_at(cfx_at at, cfx_module *m, const cfx_state *from,
                                      unsigned flags);
#define cfx_module_load_state(s, m, from, flags)                                                   \
    cfx_module_load_state_at(CFX_HERE(s), m, from, flags)
CFX_API void cfx_module_load_at(cfx_at at, cfx_module *m, const char *path, unsigned flags);
#define cfx_module_load(s, m, path) cfx_module_load_at(CFX_HERE(s), m, path, 0)
CFX_API void cfx_module_save_at(cfx_at at, const cfx_module *m, const char *path);
#define cfx_module_save(s, m, path) cfx_module_save_at(CFX_HERE(s), m, path)

/* ---- calling ------------------------------------------------------------------------------- */

/* Calls a module with any number of inputs. */
CFX_API cfx_var cfx_call_at(cfx_at at, cfx_module *m, cfx_vars inputs);
#define cfx_call(s, m, ...) cfx_call_at(CFX_HERE(s), m, CFX_VARS(__VA_ARGS__))

/* ---- control flow that depends on data ------------------------------------------------------ */

/* A branch, or the body or test of a loop: gets what was passed behind `ctx` (usually the module),
 * and as many variables. What it needs, it must be given so: a variable of the function around it
 * is not its own while tracing. */
typedef cfx_var cfx_block(cfx_scope *s, void *ctx, const cfx_var *in);
/* The body of a counted loop also gets the number of the round, a variable from 0 on. */
typedef cfx_var cfx_loop_body(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in);

/* cfx_if(s, pred, then, otherwise, ctx, x, y): what the one or the other block returns. On tensors
 * only that one runs; while tracing both do, and must return as many values of the same types. */
CFX_API cfx_var cfx_if_at(cfx_at at, cfx_var pred, cfx_block *then, cfx_block *otherwise, void *ctx,
                          cfx_vars in);
#define cfx_if(s, pred, then, otherwise, ctx, ...)                                                 \
    cfx_if_at(CFX_HERE(s), cfx_v(pred), then, otherwise, ctx, CFX_VARS(__VA_ARGS__))

/* cfx_while(s, test, body, ctx, x, y): while test(x, y) is true, (x, y) = body(x, y). A body with
 * one variable returns it, one with several a cfx_tuple; and so does the loop. It can be
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

/* ---- models in files of their own ----------------------------------------------------------- */

/* What a file defines whose model others make by its name: `cfx trace FILE.c`, whoever loads it,
 * and all that is generated as C. The first makes the model, ready to be used (trained or not); the
 * second, which may be left out, an input for it. */
CFX_API cfx_module *cfx_model(cfx_scope *s);
CFX_API cfx_var cfx_example(cfx_scope *s);

/* ---- capturing ----------------------------------------------------------------------------- */

typedef struct cfx_trace_options {
    /* The inputs as cfx_datum_parse reads them: "x=float32[N, 3, 224, 224], mask=bool[N]". What
     * does not fit is then an error at its line while tracing, and sizes are known. NULL: nothing
     * is. */
    const char *shapes;
    /* Inputs that are captured as constants: "mask=None, causal=True", whatever a default can be.
     * The captured module takes the other inputs only, in their order. NULL: none. */
    const char *concrete_args;
    /* Whether a call of `m` is to be one node; NULL: modules of torch.nn but Sequential, and leaf
     * classes. */
    bool (*is_leaf)(void *ctx, const cfx_module *m, const char *path);
    void *ctx;
} cfx_trace_options;

/* Calls `m` with variables that stand for its inputs, and returns a module of the same class name
 * whose forward is the graph of what it did. It has the children, parameters and buffers that the
 * graph uses: the same ones, until a pass replaces them. */
CFX_API cfx_module *cfx_trace_at(cfx_at at, cfx_module *m, cfx_trace_options options);
#define cfx_trace(s, m, ...)                                                                       \
    cfx_trace_at(CFX_HERE(s), m, CFX_OPTIONS(cfx_trace_options, __VA_ARGS__))

/* A module over a graph made elsewhere (parsed, built): retained. It has the children, parameters
 * and buffers of `from` (may be NULL) that the graph names. */
CFX_API cfx_module *cfx_module_from_graph_at(cfx_at at, cfx_graph *g, const char *class_name,
                                             cfx_module *from);
#define cfx_module_from_graph(s, g, class_name, from)                                              \
    cfx_module_from_graph_at(CFX_HERE(s), g, class_name, from)

/* The graph of a captured module, borrowed: it may be edited. NULL for others. */
CFX_API cfx_graph *cfx_module_graph(const cfx_module *m);
/* Its tree of modules as passes and generators ask for it (module.h): borrows `m`, and fails with
 * CFX_E_KEY for NULL. */
CFX_API cfx_module_tree cfx_module_as_tree(cfx_module *m);
/* Runs passes over it, by name and in order: "remove_dropout,fuse_bn". Children, parameters and
 * buffers that the graph does not name any more are gone afterwards. */
CFX_API void cfx_transform_at(cfx_at at, cfx_module *m, const char *passes);
#define cfx_transform(s, m, passes) cfx_transform_at(CFX_HERE(s), m, passes)

#ifdef __cplusplus
}
#endif
#endif
