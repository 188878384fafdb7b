/* For language bindings and back ends; may change between versions.
 *
 * embed/runtime.h - instruction sets, and what a program costs.
 */
#ifndef CFX_EMBED_RUNTIME_H
#define CFX_EMBED_RUNTIME_H

#include <cfx/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The instruction set that a runtime computes with, and its name ("avx512"). */
CFX_API cfx_isa cfx_runtime_isa(const cfx_runtime *rt);
CFX_API const char *cfx_isa_name(cfx_isa isa);

/* ---- costs --------------------------------------------------------------------------------- */

/* What one call costs. All numbers are sizes: they may be symbols of `dims`. */
typedef struct cfx_cost {
    const char *node;  /* its name, as cfx_infer_fn has it; borrowed */
    cfx_operator op;
    int64_t flops;     /* a multiplication and an addition are two; the bias of a convolution or
                          matrix product is free; element-wise functions count one per element;
                          views, copies, lookups and sorts nothing */
    int64_t bytes;     /* of new tensors among its results */
    int64_t live;      /* of all tensors that are alive while it runs: the inputs, what was computed
                          and is used later, its arguments and results; not the parameters */
} cfx_cost;

/* Tells what each call of a program costs, for inputs of these types and shapes; nothing is
 * computed. Tensors that may share memory are taken to share it, and values to die at their last
 * use. Both branches of a cond count, the body of a loop counts once, its test not at all. Of
 * operators of one's own (library.h) only the memory of the results is known: they are not told. */
typedef cfx_status cfx_cost_fn(void *ctx, const cfx_cost *cost);
CFX_API cfx_status cfx_program_cost(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                                    const cfx_datum *inputs, size_t n, cfx_cost_fn *each, void *ctx,
                                    cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
