/* tensor_later.c - elements that are not aligned where they lie, in a file: copied when they are
 * needed, once. */
#include "tensor_impl.h"

#include "base/forks.h"

struct cfxi_later {
    atomic_bool done;      /* the header and the storage point to the copy */
    cfxi_lock lock;        /* of who copies */
    char *from;
    cfxi_fetch_fn *fetch;
    char *block;           /* has the copy; NULL: there is none yet */
    size_t room;           /* bytes of the block */
};

static cfxi_later *later_new(char *from, cfxi_fetch_fn *fetch, const cfx_allocator *allocator)
{
    cfxi_later *l = cfxi_base_alloc(allocator, sizeof *l);
    if (!l)
        return NULL;
    *l = (cfxi_later){.from = from, .fetch = fetch};
    atomic_init(&l->done, false);
    if (cfxi_base_lock_new(&l->lock))
        return l;
    cfxi_base_free(allocator, l, sizeof *l);
    return NULL;
}

void cfxi_tensor_later_free(cfxi_storage *s)
{
    cfxi_later *l = s->later;
    if (l->block)
        cfxi_base_free(s->allocator, l->block, l->room);
    cfxi_base_lock_free(&l->lock);
    cfxi_base_free(s->allocator, l, sizeof *l);
}

cfx_tensor *cfxi_tensor_later(cfx_dtype dtype, const int64_t *sizes, const int64_t *strides,
                              size_t ndim, char *from, cfxi_fetch_fn *fetch,
                              void (*release)(void *ctx), void *ctx,
                              const cfx_allocator *allocator, cfx_error *err)
{
    cfx_tensor *t = cfx_tensor_from_memory(dtype, sizes, strides, ndim, from, false, NULL, ctx,
                                           allocator, err);
    if (!t)
        return NULL;
    t->storage->later = later_new(from, fetch, t->allocator);
    if (!t->storage->later) {
        cfx_tensor_release(t);
        cfxi_base_nomem(err);
        return NULL;
    }
    t->storage->release = release;
    return t;
}

/* `torn`: a fork has left a copy half-made. There is one header alone, and nobody has read it. */
static bool make_copy(cfxi_later *l, cfxi_storage *s, cfx_tensor *t, bool torn)
{
    if (torn)
        t->data = s->data = l->from;
    if (!cfxi_base_mul_size(s->size, 1, CFXI_ALIGN, &l->room))
        return false;
    l->block = cfxi_base_alloc(s->allocator, l->room);
    if (!l->block)
        return false;
    char *to = l->block + (CFXI_ALIGN - (uintptr_t)l->block % CFXI_ALIGN) % CFXI_ALIGN;
    l->fetch(s->ctx, to, l->from, s->size);
    t->data = to + (t->data - s->data);
    s->data = to;
    return true;
}

/* Who holds a tensor may read it: that its elements move is not a change to him. */
cfx_status cfxi_tensor_settle_later(const cfx_tensor *t, cfx_error *err)
{
    cfxi_later *l = t->storage->later;
    if (atomic_load_explicit(&l->done, memory_order_acquire))
        return CFX_OK;
    const bool torn = cfxi_base_lock_take(&l->lock);
    bool done = atomic_load_explicit(&l->done, memory_order_relaxed);
    if (!done) {
        done = make_copy(l, t->storage, (cfx_tensor *)(uintptr_t)t, torn);
        atomic_store_explicit(&l->done, done, memory_order_release);
    }
    cfxi_base_lock_leave(&l->lock);
    return done ? CFX_OK : cfxi_base_nomem(err);
}

const char *cfxi_tensor_bytes(const cfx_tensor *t)
{
    const cfxi_later *l = t->storage ? t->storage->later : NULL;
    return l && !atomic_load_explicit(&l->done, memory_order_acquire) ? l->from : t->data;
}
