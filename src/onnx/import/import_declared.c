/* import_declared.c - types that the file declares for values whose shapes cannot be inferred: what a
 * loop gives, or an operator with axes that only a run knows. */
#include "engine_impl.h"

#include "dim/dim_impl.h"

/* ---- declarations by name ------------------------------------------------------------------ */

static bool is_named(const void *item, const void *key, size_t size)
{
    (void)size;
    return cfxi_onnx_same(((const cfxi_onnx_value *)item)->name, *(const cfxi_text *)key);
}

static void note_all(cfxi_import *m, cfxi_import_frame *f, const cfxi_onnx_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t hash =
            cfxi_base_hash_keyed(&m->key, values[i].name.data, values[i].name.size);
        if (!cfxi_base_set_find(&f->declared, hash, is_named, &values[i].name, 0))
            cfxi_base_set_insert(&f->declared, hash, &values[i]);
    }
}

static const cfxi_onnx_value *declared(cfxi_import *m, cfxi_import_frame *f, cfxi_text name)
{
    const cfxi_onnx_graph *g = f->graph;
    if (!g || g->values.n + g->outputs.n == 0)
        return NULL;
    if (f->declared.size == 0) {
        if (!cfxi_base_set_presize(&f->declared, g->values.n + g->outputs.n, m->allocator))
            return NULL;
        note_all(m, f, g->outputs.items, g->outputs.n);
        note_all(m, f, g->values.items, g->values.n);
    }
    const uint32_t hash = cfxi_base_hash_keyed(&m->key, name.data, name.size);
    return cfxi_base_set_find(&f->declared, hash, is_named, &name, 0);
}

/* ---- as facts ------------------------------------------------------------------------------ */

/* Sizes that are numbers are taken as they are; the others are new symbols. */
static cfx_tensor *abstract_of(cfxi_import *m, const cfxi_onnx_tensor_type *type, cfx_error *err)
{
    int64_t sizes[CFX_MAX_DIMS];
    const cfx_dtype dtype = cfxi_onnx_dtype(type->dtype);
    if (!type->shape || type->shape->dims.n > CFX_MAX_DIMS || dtype == CFX_DTYPE_COUNT)
        return NULL;
    for (size_t i = 0; i < type->shape->dims.n; i++) {
        const cfxi_onnx_dim *d = &type->shape->dims.items[i];
        sizes[i] = CFXI_ONNX_HAS(d, dim, size) && d->size >= 0
                       ? d->size : cfxi_dim_fresh(m->trace->trace->dims, err);
        if (err->status != CFX_OK)
            return NULL;
    }
    return cfx_tensor_new_abstract(dtype, sizes, type->shape->dims.n, m->allocator, err);
}

void cfxi_import_declare(cfxi_import_call *c, size_t i)
{
    cfxi_import *m = c->import;
    cfxi_imported *v = &c->outputs[i];
    const cfx_at at = {.scope = c->scope};
    cfx_error err = {0};
    cfx_node *n = v->kind == CFXI_IMPORTED_VAR ? cfxi_capture_var_node(c->scope, v->var) : NULL;
    if (!n || cfxi_capture_fact_of(m->trace->trace, n).kind != CFX_DATUM_INVALID)
        return;
    const cfxi_onnx_value *found = declared(m, c->frame, v->name);
    const cfxi_onnx_type *type = found ? found->type : NULL;
    cfx_tensor *t = type && type->tensor ? abstract_of(m, type->tensor, &err) : NULL;
    if (!t)
        return;
    cfx_datum known = cfx_datum_tensor(t);
    if (cfxi_capture_fact_set(at, n, known) == CFX_OK)
        v->var = cfxi_capture_var_of_value(at, cfx_value_node(n), n->graph, known);
    else
        cfx_datum_release(known);
}
