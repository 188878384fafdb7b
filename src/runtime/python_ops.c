/* python_ops.c - arithmetic and comparison rows on Python's numbers and containers. */
#include "python_impl.h"

#include <math.h>

/* ---- the table ----------------------------------------------------------------------------- */

typedef enum action {
    NOTHING,
    ADD,
    SUB,
    MUL,
    TRUE_DIV,
    FLOOR_DIV,
    MOD,
    POW,
    AND,
    OR,
    XOR,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    MAX,
    MIN,
    FIRST_UNARY,
    NEG = FIRST_UNARY,
    POS,
    ABS,
    INVERT,
    FLOOR,
    CEIL,
    TRUNC,
    ROUND,
    SQRT,
    EXP,
    LOG,
    SIN,
    COS
} action;

static const uint8_t actions[CFX_OPERATOR_COUNT] = {
    [CFX_OPID_add] = ADD,
    [CFX_OPID_sub] = SUB,
    [CFX_OPID_mul] = MUL,
    [CFX_OPID_div] = TRUE_DIV,
    [CFX_OPID_floor_divide] = FLOOR_DIV,
    [CFX_OPID_remainder] = MOD,
    [CFX_OPID_pow] = POW,
    [CFX_OPID_bitwise_and] = AND,
    [CFX_OPID_bitwise_or] = OR,
    [CFX_OPID_bitwise_xor] = XOR,
    [CFX_OPID_bitwise_left_shift] = SHIFT_LEFT,
    [CFX_OPID_bitwise_right_shift] = SHIFT_RIGHT,
    [CFX_OPID_eq] = EQ,
    [CFX_OPID_ne] = NE,
    [CFX_OPID_lt] = LT,
    [CFX_OPID_le] = LE,
    [CFX_OPID_gt] = GT,
    [CFX_OPID_ge] = GE,
    [CFX_OPID_maximum] = MAX,
    [CFX_OPID_minimum] = MIN,
    [CFX_OPID_neg] = NEG,
    [CFX_OPID_positive] = POS,
    [CFX_OPID_abs] = ABS,
    [CFX_OPID_bitwise_not] = INVERT,
    [CFX_OPID_floor] = FLOOR,
    [CFX_OPID_ceil] = CEIL,
    [CFX_OPID_trunc] = TRUNC,
    [CFX_OPID_round] = ROUND,
    [CFX_OPID_sqrt] = SQRT,
    [CFX_OPID_exp] = EXP,
    [CFX_OPID_log] = LOG,
    [CFX_OPID_sin] = SIN,
    [CFX_OPID_cos] = COS,
};

static action action_of(cfx_operator op)
{
    action a = (action)actions[op];
    return a ? a : (action)actions[cfx_operator_functional(op)];
}

bool cfxi_python_takes(cfx_operator op, const cfx_datum *args, size_t n)
{
    action a = action_of(op);
    size_t operands = a >= FIRST_UNARY ? 1 : 2;
    if (a == NOTHING || n < operands)
        return false;
    if ((a == EQ || a == NE) && args[0].kind == CFX_DATUM_TENSOR)  /* tensor == None */
        return args[1].kind != CFX_DATUM_TENSOR && !cfxi_is_number(args[1]);
    for (size_t i = 0; i < operands; i++)
        if (args[i].kind == CFX_DATUM_TENSOR || args[i].kind == CFX_DATUM_INVALID)
            return false;
    for (size_t i = operands; i < n; i++)  /* alpha, rounding_mode: a call of torch's */
        if (args[i].kind != CFX_DATUM_INVALID && args[i].kind != CFX_DATUM_NONE)
            return false;
    return true;
}

static const char *symbol_of(action a)
{
    static const char *const symbols[] = {
        [ADD] = "+",        [SUB] = "-",          [MUL] = "*", [TRUE_DIV] = "/", [FLOOR_DIV] = "//",
        [MOD] = "%",        [POW] = "**",         [AND] = "&", [OR] = "|",       [XOR] = "^",
        [SHIFT_LEFT] = "<<", [SHIFT_RIGHT] = ">>", [LT] = "<",  [LE] = "<=",      [GT] = ">",
        [GE] = ">=",        [MAX] = "max",        [MIN] = "min",
    };
    return a < FIRST_UNARY && symbols[a] ? symbols[a] : "this operation";
}

static cfx_datum fail_kinds(cfxi_call *c, action a, cfx_datum x, cfx_datum y)
{
    cfxi_fail(c, CFX_E_TYPE, "unsupported operand type(s) for %s: '%s' and '%s'", symbol_of(a),
              cfx_datum_kind_name((cfx_datum_kind)x.kind),
              cfx_datum_kind_name((cfx_datum_kind)y.kind));
    return cfxi_invalid();
}

static cfx_datum fail_value(cfxi_call *c, const char *why)
{
    cfxi_fail(c, CFX_E_VALUE, "%s", why);
    return cfxi_invalid();
}

static cfx_datum fail_division(cfxi_call *c, const char *why)
{
    cfxi_fail(c, CFX_E_DIVISION, "%s", why);
    return cfxi_invalid();
}

/* ---- numbers ------------------------------------------------------------------------------- */

static bool is_integral(cfx_datum d)
{
    return d.kind == CFX_DATUM_INT || d.kind == CFX_DATUM_BOOL;
}
/* One that is known, or a size: of a bool that nobody knows there is no number to reckon with. */
static bool is_reckonable(cfx_datum d)
{
    return d.kind == CFX_DATUM_INT || (d.kind == CFX_DATUM_BOOL && !d.symbolic);
}
static int64_t int_of(cfx_datum d) { return d.kind == CFX_DATUM_BOOL ? d.as.b : d.as.i; }
static double float_of(cfx_datum d)
{
    return is_integral(d) ? (double)int_of(d) : d.kind == CFX_DATUM_FLOAT ? d.as.f : d.as.c[0];
}
static double imaginary_of(cfx_datum d) { return d.kind == CFX_DATUM_COMPLEX ? d.as.c[1] : 0; }

/* A number of that kind which nobody knows. */
static cfx_datum unknown(cfx_datum_kind kind)
{
    cfx_datum d = cfx_datum_scalar(kind, 0);
    if (kind == CFX_DATUM_INT)
        d.as.i = CFX_DIM_UNKNOWN;
    d.symbolic = 1;
    return d;
}

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
static cfx_datum int_arithmetic(cfxi_call *c, action a, int64_t x, int64_t y)
{
    int64_t r = 0;
    bool fits = true;
    if ((a == FLOOR_DIV || a == MOD) && y == 0)
        return fail_division(c, "integer division or modulo by zero");
    if ((a == SHIFT_LEFT || a == SHIFT_RIGHT) && y < 0)
        return fail_value(c, "negative shift count");
    switch (a) {
    case ADD: fits = !__builtin_add_overflow(x, y, &r); break;
    case SUB: fits = !__builtin_sub_overflow(x, y, &r); break;
    case MUL: fits = !__builtin_mul_overflow(x, y, &r); break;
    case FLOOR_DIV:
        fits = !(x == INT64_MIN && y == -1);
        r = fits ? floor_div(x, y) : 0;
        break;
    case MOD: r = floor_mod(x, y); break;
    case POW: fits = int_power(x, y, &r); break;
    case AND: r = x & y; break;
    case OR: r = x | y; break;
    case XOR: r = x ^ y; break;
    case SHIFT_LEFT: fits = shift_left(x, y, &r); break;
    case SHIFT_RIGHT: r = y > 62 ? -(x < 0) : x >> y; break;
    default: break;
    }
    return fits ? cfx_datum_int(r) : fail_value(c, "an integer that does not fit in 64 bits");
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
        return cfx_datum_complex(size * cos(angle), size * sin(angle));
    }
    return cfx_datum_float(pow(x, y));
}

static cfx_datum float_arithmetic(cfxi_call *c, action a, cfx_datum dx, cfx_datum dy)
{
    double x = float_of(dx);
    double y = float_of(dy);
    if ((a == TRUE_DIV || a == FLOOR_DIV || a == MOD) && y == 0)
        return fail_division(c, is_integral(dx) && is_integral(dy) ? "division by zero"
                                                                   : "float division by zero");
    switch (a) {
    case ADD: return cfx_datum_float(x + y);
    case SUB: return cfx_datum_float(x - y);
    case MUL: return cfx_datum_float(x * y);
    case TRUE_DIV: return cfx_datum_float(x / y);
    case FLOOR_DIV: return cfx_datum_float(float_floor_div(x, y));
    case MOD: return cfx_datum_float(float_mod(x, y));
    case POW: return float_power(c, x, y);
    default: return fail_kinds(c, a, dx, dy);
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

static cfx_datum complex_power(cfxi_call *c, double x, double xi, double y, double yi)
{
    double size = hypot(x, xi);
    if (y == 0 && yi == 0)
        return cfx_datum_complex(1, 0);
    if (size == 0 && (y < 0 || yi != 0))
        return fail_division(c, "0.0 to a negative or complex power");
    if (size == 0)
        return cfx_datum_complex(0, 0);
    double angle = atan2(xi, x);
    double length = pow(size, y) * exp(-yi * angle);
    double turn = y * angle + yi * log(size);
    return cfx_datum_complex(length * cos(turn), length * sin(turn));
}

static cfx_datum complex_arithmetic(cfxi_call *c, action a, cfx_datum dx, cfx_datum dy)
{
    double x = float_of(dx);
    double xi = imaginary_of(dx);
    double y = float_of(dy);
    double yi = imaginary_of(dy);
    switch (a) {
    case ADD: return cfx_datum_complex(x + y, xi + yi);
    case SUB: return cfx_datum_complex(x - y, xi - yi);
    case MUL: return cfx_datum_complex(x * y - xi * yi, x * yi + xi * y);
    case TRUE_DIV:
        if (y == 0 && yi == 0)
            return fail_division(c, "complex division by zero");
        return complex_quotient(x, xi, y, yi);
    case POW: return complex_power(c, x, xi, y, yi);
    default: return fail_kinds(c, a, dx, dy);
    }
}

/* ---- sizes that are symbols ---------------------------------------------------------------- */

static cfx_datum size_arithmetic(cfxi_call *c, action a, int64_t x, int64_t y)
{
    cfx_datum r = cfx_datum_int(0);
    if (a == ADD && y < 0 && !cfx_dim_is_symbol(y))  /* -1 would read as "unknown" */
        return size_arithmetic(c, SUB, x, -y);
    if (a == ADD && x < 0 && !cfx_dim_is_symbol(x))
        return size_arithmetic(c, SUB, y, -x);
    if (a == MUL && (x == -1 || y == -1))
        return size_arithmetic(c, SUB, 0, x == -1 ? y : x);
    switch (a) {
    case ADD: r.as.i = cfx_dim_add(c->dims, x, y, c->err); break;
    case SUB: r.as.i = cfx_dim_sub(c->dims, x, y, c->err); break;
    case MUL: r.as.i = cfx_dim_mul(c->dims, x, y, c->err); break;
    case FLOOR_DIV: r.as.i = cfx_dim_div(c->dims, x, y, c->err); break;
    case MOD: r.as.i = cfx_dim_mod(c->dims, x, y, c->err); break;
    case POW:
        if (y == 2)
            r.as.i = cfx_dim_mul(c->dims, x, x, c->err);
        else
            return unknown(CFX_DATUM_INT);
        break;
    default: return unknown(CFX_DATUM_INT);
    }
    if (c->err->status != CFX_OK)
        return cfxi_invalid();
    r.symbolic = cfx_dim_is_symbol(r.as.i) || r.as.i == CFX_DIM_UNKNOWN;
    return r;
}

static cfx_datum arithmetic(cfxi_call *c, action a, cfx_datum x, cfx_datum y)
{
    bool complex = x.kind == CFX_DATUM_COMPLEX || y.kind == CFX_DATUM_COMPLEX;
    bool integers = is_integral(x) && is_integral(y);
    bool bits = a == AND || a == OR || a == XOR;
    if (bits && x.kind == CFX_DATUM_BOOL && y.kind == CFX_DATUM_BOOL) {
        if (x.symbolic || y.symbolic)
            return unknown(CFX_DATUM_BOOL);
        return cfx_datum_bool(a == AND ? x.as.b && y.as.b
                              : a == OR ? x.as.b || y.as.b
                                        : x.as.b != y.as.b);
    }
    if ((bits || a == SHIFT_LEFT || a == SHIFT_RIGHT) && !integers)
        return fail_kinds(c, a, x, y);
    if (x.symbolic || y.symbolic) {
        if (!integers || a == TRUE_DIV)
            return unknown(complex ? CFX_DATUM_COMPLEX : CFX_DATUM_FLOAT);
        if (!is_reckonable(x) || !is_reckonable(y))
            return unknown(CFX_DATUM_INT);
        return size_arithmetic(c, a, int_of(x), int_of(y));
    }
    if (complex)
        return complex_arithmetic(c, a, x, y);
    bool as_floats = a == TRUE_DIV || (a == POW && int_of(y) < 0);
    if (integers && !as_floats)
        return int_arithmetic(c, a, int_of(x), int_of(y));
    return float_arithmetic(c, a, x, y);
}

/* ---- comparison ---------------------------------------------------------------------------- */

cfx_datum cfxi_truth_datum(cfxi_truth t)
{
    return t == CFXI_DEPENDS ? unknown(CFX_DATUM_BOOL) : cfx_datum_bool(t == CFXI_TRUE);
}

static cfxi_truth truth_of(int answer)  /* of cfx_dim_compare_* */
{
    return answer < 0 ? CFXI_DEPENDS : answer ? CFXI_TRUE : CFXI_FALSE;
}

/* A long double holds every int64_t and every double. */
static long double exact_of(cfx_datum d)
{
    return is_integral(d) ? (long double)int_of(d) : (long double)d.as.f;
}

static cfxi_truth numbers_equal(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    if (a.symbolic || b.symbolic) {
        if (!is_reckonable(a) || !is_reckonable(b))
            return CFXI_DEPENDS;
        return truth_of(cfx_dim_compare_eq(c->dims, int_of(a), int_of(b)));
    }
    if (a.kind == CFX_DATUM_COMPLEX || b.kind == CFX_DATUM_COMPLEX)
        return float_of(a) == float_of(b) && imaginary_of(a) == imaginary_of(b) ? CFXI_TRUE
                                                                                 : CFXI_FALSE;
    return exact_of(a) == exact_of(b) ? CFXI_TRUE : CFXI_FALSE;
}

static cfxi_truth numbers_less(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    if (!a.symbolic && !b.symbolic)
        return exact_of(a) < exact_of(b) ? CFXI_TRUE : CFXI_FALSE;
    if (!is_reckonable(a) || !is_reckonable(b))
        return CFXI_DEPENDS;
    return truth_of(cfx_dim_compare_lt(c->dims, int_of(a), int_of(b)));
}

static int compare_texts(cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t m;
    const char *x = cfx_datum_str(a, &n);
    const char *y = cfx_datum_str(b, &m);
    int order = memcmp(x, y, n < m ? n : m);  /* UTF-8 sorts as its characters do */
    return order ? order : (n > m) - (n < m);
}

static cfx_status dicts_equal(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out)
{
    size_t n;
    size_t m;
    const cfx_datum *x = cfx_datum_items(a, &n);
    const cfx_datum *y = cfx_datum_items(b, &m);
    *out = n == m ? CFXI_TRUE : CFXI_FALSE;
    for (size_t i = 0; i < n && *out != CFXI_FALSE; i += 2) {
        cfxi_truth same = CFXI_FALSE;
        for (size_t k = 0; k < m && same == CFXI_FALSE; k += 2) {  /* mostly at the same place */
            size_t at = (i + k) % m;
            CFX_TRY(cfxi_python_equal(c, x[i], y[at], &same));
            cfxi_truth values = CFXI_TRUE;
            if (same == CFXI_TRUE)
                CFX_TRY(cfxi_python_equal(c, x[i + 1], y[at + 1], &values));
            *out = values == CFXI_TRUE ? *out : values;
        }
        if (same != CFXI_TRUE && *out != CFXI_FALSE)
            *out = same;
    }
    return CFX_OK;
}

static cfx_status sequences_equal(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out)
{
    size_t n;
    size_t m;
    const cfx_datum *x = cfx_datum_items(a, &n);
    const cfx_datum *y = cfx_datum_items(b, &m);
    cfxi_truth all = n == m ? CFXI_TRUE : CFXI_FALSE;
    for (size_t i = 0; i < n && all != CFXI_FALSE; i++) {
        cfxi_truth one;
        CFX_TRY(cfxi_python_equal(c, x[i], y[i], &one));
        all = one == CFXI_TRUE ? all : one;
    }
    *out = all;
    return CFX_OK;
}

cfx_status cfxi_python_equal(cfxi_call *c, cfx_datum a, cfx_datum b, cfxi_truth *out)
{
    *out = CFXI_FALSE;
    if (cfxi_is_number(a) && cfxi_is_number(b)) {
        *out = numbers_equal(c, a, b);
        return CFX_OK;
    }
    if (a.kind == CFX_DATUM_TENSOR && b.kind == CFX_DATUM_TENSOR && a.as.tensor != b.as.tensor)
        return cfxi_fail(c, CFX_E_VALUE, "whether two tensors are equal depends on their elements");
    if (a.kind != b.kind)
        return CFX_OK;
    if (cfxi_is_text(a))
        *out = compare_texts(a, b) == 0 ? CFXI_TRUE : CFXI_FALSE;
    else if (a.kind == CFX_DATUM_DICT)
        return dicts_equal(c, a, b, out);
    else if (a.kind == CFX_DATUM_LIST || a.kind == CFX_DATUM_TUPLE || a.kind == CFX_DATUM_SLICE)
        return sequences_equal(c, a, b, out);
    else if (a.kind == CFX_DATUM_NONE || a.kind == CFX_DATUM_ELLIPSIS)
        *out = CFXI_TRUE;
    else
        *out = a.as.i == b.as.i ? CFXI_TRUE : CFXI_FALSE;
    return CFX_OK;
}

/* a < b, or a <= b if `or_equal`. Fails where Python has no order. */
static cfx_status less(cfxi_call *c, cfx_datum a, cfx_datum b, bool or_equal, cfxi_truth *out)
{
    size_t n;
    size_t m;
    const cfx_datum *x = cfx_datum_items(a, &n);
    const cfx_datum *y = cfx_datum_items(b, &m);
    bool complex = a.kind == CFX_DATUM_COMPLEX || b.kind == CFX_DATUM_COMPLEX;
    if (cfxi_is_number(a) && cfxi_is_number(b) && !complex) {
        if (or_equal && !a.symbolic && !b.symbolic) {  /* not by turning it round: NaN */
            *out = exact_of(a) <= exact_of(b) ? CFXI_TRUE : CFXI_FALSE;
            return CFX_OK;
        }
        *out = or_equal ? numbers_less(c, b, a) : numbers_less(c, a, b);
        if (or_equal && *out != CFXI_DEPENDS)
            *out = *out == CFXI_TRUE ? CFXI_FALSE : CFXI_TRUE;
        return CFX_OK;
    }
    if (a.kind == CFX_DATUM_STR && b.kind == CFX_DATUM_STR) {
        *out = compare_texts(a, b) < (or_equal ? 1 : 0) ? CFXI_TRUE : CFXI_FALSE;
        return CFX_OK;
    }
    if (a.kind != b.kind || (a.kind != CFX_DATUM_TUPLE && a.kind != CFX_DATUM_LIST))
        return cfxi_fail(c, CFX_E_TYPE, "'<' not supported between instances of '%s' and '%s'",
                         cfx_datum_kind_name((cfx_datum_kind)a.kind),
                         cfx_datum_kind_name((cfx_datum_kind)b.kind));
    for (size_t i = 0; i < n && i < m; i++) {
        cfxi_truth same;
        CFX_TRY(cfxi_python_equal(c, x[i], y[i], &same));
        if (same == CFXI_FALSE)
            return less(c, x[i], y[i], or_equal, out);
        if (same == CFXI_DEPENDS) {
            *out = CFXI_DEPENDS;
            return CFX_OK;
        }
    }
    *out = n < m || (or_equal && n == m) ? CFXI_TRUE : CFXI_FALSE;
    return CFX_OK;
}

static cfx_datum compare(cfxi_call *c, action a, cfx_datum x, cfx_datum y)
{
    cfxi_truth t = CFXI_FALSE;
    cfx_status status;
    if (a == EQ || a == NE) {
        status = cfxi_python_equal(c, x, y, &t);
        if (a == NE && t != CFXI_DEPENDS)
            t = t == CFXI_TRUE ? CFXI_FALSE : CFXI_TRUE;
    } else {
        bool turned = a == GT || a == GE;
        status = less(c, turned ? y : x, turned ? x : y, a == LE || a == GE, &t);
    }
    return status == CFX_OK ? cfxi_truth_datum(t) : cfxi_invalid();
}

cfx_datum cfxi_python_choose(cfxi_call *c, cfx_datum a, cfx_datum b, bool larger)
{
    cfxi_truth first;
    if (is_reckonable(a) && is_reckonable(b) && (a.symbolic || b.symbolic)) {
        cfx_datum r = cfx_datum_int(larger ? cfx_dim_max(c->dims, int_of(a), int_of(b), c->err)
                                           : cfx_dim_min(c->dims, int_of(a), int_of(b), c->err));
        r.symbolic = cfx_dim_is_symbol(r.as.i) || r.as.i == CFX_DIM_UNKNOWN;
        return r;
    }
    if (less(c, larger ? a : b, larger ? b : a, false, &first) != CFX_OK)
        return cfxi_invalid();
    if (first == CFXI_DEPENDS)
        return unknown(is_integral(a) && is_integral(b) ? CFX_DATUM_INT : CFX_DATUM_FLOAT);
    return cfx_datum_retain(first == CFXI_TRUE ? b : a);
}

/* ---- containers ---------------------------------------------------------------------------- */

/* `times` copies of `a` one after the other, then `b` (INVALID: nothing). */
static cfx_datum join(cfxi_call *c, cfx_datum a, int64_t times, cfx_datum b)
{
    size_t n;
    size_t m;
    size_t total;
    size_t bytes;
    bool text = a.kind == CFX_DATUM_STR;
    const char *as = cfx_datum_str(a, &n);
    const char *bs = cfx_datum_str(b, &m);
    const cfx_datum *ai = text ? NULL : cfx_datum_items(a, &n);
    const cfx_datum *bi = text ? NULL : cfx_datum_items(b, &m);
    size_t item = text ? 1 : sizeof *ai;
    char *made = NULL;
    times = times < 0 ? 0 : times;
    if (cfxi_mul_size(n, (size_t)times, m, &total) && cfxi_mul_size(total, item, 1, &bytes))
        made = cfxi_scratch(c->rt, bytes);
    if (!made) {
        cfxi_nomem(c->err);
        return cfxi_invalid();
    }
    const void *from_a = text ? (const void *)as : (const void *)ai;
    const void *from_b = text ? (const void *)bs : (const void *)bi;
    for (size_t i = 0; n > 0 && i < (size_t)times; i++)
        memcpy(made + i * n * item, from_a, n * item);
    if (m > 0)
        memcpy(made + (size_t)times * n * item, from_b, m * item);
    cfx_datum r = text ? cfx_datum_text(CFX_DATUM_STR, made, total, c->rt->allocator, c->err)
                       : cfx_datum_seq((cfx_datum_kind)a.kind, (const cfx_datum *)(void *)made,
                                       total, c->rt->allocator, c->err);
    cfxi_scratch_free(c->rt, made);
    return r;
}

static bool is_sequence(cfx_datum d)
{
    return d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_TUPLE || d.kind == CFX_DATUM_STR;
}

cfx_datum cfxi_python_concat(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    if (!is_sequence(a) || a.kind != b.kind)
        return fail_kinds(c, ADD, a, b);
    return join(c, a, 1, b);
}

static cfx_datum repeat(cfxi_call *c, cfx_datum sequence, cfx_datum times)
{
    if (times.symbolic)
        return fail_value(c, "a sequence repeated a number of times that is not known");
    return join(c, sequence, int_of(times), cfxi_invalid());
}

/* ---- one operand --------------------------------------------------------------------------- */

static double round_even(double x) { return nearbyint(x); }

/* What gives an integer of a float. */
static cfx_datum to_whole(cfxi_call *c, double (*f)(double), cfx_datum d)
{
    if (is_integral(d))
        return d.symbolic ? d : cfx_datum_int(int_of(d));
    double whole = f(d.as.f);
    if (!(whole >= -0x1p63 && whole < 0x1p63))
        return fail_value(c, "a float that is no integer of 64 bits");
    return cfx_datum_int((int64_t)whole);
}

static cfx_datum float_function(cfxi_call *c, action a, cfx_datum d)
{
    double x = float_of(d);
    if (d.symbolic)
        return unknown(CFX_DATUM_FLOAT);
    if ((a == SQRT && x < 0) || (a == LOG && x <= 0))
        return fail_value(c, "math domain error");
    return cfx_datum_float(a == SQRT  ? sqrt(x)
                           : a == EXP ? exp(x)
                           : a == LOG ? log(x)
                           : a == SIN ? sin(x)
                                      : cos(x));
}

static cfx_datum absolute(cfxi_call *c, cfx_datum d)
{
    if (d.kind == CFX_DATUM_COMPLEX)
        return cfx_datum_float(hypot(d.as.c[0], d.as.c[1]));
    if (d.kind == CFX_DATUM_FLOAT)
        return cfx_datum_float(fabs(d.as.f));
    if (d.symbolic)
        return cfxi_python_choose(c, d, arithmetic(c, SUB, cfx_datum_int(0), d), true);
    return int_of(d) < 0 ? int_arithmetic(c, SUB, 0, int_of(d)) : cfx_datum_int(int_of(d));
}

/* What is known of an action on a bool, float or complex number that nobody knows: its kind. */
static cfx_datum unary_unknown(action a, cfx_datum d)
{
    const bool whole = a == FLOOR || a == CEIL || a == TRUNC || a == ROUND;
    const bool sign = a == NEG || a == POS || a == ABS || a == INVERT;
    if (whole || (sign && d.kind == CFX_DATUM_BOOL))
        return unknown(CFX_DATUM_INT);
    return unknown(sign && a != ABS ? (cfx_datum_kind)d.kind : CFX_DATUM_FLOAT);
}

static cfx_datum unary(cfxi_call *c, action a, cfx_datum d)
{
    bool complex = d.kind == CFX_DATUM_COMPLEX;
    if (!cfxi_is_number(d) || (complex && a > ABS) || (a == INVERT && !is_integral(d))) {
        cfxi_fail(c, CFX_E_TYPE, "bad operand type: '%s'",
                  cfx_datum_kind_name((cfx_datum_kind)d.kind));
        return cfxi_invalid();
    }
    if (d.symbolic && d.kind != CFX_DATUM_INT)
        return unary_unknown(a, d);
    switch (a) {
    case NEG:
        if (complex)
            return cfx_datum_complex(-d.as.c[0], -d.as.c[1]);
        if (d.kind == CFX_DATUM_FLOAT) {
            d.as.f = -d.as.f;
            return d;
        }
        return arithmetic(c, SUB, cfx_datum_int(0), d);
    case POS: return d.kind == CFX_DATUM_BOOL ? cfx_datum_int(d.as.b) : d;
    case ABS: return absolute(c, d);
    case INVERT:
        return d.symbolic ? arithmetic(c, SUB, unary(c, NEG, d), cfx_datum_int(1))
                          : cfx_datum_int(~int_of(d));
    case FLOOR: return to_whole(c, floor, d);
    case CEIL: return to_whole(c, ceil, d);
    case TRUNC: return to_whole(c, trunc, d);
    case ROUND: return to_whole(c, round_even, d);
    default: return float_function(c, a, d);
    }
}

/* ---- the call ------------------------------------------------------------------------------ */

cfx_datum cfxi_python_call(cfxi_call *c)
{
    action a = action_of(c->op);
    cfx_datum x = c->args[0];
    if (a >= FIRST_UNARY)
        return unary(c, a, x);
    cfx_datum y = c->args[1];
    if (a >= EQ && a <= GE)
        return compare(c, a, x, y);
    if (a == MAX || a == MIN)
        return cfxi_python_choose(c, x, y, a == MAX);
    if (a == ADD && is_sequence(x))
        return cfxi_python_concat(c, x, y);
    if (a == MUL && is_sequence(x) && is_integral(y))
        return repeat(c, x, y);
    if (a == MUL && is_sequence(y) && is_integral(x))
        return repeat(c, y, x);
    if (!cfxi_is_number(x) || !cfxi_is_number(y))
        return fail_kinds(c, a, x, y);
    return arithmetic(c, a, x, y);
}

/* ---- for the rows of Python's functions ---------------------------------------------------- */

cfx_status cfxi_python_number(cfxi_call *c, cfx_datum d, cfx_datum *out)
{
    *out = d;
    if (d.kind != CFX_DATUM_TENSOR)
        return CFX_OK;
    *out = cfxi_sub(c, CFX_OPID_item, &d, 1);
    return out->kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

cfx_status cfxi_python_index(cfxi_call *c, cfx_datum d, cfx_datum *out)
{
    CFX_TRY(cfxi_python_number(c, d, out));
    if (!is_integral(*out))
        return cfxi_fail(c, CFX_E_TYPE, "'%s' object cannot be interpreted as an integer",
                         cfx_datum_kind_name((cfx_datum_kind)d.kind));
    if (out->kind == CFX_DATUM_BOOL)
        *out = cfx_datum_int(out->as.b);
    return CFX_OK;
}

cfx_status cfxi_python_truth(cfxi_call *c, cfx_datum d, cfxi_truth *out)
{
    size_t n;
    if (d.kind == CFX_DATUM_TENSOR) {
        int64_t elements = 1;
        for (size_t i = 0; i < d.as.tensor->ndim; i++)
            elements = cfx_dim_mul(c->dims, elements, d.as.tensor->size[i], c->err);
        if (elements != CFX_DIM_UNKNOWN && !cfxi_same_size(c, elements, 1))
            return cfxi_fail(c, CFX_E_SHAPE, "Boolean value of Tensor with %s is ambiguous",
                             elements ? "more than one value" : "no values");
        CFX_TRY(cfxi_python_number(c, d, &d));
    }
    if (cfxi_is_number(d)) {
        CFX_TRY(cfxi_python_equal(c, d, cfx_datum_int(0), out));
        *out = *out == CFXI_DEPENDS ? *out : *out == CFXI_TRUE ? CFXI_FALSE : CFXI_TRUE;
        if (d.kind == CFX_DATUM_BOOL)
            *out = d.symbolic ? CFXI_DEPENDS : d.as.b ? CFXI_TRUE : CFXI_FALSE;
        return CFX_OK;
    }
    bool full = d.kind != CFX_DATUM_NONE;
    if (cfx_datum_items(d, &n) && d.kind != CFX_DATUM_SLICE)
        full = n > 0;
    if (d.kind == CFX_DATUM_STR && cfx_datum_str(d, &n))
        full = n > 0;
    *out = full ? CFXI_TRUE : CFXI_FALSE;
    return CFX_OK;
}
