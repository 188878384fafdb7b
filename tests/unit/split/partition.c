/* partition.c - tests of src/split: proposing parts, checking and fusing them, reaching. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

#include <cfx/embed/partition.h>

static cfx_node *call2(cfx_graph *g, const char *target, cfx_node *a, cfx_node *b)
{
    cfx_value args[] = {cfx_value_node(a), b ? cfx_value_node(b) : cfx_value_int(1)};
    return cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target, args, 2, NULL, 0, NULL);
}

static cfx_node *add(cfx_graph *g, cfx_node *a, cfx_node *b) { return call2(g, "t.add", a, b); }
static cfx_node *relu(cfx_graph *g, cfx_node *a) { return call2(g, "t.relu", a, NULL); }

/* Additions are supported, and so is operator.getitem. */
static int supports(void *ctx, cfx_node *n)
{
    const char *target = cfx_node_target(n, NULL, NULL);
    (void)ctx;
    return cfx_node_op(n) == CFX_OP_CALL_FUNCTION && strcmp(target, "t.relu") != 0 &&
           strcmp(target, "t.split") != 0;
}

static int supports_nothing_known(void *ctx, cfx_node *n)
{
    (void)ctx;
    return strcmp(cfx_node_name(n, NULL), "relu") == 0 ? -1 : 1;
}

/* "d e|a b": the names in each part. */
static const char *proposed_by(cfx_graph *g, cfx_partition_options opts)
{
    static char text[512];
    uint32_t parts[64];
    size_t n, used = 0;
    opts.supported = supports;
    if (!CHECK_INT_EQ(CFX_OK, cfx_graph_partition(g, &opts, parts, &n, NULL)))
        return "";
    CHECK_INT_EQ(CFX_OK, cfx_graph_check_parts(g, parts, n, NULL));
    text[0] = '\0';
    for (size_t part = 0; part < n; part++) {
        size_t i = 0, members = 0;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", part ? "|" : "");
        for (const cfx_node *node = cfx_graph_first(g); node; node = cfx_node_next(node))
            if (parts[i++] == part)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                         members++ ? " " : "", cfx_node_name(node, NULL));
    }
    return text;
}

static const char *proposed(cfx_graph *g, bool connected)
{
    return proposed_by(g, (cfx_partition_options){.connected = connected});
}

static cfx_graph *new_graph(cfx_node **x)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    *x = cfx_graph_placeholder(g, "x", NULL);
    return g;
}

TEST(an_unsupported_node_between_two_parts_them)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *b = add(g, a, a);
    cfx_node *c = add(g, relu(g, b), a);
    add(g, x, x);
    cfx_graph_output(g, cfx_value_node(c), NULL);
    CHECK_STR_EQ("add_2 add_3|add add_1", proposed(g, false));
    CHECK_STR_EQ("add_3|add_2|add add_1", proposed(g, true));
    cfx_graph_release(g);
}

TEST(what_is_not_connected_stays_apart_if_told_so)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *b = add(g, x, NULL);
    cfx_node *c = add(g, a, NULL);
    add(g, relu(g, a), NULL);  /* so `a` is a level above `c`, but they can be one part */
    cfx_graph_output(g, cfx_value_node(c), NULL);
    (void)b;
    CHECK_STR_EQ("add_1 add_2 add_3|add", proposed(g, false));
    CHECK_STR_EQ("add_3|add_1|add add_2", proposed(g, true));
    cfx_graph_release(g);
}

/* Without that, `c` and `d` would be one part with `e`, after `r`. */
TEST(calls_that_may_not_move_are_parts_in_their_order)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *b = add(g, x, a);
    cfx_node *r = relu(g, x);
    cfx_node *c = add(g, b, NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    cfx_node *d = add(g, c, y);
    relu(g, d);
    cfx_node *e = add(g, r, NULL);
    cfx_graph_output(g, cfx_value_node(e), NULL);
    CHECK_STR_EQ("add_4|add_2 add_3|add add_1",
                 proposed_by(g, (cfx_partition_options){.in_order = true}));
    cfx_graph_release(g);
}

/* b0 -> x0 -> c2 and c0 -> x1 -> b1: {b0, b1} and {c0, c2} would need each other. */
TEST(parts_that_need_each_other_are_not_made)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *b0 = add(g, x, NULL);
    cfx_node *c0 = add(g, x, NULL);
    cfx_node *x0 = relu(g, b0);
    cfx_node *x1 = relu(g, c0);
    cfx_node *b1 = add(g, b0, x1);
    cfx_node *c2 = add(g, c0, x0);
    cfx_graph_output(g, cfx_value_node(add(g, b1, c2)), NULL);
    CHECK_STR_EQ("add_2 add_3 add_4|add add_1", proposed(g, false));
    CHECK(strchr(proposed(g, true), '|') != NULL);
    cfx_graph_release(g);
}

TEST(items_stay_with_their_value)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *pair = add(g, x, NULL);
    cfx_node *first = call2(g, "_operator.getitem", pair, NULL);
    cfx_node *second = call2(g, "operator.getitem", pair, NULL);
    cfx_node *sum = add(g, relu(g, first), second);
    cfx_node *cut = call2(g, "t.split", sum, NULL);
    cfx_node *item = call2(g, "_operator.getitem", cut, NULL);
    cfx_graph_output(g, cfx_value_node(add(g, item, NULL)), NULL);
    CHECK_STR_EQ("add_2|add_1|add getitem getitem_1", proposed(g, false));
    cfx_graph_release(g);
}

/* The index needs what the part gives: the item cannot be in it. */
TEST(items_with_a_computed_index_are_not_moved)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *b = add(g, x, NULL);
    cfx_node *i = relu(g, b);
    cfx_node *late = call2(g, "_operator.getitem", a, i);
    cfx_node *early = call2(g, "_operator.getitem", a, b);
    cfx_node *out = add(g, relu(g, early), late);
    cfx_graph_output(g, cfx_value_node(out), NULL);
    CHECK_STR_EQ("getitem add_2|add add_1 getitem_1", proposed(g, false));
    cfx_graph_release(g);
}

TEST(bad_input)
{
    cfx_node *x;
    uint32_t parts[8] = {0};
    size_t n = 7;
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    const cfx_partition_options opts = {.supported = supports, .connected = false};
    CHECK_INT_EQ(CFX_OK, cfx_graph_partition(g, &opts, parts, &n, NULL));
    CHECK_INT_EQ(0, n);
    CHECK_INT_EQ(CFX_OK, cfx_graph_check_parts(g, parts, 0, NULL));
    cfx_graph_release(g);
    g = new_graph(&x);
    cfx_node *r = relu(g, x);
    cfx_node *a = add(g, r, NULL);
    const cfx_partition_options doubtful = {.supported = supports_nothing_known};
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_partition(g, &doubtful, parts, &n, &err));
    CHECK(strstr(err.message, "%relu") != NULL);
    cfx_node_prepend(r, a, NULL);
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_partition(g, &opts, parts, &n, &err));
    CHECK(strstr(err.message, "%add comes before %relu") != NULL);
    cfx_graph_release(g);
}

TEST(parts_with_a_cycle_are_reported)
{
    cfx_node *x;
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *r = relu(g, a);
    cfx_node *b = add(g, r, a);
    cfx_node_set_location(b, "model.py", 7, NULL);
    cfx_graph_output(g, cfx_value_node(b), NULL);
    const uint32_t bad[] = {CFX_NO_PART, 1, CFX_NO_PART, 1, CFX_NO_PART};
    const uint32_t good[] = {CFX_NO_PART, 1, 1, 1, CFX_NO_PART};
    CHECK_INT_EQ(CFX_OK, cfx_graph_check_parts(g, good, 2, NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_check_parts(g, bad, 2, &err));
    CHECK(strstr(err.message, "%add_1 (model.py:7) uses %relu, which needs") != NULL);
    cfx_graph_release(g);
}

static const cfx_target getitem = {.name = "_operator.getitem", .size = 17};

TEST(a_call_takes_the_place_of_a_part)
{
    cfx_node *x, *made[2];
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *b = relu(g, a);
    cfx_node *c = add(g, a, b);
    cfx_node *out = cfx_graph_output(g, cfx_value_node(c), NULL);
    cfx_node *outputs[] = {a, b};
    const cfx_fused two = {.path = "fused", .inputs = &x, .n_inputs = 1, .outputs = outputs,
                           .n_outputs = 2};
    cfx_node *n = cfx_graph_insert_fused(g, &two, getitem, made, NULL);
    CHECK(n && cfx_node_input(n, 0) == x && cfx_node_prev(n) == b && cfx_node_next(n) == made[0]);
    CHECK(cfx_node_next(made[1]) == c && cfx_node_uses(c, made[0]) && cfx_node_uses(c, made[1]));
    CHECK_INT_EQ(CFX_OK, cfx_graph_erase(g, b, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_erase(g, a, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    const cfx_fused one = {.path = "last", .inputs = made, .n_inputs = 2, .outputs = &c,
                           .n_outputs = 1};
    n = cfx_graph_insert_fused(g, &one, getitem, NULL, NULL);
    CHECK(n && cfx_node_uses(out, n) && cfx_node_num_users(c) == 0);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    const cfx_fused none = {.path = "none"};
    n = cfx_graph_insert_fused(g, &none, getitem, NULL, NULL);
    CHECK(n && cfx_graph_first(g) == n && cfx_node_num_args(n) == 0);
    cfx_graph_release(g);
}

static cfx_status collect_name(void *ctx, cfx_node *n)
{
    strcat(ctx, cfx_node_name(n, NULL));
    strcat(ctx, " ");
    return CFX_OK;
}

TEST(reaching_up_and_down)
{
    cfx_node *x;
    char text[128] = "";
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *r = relu(g, a);
    cfx_node *b = add(g, a, r);
    cfx_graph_output(g, cfx_value_node(b), NULL);
    cfx_node *from[] = {a, r};
    CHECK_INT_EQ(CFX_OK, cfx_graph_each_reached(g, from, 2, true, collect_name, text, NULL));
    CHECK_STR_EQ("relu add_1 output ", text);
    text[0] = '\0';
    CHECK_INT_EQ(CFX_OK, cfx_graph_each_reached(g, &r, 1, false, collect_name, text, NULL));
    CHECK_STR_EQ("add x ", text);
    cfx_graph_release(g);
}

/* size -> mul -> view stay together, and what lies between mul and view; not what is beside. */
TEST(values_that_are_no_tensors)
{
    cfx_node *x;
    uint32_t groups[16];
    size_t n;
    cfx_graph *g = new_graph(&x);
    cfx_node *size = relu(g, x);
    cfx_node *mul = add(g, size, NULL);
    cfx_node *way = relu(g, mul);
    cfx_node *more = relu(g, way);
    cfx_node *view = call2(g, "t.view", mul, more);
    cfx_graph_output(g, cfx_value_node(relu(g, view)), NULL);
    enum { ACC = CFX_FUSION_ACC, TENSOR = CFX_FUSION_TENSOR, BOTH = ACC | TENSOR };
    /* x size mul way more view relu output: `way` takes what is no tensor, `more` lies between */
    const unsigned char flags[] = {TENSOR, ACC, ACC, BOTH, BOTH, BOTH, BOTH, 0};
    CHECK_INT_EQ(CFX_OK, cfx_graph_fusion_groups(g, flags, groups, &n, NULL));
    CHECK_INT_EQ(1, n);
    for (size_t i = 0; i < sizeof flags; i++)
        CHECK_INT_EQ(i >= 1 && i <= 5 ? 0 : CFX_NO_PART, groups[i]);
    const unsigned char split[] = {TENSOR, ACC, ACC, TENSOR, BOTH, BOTH, BOTH, 0};
    CHECK_INT_EQ(CFX_OK, cfx_graph_fusion_groups(g, split, groups, &n, NULL));
    CHECK_INT_EQ(CFX_NO_PART, groups[3]);
    CHECK_INT_EQ(0, groups[4]);
    const unsigned char none[] = {0, ACC, TENSOR, 0, 0, 0, 0, 0};
    CHECK_INT_EQ(CFX_OK, cfx_graph_fusion_groups(g, none, groups, &n, NULL));
    CHECK_INT_EQ(0, n);
    cfx_node_prepend(size, view, NULL);
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_fusion_groups(g, flags, groups, &n, NULL));
    cfx_graph_release(g);
}

TEST(transparent_nodes_at_the_edges)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *a = relu(g, x);
    cfx_node *b = add(g, a, NULL);
    cfx_node *c = relu(g, b);
    cfx_node *d = add(g, c, NULL);
    cfx_node *e = relu(g, d);
    cfx_node *f = relu(g, x);
    cfx_node *nodes[] = {a, b, c, d, e, f};
    bool flags[] = {true, false, true, false, true, true};
    const bool edges[] = {true, false, false, false, true, true};
    cfx_nodes_find_boundary(nodes, 6, flags);
    for (size_t i = 0; i < 6; i++)
        CHECK_INT_EQ(edges[i], flags[i]);
    cfx_nodes_find_boundary(nodes, 0, flags);
    cfx_graph_release(g);
}

static cfx_status collect_boundary(void *ctx, cfx_boundary_kind kind, cfx_node *n)
{
    strcat(ctx, kind == CFX_BOUNDARY_INPUT ? "<" : kind == CFX_BOUNDARY_OUTPUT ? ">" : "=");
    return collect_name(ctx, n);
}

TEST(the_boundary_of_nodes)
{
    cfx_node *x;
    char text[128] = "";
    cfx_graph *g = new_graph(&x);
    cfx_node *w = cfx_graph_get_attr(g, "w", NULL);
    cfx_node *r = relu(g, x);
    cfx_node *a = add(g, x, w);
    cfx_node *b = add(g, a, r);
    cfx_node *c = add(g, b, x);
    cfx_graph_output(g, cfx_value_node(add(g, c, a)), NULL);
    cfx_node *nodes[] = {w, a, b, c};
    CHECK_INT_EQ(CFX_OK, cfx_nodes_boundary(nodes, 4, collect_boundary, text, NULL));
    CHECK_STR_EQ("<x <relu >add >add_2 =w ", text);
    text[0] = '\0';
    CHECK_INT_EQ(CFX_OK, cfx_nodes_boundary(nodes + 1, 1, collect_boundary, text, NULL));
    CHECK_STR_EQ("<x >add ", text);  /* reading an attribute is no input */
    CHECK_INT_EQ(CFX_OK, cfx_nodes_boundary(nodes, 0, collect_boundary, text, NULL));
    cfx_graph_release(g);
}

/* ---- size and memory ----------------------------------------------------------------------- */

/* A chain with a branch at every node; every fourth is not supported. */
static cfx_graph *chain(const cfx_allocator *a, size_t n, cfx_error *err)
{
    cfx_graph *g = cfx_graph_new(a, NULL, err);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", err) : NULL;
    cfx_node *before = x;
    for (size_t i = 0; x && i < n; i++) {
        cfx_value args[] = {cfx_value_node(x), cfx_value_node(before)};
        before = x;
        x = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, i % 4 == 3 ? "t.relu" : "t.add", args, 2, NULL,
                           0, err);
    }
    if (x && cfx_graph_output(g, cfx_value_node(x), err))
        return g;
    cfx_graph_release(g);
    return NULL;
}

TEST(a_million_nodes)
{
    enum { MANY = 1000000 };
    cfx_graph *g = chain(NULL, MANY, NULL);
    uint32_t *parts = malloc((MANY + 2) * sizeof *parts);
    size_t n;
    for (int connected = 0; connected < 2; connected++) {
        const cfx_partition_options opts = {.supported = supports, .connected = connected};
        CHECK_INT_EQ(CFX_OK, cfx_graph_partition(g, &opts, parts, &n, NULL));
        CHECK_INT_EQ(MANY / 4, n);
    }
    CHECK_INT_EQ(CFX_OK, cfx_graph_check_parts(g, parts, n, NULL));
    free(parts);
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *ctx)
{
    cfx_error own = {.status = CFX_OK}, *err = &own;
    uint32_t parts[16];
    size_t n;
    cfx_status status = CFX_E_NOMEM;
    const cfx_partition_options opts = {.supported = supports, .connected = true};
    cfx_graph *g = chain(a, 9, err);
    (void)ctx;
    if (!g)
        return CFX_E_NOMEM;
    status = cfx_graph_partition(g, &opts, parts, &n, err);
    if (status == CFX_OK)
        status = cfx_graph_check_parts(g, parts, n, err);
    cfx_node *x = cfx_graph_first(g), *a0 = cfx_node_next(x);
    char text[256] = "";
    if (status == CFX_OK)
        status = cfx_graph_each_reached(g, &x, 1, true, collect_name, text, err);
    if (status == CFX_OK)
        status = cfx_nodes_boundary(&a0, 1, collect_boundary, text, err);
    const cfx_fused call = {.path = "fused", .inputs = &x, .n_inputs = 1, .outputs = &a0,
                            .n_outputs = 1, .tuple = true};
    if (status == CFX_OK)
        status = cfx_graph_insert_fused(g, &call, getitem, NULL, err) ? CFX_OK : CFX_E_NOMEM;
    const unsigned char flags[16] = {[2] = CFX_FUSION_ACC, [3] = CFX_FUSION_ACC};
    if (status == CFX_OK)
        status = cfx_graph_fusion_groups(g, flags, parts, &n, err);
    if (status == CFX_OK)
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
    return status;
}

TEST(running_out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 10);
}
