/* text_write.c - tests of src/ir/text_write.c: what is written, and that it reads back as the
 * same graph. */
#include "text_tools.h"

#include <math.h>

static cfx_error err;

static cfx_value str(cfx_graph *g, const char *text)
{
    return cfx_value_str(g, text, strlen(text), &err);
}

static cfx_value seq(cfx_graph *g, cfx_kind kind, size_t n, const cfx_value *items)
{
    return cfx_value_seq(g, kind, items, n, &err);
}
#define SEQ(kind_, ...)                                                                            \
    seq(g, CFX_KIND_##kind_, sizeof((cfx_value[]){__VA_ARGS__}) / sizeof(cfx_value),               \
        (cfx_value[]){__VA_ARGS__})
#define EMPTY(kind_) seq(g, CFX_KIND_##kind_, 0, NULL)

static double from_bits(uint64_t bits)
{
    double f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Writes `g`, reads it back, compares. */
static bool round_trip(cfx_graph *g)
{
    cfx_buffer b;
    cfx_error why = {.status = CFX_OK};
    cfx_buffer_init(&b, NULL);
    bool good = CHECK_INT_EQ(CFX_OK, cfx_graph_text(g, cfx_buffer_sink(&b), &why));
    cfx_graph *back = cfx_graph_parse(b.data, b.size, NULL, cfx_graph_host(g), &why);
    good = CHECK(back != NULL) && good;
    if (!back)
        printf("%s\n%s\n", why.message, b.data);
    good = good && CHECK(cfx_graph_equal(g, back, false));
    cfx_graph_release(back);
    cfx_buffer_free(&b);
    return good;
}

/* The value as the only argument of a node; `want` is its text. */
static void check_value(cfx_graph *g, cfx_value v, const char *want)
{
    char line[4096];
    cfx_graph_clear(g);
    REQUIRE(v.kind != CFX_KIND_INVALID);
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_METHOD, "m", &v, 1, NULL, 0, &err);
    REQUIRE(n != NULL);
    cfx_node_set_name(n, "n", 1, NULL);
    snprintf(line, sizeof line, "graph():\n  %%n = call_method[target=m](%s)\n", want);
    CHECK_STR_EQ(line, text_of(g));
    round_trip(g);
}

TEST(scalars)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    check_value(g, cfx_value_none(), "None");
    check_value(g, cfx_value_ellipsis(), "...");
    check_value(g, cfx_value_bool(true), "True");
    check_value(g, cfx_value_bool(false), "False");
    check_value(g, cfx_value_int(0), "0");
    check_value(g, cfx_value_int(INT64_MIN), "-9223372036854775808");
    check_value(g, cfx_value_integer(g, "-9223372036854775809", 20, &err), "-9223372036854775809");
    check_value(g, cfx_value_integer(g, "9223372036854775808", 19, &err), "9223372036854775808");
    for (int i = 0; i < CFX_DTYPE_COUNT; i++) {
        char want[64];
        snprintf(want, sizeof want, "torch.%s", cfx_dtype_name((cfx_dtype)i));
        check_value(g, cfx_value_dtype((cfx_dtype)i), want);
    }
    for (int i = 0; i < CFX_LAYOUT_COUNT; i++) {
        char want[64];
        snprintf(want, sizeof want, "torch.%s", cfx_layout_name((cfx_layout)i));
        check_value(g, cfx_value_layout((cfx_layout)i), want);
    }
    for (int i = 0; i < CFX_MEMORY_FORMAT_COUNT; i++) {
        char want[64];
        snprintf(want, sizeof want, "torch.%s", cfx_memory_format_name((cfx_memory_format)i));
        check_value(g, cfx_value_memory_format((cfx_memory_format)i), want);
    }
    check_value(g, cfx_value_device(g, "cuda:1", 6, &err), "device(\"cuda:1\")");
    cfx_graph_release(g);
}

TEST(floats)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    check_value(g, cfx_value_float(0.0), "0.0");
    check_value(g, cfx_value_float(-0.0), "-0.0");
    check_value(g, cfx_value_float(0.1), "0.1");
    check_value(g, cfx_value_float(1e16), "1e+16");
    check_value(g, cfx_value_float(5e-324), "5e-324");
    check_value(g, cfx_value_float(-2.2250738585072009e-308), "-2.225073858507201e-308");
    check_value(g, cfx_value_float(INFINITY), "inf");
    check_value(g, cfx_value_float(-INFINITY), "-inf");
    check_value(g, cfx_value_float(from_bits(0x7ff8000000000000u)), "nan");
    check_value(g, cfx_value_float(from_bits(0xfff8000000000000u)), "nan(0xfff8000000000000)");
    check_value(g, cfx_value_float(from_bits(0x7ff4000000abcdefu)), "nan(0x7ff4000000abcdef)");
    check_value(g, cfx_value_complex(g, 1.5, -2.0, &err), "complex(1.5, -2.0)");
    check_value(g, cfx_value_complex(g, from_bits(0x7ff8000000000000u), -0.0, &err),
                "complex(nan, -0.0)");
    cfx_graph_release(g);
}

TEST(strings)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    check_value(g, str(g, ""), "\"\"");
    check_value(g, str(g, "it's \"so\""), "\"it's \\\"so\\\"\"");
    check_value(g, str(g, "a\nb\t\\"), "\"a\\nb\\t\\\\\"");
    check_value(g, cfx_value_str(g, "\0\x1f\x7f", 3, &err), "\"\\x00\\x1f\\x7f\"");
    check_value(g, str(g, "\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
    check_value(g, str(g, "\xed\xa0\x80\xe2\x80\x8b\xf3\xa0\x80\x81"),
                "\"\\ud800\\u200b\\U000e0001\"");
    check_value(g, str(g, "# no comment"), "\"# no comment\"");
    check_value(g, cfx_value_bytes(g, "", 0, &err), "b\"\"");
    check_value(g, cfx_value_bytes(g, "a\0\xff\"'", 5, &err), "b\"a\\x00\\xff\\\"'\"");
    cfx_graph_release(g);
}

/* Whatever order the items of a set lie in, the text is the same. */
TEST(sets_are_sorted)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    check_value(g, SEQ(SET, cfx_value_int(10), cfx_value_int(-1), cfx_value_int(2)),
                "set(-1, 2, 10)");
    check_value(
        g,
        SEQ(FROZENSET, str(g, "b"), str(g, "ab"), str(g, "a"), cfx_value_int(1), cfx_value_none()),
        "frozenset(None, 1, \"a\", \"ab\", \"b\")");
    check_value(g,
                SEQ(SET, cfx_value_float(1.5), cfx_value_float(0.0), cfx_value_float(-0.0),
                    cfx_value_float(-INFINITY)),
                "set(-inf, -0.0, 0.0, 1.5)");
    check_value(g, SEQ(SET, cfx_value_bool(true), cfx_value_bool(false)), "set(False, True)");
    check_value(g, SEQ(SET, cfx_value_complex(g, 1.0, 2.0, &err),
                       cfx_value_complex(g, 1.0, -2.0, &err), cfx_value_complex(g, 0, 3, &err)),
                "set(complex(0.0, 3.0), complex(1.0, -2.0), complex(1.0, 2.0))");
    check_value(g, SEQ(SET, SEQ(TUPLE, cfx_value_int(2)), cfx_value_int(1)), "set((2,), 1)");
    cfx_graph_release(g);
}

TEST(containers)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    const cfx_value one = cfx_value_int(1);
    check_value(g, EMPTY(LIST), "[]");
    check_value(g, EMPTY(TUPLE), "()");
    check_value(g, EMPTY(DICT), "{}");
    check_value(g, EMPTY(SET), "set()");
    check_value(g, EMPTY(FROZENSET), "frozenset()");
    check_value(g, SEQ(TUPLE, one), "(1,)");
    check_value(g, SEQ(TUPLE, one, SEQ(TUPLE, one)), "(1, (1,))");
    check_value(g, SEQ(LIST, one, SEQ(LIST, EMPTY(LIST))), "[1, [[]]]");
    check_value(g, SEQ(SET, one, cfx_value_int(2)), "set(1, 2)");
    check_value(g, SEQ(FROZENSET, one), "frozenset(1)");
    check_value(g, SEQ(DICT, str(g, "a"), one, one, str(g, "a")), "{\"a\": 1, 1: \"a\"}");
    check_value(g, SEQ(DICT, SEQ(TUPLE, one), EMPTY(DICT), cfx_value_none(), cfx_value_none()),
                "{(1,): {}, None: None}");
    check_value(g, cfx_value_slice(g, cfx_value_none(), one, SEQ(LIST, one), &err),
                "slice(None, 1, [1])");
    check_value(g,
                cfx_value_seq(g, CFX_KIND_RANGE,
                              (cfx_value[]){cfx_value_int(0), cfx_value_int(-3), cfx_value_int(-1)},
                              3, &err),
                "range(0, -3, -1)");
    const cfx_value type = cfx_value_name(g, "usermod.Pt", 10, &err);
    check_value(g, SEQ(NAMEDTUPLE, type, EMPTY(TUPLE)), "namedtuple(&usermod.Pt)");
    check_value(g, SEQ(NAMEDTUPLE, cfx_value_name(g, "usermod.Pt", 10, &err),
                       SEQ(TUPLE, str(g, "a"), str(g, "b c")), one, EMPTY(LIST)),
                "namedtuple(&usermod.Pt, a=1, \"b c\"=[])");
    cfx_graph_release(g);
}

TEST(host_names)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    check_value(g, cfx_value_name(g, "torch.Tensor", 12, &err), "&torch.Tensor");
    check_value(g, cfx_value_name(g, "typing.List[int]", 16, &err), "&\"typing.List[int]\"");
    check_value(g, cfx_value_name(g, "", 0, &err), "&\"\"");
    cfx_graph_release(g);
}

TEST(the_parts_of_a_node)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node_set_type(x, cfx_value_name(g, "torch.Tensor", 12, &err), NULL);
    const cfx_value two = SEQ(LIST, cfx_value_int(2));
    cfx_node *args = cfx_graph_call(g, CFX_OP_PLACEHOLDER, "*args", &two, 1, NULL, 0, NULL);
    cfx_node_set_type(args, two, NULL);
    cfx_graph_get_attr(g, "layers.0.weight", NULL);
    cfx_graph_get_attr(g, "", NULL);
    cfx_graph_get_attr(g, "a b\n", NULL);
    const cfx_value used[] = {cfx_value_node(x), cfx_value_node(args)};
    const cfx_kwarg kwargs[] = {
        {"alpha", cfx_value_int(2)}, {"", cfx_value_none()}, {"a b", cfx_value_node(x)}};
    cfx_node *f = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.add", used, 2, kwargs, 3, NULL);
    cfx_node_set_location(f, "model.py", 12, NULL);
    cfx_node *m = cfx_graph_call(g, CFX_OP_CALL_MODULE, "layers.0", used, 1, NULL, 0, NULL);
    cfx_node_set_location(m, "my file.py", 0, NULL);
    const uint32_t top = cfx_graph_intern_stack(g, 0, "", "Model", NULL, NULL);
    cfx_node_set_module_stack(
        m, cfx_graph_intern_stack(g, top, "layers.0", "torch.nn.Linear", NULL, NULL));
    cfx_node *r = cfx_graph_call(g, CFX_OP_CALL_METHOD, "relu", used, 1, NULL, 0, NULL);
    cfx_node_set_module_stack(r, cfx_graph_intern_stack(g, 0, "a", "b c", NULL, NULL));
    cfx_node *in = cfx_graph_call(g, CFX_OP_CALL_METHOD, "relu", used, 1, NULL, 0, NULL);
    cfx_node_set_location(in, "in", 4294967295u, NULL);
    cfx_node *out = cfx_graph_output(g, cfx_value_node(f), NULL);
    cfx_node_set_name(out, "result", 6, NULL);
    CHECK_STR_EQ("graph():\n"
                 "  %x: &torch.Tensor = placeholder[target=x]()\n"
                 "  %_args: [2] = placeholder[target=*args]([2])\n"
                 "  %layers_0_weight = get_attr[target=layers.0.weight]()\n"
                 "  %_unnamed = get_attr[target=\"\"]()\n"
                 "  %a_b_ = get_attr[target=\"a b\\n\"]()\n"
                 "  %add = call_function[target=torch.add](%x, %_args, alpha=2, \"\"=None, "
                 "\"a b\"=%x)  @ model.py:12\n"
                 "  %layers_0 = call_module[target=layers.0](%x)  @ \"my file.py\":0 in "
                 "\"\"(Model) > layers.0(torch.nn.Linear)\n"
                 "  %relu = call_method[target=relu](%x)  @ in a(\"b c\")\n"
                 "  %relu_1 = call_method[target=relu](%x)  @ \"in\":4294967295\n"
                 "  %result = output(%add)\n",
                 text_of(g));
    round_trip(g);
    cfx_graph_release(g);
}

TEST(outputs)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    CHECK_STR_EQ("graph():\n", text_of(g));
    round_trip(g);
    cfx_node *out = cfx_graph_output(g, cfx_value_none(), NULL);
    CHECK_STR_EQ("graph():\n  output(None)\n", text_of(g));
    round_trip(g);
    cfx_node_set_type(out, cfx_value_int(1), NULL);
    CHECK_STR_EQ("graph():\n  %output: 1 = output(None)\n", text_of(g));
    round_trip(g);
    cfx_graph_clear(g);
    const cfx_target target = {.name = "result", .size = 6};
    cfx_graph_create(g, CFX_OP_OUTPUT, target, cfx_value_invalid(), cfx_value_invalid(), "output",
                     cfx_value_invalid(), NULL);
    cfx_node_set_name(cfx_graph_last(g), "output", 6, NULL);
    CHECK_STR_EQ("graph():\n  output[target=result]()\n", text_of(g));
    round_trip(g);
    cfx_graph_release(g);
}

TEST(regions)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *then = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *inner = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *p = cfx_graph_placeholder(g, "p", NULL);
    cfx_node *a = cfx_graph_placeholder(then, "a", NULL);
    cfx_graph_output(inner, cfx_value_none(), NULL);
    const cfx_value deep = cfx_value_region(then, inner, &err);
    cfx_graph_call(then, CFX_OP_CALL_FUNCTION, "f", &deep, 1, NULL, 0, NULL);
    cfx_graph_output(then, cfx_value_node(a), NULL);
    const cfx_value args[] = {cfx_value_node(p), cfx_value_region(g, then, &err),
                              SEQ(TUPLE, cfx_value_node(p))};
    cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "cfx.cond", args, 3, NULL, 0, NULL);
    CHECK_STR_EQ("graph():\n"
                 "  %p = placeholder[target=p]()\n"
                 "  %cond = call_function[target=cfx.cond](%p, graph {\n"
                 "      %a = placeholder[target=a]()\n"
                 "      %f = call_function[target=f](graph {\n"
                 "          output(None)\n"
                 "        })\n"
                 "      output(%a)\n"
                 "    }, (%p,))\n",
                 text_of(g));
    round_trip(g);
    cfx_graph_release(inner);
    cfx_graph_release(then);
    cfx_graph_release(g);
}

TEST(forward_references_and_odd_names)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    const cfx_value v = cfx_value_node(x);
    cfx_node *y = cfx_graph_call(g, CFX_OP_CALL_METHOD, "neg", &v, 1, NULL, 0, NULL);
    const cfx_value both[] = {SEQ(LIST, cfx_value_node(y)), v};
    cfx_node *z = cfx_graph_call(g, CFX_OP_CALL_METHOD, "add", both, 2, NULL, 0, NULL);
    cfx_node_prepend(x, z, NULL);
    cfx_node_set_name(x, "no identifier", 13, NULL);
    cfx_node_set_name(y, "1", 1, NULL);
    CHECK_STR_EQ("graph():\n"
                 "  %add = call_method[target=add]([%1], %\"no identifier\")\n"
                 "  %\"no identifier\" = placeholder[target=x]()\n"
                 "  %1 = call_method[target=neg](%\"no identifier\")\n",
                 text_of(g));
    round_trip(g);
    cfx_graph_release(g);
}

static cfx_status failure(cfx_graph *g, cfx_error *why)
{
    cfx_buffer b;
    cfx_buffer_init(&b, NULL);
    *why = (cfx_error){.status = CFX_OK};
    const cfx_status status = cfx_graph_text(g, cfx_buffer_sink(&b), why);
    CHECK_INT_EQ(status, cfx_graph_text(g, cfx_buffer_sink(&b), NULL));
    CHECK_INT_EQ(status, why->status);
    cfx_buffer_free(&b);
    return status;
}

TEST(names_that_are_not_unique)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_error why;
    cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    cfx_node_set_name(y, "x", 1, NULL);
    CHECK_INT_EQ(CFX_E_GRAPH, failure(g, &why));
    CHECK(strstr(why.message, "%x") && strstr(why.message, "rename"));
    cfx_graph_erase(g, cfx_graph_first(g), NULL); /* the name's first owner */
    CHECK_STR_EQ("graph():\n  %x = placeholder[target=y]()\n", text_of(g));
    cfx_node_set_name(y, "\xff", 1, NULL);
    CHECK_INT_EQ(CFX_E_VALUE, failure(g, &why));
    CHECK(strstr(why.message, "%?") != NULL); /* the message is text in any case */
    cfx_graph_release(g);
}

TEST(host_objects)
{
    fake_object f = {"<f>", "f", "mod.f", 0};
    fake_object nameless = {"<n>", "n", NULL, 0};
    const cfx_host host = fake_host(&f);
    cfx_graph *g = cfx_graph_new(NULL, &host, NULL);
    cfx_error why;
    const cfx_target target = {.object = &f};
    const cfx_value used = cfx_value_host(g, &f, &err);
    cfx_node *n = cfx_graph_create(g, CFX_OP_CALL_FUNCTION, target,
                                   cfx_value_tuple(g, &used, 1, &err), cfx_value_invalid(), "n",
                                   cfx_value_invalid(), NULL);
    CHECK_STR_EQ("graph():\n  %n = call_function[target=mod.f](&mod.f)\n", text_of(g));
    round_trip(g);
    const cfx_value bad = cfx_value_host(g, &nameless, &err);
    cfx_node_set_arg(n, 0, SEQ(LIST, bad), NULL);
    CHECK_INT_EQ(CFX_E_VALUE, failure(g, &why));
    CHECK(strstr(why.message, "%n") != NULL);
    const cfx_target nowhere = {.object = &nameless};
    cfx_node_set_arg(n, 0, cfx_value_none(), NULL);
    cfx_node_set_target(n, nowhere, NULL);
    CHECK_INT_EQ(CFX_E_VALUE, failure(g, &why));
    CHECK(strstr(why.message, "the target") != NULL);
    cfx_graph_release(g);
    CHECK_INT_EQ(0, f.refs);
    CHECK_INT_EQ(0, nameless.refs);
}

TEST(a_name_that_leads_to_another_object)
{
    fake_object f = {"<f>", "f", "mod.f", 0};
    fake_object old = {"<old>", "old", "mod.f", 0};
    fake_object gone = {"<gone>", "gone", "mod.gone", 0};
    const cfx_host host = fake_host(&f);
    cfx_graph *g = cfx_graph_new(NULL, &host, NULL);
    cfx_error why;
    const cfx_target target = {.object = &gone};
    cfx_node *n = cfx_graph_create(g, CFX_OP_CALL_FUNCTION, target, cfx_value_invalid(),
                                   cfx_value_invalid(), "n", cfx_value_invalid(), NULL);
    CHECK_INT_EQ(CFX_E_VALUE, failure(g, &why));
    CHECK(strstr(why.message, "mod.gone") != NULL);
    const cfx_target other = {.object = &old};
    cfx_node_set_target(n, other, NULL);
    CHECK_INT_EQ(CFX_E_VALUE, failure(g, &why));
    CHECK(strstr(why.message, "another object has the name mod.f") != NULL);
    cfx_graph_release(g);
    CHECK_INT_EQ(0, f.refs);
    CHECK_INT_EQ(0, old.refs);
}

TEST(deepest_nesting)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value v = cfx_value_int(1);
    for (int i = 0; i < CFX_MAX_DEPTH - 1; i++)
        v = i % 2 ? SEQ(LIST, v) : SEQ(DICT, v, v);
    cfx_graph_release(g);
    g = cfx_graph_new(NULL, NULL, NULL);
    v = cfx_value_int(1);
    for (int i = 0; i < CFX_MAX_DEPTH - 1; i++)
        v = SEQ(LIST, v);
    cfx_graph_call(g, CFX_OP_CALL_METHOD, "m", &v, 1, NULL, 0, NULL);
    round_trip(g);
    for (int i = 0; i < CFX_MAX_REGION_DEPTH; i++) {
        cfx_graph *sub = g;
        g = cfx_graph_new(NULL, NULL, NULL);
        v = cfx_value_region(g, sub, &err);
        for (int k = 0; k < 50; k++)
            v = SEQ(TUPLE, v);
        cfx_graph_call(g, CFX_OP_CALL_METHOD, "m", &v, 1, NULL, 0, NULL);
        cfx_graph_release(sub);
    }
    round_trip(g);
    cfx_graph_release(g);
}

static cfx_status write_text(const cfx_allocator *a, void *arg)
{
    cfx_buffer b;
    cfx_error why = {.status = CFX_OK};
    cfx_status status = CFX_E_NOMEM;
    (void)arg;
    cfx_buffer_init(&b, a);
    static const char text[] = "graph():\n  %x: &T = placeholder[target=x]([1, {2: (3,)}])\n"
                               "  %y = call_method[target=m](%x, graph {\n output([1])\n }, k=1)"
                               " @ f.py:1 in a(b) > c(d)\n";
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, a, NULL, &why);
    if (g)
        status = cfx_graph_text(g, cfx_buffer_sink(&b), &why);
    CHECK_INT_EQ(status, why.status);
    cfx_buffer_free(&b);
    cfx_graph_release(g);
    return status;
}

TEST(lack_of_memory)
{
    CHECK(test_oom_sweep(write_text, NULL) > 10);
}
