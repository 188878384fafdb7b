/* module_effect.c - what calling a module does, with all modules below it.
 *
 * A module is known by the rows of its class and of those that it derives from: random numbers and
 * statistics count while it trains, or always if the row has no parameter that turns them off.
 */
#include "ops/ops_impl.h"
#include "analysis_impl.h"

/* Classes without a row, or bases of some that have one. */
static const struct {
    const char *name;
    bool always;
} lone_classes[] = {
    {"torch.nn.FractionalMaxPool3d", true},
    {"torch.nn.RNNBase", false},
    {"torch.nn.modules.batchnorm._NormBase", false},
    {"torch.nn.modules.dropout._DropoutNd", false},
};

typedef struct effect_job {
    const cfx_module_tree *modules;
    cfx_graph *g;
    cfx_buffer paths;  /* of all modules in the tree, each terminated */
    cfx_buffer path;   /* of the one at hand */
    cfxi_pointers seen;  /* by identity: a module may be in several places, or below itself */
    bool training;
    cfx_effect effect;
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

static cfx_status read_flag(const effect_job *job, const char *name, bool *flag)
{
    cfx_value v;
    CFX_TRY(cfxi_ops_module_attr(job->modules, job->g, job->path.data, name, &v, job->err));
    *flag = is_true(v);
    cfx_value_discard(job->g, v);
    return CFX_OK;
}

/* ---- classes ------------------------------------------------------------------------------- */

static bool has_switch(cfx_operator op)
{
    static const char *const switches[] = {"train", "training", "use_input_stats"};
    cfx_schema_param param;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (cfx_operator_param(op, cfx_operator_find_param(op, switches[i]), &param))
            return true;
    return false;
}

static cfx_status add_class(void *ctx, const char *name, cfx_error *err)
{
    effect_job *job = ctx;
    const cfx_operator op = cfxi_ops_of_class(name);
    bool lone = op && (cfx_operator_flags(op) & (CFX_OPERATOR_RANDOM | CFX_OPERATOR_STATE)) &&
                (job->training || !has_switch(op));
    (void)err;
    for (size_t i = 0; i < sizeof lone_classes / sizeof *lone_classes; i++)
        if (strcmp(name, lone_classes[i].name) == 0)
            lone = lone || job->training || lone_classes[i].always;
    if (lone && job->effect < CFX_EFFECT_ALONE)
        job->effect = CFX_EFFECT_ALONE;
    return CFX_OK;
}

static cfx_status add_classes(effect_job *job)
{
    const cfx_module_tree *modules = job->modules;
    const char *path = job->path.data;
    cfx_buffer name;
    if (modules->each_class) {
        cfx_status status = modules->each_class(modules->ctx, path, add_class, job, job->err);
        return status == CFX_OK ? CFX_OK : cfxi_base_failed(job->err, status);
    }
    cfx_buffer_init(&name, job->g->allocator);
    cfx_status status = cfxi_ops_module_class(modules, path, &name, job->err);
    if (status == CFX_OK && name.size > 0)
        status = add_class(job, name.data, job->err);
    cfx_buffer_free(&name);
    return status;
}

/* ---- the tree ------------------------------------------------------------------------------ */

static cfx_status append(effect_job *job, cfx_buffer *to, const char *text, size_t size)
{
    return cfx_buffer_append(to, text, size) == CFX_OK ? CFX_OK : cfxi_base_nomem(job->err);
}

static cfx_status add_child(void *ctx, const char *name, cfx_error *err)
{
    effect_job *job = ctx;
    (void)err;
    CFX_TRY(append(job, &job->paths, job->path.data, job->path.size));
    CFX_TRY(append(job, &job->paths, ".", job->path.size > 0));
    return append(job, &job->paths, name, strlen(name) + 1);
}

/* The module at job->path, without those below it. */
static cfx_status add_own(effect_job *job)
{
    bool writes;
    CFX_TRY(read_flag(job, "inplace", &writes));
    if (!writes)
        CFX_TRY(read_flag(job, "_is_impure", &writes));
    if (writes) {
        job->effect = CFX_EFFECT_WRITES;
        return CFX_OK;
    }
    CFX_TRY(read_flag(job, "training", &job->training));
    return add_classes(job);
}

static cfx_status add_children(effect_job *job)
{
    const cfx_module_tree *modules = job->modules;
    if (!modules->each_child)
        return CFX_OK;
    cfx_status status = modules->each_child(modules->ctx, job->path.data, add_child, job, job->err);
    return status == CFX_OK ? CFX_OK : cfxi_base_failed(job->err, status);
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
    for (size_t at = 0; at < job->paths.size && job->effect < CFX_EFFECT_WRITES;
         at += job->path.size + 1) {
        const size_t size = strlen(job->paths.data + at);
        bool again;
        cfx_buffer_free(&job->path);
        CFX_TRY(append(job, &job->path, job->paths.data + at, size));
        CFX_TRY(see(job, &again));
        if (again)
            continue;
        CFX_TRY(add_own(job));
        CFX_TRY(add_children(job));
    }
    return CFX_OK;
}

cfx_status cfx_module_tree_effect(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                              cfx_effect *effect, cfx_error *err)
{
    effect_job job = {.modules = modules, .g = g, .err = err};
    cfx_buffer_init(&job.paths, g->allocator);
    cfx_buffer_init(&job.path, g->allocator);
    cfx_status status = walk(&job, path);
    *effect = status == CFX_OK ? job.effect : CFX_EFFECT_WRITES;
    cfx_buffer_free(&job.path);
    cfx_buffer_free(&job.paths);
    cfxi_base_pointers_free(&job.seen, g->allocator);
    return status;
}
