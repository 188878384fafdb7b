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

TEST(what_python_would_change_is_not_a_name)
{
    CHECK(!is_python("\xc2\xaa"));                 /* it reads this as `a` */
    CHECK(!is_python("\xef\xbd\x81"));             /* and this: a wide `a` */
    CHECK(!is_python("e\xcc\x81"));                /* an accent of its own joins the letter */
    CHECK(!is_python("a\xe2\x80\xae"));           /* turns the text around */
    CHECK(!cfxi_base_is_python_identifier("a\0b", 3));
}

static bool is_name(const char *text) { return cfxi_base_is_python_name(text, strlen(text)); }
static bool is_path(const char *text) { return cfxi_base_is_python_path(text, strlen(text)); }
static bool is_parameter(const char *text)
{
    return cfxi_base_is_python_parameter(text, strlen(text));
}

TEST(names_paths_and_parameters)
{
    CHECK(is_name("match") && is_name("__x__"));
    CHECK(!is_name("for") && !is_name("__debug__") && !is_name("a.b") && !is_name("a\n"));
    CHECK(is_path("a") && is_path("torch.ops.aten.random.from"));
    CHECK(!is_path("") && !is_path("a.") && !is_path(".a") && !is_path("a..b"));
    CHECK(!is_path("for.a"));
    CHECK(!is_path("a.b()") && !is_path("a b") && !is_path("a;b"));
    CHECK(is_parameter("x") && is_parameter("*x") && is_parameter("**x"));
    CHECK(!is_parameter("***x") && !is_parameter("*") && !is_parameter("x=1") && !is_parameter(""));
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
