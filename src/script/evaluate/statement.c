/* statement.c - statements, and the blocks that they stand in. */
#include "evaluate_impl.h"

#include <stdio.h>

/* How many statements are run between two questions whether to stop. */
enum { STEPS_BETWEEN = 256 };

static cfxi_flow flow_of(const cfx_evaluator *ev, bool fine)
{
    return fine ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

/* ---- imports ------------------------------------------------------------------------------- */

static cfx_object *import_module(cfx_evaluator *ev, const char *name, int level)
{
    const cfx_world *w = ev->w;
    return cfxi_eval_pool(ev, w->import(w->ctx, ev->frame->globals, name, level, ev->err));
}

/* `import a.b` binds a, once a.b is there. */
static bool import_one(cfx_evaluator *ev, const cfxi_alias *a)
{
    cfx_object *module = import_module(ev, a->name, 0);
    const size_t first = strcspn(a->name, ".");
    if (!module)
        return false;
    if (a->asname || a->name[first] == '\0')
        return cfxi_eval_bind_name(ev, a->asname ? a->asname : a->name, module);
    const cfxi_names *names = &ev->frame->def->script->tree->names;
    const char *package = cfxi_syntax_names_find(names, a->name, first);
    module = import_module(ev, package, 0);
    return module && cfxi_eval_bind_name(ev, package, module);
}

/* `from m import x`: an attribute, or a module in it. */
static cfx_object *import_from(cfx_evaluator *ev, const cfxi_ImportFrom *i, cfx_object *module,
                               const char *name)
{
    char path[512];
    cfx_object *v = cfxi_eval_get(ev, module, name);
    if (v || ev->err->status != CFX_E_HOST)
        return v;
    cfx_object *why = cfxi_eval_pool(ev, ev->w->caught(ev->w->ctx));
    cfxi_eval_forget_failure(ev);
    const int size = snprintf(path, sizeof path, "%s%s%s", i->module ? i->module : "",
                              i->module ? "." : "", name);
    v = why && size < (int)sizeof path ? import_module(ev, path, i->level) : NULL;
    if (v || ev->err->status != CFX_E_HOST)
        return v;
    cfxi_eval_pool(ev, ev->w->caught(ev->w->ctx));
    cfxi_eval_forget_failure(ev);
    return cfxi_eval_fail_as(ev, NULL, CFX_E_KEY, "ImportError", "cannot import name '%.80s' from "
                             "'%.200s'", name, i->module ? i->module : ".");
}

static bool import_names(cfx_evaluator *ev, const cfxi_ImportFrom *i)
{
    cfx_object *module = import_module(ev, i->module ? i->module : "", i->level);
    for (size_t k = 0; module && k < i->names.count; k++) {
        const cfxi_alias *a = cfxi_syntax_as_alias(i->names.items[k]);
        if (strcmp(a->name, "*") == 0)
            return cfxi_eval_fail(ev, &i->ast, CFX_E_UNSUPPORTED,
                                  "'import *' is not supported; import names explicitly");
        cfx_object *v = import_from(ev, i, module, a->name);
        if (!v || !cfxi_eval_bind_name(ev, a->asname ? a->asname : a->name, v))
            return false;
    }
    return module != NULL;
}

/* ---- simple statements --------------------------------------------------------------------- */

/* Binds the value of an assignment; `last` was the last node before it. */
static bool bind_target(cfx_evaluator *ev, const cfxi_ast *target, cfx_object *v,
                        const cfx_node *last)
{
    const cfx_node *outer = ev->since;  /* a __setitem__ of the program assigns, too */
    ev->since = last;
    const bool fine = cfxi_eval_assign(ev, target, v);
    ev->since = outer;
    return fine;
}

static bool assign_all(cfx_evaluator *ev, const cfxi_Assign *a)
{
    const cfx_node *last = cfx_graph_last(ev->g);
    cfx_object *v = cfxi_eval_raw(ev, a->value);
    for (size_t i = 0; v && i < a->targets.count; i++) {
        if (!bind_target(ev, a->targets.items[i], v, last))
            return false;
    }
    return v != NULL;
}

/* Annotations say nothing to the evaluator. */
static bool assign_annotated(cfx_evaluator *ev, const cfxi_AnnAssign *a)
{
    const cfx_node *last = cfx_graph_last(ev->g);
    cfx_object *v = a->value ? cfxi_eval_raw(ev, a->value) : NULL;
    return !a->value || (v && bind_target(ev, a->target, v, last));
}

static bool delete_all(cfx_evaluator *ev, cfxi_ast_list targets)
{
    for (size_t i = 0; i < targets.count; i++) {
        if (!cfxi_eval_delete(ev, targets.items[i]))
            return false;
    }
    return true;
}

static bool import_all(cfx_evaluator *ev, cfxi_ast_list names)
{
    for (size_t i = 0; i < names.count; i++) {
        if (!import_one(ev, cfxi_syntax_as_alias(names.items[i])))
            return false;
    }
    return true;
}

static cfxi_flow exec_return(cfx_evaluator *ev, const cfxi_Return *r)
{
    cfx_object *v = r->value ? cfxi_eval_raw(ev, r->value) : ev->none;
    if (!v)
        return cfxi_eval_failed_flow(ev);
    ev->frame->result = v;
    cfxi_eval_at(ev, &r->ast);
    return CFXI_FLOW_RETURN;
}

/* ---- all ----------------------------------------------------------------------------------- */

static cfxi_flow refuse(cfx_evaluator *ev, const cfxi_ast *s)
{
    switch ((unsigned)s->kind) {
    case CFXI_AST_AsyncFor:
    case CFXI_AST_AsyncWith:
        cfxi_eval_fail(ev, s, CFX_E_UNSUPPORTED,
                       "'async' cannot be captured; write a plain function");
        break;
    case CFXI_AST_TryStar:
        cfxi_eval_fail(ev, s, CFX_E_UNSUPPORTED, "'except*' cannot be captured; use 'except'");
        break;
    case CFXI_AST_TypeAlias:
        cfxi_eval_fail(ev, s, CFX_E_UNSUPPORTED,
                       "a 'type' statement cannot be captured; move it out of "
                       "the function");
        break;
    default:
        cfxi_eval_fail(ev, s, CFX_E_UNSUPPORTED, "%s cannot be evaluated",
                       cfxi_syntax_ast_name(s->kind));
    }
    return CFXI_FLOW_FAIL;
}

static cfxi_flow exec_node(cfx_evaluator *ev, const cfxi_ast *s)
{
    switch ((unsigned)s->kind) {
    case CFXI_AST_FunctionDef:
    case CFXI_AST_AsyncFunctionDef:
        return cfxi_eval_define(ev, s);
    case CFXI_AST_ClassDef:
        return cfxi_eval_class(ev, cfxi_syntax_as_ClassDef(s));
    case CFXI_AST_Return:
        return exec_return(ev, cfxi_syntax_as_Return(s));
    case CFXI_AST_Delete:
        return flow_of(ev, delete_all(ev, cfxi_syntax_as_Delete(s)->targets));
    case CFXI_AST_Assign:
        return flow_of(ev, assign_all(ev, cfxi_syntax_as_Assign(s)));
    case CFXI_AST_AugAssign:
        return flow_of(ev, cfxi_eval_augment(ev, cfxi_syntax_as_AugAssign(s)));
    case CFXI_AST_AnnAssign:
        return flow_of(ev, assign_annotated(ev, cfxi_syntax_as_AnnAssign(s)));
    case CFXI_AST_For:
        return cfxi_eval_for(ev, cfxi_syntax_as_For(s));
    case CFXI_AST_While:
        return cfxi_eval_while(ev, cfxi_syntax_as_While(s));
    case CFXI_AST_If:
        return cfxi_eval_if(ev, cfxi_syntax_as_If(s));
    case CFXI_AST_With:
        return cfxi_eval_with(ev, cfxi_syntax_as_With(s));
    case CFXI_AST_Match:
        return cfxi_eval_match(ev, cfxi_syntax_as_Match(s));
    case CFXI_AST_Raise:
        return cfxi_eval_raise(ev, cfxi_syntax_as_Raise(s));
    case CFXI_AST_Try:
        return cfxi_eval_try(ev, cfxi_syntax_as_Try(s));
    case CFXI_AST_Assert:
        return cfxi_eval_assert(ev, cfxi_syntax_as_Assert(s));
    case CFXI_AST_Import:
        return flow_of(ev, import_all(ev, cfxi_syntax_as_Import(s)->names));
    case CFXI_AST_ImportFrom:
        return flow_of(ev, import_names(ev, cfxi_syntax_as_ImportFrom(s)));
    case CFXI_AST_Expr:
        if (cfxi_syntax_as_Expr(s)->value->kind == CFXI_AST_Constant)
            return CFXI_FLOW_ON;  /* a docstring */
        return flow_of(ev, cfxi_eval_raw(ev, cfxi_syntax_as_Expr(s)->value) != NULL);
    case CFXI_AST_Global:
    case CFXI_AST_Nonlocal:
    case CFXI_AST_Pass:
        return CFXI_FLOW_ON;
    case CFXI_AST_Break:
        return CFXI_FLOW_BREAK;
    case CFXI_AST_Continue:
        return CFXI_FLOW_CONTINUE;
    }
    return refuse(ev, s);
}

static bool may_go_on(cfx_evaluator *ev)
{
    if (++ev->steps % STEPS_BETWEEN != 0 || !ev->w->interrupted)
        return true;
    return ev->w->interrupted(ev->w->ctx, ev->err) == CFX_OK;
}

cfxi_flow cfxi_eval_exec(cfx_evaluator *ev, const cfxi_ast *statement)
{
    if (!cfxi_eval_enter(ev, statement))
        return CFXI_FLOW_FAIL;
    const cfxi_flow flow = may_go_on(ev) ? exec_node(ev, statement) : CFXI_FLOW_FAIL;
    ev->nesting--;
    if (flow == CFXI_FLOW_FAIL || flow == CFXI_FLOW_RAISE)
        cfxi_eval_note_failure(ev);
    return flow;
}

cfxi_flow cfxi_eval_exec_block(cfx_evaluator *ev, cfxi_ast_list statements)
{
    cfxi_frame *f = ev->frame;
    const cfxi_ast_list *block = f->block;
    const size_t statement = f->statement;
    cfxi_flow flow = CFXI_FLOW_ON;
    f->block = &statements;
    for (size_t i = 0; i < statements.count && flow == CFXI_FLOW_ON; i++) {
        f->statement = i;
        flow = cfxi_eval_exec(ev, statements.items[i]);
    }
    f->block = block;
    f->statement = statement;
    return flow;
}
