/* attention_impl.h - what the ways to compute attention share. */
#ifndef CFXI_ATTENTION_IMPL_H
#define CFXI_ATTENTION_IMPL_H

#include "runtime/isa.h"

/* out = softmax(scale q k^T + mask) v, for each of the batches of `out`, whose last two dimensions
 * are queries and the size of a value. Types and sizes are those that the rule has checked. */
typedef struct cfxi_attention {
    cfx_runtime *rt;
    const cfx_tensor *q, *k, *v;
    const cfx_tensor *mask;  /* may be NULL; bool or a float type */
    cfx_tensor *out;
    size_t batch_dims;
    int64_t batches;
    int64_t queries, keys, size, value_size;
    double scale;
    bool causal;
    double unseen;       /* what a query gets that sees no key: 0, or NaN as softmax gives it */
    double drop;         /* the probability that a weight becomes 0; the others grow by as much */
    cfxi_random random;  /* one number for each weight */
    atomic_bool no_memory;
} cfxi_attention;

/* Fills in the sizes; q, k, v, mask, out, scale, causal, unseen and drop are the caller's. */
cfxi_attention cfxi_linalg_attention_of(cfx_runtime *rt, const cfx_tensor *q, const cfx_tensor *k,
                                        const cfx_tensor *v, const cfx_tensor *mask,
                                        cfx_tensor *out);
/* Computes: by blocks if all but the mask are float32, with rows of elements side by side, else in
 * double. */
cfx_status cfxi_linalg_attention_run(cfxi_attention *a, cfx_error *err);
/* The fast way. (attention_blocks.c) */
void cfxi_linalg_attention_blocks(cfxi_attention *a);

/* Where batch number `index` of `t` begins; heads of `t` may serve several of out's. */
static inline char *cfxi_linalg_batch_at(const cfxi_attention *a, const cfx_tensor *t,
                                         int64_t index)
{
    char *at = t->data;
    const size_t own = (size_t)t->ndim - 2;
    for (size_t d = a->batch_dims; d-- > 0;) {
        int64_t i = index % a->out->size[d];
        index /= a->out->size[d];
        if (d + own < a->batch_dims)
            continue;
        size_t from = d + own - a->batch_dims;
        int64_t size = t->size[from];
        if (size > 1)
            at += i / (a->out->size[d] / size) * t->stride[from];
    }
    return at;
}

/* What weight (row, key) of a batch is multiplied by. */
static inline double cfxi_linalg_kept(const cfxi_attention *a, int64_t index, int64_t row,
                                      int64_t key)
{
    const int64_t i = (index * a->queries + row) * a->keys + key;
    return cfxi_rt_random_uniform(a->random, i) >= a->drop ? 1 / (1 - a->drop) : 0;
}

/* ---- rows of floats, for each instruction set (attention_vector.h) -------------------------- */

/* What a row of weights is made of, over the keys seen so far. */
typedef struct cfxi_weighed {
    float most;   /* the greatest score */
    float total;  /* the sum of exponentials, relative to it */
} cfxi_weighed;

/* n scores become exponentials relative to the greatest so far; returns by what earlier sums must
 * be multiplied. They are scaled, and masked first by bytes (0: not seen) or numbers that are
 * added; both may be NULL. (attention_blocks.c) */
float cfxi_linalg_weigh(cfx_isa isa, float *scores, int64_t n, float scale, const uint8_t *seen,
                        const float *added, cfxi_weighed *w);

typedef struct cfxi_attention_rows {
    /* Scales n scores and masks them: `seen` or `added` is NULL. */
    void (*mask)(float *scores, int64_t n, float scale, const uint8_t *seen, const float *added);
    /* out[r] += the sum of weights[r][j] * v[j], for one to CFXI_FEW_QUERIES rows. */
    void (*mix)(int rows, const float *weights, int64_t weights_row, const float *v, int64_t v_row,
                int64_t n, int64_t size, float *out, int64_t out_row);
} cfxi_attention_rows;

enum { CFXI_FEW_QUERIES = 4 };  /* at most CFXI_DOT_ROWS */

CFXI_ISA_TABLES(cfxi_attention_rows, cfxi_linalg_attention_rows)
const cfxi_attention_rows *cfxi_linalg_attention_rows_of(cfx_isa isa);

#endif
