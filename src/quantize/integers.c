/* integers.c - the pass `integers`: the reference form of a quantized model becomes operators that
 * compute with integers.
 *
 *     before                                          after
 *     %q = quantize_per_tensor(%x, 0.5, 3, ...)       %q = quantize_per_tensor(%x, 0.5, 3, ...)
 *     %dq = dequantize_per_tensor(%q, 0.5, 3, ...)    %y = integer_linear(%q, 0.5, 3, %w, ...)
 *     %fc = linear(%dq, %wdq, %b)                     output(%y)
 *     %y = quantize_per_tensor(%fc, 0.25, 0, ...)
 *     output(%y)
 *
 * Integer operators round where they say (docs/quantization.md), the reference form wherever
 * float32 does: results differ by one step at most, where a number is close to the middle between
 * two integers. Moves, tables and pairs that go are exact.
 *
 * Needs: a lowered graph; calls that are spelled otherwise are left alone. Begins with
 * `functionalize`, since what is written to in place is left alone, too.
 * Keeps: names, order and locations of the nodes that stay; inputs and outputs; every effect.
 * Linear in nodes and edges.
 */
#include "integers_impl.h"
#include "pass/pass_impl.h"

#include <cfx/embed/ops.h>
#include <cfx/embed/pass.h>

/* ---- dequantizing --------------------------------------------------------------------------- */

/* Whether the argument says that the result is float32. */
static bool is_float32(cfx_value v)
{
    return v.kind == CFX_KIND_INVALID || v.kind == CFX_KIND_NONE ||
           (v.kind == CFX_KIND_DTYPE && v.as.i == CFX_DTYPE_FLOAT32);
}

static cfx_node *node_of(cfx_value v) { return v.kind == CFX_KIND_NODE ? v.as.node : NULL; }

/* choose_qparams, of which item `i` is `v`; NULL if it is none. */
static cfx_node *chooser(cfx_value v, int64_t i)
{
    const cfx_node *item = node_of(v);
    const bool is_item = item && cfxi_quantize_is_row(item, CFX_OPID_getitem) &&
                         cfx_value_equal(cfx_node_arg(item, 1), cfx_value_int(i));
    cfx_node *n = is_item ? node_of(cfx_node_arg(item, 0)) : NULL;
    return n && cfxi_quantize_is_row(n, CFX_OPID_choose_qparams) ? n : NULL;
}

/* Whether argument `i` of both is the same. */
static bool same_arg(const cfx_node *a, size_t i, const cfx_node *b, size_t k)
{
    return cfx_value_equal(cfx_node_arg(a, i), cfx_node_arg(b, k));
}

/* A tensor that was quantized with what choose_qparams says of it. */
static cfx_status note_each_run(cfxi_integers *job, cfx_node *n)
{
    cfxi_real real = {.kind = CFXI_REAL_EACH_RUN};
    cfx_node *q = node_of(cfx_node_arg(n, 0));
    cfx_node *choose = chooser(cfx_node_arg(n, 1), 0);
    if (!q || !choose || chooser(cfx_node_arg(n, 2), 1) != choose ||
        !cfxi_quantize_is_row(q, CFX_OPID_quantize_per_tensor_tensor) ||
        !same_arg(q, 0, choose, 0))
        return CFX_OK;
    for (size_t i = 1; i < 6; i++)
        if (!same_arg(q, i, n, i))
            return CFX_OK;
    real.float_input = node_of(cfx_node_arg(q, 0));
    const bool known = real.float_input && same_arg(n, 3, choose, 1) &&
                       same_arg(n, 4, choose, 2) &&
                       cfxi_quantize_integer(job, cfx_node_arg(n, 3), &real.grid.low) &&
                       cfxi_quantize_integer(job, cfx_node_arg(n, 4), &real.grid.high) &&
                       cfxi_quantize_number(job, cfx_node_arg(choose, 3), &real.eps);
    return known && real.grid.high - real.grid.low <= 255 ? cfxi_quantize_note(job, n, &real)
                                                          : CFX_OK;
}

static cfx_status visit_dequantize(cfxi_integers *job, cfx_node *n, cfx_operator op)
{
    cfxi_real real = {.kind = CFXI_REAL_INTEGERS, .integers = node_of(cfx_node_arg(n, 0))};
    if (!real.integers || !is_float32(cfx_node_arg(n, 6)))
        return CFX_OK;
    if (cfxi_quantize_grid_of(job, n, &real.grid))
        return cfxi_quantize_note(job, n, &real);
    return op == CFX_OPID_dequantize_per_tensor_tensor ? note_each_run(job, n) : CFX_OK;
}

static cfx_status visit_weights(cfxi_integers *job, cfx_node *n, cfx_operator op)
{
    const bool groups = op == CFX_OPID_dequantize_per_channel_group;
    const cfx_value zeros = cfx_node_arg(n, 2), dtype = cfx_node_arg(n, groups ? 5 : 6);
    const cfx_value number = cfx_node_arg(n, groups ? 6 : 3);
    cfxi_real real = {.kind = CFXI_REAL_WEIGHTS, .integers = node_of(cfx_node_arg(n, 0)),
                      .scales = node_of(cfx_node_arg(n, 1)), .zeros = node_of(zeros)};
    if (!real.integers || !real.scales || (!real.zeros && zeros.kind != CFX_KIND_NONE) ||
        !is_float32(cfx_node_arg(n, 7)) || number.kind != CFX_KIND_INT ||
        dtype.kind != CFX_KIND_DTYPE ||
        (dtype.as.i != CFX_DTYPE_INT8 && dtype.as.i != CFX_DTYPE_UINT8) ||
        (real.zeros && cfxi_quantize_is_float(job, real.zeros)))
        return CFX_OK;
    real.grid.dtype = (cfx_dtype)dtype.as.i;
    *(groups ? &real.group : &real.axis) = number.as.i;
    return cfxi_quantize_note(job, n, &real);
}

/* ---- quantizing ----------------------------------------------------------------------------- */

static bool is_returned(const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (use->user->op == CFX_OP_OUTPUT)
            return true;
    return false;
}

/* Integers that were dequantized and are quantized again, or a function of them. A caller who gets
 * a result may write to it, so that it must be another tensor than an input. */
static cfx_status visit_quantize(cfxi_integers *job, cfx_node *n)
{
    cfxi_grid grid;
    const cfxi_real x = cfxi_quantize_real_of(job, cfx_node_arg(n, 0));
    if ((x.kind != CFXI_REAL_INTEGERS && x.kind != CFXI_REAL_FUNCTION) ||
        !cfxi_quantize_is_unwritten(job, n) || !cfxi_quantize_grid_of(job, n, &grid))
        return CFX_OK;
    const bool same = x.kind == CFXI_REAL_INTEGERS && grid.low <= x.grid.low &&
                      x.grid.high <= grid.high && cfxi_quantize_same_numbers(&grid, &x.grid);
    if (!same && cfxi_quantize_is_constant(job, x.integers))
        return CFX_OK;  /* a table, for one: const_fold computes it */
    if (!same)
        return cfxi_quantize_make_table(job, n, &x);
    if (is_returned(n))
        return CFX_OK;
    CFX_TRY(cfxi_quantize_replace(job, n, x.integers));
    return cfx_graph_erase(job->g, n, job->err);
}

/* ---- the walk ------------------------------------------------------------------------------- */

static bool reads_integers(const cfxi_integers *job, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfx_value v = cfx_value_node(n->inputs[i].def);
        if (cfxi_quantize_real_of(job, v).kind == CFXI_REAL_INTEGERS)
            return true;
    }
    return false;
}

static bool is_known(const cfxi_integers *job, cfx_node *n)
{
    const cfxi_real real = cfxi_quantize_real_of(job, cfx_value_node(n));
    return real.kind != CFXI_REAL_UNKNOWN || real.why;
}

/* A call of any other row: one kind after the other is tried. */
static cfx_status visit_call(cfxi_integers *job, cfx_node *n, cfx_operator op)
{
    typedef cfx_status visit_fn(cfxi_integers *job, cfx_node *n, cfx_operator op);
    static visit_fn *const kinds[] = {cfxi_quantize_move, cfxi_quantize_function,
                                      cfxi_quantize_product, cfxi_quantize_sum};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        CFX_TRY(kinds[i](job, n, op));
        if (n->n_users == 0 || is_known(job, n))
            return CFX_OK;
    }
    if (!reads_integers(job, n))
        return CFX_OK;
    return cfxi_quantize_stays(job, n, "this operator has no integer form for such inputs");
}

static cfx_status visit(cfxi_integers *job, cfx_node *n)
{
    const cfx_operator op = cfxi_quantize_row_of(n);
    switch ((int)op) {
    case CFX_OPID_NONE:
        return CFX_OK;
    case CFX_OPID_dequantize_per_tensor:
    case CFX_OPID_dequantize_per_tensor_tensor:
    case CFX_OPID_dequantize_per_tensor_tensor2:
        return visit_dequantize(job, n, op);
    case CFX_OPID_dequantize_per_channel:
    case CFX_OPID_dequantize_per_channel_group:
        return visit_weights(job, n, op);
    case CFX_OPID_quantize_per_tensor:
    case CFX_OPID_quantize_per_tensor_tensor:
    case CFX_OPID_quantize_per_tensor_tensor2:
        return visit_quantize(job, n);
    default:
        return n->n_users > 0 ? visit_call(job, n, op) : CFX_OK;
    }
}

static cfx_status visit_all(cfxi_integers *job)
{
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, job->g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;)
        status = visit(job, n);
    cfx_iter_end(&it);
    return status;
}

/* ---- afterwards ----------------------------------------------------------------------------- */

/* Whether a node can go once nobody uses it. */
static bool is_pure(const cfx_node *n)
{
    const cfx_operator op = cfxi_quantize_row_of(n);
    if (n->op == CFX_OP_GET_ATTR)
        return true;
    return op != CFX_OPID_NONE && cfx_operator_regions(op) == 0 &&
           !cfxi_analysis_operator_writes(op) &&
           !(cfx_operator_flags(op) & (CFX_OPERATOR_STATE | CFX_OPERATOR_CHECKS |
                                       CFX_OPERATOR_GLOBAL));
}

/* Floats that were copied to be moved are dequantized behind the move instead. */
static cfx_status sink(cfxi_integers *job, cfx_node *n)
{
    const cfxi_real real = cfxi_quantize_real_of(job, cfx_value_node(n));
    if (real.kind != CFXI_REAL_INTEGERS || !cfxi_quantize_copies(cfxi_quantize_row_of(n)))
        return CFX_OK;
    cfx_node *made = cfxi_quantize_add_dequantize(job, n, real.integers, &real.grid);
    return made ? cfxi_quantize_replace(job, n, made) : job->err->status;
}

static cfx_status clean_up(cfxi_integers *job)
{
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, job->g, true);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        if (n->n_users > 0)
            status = sink(job, n);
        if (status == CFX_OK && n->n_users == 0 && is_pure(n) &&
            !cfxi_base_map_find(&job->idle, n, sizeof(uint64_t)))
            status = cfx_graph_erase(job->g, n, job->err);
    }
    cfx_iter_end(&it);
    return status;
}

static cfx_status report(const cfxi_integers *job)
{
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, job->g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        const cfxi_real real = cfxi_quantize_real_of(job, cfx_value_node(n));
        if (real.why && n->n_users > 0)
            status = job->options.each(job->options.ctx, n, real.why);
    }
    cfx_iter_end(&it);
    if (status != CFX_OK && job->err->status == CFX_OK)
        cfx_error_set(job->err, status, "the caller stopped the pass");
    return status;
}

/* ---- a graph -------------------------------------------------------------------------------- */

/* Nodes that nobody used from the beginning stay. */
static cfx_status note_idle(cfxi_integers *job)
{
    for (cfx_node *n = cfx_graph_first(job->g); n; n = cfx_node_next(n))
        if (n->n_users == 0 &&
            !cfxi_base_map_add(&job->idle, n, sizeof(uint64_t), job->g->allocator))
            return cfxi_base_nomem(job->err);
    return CFX_OK;
}

static cfx_status run(cfxi_integers *job)
{
    CFX_TRY(
        cfxi_analysis_aliases_begin(&job->aliases, job->g, job->model, CFXI_USES_ALL, job->err));
    CFX_TRY(cfxi_analysis_aliases_note_writes(&job->aliases, job->err));
    CFX_TRY(note_idle(job));
    CFX_TRY(cfxi_quantize_pull(job));
    CFX_TRY(visit_all(job));
    CFX_TRY(clean_up(job));
    return job->options.each ? report(job) : CFX_OK;
}

static bool has_quantized(const cfx_graph *g)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        const cfx_operator op = cfxi_quantize_row_of(n);
        if (op >= CFX_OPID_quantize_per_tensor && op <= CFX_OPID_dequantize_per_token)
            return true;
    }
    return false;
}

static cfx_status find_quantized(cfx_graph *g, void *found, cfx_error *err)
{
    *(bool *)found = *(bool *)found || has_quantized(g);
    return *(bool *)found ? CFX_OK : cfxi_analysis_each_region(g, find_quantized, found, err);
}

static cfx_status run_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_integers *all = ctx;
    cfxi_integers job = *all;
    cfx_iter it;  /* keeps erased nodes apart from new ones */
    if (has_quantized(g)) {
        job.g = g;
        cfx_iter_begin(&it, g, false);
        const cfx_status status = run(&job);
        cfx_iter_end(&it);
        if (job.aliases.graph)
            cfxi_analysis_aliases_end(&job.aliases);
        cfxi_base_map_free(&job.reals, sizeof(cfxi_real), g->allocator);
        cfxi_base_map_free(&job.idle, sizeof(uint64_t), g->allocator);
        all->changed = job.changed;
        CFX_TRY(status);
    }
    return cfxi_analysis_each_region(g, run_graph, all, err);
}

static cfx_status run_all(cfxi_integers *all, cfx_graph *g)
{
    static const cfx_functionalize_options strict = {.strict = true};
    bool found = false, changed = false;
    CFX_TRY(find_quantized(g, &found, all->err));
    if (!found)
        return CFX_OK;
    cfx_status status = cfxi_pass_functionalize(g, all->modules, &strict, &changed, all->err);
    all->changed = changed;
    return status == CFX_OK ? run_graph(g, all, all->err) : status;
}

cfx_status cfx_graph_integers(cfx_graph *g, const cfx_module_tree *modules,
                              const cfx_integers_options *options, bool *changed, cfx_error *err)
{
    cfx_error own;
    cfxi_survey survey = {0};
    cfxi_effect_model model = {.modules = cfxi_analysis_modules_or_null(modules), .strict = true};
    cfxi_integers all = {.root = g, .modules = model.modules, .model = &model, .survey = &survey};
    err = cfxi_base_error_or(err, &own);
    *err = (cfx_error){0};
    all.err = err;
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    if (options)
        all.options = *options;
    const cfx_status status = run_all(&all, g);
    if (survey.model)
        cfxi_analysis_survey_end(&survey);
    cfxi_analysis_model_end(&model);
    if (changed)
        *changed = all.changed;
    return status;
}

cfx_status cfxi_pass_integers(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                              bool *changed, cfx_error *err)
{
    return cfx_graph_integers(g, modules, opts, changed, err);
}
