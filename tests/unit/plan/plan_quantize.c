/* plan_quantize.c - planned programs with integers: functions that end in integers are one step,
 * layers whose weights are integers have a kernel, and 8-bit images keep their layout. */
#include "plan/plan_impl.h"

#include "plan_fixture.h"

#define CALL(name, op, ...) "  %" name " = call_function[target=cfx.ops." op "](" __VA_ARGS__ ")\n"
#define HEAD "graph():\n  %x = placeholder[target=x]()\n"
#define QUANTIZE(name, x)                                                                          \
    CALL(name, "quantize_per_tensor", x ", 0.02, 100, 0, 255, torch.uint8")
#define DEQUANTIZE(name, x)                                                                        \
    CALL(name, "dequantize_per_tensor", x ", 0.02, 100, 0, 255, torch.uint8")
#define OUTPUT(y) "  output(" y ")\n"

static size_t steps_of(const char *text, const int64_t *sizes, size_t ndim)
{
    return check_plan(text, NULL, sizes, ndim);
}

TEST(functions_that_end_in_integers)
{
    static const int64_t sizes[] = {3, 40, 37};
    CHECK_INT_EQ(1, steps_of(HEAD CALL("g", "gelu", "%x") QUANTIZE("q", "%g") OUTPUT("%q"), sizes,
                             3));
    CHECK_INT_EQ(1, steps_of(HEAD CALL("a", "mul", "%x, 3.0") CALL("g", "gelu", "%a")
                                 CALL("b", "add", "%g, %x") QUANTIZE("q", "%b") OUTPUT("%q"),
                             sizes, 3));
    /* as it lies elsewhere */
    CHECK_INT_EQ(1, steps_of(HEAD CALL("t", "transpose", "%x, 0, 2") CALL("g", "gelu", "%t")
                                 QUANTIZE("q", "%g") OUTPUT("%q"), sizes, 3));
    /* int8; and the range of a relu */
    CHECK_INT_EQ(1, steps_of(HEAD CALL("g", "tanh", "%x")
                                 CALL("q", "quantize_per_tensor",
                                      "%g, 0.01, -3, -3, 127, torch.int8") OUTPUT("%q"),
                             sizes, 3));
}

TEST(functions_that_others_read)
{
    static const int64_t sizes[] = {3, 40, 37};
    CHECK_INT_EQ(2, steps_of(HEAD CALL("g", "gelu", "%x") QUANTIZE("q", "%g") OUTPUT("(%q, %g)"),
                             sizes, 3));
    CHECK_INT_EQ(3, steps_of(HEAD CALL("g", "gelu", "%x") QUANTIZE("q", "%g")
                                 CALL("r", "quantize_per_tensor",
                                      "%g, 0.5, 0, -128, 127, torch.int8") OUTPUT("(%q, %r)"),
                             sizes, 3));
    /* of a part; into more than 8 bits */
    CHECK_INT_EQ(2, steps_of(HEAD CALL("g", "gelu", "%x") CALL("s", "select", "%g, 1, 2")
                                 QUANTIZE("q", "%s") OUTPUT("%q"), sizes, 3));
    CHECK_INT_EQ(3, steps_of(HEAD CALL("g", "gelu", "%x")
                                 CALL("q", "quantize_per_tensor",
                                      "%g, 0.01, 0, -32768, 32767, torch.int16")
                                 CALL("d", "dequantize_per_tensor",
                                      "%q, 0.01, 0, -32768, 32767, torch.int16") OUTPUT("%d"),
                             sizes, 3));
}

/* Bytes from `least` on, `count` different ones. */
static void add_bytes(cfx_state *s, const char *name, cfx_dtype dtype, int64_t rows,
                      int64_t columns, int64_t least, int64_t count)
{
    const int64_t sizes[] = {rows, columns};
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, 2, NULL, NULL);
    uint8_t *data = cfx_tensor_data(t);
    for (int64_t i = 0; i < rows * columns; i++)
        data[i] = (uint8_t)(least + (i * 37 + i / 11) % count);
    CHECK_INT_EQ(CFX_OK, cfx_state_set(s, name, t, NULL));
    cfx_tensor_release(t);
}

static void add_zeros(cfx_state *s, int64_t count, int64_t zero)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_INT64, &count, 1, NULL, NULL);
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)cfx_tensor_data(t))[i] = zero - i % 3;
    CHECK_INT_EQ(CFX_OK, cfx_state_set(s, "z", t, NULL));
    cfx_tensor_release(t);
}

#define WEIGHTS                                                                                    \
    HEAD "  %w = get_attr[target=w]()\n  %s = get_attr[target=s]()\n"                              \
         "  %z = get_attr[target=z]()\n  %b = get_attr[target=b]()\n"

/* With what precedes and follows them, of few rows and of many. */
TEST(layers_whose_weights_alone_are_integers)
{
    for (int64_t rows = 1; rows < 200; rows *= 14) {
        const int64_t sizes[] = {1, rows, 45};
        cfx_state *weights = cfx_state_new(NULL, NULL);
        add_bytes(weights, "w", CFX_DTYPE_UINT8, 70, 23, 0, 256);
        WEIGHT(weights, "s", 70, 3);
        add_bytes(weights, "z", CFX_DTYPE_INT8, 70, 3, -8, 16);
        WEIGHT(weights, "b", 70);
        CHECK_INT_EQ(1, check_plan(WEIGHTS CALL("l", "weight_linear",
                                                "%x, %w, %s, None, %b, 20, 45") OUTPUT("%l"),
                                   weights, sizes, 3));
        CHECK_INT_EQ(1, check_plan(WEIGHTS CALL("l", "weight_linear",
                                                "%x, %w, %s, %z, %b, 20, 45")
                                       CALL("g", "gelu", "%l") CALL("c", "add", "%g, %l")
                                           CALL("d", "mul", "%c, %c") OUTPUT("%d"),
                                   weights, sizes, 3));
        cfx_state_free(weights);
        weights = cfx_state_new(NULL, NULL);
        add_bytes(weights, "w", CFX_DTYPE_INT8, 33, 45, -9, 20);
        WEIGHT(weights, "s", 33);
        add_bytes(weights, "z", CFX_DTYPE_INT8, 33, 1, 0, 1);
        WEIGHT(weights, "b", 33);
        CHECK_INT_EQ(2, check_plan(WEIGHTS CALL("g", "gelu", "%x")
                                       CALL("l", "weight_linear", "%g, %w, %s, None, None, 0, 0")
                                           CALL("d", "add", "%l, %b") OUTPUT("%d"),
                                   weights, sizes, 3));
        cfx_state_free(weights);
    }
}

/* A file may say any number. */
TEST(groups_longer_than_a_row)
{
    const int64_t sizes[] = {2, 45};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    add_bytes(weights, "w", CFX_DTYPE_INT8, 33, 45, -9, 20);
    WEIGHT(weights, "s", 33, 1);
    add_bytes(weights, "z", CFX_DTYPE_INT8, 33, 1, 0, 1);
    WEIGHT(weights, "b", 33);
    CHECK_INT_EQ(1, check_plan(WEIGHTS CALL("l", "weight_linear", "%x, %w, %s, %z, %b, "
                                            "9223372036854775807, 0") OUTPUT("%l"),
                               weights, sizes, 2));
    cfx_state_free(weights);
}

/* A program on a runtime, planned or not, of one input. */
static cfx_datum run_on(const cfx_runtime_options *o, const char *text, const cfx_state *weights,
                        bool planned, cfx_datum x)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(o, &err);
    cfx_program *p = program_of(text, weights, NULL, &err);
    if (planned)
        CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    const cfx_datum y = cfx_program_run(p, rt, &x, 1, &err);
    CHECK_STR_EQ("", err.message);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return y;
}

/* Each bit is that of the reference, on each instruction set, with one thread and with three. */
static void check_bits(const char *text, const cfx_state *weights, cfx_datum x)
{
    const cfx_runtime_options plain = {.reference = true};
    const cfx_datum want = run_on(&plain, text, weights, false, x);
    REQUIRE(want.kind == CFX_DATUM_TENSOR);
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++)
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            const cfx_runtime_options o = {.threads = threads, .limit_isa = true,
                                           .isa = (cfx_isa)isa};
            const cfx_datum got = run_on(&o, text, weights, true, x);
            bool same = got.kind == CFX_DATUM_TENSOR;
            const float *a = cfx_tensor_data(want.as.tensor);
            const float *b = same ? cfx_tensor_data(got.as.tensor) : NULL;
            for (int64_t i = 0; same && i < cfx_tensor_numel(want.as.tensor); i++)
                same = isnan(a[i]) ? isnan(b[i]) : memcmp(&a[i], &b[i], sizeof *a) == 0;
            CHECK(same);
            cfx_datum_release(got);
        }
    cfx_datum_release(want);
}

TEST(inputs_that_become_integers_in_each_run)
{
    static const char *const calls[] = {
        WEIGHTS CALL("d", "dynamic_linear", "%x, %w, %s, None, %b, 0, 255, 1e-7") OUTPUT("%d"),
        WEIGHTS CALL("d", "dynamic_linear", "%x, %w, %s, %z, None, -128, 127, 1e-7") OUTPUT("%d"),
        WEIGHTS CALL("d", "dynamic_linear", "%x, %w, %s, %z, %b, 0, 127, 0.05") OUTPUT("%d"),
    };
    const float special[] = {0, NAN, -INFINITY, 1e30f, -50};
    for (int i = 0; i < 24; i++) {
        const int64_t sizes[] = {2, 1 + i * 3 % 11, 1 + i * 37 % 150};
        const int64_t columns = 1 + i * 29 % 90;
        const bool positive = i % 3 == 1;
        cfx_state *weights = cfx_state_new(NULL, NULL);
        add_bytes(weights, "w", positive ? CFX_DTYPE_UINT8 : CFX_DTYPE_INT8, columns, sizes[2],
                  positive ? 0 : -128, 256);
        add_zeros(weights, columns, positive ? 255 : 3);
        WEIGHT(weights, "s", columns);
        WEIGHT(weights, "b", columns);
        cfx_tensor *x = random_tensor(sizes, 3, i % 7 == 6);
        if (i % 5)
            *(float *)cfx_tensor_data(x) = special[i % 5];
        check_bits(calls[i % 3], weights, cfx_datum_tensor(x));
        if (i % 5 != 1 && i % 5 != 2)
            CHECK_INT_EQ(1, check_plan(calls[i % 3], weights, sizes, 3));
        cfx_tensor_release(x);
        cfx_state_free(weights);
    }
}

TEST(images)
{
    static const int64_t sizes[] = {2, 3, 12, 12};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 24, 3, 3, 3);
    const char *text =
        HEAD "  %w = get_attr[target=w]()\n"
        CALL("c", "conv2d", "%x, %w") QUANTIZE("q", "%c")
        CALL("m", "max_pool2d", "%q, 3, 2, 1")
        CALL("p", "integer_avg_pool", "%q, 0.02, 100, [2, 2], [2, 2], [0, 0], False, True, None, "
             "0.03, 90, 0, 255, torch.uint8")
        CALL("a", "integer_add", "%m, 0.02, 100, %p, 0.03, 90, 0.04, -5, -128, 127, torch.int8")
        CALL("b", "integer_mul", "%a, 0.04, -5, %a, 0.04, -5, 0.02, 100, 0, 255, torch.uint8")
        CALL("v", "integer_mean", "%b, 0.02, 100, [2, 3], True, 0.01, 3, 0, 255, torch.uint8")
        DEQUANTIZE("d", "%b") OUTPUT("(%m, %a, %v, %d)");
    CHECK_INT_EQ(11, check_plan(text, weights, sizes, 4));  /* 3 of them turn results back */
    cfx_state_free(weights);
}
