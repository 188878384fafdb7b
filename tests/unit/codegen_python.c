/* codegen_python.c - generated Python, compared byte for byte with what torch.fx 2.13 writes. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <math.h>
#include <stdlib.h>

/* ---- building graphs ----------------------------------------------------------------------- */

static cfx_graph *graph;  /* of the running test */
static cfx_error error;

#define V(node) cfx_from_node(node)
#define I(i) cfx_int(i)
#define F(f) cfx_float(f)
#define NONE cfx_none()
#define S(text) cfx_value_str(graph, text, strlen(text), &error)
#define HOST(name) cfx_value_name(graph, name, strlen(name), &error)
#define ITEMS(...) (cfx_value[]){__VA_ARGS__}, sizeof((cfx_value[]){__VA_ARGS__}) / sizeof(cfx_value)
#define TUPLE(...) cfx_value_tuple(graph, ITEMS(__VA_ARGS__), &error)
#define LIST(...) cfx_value_list(graph, ITEMS(__VA_ARGS__), &error)
#define DICT(...) cfx_value_seq(graph, CFX_KIND_DICT, ITEMS(__VA_ARGS__), &error)
#define SET(...) cfx_value_set(graph, ITEMS(__VA_ARGS__), &error)
#define SLICE(a, b, c) cfx_value_slice(graph, a, b, c, &error)
#define RANGE(a, b, c) cfx_value_range(graph, I(a), I(b), I(c), &error)
#define DEVICE(text) cfx_value_device(graph, text, strlen(text), &error)
#define EMPTY(kind) cfx_value_seq(graph, CFX_KIND_##kind, NULL, 0, &error)

#define CALL(target, ...) call(CFX_OP_CALL_FUNCTION, target, ITEMS(__VA_ARGS__))
#define METHOD(target, ...) call(CFX_OP_CALL_METHOD, target, ITEMS(__VA_ARGS__))
#define MODULE(target, ...) call(CFX_OP_CALL_MODULE, target, ITEMS(__VA_ARGS__))
#define RELU(x) CALL("torch.relu", V(x))

static cfx_node *call(cfx_opcode op, const char *target, const cfx_value *args, size_t n)
{
    cfx_node *node = cfx_graph_call(graph, op, target, args, n, NULL, 0, &error);
    if (!CHECK(node))
        printf("    %s\n", error.message);
    return node;
}

static cfx_node *with_kwarg(cfx_node *n, const char *key, cfx_value v)
{
    CHECK_INT_EQ(CFX_OK, cfx_node_set_kwarg(n, key, v, &error));
    return n;
}

static cfx_node *with_type(cfx_node *n, const char *type)
{
    CHECK_INT_EQ(CFX_OK, cfx_node_set_type(n, HOST(type), &error));
    return n;
}

static cfx_node *with_name(cfx_node *n, const char *name)
{
    CHECK_INT_EQ(CFX_OK, cfx_node_set_name(n, name, strlen(name), &error));
    return n;
}

static cfx_node *input(const char *name)
{
    cfx_node *n = cfx_graph_placeholder(graph, name, &error);
    CHECK(n);
    return n;
}

/* A placeholder with a default value, for which `args` stands. */
static cfx_node *input_default(const char *name, cfx_value v)
{
    cfx_node *n = input(name);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, TUPLE(v), &error));
    return n;
}

static cfx_node *attribute(const char *path)
{
    return cfx_graph_get_attr(graph, path, &error);
}

static cfx_node *result(cfx_value v)
{
    cfx_node *n = cfx_graph_output(graph, v, &error);
    if (!CHECK(n))
        printf("    %s\n", error.message);
    return n;
}

static void start(void)
{
    graph = cfx_graph_new(NULL, NULL, &error);
}

/* ---- checking ------------------------------------------------------------------------------ */

/* The names of the globals and the line map as text: "a b | 1:0 2:0 | 4". */
static void describe(const cfx_pycode_result *code, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < code->n_globals; i++)
        used += (size_t)snprintf(text + used, size - used, "%s ", code->globals[i].name);
    used += (size_t)snprintf(text + used, size - used, "|");
    for (size_t i = 0; i < code->n_lines; i++) {
        unsigned line = (unsigned)(code->first_line + i);
        if (code->line_nodes[i] == CFX_PYCODE_NO_NODE)
            used += (size_t)snprintf(text + used, size - used, " %u:-", line);
        else
            used += (size_t)snprintf(text + used, size - used, " %u:%u", line,
                                     (unsigned)code->line_nodes[i]);
    }
    snprintf(text + used, size - used, " | %u", (unsigned)code->prologue_start);
}

/* Generates, and compares the source less the three newlines before and the line after it.
 * `about` is what describe() gives, or NULL. */
#define EXPECT(want, about) expect(NULL, want, about, __LINE__)
#define EXPECT_WITH(options, want, about) expect(options, want, about, __LINE__)
static void expect(const cfx_pycode_options *options, const char *want, const char *about, int line)
{
    cfx_pycode_result code;
    if (!CHECK_INT_EQ(CFX_OK, cfx_codegen_python(graph, options, &code, &error))) {
        printf("    line %d: %s\n", line, error.message);
        cfx_graph_release(graph);
        return;
    }
    size_t size = strlen(want);
    bool same = code.source.size == size + 8 && memcmp(code.source.data, "\n\n\n", 3) == 0 &&
                memcmp(code.source.data + 3, want, size) == 0 &&
                strcmp(code.source.data + 3 + size, "\n    ") == 0;
    if (!CHECK(same))
        printf("    line %d, want:\n%s\n    got:%s|\n", line, want, code.source.data);
    char text[1000];
    describe(&code, text, sizeof text);
    if (about && !CHECK_STR_EQ(about, text))
        printf("    line %d\n", line);
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}

/* One call of usermod.ufn with a literal. */
#define EXPECT_LITERAL(text, value)                                                                \
    do {                                                                                           \
        start();                                                                                   \
        result(V(CALL("usermod.ufn", value)));                                                     \
        EXPECT("def forward(self):\n    ufn = usermod_ufn(" text ")\n    return ufn", NULL);       \
    } while (0)

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
    EXPECT_DEFAULT("torch.float32", cfx_from_dtype(CFX_DTYPE_FLOAT32));
    EXPECT_DEFAULT("device(type='cpu')", DEVICE("cpu"));
    EXPECT_DEFAULT("slice(1, 2, None)", SLICE(I(1), I(2), NONE));
    EXPECT_DEFAULT("torch.contiguous_format", cfx_from_memory_format(CFX_MEMORY_FORMAT_CONTIGUOUS));
    EXPECT_DEFAULT("(torch.float32, inf)", TUPLE(cfx_from_dtype(CFX_DTYPE_FLOAT32), F(INFINITY)));
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

/* ---- attributes, modules, methods ---------------------------------------------------------- */

#define EXPECT_PATH(path, first, second, text)                                                     \
    do {                                                                                           \
        start();                                                                                   \
        cfx_node *in = input("x");                                                                 \
        cfx_node *get = attribute(path);                                                           \
        cfx_node *mod = with_kwarg(MODULE(path, V(in), I(1)), "k", V(in));                         \
        result(TUPLE(V(get), V(mod)));                                                             \
        EXPECT("def forward(self, x):\n    " first " = " text "\n    " second " = " text           \
               "(x, 1, k = x);  x = None\n    return (" first ", " second ")",                     \
               NULL);                                                                              \
    } while (0)

TEST(paths)
{
    EXPECT_PATH("w", "w", "w_1", "self.w");
    EXPECT_PATH("a.b", "a_b", "a_b_1", "self.a.b");
    EXPECT_PATH("layers.0.weight", "layers_0_weight", "layers_0_weight_1",
                "getattr(self.layers, \"0\").weight");
    EXPECT_PATH("0", "_0", "_0_1", "getattr(self, \"0\")");
    EXPECT_PATH("layers.0", "layers_0", "layers_1", "getattr(self.layers, \"0\")");
    EXPECT_PATH("0.weight", "_0_weight", "_0_weight_1", "getattr(self, \"0\").weight");
    EXPECT_PATH("a b.c", "a_b_c", "a_b_c_1", "getattr(self, \"a b\").c");
    EXPECT_PATH("for", "for_1", "for_2", "self.for");
    EXPECT_PATH("1a", "_1a", "_1a_1", "getattr(self, \"1a\")");
    EXPECT_PATH("a..b", "a_b", "a_b_1", "getattr(self.a, \"\").b");
    EXPECT_PATH("\xc3\xa9", "_", "__1", "self.\xc3\xa9");
    EXPECT_PATH("", "_unnamed", "_unnamed_1", "getattr(self, \"\")");
    EXPECT_PATH("0.1.2", "_0_1_2", "_0_1_3",
                "getattr(getattr(getattr(self, \"0\"), \"1\"), \"2\")");
    EXPECT_PATH("self", "self", "self_1", "self.self");
    EXPECT_PATH("x", "x_1", "x_2", "self.x");
}

TEST(quoted_path)
{
    start();
    result(V(attribute("a\"b.c")));
    EXPECT("def forward(self):\n    a_b_c = getattr(self, 'a\"b').c\n    return a_b_c", NULL);
}

TEST(methods)
{
    start();
    cfx_node *a = with_kwarg(METHOD("add_", V(input("x")), I(1)), "alpha", I(2));
    cfx_node *b = METHOD("size", V(a));
    cfx_node *c = METHOD("__getitem__", V(a), I(0));
    cfx_node *e = METHOD("foo", S("s"));
    cfx_node *f = METHOD("foo", TUPLE(V(a), V(b)), V(c));
    result(TUPLE(V(c), V(e), V(f)));
    EXPECT("def forward(self, x):\n    add_ = x.add_(1, alpha = 2);  x = None\n"
           "    size = add_.size()\n    getitem = add_.__getitem__(0)\n    foo = 's'.foo()\n"
           "    foo_1 = (add_, size).foo(getitem);  add_ = size = None\n"
           "    return (getitem, foo, foo_1)",
           NULL);
    start();
    cfx_node *x = input("x");
    a = METHOD("a.b", V(x));
    METHOD("1", V(x));
    result(V(a));
    EXPECT("def forward(self, x):\n    a_b = x.a.b()\n    _1 = getattr(x, \"1\")();  x = _1 = None\n"
           "    return a_b",
           NULL);
}

/* torch.fx writes `3.relu()`, `-1.5.bar()` and `-2 ** x`: a syntax error and two wrong results. */
TEST(numbers_in_parentheses)
{
    start();
    cfx_node *x = input("x");
    cfx_node *a = METHOD("relu", I(3));
    cfx_node *b = METHOD("bar", F(-1.5));
    cfx_node *c = CALL("operator.pow", I(-2), V(x));
    cfx_node *d = CALL("builtins.getattr", I(3), S("real"));
    result(TUPLE(V(a), V(b), V(c), V(d)));
    EXPECT("def forward(self, x):\n    relu = (3).relu()\n    bar = (-1.5).bar()\n"
           "    pow_1 = (-2) ** x;  x = None\n    getattr_1 = (3).real\n"
           "    return (relu, bar, pow_1, getattr_1)",
           NULL);
}

/* ---- functions ----------------------------------------------------------------------------- */

#define EXPECT_FUNCTION(target, name, text, about)                                                 \
    do {                                                                                           \
        start();                                                                                   \
        result(V(CALL(target, V(input("x")))));                                                    \
        EXPECT("def forward(self, x):\n    " name " = " text "(x);  x = None\n    return " name,   \
               about " 1:1 2:2 3:2 | 4");                                                          \
    } while (0)

TEST(functions)
{
    EXPECT_FUNCTION("torch.relu", "relu", "torch.relu", "|");
    EXPECT_FUNCTION("torch.nn.functional.relu", "relu", "torch.nn.functional.relu", "|");
    EXPECT_FUNCTION("torch.Tensor.add", "add", "torch_Tensor_add", "torch_Tensor_add |");
    EXPECT_FUNCTION("torch._C._nn.gelu", "gelu", "torch._C._nn.gelu", "|");
    EXPECT_FUNCTION("builtins.len", "len_1", "len", "len |");
    EXPECT_FUNCTION("math.sqrt", "sqrt", "math_sqrt", "math_sqrt |");
    EXPECT_FUNCTION("torch.device", "device_1", "device", "|");
    EXPECT_FUNCTION("operator.not_", "not_", "_operator_not_", "_operator_not_ |");
    EXPECT_FUNCTION("_operator.index", "index", "_operator_index", "_operator_index |");
    EXPECT_FUNCTION("operator.attrgetter", "attrgetter", "operator_attrgetter",
                    "operator_attrgetter |");
    EXPECT_FUNCTION("usermod._priv", "_priv", "usermod__priv", "usermod__priv |");
    EXPECT_FUNCTION("collections.OrderedDict", "ordered_dict", "collections_OrderedDict",
                    "collections_OrderedDict |");
}

TEST(infix)
{
    static const struct {
        const char *target, *name, *text;
    } rows[] = {
        {"operator.add", "add", "x + y"},           {"_operator.sub", "sub", "x - y"},
        {"operator.mul", "mul", "x * y"},           {"operator.truediv", "truediv", "x / y"},
        {"operator.floordiv", "floordiv", "x // y"}, {"operator.mod", "mod", "x % y"},
        {"operator.pow", "pow_1", "x ** y"},        {"operator.lshift", "lshift", "x << y"},
        {"operator.rshift", "rshift", "x >> y"},    {"operator.and_", "and_", "x & y"},
        {"operator.or_", "or_", "x | y"},           {"operator.xor", "xor", "x ^ y"},
        {"operator.matmul", "matmul", "x @ y"},     {"operator.eq", "eq", "x == y"},
        {"operator.ne", "ne", "x != y"},            {"operator.lt", "lt", "x < y"},
        {"operator.gt", "gt", "x > y"},             {"operator.le", "le", "x <= y"},
        {"operator.ge", "ge", "x >= y"},            {"operator.getitem", "getitem", "x[y]"},
        {"operator.neg", "neg", "-x"},              {"operator.pos", "pos", "+x"},
        {"operator.invert", "invert", "~x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[200];
        start();
        cfx_node *x = input("x");
        cfx_node *y = input("y");
        result(TUPLE(V(CALL(rows[i].target, V(x), V(y))), V(x), V(y)));
        snprintf(want, sizeof want,
                 "def forward(self, x, y):\n    %s = %s\n    return (%s, x, y)", rows[i].name,
                 rows[i].text, rows[i].name);
        EXPECT(want, "| 1:2 2:3 3:3 | 4");
    }
}

TEST(inplace)
{
    static const char *const rows[][2] = {
        {"iadd", "+="},  {"isub", "-="},     {"imul", "*="},     {"itruediv", "/="},
        {"ifloordiv", "//="}, {"imod", "%="}, {"ipow", "**="},   {"ilshift", "<<="},
        {"irshift", ">>="},   {"iand", "&="}, {"ior", "|="},     {"ixor", "^="},
        {"imatmul", "@="},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char target[40];
        char want[200];
        start();
        cfx_node *x = input("x");
        snprintf(target, sizeof target, "_operator.%s", rows[i][0]);
        result(V(CALL(target, V(x), V(input("y")))));
        snprintf(want, sizeof want,
                 "def forward(self, x, y):\n    x %s y;  %s = x;  x = y = None\n    return %s",
                 rows[i][1], rows[i][0], rows[i][0]);
        EXPECT(want, NULL);
    }
}

TEST(inplace_chain)
{
    start();
    cfx_node *x = input("x");
    cfx_node *a = CALL("operator.iadd", V(x), I(1));
    cfx_node *b = RELU(x);
    result(V(CALL("operator.imul", V(b), V(a))));
    EXPECT("def forward(self, x):\n    x += 1;  iadd = x\n    relu = torch.relu(x);  x = None\n"
           "    relu *= iadd;  imul = relu;  relu = iadd = None\n    return imul",
           NULL);
    start();
    result(V(with_type(CALL("operator.iadd", V(input("x")), I(1)), "builtins.int")));
    EXPECT("def forward(self, x):\n    x += 1;  iadd : int = x;  x = None\n    return iadd", NULL);
}

TEST(setitem)
{
    start();
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    CALL("operator.setitem", V(x), I(0), V(y));
    cfx_node *m = CALL("operator.iadd", V(x), V(y));
    with_type(CALL("operator.setitem", V(x), TUPLE(SLICE(NONE, NONE, NONE), V(y)), I(1)),
              "builtins.int");
    result(V(m));
    EXPECT("def forward(self, x, y):\n    x[0] = y;  setitem = x;  setitem = None\n"
           "    x += y;  iadd = x\n"
           "    x[(slice(None, None, None), y)] = 1;  setitem_1 : int = x;  x = y = setitem_1 = None\n"
           "    return iadd",
           "int | 1:2 2:3 3:4 4:5 5:5 | 4");
}

#define EXPECT_ITEM(text, value)                                                                   \
    do {                                                                                           \
        start();                                                                                   \
        cfx_node *in = input("x");                                                                 \
        result(V(CALL("operator.getitem", V(in), value)));                                         \
        EXPECT("def forward(self, x):\n    getitem = x[" text "];  x = None\n    return getitem",  \
               NULL);                                                                              \
    } while (0)

TEST(getitem)
{
    EXPECT_ITEM("-1", I(-1));
    EXPECT_ITEM("slice(None, 2, None)", SLICE(NONE, I(2), NONE));
    EXPECT_ITEM("(0,)", TUPLE(I(0)));
    EXPECT_ITEM("()", EMPTY(TUPLE));
    EXPECT_ITEM("(slice(1, 2, None), Ellipsis, None)",
                TUPLE(SLICE(I(1), I(2), NONE), cfx_ellipsis(), NONE));
    EXPECT_ITEM("True", cfx_bool(true));
    EXPECT_ITEM("'k'", S("k"));
    EXPECT_ITEM("[[0, 1], ((1, 2), 3)]", LIST(LIST(I(0), I(1)), TUPLE(TUPLE(I(1), I(2)), I(3))));
    start();
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    result(V(CALL("operator.getitem", V(x), SLICE(I(-1), V(y), V(y)))));
    EXPECT("def forward(self, x, y):\n    getitem = x[slice(-1, y, y)];  x = y = None\n"
           "    return getitem",
           NULL);
}

TEST(getattr_forms)
{
    start();
    cfx_node *x = input("x");
    cfx_node *a = CALL("builtins.getattr", V(x), S("shape"));
    cfx_node *b = CALL("builtins.getattr", V(x), S("a.b"));
    cfx_node *c = CALL("builtins.getattr", V(x), S("for"));
    cfx_node *d = CALL("builtins.getattr", V(x), S("\xc3\xa9"));
    cfx_node *e = CALL("builtins.getattr", V(x), S("shape"), NONE);
    cfx_node *f = CALL("builtins.getattr", TUPLE(V(x), I(3)), S("real"));
    result(TUPLE(V(a), V(b), V(c), V(d), V(e), V(f)));
    EXPECT("def forward(self, x):\n    getattr_1 = x.shape\n    getattr_2 = getattr(x, 'a.b')\n"
           "    getattr_3 = x.for\n    getattr_4 = x.\xc3\xa9\n"
           "    getattr_5 = getattr(x, 'shape', None)\n    getattr_6 = (x, 3).real;  x = None\n"
           "    return (getattr_1, getattr_2, getattr_3, getattr_4, getattr_5, getattr_6)",
           "getattr | 1:1 2:2 3:3 4:4 5:5 6:6 7:7 8:7 | 4");
}

TEST(kwargs)
{
    start();
    cfx_node *x = input("x");
    cfx_node *a = with_kwarg(with_kwarg(CALL("torch.add", V(x)), "other", V(x)), "alpha", I(2));
    cfx_node *b = cfx_graph_call(graph, CFX_OP_CALL_FUNCTION, "torch.add", NULL, 0, NULL, 0, &error);
    with_kwarg(with_kwarg(b, "input", V(a)), "other", I(1));
    cfx_node *c = with_kwarg(with_kwarg(CALL("torch.add", V(b)), "a b", I(1)), "for", I(2));
    result(V(c));
    EXPECT("def forward(self, x):\n    add = torch.add(x, other = x, alpha = 2);  x = None\n"
           "    add_1 = torch.add(input = add, other = 1);  add = None\n"
           "    add_2 = torch.add(add_1, a b = 1, for = 2);  add_1 = None\n    return add_2",
           NULL);
}

/* Extra positional arguments and keywords of an operator are dropped, as torch.fx does. */
TEST(infix_extra)
{
    start();
    cfx_node *a = with_kwarg(CALL("operator.add", I(1), I(2), I(3)), "k", I(2));
    cfx_node *b = CALL("operator.neg", I(-1));
    cfx_node *c = CALL("operator.mul", TUPLE(I(1)), LIST(I(2)));
    cfx_node *d = CALL("operator.add", F(INFINITY), F(NAN));
    result(TUPLE(V(a), V(b), V(c), V(d)));
    EXPECT("def forward(self):\n    add = 1 + 2\n    neg = --1\n    mul = (1,) * [2]\n"
           "    add_1 = inf + nan\n    return (add, neg, mul, add_1)",
           NULL);
}

/* ---- literals ------------------------------------------------------------------------------ */

TEST(numbers)
{
    EXPECT_LITERAL("0", I(0));
    EXPECT_LITERAL("-1", I(-1));
    EXPECT_LITERAL("9223372036854775807", I(INT64_MAX));
    EXPECT_LITERAL("1000000000000000000000000000000",
                   cfx_value_integer(graph, "1000000000000000000000000000000", 31, &error));
    EXPECT_LITERAL("1.0", F(1));
    EXPECT_LITERAL("-0.0", F(-0.0));
    EXPECT_LITERAL("0.1", F(0.1));
    EXPECT_LITERAL("1e+300", F(1e300));
    EXPECT_LITERAL("1e+16", F(1e16));
    EXPECT_LITERAL("1j", cfx_value_complex(graph, 0, 1, &error));
    EXPECT_LITERAL("-1j", cfx_value_complex(graph, 0, -1, &error));
    EXPECT_LITERAL("(1-2j)", cfx_value_complex(graph, 1, -2, &error));
    EXPECT_LITERAL("(1.5+0j)", cfx_value_complex(graph, 1.5, 0, &error));
    EXPECT_LITERAL("(nan+0j)", cfx_value_complex(graph, NAN, 0, &error));
    EXPECT_LITERAL("(-0+1j)", cfx_value_complex(graph, -0.0, 1, &error));
    EXPECT_LITERAL("(1e+16+1e-05j)", cfx_value_complex(graph, 1e16, 1e-5, &error));
    EXPECT_LITERAL("complex(0.0, nan)", cfx_value_complex(graph, 0, NAN, &error));
}

TEST(strings)
{
    EXPECT_LITERAL("'a'", S("a"));
    EXPECT_LITERAL("\"it's\"", S("it's"));
    EXPECT_LITERAL("'q\"q'", S("q\"q"));
    EXPECT_LITERAL("'a\\nb\\t\\\\'", S("a\nb\t\\"));
    EXPECT_LITERAL("'\xc3\xa9\xe6\x97\xa5'", S("\xc3\xa9\xe6\x97\xa5"));
    EXPECT_LITERAL("'\\u2028'", S("\xe2\x80\xa8"));
    EXPECT_LITERAL("''", S(""));
    EXPECT_LITERAL("b'ab\\xff'", cfx_value_bytes(graph, "ab\xff", 3, &error));
}

TEST(torch_values)
{
    EXPECT_LITERAL("torch.bool", cfx_from_dtype(CFX_DTYPE_BOOL));
    EXPECT_LITERAL("device(type='cuda', index=1)", DEVICE("cuda:1"));
    EXPECT_LITERAL("torch.sparse_coo", cfx_from_layout(CFX_LAYOUT_SPARSE_COO));
    EXPECT_LITERAL("torch.preserve_format", cfx_from_memory_format(CFX_MEMORY_FORMAT_PRESERVE));
    EXPECT_LITERAL("torch.Tensor", HOST("torch.Tensor"));
}

TEST(containers)
{
    EXPECT_LITERAL("[]", EMPTY(LIST));
    EXPECT_LITERAL("[1, [2]]", LIST(I(1), LIST(I(2))));
    EXPECT_LITERAL("(1,)", TUPLE(I(1)));
    EXPECT_LITERAL("{}", EMPTY(DICT));
    EXPECT_LITERAL("{1: 2, (1, 2): 3, None: 4, torch.float32: 5}",
                   DICT(I(1), I(2), TUPLE(I(1), I(2)), I(3), NONE, I(4),
                        cfx_from_dtype(CFX_DTYPE_FLOAT32), I(5)));
    EXPECT_LITERAL("set()", EMPTY(SET));
    EXPECT_LITERAL("{1}", SET(I(1)));
    EXPECT_LITERAL("frozenset()", EMPTY(FROZENSET));
    EXPECT_LITERAL("frozenset({1})", cfx_value_seq(graph, CFX_KIND_FROZENSET, ITEMS(I(1)), &error));
    EXPECT_LITERAL("range(0, 3)", RANGE(0, 3, 1));
    EXPECT_LITERAL("range(1, 10, 2)", RANGE(1, 10, 2));
    EXPECT_LITERAL("slice('a', (1,), None)", SLICE(S("a"), TUPLE(I(1)), NONE));
    EXPECT_LITERAL("[inf, (nan,)]", LIST(F(INFINITY), TUPLE(F(NAN))));
}

#define POINT(a, b)                                                                                \
    cfx_value_seq(graph, CFX_KIND_NAMEDTUPLE,                                                      \
                  ITEMS(HOST("usermod.Pt"), TUPLE(S("a"), S("b")), a, b), &error)

TEST(aggregates)
{
    start();
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    cfx_node *n = CALL("usermod.ufn", LIST(V(x), TUPLE(V(y), V(x))),
                       DICT(S("a"), V(x), S("b"), LIST(V(y), NONE)), SLICE(V(x), V(y), NONE),
                       TUPLE(V(x)), RANGE(0, 2, 1));
    with_kwarg(with_kwarg(n, "kw", TUPLE(V(x))), "d", DICT(S("z"), DICT(S("q"), V(y))));
    cfx_node *n2 = CALL("usermod.ufn", POINT(V(x), V(y)));
    result(LIST(V(n), V(n2)));
    EXPECT("def forward(self, x, y):\n"
           "    ufn = usermod_ufn([x, (y, x)], {'a': x, 'b': [y, None]}, slice(x, y, None), (x,), "
           "range(0, 2), kw = (x,), d = {'z': {'q': y}})\n"
           "    ufn_1 = usermod_ufn(usermod_Pt(x, y));  x = y = None\n    return [ufn, ufn_1]",
           "usermod_ufn usermod_Pt | 1:2 2:3 3:4 4:4 | 4");
}

TEST(named_tuple_in_dict)
{
    start();
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    result(DICT(S("a"), V(x), S("b"), LIST(V(y), POINT(V(x), V(y))), S("c"), TUPLE(V(x))));
    EXPECT("def forward(self, x, y):\n"
           "    return {'a': x, 'b': [y, Pt(a=x, b=y)], 'c': (x,)}",
           "| 1:2 2:2 | 4");
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
           "    add : float = x + w;  x = None\n    w += add;  iadd : float = w;  add = iadd = None\n"
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

/* ---- options ------------------------------------------------------------------------------- */

TEST(expanded_def)
{
    const cfx_pycode_options options = {.expanded_def = true};
    start();
    cfx_node *x = with_type(input_default("x", I(3)), "builtins.int");
    input("*a");
    with_type(result(V(x)), "builtins.int");
    EXPECT_WITH(&options,
                "def forward(\n    self,\n    x : int = 3,\n    *a,\n) -> int:\n    _a = a\n"
                "    return x",
                "int | 5:1 6:2 7:2 | 4");
}

TEST(record_func)
{
    const cfx_pycode_options options = {.record_func = true};
    start();
    cfx_node *x = input("x");
    cfx_node *w = attribute("w");
    cfx_node *a = CALL("torch.add", V(x), V(w));
    result(TUPLE(V(METHOD("relu", V(a)))));
    EXPECT_WITH(&options,
                "def forward(self, x):\n"
                "    _rf = torch._C._profiler._RecordFunctionFast('## ENTER_GRAPH_PLACEHOLDER_KEY "
                "##'); _rf.__enter__()\n"
                "    w = self.w\n"
                "    _rf_add = torch._C._profiler._RecordFunctionFast('## 2 ##'); "
                "_rf_add.__enter__()\n"
                "    add = torch.add(x, w);  x = w = None\n"
                "    _rf_add.__exit__(None, None, None)\n"
                "    _rf_relu = torch._C._profiler._RecordFunctionFast('## 3 ##'); "
                "_rf_relu.__enter__()\n"
                "    relu = add.relu();  add = None\n"
                "    _rf_relu.__exit__(None, None, None)\n"
                "    return (relu,)\n"
                "    _rf.__exit__(None, None, None)",
                "| 1:- 2:1 3:2 4:2 5:2 6:3 7:3 8:3 9:4 10:4 11:4 | 4");
}

TEST(colored)
{
    const cfx_pycode_options options = {.colored = true};
    start();
    cfx_node *a = CALL("operator.add", V(input("x")), TUPLE(I(1), S("s")));
    result(V(CALL("usermod.ufn", V(a), POINT(I(1), I(2)), DICT(S("a"), I(1)))));
    EXPECT_WITH(&options,
                "def forward(self, x):\n"
                "    add = x + (\033[34m1\033[0m, \033[34m's'\033[0m);  \033[2mx = None\033[0m\n"
                "    ufn = usermod_ufn(add, usermod_Pt(1, 2), \033[34m{'a': 1}\033[0m);  "
                "\033[2madd = None\033[0m\n    return ufn",
                NULL);
}

/* ---- callbacks ----------------------------------------------------------------------------- */

static cfx_status say(cfx_sink out, const char *text)
{
    return out.write(out.ctx, text, strlen(text));
}

static cfx_status comment(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)gen, (void)err;
    if (cfx_node_op(n) != CFX_OP_CALL_FUNCTION)
        return CFX_OK;
    return say(out, "\n# No stacktrace found for following nodes\n");
}

static cfx_status annotation(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)gen, (void)err;
    return cfx_node_op(n) == CFX_OP_PLACEHOLDER ? CFX_OK : say(out, ": \"f32[2]\"");
}

TEST(verbose)
{
    const cfx_pycode_options options = {.comment = comment, .annotation = annotation};
    start();
    cfx_node *a = with_type(RELU(with_type(input("x"), "builtins.int")), "builtins.float");
    result(V(CALL("operator.iadd", V(a), I(1))));
    EXPECT_WITH(&options,
                "def forward(self, x : int):\n    # No stacktrace found for following nodes\n"
                "    relu: \"f32[2]\" = torch.relu(x);  x = None\n    \n"
                "    # No stacktrace found for following nodes\n"
                "    relu += 1;  iadd: \"f32[2]\" = relu;  relu = None\n    return iadd",
                "int float | 1:0 2:0 3:1 4:1 5:1 6:2 7:3 8:3 | 4");
}

static cfx_status boxed(void *ctx, cfx_pycode *gen, const cfx_pycode_text *params, size_t n,
                        cfx_pycode_text returns, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)gen, (void)err;
    say(out, "def forward(self, args_list)");
    out.write(out.ctx, returns.data, returns.size);
    say(out, ":");
    for (size_t i = 0; i < n; i++) {
        say(out, "\n    ");
        out.write(out.ctx, params[i].data, params[i].size);
        say(out, " = next(args_iter)");
    }
    return CFX_OK;
}

static cfx_status unflatten(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    say(out, "return (\n    ");
    cfx_status status = cfx_pycode_value(gen, cfx_node_arg(n, 0), out, err);
    return status ? status : say(out, ",\n)");
}

TEST(signature_and_output)
{
    const cfx_pycode_options options = {.signature = boxed, .output = unflatten};
    start();
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    with_type(result(LIST(V(CALL("torch.add", V(x), V(y))), S("s"))), "builtins.tuple");
    EXPECT_WITH(&options,
                "def forward(self, args_list) -> tuple:\n    x = next(args_iter)\n"
                "    y = next(args_iter)\n    add = torch.add(x, y);  x = y = None\n"
                "    return (\n        [add, 's'],\n    )",
                "tuple | 3:2 4:3 5:3 6:3 7:3 | 4");
}

/* Joins the pieces as they are, with marks between them and a line in front. */
static cfx_status show_pieces(void *ctx, cfx_pycode *gen, const cfx_pycode_text *pieces, size_t n,
                              cfx_sink out, cfx_error *err)
{
    cfx_buffer *seen = ctx;
    (void)gen, (void)err;
    say(out, "    # one\n");
    for (size_t i = 0; i < n; i++) {
        cfx_buffer_append(seen, pieces[i].data, pieces[i].size);
        cfx_buffer_append(seen, "|", 1);
        out.write(out.ctx, pieces[i].data, pieces[i].size);
    }
    return CFX_OK;
}

TEST(transform)
{
    cfx_buffer seen;
    cfx_buffer_init(&seen, NULL);
    const cfx_pycode_options options = {.transform = show_pieces, .ctx = &seen};
    start();
    cfx_node *x = input("x");
    input("*a");
    cfx_node *w = attribute("w");
    CALL("operator.iadd", V(x), V(w));
    result(V(CALL("torch.add", V(x), S("p\nq"))));
    EXPECT_WITH(&options,
                "def forward(self, x, *a):\n        # one\n    _a = a\n    w = self.w\n"
                "    x += w;  iadd = x;  w = iadd = None\n"
                "    add = torch.add(x, 'p\\nq');  x = None\n    return add",
                "| 1:- 2:1 3:2 4:3 5:4 6:5 7:5 | 4");
    CHECK_STR_EQ("# COUNTER: 0\n|# COUNTER: 1\n|_a = a\n|# COUNTER: 2\n|w = self.w|\n|"
                 "# COUNTER: 3\n|x += w;  iadd = x|;  w = iadd = None\n|# COUNTER: 4\n|"
                 "add = torch.add(x, 'p\\nq')|;  x = None\n|# COUNTER: 5\n|return add|\n|",
                 seen.data);
    cfx_buffer_free(&seen);
}

static cfx_status replace_all(void *ctx, cfx_pycode *gen, const cfx_pycode_text *pieces, size_t n,
                              cfx_sink out, cfx_error *err)
{
    (void)gen, (void)pieces, (void)n, (void)err;
    return say(out, ctx);
}

TEST(transform_to_anything)
{
    static const char *const rows[][3] = {
        {"", "\n    ", "| 1:- | 4"},
        {"abc", "\n    abc", "| 1:- | 4"},
        {"\n\n# a\n\nb\n\n\n", "\n    # a\n    \n    b\n    \n    \n    ",
         "| 1:- 2:- 3:- 4:- 5:- 6:- 7:- 8:- | 4"},
        {"# COUNTER: 1\n\nx\n", "\n    x\n    ", "| 1:1 2:1 3:1 | 4"},
        {"  # COUNTER: 1\n\nx", "\n    x", "| 1:1 2:1 | 4"},
        {"\n# COUNTER: 1\na\n    # COUNTER: 2\nb\r\nc", "\n    a\n    b\r\n    c",
         "| 1:- 2:1 3:2 4:2 | 4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const cfx_pycode_options options = {.transform = replace_all,
                                            .ctx = (void *)(uintptr_t)rows[i][0]};
        cfx_pycode_result code;
        char about[200];
        start();
        result(V(input("x")));
        REQUIRE(cfx_codegen_python(graph, &options, &code, &error) == CFX_OK);
        describe(&code, about, sizeof about);
        CHECK_STR_EQ(rows[i][1], strchr(code.source.data, ':') + 1);
        CHECK_STR_EQ(rows[i][2], about);
        cfx_pycode_free(&code);
        cfx_graph_release(graph);
    }
}

/* ---- a host -------------------------------------------------------------------------------- */

/* An object of the test's host language: its qualified name (NULL for none) and its repr. */
typedef struct object {
    const char *name, *repr;
} object;

static void host_count(void *ctx, void *thing) { (void)ctx, (void)thing; }

static cfx_status host_repr(void *ctx, void *thing, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)err;
    return say(out, ((object *)thing)->repr);
}

static cfx_status host_name(void *ctx, void *thing, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    const char *name = ((object *)thing)->name;
    return name ? say(out, name) : cfx_error_set(err, CFX_E_KEY, "no name");
}

static cfx_status host_hint(void *ctx, void *thing, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)err;
    const char *name = ((object *)thing)->name;
    const char *dot = name ? strrchr(name, '.') : NULL;
    return say(out, dot ? dot + 1 : "lambda");
}

static const cfx_host host = {.retain = host_count, .release = host_count, .repr = host_repr,
                              .qualified_name = host_name, .name_hint = host_hint};

static void start_hosted(void)
{
    graph = cfx_graph_new(NULL, &host, &error);
}

static cfx_node *call_object(object *function, cfx_value arg)
{
    cfx_target target = {.object = function};
    return cfx_graph_create(graph, CFX_OP_CALL_FUNCTION, target, TUPLE(arg), cfx_invalid(), NULL,
                            cfx_invalid(), &error);
}

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

static int is_wrapped(void *ctx, cfx_node *n)
{
    (void)ctx, (void)n;
    return 1;
}

TEST(wrapped)
{
    const cfx_pycode_options options = {.is_wrapped = is_wrapped};
    start();
    cfx_node *a = CALL("usermod.ufn", V(CALL("usermod.ufn", V(input("x")))));
    cfx_node *b = CALL("builtins.len", V(a));
    result(V(CALL("operator.add", V(RELU(b)), I(1))));
    cfx_pycode_result code;
    REQUIRE(cfx_codegen_python(graph, &options, &code, &error) == CFX_OK);
    CHECK(strncmp(code.source.data,
                  "\ntorch.fx._symbolic_trace.wrap(\"usermod_ufn\")\n"
                  "torch.fx._symbolic_trace.wrap(\"len\")\n"
                  "torch.fx._symbolic_trace.wrap(\"torch.relu\")\n\ndef forward(self, x):\n",
                  150) == 0);
    CHECK_INT_EQ(6, code.prologue_start);
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}

/* ---- regions ------------------------------------------------------------------------------- */

/* Makes `graph` the region being built; region_end turns it into a value of the outer graph. */
static cfx_graph *outer_graphs[8];
static int depth;

static void region_begin(void)
{
    outer_graphs[depth++] = graph;
    graph = cfx_graph_new(NULL, NULL, &error);
}

static cfx_value region_end(void)
{
    cfx_graph *region = graph;
    graph = outer_graphs[--depth];
    cfx_value v = cfx_value_region(graph, region, &error);
    cfx_graph_release(region);
    return v;
}

/* input -> function(input), or the input itself for NULL. */
static cfx_value unary_region(const char *function, const char *name)
{
    region_begin();
    cfx_node *x = input(name);
    result(V(function ? CALL(function, V(x)) : x));
    return region_end();
}

TEST(cond)
{
    start();
    cfx_node *p = input("pred");
    cfx_node *x = input("x");
    cfx_value then = unary_region("torch.relu", "x");
    cfx_value other = unary_region(NULL, "a");
    cfx_node *c = CALL("cfx.cond", V(p), then, other, TUPLE(V(x)));
    cfx_node *r = RELU(c);
    result(V(r));
    EXPECT("def forward(self, pred, x):\n    if pred:\n        relu_1 = torch.relu(x)\n"
           "        cond = relu_1;  relu_1 = None\n    else:\n        cond = x\n"
           "    pred = x = None\n    relu = torch.relu(cond);  cond = None\n    return relu",
           "| 1:2 2:2 3:2 4:2 5:2 6:2 7:3 8:4 9:4 | 4");
}

TEST(cond_operands)
{
    start();
    cfx_node *p = input("pred");
    cfx_node *x = input("x");
    cfx_value regions[2];
    for (int i = 0; i < 2; i++) {
        region_begin();
        cfx_node *a = input("a");
        cfx_node *b = input("b");
        cfx_node *s = CALL(i ? "operator.sub" : "operator.iadd", V(a), V(b));
        result(TUPLE(V(s), V(a)));
        regions[i] = region_end();
    }
    result(V(CALL("cfx.cond", V(p), regions[0], regions[1], TUPLE(V(x), I(2)))));
    EXPECT("def forward(self, pred, x):\n    if pred:\n        b = 2\n"
           "        iadd = x;  iadd += b\n        cond = (iadd, x);  iadd = None\n    else:\n"
           "        b_1 = 2\n        sub = x - b_1\n        cond = (sub, x);  sub = None\n"
           "    pred = x = None\n    return cond",
           NULL);
}

TEST(while_loop)
{
    start();
    cfx_node *x = input("x");
    region_begin();
    cfx_node *i = input("i");
    input("acc");
    result(V(CALL("operator.lt", V(i), I(10))));
    cfx_value test = region_end();
    region_begin();
    i = input("i");
    cfx_node *acc = input("x");
    cfx_node *next = CALL("operator.add", V(i), I(1));
    result(TUPLE(V(next), V(CALL("operator.mul", V(acc), V(i)))));
    cfx_value body = region_end();
    cfx_node *w = CALL("cfx.while_loop", test, body, TUPLE(I(0), V(x)));
    result(V(CALL("operator.getitem", V(w), I(1))));
    EXPECT("def forward(self, x):\n    i, x_1 = 0, x\n    while i < 10:\n        add = i + 1\n"
           "        mul = x_1 * i\n        i, x_1 = add, mul;  add = mul = None\n"
           "    while_loop = (i, x_1);  i = x_1 = x = None\n"
           "    getitem = while_loop[1];  while_loop = None\n    return getitem",
           NULL);
}

TEST(while_with_long_test)
{
    start();
    cfx_node *x = input("x");
    region_begin();
    cfx_node *i = input("i");
    cfx_node *s = CALL("operator.mul", V(i), V(i));
    result(V(CALL("operator.lt", V(s), I(10))));
    cfx_value test = region_end();
    region_begin();
    i = input("i");
    result(TUPLE(V(CALL("operator.add", V(i), I(1)))));
    cfx_value body = region_end();
    result(V(CALL("cfx.while_loop", test, body, TUPLE(V(x)))));
    EXPECT("def forward(self, x):\n    i = x\n    while True:\n        mul = i * i\n"
           "        lt = mul < 10;  mul = None\n        if not lt:\n            break\n"
           "        add = i + 1\n        i = add;  add = None\n"
           "    while_loop = (i,);  i = x = None\n    return while_loop",
           NULL);
}

TEST(for_loop_nested)
{
    start();
    cfx_node *x = input("x");
    cfx_node *n = input("n");
    region_begin();
    cfx_node *i = input("i");
    cfx_node *acc = input("acc");
    cfx_node *keep = input("keep");
    cfx_value then = unary_region("torch.relu", "a");
    cfx_value other = unary_region("torch.neg", "a");
    cfx_node *even = CALL("operator.eq", V(i), I(0));
    cfx_node *c = CALL("cfx.cond", V(even), then, other, TUPLE(V(acc)));
    result(TUPLE(V(c), V(keep)));
    cfx_value body = region_end();
    result(V(CALL("cfx.for_loop", V(n), body, TUPLE(V(x), V(x)))));
    EXPECT("def forward(self, x, n):\n    acc, keep = x, x\n    for i in range(n):\n"
           "        eq = i == 0\n        if eq:\n            relu = torch.relu(acc)\n"
           "            cond = relu;  relu = None\n        else:\n"
           "            neg = torch.neg(acc)\n            cond = neg;  neg = None\n"
           "        eq = None\n        acc = cond;  cond = None\n"
           "    for_loop = (acc, keep);  acc = keep = n = x = None\n    return for_loop",
           NULL);
}

TEST(loop_without_state)
{
    start();
    region_begin();
    input("i");
    result(EMPTY(TUPLE));
    cfx_value body = region_end();
    CALL("cfx.for_loop", I(3), body);
    result(NONE);
    EXPECT("def forward(self):\n    for i in range(3):\n        pass\n"
           "    for_loop = ();  for_loop = None\n    return None",
           NULL);
}

TEST(state_in_one_value)
{
    start();
    cfx_node *s = input("s");
    region_begin();
    input("i");
    cfx_node *a = input("a");
    result(V(CALL("usermod.step", V(a))));
    cfx_value body = region_end();
    result(V(CALL("cfx.for_loop", I(3), body, V(s))));
    EXPECT("def forward(self, s):\n    a, = s\n    for i in range(3):\n"
           "        step = usermod_step(a)\n        a, = step\n"
           "    for_loop = (a,);  a = s = None\n    return for_loop",
           NULL);
}

/* Without regions among the arguments it is a call like any other. */
TEST(cond_without_regions)
{
    start();
    cfx_node *p = input("p");
    cfx_node *t = attribute("true_graph");
    result(V(CALL("cfx.cond", V(p), V(t), V(t), TUPLE(V(p)))));
    EXPECT("def forward(self, p):\n    true_graph = self.true_graph\n"
           "    cond = cfx_cond(p, true_graph, true_graph, (p,));  p = true_graph = None\n"
           "    return cond",
           "cfx_cond | 1:1 2:2 3:3 4:3 | 4");
}

/* ---- files --------------------------------------------------------------------------------- */

static void expect_file(const char *class_name, const char *want)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_codegen_python_file(graph, class_name, cfx_buffer_sink(&text), &error));
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

/* ---- failures ------------------------------------------------------------------------------ */

static void expect_failure(cfx_status status, const char *message)
{
    cfx_pycode_result code;
    memset(&error, 0, sizeof error);
    CHECK_INT_EQ(status, cfx_codegen_python(graph, NULL, &code, &error));
    CHECK_STR_EQ(message, error.message);
    CHECK(code.source.data == NULL && code.memory == NULL);
    cfx_graph_release(graph);
}

TEST(too_few_arguments)
{
    start();
    CHECK_INT_EQ(CFX_OK,
                 cfx_node_set_location(CALL("operator.add", I(1)), "model.py", 12, &error));
    expect_failure(CFX_E_INDEX,
                   "model.py:12: operator.add needs 2 positional arguments, got 1 (node %add)");
    start();
    CALL("operator.setitem", I(1), I(2));
    expect_failure(CFX_E_INDEX,
                   "operator.setitem needs 3 positional arguments, got 2 (node %setitem)");
    start();
    cfx_graph_call(graph, CFX_OP_CALL_METHOD, "relu", NULL, 0, NULL, 0, &error);
    expect_failure(CFX_E_INDEX, "relu needs 1 positional argument, got 0 (node %relu)");
    start();
    CALL("builtins.getattr", I(1));
    expect_failure(CFX_E_INDEX,
                   "builtins.getattr needs 2 positional arguments, got 1 (node %getattr_1)");
    start();
    cfx_graph_call(graph, CFX_OP_OUTPUT, "output", NULL, 0, NULL, 0, &error);
    expect_failure(CFX_E_INDEX, "the output has no value (node %output)");
}

TEST(region_in_the_wrong_place)
{
    start();
    cfx_value r = unary_region(NULL, "x");
    CALL("torch.relu", r);
    expect_failure(CFX_E_UNSUPPORTED, "a graph is no Python expression (node %relu)");
    start();
    r = unary_region(NULL, "x");
    cfx_value r2 = unary_region(NULL, "x");
    CALL("cfx.cond", I(1), r, r2, TUPLE(I(1), I(2)));
    expect_failure(CFX_E_GRAPH, "inputs of a branch: the region has 1, but 2 are given (node %cond)");
    start();
    region_begin();
    r = region_end();
    CALL("cfx.for_loop", I(1), r);
    expect_failure(CFX_E_GRAPH, "a region has no output (node %for_loop)");
}

TEST(function_without_name)
{
    object lambda = {NULL, "<lambda>"};
    start_hosted();
    call_object(&lambda, I(1));
    expect_failure(CFX_E_KEY, "the function or type has no name to call it by (node %lambda_1)");
}

static cfx_status fail(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)gen, (void)n, (void)out;
    return cfx_error_set(err, CFX_E_HOST, "raised");
}

TEST(failing_callback)
{
    const cfx_pycode_options all[] = {{.comment = fail}, {.annotation = fail}, {.output = fail}};
    for (size_t i = 0; i < 3; i++) {
        cfx_pycode_result code;
        start();
        result(V(RELU(input("x"))));
        CHECK_INT_EQ(CFX_E_HOST, cfx_codegen_python(graph, &all[i], &code, &error));
        cfx_graph_release(graph);
    }
}

/* Everything at once: names that collide, regions, types, wraps, host text. */
static void build_all_sorts(void)
{
    cfx_node *x = with_type(input_default("x", I(3)), "usermod.Cls");
    cfx_node *rest = input("*rest");
    cfx_value then = unary_region("usermod.ufn", "x");
    cfx_value other = unary_region("torch.neg", "a");
    cfx_node *a = CALL("usermod.ufn", V(x), S("text"), POINT(V(rest), I(2)));
    cfx_node *b = with_name(METHOD("0.add_", V(a)), "usermod_ufn_1");
    cfx_node *c = CALL("cfx.cond", V(b), then, other, TUPLE(V(a)));
    with_type(result(V(CALL("operator.iadd", V(c), HOST("usermod.thing")))), "usermod.Cls");
}

/* Memory is short in the generator only: the graph is built before the counting starts. */
static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    test_alloc *ta = a->ctx;
    const size_t fail_at = ta->fail_at;
    cfx_pycode_options options = {.comment = comment, .annotation = annotation,
                                  .is_wrapped = is_wrapped, .expanded_def = true};
    if (strcmp(arg, "transform") == 0) {
        options.transform = replace_all;
        options.ctx = (void *)(uintptr_t) "# COUNTER: 1\na\nb\n";
    }
    ta->fail_at = TEST_ALLOC_NEVER;
    graph = cfx_graph_new(a, NULL, &error);
    build_all_sorts();
    ta->count = 0;
    ta->fail_at = fail_at;
    cfx_status status;
    if (strcmp(arg, "file") == 0) {
        cfx_buffer text;
        cfx_buffer_init(&text, a);
        status = cfx_codegen_python_file(graph, "Net", cfx_buffer_sink(&text), &error);
        cfx_buffer_free(&text);
    } else {
        cfx_pycode_result code;
        status = cfx_codegen_python(graph, &options, &code, &error);
        if (status == CFX_OK)
            cfx_pycode_free(&code);
    }
    cfx_graph_release(graph);
    return status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(sweep, "plain") > 10);
    CHECK(test_oom_sweep(sweep, "transform") > 10);
    CHECK(test_oom_sweep(sweep, "file") > 10);
}

/* ---- size ---------------------------------------------------------------------------------- */

TEST(many_nodes)
{
    enum { N = 100000 };
    start();
    cfx_node *x = input("x");
    for (int i = 0; i < N; i++)
        x = CALL("operator.add", V(x), I(i));
    result(V(x));
    cfx_pycode_result code;
    REQUIRE(cfx_codegen_python(graph, NULL, &code, &error) == CFX_OK);
    CHECK_INT_EQ(N + 2, code.n_lines);
    CHECK_INT_EQ(N, code.line_nodes[N - 1]);
    CHECK(strstr(code.source.data, "    add_99999 = add_99998 + 99999;  add_99998 = None\n"));
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}
