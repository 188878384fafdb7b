/* integers_known.c - what is known of values while the integer form is made: which integers stand
 * for them, scales, constants, limits. And the few edits that all kinds of calls share. */
#include "integers_impl.h"
#include "ops/ops_impl.h"

#include <cfx/embed/tensor.h>
#include <math.h>
#include <stdio.h>

/* ---- calls ---------------------------------------------------------------------------------- */

cfx_operator cfxi_quantize_row_of(const cfx_node *n)
{
    if (n->op != CFX_OP_CALL_FUNCTION || n->kwargs)
        return CFX_OPID_NONE;
    const char *spelling = cfxi_ops_node_spelling(n);
    return spelling && !*spelling ? cfx_node_operator(n) : CFX_OPID_NONE;
}

bool cfxi_quantize_is_row(const cfx_node *n, cfx_operator op)
{
    return cfxi_quantize_row_of(n) == op;
}

/* ---- what values are ------------------------------------------------------------------------ */

bool cfxi_quantize_is_unwritten(const cfxi_integers *job, const cfx_node *n)
{
    if (!n || !job->aliases.graph)
        return true;
    const cfx_value place = cfx_node_map_get(job->aliases.places, n);
    return place.kind == CFX_KIND_INVALID ||  /* it was added by this pass */
           !cfxi_analysis_alias_set(&job->aliases, n)->written;
}

static cfxi_real *look(const cfxi_integers *job, const cfx_node *n)
{
    return cfxi_base_map_find(&job->reals, n, sizeof(cfxi_real));
}

cfxi_real cfxi_quantize_real_of(const cfxi_integers *job, cfx_value v)
{
    const cfxi_real *real = v.kind == CFX_KIND_NODE ? look(job, v.as.node) : NULL;
    return real ? *real : (cfxi_real){.kind = CFXI_REAL_UNKNOWN};
}

cfx_status cfxi_quantize_note(cfxi_integers *job, cfx_node *n, const cfxi_real *real)
{
    if (!cfxi_quantize_is_unwritten(job, n) ||
        !cfxi_quantize_is_unwritten(job, real->integers) ||
        !cfxi_quantize_is_unwritten(job, real->scales) ||
        !cfxi_quantize_is_unwritten(job, real->zeros) ||
        !cfxi_quantize_is_unwritten(job, real->float_input))
        return CFX_OK;
    cfxi_real *to = cfxi_base_map_add(&job->reals, n, sizeof *to, job->g->allocator);
    if (!to)
        return cfxi_base_nomem(job->err);
    *to = *real;
    return CFX_OK;
}

cfx_status cfxi_quantize_stays(cfxi_integers *job, cfx_node *n, const char *why)
{
    cfxi_real *to = cfxi_base_map_add(&job->reals, n, sizeof *to, job->g->allocator);
    if (!to)
        return cfxi_base_nomem(job->err);
    to->why = why;
    return CFX_OK;
}

/* ---- constants ------------------------------------------------------------------------------ */

enum { CONSTANT_CALLS = 4 };  /* behind each other: unpack, quantize, transpose of an attribute */

static bool is_constant(const cfxi_integers *job, const cfx_node *n, int calls)
{
    if (!cfxi_quantize_is_unwritten(job, n))
        return false;
    if (n->op == CFX_OP_GET_ATTR)
        return true;
    const cfx_operator op = cfxi_quantize_row_of(n);
    if (op == CFX_OPID_NONE || calls == 0 || n->n_inputs > CONSTANT_CALLS ||
        cfx_operator_flags(op) & CFX_OPERATOR_RANDOM)
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++)
        if (!is_constant(job, n->inputs[i].def, calls - 1))
            return false;
    return true;
}

bool cfxi_quantize_is_constant(const cfxi_integers *job, const cfx_node *n)
{
    return is_constant(job, n, CONSTANT_CALLS);
}

/* The attribute that a node reads, which nobody writes to, floating; INVALID if it is not known. */
static cfx_value read_constant(cfxi_integers *job, const cfx_node *n, const char *name)
{
    cfx_value v = cfx_value_invalid();
    cfx_error why = {0};
    if (!job->modules || n->op != CFX_OP_GET_ATTR || !cfxi_quantize_is_unwritten(job, n))
        return v;
    const char *path = n->callee->ref->name->data;
    if (!job->survey->model &&
        cfxi_analysis_survey_begin(job->survey, job->root, job->model, &why) != CFX_OK)
        return v;
    if (job->survey->wrote_any || cfxi_analysis_survey_find(job->survey, path).written)
        return v;
    cfxi_ops_module_attr(job->modules, job->g, path, name, &v, &why);
    return v;
}

/* op(x), of a value that is given back; INVALID if it cannot be computed. */
static cfx_value compute(cfxi_integers *job, cfx_operator op, cfx_value x)
{
    cfx_value v = cfx_value_invalid();
    cfx_error why = {0};
    if (x.kind == CFX_KIND_INVALID)
        return x;
    cfx_value_retain(x);
    if (job->modules->call)
        v = job->modules->call(job->modules->ctx, job->g, op, &x, 1, &why);
    cfx_value_release(job->g, x);
    return v;
}

static cfx_value number_at(cfxi_integers *job, const cfx_node *n)
{
    cfx_value v = read_constant(job, n, "");
    if (v.kind == CFX_KIND_HOST)
        v = compute(job, CFX_OPID_item, v);
    if (v.kind == CFX_KIND_INT || v.kind == CFX_KIND_FLOAT)
        return v;
    cfx_value_discard(job->g, v);
    return cfx_value_invalid();
}

bool cfxi_quantize_number(cfxi_integers *job, cfx_value v, double *number)
{
    if (v.kind == CFX_KIND_NODE)
        v = number_at(job, v.as.node);
    *number = v.kind == CFX_KIND_FLOAT ? v.as.f : (double)v.as.i;
    return v.kind == CFX_KIND_FLOAT || v.kind == CFX_KIND_INT;
}

bool cfxi_quantize_integer(cfxi_integers *job, cfx_value v, int64_t *number)
{
    if (v.kind == CFX_KIND_NODE)
        v = number_at(job, v.as.node);
    *number = v.as.i;
    return v.kind == CFX_KIND_INT;
}

bool cfxi_quantize_ints(cfx_value v, int64_t missing, size_t n, int64_t *out)
{
    const cfx_value alone = v.kind == CFX_KIND_INVALID ? cfx_value_int(missing) : v;
    size_t given;
    const cfx_value *items = cfx_value_items(v, &given);
    const bool list = v.kind == CFX_KIND_LIST || v.kind == CFX_KIND_TUPLE;
    if (list && given == 0)
        return cfxi_quantize_ints(cfx_value_int(missing), missing, n, out);
    if (list && given != 1 && given != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const cfx_value item = !list ? alone : items[given == 1 ? 0 : i];
        if (item.kind != CFX_KIND_INT)
            return false;
        out[i] = item.as.i;
    }
    return true;
}

cfx_value cfxi_quantize_list(cfxi_integers *job, const int64_t *items, size_t n)
{
    cfx_value values[CFX_MAX_DIMS];
    for (size_t i = 0; i < n; i++)
        values[i] = cfx_value_int(items[i]);
    return cfx_value_list(job->g, values, n, job->err);
}

/* Of an attribute. */
static int shape_at(cfxi_integers *job, const cfx_node *n, int64_t shape[CFX_MAX_DIMS])
{
    size_t rank;
    cfx_value v = read_constant(job, n, "shape");
    const cfx_value *sizes = cfx_value_items(v, &rank);
    bool good = v.kind == CFX_KIND_TUPLE && rank <= CFX_MAX_DIMS;
    for (size_t i = 0; good && i < rank; i++) {
        good = sizes[i].kind == CFX_KIND_INT;
        shape[i] = sizes[i].as.i;
    }
    cfx_value_discard(job->g, v);
    return good ? (int)rank : -1;
}

int cfxi_quantize_shape(cfxi_integers *job, const cfx_node *n, int64_t shape[CFX_MAX_DIMS])
{
    const cfx_operator op = cfxi_quantize_row_of(n);
    const cfx_value x = cfx_node_arg(n, 0);
    if (n->op == CFX_OP_GET_ATTR)
        return shape_at(job, n, shape);
    if (x.kind != CFX_KIND_NODE || x.as.node->op != CFX_OP_GET_ATTR)
        return -1;
    const int rank = shape_at(job, x.as.node, shape);
    if (op == CFX_OPID_quantize_per_tensor || op == CFX_OPID_quantize_per_channel ||
        op == CFX_OPID_quantize_per_channel_group)
        return rank;
    int64_t size;
    if (op != CFX_OPID_unpack_int4 || rank < 1 ||
        !cfxi_quantize_integer(job, cfx_node_arg(n, 1), &size))
        return -1;
    shape[rank - 1] = size;
    return rank;
}

bool cfxi_quantize_is_float(cfxi_integers *job, const cfx_node *n)
{
    const cfx_value v = read_constant(job, n, "dtype");
    const bool floats = v.kind == CFX_KIND_DTYPE && cfx_dtype_is_float((cfx_dtype)v.as.i);
    cfx_value_discard(job->g, v);
    return floats;
}

bool cfxi_quantize_is_zero(cfxi_integers *job, const cfx_node *n)
{
    cfx_value v = read_constant(job, n, "");
    if (v.kind == CFX_KIND_HOST)
        v = compute(job, CFX_OPID_count_nonzero, v);
    if (v.kind == CFX_KIND_HOST)
        v = compute(job, CFX_OPID_item, v);
    const bool zero = v.kind == CFX_KIND_INT && v.as.i == 0;
    cfx_value_discard(job->g, v);
    return zero;
}

/* ---- grids ---------------------------------------------------------------------------------- */

static bool fits_dtype(const cfxi_grid *grid)
{
    const bool is_signed = grid->dtype == CFX_DTYPE_INT8;
    return (is_signed || grid->dtype == CFX_DTYPE_UINT8) &&
           grid->low >= (is_signed ? -128 : 0) && grid->high <= (is_signed ? 127 : 255) &&
           grid->low <= grid->zero && grid->zero <= grid->high;
}

bool cfxi_quantize_grid_of(cfxi_integers *job, const cfx_node *n, cfxi_grid *grid)
{
    const cfx_value dtype = cfx_node_arg(n, 5);
    if (dtype.kind != CFX_KIND_DTYPE ||
        !cfxi_quantize_number(job, cfx_node_arg(n, 1), &grid->scale) ||
        !cfxi_quantize_integer(job, cfx_node_arg(n, 2), &grid->zero) ||
        !cfxi_quantize_integer(job, cfx_node_arg(n, 3), &grid->low) ||
        !cfxi_quantize_integer(job, cfx_node_arg(n, 4), &grid->high))
        return false;
    grid->dtype = (cfx_dtype)dtype.as.i;
    const float scale = (float)grid->scale;
    return fits_dtype(grid) && scale > 0 && isnormal(scale) && isnormal(1 / scale);
}

bool cfxi_quantize_same_numbers(const cfxi_grid *a, const cfxi_grid *b)
{
    return (float)a->scale == (float)b->scale && a->zero == b->zero && a->dtype == b->dtype;
}

int64_t cfxi_quantize_round(const cfxi_grid *grid, double number)
{
    const float steps = rintf((float)number * (float)(1 / grid->scale)) + (float)grid->zero;
    if (!(steps > (float)grid->low))  /* NaN, too */
        return grid->low;
    return steps < (float)grid->high ? (int64_t)steps : grid->high;
}

static bool literal(cfx_value v, double missing, double *out)
{
    *out = v.kind == CFX_KIND_FLOAT ? v.as.f : v.kind == CFX_KIND_INT ? (double)v.as.i : missing;
    return v.kind == CFX_KIND_FLOAT || v.kind == CFX_KIND_INT || v.kind == CFX_KIND_NONE ||
           v.kind == CFX_KIND_INVALID;
}

bool cfxi_quantize_limits(const cfx_node *n, double *low, double *high)
{
    const cfx_value a = cfx_node_arg(n, 1);
    const cfx_value b = cfx_node_arg(n, 2);
    const cfx_value none = cfx_value_none();
    switch ((int)cfxi_quantize_row_of(n)) {
    case CFX_OPID_relu:
        *low = 0;
        *high = INFINITY;
        return true;
    case CFX_OPID_relu6:
        *low = 0;
        *high = 6;
        return true;
    case CFX_OPID_hardtanh:
        return literal(a, -1, low) && literal(b, 1, high);
    case CFX_OPID_clamp:
        return literal(a, -INFINITY, low) && literal(b, INFINITY, high);
    case CFX_OPID_clamp_min:
        return literal(a, -INFINITY, low) && literal(none, INFINITY, high);
    case CFX_OPID_clamp_max:
        return literal(none, -INFINITY, low) && literal(a, INFINITY, high);
    default:
        return false;
    }
}

/* ---- adding and replacing ------------------------------------------------------------------- */

static cfx_node *add_call(cfxi_integers *job, cfx_operator op, cfx_value args)
{
    char name[CFX_SPELLING_SIZE];
    snprintf(name, sizeof name, "cfx.ops.%s", cfx_operator_name(op));
    const size_t size = strlen(name);
    cfx_value function = cfx_value_retain(cfx_value_name(job->g, name, size, job->err));
    if (function.kind == CFX_KIND_INVALID)
        return NULL;
    const cfx_target target = {.object = cfx_value_object(function), .name = name, .size = size};
    cfx_node *n = cfx_graph_create(job->g, CFX_OP_CALL_FUNCTION, target, args, cfx_value_invalid(),
                                   NULL, cfx_value_invalid(), job->err);
    cfx_value_release(job->g, function);
    return n;
}

cfx_node *cfxi_quantize_add(cfxi_integers *job, cfx_node *before, cfx_operator op,
                            const cfx_value *args, size_t n)
{
    const cfx_insert_point old = cfx_graph_insert_point(job->g);
    cfx_node *made = NULL;
    bool valid = true;
    for (size_t i = 0; i < n; i++)
        valid = valid && args[i].kind != CFX_KIND_INVALID;
    cfx_value tuple = valid ? cfx_value_tuple(job->g, args, n, job->err) : cfx_value_invalid();
    if (tuple.kind == CFX_KIND_INVALID) {
        for (size_t i = 0; i < n; i++)
            cfx_value_discard(job->g, args[i]);
        return NULL;
    }
    if (cfx_graph_set_insert_point(job->g, (cfx_insert_point){before, false}, job->err) == CFX_OK)
        made = add_call(job, op, tuple);
    cfx_graph_set_insert_point(job->g, old, NULL);
    if (made)
        cfxi_analysis_place_like(made, before);
    else
        cfx_value_discard(job->g, tuple);
    return made;
}

cfx_node *cfxi_quantize_add_dequantize(cfxi_integers *job, cfx_node *before, cfx_node *integers,
                                       const cfxi_grid *grid)
{
    const cfx_value args[] = {cfx_value_node(integers), cfx_value_float(grid->scale),
                              cfx_value_int(grid->zero), cfx_value_int(grid->low),
                              cfx_value_int(grid->high), cfx_value_dtype(grid->dtype)};
    return cfxi_quantize_add(job, before, CFX_OPID_dequantize_per_tensor, args,
                             sizeof args / sizeof *args);
}

cfx_status cfxi_quantize_replace(cfxi_integers *job, cfx_node *n, cfx_node *with)
{
    job->changed = true;
    return cfx_node_replace_uses(n, cfx_value_node(with), NULL, NULL, NULL, job->err);
}

/* ---- from a call to where its result is quantized ------------------------------------------- */

static bool is_quantize(const cfx_node *n)
{
    const cfx_operator op = cfxi_quantize_row_of(n);
    return op == CFX_OPID_quantize_per_tensor || op == CFX_OPID_quantize_per_tensor_tensor ||
           op == CFX_OPID_quantize_per_tensor_tensor2;
}

/* Whether all users of `n` quantize it, and give the same integers. */
static bool are_all_quantized(cfxi_integers *job, const cfx_node *n, cfxi_grid *grid)
{
    cfxi_grid other;
    const cfx_use *use = cfx_node_first_use(n);
    if (!use || !is_quantize(use->user) || !cfxi_quantize_grid_of(job, use->user, grid))
        return false;
    while ((use = cfx_use_next(use)) != NULL)
        if (!is_quantize(use->user) || !cfxi_quantize_grid_of(job, use->user, &other) ||
            !cfxi_quantize_same_numbers(grid, &other) || grid->low != other.low ||
            grid->high != other.high)
            return false;
    return true;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* Whether `n` only limits a float32 number. One that casts it to the type of a number that was
 * dequantized does not even that: in-place calls that were made functional end with such a cast. */
static bool is_clamp(const cfxi_integers *job, const cfx_node *n, double *low, double *high)
{
    *low = -INFINITY;
    *high = INFINITY;
    if (!cfxi_quantize_is_row(n, CFX_OPID_type_as))
        return cfxi_quantize_limits(n, low, high);
    return cfxi_quantize_real_of(job, cfx_node_arg(n, 1)).kind == CFXI_REAL_INTEGERS;
}

cfxi_end cfxi_quantize_end_of(cfxi_integers *job, cfx_node *n)
{
    cfxi_end end = {.last = n};
    double low, high;
    while (end.last->n_users == 1 && cfxi_quantize_is_unwritten(job, end.last) &&
           is_clamp(job, cfx_use_user(cfx_node_first_use(end.last)), &low, &high))
        end.last = cfx_use_user(cfx_node_first_use(end.last));
    if (!cfxi_quantize_is_unwritten(job, end.last) ||
        !are_all_quantized(job, end.last, &end.grid)) {
        end.last = NULL;
        return end;
    }
    const cfxi_grid whole = end.grid;
    for (cfx_node *at = n; at != end.last;) {
        at = cfx_use_user(cfx_node_first_use(at));
        is_clamp(job, at, &low, &high);
        const int64_t least = cfxi_quantize_round(&whole, low);
        const int64_t most = cfxi_quantize_round(&whole, high);
        end.grid.low = clamp(end.grid.low, least, most);
        end.grid.high = clamp(end.grid.high, least, most);
    }
    return end;
}

cfx_status cfxi_quantize_finish(cfxi_integers *job, cfx_node *n, const cfxi_end *end,
                                cfx_node *made)
{
    const cfx_use *use;
    if (!made)
        return job->err->status;
    if (!end->last)
        return cfxi_quantize_replace(job, n, made);
    while ((use = cfx_node_first_use(end->last)) != NULL) {
        cfx_node *quantize = cfx_use_user(use);
        CFX_TRY(cfxi_quantize_replace(job, quantize, made));
        CFX_TRY(cfx_graph_erase(job->g, quantize, job->err));
    }
    return CFX_OK;
}

void cfxi_quantize_end_args(const cfxi_end *end, cfx_value args[CFXI_END_ARGS])
{
    const cfxi_grid none = {.scale = 1, .dtype = CFX_DTYPE_FLOAT32};
    const cfxi_grid *grid = end->last ? &end->grid : &none;
    args[0] = cfx_value_float(grid->scale);
    args[1] = cfx_value_int(grid->zero);
    args[2] = cfx_value_int(grid->low);
    args[3] = cfx_value_int(grid->high);
    args[4] = cfx_value_dtype(grid->dtype);
}
