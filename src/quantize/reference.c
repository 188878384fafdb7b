/* reference.c - the reference form of a prepared graph: quantize, dequantize, float operators.
 *
 *     before                                  after
 *     %obs = call_module[target=...](%x)      %q = ...quantize_per_tensor.default(%x, ...)
 *     %fc = call_module[target=fc](%obs)      %dq = ...dequantize_per_tensor.default(%q, ...)
 *                                             %fc = ...functional.linear(%dq, ...)
 *
 * Everything is looked at before anything is changed: whether all observers have seen something,
 * which layers have no function, what is to stay float. The result of that is quantized for the
 * calls in integers that read it, and for nothing else. Afterwards observers, and weights that
 * nobody reads any more, are removed from the modules.
 *
 * Needs: the modules and the host that the graph was prepared with. Keeps: names, order and
 * locations of all nodes but the observers. Linear in nodes and edges.
 */
#include "reference_impl.h"

/* ---- observers ------------------------------------------------------------------------------ */

cfx_status cfxi_quantize_observer(const cfx_quantize_host *host, const cfx_node *n, bool *is,
                                  cfx_quantize_spec *spec, cfx_error *err)
{
    cfx_error why = {.status = CFX_OK};
    const cfx_status status = n->op == CFX_OP_CALL_MODULE
                                  ? host->spec(host->ctx, cfxi_quantize_path(n), spec, &why)
                                  : CFX_E_KEY;
    *is = status == CFX_OK;
    if (status == CFX_OK || status == CFX_E_KEY)
        return CFX_OK;
    *err = why;
    return cfxi_base_failed(err, status);
}

cfx_status cfxi_quantize_push_path(cfxi_convert *c, cfxi_vec *paths, const char *path)
{
    const size_t size = strlen(path) + 1;
    char *copy = cfxi_base_alloc(c->allocator, size);
    if (!copy || !cfxi_base_vec_reserve(paths, 1, sizeof copy, c->allocator)) {
        if (copy)
            cfxi_base_free(c->allocator, copy, size);
        return cfxi_base_nomem(c->err);
    }
    memcpy(copy, path, size);
    ((char **)paths->data)[paths->size++] = copy;
    return CFX_OK;
}

static void free_paths(cfxi_convert *c, cfxi_vec *paths)
{
    while (paths->size > 0) {
        char *path = ((char **)paths->data)[--paths->size];
        cfxi_base_free(c->allocator, path, strlen(path) + 1);
    }
    cfxi_base_vec_free(paths, sizeof(char *), c->allocator);
}

static cfx_node *observed_value(const cfx_node *n)
{
    const cfx_value v = cfx_node_arg(n, 0);
    return v.kind == CFX_KIND_NODE ? v.as.node : NULL;
}

/* The get_attr of an observed weight, which may be transposed; NULL if it is none. */
static const cfx_node *reader_of(const cfx_node *n)
{
    const cfx_node *value = observed_value(n);
    return !value || value->op == CFX_OP_GET_ATTR ? value : cfxi_quantize_transposed(value);
}

/* Whether a call reads `n` as its weight. */
static bool is_weight_of(const cfx_node *n, const cfx_node *user)
{
    const cfxi_quantize_row *row = cfxi_quantize_find_row(cfx_node_operator(user));
    const cfx_value w = cfx_node_operand(user, "weight");
    return row && (row->modes & CFXI_QUANTIZE_LAYER) && w.kind == CFX_KIND_NODE && w.as.node == n;
}

/* Whether an observer is that of a weight: some layer's function reads it as such. */
static bool is_weight(const cfx_node *n)
{
    for (const cfx_use *u = cfx_node_first_use(n); u; u = cfx_use_next(u))
        if (is_weight_of(n, cfx_use_user(u)))
            return true;
    return false;
}

/* Whether it is a weight of the model, not one that the model computes. */
static bool is_stored_weight(const cfx_node *n) { return reader_of(n) && is_weight(n); }

static cfxi_weight weight_of(const cfx_node *n)
{
    const cfx_node *reader = reader_of(n);
    return (cfxi_weight){cfxi_quantize_path(reader), reader != observed_value(n)};
}

static bool is_static(const cfx_quantize_spec *spec)
{
    return spec->observer != CFX_OBSERVE_NOTHING && !cfxi_quantize_each_run(spec) &&
           !cfxi_quantize_is_half(spec);
}

/* ---- looking, before anything is changed ---------------------------------------------------- */

/* The calls that read `n` as their weight stay float. */
static cfx_status keep_users(cfxi_convert *c, cfx_node *n, const char *why)
{
    for (const cfx_use *u = cfx_node_first_use(n); u; u = cfx_use_next(u))
        if (is_weight_of(n, cfx_use_user(u)))
            CFX_TRY(cfxi_quantize_keep(c, cfx_use_user(u), why));
    return CFX_OK;
}

/* What cannot be quantized with what its observer has seen: a weight that is computed, for which
 * nothing ran; a branch that never ran; infinite values, which have no integers; integers. */
static cfx_status no_scale(cfxi_convert *c, cfx_node *n, cfx_status status, const cfx_error *why)
{
    cfx_node *value = observed_value(n);
    if (status == CFX_E_VALUE && is_weight(n))
        return keep_users(c, n, why->message);
    if (value && (status == CFX_E_UNSUPPORTED || status == CFX_E_TYPE ||
                  (status == CFX_E_VALUE && cfx_graph_parent(c->g)))) {
        if (status == CFX_E_UNSUPPORTED && c->bad.status == CFX_OK)
            cfx_error_set(&c->bad, CFX_E_VALUE, "the observer '%.60s' of '%.60s': %.100s",
                          cfxi_quantize_path(n), cfx_node_name(value, NULL), why->message);
        if (!cfxi_base_pointers_set(&c->unscaled, n, n, c->allocator))
            return cfxi_base_nomem(c->err);
        return cfxi_quantize_keep(c, value, status == CFX_E_TYPE ? NULL : why->message);
    }
    if (status == CFX_E_VALUE)
        return cfx_error_set(c->err, status, "the observer '%.80s' of '%.80s': %.140s",
                             cfxi_quantize_path(n), value ? cfx_node_name(value, NULL) : "?",
                             why->message);
    *c->err = *why;
    return cfxi_base_failed(c->err, status);
}

/* A mask of the least float, which stands for -inf, has a scale by which all else becomes 0. */
static cfx_status check_scale(cfx_value scale, cfx_error *err)
{
    static const double most = 1e27;
    if (scale.kind != CFX_KIND_FLOAT || !(scale.as.f > most))
        return CFX_OK;
    return cfx_error_set(err, CFX_E_UNSUPPORTED, "it has observed values that stand for infinity: "
                         "with a scale of %.1e all others would be 0", scale.as.f);
}

static cfx_status check_observer(cfxi_convert *c, cfx_node *n, const cfx_quantize_spec *spec)
{
    cfx_value scale = cfx_value_invalid(), zero = cfx_value_invalid();
    cfx_error why = {.status = CFX_OK};
    const bool weight = is_weight(n);
    c->n_observers++;
    if (is_stored_weight(n)) {
        const char *no;
        CFX_TRY(cfxi_quantize_group_refusal(c, weight_of(n), spec, &no));
        return no ? keep_users(c, n, no) : CFX_OK;
    }
    if (weight && spec->per == CFX_PER_GROUP)
        return keep_users(c, n, "its weights are computed; only stored ones have groups");
    if (!is_static(spec))
        return CFX_OK;
    cfx_status status = c->host->scales(c->host->ctx, c->g, cfxi_quantize_path(n), &scale, &zero,
                                        &why);
    if (status == CFX_OK)
        status = check_scale(scale, &why);
    cfx_value_discard(c->g, scale);
    cfx_value_discard(c->g, zero);
    if (!weight && spec->observer != CFX_OBSERVE_FIXED) {  /* what is given was not seen */
        c->n_static += status != CFX_E_TYPE;
        c->n_seen += status == CFX_OK;
    }
    return status == CFX_OK ? CFX_OK : no_scale(c, n, status, &why);
}

/* Finds the first path of a layer's module, and whether the layer can become a function. */
static cfx_status look_at_layer(cfxi_convert *c, cfx_node *n)
{
    char path[CFXI_QUANTIZE_MAX_PATH];
    char weight[CFXI_QUANTIZE_MAX_PATH];
    cfx_quantize_spec spec;
    cfx_operator op;
    void *id = (void *)(uintptr_t)c->modules->identity(c->modules->ctx, cfxi_quantize_path(n));
    CFX_TRY(cfx_node_operator_of(n, c->modules, &op, c->err));
    const cfxi_quantize_row *row = cfxi_quantize_find_row(op);
    if (row && (row->modes & CFXI_QUANTIZE_RECURRENT)) {
        bool is;
        CFX_TRY(cfxi_quantize_look_at_recurrent(c, n, &is));
        return !is || cfxi_base_pointers_set(&c->layers, n, n, c->allocator)
                   ? CFX_OK : cfxi_base_nomem(c->err);
    }
    if (!row || !id || !cfxi_quantize_weight_observer(c, cfxi_quantize_path(n), path))
        return CFX_OK;
    c->n_observers++;
    CFX_TRY(cfxi_quantize_push_path(c, &c->observers, path));
    const char *why = cfxi_quantize_layer_refusal(c, n, op);
    if (!why && cfxi_quantize_join(weight, cfxi_quantize_path(n), ".", "weight")) {
        CFX_TRY(c->host->spec(c->host->ctx, path, &spec, c->err));
        CFX_TRY(cfxi_quantize_group_refusal(c, (cfxi_weight){weight, false}, &spec, &why));
    }
    if (why)
        return cfxi_quantize_keep(c, n, why);
    char *first = cfxi_base_pointers_get(&c->paths, id);
    if (!first) {
        first = (char *)(uintptr_t)cfxi_quantize_path(n);
        if (!cfxi_base_pointers_set(&c->paths, id, first, c->allocator))
            return cfxi_base_nomem(c->err);
    }
    return cfxi_base_pointers_set(&c->layers, n, first, c->allocator) ? CFX_OK
                                                                      : cfxi_base_nomem(c->err);
}

static cfx_status look_at_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_convert *c = ctx;
    cfx_quantize_spec spec;
    bool observes;
    c->g = g;
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        CFX_TRY(cfxi_quantize_observer(c->host, n, &observes, &spec, c->err));
        if (observes)
            CFX_TRY(check_observer(c, n, &spec));
        else if (n->op == CFX_OP_CALL_MODULE)
            CFX_TRY(look_at_layer(c, n));
    }
    return cfxi_analysis_each_region(g, look_at_graph, c, err);
}

/* ---- observers become quantize and dequantize ----------------------------------------------- */

static cfx_node *by_scale(cfxi_convert *c, cfx_node *n, cfx_value x, const cfx_quantize_spec *spec)
{
    const cfx_value low = cfx_value_int(spec->low), high = cfx_value_int(spec->high);
    const cfx_value dtype = cfx_value_dtype(spec->dtype);
    cfx_value scale = cfx_value_invalid(), zero = cfx_value_invalid();
    if (c->host->scales(c->host->ctx, c->g, cfxi_quantize_path(n), &scale, &zero, c->err) != CFX_OK)
        return NULL;
    const cfx_value q[] = {x, scale, zero, low, high, dtype};
    const cfx_value dq[] = {cfxi_quantize_node_value(cfxi_quantize_add_call(
                                c, n, DECOMPOSED "quantize_per_tensor.default", q, 6)),
                            scale, zero, low, high, dtype};
    return cfxi_quantize_add_call(c, n, DECOMPOSED "dequantize_per_tensor.default", dq, 6);
}

static cfx_value item(cfxi_convert *c, cfx_node *n, cfx_value tuple, int64_t i)
{
    const cfx_value args[] = {tuple, cfx_value_int(i)};
    return cfxi_quantize_node_value(cfxi_quantize_add_call(c, n, "operator.getitem", args, 2));
}

static cfx_node *in_each_run(cfxi_convert *c, cfx_node *n, cfx_value x,
                             const cfx_quantize_spec *spec)
{
    const cfx_value low = cfx_value_int(spec->low), high = cfx_value_int(spec->high);
    const cfx_value dtype = cfx_value_dtype(spec->dtype);
    const char *choose = spec->symmetric ? DECOMPOSED "choose_qparams_symmetric.tensor"
                                         : DECOMPOSED "choose_qparams.tensor";
    const cfx_value range[] = {x, low, high, cfx_value_float(spec->eps), dtype};
    const cfx_value both = cfxi_quantize_node_value(cfxi_quantize_add_call(c, n, choose, range, 5));
    if (both.kind == CFX_KIND_INVALID)
        return NULL;
    const cfx_value scale = item(c, n, both, 0), zero = item(c, n, both, 1);
    const cfx_value q[] = {x, scale, zero, low, high, dtype};
    const cfx_value dq[] = {cfxi_quantize_node_value(cfxi_quantize_add_call(
                                c, n, DECOMPOSED "quantize_per_tensor.tensor", q, 6)),
                            scale, zero, low, high, dtype};
    return cfxi_quantize_add_call(c, n, DECOMPOSED "dequantize_per_tensor.tensor", dq, 6);
}

/* float16 and back. */
static cfx_node *rounded(cfxi_convert *c, cfx_node *n, cfx_value x)
{
    cfx_node *half = cfxi_quantize_add_cast(c, n, x, CFX_DTYPE_FLOAT16);
    return cfxi_quantize_add_cast(c, n, cfxi_quantize_node_value(half), CFX_DTYPE_FLOAT32);
}

static cfx_node *instead_of(cfxi_convert *c, cfx_node *n, const cfx_quantize_spec *spec)
{
    cfx_node *value = observed_value(n);
    if (is_stored_weight(n))
        return cfxi_quantize_weight(c, n, weight_of(n), cfxi_quantize_path(n), true);
    if (is_weight(n) && spec->per != CFX_PER_TENSOR)
        return cfxi_quantize_computed_weight(c, n, spec);
    if (cfxi_quantize_is_half(spec))
        return rounded(c, n, cfx_value_node(value));
    if (cfxi_quantize_each_run(spec))
        return in_each_run(c, n, cfx_value_node(value), spec);
    if (spec->per == CFX_PER_TENSOR)
        return by_scale(c, n, cfx_value_node(value), spec);
    cfx_error_set(c->err, CFX_E_UNSUPPORTED, "node '%.80s': activations have one scale; one for "
                  "each channel is for weights", cfx_node_name(value, NULL));
    return NULL;
}

/* Who reads an observer. */
typedef struct reading {
    const cfxi_convert *c;
    bool from_integers;  /* a call in integers gives the value: it is rounded for all */
    bool kept;           /* a call gives it that was to be in integers and stays float */
    cfx_status status;
} reading;

/* The same as with a rule that keeps these nodes float from the beginning: what is in integers is
 * rounded for all that read it; what is not, for calls in integers alone, not for the graph's
 * output. */
static int reads_float(void *ctx, cfx_node *user)
{
    reading *r = ctx;
    bool in_integers = true;
    if (r->from_integers)
        return 0;
    if (cfxi_base_pointers_get(&r->c->kept, user))
        return 1;
    if (r->kept)
        r->status = cfxi_quantize_in_integers(r->c, user, &in_integers);
    return r->status != CFX_OK ? -1 : !in_integers;
}

static cfx_status let_floats_go(cfxi_convert *c, cfx_node *n, cfx_node *value,
                                const cfx_quantize_spec *spec)
{
    reading by = {.c = c};
    if (!is_weight(n) && !cfxi_quantize_each_run(spec)) {
        by.kept = cfxi_base_pointers_get(&c->kept, value) != NULL;
        CFX_TRY(cfxi_quantize_in_integers(c, value, &by.from_integers));
    }
    const cfx_status status = cfx_node_replace_uses(n, cfx_value_node(value), reads_float, NULL,
                                                    &by, c->err);
    return by.status != CFX_OK ? by.status : status;
}

static cfx_status convert_observer(cfxi_convert *c, cfx_node *n, const cfx_quantize_spec *spec)
{
    cfx_node *value = observed_value(n);
    if (!value)
        return cfx_error_set(c->err, CFX_E_GRAPH, "the observer '%.80s' is not called with a node",
                             cfxi_quantize_path(n));
    CFX_TRY(let_floats_go(c, n, value, spec));
    cfx_node *with = value;
    if (n->n_users > 0 && spec->observer != CFX_OBSERVE_NOTHING &&
        !cfxi_base_pointers_get(&c->unscaled, n))
        with = instead_of(c, n, spec);
    if (!with)
        return cfxi_base_failed(c->err, c->err->status);
    CFX_TRY(cfx_node_replace_uses(n, cfx_value_node(with), NULL, NULL, NULL, c->err));
    CFX_TRY(cfxi_quantize_push_path(c, &c->observers, cfxi_quantize_path(n)));
    CFX_TRY(cfx_graph_erase(c->g, n, c->err));
    cfx_node *of = cfxi_quantize_transposed(value);
    if (of && value->n_users == 0) {
        CFX_TRY(cfx_graph_erase(c->g, value, c->err));
        value = of;
    }
    const bool unread = value->op == CFX_OP_GET_ATTR && value->n_users == 0;
    return unread ? cfx_graph_erase(c->g, value, c->err) : CFX_OK;
}

/* ---- the graph ------------------------------------------------------------------------------ */

static cfx_status convert_node(cfxi_convert *c, cfx_node *n)
{
    cfx_quantize_spec spec;
    cfx_operator op;
    bool observes;
    CFX_TRY(cfxi_quantize_observer(c->host, n, &observes, &spec, c->err));
    if (observes)
        return convert_observer(c, n, &spec);
    if (n->op != CFX_OP_CALL_MODULE || cfxi_base_pointers_get(&c->kept, n) ||
        !cfxi_base_pointers_get(&c->layers, n))
        return CFX_OK;
    CFX_TRY(cfx_node_operator_of(n, c->modules, &op, c->err));
    const cfxi_quantize_row *row = cfxi_quantize_find_row(op);
    return row && (row->modes & CFXI_QUANTIZE_RECURRENT) ? cfxi_quantize_recurrent(c, n, op)
                                                         : cfxi_quantize_layer(c, n, op);
}

static cfx_status convert_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_convert *c = ctx;
    cfx_iter it;
    cfx_status status = CFX_OK;
    c->g = g;
    cfx_iter_begin(&it, g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;)
        status = convert_node(c, n);
    cfx_iter_end(&it);
    return status == CFX_OK ? cfxi_analysis_each_region(g, convert_graph, c, err) : status;
}

/* A result that is returned in integers is not dequantized. */
static cfx_status return_integers(cfxi_convert *c, cfx_graph *g)
{
    cfx_node *output = cfx_graph_last(g);
    cfx_value v = output && output->op == CFX_OP_OUTPUT ? cfx_node_arg(output, 0)
                                                        : cfx_value_invalid();
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    for (size_t i = 0; i < c->opts->n_outputs; i++) {
        const size_t place = c->opts->outputs[i];
        const cfx_value one = items && place < n ? items[place] : v;
        cfx_node *dq = one.kind == CFX_KIND_NODE ? one.as.node : NULL;
        if (!dq || cfx_node_operator(dq) != CFX_OPID_dequantize_per_tensor)
            continue;
        CFX_TRY(cfx_node_replace_input(output, dq, cfx_node_arg(dq, 0), c->err));
        if (dq->n_users == 0)
            CFX_TRY(cfx_graph_erase(g, dq, c->err));
    }
    return CFX_OK;
}

/* ---- what is not needed any more ------------------------------------------------------------ */

/* Collects what a graph still reads and calls, by identity. */
static cfx_status collect_read(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_convert *c = ctx;
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        if (n->op != CFX_OP_GET_ATTR && n->op != CFX_OP_CALL_MODULE)
            continue;
        void *id = (void *)(uintptr_t)c->modules->identity(c->modules->ctx, cfxi_quantize_path(n));
        if (id && !cfxi_base_pointers_set(&c->kept, id, id, c->allocator))
            return cfxi_base_nomem(c->err);
    }
    return cfxi_analysis_each_region(g, collect_read, c, err);
}

static bool is_read(const cfxi_convert *c, const char *path)
{
    char module[CFXI_QUANTIZE_MAX_PATH];
    const char *dot = strrchr(path, '.');
    const void *id = c->modules->identity(c->modules->ctx, path);
    if (!id || cfxi_base_pointers_get(&c->kept, id))
        return true;
    snprintf(module, sizeof module, "%.*s", dot ? (int)(dot - path) : 0, path);
    id = c->modules->identity(c->modules->ctx, module);
    return dot && id && cfxi_base_pointers_get(&c->kept, id);
}

/* Puts the paths of weights that nobody reads first: how many they are. */
static size_t unread_first(cfxi_convert *c)
{
    char **paths = c->replaced.data;
    size_t n = 0;
    for (size_t i = 0; i < c->replaced.size; i++) {
        char *path = paths[i];
        if (!is_read(c, path)) {
            paths[i] = paths[n];
            paths[n++] = path;
        }
    }
    return n;
}

static cfx_status remove_there(cfxi_convert *c, const char *path)
{
    const cfx_module_tree *m = c->modules;
    return m->identity(m->ctx, path) ? m->remove(m->ctx, path, c->err) : CFX_OK;
}

static cfx_status remove_rest(cfxi_convert *c, cfx_graph *g)
{
    char *const *observers = c->observers.data;
    cfxi_base_pointers_free(&c->kept, c->allocator);
    c->kept = (cfxi_pointers){0};
    CFX_TRY(collect_read(g, c, c->err));
    const size_t unread = unread_first(c);
    char *const *replaced = c->replaced.data;
    for (size_t i = 0; i < unread; i++)
        CFX_TRY(remove_there(c, replaced[i]));
    for (size_t i = 0; i < c->observers.size; i++)
        CFX_TRY(remove_there(c, observers[i]));
    return CFX_OK;
}

static void let_go(cfxi_convert *c)
{
    cfxi_base_pointers_free(&c->kept, c->allocator);
    cfxi_base_pointers_free(&c->unscaled, c->allocator);
    cfxi_base_pointers_free(&c->layers, c->allocator);
    cfxi_base_pointers_free(&c->paths, c->allocator);
    cfxi_quantize_stored_free(c);
    free_paths(c, &c->replaced);
    free_paths(c, &c->observers);
}

cfx_status cfx_graph_convert(cfx_graph *g, const cfx_module_tree *modules,
                             const cfx_quantize_host *host, const cfx_convert_options *opts,
                             cfx_error *err)
{
    static const cfx_convert_options defaults = {.n_keep = 0};
    cfx_error own;
    cfx_iter hold;  /* erased nodes, and their paths, stay readable */
    cfxi_convert c = {.modules = cfxi_analysis_modules_or_null(modules), .host = host,
                      .opts = opts ? opts : &defaults, .allocator = g->allocator,
                      .err = cfxi_base_error_or(err, &own)};
    if (!c.modules || !c.modules->identity || !host || !host->spec || !host->scales)
        return cfx_error_set(err, CFX_E_VALUE, "converting a graph needs its modules, and the host "
                             "that made its observers");
    cfx_iter_begin(&hold, g, false);
    cfx_status status = cfxi_quantize_keep_named(&c, g);
    if (status == CFX_OK)
        status = look_at_graph(g, &c, c.err);
    if (status == CFX_OK && c.n_observers == 0)
        status = cfx_error_set(c.err, CFX_E_VALUE, "the graph has no observers: it is not "
                               "prepared, or nothing in it can be quantized as its rules say");
    if (status == CFX_OK && c.n_static > 0 && c.n_seen == 0 && c.bad.status != CFX_OK) {
        *c.err = c.bad;
        status = c.bad.status;
    }
    if (status == CFX_OK && c.n_static > 0 && c.n_seen == 0)
        status = cfx_error_set(c.err, CFX_E_VALUE, "no observer has observed anything; run the "
                               "prepared model on some inputs first");
    if (status == CFX_OK)
        status = convert_graph(g, &c, c.err);
    if (status == CFX_OK)
        status = return_integers(&c, g);
    if (status == CFX_OK)
        status = remove_rest(&c, g);
    cfx_iter_end(&hold);
    let_go(&c);
    return status;
}
