/* identifier.c - tests of what may be a name. */
#include "check.h"

#include "base/base_impl.h"

static bool is_plain(const char *text) { return cfxi_base_is_identifier(text, strlen(text)); }

static bool is_python(const char *text)
{
    return cfxi_base_is_python_identifier(text, strlen(text));
}

static bool is_keyword(const char *text) { return cfxi_base_is_keyword(text, strlen(text)); }

TEST(ascii_identifiers)
{
    CHECK(is_plain("_a1"));
    CHECK(is_plain("class"));
    CHECK(!is_plain(""));
    CHECK(!is_plain("1a"));
    CHECK(!is_plain("a.b"));
    CHECK(!is_plain("\xc3\xa9"));
    CHECK_INT_EQ(3, cfxi_base_identifier_size("cpu:0", 5));
    CHECK_INT_EQ(0, cfxi_base_identifier_size("0x", 2));
    CHECK_INT_EQ(2, cfxi_base_identifier_size("abc", 2));
}

TEST(identifiers_of_python)
{
    CHECK(is_python("_a1"));
    CHECK(is_python("\xc3\xa9t\xc3\xa9"));         /* letters beyond ASCII */
    CHECK(is_python("\xe5\xb1\xa4"));
    CHECK(!is_python(""));
    CHECK(!is_python("1a"));
    CHECK(!is_python("a b"));
    CHECK(!is_python("\xc3\x97"));                 /* a multiplication sign */
    CHECK(!is_python("a\xf0\x9f\x98\x80"));        /* an emoji */
    CHECK(!is_python("a\xff"));
}

TEST(every_letter_may_be_one)
{
    for (uint32_t code = 0x80; code < 0x32000; code++)
        if (cfxi_base_is_letter(code) && !CHECK(cfxi_base_may_be_letter(code)))
            printf("U+%04X\n", (unsigned)code);
    CHECK(!cfxi_base_may_be_letter(0xd7));
    CHECK(!cfxi_base_may_be_letter(0x1f600));
}

TEST(keywords)
{
    static const char *const all[] = {
#define KEYWORD(word) #word,
#define SOFT(word)
#include "base/keyword.def"
#undef KEYWORD
#undef SOFT
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CHECK(is_keyword(all[i]));
        CHECK(i == 0 || strcmp(all[i - 1], all[i]) < 0);
    }
    CHECK(!is_keyword(""));
    CHECK(!is_keyword("i"));
    CHECK(!is_keyword("iff"));
    CHECK(!is_keyword("match"));  /* only in some places */
    CHECK(!is_keyword("nonlocals"));
    CHECK(cfxi_base_is_keyword("iff", 2));
}
