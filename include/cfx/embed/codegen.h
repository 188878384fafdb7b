/* For language bindings and back ends; may change between versions.
 *
 * embed/codegen.h - the Python generator with callbacks; JSON of a node and of a string.
 *
 * cfx_codegen_python writes the function that torch.fx writes for the same graph, byte for byte.
 * Regions, which torch.fx cannot express, become `if`, `while` and `for`.
 */
#ifndef CFX_EMBED_CODEGEN_H
#define CFX_EMBED_CODEGEN_H

#include <cfx/codegen.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One run of the generator. Only valid in callbacks, while cfx_codegen_python runs. */
typedef struct cfx_pycode cfx_pycode;

/* A piece of text, not NUL-terminated. */
typedef struct cfx_pycode_text {
    const char *data;
    size_t size;
} cfx_pycode_text;

/* ---- options ------------------------------------------------------------------------------- */

/* How to generate. All zero is torch.fx's default. Every callback is optional and receives `ctx`. A
 * status other than CFX_OK stops the generator, which returns it. Callbacks write text to `out`,
 * without indentation; writing nothing selects the default. Callbacks must not edit the graph. */
typedef struct cfx_pycode_options {
    const char *root;      /* the prefix of module paths; NULL: "self" */
    const char *function;  /* the function's name; NULL: "forward" */
    bool expanded_def;     /* one parameter on each line */
    bool record_func;      /* enter and leave a profiler range around each call */
    bool colored;          /* terminal colours for literals and for cleared values */
    void *ctx;

    /* Called first. Globals registered here come before all others and get first choice of
     * names. */
    cfx_status (*begin)(void *ctx, cfx_pycode *gen, cfx_error *err);

    /* Writes the expression for a host object: a function that is called (asked once), the type of
     * a named tuple, or a type if there is no `type` callback. Not called for operators
     * (operator.add, ...). Default: its qualified name, as it is for torch, otherwise as the global
     * pkg_mod_fn. */
    cfx_status (*target)(void *ctx, cfx_pycode *gen, void *object, cfx_sink out, cfx_error *err);

    /* Writes the expression for a host object among the arguments. Default: its repr. */
    cfx_status (*value)(void *ctx, cfx_pycode *gen, void *object, cfx_sink out, cfx_error *err);

    /* Writes the expression for a node's type. Default: a host object as in `target`, otherwise the
     * value. */
    cfx_status (*type)(void *ctx, cfx_pycode *gen, cfx_value type, cfx_sink out, cfx_error *err);

    /* Writes the annotation after a node's name, where it is assigned or in the signature (`:
     * "f32[2]"`). Called for every node except the output. Default: ` : ` and the type, if there is
     * one. */
    cfx_status (*annotation)(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err);

    /* Writes lines before a node's statement, each with its newline. Called for every node in
     * order, also of regions that are written as statements. Default: none. */
    cfx_status (*comment)(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err);

    /* Writes a comment for a parameter; it follows the parameter after "  # ". Called for
     * placeholders, only with expanded_def. Default: none. */
    cfx_status (*remark)(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err);

    /* Whether the function of a call_function node was wrapped (cfx.wrap), so that the source must
     * register it again at the top (`cfx._symbolic_trace.wrap("f")`): 1, 0, or -1 on failure. */
    int (*is_wrapped)(void *ctx, cfx_node *n);

    /* Writes the statement for an output node. Default: `return ` and its value. */
    cfx_status (*output)(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err);

    /* Writes the function's header up to and including the colon, and anything else before the
     * body. `params` are the placeholders ("x : int = 3"); `returns` is "" or " -> " and a type.
     * Called once, after the body. Default: cfx_pycode_signature. */
    cfx_status (*signature)(void *ctx, cfx_pycode *gen, const cfx_pycode_text *params, size_t n,
                            cfx_pycode_text returns, cfx_sink out, cfx_error *err);

    /* Rewrites the body. It receives what torch.fx passes to the transformers of on_generate_code:
     * pieces that are joined without a separator, with a piece "# COUNTER: i\n" before the
     * statement of node i. Writes the new body, joined; counter lines are removed afterwards. */
    cfx_status (*transform)(void *ctx, cfx_pycode *gen, const cfx_pycode_text *pieces, size_t n,
                            cfx_sink out, cfx_error *err);
} cfx_pycode_options;

/* ---- for callbacks ------------------------------------------------------------------------- */

/* Registers `object` as a global of the generated code and sets *name to its name: the one it
 * already has, or one derived from `wish` (`size` bytes; see cfx_namespace_create) that differs
 * from all other names of the function. The name is borrowed until the result is freed. `object` is
 * not retained: the host must keep it alive until it has read the result. */
CFX_API cfx_status cfx_pycode_global(cfx_pycode *gen, void *object, const char *wish, size_t size,
                                     bool allow_reserved, const char **name, cfx_error *err);

/* Writes the expression for a value, as it appears among the arguments of a call. */
CFX_API cfx_status cfx_pycode_value(cfx_pycode *gen, cfx_value v, cfx_sink out, cfx_error *err);

/* The name of a node in the generated code: borrowed, valid for this run. */
CFX_API const char *cfx_pycode_node_name(cfx_pycode *gen, const cfx_node *n, size_t *size);

/* Writes the default header: `def function(self, x, y) -> T:`. `self` is added first unless it is
 * already there. `expanded` puts each parameter on its own line, with the comma before its
 * comment. */
CFX_API cfx_status cfx_pycode_signature(const char *function, const cfx_pycode_text *params,
                                        size_t n, cfx_pycode_text returns, bool expanded,
                                        cfx_sink out, cfx_error *err);

/* ---- result -------------------------------------------------------------------------------- */

/* A global that the source needs. */
typedef struct cfx_pycode_name {
    const char *name;       /* NUL-terminated */
    void *object;           /* the host's, borrowed; NULL if only its qualified name is known */
    const char *qualified;  /* "pkg.mod.fn"; NULL for an object that a callback registered */
} cfx_pycode_name;

/* Names that torch.fx always adds to the globals; they need no entry in `globals`. */
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
    const uint32_t *line_nodes;      /* torch.fx's _lineno_map: line first_line + i belongs to */
    size_t n_lines;                  /*   the node with this index in the graph, or NO_NODE */
    uint32_t first_line;
    uint32_t prologue_start;         /* torch.fx's _prologue_start: lines up to the header */
    void *memory;                    /* owns what the pointers above point to */
} cfx_pycode_result;

/* Generates the function for `g`. `options` may be NULL. Fills *result, which needs no
 * initialisation; the caller frees it with cfx_pycode_free. On failure *result is empty and need
 * not be freed: CFX_E_INDEX for a call with too few arguments, CFX_E_GRAPH for a region that does
 * not fit its operator, CFX_E_KEY for a function without a name, CFX_E_NOMEM, or the status of a
 * callback. */
CFX_API cfx_status cfx_codegen_python(cfx_graph *g, const cfx_pycode_options *options,
                                      cfx_pycode_result *result, cfx_error *err);
CFX_API void cfx_pycode_free(cfx_pycode_result *result);  /* leaves it empty */

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Writes one node as cfx_codegen_json does, without a newline. */
CFX_API cfx_status cfx_codegen_node_json(cfx_node *n, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
