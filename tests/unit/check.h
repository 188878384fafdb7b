/* check.h - a tiny test framework; include it once per test program, it defines main().
 *
 *     TEST(arena_grows)
 *     {
 *         REQUIRE(a != NULL);            (leaves the test on failure)
 *         CHECK(cond);                   (notes a failure and goes on)
 *         CHECK_INT_EQ(3, n);
 *         CHECK_STR_EQ("relu", name);
 *     }
 *
 * Tests register themselves and run in the order of the file; arguments select them by substring.
 */
#ifndef CFX_TESTS_CHECK_H
#define CFX_TESTS_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct check_test {
    const char *name;
    void (*run)(void);
    struct check_test *next;
} check_test;

static check_test *check_first;
static check_test **check_tail = &check_first;
static int check_failures; /* in the running test */

#define TEST(name_)                                                                  \
    static void test_##name_(void);                                                  \
    __attribute__((constructor)) static void register_##name_(void)                  \
    {                                                                                \
        static check_test t = {#name_, test_##name_, NULL};                          \
        *check_tail = &t;                                                            \
        check_tail = &t.next;                                                        \
    }                                                                                \
    static void test_##name_(void)

static inline bool check_note(bool ok, const char *file, int line, const char *text)
{
    if (!ok) {
        check_failures++;
        printf("%s:%d: failed: %s\n", file, line, text);
    }
    return ok;
}

static inline bool check_int(long long want, long long got, const char *file, int line,
                             const char *text)
{
    if (check_note(want == got, file, line, text))
        return true;
    printf("    want %lld\n    got  %lld\n", want, got);
    return false;
}

static inline bool check_str(const char *want, const char *got, const char *file, int line,
                             const char *text)
{
    const bool same = want && got ? strcmp(want, got) == 0 : want == got;
    if (check_note(same, file, line, text))
        return true;
    printf("    want \"%s\"\n    got  \"%s\"\n", want ? want : "(null)", got ? got : "(null)");
    return false;
}

/* All but REQUIRE are expressions that tell whether the check held. */
#define CHECK(cond) check_note(!!(cond), __FILE__, __LINE__, #cond)
#define CHECK_INT_EQ(want, got)                                                      \
    check_int((long long)(want), (long long)(got), __FILE__, __LINE__, #want " == " #got)
#define CHECK_STR_EQ(want, got) check_str(want, got, __FILE__, __LINE__, #want " == " #got)
#define REQUIRE(cond)                                                                \
    do {                                                                             \
        if (!CHECK(cond))                                                            \
            return;                                                                  \
    } while (0)

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *program = slash ? slash + 1 : argv[0];
    int passed = 0;
    int failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was printed survives a crash */
    for (const check_test *t = check_first; t; t = t->next) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++)
            wanted = wanted || strstr(t->name, argv[i]);
        if (!wanted)
            continue;
        check_failures = 0;
        t->run();
        if (check_failures)
            printf("FAIL %s\n", t->name);
        failed += check_failures != 0;
        passed += check_failures == 0;
    }
    printf("%s: %d passed, %d failed\n", program, passed, failed);
    return failed != 0;
}

#endif
