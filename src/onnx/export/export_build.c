/* export_build.c - nodes of ONNX: made one by one, with names, attributes and where they come from.
 */
#include "export_impl.h"

#include <cfx/embed/location.h>

#include <stdarg.h>
#include <stdio.h>

/* ---- memory and failures ------------------------------------------------------------------- */

cfxi_ev *cfxi_export_fail(cfxi_exporter *x)
{
    if (!x->failed && x->err->status == CFX_OK)
        cfxi_base_nomem(x->err);
    x->failed = true;
    return &x->broken;
}

void *cfxi_export_room(cfxi_exporter *x, size_t n, size_t size)
{
    void *room = x->failed ? NULL : cfxi_base_arena_zeros(&x->arena, n ? n : 1, size);
    if (!room)
        cfxi_export_fail(x);
    return room;
}

static const char *format_text(cfxi_exporter *x, const char *format, va_list args)
{
    char text[600];
    const int size = vsnprintf(text, sizeof text, format, args);
    const size_t used = size < 0 ? 0 : (size_t)size < sizeof text ? (size_t)size : sizeof text - 1;
    char *copy = cfxi_export_room(x, used + 1, 1);
    if (!copy)
        return "";
    memcpy(copy, text, used);
    cfxi_base_utf8_clean(copy);  /* a character may have been cut */
    return copy;
}

const char *cfxi_export_text(cfxi_exporter *x, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = format_text(x, format, args);
    va_end(args);
    return text;
}

/* The line of the program: "model.py:12", or "". */
static const char *place_of(cfxi_exporter *x, const cfx_node *n)
{
    const char *file = n ? cfx_node_file(n) : NULL;
    return file && *file ? cfxi_export_text(x, "%s:%u", file, (unsigned)cfx_node_line(n)) : "";
}

static void report(cfxi_exporter *x, const cfx_onnx_finding *f)
{
    if (x->findings++ == 0)
        snprintf(x->first, sizeof x->first, "%s%s%%%s (%s): %s", f->where, *f->where ? ": " : "",
                 f->node, f->op, f->why);
    if (x->options->each)
        x->options->each(x->options->ctx, f);
}

cfxi_ev *cfxi_export_refuse(cfxi_export_call *c, const char *format, ...)
{
    cfxi_exporter *x = c->x;
    va_list args;
    if (c->refused || x->failed)
        return &x->broken;
    c->refused = true;
    va_start(args, format);
    const char *why = format_text(x, format, args);
    va_end(args);
    const char *row = cfx_operator_name(c->op);
    const char *op = row ? cfxi_export_text(x, "cfx.ops.%s", row)
                     : c->node && cfx_node_op(c->node) != CFX_OP_OUTPUT
                         ? cfx_node_target(c->node, NULL, NULL) : NULL;
    report(x, &(cfx_onnx_finding){place_of(x, c->node),
                                  c->node ? cfx_node_name(c->node, NULL) : "", op ? op : "", why});
    return &x->broken;
}

cfx_datum cfxi_export_own(cfxi_exporter *x, cfx_datum d)
{
    if (!cfxi_base_vec_reserve(&x->owned, 1, sizeof d, x->allocator)) {
        cfx_datum_release(d);
        cfxi_export_fail(x);
        return cfx_datum_none();
    }
    ((cfx_datum *)x->owned.data)[x->owned.size++] = d;
    return d;
}

/* ---- names --------------------------------------------------------------------------------- */

static bool same_name(const void *item, const void *key, size_t size)
{
    return strlen(item) == size && memcmp(item, key, size) == 0;
}

static uint32_t hash_of_name(const void *item)
{
    return (uint32_t)cfxi_base_hash_bytes(item, strlen(item));
}

const char *cfxi_export_unique(cfxi_exporter *x, const char *wish)
{
    const char *name = wish;
    for (unsigned i = 1;; i++) {
        const size_t size = strlen(name);
        const uint32_t hash = (uint32_t)cfxi_base_hash_bytes(name, size);
        if (!cfxi_base_set_find(&x->names, hash, same_name, name, size)) {
            char *copy = cfxi_export_room(x, size + 1, 1);
            if (!copy || !cfxi_base_set_reserve(&x->names, hash_of_name, x->allocator)) {
                cfxi_export_fail(x);
                return "";
            }
            memcpy(copy, name, size);
            cfxi_base_set_insert(&x->names, hash, copy);
            return copy;
        }
        name = cfxi_export_text(x, "%.500s_%u", wish, i);
        if (x->failed)
            return "";
    }
}

/* "relu/Max_2": the node of the graph, the operator, the how-manieth. */
static const char *name_output(cfxi_exporter *x, const char *op)
{
    const char *node = x->at ? cfx_node_name(x->at, NULL) : "graph";
    return cfxi_export_unique(x, cfxi_export_text(x, "%.300s/%s_%zu", node, op, x->made++));
}

/* ---- nodes --------------------------------------------------------------------------------- */

static cfxi_text text_of(const char *text) { return (cfxi_text){text, strlen(text)}; }

/* "layers.0(torch.nn.Linear) < layers(torch.nn.ModuleList)", the innermost first. */
static const char *stack_of(cfxi_exporter *x, const cfx_node *n)
{
    const cfx_graph *g = cfx_node_graph(n);
    const char *text = "";
    for (uint32_t at = cfx_node_module_stack(n); at; at = cfx_graph_stack_outer(g, at))
        text = cfxi_export_text(x, "%s%s%s(%s)", text, *text ? " < " : "",
                                cfx_graph_stack_path(g, at), cfx_graph_stack_type(g, at));
    return text;
}

static void add_origin(cfxi_exporter *x, cfxi_onnx_node *node)
{
    if (!x->at || cfx_node_op(x->at) == CFX_OP_OUTPUT)
        return;
    const char *values[] = {place_of(x, x->at), stack_of(x, x->at)};
    static const char *const keys[] = {"cfx.location", "cfx.modules"};
    cfxi_onnx_entry *entries = cfxi_export_room(x, 2, sizeof *entries);
    size_t n = 0;
    for (size_t i = 0; entries && i < 2; i++)
        if (*values[i])
            entries[n++] = (cfxi_onnx_entry){.key = text_of(keys[i]), .value = text_of(values[i])};
    node->doc = text_of(values[0]);
    node->metadata.items = entries;
    node->metadata.n = entries ? n : 0;
}

static cfxi_onnx_node *last_node(cfxi_exporter *x)
{
    cfxi_vec *nodes = &x->scope->nodes;
    return x->failed || nodes->size == 0 ? NULL
                                         : (cfxi_onnx_node *)nodes->data + nodes->size - 1;
}

static cfxi_onnx_node *add_node(cfxi_exporter *x, const char *op)
{
    cfxi_vec *nodes = &x->scope->nodes;
    if (x->failed || !cfxi_base_vec_reserve(nodes, 1, sizeof(cfxi_onnx_node), x->allocator)) {
        cfxi_export_fail(x);
        return NULL;
    }
    cfxi_onnx_node *node = (cfxi_onnx_node *)nodes->data + nodes->size++;
    *node = (cfxi_onnx_node){.op = text_of(op)};
    add_origin(x, node);
    return node;
}

static bool is_one_of(const char *op, const char *const *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(op, all[i]) == 0)
            return true;
    return false;
}

/* The type of what an operator gives. */
static cfx_dtype result_dtype(const char *op, cfxi_ev *const *inputs, size_t n)
{
    static const char *const tests[] = {"Equal", "Less", "LessOrEqual", "Greater",
                                        "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN",
                                        "IsInf"};
    static const char *const counts[] = {"Shape", "Size", "NonZero", "ArgMax", "ArgMin"};
    if (is_one_of(op, tests, sizeof tests / sizeof *tests))
        return CFX_DTYPE_BOOL;
    if (is_one_of(op, counts, sizeof counts / sizeof *counts))
        return CFX_DTYPE_INT64;
    const size_t from = strcmp(op, "Where") == 0 ? 1 : strcmp(op, "OneHot") == 0 ? 2 : 0;
    return from < n && inputs[from] ? cfxi_export_dtype(inputs[from]) : CFX_DTYPE_FLOAT32;
}

static cfxi_ev *new_value(cfxi_exporter *x, const char *name, cfx_dtype dtype)
{
    cfxi_ev *v = cfxi_export_room(x, 1, sizeof *v);
    if (!v)
        return &x->broken;
    *v = (cfxi_ev){.name = name, .dtype = dtype, .rank = -1, .scope = x->scope};
    v->datum = cfx_datum_invalid();
    return v;
}

static bool fill_node(cfxi_exporter *x, const char *op, cfxi_ev *const *inputs, size_t n,
                      cfxi_ev **outputs, size_t num_outputs)
{
    cfxi_text *in = cfxi_export_room(x, n, sizeof *in);
    cfxi_text *out = cfxi_export_room(x, num_outputs, sizeof *out);
    for (size_t i = 0; in && i < n; i++)  /* names may need nodes of their own: before this one */
        in[i] = text_of(inputs[i] ? cfxi_export_name(x, inputs[i]) : "");
    while (in && n > 0 && in[n - 1].size == 0)
        n--;
    const cfx_dtype dtype = result_dtype(op, inputs, n);
    for (size_t i = 0; out && i < num_outputs; i++) {
        outputs[i] = new_value(x, name_output(x, op), dtype);
        out[i] = text_of(outputs[i]->name ? outputs[i]->name : "");
    }
    cfxi_onnx_node *node = in && out ? add_node(x, op) : NULL;
    if (!node)
        return false;
    node->name = out[0];
    node->inputs.items = in;
    node->inputs.n = n;
    node->outputs.items = out;
    node->outputs.n = num_outputs;
    return true;
}

bool cfxi_export_nodes(cfxi_exporter *x, const char *op, cfxi_ev *const *inputs, size_t n,
                       cfxi_ev **outputs, size_t num_outputs)
{
    for (size_t i = 0; i < num_outputs; i++)
        outputs[i] = &x->broken;
    for (size_t i = 0; i < n; i++)
        if (inputs[i] && inputs[i]->broken)
            return false;
    return fill_node(x, op, inputs, n, outputs, num_outputs);
}

cfxi_ev *cfxi_export_node(cfxi_exporter *x, const char *op, cfxi_ev *const *inputs, size_t n)
{
    cfxi_ev *output;
    cfxi_export_nodes(x, op, inputs, n, &output, 1);
    return output;
}

/* ---- attributes ---------------------------------------------------------------------------- */

static cfxi_onnx_attribute *add_attribute(cfxi_exporter *x, const char *name,
                                          cfxi_onnx_attribute_kind kind)
{
    cfxi_onnx_node *node = last_node(x);
    cfxi_onnx_attribute *all =
        node ? cfxi_export_room(x, node->attributes.n + 1, sizeof *all) : NULL;
    if (!all)
        return NULL;
    if (node->attributes.n > 0)
        memcpy(all, node->attributes.items, node->attributes.n * sizeof *all);
    node->attributes.items = all;
    cfxi_onnx_attribute *a = &all[node->attributes.n++];
    a->name = text_of(name);
    a->kind = kind;
    return a;
}

void cfxi_export_set_int(cfxi_exporter *x, const char *name, int64_t i)
{
    cfxi_onnx_attribute *a = add_attribute(x, name, CFXI_ONNX_ATTR_INT);
    if (a)
        CFXI_ONNX_SET(a, attribute, i, i);
}

void cfxi_export_set_float(cfxi_exporter *x, const char *name, double f)
{
    cfxi_onnx_attribute *a = add_attribute(x, name, CFXI_ONNX_ATTR_FLOAT);
    if (a)
        CFXI_ONNX_SET(a, attribute, f, (float)f);
}

void cfxi_export_set_ints(cfxi_exporter *x, const char *name, const int64_t *ints, size_t n)
{
    cfxi_onnx_attribute *a = add_attribute(x, name, CFXI_ONNX_ATTR_INTS);
    int64_t *copy = a ? cfxi_export_room(x, n, sizeof *copy) : NULL;
    if (!copy)
        return;
    if (n > 0)
        memcpy(copy, ints, n * sizeof *copy);
    a->ints.items = copy;
    a->ints.n = n;
}

void cfxi_export_set_text(cfxi_exporter *x, const char *name, const char *text)
{
    cfxi_onnx_attribute *a = add_attribute(x, name, CFXI_ONNX_ATTR_TEXT);
    if (a)
        CFXI_ONNX_SET(a, attribute, s, text_of(cfxi_export_text(x, "%s", text)));
}

void cfxi_export_set_texts(cfxi_exporter *x, const char *name, const char *const *texts, size_t n)
{
    cfxi_onnx_attribute *a = add_attribute(x, name, CFXI_ONNX_ATTR_TEXTS);
    cfxi_text *copy = a ? cfxi_export_room(x, n, sizeof *copy) : NULL;
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = text_of(texts[i]);
    if (copy) {
        a->strings.items = copy;
        a->strings.n = n;
    }
}

void cfxi_export_set_graph(cfxi_exporter *x, const char *name, cfxi_onnx_graph *graph)
{
    cfxi_onnx_attribute *a = graph ? add_attribute(x, name, CFXI_ONNX_ATTR_GRAPH) : NULL;
    if (a)
        a->g = graph;
}
