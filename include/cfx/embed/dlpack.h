/* For language bindings and back ends; may change between versions.
 *
 * embed/dlpack.h - tensors in the form that array libraries hand to each other.
 *
 * The structs are those of the DLPack standard (version 1, and the older one without a version that
 * capsules named "dltensor" hold), under names of our own. Strides are in elements. Whoever makes
 * such a struct owns it; whoever takes it calls its `deleter` once.
 */
#ifndef CFX_EMBED_DLPACK_H
#define CFX_EMBED_DLPACK_H

#include <cfx/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CFX_DL_MAJOR = 1, CFX_DL_MINOR = 0, CFX_DL_CPU = 1, CFX_DL_CUDA_HOST = 3 };
enum { CFX_DL_READ_ONLY = 1, CFX_DL_COPIED = 2 };  /* flags */

typedef struct cfx_dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t type_code, bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides;  /* NULL: contiguous */
    uint64_t byte_offset;
} cfx_dl_tensor;

typedef struct cfx_dl_managed {
    cfx_dl_tensor tensor;
    void *ctx;
    void (*deleter)(struct cfx_dl_managed *self);
} cfx_dl_managed;

typedef struct cfx_dl_versioned {
    uint32_t major, minor;
    void *ctx;
    void (*deleter)(struct cfx_dl_versioned *self);
    uint64_t flags;
    cfx_dl_tensor tensor;
} cfx_dl_versioned;

/* Shares the memory of `t`, which lives until the deleter is called (from any thread). NULL with
 * *err set: CFX_E_VALUE for an abstract tensor, or strides that are no whole number of elements;
 * the older form cannot say read-only, and refuses it likewise. */
CFX_API cfx_dl_versioned *cfx_tensor_to_dlpack(cfx_tensor *t, cfx_error *err);
CFX_API cfx_dl_managed *cfx_tensor_to_dlpack_unversioned(cfx_tensor *t, cfx_error *err);

/* A tensor over the memory of `m`, taken over: its deleter is called once the last view is gone.
 * NULL with *err set, and `m` still the caller's, if it is not what cfx can read: another device
 * than the CPU, an element type or a version that cfx does not know, more than CFX_MAX_DIMS
 * dimensions, sizes that do not fit, elements that are not aligned. */
CFX_API cfx_tensor *cfx_tensor_from_dlpack(cfx_dl_versioned *m, const cfx_allocator *allocator,
                                           cfx_error *err);
CFX_API cfx_tensor *cfx_tensor_from_dlpack_unversioned(cfx_dl_managed *m,
                                                       const cfx_allocator *allocator,
                                                       cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
