/* script_error.c - errors of a script: where it was, with the line and a caret, and the calls to
 * it. */
#include "evaluate_impl.h"

#include "ir/text_lex_impl.h"

#include <stdio.h>

/* ---- places -------------------------------------------------------------------------------- */

/* The frame of the call that a comprehension runs in. */
static const cfxi_frame *call_of(const cfxi_frame *f)
{
    while (f->def->kind == CFXI_DEF_COMPREHENSION && f->caller)
        f = f->caller;
    return f;
}

static bool has_place(const cfxi_ast *at) { return at && at->line > 0; }

/* What of a frame is being evaluated: for a comprehension that has not begun, itself. */
static const cfxi_ast *place_of(const cfxi_frame *f)
{
    return has_place(f->at) ? f->at : f->def->ast;
}

uint32_t cfxi_eval_line(const cfx_evaluator *ev)
{
    return ev->frame ? place_of(ev->frame)->line : 0;
}

void cfxi_eval_at(cfx_evaluator *ev, const cfxi_ast *node)
{
    if (!ev->frame || !has_place(node))
        return;
    const cfx_script *script = ev->frame->def->script;
    ev->frame->at = node;
    if (cfxi_eval_is_prelude(ev, ev->frame))
        return;  /* it belongs to the line that called it */
    if (ev->placed == script && ev->placed_line == node->line)
        return;
    ev->placed = script;
    ev->placed_line = node->line;
    ev->w->place(ev->w->ctx, script->file, node->line);
}

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash && slash[1] ? slash + 1 : file;
}

/* ---- the trace ----------------------------------------------------------------------------- */

static bool push_trace(cfx_evaluator *ev, cfx_script_location place)
{
    cfxi_vec vec = {ev->trace, ev->n_trace, ev->trace_capacity};
    if (!cfxi_base_vec_reserve(&vec, 1, sizeof *ev->trace, ev->allocator))
        return false;  /* a message without it is better than none */
    ev->trace = vec.data;
    ev->trace_capacity = vec.capacity;
    ev->trace[ev->n_trace++] = place;
    return true;
}

static bool is_hidden(const cfx_evaluator *ev, const cfxi_frame *f)
{
    const char *file = f->def->script->file;
    return cfxi_eval_is_prelude(ev, f) || strcmp(file, CFX_SCRIPT_LIBRARY) == 0 ||
           (ev->w->hidden && ev->w->hidden(ev->w->ctx, file));
}

cfxi_frame *cfxi_eval_visible_frame(const cfx_evaluator *ev, cfxi_frame *f)
{
    cfxi_frame *visible = f;
    while (visible && is_hidden(ev, visible))
        visible = visible->caller;
    return visible ? visible : f;
}

static void note_trace(cfx_evaluator *ev, const cfxi_ast *at)
{
    if (ev->traced)
        return;
    ev->traced = true;
    ev->n_trace = 0;
    for (const cfxi_frame *f = ev->frame; f; f = f->caller) {
        if (is_hidden(ev, f)) {
            at = NULL;
            continue;
        }
        const cfxi_ast *place = has_place(at) ? at : place_of(f);
        at = NULL;
        const cfxi_frame *call = call_of(f);
        f = is_hidden(ev, call) ? f : call;  /* a step of a generator has no other */
        const cfx_script_location row = {f->def->script->file, place->line, place->column,
                                         f->def->name};
        if (!push_trace(ev, row))
            return;
    }
}

bool cfx_evaluator_where(const cfx_evaluator *ev, size_t i, cfx_script_location *place)
{
    if (i >= ev->n_trace)
        return false;
    *place = ev->trace[i];
    return true;
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Adds a line if all of it fits. */
static void add_line(char *text, size_t size, const char *line)
{
    const size_t used = strlen(text);
    if (used + strlen(line) < size)
        memcpy(text + used, line, strlen(line) + 1);
}

/* How many calls from the i-th on are at the same place: a recursion is told once. */
static size_t repeats(const cfx_evaluator *ev, size_t i)
{
    const cfx_script_location *p = &ev->trace[i];
    size_t n = 1;
    while (i + n < ev->n_trace && ev->trace[i + n].line == p->line &&
           ev->trace[i + n].file == p->file && ev->trace[i + n].function == p->function)
        n++;
    return n;
}

static void add_callers(const cfx_evaluator *ev, char *text, size_t size)
{
    char line[200];
    for (size_t i = 1, n; i < ev->n_trace; i += n) {
        const cfx_script_location *p = &ev->trace[i];
        char times[40] = "";
        n = repeats(ev, i);
        if (n > 1)
            snprintf(times, sizeof times, " (%zu times)", n);
        snprintf(line, sizeof line, "\ncalled from %.80s:%u in %.60s%s", base_name(p->file),
                 (unsigned)p->line, p->function, times);
        add_line(text, size, line);
    }
}

/* "model.py:12: what", the line with a caret, the calls. */
static void set_message(cfx_evaluator *ev, const cfxi_ast *at, cfx_status status, const char *what)
{
    char shown[CFXI_SHOWN_SIZE];
    char text[sizeof ev->err->message];
    ev->failed = true;
    note_trace(ev, at);
    if (ev->err->status == CFX_E_NOMEM)  /* what is wrong is for lack of memory */
        return;
    const cfxi_frame *frame = cfxi_eval_visible_frame(ev, ev->frame);
    if (!frame) {
        cfx_error_set(ev->err, status, "%s", what);
        return;
    }
    if (!has_place(at) || frame != ev->frame)
        at = place_of(frame);
    const cfx_script *script = frame->def->script;
    const cfxi_lexer lex = {.text = script->tree->text, .size = script->tree->size};
    cfxi_ir_lex_show(&lex, cfxi_syntax_script_offset(script->tree, at->line, at->column), shown);
    snprintf(text, sizeof text, "%.60s:%u: %.300s", base_name(script->file), (unsigned)at->line,
             what);
    add_line(text, sizeof text, "\n");
    add_line(text, sizeof text, shown);
    add_callers(ev, text, sizeof text);
    cfx_error_set(ev->err, status, "%s", text);
    ev->err->line = at->line;
    ev->err->column = at->column + 1;
}

void *cfxi_eval_fail(cfx_evaluator *ev, const cfxi_ast *at, cfx_status status, const char *format,
                     ...)
{
    char what[sizeof ev->err->message];
    va_list args;
    if (status == CFX_E_HOST || ev->failed)
        return NULL;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    set_message(ev, at, status, what);
    return NULL;
}

/* Raises the exception in the world; false if it has no such class. */
static bool raise_in_world(cfx_evaluator *ev, const char *exception, const char *what)
{
    cfx_object *class = cfxi_eval_builtin(ev, exception);
    if (!class)
        return false;
    cfx_object *text = cfxi_eval_str(ev, what);
    cfx_object *exc = text ? cfxi_eval_world_call(ev, class, cfxi_eval_args(&text, 1)) : NULL;
    if (exc)
        ev->w->raise(ev->w->ctx, exc, NULL, ev->err);
    return true;
}

void *cfxi_eval_fail_as(cfx_evaluator *ev, const cfxi_ast *at, cfx_status status,
                        const char *exception, const char *format, ...)
{
    char what[sizeof ev->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (raise_in_world(ev, exception, what))
        note_trace(ev, at);
    else
        set_message(ev, at, status, what);
    return NULL;
}

void cfxi_eval_note_failure(cfx_evaluator *ev)
{
    char what[sizeof ev->err->message];
    if (ev->raised && ev->err->status == CFX_OK) {
        note_trace(ev, NULL);
        return;
    }
    if (ev->failed || ev->err->status == CFX_E_HOST || ev->err->status == CFX_E_NOMEM ||
        ev->err->status == CFX_E_INTERRUPTED) {
        note_trace(ev, NULL);
        return;
    }
    snprintf(what, sizeof what, "%s", ev->err->message);
    set_message(ev, NULL, ev->err->status, what);
}

void cfxi_eval_forget_failure(cfx_evaluator *ev)
{
    ev->failed = false;
    ev->traced = false;
    ev->n_trace = 0;
    ev->raised = NULL;
    ev->raised_cause = NULL;
    ev->err->status = CFX_OK;
}
