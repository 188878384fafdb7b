/* import_quantize.c - quantized tensors: to them, from them, by tensor, axis or block. */
#include "rules_impl.h"

#include "tensor/tensor_impl.h"

/* ---- types --------------------------------------------------------------------------------- */

enum { FLOAT4E2M1 = 23 };

/* What the elements of a type of ONNX can be. */
typedef struct range {
    int64_t type;
    double least, most;
    bool is_float;
} range;

static const range ranges[] = {
    {2, 0, 255, false},        {3, -128, 127, false},  {4, 0, 65535, false},
    {5, -32768, 32767, false}, {6, INT32_MIN, INT32_MAX, false},
    {21, 0, 15, false},        {22, -8, 7, false},     {25, 0, 3, false},
    {26, -2, 1, false},        {17, -448, 448, true},  {18, -240, 240, true},
    {19, -57344, 57344, true}, {20, -57344, 57344, true}, {FLOAT4E2M1, -6, 6, true},
};

static const range *range_of(int64_t type)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].type == type)
            return &ranges[i];
    return NULL;
}

/* The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their opposites; of two the even one. */
static cfx_var round_to_float4(cfx_scope *s, cfx_var x)
{
    const cfx_var size = cfx_abs(s, x);
    const cfx_var half = cfx_full_like(s, size, 0.5);
    const cfx_var one = cfx_full_like(s, size, 1.0);
    const cfx_var two = cfx_full_like(s, size, 2.0);
    const cfx_var step = cfx_where(s, cfx_lt(s, size, 2), half,
                                   cfx_where(s, cfx_lt(s, size, 4), one, two));
    const cfx_var y = cfx_mul(s, cfx_round(s, cfx_div(s, size, step)), step);
    return cfx_copysign(s, cfx_clamp(s, y, .max = cfx_v(6.0)), x);
}

/* To a float type: limited before, because what is too large would become a NaN. */
static cfx_var to_float_type(cfxi_import_call *c, cfx_var x, const range *r, bool saturate)
{
    cfx_scope *s = c->scope;
    if (r->type == FLOAT4E2M1)
        return round_to_float4(s, cfxi_import_cast_to(s, x, CFX_DTYPE_FLOAT32));
    if (saturate)
        x = cfx_clamp(s, x, .min = cfx_v(r->least), .max = cfx_v(r->most));
    return cfx_to(s, x, cfx_var_dtype(cfxi_onnx_dtype(r->type)));
}

cfx_var cfxi_import_saturate(cfxi_import_call *c, cfx_var x, cfx_var zero, int64_t type)
{
    cfx_scope *s = c->scope;
    const range *r = range_of(type);
    if (!r || r->is_float)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the type of the quantized tensor is not "
                                "known, or not an integer");
    x = cfx_round(s, x);
    if (zero.kind != CFX_VAR_EMPTY)
        x = cfx_add(s, x, cfx_to(s, zero, cfx_var_dtype(cfxi_import_dtype_of(s, x))));
    x = cfx_clamp(s, x, .min = cfx_v(r->least), .max = cfx_v(r->most));
    return cfx_to(s, x, cfx_var_dtype(cfxi_onnx_dtype(type)));
}

/* ---- scales -------------------------------------------------------------------------------- */

/* A scale or zero point, input i, so that it fits each element of input 0. */
static cfx_var spread(cfxi_import_call *c, size_t i)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, i);
    const int rank = cfxi_import_need_rank(c, 0);
    const int own = cfxi_import_need_rank(c, i);
    const int64_t block = cfxi_import_int(c, "block_size", 0);
    if (own <= 0 || rank < 1)
        return x;
    const int64_t given = cfxi_import_int(c, "axis", 1);
    const int axis = rank == 1 ? 0 : cfxi_import_axis(c, given, rank);
    if (axis < 0)
        return cfx_var_empty();
    const cfx_var count = cfxi_import_size(c, i, own == 1 ? 0 : axis);
    if (own == 1 && !block)
        return count.kind == CFX_VAR_INT && count.as.i == 1 ? cfx_reshape(s, x, cfx_tuple(s))
                                                            : cfxi_import_along(s, x, axis, rank);
    if (own != rank)
        return cfxi_import_fail(c, CFX_E_VALUE, "input %zu must have %d dimensions", i, rank);
    const cfx_var times = cfx_var_int(block > 0 ? block : 1);
    const cfx_var wide = cfx_repeat_interleave(s, x, times, .dim = cfx_v(axis));
    return cfx_slice(s, wide, .dim = cfx_v(axis), .start = cfx_v(0),
                     .end = cfxi_import_size(c, 0, axis));
}

/* ---- rows of the table ---------------------------------------------------------------------- */

/* What makes a node the same as a row: scales are float32, and integers have one of these types. */
typedef struct plain {
    const range *r;
    cfx_dtype dtype;     /* that cfx holds them in */
    bool number;         /* one scale */
    bool known;          /* which is known, and the zero point too */
    double scale;
    int64_t zero;
    int axis;
    int64_t block;       /* 0: none */
} plain;

/* The number in input i, if it is known; no input is 0. */
static bool one_number(cfxi_import_call *c, size_t i, double *out)
{
    const cfx_tensor *t = cfxi_import_has(c, i) ? cfxi_import_known(c, i) : NULL;
    const bool one = t && cfx_tensor_numel(t) == 1;
    *out = one ? cfxi_tensor_load_float(cfx_tensor_dtype(t), cfx_tensor_data((cfx_tensor *)t)) : 0;
    return one || !cfxi_import_has(c, i);
}

/* Whether the node is plain; `type` is the integers', of ONNX. */
static bool read_plain(cfxi_import_call *c, int64_t type, plain *p)
{
    const int rank = cfxi_import_rank(c, 0);
    const int own = cfxi_import_rank(c, 1);
    double zero = 0;
    *p = (plain){.r = range_of(type), .dtype = cfxi_onnx_dtype(type),
                 .block = cfxi_import_int(c, "block_size", 0)};
    if (!p->r || p->r->is_float || type == 4 || own < 0 || rank < 0 ||
        cfxi_import_dtype(c, 1) != CFX_DTYPE_FLOAT32 || cfxi_import_int(c, "precision", 0))
        return false;
    p->number = own == 0;
    if (own > 0) {
        const cfx_var count = cfxi_import_size(c, 1, 0);
        p->number = own == 1 && !p->block && count.kind == CFX_VAR_INT && count.as.i == 1;
    }
    if (p->number) {
        p->known = one_number(c, 1, &p->scale) && one_number(c, 2, &zero);
        if (!(zero >= p->r->least && zero <= p->r->most))  /* a float that is too large, or NaN */
            return false;
        p->zero = (int64_t)zero;
        return !p->known || (p->scale > 0 && p->scale < 1e30 && p->scale > 1e-30);
    }
    const int64_t axis = cfxi_import_int(c, "axis", 1);
    p->axis = (int)(axis < 0 ? axis + rank : axis);
    return p->axis >= 0 && p->axis < rank && own == (p->block ? rank : 1);
}

/* Whether a zero point is known to be 0 everywhere. */
static bool has_no_zero(cfxi_import_call *c)
{
    const cfx_tensor *t = cfxi_import_has(c, 2) ? cfxi_import_known(c, 2) : NULL;
    bool all = t && cfx_tensor_is_contiguous(t);
    for (int64_t i = 0; all && i < cfx_tensor_numel(t); i++)
        all = cfxi_tensor_load_float(cfx_tensor_dtype(t), (const char *)cfx_tensor_data(
            (cfx_tensor *)t) + (size_t)i * cfx_dtype_size(cfx_tensor_dtype(t))) == 0;
    return all || !cfxi_import_has(c, 2);
}

/* Zero points in a type that holds the difference to any integer. */
static cfx_var wide_zeros(cfxi_import_call *c)
{
    return cfx_to(c->scope, cfxi_import_fixed(c, 2), cfx_var_dtype(CFX_DTYPE_INT32));
}

/* The row that computes the node; EMPTY if there is none. The row multiplies by 1 / scale, the
 * standard divides, which differs by a step where x / scale is a tie, or nearly. A scale that a run
 * computes from x makes ties of its ends, so there the node is read as the standard has it. */
static cfx_var quantize_by_row(cfxi_import_call *c, int64_t type)
{
    cfx_scope *s = c->scope;
    plain p;
    if (cfxi_import_dtype(c, 0) != CFX_DTYPE_FLOAT32 || (type != 2 && type != 3 && type != 5) ||
        !read_plain(c, type, &p) || p.block)
        return cfx_var_empty();
    const cfx_var x = cfxi_import_in(c, 0);
    const cfx_var low = cfx_var_int((int64_t)p.r->least);
    const cfx_var high = cfx_var_int((int64_t)p.r->most);
    const cfx_var dtype = cfx_var_dtype(p.dtype);
    if (p.number && p.known)
        return cfx_quantize_per_tensor(s, x, p.scale, cfx_var_int(p.zero), low, high, dtype);
    if (p.number || !cfxi_import_has(c, 2) || !cfxi_import_known(c, 1))
        return cfx_var_empty();
    return cfx_quantize_per_channel(s, x, cfxi_import_fixed(c, 1), wide_zeros(c),
                                    cfx_var_int(p.axis), low, high, dtype);
}

/* Of blocks: rows of a matrix, in parts of the same size. */
static cfx_var dequantize_blocks(cfxi_import_call *c, const plain *p)
{
    cfx_scope *s = c->scope;
    const cfx_var length = cfxi_import_rank(c, 0) == 2 ? cfxi_import_size(c, 0, 1)
                                                       : cfx_var_empty();
    if (p->axis != 1 || length.kind != CFX_VAR_INT || p->block < 2 || length.as.i % p->block != 0)
        return cfx_var_empty();
    const cfx_var zeros = has_no_zero(c) ? cfx_var_none() : wide_zeros(c);
    return cfx_dequantize_per_channel_group(
        s, cfxi_import_fixed(c, 0), cfxi_import_fixed(c, 1), zeros,
        cfx_var_int((int64_t)p->r->least), cfx_var_int((int64_t)p->r->most),
        cfx_var_dtype(p->dtype), cfx_var_int(p->block), cfx_var_dtype(CFX_DTYPE_FLOAT32));
}

/* Likewise. Integers of 32 bits are biases: those that are known become floats. *later: weights
 * that are known stay integers, so the node must be traced. */
static cfx_var dequantize_by_row(cfxi_import_call *c, int64_t type, bool *later)
{
    cfx_scope *s = c->scope;
    plain p;
    if (!read_plain(c, type, &p) || type == 6)
        return cfx_var_empty();
    *later = cfxi_import_rank(c, 0) > 1 && cfxi_import_later(c);
    if (*later)
        return cfx_var_empty();
    if (p.block)
        return dequantize_blocks(c, &p);
    const cfx_var x = cfxi_import_fixed(c, 0);
    const cfx_var low = cfx_var_int((int64_t)p.r->least);
    const cfx_var high = cfx_var_int((int64_t)p.r->most);
    const cfx_var dtype = cfx_var_dtype(p.dtype);
    if (p.number && p.known)
        return cfx_dequantize_per_tensor(s, x, p.scale, cfx_var_int(p.zero), low, high, dtype);
    if (p.number)
        return cfxi_import_has(c, 2)
                   ? cfx_dequantize_per_tensor_tensor(s, x, cfxi_import_in(c, 1),
                                                      cfxi_import_in(c, 2), low, high, dtype)
                   : cfx_var_empty();
    const cfx_var zeros = has_no_zero(c) ? cfx_var_none() : wide_zeros(c);
    return cfx_dequantize_per_channel(s, x, cfxi_import_fixed(c, 1), zeros, cfx_var_int(p.axis),
                                      low, high, dtype);
}

/* ---- rules --------------------------------------------------------------------------------- */

cfx_var cfxi_import_quantize_linear(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int64_t asked = cfxi_import_int(c, "output_dtype", 0);
    const int64_t type = asked                      ? asked
                         : cfxi_import_has(c, 2) ? cfxi_import_type(c, 2) : 2;
    const int64_t precision = cfxi_import_int(c, "precision", 0);
    const range *r = range_of(type);
    if (!r)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "quantizing to %s",
                                cfxi_onnx_dtype_name(type));
    const cfx_var made = quantize_by_row(c, type);
    if (made.kind != CFX_VAR_EMPTY) {
        cfxi_import_set_type(c, 0, type);
        return made;
    }
    cfx_dtype with = precision ? cfxi_onnx_dtype(precision) : cfxi_import_dtype(c, 1);
    if (!precision && (with == CFX_DTYPE_COUNT || !cfx_dtype_is_float(with) ||
                       with == CFX_DTYPE_FLOAT8_E8M0FNU))
        with = CFX_DTYPE_FLOAT32;
    cfx_var x = cfxi_import_cast_to(s, cfxi_import_in(c, 0), with);
    x = cfx_div(s, x, cfxi_import_cast_to(s, spread(c, 1), with));
    cfxi_import_set_type(c, 0, type);
    if (!r->is_float)
        return cfxi_import_saturate(c, cfxi_import_widened(s, x),
                                    cfxi_import_has(c, 2) ? spread(c, 2) : cfx_var_empty(), type);
    if (cfxi_import_has(c, 2))
        x = cfx_add(s, x, cfx_to(s, spread(c, 2), cfx_var_dtype(with)));
    return to_float_type(c, x, r, cfxi_import_int(c, "saturate", 1) != 0);
}

cfx_var cfxi_import_dequantize_linear(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int64_t asked = cfxi_import_int(c, "output_dtype", 0);
    const cfx_dtype from = cfxi_import_dtype(c, 0);
    const cfx_dtype to = asked ? cfxi_onnx_dtype(asked) : cfxi_import_dtype(c, 1);
    cfx_var x = cfxi_import_in(c, 0);
    if (from == CFX_DTYPE_COUNT || to == CFX_DTYPE_COUNT)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the types of the inputs are not known");
    bool later = false;
    const cfx_var made = to == CFX_DTYPE_FLOAT32
                             ? dequantize_by_row(c, cfxi_import_type(c, 0), &later)
                             : cfx_var_empty();
    if (later || made.kind != CFX_VAR_EMPTY)
        return made;
    const cfx_var between = cfx_var_dtype(cfx_dtype_is_float(from) ? to : CFX_DTYPE_INT32);
    if (cfxi_import_has(c, 2))
        x = cfx_sub(s, cfx_to(s, x, between), cfx_to(s, spread(c, 2), between));
    return cfx_mul(s, cfxi_import_cast_to(s, x, to), cfxi_import_cast_to(s, spread(c, 1), to));
}

cfx_var cfxi_import_dynamic_quantize_linear(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var x = cfxi_import_in(c, 0);
    const cfx_var most = cfx_clamp(s, cfx_amax(s, x), .min = cfx_v(0));
    const cfx_var least = cfx_clamp(s, cfx_amin(s, x), .max = cfx_v(0));
    const cfx_var scale = cfx_div(s, cfx_sub(s, most, least), 255.0);
    const cfx_var zero = cfxi_import_saturate(c, cfx_div(s, cfx_neg(s, least), scale),
                                              cfx_var_empty(), 2);
    cfxi_import_set(c, 1, scale);
    cfxi_import_set(c, 2, zero);
    return cfxi_import_saturate(c, cfx_div(s, x, scale), zero, 2);
}
