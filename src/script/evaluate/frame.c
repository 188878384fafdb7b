/* frame.c - calls that run, and their names. */
#include "graph_control_impl.h"

#include <stdio.h>

/* ---- frames -------------------------------------------------------------------------------- */

cfxi_frame *cfxi_eval_frame_new(cfx_evaluator *ev, const cfx_script_def *def, cfxi_frame *outer,
                                cfx_object *globals)
{
    cfxi_frame *f = cfxi_eval_ev_alloc(ev, sizeof *f);
    if (!f)
        return NULL;
    f->slots = cfxi_eval_ev_alloc(ev, (def->n_locals + (size_t)1) * sizeof *f->slots);
    if (!f->slots)
        return NULL;
    f->def = def;
    f->caller = ev->frame;
    f->outer = outer;
    f->globals = globals;
    f->class_cell = outer ? outer->class_cell : NULL;
    f->region = ev->region->number;
    f->outside = ev->making;
    f->pendings = cfxi_eval_pendings(ev);
    return f;
}

cfxi_frame *cfxi_eval_frame_push(cfx_evaluator *ev, const cfx_script_def *def, cfxi_frame *outer,
                                 cfx_object *globals)
{
    if (ev->calls >= ev->options.most_calls)
        return cfxi_eval_fail(ev, NULL, CFX_E_LIMIT,
                              "calls are nested more than %u deep here; end the "
                              "recursion earlier, or write it as a loop",
                              (unsigned)ev->options.most_calls);
    cfxi_frame *f = cfxi_eval_frame_new(ev, def, outer, globals);
    if (!f)
        return NULL;
    ev->calls++;
    ev->frame = f;
    return f;
}

void cfxi_eval_frame_pop(cfx_evaluator *ev)
{
    ev->calls--;
    ev->frame = ev->frame->caller;
    if (ev->frame)
        cfxi_eval_at(ev, ev->frame->at);
}

/* ---- private names of classes -------------------------------------------------------------- */

static const char *class_around(const cfx_script_def *def)
{
    while (def && def->kind != CFXI_DEF_CLASS)
        def = def->outer;
    return def ? def->name + strspn(def->name, "_") : "";
}

const char *cfxi_eval_mangle(cfx_evaluator *ev, const char *name)
{
    const size_t size = strlen(name);
    if (name[0] != '_' || name[1] != '_' || (size > 3 && strcmp(name + size - 2, "__") == 0) ||
        size < 3)
        return name;
    const char *class = class_around(ev->frame->def);
    if (!*class)
        return name;
    const size_t room = strlen(class) + size + 2;
    char *private = cfxi_eval_ev_alloc(ev, room);
    if (private)
        snprintf(private, room, "_%s%s", class, name);
    return private;
}

/* ---- reading ------------------------------------------------------------------------------- */

const char *cfxi_eval_kinds_advice(const cfxi_poison *p, const char *otherwise)
{
    return strcmp(p->type[0], p->type[1]) == 0
               ? "use each inside its own branch (a(x) if p else b(x)), and select among the "
                 "results"
               : otherwise;
}

static cfx_object *fail_poisoned(cfx_evaluator *ev, const char *name, const cfxi_poison *p)
{
    switch (p->why) {
    case CFXI_POISON_ONE_SIDE:
        return cfxi_eval_fail(
            ev, NULL, CFX_E_UNSUPPORTED,
            "'%.60s' is assigned in line %u only in a branch that depends on data; assign it "
            "before the branch, or in both branches",
            name, (unsigned)p->line[0]);
    case CFXI_POISON_KINDS:
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                              "'%.60s' has type %s after line %u and type %s after line %u, "
                              "depending on data; %s",
                              name, p->type[0], (unsigned)p->line[0], p->type[1],
                              (unsigned)p->line[1],
                              cfxi_eval_kinds_advice(p, "use the same type in both branches"));
    case CFXI_POISON_LOOP:
        return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                              "'%.60s' is assigned in line %u in a loop that may run zero times; "
                              "assign it before the loop as well",
                              name, (unsigned)p->line[0]);
    }
    return NULL;
}

static cfx_object *fail_unbound(cfx_evaluator *ev, const char *name, bool free)
{
    if (free)
        return cfxi_eval_fail_as(ev, NULL, CFX_E_KEY, "NameError",
                                 "cannot access free variable '%.60s' "
                                 "where it is not associated with a value in enclosing scope",
                                 name);
    return cfxi_eval_fail_as(ev, NULL, CFX_E_KEY, "UnboundLocalError",
                             "cannot access local variable "
                             "'%.60s' where it is not associated with a value",
                             name);
}

static cfx_object *load_global(cfx_evaluator *ev, const char *name)
{
    name = cfxi_eval_mangle(ev, name);
    if (!name)
        return NULL;
    cfx_object *v = ev->w->global(ev->w->ctx, ev->frame->globals, name, ev->err);
    if (v || ev->err->status != CFX_OK)
        return cfxi_eval_pool(ev, v);
    return cfxi_eval_fail_as(ev, NULL, CFX_E_KEY, "NameError", "name '%.60s' is not defined", name);
}

/* The values that the world gave with the function; true if the name is one of them. */
static bool load_free(cfx_evaluator *ev, const cfxi_frame *f, const char *name, cfx_object **v)
{
    if (f->n_free == 0)
        return false;
    *v = NULL;
    const char *private = cfxi_eval_mangle(ev, name);
    for (size_t i = 0; private && i < f->n_free; i++) {
        if (strcmp(f->free_names[i], private) != 0)
            continue;
        *v = f->free_values[i] ? f->free_values[i] : fail_unbound(ev, name, true);
        return true;
    }
    return !private;
}

/* A slot that has the name: true if that settles it, with *v NULL if it cannot be read. */
static bool load_slot(cfx_evaluator *ev, const cfxi_frame *f, const char *name, cfx_object **v)
{
    const uint32_t slot = cfxi_eval_def_slot(f->def, name);
    if (slot == CFXI_NO_SLOT)
        return false;
    const cfxi_local *local = &f->slots[slot];
    *v = local->value;
    if (*v)
        return true;
    if (local->poison) {
        *v = fail_poisoned(ev, name, local->poison);
        return true;
    }
    if (f->def->kind == CFXI_DEF_CLASS)
        return false;  /* what is around may have it */
    *v = fail_unbound(ev, name, f != ev->frame);
    return true;
}

cfx_object *cfxi_eval_load(cfx_evaluator *ev, const char *name)
{
    cfx_object *v = NULL;
    for (const cfxi_frame *f = ev->frame; f; f = f->outer) {
        if (f->def->kind == CFXI_DEF_CLASS && f != ev->frame)
            continue;
        if (cfxi_eval_name_set_find(&f->def->globals, name) != CFXI_NO_SLOT)
            break;
        if (load_slot(ev, f, name, &v) || load_free(ev, f, name, &v))
            return v;
    }
    if (ev->frame->class_cell && strcmp(name, "__class__") == 0)
        return ev->frame->class_cell;
    return load_global(ev, name);
}

/* ---- binding ------------------------------------------------------------------------------- */

static bool bind_slot(cfx_evaluator *ev, cfxi_frame *f, uint32_t slot, cfx_object *v)
{
    cfxi_local *local = &f->slots[slot];
    if (!v && local->poison)
        return fail_poisoned(ev, f->def->locals[slot], local->poison);
    if (!v && !local->value)
        return fail_unbound(ev, f->def->locals[slot], f != ev->frame);
    if (!cfxi_eval_journal_slot(ev, f, slot))
        return false;
    local->value = v;
    local->poison = NULL;
    local->line = cfxi_eval_line(ev);
    return true;
}

static bool bind_global(cfx_evaluator *ev, const cfx_script_def *def, const char *name,
                        cfx_object *v)
{
    if (def->kind != CFXI_DEF_MODULE && !ev->making)
        return cfxi_eval_fail(
            ev, NULL, CFX_E_UNSUPPORTED,
            "cannot assign to the global variable '%.60s': the assignment would happen once, "
            "during capture, not in each call; return the value instead",
            name);
    return ev->w->set_global(ev->w->ctx, ev->frame->globals, name, v, ev->err) == CFX_OK;
}

/* A name of a function around, which `nonlocal` or a ':=' in a comprehension means. */
static bool bind_outer(cfx_evaluator *ev, const char *name, cfx_object *v)
{
    for (cfxi_frame *f = ev->frame->outer; f; f = f->outer) {
        if (f->def->kind == CFXI_DEF_CLASS && ev->frame->def->kind != CFXI_DEF_COMPREHENSION)
            continue;
        const uint32_t slot = cfxi_eval_def_slot(f->def, name);
        if (slot != CFXI_NO_SLOT && (!f->outside || ev->making))
            return bind_slot(ev, f, slot, v);
        if (slot != CFXI_NO_SLOT)
            break;
    }
    return cfxi_eval_fail(ev, NULL, CFX_E_UNSUPPORTED,
                          "cannot assign to '%.60s', a variable of a function that is not "
                          "captured; pass it in and return it",
                          name);
}

bool cfxi_eval_bind_name(cfx_evaluator *ev, const char *name, cfx_object *v)
{
    const cfx_script_def *def = ev->frame->def;
    const uint32_t slot = cfxi_eval_def_slot(def, name);
    if (slot != CFXI_NO_SLOT)
        return bind_slot(ev, ev->frame, slot, v);
    while (def->kind == CFXI_DEF_COMPREHENSION)
        def = def->outer;
    if (def->kind == CFXI_DEF_MODULE ||
        cfxi_eval_name_set_find(&def->globals, name) != CFXI_NO_SLOT)
        return bind_global(ev, def, name, v);
    return bind_outer(ev, name, v);
}
