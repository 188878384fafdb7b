/* reduce.c - reductions, scans and orders: every layout and instruction set against the plain
 * definition, memory running out at every place. */
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

#include <math.h>

/* ---- helpers ------------------------------------------------------------------------------- */

static cfx_runtime *runtime_with(bool reference, int isa, unsigned threads)
{
    cfx_runtime_options o = {.threads = threads, .reference = reference, .limit_isa = isa >= 0,
                             .isa = isa >= 0 ? (cfx_isa)isa : CFX_ISA_PLAIN};
    return cfx_runtime_new(&o, NULL);
}

static cfx_datum shaped(float *data, const int64_t *sizes, const int64_t *strides, size_t ndim)
{
    return cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, strides, ndim, data,
                                                   false, NULL, NULL, NULL, NULL));
}

static cfx_datum floats(float *data, int64_t n) { return shaped(data, &n, NULL, 1); }

static const float *data_of(cfx_datum d) { return cfx_tensor_data(d.as.tensor); }

static float sample(int64_t i) { return (float)((i * 7919) % 1009) / 64.f - 7.f; }

/* ---- sums ---------------------------------------------------------------------------------- */

/* Each subset of three dimensions, contiguous and transposed, on each instruction set. */
TEST(any_dimensions_are_summed)
{
    enum { A = 3, B = 37, C = 21 };
    static float data[A * B * C];
    for (int64_t i = 0; i < A * B * C; i++)
        data[i] = sample(i);
    const int64_t sizes[] = {A, B, C};
    const int64_t strides[2][3] = {{B * C * 4, C * 4, 4}, {4, A * 4, A * B * 4}};
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        cfx_runtime *rt = runtime_with(false, isa, 2);
        for (int layout = 0; layout < 2; layout++) {
            for (uint32_t mask = 1; mask < 8; mask++) {
                double want[A * B * C] = {0};
                cfx_datum dims[3];
                size_t n = 0;
                int64_t step[3];
                int64_t next = 1;
                for (int d = 2; d >= 0; d--) {
                    step[d] = mask & 1u << d ? 0 : next;
                    next *= mask & 1u << d ? 1 : sizes[d];
                    if (mask & 1u << d)
                        dims[n++] = cfx_datum_int(d);
                }
                for (int64_t a = 0; a < A; a++)
                    for (int64_t b = 0; b < B; b++)
                        for (int64_t c = 0; c < C; c++)
                            want[a * step[0] + b * step[1] + c * step[2]] +=
                                data[(a * strides[layout][0] + b * strides[layout][1] +
                                      c * strides[layout][2]) / 4];
                cfx_datum args[] = {shaped(data, sizes, strides[layout], 3),
                                    cfx_datum_seq(CFX_DATUM_LIST, dims, n, NULL, NULL)};
                cfx_datum y = cfx_operator_run(rt, CFX_OPID_sum, args, 2, NULL);
                REQUIRE(y.kind == CFX_DATUM_TENSOR);
                CHECK_INT_EQ(next, cfx_tensor_numel(y.as.tensor));
                for (int64_t i = 0; i < next; i++)
                    CHECK(fabs(data_of(y)[i] - want[i]) <= 1e-4 * (1 + fabs(want[i])));
                cfx_datum_release(y);
                cfx_datum_release(args[0]);
                cfx_datum_release(args[1]);
            }
        }
        cfx_runtime_free(rt);
    }
}

/* A million tenths: a float alone would be off by far more. */
TEST(long_sums_stay_exact_and_threads_do_not_matter)
{
    enum { N = 1000000 };
    float *x = malloc(N * sizeof *x);
    REQUIRE(x != NULL);
    for (int i = 0; i < N; i++)
        x[i] = 0.1f;
    float sums[3];
    for (unsigned threads = 1; threads <= 3; threads++) {
        cfx_runtime *rt = runtime_with(false, -1, threads);
        cfx_datum a = floats(x, N);
        cfx_datum y = cfx_operator_run(rt, CFX_OPID_sum, &a, 1, NULL);
        sums[threads - 1] = data_of(y)[0];
        cfx_datum_release(y);
        cfx_datum_release(a);
        cfx_runtime_free(rt);
    }
    CHECK(fabsf(sums[0] - 100000.0015f) < 0.1f);
    CHECK(sums[0] == sums[1] && sums[1] == sums[2]);
    free(x);
}

/* ---- extremes ------------------------------------------------------------------------------ */

TEST(nan_wins_and_the_first_of_equals)
{
    cfx_runtime *rt = runtime_with(false, -1, 2);
    float x[40];
    for (int i = 0; i < 40; i++)
        x[i] = (float)(i % 7);
    cfx_datum a = floats(x, 40);
    cfx_datum most = cfx_operator_run(rt, CFX_OPID_argmax, &a, 1, NULL);
    cfx_datum least = cfx_operator_run(rt, CFX_OPID_argmin, &a, 1, NULL);
    CHECK_INT_EQ(6, *(int64_t *)cfx_tensor_data(most.as.tensor));
    CHECK_INT_EQ(0, *(int64_t *)cfx_tensor_data(least.as.tensor));
    cfx_datum_release(most);
    cfx_datum_release(least);
    x[33] = NAN;
    x[38] = NAN;
    most = cfx_operator_run(rt, CFX_OPID_argmax, &a, 1, NULL);
    least = cfx_operator_run(rt, CFX_OPID_min, &a, 1, NULL);
    CHECK_INT_EQ(33, *(int64_t *)cfx_tensor_data(most.as.tensor));
    CHECK(isnan(data_of(least)[0]));
    cfx_datum_release(most);
    cfx_datum_release(least);
    cfx_datum_release(a);
    cfx_runtime_free(rt);
}

TEST(nothing_to_choose_from_is_told)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_with(false, -1, 1);
    const int64_t sizes[] = {0, 3};
    float none[1] = {0};
    cfx_datum args[] = {shaped(none, sizes, NULL, 2), cfx_datum_int(0)};
    cfx_datum y = cfx_operator_run(rt, CFX_OPID_max_dim, args, 2, &err);
    CHECK(y.kind == CFX_DATUM_INVALID);
    CHECK_INT_EQ(CFX_E_INDEX, err.status);
    args[1] = cfx_datum_int(2);
    y = cfx_operator_run(rt, CFX_OPID_cumsum, args, 2, &err);
    CHECK_INT_EQ(CFX_E_INDEX, err.status);
    y = cfx_operator_run(rt, CFX_OPID_sum, args, 1, &err);
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK(data_of(y)[0] == 0);
    cfx_datum_release(y);
    cfx_datum_release(args[0]);
    cfx_runtime_free(rt);
}

/* ---- softmax ------------------------------------------------------------------------------- */

TEST(softmax_is_the_same_along_any_dimension)
{
    enum { N = 45, M = 70 };
    static float x[N * M];
    static float turned[M * N];
    for (int64_t i = 0; i < N * M; i++) {
        x[i] = sample(i);
        turned[i % M * N + i / M] = x[i];
    }
    const int64_t sizes[] = {N, M};
    const int64_t back[] = {M, N};
    cfx_runtime *plain = runtime_with(true, -1, 1);
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        cfx_runtime *rt = runtime_with(false, isa, 2);
        cfx_datum a[] = {shaped(x, sizes, NULL, 2), cfx_datum_int(1)};
        cfx_datum b[] = {shaped(turned, back, NULL, 2), cfx_datum_int(0)};
        cfx_datum want = cfx_operator_run(plain, CFX_OPID_softmax, a, 2, NULL);
        cfx_datum inner = cfx_operator_run(rt, CFX_OPID_softmax, a, 2, NULL);
        cfx_datum outer = cfx_operator_run(rt, CFX_OPID_softmax, b, 2, NULL);
        cfx_datum logs = cfx_operator_run(rt, CFX_OPID_log_softmax, b, 2, NULL);
        for (int64_t i = 0; i < N * M; i++) {
            int64_t other = i % M * N + i / M;
            CHECK(fabsf(data_of(inner)[i] - data_of(want)[i]) < 1e-6f);
            CHECK(fabsf(data_of(outer)[other] - data_of(want)[i]) < 1e-6f);
            CHECK(fabsf(expf(data_of(logs)[other]) - data_of(want)[i]) < 1e-5f);
        }
        cfx_datum all[] = {a[0], b[0], want, inner, outer, logs};
        for (size_t i = 0; i < 6; i++)
            cfx_datum_release(all[i]);
        cfx_runtime_free(rt);
    }
    cfx_runtime_free(plain);
}

/* ---- orders -------------------------------------------------------------------------------- */

TEST(sorts_are_stable_and_topk_is_their_beginning)
{
    enum { N = 3000, K = 17 };
    static float x[N];
    cfx_runtime *rt = runtime_with(false, -1, 2);
    for (int64_t i = 0; i < N; i++)
        x[i] = i % 50 == 49 ? NAN : sample(i % 800);
    cfx_datum sort[] = {floats(x, N), cfx_datum_int(0), cfx_datum_bool(true)};
    cfx_datum topk[] = {sort[0], cfx_datum_int(K)};
    cfx_datum sorted = cfx_operator_run(rt, CFX_OPID_sort, sort, 3, NULL);
    cfx_datum first = cfx_operator_run(rt, CFX_OPID_topk, topk, 2, NULL);
    size_t n;
    const cfx_datum *s = cfx_datum_items(sorted, &n);
    const cfx_datum *t = cfx_datum_items(first, &n);
    REQUIRE(n == 2);
    const float *values = data_of(s[0]);
    const int64_t *at = cfx_tensor_data(s[1].as.tensor);
    for (int64_t i = 1; i < N; i++) {
        bool same = values[i] == values[i - 1] || (isnan(values[i]) && isnan(values[i - 1]));
        CHECK(same ? at[i] > at[i - 1] : isnan(values[i - 1]) || values[i] < values[i - 1]);
        CHECK(x[at[i]] == values[i] || isnan(values[i]));
    }
    for (int64_t i = 0; i < K; i++)
        CHECK_INT_EQ(at[i], ((int64_t *)cfx_tensor_data(t[1].as.tensor))[i]);
    cfx_datum_release(sorted);
    cfx_datum_release(first);
    cfx_datum_release(sort[0]);
    cfx_runtime_free(rt);
}

/* ---- memory -------------------------------------------------------------------------------- */

static cfx_status run_many(const cfx_allocator *a, void *arg)
{
    static const cfx_operator ops[] = {
        CFX_OPID_sum, CFX_OPID_argmax, CFX_OPID_median, CFX_OPID_unique, CFX_OPID_sort,
        CFX_OPID_histc, CFX_OPID_gumbel_softmax, CFX_OPID_bernoulli, CFX_OPID_softmax,
        CFX_OPID_std_mean, CFX_OPID_quantile, CFX_OPID_mse_loss, CFX_OPID_cross_entropy};
    cfx_error err = {0};
    cfx_runtime_options o = {.allocator = a, .threads = 1};
    const int64_t sizes[] = {6, 5};
    const int64_t strides[] = {4, 24};
    float *x = arg;
    cfx_status status = CFX_E_NOMEM;
    cfx_runtime *rt = cfx_runtime_new(&o, &err);
    cfx_tensor *t = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, strides, 2, x, false, NULL,
                                           NULL, a, &err);
    bool good = rt && t;
    for (size_t i = 0; good && i < sizeof ops / sizeof *ops; i++) {
        cfx_datum d = cfx_datum_tensor(t);
        bool two = ops[i] == CFX_OPID_mse_loss || ops[i] == CFX_OPID_cross_entropy;
        cfx_datum args[] = {d, ops[i] == CFX_OPID_quantile ? cfx_datum_float(0.3)
                               : two                       ? d
                                                           : cfx_datum_int(0)};
        bool one = ops[i] == CFX_OPID_median || ops[i] == CFX_OPID_unique ||
                   ops[i] == CFX_OPID_argmax || ops[i] == CFX_OPID_bernoulli ||
                   ops[i] == CFX_OPID_histc || ops[i] == CFX_OPID_gumbel_softmax;
        cfx_datum y = cfx_operator_run(rt, ops[i], args, one ? 1 : 2, &err);
        good = y.kind != CFX_DATUM_INVALID;
        if (!good && err.status != CFX_E_NOMEM)
            printf("    %s\n", err.message);
        cfx_datum_release(y);
    }
    status = good ? CFX_OK : err.status;
    cfx_tensor_release(t);
    cfx_runtime_free(rt);
    return status;
}

TEST(memory_may_run_out_anywhere)
{
    float x[30];
    for (int i = 0; i < 30; i++)
        x[i] = (float)(i % 9) / 9;
    CHECK(test_oom_sweep(run_many, x) > 20);
}
