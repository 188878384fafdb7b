/* ops.h - the operator table: identifies an operator however a call spells it.
 *
 * torch.relu, torch.nn.functional.relu, x.relu(), torch.nn.ReLU and torch.ops.aten.relu.default are
 * one operator, `relu`, and one row of ops.def. Passes ask for the operator, not for a name:
 *
 *     if (cfx_node_operator(n) == CFX_OPID_relu) ...
 *
 * A row has the operator's parameters and results in PyTorch's schema language, including what it
 * writes to and what aliases; every spelling; and flags for what a schema cannot express. effect.h
 * derives the effects of a call from it.
 *
 * What a spelling alone does not tell:
 *   - Parameters have aten's names. Functions of torch call the first one `input`, not `self`.
 *   - Functions of torch.nn.functional may take their arguments in another order than the row, and
 *     modules keep most of them as attributes. cfx_node_operand finds an argument by its parameter.
 *   - A function whose meaning depends on its arguments belongs to the row of its most common form:
 *     torch.max is `max`, even in torch.max(x, 1), which means max_dim. Overloads ("aten.max.dim")
 *     are exact.
 *   - On numbers, tuples and lists, the functions of `operator` compute what Python does: `add`
 *     concatenates two tuples, and iadd of two numbers writes to nothing.
 *
 * The table is constant data: nothing here allocates or fails. embed/ops.h gives access to every
 * column.
 */
#ifndef CFX_OPS_H
#define CFX_OPS_H

#include <cfx/node.h>

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

/* What a schema cannot express. */
typedef enum cfx_operator_flag {
    CFX_OPERATOR_RANDOM = 1,       /* draws random numbers. One with a parameter `train` or
                                      `training` only if that is true, one with `p`, `dropout_p` or
                                      `dropout` only if that is not 0 */
    CFX_OPERATOR_COMMUTES = 2,     /* the first two operands can be swapped (numbers and tensors),
                                      if all other parameters have their defaults */
    CFX_OPERATOR_STATE = 4,        /* may update statistics among its arguments (batch_norm) */
    CFX_OPERATOR_CHECKS = 8,       /* fails or reports instead of returning: keep it */
    CFX_OPERATOR_ELEMENTWISE = 16, /* each element of the result depends only on the elements of the
                                      (broadcast) operands at the same position */
    CFX_OPERATOR_GLOBAL = 32       /* changes how later calls run, or calls a function that it is
                                      given: its effects are unknown */
} cfx_operator_flag;

/* The row's id: "relu", "add_", "max_dim"; NULL for NONE and for numbers outside the table. */
CFX_API const char *cfx_operator_name(cfx_operator op);
/* Parameters and results, without the name: "(Tensor self) -> Tensor"; NULL for NONE. */
CFX_API const char *cfx_operator_schema(cfx_operator op);
/* cfx_operator_flag or'ed; 0 for NONE. */
CFX_API unsigned cfx_operator_flags(cfx_operator op);

/* The operator of a name. Accepts any spelling, in full or as ops.def abbreviates it ("F.relu"); an
 * overload packet, which means its default overload ("torch.ops.aten.relu"); the names that
 * Python's introspection gives the same functions ("torch._C._nn.gelu"); the row itself
 * ("cfx.ops.max_dim"); or a row's id. NONE otherwise. */
CFX_API cfx_operator cfx_operator_parse(const char *name);

/* The operator that a call_function or call_method calls. NONE for other opcodes, and for targets
 * that are not in the table. A host is asked for a function's name only once. For call_module see
 * cfx_node_operator_of (tree.h). */
CFX_API cfx_operator cfx_node_operator(const cfx_node *n);

/* The argument that a call_function or call_method passes for the parameter `name` of its operator,
 * by position or keyword, in whatever order its spelling takes them. INVALID if the argument is not
 * passed, if there is no such parameter, or if a list is passed as separate numbers (x.view(2, 3)).
 * `name` may also be a parameter that only the spelling has, such as `inplace`. */
CFX_API cfx_value cfx_node_operand(const cfx_node *n, const char *name);

#ifdef __cplusplus
}
#endif
#endif
