/* module_effect.c - what calling a module does, with all modules below it.
 *
 * A module is known by the rows of its class and of those that it derives from, and by its
 * settings: random numbers and statistics count while it trains, or always if the row has no
 * parameter that turns them off; not with p=0, or without statistics. A captured module is known by
 * its graph. Other classes of torch.nn compute, as their children do; a module of any other class,
 * or with hooks, is unknown.
 */
#include "effects_impl.h"
#include "ops/ops_impl.h"

/* Classes without a row, or bases of some that have one. */
static const struct {
    const char *name;
    unsigned does;
    bool always;             /* not only while it trains */
    const char *amount;      /* a setting without which it does not: 0 */
    const char *state[3];    /* what it writes to; none: that is not known */
} classes[] = {
    {"torch.ao.quantization.fake_quantize.FakeQuantizeBase", CFXI_WRITES_STATE, true, NULL, {0}},
    {"torch.ao.quantization.observer.ObserverBase", CFXI_WRITES_STATE, true, NULL, {0}},
    {"torch.nn.FractionalMaxPool3d", CFXI_DRAWS, true, NULL, {0}},
    {"torch.nn.RNNBase", CFXI_DRAWS, false, "dropout", {0}},
    {"torch.nn.modules.dropout._DropoutNd", CFXI_DRAWS, false, "p", {0}},
    {"torch.nn.utils.parametrizations._SpectralNorm", CFXI_WRITES_STATE, false, NULL,
     {"_u", "_v", NULL}},
};

static const char norm_class[] = "torch.nn.modules.batchnorm._NormBase";
static const char *const statistics[] = {"running_mean", "running_var", "num_batches_tracked"};

typedef struct effect_job {
    cfxi_effect_model *model;
    const cfx_module_tree *modules;
    cfx_graph *g;
    cfxi_module_facts *facts;
    cfx_buffer paths;  /* of all modules in the tree, each terminated */
    cfx_buffer path;   /* of the one at hand */
    cfxi_pointers seen;  /* by identity: a module may be in several places, or below itself */
    bool training;
    bool norm;         /* the one at hand has been found to be a norm */
    cfx_error *err;
} effect_job;

/* ---- attributes ---------------------------------------------------------------------------- */

static bool is_true(cfx_value v)
{
    switch (v.kind) {
    case CFX_KIND_INVALID:
    case CFX_KIND_NONE:
        return false;
    case CFX_KIND_BOOL:
        return v.as.b;
    case CFX_KIND_INT:
        return v.as.i != 0;
    case CFX_KIND_FLOAT:
        return v.as.f != 0;
    default:
        return true;
    }
}

static cfx_status read(const effect_job *job, const char *name, bool otherwise, bool *flag)
{
    cfx_value v;
    CFX_TRY(cfxi_ops_module_attr(job->modules, job->g, job->path.data, name, &v, job->err));
    *flag = v.kind == CFX_KIND_INVALID ? otherwise : is_true(v);
    cfx_value_discard(job->g, v);
    return CFX_OK;
}

static cfx_status append(const effect_job *job, cfx_buffer *to, const char *text, size_t size)
{
    return cfx_buffer_append(to, text, size) == CFX_OK ? CFX_OK : cfxi_base_nomem(job->err);
}

/* Notes that the tensor `name` of the module at hand is written to. */
static cfx_status write_state(effect_job *job, const char *name)
{
    cfx_buffer *written = &job->facts->written;
    cfxi_vec *memories = &job->facts->memories;
    const size_t at = written->size;
    job->facts->does |= CFXI_WRITES_STATE;
    CFX_TRY(append(job, written, job->path.data, job->path.size));
    CFX_TRY(append(job, written, ".", job->path.size > 0));
    CFX_TRY(append(job, written, name, strlen(name) + 1));
    if (!job->modules->memory) {
        job->facts->state_unnamed = true;
        return CFX_OK;
    }
    const void *memory = job->modules->memory(job->modules->ctx, written->data + at);
    if (!cfxi_base_vec_reserve(memories, 1, sizeof memory, job->model->allocator))
        return cfxi_base_nomem(job->err);
    ((const void **)memories->data)[memories->size++] = memory;
    return CFX_OK;
}

/* ---- classes ------------------------------------------------------------------------------- */

static bool has_param(cfx_operator op, const char *name)
{
    cfx_schema_param param;
    return cfx_operator_param(op, cfx_operator_find_param(op, name), &param);
}

/* The setting without which a random module does not draw; NULL if there is none. */
static const char *amount_of(cfx_operator op)
{
    if (has_param(op, "dropout") || has_param(op, "dropout_p"))
        return "dropout";
    return has_param(op, "p") ? "p" : NULL;
}

static cfx_status add_draws(effect_job *job, bool always, const char *amount)
{
    bool draws = always || job->training;
    if (draws && amount)
        CFX_TRY(read(job, amount, true, &draws));
    if (draws)
        job->facts->does |= CFXI_DRAWS;
    return CFX_OK;
}

/* A norm writes to its statistics while it trains, if it keeps any. */
static cfx_status add_norm(effect_job *job)
{
    bool tracks = true;
    if (job->norm)
        return CFX_OK;
    job->norm = job->facts->statistics = true;
    if (!job->training)
        return CFX_OK;
    CFX_TRY(read(job, "track_running_stats", true, &tracks));
    for (size_t i = 0; tracks && i < sizeof statistics / sizeof *statistics; i++)
        CFX_TRY(write_state(job, statistics[i]));
    return CFX_OK;
}

static cfx_status add_row(effect_job *job, cfx_operator op)
{
    const unsigned flags = cfx_operator_flags(op);
    bool flag = false;
    if (flags & CFX_OPERATOR_RANDOM)
        CFX_TRY(add_draws(job, !has_param(op, "train") && !has_param(op, "training"),
                          amount_of(op)));
    if (flags & CFX_OPERATOR_STATE)
        CFX_TRY(add_norm(job));
    if (op == CFX_OPID_embedding || op == CFX_OPID_embedding_bag)
        CFX_TRY(read(job, "max_norm", false, &flag));
    return flag ? write_state(job, "weight") : CFX_OK;
}

static cfx_status add_listed(effect_job *job, size_t i)
{
    bool does = classes[i].always || job->training;
    if (classes[i].does & CFXI_DRAWS)
        return add_draws(job, classes[i].always, classes[i].amount);
    if (!does)
        return CFX_OK;
    job->facts->does |= classes[i].does;
    job->facts->state_unnamed = job->facts->state_unnamed || !classes[i].state[0];
    for (size_t k = 0; k < 3 && classes[i].state[k]; k++)
        CFX_TRY(write_state(job, classes[i].state[k]));
    return CFX_OK;
}

static cfx_status add_class(void *ctx, const char *name, cfx_error *err)
{
    effect_job *job = ctx;
    const cfx_operator op = cfxi_ops_of_class(name);
    (void)err;
    if (op)
        CFX_TRY(add_row(job, op));
    if (strcmp(name, norm_class) == 0)
        CFX_TRY(add_norm(job));
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(name, classes[i].name) == 0)
            CFX_TRY(add_listed(job, i));
    return CFX_OK;
}

/* `own` is the name of its class, if it computes what that does. */
static cfx_status add_classes(effect_job *job, const char *own)
{
    const cfx_module_tree *modules = job->modules;
    if (!modules->each_class)
        return own[0] ? add_class(job, own, job->err) : CFX_OK;
    cfx_error why = {.status = CFX_OK};
    cfx_status status = modules->each_class(modules->ctx, job->path.data, add_class, job, &why);
    if (status == CFX_OK || status == CFX_E_KEY)
        return CFX_OK;
    if (job->err && why.status == status)
        *job->err = why;
    return cfxi_base_failed(job->err, status);
}

/* ---- one module ---------------------------------------------------------------------------- */

static bool is_of_torch(const char *name)
{
    return strncmp(name, "torch.nn.", 9) == 0 || strncmp(name, "torch.ao.", 9) == 0;
}

/* What a captured module does, or whether nothing is known about it. */
static cfx_status add_graph(effect_job *job, const char *own, cfx_operator op)
{
    const cfx_module_tree *modules = job->modules;
    unsigned does = 0;
    if (op || is_of_torch(own))
        return CFX_OK;
    cfx_graph *inner = modules->graph ? modules->graph(modules->ctx, job->path.data) : NULL;
    if (!inner) {
        job->facts->does |= CFXI_UNKNOWN;
        return CFX_OK;
    }
    cfx_graph_retain(inner);
    cfx_status status =
        cfxi_analysis_graph_does(job->model, inner, job->path.data, &does, job->err);
    cfx_graph_release(inner);
    job->facts->does |= does;
    return status;
}

/* Only operators that can be in place are asked whether they are, and what has no row: asking for
 * what is not there is slow in Python. */
static cfx_status add_flags(effect_job *job, cfx_operator op)
{
    bool flag = false;
    if (!op || cfx_operator_in_place(op))
        CFX_TRY(read(job, "inplace", false, &flag));
    if (flag)
        job->facts->does |= CFXI_WRITES_ARGUMENTS;
    CFX_TRY(read(job, "_is_impure", false, &flag));
    if (flag)
        job->facts->does |= CFXI_WRITES_ALL | CFXI_KEPT;
    return CFX_OK;
}

/* The module at job->path, without those below it. */
static cfx_status add_own(effect_job *job, bool root)
{
    cfx_buffer own;
    cfx_buffer_init(&own, job->g->allocator);
    cfx_status status = cfxi_ops_module_class(job->modules, job->path.data, &own, job->err);
    const char *name = own.size > 0 ? own.data : "";
    const cfx_operator op = cfxi_ops_of_class(name);
    job->norm = false;
    if (root)
        job->facts->op = op;
    if (status == CFX_OK)
        status = add_flags(job, op);
    if (status == CFX_OK)
        status = read(job, "training", false, &job->training);
    if (status == CFX_OK)
        status = add_classes(job, name);
    if (status == CFX_OK)
        status = add_graph(job, name, op);
    cfx_buffer_free(&own);
    return status;
}

/* ---- the tree ------------------------------------------------------------------------------ */

static cfx_status add_child(void *ctx, const char *name, cfx_error *err)
{
    effect_job *job = ctx;
    (void)err;
    CFX_TRY(append(job, &job->paths, job->path.data, job->path.size));
    CFX_TRY(append(job, &job->paths, ".", job->path.size > 0));
    return append(job, &job->paths, name, strlen(name) + 1);
}

static cfx_status add_children(effect_job *job)
{
    const cfx_module_tree *modules = job->modules;
    cfx_error why = {.status = CFX_OK};
    if (!modules->each_child)
        return CFX_OK;
    cfx_status status = modules->each_child(modules->ctx, job->path.data, add_child, job, &why);
    if (status == CFX_OK || status == CFX_E_KEY)
        return CFX_OK;
    if (job->err && why.status == status)
        *job->err = why;
    return cfxi_base_failed(job->err, status);
}

/* Adds the module at job->path to those that were seen; *again says whether it was there. */
static cfx_status see(effect_job *job, bool *again)
{
    const cfx_module_tree *modules = job->modules;
    const void *module = modules->identity ? modules->identity(modules->ctx, job->path.data) : NULL;
    *again = module && cfxi_base_pointers_get(&job->seen, module);
    if (!module || *again ||
        cfxi_base_pointers_set(&job->seen, module, job, job->g->allocator))
        return CFX_OK;
    return cfxi_base_nomem(job->err);
}

static cfx_status walk(effect_job *job, const char *path)
{
    CFX_TRY(append(job, &job->paths, path, strlen(path) + 1));
    for (size_t at = 0; at < job->paths.size; at += job->path.size + 1) {
        const size_t size = strlen(job->paths.data + at);
        bool again;
        cfx_buffer_free(&job->path);
        CFX_TRY(append(job, &job->path, job->paths.data + at, size));
        CFX_TRY(see(job, &again));
        if (again)
            continue;
        CFX_TRY(add_own(job, at == 0));
        CFX_TRY(add_children(job));
    }
    return CFX_OK;
}

static cfx_status find_facts(cfxi_effect_model *m, cfx_graph *g, cfxi_module_facts *facts,
                             cfx_error *err)
{
    effect_job job = {.model = m, .modules = m->modules, .g = g, .facts = facts, .err = err};
    cfx_buffer_init(&job.paths, g->allocator);
    cfx_buffer_init(&job.path, g->allocator);
    cfx_status status = walk(&job, facts->path);
    cfx_buffer_free(&job.path);
    cfx_buffer_free(&job.paths);
    cfxi_base_pointers_free(&job.seen, g->allocator);
    return status;
}

/* ---- what is remembered -------------------------------------------------------------------- */

static void free_facts(cfxi_module_facts *facts, const cfx_allocator *allocator)
{
    if (!facts)
        return;
    cfx_buffer_free(&facts->written);
    cfxi_base_vec_free(&facts->memories, sizeof(void *), allocator);
    cfxi_base_free(allocator, facts->path, facts->size + 1);
    cfxi_base_free(allocator, facts, sizeof *facts);
}

static cfxi_module_facts *make_facts(const char *path, size_t size, uint32_t hash,
                                     const cfx_allocator *allocator)
{
    cfxi_module_facts *facts = cfxi_base_alloc(allocator, sizeof *facts);
    if (!facts)
        return NULL;
    *facts = (cfxi_module_facts){.size = size, .hash = hash};
    cfx_buffer_init(&facts->written, allocator);
    facts->path = cfxi_base_alloc(allocator, size + 1);
    if (facts->path) {
        memcpy(facts->path, path, size + 1);
        return facts;
    }
    cfxi_base_free(allocator, facts, sizeof *facts);
    return NULL;
}

static bool same_path(const void *item, const void *key, size_t size)
{
    const cfxi_module_facts *facts = item;
    return facts->size == size && memcmp(facts->path, key, size) == 0;
}

static uint32_t hash_of_facts(const void *item) { return ((const cfxi_module_facts *)item)->hash; }

/* Where a path of the graph is in the tree, written to `full`; NULL if memory is out. */
static const char *full_path(const cfxi_effect_model *m, const char *path, cfx_buffer *full)
{
    if (!m->prefix || !m->prefix[0])
        return path;
    const bool fits = cfx_buffer_append(full, m->prefix, strlen(m->prefix)) == CFX_OK &&
                      cfx_buffer_append(full, ".", path[0] != 0) == CFX_OK &&
                      cfx_buffer_append(full, path, strlen(path)) == CFX_OK;
    return fits ? full->data : NULL;
}

const void *cfxi_analysis_memory_at(const cfxi_effect_model *m, const char *path)
{
    const cfx_module_tree *modules = m->modules;
    cfx_buffer full;
    if (!modules || !modules->memory)
        return NULL;
    cfx_buffer_init(&full, NULL);
    path = full_path(m, path, &full);
    const void *memory = path ? modules->memory(modules->ctx, path) : NULL;
    cfx_buffer_free(&full);
    return memory;
}

static cfx_status find_or_make(cfxi_effect_model *m, cfx_graph *g, const char *path,
                               const cfxi_module_facts **facts, cfx_error *err)
{
    const size_t size = strlen(path);
    if (!m->allocator) {
        m->allocator = g->allocator;
        m->key = cfxi_base_hash_key_new(m);
    }
    const uint32_t hash = cfxi_base_hash_keyed(&m->key, path, size);
    *facts = cfxi_base_set_find(&m->known, hash, same_path, path, size);
    if (*facts)
        return CFX_OK;
    cfxi_module_facts *made = make_facts(path, size, hash, m->allocator);
    if (!made)
        return cfxi_base_nomem(err);
    cfx_status status = find_facts(m, g, made, err);
    if (status == CFX_OK && !cfxi_base_set_reserve(&m->known, hash_of_facts, m->allocator))
        status = cfxi_base_nomem(err);
    if (status != CFX_OK) {
        free_facts(made, m->allocator);
        return status;
    }
    cfxi_base_set_insert(&m->known, hash, made);
    *facts = made;
    return CFX_OK;
}

cfx_status cfxi_analysis_module_facts(cfxi_effect_model *m, cfx_graph *g, const char *path,
                                      const cfxi_module_facts **facts, cfx_error *err)
{
    cfx_buffer full;
    cfx_buffer_init(&full, g->allocator);
    path = full_path(m, path, &full);
    cfx_status status = path ? find_or_make(m, g, path, facts, err) : cfxi_base_nomem(err);
    cfx_buffer_free(&full);
    return status;
}

void cfxi_analysis_model_end(cfxi_effect_model *m)
{
    size_t at = 0;
    for (void *item; (item = cfxi_base_set_next(&m->known, &at)) != NULL;)
        free_facts(item, m->allocator);
    cfxi_base_set_free(&m->known, m->allocator);
}
