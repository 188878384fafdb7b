/* normalize.c - tests of normalize and annotate beyond tests/golden/opt/{normalize,annotate}.ir. */
#include "check.h"
#include "test_alloc.h"
#include "text_tools.h"
#include "pass/pass_impl.h"

#include <cfx/pass.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

/* The line of %n after a pass has run twice, the second time without a change. */
static const char *line(cfx_pass_fn *pass, const char *call, const void *opts)
{
    char text[512];
    bool changed = false;
    snprintf(text, sizeof text, "graph(): %%x: &torch.Tensor = placeholder[target=x]() %%y = "
             "placeholder[target=y]() %%n = %s output(%%n)", call);
    cfx_graph *g = parse(text, NULL, NULL);
    if (!CHECK(g != NULL))
        return NULL;
    CHECK_INT_EQ(CFX_OK, pass(g, NULL, opts, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, pass(g, NULL, opts, &changed, NULL));
    CHECK(!changed);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    const char *whole = text_of(g);
    cfx_graph_release(g);
    static char out[256];
    const char *start = strstr(whole, "%n") + 2;
    snprintf(out, sizeof out, "%.*s", (int)strcspn(start, "\n"), start);
    return out;
}

#define F(target, args) "call_function[target=" target "](" args ")"
#define M(target, args) "call_method[target=" target "](" args ")"
#define CHECK_LINE(want, pass, call, opts) CHECK_STR_EQ(want, line(cfxi_pass_##pass, call, opts))

TEST(arguments)
{
    CHECK_LINE(" = " F("torch.add", "%x, %y, alpha=2"), normalize,
               F("torch.add", "alpha=2, other=%y, input=%x"), NULL);
    CHECK_LINE(" = " F("torch.add", "%x, %y"), normalize, F("torch.add", "%x, %y, alpha=1"), NULL);
    CHECK_LINE(" = " F("torch.add", "%x, %y, alpha=1.0"), normalize,
               F("torch.add", "%x, %y, alpha=1.0"), NULL);
    CHECK_LINE(" = " F("torch.flatten", "%x, 1"), normalize,
               F("torch.flatten", "%x, end_dim=-1, start_dim=1"), NULL);
    CHECK_LINE(" = " F("torch.flatten", "%x, end_dim=2"), normalize,
               F("torch.flatten", "%x, end_dim=2"), NULL);
    CHECK_LINE(" = " F("torch.nn.functional.dropout", "%x, 0.5, False"), normalize,
               F("torch.nn.functional.dropout", "%x, training=False, p=0.5"), NULL);
}

TEST(what_does_not_fit_stays)
{
    static const char *const calls[] = {
        F("torch.add", "%x, %y, colour=3"), F("torch.add", "%x, %y, 1, 2, 3"),
        F("torch.max", "%x, dim=1"), M("view", "%x, 2, 3"), F("my.function", "%x, b=1"),
        F("torch.add", "%x, %y, other=%y"),
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char want[128];
        snprintf(want, sizeof want, " = %s", calls[i]);
        CHECK_LINE(want, normalize, calls[i], NULL);
    }
}

TEST(operators)
{
    const cfx_normalize_options trusting = {.inputs_are_tensors = true};
    CHECK_LINE(" = " F("torch.mul", "%x, 2"), normalize, F("operator.mul", "%x, 2"), NULL);
    CHECK_LINE(" = " F("operator.mul", "%y, 2"), normalize, F("operator.mul", "%y, 2"), NULL);
    CHECK_LINE(" = " F("torch.mul", "%y, 2"), normalize, F("operator.mul", "%y, 2"), &trusting);
    CHECK_LINE(" = " F("operator.sub", "2, %x"), normalize, F("operator.sub", "2, %x"), &trusting);
    CHECK_LINE(" = " M("add_", "%x, 1"), normalize, M("add_", "%x, 1"), NULL);
    CHECK_LINE(" = " F("torch.nn.functional.relu", "%x"), normalize,
               F("torch.nn.functional.relu", "%x"), NULL);
}

TEST(one_of_both)
{
    const cfx_normalize_options args = {.args_only = true};
    const cfx_normalize_options names = {.operators_only = true};
    CHECK_LINE(" = " M("add", "%x, %y"), normalize, M("add", "%x, other=%y"), &args);
    CHECK_LINE(" = " F("torch.add", "%x, other=%y"), normalize, M("add", "%x, other=%y"), &names);
}

TEST(types)
{
    const cfx_annotate_options trusting = {.inputs_are_tensors = true};
    CHECK_LINE(" = " M("neg", "%y"), annotate, M("neg", "%y"), NULL);
    CHECK_LINE(": &torch.Tensor = " M("neg", "%y"), annotate, M("neg", "%y"), &trusting);
    CHECK_LINE(": &torch.Tensor = " F("torch.neg", "%y"), annotate, F("torch.neg", "%y"), NULL);
    CHECK_LINE(" = " F("operator.getitem", "%x, 0"), annotate, F("operator.getitem", "%x, 0"),
               NULL);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse("graph(): %x: &torch.Tensor = placeholder[target=x]() %n = "
                         M("add", "%x, alpha=2, other=%x") " %m = " F("torch.exp", "%n")
                         "output(%m)", a, &err);
    if (g)
        ((cfx_pass_fn *)(uintptr_t)arg)(g, NULL, NULL, NULL, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)cfxi_pass_normalize) > 3);
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)cfxi_pass_annotate) > 3);
}
