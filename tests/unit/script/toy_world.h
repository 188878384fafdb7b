/* toy_world.h - a small world for tests of the evaluator of scripts: ints, texts, tuples, lists,
 * dicts, classes, exceptions, a few functions, and graph values.
 *
 * All memory comes from the allocator that it is given, so that each allocation can fail.
 */
#ifndef CFX_TESTS_TOY_WORLD_H
#define CFX_TESTS_TOY_WORLD_H

#include <cfx/graph.h>
#include <cfx/embed/script.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum toy_type {
    TOY_VALUE,      /* None, bool, int, str, tuple, list, dict, set, slice: by its kind */
    TOY_NODE,
    TOY_OWN,        /* a function that the evaluator made */
    TOY_BOUND,      /* `self` and `function`, or the method `text` of `self` */
    TOY_BUILTIN,    /* `text` */
    TOY_CLASS,      /* `text`; items: names and values; `self`: its base */
    TOY_INSTANCE,   /* `self`: its class; items: names and values; an exception's first is args */
    TOY_ITERATOR    /* items, i */
} toy_type;

typedef struct toy {
    int refs;
    toy_type type;
    cfx_object_kind kind;
    int64_t i;
    char *text;
    struct toy **items;
    size_t n;
    cfx_node *node;
    cfx_script_function *own;
    struct toy *self;
    struct toy *function;
} toy;

typedef struct toy_world {
    cfx_world world;
    const cfx_allocator *a;
    cfx_graph *g;
    cfx_evaluator *ev;
    toy *globals;       /* a dict */
    toy *pending;       /* an exception */
    int places;
    uint32_t line;
} toy_world;

static inline toy *T(cfx_object *o) { return (toy *)o; }
static inline cfx_object *O(toy *t) { return (cfx_object *)t; }

static inline void *toy_alloc(toy_world *w, size_t size, cfx_error *err)
{
    void *block = w->a->alloc(w->a->ctx, size ? size : 1);
    if (!block)
        cfx_error_set(err, CFX_E_NOMEM, "out of memory");
    else
        memset(block, 0, size ? size : 1);
    return block;
}

static inline void toy_free(toy_world *w, void *block, size_t size)
{
    if (block)
        w->a->free(w->a->ctx, block, size ? size : 1);
}

static inline toy *toy_keep(toy *t)
{
    t->refs++;
    return t;
}

static inline void toy_release(toy_world *w, toy *t)
{
    if (!t || --t->refs > 0)
        return;
    for (size_t i = 0; i < t->n; i++)
        toy_release(w, t->items[i]);
    toy_free(w, t->items, t->n * sizeof *t->items);
    toy_free(w, t->text, t->text ? strlen(t->text) + 1 : 0);
    toy_release(w, t->self);
    toy_release(w, t->function);
    cfx_script_function_release(t->own);
    toy_free(w, t, sizeof *t);
}

static inline toy *toy_new(toy_world *w, toy_type type, cfx_object_kind kind, cfx_error *err)
{
    toy *t = toy_alloc(w, sizeof *t, err);
    if (t) {
        t->refs = 1;
        t->type = type;
        t->kind = kind;
    }
    return t;
}

static inline toy *toy_text_new(toy_world *w, toy_type type, cfx_object_kind kind,
                                const char *text, size_t size, cfx_error *err)
{
    toy *t = toy_new(w, type, kind, err);
    if (t && !(t->text = toy_alloc(w, size + 1, err))) {
        toy_release(w, t);
        return NULL;
    }
    if (t)
        memcpy(t->text, text, size);
    return t;
}

static inline toy *toy_str(toy_world *w, const char *text, cfx_error *err)
{
    return toy_text_new(w, TOY_VALUE, CFX_OBJECT_STR, text, strlen(text), err);
}

static inline toy *toy_int(toy_world *w, int64_t i, cfx_error *err)
{
    toy *t = toy_new(w, TOY_VALUE, CFX_OBJECT_INT, err);
    if (t)
        t->i = i;
    return t;
}

static inline toy *toy_bool(toy_world *w, bool b, cfx_error *err)
{
    toy *t = toy_int(w, b, err);
    if (t)
        t->kind = CFX_OBJECT_BOOL;
    return t;
}

static inline bool toy_fill(toy_world *w, toy *t, cfx_object *const *items, size_t n,
                            cfx_error *err)
{
    toy **more = toy_alloc(w, n * sizeof *more, err);
    if (!more)
        return false;
    for (size_t i = 0; i < n; i++)
        more[i] = toy_keep(T(items[i]));
    toy **old = t->items;
    const size_t count = t->n;
    t->items = more;
    t->n = n;
    for (size_t i = 0; i < count; i++)
        toy_release(w, old[i]);
    toy_free(w, old, count * sizeof *old);
    return true;
}

static inline toy *toy_items(toy_world *w, toy_type type, cfx_object_kind kind,
                             cfx_object *const *items, size_t n, cfx_error *err)
{
    toy *t = toy_new(w, type, kind, err);
    if (t && !toy_fill(w, t, items, n, err)) {
        toy_release(w, t);
        return NULL;
    }
    return t;
}

/* ---- what objects are ---------------------------------------------------------------------- */

static inline bool toy_equal(const toy *a, const toy *b)
{
    if (a == b)
        return true;
    if (a->type != TOY_VALUE || b->type != TOY_VALUE)
        return false;
    if (a->text && b->text)
        return strcmp(a->text, b->text) == 0;
    if (a->items || b->items) {
        bool same = a->n == b->n && a->kind == b->kind;
        for (size_t i = 0; same && i < a->n; i++)
            same = toy_equal(a->items[i], b->items[i]);
        return same;
    }
    const bool numbers = (a->kind == CFX_OBJECT_INT || a->kind == CFX_OBJECT_BOOL) &&
                         (b->kind == CFX_OBJECT_INT || b->kind == CFX_OBJECT_BOOL);
    return (numbers || a->kind == b->kind) && a->i == b->i;
}

static inline void toy_repr(const toy *t, char *out, size_t size)
{
    size_t used = 0;
#define PUT(...) used += (size_t)snprintf(out + (used < size ? used : size), \
                                          used < size ? size - used : 0, __VA_ARGS__)
    const char *open = t->kind == CFX_OBJECT_TUPLE ? "(" : t->kind == CFX_OBJECT_LIST ? "[" : "{";
    const char *shut = t->kind == CFX_OBJECT_TUPLE ? ")" : t->kind == CFX_OBJECT_LIST ? "]" : "}";
    if (t->type == TOY_NODE)
        PUT("%%%s", cfx_node_name(t->node, NULL));
    else if (t->type == TOY_INSTANCE)
        PUT("<%s>", t->self->text);
    else if (t->type != TOY_VALUE)
        PUT("<%s>", t->text ? t->text : t->own ? cfx_script_function_name(t->own) : "object");
    else if (t->kind == CFX_OBJECT_NONE)
        PUT("None");
    else if (t->kind == CFX_OBJECT_BOOL)
        PUT("%s", t->i ? "True" : "False");
    else if (t->kind == CFX_OBJECT_INT)
        PUT("%lld", (long long)t->i);
    else if (t->text)
        PUT("'%s'", t->text);
    else {
        PUT("%s", open);
        for (size_t i = 0; i < t->n; i++) {
            PUT("%s", i == 0 ? "" : t->kind == CFX_OBJECT_DICT && i % 2 ? ": " : ", ");
            if (used < size)
                toy_repr(t->items[i], out + used, size - used);
            used += used < size ? strlen(out + used) : 0;
        }
        PUT("%s%s", t->kind == CFX_OBJECT_TUPLE && t->n == 1 ? "," : "", shut);
    }
#undef PUT
}

static inline void w_retain(void *ctx, cfx_object *o)
{
    (void)ctx;
    T(o)->refs++;
}
static inline void w_release(void *ctx, cfx_object *o) { toy_release(ctx, T(o)); }
static inline cfx_object_kind w_kind(void *ctx, cfx_object *o)
{
    (void)ctx;
    return T(o)->kind;
}
static inline cfx_object *w_literal(void *ctx, const cfx_script_literal *l, cfx_error *err)
{
    toy *t;
    if (l->text)
        return O(toy_text_new(ctx, TOY_VALUE, l->kind, l->text, l->size, err));
    t = toy_int(ctx, l->kind == CFX_OBJECT_FLOAT ? (int64_t)l->f : l->i, err);
    if (t)
        t->kind = l->kind;
    return O(t);
}

static inline cfx_status toy_put(toy_world *w, toy *dict, toy *key, toy *v, cfx_error *err);

static inline cfx_object *w_build(void *ctx, cfx_script_build what, cfx_object *const *items,
                                  size_t n, cfx_error *err)
{
    static const cfx_object_kind kinds[] = {CFX_OBJECT_TUPLE, CFX_OBJECT_LIST, CFX_OBJECT_SET,
                                            CFX_OBJECT_DICT, CFX_OBJECT_OTHER};
    if (what == CFX_BUILD_LIKE)
        return O(toy_items(ctx, T(items[0])->type, T(items[0])->kind, items + 1, n - 1, err));
    if (what == CFX_BUILD_TEXT) {
        char text[400] = "";
        for (size_t i = 0; i < n; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s", T(items[i])->text);
        return O(toy_str(ctx, text, err));
    }
    if (what != CFX_BUILD_DICT)
        return O(toy_items(ctx, TOY_VALUE, kinds[what], items, n, err));
    toy *dict = toy_items(ctx, TOY_VALUE, CFX_OBJECT_DICT, NULL, 0, err);
    for (size_t i = 0; dict && i + 1 < n; i += 2) {
        if (toy_put(ctx, dict, T(items[i]), T(items[i + 1]), err) != CFX_OK) {
            toy_release(ctx, dict);
            return NULL;
        }
    }
    return O(dict);
}

static inline cfx_status w_contents(void *ctx, cfx_object *o, cfx_object ***items, size_t *n,
                                    cfx_error *err)
{
    cfx_object **copy = toy_alloc(ctx, T(o)->n * sizeof *copy, err);
    if (!copy)
        return CFX_E_NOMEM;
    for (size_t i = 0; i < T(o)->n; i++)
        copy[i] = O(toy_keep(T(o)->items[i]));
    *items = copy;
    *n = T(o)->n;
    return CFX_OK;
}

static inline void w_drop(void *ctx, cfx_object **items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        toy_release(ctx, T(items[i]));
    toy_free(ctx, items, n * sizeof *items);
}

static inline cfx_status w_refill(void *ctx, cfx_object *o, cfx_object *const *items, size_t n,
                                  cfx_error *err)
{
    return toy_fill(ctx, T(o), items, n, err) ? CFX_OK : CFX_E_NOMEM;
}

static inline bool w_integer(void *ctx, cfx_object *o, int64_t *i)
{
    (void)ctx;
    *i = T(o)->i;
    return T(o)->kind == CFX_OBJECT_INT || T(o)->kind == CFX_OBJECT_BOOL;
}

static inline const char *w_text(void *ctx, cfx_object *o, size_t *size)
{
    (void)ctx;
    *size = T(o)->text ? strlen(T(o)->text) : 0;
    return T(o)->text;
}

static inline bool w_equal(void *ctx, cfx_object *a, cfx_object *b)
{
    (void)ctx;
    return T(a)->kind == T(b)->kind && T(a)->kind != CFX_OBJECT_LIST &&
           T(a)->kind != CFX_OBJECT_DICT && toy_equal(T(a), T(b));
}

static inline const char *w_type_name(void *ctx, cfx_object *o)
{
    static const char names[][10] = {"object", "NoneType", "bool", "int", "float", "complex", "str",
                                     "tuple", "tuple", "list", "dict", "set"};
    (void)ctx;
    if (T(o)->type == TOY_INSTANCE)
        return T(o)->self->text;
    return T(o)->kind < sizeof names / sizeof *names ? names[T(o)->kind] : "object";
}

/* ---- exceptions ---------------------------------------------------------------------------- */

static inline cfx_status w_raise(void *ctx, cfx_object *exc, cfx_object *cause, cfx_error *err)
{
    toy_world *w = ctx;
    char text[200];
    (void)cause;
    toy_release(w, w->pending);
    w->pending = toy_keep(T(exc));
    toy_repr(T(exc)->n > 1 ? T(exc)->items[1] : T(exc), text, sizeof text);
    return cfx_error_set(err, CFX_E_HOST, "%s: %s", w_type_name(w, exc), text);
}

static inline cfx_object *w_caught(void *ctx)
{
    toy_world *w = ctx;
    toy *exc = w->pending;
    w->pending = NULL;
    return O(exc);
}

static inline cfx_object *w_global(void *ctx, cfx_object *globals, const char *name,
                                   cfx_error *err);
static inline cfx_object *w_call(void *ctx, cfx_object *f, cfx_call_args args, cfx_error *err);

/* Raises an exception of the world's own. Returns NULL. */
static inline void *toy_raise(toy_world *w, const char *class, const char *text, cfx_error *err)
{
    cfx_object *c = w_global(w, O(w->globals), class, err);
    cfx_object *message = c ? O(toy_str(w, text, err)) : NULL;
    cfx_object *exc = message ? w_call(w, c, (cfx_call_args){.args = &message, .n = 1}, err) : NULL;
    if (exc)
        w_raise(w, exc, NULL, err);
    toy_release(w, T(exc));
    toy_release(w, T(message));
    toy_release(w, T(c));
    return NULL;
}

static inline int w_matches(void *ctx, cfx_object *exc, cfx_object *classes, cfx_error *err)
{
    for (size_t i = 0; T(classes)->kind == CFX_OBJECT_TUPLE && i < T(classes)->n; i++) {
        if (w_matches(ctx, exc, O(T(classes)->items[i]), err))
            return 1;
    }
    for (const toy *c = T(exc)->self; c; c = c->self) {
        if (c == T(classes))
            return 1;
    }
    return 0;
}

/* By its name, or a base of it; what a library derives, this world does not have. */
static inline int w_would_catch(void *ctx, cfx_object *classes, const char *name, bool users,
                                cfx_error *err)
{
    (void)users;
    for (size_t i = 0; T(classes)->kind == CFX_OBJECT_TUPLE && i < T(classes)->n; i++) {
        if (w_would_catch(ctx, O(T(classes)->items[i]), name, users, err))
            return 1;
    }
    const char *text = T(classes)->text;
    return text && (strcmp(text, name) == 0 || strcmp(text, "Exception") == 0);
}

static inline cfx_status w_explain(void *ctx, cfx_object *exc, const char **kind,
                                   cfx_object **message, cfx_error *err)
{
    (void)ctx;
    (void)err;
    *kind = T(exc)->self->text;
    *message = O(T(exc)->n > 1 ? T(exc)->items[1] : T(exc)->self);
    return CFX_OK;
}

/* ---- graph values -------------------------------------------------------------------------- */

static inline cfx_node *w_node(void *ctx, cfx_object *o)
{
    (void)ctx;
    return T(o)->node;
}

static inline cfx_object *w_proxy(void *ctx, cfx_node *n, cfx_error *err)
{
    toy *t = toy_new(ctx, TOY_NODE, CFX_OBJECT_OTHER, err);
    if (t)
        t->node = n;
    return O(t);
}

static inline cfx_status w_value(void *ctx, cfx_object *o, cfx_value *v, cfx_error *err)
{
    toy_world *w = ctx;
    cfx_value items[8];
    const toy *t = T(o);
    *v = cfx_value_none();
    if (t->node)
        *v = cfx_value_node(t->node);
    else if (t->kind == CFX_OBJECT_INT)
        *v = cfx_value_int(t->i);
    else if (t->kind == CFX_OBJECT_BOOL)
        *v = cfx_value_bool(t->i != 0);
    else if (t->text)
        *v = cfx_value_str(w->g, t->text, strlen(t->text), err);
    else if (t->kind == CFX_OBJECT_TUPLE || t->kind == CFX_OBJECT_LIST) {
        for (size_t i = 0; i < t->n && i < 8; i++) {
            if (w_value(ctx, O(t->items[i]), &items[i], err) != CFX_OK)
                return err->status;
        }
        *v = cfx_value_seq(w->g, t->kind == CFX_OBJECT_LIST ? CFX_KIND_LIST : CFX_KIND_TUPLE, items,
                           t->n, err);
    }
    return v->kind == CFX_KIND_INVALID ? err->status : CFX_OK;
}

static inline cfx_object *toy_record(toy_world *w, cfx_opcode op, const char *target,
                                     cfx_object *const *args, size_t n, cfx_error *err)
{
    cfx_value values[8];
    for (size_t i = 0; i < n; i++) {
        if (w_value(w, args[i], &values[i], err) != CFX_OK)
            return NULL;
    }
    cfx_node *node = cfx_graph_call(w->g, op, target, values, n, NULL, 0, err);
    return node ? w_proxy(w, node, err) : NULL;
}

static inline cfx_object *toy_operator(toy_world *w, const char *name, cfx_object *a,
                                       cfx_object *b, cfx_error *err)
{
    char target[40];
    cfx_object *args[] = {a, b};
    snprintf(target, sizeof target, "operator.%s", name);
    return toy_record(w, CFX_OP_CALL_FUNCTION, target, args, b ? 2 : 1, err);
}

static inline const char *toy_function_of(cfx_script_sign sign)
{
    static const char *const names[] = {
#define CFX_SIGN_UNARY(id, sign, function, ...) function,
#define CFX_SIGN_BINARY(id, sign, function, ...) function,
#define CFX_SIGN_COMPARE(id, sign, function, ...) function,
#define CFX_SIGN_WORD(id, words, function, ...) function,
#include <cfx/embed/sign.def>
    };
    return names[sign];
}

/* ---- what they do -------------------------------------------------------------------------- */

static inline int w_truth(void *ctx, cfx_object *o, cfx_error *err)
{
    const toy *t = T(o);
    (void)ctx;
    (void)err;
    if (t->type != TOY_VALUE)
        return 1;
    return t->text ? *t->text != 0 : t->items ? t->n > 0 : t->i != 0;
}

static inline cfx_object *w_unary(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_error *err)
{
    if (T(a)->node)
        return toy_operator(ctx, toy_function_of(sign), a, NULL, err);
    if (sign == CFX_SIGN_NOT)
        return O(toy_bool(ctx, !w_truth(ctx, a, err), err));
    const int64_t i = T(a)->i;
    return O(toy_int(ctx, sign == CFX_SIGN_NEG ? -i : sign == CFX_SIGN_INVERT ? ~i : i, err));
}

static inline cfx_object *toy_join(toy_world *w, toy *a, toy *b, bool in_place, cfx_error *err)
{
    cfx_object *all[200];
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        all[n++] = O(a->items[i]);
    for (size_t i = 0; i < b->n; i++)
        all[n++] = O(b->items[i]);
    if (!in_place || a->kind != CFX_OBJECT_LIST)
        return O(toy_items(w, TOY_VALUE, a->kind, all, n, err));
    return toy_fill(w, a, all, n, err) ? O(toy_keep(a)) : NULL;
}

static inline cfx_object *w_binary(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                                   bool in_place, cfx_error *err)
{
    char text[300];
    if (T(a)->node || T(b)->node)
        return toy_operator(ctx, toy_function_of(sign), a, b, err);
    if (sign == CFX_SIGN_ADD && T(a)->items && T(a)->kind == T(b)->kind)
        return toy_join(ctx, T(a), T(b), in_place, err);
    if (sign == CFX_SIGN_ADD && T(a)->text && T(b)->text) {
        snprintf(text, sizeof text, "%s%s", T(a)->text, T(b)->text);
        return O(toy_str(ctx, text, err));
    }
    if (T(a)->text || T(b)->text || T(a)->items || T(b)->items)
        return toy_raise(ctx, "TypeError", "unsupported operand", err);
    const int64_t x = T(a)->i, y = T(b)->i;
    if ((sign == CFX_SIGN_FLOORDIV || sign == CFX_SIGN_MOD) && y == 0)
        return toy_raise(ctx, "ZeroDivisionError", "division by zero", err);
    switch ((unsigned)sign) {
    case CFX_SIGN_ADD: return O(toy_int(ctx, x + y, err));
    case CFX_SIGN_SUB: return O(toy_int(ctx, x - y, err));
    case CFX_SIGN_MUL: return O(toy_int(ctx, x * y, err));
    case CFX_SIGN_FLOORDIV: return O(toy_int(ctx, x / y, err));
    case CFX_SIGN_MOD: return O(toy_int(ctx, x % y, err));
    }
    cfx_error_set(err, CFX_E_UNSUPPORTED, "a toy cannot do this");
    return NULL;
}

static inline bool toy_holds(const toy *container, const toy *item)
{
    const size_t step = container->kind == CFX_OBJECT_DICT ? 2 : 1;
    for (size_t i = 0; i < container->n; i += step) {
        if (toy_equal(container->items[i], item))
            return true;
    }
    return false;
}

static inline cfx_object *w_compare(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                                    cfx_error *err)
{
    if (T(a)->node || T(b)->node)
        return toy_operator(ctx, toy_function_of(sign), a, b, err);
    const int64_t x = T(a)->i, y = T(b)->i;
    const bool same = a == b || (T(a)->kind <= CFX_OBJECT_BOOL && toy_equal(T(a), T(b)));
    bool is = false;
    switch ((unsigned)sign) {
    case CFX_SIGN_EQ: is = toy_equal(T(a), T(b)); break;
    case CFX_SIGN_NE: is = !toy_equal(T(a), T(b)); break;
    case CFX_SIGN_LT: is = x < y; break;
    case CFX_SIGN_LE: is = x <= y; break;
    case CFX_SIGN_GT: is = x > y; break;
    case CFX_SIGN_GE: is = x >= y; break;
    case CFX_SIGN_IS: is = same; break;
    case CFX_SIGN_IS_NOT: is = !same; break;
    case CFX_SIGN_IN: is = toy_holds(T(b), T(a)); break;
    case CFX_SIGN_NOT_IN: is = !toy_holds(T(b), T(a)); break;
    }
    return O(toy_bool(ctx, is, err));
}

static inline toy *toy_find(const toy *dict, const char *name)
{
    for (size_t i = 0; i + 1 < dict->n; i += 2) {
        if (dict->items[i]->text && strcmp(dict->items[i]->text, name) == 0)
            return dict->items[i + 1];
    }
    return NULL;
}

static inline toy *toy_bind(toy_world *w, toy *self, toy *function, const char *name,
                            cfx_error *err)
{
    toy *bound = toy_text_new(w, TOY_BOUND, CFX_OBJECT_OTHER, name, strlen(name), err);
    if (bound) {
        bound->self = toy_keep(self);
        bound->function = function ? toy_keep(function) : NULL;
    }
    return bound;
}

static inline cfx_object *w_get(void *ctx, cfx_object *o, const char *name, cfx_error *err)
{
    toy *t = T(o);
    if (t->node || (t->type == TOY_VALUE && t->items))
        return O(toy_bind(ctx, t, NULL, name, err));
    toy *found = t->type == TOY_INSTANCE || t->type == TOY_CLASS ? toy_find(t, name) : NULL;
    if (found)
        return O(toy_keep(found));
    if (t->type == TOY_INSTANCE && strcmp(name, "__class__") == 0)
        return O(toy_keep(t->self));
    for (toy *c = t->self; c && (t->type == TOY_INSTANCE || t->type == TOY_CLASS); c = c->self) {
        found = toy_find(c, name);
        if (found && t->type == TOY_INSTANCE && found->type == TOY_OWN)
            return O(toy_bind(ctx, t, found, name, err));
        if (found)
            return O(toy_keep(found));
    }
    return toy_raise(ctx, "AttributeError", name, err);
}

/* Sets, adds or (v NULL) takes out an entry; CFX_E_KEY if there is none to take out. */
static inline cfx_status toy_put(toy_world *w, toy *dict, toy *key, toy *v, cfx_error *err)
{
    cfx_object *all[200];
    size_t n = 0;
    bool found = false;
    for (size_t i = 0; i + 1 < dict->n && n < 190; i += 2) {
        const bool same = toy_equal(dict->items[i], key);
        found = found || same;
        if (same && !v)
            continue;
        all[n++] = O(dict->items[i]);
        all[n++] = O(same ? v : dict->items[i + 1]);
    }
    if (!found && !v)
        return CFX_E_KEY;
    if (!found) {
        all[n++] = O(key);
        all[n++] = O(v);
    }
    return toy_fill(w, dict, all, n, err) ? CFX_OK : CFX_E_NOMEM;
}

static inline cfx_status w_set(void *ctx, cfx_object *o, const char *name, cfx_object *v,
                               cfx_error *err)
{
    toy *key = toy_str(ctx, name, err);
    if (!key)
        return CFX_E_NOMEM;
    cfx_status status = toy_put(ctx, T(o), key, T(v), err);
    if (status == CFX_E_KEY) {
        toy_raise(ctx, "AttributeError", name, err);
        status = err->status;
    }
    toy_release(ctx, key);
    return status;
}

static inline cfx_object *w_item(void *ctx, cfx_object *o, cfx_object *key, cfx_error *err)
{
    const toy *t = T(o);
    if (t->node || T(key)->node)
        return toy_operator(ctx, "getitem", o, key, err);
    for (size_t i = 0; t->kind == CFX_OBJECT_DICT && i + 1 < t->n; i += 2) {
        if (toy_equal(t->items[i], T(key)))
            return O(toy_keep(t->items[i + 1]));
    }
    if (t->kind == CFX_OBJECT_DICT)
        return toy_raise(ctx, "KeyError", "no such key", err);
    if (T(key)->n == 3) {  /* a slice, of non-negative bounds */
        const toy *stop = T(key)->items[1];
        const size_t first = (size_t)T(key)->items[0]->i;
        const size_t last = stop->kind == CFX_OBJECT_NONE ? t->n : (size_t)stop->i;
        return O(toy_items(ctx, TOY_VALUE, t->kind, (cfx_object **)t->items + first, last - first,
                           err));
    }
    const int64_t i = T(key)->i < 0 ? T(key)->i + (int64_t)t->n : T(key)->i;
    if (i < 0 || i >= (int64_t)t->n)
        return toy_raise(ctx, "IndexError", "out of range", err);
    return O(toy_keep(t->items[i]));
}

static inline cfx_status w_set_item(void *ctx, cfx_object *o, cfx_object *key, cfx_object *v,
                                    cfx_error *err)
{
    toy *t = T(o);
    if (t->node) {
        cfx_object *args[] = {o, key, v};
        cfx_object *done = toy_record(ctx, CFX_OP_CALL_FUNCTION, "operator.setitem", args, 3, err);
        toy_release(ctx, T(done));
        return done ? CFX_OK : err->status;
    }
    if (t->kind == CFX_OBJECT_DICT) {
        const cfx_status status = toy_put(ctx, t, T(key), T(v), err);
        if (status != CFX_E_KEY)
            return status;
        toy_raise(ctx, "KeyError", "no such key", err);
        return err->status;
    }
    cfx_object *all[200];
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        if ((int64_t)i != T(key)->i)
            all[n++] = O(t->items[i]);
        else if (v)
            all[n++] = v;
    }
    return toy_fill(ctx, t, all, n, err) ? CFX_OK : CFX_E_NOMEM;
}

static inline cfx_object *w_iterate(void *ctx, cfx_object *o, cfx_error *err)
{
    const toy *t = T(o);
    cfx_object *keys[200];
    size_t n = 0;
    if (t->type == TOY_ITERATOR)
        return O(toy_keep(T(o)));
    if (!t->items)
        return toy_raise(ctx, "TypeError", "not iterable", err);
    for (size_t i = 0; i < t->n; i += t->kind == CFX_OBJECT_DICT ? 2 : 1)
        keys[n++] = O(t->items[i]);
    return O(toy_items(ctx, TOY_ITERATOR, CFX_OBJECT_OTHER, keys, n, err));
}

static inline cfx_object *w_next(void *ctx, cfx_object *iterator, cfx_error *err)
{
    toy *t = T(iterator);
    (void)ctx;
    (void)err;
    return t->i < (int64_t)t->n ? O(toy_keep(t->items[t->i++])) : NULL;
}

static inline cfx_object *w_format(void *ctx, cfx_object *o, int conversion, cfx_object *spec,
                                   cfx_error *err)
{
    char text[300];
    (void)spec;
    if (T(o)->text && conversion != 'r')
        return O(toy_str(ctx, T(o)->text, err));
    toy_repr(T(o), text, sizeof text);
    return O(toy_str(ctx, text, err));
}

/* ---- calls --------------------------------------------------------------------------------- */

static inline cfx_status w_callee(void *ctx, cfx_object *f, cfx_script_callee *out, cfx_error *err)
{
    static const char *const specials[] = {
#define CFX_SPECIAL(id, name) name,
#include <cfx/embed/special.def>
#undef CFX_SPECIAL
    };
    toy *t = T(f);
    (void)ctx;
    (void)err;
    *out = (cfx_script_callee){.kind = CFX_CALLEE_DIRECT};
    if (t->type == TOY_OWN || (t->type == TOY_BOUND && t->function)) {
        out->kind = CFX_CALLEE_OWN;
        out->own = t->type == TOY_OWN ? t->own : t->function->own;
        out->self = O(t->self);
    } else if (t->type == TOY_CLASS && t->i == 0) {  /* no exception */
        toy *init = toy_find(t, "__init__");
        for (toy *c = t->self; c && !init; c = c->self)
            init = toy_find(c, "__init__");
        out->kind = CFX_CALLEE_CLASS;
        out->function = O(init);
    }
    for (size_t i = 0; t->type == TOY_BUILTIN && i < CFX_SPECIALS; i++) {
        if (strncmp(specials[i], "builtins.", 9) == 0 && strcmp(specials[i] + 9, t->text) == 0) {
            out->kind = CFX_CALLEE_SPECIAL;
            out->special = (cfx_script_special)i;
        }
    }
    return CFX_OK;
}

static inline cfx_object *toy_method(toy_world *w, toy *bound, cfx_call_args args, cfx_error *err)
{
    toy *t = bound->self;
    cfx_object *all[8] = {O(t)};
    for (size_t i = 0; t->node && i < args.n && i < 7; i++)
        all[i + 1] = args.args[i];
    if (t->node)
        return toy_record(w, CFX_OP_CALL_METHOD, bound->text, all, args.n + 1, err);
    if (strcmp(bound->text, "append") == 0 || strcmp(bound->text, "add") == 0) {
        toy one = {.items = (toy **)args.args, .n = 1, .kind = CFX_OBJECT_LIST};
        const cfx_object_kind kind = t->kind;
        t->kind = CFX_OBJECT_LIST;
        cfx_object *done = toy_join(w, t, &one, true, err);
        t->kind = kind;
        toy_release(w, T(done));
        return done ? w_literal(w, &(cfx_script_literal){.kind = CFX_OBJECT_NONE}, err) : NULL;
    }
    if (strcmp(bound->text, "keys") == 0)
        return w_iterate(w, O(t), err);
    if (strcmp(bound->text, "pop") == 0) {
        toy *last = toy_keep(t->items[t->n - 1]);
        toy *kept[200];
        memcpy(kept, t->items, (t->n - 1) * sizeof *kept);
        if (toy_fill(w, t, (cfx_object **)kept, t->n - 1, err))
            return O(last);
        toy_release(w, last);
        return NULL;
    }
    return toy_raise(w, "AttributeError", bound->text, err);
}

static inline cfx_object *toy_range(toy_world *w, int64_t count, cfx_error *err)
{
    cfx_object *all[100];
    cfx_object *list = NULL;
    size_t n = 0;
    while ((int64_t)n < count && n < 100 && (all[n] = O(toy_int(w, (int64_t)n, err))) != NULL)
        n++;
    if ((int64_t)n == count)
        list = O(toy_items(w, TOY_VALUE, CFX_OBJECT_LIST, all, n, err));
    for (size_t i = 0; i < n; i++)
        toy_release(w, T(all[i]));
    return list;
}

static inline cfx_object *toy_builtin(toy_world *w, const char *name, cfx_call_args args,
                                      cfx_error *err)
{
    if (strcmp(name, "len") == 0)
        return T(args.args[0])->node
                   ? toy_record(w, CFX_OP_CALL_FUNCTION, "builtins.len", args.args, 1, err)
                   : O(toy_int(w, (int64_t)T(args.args[0])->n, err));
    if (strcmp(name, "range") == 0)
        return toy_range(w, T(args.args[0])->i, err);
    if (strcmp(name, "isinstance") == 0)
        return O(toy_bool(w, w_matches(w, args.args[0], args.args[1], err) > 0, err));
    if (strcmp(name, "call") == 0)  /* calls back */
        return cfx_evaluator_call(w->ev, args.args[0], (cfx_call_args){0}, err);
    return toy_raise(w, "TypeError", "a toy cannot call this", err);
}

static inline cfx_object *w_call(void *ctx, cfx_object *f, cfx_call_args args, cfx_error *err)
{
    toy *t = T(f);
    if (t->type == TOY_BOUND)
        return toy_method(ctx, t, args, err);
    if (t->type == TOY_BUILTIN)
        return toy_builtin(ctx, t->text, args, err);
    if (t->type != TOY_CLASS)
        return toy_raise(ctx, "TypeError", "not callable", err);
    toy *exc = toy_new(ctx, TOY_INSTANCE, CFX_OBJECT_OTHER, err);
    if (!exc)
        return NULL;
    exc->self = toy_keep(t);
    if (args.n > 0 && w_set(ctx, O(exc), "args", args.args[0], err) != CFX_OK) {
        toy_release(ctx, exc);
        return NULL;
    }
    return O(exc);
}

static inline cfx_object *w_make(void *ctx, cfx_object *cls, cfx_error *err)
{
    toy *t = toy_items(ctx, TOY_INSTANCE, CFX_OBJECT_INSTANCE, NULL, 0, err);
    if (t)
        t->self = toy_keep(T(cls));
    return O(t);
}

static inline cfx_object *w_wrap(void *ctx, cfx_script_function *f, cfx_error *err)
{
    toy *t = toy_new(ctx, TOY_OWN, CFX_OBJECT_OTHER, err);
    if (t)
        t->own = cfx_script_function_retain(f);
    return O(t);
}

static inline cfx_object *w_make_class(void *ctx, const char *name, cfx_object *const *bases,
                                       size_t n, const char *const *names,
                                       cfx_object *const *values, size_t m, cfx_error *err)
{
    toy *t = toy_text_new(ctx, TOY_CLASS, CFX_OBJECT_CLASS, name, strlen(name), err);
    if (!t)
        return NULL;
    t->self = n > 0 ? toy_keep(T(bases[0])) : NULL;
    t->i = n > 0 ? T(bases[0])->i : 0;
    for (size_t i = 0; i < m; i++) {
        if (w_set(ctx, O(t), names[i], values[i], err) != CFX_OK) {
            toy_release(ctx, t);
            return NULL;
        }
    }
    return O(t);
}

/* An instance of the base that shares nothing: enough to find a method. */
static inline cfx_object *w_super(void *ctx, cfx_object *cls, cfx_object *self, cfx_error *err)
{
    toy *t = toy_new(ctx, TOY_INSTANCE, CFX_OBJECT_INSTANCE, err);
    (void)self;
    if (t)
        t->self = toy_keep(T(cls)->self);
    return O(t);
}

static inline cfx_object *w_global(void *ctx, cfx_object *globals, const char *name,
                                   cfx_error *err)
{
    static const char builtins[][12] = {"len", "range", "call", "isinstance", "super", "getattr",
                                        "hasattr", "setattr", "any", "all", "map", "list", "tuple",
                                        "locals"};
    toy *found = toy_find(T(globals), name);
    if (found)
        return O(toy_keep(found));
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        if (strcmp(builtins[i], name) == 0)
            return O(toy_text_new(ctx, TOY_BUILTIN, CFX_OBJECT_OTHER, name, strlen(name), err));
    }
    return NULL;
}

static inline cfx_status w_set_global(void *ctx, cfx_object *globals, const char *name,
                                      cfx_object *v, cfx_error *err)
{
    return w_set(ctx, globals, name, v, err);
}

static inline cfx_object *w_import(void *ctx, cfx_object *globals, const char *name, int level,
                                   cfx_error *err)
{
    (void)level;
    (void)globals;
    toy *module = toy_text_new(ctx, TOY_CLASS, CFX_OBJECT_CLASS, name, strlen(name), err);
    toy *seven = module ? toy_int(ctx, 7, err) : NULL;
    if (seven && w_set(ctx, O(module), "seven", O(seven), err) == CFX_OK) {
        toy_release(ctx, seven);
        return O(module);
    }
    toy_release(ctx, seven);
    toy_release(ctx, module);
    return NULL;
}

static inline cfx_object *w_tensor(void *ctx, cfx_object *o, cfx_error *err)
{
    (void)ctx;
    (void)o;
    (void)err;
    return NULL;
}

static inline void w_place(void *ctx, const char *file, uint32_t line)
{
    toy_world *w = ctx;
    (void)file;
    w->places++;
    w->line = line;
}

static inline int w_kind_is(void *ctx, cfx_object_kind kind, cfx_object *classes, cfx_error *err)
{
    (void)ctx;
    (void)err;
    return kind == CFX_OBJECT_TENSOR && T(classes)->text && strcmp(T(classes)->text, "Tensor") == 0;
}

static inline cfx_object *w_kind_class(void *ctx, cfx_object_kind kind, cfx_error *err)
{
    return O(toy_int(ctx, kind, err));
}

static inline cfx_status w_keep_attribute(void *ctx, cfx_object *module, const char *name,
                                          cfx_object *v, cfx_error *err)
{
    (void)ctx;
    (void)module;
    (void)v;
    return cfx_error_set(err, CFX_E_UNSUPPORTED, "a toy keeps no attribute '%s'", name);
}

/* An exception class in the globals. */
static inline cfx_status toy_exception(toy_world *w, const char *name, const char *base,
                                       cfx_error *err)
{
    toy *t = toy_text_new(w, TOY_CLASS, CFX_OBJECT_CLASS, name, strlen(name), err);
    if (!t)
        return CFX_E_NOMEM;
    t->i = 1;
    t->self = base ? toy_keep(toy_find(w->globals, base)) : NULL;
    const cfx_status status = w_set(w, O(w->globals), name, O(t), err);
    toy_release(w, t);
    return status;
}

static inline cfx_status toy_world_init(toy_world *w, cfx_graph *g, const cfx_allocator *a,
                                        cfx_error *err)
{
    static const char exceptions[][20] = {"TypeError", "ValueError", "KeyError", "IndexError",
                                          "AttributeError", "ZeroDivisionError",
                                          "AssertionError"};
    *w = (toy_world){.a = a, .g = g};
    w->world = (cfx_world){
        .retain = w_retain, .release = w_release, .kind = w_kind, .literal = w_literal,
        .build = w_build, .contents = w_contents, .drop = w_drop, .refill = w_refill,
        .integer = w_integer, .text = w_text, .equal = w_equal, .type_name = w_type_name,
        .unary = w_unary, .binary = w_binary, .compare = w_compare, .truth = w_truth,
        .get = w_get, .set = w_set, .item = w_item, .set_item = w_set_item,
        .iterate = w_iterate, .next = w_next, .format = w_format, .callee = w_callee,
        .call = w_call, .make = w_make, .wrap = w_wrap, .make_class = w_make_class,
        .super = w_super, .global = w_global, .set_global = w_set_global, .import = w_import,
        .node = w_node, .proxy = w_proxy, .value = w_value, .tensor = w_tensor, .place = w_place,
        .kind_is = w_kind_is, .kind_class = w_kind_class, .keep_attribute = w_keep_attribute,
        .raise = w_raise, .caught = w_caught, .matches = w_matches,
        .would_catch = w_would_catch, .explain = w_explain,
        .ctx = w};
    w->globals = toy_items(w, TOY_VALUE, CFX_OBJECT_DICT, NULL, 0, err);
    if (!w->globals || toy_exception(w, "Exception", NULL, err) != CFX_OK)
        return CFX_E_NOMEM;
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (toy_exception(w, exceptions[i], "Exception", err) != CFX_OK)
            return CFX_E_NOMEM;
    return CFX_OK;
}

/* A global that refers to itself keeps what it holds alive: they go one by one. */
static inline void toy_world_end(toy_world *w)
{
    toy_release(w, w->pending);
    toy_release(w, w->globals);
}

#endif
