/* codegen_pyregion.c - control flow as if, while and for. */
#include "codegen_check.h"

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
    EXPECT("def forward(self, pred):\n    if pred:\n        relu = torch.relu(pred)\n"
           "        cond = relu;  relu = None\n    else:\n        cond = pred\n"
           "    pred = None\n    return cond",
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
