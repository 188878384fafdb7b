/* json_write.c - tests of the JSON writer: commas, brackets, escapes. */
#include "test_alloc.h"

#include "base/base_impl.h"

static cfx_status write_sample(cfxi_out *out, bool compact)
{
    cfxi_json_out j;
    cfxi_base_json_begin(&j, out, compact);
    cfxi_base_json_open(&j, '{');
    cfxi_base_json_field(&j, "a");
    cfxi_base_json_int(&j, -3);
    cfxi_base_json_field(&j, "b");
    cfxi_base_json_open(&j, '[');
    cfxi_base_json_close(&j, ']');
    cfxi_base_json_key(&j, "c d", 3);
    cfxi_base_json_open(&j, '[');
    cfxi_base_json_float(&j, 0.5);
    cfxi_base_json_raw(&j, "null", 4);
    cfxi_base_json_open(&j, '{');
    cfxi_base_json_close(&j, '}');
    cfxi_base_json_string(&j, "x", 1);
    cfxi_base_json_close(&j, ']');
    cfxi_base_json_field(&j, "e");
    cfxi_base_json_raw(&j, "true", 4);
    cfxi_base_json_close(&j, '}');
    return cfxi_base_out_end(out, NULL);
}

static void check_sample(bool compact, const char *expected)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_buffer text;
    cfxi_out out;
    cfx_buffer_init(&text, &a);
    cfxi_base_out_begin(&out, cfx_buffer_sink(&text));
    REQUIRE(write_sample(&out, compact) == CFX_OK);
    CHECK_STR_EQ(expected, text.data);
    cfx_buffer_free(&text);
    test_alloc_check(&ta);
}

TEST(commas_and_colons)
{
    check_sample(false, "{\"a\": -3, \"b\": [], \"c d\": [0.5, null, {}, \"x\"], \"e\": true}");
}

TEST(without_spaces)
{
    check_sample(true, "{\"a\":-3,\"b\":[],\"c d\":[0.5,null,{},\"x\"],\"e\":true}");
}

TEST(items_on_lines_of_their_own)
{
    cfx_buffer text;
    cfxi_out out;
    cfxi_json_out j;
    cfx_buffer_init(&text, NULL);
    cfxi_base_out_begin(&out, cfx_buffer_sink(&text));
    cfxi_base_json_begin(&j, &out, false);
    cfxi_base_json_open(&j, '[');
    for (int i = 0; i < 2; i++) {
        cfxi_base_json_line(&j);
        cfxi_base_json_open(&j, '[');
        cfxi_base_json_int(&j, i);
        cfxi_base_json_int(&j, i);
        cfxi_base_json_close(&j, ']');
    }
    cfxi_base_json_close(&j, ']');
    REQUIRE(cfxi_base_out_end(&out, NULL) == CFX_OK);
    CHECK_STR_EQ("[\n [0, 0],\n [1, 1]]", text.data);
    cfx_buffer_free(&text);
}

TEST(escapes)
{
    const char in[] = "\"\\\n\t\x7f\0\xc3\xa4\xed\xa0\x80\xff.";
    cfx_buffer text;
    cfxi_out out;
    cfx_buffer_init(&text, NULL);
    cfxi_base_out_begin(&out, cfx_buffer_sink(&text));
    cfxi_base_json_text(&out, in, sizeof in - 1);
    REQUIRE(cfxi_base_out_end(&out, NULL) == CFX_OK);
    CHECK_STR_EQ("\"\\\"\\\\\\n\\u0009\\u007f\\u0000\xc3\xa4\\ud800\\ufffd.\"", text.data);
    cfx_buffer_free(&text);
}

static cfx_status write_long(const cfx_allocator *a, void *arg)
{
    cfx_buffer text;
    cfxi_out out;
    cfxi_json_out j;
    (void)arg;
    cfx_buffer_init(&text, a);
    cfxi_base_out_begin(&out, cfx_buffer_sink(&text));
    cfxi_base_json_begin(&j, &out, false);
    cfxi_base_json_open(&j, '[');
    for (int i = 0; i < 5000; i++)
        cfxi_base_json_int(&j, i);
    cfxi_base_json_close(&j, ']');
    const cfx_status status = cfxi_base_out_end(&out, NULL);
    cfx_buffer_free(&text);
    return status;
}

TEST(out_of_memory) { CHECK(test_oom_sweep(write_long, NULL) > 1); }
