/* recycle.c - large blocks that wait for the next who asks.
 *
 * Blocks of a size class are alike: an eighth of a power of two apart. A slot is taken and filled
 * by exchanging pointers, so threads need no lock. There wait at most as many bytes as are in use.
 */
#include "recycle.h"

#include <stdatomic.h>

enum {
    SMALLEST = 16,  /* 64 KiB: malloc itself is quick below */
    LARGEST = 30,   /* 1 GiB */
    STEPS = 8,      /* classes between powers of two */
    CLASSES = (LARGEST - SMALLEST) * STEPS,
    SLOTS = 48,
    ALWAYS = 1 << 22  /* bytes that may wait, whatever is in use */
};

typedef struct recycler {
    cfx_allocator own;            /* first: its ctx is this */
    const cfx_allocator *from;
    atomic_size_t refs;           /* blocks that were handed out, and the runtime */
    atomic_bool closed;
    atomic_size_t used;           /* bytes of large blocks that were handed out, */
    atomic_size_t kept;           /* and that wait */
    _Atomic(void *) slots[CLASSES][SLOTS];
} recycler;

/* The class of a size, and the size of its blocks; -1 for those that nobody keeps. */
static int class_of(size_t size, size_t *block)
{
    int log2 = SMALLEST;
#if defined(__SANITIZE_ADDRESS__)
    return -1;  /* who goes beyond a block, or uses it afterwards, is seen */
#endif
    if (size <= (size_t)1 << SMALLEST || size > (size_t)1 << LARGEST)
        return -1;
    while (size > (size_t)2 << log2)
        log2++;
    const size_t step = ((size_t)1 << log2) / STEPS;
    const size_t above = (size - ((size_t)1 << log2) - 1) / step;  /* steps */
    *block = ((size_t)1 << log2) + (above + 1) * step;
    return (log2 - SMALLEST) * STEPS + (int)above;
}

static void drain(recycler *r)
{
    for (int k = 0; k < CLASSES && atomic_load(&r->kept) > 0; k++) {
        const size_t base = (size_t)1 << (SMALLEST + k / STEPS);
        const size_t block = base + (size_t)(k % STEPS + 1) * (base / STEPS);
        for (int i = 0; i < SLOTS; i++) {
            void *waiting = atomic_exchange(&r->slots[k][i], NULL);
            if (!waiting)
                continue;
            atomic_fetch_sub(&r->kept, block);
            cfxi_base_free(r->from, waiting, block);
        }
    }
}

static void release(recycler *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    drain(r);
    cfxi_base_free(r->from, r, sizeof *r);
}

static void *take(recycler *r, int class, size_t block)
{
    for (int i = 0; atomic_load_explicit(&r->kept, memory_order_relaxed) > 0 && i < SLOTS; i++) {
        void *waiting = atomic_load_explicit(&r->slots[class][i], memory_order_relaxed)
                            ? atomic_exchange(&r->slots[class][i], NULL) : NULL;
        if (waiting) {
            atomic_fetch_sub(&r->kept, block);
            return waiting;
        }
    }
    return NULL;
}

static bool keep(recycler *r, int class, void *given, size_t block)
{
    const size_t used = atomic_load_explicit(&r->used, memory_order_relaxed);
    const size_t kept = atomic_fetch_add(&r->kept, block) + block;
    for (int i = 0; !atomic_load(&r->closed) && i < SLOTS; i++) {
        void *empty = NULL;
        if (kept > used && kept > ALWAYS)
            break;
        if (atomic_compare_exchange_strong(&r->slots[class][i], &empty, given))
            return true;
    }
    atomic_fetch_sub(&r->kept, block);
    return false;
}

static void *recycler_alloc(void *ctx, size_t size)
{
    recycler *r = ctx;
    size_t block = size;
    const int class = class_of(size, &block);
    void *found = class < 0 ? NULL : take(r, class, block);
    if (!found)
        found = cfxi_base_alloc(r->from, block);
    if (!found)
        return NULL;
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    if (class >= 0)
        atomic_fetch_add_explicit(&r->used, block, memory_order_relaxed);
    return found;
}

static void recycler_free(void *ctx, void *given, size_t size)
{
    recycler *r = ctx;
    size_t block = size;
    const int class = class_of(size, &block);
    if (class >= 0)
        atomic_fetch_sub_explicit(&r->used, block, memory_order_relaxed);
    if (class < 0 || !keep(r, class, given, block))
        cfxi_base_free(r->from, given, block);
    release(r);
}

const cfx_allocator *cfxi_base_recycler_new(const cfx_allocator *from, cfx_error *err)
{
    recycler *r = cfxi_base_alloc(from, sizeof *r);
    if (!r)
        return cfxi_base_nomem(err), NULL;
    memset(r, 0, sizeof *r);
    r->own = (cfx_allocator){recycler_alloc, recycler_free, r};
    r->from = from;
    atomic_init(&r->refs, 1);
    return &r->own;
}

void cfxi_base_recycler_close(const cfx_allocator *own)
{
    if (!own)
        return;
    recycler *r = own->ctx;
    atomic_store(&r->closed, true);
    drain(r);
    release(r);
}

const cfx_allocator *cfxi_base_recycler_from(const cfx_allocator *own)
{
    return ((const recycler *)own->ctx)->from;
}

size_t cfxi_base_recycler_kept(const cfx_allocator *own)
{
    const recycler *r = own->ctx;
    return atomic_load(&r->kept);
}
