/* elementwise.c - functions element by element: layouts, types, vectors against plain C, memory. */
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

#include <math.h>

/* ---- helpers ------------------------------------------------------------------------------- */

static cfx_runtime *runtime_with(bool reference, int isa)
{
    cfx_runtime_options o = {.threads = 2, .reference = reference, .limit_isa = isa >= 0,
                             .isa = isa >= 0 ? (cfx_isa)isa : CFX_ISA_PLAIN};
    return cfx_runtime_new(&o, NULL);
}

static cfx_datum floats(float *data, int64_t n)
{
    return cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &n, NULL, 1, data, false,
                                                   NULL, NULL, NULL, NULL));
}

static cfx_datum ints(int64_t *data, int64_t n)
{
    return cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_INT64, &n, NULL, 1, data, false, NULL,
                                                   NULL, NULL, NULL));
}

/* Runs a row; both arguments are let go. */
static cfx_datum run(cfx_runtime *rt, cfx_operator op, cfx_datum a, cfx_datum b, cfx_error *err)
{
    cfx_datum args[2] = {a, b};
    cfx_datum y = cfx_operator_run(rt, op, args, b.kind == CFX_DATUM_INVALID ? 1 : 2, err);
    cfx_datum_release(a);
    cfx_datum_release(b);
    return y;
}

static const cfx_datum nothing = {CFX_DATUM_INVALID, 0, {0}};

/* ---- values -------------------------------------------------------------------------------- */

/* Every number of arguments around the width of vectors: the last, incomplete one counts, too. */
TEST(vectors_agree_with_plain_functions)
{
    static const cfx_operator ops[] = {
        CFX_OPID_exp, CFX_OPID_log, CFX_OPID_tanh, CFX_OPID_sigmoid, CFX_OPID_gelu, CFX_OPID_erf,
        CFX_OPID_sin, CFX_OPID_cos, CFX_OPID_silu, CFX_OPID_relu, CFX_OPID_sqrt, CFX_OPID_floor,
        CFX_OPID_expm1, CFX_OPID_log1p, CFX_OPID_mish, CFX_OPID_softplus, CFX_OPID_log_sigmoid};
    float x[37];
    for (int i = 0; i < 37; i++)
        x[i] = (float)(i - 18) * 0.77f;
    cfx_runtime *plain = runtime_with(true, -1);
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        cfx_runtime *rt = runtime_with(false, isa);
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
            for (int64_t n = 1; n <= 37; n += 3) {
                cfx_datum want = run(plain, ops[k], floats(x, n), nothing, NULL);
                cfx_datum got = run(rt, ops[k], floats(x, n), nothing, NULL);
                const float *a = cfx_tensor_data(want.as.tensor);
                const float *b = cfx_tensor_data(got.as.tensor);
                for (int64_t i = 0; i < n; i++)
                    CHECK(a[i] == b[i] || fabsf(a[i] - b[i]) <= 1e-6f + 2e-6f * fabsf(a[i]) ||
                          (isnan(a[i]) && isnan(b[i])));
                cfx_datum_release(want);
                cfx_datum_release(got);
            }
        }
        cfx_runtime_free(rt);
    }
    cfx_runtime_free(plain);
}

/* A tensor that counts on from `first`, with its dimensions in this order, outermost first. */
static cfx_tensor *laid_out(cfx_dtype dtype, const int64_t *sizes, const uint8_t *order, int first)
{
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, 3, NULL, NULL);
    const int64_t size = (int64_t)cfxi_tensor_itemsize(t);
    for (int64_t i = 0; i < cfxi_tensor_numel(t); i++)
        cfxi_tensor_store_int(dtype, t->data + i * size, (i * 7 + first) % 120);
    cfxi_tensor_ordered_strides(sizes, 3, (size_t)size, order, t->stride);
    return t;
}

static double element(const cfx_tensor *t, const int64_t *at)
{
    return cfxi_tensor_load_float((cfx_dtype)t->dtype, t->data + at[0] * t->stride[0] +
                                                           at[1] * t->stride[1] +
                                                           at[2] * t->stride[2]);
}

static void check_difference(cfx_runtime *rt, cfx_tensor *a, cfx_tensor *b)
{
    const cfx_datum args[2] = {cfx_datum_tensor(a), cfx_datum_tensor(b)};
    const cfx_datum got = cfx_operator_run(rt, CFX_OPID_sub, args, 2, NULL);
    const cfx_tensor *y = got.as.tensor;
    bool good = true;
    for (int64_t i = 0; i < cfxi_tensor_numel(y); i++) {
        const int64_t at[3] = {i / y->size[2] / y->size[1], i / y->size[2] % y->size[1],
                               i % y->size[2]};
        good = good && element(y, at) == element(a, at) - element(b, at);
    }
    CHECK(good);
    cfx_datum_release(got);
    cfx_tensor_release(a);
    cfx_tensor_release(b);
}

/* Each order of dimensions, types that are converted, sizes around blocks of what is turned. */
TEST(operands_in_other_orders)
{
    static const uint8_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const cfx_dtype types[][2] = {{CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT32},
                                         {CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT64},
                                         {CFX_DTYPE_BFLOAT16, CFX_DTYPE_FLOAT32},
                                         {CFX_DTYPE_INT64, CFX_DTYPE_INT16},
                                         {CFX_DTYPE_COMPLEX128, CFX_DTYPE_FLOAT32}};
    static const int64_t sizes[][3] = {
        {2, 7, 9}, {3, 8, 8}, {1, 17, 131}, {2, 130, 150}, {9, 33, 40}};
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        cfx_runtime *rt = runtime_with(false, isa);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                for (size_t o = 0; o < 36; o++)
                    check_difference(rt, laid_out(types[t][0], sizes[k], orders[o / 6], 1),
                                     laid_out(types[t][1], sizes[k], orders[o % 6], 5));
        cfx_runtime_free(rt);
    }
}

TEST(integers_never_trap)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_with(false, -1);
    int64_t a[] = {INT64_MIN, 7, -7, 0};
    int64_t b[] = {-1, 2, 2, 3};
    cfx_datum q = run(rt, CFX_OPID_floor_divide, ints(a, 4), ints(b, 4), &err);
    const int64_t *got = cfx_tensor_data(q.as.tensor);
    CHECK(got[0] == INT64_MIN && got[1] == 3 && got[2] == -4 && got[3] == 0);
    cfx_datum_release(q);
    q = run(rt, CFX_OPID_remainder, ints(a, 4), ints(b, 4), &err);
    got = cfx_tensor_data(q.as.tensor);
    CHECK(got[0] == 0 && got[1] == 1 && got[2] == 1 && got[3] == 0);
    cfx_datum_release(q);
    q = run(rt, CFX_OPID_remainder, ints(a, 4), cfx_datum_int(0), &err);
    CHECK(q.kind == CFX_DATUM_INVALID && err.status == CFX_E_SHAPE);
    CHECK(strstr(err.message, "ZeroDivisionError") != NULL);
    cfx_runtime_free(rt);
}

TEST(numbers_give_way_to_tensors)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_with(false, -1);
    float x[] = {1, 2, 3};
    int64_t i[] = {1, 2, 3};
    cfx_datum y = run(rt, CFX_OPID_mul, floats(x, 3), cfx_datum_float(0.5), &err);
    CHECK_INT_EQ(CFX_DTYPE_FLOAT32, cfx_tensor_dtype(y.as.tensor));
    cfx_datum_release(y);
    y = run(rt, CFX_OPID_add, ints(i, 3), cfx_datum_float(0.5), &err);
    CHECK_INT_EQ(CFX_DTYPE_FLOAT32, cfx_tensor_dtype(y.as.tensor));
    CHECK(((const float *)cfx_tensor_data(y.as.tensor))[2] == 3.5f);
    cfx_datum_release(y);
    y = run(rt, CFX_OPID_div, ints(i, 3), cfx_datum_int(2), &err);
    CHECK_INT_EQ(CFX_DTYPE_FLOAT32, cfx_tensor_dtype(y.as.tensor));
    cfx_datum_release(y);
    y = run(rt, CFX_OPID_gt, ints(i, 3), cfx_datum_int(1), &err);
    CHECK_INT_EQ(CFX_DTYPE_BOOL, cfx_tensor_dtype(y.as.tensor));
    cfx_datum_release(y);
    cfx_runtime_free(rt);
}

TEST(half_floats_are_computed_in_float)
{
    cfx_runtime *rt = runtime_with(false, -1);
    int64_t n = 600;  /* more than a block */
    cfx_tensor *x = cfx_tensor_new(CFX_DTYPE_BFLOAT16, &n, 1, NULL, NULL);
    for (int64_t i = 0; i < n; i++)
        ((uint16_t *)x->data)[i] = cfxi_tensor_float_to_bfloat((float)i / 8);
    cfx_datum y = run(rt, CFX_OPID_sqrt, cfx_datum_tensor(x), nothing, NULL);
    CHECK_INT_EQ(CFX_DTYPE_BFLOAT16, cfx_tensor_dtype(y.as.tensor));
    for (int64_t i = 0; i < n; i++) {
        float v = cfxi_tensor_bfloat_to_float(cfxi_tensor_float_to_bfloat((float)i / 8));
        CHECK_INT_EQ(cfxi_tensor_float_to_bfloat(sqrtf(v)),
                     ((const uint16_t *)y.as.tensor->data)[i]);
    }
    cfx_datum_release(y);
    cfx_runtime_free(rt);
}

/* ---- layout -------------------------------------------------------------------------------- */

TEST(a_permuted_operand_gives_a_permuted_result)
{
    cfx_runtime *rt = runtime_with(false, -1);
    int64_t sizes[] = {2, 3, 4};
    int64_t strides[] = {4, 32, 8};  /* the second dimension is outermost */
    cfx_tensor *x = cfx_tensor_new_strided(CFX_DTYPE_FLOAT32, sizes, strides, 3, NULL, NULL);
    memset(x->data, 0, 96);
    cfx_datum y = run(rt, CFX_OPID_add, cfx_datum_tensor(x), cfx_datum_int(1), NULL);
    const int64_t *got = cfx_tensor_strides(y.as.tensor);
    CHECK(got[0] == 4 && got[1] == 32 && got[2] == 8);
    CHECK(((const float *)cfx_tensor_data(y.as.tensor))[23] == 1);
    cfx_datum_release(y);
    cfx_runtime_free(rt);
}

TEST(operands_broadcast_and_may_run_backwards)
{
    cfx_runtime *rt = runtime_with(false, -1);
    float column[] = {10, 20};
    float row[] = {1, 2, 3};
    int64_t sizes[2][2] = {{2, 1}, {1, 3}};
    int64_t back[] = {12, -4};
    cfx_datum a = cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes[0], NULL, 2,
                                                          column, true, NULL, NULL, NULL, NULL));
    cfx_datum b = cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes[1], back, 2,
                                                          row + 2, true, NULL, NULL, NULL, NULL));
    cfx_datum y = run(rt, CFX_OPID_sub, a, b, NULL);
    const float want[] = {7, 8, 9, 17, 18, 19};
    CHECK(memcmp(want, cfx_tensor_data(y.as.tensor), sizeof want) == 0);
    cfx_datum_release(y);
    cfx_runtime_free(rt);
}

/* other - self: the order of dimensions is that of what is subtracted from. */
TEST(rsub_is_laid_out_like_its_second_argument)
{
    cfx_runtime *rt = runtime_with(false, -1);
    float x[] = {1, 2, 3, 4, 5, 6};
    int64_t sizes[] = {2, 3};
    int64_t turned[] = {4, 8};
    cfx_datum a = cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, turned, 2, x,
                                                          true, NULL, NULL, NULL, NULL));
    cfx_datum b = cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 2, x,
                                                          true, NULL, NULL, NULL, NULL));
    cfx_datum y = run(rt, CFX_OPID_rsub, a, b, NULL);
    const float want[] = {0, -1, -2, 2, 1, 0};
    CHECK(cfx_tensor_is_contiguous(y.as.tensor));
    CHECK(memcmp(want, cfx_tensor_data(y.as.tensor), sizeof want) == 0);
    cfx_datum_release(y);
    cfx_runtime_free(rt);
}

TEST(integers_wrap_around_before_they_become_floats)
{
    cfx_runtime *rt = runtime_with(false, -1);
    int64_t a[] = {INT64_MIN, INT64_MAX, 3};
    int64_t b[] = {INT64_MAX, 0, 5};
    cfx_datum y = run(rt, CFX_OPID_softsign, ints(a, 3), nothing, NULL);
    const float *f = cfx_tensor_data(y.as.tensor);
    CHECK(f[0] == 1 && f[1] == -1 && f[2] == 0.75f);
    cfx_datum_release(y);
    y = run(rt, CFX_OPID_pairwise_distance, ints(a, 1), ints(b, 1), NULL);
    CHECK(fabsf(*(const float *)cfx_tensor_data(y.as.tensor) - 1) < 1e-5f);
    cfx_datum_release(y);
    y = run(rt, CFX_OPID_isclose, ints(a, 3), ints(b, 3), NULL);
    const bool *close = cfx_tensor_data(y.as.tensor);
    CHECK(!close[0] && !close[1] && !close[2]);
    cfx_datum_release(y);
    cfx_runtime_free(rt);
}

/* All elements of an expanded tensor are one: only what makes them the same may be written. */
TEST(an_expanded_tensor_may_be_filled)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_with(false, -1);
    float x = 1;
    int64_t n = 3;
    int64_t step = 0;
    cfx_tensor *t = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &n, &step, 1, &x, false, NULL, NULL,
                                           NULL, NULL);
    cfx_datum y = run(rt, CFX_OPID_fill_, cfx_datum_tensor(cfx_tensor_retain(t)),
                      cfx_datum_float(7), &err);
    CHECK(y.kind == CFX_DATUM_TENSOR && x == 7);
    cfx_datum_release(y);
    y = run(rt, CFX_OPID_neg_, cfx_datum_tensor(t), nothing, &err);
    CHECK(y.kind == CFX_DATUM_INVALID && x == 7);
    CHECK(strstr(err.message, "more than one element of the written-to tensor") != NULL);
    cfx_runtime_free(rt);
}

TEST(sizes_that_do_not_fit_are_told)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_with(false, -1);
    float x[3] = {0};
    cfx_datum y = run(rt, CFX_OPID_mul, floats(x, 3), floats(x, 2), &err);
    CHECK(y.kind == CFX_DATUM_INVALID && err.status == CFX_E_SHAPE);
    CHECK_STR_EQ("mul(float32[3], float32[2]): The size of tensor a (3) must match the size of "
                 "tensor b (2) at non-singleton dimension 0", err.message);
    cfx_runtime_free(rt);
}

/* ---- memory -------------------------------------------------------------------------------- */

static cfx_status close_once(const cfx_allocator *allocator, void *ctx)
{
    cfx_error err = {0};
    float data[] = {1, 2, 3};
    int64_t n = 3;
    cfx_runtime_options o = {.allocator = allocator, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&o, &err);
    (void)ctx;
    if (!rt)
        return err.status;
    cfx_tensor *x = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &n, NULL, 1, data, true, NULL, NULL,
                                           allocator, &err);
    cfx_datum args[2] = {cfx_datum_tensor(x), cfx_datum_tensor(x)};
    if (x) {
        cfx_datum y = cfx_operator_run(rt, CFX_OPID_isclose, args, 2, &err);
        cfx_datum_release(y);
        cfx_datum all[3] = {args[0], cfx_datum_float(0), args[1]};
        y = err.status == CFX_OK ? cfx_operator_run(rt, CFX_OPID_addcmul, all, 3, &err) : nothing;
        cfx_datum_release(y);
    }
    cfx_tensor_release(x);
    cfx_runtime_free(rt);
    return err.status;
}

/* Rows of integers that are made of others. */
static cfx_status whole_once(const cfx_allocator *allocator, void *ctx)
{
    static const cfx_operator ops[] = {CFX_OPID_softsign, CFX_OPID_pairwise_distance,
                                       CFX_OPID_l1_loss, CFX_OPID_isclose, CFX_OPID_softmin};
    cfx_error err = {0};
    int64_t data[] = {1, 2, 3};
    int64_t n = 3;
    cfx_runtime_options o = {.allocator = allocator, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&o, &err);
    (void)ctx;
    if (!rt)
        return err.status;
    cfx_tensor *x = cfx_tensor_from_memory(CFX_DTYPE_INT64, &n, NULL, 1, data, true, NULL, NULL,
                                           allocator, &err);
    for (size_t k = 0; x && k < sizeof ops / sizeof *ops && err.status == CFX_OK; k++) {
        bool softmin = ops[k] == CFX_OPID_softmin;
        cfx_datum args[4] = {cfx_datum_tensor(x), softmin ? cfx_datum_int(0) : cfx_datum_tensor(x),
                             softmin ? cfx_datum_dtype(CFX_DTYPE_FLOAT32) : cfx_datum_int(2)};
        size_t given = ops[k] == CFX_OPID_softsign ? 1
                       : softmin || ops[k] == CFX_OPID_l1_loss ? 3 : 2;
        cfx_datum_release(cfx_operator_run(rt, ops[k], args, given, &err));
    }
    cfx_tensor_release(x);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(memory_may_run_out)
{
    test_oom_sweep(close_once, NULL);
    test_oom_sweep(whole_once, NULL);
}
