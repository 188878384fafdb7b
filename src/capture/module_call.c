/* module_call.c - calling a module: its forward, what computes a module of torch.nn, or a node. */
#include "capture_impl.h"

#include <cfx/embed/base.h>

/* ---- forward ------------------------------------------------------------------------------- */

static cfx_var run_forward(cfx_scope *s, cfx_module *m, const cfx_var *in, size_t n)
{
    const cfx_class *type = m->type;
    if (type->forward)
        return type->forward(s, m, in[0]);
    if (type->forward2)
        return type->forward2(s, m, in[0], in[1]);
    if (type->forward3)
        return type->forward3(s, m, in[0], in[1], in[2]);
    return type->forward_n(s, m, in, n);
}

/* A torch.nn.Sequential: each child is called with what the one before it gave. */
static cfx_var run_children(cfx_at at, const cfx_module *m, cfx_var x)
{
    for (size_t i = 0; i < m->members.size && cfx_scope_ok(at.scope); i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind == CFXI_MEMBER_CHILD)
            x = cfx_call_at(at, e->child, cfx_vars_make(&x, 1));
    }
    return x;
}

/* Whether calling it is calling other modules: a user's, and a Sequential. */
static bool has_forward(const cfx_module *m) { return m->type || m->nn == CFX_NN_Sequential; }

static cfx_var run_inside(cfx_at at, cfx_module *m, const cfx_var *in, size_t n)
{
    cfx_scope *s = at.scope;
    if (s->depth >= CFXI_MOST_CALLS) {
        cfx_scope_fail_at(at, CFX_E_LIMIT, "module calls are nested more than %d deep",
                          CFXI_MOST_CALLS);
        return cfx_var_empty();
    }
    const size_t mark = cfx_scope_mark(s);
    s->depth++;
    cfx_var result = m->type ? run_forward(s, m, in, n) : run_children(at, m, in[0]);
    s->depth--;
    if (cfx_scope_ok(s) && result.kind == CFX_VAR_EMPTY)
        cfx_scope_fail_at(at, CFX_E_VALUE, "forward of %s returned nothing",
                          cfxi_capture_module_title(m));
    return cfx_scope_reset(s, mark, result);
}

cfx_var cfxi_capture_call_forward(cfx_at at, cfx_module *m, cfx_vars in)
{
    cfx_var here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_var result = cfx_var_empty();
    size_t n = 1;
    if (m->type) {
        const cfx_var *all = cfxi_capture_fill_inputs(at, m, in, &room, &n);
        if (all)
            result = run_inside(at, m, all, n);
    } else if (in.n == 1) {
        result = run_inside(at, m, in.items, n);
    } else {
        cfx_scope_fail_at(at, CFX_E_VALUE, "%s takes 1 input, not %zu",
                          cfxi_capture_module_title(m), in.n);
    }
    cfxi_capture_room_free(at, &room);
    return result;
}

/* ---- what computes ------------------------------------------------------------------------- */

/* The inputs of a program, by its variables; false, and the scope fails. */
static bool gather(cfx_at at, cfx_vars in, bool all, cfx_datum *data, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < in.n; i++) {
        if (!all && in.items[i].kind != CFX_VAR_VALUE)
            continue;  /* it is part of the program */
        data[*n] = cfxi_capture_var_datum(at, in.items[i]);
        if (!cfx_scope_ok(at.scope))
            return false;
        ++*n;
    }
    return true;
}

static void release_all(cfx_datum *data, size_t n)
{
    while (n > 0)
        cfx_datum_release(data[--n]);
}

static cfx_var run_program(cfx_at at, cfx_module *m, cfx_vars in)
{
    cfx_datum here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_error err = {0};
    cfx_datum result = cfx_datum_invalid();
    size_t n = 0;
    cfx_datum *data = cfxi_capture_room_for(at, &room, in.n);
    const cfx_program *p = data ? cfxi_capture_ready_program(at, m, in) : NULL;
    if (p && gather(at, in, m->graph != NULL, data, &n)) {
        result = cfx_program_run(p, at.scope->rt, data, n, &err);
        if (result.kind == CFX_DATUM_INVALID)
            cfxi_capture_scope_take(at, &err);
    }
    release_all(data, n);
    cfxi_capture_room_free(at, &room);
    return result.kind == CFX_DATUM_INVALID ? cfx_var_empty()
                                            : cfxi_capture_var_of_datum(at, result);
}

/* ---- while tracing ------------------------------------------------------------------------- */

static bool is_leaf(const cfxi_trace *t, const cfx_module *m, const char *path)
{
    if (t->options && t->options->is_leaf)
        return t->options->is_leaf(t->options->ctx, m, path);
    return m->type ? m->type->leaf : !has_forward(m);
}

/* What the module gives for what is known of its inputs; the scope fails if they do not fit. */
static cfx_datum infer_call(cfx_at at, cfx_module *m, cfx_vars in)
{
    cfx_datum here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_error err = {0};
    cfx_datum result = cfx_datum_invalid();
    size_t n = 0;
    if (!at.scope->trace->dims || !(m->nn || m->graph))
        return result;
    cfx_datum *data = cfxi_capture_room_for(at, &room, in.n);
    const cfx_program *p = data ? cfxi_capture_ready_program(at, m, in) : NULL;
    bool known = p && gather(at, in, m->graph != NULL, data, &n);
    for (size_t i = 0; i < n; i++)
        known = known && data[i].kind != CFX_DATUM_INVALID;
    if (known) {
        result = cfx_program_infer(p, at.scope->rt, at.scope->trace->dims, data, n, NULL, NULL,
                                   &err);
        if (result.kind == CFX_DATUM_INVALID)
            cfxi_capture_scope_take(at, &err);
    }
    release_all(data, n);
    cfxi_capture_room_free(at, &room);
    return result;
}

static cfx_node *call_node(cfx_at at, const char *path, cfx_vars in)
{
    cfx_value here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_error err = {0};
    cfx_node *n = NULL;
    cfx_value *args = cfxi_capture_room_for(at, &room, in.n);
    if (args && cfxi_capture_var_values(at, in, args)) {
        n = cfx_graph_call(at.scope->trace->graph, CFX_OP_CALL_MODULE, path, args, in.n, NULL, 0,
                           &err);
        if (!n)
            cfxi_capture_scope_take(at, &err);
    }
    cfxi_capture_room_free(at, &room);
    return n;
}

static cfx_var note_call(cfx_at at, cfx_module *m, const char *path, cfx_vars in)
{
    cfx_datum known = infer_call(at, m, in);
    cfx_node *n = cfx_scope_ok(at.scope) ? call_node(at, path, in) : NULL;
    if (n)
        return cfxi_capture_trace_node(at, n, known);
    cfx_datum_release(known);
    return cfx_var_empty();
}

/* Goes into a user's module: its nodes are inside its scope. */
static cfx_var follow(cfx_at at, cfx_module *m, const char *path, cfx_vars in)
{
    cfxi_trace *t = at.scope->trace;
    cfx_error err = {0};
    const uint32_t outer = t->scope;
    const uint32_t inner =
        cfx_graph_intern_stack(t->graph, outer, path, cfx_module_class_name(m), NULL, &err);
    if (inner == 0) {
        cfxi_capture_scope_take(at, &err);
        return cfx_var_empty();
    }
    t->scope = inner;
    cfx_var result = cfxi_capture_call_forward(at, m, in);
    t->scope = outer;
    return result;
}

static cfx_var trace_call(cfx_at at, cfx_module *m, cfx_vars in)
{
    const char *path = cfxi_capture_trace_path(at.scope->trace, m);
    if (!path) {
        cfx_scope_fail_at(at, CFX_E_KEY,
                          "%s is not part of the module being captured; add it with cfx_module_add",
                          cfxi_capture_module_title(m));
        return cfx_var_empty();
    }
    if (!has_forward(m) || is_leaf(at.scope->trace, m, path))
        return note_call(at, m, path, in);
    return follow(at, m, path, in);
}

/* ---- both ---------------------------------------------------------------------------------- */

/* An observer returns what it is given. */
static cfx_var call_observer(cfx_at at, const cfx_module *m, cfx_vars in)
{
    cfx_error err = {0};
    if (in.n != 1 || at.scope->trace) {
        cfx_scope_fail_at(at, CFX_E_VALUE, in.n != 1 ? "an observer takes 1 input"
                                                     : "a prepared module cannot be traced");
        return cfx_var_empty();
    }
    cfx_datum d = cfxi_capture_var_datum(at, in.items[0]);
    if (cfx_scope_ok(at.scope) && cfxi_capture_observing_see(m->observing, d, &err) != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    cfx_datum_release(d);
    return cfx_scope_ok(at.scope) ? in.items[0] : cfx_var_empty();
}

cfx_var cfx_call_at(cfx_at at, cfx_module *m, cfx_vars in)
{
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    if (!m) {
        cfx_scope_fail_at(at, CFX_E_VALUE,
                          "the module to call is NULL; cfx_module_child returns NULL for a child "
                          "that does not exist, cfx_call_child names it");
        return cfx_var_empty();
    }
    const bool is_list = m->nn == CFX_NN_ModuleList || m->nn == CFX_NN_ModuleDict;
    if (m->observing)
        return call_observer(at, m, in);
    if (is_list || (!m->type && !m->nn && !m->graph)) {
        cfx_scope_fail_at(at, CFX_E_TYPE,
                          "a module that only holds other modules cannot be called; give it a "
                          "class with a forward, or make it a Sequential");
        return cfx_var_empty();
    }
    if (at.scope->trace)
        return trace_call(at, m, in);
    return has_forward(m) ? cfxi_capture_call_forward(at, m, in) : run_program(at, m, in);
}

/* "MLP has no child 'fc7'; did you mean 'fc1'?" */
static void fail_child(cfx_at at, const cfx_module *m, const char *path)
{
    cfx_nearest near;
    const char *last;
    const cfx_module *owner = cfxi_capture_module_owner(m, path, &last);
    cfx_nearest_begin(&near, owner ? last : path);
    for (size_t i = 0; owner && i < owner->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(owner, i);
        if (e->kind == CFXI_MEMBER_CHILD)
            cfx_nearest_add(&near, e->name);
    }
    if (near.best)
        cfx_scope_fail_at(at, CFX_E_KEY, "%s has no child '%.100s'; did you mean '%.*s%s'?",
                          cfxi_capture_module_title(m), path, (int)(last - path), path, near.best);
    else
        cfx_scope_fail_at(at, CFX_E_KEY, "%s has no child '%.100s'", cfxi_capture_module_title(m),
                          path);
}

cfx_var cfx_call_child_at(cfx_at at, const cfx_module *m, const char *path, cfx_vars in)
{
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    if (!m || !path) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "cfx_call_child got NULL for the %s",
                          m ? "path" : "module");
        return cfx_var_empty();
    }
    cfx_module *child = cfx_module_child(m, path);
    if (child)
        return cfx_call_at(at, child, in);
    fail_child(at, m, path);
    return cfx_var_empty();
}
