/* emit_pystmt.c - statements, byte for byte as torch.fx 2.13 writes them. */
#include "emit_check.h"

/* ---- the skeleton -------------------------------------------------------------------------- */

TEST(empty)
{
    start();
    EXPECT("def forward(self):\n    pass", "| 1:- 2:- | 4");
    start();
    result(NONE);
    EXPECT("def forward(self):\n    return None", "| 1:0 2:0 | 4");
}

TEST(placeholders_alone)
{
    start();
    input("x");
    cfx_pycode_result code;
    CHECK_INT_EQ(CFX_OK, cfx_codegen_python(graph, NULL, &code, &error));
    CHECK_STR_EQ("\n\n\ndef forward(self, x):\n    ", code.source.data);
    CHECK_INT_EQ(1, code.n_lines);
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}

TEST(one_call)
{
    start();
    RELU(input("x"));
    EXPECT("def forward(self, x):\n    relu = torch.relu(x);  x = relu = None", NULL);
    start();
    result(V(RELU(input("x"))));
    EXPECT("def forward(self, x):\n    relu = torch.relu(x);  x = None\n    return relu",
           "| 1:1 2:2 3:2 | 4");
}

TEST(another_root)
{
    const cfx_pycode_options options = {.root = "root"};
    start();
    cfx_node *lin = MODULE("lin", V(input("x")));
    cfx_node *w = attribute("w");
    result(TUPLE(V(lin), V(w)));
    EXPECT_WITH(&options,
                "def forward(self, x):\n    lin = root.lin(x);  x = None\n    w = root.w\n"
                "    return (lin, w)",
                NULL);
}

TEST(several_outputs)
{
    start();
    cfx_node *x = input("x");
    result(V(x));
    RELU(x);
    EXPECT("def forward(self, x):\n    return x\n    relu = torch.relu(x);  x = relu = None", NULL);
    start();
    x = input("x");
    result(V(x));
    result(TUPLE(V(x)));
    EXPECT("def forward(self, x):\n    return x\n    return (x,)", NULL);
    start();
    cfx_node *a = RELU(input("x"));
    result(V(a));
    result(V(RELU(a)));
    EXPECT("def forward(self, x):\n    relu = torch.relu(x);  x = None\n    return relu\n"
           "    relu_1 = torch.relu(relu);  relu = None\n    return relu_1",
           NULL);
}

TEST(late_placeholder)
{
    start();
    cfx_node *y = RELU(input("x"));
    result(TUPLE(V(y), V(input("z"))));
    EXPECT("def forward(self, x, z):\n    relu = torch.relu(x);  x = None\n    return (relu, z)",
           NULL);
}

/* ---- placeholders -------------------------------------------------------------------------- */

#define EXPECT_DEFAULT(text, value)                                                                \
    do {                                                                                           \
        start();                                                                                   \
        result(V(input_default("x", value)));                                                      \
        EXPECT("def forward(self, x = " text "):\n    return x", "| 1:1 2:1 | 4");                 \
    } while (0)

TEST(defaults)
{
    EXPECT_DEFAULT("1", I(1));
    EXPECT_DEFAULT("inf", F(INFINITY));
    EXPECT_DEFAULT("nan", F(NAN));
    EXPECT_DEFAULT("-inf", F(-INFINITY));
    EXPECT_DEFAULT("None", NONE);
    EXPECT_DEFAULT("'a\"b\\'c\\n'", S("a\"b'c\n"));
    EXPECT_DEFAULT("(1, 2)", TUPLE(I(1), I(2)));
    EXPECT_DEFAULT("{'a': 1}", DICT(S("a"), I(1)));
    EXPECT_DEFAULT("torch.float32", cfx_value_dtype(CFX_DTYPE_FLOAT32));
    EXPECT_DEFAULT("device(type='cpu')", DEVICE("cpu"));
    EXPECT_DEFAULT("slice(1, 2, None)", SLICE(I(1), I(2), NONE));
    EXPECT_DEFAULT("torch.contiguous_format",
                   cfx_value_memory_format(CFX_MEMORY_FORMAT_CONTIGUOUS));
    EXPECT_DEFAULT("(torch.float32, inf)", TUPLE(cfx_value_dtype(CFX_DTYPE_FLOAT32), F(INFINITY)));
}

TEST(typed_default)
{
    start();
    result(V(with_type(input_default("x", I(1)), "builtins.int")));
    EXPECT("def forward(self, x : int = 1):\n    return x", "int | 1:1 2:1 | 4");
    start();
    result(V(with_type(input_default("x", NONE), "torch.Tensor")));
    EXPECT("def forward(self, x : torch.Tensor = None):\n    return x", "| 1:1 2:1 | 4");
}

TEST(stars)
{
    start();
    cfx_node *a = input("*args");
    cfx_node *b = input("**kwargs");
    result(TUPLE(V(a), V(b)));
    EXPECT("def forward(self, *args, **kwargs):\n    _args = args\n    _kwargs = kwargs\n"
           "    return (_args, _kwargs)",
           "| 1:0 2:1 3:2 4:2 | 4");
    start();
    input("z");
    a = with_type(input("*args"), "builtins.int");
    cfx_node *k = input("k");
    input_default("k2", I(3));
    b = with_type(input("**kwargs"), "torch.Tensor");
    result(TUPLE(V(a), V(b), V(k)));
    EXPECT("def forward(self, z, *args : int, k, k2 = 3, **kwargs : torch.Tensor):\n"
           "    _args = args\n    _kwargs = kwargs\n    return (_args, _kwargs, k)",
           NULL);
}

TEST(renamed_placeholders)
{
    start();
    cfx_node *a = input("for");
    cfx_node *b = input("a.b");
    cfx_node *c = input("x");
    cfx_node *d = input("x");
    cfx_node *e = with_type(input_default("sum", I(2)), "builtins.int");
    result(TUPLE(V(a), V(b), V(c), V(d), V(e)));
    EXPECT("def forward(self, for, a.b, x, x, sum : int = 2):\n    for_1 = for\n    a_b = a.b\n"
           "    x_1 = x\n    sum_1 = sum\n    return (for_1, a_b, x, x_1, sum_1)",
           NULL);
}

TEST(node_as_default)
{
    start();
    cfx_node *x = input("x");
    cfx_node *y = input_default("y", V(x));
    with_name(y, "yy");
    result(V(y));
    EXPECT("def forward(self, x, y = x):\n    yy = y\n    return yy", NULL);
}

TEST(star_placeholder_cleared)
{
    start();
    cfx_node *x = input("*args");
    cfx_node *y = input("for");
    result(V(CALL("torch.add", V(x), V(y))));
    EXPECT("def forward(self, *args, for):\n    _args = args\n    for_1 = for\n"
           "    add = torch.add(_args, for_1);  _args = for_1 = None\n    return add",
           NULL);
}

/* ---- clearing ------------------------------------------------------------------------------ */

TEST(last_uses)
{
    start();
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    input("unused");
    cfx_node *a = CALL("torch.add", V(x), V(y));
    cfx_node *b = CALL("torch.add", V(y), V(x));
    cfx_node *c = CALL("torch.add", V(b), V(a));
    cfx_node *d = CALL("torch.mul", V(a), V(a));
    with_kwarg(CALL("torch.sub", V(d)), "other", TUPLE(V(y), LIST(V(x))));
    result(TUPLE(V(c)));
    EXPECT("def forward(self, x, y, unused):\n    add = torch.add(x, y)\n"
           "    add_1 = torch.add(y, x)\n    add_2 = torch.add(add_1, add);  add_1 = None\n"
           "    mul = torch.mul(add, add);  add = None\n"
           "    sub = torch.sub(mul, other = (y, [x]));  mul = y = x = sub = None\n"
           "    return (add_2,)",
           NULL);
}

TEST(nothing_returned)
{
    start();
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    CALL("torch.add", V(y), V(x), V(y));
    cfx_node *w = attribute("w");
    attribute("w2");
    MODULE("sub", V(METHOD("foo", V(w))));
    result(NONE);
    EXPECT("def forward(self, x, y):\n    add = torch.add(y, x, y);  y = x = add = None\n"
           "    w = self.w\n    w2 = self.w2;  w2 = None\n    foo = w.foo();  w = None\n"
           "    sub = self.sub(foo);  foo = sub = None\n    return None",
           NULL);
}

/* ---- types --------------------------------------------------------------------------------- */

TEST(types)
{
    start();
    cfx_node *x = with_type(input("x"), "builtins.int");
    cfx_node *a = with_type(attribute("w"), "torch.Tensor");
    cfx_node *b = with_type(MODULE("m", V(x)), "usermod.Cls");
    cfx_node *c = with_type(METHOD("foo", V(x)), "builtins.str");
    cfx_node *d = with_type(CALL("operator.add", V(x), V(a)), "builtins.float");
    with_type(CALL("operator.iadd", V(a), V(d)), "builtins.float");
    with_type(result(TUPLE(V(a), V(b), V(c))), "usermod.Cls");
    EXPECT("def forward(self, x : int) -> usermod_Cls:\n    w : torch.Tensor = self.w\n"
           "    m : usermod_Cls = self.m(x)\n    foo : str = x.foo()\n"
           "    add : float = x + w;  x = None\n"
           "    w += add;  iadd : float = w;  add = iadd = None\n"
           "    return (w, m, foo)",
           "int usermod_Cls str float | 1:1 2:2 3:3 4:4 5:5 6:6 7:6 | 4");
    start();
    with_type(result(V(with_type(input("x"), "torch.device"))), "builtins.NoneType");
    EXPECT("def forward(self, x : device) -> NoneType:\n    return x", "| 1:1 2:1 | 4");
}

TEST(type_as_string)
{
    start();
    cfx_node *x = input("x");
    CHECK_INT_EQ(CFX_OK, cfx_node_set_type(x, S("Foo"), &error));
    result(V(x));
    EXPECT("def forward(self, x : 'Foo'):\n    return x", "| 1:1 2:1 | 4");
}
