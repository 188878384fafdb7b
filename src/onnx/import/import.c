/* import.c - ONNX files as packages: the file is read, checked, traced and described. */
#include "engine_impl.h"

#include "format/package_impl.h"

/* ---- the program that is traced ------------------------------------------------------------ */

static bool define_inputs(cfxi_import *m, cfxi_import_frame *f, const cfxi_import_inputs *in,
                          const cfx_var *vars)
{
    const cfx_at at = {.scope = m->trace};
    cfx_error err = {0};
    for (size_t i = 0; i < in->n; i++) {
        cfxi_imported *v = cfxi_import_define(m, f, in->values[i]->name, &err);
        if (!v) {
            cfxi_capture_scope_take(at, &err);
            return false;
        }
        const cfxi_onnx_type *type = in->values[i]->type;
        const cfxi_onnx_tensor *usual = cfxi_import_default_of(m, in->values[i]->name);
        v->kind = CFXI_IMPORTED_VAR;
        v->var = usual ? cfxi_import_or_default(m, vars[i], in->values[i], usual) : vars[i];
        v->graph = cfxi_capture_scope_graph(m->trace);
        if (type && type->tensor && cfxi_onnx_narrow_bits(type->tensor->dtype))
            v->type = type->tensor->dtype;
    }
    return true;
}

/* What the graph returns: its one output, or a tuple of them. */
static cfx_var results(cfxi_import *m, const cfxi_import_frame *f, const cfxi_onnx_graph *g)
{
    const cfx_at at = {.scope = m->trace};
    const cfxi_imported **out = cfxi_base_arena_zeros(&m->arena, g->outputs.n, sizeof *out);
    cfx_var *vars = cfxi_base_arena_zeros(&m->arena, g->outputs.n, sizeof *vars);
    if (!out || !vars) {
        cfx_scope_fail_at(at, CFX_E_NOMEM, "out of memory");
        return cfx_var_empty();
    }
    if (!cfxi_import_outputs(m, f, g, out))
        return cfx_var_empty();
    for (size_t i = 0; i < g->outputs.n; i++)
        vars[i] = cfxi_import_var(m, (cfxi_imported *)out[i]);
    if (g->outputs.n == 1)
        return vars[0];
    return cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(vars, g->outputs.n));
}

typedef struct program {
    cfxi_import *import;
    const cfxi_import_inputs *inputs;
} program;

static cfx_var forward(cfx_scope *s, cfx_module *self, const cfx_var *in, size_t n)
{
    const program *p = cfx_module_data(self);
    cfxi_import *m = p->import;
    const cfxi_onnx_graph *g = m->model->graph;
    const cfx_at at = {.scope = s};
    cfx_error err = {0};
    cfx_var result = cfx_var_empty();
    cfxi_import_frame f = {.opsets = m->model->opsets.items, .num_opsets = m->model->opsets.n,
                           .nodes = g->nodes.items, .num_nodes = g->nodes.n, .graph = g};
    (void)n;
    m->trace = s;
    s->trace->lenient = true;
    if (cfxi_import_initializers(m, &f, g, &err) != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    else if (define_inputs(m, &f, p->inputs, in) && cfxi_import_nodes(m, &f))
        result = m->findings ? cfx_var_none() : results(m, &f, g);
    cfxi_import_frame_free(m, &f);
    m->trace = NULL;
    return result;
}

/* ---- the package --------------------------------------------------------------------------- */

static cfx_package *describe(cfxi_import *m, cfx_module *traced, const cfxi_import_inputs *in,
                             cfx_error *err)
{
    cfx_buffer graph, modules;
    cfx_package *p = NULL;
    cfx_state *weights = cfx_state_new(m->allocator, err);
    cfx_buffer_init(&graph, m->allocator);
    cfx_buffer_init(&modules, m->allocator);
    if (weights && cfx_module_describe(traced, cfx_buffer_sink(&graph), cfx_buffer_sink(&modules),
                                       weights, err) == CFX_OK) {
        const cfx_package_part parts[] = {{"graph.ir", graph.data, graph.size},
                                          {"module.ir", modules.data, modules.size},
                                          {"signature.ir", in->signature.data,
                                           in->signature.size}};
        const cfx_package_contents contents = {.model = cfx_module_class_name(traced),
                                               .parts = parts, .num_parts = 3,
                                               .weights = weights};
        const cfx_package_options options = {.allocator = m->allocator};
        p = cfx_package_new(&contents, &options, err);
    }
    cfx_buffer_free(&graph);
    cfx_buffer_free(&modules);
    cfx_state_free(weights);
    return p;
}

/* The name of the graph as that of a class. */
static const char *class_name(cfxi_import *m)
{
    const cfxi_text name = m->model->graph->name;
    return name.size > 0 && name.size < 200 ? cfxi_import_identifier(m, name) : "Model";
}

static cfx_package *trace(cfxi_import *m, cfx_error *err)
{
    cfxi_import_inputs in = {0};
    cfx_package *p = NULL;
    const cfx_scope_options options = {.allocator = m->allocator, .threads = 1};
    cfx_scope *s = cfxi_import_read_inputs(m, &in, err) == CFX_OK ? cfx_scope_new(&options, err)
                                                                  : NULL;
    const char *name = s ? class_name(m) : NULL;
    const cfx_class type = {.name = name, .inputs = in.n ? in.list.data : "",
                            .forward_n = forward};
    if (s && !name)
        cfxi_base_nomem(err);
    if (name) {
        program data = {m, &in};
        const cfxi_place place = {.what = m->file ? m->file : "the model"};
        cfxi_capture_scope_place(s, &place);
        m->root = cfx_module_new(s, &type);
        if (m->root) {
            cfx_module_set_data(m->root, &data);
            cfx_module_train(m->root, false);
        }
        cfx_module *traced = cfx_trace(s, m->root, .shapes = in.shapes.data ? in.shapes.data : "");
        if (traced && m->findings == 0)
            cfx_transform(s, traced, "dce");
        if (!cfx_scope_ok(s))
            *err = *cfx_scope_error(s);
        else if (cfxi_import_refuse(m, err) == CFX_OK)
            p = describe(m, traced, &in, err);
    }
    cfx_scope_free(s);
    cfxi_import_inputs_free(&in);
    return p;
}

/* ---- doors --------------------------------------------------------------------------------- */

static void import_free(cfxi_import *m)
{
    for (size_t i = 0; i < m->tensors.size; i++)
        cfx_tensor_release(((cfx_tensor **)m->tensors.data)[i]);
    cfxi_base_vec_free(&m->tensors, sizeof(cfx_tensor *), m->allocator);
    cfxi_base_pointers_free(&m->by_data, m->allocator);
    cfxi_base_set_free(&m->rows, m->allocator);
    cfxi_base_set_free(&m->functions, m->allocator);
    cfxi_base_set_free(&m->defaults, m->allocator);
    cfx_scope_free(m->eager);
    cfxi_onnx_source_close(&m->source);
    cfxi_base_arena_release(&m->arena);
}

static cfx_package *import_bytes(cfxi_bytes *bytes, const char *folder, const char *file,
                                 const cfx_onnx_read_options *options, cfx_error *err)
{
    cfx_error own;
    cfx_package *p = NULL;
    err = cfxi_base_error_or(err, &own);
    const cfx_allocator *allocator = cfxi_base_allocator(options->allocator);
    cfxi_import m = {.allocator = allocator, .options = options, .file = file,
                     .source = {.bytes = bytes, .folder = folder, .allocator = allocator,
                                .read_only = options->read_only}};
    m.key = cfxi_base_hash_key_new(&m);
    cfxi_base_arena_init(&m.arena, allocator);
    m.model = cfxi_onnx_read_model(bytes->data, bytes->size, &m.arena, err);
    if (m.model && !m.model->graph)
        cfx_error_set(err, CFX_E_VALUE, "the file has no graph: it is not an ONNX model");
    else if (m.model && m.model->graph->outputs.n == 0)
        cfx_error_set(err, CFX_E_VALUE, "the graph has no outputs");
    else if (m.model && (!cfxi_import_list_functions(&m) || !cfxi_import_list_defaults(&m)))
        cfxi_base_nomem(err);
    else if (m.model && cfxi_import_check(&m, err) == CFX_OK)
        p = trace(&m, err);
    import_free(&m);
    return p;
}

static const cfx_onnx_read_options all_zero;

cfx_package *cfx_onnx_read(const void *data, size_t size, const char *folder,
                           const cfx_onnx_read_options *options, cfx_error *err)
{
    const cfx_onnx_read_options *o = options ? options : &all_zero;
    cfxi_bytes *bytes = cfxi_format_bytes_borrow(data, size, o->allocator, err);
    cfx_package *p = bytes ? import_bytes(bytes, folder, NULL, o, err) : NULL;
    cfxi_format_bytes_release(bytes);
    return p;
}

cfx_package *cfx_onnx_load(const char *path, const cfx_onnx_read_options *options, cfx_error *err)
{
    const cfx_onnx_read_options *o = options ? options : &all_zero;
    const cfx_allocator *allocator = cfxi_base_allocator(o->allocator);
    cfxi_bytes *bytes = cfxi_format_bytes_map(path, allocator, err);
    cfx_package *p = NULL;
    const char *slash = strrchr(path, '/');
    cfx_buffer folder;
    if (!bytes)
        return NULL;
    bytes->apart = true;  /* each message has bytes of its own */
    if (o->read_only)
        cfxi_format_bytes_protect(bytes);
    cfx_buffer_init(&folder, allocator);
    const size_t size = slash ? (size_t)(slash - path) : 1;
    const char *file = slash ? slash + 1 : path;
    if (cfx_buffer_append(&folder, slash ? path : ".", size) != CFX_OK)
        cfxi_base_nomem(err);
    else
        p = import_bytes(bytes, slash == path ? "/" : folder.data, file, o, err);
    cfx_buffer_free(&folder);
    cfxi_format_bytes_release(bytes);
    return p;
}
