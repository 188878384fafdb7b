/* prepare.c - calls of observers behind the values that become integers.
 *
 *     before                              after
 *     %x = placeholder[target=x]()        %x = placeholder[target=x]()
 *     %fc = call_module[target=fc](%x)    %activation_post_process_0 = call_module[...](%x)
 *     output(%fc)                         %fc = call_module[...](%activation_post_process_0)
 *                                         %activation_post_process_1 = call_module[...](%fc)
 *                                         output(%activation_post_process_1)
 *
 * Nodes are taken in order: first their inputs, then their result. An input that is observed
 * already, as the result of another node or the input of one, is read from there. What gives the
 * integers that it takes (a row SHARE) shares the observer of its first input.
 *
 * Needs: the modules, and a host that makes observers. Keeps: names, order and locations of all
 * nodes; in training the batch-norms that layers learn with go. Linear in nodes and edges.
 */
#include "integers_impl.h"
#include "prepare_impl.h"

/* ---- observers ------------------------------------------------------------------------------ */

/* A path for an observer at which there is nothing. */
static void free_path(cfxi_prepare *p, char path[CFXI_QUANTIZE_MAX_PATH])
{
    do
        snprintf(path, CFXI_QUANTIZE_MAX_PATH, "activation_post_process_%zu", p->next++);
    while (p->modules->identity(p->modules->ctx, path));
}

/* A call of the observer at `path`, behind the value. */
static cfx_node *add_call(cfxi_prepare *p, cfx_node *value, const char *path)
{
    const cfx_insert_point old = cfx_graph_insert_point(p->g);
    const cfx_value arg = cfx_value_node(value);
    const cfx_target target = {.name = path, .size = strlen(path)};
    cfx_node *call = NULL;
    if (cfx_graph_set_insert_point(p->g, (cfx_insert_point){value, true}, p->err) == CFX_OK)
        call = cfxi_analysis_add_call(p->g, CFX_OP_CALL_MODULE, target, &arg, 1, p->err);
    cfx_graph_set_insert_point(p->g, old, NULL);
    if (call)
        cfxi_analysis_place_like(call, value);
    return call;
}

/* Remembers what an observer of `value` gives; it becomes the first of them. */
static cfx_status note(cfxi_prepare *p, cfx_node *observer, cfx_node *value, cfxi_observed what)
{
    cfxi_observed *o = cfxi_base_map_add(&p->observed, observer, sizeof *o, p->allocator);
    if (!o)
        return cfxi_base_nomem(p->err);
    *o = what;
    o->next = value ? cfxi_base_pointers_get(&p->first, value) : NULL;
    if (value && !cfxi_base_pointers_set(&p->first, value, observer, p->allocator))
        return cfxi_base_nomem(p->err);
    return CFX_OK;
}

static const cfxi_observed *observed(const cfxi_prepare *p, const cfx_node *n)
{
    return cfxi_base_map_find(&p->observed, n, sizeof(cfxi_observed));
}

/* An observer behind `value`; NULL with p->err set. With `like`, it is the same object as that. */
static cfx_node *observe(cfxi_prepare *p, cfx_node *value, const cfx_qconfig *config, bool weight,
                         const cfx_node *like)
{
    const cfx_quantize_spec *spec = weight ? &config->weight : &config->activation;
    char path[CFXI_QUANTIZE_MAX_PATH];
    free_path(p, path);
    const cfx_status status =
        like ? p->host->share(p->host->ctx, path, cfxi_quantize_path(like), p->err)
             : p->host->observe(p->host->ctx, path, config, weight, p->err);
    cfx_node *call = NULL;
    if (status != CFX_OK)
        cfxi_base_failed(p->err, status);
    else
        call = add_call(p, value, path);
    const cfxi_observed *of_like = like ? observed(p, like) : NULL;
    const cfxi_observed what = {.weight = weight ? spec : NULL,
                                .dtype = of_like ? of_like->dtype : spec->dtype,
                                .each_run = cfxi_quantize_each_run(spec)};
    if (!call || note(p, call, value, what) != CFX_OK)
        return NULL;
    return call;
}

/* The observer by which a node reads `value`: `value` itself if that is quantized as it is to be,
 * one that is there, or a new one. NULL with p->err set. */
static cfx_node *observer_for(cfxi_prepare *p, cfx_node *value, const cfx_qconfig *config,
                              bool weight)
{
    const cfx_quantize_spec *spec = weight ? &config->weight : &config->activation;
    const bool each_run = cfxi_quantize_each_run(spec);
    const cfxi_observed *o = observed(p, value);
    if (o && !o->each_run && !each_run && o->dtype == spec->dtype)
        return value;
    cfx_node *at = cfxi_base_pointers_get(&p->first, value);
    for (; at; at = o->next) {
        o = observed(p, at);
        const bool is = weight ? o->weight && cfxi_quantize_same_spec(o->weight, spec)
                               : !o->weight && o->dtype == spec->dtype && o->each_run == each_run;
        if (is)
            return at;
    }
    return observe(p, value, config, weight, NULL);
}

/* ---- inputs --------------------------------------------------------------------------------- */

/* The node that a call gives for a parameter of its row; NULL if none. */
static cfx_node *operand(const cfx_node *n, const char *name)
{
    cfx_value v = n->op == CFX_OP_CALL_MODULE ? cfx_value_invalid() : cfx_node_operand(n, name);
    return v.kind == CFX_KIND_NODE ? v.as.node : NULL;
}

/* Whether a parameter takes tensors: those of shapes and other numbers do not. A place that the row
 * does not have is another number of a list: x.view(2, n). */
static bool takes_tensors(const cfx_node *n, size_t place, const char *keyword)
{
    cfx_schema_param param;
    const cfx_operator op = cfx_node_operator(n);
    if (n->op == CFX_OP_CALL_MODULE || op == CFX_OPID_NONE)
        return true;
    const size_t i = cfxi_ops_node_param_of(n, place, keyword);
    return cfx_operator_param(op, i, &param) && (strncmp(param.type, "Tensor", 6) == 0 ||
                                                 strncmp(param.type, "Scalar", 6) == 0 ||
                                                 strncmp(param.type, "Any", 3) == 0);
}

static bool has_node(cfx_value v, const cfx_node *n)
{
    size_t count;
    const cfx_value *items = cfx_value_items(v, &count);
    for (size_t i = 0; i < count; i++)
        if (has_node(items[i], n))
            return true;
    return v.kind == CFX_KIND_NODE && v.as.node == n;
}

/* Whether an input stands where only numbers do. */
static bool is_only_number(const cfx_node *n, const cfx_node *input)
{
    size_t count;
    const cfx_value *kwargs = cfx_value_items(cfx_node_kwargs(n), &count);
    for (size_t i = 0; i < cfx_node_num_args(n); i++)
        if (has_node(cfx_node_arg(n, i), input) && takes_tensors(n, i, NULL))
            return false;
    for (size_t i = 0; i + 1 < count; i += 2)
        if (has_node(kwargs[i + 1], input) && takes_tensors(n, 0, cfx_value_text(kwargs[i], NULL)))
            return false;
    return true;
}

/* The reference form computes in float32. */
cfx_status cfxi_quantize_check_dtype(const cfxi_prepare *p, const char *path)
{
    cfx_error why = {.status = CFX_OK};
    cfx_value v;
    if (cfxi_ops_module_attr(p->modules, p->g, path, "dtype", &v, &why) != CFX_OK)
        return CFX_OK;  /* it is computed */
    const cfx_dtype dtype = v.kind == CFX_KIND_DTYPE ? (cfx_dtype)v.as.i : CFX_DTYPE_FLOAT32;
    cfx_value_discard(p->g, v);
    if (dtype == CFX_DTYPE_FLOAT32)
        return CFX_OK;
    return cfx_error_set(p->err, CFX_E_TYPE, "the weight '%.100s' is %s, but quantization is for "
                         "float32: call model.float() first, or let it stay as it is by a rule "
                         "with None", path, cfx_dtype_name(dtype));
}

/* Whether an input of a node is to be observed, and as a weight. */
static bool is_wanted(const cfxi_prepare *p, const cfx_node *n, const cfxi_quantize_facts *f,
                      const cfx_node *input, bool *weight)
{
    const cfxi_quantize_facts *of_input = cfxi_quantize_facts_of(p, input);
    const cfx_quantize_spec *x = &f->config->activation;
    *weight = input == operand(n, "weight") && input != operand(n, "input");
    if (*weight)
        return f->row->modes & CFXI_QUANTIZE_LAYER;
    if (input == operand(n, "bias"))  /* as in PyTorch */
        return cfxi_quantize_is_half(x) && !cfxi_quantize_each_run(x);
    if (x->observer == CFX_OBSERVE_NOTHING || x->observer == CFX_OBSERVE_AS_INPUT ||
        (of_input && (of_input->number || of_input->whole)) || is_only_number(n, input))
        return false;
    return !cfxi_quantize_each_run(x) || input == n->inputs[0].def;
}

/* Whether two nodes are calls of one chain. */
static bool in_one_chain(const cfxi_prepare *p, const cfx_node *n, const cfx_node *input)
{
    const cfxi_quantize_facts *f = cfxi_quantize_facts_of(p, n);
    const cfxi_quantize_facts *of_input = cfxi_quantize_facts_of(p, input);
    return f && f->head && (input == f->head || (of_input && of_input->head == f->head));
}

/* Lets a node read its inputs from observers. */
static cfx_status observe_inputs(cfxi_prepare *p, cfx_node *n, const cfxi_quantize_facts *f)
{
    cfx_node_map *instead = cfx_node_map_new(p->allocator, p->err);
    cfx_status status = instead ? CFX_OK : CFX_E_NOMEM;
    for (uint32_t i = 0; status == CFX_OK && i < n->n_inputs; i++) {
        cfx_node *input = n->inputs[i].def;
        bool weight;
        if (in_one_chain(p, n, input) || !is_wanted(p, n, f, input, &weight))
            continue;
        if (weight && input->op == CFX_OP_GET_ATTR)
            status = cfxi_quantize_check_dtype(p, cfxi_quantize_path(input));
        if (status != CFX_OK)
            break;
        cfx_node *from = observer_for(p, input, f->config, weight);
        status = from ? cfx_node_map_set(instead, input, cfx_value_node(from), p->err)
                      : cfxi_base_failed(p->err, p->err->status);
    }
    if (status == CFX_OK)
        status = cfxi_analysis_replace_inputs(n, instead, p->err);
    cfx_node_map_free(instead);
    return status;
}

/* ---- results -------------------------------------------------------------------------------- */

static size_t count_tensors(const cfxi_prepare *p, const cfx_node *n)
{
    size_t count = 0;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfxi_quantize_facts *f = cfxi_quantize_facts_of(p, n->inputs[i].def);
        if (!f || !f->number)
            count += n->inputs[i].count;
    }
    return count;
}

static bool shares(const cfxi_prepare *p, const cfx_node *n, const cfxi_quantize_facts *f)
{
    return f->row->role == CFXI_QUANTIZE_SHARE ||
           (f->row->role == CFXI_QUANTIZE_COUNT && count_tensors(p, n) == 1) ||
           f->config->activation.observer == CFX_OBSERVE_AS_INPUT;
}

/* The argument whose observer the result shares: a tensor, or a list of them. */
static cfx_value first_argument(const cfx_node *n)
{
    if (cfx_node_num_args(n) > 0 && (cfx_node_arg(n, 0).kind == CFX_KIND_NODE ||
                                     cfx_node_arg(n, 0).kind == CFX_KIND_LIST ||
                                     cfx_node_arg(n, 0).kind == CFX_KIND_TUPLE))
        return cfx_node_arg(n, 0);
    return n->n_inputs > 0 ? cfx_value_node(n->inputs[0].def) : cfx_value_none();
}

/* The observer that a node's result is to have, too; those of the other tensors of a list become
 * it. NULL if its input has none. */
static cfx_status shared_observer(cfxi_prepare *p, const cfx_node *n, cfx_node **first)
{
    const cfx_value v = first_argument(n);
    size_t count;
    const cfx_value *items = cfx_value_items(v, &count);
    *first = NULL;
    if (v.kind == CFX_KIND_NODE) {
        items = &v;
        count = 1;
    }
    for (size_t i = 0; i < count; i++) {
        cfx_node *item = items[i].kind == CFX_KIND_NODE ? items[i].as.node : NULL;
        const cfxi_observed *o = item ? observed(p, item) : NULL;
        if (!o || item->op != CFX_OP_CALL_MODULE)
            continue;
        if (!*first)
            *first = item;
        else if (item != *first)
            CFX_TRY(p->host->share(p->host->ctx, cfxi_quantize_path(item),
                                   cfxi_quantize_path(*first), p->err));
    }
    return CFX_OK;
}

static int all_but(void *observer, cfx_node *user) { return user != observer; }

static cfx_status observe_result(cfxi_prepare *p, cfx_node *n, const cfxi_quantize_facts *f)
{
    cfx_node *last = f->tail ? f->tail : n;
    cfx_node *like = NULL;
    const cfx_observer_kind kind = f->config->activation.observer;
    if (kind == CFX_OBSERVE_NOTHING || cfxi_quantize_each_run(&f->config->activation) ||
        f->row->role == CFXI_QUANTIZE_TAKE)
        return CFX_OK;
    if (shares(p, n, f) && !f->tail)
        CFX_TRY(shared_observer(p, n, &like));
    if (!like && kind == CFX_OBSERVE_AS_INPUT) {
        p->next++;  /* PyTorch makes one and takes it away: its names stay the same */
        return CFX_OK;
    }
    cfx_node *observer = observe(p, last, f->config, false, like);
    if (!observer)
        return cfxi_base_failed(p->err, p->err->status);
    return cfx_node_replace_uses(last, cfx_value_node(observer), all_but, NULL, observer, p->err);
}

/* ---- layers --------------------------------------------------------------------------------- */

/* The layer's weights get an observer of their own; in training the layer learns with it. */
static cfx_status observe_weights(cfxi_prepare *p, cfx_node *n, const cfxi_quantize_facts *f)
{
    const char *name = p->opts->training ? "weight_fake_quant" : "weight_observer";
    char path[CFXI_QUANTIZE_MAX_PATH];
    char weight[CFXI_QUANTIZE_MAX_PATH];
    if (n->op != CFX_OP_CALL_MODULE || f->config->weight.observer == CFX_OBSERVE_NOTHING)
        return CFX_OK;
    if (f->row->modes & CFXI_QUANTIZE_RECURRENT)
        return cfxi_quantize_observe_recurrent(p, n, f->config);
    if (!(f->row->modes & CFXI_QUANTIZE_LAYER))
        return CFX_OK;
    if (!cfxi_quantize_join(path, cfxi_quantize_path(n), ".", name))
        return cfx_error_set(p->err, CFX_E_LIMIT, "the path '%.100s' is too long",
                             cfxi_quantize_path(n));
    if (p->modules->identity(p->modules->ctx, path))
        return CFX_OK;  /* the module is called more than once */
    if (cfxi_quantize_join(weight, cfxi_quantize_path(n), ".", "weight"))
        CFX_TRY(cfxi_quantize_check_dtype(p, weight));
    if (!p->opts->training)
        return p->host->observe(p->host->ctx, path, f->config, true, p->err);
    if (!p->host->train)
        return cfx_error_set(p->err, CFX_E_UNSUPPORTED,
                             "layers cannot be trained with quantized weights here");
    return p->host->train(p->host->ctx, cfxi_quantize_path(n),
                          f->norm ? cfxi_quantize_path(f->norm) : NULL, f->config, p->err);
}

/* The batch-norm that the layer does, too. */
static cfx_status drop_norm(cfxi_prepare *p, cfx_node *n, const cfxi_quantize_facts *f)
{
    if (!f->norm)
        return CFX_OK;
    CFX_TRY(cfx_node_replace_uses(f->norm, cfx_value_node(n), NULL, NULL, NULL, p->err));
    return cfx_graph_erase(p->g, f->norm, p->err);
}

/* ---- a node --------------------------------------------------------------------------------- */

/* What the later calls of a chain read besides the call before them. */
static cfx_status prepare_tail(cfxi_prepare *p, cfx_node *n, const cfxi_quantize_facts *f)
{
    const cfxi_quantize_facts *head = f->head ? cfxi_quantize_facts_of(p, f->head) : NULL;
    bool quietly;
    if (n->n_inputs < 2 || !head || !head->config || cfxi_quantize_refusal(p, head, &quietly))
        return CFX_OK;
    return observe_inputs(p, n, head);
}

static cfx_status prepare_node(cfxi_prepare *p, cfx_node *n)
{
    cfxi_quantize_facts *found = cfxi_quantize_facts_of(p, n);
    if (found && found->is_tail)
        return prepare_tail(p, n, found);
    if (!found || !found->config || (found->row && (found->number || found->whole)))
        return CFX_OK;
    const cfxi_quantize_facts f = *found;
    bool quietly;
    if (!f.row || cfxi_quantize_refusal(p, &f, &quietly))
        return CFX_OK;
    if (f.product)
        CFX_TRY(cfxi_quantize_make_layer(p, n));
    CFX_TRY(observe_weights(p, n, &f));
    CFX_TRY(drop_norm(p, n, &f));
    if ((f.row->role == CFXI_QUANTIZE_COUNT || f.row->role == CFXI_QUANTIZE_SHARE) &&
        count_tensors(p, n) == 0)
        return CFX_OK;
    CFX_TRY(observe_inputs(p, n, &f));
    return observe_result(p, n, &f);
}

/* ---- what stays float ----------------------------------------------------------------------- */

/* Whether a node computes from floats, and does not only move them. */
static bool computes(const cfxi_prepare *p, const cfx_node *n, const cfxi_quantize_facts *f)
{
    if (f->number || f->whole || n->n_users == 0 || cfxi_quantize_moves(f->op) ||
        cfx_operator_regions(f->op) > 0)
        return false;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfxi_quantize_facts *g = cfxi_quantize_facts_of(p, n->inputs[i].def);
        if (!g || (!g->number && !g->whole))
            return true;
    }
    return false;
}

enum { MOST_MOVES = 32 };  /* behind each other, so that the time for all nodes is linear */

/* The one input of a node that is not a number; NULL if there are more or none. */
static const cfx_node *only_tensor(const cfxi_prepare *p, const cfx_node *n)
{
    const cfx_node *only = NULL;
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfxi_quantize_facts *f = cfxi_quantize_facts_of(p, n->inputs[i].def);
        if (f && f->number)
            continue;
        if (only)
            return NULL;
        only = n->inputs[i].def;
    }
    return only;
}

/* Whether a value is observed, perhaps before it was moved. */
static bool was_observed(const cfxi_prepare *p, const cfx_node *n)
{
    for (int i = 0; i < MOST_MOVES; i++) {
        const cfxi_quantize_facts *f = cfxi_quantize_facts_of(p, n);
        if (observed(p, n))
            return true;
        if (!f || !cfxi_quantize_moves(f->op) || n->n_inputs == 0)
            return false;
        n = n->inputs[0].def;
    }
    return false;
}

/* Whether all that read a node observe it, perhaps after one has moved it. */
static bool is_observed(const cfxi_prepare *p, const cfx_node *n)
{
    const cfx_node *user = cfxi_quantize_only_user(n);
    for (int i = 0; i < MOST_MOVES && user && !observed(p, user); i++) {
        const cfxi_quantize_facts *f = cfxi_quantize_facts_of(p, user);
        if (!f || !cfxi_quantize_moves(f->op))
            return false;
        n = user;
        user = cfxi_quantize_only_user(n);
    }
    for (const cfx_use *u = cfx_node_first_use(n); u; u = cfx_use_next(u))
        if (!observed(p, cfx_use_user(u)))
            return false;
    return n->n_users > 0;
}

/* Why a node stays float that has a configuration and no row; NULL if nobody would mind. */
static const char *no_row(const cfxi_prepare *p, const cfx_node *n, const cfxi_quantize_facts *f)
{
    const cfx_quantize_spec *x = &f->config->activation;
    if (x->observer == CFX_OBSERVE_NOTHING || cfxi_quantize_each_run(x) || !computes(p, n, f))
        return NULL;
    if (p->opts->backend && !p->opts->backend_adds)
        return "the backend config does not have this call";
    if (cfxi_quantize_find_row(f->op))
        return "PyTorch's FX mode leaves this spelling in float; the option every_spelling doesn't";
    const cfx_node *only = cfxi_quantize_is_elementwise(f->op) ? only_tensor(p, n) : NULL;
    if (!only)
        return "there is no integer form of this call";
    if (was_observed(p, only) && is_observed(p, n))
        return NULL;  /* it becomes a table */
    return "its input or its result stays float";
}

static void report(const cfxi_prepare *p, const cfx_node *n)
{
    const cfxi_quantize_facts *f = cfxi_quantize_facts_of(p, n);
    bool quietly = false;
    if (!f || !f->config || f->is_tail || (f->row && (f->number || f->whole)))
        return;
    const char *why = f->row ? cfxi_quantize_refusal(p, f, &quietly) : no_row(p, n, f);
    if (why && !quietly)
        p->opts->left(p->opts->ctx, n, why);
}

/* ---- the graph ------------------------------------------------------------------------------ */

static bool has_place(const size_t *places, size_t n, size_t place)
{
    for (size_t i = 0; i < n; i++)
        if (places[i] == place)
            return true;
    return false;
}

/* Inputs that the caller says are quantized, or integers, need no observer. */
static cfx_status note_inputs(cfxi_prepare *p)
{
    const cfx_prepare_options *o = p->opts;
    size_t place = 0;
    for (cfx_node *n = cfxi_ir_next_input(p->g, NULL); n; n = cfxi_ir_next_input(p->g, n)) {
        if (has_place(o->inputs, o->n_inputs, place))
            CFX_TRY(note(p, n, NULL, (cfxi_observed){.dtype = CFX_DTYPE_UINT8}));
        if (has_place(o->whole, o->n_whole, place) &&
            !cfxi_base_pointers_set(&p->wholes, n, n, p->allocator))
            return cfxi_base_nomem(p->err);
        place++;
    }
    return CFX_OK;
}

/* The nodes as they are now: those that are inserted are not looked at. */
static cfx_status snapshot(const cfxi_prepare *p, cfxi_vec *nodes)
{
    if (!cfxi_base_vec_reserve(nodes, p->g->size + 1, sizeof(cfx_node *), p->allocator))
        return cfxi_base_nomem(p->err);
    for (cfx_node *n = cfx_graph_first(p->g); n; n = cfx_node_next(n))
        ((cfx_node **)nodes->data)[nodes->size++] = n;
    return CFX_OK;
}

static void forget(cfxi_prepare *p)
{
    cfxi_base_map_free(&p->facts, sizeof(cfxi_quantize_facts), p->allocator);
    cfxi_base_map_free(&p->observed, sizeof(cfxi_observed), p->allocator);
    cfxi_base_pointers_free(&p->first, p->allocator);
    cfxi_quantize_order_free(&p->order);
    p->facts = p->observed = p->first = (cfxi_hash_map){0};
}

static cfx_status prepare_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfxi_prepare *p = ctx;
    cfxi_vec nodes = {0};
    cfx_iter hold;  /* erased nodes stay readable */
    p->g = g;
    p->order = cfxi_quantize_order_new(p->allocator);
    cfx_iter_begin(&hold, g, false);
    cfx_status status = cfx_graph_parent(g) ? CFX_OK : note_inputs(p);
    if (status == CFX_OK)
        status = cfxi_quantize_look(p);
    if (status == CFX_OK)
        status = snapshot(p, &nodes);
    for (size_t i = 0; status == CFX_OK && i < nodes.size; i++)
        if (!cfxi_ir_node_erased(((cfx_node **)nodes.data)[i]))
            status = prepare_node(p, ((cfx_node **)nodes.data)[i]);
    for (size_t i = 0; status == CFX_OK && p->opts->left && i < nodes.size; i++)
        if (!cfxi_ir_node_erased(((cfx_node **)nodes.data)[i]))
            report(p, ((cfx_node **)nodes.data)[i]);
    cfx_iter_end(&hold);
    cfxi_base_vec_free(&nodes, sizeof(cfx_node *), p->allocator);
    forget(p);
    if (status == CFX_OK)
        status = cfxi_analysis_each_region(g, prepare_graph, p, err);
    return cfxi_base_failed(err, status);
}

/* ---- checks --------------------------------------------------------------------------------- */

static cfx_status check_node(cfxi_prepare *p, const cfx_node *n)
{
    cfx_quantize_spec spec;
    bool observes;
    if (cfxi_quantize_is_quantized(cfx_node_operator(n)))
        return cfx_error_set(p->err, CFX_E_VALUE, "the model is quantized already: node '%.80s' "
                             "calls '%s'. Prepare the float model", cfx_node_name(n, NULL),
                             cfx_operator_name(cfx_node_operator(n)));
    CFX_TRY(cfxi_quantize_observer(p->host, n, &observes, &spec, p->err));
    if (observes)
        return cfx_error_set(p->err, CFX_E_VALUE, "the model is prepared already: node '%.80s' is "
                             "an observer. Calibrate and convert it, or prepare the float model",
                             cfx_node_name(n, NULL));
    return CFX_OK;
}

static cfx_status check_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        CFX_TRY(check_node(ctx, n));
    return cfxi_analysis_each_region(g, check_graph, ctx, err);
}

cfx_status cfx_graph_prepare(cfx_graph *g, const cfx_module_tree *modules,
                             const cfx_quantize_host *host, const cfx_qrules *rules,
                             const cfx_prepare_options *opts, cfx_error *err)
{
    static const cfx_prepare_options defaults = {.training = false};
    cfx_error own;
    cfxi_prepare p = {.modules = cfxi_analysis_modules_or_null(modules), .host = host,
                      .rules = rules, .opts = opts ? opts : &defaults, .allocator = g->allocator,
                      .err = cfxi_base_error_or(err, &own)};
    if (!p.modules || !p.modules->identity || !host || !host->observe || !host->share ||
        !host->spec)
        return cfx_error_set(err, CFX_E_VALUE, "preparing a graph needs its modules, and a host "
                             "that makes observers");
    cfx_status status = check_graph(g, &p, p.err);
    if (status == CFX_OK)
        status = prepare_graph(g, &p, p.err);
    cfxi_base_map_free(&p.calls, sizeof(size_t), p.allocator);
    cfxi_base_pointers_free(&p.numbers, p.allocator);
    cfxi_base_pointers_free(&p.wholes, p.allocator);
    return status;
}
