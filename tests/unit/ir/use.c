/* use.c - tests of use edges: who uses whom, how often, and in which order. */
#include "graph_test.h"

#include "ir/graph_impl.h"

static cfx_value val(cfx_node *n) { return cfx_value_node(n); }

static cfx_status set_args(cfx_node *n, cfx_value args) { return cfx_node_set_args(n, args, NULL); }

TEST(users_and_inputs)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    cfx_value three[] = {val(x), val(y), val(x)};
    cfx_node *a = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "add", three, 3, NULL, 0, NULL);
    cfx_value inner[] = {val(x), tuple_of(g, 1, val(a))};
    cfx_value arg = val(y);
    cfx_kwarg k = {"k", cfx_value_list(g, inner, 2, NULL)};
    cfx_node *b = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "add", &arg, 1, &k, 1, NULL);
    cfx_node *c = call(g, "relu", x);
    CHECK_STR_EQ("add add_1 relu", user_names(x));
    CHECK_STR_EQ("x y", input_names(a));
    CHECK_STR_EQ("y x add", input_names(b));
    CHECK_INT_EQ(3, cfx_node_num_users(x));
    CHECK_INT_EQ(2, cfx_node_num_inputs(a));
    CHECK(cfx_node_input(a, 1) == y && !cfx_node_input(a, 2));
    const cfx_use *u = cfx_node_first_use(x);
    CHECK(cfx_use_user(u) == a && cfx_use_count(u) == 2);
    CHECK(cfx_use_user(cfx_use_next(u)) == b && cfx_use_count(cfx_use_next(u)) == 1);
    const cfx_use *last = cfx_use_next(cfx_use_next(u));
    CHECK(cfx_use_user(last) == c && !cfx_use_next(last) && !cfx_node_first_use(c));
    CHECK(cfx_node_uses(a, x) && cfx_node_uses(b, a) && !cfx_node_uses(c, y));
    CHECK(cfx_node_find_use(a, x) == cfx_node_first_use(x) && !cfx_node_find_use(x, a));
    CHECK(!cfx_node_uses(x, x) && cfx_node_uses(c, x) && !cfx_node_uses(x, c));
    CHECK_INT_EQ(CFX_OK, set_args(a, tuple_of(g, 1, val(x)))); /* moves to the end */
    CHECK_STR_EQ("add_1 relu add", user_names(x));
    CHECK_STR_EQ("add_1", user_names(y));
    CHECK_INT_EQ(CFX_OK, set_args(a, tuple_of(g, 1, val(y))));
    CHECK_STR_EQ("add_1 relu", user_names(x));
    CHECK_STR_EQ("add_1 add", user_names(y));
    CHECK_INT_EQ(CFX_OK, set_args(a, tuple_of(g, 2, val(x), val(y))));
    CHECK_STR_EQ("add_1 relu add", user_names(x));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_kwarg(c, "z", val(y), NULL));
    CHECK_STR_EQ("add_1 add relu", user_names(y));
    CHECK_STR_EQ("x y", input_names(c));
    CHECK_INT_EQ(CFX_OK, set_args(c, tuple_of(g, 0)));
    CHECK_STR_EQ("add_1 add", user_names(x));
    CHECK_STR_EQ("y", input_names(c));
    cfx_graph_release(g);
}

static cfx_status note_last_use(void *ctx, cfx_node *user, cfx_node *def)
{
    char *text = ctx;
    strcat(strcat(text, cfx_node_name(def, NULL)), ">");
    strcat(strcat(text, cfx_node_name(user, NULL)), " ");
    return strlen(text) < 30 ? CFX_OK : CFX_E_LIMIT;
}

TEST(last_uses)
{
    char text[200] = "";
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    cfx_node *a = call(g, "a", x);
    cfx_node *b = call(g, "b", x);
    CHECK_INT_EQ(CFX_OK, set_args(b, tuple_of(g, 2, val(a), tuple_of(g, 2, val(x), val(a)))));
    call(g, "dead", y);
    CHECK_INT_EQ(CFX_OK, cfx_graph_each_last_use(g, note_last_use, text));
    CHECK_STR_EQ("y>dead a>b x>b ", text);
    text[0] = '\0'; /* later users first on the list of users, but not in the graph */
    CHECK_INT_EQ(CFX_OK, set_args(a, tuple_of(g, 1, val(x))));
    CHECK_INT_EQ(CFX_OK, cfx_graph_each_last_use(g, note_last_use, text));
    CHECK_STR_EQ("y>dead a>b x>b ", text);
    CHECK_INT_EQ(CFX_E_LIMIT, cfx_graph_each_last_use(g, note_last_use, text));
    CHECK_STR_EQ("y>dead a>b x>b y>dead a>b x>b ", text);
    cfx_graph_release(g);
}

/* The order of users under every kind of edit, as torch.fx has it. */
TEST(order_of_users)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    cfx_node *a = call(g, "add", x);
    cfx_node *b = call(g, "add", x);
    call(g, "add", x);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_arg(a, 0, val(x), NULL));
    CHECK_STR_EQ("add_1 add_2 add", user_names(x));
    CHECK_INT_EQ(CFX_OK, set_args(a, cfx_node_args(a)));
    CHECK_STR_EQ("add_1 add_2 add", user_names(x));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_kwargs(b, cfx_value_seq(g, CFX_KIND_DICT, NULL, 0, NULL),
                                             NULL));
    CHECK_STR_EQ("add_2 add add_1", user_names(x));
    CHECK_INT_EQ(CFX_OK, cfx_node_insert_arg(b, 1, val(y), NULL));
    CHECK_STR_EQ("add_2 add add_1", user_names(x));
    CHECK_STR_EQ("add_1", user_names(y));
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_input(a, y, val(x), NULL)); /* uses no y: still moves */
    CHECK_STR_EQ("add_2 add_1 add", user_names(x));
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_input(a, x, val(x), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(x, val(x), NULL, NULL, NULL, NULL));
    CHECK_STR_EQ("add_2 add_1 add", user_names(x));
    CHECK_INT_EQ(CFX_OK, cfx_node_insert_arg(b, 0, val(x), NULL)); /* keeps its place */
    CHECK_STR_EQ("add_2 add_1 add", user_names(x));
    CHECK_INT_EQ(2, cfx_use_count(cfx_use_next(cfx_node_first_use(x))));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_kwarg(a, "q", cfx_value_int(3), NULL));
    CHECK_STR_EQ("add_2 add_1 add", user_names(x));
    cfx_graph_release(g);
}

TEST(order_of_inputs)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    cfx_node *z = cfx_graph_placeholder(g, "z", NULL);
    cfx_value args[] = {val(x), val(y)};
    cfx_kwarg k = {"k", val(z)};
    cfx_node *a = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "add", args, 2, &k, 1, NULL);
    CHECK_STR_EQ("x y z", input_names(a));
    CHECK_INT_EQ(CFX_OK, set_args(a, tuple_of(g, 2, val(y), val(x))));
    CHECK_STR_EQ("y x z", input_names(a));
    cfx_value dict[] = {text_value(g, "k"), val(x), text_value(g, "j"), val(z)};
    CHECK_INT_EQ(CFX_OK, cfx_node_set_kwargs(a, cfx_value_seq(g, CFX_KIND_DICT, dict, 4, NULL),
                                             NULL));
    CHECK_STR_EQ("y x z", input_names(a));
    CHECK_INT_EQ(CFX_OK, set_args(a, tuple_of(g, 1, val(z))));
    CHECK_STR_EQ("z x", input_names(a));
    CHECK_STR_EQ("", user_names(y));
    CHECK_INT_EQ(CFX_OK, cfx_node_insert_arg(a, 0, val(y), NULL)); /* new ones come last */
    CHECK_STR_EQ("z x y", input_names(a));
    CHECK_STR_EQ("add", user_names(y));
    CHECK(cfx_node_arg(a, 0).as.node == y);
    cfx_graph_release(g);
}

/* Edges that keep their place: alone, first, in the middle and last on the list. */
TEST(inserting_keeps_every_place)
{
    for (int which = 0; which < 4; which++) {
        cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
        cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
        cfx_node *n[3];
        for (int i = 0; i < (which == 3 ? 1 : 3); i++)
            n[i] = call(g, "f", x);
        cfx_node *at = n[which % 3];
        CHECK_INT_EQ(CFX_OK, cfx_node_insert_arg(at, 1, cfx_value_int(1), NULL));
        CHECK_INT_EQ(CFX_OK, cfx_node_insert_arg(at, 0, val(x), NULL));
        CHECK_STR_EQ(which == 3 ? "f" : "f f_1 f_2", user_names(x));
        CHECK_INT_EQ(which == 3 ? 1 : 3, cfx_node_num_users(x));
        CHECK_INT_EQ(CFX_OK, erase(at));
        CHECK_INT_EQ(which == 3 ? 0 : 2, cfx_node_num_users(x));
        cfx_graph_release(g);
    }
}

TEST(wrong_arguments)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = call(g, "f", NULL);
    cfx_value list = cfx_value_list(g, NULL, 0, NULL);
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_args(n, list, &err));
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_kwargs(n, list, &err));
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_args(n, cfx_value_int(1), NULL));
    cfx_value entry[] = {cfx_value_int(1), cfx_value_int(2)};
    cfx_value dict = cfx_value_seq(g, CFX_KIND_DICT, entry, 2, NULL);
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_kwargs(n, dict, &err));
    CHECK(strstr(err.message, "must be strings, not int"));
    err = (cfx_error){0};
    CHECK(cfx_node_set_args(n, cfx_value_invalid(), &err) != CFX_OK && err.status != CFX_OK);
    CHECK_INT_EQ(0, cfx_node_num_args(n));
    cfx_graph_release(g);
}

/* A failed constructor's reason is not talked over. */
TEST(invalid_arguments_keep_the_reason)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = call(g, "f", NULL);
    cfx_value bad = cfx_value_device(g, "?", 1, &err);
    bad = cfx_value_tuple(g, &bad, 1, &err);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_set_args(n, bad, &err));
    CHECK(strstr(err.message, "not a device"));
    cfx_graph_release(g);
}

/* The visited counter wraps around. */
TEST(marks_wrap)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    g->stamp = UINT32_MAX - 20;
    cfx_node *dead = call(g, "f", x);
    cfx_node_pin(dead);
    CHECK_INT_EQ(CFX_OK, erase(dead));
    for (int i = 0; i < 40; i++) {
        cfx_node *n = call(g, "f", i % 2 ? x : y);
        CHECK_INT_EQ(CFX_OK, set_args(n, tuple_of(g, 4, val(x), val(y), val(x), val(x))));
        CHECK_STR_EQ("x y", input_names(n));
        CHECK_INT_EQ(3, cfx_use_count(cfx_node_find_use(n, x)));
        CHECK_INT_EQ(CFX_OK, cfx_node_insert_arg(n, 0, val(y), NULL));
        CHECK_STR_EQ("x y", input_names(n));
    }
    CHECK(g->stamp < 1000);
    cfx_graph_release(g);
}

/* Containers that are shared many times over cost time, but no memory. */
TEST(shared_containers)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_value v = tuple_of(g, 2, val(x), val(x));
    for (int i = 0; i < 15; i++)
        v = tuple_of(g, 2, v, v);
    cfx_node *n = cfx_graph_create(g, CFX_OP_CALL_FUNCTION, by_name("f"), v, cfx_value_invalid(),
                                   NULL, cfx_value_invalid(), NULL);
    REQUIRE(n);
    CHECK_INT_EQ(1 << 16, cfx_use_count(cfx_node_first_use(x)));
    CHECK(cfx_graph_memory(g) < 20000);
    CHECK_INT_EQ(CFX_OK, erase(n));
    cfx_graph_release(g);
}

/* ---- memory -------------------------------------------------------------------------------- */

TEST(a_million_edits_of_one_node)
{
    fake_host state = {0};
    const cfx_host host = fake_host_table(&state);
    fake_object o[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    cfx_graph *g = cfx_graph_new(NULL, &host, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *n = call(g, "f", x);
    size_t memory = 0;
    for (int i = 0; i < 1000000; i++) {
        cfx_value list[] = {val(x), text_value(g, i % 2 ? "short" : "a longer string than that"),
                            cfx_value_host(g, &o[i % 3], NULL)};
        cfx_value args = tuple_of(g, 2, cfx_value_list(g, list, 1 + (size_t)i % 3, NULL),
                                  cfx_value_int(i));
        for (size_t k = 1 + (size_t)i % 3; k < 3; k++)
            cfx_value_discard(g, list[k]);
        cfx_node_set_args(n, args, NULL);
        if (i == 10)
            memory = cfx_graph_memory(g);
    }
    CHECK_INT_EQ(memory, cfx_graph_memory(g));
    cfx_graph_release(g);
    CHECK(o[0].refs == 0 && o[1].refs == 0 && o[2].refs == 0);
}

/* ---- out of memory ------------------------------------------------------------------------- */

/* Edits until memory is out; a failed edit must leave everything as it was. */
static cfx_status edit_once(cfx_graph *g, cfx_node *x, cfx_node *n, int i, cfx_error *err)
{
    const cfx_value two[] = {val(x), cfx_value_int(i)};
    char key[16];
    snprintf(key, sizeof key, "key%d", i);
    switch (i % 4) {
    case 0:
        return cfx_node_insert_arg(n, cfx_node_num_args(n), val(x), err);
    case 1:
        return cfx_node_set_kwarg(n, key, val(x), err);
    case 2:
        return cfx_node_set_arg(n, 0, cfx_value_int(i), err);
    }
    cfx_value list = cfx_value_list(g, two, 2, err);
    if (list.kind == CFX_KIND_INVALID)
        return err->status;
    const cfx_status status = cfx_node_insert_arg(n, 0, list, err);
    if (status != CFX_OK)
        cfx_value_discard(g, list); /* it is still ours */
    return status;
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    static dump_text before, after;
    cfx_error err = {0};
    (void)arg;
    cfx_graph *g = cfx_graph_new(a, NULL, &err);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", &err) : NULL;
    const cfx_value v = val(x);
    cfx_node *n = x ? cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", &v, 1, NULL, 0, &err) : NULL;
    for (int i = 0; n && i < 60 && err.status == CFX_OK; i++) {
        dump_graph(&before, g);
        const cfx_status status = edit_once(g, x, n, i, &err);
        CHECK_INT_EQ(err.status, status);
        dump_graph(&after, g);
        if (status != CFX_OK)
            CHECK_STR_EQ(before.data, after.data);
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(edits_out_of_memory) { CHECK(test_oom_sweep(sweep, NULL) > 30); }
