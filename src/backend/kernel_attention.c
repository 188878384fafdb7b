/* kernel_attention.c - attention whose softmax a program has written out.
 *
 * Unlike scaled_dot_product_attention, a query that sees no key gets NaN, as softmax gives it.
 */
#include "backend_impl.h"

#include <math.h>

typedef struct attention_kernel {
    cfxi_kernel head;
    cfx_tensor *mask;  /* that does not change; or NULL */
} attention_kernel;

static bool query(const cfxi_problem *p, double *cost)
{
    if (p->kind != CFXI_ATTENTION)
        return false;
    *cost = (double)p->m * (double)p->n * (double)p->k;
    return true;
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *c,
                            const cfx_allocator *allocator, cfx_error *err)
{
    attention_kernel *k = cfxi_base_alloc(allocator, sizeof *k);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = (attention_kernel){.head = {&cfxi_backend_attention, allocator, *p, sizeof *k, NULL},
                            .mask = c->tensors[0] ? cfx_tensor_retain(c->tensors[0])
                                                  : NULL};
    return &k->head;
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const attention_kernel *k = (const attention_kernel *)kernel;
    const cfx_tensor *mask = k->mask ? k->mask : r->tensors[3];
    cfxi_attention a = cfxi_linalg_attention_of(r->rt, r->tensors[0], r->tensors[1], r->tensors[2],
                                                mask, r->out_tensor);
    a.scale = kernel->problem.scale;
    a.causal = kernel->problem.causal;
    a.unseen = NAN;
    return cfxi_linalg_attention_run(&a, err);
}

static void release(cfxi_kernel *kernel)
{
    attention_kernel *k = (attention_kernel *)kernel;
    cfx_tensor_release(k->mask);
    cfxi_base_free(kernel->allocator, k, sizeof *k);
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    cfxi_base_out_str(out, kernel->problem.causal ? "attention, causal" : "attention");
}

const cfxi_backend cfxi_backend_attention = {"built-in", query, prepare, run, release, print};
