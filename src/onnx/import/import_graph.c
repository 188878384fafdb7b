/* import_graph.c - the walk over the nodes of a graph: names and what they stand for, and functions
 * of the model, whose nodes take the place of the call. */
#include "engine_impl.h"

enum { MOST_NODES = 1 << 24 };  /* that functions may become: each call has nodes of its own */

/* ---- names --------------------------------------------------------------------------------- */

static uint32_t hash_of(const void *item) { return ((const cfxi_imported *)item)->hash; }

static bool is_named(const void *item, const void *key, size_t size)
{
    (void)size;
    return cfxi_onnx_same(((const cfxi_imported *)item)->name, *(const cfxi_text *)key);
}

static cfxi_imported *find_here(const cfxi_import *m, const cfxi_import_frame *f, cfxi_text name)
{
    const uint32_t hash = cfxi_base_hash_keyed(&m->key, name.data, name.size);
    return cfxi_base_set_find(&f->names, hash, is_named, &name, 0);
}

cfxi_imported *cfxi_import_find(const cfxi_import *m, const cfxi_import_frame *f, cfxi_text name)
{
    cfxi_imported *found = NULL;
    for (; f && !found; f = f->outer)
        found = find_here(m, f, name);
    return found;
}

static int shown(cfxi_text text) { return (int)(text.size < 100 ? text.size : 100); }

/* Adds one that has its name. */
static cfx_status bind(cfxi_import *m, cfxi_import_frame *f, cfxi_imported *v, cfx_error *err)
{
    if (find_here(m, f, v->name))
        return cfx_error_set(err, CFX_E_VALUE, "two values are called '%.*s'", shown(v->name),
                             v->name.data);
    v->hash = cfxi_base_hash_keyed(&m->key, v->name.data, v->name.size);
    if (!cfxi_base_set_reserve(&f->names, hash_of, m->allocator))
        return cfxi_base_nomem(err);
    cfxi_base_set_insert(&f->names, v->hash, v);
    return CFX_OK;
}

cfxi_imported *cfxi_import_define(cfxi_import *m, cfxi_import_frame *f, cfxi_text name,
                                  cfx_error *err)
{
    cfxi_imported *v = cfxi_base_arena_zeros(&m->arena, 1, sizeof *v);
    if (!v) {
        cfxi_base_nomem(err);
        return NULL;
    }
    v->name = name;
    return bind(m, f, v, err) == CFX_OK ? v : NULL;
}

void cfxi_import_frame_free(cfxi_import *m, cfxi_import_frame *f)
{
    cfxi_base_set_free(&f->names, m->allocator);
    cfxi_base_set_free(&f->declared, m->allocator);
}

static cfx_status add_initializer(cfxi_import *m, cfxi_import_frame *f,
                                  const cfxi_onnx_tensor *t, const cfxi_onnx_sparse *sparse,
                                  cfx_error *err)
{
    cfxi_imported *v = cfxi_import_define(m, f, t->name, err);
    if (!v)
        return CFX_E_VALUE;
    v->kind = CFXI_IMPORTED_KNOWN;
    v->tensor = t;
    v->sparse = sparse;
    v->type = cfxi_onnx_narrow_bits(t->dtype) ? t->dtype : 0;
    return CFX_OK;
}

cfx_status cfxi_import_initializers(cfxi_import *m, cfxi_import_frame *f, const cfxi_onnx_graph *g,
                                    cfx_error *err)
{
    for (size_t i = 0; i < g->initializers.n; i++) {
        const cfxi_onnx_tensor *t = &g->initializers.items[i];
        if (g != m->model->graph || !cfxi_import_default_of(m, t->name))
            CFX_TRY(add_initializer(m, f, t, NULL, err));
    }
    for (size_t i = 0; i < g->sparse_initializers.n; i++) {
        const cfxi_onnx_sparse *s = &g->sparse_initializers.items[i];
        if (!s->values)
            return cfx_error_set(err, CFX_E_VALUE, "a sparse initializer has no values");
        CFX_TRY(add_initializer(m, f, s->values, s, err));
    }
    return CFX_OK;
}

/* ---- domains and functions ----------------------------------------------------------------- */

bool cfxi_import_is_default_domain(cfxi_text domain)
{
    return domain.size == 0 || cfxi_onnx_is(domain, "ai.onnx");
}

static bool same_domain(cfxi_text a, cfxi_text b)
{
    return cfxi_onnx_same(a, b) ||
           (cfxi_import_is_default_domain(a) && cfxi_import_is_default_domain(b));
}

int64_t cfxi_import_opset(const cfxi_import_frame *f, cfxi_text domain)
{
    for (size_t i = 0; i < f->num_opsets; i++)
        if (same_domain(f->opsets[i].domain, domain))
            return f->opsets[i].version;
    return 0;
}

/* What a node calls: the name, the domain and the overload of a function. */
typedef struct called {
    cfxi_text name;
    cfxi_text domain;
    cfxi_text overload;
} called;

static uint32_t hash_called(const cfxi_import *m, const called *c)
{
    return cfxi_base_hash_keyed(&m->key, c->name.data, c->name.size);
}

static bool is_called(const void *item, const void *key, size_t size)
{
    const cfxi_onnx_function *f = item;
    const called *c = key;
    (void)size;
    return cfxi_onnx_same(f->name, c->name) && same_domain(f->domain, c->domain) &&
           cfxi_onnx_same(f->overload, c->overload);
}

bool cfxi_import_list_functions(cfxi_import *m)
{
    const size_t n = m->model->functions.n;
    if (n > 0 && !cfxi_base_set_presize(&m->functions, n, m->allocator))
        return false;
    for (size_t i = 0; i < n; i++) {
        const cfxi_onnx_function *f = &m->model->functions.items[i];
        const called c = {f->name, f->domain, f->overload};
        const uint32_t hash = hash_called(m, &c);
        if (!cfxi_base_set_find(&m->functions, hash, is_called, &c, 0))  /* the first counts */
            cfxi_base_set_insert(&m->functions, hash, f);
    }
    return true;
}

const cfxi_onnx_function *cfxi_import_function_of(const cfxi_import *m, const cfxi_onnx_node *n)
{
    const called c = {n->op, n->domain, n->overload};
    return m->model->functions.n ? cfxi_base_set_find(&m->functions, hash_called(m, &c), is_called,
                                                      &c, 0) : NULL;
}

/* Gives the inputs of a function what its call has for them. */
static cfx_status pass_inputs(cfxi_import_call *c, cfxi_import_frame *f, cfx_error *err)
{
    const cfxi_onnx_function *function = f->function;
    if (c->node->inputs.n > function->inputs.n)
        return cfx_error_set(err, CFX_E_VALUE, "the function takes %zu inputs, not %zu",
                             function->inputs.n, c->node->inputs.n);
    for (size_t i = 0; i < function->inputs.n; i++) {
        cfxi_imported *v = cfxi_import_define(c->import, f, function->inputs.items[i], err);
        if (!v)
            return CFX_E_VALUE;
        if (i >= c->node->inputs.n || !c->inputs[i])
            continue;
        const cfxi_imported own = *v;
        *v = *(const cfxi_imported *)c->inputs[i];
        v->name = own.name;
        v->hash = own.hash;
    }
    return CFX_OK;
}

static void take_outputs(cfxi_import_call *c, const cfxi_import_frame *f)
{
    const cfxi_onnx_function *function = f->function;
    for (size_t i = 0; i < c->node->outputs.n && cfx_scope_ok(c->scope); i++) {
        const cfxi_imported *v = i < function->outputs.n
                                     ? cfxi_import_find(c->import, f, function->outputs.items[i])
                                     : NULL;
        if (!v && cfxi_import_wants(c, i)) {
            cfxi_import_fail(c, CFX_E_VALUE, "the function does not give output %zu", i);
            return;
        }
        if (!v)
            continue;
        const cfxi_imported own = c->outputs[i];
        c->outputs[i] = *v;
        c->outputs[i].name = own.name;
        c->outputs[i].hash = own.hash;
    }
}

void cfxi_import_function(cfxi_import_call *c, const cfxi_onnx_function *function)
{
    cfxi_import *m = c->import;
    cfx_error err = {0};
    cfxi_import_frame f = {.call = c, .function = function, .opsets = function->opsets.items,
                           .num_opsets = function->opsets.n, .nodes = function->nodes.items,
                           .num_nodes = function->nodes.n};
    if (m->depth >= CFXI_IMPORT_DEPTH || m->nodes > MOST_NODES) {
        cfxi_import_fail(c, CFX_E_LIMIT, "functions call one another too deep, or too often");
        return;
    }
    m->depth++;
    if (pass_inputs(c, &f, &err) != CFX_OK)
        cfxi_import_fail(c, err.status, "%s", err.message);
    else if (cfxi_import_nodes(m, &f))
        take_outputs(c, &f);
    m->depth--;
    cfxi_import_frame_free(m, &f);
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* A name that stands for nothing: in the wrong order, or nowhere. */
static void complain(cfxi_import_call *c, cfxi_text name)
{
    for (size_t i = 0; i < c->frame->num_nodes; i++) {
        const cfxi_onnx_node *n = &c->frame->nodes[i];
        for (size_t k = 0; k < n->outputs.n; k++)
            if (cfxi_onnx_same(n->outputs.items[k], name)) {
                cfxi_import_fail(c, CFX_E_VALUE, "it uses '%.*s' before that is computed: the "
                                 "nodes are not sorted, or there is a cycle", shown(name),
                                 name.data);
                return;
            }
    }
    cfxi_import_fail(c, CFX_E_VALUE, "nothing in the file gives '%.*s'", shown(name), name.data);
}

/* Finds the inputs; false, and the scope fails, if one is not there. *failed: one of them is what a
 * node that cannot be read should have given. */
static bool find_inputs(cfxi_import_call *c, const cfxi_imported **inputs, bool *failed)
{
    for (size_t i = 0; i < c->node->inputs.n; i++) {
        const cfxi_text name = c->node->inputs.items[i];
        inputs[i] = name.size > 0 ? cfxi_import_find(c->import, c->frame, name) : NULL;
        if (name.size > 0 && !inputs[i])
            return complain(c, name), false;
        *failed = *failed || (inputs[i] && inputs[i]->kind == CFXI_IMPORTED_FAILED);
    }
    return true;
}

/* A node that cannot be read is reported, and the walk goes on, so that all are. */
static void report(cfxi_import_call *c)
{
    cfxi_import *m = c->import;
    const cfx_error *err = cfx_scope_error(m->trace);
    const char *what = m->trace->place ? m->trace->place->what : "";
    const size_t size = strlen(what);  /* the finding names the node, too */
    const bool own = size > 0 && strncmp(err->message, what, size) == 0 &&
                     strncmp(err->message + size, ": ", 2) == 0;
    cfxi_import_report(m, c->node, own ? err->message + size + 2 : err->message);
    cfx_scope_clear_error(m->trace);
    for (size_t i = 0; i < c->node->outputs.n; i++)
        c->outputs[i].kind = CFXI_IMPORTED_FAILED;
}

/* Gives the outputs of a node their names. */
static bool bind_outputs(cfxi_import_call *c)
{
    cfx_error err = {0};
    for (size_t i = 0; i < c->node->outputs.n; i++) {
        c->outputs[i].name = c->node->outputs.items[i];
        if (c->outputs[i].name.size > 0 &&
            bind(c->import, c->frame, &c->outputs[i], &err) != CFX_OK)
            return cfxi_import_fail(c, err.status, "%s", err.message), false;
    }
    return true;
}

static bool import_node(cfxi_import *m, cfxi_import_frame *f, const cfxi_onnx_node *n)
{
    const cfxi_imported *few[16];
    bool failed = false;
    const cfxi_imported **inputs =
        n->inputs.n <= 16 ? few : cfxi_base_arena_zeros(&m->arena, n->inputs.n, sizeof *inputs);
    cfxi_import_call c = {.scope = m->trace, .node = n, .import = m, .inputs = inputs, .frame = f,
                          .opset = cfxi_import_opset(f, n->domain),
                          .outputs = cfxi_base_arena_zeros(&m->arena, n->outputs.n,
                                                           sizeof *c.outputs)};
    if (!inputs || !c.outputs)
        return cfxi_import_fail(&c, CFX_E_NOMEM, "out of memory"), false;
    char what[200];
    const cfxi_place place = cfxi_import_place(m, n, what);
    const cfxi_place *before = cfxi_capture_scope_place(m->trace, &place);
    if (find_inputs(&c, inputs, &failed) && bind_outputs(&c)) {
        for (size_t i = 0; failed && i < n->outputs.n; i++)
            c.outputs[i].kind = CFXI_IMPORTED_FAILED;
        if (!failed)
            cfxi_import_node(&c);
        if (!cfx_scope_ok(m->trace) && m->depth == 0 &&
            cfx_scope_error(m->trace)->status == CFX_E_UNSUPPORTED)
            report(&c);
    }
    cfxi_capture_scope_place(m->trace, before);
    return cfx_scope_ok(m->trace);
}

bool cfxi_import_nodes(cfxi_import *m, cfxi_import_frame *f)
{
    for (size_t i = 0; i < f->num_nodes; i++) {
        m->nodes++;
        if (!import_node(m, f, &f->nodes[i]))
            return false;
    }
    return true;
}

bool cfxi_import_outputs(cfxi_import *m, const cfxi_import_frame *f, const cfxi_onnx_graph *g,
                         const cfxi_imported **out)
{
    const cfx_at at = {.scope = m->trace};
    for (size_t i = 0; i < g->outputs.n; i++) {
        const cfxi_text name = g->outputs.items[i].name;
        out[i] = cfxi_import_find(m, f, name);
        if (!out[i]) {
            cfx_scope_fail_at(at, CFX_E_VALUE, "nothing gives the output '%.*s' of the graph",
                              shown(name), name.data ? name.data : "");
            return false;
        }
    }
    return true;
}
