/* weight_rows.c - rows of weights in 8 or 4 bits as floats, and operators that read only some of
 * them: embeddings and bags of them. */
#include "weight_rows.h"

#include "runtime/kernels/index/bags.h"

#include <stdatomic.h>

/* ---- arguments ----------------------------------------------------------------------------- */

static bool is_one(const cfx_tensor *t)
{
    return t->ndim == 0 || (t->ndim == 1 && t->size[0] == 1);
}

/* Of scales or zero points: one, one for each row, or [rows, groups]; `groups` 0: none. */
static cfx_status check_scales(cfxi_call *c, const cfx_tensor *t, const char *name, bool floats,
                               int64_t rows, int64_t groups)
{
    const cfx_dtype dtype = t ? (cfx_dtype)t->dtype : CFX_DTYPE_INT8;
    if (!t)
        return CFX_OK;
    if (floats ? !cfx_dtype_is_float(dtype) : !cfx_dtype_is_integer(dtype))
        return cfxi_fail(c, CFX_E_TYPE, "'%s' must be of %s, not %s", name,
                         floats ? "floats" : "integers", cfx_dtype_name(dtype));
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
static cfx_status row_of(cfxi_call *c, const cfx_tensor *w, size_t last, int64_t *length,
                         int64_t *groups)
{
    int64_t group, size;
    CFX_TRY(cfxi_rt_number(c, last, &group));
    CFX_TRY(cfxi_rt_number(c, last + 1, &size));
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

cfx_status cfxi_integer_weights_of(cfxi_call *c, size_t first, size_t last,
                                   cfxi_integer_weights *w)
{
    int64_t groups = 0;
    *w = (cfxi_integer_weights){
        .weight = cfxi_rt_tensor(c, first), .scale = cfxi_rt_tensor(c, first + 1),
        .zero = cfxi_rt_tensor(c, first + 2), .packed = cfxi_rt_int(c, last + 1) > 0};
    CFX_TRY(row_of(c, w->weight, last, &w->length, &groups));
    w->rows = w->weight->size[0];
    w->group = groups > 0 ? cfxi_rt_int(c, last) : w->length > 0 ? w->length : 1;
    if (!c->rt->reference)
        w->fast = cfxi_integer_rows_of(c->rt->isa);
    CFX_TRY(check_scales(c, w->scale, "weight_scale", true, w->rows, groups));
    return check_scales(c, w->zero, "weight_zero", false, w->rows, groups);
}

/* ---- rows ---------------------------------------------------------------------------------- */

enum { BLOCK = 256 };

typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef uint16_t pairs8 __attribute__((vector_size(16)));
typedef uint8_t bytes16 __attribute__((vector_size(16)));

void cfxi_integer_unpack(const char *row, int64_t step, int64_t from, int64_t n, int8_t *to)
{
    int64_t i = 0;
    for (; step == 1 && from % 2 == 0 && i + 16 <= n; i += 16) {
        bytes8 both;
        memcpy(&both, row + (from + i) / 2, sizeof both);
        const pairs8 pair = __builtin_convertvector(both, pairs8);
        const bytes16 codes = ((bytes16)(pair | pair << 4) & 15) ^ 8;
        const bytes16 signed_codes = codes - 8;
        memcpy(to + i, &signed_codes, sizeof signed_codes);
    }
    for (; i < n; i++) {
        const uint8_t both = *(const uint8_t *)(row + (from + i) / 2 * step);
        to[i] = (int8_t)((((from + i) % 2 ? both >> 4 : both & 15) ^ 8) - 8);
    }
}

/* The element for a row and group. */
static const char *scale_at(const cfx_tensor *t, int64_t row, int64_t group)
{
    if (is_one(t))
        return t->data;
    return t->data + row * t->stride[0] + (t->ndim == 2 ? group * t->stride[1] : 0);
}

/* n integers that have one scale. */
static void dequantize(const cfxi_integer_weights *w, int64_t row, int64_t group,
                       cfxi_integer_bytes b, int64_t n, float *to)
{
    const int64_t zero = w->zero ? cfxi_tensor_load_int((cfx_dtype)w->zero->dtype,
                                                        scale_at(w->zero, row, group)) : 0;
    b.factor = (float)cfxi_tensor_load_float((cfx_dtype)w->scale->dtype,
                                             scale_at(w->scale, row, group));
    b.zero = (int32_t)zero;
    if (w->fast && zero > -(1 << 20) && zero < 1 << 20) {
        w->fast->dequantize(n, &b, to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)((double)cfxi_integer_load(b.is_signed, b.x + i) - (double)zero) * b.factor;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void cfxi_integer_weights_row(const void *weights, int64_t row, int64_t from, int64_t n, float *to)
{
    int8_t block[BLOCK];
    const cfxi_integer_weights *w = weights;
    const char *at = w->weight->data + row * w->weight->stride[0];
    const int64_t step = w->weight->stride[1];
    const int64_t end = from + n;
    while (from < end) {
        const int64_t group = from / w->group;
        const int64_t m = smaller(smaller(end, (group + 1) * w->group) - from, BLOCK);
        const bool as_is = !w->packed && step == 1;
        if (w->packed)
            cfxi_integer_unpack(at, step, from, m, block);
        for (int64_t i = 0; !w->packed && !as_is && i < m; i++)
            block[i] = (int8_t)at[(from + i) * step];
        const cfxi_integer_bytes b = {
            .x = as_is ? (const uint8_t *)at + from : (const uint8_t *)block,
            .is_signed = w->packed || cfxi_integer_is_signed(w->weight)};
        dequantize(w, row, group, b, m, to);
        from += m;
        to += m;
    }
}

/* A header of the table as floats; NULL with c->err set. */
static cfx_tensor *as_floats(cfxi_call *c, const cfxi_integer_weights *w)
{
    return cfxi_tensor_header(CFX_DTYPE_FLOAT32, (int64_t[]){w->rows, w->length}, 2,
                              c->rt->allocator, c->err);
}

/* ---- embedding ----------------------------------------------------------------------------- */

enum { INDICES, WEIGHT, GROUP = 4 };

cfx_status cfxi_rule_weight_embedding(cfxi_call *c)
{
    cfxi_integer_weights w;
    CFX_TRY(cfxi_integer_weights_of(c, WEIGHT, GROUP, &w));
    cfx_tensor *table = as_floats(c, &w);
    if (!table)
        return c->err->status;
    const cfx_datum args[] = {cfx_datum_tensor(table), c->args[INDICES], cfx_datum_int(-1),
                              cfx_datum_bool(false), cfx_datum_bool(false)};
    const cfx_status status = cfxi_integer_result_as(c, CFX_DTYPE_FLOAT32, CFX_OPID_embedding, args,
                                                     5, NULL);
    cfx_tensor_release(table);
    return status;
}

typedef struct reading {
    cfxi_integer_weights w;
    const int64_t *indices;
    float *to;
    atomic_bool outside;
} reading;

static void read_rows(void *ctx, int64_t begin, int64_t end)
{
    reading *r = ctx;
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = r->indices[i];
        if (at < 0 || at >= r->w.rows) {
            atomic_store(&r->outside, true);
            return;
        }
        cfxi_integer_weights_row(&r->w, at, 0, r->w.length, r->to + i * r->w.length);
    }
}

cfx_status cfxi_kernel_weight_embedding(cfxi_call *c)
{
    reading r = {.to = (float *)(void *)cfxi_rt_result_at(c, 0)->data};
    CFX_TRY(cfxi_integer_weights_of(c, WEIGHT, GROUP, &r.w));
    cfx_tensor *indices = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, INDICES), CFX_DTYPE_INT64);
    if (!indices)
        return c->err->status;
    r.indices = (const int64_t *)indices->data;
    cfxi_rt_parallel(c->rt, cfxi_tensor_numel(indices), 1 + 65536 / (1 + r.w.length), read_rows,
                     &r);
    cfx_tensor_release(indices);
    return atomic_load(&r.outside) ? cfxi_fail(c, CFX_E_INDEX, "index out of range in self")
                                   : CFX_OK;
}

/* ---- bags ---------------------------------------------------------------------------------- */

enum { BAG_WEIGHT = 2, BAG_GROUP = 5, MODE = 7, SAMPLES, LAST, PADDING, BAG_ARGS = 9 };

static void fetch_row(const void *weights, int64_t row)
{
    const cfxi_integer_weights *w = weights;
    cfxi_index_fetch(w->weight, row);
    if (!is_one(w->scale))
        cfxi_index_fetch(w->scale, row);
    if (w->zero && !is_one(w->zero))
        cfxi_index_fetch(w->zero, row);
}

/* The arguments of embedding_bag, for a table of floats. */
static void bag_args(const cfxi_call *c, cfx_tensor *table, cfx_datum args[BAG_ARGS])
{
    const cfx_datum made[BAG_ARGS] = {
        cfx_datum_tensor(table), c->args[0], c->args[1], cfx_datum_bool(false), c->args[MODE],
        cfx_datum_bool(false), c->args[SAMPLES], c->args[LAST], c->args[PADDING]};
    memcpy(args, made, sizeof made);
}

cfx_status cfxi_rule_weight_embedding_bag(cfxi_call *c)
{
    cfxi_integer_weights w;
    cfx_datum args[BAG_ARGS];
    CFX_TRY(cfxi_integer_weights_of(c, BAG_WEIGHT, BAG_GROUP, &w));
    cfx_tensor *table = as_floats(c, &w);
    if (!table)
        return c->err->status;
    bag_args(c, table, args);
    const cfx_status status = cfxi_integer_result_as(c, CFX_DTYPE_FLOAT32, CFX_OPID_embedding_bag,
                                                     args, BAG_ARGS, NULL);
    cfx_tensor_release(table);
    return status;
}

cfx_status cfxi_kernel_weight_embedding_bag(cfxi_call *c)
{
    cfxi_integer_weights w;
    cfx_datum args[BAG_ARGS];
    CFX_TRY(cfxi_integer_weights_of(c, BAG_WEIGHT, BAG_GROUP, &w));
    cfx_tensor *table = as_floats(c, &w);
    if (!table)
        return c->err->status;
    bag_args(c, table, args);
    cfxi_call bag = *c;
    bag.args = args;
    const cfx_status status = cfxi_index_bags(
        &bag, &(cfxi_index_table){cfxi_integer_weights_row, fetch_row, &w});
    cfx_tensor_release(table);
    return status;
}
