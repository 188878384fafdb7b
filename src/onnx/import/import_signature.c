/* import_signature.c - the inputs of a graph: their names as identifiers, their types and shapes
 * for the trace, and signature.ir, which keeps the names of the file. */
#include "engine_impl.h"

#include <stdio.h>

/* ---- which they are ------------------------------------------------------------------------ */

static bool is_named(const void *item, const void *key, size_t size)
{
    (void)size;
    return cfxi_onnx_same(*(const cfxi_text *)item, *(const cfxi_text *)key);
}

static void note_name(const cfxi_import *m, cfxi_hash_set *names, const cfxi_text *name)
{
    const uint32_t hash = cfxi_base_hash_keyed(&m->key, name->data, name->size);
    if (!cfxi_base_set_find(names, hash, is_named, name, 0))
        cfxi_base_set_insert(names, hash, name);
}

/* The names of all initializers; false if memory is out. */
static bool name_initializers(const cfxi_import *m, cfxi_hash_set *names)
{
    const cfxi_onnx_graph *g = m->model->graph;
    const size_t n = g->initializers.n + g->sparse_initializers.n;
    if (n > 0 && !cfxi_base_set_presize(names, n, m->allocator))
        return false;
    for (size_t i = 0; i < g->initializers.n; i++)
        note_name(m, names, &g->initializers.items[i].name);
    for (size_t i = 0; i < g->sparse_initializers.n; i++)
        if (g->sparse_initializers.items[i].values)
            note_name(m, names, &g->sparse_initializers.items[i].values->name);
    return true;
}

static bool is_initializer(const cfxi_import *m, const cfxi_hash_set *names, cfxi_text name)
{
    const uint32_t hash = cfxi_base_hash_keyed(&m->key, name.data, name.size);
    return cfxi_base_set_find(names, hash, is_named, &name, 0) != NULL;
}

static bool is_taken(const cfxi_import_inputs *in, const char *name)
{
    for (size_t i = 0; i < in->n; i++)
        if (strcmp(in->names[i], name) == 0)
            return true;
    return false;
}

/* The name as an identifier that no other input has. */
static const char *unique(cfxi_import *m, const cfxi_import_inputs *in, cfxi_text name)
{
    const char *plain = cfxi_import_identifier(m, name);
    for (size_t k = 1; plain && is_taken(in, plain); k++) {
        char numbered[300];
        snprintf(numbered, sizeof numbered, "%.250s_%zu", plain, k);
        if (is_taken(in, numbered))
            continue;
        plain = cfxi_import_identifier(m, (cfxi_text){numbered, strlen(numbered)});
    }
    return plain;
}

/* ---- text ---------------------------------------------------------------------------------- */

typedef struct writer {
    cfxi_import *m;
    cfxi_out shapes;
    cfxi_out signature;
    size_t unnamed;  /* sizes without a name */
} writer;

/* One size: a number, a name, or one that nothing is known of. */
static void write_dim(writer *w, const cfxi_onnx_dim *d)
{
    if (CFXI_ONNX_HAS(d, dim, size) && d->size >= 0) {
        cfxi_base_out_printf(&w->shapes, "%lld", (long long)d->size);
        cfxi_base_out_printf(&w->signature, "%lld", (long long)d->size);
        return;
    }
    const char *name = d->name.size > 0 ? cfxi_import_identifier(w->m, d->name) : NULL;
    if (!name || d->name.size > 100) {
        cfxi_base_out_printf(&w->shapes, "unnamed_%zu", w->unnamed++);
        cfxi_base_out_str(&w->signature, "None");
        return;
    }
    cfxi_base_out_str(&w->shapes, name);
    cfxi_base_out_quoted(&w->signature, name, strlen(name), '"');
}

static void write_sizes(writer *w, const cfxi_onnx_shape *shape)
{
    cfxi_base_out_char(&w->shapes, '[');
    cfxi_base_out_char(&w->signature, '(');
    for (size_t i = 0; i < shape->dims.n; i++) {
        cfxi_base_out_str(&w->shapes, i ? ", " : "");
        cfxi_base_out_str(&w->signature, i ? ", " : "");
        write_dim(w, &shape->dims.items[i]);
    }
    cfxi_base_out_char(&w->shapes, ']');
    cfxi_base_out_str(&w->signature, shape->dims.n == 1 ? ",)" : ")");
}

/* ', "tensor", torch.float32, ("N", 3)' and 'float32[N, 3]' */
static cfx_status write_type(writer *w, const cfxi_onnx_value *v, cfx_error *err)
{
    const cfxi_onnx_tensor_type *t = v->type ? v->type->tensor : NULL;
    if (!t) {
        cfxi_base_out_str(&w->shapes, "?");
        cfxi_base_out_str(&w->signature, ", \"any\"");
        return CFX_OK;
    }
    const cfx_dtype dtype = cfxi_onnx_dtype(t->dtype);
    if (dtype == CFX_DTYPE_COUNT)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "the input '%.*s' has elements of type %s, "
                             "which cfx does not have",
                             (int)(v->name.size < 100 ? v->name.size : 100), v->name.data,
                             cfxi_onnx_dtype_name(t->dtype));
    if (t->shape && t->shape->dims.n > CFX_MAX_DIMS)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "the input '%.*s' has %zu dimensions; cfx has "
                             "at most %d", (int)(v->name.size < 100 ? v->name.size : 100),
                             v->name.data, t->shape->dims.n, CFX_MAX_DIMS);
    cfxi_base_out_printf(&w->signature, ", \"tensor\", torch.%s, ", cfx_dtype_name(dtype));
    if (!t->shape) {
        cfxi_base_out_str(&w->shapes, "?");
        cfxi_base_out_str(&w->signature, "None");
        return CFX_OK;
    }
    cfxi_base_out_str(&w->shapes, cfx_dtype_name(dtype));
    write_sizes(w, t->shape);
    return CFX_OK;
}

static cfx_status write_input(writer *w, const cfxi_import_inputs *in, size_t i, cfx_error *err)
{
    static const cfxi_onnx_value any = {.type = NULL};  /* None, or what the file says */
    const cfxi_text name = in->values[i]->name;
    cfxi_base_out_printf(&w->shapes, "%s%s=", i ? ", " : "", in->names[i]);
    cfxi_base_out_str(&w->signature, i ? ", (" : "(");
    cfxi_base_out_quoted(&w->signature, name.data, name.size, '"');
    const bool optional = cfxi_import_default_of(w->m, name) != NULL;
    CFX_TRY(write_type(w, optional ? &any : in->values[i], err));
    cfxi_base_out_str(&w->signature, ")");
    return CFX_OK;
}

/* One result is returned as it is, and has no name. */
static void write_results(writer *w, const cfxi_onnx_graph *g)
{
    if (g->outputs.n == 1) {
        cfxi_base_out_str(&w->signature, "None");
        return;
    }
    cfxi_base_out_str(&w->signature, "[");
    for (size_t i = 0; i < g->outputs.n; i++) {
        const cfxi_text name = g->outputs.items[i].name;
        cfxi_base_out_str(&w->signature, i ? ", (" : "(");
        cfxi_base_out_quoted(&w->signature, name.data, name.size, '"');
        cfxi_base_out_str(&w->signature, ", False)");
    }
    cfxi_base_out_str(&w->signature, "]");
}

static cfx_status write_all(cfxi_import *m, cfxi_import_inputs *in, cfx_error *err)
{
    writer w = {.m = m};
    cfx_status status = CFX_OK;
    cfxi_base_out_begin(&w.shapes, cfx_buffer_sink(&in->shapes));
    cfxi_base_out_begin(&w.signature, cfx_buffer_sink(&in->signature));
    cfxi_base_out_str(&w.signature, "graph():\n  output({\"inputs\": [");
    for (size_t i = 0; i < in->n && status == CFX_OK; i++)
        status = write_input(&w, in, i, err);
    cfxi_base_out_str(&w.signature, "], \"state\": [], \"results\": ");
    write_results(&w, m->model->graph);
    cfxi_base_out_str(&w.signature, ", \"guards\": \"\", \"structure\": None})\n");
    const cfx_status end = cfxi_base_out_end(&w.shapes, err);
    const cfx_status last = cfxi_base_out_end(&w.signature, err);
    return status != CFX_OK ? status : end != CFX_OK ? end : last;
}

static cfx_status add_input(cfxi_import *m, cfxi_import_inputs *in, const cfxi_onnx_value *v,
                            bool optional, cfx_error *err)
{
    const char *name = unique(m, in, v->name);
    if (!name || cfx_buffer_append(&in->list, ", ", in->n ? 2 : 0) != CFX_OK ||
        cfx_buffer_append(&in->list, name, strlen(name)) != CFX_OK ||
        cfx_buffer_append(&in->list, "=None", optional ? 5 : 0) != CFX_OK)
        return cfxi_base_nomem(err);
    in->values[in->n] = v;
    in->names[in->n++] = name;
    return CFX_OK;
}

/* The inputs with names: those that must be given, then those with defaults. */
static cfx_status list_inputs(cfxi_import *m, cfxi_import_inputs *in, const cfxi_hash_set *names,
                              cfx_error *err)
{
    const cfxi_onnx_graph *g = m->model->graph;
    for (size_t i = 0; i < g->inputs.n; i++)
        if (!is_initializer(m, names, g->inputs.items[i].name))
            CFX_TRY(add_input(m, in, &g->inputs.items[i], false, err));
    for (size_t i = 0; i < g->inputs.n; i++)
        if (cfxi_import_default_of(m, g->inputs.items[i].name))
            CFX_TRY(add_input(m, in, &g->inputs.items[i], true, err));
    return CFX_OK;
}

cfx_status cfxi_import_read_inputs(cfxi_import *m, cfxi_import_inputs *in, cfx_error *err)
{
    const size_t n = m->model->graph->inputs.n;
    cfxi_hash_set names = {0};
    cfx_buffer_init(&in->list, m->allocator);
    cfx_buffer_init(&in->shapes, m->allocator);
    cfx_buffer_init(&in->signature, m->allocator);
    in->values = cfxi_base_arena_zeros(&m->arena, n, sizeof *in->values);
    in->names = cfxi_base_arena_zeros(&m->arena, n, sizeof *in->names);
    if (!in->values || !in->names || !name_initializers(m, &names))
        return cfxi_base_nomem(err);
    const cfx_status status = list_inputs(m, in, &names, err);
    cfxi_base_set_free(&names, m->allocator);
    return status == CFX_OK ? write_all(m, in, err) : status;
}

void cfxi_import_inputs_free(cfxi_import_inputs *in)
{
    cfx_buffer_free(&in->list);
    cfx_buffer_free(&in->shapes);
    cfx_buffer_free(&in->signature);
}
