/* tabular.c - tests of src/ir/tabular.c; the expectations are what print_tabular prints. */
#include "text_tools.h"

static cfx_error err;

/* A graph of get_attr nodes with these targets. */
static cfx_graph *targets(size_t n, const char *const *names)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (size_t i = 0; i < n; i++) {
        cfx_node *node = cfx_graph_get_attr(g, names[i], NULL);
        const char name[] = {'n', (char)('0' + i), '\0'};
        cfx_node_set_name(node, name, 2, NULL);
    }
    return g;
}

static void check_targets(size_t n, const char *const *names, const char *want)
{
    cfx_graph *g = targets(n, names);
    CHECK_STR_EQ(want, table_of(g, 0));
    cfx_graph_release(g);
}
#define CHECK_TARGETS(want_, ...)                                                                  \
    check_targets(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *),                     \
                  (const char *const[]){__VA_ARGS__}, want_)

#define LEFT "opcode    name    target    args    kwargs\n" RULE
#define RIGHT "opcode    name      target  args    kwargs\n" RULE
#define RULE "--------  ------  --------  ------  --------\n"

TEST(an_empty_graph)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    CHECK_STR_EQ(LEFT, table_of(g, 0));
    cfx_graph_release(g);
}

static cfx_graph *example(void)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    const cfx_value three = cfx_value_int(3);
    cfx_graph_call(g, CFX_OP_PLACEHOLDER, "y", &three, 1, NULL, 0, NULL);
    cfx_node *w = cfx_graph_get_attr(g, "sub.w", NULL);
    const cfx_value args[] = {cfx_value_node(x), cfx_value_node(w), cfx_value_str(g, "s", 1, &err)};
    const cfx_kwarg alpha = {"alpha", cfx_value_int(2)};
    cfx_node *add = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.add", args, 3, &alpha, 1, NULL);
    const cfx_value result = cfx_value_node(add);
    cfx_graph_output(g, cfx_value_tuple(g, &result, 1, &err), NULL);
    return g;
}

TEST(an_ordinary_graph)
{
    cfx_graph *g = example();
    CHECK_STR_EQ("opcode         name    target     args             kwargs\n"
                 "-------------  ------  ---------  ---------------  ------------\n"
                 "placeholder    x       x          ()               {}\n"
                 "placeholder    y       y          (3,)             {}\n"
                 "get_attr       sub_w   sub.w      ()               {}\n"
                 "call_function  add     torch.add  (x, sub_w, 's')  {'alpha': 2}\n"
                 "output         output  output     ((add,),)        {}\n",
                 table_of(g, 0));
    cfx_graph_release(g);
}

TEST(numbers_are_aligned_at_the_point)
{
    CHECK_TARGETS(RIGHT "get_attr  n0             1  ()      {}\n"
                        "get_attr  n1            22  ()      {}\n", "1", "22");
    CHECK_TARGETS(RIGHT "get_attr  n0           1    ()      {}\n"
                        "get_attr  n1           2.5  ()      {}\n"
                        "get_attr  n2      100000    ()      {}\n", "1", "2.50", "1e5");
    CHECK_TARGETS(RIGHT "get_attr  n0       1.5e-07  ()      {}\n"
                        "get_attr  n1       2e+10    ()      {}\n", "1.5e-7", "2e10");
    CHECK_TARGETS(RIGHT "get_attr  n0        True    ()      {}\n"
                        "get_attr  n1           1    ()      {}\n"
                        "get_attr  n2           2.5  ()      {}\n", "True", "1", "2.5");
    CHECK_TARGETS(RIGHT "get_attr  n0           nan  ()      {}\n"
                        "get_attr  n1           inf  ()      {}\n", "nan", "inf");
    CHECK_TARGETS(RIGHT "get_attr  n0         1_000  ()      {}\n"
                        "get_attr  n1             2  ()      {}\n", "1_000", "2");
    CHECK_TARGETS(RIGHT "get_attr  n0       -inf     ()      {}\n"
                        "get_attr  n1          1.25  ()      {}\n", "-inf", "1.25");
}

TEST(what_is_no_number)
{
    CHECK_TARGETS(LEFT "get_attr  n0      True      ()      {}\n"
                       "get_attr  n1      False     ()      {}\n", "True", "False");
    CHECK_TARGETS(LEFT "get_attr  n0      1e400     ()      {}\n"
                       "get_attr  n1      2         ()      {}\n", "1e400", "2");
    CHECK_TARGETS(LEFT "get_attr  n0      infinity  ()      {}\n", "infinity");
    CHECK_TARGETS(LEFT "get_attr  n0      0x10      ()      {}\n"
                       "get_attr  n1      2         ()      {}\n", "0x10", "2");
    CHECK_TARGETS(LEFT "get_attr  n0                ()      {}\n", "");
}

TEST(blanks_and_lines)
{
    CHECK_TARGETS(LEFT "get_attr  n0      a         ()      {}\n"
                       "get_attr  n1      b         ()      {}\n", "  a  ", "b\t");
    CHECK_TARGETS(LEFT "get_attr  n0      a         ()      {}\n"
                       "                  b\n"
                       "get_attr  n1      c         ()      {}\n", "a\r\nb", "c");
    CHECK_TARGETS(LEFT "get_attr  n0      \xe6\x97\xa5\xe6\x9c\xac        ()      {}\n",
                  "\xe6\x97\xa5\xe6\x9c\xac");
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        size_t width = 0;
        for (const char *c = text; c < end; c++)
            width += ((unsigned char)*c & 0xc0) != 0x80;
        longest = width > longest ? width : longest;
    }
    return longest;
}

TEST(a_width_is_kept)
{
    cfx_graph *g = example();
    CHECK_STR_EQ(table_of(g, 0), table_of(g, 63));
    for (size_t width = 13; width < 80; width++)
        CHECK(longest_line(table_of(g, width)) <= width);
    CHECK_STR_EQ("opcode    name    target    args      kwargs\n"
                 "--------  ------  --------  --------  --------\n"
                 "placeho\xe2\x80\xa6  x       x         ()        {}\n"
                 "placeho\xe2\x80\xa6  y       y         (3,)      {}\n"
                 "get_attr  sub_w   sub.w     ()        {}\n"
                 "call_fu\xe2\x80\xa6  add     torch.a\xe2\x80\xa6  (x, sub\xe2\x80\xa6  "
                 "{'alpha\xe2\x80\xa6\n"
                 "output    output  output    ((add,)\xe2\x80\xa6  {}\n",
                 table_of(g, 46));
    CHECK(longest_line(table_of(g, 1)) == 13);
    cfx_graph_release(g);
}

TEST(host_targets_are_shown_by_str)
{
    fake_object f = {"<function f>", "<str of f>", "mod.f", 0};
    const cfx_host host = fake_host(NULL);
    cfx_graph *g = cfx_graph_new(NULL, &host, NULL);
    const cfx_target target = {.object = &f};
    cfx_graph_create(g, CFX_OP_CALL_FUNCTION, target, cfx_value_invalid(), cfx_value_invalid(), "f",
                     cfx_value_invalid(), NULL);
    CHECK_STR_EQ("opcode         name    target      args    kwargs\n"
                 "-------------  ------  ----------  ------  --------\n"
                 "call_function  f       <str of f>  ()      {}\n",
                 table_of(g, 0));
    cfx_graph_release(g);
}

static cfx_status make_table(const cfx_allocator *a, void *arg)
{
    cfx_buffer b;
    cfx_error why = {.status = CFX_OK};
    cfx_status status = CFX_E_NOMEM;
    (void)arg;
    cfx_buffer_init(&b, a);
    cfx_graph *g = cfx_graph_new(a, NULL, NULL);
    bool built = g != NULL;
    for (int i = 0; built && i < 50; i++)
        built = cfx_graph_get_attr(g, "1.5", NULL) != NULL;
    if (built)
        status = cfx_graph_table(g, 40, cfx_buffer_sink(&b), &why);
    cfx_buffer_free(&b);
    cfx_graph_release(g);
    return status;
}

TEST(lack_of_memory)
{
    CHECK(test_oom_sweep(make_table, NULL) > 3);
}
