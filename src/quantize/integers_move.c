/* integers_move.c - operators that move or choose elements work on integers as on the numbers that
 * these stand for.
 *
 *     before                                        after
 *     %dq = dequantize_per_tensor(%q, 0.5, 3, ...)  %max_pool2d = max_pool2d(%q, 2)
 *     %pool = max_pool2d(%dq, 2)                    ...
 *     %q2 = quantize_per_tensor(%pool, 0.5, 3, ...)
 *
 * `view` becomes `reshape`: integers may lie otherwise than the float values did.
 */
#include "integers_impl.h"
#include "analysis/call_arguments_impl.h"

#include <cfx/embed/copy.h>
#include <cfx/embed/ops.h>
#include <math.h>

/* What a row does: flags or'ed. */
enum {
    MOVES = 1,    /* its result are elements of its first argument, in another order or shape */
    PULLS = 2,    /* it gives no fewer elements than it reads, or the largest of some: what is
                     quantized behind it can be quantized before it */
    COPIES = 4,   /* it copies, and gives no more elements than it reads */
    LISTS = 8,    /* it gives a list */
    SAME = 16,    /* it gives its argument itself */
    PADS = 32,    /* with a number, the argument `value` */
    SIZES = 64,   /* it reads only the sizes */
    BYTES = 128   /* of integers, it takes uint8 only */
};

static const uint8_t rows[CFX_OPERATOR_COUNT] = {
    [CFX_OPID_reshape] = MOVES | PULLS,
    [CFX_OPID_reshape_as] = MOVES | PULLS,
    [CFX_OPID_view] = MOVES | PULLS,
    [CFX_OPID_view_as] = MOVES | PULLS,
    [CFX_OPID_flatten] = MOVES | PULLS,
    [CFX_OPID_unflatten] = MOVES | PULLS,
    [CFX_OPID_ravel] = MOVES | PULLS,
    [CFX_OPID_transpose] = MOVES | PULLS,
    [CFX_OPID_t] = MOVES | PULLS,
    [CFX_OPID_mT] = MOVES | PULLS,
    [CFX_OPID_permute] = MOVES | PULLS,
    [CFX_OPID_movedim] = MOVES | PULLS,
    [CFX_OPID_squeeze] = MOVES | PULLS,
    [CFX_OPID_squeeze_dim] = MOVES | PULLS,
    [CFX_OPID_unsqueeze] = MOVES | PULLS,
    [CFX_OPID_expand] = MOVES | PULLS,
    [CFX_OPID_expand_as] = MOVES | PULLS,
    [CFX_OPID_repeat] = MOVES | PULLS,
    [CFX_OPID_tile] = MOVES | PULLS,
    [CFX_OPID_upsample_nearest1d] = MOVES | PULLS | BYTES,
    [CFX_OPID_upsample_nearest2d] = MOVES | PULLS | BYTES,
    [CFX_OPID_upsample_nearest3d] = MOVES | PULLS | BYTES,
    [CFX_OPID_interpolate] = MOVES | PULLS | BYTES,
    [CFX_OPID_contiguous] = MOVES | PULLS | COPIES,
    [CFX_OPID_clone] = MOVES | PULLS | COPIES,
    [CFX_OPID_cat] = MOVES | PULLS | COPIES,
    [CFX_OPID_stack] = MOVES | PULLS | COPIES,
    [CFX_OPID_flip] = MOVES | PULLS | COPIES,
    [CFX_OPID_roll] = MOVES | PULLS | COPIES,
    [CFX_OPID_pixel_shuffle] = MOVES | PULLS | COPIES,
    [CFX_OPID_pixel_unshuffle] = MOVES | PULLS | COPIES,
    [CFX_OPID_channel_shuffle] = MOVES | PULLS | COPIES,
    [CFX_OPID_max_pool1d] = MOVES | PULLS | COPIES,
    [CFX_OPID_max_pool2d] = MOVES | PULLS | COPIES,
    [CFX_OPID_max_pool3d] = MOVES | PULLS | COPIES,
    [CFX_OPID_amax] = MOVES | COPIES,
    [CFX_OPID_amin] = MOVES | COPIES,
    [CFX_OPID_constant_pad_nd] = MOVES | PULLS | PADS,
    [CFX_OPID_pad] = MOVES | PULLS | PADS,
    [CFX_OPID_slice] = MOVES,
    [CFX_OPID_select] = MOVES,
    [CFX_OPID_narrow] = MOVES,
    [CFX_OPID_diagonal] = MOVES,
    [CFX_OPID_getitem] = MOVES,
    [CFX_OPID_index_select] = MOVES | COPIES,
    [CFX_OPID_gather] = MOVES | COPIES,
    [CFX_OPID_chunk] = MOVES | LISTS,
    [CFX_OPID_split] = MOVES | LISTS,
    [CFX_OPID_split_with_sizes] = MOVES | LISTS,
    [CFX_OPID_tensor_split] = MOVES | LISTS,
    [CFX_OPID_unbind] = MOVES | LISTS,
    [CFX_OPID_detach] = MOVES | PULLS | SAME,
    [CFX_OPID_alias] = MOVES | PULLS | SAME,
    [CFX_OPID_dropout] = MOVES | PULLS | SAME,
    [CFX_OPID_feature_dropout] = MOVES | PULLS | SAME,
    [CFX_OPID_alpha_dropout] = MOVES | PULLS | SAME,
    [CFX_OPID_to] = MOVES | SAME,
    [CFX_OPID_size] = SIZES,
    [CFX_OPID_numel] = SIZES,
    [CFX_OPID_dim] = SIZES,
    [CFX_OPID_getattr] = SIZES,
};

bool cfxi_quantize_moves(cfx_operator op) { return rows[op] & MOVES; }
bool cfxi_quantize_copies(cfx_operator op) { return rows[op] & COPIES; }

/* ---- single rows ---------------------------------------------------------------------------- */

/* The argument of `n` for a parameter of its row; INVALID if it is not given. */
static cfx_value named(const cfx_node *n, const char *name)
{
    return cfx_node_operand(n, name);
}

static bool is_text(cfx_value v, const char *text)
{
    return v.kind == CFX_KIND_STR && strcmp(cfx_value_text(v, NULL), text) == 0;
}

/* Whether the call is one that the row's flags hold for, by its other arguments. */
static bool is_usual(const cfx_node *n, cfx_operator op)
{
    const bool mode = op == CFX_OPID_pad || op == CFX_OPID_interpolate;
    const cfx_value v = rows[op] & SAME && op != CFX_OPID_to ? named(n, "train")
                        : mode ? named(n, "mode") : named(n, "return_indices");
    switch ((int)op) {
    case CFX_OPID_dropout:
    case CFX_OPID_feature_dropout:
    case CFX_OPID_alpha_dropout:
        return v.kind == CFX_KIND_BOOL && !v.as.b;
    case CFX_OPID_to:
        return named(n, "dtype").kind == CFX_KIND_DTYPE &&
               named(n, "dtype").as.i == CFX_DTYPE_FLOAT32 && cfx_node_num_args(n) == 2;
    case CFX_OPID_pad:
        return v.kind == CFX_KIND_INVALID || is_text(v, "constant");
    case CFX_OPID_interpolate:
        return v.kind == CFX_KIND_INVALID || is_text(v, "nearest");
    case CFX_OPID_getattr:
        return is_text(cfx_node_arg(n, 1), "shape") || is_text(cfx_node_arg(n, 1), "ndim");
    default:
        return v.kind == CFX_KIND_INVALID || (v.kind == CFX_KIND_BOOL && !v.as.b);
    }
}

/* Whether the row takes integers of this type. */
static bool takes(cfx_operator op, const cfxi_grid *grid)
{
    return !(rows[op] & BYTES) || grid->dtype == CFX_DTYPE_UINT8;
}

/* The number that a call pads with, which is the argument *at. */
static bool padding_of(const cfx_node *n, cfx_operator op, size_t *at, double *number)
{
    *at = op == CFX_OPID_pad ? 3 : 2;
    const cfx_value v = cfx_node_arg(n, *at);
    *number = v.kind == CFX_KIND_FLOAT ? v.as.f : v.kind == CFX_KIND_INT ? (double)v.as.i : 0;
    return v.kind == CFX_KIND_FLOAT || v.kind == CFX_KIND_INT || v.kind == CFX_KIND_NONE ||
           v.kind == CFX_KIND_INVALID;
}

/* The row that does the same to integers. */
static cfx_operator integer_row(cfx_operator op)
{
    return op == CFX_OPID_view ? CFX_OPID_reshape : op == CFX_OPID_view_as ? CFX_OPID_reshape_as
                                                                           : op;
}

/* ---- the integer call ----------------------------------------------------------------------- */

/* The tensors that a call moves: its first argument, or the items of it. */
static const cfx_value *moved(const cfx_node *n, size_t *count)
{
    const cfx_value *args = cfx_value_items(cfx_node_args(n), count);
    if (*count > 0 && (args[0].kind == CFX_KIND_LIST || args[0].kind == CFX_KIND_TUPLE))
        return cfx_value_items(args[0], count);
    *count = *count > 0;
    return args;
}

typedef struct mapping {
    const cfxi_integers *job;
    const cfx_node_map *instead;  /* or NULL: what is known of each */
} mapping;

static cfx_value integers_instead(void *ctx, cfx_node *n, cfx_error *err)
{
    const mapping *m = ctx;
    (void)err;
    if (m->instead) {
        const cfx_value v = cfx_node_map_get(m->instead, n);
        return v.kind == CFX_KIND_INVALID ? cfx_value_node(n) : v;
    }
    const cfxi_real real = cfxi_quantize_real_of(m->job, cfx_value_node(n));
    const bool has = real.kind == CFXI_REAL_INTEGERS || real.kind == CFXI_REAL_LIST;
    return cfx_value_node(has ? real.integers : n);
}

/* The same call with integers; a padding is `pad`. Before `n`. */
static cfx_node *add_move(cfxi_integers *job, cfx_node *n, cfx_operator op, mapping *m, int64_t pad)
{
    cfx_value args[CFXI_MOST_PARAMS + 1];
    size_t count, at = SIZE_MAX;
    double number;
    cfx_value all = cfx_value_map(job->g, job->g, cfx_node_args(n), integers_instead, m, job->err);
    if (all.kind == CFX_KIND_INVALID)
        return NULL;
    const cfx_value *items = cfx_value_items(all, &count);
    count = count < CFXI_MOST_PARAMS ? count : CFXI_MOST_PARAMS;
    memcpy(args, items, count * sizeof *items);
    if (rows[op] & PADS && padding_of(n, op, &at, &number) && pad != 0) {
        if (op == CFX_OPID_pad && count < 3)
            args[2] = cfx_value_str(job->g, "constant", 8, job->err);
        args[at] = cfx_value_int(pad);
        count = at + 1;
    }
    cfx_node *made = cfxi_quantize_add(job, n, integer_row(op), args, count);
    cfx_value_discard(job->g, all);
    return made;
}

static bool same_grid(const cfxi_grid *a, const cfxi_grid *b)
{
    return cfxi_quantize_same_numbers(a, b) && a->low == b->low && a->high == b->high;
}

/* What all that a call moves is; false if it is not all of one grid. */
static bool common(const cfxi_integers *job, const cfx_node *n, cfxi_real *real)
{
    size_t count;
    const cfx_value *items = moved(n, &count);
    for (size_t i = 0; i < count; i++) {
        const cfxi_real item = cfxi_quantize_real_of(job, items[i]);
        if (i == 0)
            *real = item;
        if (item.kind != CFXI_REAL_INTEGERS || !same_grid(&item.grid, &real->grid))
            return false;
    }
    return count > 0;
}

/* The zero point, if the call pads with 0; 0 for others. False if it pads with something else. */
static bool padding_in(const cfx_node *n, cfx_operator op, const cfxi_grid *grid, int64_t *pad)
{
    size_t at;
    double number;
    *pad = 0;
    if (!(rows[op] & PADS))
        return true;
    *pad = grid->zero;
    return padding_of(n, op, &at, &number) && number == 0;
}

/* Item of a list of integers. */
static cfx_status take_item(cfxi_integers *job, cfx_node *n, const cfxi_real *list)
{
    const cfx_value index = cfx_node_arg(n, 1);
    cfxi_real real = *list;
    mapping m = {.job = job};
    if (index.kind != CFX_KIND_INT)
        return CFX_OK;
    real.kind = CFXI_REAL_INTEGERS;
    real.integers = add_move(job, n, CFX_OPID_getitem, &m, 0);
    return real.integers ? cfxi_quantize_note(job, n, &real) : job->err->status;
}

/* Whether a row ends with limits, CFXI_END_ARGS. */
static bool has_limits(cfx_operator op)
{
    switch (op) {
    case CFX_OPID_integer_linear: case CFX_OPID_integer_conv: case CFX_OPID_integer_matmul:
    case CFX_OPID_integer_add: case CFX_OPID_integer_mul: case CFX_OPID_integer_mean:
    case CFX_OPID_integer_avg_pool: return true;
    default: return false;
    }
}

/* Whether nothing but `n` reads integers that are cut off at limits when they are made. */
static bool is_cut_for(const cfx_node *n, const cfx_node *integers)
{
    const cfx_value x = cfx_node_arg(n, 0);
    return has_limits(cfxi_quantize_row_of(integers)) && integers->n_users == 1 &&
           cfx_use_user(cfx_node_first_use(integers)) == x.as.node && x.as.node->n_users == 1;
}

/* The largest of x and 0, of integers the largest of x and their zero point. */
static cfx_status take_relu(cfxi_integers *job, cfx_node *n, cfxi_real real)
{
    const size_t low = real.integers ? cfx_node_num_args(real.integers) - 3 : 0;
    if (real.grid.zero > real.grid.low && is_cut_for(n, real.integers)) {
        CFX_TRY(cfx_node_set_arg(real.integers, low, cfx_value_int(real.grid.zero), job->err));
        return cfxi_quantize_note(job, n, &real);
    }
    const cfx_value args[] = {cfx_value_node(real.integers), cfx_value_int(real.grid.zero)};
    if (real.grid.zero > real.grid.low)
        real.integers = cfxi_quantize_add(job, n, CFX_OPID_clamp_min, args, 2);
    return real.integers ? cfxi_quantize_note(job, n, &real) : job->err->status;
}

/* What reads only the sizes need not wait for floats. */
static cfx_status read_sizes(cfxi_integers *job, cfx_node *n)
{
    const cfx_value x = cfx_node_arg(n, 0);
    const cfxi_real real = cfxi_quantize_real_of(job, x);
    if (real.kind != CFXI_REAL_INTEGERS)
        return CFX_OK;
    job->changed = true;
    return cfx_node_replace_input(n, x.as.node, cfx_value_node(real.integers), job->err);
}

/* What asks for the type of numbers gets that of the numbers, which nobody computes for it. */
static cfx_status read_dtype(cfxi_integers *job, cfx_node *n)
{
    job->changed = true;
    return cfx_node_replace_uses(n, cfx_value_dtype(CFX_DTYPE_FLOAT32), NULL, NULL, NULL, job->err);
}

cfx_status cfxi_quantize_move(cfxi_integers *job, cfx_node *n, cfx_operator op)
{
    cfxi_real real;
    int64_t pad;
    mapping m = {.job = job};
    const cfxi_real first = cfxi_quantize_real_of(job, cfx_node_arg(n, 0));
    if (!rows[op] && op != CFX_OPID_relu)
        return CFX_OK;
    if (op == CFX_OPID_getitem && first.kind == CFXI_REAL_LIST)
        return take_item(job, n, &first);
    if (op == CFX_OPID_getattr && first.kind == CFXI_REAL_INTEGERS &&
        is_text(cfx_node_arg(n, 1), "dtype"))
        return read_dtype(job, n);
    if (!common(job, n, &real) || (op != CFX_OPID_relu && !is_usual(n, op)))
        return CFX_OK;
    if (op == CFX_OPID_relu)
        return take_relu(job, n, real);
    if (rows[op] & SIZES)
        return read_sizes(job, n);
    if (rows[op] & SAME)
        return cfxi_quantize_note(job, n, &real);
    if (!cfxi_quantize_is_unwritten(job, n) || !takes(op, &real.grid) ||
        !padding_in(n, op, &real.grid, &pad))
        return CFX_OK;
    real.integers = add_move(job, n, op, &m, pad);
    real.kind = rows[op] & LISTS ? CFXI_REAL_LIST : CFXI_REAL_INTEGERS;
    return real.integers ? cfxi_quantize_note(job, n, &real) : job->err->status;
}

/* ---- quantizing before a move --------------------------------------------------------------- */

/* The call whose result `n` quantizes, if it is one that `n` can go before. */
static cfx_node *pulled_over(cfxi_integers *job, const cfx_node *n, cfxi_grid *grid)
{
    size_t at;
    double number;
    const cfx_value x = cfx_node_arg(n, 0);
    if (!cfxi_quantize_is_row(n, CFX_OPID_quantize_per_tensor) || x.kind != CFX_KIND_NODE ||
        n->n_inputs != 1 || !cfxi_quantize_grid_of(job, n, grid))
        return NULL;
    cfx_node *move = x.as.node;
    const cfx_operator op = cfxi_quantize_row_of(move);
    if (!(rows[op] & PULLS) || move->n_users != 1 || !is_usual(move, op) || !takes(op, grid) ||
        !cfxi_quantize_is_unwritten(job, move) || !cfxi_quantize_is_unwritten(job, n))
        return NULL;
    return rows[op] & PADS && !padding_of(move, op, &at, &number) ? NULL : move;
}

/* Each tensor that `move` moves, quantized like `n` before it. */
static cfx_status quantize_each(cfxi_integers *job, const cfx_node *n, cfx_node *move,
                                cfx_node_map *instead)
{
    cfx_value args[6];
    size_t count;
    const cfx_value *items = moved(move, &count);
    for (size_t i = 1; i < 6; i++)
        args[i] = cfx_node_arg(n, i);
    for (size_t i = 0; i < count; i++) {
        if (items[i].kind != CFX_KIND_NODE ||
            cfx_node_map_get(instead, items[i].as.node).kind != CFX_KIND_INVALID)
            continue;
        args[0] = items[i];
        cfx_node *q = cfxi_quantize_add(job, move, CFX_OPID_quantize_per_tensor, args, 6);
        if (!q)
            return job->err->status;
        CFX_TRY(cfx_node_map_set(instead, items[i].as.node, cfx_value_node(q), job->err));
    }
    return CFX_OK;
}

static cfx_status pull_over(cfxi_integers *job, cfx_node *n, cfx_node *move, const cfxi_grid *grid)
{
    size_t at;
    double number = 0;
    const cfx_operator op = cfxi_quantize_row_of(move);
    cfx_node_map *instead = cfx_node_map_new(job->g->allocator, job->err);
    mapping m = {.job = job, .instead = instead};
    cfx_status status = instead ? quantize_each(job, n, move, instead) : CFX_E_NOMEM;
    if (rows[op] & PADS)
        padding_of(move, op, &at, &number);
    cfx_node *made = status == CFX_OK ? add_move(job, move, op, &m,
                                                 cfxi_quantize_round(grid, number)) : NULL;
    cfx_node_map_free(instead);
    if (!made)
        return job->err->status;
    CFX_TRY(cfxi_quantize_replace(job, n, made));
    CFX_TRY(cfx_graph_erase(job->g, n, job->err));
    return cfx_graph_erase(job->g, move, job->err);
}

cfx_status cfxi_quantize_pull(cfxi_integers *job)
{
    cfx_iter it;
    cfxi_grid grid;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, job->g, true);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        cfx_node *move = pulled_over(job, n, &grid);
        if (move)
            status = pull_over(job, n, move, &grid);
    }
    cfx_iter_end(&it);
    return status;
}
