/* import_impl.h - ONNX nodes become operators of the table.
 *
 * A file is imported by capturing a program: the importer is a module of the C door (scope.h) whose
 * forward walks the nodes of the file, and cfx_trace writes down what it calls. Each ONNX operator
 * has a rule, a function that computes with variables:
 *
 *     static cfx_var gemm(cfxi_import_call *c)
 *     {
 *         cfx_scope *s = c->scope;
 *         cfx_var a = cfxi_import_in(c, 0);
 *         if (cfxi_import_int(c, "transA", 0))
 *             a = cfx_t(s, a);
 *         ...
 *     }
 *
 * A row of import.def names it: CFX_ONNX_RULE(Gemm, 7, gemm), for opset 7 and later until the next
 * row of the same operator. An operator that has no row there is read by the rule `spelled`,
 * "onnx:LeakyRelu(self,negative_slope:alpha=0.01)", which lists inputs and attributes.
 *
 * Rules also compute: when all inputs of a node are known (initializers, Constant), the same rule
 * runs in a scope that computes, and its result is a constant. So a rule can ask for the elements
 * of an input that it needs to know (cfxi_import_known) and be written as if shapes were
 * attributes.
 *
 * Sizes stay symbolic: Shape gives a list of numbers (cfxi_import_items), one for each dimension,
 * and the operators that exporters use to compute shapes (Gather, Slice, Concat, Unsqueeze, Cast,
 * Add, Mul, ...) work on such lists. They become tensors only where a tensor is needed.
 */
#ifndef CFXI_IMPORT_IMPL_H
#define CFXI_IMPORT_IMPL_H

#include "onnx/proto_impl.h"

#include <cfx/capture.h>
#include <cfx/onnx.h>
#include <cfx/operators.h>

/* A small integer tensor of rank 0 or 1 as a list of numbers: constants, or variables that stand
 * for sizes. */
typedef struct cfxi_items {
    const cfx_var *items;
    size_t n;
    bool is_scalar;  /* rank 0: n is 1 */
} cfxi_items;

/* A node that is being imported. */
typedef struct cfxi_import_call {
    cfx_scope *scope;               /* traces, or computes if all inputs are known */
    const cfxi_onnx_node *node;
    int64_t opset;                  /* of the node's domain */
    struct cfxi_import *import;     /* everything else: import.c */
    const struct cfxi_imported *const *inputs;  /* one for each input; NULL: not given */
    struct cfxi_imported *outputs;  /* one for each output of the node */
    struct cfxi_import_frame *frame;  /* where names are looked up: the graph or function */
    bool later;                     /* see cfxi_import_later */
} cfxi_import_call;

/* A rule returns the first output, or EMPTY after cfxi_import_set_items(c, 0, ...); further ones go
 * to cfxi_import_set. Failures are the scope's. */
typedef cfx_var cfxi_import_rule(cfxi_import_call *c);

/* ---- inputs (import_values.c) -------------------------------------------------------------- */

bool cfxi_import_has(const cfxi_import_call *c, size_t i);  /* whether input i is given */
/* Input i as a tensor (or a sequence: a list of tensors); EMPTY if it is not given, so that an
 * option takes its default; the scope fails if a rule of the standard says that it must be. */
cfx_var cfxi_import_in(cfxi_import_call *c, size_t i);
cfx_var cfxi_import_optional(cfxi_import_call *c, size_t i);
/* The same of statistics and the like, which nobody trains: an initializer is a buffer then. */
cfx_var cfxi_import_fixed(cfxi_import_call *c, size_t i);
/* All inputs from one on as a list: for cat. */
cfx_var cfxi_import_list(cfxi_import_call *c, size_t from);
/* The elements of input i if they are known: borrowed; NULL if they are not, or it is not given. */
const cfx_tensor *cfxi_import_known(cfxi_import_call *c, size_t i);
/* Input i as a list of numbers: known elements, or a list of sizes. False if it is neither: a
 * tensor whose elements only a run knows. */
bool cfxi_import_items(cfxi_import_call *c, size_t i, cfxi_items *out);
/* The same as a variable: a tuple of integers, for parameters that take sizes or dimensions. A
 * tensor that only a run knows becomes tolist() of it. */
cfx_var cfxi_import_ints_of(cfxi_import_call *c, size_t i);
/* Input i as integers that must be known, or the attribute `name` of older opsets: axes. Returns
 * how many there are, up to `most`; -1 if neither is given. The scope fails if they are not
 * known. */
int cfxi_import_axes(cfxi_import_call *c, size_t i, const char *name, int64_t *out, int most);
/* The same where a run may decide: constants, or numbers of which nothing is known, so that shapes
 * are not inferred from them. False, and the scope fails, if it is not known how many there are. */
bool cfxi_import_axes_of(cfxi_import_call *c, size_t i, const char *name, cfx_var *out, int most,
                         int *n);
/* The variable without what is known of it: an axis or a step of which nothing is known must not
 * stop the rule of an operator from being looked at. */
cfx_var cfxi_import_unknown(cfxi_import_call *c, cfx_var v);
/* The variable with a type and a rank, if nothing else is known of it; `rank` below 0 or no type:
 * itself. */
cfx_var cfxi_import_assume(cfxi_import_call *c, cfx_var v, cfx_dtype dtype, int rank);
/* Rank and type of input i: -1 and CFX_DTYPE_COUNT if they are not known. `cfxi_import_need_rank`
 * fails instead, with the advice to give the file shapes. */
int cfxi_import_rank(cfxi_import_call *c, size_t i);
/* The size of a dimension of input i as a variable: a number if it is known. The rank must be. */
cfx_var cfxi_import_size(cfxi_import_call *c, size_t i, int dim);
/* The number of the element type in ONNX if it is one that cfx holds in a wider type (int4); else
 * that of the type of cfx, or 0 if that is not known. */
int64_t cfxi_import_type(cfxi_import_call *c, size_t i);
int cfxi_import_need_rank(cfxi_import_call *c, size_t i);
cfx_dtype cfxi_import_dtype(cfxi_import_call *c, size_t i);
/* The same of any variable: -1 and CFX_DTYPE_COUNT if they are not known. */
int cfxi_import_rank_of(cfx_scope *s, cfx_var v);
cfx_dtype cfxi_import_dtype_of(cfx_scope *s, cfx_var v);
/* An axis that the node gives, from 0; -1, and the scope fails, if there is no such dimension. */
int cfxi_import_axis(cfxi_import_call *c, int64_t axis, int rank);
/* The one number that input i must have, as far as it is known; a variable if only a run knows
 * it. EMPTY if it is not given. */
cfx_var cfxi_import_number(cfxi_import_call *c, size_t i);

/* ---- attributes (import_attributes.c) ------------------------------------------------------ */

/* NULL if it is not given. References to attributes of a function's call are resolved. */
const cfxi_onnx_attribute *cfxi_import_attribute(const cfxi_import_call *c, const char *name);
int64_t cfxi_import_int(cfxi_import_call *c, const char *name, int64_t otherwise);
double cfxi_import_float(cfxi_import_call *c, const char *name, double otherwise);
/* Whether the text attribute (or its default) is this word. */
bool cfxi_import_is(cfxi_import_call *c, const char *name, const char *otherwise, const char *word);
/* A list of integers: borrowed; *n is 0 if it is not given. */
const int64_t *cfxi_import_ints(cfxi_import_call *c, const char *name, size_t *n);

/* A text attribute as a variable, or its default; EMPTY if that is NULL. */
cfx_var cfxi_import_str(cfxi_import_call *c, const char *name, const char *otherwise);
/* A tensor attribute: the caller's; NULL if it is not given, or the scope fails. */
cfx_tensor *cfxi_import_tensor_attribute(cfxi_import_call *c, const char *name);

/* ---- outputs ------------------------------------------------------------------------------- */

size_t cfxi_import_num_outputs(const cfxi_import_call *c);
/* Whether anyone asks for output i: it is listed and has a name. */
bool cfxi_import_wants(const cfxi_import_call *c, size_t i);
void cfxi_import_set(cfxi_import_call *c, size_t i, cfx_var v);
void cfxi_import_set_items(cfxi_import_call *c, size_t i, const cfx_var *items, size_t n,
                           bool is_scalar);

/* The element type of a list of sizes, as a tensor: INT64 unless this says INT32. */
void cfxi_import_set_items_type(cfxi_import_call *c, size_t i, cfx_dtype dtype);
/* The output is a tensor that is known: takes over the reference. */
void cfxi_import_set_known(cfxi_import_call *c, size_t i, cfx_tensor *t);
/* Says that the elements of output i are of this type of ONNX, which cfx holds in a wider one. */
void cfxi_import_set_type(cfxi_import_call *c, size_t i, int64_t number);
/* For a rule whose result differs from run to run: if the scope computes, notes that the node must
 * be traced instead, and returns true; the rule returns EMPTY then. */
bool cfxi_import_later(cfxi_import_call *c);

/* The scope fails: "node 'Conv_3' (Conv): ...". CFX_E_VALUE for a file that breaks the standard,
 * CFX_E_UNSUPPORTED for what cfx does not do. */
cfx_var cfxi_import_fail(cfxi_import_call *c, cfx_status status, const char *format, ...)
    CFX_PRINTF(3, 4);

/* ---- the rules ----------------------------------------------------------------------------- */

#define CFX_ONNX_RULE(op, since, rule) cfxi_import_rule cfxi_import_##rule;
#define CFX_ONNX_MOVES(op, since, rule, data) cfxi_import_rule cfxi_import_##rule;
#include "import.def"

#endif
