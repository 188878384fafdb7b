/* For language bindings and back ends; may change between versions.
 *
 * embed/runtime.h - instruction sets, what the machine can do, and the cost of a program.
 */
#ifndef CFX_EMBED_RUNTIME_H
#define CFX_EMBED_RUNTIME_H

#include <cfx/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The instruction set that a runtime uses, and its name ("avx512"). */
CFX_API cfx_isa cfx_runtime_isa(const cfx_runtime *rt);
CFX_API const char *cfx_isa_name(cfx_isa isa);
/* "float32" or "bf16". */
CFX_API const char *cfx_precision_name(cfx_precision precision);

/* ---- what the machine can do --------------------------------------------------------------- */

typedef struct cfx_peak {
    cfx_isa isa;       /* measured with this instruction set */
    unsigned threads;  /* and so many threads */
    double gflops;     /* float32 multiply-adds in registers: 1e9 operations a second, two each */
    double gbytes;     /* 1e9 bytes a second, read from memory that no cache holds */
} cfx_peak;

/* Measures what a kernel can reach at best on this machine, with the runtime's instruction set and
 * threads, next to whatever else the machine does: the best of some rounds. It takes some 5 ms
 * of multiplying and 20 ms of reading, and the time to allocate and fill what it reads (four times
 * the largest cache; 64 to 512 MiB). CFX_E_NOMEM if that memory is not there. */
CFX_API cfx_status cfx_runtime_peak(cfx_runtime *rt, cfx_peak *out, cfx_error *err);

/* ---- costs --------------------------------------------------------------------------------- */

/* The cost of one call. All numbers are sizes, and may be symbols of `dims`. */
typedef struct cfx_cost {
    const char *node;  /* its name, as in cfx_infer_fn; borrowed */
    cfx_operator op;
    int64_t flops;     /* a multiply-add counts as two; the bias of a convolution or matrix product
                          is free; element-wise functions count one per element; views, copies,
                          lookups and sorts count nothing */
    int64_t bytes;     /* of the new tensors it returns */
    int64_t live;      /* bytes of all tensors that are live while it runs: the inputs, values that
                          are used later, its arguments and results; not the parameters */
} cfx_cost;

/* Calls `each` with the cost of each call of a program, for inputs of these types and shapes.
 * Nothing is computed. Tensors that may alias are assumed to share memory, and values to die at
 * their last use. Both branches of a cond count; the body of a loop counts once, its test not at
 * all. Custom operators (library.h) are not reported: only the memory of their results is known. */
typedef cfx_status cfx_cost_fn(void *ctx, const cfx_cost *cost);
CFX_API cfx_status cfx_program_cost(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                                    const cfx_datum *inputs, size_t n, cfx_cost_fn *each, void *ctx,
                                    cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
