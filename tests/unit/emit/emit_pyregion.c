/* emit_pyregion.c - control flow as if, while and for. */
#include "emit_check.h"

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
    EXPECT("def forward(self, pred, x):\n    if pred:\n        x = torch.relu(x)\n"
           "    pred = None\n    relu = torch.relu(x);  x = None\n    return relu",
           "| 1:2 2:2 3:2 4:3 5:4 6:4 | 4");
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
    EXPECT("def forward(self, pred, x):\n    if pred:\n        iadd = x;  iadd += 2\n"
           "        cond = (iadd, x);  iadd = None\n    else:\n        sub = x - 2\n"
           "        cond = (sub, x);  sub = None\n    return cond",
           NULL);
}

TEST(cond_by_keywords)
{
    start();
    cfx_node *p = input("pred");
    cfx_value then = unary_region("torch.relu", "x");
    cfx_value other = unary_region(NULL, "a");
    cfx_node *c = call(CFX_OP_CALL_FUNCTION, "cfx.cond", NULL, 0);
    with_kwarg(with_kwarg(c, "pred", V(p)), "then", then);
    with_kwarg(with_kwarg(c, "otherwise", other), "operands", TUPLE(V(p)));
    result(V(c));
    EXPECT("def forward(self, pred):\n    if pred:\n        pred = torch.relu(pred)\n"
           "    return pred",
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
    EXPECT("def forward(self, x):\n    i = 0\n    while i < 10:\n        add = i + 1\n"
           "        x = x * i\n        i = add;  add = None\n    return x",
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
    EXPECT("def forward(self, x):\n    i = x\n    while (i * i) < 10:\n        i = i + 1\n"
           "    while_loop = (i,)\n    return while_loop",
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
    EXPECT("def forward(self, x, n):\n    acc = x\n    for i in range(n):\n        if i == 0:\n"
           "            acc = torch.relu(acc)\n        else:\n            acc = torch.neg(acc)\n"
           "    for_loop = (acc, x)\n    return for_loop",
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
    EXPECT("def forward(self):\n    for i in range(3):\n        pass\n    return None", NULL);
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
           "    for_loop = (a,)\n    return for_loop",
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

/* ---- variables ----------------------------------------------------------------------------- */

/* A region of inputs "x" and "y" that gives two values. */
static cfx_value swap_region(bool swapped)
{
    region_begin();
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    result(swapped ? TUPLE(V(y), V(RELU(x))) : TUPLE(V(x), V(y)));
    return region_end();
}

/* What one branch leaves alone stays where it is; values that change places do so at once. */
TEST(cond_unpacked)
{
    start();
    cfx_node *p = input("p");
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    cfx_value then = swap_region(true);
    cfx_value other = swap_region(false);
    cfx_node *c = CALL("cfx.cond", V(p), then, other, TUPLE(V(x), V(y)));
    cfx_node *a = CALL("operator.getitem", V(c), I(0));
    cfx_node *b = CALL("operator.getitem", V(c), I(-1));
    result(V(CALL("torch.sub", V(a), V(b))));
    EXPECT("def forward(self, p, x, y):\n    if p:\n        relu = torch.relu(x)\n"
           "        x, y = y, relu;  relu = None\n    p = None\n"
           "    sub = torch.sub(x, y);  x = y = None\n    return sub",
           NULL);
}

/* An operand that is used later keeps its variable. */
TEST(cond_keeps_what_is_needed)
{
    start();
    cfx_node *p = input("p");
    cfx_node *x = input("x");
    cfx_value then = unary_region("torch.relu", "x");
    cfx_node *c = CALL("cfx.cond", V(p), then, unary_region(NULL, "x"), TUPLE(V(x)));
    result(V(CALL("torch.sub", V(c), V(x))));
    EXPECT("def forward(self, p, x):\n    if p:\n        cond = torch.relu(x)\n    else:\n"
           "        cond = x\n    p = None\n    sub = torch.sub(cond, x);  cond = x = None\n"
           "    return sub",
           NULL);
}

/* A branch of nothing but the other cond is an elif; one of nothing at all is left out. */
TEST(cond_elif)
{
    start();
    cfx_node *n = input("n");
    cfx_node *x = input("x");
    cfx_value then = unary_region("torch.relu", "x");
    region_begin();
    cfx_node *a = input("x");
    cfx_node *m = input("n");
    cfx_node *is = CALL("operator.is_", V(m), NONE);
    cfx_value inner_then = unary_region(NULL, "a");
    cfx_value inner_other = unary_region("torch.neg", "a");
    result(V(CALL("cfx.cond", V(is), inner_then, inner_other, TUPLE(V(a)))));
    cfx_value other = region_end();
    region_begin();
    a = input("x");
    input("n");
    result(V(RELU(a)));
    then = region_end();
    cfx_node *eq = CALL("operator.eq", V(n), I(1));
    cfx_node *c = CALL("cfx.cond", V(eq), then, other, TUPLE(V(x), V(n)));
    result(V(METHOD("abs", V(c))));
    EXPECT("def forward(self, n, x):\n    if n == 1:\n        cond = torch.relu(x)\n"
           "    elif n is None:\n        cond = x\n    else:\n        cond = torch.neg(x)\n"
           "    x = n = None\n    abs_1 = cond.abs();  cond = None\n    return abs_1",
           NULL);
}

/* A function that ends with a cond, one branch of which is next to nothing. */
TEST(cond_returns)
{
    start();
    cfx_node *x = input("x");
    region_begin();
    cfx_node *a = input("x");
    for (int i = 0; i < 4; i++)
        a = RELU(a);
    result(V(a));
    cfx_value other = region_end();
    cfx_node *no = CALL("operator.not_", V(x));
    cfx_node *c = CALL("cfx.cond", V(no), unary_region(NULL, "x"), other, TUPLE(V(x)));
    result(TUPLE(V(c), I(1)));
    EXPECT("def forward(self, x):\n    not_ = _operator_not_(x)\n    if not_:\n"
           "        return (x, 1)\n    relu = torch.relu(x)\n"
           "    relu_1 = torch.relu(relu);  relu = None\n"
           "    relu_2 = torch.relu(relu_1);  relu_1 = None\n"
           "    relu_3 = torch.relu(relu_2);  relu_2 = None\n    return (relu_3, 1)",
           NULL);
}

/* The value that a loop begins with is called after the state; what does not change is no state. */
TEST(loop_variables)
{
    start();
    cfx_node *x = input("x");
    region_begin();
    cfx_node *i = input("i");
    cfx_node *acc = input("acc");
    cfx_node *step = input("step");
    cfx_node *a = input("a");
    cfx_node *b = input("b");
    cfx_node *sum = CALL("torch.add", V(acc), V(step));
    result(TUPLE(V(CALL("torch.mul", V(sum), V(i))), V(step), V(b), V(a)));
    cfx_value body = region_end();
    cfx_node *zeros = CALL("torch.zeros", I(3));
    cfx_node *loop = CALL("cfx.for_loop", I(2), body, TUPLE(V(zeros), V(x), I(1), I(2)));
    cfx_node *first = CALL("operator.getitem", V(loop), I(0));
    cfx_node *again = CALL("operator.getitem", V(loop), I(1));
    cfx_node *last = CALL("operator.getitem", V(loop), I(3));
    result(V(CALL("torch.sub", V(first), V(again), V(last), V(x))));
    EXPECT("def forward(self, x):\n    acc = torch.zeros(3)\n    a, b = 1, 2\n"
           "    for i in range(2):\n        add = torch.add(acc, x)\n"
           "        acc = torch.mul(add, i);  add = None\n        a, b = b, a\n    a = None\n"
           "    sub = torch.sub(acc, x, b, x);  acc = b = x = None\n    return sub",
           NULL);
}

/* A test that is more than an expression is computed at the head of each turn. */
TEST(while_true)
{
    start();
    cfx_node *x = input("x");
    region_begin();
    cfx_node *i = input("i");
    cfx_node *s = CALL("operator.mul", V(i), V(i));
    result(V(CALL("operator.lt", V(s), V(s))));
    cfx_value test = region_end();
    region_begin();
    i = input("i");
    result(TUPLE(V(CALL("operator.iadd", V(i), V(i)))));
    cfx_value body = region_end();
    cfx_node *loop = CALL("cfx.while_loop", test, body, TUPLE(V(x)));
    result(V(CALL("operator.getitem", V(loop), I(0))));
    EXPECT("def forward(self, x):\n    i = x\n    while True:\n        mul = i * i\n"
           "        if not (mul < mul):\n            break\n        i += i\n    return i",
           NULL);
}

/* ---- size ---------------------------------------------------------------------------------- */

/* A cond of many results: each is looked at once. */
TEST(many_results)
{
    enum { N = 20000 };
    cfx_value *values = malloc(N * sizeof *values);
    cfx_value regions[2];
    start();
    cfx_node *x = input("x");
    for (int i = 0; i < 2; i++) {
        region_begin();
        for (int k = 0; k < N; k++)
            values[k] = V(input("a"));
        for (int k = 0; k < N; k += 2)
            values[k] = i ? values[k] : V(RELU(values[k].as.node));
        result(cfx_value_tuple(graph, values, N, &error));
        regions[i] = region_end();
    }
    for (int k = 0; k < N; k++)
        values[k] = V(RELU(x));
    cfx_value operands = cfx_value_tuple(graph, values, N, &error);
    cfx_node *c = CALL("cfx.cond", V(x), regions[0], regions[1], operands);
    for (int k = 0; k < N; k++)
        values[k] = V(CALL("operator.getitem", V(c), I(k)));
    free(values);
    result(V(RELU(CALL("operator.getitem", V(c), I(0)))));
    cfx_pycode_result code;
    REQUIRE(cfx_codegen_python(graph, NULL, &code, &error) == CFX_OK);
    CHECK(strstr(code.source.data, "        relu = torch.relu(relu)\n"));
    CHECK(!strstr(code.source.data, "else:"));
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}
