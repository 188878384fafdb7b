/* scalar.c - what the functions of Python's module operator give for numbers.
 *
 * Only where C gives the same: integers that stay within 64 bits, floats of IEEE 754. Everything
 * else (a division by zero, a big integer, text) is left to Python.
 */
#include "analysis_impl.h"

#include <math.h>

typedef enum scalar_op {
    ADD, SUB, MUL, TRUEDIV, FLOORDIV, MOD, AND, OR, XOR, EQ, NE, LT, LE, GT, GE,
    NEG, POS, ABS, INVERT, NOT, NONE
} scalar_op;

static const char *const names[] = {
    [ADD] = "add", [SUB] = "sub", [MUL] = "mul", [TRUEDIV] = "truediv", [FLOORDIV] = "floordiv",
    [MOD] = "mod", [AND] = "and_", [OR] = "or_", [XOR] = "xor", [EQ] = "eq", [NE] = "ne",
    [LT] = "lt", [LE] = "le", [GT] = "gt", [GE] = "ge", [NEG] = "neg", [POS] = "pos",
    [ABS] = "abs", [INVERT] = "invert", [NOT] = "not_",
};

static scalar_op find_op(const char *name)
{
    if (name[0] == '_')  /* "_operator.add" */
        name++;
    if (strncmp(name, "operator.", 9) != 0)
        return NONE;
    for (int op = 0; op < NONE; op++)
        if (strcmp(names[op], name + 9) == 0)
            return (scalar_op)op;
    return NONE;
}

static bool is_integer(cfx_value v) { return v.kind == CFX_KIND_INT || v.kind == CFX_KIND_BOOL; }
static bool is_number(cfx_value v) { return is_integer(v) || v.kind == CFX_KIND_FLOAT; }
static int64_t as_integer(cfx_value v) { return v.kind == CFX_KIND_BOOL ? v.as.b : v.as.i; }
static double as_float(cfx_value v)
{
    return v.kind == CFX_KIND_FLOAT ? v.as.f : (double)as_integer(v);
}

/* Whether a float stands for it exactly. */
static bool fits_float(cfx_value v)
{
    const int64_t limit = (int64_t)1 << 53;
    return v.kind == CFX_KIND_FLOAT || (as_integer(v) <= limit && as_integer(v) >= -limit);
}

/* Python rounds down, C towards zero: then the remainder has the sign of the divisor. */
static bool rounds_up(int64_t a, int64_t b) { return a % b != 0 && (a < 0) != (b < 0); }

static cfx_value integers(scalar_op op, int64_t a, int64_t b)
{
    int64_t r;
    bool divides = b != 0 && !(a == INT64_MIN && b == -1);
    switch (op) {
    case ADD: return __builtin_add_overflow(a, b, &r) ? cfx_value_invalid() : cfx_value_int(r);
    case SUB: return __builtin_sub_overflow(a, b, &r) ? cfx_value_invalid() : cfx_value_int(r);
    case MUL: return __builtin_mul_overflow(a, b, &r) ? cfx_value_invalid() : cfx_value_int(r);
    case FLOORDIV: return divides ? cfx_value_int(a / b - rounds_up(a, b)) : cfx_value_invalid();
    case MOD:
        return divides ? cfx_value_int(a % b + (rounds_up(a, b) ? b : 0)) : cfx_value_invalid();
    case AND: return cfx_value_int(a & b);
    case OR: return cfx_value_int(a | b);
    case XOR: return cfx_value_int(a ^ b);
    case EQ: return cfx_value_bool(a == b);
    case NE: return cfx_value_bool(a != b);
    case LT: return cfx_value_bool(a < b);
    case LE: return cfx_value_bool(a <= b);
    case GT: return cfx_value_bool(a > b);
    case GE: return cfx_value_bool(a >= b);
    case TRUEDIV: case NEG: case POS: case ABS: case INVERT: case NOT: case NONE: break;
    }
    return cfx_value_invalid();
}

static cfx_value floats(scalar_op op, double a, double b)
{
    switch (op) {
    case ADD: return cfx_value_float(a + b);
    case SUB: return cfx_value_float(a - b);
    case MUL: return cfx_value_float(a * b);
    case TRUEDIV: return b != 0 ? cfx_value_float(a / b) : cfx_value_invalid();
    case EQ: return cfx_value_bool(a == b);
    case NE: return cfx_value_bool(a != b);
    case LT: return cfx_value_bool(a < b);
    case LE: return cfx_value_bool(a <= b);
    case GT: return cfx_value_bool(a > b);
    case GE: return cfx_value_bool(a >= b);
    case FLOORDIV: case MOD: case AND: case OR: case XOR:
    case NEG: case POS: case ABS: case INVERT: case NOT: case NONE: break;
    }
    return cfx_value_invalid();
}

static cfx_value unary(scalar_op op, cfx_value v)
{
    bool whole = is_integer(v);
    if (op == NOT)
        return cfx_value_bool(whole ? as_integer(v) == 0 : v.as.f == 0);
    if (op == INVERT)  /* Python means to give up ~True */
        return v.kind == CFX_KIND_INT ? cfx_value_int(~v.as.i) : cfx_value_invalid();
    if (whole && as_integer(v) == INT64_MIN)
        return cfx_value_invalid();
    bool negate = op == NEG || (op == ABS && (whole ? as_integer(v) < 0 : signbit(v.as.f) != 0));
    if (op != NEG && op != POS && op != ABS)
        return cfx_value_invalid();
    if (whole)
        return cfx_value_int(negate ? -as_integer(v) : as_integer(v));
    return cfx_value_float(negate ? -v.as.f : v.as.f);
}

static cfx_value binary(scalar_op op, cfx_value a, cfx_value b)
{
    bool bits = op == AND || op == OR || op == XOR;
    if (bits && a.kind == CFX_KIND_BOOL && b.kind == CFX_KIND_BOOL)
        return cfx_value_bool(as_integer(integers(op, a.as.b, b.as.b)) != 0);
    if (is_integer(a) && is_integer(b) && op != TRUEDIV)
        return integers(op, as_integer(a), as_integer(b));
    return fits_float(a) && fits_float(b) ? floats(op, as_float(a), as_float(b))
                                          : cfx_value_invalid();
}

cfx_value cfxi_analysis_scalar_call(const char *name, const cfx_value *args, size_t n)
{
    scalar_op op = find_op(name);
    if (op == NONE || n != (op >= NEG ? 1 : 2) || !is_number(args[0]) || !is_number(args[n - 1]))
        return cfx_value_invalid();
    return n == 1 ? unary(op, args[0]) : binary(op, args[0], args[1]);
}
