/* module_effect.c - tests of src/analysis/module_effect.c. */
#include "check.h"
#include "modules_fixture.h"
#include "test_alloc.h"

#include <cfx/effect.h>
#include <cfx/embed/effect.h>

/* The children of a module of the fake tree are the modules one level below it. */
static cfx_status each_child(void *ctx, const char *path, cfx_name_fn *fn, void *fn_ctx,
                             cfx_error *err)
{
    const fake_tree *tree = ctx;
    const size_t size = strlen(path);
    for (size_t i = 0; i < tree->n; i++) {
        const fake_entry *e = &tree->entries[i];
        if (!e->class_name || strlen(e->path) <= size || memcmp(e->path, path, size) != 0)
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

static int effect_of(const cfx_module_tree *modules, const char *path)
{
    cfx_effect effect = CFX_EFFECT_WRITES;
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_module_tree_effect(modules, g, path, &effect, NULL));
    cfx_graph_release(g);
    return (int)effect;
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
    static const char *const trained[] = {"a", "a.drop", "bn", "rnn"};
    for (int training = 0; training < 2; training++) {
        train(&tree, training);
        const int want = training ? CFX_EFFECT_ALONE : CFX_EFFECT_NONE;
        for (size_t i = 0; i < sizeof trained / sizeof *trained; i++)
            CHECK_INT_EQ(want, effect_of(&modules, trained[i]));
        CHECK_INT_EQ(want, effect_of(&modules, "a.drop"));
        CHECK_INT_EQ(CFX_EFFECT_NONE, effect_of(&modules, "a.fc"));
        CHECK_INT_EQ(CFX_EFFECT_ALONE, effect_of(&modules, "pool"));
        CHECK_INT_EQ(CFX_EFFECT_ALONE, effect_of(&modules, "cube"));
        CHECK_INT_EQ(CFX_EFFECT_ALONE, effect_of(&modules, ""));
    }
    modules.each_child = NULL;
    CHECK_INT_EQ(CFX_EFFECT_NONE, effect_of(&modules, "a"));
    CHECK_INT_EQ(CFX_EFFECT_NONE, effect_of(&modules, "nobody"));
}

TEST(by_flags)
{
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    modules.each_child = each_child;
    CHECK_INT_EQ(CFX_EFFECT_NONE, effect_of(&modules, "act"));
    fake_attr(&tree, "act.inplace", cfx_value_bool(true));
    CHECK_INT_EQ(CFX_EFFECT_WRITES, effect_of(&modules, "act"));
    fake_attr(&tree, "act.inplace", cfx_value_bool(false));
    fake_attr(&tree, "act._is_impure", cfx_value_int(1));
    CHECK_INT_EQ(CFX_EFFECT_WRITES, effect_of(&modules, "act"));
    fake_attr(&tree, "act._is_impure", cfx_value_none());
    CHECK_INT_EQ(CFX_EFFECT_NONE, effect_of(&modules, "act"));
    fake_attr(&tree, "a.fc.inplace", cfx_value_float(1));
    CHECK_INT_EQ(CFX_EFFECT_WRITES, effect_of(&modules, "a"));
}

TEST(classes_that_derive_from_others)
{
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    modules.each_class = each_class;
    CHECK_INT_EQ(CFX_EFFECT_NONE, effect_of(&modules, "a.fc"));
    train(&tree, true);
    CHECK_INT_EQ(CFX_EFFECT_ALONE, effect_of(&modules, "a.fc"));
    cfx_effect effect;
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    modules.each_class = no_class;
    CHECK_INT_EQ(CFX_E_HOST, cfx_module_tree_effect(&modules, g, "a.fc", &effect, NULL));
    CHECK_INT_EQ(CFX_EFFECT_WRITES, effect);
    cfx_graph_release(g);
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
    CHECK_INT_EQ(CFX_EFFECT_NONE, effect_of(&modules, "a"));
}

static cfx_status body(const cfx_allocator *a, void *ctx)
{
    cfx_error err = {.status = CFX_OK};
    cfx_effect effect;
    fake_tree tree = models();
    cfx_module_tree modules = fake_modules(&tree);
    modules.each_child = each_child;
    cfx_graph *g = cfx_graph_new(a, NULL, &err);
    (void)ctx;
    if (!g)
        return err.status;
    cfx_status status = cfx_module_tree_effect(&modules, g, "", &effect, &err);
    cfx_graph_release(g);
    return status;
}

TEST(running_out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 5);
}
