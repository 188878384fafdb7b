/* module_effect.c - tests of src/analysis/module_effect.c and memory.c. */
#include "check.h"
#include "modules_fixture.h"
#include "test_alloc.h"

#include "analysis/effects_impl.h"
#include "pass/pass_impl.h"

#include <cfx/effect.h>

/* The children of a module of the fake tree are the modules one level below it. */
static cfx_status each_child(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx,
                             cfx_error *err)
{
    const fake_tree *tree = ctx;
    const size_t size = strlen(path);
    for (size_t i = 0; i < tree->n; i++) {
        const fake_entry *e = &tree->entries[i];
        if (!e->class_name || strlen(e->path) <= size || memcmp(e->path, path, size) != 0 ||
            (size > 0 && e->path[size] != '.'))
            continue;
        const char *name = e->path + size + (size > 0);
        cfx_status status = strchr(name, '.') ? CFX_OK : fn(fn_ctx, name, err);
        if (status != CFX_OK)
            return status;
    }
    return CFX_OK;
}

/* Everything derives from dropout. */
static cfx_status each_class(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx,
                             cfx_error *err)
{
    (void)ctx;
    (void)path;
    cfx_status status = fn(fn_ctx, "my.Class", err);
    return status == CFX_OK ? fn(fn_ctx, "torch.nn.Dropout", err) : status;
}

static cfx_status no_class(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx,
                           cfx_error *err)
{
    (void)ctx;
    (void)path;
    (void)fn;
    (void)fn_ctx;
    return cfx_error_set(err, CFX_E_HOST, "no");
}

/* What a call of the module at `path` does; -1 if that cannot be told. */
static int does_at(const cfx_module_tree *modules, const char *path, bool strict, cfx_error *err)
{
    unsigned does = 0;
    cfxi_effect_model m = {.modules = modules, .strict = strict};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_MODULE, path, NULL, 0, NULL, 0, NULL);
    const cfx_status status = cfxi_analysis_does(&m, n, &does, err);
    cfxi_analysis_model_end(&m);
    cfx_graph_release(g);
    return status == CFX_OK ? (int)does : -1;
}

static int does_of(const cfx_module_tree *modules, const char *path)
{
    return does_at(modules, path, false, NULL);
}

static fake_tree models(void)
{
    fake_tree tree = {.n = 0};
    fake_module(&tree, "a", "torch.nn.Sequential", NULL);
    fake_module(&tree, "a.fc", "torch.nn.Linear", NULL);
    fake_module(&tree, "a.drop", "torch.nn.Dropout", NULL);
    fake_module(&tree, "act", "torch.nn.ReLU", NULL);
    fake_module(&tree, "pool", "torch.nn.FractionalMaxPool2d", NULL);
    fake_module(&tree, "cube", "torch.nn.FractionalMaxPool3d", NULL);
    fake_module(&tree, "rnn", "torch.nn.RNNBase", NULL);
    fake_module(&tree, "bn", "torch.nn.BatchNorm2d", NULL);
    return tree;
}

static void train(fake_tree *tree, bool training)
{
    char path[64];
    static const char *const names[] = {"a", "a.fc", "a.drop", "pool", "cube", "rnn", "bn"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s.training", names[i]);
        fake_attr(tree, path, cfx_value_bool(training));
    }
}

TEST(by_rows_and_training)
{
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    modules.each_child = each_child;
    for (int training = 0; training < 2; training++) {
        train(&tree, training);
        CHECK_INT_EQ(training ? CFXI_DRAWS : 0, does_of(&modules, "a"));
        CHECK_INT_EQ(training ? CFXI_DRAWS : 0, does_of(&modules, "a.drop"));
        CHECK_INT_EQ(training ? CFXI_DRAWS : 0, does_of(&modules, "rnn"));
        CHECK_INT_EQ(training ? CFXI_WRITES_STATE : 0, does_of(&modules, "bn"));
        CHECK_INT_EQ(0, does_of(&modules, "a.fc"));
        CHECK_INT_EQ(CFXI_DRAWS, does_of(&modules, "pool"));
        CHECK_INT_EQ(CFXI_DRAWS, does_of(&modules, "cube"));
    }
    modules.each_child = NULL;
    CHECK_INT_EQ(0, does_of(&modules, "a"));
    CHECK_INT_EQ(CFXI_UNKNOWN, does_of(&modules, "nobody"));
}

TEST(by_settings)
{
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    modules.each_child = each_child;
    train(&tree, true);
    fake_attr(&tree, "a.drop.p", cfx_value_float(0));
    CHECK_INT_EQ(0, does_of(&modules, "a"));
    fake_attr(&tree, "rnn.dropout", cfx_value_float(0));
    CHECK_INT_EQ(0, does_of(&modules, "rnn"));
    fake_attr(&tree, "bn.track_running_stats", cfx_value_bool(false));
    CHECK_INT_EQ(0, does_of(&modules, "bn"));
    fake_module(&tree, "rows", "torch.nn.Embedding", NULL);
    CHECK_INT_EQ(0, does_of(&modules, "rows"));
    fake_attr(&tree, "rows.max_norm", cfx_value_float(2));
    CHECK_INT_EQ(CFXI_WRITES_STATE, does_of(&modules, "rows"));
}

TEST(by_flags)
{
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    modules.each_child = each_child;
    CHECK_INT_EQ(0, does_of(&modules, "act"));
    fake_attr(&tree, "act.inplace", cfx_value_bool(true));
    CHECK_INT_EQ(CFXI_WRITES_ARGUMENTS, does_of(&modules, "act"));
    fake_attr(&tree, "act.inplace", cfx_value_bool(false));
    fake_attr(&tree, "act._is_impure", cfx_value_int(1));
    CHECK_INT_EQ(CFXI_WRITES_ALL | CFXI_KEPT, does_of(&modules, "act"));
    fake_attr(&tree, "act._is_impure", cfx_value_none());
    CHECK_INT_EQ(0, does_of(&modules, "act"));
}

TEST(unknown_classes)
{
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    modules.each_child = each_child;
    fake_module(&tree, "a.mine", "my.Class", NULL);
    CHECK_INT_EQ(CFXI_UNKNOWN, does_of(&modules, "a.mine"));
    CHECK_INT_EQ(CFXI_UNKNOWN, does_of(&modules, "a"));
    CHECK_INT_EQ(CFXI_UNKNOWN | CFXI_WRITES_ALL, does_at(&modules, "a", true, NULL));
    CHECK_INT_EQ(0, does_at(&modules, "act", true, NULL));
}

static cfx_graph *parse(const char *text)
{
    return cfx_graph_parse(text, strlen(text), NULL, NULL, NULL);
}

/* A captured module is known by its graph: only what is visible outside counts. */
TEST(captured_modules)
{
    static const struct {
        const char *body;
        int does;
    } cases[] = {
        {"%y = call_function[target=torch.relu](%x)", 0},
        {"%z = call_function[target=torch.exp](%x) %y = call_method[target=add_](%z, 1)", 0},
        {"%y = call_method[target=add_](%x, 1)", CFXI_WRITES_ALL},
        {"%w = get_attr[target=w]() %y = call_method[target=add_](%w, 1)", CFXI_WRITES_ALL},
        {"%y = call_function[target=torch.nn.functional.dropout](%x)", CFXI_DRAWS},
        {"%y = call_function[target=my.function](%x)", CFXI_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, "graph(): %%x = placeholder[target=x]() %s output(%%y)",
                 cases[i].body);
        fake_tree tree = models();
        cfx_module_tree modules = fake_modules(&tree);
        cfx_graph *inner = parse(text);
        fake_module(&tree, "inner", "my.Class", inner);
        if (!CHECK_INT_EQ(cases[i].does, does_of(&modules, "inner")))
            printf("    %s\n", cases[i].body);
        cfx_graph_release(inner);
    }
}

TEST(classes_that_derive_from_others)
{
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    cfx_error err = {.status = CFX_OK};
    modules.each_class = each_class;
    CHECK_INT_EQ(0, does_of(&modules, "a.fc"));
    train(&tree, true);
    CHECK_INT_EQ(CFXI_DRAWS, does_of(&modules, "a.fc"));
    modules.each_class = no_class;
    CHECK_INT_EQ(-1, does_at(&modules, "a.fc", false, &err));
    CHECK_INT_EQ(CFX_E_HOST, err.status);
}

/* ---- statistics ----------------------------------------------------------------------------- */

/* How many nodes cse leaves of two equal calls with `between` between them. */
static size_t left_by_cse(bool training, const char *twice, const char *between)
{
    char text[600];
    bool changed;
    snprintf(text, sizeof text, "graph(): %%x = placeholder[target=x]() %%a = %s %%b = %s %%c = %s "
             "output((%%a, %%c))", twice, between, twice);
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    fake_tensor(&tree, "bn.running_mean", 1, 1);
    fake_tensor(&tree, "w", 1, 1);
    modules.each_child = each_child;
    modules.memory = modules.identity;
    train(&tree, training);
    cfx_graph *g = parse(text);
    CHECK(g != NULL);
    CHECK_INT_EQ(CFX_OK, cfxi_pass_cse(g, &modules, NULL, &changed, NULL));
    const size_t size = cfx_graph_size(g);
    cfx_graph_release(g);
    return size;
}

TEST(statistics_change_while_a_norm_trains)
{
    static const char mean[] = "call_function[target=torch.exp](%m)";
    char graph[600];
    for (int training = 0; training < 2; training++) {
        snprintf(graph, sizeof graph, "graph(): %%x = placeholder[target=x]() "
                 "%%m = get_attr[target=bn.running_mean]() %%w = get_attr[target=w]() "
                 "%%a = %s %%v = call_function[target=torch.exp](%%w) "
                 "%%b = call_module[target=bn](%%x) %%c = %s "
                 "%%u = call_function[target=torch.exp](%%w) output((%%a, %%c, %%v, %%u))", mean,
                 mean);
        fake_tree tree = models();
        cfx_module_tree modules = fake_modules(&tree);
        fake_tensor(&tree, "bn.running_mean", 1, 1);
        fake_tensor(&tree, "w", 1, 1);
        modules.memory = modules.identity;
        train(&tree, training);
        cfx_graph *g = parse(graph);
        bool changed = false;
        CHECK_INT_EQ(CFX_OK, cfxi_pass_cse(g, &modules, NULL, &changed, NULL));
        CHECK_INT_EQ(training, cfx_graph_find(g, "c") != NULL);
        CHECK(cfx_graph_find(g, "u") == NULL);  /* w is another memory */
        cfx_graph_release(g);
    }
    CHECK_INT_EQ(4, left_by_cse(false, "call_module[target=bn](%x)",
                                "call_module[target=act](%x)"));
    CHECK_INT_EQ(5, left_by_cse(true, "call_module[target=bn](%x)", "call_module[target=act](%x)"));
    static const char norm[] = "call_module[target=bn](%x)";
    CHECK_INT_EQ(4, left_by_cse(true, "call_module[target=a.fc](1)", norm));
    /* an input may be any memory, also that of the statistics */
    CHECK_INT_EQ(5, left_by_cse(true, "call_module[target=a.fc](%x)", norm));
}

/* A module that is its own child, twice. */
static cfx_status itself(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx, cfx_error *err)
{
    (void)ctx;
    (void)path;
    cfx_status status = fn(fn_ctx, "a", err);
    return status == CFX_OK ? fn(fn_ctx, "b", err) : status;
}

static const void *the_same(void *ctx, const char *path)
{
    (void)path;
    return ctx;
}

TEST(a_module_below_itself_is_seen_once)
{
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    modules.each_child = itself;
    modules.identity = the_same;
    CHECK_INT_EQ(0, does_of(&modules, "a"));
}

static cfx_status body(const cfx_allocator *a, void *ctx)
{
    static const char text[] = "graph(): %x = placeholder[target=x]() "
        "%a = call_module[target=a](%x) %m = get_attr[target=bn.running_mean]() "
        "%b = call_module[target=bn](%a) "
        "%n = call_method[target=add_](%m, 1) %c = call_module[target=inner](%b) "
        "output((%c, %n))";
    static const char inner[] = "graph(): %x = placeholder[target=x]() "
        "%z = call_function[target=torch.exp](%x) %y = call_method[target=add_](%z, 1) output(%y)";
    cfx_error err = {.status = CFX_OK};
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    modules.each_child = each_child;
    modules.memory = modules.identity;
    train(&tree, true);
    fake_tensor(&tree, "bn.running_mean", 1, 1);
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, a, NULL, &err);
    cfx_graph *captured = g ? cfx_graph_parse(inner, sizeof inner - 1, a, NULL, &err) : NULL;
    (void)ctx;
    fake_module(&tree, "inner", "my.Class", captured);
    cfx_status status = captured ? cfxi_pass_cse(g, &modules, NULL, NULL, &err) : err.status;
    cfx_graph_release(captured);
    cfx_graph_release(g);
    return status;
}

TEST(running_out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 5);
}
