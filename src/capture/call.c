/* call.c - calling a module: its forward, what computes a module of torch.nn, or a node. */
#include "capture_impl.h"

#include <stdio.h>

/* ---- inputs of a user's class -------------------------------------------------------------- */

/* "None", "0.5", "True"; EMPTY for anything else. */
static cfx_var parse_default(cfx_schema_text text)
{
    int64_t i;
    double f;
    for (; text.size > 0 && *text.text == ' '; text.size--)
        text.text++;
    if (cfxi_text_is_word(text, "None"))
        return cfx_var_none();
    if (cfxi_text_is_word(text, "True") || cfxi_text_is_word(text, "False"))
        return cfx_var_bool(text.text[0] == 'T');
    if (cfxi_parse_int(text.text, text.size, &i))
        return cfx_var_int(i);
    return cfxi_parse_float(text.text, text.size, &f) ? cfx_var_float(f) : cfx_var_empty();
}

/* The i-th name of "x, mask=None"; an empty text past the last. */
static cfx_schema_text input_name(const char *inputs, size_t i, cfx_var *value)
{
    cfx_schema_text name = {inputs, 0};
    const char *at = inputs;
    for (size_t k = 0; k <= i; k++)
        name = cfxi_schema_next(&at);
    const char *equals = memchr(name.text, '=', name.size);
    *value = cfx_var_empty();
    if (equals) {
        const size_t size = (size_t)(equals - name.text);
        *value = parse_default((cfx_schema_text){equals + 1, name.size - size - 1});
        name.size = size;
    }
    while (name.size > 0 && name.text[name.size - 1] == ' ')
        name.size--;
    return name;
}

static const char *inputs_of(const cfx_class *type)
{
    if (type->inputs)
        return type->inputs;
    return type->forward ? "x" : type->forward2 ? "x, y" : type->forward3 ? "x, y, z" : "";
}

cfx_schema_text cfxi_class_input(const cfx_class *type, size_t i, cfx_var *value)
{
    return input_name(inputs_of(type), i, value);
}

/* How many inputs the class takes: from *least to *most. */
static void count_inputs(const cfx_class *type, size_t *least, size_t *most)
{
    cfx_var value;
    *least = *most = 0;
    while (cfxi_class_input(type, *most, &value).size > 0) {
        *least += value.kind == CFX_VAR_EMPTY;
        ++*most;
    }
    if (type->forward_n && !type->inputs)
        *most = SIZE_MAX;
    else if (!type->forward_n)  /* whatever the names say */
        *most = type->forward ? 1 : type->forward2 ? 2 : 3;
    if (*least > *most)
        *least = *most;
}

/* `in` with the defaults of what is not given, in `all`; false, and the scope fails, if it does not
 * fit. */
static bool fill_inputs(cfx_at at, const cfx_module *m, cfx_vars in, cfx_var all[CFXI_MOST_INPUTS],
                        size_t *n)
{
    size_t least;
    size_t most;
    count_inputs(m->type, &least, &most);
    if (in.n > CFXI_MOST_INPUTS || least > CFXI_MOST_INPUTS) {
        cfx_fail(at, CFX_E_LIMIT, "%s: a module takes %d inputs at most; put some into a cfx_tuple",
                 cfxi_module_title(m), CFXI_MOST_INPUTS);
        return false;
    }
    if (in.n < least || in.n > most) {
        cfx_fail(at, CFX_E_VALUE, "%s takes %zu input%s (%s), not %zu", cfxi_module_title(m),
                 most == SIZE_MAX ? least : most, most == 1 ? "" : "s", inputs_of(m->type), in.n);
        return false;
    }
    *n = most == SIZE_MAX || most > CFXI_MOST_INPUTS ? in.n : most;
    for (size_t i = 0; i < *n; i++) {
        if (i < in.n)
            all[i] = in.items[i];
        else if (cfxi_class_input(m->type, i, &all[i]).size == 0)
            all[i] = cfx_var_none();
        if (all[i].kind == CFX_VAR_EMPTY) {
            cfx_fail(at, CFX_E_VALUE, "%s: input %zu is an empty variable", cfxi_module_title(m),
                     i);
            return false;
        }
    }
    return true;
}

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
    for (size_t i = 0; i < m->members.size && cfx_ok(at.scope); i++) {
        const cfxi_member *e = cfxi_member_at(m, i);
        if (e->kind == CFXI_MEMBER_CHILD)
            x = cfx_call_at(at, e->child, cfx_vars_make(&x, 1));
    }
    return x;
}

/* Whether calling it is calling other modules: a user's, and a Sequential. */
static bool has_forward(const cfx_module *m) { return m->type || m->nn == CFX_NN_Sequential; }

cfx_var cfxi_call_forward(cfx_at at, cfx_module *m, cfx_vars in)
{
    cfx_scope *s = at.scope;
    cfx_var all[CFXI_MOST_INPUTS];
    size_t n = 1;
    if (!m->type && in.n == 1)
        all[0] = in.items[0];
    else if (!m->type)
        cfx_fail(at, CFX_E_VALUE, "%s takes 1 input, not %zu", cfxi_module_title(m), in.n);
    else
        fill_inputs(at, m, in, all, &n);
    if (!cfx_ok(s))
        return cfx_var_empty();
    if (s->depth >= CFXI_MOST_CALLS) {
        cfx_fail(at, CFX_E_LIMIT, "modules call each other more than %d deep", CFXI_MOST_CALLS);
        return cfx_var_empty();
    }
    const size_t mark = cfx_scope_mark(s);
    s->depth++;
    cfx_var result = m->type ? run_forward(s, m, all, n) : run_children(at, m, all[0]);
    s->depth--;
    if (cfx_ok(s) && result.kind == CFX_VAR_EMPTY)
        cfx_fail(at, CFX_E_VALUE, "forward of %s returned nothing", cfxi_module_title(m));
    if (cfx_ok(s) && result.kind == CFX_VAR_INTS)
        cfx_fail(at, CFX_E_VALUE, "forward of %s returned a cfx_ints, which went with the "
                 "function: return a cfx_tuple", cfxi_module_title(m));
    return cfx_scope_return(s, mark, result);
}

/* ---- what computes ------------------------------------------------------------------------- */

/* The inputs of a program, by its variables; false, and the scope fails. */
static bool gather(cfx_at at, cfx_vars in, bool all, cfx_datum *data, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < in.n; i++) {
        if (!all && in.items[i].kind != CFX_VAR_VALUE)
            continue;  /* it is part of the program */
        data[*n] = cfxi_var_datum(at, in.items[i]);
        if (!cfx_ok(at.scope))
            return false;
        ++*n;
    }
    return true;
}

static cfx_var run_program(cfx_at at, cfx_module *m, cfx_vars in)
{
    cfx_datum data[CFXI_MOST_INPUTS];
    cfx_error err = {0};
    cfx_datum result = cfx_datum_invalid();
    size_t n = 0;
    if (in.n > CFXI_MOST_INPUTS) {
        cfx_fail(at, CFX_E_LIMIT, "more than %d inputs", CFXI_MOST_INPUTS);
        return cfx_var_empty();
    }
    const cfx_program *p = cfxi_ready_program(at, m, in);
    if (p && gather(at, in, m->graph != NULL, data, &n)) {
        result = cfx_program_run(p, at.scope->rt, data, n, &err);
        if (result.kind == CFX_DATUM_INVALID)
            cfxi_scope_take(at, &err);
    }
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(data[i]);
    return result.kind == CFX_DATUM_INVALID ? cfx_var_empty() : cfxi_var_of_datum(at, result);
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
    cfx_datum data[CFXI_MOST_INPUTS];
    cfx_error err = {0};
    cfx_datum result = cfx_datum_invalid();
    size_t n = 0;
    if (!at.scope->trace->dims || in.n > CFXI_MOST_INPUTS || !(m->nn || m->graph))
        return cfx_datum_invalid();
    const cfx_program *p = cfxi_ready_program(at, m, in);
    bool known = p && gather(at, in, m->graph != NULL, data, &n);
    for (size_t i = 0; i < n; i++)
        known = known && data[i].kind != CFX_DATUM_INVALID;
    if (known) {
        result = cfx_program_infer(p, at.scope->rt, at.scope->trace->dims, data, n, NULL, NULL,
                                   &err);
        if (result.kind == CFX_DATUM_INVALID)
            cfxi_scope_take(at, &err);
    }
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(data[i]);
    return result;
}

static cfx_node *call_node(cfx_at at, const char *path, cfx_vars in)
{
    cfx_graph *g = at.scope->trace->graph;
    cfx_value args[CFXI_MOST_INPUTS];
    cfx_error err = {0};
    for (size_t i = 0; i < in.n; i++) {
        args[i] = cfxi_var_value(at, in.items[i]);
        if (args[i].kind == CFX_KIND_INVALID) {
            while (i-- > 0)
                cfx_value_discard(g, args[i]);
            return NULL;
        }
    }
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_MODULE, path, args, in.n, NULL, 0, &err);
    if (!n)
        cfxi_scope_take(at, &err);
    return n;
}

static cfx_var note_call(cfx_at at, cfx_module *m, const char *path, cfx_vars in)
{
    if (in.n > CFXI_MOST_INPUTS) {
        cfx_fail(at, CFX_E_LIMIT, "more than %d inputs", CFXI_MOST_INPUTS);
        return cfx_var_empty();
    }
    cfx_datum known = infer_call(at, m, in);
    cfx_node *n = cfx_ok(at.scope) ? call_node(at, path, in) : NULL;
    if (n)
        return cfxi_trace_node(at, n, known);
    cfx_datum_release(known);
    return cfx_var_empty();
}

/* Goes into a user's module: its nodes are inside its scope. */
static cfx_var follow(cfx_at at, cfx_module *m, const char *path, cfx_vars in)
{
    cfxi_trace *t = at.scope->trace;
    cfx_error err = {0};
    const uint32_t outer = t->scope;
    const uint32_t inner = cfx_graph_scope(t->graph, outer, path, cfx_module_class_name(m), NULL,
                                           &err);
    if (inner == 0) {
        cfxi_scope_take(at, &err);
        return cfx_var_empty();
    }
    t->scope = inner;
    cfx_var result = cfxi_call_forward(at, m, in);
    t->scope = outer;
    return result;
}

static cfx_var trace_call(cfx_at at, cfx_module *m, cfx_vars in)
{
    const char *path = cfxi_trace_path(at.scope->trace, m);
    if (!path) {
        cfx_fail(at, CFX_E_KEY, "%s is no part of the module that is being captured: add it to "
                 "one that is (cfx_module_add)", cfxi_module_title(m));
        return cfx_var_empty();
    }
    if (!has_forward(m) || is_leaf(at.scope->trace, m, path))
        return note_call(at, m, path, in);
    return follow(at, m, path, in);
}

/* ---- both ---------------------------------------------------------------------------------- */

cfx_var cfx_call_at(cfx_at at, cfx_module *m, cfx_vars in)
{
    if (!cfx_ok(at.scope))
        return cfx_var_empty();
    if (!m) {
        cfx_fail(at, CFX_E_VALUE, "there is no module to call: cfx_child returns NULL for a name "
                 "that the module does not have");
        return cfx_var_empty();
    }
    const bool is_list = m->nn == CFX_NN_ModuleList || m->nn == CFX_NN_ModuleDict;
    if (is_list || (!m->type && !m->nn && !m->graph)) {
        cfx_fail(at, CFX_E_TYPE, "a module that only holds others cannot be called: give it a "
                 "class with a forward, or make it a Sequential");
        return cfx_var_empty();
    }
    if (at.scope->trace)
        return trace_call(at, m, in);
    return has_forward(m) ? cfxi_call_forward(at, m, in) : run_program(at, m, in);
}
