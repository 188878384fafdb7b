/* grouped.c - products of several pairs of matrices: mixtures of experts.
 *
 * A factor of three dimensions has a matrix for each group. One of two dimensions holds the
 * matrices of all groups side by side, and offs[g] is where that of group g ends:
 *
 *   a [rows, k]      b [groups, k, n]   rows of a are split        out [rows, n]
 *   a [groups, m, k] b [k, columns]     columns of b are split     out [m, columns]
 *   a [m, k]         b [k, n]           k of both is split         out [groups, m, n]
 *   a [groups, m, k] b [groups, k, n]   nothing is, without offs   out [groups, m, n]
 *
 * What lies behind the last offset is in no group: its part of the result is 0 (PyTorch leaves it
 * undefined). PyTorch wants row strides in multiples of 16 bytes; these kernels take any.
 */
#include "product_impl.h"
#include "runtime/runtime_impl.h"

enum { A, B, OFFS, BIAS, OUT_DTYPE };

static const cfxi_factors one = {.alpha = {1, 0}};

/* ---- rules --------------------------------------------------------------------------------- */

cfx_status cfxi_rule_grouped_mm_fallback(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, A);
    const cfx_tensor *w = cfxi_rt_tensor(c, B);
    const cfx_tensor *offs = cfxi_rt_tensor(c, OFFS);
    if (x->ndim != 2 || w->ndim != 3 || offs->ndim != 1 ||
        !cfxi_rt_same_size(c, x->size[1], w->size[1]) ||
        !cfxi_rt_same_size(c, offs->size[0], w->size[0]) || x->dtype != w->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "grouped matrices: expected [rows, k], [groups, k, n] "
                         "with the same dtype and one offset per group");
    if (x->dtype == CFX_DTYPE_BOOL)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "matrix products are not implemented for bool");
    const int64_t sizes[] = {x->size[0], w->size[2]};
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, 2);
}

static cfx_status check_types(cfxi_call *c, const cfx_tensor *a, const cfx_tensor *b)
{
    cfx_dtype type = (cfx_dtype)a->dtype;
    if (type != CFX_DTYPE_FLOAT32 && type != CFX_DTYPE_BFLOAT16 && type != CFX_DTYPE_FLOAT16)
        return cfxi_fail(c, CFX_E_SHAPE, "expected mat_a to be a float32, bfloat16 or float16 "
                         "matrix, got %s", cfx_dtype_name(type));
    if (a->dtype != b->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "expected mat_a and mat_b to have the same dtype, but "
                         "got %s and %s", cfx_dtype_name(type),
                         cfx_dtype_name((cfx_dtype)b->dtype));
    if (cfxi_rt_dtype_or(c, OUT_DTYPE, type) != type)
        return cfxi_fail(c, CFX_E_SHAPE, "the output dtype must match the dtype of mat_a");
    if (!cfxi_rt_is_none(c, BIAS))
        return cfxi_fail(c, CFX_E_SHAPE, "bias is not supported yet");
    return CFX_OK;
}

/* That there are offsets where there is something to split. */
static cfx_status check_offsets(cfxi_call *c, bool split)
{
    const cfx_tensor *offs = cfxi_rt_tensor(c, OFFS);
    if (split != (offs != NULL))
        return cfxi_fail(c, CFX_E_SHAPE, "have to provide offsets if there is a 2d matrix, or no "
                         "offset if both matrices are 3d");
    if (offs && offs->ndim != 1)
        return cfxi_fail(c, CFX_E_SHAPE, "offs has to be 1D");
    if (offs && offs->dtype != CFX_DTYPE_INT32)
        return cfxi_fail(c, CFX_E_SHAPE, "offsets have to be int32");
    return CFX_OK;
}

cfx_status cfxi_rule_grouped_mm(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, A);
    const cfx_tensor *b = cfxi_rt_tensor(c, B);
    const cfx_tensor *offs = cfxi_rt_tensor(c, OFFS);
    if (a->ndim < 2 || a->ndim > 3 || b->ndim < 2 || b->ndim > 3)
        return cfxi_fail(c, CFX_E_SHAPE, "mat_%c has to be 2 or 3d",
                         a->ndim < 2 || a->ndim > 3 ? 'a' : 'b');
    CFX_TRY(check_types(c, a, b));
    if (!cfxi_rt_same_size(c, a->size[a->ndim - 1], b->size[b->ndim - 2]))
        return cfxi_fail(c, CFX_E_SHAPE, "contraction dimension of mat_a and mat_b must match");
    CFX_TRY(check_offsets(c, a->ndim == 2 || b->ndim == 2));
    int64_t groups = offs ? offs->size[0] : a->size[0];
    if ((a->ndim == 3 && !cfxi_rt_same_size(c, a->size[0], groups)) ||
        (b->ndim == 3 && !cfxi_rt_same_size(c, b->size[0], groups)))
        return cfxi_fail(c, CFX_E_SHAPE, "matrix batch sizes have to match");
    const int64_t sizes[] = {groups, a->size[a->ndim - 2], b->size[b->ndim - 1]};
    bool whole = a->ndim == b->ndim;
    return cfxi_rt_result(c, 0, (cfx_dtype)a->dtype, whole ? sizes : sizes + 1, whole ? 3 : 2);
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* Elements [from, to) of dimension `dim`. */
static void narrow(cfx_tensor *t, size_t dim, int64_t from, int64_t to)
{
    t->data += from * t->stride[dim];
    t->size[dim] = to - from;
}

/* Matrix `g` of three dimensions. */
static void pick(cfx_tensor *t, int64_t g)
{
    t->data += g * t->stride[0];
    t->ndim = 2;
    for (size_t d = 0; d < 2; d++) {
        t->size[d] = t->size[d + 1];
        t->stride[d] = t->stride[d + 1];
    }
}

/* The part of group g, which goes from `first` to `end` where there is a split. */
static cfx_status multiply_group(cfxi_call *c, int64_t g, int64_t first, int64_t end)
{
    cfx_tensor a = cfxi_linalg_shown(cfxi_rt_tensor(c, A));
    cfx_tensor b = cfxi_linalg_shown(cfxi_rt_tensor(c, B));
    cfx_tensor out = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    bool inner = a.ndim == 2 && b.ndim == 2;
    if (out.ndim == 3)
        pick(&out, g);
    else
        narrow(&out, a.ndim == 2 ? 0 : 1, first, end);
    if (a.ndim == 3)
        pick(&a, g);
    else
        narrow(&a, inner ? 1 : 0, first, end);
    if (b.ndim == 3)
        pick(&b, g);
    else
        narrow(&b, inner ? 0 : 1, first, end);
    return cfxi_linalg_product(c, &out, &a, &b, &one);
}

cfx_status cfxi_kernel__grouped_mm(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, A);
    const cfx_tensor *b = cfxi_rt_tensor(c, B);
    const cfx_tensor *offs = cfxi_rt_tensor(c, OFFS);
    const cfx_tensor *out = cfxi_rt_result_at(c, 0);
    if (!offs)
        return cfxi_linalg_product(c, cfxi_rt_result_at(c, 0), a, b, &one);
    const int64_t length = a->ndim == 3 ? b->size[1] : a->size[b->ndim == 3 ? 0 : 1];
    int64_t first = 0;
    if (cfxi_tensor_numel(out) > 0)
        memset(out->data, 0, (size_t)cfxi_tensor_numel(out) * cfxi_tensor_itemsize(out));
    for (int64_t g = 0; g < offs->size[0]; g++) {
        int64_t end =
            cfxi_tensor_load_int((cfx_dtype)offs->dtype, offs->data + g * offs->stride[0]);
        if (end < first || end > length)
            return cfxi_fail(c, CFX_E_SHAPE, "offs[%lld] is %lld; offsets must not decrease or "
                             "exceed the %lld rows or columns that are split", (long long)g,
                             (long long)end, (long long)length);
        CFX_TRY(multiply_group(c, g, first, end));
        first = end;
    }
    return CFX_OK;
}

/* Its three arguments are the first three of _grouped_mm. */
cfx_status cfxi_kernel_grouped_mm_fallback(cfxi_call *c)
{
    return cfxi_kernel__grouped_mm(c);
}
