/* function.c - def, lambda and class. */
#include "evaluate_impl.h"

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
