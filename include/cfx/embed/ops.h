/* For language bindings and back ends; may change between versions.
 *
 * embed/ops.h - the operator table in full: parameters, results, spellings.
 */
#ifndef CFX_EMBED_OPS_H
#define CFX_EMBED_OPS_H

#include <cfx/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rows ---------------------------------------------------------------------------------- */

/* The name of a flag, by its bit: "random" for 0; NULL past the last. */
CFX_API const char *cfx_operator_flag_name(unsigned bit);
/* The number of regions (Graph) that an operator takes. */
CFX_API size_t cfx_operator_regions(cfx_operator op);

/* `add_` for `add`, and the reverse: the operator with the same parameters that writes its result
 * to the first of them, or that does not. NONE if there is no such operator, or if `op` is already
 * it. */
CFX_API cfx_operator cfx_operator_in_place(cfx_operator op);
CFX_API cfx_operator cfx_operator_functional(cfx_operator op);

/* ---- spellings ----------------------------------------------------------------------------- */

/* What a spelling names. */
typedef enum cfx_spelling {
    CFX_SPELLING_FUNCTION,  /* "torch.relu", "operator.add", "builtins.len", "cfx.cond" */
    CFX_SPELLING_METHOD,    /* "torch.Tensor.relu" */
    CFX_SPELLING_MODULE,    /* "torch.nn.ReLU" */
    CFX_SPELLING_OVERLOAD,  /* "torch.ops.aten.relu.default" */
    CFX_SPELLING_ONNX       /* "onnx:Relu" */
} cfx_spelling;

enum { CFX_SPELLING_SIZE = 96 };  /* every full spelling fits, terminated */

/* Writes the i-th spelling of `op` in full ("torch.nn.functional.relu") to `out` and returns it;
 * NULL past the last. `kind` (may be NULL) receives what it names. */
CFX_API const char *cfx_operator_spelling(cfx_operator op, size_t i, char out[CFX_SPELLING_SIZE],
                                          cfx_spelling *kind);
/* As ops.def writes it: "F.relu". */
CFX_API const char *cfx_operator_short_spelling(cfx_operator op, size_t i,
                                                char out[CFX_SPELLING_SIZE]);
/* Like cfx_operator_parse, but does not accept ids: "relu" alone is NONE. `size` is in bytes. */
CFX_API cfx_operator cfx_operator_find(const char *name, size_t size);

/* ---- parameters and results ---------------------------------------------------------------- */

/* A part of the schema: borrowed, not NUL-terminated. `text` is NULL if the part is absent. */
typedef struct cfx_schema_text {
    const char *text;
    size_t size;
} cfx_schema_text;

typedef struct cfx_schema_param {
    cfx_schema_text name;    /* "alpha"; most results have none */
    char type[20];           /* "Tensor", "int[2]?"; no alias annotation; NUL-terminated */
    cfx_schema_text value;   /* the default in schema syntax: "1", "[0, 0]"; or absent */
    bool keyword_only;
    bool variadic;           /* "*Any args": a call of the row itself may pass them as one list,
                                and a lowered call does */
    bool writes;             /* (a!): it is written to */
    char alias;              /* 'a': may alias whatever has the same letter; 0: nothing */
} cfx_schema_param;

/* 0 for NONE. A list counts as one result; "()" means no result. */
CFX_API size_t cfx_operator_num_params(cfx_operator op);
CFX_API size_t cfx_operator_num_results(cfx_operator op);
/* Return false, and leave *param or *result unchanged, past the last. */
CFX_API bool cfx_operator_param(cfx_operator op, size_t i, cfx_schema_param *param);
CFX_API bool cfx_operator_result(cfx_operator op, size_t i, cfx_schema_param *result);
/* The index of the parameter of this name; SIZE_MAX if there is none. */
CFX_API size_t cfx_operator_find_param(cfx_operator op, const char *name);

#ifdef __cplusplus
}
#endif
#endif
