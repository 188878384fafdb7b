/* view.c - views, step by step. */
#include "view_impl.h"

#include <cfx/embed/dim.h>

#include <stdio.h>

cfxi_view cfxi_rt_view_of(const cfx_tensor *t)
{
    cfxi_view v = {.dtype = (cfx_dtype)t->dtype, .ndim = t->ndim};
    memcpy(v.size, t->size, sizeof v.size);
    memcpy(v.stride, t->stride, sizeof v.stride);
    return v;
}

cfx_status cfxi_rt_view_result(cfxi_call *c, size_t i, const cfx_tensor *base, const cfxi_view *v)
{
    CFX_TRY(cfxi_rt_result(c, i, v->dtype, v->size, v->ndim));
    if (c->infer || !base->storage)
        return CFX_OK;
    return cfxi_rt_result_view(c, i, base, v->stride, v->offset);
}

cfx_tensor *cfxi_rt_view_tensor(cfxi_call *c, const cfx_tensor *base, const cfxi_view *v)
{
    cfx_tensor *t = cfxi_tensor_header(v->dtype, v->size, v->ndim, c->rt->allocator, c->err);
    if (!t || c->infer || !base->storage)
        return t;
    memcpy(t->stride, v->stride, sizeof t->stride);
    if (cfxi_tensor_share(t, base, v->offset, c->err) == CFX_OK)
        return t;
    cfx_tensor_release(t);
    return NULL;
}

void cfxi_rt_view_borrow(cfx_tensor *t, const cfx_tensor *base, const cfxi_view *v)
{
    *t = (cfx_tensor){
        .dtype = (uint8_t)v->dtype,
        .ndim = (uint8_t)v->ndim,
        .storage = base->storage,
        .data = base->data + v->offset,
        .allocator = base->allocator,
    };
    memcpy(t->size, v->size, sizeof t->size);
    memcpy(t->stride, v->stride, sizeof t->stride);
}

/* ---- messages ------------------------------------------------------------------------------ */

const char *cfxi_rt_sizes_text(const int64_t *sizes, size_t n, char out[CFXI_SIZES_TEXT])
{
    size_t used = 1;
    out[0] = '[';
    for (size_t i = 0; i < n && used < CFXI_SIZES_TEXT - 32; i++) {
        const char *comma = i ? ", " : "";
        used += (size_t)(cfx_dim_is_symbol(sizes[i])
                             ? snprintf(out + used, CFXI_SIZES_TEXT - used, "%s?", comma)
                             : snprintf(out + used, CFXI_SIZES_TEXT - used, "%s%lld", comma,
                                        (long long)sizes[i]));
    }
    out[used] = ']';
    out[used + 1] = '\0';
    return out;
}

cfx_status cfxi_rt_check_device(cfxi_call *c, size_t i)
{
    const char *name = cfxi_rt_str(c, i);
    if (cfxi_rt_is_none(c, i) || (name && (strcmp(name, "cpu") == 0 || strcmp(name, "cpu:0") == 0)))
        return CFX_OK;
    return cfxi_fail(c, CFX_E_UNSUPPORTED, "cfx computes on the CPU, not on '%.40s'",
                     name ? name : "another device");
}

cfx_datum cfxi_rt_size_datum(int64_t size)
{
    cfx_datum d = cfx_datum_int(size);
    d.symbolic = cfx_dim_is_symbol(size) || size == CFX_DIM_UNKNOWN;
    return d;
}

int64_t cfxi_rt_numel_dim(cfxi_call *c, const int64_t *sizes, size_t ndim)
{
    int64_t n = 1;
    for (size_t i = 0; i < ndim; i++)
        if (sizes[i] == 0)
            return 0;
    for (size_t i = 0; i < ndim; i++)
        n = cfx_dim_mul(c->dims, n, sizes[i], c->err);
    return n;
}

/* ---- single dimensions --------------------------------------------------------------------- */

void cfxi_rt_view_remove(cfxi_view *v, size_t at)
{
    v->ndim--;
    for (size_t i = at; i < v->ndim; i++) {
        v->size[i] = v->size[i + 1];
        v->stride[i] = v->stride[i + 1];
    }
}

cfx_status cfxi_rt_view_insert(cfxi_call *c, cfxi_view *v, size_t at, int64_t size, int64_t stride)
{
    if (v->ndim == CFX_MAX_DIMS)
        return cfxi_fail(c, CFX_E_SHAPE, "the tensor would have %zu dimensions; cfx supports up to "
                         "%d",
                         v->ndim + 1, CFX_MAX_DIMS);
    for (size_t i = v->ndim++; i > at; i--) {
        v->size[i] = v->size[i - 1];
        v->stride[i] = v->stride[i - 1];
    }
    v->size[at] = size;
    v->stride[at] = stride;
    return CFX_OK;
}

void cfxi_rt_view_swap(cfxi_view *v, size_t a, size_t b)
{
    int64_t size = v->size[a];
    int64_t stride = v->stride[a];
    v->size[a] = v->size[b];
    v->stride[a] = v->stride[b];
    v->size[b] = size;
    v->stride[b] = stride;
}

/* Whether index -count, ..., count - 1 is one of `size`; of symbols it is assumed. */
static bool index_fits(cfxi_call *c, int64_t index, int64_t size)
{
    if (cfx_dim_is_symbol(index) || size == CFX_DIM_UNKNOWN)
        return true;
    if (cfx_dim_is_symbol(size))
        return cfx_dim_expect_le(c->dims, index < 0 ? -index : index + 1, size);
    return index >= -size && index < size;
}

cfx_status cfxi_rt_view_select(cfxi_call *c, cfxi_view *v, size_t dim, int64_t index)
{
    char text[CFXI_SIZES_TEXT];
    if (v->ndim == 0)
        return cfxi_fail(c, CFX_E_INDEX, "select() cannot be applied to a 0-dim tensor.");
    if (!index_fits(c, index, v->size[dim]))
        return cfxi_fail(c, CFX_E_INDEX,
                         "select(): index %lld out of range for tensor of size %s at dimension %zu",
                         (long long)index, cfxi_rt_sizes_text(v->size, v->ndim, text), dim);
    int64_t from_start = index < 0 && v->size[dim] >= 0 ? index + v->size[dim] : index;
    v->offset += cfxi_rt_wrap_mul(from_start, v->stride[dim]);
    cfxi_rt_view_remove(v, dim);
    return CFX_OK;
}

/* A bound of a slice, counted from the end if negative, brought into [0, size]. */
static int64_t clamp_bound(cfxi_call *c, int64_t at, int64_t size)
{
    if (size == CFX_DIM_UNKNOWN)
        return at == 0 ? 0 : CFX_DIM_UNKNOWN;
    if (!cfx_dim_is_symbol(at) && !cfx_dim_is_symbol(size)) {
        if (at < 0)
            at += size;
        return at < 0 ? 0 : at > size ? size : at;
    }
    if (at == INT64_MAX)
        return size;
    const int negative = cfx_dim_compare_lt(c->dims, at, 0);
    if (negative < 0)  /* nobody knows from which end it counts */
        return cfxi_rt_fresh(c);
    if (negative)
        return cfx_dim_max(c->dims, cfx_dim_add(c->dims, size, at, c->err), 0, c->err);
    return cfx_dim_min(c->dims, at, size, c->err);
}

/* How many steps fit between the bounds. */
static int64_t slice_length(cfxi_call *c, int64_t start, int64_t end, int64_t step)
{
    if (start == CFX_DIM_UNKNOWN || end == CFX_DIM_UNKNOWN)
        return CFX_DIM_UNKNOWN;
    if (!cfx_dim_is_symbol(start) && !cfx_dim_is_symbol(end) && !cfx_dim_is_symbol(step))
        return end <= start ? 0 : (end - start - 1) / step + 1;
    int64_t length = cfx_dim_sub(c->dims, end, start, c->err);
    if (step != 1) {
        int64_t more = cfx_dim_sub(c->dims, step, 1, c->err);
        length = cfx_dim_div(c->dims, cfx_dim_add(c->dims, length, more, c->err), step, c->err);
    }
    return cfx_dim_max(c->dims, length, 0, c->err);
}

cfx_status cfxi_rt_view_slice(cfxi_call *c, cfxi_view *v, size_t dim, int64_t start, int64_t end,
                              int64_t step)
{
    start = clamp_bound(c, start, v->size[dim]);
    end = clamp_bound(c, end, v->size[dim]);
    v->offset += cfxi_rt_wrap_mul(start, v->stride[dim]);
    v->size[dim] = slice_length(c, start, end, step);
    v->stride[dim] = cfxi_rt_wrap_mul(v->stride[dim], step);
    return c->err->status;
}

/* ---- expanding ----------------------------------------------------------------------------- */

cfx_status cfxi_rt_view_expand(cfxi_call *c, cfxi_view *v, const int64_t *sizes, size_t n)
{
    char wanted[CFXI_SIZES_TEXT];
    char given[CFXI_SIZES_TEXT];
    if (n < v->ndim)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "the number of sizes provided (%zu) must be greater or equal to the "
                         "number of dimensions in the tensor (%zu)", n, v->ndim);
    size_t more = n - v->ndim;
    cfxi_view old = *v;
    v->ndim = n;
    for (size_t i = 0; i < n; i++) {
        int64_t size = sizes[i];
        if (size == -1 && i < more)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "The expanded size of the tensor (-1) isn't allowed in a leading, "
                             "non-existing dimension %zu", i);
        int64_t own = i < more ? 1 : old.size[i - more];
        bool keep = size == -1 || (own != 1 && cfxi_rt_broadcasts(c, own, size));
        if (!keep && own != 1)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "The expanded size of the tensor (%lld) must match the existing size "
                             "(%lld) at non-singleton dimension %zu.  Target sizes: %s.  Tensor "
                             "sizes: %s", (long long)size, (long long)own, i,
                             cfxi_rt_sizes_text(sizes, n, wanted),
                             cfxi_rt_sizes_text(old.size, old.ndim, given));
        v->size[i] = size == -1 ? own : size;
        v->stride[i] = i < more || (own == 1 && size != 1 && !keep) ? 0 : old.stride[i - more];
    }
    return CFX_OK;
}

/* ---- reshaping ----------------------------------------------------------------------------- */

/* Elements that follow each other at one distance. */
typedef struct run {
    int64_t count;
    int64_t stride;
} run;

/* The dimensions, innermost first, those joined that can be walked as one. */
static size_t find_runs(const cfxi_view *v, run runs[CFX_MAX_DIMS])
{
    size_t n = 0;
    for (size_t i = v->ndim; i-- > 0;) {
        if (v->size[i] == 1)
            continue;
        if (n > 0 && v->stride[i] == cfxi_rt_wrap_mul(runs[n - 1].count, runs[n - 1].stride))
            runs[n - 1].count = cfxi_rt_wrap_mul(runs[n - 1].count, v->size[i]);
        else
            runs[n++] = (run){v->size[i], v->stride[i]};
    }
    return n;
}

static bool is_plain(const int64_t *sizes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sizes[i] <= 0)
            return false;
    return true;
}

bool cfxi_rt_view_reshape(cfxi_view *v, const int64_t *sizes, size_t n)
{
    run runs[CFX_MAX_DIMS];
    int64_t strides[CFX_MAX_DIMS];
    bool same = n == v->ndim && memcmp(sizes, v->size, n * sizeof *sizes) == 0;
    if (same)
        return true;
    cfxi_tensor_contiguous_strides(sizes, n, cfx_dtype_size(v->dtype), strides);
    if (is_plain(sizes, n) && is_plain(v->size, v->ndim)) {  /* else nobody reads the strides */
        size_t num_runs = find_runs(v, runs);
        size_t at = 0;
        int64_t used = 1;  /* elements of runs[at] that inner dimensions take */
        for (size_t i = n; i-- > 0;) {
            if (at < num_runs && used == runs[at].count && sizes[i] != 1) {
                at++;
                used = 1;
            }
            if (at < num_runs) {
                if (runs[at].count % (used * sizes[i]) != 0)
                    return false;
                strides[i] = used * runs[at].stride;
            }
            used *= sizes[i];
        }
    }
    v->ndim = n;
    memcpy(v->size, sizes, n * sizeof *sizes);
    memcpy(v->stride, strides, n * sizeof *strides);
    return true;
}

cfx_status cfxi_rt_infer_sizes(cfxi_call *c, const cfxi_view *v, int64_t *sizes, size_t n)
{
    char text[CFXI_SIZES_TEXT];
    size_t hole = n;
    int64_t product = 1;
    int64_t total = cfxi_rt_numel_dim(c, v->size, v->ndim);
    for (size_t i = 0; i < n; i++) {
        if (sizes[i] == -1 && hole < n)
            return cfxi_fail(c, CFX_E_SHAPE, "only one dimension can be inferred");
        if (sizes[i] < -1 && !cfx_dim_is_symbol(sizes[i]))
            return cfxi_fail(c, CFX_E_SHAPE, "invalid shape dimension %lld", (long long)sizes[i]);
        if (sizes[i] == -1)
            hole = i;
        else
            product = cfx_dim_mul(c->dims, product, sizes[i], c->err);
    }
    if (c->err->status != CFX_OK)
        return c->err->status;
    if (hole < n && product == 0 && total == 0)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "cannot reshape tensor of 0 elements into shape %s because the "
                         "unspecified dimension size -1 can be any value and is ambiguous",
                         cfxi_rt_sizes_text(sizes, n, text));
    int64_t rest = hole < n && product != 0 ? cfx_dim_div(c->dims, total, product, c->err) : 1;
    bool fits = total == CFX_DIM_UNKNOWN ||
                cfxi_rt_same_size(c, cfx_dim_mul(c->dims, product, rest, c->err), total);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "shape '%s' is invalid for input of size %lld",
                         cfxi_rt_sizes_text(sizes, n, text), (long long)total);
    if (hole < n)
        sizes[hole] = rest;
    return CFX_OK;
}

static int64_t smaller(cfxi_call *c, int64_t a, int64_t b)
{
    return cfx_dim_is_symbol(a) || cfx_dim_is_symbol(b) ? cfx_dim_min(c->dims, a, b, c->err)
           : a < b                                     ? a
                                                       : b;
}

/* `size` less `n`, not below 0. */
static int64_t shortened(cfxi_call *c, int64_t size, int64_t n)
{
    if (cfx_dim_is_symbol(size))
        return cfx_dim_max(c->dims, cfx_dim_sub(c->dims, size, n, c->err), 0, c->err);
    return size > n ? size - n : 0;
}

cfx_status cfxi_rt_view_diagonal(cfxi_call *c, cfxi_view *v, int64_t offset, int64_t dim1,
                                     int64_t dim2)
{
    size_t a;
    size_t b;
    CFX_TRY(cfxi_rt_dim(c, dim1, v->ndim, &a));
    CFX_TRY(cfxi_rt_dim(c, dim2, v->ndim, &b));
    if (a == b || v->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "diagonal dimensions cannot be identical %lld, %lld",
                         (long long)dim1, (long long)dim2);
    int64_t rows = offset < 0 ? shortened(c, v->size[a], -offset) : v->size[a];
    int64_t columns = offset > 0 ? shortened(c, v->size[b], offset) : v->size[b];
    int64_t length = smaller(c, rows, columns);
    if (length != 0)
        v->offset += offset < 0 ? cfxi_rt_wrap_mul(-offset, v->stride[a])
                                : cfxi_rt_wrap_mul(offset, v->stride[b]);
    int64_t stride = (int64_t)((uint64_t)v->stride[a] + (uint64_t)v->stride[b]);
    cfxi_rt_view_remove(v, a > b ? a : b);
    cfxi_rt_view_remove(v, a > b ? b : a);
    return cfxi_rt_view_insert(c, v, v->ndim, length, stride);
}

/* Strides and offset in elements, the offset from the beginning of the memory. */
cfx_status cfxi_rt_view_strided(cfxi_call *c, const cfx_tensor *x, size_t first, cfxi_view *v)
{
    int64_t strides[CFX_MAX_DIMS];
    int64_t item = (int64_t)cfxi_tensor_itemsize(x);
    size_t n;
    *v = cfxi_rt_view_of(x);
    CFX_TRY(cfxi_rt_ints(c, first, v->size, &v->ndim));
    CFX_TRY(cfxi_rt_ints(c, first + 1, strides, &n));
    if (n != v->ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "mismatch in length of strides and shape");
    for (size_t i = 0; i < n; i++) {
        if (strides[i] < 0 && !cfx_dim_is_symbol(strides[i]))
            return cfxi_fail(c, CFX_E_SHAPE,
                             "as_strided: Negative strides are not supported at the moment");
        if (__builtin_mul_overflow(strides[i], item, &v->stride[i]) && !c->infer)
            return cfxi_fail(c, CFX_E_SHAPE, "a stride does not fit in 64 bits");
    }
    if (!cfxi_rt_is_none(c, first + 2) && x->storage &&
        (__builtin_mul_overflow(cfxi_rt_int(c, first + 2), item, &v->offset) || v->offset < 0))
        return cfxi_fail(c, CFX_E_SHAPE, "invalid storage offset");
    if (!cfxi_rt_is_none(c, first + 2) && x->storage)
        v->offset -= x->data - x->storage->data;
    return CFX_OK;
}
