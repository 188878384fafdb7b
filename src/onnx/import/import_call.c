/* import_call.c - one node: its rule is traced, or computed at once if all inputs are known. */
#include "engine_impl.h"

#include <stdio.h>

/* ---- places -------------------------------------------------------------------------------- */

static const cfxi_text *metadata(const cfxi_onnx_node *n, const char *key)
{
    for (size_t i = 0; i < n->metadata.n; i++)
        if (cfxi_onnx_is(n->metadata.items[i].key, key))
            return &n->metadata.items[i].value;
    return NULL;
}

/* "model.py:12" as a file and a line; false if it is something else. */
static bool read_location(cfxi_import *m, cfxi_text text, cfxi_place *place)
{
    int64_t line;
    size_t colon = text.size;
    while (colon > 0 && text.data[colon - 1] != ':')
        colon--;
    if (colon < 2 || !cfxi_base_parse_int(text.data + colon, text.size - colon, &line) ||
        line < 0 || line > INT32_MAX || memchr(text.data, '\n', text.size))
        return false;
    char *file = cfxi_base_arena_zeros(&m->arena, colon, 1);
    if (!file)
        return false;
    memcpy(file, text.data, colon - 1);
    place->file = file;
    place->line = (uint32_t)line;
    return true;
}

/* The last line of PyTorch's stack trace: 'File "model.py", line 12, in forward'. */
static bool read_trace(cfxi_import *m, cfxi_text text, cfxi_place *place)
{
    static const char before[] = "File \"";
    const char *found = NULL;
    for (size_t i = 0; i + sizeof before < text.size; i++)
        if (memcmp(text.data + i, before, sizeof before - 1) == 0)
            found = text.data + i + sizeof before - 1;
    const char *end = text.data + text.size;
    const char *quote = found ? memchr(found, '"', (size_t)(end - found)) : NULL;
    if (!quote || end - quote < 8 || memcmp(quote, "\", line ", 8) != 0)
        return false;
    const char *digits = quote + 8;
    const char *stop = digits;
    int64_t line;
    while (stop < end && cfxi_base_is_digit(*stop))
        stop++;
    char *file = cfxi_base_arena_zeros(&m->arena, (size_t)(quote - found) + 1, 1);
    if (!file || !cfxi_base_parse_int(digits, (size_t)(stop - digits), &line) || line > INT32_MAX)
        return false;
    memcpy(file, found, (size_t)(quote - found));
    place->file = file;
    place->line = (uint32_t)line;
    return true;
}

cfxi_place cfxi_import_place(cfxi_import *m, const cfxi_onnx_node *n, char what[200])
{
    cfxi_place place = {.file = m->file, .line = m->nodes, .what = what};
    const cfxi_text *ours = metadata(n, "cfx.location");
    const cfxi_text *torch = metadata(n, "pkg.torch.onnx.stack_trace");
    const cfxi_text name = n->name.size > 0 || n->outputs.n == 0 ? n->name : n->outputs.items[0];
    snprintf(what, 200, "%.60s%snode '%.*s' (%.*s)", m->file ? m->file : "", m->file ? ": " : "",
             (int)(name.size < 60 ? name.size : 60), name.data ? name.data : "",
             (int)(n->op.size < 40 ? n->op.size : 40), n->op.data ? n->op.data : "");
    cfxi_base_utf8_clean(what);
    if (ours && read_location(m, *ours, &place))
        return place;
    if (torch)
        read_trace(m, *torch, &place);
    return place;
}

/* ---- modules ------------------------------------------------------------------------------- */

/* The stack of modules that cfx has written: "layers.0(torch.nn.Linear) < layers(Stack)", the
 * innermost first, each a path and a class. 0 if there is none. */
static uint32_t read_stack(cfxi_import *m, cfx_graph *g, const char *text, int depth)
{
    const char *outer = strstr(text, " < ");
    const char *open = strchr(text, '(');
    const char *end = outer ? outer : text + strlen(text);
    if (!open || open >= end || end[-1] != ')' || depth > 100)
        return 0;
    const uint32_t around = outer ? read_stack(m, g, outer + 3, depth + 1) : 0;
    char *path = cfxi_base_arena_zeros(&m->arena, (size_t)(open - text) + 1, 1);
    char *type = cfxi_base_arena_zeros(&m->arena, (size_t)(end - open), 1);
    if (!path || !type)
        return around;
    memcpy(path, text, (size_t)(open - text));
    memcpy(type, open + 1, (size_t)(end - open) - 2);
    return cfx_graph_intern_stack(g, around, path, type, NULL, NULL);
}

static uint32_t stack_of(cfxi_import *m, const cfxi_onnx_node *n)
{
    const cfxi_text *modules = metadata(n, "cfx.modules");
    char *text = modules ? cfxi_base_arena_zeros(&m->arena, modules->size + 1, 1) : NULL;
    if (!text)
        return 0;
    memcpy(text, modules->data, modules->size);
    return read_stack(m, cfxi_capture_scope_graph(m->trace), text, 0);
}

/* ---- names of nodes ------------------------------------------------------------------------ */

/* Calls the nodes that the rule made as the file calls their results. */
static void name_outputs(cfxi_import_call *c, const cfx_node *before)
{
    cfx_error err = {0};
    for (size_t i = 0; i < c->node->outputs.n && cfx_scope_ok(c->scope); i++) {
        const cfxi_imported *v = &c->outputs[i];
        cfx_node *n = v->kind == CFXI_IMPORTED_VAR ? cfxi_capture_var_node(c->scope, v->var) : NULL;
        if (!n || n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_GET_ATTR ||
            n->graph != cfxi_capture_scope_graph(c->scope) || (before && n->order <= before->order))
            continue;
        const char *name = cfxi_import_identifier(c->import, v->name);
        if (!name || cfx_node_rename(n, name, &err) != CFX_OK)
            cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    }
}

/* ---- computing ----------------------------------------------------------------------------- */

static void *eager_alloc(void *ctx, size_t size)
{
    cfxi_import *m = ctx;
    if (size > CFXI_IMPORT_EAGER_MEMORY - m->eager_bytes)
        return NULL;
    void *p = m->allocator->alloc(m->allocator->ctx, size);
    if (p)
        m->eager_bytes += size;
    return p;
}

static void eager_free(void *ctx, void *ptr, size_t size)
{
    cfxi_import *m = ctx;
    m->eager_bytes -= size;
    m->allocator->free(m->allocator->ctx, ptr, size);
}

/* A scope that computes, with memory for small tensors; NULL if there is none. */
static cfx_scope *eager_scope(cfxi_import *m)
{
    if (m->eager)
        return m->eager;
    m->eager_memory = (cfx_allocator){eager_alloc, eager_free, m};
    const cfx_scope_options options = {.allocator = &m->eager_memory, .threads = 1};
    return m->eager = cfx_scope_new(&options, NULL);
}

static size_t bytes_of(const cfx_tensor *t)
{
    return (size_t)cfx_tensor_numel(t) * cfx_dtype_size(cfx_tensor_dtype(t));
}

/* Whether all inputs are known and small. */
static bool are_known(cfxi_import_call *c)
{
    size_t bytes = 0;
    cfx_error err = {0};
    for (size_t i = 0; i < c->node->inputs.n; i++) {
        cfxi_imported *v = (cfxi_imported *)c->inputs[i];
        if (!v)
            continue;
        const cfx_tensor *t =
            v->kind == CFXI_IMPORTED_KNOWN ? cfxi_import_elements(c->import, v, &err) : NULL;
        if (!t)
            return false;
        bytes += bytes_of(t);
        if (bytes > CFXI_IMPORT_SMALL)
            return false;
    }
    return true;
}

/* A copy with memory of the package. */
static cfx_tensor *copy_of(cfxi_import_call *c, cfx_var v)
{
    const cfx_tensor *t = cfx_var_tensor(c->scope, cfx_contiguous(c->scope, v));
    if (!t || bytes_of(t) > CFXI_IMPORT_SMALL)
        return NULL;
    cfx_tensor *copy = cfx_tensor_new(cfx_tensor_dtype(t), cfx_tensor_sizes(t), cfx_tensor_ndim(t),
                                      c->import->allocator, NULL);
    if (copy && cfx_tensor_numel(t) > 0)
        memcpy(cfx_tensor_data(copy), cfx_tensor_data(t), bytes_of(t));
    return copy;
}

static bool keep_results(cfxi_import_call *c)
{
    for (size_t i = 0; i < c->node->outputs.n; i++) {
        if (c->outputs[i].kind != CFXI_IMPORTED_VAR)
            continue;
        cfx_tensor *t = copy_of(c, c->outputs[i].var);
        if (!t)
            return false;
        cfxi_import_set_known(c, i, t);
    }
    return cfx_scope_ok(c->scope);
}

static void call_rule(cfxi_import_call *c, const cfxi_import_row *row)
{
    const cfx_var first = row->rule(c);
    if (first.kind != CFX_VAR_EMPTY)
        cfxi_import_set(c, 0, first);
}

bool cfxi_import_compute(cfxi_import_call *c, const cfxi_import_row *row)
{
    cfx_scope *eager = eager_scope(c->import);
    if (!eager)
        return false;
    const size_t mark = cfx_scope_mark(eager);
    cfx_scope *trace = c->scope;
    const cfxi_place *before = cfxi_capture_scope_place(eager, trace->place);
    c->scope = eager;
    call_rule(c, row);
    const bool done = cfx_scope_ok(eager) && !c->later && keep_results(c);
    cfx_scope_clear_error(eager);
    cfx_scope_reset(eager, mark, cfx_var_empty());
    cfxi_capture_scope_place(eager, before);
    c->scope = trace;
    c->later = false;
    for (size_t i = 0; !done && i < c->node->outputs.n; i++)
        c->outputs[i] = (cfxi_imported){.name = c->outputs[i].name, .hash = c->outputs[i].hash};
    return done;
}

/* ---- a node -------------------------------------------------------------------------------- */

static bool has_items(const cfxi_import_call *c)
{
    for (size_t i = 0; i < c->node->inputs.n; i++)
        if (c->inputs[i] && c->inputs[i]->kind == CFXI_IMPORTED_ITEMS)
            return true;
    return false;
}

void cfxi_import_node(cfxi_import_call *c)
{
    cfxi_import *m = c->import;
    cfx_error err = {0};
    const cfxi_onnx_function *function = cfxi_import_function_of(m, c->node);
    if (function) {
        cfxi_import_function(c, function);
        return;
    }
    const cfxi_import_row *row = cfxi_import_row_of(m, c->node->op, c->opset, &err);
    if (!row) {
        cfxi_import_fail(c, err.status == CFX_OK ? CFX_E_UNSUPPORTED : err.status,
                         "cfx does not have this operator");
        return;
    }
    if (has_items(c) && cfxi_import_by_items(c, row))
        return;
    if (are_known(c) && cfxi_import_compute(c, row))
        return;
    const cfx_node *before = cfx_graph_last(cfxi_capture_scope_graph(m->trace));
    const uint32_t around = m->trace->trace->scope;
    const uint32_t stack = stack_of(m, c->node);
    if (stack)
        m->trace->trace->scope = stack;
    call_rule(c, row);
    m->trace->trace->scope = around;
    name_outputs(c, before);
    for (size_t i = 0; i < c->node->outputs.n && cfx_scope_ok(c->scope); i++)
        cfxi_import_declare(c, i);
}
