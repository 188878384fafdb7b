/* accelerate.c - tests of src/split: parts that alternate between an accelerator and elsewhere. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

#include <cfx/embed/partition.h>

enum { ACC = CFX_FUSION_ACC, TENSOR = CFX_FUSION_TENSOR, BOTH = ACC | TENSOR, ROOM = 32 };

static cfx_node *call2(cfx_graph *g, const char *target, cfx_node *a, cfx_node *b)
{
    cfx_value args[] = {cfx_value_node(a), b ? cfx_value_node(b) : cfx_value_int(1)};
    return cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target, args, 2, NULL, 0, NULL);
}

static cfx_node *add(cfx_graph *g, cfx_node *a, cfx_node *b) { return call2(g, "t.add", a, b); }
static cfx_node *relu(cfx_graph *g, cfx_node *a) { return call2(g, "t.relu", a, NULL); }
static cfx_node *size(cfx_graph *g, cfx_node *a) { return call2(g, "t.size", a, NULL); }

static cfx_graph *new_graph(cfx_node **x)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    *x = cfx_graph_placeholder(g, "x", NULL);
    return g;
}

static bool calls(const cfx_node *n, const char *target)
{
    return strcmp(cfx_node_target(n, NULL, NULL), target) == 0;
}

static int supports(void *ctx, cfx_node *n)
{
    (void)ctx;
    return !calls(n, "t.relu");
}

static int gives_tensor(void *ctx, cfx_node *n)
{
    (void)ctx;
    return calls(n, "t.doubt") ? -1 : !calls(n, "t.size");
}

/* "add|acc: add_1 add_2": the names in each part. */
static const char *parts_text(cfx_node *const *nodes, const cfx_acc_part *parts, size_t n)
{
    static char text[512];
    size_t used = 0, at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "|" : "",
                                 parts[i].acc ? "acc:" : "cpu:");
        for (; at < parts[i].end; at++)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s",
                                     cfx_node_name(nodes[at], NULL));
    }
    return text;
}

static const char *split(cfx_graph *g, const cfx_acc_options *opts)
{
    cfx_node *nodes[ROOM];
    cfx_acc_part parts[ROOM];
    size_t n;
    CHECK_INT_EQ(CFX_OK, cfx_graph_split_acc(g, opts, nodes, parts, &n, NULL));
    return parts_text(nodes, parts, n);
}

static cfx_status collect_name(void *ctx, cfx_node *n)
{
    strcat(ctx, cfx_node_name(n, NULL));
    strcat(ctx, " ");
    return CFX_OK;
}

static cfx_status collect_pair(void *ctx, cfx_node *node, cfx_node *needs)
{
    collect_name(ctx, node);
    return collect_name(ctx, needs);
}

static cfx_status refuse(void *ctx, cfx_node *n)
{
    (void)ctx;
    (void)n;
    return CFX_E_VALUE;
}

/* ---- the whole ----------------------------------------------------------------------------- */

TEST(parts_alternate)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *r = relu(g, x);
    cfx_node *b = add(g, a, r);
    cfx_node *s = relu(g, b);
    cfx_node *c = add(g, s, NULL);
    cfx_graph_output(g, cfx_value_node(add(g, c, a)), NULL);
    cfx_acc_options opts = {.supported = supports};
    CHECK_STR_EQ("cpu: relu|acc: add add_1|cpu: relu_1|acc: add_2 add_3", split(g, &opts));
    opts.min_size = 3;
    CHECK_STR_EQ("cpu: relu add add_1 relu_1 add_2 add_3", split(g, &opts));
    cfx_graph_release(g);
    g = new_graph(&x);
    CHECK_STR_EQ("", split(g, &opts));
    opts.min_size = 0;
    cfx_graph_output(g, cfx_value_node(relu(g, add(g, x, NULL))), NULL);
    CHECK_STR_EQ("acc: add|cpu: relu", split(g, &opts));
    cfx_graph_release(g);
}

/* The size is read by a call that runs elsewhere. */
TEST(values_other_than_tensors_do_not_cross)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *n = size(g, x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *r = call2(g, "t.relu", a, n);
    cfx_graph_output(g, cfx_value_node(add(g, r, a)), NULL);
    cfx_acc_options opts = {.supported = supports, .is_tensor = gives_tensor};
    CHECK_STR_EQ("cpu: size|acc: add|cpu: relu|acc: add_1", split(g, &opts));
    opts.allow_non_tensor = true;
    CHECK_STR_EQ("acc: size add|cpu: relu|acc: add_1", split(g, &opts));
    opts.move_non_tensors = true;
    CHECK_STR_EQ("acc: add|cpu: relu size|acc: add_1", split(g, &opts));
    cfx_graph_release(g);
}

/* view reads size: both wait for relu, unless groups are not asked for. */
TEST(groups_run_together)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *n = size(g, x);
    cfx_node *v = call2(g, "t.view", relu(g, add(g, x, NULL)), n);
    cfx_graph_output(g, cfx_value_node(v), NULL);
    cfx_acc_options opts = {.supported = supports, .is_tensor = gives_tensor};
    CHECK_STR_EQ("acc: add|cpu: relu|acc: size view", split(g, &opts));
    opts.skip_fusion = true;
    CHECK_STR_EQ("acc: size add|cpu: relu|acc: view", split(g, &opts));
    cfx_graph_release(g);
}

/* ---- the steps ----------------------------------------------------------------------------- */

TEST(dropping)
{
    cfx_node *x;
    char text[128] = "";
    cfx_graph *g = new_graph(&x);
    cfx_node *n = size(g, x);
    cfx_node *m = add(g, n, NULL);
    cfx_node *v = add(g, x, m);
    cfx_graph_output(g, cfx_value_node(add(g, v, NULL)), NULL);
    /* x size add add_1 add_2 output: size runs elsewhere, size and add are not tensors */
    unsigned char flags[] = {0, 0, ACC, BOTH, BOTH, 0};
    CHECK_INT_EQ(CFX_OK, cfx_graph_drop_non_tensor_inputs(g, flags, NULL, 0, collect_name, text,
                                                          NULL));
    CHECK_STR_EQ("add add_1 ", text);
    CHECK(flags[2] == 0 && flags[3] == TENSOR && flags[4] == BOTH);
    text[0] = '\0';
    unsigned char all[] = {0, ACC, ACC, BOTH, BOTH, 0};
    cfx_node *from[] = {v};
    CHECK_INT_EQ(CFX_OK, cfx_graph_drop_non_tensor_inputs(g, all, from, 1, collect_name, text,
                                                          NULL));
    CHECK_STR_EQ("add_2 ", text);
    text[0] = '\0';
    unsigned char giving[] = {0, ACC, ACC, TENSOR, BOTH, 0};
    CHECK_INT_EQ(CFX_OK, cfx_graph_drop_non_tensor_outputs(g, giving, collect_name, text, NULL));
    CHECK_STR_EQ("add size ", text);
    unsigned char again[] = {0, 0, ACC, BOTH, BOTH, 0};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_drop_non_tensor_inputs(g, again, NULL, 0, refuse, NULL,
                                                               NULL));
    cfx_graph_release(g);
}

/* add -> relu -> add_2, and add_1 is in one group with relu. */
TEST(what_groups_need)
{
    cfx_node *x;
    char text[256] = "";
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *r = relu(g, a);
    cfx_node *b = add(g, x, NULL);
    cfx_node *c = add(g, r, NULL);
    cfx_graph_output(g, cfx_value_node(c), NULL);
    const uint32_t no = CFX_NO_PART;
    const uint32_t groups[] = {no, no, 1, 1, no, no};
    CHECK_INT_EQ(CFX_OK, cfx_graph_fuse_needs(g, groups, NULL, 0, collect_pair, text, NULL));
    CHECK_STR_EQ("add_1 add add_2 add_1 ", text);
    text[0] = '\0';
    const cfx_need given[] = {{b, c}, {r, b}};
    CHECK_INT_EQ(CFX_OK, cfx_graph_fuse_needs(g, groups, given, 2, collect_pair, text, NULL));
    CHECK_STR_EQ("relu add_2 add_2 relu add_2 add_1 ", text);
    text[0] = '\0';
    CHECK_INT_EQ(CFX_OK, cfx_graph_fuse_users(g, groups, NULL, 0, collect_pair, text, NULL));
    CHECK_STR_EQ("add relu add add_1 relu add_2 add_1 add_2 ", text);
    cfx_graph_release(g);
}

static cfx_status edit_pair(void *ctx, cfx_node *node, cfx_node *needs)
{
    (void)ctx;
    (void)needs;
    CHECK(cfx_graph_placeholder(cfx_node_graph(node), "late", NULL) == NULL);
    return CFX_OK;
}

static cfx_status edit_node(void *ctx, cfx_node *n) { return edit_pair(ctx, n, n); }

/* The answers point at nodes, which must stay while they are told. */
TEST(callbacks_cannot_edit)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *r = relu(g, add(g, x, NULL));
    cfx_graph_output(g, cfx_value_node(add(g, r, add(g, x, NULL))), NULL);
    const uint32_t no = CFX_NO_PART;
    const uint32_t groups[] = {no, no, 1, 1, no, no};
    unsigned char flags[] = {0, 0, BOTH, BOTH, BOTH, 0};
    CHECK_INT_EQ(CFX_OK, cfx_graph_fuse_needs(g, groups, NULL, 0, edit_pair, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_fuse_users(g, groups, NULL, 0, edit_pair, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_drop_non_tensor_inputs(g, flags, NULL, 0, edit_node, NULL,
                                                          NULL));
    CHECK(flags[2] == TENSOR);
    CHECK(cfx_graph_placeholder(g, "late", NULL) != NULL);
    cfx_graph_release(g);
}

TEST(calls_that_need_each_other)
{
    cfx_node *x, *nodes[ROOM];
    cfx_acc_part parts[ROOM];
    size_t n;
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *b = add(g, a, NULL);
    const unsigned char flags[] = {0, ACC, 0};
    const cfx_need needs[] = {{b, a}, {a, b}, {x, a}};
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_acc_parts(g, flags, needs, 2, nodes, parts, &n, &err));
    CHECK(strstr(err.message, "%add") != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_acc_parts(g, flags, needs, 1, nodes, parts, &n, NULL));
    CHECK_STR_EQ("acc: add|cpu: add_1", parts_text(nodes, parts, n));
    CHECK_INT_EQ(CFX_OK, cfx_graph_acc_parts(g, flags, needs + 2, 1, nodes, parts, &n, NULL));
    CHECK_STR_EQ("cpu: add_1|acc: add", parts_text(nodes, parts, n));
    cfx_graph_release(g);
}

TEST(moving)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *n = size(g, x);
    cfx_node *m = size(g, n);
    cfx_node *r = relu(g, m);
    cfx_node *s = relu(g, n);
    cfx_graph_output(g, cfx_value_node(s), NULL);
    const unsigned char flags[] = {0, 0, 0, TENSOR, TENSOR, 0};
    cfx_node *one[] = {n, m, r, s};
    cfx_acc_part two[] = {{2, true}, {4, false}};
    CHECK_INT_EQ(CFX_OK, cfx_graph_move_non_tensors(g, flags, one, two, 2, NULL));
    CHECK_STR_EQ("acc:|cpu: relu relu_1 size size_1", parts_text(one, two, 2));
    cfx_node *other[] = {n, m, r, s};  /* `n` is used in two parts: only `m` moves */
    cfx_acc_part three[] = {{2, true}, {3, false}, {4, true}};
    CHECK_INT_EQ(CFX_OK, cfx_graph_move_non_tensors(g, flags, other, three, 3, NULL));
    CHECK_STR_EQ("acc: size|cpu: relu size_1|acc: relu_1", parts_text(other, three, 3));
    cfx_node *twice[] = {n, n};
    cfx_acc_part both = {2, true};
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_move_non_tensors(g, flags, twice, &both, 1, &err));
    cfx_graph_release(g);
}

TEST(extending)
{
    cfx_node *x;
    cfx_graph *g = new_graph(&x);
    cfx_node *a = add(g, x, NULL);
    cfx_node *b = add(g, a, NULL);
    cfx_node *c = add(g, x, NULL);
    cfx_node *d = add(g, b, c);
    cfx_graph_output(g, cfx_value_node(relu(g, c)), NULL);
    /* x a b c d relu output: c has another user, a comes with b */
    const unsigned char flags[] = {0, BOTH, BOTH, BOTH, BOTH, 0, 0};
    const uint32_t no = CFX_NO_PART;
    bool inside[] = {false, false, false, false, true, false, false};
    cfx_node *from[] = {b, c};
    CHECK_INT_EQ(CFX_OK, cfx_graph_extend_acc(g, flags, NULL, NULL, 0, from, 2, inside, NULL));
    CHECK(inside[1] && inside[2] && !inside[3] && inside[4] && !inside[5]);
    const uint32_t groups[] = {no, no, 2, 2, no, no, no};
    bool grouped[] = {false, false, false, false, true, false, false};
    CHECK_INT_EQ(CFX_OK, cfx_graph_extend_acc(g, flags, groups, NULL, 0, from, 2, grouped, NULL));
    CHECK(grouped[1] && grouped[2] && grouped[3]);
    bool kept[] = {false, false, false, false, true, false, false};
    const cfx_need users[] = {{b, d}, {b, c}, {c, d}};
    CHECK_INT_EQ(CFX_OK, cfx_graph_extend_acc(g, flags, NULL, users, 2, from, 1, kept, NULL));
    CHECK(!kept[1] && !kept[2] && !kept[3]);
    const uint32_t wrong[] = {no, 7, no, no, no, no, no};
    CHECK_INT_EQ(CFX_E_INDEX, cfx_graph_extend_acc(g, flags, wrong, NULL, 0, from, 2, kept, NULL));
    cfx_graph_release(g);
}

TEST(a_host_that_cannot_tell)
{
    cfx_node *x, *nodes[ROOM];
    cfx_acc_part parts[ROOM];
    size_t n;
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = new_graph(&x);
    call2(g, "t.doubt", x, NULL);
    const cfx_acc_options opts = {.supported = supports, .is_tensor = gives_tensor};
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_split_acc(g, &opts, nodes, parts, &n, &err));
    CHECK(strstr(err.message, "%doubt") != NULL);
    cfx_graph_release(g);
}

/* ---- size and memory ----------------------------------------------------------------------- */

/* Calls that read the two before them; of eight, two run elsewhere and one is no tensor. */
static cfx_graph *chain(const cfx_allocator *a, size_t n, cfx_error *err)
{
    cfx_graph *g = cfx_graph_new(a, NULL, err);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", err) : NULL;
    cfx_node *before = x;
    for (size_t i = 0; x && i < n; i++) {
        cfx_value args[] = {cfx_value_node(x), cfx_value_node(before)};
        const char *target = i % 8 > 5 ? "t.relu" : i % 8 == 2 ? "t.size" : "t.add";
        before = x;
        x = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target, args, 2, NULL, 0, err);
    }
    if (x && cfx_graph_output(g, cfx_value_node(x), err))
        return g;
    cfx_graph_release(g);
    return NULL;
}

TEST(a_million_nodes)
{
    enum { MANY = 1000000 };
    cfx_graph *g = chain(NULL, MANY, NULL);
    cfx_node **nodes = malloc((MANY + 2) * sizeof *nodes);
    cfx_acc_part *parts = malloc((MANY + 2) * sizeof *parts);
    size_t n;
    const cfx_acc_options opts = {.supported = supports, .is_tensor = gives_tensor,
                                  .skip_fusion = true, .move_non_tensors = true};
    CHECK_INT_EQ(CFX_OK, cfx_graph_split_acc(g, &opts, nodes, parts, &n, NULL));
    CHECK_INT_EQ(MANY / 4, n);
    CHECK_INT_EQ(MANY, parts[n - 1].end);
    free(nodes);
    free(parts);
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *ctx)
{
    cfx_node *nodes[ROOM];
    cfx_acc_part parts[ROOM];
    char text[2048] = "";
    bool inside[ROOM] = {false};
    unsigned char flags[ROOM];
    uint32_t groups[ROOM];
    size_t n;
    cfx_error own = {.status = CFX_OK}, *err = &own;
    const cfx_acc_options opts = {.supported = supports, .is_tensor = gives_tensor,
                                  .move_non_tensors = true};
    cfx_graph *g = chain(a, 12, err);
    (void)ctx;
    if (!g)
        return own.status;
    for (size_t i = 0; i < ROOM; i++) {
        flags[i] = i % 3 ? BOTH : ACC;
        groups[i] = i > 2 && i < 6 ? 0 : CFX_NO_PART;
    }
    cfx_node *last = cfx_node_prev(cfx_graph_last(g));
    inside[12] = true;
    cfx_status status = cfx_graph_split_acc(g, &opts, nodes, parts, &n, err);
    if (status == CFX_OK)
        status = cfx_graph_fuse_needs(g, groups, NULL, 0, collect_pair, text, err);
    if (status == CFX_OK)
        status = cfx_graph_fuse_users(g, groups, NULL, 0, collect_pair, text, err);
    cfx_node *from[] = {cfx_node_prev(last)};
    if (status == CFX_OK)
        status = cfx_graph_extend_acc(g, flags, groups, NULL, 0, from, 1, inside, err);
    if (status == CFX_OK)
        CHECK(inside[11] && inside[1]);
    cfx_graph_release(g);
    return status;
}

TEST(running_out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) > 10);
}
