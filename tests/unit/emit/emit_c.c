/* emit_c.c - graphs as C: the text, what cannot be written, want of memory. What it computes is
 * tested in tests/python/test_c_code.py. */
#include "check.h"
#include "modules_fixture.h"
#include "test_alloc.h"

#include <cfx/cfx.h>

/* The C source of a text, or why there is none; freed by the next call. NULL: the last one. */
static const char *code_of(const char *text, const cfx_module_tree *modules)
{
    static cfx_buffer out;
    cfx_error err = {0};
    if (!text)
        return out.data;
    cfx_graph *g = cfx_graph_parse(text, strlen(text), NULL, NULL, &err);
    if (out.data)
        cfx_buffer_free(&out);
    cfx_buffer_init(&out, NULL);
    if (!g || cfx_codegen_c(g, modules, NULL, cfx_buffer_sink(&out), &err) != CFX_OK) {
        cfx_buffer_free(&out);
        cfx_buffer_append(&out, err.message, strlen(err.message));
    }
    cfx_graph_release(g);
    return out.data;
}

/* The statements of forward, for a graph of one input `x` and these lines. */
static const char *body_of(const char *lines)
{
    char text[2000];
    snprintf(text, sizeof text, "graph():\n  %%x = placeholder[target=x]()\n%s", lines);
    char *code = (char *)(uintptr_t)code_of(text, NULL);
    char *start = strstr(code, "cfx_var x)\n{\n");
    char *end = start ? strstr(start, "\n}\n") : NULL;
    if (end)
        end[1] = '\0';
    return start ? start + strlen("cfx_var x)\n{\n") : code;
}

TEST(calls_have_options_by_name)
{
    CHECK_STR_EQ("    (void)self;\n"
                 "    cfx_var sum_1 = cfx_sum(s, x, .dim = cfx_ints(s, 0, 1), .keepdim = "
                 "cfx_v(true));  /* a.py:3 */\n"
                 "    cfx_var full = cfx_full(s, cfx_ints(s, 2, 3), cfx_var_bool(true));\n"
                 "    cfx_var add = cfx_add(s, sum_1, full, .alpha = cfx_v(0.5));  /* a.py:4 */\n"
                 "    return add;\n",
                 body_of("  %sum_1 = call_method[target=sum](%x, (0, 1), keepdim=True) @ a.py:3\n"
                         "  %full = call_function[target=torch.full]((2, 3), True) @ a.py:3\n"
                         "  %add = call_function[target=torch.add](%sum_1, %full, alpha=0.5) "
                         "@ a.py:4\n"
                         "  output(%add)\n"));
}

TEST(literals_read_back)
{
    CHECK_STR_EQ("    (void)self;\n"
                 "    cfx_var a = cfx_getitem(s, x, cfx_tuple(s, cfx_var_ellipsis(), "
                 "cfx_slice_of(s, 0,\n"
                 "            cfx_var_none(), 2), cfx_var_none()));\n"
                 "    cfx_var b = cfx_clamp(s, a, .min = cfx_v(-INFINITY), .max = cfx_v(NAN));\n"
                 "    cfx_var c = cfx_to(s, b, cfx_var_dtype(CFX_DTYPE_FLOAT64));\n"
                 "    return cfx_tuple(s, c, cfx_dict(s, cfx_v(\"?\\?=\\\"\\n\\303\\251\"), "
                 "cfx_v(INT64_MIN)), cfx_list(s,\n"
                 "            cfx_v(1), cfx_v(2)), cfx_ints(s, 1, 2));\n",
                 body_of("  %a = call_function[target=operator.getitem](%x, (..., slice(0, None, "
                         "2), None))\n"
                         "  %b = call_function[target=torch.clamp](%a, -inf, nan)\n"
                         "  %c = call_method[target=to](%b, torch.float64)\n"
                         "  output((%c, {\"?\?=\\\"\\n\\u00e9\": -9223372036854775808}, [1, 2], "
                         "(1, 2)))\n"));
}

TEST(names_that_are_taken)
{
    CHECK_STR_EQ("    (void)self;\n"
                 "    cfx_var double_ = cfx_relu(s, x);\n"
                 "    cfx_var own_cfx_add = cfx_relu(s, double_);\n"
                 "    cfx_var self_ = cfx_relu(s, own_cfx_add);\n"
                 "    cfx_var v_x = cfx_relu(s, self_);\n"
                 "    cfx_var INT_MAX_ = cfx_relu(s, v_x);\n"
                 "    cfx_relu(s, INT_MAX_);\n"
                 "    return x;\n",
                 body_of("  %double = call_function[target=torch.relu](%x)\n"
                         "  %cfx_add = call_function[target=torch.relu](%double)\n"
                         "  %self = call_function[target=torch.relu](%cfx_add)\n"
                         "  %_x = call_function[target=torch.relu](%self)\n"
                         "  %INT_MAX = call_function[target=torch.relu](%_x)\n"
                         "  %unused = call_function[target=torch.relu](%INT_MAX)\n"
                         "  output(%x)\n"));
}

static const char loop[] = "graph():\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %w = get_attr[target=a.b.w]()\n"
                           "  %loop = call_function[target=cfx.for_loop](3, graph {\n"
                           "      %i = placeholder[target=i]()\n"
                           "      %y = placeholder[target=y]()\n"
                           "      %v = get_attr[target=a.b.v]()\n"
                           "      %z = call_function[target=torch.mul](%y, %v)\n"
                           "      output((%z,))\n"
                           "    }, (%x,))\n"
                           "  %first = call_function[target=operator.getitem](%loop, 0)\n"
                           "  %r = call_function[target=torch.add](%first, %w)\n"
                           "  output((%r, %loop))\n";

TEST(a_whole_file)
{
    CHECK_STR_EQ(
        "#include <cfx/cfx.h>\n"
        "\n"
        "cfx_module *cfx_model(cfx_scope *s);\n"
        "\n"
        "static cfx_var loop_body(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in)\n"
        "{\n"
        "    cfx_module *self = (cfx_module *)ctx;\n"
        "    (void)i;\n"
        "    cfx_var y = in[0];\n"
        "    cfx_var v = cfx_module_param(s, self, \"a.b.v\");\n"
        "    cfx_var z = cfx_mul(s, y, v);\n"
        "    return z;\n"
        "}\n"
        "\n"
        "static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)\n"
        "{\n"
        "    cfx_var w = cfx_module_param(s, self, \"a.b.w\");\n"
        "    cfx_var loop = cfx_for(s, 3, loop_body, self, x);\n"
        "    cfx_var r = cfx_add(s, loop, w);\n"
        "    return cfx_tuple(s, r, cfx_tuple(s, loop));\n"
        "}\n"
        "\n"
        "static const cfx_class model_class = {\n"
        "    .name = \"Model\",\n"
        "    .inputs = \"x\",\n"
        "    .forward = forward,\n"
        "};\n"
        "\n"
        "cfx_module *cfx_model(cfx_scope *s)\n"
        "{\n"
        "    cfx_module *self = cfx_module_new(s, &model_class);\n"
        "    cfx_module *a = cfx_module_add(s, self, \"a\", cfx_module_new(s, NULL));\n"
        "    cfx_module *a_b = cfx_module_add(s, a, \"b\", cfx_module_new(s, NULL));\n"
        "    cfx_module_declare(s, a_b, \"w\");\n"
        "    cfx_module_declare(s, a_b, \"v\");\n"
        "    return self;\n"
        "}\n",
        code_of(loop, NULL));
}

/* The loop's first result is the loop itself; if nobody reads that, it needs no name. */
TEST(what_nobody_reads_has_no_name)
{
    const char *code = body_of("  %loop = call_function[target=cfx.for_loop](3, graph {\n"
                               "      %i = placeholder[target=i]()\n"
                               "      %y = placeholder[target=y]()\n"
                               "      output((%y,))\n"
                               "    }, (%x,))\n"
                               "  %first = call_function[target=operator.getitem](%loop, 0)\n"
                               "  output(%x)\n");
    CHECK_STR_EQ("    (void)self;\n    cfx_for(s, 3, loop_body, NULL, x);\n    return x;\n", code);
}

/* What is returned must not lie on the stack of the function that returns it. */
TEST(results_that_are_integers)
{
    cfx_buffer text;
    char line[80];
    static const char loop_of_one[] =
        "  %loop = call_function[target=cfx.for_loop](3, graph {\n"
        "      %i = placeholder[target=i]()\n"
        "      %y = placeholder[target=y]()\n"
        "      output(((1, 2),))\n"
        "    }, (%x,))\n"
        "  output(%loop)\n";
    body_of(loop_of_one);
    CHECK(strstr(code_of(NULL, NULL), "return cfx_tuple(s, cfx_v(1), cfx_v(2));") != NULL);
    cfx_buffer_init(&text, NULL);
    cfx_buffer_append(&text, "graph():\n", 9);
    for (int i = 0; i < 450; i++) {
        snprintf(line, sizeof line, "  %%x%d = placeholder[target=x%d]()\n", i, i);
        cfx_buffer_append(&text, line, strlen(line));
    }
    for (int i = 0; i < 150; i++) {
        snprintf(line, sizeof line, "  %%y%d = call_function[target=torch.relu](%%x%d)\n", i, i);
        cfx_buffer_append(&text, line, strlen(line));
    }
    cfx_buffer_append(&text, "  output((1, 2))\n", 17);
    const char *code = code_of(text.data, NULL);
    CHECK(strstr(code, "    vars[0] = cfx_tuple(s, cfx_v(1), cfx_v(2));\n") != NULL);
    CHECK(strstr(code, "static void forward_part2(cfx_scope *s, cfx_module *self, cfx_var *vars)\n"
                       "{\n    (void)s;\n    (void)self;\n    (void)vars;\n}\n") != NULL);
    cfx_buffer_free(&text);
}

/* A graph of `n` parameters, each in a module of its own; freed by the caller. */
static cfx_buffer many_parameters(int n)
{
    cfx_buffer text;
    char line[160];
    cfx_buffer_init(&text, NULL);
    cfx_buffer_append(&text, "graph():\n", 9);
    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof line, "  %%w%d = get_attr[target=layers.%d.w]()\n", i, i);
        cfx_buffer_append(&text, line, strlen(line));
    }
    cfx_buffer_append(&text, "  output(%w0)\n", 14);
    return text;
}

/* In functions of their own, each of which has as variables what it uses. */
TEST(very_many_parameters)
{
    cfx_buffer text = many_parameters(300);
    const char *code = code_of(text.data, NULL);
    CHECK(strstr(code, "\nstatic void model_2(cfx_scope *s, cfx_module *self)\n{\n"
                       "    cfx_module *layers = cfx_module_child(self, \"layers\");\n"
                       "    cfx_module *layers_50 = cfx_module_add(s, layers, \"50\", "
                       "cfx_module_new(s, NULL));\n"
                       "    cfx_module_declare(s, layers_50, \"w\");\n") != NULL);
    CHECK(strstr(code, "    cfx_module *self = cfx_module_new(s, &model_class);\n"
                       "    model_1(s, self);\n    model_2(s, self);\n") != NULL);
    CHECK(strstr(code, "    model_6(s, self);\n    return self;\n}\n") != NULL);
    cfx_buffer_free(&text);
}

/* Inputs may stand anywhere, and what is read as a whole may have parts. */
TEST(what_stands_in_an_odd_order)
{
    const char *code = code_of("graph():\n"
                               "  %a = get_attr[target=a]()\n"
                               "  %b = get_attr[target=b]()\n"
                               "  %c = get_attr[target=a.c]()\n"
                               "  %x = placeholder[target=x]()\n"
                               "  %d = call_function[target=torch.add](%b, %c)\n"
                               "  %y = placeholder[target=y]()\n"
                               "  output((%x, %d, %y))\n", NULL);
    CHECK(strstr(code, "forward(cfx_scope *s, cfx_module *self, cfx_var x, cfx_var y)\n") != NULL);
    CHECK(strstr(code, "    cfx_module_add(s, self, \"a\", cfx_module_new(s, NULL));\n"
                       "    cfx_module_declare(s, self, \"b\");\n"
                       "    cfx_module *a = cfx_module_child(self, \"a\");\n"
                       "    cfx_module_declare(s, a, \"c\");\n") != NULL);
}

TEST(all_that_cannot_be_written_is_named)
{
    CHECK_STR_EQ("m.py:2: mine.f(x): 'mine.f' is not in the operator table (node %a); "
                 "mine.g(a): 'mine.g' is not in the operator table (node %b)",
                 body_of("  %a = call_function[target=mine.f](%x) @ m.py:2\n"
                         "  %b = call_function[target=mine.g](%a)\n"
                         "  output(%b)\n"));
    CHECK_STR_EQ("an argument of kind bytes cannot be written in C (node %output)",
                 body_of("  output(b\"x\")\n"));
}

/* A file's name ends no comment, begins none, and turns no text around. */
TEST(comments_with_odd_names)
{
    CHECK_STR_EQ("    (void)self;\n"
                 "    cfx_var a = cfx_relu(s, x);  /* a?/?\xc3\xa9???b.c:3 */\n"
                 "    return a;\n",
                 body_of("  %a = call_function[target=torch.relu](%x) "
                         "@ \"a*/\\\\\u00e9\u202eb.c\":3\n"
                         "  output(%a)\n"));
}

/* ---- operators of a library ---------------------------------------------------------------- */

static cfx_status like_x(cfx_kernel_call *c) { return cfx_kernel_describe_like(c, 0, 0); }

static const cfx_custom_operator rows[] = {
    {"my.scale", "(Tensor x, float by=2.0, *, Tensor? mask=None, bool minus=False) -> Tensor", 0,
     like_x, like_x, NULL, NULL},
};

static const char custom[] = "graph():\n"
                             "  %x = placeholder[target=x]()\n"
                             "  %a = call_function[target=my.scale](%x)\n"
                             "  %b = call_function[target=my.scale](%a, -0.5, minus=True)\n"
                             "  %c = call_function[target=my.scale](%b, mask=%x)\n"
                             "  output(%c)\n";

/* By name, all by position. */
TEST(operators_of_a_library)
{
    cfx_library *lib = cfx_library_new(rows, 1, NULL, NULL, NULL);
    REQUIRE(lib != NULL);
    const char *code = code_of(custom, &(cfx_module_tree){.library = lib});
    CHECK(strstr(code, "    cfx_var a = cfx_apply_named(s, \"my.scale\", x);\n"
                       "    cfx_var b = cfx_apply_named(s, \"my.scale\", a, cfx_v(-0.5), "
                       "cfx_var_none(), cfx_var_bool(true));\n"
                       "    cfx_var c = cfx_apply_named(s, \"my.scale\", b, cfx_v(2.0), x);\n")
          != NULL);
    cfx_library_release(lib);
}

static cfx_status write_custom(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_buffer out;
    cfx_library *lib = cfx_library_new(rows, 1, NULL, a, &err);
    cfx_graph *g = lib ? cfx_graph_parse(arg, strlen(arg), a, NULL, &err) : NULL;
    cfx_buffer_init(&out, a);
    if (g)
        cfx_codegen_c(g, &(cfx_module_tree){.library = lib}, NULL, cfx_buffer_sink(&out), &err);
    cfx_buffer_free(&out);
    cfx_graph_release(g);
    cfx_library_release(lib);
    return err.status;
}

/* ---- want of memory ------------------------------------------------------------------------ */

static cfx_status write_with(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_buffer out;
    cfx_graph *g = cfx_graph_parse(arg, strlen(arg), a, NULL, &err);
    cfx_buffer_init(&out, a);
    if (g)
        cfx_codegen_c(g, NULL, NULL, cfx_buffer_sink(&out), &err);
    cfx_buffer_free(&out);
    cfx_graph_release(g);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    char text[sizeof loop];
    memcpy(text, loop, sizeof loop);
    CHECK(test_oom_sweep(write_with, text) > 20);
    CHECK(test_oom_sweep(write_custom, (void *)(uintptr_t)custom) > 20);
    cfx_buffer many = many_parameters(300);
    CHECK(test_oom_sweep(write_with, many.data) > 50);
    cfx_buffer_free(&many);
}

/* A loop whose body is so long that it becomes several functions. */
static void write_long(char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "graph():\n  %%x = placeholder[target=x]()\n"
                                   "  %%loop = call_function[target=cfx.for_loop](3, graph {\n"
                                   "      %%i = placeholder[target=i]()\n"
                                   "      %%n0 = placeholder[target=n0]()\n");
    for (int i = 1; i <= 600; i++)
        used += (size_t)snprintf(text + used, size - used, "      %%n%d = call_function[target="
                                 "cfx.ops.add](%%n%d, %%i)\n", i, i - 1);
    snprintf(text + used, size - used, "      output((%%n600,))\n    }, (%%x,))\n"
             "  output(%%loop)\n");
}

TEST(a_long_region_is_several_functions)
{
    static char text[64000];
    write_long(text, sizeof text);
    const char *code = code_of(text, NULL);
    CHECK(strstr(code, "static void loop_body_part4(cfx_scope *s, cfx_module *self, "
                       "cfx_var *vars)\n") != NULL);
    CHECK(strstr(code,
                 "static cfx_var loop_body(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in)\n"
                 "{\n"
                 "    cfx_module *self = (cfx_module *)ctx;\n"
                 "    static void (*const parts[])(cfx_scope *, cfx_module *, cfx_var *) = {") !=
          NULL);
    CHECK(strstr(code, "    vars[0] = i;\n    vars[1] = in[0];\n") != NULL);
    CHECK(strstr(code, "    vars[0] = n600;\n}\n") != NULL);
    for (size_t fail_at = 0; fail_at < 20000; fail_at += 83) { /* each would take long */
        test_alloc ta;
        const cfx_allocator a = test_alloc_init(&ta);
        ta.fail_at = fail_at;
        const cfx_status status = write_with(&a, text);
        CHECK_INT_EQ(ta.count > fail_at ? CFX_E_NOMEM : CFX_OK, status);
        test_alloc_check(&ta);
        if (status == CFX_OK)
            break;
    }
}
