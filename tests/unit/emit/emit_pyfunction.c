/* emit_pyfunction.c - options, callbacks, transformed bodies, failures. */
#include "emit_check.h"
#include "test_alloc.h"

/* ---- options ------------------------------------------------------------------------------- */

TEST(expanded_def)
{
    const cfx_pycode_options options = {.expanded_def = true};
    start();
    cfx_node *x = with_type(input_default("x", I(3)), "builtins.int");
    input("*a");
    with_type(result(V(x)), "builtins.int");
    EXPECT_WITH(&options,
                "def forward(\n    self,\n    x : int = 3,\n    *a,\n) -> int:\n    _a = a\n"
                "    return x",
                "int | 5:1 6:2 7:2 | 4");
}

TEST(expanded_comments)
{
    static const char *const rows[][2] = {
        {"a  # b", "    a,  # b\n"},
        {"a#b", "    a,  # b\n"},
        {"a #  b  # c", "    a,  # b  # c\n"},
        {"a = '#'  #\tb ", "    a = '#',  # b \n"},
        {"a = \"\\\"#\"", "    a = \"\\\"#\",\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const cfx_pycode_text params[] = {{"self", 4}, {rows[i][0], strlen(rows[i][0])}};
        cfx_buffer out;
        cfx_buffer_init(&out, NULL);
        REQUIRE(cfx_pycode_signature("f", params, 2, (cfx_pycode_text){"", 0}, true,
                                     cfx_buffer_sink(&out), &error) == CFX_OK);
        CHECK(strncmp(out.data, "def f(\n    self,\n", 17) == 0);
        CHECK(strncmp(out.data + 17, rows[i][1], strlen(rows[i][1])) == 0);
        CHECK_STR_EQ("):", out.data + 17 + strlen(rows[i][1]));
        cfx_buffer_free(&out);
    }
}

TEST(record_func)
{
    const cfx_pycode_options options = {.record_func = true};
    start();
    cfx_node *x = input("x");
    cfx_node *w = attribute("w");
    cfx_node *a = CALL("torch.add", V(x), V(w));
    result(TUPLE(V(METHOD("relu", V(a)))));
    EXPECT_WITH(&options,
                "def forward(self, x):\n"
                "    _rf = torch._C._profiler._RecordFunctionFast('## ENTER_GRAPH_PLACEHOLDER_KEY "
                "##'); _rf.__enter__()\n"
                "    w = self.w\n"
                "    _rf_add = torch._C._profiler._RecordFunctionFast('## 2 ##'); "
                "_rf_add.__enter__()\n"
                "    add = torch.add(x, w);  x = w = None\n"
                "    _rf_add.__exit__(None, None, None)\n"
                "    _rf_relu = torch._C._profiler._RecordFunctionFast('## 3 ##'); "
                "_rf_relu.__enter__()\n"
                "    relu = add.relu();  add = None\n"
                "    _rf_relu.__exit__(None, None, None)\n"
                "    return (relu,)\n"
                "    _rf.__exit__(None, None, None)",
                "| 1:- 2:1 3:2 4:2 5:2 6:3 7:3 8:3 9:4 10:4 11:4 | 4");
}

TEST(colored)
{
    const cfx_pycode_options options = {.colored = true};
    start();
    cfx_node *a = CALL("operator.add", V(input("x")), TUPLE(I(1), S("s")));
    result(V(CALL("usermod.ufn", V(a), POINT(I(1), I(2)), DICT(S("a"), I(1)))));
    EXPECT_WITH(&options,
                "def forward(self, x):\n"
                "    add = x + (\033[34m1\033[0m, \033[34m's'\033[0m);  \033[2mx = None\033[0m\n"
                "    ufn = usermod_ufn(add, usermod_Pt(1, 2), \033[34m{'a': 1}\033[0m);  "
                "\033[2madd = None\033[0m\n    return ufn",
                NULL);
}

/* ---- callbacks ----------------------------------------------------------------------------- */

static cfx_status comment(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)gen, (void)err;
    if (cfx_node_op(n) != CFX_OP_CALL_FUNCTION)
        return CFX_OK;
    return say(out, "\n# No stacktrace found for following nodes\n");
}

static cfx_status annotation(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)gen, (void)err;
    return cfx_node_op(n) == CFX_OP_PLACEHOLDER ? CFX_OK : say(out, ": \"f32[2]\"");
}

TEST(verbose)
{
    const cfx_pycode_options options = {.comment = comment, .annotation = annotation};
    start();
    cfx_node *a = with_type(RELU(with_type(input("x"), "builtins.int")), "builtins.float");
    result(V(CALL("operator.iadd", V(a), I(1))));
    EXPECT_WITH(&options,
                "def forward(self, x : int):\n    # No stacktrace found for following nodes\n"
                "    relu: \"f32[2]\" = torch.relu(x);  x = None\n    \n"
                "    # No stacktrace found for following nodes\n"
                "    relu += 1;  iadd: \"f32[2]\" = relu;  relu = None\n    return iadd",
                "int float | 1:0 2:0 3:1 4:1 5:1 6:2 7:3 8:3 | 4");
}

static cfx_status boxed(void *ctx, cfx_pycode *gen, const cfx_pycode_text *params, size_t n,
                        cfx_pycode_text returns, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)gen, (void)err;
    say(out, "def forward(self, args_list)");
    out.write(out.ctx, returns.data, returns.size);
    say(out, ":");
    for (size_t i = 0; i < n; i++) {
        say(out, "\n    ");
        out.write(out.ctx, params[i].data, params[i].size);
        say(out, " = next(args_iter)");
    }
    return CFX_OK;
}

static cfx_status unflatten(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    say(out, "return (\n    ");
    cfx_status status = cfx_pycode_value(gen, cfx_node_arg(n, 0), out, err);
    return status ? status : say(out, ",\n)");
}

TEST(signature_and_output)
{
    const cfx_pycode_options options = {.signature = boxed, .output = unflatten};
    start();
    cfx_node *x = input("x");
    cfx_node *y = input("y");
    with_type(result(LIST(V(CALL("torch.add", V(x), V(y))), S("s"))), "builtins.tuple");
    EXPECT_WITH(&options,
                "def forward(self, args_list) -> tuple:\n    x = next(args_iter)\n"
                "    y = next(args_iter)\n    add = torch.add(x, y);  x = y = None\n"
                "    return (\n        [add, 's'],\n    )",
                "tuple | 3:2 4:3 5:3 6:3 7:3 | 4");
}

/* Joins the pieces as they are, with marks between them and a line in front. */
static cfx_status show_pieces(void *ctx, cfx_pycode *gen, const cfx_pycode_text *pieces, size_t n,
                              cfx_sink out, cfx_error *err)
{
    cfx_buffer *seen = ctx;
    (void)gen, (void)err;
    say(out, "    # one\n");
    for (size_t i = 0; i < n; i++) {
        cfx_buffer_append(seen, pieces[i].data, pieces[i].size);
        cfx_buffer_append(seen, "|", 1);
        out.write(out.ctx, pieces[i].data, pieces[i].size);
    }
    return CFX_OK;
}

TEST(transform)
{
    cfx_buffer seen;
    cfx_buffer_init(&seen, NULL);
    const cfx_pycode_options options = {.transform = show_pieces, .ctx = &seen};
    start();
    cfx_node *x = input("x");
    input("*a");
    cfx_node *w = attribute("w");
    CALL("operator.iadd", V(x), V(w));
    result(V(CALL("torch.add", V(x), S("p\nq"))));
    EXPECT_WITH(&options,
                "def forward(self, x, *a):\n        # one\n    _a = a\n    w = self.w\n"
                "    x += w;  iadd = x;  w = iadd = None\n"
                "    add = torch.add(x, 'p\\nq');  x = None\n    return add",
                "| 1:- 2:1 3:2 4:3 5:4 6:5 7:5 | 4");
    CHECK_STR_EQ("# COUNTER: 0\n|# COUNTER: 1\n|_a = a\n|# COUNTER: 2\n|w = self.w|\n|"
                 "# COUNTER: 3\n|x += w;  iadd = x|;  w = iadd = None\n|# COUNTER: 4\n|"
                 "add = torch.add(x, 'p\\nq')|;  x = None\n|# COUNTER: 5\n|return add|\n|",
                 seen.data);
    cfx_buffer_free(&seen);
}

static cfx_status replace_all(void *ctx, cfx_pycode *gen, const cfx_pycode_text *pieces, size_t n,
                              cfx_sink out, cfx_error *err)
{
    (void)gen, (void)pieces, (void)n, (void)err;
    return say(out, ctx);
}

TEST(transform_to_anything)
{
    static const char *const rows[][3] = {
        {"", "\n    ", "| 1:- | 4"},
        {"abc", "\n    abc", "| 1:- | 4"},
        {"\n\n# a\n\nb\n\n\n", "\n    # a\n    \n    b\n    \n    \n    ",
         "| 1:- 2:- 3:- 4:- 5:- 6:- 7:- 8:- | 4"},
        {"# COUNTER: 1\n\nx\n", "\n    x\n    ", "| 1:1 2:1 3:1 | 4"},
        {"  # COUNTER: 1\n\nx", "\n    x", "| 1:1 2:1 | 4"},
        {"\n# COUNTER: 1\na\n    # COUNTER: 2\nb\r\nc", "\n    a\n    b\r\n    c",
         "| 1:- 2:1 3:2 4:2 | 4"},
        {"# COUNTER: 1\na\n# COUNTER: 2", "\n    a", "| 1:1 | 4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const cfx_pycode_options options = {.transform = replace_all,
                                            .ctx = (void *)(uintptr_t)rows[i][0]};
        cfx_pycode_result code;
        char about[200];
        start();
        result(V(input("x")));
        REQUIRE(cfx_codegen_python(graph, &options, &code, &error) == CFX_OK);
        describe(&code, about, sizeof about);
        CHECK_STR_EQ(rows[i][1], strchr(code.source.data, ':') + 1);
        CHECK_STR_EQ(rows[i][2], about);
        cfx_pycode_free(&code);
        cfx_graph_release(graph);
    }
}

static int is_wrapped(void *ctx, cfx_node *n)
{
    (void)ctx, (void)n;
    return 1;
}

TEST(wrapped)
{
    const cfx_pycode_options options = {.is_wrapped = is_wrapped};
    static const char head[] = "\ncfx._symbolic_trace.wrap(\"usermod_ufn\")\n"
                               "cfx._symbolic_trace.wrap(\"len\")\n"
                               "cfx._symbolic_trace.wrap(\"torch.relu\")\n\n"
                               "def forward(self, x):\n";
    start();
    cfx_node *a = CALL("usermod.ufn", V(CALL("usermod.ufn", V(input("x")))));
    cfx_node *b = CALL("builtins.len", V(a));
    result(V(CALL("operator.add", V(RELU(b)), I(1))));
    cfx_pycode_result code;
    REQUIRE(cfx_codegen_python(graph, &options, &code, &error) == CFX_OK);
    CHECK(strncmp(code.source.data, head, strlen(head)) == 0);
    CHECK_INT_EQ(6, code.prologue_start);
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}

/* `getattr(x, "a")` is written x.a, and nothing is called that could be wrapped. */
TEST(wrapped_getattr)
{
    const cfx_pycode_options options = {.is_wrapped = is_wrapped};
    static const char *const rows[][2] = {
        {"a", "\n\n\ndef forward(self, x):\n"},
        {"a.b", "\ncfx._symbolic_trace.wrap(\"getattr\")\n\ndef forward(self, x):\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cfx_pycode_result code;
        start();
        result(V(CALL("builtins.getattr", V(input("x")), S(rows[i][0]))));
        REQUIRE(cfx_codegen_python(graph, &options, &code, &error) == CFX_OK);
        CHECK(strncmp(code.source.data, rows[i][1], strlen(rows[i][1])) == 0);
        cfx_pycode_free(&code);
        cfx_graph_release(graph);
    }
}

/* ---- the beginning ------------------------------------------------------------------------- */

static int custom_builtin;

static cfx_status take_name(void *ctx, cfx_pycode *gen, cfx_error *err)
{
    const char *name;
    (void)ctx;
    cfx_status status = cfx_pycode_global(gen, &custom_builtin, "x", 1, true, &name, err);
    if (status == CFX_OK)
        CHECK_STR_EQ("x", name);
    return status;
}

TEST(begin)
{
    const cfx_pycode_options options = {.begin = take_name};
    cfx_pycode_result code;
    start();
    result(V(CALL("usermod.ufn", V(input("x")))));
    REQUIRE(cfx_codegen_python(graph, &options, &code, &error) == CFX_OK);
    CHECK_STR_EQ("\n\n\ndef forward(self, x):\n    x_1 = x\n"
                 "    ufn = usermod_ufn(x_1);  x_1 = None\n    return ufn\n    ",
                 code.source.data);
    REQUIRE(code.n_globals == 2);
    CHECK_STR_EQ("x", code.globals[0].name);
    CHECK(code.globals[0].object == &custom_builtin);
    CHECK_STR_EQ("usermod_ufn", code.globals[1].name);
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}

static cfx_status refuse(void *ctx, cfx_pycode *gen, cfx_error *err)
{
    (void)ctx, (void)gen;
    return cfx_error_set(err, CFX_E_HOST, "no");
}

TEST(begin_fails)
{
    const cfx_pycode_options options = {.begin = refuse};
    cfx_pycode_result code;
    start();
    result(V(input("x")));
    CHECK_INT_EQ(CFX_E_HOST, cfx_codegen_python(graph, &options, &code, &error));
    cfx_graph_release(graph);
}

/* A callback may generate the same graph again: the marks are not lost. */
static cfx_status generate_again(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out,
                                 cfx_error *err)
{
    cfx_pycode_result code;
    (void)ctx, (void)gen, (void)n, (void)out;
    cfx_status status = cfx_codegen_python(graph, NULL, &code, err);
    cfx_pycode_free(&code);
    return status;
}

TEST(nested)
{
    const cfx_pycode_options options = {.comment = generate_again, .annotation = generate_again};
    cfx_pycode_result plain;
    cfx_pycode_result code;
    start();
    cfx_node *x = input("x");
    result(V(CALL("torch.add", V(RELU(RELU(x))), V(x))));
    REQUIRE(cfx_codegen_python(graph, NULL, &plain, &error) == CFX_OK);
    REQUIRE(cfx_codegen_python(graph, &options, &code, &error) == CFX_OK);
    CHECK_STR_EQ(plain.source.data, code.source.data);
    cfx_pycode_free(&plain);
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}

/* ---- failures ------------------------------------------------------------------------------ */

static void expect_failure(cfx_status status, const char *message)
{
    cfx_pycode_result code;
    memset(&error, 0, sizeof error);
    CHECK_INT_EQ(status, cfx_codegen_python(graph, NULL, &code, &error));
    CHECK_STR_EQ(message, error.message);
    CHECK(code.source.data == NULL && code.memory == NULL);
    cfx_graph_release(graph);
}

TEST(too_few_arguments)
{
    start();
    CHECK_INT_EQ(CFX_OK,
                 cfx_node_set_location(CALL("operator.add", I(1)), "model.py", 12, &error));
    expect_failure(CFX_E_INDEX,
                   "model.py:12: operator.add needs 2 positional arguments, got 1 (node %add)");
    start();
    CALL("operator.setitem", I(1), I(2));
    expect_failure(CFX_E_INDEX,
                   "operator.setitem needs 3 positional arguments, got 2 (node %setitem)");
    start();
    cfx_graph_call(graph, CFX_OP_CALL_METHOD, "relu", NULL, 0, NULL, 0, &error);
    expect_failure(CFX_E_INDEX, "relu needs 1 positional argument, got 0 (node %relu)");
    start();
    CALL("builtins.getattr", I(1));
    expect_failure(CFX_E_INDEX,
                   "builtins.getattr needs 2 positional arguments, got 1 (node %getattr_1)");
    start();
    cfx_graph_call(graph, CFX_OP_OUTPUT, "output", NULL, 0, NULL, 0, &error);
    expect_failure(CFX_E_INDEX, "the output has no value (node %output)");
}

TEST(region_in_the_wrong_place)
{
    start();
    cfx_value r = unary_region(NULL, "x");
    CALL("torch.relu", r);
    expect_failure(CFX_E_UNSUPPORTED,
                   "a value of kind graph cannot be written as a Python expression (node %relu)");
    start();
    r = unary_region(NULL, "x");
    cfx_value r2 = unary_region(NULL, "x");
    CALL("cfx.cond", I(1), r, r2, TUPLE(I(1), I(2)));
    expect_failure(CFX_E_GRAPH,
                   "inputs of a branch: the region has 1, but 2 are given (node %cond)");
    start();
    region_begin();
    r = region_end();
    CALL("cfx.for_loop", I(1), r);
    expect_failure(CFX_E_GRAPH, "a region has no output (node %for_loop)");
}

TEST(function_without_name)
{
    object lambda = {NULL, "<lambda>"};
    start_hosted();
    call_object(&lambda, I(1));
    expect_failure(CFX_E_KEY, "the function or type has no qualified name (node %lambda_1)");
}

static cfx_status fail(void *ctx, cfx_pycode *gen, cfx_node *n, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)gen, (void)n, (void)out;
    return cfx_error_set(err, CFX_E_HOST, "raised");
}

TEST(failing_callback)
{
    const cfx_pycode_options all[] = {{.comment = fail}, {.annotation = fail}, {.output = fail}};
    for (size_t i = 0; i < 3; i++) {
        cfx_pycode_result code;
        start();
        result(V(RELU(input("x"))));
        CHECK_INT_EQ(CFX_E_HOST, cfx_codegen_python(graph, &all[i], &code, &error));
        cfx_graph_release(graph);
    }
}

/* Everything at once: names that collide, regions, types, wraps, host text. */
static void build_all_sorts(void)
{
    cfx_node *x = with_type(input_default("x", I(3)), "usermod.Cls");
    cfx_node *rest = input("*rest");
    cfx_value then = unary_region("usermod.ufn", "x");
    cfx_value other = unary_region("torch.neg", "a");
    cfx_node *a = CALL("usermod.ufn", V(x), S("text"), POINT(V(rest), I(2)));
    cfx_node *b = with_name(METHOD("0.add_", V(a)), "usermod_ufn_1");
    cfx_node *c = CALL("cfx.cond", V(b), then, other, TUPLE(V(a)));
    region_begin();
    cfx_node *i = input("i");
    cfx_node *state = input("state");
    cfx_node *kept = input("kept");
    cfx_value inner_then = unary_region("torch.neg", "a");
    cfx_node *zero = CALL("operator.eq", V(i), I(0));
    cfx_node *d = CALL("cfx.cond", V(zero), inner_then, unary_region(NULL, "a"), TUPLE(V(state)));
    result(TUPLE(V(d), V(kept)));
    cfx_node *loop = CALL("cfx.for_loop", I(2), region_end(), TUPLE(V(c), LIST(V(rest))));
    c = CALL("operator.getitem", V(loop), I(0));
    with_type(result(V(CALL("operator.iadd", V(c), HOST("usermod.thing")))), "usermod.Cls");
}

/* Memory is short in the generator only: the graph is built before the counting starts. */
static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    test_alloc *ta = a->ctx;
    const size_t fail_at = ta->fail_at;
    cfx_pycode_options options = {.comment = comment, .annotation = annotation,
                                  .is_wrapped = is_wrapped, .expanded_def = true};
    if (strcmp(arg, "transform") == 0) {
        options.transform = replace_all;
        options.ctx = (void *)(uintptr_t) "# COUNTER: 1\na\nb\n";
    }
    ta->fail_at = TEST_ALLOC_NEVER;
    graph = cfx_graph_new(a, NULL, &error);
    build_all_sorts();
    ta->count = 0;
    ta->fail_at = fail_at;
    cfx_status status;
    if (strcmp(arg, "file") == 0) {
        cfx_buffer text;
        cfx_buffer_init(&text, a);
        status = cfx_codegen_python_file(graph, "Net", cfx_buffer_sink(&text), &error);
        cfx_buffer_free(&text);
    } else {
        cfx_pycode_result code;
        status = cfx_codegen_python(graph, &options, &code, &error);
        if (status == CFX_OK)
            cfx_pycode_free(&code);
    }
    cfx_graph_release(graph);
    return status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(sweep, "plain") > 10);
    CHECK(test_oom_sweep(sweep, "transform") > 10);
    CHECK(test_oom_sweep(sweep, "file") > 10);
}

/* ---- size ---------------------------------------------------------------------------------- */

TEST(many_nodes)
{
    enum { N = 100000 };
    start();
    cfx_node *x = input("x");
    for (int i = 0; i < N; i++)
        x = CALL("operator.add", V(x), I(i));
    result(V(x));
    cfx_pycode_result code;
    REQUIRE(cfx_codegen_python(graph, NULL, &code, &error) == CFX_OK);
    CHECK_INT_EQ(N + 2, code.n_lines);
    CHECK_INT_EQ(N, code.line_nodes[N - 1]);
    CHECK(strstr(code.source.data, "    add_99999 = add_99998 + 99999;  add_99998 = None\n"));
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}
