/* guards.c - guards: text, checking, hostile input, want of memory. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <math.h>

static const char *const inputs[] = {"x", "n", "cache.keys[0]", "d['a b']", "f", "a\tb", "o",
                                     "o.shape[1]"};
enum { NUM_INPUTS = sizeof inputs / sizeof *inputs };

static cfx_guards *empty(void) { return cfx_guards_new(inputs, NUM_INPUTS, NULL, NULL); }

static cfx_guards *parsed(const char *text)
{
    cfx_error err = {0};
    cfx_guards *g = empty();
    if (cfx_guards_parse(g, text, strlen(text), &err) != CFX_OK)
        printf("%s\n%s\n", text, err.message);
    return g;
}

/* What a set prints; freed by the next call. */
static const char *printed(const cfx_guards *g)
{
    static cfx_buffer out;
    if (out.data)
        cfx_buffer_free(&out);
    cfx_buffer_init(&out, NULL);
    cfx_guards_print(g, cfx_buffer_sink(&out), NULL);
    return out.data;
}

static const char *question(const cfx_guards *g, size_t i)
{
    static char text[1000];
    cfx_buffer out;
    cfx_buffer_init(&out, NULL);
    cfx_guards_print_question(g, i, cfx_buffer_sink(&out), NULL);
    snprintf(text, sizeof text, "%s", out.data);
    cfx_buffer_free(&out);
    return text;
}

/* ---- text ---------------------------------------------------------------------------------- */

TEST(texts_read_back)
{
    static const char *const questions[] = {
        "x.shape[0] * 2 > 7 is True",
        "x.shape[1] is 5",
        "n is -9223372036854775808",
        "f is 0.1",
        "f is -0.0",
        "f is float(\"nan\")",
        "f is -float(\"inf\")",
        "f < float(\"inf\") is True",
        "n + 1 - (n - 1) == 2 is True",
        "n * (n + 1) // 2 % 3 != 1 is False",
        "-n ** 2 <= (-n) ** 2 is True",
        "(-3) ** n >= 2 ** -n is True",
        "n ** n ** 2 < (n ** n) ** 2 is True",
        "--n - -3 == ~-n is False",
        "n << 2 | n & 3 ^ n >> 1 > 0 is True",
        "(n | 1) & (n ^ 2) > 0 is True",
        "max(n, min(x.shape[0], 3)) > abs(-n) is True",
        "round(f * 2) + int(f) + floor(f) + ceil(f) + trunc(f) > sqrt(float(n)) / 2 is False",
        "cache.keys[0].shape[3] > 1 is True",
        "d['a b'].shape[0] > d['a b'].shape[1] is True",
        "@5.shape[0] > 1 is True",
        "o.shape[0] > @6.shape[1] is True",
        "o.shape[1] > 1 is True",
        "1e-05 < f is True",
    };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        char line[200];
        snprintf(line, sizeof line, "size program \"model.py:%zu\": %s\n", i, questions[i]);
        cfx_guards *g = parsed(line);
        CHECK_INT_EQ(1, cfx_guards_count(g));
        CHECK_STR_EQ(line, printed(g));
        cfx_guards_free(g);
    }
}

TEST(texts_are_told)
{
    cfx_guard guard;
    cfx_guards *g = parsed("size torch \"a \\\"b\\\" \\u00e9\": max(n,x.shape[0],2)>1 is True\n"
                           "\n   data program \"\": n is 7");
    CHECK_INT_EQ(2, cfx_guards_count(g));
    CHECK_STR_EQ("max(max(n, x.shape[0]), 2) > 1", question(g, 0));
    CHECK_STR_EQ("n", question(g, 1));
    CHECK(cfx_guards_get(g, 0, &guard));
    CHECK(guard.kind == CFX_GUARD_SIZE && guard.asker == CFX_GUARD_BY_TORCH);
    CHECK(guard.value.kind == CFX_DATUM_BOOL && guard.value.as.b);
    CHECK_STR_EQ("a \"b\" \xc3\xa9", guard.line);
    CHECK(cfx_guards_get(g, 1, &guard));
    CHECK(guard.kind == CFX_GUARD_DATA && guard.value.kind == CFX_DATUM_INT);
    CHECK_INT_EQ(7, guard.value.as.i);
    CHECK_STR_EQ("", guard.line);
    CHECK(!cfx_guards_get(g, 2, &guard));
    CHECK_INT_EQ(CFX_E_INDEX, cfx_guards_print_question(g, 2, cfx_file_sink(stdout), NULL));
    CHECK_INT_EQ(NUM_INPUTS, cfx_guards_num_inputs(g));
    CHECK_STR_EQ("n", cfx_guards_input(g, 1));
    CHECK(!cfx_guards_input(g, NUM_INPUTS));
    cfx_guards_free(g);
}

TEST(copies_are_equal)
{
    cfx_guards *g = parsed("size program \"m.py:1\": x.shape[0] > n is True\n"
                           "size torch \"m.py:2\": x.shape[1] is 5\n");
    cfx_guards *copy = cfx_guards_copy(g, NULL);
    char before[200];
    snprintf(before, sizeof before, "%s", printed(g));
    cfx_guards_free(g);
    CHECK_STR_EQ(before, printed(copy));
    CHECK_INT_EQ(3, cfx_guards_num_terms(copy));
    cfx_guards_free(copy);
}

TEST(wrong_texts_are_refused)
{
    static const struct { const char *text; cfx_status status; unsigned line, column; } cases[] = {
        {"", CFX_OK, 0, 0},
        {"sizes program \"\": n is 1", CFX_E_SYNTAX, 1, 1},
        {"size torch2 \"\": n is 1", CFX_E_SYNTAX, 1, 6},
        {"size torch m.py: n is 1", CFX_E_SYNTAX, 1, 12},
        {"size torch \"m.py: n is 1", CFX_E_SYNTAX, 1, 12},
        {"size torch \"\" n is 1", CFX_E_SYNTAX, 1, 15},
        {"size torch \"\": n is 1\nsize torch \"\": m is 1", CFX_E_SYNTAX, 2, 16},
        {"size torch \"\": x.shape[99] is 1", CFX_E_SYNTAX, 1, 16},
        {"size torch \"\": x.shape is 1", CFX_E_SYNTAX, 1, 16},
        {"size torch \"\": x.shape[0 is 1", CFX_E_SYNTAX, 1, 16},
        {"size torch \"\": @8 is 1", CFX_E_SYNTAX, 1, 17},
        {"size torch \"\": @-1 is 1", CFX_E_SYNTAX, 1, 17},
        {"size torch \"\": @ is 1", CFX_E_SYNTAX, 1, 17},
        {"size torch \"\": @1.size[0] is 1", CFX_E_SYNTAX, 1, 17},
        {"size torch \"\": n + is 1", CFX_E_SYNTAX, 1, 20},
        {"size torch \"\": (n is 1", CFX_E_SYNTAX, 1, 19},
        {"size torch \"\": n", CFX_E_SYNTAX, 1, 17},
        {"size torch \"\": n is", CFX_E_SYNTAX, 1, 20},
        {"size torch \"\": n is True", CFX_E_SYNTAX, 1, 25},
        {"size torch \"\": n > 1 is 1", CFX_E_SYNTAX, 1, 26},
        {"size torch \"\": n > 1 > 2 is True", CFX_E_SYNTAX, 1, 22},
        {"size torch \"\": n is 1 1", CFX_E_SYNTAX, 1, 23},
        {"size torch \"\": n is 9223372036854775808", CFX_E_SYNTAX, 1, 21},
        {"size torch \"\": n < 1e999 is True", CFX_E_SYNTAX, 1, 20},
        {"size torch \"\": abs(n, 1) is 1", CFX_E_SYNTAX, 1, 24},
        {"size torch \"\": max(n) is 1", CFX_E_SYNTAX, 1, 21},
        {"size torch \"\": max() is 1", CFX_E_SYNTAX, 1, 20},
        {"size torch \"\": eval(n) is 1", CFX_E_SYNTAX, 1, 16},
        {"size torch \"\\0\": n is 1", CFX_E_SYNTAX, 1, 0},
        {"size torch \"\xff\": n is 1", CFX_E_SYNTAX, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cfx_error err = {0};
        cfx_guards *g = parsed("size program \"\": x.shape[0] is 1");
        const char *text = cases[i].text;
        if (!CHECK_INT_EQ(cases[i].status, cfx_guards_parse(g, text, strlen(text), &err)) ||
            !CHECK_INT_EQ(cases[i].line, err.line) ||
            (cases[i].column && !CHECK_INT_EQ(cases[i].column, err.column)))
            printf("    %s\n%s\n", text, err.message);
        CHECK_INT_EQ(1, cfx_guards_count(g));
        CHECK_INT_EQ(1, cfx_guards_num_terms(g));
        cfx_guards_free(g);
    }
}

/* begin, then `middle` n times, then end */
static cfx_status parse_repeated(const char *begin, const char *middle, size_t n, const char *end)
{
    cfx_buffer text;
    cfx_guards *g = empty();
    cfx_buffer_init(&text, NULL);
    cfx_buffer_append(&text, "size program \"\": ", 17);
    cfx_buffer_append(&text, begin, strlen(begin));
    for (size_t i = 0; i < n; i++)
        cfx_buffer_append(&text, middle, strlen(middle));
    cfx_buffer_append(&text, end, strlen(end));
    const cfx_status status = cfx_guards_parse(g, text.data, text.size, NULL);
    cfx_buffer_free(&text);
    cfx_guards_free(g);
    return status;
}

TEST(depth_and_length_are_limited)
{
    CHECK_INT_EQ(CFX_OK, parse_repeated("n", " + 1", 100, " > 0 is True"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_repeated("n", " + 1", 100000, " > 0 is True"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_repeated("", "(", 100000, "n is 1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_repeated("", "-", 100000, "n is 1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_repeated("", "~", 100000, "n is 1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_repeated("", "abs(", 100000, "n is 1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_repeated("", "n ** ", 100000, "n is 1"));
    CHECK_INT_EQ(CFX_E_LIMIT, parse_repeated("", "n + (", 70, "n is 1"));
    CHECK_INT_EQ(CFX_E_SYNTAX, parse_repeated("n", "[", 100000, " is 1"));
    CHECK_INT_EQ(CFX_E_SYNTAX, parse_repeated("", "9", 100000, " > n is True"));
}

TEST(names_are_checked)
{
    static const char *const twice[] = {"x", "y", "x"};
    static const char *const none[] = {""};
    static const char *const bytes[] = {"\xff"};
    cfx_error err = {0};
    CHECK(!cfx_guards_new(twice, 3, NULL, &err));
    CHECK_STR_EQ("two inputs are called 'x'", err.message);
    CHECK(!cfx_guards_new(none, 1, NULL, &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    CHECK(!cfx_guards_new(bytes, 1, NULL, NULL));
    cfx_guards_free(NULL);
}

/* ---- checking ------------------------------------------------------------------------------ */

/* Whether a guard over n and f holds; *err says why not. */
static bool holds(const char *text, cfx_datum n, double f, cfx_error *err)
{
    char line[300];
    cfx_datum values[8];
    size_t input;
    size_t dim;
    size_t which = 99;
    snprintf(line, sizeof line, "size program \"model.py:12\": %s", text);
    cfx_guards *g = parsed(line);
    for (size_t i = 0; cfx_guards_term(g, i, &input, &dim); i++)
        values[i] = dim != CFX_GUARD_NUMBER ? cfx_datum_int(10 + (int64_t)dim)
                    : input == 1            ? n
                                            : cfx_datum_float(f);
    *err = (cfx_error){0};
    const bool good = cfx_guards_hold(g, values, &which, err);
    CHECK(good == (which == 99));
    cfx_guards_free(g);
    return good;
}

TEST(numbers_mean_what_they_mean_in_python)
{
    static const struct { const char *text; int64_t n; double f; } true_ones[] = {
        {"n // 2 is -4", -7, 0},
        {"n % 4 is 1", -7, 0},
        {"n % -4 is -3", -7, 0},
        {"n / 2 is 3.5", 7, 0},
        {"n ** 2 is 49", -7, 0},
        {"n ** -1 is 0.5", 2, 0},
        {"f // 2 is -1.0", 0, -0.5},
        {"f % 3 is 2.5", 0, -0.5},
        {"round(f) is 2", 0, 2.5},
        {"round(f) is 4", 0, 3.5},
        {"int(f) is -2", 0, -2.7},
        {"floor(f) is -3", 0, -2.7},
        {"ceil(f) is -2", 0, -2.7},
        {"trunc(f) is -2", 0, -2.7},
        {"float(n) / 2 is 1.5", 3, 0},
        {"max(n, f) is 3", 3, 2.5},
        {"min(n, f) is 2.5", 3, 2.5},
        {"abs(n) is 7", -7, 0},
        {"~n is -8", 7, 0},
        {"n << 3 is 56", 7, 0},
        {"n >> 1 is -4", -7, 0},
        {"n & 6 | 1 is 7", 7, 0},
        {"sqrt(n) is 3.0", 9, 0},
        {"n == f is False", INT64_MAX, 0x1p63},  /* they would be equal as floats */
        {"n < f is True", INT64_MAX, 0x1p63},
        {"f is float(\"nan\")", 0, NAN},
        {"f < 1 is False", 0, NAN},
        {"x.shape[1] - x.shape[0] is 1", 0, 0},
    };
    cfx_error err;
    for (size_t i = 0; i < sizeof true_ones / sizeof *true_ones; i++)
        if (!CHECK(holds(true_ones[i].text, cfx_datum_int(true_ones[i].n), true_ones[i].f, &err)))
            printf("    %s: %s\n", true_ones[i].text, err.message);
}

TEST(the_first_that_fails_is_told)
{
    static const struct { const char *text; cfx_status status; const char *message; } cases[] = {
        {"n * 2 > 7 is True", CFX_E_ASSERTION,
         "n * 2 > 7 was True at model.py:12 when the model was captured"},
        {"n * 2 is 7", CFX_E_ASSERTION,
         "n * 2 was 7 at model.py:12 when the model was captured"},
        {"f is 0.5", CFX_E_ASSERTION,
         "f was 0.5 at model.py:12 when the model was captured"},
        {"7 // n > 1 is True", CFX_E_DIVISION,
         "7 // n > 1 was True at model.py:12 when the model was captured"},
        {"7 % n > 1 is False", CFX_E_DIVISION, NULL},
        {"7 / n > 1 is False", CFX_E_DIVISION, NULL},
        {"(n - 1) ** 0.5 < 1 is False", CFX_E_TYPE, NULL},  /* complex */
        {"9223372036854775807 + 1 - n > 0 is True", CFX_E_VALUE, NULL},
        {"3 ** 50 > n is True", CFX_E_VALUE, NULL},
        {"1 << 80 > n is True", CFX_E_VALUE, NULL},
        {"n << -1 > 0 is True", CFX_E_VALUE, NULL},
        {"int(1e300) > n is True", CFX_E_VALUE, NULL},
        {"int(f) > n is True", CFX_E_VALUE, NULL},
        {"sqrt(-1) > n is True", CFX_E_VALUE, NULL},
        {"1e300 * 10 ** n > 1 is False", CFX_E_ASSERTION, NULL},
        {"10.0 ** 400 > n is True", CFX_E_OVERFLOW, NULL},
    };
    cfx_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(!holds(cases[i].text, cfx_datum_int(0), NAN, &err));
        if (!CHECK_INT_EQ(cases[i].status, err.status))
            printf("    %s: %s\n", cases[i].text, err.message);
        if (cases[i].message)
            CHECK_STR_EQ(cases[i].message, err.message);
    }
    CHECK(!holds("n < 3 is False", cfx_datum_invalid(), 0, &err));  /* more than 64 bits */
    CHECK_INT_EQ(CFX_E_OVERFLOW, err.status);
    cfx_guards *g = parsed("size program \"\": n > 1 is True\nsize program \"\": n > 5 is True\n"
                           "size program \"\": n > 3 is True");
    const cfx_datum three = cfx_datum_int(3);
    size_t which = 99;
    CHECK(!cfx_guards_hold(g, &three, &which, NULL));
    CHECK_INT_EQ(1, which);
    CHECK(!cfx_guards_hold(g, &three, NULL, &err));
    CHECK_STR_EQ("n > 5 was True when the model was captured", err.message);
    cfx_guards_free(g);
}

/* ---- want of memory ------------------------------------------------------------------------ */

static cfx_status all_of_it(const cfx_allocator *a, void *arg)
{
    static const char text[] = "size program \"m.py:1 \\\"\": max(x.shape[0], n) > 1 is True\n"
                               "size torch \"m.py:2\": @5.shape[0] + f is 5\n";
    cfx_error err = {0};
    cfx_buffer out;
    (void)arg;
    cfx_guards *g = cfx_guards_new(inputs, NUM_INPUTS, a, &err);
    cfx_guards *copy = NULL;
    cfx_buffer_init(&out, a);
    if (g && cfx_guards_parse(g, text, sizeof text - 1, &err) == CFX_OK)
        copy = cfx_guards_copy(g, &err);
    if (copy)
        cfx_guards_print(copy, cfx_buffer_sink(&out), &err);
    cfx_buffer_free(&out);
    cfx_guards_free(copy);
    cfx_guards_free(g);
    return err.status;
}

TEST(want_of_memory) { CHECK(test_oom_sweep(all_of_it, NULL) > 5); }
