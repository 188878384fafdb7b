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

/* Whether squeeze_, transpose_ or the like have given the tensor other sizes, strides or another
 * first element since it was made: whoever shares its memory has to do the same. */
CFX_API bool cfx_tensor_is_reshaped(const cfx_tensor *t);

/* How often items of a list or dict were exchanged, added or removed since it was made; 0 for other
 * kinds. */
CFX_API uint32_t cfx_datum_changes(cfx_datum d);
/* The row of the operator table (a cfx_operator, ops.h) whose results a tuple is: it names the
 * items, as `values` and `indices` of max_dim; `size` for the sizes of a tensor, which are a
 * torch.Size in Python. 0 for other data. */
CFX_API uint32_t cfx_datum_row(cfx_datum d);
/* Says so of a tuple that the caller has just made; ignored for other kinds. */
CFX_API void cfx_datum_set_row(cfx_datum d, uint32_t row);

#ifdef __cplusplus
}
#endif
#endif
