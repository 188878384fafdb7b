/* datum_change.c - lists and dicts whose items change: everybody who holds one sees it. */
#include "tensor_impl.h"

/* ---- depth --------------------------------------------------------------------------------- */

/* What counted as so deep before. */
typedef struct lowered {
    cfx_data *seq;
    uint32_t depth;
} lowered;

/* Makes `d` count as at most `depth` deep, and what is in it as less. Whoever holds it counts as
 * deeper still. What was done is in `log`, also if it fails. Recursive, and no deeper than `depth`;
 * a container that is met again counts as less by then. */
static cfx_status lower(cfx_datum d, uint32_t depth, const cfx_data *container, cfxi_vec *log,
                        cfx_error *err)
{
    if (!cfxi_tensor_is_seq(d) || d.as.seq->depth <= depth)
        return CFX_OK;
    cfx_data *s = d.as.seq;
    if (s == container)
        return cfx_error_set(err, CFX_E_VALUE, "a container cannot contain itself");
    if (depth == 0 || s->fixed)
        return cfx_error_set(err, CFX_E_LIMIT, "containers would nest too deeply; build new "
                             "containers from their items");
    if (!cfxi_base_vec_reserve(log, 1, sizeof(lowered), container->allocator))
        return cfxi_base_nomem(err);
    ((lowered *)log->data)[log->size++] = (lowered){s, s->depth};
    s->depth = depth;
    for (size_t i = 0; i < s->size; i++)
        CFX_TRY(lower(s->items[i], depth - 1, container, log, err));
    return CFX_OK;
}

cfx_status cfxi_tensor_make_room(cfx_datum container, cfx_datum value, cfx_error *err)
{
    const cfx_data *c = container.as.seq;
    cfxi_vec log = {0};
    if (!cfxi_tensor_is_seq(value) || value.as.seq->depth < c->depth)
        return CFX_OK;
    const cfx_status status = lower(value, c->depth - 1, c, &log, err);
    const lowered *all = log.data;
    for (size_t i = log.size; status != CFX_OK && i-- > 0;)
        all[i].seq->depth = all[i].depth;
    cfxi_base_vec_free(&log, sizeof(lowered), c->allocator);
    return status;
}

/* ---- items --------------------------------------------------------------------------------- */

enum { FEW = 8 };  /* items for which the C stack has room */

/* Room for `n` items in all. */
static bool reserve(cfx_data *s, size_t n)
{
    const size_t room = n <= SIZE_MAX / 4 ? n + n / 2 + 4 : 0;
    size_t block;
    if (n <= s->capacity)
        return true;
    cfx_datum *items = room && cfxi_base_mul_size(room, sizeof *items, 0, &block)
                           ? cfxi_base_alloc(s->allocator, block)
                           : NULL;
    if (!items)
        return false;
    if (s->size > 0)
        memcpy(items, s->items, s->size * sizeof *items);
    if (s->items != s->own)
        cfxi_base_free(s->allocator, s->items, s->capacity * sizeof *items);
    s->items = items;
    s->capacity = room;
    return true;
}

/* They are retained already, and the room is there. */
static void exchange(cfx_data *s, size_t at, size_t removed, const cfx_datum *items, size_t n)
{
    for (size_t i = at; i < at + removed; i++)
        cfx_datum_release(s->items[i]);
    if (removed != n && s->size > at + removed)
        memmove(s->items + at + n, s->items + at + removed,
                (s->size - at - removed) * sizeof *items);
    if (n > 0)
        memcpy(s->items + at, items, n * sizeof *items);
    s->size = s->size - removed + n;
    s->changes++;
}

cfx_status cfxi_tensor_splice(cfx_datum container, size_t at, size_t removed,
                              const cfx_datum *items, size_t n, cfx_error *err)
{
    cfx_data *s = container.as.seq;
    cfx_datum few[FEW];
    size_t block = 0;
    for (size_t i = 0; i < n; i++)
        CFX_TRY(cfxi_tensor_make_room(container, items[i], err));
    cfx_datum *all = n <= FEW ? few
                     : cfxi_base_mul_size(n, sizeof *all, 0, &block)
                         ? cfxi_base_alloc(s->allocator, block)
                         : NULL;
    if (!all)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < n; i++)  /* they may be its own, which move */
        all[i] = cfx_datum_retain(items[i]);
    const bool fits = n <= SIZE_MAX / 4 && reserve(s, s->size - removed + n);
    if (fits)
        exchange(s, at, removed, all, n);
    for (size_t i = 0; !fits && i < n; i++)
        cfx_datum_release(all[i]);
    if (all != few)
        cfxi_base_free(s->allocator, all, block);
    return fits ? CFX_OK : cfxi_base_nomem(err);
}

cfx_status cfxi_tensor_set_item(cfx_datum container, size_t at, cfx_datum value, cfx_error *err)
{
    cfx_data *s = container.as.seq;
    CFX_TRY(cfxi_tensor_make_room(container, value, err));
    const cfx_datum old = s->items[at];
    s->items[at] = cfx_datum_retain(value);
    s->changes++;
    cfx_datum_release(old);
    return CFX_OK;
}

bool cfxi_tensor_can_extend(cfx_datum list, cfx_datum more)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(more, &n);
    if (list.kind != CFX_DATUM_LIST || more.kind != CFX_DATUM_LIST ||
        atomic_load_explicit(&list.as.seq->refs, memory_order_acquire) != 1)
        return false;
    for (size_t i = 0; i < n; i++)
        if (cfxi_tensor_is_seq(items[i]) && items[i].as.seq->depth >= list.as.seq->depth)
            return false;
    return true;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* Recursive: containers nest up to CFX_MAX_DEPTH. */
cfx_datum cfxi_tensor_copy_lists(cfx_datum d, cfx_error *err)
{
    if (!cfxi_tensor_is_seq(d) || d.as.seq->fixed)
        return cfx_datum_retain(d);
    cfx_datum copy = cfx_datum_seq((cfx_datum_kind)d.kind, d.as.seq->items, d.as.seq->size,
                                   d.as.seq->allocator, err);
    for (size_t i = 0; copy.kind != CFX_DATUM_INVALID && i < copy.as.seq->size; i++) {
        const cfx_datum old = copy.as.seq->items[i];
        const cfx_datum item = cfxi_tensor_copy_lists(old, err);
        if (item.kind == CFX_DATUM_INVALID) {
            cfx_datum_release(copy);
            return item;
        }
        copy.as.seq->items[i] = item;
        cfx_datum_release(old);
    }
    if (copy.kind != CFX_DATUM_INVALID)
        copy.as.seq->op = d.as.seq->op;
    return copy;
}
