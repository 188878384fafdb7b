/* ops.c - tests of src/ops/ops.c: the operator table, and what a node calls. */
#include "check.h"
#include "graph_fixture.h"

TEST(names_and_rows)
{
    CHECK_STR_EQ("cfx.cond", cfx_operator_name(CFX_OPID_cond));
    CHECK_STR_EQ(NULL, cfx_operator_name(CFX_OPID_NONE));
    CHECK_STR_EQ(NULL, cfx_operator_name((cfx_operator)12345));
    CHECK_INT_EQ(2, cfx_operator_regions(CFX_OPID_while_loop));
    CHECK_INT_EQ(1, cfx_operator_regions(CFX_OPID_for_loop));
    CHECK_INT_EQ(0, cfx_operator_regions(CFX_OPID_NONE));
    for (int op = 1; op < CFX_OPERATOR_COUNT; op++)
        CHECK_INT_EQ(op, cfx_operator_parse(cfx_operator_name((cfx_operator)op)));
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_operator_parse("cfx.con"));
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_operator_parse("cfx.conde"));
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_operator_parse(""));
}

TEST(the_operator_of_a_node)
{
    cfx_graph *g = nested_graph(NULL, NULL, 1);
    cfx_node *n = cfx_graph_find(g, "cond");
    CHECK_INT_EQ(CFX_OPID_cond, cfx_node_operator(n));
    CHECK_INT_EQ(CFX_OPID_cond, cfx_node_operator(n));  /* from what was kept */
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_node_operator(cfx_graph_find(g, "relu")));
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_node_operator(cfx_graph_first(g)));
    cfx_target loop = {.name = "cfx.while_loop", .size = 14};
    cfx_node_set_target(n, loop, NULL);
    CHECK_INT_EQ(CFX_OPID_while_loop, cfx_node_operator(n));
    cfx_node_set_op(n, CFX_OP_CALL_METHOD, NULL);
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_node_operator(n));
    cfx_graph_release(g);
}

/* ---- through a host ------------------------------------------------------------------------ */

static int times_asked;

static void host_count(void *ctx, void *object)
{
    (void)ctx;
    (void)object;
}

/* Objects are their names. */
static cfx_status host_name(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    const char *name = object;
    (void)ctx;
    times_asked++;
    if (!*name)
        return cfx_error_set(err, CFX_E_KEY, "no name");
    return out.write(out.ctx, name, strlen(name));
}

static cfx_status host_hint(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    (void)object;
    (void)err;
    return out.write(out.ctx, "f", 1);
}

static const cfx_host test_host = {
    .retain = host_count, .release = host_count, .repr = host_name, .qualified_name = host_name,
    .name_hint = host_hint,
};

TEST(a_host_object_is_asked_once)
{
    static char objects[][16] = {"cfx.cond", ""};
    cfx_graph *g = cfx_graph_new(NULL, &test_host, NULL);
    for (int i = 0; i < 10; i++) {
        cfx_target t = {.object = objects[i % 2]};
        cfx_graph_create(g, CFX_OP_CALL_FUNCTION, t, cfx_invalid(), cfx_invalid(), NULL,
                         cfx_invalid(), NULL);
    }
    int i = 0;
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n), i++)
        CHECK_INT_EQ(i % 2 ? CFX_OPID_NONE : CFX_OPID_cond, cfx_node_operator(n));
    CHECK_INT_EQ(2, times_asked);
    cfx_graph_release(g);
}
