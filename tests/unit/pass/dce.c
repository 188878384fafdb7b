/* dce.c - tests of src/pass: dead-code elimination, impure calls, the table of passes. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <cfx/embed/graph.h>
#include <cfx/embed/host.h>

static cfx_node *call(cfx_graph *g, const char *target, cfx_value arg)
{
    return cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target, &arg, 1, NULL, 0, NULL);
}

static bool run_dce(cfx_graph *g)
{
    bool changed = false;
    cfx_error err = {.status = CFX_OK};
    if (!CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("dce"), g, NULL, NULL, &changed, &err)))
        printf("    %s\n", err.message);
    return changed;
}

TEST(chains_of_dead_nodes_go)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_graph_placeholder(g, "unused", NULL);
    cfx_node *relu = call(g, "torch.relu", x);
    cfx_node *neg = call(g, "torch.neg", cfx_value_node(relu));
    call(g, "torch.abs", cfx_value_node(neg));
    cfx_graph_get_attr(g, "weight", NULL);
    cfx_graph_call(g, CFX_OP_CALL_METHOD, "add_", &x, 1, NULL, 0, NULL);
    cfx_graph_call(g, CFX_OP_CALL_MODULE, "mod", &x, 1, NULL, 0, NULL);
    cfx_graph_output(g, cfx_value_node(relu), NULL);
    CHECK(run_dce(g));
    CHECK_STR_EQ("x unused relu add_ output", node_names(g));
    CHECK(!run_dce(g));
    const cfx_dce_options like = {.like_torch_fx = true};
    CHECK_INT_EQ(CFX_OK, cfxi_pass_dce(g, NULL, &like, NULL, NULL));
    CHECK_STR_EQ("x unused relu output", node_names(g));
    cfx_graph_release(g);
}

/* As torch.fx: without an output everything but the inputs goes; what follows it goes too. */
TEST(graphs_that_are_not_quite_in_order)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    CHECK(!run_dce(g));
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    call(g, "torch.relu", x);
    CHECK(run_dce(g));
    CHECK_STR_EQ("x", node_names(g));
    cfx_graph_output(g, x, NULL);
    call(g, "torch.relu", x);
    cfx_node *late = cfx_graph_placeholder(g, "late", NULL);
    cfx_graph_output(g, cfx_value_node(late), NULL);
    CHECK(run_dce(g));
    CHECK_STR_EQ("x output late output_1", node_names(g));
    cfx_graph_release(g);
}

TEST(graphs_that_lint_rejects_are_left_alone)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *a = call(g, "f.a", cfx_value_int(3));
    cfx_node *b = call(g, "f.b", cfx_value_node(a));
    cfx_node_append(b, a, NULL);
    cfx_graph_output(g, cfx_value_int(1), NULL);
    cfx_error err = {.status = CFX_OK};
    bool changed = true;
    CHECK_INT_EQ(CFX_E_GRAPH, cfxi_pass_dce(g, NULL, NULL, &changed, &err));
    CHECK(strstr(err.message, "used before it has been defined") != NULL);
    CHECK_STR_EQ("b a output", node_names(g));
    cfx_graph_release(g);
}

TEST(functions_with_effects_by_name)
{
    static const char *const impure[] = {
        "operator.setitem", "_operator.setitem", "torch._assert", "torch.rand", "torch.randn_like",
        "torch.ops.aten.add_.Tensor", "torch.ops.aten.sum.IntList_out",
        "torch.ops.aten.rand.default", "torch.ops.aten.native_dropout.default",
        "torch.ops.aten._assert_async.msg",
        "torch.ops.aten.copy_.default", "torch._C._set_grad_enabled",
        "torch.nn.functional.dropout", "torch.dropout", "torch.nn.functional.gumbel_softmax",
        "torch.ops.aten.binomial.default", "torch.binomial", "builtins.print",
    };
    static const char *const dropped_by_torch_fx[] = {
        "operator.iadd", "torch.relu_", "builtins.next",
    };
    static const char *const pure[] = {
        "torch.relu", "torch.empty", "torch.ops.aten.add.Tensor", "torch.ops.aten.add",
        "torch.ops.aten.__and__.Tensor", "torch.ran", "torch.randx", "torch.ops.a", "my.function",
    };
    const size_t writes = sizeof dropped_by_torch_fx / sizeof *dropped_by_torch_fx;
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof impure / sizeof *impure; i++)
        if (!CHECK_INT_EQ(1, cfx_node_is_impure(call(g, impure[i], cfx_value_none()))))
            printf("    %s\n", impure[i]);
    for (size_t i = 0; i < sizeof pure / sizeof *pure; i++)
        if (!CHECK_INT_EQ(0, cfx_node_is_impure(call(g, pure[i], cfx_value_none()))))
            printf("    %s\n", pure[i]);
    for (size_t i = 0; i < writes; i++)
        CHECK_INT_EQ(1, cfx_node_is_impure(call(g, dropped_by_torch_fx[i], cfx_value_none())));
    CHECK(run_dce(g));
    CHECK_INT_EQ(sizeof impure / sizeof *impure + writes, cfx_graph_size(g));
    const cfx_dce_options like = {.like_torch_fx = true};
    CHECK_INT_EQ(CFX_OK, cfxi_pass_dce(g, NULL, &like, NULL, NULL));
    CHECK_INT_EQ(sizeof impure / sizeof *impure, cfx_graph_size(g));
    CHECK_INT_EQ(1, cfx_node_is_impure(cfx_graph_placeholder(g, "x", NULL)));
    CHECK_INT_EQ(1, cfx_node_is_impure(cfx_graph_output(g, cfx_value_none(), NULL)));
    CHECK_INT_EQ(0, cfx_node_is_impure(cfx_graph_get_attr(g, "w", NULL)));
    cfx_graph_release(g);
}

/* What nothing is known about is dropped, unless it is to be strict. */
TEST(unknown_calls)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    call(g, "my.function", x);
    call(g, "torch.relu", x);
    call(g, "torch.not_in_the_table", x);
    cfx_graph_call(g, CFX_OP_CALL_METHOD, "my_method", &x, 1, NULL, 0, NULL);
    cfx_graph_call(g, CFX_OP_CALL_MODULE, "mine", &x, 1, NULL, 0, NULL);
    const cfx_dce_options strict = {.strict = true};
    CHECK_INT_EQ(CFX_OK, cfxi_pass_dce(g, NULL, &strict, NULL, NULL));
    CHECK_STR_EQ("x function my_method mine", node_names(g));
    CHECK(run_dce(g));
    CHECK_STR_EQ("x", node_names(g));
    cfx_graph_release(g);
}

/* ---- the caller's opinion ------------------------------------------------------------------ */

typedef struct opinion {
    char seen[128];
    size_t used;
    const char *keep;  /* this one is impure */
    const char *fail;  /* this one cannot be told */
} opinion;

static int ask(void *ctx, cfx_node *n)
{
    opinion *o = ctx;
    const char *name = cfx_node_name(n, NULL);
    o->used += (size_t)snprintf(o->seen + o->used, sizeof o->seen - o->used, "%s ", name);
    if (o->fail && strcmp(name, o->fail) == 0)
        return -1;
    return o->keep && strcmp(name, o->keep) == 0;
}

static cfx_graph *three_calls(void)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_node *relu = call(g, "torch.relu", x);
    call(g, "torch.neg", cfx_value_node(relu));
    cfx_graph_output(g, x, NULL);
    return g;
}

TEST(every_node_is_asked_from_the_end)
{
    cfx_graph *g = three_calls();
    opinion o = {.keep = "relu"};
    cfx_dce_options opts = {.is_impure = ask, .ctx = &o};
    bool changed = false;
    CHECK_INT_EQ(CFX_OK, cfxi_pass_dce(g, NULL, &opts, &changed, NULL));
    CHECK_STR_EQ("output neg relu x ", o.seen);
    CHECK_STR_EQ("x relu", node_names(g));
    CHECK(changed);
    o = (opinion){.keep = NULL};
    CHECK_INT_EQ(CFX_OK, cfxi_pass_dce(g, NULL, &opts, NULL, NULL));
    CHECK_STR_EQ("", node_names(g));
    cfx_graph_release(g);
}

TEST(an_opinion_that_fails)
{
    cfx_graph *g = three_calls();
    opinion o = {.keep = "output", .fail = "relu"};
    cfx_dce_options opts = {.is_impure = ask, .ctx = &o};
    bool changed = false;
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_dce(g, NULL, &opts, &changed, NULL));
    CHECK_STR_EQ("x relu output", node_names(g));
    CHECK(changed);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

/* ---- a host -------------------------------------------------------------------------------- */

typedef struct host_log {
    int asked;
    int answer;
} host_log;

static void host_count(void *ctx, void *object)
{
    (void)ctx;
    (void)object;
}

static cfx_status host_name(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    (void)object;
    (void)err;
    return out.write(out.ctx, "fn", 2);
}

static int host_impure(void *ctx, cfx_node *n)
{
    host_log *log = ctx;
    (void)n;
    log->asked++;
    return log->answer;
}

static cfx_graph *host_graph(const cfx_host *host, cfx_opcode op)
{
    static int object;
    cfx_graph *g = cfx_graph_new(NULL, host, NULL);
    for (int i = 0; i < 3; i++) {
        cfx_target t = {.object = op == CFX_OP_CALL_FUNCTION ? &object : NULL, .name = "mod",
                        .size = 3};
        cfx_graph_create(g, op, t, cfx_value_invalid(), cfx_value_invalid(), NULL,
                         cfx_value_invalid(), NULL);
    }
    return g;
}

TEST(the_host_is_asked_once_for_a_function_and_for_each_module)
{
    host_log log = {0, 1};
    cfx_host host = {.retain = host_count, .release = host_count, .repr = host_name,
                     .qualified_name = host_name, .name_hint = host_name,
                     .is_impure = host_impure, .ctx = &log};
    cfx_graph *g = host_graph(&host, CFX_OP_CALL_FUNCTION);
    CHECK(!run_dce(g));
    CHECK_INT_EQ(1, log.asked);
    cfx_graph_release(g);
    log = (host_log){0, 1};
    g = host_graph(&host, CFX_OP_CALL_MODULE);
    CHECK(!run_dce(g));
    CHECK_INT_EQ(3, log.asked);
    log.answer = 0;
    CHECK(run_dce(g));
    CHECK_INT_EQ(0, cfx_graph_size(g));
    cfx_graph_release(g);
    log = (host_log){0, -1};
    g = host_graph(&host, CFX_OP_CALL_FUNCTION);
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_dce(g, NULL, NULL, NULL, NULL));
    CHECK_INT_EQ(3, cfx_graph_size(g));
    cfx_graph_release(g);
}

/* ---- regions ------------------------------------------------------------------------------- */

TEST(regions_three_deep_are_swept)
{
    cfx_graph *g = nested_graph(NULL, NULL, 3);
    cfx_graph *at = g;
    for (int i = 0; i < 3; i++) {
        cfx_node *cond = cfx_graph_find(at, "cond");
        cfx_graph *region = cfx_value_graph(cfx_node_arg(cond, 1));
        cfx_value item = cfx_value_items(cfx_node_arg(cfx_graph_last(at), 0), NULL)[0];
        cfx_value pair[] = {item, cfx_value_node(cond)};  /* somebody uses the cond now */
        cfx_node_set_arg(cfx_graph_last(at), 0, cfx_value_tuple(at, pair, 2, NULL), NULL);
        at = region;
    }
    cfx_insert_point before = {cfx_graph_last(at), false};
    cfx_graph_set_insert_point(at, before, NULL);
    call(at, "torch.neg", cfx_value_node(cfx_graph_first(at)));
    CHECK(run_dce(g));
    CHECK_STR_EQ("x relu mod output", node_names(at));
    CHECK_STR_EQ("x relu cond output", node_names(g));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

TEST(an_effect_in_a_region_keeps_its_operator)
{
    cfx_graph *g = nested_graph(NULL, NULL, 3);
    cfx_graph *at = g;
    for (int i = 0; i < 3; i++)
        at = cfx_value_graph(cfx_node_arg(cfx_graph_find(at, "cond"), 1));
    cfx_insert_point before = {cfx_graph_last(at), false};
    cfx_graph_set_insert_point(at, before, NULL);
    call(at, "torch._assert", cfx_value_node(cfx_graph_first(at)));
    CHECK_INT_EQ(1, cfx_node_is_impure(cfx_graph_find(g, "cond")));
    CHECK(!run_dce(g));
    CHECK(cfx_graph_find(g, "cond") != NULL);
    cfx_graph_release(g);
    g = nested_graph(NULL, NULL, 3);
    CHECK(run_dce(g));  /* nobody uses the outermost cond, and nothing happens in it */
    CHECK(cfx_graph_find(g, "cond") == NULL);
    cfx_graph_release(g);
}

TEST(inputs_and_outputs_of_regions_stay_whatever_the_opinion)
{
    cfx_graph *g = nested_graph(NULL, NULL, 1);
    cfx_graph *region = cfx_value_graph(cfx_node_arg(cfx_graph_find(g, "cond"), 1));
    opinion o = {.keep = "cond"};
    cfx_dce_options opts = {.is_impure = ask, .ctx = &o};
    CHECK_INT_EQ(CFX_OK, cfxi_pass_dce(g, NULL, &opts, NULL, NULL));
    CHECK_STR_EQ("x cond", node_names(g));
    CHECK_STR_EQ("x relu mod output", node_names(region));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

/* ---- the table ----------------------------------------------------------------------------- */

TEST(the_table_is_sorted_and_searchable)
{
    size_t n = 0;
    for (; cfx_pass_get(n); n++) {
        CHECK(cfx_pass_find(cfx_pass_get(n)->name) == cfx_pass_get(n));
        CHECK(n == 0 || strcmp(cfx_pass_get(n - 1)->name, cfx_pass_get(n)->name) < 0);
        CHECK(strlen(cfx_pass_get(n)->summary) > 0);
    }
    CHECK(n > 0);
    CHECK(cfx_pass_get(n + 10) == NULL);
    CHECK(cfx_pass_find("no such pass") == NULL);
}

static cfx_status break_names(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                              bool *changed, cfx_error *err)
{
    (void)modules;
    (void)opts;
    (void)changed;
    return cfx_node_set_name(cfx_graph_first(g), "not a name", 10, err);
}

TEST(debug_builds_verify_after_a_pass)
{
    cfx_graph *g = three_calls();
    const cfx_pass bad = {"bad", "breaks names", 0, 0, break_names};
    cfx_error err = {.status = CFX_OK};
    cfx_status status = cfx_pass_run(&bad, g, NULL, NULL, NULL, &err);
    if (status != CFX_OK) {  /* a debug build */
        CHECK_INT_EQ(CFX_E_GRAPH, status);
        CHECK(strstr(err.message, "after the pass bad: node %not a name") != NULL);
    }
    cfx_graph_release(g);
}

static cfx_status dce_body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = nested_graph(a, &err, 3);
    (void)arg;
    if (g)
        cfxi_pass_dce(g, NULL, NULL, NULL, &err);
    if (g)
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
    return err.status;
}

TEST(dce_out_of_memory)
{
    CHECK(test_oom_sweep(dce_body, NULL) > 10);
}
