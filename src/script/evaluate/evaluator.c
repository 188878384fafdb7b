/* evaluator.c - the evaluator as its callers see it. */
#include "graph_control_impl.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_CALLS = 200, MOST_ROUNDS = 100000 };

/* ---- new and free -------------------------------------------------------------------------- */

static bool make_constants(cfx_evaluator *ev)
{
    cfx_script_literal none = {.kind = CFX_OBJECT_NONE};
    cfx_script_literal truth = {.kind = CFX_OBJECT_BOOL, .i = 1};
    ev->none = cfxi_eval_pool(ev, ev->w->literal(ev->w->ctx, &none, ev->err));
    ev->true_ = cfxi_eval_pool(ev, ev->w->literal(ev->w->ctx, &truth, ev->err));
    truth.i = 0;
    ev->false_ = cfxi_eval_pool(ev, ev->w->literal(ev->w->ctx, &truth, ev->err));
    return ev->none && ev->true_ && ev->false_;
}

cfx_evaluator *cfx_evaluator_new(const cfx_world *world, cfx_graph *g,
                                 const cfx_script_options *options, cfx_error *err)
{
    cfx_error own;
    const cfx_allocator *allocator = cfx_graph_allocator(g);
    err = cfxi_base_error_or(err, &own);
    cfx_evaluator *ev = cfxi_base_alloc(allocator, sizeof *ev);
    if (!ev) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *ev = (cfx_evaluator){.w = world, .g = g, .allocator = allocator, .err = err,
                          .copies = 1};
    cfxi_base_arena_init(&ev->arena, allocator);
    ev->options.most_calls = options && options->most_calls ? options->most_calls : MOST_CALLS;
    ev->options.most_rounds = options && options->most_rounds ? options->most_rounds : MOST_ROUNDS;
    if (cfxi_ir_graph_defer_names(g, err) == CFX_OK && cfxi_eval_journal_begin(ev) &&
        make_constants(ev)) {
        ev->err = &ev->own_err;
        return ev;
    }
    cfx_evaluator_free(ev);
    return NULL;
}

/* Functions that are still referenced elsewhere can no longer be called. */
static void let_functions_go(cfx_evaluator *ev)
{
    for (cfx_script_function *f = ev->functions, *next; f; f = next) {
        next = f->next;
        f->ev = NULL;
        f->next = NULL;
        cfx_script_function_release(f);
    }
}

void cfx_evaluator_free(cfx_evaluator *ev)
{
    if (!ev)
        return;
    cfx_object **pool = ev->pool.data;
    for (size_t i = ev->pool.size; i-- > 0;)
        ev->w->release(ev->w->ctx, pool[i]);
    let_functions_go(ev);
    cfx_script_release(ev->prelude);
    cfxi_eval_journal_end(ev);
    cfxi_vec trace = {ev->trace, ev->n_trace, ev->trace_capacity};
    cfxi_base_vec_free(&trace, sizeof *ev->trace, ev->allocator);
    cfxi_base_vec_free(&ev->pool, sizeof(cfx_object *), ev->allocator);
    cfxi_eval_pending_free(ev);
    cfxi_base_pointers_free(&ev->growing, ev->allocator);
    cfxi_base_pointers_free(&ev->births, ev->allocator);
    cfxi_base_pointers_free(&ev->loops, ev->allocator);
    cfxi_base_pointers_free(&ev->origins, ev->allocator);
    cfxi_base_pointers_free(&ev->originals, ev->allocator);
    cfxi_base_pointers_free(&ev->escaped, ev->allocator);
    cfxi_base_pointers_free(&ev->kinds, ev->allocator);
    cfxi_base_pointers_free(&ev->lazy, ev->allocator);
    cfxi_base_pointers_free(&ev->pulled, ev->allocator);
    cfxi_base_pointers_free(&ev->iterators, ev->allocator);
    cfxi_base_pointers_free(&ev->assigned, ev->allocator);
    cfxi_base_arena_release(&ev->arena);
    cfxi_base_free(ev->allocator, ev, sizeof *ev);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* What a call from outside finds and leaves as it was. */
typedef struct entry {
    cfx_error *err;
    cfx_error own;
    cfxi_frame *frame;
    const cfxi_frame *entered;
    uint32_t calls, nesting;
} entry;

static void begin(cfx_evaluator *ev, entry *e, cfx_error *err)
{
    e->err = ev->err;
    e->frame = ev->frame;
    e->entered = ev->entered;
    ev->entered = ev->frame;
    e->calls = ev->calls;
    e->nesting = ev->nesting;
    ev->err = cfxi_base_error_or(err, &e->own);
    cfxi_eval_forget_failure(ev);
}

/* A `raise` that was not caught becomes an exception of the world. */
static void hand_over_raise(cfx_evaluator *ev)
{
    cfx_object *exc = ev->raised;
    cfx_object *cause = ev->raised_cause;
    ev->raised = NULL;
    ev->raised_cause = NULL;
    if (exc && ev->err->status == CFX_OK)
        ev->w->raise(ev->w->ctx, exc, cause, ev->err);
}

static cfx_object *end(cfx_evaluator *ev, const entry *e, cfx_object *v)
{
    if (v)
        v = cfxi_eval_current_deep(ev, v);
    if (!v)
        hand_over_raise(ev);
    ev->frame = e->frame;
    ev->entered = e->entered;
    ev->calls = e->calls;
    ev->nesting = e->nesting;
    if (v)
        ev->w->retain(ev->w->ctx, v);
    ev->err = e->err;
    return v;
}

/* The objects of a call, in the pool: they outlive it in frames. */
static bool keep_args(cfx_evaluator *ev, cfx_call_args *args)
{
    cfx_object **kept = cfxi_eval_ev_alloc(ev, (args->n + 1) * sizeof *kept);
    for (size_t i = 0; kept && i < args->n; i++) {
        ev->w->retain(ev->w->ctx, args->args[i]);
        kept[i] = cfxi_eval_pool(ev, args->args[i]);
        if (!kept[i])
            return false;
    }
    args->args = kept;
    return kept != NULL;
}

static cfx_object *keep(cfx_evaluator *ev, cfx_object *o)
{
    if (o)
        ev->w->retain(ev->w->ctx, o);
    return cfxi_eval_pool(ev, o);
}

cfx_object *cfx_evaluator_call(cfx_evaluator *ev, cfx_object *f, cfx_call_args args,
                               cfx_error *err)
{
    entry e;
    begin(ev, &e, err);
    f = keep(ev, f);
    return end(ev, &e, f && keep_args(ev, &args) ? cfxi_eval_call(ev, f, args) : NULL);
}

static cfx_object *run_module(cfx_evaluator *ev, const cfx_script *script, cfx_object *globals)
{
    if (!cfxi_eval_frame_push(ev, script->module, NULL, globals))
        return NULL;
    const cfxi_flow flow = cfxi_eval_exec_block(ev, script->tree->module->body);
    if (flow != CFXI_FLOW_ON && flow != CFXI_FLOW_FAIL && flow != CFXI_FLOW_RAISE)
        cfxi_eval_fail(ev, NULL, CFX_E_SYNTAX, "this statement is only allowed in a function or a "
                       "loop");
    cfxi_eval_frame_pop(ev);
    return flow == CFXI_FLOW_ON ? ev->none : NULL;
}

cfx_status cfx_evaluator_run(cfx_evaluator *ev, cfx_script *script, cfx_object *globals,
                             cfx_error *err)
{
    entry e;
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    begin(ev, &e, err);
    ev->making = true;
    globals = keep(ev, globals);
    cfx_object *v = end(ev, &e, globals ? run_module(ev, script, globals) : NULL);
    if (v)
        ev->w->release(ev->w->ctx, v);
    return v ? CFX_OK : err->status;
}

/* ---- where it is --------------------------------------------------------------------------- */

cfx_object_kind cfx_evaluator_kind(cfx_evaluator *ev, cfx_object *o)
{
    return cfxi_eval_kind(ev, o);
}

bool cfx_evaluator_is_value(const cfx_evaluator *ev, const cfx_object *o)
{
    return o ? ev->growing.n > 0 && cfxi_base_pointers_get(&ev->growing, o) : ev->growing.n > 0;
}

uint32_t cfx_evaluator_region(const cfx_evaluator *ev) { return ev->region->number; }

bool cfx_evaluator_in_region(const cfx_evaluator *ev, uint32_t number)
{
    const cfxi_region *r = ev->region;
    while (r && r->number != number)
        r = r->parent;
    return r != NULL;
}

/* ---- the end ------------------------------------------------------------------------------- */

void cfx_evaluator_accept(cfx_evaluator *ev)
{
    *ev->region = (cfxi_region){.number = ev->region->number};
    ev->making = false;
    cfxi_base_pointers_free(&ev->births, ev->allocator);  /* what there is was found, not made */
    ev->births = (cfxi_pointers){0};
}

cfx_status cfx_evaluator_finish(cfx_evaluator *ev, cfx_error *err)
{
    entry e;
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    begin(ev, &e, err);
    const cfx_node *last = cfx_graph_last(ev->g);
    const bool fine = cfxi_eval_keep_changes(ev);
    ev->g->kept = last ? cfx_node_next(last) : cfx_graph_first(ev->g);
    ev->frame = e.frame;
    ev->entered = e.entered;
    ev->err = e.err;
    return fine ? CFX_OK : err->status;
}

/* ---- policy -------------------------------------------------------------------------------- */

typedef struct policy_row {
    char name[36];
    uint8_t rule;
    uint8_t changes;
} policy_row;

static int compare_rows(const void *name, const void *row)
{
    return strcmp(name, ((const policy_row *)row)->name);
}

static const policy_row *row_of(const char *name)
{
    static const policy_row rows[] = {
#define CFX_CALL(name, recorded, changes) {name, CFX_RULE_##recorded, CFXI_CHANGES_##changes},
#include <cfx/embed/policy.def>
    };
    return bsearch(name, rows, sizeof rows / sizeof *rows, sizeof *rows, compare_rows);
}

/* The row "math.*" of "math.sqrt", or of what is below; NULL if there is none. */
static const policy_row *row_above(const char *name, bool far)
{
    char above[96];
    const policy_row *row = NULL;
    snprintf(above, sizeof above - 1, "%s", name);
    for (char *dot = strrchr(above, '.'); !row && dot; dot = far ? strrchr(above, '.') : NULL) {
        memcpy(dot, ".*", 3);
        row = row_of(above);
        *dot = '\0';
    }
    return row;
}

cfx_script_rule cfx_script_rule_of(const char *name)
{
    const policy_row *row = row_of(name);
    row = row ? row : row_above(name, false);
    return row ? (cfx_script_rule)row->rule : CFX_RULE_NEVER;
}

cfxi_call_changes cfxi_eval_call_changes(const char *name)
{
    const policy_row *row = row_of(name);
    row = row ? row : row_above(name, true);
    return row ? (cfxi_call_changes)row->changes : CFXI_CHANGES_ANY;
}

bool cfx_script_is_fact(const char *name)
{
    static const char *const names[] = {
#define CFX_FACT(name) name,
#include <cfx/embed/policy.def>
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}
