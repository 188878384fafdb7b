/* For language bindings and back ends; may change between versions.
 *
 * embed/codegen.h - the Python generator with callbacks; JSON of a node and of a string.
 *
 * cfx_codegen_python writes the function that torch.fx writes for the same graph, byte for byte.
 * What torch.fx cannot express (regions) becomes `if`, `while` and `for`.
 */
#ifndef CFX_EMBED_CODEGEN_H
#define CFX_EMBED_CODEGEN_H

#include <cfx/codegen.h>

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

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Writes one node as cfx_codegen_json does, without a newline. */
CFX_API cfx_status cfx_codegen_node_json(cfx_node *n, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
