/* emit_pyexpr.c - expressions, byte for byte as torch.fx 2.13 writes them. */
#include "emit_check.h"

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
    EXPECT("def forward(self, x):\n    a_b = x.a.b()\n"
           "    _1 = getattr(x, \"1\")();  x = _1 = None\n"
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

/* A complex number with a real part has its own parentheses, even where that part is -0. */
TEST(complex_in_parentheses)
{
    start();
    cfx_node *a = METHOD("foo", cfx_value_complex(graph, -0.0, -1, &error));
    cfx_node *b = METHOD("foo", cfx_value_complex(graph, 0.0, -1, &error));
    result(TUPLE(V(a), V(b)));
    EXPECT("def forward(self):\n    foo = (-0-1j).foo()\n    foo_1 = (-1j).foo()\n"
           "    return (foo, foo_1)",
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
           "    x[(slice(None, None, None), y)] = 1;  setitem_1 : int = x;  "
           "x = y = setitem_1 = None\n"
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
                TUPLE(SLICE(I(1), I(2), NONE), cfx_value_ellipsis(), NONE));
    EXPECT_ITEM("True", cfx_value_bool(true));
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
    cfx_node *b = call(CFX_OP_CALL_FUNCTION, "torch.add", NULL, 0);
    with_kwarg(with_kwarg(b, "input", V(a)), "other", I(1));
    cfx_node *c = with_kwarg(with_kwarg(CALL("torch.add", V(b)), "a b", I(1)), "for", I(2));
    result(V(c));
    EXPECT("def forward(self, x):\n    add = torch.add(x, other = x, alpha = 2);  x = None\n"
           "    add_1 = torch.add(input = add, other = 1);  add = None\n"
           "    add_2 = torch.add(add_1, **{'a b': 1}, **{'for': 2});  add_1 = None\n"
           "    return add_2",
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

/* One call of usermod.ufn with a literal. */
#define EXPECT_LITERAL(text, value)                                                                \
    do {                                                                                           \
        start();                                                                                   \
        result(V(CALL("usermod.ufn", value)));                                                     \
        EXPECT("def forward(self):\n    ufn = usermod_ufn(" text ")\n    return ufn", NULL);       \
    } while (0)

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
    EXPECT_LITERAL("torch.bool", cfx_value_dtype(CFX_DTYPE_BOOL));
    EXPECT_LITERAL("device(type='cuda', index=1)", DEVICE("cuda:1"));
    EXPECT_LITERAL("torch.sparse_coo", cfx_value_layout(CFX_LAYOUT_SPARSE_COO));
    EXPECT_LITERAL("torch.preserve_format", cfx_value_memory_format(CFX_MEMORY_FORMAT_PRESERVE));
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
                        cfx_value_dtype(CFX_DTYPE_FLOAT32), I(5)));
    EXPECT_LITERAL("set()", EMPTY(SET));
    EXPECT_LITERAL("{1}", SET(I(1)));
    EXPECT_LITERAL("frozenset()", EMPTY(FROZENSET));
    EXPECT_LITERAL("frozenset({1})", cfx_value_seq(graph, CFX_KIND_FROZENSET, ITEMS(I(1)), &error));
    EXPECT_LITERAL("range(0, 3)", RANGE(0, 3, 1));
    EXPECT_LITERAL("range(1, 10, 2)", RANGE(1, 10, 2));
    EXPECT_LITERAL("slice('a', (1,), None)", SLICE(S("a"), TUPLE(I(1)), NONE));
    EXPECT_LITERAL("[inf, (nan,)]", LIST(F(INFINITY), TUPLE(F(NAN))));
}

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
