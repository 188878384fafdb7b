/* trace.c - capturing: a module is called with variables that stand for its inputs, and what it
 * does with them becomes a graph. */
#include "capture_impl.h"

#include <cfx/match.h>
#include <cfx/pass.h>

#include <stdio.h>

/* ---- what is where ------------------------------------------------------------------------- */

const char *cfxi_capture_trace_path(const cfxi_trace *t, const cfx_module *m)
{
    const cfxi_path *p = cfxi_capture_places_find(&t->places, m);
    return p ? p->path : NULL;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Gives a new node its line and its module. */
static cfx_status mark_node(cfx_at at, cfx_node *n)
{
    cfx_error err = {0};
    cfxi_trace *t = at.scope->trace;
    if (t->scope)
        cfx_node_set_module_stack(n, t->scope);
    const cfxi_place *place = at.scope->place;
    const char *file = place ? place->file : at.file;
    if (!file || cfx_node_set_location(n, file, place ? place->line : at.line, &err) == CFX_OK)
        return CFX_OK;
    return cfxi_capture_scope_take(at, &err);
}

cfx_var cfxi_capture_trace_node(cfx_at at, cfx_node *n, cfx_datum known)
{
    if (mark_node(at, n) != CFX_OK || cfxi_capture_fact_set(at, n, known) != CFX_OK) {
        cfx_datum_release(known);
        return cfx_var_empty();
    }
    return cfxi_capture_var_of_value(at, cfx_value_node(n), n->graph, known);
}

cfx_datum cfxi_capture_known_of_tensor(cfx_at at, const cfx_tensor *t)
{
    cfx_error err = {0};
    if (!at.scope->trace->dims || cfx_tensor_is_abstract(t))  /* only declared so far */
        return cfx_datum_invalid();
    cfx_tensor *abstract = cfx_tensor_new_abstract(cfx_tensor_dtype(t), cfx_tensor_sizes(t),
                                                   cfx_tensor_ndim(t), at.scope->allocator, &err);
    if (abstract)
        return cfx_datum_tensor(abstract);
    cfxi_capture_scope_take(at, &err);
    return cfx_datum_invalid();
}

/* A get_attr for the tensor at a path below the root; in each graph the first reader serves all. */
static cfx_var read_tensor(cfx_at at, cfx_tensor *tensor)
{
    cfxi_trace *t = at.scope->trace;
    cfxi_path *p = cfxi_capture_places_find(&t->places, tensor);
    cfx_error err = {0};
    if (!p) {
        cfx_scope_fail_at(at, CFX_E_KEY, "this parameter is not part of the module being captured; "
                          "add its module with cfx_module_add");
        return cfx_var_empty();
    }
    if (p->reader && t->graph == t->top && !cfxi_ir_node_erased(p->reader))
        return cfxi_capture_var_of_value(at, cfx_value_node(p->reader), t->top,
                                         cfxi_capture_known_of_tensor(at, tensor));
    cfx_node *n = cfx_graph_get_attr(t->graph, p->path, &err);
    if (!n) {
        cfxi_capture_scope_take(at, &err);
        return cfx_var_empty();
    }
    if (t->graph == t->top)
        p->reader = n;
    return cfxi_capture_trace_node(at, n, cfxi_capture_known_of_tensor(at, tensor));
}

/* The module whose mode a path stands for, "training" or "block.training"; NULL: none. */
static const cfx_module *module_of_flag(const cfx_module *m, const char *path)
{
    char prefix[256];
    const char *dot = strrchr(path, '.');
    const size_t size = dot ? (size_t)(dot - path) : 0;
    if (strcmp(dot ? dot + 1 : path, "training") != 0 || size >= sizeof prefix)
        return NULL;
    memcpy(prefix, path, size);
    prefix[size] = '\0';
    const cfxi_member *e = dot ? cfxi_capture_module_at(m, prefix) : NULL;
    return dot ? (e ? e->child : NULL) : m;
}

cfx_var cfx_module_param_at(cfx_at at, cfx_module *m, const char *path)
{
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    const cfxi_member *e = m && path ? cfxi_capture_module_at(m, path) : NULL;
    const cfx_module *asked = m && path && !e ? module_of_flag(m, path) : NULL;
    if (asked)
        return cfx_v(asked->training);
    if (!e || e->kind == CFXI_MEMBER_CHILD) {
        cfx_scope_fail_at(at, CFX_E_KEY, "%s has no parameter '%.100s'",
                          m ? cfxi_capture_module_title(m) : "a NULL module", path ? path : "");
        return cfx_var_empty();
    }
    if (at.scope->trace && e->value.kind == CFX_DATUM_TENSOR)
        return read_tensor(at, e->value.as.tensor);
    if (e->value.kind == CFX_DATUM_TENSOR && cfx_tensor_is_abstract(e->value.as.tensor)) {
        cfx_scope_fail_at(at, CFX_E_KEY,
                          "parameter '%.100s' of %s has no tensor yet; load weights first "
                          "(cfx_module_load)",
                          path, cfxi_capture_module_title(m));
        return cfx_var_empty();
    }
    return cfxi_capture_var_of_datum(at, cfx_datum_retain(e->value));
}

/* ---- what it becomes ----------------------------------------------------------------------- */

/* An empty module over a graph, which is retained. */
static cfx_module *captured(const cfx_allocator *allocator, cfx_graph *g, const char *class_name,
                            cfx_error *err)
{
    cfx_module *m = cfxi_capture_module_make(allocator, err);
    const size_t size = strlen(class_name) + 1;
    char *name = m ? cfxi_base_alloc(m->allocator, size) : NULL;
    if (!name) {
        cfx_module_release(m);
        cfxi_base_nomem(err);
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
    if (!cfx_scope_ok(at.scope))
        return NULL;
    if (!g) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "the graph is NULL");
        return NULL;
    }
    cfx_module *m = captured(at.scope->allocator, g, class_name ? class_name : "Model", &err);
    if (m && from)
        m->training = from->training;
    if (m && (!from || cfxi_capture_graft(at, m, from, g, NULL, &err) == CFX_OK))
        return cfxi_capture_scope_own(at, m);
    cfx_module_release(m);
    cfxi_capture_scope_take(at, &err);
    return NULL;
}

/* ---- capturing ----------------------------------------------------------------------------- */

/* Runs `forward` and writes the output; the scope fails if that does. */
static void record(cfx_at at, cfx_module *m)
{
    cfxi_trace *t = at.scope->trace;
    cfx_var here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_error err = {0};
    static const cfx_class one_input = {.inputs = "input"};  /* as PyTorch's Sequential calls it */
    size_t n;
    const cfx_var *in = cfxi_capture_trace_inputs(at, m->type ? m->type : &one_input, &room, &n);
    cfx_var result = in ? cfxi_capture_call_forward(at, m, cfx_vars_make(in, n)) : cfx_var_empty();
    cfxi_capture_room_free(at, &room);
    if (!cfx_scope_ok(at.scope))
        return;
    const cfx_value v = cfxi_capture_var_value(at, result);
    if (v.kind != CFX_KIND_INVALID && !cfx_graph_output(t->top, v, &err))
        cfxi_capture_scope_take(at, &err);
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
        at.scope->rows = cfxi_capture_rows_new(at.scope->allocator);
    inner->rows = at.scope->rows;
    inner->borrows_rows = inner->rows != NULL;
    inner->trace = t;
    inner->depth = at.scope->depth;
    inner->place = at.scope->place;
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
    t->top = cfx_graph_new(at.scope->allocator, &cfxi_capture_object_host, err);
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
    return cfxi_capture_places_fill(&t->places, m, err);
}

cfx_module *cfx_trace_at(cfx_at at, cfx_module *m, cfx_trace_options options)
{
    cfxi_trace t = {.options = &options};
    cfx_error err = {0};
    if (!cfx_scope_ok(at.scope))
        return NULL;
    if (!m || (!m->type && m->nn != CFX_NN_Sequential)) {
        cfx_scope_fail_at(at, CFX_E_VALUE,
                          "only a module with a forward, or a torch.nn.Sequential, can be "
                          "captured, not %s",
                          m ? cfxi_capture_module_title(m) : "NULL");
        return NULL;
    }
    cfx_status status = begin(at, &t, m, &err);
    if (status == CFX_OK)
        status = run_trace(at, &t, &err);
    if (status == CFX_OK)
        status = cfxi_capture_graft(at, t.made, m, t.top, &options, &err);
    cfxi_capture_places_free(&t.places);
    cfxi_capture_facts_free(&t, at.scope->allocator);
    cfx_dims_free(t.dims);
    cfx_graph_release(t.top);
    if (status == CFX_OK)
        return cfxi_capture_scope_own(at, t.made);
    cfx_module_release(t.made);
    cfxi_capture_scope_take(at, &err);
    return NULL;
}

/* ---- passes -------------------------------------------------------------------------------- */

/* Leaves the members that the graph still names. */
static cfx_status prune(cfx_at at, cfx_module *m, cfx_error *err)
{
    cfx_module *kept = cfxi_capture_module_make(m->allocator, err);
    if (!kept)
        return CFX_E_NOMEM;
    kept->level = m->level;
    cfx_status status = cfxi_capture_graft(at, kept, m, m->graph, NULL, err);
    if (status == CFX_OK) {
        const cfxi_vec members = m->members;
        const cfxi_hash_set by_name = m->by_name;
        const cfxi_hash_key key = m->key;
        m->members = kept->members;
        m->by_name = kept->by_name;
        m->key = kept->key;
        m->version++;
        kept->members = members;
        kept->by_name = by_name;
        kept->key = key;
    }
    cfx_module_release(kept);
    return status;
}

void cfx_transform_at(cfx_at at, cfx_module *m, const char *passes)
{
    cfx_error why = {0};
    if (!cfx_scope_ok(at.scope))
        return;
    if (!m || !m->graph || !passes) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "cfx_transform needs a captured module and the names of "
                          "passes");
        return;
    }
    const cfx_module_tree tree = cfxi_capture_scope_tree(at.scope, m);
    cfx_pass_step step;
    for (const char *rest = passes; *rest;)  /* a misspelled pass runs none */
        if (cfx_pass_list_next(&rest, &step, &why) != CFX_OK) {
            cfxi_capture_scope_take(at, &why);
            return;
        }
    while (*passes) {
        cfx_error err = {0};
        cfx_pass_list_next(&passes, &step, &err);
        if (cfx_pass_run_with(step.pass, m->graph, &tree, step.settings, step.n, NULL, &err)) {
            cfx_scope_fail_at(at, err.status, "pass %s: %s", step.pass->name, err.message);
            return;
        }
    }
    if (prune(at, m, &why) != CFX_OK)
        cfxi_capture_scope_take(at, &why);
}

/* `m` if it is captured, else what tracing it gives; NULL, and the scope fails. */
static cfx_module *captured_of(cfx_at at, cfx_module *m, const char *what)
{
    if (!m)
        cfx_scope_fail_at(at, CFX_E_VALUE, "cfx_replace_pattern got NULL for the %s", what);
    return m && !m->graph ? cfx_trace_at(at, m, (cfx_trace_options){0}) : m;
}

/* Both are captured. What the graph of `to` names and `m` does not have comes along. */
static size_t replace(cfx_at at, cfx_module *m, const cfx_module *from, const cfx_module *to,
                      cfx_error *err)
{
    const cfx_module_tree tree = cfxi_capture_scope_tree(at.scope, m);
    const cfx_match_options options = {.regions = true, .any_spelling = true,
                                       .commutative = true, .modules = &tree};
    cfx_graph *const pattern = from->graph;
    cfx_matches *found = cfx_matches_find(m->graph, &pattern, 1, &options, err);
    const size_t n = found ? cfx_matches_size(found) : 0;
    cfx_graph **with = n ? cfxi_base_alloc(at.scope->allocator, n * sizeof *with) : NULL;
    for (size_t i = 0; with && i < n; i++)
        with[i] = to->graph;
    if (n && !with)
        cfxi_base_nomem(err);
    else if (n && cfxi_capture_graft_missing(at, m, to, to->graph, err) == CFX_OK)
        cfx_matches_replace(found, with, err);
    cfxi_base_free(at.scope->allocator, with, n * sizeof *with);
    cfx_matches_free(found);
    return n;
}

size_t cfx_replace_pattern_at(cfx_at at, cfx_module *m, cfx_module *pattern,
                              cfx_module *replacement)
{
    cfx_error err = {0};
    size_t n = 0;
    if (!cfx_scope_ok(at.scope))
        return 0;
    if (m && !m->graph) {
        cfx_scope_fail_at(at, CFX_E_VALUE,
                          "cfx_replace_pattern needs a captured module; call cfx_trace "
                          "first");
        return 0;
    }
    const size_t mark = at.scope->modules.size;
    cfx_module *from = captured_of(at, m, "module") ? captured_of(at, pattern, "pattern") : NULL;
    cfx_module *to = from ? captured_of(at, replacement, "replacement") : NULL;
    if (to)
        n = replace(at, m, from, to, &err);
    if (to && err.status == CFX_OK)
        prune(at, m, &err);
    if (err.status != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    cfxi_capture_scope_keep(at, mark, NULL);  /* what was traced here */
    return cfx_scope_ok(at.scope) ? n : 0;
}
