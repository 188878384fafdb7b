/* plan.c - planned programs against the interpreter: fusion, layouts, memory, what has no plan. */
#include "plan/plan_impl.h"

#include "test_alloc.h"

#include <cfx/cfx.h>
#include <math.h>

static uint64_t state = 3;

static float number(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((state >> 33) % 2001) / 1000 - 1;
}

/* A tensor of random numbers; positive ones on demand: variances. */
static cfx_tensor *random_tensor(const int64_t *sizes, size_t ndim, bool positive)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, ndim, NULL, NULL);
    float *data = cfx_tensor_data(t);
    for (int64_t i = 0; i < cfx_tensor_numel(t); i++)
        data[i] = positive ? fabsf(number()) + 0.5f : number();
    return t;
}

static void add_weight(cfx_state *s, const char *name, size_t ndim, const int64_t *sizes)
{
    cfx_tensor *t = random_tensor(sizes, ndim, strstr(name, "var") != NULL);
    cfx_state_set(s, name, t, NULL);
    cfx_tensor_release(t);
}
#define WEIGHT(s, name, ...)                                                                       \
    add_weight(s, name, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                        \
               (const int64_t[]){__VA_ARGS__})

static cfx_program *program_of(const char *text, const cfx_state *weights, const cfx_allocator *a,
                               cfx_error *err)
{
    const cfx_program_options options = {.allocator = a};
    cfx_graph *g = cfx_graph_parse(text, strlen(text), NULL, NULL, err);
    cfx_program *p = g ? cfx_program_new(g, weights, &options, err) : NULL;
    cfx_graph_release(g);
    return p;
}

static bool is_close(const cfx_tensor *a, const cfx_tensor *b)
{
    if (a->dtype != b->dtype || a->ndim != b->ndim ||
        memcmp(a->size, b->size, a->ndim * sizeof *a->size) != 0 ||
        memcmp(a->stride, b->stride, a->ndim * sizeof *a->stride) != 0)
        return false;
    const float *x = cfx_tensor_data(a);
    const float *y = cfx_tensor_data(b);
    for (int64_t i = 0; i < cfx_tensor_numel(a); i++)
        if (!(fabsf(x[i] - y[i]) <= 1e-4f * (1 + fabsf(x[i]))))
            return false;
    return true;
}

/* Plans `text` for an input of these sizes, runs it twice on other numbers, and compares. Returns
 * how many steps are left. */
static size_t check_plan(const char *text, const cfx_state *weights, const int64_t *sizes,
                         size_t ndim)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = program_of(text, weights, NULL, &err);
    cfx_datum x = cfx_datum_tensor(random_tensor(sizes, ndim, false));
    cfxi_plan *plan = p ? cfxi_plan_new(p, rt, &x, 1, &err) : NULL;
    cfxi_plan_session *s = plan ? cfxi_plan_session_new(plan, &err) : NULL;
    CHECK_STR_EQ("", err.message);
    for (int run = 0; s && run < 2; run++) {
        CHECK(cfxi_plan_takes(plan, &x, 1));
        const cfx_datum want = cfx_program_run(p, rt, &x, 1, &err);
        const cfx_datum got = cfxi_plan_run(s, &x, 1, &err);
        CHECK_STR_EQ("", err.message);
        CHECK(want.kind == CFX_DATUM_TENSOR && got.kind == CFX_DATUM_TENSOR &&
              is_close(want.as.tensor, got.as.tensor));
        cfx_datum_release(want);
        cfx_datum_release(got);
        cfx_datum_release(x);
        x = cfx_datum_tensor(random_tensor(sizes, ndim, false));
    }
    size_t left = 0;
    for (size_t i = 0; plan && i < plan->steps.size; i++)
        left += !cfxi_plan_step(plan, i)->removed;
    cfxi_plan_session_free(s);
    cfxi_plan_free(plan);
    cfx_program_free(p);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
    return left;
}

/* A block of a residual network, with a shortcut that has a convolution of its own. */
static const char block[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %w1 = get_attr[target=w1]()\n"
    "  %w2 = get_attr[target=w2]()\n"
    "  %w3 = get_attr[target=w3]()\n"
    "  %gamma = get_attr[target=gamma]()\n"
    "  %beta = get_attr[target=beta]()\n"
    "  %mean = get_attr[target=mean]()\n"
    "  %var = get_attr[target=var]()\n"
    "  %c1 = call_function[target=cfx.ops.conv2d](%x, %w1, None, [1, 1], [1, 1])\n"
    "  %b1 = call_function[target=cfx.ops.batch_norm](%c1, %gamma, %beta, %mean, %var, False)\n"
    "  %r1 = call_function[target=cfx.ops.relu](%b1)\n"
    "  %c2 = call_function[target=cfx.ops.conv2d](%r1, %w2, %beta)\n"
    "  %c3 = call_function[target=cfx.ops.conv2d](%x, %w3)\n"
    "  %b3 = call_function[target=cfx.ops.batch_norm](%c3, %gamma, %beta, %mean, %var, False)\n"
    "  %sum = call_function[target=cfx.ops.add](%c2, %b3)\n"
    "  %r2 = call_function[target=cfx.ops.relu](%sum)\n"
    "  %p = call_function[target=cfx.ops.max_pool2d](%r2, [3, 3], [2, 2], [1, 1])\n"
    "  %y = call_function[target=cfx.ops.silu](%p)\n"
    "  output(%y)\n";

static cfx_state *block_weights(void)
{
    cfx_state *s = cfx_state_new(NULL, NULL);
    WEIGHT(s, "w1", 20, 3, 3, 3);
    WEIGHT(s, "w2", 20, 20, 1, 1);
    WEIGHT(s, "w3", 20, 3, 1, 1);
    WEIGHT(s, "gamma", 20);
    WEIGHT(s, "beta", 20);
    WEIGHT(s, "mean", 20);
    WEIGHT(s, "var", 20);
    return s;
}

TEST(a_residual_block_is_seven_steps)
{
    static const int64_t sizes[] = {2, 3, 9, 13};
    cfx_state *weights = block_weights();
    /* the image turned, three convolutions, the pool, the function, the result turned back */
    CHECK_INT_EQ(7, (int)check_plan(block, weights, sizes, 4));
    cfx_state_free(weights);
}

TEST(a_program_sees_its_own_layout)
{
    static const int64_t sizes[] = {1, 3, 6, 6};
    cfx_state *weights = block_weights();
    CHECK(check_plan("graph():\n"
                     "  %x = placeholder[target=x]()\n"
                     "  %w = get_attr[target=w1]()\n"
                     "  %c = call_function[target=cfx.ops.conv2d](%x, %w)\n"
                     "  %r = call_function[target=cfx.ops.relu](%c)\n"
                     "  %v = call_function[target=cfx.ops.view](%r, [1, 20, 16])\n"
                     "  %t = call_function[target=cfx.ops.transpose](%v, 1, 2)\n"
                     "  %s = call_function[target=cfx.ops.softmax](%t, -1)\n"
                     "  output(%s)\n", weights, sizes, 4) > 0);
    cfx_state_free(weights);
}

TEST(layers_of_a_transformer)
{
    static const int64_t sizes[] = {2, 5, 12};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "a", 40, 12);
    WEIGHT(weights, "b", 40);
    WEIGHT(weights, "c", 12, 40);
    WEIGHT(weights, "n", 12);
    CHECK_INT_EQ(3, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %a = get_attr[target=a]()\n"
        "  %b = get_attr[target=b]()\n"
        "  %c = get_attr[target=c]()\n"
        "  %n = get_attr[target=n]()\n"
        "  %norm = call_function[target=cfx.ops.layer_norm](%x, [12], %n, %n)\n"
        "  %h = call_function[target=cfx.ops.linear](%norm, %a, %b)\n"
        "  %g = call_function[target=cfx.ops.gelu](%h)\n"
        "  %o = call_function[target=cfx.ops.linear](%g, %c, %n)\n"
        "  %y = call_function[target=cfx.ops.add](%o, %x)\n"
        "  output(%y)\n", weights, sizes, 3));
    cfx_state_free(weights);
}

TEST(what_is_known_is_computed_once)
{
    static const int64_t sizes[] = {4, 3};
    /* the mask and its sum are constants: only the product is left */
    CHECK_INT_EQ(1, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %n = call_function[target=cfx.ops.size](%x, 0)\n"
        "  %o = call_function[target=cfx.ops.ones]([%n, 3])\n"
        "  %t = call_function[target=cfx.ops.tril](%o)\n"
        "  %y = call_function[target=cfx.ops.mul](%x, %t)\n"
        "  output(%y)\n", NULL, sizes, 2));
}

TEST(inputs_that_come_back_are_themselves)
{
    cfx_error err = {0};
    const int64_t sizes[] = {3};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = program_of("graph():\n"
                                "  %x = placeholder[target=x]()\n"
                                "  %v = call_function[target=cfx.ops.slice](%x, 0, 1, 3)\n"
                                "  output((%x, %v))\n", NULL, NULL, &err);
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 1, false));
    cfxi_plan *plan = cfxi_plan_new(p, rt, &x, 1, &err);
    cfxi_plan_session *s = cfxi_plan_session_new(plan, &err);
    const cfx_datum y = cfxi_plan_run(s, &x, 1, &err);
    size_t n;
    const cfx_datum *items = cfx_datum_items(y, &n);
    REQUIRE(n == 2);
    CHECK(items[0].as.tensor == x.as.tensor);
    CHECK(items[1].as.tensor->data == x.as.tensor->data + 4);
    cfx_datum_release(y);
    cfxi_plan_session_free(s);
    cfxi_plan_free(plan);
    cfx_program_free(p);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

/* What depends on elements has no plan, and says so. */
TEST(what_depends_on_elements_has_no_plan)
{
    static const char *const texts[] = {
        "graph():\n  %x = placeholder[target=x]()\n"
        "  %n = call_function[target=cfx.ops.nonzero](%x)\n  output(%n)\n",
        "graph():\n  %x = placeholder[target=x]()\n"
        "  %s = call_function[target=cfx.ops.sum](%x)\n"
        "  %n = call_function[target=cfx.ops.item](%s)\n  output(%n)\n",
        "graph():\n  %x = placeholder[target=x]()\n"
        "  %n = call_function[target=cfx.ops.relu_](%x)\n  output(%n)\n",
    };
    const int64_t sizes[] = {3};
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 1, false));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cfx_error err = {0};
        cfx_program *p = program_of(texts[i], NULL, NULL, &err);
        CHECK(p != NULL);
        CHECK(cfxi_plan_new(p, rt, &x, 1, &err) == NULL);
        CHECK_INT_EQ(CFX_E_UNSUPPORTED, err.status);
        cfx_program_free(p);
    }
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

TEST(other_inputs_need_another_plan)
{
    cfx_error err = {0};
    const int64_t sizes[] = {4, 2};
    const int64_t other[] = {4, 3};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n"
                                "  %y = call_function[target=cfx.ops.relu](%x)\n"
                                "  output(%y)\n", NULL, NULL, &err);
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 2, false));
    const cfx_datum wide = cfx_datum_tensor(random_tensor(other, 2, false));
    const cfx_datum five = cfx_datum_int(5);
    cfxi_plan *plan = cfxi_plan_new(p, rt, &x, 1, &err);
    REQUIRE(plan != NULL);
    CHECK(cfxi_plan_takes(plan, &x, 1));
    CHECK(!cfxi_plan_takes(plan, &wide, 1));
    CHECK(!cfxi_plan_takes(plan, &five, 1));
    CHECK(!cfxi_plan_takes(plan, NULL, 0));
    cfxi_plan_free(plan);
    cfx_program_free(p);
    cfx_datum_release(x);
    cfx_datum_release(wide);
    cfx_runtime_free(rt);
}

typedef struct sweep {
    cfx_state *weights;
    cfx_runtime *rt;
    cfx_datum x;
} sweep;

static cfx_status plan_and_run(const cfx_allocator *a, void *arg)
{
    const sweep *w = arg;
    cfx_error err = {0};
    cfx_program *p = program_of(block, w->weights, a, &err);
    cfxi_plan *plan = p ? cfxi_plan_new(p, w->rt, &w->x, 1, &err) : NULL;
    cfxi_plan_session *s = plan ? cfxi_plan_session_new(plan, &err) : NULL;
    const cfx_datum y = s ? cfxi_plan_run(s, &w->x, 1, &err) : cfx_datum_invalid();
    cfx_datum_release(y);
    cfxi_plan_session_free(s);
    cfxi_plan_free(plan);
    cfx_program_free(p);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    const int64_t sizes[] = {1, 3, 5, 5};
    sweep w = {block_weights(), cfx_runtime_new(NULL, NULL),
               cfx_datum_tensor(random_tensor(sizes, 4, false))};
    CHECK(test_oom_sweep(plan_and_run, &w) > 20);
    cfx_datum_release(w.x);
    cfx_runtime_free(w.rt);
    cfx_state_free(w.weights);
}
