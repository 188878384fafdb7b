/* stages.c - tests of src/split/stages.c. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/embed/split.h>

#include <math.h>

enum { MAX = 16 };

/* A placeholder, `n` calls in a chain, of which the last also uses call `far` if that is > 0. */
static cfx_graph *chain(size_t n, size_t far, const cfx_allocator *a, cfx_error *err)
{
    cfx_graph *g = cfx_graph_new(a, NULL, err);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", err) : NULL;
    cfx_value last[2] = {cfx_value_node(x), cfx_value_none()};
    for (size_t i = 1; x && i <= n; i++) {
        size_t args = i == n && far > 0 ? 2 : 1;
        x = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", last, args, NULL, 0, err);
        last[0] = cfx_value_node(x);
        if (i == far)
            last[1] = last[0];
    }
    if (x)
        cfx_graph_output(g, last[0], err);
    return g;
}

static void check_stages(const char *expected, double cost, cfx_graph *g, cfx_stages_options what)
{
    size_t parts[MAX];
    char letters[MAX + 1] = "";
    double largest;
    CHECK_INT_EQ(CFX_OK, cfx_graph_stages(g, &what, parts, &largest, NULL));
    for (size_t i = 0; i < cfx_graph_size(g); i++)
        letters[i] = parts[i] == CFX_SPLIT_BASE ? '.' : (char)('a' + parts[i]);
    CHECK_STR_EQ(expected, letters);
    CHECK(largest == cost);
}

TEST(the_largest_cost_is_the_least)
{
    cfx_graph *g = chain(5, 0, NULL, NULL);
    const double costs[] = {9, 4, 1, 1, 2, 4, 9};
    check_stages(".aaaab.", 8, g,
                 (cfx_stages_options){.n = 2, .costs = (double[]){0, 2, 2, 2, 2, 8, 0}});
    check_stages(".aaabb.", 6, g, (cfx_stages_options){.n = 2, .costs = costs});
    check_stages(".aaaaa.", 12, g, (cfx_stages_options){.n = 1, .costs = costs});
    check_stages(".abcde.", 1, g, (cfx_stages_options){.n = 9});
    check_stages(".aaaaa.", 0, g,
                 (cfx_stages_options){.n = 1, .costs = (double[]){0, 0, 0, 0, 0, 0, 0}});
    cfx_graph_release(g);
}

/* Two cuts are as good for the cost; one of them lies between big values. */
TEST(the_fewest_bytes_cross)
{
    cfx_graph *g = chain(4, 0, NULL, NULL);
    const double costs[] = {0, 3, 1, 1, 3, 0};
    const double sizes[] = {0, 5, 9, 2, 1, 0};
    check_stages(".aaab.", 5, g, (cfx_stages_options){.n = 2, .costs = (double[]){0, 3, 1, 1, 5, 0},
                                                      .sizes = sizes});
    check_stages(".aabb.", 4, g, (cfx_stages_options){.n = 2, .costs = costs, .sizes = sizes});
    check_stages(".abbc.", 3, g, (cfx_stages_options){.n = 3, .costs = costs, .sizes = sizes});
    cfx_graph_release(g);
    g = chain(4, 1, NULL, NULL);  /* the first value is used at the end: it crosses all cuts */
    check_stages(".abbb.", 5, g,
                 (cfx_stages_options){.n = 2, .costs = (double[]){0, 5, 1, 1, 1, 0}});
    cfx_graph_release(g);
}

static double cost_of(const double *costs, size_t from, size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += costs[i + 1];
    return sum;
}

/* All ways to put two cuts, against the answer. */
TEST(as_good_as_all_ways)
{
    enum { N = 9 };
    uint32_t seed = 1;
    for (int round = 0; round < 200; round++) {
        double costs[N + 2] = {0}, sizes[N + 2] = {0};
        cfx_graph *g = chain(N, 0, NULL, NULL);
        for (size_t i = 1; i <= N; i++) {
            seed = seed * 1664525u + 1013904223u;
            costs[i] = (seed >> 16) % 7;
            sizes[i] = (seed >> 24) % 5;
        }
        double least = HUGE_VAL, bytes = HUGE_VAL;
        for (size_t a = 0; a <= N; a++)
            for (size_t b = a; b <= N; b++) {
                double cost = fmax(cost_of(costs, 0, a), fmax(cost_of(costs, a, b),
                                                              cost_of(costs, b, N)));
                double cross = (a > 0 && a < N ? sizes[a] : 0) + (b > 0 && b < N ? sizes[b] : 0);
                if (cost < least || (cost == least && cross < bytes))
                    bytes = cross;
                least = fmin(least, cost);
            }
        size_t parts[MAX];
        double largest, got = 0;
        const cfx_stages_options what = {.n = 3, .costs = costs, .sizes = sizes};
        CHECK_INT_EQ(CFX_OK, cfx_graph_stages(g, &what, parts, &largest, NULL));
        for (size_t i = 2; i <= N; i++)
            got += (double)(parts[i] - parts[i - 1]) * sizes[i - 1];
        CHECK(largest == least && got <= bytes);
        cfx_graph_release(g);
    }
}

TEST(bad_numbers)
{
    cfx_graph *g = chain(2, 0, NULL, NULL);
    cfx_error err = {.status = CFX_OK};
    size_t parts[MAX];
    const double bad[] = {0, 1, -1, 0}, nan[] = {0, NAN, 1, 0}, huge[] = {0, 1e308, 1e308, 0};
    cfx_stages_options what = {.n = 2, .costs = bad};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_stages(g, &what, parts, NULL, &err));
    CHECK(strstr(err.message, "the cost of node %f_1 is -1") != NULL);
    what = (cfx_stages_options){.n = 2, .sizes = nan};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_stages(g, &what, parts, NULL, NULL));
    what = (cfx_stages_options){.n = 2, .costs = huge};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_stages(g, &what, parts, NULL, NULL));
    what = (cfx_stages_options){.n = 0};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_stages(g, &what, parts, NULL, NULL));
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    size_t parts[MAX];
    const cfx_stages_options what = {.n = 3};
    cfx_graph *g = chain(6, 2, a, &err);
    (void)arg;
    if (err.status == CFX_OK)
        cfx_graph_stages(g, &what, parts, NULL, &err);
    cfx_graph_release(g);
    return err.status;
}

TEST(every_allocation_may_fail) { CHECK(test_oom_sweep(body, NULL) > 5); }

TEST(a_long_chain)
{
    enum { LENGTH = 1000000 };
    cfx_graph *g = chain(LENGTH, 0, NULL, NULL);
    size_t *parts = malloc((LENGTH + 2) * sizeof *parts);
    double largest;
    const cfx_stages_options what = {.n = 64};
    CHECK_INT_EQ(CFX_OK, cfx_graph_stages(g, &what, parts, &largest, NULL));
    CHECK(largest == LENGTH / 64.0);
    CHECK_INT_EQ(63, parts[LENGTH]);
    free(parts);
    cfx_graph_release(g);
}
