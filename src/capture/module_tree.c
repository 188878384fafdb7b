/* module_tree.c - the modules below a root as passes ask for them (module.h).
 *
 * A pass that sets an attribute must not change who else has the module: on the way to the
 * attribute, modules that others have, too, are replaced by copies.
 */
#include "capture_impl.h"

static cfx_status missing(const char *path, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_KEY, "the module has no attribute '%.200s'", path);
}

/* The module at a path, "" being the root; or NULL. */
static cfx_module *module_at(cfx_module *root, const char *path)
{
    return path[0] ? cfx_module_child(root, path) : root;
}

/* ---- reading ------------------------------------------------------------------------------- */

static cfx_status class_name(void *ctx, const char *path, cfx_sink out, cfx_error *err)
{
    const cfx_module *m = module_at(ctx, path);
    if (!m)
        return missing(path, err);
    const char *name = cfx_module_class_name(m);
    return cfxi_base_failed(err, cfxi_base_sink_write(out, name, strlen(name)));
}

static cfx_status each_child(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx,
                             cfx_error *err)
{
    const cfx_module *m = module_at(ctx, path);
    for (size_t i = 0; m && i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind == CFXI_MEMBER_CHILD)
            CFX_TRY(fn(fn_ctx, e->name, err));
    }
    return m ? CFX_OK : missing(path, err);
}

static const void *identity(void *ctx, const char *path)
{
    const cfx_module *m = module_at(ctx, path);
    const cfxi_member *e = m ? NULL : cfxi_capture_module_at(ctx, path);
    if (m || !e)
        return m;
    return e->value.kind == CFX_DATUM_TENSOR ? (const void *)e->value.as.tensor : (const void *)e;
}

static const void *memory(void *ctx, const char *path)
{
    const cfxi_member *e = module_at(ctx, path) ? NULL : cfxi_capture_module_at(ctx, path);
    return e && e->value.kind == CFX_DATUM_TENSOR ? e->value.as.tensor->storage : NULL;
}

static cfx_value sizes_of(cfx_graph *g, const cfx_tensor *t, cfx_error *err)
{
    cfx_value sizes[CFX_MAX_DIMS];
    for (size_t i = 0; i < cfx_tensor_ndim(t); i++)
        sizes[i] = cfx_value_int(cfx_tensor_sizes(t)[i]);
    return cfx_value_tuple(g, sizes, cfx_tensor_ndim(t), err);
}

/* What a tensor tells of itself, and its place: parameters are learned, if they are no integers. */
static cfx_value of_tensor(cfx_graph *g, const cfxi_member *e, const char *name, cfx_error *err)
{
    const cfx_tensor *t = e->value.as.tensor;
    const cfx_dtype dtype = cfx_tensor_dtype(t);
    if (strcmp(name, "requires_grad") == 0)
        return cfx_value_bool(e->kind == CFXI_MEMBER_PARAMETER &&
                              (cfx_dtype_is_float(dtype) || cfx_dtype_is_complex(dtype)));
    if (strcmp(name, "dtype") == 0)
        return cfx_value_dtype(dtype);
    if (strcmp(name, "shape") == 0)
        return sizes_of(g, t, err);
    if (strcmp(name, "ndim") == 0)
        return cfx_value_int((int64_t)cfx_tensor_ndim(t));
    if (strcmp(name, "device") == 0)
        return cfx_value_device(g, "cpu", 3, err);
    return cfx_value_invalid();
}

/* path = PREFIX.name: an attribute of the tensor at PREFIX. */
static cfx_value inside_tensor(const cfx_module *root, cfx_graph *g, const char *path,
                               cfx_error *err)
{
    char prefix[512];
    const char *dot = strrchr(path, '.');
    if (!dot || (size_t)(dot - path) >= sizeof prefix)
        return cfx_value_invalid();
    memcpy(prefix, path, (size_t)(dot - path));
    prefix[dot - path] = '\0';
    const cfxi_member *e = cfxi_capture_module_at(root, prefix);
    return e && e->value.kind == CFX_DATUM_TENSOR ? of_tensor(g, e, dot + 1, err)
                                                  : cfx_value_invalid();
}

static cfx_value get(void *ctx, cfx_graph *g, const char *path, cfx_error *err)
{
    const char *last;
    cfx_error why = {0};
    cfx_module *owner = cfxi_capture_module_owner(ctx, path, &last);
    const cfxi_member *e = owner ? cfxi_capture_module_find(owner, last, strlen(last)) : NULL;
    if (e && e->kind == CFXI_MEMBER_CHILD)
        return cfxi_capture_value_from_module(g, e->child, err);
    if (e)
        return cfxi_capture_value_from_datum(g, e->value, err);
    if (path[0] == '\0')
        return cfxi_capture_value_from_module(g, ctx, err);
    if (owner && strcmp(last, "training") == 0)
        return cfx_value_bool(owner->training);
    cfx_value v = inside_tensor(ctx, g, path, &why);
    if (v.kind == CFX_KIND_INVALID && why.status == CFX_OK)
        missing(path, err);
    else if (v.kind == CFX_KIND_INVALID && err)
        *err = why;
    return v;
}

static cfx_graph *graph(void *ctx, const char *path)
{
    const cfx_module *m = module_at(ctx, path);
    return m && m != ctx ? m->graph : NULL;
}

/* ---- changing ------------------------------------------------------------------------------ */

/* The child called name[:size] of `m`, and of nobody else: a copy takes its place if need be, and a
 * new one is made if there is none. */
static cfx_module *own_child(cfx_module *m, const char *name, size_t size, cfx_error *err)
{
    const cfxi_member *e = cfxi_capture_module_find(m, name, size);
    if (e && e->kind == CFXI_MEMBER_CHILD && cfxi_capture_module_is_own(e->child))
        return e->child;
    if (e && e->kind != CFXI_MEMBER_CHILD) {
        cfx_error_set(err, CFX_E_KEY, "'%.*s' is not a module", (int)size, name);
        return NULL;
    }
    cfx_module *made =
        e ? cfxi_capture_module_copy(e->child, err) : cfxi_capture_module_make(m->allocator, err);
    if (!made)
        return NULL;
    if (!e)
        made->training = m->training;
    const cfx_datum none = cfx_datum_invalid();
    cfx_status status = cfxi_capture_module_put(m, name, size, CFXI_MEMBER_CHILD, made, none, err);
    cfx_module_release(made);  /* its parent has it, if there is one */
    return status == CFX_OK ? made : NULL;
}

/* The tree's own module in which the last name of `path` is; NULL with *err set. */
static cfx_module *own_owner(cfx_module *root, const char *path, const char **last, cfx_error *err)
{
    cfx_module *m = root;
    const char *dot;
    while (m && (dot = strchr(path, '.')) != NULL) {
        m = own_child(m, path, (size_t)(dot - path), err);
        path = dot + 1;
    }
    *last = path;
    return m;
}

static cfx_status set(void *ctx, cfx_graph *g, const char *path, cfx_value v, cfx_error *err)
{
    const char *last;
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    cfx_module *m = own_owner(ctx, path, &last, err);
    if (!m)
        return ctx ? err->status : missing(path, err);
    cfx_datum d = cfxi_capture_datum_of_value(v, cfx_graph_allocator(g), err);
    if (d.kind == CFX_DATUM_INVALID)
        return err->status;
    const cfxi_member_kind kind = d.kind == CFX_DATUM_TENSOR ? CFXI_MEMBER_BUFFER
                                                             : CFXI_MEMBER_ATTRIBUTE;
    const cfxi_member *old = cfxi_capture_module_find(m, last, strlen(last));
    const bool stays = old && old->kind == CFXI_MEMBER_PARAMETER && d.kind == CFX_DATUM_TENSOR;
    cfx_status status = CFX_OK;
    if (strcmp(last, "training") == 0 && d.kind == CFX_DATUM_BOOL)
        m->training = d.as.b;
    else
        status = cfxi_capture_module_put(m, last, strlen(last),
                                         stays ? CFXI_MEMBER_PARAMETER : kind, NULL, d, err);
    cfx_datum_release(d);
    return status;
}

static cfx_status remove_at(void *ctx, const char *path, cfx_error *err)
{
    const char *last;
    if (!cfxi_capture_module_at(ctx, path))
        return missing(path, err);
    cfx_module *m = own_owner(ctx, path, &last, err);
    if (!m)
        return err ? err->status : CFX_E_NOMEM;
    cfxi_capture_module_drop(m, last, strlen(last));
    return CFX_OK;
}

cfx_status cfxi_capture_tree_put(cfx_module *root, const char *path, cfx_module *m, cfx_error *err)
{
    const char *last;
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    cfx_module *owner = own_owner(root, path, &last, err);
    if (!owner)
        return cfxi_base_failed(err, err->status);
    return cfxi_capture_module_put(owner, last, strlen(last), CFXI_MEMBER_CHILD, m,
                                   cfx_datum_invalid(), err);
}

static cfx_status copy(void *ctx, const char *from, const char *to, cfx_error *err)
{
    const cfx_module *source = module_at(ctx, from);
    if (!source)
        return missing(from, err);
    cfx_module *made = cfxi_capture_module_copy(source, err);
    const cfx_status status = made ? cfxi_capture_tree_put(ctx, to, made, err) : CFX_E_NOMEM;
    cfx_module_release(made);
    return status;
}

/* ---- computing ----------------------------------------------------------------------------- */

enum { MOST_ARGS = 32 };

/* One for all calls: each would keep its memory as long as there are results from it. */
static cfx_runtime *runtime_of(cfx_module *root, cfx_error *err)
{
    const cfx_runtime_options options = {.allocator = root->allocator, .threads = 1};
    cfx_runtime *other = NULL;
    cfx_runtime *found = atomic_load(&root->runtime);
    if (found)
        return found;
    cfx_runtime *made = cfx_runtime_new(&options, err);
    if (!made || atomic_compare_exchange_strong(&root->runtime, &other, made))
        return made;
    cfx_runtime_free(made);
    return other;
}

static cfx_value call(void *ctx, cfx_graph *g, cfx_operator op, const cfx_value *args, size_t n,
                      cfx_error *err)
{
    cfx_module *root = ctx;
    cfx_datum data[MOST_ARGS];
    cfx_datum result = cfx_datum_invalid();
    cfx_value v = cfx_value_invalid();
    size_t made = 0;
    bool good = n <= MOST_ARGS;
    if (!good)
        cfx_error_set(err, CFX_E_LIMIT, "calls with more than %d arguments are "
                      "not supported", MOST_ARGS);
    for (; good && made < n; made += good) {
        data[made] = cfxi_capture_datum_of_value(args[made], root->allocator, err);
        good = data[made].kind != CFX_DATUM_INVALID;
    }
    cfx_runtime *rt = good ? runtime_of(root, err) : NULL;
    if (rt)
        result = cfx_operator_run(rt, op, data, n, err);
    if (result.kind != CFX_DATUM_INVALID)
        v = cfxi_capture_value_from_datum(g, result, err);
    cfx_datum_release(result);
    for (size_t i = 0; i < made; i++)
        cfx_datum_release(data[i]);
    return v;
}

cfx_module_tree cfx_module_as_tree(cfx_module *m)
{
    static const cfx_module_tree tree = {
        .class_name = class_name,
        .identity = identity,
        .get = get,
        .set = set,
        .remove = remove_at,
        .copy = copy,
        .graph = graph,
        .call = call,
        .each_child = each_child,
        .memory = memory,
    };
    cfx_module_tree all = tree;
    all.ctx = m;
    return all;
}
