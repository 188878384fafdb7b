/* scope_test.h - what is done in a scope, while memory runs out anywhere. */
#ifndef CFX_TESTS_SCOPE_TEST_H
#define CFX_TESTS_SCOPE_TEST_H

#include "test_alloc.h"

#include <cfx/scope.h>

/* Does something in the scope, whose error says how it went; `a` is its allocator. */
typedef void scope_test_fn(cfx_scope *s, const cfx_allocator *a);

static inline cfx_status scope_test_run(const cfx_allocator *a, void *body)
{
    const cfx_scope_options options = {.allocator = a, .threads = 1};
    cfx_error err = {0};
    cfx_scope *s = cfx_scope_new(&options, &err);
    if (!s)
        return err.status;
    (*(scope_test_fn **)body)(s, a);
    const cfx_status status = cfx_scope_error(s)->status;
    cfx_scope_free(s);
    return status;
}

/* test_oom_sweep over a new scope each time. */
static inline size_t scope_oom_sweep(scope_test_fn *body)
{
    return test_oom_sweep(scope_test_run, &body);
}

#endif
