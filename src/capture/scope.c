/* scope.c - scopes: the variables and modules that are made in one, and its first failure. */
#include "capture_impl.h"

#include <stdio.h>

/* ---- making -------------------------------------------------------------------------------- */

cfx_scope *cfx_scope_new(const cfx_scope_options *options, cfx_error *err)
{
    static const cfx_scope_options all_zero;
    const cfx_scope_options *o = options ? options : &all_zero;
    const cfx_allocator *allocator = cfxi_base_allocator(o->allocator);
    const cfx_runtime_options runtime = {.allocator = o->allocator, .threads = o->threads,
                                         .seed = o->seed, .library = o->library,
                                         .print = o->print};
    cfx_scope *s = cfxi_base_alloc(allocator, sizeof *s);
    if (!s) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *s = (cfx_scope){.allocator = allocator, .rt = o->runtime, .owns_runtime = !o->runtime};
    s->id = cfxi_base_hash_pointer(s);
    if (s->owns_runtime)
        s->rt = cfx_runtime_new(&runtime, err);
    if (s->rt)
        return s;
    cfxi_base_free(allocator, s, sizeof *s);
    return NULL;
}

static void slot_free(cfxi_slot *slot)
{
    cfx_datum_release(slot->datum);
    if (slot->graph)
        cfx_value_release(slot->graph, slot->value);
    cfx_graph_release(slot->graph);
}

static void drop_slots(cfx_scope *s, size_t mark)
{
    while (s->slots.size > mark)
        slot_free((cfxi_slot *)s->slots.data + --s->slots.size);
}

void cfx_scope_free(cfx_scope *s)
{
    if (!s)
        return;
    drop_slots(s, 0);
    cfxi_capture_ready_free(s);
    for (size_t i = 0; i < s->modules.size; i++)
        cfx_module_release(((cfx_module **)s->modules.data)[i]);
    cfxi_base_vec_free(&s->modules, sizeof(cfx_module *), s->allocator);
    cfxi_base_vec_free(&s->slots, sizeof(cfxi_slot), s->allocator);
    if (!s->borrows_rows)
        cfxi_capture_rows_free(s->rows, s->allocator);
    if (s->owns_runtime)
        cfx_runtime_free(s->rt);
    cfxi_base_free(s->allocator, s, sizeof *s);
}

cfx_module *cfxi_capture_scope_own(cfx_at at, cfx_module *m)
{
    cfx_scope *s = at.scope;
    if (!m)
        return NULL;
    if (!cfxi_base_vec_reserve(&s->modules, 1, sizeof m, s->allocator)) {
        cfx_module_release(m);
        cfx_scope_fail_at(at, CFX_E_NOMEM, "out of memory");
        return NULL;
    }
    ((cfx_module **)s->modules.data)[s->modules.size++] = m;
    return m;
}

static bool owns(const cfx_scope *s, const cfx_module *m)
{
    for (size_t i = s->modules.size; i-- > 0;)
        if (((cfx_module *const *)s->modules.data)[i] == m)
            return true;
    return false;
}

typedef struct tree_set {
    cfxi_pointers modules;
    const cfx_allocator *allocator;
} tree_set;

static cfx_status add_module(void *ctx, cfx_module *m, const char *path, cfx_error *err)
{
    tree_set *t = ctx;
    (void)path;
    return cfxi_base_pointers_set(&t->modules, m, m, t->allocator) ? CFX_OK : cfxi_base_nomem(err);
}

/* What is below it was made for it: the scope lets go of all of that. */
void cfx_module_drop_at(cfx_at at, cfx_module *m)
{
    cfx_scope *s = at.scope;
    cfx_error err = {0};
    if (!s || !m)
        return;
    if (!owns(s, m)) {  /* it may be gone: nothing of it is read */
        cfx_scope_fail_at(at, CFX_E_VALUE, "the module was not made in this scope, or has been "
                          "dropped");
        return;
    }
    tree_set t = {.allocator = s->allocator};
    cfxi_capture_ready_forget(at, m);
    if (cfxi_capture_module_each(m, add_module, &t, &err) == CFX_OK) {
        cfx_module **all = s->modules.data;
        size_t kept = 0;
        for (size_t i = 0; i < s->modules.size; i++) {
            if (cfxi_base_pointers_get(&t.modules, all[i]))
                cfx_module_release(all[i]);
            else
                all[kept++] = all[i];
        }
        s->modules.size = kept;
    } else {
        cfxi_capture_scope_take(at, &err);
    }
    cfxi_base_pointers_free(&t.modules, s->allocator);
}

void cfxi_capture_scope_keep(cfx_at at, size_t mark, const cfx_module *keep)
{
    cfx_module **all = at.scope->modules.data;
    size_t kept = mark;
    for (size_t i = mark; i < at.scope->modules.size; i++) {
        if (all[i] == keep) {
            all[kept++] = all[i];
            continue;
        }
        cfxi_capture_ready_forget(at, all[i]);
        cfx_module_release(all[i]);
    }
    at.scope->modules.size = kept;
}

bool cfx_scope_is_tracing(const cfx_scope *s) { return s && s->trace; }
cfx_runtime *cfx_scope_runtime(cfx_scope *s) { return s ? s->rt : NULL; }
cfx_graph *cfxi_capture_scope_graph(cfx_scope *s) { return s && s->trace ? s->trace->graph : NULL; }
const cfx_allocator *cfx_scope_allocator(const cfx_scope *s) { return s ? s->allocator : NULL; }

/* ---- failing ------------------------------------------------------------------------------- */

bool cfx_scope_ok(const cfx_scope *s) { return s && s->error.status == CFX_OK; }

const cfx_error *cfx_scope_error(const cfx_scope *s)
{
    static const cfx_error none = {.status = CFX_E_VALUE, .message = "the scope is NULL"};
    return s ? &s->error : &none;
}

cfx_error *cfx_scope_err(cfx_scope *s)
{
    if (!s)
        return NULL;
    s->later = (cfx_error){0};
    return s->error.status == CFX_OK ? &s->error : &s->later;
}

void cfx_scope_clear_error(cfx_scope *s)
{
    if (s)
        s->error = (cfx_error){0};
}

cfx_status cfx_scope_fail_at(cfx_at at, cfx_status status, const char *format, ...)
{
    char text[sizeof at.scope->error.message];
    va_list args;
    if (!at.scope)
        return status;
    if (at.scope->error.status != CFX_OK)
        return at.scope->error.status;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (at.scope->place)
        return cfx_error_set(&at.scope->error, status, "%.300s: %s", at.scope->place->what, text);
    if (at.file)
        return cfx_error_set(&at.scope->error, status, "%.200s:%u: %s", at.file, at.line, text);
    return cfx_error_set(&at.scope->error, status, "%s", text);
}

const cfxi_place *cfxi_capture_scope_place(cfx_scope *s, const cfxi_place *place)
{
    const cfxi_place *before = s->place;
    s->place = place;
    return before;
}

cfx_status cfxi_capture_scope_take(cfx_at at, const cfx_error *err)
{
    return cfx_scope_fail_at(at, err->status == CFX_OK ? CFX_E_NOMEM : err->status, "%s",
                             err->message);
}

/* ---- variables ----------------------------------------------------------------------------- */

static cfx_var new_var(cfx_at at, cfxi_slot slot)
{
    cfx_scope *s = at.scope;
    cfx_var v = cfx_var_empty();
    if (s->slots.size >= UINT32_MAX ||
        !cfxi_base_vec_reserve(&s->slots, 1, sizeof slot, s->allocator)) {
        slot_free(&slot);
        cfx_scope_fail_at(at, CFX_E_NOMEM, "out of memory");
        return v;
    }
    slot.serial = ++s->serial;
    v.kind = CFX_VAR_VALUE;
    v.count = slot.serial;
    v.as.value.slot = (uint32_t)s->slots.size;
    v.as.value.scope = s->id;
    ((cfxi_slot *)s->slots.data)[s->slots.size++] = slot;
    return v;
}

cfx_var cfxi_capture_var_of_datum(cfx_at at, cfx_datum d)
{
    return new_var(at, (cfxi_slot){.datum = d, .value = cfx_value_invalid()});
}

cfx_var cfxi_capture_var_of_value(cfx_at at, cfx_value v, cfx_graph *g, cfx_datum known)
{
    return new_var(at, (cfxi_slot){.datum = known, .value = cfx_value_retain(v),
                                   .graph = cfx_graph_retain(g)});
}

const cfxi_slot *cfxi_capture_var_slot(cfx_at at, cfx_var v)
{
    const cfx_scope *s = at.scope;
    const cfxi_slot *slot = NULL;
    if (v.as.value.scope != s->id) {
        cfx_scope_fail_at(
            at, CFX_E_VALUE, "this variable belongs to another scope%s",
            s->trace
                ? ": while tracing, only what came in through the inputs and the modules can be "
                  "used; cfx_var_from_tensor makes a tensor a constant"
                : "");
        return NULL;
    }
    if (v.as.value.slot < s->slots.size)
        slot = (const cfxi_slot *)s->slots.data + v.as.value.slot;
    if (slot && slot->serial == v.count)
        return slot;
    cfx_scope_fail_at(at, CFX_E_VALUE,
                      "this variable is no longer alive: variables created during a module's call "
                      "are freed when the call returns, except the one it returns");
    return NULL;
}

/* ---- room for items ------------------------------------------------------------------------ */

void *cfxi_capture_room_for(cfx_at at, cfxi_room *room, size_t n)
{
    if (n <= room->fits)
        return room->here;
    if (cfxi_base_vec_reserve(&room->memory, n, room->item, at.scope->allocator))
        return room->memory.data;
    cfx_scope_fail_at(at, CFX_E_NOMEM, "out of memory");
    return NULL;
}

void cfxi_capture_room_free(cfx_at at, cfxi_room *room)
{
    cfxi_base_vec_free(&room->memory, room->item, at.scope->allocator);
}

/* ---- memory -------------------------------------------------------------------------------- */

size_t cfx_scope_mark(const cfx_scope *s) { return s ? s->slots.size : 0; }

cfx_var cfx_scope_reset(cfx_scope *s, size_t mark, cfx_var keep)
{
    const cfx_at nowhere = {.scope = s};
    if (!s)
        return cfx_var_empty();
    const cfxi_slot *slot =
        keep.kind == CFX_VAR_VALUE && cfx_scope_ok(s) ? cfxi_capture_var_slot(nowhere, keep) : NULL;
    if (mark > s->slots.size)
        return keep;
    if (!slot || keep.as.value.slot < mark) {
        drop_slots(s, mark);
        return slot || keep.kind != CFX_VAR_VALUE ? keep : cfx_var_empty();
    }
    cfxi_slot *all = s->slots.data;
    const cfxi_slot kept = *slot;
    all[keep.as.value.slot] = all[s->slots.size - 1];  /* then the last one is free */
    s->slots.size--;
    drop_slots(s, mark);
    all[mark] = kept;
    s->slots.size++;
    keep.as.value.slot = (uint32_t)mark;
    return keep;
}
