/* record.c - graph values: objects as arguments of nodes, calls as nodes. */
#include "world_impl.h"

#include <stdio.h>

/* ---- asking -------------------------------------------------------------------------------- */

typedef struct search {
    bool or_tensor;
    uint32_t left;   /* how many more objects are looked at: then the answer is yes, and whoever
                        goes on fails */
} search;

static bool is_value(search *s, const cfx_object *o, int depth)
{
    cfx_object *key;
    cfx_object *value;
    if (depth > CFXI_DEEPEST)
        return false;
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_VALUE: return true;
    case CFXI_TYPE_ATTRIBUTE: return is_value(s, o->as.parts.a, depth + 1);
    case CFXI_TYPE_TENSOR: return s->or_tensor;
    case CFXI_TYPE_TUPLE:
    case CFXI_TYPE_LIST:
    case CFXI_TYPE_SLICE:
        for (size_t i = 0; i < o->as.seq.n; i++)
            if (s->left-- == 0 || is_value(s, o->as.seq.items[i], depth + 1))
                return true;
        return false;
    case CFXI_TYPE_DICT:
        for (size_t at = 0; cfxi_world_dict_next(o, &at, &key, &value);)
            if (s->left-- == 0 || is_value(s, value, depth + 1))
                return true;
        return false;
    default: return false;
    }
}

bool cfxi_world_has_value(const cfx_object *o, bool or_tensor)
{
    search s = {or_tensor, CFXI_MOST_WORK};
    return is_value(&s, o, 0);
}

bool cfxi_world_any_value(const cfx_call_args *a, bool or_tensor)
{
    for (size_t i = 0; i < a->n; i++)
        if (cfxi_world_has_value(a->args[i], or_tensor))
            return true;
    return false;
}

cfx_object *cfxi_world_value_object(cfxi_world *w, cfx_node *n, cfx_error *err)
{
    cfx_object *o = cfxi_world_object_new(w, CFXI_TYPE_VALUE, err);
    if (o)
        o->as.node = n;
    return o;
}

/* ---- tensors of the program ---------------------------------------------------------------- */

static cfx_status mark(cfxi_world *w, cfx_node *n, cfx_error *err)
{
    const uint32_t *scopes = w->entered.data;
    if (w->entered.size > 0)
        cfx_node_set_module_stack(n, scopes[w->entered.size - 1]);
    return w->file ? cfx_node_set_location(n, w->file, w->line, err) : CFX_OK;
}

/* A tensor that is in no module becomes a constant of the root. */
static cfx_status add_constant(cfxi_world *w, cfx_tensor *t, cfx_error *err)
{
    char name[40];
    cfx_module *root = w->root->as.module;
    do
        snprintf(name, sizeof name, "_tensor_constant%zu", w->constants++);
    while (cfxi_capture_module_find(root, name, strlen(name)));
    const cfx_datum d = cfx_datum_tensor(t);
    CFX_TRY(cfxi_capture_module_put(root, name, strlen(name), CFXI_MEMBER_BUFFER, NULL, d, err));
    return cfxi_capture_places_add(&w->places, t, "", name, err);
}

/* The get_attr of a tensor, which has to be read anew in each branch: a node each time. */
static cfx_node *read_tensor(cfxi_world *w, cfx_tensor *t, cfx_error *err)
{
    if (!w->root) {
        cfx_error_set(err, CFX_E_UNSUPPORTED, "a tensor cannot be recorded here: nothing is being "
                      "captured");
        return NULL;
    }
    if (!cfxi_capture_places_find(&w->places, t) && add_constant(w, t, err) != CFX_OK)
        return NULL;
    cfx_node *n = cfx_graph_get_attr(w->graph, cfxi_capture_places_find(&w->places, t)->path, err);
    return n && mark(w, n, err) == CFX_OK ? n : NULL;
}

cfx_object *cfxi_world_tensor_value(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_node *n = read_tensor(w, o->as.tensor, err);
    return n ? cfxi_world_value_object(w, n, err) : NULL;
}

/* ---- objects as values --------------------------------------------------------------------- */

/* Those of a list, dict, slice and so on, in `kind`'s layout. */
static cfx_value items_value(cfxi_world *w, cfx_kind kind, cfx_object *const *items, size_t n,
                             cfx_error *err)
{
    cfx_graph *g = w->graph;
    cfxi_vec values = {0};
    cfx_value v = cfx_value_invalid();
    if (cfxi_world_deeper(w, err) != CFX_OK)
        return v;
    bool good = cfxi_base_vec_reserve(&values, n + 1, sizeof v, w->allocator);
    if (!good)
        cfxi_base_nomem(err);
    cfx_value *out = values.data;
    for (size_t i = 0; good && i < n; i++) {
        out[i] = cfxi_world_to_value(w, items[i], err);
        good = out[i].kind != CFX_KIND_INVALID;
        values.size += good;
    }
    if (good)
        v = cfx_value_seq(g, kind, out, n, err);
    for (size_t i = 0; v.kind == CFX_KIND_INVALID && i < values.size; i++)
        cfx_value_discard(g, out[i]);
    cfxi_base_vec_free(&values, sizeof v, w->allocator);
    w->depth--;
    return v;
}

static cfx_value entries_value(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    const bool dict = o->type == CFXI_TYPE_DICT;
    cfx_object *key;
    cfx_object *value;
    cfx_object *flat = cfxi_world_seq_object(w, CFXI_TYPE_LIST, NULL, 0, err);
    cfx_status status = flat ? CFX_OK : err->status;
    for (size_t at = 0; status == CFX_OK && cfxi_world_dict_next(o, &at, &key, &value);) {
        status = cfxi_world_list_append(flat, key, err);
        if (status == CFX_OK && dict)
            status = cfxi_world_list_append(flat, value, err);
    }
    cfx_value v = cfx_value_invalid();
    if (status == CFX_OK)
        v = items_value(w, dict ? CFX_KIND_DICT
                           : o->type == CFXI_TYPE_SET ? CFX_KIND_SET : CFX_KIND_FROZENSET,
                        flat->as.seq.items, flat->as.seq.n, err);
    cfxi_world_unref(flat);
    return v;
}

static cfx_value node_value(cfx_node *n)
{
    return n ? cfx_value_node(n) : cfx_value_invalid();
}

/* A class or function as an argument: by its name. */
static cfx_value name_value(cfxi_world *w, const cfx_object *o, cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    const char *text = o->type == CFXI_TYPE_BUILTIN ? o->as.builtin.name : o->as.cls.name;
    const bool torch = o->type == CFXI_TYPE_CLASS && o->as.cls.layout == CFXI_TYPE_TENSOR;
    snprintf(name, sizeof name, "%s%.80s", torch ? "torch." : strchr(text, '.') ? "" : "builtins.",
             text);
    return cfx_value_name(w->graph, name, strlen(name), err);
}

static cfx_value refuse(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfxi_world_throw(
        w, err, CFXI_TypeError,
        "an object of type '%s' cannot be an argument of a graph node; use numbers, strings, "
        "tensors, or lists, tuples and dicts of them",
        cfxi_world_type_name(o));
    return cfx_value_invalid();
}

static cfx_value range_value(cfxi_world *w, const cfx_object *o, cfx_error *err)
{
    const int64_t start = o->as.range.start;
    const cfx_value parts[3] = {cfx_value_int(start),
                                cfx_value_int(start + o->as.range.n * o->as.range.step),
                                cfx_value_int(o->as.range.step)};
    return cfx_value_seq(w->graph, CFX_KIND_RANGE, parts, 3, err);
}

/* x.T, which was not called: a node that reads it. */
static cfx_node *attribute_node(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_object *args[] = {o->as.parts.a, o->as.parts.b};
    cfx_object *made = cfxi_world_record(w, CFX_OP_CALL_FUNCTION, "builtins.getattr",
                                         &(cfx_call_args){.args = args, .n = 2}, err);
    cfx_node *n = made ? made->as.node : NULL;
    cfxi_world_unref(made);
    return n;
}

cfx_value cfxi_world_to_value(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    cfx_graph *g = w->graph;
    const char *text = o->type == CFXI_TYPE_STR || o->type == CFXI_TYPE_BYTES ||
                       o->type == CFXI_TYPE_DEVICE ? o->as.text.data : NULL;
    const size_t size = text ? o->as.text.size : 0;
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_NONE: return cfx_value_none();
    case CFXI_TYPE_ELLIPSIS: return cfx_value_ellipsis();
    case CFXI_TYPE_BOOL: return cfx_value_bool(o->as.b);
    case CFXI_TYPE_INT: return cfx_value_int(o->as.i);
    case CFXI_TYPE_FLOAT: return cfx_value_float(o->as.f);
    case CFXI_TYPE_COMPLEX: return cfx_value_complex(g, o->as.c[0], o->as.c[1], err);
    case CFXI_TYPE_STR: return cfx_value_str(g, text, size, err);
    case CFXI_TYPE_BYTES: return cfx_value_bytes(g, text, size, err);
    case CFXI_TYPE_DEVICE: return cfx_value_device(g, text, size, err);
    case CFXI_TYPE_DTYPE: return cfx_value_dtype((cfx_dtype)o->as.i);
    case CFXI_TYPE_LAYOUT: return cfx_value_layout((cfx_layout)o->as.i);
    case CFXI_TYPE_MEMORY_FORMAT: return cfx_value_memory_format((cfx_memory_format)o->as.i);
    case CFXI_TYPE_TUPLE:
        return items_value(w, CFX_KIND_TUPLE, o->as.seq.items, o->as.seq.n, err);
    case CFXI_TYPE_LIST:
        return cfxi_world_refresh(o, err) == CFX_OK
                   ? items_value(w, CFX_KIND_LIST, o->as.seq.items, o->as.seq.n, err)
                   : cfx_value_invalid();
    case CFXI_TYPE_SLICE: return items_value(w, CFX_KIND_SLICE, o->as.seq.items, 3, err);
    case CFXI_TYPE_RANGE: return range_value(w, o, err);
    case CFXI_TYPE_DICT:
    case CFXI_TYPE_SET:
    case CFXI_TYPE_FROZENSET: return entries_value(w, o, err);
    case CFXI_TYPE_TENSOR: return node_value(read_tensor(w, o->as.tensor, err));
    case CFXI_TYPE_VALUE: return cfx_value_node(o->as.node);
    case CFXI_TYPE_ATTRIBUTE: return node_value(attribute_node(w, o, err));
    case CFXI_TYPE_CLASS:
    case CFXI_TYPE_BUILTIN: return name_value(w, o, err);
    default: return refuse(w, o, err);
    }
}

/* ---- calls as nodes ------------------------------------------------------------------------ */

static cfx_node *call_node(cfxi_world *w, cfx_opcode op, const char *target,
                           const cfx_call_args *a, cfx_error *err)
{
    cfx_value values[CFXI_MOST_ARGS];
    cfx_kwarg named[CFXI_MOST_ARGS];
    const size_t plain = a->n - a->n_named;
    cfx_node *n = NULL;
    size_t made = 0;
    if (a->n > CFXI_MOST_ARGS) {
        cfx_error_set(err, CFX_E_LIMIT, "calls with more than %d arguments are "
                      "not supported", CFXI_MOST_ARGS);
        return NULL;
    }
    for (; made < a->n; made++) {
        values[made] = cfxi_world_to_value(w, a->args[made], err);
        if (values[made].kind == CFX_KIND_INVALID)
            break;
        if (made >= plain)
            named[made - plain] = (cfx_kwarg){a->names[made - plain], values[made]};
    }
    if (made == a->n)
        n = cfx_graph_call(w->graph, op, target, values, plain, named, a->n_named, err);
    for (size_t i = 0; !n && i < made; i++)
        cfx_value_discard(w->graph, values[i]);
    return n;
}

cfx_object *cfxi_world_record(cfxi_world *w, cfx_opcode op, const char *target,
                              const cfx_call_args *a, cfx_error *err)
{
    cfx_node *n = call_node(w, op, target, a, err);
    return n && mark(w, n, err) == CFX_OK ? cfxi_world_value_object(w, n, err) : NULL;
}

/* Python's own functions make no tensors of numbers; torch's do. */
static bool is_pure_python(const char *target)
{
    return strncmp(target, "operator.", 9) == 0 || strncmp(target, "math.", 5) == 0 ||
           strncmp(target, "builtins.", 9) == 0;
}

cfx_object *cfxi_world_perform(cfxi_world *w, cfx_opcode op, const char *target,
                               const cfx_call_args *a, cfx_error *err)
{
    const bool makes = op == CFX_OP_CALL_FUNCTION && !is_pure_python(target);
    if (cfxi_world_any_value(a, false) ||
        (w->recording && (makes || cfxi_world_any_value(a, true))))
        return cfxi_world_record(w, op, target, a, err);
    return cfxi_world_compute(w, op, target, a, err);
}

cfx_object *cfxi_world_perform_on(cfxi_world *w, const char *target, cfx_object *a, cfx_object *b,
                                  cfx_error *err)
{
    cfx_object *args[] = {a, b};
    return cfxi_world_perform(w, CFX_OP_CALL_FUNCTION, target,
                              &(cfx_call_args){.args = args, .n = b ? 2 : 1}, err);
}
