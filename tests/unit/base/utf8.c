/* utf8.c - tests of src/base/utf8.c. */
#include "base/base_impl.h"
#include "check.h"

static char result[512];

static cfx_status to_result(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    if (size < sizeof result) {
        memcpy(result, data, size);
        result[size] = '\0';
    }
    return CFX_OK;
}

static const char *repr(const char *text, size_t size, bool bytes)
{
    cfxi_out out;
    result[0] = '\0';
    cfxi_base_out_begin(&out, (cfx_sink){to_result, NULL});
    if (bytes)
        cfxi_base_out_repr_bytes(&out, text, size);
    else
        cfxi_base_out_repr_str(&out, text, size);
    cfxi_base_out_end(&out, NULL);
    return result;
}

#define REPR(text_) repr(text_, sizeof text_ - 1, false)
#define BYTES(text_) repr(text_, sizeof text_ - 1, true)

TEST(every_character_comes_back)
{
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char text[4];
        uint32_t back = 1;
        const size_t n = cfxi_base_utf8_encode(code, text);
        if (cfxi_base_utf8_decode(text, n, &back) != n || back != code) {
            CHECK_INT_EQ(code, back);
            return;
        }
        if (n > 1 && cfxi_base_utf8_decode(text, n - 1, &back) != 0) {
            CHECK_INT_EQ(0, code);
            return;
        }
    }
}

TEST(what_is_not_utf8)
{
    static const char *const bad[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80",
                                      "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3",
                                      "\xe2\x82", "\xf0\x9f\x98", "a\xc3(", "\xfe"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!cfxi_base_utf8_valid(bad[i], strlen(bad[i])));
    CHECK(cfxi_base_utf8_valid("", 0));
    CHECK(cfxi_base_utf8_valid("a\0b", 3));
    CHECK(cfxi_base_utf8_valid("\xed\xa0\x80", 3)); /* a lone surrogate */
    CHECK(cfxi_base_utf8_valid("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9));
}

TEST(strings_as_python_shows_them)
{
    CHECK_STR_EQ("''", REPR(""));
    CHECK_STR_EQ("'abc'", REPR("abc"));
    CHECK_STR_EQ("\"it's\"", REPR("it's"));
    CHECK_STR_EQ("'say \"hi\"'", REPR("say \"hi\""));
    CHECK_STR_EQ("'it\\'s \"both\"'", REPR("it's \"both\""));
    CHECK_STR_EQ("'\\t\\n\\r\\\\\\x00\\x1b\\x7f'", REPR("\t\n\r\\\0\x1b\x7f"));
    CHECK_STR_EQ("'\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'",
                 REPR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
    CHECK_STR_EQ("'\\x80\\xa0\\xad\\u200b\\ufeff\\ud800\\U000e0001'",
                 REPR("\xc2\x80\xc2\xa0\xc2\xad\xe2\x80\x8b\xef\xbb\xbf\xed\xa0\x80"
                      "\xf3\xa0\x80\x81"));
}

TEST(bytes_as_python_shows_them)
{
    CHECK_STR_EQ("b''", BYTES(""));
    CHECK_STR_EQ("b'a\\x00\\xff\\n'", BYTES("a\0\xff\n"));
    CHECK_STR_EQ("b\"it's\"", BYTES("it's"));
    CHECK_STR_EQ("b'\\'\"'", BYTES("'\""));
}

TEST(printable_and_width)
{
    CHECK(cfxi_base_is_printable(' ') && cfxi_base_is_printable('~') &&
          cfxi_base_is_printable(0xe9));
    CHECK(!cfxi_base_is_printable(0) && !cfxi_base_is_printable(0x7f) &&
          !cfxi_base_is_printable(0xa0));
    CHECK(!cfxi_base_is_printable(0xd800) && !cfxi_base_is_printable(0x10ffff));
    CHECK(cfxi_base_is_printable(0x1f600) && !cfxi_base_is_printable(0x3000));
    CHECK_INT_EQ(3, cfxi_base_text_width("a\xc3\xa9\xe2\x82\xac", 6));
}
