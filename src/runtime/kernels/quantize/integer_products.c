/* integer_products.c - sums of products of integers: linear and matmul, and what weights are. */
#include "integer_impl.h"

#include "runtime/kernels/linalg/product_impl.h"

enum { INPUT, WEIGHT = 3, WEIGHT_SCALE, WEIGHT_ZERO, BIAS };

/* ---- weights ------------------------------------------------------------------------------- */

/* A row of `n` numbers of some type, or one number for all if `one`; NULL is allowed. */
static cfx_status check_row(cfxi_call *c, size_t i, const char *name, bool floats, bool one,
                            int64_t n)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, i);
    if (!t)
        return CFX_OK;
    const cfx_dtype dtype = (cfx_dtype)t->dtype;
    if (floats ? !cfx_dtype_is_float(dtype) : !cfx_dtype_is_integer(dtype))
        return cfxi_fail(c, CFX_E_TYPE, "'%s' must be of %s, not %s", name,
                         floats ? "floats" : "integers", cfx_dtype_name(dtype));
    if (one && (t->ndim == 0 || (t->ndim == 1 && t->size[0] == 1)))
        return CFX_OK;
    if (t->ndim != 1 || !cfxi_rt_same_size(c, t->size[0], n))
        return cfxi_fail(c, CFX_E_SHAPE, "'%s' must have one element for each output channel, but "
                         "has sizes [%s]", name, cfxi_rt_shape_of(t).text);
    return CFX_OK;
}

cfx_status cfxi_integer_check_weight(cfxi_call *c, int64_t n)
{
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    if (w->dtype != CFX_DTYPE_UINT8 && w->dtype != CFX_DTYPE_INT8)
        return cfxi_fail(c, CFX_E_TYPE, "'weight' must be uint8 or int8, not %s",
                         cfx_dtype_name((cfx_dtype)w->dtype));
    CFX_TRY(check_row(c, WEIGHT_SCALE, "weight_scale", true, true, n));
    CFX_TRY(check_row(c, WEIGHT_ZERO, "weight_zero", false, true, n));
    return check_row(c, BIAS, "bias", true, false, n);
}

/* Element i of a row, or the one for all. */
static const char *element_at(const cfx_tensor *t, int64_t i)
{
    return t->ndim == 0 || t->size[0] == 1 ? t->data : t->data + i * t->stride[0];
}

static double float_at(const cfx_tensor *t, int64_t i)
{
    return cfxi_tensor_load_float((cfx_dtype)t->dtype, element_at(t, i));
}

static cfx_status load_zeros(cfxi_call *c, int64_t n, int32_t *zero)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, WEIGHT_ZERO);
    const cfx_dtype dtype = (cfx_dtype)cfxi_rt_tensor(c, WEIGHT)->dtype;
    const int64_t least = dtype == CFX_DTYPE_INT8 ? -128 : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t z = t ? cfxi_tensor_load_int((cfx_dtype)t->dtype, element_at(t, i)) : 0;
        if (t && (z < least || z > least + 255))
            return cfxi_fail(c, CFX_E_VALUE, "weight_zero[%lld] is %lld, which %s does not have",
                             (long long)i, (long long)z, cfx_dtype_name(dtype));
        zero[i] = (int32_t)z;
    }
    return CFX_OK;
}

cfx_status cfxi_integer_channels_new(cfxi_call *c, int64_t n, double scale, double out,
                                     cfxi_integer_channels *ch)
{
    const cfx_tensor *scales = cfxi_rt_tensor(c, WEIGHT_SCALE);
    const cfx_tensor *bias = cfxi_rt_tensor(c, BIAS);
    size_t bytes;
    ch->factor = NULL;
    if (!cfxi_base_mul_size((size_t)n, 3 * sizeof(float), 0, &bytes) ||
        !(ch->factor = cfxi_rt_scratch(c->rt, bytes)))
        return cfxi_fail(c, CFX_E_NOMEM, "out of memory");
    ch->bias = ch->factor + n;
    ch->zero = (int32_t *)(ch->bias + n);
    const cfx_status status = load_zeros(c, n, ch->zero);
    if (status != CFX_OK) {
        cfxi_rt_scratch_free(c->rt, ch->factor);
        ch->factor = NULL;
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        ch->factor[i] = (float)(scale * float_at(scales, i) / out);
        ch->bias[i] = bias ? (float)(float_at(bias, i) / out) : 0;
    }
    return CFX_OK;
}

/* ---- linear -------------------------------------------------------------------------------- */

enum { LINEAR_RESULT = 7 };

cfx_status cfxi_rule_integer_linear(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *w = cfxi_rt_tensor(c, WEIGHT);
    int64_t sizes[CFX_MAX_DIMS];
    CFX_TRY(cfxi_integer_check_operand(c, INPUT, "input"));
    if (w->ndim != 2)
        return cfxi_fail(c, CFX_E_SHAPE, "'weight' must have 2 dimensions, not %u", w->ndim);
    if (x->ndim == 0 || !cfxi_rt_same_size(c, x->size[x->ndim - 1], w->size[1]))
        return cfxi_fail(c, CFX_E_SHAPE, "the rows of 'input' and of 'weight' differ in size");
    CFX_TRY(cfxi_integer_check_weight(c, w->size[0]));
    CFX_TRY(cfxi_integer_check_result(c, LINEAR_RESULT, true));
    CFX_TRY(cfxi_integer_check_sum(c, w->size[1], cfxi_integer_most_product(
        cfxi_integer_is_signed(w), !cfxi_rt_is_none(c, WEIGHT_ZERO))));
    memcpy(sizes, x->size, x->ndim * sizeof *sizes);
    sizes[x->ndim - 1] = w->size[0];
    return cfxi_rt_result(c, 0, cfxi_rt_dtype_or(c, LINEAR_RESULT + 4, CFX_DTYPE_UINT8), sizes,
                          x->ndim);
}

typedef struct linear {
    int64_t n, k;
    const char *x;  /* rows of k elements */
    const char *w;
    char *y;
    size_t item;    /* bytes of a result */
    bool x_signed, w_signed;
    int32_t zero;
    cfxi_integer_channels ch;
    cfxi_integer_store store;
} linear;

/* sum of (x - zx)(w - zw) */
static int32_t dot(const linear *l, const char *x, const char *w, int32_t wz)
{
    int32_t sum = 0;
    for (int64_t k = 0; k < l->k; k++)
        sum += (cfxi_integer_load(l->x_signed, x + k) - l->zero) *
               (cfxi_integer_load(l->w_signed, w + k) - wz);
    return sum;
}

static void linear_rows(void *ctx, int64_t begin, int64_t end)
{
    const linear *l = ctx;
    for (int64_t m = begin; m < end; m++)
        for (int64_t n = 0; n < l->n; n++) {
            const int32_t sum = dot(l, l->x + m * l->k, l->w + n * l->k, l->ch.zero[n]);
            const float r = fmaf((float)sum, l->ch.factor[n], l->ch.bias[n]);
            cfxi_integer_put(&l->store, l->y + (size_t)(m * l->n + n) * l->item, r);
        }
}

cfx_status cfxi_kernel_integer_linear(cfxi_call *c)
{
    const cfxi_integer_operand in = cfxi_integer_operand_of(c, INPUT);
    const cfx_tensor *weight = cfxi_rt_tensor(c, WEIGHT);
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    linear l = {.n = weight->size[0], .k = weight->size[1], .y = y->data,
                .item = cfxi_tensor_itemsize(y), .x_signed = cfxi_integer_is_signed(in.t),
                .w_signed = cfxi_integer_is_signed(weight), .zero = in.zero,
                .store = cfxi_integer_store_of(c, LINEAR_RESULT)};
    if (cfxi_tensor_numel(y) == 0)
        return CFX_OK;
    CFX_TRY(cfxi_integer_channels_new(c, l.n, in.scale, cfxi_integer_scale_of(c, LINEAR_RESULT),
                                      &l.ch));
    cfx_tensor *x = cfxi_rt_contiguous(c, in.t, (cfx_dtype)in.t->dtype);
    cfx_tensor *w = x ? cfxi_rt_contiguous(c, weight, (cfx_dtype)weight->dtype) : NULL;
    const cfx_status status = w ? CFX_OK : c->err->status;
    if (w) {
        l.x = x->data;
        l.w = w->data;
        cfxi_rt_parallel(c->rt, cfxi_tensor_numel(y) / l.n, 1, linear_rows, &l);
    }
    cfx_tensor_release(w);
    cfx_tensor_release(x);
    cfxi_rt_scratch_free(c->rt, l.ch.factor);
    return status;
}

/* ---- matmul -------------------------------------------------------------------------------- */

enum { SELF, OTHER = 3, MATMUL_RESULT = 6 };

cfx_status cfxi_rule_integer_matmul(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, SELF);
    const cfx_tensor *b = cfxi_rt_tensor(c, OTHER);
    CFX_TRY(cfxi_integer_check_operand(c, SELF, "self"));
    CFX_TRY(cfxi_integer_check_operand(c, OTHER, "other"));
    CFX_TRY(cfxi_integer_check_result(c, MATMUL_RESULT, true));
    cfx_tensor *stand_in = cfxi_integer_stand_in(c, b, (cfx_dtype)a->dtype);
    if (!stand_in)
        return c->err->status;
    const cfx_datum args[] = {c->args[SELF], cfx_datum_tensor(stand_in)};
    const cfx_status status =
        cfxi_integer_result_as(c, cfxi_rt_dtype_or(c, MATMUL_RESULT + 4, CFX_DTYPE_UINT8),
                               CFX_OPID_matmul, args, 2, NULL);
    cfx_tensor_release(stand_in);
    return status;
}

/* Columns whose sums are kept on the stack, and rows that 32 bits can sum up. */
enum { BLOCK = 256, MOST_ROWS = INT32_MAX / (255 * 255) };

typedef struct product {
    const cfx_tensor *a, *b, *y;
    int64_t m, n, k;
    bool a_signed, b_signed;
    int32_t a_zero, b_zero;
    float factor;
    cfxi_integer_store store;
} product;

/* `rows` products are added to each sum. */
static void add_products(const product *p, const char *a, const char *b, int64_t rows,
                         int64_t columns, int64_t *sums)
{
    const int64_t *as = p->a->stride + p->a->ndim - 2;
    const int64_t *bs = p->b->stride + p->b->ndim - 2;
    int32_t part[BLOCK] = {0};
    for (int64_t k = 0; k < rows; k++) {
        const int32_t x = cfxi_integer_load(p->a_signed, a + k * as[1]) - p->a_zero;
        for (int64_t j = 0; j < columns; j++)
            part[j] += x * (cfxi_integer_load(p->b_signed, b + k * bs[0] + j * bs[1]) - p->b_zero);
    }
    for (int64_t j = 0; j < columns; j++)
        sums[j] += part[j];
}

static void product_rows(void *ctx, int64_t begin, int64_t end)
{
    const product *p = ctx;
    const size_t item = cfxi_tensor_itemsize(p->y);
    const int64_t *as = p->a->stride + p->a->ndim - 2;
    const int64_t *bs = p->b->stride + p->b->ndim - 2;
    for (int64_t i = begin; i < end; i++) {
        const char *a = cfxi_linalg_matrix_at(p->a, p->y, i / p->m) + i % p->m * as[0];
        const char *b = cfxi_linalg_matrix_at(p->b, p->y, i / p->m);
        for (int64_t n = 0; n < p->n; n += BLOCK) {
            const int64_t columns = p->n - n < BLOCK ? p->n - n : BLOCK;
            int64_t sums[BLOCK] = {0};
            for (int64_t k = 0; k < p->k; k += MOST_ROWS)
                add_products(p, a + k * as[1], b + k * bs[0] + n * bs[1],
                             p->k - k < MOST_ROWS ? p->k - k : MOST_ROWS, columns, sums);
            for (int64_t j = 0; j < columns; j++)
                cfxi_integer_put(&p->store, p->y->data + (size_t)(i * p->n + n + j) * item,
                                 (float)sums[j] * p->factor);
        }
    }
}

/* Vectors are matrices with one row or column. */
cfx_status cfxi_kernel_integer_matmul(cfxi_call *c)
{
    const cfxi_integer_operand left = cfxi_integer_operand_of(c, SELF);
    const cfxi_integer_operand right = cfxi_integer_operand_of(c, OTHER);
    cfx_tensor a = cfxi_linalg_shown(left.t);
    cfx_tensor b = cfxi_linalg_shown(right.t);
    cfx_tensor y = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    const double scale = left.scale * right.scale / cfxi_integer_scale_of(c, MATMUL_RESULT);
    if (b.ndim == 1) {
        cfxi_linalg_unsqueeze(&b, 1);
        cfxi_linalg_unsqueeze(&y, y.ndim);
    }
    if (a.ndim == 1) {
        cfxi_linalg_unsqueeze(&a, 0);
        cfxi_linalg_unsqueeze(&y, y.ndim - 1u);
    }
    product p = {.a = &a, .b = &b, .y = &y, .m = y.size[y.ndim - 2], .n = y.size[y.ndim - 1],
                 .k = a.size[a.ndim - 1], .a_signed = cfxi_integer_is_signed(&a),
                 .b_signed = cfxi_integer_is_signed(&b), .a_zero = left.zero,
                 .b_zero = right.zero, .factor = (float)scale,
                 .store = cfxi_integer_store_of(c, MATMUL_RESULT)};
    if (cfxi_tensor_numel(&y) > 0)
        cfxi_rt_parallel(c->rt, cfxi_tensor_numel(&y) / p.n, 1, product_rows, &p);
    return CFX_OK;
}
