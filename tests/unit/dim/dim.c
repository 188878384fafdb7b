/* dim.c - sizes that are expressions: normal form, proofs, assumptions, text; random ones against
 * plain arithmetic. */
#include <cfx/dim.h>

#include "check.h"
#include "test_alloc.h"
#include "dim/dim_impl.h"

static const char *printed(const cfx_dims *dims, int64_t d)
{
    static char text[4][4096];
    static int turn;
    char *out = text[turn++ % 4];
    cfx_buffer b;
    cfx_buffer_init(&b, NULL);
    cfx_dims_print(dims, d, cfx_buffer_sink(&b), NULL);
    snprintf(out, sizeof text[0], "%s", b.data);
    cfx_buffer_free(&b);
    return out;
}

static int64_t parsed(cfx_dims *dims, const char *text)
{
    cfx_error err = {0};
    int64_t d = cfx_dims_parse(dims, text, strlen(text), &err);
    if (err.status != CFX_OK)
        printf("%s: %s\n", text, err.message);
    return d;
}

TEST(one_form)
{
    static const char *const cases[][2] = {
        {"N", "N"},
        {"N + 1 - 1", "N"},
        {"N - N", "0"},
        {"2*N + 3*N", "5*N"},
        {"(N + 1)*(N - 1)", "N**2 - 1"},
        {"M*N", "N*M"},
        {"(4*N)//2", "2*N"},
        {"N//1", "N"},
        {"(2*N*M)//(2*M)", "N"},
        {"(N*M)//M", "N"},
        {"(N + 4)//2", "N//2 + 2"},
        {"(N*M + 3)//M", "N + 3//M"},
        {"(N - 1)//2 + 1", "(N + 1)//2"},
        {"(N//2)//3", "N//6"},
        {"((N - 1)//2 + 1 - 1)//2 + 1", "(N + 3)//4"},
        {"(6*N + 4)//4", "N + N//2 + 1"},
        {"(N*M + N)//(M + 1)", "N"},
        {"(N**2 - 1)//(N + 1)", "N - 1"},
        {"(N - 1)//N", "0"},
        {"(N - 1)%N", "N - 1"},
        {"(N*M + 1)%M", "1"},
        {"(4*N)%2", "0"},
        {"(N + 6)%4", "(N + 2)%4"},
        {"(N%8)%4", "N%4"},
        {"(2*N + 1)%4", "2*(N%2) + 1"},
        {"(-7)//2", "-4"},
        {"(-7)%4", "1"},
        {"-N//2", "N//2 - N"},
        {"N//(-2)", "N//2 - N"},
        {"0 - N//2", "-(N//2)"},
        {"3 - N", "3 - N"},
        {"max(N, 1)", "N"},
        {"min(N, 1)", "1"},
        {"max(N, 5)", "max(N, 5)"},
        {"max(5, N)", "max(N, 5)"},
        {"max(N, M + N)", "N + M"},
        {"2*(N//2)", "2*(N//2)"},
        {"N//2*M", "M*(N//2)"},
        {"N//(M + 1)", "N//(M + 1)"},
        {"N%(2*M)", "N%(2*M)"},
    };
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    parsed(dims, "N");
    parsed(dims, "M");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t d = parsed(dims, cases[i][0]);
        CHECK_STR_EQ(cases[i][1], printed(dims, d));
        CHECK(parsed(dims, cases[i][1]) == d);
    }
    cfx_dims_free(dims);
}

TEST(numbers_need_no_set)
{
    cfx_error err = {0};
    CHECK_INT_EQ(-1, cfx_dim_sub(NULL, 2, 3, &err));
    CHECK_INT_EQ(0, cfx_dim_add(NULL, -1, 1, &err));
    CHECK_INT_EQ(-4, cfx_dim_div(NULL, -7, 2, &err));
    CHECK_INT_EQ(-1, cfx_dim_mod(NULL, 7, -2, &err));
    CHECK_INT_EQ(7, cfx_dim_max(NULL, 7, -2, &err));
    CHECK_INT_EQ(-2, cfx_dim_min(NULL, 7, -2, &err));
    CHECK(cfx_dim_mul(NULL, 3, CFX_DIM_UNKNOWN, &err) == CFX_DIM_UNKNOWN);
    CHECK_INT_EQ(CFX_OK, err.status);
    CHECK(cfx_dim_mul(NULL, INT64_MAX, 2, &err) == CFX_DIM_UNKNOWN);
    CHECK_INT_EQ(CFX_E_SHAPE, err.status);
    CHECK(cfx_dim_div(NULL, 1, 0, &err) == CFX_DIM_UNKNOWN);
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    CHECK_INT_EQ(1, cfx_dim_compare_lt(NULL, 1, 2));
    CHECK_INT_EQ(0, cfx_dim_compare_eq(NULL, 1, 2));
    CHECK_INT_EQ(-1, cfx_dim_compare_eq(NULL, 1, CFX_DIM_UNKNOWN));
    CHECK(cfx_dim_expect_eq(NULL, 1, CFX_DIM_UNKNOWN));
    CHECK(!cfx_dim_expect_le(NULL, 2, 1));
}

TEST(comparisons)
{
    static const struct { const char *a, *b; int eq, lt; } cases[] = {
        {"N", "N", 1, 0},
        {"N", "N + 1", 0, 1},
        {"N", "1", 0, 0},
        {"N", "2", -1, 0},
        {"1", "N", 0, 1},
        {"N", "M", -1, -1},
        {"N", "2*N", 0, 1},
        {"N", "N*M", 0, 1},
        {"N + M", "N*M + 1", 0, 1},
        {"2*N", "2*M + 1", 0, -1},
        {"(N + 1)//2", "N", 0, 1},
        {"N//2", "N", 0, 1},
        {"2*(N//2)", "N + 1", 0, 1},
        {"N%4", "4", 0, 1},
        {"max(N, M)", "N - 1", 0, 0},
        {"min(N, M)", "N + 1", 0, 1},
        {"N//M", "N + 1", 0, 1},
    };
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t a = parsed(dims, cases[i].a);
        int64_t b = parsed(dims, cases[i].b);
        bool right = CHECK_INT_EQ(cases[i].eq, cfx_dim_compare_eq(dims, a, b));
        right = CHECK_INT_EQ(cases[i].lt, cfx_dim_compare_lt(dims, a, b)) && right;
        if (!right)
            printf("    %s and %s\n", cases[i].a, cases[i].b);
    }
    cfx_dims_free(dims);
}

TEST(assumptions_are_used_and_written_down)
{
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    int64_t n = parsed(dims, "N");
    int64_t m = parsed(dims, "M");
    int64_t k = parsed(dims, "K");
    int64_t u = cfxi_dim_fresh(dims, NULL);
    CHECK(cfx_dim_expect_eq(dims, n, m));
    CHECK_INT_EQ(1, cfx_dim_compare_eq(dims, m, n));
    CHECK_STR_EQ("2*N", printed(dims, cfx_dim_add(dims, n, m, NULL)));
    CHECK(cfx_dim_expect_eq(dims, n, u));
    CHECK_STR_EQ("N + 1", printed(dims, cfx_dim_add(dims, u, 1, NULL)));
    CHECK(cfx_dim_expect_eq(dims, parsed(dims, "2*N"), parsed(dims, "2*K - 4")));
    CHECK_INT_EQ(1, cfx_dim_compare_eq(dims, k, parsed(dims, "M + 2")));
    CHECK(!cfx_dim_expect_eq(dims, k, m));
    CHECK(cfx_dim_expect_le(dims, n, 512));
    CHECK_INT_EQ(1, cfx_dim_compare_lt(dims, k, 515));
    CHECK(!cfx_dim_expect_le(dims, 600, n));
    CHECK(!cfx_dim_expect_eq(dims, n, 1));
    cfx_buffer b;
    size_t count;
    cfx_buffer_init(&b, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_dims_print_assumptions(dims, cfx_buffer_sink(&b), &count, NULL));
    CHECK_INT_EQ(4, count);
    CHECK_STR_EQ("N == M\nN == u0\n2*N == 2*K - 4\nN <= 512\n", b.data);
    cfx_buffer_free(&b);
    cfx_dims_free(dims);
}

TEST(what_cannot_be_solved_is_remembered)
{
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    int64_t a = parsed(dims, "N*M");
    int64_t b = parsed(dims, "K*K");
    CHECK_INT_EQ(-1, cfx_dim_compare_eq(dims, a, b));
    CHECK(cfx_dim_expect_eq(dims, a, b));
    CHECK_INT_EQ(1, cfx_dim_compare_eq(dims, b, a));
    CHECK(cfx_dim_expect_eq(dims, parsed(dims, "N//2"), 3));
    CHECK_INT_EQ(0, cfx_dim_compare_eq(dims, parsed(dims, "N"), 8));
    CHECK_INT_EQ(1, cfx_dim_compare_lt(dims, 5, parsed(dims, "N")));
    CHECK_STR_EQ("3", printed(dims, cfx_dim_div(dims, parsed(dims, "N"), 2, NULL)));
    CHECK(cfx_dim_expect_le(dims, parsed(dims, "A + B"), parsed(dims, "C")));
    CHECK_INT_EQ(1, cfx_dim_compare_lt(dims, parsed(dims, "A"), parsed(dims, "C")));
    cfx_dims_free(dims);
}

/* What is assumed on one way does not hold on another. */
TEST(assumptions_are_taken_back)
{
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    const int64_t n = parsed(dims, "N");
    const int64_t m = parsed(dims, "M");
    cfx_dim_expect_le(dims, n, 10);
    const cfxi_dim_state before = cfxi_dim_mark(dims);
    CHECK(cfx_dim_expect_eq(dims, n, m));
    CHECK(cfx_dim_expect_eq(dims, n, 3));
    CHECK(cfx_dim_expect_eq(dims, parsed(dims, "K%4"), 0));
    CHECK(cfx_dim_expect_le(dims, parsed(dims, "A*B"), parsed(dims, "C")));
    CHECK_INT_EQ(3, cfxi_dim_resolve(dims, m, &err));
    CHECK_STR_EQ("K", printed(dims, cfx_dim_mul(dims, parsed(dims, "K//4"), 4, &err)));
    cfxi_dim_undo(dims, before);
    CHECK_INT_EQ(-1, cfx_dim_compare_eq(dims, n, m));
    CHECK_INT_EQ(-1, cfx_dim_compare_eq(dims, n, 3));
    CHECK_INT_EQ(0, cfx_dim_compare_eq(dims, n, 11));  /* from before the mark */
    CHECK_INT_EQ(-1, cfx_dim_compare_eq(dims, parsed(dims, "4*(K//4)"), parsed(dims, "K")));
    CHECK(cfx_dim_expect_eq(dims, n, 4));
    CHECK_INT_EQ(4, cfxi_dim_resolve(dims, n, &err));
    CHECK(err.status == CFX_OK);
    cfx_dims_free(dims);
}

TEST(divisions_that_leave_nothing)
{
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    cfx_error err = {0};
    int64_t c = parsed(dims, "C");
    CHECK(cfx_dim_expect_eq(dims, parsed(dims, "B*T*C"), parsed(dims, "4*B*T*(C//4)")));
    int64_t quarter = cfx_dim_div(dims, c, 4, &err);
    CHECK_STR_EQ("C//4", printed(dims, quarter));
    CHECK_STR_EQ("C", printed(dims, cfx_dim_mul(dims, quarter, 4, &err)));
    CHECK_INT_EQ(0, cfx_dim_mod(dims, c, 4, &err));
    CHECK(cfx_dim_expect_eq(dims, parsed(dims, "(D + 1)%3"), 0));
    CHECK_STR_EQ("2*D + 2", printed(dims, parsed(dims, "6*((D + 1)//3)")));
    cfx_buffer b;
    cfx_buffer_init(&b, NULL);
    cfx_dims_print_assumptions(dims, cfx_buffer_sink(&b), NULL, NULL);
    CHECK_STR_EQ("C%4 == 0\n(D + 1)%3 == 0\n", b.data);
    cfx_buffer_free(&b);
    cfx_dims_free(dims);
}

TEST(texts_that_are_no_sizes)
{
    static const char *const texts[] = {"", "N +", "(N", "N)", "N 2", "max(N", "max N", "2**N",
                                        "N/2", "99999999999999999999", "N//0", "\xff", "N**17"};
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cfx_error err = {0};
        CHECK(cfx_dims_parse(dims, texts[i], strlen(texts[i]), &err) == CFX_DIM_UNKNOWN);
        CHECK(err.status == CFX_E_SYNTAX || err.status == CFX_E_VALUE);
    }
    char deep[4000];
    memset(deep, '(', sizeof deep);
    cfx_error err = {0};
    CHECK(cfx_dims_parse(dims, deep, sizeof deep, &err) == CFX_DIM_UNKNOWN);
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    cfx_dims_free(dims);
}

TEST(growth_has_a_limit)
{
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    cfx_error err = {0};
    int64_t d = parsed(dims, "N");
    int64_t m = parsed(dims, "M");
    for (int i = 0; i < 1000 && err.status == CFX_OK; i++)
        d = cfx_dim_div(dims, cfx_dim_mul(dims, d, d, &err), m, &err);
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    err.status = CFX_OK;
    d = parsed(dims, "N");
    for (int i = 0; i < 10000 && err.status == CFX_OK; i++)
        d = cfx_dim_max(dims, cfx_dim_mod(dims, d, m, &err), i, &err);
    cfx_dims_free(dims);
}

/* ---- random expressions against plain arithmetic ------------------------------------------- */

enum { SYMBOLS = 4, WORLDS = 24, POOL = 40 };

static const char *const names[SYMBOLS] = {"N", "M", "K", "u0"};
static const int64_t least[SYMBOLS] = {2, 2, 1, 0};

typedef struct world {
    int64_t symbols[SYMBOLS];
    bool dead;  /* an assumption does not hold in it */
} world;

typedef struct sample {
    int64_t dim;
    int64_t values[WORLDS];
    bool defined[WORLDS];
} sample;

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static int64_t value_of(void *ctx, const char *name)
{
    const world *w = ctx;
    for (size_t i = 0; i < SYMBOLS; i++)
        if (strcmp(names[i], name) == 0)
            return w->symbols[i];
    return CFX_DIM_UNKNOWN;
}

typedef int64_t dim_fn(cfx_dims *dims, int64_t a, int64_t b, cfx_error *err);
static dim_fn *const functions[] = {cfx_dim_add, cfx_dim_sub, cfx_dim_mul, cfx_dim_div,
                                    cfx_dim_mod, cfx_dim_max, cfx_dim_min};

static void combine(cfx_dims *dims, sample *out, const sample *a, const sample *b, dim_fn *fn)
{
    cfx_error err = {0};
    sample s = {.dim = fn(dims, a->dim, b->dim, &err)};
    if (err.status != CFX_OK)
        return;
    for (size_t w = 0; w < WORLDS; w++) {
        cfx_error plain = {0};
        s.defined[w] = a->defined[w] && b->defined[w];
        if (!s.defined[w])
            continue;
        s.values[w] = fn(NULL, a->values[w], b->values[w], &plain);
        s.defined[w] = plain.status == CFX_OK && llabs(s.values[w]) < 1000000000;
    }
    *out = s;
}

static void check_sample(cfx_dims *dims, const sample *s, const world *worlds)
{
    for (size_t w = 0; w < WORLDS; w++) {
        int64_t got = 0;
        cfx_error err = {0};
        if (!s->defined[w] || worlds[w].dead)
            continue;
        cfx_status status = cfxi_dim_eval(dims, s->dim, value_of, (void *)&worlds[w], &got, &err);
        if (!CHECK_INT_EQ(CFX_OK, status) || !CHECK_INT_EQ(s->values[w], got))
            printf("    %s with N=%lld M=%lld K=%lld u0=%lld\n", printed(dims, s->dim),
                   (long long)worlds[w].symbols[0], (long long)worlds[w].symbols[1],
                   (long long)worlds[w].symbols[2], (long long)worlds[w].symbols[3]);
    }
}

static void check_comparison(cfx_dims *dims, const sample *a, const sample *b, const world *worlds)
{
    int eq = cfx_dim_compare_eq(dims, a->dim, b->dim);
    int lt = cfx_dim_compare_lt(dims, a->dim, b->dim);
    for (size_t w = 0; w < WORLDS; w++) {
        if (!a->defined[w] || !b->defined[w] || worlds[w].dead)
            continue;
        bool wrong = (eq >= 0 && eq != (a->values[w] == b->values[w])) ||
                     (lt >= 0 && lt != (a->values[w] < b->values[w]));
        if (!CHECK(!wrong))
            printf("    %s (%lld) and %s (%lld): eq %d lt %d\n", printed(dims, a->dim),
                   (long long)a->values[w], printed(dims, b->dim), (long long)b->values[w], eq, lt);
    }
}

/* Assumes something that is true in some of the worlds; the others no longer count. */
static void assume_something(cfx_dims *dims, const sample *pool, world *worlds)
{
    const sample *a = &pool[draw(POOL)];
    const sample *b = &pool[draw(POOL)];
    bool equal = draw(2);
    int holds = 0;
    for (size_t w = 0; w < WORLDS; w++)
        holds += !worlds[w].dead && a->defined[w] && b->defined[w] &&
                 (equal ? a->values[w] == b->values[w] : a->values[w] <= b->values[w]);
    if (holds == 0)
        return;
    CHECK(equal ? cfx_dim_expect_eq(dims, a->dim, b->dim)
                : cfx_dim_expect_le(dims, a->dim, b->dim));
    for (size_t w = 0; w < WORLDS; w++)
        if (!a->defined[w] || !b->defined[w] ||
            (equal ? a->values[w] != b->values[w] : a->values[w] > b->values[w]))
            worlds[w].dead = true;
}

static void try_random(uint64_t number)
{
    static sample pool[POOL];
    world worlds[WORLDS] = {0};
    bool assumed = false;
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    seed = number * 7919 + 1;
    for (size_t w = 0; w < WORLDS; w++)
        for (size_t i = 0; i < SYMBOLS; i++)
            worlds[w].symbols[i] = least[i] + (int64_t)draw(w < WORLDS / 2 ? 3 : 30);
    for (size_t i = 0; i < POOL; i++) {
        int64_t constant = (int64_t)draw(9) - 3;
        bool symbol = i < SYMBOLS || draw(2);
        size_t which = i < SYMBOLS ? i : draw(SYMBOLS);
        pool[i].dim = symbol ? cfx_dims_symbol(dims, names[which], least[which], NULL) : constant;
        for (size_t w = 0; w < WORLDS; w++) {
            pool[i].values[w] = symbol ? worlds[w].symbols[which] : constant;
            pool[i].defined[w] = true;
        }
    }
    for (int step = 0; step < 150; step++) {
        sample *to = &pool[SYMBOLS + draw(POOL - SYMBOLS)];
        combine(dims, to, &pool[draw(POOL)], &pool[draw(POOL)], functions[draw(7)]);
        check_sample(dims, to, worlds);
        check_comparison(dims, to, &pool[draw(POOL)], worlds);
        if (draw(30) == 0) {
            assume_something(dims, pool, worlds);
            assumed = true;
        }
        const char *text = printed(dims, to->dim);
        if (strlen(text) < 300 && !assumed) {
            int64_t again = parsed(dims, text);
            if (!CHECK_INT_EQ(1, cfx_dim_compare_eq(dims, to->dim, again)))
                printf("    %s reads as %s\n", text, printed(dims, again));
        }
    }
    cfx_dims_free(dims);
}

TEST(random_expressions_are_right)
{
    for (uint64_t i = 0; i < 300; i++) {
        try_random(i);
        if (check_failures) {
            printf("    seed %llu\n", (unsigned long long)i);
            return;
        }
    }
}

/* ---- memory -------------------------------------------------------------------------------- */

static cfx_status work(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(a, &err);
    (void)arg;
    if (!dims)
        return err.status;
    static const char *const texts[] = {"(N + 4)*M//2 + max(N, K)%7", "N*M//(N + 1)", "N//2//3"};
    int64_t d = 0;
    for (size_t i = 0; i < 3 && err.status == CFX_OK; i++)
        d = cfx_dim_add(dims, d, cfx_dims_parse(dims, texts[i], strlen(texts[i]), &err), &err);
    if (err.status == CFX_OK) {
        cfx_dim_expect_eq(dims, cfx_dims_symbol(dims, "N", 2, &err),
                          cfx_dims_symbol(dims, "M", 2, &err));
        cfx_dim_expect_le(dims, d, cfxi_dim_fresh(dims, &err));
        cfx_dim_expect_eq(dims, d, cfx_dim_mul(dims, d, d, &err));
    }
    cfx_buffer text;
    cfx_buffer_init(&text, a);
    cfx_status status = err.status;
    if (status == CFX_OK)
        status = cfx_dims_print_assumptions(dims, cfx_buffer_sink(&text), NULL, &err);
    if (status == CFX_OK)
        cfx_dim_add(dims, d, 1, &err);
    cfx_buffer_free(&text);
    cfx_dims_free(dims);
    return err.status;
}

TEST(every_allocation_may_fail) { CHECK(test_oom_sweep(work, NULL) > 3); }
