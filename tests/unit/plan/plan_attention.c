/* plan_attention.c - attention that a program has written out: how it is spelled, masks, what stays
 * as it is. Each program is compared with the interpreter. */
#include "plan/plan_impl.h"

#include "plan_fixture.h"
#include "test_alloc.h"

#define CALL(name, op, ...) "  %" name " = call_function[target=cfx.ops." op "](" __VA_ARGS__ ")\n"

enum { QUERIES = 7, HEADS = 3, WIDTH = 8 };

/* Three products of x [2, 7, 24], and heads: [2, 3, 7, 8]. */
#define HEAD                                                                                       \
    "graph():\n"                                                                                   \
    "  %x = placeholder[target=x]()\n"                                                             \
    "  %wq = get_attr[target=wq]()\n"                                                              \
    "  %wk = get_attr[target=wk]()\n"                                                              \
    "  %wv = get_attr[target=wv]()\n"                                                              \
    "  %tril = get_attr[target=tril]()\n"                                                          \
    "  %above = get_attr[target=above]()\n"                                                        \
    "  %some = get_attr[target=some]()\n"                                                          \
    "  %none = get_attr[target=none]()\n"                                                          \
    "  %added = get_attr[target=added]()\n"                                                        \
    CALL("lq", "linear", "%x, %wq")                                                                \
    CALL("lk", "linear", "%x, %wk")                                                                \
    CALL("lv", "linear", "%x, %wv")                                                                \
    CALL("vq", "view", "%lq, [2, -1, 3, 8]")                                                       \
    CALL("vk", "view", "%lk, [2, -1, 3, 8]")                                                       \
    CALL("vv", "view", "%lv, [2, -1, 3, 8]")                                                       \
    CALL("q", "transpose", "%vq, 1, 2")                                                            \
    CALL("k", "transpose", "%vk, 1, 2")                                                            \
    CALL("v", "transpose", "%vv, 1, 2")
#define SCORES CALL("kt", "transpose", "%k, -1, -2") CALL("s", "matmul", "%q, %kt")
#define VALUES CALL("o", "matmul", "%w, %v")
/* Heads side by side: a copy, which attention makes. */
#define TAIL                                                                                       \
    CALL("ot", "transpose", "%o, 1, 2")                                                            \
    CALL("y", "reshape", "%ot, [2, -1, 24]")                                                       \
    CALL("z", "relu", "%y")                                                                        \
    "  output(%z)\n"

static cfx_tensor *bools(size_t ndim, const int64_t *sizes, bool (*fn)(int64_t row, int64_t column))
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_BOOL, sizes, ndim, NULL, NULL);
    const int64_t n = cfx_tensor_numel(t);
    for (int64_t i = 0; i < n; i++)
        ((bool *)cfx_tensor_data(t))[i] = fn(i / QUERIES % QUERIES, i % QUERIES);
    return t;
}

static bool is_below(int64_t row, int64_t column) { return column <= row; }
static bool is_above(int64_t row, int64_t column) { return column > row; }
static bool is_some(int64_t row, int64_t column) { return (row + column) % 3 != 0; }
static bool is_not_of_row_2(int64_t row, int64_t column) { return row != 2 && column != 1; }

static void put(cfx_state *s, const char *name, cfx_tensor *t)
{
    cfx_state_set(s, name, t, NULL);
    cfx_tensor_release(t);
}

static cfx_state *new_weights(void)
{
    static const int64_t sizes[] = {1, 1, QUERIES, QUERIES};
    cfx_state *s = cfx_state_new(NULL, NULL);
    WEIGHT(s, "wq", 24, 24);
    WEIGHT(s, "wk", 24, 24);
    WEIGHT(s, "wv", 24, 24);
    WEIGHT(s, "added", 3, QUERIES, QUERIES);
    put(s, "tril", bools(4, sizes, is_below));
    put(s, "above", bools(2, sizes + 2, is_above));
    put(s, "some", bools(4, sizes, is_some));
    put(s, "none", bools(4, sizes, is_not_of_row_2));
    return s;
}

static size_t steps_of(const char *text)
{
    static const int64_t sizes[] = {2, QUERIES, HEADS * WIDTH};
    cfx_state *weights = new_weights();
    const size_t steps = check_plan(text, weights, sizes, 3);
    cfx_state_free(weights);
    return steps;
}

/* Three products, attention, and the function that follows. */
TEST(spellings)
{
    static const char *const all[] = {
        HEAD SCORES CALL("w", "softmax", "%s, -1") VALUES TAIL,
        HEAD SCORES CALL("d", "div", "%s, 2.5") CALL("w", "softmax", "%d, 3") VALUES TAIL,
        HEAD SCORES CALL("d", "mul", "0.3, %s") CALL("e", "mul", "%d, 0.5")
            CALL("w", "softmax", "%e, -1, torch.float32") VALUES TAIL,
        HEAD SCORES CALL("d", "div", "%s, 2.5") CALL("m", "add", "%d, %added")
            CALL("w", "softmax", "%m, -1") VALUES TAIL,
        HEAD SCORES CALL("m", "add", "%added, %s") CALL("w", "softmax", "%m, -1") VALUES TAIL,
        HEAD SCORES CALL("m", "where", "%tril, %s, -3.4028234663852886e+38")
            CALL("w", "softmax", "%m, -1") VALUES TAIL,
        HEAD SCORES CALL("d", "mul", "%s, 0.2") CALL("m", "masked_fill", "%d, %above, -inf")
            CALL("w", "softmax", "%m, -1") CALL("p", "dropout", "%w, 0.1, False")
            CALL("o", "matmul", "%p, %v") TAIL,
        HEAD SCORES CALL("m", "where", "%some, %s, -1e32") CALL("w", "softmax", "%m, -1")
            VALUES TAIL,
        HEAD CALL("kt", "permute", "%vk, [0, 2, 3, 1]") CALL("s", "matmul", "%q, %kt")
            CALL("w", "softmax", "%s, -1") VALUES TAIL,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t steps = steps_of(all[i]);
        if (steps != 5)
            printf("%s%zu steps\n", all[i], steps);
        CHECK_INT_EQ(5, (int)steps);
    }
}

/* Heads and batch in one dimension. */
TEST(batches_of_matrices)
{
    CHECK_INT_EQ(4, (int)steps_of(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %wq = get_attr[target=wq]()\n"
        CALL("q", "linear", "%x, %wq")
        CALL("a", "add", "%q, 1.5")
        CALL("k", "linear", "%x, %wq")
        CALL("v", "relu", "%k")
        CALL("t", "transpose", "%q, 1, 2")
        CALL("s", "bmm", "%a, %t")
        CALL("w", "softmax", "%s, 2")
        CALL("o", "bmm", "%w, %v")
        "  output(%o)\n"));
}

/* A mask that is computed in each run, and one of which a query sees nothing: softmax gives NaN. */
TEST(masks_that_are_computed)
{
#define COMPUTED CALL("f", "select", "%x, 2, 0") CALL("g", "gt", "%f, 0.2")                        \
    CALL("u", "unsqueeze", "%g, 1") CALL("mask", "unsqueeze", "%u, 1")
    CHECK_INT_EQ(8, (int)steps_of(
        HEAD COMPUTED CALL("t", "to", "%mask, torch.float32") CALL("n", "mul", "%t, -3e38") SCORES
        CALL("m", "add", "%s, %n") CALL("w", "softmax", "%m, -1") VALUES TAIL));
    CHECK_INT_EQ(6, (int)steps_of(
        HEAD COMPUTED SCORES CALL("m", "where", "%mask, %s, -inf") CALL("w", "softmax", "%m, -1")
        VALUES TAIL));
    CHECK_INT_EQ(6, (int)steps_of(
        HEAD CALL("f", "select", "%x, 2, 0") CALL("g", "gt", "%f, 9.0")
        CALL("u", "unsqueeze", "%g, 1") CALL("mask", "unsqueeze", "%u, 1") SCORES
        CALL("m", "where", "%mask, %s, -inf") CALL("w", "softmax", "%m, -1") VALUES TAIL));
}

/* What is another function, or is read by others. */
TEST(what_stays)
{
    static const char *const all[] = {
        /* the weights are a result, too */
        HEAD SCORES CALL("w", "softmax", "%s, -1") VALUES "  output((%w, %o))\n",
        HEAD SCORES CALL("w", "softmax", "%s, -1") VALUES CALL("n", "add", "%s, 1.0")
            "  output((%n, %o))\n",
        /* the mask is scaled, too */
        HEAD SCORES CALL("m", "add", "%s, %added") CALL("d", "mul", "%m, 0.5")
            CALL("w", "softmax", "%d, -1") VALUES TAIL,
        /* hidden scores count where nothing is seen, or where the number is not low */
        HEAD SCORES CALL("m", "where", "%none, %s, -1e38") CALL("w", "softmax", "%m, -1") VALUES
            TAIL,
        HEAD SCORES CALL("m", "where", "%tril, %s, -10.0") CALL("w", "softmax", "%m, -1") VALUES
            TAIL,
        HEAD COMPUTED SCORES CALL("m", "where", "%mask, %s, -1e38") CALL("w", "softmax", "%m, -1")
            VALUES TAIL,
        /* over queries */
        HEAD SCORES CALL("w", "softmax", "%s, 2") VALUES TAIL,
        HEAD SCORES CALL("m", "add", "%s, %added, 2") CALL("w", "softmax", "%m, -1") VALUES
            TAIL,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(steps_of(all[i]) > 5);
}

/* ---- memory -------------------------------------------------------------------------------- */

typedef struct sweep {
    cfx_state *weights;
    cfx_datum x;
} sweep;

static cfx_status compile_and_run(const cfx_allocator *a, void *arg)
{
    static const char text[] = HEAD SCORES CALL("m", "where", "%some, %s, -1e32")
        CALL("w", "softmax", "%m, -1") VALUES TAIL;
    const sweep *w = arg;
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = rt ? program_of(text, w->weights, a, &err) : NULL;
    if (p && cfx_program_compile(p, NULL, &err) == CFX_OK)
        cfx_datum_release(cfx_program_run(p, rt, &w->x, 1, &err));
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    static const int64_t sizes[] = {2, QUERIES, HEADS * WIDTH};
    sweep w = {new_weights(), cfx_datum_tensor(random_tensor(sizes, 3, false))};
    CHECK(test_oom_sweep(compile_and_run, &w) > 20);
    cfx_datum_release(w.x);
    cfx_state_free(w.weights);
}
