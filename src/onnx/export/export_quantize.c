/* export_quantize.c - quantized tensors: QuantizeLinear and DequantizeLinear, by tensor, axis and
 * block, with int4 weights, where the opset has the type and the standard gives the same integers;
 * else what they are made of. */
#include "export_impl.h"

#include <math.h>

/* ---- numbers ------------------------------------------------------------------------------- */

/* The tensor that a value is known to be; or NULL. */
static const cfx_tensor *known(const cfxi_ev *v)
{
    const cfx_tensor *t = v->datum.kind == CFX_DATUM_TENSOR ? v->datum.as.tensor : NULL;
    return t && !cfx_tensor_is_abstract(t) && v->version == 0 ? t : NULL;
}

/* Argument i as a number, if it is one that is known, or a tensor of one element that is. */
static bool known_number(const cfxi_export_call *c, size_t i, double *out)
{
    const cfxi_ev *v = c->args[i];
    const cfx_tensor *t = known(v);
    if (t && cfx_tensor_numel(t) == 1)
        *out = cfxi_tensor_load_float((cfx_dtype)t->dtype, cfxi_tensor_bytes(t));
    else if (cfxi_export_is_known(v))
        *out = v->datum.kind == CFX_DATUM_INT ? (double)v->datum.as.i : v->datum.as.f;
    else
        return false;
    return true;
}

/* A tensor of the module in another type, converted now; what only a run knows is cast then. */
static cfxi_ev *in_type(cfxi_export_call *c, cfxi_ev *v, cfx_dtype dtype)
{
    const cfx_tensor *t = known(v);
    if (!t || t->dtype == dtype)
        return CAST(v, dtype);
    cfx_tensor *made = cfx_tensor_new(dtype, t->size, t->ndim, c->x->allocator, c->x->err);
    if (!made || cfxi_rt_copy(c->x->rt, made, t, c->x->err) != CFX_OK) {
        cfx_tensor_release(made);
        return cfxi_export_fail(c->x);
    }
    cfxi_ev *e = cfxi_export_of_datum(c->x, cfxi_export_own(c->x, cfx_datum_tensor(made)));
    e->path = v->path;
    return e;
}

/* ---- types --------------------------------------------------------------------------------- */

static bool limits_of(cfx_dtype dtype, double *least, double *most)
{
    switch ((int)dtype) {
    case CFX_DTYPE_UINT8: *least = 0; *most = UINT8_MAX; return true;
    case CFX_DTYPE_INT8: *least = INT8_MIN; *most = INT8_MAX; return true;
    case CFX_DTYPE_UINT16: *least = 0; *most = UINT16_MAX; return true;
    case CFX_DTYPE_INT16: *least = INT16_MIN; *most = INT16_MAX; return true;
    case CFX_DTYPE_INT32: *least = INT32_MIN; *most = INT32_MAX; return true;
    default: return false;
    }
}

/* Whether the opset quantizes to the type; a range within it becomes a Clip, which ONNX Runtime has
 * for bytes. */
static bool has_type(const cfxi_export_call *c, cfx_dtype dtype, double low, double high)
{
    double least, most;
    if (!limits_of(dtype, &least, &most))
        return false;
    if (dtype == CFX_DTYPE_UINT8 || dtype == CFX_DTYPE_INT8)
        return true;
    return dtype != CFX_DTYPE_INT32 && c->x->opset >= 21 && low <= least && high >= most;
}

/* Whether all zero points that are known are numbers of the type. */
static bool zeros_fit(const cfxi_export_call *c, size_t i, cfx_dtype dtype)
{
    const cfx_tensor *t = known(c->args[i]);
    double least, most, zero;
    if (!cfxi_export_given(c, i))
        return true;
    if (!limits_of(dtype, &least, &most) || dtype == CFX_DTYPE_INT32)
        return false;
    if (known_number(c, i, &zero))
        return zero >= least && zero <= most && zero == floor(zero);
    for (int64_t k = 0; t && t->ndim == 1 && k < t->size[0]; k++) {
        zero = cfxi_tensor_load_float((cfx_dtype)t->dtype, cfxi_tensor_bytes(t) + k * t->stride[0]);
        if (zero < least || zero > most || zero != floor(zero))
            return false;
    }
    return cfx_dtype_is_integer(cfxi_export_dtype(c->args[i]));
}

/* ---- scales -------------------------------------------------------------------------------- */

/* What both directions need: a float32 scale and a zero point, scalars or along an axis. */
typedef struct spread {
    cfxi_ev *scale;
    cfxi_ev *zero;       /* NULL: 0 */
    int64_t axis;        /* -1: scalars */
    double number;       /* the scale, if it is a number that is known; else 0 */
} spread;

static cfxi_ev *scalar(cfxi_export_call *c, size_t i, cfx_dtype dtype)
{
    double number;
    if (known_number(c, i, &number))
        return cfxi_export_number(c->x, dtype, cfx_datum_float(number));
    return cfxi_export_scalar(c, CAST(ARG(i), dtype), c->args[i]);
}

/* Arguments 1 and 2, zero points in a type; `axis` is SIZE_MAX or the argument that says it. */
static spread spread_of(cfxi_export_call *c, size_t axis, cfx_dtype zeros)
{
    spread s = {.axis = -1};
    if (axis == SIZE_MAX || cfxi_export_known_size(c->x, c->args[1], 0) == 1) {
        if (!known_number(c, 1, &s.number))
            s.number = 0;
        s.scale = scalar(c, 1, CFX_DTYPE_FLOAT32);
        s.zero = cfxi_export_given(c, 2) ? scalar(c, 2, zeros) : NULL;
        return s;
    }
    s.axis = cfxi_export_dim(c, axis, c->args[0]->rank);
    s.scale = in_type(c, ARG(1), CFX_DTYPE_FLOAT32);
    s.zero = cfxi_export_given(c, 2) ? in_type(c, ARG(2), zeros) : NULL;
    return s;
}

/* A scale or zero point so that it fits each element: [n] becomes [n, 1, 1]. */
static cfxi_ev *along(cfxi_export_call *c, cfxi_ev *v, int64_t axis)
{
    int64_t sizes[CFX_MAX_DIMS];
    const int rank = c->args[0]->rank;
    if (axis < 0 || axis == rank - 1 || !v)
        return v;
    for (int d = 0; d < rank; d++)
        sizes[d] = d == axis ? -1 : 1;
    return cfxi_export_reshape(c, v, sizes + axis, (size_t)(rank - axis));
}

static void set_axis(cfxi_export_call *c, const spread *s)
{
    if (s->axis >= 0)
        SET_INT("axis", s->axis);
}

/* ---- quantize ------------------------------------------------------------------------------ */

/* clamp(round(x * (1 / scale)) + zero, low, high): as PyTorch computes it. */
static cfxi_ev *quantize_in_parts(cfxi_export_call *c, const spread *s, double low, double high)
{
    cfxi_ev *x = CAST(ARG(0), CFX_DTYPE_FLOAT32);
    cfxi_ev *inverse = s->number != 0 ? LIKE(x, 1 / s->number)
                                      : along(c, NODE("Reciprocal", s->scale), s->axis);
    x = NODE("Round", NODE("Mul", x, inverse));
    if (s->zero)
        x = NODE("Add", x, along(c, s->zero, s->axis));
    return NODE("Clip", x, LIKE(x, low), LIKE(x, high));
}

static cfxi_ev *quantize(cfxi_export_call *c, size_t axis, double low, double high)
{
    const cfx_dtype dtype = cfxi_export_result_dtype(c);
    double least, most;
    if (!has_type(c, dtype, low, high) || !zeros_fit(c, 2, dtype)) {
        const spread parts = spread_of(c, axis, CFX_DTYPE_FLOAT32);
        return quantize_in_parts(c, &parts, low, high);
    }
    const spread s = spread_of(c, axis, dtype);
    cfxi_ev *zero = s.zero ? s.zero : cfxi_export_number(c->x, dtype, cfx_datum_int(0));
    cfxi_ev *y = NODE("QuantizeLinear", CAST(ARG(0), CFX_DTYPE_FLOAT32), s.scale, zero);
    set_axis(c, &s);
    y->dtype = dtype;
    if (limits_of(dtype, &least, &most) && (low > least || high < most))
        y = NODE("Clip", y, LIKE(y, low), LIKE(y, high));
    return y;
}

cfxi_ev *cfxi_export_quantize_per_tensor(cfxi_export_call *c)
{
    double low, high;
    if (!known_number(c, 3, &low) || !known_number(c, 4, &high))
        return cfxi_export_refuse(c, "quant_min and quant_max must be constants");
    return quantize(c, SIZE_MAX, low, high);
}

cfxi_ev *cfxi_export_quantize_per_channel(cfxi_export_call *c)
{
    return quantize(c, 3, cfxi_export_float(c, 4), cfxi_export_float(c, 5));
}

/* ---- dequantize ---------------------------------------------------------------------------- */

static cfxi_ev *dequantize_in_parts(cfxi_export_call *c, const spread *s, cfx_dtype type)
{
    cfxi_ev *x = CAST(ARG(0), type);
    if (s->zero)
        x = NODE("Sub", x, CAST(along(c, s->zero, s->axis), type));
    return NODE("Mul", x, CAST(along(c, s->scale, s->axis), type));
}

static cfxi_ev *dequantize(cfxi_export_call *c, size_t axis)
{
    const cfx_dtype from = cfxi_export_dtype(c->args[0]);
    const cfx_dtype to = cfxi_export_result_dtype(c);
    double zero = 1;
    const bool is_int32 = from == CFX_DTYPE_INT32 && known_number(c, 2, &zero) && zero == 0;
    double least, most;
    const bool has = limits_of(from, &least, &most) && has_type(c, from, least, most);
    if (to == CFX_DTYPE_FLOAT64 || (!is_int32 && (!has || !zeros_fit(c, 2, from)))) {
        const spread parts = spread_of(c, axis, CFX_DTYPE_FLOAT32);
        return dequantize_in_parts(c, &parts,
                                   to == CFX_DTYPE_FLOAT64 ? to : CFX_DTYPE_FLOAT32);
    }
    const spread s = spread_of(c, axis, from);
    cfxi_ev *y = s.zero && !is_int32 ? NODE("DequantizeLinear", ARG(0), s.scale, s.zero)
                                     : NODE("DequantizeLinear", ARG(0), s.scale);
    set_axis(c, &s);
    y->dtype = CFX_DTYPE_FLOAT32;
    return y;
}

cfxi_ev *cfxi_export_dequantize_per_tensor(cfxi_export_call *c) { return dequantize(c, SIZE_MAX); }
cfxi_ev *cfxi_export_dequantize_per_channel(cfxi_export_call *c) { return dequantize(c, 3); }

/* ---- by group ------------------------------------------------------------------------------ */

enum { ROWS, SCALES, ZEROS, LOW, HIGH, DTYPE, GROUP };

/* Weights of four bits are unpacked while the file is written; int4 packs them again. */
cfxi_ev *cfxi_export_unpack_int4(cfxi_export_call *c)
{
    const cfx_tensor *packed = known(c->args[0]);
    if (!packed)
        return cfxi_export_refuse(c, "packed weights must be constants or tensors of the model");
    const cfx_datum args[] = {c->args[0]->datum, cfx_datum_int(cfxi_export_int(c, 1))};
    cfx_datum made = cfx_operator_run(c->x->rt, CFX_OPID_unpack_int4, args, 2, c->x->err);
    if (made.kind == CFX_DATUM_INVALID)
        return cfxi_export_fail(c->x);
    cfxi_ev *v = cfxi_export_of_datum(c->x, cfxi_export_own(c->x, made));
    v->path = c->args[0]->path;
    v->later = true;
    return v;
}

/* A weight as int4, if its elements are and the opset has that; else NULL. */
static cfxi_ev *as_int4(cfxi_export_call *c, const cfx_tensor *t)
{
    if (!t || t->dtype != CFX_DTYPE_INT8 || c->x->opset < 21 || !cfx_tensor_is_contiguous(t))
        return NULL;
    const int8_t *at = (const int8_t *)cfxi_tensor_bytes(t);
    const int64_t n = cfx_tensor_numel(t);
    for (int64_t i = 0; i < n; i++)
        if (at[i] < -8 || at[i] > 7)
            return NULL;
    uint8_t *packed = cfxi_export_room(c->x, (size_t)n / 2 + 1, 1);
    for (int64_t i = 0; packed && i < n; i++)
        packed[i / 2] |= (uint8_t)((at[i] & 15) << i % 2 * 4);
    return packed ? cfxi_export_packed(c->x, c->args[ROWS]->path, 22, CFX_DTYPE_INT8, packed,
                                       (size_t)(n + 1) / 2, t) : NULL;
}

/* [rows, groups] */
static cfxi_ev *in_groups(cfxi_export_call *c, cfxi_ev *v, int64_t groups)
{
    if (v->rank == 2 && cfxi_export_known_size(c->x, v, 1) == groups)
        return v;
    return cfxi_export_reshape(c, v, (int64_t[]){-1, groups}, 2);
}

#define SHORTER "the last group of a row is shorter than the others: use groups that divide the row"

cfxi_ev *cfxi_export_dequantize_per_channel_group(cfxi_export_call *c)
{
    const int64_t length = cfxi_export_known_size(c->x, c->args[ROWS], 1);
    const int64_t asked = cfxi_export_int(c, GROUP);
    const int64_t group = asked > length ? length : asked;
    cfxi_ev *zero = cfxi_export_given(c, ZEROS) ? ARG(ZEROS) : NULL;
    const bool small = !zero &&  /* zero points would have to be int4, too */
                       cfxi_export_int(c, LOW) >= -8 && cfxi_export_int(c, HIGH) <= 7;
    cfxi_ev *x = small ? as_int4(c, known(c->args[ROWS])) : NULL;
    if (length < 1)
        return cfxi_export_refuse(c, "the length of a row must be known");
    if (!x)
        x = ARG(ROWS);
    const int64_t groups = (length + group - 1) / group;
    cfxi_ev *scale = in_groups(c, in_type(c, ARG(SCALES), CFX_DTYPE_FLOAT32), groups);
    if (c->x->opset < 21 || cfxi_export_result_dtype(c) == CFX_DTYPE_FLOAT64 ||
        (zero && !zeros_fit(c, ZEROS, cfxi_export_dtype(x)))) {
        if (length % group != 0)
            return cfxi_export_refuse(c, SHORTER);
        x = cfxi_export_reshape(c, CAST(ARG(ROWS), CFX_DTYPE_FLOAT32), (int64_t[]){-1, group}, 2);
        if (zero)
            x = NODE("Sub", x, cfxi_export_reshape(c, CAST(zero, CFX_DTYPE_FLOAT32),
                                                   (int64_t[]){-1, 1}, 2));
        x = NODE("Mul", x, cfxi_export_reshape(c, scale, (int64_t[]){-1, 1}, 2));
        return cfxi_export_reshape(c, x, (int64_t[]){-1, length}, 2);
    }
    cfxi_ev *y = zero ? NODE("DequantizeLinear", x, scale,
                             in_groups(c, in_type(c, zero, cfxi_export_dtype(x)), groups))
                      : NODE("DequantizeLinear", x, scale);
    SET_INT("axis", 1);
    SET_INT("block_size", group);
    y->dtype = CFX_DTYPE_FLOAT32;
    return y;
}

cfxi_ev *cfxi_export_quantize_per_channel_group(cfxi_export_call *c)
{
    const int64_t length = cfxi_export_known_size(c->x, c->args[ROWS], 1);
    const int64_t asked = cfxi_export_int(c, GROUP);
    const int64_t group = asked > length ? length : asked;
    if (length < 1)
        return cfxi_export_refuse(c, "the length of a row must be known");
    if (length % group != 0)
        return cfxi_export_refuse(c, SHORTER);
    cfxi_ev *x = CAST(ARG(ROWS), CFX_DTYPE_FLOAT32);
    cfxi_ev *scale = CAST(ARG(SCALES), CFX_DTYPE_FLOAT32);
    cfxi_ev *zero = CAST(ARG(ZEROS), CFX_DTYPE_FLOAT32);
    scale = NODE("Reciprocal", cfxi_export_reshape(c, scale, (int64_t[]){-1, 1}, 2));
    x = NODE("Mul", cfxi_export_reshape(c, x, (int64_t[]){-1, group}, 2), scale);
    x = NODE("Round", NODE("Add", x, cfxi_export_reshape(c, zero, (int64_t[]){-1, 1}, 2)));
    x = NODE("Clip", x, LIKE(x, cfxi_export_float(c, LOW)), LIKE(x, cfxi_export_float(c, HIGH)));
    return cfxi_export_reshape(c, x, (int64_t[]){-1, length}, 2);
}

/* ---- by token ------------------------------------------------------------------------------ */

cfxi_ev *cfxi_export_quantize_per_token(cfxi_export_call *c)
{
    cfxi_ev *x = APPLY(mul, c->args[ROWS], APPLY(reciprocal, c->args[SCALES]));
    x = APPLY(round, APPLY(add, x, c->args[ZEROS]));
    return APPLY(clamp, x, c->args[LOW], c->args[HIGH]);
}

cfxi_ev *cfxi_export_dequantize_per_token(cfxi_export_call *c)
{
    return APPLY(mul, APPLY(sub, c->args[ROWS], c->args[ZEROS]), c->args[SCALES]);
}

/* ---- scales of what a run sees -------------------------------------------------------------- */

enum { INPUT, LEAST, MOST, EPS };

static cfxi_ev *range_end(cfxi_export_call *c, const char *reduce, const char *of_two)
{
    cfxi_ev *x = CAST(ARG(INPUT), CFX_DTYPE_FLOAT32);
    x = cfxi_export_reduce(c, reduce, x, NULL, 0, false);
    return NODE(of_two, x, LIKE(x, 0));
}

static cfxi_ev *pair(cfxi_export_call *c, cfxi_ev *scale, cfxi_ev *zero)
{
    const int64_t one = 1;
    cfxi_ev *both[] = {cfxi_export_reshape(c, CAST(scale, CFX_DTYPE_FLOAT64), &one, 1),
                       cfxi_export_reshape(c, CAST(zero, CFX_DTYPE_INT64), &one, 1)};
    return cfxi_export_list(c->x, both, 2);
}

cfxi_ev *cfxi_export_choose_qparams(cfxi_export_call *c)
{
    const double low = cfxi_export_float(c, LEAST);
    const double high = cfxi_export_float(c, MOST);
    cfxi_ev *least = range_end(c, "ReduceMin", "Min");
    cfxi_ev *most = range_end(c, "ReduceMax", "Max");
    cfxi_ev *scale = NODE("Div", NODE("Sub", most, least), LIKE(most, high - low));
    scale = NODE("Max", scale, LIKE(scale, cfxi_export_float(c, EPS)));
    cfxi_ev *zero = NODE("Sub", LIKE(scale, low), NODE("Round", NODE("Div", least, scale)));
    return pair(c, scale, NODE("Clip", zero, LIKE(zero, low), LIKE(zero, high)));
}

cfxi_ev *cfxi_export_choose_qparams_symmetric(cfxi_export_call *c)
{
    const double half = (cfxi_export_float(c, MOST) - cfxi_export_float(c, LEAST)) / 2;
    cfxi_ev *least = range_end(c, "ReduceMin", "Min");
    cfxi_ev *most = NODE("Max", range_end(c, "ReduceMax", "Max"), NODE("Neg", least));
    cfxi_ev *scale = NODE("Div", most, LIKE(most, half));
    scale = NODE("Max", scale, LIKE(scale, cfxi_export_float(c, EPS)));
    return pair(c, scale, INT(c->full[4].as.i == CFX_DTYPE_UINT8 ? 128 : 0));
}

/* The least or greatest element of each row. */
static cfxi_ev *row_end(cfxi_export_call *c, const char *reduce, cfxi_ev *x)
{
    const int64_t last = c->args[INPUT]->rank - 1;
    return cfxi_export_reduce(c, reduce, x, &last, last >= 0, true);
}

cfxi_ev *cfxi_export_choose_qparams_per_token(cfxi_export_call *c)
{
    cfxi_ev *x = NODE("Abs", CAST(ARG(INPUT), CFX_DTYPE_FLOAT32));
    x = row_end(c, "ReduceMax", x);
    x = NODE("Div", NODE("Max", x, LIKE(x, 1e-5)), LIKE(x, 127));
    cfxi_ev *both[] = {x, cfxi_export_filled(c, SHAPE(x), CFX_DTYPE_FLOAT32, 0)};
    return cfxi_export_list(c->x, both, 2);
}

/* The zero point is from the end whose error is smaller. */
cfxi_ev *cfxi_export_choose_qparams_per_token_asymmetric(cfxi_export_call *c)
{
    cfxi_ev *x = CAST(ARG(INPUT), CFX_DTYPE_FLOAT32);
    cfxi_ev *low = NODE("Min", row_end(c, "ReduceMin", x), LIKE(x, 0));
    cfxi_ev *high = NODE("Max", row_end(c, "ReduceMax", x), LIKE(x, 0));
    cfxi_ev *scale = NODE("Div", NODE("Sub", high, low), LIKE(x, 255));
    scale = NODE("Max", scale, LIKE(x, 0x1p-23));
    low = NODE("Sub", LIKE(x, -128), NODE("Div", low, scale));
    high = NODE("Sub", LIKE(x, 127), NODE("Div", high, scale));
    /* PyTorch asks if -128 + least + 127 + most > 0, in steps: that is -2 - (low + high). */
    cfxi_ev *is_low = NODE("Less", NODE("Add", low, high), LIKE(x, -2));
    cfxi_ev *zero = NODE("Where", is_low, low, high);
    zero = NODE("Round", NODE("Clip", zero, LIKE(x, -128), LIKE(x, 127)));
    cfxi_ev *both[] = {CAST(scale, CFX_DTYPE_FLOAT64), CAST(zero, CFX_DTYPE_INT64)};
    return cfxi_export_list(c->x, both, 2);
}
