/* triangle.c - triangles and diagonals of matrices. */
#include "runtime/kernels/elementwise/blocks.h"
#include "runtime/view_impl.h"

/* ---- tril, triu ---------------------------------------------------------------------------- */

cfx_status cfxi_rule_triangle(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (x->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "input tensor must have at least 2 dimensions");
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim);
}

/* Of a contiguous matrix, writes zeros to the columns of each row that are not kept. */
static void clear_rows(char *matrix, int64_t rows, int64_t columns, size_t item, int64_t diagonal,
                       bool lower)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
        int64_t cut = lower ? i + at + 1 : i + at;  /* the first column of the upper part */
        cut = cut < 0 ? 0 : cut > columns ? columns : cut;
        char *row = matrix + i * columns * (int64_t)item;
        if (lower)
            memset(row + cut * (int64_t)item, 0, (size_t)(columns - cut) * item);
        else
            memset(row, 0, (size_t)cut * item);
    }
}

static cfx_status triangle(cfxi_call *c, bool lower)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    int64_t diagonal;
    CFX_TRY(cfxi_rt_number(c, 1, &diagonal));
    CFX_TRY(cfxi_rt_copy(c->rt, y, cfxi_rt_tensor(c, 0), c->err));
    int64_t rows = y->size[y->ndim - 2];
    int64_t columns = y->size[y->ndim - 1];
    size_t item = cfxi_tensor_itemsize(y);
    int64_t all = cfxi_tensor_numel(y);
    for (int64_t at = 0; at < all; at += rows * columns)
        clear_rows(y->data + at * (int64_t)item, rows, columns, item, diagonal, lower);
    return CFX_OK;
}

cfx_status cfxi_kernel_tril(cfxi_call *c) { return triangle(c, true); }
cfx_status cfxi_kernel_triu(cfxi_call *c) { return triangle(c, false); }

/* ---- diagonals ----------------------------------------------------------------------------- */

static int64_t magnitude(int64_t i) { return i < 0 ? -i : i; }

/* Writes `x` to the diagonal of the new tensor y, and zeros elsewhere. */
static cfx_status embed(cfxi_call *c, cfx_tensor *y, const cfx_tensor *x, int64_t offset,
                        int64_t dim1, int64_t dim2)
{
    cfxi_view v = cfxi_rt_view_of(y);
    cfx_tensor diagonal;
    memset(y->data, 0, (size_t)cfxi_tensor_numel(y) * cfxi_tensor_itemsize(y));
    CFX_TRY(cfxi_rt_view_diagonal(c, &v, offset, dim1, dim2));
    cfxi_rt_view_borrow(&diagonal, y, &v);
    return cfxi_rt_copy(c->rt, &diagonal, x, c->err);
}

cfx_status cfxi_rule_diag_embed(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t offset;
    size_t a;
    size_t b;
    CFX_TRY(cfxi_rt_number(c, 1, &offset));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), x->ndim + 1u, &a));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 3), x->ndim + 1u, &b));
    if (a == b)
        return cfxi_fail(c, CFX_E_SHAPE, "diagonal dimensions cannot be identical %lld, %lld",
                         (long long)cfxi_rt_int(c, 2), (long long)cfxi_rt_int(c, 3));
    if (x->ndim == 0)
        return cfxi_fail(c, CFX_E_INDEX, "a 0-dim tensor has no last dimension");
    int64_t side = cfx_dim_add(c->dims, v.size[v.ndim - 1], magnitude(offset), c->err);
    v.ndim--;
    CFX_TRY(cfxi_rt_view_insert(c, &v, a < b ? a : b, side, 0));
    CFX_TRY(cfxi_rt_view_insert(c, &v, a < b ? b : a, side, 0));
    return cfxi_rt_result(c, 0, v.dtype, v.size, v.ndim);
}

cfx_status cfxi_kernel_diag_embed(cfxi_call *c)
{
    return embed(c, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, 0), cfxi_rt_int(c, 1),
                 cfxi_rt_int(c, 2), cfxi_rt_int(c, 3));
}

/* Of a vector the matrix with that diagonal, of a matrix its diagonal, copied. */
cfx_status cfxi_rule_diag(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    int64_t offset;
    CFX_TRY(cfxi_rt_number(c, 1, &offset));
    if (x->ndim != 1 && x->ndim != 2)
        return cfxi_fail(c, CFX_E_SHAPE, "diag(): Supports 1D or 2D tensors. Got %uD", x->ndim);
    if (x->ndim == 2) {
        CFX_TRY(cfxi_rt_view_diagonal(c, &v, offset, 0, 1));
        return cfxi_rt_result(c, 0, v.dtype, v.size, 1);
    }
    int64_t side = cfx_dim_add(c->dims, v.size[0], magnitude(offset), c->err);
    return cfxi_rt_result(c, 0, v.dtype, (int64_t[2]){side, side}, 2);
}

cfx_status cfxi_kernel_diag(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfxi_view v = cfxi_rt_view_of(x);
    cfx_tensor diagonal;
    if (x->ndim == 1)
        return embed(c, cfxi_rt_result_at(c, 0), x, cfxi_rt_int(c, 1), 0, 1);
    CFX_TRY(cfxi_rt_view_diagonal(c, &v, cfxi_rt_int(c, 1), 0, 1));
    cfxi_rt_view_borrow(&diagonal, x, &v);
    return cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), &diagonal, c->err);
}

/* ---- fill_diagonal ------------------------------------------------------------------------- */

enum { SELF, VALUE, WRAP };

cfx_status cfxi_rule_fill_diagonal(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    if (x->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "dimensions must larger than 1");
    for (size_t d = 1; x->ndim > 2 && d < x->ndim; d++)
        if (!cfxi_rt_same_size(c, x->size[0], x->size[d]))
            return cfxi_fail(c, CFX_E_SHAPE, "all dimensions of input must be of equal length");
    return cfxi_rt_result_like(c, 0, (cfx_dtype)x->dtype, x);
}

/* Wrapped, the diagonal of a tall matrix begins again, a row below where it ended. */
cfx_status cfxi_kernel_fill_diagonal(cfxi_call *c)
{
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const int64_t rows = y->size[0];
    const int64_t columns = y->size[1];
    const bool wrap = y->ndim == 2 && cfxi_rt_bool(c, WRAP);
    double room[2];
    cfx_tensor header;
    cfx_tensor line = *y;
    const cfx_tensor *value = cfxi_elementwise_as_operand(c->args[VALUE], &header, room);
    CFX_TRY(cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), cfxi_rt_tensor(c, SELF), c->err));
    line.ndim = 1;
    line.stride[0] = 0;
    for (size_t d = 0; d < y->ndim; d++)
        line.stride[0] += y->stride[d];
    for (int64_t first = 0; columns > 0 && first < rows; first += columns + 1) {
        line.data = y->data + first * y->stride[0];
        line.size[0] = rows - first < columns ? rows - first : columns;
        CFX_TRY(cfxi_rt_copy(c->rt, &line, value, c->err));
        if (!wrap)
            break;
    }
    return CFX_OK;
}
