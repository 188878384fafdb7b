/* pass_order.c - tests of src/pass/pass_order.c. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/embed/pass.h>
#include <cfx/pass.h>

enum { ITEMS = 6 };

/* Pairs (a, b): a must not come before b. */
typedef struct rules {
    size_t pairs[8][2];
    size_t n;
    size_t asked;
    size_t fail_at;  /* the question that cannot be answered, from 1 on */
} rules;

static int follow(void *ctx, size_t a, size_t b)
{
    rules *r = ctx;
    if (++r->asked == r->fail_at)
        return -1;
    for (size_t i = 0; i < r->n; i++)
        if (r->pairs[i][0] == a && r->pairs[i][1] == b)
            return 0;
    return 1;
}

static const char *text_of(const size_t *order, size_t n)
{
    static char text[64];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%zu", order[i]);
    return text;
}

TEST(an_order_near_the_given_one)
{
    size_t order[ITEMS], sorted;
    rules r = {.pairs = {{0, 3}, {1, 0}, {4, 5}}, .n = 3};
    CHECK_INT_EQ(CFX_OK, cfx_order_sort(ITEMS, follow, &r, order, &sorted, NULL, NULL));
    CHECK_INT_EQ(ITEMS, sorted);
    CHECK_STR_EQ("235041", text_of(order, ITEMS));
    CHECK_INT_EQ(ITEMS * (ITEMS - 1), r.asked);
    rules none = {.n = 0};
    CHECK_INT_EQ(CFX_OK, cfx_order_sort(ITEMS, follow, &none, order, &sorted, NULL, NULL));
    CHECK_STR_EQ("012345", text_of(order, ITEMS));
    CHECK_INT_EQ(CFX_OK, cfx_order_sort(0, follow, &none, order, &sorted, NULL, NULL));
    CHECK_INT_EQ(0, sorted);
}

TEST(cycles)
{
    size_t order[ITEMS], sorted;
    cfx_error err = {.status = CFX_OK};
    rules r = {.pairs = {{1, 2}, {2, 1}, {4, 2}}, .n = 3};
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_order_sort(ITEMS, follow, &r, order, &sorted, NULL, &err));
    CHECK_INT_EQ(3, sorted);
    CHECK_STR_EQ("035124", text_of(order, ITEMS));
    CHECK_STR_EQ("item 1 must come before one that must come before it", err.message);
}

TEST(checking)
{
    size_t a = 9, b = 9;
    cfx_error err = {.status = CFX_OK};
    rules r = {.pairs = {{3, 4}, {2, 5}}, .n = 2};
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_order_check(ITEMS, follow, &r, &a, &b, &err));
    CHECK_INT_EQ(2, a);
    CHECK_INT_EQ(5, b);
    CHECK_STR_EQ("item 5 must come before item 2", err.message);
    rules backwards = {.pairs = {{4, 3}}, .n = 1};
    CHECK_INT_EQ(CFX_OK, cfx_order_check(ITEMS, follow, &backwards, NULL, NULL, NULL));
    CHECK_INT_EQ(ITEMS * (ITEMS - 1) / 2, backwards.asked);
}

TEST(by_pairs)
{
    size_t order[ITEMS], sorted;
    const cfx_order_pair pairs[] = {{5, 4}, {5, 1}, {4, 1}, {5, 0}};
    CHECK_INT_EQ(CFX_OK, cfx_order_sort_pairs(ITEMS, pairs, 4, order, &sorted, NULL, NULL));
    CHECK_STR_EQ("235401", text_of(order, ITEMS));
    CHECK_INT_EQ(ITEMS, sorted);
    const cfx_order_pair cycle[] = {{1, 2}, {2, 1}, {2, 4}, {3, 0}};
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_order_sort_pairs(ITEMS, cycle, 4, order, &sorted, NULL, NULL));
    CHECK_STR_EQ("350124", text_of(order, ITEMS));
    CHECK_INT_EQ(3, sorted);
    const cfx_order_pair wrong[] = {{1, ITEMS}};
    CHECK_INT_EQ(CFX_E_INDEX, cfx_order_sort_pairs(ITEMS, wrong, 1, order, &sorted, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_order_sort_pairs(0, NULL, 0, order, &sorted, NULL, NULL));
}

TEST(questions_without_an_answer)
{
    size_t order[ITEMS], sorted;
    rules r = {.fail_at = 4};
    cfx_error err = {.status = CFX_OK};
    CHECK_INT_EQ(CFX_E_HOST, cfx_order_sort(ITEMS, follow, &r, order, &sorted, NULL, &err));
    CHECK_INT_EQ(4, r.asked);
    r.asked = 0;
    CHECK_INT_EQ(CFX_E_HOST, cfx_order_check(ITEMS, follow, &r, NULL, NULL, &err));
}

TEST(passes_by_name)
{
    cfx_error err = {.status = CFX_OK};
    const cfx_pass *passes[] = {cfx_pass_find("dce"), cfx_pass_find("cse"), cfx_pass_find("dce"),
                                cfx_pass_find("toposort")};
    const cfx_pass_constraint good[] = {{"cse", "dce"}, {"toposort", "cse"}, {"inline", "cse"}};
    CHECK_INT_EQ(CFX_OK, cfx_passes_sort(passes, 4, good, 3, NULL, NULL));
    CHECK_STR_EQ("toposort", passes[0]->name);
    CHECK_STR_EQ("cse", passes[1]->name);
    CHECK(passes[2] == passes[3] && passes[2] == cfx_pass_find("dce"));
    const cfx_pass_constraint bad[] = {{"cse", "dce"}, {"dce", "cse"}};
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_passes_sort(passes, 4, bad, 2, NULL, &err));
    CHECK(strstr(err.message, "the pass cse must run before") != NULL);
    CHECK_STR_EQ("toposort", passes[0]->name);
    CHECK_INT_EQ(CFX_OK, cfx_passes_sort(passes, 0, bad, 2, NULL, NULL));
}

static cfx_status body(const cfx_allocator *a, void *ctx)
{
    const cfx_pass *passes[] = {cfx_pass_find("dce"), cfx_pass_find("cse")};
    const cfx_pass_constraint constraint = {"cse", "dce"};
    const cfx_order_pair pair[] = {{1, 0}};
    size_t order[2], sorted;
    (void)ctx;
    cfx_status status = cfx_order_sort_pairs(2, pair, 1, order, &sorted, a, NULL);
    return status == CFX_OK ? cfx_passes_sort(passes, 2, &constraint, 1, a, NULL) : status;
}

TEST(running_out_of_memory)
{
    CHECK(test_oom_sweep(body, NULL) >= 3);
}
