/* number.c - integers and floats to text and back, as Python spells them, in any locale.
 *
 * The C library does the arithmetic, but its decimal point depends on the locale. So digits are
 * picked out of what snprintf gives, and strtod only ever sees integers with an exponent.
 */
#include "base_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- integers ------------------------------------------------------------------------------ */

size_t cfxi_base_format_int(int64_t i, char out[CFXI_NUMBER_SIZE])
{
    char text[21];
    size_t at = sizeof text;
    /* Negating in unsigned arithmetic is defined for INT64_MIN too. */
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    text[--at] = '\0';
    do
        text[--at] = (char)('0' + u % 10);
    while (u /= 10);
    if (i < 0)
        *out++ = '-';
    memcpy(out, text + at, sizeof text - at);
    return sizeof text - at - (i >= 0);
}

bool cfxi_base_parse_int(const char *text, size_t size, int64_t *i)
{
    size_t at = 0;
    const bool negative = size && text[0] == '-';
    uint64_t u = 0;
    const uint64_t limit = (uint64_t)INT64_MAX + negative;
    at += negative || (size && text[0] == '+');
    if (at == size)
        return false;
    for (; at < size; at++) {
        const unsigned digit = (unsigned)(unsigned char)text[at] - '0';
        if (digit > 9 || u > (limit - digit) / 10)
            return false;
        u = u * 10 + digit;
    }
    *i = negative ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

/* ---- floats to text ------------------------------------------------------------------------ */

/* The decimal d[0].d[1]d[2]... * 10^exponent. */
typedef struct decimal {
    char digits[24];
    int n;
    int exponent;
} decimal;

/* The `precision` digits nearest to `f` (finite, positive). */
static void decimal_nearest(decimal *d, double f, int precision)
{
    char text[48];
    snprintf(text, sizeof text, "%.*e", precision - 1, f);
    const char *at = text;
    d->n = 0;
    for (; *at != 'e'; at++) {
        if (cfxi_base_is_digit(*at))
            d->digits[d->n++] = *at;
    }
    d->exponent = atoi(at + 1);
}

/* The next larger decimal of as many digits. */
static void decimal_increment(decimal *d)
{
    int i = d->n - 1;
    while (i >= 0 && d->digits[i] == '9')
        d->digits[i--] = '0';
    if (i >= 0) {
        d->digits[i]++;
        return;
    }
    d->digits[0] = '1'; /* 999 became 1000: the zeros after it are there already */
    d->exponent++;
}

static double decimal_value(const decimal *d)
{
    char text[48];
    snprintf(text, sizeof text, "%.*se%d", d->n, d->digits, d->exponent - (d->n - 1));
    return strtod(text, NULL);
}

/* The shortest decimal that reads back as `f`, and of those the nearest to it.
 *
 * Up to 15 digits survive the way through a normal double, so the 15 nearest digits less their
 * trailing zeros are the shortest if they read back at all. Subnormals have fewer digits, so all
 * lengths are tried. Below a power of two the doubles lie twice as dense as above it: there the
 * nearest decimal may belong to the neighbour below while the next one up still reads back. */
static void decimal_shortest(decimal *d, double f)
{
    int unused;
    const bool power_of_two = frexp(f, &unused) == 0.5;
    for (int precision = f < 2.2250738585072014e-308 ? 1 : 15; precision <= 17; precision++) {
        decimal_nearest(d, f, precision);
        if (decimal_value(d) == f)
            break;
        if (power_of_two) {
            decimal_increment(d);
            if (decimal_value(d) == f)
                break;
        }
    }
    while (d->n > 1 && d->digits[d->n - 1] == '0')
        d->n--;
}

/* "12.5", "0.001", "100.0": for exponents from -4 to 15. */
static size_t write_fixed(const decimal *d, char *out)
{
    size_t size = 0;
    if (d->exponent < 0) {
        out[size++] = '0';
        out[size++] = '.';
        for (int i = -1; i > d->exponent; i--)
            out[size++] = '0';
    }
    for (int i = 0; i < d->n || i <= d->exponent; i++) {
        out[size++] = i < d->n ? d->digits[i] : '0';
        if (i == d->exponent) {
            out[size++] = '.';
            if (i + 1 >= d->n)
                out[size++] = '0';
        }
    }
    return size;
}

/* "1e+16", "1.5e-07". */
static size_t write_scientific(const decimal *d, char *out)
{
    size_t size = 0;
    out[size++] = d->digits[0];
    if (d->n > 1)
        out[size++] = '.';
    for (int i = 1; i < d->n; i++)
        out[size++] = d->digits[i];
    return size + (size_t)snprintf(out + size, 8, "e%c%02d", d->exponent < 0 ? '-' : '+',
                                   abs(d->exponent));
}

size_t cfxi_base_format_float(double f, char out[CFXI_NUMBER_SIZE])
{
    size_t size = 0;
    if (isnan(f)) {
        memcpy(out, "nan", 4);
        return 3;
    }
    if (signbit(f))
        out[size++] = '-';
    f = fabs(f);
    if (isinf(f)) {
        memcpy(out + size, "inf", 4);
        return size + 3;
    }
    if (f < 1e15 && f == (double)(int64_t)f) { /* whole numbers need no search */
        size += cfxi_base_format_int((int64_t)f, out + size);
        memcpy(out + size, ".0", 3);
        return size + 2;
    }
    decimal d;
    decimal_shortest(&d, f);
    if (d.exponent >= -4 && d.exponent < 16)
        size += write_fixed(&d, out + size);
    else
        size += write_scientific(&d, out + size);
    out[size] = '\0';
    return size;
}

/* ---- text to floats ------------------------------------------------------------------------ */

/* Exact halves between two doubles have up to 767 digits; of what lies beyond, it only matters
 * whether it is zero. */
enum { KEPT_DIGITS = 780 };

typedef struct float_digits {
    char text[KEPT_DIGITS + 16];
    size_t n;
    bool more;        /* a non-zero digit was not kept */
    long long shift;  /* the value is text * 10^shift */
} float_digits;

static void add_digit(float_digits *d, char c, bool fraction)
{
    if (d->n == 0 && c == '0') { /* a leading zero */
        d->shift -= fraction;
        return;
    }
    if (d->n < KEPT_DIGITS) {
        d->text[d->n++] = c;
        d->shift -= fraction;
        return;
    }
    d->more = d->more || c != '0';
    d->shift += !fraction;
}

/* Reads "e-12" at *at; leaves it alone if there is no exponent. False if it is malformed. */
static bool read_exponent(const char *text, size_t size, size_t *at, long long *exponent)
{
    *exponent = 0;
    if (*at == size || (text[*at] | 32) != 'e')
        return true;
    size_t i = *at + 1;
    const bool negative = i < size && text[i] == '-';
    i += i < size && (text[i] == '-' || text[i] == '+');
    const size_t first = i;
    for (; i < size && cfxi_base_is_digit(text[i]); i++) {
        if (*exponent < 1000000000000000LL)
            *exponent = *exponent * 10 + (text[i] - '0');
    }
    if (negative)
        *exponent = -*exponent;
    *at = i;
    return i > first;
}

static bool parse_special(const char *text, size_t size, double *f)
{
    static const struct {
        const char *name;
        double value;
    } special[] = {{"inf", INFINITY}, {"infinity", INFINITY}, {"nan", NAN}};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (strlen(special[i].name) != size || memcmp(special[i].name, text, size) != 0)
            continue;
        *f = special[i].value;
        return true;
    }
    return false;
}

static double digits_value(float_digits *d, long long exponent)
{
    if (d->n == 0)
        return 0.0;
    exponent += d->shift;
    if (d->more) { /* a digit more breaks the tie, whatever its value */
        d->text[d->n++] = '1';
        exponent--;
    }
    if (exponent > 9999)
        exponent = 9999;
    if (exponent < -9999)
        exponent = -9999;
    snprintf(d->text + d->n, sizeof d->text - d->n, "e%d", (int)exponent);
    return strtod(d->text, NULL);
}

bool cfxi_base_parse_float(const char *text, size_t size, double *f)
{
    const bool negative = size && text[0] == '-';
    size_t at = negative || (size && text[0] == '+');
    float_digits digits = {.n = 0};
    size_t count = 0;
    bool fraction = false;
    long long exponent;
    if (parse_special(text + at, size - at, f)) {
        *f = negative ? -*f : *f;
        return true;
    }
    for (; at < size && (cfxi_base_is_digit(text[at]) || (text[at] == '.' && !fraction)); at++) {
        if (text[at] == '.') {
            fraction = true;
            continue;
        }
        add_digit(&digits, text[at], fraction);
        count++;
    }
    if (count == 0 || !read_exponent(text, size, &at, &exponent) || at != size)
        return false;
    *f = digits_value(&digits, exponent);
    *f = negative ? -*f : *f;
    return true;
}
