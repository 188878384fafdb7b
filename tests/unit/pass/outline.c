/* outline.c - tests of src/pass/outline.c. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/embed/hook.h>
#include <cfx/embed/pass.h>
#include <cfx/pass.h>

#define REGION "graph { %a = placeholder[target=a]() %f = call_function[target=f](%a) output(%f) }"
#define SAME "graph { %a = placeholder[target=a]() output(%a) }"
#define COND "graph(): %p = placeholder[target=p]() %x = placeholder[target=x]() %c = " \
    "call_function[target=cfx.cond](%p, " REGION ", " SAME ", (%x,)) output(%c)"
#define TEST_OF "graph { %i = placeholder[target=i]() %y = placeholder[target=y]() output(%i) }"
#define BODY "graph { %i = placeholder[target=i]() %y = placeholder[target=y]() " \
    "%j = call_function[target=f](%i) output((%j, %y)) }"
#define LOOP(state, result) "graph(): %x = placeholder[target=x]() %w = call_function" \
    "[target=cfx.while_loop](" TEST_OF ", " BODY ", " state ") " result

typedef struct seen {
    char paths[256];
    const char *taken;     /* a path */
    size_t outputs[4];     /* how many values the modules return */
    bool copies[4];
    size_t n;
    bool rename, fail_path, fail_region;
    cfx_node *change;      /* gets another argument when its target is asked for */
} seen;

static int is_taken(void *ctx, const char *path)
{
    const seen *s = ctx;
    return s->fail_path ? -1 : s->taken && strcmp(path, s->taken) == 0;
}

static cfx_status outlined(void *ctx, const char *path, const cfx_region *region, cfx_error *err)
{
    seen *s = ctx;
    size_t size;
    (void)err;
    if (s->fail_region)
        return CFX_E_HOST;
    strcat(s->paths, path);
    strcat(s->paths, " ");
    cfx_value_items(cfx_node_arg(cfx_graph_last(region->graph), 0), &size);
    s->copies[s->n] = region->copied_from != NULL;
    s->outputs[s->n++] = size;
    return CFX_OK;
}

static cfx_target new_target(void *ctx, cfx_operator op)
{
    const seen *s = ctx;
    if (s->change)
        CHECK_INT_EQ(CFX_OK, cfx_node_set_arg(s->change, 3, cfx_value_none(), NULL));
    return s->rename && op == CFX_OPID_cond ? (cfx_target){.name = "torch.cond", .size = 10}
                                            : (cfx_target){0};
}

static cfx_outline how(seen *s) { return (cfx_outline){is_taken, outlined, new_target, s}; }

static cfx_graph *parse(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static cfx_graph *outline(const char *text, seen *s)
{
    cfx_graph *g = parse(text, NULL, NULL);
    const cfx_outline o = how(s);
    CHECK_INT_EQ(CFX_OK, cfx_graph_outline(g, &o, NULL));
    if (s->rename)  /* cfx's own operators want graphs */
        CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    return g;
}

TEST(branches_become_modules)
{
    seen s = {.taken = "true_graph_0", .rename = true};
    cfx_graph *g = outline(COND, &s);
    CHECK_STR_EQ("true_graph_1 false_graph_0 ", s.paths);
    const cfx_node *c = cfx_graph_find(g, "c");
    CHECK_STR_EQ("torch.cond", cfx_node_target(c, NULL, NULL));
    CHECK(cfx_node_op(cfx_node_input(c, 1)) == CFX_OP_GET_ATTR);
    CHECK_STR_EQ("true_graph_1", cfx_node_target(cfx_node_input(c, 1), NULL, NULL));
    CHECK(cfx_node_next(cfx_node_input(c, 2)) == c);
    cfx_graph_release(g);
}

TEST(state_that_never_changes_is_an_input)
{
    size_t state, more;
    seen s = {.n = 0};
    cfx_graph *g = outline(LOOP("(%x, %x)", "%i = call_function[target=_operator.getitem](%w, 0) "
                                            "output(%i)"), &s);
    const cfx_node *w = cfx_graph_find(g, "w");
    cfx_value_items(cfx_node_arg(w, 2), &state);
    cfx_value_items(cfx_node_arg(w, 3), &more);
    CHECK_INT_EQ(1, state);
    CHECK_INT_EQ(1, more);
    CHECK_STR_EQ("while_loop_cond_graph_0 while_loop_body_graph_0 ", s.paths);
    CHECK(!s.copies[0] && s.copies[1] && s.outputs[1] == 1);
    cfx_graph_release(g);
    seen all = {.n = 0};  /* the result is used as a whole */
    g = outline(LOOP("(%x, %x)", "output(%w)"), &all);
    w = cfx_graph_find(g, "w");
    cfx_value_items(cfx_node_arg(w, 3), &more);
    CHECK_INT_EQ(0, more);
    CHECK(!all.copies[1] && all.outputs[1] == 2);
    cfx_graph_release(g);
}

TEST(what_torch_refuses_keeps_its_form)
{
    seen s = {.n = 0};
    cfx_graph *g = outline(LOOP("(%x, 1.5)", "output(%x)"), &s);
    CHECK_INT_EQ(3, cfx_node_num_args(cfx_graph_find(g, "w")));
    CHECK_STR_EQ("cfx.while_loop", cfx_node_target(cfx_graph_find(g, "w"), NULL, NULL));
    cfx_graph_release(g);
}

TEST(nobody_need_be_asked)
{
    cfx_graph *g = parse(COND, NULL, NULL);
    const cfx_outline silent = {NULL, NULL, NULL, NULL};
    CHECK_INT_EQ(CFX_OK, cfx_graph_outline(g, &silent, NULL));
    CHECK_INT_EQ(6, cfx_graph_size(g));
    cfx_graph_release(g);
}

TEST(bad_input)
{
    cfx_error err = {.status = CFX_OK};
    seen s = {.n = 0};
    cfx_outline o = how(&s);
    cfx_graph *g = parse("graph(): %c = call_function[target=cfx.cond](1, 2) output(%c)", NULL,
                         NULL);
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_outline(g, &o, &err));
    CHECK(strstr(err.message, "%c must pass all arguments") != NULL);
    cfx_graph_release(g);
    g = parse("graph(): %c = call_function[target=cfx.cond](1, 2, 3, ()) output(%c)", NULL, NULL);
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_outline(g, &o, &err));
    CHECK(strstr(err.message, "not a graph") != NULL);
    cfx_graph_release(g);
    g = parse(COND, NULL, NULL);
    s.fail_path = true;
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_outline(g, &o, &err));
    s = (seen){.fail_region = true};
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_outline(g, &o, &err));
    cfx_graph_release(g);
}

/* What a hook does when the node of a module is made. */
typedef struct meddler {
    bool erase, change, refuse;
    int turn;  /* at which node */
} meddler;

static cfx_status meddle(void *ctx, cfx_node *n, cfx_value with, cfx_node *user, cfx_error *err)
{
    meddler *m = ctx;
    cfx_node *c = cfx_graph_find(cfx_node_graph(n), "c");
    (void)with;
    (void)user;
    if (m->turn-- != 0)
        return CFX_OK;
    if (m->refuse)
        return cfx_error_set(err, CFX_E_HOST, "no");
    if (m->change)
        CHECK_INT_EQ(CFX_OK, cfx_node_set_arg(c, 3, cfx_value_tuple(cfx_node_graph(n), NULL, 0,
                                                                    NULL), NULL));
    if (m->erase)
        CHECK_INT_EQ(CFX_OK, cfx_graph_erase(cfx_node_graph(n), c, NULL));
    return CFX_OK;
}

TEST(hooks_may_meddle)
{
    static const char text[] = "graph(): %x = placeholder[target=x]() %c = call_function"
                               "[target=cfx.cond](%x, " REGION ", " SAME ", (%x,)) output(%x)";
    for (int i = 0; i < 6; i++) {
        cfx_error err = {.status = CFX_OK};
        seen s = {.n = 0};
        const cfx_outline o = how(&s);
        meddler m = {.erase = i / 2 == 0, .change = i / 2 == 1, .refuse = i / 2 == 2,
                     .turn = i % 2};
        cfx_graph *g = parse(text, NULL, NULL);
        CHECK(cfx_graph_add_hook(g, CFX_HOOK_CREATE, meddle, &m, NULL) > 0);
        const cfx_status status = cfx_graph_outline(g, &o, &err);
        CHECK_INT_EQ(status, err.status);
        CHECK((status == CFX_OK) == m.change);
        CHECK(!m.refuse || status == CFX_E_HOST);
        cfx_graph_release(g);
    }
}

TEST(targets_may_meddle)
{
    seen s = {.rename = true};
    const cfx_outline o = how(&s);
    cfx_graph *g = parse(COND, NULL, NULL);
    s.change = cfx_graph_find(g, "c");
    CHECK_INT_EQ(CFX_OK, cfx_graph_outline(g, &o, NULL));
    CHECK_INT_EQ(CFX_KIND_NONE, cfx_node_arg(s.change, 3).kind);
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *text)
{
    cfx_error err = {.status = CFX_OK};
    seen s = {.n = 0};
    const cfx_outline o = how(&s);
    cfx_graph *g = parse(text, a, &err);
    if (!g)
        return err.status;
    cfx_status status = cfx_graph_outline(g, &o, &err);
    cfx_graph_release(g);
    return status;
}

TEST(running_out_of_memory)
{
    CHECK(test_oom_sweep(body, COND) > 10);
    CHECK(test_oom_sweep(body, LOOP("(%x, %x)", "output(%x)")) > 10);
}
