/* library_call.c - operators of one's own that compute: arguments, results, what rules and kernels
 * may do wrong, threads. */
#include "check.h"
#include "test_alloc.h"
#include "dim/dim_impl.h"
#include "runtime/library_rows.h"
#include "runtime/runtime_impl.h"

#include <cfx/cfx.h>
#include <math.h>
#include <pthread.h>

/* ---- some operators ------------------------------------------------------------------------ */

static cfx_status like_x(cfx_kernel_call *c) { return cfx_kernel_describe_like(c, 0, 0); }

typedef struct swish_job {
    const float *x;
    float *y;
    double beta;
} swish_job;

static void swish_range(void *ctx, int64_t begin, int64_t end)
{
    const swish_job *job = ctx;
    for (int64_t i = begin; i < end; i++)
        job->y[i] = (float)(job->x[i] / (1 + exp(-job->beta * job->x[i])));
}

static cfx_status swish(cfx_kernel_call *c)
{
    cfx_tensor *x = cfx_kernel_dense(c, 0, CFX_DTYPE_FLOAT32);
    cfx_tensor *y = x ? cfx_kernel_result(c, 0) : NULL;
    if (y) {
        swish_job job = {cfx_tensor_data(x), cfx_tensor_data(y), cfx_kernel_arg(c, 1).as.f};
        cfx_runtime_parallel(cfx_kernel_runtime(c), cfx_tensor_numel(x), 64, swish_range, &job);
    }
    cfx_tensor_release(x);
    return CFX_OK;  /* what failed is known already */
}

/* x[0] += 1, where it stands. */
static cfx_status bump(cfx_kernel_call *c)
{
    ++*(float *)cfx_tensor_data(cfx_kernel_result(c, 0));
    return CFX_OK;
}

static cfx_status no_rule(cfx_kernel_call *c)
{
    (void)c;
    return CFX_OK;
}

/* The elements that are greater than nothing: only the kernel knows how many. */
static cfx_status positive_infer(cfx_kernel_call *c)
{
    const int64_t unknown = cfx_kernel_dims(c)
                                ? cfxi_dim_fresh(cfx_kernel_dims(c), cfx_kernel_error(c))
                                : CFX_DIM_UNKNOWN;
    const cfx_tensor *x = cfx_kernel_tensor(c, 0);
    if (cfx_tensor_ndim(x) != 1)
        return cfx_kernel_fail(c, CFX_E_SHAPE, "it wants a vector");
    cfx_kernel_set(c, 1, cfx_datum_int(0));
    return cfx_kernel_describe(c, 0, CFX_DTYPE_FLOAT32, &unknown, 1);
}

static cfx_status positive(cfx_kernel_call *c)
{
    cfx_tensor *x = cfx_kernel_dense(c, 0, CFX_DTYPE_FLOAT32);
    const float *from = x ? cfx_tensor_data(x) : NULL;
    int64_t n = 0;
    for (int64_t i = 0; x && i < cfx_tensor_numel(x); i++)
        n += from[i] > 0;
    cfx_kernel_describe(c, 0, CFX_DTYPE_FLOAT32, &n, 1);
    cfx_tensor *y = cfx_kernel_result(c, 0);
    float *to = y ? cfx_tensor_data(y) : NULL;
    for (int64_t i = 0; y && x && i < cfx_tensor_numel(x); i++)
        if (from[i] > 0)
            *to++ = from[i];
    cfx_tensor_release(x);
    return cfx_kernel_set(c, 1, cfx_datum_int(n));
}

/* The first half, as a view. */
static cfx_status half_infer(cfx_kernel_call *c)
{
    cfx_error *err = cfx_kernel_error(c);
    const cfx_tensor *x = cfx_kernel_tensor(c, 0);
    const int64_t n = cfx_dim_div(cfx_kernel_dims(c), cfx_tensor_sizes(x)[0], 2, err);
    return cfx_kernel_describe(c, 0, cfx_tensor_dtype(x), &n, 1);
}

static cfx_status half(cfx_kernel_call *c)
{
    cfx_tensor *x = cfx_kernel_tensor(c, 0);
    const int64_t n = cfx_tensor_sizes(x)[0] / 2;
    return cfx_kernel_set(c, 0, cfx_datum_tensor(cfx_tensor_view(
        x, cfx_tensor_dtype(x), &n, cfx_tensor_strides(x), 1, 0, cfx_kernel_error(c))));
}

/* Of other operators: relu(x) * scale, and noise. */
static cfx_status composed(cfx_kernel_call *c)
{
    cfx_runtime *rt = cfx_kernel_runtime(c);
    const cfx_datum x = cfx_kernel_arg(c, 0);
    const cfx_draws r = cfx_runtime_draw(rt, 2);
    if (!(cfx_draws_uniform(r, 0) >= 0) || cfx_draws_uniform(r, 0) >= 1 ||
        !isfinite(cfx_draws_normal(r, 1)) || cfx_draws_bits(r, 0) == cfx_draws_bits(r, 1))
        return cfx_kernel_fail(c, CFX_E_VALUE, "these are no random numbers");
    cfx_datum relu = cfx_operator_run(rt, CFX_OPID_relu, &x, 1, cfx_kernel_error(c));
    const cfx_datum args[] = {relu, cfx_datum_float(*(double *)cfx_kernel_context(c))};
    cfx_datum y = cfx_operator_run(rt, CFX_OPID_mul, args, 2, cfx_kernel_error(c));
    cfx_datum_release(relu);
    return cfx_kernel_set(c, 0, y);
}

/* ---- and some that are wrong --------------------------------------------------------------- */

static cfx_status fails(cfx_kernel_call *c)
{
    return cfx_kernel_fail(c, CFX_E_VALUE, "the sky is %s", "blue");
}

static cfx_status fails_silently(cfx_kernel_call *c)
{
    (void)c;
    return CFX_E_LIMIT;
}

static cfx_status wrong_type(cfx_kernel_call *c)
{
    return cfx_kernel_set(c, 0, cfx_datum_int(1));
}

static cfx_status wrong_size(cfx_kernel_call *c)
{
    const int64_t n = 5;
    cfx_kernel_describe(c, 0, CFX_DTYPE_FLOAT32, &n, 1);
    return cfx_kernel_result(c, 0) ? CFX_OK : CFX_E_NOMEM;
}

static cfx_status too_many(cfx_kernel_call *c)
{
    cfx_tensor *x = cfx_tensor_retain(cfx_kernel_tensor(c, 0));
    return cfx_kernel_set(c, 1, cfx_datum_tensor(x));
}

static cfx_status asks_too_much(cfx_kernel_call *c)
{
    return cfx_kernel_result(c, 7) ? CFX_OK : cfx_kernel_error(c)->status;
}

static cfx_status memory_in_rule(cfx_kernel_call *c)
{
    cfx_kernel_describe_like(c, 0, 0);
    return cfx_kernel_result(c, 0) ? CFX_OK : cfx_kernel_error(c)->status;
}

static cfx_status quantized(cfx_kernel_call *c)
{
    return cfx_kernel_describe(c, 0, CFX_DTYPE_QINT8, NULL, 0);
}

static double scale = 2;

static const cfx_custom_operator rows[] = {
    {"t.swish", "(Tensor x, float beta=1.0) -> Tensor", 0, like_x, swish, NULL, NULL},
    {"t.bump_", "(Tensor(a!) x) -> Tensor(a!)", 0, no_rule, bump, NULL, NULL},
    {"t.positive", "(Tensor x) -> (Tensor, int)", 0, positive_infer, positive, NULL, NULL},
    {"t.half", "(Tensor(a) x) -> Tensor(a)", 0, half_infer, half, NULL, NULL},
    {"t.composed", "(Tensor x, float? eps) -> Tensor", CFX_OPERATOR_RANDOM, like_x, composed,
     &scale, NULL},
    {"t.nothing", "(Tensor x) -> ()", CFX_OPERATOR_CHECKS, no_rule, no_rule, NULL, NULL},
    {"t.fails", "(Tensor x, int[2] size=1) -> Tensor", 0, like_x, fails, NULL, NULL},
    {"t.silent", "(Tensor x) -> Tensor", 0, like_x, fails_silently, NULL, NULL},
    {"t.forgets", "(Tensor x) -> Tensor", 0, like_x, no_rule, NULL, NULL},
    {"t.no_rule", "(Tensor x) -> Tensor", 0, no_rule, swish, NULL, NULL},
    {"t.null_rule", "(Tensor x, float b=1) -> Tensor", 0, NULL, swish, NULL, NULL},
    {"t.null_kernel", "(Tensor x) -> Tensor", 0, like_x, NULL, NULL, NULL},
    {"t.wrong_type", "(Tensor x) -> Tensor", 0, like_x, wrong_type, NULL, NULL},
    {"t.wrong_size", "(Tensor x) -> Tensor", 0, like_x, wrong_size, NULL, NULL},
    {"t.too_many", "(Tensor x) -> Tensor", 0, like_x, too_many, NULL, NULL},
    {"t.too_much", "(Tensor x) -> Tensor", 0, like_x, asks_too_much, NULL, NULL},
    {"t.early", "(Tensor x) -> Tensor", 0, memory_in_rule, swish, NULL, NULL},
    {"t.quantized", "(Tensor x) -> Tensor", 0, quantized, swish, NULL, NULL},
};
enum { NUM_ROWS = sizeof rows / sizeof *rows };

/* ---- calling ------------------------------------------------------------------------------- */

static cfx_datum vector(float *data, int64_t n, bool read_only)
{
    return cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &n, NULL, 1, data, read_only,
                                                   NULL, NULL, NULL, NULL));
}

static cfx_runtime *runtime(const cfx_allocator *a, unsigned threads, cfx_error *err)
{
    cfx_library *lib = cfx_library_new(rows, NUM_ROWS, NULL, a, err);
    const cfx_runtime_options options = {.allocator = a, .threads = threads, .library = lib};
    cfx_runtime *rt = lib ? cfx_runtime_new(&options, err) : NULL;
    cfx_library_release(lib);  /* the runtime has it */
    return rt;
}

static cfx_datum run1(cfx_runtime *rt, const char *name, cfx_datum x, cfx_error *err)
{
    return cfx_operator_run_named(rt, name, &x, 1, err);
}

TEST(an_operator_computes)
{
    cfx_error err = {0};
    float data[] = {-1, 0, 2};
    cfx_runtime *rt = runtime(NULL, 2, &err);
    REQUIRE(rt);
    CHECK(cfxi_rt_library_get(cfxi_rt_library(rt), "t.swish"));
    const cfx_datum args[] = {vector(data, 3, true), cfx_datum_int(2)};  /* an int for a float */
    cfx_datum y = cfx_operator_run_named(rt, "t.swish", args, 2, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK(fabs(((float *)cfx_tensor_data(y.as.tensor))[2] - 2 / (1 + exp(-4.0))) < 1e-6);
    cfx_datum_release(y);
    cfx_datum number = run1(rt, "t.swish", cfx_datum_float(0), &err);  /* is wrapped, of float64 */
    CHECK_STR_EQ("", err.message);
    CHECK(number.kind == CFX_DATUM_TENSOR);
    cfx_datum_release(number);
    cfx_datum_release(args[0]);
    cfx_runtime_free(rt);
}

TEST(results_of_all_kinds)
{
    cfx_error err = {0};
    float data[] = {1, -2, 3, 4};
    size_t n;
    cfx_runtime *rt = runtime(NULL, 1, &err);
    REQUIRE(rt);
    cfx_datum x = vector(data, 4, false);
    cfx_datum same = run1(rt, "t.bump_", x, &err);
    CHECK(same.as.tensor == x.as.tensor && data[0] == 2);
    cfx_datum some = run1(rt, "t.positive", x, &err);
    REQUIRE(some.kind == CFX_DATUM_TUPLE);
    const cfx_datum *items = cfx_datum_items(some, &n);
    CHECK_INT_EQ(3, cfx_tensor_numel(items[0].as.tensor));
    CHECK_INT_EQ(3, items[1].as.i);
    cfx_datum view = run1(rt, "t.half", x, &err);
    REQUIRE(view.kind == CFX_DATUM_TENSOR);
    CHECK(cfx_tensor_data(view.as.tensor) == data && cfx_tensor_numel(view.as.tensor) == 2);
    cfx_datum y = run1(rt, "t.composed", x, &err);
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK(((float *)cfx_tensor_data(y.as.tensor))[2] == 6);
    CHECK(run1(rt, "t.nothing", x, &err).kind == CFX_DATUM_NONE);
    CHECK_STR_EQ("", err.message);
    cfx_datum_release(y);
    cfx_datum_release(view);
    cfx_datum_release(some);
    cfx_datum_release(same);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

static void expect_error(cfx_runtime *rt, const char *name, cfx_datum x, cfx_status status,
                         const char *message)
{
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_DATUM_INVALID, run1(rt, name, x, &err).kind);
    CHECK_INT_EQ(status, err.status);
    CHECK_STR_EQ(message, err.message);
    CHECK_INT_EQ(CFX_DATUM_INVALID, run1(rt, name, x, NULL).kind);
}

TEST(what_goes_wrong_is_said)
{
    cfx_error err = {0};
    float data[] = {1, 2};
    const int64_t two = 2;
    const int64_t none = 0;
    cfx_runtime *rt = runtime(NULL, 1, &err);
    REQUIRE(rt);
    cfx_datum x = vector(data, 2, false);
    cfx_datum fixed = vector(data, 2, true);
    cfx_datum once = cfx_datum_tensor(cfx_tensor_view(x.as.tensor, CFX_DTYPE_FLOAT32, &two, &none,
                                                      1, 0, &err));
    expect_error(rt, "t.fails", x, CFX_E_VALUE, "t.fails(float32[2]): the sky is blue");
    expect_error(rt, "t.silent", x, CFX_E_LIMIT,
                 "t.silent(float32[2]): a limit on size or nesting is exceeded");
    expect_error(rt, "t.forgets", x, CFX_E_VALUE,
                 "t.forgets(float32[2]): its kernel did not set result 0");
    expect_error(rt, "t.no_rule", x, CFX_E_VALUE,
                 "t.no_rule(float32[2]): its infer function did not set result 0");
    expect_error(rt, "t.null_rule", x, CFX_E_VALUE,
                 "t.null_rule(float32[2]): result 0 has not been described as a tensor; call "
                 "cfx_kernel_describe first");
    expect_error(rt, "t.null_kernel", x, CFX_E_UNSUPPORTED, "t.null_kernel(float32[2]): it has no "
                 "kernel");
    expect_error(
        rt, "t.wrong_type", x, CFX_E_TYPE,
        "t.wrong_type(float32[2]): its kernel set result 0 to a int, but its schema says Tensor");
    expect_error(rt, "t.wrong_size", x, CFX_E_SHAPE,
                 "t.wrong_size(float32[2]): its kernel set result 0 to float32[5], but its infer "
                 "function says float32[2]");
    expect_error(rt, "t.too_many", x, CFX_E_INDEX,
                 "t.too_many(float32[2]): the operator has 1 result(s); index 1 is out of range");
    expect_error(rt, "t.too_much", x, CFX_E_INDEX,
                 "t.too_much(float32[2]): the operator has 1 result(s); index 7 is out of range");
    expect_error(rt, "t.early", x, CFX_E_VALUE,
                 "t.early(float32[2]): an infer function has no memory for result 0");
    expect_error(rt, "t.quantized", x, CFX_E_TYPE,
                 "t.quantized(float32[2]): result 0 would have the dtype qint8, which cfx cannot "
                 "compute with");
    expect_error(rt, "t.bump_", fixed, CFX_E_VALUE,
                 "t.bump_(float32[2]): cannot write to a tensor whose memory is read-only");
    expect_error(rt, "t.bump_", cfx_datum_int(1), CFX_E_TYPE,
                 "t.bump_(int64[]): argument 'x' is a number and cannot be written to");
    expect_error(rt, "t.bump_", once, CFX_E_SHAPE, "t.bump_(float32[2]): unsupported operation: "
                 "more than one element of the written-to tensor refers to a single memory "
                 "location");
    expect_error(rt, "t.swish", cfx_datum_none(), CFX_E_TYPE,
                 "t.swish(): argument 'x' must be Tensor, not "
                 "None");
    expect_error(rt, "t.other", x, CFX_E_KEY, "the runtime's library has no operator 't.other'");
    cfx_datum_release(once);
    cfx_datum_release(fixed);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

TEST(without_a_library_there_is_nothing_to_call)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    CHECK(!cfxi_rt_library(rt));
    CHECK(cfx_runtime_allocator(rt) != NULL);
    expect_error(rt, "t.swish", cfx_datum_int(1), CFX_E_KEY, "the runtime has no library with an "
                 "operator 't.swish' (cfx_runtime_options.library)");
    cfx_runtime_free(rt);
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_operator_run_named(NULL, "t.swish", NULL, 0, NULL).kind);
}

/* ---- shapes -------------------------------------------------------------------------------- */

static void expect_shape(cfx_runtime *rt, const char *name, const char *input, const char *want)
{
    cfx_error err = {0};
    cfx_buffer text;
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    cfx_datum x = cfx_datum_parse(dims, input, strlen(input), NULL, &err);
    cfx_datum y = cfx_operator_infer_named(rt, dims, name, &x, 1, &err);
    cfx_buffer_init(&text, NULL);
    if (y.kind != CFX_DATUM_INVALID)
        cfx_datum_print(y, dims, cfx_buffer_sink(&text), &err);
    CHECK_STR_EQ(want, y.kind == CFX_DATUM_INVALID ? err.message : text.data);
    cfx_buffer_free(&text);
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_dims_free(dims);
}

TEST(shapes_propagate)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime(NULL, 1, &err);
    REQUIRE(rt);
    expect_shape(rt, "t.swish", "float32[N, 3]", "float32[N, 3]");
    expect_shape(rt, "t.half", "float64[2*N]", "float64[N]");
    expect_shape(rt, "t.positive", "float32[N]", "(float32[u0], 0)");
    expect_shape(rt, "t.positive", "float32[N, N]", "t.positive(float32[N, N]): it wants a vector");
    expect_shape(rt, "t.bump_", "float32[N]", "float32[N]");
    expect_shape(rt, "t.null_kernel", "float32[N]", "float32[N]");
    expect_shape(rt, "t.null_rule", "float32[N]",
                 "t.null_rule(float32[N]): it has no infer function");
    cfx_runtime_free(rt);
}

/* ---- memory and threads -------------------------------------------------------------------- */

static cfx_status call_all(const cfx_allocator *a, void *arg)
{
    static const char *const names[] = {"t.swish", "t.bump_", "t.positive", "t.half", "t.composed",
                                        "t.nothing"};
    cfx_error err = {0};
    float data[] = {1, 2, 3, 4};
    const int64_t sizes[] = {2};
    const int64_t strides[] = {2 * sizeof(float)};  /* so that dense copies */
    (void)arg;
    cfx_runtime *rt = runtime(a, 1, &err);
    cfx_datum x = cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, strides, 1,
                                                          data, false, NULL, NULL, NULL, NULL));
    for (size_t i = 0; rt && err.status == CFX_OK && i < sizeof names / sizeof *names; i++)
        cfx_datum_release(run1(rt, names[i], x, &err));
    cfx_datum_release(x);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(memory_runs_out)
{
    CHECK(test_oom_sweep(call_all, NULL) > 10);
}

enum { ROUNDS = 100, LENGTH = 1000 };

typedef struct worker {
    const cfx_library *lib;
    bool good;
} worker;

static void *work(void *ctx)
{
    worker *w = ctx;
    static float data[LENGTH];
    const cfx_runtime_options options = {.threads = 2, .library = w->lib};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    w->good = rt != NULL;
    cfx_datum x = vector(data, LENGTH, true);
    for (int i = 0; w->good && i < ROUNDS; i++) {
        cfx_datum y = run1(rt, i % 2 ? "t.swish" : "t.composed", x, NULL);
        w->good = y.kind == CFX_DATUM_TENSOR && *(float *)cfx_tensor_data(y.as.tensor) == 0;
        cfx_datum_release(y);
        cfx_library_release(cfx_library_retain(w->lib));
    }
    cfx_datum_release(x);
    cfx_runtime_free(rt);
    return NULL;
}

TEST(two_threads_share_a_library)
{
    cfx_library *lib = cfx_library_new(rows, NUM_ROWS, NULL, NULL, NULL);
    worker workers[2] = {{lib, false}, {lib, false}};
    pthread_t threads[2];
    REQUIRE(lib);
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK(workers[i].good);
    }
    cfx_library_release(lib);
}
