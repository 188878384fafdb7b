/* plan_fixture.h - planned programs, written as IR text, against the interpreter. */
#ifndef CFX_TESTS_PLAN_FIXTURE_H
#define CFX_TESTS_PLAN_FIXTURE_H

#include "check.h"
#include "plan/plan_impl.h"

#include <cfx/cfx.h>
#include <math.h>

static inline float number(void)
{
    static uint64_t state = 3;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((state >> 33) % 2001) / 1000 - 1;
}

/* A tensor of random numbers; positive ones on demand: variances. */
static inline cfx_tensor *random_tensor(const int64_t *sizes, size_t ndim, bool positive)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, ndim, NULL, NULL);
    float *data = cfx_tensor_data(t);
    for (int64_t i = 0; i < cfx_tensor_numel(t); i++)
        data[i] = positive ? fabsf(number()) + 0.5f : number();
    return t;
}

static inline void add_weight(cfx_state *s, const char *name, size_t ndim, const int64_t *sizes)
{
    cfx_tensor *t = random_tensor(sizes, ndim, strstr(name, "var") != NULL);
    cfx_state_set(s, name, t, NULL);
    cfx_tensor_release(t);
}
#define WEIGHT(s, name, ...)                                                                       \
    add_weight(s, name, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                        \
               (const int64_t[]){__VA_ARGS__})

static inline cfx_program *program_of(const char *text, const cfx_state *weights,
                                      const cfx_allocator *a, cfx_error *err)
{
    const cfx_program_options options = {.allocator = a};
    cfx_graph *g = cfx_graph_parse(text, strlen(text), NULL, NULL, err);
    cfx_program *p = g ? cfx_program_new(g, weights, &options, err) : NULL;
    cfx_graph_release(g);
    return p;
}

/* Also where both are NaN or the same infinity. */
static inline bool is_close(const cfx_tensor *a, const cfx_tensor *b)
{
    if (a->dtype != b->dtype || a->ndim != b->ndim ||
        memcmp(a->size, b->size, a->ndim * sizeof *a->size) != 0 ||
        memcmp(a->stride, b->stride, a->ndim * sizeof *a->stride) != 0)
        return false;
    if (cfxi_tensor_itemsize(a) == 1)
        return memcmp(cfx_tensor_data(a), cfx_tensor_data(b), (size_t)cfx_tensor_numel(a)) == 0;
    const float *x = cfx_tensor_data(a);
    const float *y = cfx_tensor_data(b);
    for (int64_t i = 0; i < cfx_tensor_numel(a); i++)
        if (x[i] != y[i] && !(isnan(x[i]) && isnan(y[i])) &&
            !(fabsf(x[i] - y[i]) <= 1e-4f * (1 + fabsf(x[i]))))
            return false;
    return true;
}

/* Steps of the plans of a program: lines that name a node. */
static inline size_t count_steps(const cfx_program *p)
{
    cfx_buffer text;
    size_t count = 0;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_program_print_plans(p, cfx_buffer_sink(&text), NULL));
    for (size_t i = 0; i + 2 < text.size; i++)
        count += memcmp(text.data + i, "  %", 3) == 0;
    cfx_buffer_free(&text);
    return count;
}

static inline bool is_same(cfx_datum want, cfx_datum got)
{
    size_t n;
    size_t m;
    const cfx_datum *wanted = cfx_datum_items(want, &n);
    const cfx_datum *have = cfx_datum_items(got, &m);
    if (want.kind != got.kind || n != m)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_same(wanted[i], have[i]))
            return false;
    if (want.kind == CFX_DATUM_INT)
        return want.as.i == got.as.i;
    return want.kind != CFX_DATUM_TENSOR || is_close(want.as.tensor, got.as.tensor);
}

/* Runs `text` three times on other numbers, interpreted and compiled, and compares. Returns how
 * many steps the plans have. */
static inline size_t check_plan(const char *text, const cfx_state *weights, const int64_t *sizes,
                                size_t ndim)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *plain = program_of(text, weights, NULL, &err);
    cfx_program *p = program_of(text, weights, NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    for (int run = 0; p && run < 3; run++) {
        const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, ndim, false));
        const cfx_datum same = cfx_operator_run(rt, CFX_OPID_clone, &x, 1, &err);
        const cfx_datum want = cfx_program_run(plain, rt, &x, 1, &err);
        const cfx_datum got = cfx_program_run(p, rt, &same, 1, &err);
        CHECK_STR_EQ("", err.message);
        CHECK(is_same(want, got));
        CHECK(is_same(x, same));  /* what the program has written to its input */
        cfx_datum_release(want);
        cfx_datum_release(got);
        cfx_datum_release(same);
        cfx_datum_release(x);
    }
    const size_t steps = count_steps(p);
    cfx_program_free(p);
    cfx_program_free(plain);
    cfx_runtime_free(rt);
    return steps;
}

#endif
