/* edit.c - tests of changing nodes in place: arguments, positions, uses. */
#include "graph_test.h"

#include "ir/graph_impl.h"

static cfx_value val(cfx_node *n) { return cfx_value_node(n); }

TEST(arguments)
{
    cfx_error err = {0};
    static dump_text d;
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *n = call(g, "f", x);
    CHECK_INT_EQ(CFX_OK, cfx_node_insert_arg(n, 1, cfx_value_int(7), &err));
    CHECK_INT_EQ(CFX_OK, cfx_node_insert_arg(n, 0, cfx_value_int(8), &err));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_arg(n, 1, cfx_value_int(9), &err));
    CHECK_INT_EQ(CFX_E_INDEX, cfx_node_set_arg(n, 3, cfx_value_int(1), &err));
    CHECK(strstr(err.message, "%f has 3 arguments"));
    CHECK_INT_EQ(CFX_E_INDEX, cfx_node_insert_arg(n, 4, cfx_value_int(1), &err));
    CHECK_INT_EQ(CFX_OK, cfx_node_insert_arg(n, 3, cfx_value_int(10), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_kwarg(n, "a", cfx_value_int(1), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_kwarg(n, "b", cfx_value_int(2), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_kwarg(n, "a", cfx_value_int(3), NULL));
    d.size = 0;
    dump_value(&d, cfx_node_args(n));
    dump_value(&d, cfx_node_kwargs(n));
    CHECK_STR_EQ("tuple(int:8 int:9 int:7 int:10)dict(str:a int:3 str:b int:2)", d.data);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_set_arg(n, 0, cfx_value_invalid(), NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_set_kwarg(n, "a", cfx_value_invalid(), NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_set_kwarg(n, "\xff", cfx_value_int(1), NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_insert_arg(n, 0, cfx_value_invalid(), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args_kwargs(n, tuple_of(g, 0), cfx_node_kwargs(x), NULL));
    CHECK_INT_EQ(0, cfx_node_num_args(n));
    cfx_graph_release(g);
}

/* Every edit of an erased node is refused, and so is every use of one. */
TEST(erased_nodes)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *live = call(g, "f", x);
    cfx_node *dead = call(g, "f", x);
    cfx_node_pin(dead);
    CHECK_INT_EQ(CFX_OK, erase(dead));
    cfx_node *const both[] = {dead, cfx_graph_root(g)};
    for (int i = 0; i < 2; i++) {
        cfx_node *n = both[i];
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_args(n, tuple_of(g, 0), NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_kwargs(n, cfx_node_kwargs(n), NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_arg(n, 0, cfx_value_int(1), NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_insert_arg(n, 0, cfx_value_int(1), NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_kwarg(n, "k", cfx_value_int(1), NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_target(n, by_name("h"), NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_op(n, CFX_OP_OUTPUT, NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_type(n, cfx_value_int(1), NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_rename(n, "h", NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_name(n, "h", 1, NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_prepend(live, n, NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_append(live, n, NULL));
        const cfx_status nothing = i == 0 ? CFX_OK : CFX_E_GRAPH;  /* it has no users or inputs */
        CHECK_INT_EQ(nothing, cfx_node_replace_uses(n, val(x), NULL, NULL, NULL, NULL));
        CHECK_INT_EQ(nothing, cfx_node_replace_input(n, x, val(live), NULL));
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_erase(g, n, NULL));
    }
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_prepend(dead, live, NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_append(dead, live, NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_arg(live, 0, val(dead), NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_insert_arg(live, 0, val(dead), NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_kwarg(live, "k", val(dead), NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_replace_uses(x, val(dead), NULL, NULL, NULL, NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_replace_input(live, x, val(dead), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_location(dead, "f.py", 1, NULL)); /* not an edit */
    cfx_node_set_module_stack(dead, 0);
    cfx_node_set_binding(dead, &x);
    CHECK_STR_EQ("x f", list_names(g));
    CHECK_STR_EQ("f", user_names(x));
    cfx_graph_release(g);
}

TEST(nodes_of_another_graph)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *n = call(g, "f", x);
    cfx_node *y = cfx_graph_placeholder(h, "y", NULL);
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_prepend(x, y, &err));
    CHECK(strstr(err.message, "%y belongs to another graph"));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_append(x, y, NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_append(cfx_graph_root(h), x, NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_replace_uses(x, val(y), NULL, NULL, NULL, NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_replace_input(n, x, val(y), NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_arg(n, 0, val(y), NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_args(n, tuple_of(h, 1, val(y)), NULL));
    CHECK_INT_EQ(CFX_OK,
                 cfx_node_replace_input(n, y, cfx_value_int(1), NULL)); /* it has no such input */
    CHECK(cfx_node_arg(n, 0).as.node == x);
    CHECK(!cfx_node_uses(n, y));
    cfx_graph_release(g);
    cfx_graph_release(h);
}

TEST(moving)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    cfx_node *z = cfx_graph_placeholder(g, "z", NULL);
    cfx_node *root = cfx_graph_root(g);
#define MOVES(call_, want)                                                           \
    do {                                                                             \
        CHECK_INT_EQ(CFX_OK, call_);                                                 \
        CHECK_STR_EQ(want, list_names(g));                                           \
        CHECK(cfx_node_before(cfx_graph_first(g), cfx_graph_last(g)));               \
    } while (0)
    MOVES(cfx_node_prepend(x, z, NULL), "z x y");
    MOVES(cfx_node_append(x, z, NULL), "x z y");
    MOVES(cfx_node_append(x, x, NULL), "x z y");
    MOVES(cfx_node_prepend(x, x, NULL), "x z y");
    MOVES(cfx_node_append(x, z, NULL), "x z y");
    MOVES(cfx_node_prepend(z, x, NULL), "x z y");
    MOVES(cfx_node_prepend(root, x, NULL), "z y x");
    MOVES(cfx_node_append(root, x, NULL), "x z y");
    MOVES(cfx_node_append(y, x, NULL), "z y x");
#undef MOVES
    CHECK(cfx_node_before(z, y) && cfx_node_before(y, x));
    cfx_graph_set_insert_point(g, (cfx_insert_point){y, true}, NULL); /* moves along */
    CHECK_INT_EQ(CFX_OK, cfx_node_append(x, y, NULL));
    cfx_graph_placeholder(g, "w", NULL);
    CHECK_STR_EQ("z x y w", list_names(g));
    cfx_graph_release(g);
}

/* ---- replacing uses ------------------------------------------------------------------------ */

typedef struct trace {
    dump_text text;
    cfx_node *keep, *fail;
    cfx_node *erase; /* erased as soon as anybody asks */
} trace;

static void interfere(trace *t)
{
    if (t->erase)
        CHECK_INT_EQ(CFX_OK, erase(t->erase));
    t->erase = NULL;
}

static int filter(void *ctx, cfx_node *user)
{
    trace *t = ctx;
    dump_add(&t->text, "?%s ", cfx_node_name(user, NULL));
    interfere(t);
    return user == t->fail ? -1 : user != t->keep;
}

static void changed(void *ctx, cfx_node *user)
{
    trace *t = ctx;
    dump_add(&t->text, "!%s ", cfx_node_name(user, NULL));
}

static cfx_node *three_users(cfx_graph *g, cfx_node **x, cfx_node *n[3])
{
    *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    for (int i = 0; i < 3; i++) {
        cfx_value list[] = {val(*x), cfx_value_int(i), tuple_of(g, 2, val(*x), val(y))};
        n[i] = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", list, 3, NULL, 0, NULL);
        cfx_node_set_kwarg(n[i], "k", val(*x), NULL);
    }
    return y;
}

TEST(replacing_uses)
{
    static trace t;
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x, *n[3];
    cfx_node *y = three_users(g, &x, n);
    t = (trace){.keep = n[1]};
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(x, val(y), filter, changed, &t, NULL));
    CHECK_STR_EQ("?f ?f_1 ?f_2 !f !f_2 ", t.text.data);
    CHECK_STR_EQ("f_1", user_names(x));
    CHECK_STR_EQ("f_1 f f_2", user_names(y));
    CHECK_INT_EQ(4, cfx_use_count(cfx_node_find_use(n[2], y)));
    CHECK(cfx_node_kwarg(n[0], "k").as.node == y);
    t = (trace){.fail = n[0]};
    const uint64_t version = cfx_graph_version(g);
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_E_HOST, cfx_node_replace_uses(y, val(x), filter, changed, &t, &err));
    CHECK_INT_EQ(CFX_E_HOST, err.status);
    CHECK_STR_EQ("?f_1 ?f ", t.text.data);
    CHECK_INT_EQ(version, cfx_graph_version(g));
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(y, cfx_value_int(5), NULL, NULL, NULL, NULL));
    CHECK_STR_EQ("", user_names(y));
    CHECK_INT_EQ(5, cfx_node_kwarg(n[0], "k").as.i);
    cfx_value list = tuple_of(g, 1, val(x)); /* holds what it replaces */
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(x, list, NULL, NULL, NULL, NULL));
    CHECK_INT_EQ(CFX_KIND_TUPLE, cfx_node_arg(n[1], 0).kind);
    CHECK_STR_EQ("f_1", user_names(x));
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(y, val(x), filter, changed, &t, NULL)); /* none */
    CHECK_INT_EQ(CFX_E_VALUE,
                 cfx_node_replace_uses(x, cfx_value_invalid(), NULL, NULL, NULL, NULL));
    cfx_graph_release(g);
}

/* A node that is put between another and its users ends up using itself, as in torch.fx. */
TEST(replacing_by_a_user)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *a = call(g, "relu", x);
    cfx_node *out = cfx_graph_output(g, val(a), NULL);
    cfx_node *b = call(g, "neg", a);
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(a, val(b), NULL, NULL, NULL, NULL));
    CHECK(cfx_node_arg(b, 0).as.node == b && cfx_node_arg(out, 0).as.node == b);
    CHECK_STR_EQ("output neg", user_names(b));
    cfx_graph_release(g);
}

TEST(replacing_one_input)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x, *n[3];
    cfx_node *y = three_users(g, &x, n);
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_input(n[1], x, val(y), NULL));
    CHECK_STR_EQ("f f_2", user_names(x));
    CHECK_STR_EQ("f f_2 f_1", user_names(y));
    CHECK_STR_EQ("y", input_names(n[1]));
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_input(n[1], y, cfx_value_int(3), NULL));
    CHECK_INT_EQ(0, cfx_node_num_inputs(n[1]));
    cfx_graph_release(g);
}

/* Callbacks that erase users, or what they are given instead. */
TEST(callbacks_may_edit)
{
    static trace t;
    for (int what = 0; what < 3; what++) {
        cfx_error err = {0};
        cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
        cfx_node *x, *n[3];
        three_users(g, &x, n);
        cfx_node *with = cfx_graph_placeholder(g, "with", NULL);
        t = (trace){.erase = what < 2 ? n[2 * what] : with};
        const cfx_status status = cfx_node_replace_uses(x, val(with), filter, changed, &t, &err);
        CHECK_INT_EQ(what < 2 ? CFX_OK : CFX_E_GRAPH, status);
        CHECK_INT_EQ(err.status, status);
        static const char *const users[] = {"", "", "f f_1 f_2"};
        CHECK_STR_EQ(users[what], user_names(x));
        if (what < 2)
            CHECK_STR_EQ(what ? "f f_1" : "f_1 f_2", user_names(with));
        CHECK(!g->limbo);
        cfx_graph_release(g);
    }
}

/* A floating replacement is the caller's until somebody uses it. */
TEST(replacements_float)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x, *n[3];
    three_users(g, &x, n);
    static trace t;
    cfx_value with = text_value(g, "with");
    t = (trace){.fail = n[2]};
    CHECK_INT_EQ(CFX_E_HOST, cfx_node_replace_uses(x, with, filter, NULL, &t, NULL));
    CHECK_INT_EQ(0, with.as.str->refs);
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_input(n[0], x, with, NULL));
    CHECK_INT_EQ(3, with.as.str->refs);
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(x, with, NULL, NULL, NULL, NULL));
    CHECK_INT_EQ(9, with.as.str->refs);
    cfx_graph_release(g);
}

/* A thousand users: linear, and in order. */
TEST(replacing_many_uses)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    enum { N = 100000 };
    for (int i = 0; i < N; i++)
        call(g, "f", x);
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(x, val(y), NULL, NULL, NULL, NULL));
    CHECK_INT_EQ(0, cfx_node_num_users(x));
    CHECK_INT_EQ(N, cfx_node_num_users(y));
    const cfx_node *last = NULL;
    for (const cfx_use *u = cfx_node_first_use(y); u; u = cfx_use_next(u)) {
        if (last && !CHECK(cfx_node_before(last, cfx_use_user(u))))
            break;
        last = cfx_use_user(u);
    }
    cfx_graph_release(g);
}

/* ---- out of memory ------------------------------------------------------------------------- */

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    static dump_text before, after;
    cfx_error err = {0};
    (void)arg;
    cfx_graph *g = cfx_graph_new(a, NULL, &err);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", &err) : NULL;
    cfx_node *user = NULL;
    for (int i = 0; x && i < 3 && err.status == CFX_OK; i++) {
        cfx_value two[] = {val(x), cfx_value_int(i)};
        cfx_value list = cfx_value_list(g, two, 2, &err);
        cfx_kwarg k = {"k", list};
        if (err.status == CFX_OK)
            user = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", two, 2, &k, 1, &err);
    }
    for (int i = 0; x && i < 30 && err.status == CFX_OK; i++) {
        cfx_value items[40]; /* ever larger, so that memory runs out in all places */
        for (int k = 0; k < 40; k++)
            items[k] = val(x);
        cfx_value with = cfx_value_list(g, items, (size_t)i, &err);
        if (err.status != CFX_OK)
            break;
        dump_graph(&before, g);
        const cfx_status status = i % 4 == 3 ? cfx_node_replace_input(user, x, with, &err)
                                             : cfx_node_replace_uses(x, with, NULL, NULL, NULL,
                                                                     &err);
        CHECK_INT_EQ(err.status, status);
        dump_graph(&after, g);
        if (status != CFX_OK) {
            CHECK_STR_EQ(before.data, after.data);
            cfx_value_discard(g, with);
        }
        const uint32_t uses = cfx_node_num_users(x) ? cfx_use_count(cfx_node_first_use(x)) : 0;
        if (uses > 60 || uses == 0) { /* before it grows beyond measure */
            cfx_value fresh[] = {val(x), val(x)};
            const cfx_value v = err.status == CFX_OK ? cfx_value_tuple(g, fresh, 2, &err)
                                                     : cfx_value_invalid();
            for (cfx_node *n = cfx_node_next(x); err.status == CFX_OK && n; n = cfx_node_next(n))
                cfx_node_set_args_kwargs(n, v, cfx_node_kwargs(x), &err);
        }
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(replacing_out_of_memory) { CHECK(test_oom_sweep(sweep, NULL) > 20); }
