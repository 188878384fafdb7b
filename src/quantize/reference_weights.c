/* reference_weights.c - weights as integers: buffers beside the old ones, dequantized where used.
 *
 *     fc.weight  ->  fc.weight_int8, fc.weight_scale, fc.weight_zero
 *
 * What is one number for all stands in the call. int4 weights lie two in a byte, the first in the
 * lower half (fc.weight_int4); a row of odd length ends with half a byte of zeros.
 */
#include "reference_impl.h"

/* A call of a function, or of a method if `method`. */
static cfx_node *add(cfxi_convert *c, cfx_node *before, const char *name, bool method,
                     const cfx_value *args, size_t n)
{
    const cfx_insert_point old = cfx_graph_insert_point(c->g);
    const cfx_target target = {.name = name, .size = strlen(name)};
    for (size_t i = 0; i < n; i++)
        if (args[i].kind == CFX_KIND_INVALID)
            return NULL;
    if (cfx_graph_set_insert_point(c->g, (cfx_insert_point){before, false}, c->err) != CFX_OK)
        return NULL;
    cfx_node *call =
        method ? cfxi_analysis_add_call(c->g, CFX_OP_CALL_METHOD, target, args, n, c->err)
               : cfxi_analysis_add_function(c->g, name, args, n, c->err);
    cfx_graph_set_insert_point(c->g, old, NULL);
    if (call)
        cfxi_analysis_place_like(call, before);
    return call;
}

cfx_node *cfxi_quantize_add_call(cfxi_convert *c, cfx_node *before, const char *function,
                                 const cfx_value *args, size_t n)
{
    return add(c, before, function, false, args, n);
}

cfx_node *cfxi_quantize_add_cast(cfxi_convert *c, cfx_node *before, cfx_value x, cfx_dtype dtype)
{
    const cfx_value args[] = {x, cfx_value_dtype(dtype)};
    return add(c, before, "to", true, args, 2);
}

const char *cfxi_quantize_weight_observer(const cfxi_convert *c, const char *layer,
                                          char path[CFXI_QUANTIZE_MAX_PATH])
{
    static const char *const names[] = {"weight_fake_quant", "weight_observer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cfxi_quantize_join(path, layer, ".", names[i]) &&
            c->modules->identity(c->modules->ctx, path))
            return path;
    return NULL;
}

/* ---- computing ------------------------------------------------------------------------------ */

static cfx_value compute(cfxi_convert *c, cfx_operator op, const cfx_value *args, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (args[i].kind == CFX_KIND_INVALID)
            return cfx_value_invalid();
    return c->modules->call(c->modules->ctx, c->g, op, args, n, c->err);
}

static bool is_int4(const cfx_quantize_spec *spec) { return spec->low >= -8 && spec->high <= 7; }

static cfx_value as_integers(cfxi_convert *c, cfx_value weight, const cfx_quantize_spec *spec,
                             cfx_value scale, cfx_value zero)
{
    const cfx_value low = cfx_value_int(spec->low), high = cfx_value_int(spec->high);
    const cfx_value dtype = cfx_value_dtype(spec->dtype);
    const cfx_value one[] = {weight, scale, zero, low, high, dtype};
    const cfx_value channel[] = {weight, scale, zero, cfx_value_int(spec->axis), low, high, dtype};
    const cfx_value group[] = {weight, scale, zero, low, high, dtype, cfx_value_int(spec->group)};
    if (spec->per == CFX_PER_CHANNEL)
        return compute(c, CFX_OPID_quantize_per_channel, channel, 7);
    if (spec->per == CFX_PER_GROUP)
        return compute(c, CFX_OPID_quantize_per_channel_group, group, 7);
    return compute(c, CFX_OPID_quantize_per_tensor, one, 6);
}

/* Elements 0, 2, 4, ... or 1, 3, 5, ... of each row, the lower half of each. */
static cfx_value halves(cfxi_convert *c, cfx_value q, int64_t from)
{
    const cfx_value slice[] = {q, cfx_value_int(-1), cfx_value_int(from), cfx_value_none(),
                               cfx_value_int(2)};
    const cfx_value some = compute(c, CFX_OPID_slice, slice, 5);
    const cfx_value mask[] = {some, cfx_value_int(15)};
    const cfx_value low = compute(c, CFX_OPID_bitwise_and, mask, 2);
    cfx_value_discard(c->g, some);
    return low;
}

static cfx_value padded(cfxi_convert *c, cfx_value q)
{
    const cfx_value one[] = {cfx_value_int(0), cfx_value_int(1)};
    const cfx_value pad[] = {q, cfx_value_list(c->g, one, 2, c->err)};
    const cfx_value v = compute(c, CFX_OPID_constant_pad_nd, pad, 2);
    cfx_value_discard(c->g, pad[1]);
    return v;
}

static cfx_value pack(cfxi_convert *c, cfx_value q, int64_t row)
{
    const cfx_value even = row % 2 ? padded(c, q) : q;
    const cfx_value low = halves(c, even, 0), high = halves(c, even, 1);
    const cfx_value times[] = {high, cfx_value_int(16)};
    const cfx_value shifted = compute(c, CFX_OPID_mul, times, 2);
    const cfx_value both[] = {low, shifted};
    const cfx_value sum = compute(c, CFX_OPID_bitwise_or, both, 2);
    const cfx_value cast[] = {sum, cfx_value_dtype(CFX_DTYPE_UINT8)};
    const cfx_value packed = compute(c, CFX_OPID_to, cast, 2);
    const cfx_value dropped[] = {low, high, shifted, sum};
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        cfx_value_discard(c->g, dropped[i]);
    if (row % 2)
        cfx_value_discard(c->g, even);
    return packed;
}

/* How many dimensions a weight has; *row is the length of the last one. */
static cfx_status rank_of(cfxi_convert *c, const char *base, size_t *rank, int64_t *row)
{
    cfx_value shape;
    CFX_TRY(cfxi_ops_module_attr(c->modules, c->g, base, "shape", &shape, c->err));
    const cfx_value *sizes = cfx_value_items(shape, rank);
    const bool known = *rank > 0 && sizes[*rank - 1].kind == CFX_KIND_INT;
    *row = known ? sizes[*rank - 1].as.i : 0;
    cfx_value_discard(c->g, shape);
    return known ? CFX_OK : cfx_error_set(c->err, CFX_E_SHAPE, "the weight '%.200s' has no rows",
                                          base);
}

cfx_status cfxi_quantize_group_refusal(cfxi_convert *c, const char *base,
                                       const cfx_quantize_spec *spec, const char **why)
{
    size_t rank;
    int64_t row;
    *why = NULL;
    if (spec->per != CFX_PER_GROUP)
        return CFX_OK;
    CFX_TRY(rank_of(c, base, &rank, &row));
    if (rank != 2)
        *why = "weights have a scale for each group only if they are a matrix";
    else if (row == 1 || (row > spec->group && row % spec->group != 0))
        *why = "the rows of its weights cannot be divided into groups of this size";
    return CFX_OK;
}

/* ---- buffers -------------------------------------------------------------------------------- */

/* Stores a tensor at base + suffix. */
static cfx_status store(cfxi_convert *c, const char *base, const char *suffix, cfx_value v)
{
    char path[CFXI_QUANTIZE_MAX_PATH];
    if (v.kind == CFX_KIND_INVALID)
        return cfxi_base_failed(c->err, c->err->status);
    if (!cfxi_quantize_join(path, base, suffix, ""))
        return cfx_error_set(c->err, CFX_E_LIMIT, "the path '%.100s' is too long", base);
    if (c->modules->identity(c->modules->ctx, path))
        return cfx_error_set(c->err, CFX_E_VALUE, "the quantized weight is to be stored at "
                             "'%.200s', but the model has something there; rename it", path);
    CFX_TRY(c->modules->set(c->modules->ctx, c->g, path, v, c->err));
    void *id = (void *)(uintptr_t)c->modules->identity(c->modules->ctx, path);
    return !id || cfxi_base_pointers_set(&c->made, id, id, c->allocator) ? CFX_OK
                                                                         : cfxi_base_nomem(c->err);
}

/* Likewise one that was computed for it, which is not needed afterwards. */
static cfx_status store_made(cfxi_convert *c, const char *base, const char *suffix, cfx_value v)
{
    const cfx_status status = store(c, base, suffix, v);
    cfx_value_discard(c->g, v);
    return status;
}

static bool is_made(const cfxi_convert *c, const char *base, const char *suffix)
{
    char path[CFXI_QUANTIZE_MAX_PATH];
    const void *id = cfxi_quantize_join(path, base, suffix, "")
                         ? c->modules->identity(c->modules->ctx, path) : NULL;
    return id && cfxi_base_pointers_get(&c->made, id);
}

static const char *suffix_of(const cfx_quantize_spec *spec)
{
    if (cfxi_quantize_is_half(spec))
        return "_float16";
    return is_int4(spec) ? "_int4" : spec->dtype == CFX_DTYPE_UINT8 ? "_uint8" : "_int8";
}

static cfx_status store_scales(cfxi_convert *c, const char *base, cfx_value scale, cfx_value zero)
{
    CFX_TRY(store(c, base, "_scale", scale));
    return store(c, base, "_zero", zero);
}

static cfx_status store_integers(cfxi_convert *c, const char *base, const cfx_quantize_spec *spec,
                                 cfx_value weight, cfx_value scale, cfx_value zero)
{
    size_t rank;
    int64_t row = 0;
    if (is_int4(spec))
        CFX_TRY(rank_of(c, base, &rank, &row));
    cfx_value q = as_integers(c, weight, spec, scale, zero);
    if (q.kind != CFX_KIND_INVALID && is_int4(spec)) {
        const cfx_value packed = pack(c, q, row);
        cfx_value_discard(c->g, q);
        q = packed;
    }
    CFX_TRY(store_made(c, base, suffix_of(spec), q));
    return spec->per == CFX_PER_TENSOR ? CFX_OK : store_scales(c, base, scale, zero);
}

static cfx_status store_half(cfxi_convert *c, const char *base, cfx_value weight)
{
    const cfx_value cast[] = {weight, cfx_value_dtype(CFX_DTYPE_FLOAT16)};
    return store_made(c, base, "_float16", compute(c, CFX_OPID_to, cast, 2));
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static cfx_value reader(cfxi_convert *c, cfx_node *before, const char *base, const char *suffix)
{
    char path[CFXI_QUANTIZE_MAX_PATH];
    cfx_node *n = cfxi_quantize_join(path, base, suffix, "")
                      ? cfxi_analysis_add_reader(before, path, c->err) : NULL;
    return cfxi_quantize_node_value(n);
}

/* The integers, unpacked. */
static cfx_value integers(cfxi_convert *c, cfx_node *before, const char *base,
                          const cfx_quantize_spec *spec)
{
    const cfx_value packed = reader(c, before, base, suffix_of(spec));
    if (!is_int4(spec))
        return packed;
    size_t rank;
    int64_t row;
    if (rank_of(c, base, &rank, &row) != CFX_OK)
        return cfx_value_invalid();
    const cfx_value args[] = {packed, cfx_value_int(row)};
    return cfxi_quantize_node_value(
        cfxi_quantize_add_call(c, before, "cfx.ops.unpack_int4", args, 2));
}

/* `q`, by the scales at `base`, or of one for all. */
static cfx_node *dequantized(cfxi_convert *c, cfx_node *before, cfx_value q, const char *base,
                             const cfx_quantize_spec *spec, cfx_value scale, cfx_value zero)
{
    const cfx_value low = cfx_value_int(spec->low), high = cfx_value_int(spec->high);
    const cfx_value dtype = cfx_value_dtype(spec->dtype);
    if (spec->per == CFX_PER_TENSOR) {
        const cfx_value one[] = {q, scale, zero, low, high, dtype};
        return cfxi_quantize_add_call(c, before, DECOMPOSED "dequantize_per_tensor.default", one,
                                      6);
    }
    const cfx_value s = reader(c, before, base, "_scale"), z = reader(c, before, base, "_zero");
    const cfx_value group[] = {q, s, z, low, high, dtype, cfx_value_int(spec->group),
                               cfx_value_dtype(CFX_DTYPE_FLOAT32)};
    const cfx_value channel[] = {q, s, z, cfx_value_int(spec->axis), low, high, dtype};
    if (spec->per == CFX_PER_GROUP)
        return cfxi_quantize_add_call(c, before, DECOMPOSED "dequantize_per_channel_group.default",
                                      group, 8);
    return cfxi_quantize_add_call(c, before, DECOMPOSED "dequantize_per_channel.default", channel,
                                  7);
}

static cfx_node *from_half(cfxi_convert *c, cfx_node *before, const char *base)
{
    return cfxi_quantize_add_cast(c, before, reader(c, before, base, "_float16"),
                                  CFX_DTYPE_FLOAT32);
}

/* ---- a weight ------------------------------------------------------------------------------- */

/* What its observer gives, floating; an error names the weight. */
static cfx_status scales_of(cfxi_convert *c, const char *weight, const char *observer,
                            cfx_value *scale, cfx_value *zero)
{
    cfx_error why = {.status = CFX_OK};
    const cfx_status status = c->host->scales(c->host->ctx, c->g, observer, scale, zero, &why);
    if (status == CFX_E_VALUE || status == CFX_E_UNSUPPORTED)
        return cfx_error_set(c->err, CFX_E_VALUE, "the weight '%.80s' cannot be quantized: %.140s",
                             weight, why.message);
    if (status != CFX_OK)
        *c->err = why;
    return status;
}

static cfx_node *integer_weight(cfxi_convert *c, cfx_node *n, const char *base,
                                const char *observer, const cfx_quantize_spec *spec,
                                cfx_value weight)
{
    cfx_value scale = cfx_value_invalid(), zero = cfx_value_invalid();
    cfx_node *result = NULL;
    cfx_status status = scales_of(c, base, observer, &scale, &zero);
    if (status == CFX_OK && !is_made(c, base, suffix_of(spec)))
        status = store_integers(c, base, spec, weight, scale, zero);
    if (status == CFX_OK)
        result = dequantized(c, n, integers(c, n, base, spec), base, spec, scale, zero);
    cfx_value_discard(c->g, scale);
    cfx_value_discard(c->g, zero);
    return result;
}

cfx_node *cfxi_quantize_weight(cfxi_convert *c, cfx_node *n, const char *base,
                               const char *observer, bool look)
{
    cfx_quantize_spec spec;
    cfx_node *result = NULL;
    cfx_status status = c->host->spec(c->host->ctx, observer, &spec, c->err);
    cfx_value weight = cfx_value_invalid();
    if (status == CFX_OK)
        weight = c->modules->get(c->modules->ctx, c->g, base, c->err);
    if (weight.kind == CFX_KIND_INVALID)
        return NULL;
    if (cfxi_quantize_is_half(&spec)) {
        if (is_made(c, base, "_float16") || store_half(c, base, weight) == CFX_OK)
            result = from_half(c, n, base);
    } else {
        if (look)
            status = c->host->look(c->host->ctx, c->g, observer, weight, c->err);
        if (status == CFX_OK)
            result = integer_weight(c, n, base, observer, &spec, weight);
    }
    cfx_value_discard(c->g, weight);
    if (result && cfxi_quantize_push_path(c, &c->replaced, base) != CFX_OK)
        result = NULL;
    return result;
}

cfx_node *cfxi_quantize_computed_weight(cfxi_convert *c, cfx_node *observer,
                                        const cfx_quantize_spec *spec)
{
    const char *base = cfxi_quantize_path(observer);
    const cfx_value weight = cfx_node_arg(observer, 0);
    const cfx_value low = cfx_value_int(spec->low), high = cfx_value_int(spec->high);
    const cfx_value dtype = cfx_value_dtype(spec->dtype);
    cfx_value scale = cfx_value_invalid(), zero = cfx_value_invalid();
    cfx_status status = scales_of(c, cfx_node_name(weight.as.node, NULL), base, &scale, &zero);
    if (status == CFX_OK && !is_made(c, base, "_scale"))
        status = store_scales(c, base, scale, zero);
    cfx_value_discard(c->g, scale);
    cfx_value_discard(c->g, zero);
    if (status != CFX_OK)
        return NULL;
    scale = reader(c, observer, base, "_scale");
    zero = reader(c, observer, base, "_zero");
    const cfx_value args[] = {weight, scale, zero, cfx_value_int(spec->axis), low, high, dtype};
    cfx_node *q = cfxi_quantize_add_call(c, observer, DECOMPOSED "quantize_per_channel.default",
                                         args, 7);
    return q ? dequantized(c, observer, cfx_value_node(q), base, spec, scale, zero) : NULL;
}
