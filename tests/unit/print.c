/* print.c - tests of src/ir/print.c; the expectations are what torch.fx 2.13 prints. */
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

static void check_value(cfx_graph *g, cfx_value v, const char *as_arg, const char *as_repr)
{
    CHECK_STR_EQ(as_arg, value_printed(g, v));
    CHECK_STR_EQ(as_repr, value_repr(g, v));
}

static cfx_value point(cfx_graph *g, cfx_value a, cfx_value b)
{
    const cfx_value names = SEQ(TUPLE, str(g, "a"), str(g, "b"));
    return SEQ(NAMEDTUPLE, cfx_value_name(g, "usermod.Pt", 10, &err), names, a, b);
}

TEST(scalars)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    check_value(g, cfx_none(), "None", "None");
    check_value(g, cfx_ellipsis(), "Ellipsis", "Ellipsis");
    check_value(g, cfx_bool(true), "True", "True");
    check_value(g, cfx_int(-7), "-7", "-7");
    check_value(g, cfx_float(-0.0), "-0.0", "-0.0");
    check_value(g, cfx_float(1e300), "1e+300", "1e+300");
    check_value(g, cfx_from_dtype(CFX_DTYPE_FLOAT32), "torch.float32", "torch.float32");
    check_value(g, cfx_from_layout(CFX_LAYOUT_STRIDED), "torch.strided", "torch.strided");
    check_value(g, cfx_from_memory_format(CFX_MEMORY_FORMAT_CHANNELS_LAST), "torch.channels_last",
                "torch.channels_last");
    check_value(g, cfx_value_integer(g, "100000000000000000000", 21, &err),
                "100000000000000000000", "100000000000000000000");
    check_value(g, str(g, "a\nb"), "a\nb", "'a\\nb'");
    check_value(g, str(g, ""), "", "''");
    check_value(g, cfx_value_bytes(g, "a\xff\n", 3, &err), "b'a\\xff\\n'", "b'a\\xff\\n'");
    check_value(g, cfx_value_device(g, "cpu", 3, &err), "cpu", "device(type='cpu')");
    check_value(g, cfx_value_device(g, "cuda:1", 6, &err), "cuda:1",
                "device(type='cuda', index=1)");
    cfx_graph_release(g);
}

TEST(complex_numbers)
{
    static const struct {
        double re, im;
        const char *text;
    } rows[] = {{0, 1, "1j"}, {1, -2, "(1-2j)"}, {NAN, -INFINITY, "(nan-infj)"},
                {-0.0, -0.0, "(-0-0j)"}, {1e20, -1e-7, "(1e+20-1e-07j)"}, {0, INFINITY, "infj"},
                {1, NAN, "(1+nanj)"}, {0, -0.0, "-0j"}, {0.5, 1e16, "(0.5+1e+16j)"}};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_value(g, cfx_value_complex(g, rows[i].re, rows[i].im, &err), rows[i].text,
                    rows[i].text);
    cfx_graph_release(g);
}

TEST(containers)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    const cfx_value a = str(g, "a");
    const cfx_value x = cfx_from_node(cfx_graph_placeholder(g, "x", NULL));
    check_value(g, SEQ(LIST, EMPTY(LIST), EMPTY(TUPLE), EMPTY(DICT), EMPTY(SET), EMPTY(FROZENSET)),
                "[[], (), {}, set(), frozenset()]", "[[], (), {}, set(), frozenset()]");
    check_value(g, SEQ(TUPLE, x), "(%x,)", "(x,)");
    check_value(g, SEQ(TUPLE, x, SEQ(LIST, x, a)), "(%x, [%x, a])", "(x, [x, 'a'])");
    check_value(g, SEQ(SET, a), "{'a'}", "{'a'}");
    check_value(g, SEQ(FROZENSET, a, x), "frozenset({'a', x})", "frozenset({'a', x})");
    check_value(g, SEQ(DICT, a, x, cfx_int(1), SEQ(LIST, a)), "{a: %x, 1: [a]}",
                "{'a': x, 1: ['a']}");
    check_value(g, SEQ(DICT, SEQ(TUPLE, a), a, x, cfx_none()), "{('a',): a, x: None}",
                "{('a',): 'a', x: None}");
    check_value(g, cfx_value_slice(g, x, cfx_none(), SEQ(LIST, a), &err),
                "slice(x, None, ['a'])", "slice(x, None, ['a'])");
    check_value(g, cfx_value_range(g, cfx_int(0), cfx_int(3), cfx_int(1), &err), "range(0, 3)",
                "range(0, 3)");
    check_value(g, cfx_value_range(g, cfx_int(1), cfx_int(9), cfx_int(2), &err), "range(1, 9, 2)",
                "range(1, 9, 2)");
    check_value(g, point(g, x, a), "(%x, a)", "Pt(a=x, b='a')");
    check_value(g, SEQ(LIST, cfx_value_device(g, "cuda", 4, &err)), "[cuda]",
                "[device(type='cuda')]");
    cfx_graph_release(g);
}

TEST(regions_and_names_of_host_values)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *sub = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph_output(sub, cfx_none(), NULL);
    const cfx_value region = cfx_value_region(g, sub, &err);
    check_value(g, SEQ(LIST, region), "[graph[1 node]]", "[graph[1 node]]");
    cfx_graph_placeholder(sub, "x", NULL);
    check_value(g, region, "graph[2 nodes]", "graph[2 nodes]");
    check_value(g, cfx_value_name(g, "torch.Tensor", 12, &err), "torch.Tensor", "torch.Tensor");
    check_value(g, cfx_invalid(), "<invalid>", "<invalid>");
    cfx_graph_release(sub);
    cfx_graph_release(g);
}

TEST(a_graph_as_torch_fx_prints_it)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    CHECK_STR_EQ("graph():", printed(g));
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    const cfx_value two = cfx_int(2);
    cfx_node *y = cfx_graph_call(g, CFX_OP_PLACEHOLDER, "y", &two, 1, NULL, 0, NULL);
    cfx_node_set_type(y, cfx_value_name(g, "torch.Tensor", 12, &err), NULL);
    cfx_node *w = cfx_graph_get_attr(g, "sub.0.w", NULL);
    const cfx_value pair[] = {cfx_from_node(x), cfx_from_node(w)};
    const cfx_kwarg alpha = {"alpha", cfx_int(2)};
    cfx_node *add = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.add", pair, 2, &alpha, 1, NULL);
    const cfx_value one[] = {cfx_from_node(add)};
    cfx_node *relu = cfx_graph_call(g, CFX_OP_CALL_METHOD, "relu_", one, 1, NULL, 0, NULL);
    cfx_node_set_type(relu, cfx_ellipsis(), NULL);
    const cfx_kwarg k = {"k", SEQ(LIST, cfx_from_node(relu), str(g, "s"))};
    cfx_node *lin = cfx_graph_call(g, CFX_OP_CALL_MODULE, "layers.0.lin", NULL, 0, &k, 1, NULL);
    cfx_graph_output(g, SEQ(TUPLE, cfx_from_node(lin), SEQ(LIST, cfx_from_node(add))), NULL);
    CHECK_STR_EQ("graph():\n"
                 "    %x : [num_users=1] = placeholder[target=x]\n"
                 "    %y : torch.Tensor [num_users=0] = placeholder[target=y](default=2)\n"
                 "    %sub_0_w : [num_users=1] = get_attr[target=sub.0.w]\n"
                 "    %add : [num_users=2] = call_function[target=torch.add](args = (%x, "
                 "%sub_0_w), kwargs = {alpha: 2})\n"
                 "    %relu_ : ... [num_users=1] = call_method[target=relu_](args = (%add,), "
                 "kwargs = {})\n"
                 "    %layers_0_lin : [num_users=1] = call_module[target=layers.0.lin](args = (), "
                 "kwargs = {k: [%relu_, s]})\n"
                 "    return (layers_0_lin, [add])",
                 printed(g));
    cfx_graph_release(g);
}

TEST(outputs_and_defaults_are_str)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    CHECK_STR_EQ("return a b", node_printed(cfx_graph_output(g, str(g, "a b"), NULL)));
    CHECK_STR_EQ("return cuda:1", node_printed(cfx_graph_output(
                                      g, cfx_value_device(g, "cuda:1", 6, &err), NULL)));
    CHECK_STR_EQ("return Pt(a=x, b='s')", node_printed(cfx_graph_output(
                                              g, point(g, cfx_from_node(x), str(g, "s")), NULL)));
    const cfx_value text = str(g, "a");
    CHECK_STR_EQ("%y : [num_users=0] = placeholder[target=y](default=a)",
                 node_printed(cfx_graph_call(g, CFX_OP_PLACEHOLDER, "y", &text, 1, NULL, 0, NULL)));
    cfx_graph_release(g);
}

TEST(host_objects)
{
    fake_object red = {"<Color.RED: 1>", "Color.RED", "usermod.Color.RED", 0};
    fake_object broken = {NULL, "broken", NULL, 0};
    fake_object type = {"<class 'usermod.Pt'>", "<class 'usermod.Pt'>", "usermod.Pt", 0};
    fake_object local = {"<class 'Local'>", "<class 'Local'>", NULL, 0};
    const cfx_host host = fake_host(NULL);
    cfx_graph *g = cfx_graph_new(NULL, &host, NULL);
    const cfx_value v = cfx_value_host(g, &red, &err);
    check_value(g, SEQ(LIST, v), "[Color.RED]", "[<Color.RED: 1>]");
    check_value(g, SEQ(SET, v), "{<Color.RED: 1>}", "{<Color.RED: 1>}");
    CHECK_STR_EQ("return Color.RED", node_printed(cfx_graph_output(g, v, NULL)));
    const cfx_target target = {.object = &red};
    cfx_node *n = cfx_graph_create(g, CFX_OP_CALL_FUNCTION, target, cfx_invalid(), cfx_invalid(),
                                   NULL, cfx_value_host(g, &type, &err), NULL);
    CHECK_STR_EQ("%hint : usermod.Pt [num_users=0] = call_function[target=usermod.Color.RED]"
                 "(args = (), kwargs = {})",
                 node_printed(n));
    const cfx_value none = EMPTY(TUPLE);
    check_value(g, SEQ(NAMEDTUPLE, cfx_value_host(g, &type, &err), none), "()", "Pt()");
    check_value(g, SEQ(NAMEDTUPLE, cfx_value_host(g, &local, &err), none), "()", "hint()");

    cfx_buffer b;
    cfx_error why = {.status = CFX_OK};
    cfx_buffer_init(&b, NULL);
    const cfx_value bad = SEQ(LIST, cfx_value_host(g, &broken, &err), v);
    CHECK_INT_EQ(CFX_E_HOST, cfx_value_repr(g, bad, cfx_buffer_sink(&b), &why));
    CHECK_STR_EQ("repr raised", why.message);
    CHECK_INT_EQ(CFX_E_HOST, cfx_value_repr(g, bad, cfx_buffer_sink(&b), NULL));
    cfx_buffer_free(&b);
    cfx_graph_release(g);
    CHECK_INT_EQ(0, red.refs);
}

TEST(a_host_without_show)
{
    fake_object o = {"<o>", "o", "mod.o", 0};
    fake_object nameless = {"<n>", "n", NULL, 0};
    cfx_host host = fake_host(NULL);
    host.show = NULL;
    cfx_graph *g = cfx_graph_new(NULL, &host, NULL);
    const cfx_value v = cfx_value_host(g, &o, &err);
    check_value(g, v, "<o>", "<o>");
    const cfx_target target = {.object = &nameless};
    cfx_node *n = cfx_graph_create(g, CFX_OP_CALL_FUNCTION, target, cfx_invalid(), cfx_invalid(),
                                   "f", v, NULL);
    CHECK_STR_EQ("%f : mod.o [num_users=0] = call_function[target=<n>](args = (), kwargs = {})",
                 node_printed(n));
    cfx_graph_release(g);
}

TEST(deep_nesting_prints)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value v = cfx_int(1);
    for (int i = 0; i < 999; i++)
        v = SEQ(LIST, v);
    const char *text = value_printed(g, v);
    CHECK_INT_EQ(999 * 2 + 1, strlen(text));
    cfx_graph_release(g);
}

static cfx_status print_all(const cfx_allocator *a, void *arg)
{
    cfx_graph *g = arg;
    cfx_buffer b;
    cfx_error why = {.status = CFX_OK};
    cfx_buffer_init(&b, a);
    const cfx_status status = cfx_graph_print(g, cfx_buffer_sink(&b), &why);
    CHECK_INT_EQ(status, why.status);
    cfx_buffer_free(&b);
    return status;
}

TEST(lack_of_memory)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (int i = 0; i < 1000; i++)
        cfx_graph_placeholder(g, "x", NULL);
    CHECK(test_oom_sweep(print_all, g) > 0);
    cfx_graph_release(g);
}
