/* alloc.c - the default allocator, growing arrays, hashing of bytes. */
#define _GNU_SOURCE  /* madvise */
#include "base_impl.h"

#include <stdlib.h>
#include <sys/mman.h>

static void *malloc_alloc(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void malloc_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size;
    free(ptr);
}

static const cfx_allocator malloc_allocator = {malloc_alloc, malloc_free, NULL};

const cfx_allocator *cfxi_base_allocator(const cfx_allocator *allocator)
{
    return allocator ? allocator : &malloc_allocator;
}

void *cfxi_base_alloc(const cfx_allocator *allocator, size_t size)
{
    allocator = cfxi_base_allocator(allocator);
    return allocator->alloc(allocator->ctx, size ? size : 1);
}

void cfxi_base_free(const cfx_allocator *allocator, void *ptr, size_t size)
{
    if (!ptr)
        return;
    allocator = cfxi_base_allocator(allocator);
    allocator->free(allocator->ctx, ptr, size ? size : 1);
}

enum { LARGE_PAGE = 1 << 21 };

void cfxi_base_prefer_large_pages(void *block, size_t size)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t first = ((uintptr_t)block + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    const uintptr_t last = ((uintptr_t)block + size) / LARGE_PAGE * LARGE_PAGE;
    if (first < last)
        madvise((void *)first, last - first, MADV_HUGEPAGE);
#else
    (void)block;
    (void)size;
#endif
}

bool cfxi_base_vec_reserve(cfxi_vec *vec, size_t more, size_t item_size,
                           const cfx_allocator *allocator)
{
    size_t needed;
    if (__builtin_add_overflow(vec->size, more, &needed))
        return false;
    if (needed <= vec->capacity)
        return true;
    size_t capacity = vec->capacity ? vec->capacity * 2 : 8;
    if (capacity < needed)
        capacity = needed;
    size_t bytes;
    if (!cfxi_base_mul_size(capacity, item_size, 0, &bytes))
        return false;
    void *data = cfxi_base_alloc(allocator, bytes);
    if (!data)
        return false;
    if (vec->size)
        memcpy(data, vec->data, vec->size * item_size);
    cfxi_base_free(allocator, vec->data, vec->capacity * item_size);
    vec->data = data;
    vec->capacity = capacity;
    return true;
}

void cfxi_base_vec_free(cfxi_vec *vec, size_t item_size, const cfx_allocator *allocator)
{
    cfxi_base_free(allocator, vec->data, vec->capacity * item_size);
    *vec = (cfxi_vec){0};
}

/* Little-endian on every machine: hashes are stored. */
static uint64_t load8(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static uint64_t load4(const unsigned char *p)
{
    return p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

/* Fewer than 8 bytes as a number; the loads overlap, so that there is no loop. */
static uint64_t load_tail(const unsigned char *p, size_t size)
{
    if (size >= 4)
        return load4(p) | load4(p + size - 4) << 32;
    if (size == 0)
        return 0;
    return p[0] | (uint64_t)p[size / 2] << 8 | (uint64_t)p[size - 1] << 16;
}

uint64_t cfxi_base_hash_bytes(const void *data, size_t size)
{
    const unsigned char *p = data;
    uint64_t h = 0x2d358dccaa6c78a5u ^ size;
    for (; size >= 8; p += 8, size -= 8) {
        h = (h ^ load8(p)) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    h = (h ^ load_tail(p, size)) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 32)) * 0xc4ceb9fe1a85ec53u;  /* names differ at their ends: in the high bits */
    return h ^ (h >> 32);
}
