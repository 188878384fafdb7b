/* tensor.c - headers, storage, views, refusals. */
#include "tensor/tensor_impl.h"

#include <cfx/embed/dim.h>
#include <cfx/value.h>

#include "test_alloc.h"

static int released;

static void note_release(void *ctx)
{
    CHECK(ctx == &released);
    released++;
}

TEST(new_tensors_are_contiguous_and_aligned)
{
    const int64_t sizes[] = {2, 3, 4};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 3, NULL, NULL);
    REQUIRE(t);
    CHECK_INT_EQ(24, cfx_tensor_numel(t));
    CHECK_INT_EQ(48, cfx_tensor_strides(t)[0]);
    CHECK_INT_EQ(4, cfx_tensor_strides(t)[2]);
    CHECK(cfx_tensor_is_contiguous(t) && !cfx_tensor_is_abstract(t));
    CHECK_INT_EQ(0, (uintptr_t)cfx_tensor_data(t) % 64);
    cfx_tensor_release(t);
}

TEST(views_share_memory_and_keep_it)
{
    const int64_t sizes[] = {3, 4};
    const int64_t turned[] = {4, 3};
    const int64_t strides[] = {4, 16};
    const int64_t backwards[] = {-4};
    const int64_t four[] = {4};
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_INT32, sizes, 2, &a, NULL);
    REQUIRE(t);
    int32_t *data = cfx_tensor_data(t);
    for (int i = 0; i < 12; i++)
        data[i] = i;
    cfx_tensor *v = cfx_tensor_view(t, CFX_DTYPE_INT32, turned, strides, 2, 0, NULL);
    cfx_tensor *w = cfx_tensor_view(t, CFX_DTYPE_INT32, four, backwards, 1, 28, NULL);
    REQUIRE(v && w);
    CHECK(!cfx_tensor_is_contiguous(v));
    cfx_tensor_release(t);
    CHECK_INT_EQ(7, *(int32_t *)cfx_tensor_data(w));
    CHECK(cfxi_tensor_may_overlap(v, w));
    cfx_tensor_release(v);
    CHECK_INT_EQ(4, *((int32_t *)cfx_tensor_data(w) - 3));
    cfx_tensor_release(w);
    test_alloc_check(&ta);
}

TEST(views_stay_within)
{
    const int64_t sizes[] = {4};
    const int64_t strides[] = {4};
    const int64_t far[] = {INT64_MAX / 2};
    const int64_t none[] = {0};
    cfx_error err = {0};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 1, NULL, NULL);
    REQUIRE(t);
    CHECK(!cfx_tensor_view(t, CFX_DTYPE_FLOAT32, sizes, strides, 1, 4, &err));
    CHECK_INT_EQ(CFX_E_SHAPE, err.status);
    CHECK_STR_EQ("the view covers bytes 4 to 20, but the memory has 16 bytes", err.message);
    CHECK(!cfx_tensor_view(t, CFX_DTYPE_FLOAT32, sizes, strides, 1, -4, &err));
    CHECK(!cfx_tensor_view(t, CFX_DTYPE_FLOAT32, sizes, strides, 1, INT64_MAX, &err));
    CHECK(!cfx_tensor_view(t, CFX_DTYPE_FLOAT32, sizes, far, 1, 0, &err));
    CHECK(!cfx_tensor_view(t, CFX_DTYPE_FLOAT64, sizes, strides, 1, 0, &err));
    cfx_tensor *empty = cfx_tensor_view(t, CFX_DTYPE_FLOAT32, none, strides, 1, 1 << 20, &err);
    REQUIRE(empty);
    CHECK(cfx_tensor_data(empty) == cfx_tensor_data(t));
    cfx_tensor_release(empty);
    cfx_tensor_release(t);
}

TEST(foreign_memory_is_given_back_once)
{
    const int64_t sizes[] = {2, 2};
    const int64_t strides[] = {-8, 4};
    float data[] = {1, 2, 3, 4};
    released = 0;
    cfx_tensor *t = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, strides, 2, data + 2, true,
                                           note_release, &released, NULL, NULL);
    REQUIRE(t);
    CHECK(cfx_tensor_is_read_only(t));
    cfx_tensor *v = cfx_tensor_view(t, CFX_DTYPE_FLOAT32, sizes, strides, 2, 0, NULL);
    REQUIRE(v);
    CHECK(!cfx_tensor_view(t, CFX_DTYPE_FLOAT32, sizes, strides, 2, 8, NULL));
    cfx_tensor_release(t);
    CHECK_INT_EQ(0, released);
    cfx_tensor_release(v);
    CHECK_INT_EQ(1, released);
}

TEST(sizes_that_cannot_be_are_refused)
{
    const int64_t negative[] = {2, -3};
    const int64_t huge[] = {INT64_MAX / 2, 3};
    const int64_t hidden[] = {0, INT64_MAX / 2, 9};
    const int64_t many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    cfx_error err = {0};
    CHECK(!cfx_tensor_new(CFX_DTYPE_FLOAT32, negative, 2, NULL, &err));
    CHECK_INT_EQ(CFX_E_SHAPE, err.status);
    CHECK(!cfx_tensor_new(CFX_DTYPE_FLOAT32, huge, 2, NULL, &err));
    CHECK_STR_EQ("the tensor has more bytes than memory can hold", err.message);
    CHECK(!cfx_tensor_new(CFX_DTYPE_FLOAT32, hidden, 3, NULL, &err));
    CHECK(!cfx_tensor_new(CFX_DTYPE_FLOAT32, many, 9, NULL, &err));
    CHECK_STR_EQ("the tensor has 9 dimensions; cfx supports up to 8", err.message);
    CHECK(!cfx_tensor_new(CFX_DTYPE_QINT8, many, 1, NULL, &err));
    CHECK_INT_EQ(CFX_E_TYPE, err.status);
    CHECK(!cfx_tensor_new((cfx_dtype)1000, many, 1, NULL, &err));
}

TEST(channels_last_is_seen)
{
    const int64_t sizes[] = {2, 3, 4, 5};
    const int64_t strides[] = {240, 4, 60, 12};
    cfx_tensor *t = cfx_tensor_new_strided(CFX_DTYPE_FLOAT32, sizes, strides, 4, NULL, NULL);
    REQUIRE(t);
    CHECK(cfxi_tensor_is_channels_last(t) && !cfx_tensor_is_contiguous(t));
    cfx_tensor_release(t);
}

static cfx_status make_all(const cfx_allocator *a, void *arg)
{
    cfx_error own = {0};
    cfx_error *err = &own;
    (void)arg;
    const int64_t sizes[] = {2, 2};
    const int64_t strides[] = {8, 4};
    float data[4];
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 2, a, err);
    cfx_tensor *v = t ? cfx_tensor_view(t, CFX_DTYPE_FLOAT32, sizes, strides, 2, 0, err) : NULL;
    cfx_tensor *f = v ? cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 2, data, false, NULL,
                                               NULL, a, err)
                      : NULL;
    cfx_datum parts[] = {cfx_datum_tensor(f), cfx_datum_int(3)};
    cfx_datum list = f ? cfx_datum_seq(CFX_DATUM_LIST, parts, 2, a, err) : cfx_datum_none();
    cfx_datum text = f ? cfx_datum_from_text(CFX_DATUM_STR, "mean", 4, a, err) : cfx_datum_none();
    bool ok = list.kind == CFX_DATUM_LIST && text.kind == CFX_DATUM_STR;
    cfx_datum_release(text);
    cfx_datum_release(list);
    cfx_tensor_release(f);
    cfx_tensor_release(v);
    cfx_tensor_release(t);
    return ok ? CFX_OK : err->status;
}

TEST(every_allocation_may_fail) { CHECK(test_oom_sweep(make_all, NULL) >= 7); }

TEST(tensors_with_memory_have_no_symbols)
{
    float data[4];
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    int64_t stride = 4;
    int64_t four = 4;
    int64_t symbol = cfx_dims_symbol(dims, "N", 2, &err);
    int64_t wrong[] = {-1, CFX_DIM_UNKNOWN, symbol};
    cfx_tensor *base = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &four, NULL, 1, data, false, NULL,
                                              NULL, NULL, &err);
    cfx_tensor *abstract = cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, &symbol, 1, NULL, &err);
    for (size_t i = 0; i < 3; i++) {
        err.status = CFX_OK;
        CHECK(!cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &wrong[i], NULL, 1, data, false, NULL,
                                      NULL, NULL, &err) && err.status == CFX_E_SHAPE);
        CHECK(!cfx_tensor_view(base, CFX_DTYPE_FLOAT32, &wrong[i], &stride, 1, 0, &err));
        CHECK(!cfx_tensor_new(CFX_DTYPE_FLOAT32, &wrong[i], 1, NULL, &err));
    }
    CHECK_STR_EQ("size 0 of a tensor with data is symbolic", err.message);
    cfx_tensor *view = cfx_tensor_view(abstract, CFX_DTYPE_FLOAT32, &symbol, &stride, 1, 0, &err);
    CHECK(view && cfx_tensor_is_abstract(view));
    cfx_tensor_release(view);
    cfx_tensor_release(abstract);
    cfx_tensor_release(base);
    cfx_dims_free(dims);
}
