/* const_fold.c - tests of src/pass/const_fold.c and split_constants.c; more in the golden
 * files and in tests/python/test_const_fold.py.
 */
#include "check.h"
#include "test_alloc.h"
#include "pass/pass_impl.h"

#include <cfx/pass.h>
#include <cfx/embed/split.h>

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static void check_graph(const char *expected, cfx_graph *g)
{
    cfx_graph *want = parse(expected, NULL, NULL);
    CHECK(want != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    CHECK(cfx_graph_equal(want, g, false));
    cfx_graph_release(want);
}

static const char source[] =
    "graph(): %x = placeholder[target=x]() %w = get_attr[target=w]() %n = get_attr[target=size]() "
    "%e = call_function[target=torch.exp](%w) %m = call_function[target=operator.mul](%n, 2) "
    "%f = call_function[target=torch.mul](%e, %m) %y = call_method[target=view](%x, %m) "
    "%z = call_function[target=torch.add](%y, %f) output((%z, %w))";

/* ---- modules whose tensors are names ------------------------------------------------------- */

typedef struct fake {
    cfx_module_tree table;
    int calls;
    char set[64];     /* the last path that was set */
    bool fails;
} fake;

static cfx_value fake_get(void *ctx, cfx_graph *g, const char *path, cfx_error *err)
{
    (void)ctx;
    if (strcmp(path, "size") == 0)
        return cfx_value_int(4);
    if (strcmp(path, "elu.inplace") == 0)
        return cfx_value_bool(true);
    if (strcmp(path, "missing") == 0) {
        cfx_error_set(err, CFX_E_KEY, "no %s", path);
        return cfx_value_invalid();
    }
    return cfx_value_name(g, path, strlen(path), err);
}

static cfx_status fake_set(void *ctx, cfx_graph *g, const char *path, cfx_value v, cfx_error *err)
{
    (void)g;
    (void)v;
    (void)err;
    snprintf(((fake *)ctx)->set, sizeof ((fake *)ctx)->set, "%s", path);
    return CFX_OK;
}

static const void *fake_identity(void *ctx, const char *path)
{
    if (strcmp(path, "tied") == 0 || strcmp(path, "twin") == 0)
        return source;
    return strcmp(path, "_folded_0") == 0 ? ctx : NULL;
}

static cfx_status fake_class_name(void *ctx, const char *path, cfx_sink out, cfx_error *err)
{
    (void)path;
    if (((fake *)ctx)->fails)
        return cfx_error_set(err, CFX_E_HOST, "no class today");
    return out.write(out.ctx, "torch.nn.ELU", 12);
}

static cfx_value fake_call(void *ctx, cfx_graph *g, cfx_operator op, const cfx_value *args,
                           size_t n, cfx_error *err)
{
    fake *f = ctx;
    (void)op;
    (void)args;
    (void)n;
    f->calls++;
    if (!f->fails)
        return cfx_value_name(g, "result", 6, err);
    cfx_error_set(err, CFX_E_VALUE, "cannot");
    return cfx_value_invalid();
}

static fake make_fake(void)
{
    return (fake){.table = {.get = fake_get, .set = fake_set, .identity = fake_identity,
                            .call = fake_call, .class_name = fake_class_name}};
}

TEST(tensors_become_attributes_and_numbers_literals)
{
    fake f = make_fake();
    bool changed;
    cfx_graph *g = parse(source, NULL, NULL);
    f.table.ctx = &f;
    CHECK_INT_EQ(CFX_OK, cfxi_pass_const_fold(g, &f.table, NULL, &changed, NULL));
    check_graph("graph(): %x = placeholder[target=x]() %w = get_attr[target=w]() "
                "%_folded_1 = get_attr[target=_folded_1]() %y = call_method[target=view](%x, 8) "
                "%z = call_function[target=torch.add](%y, %_folded_1) output((%z, %w))", g);
    CHECK(changed);
    CHECK_INT_EQ(2, f.calls);
    CHECK_STR_EQ("_folded_1", f.set);  /* the first name is taken */
    cfx_graph_release(g);
}

TEST(a_failure_changes_nothing)
{
    fake f = make_fake();
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(source, NULL, NULL);
    f.table.ctx = &f;
    f.fails = true;
    CHECK_INT_EQ(CFX_E_VALUE, cfxi_pass_const_fold(g, &f.table, NULL, NULL, &err));
    CHECK_STR_EQ("cannot (while folding node %e)", err.message);
    check_graph(source, g);
    cfx_graph_release(g);
}

TEST(attributes_that_are_missing_or_written_to_are_left_alone)
{
    static const char text[] = "graph(): %a = get_attr[target=missing]() "
        "%b = get_attr[target=w]() %c = call_method[target=add_](%b, 1) "
        "%d = get_attr[target=w]() %e = call_function[target=torch.exp](%d) "
        "%f = call_function[target=torch.exp](%a) output((%e, %f))";
    fake f = make_fake();
    bool changed;
    cfx_graph *g = parse(text, NULL, NULL);
    f.table.ctx = &f;
    CHECK_INT_EQ(CFX_OK, cfxi_pass_const_fold(g, &f.table, NULL, &changed, NULL));
    CHECK(!changed && f.calls == 0);
    check_graph(text, g);
    cfx_graph_release(g);
}

/* Whether nothing in a graph can be folded. */
static void check_stays(const char *text)
{
    fake f = make_fake();
    bool changed;
    cfx_graph *g = parse(text, NULL, NULL);
    f.table.ctx = &f;
    CHECK_INT_EQ(CFX_OK, cfxi_pass_const_fold(g, &f.table, NULL, &changed, NULL));
    CHECK(!changed && f.calls == 0);
    check_graph(text, g);
    cfx_graph_release(g);
}

TEST(writes_are_seen_through_other_paths_regions_and_modules)
{
    check_stays("graph(): %a = get_attr[target=tied]() %b = call_method[target=add_](%a, 1) "
                "%c = get_attr[target=twin]() %d = call_function[target=torch.exp](%c) "
                "output(%d)");
    check_stays("graph(): %x = placeholder[target=x]() %a = get_attr[target=tied]() "
                "%b = call_method[target=add_](%a, 1) "
                "%c = call_function[target=cfx.cond](%x, graph { %w = get_attr[target=twin]() "
                "%d = call_function[target=torch.exp](%w) output(%d) }, graph { output(1) }, ()) "
                "output(%c)");
    check_stays("graph(): %x = placeholder[target=x]() "
                "%c = call_function[target=cfx.cond](%x, graph { %w = get_attr[target=w]() "
                "%d = call_method[target=add_](%w, 1) output(1) }, graph { output(1) }, ()) "
                "%w = get_attr[target=w]() %e = call_function[target=torch.exp](%w) output(%e)");
    check_stays("graph(): %w = get_attr[target=w]() %e = call_function[target=torch.exp](%w) "
                "%r = call_module[target=elu](%e) output((%r, %e))");
}

TEST(a_host_that_fails_to_name_a_class_is_heard)
{
    fake f = make_fake();
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse("graph(): %x = placeholder[target=x]() %r = call_module[target=elu](%x) "
                         "output(%r)", NULL, NULL);
    cfx_operator op;
    f.table.ctx = &f;
    CHECK_INT_EQ(CFX_OK, cfx_node_operator_of(cfx_graph_find(g, "r"), &f.table, &op, &err));
    CHECK_INT_EQ(CFX_OPID_elu, op);
    f.fails = true;
    CHECK_INT_EQ(CFX_E_HOST, cfx_node_operator_of(cfx_graph_find(g, "r"), &f.table, &op, &err));
    CHECK_STR_EQ("no class today", err.message);
    CHECK_INT_EQ(CFX_OK, cfxi_pass_const_fold(g, &f.table, NULL, NULL, &err));  /* nothing to do */
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_cse(g, &f.table, NULL, NULL, &err));
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_annotate(g, &f.table, NULL, NULL, &err));
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_functionalize(g, &f.table, NULL, NULL, &err));
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_reinplace(g, &f.table, NULL, NULL, &err));
    cfx_graph_release(g);
    g = parse("graph(): %w = get_attr[target=w]() %r = call_module[target=elu](%w) output(%r)",
              NULL, NULL);
    CHECK_INT_EQ(CFX_E_HOST, cfxi_pass_const_fold(g, &f.table, NULL, NULL, &err));
    cfx_graph_release(g);
}

/* A module in place writes to what it is given: what is computed before and after is not one. */
TEST(modules_in_place_write)
{
    static const char text[] = "graph(): %x = placeholder[target=x]() "
        "%a = call_function[target=torch.exp](%x) %r = call_module[target=elu](%a) "
        "%b = call_function[target=torch.exp](%x) output((%r, %b))";
    fake f = make_fake();
    cfx_effect effect;
    bool changed;
    cfx_graph *g = parse(text, NULL, NULL);
    f.table.ctx = &f;
    CHECK_INT_EQ(CFX_OK, cfx_node_effect(cfx_graph_find(g, "r"), &f.table, &effect, NULL));
    CHECK_INT_EQ(CFX_EFFECT_WRITES, effect);
    CHECK_INT_EQ(CFX_OK, cfx_node_effect(cfx_graph_find(g, "r"), NULL, &effect, NULL));
    CHECK_INT_EQ(CFX_EFFECT_ALONE, effect);
    CHECK_INT_EQ(CFX_OK, cfxi_pass_cse(g, &f.table, NULL, &changed, NULL));
    CHECK(!changed);
    check_graph(text, g);
    cfx_graph_release(g);
}

/* ---- constants cut off --------------------------------------------------------------------- */

static int skip_all(void *ctx, cfx_node *n)
{
    (void)n;
    return *(int *)ctx;
}

TEST(constants_and_the_rest)
{
    cfx_subgraph constants, rest;
    cfx_graph *g = parse(source, NULL, NULL);
    cfx_constants_options what = {.path = "folded"};
    CHECK_INT_EQ(CFX_OK, cfx_graph_split_constants(g, &what, &constants, &rest, NULL));
    check_graph("graph(): %w = get_attr[target=w]() %e = call_function[target=torch.exp](%w) "
                "%n = get_attr[target=size]() %m = call_function[target=operator.mul](%n, 2) "
                "%f = call_function[target=torch.mul](%e, %m) output((%m, %f))", constants.graph);
    check_graph("graph(): %x = placeholder[target=x]() %w = get_attr[target=w]() "
                "%folded = get_attr[target=folded]() "
                "%getitem = call_function[target=operator.getitem](%folded, 0) "
                "%getitem_1 = call_function[target=operator.getitem](%folded, 1) "
                "%y = call_method[target=view](%x, %getitem) "
                "%z = call_function[target=torch.add](%y, %getitem_1) output((%z, %w))",
                rest.graph);
    CHECK(rest.origins[3] == cfx_graph_find(g, "m") && rest.origins[2] == NULL);
    cfx_subgraph_free(&constants);
    cfx_subgraph_free(&rest);
    int answer = 1;
    what = (cfx_constants_options){.skip = skip_all, .ctx = &answer, .path = "folded"};
    CHECK_INT_EQ(CFX_OK, cfx_graph_split_constants(g, &what, &constants, &rest, NULL));
    CHECK(constants.graph == NULL && rest.graph == NULL);
    answer = -1;
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_split_constants(g, &what, &constants, &rest, NULL));
    cfx_graph_release(g);
}

TEST(what_is_written_to_by_way_of_a_view_is_no_constant)
{
    cfx_subgraph constants, rest;
    cfx_graph *g = parse("graph(): %w = get_attr[target=w]() %v = call_method[target=view](%w, -1) "
                         "%i = call_method[target=add_](%v, 1) %u = get_attr[target=w]() "
                         "%e = call_function[target=torch.exp](%u) output(%e)", NULL, NULL);
    const cfx_constants_options what = {.path = "folded"};
    CHECK_INT_EQ(CFX_OK, cfx_graph_split_constants(g, &what, &constants, &rest, NULL));
    CHECK(constants.graph == NULL && rest.graph == NULL);
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_subgraph constants, rest;
    cfx_graph *g = parse(source, a, &err);
    const cfx_constants_options what = {.path = "folded"};
    fake f = make_fake();
    f.table.ctx = &f;
    if (g && arg && cfx_graph_split_constants(g, &what, &constants, &rest, &err) == CFX_OK) {
        cfx_subgraph_free(&constants);
        cfx_subgraph_free(&rest);
    } else if (g && !arg) {
        cfxi_pass_const_fold(g, &f.table, NULL, NULL, &err);
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(every_allocation_may_fail)
{
    int split = 1;
    CHECK(test_oom_sweep(body, NULL) > 10);
    CHECK(test_oom_sweep(body, &split) > 10);
}
