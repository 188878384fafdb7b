/* integers_impl.h - what the files that make the integer form share.
 *
 * A walk over the graph in its order notes what each float value is known to be: integers that were
 * dequantized, weights, a function of one such value. A call that reads such values and has an
 * integer form gets it beside the float one, whose users then read the new call; what nobody uses
 * any more is erased at the end.
 *
 *     integers.c           the walk, what is quantized again, what is erased, the report
 *     integers_known.c     scales, constants, what is noted of values
 *     integers_move.c      operators that move or choose elements
 *     integers_product.c   linear, convolutions, matrix products, embeddings
 *     integers_sum.c       add, mul, means and average pools
 *     table.c              functions of one variable
 */
#ifndef CFXI_INTEGERS_IMPL_H
#define CFXI_INTEGERS_IMPL_H

#include "analysis/alias_impl.h"
#include "analysis/module_users_impl.h"
#include "base/map_impl.h"

#include <cfx/quantize.h>

/* Which integers stand for which numbers: (integer - zero) * scale. */
typedef struct cfxi_grid {
    double scale;
    int64_t zero, low, high;
    cfx_dtype dtype;
} cfxi_grid;

typedef enum cfxi_real_kind {
    CFXI_REAL_UNKNOWN,
    CFXI_REAL_INTEGERS,  /* of `grid`, in 8 bits */
    CFXI_REAL_LIST,      /* a list or tuple of such tensors */
    CFXI_REAL_WEIGHTS,   /* of channels or groups: with tensors of scales and zero points */
    CFXI_REAL_FUNCTION,  /* each element is a function of one of the `integers`, of `grid` */
    CFXI_REAL_EACH_RUN   /* `float_input`, rounded to integers that each run chooses */
} cfxi_real_kind;

/* What a float value is. */
typedef struct cfxi_real {
    cfxi_real_kind kind;
    uint32_t steps;         /* FUNCTION: how many calls it takes */
    cfx_node *integers;
    cfxi_grid grid;         /* WEIGHTS: dtype; EACH_RUN: low, high */
    cfx_node *scales;       /* WEIGHTS */
    cfx_node *zeros;        /* WEIGHTS; NULL: 0 */
    int64_t axis;           /* WEIGHTS */
    int64_t group;          /* WEIGHTS: elements of a row with one scale; 0: the whole row */
    cfx_node *float_input;  /* EACH_RUN */
    double eps;             /* EACH_RUN */
    const char *why;        /* why the call that gives it stays float; or NULL */
} cfxi_real;

typedef struct cfxi_integers {
    cfx_graph *g;
    cfx_graph *root;
    const cfx_module_tree *modules;  /* or NULL */
    cfx_integers_options options;
    cfxi_effect_model *model;
    cfxi_survey *survey;             /* of the root; begun when a constant is read */
    cfxi_aliases aliases;            /* of this graph; graph is NULL if nothing is written to */
    cfxi_hash_map reals;             /* of nodes: cfxi_real */
    cfxi_hash_map idle;              /* nodes that nobody used from the beginning: uint64_t */
    bool changed;
    cfx_error *err;                  /* never NULL */
} cfxi_integers;

/* How the result of a call becomes integers again. */
typedef struct cfxi_end {
    cfx_node *last;  /* what is quantized: the call, or a clamp behind it; NULL: nothing is */
    cfxi_grid grid;  /* with the limits of those clamps */
} cfxi_end;

/* ---- what is known (integers_known.c) ------------------------------------------------------- */

/* Whether `n` calls a row as lowering writes it. */
bool cfxi_quantize_is_row(const cfx_node *n, cfx_operator op);
/* Its row; NONE if it is not such a call. */
cfx_operator cfxi_quantize_row_of(const cfx_node *n);
/* Whether the memory of a node stays as it was made. */
bool cfxi_quantize_is_unwritten(const cfxi_integers *job, const cfx_node *n);
/* What a value is; UNKNOWN for what is not a node. */
cfxi_real cfxi_quantize_real_of(const cfxi_integers *job, cfx_value v);
/* Notes it of a node, unless somebody writes to the node or what it is made of. */
cfx_status cfxi_quantize_note(cfxi_integers *job, cfx_node *n, const cfxi_real *real);
/* Notes why a call stays float. */
cfx_status cfxi_quantize_stays(cfxi_integers *job, cfx_node *n, const char *why);

/* A literal, or a constant tensor with one element; false if it is not known. */
bool cfxi_quantize_number(cfxi_integers *job, cfx_value v, double *number);
bool cfxi_quantize_integer(cfxi_integers *job, cfx_value v, int64_t *number);
/* A list of `n` literal numbers, of one, or one number for all; `missing` if it is not given.
 * False for others. */
bool cfxi_quantize_ints(cfx_value v, int64_t missing, size_t n, int64_t *out);
cfx_value cfxi_quantize_list(cfxi_integers *job, const int64_t *items, size_t n);
/* The sizes of a constant, and how many; -1 if they are not known. */
int cfxi_quantize_shape(cfxi_integers *job, const cfx_node *n, int64_t shape[CFX_MAX_DIMS]);
/* Whether it depends on attributes and literals only. Looks at a few calls behind each other. */
bool cfxi_quantize_is_constant(const cfxi_integers *job, const cfx_node *n);
/* Whether a constant tensor is known to have floats. */
bool cfxi_quantize_is_float(cfxi_integers *job, const cfx_node *n);
/* Whether a constant tensor is known to be all 0. */
bool cfxi_quantize_is_zero(cfxi_integers *job, const cfx_node *n);

/* The grid of a call of quantize_per_tensor and its like; false unless all of it is known, the
 * integers have 8 bits and the scale is an ordinary number. */
bool cfxi_quantize_grid_of(cfxi_integers *job, const cfx_node *n, cfxi_grid *grid);
bool cfxi_quantize_same_numbers(const cfxi_grid *a, const cfxi_grid *b);
/* The integer that a number becomes. */
int64_t cfxi_quantize_round(const cfxi_grid *grid, double number);
/* Whether `n` computes the larger or smaller of x and constants: relu, clamp. */
bool cfxi_quantize_limits(const cfx_node *n, double *low, double *high);

/* ---- adding and replacing (integers_known.c) ------------------------------------------------ */

/* A call of a row before `before`, with its location; NULL with *job->err set. Takes floating
 * values, also if it fails. */
cfx_node *cfxi_quantize_add(cfxi_integers *job, cfx_node *before, cfx_operator op,
                            const cfx_value *args, size_t n);
/* dequantize_per_tensor, likewise. */
cfx_node *cfxi_quantize_add_dequantize(cfxi_integers *job, cfx_node *before, cfx_node *integers,
                                       const cfxi_grid *grid);
cfx_status cfxi_quantize_replace(cfxi_integers *job, cfx_node *n, cfx_node *with);
/* Follows the result of `n` through clamps to where it is quantized. */
cfxi_end cfxi_quantize_end_of(cfxi_integers *job, cfx_node *n);
/* The users of `n`, or those that quantize it, read `made` instead. */
cfx_status cfxi_quantize_finish(cfxi_integers *job, cfx_node *n, const cfxi_end *end,
                                cfx_node *made);
/* scale, zero, low, high, dtype: the last five arguments of integer rows. */
enum { CFXI_END_ARGS = 5 };
void cfxi_quantize_end_args(const cfxi_end *end, cfx_value args[CFXI_END_ARGS]);

/* ---- the kinds of calls: what is done with one; nothing if it is none of them --------------- */

cfx_status cfxi_quantize_move(cfxi_integers *job, cfx_node *n, cfx_operator op);
cfx_status cfxi_quantize_product(cfxi_integers *job, cfx_node *n, cfx_operator op);
cfx_status cfxi_quantize_sum(cfxi_integers *job, cfx_node *n, cfx_operator op);
cfx_status cfxi_quantize_function(cfxi_integers *job, cfx_node *n, cfx_operator op);
/* Puts a table in the place of `n`, which quantizes integers or a function of them. */
cfx_status cfxi_quantize_make_table(cfxi_integers *job, cfx_node *n, const cfxi_real *x);
/* Lets what is quantized behind moves be quantized before them, in the whole graph. */
cfx_status cfxi_quantize_pull(cfxi_integers *job);
/* Whether the row copies elements, and no more of them than it reads. */
bool cfxi_quantize_copies(cfx_operator op);
/* Whether the row's result are elements of its first argument, in another order or shape: it works
 * on integers as on floats. (integers_move.c) */
bool cfxi_quantize_moves(cfx_operator op);
/* Whether the row computes each element alone: of one tensor, it becomes a table. (table.c) */
bool cfxi_quantize_is_elementwise(cfx_operator op);

#endif
