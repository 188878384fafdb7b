/* function_scopes.c - tests of the functions of a source and their names:
 * src/script/evaluate/function_scopes.c. */
#include "script/evaluate/evaluate_impl.h"
#include "test_alloc.h"

static cfx_script *parse(const char *source)
{
    cfx_error err = {.status = CFX_OK};
    cfx_script *script = cfx_script_parse(source, strlen(source), "m.py", true, NULL, &err);
    if (!CHECK(script != NULL))
        printf("%s\n", err.message);
    return script;
}

/* The names of the i-th def after the module, with '*' behind those that are read. */
static void check_names(const char *source, size_t i, const char *want)
{
    cfx_script *script = parse(source);
    char got[300] = "";
    if (!script || !CHECK(i + 1 < script->n_defs)) {
        cfx_script_release(script);
        return;
    }
    const cfx_script_def *def = script->defs[i + 1];
    for (uint32_t k = 0; k < def->n_locals; k++) {
        CHECK_INT_EQ(k, cfxi_eval_def_slot(def, def->locals[k]));
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s%s", k ? " " : "",
                 def->locals[k], def->last_read[k] ? "*" : "");
    }
    if (!CHECK_STR_EQ(want, got))
        printf("    in: %s\n", source);
    cfx_script_release(script);
}

TEST(names_of_functions)
{
    check_names("def f(a, /, b, *c, d=1, **e):\n  g = a\n  return g + h", 0, "a* b d c e g*");
    check_names("def f(x):\n  def g(): return x + y\n  y = 1\n  return g", 0, "x* g* y*");
    check_names("def f():\n  x = 1\n  def g():\n    nonlocal x\n    x = 2\n    z = 1", 1, "z");
    check_names("def f():\n  global x\n  x = 1\n  y = 2", 0, "y");
    check_names("def f(a):\n  for i, (j, *k) in a: pass\n  with a as w, a: pass", 0, "a* i j k w");
    check_names("def f():\n  import a.b, c.d as e\n  from q import r, s as t", 0, "a e r t");
    check_names("def f(a):\n  try: pass\n  except E as e: pass\n  x: int\n  del y", 0, "a e x y*");
    check_names("def f(a):\n  match a:\n    case [x, *y]: pass\n    case {'k': z, **r}: pass\n"
                "    case C(q) as w: pass", 0, "a* x y r z w q");
    check_names("def f(a):\n  x += 1\n  y[0] += a\n  if (z := a): pass", 0, "a* x* z");
    check_names("def f(self):\n  x = 1\n  return super().f()", 0, "self* x");
    check_names("def f(a):\n  b = 1\n  return locals()", 0, "a* b*");
    check_names("def f(a: b, c: (d := 1)) -> e:\n  x: y = 2", 0, "a c x");
    check_names("lambda a, b=c: a + d", 0, "a* b");
}

TEST(names_of_classes_and_comprehensions)
{
    check_names("class C:\n  x = 1\n  y = x\n  def f(self): return x", 0, "x* y f");
    check_names("class C:\n  x = 1\n  def f(self): return x", 0, "x f");
    check_names("def f(a):\n  return [i + a for i in a for j in i if (w := j)]", 0, "a* w");
    check_names("def f(a):\n  return [i + a for i in a for j in i if (w := j)]", 1, "i* j*");
    check_names("def f(i):\n  return [i for i in i]", 0, "i*");
    check_names("def f(i):\n  return {i: 1 for i in [] for k in i}", 1, "i* k");
}

TEST(last_reads)
{
    cfx_script *script = parse("def f(a, b):\n  x = a\n  g = lambda: x\n  return a\n");
    REQUIRE(script != NULL);
    const cfx_script_def *f = cfx_script_find(script, 1, -1, "f");
    REQUIRE(f != NULL);
    CHECK(f->last_read[0] == ((uint64_t)4 << 32 | 9));
    CHECK(f->last_read[1] == 0);
    CHECK(f->last_read[2] == ((uint64_t)3 << 32 | 14));
    cfx_script_release(script);
}

TEST(finding)
{
    cfx_script *script = parse("@d\n@e(lambda: 1)\ndef f(x): return x\n"
                               "g = [lambda: 1, lambda y: y]\nasync def h(): pass\n"
                               "class C:\n  def f(self): yield 1\n");
    REQUIRE(script != NULL);
    cfx_script_release(cfx_script_retain(script));
    const cfx_script_def *f = cfx_script_find(script, 1, -1, "f");
    REQUIRE(f != NULL);
    CHECK_INT_EQ(1, cfxi_eval_def_line(f));
    CHECK_STR_EQ("f", cfxi_eval_def_name(f));
    CHECK_STR_EQ("x", cfxi_eval_def_parameter(f, 0));
    CHECK(cfxi_eval_def_parameter(f, 1) == NULL);
    CHECK(f == cfxi_eval_def_of(script, f->ast));
    CHECK(cfxi_eval_def_of(script, script->tree->module->body.items[1]) == NULL);
    CHECK(cfx_script_find(script, 3, -1, "f") == NULL);
    CHECK(cfx_script_find(script, 4, -1, "<lambda>") == NULL); /* there are two */
    const cfx_script_def *y = cfx_script_find(script, 4, 26, "<lambda>");
    REQUIRE(y != NULL);
    CHECK_STR_EQ("y", cfxi_eval_def_parameter(y, 0));
    CHECK(cfx_script_find(script, 4, 27, "<lambda>") == NULL);
    CHECK(cfx_script_find(script, 5, -1, "h")->yields != NULL);
    CHECK(cfx_script_find(script, 7, -1, "f")->yields != NULL);
    CHECK(cfx_script_find(script, 6, -1, "C") == NULL);
    CHECK(cfx_script_find(script, 99, -1, "f") == NULL);
    CHECK_STR_EQ("m.py", cfxi_eval_script_file(script));
    CHECK(cfxi_eval_script_name(script, "C") == script->defs[script->n_defs - 2]->name);
    CHECK(cfxi_eval_script_name(script, "nowhere") == NULL);
    cfx_script_release(script);
}

static void check_fails(const char *source, cfx_status status, uint32_t line, const char *message)
{
    cfx_error err = {.status = CFX_OK};
    CHECK(cfx_script_parse(source, strlen(source), "m.py", true, NULL, &err) == NULL);
    CHECK_INT_EQ(status, err.status);
    CHECK_INT_EQ(line, err.line);
    CHECK_STR_EQ(message, err.message);
}

TEST(failures)
{
    check_fails("x = 1\ny = (", CFX_E_SYNTAX, 2,
                "m.py: line 2, column 5: '(' was never closed\n  y = (\n      ^");
    check_fails("def f(a, a): pass", CFX_E_SYNTAX, 1,
                "m.py: line 1, column 10: duplicate parameter 'a'; rename one\n"
                "  def f(a, a): pass\n           ^");
    check_fails("def f():\n  x = 1\n  global x", CFX_E_SYNTAX, 3,
                "m.py: line 3, column 3: 'x' is a parameter or is assigned before this "
                "declaration; move the declaration up, or rename one\n    global x\n    ^");
    check_fails("for i in x: pass\nelse: break", CFX_E_SYNTAX, 2,
                "m.py: line 2, column 7: 'break' outside loop\n"
                "  else: break\n        ^");
    check_fails("while 1:\n  def f(): continue", CFX_E_SYNTAX, 2,
                "m.py: line 2, column 12: 'continue' outside loop\n"
                "    def f(): continue\n             ^");
    check_fails("class C:\n  return 1", CFX_E_SYNTAX, 2,
                "m.py: line 2, column 3: 'return' outside function\n"
                "    return 1\n    ^");
    check_fails("x = yield 1", CFX_E_SYNTAX, 1,
                "m.py: line 1, column 5: 'yield' outside function\n"
                "  x = yield 1\n      ^");
    check_fails("def f():\n  def g():\n    nonlocal q", CFX_E_SYNTAX, 2,
                "m.py: line 2, column 3: no binding for nonlocal 'q' found in the enclosing "
                "functions\n    def g():\n    ^");
    check_fails("[(x := 1) for x in y]", CFX_E_SYNTAX, 1,
                "m.py: line 1, column 3: ':=' cannot bind 'x', which is the variable of a "
                "comprehension; use another name\n  [(x := 1) for x in y]\n    ^");
}

static cfx_status parse_and_drop(const cfx_allocator *a, void *source)
{
    cfx_error err = {.status = CFX_OK};
    cfx_script_release(cfx_script_parse(source, strlen(source), "m.py", true, a, &err));
    return err.status;
}

TEST(out_of_memory)
{
    char source[4000] = "import a.b\ndef f(a, b):\n  global g\n  return [lambda: x for x in a]\n";
    for (int i = 0; i < 60; i++)
        snprintf(source + strlen(source), sizeof source - strlen(source),
                 "class c%d:\n  v%d = [i for i in w]\n", i, i);
    CHECK(test_oom_sweep(parse_and_drop, source) > 5);
}
