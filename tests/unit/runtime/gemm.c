/* gemm.c - fast matrix products against the plain one: sizes, strides, alpha, beta, bias. */
#include "runtime/kernels/linalg/product_impl.h"
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

#include <math.h>

static uint64_t state = 1;

static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static double number(void) { return ((double)draw(2001) - 1000) / 1000; }

/* A matrix in memory of exactly its size, so that reading past its end is caught. */
typedef struct matrix {
    void *data;
    int64_t row, col, elements;
} matrix;

static matrix matrix_new(cfx_dtype dtype, int64_t rows, int64_t columns)
{
    static const int64_t gaps[] = {1, 1, 1, 2};
    int64_t gap = gaps[draw(4)];
    bool transposed = draw(2);
    matrix m = {.row = transposed ? gap : gap * columns, .col = transposed ? gap * rows : gap};
    m.elements = rows && columns ? (rows - 1) * m.row + (columns - 1) * m.col + 1 : 0;
    m.data = malloc((size_t)(m.elements ? m.elements : 1) * cfx_dtype_size(dtype));
    for (int64_t i = 0; i < m.elements; i++)
        cfxi_tensor_store_float(dtype, (char *)m.data + i * (int64_t)cfx_dtype_size(dtype),
                                number());
    return m;
}

static bool same(cfx_dtype dtype, const void *want, const void *got, int64_t n, int64_t k)
{
    double most = (dtype == CFX_DTYPE_FLOAT32 ? 1e-6 : 1e-14) * (10 + (double)k);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i * (int64_t)cfx_dtype_size(dtype);
        double w = cfxi_tensor_load_float(dtype, (const char *)want + at);
        double g = cfxi_tensor_load_float(dtype, (const char *)got + at);
        if (!(fabs(w - g) <= most))
            return false;
    }
    return true;
}

static void check_product(cfx_runtime *fast, cfx_runtime *plain, cfx_dtype dtype, int64_t m,
                          int64_t n, int64_t k)
{
    static const double factors[] = {0, 1, 0.5};
    matrix a = matrix_new(dtype, m, k);
    matrix b = matrix_new(dtype, k, n);
    matrix c = matrix_new(dtype, m, n);
    matrix bias = matrix_new(dtype, 1, 2 * (m > n ? m : n) + 1);
    size_t size = (size_t)c.elements * cfx_dtype_size(dtype);
    void *want = malloc(size + 1);
    memcpy(want, c.data, size);
    cfxi_gemm g = {.m = m, .n = n, .k = k, .a = a.data, .a_row = a.row, .a_col = a.col,
                   .b = b.data, .b_row = b.row, .b_col = b.col, .c = c.data, .c_row = c.row,
                   .c_col = c.col, .alpha = draw(2) ? 1 : 0.25, .beta = factors[draw(3)],
                   .bias = draw(2) ? bias.data : NULL, .bias_rows = draw(2)};
    CHECK(cfxi_linalg_gemm_run(fast, dtype, &g, NULL) == CFX_OK);
    g.c = want;
    CHECK(cfxi_linalg_gemm_run(plain, dtype, &g, NULL) == CFX_OK);
    if (!CHECK(same(dtype, want, c.data, c.elements, k)))
        printf("    %s, %d x %d x %d, a %d %d, b %d %d, c %d %d, isa %s\n", cfx_dtype_name(dtype),
               (int)m, (int)n, (int)k, (int)a.row, (int)a.col, (int)b.row, (int)b.col, (int)c.row,
               (int)c.col, cfx_isa_name(cfx_runtime_isa(fast)));
    free(want);
    free(bias.data);
    free(c.data);
    free(b.data);
    free(a.data);
}

static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 31, 32, 33, 47, 64, 100};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void check_sizes(cfx_isa isa, int rounds)
{
    const cfx_runtime_options with_isa = {.threads = 2, .limit_isa = true, .isa = isa};
    const cfx_runtime_options reference = {.reference = true};
    cfx_runtime *fast = cfx_runtime_new(&with_isa, NULL);
    cfx_runtime *plain = cfx_runtime_new(&reference, NULL);
    REQUIRE(fast && plain);
    for (int i = 0; i < rounds; i++)
        check_product(fast, plain, i % 2 ? CFX_DTYPE_FLOAT32 : CFX_DTYPE_FLOAT64,
                      sizes[draw(SIZES)], sizes[draw(SIZES)], sizes[draw(SIZES)]);
    check_product(fast, plain, CFX_DTYPE_FLOAT32, 211, 160, 300);  /* more than one block */
    check_product(fast, plain, CFX_DTYPE_FLOAT64, 33, 1100, 270);
    check_product(fast, plain, CFX_DTYPE_FLOAT32, 1, 700, 600);
    check_product(fast, plain, CFX_DTYPE_FLOAT32, 900, 1, 300);
    cfx_runtime_free(plain);
    cfx_runtime_free(fast);
}

TEST(plain_agrees) { check_sizes(CFX_ISA_PLAIN, 400); }
TEST(avx2_agrees) { check_sizes(CFX_ISA_AVX2, 400); }
TEST(avx512_agrees) { check_sizes(CFX_ISA_AVX512, 400); }

/* beta 0 must not let the NaN that is there through. */
TEST(what_was_there_does_not_count)
{
    const cfx_runtime_options options = {.threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    float a[4] = {1, 2, 3, 4};
    float c[4] = {NAN, NAN, NAN, NAN};
    const cfxi_gemm g = {.m = 2, .n = 2, .k = 2, .a = a, .a_row = 2, .a_col = 1, .b = a,
                         .b_row = 2, .b_col = 1, .c = c, .c_row = 2, .c_col = 1, .alpha = 1};
    REQUIRE(rt);
    CHECK(cfxi_linalg_gemm_run(rt, CFX_DTYPE_FLOAT32, &g, NULL) == CFX_OK);
    CHECK(c[0] == 7 && c[1] == 10 && c[2] == 15 && c[3] == 22);
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_E_TYPE, cfxi_linalg_gemm_run(rt, CFX_DTYPE_INT32, &g, &err));
    cfx_runtime_free(rt);
}

static cfx_status big_product(const cfx_allocator *allocator, void *arg)
{
    static float a[128 * 128], c[128 * 128];
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = allocator, .threads = 2};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    const cfxi_gemm g = {.m = 128, .n = 128, .k = 128, .a = a, .a_row = 128, .a_col = 1, .b = a,
                         .b_row = 128, .b_col = 1, .c = c, .c_row = 128, .c_col = 1, .alpha = 1};
    (void)arg;
    if (rt)
        cfxi_linalg_gemm_run(rt, CFX_DTYPE_FLOAT32, &g, &err);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(no_memory_for_panels)
{
    test_oom_sweep(big_product, NULL);
}
