/* evaluate.c - tests of the evaluator of scripts on known values: src/script/evaluate. */
#include "test_alloc.h"
#include "toy_world.h"

#include <cfx/embed/script.h>

/* Runs a source in which `x` is a graph value, and tells what `result` is then. */
typedef struct run {
    char result[600];
    char ir[3000];
    cfx_error err;
    char places[300];  /* of a failure: "file:line:column function" for each call */
} run;

static cfx_status put_input(toy_world *w, cfx_error *err)
{
    cfx_node *n = cfx_graph_placeholder(w->g, "x", err);
    cfx_object *o = n ? w_proxy(w, n, err) : NULL;
    const cfx_status status = o ? w_set(w, O(w->globals), "x", o, err) : err->status;
    toy_release(w, T(o));
    return status;
}

static void take_result(toy_world *w, run *r, const cfx_allocator *a)
{
    cfx_buffer text;
    const toy *result = toy_find(w->globals, "result");
    if (cfx_script_tidy_graph(w->g, &r->err) == CFX_OK && result)
        toy_repr(result, r->result, sizeof r->result);
    cfx_buffer_init(&text, a);
    if (r->err.status == CFX_OK &&
        cfx_graph_text(w->g, cfx_buffer_sink(&text), &r->err) == CFX_OK)
        snprintf(r->ir, sizeof r->ir, "%s", text.data);
    cfx_buffer_free(&text);
}

static void evaluate(const char *source, const cfx_allocator *a, run *r)
{
    toy_world w = {0};
    cfx_script_location p;
    *r = (run){.err = {.status = CFX_OK}};
    cfx_error *err = &r->err;
    cfx_graph *g = cfx_graph_new(a, NULL, err);
    cfx_script *script = g ? cfx_script_parse(source, strlen(source), "/dir/m.py", true, a, err)
                           : NULL;
    if (script && toy_world_init(&w, g, a ? a : cfx_graph_allocator(g), err) == CFX_OK &&
        put_input(&w, err) == CFX_OK) {
        w.ev = cfx_evaluator_new(&w.world, g, NULL, err);
        if (w.ev && cfx_evaluator_run(w.ev, script, O(w.globals), err) == CFX_OK)
            take_result(&w, r, a);
        for (size_t i = 0; w.ev && cfx_evaluator_where(w.ev, i, &p); i++)
            snprintf(r->places + strlen(r->places), sizeof r->places - strlen(r->places),
                     "%s:%u:%u %s\n", p.file, (unsigned)p.line, (unsigned)p.column, p.function);
        cfx_evaluator_free(w.ev);
    }
    if (w.a)
        toy_world_end(&w);
    cfx_script_release(script);
    cfx_graph_release(g);
}

static void check(const char *source, const char *want)
{
    run r;
    evaluate(source, NULL, &r);
    if (!CHECK_STR_EQ(want, r.err.status == CFX_OK ? r.result : r.err.message))
        printf("    in: %s\n", source);
}

static void check_fails(const char *source, cfx_status status, const char *message)
{
    run r;
    evaluate(source, NULL, &r);
    CHECK_INT_EQ(status, r.err.status);
    if (!CHECK_STR_EQ(message, r.err.message))
        printf("    in: %s\n", source);
}

/* ---- expressions --------------------------------------------------------------------------- */

TEST(expressions)
{
    check("result = 1 + 2 * 3 - -4", "11");
    check("result = (1, 'a', [True, None], {1: 2}, {3})", "(1, 'a', [True, None], {1: 2}, {3})");
    check("result = [*(1, 2), 3, *[4]]", "[1, 2, 3, 4]");
    check("result = {**{'a': 1}, 'b': 2, **{'a': 3}}", "{'a': 3, 'b': 2}");
    check("result = (1 < 2 < 3, 1 < 2 > 3, 3 < 2 < nowhere)", "(True, False, False)");
    check("result = (0 or 5, 1 and 7, 0 and nowhere, 2 or nowhere, not 1)",
          "(5, 7, 0, 2, False)");
    check("result = ((1 if 0 else 2), (y := 5) + y)", "(2, 10)");
    check("result = [1, 2, 3][1:] + [[4, 5][-1]]", "[2, 3, 5]");
    check("result = f'a{1 + 1}b{\"c\"!r}{\"d\"}'", "'a2b'c'd'");
    check("result = (1 in [1], 2 not in (2,), None is None, 1 is not None)",
          "(True, False, True, True)");
    check("result = (lambda a, b=2, *c, d=4, **e: (a, b, c, d, e))(1, 3, 5, d=6, z=7)",
          "(1, 3, (5,), 6, {'z': 7})");
}

TEST(comprehensions)
{
    check("result = [i * j for i in range(3) for j in range(i) if j % 2 == 0]", "[0, 0]");
    check("result = {i: i * i for i in range(3)}", "{0: 0, 1: 1, 2: 4}");
    check("result = [[k for k in range(j)] for j in range(3)]", "[[], [0], [0, 1]]");
    check("i = 7\nresult = ([i for i in range(2)], i)", "([0, 1], 7)");
    check("def f(n):\n  s = [(t := k) for k in range(n)]\n  return s, t\nresult = f(3)",
          "([0, 1, 2], 2)");
    check("result = list(a + b for a, b in ((1, 2), (3, 4)))", "[3, 7]");
}

/* ---- statements ---------------------------------------------------------------------------- */

TEST(assignments)
{
    check("a, (b, *c), d = 1, (2, 3, 4), 5\nresult = (a, b, c, d)", "(1, 2, [3, 4], 5)");
    check("*a, b = [1, 2, 3]\nresult = (a, b)", "([1, 2], 3)");
    check("a = b = []\na += [1]\nb.append(2)\nresult = a", "[1, 2]");
    check("a = [1, 2, 3]\na[0] += 5\ndel a[1]\nresult = a", "[6, 3]");
    check("d = {}\nd['a'] = 1\nd['b'] = 2\ndel d['a']\nresult = d", "{'b': 2}");
    check("x: int = 4\ny: int\nresult = x", "4");
}

TEST(loops)
{
    check("r = []\nfor i in range(5):\n  if i == 1: continue\n  if i == 3: break\n  r.append(i)\n"
          "else:\n  r.append('no')\nresult = r", "[0, 2]");
    check("r = []\nfor i in range(2): r.append(i)\nelse: r.append('end')\nresult = r",
          "[0, 1, 'end']");
    check("n = 0\nwhile n < 5:\n  n += 2\nelse:\n  n = -n\nresult = n", "-6");
}

TEST(functions)
{
    check("def f(a, /, b, *, c=3): return a, b, c\nresult = f(1, b=2)", "(1, 2, 3)");
    check("def f(n): return 1 if n < 2 else n * f(n - 1)\nresult = f(6)", "720");
    check("def f():\n  n = 0\n  def g():\n    nonlocal n\n    n += 1\n    return n\n  g()\n"
          "  return g() + n\nresult = f()", "4");
    check("def d(k):\n  def w(f): return lambda a: f(a) + k\n  return w\n"
          "@d(1)\n@d(10)\ndef f(a): return a\nresult = f(5)", "16");
    check("def f(*a, **k): return a, k\nresult = f(*[1, 2], 3, **{'a': 4}, b=5)",
          "((1, 2, 3), {'a': 4, 'b': 5})");
    check("def f(a=[]):\n  a.append(1)\n  return a\nf()\nresult = f()", "[1, 1]");
    check("def f(): pass\nresult = f()", "None");
    check("def f():\n  import a.b, c as d\n  from e import seven\n  return seven\nresult = f()",
          "7");
    check("result = call(lambda: 5)", "5");
    check("def f(a, b): return locals()\nresult = f(1, 2)", "{'a': 1, 'b': 2}");
}

TEST(classes)
{
    check("class A:\n  k = 1\n  def __init__(self, v): self.v = v\n"
          "  def get(self): return self.v + self.k\n"
          "class B(A):\n  def get(self): return super().get() if 0 else 10 * self.v\n"
          "result = (A(2).get(), B(3).get())", "(3, 30)");
    check("class A:\n  def f(self): return 'A'\nclass B(A):\n  def f(self):\n"
          "    return super().f() + super(B, self).f()\nresult = B().f()", "'AA'");
    check("class A:\n  __p = 4\n  def f(self): return self.__p\nresult = (A().f(), A()._A__p)",
          "(4, 4)");
    check("class A:\n  x = 1\n  y = x + 1\n  def f(self): return self.y\nresult = A().f()", "2");
    check("class A: pass\na = A()\nsetattr(a, 'z', 3)\n"
          "result = (getattr(a, 'z'), getattr(a, 'q', 0), hasattr(a, 'q'), hasattr(a, 'z'))",
          "(3, 0, False, True)");
}

TEST(exceptions)
{
    check("try:\n  1 // 0\nexcept (TypeError, ZeroDivisionError) as e:\n  result = 'caught'\n",
          "'caught'");
    check("r = []\ndef f():\n  try:\n    return 1\n  finally:\n    r.append('end')\n"
          "result = (f(), r)", "(1, ['end'])");
    check("try:\n  raise ValueError('a')\nexcept TypeError:\n  result = 1\n"
          "except ValueError as e:\n  result = e.args\nelse:\n  result = 3", "'a'");
    check("r = []\ntry:\n  try:\n    raise ValueError\n  finally:\n    r.append(1)\n"
          "except Exception:\n  r.append(2)\nelse:\n  r.append(3)\nresult = r", "[1, 2]");
    check("def f():\n  try:\n    try:\n      [][1]\n    except IndexError:\n      raise\n"
          "  except Exception:\n    return 'again'\nresult = f()", "'again'");
    check("for i in range(3):\n  try:\n    continue\n  finally:\n    result = i", "2");
    check("class C:\n  def __enter__(self): return 1\n  def __exit__(self, t, e, b):\n"
          "    self.t = t\n    return True\nc = C()\nwith c as a:\n  1 // 0\n"
          "result = (a, c.t is ZeroDivisionError)", "(1, True)");
    check("try:\n  assert 0, 'why'\nexcept AssertionError as e:\n  result = e.args", "'why'");
}

TEST(patterns)
{
    static const char source[] =
        "class P:\n  __match_args__ = ('a', 'b')\n  def __init__(self, a, b):\n"
        "    self.a = a\n    self.b = b\n"
        "def f(v):\n  match v:\n    case 1 | 2: return 'small'\n    case None: return 'none'\n"
        "    case [a, *b]: return (a, b)\n    case {'k': v, **r}: return (v, r)\n"
        "    case P(1, b=q): return ('P', q)\n    case 7 as s if s > 8: return 'never'\n"
        "    case other: return ('other', other)\n"
        "result = [f(2), f(None), f((1, 2, 3)), f({'k': 1, 'j': 2}), f(P(1, 9)), f(7)]";
    check(source, "['small', 'none', (1, [2, 3]), (1, {'j': 2}), ('P', 9), ('other', 7)]");
    check("match (1, 2):\n  case (1, 3): result = 0\n  case (1, 2, *r): result = r", "[]");
}

/* ---- graph values -------------------------------------------------------------------------- */

static void check_graph(const char *source, const char *ir)
{
    run r;
    evaluate(source, NULL, &r);
    if (!CHECK_STR_EQ(ir, r.err.status == CFX_OK ? r.ir : r.err.message))
        printf("    in: %s\n", source);
}

TEST(graph_values)
{
    check_graph("y = x + 1\nresult = y.relu()",
                "graph():\n"
                "  %x = placeholder[target=x]()\n"
                "  %y = call_function[target=operator.add](%x, 1)\n"
                "  %relu = call_method[target=relu](%y)\n");
    check_graph("a, b = x\nresult = a",
                "graph():\n"
                "  %x = placeholder[target=x]()\n"
                "  %check_length = call_function[target=cfx.check_length](%x, 2)"
                "  @ /dir/m.py:1\n"
                "  %a = call_function[target=operator.getitem](%x, 0)\n"
                "  %b = call_function[target=operator.getitem](%x, 1)\n");
    check_graph("y = x + 1\ny += 2\nresult = not (y is y)",
                "graph():\n"
                "  %x = placeholder[target=x]()\n"
                "  %y = call_function[target=operator.add](%x, 1)\n"
                "  %add = call_function[target=operator.add](%y, 2)\n");
}

/* ---- failing ------------------------------------------------------------------------------- */

TEST(messages)
{
    check_fails("def f(a):\n  return a + nowhere\n\ndef g():\n  return f(1)\n\ng()", CFX_E_KEY,
                "m.py:2: name 'nowhere' is not defined\n    return a + nowhere\n               ^\n"
                "called from m.py:5 in g\ncalled from m.py:7 in <module>");
    check_fails("def f():\n  yield 1\nf()", CFX_E_UNSUPPORTED,
                "m.py:2: 'f' is a generator (yield), which cannot be captured; collect the values "
                "in a list and return it\n    yield 1\n    ^\ncalled from m.py:3 in <module>");
    check_fails("async def f(): pass\nf()", CFX_E_UNSUPPORTED,
                "m.py:1: an asynchronous function cannot be captured; write a plain one\n"
                "  async def f(): pass\n  ^\ncalled from m.py:2 in <module>");
}

TEST(bad_calls)
{
    check_fails("(lambda a: a)()", CFX_E_HOST,
                "TypeError: '<lambda>() missing 1 required positional argument: 'a''");
    check_fails("def f(a, b, c, *, d): pass\nf(1)", CFX_E_HOST,
                "TypeError: 'f() missing 2 required positional arguments: 'b' and 'c''");
    check_fails("def f(*, d, e): pass\nf()", CFX_E_HOST,
                "TypeError: 'f() missing 2 required keyword-only arguments: 'd' and 'e''");
    check_fails("def f(a): pass\nf(1, 2)", CFX_E_HOST,
                "TypeError: 'f() takes 1 positional argument but 2 were given'");
    check_fails("def f(a, b=1): pass\nf(1, 2, 3)", CFX_E_HOST,
                "TypeError: 'f() takes from 1 to 2 positional arguments but 3 were given'");
    check_fails("def f(a): pass\nf(1, a=2)", CFX_E_HOST,
                "TypeError: 'f() got multiple values for argument 'a''");
    check_fails("def f(a, /): pass\nf(a=2)", CFX_E_HOST,
                "TypeError: 'f() got some positional-only arguments passed as keyword arguments: "
                "'a''");
    check_fails("def f(): pass\nf(z=2)", CFX_E_HOST,
                "TypeError: 'f() got an unexpected keyword argument 'z''");
    check_fails("a, b = [1]", CFX_E_HOST,
                "ValueError: 'not enough values to unpack (expected 2, got 1)'");
}

TEST(where)
{
    run r;
    evaluate("def f(a):\n  return a // 0\n\ndef g():\n  return [f(i) for i in [1]]\n\ng()", NULL,
             &r);
    CHECK_INT_EQ(CFX_E_HOST, r.err.status);
    CHECK_STR_EQ("/dir/m.py:2:9 f\n/dir/m.py:5:10 g\n/dir/m.py:7:0 <module>\n", r.places);
}

/* A failure that the world dealt with itself leaves no trace for the next. */
TEST(where_after_a_call_back)
{
    run r;
    evaluate("def f(): return 1 // 0\ntry:\n  call(f)\nexcept ZeroDivisionError: pass\n"
             "def g(): return nowhere\n\n\ng()", NULL, &r);
    CHECK_STR_EQ("/dir/m.py:5:16 g\n/dir/m.py:8:0 <module>\n", r.places);
}

TEST(limits)
{
    char source[40000] = "f = 1\n";
    run r;
    check_fails("def f(): return f()\nf()", CFX_E_LIMIT,
                "m.py:1: calls are nested more than 200 deep here; end the recursion earlier, or "
                "write it as a loop\n  def f(): return f()\n                  ^\n"
                "called from m.py:1 in f (198 times)\ncalled from m.py:2 in <module>");
    strcpy(source, "result = 1");
    for (int i = 0; i < 2500; i++)
        strcat(source, " + 1");
    check(source, "2501");
    strcpy(source, "def f(n): return 0 if n == 0 else ");
    for (int i = 0; i < 100; i++)
        strcat(source, "-(");
    strcat(source, "f(n - 1)");
    for (int i = 0; i < 100; i++)
        strcat(source, ")");
    strcat(source, "\nresult = f(150)");
    evaluate(source, NULL, &r);
    CHECK_INT_EQ(CFX_E_LIMIT, r.err.status);
    CHECK(strstr(r.err.message, "nested too deeply") != NULL);
}

/* ---- memory -------------------------------------------------------------------------------- */

static const char every_kind[] =
    "class A:\n  def __init__(self, v, *w, k=1, **m): self.v = [v, *w]\n"
    "  def get(self): return self.v[0] + len(self.v)\n"
    "def f(a, b=2):\n  r = [i + a for i in range(3) if i != 1]\n  d = {**{'a': 1}, 'b': r}\n"
    "  try:\n    a // 0\n  except ZeroDivisionError as e:\n    r += [b]\n  finally:\n"
    "    d['c'] = f'{a}-{b}'\n  match r:\n    case [1, *rest] if rest: r[0] = 9\n"
    "  return lambda q=1: (r, d, q)\n"
    "y = (x + 1).relu()\na = A(1, 2, z=3)\nresult = (f(1)(), a.get(), y)\n";

static cfx_status evaluate_all(const cfx_allocator *a, void *source)
{
    run r;
    evaluate(source, a, &r);
    if (r.err.status != CFX_OK && r.err.status != CFX_E_NOMEM)
        printf("%s\n", r.err.message);
    return r.err.status;
}

static const char data_decides[] =
    "def f(v):\n  if v > 0 and v < 9: return v + 1\n  a, *b = v\n  n = 0\n  match a:\n"
    "    case 1 | 2: n = 1\n    case k if k > 3: n = 2\n  l = [a, *b]\n"
    "  for i in range(2):\n    with M() as m:\n      if a > i: break\n      n = n + m\n"
    "  try: return (l, n)\n  finally: n = 5\n"
    "class M:\n  def __enter__(self): return 3\n  def __exit__(self, t, e, b): pass\n"
    "result = f(x)\n";

TEST(out_of_memory_where_data_decides)
{
    run r;
    evaluate("def f(v): return (1 if v else 2) + v, (v and 3) + v\nresult = f(x)", NULL, &r);
    CHECK(strstr(r.ir, "%cond_1 = ") != NULL);
    CHECK_STR_EQ("(%add, %add_1)", r.err.status == CFX_OK ? r.result : r.err.message);
    CHECK(test_oom_sweep(evaluate_all, (void *)data_decides) > 100);
}

TEST(out_of_memory)
{
    check(every_kind, "(([9, 3, 2], {'a': 1, 'b': [9, 3, 2], 'c': '1-2'}, 1), 3, %y)");
    CHECK(test_oom_sweep(evaluate_all, (void *)every_kind) > 100);
}

TEST(policy_by_name)
{
    CHECK(cfx_script_rule_of("builtins.len") == CFX_RULE_VALUE);
    CHECK(cfx_script_rule_of("math.sqrt") == CFX_RULE_DEEP);
    CHECK(cfx_script_rule_of("operator.eq") == CFX_RULE_DEEP);
    CHECK(cfx_script_rule_of("operator.add") == CFX_RULE_ITEM);
    CHECK(cfx_script_rule_of("torch.manual_seed") == CFX_RULE_ALWAYS);
    CHECK(cfx_script_rule_of("torch.relu") == CFX_RULE_NEVER);
    CHECK(cfx_script_rule_of("mathematics.sqrt") == CFX_RULE_NEVER);
    CHECK(cfx_script_rule_of("math.sqrt.deeper") == CFX_RULE_NEVER);
    CHECK(cfx_script_rule_of("builtins.eval") == CFX_RULE_NEVER);
    CHECK(cfx_script_rule_of("") == CFX_RULE_NEVER);
    CHECK(cfx_script_is_fact("shape") && !cfx_script_is_fact("sum"));
}

/* The rows are found by bisection. */
TEST(policy_is_sorted)
{
    static const char *const names[] = {
#define CFX_CALL(name, recorded, changes) name,
#include <cfx/embed/policy.def>
    };
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        CHECK(strcmp(names[i - 1], names[i]) < 0);
}
