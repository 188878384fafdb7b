/* placement.c - tests of src/split: longest ways, parts on devices, and the modes. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/embed/placement.h>

#include <math.h>

enum { MAX = 24 };

/* ---- links --------------------------------------------------------------------------------- */

TEST(the_longest_way)
{
    const double weights[] = {1, 5, 1, 2};
    const cfx_link links[] = {{0, 2, 1}, {1, 2, 0}, {2, 3, 4}, {0, 3, 1}};
    double far[4];
    uint32_t before[4];
    CHECK_INT_EQ(CFX_OK, cfx_longest_paths(4, weights, links, 4, far, before, NULL, NULL));
    CHECK(far[0] == 1 && far[1] == 5 && far[2] == 6 && far[3] == 12);
    CHECK(before[0] == CFX_NO_PART && before[1] == CFX_NO_PART && before[2] == 1 && before[3] == 2);
}

TEST(bad_links)
{
    cfx_error err = {.status = CFX_OK};
    const double weights[] = {1, 1, 1};
    const cfx_link circle[] = {{0, 1, 0}, {1, 2, 0}, {2, 1, 0}}, far_off[] = {{0, 3, 0}};
    double far[3];
    bool fits;
    uint32_t devices[3];
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_longest_paths(3, weights, circle, 3, far, NULL, NULL, &err));
    CHECK(strstr(err.message, "depend on each other") != NULL);
    CHECK_INT_EQ(CFX_E_INDEX, cfx_longest_paths(3, weights, far_off, 1, far, NULL, NULL, NULL));
    cfx_fit_options fit = {weights, 1, weights, 3, far_off, 1, NULL, 0};
    CHECK_INT_EQ(CFX_E_INDEX, cfx_devices_fit(&fit, devices, &fits, NULL, NULL));
    fit = (cfx_fit_options){weights, 1, weights, 3, NULL, 0, circle, 1};
    CHECK_INT_EQ(CFX_E_INDEX, cfx_devices_fit(&fit, devices, &fits, NULL, NULL));
}

/* "0-1 no": the device of each part that was not placed; whether all fit. */
static const char *fitted(cfx_fit_options fit)
{
    static char text[MAX];
    bool fits;
    size_t used = 0;
    uint32_t devices[MAX];
    if (!CHECK_INT_EQ(CFX_OK, cfx_devices_fit(&fit, devices, &fits, NULL, NULL)))
        return "";
    for (size_t i = 0; i < fit.n_parts; i++)
        text[used++] = devices[i] == CFX_NO_PART ? '-' : (char)('0' + devices[i]);
    snprintf(text + used, sizeof text - used, " %s", fits ? "yes" : "no");
    return text;
}

TEST(the_device_with_the_least_room)
{
    const double memory[] = {60, 100, 90}, sizes[] = {50, 85, 20, 9};
    CHECK_STR_EQ("0210 yes", fitted((cfx_fit_options){memory, 3, sizes, 4, NULL, 0, NULL, 0}));
    CHECK_STR_EQ("0- no", fitted((cfx_fit_options){memory, 1, sizes, 2, NULL, 0, NULL, 0}));
    const double tight[] = {50}, one[] = {50};  /* more than it needs must be left */
    CHECK_STR_EQ("- no", fitted((cfx_fit_options){tight, 1, one, 1, NULL, 0, NULL, 0}));
}

TEST(what_parts_share)
{
    const double memory[] = {100}, sizes[] = {60, 50};
    const cfx_link shared[] = {{0, 1, 11}}, placed[] = {{0, 0, 0}};
    CHECK_STR_EQ("0- no", fitted((cfx_fit_options){memory, 1, sizes, 2, NULL, 0, NULL, 0}));
    CHECK_STR_EQ("00 yes", fitted((cfx_fit_options){memory, 1, sizes, 2, shared, 1, NULL, 0}));
    CHECK_STR_EQ("-0 yes", fitted((cfx_fit_options){memory, 1, sizes, 2, shared, 1, placed, 1}));
    CHECK_STR_EQ("-- no", fitted((cfx_fit_options){memory, 1, sizes, 2, NULL, 0, placed, 1}));
}

/* ---- modes --------------------------------------------------------------------------------- */

/* A placeholder and `n` calls in a chain; all values have size 10. */
static cfx_graph *chain(size_t n, const cfx_allocator *a, cfx_error *err)
{
    cfx_graph *g = cfx_graph_new(a, NULL, err);
    cfx_node *x = g ? cfx_graph_placeholder(g, "x", err) : NULL;
    for (size_t i = 0; x && i < n; i++) {
        const cfx_value last = cfx_value_node(x);
        x = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", &last, 1, NULL, 0, err);
    }
    if (x)
        cfx_graph_output(g, cfx_value_node(x), err);
    return g;
}

static const double ten[MAX] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10,
                                10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10};

static cfx_place_options sized(cfx_place_mode mode, const double *memory, size_t n)
{
    return (cfx_place_options){.mode = mode,
                               .outputs = ten,
                               .totals = ten,
                               .latencies = ten,
                               .rate = 1,
                               .memory = memory,
                               .n_devices = n};
}

/* ".aab. 01": the part of each node, and the device of each part. */
static const char *placed(cfx_graph *g, cfx_place_options what)
{
    static char text[512];
    uint32_t parts[MAX], devices[MAX];
    size_t n = 0, used = 0;
    cfx_error err = {.status = CFX_OK};
    if (cfx_graph_place(g, &what, parts, devices, &n, &err) != CFX_OK) {
        snprintf(text, sizeof text, "%s", err.message);
        return text;
    }
    for (size_t i = 0; i < cfx_graph_size(g); i++)
        text[used++] = parts[i] == CFX_NO_PART ? '.' : (char)('a' + parts[i]);
    text[used++] = ' ';
    for (size_t i = 0; i < n; i++)
        text[used++] = devices[i] == CFX_NO_PART ? '-' : (char)('0' + devices[i]);
    text[used] = '\0';
    return text;
}

TEST(devices_are_filled_in_order)
{
    cfx_graph *g = chain(4, NULL, NULL);
    const double big[] = {30, 40}, small[] = {15, 30, 30}, rest[] = {45, 22};
    CHECK_STR_EQ(".aabb. 01", placed(g, sized(CFX_PLACE_BY_SIZE, big, 2)));
    CHECK_STR_EQ(".aaab. 01", placed(g, sized(CFX_PLACE_BY_SIZE, rest, 2)));
    CHECK(strncmp("f_2 is too large to fit any device", placed(g, sized(CFX_PLACE_BY_SIZE, small,
                                                                        2)), 30) == 0);
    const double left[] = {55, 45};  /* both are used: the last call goes where there is room */
    cfx_place_options what = sized(CFX_PLACE_BY_SIZE, left, 2);
    what.totals = (const double[]){10, 10, 10, 30, 10, 0};
    CHECK_STR_EQ(".aabc. 010", placed(g, what));
    what.totals = (const double[]){10, 10, 10, 30, 25, 0};
    CHECK(strncmp("Cannot Get a Valid Partition to Logical Device Mapping", placed(g, what), 54) ==
          0);
    cfx_graph_release(g);
}

TEST(embeddings_are_kept_apart)
{
    cfx_graph *g = chain(5, NULL, NULL);
    const double memory[] = {81, 81, 81}, tight[] = {79, 79};
    const bool embedding[] = {false, false, true, false, true, false, false};
    cfx_place_options what = sized(CFX_PLACE_EMBEDDINGS, memory, 3);
    what.embedding = embedding;
    CHECK_STR_EQ(".abcde. -0-1-", placed(g, what));
    what.memory = tight;
    CHECK(strstr(placed(g, what), "can not fit into one device") != NULL);
    what.n_devices = 1;
    CHECK_STR_EQ("Need 2 devices, but only 1 provided", placed(g, what));
    what.embedding = (const bool[MAX]){false};
    CHECK(strstr(placed(g, what), "no call in the graph looks up embeddings") != NULL);
    what.embedding = NULL;
    CHECK(strstr(placed(g, what), "needs the calls that look up embeddings") != NULL);
    cfx_graph_release(g);
}

TEST(latency_is_made_least)
{
    cfx_graph *g = chain(4, NULL, NULL);
    const double one[] = {100, 30}, two[] = {35, 35};
    CHECK_STR_EQ(".aaaa. 0", placed(g, sized(CFX_PLACE_BY_COST, one, 2)));
    CHECK_STR_EQ(".bbaa. 01", placed(g, sized(CFX_PLACE_BY_COST, two, 2)));
    cfx_place_options what = sized(CFX_PLACE_BY_COST, one, 1);
    what.rate = 0;
    CHECK(strstr(placed(g, what), "transfer rate is 0") != NULL);
    what.latencies = NULL;
    CHECK(strstr(placed(g, what), "needs latencies") != NULL);
    cfx_graph_release(g);
}

TEST(calls_are_exchanged)
{
    cfx_graph *g = chain(4, NULL, NULL);
    const double memory[] = {45, 45};
    const cfx_place_options what = sized(CFX_PLACE_BY_EXCHANGE, memory, 2);
    uint32_t parts[] = {CFX_NO_PART, 0, 1, 0, 1, CFX_NO_PART}, devices[] = {0, 1};
    size_t n = 2;
    CHECK_INT_EQ(CFX_OK, cfx_graph_place(g, &what, parts, devices, &n, NULL));
    CHECK_INT_EQ(2, n);
    CHECK_INT_EQ(parts[1], parts[2]);
    CHECK_INT_EQ(parts[3], parts[4]);
    CHECK(devices[0] != devices[1]);
    uint32_t gap[] = {CFX_NO_PART, 0, 0, 2, 2, CFX_NO_PART}, three[] = {0, 1, 1};
    n = 3;  /* a part without calls is gone */
    CHECK_INT_EQ(CFX_OK, cfx_graph_place(g, &what, gap, three, &n, NULL));
    CHECK_INT_EQ(2, n);
    CHECK_INT_EQ(0, gap[2]);
    CHECK_INT_EQ(1, gap[3]);
    gap[2] = 7;
    CHECK_INT_EQ(CFX_E_INDEX, cfx_graph_place(g, &what, gap, three, &n, NULL));
    cfx_graph_release(g);
}

TEST(nodes_out_of_order)
{
    cfx_graph *g = chain(3, NULL, NULL);
    cfx_node *second = cfx_node_next(cfx_node_next(cfx_graph_first(g)));
    CHECK_INT_EQ(CFX_OK, cfx_node_prepend(second, cfx_node_next(second), NULL));
    CHECK(strstr(placed(g, sized(CFX_PLACE_BY_SIZE, ten, 1)), "run the toposort pass first") !=
          NULL);
    cfx_graph_release(g);
}

static cfx_status body(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    uint32_t parts[MAX], devices[MAX];
    const double memory[] = {35, 35, 35};
    const bool embedding[MAX] = {false, false, true};
    size_t n = 0;
    bool fits;
    cfx_place_options what = sized(*(cfx_place_mode *)arg, memory, 3);
    what.embedding = embedding;
    cfx_graph *g = chain(4, a, &err);
    if (err.status == CFX_OK)
        cfx_graph_place(g, &what, parts, devices, &n, &err);
    cfx_graph_release(g);
    const cfx_link links[] = {{0, 1, 1}};
    double far[2];
    if (err.status == CFX_OK)
        cfx_longest_paths(2, ten, links, 1, far, NULL, a, &err);
    const cfx_fit_options fit = {memory, 3, ten, 2, links, 1, NULL, 0};
    if (err.status == CFX_OK)
        cfx_devices_fit(&fit, devices, &fits, a, &err);
    return err.status;
}

TEST(every_allocation_may_fail)
{
    cfx_place_mode modes[] = {CFX_PLACE_BY_SIZE, CFX_PLACE_BY_COST};
    for (size_t i = 0; i < 2; i++)
        CHECK(test_oom_sweep(body, &modes[i]) > 5);
}

TEST(a_long_chain)
{
    enum { LENGTH = 1000000 };
    cfx_graph *g = chain(LENGTH, NULL, NULL);
    double *sizes = malloc((LENGTH + 2) * sizeof *sizes);
    uint32_t *parts = malloc((LENGTH + 2) * sizeof *parts);
    uint32_t *devices = malloc((LENGTH + 2) * sizeof *devices);
    const double memory[] = {4e6, 4e6, 4e6};
    size_t n = 0;
    for (size_t i = 0; i < LENGTH + 2; i++)
        sizes[i] = 10;
    const cfx_place_options what = {.mode = CFX_PLACE_BY_SIZE, .outputs = sizes, .totals = sizes,
                                    .memory = memory, .n_devices = 3};
    CHECK_INT_EQ(CFX_OK, cfx_graph_place(g, &what, parts, devices, &n, NULL));
    CHECK_INT_EQ(3, n);
    CHECK_INT_EQ(2, parts[LENGTH]);
    free(sizes);
    free(parts);
    free(devices);
    cfx_graph_release(g);
}
