/* dlpack.c - tensors to and from DLPack: what is shared, what is refused, who frees. */
#include "runtime/runtime_impl.h"

#include <cfx/embed/dlpack.h>

#include "check.h"
#include "test_alloc.h"

static int deleted;

static void count_versioned(cfx_dl_versioned *self)
{
    (void)self;
    deleted++;
}

static void count_unversioned(cfx_dl_managed *self)
{
    (void)self;
    deleted++;
}

static float elements[6] = {0, 1, 2, 3, 4, 5};
static int64_t shape[2] = {2, 3};

static cfx_dl_tensor good(void)
{
    return (cfx_dl_tensor){.data = elements, .device_type = CFX_DL_CPU, .ndim = 2, .type_code = 2,
                           .bits = 32, .lanes = 1, .shape = shape};
}

TEST(what_comes_in_is_shared_and_deleted_once)
{
    cfx_error err = {0};
    int64_t strides[2] = {1, 2};
    cfx_dl_managed m = {.tensor = good(), .deleter = count_unversioned};
    m.tensor.strides = strides;
    m.tensor.byte_offset = sizeof(float);
    m.tensor.data = elements;
    shape[1] = 2;
    deleted = 0;
    cfx_tensor *t = cfx_tensor_from_dlpack_unversioned(&m, NULL, &err);
    shape[1] = 3;
    REQUIRE(t);
    CHECK(cfx_tensor_data(t) == elements + 1 && cfx_tensor_strides(t)[1] == 8);
    cfx_tensor *view = cfx_tensor_view(t, CFX_DTYPE_FLOAT32, NULL, NULL, 0, 4, &err);
    cfx_tensor_release(t);
    CHECK_INT_EQ(0, deleted);
    cfx_tensor_release(view);
    CHECK_INT_EQ(1, deleted);
}

static cfx_status refused(cfx_dl_tensor dl)
{
    cfx_error err = {0};
    cfx_dl_versioned m = {.major = 1, .deleter = count_versioned, .tensor = dl};
    cfx_tensor *t = cfx_tensor_from_dlpack(&m, NULL, &err);
    if (t)
        cfx_tensor_release(t);
    return err.status;
}

TEST(nothing_is_trusted)
{
    int64_t huge[2] = {INT64_MAX, INT64_MAX};
    int64_t negative[2] = {2, -1};
    cfx_dl_tensor dl = good();
    deleted = 0;
    dl.device_type = 2;
    CHECK_INT_EQ(CFX_E_VALUE, refused(dl));
    dl = good();
    dl.ndim = 9;
    CHECK_INT_EQ(CFX_E_SHAPE, refused(dl));
    dl.ndim = -1;
    CHECK_INT_EQ(CFX_E_SHAPE, refused(dl));
    dl = good();
    dl.shape = NULL;
    CHECK_INT_EQ(CFX_E_VALUE, refused(dl));
    dl.shape = negative;
    CHECK_INT_EQ(CFX_E_SHAPE, refused(dl));
    dl.shape = huge;
    CHECK_INT_EQ(CFX_E_SHAPE, refused(dl));
    dl = good();
    dl.strides = huge;
    CHECK_INT_EQ(CFX_E_SHAPE, refused(dl));
    dl = good();
    dl.data = NULL;
    CHECK_INT_EQ(CFX_E_VALUE, refused(dl));
    dl = good();
    dl.byte_offset = 1;
    CHECK_INT_EQ(CFX_E_VALUE, refused(dl));
    for (int code = 0; code < 256; code++) {
        dl = good();
        dl.type_code = (uint8_t)code;
        dl.bits = 24;
        CHECK_INT_EQ(CFX_E_TYPE, refused(dl));
    }
    dl = good();
    dl.lanes = 4;
    CHECK_INT_EQ(CFX_E_TYPE, refused(dl));
    CHECK_INT_EQ(0, deleted);
    cfx_error err = {0};
    cfx_dl_versioned later = {.major = 2, .deleter = count_versioned, .tensor = good()};
    CHECK(!cfx_tensor_from_dlpack(&later, NULL, &err));
    CHECK_STR_EQ("DLPack version 2.0 is not supported; cfx reads version 1", err.message);
}

TEST(empty_tensors_need_no_memory)
{
    cfx_error err = {0};
    int64_t none[2] = {0, 3};
    cfx_dl_versioned m = {.major = 1, .minor = 3, .flags = CFX_DL_READ_ONLY, .tensor = good()};
    m.tensor.data = NULL;
    m.tensor.shape = none;
    cfx_tensor *t = cfx_tensor_from_dlpack(&m, NULL, &err);
    REQUIRE(t);
    CHECK(cfx_tensor_is_read_only(t) && cfx_tensor_numel(t) == 0);
    cfx_tensor_release(t);
}

static cfx_status round_trip(const cfx_allocator *a, void *arg)
{
    (void)arg;
    cfx_error err = {0};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_BFLOAT16, shape, 2, a, &err);
    cfx_dl_versioned *m = t ? cfx_tensor_to_dlpack(t, &err) : NULL;
    cfx_tensor_release(t);
    if (!m)
        return err.status;
    CHECK(m->major == 1 && m->tensor.type_code == 4 && m->tensor.bits == 16);
    CHECK(m->tensor.strides[0] == 3 && m->tensor.strides[1] == 1);
    cfx_tensor *back = cfx_tensor_from_dlpack(m, a, &err);
    if (!back) {
        m->deleter(m);
        return err.status;
    }
    CHECK(cfx_tensor_dtype(back) == CFX_DTYPE_BFLOAT16);
    cfx_tensor_release(back);
    return CFX_OK;
}

TEST(out_and_in_again)
{
    test_oom_sweep(round_trip, NULL);
}

TEST(what_cannot_be_shared)
{
    cfx_error err = {0};
    CHECK(!cfx_tensor_to_dlpack(NULL, &err) && !cfx_tensor_to_dlpack_unversioned(NULL, &err));
    err = (cfx_error){0};
    int64_t odd[2] = {6, 4};
    cfx_tensor *abstract = cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, shape, 2, NULL, &err);
    CHECK(!cfx_tensor_to_dlpack(abstract, &err) && err.status == CFX_E_VALUE);
    cfx_tensor *strided = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, shape, odd, 2, elements, false,
                                                 NULL, NULL, NULL, &err);
    CHECK(!cfx_tensor_to_dlpack(strided, &err) && err.status == CFX_E_VALUE);
    cfx_tensor *fixed = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, shape, NULL, 2, elements, true,
                                               NULL, NULL, NULL, &err);
    CHECK(!cfx_tensor_to_dlpack_unversioned(fixed, &err) && err.status == CFX_E_VALUE);
    cfx_dl_versioned *m = cfx_tensor_to_dlpack(fixed, &err);
    REQUIRE(m);
    CHECK(m->flags == CFX_DL_READ_ONLY);
    m->deleter(m);
    cfx_tensor_release(abstract);
    cfx_tensor_release(strided);
    cfx_tensor_release(fixed);
}
