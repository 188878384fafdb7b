/* text_parse.c - tests of src/ir/text_parse.c, parse_value.c and lex.c: what is read, and every
 * complaint. */
#include "text_tools.h"

static cfx_error err;

static cfx_graph *parse(const char *text, size_t size)
{
    err = (cfx_error){.status = CFX_OK};
    return cfx_graph_parse(text, size, NULL, NULL, &err);
}

/* A text with some of everything. */
static const char rich[] =
    "# a comment\n"
    "graph():\n"
    "  %x: &torch.Tensor = placeholder[target=x]()  # another\n"
    "  %y: [&\"typing.List[int]\", None] = placeholder[target=*y](-1.5e-07)\n"
    "\n"
    "  %w = get_attr[target=\"odd \\u20ac\\n target\"]()\n"
    "  %late = call_method[target=add](%\"not yet\", [%late, (%x,), {1: 2, \"k\": set(1)}])\n"
    "  %\"not yet\" = call_function[target=torch.add](%x, 1, alpha=nan(0x7ff8000000000001), "
    "\"a b\"=...)  @ model.py:12\n"
    "  %c = call_function[target=cfx.cond](%x, graph {\n"
    "      %a = placeholder[target=a]()\n"
    "      output(%a)  @ in \"\"(Model)\n"
    "    }, graph { %b = placeholder[target=b]() output(%b) }, (%x, %y))\n"
    "  %d = call_module[target=layers.0](b\"\\x00\\xff\", device(\"cuda:1\"), torch.float32, "
    "torch.strided, torch.channels_last, complex(nan, -inf), slice(None, %x, 1), range(0, 3, 1), "
    "frozenset(), namedtuple(&m.P, a=1, \"b\"=[]), 123456789012345678901234567890, True, \"\\\"\")"
    "  @ \"my file.py\":3 in a(b) > \"c d\"(e)\n"
    "  %result = output((%c, %d))\n";

TEST(a_rich_text)
{
    cfx_graph *g = parse(rich, sizeof rich - 1);
    if (!CHECK(g != NULL)) {
        printf("%s\n", err.message);
        return;
    }
    CHECK_INT_EQ(8, cfx_graph_size(g));
    const cfx_node *late = cfx_graph_find(g, "late");
    const cfx_node *not_yet = cfx_graph_find(g, "not yet");
    REQUIRE(late && not_yet);
    CHECK(cfx_node_before(late, not_yet));
    CHECK(cfx_node_arg(late, 0).as.node == not_yet);
    CHECK_INT_EQ(12, cfx_node_line(not_yet));
    CHECK_STR_EQ("model.py", cfx_node_file(not_yet));
    const cfx_node *d = cfx_graph_find(g, "d");
    CHECK_STR_EQ("c d", cfx_graph_stack_path(g, cfx_node_module_stack(d)));
    CHECK_INT_EQ(13, cfx_node_num_args(d));
    const char *text = text_of(g);
    cfx_graph *again = parse(text, strlen(text));
    CHECK(again && cfx_graph_equal(g, again, false));
    cfx_graph_release(again);
    cfx_graph_release(g);
}

TEST(automatic_names_avoid_those_of_the_text)
{
    static const char text[] = "graph():\n %add = placeholder[target=x]()\n"
                               " %add_1 = placeholder[target=y]()\n";
    cfx_graph *g = parse(text, sizeof text - 1);
    REQUIRE(g != NULL);
    for (int i = 0; i < 3; i++) {
        const cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_METHOD, "add", NULL, 0, NULL, 0, NULL);
        const char *const want[] = {"add_2", "add_3", "add_4"};
        CHECK_STR_EQ(want[i], cfx_node_name(n, NULL));
    }
    cfx_graph_release(g);
}

TEST(users_are_counted)
{
    static const char text[] = "graph():\n %b = call_method[target=m](%a, %a, [%a])\n"
                               " %a = placeholder[target=a]()\n output(%a)\n";
    cfx_graph *g = parse(text, sizeof text - 1);
    REQUIRE(g != NULL);
    const cfx_node *a = cfx_graph_find(g, "a");
    CHECK_INT_EQ(2, cfx_node_num_users(a));
    CHECK_INT_EQ(3, cfx_use_count(cfx_node_first_use(a)));
    cfx_graph_release(g);
}

TEST(the_same_in_other_words)
{
    static const char *const texts[] = {
        "graph():\n  %x = call_method[target=m](1, k=2)\n",
        "graph ( ) :%x=call_method[target=m](1,k=2)",
        "graph():\r\n\t%x = call_method [ target = m ] ( 1 , k = 2 , )\r\n",
        "\xef\xbb\xbfgraph():\n  %x = call_method[target=m](1, k=2)\n",
        "#\ngraph():#\n%x#\n=#\ncall_method#\n[target=\"m\"]#\n(01,\"k\"=2)#",
    };
    cfx_graph *first = parse(texts[0], strlen(texts[0]));
    REQUIRE(first != NULL);
    for (size_t i = 1; i < sizeof texts / sizeof *texts; i++) {
        cfx_graph *g = parse(texts[i], strlen(texts[i]));
        CHECK(g && cfx_graph_equal(first, g, false));
        cfx_graph_release(g);
    }
    cfx_graph_release(first);
}

/* ---- complaints ---------------------------------------------------------------------------- */

#define H "graph():\n"
#define CALL(args_) H "  %n = call_method[target=m](" args_

static const struct {
    const char *text;
    unsigned line, column;
    const char *says;
} complaints[] = {
    {"", 1, 1, "'graph():'"},
    {"module():", 1, 1, "found 'module'"},
    {"\xef\xbb\xbf", 1, 1, "the end of the text"},
    {"\xef\xbb\xbfgraph:", 1, 6, "expected '('"},
    {"\xef\xbb\xbf\xef\xbb\xbfgraph():", 1, 1, "'graph():'"},
    {"graph:", 1, 6, "expected '('"},
    {"graph()", 1, 8, "expected ':'"},
    {H "}", 2, 1, "expected a node"},
    {H "foo(1)", 2, 1, "expected a node"},
    {H "placeholder[target=x]()", 2, 1, "expected a node"},
    {H "%", 2, 2, "the name of a node"},
    {H "%x", 2, 3, "expected '='"},
    {H "%x =", 2, 5, "an opcode"},
    {H "%x = call[target=m]()", 2, 6, "'call' is not an opcode"},
    {H "%x = call_method()", 2, 17, "expected '['"},
    {H "%x = call_method[name=m]()", 2, 22, "target="},
    {H "%x = call_method[target]()", 2, 24, "expected '='"},
    {H "%x = call_method[target=]()", 2, 25, "a target"},
    {H "%x = call_method[target=*]()", 2, 26, "a name after '*'"},
    {H "%x = call_method[target=a b]()", 2, 27, "expected ']'"},
    {H "%x = call_method[target=m]", 2, 27, "expected '('"},
    {H "%x: = call_method[target=m]()", 2, 5, "a value"},
    {H "%x: 1 call_method[target=m]()", 2, 7, "expected '='"},
    {H "%x: %x = call_method[target=m]()", 2, 10, "cannot hold a node"},
    {H "output(1)\noutput(2)", 3, 1, "already defined"},
    {H "%a = output(1)\n%a = output(2)", 3, 1, "%a is already defined"},
    {CALL("%b)"), 2, 30, "no node %b"},
    {CALL("graph { output(%n) })"), 2, 45, "no node %n"},
    {CALL(""), 2, 30, "before the bracket opened in line 2 is closed"},
    {CALL("1"), 2, 31, "the text ends"},
    {CALL("1 2)"), 2, 32, "expected ',' or ')'"},
    {CALL("1;2)"), 2, 31, "expected ',' or ')'"},
    {CALL(",)"), 2, 30, "a value"},
    {CALL("k=1, 2)"), 2, 35, "a keyword"},
    {CALL("k=1, k=2)"), 2, 29, "given twice"},
    {CALL("k=)"), 2, 32, "a value"},
    {CALL("[1)"), 2, 32, "expected ',' or ']'"},
    {CALL("(1))"), 2, 32, "a tuple with one item needs a comma"},
    {CALL("{1})"), 2, 32, "between key and value"},
    {CALL("{1: 2: 3})"), 2, 35, "expected ',' or '}'"},
    {CALL("{1: })"), 2, 34, "a value"},
    {CALL("foo)"), 2, 30, "'foo' is not a value"},
    {CALL("torch.float33)"), 2, 30, "not a value"},
    {CALL("'a')"), 2, 30, "double quotes"},
    {CALL("&)"), 2, 31, "a qualified name"},
    {CALL("%)"), 2, 31, "the name of a node"},
    {CALL("\"abc)\n"), 2, 30, "not closed"},
    {CALL("\"a\\q\")"), 2, 32, "unknown escape"},
    {CALL("\"\\x1\")"), 2, 33, "hexadecimal"},
    {CALL("\"\\U00110000\")"), 2, 33, "is not a Unicode code point"},
    {CALL("\"\\"), 2, 31, "unknown escape"},
    {CALL("\"\t\")"), 2, 31, "byte 0x09"},
    {CALL("b\"\xc3\xa9\")"), 2, 32, "byte 0xc3"},
    {CALL("b\"\\u0041\")"), 2, 32, "unknown escape"},
    {CALL("1.2.3)"), 2, 30, "not a number"},
    {CALL("-)"), 2, 30, "not a number"},
    {CALL("--1)"), 2, 30, "not a number"},
    {CALL("+1)"), 2, 30, "not a number"},
    {CALL("0x10)"), 2, 30, "not a number"},
    {CALL("1e)"), 2, 30, "not a number"},
    {CALL("-nan)"), 2, 30, "not a number"},
    {CALL("nan(0x7ff0))"), 2, 30, "16 hexadecimal digits"},
    {CALL("nan(0x7ff0000000000000))"), 2, 30, "16 hexadecimal digits"},
    {CALL("device(1))"), 2, 37, "a quoted device"},
    {CALL("device(\"a b\"))"), 2, 30, "not a device"},
    {CALL("slice(1, 2))"), 2, 30, "cannot form a slice"},
    {CALL("range(1, 2, \"a\"))"), 2, 30, "cannot form a range"},
    {CALL("complex(1, 2))"), 2, 30, "cannot form a complex"},
    {CALL("set[1])"), 2, 33, "expected '('"},
    {CALL("namedtuple())"), 2, 30, "begins with its type"},
    {CALL("namedtuple(1, a=2))"), 2, 30, "cannot form a namedtuple"},
    {CALL("namedtuple(&A, 2))"), 2, 45, "a field and its value"},
    {CALL("graph 1)"), 2, 36, "expected '{'"},
    {CALL("graph {"), 2, 37, "ends before the region opened in line 2 is closed"},
    {CALL("graph { %a = output() "), 2, 52, "ends before the region"},
    {CALL(") @"), 2, 33, "a file"},
    {CALL(") @ f.py"), 2, 38, "a line number"},
    {CALL(") @ f.py:x"), 2, 39, "a line number from"},
    {CALL(") @ f.py:4294967296"), 2, 39, "a line number from"},
    {CALL(") @ \"a\\x00b\":1"), 2, 34, "cannot contain \\x00"},
    {CALL(") @ in"), 2, 36, "the path of a module"},
    {CALL(") @ in a"), 2, 38, "the module's class"},
    {CALL(") @ in a(b"), 2, 40, "expected ')'"},
    {CALL(") @ in a(b) > "), 2, 44, "the path of a module"},
    {H "  \xff", 2, 3, "not UTF-8"},
    {H "# \xc3(", 2, 3, "not UTF-8"},
};

TEST(every_complaint_has_a_place)
{
    for (size_t i = 0; i < sizeof complaints / sizeof *complaints; i++) {
        cfx_graph *g = parse(complaints[i].text, strlen(complaints[i].text));
        bool good = CHECK(g == NULL);
        cfx_graph_release(g);
        good = CHECK_INT_EQ(CFX_E_SYNTAX, err.status) && good;
        good = CHECK_INT_EQ(complaints[i].line, err.line) && good;
        good = CHECK_INT_EQ(complaints[i].column, err.column) && good;
        good = CHECK(strstr(err.message, complaints[i].says) != NULL) && good;
        if (!good)
            printf("    %s\n    %s\n", complaints[i].text, err.message);
    }
}

TEST(the_line_and_a_caret)
{
    static const char text[] = "graph():\n\t%\xc3\xa9\n";
    CHECK(parse(text, sizeof text - 1) == NULL);
    CHECK_STR_EQ("line 2, column 3: expected the name of a node after '%', found '\xc3\xa9'\n"
                 "   %\xc3\xa9\n"
                 "    ^",
                 err.message);
    static const char long_line[] =
        "graph():\n  %x = call_method[target=m](111111111, 222222222, 333333333, 444444444, "
        "555555555, 666666666, 777777777, 888888888, ?, 999999999, 111111111, 222222222, "
        "333333333, 444444444, 555555555, 666666666, 777777777, 888888888)\n";
    CHECK(parse(long_line, sizeof long_line - 1) == NULL);
    CHECK_STR_EQ("line 2, column 118: expected a value, found '?'\n"
                 "  ...44, 555555555, 666666666, 777777777, 888888888, ?, "
                 "999999999, 111111111, 2...\n"
                 "                                                     ^",
                 err.message);
}

TEST(nothing_but_errors_for_odd_bytes)
{
    static const char nul[] = "graph():\n\0";
    CHECK(parse(nul, sizeof nul - 1) == NULL);
    CHECK(strstr(err.message, "byte 0x00") != NULL);
    static const char inside[] = "graph():\n%a = output(\"\0\")";
    CHECK(parse(inside, sizeof inside - 1) == NULL);
    CHECK_INT_EQ(14, err.column);
    CHECK(cfx_graph_parse("", 0, NULL, NULL, NULL) == NULL);
}

TEST(cut_at_every_byte)
{
    for (size_t size = 0; size < sizeof rich - 1; size++) {
        char *copy = malloc(size ? size : 1); /* of the exact size: ASan sees a read beyond it */
        REQUIRE(copy != NULL);
        memcpy(copy, rich, size);
        cfx_graph *g = parse(copy, size);
        if (!g) {
            CHECK_INT_EQ(CFX_E_SYNTAX, err.status);
            CHECK(err.line > 0 && err.column > 0);
        }
        cfx_graph_release(g);
        free(copy);
    }
}

TEST(every_byte_changed)
{
    char copy[sizeof rich];
    for (size_t at = 0; at < sizeof rich - 1; at++) {
        static const char with[] = "\0\"%([{}])#\xff\n9a=,:";
        for (size_t k = 0; k < sizeof with - 1; k++) {
            memcpy(copy, rich, sizeof rich);
            copy[at] = with[k];
            cfx_graph *g = parse(copy, sizeof rich - 1);
            CHECK(g || (err.line > 0 && err.column > 0));
            cfx_graph_release(g);
        }
    }
}

/* ---- limits -------------------------------------------------------------------------------- */

static void check_deep(const char *piece, size_t times, cfx_status want)
{
    cfx_buffer b;
    cfx_buffer_init(&b, NULL);
    cfx_buffer_append(&b, "graph():\n", 9);
    if (piece[0] != '%')
        cfx_buffer_append(&b, "%n = call_method[target=m](", 27);
    for (size_t i = 0; i < times; i++)
        cfx_buffer_append(&b, piece, strlen(piece));
    cfx_graph *g = parse(b.data, b.size);
    CHECK(g == NULL);
    CHECK_INT_EQ(want, err.status);
    CHECK(err.line > 0 && err.column > 0);
    cfx_buffer_free(&b);
}

TEST(nesting_without_end)
{
    check_deep("[", 100000, CFX_E_LIMIT);
    check_deep("(", 100000, CFX_E_LIMIT);
    check_deep("{1:", 100000, CFX_E_LIMIT);
    check_deep("{", 100000, CFX_E_LIMIT);
    check_deep("set(", 100000, CFX_E_LIMIT);
    check_deep("%x: [%y,", 100000, CFX_E_SYNTAX);
    check_deep("%n = call_method[target=m](graph {", 100000, CFX_E_LIMIT);
    check_deep("%n: graph {", 100000, CFX_E_LIMIT);
    check_deep("[", CFX_MAX_DEPTH - 1, CFX_E_SYNTAX);
    check_deep("[", CFX_MAX_DEPTH, CFX_E_LIMIT);
}

TEST(a_long_number)
{
    enum { DIGITS = 100000 };
    char *text = malloc(DIGITS + 64);
    REQUIRE(text != NULL);
    const int n = snprintf(text, 64, "graph():\n%%n = call_method[target=m](");
    memset(text + n, '9', DIGITS);
    memcpy(text + n + DIGITS, ")", 2);
    cfx_graph *g = parse(text, (size_t)n + DIGITS + 1);
    REQUIRE(g != NULL);
    CHECK_INT_EQ(CFX_KIND_BIGINT, cfx_node_arg(cfx_graph_first(g), 0).kind);
    cfx_graph_release(g);
    memcpy(text + n + DIGITS, ".)", 3);
    g = parse(text, (size_t)n + DIGITS + 2);
    CHECK(g && cfx_node_arg(cfx_graph_first(g), 0).as.f > 1e308);
    cfx_graph_release(g);
    free(text);
}

TEST(many_keywords)
{
    cfx_buffer b;
    cfx_buffer_init(&b, NULL);
    cfx_buffer_append(&b, "graph():\n%n = call_method[target=m](", 36);
    for (int i = 0; i < 200000; i++) {
        char key[32];
        cfx_buffer_append(&b, key, (size_t)snprintf(key, sizeof key, "k%d=1, ", i));
    }
    cfx_buffer_append(&b, ")", 1);
    cfx_graph *g = parse(b.data, b.size);
    CHECK(g != NULL);
    cfx_graph_release(g);
    cfx_buffer_free(&b);
}

/* ---- hosts and memory ---------------------------------------------------------------------- */

TEST(names_are_resolved_by_the_host)
{
    static const char text[] = "graph():\n %a = call_function[target=mod.f](&mod.f, &mod.g)\n"
                               " %b = call_function[target=mod.f](%a)\n"
                               " %c = call_function[target=mod.g]()\n"
                               " %d = call_method[target=mod.f](graph {\n"
                               " %e = call_function[target=mod.f]() })\n";
    fake_object f = {"<f>", "f", "mod.f", 0};
    const cfx_host host = fake_host(&f);
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, &host, NULL);
    REQUIRE(g != NULL);
    const cfx_node *a = cfx_graph_find(g, "a");
    CHECK(cfx_node_target_object(a) == &f);
    CHECK(cfx_value_object(cfx_node_arg(a, 0)) == &f);
    CHECK(cfx_value_object(cfx_node_arg(a, 1)) == NULL);
    CHECK(cfx_node_target_object(cfx_graph_find(g, "b")) == &f);
    CHECK(cfx_node_target_object(cfx_graph_find(g, "c")) == NULL);
    CHECK(cfx_node_target_object(cfx_graph_find(g, "d")) == NULL);
    const cfx_graph *region = cfx_value_graph(cfx_node_arg(cfx_graph_find(g, "d"), 0));
    CHECK(cfx_node_target_object(cfx_graph_find(region, "e")) == &f);
    cfx_graph_release(g);
    CHECK_INT_EQ(0, f.refs);
}

static cfx_status raising_resolve(void *ctx, const char *name, void **object, cfx_error *why)
{
    (void)ctx;
    (void)name;
    *object = NULL;
    return cfx_error_set(why, CFX_E_HOST, "resolve raised");
}

TEST(a_host_that_raises)
{
    static const char text[] = "graph():\n %a = call_function[target=f]()\n";
    static const char value[] = "graph():\n %a = call_method[target=f](&g)\n";
    cfx_host host = fake_host(NULL);
    host.resolve = raising_resolve;
    CHECK(cfx_graph_parse(text, sizeof text - 1, NULL, &host, &err) == NULL);
    CHECK_INT_EQ(CFX_E_HOST, err.status);
    CHECK_INT_EQ(2, err.line);
    CHECK(cfx_graph_parse(value, sizeof value - 1, NULL, &host, &err) == NULL);
    CHECK_INT_EQ(CFX_E_HOST, err.status);
}

static cfx_status parse_rich(const cfx_allocator *a, void *arg)
{
    cfx_error why = {.status = CFX_OK};
    const char *text = arg;
    cfx_text_places *places;
    cfx_graph *g = cfx_graph_parse_places(text, strlen(text), a, NULL, &places, &why);
    CHECK((g == NULL) == (why.status != CFX_OK));
    CHECK((g == NULL) == (places == NULL));
    cfx_text_places_free(places);
    cfx_graph_release(g);
    return why.status;
}

TEST(lack_of_memory)
{
    char text[sizeof rich];
    memcpy(text, rich, sizeof rich);
    CHECK(test_oom_sweep(parse_rich, text) > 10);
}

TEST(places_of_nodes)
{
    cfx_text_places *places;
    cfx_text_place at;
    cfx_graph *g = cfx_graph_parse_places(rich, sizeof rich - 1, NULL, NULL, &places, &err);
    REQUIRE(g != NULL);
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        REQUIRE(cfx_text_places_find(places, n, &at));
        CHECK(rich[at.offset] == '%' || strncmp(rich + at.offset, "output", 6) == 0);
        CHECK(rich[at.offset - at.column] == '\n');
    }
    const cfx_node *c = cfx_graph_first(g);
    while (strcmp(cfx_node_name(c, NULL), "c") != 0)
        c = cfx_node_next(c);
    CHECK(cfx_text_places_find(places, c, &at));
    CHECK_INT_EQ(9, at.line);
    CHECK_INT_EQ(3, at.column);
    size_t size;
    const cfx_value *args = cfx_value_items(cfx_node_args(c), &size);
    const cfx_node *inner = cfx_graph_first(cfx_value_graph(args[2]));
    CHECK(cfx_text_places_find(places, inner, &at));
    CHECK_INT_EQ(12, at.line);
    CHECK(strncmp(rich + at.offset, "%b = ", 5) == 0);
    CHECK(!cfx_text_places_find(places, NULL, &at));
    CHECK(!cfx_text_places_find(NULL, inner, &at));
    cfx_text_places_free(places);
    cfx_graph_release(g);
    CHECK(!cfx_graph_parse_places("graph", 5, NULL, NULL, &places, &err));
    CHECK(!places);
}
