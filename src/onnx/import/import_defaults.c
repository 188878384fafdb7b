/* import_defaults.c - inputs that have an initializer, too: who calls the model may leave them out.
 *
 * Before version 4 of the format each initializer was listed as an input: those are constants. So
 * are small lists of integers in any version: rules need to know sizes and axes. An input that may
 * be left out is None then, and the graph takes the initializer in its place:
 *
 *     cache = cache_default if cache is None else cache
 */
#include "engine_impl.h"

static bool may_be_given(const cfxi_import *m, const cfxi_onnx_tensor *t)
{
    const cfx_dtype dtype = cfxi_onnx_dtype(t->dtype);
    return m->model->ir_version >= 4 && dtype != CFX_DTYPE_COUNT &&
           !cfxi_onnx_narrow_bits(t->dtype) && (cfx_dtype_is_float(dtype) || t->sizes.n > 1);
}

static bool is_named(const void *item, const void *key, size_t size)
{
    (void)size;
    return cfxi_onnx_same(((const cfxi_onnx_tensor *)item)->name, *(const cfxi_text *)key);
}

const cfxi_onnx_tensor *cfxi_import_default_of(const cfxi_import *m, cfxi_text name)
{
    const uint32_t hash = cfxi_base_hash_keyed(&m->key, name.data, name.size);
    return m->defaults.size ? cfxi_base_set_find(&m->defaults, hash, is_named, &name, 0) : NULL;
}

/* Those that are inputs, too, among the initializers. */
static void keep_inputs(cfxi_import *m, const cfxi_hash_set *all)
{
    const cfxi_onnx_graph *g = m->model->graph;
    for (size_t i = 0; i < g->inputs.n; i++) {
        const cfxi_text *name = &g->inputs.items[i].name;
        const uint32_t hash = cfxi_base_hash_keyed(&m->key, name->data, name->size);
        const cfxi_onnx_tensor *t = cfxi_base_set_find(all, hash, is_named, name, 0);
        if (t && may_be_given(m, t) && !cfxi_import_default_of(m, *name))
            cfxi_base_set_insert(&m->defaults, hash, t);
    }
}

bool cfxi_import_list_defaults(cfxi_import *m)
{
    const cfxi_onnx_graph *g = m->model->graph;
    cfxi_hash_set all = {0};
    if (g->initializers.n == 0 || g->inputs.n == 0)
        return true;
    if (!cfxi_base_set_presize(&all, g->initializers.n, m->allocator))
        return false;
    for (size_t i = 0; i < g->initializers.n; i++) {
        const cfxi_onnx_tensor *t = &g->initializers.items[i];
        const uint32_t hash = cfxi_base_hash_keyed(&m->key, t->name.data, t->name.size);
        if (!cfxi_base_set_find(&all, hash, is_named, &t->name, 0))
            cfxi_base_set_insert(&all, hash, t);
    }
    const bool good = cfxi_base_set_presize(&m->defaults, g->inputs.n, m->allocator);
    if (good)
        keep_inputs(m, &all);
    cfxi_base_set_free(&all, m->allocator);
    return good;
}

/* ---- in the graph -------------------------------------------------------------------------- */

typedef struct choice {
    cfxi_import *m;
    cfxi_imported usual;
} choice;

static cfx_var take_usual(cfx_scope *s, void *ctx, const cfx_var *in)
{
    choice *c = ctx;
    (void)s;
    (void)in;
    return cfxi_import_weight(c->m, &c->usual);
}

static cfx_var take_given(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)s;
    (void)ctx;
    return in[0];
}

cfx_var cfxi_import_or_default(cfxi_import *m, cfx_var given, const cfxi_onnx_value *input,
                               const cfxi_onnx_tensor *t)
{
    cfx_scope *s = m->trace;
    const cfx_at at = {.scope = s};
    choice c = {m, {.kind = CFXI_IMPORTED_KNOWN, .name = t->name, .tensor = t}};
    const cfx_var v = cfx_if_at(at, cfx_is(s, given, cfx_var_none()), take_usual, take_given, &c,
                                cfx_vars_make(&given, 1));
    return cfxi_import_typed(m, v, input->type);
}
