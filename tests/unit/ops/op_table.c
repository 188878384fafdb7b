/* op_table.c - tests of src/ops/op_table.c: the operator table, and what a node calls. */
#include "check.h"
#include "graph_fixture.h"
#include "ops/ops_impl.h"

#include <cfx/embed/graph.h>
#include <cfx/embed/host.h>

/* A parameter in short: "type name=default", with * if only by keyword and ! if written. */
static const char *shown(cfx_operator op, size_t i)
{
    static char text[128];
    cfx_schema_param p;
    if (!cfx_operator_param(op, i, &p))
        return NULL;
    snprintf(text, sizeof text, "%s%s%s%.*s%s%.*s%s%c", p.keyword_only ? "*" : "", p.type,
             p.name.size ? " " : "", (int)p.name.size, p.name.text ? p.name.text : "",
             p.value.size ? "=" : "", (int)p.value.size, p.value.text ? p.value.text : "",
             p.writes ? "!" : "", p.alias ? p.alias : ' ');
    return text;
}

TEST(names_and_rows)
{
    CHECK_STR_EQ("cond", cfx_operator_name(CFX_OPID_cond));
    CHECK_STR_EQ("(Tensor self) -> Tensor", cfx_operator_schema(CFX_OPID_relu));
    CHECK_STR_EQ(NULL, cfx_operator_name(CFX_OPID_NONE));
    CHECK_STR_EQ(NULL, cfx_operator_schema((cfx_operator)12345));
    CHECK_INT_EQ(0, cfx_operator_flags((cfx_operator)-1));
    CHECK_INT_EQ(CFX_OPERATOR_COMMUTES | CFX_OPERATOR_ELEMENTWISE,
                 cfx_operator_flags(CFX_OPID_add));
    CHECK_STR_EQ("commutes", cfx_operator_flag_name(1));
    CHECK_STR_EQ("global", cfx_operator_flag_name(5));
    CHECK_STR_EQ(NULL, cfx_operator_flag_name(6));
    CHECK_INT_EQ(2, cfx_operator_regions(CFX_OPID_while_loop));
    CHECK_INT_EQ(1, cfx_operator_regions(CFX_OPID_for_loop));
    CHECK_INT_EQ(0, cfx_operator_regions(CFX_OPID_NONE));
    CHECK_INT_EQ(0, cfx_operator_regions(CFX_OPID_relu));
}

TEST(every_spelling_leads_to_its_row)
{
    char name[CFX_SPELLING_SIZE];
    for (int i = 1; i < CFX_OPERATOR_COUNT; i++) {
        cfx_operator op = (cfx_operator)i;
        cfx_spelling kind;
        CHECK_INT_EQ(op, cfx_operator_parse(cfx_operator_name(op)));
        CHECK_INT_EQ(0, cfx_operator_find(cfx_operator_name(op), strlen(cfx_operator_name(op))));
        CHECK(cfx_operator_spelling(op, 0, name, NULL) != NULL);
        for (size_t k = 0; cfx_operator_spelling(op, k, name, &kind); k++) {
            CHECK_INT_EQ(op, cfx_operator_parse(name));
            CHECK_INT_EQ(kind == CFX_SPELLING_MODULE ? op : CFX_OPID_NONE,
                         cfxi_ops_of_class(name));
            CHECK_INT_EQ(op, cfx_operator_parse(cfx_operator_short_spelling(op, k, name)));
        }
    }
}

TEST(spellings_in_full)
{
    char name[CFX_SPELLING_SIZE];
    cfx_spelling kind;
    CHECK_STR_EQ("torch.relu", cfx_operator_spelling(CFX_OPID_relu, 0, name, &kind));
    CHECK_INT_EQ(CFX_SPELLING_FUNCTION, kind);
    CHECK_STR_EQ("torch.nn.functional.relu", cfx_operator_spelling(CFX_OPID_relu, 1, name, NULL));
    CHECK_STR_EQ("F.relu", cfx_operator_short_spelling(CFX_OPID_relu, 1, name));
    CHECK_STR_EQ("torch.Tensor.relu", cfx_operator_spelling(CFX_OPID_relu, 2, name, &kind));
    CHECK_INT_EQ(CFX_SPELLING_METHOD, kind);
    CHECK_STR_EQ("torch.nn.ReLU", cfx_operator_spelling(CFX_OPID_relu, 3, name, &kind));
    CHECK_INT_EQ(CFX_SPELLING_MODULE, kind);
    CHECK_STR_EQ("torch.ops.aten.relu.default",
                 cfx_operator_spelling(CFX_OPID_relu, 4, name, &kind));
    CHECK_INT_EQ(CFX_SPELLING_OVERLOAD, kind);
    CHECK_STR_EQ("onnx:Relu", cfx_operator_spelling(CFX_OPID_relu, 5, name, &kind));
    CHECK_INT_EQ(CFX_SPELLING_ONNX, kind);
    CHECK_STR_EQ(NULL, cfx_operator_spelling(CFX_OPID_relu, 6, name, NULL));
    CHECK_STR_EQ(NULL, cfx_operator_short_spelling(CFX_OPID_NONE, 0, name));
}

TEST(names_that_python_gives_the_same_functions)
{
    CHECK_INT_EQ(CFX_OPID_gelu, cfx_operator_parse("torch._C._nn.gelu"));
    CHECK_INT_EQ(CFX_OPID_log_sigmoid, cfx_operator_parse("torch._C._nn.log_sigmoid"));
    CHECK_INT_EQ(CFX_OPID_add, cfx_operator_parse("_operator.add"));
    CHECK_INT_EQ(CFX_OPID_einsum, cfx_operator_parse("torch.functional.einsum"));
    CHECK_INT_EQ(CFX_OPID_linalg_inv, cfx_operator_parse("torch._C._linalg.linalg_inv"));
    CHECK_INT_EQ(CFX_OPID_conv2d, cfxi_ops_of_class("torch.nn.modules.conv.Conv2d"));
    CHECK_INT_EQ(CFX_OPID_NONE, cfxi_ops_of_class("torch.nn.modules.conv."));
    CHECK_INT_EQ(CFX_OPID_NONE, cfxi_ops_of_class("torch.nn.modules."));
    CHECK_INT_EQ(CFX_OPID_relu, cfx_operator_parse("torch.ops.aten.relu"));
    CHECK_INT_EQ(CFX_OPID_add_, cfx_operator_parse("torch.ops.aten.add_"));
    CHECK_INT_EQ(CFX_OPID_transpose, cfx_operator_parse("aten.transpose"));
    CHECK_INT_EQ(CFX_OPID_add, cfx_operator_parse("torch.Tensor.__add__"));
    CHECK_INT_EQ(CFX_OPID_bitwise_and, cfxi_ops_of_method("__and__", 7));
    CHECK_INT_EQ(CFX_OPID_NONE, cfxi_ops_of_method("__radd__", 8));
    CHECK_INT_EQ(CFX_OPID_add_, cfxi_ops_of_method("__iadd__", 8));
}

TEST(what_is_in_no_row)
{
    static const char *const names[] = {
        "", ".", "relu.", "cfx.con", "cfx.conde", "torch.ops.aten.", "torch.ops.aten.nothing",
        "torch.nn.", "torch.nn.functional.", "aten.relu.defaul", "aten.relu.default ",
        "torch.relu F.relu", "onnx:", "F.dropout(input", "torch.Tensor.", "____", "torch.relu\n",
    };
    char longest[400];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!CHECK_INT_EQ(CFX_OPID_NONE, cfx_operator_parse(names[i])))
            printf("    %s\n", names[i]);
    memset(longest, 'x', sizeof longest - 1);
    for (size_t size = sizeof longest - 1; size > 80; size--) {
        longest[size] = '\0';
        CHECK_INT_EQ(CFX_OPID_NONE, cfx_operator_parse(longest));
        CHECK_INT_EQ(CFX_OPID_NONE, cfxi_ops_of_method(longest, size));
    }
    CHECK_INT_EQ(CFX_OPID_NONE, cfxi_ops_of_class("torch.relu"));
    CHECK_INT_EQ(CFX_OPID_NONE, cfxi_ops_of_class("relu"));
}

TEST(parameters_of_a_schema)
{
    CHECK_INT_EQ(3, cfx_operator_num_params(CFX_OPID_add_));
    CHECK_STR_EQ("Tensor self!a", shown(CFX_OPID_add_, 0));
    CHECK_STR_EQ("Tensor other ", shown(CFX_OPID_add_, 1));
    CHECK_STR_EQ("*Scalar alpha=1 ", shown(CFX_OPID_add_, 2));
    CHECK_STR_EQ(NULL, shown(CFX_OPID_add_, 3));
    CHECK_STR_EQ("int[2] stride=[1, 1] ", shown(CFX_OPID_conv2d, 3));
    CHECK_STR_EQ("Tensor selfa", shown(CFX_OPID_chunk, 0));
    CHECK_INT_EQ(1, cfx_operator_find_param(CFX_OPID_linear, "weight"));
    CHECK(cfx_operator_find_param(CFX_OPID_linear, "wei") == SIZE_MAX);
    CHECK(cfx_operator_find_param(CFX_OPID_NONE, "self") == SIZE_MAX);
    CHECK_INT_EQ(0, cfx_operator_num_params(CFX_OPID_NONE));
    for (int i = 1; i < CFX_OPERATOR_COUNT; i++) {
        cfx_schema_param p;
        for (size_t k = 0; cfx_operator_param((cfx_operator)i, k, &p); k++)
            if (!CHECK(p.name.size > 0 && p.type[0] && strlen(p.type) + 1 < sizeof p.type))
                printf("    %s\n", cfx_operator_name((cfx_operator)i));
    }
}

TEST(results_of_a_schema)
{
    cfx_schema_param p;
    CHECK_INT_EQ(1, cfx_operator_num_results(CFX_OPID_add_));
    REQUIRE(cfx_operator_result(CFX_OPID_add_, 0, &p));
    CHECK(p.writes && p.alias == 'a' && strcmp(p.type, "Tensor") == 0);
    CHECK_INT_EQ(2, cfx_operator_num_results(CFX_OPID_max_dim));
    REQUIRE(cfx_operator_result(CFX_OPID_max_dim, 1, &p));
    CHECK(p.name.size == 7 && memcmp(p.name.text, "indices", 7) == 0 && !p.alias);
    REQUIRE(cfx_operator_result(CFX_OPID_chunk, 0, &p));
    CHECK_STR_EQ("Tensor[]", p.type);
    CHECK(p.alias == 'a' && !p.writes);
    CHECK_INT_EQ(0, cfx_operator_num_results(CFX_OPID__assert));
    CHECK(!cfx_operator_result(CFX_OPID_relu, 1, &p));
}

TEST(in_place_and_back)
{
    CHECK_INT_EQ(CFX_OPID_add_, cfx_operator_in_place(CFX_OPID_add));
    CHECK_INT_EQ(CFX_OPID_add, cfx_operator_functional(CFX_OPID_add_));
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_operator_in_place(CFX_OPID_add_));
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_operator_functional(CFX_OPID_add));
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_operator_in_place(CFX_OPID_matmul));
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_operator_in_place(CFX_OPID_NONE));
    CHECK_INT_EQ(CFX_OPID_normal, cfx_operator_functional(CFX_OPID_normal_));
    CHECK_INT_EQ(CFX_OPID_dropout_, cfx_operator_in_place(CFX_OPID_dropout));
}

TEST(the_operator_of_a_node)
{
    cfx_graph *g = nested_graph(NULL, NULL, 1);
    cfx_node *n = cfx_graph_find(g, "cond");
    CHECK_INT_EQ(CFX_OPID_cond, cfx_node_operator(n));
    CHECK_INT_EQ(CFX_OPID_cond, cfx_node_operator(n));  /* from what was kept */
    CHECK_INT_EQ(CFX_OPID_relu, cfx_node_operator(cfx_graph_find(g, "relu")));
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_node_operator(cfx_graph_first(g)));
    cfx_target loop = {.name = "cfx.while_loop", .size = 14};
    cfx_node_set_target(n, loop, NULL);
    CHECK_INT_EQ(CFX_OPID_while_loop, cfx_node_operator(n));
    cfx_node_set_op(n, CFX_OP_CALL_METHOD, NULL);
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_node_operator(n));
    cfx_target method = {.name = "add_", .size = 4};
    cfx_node_set_target(n, method, NULL);
    CHECK_INT_EQ(CFX_OPID_add_, cfx_node_operator(n));
    cfx_node_set_op(n, CFX_OP_CALL_FUNCTION, NULL);
    CHECK_INT_EQ(CFX_OPID_NONE, cfx_node_operator(n));
    cfx_graph_release(g);
}

/* ---- operands ------------------------------------------------------------------------------ */

static long long operand(const char *text, const char *name)
{
    char ir[256];
    snprintf(ir, sizeof ir,
             "graph():\n  %%x = placeholder[target=x]()\n  %%y = %s\n  output(%%y)\n", text);
    cfx_graph *g = cfx_graph_parse(ir, strlen(ir), NULL, NULL, NULL);
    if (!CHECK(g != NULL))
        return -2;
    cfx_value v = cfx_node_operand(cfx_graph_find(g, "y"), name);
    long long answer = v.kind == CFX_KIND_INT ? v.as.i : v.kind == CFX_KIND_INVALID ? -1 : -3;
    cfx_graph_release(g);
    return answer;
}

TEST(operands_by_parameter)
{
    CHECK_INT_EQ(3, operand("call_function[target=torch.add](%x, 3)", "other"));
    CHECK_INT_EQ(3, operand("call_method[target=add](%x, other=3)", "other"));
    CHECK_INT_EQ(-1, operand("call_method[target=add](%x, other=3)", "alpha"));
    CHECK_INT_EQ(-1, operand("call_method[target=add](%x, 3)", "nothing"));
    CHECK_INT_EQ(7, operand("call_function[target=torch.relu](input=7)", "self"));
    CHECK_INT_EQ(2, operand("call_function[target=torch.nn.functional.embedding](1, 2)", "weight"));
    CHECK_INT_EQ(1, operand("call_function[target=torch.nn.functional.embedding](1, 2)",
                            "indices"));
    CHECK_INT_EQ(1, operand("call_function[target=torch.nn.functional.embedding](input=1)",
                            "indices"));
    CHECK_INT_EQ(1, operand("call_function[target=torch.embedding](1, 2)", "weight"));
    CHECK_INT_EQ(4, operand("call_function[target=torch.nn.functional.batch_norm](%x, 2, 3, 4)",
                            "weight"));
    CHECK_INT_EQ(5, operand("call_function[target=torch.nn.functional.dropout](%x, training=5)",
                            "train"));
    CHECK_INT_EQ(-1, operand("call_method[target=view](%x, 2, 3)", "size"));
    CHECK_INT_EQ(-1, operand("call_function[target=mine.f](%x, 2, 3)", "self"));
    CHECK_INT_EQ(-1, operand("get_attr[target=w]()", "self"));
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
        cfx_graph_create(g, CFX_OP_CALL_FUNCTION, t, cfx_value_invalid(), cfx_value_invalid(), NULL,
                         cfx_value_invalid(), NULL);
    }
    int i = 0;
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n), i++)
        CHECK_INT_EQ(i % 2 ? CFX_OPID_NONE : CFX_OPID_cond, cfx_node_operator(n));
    CHECK_INT_EQ(2, times_asked);
    cfx_graph_release(g);
}
