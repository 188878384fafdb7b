/* state.c - tensors by name. */
#include <cfx/runtime.h>

#include "check.h"
#include "test_alloc.h"

static cfx_tensor *number(int64_t i, const cfx_allocator *a, cfx_error *err)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_INT64, NULL, 0, a, err);
    if (t)
        *(int64_t *)cfx_tensor_data(t) = i;
    return t;
}

TEST(names_keep_their_order)
{
    cfx_error err = {0};
    cfx_state *s = cfx_state_new(NULL, &err);
    char name[20];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) {
            cfx_tensor *t = number(i + round, NULL, &err);
            snprintf(name, sizeof name, "layer.%d", i);
            CHECK_INT_EQ(CFX_OK, cfx_state_set(s, name, t, &err));
            cfx_tensor_release(t);
        }
    }
    CHECK_INT_EQ(1000, cfx_state_size(s));
    cfx_tensor *t = NULL;
    CHECK_STR_EQ("layer.7", cfx_state_entry(s, 7, &t));
    CHECK(t == cfx_state_get(s, "layer.7"));
    CHECK_INT_EQ(8, *(int64_t *)cfx_tensor_data(t));
    CHECK(cfx_state_get(s, "layer") == NULL);
    CHECK(cfx_state_get(s, "layer.10000") == NULL);
    CHECK(cfx_state_get(NULL, "layer.1") == NULL);
    CHECK(cfx_state_entry(s, 1000, &t) == NULL);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_state_set(s, "x", NULL, &err));
    cfx_state_free(s);
    cfx_state_free(NULL);
}

static cfx_status fill(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_status status = CFX_OK;
    cfx_state *s = cfx_state_new(a, &err);
    (void)arg;
    if (!s)
        return err.status;
    for (int i = 0; i < 20 && status == CFX_OK; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        cfx_tensor *t = number(i, a, &err);
        status = t ? cfx_state_set(s, name, t, &err) : err.status;
        cfx_tensor_release(t);
    }
    cfx_state_free(s);
    return status;
}

TEST(every_allocation_may_fail) { CHECK(test_oom_sweep(fill, NULL) > 20); }
