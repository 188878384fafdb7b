/* For language bindings and back ends; may change between versions.
 *
 * embed/tensor.h - tensors in detail: strides, abstract tensors, single elements.
 */
#ifndef CFX_EMBED_TENSOR_H
#define CFX_EMBED_TENSOR_H

#include <cfx/datum.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Like cfx_tensor_new, with these strides in bytes (NULL: contiguous), none of them negative: for
 * another dimension order, or for gaps. The caller must know whether elements overlap. */
CFX_API cfx_tensor *cfx_tensor_new_strided(cfx_dtype dtype, const int64_t *sizes,
                                           const int64_t *strides, size_t ndim,
                                           const cfx_allocator *allocator, cfx_error *err);
/* An abstract tensor: a type and a shape without storage. Sizes may be symbolic (dim.h). */
CFX_API cfx_tensor *cfx_tensor_new_abstract(cfx_dtype dtype, const int64_t *sizes, size_t ndim,
                                            const cfx_allocator *allocator, cfx_error *err);

/* The kind of an element type; bool is not an integer. */
CFX_API bool cfx_dtype_is_float(cfx_dtype dtype);
CFX_API bool cfx_dtype_is_complex(cfx_dtype dtype);
CFX_API bool cfx_dtype_is_integer(cfx_dtype dtype);

/* Reads one element of a tensor as a number: BOOL, INT, FLOAT or COMPLEX, by its type. */
CFX_API cfx_datum cfx_datum_load(cfx_dtype dtype, const void *at);
/* Stores the number `d` as an element, converted like a cast; false if it is not a number. */
CFX_API bool cfx_datum_store(cfx_datum d, cfx_dtype dtype, void *at);

#ifdef __cplusplus
}
#endif
#endif
