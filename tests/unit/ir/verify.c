/* verify.c - tests of src/ir/verify.c, verify_links.c and region.c: every finding, one by one. */
#include "ir/graph_impl.h"
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

/* What was found, joined by newlines. */
typedef struct findings {
    char text[8192];
    size_t used;
    size_t count;
} findings;

static void note(void *ctx, const cfx_node *n, const char *message)
{
    findings *f = ctx;
    (void)n;
    f->count++;
    f->used += (size_t)snprintf(f->text + f->used, sizeof f->text - f->used, "%s\n", message);
}

/* Verifies `g` and expects each finding to contain one of `wanted` (up to NULL), and each of those
 * to be found. */
static void expect_at(cfx_graph *g, const char *const *wanted, int line)
{
    static findings f;
    cfx_error err = {.status = CFX_OK};
    memset(&f, 0, sizeof f);
    cfx_status status = cfx_graph_verify(g, note, &f, &err);
    size_t missing = 0;
    size_t n = 0;
    for (; wanted[n]; n++)
        missing += strstr(f.text, wanted[n]) == NULL;
    bool good = missing == 0 && f.count == n && status == (n ? CFX_E_GRAPH : CFX_OK);
    bool first = n == 0 || strncmp(f.text, err.message, strlen(err.message)) == 0;
    if (!check_note(good && first, __FILE__, line, "expected findings"))
        printf("    %zu wanted, %zu missing, status %d, first: %s\n%s", n, missing, (int)status,
               err.message, f.text);
}
#define EXPECT(g, ...) expect_at(g, (const char *const[]){__VA_ARGS__, NULL}, __LINE__)
#define EXPECT_GOOD(g) expect_at(g, (const char *const[]){NULL}, __LINE__)

static cfx_node *call(cfx_graph *g, const char *target, cfx_value arg)
{
    return cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target, &arg, 1, NULL, 0, NULL);
}

/* x, a = f.a(x), b = f.b(a), output(b) */
static cfx_graph *line_graph(void)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_node *a = call(g, "f.a", cfx_value_node(x));
    cfx_node *b = call(g, "f.b", cfx_value_node(a));
    cfx_graph_output(g, cfx_value_node(b), NULL);
    return g;
}

/* ---- what users get wrong ------------------------------------------------------------------ */

TEST(good_graphs)
{
    cfx_graph *empty = cfx_graph_new(NULL, NULL, NULL);
    EXPECT_GOOD(empty);
    cfx_graph_placeholder(empty, "x", NULL);
    EXPECT_GOOD(empty);
    cfx_graph *g = nested_graph(NULL, NULL, 3);
    EXPECT_GOOD(g);
    cfx_graph_release(g);
    cfx_graph_release(empty);
}

TEST(definitions_come_before_uses)
{
    cfx_graph *g = line_graph();
    cfx_node *b = cfx_graph_find(g, "b");
    cfx_node_set_location(b, "model.py", 3, NULL);
    cfx_node_append(b, cfx_graph_find(g, "a"), NULL);
    EXPECT(g, "model.py:3: node %b: Argument 'a' of Node 'b' was used before it has been defined!");
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_node_set_args(b, cfx_node_args(b), NULL);
    cfx_node_prepend(b, cfx_graph_find(g, "a"), NULL);
    EXPECT_GOOD(g);
    cfx_value self = cfx_value_node(b);
    cfx_node_set_arg(b, 0, self, NULL);
    EXPECT(g, "node %b: Argument 'b' of Node 'b' was used before it has been defined!");
    cfx_graph_release(g);
}

TEST(names_are_unique_identifiers)
{
    cfx_graph *g = line_graph();
    cfx_node_set_name(cfx_graph_find(g, "a"), "b", 1, NULL);
    EXPECT(g, "node %b: Node redefined name b! Rename one of the two");
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_node_set_name(cfx_node_next(cfx_graph_first(g)), "a b", 3, NULL);
    EXPECT(g, "node %a b: its name is not an identifier");
    CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

/* Names that would become code, if they were written as they are. */
TEST(names_from_a_file)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph_placeholder(g, "x=1): pass #", NULL);
    EXPECT(g, "'x=1): pass #' cannot be the name of a parameter");
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);

    g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph_placeholder(g, "for", NULL);
    EXPECT(g, "'for' cannot be the name of a parameter");
    CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));  /* as in torch.fx */
    cfx_graph_release(g);

    g = cfx_graph_new(NULL, NULL, NULL);
    call(g, "torch.add(1)", cfx_value_none());
    EXPECT(g, "'torch.add(1)' is not the name of a function or type");
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);

    g = cfx_graph_new(NULL, NULL, NULL);
    call(g, "os.system", cfx_value_none());
    EXPECT(g, "'os.system' can run code or reach files");
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

/* Three nodes with one name, whose owner is gone: still a clash. */
TEST(names_without_an_owner)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *a = cfx_graph_placeholder(g, "a", NULL);
    cfx_node *b = cfx_graph_placeholder(g, "b", NULL);
    cfx_node *c = cfx_graph_placeholder(g, "c", NULL);
    cfx_node_set_name(b, "a", 1, NULL);
    cfx_node_set_name(c, "a", 1, NULL);
    EXPECT(g, "node %a: Node redefined name a!", "node %a: Node redefined name");
    cfx_graph_erase(g, a, NULL);
    EXPECT(g, "node %a: Node redefined name a!");
    cfx_graph_erase(g, b, NULL);
    EXPECT_GOOD(g);
    cfx_graph_release(g);
}

TEST(order_of_opcodes)
{
    cfx_graph *g = line_graph();
    cfx_node *late = cfx_graph_placeholder(g, "late", NULL);
    EXPECT(g, "node %late: it comes after the output %output",
           "node %late: this placeholder comes after %a; placeholders must come first");
    CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_erase(g, late, NULL);
    cfx_graph_output(g, cfx_value_none(), NULL);
    EXPECT(g, "node %output_1: it comes after the output %output");
    cfx_graph_erase(g, cfx_graph_last(g), NULL);
    cfx_node_set_args(cfx_graph_last(g), cfx_value_tuple(g, NULL, 0, NULL), NULL);
    EXPECT(g, "node %output: an output must have one argument, not 0");
    cfx_graph_release(g);
}

TEST(every_finding_is_reported)
{
    cfx_graph *g = line_graph();
    cfx_node_append(cfx_graph_find(g, "b"), cfx_graph_find(g, "a"), NULL);
    cfx_node_set_name(cfx_graph_first(g), "1x", 2, NULL);
    cfx_graph_output(g, cfx_value_none(), NULL);
    EXPECT(g, "node %1x: its name is not an identifier",
           "node %b: Argument 'a' of Node 'b' was used before",
           "node %output_1: it comes after the output %output");
    cfx_graph_release(g);
}

/* ---- regions ------------------------------------------------------------------------------- */

/* A region with some placeholders that returns `results` values (-1: not a tuple). */
static cfx_value region(cfx_graph *g, size_t inputs, long results)
{
    cfx_graph *sub = cfx_graph_new(NULL, NULL, NULL);
    cfx_value items[4] = {cfx_value_int(1), cfx_value_int(2), cfx_value_int(3), cfx_value_int(4)};
    for (size_t i = 0; i < inputs; i++)
        cfx_graph_placeholder(sub, "x", NULL);
    cfx_graph_output(sub, results < 0 ? cfx_value_none()
                                      : cfx_value_tuple(sub, items, (size_t)results, NULL), NULL);
    cfx_value v = cfx_value_region(g, sub, NULL);
    cfx_graph_release(sub);
    return v;
}

static cfx_graph *control(const char *name, cfx_value *args, size_t n, cfx_graph *g)
{
    cfx_graph_call(g, CFX_OP_CALL_FUNCTION, name, args, n, NULL, 0, NULL);
    return g;
}

TEST(cond_has_two_regions_that_fit)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value two[] = {cfx_value_int(1), cfx_value_int(2)};
    cfx_value good[] = {cfx_value_bool(true), region(g, 2, 1), region(g, 2, -1),
                        cfx_value_tuple(g, two, 2, NULL)};
    EXPECT_GOOD(control("cfx.cond", good, 4, g));
    cfx_value bad[] = {cfx_value_bool(true), region(g, 1, 1), region(g, 2, 3), good[3]};
    EXPECT(control("cfx.cond", bad, 4, g),
           "node %cond_1: its region 'then' has 1 placeholders, but is called with 2 values",
           "node %cond_1: its regions return 1 and 3 values");
    cfx_graph_erase(g, cfx_graph_last(g), NULL);
    EXPECT(control("cfx.cond", good, 2, g), "node %cond_2: its argument 'otherwise' is missing",
           "node %cond_2: its argument 'operands' is missing");
    cfx_graph_erase(g, cfx_graph_last(g), NULL);
    cfx_value odd[] = {cfx_value_bool(true), good[1], cfx_value_none(), cfx_value_int(3)};
    EXPECT(control("cfx.cond", odd, 4, g),
           "node %cond_3: its argument 'otherwise' is a none; it must be a region");
    cfx_graph_erase(g, cfx_graph_last(g), NULL);
    odd[2] = good[2];
    EXPECT(control("cfx.cond", odd, 4, g),
           "node %cond_4: its argument 'operands' is a int; it must be a tuple");
    cfx_graph_release(g);
}

TEST(loops_return_their_state)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value two[] = {cfx_value_int(1), cfx_value_int(2)};
    cfx_value state = cfx_value_list(g, two, 2, NULL);
    cfx_value good[] = {region(g, 2, -1), region(g, 2, 2), state};
    EXPECT_GOOD(control("cfx.while_loop", good, 3, g));
    cfx_value bad[] = {region(g, 0, -1), region(g, 2, 1), state};
    EXPECT(control("cfx.while_loop", bad, 3, g),
           "node %while_loop_1: its region 'test' has 0 placeholders, but is called with 2",
           "node %while_loop_1: its region 'body' returns 1 values, but the state has 2");
    cfx_graph_erase(g, cfx_graph_last(g), NULL);
    cfx_value loop[] = {cfx_value_int(10), region(g, 3, 2), state};
    EXPECT_GOOD(control("cfx.for_loop", loop, 3, g));
    loop[1] = region(g, 2, 2);
    EXPECT(control("cfx.for_loop", loop, 3, g),
           "node %for_loop_1: its region 'body' has 2 placeholders, but is called with 3");
    cfx_graph_release(g);
}

TEST(arguments_may_be_given_by_keyword)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value count = cfx_value_int(3);
    cfx_kwarg rest[] = {{"body", region(g, 2, -1)}, {"state", cfx_value_tuple(g, NULL, 0, NULL)}};
    cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "cfx.for_loop", &count, 1, rest, 2, NULL);
    EXPECT(g, "node %for_loop: its region 'body' has 2 placeholders, but is called with 1");
    cfx_graph_release(g);
}

TEST(findings_in_a_region_three_deep)
{
    cfx_graph *g = nested_graph(NULL, NULL, 3);
    cfx_graph *at = g;
    for (int i = 0; i < 3; i++)
        at = cfx_value_graph(cfx_node_arg(cfx_graph_find(at, "cond"), 1));
    cfx_node_set_name(cfx_graph_find(at, "mod"), "x", 1, NULL);
    EXPECT(g, "node %x: Node redefined name x!");
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

/* ---- what only our own mistakes can break -------------------------------------------------- */

TEST(broken_lists)
{
    cfx_graph *g = line_graph();
    cfx_node *a = cfx_graph_find(g, "a");
    cfx_node *b = cfx_graph_find(g, "b");
    uint64_t order = b->order;
    b->order = a->order;
    EXPECT(g, "node %b: its order label is not above that of %a");
    b->order = order;
    b->prev = b;
    EXPECT(g, "node %b: its link to the previous node is wrong");
    b->prev = a;
    g->size = 3;
    EXPECT(g, "the node list is longer than the graph's size, 3");
    g->size = 5;
    EXPECT(g, "the node list has 4 nodes, but the graph's size is 5");
    g->size = 4;
    g->root.prev = b;
    EXPECT(g, "the end of the node list is not its last node");
    g->root.prev = b->next;
    b->flags |= CFXI_NODE_ERASED;
    EXPECT(g, "node %b: it is in the node list, but was erased");
    b->flags = 0;
    cfx_graph *other = cfx_graph_new(NULL, NULL, NULL);
    b->graph = other;
    EXPECT(g, "node %b: it is in the node list, but belongs to another graph");
    b->graph = g;
    EXPECT_GOOD(g);
    cfx_graph_release(other);
    cfx_graph_release(g);
}

TEST(uses_and_arguments_that_differ)
{
    cfx_graph *g = line_graph();
    cfx_node *x = cfx_graph_first(g);
    cfx_node *a = cfx_graph_find(g, "a");
    cfx_node *b = cfx_graph_find(g, "b");
    b->args->items[0] = cfx_value_node(x);
    EXPECT(g, "node %b: its use of %x is not counted",
           "node %b: it counts 1 more uses of %a than its arguments have");
    b->args->items[0] = cfx_value_node(a);
    b->inputs[0].count = 2;
    EXPECT(g, "node %b: it counts 1 more uses of %a than its arguments have");
    b->inputs[0].count = 1;
    b->inputs[0].user = a;
    EXPECT(g, "node %b: its use edge 0 names another user",
           "node %a: one of its use edges belongs to a node that is not in the graph");
    b->inputs[0].user = b;
    a->n_users = 2;
    EXPECT(g, "node %a: it has 1 users, but its number of users is 2");
    a->n_users = 0;
    EXPECT(g, "node %a: its number of users, 0, and its list of uses differ");
    a->n_users = 1;
    a->users->next = x->users;
    EXPECT(g, "node %a: its list of uses is broken at edge 0");
    a->users->next = a->users;
    EXPECT_GOOD(g);
    cfx_graph_release(g);
}

TEST(use_lists_of_several)
{
    cfx_graph *g = line_graph();
    cfx_node *x = cfx_graph_first(g);
    cfx_node *b = cfx_graph_find(g, "b");
    cfx_value two[] = {cfx_value_node(x), cfx_value_node(cfx_graph_find(g, "a"))};
    cfx_node_set_args(b, cfx_value_tuple(g, two, 2, NULL), NULL);
    EXPECT_GOOD(g);
    x->n_users = 1;
    EXPECT(g, "node %x: it has more users than its number of users, 1");
    x->n_users = 2;
    b->args->items[0] = two[1];
    b->args->items[1] = two[0];
    EXPECT_GOOD(g); /* inputs may come in another order than the arguments */
    b->args->items[0] = two[0];
    b->args->items[1] = two[1];
    b->inputs[1].def = x;
    EXPECT(g, "node %b: it has two use edges to %x", "node %b: its use of %a is not counted",
           "node %a: its list of uses is broken at edge 0");
    b->inputs[1].def = two[1].as.node;
    b->n_inputs = 9;
    EXPECT(g, "node %b: it has 9 inputs in a graph of 4 nodes", "nodes have 11 inputs, but 4");
    b->n_inputs = 2;
    EXPECT_GOOD(g);
    cfx_graph_release(g);
}

TEST(arguments_that_are_not_there)
{
    cfx_graph *g = line_graph();
    cfx_graph *h = line_graph();
    cfx_node *b = cfx_graph_find(g, "b");
    cfx_value a = b->args->items[0];
    b->args->items[0] = cfx_value_node(cfx_graph_first(h));
    EXPECT(g, "node %b: Argument 'x' of Node 'b' does not belong to this Graph",
           "node %b: it counts 1 more uses of %a");
    b->args->items[0] = cfx_value_invalid();
    EXPECT(g, "node %b: an argument is invalid", "node %b: it counts 1 more uses of %a");
    b->args->items[0] = a;
    cfx_node *dead = call(g, "f.dead", cfx_value_none());
    cfx_node_pin(dead);
    cfx_graph_erase(g, dead, NULL);
    b->args->items[0] = cfx_value_node(dead);
    EXPECT(g, "node %b: Argument 'dead' of Node 'b' was erased",
           "node %b: it counts 1 more uses of %a");
    b->args->items[0] = a;
    EXPECT_GOOD(g);
    cfx_node_unpin(dead);
    cfx_graph_release(h);
    cfx_graph_release(g);
}

TEST(callees_that_do_not_fit)
{
    cfx_graph *g = line_graph();
    cfx_node *a = cfx_graph_find(g, "a");
    cfx_node *b = cfx_graph_find(g, "b");
    cfxi_callee *callee = a->callee;
    a->callee = b->callee;
    EXPECT(g, "node %a: it is in the list of another callee", "callees list 3 nodes");
    a->callee = callee;
    callee->count = 3;
    EXPECT(g, "callees count 6 nodes, but the graph has 4 and 0 erased ones");
    callee->count = 1;
    callee->op = CFX_OP_OUTPUT;
    EXPECT(g, "node %a: its callee is in the wrong list");
    callee->op = CFX_OP_CALL_FUNCTION;
    a->op = CFX_OP_CALL_METHOD;
    EXPECT(g, "node %a: it is in the list of another callee", "callees list 3 nodes");
    a->op = CFX_OPCODE_COUNT;
    EXPECT(g, "node %a: it has no valid opcode, target or name",
           "node %a: it is in the list of another", "callees list 3 nodes");
    a->op = CFX_OP_CALL_FUNCTION;
    callee->ref->kind = CFXI_REF_OBJECT;
    EXPECT_GOOD(g);
    callee->ref->kind = CFXI_REF_NAME;
    cfx_ref *ref = g->root.prev->callee->ref;
    ref->kind = CFXI_REF_OBJECT;
    EXPECT(g, "node %output: the target of a output must be a name, not an object");
    ref->kind = CFXI_REF_NAME;
    EXPECT_GOOD(g);
    cfx_graph_release(g);
}

TEST(names_that_do_not_fit)
{
    cfx_graph *g = line_graph();
    cfx_node *a = cfx_graph_find(g, "a");
    cfxi_name *name = a->name;
    name->owner = cfx_graph_find(g, "b");
    EXPECT(g, "node %a: its name is owned by a node that has another name");
    name->owner = a;
    name->data[0] = 'q';
    EXPECT(g, "node %q: its name is not in the graph's namespace");
    name->data[0] = 'a';
    EXPECT_GOOD(g);
    cfx_graph_release(g);
}

/* ---- running out of memory ----------------------------------------------------------------- */

static cfx_status verify_body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = nested_graph(a, &err, 3);
    (void)arg;
    if (g)
        cfx_graph_verify(g, NULL, NULL, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(verify_out_of_memory)
{
    CHECK(test_oom_sweep(verify_body, NULL) > 10);
}
