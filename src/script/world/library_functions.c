/* library_functions.c - functions of torch and of Python's library that are no operators: what
 * models use of math, typing, dataclasses, collections, functools and copy. */
#include "world_impl.h"

#include <stdio.h>

/* ---- what does nothing here ---------------------------------------------------------------- */

/* A decorator or function that hands on what it is given: torch.jit.ignore, typing.cast. */
CFXI_BUILTIN(last_of)
{
    const size_t plain = a->n - a->n_named;
    return cfxi_world_ref(plain ? a->args[plain - 1] : w->none);
}

CFXI_BUILTIN(nothing) { return cfxi_world_none(w); }
CFXI_BUILTIN(no) { return cfxi_world_truth_object(w, false); }

/* A decorator that may be called first: lru_cache(maxsize=3). */
CFXI_BUILTIN(decorator)
{
    if (a->n == 1 && a->n_named == 0 && a->args[0]->type == CFXI_TYPE_FUNCTION)
        return cfxi_world_ref(a->args[0]);
    return cfxi_world_builtin_object(w, "decorator", last_of, CFX_OPID_NONE, err);
}

/* ---- torch --------------------------------------------------------------------------------- */

CFXI_BUILTIN(torch_device)
{
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "device", NULL, 1, 2, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type == CFXI_TYPE_DEVICE)
        return cfxi_world_ref(in[0]);
    if (in[0]->type != CFXI_TYPE_STR)
        return cfxi_world_raise(w, err, CFXI_TypeError, "torch.device takes a str, not '%s'",
                                cfxi_world_type_name(in[0]));
    return cfxi_world_text_object(w, CFXI_TYPE_DEVICE, in[0]->as.text.data, in[0]->as.text.size,
                                  err);
}

CFXI_BUILTIN(torch_seed)
{
    cfx_object *in[1];
    int64_t seed;
    if (cfxi_world_args(w, a, "manual_seed", NULL, 1, 1, in, err) != CFX_OK ||
        cfxi_world_index_of(w, in[0], "the seed", &seed, err) != CFX_OK)
        return NULL;
    if (w->recording) {
        cfx_error_set(err, CFX_E_UNSUPPORTED, "torch.manual_seed cannot be captured: the graph has "
                      "no call that seeds; seed before the model runs (cfx run --seed)");
        return NULL;
    }
    cfx_runtime_seed(cfx_scope_runtime(w->scope), (uint64_t)seed);
    return cfxi_world_none(w);
}

CFXI_BUILTIN(torch_size)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "Size", NULL, 0, 1, in, err) != CFX_OK)
        return NULL;
    return in[0] ? cfxi_world_collect(w, CFXI_TYPE_TUPLE, in[0], err) : cfxi_world_ref(w->empty);
}

CFXI_BUILTIN(torch_default_dtype)
{
    return cfxi_world_numbered(w, CFXI_TYPE_DTYPE, CFX_DTYPE_FLOAT32, err);
}

/* Factories and divisions of cfx's runtime give float32: only that can be the default. */
CFXI_BUILTIN(set_default_dtype)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "set_default_dtype", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type == CFXI_TYPE_DTYPE && in[0]->as.i == CFX_DTYPE_FLOAT32)
        return cfxi_world_none(w);
    cfx_error_set(err, CFX_E_UNSUPPORTED, "torch.set_default_dtype is not supported: without "
                  "PyTorch the default dtype is float32; pass dtype= where tensors and layers are "
                  "made");
    return NULL;
}

/* torch.finfo and torch.iinfo: what a type can hold. Of a type that the graph knows it is asked
 * there. */
static cfx_object *type_info(cfxi_world *w, const char *name, const cfx_call_args *a,
                             cfx_error *err)
{
    if (cfxi_world_any_value(a, false))
        return cfxi_world_record(w, CFX_OP_CALL_FUNCTION, name, a, err);
    cfx_object *facts = cfxi_world_compute(w, CFX_OP_CALL_FUNCTION, name, a, err);
    cfx_object *o = facts ? cfxi_world_object_new(w, CFXI_TYPE_INSTANCE, err) : NULL;
    if (o)
        o->attrs = cfxi_world_ref(facts);
    cfxi_world_unref(facts);
    return o;
}

CFXI_BUILTIN(torch_finfo) { return type_info(w, "torch.finfo", a, err); }
CFXI_BUILTIN(torch_iinfo) { return type_info(w, "torch.iinfo", a, err); }

/* ---- collections and functools ------------------------------------------------------------- */

/* The names of the fields of a named tuple, borrowed: Point._asdict(3) has none. */
static const cfx_object *need_named(cfxi_world *w, const cfx_object *self, cfx_error *err)
{
    const bool tuple = self->type == CFXI_TYPE_TUPLE;
    const cfx_object *fields = tuple ? cfxi_world_named_fields(self->cls) : NULL;
    if (!fields)
        cfxi_world_raise(w, err, CFXI_TypeError, "this method is for named tuples, not for '%s'",
                         cfxi_world_type_name(self));
    return fields;
}

/* A new named tuple with other values in the named fields. */
CFXI_BUILTIN(named_replace)
{
    const cfx_object *fields = need_named(w, self, err);
    if (!fields)
        return NULL;
    cfx_object *made = cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, self->as.seq.items, self->as.seq.n,
                                             err);
    size_t found = a->n - a->n_named;
    if (made)
        made->cls = cfxi_world_ref(self->cls);
    for (size_t k = 0; made && found == k && k < a->n_named; k++)
        for (size_t i = 0; i < fields->as.seq.n && i < made->as.seq.n; i++)
            if (strcmp(fields->as.seq.items[i]->as.text.data, a->names[k]) == 0) {
                cfxi_world_unref(made->as.seq.items[i]);
                made->as.seq.items[i] = cfxi_world_ref(a->args[k]);
                found = k + 1;
            }
    if (made && found != a->n) {
        cfxi_world_raise(w, err, CFXI_ValueError, "_replace() got unexpected field names");
        cfxi_world_clear(&made);
    }
    return made;
}

CFXI_BUILTIN(named_dict)
{
    const cfx_object *fields = need_named(w, self, err);
    cfx_object *made = fields ? cfxi_world_dict_object(w, CFXI_TYPE_DICT, err) : NULL;
    for (size_t i = 0; made && i < fields->as.seq.n && i < self->as.seq.n; i++)
        if (cfxi_world_dict_set(made, fields->as.seq.items[i], self->as.seq.items[i], err) !=
            CFX_OK)
            cfxi_world_clear(&made);
    return made;
}

const cfxi_builtin cfxi_world_named_methods[] = {
    {"_replace", named_replace}, {"_asdict", named_dict}, {NULL, NULL}};

static cfx_object *make_named_tuple(cfxi_world *w, const char *name, cfx_object *fields,
                                    cfx_object *defaults, cfx_error *err)
{
    const char *names[] = {"_fields", "_field_defaults"};
    cfx_object *values[] = {fields, defaults};
    cfx_object *base = cfxi_world_type_class(w, CFXI_TYPE_TUPLE, err);
    cfx_object *cls = base ? cfxi_world_make_class(w, name, &base, 1, names, values, 2, err) : NULL;
    if (cls && cfxi_world_add_methods(w, cls, cfxi_world_named_methods, err) != CFX_OK)
        cfxi_world_clear(&cls);
    cfxi_world_unref(base);
    return cls;
}

/* The names in "x y", "x, y", or a list of texts. */
static cfx_object *field_names(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    if (o->type != CFXI_TYPE_STR)
        return cfxi_world_collect(w, CFXI_TYPE_TUPLE, o, err);
    cfx_object *args[2] = {cfxi_world_str(w, ",", err), cfxi_world_str(w, " ", err)};
    cfx_object *spaced = args[0] && args[1]
        ? cfxi_world_text_method(CFXI_TYPE_STR, "replace")->fn(w, o, &(cfx_call_args){.args = args,
                                                           .n = 2}, err) : NULL;
    cfx_object *list = spaced ? cfxi_world_text_method(CFXI_TYPE_STR, "split")->fn(
        w, spaced, &(cfx_call_args){.n = 0}, err) : NULL;
    cfx_object *names = list ? cfxi_world_collect(w, CFXI_TYPE_TUPLE, list, err) : NULL;
    cfxi_world_unref(list);
    cfxi_world_unref(spaced);
    cfxi_world_unref(args[0]);
    cfxi_world_unref(args[1]);
    return names;
}

/* Defaults are those of the last fields. */
static cfx_object *field_defaults(cfxi_world *w, const cfx_object *fields, cfx_object *given,
                                  cfx_error *err)
{
    cfx_object *d = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    cfx_object *values = d && given && given->type != CFXI_TYPE_NONE
                             ? cfxi_world_collect(w, CFXI_TYPE_TUPLE, given, err) : NULL;
    const size_t n = values ? values->as.seq.n : 0;
    for (size_t i = 0; d && i < n && n <= fields->as.seq.n; i++)
        if (cfxi_world_dict_set(d, fields->as.seq.items[fields->as.seq.n - n + i],
                                values->as.seq.items[i], err) != CFX_OK)
            cfxi_world_clear(&d);
    cfxi_world_unref(values);
    return d;
}

CFXI_BUILTIN(named_tuple)
{
    static const char *const names[] = {"typename", "field_names", "*defaults", "*rename"};
    cfx_object *in[4];
    if (cfxi_world_args(w, a, "namedtuple", names, 2, 4, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_STR)
        return cfxi_world_raise(w, err, CFXI_TypeError, "the name of a named tuple must be a str");
    cfx_object *fields = field_names(w, in[1], err);
    bool good = fields != NULL;
    for (size_t i = 0; good && i < fields->as.seq.n; i++)
        good = fields->as.seq.items[i]->type == CFXI_TYPE_STR;
    if (fields && !good)
        cfxi_world_raise(w, err, CFXI_TypeError, "field names must be str");
    cfx_object *defaults = good ? field_defaults(w, fields, in[2], err) : NULL;
    cfx_object *cls = defaults ? make_named_tuple(w, in[0]->as.text.data, fields, defaults, err)
                               : NULL;
    cfxi_world_unref(defaults);
    cfxi_world_unref(fields);
    return cls;
}

CFXI_BUILTIN(partial)
{
    const size_t plain = a->n - a->n_named;
    if (plain == 0)
        return cfxi_world_raise(w, err, CFXI_TypeError, "partial() needs a function");
    cfx_object *args = cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, a->args + 1, plain - 1, err);
    cfx_object *named = args ? cfxi_world_dict_object(w, CFXI_TYPE_DICT, err) : NULL;
    cfx_status status = named ? CFX_OK : err->status;
    for (size_t i = 0; status == CFX_OK && i < a->n_named; i++)
        status = cfxi_world_dict_put(named, a->names[i], a->args[plain + i], err);
    cfx_object *made = status == CFX_OK ? cfxi_world_parts_object(w, CFXI_TYPE_PARTIAL, a->args[0],
                                                                  args, named, err) : NULL;
    cfxi_world_unref(named);
    cfxi_world_unref(args);
    return made;
}

CFXI_BUILTIN(reduce)
{
    cfx_object *in[3];
    if (cfxi_world_args(w, a, "reduce", NULL, 2, 3, in, err) != CFX_OK)
        return NULL;
    cfx_object *items = cfxi_world_collect(w, CFXI_TYPE_LIST, in[1], err);
    if (!items)
        return NULL;
    size_t i = in[2] ? 0 : 1;
    cfx_object *sum = NULL;
    if (in[2] || items->as.seq.n > 0)
        sum = cfxi_world_ref(in[2] ? in[2] : items->as.seq.items[0]);
    else
        cfxi_world_raise(w, err, CFXI_TypeError,
                         "reduce() of empty iterable with no initial value");
    for (; sum && i < items->as.seq.n; i++) {
        cfx_object *both[] = {sum, items->as.seq.items[i]};
        cfx_object *next = cfxi_world_call_with(w, in[0], both, 2, err);
        cfxi_world_unref(sum);
        sum = next;
    }
    cfxi_world_unref(items);
    return sum;
}

/* copy.copy of containers; whatever cannot be changed is its own copy. */
CFXI_BUILTIN(shallow_copy)
{
    cfx_object *in[1];
    if (cfxi_world_args(w, a, "copy", NULL, 1, 1, in, err) != CFX_OK)
        return NULL;
    bool found = false;
    cfx_object *own = cfxi_world_special(w, in[0], "__copy__", NULL, 0, &found, err);
    if (found)
        return own;
    if (in[0]->type == CFXI_TYPE_INSTANCE)
        return cfxi_world_copy_instance(w, in[0], false, err);
    const cfxi_builtin *row = cfxi_world_sequence_method((cfxi_type)in[0]->type, "copy");
    return row ? row->fn(w, in[0], &(cfx_call_args){.n = 0}, err) : cfxi_world_ref(in[0]);
}

CFXI_BUILTIN(deep_copy)
{
    cfx_object *in[1];
    return cfxi_world_args(w, a, "deepcopy", NULL, 1, 1, in, err) == CFX_OK
               ? cfxi_world_deep_copy(w, in[0], err) : NULL;
}

/* ---- the table ----------------------------------------------------------------------------- */

/* Qualified names; a space before a name stands for a class of its own. */
static const cfxi_builtin functions[] = {
    {"torch.device", torch_device},
    {"torch.Size", torch_size},
    {"torch.get_default_dtype", torch_default_dtype},
    {"torch.finfo", torch_finfo},
    {"torch.iinfo", torch_iinfo},
    {"torch.manual_seed", torch_seed},
    {"torch.set_default_dtype", set_default_dtype},
    {"torch.cuda.is_available", no},
    {"torch.jit.is_scripting", no},
    {"torch.jit.is_tracing", no},
    {"torch.jit.ignore", decorator},
    {"torch.jit.unused", decorator},
    {"torch.jit.export", decorator},
    {"torch.jit.script", last_of},
    {"torch.jit.script_if_tracing", last_of},
    {"torch.jit.interface", last_of},
    {"torch.jit.script_method", last_of},
    {"torch.fx.wrap", last_of},
    {"torch.compile", decorator},
    {"torch.cond", NULL},
    {"torch.while_loop", NULL},
    {"torch.nn.Parameter", cfxi_world_parameter},
    {"torch.nn.parameter.Parameter", cfxi_world_parameter},
    {"typing.cast", last_of},
    {"typing.overload", last_of},
    {"typing.final", last_of},
    {"collections.namedtuple", named_tuple},
    {"functools.partial", partial},
    {"functools.reduce", reduce},
    {"enum.unique", last_of},
    {"copy.copy", shallow_copy},
    {"copy.deepcopy", deep_copy},
    {"abc.abstractmethod", last_of},
    {"warnings.warn", nothing},
    {NULL, NULL},
};

/* Names of typing: a type that no object has, and that every class may derive from. */
static cfx_object *typing_name(cfxi_world *w, const char *name, const char *full, cfx_error *err)
{
    if (strcmp(name, "TYPE_CHECKING") == 0)
        return cfxi_world_truth_object(w, false);
    if (strcmp(name, "NamedTuple") == 0) {
        cfx_object *base = cfxi_world_type_class(w, CFXI_TYPE_TUPLE, err);
        cfx_object *cls = base ? cfxi_world_builtin_class(w, name, base, CFXI_TYPE_TUPLE, NULL, err)
                               : NULL;
        cfxi_world_unref(base);
        return cls;
    }
    return cfxi_world_text_object(w, CFXI_TYPE_NAMESPACE, full, strlen(full), err);
}

cfx_object *cfxi_world_library_get(cfxi_world *w, const char *space, const char *name,
                                   const char *full, cfx_error *err)
{
    const cfxi_builtin *row = cfxi_world_row_find(functions, full);
    if (row)
        return cfxi_world_builtin_object(w, full, row->fn, CFX_OPID_NONE, err);
    if (strcmp(space, "torch.nn.init") == 0)
        row = cfxi_world_init_function(name);
    else if (strcmp(space, "dataclasses") == 0)
        row = cfxi_world_dataclass_function(name);
    if (row)
        return cfxi_world_builtin_object(w, full, row->fn, CFX_OPID_NONE, err);
    if (strncmp(space, "typing", 6) == 0 || strcmp(space, "collections.abc") == 0 ||
        strcmp(space, "numbers") == 0 || strcmp(space, "torch.types") == 0 ||
        strcmp(space, "__future__") == 0)
        return typing_name(w, name, full, err);
    if (strcmp(space, "itertools") == 0)
        return cfxi_world_itertools(w, name, full, err);
    if (strcmp(space, "enum") == 0)
        return cfxi_world_enum_get(w, name, err);
    if (strcmp(full, "abc.ABC") == 0)
        return cfxi_world_type_class(w, CFXI_TYPE_INSTANCE, err);
    if (strcmp(space, "torch.nn") == 0 && (strcmp(name, "ParameterList") == 0 ||
                                           strcmp(name, "ParameterDict") == 0))
        return cfxi_world_parameter_class(w, name, err);
    return NULL;
}
