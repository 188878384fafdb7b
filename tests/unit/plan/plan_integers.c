/* plan_integers.c - programs of integers, planned, against the interpreter: bit by bit. Which steps
 * become one, layouts of images, every instruction set, memory that runs out. */
#include "plan/plan_impl.h"

#include "plan_fixture.h"
#include "test_alloc.h"

/* ---- weights ------------------------------------------------------------------------------- */

typedef struct weight {
    const char *name;
    cfx_dtype dtype;
    int64_t sizes[4];  /* up to the first 0 */
} weight;

static cfx_tensor *tensor_of(cfx_dtype dtype, const int64_t *sizes, size_t ndim)
{
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, ndim, NULL, NULL);
    for (int64_t i = 0; i < cfx_tensor_numel(t); i++) {
        if (dtype == CFX_DTYPE_FLOAT32)
            ((float *)cfx_tensor_data(t))[i] = 0.002f + fabsf(number()) / 100;
        else if (dtype == CFX_DTYPE_INT64)
            ((int64_t *)cfx_tensor_data(t))[i] = (int64_t)(number() * 100);
        else
            ((int8_t *)cfx_tensor_data(t))[i] = (int8_t)(int)(number() * 127);
    }
    return t;
}

static cfx_state *state_of(const weight *all, size_t n)
{
    cfx_state *s = cfx_state_new(NULL, NULL);
    for (size_t i = 0; i < n; i++) {
        size_t ndim = 0;
        while (ndim < 4 && all[i].sizes[ndim])
            ndim++;
        cfx_tensor *t = tensor_of(all[i].dtype, all[i].sizes, ndim);
        cfx_state_set(s, all[i].name, t, NULL);
        cfx_tensor_release(t);
    }
    return s;
}
#define STATE(all) state_of(all, sizeof all / sizeof *all)

/* ---- running ------------------------------------------------------------------------------- */

static bool same_bits(const cfx_tensor *a, const cfx_tensor *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->size, b->size, a->ndim * sizeof *a->size) == 0 &&
           memcmp(a->stride, b->stride, a->ndim * sizeof *a->stride) == 0 &&
           memcmp(a->data, b->data,
                  (size_t)cfxi_tensor_numel(a) * cfxi_tensor_itemsize(a)) == 0;
}

static size_t count_text(const cfx_program *p, const char *what)
{
    cfx_buffer text;
    size_t count = 0;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_program_print_plans(p, cfx_buffer_sink(&text), NULL));
    for (const char *at = text.data; at && (at = strstr(at, what)) != NULL; at++)
        count++;
    cfx_buffer_free(&text);
    return count;
}

/* Runs `text` interpreted and compiled, twice, with this instruction set; returns how many kernels
 * of integers the plan has. */
static size_t check_with(const char *text, const cfx_state *weights, const int64_t *sizes,
                         size_t ndim, const cfx_runtime_options *options)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(options, &err);
    cfx_runtime *plain_rt = cfx_runtime_new(&(cfx_runtime_options){.reference = true}, &err);
    cfx_program *plain = program_of(text, weights, NULL, &err);
    cfx_program *p = program_of(text, weights, NULL, &err);
    CHECK_STR_EQ("", err.message);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    for (int run = 0; p && run < 2; run++) {
        const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, ndim, false));
        const cfx_datum want = cfx_program_run(plain, plain_rt, &x, 1, &err);
        const cfx_datum got = cfx_program_run(p, rt, &x, 1, &err);
        CHECK_STR_EQ("", err.message);
        if (CHECK(want.kind == CFX_DATUM_TENSOR && got.kind == CFX_DATUM_TENSOR))
            CHECK(same_bits(want.as.tensor, got.as.tensor));
        cfx_datum_release(want);
        cfx_datum_release(got);
        cfx_datum_release(x);
    }
    const size_t kernels = count_text(p, " integer ");
    cfx_program_free(p);
    cfx_program_free(plain);
    cfx_runtime_free(rt);
    cfx_runtime_free(plain_rt);
    return kernels;
}

/* On every instruction set of the machine; `kernels` are those that each plan has. */
static void check_everywhere(const char *text, const cfx_state *weights, const int64_t *sizes,
                             size_t ndim, size_t kernels)
{
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        const cfx_runtime_options options = {.threads = 2, .limit_isa = true,
                                             .isa = (cfx_isa)isa};
        if (cfxi_rt_isa_at_most((cfx_isa)isa) == (cfx_isa)isa)
            CHECK_INT_EQ((long long)kernels,
                         (long long)check_with(text, weights, sizes, ndim, &options));
    }
}

/* ---- programs ------------------------------------------------------------------------------ */

#define QUANTIZE(to, from)                                                                         \
    "  %" to " = call_function[target=cfx.ops.quantize_per_tensor]"                                \
    "(%" from ", 0.01, 117, 0, 255, torch.uint8)\n"
#define GET(name) "  %" name " = get_attr[target=" name "]()\n"

static const char linear[] =
    "graph():\n  %x = placeholder[target=x]()\n"
    GET("w") GET("s") GET("z") GET("b") GET("w2") GET("s2")
    QUANTIZE("q", "x")
    "  %a = call_function[target=cfx.ops.integer_linear](%q, 0.01, 117, %w, %s, None, %b, "
    "0.05, 3, 3, 255, torch.uint8)\n"
    "  %y = call_function[target=cfx.ops.integer_linear](%a, 0.05, 3, %w2, %s2, %z, None, "
    "1.0, 0, 0, 255, torch.float32)\n"
    "  %g = call_function[target=cfx.ops.relu](%y)\n"
    "  output(%g)\n";

TEST(linear_layers)
{
    const weight all[] = {{"w", CFX_DTYPE_INT8, {37, 19}}, {"s", CFX_DTYPE_FLOAT32, {37}},
                          {"b", CFX_DTYPE_FLOAT32, {37}},  {"w2", CFX_DTYPE_INT8, {5, 37}},
                          {"s2", CFX_DTYPE_FLOAT32, {1}},  {"z", CFX_DTYPE_INT64, {5}}};
    cfx_state *weights = STATE(all);
    check_everywhere(linear, weights, (const int64_t[]){3, 4, 19}, 3, 2);
    check_everywhere(linear, weights, (const int64_t[]){19}, 1, 2);
    cfx_state_free(weights);
}

/* A residual block: its sum becomes a part of the second convolution, the first operand of one and
 * the second of another. */
#define CONV(to, from, w, zero, more)                                                              \
    "  %" to " = call_function[target=cfx.ops.integer_conv](%" from ", 0.01, " zero ", %" w        \
    ", %s, None, %b, " more ", 0.02, 9, 9, 255, torch.uint8)\n"
#define SUM(to, a, b)                                                                              \
    "  %" to " = call_function[target=cfx.ops.integer_add](%" a ", 0.02, 9, %" b                   \
    ", 0.03, 11, 0.025, 7, 7, 255, torch.uint8)\n"

static const char images[] =
    "graph():\n  %x = placeholder[target=x]()\n"
    GET("w") GET("w3") GET("w1") GET("s") GET("b")
    QUANTIZE("q", "x")
    CONV("a", "q", "w3", "117", "[2, 2], [1, 1], [1, 1], 1")
    CONV("c", "a", "w", "9", "[1], [1], [1], 1")
    SUM("d", "c", "a")
    CONV("e", "d", "w1", "7", "[1, 1], [0, 0], [1, 1], 1")
    SUM("f", "d", "e")
    "  %y = call_function[target=cfx.ops.dequantize_per_tensor]"
    "(%f, 0.025, 7, 0, 255, torch.uint8)\n"
    "  output(%y)\n";

static cfx_state *image_weights(void)
{
    const weight all[] = {{"w3", CFX_DTYPE_INT8, {20, 3, 3, 3}}, {"s", CFX_DTYPE_FLOAT32, {20}},
                          {"w", CFX_DTYPE_INT8, {20, 20, 3, 3}}, {"b", CFX_DTYPE_FLOAT32, {20}},
                          {"w1", CFX_DTYPE_INT8, {20, 20, 1, 1}}};
    return STATE(all);
}

TEST(convolutions_and_sums)
{
    cfx_state *weights = image_weights();
    check_everywhere(images, weights, (const int64_t[]){2, 3, 13, 9}, 4, 3);
    cfx_state_free(weights);
}

static const char groups[] =
    "graph():\n  %x = placeholder[target=x]()\n"
    GET("w") GET("s") GET("b")
    QUANTIZE("q", "x")
    CONV("a", "q", "w", "117", "[1, 2], [2, 0], [2, 1], 4")
    "  output(%a)\n";

TEST(groups_and_dilation)
{
    const weight all[] = {{"w", CFX_DTYPE_INT8, {24, 5, 3, 2}}, {"s", CFX_DTYPE_FLOAT32, {24}},
                          {"b", CFX_DTYPE_FLOAT32, {24}}};
    cfx_state *weights = STATE(all);
    check_everywhere(groups, weights, (const int64_t[]){1, 20, 11, 8}, 4, 1);
    cfx_state_free(weights);
}

/* Scores by keys that are turned, values by broadcast scores. */
static const char attention[] =
    "graph():\n  %x = placeholder[target=x]()\n"
    QUANTIZE("q", "x")
    "  %t = call_function[target=cfx.ops.transpose](%q, -2, -1)\n"
    "  %a = call_function[target=cfx.ops.integer_matmul](%q, 0.01, 117, %t, 0.01, 117, "
    "1.0, 0, 0, 255, torch.float32)\n"
    "  %p = call_function[target=cfx.ops.quantize_per_tensor](%a, 0.1, -3, -128, 127, "
    "torch.int8)\n"
    "  %o = call_function[target=cfx.ops.select](%q, 0, 0)\n"
    "  %y = call_function[target=cfx.ops.integer_matmul](%p, 0.1, -3, %o, 0.01, 117, "
    "0.3, -5, -128, 127, torch.int8)\n"
    "  output(%y)\n";

TEST(matrices)
{
    check_everywhere(attention, NULL, (const int64_t[]){2, 3, 21, 9}, 4, 2);
    check_everywhere(attention, NULL, (const int64_t[]){1, 1, 70, 64}, 4, 2);
    check_everywhere(attention, NULL, (const int64_t[]){7, 1, 1, 3}, 4, 2);
}

/* A sum of a matrix with itself, and one whose operand others read, stay what they are. */
static const char twice[] =
    "graph():\n  %x = placeholder[target=x]()\n"
    GET("w") GET("s")
    QUANTIZE("q", "x")
    "  %a = call_function[target=cfx.ops.integer_linear](%q, 0.01, 117, %w, %s, None, None, "
    "0.05, 3, 0, 255, torch.uint8)\n"
    "  %b = call_function[target=cfx.ops.integer_add](%a, 0.05, 3, %a, 0.05, 3, "
    "0.1, 3, 0, 255, torch.uint8)\n"
    "  %c = call_function[target=cfx.ops.integer_linear](%b, 0.1, 3, %w, %s, None, None, "
    "0.05, 3, 0, 255, torch.uint8)\n"
    "  %d = call_function[target=cfx.ops.integer_add](%c, 0.05, 3, %b, 0.1, 3, "
    "0.1, 3, 0, 255, torch.uint8)\n"
    "  %e = call_function[target=cfx.ops.integer_mul](%d, 0.1, 3, %c, 0.05, 3, "
    "0.1, 3, 0, 255, torch.uint8)\n"
    "  output(%e)\n";

TEST(sums_that_stay)
{
    const weight all[] = {{"w", CFX_DTYPE_INT8, {16, 16}}, {"s", CFX_DTYPE_FLOAT32, {16}}};
    cfx_state *weights = STATE(all);
    check_everywhere(twice, weights, (const int64_t[]){5, 16}, 2, 2);
    cfx_state_free(weights);
}

typedef struct sweep {
    cfx_state *weights;
    cfx_datum x;
} sweep;

/* Without memory for a plan, the program runs without one; without any, it fails. */
static cfx_status compile_and_run(const cfx_allocator *a, void *arg)
{
    const sweep *w = arg;
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = a};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = rt ? program_of(images, w->weights, a, &err) : NULL;
    if (p && cfx_program_compile(p, NULL, &err) == CFX_OK)
        cfx_datum_release(cfx_program_run(p, rt, &w->x, 1, &err));
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    sweep w = {image_weights(),
               cfx_datum_tensor(random_tensor((const int64_t[]){1, 3, 4, 4}, 4, false))};
    CHECK(test_oom_sweep(compile_and_run, &w) > 20);
    cfx_datum_release(w.x);
    cfx_state_free(w.weights);
}
