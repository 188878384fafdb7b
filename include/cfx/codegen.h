/* codegen.h - a graph as source code in C or Python, as a picture, and as JSON.
 *
 * The generators read the graph and never change it; time and memory are linear in its size. All of
 * them write to a sink, and fail if it does. docs/codegen.md describes the control flow they write,
 * and where the Python differs from torch.fx's on purpose.
 */
#ifndef CFX_CODEGEN_H
#define CFX_CODEGEN_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- all generators ------------------------------------------------------------------------ */

/* For any generator. All zero is its default; each uses what its row's flags name. */
typedef struct cfx_generate_options {
    const cfx_module_tree *modules;  /* of the graph; NULL: generated code only names modules */
    const char *class_name;          /* or NULL */
    size_t width;                    /* of a table, in columns; 0 never cuts */
    bool module_stacks;              /* show which module calls a node belongs to */
} cfx_generate_options;

/* Writes `g`; `options` is not NULL. Fails as the generator and the sink do. */
typedef cfx_status cfx_generate_fn(cfx_graph *g, const cfx_generate_options *options, cfx_sink out,
                                   cfx_error *err);

enum {
    CFX_GENERATOR_LINTED = 1,    /* refuses a graph that cfx_graph_lint complains about */
    CFX_GENERATOR_MODULES = 2,   /* uses `modules` */
    CFX_GENERATOR_COLOURED = 4,  /* writes lines with opcodes, which a terminal can colour */
    CFX_GENERATOR_CLASS = 8,     /* uses `class_name` */
    CFX_GENERATOR_WIDTH = 16,    /* uses `width` */
    CFX_GENERATOR_SCOPES = 32    /* uses `module_stacks` */
};

/* A row of the table of generators. */
typedef struct cfx_generator {
    const char *name;       /* "python" */
    const char *extension;  /* of its files: ".py" */
    const char *summary;
    unsigned flags;         /* CFX_GENERATOR_... */
    cfx_generate_fn *run;
} cfx_generator;

/* The table, in alphabetical order; NULL past the end. */
CFX_API const cfx_generator *cfx_generator_get(size_t i);
/* NULL if there is none of that name. */
CFX_API const cfx_generator *cfx_generator_find(const char *name);
/* Runs a generator; `options` may be NULL. */
CFX_API cfx_status cfx_generate(const cfx_generator *generator, cfx_graph *g,
                                const cfx_generate_options *options, cfx_sink out, cfx_error *err);

/* ---- Python -------------------------------------------------------------------------------- */

/* Writes a complete Python file: imports, the functions it calls, and the graph as the method
 * `forward` of the class `class_name` (a torch.nn.Module), or, if that is NULL, as a plain function
 * `forward`; that one has the parameter `self` only if the graph uses attributes or sub-modules.
 * Functions are imported by their qualified names. */
CFX_API cfx_status cfx_codegen_python_file(cfx_graph *g, const char *class_name, cfx_sink out,
                                           cfx_error *err);

/* Likewise a module that is complete without its weights: the class's __init__ makes the modules
 * that the graph calls, with the constructor arguments that `modules` shows, and
 * registers the parameters and buffers that it reads. Load the weights by name (load_state_dict).
 * CFX_E_TYPE if a class is not in the table: all are named. */
CFX_API cfx_status cfx_codegen_python_module(cfx_graph *g, const cfx_module_tree *modules,
                                             const char *class_name, cfx_sink out, cfx_error *err);

/* ---- C ------------------------------------------------------------------------------------- */

/* Writes a C file that makes and computes the same (capture.h): a function `forward` with one
 * statement for each node, functions for regions, and the function
 *
 *     cfx_module *cfx_model(cfx_scope *s);
 *
 * which makes the module, with the children that the graph calls, and with its parameters and
 * buffers for whoever loads the weights by name. `modules` may be NULL for a graph that calls none;
 * then what it reads is made when it is loaded. `class_name` NULL: "Model". The file needs
 * <cfx/cfx.h> only, and compiles without warnings. The user's lines stand as comments where they
 * change. All that cannot be written (host objects, functions without a row) is named at once:
 * CFX_E_TYPE. */
CFX_API cfx_status cfx_codegen_c(cfx_graph *g, const cfx_module_tree *modules,
                                 const char *class_name, cfx_sink out, cfx_error *err);

/* ---- pictures ------------------------------------------------------------------------------ */

/* What a picture shows. All zero is a record for each node and an edge for each use. */
typedef struct cfx_dot_options {
    const char *name;     /* of the digraph; NULL: "graph" */
    const char *shape;    /* of the nodes; NULL: "record", which has a field for each part */
    bool module_stacks;   /* a box around the nodes of each module call */
    bool locations;       /* the user's file and line in each node */
    bool hide_get_attr;   /* neither get_attr nodes nor their edges */
    bool literals_only;   /* nodes among the arguments are left to the edges */
    void *ctx;

    /* Lines to stand in the node, such as its shape, without a newline at the end. Anything may
     * be written, it is escaped. Default: none. A status that is not CFX_OK stops the writer. */
    cfx_status (*describe)(void *ctx, cfx_node *n, cfx_sink out, cfx_error *err);

    /* A colour that Graphviz knows, borrowed. Default, and for NULL: by opcode and target. */
    const char *(*colour)(void *ctx, const cfx_node *n);
} cfx_dot_options;

/* Writes `g` in the language of Graphviz (`dot -Tsvg`): a box for each node, coloured by opcode, or
 * by target for functions and methods; regions are boxes of their own, with a dashed edge from
 * their output to the node that runs them. Long arguments are cut. `options` may be NULL. Time and
 * memory are linear in the graph. Fails with NOMEM, or as the host, `describe` or the sink do. */
CFX_API cfx_status cfx_codegen_dot(cfx_graph *g, const cfx_dot_options *options, cfx_sink out,
                                   cfx_error *err);

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Writes `g` as JSON, all of it: {"nodes": [...]}, one line for each node,
 *
 *     {"name": "add", "op": "call_function", "target": "torch.add",
 *      "args": [{"node": "x"}, 1], "kwargs": {"alpha": 2}, "type": {"host": "torch.Tensor"},
 *      "users": ["relu"], "file": "m.py", "line": 3, "scopes": [{"path": "fc", "type": "nn.F"}]}
 *
 * where type, file, line and scopes are left out if it has none. None, bools, numbers, strings and
 * lists are what they are in JSON; any other value is an object with one key, its kind: {"node":
 * "x"}, {"tuple": [1, 2]}, {"dict": [[key, value], ...]}, {"slice": [null, 2, null]}, {"dtype":
 * "float32"}, {"float": "inf"}, {"bytes": "hexadecimal"}, {"host": "torch.Tensor"}, {"graph":
 * {"nodes": [...]}}. Fails with NOMEM, as the sink does, or with CFX_E_VALUE for a host object
 * without a qualified name. */
CFX_API cfx_status cfx_codegen_json(cfx_graph *g, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
