/* format_spec.c - Python's little language of formats: ">8.2f" and its like. */
#include "base_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------- */

/* Digits up to a bound that no sane program passes. */
bool cfxi_base_spec_digits(const char **at, const char *end, int *n)
{
    *n = 0;
    while (*at < end && cfxi_base_is_digit(**at)) {
        if (*n > 100000)
            return false;
        *n = *n * 10 + (*(*at)++ - '0');
    }
    return true;
}

bool cfxi_base_spec_read(const char *at, size_t size, cfxi_spec *s)
{
    const char *end = at + size;
    uint32_t code;
    const size_t first = cfxi_base_utf8_decode(at, size, &code);
    *s = (cfxi_spec){.fill = " ", .fill_size = 1, .precision = -1};
    if (first && size > first && strchr("<>=^", at[first])) {
        memcpy(s->fill, at, first);
        s->fill_size = first;
        s->align = at[first];
        at += first + 1;
    } else if (size > 0 && strchr("<>=^", *at)) {
        s->align = *at++;
    }
    if (at < end && strchr("+- ", *at))
        s->sign = *at++;
    if (at < end && *at == '#') {
        s->alternate = true;
        at++;
    }
    if (at < end && *at == '0') {
        s->zero = true;
        at++;
    }
    if (!cfxi_base_spec_digits(&at, end, &s->width))
        return false;
    if (at < end && (*at == ',' || *at == '_'))
        s->group = *at++;
    if (at < end && *at == '.') {
        at++;
        if (at == end || !cfxi_base_is_digit(*at) ||
            !cfxi_base_spec_digits(&at, end, &s->precision))
            return false;
    }
    if (at < end)
        s->type = *at++;
    if (s->zero && !s->align) {
        s->align = '=';
        s->fill[0] = '0';
        s->fill_size = 1;
    }
    return at == end;
}

/* ---- writing ------------------------------------------------------------------------------- */

static cfx_status put(cfx_buffer *out, const char *text, size_t size, cfx_error *err)
{
    return cfx_buffer_append(out, text, size) == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
}

static cfx_status unknown_code(const cfxi_spec *s, const char *type, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_VALUE, "Unknown format code '%c' for object of type '%s'",
                         s->type, type);
}

/* `sign` (and prefix), then the rest, filled up to the width. */
static cfx_status put_padded(const cfxi_spec *s, const char *sign, const char *text, size_t size,
                             char usual, cfx_buffer *out, cfx_error *err)
{
    const size_t n = strlen(sign) + cfxi_base_text_width(text, size);
    const size_t gap = (size_t)s->width > n ? (size_t)s->width - n : 0;
    const char align = s->align ? s->align : usual;
    const size_t before = align == '<' ? 0 : align == '^' ? gap / 2 : gap;
    if (align == '=')
        CFX_TRY(put(out, sign, strlen(sign), err));
    for (size_t i = 0; i < before; i++)
        CFX_TRY(put(out, s->fill, s->fill_size, err));
    if (align != '=')
        CFX_TRY(put(out, sign, strlen(sign), err));
    CFX_TRY(put(out, text, size, err));
    for (size_t i = before; i < gap; i++)
        CFX_TRY(put(out, s->fill, s->fill_size, err));
    return CFX_OK;
}

/* Digits with a separator after every `every` of them, counted from `whole`, where they end. With
 * zeros as filling, as many as the width has room for. */
static cfx_status group_digits(const cfxi_spec *s, const char *text, size_t size, size_t whole,
                               size_t sign_size, size_t every, cfx_buffer *to, cfx_error *err)
{
    size_t zeros = 0;
    if (s->align == '=' && s->fill[0] == '0')
        while (sign_size + zeros + whole + (zeros + whole) / every + (size - whole) <=
               (size_t)s->width)
            zeros++;
    while (zeros > 0 && (zeros + whole) + (zeros + whole - 1) / every + sign_size +
           (size - whole) > (size_t)s->width && zeros + whole > 1 &&
           (zeros + whole - 1) % every == 0)
        zeros--;
    const size_t all = zeros + whole;
    for (size_t i = 0; i < all; i++) {
        if (i > 0 && (all - i) % every == 0)
            CFX_TRY(put(to, &s->group, 1, err));
        CFX_TRY(put(to, i < zeros ? "0" : text + i - zeros, 1, err));
    }
    return put(to, text + whole, size - whole, err);
}

static cfx_status put_number(const cfxi_spec *s, const char *sign, const char *text, size_t size,
                             size_t whole, size_t every, cfx_buffer *out, cfx_error *err)
{
    cfx_buffer grouped;
    if (!s->group)
        return put_padded(s, sign, text, size, '>', out, err);
    cfx_buffer_init(&grouped, out->allocator);
    cfx_status status = group_digits(s, text, size, whole, strlen(sign), every, &grouped, err);
    if (status == CFX_OK)
        status = put_padded(s, sign, grouped.data, grouped.size, '>', out, err);
    cfx_buffer_free(&grouped);
    return status;
}

static const char *sign_of(const cfxi_spec *s, bool negative)
{
    return negative ? "-" : s->sign == '+' ? "+" : s->sign == ' ' ? " " : "";
}

/* ---- integers ------------------------------------------------------------------------------ */

cfx_status cfxi_base_spec_int(const cfxi_spec *s, int64_t i, cfx_buffer *out, cfx_error *err)
{
    char digits[80];
    char sign[8];
    const unsigned base = s->type == 'b' ? 2 : s->type == 'o' ? 8
                          : s->type == 'x' || s->type == 'X' ? 16 : 10;
    const char *letters = s->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    size_t at = sizeof digits;
    uint64_t rest = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    if (s->type && strchr("eEfFgG%", s->type))
        return cfxi_base_spec_float(s, (double)i, out, err);
    if (s->type && !strchr("bcdoxXn", s->type))
        return unknown_code(s, "int", err);
    if (s->precision >= 0)
        return cfx_error_set(err, CFX_E_VALUE, "Precision not allowed in integer format "
                             "specifier");
    if (s->type == 'c') {
        char utf8[4];
        const size_t n = cfxi_base_utf8_encode((uint32_t)i, utf8);
        return put_padded(s, "", utf8, n, '<', out, err);
    }
    do {
        digits[--at] = letters[rest % base];
        rest /= base;
    } while (rest);
    snprintf(sign, sizeof sign, "%s%s", sign_of(s, i < 0),
             !s->alternate || base == 10 ? "" : base == 2 ? "0b" : base == 8 ? "0o"
             : s->type == 'X' ? "0X" : "0x");
    return put_number(s, sign, digits + at, sizeof digits - at, sizeof digits - at,
                      base == 10 ? 3 : 4, out, err);
}

/* ---- floats -------------------------------------------------------------------------------- */

/* printf's text, whatever the locale's decimal point is. */
static size_t plain_point(char *text)
{
    size_t n = 0;
    for (const char *c = text; *c; c++)
        if (cfxi_base_is_ident(*c) || *c == '-' || *c == '+')
            text[n++] = *c;
        else if (n == 0 || text[n - 1] != '.')
            text[n++] = '.';
    text[n] = '\0';
    return n;
}

enum { MOST_DIGITS = 400, FLOAT_SIZE = 320 + MOST_DIGITS };

/* |f| by printf's rules, with Python's: no type is 'g' with at least one digit behind the point. */
static size_t float_digits(const cfxi_spec *s, double f, char out[FLOAT_SIZE])
{
    char format[8] = "%.*f";
    int precision = s->precision < 0 ? 6 : s->precision;
    const char type = s->type == 0 ? 'g' : s->type == 'n' ? 'g' : s->type == '%' ? 'f' : s->type;
    if (isinf(f) || isnan(f))
        return (size_t)snprintf(out, FLOAT_SIZE, "%s", isnan(f)
                                ? (type == 'F' || type == 'E' || type == 'G' ? "NAN" : "nan")
                                : type == 'F' || type == 'E' || type == 'G' ? "INF" : "inf");
    if (s->type == 0 && s->precision < 0)
        return cfxi_base_format_float(f, out);
    if (precision == 0 && type == 'g')
        precision = 1;
    snprintf(format, sizeof format, "%%%s.*%c", s->alternate ? "#" : "", type);
    snprintf(out, FLOAT_SIZE, format, precision, f);
    size_t n = plain_point(out);
    if (s->type != 0 || strpbrk(out, ".e"))
        return n;
    if ((int)n >= precision && precision > 0) {  /* 123456.0 at 6 digits is 1.23456e+05 */
        snprintf(out, FLOAT_SIZE, "%.*e", precision - 1, f);
        n = plain_point(out);
        char *e = strchr(out, 'e');
        char *last = e;
        while (last > out && last[-1] == '0' && memchr(out, '.', (size_t)(last - out)))
            last--;
        last -= last > out && last[-1] == '.';
        memmove(last, e, strlen(e) + 1);
        return strlen(out);
    }
    return n + (size_t)snprintf(out + n, 3, ".0");
}

cfx_status cfxi_base_spec_float(const cfxi_spec *s, double f, cfx_buffer *out, cfx_error *err)
{
    char digits[FLOAT_SIZE + 4];
    if (s->type && !strchr("eEfFgGn%", s->type))
        return unknown_code(s, "float", err);
    if (s->precision > MOST_DIGITS)
        return cfx_error_set(err, CFX_E_VALUE, "precision too big");
    const double shown = fabs(s->type == '%' ? f * 100 : f);
    size_t n = float_digits(s, shown, digits);
    if (s->type == '%')
        digits[n++] = '%';
    const size_t whole = strspn(digits, "0123456789");
    if (whole == 0) {  /* inf and nan have nothing to group */
        cfxi_spec plain = *s;
        plain.group = 0;
        return put_number(&plain, sign_of(s, signbit(f) && !isnan(f)), digits, n, 0, 3, out, err);
    }
    return put_number(s, sign_of(s, signbit(f) && !isnan(f)), digits, n, whole, 3, out, err);
}

/* ---- texts --------------------------------------------------------------------------------- */

cfx_status cfxi_base_spec_text(const cfxi_spec *s, const char *text, size_t size, cfx_buffer *out,
                               cfx_error *err)
{
    size_t shown = s->precision < 0 ? size : 0;
    uint32_t code;
    if (s->type && s->type != 's')
        return unknown_code(s, "str", err);
    if (s->sign || s->align == '=')
        return cfx_error_set(err, CFX_E_VALUE, s->sign
                             ? "Sign not allowed in string format specifier"
                             : "'=' alignment not allowed in string format specifier");
    for (int k = 0; k < s->precision && shown < size; k++) {
        const size_t n = cfxi_base_utf8_decode(text + shown, size - shown, &code);
        shown += n ? n : 1;
    }
    return put_padded(s, "", text, shown, '<', out, err);
}
