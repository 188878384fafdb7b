/* hooks.c - tests of hooks: what they see, that they can refuse, and that they can edit. */
#include "graph_test.h"

#include "ir/graph_impl.h"

/* What the hooks of a test do when they are called; each does one thing, once. */
typedef struct log {
    dump_text text;
    cfx_status fail;
    bool silent;
    bool erase_it;    /* the node it is called for */
    cfx_node *erase;  /* another */
    bool create;      /* a further node */
    bool use_it;      /* gives the node a user */
} log_;

static void act(log_ *l, cfx_node *n)
{
    cfx_graph *g = cfx_node_graph(n);
    const log_ doing = *l;
    l->erase_it = l->create = l->use_it = false;
    l->erase = NULL;
    if (doing.create)
        CHECK(cfx_graph_placeholder(g, "extra", NULL));
    l->fail = CFX_OK; /* for what it does itself */
    if (doing.use_it)
        CHECK(call(g, "user", n));
    if (doing.erase)
        CHECK_INT_EQ(CFX_OK, erase(doing.erase));
    if (doing.erase_it)
        CHECK_INT_EQ(CFX_OK, erase(n));
    l->fail = doing.fail;
}

static cfx_status answer(log_ *l, cfx_error *err)
{
    if (l->fail == CFX_OK || l->silent)
        return l->fail;
    return cfx_error_set(err, l->fail, "the hook refuses");
}

static cfx_status on_create(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    log_ *l = ctx;
    CHECK(with.kind == CFX_KIND_INVALID && !user);
    CHECK(cfx_graph_find(cfx_node_graph(n), cfx_node_name(n, NULL)) == n);
    dump_add(&l->text, "+%s ", cfx_node_name(n, NULL));
    act(l, n);
    return answer(l, err);
}

static cfx_status on_erase(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    log_ *l = ctx;
    CHECK(with.kind == CFX_KIND_INVALID && !user && !cfx_node_is_erased(n));
    dump_add(&l->text, "-%s ", cfx_node_name(n, NULL));
    act(l, n);
    return answer(l, err);
}

static cfx_status on_replace(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    log_ *l = ctx;
    dump_add(&l->text, "%s>%s@%s ", cfx_node_name(n, NULL),
             with.kind == CFX_KIND_NODE ? cfx_node_name(with.as.node, NULL) : "value",
             cfx_node_name(user, NULL));
    act(l, user);
    return answer(l, err);
}

static log_ l; /* large, so not on the stack */

static cfx_graph *hooked(void)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    l = (log_){.fail = CFX_OK};
    CHECK_INT_EQ(1, cfx_graph_add_hook(g, CFX_HOOK_CREATE, on_create, &l, NULL));
    CHECK_INT_EQ(2, cfx_graph_add_hook(g, CFX_HOOK_ERASE, on_erase, &l, NULL));
    CHECK_INT_EQ(3, cfx_graph_add_hook(g, CFX_HOOK_REPLACE, on_replace, &l, NULL));
    return g;
}

static void check_log(const char *want)
{
    CHECK_STR_EQ(want, l.text.data);
    l.text.size = 0;
    l.text.data[0] = '\0';
}

TEST(what_hooks_see)
{
    cfx_graph *g = hooked();
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
    cfx_node *a = call(g, "relu", x);
    cfx_node *b = call(g, "neg", a);
    check_log("+x +y +relu +neg ");
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(x, cfx_value_node(y), NULL, NULL, NULL, NULL));
    check_log("x>y@relu ");
    CHECK_INT_EQ(CFX_OK, erase(b));
    check_log("-neg ");
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(a, tuple_of(g, 1, cfx_value_node(x)), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_input(a, x, cfx_value_node(y), NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_arg(a, 0, cfx_value_node(x), NULL));
    CHECK_INT_EQ(CFX_OK,
                 cfx_node_replace_input(a, y, cfx_value_int(1), NULL)); /* it has no such input */
    CHECK_INT_EQ(CFX_OK, cfx_node_append(x, a, NULL));
    check_log("x>y@relu ");
    CHECK(cfx_graph_remove_hook(g, 2));
    CHECK(!cfx_graph_remove_hook(g, 2) && !cfx_graph_remove_hook(g, 0));
    CHECK_INT_EQ(CFX_OK, erase(a));
    check_log("");
    CHECK_INT_EQ(4, cfx_graph_add_hook(g, CFX_HOOK_ERASE, on_erase, &l, NULL)); /* ids are new */
    cfx_graph_release(g);
}

TEST(several_hooks_in_order)
{
    cfx_graph *g = hooked();
    static log_ second;
    second = (log_){.fail = CFX_OK};
    cfx_graph_add_hook(g, CFX_HOOK_CREATE, on_create, &second, NULL);
    cfx_graph_placeholder(g, "x", NULL);
    CHECK_STR_EQ("+x ", second.text.data);
    l.fail = CFX_E_KEY; /* the first refuses: the second is not asked */
    CHECK(!cfx_graph_placeholder(g, "y", NULL));
    CHECK_STR_EQ("+x ", second.text.data);
    cfx_graph_release(g);
}

/* A refused node is taken back; the arguments it was given are the caller's again. */
TEST(refusing_creation)
{
    for (int silent = 0; silent < 2; silent++) {
        cfx_error err = {0};
        cfx_graph *g = hooked();
        cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
        l.fail = CFX_E_KEY;
        l.silent = silent;
        cfx_value v = text_value(g, "mine");
        cfx_value args[] = {cfx_value_node(x), v};
        cfx_kwarg k = {"k", v};
        CHECK(!cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", args, 2, &k, 1, &err));
        CHECK_INT_EQ(CFX_E_KEY, err.status);
        check_log("+x +f -f ");
        CHECK_STR_EQ("x", list_names(g));
        CHECK_INT_EQ(0, cfx_node_num_users(x));
        CHECK_INT_EQ(0, v.as.str->refs);
        cfx_value tuple = tuple_of(g, 1, v);
        CHECK(!cfx_graph_create(g, CFX_OP_CALL_FUNCTION, by_name("f"), tuple, cfx_value_invalid(),
                                NULL, v, NULL));
        CHECK_INT_EQ(0, tuple.as.seq->refs);
        CHECK_INT_EQ(1, v.as.str->refs);
        cfx_value_discard(g, tuple);
        cfx_graph_release(g);
    }
}

TEST(creation_hooks_that_edit)
{
    for (int what = 0; what < 5; what++) {
        cfx_error err = {0};
        cfx_graph *g = hooked();
        cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
        cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
        l.fail = what == 4 ? CFX_E_KEY : CFX_OK;
        l.erase_it = what == 0;
        l.create = what == 1;
        l.erase = what == 2 ? y : NULL;
        l.use_it = what >= 3;
        const cfx_value arg = cfx_value_node(x);
        cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", &arg, 1, NULL, 0, &err);
        static const cfx_status want[] = {CFX_E_GRAPH, CFX_OK, CFX_OK, CFX_OK, CFX_E_KEY};
        static const char *const left[] = {"x y", "x y f extra", "x f", "x y f user", "x y f user"};
        CHECK_INT_EQ(want[what], err.status);
        CHECK((n == NULL) == (want[what] != CFX_OK));
        CHECK_STR_EQ(left[what], list_names(g)); /* a node with users cannot be taken back */
        cfx_graph_release(g);
    }
}

TEST(refusing_erasure)
{
    for (int silent = 0; silent < 2; silent++) {
        cfx_error err = {0};
        cfx_graph *g = hooked();
        cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
        l.fail = CFX_E_KEY;
        l.silent = silent;
        CHECK_INT_EQ(CFX_E_KEY, cfx_graph_erase(g, x, &err));
        CHECK_INT_EQ(CFX_E_KEY, err.status);
        CHECK_STR_EQ("x", list_names(g));
        l.fail = CFX_OK;
        l.erase_it = true; /* from within its own hook */
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_erase(g, x, &err));
        CHECK_INT_EQ(0, cfx_graph_size(g));
        x = cfx_graph_placeholder(g, "x", NULL);
        l.use_it = true; /* suddenly it has a user */
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_erase(g, x, &err));
        CHECK_STR_EQ("x_1 user", list_names(g));
        cfx_graph_release(g);
    }
}

TEST(refusing_replacement)
{
    static dump_text before, after;
    for (int silent = 0; silent < 2; silent++) {
        cfx_error err = {0};
        cfx_graph *g = hooked();
        cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
        cfx_node *y = cfx_graph_placeholder(g, "y", NULL);
        cfx_node *a = call(g, "f", x);
        cfx_node *b = call(g, "f", x);
        l.fail = CFX_E_KEY;
        l.silent = silent;
        dump_graph(&before, g);
        CHECK_INT_EQ(CFX_E_KEY,
                     cfx_node_replace_uses(x, cfx_value_node(y), NULL, NULL, NULL, &err));
        CHECK_INT_EQ(CFX_E_KEY, err.status);
        CHECK_INT_EQ(CFX_E_KEY, cfx_node_replace_input(a, x, cfx_value_node(y), NULL));
        dump_graph(&after, g);
        CHECK_STR_EQ(before.data, after.data);
        l.fail = CFX_OK;
        l.erase_it = true; /* the user */
        CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_replace_input(a, x, cfx_value_node(y), NULL));
        CHECK_STR_EQ("x y f_1", list_names(g));
        l.erase = b;
        CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(x, cfx_value_node(y), NULL, NULL, NULL, NULL));
        CHECK_STR_EQ("x y", list_names(g));
        CHECK(!g->limbo && g->open_iters == 0);
        cfx_graph_release(g);
    }
}

/* Not allowed, but it must not crash either. */
static cfx_status remove_myself(void *ctx, cfx_node *n, cfx_value with, cfx_node *user,
                                cfx_error *err)
{
    (void)with;
    (void)user;
    (void)err;
    cfx_graph_remove_hook(cfx_node_graph(n), *(uint32_t *)ctx);
    return CFX_OK;
}

TEST(a_hook_that_removes_itself)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    uint32_t id = cfx_graph_add_hook(g, CFX_HOOK_CREATE, remove_myself, &id, NULL);
    CHECK(cfx_graph_placeholder(g, "x", NULL));
    CHECK(cfx_graph_placeholder(g, "y", NULL));
    cfx_graph_release(g);
}

/* ---- before the next edit ------------------------------------------------------------------ */

typedef struct watch {
    int calls;
    size_t size;        /* of the graph when it was called */
    cfx_status edited;  /* what an edit inside the callback answered */
    bool again;         /* whether it waits for the next edit, too */
} watch;

static void on_edit(void *ctx, cfx_graph *g)
{
    watch *w = ctx;
    w->calls++;
    w->size = cfx_graph_size(g);
    cfx_error err = {0};
    CHECK(!cfx_graph_placeholder(g, "no", &err));
    w->edited = err.status;
    if (w->again)
        cfx_graph_on_edit(g, on_edit, w);
}

/* Does edit number `i` of all that there are; false past the last. */
static bool edit(int i, cfx_graph *g, cfx_node *x, cfx_node *f, cfx_node *unused)
{
    const cfx_target target = {.name = "other", .size = 5};
    switch (i) {
    case 0: return call(g, "f", x);
    case 1: return erase(unused) == CFX_OK;
    case 2: return cfx_node_set_arg(f, 0, cfx_value_node(unused), NULL) == CFX_OK;
    case 3: return cfx_node_set_args(f, cfx_value_tuple(g, NULL, 0, NULL), NULL) == CFX_OK;
    case 4: return cfx_node_insert_arg(f, 0, cfx_value_node(x), NULL) == CFX_OK;
    case 5: return cfx_node_set_kwarg(f, "k", cfx_value_node(x), NULL) == CFX_OK;
    case 6: return cfx_node_set_target(f, target, NULL) == CFX_OK;
    case 7: return cfx_node_set_op(f, CFX_OP_CALL_METHOD, NULL) == CFX_OK;
    case 8: return cfx_node_set_type(f, cfx_value_none(), NULL) == CFX_OK;
    case 9: return cfx_node_rename(f, "z", NULL) == CFX_OK;
    case 10: return cfx_node_set_name(f, "z", 1, NULL) == CFX_OK;
    case 11: return cfx_node_prepend(x, unused, NULL) == CFX_OK;
    case 12: return cfx_node_append(f, unused, NULL) == CFX_OK;
    case 13: return cfx_node_replace_uses(x, cfx_value_node(unused), NULL, NULL, NULL, NULL) ==
                    CFX_OK;
    case 14: return cfx_node_replace_input(f, x, cfx_value_node(unused), NULL) == CFX_OK;
    case 15: cfx_graph_clear(g); return cfx_graph_size(g) == 0;
    }
    return false;
}

TEST(on_edit_comes_before_every_edit_once)
{
    int i = 0;
    for (bool done = true; done; i++) {
        watch w = {0};
        cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
        cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
        cfx_node *unused = cfx_graph_placeholder(g, "unused", NULL);
        cfx_node *f = call(g, "f", x);
        cfx_graph_on_edit(g, on_edit, &w);
        CHECK_INT_EQ(0, w.calls);
        done = edit(i, g, x, f, unused);
        CHECK_INT_EQ(done ? 1 : 0, w.calls);
        CHECK_INT_EQ(done ? 3 : 0, w.size);
        CHECK_INT_EQ(done ? CFX_E_GRAPH : CFX_OK, w.edited);
        CHECK(cfx_graph_placeholder(g, "y", NULL));
        CHECK_INT_EQ(1, w.calls);
        cfx_graph_release(g);
    }
    CHECK_INT_EQ(17, i);
}

TEST(on_edit_again_replaced_removed)
{
    watch first = {0}, second = {.again = true};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph_on_edit(g, on_edit, &first);
    cfx_graph_on_edit(g, on_edit, &second);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    CHECK_INT_EQ(CFX_OK, erase(x));
    CHECK_INT_EQ(0, first.calls);
    CHECK_INT_EQ(2, second.calls);
    cfx_graph_on_edit(g, NULL, NULL);
    CHECK(cfx_graph_placeholder(g, "x", NULL));
    CHECK_INT_EQ(2, second.calls);
    cfx_graph_on_edit(g, on_edit, &first);
    cfx_graph_release(g);
    CHECK_INT_EQ(0, first.calls);
}

TEST(on_edit_of_a_region)
{
    watch outer = {0}, inner = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *sub = cfx_graph_new(NULL, NULL, NULL);
    cfx_value region = cfx_value_region(g, sub, NULL);
    REQUIRE(cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", &region, 1, NULL, 0, NULL));
    cfx_graph_on_edit(g, on_edit, &outer);
    cfx_graph_on_edit(sub, on_edit, &inner);
    CHECK(cfx_graph_placeholder(sub, "x", NULL));
    CHECK_INT_EQ(1, outer.calls);
    CHECK_INT_EQ(1, outer.size);
    CHECK_INT_EQ(1, inner.calls);
    cfx_graph_on_edit(sub, on_edit, &inner);
    CHECK(cfx_graph_placeholder(g, "y", NULL));
    CHECK_INT_EQ(1, inner.calls);
    cfx_graph_release(sub);
    cfx_graph_release(g);
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    (void)arg;
    l = (log_){.fail = CFX_OK};
    cfx_graph *g = cfx_graph_new(a, NULL, &err);
    for (int i = 0; g && i < 40 && err.status == CFX_OK; i++) {
        const uint32_t id = cfx_graph_add_hook(g, CFX_HOOK_CREATE, on_create, &l, &err);
        CHECK((id == 0) == (err.status != CFX_OK));
    }
    if (err.status == CFX_OK)
        cfx_graph_placeholder(g, "x", &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(hooks_out_of_memory) { CHECK(test_oom_sweep(sweep, NULL) > 3); }
