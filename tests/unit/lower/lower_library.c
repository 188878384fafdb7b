/* lower_library.c - graphs that call operators of a library: lowered, run, and passed over. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>

/* y = x + amount, so that a call can be seen in what comes out. */
static cfx_status like_x(cfx_kernel_call *c) { return cfx_kernel_describe_like(c, 0, 0); }

static cfx_status add(cfx_kernel_call *c)
{
    cfx_tensor *x = cfx_kernel_dense(c, 0, CFX_DTYPE_FLOAT32);
    cfx_tensor *y = cfx_kernel_result(c, 0);
    for (int64_t i = 0; x && y && i < cfx_tensor_numel(x); i++)
        ((float *)cfx_tensor_data(y))[i] =
            ((float *)cfx_tensor_data(x))[i] + (float)cfx_kernel_arg(c, 1).as.f;
    cfx_tensor_release(x);
    return CFX_OK;
}

static cfx_status add_in_place(cfx_kernel_call *c)
{
    cfx_tensor *x = cfx_kernel_result(c, 0);
    for (int64_t i = 0; i < cfx_tensor_numel(x); i++)
        ((float *)cfx_tensor_data(x))[i] += 1;
    return CFX_OK;
}

static cfx_status nothing(cfx_kernel_call *c)
{
    (void)c;
    return CFX_OK;
}

static cfx_status refuse(cfx_kernel_call *c)
{
    return cfx_kernel_fail(c, CFX_E_VALUE, "not today");
}

static void count_release(void *ctx) { ++*(int *)ctx; }

static cfx_library *library(const cfx_allocator *a, int *gone, cfx_error *err)
{
    const cfx_custom_operator rows[] = {
        {"my.add", "(Tensor x, float amount=1.0, *, str? note=None, int[2] size=[1, 2]) -> Tensor",
         0, like_x, add, gone, gone ? count_release : NULL},
        {"my.bump_", "(Tensor(a!) x) -> Tensor(a!)", 0, nothing, add_in_place, NULL, NULL},
        {"my.store", "(Tensor x, Tensor(a!) to) -> ()", 0, nothing, nothing, NULL, NULL},
        {"my.noise", "(Tensor x) -> Tensor", CFX_OPERATOR_RANDOM, like_x, add, NULL, NULL},
        {"my.check", "(Tensor x) -> ()", CFX_OPERATOR_CHECKS, nothing, refuse, NULL, NULL},
        {"my.setup", "() -> ()", CFX_OPERATOR_GLOBAL, nothing, nothing, NULL, NULL},
        {"my.known", "(Tensor x) -> Tensor", 0, like_x, NULL, NULL, NULL},
        {"my.two", "(Tensor x) -> (Tensor, int)", 0, like_x, NULL, NULL, NULL},
    };
    return cfx_library_new(rows, sizeof rows / sizeof *rows, NULL, a, err);
}

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static void expect_graph(cfx_graph *g, const char *want)
{
    cfx_error err = {0};
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    cfx_graph_text(g, cfx_buffer_sink(&text), &err);
    CHECK_STR_EQ(want, text.data);
    cfx_buffer_free(&text);
}

/* ---- lowering ------------------------------------------------------------------------------ */

static void expect_lowered(const char *before, const char *after)
{
    cfx_error err = {0};
    cfx_library *lib = library(NULL, NULL, &err);
    const cfx_module_tree modules = {.library = lib};
    cfx_graph *g = parse(before, NULL, &err);
    REQUIRE(lib && g);
    CHECK_INT_EQ(CFX_OK, cfx_graph_lower(g, &modules, NULL, &err));
    CHECK_STR_EQ("", err.message);
    expect_graph(g, after);
    const uint64_t version = cfx_graph_version(g);
    CHECK_INT_EQ(CFX_OK, cfx_graph_lower(g, &modules, NULL, &err));  /* once is enough */
    CHECK_INT_EQ(version, cfx_graph_version(g));
    cfx_graph_release(g);
    cfx_library_release(lib);
}

TEST(arguments_are_bound_by_the_schema)
{
    expect_lowered("graph():\n"
                   "  %x = placeholder[target=x]()\n"
                   "  %w = get_attr[target=w]()\n"
                   "  %a = call_function[target=my.add](%x, 2.0)\n"
                   "  %b = call_function[target=my.add](amount=3, x=%a)\n"
                   "  %c = call_function[target=my.add](%b, size=[3, 4])\n"
                   "  %d = call_function[target=my.add](%c, note=\"n\")\n"
                   "  %e = call_function[target=torch.max](%d, 0)\n"
                   "  output((%e, %w))\n",
                   "graph():\n"
                   "  %x = placeholder[target=x]()\n"
                   "  %w = get_attr[target=w]()\n"
                   "  %a = call_function[target=my.add](%x, 2.0)\n"
                   "  %b = call_function[target=my.add](%a, 3)\n"
                   "  %c = call_function[target=my.add](%b, 1.0, None, [3, 4])\n"
                   "  %d = call_function[target=my.add](%c, 1.0, \"n\")\n"
                   "  %e = call_function[target=cfx.ops.max_dim](%d, 0)\n"
                   "  output((%e, %w))\n");
}

static void expect_refused(const char *call, const char *message)
{
    char text[300];
    cfx_error err = {0};
    cfx_library *lib = library(NULL, NULL, &err);
    const cfx_module_tree modules = {.library = lib};
    snprintf(text, sizeof text, "graph():\n  %%x = placeholder[target=x]()\n"
             "  %%y = call_function[target=%s  @ model.py:7\n  output(%%y)\n", call);
    cfx_graph *g = parse(text, NULL, &err);
    CHECK_STR_EQ("", err.message);
    CHECK_INT_EQ(CFX_E_TYPE, cfx_graph_lower(g, &modules, NULL, &err));
    CHECK_STR_EQ(message, err.message);
    expect_graph(g, text);
    cfx_graph_release(g);
    cfx_library_release(lib);
}

TEST(what_does_not_fit_is_refused)
{
    expect_refused("my.add]()", "model.py:7: my.add(): missing argument 'x' (node %y)");
    expect_refused(
        "my.add](%x, \"a\")",
        "model.py:7: my.add(x, 'a'): invalid argument for 'amount', which must be float (node %y)");
    expect_refused("my.add](%x, None)", "model.py:7: my.add(x, None): invalid argument for "
                                        "'amount', which must be float (node %y)");
    expect_refused("my.add](%x, y=1)", "model.py:7: my.add(x, y=1): it has no parameter 'y' (node "
                   "%y)");
    expect_refused("my.add](%x, x=1)",
                   "model.py:7: my.add(x, x=1): argument given twice: 'x' (node %y)");
    expect_refused(
        "my.noise](%x, 1, 2)",
        "model.py:7: my.noise(x, 1, 2): too many arguments: expected at most 1, got 3 (node %y)");
    expect_refused("my.known](%x)", "model.py:7: my.known(x): the operator 'my.known' has no "
                   "kernel (node %y)");
    expect_refused("my.other](%x)", "model.py:7: my.other(x): 'my.other' is not in the operator "
                                    "table or the library (node %y)");
}

/* ---- programs ------------------------------------------------------------------------------ */

static cfx_status run_in_place(const cfx_allocator *a, void *arg)
{
    static const char text[] = "graph():\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %a = call_function[target=my.add](%x, amount=2)\n"
                               "  %b = call_function[target=my.bump_](%a)\n"
                               "  %c = call_function[target=cfx.cond](True, graph {\n"
                               "      %i = placeholder[target=i]()\n"
                               "      %j = call_function[target=my.add](%i)\n"
                               "      output(%j)\n"
                               "    }, graph {\n"
                               "      %k = placeholder[target=k]()\n"
                               "      output(%k)\n"
                               "    }, [%b])\n"
                               "  output(%c)\n";
    float *result = arg;
    cfx_error err = {0};
    int gone = 0;
    float data = 10;
    cfx_library *lib = library(a, &gone, &err);
    const cfx_module_tree modules = {.library = lib};
    const cfx_program_options options = {a, lib};
    const cfx_runtime_options limits = {.allocator = a, .threads = 1};
    cfx_graph *g = lib ? parse(text, a, &err) : NULL;
    cfx_program *p = NULL;
    if (g && cfx_graph_lower(g, &modules, NULL, &err) == CFX_OK)
        p = cfx_program_new(g, NULL, &options, &err);
    cfx_graph_release(g);
    cfx_library_release(lib);
    CHECK_INT_EQ(lib && !p, gone);  /* a program keeps it */
    cfx_runtime *rt = p ? cfx_runtime_new(&limits, &err) : NULL;
    cfx_datum x = cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, NULL, NULL, 0, &data,
                                                          true, NULL, NULL, NULL, NULL));
    cfx_datum y = rt ? cfx_program_run(p, rt, &x, 1, &err) : cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    if (y.kind == CFX_DATUM_TENSOR)
        *result = *(float *)cfx_tensor_data(y.as.tensor);
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
    cfx_program_free(p);
    CHECK_INT_EQ(lib != NULL, gone);
    return err.status;
}

TEST(a_program_runs_them_and_keeps_the_library)
{
    float result = 0;
    CHECK_INT_EQ(CFX_OK, run_in_place(NULL, &result));
    CHECK(result == 14);  /* 10 + 2, + 1 in place, + 1 in the branch */
}

TEST(memory_runs_out)
{
    float result = 0;
    CHECK(test_oom_sweep(run_in_place, &result) > 30);
    CHECK(result == 14);
}

TEST(messages_have_the_users_line)
{
    cfx_error err = {0};
    cfx_library *lib = library(NULL, NULL, &err);
    const cfx_program_options options = {.library = lib};
    cfx_graph *g = parse("graph():\n"
                         "  %x = placeholder[target=x]()\n"
                         "  %y = call_function[target=my.check](%x)  @ model.py:3\n"
                         "  output(%y)\n", NULL, &err);
    CHECK(!cfx_program_new(g, NULL, NULL, &err));
    CHECK_STR_EQ(
        "model.py:3: 'my.check' is not an operator with a kernel; lower the graph first (node %y)",
        err.message);
    err = (cfx_error){0};
    cfx_program *p = cfx_program_new(g, NULL, &options, &err);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    const cfx_datum x = cfx_datum_int(1);
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_program_run(p, rt, &x, 1, &err).kind);
    CHECK_STR_EQ("model.py:3: my.check(int64[]): not today (node %y)", err.message);
    cfx_runtime_free(rt);
    cfx_program_free(p);
    cfx_graph_release(g);
    cfx_library_release(lib);
}

static cfx_status note_cost(void *ctx, const cfx_cost *cost)
{
    char *text = ctx;
    sprintf(text + strlen(text), "%s:%lld ", cost->node, (long long)cost->live);
    return CFX_OK;
}

/* What is alive: the input of 40 bytes, what my.add made of it, and what relu makes of that. */
TEST(their_results_take_memory)
{
    char text[100] = "";
    const int64_t n = 10;
    cfx_error err = {0};
    cfx_library *lib = library(NULL, NULL, &err);
    const cfx_program_options options = {.library = lib};
    cfx_graph *g = parse("graph():\n"
                         "  %x = placeholder[target=x]()\n"
                         "  %a = call_function[target=my.add](%x)\n"
                         "  %b = call_function[target=my.bump_](%a)\n"
                         "  %c = call_function[target=cfx.ops.relu](%b)\n"
                         "  output(%c)\n", NULL, &err);
    cfx_program *p = cfx_program_new(g, NULL, &options, &err);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_datum x = cfx_datum_tensor(cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, &n, 1, NULL, &err));
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_cost(p, rt, dims, &x, 1, note_cost, text, &err));
    cfx_dims_free(dims);
    CHECK_STR_EQ("c:120 ", text);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
    cfx_program_free(p);
    cfx_graph_release(g);
    cfx_library_release(lib);
}

/* ---- passes -------------------------------------------------------------------------------- */

static void expect_pass(const char *pass, const char *before, const char *after)
{
    cfx_error err = {0};
    cfx_library *lib = library(NULL, NULL, &err);
    const cfx_module_tree modules = {.library = lib};
    cfx_graph *g = parse(before, NULL, &err);
    REQUIRE(lib && g);
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find(pass), g, &modules, NULL, NULL, &err));
    expect_graph(g, after);
    cfx_graph_release(g);
    cfx_library_release(lib);
}

TEST(what_has_an_effect_is_not_dropped)
{
    expect_pass("dce",
                "graph():\n"
                "  %x = placeholder[target=x]()\n"
                "  %a = call_function[target=my.add](%x)\n"
                "  %b = call_function[target=my.bump_](%x)\n"
                "  %c = call_function[target=my.store](%x, %x)\n"
                "  %d = call_function[target=my.noise](%x)\n"
                "  %e = call_function[target=my.check](%x)\n"
                "  %f = call_function[target=my.setup]()\n"
                "  %g = call_function[target=cfx.cond](True, graph {\n"
                "      %i = placeholder[target=i]()\n"
                "      %j = call_function[target=my.check](%i)\n"
                "      output(%i)\n"
                "    }, graph {\n"
                "      %k = placeholder[target=k]()\n"
                "      output(%k)\n"
                "    }, [%x])\n"
                "  output(%x)\n",
                "graph():\n"
                "  %x = placeholder[target=x]()\n"
                "  %b = call_function[target=my.bump_](%x)\n"
                "  %c = call_function[target=my.store](%x, %x)\n"
                "  %d = call_function[target=my.noise](%x)\n"
                "  %e = call_function[target=my.check](%x)\n"
                "  %f = call_function[target=my.setup]()\n"
                "  %g = call_function[target=cfx.cond](True, graph {\n"
                "      %i = placeholder[target=i]()\n"
                "      %j = call_function[target=my.check](%i)\n"
                "      output(None)\n"
                "    }, graph {\n"
                "      %k = placeholder[target=k]()\n"
                "      output(None)\n"
                "    }, [%x])\n"
                "  output(%x)\n");
}

/* What nobody reads of a branch with an effect need not be given; what the graph returns is. */
TEST(what_is_returned_is_not_dropped)
{
    static const char text[] = "graph():\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %g = call_function[target=cfx.cond](True, graph {\n"
                               "      %i = placeholder[target=i]()\n"
                               "      %j = call_function[target=my.check](%i)\n"
                               "      output(%i)\n"
                               "    }, graph {\n"
                               "      %k = placeholder[target=k]()\n"
                               "      output(%k)\n"
                               "    }, [%x])\n"
                               "  output(%g)\n";
    expect_pass("dce", text, text);
}

TEST(only_what_is_pure_is_merged)
{
    expect_pass("cse",
                "graph():\n"
                "  %x = placeholder[target=x]()\n"
                "  %a = call_function[target=my.add](%x)\n"
                "  %b = call_function[target=my.add](%x)\n"
                "  %c = call_function[target=my.noise](%x)\n"
                "  %d = call_function[target=my.noise](%x)\n"
                "  output((%a, %b, %c, %d))\n",
                "graph():\n"
                "  %x = placeholder[target=x]()\n"
                "  %a = call_function[target=my.add](%x)\n"
                "  %c = call_function[target=my.noise](%x)\n"
                "  %d = call_function[target=my.noise](%x)\n"
                "  output((%a, %a, %c, %d))\n");
}

/* `to` is written to: what is read of it before and after is not the same; what is read of `x` is,
 * for the schema says so. */
TEST(a_write_keeps_apart_what_it_writes_to)
{
    expect_pass("cse",
                "graph():\n"
                "  %x = placeholder[target=x]()\n"
                "  %y = call_function[target=my.add](%x, 2.0)\n"
                "  %z = call_function[target=my.add](%x, 3.0)\n"
                "  %a = call_function[target=torch.neg](%y)\n"
                "  %b = call_function[target=torch.neg](%z)\n"
                "  %s = call_function[target=my.store](%y, %z)\n"
                "  %c = call_function[target=torch.neg](%y)\n"
                "  %d = call_function[target=torch.neg](%z)\n"
                "  output((%a, %b, %c, %d))\n",
                "graph():\n"
                "  %x = placeholder[target=x]()\n"
                "  %y = call_function[target=my.add](%x, 2.0)\n"
                "  %z = call_function[target=my.add](%x, 3.0)\n"
                "  %a = call_function[target=torch.neg](%y)\n"
                "  %b = call_function[target=torch.neg](%z)\n"
                "  %s = call_function[target=my.store](%y, %z)\n"
                "  %d = call_function[target=torch.neg](%z)\n"
                "  output((%a, %b, %a, %d))\n");
}

typedef struct touches {
    char text[100];
} touches;

static cfx_status note_touch(void *ctx, cfx_node *input, unsigned touch)
{
    char *text = ((touches *)ctx)->text;
    sprintf(text + strlen(text), "%s:%u ", cfx_node_name(input, NULL), touch);
    return CFX_OK;
}

static void expect_touches(const char *call, cfx_effect effect, bool with, const char *want)
{
    char text[200];
    cfx_error err = {0};
    touches t = {""};
    cfx_effect got = CFX_EFFECT_NONE;
    cfx_library *lib = library(NULL, NULL, &err);
    const cfx_module_tree modules = {.library = lib};
    snprintf(text, sizeof text, "graph():\n  %%x = placeholder[target=x]()\n"
             "  %%y = placeholder[target=y]()\n  %%r = call_function[target=%s\n  output(%%r)\n",
             call);
    cfx_graph *g = parse(text, NULL, &err);
    REQUIRE(g);
    cfx_node *n = cfx_graph_find(g, "r");
    REQUIRE(n);
    cfx_node_effect(n, with ? &modules : NULL, &got, &err);
    CHECK_INT_EQ(effect, got);
    cfx_node_each_touch(n, with ? &modules : NULL, note_touch, &t, &err);
    CHECK_STR_EQ(want, t.text);
    cfx_graph_release(g);
    cfx_library_release(lib);
}

TEST(touches_follow_the_schema)
{
    expect_touches("my.add](%x)", CFX_EFFECT_NONE, true, "x:0 ");
    expect_touches("my.bump_](%x)", CFX_EFFECT_WRITES, true, "x:3 ");
    expect_touches("my.store](%x, %y)", CFX_EFFECT_WRITES, true, "x:0 y:1 ");
    expect_touches("my.store](to=%y, x=%x)", CFX_EFFECT_WRITES, true, "y:1 x:0 ");
    expect_touches("my.noise](%x)", CFX_EFFECT_ALONE, true, "x:0 ");
    expect_touches("my.setup](%x)", CFX_EFFECT_WRITES, true, "x:3 ");
    expect_touches("my.add](%x)", CFX_EFFECT_NONE, false, "x:2 ");  /* nobody knows it */
}
