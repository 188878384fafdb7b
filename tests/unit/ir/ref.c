/* ref.c - tests of host objects, names that stand for them, and regions. */
#include "graph_test.h"

#include "ir/graph_impl.h"

typedef struct setup {
    test_alloc ta;
    cfx_allocator allocator;
    fake_host state;
    cfx_host host;
    cfx_graph *g;
} setup;

static void begin(setup *s)
{
    memset(s, 0, sizeof *s);
    s->allocator = test_alloc_init(&s->ta);
    s->host = fake_host_table(&s->state);
    s->g = cfx_graph_new(&s->allocator, &s->host, NULL);
}

static void end(setup *s)
{
    cfx_graph_release(s->g);
    test_alloc_check(&s->ta);
}

static cfx_node *call_object(cfx_graph *g, fake_object *f, cfx_value args, cfx_error *err)
{
    return cfx_graph_create(g, CFX_OP_CALL_FUNCTION, by_object(f), args, cfx_value_invalid(), NULL,
                            cfx_value_invalid(), err);
}

/* ---- objects ------------------------------------------------------------------------------- */

TEST(an_object_is_retained_once)
{
    setup s;
    begin(&s);
    fake_object f = {.name = "m.f"};
    cfx_value v = cfx_value_host(s.g, &f, NULL);
    CHECK_INT_EQ(CFX_KIND_HOST, v.kind);
    CHECK(cfx_value_object(v) == &f);
    CHECK_INT_EQ(1, f.refs);
    cfx_value same = cfx_value_host(s.g, &f, NULL);
    CHECK(same.as.ref == v.as.ref);
    cfx_value_discard(s.g, same);
    cfx_node *n = call_object(s.g, &f, tuple_of(s.g, 2, v, v), NULL);
    CHECK_INT_EQ(1, f.refs);
    CHECK(cfx_node_target_object(n) == &f);
    CHECK_STR_EQ("m.f", cfx_node_target(n, NULL, NULL));
    CHECK_STR_EQ("f", cfx_node_name(n, NULL));
    CHECK_STR_EQ("m.f", cfx_value_host_name(s.g, v, NULL));
    CHECK_INT_EQ(1, s.state.names); /* asked once */
    CHECK_INT_EQ(1, s.state.hints);
    call_object(s.g, &f, cfx_value_invalid(), NULL);
    CHECK_INT_EQ(1, s.state.hints);
    CHECK_INT_EQ(CFX_OK, erase(n));
    CHECK_INT_EQ(1, f.refs);
    cfx_graph_clear(s.g);
    CHECK_INT_EQ(0, f.refs);
    CHECK_INT_EQ(0, s.g->refs_table.size);
    end(&s);
}

TEST(objects_go_when_nobody_has_them)
{
    setup s;
    begin(&s);
    fake_object f = {.name = "m.f"};
    fake_object o = {.name = "m.o"};
    cfx_value_discard(s.g, cfx_value_host(s.g, &o, NULL));
    CHECK_INT_EQ(0, o.refs);
    cfx_node *n = call_object(s.g, &f, tuple_of(s.g, 1, cfx_value_host(s.g, &o, NULL)), NULL);
    CHECK(f.refs == 1 && o.refs == 1);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, tuple_of(s.g, 0), NULL));
    CHECK_INT_EQ(0, o.refs);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_type(n, cfx_value_host(s.g, &o, NULL), NULL));
    CHECK_INT_EQ(1, o.refs);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_type(n, cfx_value_invalid(), NULL));
    CHECK_INT_EQ(0, o.refs);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_target(n, by_object(&o), NULL));
    CHECK(f.refs == 0 && o.refs == 1);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_target(n, by_name("plain"), NULL));
    CHECK_INT_EQ(0, o.refs);
    cfx_value v = cfx_value_retain(cfx_value_host(s.g, &o, NULL));
    cfx_graph_clear(s.g);
    CHECK_INT_EQ(1, o.refs); /* retained: it stays even now */
    cfx_value_release(s.g, v);
    CHECK_INT_EQ(0, o.refs);
    cfx_value_host(s.g, &o, NULL); /* floating: goes with the graph */
    end(&s);
    CHECK_INT_EQ(0, o.refs);
}

/* Two floating values of one object: the end of one is not the end of the other. */
TEST(floating_values_are_independent)
{
    setup s;
    begin(&s);
    fake_object o = {.name = "m.o"};
    cfx_value mine = cfx_value_host(s.g, &o, NULL);
    cfx_node *n = call_object(s.g, &o, cfx_value_invalid(), NULL);
    CHECK_INT_EQ(CFX_OK, erase(n));
    CHECK_INT_EQ(1, o.refs);
    cfx_value other = cfx_value_host(s.g, &o, NULL);
    cfx_value_discard(s.g, tuple_of(s.g, 1, other));
    CHECK_INT_EQ(1, o.refs);
    cfx_value_discard(s.g, mine);
    CHECK_INT_EQ(0, o.refs);
    end(&s);
}

TEST(objects_need_a_host)
{
    cfx_error err = {0};
    fake_object o = {.name = "m.o"};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_host(g, &o, &err).kind);
    CHECK_INT_EQ(CFX_E_TYPE, err.status);
    err.status = CFX_OK;
    CHECK(!call_object(g, &o, cfx_value_invalid(), &err));
    CHECK_INT_EQ(CFX_E_TYPE, err.status);
    cfx_node *n = call(g, "f", NULL);
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_target(n, by_object(&o), NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_set_target(n, (cfx_target){.object = NULL}, NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_set_target(n, (cfx_target){NULL, "\xff", 1}, NULL));
    CHECK_STR_EQ("f", cfx_node_target(n, NULL, NULL));
    CHECK(!cfx_value_host_name(g, cfx_value_int(1), &err));
    CHECK_INT_EQ(CFX_E_TYPE, err.status);
    cfx_graph_release(g);
}

TEST(only_functions_are_objects)
{
    setup s;
    begin(&s);
    cfx_error err = {0};
    fake_object o = {.name = "m.o"};
    CHECK(!cfx_graph_create(s.g, CFX_OP_CALL_METHOD, by_object(&o), cfx_value_invalid(),
                            cfx_value_invalid(), NULL, cfx_value_invalid(), &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    cfx_node *n = call_object(s.g, &o, cfx_value_invalid(), NULL); /* in two steps anything goes */
    CHECK_INT_EQ(CFX_OK, cfx_node_set_op(n, CFX_OP_CALL_MODULE, NULL));
    CHECK(cfx_node_target_object(n) == &o);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_target(n, by_name("a.b"), NULL));
    CHECK_INT_EQ(0, o.refs);
    end(&s);
}

/* ---- names --------------------------------------------------------------------------------- */

TEST(names_stand_for_objects)
{
    setup s;
    begin(&s);
    fake_object o = {.name = "torch.Tensor"};
    cfx_value v = cfx_value_name(s.g, "torch.Tensor", 12, NULL);
    CHECK_INT_EQ(CFX_KIND_HOST, v.kind);
    CHECK(!cfx_value_object(v));
    CHECK_STR_EQ("torch.Tensor", cfx_value_host_name(s.g, v, NULL));
    CHECK_INT_EQ(0, s.state.names);
    s.state.known = &o;
    cfx_value w = cfx_value_name(s.g, "torch.Tensor", 12, NULL);
    CHECK(cfx_value_object(w) == &o);
    CHECK_INT_EQ(1, o.refs);
    cfx_value_discard(s.g, w);
    CHECK_INT_EQ(0, o.refs);
    cfx_value x = cfx_value_name(s.g, "torch.Tensor\0x", 14, NULL); /* not a name to look up */
    CHECK(x.kind == CFX_KIND_HOST && !cfx_value_object(x));
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_name(s.g, "\xff", 1, NULL).kind);
    end(&s);
}

TEST(failing_hosts)
{
    for (int silent = 0; silent < 2; silent++) {
        setup s;
        begin(&s);
        static dump_text before, after;
        fake_object o = {.name = "m.o"};
        fake_object f = {.name = "m.f"};
        cfx_error err = {0};
        s.state.silent = silent;
        s.state.fail_resolve = CFX_E_HOST;
        CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_name(s.g, "m.o", 3, &err).kind);
        CHECK_INT_EQ(CFX_E_HOST, err.status);
        err = (cfx_error){0};
        cfx_node *n = call_object(s.g, &f, cfx_value_invalid(), &err);
        s.state.fail_name = CFX_E_KEY;
        CHECK(!cfx_node_target(n, NULL, &err));
        CHECK_INT_EQ(CFX_E_KEY, err.status);
        CHECK(!cfx_value_host_name(s.g, cfx_value_host(s.g, &o, NULL), NULL));
        s.state.fail_name = CFX_OK;
        CHECK_STR_EQ("m.f", cfx_node_target(n, NULL, NULL)); /* it may work the next time */
        err = (cfx_error){0};
        s.state.fail_hint = CFX_E_HOST;
        dump_graph(&before, s.g);
        cfx_value args = tuple_of(s.g, 2, cfx_value_node(n), text_value(s.g, "t"));
        CHECK(!call_object(s.g, &o, args, &err));
        CHECK_INT_EQ(CFX_E_HOST, err.status);
        CHECK(!call_object(s.g, &o, args, NULL));
        dump_graph(&after, s.g);
        CHECK_STR_EQ(before.data, after.data);
        s.state.fail_hint = CFX_OK;
        CHECK(call_object(s.g, &o, args, NULL) != NULL);
        s.state.fail_hint = CFX_E_HOST;
        fake_object p = {.name = "m.p"};
        CHECK(cfx_graph_create(s.g, CFX_OP_CALL_FUNCTION, by_object(&p), cfx_value_invalid(),
                               cfx_value_invalid(), "wish", cfx_value_invalid(),
                               NULL)); /* needs no hint */
        end(&s);
        CHECK(o.refs == 0 && f.refs == 0 && p.refs == 0);
    }
}

TEST(names_must_be_text)
{
    setup s;
    begin(&s);
    cfx_error err = {0};
    fake_object f = {.name = "m.\xff"};
    cfx_node *n = call_object(s.g, &f, cfx_value_invalid(), &err);
    CHECK_STR_EQ("_", cfx_node_name(n, NULL));
    CHECK(!cfx_node_target(n, NULL, &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    end(&s);
}

static int count_objects(void *object, void *ctx)
{
    (void)object;
    return ++*(int *)ctx == 3 ? 42 : 0;
}

TEST(visiting_hosts)
{
    setup s;
    begin(&s);
    fake_object o[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    int count = 0;
    CHECK_INT_EQ(0, cfx_graph_visit_hosts(s.g, count_objects, &count));
    call_object(s.g, &o[0], tuple_of(s.g, 2, cfx_value_host(s.g, &o[1], NULL),
                                     cfx_value_host(s.g, &o[1], NULL)), NULL);
    call(s.g, "by.name", NULL);
    CHECK_INT_EQ(0, cfx_graph_visit_hosts(s.g, count_objects, &count));
    CHECK_INT_EQ(2, count);
    cfx_value_host(s.g, &o[2], NULL);
    count = 0;
    CHECK_INT_EQ(42, cfx_graph_visit_hosts(s.g, count_objects, &count));
    end(&s);
}

/* ---- code that runs while an object goes --------------------------------------------------- */

/* An object whose end edits the graph: adds a node, changes another, drops a further object. */
static void edit_at_the_end(fake_object *self)
{
    setup *s = self->ctx;
    cfx_node *n = cfx_graph_placeholder(s->g, "late", NULL);
    cfx_node *first = cfx_graph_first(s->g);
    CHECK(n != NULL);
    if (first != n)
        CHECK_INT_EQ(CFX_OK, cfx_node_set_args(first, tuple_of(s->g, 1, cfx_value_node(n)), NULL));
}

TEST(letting_go_may_edit_the_graph)
{
    setup s;
    begin(&s);
    fake_object o[4];
    for (int i = 0; i < 4; i++)
        o[i] = (fake_object){"m.o", 0, edit_at_the_end, &s};
    cfx_node *a = call_object(s.g, &o[0], cfx_value_invalid(), NULL);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(a, tuple_of(s.g, 1, cfx_value_host(s.g, &o[1], NULL)),
                                           NULL));
    cfx_node *b = call(s.g, "f", NULL);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(b, tuple_of(s.g, 2, cfx_value_host(s.g, &o[2], NULL),
                                                       cfx_value_host(s.g, &o[3], NULL)), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(b, tuple_of(s.g, 0), NULL)); /* 2, 3 and so 1 go */
    CHECK(o[1].refs == 0 && o[2].refs == 0 && o[3].refs == 0 && o[0].refs == 1);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_target(a, by_name("other"), NULL));
    CHECK_INT_EQ(0, o[0].refs);
    CHECK_INT_EQ(6, cfx_graph_size(s.g));
    CHECK_STR_EQ("o", user_names(cfx_graph_last(s.g)));
    end(&s);
}

/* An object whose end erases every node that can be erased. */
static void erase_all(void *ctx)
{
    setup *s = ctx;
    for (cfx_node *n = cfx_graph_last(s->g), *prev; n; n = prev) {
        prev = cfx_node_prev(n);
        erase(n);
    }
}

static void erase_all_at_the_end(fake_object *self) { erase_all(self->ctx); }

TEST(letting_go_may_erase_the_node)
{
    setup s;
    begin(&s);
    fake_object o = {"m.o", 0, erase_all_at_the_end, &s};
    cfx_node *n = call(s.g, "f", NULL);
    for (int i = 0; i < 5; i++) {
        CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, tuple_of(s.g, 1, cfx_value_host(s.g, &o, NULL)),
                                               NULL));
        if (i == 0)
            CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, tuple_of(s.g, 0), NULL));
        if (i == 1)
            CHECK_INT_EQ(CFX_OK, cfx_node_set_arg(n, 0, cfx_value_int(1), NULL));
        if (i == 2)
            CHECK_INT_EQ(CFX_OK, erase(n));
        if (i == 3)
            cfx_graph_clear(s.g);
        if (i == 4) {
            cfx_node *x = cfx_graph_placeholder(s.g, "x", NULL);
            CHECK_INT_EQ(CFX_OK, cfx_node_set_kwarg(n, "k", cfx_value_node(x), NULL));
            CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, tuple_of(s.g, 0), NULL));
        }
        CHECK_STR_EQ(i == 4 ? "x" : "", list_names(s.g)); /* x had a user still when asked */
        n = call(s.g, "f", NULL);
    }
    end(&s);
}

/* The host runs code whenever it is asked for something. */
TEST(asking_may_edit_the_graph)
{
    setup s;
    begin(&s);
    cfx_error err = {0};
    fake_object f = {.name = "m.f"};
    fake_object o = {.name = "m.o"};
    cfx_node *n = call_object(s.g, &f, cfx_value_invalid(), NULL);
    s.state.asked = erase_all;
    s.state.ctx = &s;
    CHECK(!cfx_node_target(n, NULL, &err)); /* it is gone before the answer comes */
    CHECK_INT_EQ(CFX_E_GRAPH, err.status);
    CHECK_INT_EQ(0, f.refs);
    call(s.g, "g", NULL);
    n = call_object(s.g, &o, cfx_value_invalid(),
                    NULL); /* asked for a hint: erases what was there */
    REQUIRE(n);
    CHECK_STR_EQ("o", list_names(s.g));
    CHECK_INT_EQ(1, o.refs);
    end(&s);
}

static void use_same_target(void *ctx)
{
    setup *s = ctx;
    s->state.asked = NULL;
    cfx_node *n = call_object(s->g, s->state.known, cfx_value_invalid(), NULL);
    CHECK(n != NULL);
    if (cfx_graph_size(s->g) > 1)
        CHECK_INT_EQ(CFX_OK, erase(n)); /* and with it the entry for its target, but for us */
}

TEST(asking_may_use_the_same_target)
{
    for (int erases = 0; erases < 2; erases++) {
        setup s;
        begin(&s);
        fake_object f = {.name = "m.f"};
        if (erases)
            call(s.g, "g", NULL);
        s.state.asked = use_same_target;
        s.state.ctx = &s;
        s.state.known = &f;
        CHECK_STR_EQ("f_1", cfx_node_name(call_object(s.g, &f, cfx_value_invalid(), NULL), NULL));
        CHECK_INT_EQ(2, cfx_graph_size(s.g));
        CHECK_INT_EQ(1, f.refs);
        end(&s);
    }
}

/* ---- regions ------------------------------------------------------------------------------- */

TEST(regions)
{
    setup s;
    begin(&s);
    cfx_graph *sub = cfx_graph_new(&s.allocator, &s.host, NULL);
    CHECK(!cfx_graph_parent(sub));
    cfx_value v = cfx_value_region(s.g, sub, NULL);
    CHECK_INT_EQ(CFX_KIND_GRAPH, v.kind);
    CHECK(cfx_value_graph(v) == sub && cfx_graph_parent(sub) == s.g);
    CHECK(cfx_value_region(s.g, sub, NULL).as.ref == v.as.ref);
    cfx_node *n = call(s.g, "cfx.cond", NULL);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, tuple_of(s.g, 2, v, v), NULL));
    cfx_value_discard(s.g, v);
    cfx_graph_release(sub); /* the graph holds it */
    CHECK_INT_EQ(0, cfx_graph_size(cfx_value_graph(cfx_node_arg(n, 1))));
    cfx_graph_retain(sub);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, tuple_of(s.g, 0), NULL));
    CHECK(!cfx_graph_parent(sub)); /* free to be a region of another graph */
    cfx_graph *other = cfx_graph_new(&s.allocator, NULL, NULL);
    CHECK_INT_EQ(CFX_KIND_GRAPH, cfx_value_region(other, sub, NULL).kind);
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_region(s.g, sub, &err).kind);
    CHECK_INT_EQ(CFX_E_GRAPH, err.status);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_region(s.g, NULL, &err).kind);
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    cfx_graph_release(other);
    CHECK(!cfx_graph_parent(sub));
    cfx_graph_release(sub);
    cfx_graph_release(NULL);
    end(&s);
}

TEST(regions_have_no_cycles)
{
    cfx_graph *g[3];
    for (int i = 0; i < 3; i++)
        g[i] = cfx_graph_new(NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_region(g[0], g[0], NULL).kind);
    CHECK_INT_EQ(CFX_KIND_GRAPH, cfx_value_region(g[0], g[1], NULL).kind);
    CHECK_INT_EQ(CFX_KIND_GRAPH, cfx_value_region(g[1], g[2], NULL).kind);
    for (int i = 0; i < 3; i++) {
        cfx_error err = {0};
        CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_region(g[2], g[i], &err).kind);
        CHECK_INT_EQ(CFX_E_GRAPH, err.status);
    }
    for (int i = 0; i < 3; i++)
        cfx_graph_release(g[i]);
}

/* From the outside in and from the inside out the limit is the same. */
TEST(regions_have_a_depth_limit)
{
    for (int inside_out = 0; inside_out < 2; inside_out++) {
        cfx_graph *g[CFX_MAX_REGION_DEPTH + 2];
        int depth = 0;
        cfx_error err = {0};
        for (int i = 0; i < CFX_MAX_REGION_DEPTH + 2; i++)
            g[i] = cfx_graph_new(NULL, NULL, NULL);
        for (; depth <= CFX_MAX_REGION_DEPTH; depth++) {
            cfx_graph *outer = inside_out ? g[depth + 1] : g[depth];
            cfx_graph *inner = inside_out ? g[depth] : g[depth + 1];
            if (cfx_value_region(outer, inner, &err).kind == CFX_KIND_INVALID)
                break;
        }
        CHECK_INT_EQ(CFX_MAX_REGION_DEPTH - 1, depth);
        CHECK_INT_EQ(CFX_E_LIMIT, err.status);
        for (int i = 0; i < CFX_MAX_REGION_DEPTH + 2; i++)
            cfx_graph_release(g[i]);
    }
}

TEST(regions_bound_by_the_host)
{
    setup s;
    begin(&s);
    s.host.bind_region = fake_bind;
    cfx_graph *sub = cfx_graph_new(&s.allocator, &s.host, NULL);
    cfx_error err = {0};
    s.state.fail_bind = true;
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_region(s.g, sub, &err).kind);
    CHECK_INT_EQ(CFX_E_HOST, err.status);
    CHECK(!cfx_graph_parent(sub));
    s.state.fail_bind = false;
    cfx_value v = cfx_value_region(s.g, sub, NULL);
    int count = 0;
    CHECK_INT_EQ(0, cfx_graph_visit_hosts(s.g, count_objects, &count));
    CHECK_INT_EQ(1, count);
    CHECK(!cfx_value_object(v)); /* that object is not a value */
    cfx_value_region(s.g, sub, NULL);
    CHECK_INT_EQ(1, s.state.bound);
    cfx_graph_release(sub);
    cfx_value_discard(s.g, v);
    CHECK(cfx_graph_parent(sub) == s.g);
    cfx_value_discard(s.g, v);
    end(&s);
}

static void bind_it_first(void *ctx)
{
    setup *s = ctx;
    s->state.asked = NULL;
    CHECK_INT_EQ(CFX_KIND_GRAPH, cfx_value_region(s->g, s->g->binding, NULL).kind);
    fake_object f[20];
    for (int i = 0; i < 20; i++) { /* and the table grows */
        f[i] = (fake_object){.name = "m.f"};
        cfx_value_discard(s->g, cfx_value_host(s->g, &f[i], NULL));
    }
}

static void bind_it_elsewhere(void *ctx)
{
    setup *s = ctx;
    s->state.asked = NULL;
    CHECK_INT_EQ(CFX_KIND_GRAPH, cfx_value_region(s->g->root.binding, s->g->binding, NULL).kind);
}

TEST(binding_may_edit_the_graph)
{
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        setup s;
        begin(&s);
        s.host.bind_region = fake_bind;
        cfx_graph *sub = cfx_graph_new(&s.allocator, &s.host, NULL);
        cfx_graph *other = cfx_graph_new(&s.allocator, NULL, NULL);
        cfx_graph_set_binding(s.g, sub);
        s.g->root.binding = other;
        s.state.asked = elsewhere ? bind_it_elsewhere : bind_it_first;
        s.state.ctx = &s;
        cfx_error err = {0};
        cfx_value v = cfx_value_region(s.g, sub, &err);
        CHECK_INT_EQ(elsewhere ? CFX_KIND_INVALID : CFX_KIND_GRAPH, v.kind);
        CHECK_INT_EQ(elsewhere ? CFX_E_GRAPH : CFX_OK, err.status);
        CHECK(cfx_graph_parent(sub) == (elsewhere ? other : s.g));
        cfx_graph_release(sub);
        cfx_graph_release(other);
        end(&s);
    }
}

/* When a graph goes, its regions have lost it before any code of the host runs. */
static void look_at_the_parent(fake_object *self)
{
    cfx_graph **regions = self->ctx;
    for (int i = 0; i < 2; i++)
        CHECK(!cfx_graph_parent(regions[i]));
}

TEST(release_order)
{
    setup s;
    begin(&s);
    cfx_graph *regions[2];
    fake_object o[20];
    for (int i = 0; i < 2; i++) {
        regions[i] = cfx_graph_new(&s.allocator, &s.host, NULL);
        CHECK_INT_EQ(CFX_KIND_GRAPH, cfx_value_region(s.g, regions[i], NULL).kind);
    }
    for (int i = 0; i < 20; i++) {
        o[i] = (fake_object){"o", 0, look_at_the_parent, regions};
        cfx_value_host(s.g, &o[i], NULL);
    }
    cfx_graph_release(s.g);
    for (int i = 0; i < 20; i++)
        CHECK_INT_EQ(0, o[i].refs);
    for (int i = 0; i < 2; i++)
        cfx_graph_release(regions[i]);
    test_alloc_check(&s.ta);
}

/* ---- out of memory ------------------------------------------------------------------------- */

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    fake_host state = {0};
    cfx_host host = fake_host_table(&state);
    fake_object f[30];
    if (arg)
        host.bind_region = fake_bind;
    cfx_graph *g = cfx_graph_new(a, &host, &err);
    for (int i = 0; i < 30; i++) {
        f[i] = (fake_object){.name = "some.module.with.a.name.that.is.long.enough.to.be.allocated"};
        cfx_graph *sub = g && err.status == CFX_OK ? cfx_graph_new(a, NULL, &err) : NULL;
        cfx_value v = sub ? cfx_value_region(g, sub, &err) : cfx_value_invalid();
        cfx_graph_release(sub);
        cfx_value w = err.status == CFX_OK ? cfx_value_host(g, &f[i], &err) : v;
        cfx_value both[] = {v, w};
        v = err.status == CFX_OK ? cfx_value_tuple(g, both, 2, &err) : v;
        if (err.status == CFX_OK)
            call_object(g, &f[i], v, &err);
        if (err.status == CFX_OK)
            cfx_value_host_name(g, w, &err);
        if (err.status == CFX_OK)
            cfx_node_set_target(cfx_graph_last(g), by_name("another.name"), &err);
    }
    cfx_graph_release(g);
    for (int i = 0; i < 30; i++)
        CHECK_INT_EQ(0, f[i].refs);
    return err.status;
}

TEST(references_out_of_memory)
{
    CHECK(test_oom_sweep(sweep, NULL) > 20);
    CHECK(test_oom_sweep(sweep, &sweep) > 20);
}
