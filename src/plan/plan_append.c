/* plan_append.c - caches that grow in place: plan_append.h. */
#include "plan_append.h"

#include "base/forks.h"

enum {
    LEAST_ROOM = 16,        /* rows behind those that there are */
    MOST_ROOM = 32 << 20    /* and bytes, at most: below that, as much as is taken */
};

struct cfxi_appender {
    atomic_int refs;
    const cfx_allocator *allocator;
    cfxi_lock lock;
    cfxi_pointers growths;  /* where the first element is -> growth *, of all that live */
};

/* Memory with room. */
typedef struct growth {
    cfxi_appender *owner;   /* retained */
    cfxi_storage *storage;  /* which this is the memory of; not retained */
    size_t block;           /* bytes */
    char *first;            /* aligned */
    cfx_tensor shape;       /* of all rows: type, sizes and strides alone */
    size_t dim;
    int64_t taken;          /* rows that tensors have; under the lock */
} growth;

cfxi_appender *cfxi_plan_appender_new(const cfx_allocator *allocator, cfx_error *err)
{
    cfxi_appender *a = cfxi_base_alloc(allocator, sizeof *a);
    if (!a)
        return cfxi_base_nomem(err), NULL;
    memset(a, 0, sizeof *a);
    a->allocator = allocator;
    atomic_init(&a->refs, 1);
    if (cfxi_base_lock_new(&a->lock))
        return a;
    cfxi_base_free(allocator, a, sizeof *a);
    return cfxi_base_nomem(err), NULL;
}

cfxi_appender *cfxi_plan_appender_retain(cfxi_appender *a)
{
    atomic_fetch_add(&a->refs, 1);
    return a;
}

void cfxi_plan_appender_release(cfxi_appender *a)
{
    if (!a || atomic_fetch_sub(&a->refs, 1) != 1)
        return;
    const cfx_allocator *allocator = a->allocator;
    cfxi_base_pointers_free(&a->growths, allocator);
    cfxi_base_lock_free(&a->lock);
    cfxi_base_free(allocator, a, sizeof *a);
}

/* In a child that was forked while another thread changed the table, nothing in it is trusted: what
 * grows next is copied once. */
static void lock(cfxi_appender *a)
{
    if (cfxi_base_lock_take(&a->lock))
        a->growths = (cfxi_pointers){0};
}

/* ---- memory -------------------------------------------------------------------------------- */

/* No tensor has the memory any more. */
static void end_growth(void *ctx)
{
    growth *g = ctx;
    cfxi_appender *a = g->owner;
    lock(a);
    cfxi_base_pointers_set(&a->growths, g->first, NULL, a->allocator);
    cfxi_base_lock_leave(&a->lock);
    cfxi_base_free(a->allocator, g, g->block);
    cfxi_plan_appender_release(a);
}

/* How many rows fit, where so many are taken. */
static int64_t room_for(int64_t taken, int64_t row)
{
    const int64_t most = row > 0 ? MOST_ROOM / row : taken;
    const int64_t more = taken < most ? taken : most;
    return taken + (more > LEAST_ROOM ? more : LEAST_ROOM);
}

/* Memory for tensors like `t`, with room along `dim`; its rows are taken. NULL with *err set. */
static growth *new_growth(cfxi_appender *a, const cfx_tensor *t, size_t dim, cfx_error *err)
{
    const int64_t taken = t->size[dim];
    const int64_t bytes = cfxi_tensor_numel(t) * (int64_t)cfxi_tensor_itemsize(t);
    const int64_t room = room_for(taken, bytes / taken);
    size_t block;
    growth *g = cfxi_base_mul_size((size_t)(bytes / taken), (size_t)room,
                                   sizeof *g + CFXI_ALIGN, &block)
                    ? cfxi_base_alloc(a->allocator, block) : NULL;
    if (!g)
        return cfxi_base_nomem(err), NULL;
    memset(g, 0, sizeof *g);
    g->owner = cfxi_plan_appender_retain(a);
    g->block = block;
    g->first = (char *)(((uintptr_t)(g + 1) + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN);
    g->dim = dim;
    g->taken = taken;
    g->shape.dtype = t->dtype;
    g->shape.ndim = t->ndim;
    memcpy(g->shape.size, t->size, sizeof t->size);
    g->shape.size[dim] = room;
    cfxi_tensor_contiguous_strides(g->shape.size, t->ndim, cfxi_tensor_itemsize(t),
                                   g->shape.stride);
    return g;
}

/* Lets tensors find the memory. Returns a tensor with all of it, whose release ends it; NULL with
 * *err set, and then it is gone. */
static cfx_tensor *enter(growth *g, cfx_error *err)
{
    cfxi_appender *a = g->owner;
    cfx_tensor *whole =
        cfx_tensor_from_memory((cfx_dtype)g->shape.dtype, g->shape.size, NULL, g->shape.ndim,
                               g->first, false, end_growth, g, a->allocator, err);
    if (!whole) {
        end_growth(g);
        return NULL;
    }
    g->storage = whole->storage;
    lock(a);
    const bool entered = cfxi_base_pointers_set(&a->growths, g->first, g, a->allocator);
    cfxi_base_lock_leave(&a->lock);
    if (entered)
        return whole;
    cfx_tensor_release(whole);
    return cfxi_base_nomem(err), NULL;
}

/* ---- taking rows --------------------------------------------------------------------------- */

static bool is_all_taken(const growth *g, const cfx_tensor *t, size_t dim)
{
    if (g->dim != dim || g->shape.dtype != t->dtype || g->shape.ndim != t->ndim ||
        t->size[dim] != g->taken)
        return false;
    for (size_t i = 0; i < t->ndim; i++)
        if ((i != dim && t->size[i] != g->shape.size[i]) ||
            (t->size[i] > 1 && t->stride[i] != g->shape.stride[i]))
            return false;
    return true;
}

/* A tensor over the memory of `g`: its first rows. */
static cfx_status share(cfx_tensor *t, const growth *g, cfx_error *err)
{
    const cfx_tensor base = {.storage = g->storage, .data = g->first};
    memcpy(t->stride, g->shape.stride, sizeof t->stride);
    return cfxi_tensor_share(t, &base, 0, err);
}

/* If `old` has all rows that are taken of memory with room, its next rows become those of `t`. The
 * memory lives while that is found out: `old` has it. */
static bool take_rows(cfxi_appender *a, const cfx_tensor *old, cfx_tensor *t, size_t dim)
{
    cfx_error err = {0};
    lock(a);
    growth *g = cfxi_base_pointers_get(&a->growths, old->data);
    const bool takes = g && is_all_taken(g, old, dim) && t->size[dim] <= g->shape.size[dim] &&
                       share(t, g, &err) == CFX_OK;
    if (takes)
        g->taken = t->size[dim];
    cfxi_base_lock_leave(&a->lock);
    return takes;
}

/* ---- cat ----------------------------------------------------------------------------------- */

typedef struct growing_cat {
    const cfx_datum *items;
    size_t n;
    size_t dim;
    int64_t rows;  /* of all */
} growing_cat;

static bool is_like(const cfx_tensor *a, const cfx_tensor *b, size_t dim)
{
    if (a->dtype != b->dtype || a->ndim != b->ndim)
        return false;
    for (size_t i = 0; i < a->ndim; i++)
        if (i != dim && a->size[i] != b->size[i])
            return false;
    return true;
}

static bool find_cat(const cfx_datum *args, size_t n, growing_cat *cat)
{
    const cfx_datum *items = n > 0 ? cfx_datum_items(args[0], &cat->n) : NULL;
    if (!items || cat->n < 2 || n > 2 || items[0].kind != CFX_DATUM_TENSOR ||
        (n == 2 && (args[1].kind != CFX_DATUM_INT || args[1].symbolic)))
        return false;
    const cfx_tensor *first = items[0].as.tensor;
    const int64_t dim = n == 2 ? args[1].as.i : 0;
    cat->items = items;
    cat->dim = (size_t)(dim < 0 ? dim + first->ndim : dim);
    if (cat->dim >= first->ndim || cfxi_tensor_numel(first) == 0)
        return false;
    cat->rows = first->size[cat->dim];
    for (size_t i = 1; i < cat->n; i++) {
        if (items[i].kind != CFX_DATUM_TENSOR ||
            !is_like(first, items[i].as.tensor, cat->dim))
            return false;
        cat->rows += items[i].as.tensor->size[cat->dim];
    }
    return cat->rows - first->size[cat->dim] < first->size[cat->dim];
}

/* Copies the items from number `from` on to where they belong. */
static cfx_status copy_items(cfx_runtime *rt, const growing_cat *cat, cfx_tensor *t, size_t from,
                             cfx_error *err)
{
    cfx_tensor part;
    memcpy(&part, t, sizeof part);
    for (size_t i = 0; i < cat->n; i++) {
        const cfx_tensor *item = cat->items[i].as.tensor;
        part.size[cat->dim] = item->size[cat->dim];
        if (i >= from)
            CFX_TRY(cfxi_rt_copy(rt, &part, item, err));
        part.data += item->size[cat->dim] * t->stride[cat->dim];
    }
    return CFX_OK;
}

/* The result, over memory of its own that has room. */
static cfx_status begin_growth(cfxi_appender *a, const growing_cat *cat, cfx_tensor *t,
                               cfx_error *err)
{
    growth *g = new_growth(a, t, cat->dim, err);
    cfx_tensor *whole = g ? enter(g, err) : NULL;
    if (!whole)
        return CFX_E_NOMEM;
    const cfx_status status = share(t, g, err);
    cfx_tensor_release(whole);
    return status;
}

cfx_datum cfxi_plan_append(cfxi_appender *a, cfx_runtime *rt, const cfx_datum *args, size_t n,
                           cfx_error *err)
{
    growing_cat cat;
    if (!find_cat(args, n, &cat))
        return cfx_datum_invalid();
    const cfx_tensor *old = cat.items[0].as.tensor;
    int64_t sizes[CFX_MAX_DIMS];
    memcpy(sizes, old->size, sizeof sizes);
    sizes[cat.dim] = cat.rows;
    cfx_tensor *t =
        cfxi_tensor_header((cfx_dtype)old->dtype, sizes, old->ndim, a->allocator, err);
    if (!t)
        return cfx_datum_invalid();
    const bool takes = take_rows(a, old, t, cat.dim);
    cfx_status status = takes ? CFX_OK : begin_growth(a, &cat, t, err);
    if (status == CFX_OK)
        status = copy_items(rt, &cat, t, takes ? 1 : 0, err);
    if (status == CFX_OK)
        return cfx_datum_tensor(t);
    cfx_tensor_release(t);
    return cfx_datum_invalid();
}
