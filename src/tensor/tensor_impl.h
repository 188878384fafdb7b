/* tensor_impl.h - the structs behind tensor.h and datum.h, and their small accessors. */
#ifndef CFXI_TENSOR_IMPL_H
#define CFXI_TENSOR_IMPL_H

#include "base/base_impl.h"

#include <cfx/dim.h>
#include <cfx/embed/tensor.h>

#include <stdatomic.h>

/* Elements that lie where they are not aligned, in a file, until somebody needs them. */
typedef struct cfxi_later cfxi_later;

/* The memory that tensors share. */
typedef struct cfxi_storage {
    atomic_int refs;
    bool read_only;
    bool planned;  /* has addresses and a size, but no bytes: see src/plan */
    char *data;   /* aligned to CFXI_ALIGN if it is our own */
    size_t size;  /* in bytes from `data`; tensors stay within */
    void (*release)(void *ctx);  /* of memory that is not ours; may be NULL */
    void *ctx;
    /* NULL; or lets bytes leave memory, which are read from a file again when somebody needs them.
     * Such memory is never written to. */
    void (*give_back)(char *data, size_t size);
    const cfx_allocator *allocator;
    size_t block;  /* bytes of the block that this struct begins, elements included if ours */
    cfxi_later *later;  /* or NULL: see cfxi_tensor_later */
} cfxi_storage;

enum { CFXI_ALIGN = 64 };

struct cfx_tensor {
    atomic_int refs;
    uint8_t dtype;
    uint8_t ndim;
    bool number;  /* was a number: gives way where types are promoted */
    bool reshaped;  /* its header was changed in place */
    cfxi_storage *storage;  /* NULL: abstract */
    char *data;             /* the first element; NULL if abstract */
    const cfx_allocator *allocator;
    int64_t size[CFX_MAX_DIMS];
    int64_t stride[CFX_MAX_DIMS];  /* in bytes */
};

/* Farther than any memory reaches, in bytes. In a tensor with memory, size times stride of a
 * dimension is within [-CFXI_FAR, CFXI_FAR], so that kernels can add up what all dimensions have
 * without a check: strides of dimensions that are never walked (of size 1, or of a tensor without
 * elements) are cut, others are refused or the memory is there. (tensor.c sees to it.) */
#define CFXI_FAR (INT64_MAX / 16)

struct cfx_text {
    atomic_int refs;
    size_t size;
    const cfx_allocator *allocator;
    char data[];  /* terminated */
};

struct cfx_data {
    atomic_int refs;
    uint32_t op;  /* cfx_operator whose results these are, which names them; 0: none */
    uint32_t depth;  /* greater than that of any container in it: they nest at most so deep */
    bool fixed;      /* nothing in it can be exchanged, and `depth` is how deep they do nest */
    uint32_t changes; /* how often items were exchanged, added or removed */
    size_t size;
    size_t capacity; /* so many items have room */
    const cfx_allocator *allocator;
    cfx_datum *items; /* `own`, until they need more room: whoever holds a list sees it grow */
    size_t room;      /* items that `own` has room for */
    cfx_datum own[];
};

static inline bool cfxi_tensor_is_text(cfx_datum d)
{
    return d.kind == CFX_DATUM_STR || d.kind == CFX_DATUM_DEVICE;
}

static inline bool cfxi_tensor_is_seq(cfx_datum d)
{
    return d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_TUPLE || d.kind == CFX_DATUM_DICT ||
           d.kind == CFX_DATUM_SLICE;
}

static inline size_t cfxi_tensor_itemsize(const cfx_tensor *t)
{
    return cfx_dtype_size((cfx_dtype)t->dtype);
}

/* ---- lists and dicts that change (datum_change.c) ------------------------------------------ */

/* Lets `value` become an item of the list or dict `container`, which others may hold already: what
 * is in it counts as less deep from now on. CFX_E_VALUE if the container would hold itself,
 * CFX_E_LIMIT if it would be too deep; nothing has changed then. */
cfx_status cfxi_tensor_make_room(cfx_datum container, cfx_datum value, cfx_error *err);
/* Puts `n` others in the place of `removed` items of a list or dict, from number `at` on. They are
 * retained, and may be its own items. All who hold the container see the change. O(n) and what is
 * behind it, amortised. Fails as cfxi_tensor_make_room does, or with CFX_E_NOMEM; the items are the
 * same then. */
cfx_status cfxi_tensor_splice(cfx_datum container, size_t at, size_t removed,
                              const cfx_datum *items, size_t n, cfx_error *err);
/* Puts `value`, which is retained, in the place of item `at` of a list or dict. Fails likewise. */
cfx_status cfxi_tensor_set_item(cfx_datum container, size_t at, cfx_datum value, cfx_error *err);
/* A copy with copies of the lists and dicts in it; tensors are shared. What holds no list or dict
 * is returned itself, retained. INVALID with CFX_E_NOMEM. */
cfx_datum cfxi_tensor_copy_lists(cfx_datum d, cfx_error *err);
/* Whether `list` and `more` are lists, nobody but the caller holds the first, and the items of the
 * second would not nest too deeply in it. */
bool cfxi_tensor_can_extend(cfx_datum list, cfx_datum more);

/* Whether its strides are whole elements: those of memory from elsewhere may be any (complex
 * numbers in an array of structs). */
static inline bool cfxi_tensor_has_whole_strides(const cfx_tensor *t)
{
    const int64_t size = (int64_t)cfxi_tensor_itemsize(t);
    for (size_t i = 0; i < t->ndim; i++)
        if (t->size[i] > 1 && t->stride[i] % size != 0)
            return false;
    return true;
}

/* Means nothing if a size is a symbol. */
static inline int64_t cfxi_tensor_numel(const cfx_tensor *t)
{
    uint64_t n = 1;
    for (size_t i = 0; i < t->ndim; i++)
        n *= (uint64_t)t->size[i];
    return (int64_t)n;
}

/* A header alone: no storage, contiguous strides. Sizes are checked (see cfx_tensor_new). */
cfx_tensor *cfxi_tensor_header(cfx_dtype dtype, const int64_t *sizes, size_t ndim,
                               const cfx_allocator *allocator, cfx_error *err);
/* Gives a header memory of its own, for its strides, which must not be negative. */
cfx_status cfxi_tensor_allocate(cfx_tensor *t, cfx_error *err);
/* Makes a header a view of `base`'s memory, with the strides it has; see cfx_tensor_view. */
cfx_status cfxi_tensor_share(cfx_tensor *t, const cfx_tensor *base, int64_t offset, cfx_error *err);
/* Strides of a dense row-major tensor, in bytes. */
void cfxi_tensor_contiguous_strides(const int64_t *sizes, size_t ndim, size_t itemsize,
                                    int64_t *strides);
/* Dense, with the dimensions ordered as `order` has them, outermost first. */
void cfxi_tensor_ordered_strides(const int64_t *sizes, size_t ndim, size_t itemsize,
                                 const uint8_t *order, int64_t *strides);
/* Whether it is dense with NHWC (NDHWC) strides. */
bool cfxi_tensor_is_channels_last(const cfx_tensor *t);

/* Tells that nobody is going to read the elements soon: those in a mapped file leave memory. They
 * can be read all the same. */
void cfxi_tensor_give_back(const cfx_tensor *t);

/* ---- elements that are copied when they are needed (tensor_later.c) ------------------------- */

/* Copies `size` bytes into memory of a tensor's own; `ctx` is that of the tensor's memory. */
typedef void cfxi_fetch_fn(void *ctx, char *to, const char *from, size_t size);
/* A tensor whose elements lie at `from`, at any address, until `ctx` is released with it. Whoever
 * looks at elements calls cfxi_tensor_settle before: kernels, views, cfx_tensor_data and all that
 * hands elements out do. Arguments and failures as cfx_tensor_from_memory. */
cfx_tensor *cfxi_tensor_later(cfx_dtype dtype, const int64_t *sizes, const int64_t *strides,
                              size_t ndim, char *from, cfxi_fetch_fn *fetch,
                              void (*release)(void *ctx), void *ctx,
                              const cfx_allocator *allocator, cfx_error *err);
cfx_status cfxi_tensor_settle_later(const cfx_tensor *t, cfx_error *err);
void cfxi_tensor_later_free(cfxi_storage *s);
/* Where elements are that are only copied: of any alignment. */
const char *cfxi_tensor_bytes(const cfx_tensor *t);

/* Sees to it that the elements are aligned. They are copied once, whichever thread is the first.
 * Until then a storage has one header alone: views are made of settled tensors. CFX_E_NOMEM. */
static inline cfx_status cfxi_tensor_settle(const cfx_tensor *t, cfx_error *err)
{
    return t->storage && t->storage->later ? cfxi_tensor_settle_later(t, err) : CFX_OK;
}

/* ---- types (promote.c) --------------------------------------------------------------------- */

/* The type of a computation on these tensors, by PyTorch's rules: tensors with dimensions decide
 * over those without, those over numbers, within a category (bool < integer < float < complex).
 * NULL entries are skipped. */
cfx_dtype cfxi_tensor_promote(const cfx_tensor *const *tensors, size_t n);
cfx_dtype cfxi_tensor_promote_types(cfx_dtype a, cfx_dtype b);
/* Whether a result of type `from` may be written to `to`: not to a lower category. */
bool cfxi_tensor_can_cast(cfx_dtype from, cfx_dtype to);
/* ---- elements (convert.c) ---------------------------------------------------------------- */

/* One element as a number, and back. (convert.c) */
double cfxi_tensor_load_float(cfx_dtype dtype, const void *at);
int64_t cfxi_tensor_load_int(cfx_dtype dtype, const void *at);
void cfxi_tensor_load_complex(cfx_dtype dtype, const void *at, double out[2]);
void cfxi_tensor_store_float(cfx_dtype dtype, void *at, double f);
void cfxi_tensor_store_int(cfx_dtype dtype, void *at, int64_t i);
void cfxi_tensor_store_complex(cfx_dtype dtype, void *at, const double c[2]);
float cfxi_tensor_half_to_float(uint16_t h);
uint16_t cfxi_tensor_float_to_half(float f);  /* to nearest, ties to even */
static inline float cfxi_tensor_bfloat_to_float(uint16_t b)
{
    union { uint32_t i; float f; } u = {(uint32_t)b << 16};
    return u.f;
}
uint16_t cfxi_tensor_float_to_bfloat(float f);

/* Writes what Python prints for a value: tensors with their elements, also inside of lists, tuples
 * and dicts. (tensor_print.c) */
cfx_status cfxi_tensor_show(cfx_datum d, cfx_sink out, cfx_error *err);

/* Whether cfx computes with the type: bool, integers, floats of 16 to 64 bits, complex64 and
 * complex128. (tensor.c) */
bool cfxi_tensor_dtype_is_computable(cfx_dtype dtype);
bool cfxi_tensor_dtype_is_float8(cfx_dtype dtype);
bool cfxi_tensor_dtype_is_unsigned(cfx_dtype dtype);
/* Without loops of its own: elements are converted one by one. */
bool cfxi_tensor_dtype_is_rare(cfx_dtype dtype);
/* A float of 8 bits, and the nearest one to a number; out of range is infinity or NaN, as PyTorch
 * has it. (float8.c) */
float cfxi_tensor_float8_to_float(cfx_dtype dtype, uint8_t bits);
uint8_t cfxi_tensor_float_to_float8(cfx_dtype dtype, float f);

/* The bytes before (0 or less) and after the first element that the elements span, each cut at
 * CFXI_FAR; false if there are no elements. (tensor.c) */
bool cfxi_tensor_span(const cfx_tensor *t, int64_t *before, int64_t *after);
/* Whether two tensors may have an element in common: true if the ranges of their memory overlap.
 * (tensor.c) */
bool cfxi_tensor_may_overlap(const cfx_tensor *a, const cfx_tensor *b);

#endif
