/* freeze.c - graphs that are simplified and compiled: what goes, what stays apart, regions, calls
 * that fail, short memory. */
#include "plan_fixture.h"
#include "test_alloc.h"

#include <cfx/freeze.h>

#define CALL(name, op, ...) "  %" name " = call_function[target=cfx.ops." op "](" __VA_ARGS__ ")\n"

static cfx_program *frozen_of(const char *text, const cfx_state *weights, const cfx_allocator *a,
                              cfx_error *err)
{
    const cfx_program_options options = {.allocator = a};
    cfx_graph *g = cfx_graph_parse(text, strlen(text), a, NULL, err);
    cfx_program *p = g ? cfx_program_freeze(g, weights, &options, NULL, err) : NULL;
    cfx_graph_release(g);
    return p;
}

static cfx_state *new_weights(void)
{
    cfx_state *s = cfx_state_new(NULL, NULL);
    WEIGHT(s, "layer.w", 3, 4);
    WEIGHT(s, "b", 4);
    return s;
}

/* Runs `text` as it is and frozen, and compares; returns what the plans are, as text that is valid
 * until the next call. */
static const char *plans_of(const char *text)
{
    static char plans[2000];
    static const int64_t sizes[] = {2, 4};
    cfx_error err = {0};
    cfx_buffer printed;
    cfx_state *weights = new_weights();
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *plain = program_of(text, weights, NULL, &err);
    cfx_program *p = frozen_of(text, weights, NULL, &err);
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 2, false));
    const cfx_datum want = cfx_program_run(plain, rt, &x, 1, &err);
    const cfx_datum got = cfx_program_run(p, rt, &x, 1, &err);
    CHECK_STR_EQ("", err.message);
    CHECK(is_same(want, got));
    cfx_buffer_init(&printed, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_program_print_plans(p, cfx_buffer_sink(&printed), NULL));
    snprintf(plans, sizeof plans, "%s", printed.data);
    cfx_buffer_free(&printed);
    cfx_datum_release(got);
    cfx_datum_release(want);
    cfx_datum_release(x);
    cfx_program_free(p);
    cfx_program_free(plain);
    cfx_runtime_free(rt);
    cfx_state_free(weights);
    return plans;
}

/* The sum of the weights is a constant, one exponential is not computed twice, the sine not at all.
 * An exponential, a product and a difference are left. */
TEST(what_goes)
{
    const char *plans = plans_of(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %w = get_attr[target=layer.w]()\n"
        "  %b = get_attr[target=b]()\n"
        CALL("z", "zeros", "[4]")
        CALL("sum", "add", "%w, %b")
        CALL("more", "add", "%sum, %z")
        CALL("drop", "dropout", "%x, 0.5, False")
        CALL("e1", "exp", "%drop")
        CALL("e2", "exp", "%x")
        CALL("unused", "sin", "%e2")
        CALL("y", "linear", "%e1, %more")
        CALL("v", "linear", "%e2, %more")
        CALL("u", "sub", "%y, %v")
        "  output(%u)\n");
    CHECK(strstr(plans, "plan of 3 nodes") != NULL);
    CHECK(strstr(plans, "sin") == NULL);
}

/* Two results that are equal are two tensors: the caller may write to one of them. */
TEST(results_stay_apart)
{
    cfx_error err = {0};
    static const int64_t sizes[] = {2, 4};
    cfx_state *weights = new_weights();
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = frozen_of("graph():\n  %x = placeholder[target=x]()\n"
                               CALL("a", "exp", "%x") CALL("b", "exp", "%x")
                               "  output((%a, %b))\n", weights, NULL, &err);
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 2, false));
    const cfx_datum got = cfx_program_run(p, rt, &x, 1, &err);
    size_t n;
    const cfx_datum *items = cfx_datum_items(got, &n);
    CHECK_INT_EQ(2, (int)n);
    CHECK(n == 2 &&
          cfx_tensor_data(items[0].as.tensor) != cfx_tensor_data(items[1].as.tensor));
    cfx_datum_release(got);
    cfx_datum_release(x);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    cfx_state_free(weights);
}

TEST(regions)
{
    plans_of("graph():\n"
             "  %x = placeholder[target=x]()\n"
             CALL("m", "mean", "%x")
             CALL("c", "gt", "%m, 0.0")
             "  %y = call_function[target=cfx.ops.cond](%c, graph {\n"
             "      %a = placeholder[target=a]()\n"
             "      %b = get_attr[target=b]()\n"
             "      %s = call_function[target=cfx.ops.exp](%b)\n"
             "      %t = call_function[target=cfx.ops.add](%a, %s)\n"
             "      output(%t)\n"
             "    }, graph {\n"
             "      %a = placeholder[target=a]()\n"
             "      output(%a)\n"
             "    }, (%x,))\n"
             CALL("z", "mul", "%y, 2.0")
             "  output(%z)\n");
}

/* A call of constants that fails does so when the program runs, and says where. */
TEST(a_constant_that_fails)
{
    cfx_error err = {0};
    static const int64_t sizes[] = {2, 4};
    cfx_state *weights = new_weights();
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = frozen_of("graph():\n  %x = placeholder[target=x]()\n"
                               "  %w = get_attr[target=layer.w]()\n"
                               CALL("bad", "reshape", "%w, [5, 5]") CALL("y", "add", "%x, %bad")
                               "  output(%y)\n", weights, NULL, &err);
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 2, false));
    CHECK(p != NULL);
    CHECK_INT_EQ(CFX_DATUM_INVALID, (int)cfx_program_run(p, rt, &x, 1, &err).kind);
    CHECK(strstr(err.message, "%bad") != NULL);
    cfx_datum_release(x);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    cfx_state_free(weights);
}

/* A weight that is missing, and a call without a kernel, are errors as ever. */
TEST(errors)
{
    cfx_error err = {0};
    CHECK(frozen_of("graph():\n  %w = get_attr[target=no]()\n  output(%w)\n", NULL, NULL, &err) ==
          NULL);
    CHECK_INT_EQ(CFX_E_KEY, (int)err.status);
    err = (cfx_error){0};
    CHECK(frozen_of("graph():\n  %x = placeholder[target=x]()\n"
                    "  %y = call_function[target=my.function](%x)\n  output(%y)\n", NULL, NULL,
                    &err) == NULL);
    CHECK_INT_EQ(CFX_E_TYPE, (int)err.status);
    CHECK(cfx_program_freeze(NULL, NULL, NULL, NULL, &err) == NULL);
}

static cfx_status freeze(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_program_free(frozen_of("graph():\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %w = get_attr[target=layer.w]()\n"
                               "  %b = get_attr[target=b]()\n"
                               CALL("sum", "add", "%w, %b") CALL("e1", "exp", "%x")
                               CALL("e2", "exp", "%x") CALL("y", "linear", "%e1, %sum")
                               CALL("v", "linear", "%e2, %sum") CALL("u", "sub", "%y, %v")
                               "  output(%u)\n", arg, a, &err));
    return err.status;
}

TEST(every_allocation_can_fail)
{
    cfx_state *weights = new_weights();
    CHECK(test_oom_sweep(freeze, weights) > 50);
    cfx_state_free(weights);
}
