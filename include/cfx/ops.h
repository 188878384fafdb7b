/* ops.h - the operator table: what a call means, whatever it is spelled.
 *
 * torch.relu, torch.nn.functional.relu, x.relu(), torch.nn.ReLU and torch.ops.aten.relu.default are
 * one operator, `relu`, and one row of ops.def. Passes ask "which operator is this?", never "which
 * string is this?":
 *
 *     if (cfx_node_operator(n) == CFX_OPID_relu) ...
 *
 * A row has the operator's parameters and results, in PyTorch's schema language, with what is
 * written to and what shares memory with what; every spelling; and flags for what a schema cannot
 * say. Effects follow from it: see effect.h.
 *
 * What a spelling does not tell:
 *   - Parameters have aten's names. Functions of torch call the first one `input`, not `self`.
 *   - Functions of torch.nn.functional may take their arguments in another order than the row, and
 *     modules keep most of them as attributes. cfx_node_operand finds an argument by its parameter.
 *   - A function whose meaning depends on its arguments belongs to its commonest form: torch.max is
 *     `max`, also in torch.max(x, 1), which means max_dim. Overloads ("aten.max.dim") are exact.
 *   - On numbers, tuples and lists the functions of `operator` compute what Python does: `add` of
 *     two tuples joins them, and iadd of two numbers writes to nothing.
 *
 * The table is constant data: nothing here allocates or fails.
 */
#ifndef CFX_OPS_H
#define CFX_OPS_H

#include <cfx/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cfx_operator {
    CFX_OPID_NONE,  /* not in the table */
#define CFX_OPERATOR(id, schema, spellings, flags, rule) CFX_OPID_##id,
#include <cfx/ops.def>
#undef CFX_OPERATOR
    CFX_OPERATOR_COUNT
} cfx_operator;

/* What a schema cannot say. */
typedef enum cfx_operator_flag {
    CFX_OPERATOR_RANDOM = 1,       /* draws random numbers. One with a parameter `train` or
                                      `training` only if that is true, one with `p`, `dropout_p` or
                                      `dropout` only if that is not 0 */
    CFX_OPERATOR_COMMUTES = 2,     /* the first two operands can be swapped (numbers and tensors),
                                      if all other parameters have their defaults */
    CFX_OPERATOR_STATE = 4,        /* may update statistics among its arguments (batch_norm) */
    CFX_OPERATOR_CHECKS = 8,       /* fails or reports instead of returning: keep it */
    CFX_OPERATOR_ELEMENTWISE = 16, /* each element of the result depends on those of the (broadcast)
                                      operands at the same place only */
    CFX_OPERATOR_GLOBAL = 32       /* changes how later calls run, or calls a function that it is
                                      given: nothing is known of its effects */
} cfx_operator_flag;

/* The name of a flag, by its bit: "random" for 0; NULL past the last. */
CFX_API const char *cfx_operator_flag_name(unsigned bit);

/* ---- rows ---------------------------------------------------------------------------------- */

/* The row's id: "relu", "add_", "max_dim"; NULL for NONE and numbers outside the table. */
CFX_API const char *cfx_operator_name(cfx_operator op);
/* Without the name: "(Tensor self) -> Tensor"; NULL for NONE. */
CFX_API const char *cfx_operator_schema(cfx_operator op);
CFX_API unsigned cfx_operator_flags(cfx_operator op);   /* cfx_operator_flag or'ed; 0 for NONE */
CFX_API size_t cfx_operator_regions(cfx_operator op);   /* how many regions (Graph) it takes */

/* `add_` for `add`, and back: the operator with the same parameters that writes its result to the
 * first of them, or does not. NONE if there is none, or if `op` is one already. */
CFX_API cfx_operator cfx_operator_in_place(cfx_operator op);
CFX_API cfx_operator cfx_operator_functional(cfx_operator op);

/* ---- spellings ----------------------------------------------------------------------------- */

/* What a spelling names; it is the part before its last name. */
typedef enum cfx_spelling {
    CFX_SPELLING_FUNCTION,  /* "torch.relu", "operator.add", "builtins.len", "cfx.cond" */
    CFX_SPELLING_METHOD,    /* "torch.Tensor.relu" */
    CFX_SPELLING_MODULE,    /* "torch.nn.ReLU" */
    CFX_SPELLING_OVERLOAD,  /* "torch.ops.aten.relu.default" */
    CFX_SPELLING_ONNX       /* "onnx:Relu" */
} cfx_spelling;

enum { CFX_SPELLING_SIZE = 96 };  /* every full spelling fits, terminated */

/* Writes the i-th spelling of `op` in full ("torch.nn.functional.relu") to `out` and returns it, or
 * NULL if there are not so many. `kind` (may be NULL) receives what it names. */
CFX_API const char *cfx_operator_spelling(cfx_operator op, size_t i, char out[CFX_SPELLING_SIZE],
                                          cfx_spelling *kind);
/* As ops.def writes it: "F.relu". */
CFX_API const char *cfx_operator_short_spelling(cfx_operator op, size_t i,
                                                char out[CFX_SPELLING_SIZE]);

/* The operator of a name: any spelling, in full or short; an overload packet, which is what its
 * default overload is ("torch.ops.aten.relu"); the names under which Python's introspection knows
 * the same functions ("torch._C._nn.gelu", "_operator.add"); the row itself ("cfx.ops.max_dim"); or
 * a row's id. NONE if it is none of these. */
CFX_API cfx_operator cfx_operator_parse(const char *name);
/* Likewise, but no ids: "relu" is then nothing. `size` in bytes. */
CFX_API cfx_operator cfx_operator_find(const char *name, size_t size);
/* Of a method's name ("relu", "add_", "__add__") and of a class ("torch.nn.ReLU"). */
CFX_API cfx_operator cfx_operator_of_method(const char *name, size_t size);
CFX_API cfx_operator cfx_operator_of_class(const char *name);

/* ---- parameters and results ---------------------------------------------------------------- */

/* A piece of the schema: borrowed, not terminated. `text` is NULL where there is nothing. */
typedef struct cfx_schema_text {
    const char *text;
    size_t size;
} cfx_schema_text;

typedef struct cfx_schema_param {
    cfx_schema_text name;    /* "alpha"; of a result mostly nothing */
    char type[20];           /* "Tensor", "int[2]?", without the alias annotation; terminated */
    cfx_schema_text value;   /* its default as the schema writes it: "1", "[0, 0]"; or nothing */
    bool keyword_only;
    bool variadic;           /* "*Any args" */
    bool writes;             /* (a!): it is changed */
    char alias;              /* 'a': shares memory with what has the same letter; 0: with nothing */
} cfx_schema_param;

/* 0 for NONE. */
CFX_API size_t cfx_operator_num_params(cfx_operator op);
CFX_API size_t cfx_operator_num_results(cfx_operator op);  /* 0 for "()"; a list counts as one */
/* False, and *param untouched, if there are not so many. */
CFX_API bool cfx_operator_param(cfx_operator op, size_t i, cfx_schema_param *param);
CFX_API bool cfx_operator_result(cfx_operator op, size_t i, cfx_schema_param *result);
/* The index of the parameter with this name; SIZE_MAX if there is none. */
CFX_API size_t cfx_operator_find_param(cfx_operator op, const char *name);

/* What operators.h calls the function of a row ("cfx_relu", "cfx_var_row"; NULL for NONE) and a
 * parameter ("bool_" for "bool"); written to `out`, which is returned. */
CFX_API const char *cfx_operator_c_name(cfx_operator op, char out[CFX_SPELLING_SIZE]);
CFX_API const char *cfx_param_c_name(const cfx_schema_param *param, char out[CFX_SPELLING_SIZE]);
/* Whether C or C++ has another use for the word: it is given a '_' there. */
CFX_API bool cfx_c_name_is_taken(const char *name, size_t size);

/* ---- nodes --------------------------------------------------------------------------------- */

/* The operator that a call_function or call_method calls; NONE for other opcodes and for targets
 * outside the table. A host is asked for a function's name once; the answer is kept. (For
 * call_module see cfx_node_operator_of in module.h.) */
CFX_API cfx_operator cfx_node_operator(const cfx_node *n);

/* The argument that a call_function or call_method passes for the parameter `name` of its operator,
 * by position or keyword, in whichever order its spelling takes them; INVALID if it passes none,
 * has no such parameter, or passes a list as loose numbers (x.view(2, 3)). `name` may also be one
 * that only the spelling has: `inplace`. */
CFX_API cfx_value cfx_node_operand(const cfx_node *n, const char *name);

#ifdef __cplusplus
}
#endif
#endif
