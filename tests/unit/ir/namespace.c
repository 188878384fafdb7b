/* namespace.c - names that are taken as they are, and the list of all that are taken. */
#include "test_alloc.h"

#include <cfx/embed/namespace.h>
#include <cfx/graph.h>

static bool is_listed(const cfx_namespace *ns, const char *name)
{
    size_t cursor = 0;
    size_t size = 0;
    const char *text = NULL;
    while ((text = cfx_namespace_each(ns, &cursor, &size)))
        if (size == strlen(name) && memcmp(text, name, size) == 0)
            return true;
    return false;
}

static size_t count(const cfx_namespace *ns)
{
    size_t cursor = 0;
    size_t n = 0;
    while (cfx_namespace_each(ns, &cursor, NULL))
        n++;
    return n;
}

TEST(an_added_name_is_taken)
{
    cfx_namespace *ns = cfx_namespace_new(NULL, NULL);
    REQUIRE(ns);
    CHECK_INT_EQ(CFX_OK, cfx_namespace_add(ns, "x", 1, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_namespace_add(ns, "x", 1, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_namespace_add(ns, "no name!", 8, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_namespace_add(ns, "for", 3, NULL));
    CHECK(cfx_namespace_has(ns, "no name!", 8) && cfx_namespace_has(ns, "for", 3));
    CHECK_STR_EQ("x_1", cfx_namespace_create(ns, "x", 1, false, NULL));
    CHECK_INT_EQ(4, count(ns));
    cfx_namespace_free(ns);
}

TEST(every_name_is_listed_once)
{
    cfx_namespace *ns = cfx_namespace_new(NULL, NULL);
    REQUIRE(ns);
    CHECK_INT_EQ(0, count(ns));
    for (int i = 0; i < 1000; i++)
        REQUIRE(cfx_namespace_create(ns, "add", 3, false, NULL));
    CHECK_INT_EQ(1000, count(ns));
    CHECK(is_listed(ns, "add") && is_listed(ns, "add_999") && !is_listed(ns, "add_1000"));
    cfx_namespace_free(ns);
}

static cfx_status add_some(const cfx_allocator *allocator, void *ctx)
{
    (void)ctx;
    cfx_error err = {0};
    cfx_namespace *ns = cfx_namespace_new(allocator, &err);
    for (char name = 'a'; ns && !err.status && name <= 'z'; name++)
        cfx_namespace_add(ns, &name, 1, &err);
    cfx_namespace_free(ns);
    return err.status;
}

TEST(running_out_of_memory) { test_oom_sweep(add_some, NULL); }
