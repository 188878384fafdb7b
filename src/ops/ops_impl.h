/* ops_impl.h - what the files of src/ops share: rows, and where a spelling stands in its row. */
#ifndef CFXI_OPS_IMPL_H
#define CFXI_OPS_IMPL_H

#include "base/base_impl.h"

#include <cfx/embed/ops.h>
#include <cfx/nn.h>
#include <cfx/tree.h>

/* A name's place in the table. `spelling` points into the row, at its first character; NULL if the
 * name is the row's id. It ends with a blank, the end of the string, or at '(': then its own
 * parameters follow. */
typedef struct cfxi_op_name {
    cfx_operator op;
    const char *spelling;
} cfxi_op_name;

/* By any spelling or id, full or short; op is NONE if there is no such name. (op_table.c) */
cfxi_op_name cfxi_ops_op_lookup(const char *name, size_t size);
cfxi_op_name cfxi_ops_op_lookup_method(const char *name, size_t size);
/* A name as ops.def abbreviates it, whether it is in the table or not: "torch.nn.modules.container.
 * Sequential" is "nn.Sequential". Returns its length; 0 if it does not fit. (op_table.c) */
size_t cfxi_ops_shorten(const char *name, size_t size, char out[CFX_SPELLING_SIZE]);

/* Splits a list of the schema language at its commas: the next item from *cursor, without blanks
 * around it; an empty item at the end. (schema.c) */
cfx_schema_text cfxi_ops_schema_next(const char **cursor);
/* As cfx_operator_param, _result and _find_param, of a schema that need be in no row. */
bool cfxi_ops_schema_param(const char *schema, size_t i, cfx_schema_param *param);
bool cfxi_ops_schema_result(const char *schema, size_t i, cfx_schema_param *result);
size_t cfxi_ops_schema_find_param(const char *schema, const char *name, size_t size);
/* Whether a parameter is written to. */
bool cfxi_ops_schema_writes(const char *schema);
/* Whether the two above read it as it is meant: CFX_E_SYNTAX with what is wrong. Defaults are
 * looked at no further than where they end. (schema_check.c) */
cfx_status cfxi_ops_schema_check(const char *schema, cfx_error *err);

/* The parameter that an argument of a call goes to: by its place, or by its keyword if that is not
 * NULL. SIZE_MAX if it is none of the row's. (node_operator.c) */
size_t cfxi_ops_node_param_of(const cfx_node *n, size_t place, const char *keyword);

/* Whether the function of this name takes its arguments otherwise than the row.
 * (node_operator.c) */
bool cfxi_ops_spelling_has_params(const char *name);

/* A parameter as the spelling that a call uses has it. */
typedef struct cfxi_spelled_param {
    cfx_schema_text name;  /* as a keyword; "self" of a function of torch is `input` there */
    size_t param;          /* of the row; SIZE_MAX if it has none (`inplace`) */
    bool keyword_only;
    cfx_schema_text value;  /* what it is if it is not given; or nothing */
} cfxi_spelled_param;

/* The i-th parameter of the spelling that a call_function or call_method in the table uses; false
 * past the last. *own (may be NULL) tells whether the spelling has parameters of its own, whose
 * defaults need not be those of the row. (node_operator.c) */
bool cfxi_ops_node_spelled_param(const cfx_node *n, size_t i, cfxi_spelled_param *out, bool *own);
/* Likewise of a list that stands alone: "self,dim,keepdim"; NULL: the row's own.
 * (node_operator.c) */
bool cfxi_ops_listed_param(cfx_operator op, const char *list, size_t i, cfxi_spelled_param *out);
/* The list of a spelling in ops.def that has one, else NULL; and the spelling that a call uses. */
const char *cfxi_ops_spelling_list(const char *spelling);
const char *cfxi_ops_node_spelling(const cfx_node *n);

/* ---- what modules are asked (module_query.c) ----------------------------------------------- */

/* The public name of the class of the module at `path`, appended to `name`; nothing is if there is
 * no such module, or `modules` is NULL. */
cfx_status cfxi_ops_module_class(const cfx_module_tree *modules, const char *path, cfx_buffer *name,
                                 cfx_error *err);
/* What is at path.name (either may be ""), floating; INVALID if nothing is. */
cfx_status cfxi_ops_module_attr(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                                const char *name, cfx_value *v, cfx_error *err);
/* Whether the module that a call_module calls writes to its argument: nn.ReLU(inplace=True). */
cfx_status cfxi_ops_module_writes(const cfx_node *n, const cfx_module_tree *modules, bool *writes,
                                  cfx_error *err);

/* The attribute that an argument of a constructor becomes as it is; false if it becomes none.
 * (nn_args.c) */
bool cfxi_ops_nn_attribute(cfx_nn nn, const cfx_schema_param *param, char name[CFX_SPELLING_SIZE]);

static inline bool cfxi_ops_text_is(cfx_schema_text a, const char *text, size_t size)
{
    return a.size == size && memcmp(a.text, text, size) == 0;
}
static inline bool cfxi_ops_text_is_word(cfx_schema_text a, const char *word)
{
    return cfxi_ops_text_is(a, word, strlen(word));
}

/* The operator of a method's name ("relu", "add_", "__add__") and of a class ("torch.nn.ReLU");
 * NONE if it has none. (op_table.c) */
cfx_operator cfxi_ops_of_method(const char *name, size_t size);
cfx_operator cfxi_ops_of_class(const char *name);

/* What operators.h calls the function of a row ("cfx_relu", "cfx_var_row"; NULL for NONE) and a
 * parameter ("bool_" for "bool"); written to `out`, which is returned. (c_name.c) */
const char *cfxi_ops_c_name(cfx_operator op, char out[CFX_SPELLING_SIZE]);
const char *cfxi_ops_param_c_name(const cfx_schema_param *param, char out[CFX_SPELLING_SIZE]);
/* Whether the word means something else in C or C++, so that it gets a '_' there. */
bool cfxi_ops_c_name_is_taken(const char *name, size_t size);

/* ---- the classes of torch.nn (nn_table.c, nn_args.c) ---------------------------------------- */

cfx_nn cfxi_ops_nn_find(const char *name);      /* "torch.nn.Linear" or "Linear" */
const char *cfxi_ops_nn_name(cfx_nn nn);        /* "Linear"; NULL for NONE */
const char *cfxi_ops_nn_function(cfx_nn nn);    /* "linear", for cfx_nn_linear */
const char *cfxi_ops_nn_schema(cfx_nn nn);
bool cfxi_ops_nn_param(cfx_nn nn, size_t i, cfx_schema_param *param);  /* false past the last */

/* What the constructor of the module at `path` was given: calls `fn` for each parameter that does
 * not have its default, in order. `keyword` tells that it must be passed by name, because an
 * earlier one was left out or it is keyword-only. Values are valid during the call. A bias is a
 * bool, whatever the attribute is; a tensor (the weight of a loss) is a HOST value: the buffer of
 * that name; a module (of the type "Module") is a STR, its path below `path`, of a stack of copies
 * ("layers.0") the first. CFX_E_TYPE if the class is not in the table, holds other modules
 * (Sequential), or the module was changed so that no call makes it. */
typedef cfx_status cfxi_ops_nn_arg_fn(void *ctx, const cfx_schema_param *param, bool keyword,
                                      cfx_value v, cfx_error *err);
cfx_status cfxi_ops_nn_each_arg(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                                cfx_nn nn, cfxi_ops_nn_arg_fn *fn, void *ctx, cfx_error *err);

#endif
