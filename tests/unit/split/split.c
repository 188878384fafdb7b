/* split.c - tests of src/split/split*.c. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/embed/split.h>

enum { MAX = 16 };
static const char *const names[] = {"a", "b", "c", "d"};

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static void check_graph(const char *expected, cfx_graph *g)
{
    cfx_graph *want = parse(expected, NULL, NULL);
    CHECK(want != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    bool same = cfx_graph_equal(want, g, false);
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    if (!CHECK(same) && cfx_graph_text(g, cfx_buffer_sink(&text), NULL) == CFX_OK)
        printf("%s", text.data);
    cfx_buffer_free(&text);
    cfx_graph_release(want);
}

/* One letter for each node: the part, '.' for none. */
static void read_parts(const char *letters, size_t *parts)
{
    for (size_t i = 0; letters[i]; i++)
        parts[i] = letters[i] == '.' ? CFX_SPLIT_BASE : (size_t)(letters[i] - 'a');
}

static cfx_status split(cfx_graph *g, const char *letters, size_t n, unsigned flags,
                        cfx_split_result *result, cfx_error *err)
{
    size_t parts[MAX];
    read_parts(letters, parts);
    const cfx_split_options what = {.parts = parts, .names = names, .n = n, .flags = flags};
    return cfx_graph_split(g, &what, result, err);
}

static void check_order(const char *letters, const cfx_split_result *result)
{
    char order[MAX] = "";
    for (size_t i = 0; i < result->n; i++)
        order[i] = (char)('a' + result->order[i]);
    CHECK_STR_EQ(letters, order);
}

static const char diamond[] =
    "graph(): %x = placeholder[target=x](5) %w = get_attr[target=m.w]() "
    "%p = call_method[target=mul](%x, %w) %q = call_module[target=m.q](%p) "
    "%r = call_module[target=m_q](%p) %s = call_function[target=f](%r, k=[%q, %w]) "
    "output((%s, %p, %x))";

TEST(parts_and_the_base_that_calls_them)
{
    cfx_split_result r;
    cfx_graph *g = parse(diamond, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, split(g, "..abbc.", 3, 0, &r, NULL));
    check_graph("graph(): %x = placeholder[target=x](5) %m_w = get_attr[target=m.w]() "
                "%a = call_module[target=a](%x, %m_w) %b = call_module[target=b](%a) "
                "%getitem = call_function[target=operator.getitem](%b, 0) "
                "%getitem_1 = call_function[target=operator.getitem](%b, 1) "
                "%c = call_module[target=c](%getitem, %getitem_1, %m_w) output((%c, %a, %x))",
                r.base.graph);
    check_graph("graph(): %x = placeholder[target=x]() %w = placeholder[target=w]() "
                "%p = call_method[target=mul](%x, %w) output(%p)", r.parts[0].graph);
    check_graph("graph(): %p = placeholder[target=p]() %q = call_module[target=m.q](%p) "
                "%r = call_module[target=m_q](%p) output((%r, %q))", r.parts[1].graph);
    check_graph("graph(): %r = placeholder[target=r]() %q = placeholder[target=q]() "
                "%w = placeholder[target=w]() %s = call_function[target=f](%r, k=[%q, %w]) "
                "output(%s)", r.parts[2].graph);
    check_order("abc", &r);
    CHECK_INT_EQ(8, r.n_cuts);
    CHECK(r.cuts[0].from == CFX_SPLIT_BASE && r.cuts[0].to == 0);
    CHECK_STR_EQ("r", cfx_node_name(r.cuts[3].value, NULL));
    CHECK(r.cuts[3].from == 1 && r.cuts[3].to == 2);
    CHECK_STR_EQ("s", cfx_node_name(r.cuts[6].value, NULL));
    CHECK(r.cuts[6].to == CFX_SPLIT_BASE);
    CHECK(r.base.origins[1] == cfx_graph_find(g, "w") && r.base.origins[2] == NULL);
    CHECK_INT_EQ(cfx_graph_size(r.base.graph), r.base.n_origins);
    cfx_split_result_free(&r);
    cfx_split_result_free(&r);  /* twice is once */
    cfx_graph_release(g);
}

TEST(attributes_can_be_read_in_the_parts_and_paths_be_flat)
{
    cfx_split_result r;
    cfx_graph *g = parse(diamond, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, split(g, "..aaab.", 2, CFX_SPLIT_COPY_ATTRS | CFX_PART_FLAT_PATHS |
                               CFX_PART_TUPLE | CFX_SPLIT_FIXED_ORDER, &r, NULL));
    check_graph("graph(): %x = placeholder[target=x]() %w = get_attr[target=m.w]() "
                "%p = call_method[target=mul](%x, %w) %q = call_module[target=m_q](%p) "
                "%r = call_module[target=m_q_1](%p) output((%r, %q, %p))", r.parts[0].graph);
    check_graph("graph(): %r = placeholder[target=r]() %q = placeholder[target=q]() "
                "%w = get_attr[target=m.w]() %s = call_function[target=f](%r, k=[%q, %w]) "
                "output((%s,))", r.parts[1].graph);
    CHECK_INT_EQ(8, cfx_graph_size(r.base.graph));
    cfx_split_result_free(&r);
    cfx_graph_release(g);
}

static const char fan[] = "graph(): %x = placeholder[target=x]() "
    "%p = call_method[target=p](%x) %q = call_method[target=q](%x) %r = call_method[target=r](%x) "
    "%s = call_method[target=s](%p, %q, %r) output(%s)";

TEST(the_order_of_calls)
{
    cfx_split_result r;
    cfx_graph *g = parse(fan, NULL, NULL);
    const struct { const char *parts; size_t n; unsigned flags; const char *order; } cases[] = {
        {".abcd.", 4, 0, "cbad"},
        {".abcd.", 4, CFX_SPLIT_KEEP_ORDER, "abcd"},
        {".bbca.", 3, CFX_SPLIT_KEEP_ORDER, "bca"},
        {".bbca.", 4, CFX_SPLIT_KEEP_ORDER, "bcad"},  /* the last one is empty */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT_EQ(CFX_OK, split(g, cases[i].parts, cases[i].n, cases[i].flags, &r, NULL));
        check_order(cases[i].order, &r);
        cfx_split_result_free(&r);
    }
    cfx_graph_release(g);
}

TEST(what_writes_keeps_its_place)
{
    cfx_split_result r;
    cfx_graph *g = parse("graph(): %x = placeholder[target=x]() "
                         "%p = call_method[target=add_](%x, 1) "
                         "%q = call_method[target=neg](%x) output(%q)", NULL, NULL);
    CHECK_INT_EQ(CFX_OK, split(g, ".ab.", 2, 0, &r, NULL));
    check_order("ab", &r);
    cfx_split_result_free(&r);
    cfx_graph_release(g);
}

static void refuses(const char *text, const char *parts, size_t n, unsigned flags,
                    cfx_status status, const char *why)
{
    cfx_split_result r;
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(text, NULL, NULL);
    CHECK_INT_EQ(status, split(g, parts, n, flags, &r, &err));
    if (!CHECK(strstr(err.message, why) != NULL))
        printf("%s\n", err.message);
    CHECK(r.parts == NULL && r.base.graph == NULL);
    cfx_graph_release(g);
}

TEST(what_cannot_be_split)
{
    refuses("graph(): %x = placeholder[target=x]() %p = call_method[target=p](%x) "
            "%q = call_method[target=q](%p) @ model.py:7 "
            "%r = call_method[target=r](%q) @ model.py:8 output(%r)", ".aba.", 2, 0, CFX_E_GRAPH,
            "cycle exists between partitions! a needs %q of b (for %r at model.py:8), "
            "b needs %p of a (for %q at model.py:7)");
    refuses(fan, ".bbba.", 2, CFX_SPLIT_FIXED_ORDER, CFX_E_GRAPH, "a needs %p of b (for %s)");
    refuses(fan, ".bbba.", 1, 0, CFX_E_INDEX, "node %p is in part 1, but there are 1 parts");
}

#define GRAD "call_function[target=torch._C._set_grad_enabled]"
#define ENTER "call_function[target=torch.amp.autocast_mode._enter_autocast]"
#define EXIT "call_function[target=torch.amp.autocast_mode._exit_autocast]"
static const char spans[] = "graph(): %x = placeholder[target=x]() %g = " GRAD "(False) "
    "%e = " ENTER "(1) %p = call_method[target=p](%x) %q = call_method[target=q](%p) "
    "%l = " EXIT "(%e) %r = call_method[target=r](%q) output(%r)";

TEST(stretches_are_entered_and_left_in_each_part)
{
    cfx_split_result r;
    cfx_graph *g = parse(spans, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, split(g, ".aaabbc.", 3, 0, &r, NULL));
    check_graph("graph(): %x = placeholder[target=x]() %g = " GRAD "(False) %e = " ENTER "(1) "
                "%p = call_method[target=p](%x) %l = " EXIT "(%e) output(%p)", r.parts[0].graph);
    check_graph("graph(): %p = placeholder[target=p]() %e = " ENTER "(1) %g = " GRAD "(False) "
                "%q = call_method[target=q](%p) %l = " EXIT "(%e) output(%q)", r.parts[1].graph);
    check_graph("graph(): %q = placeholder[target=q]() %g = " GRAD "(False) "
                "%r = call_method[target=r](%q) output(%r)", r.parts[2].graph);
    cfx_split_result_free(&r);
    cfx_graph_release(g);
    refuses(spans, ".aababb.", 2, 0, CFX_E_VALUE, "node %q goes back to a after b");
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_split_result r;
    cfx_graph *g = parse(arg, a, &err);
    if (g && split(g, ".aaabbc.", 3, CFX_PART_FLAT_PATHS, &r, &err) == CFX_OK)
        cfx_split_result_free(&r);
    cfx_graph_release(g);
    return err.status;
}

TEST(every_allocation_may_fail) { CHECK(test_oom_sweep(body, (void *)(uintptr_t)spans) > 20); }

TEST(many_parts_of_a_long_chain)
{
    enum { LENGTH = 300000, PARTS = 3000 };
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    size_t *parts = calloc(LENGTH + 2, sizeof *parts);
    const char **many = malloc(PARTS * sizeof *many);
    cfx_value v = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    for (size_t i = 0; i < LENGTH; i++) {
        parts[i + 1] = i / (LENGTH / PARTS);
        v = cfx_value_node(cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", &v, 1, NULL, 0, NULL));
    }
    for (size_t i = 0; i < PARTS; i++)
        many[i] = "part";
    cfx_graph_output(g, v, NULL);
    cfx_split_result r;
    const cfx_split_options what = {.parts = parts, .names = many, .n = PARTS};
    CHECK_INT_EQ(CFX_OK, cfx_graph_split(g, &what, &r, NULL));
    CHECK_INT_EQ(PARTS + 2, cfx_graph_size(r.base.graph));
    CHECK_INT_EQ(LENGTH / PARTS + 2, cfx_graph_size(r.parts[PARTS - 1].graph));
    CHECK_INT_EQ(PARTS + 1, r.n_cuts);
    cfx_split_result_free(&r);
    free(many);
    free(parts);
    cfx_graph_release(g);
}
