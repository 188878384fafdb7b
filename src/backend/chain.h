/* chain.h - element-wise functions one after the other, on blocks that stay in the cache.
 *
 *     x * 0.5 * (1 + tanh(0.8 * (x + 0.04 * x^3)))      six functions, x read once
 *
 * A chain is an expression in float32: each function takes inputs, numbers, and what functions
 * before it gave; the last one gives the result.
 */
#ifndef CFXI_CHAIN_H
#define CFXI_CHAIN_H

#include "runtime/kernels/elementwise/blocks.h"

enum { CFXI_CHAIN_OPS = 16, CFXI_CHAIN_INPUTS = 6, CFXI_CHAIN_BLOCK = 512 };

typedef enum cfxi_chain_from {
    CFXI_FROM_INPUT,   /* number `index` */
    CFXI_FROM_OP,      /* what the function number `index` gave */
    CFXI_FROM_NUMBER
} cfxi_chain_from;

typedef struct cfxi_chain_arg {
    cfxi_chain_from from;
    size_t index;
    float number;
} cfxi_chain_arg;

typedef struct cfxi_chain_op {
    cfxi_fn fn;
    size_t n;
    cfxi_chain_arg args[3];
    cfxi_scalars s;
    size_t buffer;  /* where its result is kept: of cfxi_backend_chain_assign */
} cfxi_chain_op;

typedef struct cfxi_chain {
    size_t num_inputs;
    size_t num_ops;
    cfxi_chain_op ops[CFXI_CHAIN_OPS];
} cfxi_chain;

/* Makes activations that are written out one function. (chain_known.c) */
void cfxi_backend_chain_recognise(cfxi_chain *c);
/* Gives each result a buffer, which is used again once nobody needs what is in it. */
void cfxi_backend_chain_assign(cfxi_chain *c);
/* Computes n elements, which lie without gaps in all inputs and in `out`; `out` may be an input. */
void cfxi_backend_chain_run(const cfxi_chain *c, const cfx_runtime *rt, int64_t n,
                            const float *const inputs[CFXI_CHAIN_INPUTS], float *out);

#endif
