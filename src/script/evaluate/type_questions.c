/* type_questions.c - builtin functions about types and attributes: isinstance, type, callable,
 * getattr, hasattr, setattr, delattr. */
#include "evaluate_impl.h"

/* The name of an attribute, as cfxi_eval_text gives it. */
static const char *text_of(cfx_evaluator *ev, cfx_object *o, const char *what)
{
    size_t size = 0;
    const char *text = NULL;
    if (!cfxi_eval_node(ev, o) && ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_STR)
        text = ev->w->text(ev->w->ctx, o, &size);
    if (cfxi_eval_node(ev, o))
        return cfxi_eval_fail(
            ev, NULL, CFX_E_UNSUPPORTED,
            "the attribute name passed to %s depends on data; compare the name (if name == ...), "
            "or look it up in a dict and call the result",
            what);
    if (!text)
        return cfxi_eval_fail_as(ev, NULL, CFX_E_TYPE, "TypeError",
                                 "%s: attribute name must be string, "
                                 "not '%.60s'",
                                 what, cfxi_eval_kind_name(ev, o));
    return cfxi_eval_text(ev, o);
}

/* ---- questions about types ----------------------------------------------------------------- */

/* Whether one of the classes derives from tuple, as torch.Size does: 1, 0, -1 with ev->err set. */
static int derives_from_tuple(cfx_evaluator *ev, cfx_object *classes)
{
    cfx_object *f = cfxi_eval_builtin(ev, "issubclass");
    cfx_object *tuple = f ? cfxi_eval_builtin(ev, "tuple") : NULL;
    cfx_object **items = &classes;
    size_t n = 1;
    if (!tuple)
        return 0;
    if (ev->w->kind(ev->w->ctx, classes) == CFX_OBJECT_TUPLE &&
        !cfxi_eval_contents(ev, classes, &items, &n))
        return -1;
    for (size_t i = 0; i < n; i++) {
        cfx_object *in[] = {items[i], tuple};
        cfx_object *is = ev->w->kind(ev->w->ctx, items[i]) == CFX_OBJECT_CLASS
                             ? cfxi_eval_world_call(ev, f, cfxi_eval_args(in, 2)) : ev->false_;
        const int truth = is ? ev->w->truth(ev->w->ctx, is, ev->err) : -1;
        if (truth != 0)
            return truth;
    }
    return 0;
}

cfx_object *cfxi_eval_call_isinstance(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    cfx_object *o = args.n == 2 && args.n_named == 0 ? cfxi_eval_current(ev, args.args[0]) : NULL;
    if (o && !cfxi_eval_node(ev, o) && !cfxi_eval_node(ev, args.args[1]) &&
        cfxi_eval_stands_for(ev, o, args.args[1]))
        return ev->true_;
    if (!o || !cfxi_eval_node(ev, o))
        return cfxi_eval_world_call(ev, f, args);
    const cfx_object_kind kind = cfxi_eval_kind(ev, o);
    const bool ours = cfxi_eval_visible_frame(ev, ev->frame) != ev->frame;
    if (kind == CFX_OBJECT_OTHER &&
        !(ours && ev->w->never && ev->w->never(ev->w->ctx, args.args[1])))
        return cfxi_eval_record(ev, "builtins.isinstance", args.args, 2);
    const int is = ev->w->kind_is(ev->w->ctx, kind, args.args[1], ev->err);
    const int may = is == 0 && kind == CFX_OBJECT_TUPLE ? derives_from_tuple(ev, args.args[1]) : 0;
    if (is < 0 || may < 0)
        return NULL;
    return may ? cfxi_eval_record(ev, "builtins.isinstance", args.args, 2)
               : cfxi_eval_bool(ev, is > 0);
}

static cfx_object *class_of_graph_value(cfx_evaluator *ev, cfx_object *o)
{
    const cfx_object_kind kind = cfxi_eval_kind(ev, o);
    cfx_error ignored = {0};
    const char *target = cfx_node_target(cfxi_eval_node(ev, o), NULL, &ignored);
    /* a tuple may be a torch.Size, or have names */
    const bool exact = kind != CFX_OBJECT_TUPLE ||
                       (target && (strcmp(target, "builtins.tuple") == 0 ||
                                   strcmp(target, "builtins.divmod") == 0));
    if (kind == CFX_OBJECT_OTHER || !exact)
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                              "the type of this value depends on data; use isinstance instead");
    return cfxi_eval_pool(ev, ev->w->kind_class(ev->w->ctx, kind, ev->err));
}

cfx_object *cfxi_eval_call_type(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    cfx_object *o = args.n == 1 && args.n_named == 0 ? cfxi_eval_current(ev, args.args[0]) : NULL;
    if (o && cfxi_eval_is_iterator(ev, o))
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                              "the type of an iterator is not known during capture; use "
                              "isinstance(it, collections.abc.Iterator) instead");
    return o && cfxi_eval_node(ev, o) ? class_of_graph_value(ev, o)
                                      : cfxi_eval_world_call(ev, f, args);
}

cfx_object *cfxi_eval_call_callable(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    cfx_object *o = args.n == 1 ? cfxi_eval_current(ev, args.args[0]) : NULL;
    if (!o || !cfxi_eval_node(ev, o))
        return cfxi_eval_world_call(ev, f, args);
    return cfxi_eval_kind(ev, o) == CFX_OBJECT_OTHER
               ? cfxi_eval_record(ev, "builtins.callable", &o, 1)
               : ev->false_;
}

/* ---- attributes ---------------------------------------------------------------------------- */

cfx_object *cfxi_eval_try_get(cfx_evaluator *ev, cfx_object *o, const char *name, bool *missing)
{
    cfx_object *v = cfxi_eval_get(ev, o, name);
    *missing = false;
    if (v || ev->err->status != CFX_E_HOST)
        return v;
    cfx_object *exc = cfxi_eval_pool(ev, ev->w->caught(ev->w->ctx));
    cfx_object *class = exc ? cfxi_eval_builtin(ev, "AttributeError") : NULL;
    cfxi_eval_forget_failure(ev);
    const int matches = class ? ev->w->matches(ev->w->ctx, exc, class, ev->err) : 0;
    if (exc && !class)
        cfxi_base_nomem(ev->err);
    else if (matches > 0)
        *missing = true;
    else if (matches == 0 && exc)
        ev->w->raise(ev->w->ctx, exc, NULL, ev->err);
    return NULL;
}

/* Whether the class of values of a kind has the attribute: 1, 0, or -2 with ev->err set. */
static int class_has(cfx_evaluator *ev, cfx_object_kind kind, const char *name)
{
    bool missing;
    cfx_object *class = cfxi_eval_pool(ev, ev->w->kind_class(ev->w->ctx, kind, ev->err));
    if (!class)
        return -2;
    return cfxi_eval_try_get(ev, class, name, &missing) ? 1 : missing ? 0 : -2;
}

/* Whether an object has an attribute: 1 if it has, or is to be tried; 0 if only data tell; -1 if it
 * has not; -2 with ev->err set. */
static int has_attribute(cfx_evaluator *ev, cfx_object *o, cfx_object *name, const char *text)
{
    const cfx_object_kind kind = cfxi_eval_kind(ev, o);
    const bool is_node = cfxi_eval_node(ev, o) != NULL;
    if (!is_node && kind != CFX_OBJECT_TENSOR)
        return 1;
    const int has = kind == CFX_OBJECT_OTHER ? 0 : class_has(ev, kind, text);
    if (has != 0)
        return has;
    const bool plain = kind == CFX_OBJECT_BOOL || kind == CFX_OBJECT_INT ||
                       kind == CFX_OBJECT_FLOAT || kind == CFX_OBJECT_STR;
    if (is_node)  /* a tensor may have attributes of its own, a torch.Size is a tuple */
        return plain ? -1 : 0;
    cfx_object *f = cfxi_eval_builtin(ev, "hasattr");
    cfx_object *in[] = {o, name};
    cfx_object *own = f ? cfxi_eval_world_call(ev, f, cfxi_eval_args(in, 2)) : NULL;
    if (!own)
        return f ? -2 : 1;
    const int truth = ev->w->truth(ev->w->ctx, own, ev->err);
    return truth < 0 ? -2 : truth ? 1 : -1;
}

cfx_object *cfxi_eval_call_getattr(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    bool missing;
    if (args.n < 2 || args.n > 3 || args.n_named > 0)
        return cfxi_eval_world_call(ev, f, args);
    const char *name = text_of(ev, args.args[1], "getattr()");
    if (!name)
        return NULL;
    if (args.n == 2)
        return cfxi_eval_get(ev, args.args[0], name);
    cfx_object *o = cfxi_eval_current(ev, args.args[0]);
    const int has = has_attribute(ev, o, args.args[1], name);
    if (has == 0) {
        cfx_object *in[] = {o, args.args[1], cfxi_eval_current_deep(ev, args.args[2])};
        return in[2] ? cfxi_eval_record(ev, "builtins.getattr", in, 3) : NULL;
    }
    if (has < 0)
        return has == -1 ? args.args[2] : NULL;
    cfx_object *v = cfxi_eval_try_get(ev, o, name, &missing);
    return missing ? args.args[2] : v;
}

cfx_object *cfxi_eval_call_hasattr(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    bool missing;
    if (args.n != 2 || args.n_named > 0)
        return cfxi_eval_world_call(ev, f, args);
    cfx_object *o = cfxi_eval_current(ev, args.args[0]);
    const char *name = text_of(ev, args.args[1], "hasattr()");
    if (!name)
        return NULL;
    const int has = has_attribute(ev, o, args.args[1], name);
    cfx_object *in[] = {o, args.args[1]};
    if (has == 0)
        return cfxi_eval_record(ev, "builtins.hasattr", in, 2);
    if (has < 0 || cfxi_eval_node(ev, o) || ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_TENSOR)
        return has == -2 ? NULL : cfxi_eval_bool(ev, has > 0);
    cfx_object *v = cfxi_eval_try_get(ev, o, name, &missing);
    return v || missing ? cfxi_eval_bool(ev, v != NULL) : NULL;
}

cfx_object *cfxi_eval_call_setattr(cfx_evaluator *ev, cfx_object *f, cfx_call_args args, size_t n)
{
    if (args.n != n || args.n_named > 0)
        return cfxi_eval_world_call(ev, f, args);
    const char *name = text_of(ev, args.args[1], n == 3 ? "setattr()" : "delattr()");
    if (!name || !cfxi_eval_set(ev, args.args[0], name, n == 3 ? args.args[2] : NULL))
        return NULL;
    return ev->none;
}
