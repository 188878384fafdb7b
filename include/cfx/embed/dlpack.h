/* For language bindings and back ends; may change between versions.
 *
 * embed/dlpack.h - exchanges tensors with other array libraries through DLPack.
 *
 * The structs are those of the DLPack standard (version 1, and the older unversioned one that
 * "dltensor" capsules hold), under cfx names. Strides are in elements. The producer owns such a
 * struct; the consumer calls its `deleter` exactly once.
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

/* Exports a tensor. The struct shares the memory of `t`, which lives until the deleter is called
 * (from any thread). NULL with *err set: CFX_E_VALUE for an abstract tensor, or for strides that
 * are not a whole number of elements. The unversioned form cannot mark a tensor read-only, and also
 * rejects read-only tensors with CFX_E_VALUE. */
CFX_API cfx_dl_versioned *cfx_tensor_to_dlpack(cfx_tensor *t, cfx_error *err);
CFX_API cfx_dl_managed *cfx_tensor_to_dlpack_unversioned(cfx_tensor *t, cfx_error *err);

/* Imports a tensor over the memory of `m` and takes ownership of `m`: its deleter is called when
 * the last view is freed. NULL with *err set, and `m` still owned by the caller, if cfx cannot read
 * it: a device other than the CPU, an unknown element type or version, more than CFX_MAX_DIMS
 * dimensions, sizes that overflow, or misaligned elements. */
CFX_API cfx_tensor *cfx_tensor_from_dlpack(cfx_dl_versioned *m, const cfx_allocator *allocator,
                                           cfx_error *err);
CFX_API cfx_tensor *cfx_tensor_from_dlpack_unversioned(cfx_dl_managed *m,
                                                       const cfx_allocator *allocator,
                                                       cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
