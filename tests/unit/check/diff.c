/* diff.c - tests of src/check/diff.c: what differs between two graphs, and one node's text. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/embed/check.h>
#include <cfx/embed/graph.h>
#include <stdio.h>
#include <string.h>

static cfx_graph *parse(const char *text, const cfx_allocator *allocator, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), allocator, NULL, err);
}

/* ---- what is told -------------------------------------------------------------------------- */

typedef struct notes {
    char text[1024];
    size_t used;
    size_t same;
    size_t stop_at;  /* fails at this call, counted from 1 */
    size_t count;
} notes;

static void add(notes *n, const char *what)
{
    if (n->used + strlen(what) < sizeof n->text)
        n->used += (size_t)snprintf(n->text + n->used, sizeof n->text - n->used, "%s", what);
}

/* "-gone +new b>c:name,args", inside of regions "owner/0:" before it. */
static cfx_status note(void *ctx, const cfx_change *change)
{
    notes *n = ctx;
    if (++n->count == n->stop_at)
        return CFX_E_HOST;
    if (change->a && change->b && !change->flags) {
        n->same++;
        return CFX_OK;
    }
    add(n, n->used ? " " : "");
    if (change->owner) {
        char where[64];
        snprintf(where, sizeof where, "%s/%zu:", cfx_node_name(change->owner, NULL),
                 change->region);
        add(n, where);
    }
    add(n, !change->a ? "+" : !change->b ? "-" : "");
    add(n, change->a ? cfx_node_name(change->a, NULL) : cfx_node_name(change->b, NULL));
    for (unsigned bit = 0, some = 0; cfx_change_flag_name(bit); bit++)
        if (change->flags & 1u << bit) {
            add(n, some++ ? "," : ":");
            add(n, cfx_change_flag_name(bit));
        }
    return CFX_OK;
}

static const char *diff(const char *a, const char *b)
{
    static notes n;
    cfx_error err = {0};
    cfx_graph *x = parse(a, NULL, &err);
    cfx_graph *y = parse(b, NULL, &err);
    n = (notes){.used = 0};
    if (!CHECK_INT_EQ(CFX_OK, cfx_graph_diff(x, y, note, &n, &err)))
        printf("    %s\n", err.message);
    cfx_graph_release(x);
    cfx_graph_release(y);
    return n.text;
}

#define HEAD "graph():\n %x = placeholder[target=x]()\n"
#define CALL(name, target, args) " %" name " = call_function[target=" target "](" args ")\n"

TEST(the_same)
{
    CHECK_STR_EQ("", diff(HEAD CALL("a", "f", "%x") " output(%a)", HEAD CALL("a", "f", "%x")
                          " output(%a)"));
}

TEST(a_graph_with_itself)
{
    cfx_graph *g = parse(HEAD CALL("a", "f", "%x") " output(%a)", NULL, NULL);
    notes n = {.used = 0};
    CHECK_INT_EQ(CFX_OK, cfx_graph_diff(g, g, note, &n, NULL));
    CHECK_STR_EQ("", n.text);
    CHECK_INT_EQ(3, n.same);
    cfx_graph_release(g);
}

TEST(another_name_changes_no_argument)
{
    CHECK_STR_EQ("a:name", diff(HEAD CALL("a", "f", "%x") CALL("b", "g", "%a, k=[%a]")
                                " output(%b)",
                                HEAD CALL("z", "f", "%x") CALL("b", "g", "%z, k=[%z]")
                                " output(%b)"));
}

TEST(new_nodes_come_where_they_stand)
{
    CHECK_STR_EQ("+n b:args -c +d output:args",
                 diff(HEAD CALL("a", "f", "%x") CALL("b", "g", "%a") CALL("c", "p", "%b, 1")
                      " output((%b, %c))",
                      HEAD CALL("a", "f", "%x") CALL("n", "h", "%a, 2") CALL("b", "g", "%n")
                      CALL("d", "q", "%b, %b, 3") " output([%d])"));
}

TEST(targets_arguments_types)
{
    CHECK_STR_EQ("a:target b:args c:kwargs d:type",
                 diff(HEAD CALL("a", "f", "%x") CALL("b", "g", "%a, 1") CALL("c", "h", "%b, k=1")
                      CALL("d", "i", "%c") " output(%d)",
                      HEAD CALL("a", "z", "%x") CALL("b", "g", "%a, 2") CALL("c", "h", "%b, k=2")
                      " %d: &int = call_function[target=i](%c)\n output(%d)"));
    CHECK_STR_EQ("x:target", diff("graph():\n %x = placeholder[target=x]()\n",
                                  "graph():\n %x = placeholder[target=y]()\n"));
    CHECK_STR_EQ("a:opcode", diff(HEAD CALL("a", "f", "%x") " output(%a)",
                                  HEAD " %a = call_method[target=f](%x)\n output(%a)"));
}

TEST(as_few_as_possible_move)
{
    CHECK_STR_EQ("a:moved",
                 diff(HEAD CALL("a", "f", "%x") CALL("b", "g", "%x") CALL("c", "h", "%x")
                      " output((%a, %b, %c))",
                      HEAD CALL("b", "g", "%x") CALL("c", "h", "%x") CALL("a", "f", "%x")
                      " output((%a, %b, %c))"));
}

#define COND(name, then, rest)                                                                     \
    HEAD " %" name " = call_function[target=cfx.cond](%x, graph {\n"                               \
         "  %y = placeholder[target=y]()\n" then "  output(%y)\n }, graph {\n"                     \
         "  %y = placeholder[target=y]()\n  output(%y)\n }, (%x,)" rest ")\n output(%" name ")\n"

TEST(regions_follow_their_node)
{
    CHECK_STR_EQ("c/0:-a", diff(COND("c", CALL("a", "f", "%y"), ""), COND("c", "", "")));
    CHECK_STR_EQ("c:name c/0:+a", diff(COND("c", "", ""), COND("d", CALL("a", "f", "%y"), "")));
    CHECK_STR_EQ("c:args", diff(COND("c", "", ""), COND("c", "", ", graph {\n output(1)\n }")));
}

TEST(a_callback_that_fails_ends_it)
{
    cfx_error err = {0};
    cfx_graph *g = parse(COND("c", CALL("a", "f", "%y"), ""), NULL, NULL);
    for (size_t at = 1; at < 8; at++) {
        notes n = {.stop_at = at};
        CHECK_INT_EQ(CFX_E_HOST, cfx_graph_diff(g, g, note, &n, &err));
        CHECK_INT_EQ(at, n.count);
    }
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_diff(NULL, g, note, NULL, NULL));
    cfx_graph_release(g);
}

/* Backwards, so that all but one have moved; twice as many take about twice as long. */
TEST(many_nodes)
{
    enum { N = 20000 };
    cfx_error err = {0};
    notes n = {.used = 0};
    cfx_graph *both[2];
    for (int side = 0; side < 2; side++) {
        cfx_buffer text;
        cfx_buffer_init(&text, NULL);
        cfx_buffer_append(&text, HEAD, strlen(HEAD));
        for (int i = 0; i < N; i++) {
            char line[80];
            int number = side ? N - 1 - i : i;
            int size = snprintf(line, sizeof line, " %%n%d = call_function[target=f](%%x, %d)\n",
                                number, number);
            cfx_buffer_append(&text, line, (size_t)size);
        }
        both[side] = cfx_graph_parse(text.data, text.size, NULL, NULL, &err);
        cfx_buffer_free(&text);
    }
    n.used = sizeof n.text - 1;  /* no room for words: they are counted only */
    CHECK_INT_EQ(CFX_OK, cfx_graph_diff(both[0], both[1], note, &n, &err));
    CHECK_INT_EQ(2, n.same);
    CHECK_INT_EQ(N + 1, n.count);
    cfx_graph_release(both[0]);
    cfx_graph_release(both[1]);
}

static cfx_status diff_all(const cfx_allocator *allocator, void *arg)
{
    (void)arg;
    cfx_error err = {0};
    notes n = {.used = 0};
    cfx_graph *a = parse(COND("c", CALL("a", "f", "%y"), ""), allocator, &err);
    cfx_graph *b = a ? parse(COND("d", "", ""), allocator, &err) : NULL;
    if (b)
        cfx_graph_diff(a, b, note, &n, &err);
    cfx_graph_release(a);
    cfx_graph_release(b);
    return err.status;
}

TEST(memory_may_run_out)
{
    CHECK(test_oom_sweep(diff_all, NULL) > 3);
}

/* ---- one node's text ----------------------------------------------------------------------- */

static const char *text_of(cfx_node *n)
{
    static char text[256];
    cfx_buffer buffer;
    cfx_buffer_init(&buffer, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_node_text(n, cfx_buffer_sink(&buffer), NULL));
    snprintf(text, sizeof text, "%s", buffer.data);
    cfx_buffer_free(&buffer);
    return text;
}

TEST(a_node_alone)
{
    cfx_graph *g = parse(COND("c", "", ""), NULL, NULL);
    cfx_node *c = cfx_graph_find(g, "c");
    cfx_node_set_location(c, "m.py", 3, NULL);
    cfx_node_set_type(c, cfx_value_name(g, "int", 3, NULL), NULL);
    CHECK_STR_EQ("%x = placeholder[target=x]()", text_of(cfx_graph_first(g)));
    CHECK_STR_EQ("%c: &int = call_function[target=cfx.cond](%x, graph {...}, graph {...}, (%x,))",
                 text_of(c));
    CHECK_STR_EQ("output(%c)", text_of(cfx_graph_last(g)));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_node_text(NULL, cfx_buffer_sink(NULL), NULL));
    cfx_graph_release(g);
}
