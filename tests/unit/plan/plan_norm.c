/* plan_norm.c - norms that a program has written out: how they are spelled, and what stays. */
#include "plan/plan_impl.h"

#include "plan_fixture.h"

#define CALL(name, op, ...) "  %" name " = call_function[target=cfx.ops." op "](" __VA_ARGS__ ")\n"
#define HEAD                                                                                       \
    "graph():\n"                                                                                   \
    "  %x = placeholder[target=x]()\n"                                                             \
    "  %w = get_attr[target=w]()\n"                                                                \
    "  %bias = get_attr[target=b]()\n"                                                             \
    "  %one = get_attr[target=one]()\n"                                                            \
    "  %two = get_attr[target=two]()\n"
#define SQUARE CALL("p", "pow", "%x, 2")
#define MEAN CALL("m", "mean", "%p, [-1], True")
#define SCALE CALL("a", "add", "%m, 1e-6") CALL("r", "rsqrt", "%a")
#define CENTRE CALL("c", "mean", "%x, [-1], True") CALL("d", "sub", "%x, %c")
#define VARIANCE CALL("p", "pow", "%d, %two") MEAN CALL("a", "add", "%m, 1e-6")
#define END "  output(%y)\n"

/* An exponent as ONNX files have it: a tensor without dimensions. */
static void add_two(cfx_state *weights)
{
    cfx_tensor *two = cfx_tensor_new(CFX_DTYPE_FLOAT32, NULL, 0, NULL, NULL);
    if (!CHECK(two))
        return;
    *(float *)cfx_tensor_data(two) = 2;
    CHECK_INT_EQ(CFX_OK, cfx_state_set(weights, "two", two, NULL));
    cfx_tensor_release(two);
}

static size_t steps_of(const char *text)
{
    static const int64_t sizes[] = {2, 5, 37};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 37);
    WEIGHT(weights, "b", 37);
    WEIGHT(weights, "one", 1, 1, 37);
    add_two(weights);
    const size_t steps = check_plan(text, weights, sizes, 3);
    cfx_state_free(weights);
    return steps;
}

TEST(spellings)
{
    static const char *const all[] = {
        HEAD SQUARE MEAN SCALE CALL("n", "mul", "%x, %r") CALL("y", "mul", "%w, %n") END,
        HEAD CALL("p", "square", "%x") MEAN SCALE CALL("n", "mul", "%r, %x")
            CALL("y", "mul", "%n, %w") END,
        HEAD CALL("p", "mul", "%x, %x") CALL("m", "mean", "%p, [2], True") SCALE
            CALL("y", "mul", "%x, %r") END,
        HEAD SQUARE MEAN CALL("a", "add", "0.001, %m") CALL("r", "sqrt", "%a")
            CALL("n", "div", "%x, %r") CALL("y", "mul", "%n, %w") END,
        /* casts to the type that it has */
        HEAD CALL("f", "to", "%x, torch.float32") CALL("p", "pow", "%f, 2") MEAN SCALE
            CALL("g", "to", "%x, torch.float32") CALL("n", "mul", "%g, %r")
            CALL("t", "to", "%n, torch.float32") CALL("y", "mul", "%w, %t") END,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t steps = steps_of(all[i]);
        if (steps != 1)
            printf("%s%zu steps\n", all[i], steps);
        CHECK_INT_EQ(1, (int)steps);
    }
}

/* The norm of x less its mean, with weights, with a bias, with both. */
TEST(layer_norms)
{
    static const char *const all[] = {
        HEAD CENTRE VARIANCE CALL("r", "sqrt", "%a") CALL("n", "div", "%d, %r")
            CALL("s", "mul", "%n, %w") CALL("y", "add", "%s, %bias") END,
        HEAD CENTRE CALL("p", "mul", "%d, %d") MEAN SCALE CALL("n", "mul", "%r, %d")
            CALL("s", "mul", "%w, %n") CALL("y", "add", "%bias, %s") END,
        HEAD CENTRE VARIANCE CALL("r", "rsqrt", "%a") CALL("n", "mul", "%d, %r")
            CALL("y", "add", "%n, %bias") END,
        HEAD CENTRE VARIANCE CALL("r", "rsqrt", "%a") CALL("n", "mul", "%d, %r")
            CALL("y", "mul", "%n, %w") END,
        HEAD CENTRE VARIANCE CALL("r", "rsqrt", "%a") CALL("y", "mul", "%d, %r") END,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK_INT_EQ(1, (int)steps_of(all[i]));
}

/* What is less than a layer norm: its mean is of something else, or others read it or what is less
 * it. */
TEST(no_layer_norms)
{
    static const char *const all[] = {
        HEAD CALL("e", "exp", "%x") CALL("c", "mean", "%e, [-1], True") CALL("d", "sub", "%x, %c")
            VARIANCE CALL("r", "rsqrt", "%a") CALL("y", "mul", "%d, %r") END,
        HEAD CALL("c", "mean", "%x, [1], True") CALL("d", "sub", "%x, %c") VARIANCE
            CALL("r", "rsqrt", "%a") CALL("y", "mul", "%d, %r") END,
        HEAD CENTRE VARIANCE CALL("r", "rsqrt", "%a") CALL("y", "mul", "%d, %r")
            "  output((%y, %c))\n",
        HEAD CENTRE VARIANCE CALL("r", "rsqrt", "%a") CALL("y", "mul", "%d, %r")
            "  output((%y, %d))\n",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(steps_of(all[i]) > 2);
}

/* Weights of another shape follow the norm as a step of their own. */
TEST(other_weights)
{
    CHECK_INT_EQ(2, (int)steps_of(HEAD SQUARE MEAN SCALE CALL("n", "mul", "%x, %r")
                                  CALL("y", "mul", "%one, %n") END));
}

/* What is another function, or is read by others. */
TEST(what_stays)
{
    static const char *const all[] = {
        HEAD SQUARE CALL("m", "mean", "%p, [1], True") SCALE CALL("y", "mul", "%x, %r") END,
        HEAD SQUARE CALL("m", "sum", "%p, [-1], True") SCALE CALL("y", "mul", "%x, %r") END,
        HEAD CALL("p", "pow", "%x, 3") MEAN CALL("b", "abs", "%m") CALL("a", "add", "%b, 1.0")
            CALL("r", "rsqrt", "%a") CALL("y", "mul", "%x, %r") END,
        HEAD SQUARE MEAN SCALE CALL("e", "exp", "%x") CALL("y", "mul", "%e, %r") END,
        HEAD SQUARE MEAN SCALE CALL("y", "mul", "%x, %r") "  output((%y, %m))\n",
        HEAD SQUARE MEAN CALL("a", "add", "%m, 1e-6") CALL("r", "sqrt", "%a")
            CALL("y", "mul", "%x, %r") END,
        HEAD SQUARE MEAN CALL("a", "add", "%m, 1e-6") CALL("r", "sqrt", "%a")
            CALL("y", "div", "%r, %x") END,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(steps_of(all[i]) > 2);
}
