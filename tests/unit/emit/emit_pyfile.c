/* emit_pyfile.c - complete Python files. */
#include "emit_check.h"

static void expect_file(const char *class_name, const char *want)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    cfx_sink out = cfx_buffer_sink(&text);
    CHECK_INT_EQ(CFX_OK, cfx_codegen_python_file(graph, class_name, out, &error));
    CHECK_STR_EQ(want, text.data);
    cfx_buffer_free(&text);
    cfx_graph_release(graph);
}

TEST(file_of_a_function)
{
    start();
    cfx_node *x = input("x");
    cfx_node *a = CALL("pkg.mod.fn", V(x), F(INFINITY), F(NAN));
    cfx_node *b = CALL("pkg.mod.Cls.make", V(a), DEVICE("cpu"));
    cfx_node *c = CALL("math.sqrt", V(CALL("builtins.len", V(b))));
    result(V(CALL("operator.add", V(c), I(1))));
    expect_file(NULL, "import pkg.mod\nimport math\nfrom math import inf\nfrom math import nan\n"
                      "from torch import device\n\npkg_mod_fn = pkg.mod.fn\n"
                      "pkg_mod_Cls_make = pkg.mod.Cls.make\nmath_sqrt = math.sqrt\n\n\n"
                      "def forward(x):\n    fn = pkg_mod_fn(x, inf, nan);  x = None\n"
                      "    make = pkg_mod_Cls_make(fn, device(type='cpu'));  fn = None\n"
                      "    len_1 = len(make);  make = None\n"
                      "    sqrt = math_sqrt(len_1);  len_1 = None\n"
                      "    add = sqrt + 1;  sqrt = None\n    return add\n");
}

/* The last of the parameters is refused: by a message that names it. */
static void expect_refused(const char *const *targets, const bool *has_default, size_t n)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    start();
    for (size_t i = 0; i < n; i++) {
        if (has_default[i])
            input_default(targets[i], I(1));
        else
            input(targets[i]);
    }
    CHECK_INT_EQ(CFX_E_VALUE, cfx_codegen_python_file(graph, NULL, cfx_buffer_sink(&text), &error));
    CHECK(strstr(error.message, targets[n - 1]) && strstr(error.message, "wrong place"));
    cfx_buffer_free(&text);
    cfx_graph_release(graph);
}

TEST(parameters_in_an_order_that_python_refuses)
{
    expect_refused((const char *[]){"a", "b"}, (const bool[]){true, false}, 2);
    expect_refused((const char *[]){"*a", "*b"}, (const bool[]){false, false}, 2);
    expect_refused((const char *[]){"**a", "b"}, (const bool[]){false, true}, 2);
    expect_refused((const char *[]){"*a"}, (const bool[]){true}, 1);
    start();
    input("a");
    input_default("b", I(1));
    input("*c");
    input("d");
    input("**e");
    expect_file(NULL, "def forward(a, b = 1, *c, d, **e):\n    _c = c\n    _e = e\n");
}

TEST(parts_of_names_that_are_keywords)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    start();
    result(V(CALL("my.or", V(input("x")))));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_codegen_python_file(graph, NULL, cfx_buffer_sink(&text), &error));
    CHECK(strstr(error.message, "'my.or' cannot be written in Python") != NULL);
    cfx_buffer_free(&text);
    cfx_graph_release(graph);
}

TEST(file_of_a_class)
{
    start();
    cfx_node *l = MODULE("layers.0", V(input("x")));
    result(V(CALL("torch.Tensor.add", V(l), cfx_value_dtype(CFX_DTYPE_FLOAT16))));
    expect_file("Net", "import torch\n\ntorch_Tensor_add = torch.Tensor.add\n\n\n"
                       "class Net(torch.nn.Module):\n    def forward(self, x):\n"
                       "        layers_0 = getattr(self.layers, \"0\")(x);  x = None\n"
                       "        add = torch_Tensor_add(layers_0, torch.float16);  layers_0 = None\n"
                       "        return add\n");
}

TEST(file_without_statements)
{
    start();
    input("x");
    expect_file(NULL, "def forward(x):\n    pass\n");
    start();
    attribute("w");
    expect_file(NULL, "def forward(self):\n    w = self.w;  w = None\n");
}

/* Keywords stand behind no dot, and in a class Python changes names such as __w. */
TEST(file_with_names_of_pythons_own)
{
    start();
    cfx_node *in = input("in");
    cfx_node *self = input("self");
    cfx_node *y = MODULE("class.b", V(in));
    cfx_node *w = attribute("a.__w");
    cfx_node *z = attribute("a.__w__");
    result(TUPLE(V(y), V(w), V(z), V(self)));
    expect_file("Net", "import torch\n\n\n"
                       "class Net(torch.nn.Module):\n    def forward(self, in_1, self_1):\n"
                       "        class_b = getattr(self, \"class\").b(in_1);  in_1 = None\n"
                       "        a___w = getattr(self.a, \"__w\")\n"
                       "        a___w__ = self.a.__w__\n"
                       "        return (class_b, a___w, a___w__, self_1)\n");
}

TEST(names_that_no_class_can_have)
{
    static const char *const names[] = {"", "A b", "class", "torch", "torch.nn.Linear", "2x"};
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    start();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_INT_EQ(CFX_E_VALUE, cfx_codegen_python_file(graph, names[i], cfx_buffer_sink(&text),
                                                          &error));
    CHECK_STR_EQ("'2x' is not a valid Python class name; use a name such as Model",
                 error.message);
    CHECK_INT_EQ(0, text.size);
    cfx_buffer_free(&text);
    cfx_graph_release(graph);
}
