/* fuse_bn.c - computes a convolution or linear layer and the batch-norm behind it as one layer.
 *
 *     before                                          after (conv has new weights)
 *     %x = placeholder[target=x]()                    %x = placeholder[target=x]()
 *     %conv = call_module[target=conv](%x)            %conv = call_module[target=conv](%x)
 *     %bn = call_module[target=bn](%conv)             output(%conv)
 *     output(%bn)
 *
 * A batch-norm that uses its running statistics is a factor and an offset for each channel, and
 * both can be put into the weights (fuse_weights.c). A function reads its new weights from buffers
 * beside the old ones.
 *
 * Needs: the modules. Left alone are: a layer whose result has other users; a module or weight that
 * is called, read or written to elsewhere, by the graph or its regions; modules with hooks, of
 * derived classes, quantized or with integer weights; batch-norms that are training, have no
 * running statistics, or have arguments that are not known. A linear layer is taken to have inputs
 * of two dimensions, as in torch.fx.
 * Keeps: names, order and locations of all nodes that stay. A module gets its new weights as a
 * copy, so that whoever else has the old one sees no change.
 *
 * Each pair is first looked at and computed, then changed: if that fails, the model computes what
 * it did before. Linear in nodes and edges.
 */
#include "fuse_bn_impl.h"
#include "pass_impl.h"

/* ---- looking things up --------------------------------------------------------------------- */

static void fail_nomem(fuse_job *job) { job->status = cfxi_base_nomem(job->err); }

cfx_value cfxi_pass_fuse_hold(fuse_job *job, cfx_value v)
{
    if (!cfxi_base_vec_reserve(&job->held, 1, sizeof v, job->g->allocator)) {
        cfx_value_discard(job->g, v);
        fail_nomem(job);
        return cfx_value_invalid();
    }
    ((cfx_value *)job->held.data)[job->held.size++] = cfx_value_retain(v);
    return v;
}

void cfxi_pass_fuse_let_go(fuse_job *job, size_t keep)
{
    while (job->held.size > keep)
        cfx_value_release(job->g, ((cfx_value *)job->held.data)[--job->held.size]);
}

/* "base", a dot if both are there, and "name", in a buffer that is used again. */
static const char *join(fuse_job *job, const char *base, const char *name)
{
    cfx_buffer *path = &job->path;
    path->size = 0;
    if (cfx_buffer_append(path, base, strlen(base)) != CFX_OK ||
        cfx_buffer_append(path, ".", base[0] && name[0]) != CFX_OK ||
        cfx_buffer_append(path, name, strlen(name)) != CFX_OK) {
        fail_nomem(job);
        return "";
    }
    return path->data;
}

/* What is at base.name; INVALID if there is nothing. */
static cfx_value look(fuse_job *job, const char *base, const char *name)
{
    cfx_value v = cfx_value_invalid();
    if (job->status == CFX_OK)
        job->status = cfxi_ops_module_attr(job->modules, job->g, base, name, &v, job->err);
    return v.kind == CFX_KIND_INVALID ? v : cfxi_pass_fuse_hold(job, v);
}

static bool is_float(cfx_value dtype)
{
    return dtype.kind == CFX_KIND_DTYPE &&
           (dtype.as.i == CFX_DTYPE_FLOAT32 || dtype.as.i == CFX_DTYPE_FLOAT64 ||
            dtype.as.i == CFX_DTYPE_FLOAT16 || dtype.as.i == CFX_DTYPE_BFLOAT16);
}

static bool read_shape(fused_tensor *t, cfx_value shape)
{
    const cfx_value *sizes = cfx_value_items(shape, &t->rank);
    if (shape.kind != CFX_KIND_TUPLE || t->rank > FUSE_MAX_RANK)
        return false;
    for (size_t i = 0; i < t->rank; i++) {
        if (sizes[i].kind != CFX_KIND_INT)
            return false;
        t->shape[i] = sizes[i].as.i;
    }
    return true;
}

/* The tensor at a path, or None there; false if it is something else, or may be written to. */
static bool read_tensor(fuse_job *job, const char *path, fused_tensor *t)
{
    *t = (fused_tensor){.value = look(job, path, "")};
    if (t->value.kind == CFX_KIND_NONE || t->value.kind == CFX_KIND_INVALID)
        return t->value.kind == CFX_KIND_NONE;
    cfx_value dtype = look(job, path, "dtype");
    cfx_value shape = look(job, path, "shape");
    t->dtype = (cfx_dtype)dtype.as.i;
    return is_float(dtype) && read_shape(t, shape) &&
           !cfxi_analysis_survey_find(&job->survey, path).written;
}

static bool read_member(fuse_job *job, const char *module, const char *name, fused_tensor *t)
{
    char path[FUSE_MAX_PATH];
    int n = snprintf(path, sizeof path, "%s.%s", module, name);
    return n > 0 && (size_t)n < sizeof path && read_tensor(job, path, t);
}

/* A tensor among the arguments of a function, which has to be a get_attr or None. */
static bool read_operand(fuse_job *job, const cfx_node *n, const char *name, fused_tensor *t)
{
    cfx_value v = cfx_node_operand(n, name);
    *t = (fused_tensor){.value = cfx_value_none()};
    if (v.kind == CFX_KIND_INVALID || v.kind == CFX_KIND_NONE)
        return true;
    if (v.kind != CFX_KIND_NODE || v.as.node->op != CFX_OP_GET_ATTR ||
        !read_tensor(job, v.as.node->callee->ref->name->data, t))
        return false;
    t->reader = v.as.node;
    return t->value.kind != CFX_KIND_NONE;
}

static bool read_any(fuse_job *job, const cfx_node *n, const char *name, fused_tensor *t)
{
    return n->op == CFX_OP_CALL_MODULE
               ? read_member(job, n->callee->ref->name->data, name, t)
               : n->op == CFX_OP_CALL_FUNCTION && read_operand(job, n, name, t);
}

/* A number or bool that a module has as an attribute or a function as an argument; INVALID if it
 * has none, or it is a node. */
static cfx_value read_plain(fuse_job *job, const cfx_node *n, const char *name)
{
    cfx_value v = n->op == CFX_OP_CALL_MODULE ? look(job, n->callee->ref->name->data, name)
                                              : cfx_node_operand(n, name);
    return v.kind == CFX_KIND_NODE ? cfx_value_none() : v;
}

/* ---- the two layers ------------------------------------------------------------------------ */

const fused_kind *cfxi_pass_fuse_kind(cfx_operator op)
{
    static const fused_kind kinds[] = {
        {CFX_OPID_linear, 0, false},           {CFX_OPID_conv1d, 1, false},
        {CFX_OPID_conv2d, 2, false},           {CFX_OPID_conv3d, 3, false},
        {CFX_OPID_conv_transpose1d, 1, true},  {CFX_OPID_conv_transpose2d, 2, true},
        {CFX_OPID_conv_transpose3d, 3, true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].op == op)
            return &kinds[i];
    return NULL;
}

/* Whether a new module may be put in the place of the one that a node calls. */
static bool is_only_caller(fuse_job *job, const cfx_node *n)
{
    const char *path = n->callee->ref->name->data;
    const cfxi_seen_facts facts = cfxi_analysis_survey_find(&job->survey, path);
    int inside = cfxi_analysis_survey_is_inside(&job->survey, path);
    if (inside < 0)
        fail_nomem(job);
    return facts.calls == 1 && !facts.read && inside == 0;
}

static bool read_groups(fuse_job *job, const cfx_node *n, fused_layer *layer)
{
    cfx_value groups = layer->dims ? read_plain(job, n, "groups") : cfx_value_invalid();
    layer->groups = groups.kind == CFX_KIND_INT ? groups.as.i : 1;
    return groups.kind == CFX_KIND_INVALID || (groups.kind == CFX_KIND_INT && groups.as.i > 0);
}

cfx_operator cfxi_pass_fuse_operator(fuse_job *job, const cfx_node *n)
{
    cfx_operator op = CFX_OPID_NONE;
    if (job->status == CFX_OK)
        job->status = cfx_node_operator_of(n, job->modules, &op, job->err);
    return op;
}

bool cfxi_pass_fuse_read_layer(fuse_job *job, cfx_node *n, fused_layer *layer)
{
    const fused_kind *kind = cfxi_pass_fuse_kind(cfxi_pass_fuse_operator(job, n));
    *layer = (fused_layer){.node = n};
    if (!kind || (n->op == CFX_OP_CALL_MODULE && !is_only_caller(job, n)))
        return false;
    layer->dims = kind->dims;
    layer->transposed = kind->transposed;
    return read_groups(job, n, layer) && read_any(job, n, "weight", &layer->weight) &&
           read_any(job, n, "bias", &layer->bias) &&
           layer->weight.rank == (size_t)(kind->dims ? kind->dims + 2 : 2);
}

/* Behind a linear layer a BatchNorm2d would see its channels elsewhere; and what raises an error
 * shall go on doing so. */
static bool fits_module(fuse_job *job, const char *path, const fused_layer *layer)
{
    static const char *const classes[] = {"torch.nn.BatchNorm1d", "torch.nn.BatchNorm1d",
                                          "torch.nn.BatchNorm2d", "torch.nn.BatchNorm3d"};
    cfx_buffer name;
    cfx_buffer_init(&name, job->g->allocator);
    job->status = cfxi_ops_module_class(job->modules, path, &name, job->err);
    bool fits = strcmp(name.data, classes[layer->dims]) == 0 ||
                (layer->dims && strcmp(name.data, "torch.nn.SyncBatchNorm") == 0);
    cfx_buffer_free(&name);
    return fits && job->status == CFX_OK;
}

static bool read_eps(fuse_job *job, const cfx_node *n, double *eps)
{
    cfx_value v = read_plain(job, n, "eps");
    *eps = v.kind == CFX_KIND_FLOAT ? v.as.f : v.kind == CFX_KIND_INT ? (double)v.as.i : 1e-5;
    return v.kind == CFX_KIND_FLOAT || v.kind == CFX_KIND_INT ||
           (v.kind == CFX_KIND_INVALID && n->op == CFX_OP_CALL_FUNCTION);
}

/* Without `training` the function of torch.nn.functional is not training; that of torch always has
 * it. */
static bool is_eval(fuse_job *job, const cfx_node *n)
{
    cfx_value v = read_plain(job, n, "training");
    return (v.kind == CFX_KIND_BOOL && !v.as.b) ||
           (v.kind == CFX_KIND_INVALID && n->op == CFX_OP_CALL_FUNCTION);
}

static bool is_vector(const fused_tensor *t, int64_t size, bool optional)
{
    return t->value.kind == CFX_KIND_NONE ? optional : t->rank == 1 && t->shape[0] == size;
}

static bool read_norm(fuse_job *job, cfx_node *n, const fused_layer *layer, fused_norm *norm)
{
    const int64_t *shape = layer->weight.shape;
    const int64_t channels = layer->transposed ? shape[1] * layer->groups : shape[0];
    *norm = (fused_norm){.node = n};
    if (n->op == CFX_OP_CALL_MODULE && !fits_module(job, n->callee->ref->name->data, layer))
        return false;
    return is_eval(job, n) && read_eps(job, n, &norm->eps) &&
           read_any(job, n, "running_mean", &norm->mean) &&
           read_any(job, n, "running_var", &norm->var) &&
           read_any(job, n, "weight", &norm->weight) && read_any(job, n, "bias", &norm->bias) &&
           is_vector(&norm->mean, channels, false) && is_vector(&norm->var, channels, false) &&
           is_vector(&norm->weight, channels, true) && is_vector(&norm->bias, channels, true) &&
           is_vector(&layer->bias, channels, true);
}

cfx_node *cfxi_pass_fuse_input_of(const cfx_node *n)
{
    cfx_value v = cfx_node_operand(n, "input");
    if (n->op == CFX_OP_CALL_MODULE) {
        v = cfx_node_arg(n, 0);
        if (v.kind == CFX_KIND_INVALID)
            v = cfx_node_kwarg(n, "input");
    }
    return v.kind == CFX_KIND_NODE ? v.as.node : NULL;
}

/* ---- changing the model -------------------------------------------------------------------- */

/* A path near `base` at which there is nothing. */
static cfx_status free_path(fuse_job *job, const char *base, const char *suffix, char *path)
{
    for (unsigned i = 0; i < 10000; i++) {
        char number[16] = "";
        if (i > 0)
            snprintf(number, sizeof number, "_%u", i);
        int n = snprintf(path, FUSE_MAX_PATH, "%s%s%s", base, suffix, number);
        if (n < 0 || n >= FUSE_MAX_PATH)
            break;
        if (!job->modules->identity(job->modules->ctx, path))
            return CFX_OK;
    }
    return cfx_error_set(job->err, CFX_E_LIMIT, "cannot find an unused path near '%.100s'", base);
}

cfx_status cfxi_pass_fuse_set(fuse_job *job, const char *module, const char *name, cfx_value v)
{
    const cfx_module_tree *m = job->modules;
    const char *path = join(job, module, name);
    return job->status == CFX_OK ? m->set(m->ctx, job->g, path, v, job->err) : job->status;
}

/* A copy of the module with the new weights, at a path of its own. */
static cfx_status prepare_module(fuse_job *job, const char *path, const fused_weights *new,
                                 char *spare)
{
    const cfx_module_tree *m = job->modules;
    CFX_TRY(free_path(job, path, "_fused", spare));
    CFX_TRY(m->copy(m->ctx, path, spare, job->err));
    cfx_status status = cfxi_pass_fuse_set(job, spare, "weight", new->weight);
    if (status == CFX_OK)
        status = cfxi_pass_fuse_set(job, spare, "bias", new->bias);
    if (status != CFX_OK)
        m->remove(m->ctx, spare, NULL);
    return status;
}

static int all_but(void *n, cfx_node *user) { return user != n; }

static cfx_status skip_norm(fuse_job *job, cfx_node *norm, cfx_node *layer)
{
    return cfx_node_replace_uses(norm, cfx_value_node(layer), NULL, NULL, NULL, job->err);
}

static cfx_status change_module(fuse_job *job, const fused_layer *layer, const fused_norm *norm,
                                const fused_weights *new)
{
    const cfx_module_tree *m = job->modules;
    const char *path = layer->node->callee->ref->name->data;
    char spare[FUSE_MAX_PATH];
    CFX_TRY(prepare_module(job, path, new, spare));
    cfx_status status = skip_norm(job, norm->node, layer->node);
    if (status == CFX_OK) {
        status = m->copy(m->ctx, spare, path, job->err);
        if (status != CFX_OK)
            cfx_node_replace_uses(layer->node, cfx_value_node(norm->node), all_but, NULL,
                                  norm->node, NULL);
    }
    m->remove(m->ctx, spare, NULL);
    return status == CFX_OK ? cfxi_analysis_survey_note_call(&job->survey, path, job->err) : status;
}

cfx_node *cfxi_pass_fuse_reader(fuse_job *job, cfx_node *layer, const char *base,
                                const char *suffix, cfx_value v)
{
    const cfx_module_tree *m = job->modules;
    char path[FUSE_MAX_PATH];
    if (free_path(job, base, suffix, path) != CFX_OK ||
        m->set(m->ctx, job->g, path, v, job->err) != CFX_OK)
        return NULL;
    return cfxi_analysis_add_reader(layer, path, job->err);
}

/* Every function of these operators takes weight and bias second and third, and by these names. */
cfx_status cfxi_pass_fuse_give(fuse_job *job, cfx_node *n, bool bias, cfx_node *reader)
{
    const char *name = bias ? "bias" : "weight";
    const size_t i = bias ? 2 : 1;
    return i < cfx_node_num_args(n) ? cfx_node_set_arg(n, i, cfx_value_node(reader), job->err)
                                    : cfx_node_set_kwarg(n, name, cfx_value_node(reader), job->err);
}

static cfx_status change_function(fuse_job *job, const fused_layer *layer, const fused_norm *norm,
                                  const fused_weights *new)
{
    cfx_node *n = layer->node;
    const char *path = layer->weight.reader->callee->ref->name->data;
    const cfx_node *bias = layer->bias.reader;
    cfx_node *w = cfxi_pass_fuse_reader(job, n, path, "_fused", new->weight);
    cfx_node *b = w ? cfxi_pass_fuse_reader(job, n, bias ? bias->callee->ref->name->data : path,
                                  bias ? "_fused" : "_fused_bias", new->bias) : NULL;
    if (!b)
        return job->err && job->err->status != CFX_OK ? job->err->status : CFX_E_NOMEM;
    cfx_value args = cfx_value_retain(cfx_node_args(n));
    cfx_value kwargs = cfx_value_retain(cfx_node_kwargs(n));
    cfx_status status = cfxi_pass_fuse_give(job, n, false, w);
    if (status == CFX_OK)
        status = cfxi_pass_fuse_give(job, n, true, b);
    if (status == CFX_OK)
        status = skip_norm(job, norm->node, n);
    if (status != CFX_OK)
        cfx_node_set_args_kwargs(n, args, kwargs, NULL);
    cfx_value_release(job->g, args);
    cfx_value_release(job->g, kwargs);
    return status;
}

/* The batch-norm, and what only it and the old layer read. */
static cfx_status erase_rest(fuse_job *job, const fused_layer *layer, const fused_norm *norm)
{
    cfx_node *const readers[] = {layer->weight.reader, layer->bias.reader,  norm->mean.reader,
                                 norm->var.reader,     norm->weight.reader, norm->bias.reader};
    CFX_TRY(cfx_graph_erase(job->g, norm->node, job->err));
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (readers[i] && readers[i]->n_users == 0 && !cfxi_ir_node_erased(readers[i]))
            CFX_TRY(cfx_graph_erase(job->g, readers[i], job->err));
    return CFX_OK;
}

static cfx_status fuse_pair(fuse_job *job, cfx_node *n)
{
    fused_layer layer;
    fused_norm norm;
    fused_weights new;
    cfx_node *input = cfxi_ir_node_erased(n) ? NULL : cfxi_pass_fuse_input_of(n);
    if (!input || input->n_users != 1 || input->users->count != 1 ||
        !cfxi_pass_fuse_read_layer(job, input, &layer) || !read_norm(job, n, &layer, &norm))
        return job->status;
    if (!cfxi_pass_fuse_weights(job, &layer, &norm, &new))
        return job->status;
    CFX_TRY(layer.node->op == CFX_OP_CALL_MODULE ? change_module(job, &layer, &norm, &new)
                                                 : change_function(job, &layer, &norm, &new));
    job->changed = true;
    return erase_rest(job, &layer, &norm);
}

/* ---- all of them --------------------------------------------------------------------------- */

static cfx_status fuse_all(fuse_job *job)
{
    cfx_iter it;
    cfx_iter_begin(&it, job->g, false);
    for (cfx_node *n; job->status == CFX_OK && (n = cfx_iter_next(&it)) != NULL;) {
        if (cfxi_pass_fuse_operator(job, n) == CFX_OPID_batch_norm)
            job->status = fuse_pair(job, n);
        cfxi_pass_fuse_let_go(job, 0);
    }
    cfx_iter_end(&it);
    return job->status;
}

typedef struct fuse_walk {
    fuse_job job;
    cfxi_fuse_fn *fn;
} fuse_walk;

static cfx_status walk_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    fuse_walk *w = ctx;
    fuse_job *job = &w->job;
    job->g = g;
    job->err = err;
    const cfx_status status = w->fn(job);
    cfxi_pass_fuse_let_go(job, 0);
    cfxi_base_vec_free(&job->held, sizeof(cfx_value), g->allocator);
    job->held = (cfxi_vec){0};
    return status == CFX_OK ? cfxi_analysis_each_region(g, walk_graph, w, err) : status;
}

cfx_status cfxi_pass_fuse_walk(cfx_graph *g, const cfx_module_tree *modules, cfxi_fuse_fn *fn,
                               bool *changed, cfx_error *err)
{
    cfx_error own;
    modules = cfxi_analysis_modules_or_null(modules);
    cfxi_effect_model model = {.modules = modules};
    fuse_walk w = {.job = {.modules = modules}, .fn = fn};
    cfx_status status = CFX_OK;
    if (modules) {
        cfx_buffer_init(&w.job.path, g->allocator);
        status = cfxi_analysis_survey_begin(&w.job.survey, g, &model, err);
        if (status == CFX_OK)
            status = walk_graph(g, &w, cfxi_base_error_or(err, &own));
        cfxi_analysis_survey_end(&w.job.survey);
        cfxi_analysis_model_end(&model);
        cfx_buffer_free(&w.job.path);
    }
    if (changed)
        *changed = w.job.changed;
    return status;
}

cfx_status cfxi_pass_fuse_bn(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                             bool *changed, cfx_error *err)
{
    (void)opts;
    return cfxi_pass_fuse_walk(g, modules, fuse_all, changed, err);
}
