/* node.c - tests of creating nodes and reading them. */
#include "graph_test.h"

#include "ir/graph_impl.h"

TEST(reading_a_node)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", &err);
    cfx_value args[] = {cfx_value_node(x), cfx_value_int(2)};
    cfx_kwarg kwargs[] = {{"alpha", cfx_value_float(0.5)}, {"beta", cfx_value_none()}};
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.add", args, 2, kwargs, 2, &err);
    REQUIRE(n);
    size_t size = 0;
    CHECK(cfx_node_graph(n) == g);
    CHECK_INT_EQ(CFX_OP_CALL_FUNCTION, cfx_node_op(n));
    CHECK_STR_EQ("add", cfx_node_name(n, &size));
    CHECK_INT_EQ(3, size);
    CHECK_STR_EQ("torch.add", cfx_node_target(n, &size, &err));
    CHECK_INT_EQ(9, size);
    CHECK(!cfx_node_target_object(n));
    CHECK_INT_EQ(2, cfx_node_num_args(n));
    CHECK(cfx_node_arg(n, 0).as.node == x && cfx_node_arg(n, 1).as.i == 2);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_node_arg(n, 2).kind);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_node_arg(x, 0).kind);
    CHECK(cfx_node_kwarg(n, "alpha").as.f == 0.5);
    CHECK_INT_EQ(CFX_KIND_NONE, cfx_node_kwarg(n, "beta").kind);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_node_kwarg(n, "gamma").kind);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_node_kwarg(x, "alpha").kind);
    CHECK_INT_EQ(CFX_KIND_TUPLE, cfx_node_args(n).kind);
    CHECK_INT_EQ(CFX_KIND_DICT, cfx_node_kwargs(n).kind);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_node_type(n).kind);
    CHECK(cfx_node_before(x, n) && !cfx_node_before(n, x) && !cfx_node_before(n, n));
    CHECK(cfx_node_order(x) < cfx_node_order(n));
    CHECK(!cfx_node_is_erased(n));
    CHECK(!cfx_node_binding(n));
    cfx_node_set_binding(n, &size);
    CHECK(cfx_node_binding(n) == &size);
    cfx_graph_release(g);
}

TEST(every_opcode)
{
    static const char *const names[] = {"placeholder", "get_attr", "call_function", "call_module",
                                        "call_method", "output"};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (int i = 0; i < CFX_OPCODE_COUNT; i++) {
        cfx_opcode op = CFX_OPCODE_COUNT;
        CHECK_STR_EQ(names[i], cfx_opcode_name((cfx_opcode)i));
        CHECK(cfx_opcode_parse(names[i], &op) && (int)op == i);
        cfx_node *n = cfx_graph_create(g, (cfx_opcode)i, by_name("t"), cfx_value_invalid(),
                                       cfx_value_invalid(), NULL, cfx_value_invalid(), NULL);
        CHECK_INT_EQ(i, cfx_node_op(n));
    }
    cfx_opcode op = CFX_OP_OUTPUT;
    CHECK(!cfx_opcode_parse("root", &op) && !cfx_opcode_parse("", &op) && op == CFX_OP_OUTPUT);
    CHECK_STR_EQ("unknown", cfx_opcode_name(CFX_OPCODE_COUNT));
    CHECK(cfx_node_op(cfx_graph_get_attr(g, "a.b", NULL)) == CFX_OP_GET_ATTR);
    cfx_node *out = cfx_graph_output(g, cfx_value_int(1), NULL);
    CHECK_STR_EQ("output", cfx_node_name(out, NULL));
    CHECK_STR_EQ("output", cfx_node_target(out, NULL, NULL));
    CHECK_INT_EQ(1, cfx_node_arg(out, 0).as.i);
    cfx_graph_release(g);
}

static cfx_status create_status(cfx_graph *g, cfx_opcode op, cfx_target target, cfx_value args,
                                cfx_value kwargs, cfx_value type)
{
    static dump_text before, after;
    cfx_error err = {0};
    const uint64_t version = cfx_graph_version(g);
    dump_graph(&before, g);
    cfx_node *n = cfx_graph_create(g, op, target, args, kwargs, NULL, type, &err);
    CHECK((n == NULL) == (err.status != CFX_OK));
    dump_graph(&after, g);
    if (!n) {
        CHECK_STR_EQ(before.data, after.data);
        CHECK_INT_EQ(version, cfx_graph_version(g));
    }
    return err.status;
}

TEST(wrong_creations)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    const cfx_value no = cfx_value_invalid();
    const cfx_target t = by_name("t");
    cfx_value x = cfx_value_node(cfx_graph_placeholder(g, "x", NULL));
    cfx_value foreign = cfx_value_node(cfx_graph_placeholder(h, "y", NULL));
    const cfx_opcode f = CFX_OP_CALL_FUNCTION;
    CHECK_INT_EQ(CFX_E_VALUE, create_status(g, CFX_OPCODE_COUNT, t, no, no, no));
    CHECK_INT_EQ(CFX_E_VALUE, create_status(g, (cfx_opcode)-1, t, no, no, no));
    CHECK_INT_EQ(CFX_E_VALUE, create_status(g, f, (cfx_target){.name = NULL}, no, no, no));
    CHECK_INT_EQ(CFX_E_VALUE, create_status(g, f, (cfx_target){NULL, "\xff", 1}, no, no, no));
    CHECK_INT_EQ(CFX_E_TYPE, create_status(g, f, by_object(h), no, no, no));
    CHECK_INT_EQ(CFX_E_TYPE, create_status(g, f, t, cfx_value_int(1), no, no));
    CHECK_INT_EQ(CFX_E_TYPE, create_status(g, f, t, no, tuple_of(g, 0), no));
    CHECK_INT_EQ(CFX_E_GRAPH, create_status(g, f, t, tuple_of(h, 1, foreign), no, no));
    CHECK_INT_EQ(CFX_E_TYPE, create_status(g, f, t, no, no, x));
    CHECK_INT_EQ(CFX_E_TYPE, create_status(g, f, t, no, no, tuple_of(g, 1, tuple_of(g, 1, x))));
    CHECK_INT_EQ(CFX_E_TYPE, create_status(g, f, t, no, no, foreign));
    CHECK_INT_EQ(CFX_E_VALUE, create_status(g, f, t, no, no, cfx_value_scalar(CFX_KIND_COUNT, 0)));
    CHECK_INT_EQ(CFX_E_GRAPH, create_status(g, f, t, no, no, cfx_value_name(h, "a.b", 3, NULL)));
    CHECK(!cfx_graph_placeholder(g, NULL, NULL) && !cfx_graph_get_attr(g, NULL, NULL));
    CHECK(!cfx_graph_output(g, no, NULL));
    CHECK_STR_EQ("x", list_names(g));
    CHECK_STR_EQ("t", cfx_node_name(call(g, "t", NULL), NULL)); /* no name was used up */
    CHECK_INT_EQ(2, g->refs_table.size);
    cfx_graph_release(g);
    cfx_graph_release(h);
}

TEST(types)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = cfx_graph_create(g, CFX_OP_PLACEHOLDER, by_name("x"), cfx_value_invalid(),
                                   cfx_value_invalid(), NULL, text_value(g, "Tensor"), NULL);
    CHECK_STR_EQ("Tensor", cfx_value_text(cfx_node_type(n), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_type(n, tuple_of(g, 1, cfx_value_int(1)), NULL));
    CHECK_INT_EQ(CFX_KIND_TUPLE, cfx_node_type(n).kind);
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_type(n, cfx_value_node(n), NULL));
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_type(n, tuple_of(g, 1, cfx_value_node(n)), NULL));
    CHECK_INT_EQ(CFX_KIND_TUPLE, cfx_node_type(n).kind);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_type(n, cfx_value_invalid(), NULL));
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_node_type(n).kind);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_type(n, cfx_value_invalid(), NULL));
    cfx_graph_release(g);
}

TEST(the_root)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *root = cfx_graph_root(g);
    CHECK(!cfx_node_next(root) && !cfx_node_prev(root));
    CHECK_STR_EQ("root", cfx_node_name(root, NULL));
    CHECK(cfx_node_graph(root) == g);
    CHECK_INT_EQ(CFX_OPCODE_COUNT, cfx_node_op(root));
    CHECK(!cfx_node_target(root, NULL, &err));
    CHECK_INT_EQ(CFX_E_GRAPH, err.status);
    CHECK(!cfx_node_target_object(root));
    CHECK(!cfx_node_same_target(root, root));
    CHECK_INT_EQ(0, cfx_node_num_args(root));
    CHECK_INT_EQ(CFX_KIND_TUPLE, cfx_node_args(root).kind);
    CHECK_INT_EQ(CFX_KIND_DICT, cfx_node_kwargs(root).kind);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_node_type(root).kind);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    CHECK(cfx_node_next(root) == x && cfx_node_prev(root) == x);
    cfx_graph_release(g);
}

TEST(same_target)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *a = call(g, "f", NULL);
    cfx_node *b = call(g, "f", NULL);
    cfx_node *c = cfx_graph_get_attr(g, "f", NULL);
    cfx_node *d = call(g, "h", NULL);
    CHECK(cfx_node_same_target(a, b) && cfx_node_same_target(a, c) && !cfx_node_same_target(a, d));
    cfx_graph_release(g);
}

/* ---- all nodes of an opcode and a target --------------------------------------------------- */

static cfx_status note(void *ctx, cfx_node *n)
{
    dump_text *d = ctx;
    dump_add(d, d->size ? " %s" : "%s", cfx_node_name(n, NULL));
    return d->size > 4000 ? CFX_E_LIMIT : CFX_OK;
}

static const char *found(cfx_graph *g, cfx_opcode op, const cfx_target *target)
{
    static dump_text d;
    d.size = 0;
    d.data[0] = '\0';
    CHECK_INT_EQ(CFX_OK, cfx_graph_find_nodes(g, op, target, note, &d));
    return d.data;
}

TEST(each_of)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *a = call(g, "torch.relu", x);
    call(g, "torch.add", x);
    cfx_node *c = call(g, "torch.relu", x);
    const cfx_target relu = by_name("torch.relu");
    const cfx_target neg = by_name("torch.neg");
    CHECK_STR_EQ("relu relu_1", found(g, CFX_OP_CALL_FUNCTION, &relu));
    CHECK_STR_EQ("", found(g, CFX_OP_CALL_METHOD, &relu));
    CHECK_STR_EQ("", found(g, CFX_OP_CALL_FUNCTION, &neg));
    CHECK_STR_EQ("", found(g, CFX_OP_CALL_FUNCTION, &(cfx_target){.name = NULL}));
    CHECK_STR_EQ("x", found(g, CFX_OP_PLACEHOLDER, NULL));
    CHECK_STR_EQ("add relu relu_1", found(g, CFX_OP_CALL_FUNCTION, NULL));
    CHECK_STR_EQ("", found(g, CFX_OP_OUTPUT, NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_find_nodes(g, CFX_OPCODE_COUNT, NULL, note, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_target(a, neg, NULL));
    CHECK_STR_EQ("relu_1", found(g, CFX_OP_CALL_FUNCTION, &relu));
    CHECK_STR_EQ("relu", found(g, CFX_OP_CALL_FUNCTION, &neg));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_op(c, CFX_OP_CALL_METHOD, NULL));
    CHECK_STR_EQ("", found(g, CFX_OP_CALL_FUNCTION, &relu));
    CHECK_STR_EQ("relu_1", found(g, CFX_OP_CALL_METHOD, &relu));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_set_op(c, CFX_OPCODE_COUNT, NULL));
    cfx_node_pin(c); /* an erased node can tell its target, but is not found by it */
    CHECK_INT_EQ(CFX_OK, erase(c));
    CHECK_STR_EQ("", found(g, CFX_OP_CALL_METHOD, &relu));
    CHECK_STR_EQ("torch.relu", cfx_node_target(c, NULL, NULL));
    cfx_node_unpin(c);
    CHECK_INT_EQ(3, g->refs_table.size);
    cfx_graph_release(g);
}

static cfx_status stop(void *ctx, cfx_node *n)
{
    (void)n;
    return --*(int *)ctx == 0 ? CFX_E_KEY : CFX_OK;
}

TEST(each_of_stops)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (int i = 0; i < 5; i++)
        call(g, "f", NULL);
    int left = 3;
    CHECK_INT_EQ(CFX_E_KEY, cfx_graph_find_nodes(g, CFX_OP_CALL_FUNCTION, NULL, stop, &left));
    CHECK_INT_EQ(0, left);
    cfx_graph_release(g);
}

/* ---- size and out of memory ---------------------------------------------------------------- */

TEST(a_chain_is_small)
{
    enum { NODES = 40000 };
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    for (int i = 1; i < NODES; i++) {
        cfx_value args[] = {cfx_value_node(x), cfx_value_int(1)};
        x = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, i % 2 ? "torch.relu" : "_operator.add", args,
                           i % 2 ? 1 : 2, NULL, 0, NULL);
    }
    if (!CHECK(cfx_graph_memory(g) <= (size_t)NODES * 256))
        printf("    %zu bytes per node\n", cfx_graph_memory(g) / NODES);
    cfx_graph_release(g);
}

static cfx_value one_of_each(cfx_graph *g, void *object, cfx_node *x, cfx_error *err)
{
    cfx_value field = cfx_value_str(g, "field", 5, err);
    cfx_value fields = cfx_value_tuple(g, &field, 1, err);
    cfx_value named[] = {cfx_value_host(g, object, err), fields, cfx_value_int(1)};
    cfx_value dict[] = {cfx_value_str(g, "key", 3, err), cfx_value_node(x)};
    cfx_graph *sub = NULL;
    if (err->status == CFX_OK)
        sub = cfx_graph_new(cfx_graph_allocator(g), NULL, err);
    cfx_value region = sub ? cfx_value_region(g, sub, err) : cfx_value_invalid();
    cfx_graph_release(sub);
    cfx_value items[] = {cfx_value_none(),
                         cfx_value_bool(true),
                         cfx_value_float(1),
                         cfx_value_node(x),
                         region,
                         cfx_value_bytes(g, "bytes", 5, err),
                         cfx_value_device(g, "cpu", 3, err),
                         cfx_value_integer(g, "123456789012345678901", 21, err),
                         cfx_value_complex(g, 1, 2, err),
                         cfx_value_dtype(CFX_DTYPE_INT8),
                         cfx_value_seq(g, CFX_KIND_NAMEDTUPLE, named, 3, err),
                         cfx_value_seq(g, CFX_KIND_DICT, dict, 2, err),
                         cfx_value_seq(g, CFX_KIND_SET, dict, 1, err),
                         cfx_value_name(g, "a.b", 3, err)};
    return cfx_value_tuple(g, items, 14, err);
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    static dump_text before, after;
    cfx_error err = {0};
    fake_host state = {0};
    const cfx_host host = fake_host_table(&state);
    fake_object o = {.name = "m.o"};
    (void)arg;
    cfx_graph *g = cfx_graph_new(a, &host, &err);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", &err) : NULL;
    for (int i = 0; x && i < 30 && err.status == CFX_OK; i++) {
        cfx_value args = one_of_each(g, &o, x, &err);
        cfx_value type = cfx_value_str(g, "a type", 6, &err);
        if (err.status != CFX_OK)
            break;
        cfx_value entry[] = {cfx_value_str(g, "kw", 2, &err), args};
        cfx_value kwargs = cfx_value_seq(g, CFX_KIND_DICT, entry, 2, &err);
        if (err.status != CFX_OK)
            break;
        dump_graph(&before, g);
        if (!cfx_graph_create(g, CFX_OP_CALL_FUNCTION, i % 2 ? by_object(&o) : by_name("f"), args,
                              kwargs, i % 3 ? NULL : "wish", type, &err)) {
            dump_graph(&after, g);
            CHECK_STR_EQ(before.data, after.data);
            cfx_value_discard(g, kwargs); /* all of it is still ours */
            cfx_value_discard(g, type);
        }
        cfx_kwarg kw = {"k", cfx_value_none()};
        if (err.status == CFX_OK)
            cfx_graph_call(g, CFX_OP_CALL_METHOD, "m", &kw.value, 1, &kw, 1, &err);
    }
    cfx_graph_release(g);
    CHECK_INT_EQ(0, o.refs);
    return err.status;
}

TEST(creating_out_of_memory) { CHECK(test_oom_sweep(sweep, NULL) > 40); }
