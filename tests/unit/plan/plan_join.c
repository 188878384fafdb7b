/* plan_join.c - what cat, stack and pad put together is written in place, where it can be. */
#include "plan/plan_impl.h"

#include "plan_fixture.h"
#include "test_alloc.h"

#include <stdarg.h>

#define CALL(name, op, ...) "  %" name " = call_function[target=cfx.ops." op "](" __VA_ARGS__ ")\n"
#define HEAD "graph():\n  %x = placeholder[target=x]()\n"
#define ONE HEAD CALL("a", "relu", "%x")
#define TWO ONE CALL("b", "exp", "%x")
#define END CALL("z", "neg", "%y") "  output(%z)\n"

typedef struct sample {
    const char *text;
    int steps;
} sample;

static void check_all(const sample *all, size_t n, const cfx_state *weights, const int64_t *sizes,
                      size_t ndim)
{
    for (size_t i = 0; i < n; i++) {
        const size_t steps = check_plan(all[i].text, weights, sizes, ndim);
        if ((int)steps != all[i].steps)
            printf("%s%zu steps\n", all[i].text, steps);
        CHECK_INT_EQ(all[i].steps, (int)steps);
    }
}
#define CHECK_ALL(all, weights, ...)                                                               \
    check_all(all, sizeof(all) / sizeof *(all), weights, (const int64_t[]){__VA_ARGS__},           \
              sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

TEST(functions_are_written_in_place)
{
    static const sample all[] = {
        {TWO CALL("y", "cat", "[%a, %b], 0") END, 3},
        {TWO CALL("y", "cat", "[%a, %b], 1") END, 3},
        {TWO CALL("y", "cat", "[%a, %b], -1") END, 3},
        {TWO CALL("y", "stack", "[%a, %b], 0") END, 3},
        {TWO CALL("y", "stack", "[%a, %b], 1") END, 3},
        {TWO CALL("y", "stack", "[%a, %b], 2") END, 3},
        {TWO CALL("y", "stack", "[%a, %b], 3") END, 4},  /* no element beside the next */
        {TWO CALL("y", "hstack", "[%a, %b]") END, 3},
        {TWO CALL("y", "cat", "[%a, %b], 1") "  output(%y)\n", 2},
        /* views of what moves */
        {TWO CALL("t", "transpose", "%a, 1, 2") CALL("s", "neg", "%t")
         CALL("y", "cat", "[%a, %b], 1") CALL("u", "transpose", "%s, 1, 2")
         CALL("z", "cat", "[%y, %u], 1") "  output(%z)\n", 3},
        {TWO CALL("v", "view", "%a, [2, 35, 1]") CALL("w", "view", "%b, [2, 35, 1]")
         CALL("y", "cat", "[%v, %w], 1") END, 3},
        {TWO CALL("v", "view", "%a, [10, 7]") CALL("s", "neg", "%v")
         CALL("y", "cat", "[%a, %b], 2") CALL("z", "neg", "%y") "  output((%z, %s))\n", 4},
    };
    CHECK_ALL(all, NULL, 2, 5, 7);
}

TEST(what_is_copied)
{
    static const sample all[] = {
        {ONE CALL("y", "cat", "[%a, %a], 1") END, 3},
        {ONE CALL("y", "cat", "[%a, %x], 1") END, 3},
        {TWO CALL("y", "cat", "[%a, %b], 1") CALL("z", "neg", "%y") "  output((%z, %a))\n", 4},
        {TWO CALL("y", "cat", "[%a, %b], 1") CALL("w", "cat", "[%b, %a], 1")
         CALL("z", "add", "%y, %w") "  output(%z)\n", 4},
        {ONE CALL("s", "softmax", "%x, -1") CALL("y", "cat", "[%s, %a], 2") END, 4},
        {ONE CALL("s", "softmax", "%x, -1") CALL("y", "cat", "[%s, %a], 0") END, 3},
        {TWO CALL("c", "chunk", "%a, 2, 1") CALL("p", "getitem", "%c, 0")
         CALL("y", "cat", "[%p, %b], 1") END, 4},
        {TWO CALL("y", "cat", "[%a, %b], 1") CALL("s", "softmax", "%a, -1")
         CALL("t", "sum", "%s") CALL("z", "add", "%y, %t") "  output(%z)\n", 6},
    };
    CHECK_ALL(all, NULL, 2, 5, 7);
}

TEST(lists_that_grow)
{
    static const sample all[] = {
        {TWO CALL("p", "cat", "[%a, %b], 1") CALL("c", "sin", "%p")
         CALL("q", "cat", "[%a, %b, %c], 1") CALL("d", "cos", "%q")
         CALL("y", "cat", "[%a, %b, %c, %d], 1") END, 5},
        {TWO CALL("p", "cat", "[%a, %b], 2") CALL("c", "sin", "%p")
         CALL("q", "cat", "[%p, %c], 2") CALL("d", "cos", "%q")
         CALL("y", "cat", "[%q, %d], 2") END, 5},
        {TWO CALL("p", "cat", "[%a, %b], 1") CALL("c", "sin", "%p")  /* p is returned */
         CALL("y", "cat", "[%a, %b, %c], 1") CALL("z", "neg", "%y") "  output((%z, %p))\n", 5},
        {TWO CALL("p", "cat", "[%a, %b], 1") CALL("c", "sin", "%p")  /* in another dimension */
         CALL("q", "cat", "[%a, %b], 2") CALL("d", "cos", "%q")
         "  output((%c, %d))\n", 5},
    };
    CHECK_ALL(all, NULL, 2, 5, 7);
}

TEST(pads)
{
    static const sample all[] = {
        {ONE CALL("y", "pad", "%a, [0, 0]") END, 2},
        {ONE CALL("y", "pad", "%a, [1, 2]") END, 3},
        {ONE CALL("y", "pad", "%a, [1, 2, 3, 0], \"constant\", 2.5") END, 3},
        {ONE CALL("y", "constant_pad_nd", "%a, [0, 0, 1, 1, 2, 0], 3") END, 3},
        {ONE CALL("y", "pad", "%a, [1, -2]") END, 3},
        {ONE CALL("y", "pad", "%a, [1, 2], \"reflect\"") END, 3},
        {TWO CALL("p", "pad", "%a, [0, 0, 1, 1]") CALL("q", "pad", "%b, [0, 0, 1, 1]")
         CALL("y", "cat", "[%p, %q], 2") END, 5},
    };
    CHECK_ALL(all, NULL, 2, 5, 7);
}

#define WEIGHTS                                                                                    \
    "graph():\n"                                                                                   \
    "  %x = placeholder[target=x]()\n"                                                             \
    "  %w1 = get_attr[target=w1]()\n"                                                              \
    "  %w3 = get_attr[target=w3]()\n"                                                              \
    "  %v = get_attr[target=v]()\n"                                                                \
    "  %g = get_attr[target=g]()\n"                                                                \
    "  %var = get_attr[target=var]()\n"                                                            \
    CALL("i", "conv2d", "%x, %w1") CALL("a", "relu", "%i")
#define NORM(name, of) CALL(name, "batch_norm", "%" of ", %g, %g, %g, %var, False")

/* Channels side by side: rows of the result are longer than those of its parts. */
TEST(images)
{
    static const sample all[] = {
        /* the image turned, three convolutions, the last turned back */
        {WEIGHTS CALL("c", "conv2d", "%a, %w3, None, [1, 1], [1, 1]") NORM("n", "c")
         CALL("r", "silu", "%n") CALL("d", "conv2d", "%a, %w1") CALL("s", "add", "%d, %a")
         CALL("e", "relu", "%s") CALL("y", "cat", "[%r, %e], 1")
         CALL("z", "conv2d", "%y, %v") "  output(%z)\n", 6},
        /* a dense block: norms of parts of a memory */
        {WEIGHTS NORM("n1", "a") CALL("r1", "relu", "%n1") CALL("c1", "conv2d", "%r1, %w1")
         CALL("y", "cat", "[%a, %c1], 1") CALL("m", "conv2d", "%y, %v")
         NORM("n2", "m") CALL("r2", "relu", "%n2") CALL("c2", "conv2d", "%r2, %w1")
         CALL("z", "cat", "[%a, %c1, %c2], 1") CALL("t", "max_pool2d", "%z, [2, 2]")
         "  output(%t)\n", 7},
        /* pools, other sizes and norms of parts and into parts */
        {WEIGHTS CALL("p", "max_pool2d", "%a, [3, 3], [1, 1], [1, 1]")
         CALL("q", "avg_pool2d", "%a, [3, 3], [1, 1], [1, 1]") NORM("n", "p")
         CALL("u", "interpolate", "%q, [7, 6], None, \"nearest\"")
         CALL("t", "conv_transpose2d", "%p, %w1")
         CALL("y", "cat", "[%p, %q, %n, %u, %t, %a], 1")
         CALL("z", "max_pool2d", "%y, [2, 2]") "  output(%z)\n", 9},
        {WEIGHTS CALL("p", "pad", "%a, [1, 0, 2, 1]") CALL("c", "conv2d", "%p, %w1")
         CALL("y", "cat", "[%c, %p], 1") CALL("z", "conv2d", "%y, %v") "  output(%z)\n", 6},
    };
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w1", 8, 8, 1, 1);
    WEIGHT(weights, "w3", 8, 8, 3, 3);
    WEIGHT(weights, "v", 8, 16, 1, 1);
    WEIGHT(weights, "g", 8);
    WEIGHT(weights, "var", 8);
    CHECK_ALL(all, weights, 2, 8, 7, 6);
    CHECK_ALL(all, weights, 1, 8, 7, 6);
    cfx_state_free(weights);
}

/* Rows of matrices with gaps between them. */
TEST(products)
{
    static const sample all[] = {
        {HEAD "  %w = get_attr[target=w]()\n  %v = get_attr[target=v]()\n"
         CALL("c", "chunk", "%x, 2, 2") CALL("p", "getitem", "%c, 0") CALL("q", "getitem", "%c, 1")
         CALL("a", "linear", "%p, %w") CALL("b", "linear", "%q, %w") CALL("r", "gelu", "%b")
         CALL("s", "add", "%a, %p") CALL("y", "cat", "[%s, %r], 2")
         CALL("z", "linear", "%y, %v") "  output(%z)\n", 3},
    };
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 20, 20);
    WEIGHT(weights, "v", 9, 40);
    CHECK_ALL(all, weights, 2, 5, 40);
    cfx_state_free(weights);
}

/* %a would be written into %y, the largest of all, long before the rest of it; and meanwhile two
 * others of that size are needed. */
TEST(joins_do_not_need_more_memory)
{
    static const sample all[] = {
        {ONE CALL("r", "repeat", "%x, [16, 1]") CALL("s", "cumsum", "%r, 0")
         CALL("f", "flip", "%s, [0]") CALL("t", "sum", "%f, 0, True")
         CALL("b", "repeat", "%t, [16, 1]") CALL("y", "cat", "[%a, %b], 0")
         CALL("z", "cumsum", "%y, 0") "  output(%z)\n", 8},
        {ONE CALL("b", "repeat", "%x, [16, 1]") CALL("y", "cat", "[%a, %b], 0")
         CALL("z", "cumsum", "%y, 0") "  output(%z)\n", 3},
    };
    CHECK_ALL(all, NULL, 1, 1000);
}

/* ---- random programs ----------------------------------------------------------------------- */

enum { PROGRAMS = 400, VALUES = 24 };

typedef struct value {
    int64_t size[4];
} value;

typedef struct writer {
    uint32_t state;
    char text[8192];
    size_t length;
    value values[VALUES];
    int n;
} writer;

static int draw(writer *w, int below)
{
    w->state = w->state * 1664525u + 1013904223u;
    return (int)((w->state >> 8) % (uint32_t)below);
}

static void put(writer *w, value v, const char *format, ...)
{
    va_list args;
    w->length += (size_t)snprintf(w->text + w->length, sizeof w->text - w->length,
                                  "  %%v%d = call_function[target=cfx.ops.", w->n);
    va_start(args, format);
    w->length += (size_t)vsnprintf(w->text + w->length, sizeof w->text - w->length, format, args);
    va_end(args);
    w->length += (size_t)snprintf(w->text + w->length, sizeof w->text - w->length, ")\n");
    w->values[w->n++] = v;
}

/* A cat of values that agree but for one dimension. */
static void put_cat(writer *w, int first)
{
    const int dim = draw(w, 4);
    value v = w->values[first];
    char items[200];
    int at = snprintf(items, sizeof items, "%%v%d", first);
    for (int i = 0, more = 1 + draw(w, 3); i < w->n && more > 0; i++) {
        bool fits = true;
        for (int d = 0; d < 4; d++)
            fits = fits && (d == dim || w->values[i].size[d] == v.size[d]);
        if (!fits || draw(w, 2) || v.size[dim] + w->values[i].size[dim] > 30)
            continue;
        at += snprintf(items + at, sizeof items - (size_t)at, ", %%v%d", i);
        v.size[dim] += w->values[i].size[dim];
        more--;
    }
    put(w, v, "cat]([%s], %d", items, dim);
}

static void put_any(writer *w)
{
    static const char *const functions[] = {"relu", "neg", "abs", "sin"};
    const int x = w->n - 1 - draw(w, w->n < 6 ? w->n : 6);
    const int dim = draw(w, 4);
    value v = w->values[x];
    switch (draw(w, 8)) {
    case 0: case 1:
        put(w, v, "%s](%%v%d", functions[draw(w, 4)], x);
        break;
    case 2: case 3:
        put_cat(w, x);
        break;
    case 4:
        v.size[3] += 1;
        v.size[2] += dim;
        put(w, v, "pad](%%v%d, [%d, %d, %d, 0], \"constant\", 0.5", x, dim % 2, 1 - dim % 2, dim);
        break;
    case 5:
        v.size[dim] = 1 + draw(w, (int)v.size[dim]);
        put(w, v, "narrow](%%v%d, %d, %d, %d", x, dim,
            draw(w, (int)(w->values[x].size[dim] - v.size[dim]) + 1), (int)v.size[dim]);
        break;
    case 6:
        put(w, v, "max_pool2d](%%v%d, [3, 3], [1, 1], [1, 1]", x);
        break;
    default:
        v.size[2] = w->values[x].size[3];
        v.size[3] = w->values[x].size[2];
        put(w, v, "transpose](%%v%d, 2, 3", x);
    }
}

TEST(random_joins)
{
    static const int64_t sizes[] = {2, 4, 3, 5};
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) {
        writer w = {.state = seed * 2654435761u};
        w.length = (size_t)snprintf(w.text, sizeof w.text,
                                    "graph():\n  %%v0 = placeholder[target=x]()\n"
                                    "  %%w = get_attr[target=w]()\n");
        memcpy(w.values[0].size, sizes, sizeof sizes);
        w.n = 1;
        if (seed % 2)  /* channels side by side from here on */
            put(&w, w.values[0], "conv2d](%%v0, %%w");
        while (w.n < VALUES)
            put_any(&w);
        snprintf(w.text + w.length, sizeof w.text - w.length, "  output((%%v%d, %%v%d))\n",
                 w.n - 1, draw(&w, w.n));
        cfx_state *weights = cfx_state_new(NULL, NULL);
        WEIGHT(weights, "w", 4, 4, 1, 1);
        const int before = check_failures;
        check_plan(w.text, weights, sizes, 4);
        if (check_failures != before)
            printf("seed %u\n%s", seed, w.text);
        cfx_state_free(weights);
    }
}

static cfx_status run_some(const cfx_allocator *a, void *arg)
{
    static const char text[] =
        TWO CALL("p", "cat", "[%a, %b], 1") CALL("c", "sin", "%p")
        CALL("y", "cat", "[%a, %b, %c], 1") END;
    static const int64_t sizes[] = {2, 5, 7};
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = rt ? program_of(text, NULL, a, &err) : NULL;
    (void)arg;
    if (p && cfx_program_compile(p, NULL, &err) == CFX_OK) {
        const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 3, false));
        cfx_datum_release(cfx_program_run(p, rt, &x, 1, &err));
        cfx_datum_release(x);
    }
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    CHECK(test_oom_sweep(run_some, NULL) > 20);
}
