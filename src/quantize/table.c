/* table.c - functions of one variable become tables of 256 entries.
 *
 *     before                                          after
 *     %dq = dequantize_per_tensor(%q, ..., int8)      %codes = arange_start(-128, 128, 1, int8)
 *     %act = hardswish(%dq)                           %dq = dequantize_per_tensor(%codes, ...)
 *     %y = quantize_per_tensor(%act, ..., uint8)      %act = hardswish(%dq)
 *                                                     %table = quantize_per_tensor(%act, ...)
 *                                                     %y = integer_table(%q, %table)
 *
 * The table is computed by the same calls, from all integers that there are: its entries are what
 * the reference form gives. const_fold computes it once and for all.
 */
#include "integers_impl.h"

#include <cfx/embed/copy.h>
#include <cfx/embed/ops.h>
#include <cfx/tensor.h>

enum { MOST_STEPS = 32 };  /* calls of one table, so that the time for all tables is linear */

static const char no_quantize[] = "its result is not quantized";

/* ---- what is a function --------------------------------------------------------------------- */

bool cfxi_quantize_is_elementwise(cfx_operator op)
{
    const unsigned flags = cfx_operator_flags(op);
    return op != CFX_OPID_NONE && flags & CFX_OPERATOR_ELEMENTWISE &&
           !(flags & (CFX_OPERATOR_RANDOM | CFX_OPERATOR_STATE)) &&
           !cfxi_analysis_operator_writes(op);
}

static bool has_one_element(cfxi_integers *job, const cfx_node *n)
{
    int64_t shape[CFX_MAX_DIMS];
    if (!cfxi_quantize_is_constant(job, n))
        return false;
    const int rank = cfxi_quantize_shape(job, n, shape);
    return rank == 0 || (rank == 1 && shape[0] == 1);
}

/* Whether a call gives a number, the square root of a size, for one. */
static bool is_number(const cfx_node *n)
{
    static const char *const types[] = {"bool", "float", "int", "Scalar"};
    cfx_schema_param result;
    const cfx_operator op = cfxi_quantize_row_of(n);
    if (op == CFX_OPID_NONE || !cfx_operator_result(op, 0, &result))
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(result.type, types[i]) == 0)
            return true;
    return false;
}

/* Adds what a node gives to the arguments of a function; false if it is a tensor, but not of the
 * same integers. With a number that is only known when the graph runs, so is the table: it takes
 * 256 elements, where the function would take the whole tensor. */
static bool add_argument(cfxi_integers *job, cfx_node *arg, cfxi_real *all)
{
    const cfxi_real x = cfxi_quantize_real_of(job, cfx_value_node(arg));
    if (x.kind != CFXI_REAL_INTEGERS && x.kind != CFXI_REAL_FUNCTION)
        return is_number(arg) || has_one_element(job, arg);
    if (all->integers && (all->integers != x.integers ||
                          !cfxi_quantize_same_numbers(&all->grid, &x.grid)))
        return false;
    all->integers = x.integers;
    all->grid = x.grid;
    all->steps += x.steps;
    return all->steps < MOST_STEPS;
}

cfx_status cfxi_quantize_function(cfxi_integers *job, cfx_node *n, cfx_operator op)
{
    size_t count;
    cfxi_real real = {.kind = CFXI_REAL_FUNCTION, .steps = 1, .why = no_quantize};
    const cfx_value *args = cfx_value_items(cfx_node_args(n), &count);
    if (!cfxi_quantize_is_elementwise(op))
        return CFX_OK;
    for (size_t i = 0; i < count; i++) {
        if (args[i].kind == CFX_KIND_NODE ? !add_argument(job, args[i].as.node, &real)
                                          : !cfxi_ir_is_plain(args[i]))
            return CFX_OK;
    }
    return real.integers ? cfxi_quantize_note(job, n, &real) : CFX_OK;
}

/* ---- the table ------------------------------------------------------------------------------ */

typedef struct table_job {
    cfxi_integers *job;
    cfx_node *root;      /* the numbers that all integers stand for */
    cfx_node *from[MOST_STEPS], *to[MOST_STEPS];
    size_t n;
} table_job;

/* What a call reads in the place of `n`. Calls itself for the arguments of a function, which has at
 * most MOST_STEPS of them behind each other. */
static cfx_value copy_call(void *ctx, cfx_node *n, cfx_error *err)
{
    table_job *t = ctx;
    const cfxi_real real = cfxi_quantize_real_of(t->job, cfx_value_node(n));
    if (real.kind == CFXI_REAL_INTEGERS)
        return cfx_value_node(t->root);
    if (real.kind != CFXI_REAL_FUNCTION)
        return cfx_value_node(n);
    for (size_t i = 0; i < t->n; i++)
        if (t->from[i] == n)
            return cfx_value_node(t->to[i]);
    cfx_node *copy = cfx_graph_copy_node(t->job->g, n, copy_call, t, err);
    if (!copy)
        return cfx_value_invalid();
    if (t->n < MOST_STEPS) {
        t->from[t->n] = n;
        t->to[t->n++] = copy;
    }
    return cfx_value_node(copy);
}

/* All integers of a dtype, as the numbers that they stand for. */
static cfx_node *add_root(cfxi_integers *job, cfx_node *before, const cfxi_grid *grid)
{
    const int64_t least = grid->dtype == CFX_DTYPE_INT8 ? -128 : 0;
    const cfx_value args[] = {cfx_value_int(least), cfx_value_int(least + 256), cfx_value_int(1),
                              cfx_value_dtype(grid->dtype)};
    cfx_node *codes = cfxi_quantize_add(job, before, CFX_OPID_arange_start, args, 4);
    return codes ? cfxi_quantize_add_dequantize(job, before, codes, grid) : NULL;
}

cfx_status cfxi_quantize_make_table(cfxi_integers *job, cfx_node *n, const cfxi_real *x)
{
    table_job t = {.job = job, .root = add_root(job, n, &x->grid)};
    const cfx_insert_point old = cfx_graph_insert_point(job->g);
    cfx_node *table = NULL;
    if (t.root &&
        cfx_graph_set_insert_point(job->g, (cfx_insert_point){n, false}, job->err) == CFX_OK)
        table = cfx_graph_copy_node(job->g, n, copy_call, &t, job->err);
    cfx_graph_set_insert_point(job->g, old, NULL);
    if (!table)
        return job->err->status;
    const cfx_value args[] = {cfx_value_node(x->integers), cfx_value_node(table)};
    cfx_node *made = cfxi_quantize_add(job, n, CFX_OPID_integer_table, args, 2);
    if (!made)
        return job->err->status;
    CFX_TRY(cfxi_quantize_replace(job, n, made));
    return cfx_graph_erase(job->g, n, job->err);
}
