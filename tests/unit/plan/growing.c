/* growing.c - programs that are given back what they gave, a row longer each time: few plans, right
 * results, with any number of threads and with little memory. */
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <pthread.h>

enum { WIDTH = 8, CLIENTS = 4 };

/* %k has other sizes in each run, and so has what the mean reads. */
static const char text[] =
    "graph():\n"
    "  %past = placeholder[target=past]()\n"
    "  %x = placeholder[target=x]()\n"
    "  %a = get_attr[target=a]()\n"
    "  %b = get_attr[target=b]()\n"
    "  %h = call_function[target=cfx.ops.matmul](%x, %a)\n"
    "  %r = call_function[target=cfx.ops.relu](%h)\n"
    "  %k = call_function[target=cfx.ops.cat]([%past, %r], 0)\n"
    "  %m = call_function[target=cfx.ops.mean](%k, [0], True)\n"
    "  %y = call_function[target=cfx.ops.matmul](%m, %b)\n"
    "  %z = call_function[target=cfx.ops.neg](%y)\n"
    "  output((%z, %k))\n";

static cfx_datum filled(int64_t rows, int seed)
{
    const int64_t sizes[] = {rows, WIDTH};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 2, NULL, NULL);
    float *data = cfx_tensor_data(t);
    for (int i = 0; i < rows * WIDTH; i++)
        data[i] = (float)((i * 7 + seed * 5) % 11 - 5) / 4;
    return cfx_datum_tensor(t);
}

static cfx_program *make(const cfx_allocator *a, bool compiled, cfx_error *err)
{
    const cfx_program_options options = {.allocator = a};
    cfx_state *weights = cfx_state_new(a, err);
    cfx_graph *g = weights ? cfx_graph_parse(text, strlen(text), NULL, NULL, err) : NULL;
    for (int i = 0; g && i < 2; i++) {
        const cfx_datum w = filled(WIDTH, i);
        if (cfx_state_set(weights, i ? "b" : "a", w.as.tensor, err) != CFX_OK) {
            cfx_graph_release(g);
            g = NULL;
        }
        cfx_datum_release(w);
    }
    cfx_program *p = g ? cfx_program_new(g, weights, &options, err) : NULL;
    cfx_graph_release(g);
    cfx_state_free(weights);
    if (p && compiled && cfx_program_compile(p, NULL, err) != CFX_OK) {
        cfx_program_free(p);
        return NULL;
    }
    return p;
}

/* One run more: takes the cache over, and gives the next. Returns the result, or INVALID. */
static cfx_datum step(const cfx_program *p, cfx_runtime *rt, cfx_datum *past, int seed,
                      cfx_error *err)
{
    size_t n;
    const cfx_datum inputs[] = {*past, filled(1, seed)};
    const cfx_datum both = cfx_program_run(p, rt, inputs, 2, err);
    const cfx_datum *items = cfx_datum_items(both, &n);
    const cfx_datum y = items ? cfx_datum_retain(items[0]) : cfx_datum_invalid();
    cfx_datum_release(inputs[1]);
    cfx_datum_release(*past);
    *past = items ? cfx_datum_retain(items[1]) : cfx_datum_invalid();
    cfx_datum_release(both);
    return y;
}

static bool is_equal(cfx_datum a, cfx_datum b)
{
    const cfx_tensor *x = a.kind == CFX_DATUM_TENSOR ? a.as.tensor : NULL;
    const cfx_tensor *y = b.kind == CFX_DATUM_TENSOR ? b.as.tensor : NULL;
    if (!x || !y || cfx_tensor_numel(x) != cfx_tensor_numel(y))
        return false;
    const float *have = cfx_tensor_data(x);
    const float *want = cfx_tensor_data(y);
    for (int64_t i = 0; i < cfx_tensor_numel(x); i++)
        if (!(have[i] - want[i] < 1e-4f && want[i] - have[i] < 1e-4f))
            return false;
    return true;
}

/* What plans of a program say. */
static size_t count_of(const cfx_program *p, const char *what)
{
    cfx_buffer printed;
    size_t count = 0;
    cfx_buffer_init(&printed, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_program_print_plans(p, cfx_buffer_sink(&printed), NULL));
    for (const char *at = printed.data; at && (at = strstr(at, what)) != NULL; at++)
        count++;
    cfx_buffer_free(&printed);
    return count;
}

TEST(a_cache_that_grows_needs_no_new_plans)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = make(NULL, true, &err);
    cfx_program *plain = make(NULL, false, &err);
    cfx_datum past = filled(2, 9);
    cfx_datum other = filled(2, 9);
    size_t early = 0;
    REQUIRE(p && plain);
    for (int i = 0; i < 40; i++) {
        const cfx_datum got = step(p, rt, &past, i, &err);
        const cfx_datum want = step(plain, rt, &other, i, &err);
        CHECK(is_equal(got, want));
        CHECK(is_equal(past, other));
        cfx_datum_release(got);
        cfx_datum_release(want);
        if (i == 6)
            early = count_of(p, "plan of");
    }
    CHECK_INT_EQ(early, count_of(p, "plan of"));
    CHECK_INT_EQ(3, count_of(p, "%k "));  /* in the plans that were tried */
    CHECK_INT_EQ(5, count_of(p, "plan of"));
    CHECK_INT_EQ(3 * 2 + 2, count_of(p, "product"));
    cfx_datum_release(past);
    cfx_datum_release(other);
    cfx_program_free(p);
    cfx_program_free(plain);
    cfx_runtime_free(rt);
}

typedef struct client {
    const cfx_program *p, *plain;
    cfx_runtime *rt;
    int rows;
    bool ok;
} client;

static void *run_client(void *arg)
{
    client *c = arg;
    cfx_error err = {0};
    cfx_datum past = filled(c->rows, c->rows);
    cfx_datum other = filled(c->rows, c->rows);
    c->ok = true;
    for (int i = 0; i < 60; i++) {
        const cfx_datum got = step(c->p, c->rt, &past, i, &err);
        const cfx_datum want = step(c->plain, c->rt, &other, i, &err);
        c->ok = c->ok && is_equal(got, want) && is_equal(past, other);
        cfx_datum_release(got);
        cfx_datum_release(want);
    }
    cfx_datum_release(past);
    cfx_datum_release(other);
    return NULL;
}

TEST(threads_with_caches_of_their_own)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = make(NULL, true, &err);
    cfx_program *plain = make(NULL, false, &err);
    client clients[CLIENTS];
    pthread_t threads[CLIENTS];
    REQUIRE(p && plain);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){p, plain, rt, 1 + 3 * i, false};
        REQUIRE(pthread_create(&threads[i], NULL, run_client, &clients[i]) == 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(clients[i].ok);
    }
    cfx_program_free(p);
    cfx_program_free(plain);
    cfx_runtime_free(rt);
}

static cfx_status run_some(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = rt ? make(a, true, &err) : NULL;
    cfx_datum past = filled(1, 1);
    (void)arg;
    for (int i = 0; p && err.status == CFX_OK && i < 6; i++)
        cfx_datum_release(step(p, rt, &past, i, &err));
    cfx_datum_release(past);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    CHECK(test_oom_sweep(run_some, NULL) > 20);
}
