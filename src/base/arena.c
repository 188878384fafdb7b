/* arena.c - bump allocation in chunks with a free list per size class. */
#include "base_impl.h"

/* Classes: multiples of 8 up to FINE, then steps of 128 up to CFXI_ARENA_LARGE. */
enum { FINE = CFXI_ARENA_FINE, FINE_CLASSES = FINE / 8, STEP = 128 };

_Static_assert(FINE_CLASSES + (CFXI_ARENA_LARGE - FINE) / STEP == CFXI_ARENA_CLASSES,
               "every size up to CFXI_ARENA_LARGE needs a class");

/* Freed blocks are forbidden ground where the address sanitizer can guard it. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FORBID(ptr, size) ASAN_POISON_MEMORY_REGION(ptr, size)
#define ALLOW(ptr, size) ASAN_UNPOISON_MEMORY_REGION(ptr, size)
#else
#define FORBID(ptr, size) ((void)0)
#define ALLOW(ptr, size) ((void)0)
#endif

struct cfxi_chunk {
    struct cfxi_chunk *next;
    size_t size;
};

struct cfxi_large {
    struct cfxi_large *prev, *next;
    size_t size;
    size_t pad;  /* keeps the block behind the header 16-byte aligned */
};

static size_t size_class(size_t size, size_t *rounded)
{
    if (size <= FINE) {
        size_t units = size ? (size + 7) / 8 : 1;
        *rounded = units * 8;
        return units - 1;
    }
    size_t steps = (size - FINE + STEP - 1) / STEP;
    *rounded = FINE + steps * STEP;
    return FINE_CLASSES + steps - 1;
}

void cfxi_base_arena_init(cfxi_arena *arena, const cfx_allocator *allocator)
{
    memset(arena, 0, sizeof *arena);
    arena->allocator = allocator;
}

void cfxi_base_arena_release(cfxi_arena *arena)
{
    for (struct cfxi_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        ALLOW(chunk, chunk->size);
        cfxi_base_free(arena->allocator, chunk, chunk->size);
    }
    for (struct cfxi_large *large = arena->large, *next; large; large = next) {
        next = large->next;
        cfxi_base_free(arena->allocator, large, large->size);
    }
    cfxi_base_arena_init(arena, arena->allocator);
}

static void *alloc_large(cfxi_arena *arena, size_t size)
{
    size_t total;
    if (__builtin_add_overflow(size, sizeof(struct cfxi_large), &total))
        return NULL;
    struct cfxi_large *large = cfxi_base_alloc(arena->allocator, total);
    if (!large)
        return NULL;
    *large = (struct cfxi_large){.next = arena->large, .size = total};
    if (arena->large)
        arena->large->prev = large;
    arena->large = large;
    arena->bytes += total;
    return large + 1;
}

static void free_large(cfxi_arena *arena, void *ptr)
{
    struct cfxi_large *large = (struct cfxi_large *)ptr - 1;
    if (large->prev)
        large->prev->next = large->next;
    else
        arena->large = large->next;
    if (large->next)
        large->next->prev = large->prev;
    arena->bytes -= large->size;
    cfxi_base_free(arena->allocator, large, large->size);
}

/* Small graphs are many: the first chunk is small, and later ones double the arena up to the usual
 * size. */
static bool grow(cfxi_arena *arena, size_t needed)
{
    size_t least = needed + sizeof(struct cfxi_chunk);
    size_t size = arena->bytes;
    if (size < CFXI_ARENA_CHUNK / 16)
        size = CFXI_ARENA_CHUNK / 16;
    if (size > CFXI_ARENA_CHUNK)
        size = CFXI_ARENA_CHUNK;
    if (size < least)
        size = least;
    struct cfxi_chunk *chunk = cfxi_base_alloc(arena->allocator, size);
    if (!chunk)
        return false;
    chunk->next = arena->chunks;
    chunk->size = size;
    arena->chunks = chunk;
    arena->bytes += size;
    arena->next = (char *)(chunk + 1);
    arena->end = (char *)chunk + size;
    return true;
}

void *cfxi_base_arena_alloc_slowly(cfxi_arena *arena, size_t size)
{
    if (size > CFXI_ARENA_LARGE)
        return alloc_large(arena, size);
    size_t rounded;
    size_t class_ = size_class(size, &rounded);
    void *block = arena->free_lists[class_];
    if (block) {
        ALLOW(block, rounded);
        memcpy(&arena->free_lists[class_], block, sizeof(void *));
        return block;
    }
    if ((size_t)(arena->end - arena->next) < rounded && !grow(arena, rounded))
        return NULL;
    block = arena->next;
    arena->next += rounded;
    return block;
}

void cfxi_base_arena_free(cfxi_arena *arena, void *ptr, size_t size)
{
    if (!ptr)
        return;
    if (size > CFXI_ARENA_LARGE) {
        free_large(arena, ptr);
        return;
    }
    size_t rounded;
    size_t class_ = size_class(size, &rounded);
#ifndef NDEBUG
    memset(ptr, 0xdd, rounded);  /* whoever still looks at it should notice */
#endif
    memcpy(ptr, &arena->free_lists[class_], sizeof(void *));
    FORBID(ptr, rounded);
    arena->free_lists[class_] = ptr;
}

void *cfxi_base_arena_zeros(cfxi_arena *arena, size_t n, size_t item_size)
{
    size_t bytes;
    void *array =
        cfxi_base_mul_size(n, item_size, 1, &bytes) ? cfxi_base_arena_alloc(arena, bytes) : NULL;
    if (array)
        memset(array, 0, bytes);
    return array;
}

/* ---- as an allocator ----------------------------------------------------------------------- */

static void *arena_alloc(void *ctx, size_t size) { return cfxi_base_arena_alloc(ctx, size); }
static void arena_free(void *ctx, void *ptr, size_t size) { cfxi_base_arena_free(ctx, ptr, size); }

cfx_allocator cfxi_base_arena_allocator(cfxi_arena *arena)
{
    return (cfx_allocator){arena_alloc, arena_free, arena};
}
