/* random.c - the random generator: published vectors, independence of order, distributions. */
#include "runtime/runtime_impl.h"

#include "check.h"

#include <math.h>

typedef struct vector {
    uint32_t counter[4];
    uint32_t key[2];
    uint32_t want[4];
} vector;

/* The known answers for philox4x32 with 10 rounds that its authors publish with Random123. */
static const vector vectors[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(published_vectors)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint32_t got[4];
        cfxi_rt_philox(vectors[i].counter, vectors[i].key, got);
        for (int k = 0; k < 4; k++)
            CHECK_INT_EQ(vectors[i].want[k], got[k]);
    }
}

TEST(a_seed_repeats_and_reservations_do_not_overlap)
{
    cfx_error err = {0};
    cfx_runtime_options options = {.threads = 1, .seed = 7};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    REQUIRE(rt);
    cfxi_random first = cfxi_rt_random_reserve(rt, 5);
    cfxi_random second = cfxi_rt_random_reserve(rt, 1);
    CHECK_INT_EQ(3, second.first - first.first);
    CHECK(cfxi_rt_random_bits(first, 4) != cfxi_rt_random_bits(second, 0));
    CHECK_INT_EQ(0, cfxi_rt_random_reserve(rt, 0).first - second.first - 1);
    cfx_runtime_seed(rt, 7);
    cfxi_random again = cfxi_rt_random_reserve(rt, 5);
    for (int64_t i = 4; i >= 0; i--)
        CHECK(cfxi_rt_random_bits(first, i) == cfxi_rt_random_bits(again, i));
    cfx_runtime_seed(rt, 8);
    CHECK(cfxi_rt_random_bits(cfxi_rt_random_reserve(rt, 1), 0) != cfxi_rt_random_bits(first, 0));
    cfx_runtime_free(rt);
}

TEST(distributions)
{
    enum { N = 200000 };
    const cfxi_random r = {.seed = 1, .first = 0};
    double sum = 0, squares = 0, normal = 0, normal_squares = 0;
    for (int64_t i = 0; i < N; i++) {
        double u = cfxi_rt_random_uniform(r, i);
        double z = cfxi_rt_random_normal(r, i);
        if (u < 0 || u >= 1 || !isfinite(z)) {
            CHECK(!"out of range");
            return;
        }
        sum += u;
        squares += u * u;
        normal += z;
        normal_squares += z * z;
    }
    CHECK(fabs(sum / N - 0.5) < 0.003);
    CHECK(fabs(squares / N - 1.0 / 3) < 0.003);
    CHECK(fabs(normal / N) < 0.01);
    CHECK(fabs(normal_squares / N - 1) < 0.02);
}
