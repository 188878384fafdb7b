/* tensor.c - tensors: headers over counted storage. */
#include "tensor_impl.h"


#include <stdlib.h>

/* ---- storage ------------------------------------------------------------------------------- */

/* Elements follow the struct in one block, aligned by hand: the allocator promises 16 bytes. */
static cfxi_storage *storage_new(size_t size, const cfx_allocator *allocator)
{
    size_t block;
    if (!cfxi_base_mul_size(size, 1, sizeof(cfxi_storage) + CFXI_ALIGN, &block))
        return NULL;
    cfxi_storage *s = cfxi_base_alloc(allocator, block);
    if (!s)
        return NULL;
    uintptr_t first = (uintptr_t)(s + 1);
    *s = (cfxi_storage){
        .data = (char *)((first + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN),
        .size = size,
        .allocator = allocator,
        .block = block,
    };
    atomic_init(&s->refs, 1);
    return s;
}

static void storage_release(cfxi_storage *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
        return;
    if (s->release)
        s->release(s->ctx);
    if (s->later)
        cfxi_tensor_later_free(s);
    cfxi_base_free(s->allocator, s, s->block);
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* The product of sizes that are still to be checked, or of strides that nobody reads because there
 * are no elements: it may wrap around. */
static int64_t wrapped(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

void cfxi_tensor_contiguous_strides(const int64_t *sizes, size_t ndim, size_t itemsize,
                                    int64_t *strides)
{
    int64_t step = (int64_t)itemsize;
    for (size_t i = ndim; i-- > 0;) {
        strides[i] = step;
        if (!cfx_dim_is_symbol(sizes[i]) && sizes[i] > 1)
            step = wrapped(step, sizes[i]);
    }
}

void cfxi_tensor_ordered_strides(const int64_t *sizes, size_t ndim, size_t itemsize,
                                 const uint8_t *order, int64_t *strides)
{
    int64_t step = (int64_t)itemsize;
    for (size_t i = ndim; i-- > 0;) {
        strides[order[i]] = step;
        if (sizes[order[i]] > 1)
            step = wrapped(step, sizes[order[i]]);
    }
}

/* The bytes of all elements must fit, as if no size were 0. Symbols are taken for 1. */
static cfx_status check_sizes(cfx_dtype dtype, const int64_t *sizes, size_t ndim, cfx_error *err)
{
    if ((unsigned)dtype >= CFX_DTYPE_COUNT || !cfxi_tensor_dtype_is_computable(dtype))
        return cfx_error_set(err, CFX_E_TYPE, "cfx cannot compute with tensors of dtype %s",
                             (unsigned)dtype < CFX_DTYPE_COUNT ? cfx_dtype_name(dtype) : "unknown");
    if (ndim > CFX_MAX_DIMS)
        return cfx_error_set(err, CFX_E_SHAPE, "the tensor has %zu dimensions; cfx supports up to "
                             "%d", ndim,
                             CFX_MAX_DIMS);
    if (ndim > 0 && !sizes)
        return cfx_error_set(err, CFX_E_VALUE, "the sizes of a tensor of %zu dimensions are NULL",
                             ndim);
    int64_t bytes = (int64_t)cfx_dtype_size(dtype);
    for (size_t i = 0; i < ndim; i++) {
        if (cfx_dim_is_symbol(sizes[i]))
            continue;
        if (sizes[i] < 0 && sizes[i] != CFX_DIM_UNKNOWN)
            return cfx_error_set(err, CFX_E_SHAPE, "size %zu of a tensor is negative: %lld", i,
                                 (long long)sizes[i]);
        if (sizes[i] > 1 && __builtin_mul_overflow(bytes, sizes[i], &bytes))
            return cfx_error_set(err, CFX_E_SHAPE, "the tensor has more bytes than memory can "
                                 "hold");
    }
    return CFX_OK;
}

/* ---- making -------------------------------------------------------------------------------- */

cfx_tensor *cfxi_tensor_header(cfx_dtype dtype, const int64_t *sizes, size_t ndim,
                               const cfx_allocator *allocator, cfx_error *err)
{
    if (check_sizes(dtype, sizes, ndim, err) != CFX_OK)
        return NULL;
    allocator = cfxi_base_allocator(allocator);
    cfx_tensor *t = cfxi_base_alloc(allocator, sizeof *t);
    if (!t) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *t = (cfx_tensor){.dtype = (uint8_t)dtype, .ndim = (uint8_t)ndim, .allocator = allocator};
    atomic_init(&t->refs, 1);
    for (size_t i = 0; i < ndim; i++)
        t->size[i] = sizes[i];
    cfxi_tensor_contiguous_strides(sizes, ndim, cfx_dtype_size(dtype), t->stride);
    return t;
}

/* Cuts strides that no element is reached by: see CFXI_FAR. */
static void settle_strides(cfx_tensor *t)
{
    for (size_t i = 0; i < t->ndim; i++) {
        const int64_t most = CFXI_FAR / (t->size[i] > 1 ? t->size[i] : 1);
        if (t->stride[i] > most)
            t->stride[i] = most;
        else if (t->stride[i] < -most)
            t->stride[i] = -most;
    }
}

bool cfxi_tensor_span(const cfx_tensor *t, int64_t *before, int64_t *after)
{
    *before = 0;
    *after = (int64_t)cfxi_tensor_itemsize(t);
    for (size_t i = 0; i < t->ndim; i++) {
        int64_t reach;
        if (t->size[i] == 0)
            return false;
        if (__builtin_mul_overflow(t->size[i] - 1, t->stride[i], &reach) || reach < -CFXI_FAR ||
            reach > CFXI_FAR)
            reach = t->stride[i] < 0 ? -CFXI_FAR : CFXI_FAR;
        if (reach < 0)
            *before += reach;
        else
            *after += reach;
    }
    return true;
}

cfx_status cfxi_tensor_allocate(cfx_tensor *t, cfx_error *err)
{
    int64_t before;
    int64_t after;
    bool any = cfxi_tensor_span(t, &before, &after);
    t->storage = storage_new(any ? (size_t)after : 0, t->allocator);
    if (!t->storage)
        return cfx_error_set(err, CFX_E_NOMEM, "out of memory: a tensor needs %lld bytes",
                             (long long)(any ? after : 0));
    t->data = t->storage->data;
    settle_strides(t);
    return CFX_OK;
}

cfx_status cfxi_tensor_share(cfx_tensor *t, const cfx_tensor *base, int64_t offset, cfx_error *err)
{
    int64_t before;
    int64_t after;
    if (!base->storage)
        return CFX_OK;
    CFX_TRY(cfxi_tensor_settle(base, err));
    int64_t first = base->data - base->storage->data;
    if (cfxi_tensor_span(t, &before, &after)) {
        if (__builtin_add_overflow(first, offset, &first) || first < -CFXI_FAR || first > CFXI_FAR)
            return cfx_error_set(err, CFX_E_SHAPE, "the view begins outside the tensor's memory");
        if (first + before < 0 || first + after > (int64_t)base->storage->size)
            return cfx_error_set(err, CFX_E_SHAPE,
                                 "the view covers bytes %lld to %lld, but the memory has %zu bytes",
                                 (long long)(first + before), (long long)(first + after),
                                 base->storage->size);
    }  /* without data it stays where it is safe */
    atomic_fetch_add_explicit(&base->storage->refs, 1, memory_order_relaxed);
    storage_release(t->storage);
    t->storage = base->storage;
    t->data = t->storage->data + first;
    settle_strides(t);
    return CFX_OK;
}

/* Hands `t` on if `status` is good, else lets go of it. */
static cfx_tensor *finish(cfx_tensor *t, cfx_status status)
{
    if (status == CFX_OK)
        return t;
    cfx_tensor_release(t);
    return NULL;
}

cfx_tensor *cfx_tensor_new(cfx_dtype dtype, const int64_t *sizes, size_t ndim,
                           const cfx_allocator *allocator, cfx_error *err)
{
    return cfx_tensor_new_strided(dtype, sizes, NULL, ndim, allocator, err);
}

/* A tensor with memory has no sizes that are symbols. */
static cfx_status check_known(const int64_t *sizes, size_t ndim, cfx_error *err)
{
    for (size_t i = 0; sizes && i < ndim && i < CFX_MAX_DIMS; i++)
        if (sizes[i] < 0)
            return cfx_error_set(err, CFX_E_SHAPE, "size %zu of a tensor with data is %s", i,
                                 cfx_dim_is_symbol(sizes[i]) ? "symbolic" : "negative");
    return CFX_OK;
}

/* A header for memory, with these strides; NULL: contiguous ones. */
static cfx_tensor *strided_header(cfx_dtype dtype, const int64_t *sizes, const int64_t *strides,
                                  size_t ndim, const cfx_allocator *allocator, cfx_error *err)
{
    if (check_known(sizes, ndim, err) != CFX_OK)
        return NULL;
    cfx_tensor *t = cfxi_tensor_header(dtype, sizes, ndim, allocator, err);
    for (size_t i = 0; t && strides && i < ndim; i++)
        t->stride[i] = strides[i];
    return t;
}

cfx_tensor *cfx_tensor_new_strided(cfx_dtype dtype, const int64_t *sizes, const int64_t *strides,
                                   size_t ndim, const cfx_allocator *allocator, cfx_error *err)
{
    for (size_t i = 0; strides && i < ndim && i < CFX_MAX_DIMS; i++)
        if (strides[i] < 0) {
            cfx_error_set(err, CFX_E_SHAPE, "stride %zu of a new tensor is negative", i);
            return NULL;
        }
    cfx_tensor *t = strided_header(dtype, sizes, strides, ndim, allocator, err);
    if (!t)
        return NULL;
    return finish(t, cfxi_tensor_allocate(t, err));
}

cfx_tensor *cfx_tensor_new_abstract(cfx_dtype dtype, const int64_t *sizes, size_t ndim,
                                    const cfx_allocator *allocator, cfx_error *err)
{
    return cfxi_tensor_header(dtype, sizes, ndim, allocator, err);
}

/* A storage over the memory that `t`, whose strides are set, spans around `data`. */
static cfxi_storage *adopt(const cfx_tensor *t, char *data, bool read_only)
{
    int64_t before;
    int64_t after;
    cfxi_storage *s = cfxi_base_alloc(t->allocator, sizeof *s);
    if (!s)
        return NULL;
    bool any = cfxi_tensor_span(t, &before, &after);
    *s = (cfxi_storage){
        .read_only = read_only,
        .data = any ? data + before : data,
        .size = any ? (size_t)(after - before) : 0,
        .allocator = t->allocator,
        .block = sizeof *s,
    };
    atomic_init(&s->refs, 1);
    return s;
}

cfx_tensor *cfx_tensor_from_memory(cfx_dtype dtype, const int64_t *sizes, const int64_t *strides,
                                   size_t ndim, void *data, bool read_only,
                                   void (*release)(void *ctx), void *ctx,
                                   const cfx_allocator *allocator, cfx_error *err)
{
    cfx_tensor *t = strided_header(dtype, sizes, strides, ndim, allocator, err);
    if (!t)
        return NULL;
    if (!data && cfxi_tensor_numel(t) > 0)
        return finish(t, cfx_error_set(err, CFX_E_VALUE, "the data of a tensor with %lld elements "
                                       "are NULL", (long long)cfxi_tensor_numel(t)));
    t->storage = adopt(t, data, read_only);
    if (!t->storage)
        return finish(t, cfxi_base_nomem(err));
    t->data = data ? data : t->storage->data;
    settle_strides(t);
    t->storage->release = release;
    t->storage->ctx = ctx;
    return t;
}

void cfxi_tensor_give_back(const cfx_tensor *t)
{
    int64_t before;
    int64_t after;
    if (t->storage && t->storage->give_back && cfxi_tensor_span(t, &before, &after))
        t->storage->give_back(t->data + before, (size_t)(after - before));
}

cfx_tensor *cfx_tensor_view(cfx_tensor *base, cfx_dtype dtype, const int64_t *sizes,
                            const int64_t *strides, size_t ndim, int64_t offset, cfx_error *err)
{
    if (cfxi_base_expect(base, "tensor", err) != CFX_OK ||
        (base->storage && check_known(sizes, ndim, err) != CFX_OK))
        return NULL;
    cfx_tensor *t = cfxi_tensor_header(dtype, sizes, ndim, base->allocator, err);
    if (!t)
        return NULL;
    for (size_t i = 0; strides && i < ndim; i++)
        t->stride[i] = strides[i];
    return finish(t, cfxi_tensor_share(t, base, offset, err));
}

cfx_tensor *cfx_tensor_retain(cfx_tensor *t)
{
    if (t)
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void cfx_tensor_release(cfx_tensor *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) > 1)
        return;
    storage_release(t->storage);
    cfxi_base_free(t->allocator, t, sizeof *t);
}

/* ---- reading ------------------------------------------------------------------------------- */

cfx_dtype cfx_tensor_dtype(const cfx_tensor *t) { return (cfx_dtype)t->dtype; }
size_t cfx_tensor_ndim(const cfx_tensor *t) { return t->ndim; }
const int64_t *cfx_tensor_sizes(const cfx_tensor *t) { return t->size; }
const int64_t *cfx_tensor_strides(const cfx_tensor *t) { return t->stride; }
int64_t cfx_tensor_numel(const cfx_tensor *t) { return cfxi_tensor_numel(t); }

/* Without memory for a copy the elements stay in the file: not aligned, but there. */
void *cfx_tensor_data(const cfx_tensor *t)
{
    cfxi_tensor_settle(t, NULL);
    return t->data;
}

bool cfx_tensor_is_abstract(const cfx_tensor *t) { return !t->storage; }
bool cfx_tensor_is_reshaped(const cfx_tensor *t) { return t->reshaped; }

bool cfx_tensor_is_read_only(const cfx_tensor *t) { return t->storage && t->storage->read_only; }

bool cfx_tensor_is_contiguous(const cfx_tensor *t)
{
    int64_t step = (int64_t)cfxi_tensor_itemsize(t);
    if (!t->storage || cfxi_tensor_numel(t) == 0)
        return true;
    for (size_t i = t->ndim; i-- > 0;) {
        if (t->size[i] == 1)
            continue;
        if (t->stride[i] != step)
            return false;
        step *= t->size[i];
    }
    return true;
}

bool cfxi_tensor_is_channels_last(const cfx_tensor *t)
{
    static const uint8_t orders[2][5] = {{0, 2, 3, 1}, {0, 2, 3, 4, 1}};
    int64_t step = (int64_t)cfxi_tensor_itemsize(t);
    if (t->ndim < 4 || t->ndim > 5)
        return false;
    for (size_t i = t->ndim; i-- > 0;) {
        size_t d = orders[t->ndim - 4][i];
        if (t->size[d] <= 0)  /* nothing, or a symbol */
            return false;
        if (t->size[d] == 1)
            continue;
        if (t->stride[d] != step)
            return false;
        step *= t->size[d];
    }
    return true;
}

bool cfxi_tensor_may_overlap(const cfx_tensor *a, const cfx_tensor *b)
{
    int64_t before_a;
    int64_t after_a;
    int64_t before_b;
    int64_t after_b;
    if (!a->storage || !b->storage || !cfxi_tensor_span(a, &before_a, &after_a) ||
        !cfxi_tensor_span(b, &before_b, &after_b))
        return false;
    return a->data + before_a < b->data + after_b && b->data + before_b < a->data + after_a;
}

/* ---- element types ------------------------------------------------------------------------- */

bool cfx_dtype_is_float(cfx_dtype d)
{
    return (d >= CFX_DTYPE_FLOAT16 && d <= CFX_DTYPE_FLOAT64) || cfxi_tensor_dtype_is_float8(d);
}

bool cfxi_tensor_dtype_is_float8(cfx_dtype d)
{
    return d >= CFX_DTYPE_FLOAT8_E4M3FN && d <= CFX_DTYPE_FLOAT8_E8M0FNU;
}

bool cfx_dtype_is_complex(cfx_dtype d)
{
    return d == CFX_DTYPE_COMPLEX64 || d == CFX_DTYPE_COMPLEX128;
}

bool cfx_dtype_is_integer(cfx_dtype d)
{
    return d >= CFX_DTYPE_UINT8 && d <= CFX_DTYPE_INT64;
}

bool cfxi_tensor_dtype_is_unsigned(cfx_dtype d)
{
    return d >= CFX_DTYPE_UINT8 && d <= CFX_DTYPE_UINT64;
}

bool cfxi_tensor_dtype_is_rare(cfx_dtype d)
{
    return (d >= CFX_DTYPE_UINT16 && d <= CFX_DTYPE_UINT64) || cfxi_tensor_dtype_is_float8(d);
}

bool cfxi_tensor_dtype_is_computable(cfx_dtype d)
{
    return d == CFX_DTYPE_BOOL || cfx_dtype_is_integer(d) || cfx_dtype_is_float(d) ||
           cfx_dtype_is_complex(d);
}
