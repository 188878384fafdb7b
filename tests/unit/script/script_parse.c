/* script_parse.c - tests of the parser for Python source: src/script/syntax/{parse*,ast_dump}.c. */
#include "script/syntax/parse.h"
#include "test_alloc.h"

#include <cfx/embed/syntax.h>

static cfxi_script *parse(const char *source)
{
    cfx_error err = {.status = CFX_OK};
    cfxi_script *script = cfxi_syntax_script_parse(source, strlen(source), true, NULL, &err);
    if (!CHECK(script != NULL))
        printf("%s\n", err.message);
    return script;
}

/* ---- walking ------------------------------------------------------------------------------- */

TEST(typed_nodes)
{
    cfxi_script *script = parse("y = x + 2\nreturn x");
    REQUIRE(script != NULL);
    REQUIRE(script->module->body.count == 2);
    const cfxi_Assign *assign = cfxi_syntax_as_Assign(script->module->body.items[0]);
    const cfxi_BinOp *sum = cfxi_syntax_as_BinOp(assign->value);
    CHECK_INT_EQ(CFXI_AST_Add, sum->op);
    CHECK_INT_EQ(4, sum->ast.column);
    CHECK_INT_EQ(9, sum->ast.end_column);
    CHECK_INT_EQ(CFXI_AST_Store, cfxi_syntax_as_Name(assign->targets.items[0])->ctx);
    const cfxi_Return *back = cfxi_syntax_as_Return(script->module->body.items[1]);
    CHECK_INT_EQ(2, back->ast.line);
    CHECK(cfxi_syntax_as_Name(back->value)->id ==
          cfxi_syntax_as_Name(sum->left)->id); /* one text */
    CHECK_STR_EQ("x", cfxi_syntax_as_Name(back->value)->id);
    CHECK_INT_EQ(8, script->node_count);
    cfxi_syntax_script_free(script);
}

static cfxi_constant constant(const char *source, cfxi_script **script)
{
    *script = parse(source);
    if (!*script)
        return (cfxi_constant){.size = 0};
    return cfxi_syntax_as_Constant(cfxi_syntax_as_Expr((*script)->module->body.items[0])->value)
        ->value;
}

static void check_text(const char *source, cfxi_constant_kind kind, const char *want, size_t size)
{
    cfxi_script *script;
    const cfxi_constant value = constant(source, &script);
    CHECK_INT_EQ(kind, value.kind);
    CHECK_INT_EQ(size, value.size);
    CHECK(value.size == size && memcmp(want, value.text, size) == 0);
    cfxi_syntax_script_free(script);
}

TEST(texts)
{
    check_text("'plain'", CFXI_CONST_STR, "plain", 5);
    check_text("'a\\n\\0\\x41\\u00e9'", CFXI_CONST_STR, "a\n\0A\xc3\xa9", 6);
    check_text("r'\\n' \"b\" '''c\nd'''", CFXI_CONST_STR, "\\nbc\nd", 6);
    check_text("'\\ud800'", CFXI_CONST_STR, "\xed\xa0\x80", 3);
    check_text("b'\\xff\\101\\q'", CFXI_CONST_BYTES, "\xff" "A\\q", 4);
    check_text("''", CFXI_CONST_STR, "", 0);
}

TEST(numbers)
{
    static const struct {
        const char *source;
        bool fits;
        int64_t value;
        const char *digits;
    } ints[] = {
        {"0", true, 0, "0"},
        {"1_000", true, 1000, "1000"},
        {"0xF_f", true, 255, "0xFf"},
        {"0b101", true, 5, "0b101"},
        {"9223372036854775807", true, INT64_MAX, "9223372036854775807"},
        {"9223372036854775808", false, 0, "9223372036854775808"},
    };
    cfxi_script *script;
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        const cfxi_constant value = constant(ints[i].source, &script);
        CHECK_INT_EQ(CFXI_CONST_INT, value.kind);
        CHECK_INT_EQ(ints[i].fits, value.fits);
        CHECK(!ints[i].fits || value.i == ints[i].value);
        CHECK(strlen(ints[i].digits) == value.size &&
              memcmp(ints[i].digits, value.text, value.size) == 0);
        cfxi_syntax_script_free(script);
    }
    cfxi_constant value = constant("1_0.5e-1", &script);
    CHECK(value.kind == CFXI_CONST_FLOAT && value.f == 1.05);
    cfxi_syntax_script_free(script);
    value = constant(".5j", &script);
    CHECK(value.kind == CFXI_CONST_COMPLEX && value.f == 0.5);
    cfxi_syntax_script_free(script);
}

TEST(descriptions)
{
    for (int kind = 0; kind < CFXI_AST_COUNT; kind++) {
        size_t n;
        const cfxi_ast_field *fields = cfxi_syntax_ast_fields((cfxi_ast_kind)kind, &n);
        size_t end = sizeof(cfxi_ast);
        CHECK(cfxi_syntax_ast_name((cfxi_ast_kind)kind)[0] != '\0');
        for (size_t i = 0; i < n; i++) {
            CHECK(fields[i].offset >= end && fields[i].name[0] != '\0');
            end = fields[i].offset + 1;
        }
    }
    CHECK_STR_EQ("AsyncFunctionDef", cfxi_syntax_ast_name(CFXI_AST_AsyncFunctionDef));
    CHECK(cfxi_syntax_ast_located(CFXI_AST_Name) && !cfxi_syntax_ast_located(CFXI_AST_Add));
}

/* ---- dumps --------------------------------------------------------------------------------- */

static void check_dump(const char *source, int python, bool attributes, const char *want)
{
    const cfxi_dump_style style = {python, attributes, true};
    cfxi_script *script = parse(source);
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    if (script) {
        CHECK_INT_EQ(CFX_OK, cfxi_syntax_ast_dump(&script->module->ast, &style,
                                                  cfx_buffer_sink(&text), NULL));
        CHECK_STR_EQ(want, text.data);
    }
    cfx_buffer_free(&text);
    cfxi_syntax_script_free(script);
}

TEST(dumps)
{
    check_dump("x", 13, true, "Module(body=[Expr(value=Name(id='x', ctx=Load(), lineno=1, "
               "col_offset=0, end_lineno=1, end_col_offset=1), lineno=1, col_offset=0, "
               "end_lineno=1, end_col_offset=1)])");
    check_dump("def f(): pass", 11, false, "Module(body=[FunctionDef(name='f', args=arguments("
               "posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]), "
               "body=[Pass()], "
               "decorator_list=[])], type_ignores=[])");
    check_dump("def f(): pass", 12, false, "Module(body=[FunctionDef(name='f', args=arguments("
               "posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]), "
               "body=[Pass()], "
               "decorator_list=[], type_params=[])], type_ignores=[])");
    check_dump("{**a}, 1j, 0x10000000000000000", 13, false, "Module(body=[Expr(value=Tuple(elts=["
               "Dict(keys=[None], values=[Name(id='a', ctx=Load())]), Constant(value=1j), "
               "Constant(value=18446744073709551616)], ctx=Load()))])");
    check_dump("f'a{b!r:>{c}}'", 13, false, "Module(body=[Expr(value=JoinedStr(values=[Constant("
               "value='a'), FormattedValue(value=Name(id='b', ctx=Load()), conversion=114, "
               "format_spec=JoinedStr(values=[Constant(value='>'), "
               "FormattedValue(value=Name(id='c', "
               "ctx=Load()), conversion=-1)]))]))])");
    check_dump("match a:\n case [1, *_] | b(c=None): pass", 13, false, "Module(body=[Match(subject="
               "Name(id='a', ctx=Load()), "
               "cases=[match_case(pattern=MatchOr(patterns=[MatchSequence("
               "patterns=[MatchValue(value=Constant(value=1)), MatchStar()]), MatchClass(cls=Name("
               "id='b', ctx=Load()), kwd_attrs=['c'], "
               "kwd_patterns=[MatchSingleton(value=None)])]), "
               "body=[Pass()])])])");
}

/* ---- failures ------------------------------------------------------------------------------ */

static void check_fails(const char *source, cfx_status status, unsigned line, unsigned column,
                        const char *what)
{
    cfx_error err = {.status = CFX_OK};
    CHECK(cfxi_syntax_script_parse(source, strlen(source), true, NULL, &err) == NULL);
    CHECK(cfxi_syntax_script_parse(source, strlen(source), true, NULL, NULL) == NULL);
    CHECK_INT_EQ(status, err.status);
    CHECK_INT_EQ(line, err.line);
    CHECK_INT_EQ(column, err.column);
    if (!CHECK(strstr(err.message, what) != NULL))
        printf("    got %s\n", err.message);
}

TEST(failures)
{
    check_fails("if x\n  y", CFX_E_SYNTAX, 1, 5, "expected ':', found the end of the line\n  if x\n"
                "      ^");
    check_fails("f() = 1", CFX_E_SYNTAX, 1, 1, "maybe you meant '==' instead of '='?");
    check_fails("x = (1,\ny = 2", CFX_E_SYNTAX, 1, 5, "'(' was never closed");
    check_fails("def f():", CFX_E_SYNTAX, 1, 9, "expected an indented block");
    check_fails("x = '\\N{DIGIT ONE}'", CFX_E_UNSUPPORTED, 1, 6, "are not supported; write");
    check_fails("x = '\\x4'", CFX_E_SYNTAX, 1, 6, "two hexadecimal digits");
    check_fails("a\n b", CFX_E_SYNTAX, 2, 2, "unexpected indent");
}

/* `n` times `before`, then `after`. */
static cfx_status parse_deep(size_t n, const char *before, const char *after)
{
    cfx_buffer text;
    cfx_error err = {.status = CFX_OK};
    cfx_buffer_init(&text, NULL);
    for (size_t i = 0; i < n; i++)
        cfx_buffer_append(&text, before, strlen(before));
    cfx_buffer_append(&text, after, strlen(after));
    cfxi_syntax_script_free(cfxi_syntax_script_parse(text.data, text.size, true, NULL, &err));
    cfx_buffer_free(&text);
    return err.status;
}

TEST(depth)
{
    CHECK_INT_EQ(CFX_E_SYNTAX, parse_deep(10000, "(", "1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_deep(100000, "1+", "1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_deep(100000, "-", "1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_deep(100000, "not ", "1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_deep(10000, "lambda: ", "1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_deep(10000, "f'{", "1"));
    CHECK_INT_EQ(CFX_OK, parse_deep(2000, "1+", "1"));
    CHECK_INT_EQ(CFX_OK, parse_deep(100000, "1,", "1"));
    CHECK_INT_EQ(CFX_OK, parse_deep(100000, "a<", "1"));
}

/* ---- memory -------------------------------------------------------------------------------- */

static const char everything[] =
    "# comment\n"
    "import a.b.c as d\n"
    "@dec\n"
    "class A(B, k=1):\n"
    "    def f[T](self, a, /, b: int = 2, *c, d=3, **e) -> None:\n"
    "        global g\n"
    "        x = y = [i for i in j if k] + {1: 2, **z} | {3}\n"
    "        return a < b < c and not d or f'{x!r:>{y}}' 'z\\n' if e else lambda: 1_0\n"
    "match x:\n"
    "    case [1, *_] | {'a': b, **c} | D(e, f=g): pass\n"
    "try: raise a\n"
    "except B as c: pass\n"
    "if a: pass\n"
    "elif b: pass\n";

static cfx_status parse_and_free(const cfx_allocator *a, void *arg)
{
    (void)arg;
    cfx_error err = {.status = CFX_OK};
    cfxi_syntax_script_free(
        cfxi_syntax_script_parse(everything, sizeof everything - 1, false, a, &err));
    return err.status;
}

TEST(memory) { CHECK(test_oom_sweep(parse_and_free, NULL) > 8); }

TEST(public_door)
{
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_OK, cfx_syntax_dump("a = 1", 5, NULL, NULL, &err));
    CHECK_INT_EQ(CFX_E_SYNTAX, cfx_syntax_dump("a = ", 4, NULL, NULL, &err));
    CHECK_INT_EQ(1, err.line);
    CHECK_INT_EQ(CFX_E_SYNTAX, cfx_syntax_dump("a = ", 4, NULL, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_syntax_dump(NULL, 0, NULL, NULL, &err));
}
