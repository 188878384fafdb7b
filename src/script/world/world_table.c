/* world_table.c - the table through which the evaluator sees the objects. */
#include "world_impl.h"

#include <stdio.h>

/* ---- counting ------------------------------------------------------------------------------ */

static void retain(void *ctx, cfx_object *o)
{
    (void)ctx;
    cfxi_world_ref(o);
}

static void release(void *ctx, cfx_object *o)
{
    (void)ctx;
    cfxi_world_unref(o);
}

/* ---- what objects are ---------------------------------------------------------------------- */

static cfx_object_kind kind(void *ctx, cfx_object *o)
{
    static const uint8_t kinds[CFXI_TYPES] = {
        [CFXI_TYPE_NONE] = CFX_OBJECT_NONE, [CFXI_TYPE_BOOL] = CFX_OBJECT_BOOL,
        [CFXI_TYPE_INT] = CFX_OBJECT_INT, [CFXI_TYPE_FLOAT] = CFX_OBJECT_FLOAT,
        [CFXI_TYPE_COMPLEX] = CFX_OBJECT_COMPLEX, [CFXI_TYPE_STR] = CFX_OBJECT_STR,
        [CFXI_TYPE_TUPLE] = CFX_OBJECT_TUPLE, [CFXI_TYPE_LIST] = CFX_OBJECT_LIST,
        [CFXI_TYPE_DICT] = CFX_OBJECT_DICT, [CFXI_TYPE_SET] = CFX_OBJECT_SET,
        [CFXI_TYPE_TENSOR] = CFX_OBJECT_TENSOR, [CFXI_TYPE_CLASS] = CFX_OBJECT_CLASS,
        [CFXI_TYPE_MODULE] = CFX_OBJECT_MODULE,
    };
    (void)ctx;
    if (o->type == CFXI_TYPE_INSTANCE && o->cls && o->cls->as.cls.own)
        return CFX_OBJECT_INSTANCE;
    if (o->type == CFXI_TYPE_TUPLE && cfxi_world_named_fields(o->cls))
        return CFX_OBJECT_NAMED_TUPLE;
    return (cfx_object_kind)kinds[o->type];
}

static cfx_object *literal(void *ctx, const cfx_script_literal *l, cfx_error *err)
{
    cfxi_world *w = ctx;
    switch (l->kind) {
    case CFX_OBJECT_NONE: return cfxi_world_none(w);
    case CFX_OBJECT_BOOL: return cfxi_world_truth_object(w, l->i != 0);
    case CFX_OBJECT_INT:
        if (l->text)
            return cfxi_world_raise(w, err, CFXI_OverflowError,
                                    "%.40s does not fit in 64 bits; scripts support only 64-bit "
                                    "integers", l->text);
        return cfxi_world_int_object(w, l->i, err);
    case CFX_OBJECT_FLOAT: return cfxi_world_float_object(w, l->f, err);
    case CFX_OBJECT_COMPLEX: return cfxi_world_complex_object(w, 0, l->f, err);
    case CFX_OBJECT_STR: return cfxi_world_text_object(w, CFXI_TYPE_STR, l->text, l->size, err);
    default:
        return l->other == CFX_LITERAL_ELLIPSIS
                   ? cfxi_world_ref(w->ellipsis)
                   : cfxi_world_text_object(w, CFXI_TYPE_BYTES, l->text, l->size, err);
    }
}

static cfx_object *build_dict(cfxi_world *w, cfx_object *const *items, size_t n, cfx_error *err)
{
    cfx_object *d = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    for (size_t i = 0; d && i + 1 < n; i += 2)
        if (cfxi_world_dict_set(d, items[i], items[i + 1], err) != CFX_OK)
            cfxi_world_clear(&d);
    return d;
}

static cfx_object *build_set(cfxi_world *w, cfx_object *const *items, size_t n, cfx_error *err)
{
    cfx_object *d = cfxi_world_dict_object(w, CFXI_TYPE_SET, err);
    for (size_t i = 0; d && i < n; i++)
        if (cfxi_world_dict_set(d, items[i], NULL, err) != CFX_OK)
            cfxi_world_clear(&d);
    return d;
}

/* A graph value among the texts: "{}{}".format(...) in the graph. */
static cfx_object *recorded_text(cfxi_world *w, cfx_object *const *items, size_t n, cfx_error *err)
{
    cfx_buffer text;
    cfx_object *args[CFXI_MOST_ARGS];
    size_t k = 1;
    cfx_status status = CFX_OK;
    cfx_buffer_init(&text, w->allocator);
    for (size_t i = 0; status == CFX_OK && i < n; i++) {
        if (cfxi_world_has_value(items[i], false)) {
            status = k < CFXI_MOST_ARGS ? cfxi_world_put(&text, "{}", err)
                                        : cfx_error_set(err, CFX_E_LIMIT, "an f-string has too "
                                                        "many graph values");
            if (status == CFX_OK)
                args[k++] = items[i];
            continue;
        }
        const char *data = items[i]->type == CFXI_TYPE_STR ? items[i]->as.text.data : "";
        for (size_t c = 0; status == CFX_OK && data[c]; c++) {  /* braces stand for themselves */
            const bool brace = data[c] == '{' || data[c] == '}';
            if (cfx_buffer_append(&text, data + c, 1) != CFX_OK ||
                (brace && cfx_buffer_append(&text, data + c, 1) != CFX_OK))
                status = cfxi_base_nomem(err);
        }
    }
    args[0] = status == CFX_OK ? cfxi_world_text_object(w, CFXI_TYPE_STR, text.data, text.size, err)
                               : NULL;
    cfx_object *made = args[0] ? cfxi_world_record(w, CFX_OP_CALL_METHOD, "format",
                                                   &(cfx_call_args){.args = args, .n = k}, err)
                               : NULL;
    cfxi_world_unref(args[0]);
    cfx_buffer_free(&text);
    return made;
}

static cfx_object *build_text(cfxi_world *w, cfx_object *const *items, size_t n, cfx_error *err)
{
    cfx_buffer text;
    if (cfxi_world_any_value(&(cfx_call_args){.args = items, .n = n}, false))
        return recorded_text(w, items, n, err);
    cfx_buffer_init(&text, w->allocator);
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < n; i++)
        status = cfxi_world_show(w, items[i], &text, err);
    return cfxi_world_text_made(w, status, &text, err);
}

static cfx_status refill(void *ctx, cfx_object *o, cfx_object *const *items, size_t n,
                         cfx_error *err);

static cfx_object *build_like(cfxi_world *w, cfx_object *like, cfx_object *const *items, size_t n,
                              cfx_error *err)
{
    cfx_object *o = cfxi_world_object_new(w, (cfxi_type)like->type, err);
    if (!o)
        return NULL;
    o->cls = cfxi_world_ref(like->cls);
    if (refill(w, o, items, n, err) != CFX_OK)
        cfxi_world_clear(&o);
    return o;
}

static cfx_object *build(void *ctx, cfx_script_build what, cfx_object *const *items, size_t n,
                         cfx_error *err)
{
    cfxi_world *w = ctx;
    switch (what) {
    case CFX_BUILD_TUPLE: return cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, items, n, err);
    case CFX_BUILD_LIST: return cfxi_world_seq_object(w, CFXI_TYPE_LIST, items, n, err);
    case CFX_BUILD_SET: return build_set(w, items, n, err);
    case CFX_BUILD_DICT: return build_dict(w, items, n, err);
    case CFX_BUILD_SLICE: return cfxi_world_seq_object(w, CFXI_TYPE_SLICE, items, 3, err);
    case CFX_BUILD_TEXT: return build_text(w, items, n, err);
    case CFX_BUILD_LIKE: return build_like(w, items[0], items + 1, n - 1, err);
    }
    return NULL;
}

/* ---- contents ------------------------------------------------------------------------------ */

static bool is_seq(const cfx_object *o)
{
    return o->type == CFXI_TYPE_TUPLE || o->type == CFXI_TYPE_LIST;
}

static cfx_status contents(void *ctx, cfx_object *o, cfx_object ***items, size_t *n, cfx_error *err)
{
    cfxi_world *w = ctx;
    const cfx_object *d = o->type == CFXI_TYPE_INSTANCE ? o->attrs : is_seq(o) ? NULL : o;
    const bool pairs = o->type == CFXI_TYPE_DICT || o->type == CFXI_TYPE_INSTANCE;
    cfx_object *key;
    cfx_object *value;
    size_t size;
    size_t k = 0;
    CFX_TRY(cfxi_world_refresh(o, err));
    *n = is_seq(o) ? o->as.seq.n : d ? d->as.dict.n * (pairs ? 2 : 1) : 0;
    cfx_object **out = cfxi_base_mul_size(*n + 1, sizeof *out, 0, &size)
                           ? cfxi_world_alloc(w, size, err) : NULL;
    if (!out)
        return cfxi_base_nomem(err);
    for (size_t i = 0; is_seq(o) && i < *n; i++)
        out[k++] = cfxi_world_ref(o->as.seq.items[i]);
    for (size_t at = 0; d && cfxi_world_dict_next(d, &at, &key, &value);) {
        out[k++] = cfxi_world_ref(key);
        if (pairs)
            out[k++] = cfxi_world_ref(value);
    }
    *items = out;
    return CFX_OK;
}

static void drop(void *ctx, cfx_object **items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cfxi_world_unref(items[i]);
    cfxi_world_free(ctx, items, (n + 1) * sizeof *items);
}

/* What a container is to hold, of its own kind. */
static cfx_object *filled(cfxi_world *w, const cfx_object *o, cfx_object *const *items, size_t n,
                          cfx_error *err)
{
    if (is_seq(o))
        return cfxi_world_seq_object(w, CFXI_TYPE_LIST, items, n, err);
    return o->type == CFXI_TYPE_SET ? build_set(w, items, n, err) : build_dict(w, items, n, err);
}

static cfx_status refill(void *ctx, cfx_object *o, cfx_object *const *items, size_t n,
                         cfx_error *err)
{
    cfx_object *with = filled(ctx, o, items, n, err);
    if (!with)
        return err->status;
    if (o->type == CFXI_TYPE_INSTANCE) {
        cfxi_world_unref(o->attrs);
        o->attrs = with;
        return CFX_OK;
    }
    return cfxi_world_become(o, with, err);
}

static bool integer(void *ctx, cfx_object *o, int64_t *i)
{
    (void)ctx;
    if (!cfxi_world_is_whole(o))
        return false;
    *i = cfxi_world_whole(o);
    return true;
}

static const char *text(void *ctx, cfx_object *o, size_t *size)
{
    (void)ctx;
    if (o->type != CFXI_TYPE_STR)
        return NULL;
    *size = o->as.text.size;
    return o->as.text.data;
}

static bool equal(void *ctx, cfx_object *a, cfx_object *b) { return cfxi_world_same(ctx, a, b); }
static const char *type_name(void *ctx, cfx_object *o)
{
    (void)ctx;
    return cfxi_world_type_name(o);
}

/* ---- what they do -------------------------------------------------------------------------- */

static bool are_fresh(cfx_object *a, cfx_object *b, cfx_error *err)
{
    return cfxi_world_refresh(a, err) == CFX_OK && cfxi_world_refresh(b, err) == CFX_OK;
}

static cfx_object *unary(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_error *err)
{
    return cfxi_world_unary(ctx, sign, a, err);
}

static cfx_object *binary(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                          bool in_place, cfx_error *err)
{
    return are_fresh(a, b, err) ? cfxi_world_binary(ctx, sign, a, b, in_place, err) : NULL;
}

static bool is_view(const cfx_object *o) { return o->type == CFXI_TYPE_LIST && o->as.seq.of; }

static cfx_object *compare(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                           cfx_error *err)
{
    /* views are lists here; Python compares them as sets, or by identity */
    if ((sign == CFX_SIGN_EQ || sign == CFX_SIGN_NE) && (is_view(a) || is_view(b))) {
        cfx_error_set(err, CFX_E_UNSUPPORTED, "a view of a dict cannot be compared here; compare "
                      "list(...) or set(...) of it");
        return NULL;
    }
    return are_fresh(a, b, err) ? cfxi_world_compare(ctx, sign, a, b, err) : NULL;
}

static int truth(void *ctx, cfx_object *o, cfx_error *err)
{
    return are_fresh(o, o, err) ? cfxi_world_truth_of(ctx, o, err) : -1;
}

static cfx_object *get(void *ctx, cfx_object *o, const char *name, cfx_error *err)
{
    return cfxi_world_get(ctx, o, name, err);
}

/* x.relu in x.relu(): no node. */
static cfx_object *get_method(void *ctx, cfx_object *o, const char *name, cfx_error *err)
{
    if (o->type != CFXI_TYPE_VALUE)
        return cfxi_world_get(ctx, o, name, err);
    cfx_object *word = cfxi_world_str(ctx, name, err);
    cfx_object *made = word ? cfxi_world_parts_object(ctx, CFXI_TYPE_ATTRIBUTE, o, word, NULL, err)
                            : NULL;
    cfxi_world_unref(word);
    return made;
}

static cfx_status set(void *ctx, cfx_object *o, const char *name, cfx_object *v, cfx_error *err)
{
    if (cfxi_world_is_frozen(o))
        return cfxi_world_throw(ctx, err, CFXI_AttributeError, "cannot %s field '%.60s'",
                                v ? "assign to" : "delete", name);
    return cfxi_world_set(ctx, o, name, v, err);
}

static bool is_computed(void *ctx, cfx_object *o, const char *name)
{
    const cfx_object *found = o->cls ? cfxi_world_class_find(o->cls, name) : NULL;
    (void)ctx;
    return found && found->type == CFXI_TYPE_PROPERTY;
}

static cfx_object *item(void *ctx, cfx_object *o, cfx_object *key, cfx_error *err)
{
    return are_fresh(o, o, err) ? cfxi_world_item(ctx, o, key, err) : NULL;
}

static cfx_status set_item(void *ctx, cfx_object *o, cfx_object *key, cfx_object *v, cfx_error *err)
{
    return cfxi_world_set_item(ctx, o, key, v, err);
}

static cfx_object *iterate(void *ctx, cfx_object *o, cfx_error *err)
{
    return are_fresh(o, o, err) ? cfxi_world_iterate(ctx, o, err) : NULL;
}

static cfx_object *next(void *ctx, cfx_object *iterator, cfx_error *err)
{
    return cfxi_world_next(ctx, iterator, err);
}

/* A graph value with a format is "{!r:>5}".format(x) in the graph. */
static cfx_object *format_value(cfxi_world *w, cfx_object *o, int conversion, cfx_object *spec,
                                cfx_error *err)
{
    char form[80];
    if (!conversion && !spec)
        return cfxi_world_ref(o);
    const bool known = !spec || spec->type == CFXI_TYPE_STR;
    if (!known)
        return cfxi_world_raise(w, err, CFXI_TypeError, "the format spec of an f-string cannot be "
                                "a graph value");
    snprintf(form, sizeof form, "{%s%.1s%s%.60s}", conversion ? "!" : "",
             conversion == 'r' ? "r" : conversion == 's' ? "s" : conversion ? "a" : "",
             spec ? ":" : "", spec ? spec->as.text.data : "");
    cfx_object *args[] = {cfxi_world_str(w, form, err), o};
    cfx_object *made = args[0] ? cfxi_world_record(w, CFX_OP_CALL_METHOD, "format",
                                                   &(cfx_call_args){.args = args, .n = 2}, err)
                               : NULL;
    cfxi_world_unref(args[0]);
    return made;
}

static cfx_object *format(void *ctx, cfx_object *o, int conversion, cfx_object *spec,
                          cfx_error *err)
{
    cfxi_world *w = ctx;
    if (!are_fresh(o, o, err))
        return NULL;
    if (cfxi_world_has_value(o, false))
        return format_value(w, o, conversion, spec, err);
    cfx_object *shown =
        conversion ? cfxi_world_shown(w, o, conversion != 's', err) : cfxi_world_ref(o);
    cfx_object *made = shown ? cfxi_world_formatted(w, shown, spec, err) : NULL;
    cfxi_world_unref(shown);
    return made;
}

/* ---- calls --------------------------------------------------------------------------------- */

static cfx_status callee(void *ctx, cfx_object *f, cfx_script_callee *out, cfx_error *err)
{
    return cfxi_world_callee(ctx, f, out, err);
}

static cfx_object *call(void *ctx, cfx_object *f, cfx_call_args args, cfx_error *err)
{
    for (size_t i = 0; i < args.n; i++)
        if (!are_fresh(args.args[i], args.args[i], err))
            return NULL;
    return cfxi_world_call_direct(ctx, f, &args, err);
}

static cfx_object *make(void *ctx, cfx_object *cls, cfx_error *err)
{
    return cfxi_world_make(ctx, cls, err);
}

static cfx_object *wrap(void *ctx, cfx_script_function *f, cfx_error *err)
{
    cfx_object *o = cfxi_world_object_new(ctx, CFXI_TYPE_FUNCTION, err);
    if (o)
        o->as.function = cfx_script_function_retain(f);
    return o;
}

static cfx_object *make_class(void *ctx, const char *name, cfx_object *const *bases, size_t n,
                              const char *const *names, cfx_object *const *values, size_t m,
                              cfx_error *err)
{
    return cfxi_world_make_class(ctx, name, bases, n, names, values, m, err);
}

static cfx_object *super(void *ctx, cfx_object *cls, cfx_object *self, cfx_error *err)
{
    const cfx_object *of = self->type == CFXI_TYPE_CLASS ? self : self->cls;
    if (cls->type != CFXI_TYPE_CLASS || !cfxi_world_is_subclass(of, cls))
        return cfxi_world_raise(ctx, err, CFXI_TypeError,
                                "super(type, obj): obj must be an instance or "
                                "subtype of type");
    return cfxi_world_parts_object(ctx, CFXI_TYPE_SUPER, cls, self, NULL, err);
}

static cfx_status enter(void *ctx, cfx_object *module, cfx_error *err)
{
    cfxi_world *w = ctx;
    const uint32_t *scopes = w->entered.data;
    uint32_t scope = w->entered.size ? scopes[w->entered.size - 1] : 0;
    const cfxi_path *p = cfxi_capture_places_find(&w->places, module->as.module);
    if (p && p->path[0] && w->recording) {
        scope = cfx_graph_intern_stack(w->graph, scope, p->path, cfxi_world_type_name(module), NULL,
                                       err);
        if (scope == 0)
            return err->status;
    }
    if (!cfxi_base_vec_reserve(&w->entered, 1, sizeof scope, w->allocator))
        return cfxi_base_nomem(err);
    ((uint32_t *)w->entered.data)[w->entered.size++] = scope;
    return CFX_OK;
}

static void leave(void *ctx)
{
    cfxi_world *w = ctx;
    w->entered.size -= w->entered.size > 0;
}

/* ---- names --------------------------------------------------------------------------------- */

static cfx_object *global(void *ctx, cfx_object *globals, const char *name, cfx_error *err)
{
    err->status = CFX_OK;
    cfx_object *v = globals ? cfxi_world_dict_get(globals, name) : NULL;
    return v ? cfxi_world_ref(v) : cfxi_world_builtin_get(ctx, name, err);
}

static cfx_status set_global(void *ctx, cfx_object *globals, const char *name, cfx_object *v,
                             cfx_error *err)
{
    bool there;
    (void)ctx;
    return v ? cfxi_world_dict_put(globals, name, v, err)
             : cfxi_world_dict_drop(globals, name, &there, err);
}

static cfx_object *import(void *ctx, cfx_object *globals, const char *name, int level,
                          cfx_error *err)
{
    (void)globals;
    if (level > 0)
        return cfxi_world_raise(ctx, err, CFXI_ImportError,
                                "a script cannot use relative imports: '%.*s%.100s'; capture this "
                                "model in Python, with cfx.script",
                                level < 10 ? level : 10, "..........", name);
    return cfxi_world_namespace(ctx, name, err);
}

/* ---- graph values -------------------------------------------------------------------------- */

static cfx_node *node(void *ctx, cfx_object *o)
{
    (void)ctx;
    return o->type == CFXI_TYPE_VALUE ? o->as.node : NULL;
}

static cfx_object *proxy(void *ctx, cfx_node *n, cfx_error *err)
{
    return cfxi_world_value_object(ctx, n, err);
}

static cfx_status value(void *ctx, cfx_object *o, cfx_value *v, cfx_error *err)
{
    *v = cfxi_world_to_value(ctx, o, err);
    return v->kind == CFX_KIND_INVALID ? err->status : CFX_OK;
}

static cfx_object *tensor(void *ctx, cfx_object *o, cfx_error *err)
{
    const cfxi_world *w = ctx;
    err->status = CFX_OK;
    return o->type == CFXI_TYPE_TENSOR && w->recording ? cfxi_world_tensor_value(ctx, o, err)
                                                       : NULL;
}

static void place(void *ctx, const char *file, uint32_t line)
{
    cfxi_world *w = ctx;
    if (strcmp(file, CFX_SCRIPT_LIBRARY) == 0)
        return;
    w->file = file;
    w->line = line;
}

static uint32_t scope(void *ctx)
{
    const cfxi_world *w = ctx;
    return w->entered.size ? ((const uint32_t *)w->entered.data)[w->entered.size - 1] : 0;
}

static cfx_object *kind_class(void *ctx, cfx_object_kind k, cfx_error *err)
{
    static const uint8_t types[CFX_OBJECT_KINDS] = {
        [CFX_OBJECT_OTHER] = CFXI_TYPE_INSTANCE, [CFX_OBJECT_NONE] = CFXI_TYPE_NONE,
        [CFX_OBJECT_BOOL] = CFXI_TYPE_BOOL, [CFX_OBJECT_INT] = CFXI_TYPE_INT,
        [CFX_OBJECT_FLOAT] = CFXI_TYPE_FLOAT, [CFX_OBJECT_COMPLEX] = CFXI_TYPE_COMPLEX,
        [CFX_OBJECT_STR] = CFXI_TYPE_STR, [CFX_OBJECT_TUPLE] = CFXI_TYPE_TUPLE,
        [CFX_OBJECT_NAMED_TUPLE] = CFXI_TYPE_TUPLE, [CFX_OBJECT_LIST] = CFXI_TYPE_LIST,
        [CFX_OBJECT_DICT] = CFXI_TYPE_DICT, [CFX_OBJECT_SET] = CFXI_TYPE_SET,
        [CFX_OBJECT_TENSOR] = CFXI_TYPE_TENSOR, [CFX_OBJECT_CLASS] = CFXI_TYPE_CLASS,
        [CFX_OBJECT_MODULE] = CFXI_TYPE_MODULE, [CFX_OBJECT_INSTANCE] = CFXI_TYPE_INSTANCE,
    };
    return cfxi_world_type_class(ctx, (cfxi_type)types[k], err);
}

static int kind_is(void *ctx, cfx_object_kind k, cfx_object *classes, cfx_error *err)
{
    cfx_object *cls = kind_class(ctx, k, err);
    const int answer = cls ? cfxi_world_is_one_of(ctx, cls, classes, "isinstance", err) : -1;
    cfxi_world_unref(cls);
    return answer;
}

/* In Python the attribute is the new tensor; the graph copies its elements. `read` reads the
 * buffer, which is `t`. */
static cfx_status check_fits(const cfx_object *read, const cfx_tensor *t, const cfx_object *v,
                             cfx_error *err)
{
    const size_t ndim = cfx_tensor_ndim(t);
    if (v->type == CFXI_TYPE_VALUE)
        return cfx_script_fit_buffer(read->as.node, v->as.node, ndim, cfx_tensor_dtype(t), err);
    if (v->type != CFXI_TYPE_TENSOR)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "a buffer that is a tensor must stay a "
                             "tensor; it is assigned a %.60s", cfxi_world_type_name(v));
    const cfx_tensor *given = v->as.tensor;
    const bool shape = cfx_tensor_ndim(given) == ndim &&
                       memcmp(cfx_tensor_sizes(given), cfx_tensor_sizes(t),
                              ndim * sizeof(int64_t)) == 0;
    if (shape && cfx_tensor_dtype(given) == cfx_tensor_dtype(t))
        return CFX_OK;
    return cfx_error_set(err, CFX_E_UNSUPPORTED, "this buffer is assigned a tensor of another %s, "
                         "which a graph cannot keep; register the buffer with the %s that it gets",
                         shape ? "dtype" : "shape", shape ? "dtype" : "shape");
}

/* A buffer is written to in the graph; anything else cannot be kept by one. */
static cfx_status keep_attribute(void *ctx, cfx_object *module, const char *name, cfx_object *v,
                                 cfx_error *err)
{
    cfxi_world *w = ctx;
    const cfxi_member *e = cfxi_capture_module_find(module->as.module, name, strlen(name));
    if (!e || e->kind == CFXI_MEMBER_CHILD || e->value.kind != CFX_DATUM_TENSOR)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "cannot assign to attribute '%.60s' of %.60s: "
                             "a graph keeps only tensors registered as buffers; register it in "
                             "__init__", name, cfxi_world_type_name(module));
    cfx_tensor *t = e->value.as.tensor;
    cfx_object *old = cfxi_world_tensor_object(w, t, err);
    cfx_object *read = old ? cfxi_world_tensor_value(w, old, err) : NULL;
    cfx_status status = read ? check_fits(read, t, v, err) : err->status;
    const bool checked = status == CFX_OK && read->as.node->n_users > 0;
    cfx_object *args[] = {checked ? old : read, v};  /* each use of a tensor reads it anew */
    cfx_object *made = status == CFX_OK
                           ? cfxi_world_record(w, CFX_OP_CALL_METHOD, "copy_",
                                               &(cfx_call_args){.args = args, .n = 2}, err) : NULL;
    cfxi_world_unref(read);
    cfxi_world_unref(old);
    cfxi_world_unref(made);
    return made ? CFX_OK : err->status;
}

/* ---- exceptions ---------------------------------------------------------------------------- */

static cfx_status raise(void *ctx, cfx_object *exc, cfx_object *cause, cfx_error *err)
{
    cfxi_world *w = ctx;
    cfx_buffer shown;
    cfx_object *o = cfxi_world_ref(exc);
    (void)cause;
    if (exc->type == CFXI_TYPE_CLASS && exc->as.cls.exception >= 0) {
        cfxi_world_unref(o);
        o = cfxi_world_call_with(w, exc, NULL, 0, err);
        if (!o)
            return err->status;
    }
    if (!o->cls || o->cls->as.cls.exception < 0) {
        cfxi_world_unref(o);
        return cfxi_world_throw(w, err, CFXI_TypeError,
                                "exceptions must derive from BaseException");
    }
    cfxi_world_unref(w->pending);
    w->pending = o;
    cfx_buffer_init(&shown, w->allocator);
    const char *name = cfxi_world_type_name(o);
    const bool was = w->printing;
    w->printing = true;
    cfx_status status = cfxi_world_show(w, o, &shown, err);
    w->printing = was;
    if (status == CFX_OK)
        cfx_error_set(err, CFX_E_HOST, "%.100s%s%.380s", name, shown.size ? ": " : "", shown.data);
    cfx_buffer_free(&shown);
    return status == CFX_E_NOMEM ? status : CFX_E_HOST;
}

static cfx_object *caught(void *ctx)
{
    cfxi_world *w = ctx;
    cfx_object *o = w->pending;
    w->pending = NULL;
    return o;
}

static int matches(void *ctx, cfx_object *exc, cfx_object *classes, cfx_error *err)
{
    return cfxi_world_is_instance(ctx, exc, classes, err);
}

static int would_catch(void *ctx, cfx_object *classes, const char *name, bool users,
                       cfx_error *err)
{
    cfxi_world *w = ctx;
    const cfxi_exception kind = cfxi_world_exception_named(name);
    const bool many = classes->type == CFXI_TYPE_TUPLE;
    const size_t n = many ? classes->as.seq.n : 1;
    if (kind == CFXI_EXCEPTIONS)
        return 0;
    cfx_object *raised = cfxi_world_exception_class(w, kind, err);
    int catches = raised ? 0 : -1;
    for (size_t i = 0; catches == 0 && i < n; i++) {
        const cfx_object *c = many ? classes->as.seq.items[i] : classes;
        const bool is_class = c->type == CFXI_TYPE_CLASS && c->as.cls.exception >= 0;
        catches = !is_class || cfxi_world_is_subclass(raised, c) ||
                  ((users || w->exceptions[c->as.cls.exception] == c) &&
                   cfxi_world_is_subclass(c, raised));
    }
    cfxi_world_unref(raised);
    return catches;
}

static cfx_status explain(void *ctx, cfx_object *exc, const char **name, cfx_object **message,
                          cfx_error *err)
{
    cfxi_world *w = ctx;
    const cfx_object *cls = exc->type == CFXI_TYPE_CLASS ? exc : exc->cls;
    cfx_object *args = exc->type == CFXI_TYPE_INSTANCE && exc->attrs
                           ? cfxi_world_dict_get(exc->attrs, "args") : NULL;
    if (!cls || cls->as.cls.exception < 0)
        return cfxi_world_throw(w, err, CFXI_TypeError,
                                "exceptions must derive from BaseException");
    const cfx_object *builtin = w->exceptions[cls->as.cls.exception];
    *name = builtin ? builtin->as.cls.name : "Exception";
    const bool one = args && args->type == CFXI_TYPE_TUPLE && args->as.seq.n == 1;
    if (one && args->as.seq.items[0]->type != CFXI_TYPE_INSTANCE) {
        *message = args->as.seq.items[0];
        return CFX_OK;
    }
    *message = exc->type == CFXI_TYPE_CLASS ? cfxi_world_str(w, "", err)
                                            : cfxi_world_shown(w, exc, false, err);
    return cfxi_world_lend(w, *message, err);
}

static cfx_status interrupted(void *ctx, cfx_error *err)
{
    const cfxi_world *w = ctx;
    cfx_runtime *rt = w->scope ? cfx_scope_runtime(w->scope) : NULL;
    return rt && rt->interrupted && rt->interrupted(rt->interrupted_ctx)
               ? cfx_error_set(err, CFX_E_INTERRUPTED, "interrupted")
               : CFX_OK;
}

void cfxi_world_table(cfxi_world *w)
{
    w->table = (cfx_world){
        .retain = retain, .release = release, .kind = kind, .literal = literal, .build = build,
        .contents = contents, .drop = drop, .refill = refill, .integer = integer, .text = text,
        .equal = equal, .type_name = type_name, .unary = unary, .binary = binary,
        .compare = compare, .truth = truth, .get = get, .get_method = get_method, .set = set,
        .is_computed = is_computed, .item = item, .set_item = set_item, .iterate = iterate,
        .next = next, .format = format,
        .callee = callee, .call = call, .make = make, .wrap = wrap, .make_class = make_class,
        .super = super, .enter = enter, .leave = leave, .global = global,
        .set_global = set_global, .import = import, .node = node, .proxy = proxy, .value = value,
        .tensor = tensor, .place = place, .module_stack = scope, .kind_is = kind_is,
        .kind_class = kind_class, .keep_attribute = keep_attribute, .raise = raise,
        .caught = caught, .matches = matches, .would_catch = would_catch,
        .explain = explain, .interrupted = interrupted,
        .ctx = w,
    };
    cfxi_world_change_entries(&w->table);
}
