/* export.c - writes a package as an ONNX model: what it takes and gives, and what its graph does.
 *
 * The graph is lowered and walked (export_walk.c). Inputs have the names and sizes of the
 * signature. What the model keeps from run to run, tensors that it writes to among it, is an
 * input, with its first value as a default, and an output: whoever runs the model hands it on.
 */
#include "dim/dim_impl.h"
#include "export_impl.h"
#include "format/package_impl.h"

#include <cfx/embed/dim.h>
#include <cfx/embed/pass.h>
#include <cfx/lower.h>
#include <cfx/signature.h>

#include <stdio.h>

/* A model on its way into a file. */
typedef struct job {
    cfxi_exporter x;
    cfx_scope *scope;          /* owns the module */
    cfx_graph *graph;          /* lowered */
    cfx_signature *signature;
    const cfx_package *package;
    cfxi_export_scope top;
    cfxi_vec inputs;           /* cfxi_onnx_value */
    cfxi_vec outputs;
} job;

static cfxi_text text_of(const char *text) { return (cfxi_text){text, strlen(text)}; }

/* ---- lowering ------------------------------------------------------------------------------ */

static cfx_status note_unlowered(void *ctx, const cfx_node *n, const char *why)
{
    cfxi_export_call c = {.x = ctx, .node = n};
    c.x->unlowered = true;
    cfxi_export_refuse(&c, "%s", why);
    return CFX_OK;
}

static cfx_status lower(job *j, cfx_error *err)
{
    cfx_module *m = cfx_module_from_package(j->scope, j->package);
    if (!m) {
        if (err)
            *err = *cfx_scope_error(j->scope);
        return cfx_scope_error(j->scope)->status;
    }
    j->x.root = m;
    j->graph = cfx_graph_clone(cfx_module_graph(m), NULL, err);
    if (!j->graph)
        return CFX_E_NOMEM;
    const cfx_module_tree tree = cfx_module_as_tree(m);
    const cfx_lower_options options = {.each = note_unlowered, .ctx = &j->x, .join_tied = true,
                                       .partial = true};
    CFX_TRY(cfxi_export_drop_checks(&j->x, j->graph, &tree, err));
    return cfx_graph_lower(j->graph, &tree, &options, err);
}

/* ---- inputs -------------------------------------------------------------------------------- */

static bool push_value(cfxi_exporter *x, cfxi_vec *values, const char *name, cfxi_onnx_type *type)
{
    if (x->failed || !cfxi_base_vec_reserve(values, 1, sizeof(cfxi_onnx_value), x->allocator)) {
        cfxi_export_fail(x);
        return false;
    }
    cfxi_onnx_value *v = (cfxi_onnx_value *)values->data + values->size++;
    *v = (cfxi_onnx_value){.name = text_of(name), .type = type};
    return true;
}

/* What is known of an input before the graph runs; INVALID if its type is not. */
static cfx_datum describe_input(cfxi_exporter *x, const cfx_signature_input *in)
{
    int64_t sizes[CFX_MAX_DIMS];
    cfx_datum d = cfx_datum_scalar(in->kind, 0);
    d.symbolic = 1;
    if (in->kind == CFX_DATUM_INT) {
        d.as.i = cfxi_dim_fresh_number(x->dims, x->err);
        return d;
    }
    if (in->kind == CFX_DATUM_FLOAT || in->kind == CFX_DATUM_BOOL)
        return d;
    if (in->kind != CFX_DATUM_TENSOR || in->rank < 0 || in->dtype == CFX_DTYPE_COUNT)
        return cfx_datum_invalid();
    for (int i = 0; i < in->rank; i++) {
        sizes[i] = in->sizes[i];
        const char *name = in->dims[i] ? in->dims[i] : cfxi_export_text(x, "%s_%d", in->name, i);
        if (sizes[i] < 0)
            sizes[i] = cfx_dims_symbol(x->dims, name, 2, x->err);
    }
    return cfx_datum_tensor(cfx_tensor_new_abstract(in->dtype, sizes, (size_t)in->rank,
                                                    x->allocator, x->err));
}

static cfxi_ev *unknown_input(job *j, const cfx_node *node, const char *name)
{
    cfxi_export_call c = {.x = &j->x, .node = node};
    cfx_error ignored = {0};
    const cfx_value value = cfx_node_arg(node, 0);
    const cfx_datum d = value.kind == CFX_KIND_INVALID
                            ? cfx_datum_invalid()
                            : cfxi_capture_datum_of_value(value, j->x.allocator, &ignored);
    if (ignored.status == CFX_E_NOMEM)
        return cfxi_export_fail(&j->x);
    if (d.kind != CFX_DATUM_INVALID)  /* its default */
        return cfxi_export_of_datum(&j->x, cfxi_export_own(&j->x, d));
    return cfxi_export_refuse(&c, "type and sizes of the input '%s' are not known; capture the "
                              "model with example inputs (cfx.capture), or pass them when you "
                              "save it", name);
}

/* The first value of state is the default of its input. */
static void add_default(job *j, const cfx_signature_input *in, const char *name)
{
    cfxi_exporter *x = &j->x;
    cfx_tensor *t = in->state && in->kind == CFX_DATUM_TENSOR
                        ? cfx_state_get(cfx_package_weights(j->package), in->name) : NULL;
    if (!t)
        return;
    const size_t before = x->initializers.size;
    cfxi_export_weight(x, in->name, t);
    if (!x->failed && x->initializers.size > before)
        ((cfxi_onnx_tensor *)x->initializers.data)[before].name = text_of(name);
}

static cfxi_ev *make_input(job *j, const cfx_node *node, const cfx_signature_input *in)
{
    cfxi_exporter *x = &j->x;
    const cfx_datum d = describe_input(x, in);
    if (d.kind == CFX_DATUM_INVALID)
        return x->err->status == CFX_E_NOMEM ? cfxi_export_fail(x)
                                             : unknown_input(j, node, in->name);
    cfxi_ev *v = cfxi_export_of_datum(x, cfxi_export_own(x, d));
    if (v->broken)
        return v;
    v->name = cfxi_export_unique(x, in->name);
    v->scope = x->scope;
    push_value(x, &j->inputs, v->name, cfxi_export_type(x, v, true));
    add_default(j, in, v->name);
    return v;
}

static cfxi_ev **make_inputs(job *j, size_t *n)
{
    cfxi_exporter *x = &j->x;
    cfx_signature_input in;
    *n = 0;
    for (const cfx_node *node = cfx_graph_first(j->graph); node; node = cfx_node_next(node))
        *n += cfx_node_op(node) == CFX_OP_PLACEHOLDER;
    cfxi_ev **inputs = cfxi_export_room(x, *n, sizeof *inputs);
    size_t i = 0;
    for (const cfx_node *node = cfx_graph_first(j->graph); inputs && node;
         node = cfx_node_next(node)) {
        if (cfx_node_op(node) != CFX_OP_PLACEHOLDER)
            continue;
        x->at = node;
        inputs[i] = cfx_signature_input_at(j->signature, i, &in)
                        ? make_input(j, node, &in)
                        : unknown_input(j, node, cfx_node_name(node, NULL));
        i++;
    }
    return inputs;
}

/* ---- outputs ------------------------------------------------------------------------------- */

static void add_output(job *j, cfxi_ev *v, const char *wish)
{
    cfxi_exporter *x = &j->x;
    cfxi_export_call call = {.x = x, .node = x->at};
    cfxi_export_call *c = &call;
    if (v->maybe_none)
        cfxi_export_refuse(c, "the result '%s' is None on one way and a value on another, and ONNX "
                           "has no None; return a value on both", wish);
    if (v->unmade || (v->broken && x->findings == 0))
        cfxi_export_refuse(c, "the result '%s' is not there in ONNX", wish);
    const bool text = v->datum.kind == CFX_DATUM_STR;  /* which is the same in each run */
    if (v->unmade || v->broken || x->failed || cfxi_export_is_none(v) || text)
        return;
    if (v->datum.kind != CFX_DATUM_TENSOR && !cfxi_export_is_number(v) && !v->element) {
        cfxi_export_refuse(c, "the result '%s' is a %s; ONNX models return tensors", wish,
                           cfx_datum_kind_name((cfx_datum_kind)v->datum.kind));
        return;
    }
    cfxi_ev *out = NODE("Identity", v);
    if (out->broken)
        return;
    cfxi_onnx_node *last = (cfxi_onnx_node *)x->scope->nodes.data + x->scope->nodes.size - 1;
    out->name = cfxi_export_unique(x, wish);
    last->outputs.items[0] = text_of(out->name);
    last->name = text_of(cfxi_export_text(x, "%s/Identity", out->name));
    push_value(x, &j->outputs, out->name, cfxi_export_type(x, v, true));
}

/* Values in containers are results of their own: "output_0", "output_key". */
static void add_leaves(job *j, cfxi_ev *v, const char *name)
{
    size_t n;
    const bool dict = v->datum.kind == CFX_DATUM_DICT;
    if (v->element || !cfx_datum_items(v->datum, &n)) {
        add_output(j, v, name);
        return;
    }
    for (size_t i = dict; i < v->n; i += 1 + dict) {
        const char *key = dict ? cfx_datum_text(v->items[i - 1]->datum, NULL) : NULL;
        add_leaves(j, v->items[i], key ? cfxi_export_text(&j->x, "%s_%s", name, key)
                                       : cfxi_export_text(&j->x, "%s_%zu", name, i));
    }
}

static void refuse_empty(job *j)
{
    cfxi_export_call c = {.x = &j->x, .node = j->x.at};
    if (j->outputs.size == 0 && j->x.findings == 0 && !j->x.failed)
        cfxi_export_refuse(&c, "the model has no result that it computes, and an ONNX model needs "
                           "one; return a tensor");
}

static void add_outputs(job *j, cfxi_ev *result)
{
    cfx_signature_result r;
    size_t listed = 0;
    if (result->broken || j->x.failed)
        return;
    if (!cfxi_capture_signature_lists(j->signature, &listed) || listed != result->n) {
        add_leaves(j, result, "output");
        return;
    }
    for (size_t i = 0; cfx_signature_result_at(j->signature, i, &r); i++)
        add_leaves(j, result->items[i],
                   r.state ? cfxi_export_text(&j->x, "%s_next", r.name) : r.name);
}

/* Tensors of the module that the graph has written to. */
static void add_kept(job *j)
{
    const cfxi_export_kept *kept = j->x.kept.data;
    for (size_t i = 0; i < j->x.kept.size; i++) {
        push_value(&j->x, &j->inputs, kept[i].name, kept[i].type);
        add_output(j, kept[i].value, cfxi_export_text(&j->x, "%s_next", kept[i].name));
    }
}

/* ---- the model ----------------------------------------------------------------------------- */

/* Of the first version of onnx with that opset. */
static int64_t ir_version(int opset)
{
    static const int versions[] = {8, 9, 9, 10, 10, 11, 12, 13, 13, 13, 14};
    return versions[opset - CFX_ONNX_OPSET];
}

_Static_assert(CFX_ONNX_OPSET_NEWEST - CFX_ONNX_OPSET == 10, "ir_version has a row for each opset");

/* What the graph was captured for, as the signature writes it. */
static const char *guards_of(job *j)
{
    cfx_value dict;
    size_t size;
    const char *text = "";
    cfx_error ignored = {0};
    cfx_graph *g = cfx_package_text(j->package, "signature.ir", &size)
                       ? cfxi_capture_package_graph(j->package, "signature.ir", j->x.allocator,
                                                    &ignored) : NULL;
    if (g && cfxi_capture_returned_dict(g, &dict)) {
        const char *guards = cfx_value_text(cfxi_capture_field(dict, "guards"), &size);
        char *copy = guards ? cfxi_export_room(&j->x, size + 1, 1) : NULL;
        text = copy ? memcpy(copy, guards, size) : text;
    }
    cfx_graph_release(g);
    if (ignored.status == CFX_E_NOMEM)
        cfxi_export_fail(&j->x);
    return text;
}

/* "cache.keys[0]" is an input, and "cache.keys[0]_next" what to give for it next time. */
static const char *state_of(job *j)
{
    cfx_signature_input in;
    const char *text = "";
    for (size_t i = 0; cfx_signature_input_at(j->signature, i, &in); i++)
        if (in.state)
            text = cfxi_export_text(&j->x, "%s%s%s", text, *text ? "\n" : "", in.name);
    const cfxi_export_kept *kept = j->x.kept.data;
    for (size_t i = 0; i < j->x.kept.size; i++)
        text = cfxi_export_text(&j->x, "%s%s%s", text, *text ? "\n" : "", kept[i].name);
    return text;
}

static void add_metadata(job *j, cfxi_onnx_model *m)
{
    const char *const values[] = {guards_of(j), state_of(j), j->x.checks ? j->x.checks : ""};
    static const char *const keys[] = {"cfx.guards", "cfx.state", "cfx.checks"};
    enum { KEYS = sizeof keys / sizeof *keys };
    cfxi_onnx_entry *entries = cfxi_export_room(&j->x, KEYS, sizeof *entries);
    for (size_t i = 0; entries && i < KEYS; i++)
        if (*values[i])
            entries[m->metadata.n++] =
                (cfxi_onnx_entry){.key = text_of(keys[i]), .value = text_of(values[i])};
    m->metadata.items = entries;
}

static void *keep_items(cfxi_exporter *x, const cfxi_vec *v, size_t size)
{
    void *items = cfxi_export_room(x, v->size, size);
    if (items && v->size > 0)
        memcpy(items, v->data, v->size * size);
    return items;
}

static cfxi_onnx_model *make_model(job *j)
{
    cfxi_exporter *x = &j->x;
    const char *name = cfxi_export_text(x, "%s", cfx_package_model(j->package));
    cfxi_onnx_graph *g = cfxi_export_scope_end(x, *name ? name : "model");
    cfxi_onnx_model *m = cfxi_export_room(x, 1, sizeof *m);
    cfxi_onnx_opset *opset = cfxi_export_room(x, 1, sizeof *opset);
    if (!g || !m || !opset)
        return NULL;
    g->initializers.items = keep_items(x, &x->initializers, sizeof *g->initializers.items);
    g->initializers.n = x->initializers.size;
    g->inputs.items = keep_items(x, &j->inputs, sizeof *g->inputs.items);
    g->inputs.n = j->inputs.size;
    g->outputs.items = keep_items(x, &j->outputs, sizeof *g->outputs.items);
    g->outputs.n = j->outputs.size;
    opset->version = x->opset;
    m->ir_version = ir_version(x->opset);
    m->opsets.items = opset;
    m->opsets.n = 1;
    m->producer = CFXI_TEXT("cfx");
    m->producer_version = text_of(cfxi_export_text(x, "%d.%d.%d", CFX_VERSION_MAJOR,
                                                   CFX_VERSION_MINOR, CFX_VERSION_PATCH));
    m->graph = g;
    add_metadata(j, m);
    return x->failed ? NULL : m;
}

/* ---- from beginning to end ----------------------------------------------------------------- */

static cfx_status begin(job *j, cfx_error *err)
{
    size_t size;
    cfxi_exporter *x = &j->x;
    j->scope = cfx_scope_new(&(cfx_scope_options){.allocator = x->allocator, .threads = 1}, err);
    x->dims = j->scope ? cfx_dims_new(x->allocator, err) : NULL;
    if (!x->dims)
        return CFX_E_NOMEM;
    x->rt = cfx_scope_runtime(j->scope);
    CFX_TRY(lower(j, err));
    const char *text = cfx_package_text(j->package, "signature.ir", &size);
    j->signature = text ? cfx_signature_parse(text, size, x->allocator, err)
                        : cfx_signature_of_graph(j->graph, x->allocator, err);
    return j->signature ? CFX_OK : err->status;
}

static void end(job *j)
{
    cfxi_exporter *x = &j->x;
    while (x->scope) {
        cfxi_export_scope *s = x->scope;
        cfxi_base_vec_free(&s->nodes, sizeof(cfxi_onnx_node), x->allocator);
        cfxi_base_vec_free(&s->values, sizeof(cfxi_onnx_value), x->allocator);
        cfxi_base_vec_free(&s->written, sizeof(cfxi_export_written), x->allocator);
        x->scope = s->outer;
    }
    for (size_t i = x->owned.size; i-- > 0;)
        cfx_datum_release(((cfx_datum *)x->owned.data)[i]);
    cfxi_base_vec_free(&x->owned, sizeof(cfx_datum), x->allocator);
    cfxi_base_vec_free(&x->initializers, sizeof(cfxi_onnx_tensor), x->allocator);
    cfxi_base_vec_free(&j->inputs, sizeof(cfxi_onnx_value), x->allocator);
    cfxi_base_vec_free(&j->outputs, sizeof(cfxi_onnx_value), x->allocator);
    cfxi_base_vec_free(&x->kept, sizeof(cfxi_export_kept), x->allocator);
    cfxi_base_set_free(&x->names, x->allocator);
    cfxi_base_set_free(&x->constants, x->allocator);
    cfxi_base_pointers_free(&x->weights, x->allocator);
    cfxi_base_pointers_free(&x->reads, x->allocator);
    cfxi_base_pointers_free(&x->nodes, x->allocator);
    cfx_signature_free(j->signature);
    cfx_graph_release(j->graph);
    cfx_dims_free(x->dims);
    cfx_scope_free(j->scope);
    cfxi_base_arena_release(&x->arena);
}

/* Everything but writing: nothing is written if anything was found. */
static cfxi_onnx_model *export_all(job *j, cfx_error *err)
{
    cfxi_exporter *x = &j->x;
    size_t n;
    if (begin(j, err) != CFX_OK)
        return NULL;
    cfxi_export_scope_begin(x, &j->top);
    cfxi_ev **inputs = make_inputs(j, &n);
    if (inputs)
        add_outputs(j, cfxi_export_graph(x, j->graph, inputs, n));
    add_kept(j);
    refuse_empty(j);
    if (x->failed)
        return NULL;
    if (x->findings == 0 && x->err->status == CFX_OK)
        return make_model(j);
    if (x->err->status == CFX_OK)
        cfx_error_set(err, CFX_E_UNSUPPORTED, "%zu call%s of the model cannot be written as ONNX: "
                      "%s%s", x->findings, x->findings == 1 ? "" : "s",
                      x->findings == 1 ? "" : "first ", x->first);
    return NULL;
}

static cfx_status check_options(const cfx_onnx_write_options *o, cfx_error *err)
{
    if (o->opset && (o->opset < CFX_ONNX_OPSET || o->opset > CFX_ONNX_OPSET_NEWEST))
        return cfx_error_set(err, CFX_E_VALUE, "opset %d cannot be written; choose one from %d to "
                             "%d", o->opset, CFX_ONNX_OPSET, CFX_ONNX_OPSET_NEWEST);
    return CFX_OK;
}

static cfx_status export_package(const cfx_package *p, const char *path, const cfx_sink *sink,
                                 const cfx_onnx_write_options *options, cfx_error *err)
{
    static const cfx_onnx_write_options plain = {0};
    cfx_error own = {0};
    job j = {.package = p};
    if (cfxi_base_expect(p, "package", err) != CFX_OK)
        return CFX_E_VALUE;
    j.x.options = options ? options : &plain;
    j.x.opset = j.x.options->opset ? j.x.options->opset : CFX_ONNX_OPSET;
    CFX_TRY(check_options(j.x.options, err));
    j.x.allocator = cfxi_format_package_allocator(p);
    j.x.broken.broken = true;
    j.x.broken.rank = -1;
    j.x.err = &own;
    cfxi_base_arena_init(&j.x.arena, j.x.allocator);
    cfxi_onnx_model *m = export_all(&j, &own);
    cfx_status status = m ? CFX_OK : own.status;
    if (m)
        status = cfxi_export_save(&j.x, m, path, sink, &own);
    end(&j);
    if (status != CFX_OK && err)
        *err = own;
    return status;
}

cfx_status cfx_onnx_save(const cfx_package *p, const char *path,
                         const cfx_onnx_write_options *options, cfx_error *err)
{
    if (cfxi_base_expect(path, "path", err) != CFX_OK)
        return CFX_E_VALUE;
    return export_package(p, path, NULL, options, err);
}

cfx_status cfx_onnx_write(const cfx_package *p, cfx_sink out,
                          const cfx_onnx_write_options *options, cfx_error *err)
{
    return export_package(p, NULL, &out, options, err);
}
