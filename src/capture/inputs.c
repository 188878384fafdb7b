/* inputs.c - the inputs of a user's class: names and defaults, what a call gives for them, and what
 * stands for them in a trace. */
#include "capture_impl.h"

/* ---- names and defaults -------------------------------------------------------------------- */

static cfx_schema_text trimmed(cfx_schema_text text)
{
    for (; text.size > 0 && *text.text == ' '; text.size--)
        text.text++;
    while (text.size > 0 && text.text[text.size - 1] == ' ')
        text.size--;
    return text;
}

/* "None", "0.5", "True"; EMPTY for anything else. */
static cfx_var parse_constant(cfx_schema_text text)
{
    int64_t i;
    double f;
    if (cfxi_ops_text_is_word(text, "None"))
        return cfx_var_none();
    if (cfxi_ops_text_is_word(text, "True") || cfxi_ops_text_is_word(text, "False"))
        return cfx_var_bool(text.text[0] == 'T');
    if (cfxi_base_parse_int(text.text, text.size, &i))
        return cfx_var_int(i);
    return cfxi_base_parse_float(text.text, text.size, &f) ? cfx_var_float(f) : cfx_var_empty();
}

/* An item of "x, mask=None" or "x=float32[N, 3], n=2". */
typedef struct item {
    cfx_schema_text name;
    cfx_schema_text value;  /* what follows the "="; `text` is NULL if there is none */
} item;

/* Takes the next item off *list; false past the last. */
static bool next_item(const char **list, item *out)
{
    const cfx_schema_text whole = cfxi_ops_schema_next(list);
    const char *equals = whole.size > 0 ? memchr(whole.text, '=', whole.size) : NULL;
    *out = (item){.name = whole};
    if (equals) {
        const size_t size = (size_t)(equals - whole.text);
        out->name.size = size;
        out->value = trimmed((cfx_schema_text){equals + 1, whole.size - size - 1});
    }
    out->name = trimmed(out->name);
    return whole.size > 0;
}

static const char *inputs_of(const cfx_class *type)
{
    if (type->inputs)
        return type->inputs;
    return type->forward ? "x" : type->forward2 ? "x, y" : type->forward3 ? "x, y, z" : "";
}

static bool is_called(cfx_schema_text a, cfx_schema_text b)
{
    return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

bool cfxi_capture_inputs_are_good(cfx_at at, const cfx_class *type)
{
    const char *list = inputs_of(type);
    bool optional = false;
    size_t names = 0;
    for (item in; next_item(&list, &in);) {
        if (in.name.size == 0)
            cfx_scope_fail_at(at, CFX_E_VALUE, "class %.60s: an input in \"%.100s\" has no name",
                              type->name, type->inputs);
        else if (in.value.text && parse_constant(in.value).kind == CFX_VAR_EMPTY)
            cfx_scope_fail_at(at, CFX_E_VALUE,
                              "class %.60s: the default of '%.*s' must be None, a number, "
                              "True or False, not '%.*s'",
                              type->name, (int)in.name.size, in.name.text,
                              (int)(in.value.size < 60 ? in.value.size : 60), in.value.text);
        else if (!in.value.text && optional)
            cfx_scope_fail_at(at, CFX_E_VALUE,
                              "class %.60s: required input '%.*s' follows an optional input",
                              type->name, (int)in.name.size, in.name.text);
        if (!cfx_scope_ok(at.scope))
            return false;
        optional = in.value.text != NULL;
        names++;
    }
    const size_t takes = type->forward ? 1 : type->forward2 ? 2 : type->forward3 ? 3 : names;
    if (type->inputs && names != takes) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "class %.60s names %zu input%s (\"%.100s\"), but its "
                          "forward takes %zu", type->name, names, names == 1 ? "" : "s",
                          type->inputs, takes);
        return false;
    }
    return true;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* How many inputs the class takes: from *least to *most; and how many have names. */
static size_t count_inputs(const cfx_class *type, size_t *least, size_t *most)
{
    const char *list = inputs_of(type);
    size_t names = 0;
    *least = 0;
    for (item in; next_item(&list, &in); names++)
        *least += !in.value.text;
    *most = names;
    if (type->forward_n && !type->inputs)
        *most = SIZE_MAX;
    else if (!type->forward_n)  /* whatever the names say */
        *most = type->forward ? 1 : type->forward2 ? 2 : 3;
    if (*least > *most)
        *least = *most;
    return names;
}

/* The defaults of what is not given: None for an input without a name. */
static void fill_defaults(const cfx_class *type, size_t given, cfx_var *all, size_t n)
{
    const char *list = inputs_of(type);
    item in;
    for (size_t i = 0; i < n; i++) {
        const bool named = next_item(&list, &in);
        if (i >= given)
            all[i] = named && in.value.text ? parse_constant(in.value) : cfx_var_none();
    }
}

const cfx_var *cfxi_capture_fill_inputs(cfx_at at, const cfx_module *m, cfx_vars in,
                                        cfxi_room *room, size_t *n)
{
    size_t least;
    size_t most;
    count_inputs(m->type, &least, &most);
    if (in.n < least || in.n > most) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "%s takes %zu input%s (%s), not %zu",
                          cfxi_capture_module_title(m), most == SIZE_MAX ? least : most,
                          most == 1 ? "" : "s", inputs_of(m->type), in.n);
        return NULL;
    }
    *n = most == SIZE_MAX ? in.n : most;
    cfx_var *all = cfxi_capture_room_for(at, room, *n);
    for (size_t i = 0; all && i < in.n; i++) {
        all[i] = in.items[i];
        if (all[i].kind == CFX_VAR_EMPTY) {
            cfx_scope_fail_at(at, CFX_E_VALUE, "%s: input %zu is empty",
                              cfxi_capture_module_title(m), i);
            return NULL;
        }
    }
    if (all)
        fill_defaults(m->type, in.n, all, *n);
    return all;
}

/* ---- in a trace ---------------------------------------------------------------------------- */

/* What stands behind "name=" in a list; `text` is NULL if it is not there. */
static cfx_schema_text value_of(const char *list, cfx_schema_text name)
{
    for (item in; list && next_item(&list, &in);)
        if (in.value.text && is_called(in.name, name))
            return in.value;
    return (cfx_schema_text){NULL, 0};
}

/* Whether all that is told of inputs, in an option, is told of inputs that there are. */
static bool names_are_inputs(cfx_at at, const char *option, const char *list, const char *inputs)
{
    for (item told; list && next_item(&list, &told);) {
        const char *all = inputs;
        bool found = false;
        for (item in; !found && next_item(&all, &in);)
            found = is_called(in.name, told.name);
        if (!found || !told.value.text) {
            cfx_scope_fail_at(at, CFX_E_KEY,
                              found ? "%s: '%.*s=' has no value"
                                    : "%s: there is no input '%.*s' (inputs: %.100s)",
                              option, (int)(told.name.size < 60 ? told.name.size : 60),
                              told.name.text, inputs);
            return false;
        }
    }
    return true;
}

static cfx_datum input_shape(cfx_at at, cfx_schema_text name)
{
    cfxi_trace *t = at.scope->trace;
    cfx_error err = {0};
    if (!t->dims)
        return cfx_datum_invalid();
    const cfx_schema_text text = value_of(t->options->shapes, name);
    if (!text.text) {
        cfx_scope_fail_at(at, CFX_E_KEY, "the shape of the input '%.*s' is missing in .shapes",
                          (int)name.size, name.text);
        return cfx_datum_invalid();
    }
    if (cfxi_ops_text_is_word(text, "?"))
        return cfx_datum_invalid();
    cfx_datum d = cfx_datum_parse(t->dims, text.text, text.size, at.scope->allocator, &err);
    if (d.kind == CFX_DATUM_INVALID)
        cfx_scope_fail_at(at, err.status, ".shapes: %.*s: %s", (int)name.size, name.text,
                          err.message);
    return d;
}

/* A placeholder; `value` is its default, or EMPTY. */
static cfx_var add_placeholder(cfx_at at, cfx_schema_text name, cfx_var value)
{
    cfx_graph *g = at.scope->trace->graph;
    cfx_error err = {0};
    const cfx_value usual = cfxi_capture_var_value(at, value);
    const cfx_target target = {.name = name.text, .size = name.size};
    const bool number = !at.scope->trace->dims && cfxi_capture_var_is_number(at, value);
    cfx_datum known = number ? cfxi_capture_some_number() : input_shape(at, name);
    cfx_value args = cfx_value_tuple(g, &usual, value.kind != CFX_VAR_EMPTY, &err);
    cfx_node *n = NULL;
    if (args.kind != CFX_KIND_INVALID && cfx_scope_ok(at.scope))
        n = cfx_graph_create(g, CFX_OP_PLACEHOLDER, target, args, cfx_value_invalid(), NULL,
                             cfx_value_invalid(), &err);
    if (n)
        return cfxi_capture_trace_node(at, n, known);
    cfx_value_discard(g, args);
    cfx_datum_release(known);
    if (cfx_scope_ok(at.scope))
        cfxi_capture_scope_take(at, &err);
    return cfx_var_empty();
}

/* The constant that it is captured with, or a placeholder. */
static cfx_var add_input(cfx_at at, const item *in)
{
    const cfxi_trace *t = at.scope->trace;
    const cfx_schema_text fixed = value_of(t->options->concrete_args, in->name);
    if (!fixed.text)
        return add_placeholder(at, in->name,
                               in->value.text ? parse_constant(in->value) : cfx_var_empty());
    const cfx_var v = parse_constant(fixed);
    if (v.kind == CFX_VAR_EMPTY)
        cfx_scope_fail_at(at, CFX_E_VALUE,
                          "concrete_args: '%.*s' must be None, a number, True or False, "
                          "not '%.*s'",
                          (int)in->name.size, in->name.text,
                          (int)(fixed.size < 60 ? fixed.size : 60), fixed.text);
    return v;
}

const cfx_var *cfxi_capture_trace_inputs(cfx_at at, const cfx_class *type, cfxi_room *room,
                                         size_t *n)
{
    const cfx_trace_options *o = at.scope->trace->options;
    const char *list = inputs_of(type);
    size_t least;
    size_t most;
    *n = count_inputs(type, &least, &most);
    if (!names_are_inputs(at, "shapes", o->shapes, list) ||
        !names_are_inputs(at, "concrete_args", o->concrete_args, list))
        return NULL;
    cfx_var *all = cfxi_capture_room_for(at, room, *n);
    item in;
    for (size_t i = 0; all && i < *n && next_item(&list, &in); i++) {
        all[i] = add_input(at, &in);
        if (!cfx_scope_ok(at.scope))
            return NULL;
    }
    return all;
}
