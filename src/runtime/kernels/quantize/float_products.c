/* float_products.c - linear layers with float inputs and integer weights: weight_linear, whose
 * weights are dequantized; dynamic_linear, whose input is quantized in each run; and int4. */
#include "weight_rows.h"

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

typedef struct unpacking {
    int64_t size;
    int64_t step;  /* from byte to byte */
} unpacking;

/* at[0], at[1]: the first element and the first byte of a row. */
static void unpack_rows(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const unpacking *u = ctx;
    for (int64_t i = 0; i < n; i++)
        cfxi_integer_unpack(at[1] + i * step[1], u->step, 0, u->size,
                            (int8_t *)at[0] + i * step[0]);
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

enum { INPUT, WEIGHT, SCALE, ZERO, BIAS, GROUP };

cfx_status cfxi_rule_weight_linear(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *bias = cfxi_rt_tensor(c, BIAS);
    const cfx_dtype type = (cfx_dtype)x->dtype;
    int64_t sizes[CFX_MAX_DIMS];
    cfxi_integer_weights w;
    if (type != CFX_DTYPE_FLOAT32 && type != CFX_DTYPE_FLOAT16 && type != CFX_DTYPE_BFLOAT16)
        return cfxi_fail(c, CFX_E_TYPE, "'input' must be float32, float16 or bfloat16, not %s",
                         cfx_dtype_name(type));
    CFX_TRY(cfxi_integer_weights_of(c, WEIGHT, GROUP, &w));
    if (x->ndim == 0 || !cfxi_rt_same_size(c, x->size[x->ndim - 1], w.length))
        return cfxi_fail(c, CFX_E_SHAPE, "the rows of 'input' and of 'weight' differ in size");
    if (bias && (!cfx_dtype_is_float((cfx_dtype)bias->dtype) || bias->ndim != 1 ||
                 !cfxi_rt_same_size(c, bias->size[0], w.rows)))
        return cfxi_fail(c, CFX_E_SHAPE, "'bias' must have one float for each row of the weight");
    memcpy(sizes, x->size, x->ndim * sizeof *sizes);
    sizes[x->ndim - 1] = w.rows;
    return cfxi_rt_result(c, 0, type, sizes, x->ndim);
}

typedef struct weight_product {
    cfxi_integer_weights w;
    const cfx_tensor *bias;
    const float *x;  /* rows of w.length elements */
    float *y;        /* of w.rows */
    int64_t rows;
} weight_product;

/* Row n of the weights times row `x` of the input: float32 numbers, added up in order. */
static float weigh(const weight_product *p, int64_t n, const float *x)
{
    enum { BLOCK = 256 };
    float row[BLOCK];
    float sum = 0;
    for (int64_t from = 0; from < p->w.length; from += BLOCK) {
        const int64_t m = p->w.length - from < BLOCK ? p->w.length - from : BLOCK;
        cfxi_integer_weights_row(&p->w, n, from, m, row);
        for (int64_t k = 0; k < m; k++) {
            const float term = row[k] * x[from + k];
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
            p->y[m * p->w.rows + n] = weigh(p, n, p->x + m * p->w.length) + bias;
    }
}

cfx_status cfxi_kernel_weight_linear(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    weight_product p = {.bias = cfxi_rt_tensor(c, BIAS)};
    if (cfxi_tensor_numel(y) == 0)
        return CFX_OK;
    CFX_TRY(cfxi_integer_weights_of(c, WEIGHT, GROUP, &p.w));
    p.rows = cfxi_tensor_numel(y) / p.w.rows;
    cfx_tensor *x = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, INPUT), CFX_DTYPE_FLOAT32);
    cfx_tensor *work = x ? cfxi_rt_work(c, 0, CFX_DTYPE_FLOAT32, true) : NULL;
    if (work) {
        p.x = (const float *)x->data;
        p.y = (float *)work->data;
        cfxi_rt_parallel(c->rt, p.w.rows, 1, weight_rows, &p);
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
