/* session.c - values that a program keeps: counters, caches that grow, what does not fit. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>

/* calls + 1, [cache, x], x * calls: a counter and a cache. */
static const char model[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %calls = placeholder[target=calls]()\n"
    "  %cache = placeholder[target=cache]()\n"
    "  %more = call_function[target=cfx.ops.add](%calls, 1)\n"
    "  %grown = call_function[target=cfx.ops.cat]([%cache, %x])\n"
    "  %y = call_function[target=cfx.ops.mul](%x, %more)\n"
    "  output((%more, %grown, %y))\n";

static const cfx_kept_input takes[] = {
    {.name = "cache", .input = 2, .kind = CFX_DATUM_TENSOR, .dtype = CFX_DTYPE_FLOAT32, .rank = 1},
    {.name = "calls", .input = 1, .kind = CFX_DATUM_INT},
};
static const cfx_kept_result keeps[] = {{"calls", 0}, {"cache", 1}};
static const cfx_keeping keeping = {takes, 2, keeps, 2};

static cfx_datum vector(int64_t n, float value, const cfx_allocator *a, cfx_error *err)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, &n, 1, a, err);
    for (int64_t i = 0; t && i < n; i++)
        ((float *)cfx_tensor_data(t))[i] = value;
    return cfx_datum_tensor(t);
}

static cfx_program *program(const cfx_allocator *a, cfx_error *err)
{
    const cfx_program_options options = {.allocator = a};
    cfx_graph *g = cfx_graph_parse(model, strlen(model), a, NULL, err);
    cfx_program *p = g ? cfx_program_new(g, NULL, &options, err) : NULL;
    cfx_graph_release(g);
    return p;
}

static cfx_session *session(const cfx_allocator *a, cfx_error *err)
{
    cfx_session *s = cfx_session_new(a, err);
    cfx_datum empty = s ? vector(0, 0, a, err) : cfx_datum_invalid();
    if (empty.kind == CFX_DATUM_INVALID ||
        cfx_session_set(s, "calls", cfx_datum_int(0), err) != CFX_OK ||
        cfx_session_set(s, "cache", empty, err) != CFX_OK) {
        cfx_session_free(s);
        s = NULL;
    }
    cfx_datum_release(empty);
    return s;
}

static int64_t length(cfx_datum d) { return cfx_tensor_sizes(d.as.tensor)[0]; }

TEST(values_move_on_with_each_run)
{
    cfx_error err = {0};
    cfx_program *p = program(NULL, &err);
    cfx_session *s = session(NULL, &err);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    REQUIRE(p && s && rt);
    for (int64_t i = 1; i <= 3; i++) {
        size_t n;
        cfx_datum x = vector(i, 1, NULL, &err);
        cfx_datum y = cfx_session_run(s, p, &keeping, rt, &x, 1, &err);
        CHECK_STR_EQ("", err.message);
        REQUIRE(y.kind == CFX_DATUM_TUPLE);
        const cfx_datum *items = cfx_datum_items(y, &n);
        REQUIRE(n == 1);
        CHECK(*(const float *)cfx_tensor_data(items[0].as.tensor) == (float)i);
        CHECK_INT_EQ(i, cfx_session_get(s, "calls").as.i);
        CHECK_INT_EQ(i * (i + 1) / 2, length(cfx_session_get(s, "cache")));
        cfx_datum_release(y);
        cfx_datum_release(x);
    }
    CHECK_INT_EQ(2, cfx_session_size(s));
    CHECK_STR_EQ("calls", cfx_session_name(s, 0));
    CHECK(cfx_session_name(s, 2) == NULL);
    CHECK(cfx_session_get(s, "call").kind == CFX_DATUM_INVALID);
    cfx_session_free(s);
    cfx_session_free(NULL);
    cfx_program_free(p);
    cfx_runtime_free(rt);
}

/* Runs once with a value that does not fit; nothing is replaced. */
static void refused(const char *name, cfx_datum value, const cfx_keeping *k, const char *why)
{
    cfx_error err = {0};
    cfx_program *p = program(NULL, &err);
    cfx_session *s = session(NULL, &err);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_datum x = vector(2, 1, NULL, &err);
    REQUIRE(p && s && rt);
    CHECK_INT_EQ(CFX_OK, cfx_session_set(s, name, value, &err));
    cfx_datum y = cfx_session_run(s, p, k, rt, &x, 1, &err);
    CHECK_INT_EQ(CFX_DATUM_INVALID, y.kind);
    CHECK_STR_EQ(why, err.message);
    CHECK_INT_EQ(0, length(cfx_session_get(s, "cache")));
    cfx_datum_release(x);
    cfx_session_free(s);
    cfx_program_free(p);
    cfx_runtime_free(rt);
}

TEST(values_that_the_program_is_not_for)
{
    static const cfx_kept_input tall[] = {
        {"cache", 2, CFX_DATUM_TENSOR, CFX_DTYPE_FLOAT32, 2},
        {.name = "calls", .input = 1, .kind = CFX_DATUM_INT}};
    static const cfx_kept_input none[] = {{.name = "gone", .input = 1, .kind = CFX_DATUM_INT}};
    static const cfx_kept_input far[] = {{.name = "calls", .input = 9, .kind = CFX_DATUM_INT}};
    static const cfx_kept_result more[] = {{"calls", 7}};
    const cfx_keeping others[] = {{tall, 2, keeps, 2}, {none, 1, keeps, 2}, {far, 1, keeps, 2},
                                  {takes, 2, more, 1}};
    refused("calls", cfx_datum_float(1), &keeping,
            "'calls' is float now, but the program is for int");
    refused("calls", cfx_datum_int(0), &others[0],
            "'cache' is float32 with 1 dimensions now, but the program is for float32 with 2 "
            "dimensions");
    refused("calls", cfx_datum_int(0), &others[1], "the session has no value 'gone'");
    refused("calls", cfx_datum_int(0), &others[2], "the program has no input 9 for 'calls'");
    refused("calls", cfx_datum_int(0), &others[3], "the program has no result 7 for 'calls'");
}

TEST(a_run_that_fails_replaces_nothing)
{
    cfx_error err = {0};
    cfx_program *p = program(NULL, &err);
    cfx_session *s = session(NULL, &err);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_datum bad = cfx_datum_none();
    cfx_datum two[] = {cfx_datum_int(1), cfx_datum_int(2)};
    REQUIRE(p && s && rt);
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_session_run(s, p, &keeping, rt, &bad, 1, &err).kind);
    CHECK_INT_EQ(0, cfx_session_get(s, "calls").as.i);
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_session_run(s, p, &keeping, rt, two, 2, &err).kind);
    CHECK_STR_EQ("too many inputs: expected at most 1, got 2", err.message);
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_session_run(s, p, &keeping, rt, NULL, 0, &err).kind);
    CHECK_STR_EQ("the input 'x' is missing", err.message);
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_session_set(s, "calls", cfx_datum_invalid(), &err));
    cfx_session_free(s);
    cfx_program_free(p);
    cfx_runtime_free(rt);
}

static cfx_status run_twice(const cfx_allocator *a, void *arg)
{
    static const cfx_kept_result renamed[] = {{"calls", 0}, {"cache", 1}, {"last", 2}};
    static const cfx_keeping all = {takes, 2, renamed, 3};
    cfx_error err = {0};
    cfx_program *p = program(a, &err);
    cfx_session *s = p ? session(a, &err) : NULL;
    cfx_datum x = s ? vector(40, 1, a, &err) : cfx_datum_invalid();
    for (int i = 0; i < 2 && err.status == CFX_OK; i++) {
        cfx_datum y = cfx_session_run(s, p, &all, arg, &x, 1, &err);
        cfx_datum_release(y);
    }
    cfx_datum_release(x);
    cfx_session_free(s);
    cfx_program_free(p);
    return err.status;
}

TEST(every_allocation_may_fail)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    REQUIRE(rt);
    CHECK(test_oom_sweep(run_twice, rt) > 20);
    cfx_runtime_free(rt);
}
