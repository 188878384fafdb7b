/* later.c - elements that are copied when they are needed: once, by whoever comes first, and never
 * if nobody does. */
#include "runtime/runtime_impl.h"

#include <cfx/embed/dlpack.h>

#include "check.h"
#include "test_alloc.h"

#include <pthread.h>

enum { COUNT = 6 };

static char file[COUNT * sizeof(float) + 1];  /* elements begin at the second byte */
static atomic_int fetched;
static int released;

static void fetch(void *ctx, char *to, const char *from, size_t size)
{
    (void)ctx;
    atomic_fetch_add(&fetched, 1);
    memcpy(to, from, size);
}

static void release(void *ctx)
{
    (void)ctx;
    released++;
}

static cfx_tensor *skewed(const cfx_allocator *allocator, cfx_error *err)
{
    static const int64_t sizes[] = {2, 3};
    static const float elements[COUNT] = {0, 1, 2, 3, 4, 5};
    memcpy(file + 1, elements, sizeof elements);
    atomic_store(&fetched, 0);
    released = 0;
    return cfxi_tensor_later(CFX_DTYPE_FLOAT32, sizes, NULL, 2, file + 1, fetch, release, NULL,
                             allocator, err);
}

static bool is_right(const cfx_tensor *t)
{
    const float *at = cfx_tensor_data(t);
    bool same = (uintptr_t)at % CFXI_ALIGN == 0;
    for (int i = 0; same && i < COUNT; i++)
        same = at[i] == (float)i;
    return same;
}

TEST(elements_are_copied_once_and_aligned)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_tensor *t = skewed(&a, NULL);
    REQUIRE(t);
    CHECK(fetched == 0);
    CHECK(cfxi_tensor_bytes(t) == file + 1);
    CHECK(is_right(t) && is_right(t));
    CHECK(fetched == 1);
    CHECK(cfxi_tensor_bytes(t) == cfx_tensor_data(t));
    ((float *)cfx_tensor_data(t))[0] = 7;  /* the copy alone changes */
    CHECK(file[1] == 0);
    cfx_tensor_release(t);
    CHECK(released == 1);
    test_alloc_check(&ta);
}

TEST(elements_that_nobody_needs_are_not_copied)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_tensor_release(skewed(&a, NULL));
    CHECK(fetched == 0 && released == 1);
    test_alloc_check(&ta);
}

TEST(views_and_dlpack_see_the_copy)
{
    const int64_t three[] = {3};
    cfx_tensor *t = skewed(NULL, NULL);
    REQUIRE(t);
    cfx_tensor *row = cfx_tensor_view(t, CFX_DTYPE_FLOAT32, three, NULL, 1, 12, NULL);
    REQUIRE(row);
    CHECK(((float *)cfx_tensor_data(row))[0] == 3);
    CHECK((char *)cfx_tensor_data(row) == (char *)cfx_tensor_data(t) + 12);
    cfx_dl_versioned *m = cfx_tensor_to_dlpack(t, NULL);
    REQUIRE(m);
    CHECK(m->tensor.data == cfx_tensor_data(t));
    m->deleter(m);
    CHECK(fetched == 1);
    cfx_tensor_release(t);
    CHECK(released == 0);  /* the view has the memory */
    cfx_tensor_release(row);
    CHECK(released == 1);
}

TEST(kernels_see_the_copy)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_tensor *t = skewed(NULL, NULL);
    REQUIRE(rt && t);
    const cfx_datum args[] = {cfx_datum_tensor(t)};
    cfx_datum sizes_alone = cfx_operator_infer(rt, NULL, CFX_OPID_neg, args, 1, &err);
    CHECK(sizes_alone.kind == CFX_DATUM_TENSOR && fetched == 0);
    cfx_datum y = cfx_operator_run(rt, CFX_OPID_neg, args, 1, &err);
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK(((float *)cfx_tensor_data(y.as.tensor))[5] == -5 && fetched == 1);
    cfx_datum_release(sizes_alone);
    cfx_datum_release(y);
    cfx_tensor_release(t);
    cfx_runtime_free(rt);
}

TEST(without_memory_elements_stay_where_they_are)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_error err = {0};
    const int64_t three[] = {3};
    cfx_tensor *t = skewed(&a, &err);
    REQUIRE(t);
    ta.fail_at = ta.count;
    CHECK(cfxi_tensor_settle(t, &err) == CFX_E_NOMEM);
    CHECK(cfx_tensor_data(t) == file + 1);
    CHECK(!cfx_tensor_view(t, CFX_DTYPE_FLOAT32, three, NULL, 1, 12, &err));
    CHECK(fetched == 0);
    ta.fail_at = TEST_ALLOC_NEVER;
    CHECK(is_right(t));
    cfx_tensor_release(t);
    test_alloc_check(&ta);
}

static void *look(void *ctx)
{
    return is_right(ctx) ? ctx : NULL;
}

TEST(threads_may_come_at_once)
{
    pthread_t threads[8];
    cfx_tensor *t = skewed(NULL, NULL);
    REQUIRE(t);
    for (size_t i = 0; i < 8; i++)
        REQUIRE(pthread_create(&threads[i], NULL, look, t) == 0);
    for (size_t i = 0; i < 8; i++) {
        void *saw = NULL;
        pthread_join(threads[i], &saw);
        CHECK(saw == t);
    }
    CHECK(fetched == 1);
    cfx_tensor_release(t);
}
