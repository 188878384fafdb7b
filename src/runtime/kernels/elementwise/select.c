/* select.c - elements chosen by a mask, elements that are all the same: where, masked_fill, fill,
 * copy, complex. */
#include "blocks.h"

#include <math.h>

/* ---- choosing ------------------------------------------------------------------------------ */

#define CHOOSE(type)                                                                               \
    for (int64_t i = 0; i < n; i++)                                                                \
        *(type *)(at[0] + i * step[0]) = at[1][i * step[1]]                                        \
                                             ? *(const type *)(at[2] + i * step[2])                \
                                             : *(const type *)(at[3] + i * step[3])

/* By the size of an element (*ctx): its type does not matter. */
static void choose_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    size_t size = *(const size_t *)ctx;
    switch (size) {
    case 1: CHOOSE(uint8_t); break;
    case 2: CHOOSE(uint16_t); break;
    case 4: CHOOSE(uint32_t); break;
    case 8: CHOOSE(uint64_t); break;
    default:
        for (int64_t i = 0; i < n; i++) {
            const char *from = at[1][i * step[1]] ? at[2] + i * step[2] : at[3] + i * step[3];
            memmove(at[0] + i * step[0], from, size);
        }
    }
}

/* `t` (retained) if it has that type, else a copy that has. */
static cfx_tensor *in_type(cfxi_call *c, const cfx_tensor *t, cfx_dtype dtype)
{
    return cfx_tensor_dtype(t) == dtype ? cfx_tensor_retain((cfx_tensor *)t)
                                : cfxi_rt_contiguous(c, t, dtype);
}

/* The result is `yes` where the mask is set, else `no`. */
static cfx_status choose(cfxi_call *c, const cfx_tensor *mask, const cfx_tensor *yes,
                         const cfx_tensor *no)
{
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    size_t size = cfxi_tensor_itemsize(out);
    cfx_tensor *a = in_type(c, yes, cfx_tensor_dtype(out));
    cfx_tensor *b = a ? in_type(c, no, cfx_tensor_dtype(out)) : NULL;
    if (b) {
        const cfx_tensor *operands[4] = {out, mask, a, b};
        cfxi_rt_loop(c->rt, operands, 4, 32768, choose_row, &size);
    }
    cfx_status status = b ? CFX_OK : c->err->status;
    cfx_tensor_release(a);
    cfx_tensor_release(b);
    return status;
}

static bool is_mask(const cfx_tensor *t)
{
    return t->dtype == CFX_DTYPE_BOOL || t->dtype == CFX_DTYPE_UINT8;
}

cfx_status cfxi_rule_where(cfxi_call *c)
{
    const cfx_tensor *args[3] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 2)};
    if (!is_mask(args[0]))
        return cfxi_fail(c, CFX_E_SHAPE, "where expected condition to be a boolean tensor, but got "
                         "a tensor with dtype %s", cfx_dtype_name(cfx_tensor_dtype(args[0])));
    cfx_dtype common = cfxi_tensor_promote(args + 1, 2);
    cfx_tensor converted[2];  /* headers: PyTorch looks at the layout that a converted one has */
    for (size_t k = 1; k < 3; k++) {
        if (cfx_tensor_dtype(args[k]) == common || !args[k]->storage)
            continue;
        CFX_TRY(cfxi_rt_result_like(c, 0, common, args[k]));
        converted[k - 1] = *cfxi_rt_result_at(c, 0);
        converted[k - 1].storage = args[k]->storage;
        args[k] = &converted[k - 1];
    }
    return cfxi_rt_result_broadcast(c, 0, common, args, 3);
}

cfx_status cfxi_kernel_where(cfxi_call *c)
{
    return choose(c, cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 2));
}

/* A number may be written to a tensor of any type but a complex one to a real type. */
static cfx_status check_value(cfxi_call *c, const cfx_tensor *self, const cfx_tensor *value)
{
    if (cfx_dtype_is_complex(cfx_tensor_dtype(value)) &&
        !cfx_dtype_is_complex(cfx_tensor_dtype(self)))
        return cfxi_fail(c, CFX_E_SHAPE, "value cannot be converted to type %s without overflow",
                         cfx_dtype_name(cfx_tensor_dtype(self)));
    return CFX_OK;
}

/* A known number must fit, too. */
static cfx_status check_fits(cfxi_call *c, const cfx_tensor *self, const cfx_tensor *value)
{
    return cfxi_elementwise_check_fits(
        c, cfx_tensor_dtype(self), cfxi_tensor_load_float(cfx_tensor_dtype(value), value->data));
}

cfx_status cfxi_rule_masked_fill(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    const cfx_tensor *value = cfxi_rt_tensor(c, 2);
    if (both[1]->dtype != CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                         cfx_dtype_name(cfx_tensor_dtype(both[1])));
    if (value->ndim > 0)
        return cfxi_fail(c, CFX_E_SHAPE, "masked_fill_ only supports a 0-dimensional value tensor, "
                         "but got tensor with %u dimension(s).", value->ndim);
    CFX_TRY(check_value(c, both[0], value));
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));  /* contiguous, whatever `self` is */
    return cfxi_rt_result(c, 0, cfx_tensor_dtype(both[0]), sizes, ndim);
}

cfx_status cfxi_kernel_masked_fill(cfxi_call *c)
{
    CFX_TRY(check_fits(c, cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 2)));
    return choose(c, cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 2), cfxi_rt_tensor(c, 0));
}

/* ---- all the same -------------------------------------------------------------------------- */

cfx_status cfxi_rule_fill(cfxi_call *c)
{
    const cfx_tensor *self = cfxi_rt_tensor(c, 0);
    const cfx_tensor *value = cfxi_rt_tensor(c, 1);
    if (value->ndim > 0)
        return cfxi_fail(c, CFX_E_SHAPE, "fill_ only supports 0-dimension value tensor but got "
                         "tensor with %u dimensions.", value->ndim);
    CFX_TRY(check_value(c, self, value));
    return cfxi_rt_result_like(c, 0, cfx_tensor_dtype(self), self);
}

cfx_status cfxi_kernel_fill(cfxi_call *c)
{
    CFX_TRY(check_fits(c, cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)));
    return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 1), c->err);
}

cfx_status cfxi_rule_same(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    return cfxi_rt_result_like(c, 0, cfx_tensor_dtype(x), x);
}

cfx_status cfxi_kernel_zero(cfxi_call *c)
{
    int64_t none = 0;
    cfx_tensor zero = {.dtype = CFX_DTYPE_INT64, .data = (char *)&none};
    return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), &zero, c->err);
}

/* ---- copies -------------------------------------------------------------------------------- */

cfx_status cfxi_rule_copy(cfxi_call *c)
{
    const cfx_tensor *self = cfxi_rt_tensor(c, 0);
    const cfx_tensor *src = cfxi_rt_tensor(c, 1);
    bool fits = src->ndim <= self->ndim;
    for (size_t d = 0; fits && d < src->ndim; d++) {
        int64_t size = self->size[d + self->ndim - src->ndim];
        fits = cfxi_rt_broadcasts(c, src->size[d], size);
    }
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "the source cannot be broadcast to the shape of the "
                         "target");
    return cfxi_rt_result_like(c, 0, cfx_tensor_dtype(self), self);
}

cfx_status cfxi_kernel_copy(cfxi_call *c)
{
    return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 1), c->err);
}

/* ---- complex numbers of two parts ---------------------------------------------------------- */

cfx_status cfxi_rule_complex(cfxi_call *c)
{
    const cfx_tensor *both[2] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    cfx_dtype part = cfx_tensor_dtype(both[0]);
    if (part != CFX_DTYPE_FLOAT32 && part != CFX_DTYPE_FLOAT64)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Expected both inputs to be Half, Float or Double tensors but got %s and "
                         "%s", cfx_dtype_name(part), cfx_dtype_name(cfx_tensor_dtype(both[1])));
    if (cfx_tensor_dtype(both[1]) != part)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected object of scalar type %s but got scalar type %s "
                         "for second argument", cfx_dtype_name(part),
                         cfx_dtype_name(cfx_tensor_dtype(both[1])));
    cfx_dtype whole = part == CFX_DTYPE_FLOAT32 ? CFX_DTYPE_COMPLEX64 : CFX_DTYPE_COMPLEX128;
    return cfxi_rt_result_broadcast(c, 0, whole, both, 2);
}

cfx_status cfxi_kernel_complex(cfxi_call *c)
{
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    for (size_t k = 0; k < 2; k++) {
        cfx_tensor part = *out;  /* the real parts, then the imaginary ones, as a tensor */
        part.dtype = (uint8_t)cfxi_elementwise_real_of(cfx_tensor_dtype(out));
        part.data += k * cfxi_tensor_itemsize(&part);
        CFX_TRY(cfxi_rt_copy(c->rt, &part, cfxi_rt_tensor(c, k), c->err));
    }
    return CFX_OK;
}

/* n numbers of a length and an angle each, step[] bytes apart. */
static void polar_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const cfx_tensor *const *t = ctx;
    const cfx_dtype to = cfx_tensor_dtype(t[0]);
    const cfx_dtype from = cfx_tensor_dtype(t[1]);
    for (int64_t i = 0; i < n; i++) {
        const double length = cfxi_tensor_load_float(from, at[1] + i * step[1]);
        const double angle = cfxi_tensor_load_float(from, at[2] + i * step[2]);
        const double parts[2] = {length * cos(angle), length * sin(angle)};
        cfxi_tensor_store_complex(to, at[0] + i * step[0], parts);
    }
}

cfx_status cfxi_kernel_polar(cfxi_call *c)
{
    const cfx_tensor *t[] = {cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    cfxi_rt_loop(c->rt, t, 3, 1024, polar_row, (void *)t);
    return CFX_OK;
}
