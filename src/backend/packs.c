/* packs.c - packed weights that kernels of several plans have in common. */
#define _GNU_SOURCE  /* madvise */
#include "backend_impl.h"

#include <sys/mman.h>

enum { LARGE_PAGE = 2 << 20 };

/* What weights were packed from, and how. Factors are known by two hashes. */
typedef struct pack_key {
    const cfxi_backend *backend;
    const float *w;
    int64_t sizes[8];
    uint64_t scale[2];
} pack_key;

typedef struct pack_item {
    pack_key key;
    cfxi_packed *packed;
    size_t before;  /* 1 + another item of the same weights; or 0 */
} pack_item;

static pack_key key_of(const cfxi_kernel *k, const cfxi_constants *c, const int64_t sizes[8],
                       size_t columns)
{
    pack_key key;
    memset(&key, 0, sizeof key);
    key.backend = k->backend;
    key.w = c->w;
    memcpy(key.sizes, sizes, sizeof key.sizes);
    if (c->scale) {
        uint64_t other = 1;
        for (size_t i = 0; i < columns; i++) {
            uint32_t bits;
            memcpy(&bits, &c->scale[i], sizeof bits);
            other = cfxi_base_hash_mix(other, bits);
        }
        key.scale[0] = cfxi_base_hash_bytes(c->scale, columns * sizeof *c->scale);
        key.scale[1] = other;
    }
    return key;
}

/* Weights that no cache holds are read at up to twice the speed from pages of 2 MiB, and so they
 * begin with one. The system may refuse that, and nothing else changes. */
static float *place(cfxi_packed *p, size_t align)
{
    float *data = (float *)(((uintptr_t)(p + 1) + align - 1) / align * align);
#if defined(MADV_HUGEPAGE)
    if (align == LARGE_PAGE)
        madvise(data, p->bytes / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#endif
    return data;
}

static cfxi_packed *new_packed(size_t floats, const cfx_allocator *allocator, cfx_error *err)
{
    size_t block;
    const size_t align = floats >= LARGE_PAGE / sizeof(float) ? LARGE_PAGE : CFXI_ALIGN;
    if (!cfxi_base_mul_size(floats, sizeof(float), sizeof(cfxi_packed) + align, &block))
        return cfxi_base_nomem(err), NULL;
    cfxi_packed *p = cfxi_base_alloc(allocator, block);
    if (!p)
        return cfxi_base_nomem(err), NULL;
    cfxi_base_prefer_large_pages(p, block);
    *p = (cfxi_packed){.allocator = allocator, .block = block, .bytes = floats * sizeof(float)};
    atomic_init(&p->refs, 1);
    p->data = place(p, align);
    return p;
}

void cfxi_backend_packed_release(cfxi_packed *p)
{
    if (p && atomic_fetch_sub(&p->refs, 1) == 1)
        cfxi_base_free(p->allocator, p, p->block);
}

static size_t latest_of(const cfxi_packs *packs, const float *w)
{
    return (size_t)(uintptr_t)cfxi_base_pointers_get(&packs->by_weight, w);
}

static cfxi_packed *find(const cfxi_packs *packs, const pack_key *key)
{
    const pack_item *items = packs->items.data;
    for (size_t i = latest_of(packs, key->w); i > 0; i = items[i - 1].before)
        if (memcmp(&items[i - 1].key, key, sizeof *key) == 0)
            return items[i - 1].packed;
    return NULL;
}

/* Keeps what is to be packed; false if memory is out. */
static bool keep(cfxi_packs *packs, const pack_key *key, cfxi_packed *packed,
                 const cfx_allocator *allocator)
{
    const size_t before = latest_of(packs, key->w);
    if (!cfxi_base_vec_reserve(&packs->items, 1, sizeof(pack_item), allocator) ||
        !cfxi_base_pointers_set(&packs->by_weight, key->w,
                                (void *)(uintptr_t)(packs->items.size + 1), allocator))
        return false;
    ((pack_item *)packs->items.data)[packs->items.size++] = (pack_item){*key, packed, before};
    atomic_fetch_add(&packed->refs, 1);
    return true;
}

bool cfxi_backend_take_packed(cfxi_kernel *k, const cfxi_constants *c, const int64_t sizes[8],
                              size_t columns, size_t floats, bool *fresh, cfx_error *err)
{
    const pack_key key = key_of(k, c, sizes, columns);
    cfxi_packed *found = c->packs ? find(c->packs, &key) : NULL;
    *fresh = !found;
    if (found) {
        k->packed = found;
        atomic_fetch_add(&found->refs, 1);
        return true;
    }
    k->packed = new_packed(floats, k->allocator, err);
    if (!k->packed)
        return false;
    if (!c->packs || keep(c->packs, &key, k->packed, k->allocator))
        return true;
    cfxi_backend_packed_release(k->packed);
    k->packed = NULL;
    return cfxi_base_nomem(err), false;
}

void cfxi_backend_forget_packed(cfxi_packs *packs, const cfx_allocator *allocator)
{
    const pack_item *last = &((pack_item *)packs->items.data)[--packs->items.size];
    cfxi_base_pointers_set(&packs->by_weight, last->key.w, (void *)(uintptr_t)last->before,
                           allocator);
    cfxi_backend_packed_release(last->packed);
}

void cfxi_backend_packs_free(cfxi_packs *packs, const cfx_allocator *allocator)
{
    for (size_t i = 0; i < packs->items.size; i++)
        cfxi_backend_packed_release(((pack_item *)packs->items.data)[i].packed);
    cfxi_base_vec_free(&packs->items, sizeof(pack_item), allocator);
    cfxi_base_pointers_free(&packs->by_weight, allocator);
}
