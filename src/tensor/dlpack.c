/* dlpack.c - tensors to and from DLPack's structs. Nothing in what comes in is trusted but that its
 * memory is as large as it says. */
#include "tensor_impl.h"

#include <cfx/embed/dlpack.h>

_Static_assert(sizeof(cfx_dl_tensor) == 48, "the standard's layout");
_Static_assert(offsetof(cfx_dl_versioned, tensor) == 32, "the standard's layout");

/* ---- element types ------------------------------------------------------------------------- */

enum {
    CODE_INT, CODE_UINT, CODE_FLOAT, CODE_OPAQUE, CODE_BFLOAT, CODE_COMPLEX, CODE_BOOL,
    CODE_E4M3FN = 10, CODE_E4M3FNUZ, CODE_E5M2, CODE_E5M2FNUZ, CODE_E8M0FNU
};

static uint8_t code_of_float8(cfx_dtype dtype)
{
    switch (dtype) {
    case CFX_DTYPE_FLOAT8_E4M3FN: return CODE_E4M3FN;
    case CFX_DTYPE_FLOAT8_E4M3FNUZ: return CODE_E4M3FNUZ;
    case CFX_DTYPE_FLOAT8_E5M2: return CODE_E5M2;
    case CFX_DTYPE_FLOAT8_E5M2FNUZ: return CODE_E5M2FNUZ;
    default: return CODE_E8M0FNU;
    }
}

static uint8_t code_of(cfx_dtype dtype)
{
    if (dtype == CFX_DTYPE_BOOL)
        return CODE_BOOL;
    if (dtype == CFX_DTYPE_BFLOAT16)
        return CODE_BFLOAT;
    if (cfx_dtype_is_complex(dtype))
        return CODE_COMPLEX;
    if (cfxi_tensor_dtype_is_float8(dtype))
        return code_of_float8(dtype);
    if (cfx_dtype_is_float(dtype))
        return CODE_FLOAT;
    return cfxi_tensor_dtype_is_unsigned(dtype) ? CODE_UINT : CODE_INT;
}

static cfx_status dtype_of(const cfx_dl_tensor *dl, cfx_dtype *dtype, cfx_error *err)
{
    static const char *const names[] = {"int", "uint", "float", "opaque", "bfloat", "complex",
                                        "bool"};
    for (int d = 0; d < CFX_DTYPE_COUNT && dl->lanes == 1; d++) {
        *dtype = (cfx_dtype)d;
        if (cfxi_tensor_dtype_is_computable(*dtype) && code_of(*dtype) == dl->type_code &&
            cfx_dtype_size(*dtype) * 8 == dl->bits)
            return CFX_OK;
    }
    bool named = dl->type_code <= CODE_BOOL && dl->lanes == 1;
    return cfx_error_set(err, CFX_E_TYPE,
                         "cfx does not support elements of %s%u%s; it supports bool, uint8 to "
                         "uint64, int8 to int64, float8 to float64, bfloat16 and complex",
                         named ? names[dl->type_code] : "an unnamed type of ", dl->bits,
                         named ? "" : " bits");
}

/* ---- in ------------------------------------------------------------------------------------ */

static cfx_status check_header(const cfx_dl_tensor *dl, cfx_error *err)
{
    if (dl->device_type != CFX_DL_CPU && dl->device_type != CFX_DL_CUDA_HOST)
        return cfx_error_set(err, CFX_E_VALUE, "the tensor is on another device (DLPack type %d); "
                             "cfx computes on the CPU: copy it there first", dl->device_type);
    if (dl->ndim < 0 || dl->ndim > CFX_MAX_DIMS)
        return cfx_error_set(err, CFX_E_SHAPE, "the tensor has %d dimensions; cfx supports up to "
                             "%d",
                             dl->ndim, CFX_MAX_DIMS);
    if (dl->ndim > 0 && !dl->shape)
        return cfx_error_set(err, CFX_E_VALUE, "the DLPack tensor has no shape");
    for (int i = 0; i < dl->ndim; i++)
        if (dl->shape[i] < 0)
            return cfx_error_set(err, CFX_E_SHAPE, "size %d of a tensor is negative: %lld", i,
                                 (long long)dl->shape[i]);
    return CFX_OK;
}

/* Strides in bytes of what says only that it is contiguous; false if they do not fit. */
static bool contiguous_strides(const cfx_dl_tensor *dl, size_t itemsize, int64_t *strides)
{
    int64_t step = (int64_t)itemsize;
    for (int i = dl->ndim; i-- > 0;) {
        strides[i] = step;
        if (dl->shape[i] > 1 && __builtin_mul_overflow(step, dl->shape[i], &step))
            return false;
    }
    return true;
}

/* Strides in bytes; the first and the last byte of all elements must be addresses. */
static cfx_status byte_strides(const cfx_dl_tensor *dl, size_t itemsize, bool *empty,
                               int64_t strides[CFX_MAX_DIMS], cfx_error *err)
{
    int64_t before = 0;
    int64_t after = (int64_t)itemsize;
    *empty = false;
    bool fits = dl->strides || contiguous_strides(dl, itemsize, strides);
    for (int i = 0; fits && i < dl->ndim; i++) {
        int64_t reach;
        int64_t size = dl->shape[i] ? dl->shape[i] : 1;
        *empty = *empty || dl->shape[i] == 0;
        fits = (!dl->strides ||
                !__builtin_mul_overflow(dl->strides[i], (int64_t)itemsize, &strides[i])) &&
               !__builtin_mul_overflow(size - 1, strides[i], &reach) &&
               !__builtin_add_overflow(reach < 0 ? before : after, reach,
                                       reach < 0 ? &before : &after);
    }
    if (!fits)
        return cfx_error_set(err, CFX_E_SHAPE, "the tensor has more bytes than memory can hold");
    return CFX_OK;
}

static cfx_tensor *import_tensor(const cfx_dl_tensor *dl, bool read_only, void (*release)(void *),
                                 void *ctx, const cfx_allocator *allocator, cfx_error *err)
{
    cfx_dtype dtype = CFX_DTYPE_COUNT;
    int64_t strides[CFX_MAX_DIMS];
    bool empty;
    if (check_header(dl, err) != CFX_OK || dtype_of(dl, &dtype, err) != CFX_OK ||
        byte_strides(dl, cfx_dtype_size(dtype), &empty, strides, err) != CFX_OK)
        return NULL;
    char *data = dl->data ? (char *)dl->data + dl->byte_offset : NULL;
    if (!data && !empty) {
        cfx_error_set(err, CFX_E_VALUE, "the DLPack tensor has no data");
        return NULL;
    }
    size_t alignment = cfx_dtype_size(dtype) / (cfx_dtype_is_complex(dtype) ? 2 : 1);
    if (!empty && (uintptr_t)data % alignment) {
        cfx_error_set(err, CFX_E_VALUE, "the elements are not aligned to %zu bytes; copy the "
                      "tensor first",
                      alignment);
        return NULL;
    }
    return cfx_tensor_from_memory(dtype, dl->shape, strides, (size_t)dl->ndim,
                                  empty ? NULL : data, read_only, release, ctx, allocator, err);
}

static void release_versioned(void *ctx)
{
    cfx_dl_versioned *m = ctx;
    if (m->deleter)
        m->deleter(m);
}

static void release_unversioned(void *ctx)
{
    cfx_dl_managed *m = ctx;
    if (m->deleter)
        m->deleter(m);
}

cfx_tensor *cfx_tensor_from_dlpack(cfx_dl_versioned *m, const cfx_allocator *allocator,
                                   cfx_error *err)
{
    if (m->major == CFX_DL_MAJOR)
        return import_tensor(&m->tensor, m->flags & CFX_DL_READ_ONLY, release_versioned, m,
                             allocator, err);
    cfx_error_set(err, CFX_E_VALUE, "DLPack version %u.%u is not supported; cfx reads version %d",
                  m->major, m->minor,
                  CFX_DL_MAJOR);
    return NULL;
}

cfx_tensor *cfx_tensor_from_dlpack_unversioned(cfx_dl_managed *m, const cfx_allocator *allocator,
                                               cfx_error *err)
{
    return import_tensor(&m->tensor, false, release_unversioned, m, allocator, err);
}

/* ---- out ----------------------------------------------------------------------------------- */

/* What the struct that is handed out points into. */
typedef struct exported {
    union {
        cfx_dl_managed unversioned;
        cfx_dl_versioned versioned;
    } as;
    cfx_tensor *t;
    int64_t shape[CFX_MAX_DIMS];
    int64_t strides[CFX_MAX_DIMS];
} exported;

static void drop(exported *e)
{
    const cfx_allocator *allocator = e->t->allocator;
    cfx_tensor_release(e->t);
    cfxi_base_free(allocator, e, sizeof *e);
}

static void delete_versioned(cfx_dl_versioned *self) { drop(self->ctx); }
static void delete_unversioned(cfx_dl_managed *self) { drop(self->ctx); }

static exported *export_tensor(cfx_tensor *t, cfx_dl_tensor *dl, cfx_error *err)
{
    if (cfxi_base_expect(t, "tensor", err) != CFX_OK)
        return NULL;
    int64_t itemsize = (int64_t)cfxi_tensor_itemsize(t);
    if (!t->storage) {
        cfx_error_set(err, CFX_E_VALUE, "a tensor without data cannot be shared through DLPack");
        return NULL;
    }
    if (cfxi_tensor_settle(t, err) != CFX_OK)
        return NULL;
    exported *e = cfxi_base_alloc(t->allocator, sizeof *e);
    if (!e) {
        cfxi_base_nomem(err);
        return NULL;
    }
    for (size_t i = 0; i < t->ndim; i++) {
        if (t->size[i] > 1 && t->stride[i] % itemsize) {
            cfx_error_set(err, CFX_E_VALUE, "stride %zu is %lld bytes, not a multiple of the "
                          "element size %lld; DLPack cannot represent it",
                          i, (long long)t->stride[i],
                          (long long)itemsize);
            cfxi_base_free(t->allocator, e, sizeof *e);
            return NULL;
        }
        e->shape[i] = t->size[i];
        e->strides[i] = t->stride[i] / itemsize;
    }
    e->t = cfx_tensor_retain(t);
    *dl = (cfx_dl_tensor){
        .data = cfxi_tensor_numel(t) ? t->data : NULL,
        .device_type = CFX_DL_CPU,
        .ndim = t->ndim,
        .type_code = code_of((cfx_dtype)t->dtype),
        .bits = (uint8_t)(itemsize * 8),
        .lanes = 1,
        .shape = e->shape,
        .strides = e->strides,
    };
    return e;
}

cfx_dl_versioned *cfx_tensor_to_dlpack(cfx_tensor *t, cfx_error *err)
{
    cfx_dl_tensor dl;
    exported *e = export_tensor(t, &dl, err);
    if (!e)
        return NULL;
    e->as.versioned = (cfx_dl_versioned){
        .major = CFX_DL_MAJOR,
        .minor = CFX_DL_MINOR,
        .ctx = e,
        .deleter = delete_versioned,
        .flags = cfx_tensor_is_read_only(t) ? CFX_DL_READ_ONLY : 0,
        .tensor = dl,
    };
    return &e->as.versioned;
}

cfx_dl_managed *cfx_tensor_to_dlpack_unversioned(cfx_tensor *t, cfx_error *err)
{
    cfx_dl_tensor dl;
    if (t && cfx_tensor_is_read_only(t)) {
        cfx_error_set(err, CFX_E_VALUE,
                      "DLPack before version 1 cannot share read-only memory");
        return NULL;
    }
    exported *e = export_tensor(t, &dl, err);
    if (!e)
        return NULL;
    e->as.unversioned = (cfx_dl_managed){.tensor = dl, .ctx = e, .deleter = delete_unversioned};
    return &e->as.unversioned;
}
