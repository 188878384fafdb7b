/* trace.c - capturing: a module is called with variables that stand for its inputs, and what it
 * does with them becomes a graph. */
#include "capture_impl.h"

#include <cfx/pass.h>

#include <stdio.h>

/* ---- what is where ------------------------------------------------------------------------- */

const char *cfxi_trace_path(const cfxi_trace *t, const cfx_module *m)
{
    const cfxi_place *p = cfxi_places_find(&t->places, m);
    return p ? p->path : NULL;
}

/* ---- nodes --------------------------------------------------------------------------------- */

cfx_status cfxi_trace_mark(cfx_at at, cfx_node *n)
{
    cfx_error err = {0};
    cfxi_trace *t = at.scope->trace;
    if (t->scope)
        cfx_node_set_scope(n, t->scope);
    if (!at.file || cfx_node_set_location(n, at.file, at.line, &err) == CFX_OK)
        return CFX_OK;
    return cfxi_scope_take(at, &err);
}

cfx_var cfxi_trace_node(cfx_at at, cfx_node *n, cfx_datum known)
{
    if (cfxi_trace_mark(at, n) != CFX_OK) {
        cfx_datum_release(known);
        return cfx_var_empty();
    }
    return cfxi_var_of_value(at, cfx_from_node(n), n->graph, known);
}

cfx_datum cfxi_known_of_tensor(cfx_at at, const cfx_tensor *t)
{
    cfx_error err = {0};
    if (!at.scope->trace->dims || cfx_tensor_is_abstract(t))  /* only declared so far */
        return cfx_datum_invalid();
    cfx_tensor *abstract = cfx_tensor_new_abstract(cfx_tensor_dtype(t), cfx_tensor_sizes(t),
                                                   cfx_tensor_ndim(t), at.scope->allocator, &err);
    if (abstract)
        return cfx_datum_tensor(abstract);
    cfxi_scope_take(at, &err);
    return cfx_datum_invalid();
}

/* A get_attr for the tensor at a path below the root; in each graph the first reader serves all. */
static cfx_var read_tensor(cfx_at at, cfx_tensor *tensor)
{
    cfxi_trace *t = at.scope->trace;
    cfxi_place *p = cfxi_places_find(&t->places, tensor);
    cfx_error err = {0};
    if (!p) {
        cfx_fail(at, CFX_E_KEY, "a parameter of a module that is no part of what is being "
                 "captured");
        return cfx_var_empty();
    }
    if (p->reader && t->graph == t->top && !cfxi_node_erased(p->reader))
        return cfxi_var_of_value(at, cfx_from_node(p->reader), t->top,
                                 cfxi_known_of_tensor(at, tensor));
    cfx_node *n = cfx_graph_get_attr(t->graph, p->path, &err);
    if (!n) {
        cfxi_scope_take(at, &err);
        return cfx_var_empty();
    }
    if (t->graph == t->top)
        p->reader = n;
    return cfxi_trace_node(at, n, cfxi_known_of_tensor(at, tensor));
}

cfx_var cfx_param_at(cfx_at at, cfx_module *m, const char *path)
{
    if (!cfx_ok(at.scope))
        return cfx_var_empty();
    const cfxi_member *e = m && path ? cfxi_module_at(m, path) : NULL;
    if (!e || e->kind == CFXI_MEMBER_CHILD) {
        cfx_fail(at, CFX_E_KEY, "%s has no parameter '%.100s'", m ? cfxi_module_title(m)
                 : "what is no module", path ? path : "");
        return cfx_var_empty();
    }
    if (at.scope->trace && e->value.kind == CFX_DATUM_TENSOR)
        return read_tensor(at, e->value.as.tensor);
    if (e->value.kind == CFX_DATUM_TENSOR && cfx_tensor_is_abstract(e->value.as.tensor)) {
        cfx_fail(at, CFX_E_KEY, "the parameter '%.100s' of %s has no tensor before weights are "
                 "loaded (cfx_module_load)", path, cfxi_module_title(m));
        return cfx_var_empty();
    }
    return cfxi_var_of_datum(at, cfx_datum_retain(e->value));
}

/* ---- inputs -------------------------------------------------------------------------------- */

/* The text after "name=" in "x=float32[N, 3], y=...", up to the comma that ends it. */
static cfx_schema_text shape_of(const char *shapes, cfx_schema_text name)
{
    cfx_schema_text none = {NULL, 0};
    while (shapes && *shapes) {
        cfx_schema_text item = cfxi_schema_next(&shapes);
        const char *equals = memchr(item.text, '=', item.size);
        if (item.size == 0)
            return none;
        size_t size = equals ? (size_t)(equals - item.text) : 0;
        while (size > 0 && item.text[size - 1] == ' ')
            size--;
        if (equals && size == name.size && memcmp(item.text, name.text, size) == 0)
            return (cfx_schema_text){equals + 1, item.size - (size_t)(equals + 1 - item.text)};
    }
    return none;
}

static cfx_datum input_shape(cfx_at at, cfx_schema_text name)
{
    cfxi_trace *t = at.scope->trace;
    cfx_error err = {0};
    if (!t->dims)
        return cfx_datum_invalid();
    const cfx_schema_text text = shape_of(t->options->shapes, name);
    if (!text.text) {
        cfx_fail(at, CFX_E_KEY, "the shape of the input '%.*s' is missing in .shapes",
                 (int)name.size, name.text);
        return cfx_datum_invalid();
    }
    cfx_datum d = cfx_datum_parse(t->dims, text.text, text.size, at.scope->allocator, &err);
    if (d.kind == CFX_DATUM_INVALID)
        cfx_fail(at, err.status, ".shapes: %.*s: %s", (int)name.size, name.text, err.message);
    return d;
}

/* A placeholder; `value` is its default, or EMPTY. */
static cfx_var add_input(cfx_at at, cfx_schema_text name, cfx_var value)
{
    cfx_graph *g = at.scope->trace->graph;
    cfx_error err = {0};
    const cfx_value usual = cfxi_var_value(at, value);
    const cfx_target target = {.name = name.text, .size = name.size};
    cfx_datum known = input_shape(at, name);
    cfx_value args = cfx_value_tuple(g, &usual, value.kind != CFX_VAR_EMPTY, &err);
    cfx_node *n = NULL;
    if (args.kind != CFX_KIND_INVALID && cfx_ok(at.scope))
        n = cfx_graph_create(g, CFX_OP_PLACEHOLDER, target, args, cfx_invalid(), NULL,
                             cfx_invalid(), &err);
    if (n)
        return cfxi_trace_node(at, n, known);
    cfx_value_discard(g, args);
    cfx_datum_release(known);
    if (cfx_ok(at.scope))
        cfxi_scope_take(at, &err);
    return cfx_var_empty();
}

static size_t add_inputs(cfx_at at, const cfx_class *type, cfx_var *in)
{
    size_t n = 0;
    cfx_var value;
    for (cfx_schema_text name; n < CFXI_MOST_INPUTS && cfx_ok(at.scope); n++) {
        name = cfxi_class_input(type, n, &value);
        if (name.size == 0)
            break;
        in[n] = add_input(at, name, value);
    }
    return n;
}

/* ---- what it becomes ----------------------------------------------------------------------- */

/* An empty module over a graph, which is retained. */
static cfx_module *captured(const cfx_allocator *allocator, cfx_graph *g, const char *class_name,
                            cfx_error *err)
{
    cfx_module *m = cfxi_module_make(allocator, err);
    const size_t size = strlen(class_name) + 1;
    char *name = m ? cfxi_alloc(m->allocator, size) : NULL;
    if (!name) {
        cfx_module_release(m);
        cfxi_nomem(err);
        return NULL;
    }
    memcpy(name, class_name, size);
    m->name = name;
    m->graph = cfx_graph_retain(g);
    return m;
}

cfx_module *cfx_module_from_graph_at(cfx_at at, cfx_graph *g, const char *class_name,
                                     cfx_module *from)
{
    cfx_error err = {0};
    if (!cfx_ok(at.scope))
        return NULL;
    if (!g) {
        cfx_fail(at, CFX_E_VALUE, "there is no graph");
        return NULL;
    }
    cfx_module *m = captured(at.scope->allocator, g, class_name ? class_name : "Model", &err);
    if (m && from)
        m->training = from->training;
    if (m && (!from || cfxi_graft(at, m, from, g, NULL, &err) == CFX_OK))
        return cfxi_scope_own(at, m);
    cfx_module_release(m);
    cfxi_scope_take(at, &err);
    return NULL;
}

/* ---- capturing ----------------------------------------------------------------------------- */

/* Runs `forward` and writes the output; the scope fails if that does. */
static void record(cfx_at at, cfx_module *m)
{
    cfxi_trace *t = at.scope->trace;
    cfx_var in[CFXI_MOST_INPUTS];
    cfx_error err = {0};
    static const cfx_class one_input = {.inputs = "input"};  /* as PyTorch's Sequential calls it */
    const size_t n = add_inputs(at, m->type ? m->type : &one_input, in);
    cfx_var result = cfx_ok(at.scope) ? cfxi_call_forward(at, m, cfx_vars_make(in, n))
                                      : cfx_var_empty();
    if (!cfx_ok(at.scope))
        return;
    const cfx_value v = cfxi_var_value(at, result);
    if (v.kind != CFX_KIND_INVALID && !cfx_graph_output(t->top, v, &err))
        cfxi_scope_take(at, &err);
}

/* With a scope of its own, so that variables of the caller's are found out; it goes on counting
 * variables where the last one ended, so that those of an earlier trace are, too. */
static cfx_status run_trace(cfx_at at, cfxi_trace *t, cfx_error *err)
{
    const cfx_scope_options options = {.allocator = at.scope->allocator, .runtime = at.scope->rt};
    cfx_scope *inner = cfx_scope_new(&options, err);
    cfx_iter open;  /* a variable's node that is erased is not another one meanwhile */
    if (!inner)
        return CFX_E_NOMEM;
    cfx_at here = at;
    here.scope = inner;
    if (!at.scope->rows)
        at.scope->rows = cfxi_rows_new(at.scope->allocator);
    inner->rows = at.scope->rows;
    inner->borrows_rows = inner->rows != NULL;
    inner->trace = t;
    inner->depth = at.scope->depth;
    inner->serial = at.scope->serial;
    cfx_iter_begin(&open, t->top, false);
    record(here, t->root);
    inner->trace = NULL;
    at.scope->serial = inner->serial;
    const cfx_status status = inner->error.status;
    if (status != CFX_OK)
        at.scope->error = inner->error;  /* it says where */
    cfx_scope_free(inner);
    cfx_iter_end(&open);
    return status;
}

static cfx_status begin(cfx_at at, cfxi_trace *t, cfx_module *m, cfx_error *err)
{
    t->root = m;
    t->top = cfx_graph_new(at.scope->allocator, &cfxi_object_host, err);
    t->graph = t->top;
    if (!t->top)
        return CFX_E_NOMEM;
    t->made = captured(at.scope->allocator, t->top, cfx_module_class_name(m), err);
    if (!t->made)
        return CFX_E_NOMEM;
    t->made->training = m->training;
    if (t->options->shapes) {
        t->dims = cfx_dims_new(at.scope->allocator, err);
        if (!t->dims)
            return CFX_E_NOMEM;
    }
    return cfxi_places_fill(&t->places, m, err);
}

cfx_module *cfx_trace_at(cfx_at at, cfx_module *m, cfx_trace_options options)
{
    cfxi_trace t = {.options = &options};
    cfx_error err = {0};
    if (!cfx_ok(at.scope))
        return NULL;
    if (!m || (!m->type && m->nn != CFX_NN_Sequential)) {
        cfx_fail(at, CFX_E_VALUE, "only a module with a forward, or a torch.nn.Sequential, can be "
                 "captured, not %s", m ? cfxi_module_title(m) : "NULL");
        return NULL;
    }
    cfx_status status = begin(at, &t, m, &err);
    if (status == CFX_OK)
        status = run_trace(at, &t, &err);
    if (status == CFX_OK)
        status = cfxi_graft(at, t.made, m, t.top, &options, &err);
    cfxi_places_free(&t.places);
    cfx_dims_free(t.dims);
    cfx_graph_release(t.top);
    if (status == CFX_OK)
        return cfxi_scope_own(at, t.made);
    cfx_module_release(t.made);
    cfxi_scope_take(at, &err);
    return NULL;
}

/* ---- passes -------------------------------------------------------------------------------- */

static const cfx_pass *find_pass(cfx_at at, const char *name, size_t size)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)size, name);
    const cfx_pass *pass = size < sizeof text ? cfx_pass_find(text) : NULL;
    if (!pass)
        cfx_fail(at, CFX_E_KEY, "there is no pass '%.60s'", text);
    return pass;
}

/* Leaves the members that the graph still names. */
static cfx_status prune(cfx_at at, cfx_module *m, cfx_error *err)
{
    cfx_module *kept = cfxi_module_make(m->allocator, err);
    if (!kept)
        return CFX_E_NOMEM;
    kept->owner = m;
    kept->level = m->level;
    cfx_status status = cfxi_graft(at, kept, m, m->graph, NULL, err);
    if (status == CFX_OK) {
        const cfxi_vec members = m->members;
        const cfxi_table by_name = m->by_name;
        m->members = kept->members;
        m->by_name = kept->by_name;
        m->version++;
        kept->members = members;
        kept->by_name = by_name;
    }
    cfx_module_release(kept);
    return status;
}

void cfx_transform_at(cfx_at at, cfx_module *m, const char *passes)
{
    cfx_error why = {0};
    if (!cfx_ok(at.scope))
        return;
    if (!m || !m->graph || !passes) {
        cfx_fail(at, CFX_E_VALUE, "passes need a captured module and their names");
        return;
    }
    const cfx_modules tree = cfxi_scope_tree(at.scope, m);
    for (cfx_schema_text name; (name = cfxi_schema_next(&passes)).size > 0;) {
        cfx_error err = {0};
        bool changed;
        const cfx_pass *pass = find_pass(at, name.text, name.size);
        if (!pass)
            return;
        if (cfx_pass_run(pass, m->graph, &tree, NULL, &changed, &err) != CFX_OK) {
            cfx_fail(at, err.status, "pass %s: %s", pass->name, err.message);
            return;
        }
    }
    if (prune(at, m, &why) != CFX_OK)
        cfxi_scope_take(at, &why);
}
