/* products.c - rows of matrix products, attention, recurrence and linear algebra: values, messages,
 * and what happens when memory is out. */
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

#include <math.h>

enum { MOST = 8 };

/* A runtime and the arguments of one call. */
typedef struct bench {
    const cfx_allocator *allocator;
    cfx_runtime *rt;
    cfx_error err;
    cfx_datum args[CFXI_MOST_PARAMS];
    size_t n;
} bench;

static bool bench_init(bench *b, const cfx_allocator *allocator)
{
    const cfx_runtime_options options = {.allocator = allocator, .threads = 2};
    memset(b, 0, sizeof *b);
    b->allocator = allocator;
    b->rt = cfx_runtime_new(&options, &b->err);
    return b->rt != NULL;
}

static void bench_free(bench *b)
{
    for (size_t i = 0; i < b->n; i++)
        cfx_datum_release(b->args[i]);
    cfx_runtime_free(b->rt);
}

/* A tensor of 0.1, 0.2, ..., repeated after 7 elements. */
static cfx_datum tensor(bench *b, cfx_dtype dtype, size_t ndim, int64_t s0, int64_t s1, int64_t s2,
                        int64_t s3)
{
    const int64_t sizes[] = {s0, s1, s2, s3};
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, ndim, b->allocator, &b->err);
    for (int64_t i = 0; t && i < cfx_tensor_numel(t); i++)
        cfxi_tensor_store_float(dtype,
                                (char *)cfx_tensor_data(t) + i * (int64_t)cfx_dtype_size(dtype),
                                0.1 * (double)(i % 7 + 1));
    return cfx_datum_tensor(t);
}

static cfx_datum matrix(bench *b, int64_t rows, int64_t columns)
{
    return tensor(b, CFX_DTYPE_FLOAT32, 2, rows, columns, 0, 0);
}

static cfx_datum text(bench *b, const char *s)
{
    return cfx_datum_from_text(CFX_DATUM_STR, s, strlen(s), b->allocator, &b->err);
}

/* A list that takes the items over. */
static cfx_datum list(bench *b, cfx_datum *items, size_t n)
{
    cfx_datum made = cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all = all && items[i].kind != CFX_DATUM_INVALID;
    if (all)
        made = cfx_datum_seq(CFX_DATUM_LIST, items, n, b->allocator, &b->err);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(items[i]);
    return made;
}

static void give(bench *b, cfx_datum d) { b->args[b->n++] = d; }

static cfx_status run(bench *b, cfx_operator op)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->args[i].kind == CFX_DATUM_INVALID)
            return b->err.status;
    cfx_datum result = cfx_operator_run(b->rt, op, b->args, b->n, &b->err);
    cfx_status status = result.kind == CFX_DATUM_INVALID ? b->err.status : CFX_OK;
    cfx_datum_release(result);
    return status;
}

/* ---- values and messages ------------------------------------------------------------------- */

static void check_message(cfx_operator op, cfx_datum (*make)(bench *, size_t), cfx_status status,
                          const char *part)
{
    bench b;
    REQUIRE(bench_init(&b, NULL));
    give(&b, make(&b, 0));
    give(&b, make(&b, 1));
    CHECK_INT_EQ(status, run(&b, op));
    if (!CHECK(strstr(b.err.message, part) != NULL))
        printf("    %s\n", b.err.message);
    bench_free(&b);
}

static cfx_datum misfits(bench *b, size_t i) { return i ? matrix(b, 4, 5) : matrix(b, 2, 3); }
static cfx_datum two_types(bench *b, size_t i)
{
    return tensor(b, i ? CFX_DTYPE_FLOAT64 : CFX_DTYPE_FLOAT32, 2, 2, 2, 0, 0);
}
static cfx_datum bools(bench *b, size_t i)
{
    (void)i;
    return tensor(b, CFX_DTYPE_BOOL, 2, 2, 2, 0, 0);
}

TEST(messages_say_what_is_wrong)
{
    check_message(CFX_OPID_matmul, misfits, CFX_E_SHAPE, "inner sizes 3 and 4 differ");
    check_message(CFX_OPID_linear, misfits, CFX_E_SHAPE, "inner sizes 3 and 5 differ");
    check_message(CFX_OPID_mm, two_types, CFX_E_SHAPE, "the same dtype");
    check_message(CFX_OPID_bmm, misfits, CFX_E_SHAPE, "batch1 must be a 3D tensor");
    check_message(CFX_OPID_matmul, bools, CFX_E_UNSUPPORTED, "not implemented for bool");
}

TEST(batches_fold_and_broadcast)
{
    bench b;
    REQUIRE(bench_init(&b, NULL));
    give(&b, tensor(&b, CFX_DTYPE_FLOAT32, 3, 2, 3, 4, 0));
    give(&b, matrix(&b, 4, 5));
    cfx_datum out = cfx_operator_run(b.rt, CFX_OPID_matmul, b.args, 2, &b.err);
    REQUIRE(out.kind == CFX_DATUM_TENSOR);
    const float *x = cfx_tensor_data(b.args[0].as.tensor);
    const float *w = cfx_tensor_data(b.args[1].as.tensor);
    const float *y = cfx_tensor_data(out.as.tensor);
    for (int row = 0; row < 6; row++)
        for (int column = 0; column < 5; column++) {
            float sum = 0;
            for (int k = 0; k < 4; k++)
                sum += x[row * 4 + k] * w[k * 5 + column];
            CHECK(fabsf(sum - y[row * 5 + column]) < 1e-5f);
        }
    cfx_datum_release(out);
    bench_free(&b);
}

/* ---- no memory ----------------------------------------------------------------------------- */

static void arguments_of(bench *b, cfx_operator op)
{
    cfx_datum items[MOST];
    switch ((int)op) {
    case CFX_OPID_addbmm:
    case CFX_OPID_matmul:
        if (op == CFX_OPID_addbmm)
            give(b, tensor(b, CFX_DTYPE_FLOAT16, 2, 3, 5, 0, 0));
        give(b, tensor(b, CFX_DTYPE_FLOAT16, 3, 2, 3, 4, 0));
        give(b, tensor(b, CFX_DTYPE_FLOAT16, 3, 2, 4, 5, 0));
        break;
    case CFX_OPID_scaled_dot_product_attention:
        for (int i = 0; i < 3; i++)
            give(b, tensor(b, CFX_DTYPE_BFLOAT16, 4, 1, 2, 3, 4));
        break;
    case CFX_OPID_einsum:
        give(b, text(b, "abc,cd,ea->db"));
        items[0] = tensor(b, CFX_DTYPE_FLOAT32, 3, 2, 3, 4, 0);
        items[1] = matrix(b, 4, 5);
        items[2] = matrix(b, 6, 2);
        give(b, list(b, items, 3));
        break;
    case CFX_OPID_lstm:
        give(b, tensor(b, CFX_DTYPE_FLOAT32, 3, 4, 2, 3, 0));
        items[0] = tensor(b, CFX_DTYPE_FLOAT32, 3, 1, 2, 5, 0);
        items[1] = tensor(b, CFX_DTYPE_FLOAT32, 3, 1, 2, 5, 0);
        give(b, list(b, items, 2));
        items[0] = matrix(b, 20, 3);
        items[1] = matrix(b, 20, 5);
        give(b, list(b, items, 2));
        give(b, cfx_datum_bool(false));
        give(b, cfx_datum_int(1));
        give(b, cfx_datum_float(0));
        for (int i = 0; i < 3; i++)
            give(b, cfx_datum_bool(false));
        break;
    default: give(b, tensor(b, CFX_DTYPE_FLOAT64, 3, 2, 3, 3, 0)); break;
    }
}

static cfx_status one_call(const cfx_allocator *allocator, void *arg)
{
    bench b;
    cfx_status status = CFX_E_NOMEM;
    const cfx_operator op = *(const cfx_operator *)arg;
    if (bench_init(&b, allocator)) {
        arguments_of(&b, op);
        status = run(&b, op);
    }
    bench_free(&b);
    return status;
}

TEST(no_memory)
{
    static const cfx_operator rows[] = {
        CFX_OPID_matmul, CFX_OPID_addbmm, CFX_OPID_scaled_dot_product_attention, CFX_OPID_einsum,
        CFX_OPID_lstm, CFX_OPID_linalg_svd, CFX_OPID_linalg_qr, CFX_OPID_linalg_eigh,
        CFX_OPID_linalg_det,
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cfx_operator op = rows[i];
        if (!CHECK(test_oom_sweep(one_call, &op) > 0))
            printf("    %s\n", cfx_operator_name(op));
    }
}
