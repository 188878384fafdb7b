/* python_numbers.c - Python's arithmetic: integers, floats, complex numbers, and sizes. */
#include "python_impl.h"

#include <math.h>

/* ---- messages ------------------------------------------------------------------------------ */

static const char *symbol_of(cfxi_py_action a)
{
    static const char *const symbols[] = {
        [CFXI_PY_ADD] = "+", [CFXI_PY_SUB] = "-", [CFXI_PY_MUL] = "*", [CFXI_PY_TRUE_DIV] = "/",
        [CFXI_PY_FLOOR_DIV] = "//", [CFXI_PY_MOD] = "%", [CFXI_PY_POW] = "**",
        [CFXI_PY_AND] = "&", [CFXI_PY_OR] = "|", [CFXI_PY_XOR] = "^", [CFXI_PY_SHIFT_LEFT] = "<<",
        [CFXI_PY_SHIFT_RIGHT] = ">>", [CFXI_PY_LT] = "<", [CFXI_PY_LE] = "<=", [CFXI_PY_GT] = ">",
        [CFXI_PY_GE] = ">=", [CFXI_PY_MAX] = "max", [CFXI_PY_MIN] = "min",
    };
    return a < CFXI_PY_FIRST_UNARY && symbols[a] ? symbols[a] : "this operation";
}

cfx_datum cfxi_rt_py_fail_kinds(cfxi_call *c, cfxi_py_action a, cfx_datum x, cfx_datum y)
{
    cfxi_fail(c, CFX_E_TYPE, "unsupported operand type(s) for %s: '%s' and '%s'", symbol_of(a),
              cfx_datum_kind_name((cfx_datum_kind)x.kind),
              cfx_datum_kind_name((cfx_datum_kind)y.kind));
    return cfxi_rt_invalid();
}

cfx_datum cfxi_rt_py_fail_value(cfxi_call *c, const char *why)
{
    cfxi_fail(c, CFX_E_VALUE, "%s", why);
    return cfxi_rt_invalid();
}

static cfx_datum fail_overflow(cfxi_call *c, const char *why)
{
    cfxi_fail(c, CFX_E_OVERFLOW, "%s", why);
    return cfxi_rt_invalid();
}

cfx_status cfxi_rt_py_fail_nan(cfxi_call *c)
{
    return cfxi_fail(c, CFX_E_UNSUPPORTED, "this depends on whether two NaN are one object, which "
                     "a graph does not know; test with x != x first");
}

cfx_status cfxi_rt_py_fail_whole(cfxi_call *c, double f)
{
    if (isnan(f))
        return cfxi_fail(c, CFX_E_VALUE, "cannot convert float NaN to integer");
    if (isinf(f))
        return cfxi_fail(c, CFX_E_OVERFLOW, "cannot convert float infinity to integer");
    return cfxi_fail(c, CFX_E_VALUE, "cannot convert float to integer: it does not fit in 64 bits");
}

static cfx_datum fail_division(cfxi_call *c, const char *why)
{
    cfxi_fail(c, CFX_E_DIVISION, "%s", why);
    return cfxi_rt_invalid();
}

/* ---- numbers ------------------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    const int64_t r = b == -1 ? 0 : a % b;  /* INT64_MIN % -1 is undefined */
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static bool int_power(int64_t base, int64_t exponent, int64_t *out)
{
    int64_t result = 1;
    while (exponent > 0) {
        if (exponent & 1 && __builtin_mul_overflow(result, base, &result))
            return false;
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base))
            return false;
    }
    *out = result;
    return true;
}

static bool shift_left(int64_t a, int64_t n, int64_t *out)
{
    if (a == 0) {
        *out = 0;
        return true;
    }
    return n < 63 && !__builtin_mul_overflow(a, INT64_C(1) << n, out);
}

/* Of two known integers; true division and powers below 1 are floats'. */
static cfx_datum int_arithmetic(cfxi_call *c, cfxi_py_action a, int64_t x, int64_t y)
{
    int64_t r = 0;
    bool fits = true;
    if ((a == CFXI_PY_FLOOR_DIV || a == CFXI_PY_MOD) && y == 0)
        return fail_division(c, "integer division or modulo by zero");
    if ((a == CFXI_PY_SHIFT_LEFT || a == CFXI_PY_SHIFT_RIGHT) && y < 0)
        return cfxi_rt_py_fail_value(c, "negative shift count");
    switch (a) {
    case CFXI_PY_ADD: fits = !__builtin_add_overflow(x, y, &r); break;
    case CFXI_PY_SUB: fits = !__builtin_sub_overflow(x, y, &r); break;
    case CFXI_PY_MUL: fits = !__builtin_mul_overflow(x, y, &r); break;
    case CFXI_PY_FLOOR_DIV:
        fits = !(x == INT64_MIN && y == -1);
        r = fits ? floor_div(x, y) : 0;
        break;
    case CFXI_PY_MOD: r = floor_mod(x, y); break;
    case CFXI_PY_POW: fits = int_power(x, y, &r); break;
    case CFXI_PY_AND: r = x & y; break;
    case CFXI_PY_OR: r = x | y; break;
    case CFXI_PY_XOR: r = x ^ y; break;
    case CFXI_PY_SHIFT_LEFT: fits = shift_left(x, y, &r); break;
    case CFXI_PY_SHIFT_RIGHT: r = y > 62 ? -(x < 0) : x >> y; break;
    default: break;
    }
    return fits ? cfx_datum_int(r)
                : cfxi_rt_py_fail_value(c, "the integer result does not fit in 64 bits");
}

/* Python's %: the sign of the divisor. */
static double float_mod(double x, double y)
{
    double r = fmod(x, y);
    if (r == 0)
        return copysign(0, y);
    return (r < 0) != (y < 0) ? r + y : r;
}

static double float_floor_div(double x, double y)
{
    double r = fmod(x, y);
    double q = (x - r) / y;
    if (r != 0 && (r < 0) != (y < 0))
        q -= 1;
    if (q == 0)
        return copysign(0, x / y);
    double whole = floor(q);
    return q - whole > 0.5 ? whole + 1 : whole;
}

static cfx_datum float_power(cfxi_call *c, double x, double y)
{
    if (x == 0 && y < 0 && isfinite(y))
        return fail_division(c, "0.0 cannot be raised to a negative power");
    if (x < 0 && isfinite(x) && isfinite(y) && y != floor(y)) {
        double angle = y * 3.14159265358979323846;
        double size = pow(-x, y);
        if (isinf(size))
            return fail_overflow(c, "complex exponentiation");
        return cfx_datum_complex(size * cos(angle), size * sin(angle));
    }
    const double z = pow(x, y);
    if (isinf(z) && isfinite(x) && isfinite(y))
        return fail_overflow(c, "(34, 'Numerical result out of range')");
    return cfx_datum_float(z);
}

static uint64_t magnitude(int64_t x) { return x < 0 ? 0 - (uint64_t)x : (uint64_t)x; }

/* x / y of integers, rounded once: beyond 2^53 they are no floats themselves. The quotient has at
 * least 64 bits; the last one that is kept says whether something is left. */
static double int_quotient(int64_t x, int64_t y)
{
    const uint64_t a = magnitude(x);
    const uint64_t b = magnitude(y);
    if (a == 0 || (a <= UINT64_C(1) << 53 && b <= UINT64_C(1) << 53))
        return (double)x / (double)y;
    int exponent = -(64 + __builtin_clzll(a));
    const unsigned __int128 wide = (unsigned __int128)a << -exponent;
    unsigned __int128 q = wide / b;
    bool rest = wide % b != 0;
    for (; q >> 62; exponent++) {
        rest = rest || (q & 1);
        q >>= 1;
    }
    const double size = ldexp((double)((uint64_t)q << 1 | rest), exponent - 1);
    return (x < 0) != (y < 0) ? -size : size;
}

static cfx_datum float_arithmetic(cfxi_call *c, cfxi_py_action a, cfx_datum dx, cfx_datum dy)
{
    double x = cfxi_rt_py_float(dx);
    double y = cfxi_rt_py_float(dy);
    if ((a == CFXI_PY_TRUE_DIV || a == CFXI_PY_FLOOR_DIV || a == CFXI_PY_MOD) && y == 0)
        return fail_division(c, cfxi_rt_py_is_integral(dx) && cfxi_rt_py_is_integral(dy)
                                    ? "division by zero" : "float division by zero");
    switch (a) {
    case CFXI_PY_ADD: return cfx_datum_float(x + y);
    case CFXI_PY_SUB: return cfx_datum_float(x - y);
    case CFXI_PY_MUL: return cfx_datum_float(x * y);
    case CFXI_PY_TRUE_DIV:
        return cfx_datum_float(cfxi_rt_py_is_integral(dx) && cfxi_rt_py_is_integral(dy)
                                   ? int_quotient(cfxi_rt_py_int(dx), cfxi_rt_py_int(dy)) : x / y);
    case CFXI_PY_FLOOR_DIV: return cfx_datum_float(float_floor_div(x, y));
    case CFXI_PY_MOD: return cfx_datum_float(float_mod(x, y));
    case CFXI_PY_POW: return float_power(c, x, y);
    default: return cfxi_rt_py_fail_kinds(c, a, dx, dy);
    }
}

/* By the larger part of the divisor, so that squares neither overflow nor vanish. */
static cfx_datum complex_quotient(double x, double xi, double y, double yi)
{
    if (fabs(y) >= fabs(yi)) {
        double ratio = yi / y;
        double size = y + yi * ratio;
        return cfx_datum_complex((x + xi * ratio) / size, (xi - x * ratio) / size);
    }
    double ratio = y / yi;
    double size = y * ratio + yi;
    return cfx_datum_complex((x * ratio + xi) / size, (xi * ratio - x) / size);
}

/* By squares, and for a negative exponent of what it is without its sign. */
static cfx_datum whole_power(double x, double xi, int exponent)
{
    double r = 1;
    double ri = 0;
    for (int n = exponent < 0 ? -exponent : exponent; n > 0; n >>= 1) {
        if (n & 1) {
            const double re = r * x - ri * xi;
            ri = r * xi + ri * x;
            r = re;
        }
        const double square = x * x - xi * xi;
        xi = 2 * x * xi;
        x = square;
    }
    return exponent < 0 ? complex_quotient(1, 0, r, ri) : cfx_datum_complex(r, ri);
}

/* A complex power that is too large is an error; one that is no number is not. */
static cfx_datum power_or_fail(cfxi_call *c, cfx_datum d)
{
    return isinf(d.as.c[0]) || isinf(d.as.c[1]) ? fail_overflow(c, "complex exponentiation") : d;
}

static cfx_datum complex_power(cfxi_call *c, double x, double xi, double y, double yi)
{
    double size = hypot(x, xi);
    if (y == 0 && yi == 0)
        return cfx_datum_complex(1, 0);
    if (size == 0 && (y < 0 || yi != 0))
        return fail_division(c, "0.0 to a negative or complex power");
    if (size == 0)
        return cfx_datum_complex(0, 0);
    if (yi == 0 && y == floor(y) && fabs(y) <= 100)  /* exactly, as Python does */
        return power_or_fail(c, whole_power(x, xi, (int)y));
    double angle = atan2(xi, x);
    double length = pow(size, y) * exp(-yi * angle);
    double turn = y * angle + yi * log(size);
    return power_or_fail(c, cfx_datum_complex(length * cos(turn), length * sin(turn)));
}

static cfx_datum complex_arithmetic(cfxi_call *c, cfxi_py_action a, cfx_datum dx, cfx_datum dy)
{
    double x = cfxi_rt_py_float(dx);
    double xi = cfxi_rt_py_imaginary(dx);
    double y = cfxi_rt_py_float(dy);
    double yi = cfxi_rt_py_imaginary(dy);
    switch (a) {
    case CFXI_PY_ADD: return cfx_datum_complex(x + y, xi + yi);
    case CFXI_PY_SUB: return cfx_datum_complex(x - y, xi - yi);
    case CFXI_PY_MUL: return cfx_datum_complex(x * y - xi * yi, x * yi + xi * y);
    case CFXI_PY_TRUE_DIV:
        if (y == 0 && yi == 0)
            return fail_division(c, "complex division by zero");
        return complex_quotient(x, xi, y, yi);
    case CFXI_PY_POW: return complex_power(c, x, xi, y, yi);
    default: return cfxi_rt_py_fail_kinds(c, a, dx, dy);
    }
}

/* ---- sizes that are symbols ---------------------------------------------------------------- */

static cfx_datum size_arithmetic(cfxi_call *c, cfxi_py_action a, int64_t x, int64_t y)
{
    cfx_datum r = cfx_datum_int(0);
    if (x == CFX_DIM_UNKNOWN || y == CFX_DIM_UNKNOWN)  /* which is no number to take away */
        return cfxi_rt_py_unknown(CFX_DATUM_INT);
    if (a == CFXI_PY_ADD && y < 0 && !cfx_dim_is_symbol(y))  /* -1 would read as "unknown" */
        return size_arithmetic(c, CFXI_PY_SUB, x, -y);
    if (a == CFXI_PY_ADD && x < 0 && !cfx_dim_is_symbol(x))
        return size_arithmetic(c, CFXI_PY_SUB, y, -x);
    if (a == CFXI_PY_MUL && (x == -1 || y == -1))
        return size_arithmetic(c, CFXI_PY_SUB, 0, x == -1 ? y : x);
    switch (a) {
    case CFXI_PY_ADD: r.as.i = cfx_dim_add(c->dims, x, y, c->err); break;
    case CFXI_PY_SUB: r.as.i = cfx_dim_sub(c->dims, x, y, c->err); break;
    case CFXI_PY_MUL: r.as.i = cfx_dim_mul(c->dims, x, y, c->err); break;
    case CFXI_PY_FLOOR_DIV: r.as.i = cfx_dim_div(c->dims, x, y, c->err); break;
    case CFXI_PY_MOD: r.as.i = cfx_dim_mod(c->dims, x, y, c->err); break;
    case CFXI_PY_POW:
        if (y == 2)
            r.as.i = cfx_dim_mul(c->dims, x, x, c->err);
        else
            return cfxi_rt_py_unknown(CFX_DATUM_INT);
        break;
    default: return cfxi_rt_py_unknown(CFX_DATUM_INT);
    }
    if (c->err->status != CFX_OK)
        return cfxi_rt_invalid();
    r.symbolic = cfx_dim_is_symbol(r.as.i) || r.as.i == CFX_DIM_UNKNOWN;
    return r;
}

cfx_datum cfxi_rt_py_arithmetic(cfxi_call *c, cfxi_py_action a, cfx_datum x, cfx_datum y)
{
    bool complex = x.kind == CFX_DATUM_COMPLEX || y.kind == CFX_DATUM_COMPLEX;
    bool integers = cfxi_rt_py_is_integral(x) && cfxi_rt_py_is_integral(y);
    bool bits = a == CFXI_PY_AND || a == CFXI_PY_OR || a == CFXI_PY_XOR;
    if (bits && x.kind == CFX_DATUM_BOOL && y.kind == CFX_DATUM_BOOL) {
        if (x.symbolic || y.symbolic)
            return cfxi_rt_py_unknown(CFX_DATUM_BOOL);
        return cfx_datum_bool(a == CFXI_PY_AND ? x.as.b && y.as.b
                              : a == CFXI_PY_OR ? x.as.b || y.as.b
                                        : x.as.b != y.as.b);
    }
    if ((bits || a == CFXI_PY_SHIFT_LEFT || a == CFXI_PY_SHIFT_RIGHT) && !integers)
        return cfxi_rt_py_fail_kinds(c, a, x, y);
    if (x.symbolic || y.symbolic) {
        if (!integers || a == CFXI_PY_TRUE_DIV)
            return cfxi_rt_py_unknown(complex ? CFX_DATUM_COMPLEX : CFX_DATUM_FLOAT);
        if (!cfxi_rt_py_is_reckonable(x) || !cfxi_rt_py_is_reckonable(y))
            return cfxi_rt_py_unknown(CFX_DATUM_INT);
        return size_arithmetic(c, a, cfxi_rt_py_int(x), cfxi_rt_py_int(y));
    }
    if (complex)
        return complex_arithmetic(c, a, x, y);
    bool as_floats = a == CFXI_PY_TRUE_DIV || (a == CFXI_PY_POW && cfxi_rt_py_int(y) < 0);
    if (integers && !as_floats)
        return int_arithmetic(c, a, cfxi_rt_py_int(x), cfxi_rt_py_int(y));
    return float_arithmetic(c, a, x, y);
}
