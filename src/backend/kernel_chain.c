/* kernel_chain.c - chains of element-wise functions over tensors of any strides. */
#include "backend_impl.h"

enum { GRAIN = 8192, BLOCK = CFXI_CHAIN_BLOCK };

typedef struct chain_kernel {
    cfxi_kernel head;
    cfxi_chain chain;
} chain_kernel;

static bool query(const cfxi_problem *p, double *cost)
{
    if (p->kind != CFXI_CHAIN)
        return false;
    *cost = (double)p->m * (double)p->chain->num_ops;
    return true;
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *c,
                            const cfx_allocator *allocator, cfx_error *err)
{
    chain_kernel *k = cfxi_base_alloc(allocator, sizeof *k);
    (void)c;
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = (chain_kernel){.head = {&cfxi_backend_chain, allocator, *p, sizeof *k, NULL},
                        .chain = *p->chain};
    k->head.problem.chain = &k->chain;
    cfxi_backend_chain_assign(&k->chain);
    return &k->head;
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct running {
    const chain_kernel *k;
    const cfx_runtime *rt;
    const cfxi_integer_rows *rows;
} running;

/* Elements that lie apart are brought together, those that are broadcast repeated. */
static const float *gather(int64_t n, const char *from, int64_t step, float *to)
{
    if (step == (int64_t)sizeof(float))
        return (const float *)(const void *)from;
    if (step == 0) {
        memcpy(to, from, sizeof *to);
        cfxi_rt_repeat(sizeof *to, n, (char *)to);
    } else {
        cfxi_rt_move(sizeof *to, n, from, step, (char *)to, (int64_t)sizeof *to);
    }
    return to;
}

/* Elements go where they belong, as they are or as integers. */
static void put(const running *w, int64_t n, const float *from, char *to, int64_t step)
{
    const cfxi_quantizing *q = &w->k->head.problem.quantizes;
    uint8_t bytes[BLOCK];
    if (!q->used) {
        cfxi_rt_move(sizeof *from, n, (const char *)from, (int64_t)sizeof *from, to, step);
        return;
    }
    uint8_t *at = step == 1 ? (uint8_t *)to : bytes;
    w->rows->quantize(n, from, &q->by, at);
    if (at == bytes)
        cfxi_rt_move(1, n, (const char *)bytes, 1, to, step);
}

static void run_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const running *w = ctx;
    const cfxi_chain *c = &w->k->chain;
    const bool floats = !w->k->head.problem.quantizes.used;
    _Alignas(CFXI_ALIGN) float room[CFXI_CHAIN_INPUTS + 1][BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t some = n - i < BLOCK ? n - i : BLOCK;
        const float *inputs[CFXI_CHAIN_INPUTS] = {NULL};
        for (size_t k = 0; k < c->num_inputs; k++)
            inputs[k] = gather(some, at[k + 1] + i * step[k + 1], step[k + 1], room[k]);
        char *to = at[0] + i * step[0];
        const bool lies = floats && (step[0] == (int64_t)sizeof(float) || some == 1);
        float *out = lies ? (float *)(void *)to : room[CFXI_CHAIN_INPUTS];
        cfxi_backend_chain_run(c, w->rt, some, inputs, out);
        if (!lies)
            put(w, some, out, to, step[0]);
    }
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const chain_kernel *k = (const chain_kernel *)kernel;
    running w = {k, r->rt, cfxi_integer_rows_of(kernel->problem.isa)};
    const cfx_tensor *operands[CFXI_MOST_OPERANDS] = {r->out_tensor};
    (void)err;
    for (size_t i = 0; i < k->chain.num_inputs; i++)
        operands[i + 1] = r->tensors[i];
    cfxi_rt_loop(r->rt, operands, k->chain.num_inputs + 1, GRAIN, run_row, &w);
    return CFX_OK;
}

static void release(cfxi_kernel *k) { cfxi_base_free(k->allocator, k, sizeof(chain_kernel)); }

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    cfxi_base_out_printf(out, "chain of %zu functions%s",
                         ((const chain_kernel *)kernel)->chain.num_ops,
                         kernel->problem.quantizes.used ? ", to integers" : "");
}

const cfxi_backend cfxi_backend_chain = {"built-in", query, prepare, run, release, print};
