/* attention.c - attention against the plain reference: odd sizes, strides, masks, shared heads, NaN
 * and infinity, on each instruction set. */
#include "row_agreement.h"

enum { Q, K, V, MASK, DROP, CAUSAL, SCALE, SHARED, COUNT };

typedef struct problem {
    int64_t batch, heads, shared, queries, keys, size, value_size;
} problem;

/* [batch, heads, length, size], contiguous or as a projection leaves it, or with gaps. */
static cfx_datum heads_of(int64_t batch, int64_t heads, int64_t length, int64_t size)
{
    static const int projected[] = {0, 2, 1, 3};
    static const int turned[] = {0, 1, 3, 2};
    const int64_t sizes[] = {batch, heads, length, size};
    const int64_t way = draw(8);
    return random_floats(sizes, 4, (lie){way < 4 ? projected : way == 4 ? turned : NULL,
                                         draw(3) == 0 ? 3 : 0});
}

static cfx_datum mask_of(const problem *p, int64_t way)
{
    const int64_t sizes[] = {draw(2) ? p->batch : 1, draw(2) ? p->heads : 1,
                             draw(2) ? p->queries : 1, draw(8) ? p->keys : 1};
    static const int turned[] = {0, 1, 3, 2};
    if (way == 0)
        return cfx_datum_none();
    const size_t fewer = (size_t)draw(3);
    if (way == 1)
        return random_bools(sizes + fewer, 4 - fewer);
    return random_floats(sizes, 4, (lie){draw(2) ? turned : NULL, 0});
}

static void check(const problem *p)
{
    cfx_datum args[COUNT];
    args[Q] = heads_of(p->batch, p->heads, p->queries, p->size);
    args[K] = heads_of(p->batch, p->shared, p->keys, p->size);
    args[V] = heads_of(p->batch, p->shared, p->keys, p->value_size);
    args[CAUSAL] = cfx_datum_bool(draw(4) == 0);
    args[MASK] = mask_of(p, args[CAUSAL].as.b ? 0 : draw(3));
    args[DROP] = cfx_datum_float(0);
    args[SCALE] = draw(3) ? cfx_datum_none() : cfx_datum_float(-0.05);
    args[SHARED] = cfx_datum_bool(p->shared != p->heads);
    check_row(CFX_OPID_scaled_dot_product_attention, args, COUNT, 2e-5);
    drop_all(args, COUNT);
}

TEST(odd_sizes)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 17, 29, 64, 131, 300, 530};
    static const int64_t sizes[] = {1, 7, 16, 33, 64, 80, 129, 256};
    for (int i = 0; i < 60; i++) {
        const int64_t shared = 1 + draw(2);
        problem p = {1 + draw(2), shared * (draw(2) ? 1 : 1 + draw(5)), shared,
                     lengths[draw(i % 8 ? 7 : 10)], lengths[draw(i % 8 ? 8 : 10)],
                     sizes[draw(8)], sizes[draw(8)]};
        check(&p);
    }
}

/* One query, as a step of decoding has it. */
TEST(one_query)
{
    for (int i = 0; i < 20; i++) {
        const int64_t shared = 1 + draw(3);
        problem p = {1 + draw(2), shared * (1 + draw(6)), shared, 1, 1 + draw(200), 8 + draw(70),
                     8 + draw(70)};
        check(&p);
    }
}

/* NaN and infinity reach the rows that see them, and a row that sees nothing is 0. */
TEST(special_numbers)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 1e18f};
    for (int i = 0; i < 24; i++) {
        const int64_t queries = draw(2) ? 1 + draw(4) : 5 + draw(40);
        const int64_t keys = 1 + draw(300);
        const int64_t q[] = {1, 2, queries, 20};
        const int64_t k[] = {1, 2, keys, 20};
        const int64_t m[] = {1, 1, queries, keys};
        cfx_datum args[] = {random_floats(q, 4, (lie){0}), random_floats(k, 4, (lie){0}),
                            random_floats(k, 4, (lie){0}), random_floats(m, 4, (lie){0})};
        if (i % 6 < 4)
            spoil(args[i % 3], bad[i % 4]);
        float *mask = (float *)args[MASK].as.tensor->data;
        for (int64_t j = 0; j < keys; j++)  /* the first query sees nothing */
            mask[j] = -INFINITY;
        check_row(CFX_OPID_scaled_dot_product_attention, args, 4, 2e-5);
        drop_all(args, 4);
    }
}

/* The scores of a row that grow from block to block: what was summed is scaled down. */
TEST(growing_scores)
{
    const int64_t q[] = {1, 40, 16};
    const int64_t k[] = {1, 1200, 16};
    cfx_datum args[] = {random_floats(q, 3, (lie){0}), random_floats(k, 3, (lie){0}),
                        random_floats(k, 3, (lie){0})};
    float *at = (float *)args[K].as.tensor->data;
    for (int64_t i = 0; i < 1200 * 16; i++)
        at[i] *= (float)(i / 16) / 100;
    check_row(CFX_OPID_scaled_dot_product_attention, args, 3, 2e-4);
    drop_all(args, 3);
}
