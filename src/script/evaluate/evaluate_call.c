/* evaluate_call.c - calls: functions that have a source are run here, all else the world calls. */
#include "graph_control_impl.h"

/* ---- functions with a source --------------------------------------------------------------- */

static cfx_object *fail_generator(cfx_evaluator *ev, const cfx_script_def *def)
{
    const cfxi_ast *at = def->yields;
    const bool async = at->kind == CFXI_AST_AsyncFunctionDef || at->kind == CFXI_AST_Await;
    if (async)
        return cfxi_eval_fail(ev, at, CFX_E_UNSUPPORTED,
                              "an asynchronous function cannot be captured; "
                              "write a plain one");
    return cfxi_eval_fail(ev, at, CFX_E_UNSUPPORTED,
                          "'%.60s' is a generator (yield), which cannot be "
                          "captured; collect the values in a list and return it",
                          def->name);
}

cfx_object *cfxi_eval_run_function(cfx_evaluator *ev)
{
    cfxi_frame *f = ev->frame;
    const cfx_script_def *def = f->def;
    cfxi_flow flow = CFXI_FLOW_FAIL;
    if (def->yields) {
        fail_generator(ev, def);
    } else if (def->kind == CFXI_DEF_LAMBDA) {
        f->result = cfxi_eval_raw(ev, cfxi_syntax_as_Lambda(def->ast)->body);
        flow = f->result ? CFXI_FLOW_RETURN : cfxi_eval_failed_flow(ev);
    } else {
        flow = cfxi_eval_exec_block(ev, ((const cfxi_FunctionDef *)def->ast)->body);
    }
    if (flow == CFXI_FLOW_ON) {
        f->result = ev->none;
        flow = CFXI_FLOW_RETURN;
    }
    if (flow != CFXI_FLOW_FAIL)
        flow = cfxi_eval_settle(ev, f->pendings, flow, CFXI_FLOW_RETURN);
    cfxi_eval_frame_pop(ev);
    return flow == CFXI_FLOW_ON ? f->result : NULL;
}

static cfx_object *run_bound(cfx_evaluator *ev, cfx_object *self, cfx_call_args args,
                             const cfxi_defaults *defaults)
{
    if (cfxi_eval_bind_call(ev, self, args, defaults))
        return cfxi_eval_run_function(ev);
    cfxi_eval_frame_pop(ev);
    return NULL;
}

cfx_object *cfxi_eval_call_own(cfx_evaluator *ev, cfx_script_function *f, cfx_object *self,
                               cfx_call_args args)
{
    const cfxi_defaults defaults = {f->defaults, f->n_defaults, f->kw_defaults};
    if (f->ev != ev)
        return cfxi_eval_fail(ev, NULL, CFX_E_VALUE,
                              "'%.60s' was defined during an earlier capture, which has ended; "
                              "define the function again",
                              f->def->name);
    bool done = false;
    cfx_object *v = cfxi_eval_prelude_own(ev, f->def, args, &done);
    if (done)
        return v;
    if (f->def->kind == CFXI_DEF_COMPREHENSION)
        return cfxi_eval_generator_step(ev, f, args);
    if (!cfxi_eval_frame_push(ev, f->def, f->outer, f->globals))
        return NULL;
    if (f->class_cell)
        ev->frame->class_cell = f->class_cell;
    return run_bound(ev, self, args, &defaults);
}

/* The defaults of keyword-only parameters: of a dict, one for each. */
static bool take_named_defaults(cfx_evaluator *ev, const cfx_script_callee *c, cfxi_defaults *out)
{
    const cfxi_ast_list params = c->def->params->kwonlyargs;
    cfx_object **values = cfxi_eval_ev_alloc(ev, (params.count + 1) * sizeof *values);
    cfx_object **items;
    size_t n;
    if (!values || !cfxi_eval_contents(ev, c->kw_defaults, &items, &n))
        return false;
    for (size_t i = 0; i + 1 < n; i += 2) {
        size_t size;
        const char *key = ev->w->text(ev->w->ctx, items[i], &size);
        for (size_t k = 0; key && k < params.count; k++) {
            const char *name = cfxi_syntax_as_arg(params.items[k])->arg;
            if (strlen(name) == size && memcmp(name, key, size) == 0)
                values[k] = items[i + 1];
        }
    }
    out->named = values;
    return true;
}

static bool take_defaults(cfx_evaluator *ev, const cfx_script_callee *c, cfxi_defaults *out)
{
    cfx_object **items;
    *out = (cfxi_defaults){0};
    if (c->defaults) {
        if (!cfxi_eval_contents(ev, c->defaults, &items, &out->n))
            return false;
        out->items = items;
    }
    return !c->kw_defaults || take_named_defaults(ev, c, out);
}

static cfx_object *call_source(cfx_evaluator *ev, const cfx_script_callee *c, cfx_call_args args)
{
    cfxi_defaults defaults;
    if (!take_defaults(ev, c, &defaults) || !cfxi_eval_frame_push(ev, c->def, NULL, c->globals))
        return NULL;
    ev->frame->n_free = c->n_free;
    ev->frame->free_names = c->free_names;
    ev->frame->free_values = c->free_values;
    for (size_t i = 0; i < c->n_free; i++) {
        if (strcmp(c->free_names[i], "__class__") == 0)
            ev->frame->class_cell = c->free_values[i];
    }
    return run_bound(ev, c->self, args, &defaults);
}

/* ---- classes, modules, partial functions --------------------------------------------------- */

/* The same arguments with n more before them. */
static bool prepend(cfx_evaluator *ev, cfx_object *const *first, size_t n, cfx_call_args *args)
{
    cfxi_objects all = {0};
    for (size_t i = 0; i < n; i++) {
        if (!cfxi_eval_push(ev, &all, first[i]))
            return false;
    }
    for (size_t i = 0; i < args->n; i++) {
        if (!cfxi_eval_push(ev, &all, args->args[i]))
            return false;
    }
    args->args = all.items;
    args->n = all.n;
    return true;
}

static cfx_object *call_class(cfx_evaluator *ev, cfx_object *class, const cfx_script_callee *c,
                              cfx_call_args args)
{
    cfx_object *o = cfxi_eval_pool(ev, ev->w->make(ev->w->ctx, class, ev->err));
    if (o && !cfxi_eval_born(ev, o))
        return NULL;
    if (!o || !c->function)
        return o;
    return prepend(ev, &o, 1, &args) && cfxi_eval_call(ev, c->function, args) ? o : NULL;
}

static cfx_object *call_module(cfx_evaluator *ev, cfx_object *module, const cfx_script_callee *c,
                               cfx_call_args args)
{
    cfx_object *v = NULL;
    if (ev->w->enter(ev->w->ctx, module, ev->err) != CFX_OK)
        return NULL;
    if (c->kind == CFX_CALLEE_MODULE)
        v = cfxi_eval_call(ev, c->function, args);
    else if (args.n != 1 || args.n_named != 0)
        cfxi_eval_fail_as(ev, NULL, CFX_E_TYPE, "TypeError",
                          "%.80s takes 1 argument but %zu were given",
                          ev->w->type_name(ev->w->ctx, module), args.n);
    else
        v = args.args[0];
    for (size_t i = 0; v && c->kind == CFX_CALLEE_CHAIN && i < c->n_parts; i++)
        v = cfxi_eval_call(ev, c->parts[i], cfxi_eval_args(&v, 1));
    ev->w->leave(ev->w->ctx);
    return v;
}

/* Arguments by name: those of a call stand before those that were given earlier. */
typedef struct named {
    cfxi_objects values;
    const char **names;
    size_t capacity;
} named;

static bool has_name(const named *n, const char *name)
{
    for (size_t i = 0; i < n->values.n; i++) {
        if (strcmp(n->names[i], name) == 0)
            return true;
    }
    return false;
}

static bool add_named(cfx_evaluator *ev, named *n, const char *name, cfx_object *v)
{
    if (n->values.n == n->capacity) {
        const size_t capacity = n->capacity ? 2 * n->capacity : 8;
        const char **more = cfxi_eval_ev_alloc(ev, capacity * sizeof *more);
        if (!more)
            return false;
        if (n->capacity > 0)
            memcpy(more, n->names, n->values.n * sizeof *more);
        n->names = more;
        n->capacity = capacity;
    }
    n->names[n->values.n] = name;
    return cfxi_eval_push(ev, &n->values, v);
}

/* A key of a dict that is a name of an argument: a text in the arena. */
static const char *argument_name(cfx_evaluator *ev, cfx_object *key)
{
    size_t size = 0;
    const cfx_object_kind kind = cfxi_eval_kind(ev, key);
    const char *text = kind == CFX_OBJECT_STR && !cfxi_eval_node(ev, key)
                           ? ev->w->text(ev->w->ctx, key, &size) : NULL;
    if (!text)
        return cfxi_eval_fail_as(ev, NULL, CFX_E_TYPE, "TypeError", "keywords must be strings");
    return cfxi_eval_text(ev, key);
}

/* Puts those of a dict in; `may_repeat`: names that are there already stay. */
static bool add_dict(cfx_evaluator *ev, named *n, const cfxi_objects *items, bool may_repeat)
{
    for (size_t i = 0; i + 1 < items->n; i += 2) {
        const char *name = argument_name(ev, items->items[i]);
        if (!name)
            return false;
        const bool there = has_name(n, name);
        if (there && !may_repeat)
            return cfxi_eval_fail_as(ev, NULL, CFX_E_TYPE, "TypeError", "got multiple values for "
                                     "keyword argument '%.60s'", name);
        if (!there && !add_named(ev, n, name, items->items[i + 1]))
            return false;
    }
    return true;
}

/* Positional arguments and named ones as a call has them. */
static bool join_args(cfx_evaluator *ev, cfxi_objects *positional, const named *n,
                      cfx_call_args *out)
{
    for (size_t i = 0; i < n->values.n; i++) {
        if (!cfxi_eval_push(ev, positional, n->values.items[i]))
            return false;
    }
    *out = (cfx_call_args){positional->items, positional->n, n->names, n->values.n};
    return true;
}

static cfx_object *call_partial(cfx_evaluator *ev, const cfx_script_callee *c, cfx_call_args args)
{
    cfxi_objects positional = {0};
    cfxi_objects given = {0};
    named n = {0};
    const size_t first = args.n - args.n_named;
    for (size_t i = 0; i < c->n_parts; i++) {
        if (!cfxi_eval_push(ev, &positional, c->parts[i]))
            return NULL;
    }
    for (size_t i = 0; i < args.n; i++) {
        if (i < first ? !cfxi_eval_push(ev, &positional, args.args[i])
                      : !add_named(ev, &n, args.names[i - first], args.args[i]))
            return NULL;
    }
    if (c->named && (!cfxi_eval_mapping(ev, c->named, &given) || !add_dict(ev, &n, &given, true)))
        return NULL;
    return join_args(ev, &positional, &n, &args) ? cfxi_eval_call(ev, c->function, args) : NULL;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* A method of a list, dict or set that was taken before: `add = out.append`, then add(x). */
static cfx_object *call_bound(cfx_evaluator *ev, cfx_object *f, cfx_object *self,
                              cfx_call_args args)
{
    bool done = false;
    size_t size;
    if (cfxi_eval_current(ev, self) != self) {
        cfx_object *name = cfxi_eval_get(ev, f, "__name__");
        const char *text = name ? ev->w->text(ev->w->ctx, name, &size) : NULL;
        cfx_object *v = text ? cfxi_eval_growing_method(ev, self, text, args, &done) : NULL;
        if (done || !text)
            return v;
    }
    return cfxi_eval_world_call_bound(ev, f, self, args);
}

/* Functions that are evaluated may keep the generators that they are given. */
static bool keep_generators(cfx_evaluator *ev, cfx_call_args *args)
{
    size_t i = 0;
    while (ev->lazy.n > 0 && i < args->n &&
           cfxi_base_pointers_get(&ev->lazy, args->args[i]) != args->args[i])
        i++;
    if (ev->lazy.n == 0 || i == args->n)
        return true;
    cfx_object **kept = cfxi_eval_ev_alloc(ev, args->n * sizeof *kept);
    for (size_t k = 0; kept && k < args->n; k++)
        if (!(kept[k] = cfxi_eval_keep_generator(ev, args->args[k])))
            return false;
    args->args = kept;
    return kept != NULL;
}

static cfx_object *call_as(cfx_evaluator *ev, cfx_object *f, const cfx_script_callee *c,
                           cfx_call_args args)
{
    const bool evaluated = c->kind != CFX_CALLEE_DIRECT && c->kind != CFX_CALLEE_SPECIAL;
    if (evaluated && !keep_generators(ev, &args))
        return NULL;
    switch (c->kind) {
    case CFX_CALLEE_DIRECT:
        return cfxi_eval_kept_iterator(ev, c->self ? call_bound(ev, f, c->self, args)
                                                   : cfxi_eval_world_call(ev, f, args));
    case CFX_CALLEE_SPECIAL:
        if (!ev->frame)  /* its regions belong to the function that calls it */
            return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED, "a function of the language cannot "
                                  "be captured by itself; call it in a function of your own");
        return cfxi_eval_call_special(ev, c->special, f, args);
    case CFX_CALLEE_OWN:
        return cfxi_eval_call_own(ev, c->own, c->self, args);
    case CFX_CALLEE_SOURCE:
        return call_source(ev, c, args);
    case CFX_CALLEE_CLASS:
        return call_class(ev, f, c, args);
    case CFX_CALLEE_MODULE:
    case CFX_CALLEE_CHAIN:
        return call_module(ev, f, c, args);
    case CFX_CALLEE_PARTIAL:
        return call_partial(ev, c, args);
    }
    return cfxi_eval_world_call(ev, f, args);
}

cfx_object *cfxi_eval_call(cfx_evaluator *ev, cfx_object *f, cfx_call_args args)
{
    cfx_script_callee callee = {.kind = CFX_CALLEE_DIRECT};
    if (ev->w->callee(ev->w->ctx, f, &callee, ev->err) != CFX_OK || !cfxi_eval_enter(ev, NULL))
        return NULL;
    cfx_object *v = call_as(ev, f, &callee, args);
    ev->nesting--;
    return v;
}

typedef struct lookup {
    cfx_object *dict, *key, *otherwise;
} lookup;

static cfxi_flow way_found(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    const lookup *l = ctx;
    *value = cfxi_eval_item(ev, l->dict, l->key);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfxi_flow way_missing(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    (void)ev;
    *value = ((const lookup *)ctx)->otherwise;
    return CFXI_FLOW_ON;
}

/* `dict.get(key, otherwise)` of a key that is a graph value. */
static cfx_object *call_get(cfx_evaluator *ev, cfx_object *dict, cfx_call_args args)
{
    lookup l = {dict, args.args[0], args.n > 1 ? args.args[1] : ev->none};
    cfx_object *v = NULL;
    cfx_object *found = cfxi_eval_compare(ev, CFX_SIGN_IN, l.key, dict);
    return found && cfxi_eval_branch(ev, found, way_found, way_missing, &l, &v) == CFXI_FLOW_ON ? v
                                                                                           : NULL;
}

static bool is_get(cfx_evaluator *ev, cfx_object *o, const char *name, cfx_call_args args)
{
    return strcmp(name, "get") == 0 && args.n_named == 0 && (args.n == 1 || args.n == 2) &&
           cfxi_eval_node(ev, args.args[0]) && !cfxi_eval_node(ev, o) &&
           ev->w->kind(ev->w->ctx, o) == CFX_OBJECT_DICT;
}

bool cfx_script_method_mutates(const char *method)
{
    static const char names[][28] = {
        "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update",
        "setdefault", "popitem", "add", "discard", "difference_update", "intersection_update",
        "symmetric_difference_update", "move_to_end", "__setitem__", "__delitem__", "__iadd__",
        "__imul__", "__ior__", "__iand__", "__isub__", "__ixor__"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], method) == 0)
            return true;
    }
    return false;
}

cfx_object *cfxi_eval_call_method(cfx_evaluator *ev, cfx_object *o, const char *name,
                                  cfx_call_args args)
{
    bool done = false;
    cfx_object *v = cfxi_eval_growing_method(ev, o, name, args, &done);
    if (done)
        return v;
    if (!(o = cfxi_eval_shown(ev, o)))
        return NULL;
    if (is_get(ev, o, name, args))
        return call_get(ev, o, args);
    if (!cfxi_eval_check_going(ev, o, name) ||
        (cfx_script_method_mutates(name) && !cfxi_eval_will_change(ev, o)))
        return NULL;
    cfx_object *method = cfxi_eval_get_method(ev, o, name);
    return method ? cfxi_eval_call(ev, method, args) : NULL;
}

/* ---- the expression ------------------------------------------------------------------------ */

static bool eval_keywords(cfx_evaluator *ev, cfxi_ast_list keywords, named *n)
{
    for (size_t i = 0; i < keywords.count; i++) {
        const cfxi_keyword *k = cfxi_syntax_as_keyword(keywords.items[i]);
        cfxi_objects items = {0};
        cfx_object *v = cfxi_eval_raw(ev, k->value);
        if (!v)
            return false;
        cfxi_eval_at(ev, &k->ast);
        if (!k->arg) {
            if (!cfxi_eval_mapping(ev, v, &items) || !add_dict(ev, n, &items, false))
                return false;
            continue;
        }
        if (has_name(n, k->arg))
            return cfxi_eval_fail_as(ev, &k->ast, CFX_E_TYPE, "TypeError",
                                     "got multiple values for "
                                     "keyword argument '%.60s'",
                                     k->arg);
        if (!add_named(ev, n, k->arg, v))
            return false;
    }
    return true;
}

/* Methods and functions of torch that take sizes one by one or as a tuple. */
static bool takes_sizes(cfx_evaluator *ev, cfx_object *of, const char *name)
{
    static const char names[][10] = {"reshape", "view", "expand", "repeat", "tile", "permute",
                                     "zeros", "ones", "empty", "rand", "randn", "new_zeros",
                                     "new_ones", "new_empty"};
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, of);
    if (kind != CFX_OBJECT_OTHER && kind != CFX_OBJECT_TENSOR)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static bool eval_args(cfx_evaluator *ev, const cfxi_Call *c, bool sizes, cfx_call_args *args)
{
    cfxi_objects positional = {0};
    named n = {0};
    return cfxi_eval_list(ev, c->args, sizes, &positional) && eval_keywords(ev, c->keywords, &n) &&
           join_args(ev, &positional, &n, args);
}

/* The special function that a call by name is of; CFX_SPECIALS: none, or it fails elsewhere. */
static cfx_script_special special_of(cfx_evaluator *ev, cfx_object *f)
{
    cfx_script_callee callee = {.kind = CFX_CALLEE_DIRECT};
    if (!f || ev->w->callee(ev->w->ctx, f, &callee, ev->err) != CFX_OK)
        return CFX_SPECIALS;
    return callee.kind == CFX_CALLEE_SPECIAL ? callee.special : CFX_SPECIALS;
}

/* list(range(n)) and its like, where what stands in it may depend on data. */
static bool lists_a_head(cfx_evaluator *ev, const cfxi_Call *c, cfx_object *f)
{
    if (c->args.count != 1 || c->keywords.count > 0 || c->func->kind != CFXI_AST_Name ||
        c->args.items[0]->kind != CFXI_AST_Call)
        return false;
    const cfxi_Call *inner = cfxi_syntax_as_Call(c->args.items[0]);
    const cfx_script_special outer = special_of(ev, f);
    if (inner->func->kind != CFXI_AST_Name ||
        (outer != CFX_SPECIAL_LIST && outer != CFX_SPECIAL_TUPLE))
        return false;
    const cfx_script_special which = special_of(ev, cfxi_eval(ev, inner->func));
    return which == CFX_SPECIAL_RANGE || which == CFX_SPECIAL_ENUMERATE ||
           which == CFX_SPECIAL_ZIP || which == CFX_SPECIAL_REVERSED;
}

static cfx_object *eval_listing(cfx_evaluator *ev, const cfxi_Call *c, cfx_object *f)
{
    bool is_new = false;
    cfx_object *all = cfxi_eval_listed(ev, c->args.items[0], &is_new);
    cfxi_eval_at(ev, &c->ast);
    if (all && is_new && special_of(ev, f) == CFX_SPECIAL_LIST)
        return all;
    return all ? cfxi_eval_call(ev, f, cfxi_eval_args(&all, 1)) : NULL;
}

/* any(... for ...), all(...), next(..., otherwise); *done is false if it is another call. */
static cfx_object *eval_question(cfx_evaluator *ev, const cfxi_Call *c, cfx_object *f, bool *done)
{
    *done = false;
    if (c->args.count < 1 || c->args.items[0]->kind != CFXI_AST_GeneratorExp ||
        c->keywords.count > 0 || c->args.count > 2)
        return NULL;
    const cfxi_ast *generator = c->args.items[0];
    const cfx_script_special which = special_of(ev, f);
    cfx_object *otherwise = cfxi_eval_bool(ev, which == CFX_SPECIAL_ALL);
    if (which == CFX_SPECIAL_NEXT && c->args.count == 2) {
        *done = true;
        otherwise = cfxi_eval(ev, c->args.items[1]);
        return otherwise ? cfxi_eval_ask_generator(ev, generator, CFXI_ASK_FIRST, otherwise) : NULL;
    }
    if (c->args.count > 1 || (which != CFX_SPECIAL_ANY && which != CFX_SPECIAL_ALL))
        return NULL;
    *done = true;
    return cfxi_eval_ask_generator(
        ev, generator, which == CFX_SPECIAL_ANY ? CFXI_ASK_ANY : CFXI_ASK_ALL, otherwise);
}

/* What is called, where that is an item: *chosen, if data choose it, and *key. */
static cfx_object *eval_item(cfx_evaluator *ev, const cfxi_Subscript *s, cfx_object **key,
                             cfxi_chosen *chosen)
{
    cfx_object *o = cfxi_eval(ev, s->value);
    *key = o ? cfxi_eval(ev, s->slice) : NULL;
    if (!*key)
        return NULL;
    cfxi_eval_at(ev, &s->ast);
    if (!cfxi_eval_find_chosen(ev, o, *key, chosen))
        return NULL;
    return chosen->n > 0 ? o : cfxi_eval_item(ev, o, *key);
}

cfx_object *cfxi_eval_call_expr(cfx_evaluator *ev, const cfxi_Call *c)
{
    cfxi_chosen chosen = {0};
    cfx_object *key = NULL;
    bool asked = false;
    cfx_call_args args;
    const bool is_method = c->func->kind == CFXI_AST_Attribute;
    const cfxi_ast *of = is_method ? cfxi_syntax_as_Attribute(c->func)->value : c->func;
    const char *name =
        is_method ? cfxi_eval_mangle(ev, cfxi_syntax_as_Attribute(c->func)->attr) : "";
    cfx_object *f = !name ? NULL
                    : of->kind == CFXI_AST_Subscript && !is_method
                        ? eval_item(ev, cfxi_syntax_as_Subscript(of), &key, &chosen)
                        : is_method ? cfxi_eval_raw(ev, of) : cfxi_eval(ev, of);
    if (f && !is_method && lists_a_head(ev, c, f))
        return eval_listing(ev, c, f);
    cfx_object *answer = f && !is_method ? eval_question(ev, c, f, &asked) : NULL;
    if (asked)
        return answer;
    if (!f || ev->err->status != CFX_OK || !eval_args(ev, c, takes_sizes(ev, f, name), &args))
        return NULL;
    cfxi_eval_at(ev, &c->ast);
    if (chosen.n > 0)
        return cfxi_eval_call_chosen(ev, &chosen, key, args);
    return is_method ? cfxi_eval_call_method(ev, f, name, args) : cfxi_eval_call(ev, f, args);
}
