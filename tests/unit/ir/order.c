/* order.c - tests of the order labels, wherever nodes are inserted. */
#include "graph_test.h"

#include "ir/graph_impl.h"

#include <time.h>

enum { MANY = 100000 };

typedef struct bench {
    cfx_graph *g;
    cfx_node **nodes;
    size_t n;
    uint64_t seed;
} bench;

static size_t pick(bench *b, size_t below)
{
    b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(b->seed >> 33) % below;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool monotone(const cfx_graph *g)
{
    size_t n = 0;
    for (const cfx_node *a = cfx_graph_first(g); a; a = cfx_node_next(a), n++) {
        const cfx_node *b = cfx_node_next(a);
        if (b && (!cfx_node_before(a, b) || cfx_node_before(b, a)))
            return false;
    }
    return n == cfx_graph_size(g);
}

typedef cfx_insert_point place(bench *b);

static cfx_insert_point at_end(bench *b)
{
    (void)b;
    return (cfx_insert_point){NULL, false};
}

static cfx_insert_point at_start(bench *b)
{
    (void)b;
    return (cfx_insert_point){NULL, true};
}

static cfx_insert_point at_random(bench *b)
{
    if (b->n == 0)
        return at_end(b);
    return (cfx_insert_point){b->nodes[pick(b, b->n)], pick(b, 2) == 0};
}

static cfx_insert_point after_the_middle(bench *b)
{
    return (cfx_insert_point){b->n < 2 ? NULL : b->nodes[0], true};
}

static cfx_insert_point before_the_middle(bench *b)
{
    return (cfx_insert_point){b->n < 2 ? NULL : b->nodes[1], false};
}

static cfx_insert_point after_the_newest(bench *b) /* between two nodes, from left to right */
{
    return (cfx_insert_point){b->n < 2 ? NULL : b->n == 2 ? b->nodes[0] : b->nodes[b->n - 1], true};
}

/* Inserts `count` nodes; returns the seconds it took. */
static double insert(place *where, size_t count, bool check)
{
    bench b = {.g = cfx_graph_new(NULL, NULL, NULL), .seed = 7};
    b.nodes = malloc(count * sizeof *b.nodes);
    const double start = now();
    double checking = 0;
    for (; b.n < count; b.n++) {
        cfx_graph_set_insert_point(b.g, where(&b), NULL);
        b.nodes[b.n] = cfx_graph_placeholder(b.g, "x", NULL);
        if (check && b.n % (count / 10) == 0) {
            const double before = now();
            CHECK(monotone(b.g));
            checking += now() - before;
        }
    }
    const double seconds = now() - start - checking;
    CHECK(monotone(b.g));
    CHECK_INT_EQ(count, cfx_graph_size(b.g));
    free(b.nodes);
    cfx_graph_release(b.g);
    return seconds;
}

/* Ten times the nodes may take about ten times as long; machines are noisy, so: not forty. */
static void check_place(place *where)
{
    insert(where, MANY / 10, true);
    const double little = insert(where, MANY / 10, false);
    const double much = insert(where, MANY, true);
    if (!CHECK(much < 40 * little + 0.02))
        printf("    %g s, then %g s\n", little, much);
}

TEST(appending) { check_place(at_end); }
TEST(prepending) { check_place(at_start); }
TEST(anywhere) { check_place(at_random); }
TEST(after_one_node) { check_place(after_the_middle); }
TEST(before_one_node) { check_place(before_the_middle); }
TEST(left_to_right_in_a_gap) { check_place(after_the_newest); }

/* Moving re-labels as well. */
TEST(moving)
{
    bench b = {.g = cfx_graph_new(NULL, NULL, NULL), .seed = 3};
    enum { N = 2000 };
    cfx_node *nodes[N];
    for (size_t i = 0; i < N; i++)
        nodes[i] = cfx_graph_placeholder(b.g, "x", NULL);
    for (size_t i = 0; i < 50 * N; i++) {
        cfx_node *at = nodes[pick(&b, i % 3 ? N : 2)];
        cfx_node *n = nodes[pick(&b, N)];
        CHECK_INT_EQ(CFX_OK, pick(&b, 2) ? cfx_node_append(at, n, NULL)
                                         : cfx_node_prepend(at, n, NULL));
        if (i % N == 0 && !CHECK(monotone(b.g)))
            break;
    }
    CHECK(monotone(b.g));
    cfx_graph_release(b.g);
}

/* Labels at both ends of the range: no room to append, or to prepend. */
TEST(the_ends_of_the_range)
{
    for (int after = 0; after < 2; after++) {
        cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
        REQUIRE(g);
        for (int i = 0; i < 10; i++)
            cfx_graph_placeholder(g, "x", NULL);
        const uint64_t down = ((uint64_t)1 << 62) - 1;
        const uint64_t up = ((uint64_t)1 << 62) - ((uint64_t)10 << 32);
        for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
            n->order = after ? n->order - down : n->order + up;
        CHECK(monotone(g));
        cfx_graph_set_insert_point(g, (cfx_insert_point){NULL, after == 1}, NULL);
        for (int i = 0; i < 5000; i++) {
            cfx_graph_placeholder(g, "x", NULL);
            if (i < 200 && !CHECK(monotone(g)))
                break;
        }
        CHECK(monotone(g));
        cfx_graph_release(g);
    }
}
