/* guard_settle.c - guards from graphs: sizes inside told by those of the inputs, what is not relied
 * upon, what is dropped. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/embed/copy.h>
#include <cfx/embed/guard.h>
#include <cfx/embed/tensor.h>

enum { MOST = 8 };

/* A graph and what is asked of its nodes, which are written one to a line: "node relation number
 * truth". */
typedef struct example {
    const char *graph;
    const char *questions;
    const cfx_guard_input *inputs;
    const char *settled;  /* for each question: '+' or '-' */
    const char *guards;   /* the questions of the set, one to a line */
} example;

static cfx_tensor *tensor_at(void *ctx, const char *path, cfx_error *err)
{
    const int64_t sizes[] = {64, 32};
    const cfx_allocator *a = ctx;
    return strcmp(path, "weight") == 0
               ? cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, sizes, 2, a, err) : NULL;
}

static cfx_value side(const cfx_graph *g, const char *word)
{
    cfx_node *n = word[0] >= 'a' ? cfx_graph_find(g, word) : NULL;
    if (n)
        return cfx_value_node(n);
    return strchr(word, '.') ? cfx_value_float(atof(word)) : cfx_value_int(atoll(word));
}

static size_t read_questions(const cfx_graph *g, const char *text, cfx_question *out)
{
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    size_t n = 0;
    char left[40];
    char sign[4];
    char right[40];
    int truth;
    int used;
    while (sscanf(text, " %39s %3s %39s %d%n", left, sign, right, &truth, &used) == 4) {
        cfx_question *q = &out[n++];
        memset(q, 0, sizeof *q);
        while (strcmp(signs[q->relation], sign) != 0)
            q->relation++;
        q->left = side(g, left);
        q->right = side(g, right);
        q->truth = truth != 0;
        q->guard.value = cfx_datum_bool(q->truth);
        q->guard.line = "m.py:1";
        text += used;
    }
    return n;
}

static size_t count_inputs(const cfx_graph *g, const char **names)
{
    size_t n = 0;
    for (const cfx_node *node = cfx_graph_first(g); node; node = cfx_node_next(node))
        if (cfx_node_op(node) == CFX_OP_PLACEHOLDER)
            names[n++] = cfx_node_name(node, NULL);
    return n;
}

static cfx_status settle(const example *e, const cfx_allocator *a, char *settled, cfx_buffer *out)
{
    cfx_error err = {0};
    cfx_question questions[MOST];
    const char *names[MOST];
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_graph *g = cfx_graph_parse(e->graph, strlen(e->graph), a, NULL, &err);
    cfx_runtime *rt = g ? cfx_runtime_new(&options, &err) : NULL;
    cfx_guards *guards = rt ? cfx_guards_new(names, count_inputs(g, names), a, &err) : NULL;
    const cfx_settle_options how = {.inputs = e->inputs, .rt = rt, .tensor = tensor_at,
                                    .ctx = (void *)(uintptr_t)a};
    if (guards) {
        const size_t n = read_questions(g, e->questions, questions);
        cfx_guards_settle(guards, g, questions, n, &how, &err);
        for (size_t i = 0; i < n; i++)
            settled[i] = questions[i].settled ? '+' : '-';
        settled[n] = '\0';
        for (size_t i = 0; err.status == CFX_OK && i < cfx_guards_count(guards); i++) {
            cfx_guards_print_question(guards, i, cfx_buffer_sink(out), &err);
            if (err.status == CFX_OK && cfx_buffer_append(out, "\n", 1) != CFX_OK)
                cfx_error_set(&err, CFX_E_NOMEM, "out of memory");
        }
    }
    cfx_guards_free(guards);
    cfx_runtime_free(rt);
    cfx_graph_release(g);
    return err.status;
}

#define CHECK_SETTLED(e) check_settled(e, __LINE__)
static void check_settled(const example *e, int line)
{
    char settled[MOST + 1] = "";
    cfx_buffer out;
    cfx_buffer_init(&out, NULL);
    const bool good = CHECK_INT_EQ(CFX_OK, settle(e, NULL, settled, &out));
    const bool same = CHECK_STR_EQ(e->settled, settled);
    if (!CHECK_STR_EQ(e->guards, out.data) || !good || !same)
        printf("    the example of line %d\n", line);
    cfx_buffer_free(&out);
}

static const int64_t sizes_5_7[] = {5, 7};
static const int64_t sizes_5_64[] = {5, 32};
static const cfx_guard_input matrix = {.dtype = CFX_DTYPE_FLOAT32, .ndim = 2, .sizes = sizes_5_7};
static const cfx_guard_input one_matrix[] = {
    {.dtype = CFX_DTYPE_FLOAT32, .ndim = 2, .sizes = sizes_5_7}};
static const cfx_guard_input two_matrices[] = {
    {.dtype = CFX_DTYPE_FLOAT32, .ndim = 2, .sizes = sizes_5_7},
    {.dtype = CFX_DTYPE_FLOAT32, .ndim = 2, .sizes = sizes_5_7}};

static const int64_t sizes_1_7[] = {1, 7};
static const cfx_guard_input two_tall[] = {
    {.dtype = CFX_DTYPE_FLOAT32, .ndim = 2, .sizes = sizes_5_7},
    {.dtype = CFX_DTYPE_FLOAT32, .ndim = 2, .sizes = sizes_1_7}};

#define X "graph():\n  %x = placeholder[target=x]()\n"
#define Y "  %y = placeholder[target=y]()\n"

TEST(numbers_of_inputs)
{
    const example e = {
        X "  %n = call_method[target=size](%x, 0)\n"
        "  %m = call_method[target=size](%x, -1)\n"
        "  %a = call_function[target=operator.mul](%n, 2)\n"
        "  %b = call_function[target=operator.add](%a, %m)\n"
        "  %c = call_function[target=builtins.max](%n, %m, 3)\n"
        "  %d = call_function[target=operator.truediv](%n, 2)\n"
        "  output(%x)\n",
        "b > 7 1  c < 9 1  d == 2.5 1  n == 6 0",
        one_matrix, "++++",
        "x.shape[0] * 2 + x.shape[1] > 7\nmax(max(x.shape[0], x.shape[1]), 3) < 9\n"
        "x.shape[0] / 2 == 2.5\nx.shape[0] == 6\n"};
    CHECK_SETTLED(&e);
}

TEST(sizes_inside)
{
    const example e = {
        X "  %t = call_method[target=transpose](%x, 0, 1)\n"
        "  %cat = call_function[target=torch.cat]([%t, %t], 0)\n"
        "  %n = call_method[target=size](%cat, 0)\n"
        "  %f = call_method[target=flatten](%cat)\n"
        "  %m = call_method[target=numel](%f)\n"
        "  %ok = call_function[target=operator.gt](%n, 3)\n"
        "  %check = call_function[target=torch._assert](%ok, \"no\")\n"
        "  %s = call_function[target=torch.split](%x, 2)\n"
        "  %len = call_function[target=builtins.len](%s)\n"
        "  output(%x)\n",
        "n > 3 1  m != 69 1  m != 68 1",
        one_matrix, "+++",  /* 69 is odd */
        "2 * x.shape[1] > 3\n2 * x.shape[0] * x.shape[1] != 68\n"};
    CHECK_SETTLED(&e);
}

/* x + y is 5 long if x is 1 and y is 5; so what is said of it is not said of x. */
TEST(broadcasting_is_not_relied_upon)
{
    const example e = {
        X Y "  %z = call_function[target=operator.add](%x, %y)\n"
        "  %n = call_method[target=size](%z, 0)\n"
        "  %w = call_function[target=operator.mul](%x, 2)\n"
        "  %m = call_method[target=size](%w, 0)\n"
        "  output(%z)\n",
        "n < 6 1  m < 6 1", two_matrices, "-+", "x.shape[0] < 6\n"};
    CHECK_SETTLED(&e);
}

/* x[1:] is 1 long if x is 2, and then as long as y; 2 * x is never 1 long. */
TEST(parts_are_broadcast_too)
{
    const example e = {
        X Y "  %t = call_function[target=operator.getitem](%x, slice(1, None, None))\n"
        "  %z = call_function[target=operator.add](%t, %y)\n"
        "  %n = call_method[target=size](%z, 0)\n"
        "  %c = call_function[target=torch.cat]([%x, %x], 0)\n"
        "  %p = call_function[target=torch.nn.functional.pad](%c, (0, 0, 1, 1))\n"
        "  %w = call_function[target=operator.add](%p, %y)\n"
        "  %m = call_method[target=size](%w, 0)\n"
        "  output(%z)\n",
        "n < 6 1  m < 13 1", two_tall, "-+", "2 * x.shape[0] + 2 < 13\n"};
    CHECK_SETTLED(&e);
}

/* Without dimensions that are 1, other sizes stand at their places. */
TEST(squeezing_is_not_relied_upon)
{
    const example e = {
        X "  %z = call_method[target=squeeze](%x)\n"
        "  %n = call_method[target=size](%z, 0)\n"
        "  %u = call_method[target=unsqueeze](%x, 0)\n"
        "  %v = call_method[target=squeeze](%u, 0)\n"
        "  %m = call_method[target=size](%v, 0)\n"
        "  output(%z)\n",
        "n < 6 1  m < 6 1", one_matrix, "-+", "x.shape[0] < 6\n"};
    CHECK_SETTLED(&e);
}

/* A product needs inner sizes that are equal, 1 or not: it fails otherwise, so nothing is lost. */
TEST(what_operators_demand_holds)
{
    static const cfx_guard_input in[] = {
        {.dtype = CFX_DTYPE_FLOAT32, .ndim = 2, .sizes = sizes_5_64}};
    const example e = {
        X "  %weight = get_attr[target=weight]()\n"
        "  %z = call_function[target=torch.nn.functional.linear](%x, %weight)\n"
        "  %n = call_method[target=size](%z, 0)\n"
        "  %m = call_method[target=size](%z, 1)\n"
        "  output(%z)\n",
        "n < 6 1  m == 64 1", in, "++", "x.shape[0] < 6\n"};
    CHECK_SETTLED(&e);
}

TEST(unknown_operators_end_only_what_follows)
{
    const example e = {
        X "  %t = call_method[target=transpose](%x, 0, 1)\n"
        "  %n = call_method[target=size](%t, 0)\n"
        "  %z = call_function[target=my.function](%t)\n"
        "  %m = call_method[target=size](%z, 0)\n"
        "  %r = call_function[target=torch.relu](%z)\n"
        "  %k = call_method[target=size](%r, 0)\n"
        "  %missing = get_attr[target=missing]()\n"
        "  %s = call_function[target=operator.mul](%t, %missing)\n"
        "  %l = call_method[target=size](%s, 0)\n"
        "  %q = call_method[target=size](%t, 1)\n"
        "  output(%z)\n",
        "n > 3 1  m > 3 1  k > 3 1  l > 3 1  q > 3 1", one_matrix, "+---+",
        "x.shape[1] > 3\nx.shape[0] > 3\n"};
    CHECK_SETTLED(&e);
}

TEST(what_may_resize_ends_it)
{
    const example e = {
        X "  %t = call_method[target=transpose](%x, 0, 1)\n"
        "  %z = call_function[target=my.resize_](%t)\n"
        "  %n = call_method[target=size](%t, 0)\n"
        "  output(%z)\n",
        "n > 3 1", one_matrix, "-", ""};
    CHECK_SETTLED(&e);
}

TEST(numbers_among_the_inputs)
{
    const cfx_guard_input in[] = {matrix, {.number = cfx_datum_int(3)},
                                  {.number = cfx_datum_float(0.5)}};
    const example e = {
        X "  %n = placeholder[target=n]()\n"
        "  %f = placeholder[target=f]()\n"
        "  %t = call_method[target=transpose](%x, 0, 1)\n"
        "  %r = call_method[target=repeat](%t, %n, 1)\n"
        "  %m = call_method[target=size](%r, 0)\n"
        "  %g = call_function[target=operator.mul](%f, 2)\n"
        "  output(%r)\n",
        "m == 21 1  g < 1.5 1  n > 2 1  f > 0.25 1", in, "++++",
        "x.shape[1] * n == 21\nf * 2 < 1.5\nn > 2\nf > 0.25\n"};
    CHECK_SETTLED(&e);
}

/* x[:n] ends n before the end if n is negative. */
TEST(signs_of_numbers_are_not_relied_upon)
{
    const cfx_guard_input in[] = {matrix, {.number = cfx_datum_int(3)}};
    const example e = {
        X "  %n = placeholder[target=n]()\n"
        "  %t = call_method[target=transpose](%x, 0, 1)\n"
        "  %s = call_function[target=operator.getitem](%t, slice(None, %n, None))\n"
        "  %k = call_method[target=size](%s, 0)\n"
        "  %m = call_method[target=size](%s, 1)\n"
        "  output(%s)\n",
        "k < 9 1  m > 3 1", in, "-+", "x.shape[0] > 3\n"};
    CHECK_SETTLED(&e);
}

TEST(sizes_of_data_stay)
{
    const example e = {
        X "  %z = call_function[target=torch.nonzero](%x)\n"
        "  %n = call_method[target=size](%z, 0)\n"
        "  %m = call_method[target=size](%z, 1)\n"
        "  output(%z)\n",
        "n > 3 1  m == 2 1", one_matrix, "-+", ""};
    CHECK_SETTLED(&e);
}

TEST(what_is_implied_is_dropped)
{
    const example e = {
        X Y "  %n = call_method[target=size](%x, 0)\n"
        "  %m = call_method[target=size](%x, 1)\n"
        "  %k = call_method[target=size](%y, 0)\n"
        "  %sum = call_function[target=operator.add](%n, %m)\n"
        "  output(%x)\n",
        "n >= 0 1  n > 0 1  m == 7 1  n > 1 1  n == 1 0  m > 6 1  sum > 8 1  n > 1 1", two_matrices,
        "++++++++", "x.shape[1] == 7\nx.shape[0] > 1\n"};
    CHECK_SETTLED(&e);
}

/* A division by a size may fail. */
TEST(what_may_have_no_value_is_kept)
{
    const example e = {
        X "  %n = call_method[target=size](%x, 0)\n"
        "  %q = call_function[target=operator.floordiv](%n, %n)\n"
        "  output(%x)\n",
        "q == 1 1  q >= 0 1  q == 1 1", one_matrix, "+++",
        "x.shape[0] // x.shape[0] == 1\nx.shape[0] // x.shape[0] >= 0\n"};
    CHECK_SETTLED(&e);
}

TEST(fixed_sizes_are_numbers)
{
    static const bool fixed[] = {false, true};
    const cfx_guard_input in[] = {
        {.dtype = CFX_DTYPE_FLOAT32, .ndim = 2, .sizes = sizes_5_7, .fixed = fixed}};
    const example e = {
        X "  %n = call_method[target=size](%x, 0)\n"
        "  %m = call_method[target=size](%x, 1)\n"
        "  %sum = call_function[target=operator.add](%n, %m)\n"
        "  %t = call_method[target=transpose](%x, 0, 1)\n"
        "  %k = call_method[target=size](%t, 0)\n"
        "  output(%x)\n",
        "m == 7 1  sum > 8 1  k > 6 1", in, "+++", "x.shape[0] + 7 > 8\n"};
    CHECK_SETTLED(&e);
}

/* An answer that the run cannot have had is not believed. */
TEST(examples_must_hold)
{
    const example e = {
        X "  %n = call_method[target=size](%x, 0)\n  output(%x)\n", "n > 5 1  n > 3 1", one_matrix,
        "-+", "x.shape[0] > 3\n"};
    CHECK_SETTLED(&e);
}

TEST(regions_are_followed)
{
    const example e = {
        X "  %c = placeholder[target=c]()\n"
        "  %z = call_function[target=cfx.cond](%c, graph {\n"
        "    %a = placeholder[target=a]()\n"
        "    %neg = call_function[target=torch.neg](%a)\n"
        "    output(%neg)\n"
        "  }, graph {\n"
        "    %b = placeholder[target=b]()\n"
        "    %abs = call_function[target=torch.abs](%b)\n"
        "    output(%abs)\n"
        "  }, (%x,))\n"
        "  %n = call_method[target=size](%z, 0)\n"
        "  output(%z)\n",
        "n > 3 1", two_matrices, "+", "x.shape[0] > 3\n"};
    CHECK_SETTLED(&e);
}

/* x * x * x ..., whose expression as a tree is larger than any memory. */
TEST(expressions_that_explode_stay)
{
    char text[4000] = X "  %n0 = call_method[target=size](%x, 0)\n";
    for (int i = 1; i <= 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "  %%n%d = call_function[target=operator.add](%%n%d, %%n%d)\n", i, i - 1, i - 1);
    strcat(text, "  output(%x)\n");
    const example e = {text, "n3 < 99 1  n40 > 9 1", one_matrix, "+-",
                       "x.shape[0] + x.shape[0] + (x.shape[0] + x.shape[0]) + (x.shape[0] + "
                       "x.shape[0] + (x.shape[0] + x.shape[0])) < 99\n"};
    CHECK_SETTLED(&e);
}

TEST(numbers_that_nobody_uses_go)
{
    static const char text[] =
        X "  %n = placeholder[target=n]()\n"
        "  %w = get_attr[target=w]()\n"
        "  %a = call_method[target=size](%x, 0)\n"
        "  %b = call_function[target=operator.add](%a, %n)\n"
        "  %c = call_function[target=operator.mul](%b, %a)\n"
        "  %d = call_function[target=operator.mul](%x, 2)\n"
        "  %e = call_method[target=item](%d)\n"
        "  %f = call_method[target=size](%x, 1)\n"
        "  %g = call_function[target=operator.add](%f, %x)\n"
        "  output(%g)\n";
    cfx_error err = {0};
    cfx_buffer out;
    bool changed = false;
    const bool numbers[] = {false, true};
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, NULL, &err);
    cfx_buffer_init(&out, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_drop_numbers(g, numbers, &changed, &err));
    CHECK(changed);
    cfx_graph_text(g, cfx_buffer_sink(&out), &err);
    CHECK_STR_EQ(X "  %n = placeholder[target=n]()\n"
                 "  %d = call_function[target=operator.mul](%x, 2)\n"
                 "  %f = call_method[target=size](%x, 1)\n"
                 "  %g = call_function[target=operator.add](%f, %x)\n"
                 "  output(%g)\n", out.data);
    CHECK_INT_EQ(CFX_OK, cfx_graph_drop_numbers(g, NULL, &changed, &err));
    CHECK(!changed);
    cfx_buffer_free(&out);
    cfx_graph_release(g);
}

TEST(the_inputs_must_be_the_graphs)
{
    cfx_error err = {0};
    static const char text[] = X Y "  output(%x)\n";
    static const char *const names[] = {"x"};
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, NULL, &err);
    cfx_guards *guards = cfx_guards_new(names, 1, NULL, &err);
    const cfx_settle_options how = {.inputs = one_matrix};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_guards_settle(guards, g, NULL, 0, &how, &err));
    CHECK_STR_EQ("the graph has 2 inputs, the guards are for 1", err.message);
    cfx_guards_free(guards);
    cfx_graph_release(g);
}

static cfx_status work(const cfx_allocator *a, void *arg)
{
    char settled[MOST + 1];
    cfx_buffer out;
    cfx_buffer_init(&out, a);
    const cfx_status status = settle(arg, a, settled, &out);
    cfx_buffer_free(&out);
    return status;
}

TEST(want_of_memory)
{
    example e = {
        X "  %t = call_method[target=transpose](%x, 0, 1)\n"
        "  %z = call_function[target=my.function](%t)\n"
        "  %n = call_method[target=size](%t, 0)\n"
        "  %m = call_method[target=size](%x, 0)\n"
        "  %k = call_method[target=size](%z, 0)\n"
        "  output(%z)\n",
        "n > 3 1  k > 3 1  m > 0 1  m > 2 1", one_matrix, "+-++",
        "x.shape[1] > 3\nx.shape[0] > 2\n"};
    CHECK_SETTLED(&e);
    CHECK(test_oom_sweep(work, &e) > 10);
}
