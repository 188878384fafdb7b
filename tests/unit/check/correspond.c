/* correspond.c - tests of src/analysis: pairs of nodes of two graphs, and who is to blame. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

#include <cfx/embed/check.h>
#include <cfx/embed/graph.h>

static cfx_node *call(cfx_graph *g, const char *target, cfx_node *x, const char *name)
{
    cfx_value arg = cfx_value_node(x);
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target, &arg, 1, NULL, 0, NULL);
    if (n && name)
        cfx_node_set_name(n, name, strlen(name), NULL);
    return n;
}

/* A chain: x, then a call of each target, named after `names`; NULL ends both. */
static cfx_graph *chain(const char *const *targets, const char *const *names)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = cfx_graph_placeholder(g, "x", NULL);
    for (int i = 0; targets[i]; i++)
        n = call(g, targets[i], n, names ? names[i] : NULL);
    cfx_graph_output(g, cfx_value_node(n), NULL);
    return g;
}

/* ---- pairs --------------------------------------------------------------------------------- */

typedef struct pairs {
    char text[512];
    size_t used;
    size_t count;
    size_t stop_at;  /* fails at this pair, counted from 1 */
} pairs;

static cfx_status add_pair(void *ctx, cfx_node *a, cfx_node *b, cfx_pairing how)
{
    pairs *p = ctx;
    if (++p->count == p->stop_at)
        return CFX_E_HOST;
    p->used += (size_t)snprintf(p->text + p->used, sizeof p->text - p->used, "%s%s-%s:%c",
                                p->used ? " " : "", a ? cfx_node_name(a, NULL) : "",
                                b ? cfx_node_name(b, NULL) : "", cfx_pairing_name(how)[0]);
    return CFX_OK;
}

static const char *paired(cfx_graph *a, cfx_graph *b)
{
    static pairs p;
    cfx_error err = {.status = CFX_OK};
    p = (pairs){.used = 0};
    if (!CHECK_INT_EQ(CFX_OK, cfx_graph_correspond(a, b, add_pair, &p, &err)))
        printf("    %s\n", err.message);
    return p.text;
}

static const char *paired_chains(const char *const *a, const char *const *a_names,
                                 const char *const *b, const char *const *b_names)
{
    cfx_graph *x = chain(a, a_names);
    cfx_graph *y = chain(b, b_names);
    const char *text = paired(x, y);
    cfx_graph_release(x);
    cfx_graph_release(y);
    return text;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(equal_graphs_pair_node_by_node)
{
    CHECK_STR_EQ("x-x:s a-a:s b-b:s output-output:s",
                 paired_chains(LIST("f", "g"), LIST("a", "b"), LIST("f", "g"), LIST("a", "b")));
}

TEST(a_graph_pairs_with_itself)
{
    cfx_graph *g = chain(LIST("f", "g"), LIST("a", "b"));
    CHECK_STR_EQ("x-x:s a-a:s b-b:s output-output:s", paired(g, g));
    cfx_graph_release(g);
}

TEST(names_do_not_matter_where_the_structure_is_the_same)
{
    CHECK_STR_EQ("x-x:s a-b:s b-a:s output-output:s",
                 paired_chains(LIST("f", "g"), LIST("a", "b"), LIST("f", "g"), LIST("b", "a")));
}

TEST(behind_a_change_names_pair)
{
    CHECK_STR_EQ("x-x:s a-a:u b-b:n output-output:u",
                 paired_chains(LIST("f", "g"), LIST("a", "b"), LIST("h", "g"), LIST("a", "b")));
}

TEST(a_name_alone_is_the_last_reason)
{
    CHECK_STR_EQ("x-x:s a-a:r b-d:u output-output:u -c:n",
                 paired_chains(LIST("f", "g"), LIST("a", "b"), LIST("h", "i", "k"),
                               LIST("c", "a", "d")));
}

TEST(a_renamed_node_with_another_target_pairs_by_its_uses)
{
    CHECK_STR_EQ("x-x:s a-n:s b-c:u output-output:u",
                 paired_chains(LIST("f", "g"), LIST("a", "b"), LIST("f", "h"), LIST("n", "c")));
}

TEST(erased_and_new_nodes_stay_alone)
{
    CHECK_STR_EQ("x-x:s a-a:s b-a:o c-c:n output-output:u",
                 paired_chains(LIST("f", "g", "h"), LIST("a", "b", "c"), LIST("f", "h"),
                               LIST("a", "c")));
    CHECK_STR_EQ("x-x:s a-a:s c-c:n output-output:u -b:n",
                 paired_chains(LIST("f", "h"), LIST("a", "c"), LIST("f", "g", "h"),
                               LIST("a", "b", "c")));
}

static void twice(cfx_graph *g, const char *first, const char *second)
{
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_value pair[] = {cfx_value_node(call(g, "f", x, first)),
                        cfx_value_node(call(g, "f", x, second))};
    cfx_graph_output(g, cfx_value_tuple(g, pair, 2, NULL), NULL);
}

TEST(of_several_that_compute_the_same_the_one_of_the_same_name_pairs)
{
    cfx_graph *a = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *b = cfx_graph_new(NULL, NULL, NULL);
    twice(a, "a", "b");
    twice(b, "c", "a");
    CHECK_STR_EQ("x-x:s a-a:s b-c:s output-output:s", paired(a, b));
    cfx_graph_release(a);
    cfx_graph_release(b);
}

TEST(inputs_pair_by_their_number)
{
    cfx_graph *a = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *b = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph_placeholder(a, "x", NULL);
    cfx_graph_placeholder(b, "z", NULL);
    cfx_graph_placeholder(b, "more", NULL);
    CHECK_STR_EQ("x-z:s -more:n", paired(a, b));
    cfx_graph_release(a);
    cfx_graph_release(b);
}

TEST(regions_of_pairs_pair)
{
    cfx_graph *a = nested_graph(NULL, NULL, 2);
    cfx_graph *b = cfx_graph_clone(a, NULL, NULL);
    pairs p = {.used = 0};
    CHECK_INT_EQ(CFX_OK, cfx_graph_correspond(a, b, add_pair, &p, NULL));
    /* Both branches are the same region, so it is gone through twice on each of two levels. */
    CHECK_INT_EQ(5 + 2 * (5 + 2 * 4), p.count);
    CHECK(strstr(p.text, "-:") == NULL && strstr(p.text, " -") == NULL);
    cfx_graph_release(a);
    cfx_graph_release(b);
}

TEST(a_callback_that_fails_stops)
{
    cfx_graph *g = chain(LIST("f", "g"), NULL);
    pairs p = {.stop_at = 2};
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_correspond(g, g, add_pair, &p, &err));
    CHECK_INT_EQ(CFX_E_HOST, err.status);
    CHECK_INT_EQ(2, p.count);
    CHECK(!cfx_graph_is_frozen(g));
    cfx_graph_release(g);
}

static cfx_status edit_inside(void *ctx, cfx_node *a, cfx_node *b, cfx_pairing how)
{
    (void)b;
    (void)how;
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_rename(a, "other", NULL));
    ++*(int *)ctx;
    return CFX_OK;
}

TEST(a_callback_cannot_edit)
{
    cfx_graph *g = chain(LIST("f"), NULL);
    int calls = 0;
    CHECK_INT_EQ(CFX_OK, cfx_graph_correspond(g, g, edit_inside, &calls, NULL));
    CHECK_INT_EQ(3, calls);
    cfx_graph_release(g);
}

TEST(a_million_nodes)
{
    enum { N = 1000000 };
    cfx_graph *a = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = cfx_graph_placeholder(a, "x", NULL);
    for (int i = 0; i < N; i++)
        n = call(a, i % 3 ? "f" : "g", n, NULL);
    cfx_graph_output(a, cfx_value_node(n), NULL);
    cfx_graph *b = cfx_graph_clone(a, NULL, NULL);
    cfx_target other = {NULL, "h", 1};
    cfx_node_set_target(cfx_node_next(cfx_graph_first(b)), other, NULL);
    pairs p = {.stop_at = 3};
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_correspond(a, b, add_pair, &p, NULL));
    CHECK_STR_EQ("x-x:s g-g:u", p.text);
    cfx_graph_release(a);
    cfx_graph_release(b);
}

static cfx_status correspond_all(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    (void)arg;
    cfx_graph *g = nested_graph(a, &err, 1);
    cfx_graph *copy = g ? cfx_graph_clone(g, NULL, &err) : NULL;
    pairs p = {.used = 0};
    if (copy)
        cfx_graph_correspond(g, copy, add_pair, &p, &err);
    cfx_graph_release(copy);
    cfx_graph_release(g);
    return err.status;
}

TEST(correspond_runs_out_of_memory)
{
    CHECK(test_oom_sweep(correspond_all, NULL) > 3);
}

/* ---- blame --------------------------------------------------------------------------------- */

/* The verdict on a node is the first letter of its name: w(rong), r(ight), else unknown. */
static int by_letter(void *ctx, cfx_node *n)
{
    const char letter = cfx_node_name(n, NULL)[0];
    (void)ctx;
    if (cfx_node_op(n) == CFX_OP_OUTPUT)
        return CFX_VERDICT_WRONG;
    return letter == 'w' ? CFX_VERDICT_WRONG : letter == 'r' ? CFX_VERDICT_RIGHT
                                                             : CFX_VERDICT_UNKNOWN;
}

static const char *blamed(cfx_graph *g)
{
    cfx_node *culprit = NULL;
    CHECK_INT_EQ(CFX_OK, cfx_graph_blame(g, by_letter, NULL, &culprit, NULL));
    return culprit ? cfx_node_name(culprit, NULL) : "";
}

static void check_blame(const char *want, const char *const *names)
{
    static const char *const targets[] = {"f", "f", "f", "f", "f", NULL};
    size_t n = 0;
    while (names[n])
        n++;
    cfx_graph *g = chain(targets + 5 - n, names);
    CHECK_STR_EQ(want, blamed(g));
    cfx_graph_release(g);
}

TEST(the_first_wrong_node_is_to_blame)
{
    check_blame("w1", LIST("r1", "w1", "w2"));
    check_blame("w1", LIST("u1", "w1", "u2", "w2"));
    check_blame("output", LIST("r1", "r2"));
}

TEST(what_becomes_right_again_is_not_to_blame)
{
    check_blame("w2", LIST("w1", "u1", "r1", "w2", "w3"));
    check_blame("output", LIST("w1", "u1", "r1"));
}

TEST(dead_nodes_are_not_to_blame_but_those_that_write_are)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "r0", NULL);
    cfx_value self = cfx_value_node(x);
    call(g, "torch.neg", x, "w1");
    cfx_graph_output(g, self, NULL);
    CHECK_STR_EQ("output", blamed(g));
    cfx_insert_point before = {cfx_graph_last(g), false};
    cfx_graph_set_insert_point(g, before, NULL);
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_METHOD, "add_", &self, 1, NULL, 0, NULL);
    cfx_node_set_name(n, "w2", 2, NULL);
    CHECK_STR_EQ("w2", blamed(g));
    cfx_node_set_name(n, "unknown", 7, NULL);
    CHECK_STR_EQ("unknown", blamed(g));
    cfx_node_set_name(n, "r1", 2, NULL);
    CHECK_STR_EQ("output", blamed(g));
    cfx_graph_release(g);
}

TEST(nobody_is_to_blame_in_an_empty_graph)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    CHECK_STR_EQ("", blamed(g));
    cfx_graph_release(g);
}

static int refuse(void *ctx, cfx_node *n)
{
    (void)ctx;
    (void)n;
    return -1;
}

TEST(a_verdict_that_fails_stops)
{
    cfx_graph *g = chain(LIST("f"), NULL);
    cfx_node *culprit;
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_blame(g, refuse, NULL, &culprit, &err));
    CHECK(culprit == NULL && err.status == CFX_E_HOST && !cfx_graph_is_frozen(g));
    cfx_graph_release(g);
}

static cfx_status blame_all(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_node *culprit;
    (void)arg;
    cfx_graph *g = sample_graph(a, &err);
    if (g)
        cfx_graph_blame(g, by_letter, NULL, &culprit, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(blame_runs_out_of_memory)
{
    CHECK(test_oom_sweep(blame_all, NULL) > 1);
}
