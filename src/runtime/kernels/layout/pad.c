/* pad.c - padding of any type: along each dimension, a list of the places that the result takes. */
#include "runtime/spatial.h"
#include "runtime/view_impl.h"

#include <cfx/embed/dim.h>

typedef enum mode { CONSTANT, REFLECT, REPLICATE, CIRCULAR } mode;

/* ---- rules --------------------------------------------------------------------------------- */

typedef struct arguments {
    mode mode;
    const cfx_tensor *x;
    int64_t before[CFX_MAX_DIMS];
    int64_t after[CFX_MAX_DIMS];
    size_t padded;  /* dimensions that the list names, the last ones */
} arguments;

static cfx_status read_mode(cfxi_call *c, arguments *a)
{
    static const char *const names[] = {"constant", "reflect", "replicate", "circular"};
    const char *name = c->op == CFX_OPID_pad ? cfxi_rt_str(c, 2) : names[0];
    for (size_t i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0) {
            a->mode = (mode)i;
            if (i && !cfxi_rt_is_none(c, 3) && cfxi_rt_float(c, 3) != 0)
                return cfxi_fail(c, CFX_E_SHAPE, "Padding mode \"%s\" doesn't take in value "
                                 "argument", name);
            return CFX_OK;
        }
    return cfxi_fail(c, CFX_E_UNSUPPORTED, "Unrecognised padding mode %.40s", name);
}

/* The list begins with the last dimension: before, after. */
static cfx_status read_padding(cfxi_call *c, arguments *a)
{
    size_t n;
    const cfx_datum *list = cfx_datum_items(c->args[1], &n);
    size_t ndim = a->x->ndim;
    memset(a->before, 0, sizeof a->before);
    memset(a->after, 0, sizeof a->after);
    if (n % 2 != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "Padding length must be divisible by 2");
    a->padded = n / 2;
    if (a->padded > ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "Padding length should be less than or equal to two times "
                         "the input dimension but got padding length %zu and input of dimension "
                         "%zu", n, ndim);
    for (size_t i = 0; i < a->padded; i++) {
        a->before[ndim - 1 - i] = list[2 * i].as.i;
        a->after[ndim - 1 - i] = list[2 * i + 1].as.i;
    }
    if (a->mode == CONSTANT)
        return CFX_OK;
    if (a->padded == 0 || a->padded > 3 || (ndim != a->padded + 1 && ndim != a->padded + 2))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "Padding size %zu is not supported for %zuD input "
                         "tensor with non-constant padding", n, ndim);
    if (a->x->dtype == CFX_DTYPE_BOOL && a->mode != CIRCULAR)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for 'Bool'");
    return CFX_OK;
}

static bool is_more(cfxi_call *c, int64_t a, int64_t b)
{
    return cfx_dim_compare_lt(c->dims, b, a) == 1;
}

/* Whether a side takes more than there is after negative padding has cut the other. */
static bool wraps_twice(cfxi_call *c, const arguments *a, size_t d)
{
    const int64_t sides[] = {a->before[d], a->after[d]};
    int64_t left = a->x->size[d];
    for (size_t i = 0; i < 2; i++)
        if (sides[i] < 0 && sides[i] > CFX_DIM_UNKNOWN)
            left = cfx_dim_add(c->dims, left, sides[i], c->err);
    return is_more(c, a->before[d], left) || is_more(c, a->after[d], left);
}

static cfx_status check_dimension(cfxi_call *c, const arguments *a, size_t d)
{
    int64_t size = a->x->size[d];
    if (a->mode != CONSTANT && a->mode != CIRCULAR && size == 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Expected a tensor with possibly 0 batch size and other "
                         "non-zero dimensions for input, but got: [%s]",
                         cfxi_rt_shape_of(a->x).text);
    if (a->mode == REFLECT &&
        (!is_more(c, size, a->before[d]) || !is_more(c, size, a->after[d])) &&
        !cfx_dim_is_symbol(size))
        return cfxi_fail(c, CFX_E_SHAPE, "Padding size should be less than the corresponding input "
                         "dimension, but got: padding (%lld, %lld) at dimension %zu of input [%s]",
                         (long long)a->before[d], (long long)a->after[d], d,
                         cfxi_rt_shape_of(a->x).text);
    if (a->mode == CIRCULAR && wraps_twice(c, a, d))
        return cfxi_fail(c, CFX_E_SHAPE, "Padding value causes wrapping around more than once.");
    return CFX_OK;
}

static cfx_status read_arguments(cfxi_call *c, arguments *a)
{
    a->x = cfxi_rt_tensor(c, 0);
    CFX_TRY(read_mode(c, a));
    return read_padding(c, a);
}

/* Then PyTorch copies a part of it, in the order of its strides. */
static bool adds_nothing(const arguments *a)
{
    bool nothing = a->mode == CONSTANT;
    for (size_t d = 0; nothing && d < a->x->ndim; d++)
        nothing = a->before[d] <= 0 && a->before[d] > CFX_DIM_UNKNOWN && a->after[d] <= 0 &&
                  a->after[d] > CFX_DIM_UNKNOWN;
    return nothing;
}

cfx_status cfxi_rule_pad(cfxi_call *c)
{
    arguments a;
    int64_t sizes[CFX_MAX_DIMS];
    CFX_TRY(read_arguments(c, &a));
    for (size_t d = 0; d < a.x->ndim; d++) {
        int64_t all = cfx_dim_add(c->dims, a.before[d], a.after[d], c->err);
        if (d + a.padded >= a.x->ndim)
            CFX_TRY(check_dimension(c, &a, d));
        sizes[d] = a.x->size[d] == CFX_DIM_UNKNOWN
                       ? CFX_DIM_UNKNOWN : cfx_dim_add(c->dims, a.x->size[d], all, c->err);
        if (sizes[d] < 0 && !cfx_dim_is_symbol(sizes[d]) && a.x->size[d] != CFX_DIM_UNKNOWN)
            return cfxi_fail(c, CFX_E_SHAPE, "Negative padding value is resulting in a negative "
                             "size at dimension %zu: padding (%lld, %lld) of input [%s]", d,
                             (long long)a.before[d], (long long)a.after[d],
                             cfxi_rt_shape_of(a.x).text);
    }
    if (adds_nothing(&a)) {
        cfx_tensor part = *a.x;  /* a header */
        memcpy(part.size, sizes, a.x->ndim * sizeof *sizes);
        return cfxi_rt_result_like(c, 0, (cfx_dtype)a.x->dtype, &part);
    }
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)a.x->dtype, sizes, a.x->ndim));
    if (a.mode != CIRCULAR && cfxi_rt_prefers_channels_last(a.x))
        cfxi_rt_result_channels_last(c, 0);
    return CFX_OK;
}

/* ---- computing ----------------------------------------------------------------------------- */

/* The place of the input that place `o` takes; -1: the constant. */
static int64_t source(const arguments *a, size_t d, int64_t o)
{
    int64_t n = a->x->size[d];
    int64_t at = o - a->before[d];
    if (at >= 0 && at < n)
        return at;
    switch (a->mode) {
    case CONSTANT: return -1;
    case REFLECT: return at < 0 ? -at : 2 * (n - 1) - at;
    case REPLICATE: return at < 0 ? 0 : n - 1;
    case CIRCULAR: break;
    }
    /* What wraps around is the image after negative padding has cut it. */
    int64_t cut_before = a->before[d] < 0 ? -a->before[d] : 0;
    int64_t cut_after = a->after[d] < 0 ? -a->after[d] : 0;
    int64_t left = n - cut_before - cut_after;
    return at < 0 ? at + n - cut_after - cut_before : cut_before + (at - cut_before - left);
}

static void set_value(cfxi_call *c, cfx_dtype type, char *value)
{
    cfx_datum d = c->op == CFX_OPID_pad ? c->args[3] : c->args[2];
    memset(value, 0, 16);
    if (d.kind == CFX_DATUM_COMPLEX)
        cfxi_tensor_store_complex(type, value, d.as.c);
    else if (d.kind == CFX_DATUM_INT)
        cfxi_tensor_store_int(type, value, d.as.i);
    else if (d.kind != CFX_DATUM_NONE && d.kind != CFX_DATUM_INVALID)
        cfxi_tensor_store_float(type, value, cfxi_rt_scalar(c, c->op == CFX_OPID_pad ? 3 : 2));
}

/* A plan may have let the input be written where it belongs in the result. */
static bool is_in_place(const arguments *a, const cfx_tensor *y)
{
    int64_t offset = 0;
    for (size_t d = 0; d < y->ndim; d++) {
        if (a->before[d] < 0 || a->after[d] < 0 ||
            (y->size[d] > 1 && a->x->size[d] > 1 && a->x->stride[d] != y->stride[d]))
            return false;
        offset += a->before[d] * y->stride[d];
    }
    return a->mode == CONSTANT && a->x->dtype == y->dtype && a->x->data == y->data + offset &&
           cfxi_tensor_numel(a->x) > 0;
}

/* Writes what is around it: before and after it along each dimension, as far as the dimensions
 * before that have not done so. */
static cfx_status fill_border(cfxi_call *c, const arguments *a, cfx_tensor *y, const char *value)
{
    cfxi_view v = cfxi_rt_view_of(y);
    cfxi_storage memory = {.data = (char *)value, .size = 16};
    const cfx_tensor constant = {.dtype = y->dtype, .storage = &memory, .data = (char *)value};
    for (size_t d = 0; d < y->ndim; d++) {
        const int64_t sides[] = {a->before[d], a->after[d]};
        const int64_t begins[] = {0, a->before[d] + a->x->size[d]};
        const int64_t offset = v.offset;
        for (size_t i = 0; i < 2; i++) {
            cfx_tensor side;
            v.size[d] = sides[i];
            v.offset = offset + begins[i] * v.stride[d];
            cfxi_rt_view_borrow(&side, y, &v);
            CFX_TRY(cfxi_rt_copy(c->rt, &side, &constant, c->err));
        }
        v.size[d] = a->x->size[d];
        v.offset = offset + a->before[d] * v.stride[d];
    }
    return CFX_OK;
}

static cfx_status compute(cfxi_call *c)
{
    arguments a;
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    char value[16];
    int64_t *map[CFX_MAX_DIMS];
    CFX_TRY(read_arguments(c, &a));
    if (cfxi_tensor_numel(y) == 0)
        return CFX_OK;
    if (is_in_place(&a, y)) {
        set_value(c, (cfx_dtype)y->dtype, value);
        return fill_border(c, &a, y, value);
    }
    int64_t *room = cfxi_rt_places_new(c, map);
    if (!room)
        return cfxi_base_nomem(c->err);
    for (size_t d = 0; d < y->ndim; d++)
        for (int64_t o = 0; o < y->size[d]; o++)
            map[d][o] = source(&a, d, o);
    set_value(c, (cfx_dtype)y->dtype, value);
    cfxi_rt_places_take(c->rt, y, a.x, map, value);
    cfxi_rt_scratch_free(c->rt, room);
    return CFX_OK;
}

cfx_status cfxi_kernel_pad(cfxi_call *c) { return compute(c); }
cfx_status cfxi_kernel_constant_pad_nd(cfxi_call *c) { return compute(c); }
