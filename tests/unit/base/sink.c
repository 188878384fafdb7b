/* sink.c - tests of src/base/sink.c. */
#include "base/base_impl.h"
#include "test_alloc.h"

static cfx_status append_much(const cfx_allocator *a, void *arg)
{
    cfx_buffer b;
    cfx_status status = CFX_OK;
    (void)arg;
    cfx_buffer_init(&b, a);
    for (int i = 0; i < 100 && status == CFX_OK; i++)
        status = cfx_buffer_append(&b, "0123456789", 10);
    if (status == CFX_OK)
        CHECK_INT_EQ(1000, b.size);
    cfx_buffer_free(&b);
    return status;
}

TEST(buffer_grows_and_ends_with_zero)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_buffer b;
    cfx_buffer_init(&b, &a);
    CHECK_STR_EQ("", b.data);
    CHECK_INT_EQ(CFX_OK, cfx_buffer_append(&b, NULL, 0));
    CHECK_INT_EQ(0, ta.count);
    for (int i = 0; i < 1000; i++)
        cfx_buffer_append(&b, "ab\0c", 4);
    CHECK_INT_EQ(4000, b.size);
    CHECK_INT_EQ(0, b.data[4000]);
    CHECK(memcmp(b.data + 3996, "ab\0c", 4) == 0);
    cfx_buffer_free(&b);
    CHECK_STR_EQ("", b.data);
    CHECK_INT_EQ(CFX_OK, cfx_buffer_append(&b, "x", 1));
    CHECK_STR_EQ("x", b.data);
    cfx_buffer_free(&b);
    test_alloc_check(&ta);
}

TEST(reserving_makes_later_appends_free)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_buffer b;
    cfx_buffer_init(&b, &a);
    CHECK_INT_EQ(CFX_OK, cfx_buffer_append(&b, "abc", 3));
    CHECK_INT_EQ(CFX_OK, cfx_buffer_reserve(&b, 1000));
    CHECK_STR_EQ("abc", b.data);
    const size_t count = ta.count;
    for (int i = 0; i < 100; i++)
        CHECK_INT_EQ(CFX_OK, cfx_buffer_append(&b, "0123456789", 10));
    CHECK_INT_EQ(count, ta.count);
    CHECK_INT_EQ(CFX_E_NOMEM, cfx_buffer_reserve(&b, SIZE_MAX));
    CHECK_INT_EQ(1003, b.size);
    cfx_buffer_free(&b);
    test_alloc_check(&ta);
}

TEST(buffer_reports_lack_of_memory)
{
    CHECK(test_oom_sweep(append_much, NULL) > 1);
    cfx_buffer b;
    cfx_buffer_init(&b, NULL);
    CHECK_INT_EQ(CFX_E_NOMEM, cfx_buffer_append(&b, "x", SIZE_MAX));
    cfx_buffer_free(&b);
}

TEST(out_keeps_the_order_of_small_and_large_pieces)
{
    cfx_buffer b;
    cfxi_out out;
    char large[5000];
    memset(large, 'L', sizeof large);
    cfx_buffer_init(&b, NULL);
    cfxi_base_out_begin(&out, cfx_buffer_sink(&b));
    cfxi_base_out_str(&out, "a");
    cfxi_base_out_write(&out, large, sizeof large);
    for (int i = 0; i < 5000; i++)
        cfxi_base_out_char(&out, 'c');
    cfxi_base_out_printf(&out, "%d %s", 42, "x");
    cfxi_base_out_spaces(&out, 200);
    cfxi_base_out_str(&out, "end");
    CHECK_INT_EQ(CFX_OK, cfxi_base_out_end(&out, NULL));
    CHECK_INT_EQ(1 + 5000 + 5000 + 4 + 200 + 3, b.size);
    CHECK(b.data[0] == 'a' && b.data[1] == 'L' && b.data[5001] == 'c');
    CHECK_STR_EQ(" end", b.data + b.size - 4);
    cfx_buffer_free(&b);
}

static cfx_status failing_write(void *ctx, const char *data, size_t size)
{
    (void)data;
    (void)size;
    ++*(int *)ctx;
    return CFX_E_IO;
}

TEST(out_stops_at_the_first_failure)
{
    int calls = 0;
    cfxi_out out;
    cfx_error err = {.status = CFX_OK};
    cfxi_base_out_begin(&out, (cfx_sink){failing_write, &calls});
    for (int i = 0; i < 20000; i++)
        cfxi_base_out_char(&out, 'x');
    CHECK_INT_EQ(CFX_E_IO, cfxi_base_out_end(&out, &err));
    CHECK_INT_EQ(1, calls);
    CHECK_INT_EQ(CFX_E_IO, err.status);
}

TEST(out_is_a_sink_itself)
{
    cfx_buffer b;
    cfxi_out out;
    cfx_buffer_init(&b, NULL);
    cfxi_base_out_begin(&out, cfx_buffer_sink(&b));
    const cfx_sink sink = cfxi_base_out_sink(&out);
    CHECK_INT_EQ(CFX_OK, sink.write(sink.ctx, "abc", 3));
    CHECK_INT_EQ(CFX_OK, cfxi_base_out_end(&out, NULL));
    CHECK_STR_EQ("abc", b.data);
    cfx_buffer_free(&b);
}
