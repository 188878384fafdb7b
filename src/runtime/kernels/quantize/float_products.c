/* float_products.c - linear layers with float inputs and integer weights: weight_linear, whose
 * weights are dequantized; dynamic_linear, whose input is quantized in each run; and int4. */
#include "integer_impl.h"

/* ---- int4 ---------------------------------------------------------------------------------- */

cfx_status cfxi_rule_unpack_int4(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    int64_t sizes[CFX_MAX_DIMS];
    int64_t size;
    CFX_TRY(cfxi_rt_number(c, 1, &size));
    if (t->dtype != CFX_DTYPE_UINT8)
        return cfxi_fail(c, CFX_E_TYPE, "'packed' must be uint8, not %s",
                         cfx_dtype_name((cfx_dtype)t->dtype));
    if (size < 0 || t->ndim == 0 ||
        !cfxi_rt_same_size(c, t->size[t->ndim - 1], size / 2 + size % 2))
        return cfxi_fail(c, CFX_E_SHAPE, "'packed' must have rows of %lld bytes, for %lld elements "
                         "each", (long long)(size / 2 + size % 2), (long long)size);
    memcpy(sizes, t->size, t->ndim * sizeof *sizes);
    sizes[t->ndim - 1] = size;
    return cfxi_rt_result(c, 0, CFX_DTYPE_INT8, sizes, t->ndim);
}

/* Element k of a row: -8..7, the first in the lower half of a byte. */
static int32_t load_int4(const char *row, int64_t k, int64_t step)
{
    const uint8_t both = *(const uint8_t *)(row + k / 2 * step);
    const int32_t bits = k % 2 ? both >> 4 : both & 15;
    return bits < 8 ? bits : bits - 16;
}

typedef struct unpacking {
    int64_t size;
    int64_t step;  /* from byte to byte */
} unpacking;

/* at[0], at[1]: the first element and the first byte of a row. */
static void unpack_rows(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const unpacking *u = ctx;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < u->size; k++)
            *(int8_t *)(at[0] + i * step[0] + k) =
                (int8_t)load_int4(at[1] + i * step[1], k, u->step);
}

/* A header without the last dimension, for cfxi_rt_loop alone. */
static cfx_tensor rows_of(const cfx_tensor *t)
{
    cfx_tensor rows;
    memcpy(&rows, t, sizeof rows);
    rows.ndim--;
    return rows;
}

cfx_status cfxi_kernel_unpack_int4(cfxi_call *c)
{
    const cfx_tensor *packed = cfxi_rt_tensor(c, 0);
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    unpacking u = {y->size[y->ndim - 1], packed->stride[packed->ndim - 1]};
    const cfx_tensor to = rows_of(y);
    const cfx_tensor from = rows_of(packed);
    const cfx_tensor *operands[] = {&to, &from};
    if (cfxi_tensor_numel(y) > 0)
        cfxi_rt_loop(c->rt, operands, 2, u.size < 8192 ? 8192 / u.size : 1, unpack_rows, &u);
    return CFX_OK;
}

/* ---- weights as floats --------------------------------------------------------------------- */

enum { INPUT, WEIGHT, SCALE, ZERO, BIAS, GROUP, SIZE };

static bool is_one(const cfx_tensor *t)
{
    return t->ndim == 0 || (t->ndim == 1 && t->size[0] == 1);
}

/* Of scales or zero points: one, one for each row, or [rows, groups]; `groups` 0: none. */
static cfx_status check_scales(cfxi_call *c, size_t i, int64_t rows, int64_t groups)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, i);
    const char *name = i == SCALE ? "weight_scale" : "weight_zero";
    if (!t)
        return CFX_OK;
    if (i == SCALE ? !cfx_dtype_is_float((cfx_dtype)t->dtype)
                   : !cfx_dtype_is_integer((cfx_dtype)t->dtype))
        return cfxi_fail(c, CFX_E_TYPE, "'%s' must be of %s, not %s", name,
                         i == SCALE ? "floats" : "integers", cfx_dtype_name((cfx_dtype)t->dtype));
    if (groups == 0 && is_one(t))
        return CFX_OK;
    if (t->ndim != 1u + (groups > 0) || !cfxi_rt_same_size(c, t->size[0], rows) ||
        (groups > 0 && !cfxi_rt_same_size(c, t->size[1], groups)))
        return cfxi_fail(c, CFX_E_SHAPE, "'%s' must have one element for each %s of the weight, "
                         "but has sizes [%s]", name, groups > 0 ? "group" : "row",
                         cfxi_rt_shape_of(t).text);
    return CFX_OK;
}

/* The length of a row of weights, and how many groups it has. */
static cfx_status row_of(cfxi_call *c, int64_t *length, int64_t *groups)
{
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    int64_t group, size;
    CFX_TRY(cfxi_rt_number(c, GROUP, &group));
    CFX_TRY(cfxi_rt_number(c, SIZE, &size));
    if (w->ndim != 2)
        return cfxi_fail(c, CFX_E_SHAPE, "'weight' must have 2 dimensions, not %u", w->ndim);
    if (group < 0 || size < 0)
        return cfxi_fail(c, CFX_E_VALUE, "group_size and size must not be negative");
    if (w->dtype != CFX_DTYPE_UINT8 && (w->dtype != CFX_DTYPE_INT8 || size > 0))
        return cfxi_fail(c, CFX_E_TYPE, "'weight' must be uint8%s, not %s",
                         size > 0 ? ", two elements in a byte" : " or int8",
                         cfx_dtype_name((cfx_dtype)w->dtype));
    if (size > 0 && !cfxi_rt_same_size(c, w->size[1], size / 2 + size % 2))
        return cfxi_fail(c, CFX_E_SHAPE, "'weight' must have rows of %lld bytes",
                         (long long)(size / 2 + size % 2));
    *length = size > 0 ? size : w->size[1];
    if (cfx_dim_is_symbol(*length))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "the length of a row of weights must be known");
    *groups = group > 0 ? *length / group + (*length % group != 0) : 0;
    return CFX_OK;
}

cfx_status cfxi_rule_weight_linear(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *bias = cfxi_rt_tensor(c, BIAS);
    const cfx_dtype type = (cfx_dtype)x->dtype;
    int64_t sizes[CFX_MAX_DIMS];
    int64_t length, groups;
    if (type != CFX_DTYPE_FLOAT32 && type != CFX_DTYPE_FLOAT16 && type != CFX_DTYPE_BFLOAT16)
        return cfxi_fail(c, CFX_E_TYPE, "'input' must be float32, float16 or bfloat16, not %s",
                         cfx_dtype_name(type));
    CFX_TRY(row_of(c, &length, &groups));
    const int64_t rows = cfxi_rt_tensor(c, WEIGHT)->size[0];
    if (x->ndim == 0 || !cfxi_rt_same_size(c, x->size[x->ndim - 1], length))
        return cfxi_fail(c, CFX_E_SHAPE, "the rows of 'input' and of 'weight' differ in size");
    CFX_TRY(check_scales(c, SCALE, rows, groups));
    CFX_TRY(check_scales(c, ZERO, rows, groups));
    if (bias && (!cfx_dtype_is_float((cfx_dtype)bias->dtype) || bias->ndim != 1 ||
                 !cfxi_rt_same_size(c, bias->size[0], rows)))
        return cfxi_fail(c, CFX_E_SHAPE, "'bias' must have one float for each row of the weight");
    memcpy(sizes, x->size, x->ndim * sizeof *sizes);
    sizes[x->ndim - 1] = rows;
    return cfxi_rt_result(c, 0, type, sizes, x->ndim);
}

typedef struct weight_product {
    const cfx_tensor *weight, *scale, *zero, *bias;
    const float *x;  /* rows of `length` elements */
    float *y;        /* of `n` */
    int64_t rows, n, length, group;
    bool packed, is_signed;
} weight_product;

/* The element for row n and group g. */
static const char *scale_at(const cfx_tensor *t, int64_t n, int64_t g)
{
    if (is_one(t) && t->ndim < 2)
        return t->data;
    return t->data + n * t->stride[0] + (t->ndim == 2 ? g * t->stride[1] : 0);
}

/* Row n of the weights times row `x` of the input: float32 numbers, added up in order. */
static float weigh(const weight_product *p, int64_t n, const float *x)
{
    const char *w = p->weight->data + n * p->weight->stride[0];
    const int64_t step = p->weight->stride[1];
    float sum = 0;
    for (int64_t from = 0, g = 0; from < p->length; from += p->group, g++) {
        const int64_t to = p->length - from < p->group ? p->length : from + p->group;
        const float scale = (float)cfxi_tensor_load_float((cfx_dtype)p->scale->dtype,
                                                          scale_at(p->scale, n, g));
        const int64_t zero =
            p->zero ? cfxi_tensor_load_int((cfx_dtype)p->zero->dtype, scale_at(p->zero, n, g)) : 0;
        for (int64_t k = from; k < to; k++) {
            const int64_t v = p->packed ? load_int4(w, k, step)
                                        : cfxi_integer_load(p->is_signed, w + k * step);
            const float real = (float)((double)v - (double)zero) * scale;
            const float term = real * x[k];
            sum += term;
        }
    }
    return sum;
}

static void weight_rows(void *ctx, int64_t begin, int64_t end)
{
    const weight_product *p = ctx;
    for (int64_t n = begin; n < end; n++) {
        const cfx_tensor *b = p->bias;
        const float bias = b ? (float)cfxi_tensor_load_float((cfx_dtype)b->dtype,
                                                             b->data + n * b->stride[0]) : 0;
        for (int64_t m = 0; m < p->rows; m++)
            p->y[m * p->n + n] = weigh(p, n, p->x + m * p->length) + bias;
    }
}

cfx_status cfxi_kernel_weight_linear(cfxi_call *c)
{
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    weight_product p = {.weight = w, .scale = cfxi_rt_tensor(c, SCALE),
                        .zero = cfxi_rt_tensor(c, ZERO), .bias = cfxi_rt_tensor(c, BIAS),
                        .n = w->size[0], .packed = cfxi_rt_int(c, SIZE) > 0,
                        .is_signed = cfxi_integer_is_signed(w)};
    int64_t groups;
    if (cfxi_tensor_numel(y) == 0)
        return CFX_OK;
    CFX_TRY(row_of(c, &p.length, &groups));
    p.group = groups > 0 ? cfxi_rt_int(c, GROUP) : p.length ? p.length : 1;
    p.rows = cfxi_tensor_numel(y) / p.n;
    cfx_tensor *x = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, INPUT), CFX_DTYPE_FLOAT32);
    cfx_tensor *work = x ? cfxi_rt_work(c, 0, CFX_DTYPE_FLOAT32, true) : NULL;
    if (work) {
        p.x = (const float *)x->data;
        p.y = (float *)work->data;
        cfxi_rt_parallel(c->rt, p.n, 1, weight_rows, &p);
    }
    const cfx_status status =
        work ? cfxi_rt_work_done(c, 0, work, CFX_OK) : c->err->status;
    cfx_tensor_release(x);
    return status;
}

/* ---- inputs as integers -------------------------------------------------------------------- */

enum { LOW = 5, HIGH, EPS };

static cfx_dtype input_dtype(const cfxi_call *c)
{
    return cfxi_rt_int(c, LOW) < 0 ? CFX_DTYPE_INT8 : CFX_DTYPE_UINT8;
}

/* The arguments of integer_linear for a quantized input. */
static void linear_args(const cfxi_call *c, cfx_tensor *x, double scale, int64_t zero,
                        cfx_datum args[12])
{
    const cfx_datum made[] = {
        cfx_datum_tensor(x), cfx_datum_float(scale), cfx_datum_int(zero), c->args[WEIGHT],
        c->args[SCALE], c->args[ZERO], c->args[BIAS], cfx_datum_float(1), cfx_datum_int(0),
        cfx_datum_int(0), cfx_datum_int(0), cfx_datum_dtype(CFX_DTYPE_FLOAT32)};
    memcpy(args, made, sizeof made);
}

cfx_status cfxi_rule_dynamic_linear(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_dtype type = (cfx_dtype)x->dtype;
    cfx_datum args[12];
    int64_t low, high;
    if (type != CFX_DTYPE_FLOAT32 && type != CFX_DTYPE_FLOAT16 && type != CFX_DTYPE_BFLOAT16)
        return cfxi_fail(c, CFX_E_TYPE, "'input' must be float32, float16 or bfloat16, not %s",
                         cfx_dtype_name(type));
    CFX_TRY(cfxi_rt_number(c, LOW, &low));
    CFX_TRY(cfxi_rt_number(c, HIGH, &high));
    const int64_t least = low < 0 ? -128 : 0;
    if (low < least || low > 0 || high < 0 || high > least + 255 || low == high)
        return cfxi_fail(c, CFX_E_VALUE, "integers from %lld to %lld are not a range of uint8 or "
                         "int8 with 0 in it", (long long)low, (long long)high);
    cfx_tensor *stand_in = cfxi_integer_stand_in(c, x, input_dtype(c));
    if (!stand_in)
        return c->err->status;
    linear_args(c, stand_in, 1, 0, args);
    const cfx_status status = cfxi_integer_result_as(c, CFX_DTYPE_FLOAT32, CFX_OPID_integer_linear,
                                                     args, 12, NULL);
    cfx_tensor_release(stand_in);
    return status;
}

/* As choose_qparams does; an input without elements has the scale 1. */
static cfx_status choose(cfxi_call *c, double *scale, int64_t *zero)
{
    const cfx_datum args[] = {c->args[INPUT], c->args[LOW], c->args[HIGH], c->args[EPS],
                              cfx_datum_dtype(input_dtype(c))};
    size_t n;
    *scale = 1;
    *zero = 0;
    if (cfxi_tensor_numel(cfxi_rt_tensor(c, INPUT)) == 0)
        return CFX_OK;
    cfx_datum both = cfxi_rt_sub(c, CFX_OPID_choose_qparams, args, 5);
    const cfx_datum *items = cfx_datum_items(both, &n);
    if (n != 2)
        return c->err->status;
    *scale = *(const double *)items[0].as.tensor->data;
    *zero = *(const int64_t *)items[1].as.tensor->data;
    cfx_datum_release(both);
    return CFX_OK;
}

/* NaN and infinities in the input make all of the result NaN. */
static void fill_nan(cfx_tensor *y)
{
    float *at = (float *)y->data;
    for (int64_t i = 0, n = cfxi_tensor_numel(y); i < n; i++)
        at[i] = NAN;
}

cfx_status cfxi_kernel_dynamic_linear(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    cfx_datum args[12];
    double scale;
    int64_t zero;
    if (cfxi_tensor_numel(y) == 0)
        return CFX_OK;
    CFX_TRY(choose(c, &scale, &zero));
    if (!isfinite(scale)) {
        fill_nan(y);
        return CFX_OK;
    }
    const cfx_datum quantize[] = {c->args[INPUT], cfx_datum_float(scale), cfx_datum_int(zero),
                                  c->args[LOW], c->args[HIGH], cfx_datum_dtype(input_dtype(c))};
    cfx_tensor *x = cfxi_rt_sub_tensor(c, CFX_OPID_quantize_per_tensor, quantize, 6);
    if (!x)
        return c->err->status;
    linear_args(c, x, scale, zero, args);
    cfx_tensor *product = cfxi_rt_sub_tensor(c, CFX_OPID_integer_linear, args, 12);
    cfx_tensor_release(x);
    if (!product)
        return c->err->status;
    const cfx_status status = cfxi_rt_copy(c->rt, y, product, c->err);
    cfx_tensor_release(product);
    return status;
}
