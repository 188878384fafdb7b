/* chunks.c - memory for graphs, kept for the next one when a graph goes.
 *
 * A program that captures or copies graphs again and again frees megabytes and asks for them anew.
 * malloc gives them back to the system in between, and touching them the next time costs a fifth
 * of a trace. So blocks of the sizes that arenas and tables use (powers of two) are kept, up to
 * LIMIT bytes in all. The GIL guards the lists.
 */
#include "pycfx.h"

enum { SMALLEST = 12, LARGEST = SMALLEST + CHUNK_CLASSES - 1 };  /* powers of two: 4 KiB, 1 MiB */
static const size_t LIMIT = (size_t)16 << 20;

/* The list for blocks of that size, or -1: they go to malloc. */
static int class_of(size_t size)
{
#ifdef __SANITIZE_ADDRESS__
    return size == SIZE_MAX ? 0 : -1;  /* what is freed must be found out when it is used */
#else
    if (size < (size_t)1 << SMALLEST || size > (size_t)1 << LARGEST || (size & (size - 1)) != 0)
        return -1;
    return __builtin_ctzll(size) - SMALLEST;
#endif
}

static void *chunk_alloc(void *ctx, size_t size)
{
    chunk_cache *cache = ctx;
    int class_ = class_of(size);
    void *block = class_ < 0 ? NULL : cache->lists[class_];
    if (!block)
        return malloc(size);
    memcpy(&cache->lists[class_], block, sizeof block);
    cache->held -= size;
    return block;
}

static void chunk_free(void *ctx, void *block, size_t size)
{
    chunk_cache *cache = ctx;
    int class_ = class_of(size);
    if (class_ < 0 || cache->held + size > LIMIT) {
        free(block);
        return;
    }
    memcpy(block, &cache->lists[class_], sizeof block);
    cache->lists[class_] = block;
    cache->held += size;
}

void chunks_init(module_state *st)
{
    st->allocator = (cfx_allocator){.alloc = chunk_alloc, .free = chunk_free, .ctx = &st->chunks};
}

void chunks_release(module_state *st)
{
    for (int i = 0; i < CHUNK_CLASSES; i++) {
        void *block;
        while ((block = st->chunks.lists[i])) {
            memcpy(&st->chunks.lists[i], block, sizeof block);
            free(block);
        }
    }
    st->chunks.held = 0;
}
