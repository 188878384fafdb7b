/* module.h - modules in C: create and inspect them, load weights, call them.
 *
 *     static const cfx_class mlp_class = {.name = "MLP", .inputs = "x", .forward = forward};
 *
 *     cfx_scope *s = cfx_scope_new(NULL, &err);
 *     cfx_module *mlp = cfx_module_new(s, &mlp_class);
 *     cfx_module_add(s, mlp, "fc1", cfx_nn_linear(s, 784, 512));
 *     cfx_module_add(s, mlp, "fc2", cfx_nn_linear(s, 512, 10));
 *     cfx_var y = cfx_call(s, mlp, x);
 *
 * A module belongs to the scope it was created in. It lives until that scope is freed, or longer if
 * it is retained; parents retain their children. Several threads may read modules at once, each
 * with its own scope, as long as no thread changes them.
 *
 * layers.h creates the classes of torch.nn (cfx_nn_linear, ...). They have PyTorch's attributes,
 * parameters and buffers under the same names, with the same initialisation, so PyTorch's weight
 * files load into the same model in C.
 *
 * Functions with a scope report failure there (scope.h). They accept a NULL module, the result of
 * an earlier failure, so a chain of calls needs one check at the end.
 */
#ifndef CFX_MODULE_H
#define CFX_MODULE_H

#pragma GCC system_header /* see scope.h */

#include <cfx/scope.h>
#include <cfx/state.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_module cfx_module;

/* ---- classes ------------------------------------------------------------------------------- */

/* What the modules of a user-defined class do. Set the `forward` with the number of inputs you
 * need; it must return a variable. A class must outlive its modules; usually it is static const. */
typedef struct cfx_class {
    const char *name;    /* "MLP": for messages and generated code */
    /* The names of the inputs: "x", "query, key, mask=None, scale=0.5". A default is None, a
     * number, True or False. NULL: "x" for forward. */
    const char *inputs;
    cfx_var (*forward)(cfx_scope *s, cfx_module *self, cfx_var x);
    cfx_var (*forward2)(cfx_scope *s, cfx_module *self, cfx_var x, cfx_var y);
    cfx_var (*forward3)(cfx_scope *s, cfx_module *self, cfx_var x, cfx_var y, cfx_var z);
    cfx_var (*forward_n)(cfx_scope *s, cfx_module *self, const cfx_var *in, size_t n);
    bool leaf;           /* capture records a call as one node and does not trace into it */
} cfx_class;

/* ---- creating modules ----------------------------------------------------------------------- */

/* A new module, borrowed from the scope; NULL if the scope has failed. With `type` NULL it is only
 * a container for other modules and cannot be called. */
CFX_API cfx_module *cfx_module_new_at(cfx_at at, const cfx_class *type);
#define cfx_module_new(s, type) cfx_module_new_at(CFX_HERE(s), type)
/* Reference counting, to keep a module after its scope is freed. NULL is allowed; retain returns
 * `m`. */
CFX_API cfx_module *cfx_module_retain(cfx_module *m);
CFX_API void cfx_module_release(cfx_module *m);

/* Releases a module and all modules below it before their scope is freed, for loops that create,
 * trace or read many modules. Those that are children of other modules, or retained, live on. */
CFX_API void cfx_module_drop_at(cfx_at at, cfx_module *m);
#define cfx_module_drop(s, m) cfx_module_drop_at(CFX_HERE(s), m)

/* Adds a child and returns it. The scope fails if the name is taken or is neither an identifier nor
 * a number ("0"), or if `child` contains `m`. */
CFX_API cfx_module *cfx_module_add_at(cfx_at at, cfx_module *m, const char *name,
                                      cfx_module *child);
#define cfx_module_add(s, m, name, child) cfx_module_add_at(CFX_HERE(s), m, name, child)

/* Adds a parameter or a buffer, and retains its tensor. NULL stands for None, such as a missing
 * bias. */
CFX_API void cfx_module_add_parameter_at(cfx_at at, cfx_module *m, const char *name, cfx_tensor *t);
CFX_API void cfx_module_add_buffer_at(cfx_at at, cfx_module *m, const char *name, cfx_tensor *t);
#define cfx_module_add_parameter(s, m, name, t) cfx_module_add_parameter_at(CFX_HERE(s), m, name, t)
#define cfx_module_add_buffer(s, m, name, t) cfx_module_add_buffer_at(CFX_HERE(s), m, name, t)

/* Adds a parameter without a tensor. Loading weights assigns it the tensor of this name, whatever
 * its type and shape. */
CFX_API void cfx_module_declare_at(cfx_at at, cfx_module *m, const char *name);
#define cfx_module_declare(s, m, name) cfx_module_declare_at(CFX_HERE(s), m, name)

/* Sets any other attribute, such as "eps" or "num_heads": a number, a string, or a list of them. */
CFX_API void cfx_module_set_at(cfx_at at, cfx_module *m, const char *name, cfx_var v);
#define cfx_module_set(s, m, name, v) cfx_module_set_at(CFX_HERE(s), m, name, cfx_v(v))

/* A user pointer, for data that `forward` needs; initially NULL. cfx never frees it. */
CFX_API void cfx_module_set_data(cfx_module *m, void *data);
CFX_API void *cfx_module_data(const cfx_module *m);

/* ---- reading modules ----------------------------------------------------------------------- */

/* The module at a path below `m` ("fc1", "layers.0.attn"): borrowed; NULL if there is none. */
CFX_API cfx_module *cfx_module_child(const cfx_module *m, const char *path);
CFX_API size_t cfx_module_num_children(const cfx_module *m);
/* The i-th child, in the order in which they were added: borrowed, as is *name (may be NULL). NULL
 * past the last. */
CFX_API cfx_module *cfx_module_get_child(const cfx_module *m, size_t i, const char **name);
/* "MLP", "torch.nn.Linear"; "" for a module that only holds others. */
CFX_API const char *cfx_module_class_name(const cfx_module *m);
/* An attribute, parameter or buffer: borrowed; INVALID if there is none. */
CFX_API cfx_datum cfx_module_attribute(const cfx_module *m, const char *path);
/* A parameter or buffer to compute with: its tensor, or a get_attr node while tracing. "training"
 * and "block.training" are the present modes of the module and of its child. */
CFX_API cfx_var cfx_module_param_at(cfx_at at, cfx_module *m, const char *path);
#define cfx_module_param(s, m, path) cfx_module_param_at(CFX_HERE(s), m, path)

/* Training mode, in which dropout is active and batch-norm updates its statistics: true for a new
 * module. Setting it also sets it for all modules below `m`. */
CFX_API void cfx_module_train(cfx_module *m, bool training);
CFX_API bool cfx_module_is_training(const cfx_module *m);

/* ---- weights ------------------------------------------------------------------------------- */

/* All parameters and buffers by dotted name, in order; a shared one appears under each of its
 * names. The caller frees the result. Returns NULL if the scope fails. */
CFX_API cfx_state *cfx_module_state_at(cfx_at at, const cfx_module *m);
#define cfx_module_state(s, m) cfx_module_state_at(CFX_HERE(s), m)

/* Assigns the tensors of `from` to all parameters and buffers, as load_state_dict does; if the
 * scope fails, none of them changes. `flags` are CFX_LOAD_... of state.h. Names that share a tensor
 * continue to share one if `from` has the same elements for them. */
CFX_API void cfx_module_load_state_at(cfx_at at, cfx_module *m, const cfx_state *from,
                                      unsigned flags);
#define cfx_module_load_state(s, m, from, flags)                                                   \
    cfx_module_load_state_at(CFX_HERE(s), m, from, flags)

/* The same from a .safetensors or .npz file, and back to a .safetensors file. cfx_module_load is
 * strict: the file and the module must have the same names. */
CFX_API void cfx_module_load_at(cfx_at at, cfx_module *m, const char *path, unsigned flags);
#define cfx_module_load(s, m, path) cfx_module_load_at(CFX_HERE(s), m, path, 0)
CFX_API void cfx_module_save_at(cfx_at at, const cfx_module *m, const char *path);
#define cfx_module_save(s, m, path) cfx_module_save_at(CFX_HERE(s), m, path)

/* ---- calling ------------------------------------------------------------------------------- */

/* Calls a module with any number of inputs: cfx_call(s, m, x, y). */
CFX_API cfx_var cfx_call_at(cfx_at at, cfx_module *m, cfx_vars inputs);
#define cfx_call(s, m, ...) cfx_call_at(CFX_HERE(s), m, CFX_VARS(__VA_ARGS__))
/* Calls a child of `m`: cfx_call_child(s, self, "fc1", x). If there is no child at that path, the
 * scope fails with a message that names the path; cfx_call of a missing child could not name it. */
CFX_API cfx_var cfx_call_child_at(cfx_at at, const cfx_module *m, const char *path,
                                  cfx_vars inputs);
#define cfx_call_child(s, m, path, ...)                                                            \
    cfx_call_child_at(CFX_HERE(s), m, path, CFX_VARS(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
