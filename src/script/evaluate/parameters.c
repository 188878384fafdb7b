/* parameters.c - the arguments of a call become the parameters of a function, by Python's rules. */
#include "evaluate_impl.h"

#include <stdio.h>

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
