/* value_map.c - tests of src/ir/value_map.c: rebuilding values. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"
#include "ir/graph_impl.h"

typedef struct swap {
    cfx_node *from;
    cfx_value to;
    int calls;
    int fail_at;  /* this call fails; 0: none */
} swap;

static cfx_value swap_node(void *ctx, cfx_node *n, cfx_error *err)
{
    swap *s = ctx;
    if (++s->calls == s->fail_at) {
        cfx_error_set(err, CFX_E_KEY, "enough");
        return cfx_value_invalid();
    }
    return n == s->from ? s->to : cfx_value_node(n);
}

TEST(unchanged_containers_are_shared)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    cfx_value inner[] = {cfx_value_node(x), cfx_value_int(1)};
    cfx_value other[] = {cfx_value_node(y), text_value(g, "t", NULL)};
    cfx_value outer[] = {cfx_value_list(g, inner, 2, NULL), cfx_value_tuple(g, other, 2, NULL)};
    cfx_value v = cfx_value_list(g, outer, 2, NULL);
    swap s = {NULL, cfx_value_none(), 0, 0};
    cfx_value same = cfx_value_map(g, g, v, swap_node, &s, NULL);
    CHECK(same.as.seq == v.as.seq);
    CHECK_INT_EQ(2, s.calls);
    s.from = y;
    s.to = cfx_value_node(x);
    cfx_value mapped = cfx_value_map(g, g, v, swap_node, &s, NULL);
    size_t n;
    const cfx_value *items = cfx_value_items(mapped, &n);
    CHECK_INT_EQ(2, n);
    CHECK(mapped.as.seq != v.as.seq);
    CHECK(items[0].as.seq == outer[0].as.seq);
    CHECK(items[1].as.seq != outer[1].as.seq);
    CHECK(cfx_value_items(items[1], NULL)[0].as.node == x);
    CHECK(cfx_value_items(items[1], NULL)[1].as.str == other[1].as.str);
    cfx_graph_release(g);
}

TEST(a_node_may_become_any_value)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_value pair[] = {cfx_value_int(1), cfx_value_int(2)};
    swap s = {x, cfx_value_tuple(g, pair, 2, NULL), 0, 0};
    cfx_value v = cfx_value_map(g, g, cfx_value_node(x), swap_node, &s, NULL);
    CHECK(v.as.seq == s.to.as.seq);
    cfx_value list = cfx_value_map(g, g, sample_value(g, x, NULL), swap_node, &s, NULL);
    CHECK_INT_EQ(CFX_KIND_LIST, list.kind);
    cfx_value dict = cfx_value_items(list, NULL)[1];
    CHECK(cfx_value_equal(cfxi_ir_value_get(dict, "dim"), s.to));
    cfx_graph_release(g);
}

/* Every kind, into another graph. */
TEST(values_are_copied_into_another_graph)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *sub = sample_graph(NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *there = cfx_graph_placeholder(h, "there", NULL);
    cfx_value many[20];
    size_t n = 0;
    many[n++] = sample_value(g, x, NULL);
    many[n++] = cfx_value_bytes(g, "\0\1", 2, NULL);
    many[n++] = cfx_value_integer(g, "123456789012345678901234567890", 30, NULL);
    many[n++] = cfx_value_device(g, "cuda:1", 6, NULL);
    many[n++] = cfx_value_complex(g, 1.0, -2.0, NULL);
    many[n++] = cfx_value_name(g, "torch.Tensor", 12, NULL);
    many[n++] = cfx_value_region(g, sub, NULL);
    many[n++] = cfx_value_dtype(CFX_DTYPE_FLOAT32);
    many[n++] = cfx_value_ellipsis();
    many[n++] = cfx_value_node(x);
    swap s = {x, cfx_value_node(there), 0, 0};
    cfx_value v = cfx_value_map(h, g, cfx_value_tuple(g, many, n, NULL), swap_node, &s, NULL);
    REQUIRE(v.kind == CFX_KIND_TUPLE);
    const cfx_value *items = cfx_value_items(v, NULL);
    for (size_t i = 1; i < 9; i++)
        CHECK(cfx_value_equal(items[i], many[i]));
    CHECK(items[9].as.node == there);
    CHECK(cfx_value_graph(items[6]) != sub);
    CHECK(cfx_graph_parent(cfx_value_graph(items[6])) == h);
    cfx_graph_release(g);
    cfx_graph_release(sub);
    cfx_node *n1 = cfx_graph_call(h, CFX_OP_CALL_FUNCTION, "f.f", items, 10, NULL, 0, NULL);
    CHECK(n1 != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(h, NULL, NULL, NULL));
    cfx_graph_release(h);
}

TEST(failures_are_handed_on)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_error err = {.status = CFX_OK};
    swap s = {NULL, cfx_value_none(), 0, 2};
    cfx_value v = cfx_value_map(h, g, sample_value(g, x, NULL), swap_node, &s, &err);
    CHECK_INT_EQ(CFX_KIND_INVALID, v.kind);
    CHECK_INT_EQ(CFX_E_GRAPH, err.status);  /* the first answer is a node of g, not of h */
    err.status = CFX_OK;
    s.calls = 0;
    v = cfx_value_map(g, g, sample_value(g, x, NULL), swap_node, &s, &err);
    CHECK_INT_EQ(CFX_KIND_INVALID, v.kind);
    CHECK_INT_EQ(CFX_E_KEY, err.status);
    err.status = CFX_OK;
    v = cfx_value_map(g, g, cfx_value_invalid(), swap_node, &s, &err);
    CHECK_INT_EQ(CFX_KIND_INVALID, v.kind);
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    cfx_graph_release(h);
    cfx_graph_release(g);
}

TEST(mapping_again_and_again_leaves_memory_flat)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_value v = cfx_value_retain(sample_value(g, x, NULL));
    swap s = {x, cfx_value_int(1), 0, 0};
    size_t before = 0;
    for (int i = 0; i < 2000; i++) {
        s.fail_at = i % 2 ? s.calls + 2 : 0;  /* every other one fails half-way */
        cfx_value_discard(h, cfx_value_map(h, g, v, swap_node, &s, NULL));
        if (i == 10)
            before = cfx_graph_memory(h);
    }
    CHECK_INT_EQ(before, cfx_graph_memory(h));
    cfx_graph_release(h);
    cfx_graph_release(g);
}

static cfx_status map_body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_new(a, NULL, &err);
    cfx_graph *h = g ? cfx_graph_new(a, NULL, &err) : NULL;
    cfx_node *x = h ? cfx_graph_placeholder(g, "x", &err) : NULL;
    cfx_value v = x ? sample_value(g, x, &err) : cfx_value_invalid();
    cfx_value wide[20];
    (void)arg;
    for (int i = 0; i < 20; i++)
        wide[i] = v;
    if (v.kind != CFX_KIND_INVALID)
        v = cfx_value_tuple(g, wide, 20, &err);
    swap s = {x, cfx_value_int(1), 0, 0};
    if (v.kind != CFX_KIND_INVALID)
        cfx_value_map(h, g, v, swap_node, &s, &err);
    cfx_graph_release(h);
    cfx_graph_release(g);
    return err.status;
}

TEST(map_out_of_memory)
{
    CHECK(test_oom_sweep(map_body, NULL) > 4);
}
