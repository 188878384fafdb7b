/* codegen.h - a graph as source code, and as a picture.
 *
 * The Python generator writes the function that torch.fx writes for the same graph, byte for byte;
 * what torch.fx cannot express (regions) becomes `if`, `while` and `for`. It reads the graph and
 * never changes it. Time and memory are linear in the graph.
 *
 * Control flow, and what is different from torch.fx on purpose, is described in docs/codegen.md.
 */
#ifndef CFX_CODEGEN_H
#define CFX_CODEGEN_H

#include <cfx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One run of the generator. Exists while cfx_codegen_python runs: only its callbacks see it. */
typedef struct cfx_pycode cfx_pycode;

/* A stretch of text, not terminated. */
typedef struct cfx_pycode_text {
    const char *data;
    size_t size;
} cfx_pycode_text;

/* ---- options ------------------------------------------------------------------------------- */

/* How to generate. All zero is torch.fx's default. Every callback is optional; it gets `ctx`, and
 * a status that is not CFX_OK stops the generator, which hands it on. Text goes to `out`, without
 * indentation; "writes nothing" selects the default. Callbacks may not edit the graph. */
typedef struct cfx_pycode_options {
    const char *root;      /* what module paths start with; NULL: "self" */
    const char *function;  /* the function's name; NULL: "forward" */
    bool expanded_def;     /* one parameter on each line */
    bool record_func;      /* enter and leave a profiler range around each call */
    bool colored;          /* terminal colours for literals and for what is cleared */
    void *ctx;

    /* Called first. Globals registered here come before all others and have the first choice of
     * names. */
    cfx_status (*begin)(void *ctx, cfx_pycode *gen, cfx_error *err);

    /* The expression that names a host object: a function that is called (asked once), the type of
     * a named tuple, a type without a `type` callback. Operators (operator.add, ...) are not asked
     * for. Default: by its qualified name; torch's as it is, others as the global pkg_mod_fn. */
    cfx_status (*target)(void *ctx, cfx_pycode *gen, void *object, cfx_sink out, cfx_error *err);

    /* The expression for a host object among the arguments. Default: its repr. */
    cfx_status (*value)(void *ctx, cfx_pycode *gen, void *object, cfx_sink out, cfx_error *err);

    /* The expression for a node's type. Default: a host object as in `target`, else the value. */
    cfx_status (*type)(void *ctx, cfx_pycode *gen, cfx_value type, cfx_sink out, cfx_error *err);

    /* What follows a node's name where it is assigned, or stands in the signature (`: "f32[2]"`).
     * Asked for every node but output. Default: ` : ` and the type, if it has one. */
    cfx_status (*annotation)(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err);

    /* Lines that go before a node's statement, each with its newline. Asked for every node in
     * order, but not inside regions. Default: none. */
    cfx_status (*comment)(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err);

    /* A remark for a parameter: with expanded_def, "  # " and the remark follow it. Asked for
     * placeholders, with expanded_def only. Default: none. */
    cfx_status (*remark)(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err);

    /* Whether a call_function node was wrapped (cfx.wrap), so that the source must begin by
     * registering its function again (`cfx._symbolic_trace.wrap("f")`): 1, 0, or -1 failed. */
    int (*is_wrapped)(void *ctx, cfx_node *n);

    /* The statement for an output node. Default: `return ` and its value. */
    cfx_status (*output)(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err);

    /* The function's head, up to and with the colon, and what else is to stand before the body.
     * `params` are the placeholders ("x : int = 3"); `returns` is "" or " -> " and a type. Called
     * once, after the body. Default: cfx_pycode_signature. */
    cfx_status (*signature)(void *ctx, cfx_pycode *gen, const cfx_pycode_text *params, size_t n,
                            cfx_pycode_text returns, cfx_sink out, cfx_error *err);

    /* Rewrites the body. It is given as torch.fx gives it to on_generate_code's transformers: in
     * pieces that are joined without a separator, with a piece "# COUNTER: i\n" before the
     * statement of node i. Writes the new body, joined; counter lines are removed again. */
    cfx_status (*transform)(void *ctx, cfx_pycode *gen, const cfx_pycode_text *pieces, size_t n,
                            cfx_sink out, cfx_error *err);
} cfx_pycode_options;

/* ---- for callbacks ------------------------------------------------------------------------- */

/* Registers `object` as a global of the generated code and sets *name to the name that stands for
 * it: the one it already has, or one made of `wish` (`size` bytes; see cfx_namespace_create), free
 * of all other names of the function. The name is borrowed until the result is freed. `object` is
 * not retained: the host keeps it until it has read the result. */
CFX_API cfx_status cfx_pycode_global(cfx_pycode *gen, void *object, const char *wish, size_t size,
                                     bool allow_reserved, const char **name, cfx_error *err);

/* Writes the expression for a value, as it would stand among the arguments of a call. */
CFX_API cfx_status cfx_pycode_value(cfx_pycode *gen, cfx_value v, cfx_sink out, cfx_error *err);

/* The name that a node has in the generated code; borrowed, valid for this run. */
CFX_API const char *cfx_pycode_node_name(cfx_pycode *gen, const cfx_node *n, size_t *size);

/* The default head: `def function(self, x, y) -> T:`. `self` is put first unless it is there
 * already. `expanded` puts each parameter on its own line, the comma before its comment. */
CFX_API cfx_status cfx_pycode_signature(const char *function, const cfx_pycode_text *params,
                                        size_t n, cfx_pycode_text returns, bool expanded,
                                        cfx_sink out, cfx_error *err);

/* ---- result -------------------------------------------------------------------------------- */

/* A global that the source needs. */
typedef struct cfx_pycode_name {
    const char *name;       /* terminated */
    void *object;           /* the host's, borrowed; NULL if only its qualified name is known */
    const char *qualified;  /* "pkg.mod.fn"; NULL for an object that a callback registered */
} cfx_pycode_name;

/* The names that torch.fx always puts into the globals, and that need no entry there. */
typedef enum cfx_pycode_builtin {
    CFX_PYCODE_INF = 1,
    CFX_PYCODE_NAN = 2,
    CFX_PYCODE_NONETYPE = 4,
    CFX_PYCODE_TORCH = 8,
    CFX_PYCODE_DEVICE = 16
} cfx_pycode_builtin;

#define CFX_PYCODE_NO_NODE UINT32_MAX

typedef struct cfx_pycode_result {
    cfx_buffer source;
    const cfx_pycode_name *globals;  /* in the order of their first use */
    size_t n_globals;
    unsigned builtins;               /* bits of cfx_pycode_builtin that the source uses */
    const uint32_t *line_nodes;      /* torch.fx's _lineno_map: line first_line + i is of this */
    size_t n_lines;                  /*   node, by its number in the graph, or NO_NODE */
    uint32_t first_line;
    uint32_t prologue_start;         /* torch.fx's _prologue_start: lines up to the head's first */
    void *memory;                    /* what the pointers above point into */
} cfx_pycode_result;

/* Generates the function for `g`. `options` may be NULL. Fills *result, which needs no preparation;
 * the caller frees it with cfx_pycode_free. If it fails, *result is empty and need not be freed:
 * CFX_E_INDEX for a call with too few arguments, CFX_E_GRAPH for a region that does not fit its
 * operator, CFX_E_KEY for a function without a name, NOMEM, or what a callback returned. */
CFX_API cfx_status cfx_codegen_python(cfx_graph *g, const cfx_pycode_options *options,
                                      cfx_pycode_result *result, cfx_error *err);
CFX_API void cfx_pycode_free(cfx_pycode_result *result);  /* leaves it empty */

/* Writes a complete Python file: imports, the functions it calls, and the graph as the method
 * `forward` of the class `class_name` (a torch.nn.Module), or, if that is NULL, as a plain function
 * `forward`; that one has the parameter `self` only if the graph uses attributes or sub-modules.
 * Functions are imported by their qualified names. */
CFX_API cfx_status cfx_codegen_python_file(cfx_graph *g, const char *class_name, cfx_sink out,
                                           cfx_error *err);

/* Likewise a module that is complete without its weights: the class's __init__ makes the modules
 * that the graph calls, with the arguments that the table of classes (nn.h) finds in `modules`, and
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
/* One node of it, without a newline. */
CFX_API cfx_status cfx_codegen_node_json(cfx_node *n, cfx_sink out, cfx_error *err);
/* `text` as a string of JSON, in quotes; what is no UTF-8 in it becomes U+FFFD. */
CFX_API cfx_status cfx_json_write_string(const char *text, size_t size, cfx_sink out);

#ifdef __cplusplus
}
#endif
#endif
