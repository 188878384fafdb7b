/* chain_known.c - activations that are written out become one function, and give what was written;
 * what only looks like them stays. */
#include "backend/chain.h"

#include "test_alloc.h"

#include <math.h>

#define IN(i) {.from = CFXI_FROM_INPUT, .index = i}
#define OP(i) {.from = CFXI_FROM_OP, .index = i}
#define NUM(x) {.from = CFXI_FROM_NUMBER, .number = x}
#define ONE(f, a) {.fn = CFXI_FN_##f, .n = 1, .args = {a}}
#define TWO(f, a, b) {.fn = CFXI_FN_##f, .n = 2, .args = {a, b}}

typedef struct written {
    const char *name;
    cfxi_chain chain;
    size_t ops;         /* that are left */
    cfxi_fn last;
} written;

static const written all[] = {
    {"GPT-2's", {1, 8, {ONE(cube, IN(0)), TWO(mul, OP(0), NUM(0.044715f)), TWO(add, IN(0), OP(1)),
                        TWO(mul, NUM(0.79788456f), OP(2)), ONE(tanh, OP(3)),
                        TWO(add, NUM(1), OP(4)), TWO(mul, IN(0), NUM(0.5f)),
                        TWO(mul, OP(6), OP(5))}}, 1, CFXI_FN_gelu_tanh},
    {"the short form", {1, 9, {TWO(mul, IN(0), IN(0)), TWO(mul, NUM(0.044715f), OP(0)),
                               TWO(add, OP(1), NUM(1)), TWO(mul, IN(0), NUM(0.79788456f)),
                               TWO(mul, OP(3), OP(2)), ONE(tanh, OP(4)), TWO(add, OP(5), NUM(1)),
                               TWO(mul, OP(6), IN(0)), TWO(div, OP(7), NUM(2))}},
     1, CFXI_FN_gelu_tanh},
    {"with erf", {1, 5, {TWO(div, IN(0), NUM(1.41421356f)), ONE(erf, OP(0)),
                         TWO(add, OP(1), NUM(1)), TWO(mul, IN(0), NUM(0.5f)),
                         TWO(mul, OP(3), OP(2))}}, 1, CFXI_FN_gelu},
    {"silu", {1, 2, {ONE(sigmoid, IN(0)), TWO(mul, OP(0), IN(0))}}, 1, CFXI_FN_silu},
    {"silu between others", {2, 5, {TWO(mul, IN(0), IN(1)), ONE(sigmoid, OP(0)),
                                    TWO(mul, OP(0), OP(1)), TWO(mul, OP(2), IN(1)),
                                    TWO(add, OP(3), IN(0))}}, 4, CFXI_FN_add},
    {"silu of what another needs", {1, 3, {ONE(sigmoid, IN(0)), TWO(mul, OP(0), IN(0)),
                                           TWO(add, OP(1), OP(0))}}, 3, CFXI_FN_add},
    {"the sigmoid of another", {2, 2, {ONE(sigmoid, IN(1)), TWO(mul, OP(0), IN(0))}},
     2, CFXI_FN_mul},
    {"twice silu", {1, 3, {ONE(sigmoid, IN(0)), TWO(mul, OP(0), IN(0)), TWO(mul, OP(1), NUM(2))}},
     2, CFXI_FN_mul},
    {"another number", {1, 5, {TWO(mul, IN(0), NUM(0.7f)), ONE(erf, OP(0)),
                               TWO(add, OP(1), NUM(1)), TWO(mul, IN(0), NUM(0.5f)),
                               TWO(mul, OP(3), OP(2))}}, 5, CFXI_FN_mul},
    {"a sum with two", {1, 5, {TWO(mul, IN(0), NUM(0.70710678f)), ONE(erf, OP(0)),
                               TWO(add, OP(1), NUM(2)), TWO(mul, IN(0), NUM(0.5f)),
                               TWO(mul, OP(3), OP(2))}}, 5, CFXI_FN_mul},
    {"a square inside", {1, 8, {ONE(square, IN(0)), TWO(mul, OP(0), NUM(0.044715f)),
                                TWO(add, IN(0), OP(1)), TWO(mul, NUM(0.79788456f), OP(2)),
                                ONE(tanh, OP(3)), TWO(add, NUM(1), OP(4)),
                                TWO(mul, IN(0), NUM(0.5f)), TWO(mul, OP(6), OP(5))}},
     8, CFXI_FN_mul},
    {"many factors", {1, 4, {ONE(cube, IN(0)), ONE(square, OP(0)), TWO(mul, OP(1), OP(1)),
                             TWO(mul, OP(2), OP(2))}}, 4, CFXI_FN_mul},
};

enum { NUMBERS = 1000 };

static float number_of(int i)
{
    static const float special[] = {0, -0.f, INFINITY, -INFINITY, NAN, 1e-42f, -1e-42f, 1e20f,
                                    -1e20f, 1e-20f, 3e38f, -3e38f};
    const int n = sizeof special / sizeof *special;
    return i < n ? special[i] : (float)(i - NUMBERS / 2) / 40;
}

static void check(const cfx_runtime *rt, const written *w)
{
    float x[NUMBERS], y[NUMBERS], want[NUMBERS], got[NUMBERS];
    const float *inputs[CFXI_CHAIN_INPUTS] = {x, y};
    cfxi_chain before = w->chain;
    cfxi_chain after = w->chain;
    for (int i = 0; i < NUMBERS; i++) {
        x[i] = number_of(i);
        y[i] = 0.25f + (float)(i % 7);
    }
    cfxi_backend_chain_recognise(&after);
    cfxi_backend_chain_assign(&before);
    cfxi_backend_chain_assign(&after);
    bool good = after.num_ops == w->ops && after.ops[after.num_ops - 1].fn == w->last;
    cfxi_backend_chain_run(&before, rt, NUMBERS, inputs, want);
    cfxi_backend_chain_run(&after, rt, NUMBERS, inputs, got);
    for (int i = 0; i < NUMBERS; i++)
        good = good && (got[i] == want[i] || (isnan(got[i]) && isnan(want[i])) ||
                        fabsf(got[i] - want[i]) <= 2e-6f * (1 + fabsf(want[i])));
    if (!CHECK(good))
        printf("    %s\n", w->name);
}

TEST(activations)
{
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        const cfx_runtime_options o = {.threads = 1, .limit_isa = true, .isa = (cfx_isa)isa};
        cfx_runtime *rt = cfx_runtime_new(&o, NULL);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            check(rt, &all[i]);
        cfx_runtime_free(rt);
    }
}
