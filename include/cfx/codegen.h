/* codegen.h - writes a graph as C or Python source, as a Graphviz picture, or as JSON.
 *
 * Generators read the graph and never change it. Time and memory are linear in its size. They write
 * to a sink, and fail if the sink fails. docs/codegen.md describes the control flow they write, and
 * where the Python differs from torch.fx's on purpose.
 */
#ifndef CFX_CODEGEN_H
#define CFX_CODEGEN_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- all generators ------------------------------------------------------------------------ */

/* Options for all generators. All zero is the default; each generator uses the fields that its
 * flags name. */
typedef struct cfx_generate_options {
    const cfx_module_tree *modules;  /* NULL: the code only names what the graph calls and reads */
    const char *class_name;          /* or NULL */
    size_t width;                    /* of a table, in columns; 0: unlimited */
    bool module_stacks;              /* show which module calls a node belongs to */
} cfx_generate_options;

/* Writes `g`; `options` is never NULL. Fails with its own errors and those of the sink. */
typedef cfx_status cfx_generate_fn(cfx_graph *g, const cfx_generate_options *options, cfx_sink out,
                                   cfx_error *err);

enum {
    CFX_GENERATOR_LINTED = 1,    /* rejects a graph that fails cfx_graph_lint */
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
/* NULL if there is no generator of this name. */
CFX_API const cfx_generator *cfx_generator_find(const char *name);
/* Runs a generator; `options` may be NULL. */
CFX_API cfx_status cfx_generate(const cfx_generator *generator, cfx_graph *g,
                                const cfx_generate_options *options, cfx_sink out, cfx_error *err);

/* ---- Python -------------------------------------------------------------------------------- */

/* Writes a complete Python file: imports, the functions it calls, and the graph as the method
 * `forward` of the class `class_name` (a torch.nn.Module). If `class_name` is NULL, `forward` is a
 * plain function, and has the parameter `self` only if the graph uses attributes or sub-modules.
 * Functions are imported by their qualified names. */
CFX_API cfx_status cfx_codegen_python_file(cfx_graph *g, const char *class_name, cfx_sink out,
                                           cfx_error *err);

/* Writes a module that needs only its weights: the class's __init__ creates the modules that the
 * graph calls, with the constructor arguments that `modules` reports, and registers the parameters
 * and buffers that the graph reads. Load the weights by name (load_state_dict). CFX_E_TYPE if a
 * class is not in the table; the message names all of them. */
CFX_API cfx_status cfx_codegen_python_module(cfx_graph *g, const cfx_module_tree *modules,
                                             const char *class_name, cfx_sink out, cfx_error *err);

/* ---- C ------------------------------------------------------------------------------------- */

/* Writes a C file that builds and computes the same module (capture.h): a function `forward` with
 * one statement for each node, a function for each region, and the function
 *
 *     cfx_module *cfx_model(cfx_scope *s);
 *
 * which creates the module with the children that the graph calls, and with its parameters and
 * buffers; the caller loads the weights by name. `modules` may be NULL for a graph that calls no
 * modules: attributes that the graph reads are then created when the weights are loaded.
 * `class_name` NULL: "Model". The file includes only <cfx/cfx.h> and compiles without warnings. The
 * user's source lines appear as comments where they change. CFX_E_TYPE if something cannot be
 * written (host objects, functions that are not in the operator table); the message names all of
 * it. */
CFX_API cfx_status cfx_codegen_c(cfx_graph *g, const cfx_module_tree *modules,
                                 const char *class_name, cfx_sink out, cfx_error *err);

/* ---- pictures ------------------------------------------------------------------------------ */

/* What a picture shows. All zero: one record for each node and one edge for each use. */
typedef struct cfx_dot_options {
    const char *name;     /* of the digraph; NULL: "graph" */
    const char *shape;    /* of the nodes; NULL: "record", with a field for each part */
    bool module_stacks;   /* a box around the nodes of each module call */
    bool locations;       /* the user's file and line in each node */
    bool hide_get_attr;   /* leave out get_attr nodes and their edges */
    bool literals_only;   /* show only literal arguments; edges show the nodes */
    void *ctx;

    /* Writes extra lines for the node, such as its shape, without a trailing newline. Any text is
     * allowed; it is escaped. Default: none. A status other than CFX_OK stops the writer. */
    cfx_status (*describe)(void *ctx, cfx_node *n, cfx_sink out, cfx_error *err);

    /* Returns a Graphviz colour, borrowed. Without the callback, or if it returns NULL: by opcode
     * and target. */
    const char *(*colour)(void *ctx, const cfx_node *n);
} cfx_dot_options;

/* Writes `g` for Graphviz (`dot -Tsvg`): a box for each node, coloured by opcode, or by target for
 * functions and methods. A region has a box of its own, with a dashed edge from its output to the
 * node that runs it. Long arguments are truncated. `options` may be NULL. Time and memory are
 * linear in the graph. Fails with CFX_E_NOMEM, or if the host, `describe` or the sink fails. */
CFX_API cfx_status cfx_codegen_dot(cfx_graph *g, const cfx_dot_options *options, cfx_sink out,
                                   cfx_error *err);

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Writes all of `g` as JSON: {"nodes": [...]}, one line for each node,
 *
 *     {"name": "add", "op": "call_function", "target": "torch.add",
 *      "args": [{"node": "x"}, 1], "kwargs": {"alpha": 2}, "type": {"host": "torch.Tensor"},
 *      "users": ["relu"], "file": "m.py", "line": 3, "scopes": [{"path": "fc", "type": "nn.F"}]}
 *
 * where type, file, line and scopes are omitted if the node has none. None, bools, numbers, strings
 * and lists map to JSON directly; any other value is an object with one key, its kind: {"node":
 * "x"}, {"tuple": [1, 2]}, {"dict": [[key, value], ...]}, {"slice": [null, 2, null]}, {"dtype":
 * "float32"}, {"float": "inf"}, {"bytes": "hexadecimal"}, {"host": "torch.Tensor"}, {"graph":
 * {"nodes": [...]}}. Fails with CFX_E_NOMEM, if the sink fails, or with CFX_E_VALUE for a host
 * object without a qualified name. */
CFX_API cfx_status cfx_codegen_json(cfx_graph *g, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
