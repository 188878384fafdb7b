/* written_lists.c - lists and dicts that a region is given and may write to: what they hold.
 *
 * When only types and shapes are asked for, more ways are followed than the program goes. Each is
 * to find the lists as they were, and afterwards they hold what is known of all ways together. */
#include "written_lists_impl.h"

static cfxi_written *written_at(const cfxi_vec *lists, size_t i)
{
    return (cfxi_written *)lists->data + i;
}

/* The same container with the items that it has now. */
static cfx_datum copy_of(const cfxi_call *c, cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    return cfx_datum_seq((cfx_datum_kind)d.kind, items, n, c->rt->allocator, c->err);
}

static cfx_status note(cfxi_call *c, cfx_datum container, cfxi_vec *lists)
{
    if (!cfxi_base_vec_reserve(lists, 1, sizeof(cfxi_written), c->rt->allocator))
        return cfxi_base_nomem(c->err);
    const cfx_datum items = copy_of(c, container);
    if (items.kind == CFX_DATUM_INVALID)
        return c->err->status;
    const cfx_datum held = cfx_datum_retain(container);
    *written_at(lists, lists->size++) = (cfxi_written){held, items};
    return CFX_OK;
}

/* Recursive: containers nest up to CFX_MAX_DEPTH. `seen` are those that were met before. */
static cfx_status note_inside(cfxi_call *c, const cfx_datum *items, size_t n, cfxi_vec *lists,
                              cfxi_pointers *seen)
{
    for (size_t i = 0; i < n; i++) {
        size_t m;
        const cfx_datum *inside = cfx_datum_items(items[i], &m);
        cfx_data *s = inside ? items[i].as.seq : NULL;
        if (!s || s->fixed || cfxi_base_pointers_get(seen, s))
            continue;
        if (!cfxi_base_pointers_set(seen, s, s, c->rt->allocator))
            return cfxi_base_nomem(c->err);
        if (items[i].kind == CFX_DATUM_LIST || items[i].kind == CFX_DATUM_DICT)
            CFX_TRY(note(c, items[i], lists));
        CFX_TRY(note_inside(c, inside, m, lists, seen));
    }
    return CFX_OK;
}

cfx_status cfxi_python_note_lists(cfxi_call *c, const cfx_datum *items, size_t n, cfxi_vec *lists)
{
    cfxi_pointers seen = {0};
    const cfx_status status = note_inside(c, items, n, lists, &seen);
    cfxi_base_pointers_free(&seen, c->rt->allocator);
    return status;
}

cfx_status cfxi_python_note_again(cfxi_call *c, const cfxi_vec *lists, cfxi_vec *now)
{
    for (size_t i = 0; i < lists->size; i++)
        CFX_TRY(note(c, written_at(lists, i)->container, now));
    return CFX_OK;
}

cfx_status cfxi_python_fill_list(cfxi_call *c, cfx_datum container, cfx_datum from)
{
    size_t n;
    size_t m;
    const cfx_datum *items = cfx_datum_items(from, &n);
    cfx_datum_items(container, &m);
    return cfxi_tensor_splice(container, 0, m, items, n, c->err);
}

cfx_status cfxi_python_put_back(cfxi_call *c, const cfxi_vec *lists)
{
    for (size_t i = 0; i < lists->size; i++)
        CFX_TRY(cfxi_python_fill_list(c, written_at(lists, i)->container,
                                      written_at(lists, i)->items));
    return CFX_OK;
}

void cfxi_python_lists_free(const cfxi_call *c, cfxi_vec *lists)
{
    for (size_t i = 0; i < lists->size; i++) {
        cfx_datum_release(written_at(lists, i)->container);
        cfx_datum_release(written_at(lists, i)->items);
    }
    cfxi_base_vec_free(lists, sizeof(cfxi_written), c->rt->allocator);
}
