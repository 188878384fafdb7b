/* cse.c - tests of src/pass: common sub-expression elimination, and the effects of calls. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <cfx/embed/graph.h>
#include <cfx/embed/hook.h>
#include <cfx/embed/host.h>

static cfx_node *call_op(cfx_graph *g, cfx_opcode op, const char *target, cfx_value arg)
{
    return cfx_graph_call(g, op, target, &arg, 1, NULL, 0, NULL);
}

static cfx_node *call(cfx_graph *g, const char *target, cfx_value arg)
{
    return call_op(g, CFX_OP_CALL_FUNCTION, target, arg);
}

static bool run_cse(cfx_graph *g)
{
    bool changed = false;
    cfx_error err = {.status = CFX_OK};
    if (!CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("cse"), g, NULL, NULL, &changed, &err)))
        printf("    %s\n", err.message);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    return changed;
}

static cfx_node *output_pair(cfx_graph *g, const cfx_node *a, const cfx_node *b)
{
    cfx_value pair[] = {cfx_value_node((cfx_node *)(uintptr_t)a),
                        cfx_value_node((cfx_node *)(uintptr_t)b)};
    return cfx_graph_output(g, cfx_value_tuple(g, pair, 2, NULL), NULL);
}

/* ---- what is merged ------------------------------------------------------------------------ */

TEST(chains_of_the_same_calls_become_one)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_node *a = call(g, "torch.neg", x);
    cfx_node *b = call(g, "torch.neg", x);
    cfx_node *c = call_op(g, CFX_OP_CALL_METHOD, "abs", cfx_value_node(b));
    cfx_node *d = call_op(g, CFX_OP_CALL_METHOD, "abs", cfx_value_node(a));
    cfx_node *out = output_pair(g, c, d);
    CHECK(run_cse(g));
    CHECK_STR_EQ("x neg abs_1 output", node_names(g));
    CHECK_INT_EQ(1, cfx_node_num_users(c));
    CHECK_INT_EQ(2, cfx_use_count(cfx_node_find_use(out, c)));
    CHECK(cfx_node_input(c, 0) == a);
    CHECK(!run_cse(g));
    cfx_graph_release(g);
}

TEST(an_opcode_is_part_of_the_target)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    output_pair(g, call(g, "neg", x), call_op(g, CFX_OP_CALL_METHOD, "neg", x));
    CHECK(!run_cse(g));
    cfx_graph_release(g);
}

/* Every kind of value, twice: `make` builds it with its own number `i`. */
static bool merges(cfx_value (*make)(cfx_graph *g, cfx_node *x, int i))
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *a = call(g, "torch.f", make(g, x, 0));
    cfx_node *b = call(g, "torch.f", make(g, x, 1));
    output_pair(g, a, b);
    bool changed = run_cse(g);
    cfx_graph_release(g);
    return changed;
}

static cfx_value make_sample(cfx_graph *g, cfx_node *x, int i)
{
    (void)i;
    return sample_value(g, x, NULL);
}

static cfx_value make_complex(cfx_graph *g, cfx_node *x, int i)
{
    (void)x;
    (void)i;
    return cfx_value_complex(g, 1.0, -2.0, NULL);
}

static cfx_value make_name(cfx_graph *g, cfx_node *x, int i)
{
    (void)x;
    (void)i;
    return cfx_value_name(g, "torch.Tensor", 12, NULL);
}

static cfx_value make_bigint(cfx_graph *g, cfx_node *x, int i)
{
    (void)x;
    return cfx_value_integer(g, i ? "-1" : "99999999999999999999999", i ? 2 : 23, NULL);
}

static cfx_value make_zeros(cfx_graph *g, cfx_node *x, int i)
{
    (void)g;
    (void)x;
    return cfx_value_float(i ? 0.0 : -0.0);
}

static cfx_value make_nan(cfx_graph *g, cfx_node *x, int i)
{
    cfx_value nan = cfx_value_float(__builtin_nan(""));
    (void)x;
    (void)i;
    return cfx_value_list(g, &nan, 1, NULL);
}

static cfx_value make_ones(cfx_graph *g, cfx_node *x, int i)
{
    (void)g;
    (void)x;
    return i ? cfx_value_bool(true) : cfx_value_int(1);
}

static cfx_value make_lengths(cfx_graph *g, cfx_node *x, int i)
{
    cfx_value pair[] = {cfx_value_node(x), cfx_value_none()};
    return cfx_value_list(g, pair, 1 + (size_t)i, NULL);
}

static cfx_value make_strings(cfx_graph *g, cfx_node *x, int i)
{
    (void)x;
    return i ? text_value(g, "ab", NULL) : text_value(g, "a\0b", NULL);
}

TEST(values_are_compared_exactly)
{
    CHECK(merges(make_sample));
    CHECK(merges(make_complex));
    CHECK(merges(make_name));
    CHECK(!merges(make_bigint));
    CHECK(!merges(make_zeros));
    CHECK(!merges(make_nan));
    CHECK(!merges(make_ones));
    CHECK(!merges(make_lengths));
    CHECK(!merges(make_strings));
}

/* A list of a thousand copies of one value: each user is changed once, not once for each. */
TEST(a_user_of_many)
{
    enum { N = 1000 };
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_value items[N];
    for (int i = 0; i < N; i++)
        items[i] = cfx_value_node(call(g, "torch.neg", x));
    cfx_node *cat = call(g, "torch.cat", cfx_value_list(g, items, N, NULL));
    cfx_graph_output(g, cfx_value_node(cat), NULL);
    CHECK(run_cse(g));
    CHECK_STR_EQ("x neg cat output", node_names(g));
    CHECK_INT_EQ(N, cfx_use_count(cfx_node_find_use(cat, items[0].as.node)));
    cfx_graph_release(g);
}

TEST(graphs_that_lint_rejects_are_left_alone)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *a = call(g, "f.a", cfx_value_int(3));
    cfx_node *b = call(g, "f.a", cfx_value_int(3));
    cfx_node *c = call(g, "f.b", cfx_value_node(b));
    cfx_node_prepend(a, c, NULL);
    cfx_error err = {.status = CFX_OK};
    bool changed = true;
    CHECK_INT_EQ(CFX_E_GRAPH, cfxi_pass_cse(g, NULL, NULL, &changed, &err));
    CHECK(strstr(err.message, "used before it has been defined") != NULL);
    CHECK_INT_EQ(3, cfx_graph_size(g));
    cfx_graph_release(g);
    g = cfx_graph_new(NULL, NULL, NULL);
    CHECK(!run_cse(g));
    cfx_graph_release(g);
}

/* ---- effects ------------------------------------------------------------------------------- */

typedef struct effect_case {
    cfx_opcode op;
    const char *target;
    cfx_effect effect;
} effect_case;

#define F CFX_OP_CALL_FUNCTION
#define M CFX_OP_CALL_METHOD

static const effect_case effect_cases[] = {
    {F, "torch.add", CFX_EFFECT_NONE}, {F, "operator.and_", CFX_EFFECT_NONE},
    {F, "_operator.not_", CFX_EFFECT_NONE}, {F, "operator.invert", CFX_EFFECT_NONE},
    {F, "f", CFX_EFFECT_NONE}, {F, "_", CFX_EFFECT_NONE}, {F, "torch.ops.", CFX_EFFECT_NONE},
    {F, "torch.ops.aten.add.Tensor", CFX_EFFECT_NONE},
    {F, "torch.ops.aten.__and__.Tensor", CFX_EFFECT_NONE}, {F, "torch.ops.x", CFX_EFFECT_NONE},
    {F, "torch.Tensor.__add__", CFX_EFFECT_NONE}, {F, "torch.empty", CFX_EFFECT_NONE},
    {M, "add", CFX_EFFECT_NONE}, {M, "__add__", CFX_EFFECT_NONE}, {M, "__", CFX_EFFECT_NONE},
    {M, "____", CFX_EFFECT_NONE}, {M, "sort", CFX_EFFECT_NONE}, {M, "iadd", CFX_EFFECT_NONE},
    {F, "torch.rand", CFX_EFFECT_ALONE}, {F, "torch.dropout", CFX_EFFECT_ALONE},
    {F, "torch.nn.functional.dropout", CFX_EFFECT_ALONE}, {F, "torch._assert", CFX_EFFECT_ALONE},
    {F, "torch.ops.aten.rand.default", CFX_EFFECT_ALONE}, {F, "builtins.print", CFX_EFFECT_ALONE},
    {F, "torch.ops.aten.rrelu.default", CFX_EFFECT_NONE}, {M, "bernoulli", CFX_EFFECT_ALONE},
    {F, "torch.ops.aten.binomial.default", CFX_EFFECT_ALONE}, {F, "f.__iadd__", CFX_EFFECT_WRITES},
    {F, "operator.imatmul", CFX_EFFECT_WRITES}, {F, "builtins.next", CFX_EFFECT_WRITES},
    {CFX_OP_CALL_MODULE, "fc", CFX_EFFECT_ALONE},
    {F, "operator.iadd", CFX_EFFECT_WRITES}, {F, "_operator.setitem", CFX_EFFECT_WRITES},
    {F, "operator.delitem", CFX_EFFECT_WRITES}, {F, "builtins.setattr", CFX_EFFECT_WRITES},
    {F, "torch.relu_", CFX_EFFECT_WRITES}, {F, "torch._C._set_grad_enabled", CFX_EFFECT_WRITES},
    {F, "torch.Tensor.__iadd__", CFX_EFFECT_WRITES}, {F, "torch.Tensor.add_", CFX_EFFECT_WRITES},
    {F, "torch.ops.aten.add_.Tensor", CFX_EFFECT_WRITES},
    {F, "torch.ops.aten.add.out", CFX_EFFECT_WRITES},
    {F, "torch.ops.aten.rand.out", CFX_EFFECT_WRITES}, {M, "add_", CFX_EFFECT_WRITES},
    {M, "__setitem__", CFX_EFFECT_WRITES}, {M, "append", CFX_EFFECT_WRITES},
    {M, "uniform_", CFX_EFFECT_WRITES},
};

static int effect_of(cfx_node *n)
{
    cfx_effect effect;
    return cfx_node_effect(n, NULL, &effect, NULL) == CFX_OK ? (int)effect : -1;
}

TEST(effects_by_name)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    for (size_t i = 0; i < sizeof effect_cases / sizeof *effect_cases; i++) {
        const effect_case *row = &effect_cases[i];
        cfx_node *n = call_op(g, row->op, row->target, x);
        if (!CHECK_INT_EQ(row->effect, effect_of(n)))
            printf("    %s\n", row->target);
        CHECK_INT_EQ(row->effect, effect_of(n));  /* the answer is kept */
    }
    CHECK_INT_EQ(CFX_EFFECT_ALONE, effect_of(x.as.node));
    CHECK_INT_EQ(CFX_EFFECT_NONE, effect_of(cfx_graph_get_attr(g, "w", NULL)));
    CHECK_INT_EQ(CFX_EFFECT_ALONE, effect_of(cfx_graph_output(g, x, NULL)));
    cfx_graph_release(g);
}

TEST(effects_by_arguments)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_value bare[] = {x, cfx_value_bool(true)};
    cfx_kwarg kwargs[] = {{"inplace", cfx_value_bool(true)},
                          {"inplace", cfx_value_bool(false)},
                          {"out", x},
                          {"out", cfx_value_none()},
                          {"outer", x},
                          {"inplace", x}};
    const int expected[] = {CFX_EFFECT_WRITES, CFX_EFFECT_NONE, CFX_EFFECT_WRITES, CFX_EFFECT_NONE,
                            CFX_EFFECT_NONE, CFX_EFFECT_WRITES};
    for (size_t i = 0; i < sizeof kwargs / sizeof *kwargs; i++) {
        cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.nn.functional.relu", &x, 1,
                                     &kwargs[i], 1, NULL);
        CHECK_INT_EQ(expected[i], effect_of(n));
        n = cfx_graph_call(g, CFX_OP_CALL_METHOD, "relu", &x, 1, &kwargs[i], 1, NULL);
        CHECK_INT_EQ(expected[i], effect_of(n));
    }
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.nn.functional.relu", bare, 2, NULL,
                                 0, NULL);
    CHECK_INT_EQ(CFX_EFFECT_WRITES, effect_of(n));
    n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.sum", bare, 2, NULL, 0, NULL);
    CHECK_INT_EQ(CFX_EFFECT_NONE, effect_of(n));
    cfx_graph_release(g);
}

static int effect_of_text(const char *call)
{
    char ir[300];
    snprintf(ir, sizeof ir,
             "graph():\n  %%x = placeholder[target=x]()\n  %%y = %s\n  output(%%y)\n", call);
    cfx_graph *g = cfx_graph_parse(ir, strlen(ir), NULL, NULL, NULL);
    if (!CHECK(g != NULL))
        return -1;
    int effect = effect_of(cfx_graph_find(g, "y"));
    cfx_graph_release(g);
    return effect;
}

#define FN "torch.nn.functional."

TEST(flags_depend_on_arguments)
{
    static const struct {
        const char *call;
        cfx_effect effect;
    } cases[] = {
        {"call_function[target=" FN "dropout](%x, 0.5, True)", CFX_EFFECT_ALONE},
        {"call_function[target=" FN "dropout](%x, 0.5, False)", CFX_EFFECT_NONE},
        {"call_function[target=" FN "dropout](%x, training=False)", CFX_EFFECT_NONE},
        {"call_function[target=" FN "dropout](%x, 0.0)", CFX_EFFECT_NONE},
        {"call_function[target=" FN "dropout](%x, 0.5, False, True)", CFX_EFFECT_WRITES},
        {"call_function[target=" FN "dropout](%x, training=%x)", CFX_EFFECT_ALONE},
        {"call_function[target=torch.ops.aten.dropout.default](%x, 0.5, False)", CFX_EFFECT_NONE},
        {"call_function[target=torch.ops.aten.rrelu.default](%x, 0.1, 0.2, True)",
         CFX_EFFECT_ALONE},
        {"call_function[target=" FN "scaled_dot_product_attention](%x, %x, %x)", CFX_EFFECT_NONE},
        {"call_function[target=" FN "scaled_dot_product_attention](%x, %x, %x, None, 0.1)",
         CFX_EFFECT_ALONE},
        {"call_function[target=" FN "batch_norm](%x, %x, %x)", CFX_EFFECT_NONE},
        {"call_function[target=" FN "batch_norm](%x, %x, %x, training=False)", CFX_EFFECT_NONE},
        {"call_function[target=" FN "batch_norm](%x, %x, %x, training=True)", CFX_EFFECT_WRITES},
        {"call_function[target=" FN "batch_norm](%x, None, None, training=True)",
         CFX_EFFECT_NONE},
        {"call_function[target=" FN "embedding](%x, %x, None, 2.0)", CFX_EFFECT_WRITES},
        {"call_function[target=torch.batch_norm](%x, None, None, %x, %x, False, 0.1, 0.1, True)",
         CFX_EFFECT_NONE},
        {"call_function[target=" FN "max_pool2d](%x, 2, None, 0, 1, True)", CFX_EFFECT_NONE},
        {"call_function[target=" FN "unheard_of](%x, True)", CFX_EFFECT_WRITES},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!CHECK_INT_EQ(cases[i].effect, effect_of_text(cases[i].call)))
            printf("    %s\n", cases[i].call);
}

/* Two fresh values of which one is written to later, through a view of it. */
TEST(what_may_be_written_to_stays_apart)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_node *a = call(g, "torch.zeros_like", x);
    cfx_node *b = call(g, "torch.zeros_like", x);
    cfx_node *view = call_op(g, CFX_OP_CALL_METHOD, "t", cfx_value_node(b));
    call_op(g, CFX_OP_CALL_METHOD, "zero_", cfx_value_node(view));
    output_pair(g, a, b);
    CHECK(!run_cse(g));
    cfx_graph_release(g);
}

/* ---- what a call does to its arguments ----------------------------------------------------- */

typedef struct touches {
    char text[100];
} touches;

static cfx_status note_touch(void *ctx, cfx_node *input, unsigned touch)
{
    touches *t = ctx;
    size_t used = strlen(t->text);
    snprintf(t->text + used, sizeof t->text - used, "%s%s%s%s", used ? " " : "",
             cfx_node_name(input, NULL), touch & CFX_TOUCH_WRITES ? "!" : "",
             touch & CFX_TOUCH_SHARES ? "&" : "");
    return CFX_OK;
}

static const char *touches_of(const char *call)
{
    static touches t;
    char ir[300];
    t.text[0] = '\0';
    snprintf(ir, sizeof ir, "graph():\n  %%x = placeholder[target=x]()\n"
             "  %%y = placeholder[target=y]()\n  %%r = call_%s\n  output(%%r)\n", call);
    cfx_graph *g = cfx_graph_parse(ir, strlen(ir), NULL, NULL, NULL);
    if (!CHECK(g != NULL))
        return "";
    CHECK_INT_EQ(CFX_OK, cfx_node_each_touch(cfx_graph_find(g, "r"), NULL, note_touch, &t, NULL));
    cfx_graph_release(g);
    return t.text;
}

TEST(what_calls_do_to_their_arguments)
{
    static const char *const cases[][2] = {
        {"function[target=torch.add](%x, %y)", "x y"},
        {"method[target=add_](%x, other=%y)", "x!& y"},
        {"function[target=operator.iadd](%x, %y)", "x!& y"},
        {"function[target=torch.cat]([%x, %y])", "x y"},
        {"function[target=operator.add](%x, %y)", "x y"},
        {"function[target=operator.add](%x, (%y,))", "x& y&"},
        {"function[target=operator.iadd](%x, [%y])", "x!& y&"},
        {"function[target=torch.einsum](\"a,b\", %x, %y)", "x& y&"},
        {"function[target=torch.add](%x, 1, out=%y)", "x y!&"},
        {"function[target=" FN "relu](%x, True)", "x!&"},
        {"function[target=" FN "relu](input=%x, inplace=True)", "x!&"},
        {"function[target=" FN "relu](%x, False)", "x"},
        {"function[target=" FN "dropout](%x, %y)", "x& y"},
        {"function[target=" FN "embedding](%x, %y)", "x y"},
        {"function[target=" FN "embedding](%x, %y, max_norm=2.0)", "x!& y!&"},
        {"function[target=" FN "batch_norm](%x, %y, None, training=True)", "x y!"},
        {"function[target=" FN "batch_norm](%x, %y, None, training=False)", "x y"},
        {"method[target=view](%x, %y, -1)", "x& y"},
        {"method[target=split](%x, 2)", "x&"},
        {"method[target=index_put_](%x, (%y,), %y)", "x!& y y"},
        {"function[target=operator.setitem](%x, 0, %y)", "x!& y&"},
        {"function[target=operator.getitem](%x, %y)", "x& y"},
        {"function[target=mine.f](%x, a=%y)", "x& y&"},
        {"function[target=mine.f_](%x, [%y])", "x!& y!&"},
        {"method[target=append](%x, %y)", "x!& y!&"},
        {"function[target=torch.ops.higher_order.wrap_with_autocast](None, None, True, None, %x)",
         "x!&"},
        {"module[target=fc](%x)", "x&"},
        {"function[target=torch.zeros](2)", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!CHECK_STR_EQ(cases[i][1], touches_of(cases[i][0])))
            printf("    %s\n", cases[i][0]);
}

/* How many nodes of a graph with x and y are merged into others. */
static size_t merged_in(const char *body)
{
    char ir[700];
    snprintf(ir, sizeof ir, "graph():\n  %%x = placeholder[target=x]()\n"
             "  %%y = placeholder[target=y]()\n%s", body);
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_parse(ir, strlen(ir), NULL, NULL, &err);
    if (!CHECK_STR_EQ("", err.message))
        return 0;
    size_t before = cfx_graph_size(g);
    run_cse(g);
    size_t merged = before - cfx_graph_size(g);
    cfx_graph_release(g);
    return merged;
}

#define CALL(name, target, args) "  %" name " = call_function[target=" target "](" args ")\n"
#define FRESH CALL("a", "torch.neg", "%x")
#define OUT(all) "  output((" all "))\n"

TEST(a_write_matters_only_to_what_shares_its_memory)
{
    /* a fresh value is written to: that has nothing to do with x */
    CHECK_INT_EQ(1, merged_in(FRESH CALL("b", "torch.exp", "%x") CALL("w", "operator.iadd", "%a, 1")
                            CALL("c", "torch.exp", "%x") OUT("%b, %c, %w")));
    /* but what reads the value, or a view of it, is kept apart */
    CHECK_INT_EQ(0, merged_in(FRESH CALL("b", "torch.exp", "%a") CALL("w", "operator.iadd", "%a, 1")
                            CALL("c", "torch.exp", "%a") OUT("%b, %c, %w")));
    CHECK_INT_EQ(0, merged_in(FRESH CALL("v", "torch.t", "%a") CALL("b", "torch.exp", "%v")
                            CALL("w", "operator.iadd", "%a, 1") CALL("c", "torch.exp", "%v")
                            OUT("%b, %c, %w")));
    /* two placeholders may be one tensor */
    CHECK_INT_EQ(0, merged_in(CALL("b", "torch.exp", "%x") CALL("w", "operator.iadd", "%y, 1")
                            CALL("c", "torch.exp", "%x") OUT("%b, %c, %w")));
    /* nobody knows what f shares, nor what it writes to */
    CHECK_INT_EQ(0, merged_in(CALL("a", "f", "%y") CALL("b", "torch.exp", "%x")
                            CALL("w", "operator.iadd", "%a, 1") CALL("c", "torch.exp", "%x")
                            OUT("%b, %c, %w")));
    CHECK_INT_EQ(0, merged_in(CALL("b", "torch.exp", "%x") CALL("w", "f_", "1")
                            CALL("c", "torch.exp", "%x") OUT("%b, %c, %w")));
    CHECK_INT_EQ(1, merged_in(FRESH CALL("b", "torch.exp", "%a") CALL("w", "f_", "%x")
                            CALL("c", "torch.exp", "%a") OUT("%b, %c, %w")));
    /* gradients on or off: every call is another one */
    CHECK_INT_EQ(0, merged_in(FRESH CALL("b", "torch.exp", "%a")
                            CALL("w", "torch._C._set_grad_enabled", "False")
                            CALL("c", "torch.exp", "%a") OUT("%b, %c")));
    /* an attribute stays what it is */
    CHECK_INT_EQ(1, merged_in("  %p = get_attr[target=p]()\n" FRESH
                            CALL("w", "operator.iadd", "%a, 1") "  %q = get_attr[target=p]()\n"
                            OUT("%p, %q, %w")));
    /* what is put into a container is written to with it */
    CHECK_INT_EQ(0, merged_in(CALL("l", "torch.zeros", "2") FRESH CALL("b", "torch.neg", "%x")
                            CALL("s", "operator.setitem", "%l, 0, %a")
                            CALL("w", "operator.iadd", "%l, 1") OUT("%a, %b, %l")));
}

TEST(nothing_is_merged_across_a_call_that_writes)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_node *a = call(g, "torch.neg", x);
    call_op(g, CFX_OP_CALL_METHOD, "zero_", x);
    cfx_node *b = call(g, "torch.neg", x);
    call(g, "torch.neg", x);
    output_pair(g, a, b);
    CHECK(run_cse(g));
    CHECK_STR_EQ("x neg zero_ neg_1 output", node_names(g));
    cfx_graph_release(g);
}

/* ---- the caller's opinion, the host, hooks ------------------------------------------------- */

typedef struct keeper {
    const char *name;  /* this one stays apart */
    int answer;
    int asked;
} keeper;

static int ask(void *ctx, cfx_node *n)
{
    keeper *k = ctx;
    k->asked++;
    CHECK(cfx_graph_erase(cfx_node_graph(n), n, NULL) == CFX_E_GRAPH);
    return k->name && strcmp(cfx_node_name(n, NULL), k->name) == 0 ? k->answer : 0;
}

/* x, two calls of `target`, output. */
static cfx_graph *twice(const cfx_host *host, cfx_opcode op, const char *target)
{
    cfx_graph *g = cfx_graph_new(NULL, host, NULL);
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_node *a = call_op(g, op, target, x);
    output_pair(g, a, call_op(g, op, target, x));
    return g;
}

static bool merges_twice(cfx_opcode op, const char *target, cfx_cse_options opts)
{
    cfx_graph *g = twice(NULL, op, target);
    bool changed = false;
    CHECK_INT_EQ(CFX_OK, cfxi_pass_cse(g, NULL, &opts, &changed, NULL));
    cfx_graph_release(g);
    return changed;
}

static bool merges_with(cfx_opcode op, const char *target, keeper k)
{
    const bool changed = merges_twice(op, target, (cfx_cse_options){.keep = ask, .ctx = &k});
    CHECK_INT_EQ(2, k.asked);
    return changed;
}

TEST(a_caller_that_keeps_nodes)
{
    keeper none = {.name = NULL};
    keeper ban = {.name = "f_1", .answer = 1};
    CHECK(merges_with(CFX_OP_CALL_FUNCTION, "f", none));
    CHECK(!merges_with(CFX_OP_CALL_FUNCTION, "f", ban));
    CHECK(!merges_with(CFX_OP_CALL_FUNCTION, "torch.rand", none));
    cfx_graph *g = twice(NULL, CFX_OP_CALL_FUNCTION, "f");
    keeper fails = {.name = "f_1", .answer = -1};
    cfx_cse_options opts = {.keep = ask, .ctx = &fails};
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_cse(g, NULL, &opts, NULL, &err));
    CHECK(strstr(err.message, "node %f_1") != NULL);
    CHECK_INT_EQ(4, cfx_graph_size(g));
    cfx_cse_options empty = {0};
    CHECK_INT_EQ(CFX_OK, cfxi_pass_cse(g, NULL, &empty, NULL, NULL));
    CHECK_INT_EQ(3, cfx_graph_size(g));
    cfx_graph_release(g);
}

TEST(unknown_calls)
{
    const cfx_cse_options strict = {.strict = true};
    const cfx_cse_options like = {.like_torch_fx = true};
    const cfx_cse_options plain = {0};
    CHECK(merges_twice(CFX_OP_CALL_FUNCTION, "f", plain));
    CHECK(!merges_twice(CFX_OP_CALL_FUNCTION, "f", strict));
    CHECK(merges_twice(CFX_OP_CALL_FUNCTION, "torch.exp", strict));
    CHECK(!merges_twice(CFX_OP_CALL_MODULE, "f", plain));
    CHECK(merges_twice(CFX_OP_CALL_MODULE, "f", like));
    CHECK(!merges_twice(CFX_OP_CALL_MODULE, "f", (cfx_cse_options){.like_torch_fx = true,
                                                             .strict = true}));
}

static int host_impure(void *ctx, cfx_node *n)
{
    (void)n;
    return *(const int *)ctx;
}

TEST(a_host_that_knows_modules)
{
    int answer = 0;
    cfx_host host = {.is_impure = host_impure, .ctx = &answer};
    cfx_graph *g = twice(&host, CFX_OP_CALL_MODULE, "m");
    cfx_node *m = cfx_graph_find(g, "m");
    CHECK_INT_EQ(CFX_EFFECT_ALONE, effect_of(m));
    answer = 1;
    CHECK_INT_EQ(CFX_EFFECT_WRITES, effect_of(m));
    answer = -1;
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_cse(g, NULL, NULL, NULL, NULL));
    cfx_graph_release(g);
}

typedef struct hook_log {
    int replaced, erased;
    cfx_status answer;
} hook_log;

static cfx_status on_replace(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    hook_log *log = ctx;
    CHECK(with.kind == CFX_KIND_NODE && with.as.node != n && user != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(cfx_node_graph(n), NULL, NULL, err));  /* takes marks */
    log->replaced++;
    return log->answer;
}

static cfx_status on_erase(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    hook_log *log = ctx;
    (void)n;
    (void)with;
    (void)user;
    (void)err;
    log->erased++;
    return CFX_OK;
}

TEST(hooks_hear_of_it)
{
    cfx_graph *g = twice(NULL, CFX_OP_CALL_FUNCTION, "f");
    hook_log log = {.answer = CFX_E_HOST};
    cfx_graph_add_hook(g, CFX_HOOK_REPLACE, on_replace, &log, NULL);
    cfx_graph_add_hook(g, CFX_HOOK_ERASE, on_erase, &log, NULL);
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_cse(g, NULL, NULL, NULL, NULL));
    CHECK_INT_EQ(4, cfx_graph_size(g));
    log = (hook_log){.answer = CFX_OK};
    CHECK(run_cse(g));
    CHECK_INT_EQ(1, log.replaced);
    CHECK_INT_EQ(1, log.erased);
    cfx_graph_release(g);
}

/* ---- regions, memory ----------------------------------------------------------------------- */

TEST(regions_three_deep)
{
    cfx_graph *g = nested_graph(NULL, NULL, 3);
    cfx_graph *at = g;
    for (int i = 0; i < 3; i++)
        at = cfx_value_graph(cfx_node_arg(cfx_graph_find(at, "cond"), 1));
    cfx_insert_point before = {cfx_graph_last(at), false};
    cfx_graph_set_insert_point(at, before, NULL);
    call(at, "torch.relu", cfx_value_node(cfx_graph_first(at)));
    CHECK_INT_EQ(CFX_EFFECT_ALONE, effect_of(cfx_graph_find(g, "cond")));  /* there is a module */
    CHECK(run_cse(g));
    CHECK_STR_EQ("x relu mod output", node_names(at));
    call_op(at, CFX_OP_CALL_METHOD, "add_", cfx_value_node(cfx_graph_first(at)));
    CHECK_INT_EQ(CFX_EFFECT_WRITES, effect_of(cfx_graph_find(g, "cond")));
    cfx_graph_release(g);
}

static cfx_graph *doubled(const cfx_allocator *a, cfx_error *err)
{
    cfx_graph *g = nested_graph(a, err, 3);
    for (cfx_graph *at = g; at;) {
        cfx_node *relu = cfx_graph_find(at, "relu");
        cfx_node *cond = cfx_graph_find(at, "cond");
        cfx_value arg = cfx_node_arg(relu, 0);
        cfx_insert_point here = {cfx_node_next(relu), false};
        cfx_graph_set_insert_point(at, here, err);
        cfx_node *again = cfx_graph_call(at, CFX_OP_CALL_FUNCTION, "torch.relu", &arg, 1, NULL, 0,
                                         err);
        if (!again || cfx_node_set_arg(cfx_graph_find(at, "mod"), 0, cfx_value_node(again), err)) {
            cfx_graph_release(g);
            return NULL;
        }
        at = cond ? cfx_value_graph(cfx_node_arg(cond, 1)) : NULL;
    }
    return g;
}

static cfx_status cse_body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = doubled(a, &err);
    bool changed = false;
    (void)arg;
    if (g && cfxi_pass_cse(g, NULL, NULL, &changed, &err) == CFX_OK)
        CHECK(changed);
    if (g)
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
    return err.status;
}

TEST(cse_out_of_memory)
{
    CHECK(test_oom_sweep(cse_body, NULL) > 10);
}
