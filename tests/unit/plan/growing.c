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

static const char *source = text;

static cfx_datum filled(int64_t rows, int seed)
{
    const int64_t sizes[] = {rows, WIDTH};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 2, NULL, NULL);
    float *data = cfx_tensor_data(t);
    for (int i = 0; i < rows * WIDTH; i++)
        data[i] = (float)((i * 7 + seed * 5) % 11 - 5) / 4;
    return cfx_datum_tensor(t);
}

static const cfx_compile_options appending = {.append = true};

/* `how` NULL: not compiled. */
static cfx_program *make_with(const cfx_allocator *a, const cfx_compile_options *how,
                              cfx_error *err)
{
    const cfx_program_options options = {.allocator = a};
    cfx_state *weights = cfx_state_new(a, err);
    cfx_graph *g = weights ? cfx_graph_parse(source, strlen(source), NULL, NULL, err) : NULL;
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
    if (p && how && cfx_program_compile(p, how, err) != CFX_OK) {
        cfx_program_free(p);
        return NULL;
    }
    return p;
}

static cfx_program *make(const cfx_allocator *a, bool compiled, cfx_error *err)
{
    static const cfx_compile_options none = {0};
    return make_with(a, compiled ? &none : NULL, err);
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
    const float *have = cfx_tensor_data(x);  /* rows of a cache follow one another */
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

static const void *address_of(cfx_datum d) { return cfx_tensor_data(d.as.tensor); }

/* The cache stays where it is, most of the time; whatever was given is as it was. */
TEST(a_cache_grows_in_place)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = make_with(NULL, &appending, &err);
    cfx_program *plain = make(NULL, false, &err);
    cfx_datum past = filled(2, 9);
    cfx_datum other = filled(2, 9);
    int moves = 0;
    REQUIRE(p && plain);
    for (int i = 0; i < 100; i++) {
        const cfx_datum before = cfx_datum_retain(past);
        const cfx_datum was = cfx_datum_retain(other);
        const cfx_datum got = step(p, rt, &past, i, &err);
        const cfx_datum want = step(plain, rt, &other, i, &err);
        CHECK(is_equal(got, want));
        CHECK(is_equal(past, other));
        CHECK(is_equal(before, was));
        moves += address_of(past) != address_of(before);
        cfx_datum_release(got);
        cfx_datum_release(want);
        cfx_datum_release(before);
        cfx_datum_release(was);
    }
    CHECK(moves < 12);
    cfx_program_free(p);  /* the cache outlives it */
    CHECK(is_equal(past, other));
    cfx_datum_release(past);
    cfx_datum_release(other);
    cfx_program_free(plain);
    cfx_runtime_free(rt);
}

/* Two that go on from one cache do not see each other's rows. */
TEST(a_cache_that_is_given_twice)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = make_with(NULL, &appending, &err);
    cfx_program *plain = make(NULL, false, &err);
    cfx_datum past = filled(4, 9);
    REQUIRE(p && plain);
    for (int i = 0; i < 10; i++)
        cfx_datum_release(step(p, rt, &past, i, &err));
    cfx_datum branches[3];
    cfx_datum others[3];
    const void *first = address_of(past);
    int here = 0;
    for (int i = 0; i < 3; i++) {
        branches[i] = cfx_datum_retain(past);
        others[i] = cfx_operator_run(rt, CFX_OPID_clone, &past, 1, &err);
    }
    for (int i = 0; i < 3; i++) {
        cfx_datum_release(step(p, rt, &branches[i], 20 + i, &err));
        cfx_datum_release(step(plain, rt, &others[i], 20 + i, &err));
        here += address_of(branches[i]) == first;
    }
    CHECK_INT_EQ(1, here);
    for (int i = 0; i < 3; i++) {
        CHECK(is_equal(branches[i], others[i]));
        cfx_datum_release(branches[i]);
        cfx_datum_release(others[i]);
    }
    cfx_datum_release(past);
    cfx_program_free(p);
    cfx_program_free(plain);
    cfx_runtime_free(rt);
}

/* Where the program writes to tensors, it would write to the caller's. */
TEST(no_cache_grows_in_place_beside_writes)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    char writing[sizeof text + 100];
    const char *const end = strstr(text, "  output");
    snprintf(writing, sizeof writing, "%.*s  %%w = call_function[target=cfx.ops.mul_](%%k, 2)\n%s",
             (int)(end - text), text, end);
    source = writing;
    cfx_program *p = make_with(NULL, &appending, &err);
    cfx_program *plain = make(NULL, false, &err);
    source = text;
    cfx_datum past = filled(4, 9);
    cfx_datum other = filled(4, 9);
    REQUIRE(p && plain);
    for (int i = 0; i < 10; i++) {
        const cfx_datum before = cfx_datum_retain(past);
        const cfx_datum was = cfx_datum_retain(other);
        cfx_datum_release(step(p, rt, &past, i, &err));
        cfx_datum_release(step(plain, rt, &other, i, &err));
        CHECK(is_equal(past, other));
        CHECK(is_equal(before, was));
        cfx_datum_release(before);
        cfx_datum_release(was);
    }
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

static void check_threads(const cfx_compile_options *how)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = make_with(NULL, how, &err);
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

TEST(threads_with_caches_of_their_own)
{
    static const cfx_compile_options none = {0};
    check_threads(&none);
    check_threads(&appending);
}

static cfx_status run_some(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = rt ? make_with(a, arg, &err) : NULL;
    cfx_datum past = filled(2, 1);
    for (int i = 0; p && err.status == CFX_OK && i < 8; i++)
        cfx_datum_release(step(p, rt, &past, i, &err));
    cfx_datum_release(past);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    cfx_compile_options how = {0};
    CHECK(test_oom_sweep(run_some, &how) > 20);
    how.append = true;
    CHECK(test_oom_sweep(run_some, &how) > 20);
}
