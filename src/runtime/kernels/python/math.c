/* math.c - Python's math on numbers: what models compute from sizes. Rules alone. A tensor of one
 * element counts as its number, as Python's math takes it. */
#include "runtime/python_impl.h"

#include <math.h>

/* The number that an argument is; false, with a message, if it is none. *known is false for a size
 * that is a symbol. */
static cfx_status number(cfxi_call *c, size_t i, double *out, bool *known)
{
    const cfx_datum d = c->args[i];
    const cfx_tensor *t = d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
    *known = !d.symbolic && (!t || cfxi_rt_can_read(t));
    if (d.kind != CFX_DATUM_BOOL && d.kind != CFX_DATUM_INT && d.kind != CFX_DATUM_FLOAT && !t)
        return cfxi_fail(c, CFX_E_TYPE, "must be real number, not %s",
                         cfx_datum_kind_name((cfx_datum_kind)d.kind));
    if (t && *known &&
        (cfxi_tensor_numel(t) != 1 || cfx_dtype_is_complex((cfx_dtype)t->dtype)))
        return cfxi_fail(c, CFX_E_VALUE,
                         "only one element tensors can be converted to Python scalars");
    *out = *known ? cfxi_rt_scalar(c, i) : 1;
    return CFX_OK;
}

static cfx_status give_float(cfxi_call *c, double f, bool known)
{
    cfx_datum d = cfx_datum_float(f);
    d.symbolic = !known;
    cfxi_rt_result_datum(c, 0, d);
    return CFX_OK;
}

static cfx_status give_whole(cfxi_call *c, int64_t i, bool known)
{
    cfx_datum d = cfx_datum_int(known ? i : cfxi_rt_fresh(c));
    d.symbolic = !known;
    cfxi_rt_result_datum(c, 0, d);
    return CFX_OK;
}

/* A whole number; of a symbol one that nobody knows. */
static cfx_status give_int(cfxi_call *c, double f, bool known)
{
    if (known && !(f >= -0x1p63 && f < 0x1p63))
        return cfxi_rt_py_fail_whole(c, f);
    return give_whole(c, known ? (int64_t)f : 0, known);
}

static double degrees(double x) { return x * (180 / 3.14159265358979323846); }
static double radians(double x) { return x * (3.14159265358979323846 / 180); }

typedef double math_fn(double);

static math_fn *function_of(cfx_operator op)
{
    switch ((int)op) {
    case CFX_OPID_math_sqrt:
    case CFX_OPID_sym_sqrt: return sqrt;
    case CFX_OPID_math_exp: return exp;
    case CFX_OPID_math_log2: return log2;
    case CFX_OPID_math_log10: return log10;
    case CFX_OPID_math_sin: return sin;
    case CFX_OPID_math_cos: return cos;
    case CFX_OPID_math_tan: return tan;
    case CFX_OPID_math_tanh: return tanh;
    case CFX_OPID_math_fabs: return fabs;
    case CFX_OPID_math_acos: return acos;
    case CFX_OPID_math_acosh: return acosh;
    case CFX_OPID_math_asin: return asin;
    case CFX_OPID_math_asinh: return asinh;
    case CFX_OPID_math_atan: return atan;
    case CFX_OPID_math_atanh: return atanh;
    case CFX_OPID_math_cbrt: return cbrt;
    case CFX_OPID_math_cosh: return cosh;
    case CFX_OPID_math_degrees: return degrees;
    case CFX_OPID_math_erf: return erf;
    case CFX_OPID_math_erfc: return erfc;
    case CFX_OPID_math_exp2: return exp2;
    case CFX_OPID_math_expm1: return expm1;
    case CFX_OPID_math_log1p: return log1p;
    case CFX_OPID_math_radians: return radians;
    case CFX_OPID_math_sinh: return sinh;
    case CFX_OPID_math_ceil: return ceil;
    case CFX_OPID_math_floor: return floor;
    default: return trunc;
    }
}

/* Outside of where it is defined, Python complains. */
static cfx_status domain_error(cfxi_call *c)
{
    return cfxi_fail(c, CFX_E_VALUE, "math domain error");
}

static cfx_status range_error(cfxi_call *c)
{
    return cfxi_fail(c, CFX_E_OVERFLOW, "math range error");
}

cfx_status cfxi_rule_math(cfxi_call *c)
{
    double x;
    bool known;
    CFX_TRY(number(c, 0, &x, &known));
    const double y = function_of(c->op)(x);
    const bool grows = c->op == CFX_OPID_math_exp || c->op == CFX_OPID_math_exp2 ||
                       c->op == CFX_OPID_math_expm1 || c->op == CFX_OPID_math_sinh ||
                       c->op == CFX_OPID_math_cosh;
    if (!known)  /* of a tensor's element or a symbol nobody can say where it lies */
        return give_float(c, 0, false);
    if (isinf(y) && isfinite(x) && grows)
        return range_error(c);
    const bool scales = c->op == CFX_OPID_math_degrees;  /* 1e308 degrees are inf, in Python, too */
    if ((isnan(y) && !isnan(x)) || (isinf(y) && isfinite(x) && !scales))
        return domain_error(c);
    return give_float(c, y, known);
}

cfx_status cfxi_rule_math_test(cfxi_call *c)
{
    double x;
    bool known;
    CFX_TRY(number(c, 0, &x, &known));
    cfx_datum d = cfx_datum_bool(c->op == CFX_OPID_math_isnan   ? isnan(x)
                                 : c->op == CFX_OPID_math_isinf ? isinf(x)
                                                                : isfinite(x));
    d.symbolic = !known;
    cfxi_rt_result_datum(c, 0, d);
    return CFX_OK;
}

cfx_status cfxi_rule_math_two(cfxi_call *c)
{
    double x, y;
    bool known, also;
    CFX_TRY(number(c, 0, &x, &known));
    CFX_TRY(number(c, 1, &y, &also));
    const double z = c->op == CFX_OPID_math_atan2      ? atan2(x, y)
                     : c->op == CFX_OPID_math_copysign ? copysign(x, y)
                     : c->op == CFX_OPID_math_fmod     ? fmod(x, y)
                                                       : remainder(x, y);
    if (isnan(z) && !isnan(x) && !isnan(y))
        return domain_error(c);
    return give_float(c, z, known && also);
}

/* ---- of any number of numbers -------------------------------------------------------------- */

/* Item `i` of the arguments, which come in a list, as a call of one argument. */
static cfx_status number_at(cfxi_call *c, const cfx_datum *items, size_t i, double *out,
                            bool *known)
{
    cfxi_call one = *c;
    one.args = (cfx_datum *)(uintptr_t)items;
    return number(&one, i, out, known);
}

cfx_status cfxi_rule_math_hypot(cfxi_call *c)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(c->args[0], &n);
    double sum = 0;
    bool known = true;
    for (size_t i = 0; i < n; i++) {
        double x;
        bool this_known;
        CFX_TRY(number_at(c, items, i, &x, &this_known));
        sum = hypot(sum, x);
        known = known && this_known;
    }
    return give_float(c, sum, known);
}

/* A whole number; false, with a message, if it is none. */
static cfx_status whole_number(cfxi_call *c, cfx_datum d, int64_t *out)
{
    if (d.kind != CFX_DATUM_INT && d.kind != CFX_DATUM_BOOL)
        return cfxi_fail(c, CFX_E_TYPE, "'%s' object cannot be interpreted as an integer",
                         cfx_datum_kind_name((cfx_datum_kind)d.kind));
    *out = d.symbolic ? 1 : d.kind == CFX_DATUM_BOOL ? d.as.b : d.as.i;
    return CFX_OK;
}

cfx_status cfxi_rule_math_gcd(cfxi_call *c)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(c->args[0], &n);
    uint64_t gcd = 0;
    bool known = true;
    for (size_t i = 0; i < n; i++) {
        int64_t x = 0;
        CFX_TRY(whole_number(c, items[i], &x));
        known = known && !items[i].symbolic;
        gcd = cfxi_base_gcd(gcd, x);
    }
    if (gcd > INT64_MAX)
        return cfxi_fail(c, CFX_E_VALUE, "the integer result does not fit in 64 bits");
    return give_whole(c, (int64_t)gcd, known);
}

cfx_status cfxi_rule_math_isqrt(cfxi_call *c)
{
    int64_t n = 0;
    CFX_TRY(whole_number(c, c->args[0], &n));
    if (n < 0)
        return cfxi_fail(c, CFX_E_VALUE, "isqrt() argument must be nonnegative");
    int64_t root = (int64_t)sqrt((double)n);
    while (root > 3037000499 || root * root > n)  /* the largest whose square fits */
        root--;
    while (root < 3037000499 && (root + 1) * (root + 1) <= n)
        root++;
    return give_whole(c, root, !c->args[0].symbolic);
}

cfx_status cfxi_rule_math_whole(cfxi_call *c)
{
    double x;
    bool known;
    CFX_TRY(number(c, 0, &x, &known));
    if (c->args[0].kind == CFX_DATUM_INT) {  /* stays exactly what it is */
        cfxi_rt_result_datum(c, 0, c->args[0]);
        return CFX_OK;
    }
    return give_int(c, function_of(c->op)(x), known);
}

/* math.isclose: as near to each other as a part of the larger one, or as a number. */
cfx_status cfxi_rule_math_isclose(cfxi_call *c)
{
    double v[4];
    bool all = true;
    for (size_t i = 0; i < 4; i++) {
        bool known;
        CFX_TRY(number(c, i, &v[i], &known));
        all = all && known;
    }
    if (all && (v[2] < 0 || v[3] < 0))
        return cfxi_fail(c, CFX_E_VALUE, "tolerances must be non-negative");
    const double apart = fabs(v[0] - v[1]);
    const bool near = v[0] == v[1] || (isfinite(apart) &&
                                       (apart <= v[2] * fmax(fabs(v[0]), fabs(v[1])) ||
                                        apart <= v[3]));
    cfx_datum d = cfx_datum_bool(near);
    d.symbolic = !all;
    cfxi_rt_result_datum(c, 0, d);
    return CFX_OK;
}

/* math.log(x, base) */
cfx_status cfxi_rule_math_log(cfxi_call *c)
{
    double x;
    double base = 0;
    bool known;
    bool base_known = true;
    const bool has_base = !cfxi_rt_is_none(c, 1);
    CFX_TRY(number(c, 0, &x, &known));
    if (has_base)
        CFX_TRY(number(c, 1, &base, &base_known));
    if (x <= 0 || (has_base && base <= 0))
        return domain_error(c);
    if (has_base && base_known && base == 1)
        return cfxi_fail(c, CFX_E_DIVISION, "float division by zero");
    return give_float(c, has_base ? log(x) / log(base) : log(x), known && base_known);
}

cfx_status cfxi_rule_math_pow(cfxi_call *c)
{
    double x;
    double y;
    bool known;
    bool also;
    CFX_TRY(number(c, 0, &x, &known));
    CFX_TRY(number(c, 1, &y, &also));
    const double z = pow(x, y);
    if ((isnan(z) && !isnan(x) && !isnan(y)) || (isinf(z) && x == 0 && isfinite(y)))
        return domain_error(c);
    if (isinf(z) && isfinite(x) && isfinite(y))
        return range_error(c);
    return give_float(c, z, known && also);
}

/* math.prod of a list of numbers, as the signs compute it. */
cfx_status cfxi_rule_math_prod(cfxi_call *c)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(c->args[0], &n);
    if (c->args[0].kind != CFX_DATUM_LIST && c->args[0].kind != CFX_DATUM_TUPLE)
        return cfxi_fail(c, CFX_E_TYPE, "'%s' object is not iterable",
                         cfx_datum_kind_name((cfx_datum_kind)c->args[0].kind));
    cfx_datum product = cfx_datum_retain(cfxi_rt_is_none(c, 1) ? cfx_datum_int(1) : c->args[1]);
    for (size_t i = 0; i < n; i++) {
        const cfx_datum both[] = {product, items[i]};
        cfx_datum next = cfxi_rt_sub(c, CFX_OPID_mul, both, 2);
        cfx_datum_release(product);
        if (next.kind == CFX_DATUM_INVALID)
            return c->err->status;
        product = next;
    }
    cfxi_rt_result_datum(c, 0, product);
    return CFX_OK;
}
