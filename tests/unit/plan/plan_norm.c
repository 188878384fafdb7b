/* plan_norm.c - RMS norms that a program has written out: how they are spelled, and what stays. */
#include "plan/plan_impl.h"

#include "plan_fixture.h"

#define CALL(name, op, ...) "  %" name " = call_function[target=cfx.ops." op "](" __VA_ARGS__ ")\n"
#define HEAD                                                                                       \
    "graph():\n"                                                                                   \
    "  %x = placeholder[target=x]()\n"                                                             \
    "  %w = get_attr[target=w]()\n"                                                                \
    "  %one = get_attr[target=one]()\n"
#define SQUARE CALL("p", "pow", "%x, 2")
#define MEAN CALL("m", "mean", "%p, [-1], True")
#define SCALE CALL("a", "add", "%m, 1e-6") CALL("r", "rsqrt", "%a")
#define END "  output(%y)\n"

static size_t steps_of(const char *text)
{
    static const int64_t sizes[] = {2, 5, 37};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 37);
    WEIGHT(weights, "one", 1, 1, 37);
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
