/* program.c - graphs that run: slots, constants, regions, messages, and what fails. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>
#include <cfx/lower.h>
#include <cfx/runtime.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

/* A vector of floats that belongs to the caller. */
static cfx_datum vector(float *data, int64_t n)
{
    return cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &n, NULL, 1, data, false,
                                                   NULL, NULL, NULL, NULL));
}

static cfx_datum run_text(const char *text, const cfx_state *state, const cfx_datum *inputs,
                          size_t n, cfx_error *err)
{
    cfx_datum result = cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    cfx_graph *g = parse(text, NULL, err);
    cfx_program *p = g ? cfx_program_new(g, state, NULL, err) : NULL;
    cfx_graph_release(g);  /* the program keeps nothing of it */
    cfx_runtime *rt = cfx_runtime_new(NULL, err);
    if (p && rt)
        result = cfx_program_run(p, rt, inputs, n, err);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return result;
}

TEST(values_flow_through_slots)
{
    cfx_error err = {0};
    float data[] = {-1, 2, -3};
    cfx_datum x = vector(data, 3);
    cfx_datum y = run_text("graph():\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %unused = call_function[target=cfx.ops.relu](%x)\n"
                           "  %a = call_function[target=cfx.ops.relu](%x)\n"
                           "  %n = call_function[target=cfx.ops.numel](%a)\n"
                           "  output({\"y\": [%a, %a, (%n, 2)], \"z\": slice(None, %n, 1)})\n",
                           NULL, &x, 1, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(y.kind == CFX_DATUM_DICT);
    size_t n;
    cfx_datum *items = cfx_datum_items(cfx_datum_items(y, &n)[1], &n);
    REQUIRE(n == 3 && items[0].kind == CFX_DATUM_TENSOR && items[2].kind == CFX_DATUM_TUPLE);
    CHECK(items[0].as.tensor == items[1].as.tensor);
    CHECK(((const float *)cfx_tensor_data(items[0].as.tensor))[1] == 2);
    CHECK_INT_EQ(3, cfx_datum_items(items[2], &n)[0].as.i);
    cfx_datum_release(y);
    cfx_datum_release(x);
}

TEST(inputs_have_defaults)
{
    cfx_error err = {0};
    static const char text[] = "graph():\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %y = placeholder[target=y]((1, \"two\"))\n"
                               "  %more = placeholder[target=*more]()\n"
                               "  output((%x, %y, %more))\n";
    cfx_datum x = cfx_datum_int(7);
    cfx_datum y = run_text(text, NULL, &x, 1, &err);
    REQUIRE(y.kind == CFX_DATUM_TUPLE);
    size_t n;
    cfx_datum *items = cfx_datum_items(y, &n);
    CHECK(items[0].as.i == 7 && items[1].kind == CFX_DATUM_TUPLE);
    CHECK(items[2].kind == CFX_DATUM_TUPLE);
    cfx_datum_release(y);
    y = run_text(text, NULL, NULL, 0, &err);
    CHECK(y.kind == CFX_DATUM_INVALID);
    CHECK_STR_EQ("the input 'x' is missing", err.message);
    cfx_datum many[4] = {x, x, x, x};
    y = run_text(text, NULL, many, 4, &err);
    CHECK_STR_EQ("too many inputs: expected at most 3, got 4", err.message);
    CHECK_INT_EQ(CFX_E_TYPE, err.status);
}

TEST(parameters_come_from_the_state)
{
    cfx_error err = {0};
    static const char text[] = "graph():\n"
                               "  %w = get_attr[target=fc.weight]()\n"
                               "  %y = call_function[target=cfx.ops.relu](%w)\n"
                               "  output([%y, [%w]])\n";
    float data[] = {-5, 5};
    cfx_datum w = vector(data, 2);
    cfx_state *state = cfx_state_new(NULL, &err);
    cfx_datum y = run_text(text, state, NULL, 0, &err);
    CHECK(y.kind == CFX_DATUM_INVALID);
    CHECK_STR_EQ("the state has no tensor 'fc.weight' (node %w)", err.message);
    CHECK_INT_EQ(CFX_E_KEY, err.status);
    cfx_state_set(state, "fc.weight", w.as.tensor, &err);
    y = run_text(text, state, NULL, 0, &err);
    cfx_state_free(state);
    REQUIRE(y.kind == CFX_DATUM_LIST);
    size_t n;
    cfx_datum *items = cfx_datum_items(y, &n);
    CHECK(((const float *)cfx_tensor_data(items[0].as.tensor))[1] == 5);
    CHECK(cfx_datum_items(items[1], &n)[0].as.tensor == w.as.tensor);
    cfx_datum_release(y);
    cfx_datum_release(w);
}

TEST(what_is_not_lowered_is_named)
{
    cfx_error err = {0};
    cfx_datum y = run_text("graph():\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %a = call_method[target=relu](%x)  @ model.py:3\n"
                           "  %b = call_function[target=torch.relu](%a)\n"
                           "  %c = call_module[target=fc](%b)\n"
                           "  output(%c)\n", NULL, NULL, 0, &err);
    CHECK(y.kind == CFX_DATUM_INVALID);
    CHECK_INT_EQ(CFX_E_TYPE, err.status);
    CHECK_STR_EQ(
        "model.py:3: 'relu' is not an operator with a kernel; lower the graph first (node %a); "
        "'torch.relu' is not an operator with a kernel; lower the graph first (node %b); "
        "'fc' is not an operator with a kernel; lower the graph first (node %c)",
        err.message);
}

TEST(a_failing_instruction_says_where)
{
    cfx_error err = {0};
    cfx_datum y = run_text("graph():\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %bad = call_function[target=cfx.ops.relu](\"text\")  @ model.py:12\n"
                           "  output(%bad)\n", NULL, &(cfx_datum){.kind = CFX_DATUM_NONE}, 1, &err);
    CHECK(y.kind == CFX_DATUM_INVALID);
    CHECK_STR_EQ("model.py:12: relu(): argument 'self' must be Tensor, not str (node %bad)",
                 err.message);
}

/* ---- regions ------------------------------------------------------------------------------- */

static const char branches[] =
    "graph():\n"
    "  %p = placeholder[target=p]()\n"
    "  %x = placeholder[target=x]()\n"
    "  %c = call_function[target=cfx.ops.cond](%p, graph {\n"
    "      %a = placeholder[target=a]()\n"
    "      %y = call_function[target=cfx.ops.relu](%a)  @ model.py:5\n"
    "      output(%y)\n"
    "    }, graph {\n"
    "      %a = placeholder[target=a]()\n"
    "      output(%a)\n"
    "    }, [%x])\n"
    "  output(%c)\n";

TEST(cond_runs_one_of_two)
{
    cfx_error err = {0};
    float data[] = {-1, 2};
    cfx_datum in[] = {cfx_datum_bool(true), vector(data, 2)};
    cfx_datum y = run_text(branches, NULL, in, 2, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK(((const float *)cfx_tensor_data(y.as.tensor))[0] == 0);
    cfx_datum_release(y);
    in[0] = cfx_datum_float(0);
    y = run_text(branches, NULL, in, 2, &err);
    CHECK(y.as.tensor == in[1].as.tensor);
    cfx_datum_release(y);
    y = run_text(branches, NULL, (cfx_datum[]){in[1], in[1]}, 2, &err);
    CHECK_STR_EQ("Boolean value of Tensor with more than one value is ambiguous (node %c)",
                 err.message);
    in[0] = cfx_datum_bool(true);
    y = run_text(branches, NULL, (cfx_datum[]){in[0], in[0]}, 1, &err);
    y = run_text(branches, NULL, (cfx_datum[]){in[0], cfx_datum_none()}, 2, &err);
    CHECK_STR_EQ("model.py:5: relu(): argument 'self' must be Tensor, not None (node %y)",
                 err.message);
    cfx_datum_release(in[1]);
}

TEST(for_loop_counts)
{
    cfx_error err = {0};
    static const char text[] = "graph():\n"
                               "  %n = placeholder[target=n]()\n"
                               "  %f = call_function[target=cfx.ops.for_loop](%n, graph {\n"
                               "      %i = placeholder[target=i]()\n"
                               "      %last = placeholder[target=last]()\n"
                               "      %all = placeholder[target=all]()\n"
                               "      output((%i, (%all, %last)))\n"
                               "    }, [None, None])\n"
                               "  output(%f)\n";
    cfx_datum n = cfx_datum_int(3);
    cfx_datum y = run_text(text, NULL, &n, 1, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(y.kind == CFX_DATUM_TUPLE);
    cfx_buffer out;
    cfx_buffer_init(&out, NULL);
    cfx_datum_print(y, NULL, cfx_buffer_sink(&out), &err);
    CHECK_STR_EQ("(2, (((None, None), 0), 1))", out.data);
    cfx_buffer_free(&out);
    cfx_datum_release(y);
}

TEST(while_loop_stops)
{
    cfx_error err = {0};
    static const char text[] = "graph():\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %w = call_function[target=cfx.ops.while_loop](graph {\n"
                               "      %a = placeholder[target=a]()\n"
                               "      %b = placeholder[target=b]()\n"
                               "      output(%a)\n"
                               "    }, graph {\n"
                               "      %a = placeholder[target=a]()\n"
                               "      %b = placeholder[target=b]()\n"
                               "      output((%b, False))\n"
                               "    }, [True, %x])\n"
                               "  output(%w)\n";
    cfx_datum x = cfx_datum_int(1);
    cfx_datum y = run_text(text, NULL, &x, 1, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(y.kind == CFX_DATUM_TUPLE);
    size_t n;
    CHECK(!cfx_datum_items(y, &n)[0].as.b);
    cfx_datum_release(y);
}

/* An input that stands behind calls has a slot of its own from the start. */
TEST(inputs_may_stand_anywhere)
{
    cfx_error err = {0};
    const cfx_datum in[] = {cfx_datum_int(1), cfx_datum_int(2), cfx_datum_int(10)};
    cfx_datum y = run_text("graph():\n"
                           "  %a = placeholder[target=a]()\n"
                           "  %b = placeholder[target=b]()\n"
                           "  %s = call_function[target=cfx.ops.add](%a, %b)\n"
                           "  %z = placeholder[target=z]()\n"
                           "  %m = call_function[target=cfx.ops.mul](%s, %z)\n"
                           "  output(%m)\n", NULL, in, 3, &err);
    CHECK_STR_EQ("", err.message);
    CHECK_INT_EQ(CFX_DATUM_INT, y.kind);
    CHECK_INT_EQ(30, y.as.i);
    cfx_datum_release(y);
}

/* A loop that packs its state once more at every turn: what it makes is freed recursively. */
TEST(what_a_loop_nests_has_a_limit)
{
    cfx_error err = {0};
    cfx_datum y = run_text("graph():\n"
                           "  %w = call_function[target=cfx.ops.for_loop](1000000, graph {\n"
                           "      %i = placeholder[target=i]()\n"
                           "      %s = placeholder[target=s]()\n"
                           "      output(([%s],))\n"
                           "    }, [1])                                @ model.py:3\n"
                           "  output(%w)\n", NULL, NULL, 0, &err);
    CHECK_INT_EQ(CFX_DATUM_INVALID, y.kind);
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    CHECK_STR_EQ("model.py:3: lists and tuples nest more than 1000 deep (node %w)", err.message);
}

/* Where a double no longer tells neighbours apart, and where the next step would overflow. */
TEST(ranges_at_the_ends_of_what_fits)
{
    static const struct { const char *range; int64_t first, last; size_t n; } rows[] = {
        {"range(4611686018427387904, 4611686018427388204, 1)", 4611686018427387904,
         4611686018427388203, 300},
        {"range(9223372036854775800, 9223372036854775807, 5)", 9223372036854775800,
         9223372036854775805, 2},
        {"range(-9223372036854775800, -9223372036854775807, -4)", -9223372036854775800,
         -9223372036854775804, 2},
        {"range(3, 0, -1)", 3, 1, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cfx_error err = {0};
        char text[120];
        snprintf(text, sizeof text, "graph():\n  output(%s)\n", rows[i].range);
        cfx_datum y = run_text(text, NULL, NULL, 0, &err);
        CHECK_STR_EQ("", err.message);
        size_t n = 0;
        const cfx_datum *items = cfx_datum_items(y, &n);
        CHECK_INT_EQ(rows[i].n, n);
        REQUIRE(n > 0);
        CHECK_INT_EQ(rows[i].first, items[0].as.i);
        CHECK_INT_EQ(rows[i].last, items[n - 1].as.i);
        cfx_datum_release(y);
    }
}

/* ---- interrupting -------------------------------------------------------------------------- */

static bool count_down(void *ctx) { return --*(int *)ctx == 0; }

/* Runs it until its `n`-th question. */
static cfx_status run_until(const char *text, int n, int *left, cfx_error *err)
{
    *left = n;
    const cfx_runtime_options options = {.threads = 1, .interrupted = count_down,
                                         .interrupted_ctx = left};
    cfx_graph *g = parse(text, NULL, err);
    cfx_program *p = g ? cfx_program_new(g, NULL, NULL, err) : NULL;
    cfx_runtime *rt = cfx_runtime_new(&options, err);
    cfx_datum result = cfx_program_run(p, rt, NULL, 0, err);
    const bool ended = result.kind != CFX_DATUM_INVALID;
    cfx_datum_release(result);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    cfx_graph_release(g);
    return ended ? CFX_OK : err->status;
}

TEST(a_run_can_be_interrupted)
{
    cfx_error err = {0};
    int left;
    static const char endless[] = "graph():\n"
                                  "  %w = call_function[target=cfx.ops.while_loop](graph {\n"
                                  "      %a = placeholder[target=a]()\n"
                                  "      output(%a)\n"
                                  "    }, graph {\n"
                                  "      %a = placeholder[target=a]()\n"
                                  "      output((%a,))\n"
                                  "    }, [True])                          @ model.py:3\n"
                                  "  output(%w)\n";
    CHECK_INT_EQ(CFX_E_INTERRUPTED, run_until(endless, 1, &left, &err));
    CHECK_STR_EQ("model.py:3: the run was interrupted (node %w)", err.message);
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_E_INTERRUPTED, run_until(endless, 1000, &left, &err));
    CHECK_STR_EQ("model.py:3: the run was interrupted (node %w)", err.message);
    static const char two[] = "graph():\n"
                              "  %a = call_function[target=cfx.ops.add](1, 2)\n"
                              "  %b = call_function[target=cfx.ops.add](%a, 2)\n"
                              "  output(%b)\n";
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_E_INTERRUPTED, run_until(two, 2, &left, &err));
    CHECK_STR_EQ("the run was interrupted (node %b)", err.message);
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_OK, run_until(two, 10, &left, &err));
    CHECK_INT_EQ(8, left);  /* once for each instruction */
}

/* ---- types and shapes ---------------------------------------------------------------------- */

static cfx_status note(void *ctx, const char *node, cfx_datum result)
{
    cfx_buffer *out = ctx;
    cfx_buffer_append(out, node, strlen(node));
    cfx_buffer_append(out, "=", 1);
    cfx_datum_print(result, NULL, cfx_buffer_sink(out), NULL);
    return cfx_buffer_append(out, " ", 1);
}

TEST(shapes_propagate_through_regions)
{
    cfx_error err = {0};
    const int64_t size = 4;
    cfx_graph *g = parse(branches, NULL, &err);
    cfx_program *p = cfx_program_new(g, NULL, NULL, &err);
    cfx_graph_release(g);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    REQUIRE(p && rt);
    CHECK_STR_EQ("x", cfx_program_input(p, 1));
    CHECK(cfx_program_input(p, 2) == NULL && cfx_program_num_inputs(p) == 2);
    cfx_datum in[] = {cfx_datum_bool(true), cfx_datum_tensor(cfx_tensor_new_abstract(
                                                CFX_DTYPE_FLOAT32, &size, 1, NULL, &err))};
    cfx_buffer out;
    cfx_buffer_init(&out, NULL);
    cfx_datum y = cfx_program_infer(p, rt, NULL, in, 2, note, &out, &err);
    CHECK(y.kind == CFX_DATUM_TENSOR && cfx_tensor_is_abstract(y.as.tensor));
    CHECK_STR_EQ("p=True x=float32[4] c/a=float32[4] c/y=float32[4] c/a=float32[4] c=float32[4] ",
                 out.data);
    cfx_buffer_free(&out);
    cfx_datum_release(y);
    cfx_datum_release(in[1]);
    cfx_program_free(p);
    cfx_runtime_free(rt);
}

/* ---- want of memory ------------------------------------------------------------------------ */

static cfx_status build_and_run(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    float data[] = {-1, 2};
    cfx_graph *g = arg;
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    const cfx_program_options memory = {.allocator = a};
    cfx_program *p = rt ? cfx_program_new(g, NULL, &memory, &err) : NULL;
    cfx_datum in[] = {cfx_datum_bool(true), vector(data, 2)};
    cfx_datum y = p ? cfx_program_run(p, rt, in, 2, &err) : cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    cfx_datum_release(y);
    cfx_datum_release(in[1]);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    cfx_error err = {0};
    cfx_graph *g = parse(branches, NULL, &err);
    REQUIRE(g != NULL);
    CHECK(test_oom_sweep(build_and_run, g) > 10);
    cfx_graph_release(g);
}
