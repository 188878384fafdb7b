/* chain.c - runs chains on what lies without gaps: chain.h. */
#include "chain.h"

enum { BLOCK = CFXI_CHAIN_BLOCK };

/* ---- buffers ------------------------------------------------------------------------------- */

/* The last function that takes what function i gave. */
static size_t last_use(const cfxi_chain *c, size_t i)
{
    size_t last = i;
    for (size_t k = i + 1; k < c->num_ops; k++)
        for (size_t a = 0; a < c->ops[k].n; a++)
            if (c->ops[k].args[a].from == CFXI_FROM_OP && c->ops[k].args[a].index == i)
                last = k;
    return last;
}

void cfxi_backend_chain_assign(cfxi_chain *c)
{
    size_t busy_until[CFXI_CHAIN_OPS] = {0};  /* by buffer: the function that needs it last */
    bool taken[CFXI_CHAIN_OPS] = {false};
    for (size_t i = 0; i < c->num_ops; i++) {
        size_t buffer = 0;
        while (taken[buffer] && busy_until[buffer] > i)  /* arguments may be written over */
            buffer++;
        taken[buffer] = true;
        busy_until[buffer] = last_use(c, i);
        c->ops[i].buffer = buffer;
    }
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct block {
    const cfxi_chain *c;
    const cfx_runtime *rt;
    const float *inputs[CFXI_CHAIN_INPUTS];
    float (*buffers)[BLOCK];
    float (*numbers)[BLOCK];  /* one for each argument of a function: a number, repeated */
} block;

static const float *argument(const block *b, const cfxi_chain_arg *arg, size_t at)
{
    switch (arg->from) {
    case CFXI_FROM_INPUT: return b->inputs[arg->index];
    case CFXI_FROM_OP: return b->buffers[b->c->ops[arg->index].buffer];
    case CFXI_FROM_NUMBER: return b->numbers[at];
    }
    return NULL;
}

static void run_block(const block *b, int64_t n, float *out)
{
    for (size_t i = 0; i < b->c->num_ops; i++) {
        const cfxi_chain_op *op = &b->c->ops[i];
        const void *x[3];
        for (size_t a = 0; a < op->n; a++) {
            x[a] = argument(b, &op->args[a], a);
            if (op->args[a].from == CFXI_FROM_NUMBER)
                for (int64_t k = 0; k < n; k++)
                    b->numbers[a][k] = op->args[a].number;
        }
        float *to = i + 1 == b->c->num_ops ? out : b->buffers[op->buffer];
        cfxi_elementwise_block_of(b->rt, op->fn, CFXI_IN_F32)(&op->s, n, x, to);
    }
}

void cfxi_backend_chain_run(const cfxi_chain *c, const cfx_runtime *rt, int64_t n,
                            const float *const inputs[CFXI_CHAIN_INPUTS], float *out)
{
    _Alignas(CFXI_ALIGN) float buffers[CFXI_CHAIN_OPS][BLOCK];
    _Alignas(CFXI_ALIGN) float numbers[3][BLOCK];
    block b = {.c = c, .rt = rt, .buffers = buffers, .numbers = numbers};
    for (int64_t i = 0; i < n; i += BLOCK) {
        for (size_t k = 0; k < c->num_inputs; k++)
            b.inputs[k] = inputs[k] + i;
        run_block(&b, n - i < BLOCK ? n - i : BLOCK, out + i);
    }
}
