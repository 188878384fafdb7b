/* equalize.c - evens out the channels between consecutive layers, so that one scale suits all.
 *
 *     before                                          after (conv1 and conv2 have new weights)
 *     %conv1 = call_module[target=conv1](%x)          %conv1 = call_module[target=conv1](%x)
 *     %relu = call_function[target=relu](%conv1)      %relu = call_function[target=relu](%conv1)
 *     %conv2 = call_module[target=conv2](%relu)       %conv2 = call_module[target=conv2](%relu)
 *
 * A channel between two layers may be divided by s > 0 in the first layer and multiplied by s in
 * the second: what is between them (relu, pooling, dropout) passes a factor on, so the results are
 * the same but for rounding. With r1 and r2, the greatest weights of a channel in both layers, s is
 * sqrt(r1 / r2): both then reach equally far. Where one of them is 0, nothing changes. A layer may
 * be the second of a pair and the first of the next: some rounds over all pairs settle it.
 *
 * Needs: the modules; batch-norms in the weights (fuse_bn). Left alone are layers as in fuse_bn,
 * transposed convolutions, grouped ones unless they are depthwise, and layers whose result is used
 * more than once. Keeps: names, order and locations of all nodes. Layers get new weights as copies.
 * Linear in nodes and edges.
 */
#include "quantize_impl.h"

#include "pass/fuse_bn_impl.h"
#include "pass/pass_impl.h"

enum { ROUNDS = 10 };

typedef struct layer {
    fused_layer is;
    bool depthwise;
    bool changed;
} layer;

typedef struct pair {
    size_t first, second;  /* layers */
} pair;

typedef struct equalizing {
    fuse_job *job;
    cfxi_vec layers;         /* of layer */
    cfxi_vec pairs;          /* of pair */
    cfxi_hash_map numbers;   /* node -> 1 + its layer */
} equalizing;

static layer *layer_at(const equalizing *e, size_t i) { return (layer *)e->layers.data + i; }

/* ---- pairs --------------------------------------------------------------------------------- */

static bool is_depthwise(const fused_layer *l)
{
    return l->groups > 1 && l->groups == l->weight.shape[0] && l->weight.shape[1] == 1;
}

/* Whether every channel of the result is one of the input, and a factor passes through. */
static bool passes_channels(cfx_operator op)
{
    static const cfx_operator ops[] = {
        CFX_OPID_relu, CFX_OPID_relu_, CFX_OPID_leaky_relu, CFX_OPID_dropout, CFX_OPID_alias,
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i] == op)
            return true;
    return false;
}

/* Likewise behind a convolution of so many dimensions. */
static bool pools(cfx_operator op, int dims)
{
    static const cfx_operator ops[][3] = {
        {CFX_OPID_max_pool1d, CFX_OPID_avg_pool1d, CFX_OPID_adaptive_avg_pool1d},
        {CFX_OPID_max_pool2d, CFX_OPID_avg_pool2d, CFX_OPID_adaptive_avg_pool2d},
        {CFX_OPID_max_pool3d, CFX_OPID_avg_pool3d, CFX_OPID_adaptive_avg_pool3d},
    };
    for (size_t i = 0; dims >= 1 && i < 3; i++)
        if (ops[dims - 1][i] == op)
            return true;
    return false;
}

/* Whether all dimensions behind the channels become one with them. */
static bool flattens(fuse_job *job, const cfx_node *n)
{
    cfx_value from = cfx_node_operand(n, "start_dim");
    if (n->op == CFX_OP_CALL_MODULE &&
        cfxi_ops_module_attr(job->modules, job->g, n->callee->ref->name->data, "start_dim", &from,
                             job->err) != CFX_OK)
        from = cfx_value_invalid();
    return from.kind == CFX_KIND_INT && from.as.i == 1;
}

/* The number of a layer that can be equalized, from 1; 0 if the node is none. */
static size_t number_of(equalizing *e, cfx_node *n)
{
    const size_t *known = cfxi_base_map_find(&e->numbers, n, sizeof(size_t));
    const cfx_allocator *allocator = e->job->g->allocator;
    layer l = {.changed = false};
    if (known)
        return *known;
    size_t *number = cfxi_base_map_add(&e->numbers, n, sizeof(size_t), allocator);
    if (!number) {
        e->job->status = cfxi_base_nomem(e->job->err);
        return 0;
    }
    if (!cfxi_pass_fuse_read_layer(e->job, n, &l.is) || l.is.transposed || e->job->status)
        return 0;
    l.depthwise = is_depthwise(&l.is);
    if (l.is.groups > 1 && !l.depthwise)
        return 0;
    if (!cfxi_base_vec_reserve(&e->layers, 1, sizeof l, allocator)) {
        e->job->status = cfxi_base_nomem(e->job->err);
        return 0;
    }
    ((layer *)e->layers.data)[e->layers.size++] = l;
    number = cfxi_base_map_find(&e->numbers, n, sizeof(size_t));
    return *number = e->layers.size;
}

/* Channels that the second layer takes in. */
static int64_t inputs_of(const layer *l)
{
    return l->depthwise ? l->is.groups : l->is.weight.shape[1];
}

/* What has been passed on the way from a layer to the next. */
typedef struct way {
    int dims;       /* of the first layer: of a convolution; 0 for a linear one */
    bool averaged;  /* to given sizes, */
    bool flat;      /* and then flattened */
} way;

/* Whether a call between two layers passes channels. */
static bool passes(equalizing *e, const cfx_node *n, way *w)
{
    const cfx_operator op = cfxi_pass_fuse_operator(e->job, n);
    const char *name = cfx_operator_name(op);
    if (n->n_inputs != 1)
        return false;
    if (passes_channels(op))
        return true;
    if (!w->flat && pools(op, w->dims)) {
        w->averaged |= strncmp(name, "adaptive", 8) == 0;
        return true;
    }
    w->flat = op == CFX_OPID_flatten && w->averaged && flattens(e->job, n);
    return w->flat;
}

/* Whether the second layer takes the channels of the first for channels: a linear layer behind a
 * convolution takes the last dimension. */
static bool meets(const way *w, const layer *b)
{
    return w->flat ? b->is.dims == 0 : b->is.dims == w->dims;
}

/* The layer behind `n`, if nothing but what passes channels is between them; or NULL. */
static cfx_node *next_layer(equalizing *e, cfx_node *n, way *w)
{
    for (cfx_node *at = n; e->job->status == CFX_OK;) {
        cfx_node *user = cfxi_quantize_only_user(at);
        if (!user || user->op == CFX_OP_OUTPUT || user->graph != n->graph)
            return NULL;
        const size_t number = number_of(e, user);
        if (number > 0)
            return cfxi_pass_fuse_input_of(user) == at && meets(w, layer_at(e, number - 1))
                       ? user : NULL;
        if (!passes(e, user, w))
            return NULL;
        at = user;
    }
    return NULL;
}

static cfx_status add_pair(equalizing *e, cfx_node *n)
{
    const size_t first = number_of(e, n);
    way w = {.dims = first ? layer_at(e, first - 1)->is.dims : 0};
    cfx_node *next = first ? next_layer(e, n, &w) : NULL;
    const size_t second = next ? number_of(e, next) : 0;
    if (!second)
        return e->job->status;
    const layer *a = layer_at(e, first - 1);
    const layer *b = layer_at(e, second - 1);
    if (a->is.weight.shape[0] != inputs_of(b) || a->is.weight.dtype != b->is.weight.dtype)
        return CFX_OK;
    if (!cfxi_base_vec_reserve(&e->pairs, 1, sizeof(pair), e->job->g->allocator))
        return cfxi_base_nomem(e->job->err);
    ((pair *)e->pairs.data)[e->pairs.size++] = (pair){first - 1, second - 1};
    return CFX_OK;
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

static cfx_value compute(fuse_job *job, cfx_operator op, cfx_value a, cfx_value b)
{
    const cfx_value args[] = {a, b};
    return cfxi_pass_fuse_compute(job, op, args, b.kind == CFX_KIND_INVALID ? 1 : 2);
}

static cfx_value one(fuse_job *job, cfx_operator op, cfx_value a)
{
    return compute(job, op, a, cfx_value_invalid());
}

/* The greatest absolute weight of each channel: of dimension 0, or 1. */
static cfx_value reach(fuse_job *job, const fused_tensor *w, size_t channel)
{
    cfx_value dims[FUSE_MAX_RANK];
    size_t n = 0;
    for (size_t i = 0; i < w->rank; i++)
        if (i != channel)
            dims[n++] = cfx_value_int((int64_t)i);
    if (job->status != CFX_OK)
        return cfx_value_invalid();
    cfx_value list = cfx_value_list(job->g, dims, n, job->err);
    if (list.kind == CFX_KIND_INVALID) {
        job->status = CFX_E_NOMEM;
        return list;
    }
    return compute(job, CFX_OPID_amax, one(job, CFX_OPID_abs, w->value),
                   cfxi_pass_fuse_hold(job, list));
}

/* sqrt(r1 / r2), and 1 where one of them is 0. */
static cfx_value factor_of(fuse_job *job, cfx_value r1, cfx_value r2)
{
    const cfx_value both = compute(job, CFX_OPID_gt, compute(job, CFX_OPID_mul, r1, r2),
                                   cfx_value_int(0));
    const cfx_value s = one(job, CFX_OPID_sqrt, compute(job, CFX_OPID_div, r1, r2));
    const cfx_value args[] = {both, s, one(job, CFX_OPID_ones_like, s)};
    return cfxi_pass_fuse_compute(job, CFX_OPID_where, args, 3);
}

/* The factor of each channel, in the shape of a weight. */
static cfx_value along(fuse_job *job, cfx_value s, const fused_tensor *w, size_t channel)
{
    int64_t shape[FUSE_MAX_RANK] = {1, 1, 1, 1, 1, 1};
    shape[channel] = -1;
    return cfxi_pass_fuse_reshape(job, s, shape, w->rank);
}

/* Puts a new value in the place of a weight that is held apart from the job. */
static void renew(fuse_job *job, fused_tensor *t, cfx_value v, bool changed)
{
    if (job->status != CFX_OK)
        return;
    cfx_value_retain(v);
    if (changed)
        cfx_value_release(job->g, t->value);
    t->value = v;
}

static cfx_status even_out(equalizing *e, const pair *p)
{
    fuse_job *job = e->job;
    layer *a = layer_at(e, p->first);
    layer *b = layer_at(e, p->second);
    const size_t held = job->held.size;
    const size_t channel = b->depthwise ? 0 : 1;
    const bool has_bias = a->is.bias.value.kind != CFX_KIND_NONE;
    const cfx_value s = factor_of(job, reach(job, &a->is.weight, 0),
                                  reach(job, &b->is.weight, channel));
    const cfx_value first = compute(job, CFX_OPID_div, a->is.weight.value,
                                    along(job, s, &a->is.weight, 0));
    const cfx_value bias = has_bias ? compute(job, CFX_OPID_div, a->is.bias.value, s)
                                    : cfx_value_none();
    const cfx_value second = compute(job, CFX_OPID_mul, b->is.weight.value,
                                     along(job, s, &b->is.weight, channel));
    renew(job, &a->is.weight, first, a->changed);
    if (has_bias)
        renew(job, &a->is.bias, bias, a->changed);
    a->changed |= job->status == CFX_OK;
    renew(job, &b->is.weight, second, b->changed);
    if (job->status == CFX_OK && !b->changed && b->is.bias.value.kind != CFX_KIND_NONE)
        cfx_value_retain(b->is.bias.value);  /* as if it had been renewed */
    b->changed |= job->status == CFX_OK;
    cfxi_pass_fuse_let_go(job, held);
    return job->status;
}

/* ---- changing the model -------------------------------------------------------------------- */

static cfx_status set_module(fuse_job *job, const layer *l)
{
    const char *path = l->is.node->callee->ref->name->data;
    const cfx_module_tree *m = job->modules;
    CFX_TRY(m->copy(m->ctx, path, path, job->err));
    CFX_TRY(cfxi_pass_fuse_set(job, path, "weight", l->is.weight.value));
    return l->is.bias.value.kind == CFX_KIND_NONE
               ? CFX_OK : cfxi_pass_fuse_set(job, path, "bias", l->is.bias.value);
}

static cfx_status set_operand(fuse_job *job, const layer *l, const fused_tensor *t, bool bias)
{
    if (t->value.kind == CFX_KIND_NONE)
        return CFX_OK;
    cfx_node *n = cfxi_pass_fuse_reader(job, l->is.node, t->reader->callee->ref->name->data,
                                        "_equalized", t->value);
    CFX_TRY(n ? CFX_OK : cfxi_base_failed(job->err, job->err->status));
    CFX_TRY(cfxi_pass_fuse_give(job, l->is.node, bias, n));
    return t->reader->n_users == 0 ? cfx_graph_erase(job->g, t->reader, job->err) : CFX_OK;
}

static cfx_status set_layer(fuse_job *job, const layer *l)
{
    if (l->is.node->op == CFX_OP_CALL_MODULE)
        return set_module(job, l);
    CFX_TRY(set_operand(job, l, &l->is.weight, false));
    return set_operand(job, l, &l->is.bias, true);
}

/* ---- the graph ----------------------------------------------------------------------------- */

static cfx_status compute_all(equalizing *e)
{
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < e->pairs.size; i++)
            CFX_TRY(even_out(e, (const pair *)e->pairs.data + i));
    return CFX_OK;
}

static void forget(equalizing *e)
{
    const cfx_allocator *allocator = e->job->g->allocator;
    for (size_t i = 0; i < e->layers.size; i++) {
        const layer *l = layer_at(e, i);
        if (!l->changed)
            continue;
        cfx_value_release(e->job->g, l->is.weight.value);
        cfx_value_release(e->job->g, l->is.bias.value);
    }
    cfxi_base_vec_free(&e->layers, sizeof(layer), allocator);
    cfxi_base_vec_free(&e->pairs, sizeof(pair), allocator);
    cfxi_base_map_free(&e->numbers, sizeof(size_t), allocator);
}

/* All is computed before anything changes. */
static cfx_status equalize(fuse_job *job)
{
    equalizing e = {.job = job};
    cfx_iter it;
    cfx_status status = CFX_OK;
    cfx_iter_begin(&it, job->g, false);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;)
        status = add_pair(&e, n);
    cfx_iter_end(&it);
    if (status == CFX_OK)
        status = compute_all(&e);
    for (size_t i = 0; status == CFX_OK && i < e.layers.size; i++)
        if (layer_at(&e, i)->changed) {
            status = set_layer(job, layer_at(&e, i));
            job->changed = true;
        }
    forget(&e);
    return status;
}

cfx_status cfxi_pass_equalize(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                              bool *changed, cfx_error *err)
{
    (void)opts;
    return cfxi_pass_fuse_walk(g, modules, equalize, changed, err);
}
