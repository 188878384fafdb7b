/* integer_elements.c - element by element: add, mul, tables; and what all integer rows check. */
#include "byte_rows.h"

CFXI_ISA_CHOICE(cfxi_integer_rows, cfxi_integer_rows_of, cfxi_integer_rows_all)

/* ---- checks -------------------------------------------------------------------------------- */

static cfx_status check_bytes(cfxi_call *c, const cfx_tensor *t, const char *name)
{
    if (t->dtype != CFX_DTYPE_UINT8 && t->dtype != CFX_DTYPE_INT8)
        return cfxi_fail(c, CFX_E_TYPE, "'%s' must be uint8 or int8, not %s", name,
                         cfx_dtype_name((cfx_dtype)t->dtype));
    return CFX_OK;
}

static cfx_status check_scale(cfxi_call *c, size_t i, const char *name)
{
    const double scale = cfxi_rt_float(c, i);
    if (!c->args[i].symbolic && !(scale > 0 && scale <= 0x1.fffffep127))
        return cfxi_fail(c, CFX_E_VALUE, "the scale of '%s' is %g; it must be positive and finite",
                         name, scale);
    return CFX_OK;
}

/* An int argument within the type. */
static cfx_status check_within(cfxi_call *c, size_t i, cfx_dtype dtype, const char *what,
                               int64_t *value)
{
    const int64_t least = dtype == CFX_DTYPE_INT8 ? -128 : 0;
    CFX_TRY(cfxi_rt_number(c, i, value));
    if (*value < least || *value > least + 255)
        return cfxi_fail(c, CFX_E_VALUE, "%s is %lld, which %s does not have", what,
                         (long long)*value, cfx_dtype_name(dtype));
    return CFX_OK;
}

cfx_status cfxi_integer_check_operand(cfxi_call *c, size_t first, const char *name)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, first);
    int64_t zero;
    CFX_TRY(check_bytes(c, t, name));
    CFX_TRY(check_scale(c, first + 1, name));
    return check_within(c, first + 2, (cfx_dtype)t->dtype, "a zero point", &zero);
}

cfx_status cfxi_integer_check_result(cfxi_call *c, size_t first, bool floats)
{
    const cfx_dtype dtype = cfxi_rt_dtype_or(c, first + 4, CFX_DTYPE_UINT8);
    int64_t zero, low, high;
    if (floats && dtype == CFX_DTYPE_FLOAT32)
        return CFX_OK;
    if (dtype != CFX_DTYPE_UINT8 && dtype != CFX_DTYPE_INT8)
        return cfxi_fail(c, CFX_E_TYPE, "the result must be uint8%s int8%s, not %s",
                         floats ? "," : " or", floats ? " or float32" : "", cfx_dtype_name(dtype));
    CFX_TRY(check_scale(c, first, "the result"));
    CFX_TRY(check_within(c, first + 1, dtype, "the zero point of the result", &zero));
    CFX_TRY(check_within(c, first + 2, dtype, "'low'", &low));
    CFX_TRY(check_within(c, first + 3, dtype, "'high'", &high));
    if (low > high)
        return cfxi_fail(c, CFX_E_VALUE, "'low' is %lld, above 'high', %lld", (long long)low,
                         (long long)high);
    return CFX_OK;
}

cfx_status cfxi_integer_check_sum(cfxi_call *c, int64_t count, int64_t most)
{
    if (!cfx_dim_is_symbol(count) && count > INT32_MAX / most)
        return cfxi_fail(c, CFX_E_VALUE, "a sum of %lld integers may exceed 32 bits; at most %lld "
                         "are summed up. Compute it in float", (long long)count,
                         (long long)(INT32_MAX / most));
    return CFX_OK;
}

/* ---- sizes of other rows ------------------------------------------------------------------- */

cfx_tensor *cfxi_integer_stand_in(cfxi_call *c, const cfx_tensor *t, cfx_dtype dtype)
{
    return cfxi_tensor_header(dtype, t->size, t->ndim, c->rt->allocator, c->err);
}

cfx_status cfxi_integer_result_as(cfxi_call *c, cfx_dtype dtype, cfx_operator op,
                                  const cfx_datum *args, size_t n, const cfx_tensor *like)
{
    cfx_datum d = cfxi_rt_call_watched(c->rt, c->dims, true, NULL, op, args, n, c->err);
    cfx_status status = c->err->status;
    size_t results;
    const cfx_datum *items = cfx_datum_items(d, &results);
    const cfx_datum first = results > 0 ? items[0] : d;
    if (first.kind == CFX_DATUM_TENSOR)
        status = cfxi_rt_result(c, 0, dtype, first.as.tensor->size, first.as.tensor->ndim);
    if (first.kind == CFX_DATUM_TENSOR && status == CFX_OK && cfxi_rt_prefers_channels_last(like))
        cfxi_rt_result_channels_last(c, 0);
    cfx_datum_release(d);
    return status;
}

/* ---- two tensors --------------------------------------------------------------------------- */

enum { SELF, OTHER = 3, RESULT = 6 };  /* each with its scale and zero point behind it */

cfx_status cfxi_rule_integer_binary(cfxi_call *c)
{
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, SELF), cfxi_rt_tensor(c, OTHER)};
    CFX_TRY(cfxi_integer_check_operand(c, SELF, "self"));
    CFX_TRY(cfxi_integer_check_operand(c, OTHER, "other"));
    CFX_TRY(cfxi_integer_check_result(c, RESULT, false));
    return cfxi_rt_result_broadcast(c, 0, cfxi_rt_dtype_or(c, RESULT + 4, CFX_DTYPE_UINT8), both,
                                    2);
}

typedef struct binary {
    bool adds;  /* or multiplies */
    void (*by_vectors)(int64_t n, int64_t rows, const int64_t step[3], const cfxi_integer_bytes *x,
                       const cfxi_integer_bytes *y, cfxi_integer_range range, uint8_t *to);
    bool is_signed[2];
    int32_t zero[2];
    float factor[2];  /* of a product only the first */
    cfxi_integer_range range;
} binary;

/* Whether operands lie side by side, byte by byte. */
static bool are_side_by_side(const int64_t *step, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (step[i] != 1)
            return false;
    return true;
}

static cfxi_integer_bytes bytes_of(const binary *b, int i, const char *at)
{
    return (cfxi_integer_bytes){(const uint8_t *)at, b->is_signed[i], b->zero[i], b->factor[i]};
}

static void add_row(const binary *b, int64_t n, char *const *at, const int64_t *step)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t x = cfxi_integer_load(b->is_signed[0], at[1] + i * step[1]) - b->zero[0];
        const int32_t y = cfxi_integer_load(b->is_signed[1], at[2] + i * step[2]) - b->zero[1];
        const float scaled = (float)y * b->factor[1];
        const float r = fmaf((float)x, b->factor[0], scaled);
        *(uint8_t *)(at[0] + i * step[0]) = (uint8_t)cfxi_integer_of(r, b->range);
    }
}

static void mul_row(const binary *b, int64_t n, char *const *at, const int64_t *step)
{
    for (int64_t i = 0; i < n; i++) {
        const int32_t x = cfxi_integer_load(b->is_signed[0], at[1] + i * step[1]) - b->zero[0];
        const int32_t y = cfxi_integer_load(b->is_signed[1], at[2] + i * step[2]) - b->zero[1];
        const float r = (float)(x * y) * b->factor[0];
        *(uint8_t *)(at[0] + i * step[0]) = (uint8_t)cfxi_integer_of(r, b->range);
    }
}

static void run_plane(void *ctx, int64_t n, int64_t rows, char *const *at, const int64_t *step,
                      const int64_t *row_step)
{
    const binary *b = ctx;
    if (b->by_vectors && are_side_by_side(step, 3)) {
        const cfxi_integer_bytes x = bytes_of(b, 0, at[1]);
        const cfxi_integer_bytes y = bytes_of(b, 1, at[2]);
        b->by_vectors(n, rows, row_step, &x, &y, b->range, (uint8_t *)at[0]);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        char *const row[] = {at[0] + i * row_step[0], at[1] + i * row_step[1],
                             at[2] + i * row_step[2]};
        (b->adds ? add_row : mul_row)(b, n, row, step);
    }
}

/* So many elements are worth another thread: each takes some ten instructions; by vectors, one. */
enum { GRAIN = 1 << 13, VECTOR_GRAIN = 1 << 15 };

static cfx_status run_binary(cfxi_call *c, bool adds)
{
    const cfxi_integer_operand x = cfxi_integer_operand_of(c, SELF);
    const cfxi_integer_operand y = cfxi_integer_operand_of(c, OTHER);
    const cfxi_integer_rows *rows = cfxi_integer_rows_of(c->rt->isa);
    const double scale = cfxi_rt_float(c, RESULT);
    binary b = {.adds = adds,
                .is_signed = {cfxi_integer_is_signed(x.t), cfxi_integer_is_signed(y.t)},
                .zero = {x.zero, y.zero}, .range = cfxi_integer_range_of(c, RESULT)};
    if (!c->rt->reference)
        b.by_vectors = adds ? rows->add : rows->mul;
    if (adds) {
        b.factor[0] = (float)(x.scale / scale);
        b.factor[1] = (float)(y.scale / scale);
    } else {
        b.factor[0] = (float)(x.scale * y.scale / scale);
    }
    const cfx_tensor *operands[] = {cfxi_rt_result_at(c, 0), x.t, y.t};
    cfxi_rt_loop_planes(c->rt, operands, 3, b.by_vectors ? VECTOR_GRAIN : GRAIN, run_plane, &b);
    return CFX_OK;
}

cfx_status cfxi_kernel_integer_add(cfxi_call *c) { return run_binary(c, true); }
cfx_status cfxi_kernel_integer_mul(cfxi_call *c) { return run_binary(c, false); }

/* ---- tables -------------------------------------------------------------------------------- */

cfx_status cfxi_rule_integer_table(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *table = cfxi_rt_tensor(c, 1);
    CFX_TRY(check_bytes(c, x, "self"));
    CFX_TRY(check_bytes(c, table, "table"));
    if (table->ndim != 1 || !cfxi_rt_same_size(c, table->size[0], 256))
        return cfxi_fail(c, CFX_E_SHAPE, "'table' must have 256 elements, one for each value of %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    return cfxi_rt_result_like(c, 0, (cfx_dtype)table->dtype, x);
}

typedef struct lookup {
    const cfxi_integer_rows *rows;
    uint8_t table[256];  /* by the bits of an element */
} lookup;

static void look_up_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const lookup *l = ctx;
    if (l->rows && are_side_by_side(step, 2)) {
        l->rows->look_up(n, l->table, (const uint8_t *)at[1], (uint8_t *)at[0]);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        *(uint8_t *)(at[0] + i * step[0]) = l->table[*(const uint8_t *)(at[1] + i * step[1])];
}

cfx_status cfxi_kernel_integer_table(cfxi_call *c)
{
    const cfx_tensor *table = cfxi_rt_tensor(c, 1);
    const cfx_tensor *operands[] = {cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 0)};
    const int32_t least = cfxi_integer_is_signed(operands[1]) ? -128 : 0;
    lookup l = {.rows = c->rt->reference ? NULL : cfxi_integer_rows_of(c->rt->isa)};
    for (int32_t i = 0; i < 256; i++)
        l.table[(uint8_t)(least + i)] = *(const uint8_t *)(table->data + i * table->stride[0]);
    cfxi_rt_loop(c->rt, operands, 2, l.rows ? VECTOR_GRAIN : GRAIN, look_up_row, &l);
    return CFX_OK;
}
