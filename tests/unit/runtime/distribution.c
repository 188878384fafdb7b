/* distribution.c - random tensors: mean, variance, chi-square; the same for a seed, whatever the
 * number of threads. Seeds are fixed: nothing here is left to chance. */
#include "runtime/runtime_impl.h"

#include "check.h"

#include <math.h>
#include <stdlib.h>

enum { N = 40000 };

static cfx_runtime *runtime_of(unsigned threads)
{
    cfx_runtime_options o = {.threads = threads, .seed = 1234};
    return cfx_runtime_new(&o, NULL);
}

static cfx_datum filled(double value)
{
    int64_t n = N;
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT64, &n, 1, NULL, NULL);
    for (int64_t i = 0; t && i < N; i++)
        ((double *)cfx_tensor_data(t))[i] = value;
    return cfx_datum_tensor(t);
}

typedef struct expected {
    cfx_operator op;
    double self;     /* what the argument holds: a probability, a rate */
    double a;
    double b;
    int numbers;     /* how many of a, b the row takes */
    double mean;
    double variance;
} expected;

static const expected table[] = {
    {CFX_OPID_uniform, 0, 2, 5, 2, 3.5, 0.75},
    {CFX_OPID_normal, 0, -1, 3, 2, -1, 9},
    {CFX_OPID_log_normal, 0, 0, 0.5, 2, 1.133148453, 0.364695},
    {CFX_OPID_exponential, 0, 4, 0, 1, 0.25, 0.0625},
    {CFX_OPID_geometric, 0, 0.25, 0, 1, 4, 12},
    {CFX_OPID_bernoulli, 0.3, 0, 0, 0, 0.3, 0.21},
    {CFX_OPID_poisson, 3.5, 0, 0, 0, 3.5, 3.5},
    {CFX_OPID_poisson, 40, 0, 0, 0, 40, 40},
    {CFX_OPID_randn_like, 0, 0, 0, 0, 0, 1},
    {CFX_OPID_rand_like, 0, 0, 0, 0, 0.5, 1. / 12},
    {CFX_OPID_dropout, 1, 0.25, 0, 2, 1, 1. / 3},
};

/* Of a dropout `b` is "training". */
static cfx_datum draw(cfx_runtime *rt, const expected *e)
{
    cfx_datum args[] = {filled(e->self), cfx_datum_float(e->a),
                        e->op == CFX_OPID_dropout ? cfx_datum_bool(true) : cfx_datum_float(e->b)};
    cfx_datum y = cfx_operator_run(rt, e->op, args, 1 + (size_t)e->numbers, NULL);
    cfx_datum_release(args[0]);
    return y;
}

TEST(means_and_variances_are_those_of_the_distribution)
{
    cfx_runtime *rt = runtime_of(2);
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        const expected *e = &table[k];
        cfx_datum y = draw(rt, e);
        REQUIRE(y.kind == CFX_DATUM_TENSOR);
        const double *x = cfx_tensor_data(y.as.tensor);
        double mean = 0;
        double squares = 0;
        for (int i = 0; i < N; i++)
            mean += x[i] / N;
        for (int i = 0; i < N; i++)
            squares += (x[i] - mean) * (x[i] - mean) / N;
        bool good = fabs(mean - e->mean) < 5 * sqrt(e->variance / N) &&
                    fabs(squares / e->variance - 1) < 0.08;
        if (!CHECK(good))
            printf("    %s: mean %g, variance %g\n", cfx_operator_name(e->op), mean, squares);
        cfx_datum_release(y);
    }
    cfx_runtime_free(rt);
}

TEST(threads_do_not_change_what_a_seed_gives)
{
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        cfx_runtime *one = runtime_of(1);
        cfx_runtime *three = runtime_of(3);
        cfx_datum a = draw(one, &table[k]);
        cfx_datum b = draw(three, &table[k]);
        CHECK(memcmp(cfx_tensor_data(a.as.tensor), cfx_tensor_data(b.as.tensor),
                     N * sizeof(double)) == 0);
        cfx_datum_release(a);
        cfx_datum_release(b);
        cfx_runtime_free(one);
        cfx_runtime_free(three);
    }
}

/* 16 bins of equal probability: 15 degrees of freedom, 37.7 is passed once in a thousand. */
TEST(uniform_numbers_and_integers_are_even)
{
    cfx_runtime *rt = runtime_of(2);
    cfx_datum self = filled(0);
    cfx_datum u = cfx_operator_run(rt, CFX_OPID_rand_like, &self, 1, NULL);
    cfx_datum range[] = {self, cfx_datum_int(-3), cfx_datum_int(13)};
    cfx_datum r = cfx_operator_run(rt, CFX_OPID_randint_like, range, 3, NULL);
    REQUIRE(u.kind == CFX_DATUM_TENSOR && r.kind == CFX_DATUM_TENSOR);
    for (int which = 0; which < 2; which++) {
        const double *x = cfx_tensor_data(which ? r.as.tensor : u.as.tensor);
        int count[16] = {0};
        double chi = 0;
        for (int i = 0; i < N; i++) {
            int bin = (int)(which ? x[i] + 3 : x[i] * 16);
            REQUIRE(bin >= 0 && bin < 16);
            count[bin]++;
        }
        for (int b = 0; b < 16; b++)
            chi += (count[b] - N / 16.) * (count[b] - N / 16.) / (N / 16.);
        CHECK(chi < 37.7);
    }
    cfx_datum_release(u);
    cfx_datum_release(r);
    cfx_datum_release(self);
    cfx_runtime_free(rt);
}

TEST(a_permutation_has_every_number_once)
{
    cfx_runtime *rt = runtime_of(1);
    cfx_datum n = cfx_datum_int(500);
    cfx_datum p = cfx_operator_run(rt, CFX_OPID_randperm, &n, 1, NULL);
    bool seen[500] = {false};
    int fixed = 0;
    for (int i = 0; i < 500; i++) {
        int64_t at = ((int64_t *)cfx_tensor_data(p.as.tensor))[i];
        REQUIRE(at >= 0 && at < 500 && !seen[at]);
        seen[at] = true;
        fixed += at == i;
    }
    CHECK(fixed < 10);
    cfx_datum_release(p);
    cfx_runtime_free(rt);
}

TEST(samples_follow_their_weights)
{
    cfx_runtime *rt = runtime_of(1);
    double weights[] = {1, 0, 2, 5};
    int64_t four = 4;
    cfx_datum args[] = {cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT64, &four, NULL, 1,
                                                                weights, true, NULL, NULL, NULL,
                                                                NULL)),
                        cfx_datum_int(8000), cfx_datum_bool(true)};
    cfx_datum y = cfx_operator_run(rt, CFX_OPID_multinomial, args, 3, NULL);
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    int count[4] = {0};
    for (int i = 0; i < 8000; i++)
        count[((int64_t *)cfx_tensor_data(y.as.tensor))[i]]++;
    CHECK(abs(count[0] - 1000) < 120 && count[1] == 0 && abs(count[2] - 2000) < 160);
    cfx_datum_release(y);
    args[1] = cfx_datum_int(3);
    args[2] = cfx_datum_bool(false);
    y = cfx_operator_run(rt, CFX_OPID_multinomial, args, 3, NULL);
    const int64_t *at = cfx_tensor_data(y.as.tensor);
    CHECK(at[0] + at[1] + at[2] == 5 && at[0] != at[1] && at[1] != at[2]);
    cfx_datum_release(y);
    cfx_datum_release(args[0]);
    cfx_runtime_free(rt);
}

TEST(dropout_outside_training_is_its_argument)
{
    cfx_runtime *rt = runtime_of(1);
    cfx_datum args[] = {filled(1), cfx_datum_float(0.5), cfx_datum_bool(false)};
    cfx_datum y = cfx_operator_run(rt, CFX_OPID_dropout, args, 3, NULL);
    CHECK(y.as.tensor == args[0].as.tensor);
    cfx_datum_release(y);
    args[2] = cfx_datum_bool(true);
    y = cfx_operator_run(rt, CFX_OPID_dropout_, args, 3, NULL);
    CHECK(y.as.tensor == args[0].as.tensor);
    int zeros = 0;
    for (int i = 0; i < N; i++)
        zeros += ((double *)cfx_tensor_data(y.as.tensor))[i] == 0;
    CHECK(abs(zeros - N / 2) < 600);
    cfx_datum_release(y);
    cfx_datum_release(args[0]);
    cfx_runtime_free(rt);
}
