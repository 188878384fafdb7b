/* codegen_pyfile.c - complete Python files. */
#include "codegen_check.h"

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

TEST(file_of_a_class)
{
    start();
    cfx_node *l = MODULE("layers.0", V(input("x")));
    result(V(CALL("torch.Tensor.add", V(l), cfx_from_dtype(CFX_DTYPE_FLOAT16))));
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
