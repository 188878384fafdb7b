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

/* Integers of 0..15 are stored as those of -8..7: how much less they become. */
static int64_t make_int4(cfx_quantize_spec *spec)
{
    const bool is = spec->dtype == CFX_DTYPE_UINT8 && spec->high <= 15;
    const int64_t less = is ? 8 : 0;
    spec->low -= less;
    spec->high -= less;
    spec->dtype = is ? CFX_DTYPE_INT8 : spec->dtype;
    return less;
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

static cfx_value padded(cfxi_convert *c, cfx_value q, int64_t by)
{
    const cfx_value sides[] = {cfx_value_int(0), cfx_value_int(by)};
    const cfx_value pad[] = {q, cfx_value_list(c->g, sides, 2, c->err)};
    const cfx_value v = compute(c, CFX_OPID_constant_pad_nd, pad, 2);
    cfx_value_discard(c->g, pad[1]);
    return v;
}

/* Whether the last group of a row is shorter: PyTorch's rows have no such groups. */
static bool is_ragged(const cfx_quantize_spec *spec, int64_t row)
{
    return spec->per == CFX_PER_GROUP && row > spec->group && row % spec->group != 0;
}

static cfx_value as_whole_groups(cfxi_convert *c, cfx_value weight, const cfx_value group[7],
                                 int64_t row, int64_t size)
{
    const cfx_value full = padded(c, weight, size - row % size);
    const cfx_value args[] = {full, group[1], group[2], group[3], group[4], group[5], group[6]};
    const cfx_value q = compute(c, CFX_OPID_quantize_per_channel_group, args, 7);
    const cfx_value slice[] = {q, cfx_value_int(1), cfx_value_int(0), cfx_value_int(row)};
    const cfx_value part = compute(c, CFX_OPID_slice, slice, 4);
    const cfx_value rows = compute(c, CFX_OPID_contiguous, &part, 1);
    cfx_value_discard(c->g, full);
    cfx_value_discard(c->g, q);
    cfx_value_discard(c->g, part);
    return rows;
}

static cfx_value as_integers(cfxi_convert *c, cfx_value weight, const cfx_quantize_spec *spec,
                             int64_t row, cfx_value scale, cfx_value zero)
{
    const cfx_value low = cfx_value_int(spec->low), high = cfx_value_int(spec->high);
    const cfx_value dtype = cfx_value_dtype(spec->dtype);
    const cfx_value one[] = {weight, scale, zero, low, high, dtype};
    const cfx_value channel[] = {weight, scale, zero, cfx_value_int(spec->axis), low, high, dtype};
    const cfx_value group[] = {weight, scale, zero, low, high, dtype, cfx_value_int(spec->group)};
    if (is_ragged(spec, row))
        return as_whole_groups(c, weight, group, row, spec->group);
    if (spec->per == CFX_PER_CHANNEL)
        return compute(c, CFX_OPID_quantize_per_channel, channel, 7);
    if (spec->per == CFX_PER_GROUP)
        return compute(c, CFX_OPID_quantize_per_channel_group, group, 7);
    return compute(c, CFX_OPID_quantize_per_tensor, one, 6);
}

static cfx_value pack(cfxi_convert *c, cfx_value q, int64_t row)
{
    const cfx_value even = row % 2 ? padded(c, q, 1) : q;
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

/* How many dimensions a weight has; *row is the length of a row, -1 if it is not known. */
static cfx_status rank_of(cfxi_convert *c, cfxi_weight w, size_t *rank, int64_t *row)
{
    const size_t from_end = w.transposed ? 2 : 1;
    cfx_value shape;
    CFX_TRY(cfxi_ops_module_attr(c->modules, c->g, w.base, "shape", &shape, c->err));
    const cfx_value *sizes = cfx_value_items(shape, rank);
    const bool known = *rank >= from_end && sizes[*rank - from_end].kind == CFX_KIND_INT;
    *row = known ? sizes[*rank - from_end].as.i : -1;
    cfx_value_discard(c->g, shape);
    return CFX_OK;
}

/* The weight with its output channels first, floating. */
static cfx_value value_of(cfxi_convert *c, cfxi_weight w)
{
    const cfx_value v = c->modules->get(c->modules->ctx, c->g, w.base, c->err);
    if (!w.transposed)
        return v;
    const cfx_value t = compute(c, CFX_OPID_t, &v, 1);
    const cfx_value rows = compute(c, CFX_OPID_contiguous, &t, 1);
    cfx_value_discard(c->g, v);
    cfx_value_discard(c->g, t);
    return rows;
}

/* ---- what is stored ------------------------------------------------------------------------- */

/* What one weight became. It may become more than that: a head that is tied to an embedding has
 * groups, which the embedding has not. */
typedef struct cfxi_stored {
    size_t next;             /* of the same weight: one more than its place in c->kinds; or 0 */
    char *base;              /* owned: "fc.weight", or "fc.weight_2" if that is taken */
    cfx_quantize_spec spec;
    bool transposed;
    int64_t row;             /* its length */
    cfx_value scale, zero;   /* of all of it; INVALID: there are tensors */
} cfxi_stored;

static cfxi_stored *stored_at(const cfxi_convert *c, size_t i)
{
    return (cfxi_stored *)c->kinds.data + i;
}

static void *identity(const cfxi_convert *c, const char *path)
{
    return (void *)(uintptr_t)c->modules->identity(c->modules->ctx, path);
}

/* NULL if nothing like it was stored yet. */
static cfxi_stored *find_stored(const cfxi_convert *c, cfxi_weight w, const cfx_quantize_spec *spec)
{
    void *id = identity(c, w.base);
    const size_t *last = id ? cfxi_base_map_find(&c->stored, id, sizeof *last) : NULL;
    for (size_t i = last ? *last : 0; i > 0; i = stored_at(c, i - 1)->next) {
        cfxi_stored *s = stored_at(c, i - 1);
        if (s->transposed == w.transposed && cfxi_quantize_same_spec(&s->spec, spec))
            return s;
    }
    return NULL;
}

static bool is_taken(const cfxi_convert *c, const char *base)
{
    static const char *const suffixes[] = {"_int8", "_uint8", "_int4", "_float16", "_scale",
                                           "_zero"};
    char path[CFXI_QUANTIZE_MAX_PATH];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (cfxi_quantize_join(path, base, suffixes[i], "") && identity(c, path))
            return true;
    return false;
}

/* A place for what the weight becomes; NULL with c->err set. */
static cfxi_stored *add_stored(cfxi_convert *c, cfxi_weight w, const cfx_quantize_spec *spec)
{
    char base[CFXI_QUANTIZE_MAX_PATH];
    void *id = identity(c, w.base);
    size_t rank;
    int64_t row;
    bool fits = cfxi_quantize_join(base, w.base, "", "");
    if (rank_of(c, w, &rank, &row) != CFX_OK)
        return NULL;
    for (int i = 2; fits && is_taken(c, base); i++)
        fits = snprintf(base, sizeof base, "%s_%d", w.base, i) < (int)sizeof base;
    if (!fits)
        return cfx_error_set(c->err, CFX_E_LIMIT, "the path '%.100s' is too long", w.base), NULL;
    size_t *last = id ? cfxi_base_map_add(&c->stored, id, sizeof *last, c->allocator) : NULL;
    char *copy = cfxi_base_alloc(c->allocator, strlen(base) + 1);
    if (!copy || (id && !last) ||
        !cfxi_base_vec_reserve(&c->kinds, 1, sizeof(cfxi_stored), c->allocator)) {
        if (copy)
            cfxi_base_free(c->allocator, copy, strlen(base) + 1);
        return cfxi_base_nomem(c->err), NULL;
    }
    strcpy(copy, base);
    cfxi_stored *s = stored_at(c, c->kinds.size++);
    *s = (cfxi_stored){.next = last ? *last : 0, .base = copy, .spec = *spec,
                       .transposed = w.transposed, .row = row,
                       .scale = cfx_value_invalid(), .zero = cfx_value_invalid()};
    if (last)
        *last = c->kinds.size;
    return s;
}

void cfxi_quantize_stored_free(cfxi_convert *c)
{
    for (size_t i = 0; i < c->kinds.size; i++) {
        char *base = stored_at(c, i)->base;
        cfxi_base_free(c->allocator, base, strlen(base) + 1);
    }
    cfxi_base_vec_free(&c->kinds, sizeof(cfxi_stored), c->allocator);
    cfxi_base_map_free(&c->stored, sizeof(size_t), c->allocator);
}

cfx_status cfxi_quantize_group_refusal(cfxi_convert *c, cfxi_weight weight,
                                       const cfx_quantize_spec *spec, const char **why)
{
    size_t rank;
    int64_t row;
    *why = NULL;
    if (spec->per != CFX_PER_GROUP)
        return CFX_OK;
    CFX_TRY(rank_of(c, weight, &rank, &row));
    if (rank != 2)
        *why = "weights have a scale for each group only if they are a matrix";
    else if (row == 1)
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
    return c->modules->set(c->modules->ctx, c->g, path, v, c->err);
}

/* Likewise one that was computed for it, which is not needed afterwards. */
static cfx_status store_made(cfxi_convert *c, const char *base, const char *suffix, cfx_value v)
{
    const cfx_status status = store(c, base, suffix, v);
    cfx_value_discard(c->g, v);
    return status;
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

static cfx_status store_integers(cfxi_convert *c, cfxi_stored *s, cfx_value weight,
                                 cfx_value scale, cfx_value zero)
{
    if (is_int4(&s->spec) && s->row < 1)
        return cfx_error_set(c->err, CFX_E_SHAPE, "the weight '%.200s' has no rows", s->base);
    cfx_value q = as_integers(c, weight, &s->spec, s->row, scale, zero);
    if (q.kind != CFX_KIND_INVALID && is_int4(&s->spec)) {
        const cfx_value packed = pack(c, q, s->row);
        cfx_value_discard(c->g, q);
        q = packed;
    }
    CFX_TRY(store_made(c, s->base, suffix_of(&s->spec), q));
    if (s->spec.per == CFX_PER_TENSOR) {
        s->scale = scale;  /* numbers */
        s->zero = zero;
        return CFX_OK;
    }
    return store_scales(c, s->base, scale, zero);
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
static cfx_value integers(cfxi_convert *c, cfx_node *before, const cfxi_stored *s)
{
    const cfx_value packed = reader(c, before, s->base, suffix_of(&s->spec));
    if (!is_int4(&s->spec))
        return packed;
    const cfx_value args[] = {packed, cfx_value_int(s->row)};
    return cfxi_quantize_node_value(
        cfxi_quantize_add_call(c, before, "cfx.ops.unpack_int4", args, 2));
}

/* `q`, by the scales at `base`, or of one for all. */
static cfx_node *dequantized(cfxi_convert *c, cfx_node *before, cfx_value q, const char *base,
                             const cfx_quantize_spec *spec, bool ragged, cfx_value one_scale,
                             cfx_value one_zero)
{
    const cfx_value low = cfx_value_int(spec->low), high = cfx_value_int(spec->high);
    const cfx_value dtype = cfx_value_dtype(spec->dtype);
    if (spec->per == CFX_PER_TENSOR) {
        const cfx_value one[] = {q, one_scale, one_zero, low, high, dtype};
        return cfxi_quantize_add_call(c, before, DECOMPOSED "dequantize_per_tensor.default", one,
                                      6);
    }
    const cfx_value scale = reader(c, before, base, "_scale");
    const cfx_value zero = reader(c, before, base, "_zero");
    const cfx_value group[] = {q, scale, zero, low, high, dtype, cfx_value_int(spec->group),
                               cfx_value_dtype(CFX_DTYPE_FLOAT32)};
    const cfx_value channel[] = {q, scale, zero, cfx_value_int(spec->axis), low, high, dtype};
    if (spec->per == CFX_PER_GROUP)
        return cfxi_quantize_add_call(c, before, ragged
                                          ? "cfx.ops.dequantize_per_channel_group"
                                          : DECOMPOSED "dequantize_per_channel_group.default",
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

/* A zero point, or a tensor of them, `less` less. */
static cfx_value lowered(cfxi_convert *c, cfx_value zero, int64_t less)
{
    const cfx_value args[] = {zero, cfx_value_int(less)};
    if (less == 0 || zero.kind == CFX_KIND_INT)
        return zero.kind == CFX_KIND_INT ? cfx_value_int(zero.as.i - less) : zero;
    const cfx_value v = compute(c, CFX_OPID_sub, args, 2);
    cfx_value_discard(c->g, zero);
    return v;
}

static cfx_status store_weight(cfxi_convert *c, cfxi_stored *s, const char *observer,
                               cfx_value weight, bool look, int64_t less)
{
    cfx_value scale = cfx_value_invalid(), zero = cfx_value_invalid();
    if (cfxi_quantize_is_half(&s->spec))
        return store_half(c, s->base, weight);
    if (look)
        CFX_TRY(c->host->look(c->host->ctx, c->g, observer, weight, c->err));
    CFX_TRY(scales_of(c, s->base, observer, &scale, &zero));
    zero = lowered(c, zero, less);
    const cfx_status status = zero.kind == CFX_KIND_INVALID
                                  ? cfxi_base_failed(c->err, c->err->status)
                                  : store_integers(c, s, weight, scale, zero);
    cfx_value_discard(c->g, scale);
    cfx_value_discard(c->g, zero);
    return status;
}

cfx_node *cfxi_quantize_weight(cfxi_convert *c, cfx_node *n, cfxi_weight weight,
                               const char *observer, bool look)
{
    cfx_quantize_spec spec;
    if (c->host->spec(c->host->ctx, observer, &spec, c->err) != CFX_OK)
        return NULL;
    const int64_t less = make_int4(&spec);
    cfxi_stored *s = find_stored(c, weight, &spec);
    if (!s) {
        const cfx_value v = value_of(c, weight);
        s = v.kind != CFX_KIND_INVALID ? add_stored(c, weight, &spec) : NULL;
        const cfx_status status = s ? store_weight(c, s, observer, v, look, less) : CFX_E_NOMEM;
        cfx_value_discard(c->g, v);
        if (status != CFX_OK)
            return NULL;
    }
    cfx_node *result = cfxi_quantize_is_half(&spec)
                           ? from_half(c, n, s->base)
                           : dequantized(c, n, integers(c, n, s), s->base, &spec,
                                         is_ragged(&spec, s->row), s->scale, s->zero);
    if (result && cfxi_quantize_push_path(c, &c->replaced, weight.base) != CFX_OK)
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
    if (status == CFX_OK && !is_taken(c, base))
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
    return q ? dequantized(c, observer, cfx_value_node(q), base, spec, false, scale, zero)
             : NULL;
}
