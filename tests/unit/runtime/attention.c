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

/* ---- multi_head_attention_forward ----------------------------------------------------------- */

enum {
    QUERY, KEY, VALUE, EMBED_DIM, NUM_HEADS, IN_WEIGHT, IN_BIAS, BIAS_K, BIAS_V, ADD_ZERO, DROPOUT,
    OUT_WEIGHT, OUT_BIAS, TRAINING, PADDING_MASK, NEED_WEIGHTS, ATTN_MASK, SEPARATE, Q_WEIGHT,
    K_WEIGHT, V_WEIGHT, STATIC_K, STATIC_V, AVERAGE, IS_CAUSAL, MOST
};

static cfx_datum three(int64_t a, int64_t b, int64_t c)
{
    return random_floats((const int64_t[]){a, b, c}, 3, (lie){NULL, draw(3) == 0 ? 5 : 0});
}
static cfx_datum two(int64_t a, int64_t b)
{
    static const int turned[] = {1, 0};
    return random_floats((const int64_t[]){a, b}, 2, (lie){draw(3) ? NULL : turned, 0});
}
static cfx_datum one(int64_t a) { return random_floats(&a, 1, (lie){0}); }

static void check_heads(int64_t queries, int64_t keys, int64_t batch, int64_t heads, int64_t size)
{
    const int64_t embed = heads * size;
    const bool self = draw(2);
    const bool separate = !self && draw(2);
    const bool more = draw(3) == 0;
    cfx_datum args[MOST];
    for (size_t i = 0; i < MOST; i++)
        args[i] = cfx_datum_none();
    args[QUERY] = three(queries, batch, embed);
    keys = self ? queries : keys;
    for (size_t i = KEY; i <= VALUE; i++)
        args[i] = self ? cfx_datum_retain(args[QUERY]) : three(keys, batch, embed);
    args[EMBED_DIM] = cfx_datum_int(embed);
    args[NUM_HEADS] = cfx_datum_int(heads);
    args[IN_WEIGHT] = separate ? cfx_datum_none() : two(3 * embed, embed);
    for (size_t i = 0; separate && i < 3; i++)
        args[Q_WEIGHT + i] = two(embed, embed);
    args[IN_BIAS] = draw(2) ? one(3 * embed) : cfx_datum_none();
    args[BIAS_K] = more ? three(1, 1, embed) : cfx_datum_none();
    args[BIAS_V] = more ? three(1, 1, embed) : cfx_datum_none();
    args[ADD_ZERO] = cfx_datum_bool(draw(4) == 0);
    args[DROPOUT] = cfx_datum_float(0);
    args[OUT_WEIGHT] = two(embed, embed);
    args[OUT_BIAS] = draw(2) ? one(embed) : cfx_datum_none();
    args[TRAINING] = cfx_datum_bool(false);
    args[NEED_WEIGHTS] = cfx_datum_bool(draw(2));
    args[SEPARATE] = cfx_datum_bool(separate);
    args[AVERAGE] = cfx_datum_bool(draw(2));
    args[IS_CAUSAL] = cfx_datum_bool(false);
    if (draw(2))
        args[PADDING_MASK] = draw(2) ? random_bools((const int64_t[]){batch, keys}, 2)
                                     : two(batch, keys);
    if (draw(2))
        args[ATTN_MASK] = draw(2) ? two(queries, keys) : three(batch * heads, queries, keys);
    check_row(CFX_OPID_multi_head_attention_forward, args, MOST, 1e-5);
    drop_all(args, MOST);
}

TEST(heads)
{
    draw_scale = 0.2f;  /* no score is extreme */
    for (int i = 0; i < 40; i++)
        check_heads(1 + draw(40), 1 + draw(70), 1 + draw(3), 1 + draw(4), 1 + draw(20));
}
