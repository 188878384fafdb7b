/* random_graph.h - tensors, arguments and calls made of the bytes of a fuzzer's input.
 *
 * The operator table's schemas say what a parameter takes. Most arguments fit, so that kernels are
 * reached; the others are extreme: numbers at the ends of their types, empty and nested lists, the
 * wrong kind. When the input ends, random numbers that its first bytes determine go on, so a
 * mutation of a later byte keeps what follows. */
#ifndef CFX_TESTS_RANDOM_GRAPH_H
#define CFX_TESTS_RANDOM_GRAPH_H

#include <cfx/embed/ops.h>
#include <cfx/embed/tensor.h>
#include <cfx/runtime.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    const uint8_t *data;
    size_t size;
    size_t at;
    uint64_t more;  /* the state of the numbers after the end */
} source;

static inline source source_of(const uint8_t *data, size_t size)
{
    source s = {.data = data, .size = size, .more = 0x9e3779b97f4a7c15u};
    for (; s.at < size && s.at < 8; s.at++)
        s.more = (s.more ^ data[s.at]) * 0x100000001b3u + 1;
    return s;
}

static inline size_t pick(source *s, size_t n)
{
    unsigned two = 0;
    for (int i = 0; i < (n > 256 ? 2 : 1); i++) {
        if (s->at < s->size) {
            two = two << 8 | s->data[s->at++];
            continue;
        }
        s->more ^= s->more >> 12;
        s->more ^= s->more << 25;
        s->more ^= s->more >> 27;
        two = two << 8 | (unsigned)(s->more * 0x2545f4914f6cdd1du >> 56);
    }
    return n ? two % n : 0;
}

/* True in `percent` of cases. */
static inline bool chance(source *s, unsigned percent) { return pick(s, 100) < percent; }

/* ---- numbers ------------------------------------------------------------------------------- */

static inline int64_t any_int(source *s)
{
    static const int64_t extreme[] = {
        INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, INT64_MIN / 2, INT64_MIN / 2 + 1,
        INT64_MIN / 2 - 1, INT64_C(1) << 31, (INT64_C(1) << 31) - 1, -(INT64_C(1) << 31),
        INT64_C(1) << 32, INT64_C(1) << 60, -(INT64_C(1) << 60), INT64_C(1) << 62,
        INT64_MAX / 8, INT64_C(1) << 40, 1000000007, 65536, -65536, 255, 64, 63, 100, 50, 25};
    if (chance(s, 75))
        return (int64_t)pick(s, 9) - 3;
    if (chance(s, 30))
        return (int64_t)pick(s, 40);
    return extreme[pick(s, sizeof extreme / sizeof *extreme)];
}

static inline double any_float(source *s)
{
    static const double extreme[] = {
        0.0, -0.0, NAN, INFINITY, -INFINITY, 4.9e-324, -2.2e-310, DBL_MAX, -DBL_MAX, FLT_MAX, 1e39,
        9.3e18, -9.3e18, 9223372036854775807.0, 2147483648.0, -2147483649.0, 4294967296.0, 1e-45,
        65520.0, 1e-30, 256.0, -129.0, 0.9999999999999999, 1.0000000000000002};
    return chance(s, 70) ? ((double)pick(s, 17) - 8) / 4
                         : extreme[pick(s, sizeof extreme / sizeof *extreme)];
}

static inline cfx_datum any_number(source *s)
{
    switch (pick(s, 7)) {
    case 0: return cfx_datum_bool(pick(s, 2));
    case 1: case 2: case 3: return cfx_datum_int(any_int(s));
    case 4: return cfx_datum_complex(any_float(s), any_float(s));
    default: return cfx_datum_float(any_float(s));
    }
}

/* ---- tensors ------------------------------------------------------------------------------- */

enum { MOST_ELEMENTS = 6000 };

static inline cfx_dtype any_dtype(source *s)
{
    static const uint8_t types[] = {
        CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT32,
        CFX_DTYPE_INT64, CFX_DTYPE_INT64, CFX_DTYPE_INT64, CFX_DTYPE_FLOAT64, CFX_DTYPE_FLOAT64,
        CFX_DTYPE_BOOL, CFX_DTYPE_UINT8, CFX_DTYPE_INT8, CFX_DTYPE_INT16, CFX_DTYPE_INT32,
        CFX_DTYPE_FLOAT16, CFX_DTYPE_BFLOAT16, CFX_DTYPE_COMPLEX64, CFX_DTYPE_COMPLEX128};
    return (cfx_dtype)types[pick(s, sizeof types)];
}

typedef struct shape {
    size_t ndim;
    int64_t size[CFX_MAX_DIMS];
} shape;

/* Often the same size in all dimensions, so that tensors fit one another. */
static inline shape any_shape(source *s)
{
    static const uint8_t sizes[] = {3, 2, 4, 1, 3, 2, 5, 0, 8, 7, 17, 33, 65};
    shape r = {chance(s, 90) ? pick(s, 6) : pick(s, CFX_MAX_DIMS + 1), {0}};
    const bool equal = chance(s, 60);
    const int64_t one = sizes[pick(s, chance(s, 80) ? 7 : sizeof sizes)];
    int64_t all = 1;
    for (size_t i = 0; i < r.ndim; i++) {
        r.size[i] = equal ? one : sizes[pick(s, sizeof sizes)];
        if (all * r.size[i] > MOST_ELEMENTS)
            r.size[i] = 1 + (int64_t)pick(s, 2) * (all * 2 <= MOST_ELEMENTS);
        all *= r.size[i] ? r.size[i] : 1;
    }
    if (r.ndim == 1 && chance(s, 10))
        r.size[0] = 1 + (int64_t)pick(s, MOST_ELEMENTS);
    if (r.ndim > 1 && chance(s, 4)) {  /* no element, but far to go */
        r.size[pick(s, r.ndim)] = INT64_C(1) << (20 + pick(s, 30));
        r.size[pick(s, r.ndim)] = 0;
    }
    return r;
}

/* Small numbers, so that they serve as indices; extreme ones among them in some tensors. */
static inline void fill(source *s, cfx_dtype dtype, char *at, int64_t n)
{
    const size_t size = cfx_dtype_size(dtype);
    const bool wild = chance(s, 30);
    const int64_t base = (int64_t)pick(s, 3) - 1;
    for (int64_t i = 0; i < n; i++, at += size) {
        cfx_datum d = cfx_datum_int(i % 5 + base);
        if (wild && i < 200 && chance(s, 30))
            d = cfx_dtype_is_integer(dtype) ? cfx_datum_int(any_int(s))
                                            : cfx_datum_float(any_float(s));
        if (dtype == CFX_DTYPE_BOOL)
            d = cfx_datum_bool(i % 3 == 0);
        else if (!cfx_dtype_is_integer(dtype) && d.kind == CFX_DATUM_INT)
            d = cfx_datum_float((double)d.as.i / 2);
        if (d.kind == CFX_DATUM_FLOAT && cfx_dtype_is_complex(dtype))
            d = cfx_datum_complex(d.as.f, wild ? -d.as.f : 1);
        if (!cfx_datum_store(d, dtype, at))
            memset(at, (int)(i & 1), size);
    }
}

/* Strides over a dense block that holds the shape: of other order, negative, 0, overlapping or with
 * gaps. Returns the offset of the first element; *elements is how many the block needs. */
static inline int64_t any_strides(source *s, const shape *r, int64_t *strides, int64_t *elements)
{
    int64_t first = 0;
    int64_t last = 0;
    int64_t step = 1;
    const size_t layout = pick(s, 6);
    for (size_t d = 0; d < r->ndim; d++)
        if (r->size[d] > MOST_ELEMENTS || r->size[d] == 0) {
            *elements = INT64_MAX;
            return 0;
        }
    for (size_t k = 0; k < r->ndim; k++) {
        const size_t d = layout % 2 ? k : r->ndim - 1 - k;
        const int64_t reach = r->size[d] > 0 ? r->size[d] - 1 : 0;
        strides[d] = step;
        if (layout == 2 && chance(s, 40))
            strides[d] = 0;
        else if (layout == 3 && chance(s, 40))
            strides[d] = -step;
        else if (layout == 4)
            strides[d] = 1 + (int64_t)pick(s, 3);
        else if (layout == 5)
            strides[d] = step *= 1 + (int64_t)pick(s, 2);
        if (strides[d] < 0)
            first += reach * step;
        else
            last += reach * strides[d];
        step *= reach + 1;
    }
    *elements = first + last + 1;
    return first;
}

/* A tensor of the type and shape; NULL if memory is out. `plain`: dense. */
static inline cfx_tensor *any_tensor(source *s, cfx_dtype dtype, const shape *r, bool plain,
                                     const cfx_allocator *allocator, cfx_error *err)
{
    const int64_t size = (int64_t)cfx_dtype_size(dtype);
    int64_t strides[CFX_MAX_DIMS] = {0};
    int64_t n = 0;
    const bool dense = plain || chance(s, 50);
    const int64_t first = dense ? 0 : any_strides(s, r, strides, &n);
    cfx_tensor *t = dense || n > 20 * MOST_ELEMENTS
                        ? cfx_tensor_new(dtype, r->size, r->ndim, allocator, err)
                        : cfx_tensor_new(dtype, &n, 1, allocator, err);
    if (t)
        fill(s, dtype, cfx_tensor_data(t), cfx_tensor_numel(t));
    if (!t || dense || n > 20 * MOST_ELEMENTS)
        return t;
    for (size_t i = 0; i < r->ndim; i++)
        strides[i] *= size;
    cfx_tensor *view = cfx_tensor_view(t, dtype, r->size, strides, r->ndim, first * size, err);
    cfx_tensor_release(t);
    return view;
}

/* ---- arguments ----------------------------------------------------------------------------- */

/* The values there are so far: inputs and results, by name. */
enum { MOST_VALUES = 32 };
typedef struct values {
    size_t count;
    cfx_datum datum[MOST_VALUES];
    char name[MOST_VALUES][16];
    const cfx_allocator *allocator;
} values;

static inline void values_release(values *v)
{
    for (size_t i = 0; i < v->count; i++)
        cfx_datum_release(v->datum[i]);
    v->count = 0;
}

/* Takes over the datum. */
static inline void values_add(values *v, const char *prefix, cfx_datum d)
{
    if (v->count == MOST_VALUES) {
        cfx_datum_release(d);
        return;
    }
    snprintf(v->name[v->count], sizeof *v->name, "%s%zu", prefix, v->count);
    v->datum[v->count++] = d;
}

/* A tensor of the values, preferably one of the last; a number if there is none. Retained. */
static inline cfx_datum any_value(source *s, const values *v, bool tensor)
{
    for (int i = 0; i < 8 && v->count; i++) {
        const cfx_datum d = v->datum[pick(s, v->count)];
        if (!tensor || d.kind == CFX_DATUM_TENSOR)
            return cfx_datum_retain(d);
    }
    return any_number(s);
}

static inline cfx_datum any_text(source *s, const values *v)
{
    static const char *const words[] = {
        "mean", "sum", "none", "same", "valid", "zeros", "nearest", "nearest-exact", "linear",
        "bilinear", "bicubic", "trilinear", "area", "constant", "reflect", "replicate", "circular",
        "border", "reflection", "tanh", "trunc", "floor", "ij", "xy", "amax", "amin", "prod",
        "multiply", "add", "fro", "nuc", "left", "right", "reduced", "complete", "r", "U", "L",
        "ij,jk->ik", "...ii->...i", "bij,bjk->bik", "ii", "ijk->", "a...,b...->...", "max", "lower",
        "higher", "midpoint", "batchmean", "{:>30}", "{0:.3f} {}", "%d", "float32", "cpu", "",
        "\xc3\xa9t\xc3\xa9", "gelu", "relu", "i,j,k,l,m,n->nmlkji"};
    const char *word = words[pick(s, sizeof words / sizeof *words)];
    return cfx_datum_from_text(CFX_DATUM_STR, word, strlen(word), v->allocator, NULL);
}

static inline cfx_datum any_arg(source *s, const values *v, const char *type, int depth);

static inline cfx_datum any_sequence(source *s, const values *v, cfx_datum_kind kind, size_t n,
                                     const char *type, int depth)
{
    cfx_datum items[16] = {{0}};
    n = kind == CFX_DATUM_SLICE ? 3 : kind == CFX_DATUM_DICT ? n / 2 * 2 : n > 16 ? 16 : n;
    for (size_t i = 0; i < n; i++) {
        items[i] = kind == CFX_DATUM_SLICE && chance(s, 30) ? cfx_datum_none()
                                                            : any_arg(s, v, type, depth + 1);
        if (items[i].kind == CFX_DATUM_INVALID)
            items[i] = cfx_datum_none();
    }
    const cfx_datum all = cfx_datum_seq(kind, items, n, v->allocator, NULL);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(items[i]);
    return all;
}

/* Indices above all: rows that take Any are those that Python itself would compute. */
static inline cfx_datum any_any(source *s, const values *v, int depth)
{
    if (depth > 3)
        return any_number(s);
    switch (pick(s, 12)) {
    case 0: return cfx_datum_none();
    case 1: return cfx_datum_scalar(CFX_DATUM_ELLIPSIS, 0);
    case 2: return any_text(s, v);
    case 3: return any_sequence(s, v, CFX_DATUM_SLICE, 3, "int", depth);
    case 4: return any_sequence(s, v, CFX_DATUM_TUPLE, pick(s, 4), "Any", depth);
    case 5: return any_sequence(s, v, CFX_DATUM_LIST, pick(s, 5), "Any", depth);
    case 6: return any_sequence(s, v, CFX_DATUM_DICT, pick(s, 5), "Any", depth);
    case 7: case 8: return any_number(s);
    default: return any_value(s, v, false);
    }
}

static inline cfx_datum any_one(source *s, const values *v, const char *type, int depth)
{
    if (strncmp(type, "Tensor", 6) == 0)
        return chance(s, 90) ? any_value(s, v, true) : any_number(s);
    if (strncmp(type, "int", 3) == 0)
        return cfx_datum_int(any_int(s));
    if (strncmp(type, "float", 5) == 0)
        return chance(s, 80) ? cfx_datum_float(any_float(s)) : any_number(s);
    if (strncmp(type, "bool", 4) == 0)
        return cfx_datum_bool(pick(s, 2));
    if (strncmp(type, "ScalarType", 10) == 0)
        return cfx_datum_dtype(chance(s, 90) ? any_dtype(s)
                                             : (cfx_dtype)pick(s, CFX_DTYPE_COUNT));
    if (strncmp(type, "Scalar", 6) == 0)
        return chance(s, 85) ? any_number(s) : any_value(s, v, true);
    if (strncmp(type, "str", 3) == 0)
        return any_text(s, v);
    if (strncmp(type, "MemoryFormat", 12) == 0)
        return cfx_datum_scalar(CFX_DATUM_MEMORY_FORMAT, (int64_t)pick(s, 4));
    if (strncmp(type, "Layout", 6) == 0)
        return cfx_datum_scalar(CFX_DATUM_LAYOUT, (int64_t)pick(s, 3));
    if (strncmp(type, "Device", 6) == 0)
        return cfx_datum_from_text(CFX_DATUM_DEVICE, "cpu", 3, v->allocator, NULL);
    if (strncmp(type, "Generator", 9) == 0)
        return cfx_datum_none();
    return any_any(s, v, depth);
}

/* An argument for a parameter of this type; INVALID if memory is out. */
static inline cfx_datum any_arg(source *s, const values *v, const char *type, int depth)
{
    const size_t size = strlen(type);
    const char *bracket = strchr(type, '[');
    if (size && type[size - 1] == '?' && chance(s, 15))
        return cfx_datum_none();
    if (chance(s, 3))
        return any_any(s, v, depth);
    if (!bracket || depth > 2 || chance(s, 15))
        return any_one(s, v, *type == '*' ? type + 1 : type, depth);
    char item[20];
    snprintf(item, sizeof item, "%.*s", (int)(bracket - type), type);
    const size_t n = chance(s, 85) && bracket[1] >= '1' && bracket[1] <= '9'
                         ? (size_t)(bracket[1] - '0')
                         : pick(s, 5);
    return any_sequence(s, v, chance(s, 70) ? CFX_DATUM_LIST : CFX_DATUM_TUPLE, n, item, depth);
}

#endif
