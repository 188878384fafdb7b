/* fuzz_guard.c - any text as guards: no crash; what is read prints as text that reads as the same,
 * and whatever the numbers are, checking ends with an answer. */
#include <cfx/guard.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_guard: %s\n%s\n", what, detail);
    abort();
}

static const char *const names[] = {"x", "n", "a.b[0]", "d['k']", "odd name", "o", "o.shape[1]"};
enum { NUM_NAMES = sizeof names / sizeof *names, MOST_TERMS = NUM_NAMES * 65 };

static void check(const cfx_guards *g)
{
    static const int64_t numbers[] = {0, 1, -1, 7, INT64_MAX, INT64_MIN};
    static const double floats[] = {0.0, 0.5, -INFINITY, NAN, 1e300};
    cfx_datum values[MOST_TERMS];
    const size_t n = cfx_guards_num_terms(g);
    for (size_t turn = 0; turn < 11; turn++) {
        for (size_t i = 0; i < n; i++)
            values[i] = turn < 6 ? cfx_datum_int(numbers[(turn + i) % 6])
                                 : cfx_datum_float(floats[(turn + i) % 5]);
        cfx_error err = {.status = CFX_OK};
        size_t which = SIZE_MAX;
        const bool good = cfx_guards_hold(g, values, &which, &err);
        if (good != (err.status == CFX_OK) || good != (which == SIZE_MAX))
            fail("an answer without a reason", err.message);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer first;
    cfx_buffer second;
    cfx_guards *g = cfx_guards_new(names, NUM_NAMES, NULL, &err);
    cfx_guards *again = cfx_guards_new(names, NUM_NAMES, NULL, &err);
    if (!g || !again)
        fail("no memory", "");
    cfx_buffer_init(&first, NULL);
    cfx_buffer_init(&second, NULL);
    if (cfx_guards_parse(g, (const char *)data, size, &err) == CFX_OK) {
        check(g);
        cfx_guards_print(g, cfx_buffer_sink(&first), &err);
        if (cfx_guards_parse(again, first.data, first.size, &err) != CFX_OK)
            fail(err.message, first.data);
        cfx_guards_print(again, cfx_buffer_sink(&second), &err);
        if (strcmp(first.data, second.data) != 0)
            fail("guards changed on the way through their text", first.data);
    } else if (err.status == CFX_OK || cfx_guards_count(g) != 0 || cfx_guards_num_terms(g) != 0) {
        fail("a failure that left something", err.message);
    }
    cfx_buffer_free(&first);
    cfx_buffer_free(&second);
    cfx_guards_free(g);
    cfx_guards_free(again);
    return 0;
}
