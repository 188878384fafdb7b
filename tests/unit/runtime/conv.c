/* conv.c - convolutions: the fast kernels against the plain one, sizes, symbols, memory. */
#include "runtime/runtime_impl.h"

#include <cfx/embed/dim.h>

#include "check.h"
#include "test_alloc.h"

#include <math.h>

typedef struct shape {
    int64_t x[4];
    int64_t w[4];
    int64_t stride, padding, dilation, groups;
    bool transposed;
} shape;

/* Tiles with ends, bands of several rows, slots of strides, depthwise and pointwise ones. */
static const shape shapes[] = {
    {{2, 3, 9, 11}, {5, 3, 3, 3}, 1, 1, 1, 1, false},
    {{1, 3, 40, 37}, {17, 3, 7, 7}, 2, 3, 1, 1, false},
    {{1, 16, 13, 13}, {24, 16, 1, 1}, 1, 0, 1, 1, false},
    {{1, 16, 13, 13}, {24, 16, 1, 1}, 2, 0, 1, 1, false},
    {{2, 8, 70, 5}, {8, 1, 3, 3}, 1, 1, 1, 8, false},
    {{1, 8, 23, 23}, {8, 1, 5, 5}, 2, 2, 1, 8, false},
    {{1, 4, 9, 9}, {8, 1, 3, 3}, 1, 2, 2, 4, false},
    {{1, 12, 10, 10}, {18, 4, 3, 2}, 3, 1, 2, 3, false},
    {{1, 64, 30, 90}, {9, 64, 3, 3}, 1, 1, 1, 1, false},
    {{1, 3, 16, 16}, {10, 3, 4, 4}, 4, 0, 1, 1, false},
    {{2, 6, 7, 5}, {6, 4, 3, 3}, 2, 1, 1, 1, true},
    {{1, 6, 7, 5}, {6, 2, 4, 4}, 3, 0, 2, 2, true},
    {{1, 4, 6, 6}, {4, 1, 2, 2}, 2, 0, 1, 4, true},
};

static cfx_datum filled(const int64_t *sizes, size_t ndim, unsigned seed, const cfx_allocator *a)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, ndim, a, NULL);
    float *to = t ? cfx_tensor_data(t) : NULL;
    for (int64_t i = 0; to && i < cfx_tensor_numel(t); i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    return cfx_datum_tensor(t);
}

/* The convolution of a shape, with a bias; INVALID with *err set. */
static cfx_datum convolve(cfx_runtime *rt, const shape *s, const cfx_allocator *a, cfx_error *err)
{
    int64_t channels = s->transposed ? s->w[1] * s->groups : s->w[0];
    cfx_datum two[5][2];
    const int64_t numbers[] = {s->stride, s->padding, s->dilation, 0};
    cfx_datum args[9] = {filled(s->x, 4, 1, a), filled(s->w, 4, 2, a), filled(&channels, 1, 3, a)};
    for (size_t i = 0; i < 4; i++) {
        two[i][0] = two[i][1] = cfx_datum_int(numbers[i]);
        args[i < 3 ? 3 + i : 7] = cfx_datum_seq(CFX_DATUM_LIST, two[i], 2, a, err);
    }
    args[6] = cfx_datum_bool(s->transposed);
    args[8] = cfx_datum_int(s->groups);
    cfx_datum y = cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    bool made = true;
    for (size_t i = 0; i < 9; i++)
        made = made && args[i].kind != CFX_DATUM_INVALID;
    if (made)
        y = cfx_operator_run(rt, CFX_OPID_convolution, args, 9, err);
    for (size_t i = 0; i < 9; i++)
        cfx_datum_release(args[i]);
    return y;
}

static cfx_runtime *runtime_of(bool reference, cfx_isa isa, const cfx_allocator *a, cfx_error *err)
{
    const cfx_runtime_options o = {.allocator = a, .threads = 2, .reference = reference,
                                   .limit_isa = true, .isa = isa};
    return cfx_runtime_new(&o, err);
}

static double largest_difference(const cfx_tensor *a, const cfx_tensor *b)
{
    const float *p = cfx_tensor_data(a);
    const float *q = cfx_tensor_data(b);
    double most = cfx_tensor_numel(a) == cfx_tensor_numel(b) ? 0 : INFINITY;
    for (int64_t i = 0; i < cfx_tensor_numel(a) && i < cfx_tensor_numel(b); i++)
        most = fmax(most, fabs((double)p[i] - (double)q[i]));
    return most;
}

TEST(fast_agrees_with_plain)
{
    cfx_error err = {0};
    cfx_runtime *plain = runtime_of(true, CFX_ISA_PLAIN, NULL, &err);
    for (int isa = 0; isa < CFX_ISA_COUNT; isa++) {
        cfx_runtime *rt = runtime_of(false, (cfx_isa)isa, NULL, &err);
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            cfx_datum want = convolve(plain, &shapes[i], NULL, &err);
            cfx_datum got = convolve(rt, &shapes[i], NULL, &err);
            REQUIRE(want.kind == CFX_DATUM_TENSOR && got.kind == CFX_DATUM_TENSOR);
            if (!CHECK(largest_difference(want.as.tensor, got.as.tensor) < 2e-4))
                printf("    shape %zu, %s\n", i, cfx_isa_name((cfx_isa)isa));
            cfx_datum_release(want);
            cfx_datum_release(got);
        }
        cfx_runtime_free(rt);
    }
    cfx_runtime_free(plain);
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_of(false, CFX_ISA_PLAIN, a, &err);
    cfx_datum y = cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    if (rt)
        y = convolve(rt, arg, a, &err);
    cfx_status status = y.kind == CFX_DATUM_TENSOR ? CFX_OK : CFX_E_NOMEM;
    cfx_datum_release(y);
    cfx_runtime_free(rt);
    return status;
}

TEST(memory_runs_out)
{
    CHECK(test_oom_sweep(sweep, (void *)&shapes[0]) > 5);
    CHECK(test_oom_sweep(sweep, (void *)&shapes[10]) > 5);
}

TEST(sizes_are_symbols)
{
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    const int64_t x[] = {cfx_dims_symbol(dims, "N", 1, &err), 3,
                         cfx_dims_symbol(dims, "H", 8, &err), 32};
    const int64_t w[] = {6, 3, 3, 3};
    cfx_datum args[] = {
        cfx_datum_tensor(cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, x, 4, NULL, &err)),
        cfx_datum_tensor(cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, w, 4, NULL, &err)),
        cfx_datum_none(), cfx_datum_int(2), cfx_datum_int(1)};
    cfx_datum y = cfx_operator_infer(rt, dims, CFX_OPID_conv2d, args, 5, &err);
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    cfx_datum_print(y, dims, cfx_buffer_sink(&text), NULL);
    CHECK_STR_EQ("float32[N, 6, (H + 1)//2, 16]", text.data);
    cfx_buffer_free(&text);
    cfx_datum_release(y);
    cfx_datum_release(args[0]);
    cfx_datum_release(args[1]);
    cfx_runtime_free(rt);
    cfx_dims_free(dims);
}

/* A stride or an output_padding that is computed when the graph runs may turn out to fit. */
TEST(windows_are_not_known_yet)
{
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    const int64_t x[] = {1, 3, 8, 8};
    const int64_t w[] = {3, 6, 3, 3};
    cfx_datum number = cfx_datum_tensor(cfx_tensor_new_abstract(CFX_DTYPE_INT64, NULL, 0, NULL,
                                                                &err));
    cfx_datum args[] = {
        cfx_datum_tensor(cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, x, 4, NULL, &err)),
        cfx_datum_tensor(cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, w, 4, NULL, &err)),
        cfx_datum_none(), number, cfx_datum_int(1), number};
    cfx_datum y = cfx_operator_infer(rt, dims, CFX_OPID_conv_transpose2d, args, 6, &err);
    CHECK_STR_EQ("", err.message);
    CHECK(y.kind == CFX_DATUM_TENSOR && cfx_tensor_sizes(y.as.tensor)[1] == 6);
    cfx_datum_release(y);
    cfx_datum_release(args[0]);
    cfx_datum_release(args[1]);
    cfx_datum_release(number);
    cfx_runtime_free(rt);
    cfx_dims_free(dims);
}

TEST(channels_must_fit)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    shape s = shapes[0];
    s.w[1] = 4;
    cfx_datum y = convolve(rt, &s, NULL, &err);
    CHECK(y.kind == CFX_DATUM_INVALID && err.status == CFX_E_SHAPE);
    CHECK(strstr(err.message, "to have 4 channels, but got 3 channels instead") != NULL);
    cfx_runtime_free(rt);
}
