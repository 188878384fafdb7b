/* nn.c - making modules of torch.nn: arguments are bound by the constructor's schema, converted to
 * what it says, and kept as attributes; the class's maker adds the rest. */
#include "nn_impl.h"

#include <cfx/layers.h>

#include <stdio.h>

void cfxi_nn_fail(const cfxi_making *k, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cfx_scope_fail_at(k->at, CFX_E_VALUE, "torch.nn.%s: %s", cfxi_ops_nn_name(k->nn), text);
}

/* ---- reading arguments --------------------------------------------------------------------- */

cfx_datum cfxi_nn_arg(const cfxi_making *k, const char *name)
{
    cfx_schema_param param;
    for (size_t i = 0; i < k->n && cfxi_ops_nn_param(k->nn, i, &param); i++)
        if (cfxi_ops_text_is_word(param.name, name))
            return k->args[i];
    return cfx_datum_invalid();
}

int64_t cfxi_nn_int(const cfxi_making *k, const char *name)
{
    const cfx_datum d = cfxi_nn_arg(k, name);
    return d.kind == CFX_DATUM_INT ? d.as.i : 0;
}

bool cfxi_nn_flag(const cfxi_making *k, const char *name)
{
    const cfx_datum d = cfxi_nn_arg(k, name);
    return d.kind == CFX_DATUM_BOOL && d.as.b;
}

double cfxi_nn_float(const cfxi_making *k, const char *name)
{
    const cfx_datum d = cfxi_nn_arg(k, name);
    return d.kind == CFX_DATUM_FLOAT ? d.as.f : 0;
}

const char *cfxi_nn_text(const cfxi_making *k, const char *name)
{
    const cfx_datum d = cfxi_nn_arg(k, name);
    return d.kind == CFX_DATUM_STR ? cfx_datum_text(d, NULL) : "";
}

bool cfxi_nn_is_none(const cfxi_making *k, const char *name)
{
    return cfxi_nn_arg(k, name).kind == CFX_DATUM_NONE;
}

size_t cfxi_nn_ints(const cfxi_making *k, const char *name, int64_t *out, size_t most)
{
    size_t n;
    const cfx_datum d = cfxi_nn_arg(k, name);
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (d.kind == CFX_DATUM_INT) {
        items = &d;
        n = 1;
    }
    n = n < most ? n : most;
    for (size_t i = 0; i < n; i++)
        out[i] = items[i].kind == CFX_DATUM_INT ? items[i].as.i : 0;
    return n;
}

/* ---- checking them ------------------------------------------------------------------------- */

void cfxi_nn_at_least(const cfxi_making *k, const char *name, int64_t least)
{
    size_t n;
    const cfx_datum d = cfxi_nn_arg(k, name);
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (d.kind == CFX_DATUM_INT) {
        items = &d;
        n = 1;
    }
    for (size_t i = 0; i < n && cfx_scope_ok(k->at.scope); i++)
        if (items[i].kind == CFX_DATUM_INT && items[i].as.i < least)
            cfxi_nn_fail(k, "%s must be at least %lld, not %lld", name, (long long)least,
                         (long long)items[i].as.i);
}

void cfxi_nn_one_of(const cfxi_making *k, const char *name, const char *const *words)
{
    const char *text = cfxi_nn_text(k, name);
    char list[120] = "";
    size_t used = 0;
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0)
            return;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s'", i == 0 ? "" : ", ",
                                 words[i]);
    }
    cfxi_nn_fail(k, "%s must be one of %s, not '%.40s'", name, list, text);
}

void cfxi_nn_probability(const cfxi_making *k, const char *name)
{
    const double p = cfxi_nn_float(k, name);
    if (!(p >= 0 && p <= 1))
        cfxi_nn_fail(k, "%s must be between 0 and 1, not %g", name, p);
}

/* ---- attributes and parts ------------------------------------------------------------------ */

static void put(cfxi_making *k, const char *name, cfxi_member_kind kind, cfx_module *child,
                cfx_datum d)
{
    cfx_error err = {0};
    if (cfx_scope_ok(k->at.scope) &&
        cfxi_capture_module_put(k->m, name, strlen(name), kind, child, d, &err) != CFX_OK)
        cfxi_capture_scope_take(k->at, &err);
}

void cfxi_nn_set(cfxi_making *k, const char *name, cfx_datum d)
{
    if (d.kind == CFX_DATUM_INVALID)
        cfx_scope_fail_at(k->at, CFX_E_NOMEM, "out of memory");
    put(k, name, CFXI_MEMBER_ATTRIBUTE, NULL, d);
    cfx_datum_release(d);
}

void cfxi_nn_set_text(cfxi_making *k, const char *name, const char *text)
{
    if (cfx_scope_ok(k->at.scope))
        cfxi_nn_set(k, name, cfx_datum_from_text(CFX_DATUM_STR, text, strlen(text),
                                                 k->at.scope->allocator, NULL));
}

cfx_datum cfxi_nn_tuple(const cfxi_making *k, const int64_t *items, size_t n)
{
    cfx_datum data[2 * CFX_MAX_DIMS];
    n = n < 2 * CFX_MAX_DIMS ? n : 2 * CFX_MAX_DIMS;
    for (size_t i = 0; i < n; i++)
        data[i] = cfx_datum_int(items[i]);
    return cfx_datum_seq(CFX_DATUM_TUPLE, data, n, k->at.scope->allocator, NULL);
}

cfx_module *cfxi_nn_part(cfxi_making *k, const char *name, cfx_nn nn, const cfx_var *args, size_t n)
{
    cfx_module *part = cfx_nn_make_at(k->at, nn, args, n);
    if (part)
        put(k, name, CFXI_MEMBER_CHILD, part, cfx_datum_invalid());
    return part;
}

cfx_module *cfxi_nn_new(cfx_at at, cfx_nn nn)
{
    cfx_error err = {0};
    cfx_module *m = cfxi_capture_module_make(at.scope->allocator, &err);
    if (m)
        m->nn = nn;
    else
        cfxi_capture_scope_take(at, &err);
    return m;
}

/* ---- converting arguments ------------------------------------------------------------------ */

/* What a parameter takes, in words. */
static const char *type_in_words(const cfxi_signature_param *p)
{
    static const char *const one[] = {"a tensor", "an int", "a float", "a bool", "a number",
                                      "a str", "a dtype", "a value"};
    static const char *const several[] = {"tensors", "an int or ints", "a float or floats",
                                          "bools", "numbers", "strs", "dtypes", "a list"};
    return (p->list ? several : one)[p->type];
}

static void misfit(const cfxi_making *k, const cfx_schema_param *param,
                   const cfxi_signature_param *p, cfx_datum d)
{
    cfxi_nn_fail(k, "%.*s must be %s%s, not %s", (int)param->name.size, param->name.text,
                 type_in_words(p), p->optional ? " or None" : "",
                 cfx_datum_kind_name((cfx_datum_kind)d.kind));
}

/* One number or text as the type wants it, a new reference; INVALID if it is none. */
static cfx_datum convert_one(cfxi_param_type type, cfx_datum d)
{
    switch (type) {
    case CFXI_PARAM_TENSOR:
        return d.kind == CFX_DATUM_TENSOR ? cfx_datum_retain(d) : cfx_datum_invalid();
    case CFXI_PARAM_INT: return d.kind == CFX_DATUM_INT ? d : cfx_datum_invalid();
    case CFXI_PARAM_FLOAT:
        if (d.kind == CFX_DATUM_INT)
            return cfx_datum_float((double)d.as.i);
        return d.kind == CFX_DATUM_FLOAT ? d : cfx_datum_invalid();
    case CFXI_PARAM_BOOL:
        if (d.kind == CFX_DATUM_INT && (d.as.i == 0 || d.as.i == 1))
            return cfx_datum_bool(d.as.i != 0);  /* C's true */
        return d.kind == CFX_DATUM_BOOL ? d : cfx_datum_invalid();
    case CFXI_PARAM_SCALAR:
    case CFXI_PARAM_OTHER: return cfx_datum_retain(d);
    case CFXI_PARAM_STR: return d.kind == CFX_DATUM_STR ? cfx_datum_retain(d) : cfx_datum_invalid();
    case CFXI_PARAM_DTYPE: return d.kind == CFX_DATUM_DTYPE ? d : cfx_datum_invalid();
    }
    return cfx_datum_invalid();
}

enum { MOST_ITEMS = 64 };

/* A tuple; a number stands for as many of it as the type says. Nothing if it does not fit. */
static cfx_datum convert_list(cfxi_making *k, const cfxi_signature_param *p, cfx_datum d)
{
    cfx_datum items[MOST_ITEMS];
    size_t n;
    const cfx_datum *from = cfx_datum_items(d, &n);
    const bool one = d.kind != CFX_DATUM_LIST && d.kind != CFX_DATUM_TUPLE;
    if (one && !p->length)
        return convert_one((cfxi_param_type)p->type, d);
    n = one ? p->length : n;
    if (n > MOST_ITEMS || (p->length && n != p->length))
        return cfx_datum_invalid();
    for (size_t i = 0; i < n; i++) {
        const cfx_datum item = one ? d : from[i];
        items[i] = item.kind == CFX_DATUM_NONE && p->items_optional
                       ? item : convert_one((cfxi_param_type)p->type, item);
        if (items[i].kind == CFX_DATUM_INVALID)
            return cfx_datum_invalid();  /* of numbers, which hold no reference */
    }
    cfx_error err = {0};
    cfx_datum made = cfx_datum_seq(CFX_DATUM_TUPLE, items, n, k->at.scope->allocator, &err);
    if (made.kind == CFX_DATUM_INVALID)
        cfxi_capture_scope_take(k->at, &err);
    return made;
}

/* A variable as what the parameter says, the caller's to release; INVALID, and the scope fails. */
static cfx_datum convert(cfxi_making *k, const cfx_schema_param *param,
                         const cfxi_signature_param *p, cfx_datum given)
{
    if (given.kind == CFX_DATUM_NONE && p->optional)
        return given;
    cfx_datum made = p->list ? convert_list(k, p, given)
                             : convert_one((cfxi_param_type)p->type, given);
    if (made.kind != CFX_DATUM_INVALID)
        return made;
    const char *fixed = p->list && p->length ? strchr(param->type, '[') : NULL;
    size_t n;
    if (fixed && cfx_datum_items(given, &n) && n != p->length)
        cfxi_nn_fail(k, "%.*s needs %u items, not %zu", (int)param->name.size, param->name.text,
                     p->length, n);
    else
        misfit(k, param, p, given);
    return made;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfxi_maker *const makers[CFX_NN_COUNT] = {
#define CFX_NN(name, function, schema, make) [CFX_NN_##name] = cfxi_nn_make_##make,
#include <cfx/nn.def>
#undef CFX_NN
};

/* Binds one parameter: false if the scope has failed. */
static bool bind(cfxi_making *k, const cfx_schema_param *param, cfx_var v)
{
    cfx_error err = {0};
    cfxi_signature_param p;
    cfxi_rt_signature_read(param, &p, k->at.scope->allocator, &err);
    if (err.status != CFX_OK) {
        cfxi_capture_scope_take(k->at, &err);
        return false;
    }
    cfx_datum given = v.kind == CFX_VAR_EMPTY ? cfx_datum_retain(p.value)
                                              : cfx_var_datum_at(k->at, v);
    if (given.kind == CFX_DATUM_INVALID && cfx_scope_ok(k->at.scope))
        cfxi_nn_fail(k, "argument '%.*s' is required", (int)param->name.size, param->name.text);
    if (cfx_scope_ok(k->at.scope)) {
        k->args[k->n] = convert(k, param, &p, given);
        k->n += cfx_scope_ok(k->at.scope);
    }
    cfx_datum_release(given);
    cfx_datum_release(p.value);
    return cfx_scope_ok(k->at.scope);
}

/* Tensors are buffers; of the other arguments those that the class keeps are attributes. */
static void keep(cfxi_making *k)
{
    cfx_schema_param param;
    char name[CFX_SPELLING_SIZE];
    for (size_t i = 0; i < k->n && cfxi_ops_nn_param(k->nn, i, &param); i++)
        if (cfxi_ops_nn_attribute(k->nn, &param, name))
            put(k, name, strncmp(param.type, "Tensor", 6) == 0 ? CFXI_MEMBER_BUFFER
                                                              : CFXI_MEMBER_ATTRIBUTE,
                NULL, k->args[i]);
}

static bool bind_all(cfxi_making *k, const cfx_var *args, size_t n)
{
    cfx_schema_param param;
    size_t i = 0;
    for (; i < CFXI_MOST_NN_PARAMS && cfxi_ops_nn_param(k->nn, i, &param); i++) {
        if (strcmp(param.type, "Module") == 0)
            cfxi_nn_fail(k, "this class takes modules; create it as part of torch.nn.Transformer");
        if (!cfx_scope_ok(k->at.scope) || !bind(k, &param, i < n ? args[i] : cfx_var_empty()))
            return false;
    }
    if (n > i)
        cfxi_nn_fail(k, "too many arguments: expected at most %zu, got %zu", i, n);
    return cfx_scope_ok(k->at.scope);
}

cfx_module *cfx_nn_make_at(cfx_at at, cfx_nn nn, const cfx_var *args, size_t n)
{
    cfxi_making k = {.at = at, .nn = nn, .dtype = CFX_DTYPE_FLOAT32};
    if (!cfx_scope_ok(at.scope))
        return NULL;
    if (!cfxi_ops_nn_name(nn)) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "there is no such class in torch.nn");
        return NULL;
    }
    k.m = cfxi_nn_new(at, nn);
    if (k.m && bind_all(&k, args, n)) {
        const cfx_datum dtype = cfxi_nn_arg(&k, "dtype");
        if (dtype.kind == CFX_DATUM_DTYPE)
            k.dtype = (cfx_dtype)dtype.as.i;
        keep(&k);
        if (cfx_scope_ok(at.scope))
            makers[nn](&k);
    }
    for (size_t i = 0; i < k.n; i++)
        cfx_datum_release(k.args[i]);
    if (cfx_scope_ok(at.scope))
        return cfxi_capture_scope_own(at, k.m);
    cfx_module_release(k.m);
    return NULL;
}
