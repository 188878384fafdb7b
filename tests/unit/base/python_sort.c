/* python_sort.c - tests of the sort that gives Python's order. */
#include "check.h"

#include "base/base_impl.h"

#include <math.h>

static int is_less(void *ctx, size_t a, size_t b)
{
    const double *values = ctx;
    return values[a] < values[b];
}

static int fails(void *ctx, size_t a, size_t b)
{
    size_t *left = ctx;
    (void)b;
    return (*left)-- == 0 ? -1 : (int)(a % 2);
}

/* The values in their order, as text. */
static void check_sorted(const char *want, double *values, size_t n, bool reverse)
{
    size_t order[8];
    size_t room[8];
    char text[80] = "";
    CHECK(cfxi_base_sort(order, room, n, reverse, is_less, values));
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%g", i ? " " : "",
                 values[order[i]]);
    CHECK_STR_EQ(want, text);
}

TEST(nan_stays_where_python_leaves_it)
{
    check_sorted("2 nan 1", (double[]){2, NAN, 1}, 3, false);
    check_sorted("1 2 nan", (double[]){2, 1, NAN}, 3, false);
    check_sorted("nan 1 2", (double[]){NAN, 2, 1}, 3, false);
    check_sorted("3 2 1", (double[]){1, 3, 2}, 3, true);
    check_sorted("2 nan 1", (double[]){2, NAN, 1}, 3, true);
    check_sorted("", (double[]){0}, 0, false);
    check_sorted("5", (double[]){5}, 1, true);
}

/* Equal ones stay in their order, also in reverse; short and long lists. */
TEST(stable_at_every_length)
{
    enum { MOST = 200 };
    double values[MOST];
    size_t order[MOST];
    size_t room[MOST];
    for (size_t n = 0; n <= MOST; n += n < 70 ? 1 : 13)
        for (int reverse = 0; reverse < 2; reverse++) {
            for (size_t i = 0; i < n; i++)
                values[i] = (double)(i * 7919 % 13);
            CHECK(cfxi_base_sort(order, room, n, reverse, is_less, values));
            for (size_t i = 1; i < n; i++) {
                const double a = values[order[i - 1]];
                const double b = values[order[i]];
                CHECK(reverse ? a >= b : a <= b);
                CHECK(a != b || order[i - 1] < order[i]);
            }
        }
}

TEST(a_comparison_that_fails_ends_it)
{
    size_t order[100];
    size_t room[100];
    for (size_t n = 2; n <= 100; n += 98)
        for (size_t left = 0; left < n - 1; left++) {
            size_t k = left;
            CHECK(!cfxi_base_sort(order, room, n, false, fails, &k));
        }
}
