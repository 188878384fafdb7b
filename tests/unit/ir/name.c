/* name.c - tests of unique names: what torch.fx calls things, candidate by candidate. */
#include "graph_test.h"

#include <cfx/embed/namespace.h>

/* ---- one namespace ------------------------------------------------------------------------- */

/* Wishes, separated by blanks, and the names that they get, one after the other. */
static void check_sequence(const char *wishes, const char *want)
{
    char line[512];
    char got[512] = "";
    cfx_namespace *ns = cfx_namespace_new(NULL, NULL);
    REQUIRE(ns);
    snprintf(line, sizeof line, "%s", wishes);
    for (char *wish = strtok(line, " "); wish; wish = strtok(NULL, " ")) {
        if (strcmp(wish, "(empty)") == 0)
            wish = "";
        const char *name = cfx_namespace_create(ns, wish, strlen(wish), false, NULL);
        REQUIRE(name);
        strcat(got, *got ? " " : "");
        strcat(got, name);
        CHECK(cfx_namespace_has(ns, name, strlen(name)));
    }
    if (!CHECK_STR_EQ(want, got))
        printf("    for %s\n", wishes);
    cfx_namespace_free(ns);
}

TEST(candidates)
{
    static const struct {
        const char *wish, *first, *second, *third;
    } rows[] = {
        {"foo", "foo", "foo_1", "foo_2"},
        {"foo_1", "foo_1", "foo_2", "foo_3"},
        {"foo_01", "foo_01", "foo_2", "foo_3"},
        {"foo_001", "foo_001", "foo_2", "foo_3"},
        {"foo_0", "foo_0", "foo_1", "foo_2"},
        {"foo_00", "foo_00", "foo_1", "foo_2"},
        {"foo_1_2", "foo_1_2", "foo_1_3", "foo_1_4"},
        {"foo_", "foo_", "foo__1", "foo__2"},
        {"foo__1", "foo__1", "foo__2", "foo__3"},
        {"foo_10", "foo_10", "foo_11", "foo_12"},
        {"foo1", "foo1", "foo1_1", "foo1_2"},
        {"_1", "_1", "_1_1", "_1_2"},
        {"_", "_", "__1", "__2"},
        {"__", "__", "___1", "___2"},
        {"_foo", "_foo", "_foo_1", "_foo_2"},
        {"__foo__", "__foo__", "__foo___1", "__foo___2"},
        {"1", "_1", "_1_1", "_1_2"},
        {"1a", "_1a", "_1a_1", "_1a_2"},
        {"123_4", "_123_4", "_123_5", "_123_6"},
        {"0_1", "_0_1", "_0_2", "_0_3"},
        {"a.b.c", "a_b_c", "a_b_c_1", "a_b_c_2"},
        {"a-b", "a_b", "a_b_1", "a_b_2"},
        {"a b", "a_b", "a_b_1", "a_b_2"},
        {"Foo", "Foo", "Foo_1", "Foo_2"},
        {"FooBar", "FooBar", "FooBar_1", "FooBar_2"},
        {"", "_unnamed", "_unnamed_1", "_unnamed_2"},
        {"\xc3\xa9", "_", "__1", "__2"},
        {"a\xc3\xa9", "a_", "a__1", "a__2"},
        {"\xe6\x97\xa5\xe6\x9c\xac", "_", "__1", "__2"},
        {"for", "for_1", "for_2", "for_3"},
        {"for_1", "for_1", "for_2", "for_3"},
        {"True", "True_1", "True_2", "True_3"},
        {"sum", "sum_1", "sum_2", "sum_3"},
        {"sum_1", "sum_1", "sum_2", "sum_3"},
        {"max", "max_1", "max_2", "max_3"},
        {"int", "int_1", "int_2", "int_3"},
        {"torch", "torch_1", "torch_2", "torch_3"},
        {"device", "device_1", "device_2", "device_3"},
        {"inf", "inf_1", "inf_2", "inf_3"},
        {"nan", "nan_1", "nan_2", "nan_3"},
        {"NoneType", "NoneType_1", "NoneType_2", "NoneType_3"},
        {"fx_pytree", "fx_pytree_1", "fx_pytree_2", "fx_pytree_3"},
        {"pytree", "pytree_1", "pytree_2", "pytree_3"},
        {"getattr", "getattr_1", "getattr_2", "getattr_3"},
        {"print", "print_1", "print_2", "print_3"},
        {"self", "self", "self_1", "self_2"},
        {"root", "root", "root_1", "root_2"},
        {"forward", "forward", "forward_1", "forward_2"},
        {"input", "input_1", "input_2", "input_3"},
        {"async", "async_1", "async_2", "async_3"},
        {"match", "match", "match_1", "match_2"},
        {"type", "type_1", "type_2", "type_3"},
        {"object", "object_1", "object_2", "object_3"},
        {"__init__", "__init__", "__init___1", "__init___2"},
        {"__name__", "__name___1", "__name___2", "__name___3"},
        {"aaaaa_99", "aaaaa_99", "aaaaa_100", "aaaaa_101"},
        {"foo_1a", "foo_1a", "foo_1a_1", "foo_1a_2"},
        {"foo_a_1", "foo_a_1", "foo_a_2", "foo_a_3"},
        {"*args", "_args", "_args_1", "_args_2"},
        {"**kwargs", "_kwargs", "_kwargs_1", "_kwargs_2"},
        {"%x", "_x", "_x_1", "_x_2"},
        {"$", "_", "__1", "__2"},
        {"a$b_3", "a_b_3", "a_b_4", "a_b_5"},
        {"3_3", "_3_3", "_3_4", "_3_5"},
        {"_3_3", "_3_3", "_3_4", "_3_5"},
        {"foo_2", "foo_2", "foo_3", "foo_4"},
        {"foo_-1", "foo__1", "foo__2", "foo__3"},
        {"1_1", "_1_1", "_1_2", "_1_3"},
        {"_1_1", "_1_1", "_1_2", "_1_3"},
        {"a_1_", "a_1_", "a_1__1", "a_1__2"},
        {"\xd9\xa3", "_", "__1", "__2"},
        {"\xc2\xb2", "_", "__1", "__2"},
        {"foo_\xc2\xb2", "foo__", "foo___1", "foo___2"},
        /* Where torch.fx lets a name through that is no identifier, or counts beyond 18 digits. */
        {"foo\n", "foo_", "foo__1", "foo__2"},
        {"foo_\xd9\xa3", "foo__", "foo___1", "foo___2"},
        {"x_999999999999999999", "x_999999999999999999", "x_1000000000000000000",
         "x_1000000000000000001"},
        {"x_9999999999999999999999999", "x_9999999999999999999999999",
         "x_9999999999999999999999999_1", "x_9999999999999999999999999_2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const want[] = {rows[i].first, rows[i].second, rows[i].third};
        cfx_namespace *ns = cfx_namespace_new(NULL, NULL);
        REQUIRE(ns);
        for (size_t k = 0; k < 3; k++)
            CHECK_STR_EQ(want[k], cfx_namespace_create(ns, rows[i].wish, strlen(rows[i].wish),
                                                       false, NULL));
        cfx_namespace_free(ns);
    }
}

TEST(sequences)
{
    check_sequence("foo foo foo_1 foo_1", "foo foo_1 foo_2 foo_3");
    check_sequence("foo_1 foo foo foo", "foo_1 foo foo_2 foo_3");
    check_sequence("foo_5 foo foo foo_5 foo_3 foo", "foo_5 foo foo_6 foo_7 foo_3 foo_4");
    check_sequence("foo foo_2 foo foo foo", "foo foo_2 foo_3 foo_4 foo_5");
    check_sequence("foo_1 foo_1_1 foo_1 foo_1", "foo_1 foo_1_1 foo_2 foo_3");
    check_sequence("foo_1_1 foo_1 foo_1 foo foo", "foo_1_1 foo_1 foo_2 foo foo_3");
    check_sequence("foo_10 foo foo_9 foo", "foo_10 foo foo_9 foo_11");
    check_sequence("sum sum sum_1 sum_2", "sum_1 sum_2 sum_3 sum_4");
    check_sequence("for for for_1", "for_1 for_2 for_3");
    check_sequence("a.b a_b a-b a_b_1", "a_b a_b_1 a_b_2 a_b_3");
    check_sequence("1 1 _1 _1", "_1 _1_1 _1_2 _1_3");
    check_sequence("_ _ __ _1", "_ __1 __ _1");
    check_sequence("foo_01 foo_01 foo foo_1", "foo_01 foo_2 foo foo_1");
    check_sequence("x x_1 x_2 x x", "x x_1 x_2 x_3 x_4");
    check_sequence("x_2 x x_2 x_1 x_1 x", "x_2 x x_3 x_1 x_4 x_5");
    check_sequence("int int int_1", "int_1 int_2 int_3");
    check_sequence("(empty) (empty) (empty)", "_unnamed _unnamed_1 _unnamed_2");
}

TEST(reserved_words)
{
    static const char *const yes[] = {"ArithmeticError", "None", "NoneType", "False", "abs", "and",
                                      "zip", "yield", "torch", "__spec__", "in", "int", "inf"};
    static const char *const no[] = {"", "a", "zzz", "match", "case", "_", "self", "ab", "abss",
                                     "none", "tor", "torchx", "Zip"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        CHECK(cfx_name_is_reserved(yes[i], strlen(yes[i])));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        CHECK(!cfx_name_is_reserved(no[i], strlen(no[i])));
    CHECK(cfx_name_is_reserved("summary", 3)); /* the size counts, not the end of the text */
    CHECK(!cfx_name_is_reserved("sum\0", 4));
    cfx_namespace *ns = cfx_namespace_new(NULL, NULL);
    REQUIRE(ns);
    CHECK_STR_EQ("sum", cfx_namespace_create(ns, "sum", 3, true, NULL));
    CHECK_STR_EQ("sum_1", cfx_namespace_create(ns, "sum", 3, true, NULL));
    CHECK_STR_EQ("None", cfx_namespace_create(ns, "None", 4, true, NULL));
    CHECK_STR_EQ("None_1", cfx_namespace_create(ns, "None", 4, true, NULL));
    CHECK_STR_EQ("None_2", cfx_namespace_create(ns, "None", 4, false, NULL));
    cfx_namespace_free(ns);
    cfx_namespace_free(NULL);
}

/* Names longer than what fits on the stack. */
TEST(long_names)
{
    enum { LONG = 100000 };
    static char wish[LONG + 8];
    cfx_namespace *ns = cfx_namespace_new(NULL, NULL);
    REQUIRE(ns);
    memset(wish, 'n', LONG);
    for (int i = 0; i < 3; i++) {
        const char *name = cfx_namespace_create(ns, wish, LONG, false, NULL);
        REQUIRE(name);
        CHECK_INT_EQ(i ? LONG + 2 : LONG, strlen(name));
        CHECK(strncmp(wish, name, LONG) == 0);
    }
    for (size_t n = 90; n < 140; n++) { /* around the limit */
        char want[200];
        snprintf(want, sizeof want, "%.*s", (int)n, wish);
        CHECK_STR_EQ(want, cfx_namespace_create(ns, wish, n, false, NULL));
        strcat(want, "_1");
        CHECK_STR_EQ(want, cfx_namespace_create(ns, wish, n, false, NULL));
    }
    cfx_namespace_free(ns);
}

TEST(snake_case)
{
    static const char *const rows[][2] = {
        {"relu", "relu"}, {"Foo", "foo"}, {"FooBar", "foo_bar"}, {"HTTPServer", "httpserver"},
        {"fooBar", "foo_bar"}, {"conv2d", "conv2d"}, {"Conv2d", "conv2d"},
        {"BatchNorm2D", "batch_norm2d"}, {"ABC", "abc"}, {"aB", "a_b"},
        {"__getitem__", "__getitem__"}, {"_Foo", "_foo"}, {"Foo_", "foo_"}, {"Foo_Bar", "foo_bar"},
        {"A", "a"}, {"", ""}, {"add_", "add_"}, {"X1Y2", "x1y2"},
        {"getHTTPResponse", "get_httpresponse"}, {"fooBARBaz", "foo_barbaz"},
        {"foo.Bar", "foo.bar"}, {"Foo.Bar", "foo.bar"}, {"1A", "1a"},
        {"\xc3\xa9""A", "\xc3\xa9""a"},
        {"<lambda>", "<lambda>"}, {"Tensor", "tensor"}, {"DOUBLE__Under", "double__under"},
        {"a1B", "a1b"}, {"aB1C", "a_b1c"}, {"ABCdef", "abcdef"}, {"AbCdEf", "ab_cd_ef"},
        {"MaxPool2d", "max_pool2d"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cfx_buffer out;
        cfx_buffer_init(&out, NULL);
        CHECK_INT_EQ(CFX_OK, cfx_name_to_snake_case(rows[i][0], strlen(rows[i][0]), &out));
        CHECK_STR_EQ(rows[i][1], out.data);
        cfx_buffer_free(&out);
    }
}

/* ---- names of nodes ------------------------------------------------------------------------ */

static void check_name(cfx_opcode op, const char *target, const char *want)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    REQUIRE(g);
    for (int i = 0; i < 3; i++) { /* the second and third time take the short way */
        cfx_node *n = cfx_graph_create(g, op, by_name(target), cfx_value_invalid(),
                                       cfx_value_invalid(), NULL, cfx_value_invalid(), NULL);
        REQUIRE(n);
        if (i == 0 && !CHECK_STR_EQ(want, cfx_node_name(n, NULL)))
            printf("    for %s %s\n", cfx_opcode_name(op), target);
        CHECK(cfx_graph_find(g, cfx_node_name(n, NULL)) == n);
    }
    cfx_graph_release(g);
}

TEST(names_from_functions)
{
    static const char *const rows[][2] = {
        {"torch.nn.functional.relu", "relu"}, {"torch.relu", "relu"}, {"_operator.add", "add"},
        {"operator.and_", "and_"}, {"builtins.getattr", "getattr_1"}, {"sum", "sum_1"},
        {"torch.ops.aten.add.Tensor", "add_tensor"}, {"torch.ops.aten.add", "add"},
        {"torch.ops.aten.add_.Tensor", "add__tensor"},
        {"torch.ops.aten.relu.default", "relu_default"},
        {"torch.ops.aten._to_copy.default", "_to_copy_default"},
        {"torch.ops.aten.__and__.Tensor", "__and___tensor"},
        {"torch.ops.higher_order.cond", "cond"}, {"torch._assert", "_assert"},
        {"torch.Tensor.__add__", "__add__"}, {"torch.nn.Linear", "linear"},
        {"torch.nn.BatchNorm2d", "batch_norm2d"}, {"torch.device", "device_1"},
        {"usermod.<lambda>", "_lambda_"}, {"usermod.HTTPServer", "httpserver"},
        {"usermod.My_Thing", "my_thing"}, {"usermod.__Dunder", "__dunder"},
        {"usermod.CamelFn", "camel_fn"}, {"usermod.x1Y", "x1y"}, {"usermod.trailing_", "trailing_"},
        {"", "_unnamed"}, {".", "_unnamed"}, {"a.", "_unnamed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_name(CFX_OP_CALL_FUNCTION, rows[i][0], rows[i][1]);
}

TEST(names_from_paths)
{
    static const char *const rows[][2] = {
        {"add_", "add_"}, {"add", "add"}, {"__getitem__", "getitem"}, {"__add__", "add"},
        {"_x", "_x"}, {"x_", "x_"}, {"relu", "relu"}, {"layers.0.conv", "layers_0_conv"},
        {"0", "_0"}, {"0.weight", "_0_weight"}, {"a.b", "a_b"}, {"a.b_1", "a_b_1"},
        {"LSTM", "lstm"}, {"convA.BN1", "conv_a_bn1"}, {"*args", "_args"}, {"**kwargs", "_kwargs"},
        {"*a_1", "_a_1"}, {"self", "self"}, {"for", "for_1"}, {"x y", "x_y"}, {"output", "output"},
        {"sum", "sum_1"}, {"*", "_"}, {"**", "_"}, {"***a", "_a"}, {"", "_unnamed"},
        {"__", "_unnamed"}, {"___", "_unnamed"}, {"____", "_unnamed"}, {"_____", "_"}, {"_1", "_1"},
        {"x_1", "x_1"}, {"X", "x"}, {"Foo.Bar", "foo_bar"},
    };
    static const cfx_opcode ops[] = {CFX_OP_CALL_METHOD, CFX_OP_CALL_MODULE, CFX_OP_GET_ATTR,
                                     CFX_OP_PLACEHOLDER, CFX_OP_OUTPUT};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            check_name(ops[k], rows[i][0], rows[i][1]);
}

TEST(wishes_and_targets_share_names)
{
    static const char *const wishes[] = {NULL, NULL, "relu", "relu_1", "relu_7", NULL, NULL,
                                         "relu_3", "a.b", "for", "sum", "", "Foo", "1x"};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    REQUIRE(g);
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
        CHECK(cfx_graph_create(g, CFX_OP_CALL_FUNCTION, by_name("torch.relu"), cfx_value_invalid(),
                               cfx_value_invalid(), wishes[i], cfx_value_invalid(), NULL));
    CHECK_STR_EQ("relu relu_1 relu_2 relu_3 relu_7 relu_8 relu_9 relu_10 a_b for_1 sum_1 _unnamed "
                 "Foo _1x", list_names(g));
    cfx_graph_release(g);
}

TEST(erased_names_stay_taken)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    REQUIRE(g);
    cfx_node *a = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *b = cfx_graph_placeholder(g, "x", NULL);
    CHECK_INT_EQ(CFX_OK, erase(b));
    CHECK_STR_EQ("x_2", cfx_node_name(cfx_graph_placeholder(g, "x", NULL), NULL));
    CHECK_INT_EQ(CFX_OK, erase(a));
    CHECK(!cfx_graph_find(g, "x"));
    CHECK_STR_EQ("x_3", cfx_node_name(cfx_graph_placeholder(g, "x", NULL), NULL));
    static const char *const taken[] = {"x", "x_1", "x_2", "x_3"};
    for (size_t i = 0; i < 4; i++)
        CHECK(cfx_namespace_has(cfx_graph_namespace(g), taken[i], strlen(taken[i])));
    CHECK(!cfx_namespace_has(cfx_graph_namespace(g), "x_4", 3));
    cfx_graph_release(g);
}

TEST(renaming)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    REQUIRE(g);
    cfx_node *a = cfx_graph_placeholder(g, "x", NULL);
    cfx_graph_placeholder(g, "y", NULL);
    static const char *const rows[][2] = {{"y", "y_1"}, {"y", "y_2"}, {"y_2", "y_2"},
                                          {"y_1", "y_3"}, {"for", "for_1"}, {"a.b", "a_b"},
                                          {"", "_unnamed"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT_EQ(CFX_OK, cfx_node_rename(a, rows[i][0], NULL));
        CHECK_STR_EQ(rows[i][1], cfx_node_name(a, NULL));
        CHECK(cfx_graph_find(g, rows[i][1]) == a);
    }
    CHECK(!cfx_graph_find(g, "x"));
    CHECK_STR_EQ("x_1", cfx_node_name(cfx_graph_placeholder(g, "x", NULL), NULL));
    CHECK_STR_EQ("y_4", cfx_node_name(cfx_graph_placeholder(g, "y_1", NULL), NULL));
    cfx_graph_release(g);
}

/* A name given by hand is not taken: the next node that wishes for it gets it as well. */
TEST(names_by_hand)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    REQUIRE(g);
    cfx_node *a = cfx_graph_placeholder(g, "x", NULL);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_name(a, "q", 1, NULL));
    CHECK(cfx_graph_find(g, "q") == a && !cfx_graph_find(g, "x"));
    CHECK(!cfx_namespace_has(cfx_graph_namespace(g), "q", 1));
    cfx_node *b = cfx_graph_placeholder(g, "q", NULL);
    cfx_graph_placeholder(g, "x", NULL);
    CHECK_STR_EQ("q q x_1", list_names(g));
    CHECK(cfx_graph_find(g, "q") == a);
    CHECK_STR_EQ("q_1", cfx_node_name(cfx_graph_placeholder(g, "q", NULL), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_name(a, "r\0s", 3, NULL)); /* anything goes */
    size_t size;
    CHECK(memcmp("r\0s", cfx_node_name(a, &size), 4) == 0);
    CHECK_INT_EQ(3, size);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_name(b, "r\0s", 3, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_name(b, "", 0, NULL));
    CHECK_INT_EQ(CFX_OK, erase(a));
    CHECK_INT_EQ(CFX_OK, erase(b));
    cfx_graph_release(g);
}

/* A hundred thousand nodes with one target: counting must not start from 1 each time. */
TEST(counting_is_fast)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    REQUIRE(g);
    cfx_node *n = NULL;
    for (int i = 0; i < 100000; i++)
        n = cfx_graph_get_attr(g, i % 2 ? "a.weight" : "b.weight", NULL);
    CHECK_STR_EQ("a_weight_49999", cfx_node_name(n, NULL));
    cfx_graph_release(g);
}

/* ---- out of memory ------------------------------------------------------------------------- */

static cfx_status sweep_names(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    char wish[300];
    (void)arg;
    cfx_namespace *ns = cfx_namespace_new(a, &err);
    memset(wish, 'w', sizeof wish);
    for (int i = 0; ns && err.status == CFX_OK && i < 40; i++) {
        cfx_namespace_create(ns, wish, i % 2 ? 5 : 300, false, &err);
        if (err.status == CFX_OK)
            cfx_namespace_create(ns, wish, (size_t)i, false, &err);
    }
    cfx_namespace_free(ns);
    return err.status;
}

static cfx_status sweep_rename(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    (void)arg;
    cfx_graph *g = cfx_graph_new(a, NULL, &err);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", &err) : NULL;
    char wish[32];
    for (int i = 0; x && err.status == CFX_OK && i < 300; i++) {
        static dump_text before, after;
        dump_graph(&before, g);
        snprintf(wish, sizeof wish, "wish%d", i / 2);
        const cfx_status status = i % 3 ? cfx_node_rename(x, wish, &err)
                                        : cfx_node_set_name(x, wish, strlen(wish), &err);
        CHECK_INT_EQ(status, err.status);
        dump_graph(&after, g);
        if (status != CFX_OK)
            CHECK_STR_EQ(before.data, after.data);
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(names_out_of_memory)
{
    CHECK(test_oom_sweep(sweep_names, NULL) > 10);
    CHECK(test_oom_sweep(sweep_rename, NULL) > 5);
}
