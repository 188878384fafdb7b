/* import_declared.c - types that the file declares for values whose shapes cannot be inferred: what
 * a loop gives, or an operator with axes that only a run knows. */
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
    const size_t n = g ? g->inputs.n + g->outputs.n + g->values.n : 0;
    if (n == 0)
        return NULL;
    if (f->declared.size == 0) {
        if (!cfxi_base_set_presize(&f->declared, n, m->allocator))
            return NULL;
        note_all(m, f, g->inputs.items, g->inputs.n);
        note_all(m, f, g->outputs.items, g->outputs.n);
        note_all(m, f, g->values.items, g->values.n);
    }
    const uint32_t hash = cfxi_base_hash_keyed(&m->key, name.data, name.size);
    return cfxi_base_set_find(&f->declared, hash, is_named, &name, 0);
}

bool cfxi_import_is_sequence(cfxi_import_call *c, size_t i)
{
    const cfx_at at = {.scope = c->scope};
    const cfxi_imported *v = c->inputs[i];
    const cfxi_onnx_value *found = NULL;
    if (!v || v->kind != CFXI_IMPORTED_VAR)  /* known elements, or sizes */
        return false;
    cfx_datum d = cfxi_capture_var_datum(at, v->var);
    cfx_datum_release(d);  /* the variable has it */
    if (d.kind == CFX_DATUM_TENSOR || d.kind == CFX_DATUM_LIST)
        return d.kind == CFX_DATUM_LIST;
    for (cfxi_import_frame *f = c->frame; f && !found; f = f->outer)
        found = declared(c->import, f, v->name);
    if (!found || !found->type)
        cfxi_import_fail(c, CFX_E_UNSUPPORTED, "it is not known whether input %zu is a tensor or a "
                         "sequence; give the values of the file their types", i);
    return found && found->type && !found->type->tensor;
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

/* Notes what is known of a node: `t` is taken over. */
static cfx_var with_fact(cfxi_import_call *c, cfx_node *n, cfx_tensor *t, cfx_var otherwise)
{
    const cfx_at at = {.scope = c->scope};
    cfx_datum known = cfx_datum_tensor(t);
    if (cfxi_capture_fact_set(at, n, known) == CFX_OK)
        return cfxi_capture_var_of_value(at, cfx_value_node(n), n->graph, known);
    cfx_datum_release(known);
    return otherwise;
}

/* The node of a variable of which nothing is known; NULL if something is. */
static cfx_node *unknown_node(cfxi_import_call *c, cfx_var v)
{
    cfx_node *n = cfx_scope_is_tracing(c->scope) ? cfxi_capture_var_node(c->scope, v) : NULL;
    return n && cfxi_capture_fact_of(c->scope->trace, n).kind == CFX_DATUM_INVALID ? n : NULL;
}

void cfxi_import_declare(cfxi_import_call *c, size_t i)
{
    cfxi_imported *v = &c->outputs[i];
    cfx_error err = {0};
    cfx_node *n = v->kind == CFXI_IMPORTED_VAR ? unknown_node(c, v->var) : NULL;
    const cfxi_onnx_value *found = n ? declared(c->import, c->frame, v->name) : NULL;
    const cfxi_onnx_type *type = found ? found->type : NULL;
    cfx_tensor *t = type && type->tensor ? abstract_of(c->import, type->tensor, &err) : NULL;
    if (t)
        v->var = with_fact(c, n, t, v->var);
}

cfx_var cfxi_import_typed(cfxi_import *m, cfx_var v, const cfxi_onnx_type *type)
{
    cfxi_import_call c = {.scope = m->trace, .import = m};
    cfx_error err = {0};
    cfx_node *n = unknown_node(&c, v);
    cfx_tensor *t = n && type && type->tensor ? abstract_of(m, type->tensor, &err) : NULL;
    return t ? with_fact(&c, n, t, v) : v;
}

cfx_var cfxi_import_assume(cfxi_import_call *c, cfx_var v, cfx_dtype dtype, int rank)
{
    int64_t sizes[CFX_MAX_DIMS];
    cfx_error err = {0};
    cfx_node *n = unknown_node(c, v);
    if (!n || rank < 0 || rank > CFX_MAX_DIMS || dtype == CFX_DTYPE_COUNT)
        return v;
    for (int i = 0; i < rank && err.status == CFX_OK; i++)
        sizes[i] = cfxi_dim_fresh(c->scope->trace->dims, &err);
    cfx_tensor *t = err.status == CFX_OK
                        ? cfx_tensor_new_abstract(dtype, sizes, (size_t)rank, c->import->allocator,
                                                  &err) : NULL;
    return t ? with_fact(c, n, t, v) : v;
}
