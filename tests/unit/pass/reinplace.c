/* reinplace.c - tests of functionalize, reinplace and what they know of memory, beyond
 * tests/golden/opt/{functionalize,reinplace}.ir. */
#include "check.h"
#include "test_alloc.h"
#include "text_tools.h"
#include "pass/pass_impl.h"

#include <cfx/pass.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

/* The text of what a pass makes of a text; twice, as a second run must change nothing. */
static const char *after(cfx_pass_fn *pass, const char *text, const void *opts)
{
    bool changed = false;
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(text, NULL, &err);
    if (!g || !CHECK_INT_EQ(CFX_OK, pass(g, NULL, opts, NULL, &err)))
        return err.message[0] ? "failed" : "";
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, pass(g, NULL, opts, &changed, NULL));
    CHECK(!changed);
    const char *result = text_of(g);
    cfx_graph_release(g);
    return result;
}

static bool has(const char *text, const char *part)
{
    bool found = strstr(text, part) != NULL;
    if (!found)
        printf("    %s is not in\n%s", part, text);
    return found;
}

#define X "%x = placeholder[target=x]() "
#define F(name, target, args) "%" name " = call_function[target=" target "](" args ") "
#define M(name, target, args) "%" name " = call_method[target=" target "](" args ") "

static const cfx_functionalize_options one_dtype = {.same_dtypes = true};

/* ---- functionalize ------------------------------------------------------------------------- */

TEST(a_chain_of_writes)
{
    const char *text = after(cfxi_pass_functionalize, "graph(): " X F("y", "torch.exp", "%x")
                             M("a", "add_", "%y, %x") M("b", "mul_", "%a, 2") M("c", "neg_", "%y")
                             "output((%y, %b))", &one_dtype);
    CHECK(has(text, "%a = call_method[target=add](%y, %x)"));
    CHECK(has(text, "%b = call_method[target=mul](%a, 2)"));
    CHECK(has(text, "%c = call_method[target=neg](%b)"));
    CHECK(has(text, "output((%c, %c))"));
}

typedef struct left_job {
    size_t n;
    const char *why;
    cfx_status answer;
} left_job;

static cfx_status note(void *ctx, cfx_node *n, const char *why, cfx_error *err)
{
    left_job *job = ctx;
    (void)n;
    job->n++;
    job->why = why;
    return job->answer == CFX_OK ? CFX_OK : cfx_error_set(err, job->answer, "stop");
}

static const char *left_by(const char *text)
{
    static left_job job;
    job = (left_job){0};
    const cfx_functionalize_options options = {.same_dtypes = true, .left = note, .ctx = &job};
    cfx_graph *g = parse(text, NULL, NULL);
    const char *before = text_of(g);
    bool changed = false;
    CHECK_INT_EQ(CFX_OK, cfxi_pass_functionalize(g, NULL, &options, &changed, NULL));
    CHECK(!changed);
    CHECK_STR_EQ(before, text_of(g));
    cfx_graph_release(g);
    return job.n == 1 ? job.why : "";
}

TEST(what_stays_and_why)
{
    static const char *const outside = "the tensor it writes to may be visible outside the graph";
    static const char *const view = "an alias of the tensor it writes to is used later";
    CHECK_STR_EQ(outside, left_by("graph(): " X M("a", "add_", "%x, 1") "output(%a)"));
    CHECK_STR_EQ(outside, left_by("graph(): %w = get_attr[target=w]() " M("a", "neg_", "%w")
                                  "output(%a)"));
    CHECK_STR_EQ(outside, left_by("graph(): " X F("y", "torch.exp", "%x")
                                  F("u", "my.function", "%y") M("a", "neg_", "%y") "output(%a)"));
    CHECK_STR_EQ(outside, left_by("graph(): " X "%m = call_module[target=m](%x) "
                                  M("a", "neg_", "%m") "output(%a)"));
    CHECK_STR_EQ(view, left_by("graph(): " X F("y", "torch.exp", "%x") M("v", "view", "%y, -1")
                               M("a", "neg_", "%y") "output((%a, %v))"));
    CHECK_STR_EQ(view, left_by("graph(): " X F("y", "torch.exp", "%x") M("v", "view", "%y, -1")
                               M("a", "neg_", "%v") "output((%a, %y))"));
    CHECK_STR_EQ(view, left_by("graph(): " X F("y", "torch.exp", "%x")
                               F("c", "torch.chunk", "%y, 2")
                               F("i", "operator.getitem", "%c, 0") M("a", "neg_", "%i")
                               "output(%y)"));
}

TEST(the_listener_can_stop_it)
{
    left_job job = {.answer = CFX_E_HOST};
    const cfx_functionalize_options options = {.same_dtypes = true, .left = note, .ctx = &job};
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse("graph(): " X M("a", "add_", "%x, 1") "output(%a)", NULL, NULL);
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_functionalize(g, NULL, &options, NULL, &err));
    CHECK_STR_EQ("stop", err.message);
    cfx_graph_release(g);
}

TEST(a_view_that_is_not_used_later_does_not_matter)
{
    const char *text = after(cfxi_pass_functionalize, "graph(): " X F("y", "torch.exp", "%x")
                             M("v", "view", "%y, -1") M("s", "sum", "%v") M("a", "neg_", "%y")
                             "output((%a, %s))", NULL);
    CHECK(has(text, "%a = call_method[target=neg](%y)"));
}

TEST(the_flag_inplace_goes)
{
    const char *text = after(cfxi_pass_functionalize, "graph(): " X F("y", "torch.exp", "%x")
                             F("a", "torch.nn.functional.hardtanh", "%y, -1, 1, True")
                             F("b", "torch.nn.functional.elu", "%a, inplace=True, alpha=2.0")
                             "output(%y)", NULL);
    CHECK(has(text, "%a = call_function[target=torch.nn.functional.hardtanh](%y, -1, 1)"));
    CHECK(has(text, "%b = call_function[target=torch.nn.functional.elu](%a, alpha=2.0)"));
    CHECK(has(text, "output(%b)"));
}

/* ---- reinplace ----------------------------------------------------------------------------- */

static int always(void *ctx, cfx_node *n, cfx_node *x)
{
    (void)n;
    (void)x;
    return ctx ? *(int *)ctx : 1;
}

static const cfx_reinplace_options trusting = {.fits = always};

TEST(functions_without_an_in_place_form_become_methods)
{
    const char *text = after(cfxi_pass_reinplace, "graph(): " X F("y", "torch.exp", "%x")
                             F("a", "torch.add", "%y, %x, alpha=2") F("b", "operator.mul", "%a, 3")
                             "output(%b)", &trusting);
    CHECK(has(text, "%a = call_method[target=add_](%y, %x, alpha=2)"));
    CHECK(has(text, "%b = call_function[target=operator.imul](%y, 3)"));
    CHECK(has(text, "output(%y)"));
}

TEST(what_is_needed_is_not_written_to)
{
    const char *text = after(cfxi_pass_reinplace, "graph(): " X "%w = get_attr[target=w]() "
                             F("a", "torch.add", "%x, 1") F("b", "torch.add", "%w, 1")
                             F("c", "torch.add", "%a, %a") F("d", "torch.add", "%a, 1")
                             M("v", "view", "%b, -1") F("e", "torch.add", "%b, 1")
                             "output((%c, %d, %v, %e))", &trusting);
    CHECK(has(text, "%a = call_function[target=torch.add](%x, 1)"));
    CHECK(has(text, "%b = call_function[target=torch.add](%w, 1)"));
    CHECK(has(text, "%c = call_function[target=torch.add](%a, %a)"));
    CHECK(has(text, "%d = call_method[target=add_](%a, 1)"));
    CHECK(has(text, "%e = call_function[target=torch.add](%b, 1)"));
}

#define A(name, target, args) F(name, "torch.ops.aten." target, args)

TEST(scatters)
{
    const char *text = after(cfxi_pass_reinplace, "graph(): " A("z", "zeros.default", "[2, 2]")
                             A("d", "diagonal.default", "%z") A("a", "add.Tensor", "%d, 1")
                             A("s", "diagonal_scatter.default", "%z, %a") "output([%s])",
                             &trusting);
    CHECK(has(text, "%a = call_function[target=torch.ops.aten.add_.Tensor](%d, 1)"));
    CHECK(has(text, "output([%z])"));
    CHECK(!strstr(text, "scatter"));
    text = after(cfxi_pass_reinplace, "graph(): " X A("z", "zeros.default", "[2, 2]")
                 A("s", "select_scatter.default", "%z, %x, 0, 1") "output(%s)", &trusting);
    CHECK(has(text, "%select_int = call_function[target=torch.ops.aten.select.int](%z, 0, 1)"));
    CHECK(has(text, "[target=torch.ops.aten.copy_.default](%select_int, %x)"));
    CHECK(has(text, "output(%z)"));
}

TEST(a_host_that_fails)
{
    int answer = -1;
    const cfx_reinplace_options options = {.fits = always, .ctx = &answer};
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse("graph(): " X F("y", "torch.exp", "%x") F("a", "torch.neg", "%y")
                         "output(%a)", NULL, NULL);
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_reinplace(g, NULL, &options, NULL, &err));
    CHECK_STR_EQ("could not tell whether the result of node %a fits into %y", err.message);
    cfx_graph_release(g);
}

/* ---- memory and size ----------------------------------------------------------------------- */

TEST(long_chains)
{
    for (int back = 0; back < 2; back++) {
        cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
        cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
        cfx_value y = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.exp", &x, 1,
                                                    NULL, 0, NULL));
        for (int i = 0; i < 50000; i++)
            (void)cfx_graph_call(g, CFX_OP_CALL_METHOD, "neg_", &y, 1, NULL, 0, NULL);
        cfx_graph_output(g, y, NULL);
        CHECK_INT_EQ(CFX_OK, cfxi_pass_functionalize(g, NULL, NULL, NULL, NULL));
        const cfx_node *last = cfx_node_prev(cfx_graph_last(g));
        CHECK(cfx_node_input(cfx_graph_last(g), 0) == last);
        if (back)
            CHECK_INT_EQ(CFX_OK, cfxi_pass_reinplace(g, NULL, NULL, NULL, NULL));
        CHECK(!back || cfx_node_input(cfx_graph_last(g), 0) == y.as.node);
        cfx_graph_release(g);
    }
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse("graph(): " X F("y", "torch.exp", "%x") M("a", "add_", "%y, %x")
                         M("b", "neg_", "%y") A("z", "zeros.default", "[2, 2]")
                         A("d", "diagonal.default", "%z") A("e", "add.Tensor", "%d, 1")
                         A("s", "diagonal_scatter.default", "%z, %e") "output((%b, %s))", a, &err);
    if (g)
        ((cfx_pass_fn *)(uintptr_t)arg)(g, NULL, arg == (void *)(uintptr_t)cfxi_pass_reinplace
                                                     ? (const void *)&trusting : NULL, NULL, &err);
    if (g)
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)cfxi_pass_functionalize) > 5);
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)cfxi_pass_reinplace) > 5);
}
