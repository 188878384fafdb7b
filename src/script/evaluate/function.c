/* function.c - def, lambda and class; the arguments of a call become the parameters of a function,
 * by Python's rules. */
#include "evaluate_impl.h"

#include <stdio.h>

/* ---- functions ----------------------------------------------------------------------------- */

/* A function of it may read the slots of the frame, and of those around it, at any time. */
static void capture(cfxi_frame *f)
{
    for (; f && !f->captured; f = f->outer)
        f->captured = true;
}

static bool eval_defaults(cfx_evaluator *ev, const cfxi_arguments *p, cfx_script_function *f)
{
    f->defaults = cfxi_eval_ev_alloc(ev, (p->defaults.count + 1) * sizeof *f->defaults);
    f->kw_defaults = cfxi_eval_ev_alloc(ev, (p->kwonlyargs.count + 1) * sizeof *f->kw_defaults);
    if (!f->defaults || !f->kw_defaults)
        return false;
    for (; f->n_defaults < p->defaults.count; f->n_defaults++) {
        cfx_object *v = cfxi_eval_raw(ev, p->defaults.items[f->n_defaults]);
        if (!v)
            return false;
        f->defaults[f->n_defaults] = v;
    }
    for (size_t i = 0; i < p->kw_defaults.count; i++) {
        if (!p->kw_defaults.items[i])
            continue;
        f->kw_defaults[i] = cfxi_eval_raw(ev, p->kw_defaults.items[i]);
        if (!f->kw_defaults[i])
            return false;
    }
    return true;
}

/* Of a generator expression: the step that makes an item of it. The evaluator holds each function
 * that it made, until it ends. */
cfx_object *cfxi_eval_function(cfx_evaluator *ev, const cfxi_ast *ast)
{
    cfx_script_function *f = cfxi_base_alloc(ev->allocator, sizeof *f);
    if (!f) {
        cfxi_base_nomem(ev->err);
        return NULL;
    }
    *f = (cfx_script_function){.allocator = ev->allocator,
                               .ev = ev,
                               .next = ev->functions,
                               .def = cfxi_eval_def_of(ev->frame->def->script, ast),
                               .outer = ev->frame,
                               .globals = ev->frame->globals,
                               .class_cell = ev->frame->class_cell};
    atomic_init(&f->count, 1);
    ev->functions = f;
    capture(ev->frame);
    if (f->def->params && !eval_defaults(ev, f->def->params, f))
        return NULL;
    return cfxi_eval_pool(ev, ev->w->wrap(ev->w->ctx, f, ev->err));
}

cfx_script_function *cfx_script_function_retain(cfx_script_function *f)
{
    atomic_fetch_add_explicit(&f->count, 1, memory_order_relaxed);
    return f;
}

void cfx_script_function_release(cfx_script_function *f)
{
    if (f && atomic_fetch_sub_explicit(&f->count, 1, memory_order_acq_rel) == 1)
        cfxi_base_free(f->allocator, f, sizeof *f);
}

const char *cfx_script_function_name(const cfx_script_function *f) { return f->def->name; }

/* Defaults are those of the last positional parameters. */
static cfx_object *default_of(const cfx_script_function *f, size_t i, size_t positional)
{
    if (i < positional)
        return i + f->n_defaults >= positional ? f->defaults[i + f->n_defaults - positional] : NULL;
    return i - positional < f->def->params->kwonlyargs.count ? f->kw_defaults[i - positional]
                                                             : NULL;
}

bool cfx_script_function_parameter(const cfx_script_function *f, size_t i,
                                   cfx_script_parameter *out)
{
    const cfxi_arguments *p = f->def->params;
    if (!p || i >= f->def->n_params)
        return false;
    const size_t positional = p->posonlyargs.count + p->args.count;
    const size_t named = positional + p->kwonlyargs.count;
    out->name = cfxi_eval_def_parameter(f->def, i);
    out->value = default_of(f, i, positional);
    out->kind = i < p->posonlyargs.count      ? CFX_PARAMETER_POSITION
                : i < positional              ? CFX_PARAMETER_PLAIN
                : i < named                   ? CFX_PARAMETER_NAME
                : i == named && p->vararg     ? CFX_PARAMETER_ARGS
                                              : CFX_PARAMETER_KWARGS;
    return true;
}

/* ---- decorators ---------------------------------------------------------------------------- */

static cfx_object **eval_decorators(cfx_evaluator *ev, cfxi_ast_list list)
{
    cfx_object **made = cfxi_eval_ev_alloc(ev, (list.count + 1) * sizeof *made);
    for (size_t i = 0; made && i < list.count; i++) {
        made[i] = cfxi_eval(ev, list.items[i]);
        if (!made[i])
            return NULL;
    }
    return made;
}

/* Calls the decorators, the last first, and binds the name. */
static cfxi_flow decorate(cfx_evaluator *ev, cfxi_ast_list list, cfx_object **decorators,
                          const char *name, cfx_object *v)
{
    for (size_t i = list.count; v && i-- > 0;) {
        cfxi_eval_at(ev, list.items[i]);
        v = cfxi_eval_call(ev, decorators[i], cfxi_eval_args(&v, 1));
    }
    return v && cfxi_eval_bind_name(ev, name, v) ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

cfxi_flow cfxi_eval_define(cfx_evaluator *ev, const cfxi_ast *ast)
{
    const cfxi_FunctionDef *d = (const cfxi_FunctionDef *)ast;
    cfx_object **decorators = eval_decorators(ev, d->decorator_list);
    cfx_object *f = decorators ? cfxi_eval_function(ev, ast) : NULL;
    return f ? decorate(ev, d->decorator_list, decorators, d->name, f) : cfxi_eval_failed_flow(ev);
}

/* ---- classes ------------------------------------------------------------------------------- */

/* The names that the body annotates, as a tuple; NULL without a failure: none. */
static cfx_object *annotated(cfx_evaluator *ev, const cfxi_ClassDef *c)
{
    cfxi_objects names = {0};
    for (size_t i = 0; i < c->body.count; i++) {
        const cfxi_AnnAssign *a = c->body.items[i]->kind == CFXI_AST_AnnAssign
                                      ? cfxi_syntax_as_AnnAssign(c->body.items[i]) : NULL;
        if (!a || a->target->kind != CFXI_AST_Name)
            continue;
        cfx_object *name = cfxi_eval_str(ev, cfxi_syntax_as_Name(a->target)->id);
        if (!name || !cfxi_eval_push(ev, &names, name))
            return NULL;
    }
    return names.n ? cfxi_eval_tuple(ev, names.items, names.n) : NULL;
}

/* What its body has bound becomes the class. */
static cfx_object *make_class(cfx_evaluator *ev, const cfxi_frame *f, const cfxi_objects *bases)
{
    const cfx_world *w = ev->w;
    const cfx_script_def *def = f->def;
    const char **names = cfxi_eval_ev_alloc(ev, (def->n_locals + (size_t)2) * sizeof *names);
    cfxi_objects values = {0};
    cfx_object *fields = annotated(ev, cfxi_syntax_as_ClassDef(def->ast));
    if (!fields && ev->err->status != CFX_OK)
        return NULL;
    for (uint32_t i = 0; names && i < def->n_locals; i++) {
        if (!f->slots[i].value)
            continue;
        names[values.n] = cfxi_eval_mangle(ev, def->locals[i]);
        if (!names[values.n] || !cfxi_eval_push(ev, &values, f->slots[i].value))
            return NULL;
    }
    if (!names)
        return NULL;
    if (fields) {
        names[values.n] = "__annotations__";
        if (!cfxi_eval_push(ev, &values, fields))
            return NULL;
    }
    return cfxi_eval_pool(ev, w->make_class(w->ctx, def->name, bases->items, bases->n, names,
                                            values.items, values.n, ev->err));
}

/* Its methods learn which class they are written in: super() asks. */
static void tell_methods(cfx_evaluator *ev, const cfx_script_function *before, const cfxi_frame *f,
                         cfx_object *class)
{
    for (cfx_script_function *m = ev->functions; m != before; m = m->next) {
        if (m->outer == f)
            m->class_cell = class;
    }
}

static cfx_object *run_class(cfx_evaluator *ev, const cfxi_ClassDef *c, const cfxi_objects *bases)
{
    const cfx_script_def *def = cfxi_eval_def_of(ev->frame->def->script, &c->ast);
    const cfx_script_function *before = ev->functions;
    cfxi_frame *f = cfxi_eval_frame_push(ev, def, ev->frame, ev->frame->globals);
    if (!f)
        return NULL;
    const cfxi_flow flow = cfxi_eval_exec_block(ev, c->body);
    cfx_object *class = NULL;
    if (flow == CFXI_FLOW_ON)
        class = make_class(ev, f, bases);
    else if (flow != CFXI_FLOW_FAIL && flow != CFXI_FLOW_RAISE)
        cfxi_eval_fail(ev, NULL, CFX_E_SYNTAX, "this statement is not allowed in a class body");
    if (class)
        tell_methods(ev, before, f, class);
    cfxi_eval_frame_pop(ev);
    return class;
}

cfxi_flow cfxi_eval_class(cfx_evaluator *ev, const cfxi_ClassDef *c)
{
    cfxi_objects bases = {0};
    cfx_object **decorators = eval_decorators(ev, c->decorator_list);
    if (!decorators || !cfxi_eval_list(ev, c->bases, false, &bases))
        return cfxi_eval_failed_flow(ev);
    if (c->keywords.count > 0) {
        cfxi_eval_fail(ev, c->keywords.items[0], CFX_E_UNSUPPORTED,
                       "a class with keyword arguments (metaclass) cannot be defined here; move "
                       "the class out of the function");
        return CFXI_FLOW_FAIL;
    }
    cfx_object *class = run_class(ev, c, &bases);
    return class ? decorate(ev, c->decorator_list, decorators, c->name, class)
                 : cfxi_eval_failed_flow(ev);
}

/* ---- parameters ---------------------------------------------------------------------------- */

/* Where the parameters of each kind lie among the slots. */
typedef struct shape {
    size_t n_only;        /* positional-only ones, the first */
    size_t n_positional;  /* with those */
    size_t n_named;       /* keyword-only ones behind them */
    size_t rest;          /* slot of *args, if there is one */
    size_t more;          /* slot of **kwargs */
    bool has_rest, has_more;
} shape;

static shape shape_of(const cfx_script_def *def)
{
    const cfxi_arguments *p = def->params;
    shape s = {.n_only = p->posonlyargs.count,
               .n_positional = p->posonlyargs.count + p->args.count,
               .n_named = p->kwonlyargs.count,
               .has_rest = p->vararg != NULL,
               .has_more = p->kwarg != NULL};
    s.rest = s.n_positional + s.n_named;
    s.more = s.rest + s.has_rest;
    return s;
}

/* "A.f", "g.<locals>.f"; long ones lose their beginning. */
static const char *qualified_name(const cfx_script_def *def, char *out, size_t size)
{
    char *at = out + size - 1;
    *at = '\0';
    for (const char *joint = ""; def && def->kind != CFXI_DEF_MODULE; def = def->outer) {
        const size_t name = strlen(def->name);
        const size_t n = name + strlen(joint);
        if (n > (size_t)(at - out))
            break;
        at -= n;
        memcpy(at, def->name, name);
        memcpy(at + name, joint, strlen(joint));
        joint = def->outer && def->outer->kind == CFXI_DEF_CLASS ? "." : ".<locals>.";
    }
    return at;
}

/* A call with wrong arguments is a mistake where it stands, not in the function. */
static bool fail_call(cfx_evaluator *ev, const char *what)
{
    cfxi_frame *called = ev->frame;
    if (called->caller)
        ev->frame = called->caller;
    char name[120];
    cfxi_eval_fail_as(ev, NULL, CFX_E_TYPE, "TypeError", "%s() %s",
                      qualified_name(called->def, name, sizeof name), what);
    ev->frame = called;
    return false;
}

static void put(cfx_evaluator *ev, size_t slot, cfx_object *v)
{
    cfxi_local *local = &ev->frame->slots[slot];
    local->value = v;
    local->line = ev->frame->def->line;
}

/* ---- by position --------------------------------------------------------------------------- */

static bool fail_too_many(cfx_evaluator *ev, const shape *s, const cfxi_defaults *defaults,
                          size_t given)
{
    char what[160];
    const size_t least = s->n_positional - (defaults ? defaults->n : 0);
    char range[48] = "";
    if (least < s->n_positional)
        snprintf(range, sizeof range, "from %zu to ", least);
    snprintf(what, sizeof what, "takes %s%zu positional argument%s but %zu %s given", range,
             s->n_positional, s->n_positional == 1 && !range[0] ? "" : "s", given,
             given == 1 ? "was" : "were");
    return fail_call(ev, what);
}

static bool put_positional(cfx_evaluator *ev, const shape *s, cfx_object *self, cfx_call_args args,
                           const cfxi_defaults *defaults)
{
    const size_t first = self != NULL;
    const size_t given = first + args.n - args.n_named;
    for (size_t i = 0; i < given && i < s->n_positional; i++)
        put(ev, i, i < first ? self : args.args[i - first]);
    if (given > s->n_positional && !s->has_rest)
        return fail_too_many(ev, s, defaults, given);
    if (!s->has_rest)
        return true;
    cfxi_objects rest = {0};
    for (size_t i = s->n_positional; i < given; i++) {
        if (!cfxi_eval_push(ev, &rest, i < first ? self : args.args[i - first]))
            return false;
    }
    cfx_object *tuple = cfxi_eval_tuple(ev, rest.items, rest.n);
    if (tuple)
        put(ev, s->rest, tuple);
    return tuple != NULL;
}

/* ---- by name ------------------------------------------------------------------------------- */

static bool put_one_named(cfx_evaluator *ev, const shape *s, const char *name, cfx_object *v,
                          cfxi_objects *more)
{
    char what[160];
    const cfx_script_def *def = ev->frame->def;
    const char *own = cfxi_eval_script_name(def->script, name);
    const uint32_t slot = own ? cfxi_eval_def_slot(def, own) : CFXI_NO_SLOT;
    if (slot != CFXI_NO_SLOT && slot >= s->n_only && slot < s->n_positional + s->n_named) {
        if (ev->frame->slots[slot].value) {
            snprintf(what, sizeof what, "got multiple values for argument '%.60s'", name);
            return fail_call(ev, what);
        }
        put(ev, slot, v);
        return true;
    }
    if (s->has_more)
        return cfxi_eval_push(ev, more, cfxi_eval_str(ev, name)) && cfxi_eval_push(ev, more, v);
    if (slot < s->n_only)
        snprintf(what, sizeof what, "got some positional-only arguments passed as keyword "
                 "arguments: '%.60s'", name);
    else
        snprintf(what, sizeof what, "got an unexpected keyword argument '%.60s'", name);
    return fail_call(ev, what);
}

/* "*args" or "**kwargs" of a call from outside: the object is all that the parameter gets. */
static bool is_whole(const shape *s, const char *name, size_t *slot)
{
    const bool more = name[0] == '*' && name[1] == '*';
    *slot = more ? s->more : s->rest;
    return name[0] == '*' && (more ? s->has_more : s->has_rest);
}

static bool put_named(cfx_evaluator *ev, const shape *s, cfx_call_args args)
{
    cfxi_objects more = {0};
    const size_t first = args.n - args.n_named;
    size_t slot;
    for (size_t i = 0; i < args.n_named; i++) {
        cfx_object *v = args.args[first + i];
        if (is_whole(s, args.names[i], &slot))
            put(ev, slot, v);
        else if (!put_one_named(ev, s, args.names[i], v, &more))
            return false;
    }
    if (!s->has_more || ev->frame->slots[s->more].value)
        return true;
    cfx_object *dict =
        cfxi_eval_build(ev, CFX_BUILD_DICT, more.items, more.n);
    if (dict)
        put(ev, s->more, dict);
    return dict != NULL;
}

/* ---- what is left -------------------------------------------------------------------------- */

/* "f() missing 2 required positional arguments: 'a' and 'b'". */
static bool check_all(cfx_evaluator *ev, size_t first, size_t n, const char *kind)
{
    char names[200] = "";
    char what[300];
    size_t missing = 0;
    size_t seen = 0;
    for (size_t i = first; i < first + n; i++)
        missing += !ev->frame->slots[i].value;
    if (missing == 0)
        return true;
    for (size_t i = first; i < first + n; i++) {
        if (ev->frame->slots[i].value)
            continue;
        const char *comma = seen == 0 ? "" : seen + 1 < missing ? ", "
                            : missing == 2 ? " and " : ", and ";
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s'%.60s'", comma,
                 ev->frame->def->locals[i]);
        seen++;
    }
    snprintf(what, sizeof what, "missing %zu required %s argument%s: %s", missing, kind,
             missing == 1 ? "" : "s", names);
    return fail_call(ev, what);
}

static void put_defaults(cfx_evaluator *ev, const shape *s, const cfxi_defaults *d)
{
    for (size_t i = 0; i < s->n_positional; i++) {
        const size_t without = s->n_positional - d->n;
        if (!ev->frame->slots[i].value && i >= without)
            put(ev, i, d->items[i - without]);
    }
    for (size_t i = 0; d->named && i < s->n_named; i++) {
        const size_t slot = s->n_positional + i;
        if (!ev->frame->slots[slot].value && d->named[i])
            put(ev, slot, d->named[i]);
    }
}

bool cfxi_eval_bind_call(cfx_evaluator *ev, cfx_object *self, cfx_call_args args,
                         const cfxi_defaults *defaults)
{
    const shape s = shape_of(ev->frame->def);
    cfxi_defaults given = defaults ? *defaults : (cfxi_defaults){0};
    if (given.n > s.n_positional) {  /* a function whose defaults were changed */
        given.items += given.n - s.n_positional;
        given.n = s.n_positional;
    }
    if (!put_positional(ev, &s, self, args, &given) || !put_named(ev, &s, args))
        return false;
    put_defaults(ev, &s, &given);
    return check_all(ev, 0, s.n_positional, "positional") &&
           check_all(ev, s.n_positional, s.n_named, "keyword-only");
}
