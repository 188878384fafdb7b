/* assign.c - targets: names, attributes, items, and tuples of them; `=`, `+=`, `del`. */
#include "graph_control_impl.h"

/* ---- attributes and items ------------------------------------------------------------------ */

/* Whether a graph has to write what is assigned to an attribute of a module. It does not for a
 * setting, such as eps: calls get its value, and the module must have the old one at the end. */
static bool is_setting(cfx_evaluator *ev, cfx_object *v)
{
    if (!v || cfxi_eval_node(ev, v))
        return false;
    switch (ev->w->kind(ev->w->ctx, v)) {
    case CFX_OBJECT_NONE:
    case CFX_OBJECT_BOOL:
    case CFX_OBJECT_INT:
    case CFX_OBJECT_FLOAT:
    case CFX_OBJECT_STR:
        return true;
    default:
        return false;
    }
}

bool cfxi_eval_set(cfx_evaluator *ev, cfx_object *o, const char *name, cfx_object *v)
{
    /* what is set of a tensor is a node: there is nothing to put back */
    const bool is_node = cfxi_eval_node(ev, o) || ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_TENSOR;
    if (is_node && v && !(v = cfxi_eval_current_deep(ev, v)))
        return false;
    if (!is_node && !cfxi_eval_journal_attribute(ev, o, name))
        return false;
    const bool of_module = !is_node && ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_MODULE;
    ev->writes += of_module && !is_setting(ev, v);
    if (of_module && !cfxi_eval_note_assigned(ev, o, name, v))
        return false;
    return ev->w->set(ev->w->ctx, o, name, v, ev->err) == CFX_OK;
}

bool cfxi_eval_set_item(cfx_evaluator *ev, cfx_object *o, cfx_object *key, cfx_object *v)
{
    bool done = false;
    if (!cfxi_eval_growing_set_item(ev, o, key, v, &done))
        return false;
    if (done)
        return true;
    if (cfxi_eval_node(ev, o) && v && !(v = cfxi_eval_current_deep(ev, v)))
        return false;
    key = cfxi_eval_current(ev, key);
    cfxi_watch watch = {0};
    if (!v && !cfxi_eval_check_going(ev, o, "__delitem__"))
        return false;
    const bool set = cfxi_eval_will_change(ev, o) && cfxi_eval_watch_object(ev, o, &watch) &&
                     ev->w->set_item(ev->w->ctx, o, key, v, ev->err) == CFX_OK;
    return cfxi_eval_watch_end(ev, &watch) && set;
}

/* ---- unpacking ----------------------------------------------------------------------------- */

static size_t star_in(cfxi_ast_list targets)
{
    size_t i = 0;
    while (i < targets.count && targets.items[i]->kind != CFXI_AST_Starred)
        i++;
    return i;
}

cfx_object *cfxi_eval_item_at(cfx_evaluator *ev, cfx_object *o, int64_t i)
{
    cfx_object *index = cfxi_eval_int(ev, i);
    return index ? cfxi_eval_item(ev, o, index) : NULL;
}

cfx_object *cfxi_eval_item_rest(cfx_evaluator *ev, cfx_object *o, size_t before, size_t after)
{
    cfx_object *bounds[] = {cfxi_eval_int(ev, (int64_t)before),
                            after ? cfxi_eval_int(ev, -(int64_t)after) : ev->none, ev->none};
    cfx_object *slice =
        bounds[0] && bounds[1] ? cfxi_eval_build(ev, CFX_BUILD_SLICE, bounds, 3) : NULL;
    cfx_object *rest = slice ? cfxi_eval_item(ev, o, slice) : NULL;
    return rest ? cfxi_eval_record(ev, "builtins.list", &rest, 1) : NULL;
}

/* As many items as there must be, or as many more as a star takes: checked when the graph runs,
 * unless that is known. */
static bool check_length(cfx_evaluator *ev, cfx_object *v, size_t wanted, bool more)
{
    const size_t known = cfxi_eval_length(ev, v);
    if (known != SIZE_MAX && known >= wanted && (more || known == wanted))
        return true;
    cfx_object *args[] = {v, cfxi_eval_int(ev, (int64_t)wanted), ev->true_};
    return args[1] && cfxi_eval_record(ev, "cfx.check_length", args, more ? 3 : 2);
}

/* The items of a graph value: as many as there are targets; a star takes a list of the rest. */
static bool graph_items(cfx_evaluator *ev, cfxi_ast_list targets, cfx_object *v,
                        cfxi_objects *items)
{
    const cfx_object_kind kind = cfxi_eval_kind(ev, v);
    if (kind == CFX_OBJECT_BOOL || kind == CFX_OBJECT_INT || kind == CFX_OBJECT_FLOAT)
        return cfxi_eval_fail_as(ev, NULL, CFX_E_TYPE, "TypeError", "cannot unpack non-iterable %s "
                                 "object", cfxi_eval_kind_name(ev, v));
    const size_t star = star_in(targets);
    const bool starred = star < targets.count;
    if (!check_length(ev, v, targets.count - starred, starred))
        return false;
    for (size_t i = 0; i < targets.count; i++) {
        const int64_t back = (int64_t)(targets.count - i);  /* behind the star, from the end */
        cfx_object *item = i == star ? cfxi_eval_item_rest(ev, v, i, targets.count - i - 1)
                                     : cfxi_eval_item_at(ev, v, i < star ? (int64_t)i : -back);
        if (!cfxi_eval_push(ev, items, item))
            return false;
    }
    return true;
}

static bool check_count(cfx_evaluator *ev, cfxi_ast_list targets, size_t n)
{
    const bool starred = star_in(targets) < targets.count;
    const size_t wanted = targets.count - starred;
    if (n < wanted)
        return cfxi_eval_fail_as(ev, NULL, CFX_E_VALUE, "ValueError",
                                 "not enough values to unpack "
                                 "(expected %s%zu, got %zu)",
                                 starred ? "at least " : "", wanted, n);
    if (n > wanted && !starred)
        return cfxi_eval_fail_as(ev, NULL, CFX_E_VALUE, "ValueError", "too many values to unpack "
                                 "(expected %zu)", wanted);
    return true;
}

/* `whole`: the item for a star is the list that it takes. */
static bool assign_items(cfx_evaluator *ev, cfxi_ast_list targets, cfx_object **items, size_t n,
                         bool whole)
{
    const size_t star = star_in(targets);
    const size_t rest = n + 1 - targets.count;  /* what the star takes */
    for (size_t i = 0; i < targets.count; i++) {
        const cfxi_ast *target = targets.items[i];
        cfx_object *v;
        if (i == star) {
            target = cfxi_syntax_as_Starred(target)->value;
            v = whole ? items[i] : cfxi_eval_new_list(ev, items + i, rest);
        } else {
            v = items[i < star ? i : i - 1 + rest];
        }
        if (!v || !cfxi_eval_assign(ev, target, v))
            return false;
    }
    return true;
}

static bool unpack(cfx_evaluator *ev, const cfxi_ast *target, cfxi_ast_list targets, cfx_object *v)
{
    cfxi_objects items = {0};
    cfxi_eval_at(ev, target);
    if (!(v = cfxi_eval_drained(ev, v)))
        return false;
    if (cfxi_eval_node(ev, v) && cfxi_eval_kind(ev, v) == CFX_OBJECT_DICT &&
        !(v = cfxi_eval_record(ev, "builtins.list", &v, 1)))
        return false;
    if (cfxi_eval_node(ev, v))
        return graph_items(ev, targets, v, &items) &&
               assign_items(ev, targets, items.items, items.n, true);
    return cfxi_eval_items(ev, v, &items.items, &items.n) && check_count(ev, targets, items.n) &&
           assign_items(ev, targets, items.items, items.n, false);
}

/* ---- targets ------------------------------------------------------------------------------- */

/* Sets an attribute or item; v NULL deletes it. */
static bool change_attribute(cfx_evaluator *ev, const cfxi_Attribute *a, cfx_object *v)
{
    cfx_object *o = cfxi_eval(ev, a->value);
    const char *name = o ? cfxi_eval_mangle(ev, a->attr) : NULL;
    if (!name)
        return false;
    cfxi_eval_at(ev, &a->ast);
    return cfxi_eval_set(ev, o, name, v);
}

static bool change_item(cfx_evaluator *ev, const cfxi_Subscript *s, cfx_object *v)
{
    cfx_object *o = cfxi_eval_raw(ev, s->value);
    cfx_object *key = o ? cfxi_eval(ev, s->slice) : NULL;
    if (!key)
        return false;
    cfxi_eval_at(ev, &s->ast);
    return cfxi_eval_set_item(ev, o, key, v);
}

/* A graph value that an assignment has made is called after the variable. In a branch or loop it is
 * not: there, generated code has variables of its own choice, and would be captured otherwise. */
static bool name_new(cfx_evaluator *ev, const char *name, cfx_object *v)
{
    const cfx_node *n = v && ev->since ? cfxi_eval_node(ev, v) : NULL;
    return !n || ev->region->parent || !cfx_node_before(ev->since, n) ||
           cfxi_eval_visible_frame(ev, ev->frame) != ev->frame || cfxi_eval_name_after(ev, v, name);
}

static bool change(cfx_evaluator *ev, const cfxi_ast *target, cfx_object *v)
{
    switch ((unsigned)target->kind) {
    case CFXI_AST_Name:
        cfxi_eval_at(ev, target);
        return name_new(ev, cfxi_syntax_as_Name(target)->id, v) &&
               cfxi_eval_bind_name(ev, cfxi_syntax_as_Name(target)->id, v);
    case CFXI_AST_Attribute:
        return change_attribute(ev, cfxi_syntax_as_Attribute(target), v);
    case CFXI_AST_Subscript:
        return change_item(ev, cfxi_syntax_as_Subscript(target), v);
    }
    return cfxi_eval_fail(ev, target, CFX_E_SYNTAX, "cannot assign to or delete this expression");
}

bool cfxi_eval_assign(cfx_evaluator *ev, const cfxi_ast *target, cfx_object *v)
{
    if (target->kind == CFXI_AST_Tuple)
        return unpack(ev, target, cfxi_syntax_as_Tuple(target)->elts, v);
    if (target->kind == CFXI_AST_List)
        return unpack(ev, target, cfxi_syntax_as_List(target)->elts, v);
    if (target->kind == CFXI_AST_Starred)
        return cfxi_eval_fail(ev, target, CFX_E_SYNTAX, "starred assignment target must be in a "
                              "list or tuple: write *a, = ...");
    return change(ev, target, v);
}

bool cfxi_eval_delete(cfx_evaluator *ev, const cfxi_ast *target)
{
    cfxi_ast_list parts = {0};
    if (target->kind == CFXI_AST_Tuple)
        parts = cfxi_syntax_as_Tuple(target)->elts;
    else if (target->kind == CFXI_AST_List)
        parts = cfxi_syntax_as_List(target)->elts;
    else
        return change(ev, target, NULL);
    for (size_t i = 0; i < parts.count; i++) {
        if (!cfxi_eval_delete(ev, parts.items[i]))
            return false;
    }
    return true;
}

/* ---- += ------------------------------------------------------------------------------------ */

/* A graph value that Python's += would not change: the name gets another. */
static bool is_immutable(cfx_evaluator *ev, cfx_object *o)
{
    switch (cfxi_eval_kind(ev, o)) {
    case CFX_OBJECT_BOOL:
    case CFX_OBJECT_INT:
    case CFX_OBJECT_FLOAT:
    case CFX_OBJECT_STR:
    case CFX_OBJECT_TUPLE:
        return true;
    default:
        return false;
    }
}

/* `old op= value`; a list that is growing is extended and stays itself. */
static cfx_object *operate(cfx_evaluator *ev, const cfxi_AugAssign *a, cfx_object *old,
                           cfx_object *value)
{
    const cfx_world *w = ev->w;
    bool done = false;
    cfxi_eval_at(ev, &a->ast);
    const bool is_list = !cfxi_eval_node(ev, old) && a->op == CFXI_AST_Add &&
                         ev->w->kind(ev->w->ctx, old) == CFX_OBJECT_LIST;
    const bool is_dict = a->op == CFXI_AST_BitOr && cfxi_eval_is_plain_dict(ev, old);
    if (is_list || is_dict) {
        cfx_object *none = cfxi_eval_growing_method(ev, old, is_list ? "extend" : "update",
                                                    cfxi_eval_args(&value, 1), &done);
        if (done)
            return none ? old : NULL;
    }
    old = cfxi_eval_current(ev, old);
    value = cfxi_eval_current(ev, value);
    /* a tensor may be added to while a loop goes over it, but a list grows */
    if (a->op == CFXI_AST_Add && cfxi_eval_is_container(cfxi_eval_kind(ev, value)) &&
        !cfxi_eval_check_going(ev, old, "__iadd__"))
        return NULL;
    if (!cfxi_eval_will_change(ev, old))
        return NULL;
    const bool in_place = !cfxi_eval_node(ev, old) || !is_immutable(ev, old);
    cfxi_watch watch;
    cfx_object *made = NULL;
    if (cfxi_eval_watch_object(ev, old, &watch))
        made = cfxi_eval_pool(
            ev, w->binary(w->ctx, cfxi_eval_sign_of(a->op), old, value, in_place, ev->err));
    if (!cfxi_eval_watch_end(ev, &watch))
        return NULL;
    return made == old ? made : cfxi_eval_note_new(ev, made);
}

static bool augment_name(cfx_evaluator *ev, const cfxi_AugAssign *a)
{
    const char *name = cfxi_syntax_as_Name(a->target)->id;
    cfx_object *old = cfxi_eval_raw(ev, a->target);
    cfx_object *value = old ? cfxi_eval(ev, a->value) : NULL;
    cfx_object *made = value ? operate(ev, a, old, value) : NULL;
    return made && cfxi_eval_bind_name(ev, name, made);
}

static bool augment_attribute(cfx_evaluator *ev, const cfxi_AugAssign *a)
{
    const cfxi_Attribute *target = cfxi_syntax_as_Attribute(a->target);
    cfx_object *o = cfxi_eval(ev, target->value);
    const char *name = o ? cfxi_eval_mangle(ev, target->attr) : NULL;
    if (!name)
        return false;
    cfxi_eval_at(ev, a->target);
    cfx_object *old = cfxi_eval_get(ev, o, name);
    cfx_object *value = old ? cfxi_eval(ev, a->value) : NULL;
    cfx_object *made = value ? operate(ev, a, old, value) : NULL;
    return made && cfxi_eval_set(ev, o, name, made);
}

static bool augment_item(cfx_evaluator *ev, const cfxi_AugAssign *a)
{
    const cfxi_Subscript *target = cfxi_syntax_as_Subscript(a->target);
    cfx_object *o = cfxi_eval_raw(ev, target->value);
    cfx_object *key = o ? cfxi_eval(ev, target->slice) : NULL;
    if (!key)
        return false;
    cfxi_eval_at(ev, a->target);
    cfx_object *old = cfxi_eval_item(ev, o, key);
    cfx_object *value = old ? cfxi_eval(ev, a->value) : NULL;
    cfx_object *made = value ? operate(ev, a, old, value) : NULL;
    return made && cfxi_eval_set_item(ev, o, key, made);
}

bool cfxi_eval_augment(cfx_evaluator *ev, const cfxi_AugAssign *a)
{
    switch ((unsigned)a->target->kind) {
    case CFXI_AST_Name:
        return augment_name(ev, a);
    case CFXI_AST_Attribute:
        return augment_attribute(ev, a);
    case CFXI_AST_Subscript:
        return augment_item(ev, a);
    }
    return cfxi_eval_fail(ev, a->target, CFX_E_SYNTAX, "this cannot be the target of an augmented "
                          "assignment");
}
