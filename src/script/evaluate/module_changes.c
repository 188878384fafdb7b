/* module_changes.c - attributes of modules that the program assigns: what the graph writes.
 *
 *     if p:
 *         self.state = v
 *
 * In Python the attribute is another tensor afterwards. The graph copies v into the buffer when the
 * call ends, or before the program raises; and only in the ways that assign it, as a write can be
 * seen: by `_version`, by autograd, by other threads. Whether one does is a value that the journal
 * follows as it does the attribute itself: False at first, True once another tensor is assigned,
 * and a graph value where data decide. So the example ends with
 *
 *     cond(assigned, {self.state.copy_(v)}, {})
 *
 * A tensor that is written to in place stays the same, and has its new elements: self.state += 1.
 */
#include "buffer_copies_impl.h"
#include "graph_control_impl.h"

/* ---- whether it was assigned --------------------------------------------------------------- */

struct cfxi_assigned {
    const char *name;
    cfx_object *value;
    cfxi_assigned *next;     /* of another attribute of the module */
};

static cfxi_assigned *find_assigned(const cfx_evaluator *ev, const cfxi_place *p)
{
    cfxi_assigned *a = cfxi_base_pointers_get(&ev->assigned, p->object);
    while (a && strcmp(a->name, p->name) != 0)
        a = a->next;
    return a;
}

cfx_object *cfxi_eval_is_assigned(const cfx_evaluator *ev, const cfxi_place *p)
{
    const cfxi_assigned *a = find_assigned(ev, p);
    return a ? a->value : ev->false_;
}

bool cfxi_eval_put_assigned(cfx_evaluator *ev, const cfxi_place *p, cfx_object *value)
{
    cfxi_assigned *a = find_assigned(ev, p);
    if (!a) {
        if (!(a = cfxi_eval_ev_alloc(ev, sizeof *a)))
            return false;
        a->name = p->name;
        a->next = cfxi_base_pointers_get(&ev->assigned, p->object);
        if (!cfxi_base_pointers_set(&ev->assigned, p->object, a, ev->allocator)) {
            cfxi_base_nomem(ev->err);
            return false;
        }
    }
    a->value = value;
    return true;
}

/* The attribute that a tensor is, written to in place perhaps; NULL: none. */
static const char *path_of(cfx_evaluator *ev, cfx_object *o)
{
    cfx_error ignored = {0};
    const cfx_node *n = cfxi_eval_node(ev, o), *last = cfx_graph_last(ev->g);
    if (n)
        return cfxi_eval_attribute_of(n);
    cfx_object *read = cfxi_eval_pool(ev, ev->w->tensor(ev->w->ctx, o, &ignored));
    cfx_node *asked = read ? cfxi_eval_node(ev, read) : NULL;
    const char *path = asked ? cfxi_eval_attribute_of(asked) : NULL;
    if (asked && asked->prev == last)  /* it was made to be asked for its path */
        cfx_graph_erase(ev->g, asked, &ignored);
    return path;
}

/* Whether `v` is the very tensor that `o` is. */
static bool is_same_tensor(cfx_evaluator *ev, cfx_object *o, cfx_object *v)
{
    const cfx_node *n = cfxi_eval_node(ev, o), *m = cfxi_eval_node(ev, v);
    if (o == v || (n && m && cfxi_eval_tensor_of(n) == cfxi_eval_tensor_of(m)))
        return true;
    const char *now = m ? cfxi_eval_attribute_of(m) : NULL;
    const char *before = now ? path_of(ev, o) : NULL;
    return before && strcmp(before, now) == 0;
}

/* What an attribute was before the program first assigned it; NULL: it was not there, or is not
 * followed. */
static cfx_object *value_before(const cfx_evaluator *ev, const cfxi_place *p)
{
    cfx_object *before = NULL;
    for (const cfxi_region *r = ev->region; r; r = r->parent) {
        const cfxi_change *c = cfxi_eval_region_change(r, p);
        before = c ? c->before.value : before;
    }
    return before;
}

static bool is_buffer(cfx_evaluator *ev, cfx_object *before)
{
    return before && !cfxi_eval_node(ev, before) &&
           ev->w->kind(ev->w->ctx, before) == CFX_OBJECT_TENSOR;
}

bool cfxi_eval_note_assigned(cfx_evaluator *ev, cfx_object *module, const char *name,
                             cfx_object *v)
{
    cfxi_place p = {.kind = CFXI_PLACE_ATTRIBUTE, .object = module, .name = name};
    cfxi_state now;
    cfx_object *before = value_before(ev, &p);
    if (!is_buffer(ev, before))
        return true;
    if (!cfxi_eval_place_read(ev, &p, &now))
        return false;
    if (v && now.value && is_same_tensor(ev, now.value, v))
        return true;
    const cfxi_state state = {.value = v && is_same_tensor(ev, before, v) ? ev->false_
                                                                          : ev->true_};
    p.kind = CFXI_PLACE_ASSIGNED;
    return cfxi_eval_place_note(ev, &p) && cfxi_eval_place_write(ev, &p, &state);
}

/* ---- what there is to write ---------------------------------------------------------------- */

/* Whether it is an attribute of a module that has another value now, and which: *now. */
static bool is_kept(cfx_evaluator *ev, const cfxi_change *c, cfxi_state *now)
{
    *now = (cfxi_state){0};
    return c->place.kind == CFXI_PLACE_ATTRIBUTE &&
           ev->w->kind(ev->w->ctx, c->place.object) == CFX_OBJECT_MODULE &&
           (!cfxi_eval_place_read(ev, &c->place, now) || now->value != c->before.value);
}

/* The n-th change of a module since the program began that is still there, the regions from inside
 * out; NULL past the last. */
static const cfxi_change *next_change(cfx_evaluator *ev, const cfxi_region **r, size_t *i,
                                      cfxi_state *now)
{
    for (; *r; *r = (*r)->parent, *i = 0) {
        while (*i < (*r)->n) {
            const cfxi_change *c = &(*r)->changes[(*i)++];
            const cfxi_region *outer = (*r)->parent;
            while (outer && !cfxi_eval_region_change(outer, &c->place))
                outer = outer->parent;
            if (!outer && is_kept(ev, c, now))
                return c;
        }
    }
    return NULL;
}

bool cfxi_eval_has_changes(cfx_evaluator *ev)
{
    const cfxi_region *r = ev->region;
    size_t i = 0;
    cfxi_state now;
    return next_change(ev, &r, &i, &now) != NULL;
}

/* An attribute that has another value now. */
typedef struct kept {
    const cfxi_change *change;
    cfxi_state now;
    cfx_object *value;       /* what is written; NULL: it was deleted */
    cfx_object *assigned;    /* whether it is */
} kept;

/* Whether the graph writes it: of what is not a buffer, always. */
static cfx_object *is_written(cfx_evaluator *ev, const cfxi_change *c)
{
    return is_buffer(ev, c->before.value) ? cfxi_eval_is_assigned(ev, &c->place) : ev->true_;
}

/* A copy, so that no write of another attribute changes it first. */
static cfx_object *apart(cfx_evaluator *ev, cfx_object *v)
{
    const cfx_node *n = cfxi_eval_node(ev, v);
    if (n ? !cfxi_eval_may_share(n) : ev->w->kind(ev->w->ctx, v) != CFX_OBJECT_TENSOR)
        return v;
    cfx_object *clone = cfxi_eval_get_method(ev, v, "clone");
    return clone ? cfxi_eval_world_call(ev, clone, cfxi_eval_args(NULL, 0)) : NULL;
}

/* What is to be written. Where data decide, it is a graph value: one that is read before the
 * branch that writes it. */
static cfx_object *value_of(cfx_evaluator *ev, const kept *k, bool early)
{
    cfx_error none = {0};
    cfx_object *v = cfxi_eval_current_deep(ev, k->now.value);
    if (!v || k->assigned == ev->false_)
        return v;
    if (early)
        return apart(ev, v);
    if (k->assigned == ev->true_ || cfxi_eval_node(ev, v))
        return v;
    cfx_object *read = ev->w->tensor(ev->w->ctx, v, &none);
    return read ? cfxi_eval_pool(ev, read) : v;
}

static bool find_kept(cfx_evaluator *ev, bool early, cfxi_vec *all)
{
    const cfxi_region *r = ev->region;
    const cfxi_change *c;
    kept k = {0};
    size_t i = 0;
    while ((c = next_change(ev, &r, &i, &k.now)) != NULL) {
        k.change = c;
        k.assigned = is_written(ev, c);
        k.value = NULL;
        if (ev->err->status != CFX_OK || (k.now.value && !(k.value = value_of(ev, &k, early))))
            return false;
        if (!cfxi_base_vec_reserve(all, 1, sizeof k, ev->allocator)) {
            cfxi_base_nomem(ev->err);
            return false;
        }
        ((kept *)all->data)[all->size++] = k;
    }
    return true;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Which of the changes are written, and when. */
typedef struct writing {
    bool early;              /* an exception ends the call: what the program sees stays */
    bool hidden;             /* ... raised by a check in a library */
} writing;

/* Gives what the world records, or says, the line of the change: the call that made it may be
 * over. */
static cfx_status keep_at(cfx_evaluator *ev, const cfxi_change *c, cfx_object *v)
{
    const cfx_world *w = ev->w;
    cfxi_frame *outer = ev->frame;
    cfxi_frame there = {0};
    const cfx_node *last = cfx_graph_last(ev->g);
    if (c->place.frame) {
        there = *c->place.frame;
        there.at = c->place.at;
        there.caller = NULL;
        ev->frame = &there;
    }
    cfx_status status = w->keep_attribute(w->ctx, c->place.object, c->place.name, v, ev->err);
    if (status != CFX_OK && c->place.frame)
        cfxi_eval_note_failure(ev);
    cfx_node *n = last ? cfx_node_next(last) : cfx_graph_first(ev->g);
    for (; status == CFX_OK && n && there.at && there.at->line > 0; n = cfx_node_next(n))
        status = cfx_node_set_location(n, there.def->script->file, there.at->line, ev->err);
    ev->frame = outer;
    return status;
}

/* It is put back, and the world records the rest. */
static bool write_one(cfx_evaluator *ev, const kept *k, const writing *how)
{
    const cfxi_place *p = &k->change->place;
    if (k->assigned == ev->false_)
        return how->early || cfxi_eval_place_write(ev, p, &k->change->before);
    if (!cfxi_eval_place_write(ev, p, &k->change->before))
        return false;
    if (keep_at(ev, k->change, k->value) != CFX_OK) {
        if (!how->hidden || ev->err->status != CFX_E_UNSUPPORTED)
            return false;
        cfxi_eval_forget_failure(ev);
    }
    return !how->early || cfxi_eval_place_write(ev, p, &k->now);
}

static bool write_each(cfx_evaluator *ev, const kept *all, size_t n, const writing *how)
{
    for (size_t i = 0; i < n; i++)
        if (!write_one(ev, &all[i], how))
            return false;
    return true;
}

/* Writes those that data decide about alike in a branch of their own. */
static bool write_where(cfx_evaluator *ev, const kept *all, size_t n, const writing *how)
{
    const cfxi_place *p = &all[0].change->place;
    cfxi_span then = {.first = cfxi_eval_stand_in(ev, "region")};
    if (!then.first || !write_each(ev, all, n, how))
        return false;
    then.last = cfxi_eval_stand_in(ev, "region");
    const cfxi_span nothing = {.first = then.last};
    if (!then.last || !cfxi_eval_make_cond(ev, all[0].assigned, &then, &nothing, 0, NULL))
        return false;
    return !p->frame || !p->at || p->at->line == 0 ||
           cfx_node_set_location(cfx_graph_last(ev->g), p->frame->def->script->file, p->at->line,
                                 ev->err) == CFX_OK;
}

static bool write_all(cfx_evaluator *ev, const writing *how)
{
    cfxi_vec found = {0};  /* of kept */
    bool fine = find_kept(ev, how->early, &found);
    const kept *all = found.data;
    for (size_t i = 0, end; fine && i < found.size; i = end) {
        cfx_object *assigned = all[i].assigned;
        for (end = i + 1; end < found.size && all[end].assigned == assigned;)
            end++;
        fine = cfxi_eval_node(ev, assigned) ? write_where(ev, all + i, end - i, how)
                                            : write_each(ev, all + i, end - i, how);
    }
    cfxi_base_vec_free(&found, sizeof(kept), ev->allocator);
    return fine;
}

bool cfxi_eval_keep_early(cfx_evaluator *ev, bool hidden)
{
    return write_all(ev, &(writing){.early = true, .hidden = hidden});
}

bool cfxi_eval_keep_changes(cfx_evaluator *ev)
{
    return write_all(ev, &(writing){0});
}
