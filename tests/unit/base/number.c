/* number.c - tests of src/base/number.c. */
#include "base/base_impl.h"
#include "check.h"

#include <locale.h>
#include <math.h>

static const char *float_text(double f)
{
    static char text[CFXI_NUMBER_SIZE];
    if (cfxi_base_format_float(f, text) != strlen(text))
        return "the length is wrong";
    return text;
}

static uint64_t bits_of(double f)
{
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Python's repr of each. */
static const struct {
    double f;
    const char *text;
} floats[] = {
    {0.0, "0.0"}, {-0.0, "-0.0"}, {1.0, "1.0"}, {-1.5, "-1.5"}, {0.1, "0.1"}, {1e-4, "0.0001"},
    {1e-5, "1e-05"}, {1.5e-7, "1.5e-07"}, {1e15, "1000000000000000.0"}, {1e16, "1e+16"},
    {9999999999999998.0, "9999999999999998.0"}, {123456789012345680.0, "1.2345678901234568e+17"},
    {1e22, "1e+22"}, {1e100, "1e+100"}, {1.7976931348623157e308, "1.7976931348623157e+308"},
    {2.2250738585072014e-308, "2.2250738585072014e-308"}, {4.9406564584124654e-324, "5e-324"},
    {2.2250738585072009e-308, "2.225073858507201e-308"}, {0x1p-44, "5.684341886080802e-14"},
    {0x1p-1, "0.5"}, {0x1p60, "1.152921504606847e+18"}, {1.0 / 3, "0.3333333333333333"},
    {2.0 / 3, "0.6666666666666666"}, {5e-324, "5e-324"}, {12345.678, "12345.678"},
    {0x1p-1022, "2.2250738585072014e-308"}, {9007199254740993.0, "9007199254740992.0"},
    {INFINITY, "inf"}, {-INFINITY, "-inf"}, {NAN, "nan"},
};

TEST(floats_are_spelled_as_python_does)
{
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        double back = 0;
        CHECK_STR_EQ(floats[i].text, float_text(floats[i].f));
        CHECK(cfxi_base_parse_float(floats[i].text, strlen(floats[i].text), &back));
        CHECK(bits_of(back) == bits_of(floats[i].f) || isnan(back));
    }
}

TEST(random_floats_come_back)
{
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const double f = from_bits(i % 4 ? state : state >> 12); /* subnormals too */
        double back = 0;
        if (isnan(f))
            continue;
        const char *text = float_text(f);
        if (!CHECK(cfxi_base_parse_float(text, strlen(text), &back)) ||
            !CHECK(bits_of(back) == bits_of(f)))
            return;
    }
}

TEST(powers_of_two_come_back)
{
    for (int e = -1074; e < 1024; e++) {
        const double f = ldexp(1.0, e);
        double back = 0;
        const char *text = float_text(f);
        CHECK(cfxi_base_parse_float(text, strlen(text), &back) && back == f);
    }
}

TEST(many_spellings_are_read)
{
    static const struct {
        const char *text;
        double f;
    } good[] = {{"1", 1}, {".5", 0.5}, {"1.", 1}, {"+1e3", 1000}, {"1E-2", 0.01}, {"000.1", 0.1},
                {"1e400", INFINITY}, {"-1e-400", -0.0}, {"0e999999999999999999999", 0},
                {"infinity", INFINITY}, {"1e0000000000000000000001", 10},
                {"9007199254740993.0000000000000000000000000000001", 9007199254740994.0}};
    static const char *const bad[] = {"", ".", "e5", "1e", "1e+", "1..2", "1 ", " 1", "0x1", "--1",
                                      "1_0", "Inf", "1.2.3", "nanny"};
    double f;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(cfxi_base_parse_float(good[i].text, strlen(good[i].text), &f) &&
              bits_of(f) == bits_of(good[i].f));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!cfxi_base_parse_float(bad[i], strlen(bad[i]), &f));
}

TEST(long_digits_round_as_a_whole)
{
    static char text[4000];
    double f;
    /* 2^53 + 1 lies half-way; a far digit decides. */
    size_t n = (size_t)snprintf(text, sizeof text, "9007199254740993.");
    memset(text + n, '0', 2000);
    CHECK(cfxi_base_parse_float(text, n + 2000, &f) && f == 9007199254740992.0);
    text[n + 1999] = '1';
    CHECK(cfxi_base_parse_float(text, n + 2000, &f) && f == 9007199254740994.0);
    memset(text, '1', 3000);
    CHECK(cfxi_base_parse_float(text, 3000, &f) && isinf(f));
}

TEST(integers)
{
    char text[CFXI_NUMBER_SIZE];
    int64_t i = 0;
    CHECK_INT_EQ(20, cfxi_base_format_int(INT64_MIN, text));
    CHECK_STR_EQ("-9223372036854775808", text);
    CHECK(cfxi_base_parse_int(text, 20, &i) && i == INT64_MIN);
    cfxi_base_format_int(INT64_MAX, text);
    CHECK_STR_EQ("9223372036854775807", text);
    CHECK(cfxi_base_parse_int(text, 19, &i) && i == INT64_MAX);
    CHECK(cfxi_base_parse_int("-0", 2, &i) && i == 0);
    CHECK(cfxi_base_parse_int("007", 3, &i) && i == 7);
    CHECK(!cfxi_base_parse_int("9223372036854775808", 19, &i));
    CHECK(!cfxi_base_parse_int("-9223372036854775809", 20, &i));
    CHECK(!cfxi_base_parse_int("99999999999999999999999", 23, &i));
    CHECK(!cfxi_base_parse_int("", 0, &i));
    CHECK(!cfxi_base_parse_int("-", 1, &i));
    CHECK(!cfxi_base_parse_int("1x", 2, &i));
}

TEST(the_locale_does_not_matter)
{
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"};
    double f;
    for (size_t i = 0; i < 3 && !setlocale(LC_NUMERIC, commas[i]); i++)
        ;
    CHECK_STR_EQ("1.5e-07", float_text(1.5e-7));
    CHECK_STR_EQ("0.1", float_text(0.1));
    CHECK(cfxi_base_parse_float("1.25", 4, &f) && f == 1.25);
    setlocale(LC_NUMERIC, "C");
}
