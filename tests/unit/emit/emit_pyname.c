/* emit_pyname.c - names that collide, and the objects of a host. */
#include "emit_check.h"

/* ---- names --------------------------------------------------------------------------------- */

TEST(global_meets_earlier_node)
{
    start();
    cfx_node *x = input("x");
    cfx_node *p = input("usermod_ufn");
    cfx_node *a = CALL("usermod.ufn", V(x));
    cfx_node *c = CALL("usermod.ufn", V(a));
    result(TUPLE(V(c), V(p)));
    EXPECT("def forward(self, x, usermod_ufn):\n    ufn = usermod_ufn_1(x);  x = None\n"
           "    ufn_1 = usermod_ufn_1(ufn);  ufn = None\n    return (ufn_1, usermod_ufn)",
           "usermod_ufn_1 | 1:2 2:3 3:4 4:4 | 4");
}

/* A node used before it is defined gets its name there: the first mention counts. */
TEST(use_before_definition)
{
    start();
    cfx_node *x = input("x");
    cfx_node *a = RELU(x);
    cfx_node *b = CALL("torch.neg", V(a));
    cfx_node *c = RELU(b);
    REQUIRE(cfx_node_append(b, a, &error) == CFX_OK);
    with_name(b, "q");
    with_name(a, "q");
    with_name(c, "for");
    result(V(c));
    EXPECT("def forward(self, x):\n    q = torch.neg(q_1);  q_1 = None\n"
           "    q_1 = torch.relu(x);  x = None\n    for_1 = torch.relu(q);  q = None\n"
           "    return for_1",
           "| 1:1 2:2 3:3 4:4 5:4 | 4");
}

TEST(use_of_an_output)
{
    start();
    cfx_node *x = input("x");
    cfx_node *first = with_name(result(V(x)), "for");
    RELU(first);
    EXPECT("def forward(self, x):\n    return x\n"
           "    relu = torch.relu(for_1);  for_1 = relu = None",
           "| 1:1 2:2 3:2 | 4");
}

TEST(global_meets_later_node)
{
    start();
    cfx_node *a = CALL("usermod.ufn", V(input("x")));
    cfx_node *b = with_name(RELU(a), "usermod_ufn");
    result(V(CALL("usermod.ufn", V(b))));
    EXPECT("def forward(self, x):\n    ufn = usermod_ufn(x);  x = None\n"
           "    usermod_ufn_1 = torch.relu(ufn);  ufn = None\n"
           "    ufn_1 = usermod_ufn(usermod_ufn_1);  usermod_ufn_1 = None\n    return ufn_1",
           NULL);
}

TEST(global_counts_node_names)
{
    start();
    cfx_node *x = input("x");
    cfx_node *a = with_name(RELU(x), "usermod_ufn");
    with_name(RELU(x), "usermod_ufn_3");
    result(V(CALL("usermod.ufn", V(a))));
    EXPECT("def forward(self, x):\n    usermod_ufn = torch.relu(x)\n"
           "    usermod_ufn_3 = torch.relu(x);  x = usermod_ufn_3 = None\n"
           "    ufn = usermod_ufn_4(usermod_ufn);  usermod_ufn = None\n    return ufn",
           NULL);
    start();
    a = with_name(RELU(input("x")), "usermod_ufn_3");
    cfx_node *b = CALL("usermod.ufn", V(a));
    result(V(with_name(RELU(b), "usermod_ufn")));
    EXPECT("def forward(self, x):\n    usermod_ufn_3 = torch.relu(x);  x = None\n"
           "    ufn = usermod_ufn(usermod_ufn_3);  usermod_ufn_3 = None\n"
           "    usermod_ufn_4 = torch.relu(ufn);  ufn = None\n    return usermod_ufn_4",
           NULL);
}

TEST(own_name_is_own_global)
{
    start();
    result(V(with_name(CALL("usermod.ufn", V(input("x"))), "usermod_ufn")));
    EXPECT("def forward(self, x):\n    usermod_ufn_1 = usermod_ufn(x);  x = None\n"
           "    return usermod_ufn_1",
           NULL);
    start();
    cfx_node *a = with_name(RELU(input("x")), "usermod_Cls");
    result(V(with_type(a, "usermod.Cls")));
    EXPECT("def forward(self, x):\n    usermod_Cls_1 : usermod_Cls = torch.relu(x);  x = None\n"
           "    return usermod_Cls_1",
           NULL);
}

TEST(name_against_argument)
{
    start();
    result(V(with_name(CALL("torch.relu", HOST("Color")), "Color")));
    EXPECT("def forward(self):\n    Color = torch.relu(Color_1)\n    return Color", NULL);
    start();
    cfx_node *x = input("x");
    result(V(with_name(CALL("operator.iadd", V(x), HOST("Color")), "Color")));
    EXPECT("def forward(self, x):\n    x += Color;  Color_1 = x;  x = None\n    return Color_1",
           NULL);
}

TEST(odd_names)
{
    start();
    cfx_node *a = RELU(input("x"));
    cfx_node *b = with_name(RELU(a), "relu");
    result(V(CALL("torch.add", V(a), V(b))));
    EXPECT("def forward(self, x):\n    relu = torch.relu(x);  x = None\n"
           "    relu_1 = torch.relu(relu)\n"
           "    add = torch.add(relu, relu_1);  relu = relu_1 = None\n    return add",
           NULL);
    start();
    a = with_name(RELU(input("x")), "for");
    b = with_name(RELU(a), "a b");
    result(V(with_name(CALL("torch.add", V(a), V(b)), "sum")));
    EXPECT("def forward(self, x):\n    for_1 = torch.relu(x);  x = None\n"
           "    a_b = torch.relu(for_1)\n"
           "    sum_1 = torch.add(for_1, a_b);  for_1 = a_b = None\n    return sum_1",
           NULL);
    start();
    cfx_node *x = input("x");
    cfx_node *y = with_name(input("y"), "x");
    result(TUPLE(V(x), V(y)));
    EXPECT("def forward(self, x, y):\n    x_1 = y\n    return (x, x_1)", NULL);
}

TEST(names_of_builtins)
{
    start();
    cfx_node *p = input("inf");
    cfx_node *q = input("torch");
    cfx_node *a = CALL("torch.add", V(p), F(INFINITY));
    cfx_node *b = CALL("builtins.len", V(q));
    result(TUPLE(V(a), V(b)));
    EXPECT("def forward(self, inf, torch):\n    inf_1 = inf\n    torch_1 = torch\n"
           "    add = torch.add(inf_1, inf);  inf_1 = None\n"
           "    len_1 = len(torch_1);  torch_1 = None\n    return (add, len_1)",
           NULL);
}

/* ---- a host -------------------------------------------------------------------------------- */

TEST(host_functions)
{
    object ufn = {"usermod.ufn", ""};
    object twin = {"usermod.ufn", ""};
    object add = {"_operator.neg", ""};
    start_hosted();
    cfx_node *a = call_object(&ufn, V(input("x")));
    cfx_node *b = call_object(&twin, V(a));
    cfx_node *c = call_object(&ufn, V(b));
    result(V(call_object(&add, V(c))));
    EXPECT("def forward(self, x):\n    ufn = usermod_ufn(x);  x = None\n"
           "    ufn_1 = usermod_ufn_1(ufn);  ufn = None\n"
           "    ufn_2 = usermod_ufn(ufn_1);  ufn_1 = None\n    neg = -ufn_2;  ufn_2 = None\n"
           "    return neg",
           "usermod_ufn usermod_ufn_1 | 1:1 2:2 3:3 4:4 5:5 6:5 | 4");
}

static object color_class;

/* An enumeration's member: its class becomes a global. */
static cfx_status host_value(void *ctx, cfx_pycode *gen, void *thing, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    if (strcmp(((object *)thing)->repr, "<Color.RED: 1>") != 0)
        return CFX_OK;
    const char *name;
    cfx_status status = cfx_pycode_global(gen, &color_class, "Color", 5, false, &name, err);
    if (status == CFX_OK)
        say(out, name);
    return status ? status : say(out, ".RED");
}

TEST(host_values)
{
    const cfx_pycode_options options = {.value = host_value};
    object red = {NULL, "<Color.RED: 1>"};
    object array = {NULL, "array([[1],\n       [2]])"};
    start_hosted();
    cfx_value v = cfx_value_host(graph, &red, &error);
    cfx_node *c = input("Color");
    cfx_node *n = CALL("torch.add", V(c), v, LIST(v), DICT(S("k"), v));
    cfx_node *m = CALL("torch.add", V(n), cfx_value_host(graph, &array, &error));
    result(V(m));
    EXPECT_WITH(&options,
                "def forward(self, Color):\n    color = Color\n"
                "    add = torch.add(color, Color.RED, [Color.RED], {'k': <Color.RED: 1>});  "
                "color = None\n"
                "    add_1 = torch.add(add, array([[1],\n           [2]]));  add = None\n"
                "    return add_1",
                "Color | 1:0 2:1 3:2 4:2 5:3 6:3 | 4");
}
