/* unfold.c - sliding windows as columns (F.unfold) and back (F.fold). */
#include "runtime/spatial.h"

typedef struct windows {
    int64_t kernel[CFXI_SPATIAL];    /* the last two are used */
    int64_t dilation[CFXI_SPATIAL];
    int64_t pad[CFXI_SPATIAL];
    int64_t stride[CFXI_SPATIAL];
    int64_t image[CFXI_SPATIAL];
    int64_t count[CFXI_SPATIAL];     /* places of the window */
    int64_t taps;                    /* elements of the window */
} windows;

/* ---- rules --------------------------------------------------------------------------------- */

/* Arguments at, at + 1, ...: kernel_size, dilation, padding, stride. */
static cfx_status read_windows(cfxi_call *c, size_t at, windows *w)
{
    CFX_TRY(cfxi_rt_window_ints(c, at, 2, 1, NULL, "kernel_size", w->kernel));
    CFX_TRY(cfxi_rt_window_ints(c, at + 1, 2, 1, NULL, "dilation", w->dilation));
    CFX_TRY(cfxi_rt_window_ints(c, at + 2, 2, 0, NULL, "padding", w->pad));
    CFX_TRY(cfxi_rt_window_ints(c, at + 3, 2, 1, NULL, "stride", w->stride));
    for (size_t d = 1; d < CFXI_SPATIAL; d++) {
        if (w->kernel[d] <= 0 || w->dilation[d] <= 0 || w->stride[d] <= 0 || w->pad[d] < 0)
            return cfxi_fail(c, CFX_E_SHAPE, "kernel_size, dilation and stride should be greater "
                             "than zero, padding non-negative");
        int64_t span = 2 * w->pad[d] - w->dilation[d] * (w->kernel[d] - 1) - 1;
        span = cfx_dim_add(c->dims, w->image[d], span, c->err);
        w->count[d] = cfx_dim_add(c->dims, cfx_dim_div(c->dims, span, w->stride[d], c->err), 1,
                                  c->err);
        if (w->count[d] < 1 && !cfx_dim_is_symbol(w->count[d]))
            return cfxi_fail(c, CFX_E_SHAPE, "Given input with spatial size (%s), kernel_size=(%s),"
                             " calculated shape of the array of sliding blocks as (%s), but its "
                             "components must be at least one.",
                             cfxi_rt_shape_ints(w->image + 1, 2, ", ").text,
                             cfxi_rt_shape_ints(w->kernel + 1, 2, ", ").text,
                             cfxi_rt_shape_ints(w->count + 1, d, ", ").text);
    }
    w->taps = w->kernel[1] * w->kernel[2];
    return CFX_OK;
}

static cfx_status check_type(cfxi_call *c)
{
    cfx_dtype type = (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype;
    if (cfx_dtype_is_integer(type))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s", cfx_dtype_name(type));
    return CFX_OK;
}

static cfx_status read_im2col(cfxi_call *c, windows *w)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    if (x->ndim != 3 && x->ndim != 4)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected 3D or 4D (batch mode) tensor with possibly 0 "
                         "batch size and other non-zero dimensions for input, but got: [%s]",
                         cfxi_rt_shape_of(x).text);
    for (size_t d = x->ndim - 3u; d < x->ndim; d++)
        if (x->size[d] == 0)
            return cfxi_fail(c, CFX_E_SHAPE, "Expected 3D or 4D (batch mode) tensor with possibly 0"
                             " batch size and other non-zero dimensions for input, but got: [%s]",
                             cfxi_rt_shape_of(x).text);
    w->image[1] = x->size[x->ndim - 2];
    w->image[2] = x->size[x->ndim - 1];
    return read_windows(c, 1, w);
}

cfx_status cfxi_rule_im2col(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    windows w;
    int64_t sizes[3];
    size_t n = 0;
    CFX_TRY(read_im2col(c, &w));
    CFX_TRY(check_type(c));
    if (x->ndim == 4)
        sizes[n++] = x->size[0];
    sizes[n++] = cfx_dim_mul(c->dims, x->size[x->ndim - 3], w.taps, c->err);
    sizes[n++] = cfx_dim_mul(c->dims, w.count[1], w.count[2], c->err);
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, n);
}

static cfx_status read_col2im(cfxi_call *c, windows *w)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    CFX_TRY(cfxi_rt_window_ints(c, 1, 2, 1, NULL, "output_size", w->image));
    if (x->ndim != 2 && x->ndim != 3)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected 2D or 3D (batch mode) tensor for input with "
                         "possibly 0 batch size and non-zero dimensions for input, but got: [%s]",
                         cfxi_rt_shape_of(x).text);
    CFX_TRY(read_windows(c, 2, w));
    int64_t rows = x->size[x->ndim - 2];
    int64_t columns = cfx_dim_mul(c->dims, w->count[1], w->count[2], c->err);
    if (!cfx_dim_is_symbol(rows) && (rows % w->taps != 0 || rows == 0))
        return cfxi_fail(c, CFX_E_SHAPE, "Expected size of input's dimension 1 to be divisible by "
                         "the product of kernel_size, but got input.size(1)=%lld and "
                         "kernel_size=(%s).", (long long)rows,
                         cfxi_rt_shape_ints(w->kernel + 1, 2, ", ").text);
    if (!cfxi_rt_same_size(c, x->size[x->ndim - 1], columns))
        return cfxi_fail(c, CFX_E_SHAPE, "Given output_size=(%s), expected size of input's "
                         "dimension 2 to match the calculated number of sliding blocks %lld, but "
                         "got input.size(2)=%lld.", cfxi_rt_shape_ints(w->image + 1, 2, ", ").text,
                         (long long)columns, (long long)x->size[x->ndim - 1]);
    return CFX_OK;
}

cfx_status cfxi_rule_col2im(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    windows w;
    int64_t sizes[4];
    size_t n = 0;
    CFX_TRY(read_col2im(c, &w));
    CFX_TRY(check_type(c));
    if (x->ndim == 3)
        sizes[n++] = x->size[0];
    sizes[n++] = cfx_dim_div(c->dims, x->size[x->ndim - 2], w.taps, c->err);
    sizes[n++] = w.image[1];
    sizes[n++] = w.image[2];
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, sizes, n);
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* Both ways, plane by plane; an image and its columns lie without gaps. */
typedef struct job {
    windows w;
    const char *x;
    char *y;
    size_t item;
    size_t parts;       /* of an element: 2 for complex numbers */
    cfx_dtype type;
    int64_t image;      /* bytes of a plane */
    int64_t columns;    /* and of what its windows show */
} job;

static void run_planes(cfxi_call *c, job *j, const cfx_tensor *x, cfx_tensor *y,
                       const cfx_tensor *image, cfxi_range_fn *fn)
{
    const windows *w = &j->w;
    const int64_t area = w->image[1] * w->image[2];
    j->x = x->data;
    j->y = y->data;
    j->item = cfxi_tensor_itemsize(x);
    j->image = area * (int64_t)j->item;
    j->columns = w->taps * w->count[1] * w->count[2] * (int64_t)j->item;
    if (area > 0)
        cfxi_rt_parallel(c->rt, cfxi_tensor_numel(image) / area, 1 + 16384 / area, fn, j);
}

/* The row (tap y, x) of a plane: one element for each place of the window. */
static void unfold_tap(const job *j, const char *plane, int64_t ky, int64_t kx, char *to)
{
    const windows *w = &j->w;
    for (int64_t oy = 0; oy < w->count[1]; oy++) {
        int64_t y = oy * w->stride[1] - w->pad[1] + ky * w->dilation[1];
        const char *row = y >= 0 && y < w->image[1]
                              ? plane + y * w->image[2] * (int64_t)j->item : NULL;
        for (int64_t ox = 0; ox < w->count[2]; ox++, to += j->item) {
            int64_t x = ox * w->stride[2] - w->pad[2] + kx * w->dilation[2];
            if (row && x >= 0 && x < w->image[2])
                memcpy(to, row + x * (int64_t)j->item, j->item);
            else
                memset(to, 0, j->item);
        }
    }
}

static void unfold_planes(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    const windows *w = &j->w;
    const int64_t row = j->columns / w->taps;
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = 0; k < w->taps; k++)
            unfold_tap(j, j->x + i * j->image, k / w->kernel[2], k % w->kernel[2],
                       j->y + i * j->columns + k * row);
}

cfx_status cfxi_kernel_im2col(cfxi_call *c)
{
    job j = {0};
    CFX_TRY(read_im2col(c, &j.w));
    cfx_tensor *x =
        cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 0), (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype);
    if (!x)
        return c->err->status;
    run_planes(c, &j, x, cfxi_rt_result_at(c, 0), x, unfold_planes);
    cfx_tensor_release(x);
    return CFX_OK;
}

/* The other way: what overlaps is added up; integers wrap. */
#define PLUS_float(a, b) ((a) + (b))
#define PLUS_double(a, b) ((a) + (b))
#define PLUS_int64_t(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define FOLD(type)                                                                                 \
    static void fold_plane_##type(const job *j, const type *from, type *to)                        \
    {                                                                                              \
        const windows *w = &j->w;                                                                  \
        for (int64_t k = 0; k < w->taps; k++)                                                      \
            for (int64_t o = 0; o < w->count[1] * w->count[2]; o++, from += j->parts) {            \
                int64_t y = o / w->count[2] * w->stride[1] - w->pad[1] +                           \
                            k / w->kernel[2] * w->dilation[1];                                     \
                int64_t x = o % w->count[2] * w->stride[2] - w->pad[2] +                           \
                            k % w->kernel[2] * w->dilation[2];                                     \
                bool inside = y >= 0 && y < w->image[1] && x >= 0 && x < w->image[2];              \
                type *at = inside ? to + (y * w->image[2] + x) * (int64_t)j->parts : to;           \
                for (size_t p = 0; inside && p < j->parts; p++)                                    \
                    at[p] = PLUS_##type(at[p], from[p]);                                           \
            }                                                                                      \
    }
FOLD(float)
FOLD(double)
FOLD(int64_t)

static void fold_planes(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        const void *from = j->x + i * j->columns;
        void *to = j->y + i * j->image;
        memset(to, 0, (size_t)j->image);
        if (j->type == CFX_DTYPE_FLOAT32)
            fold_plane_float(j, from, to);
        else if (j->type == CFX_DTYPE_INT64)
            fold_plane_int64_t(j, from, to);
        else
            fold_plane_double(j, from, to);
    }
}

cfx_status cfxi_kernel_col2im(cfxi_call *c)
{
    job j = {0};
    CFX_TRY(read_col2im(c, &j.w));
    j.type = cfxi_rt_compute_dtype((cfx_dtype)cfxi_rt_tensor(c, 0)->dtype);
    j.parts = j.type == CFX_DTYPE_COMPLEX128 ? 2 : 1;
    cfx_tensor *x = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 0), j.type);
    cfx_tensor *y = x ? cfxi_rt_work(c, 0, j.type, true) : NULL;
    if (y)
        run_planes(c, &j, x, y, y, fold_planes);
    cfx_status status = cfxi_rt_work_done(c, 0, y, y ? CFX_OK : c->err->status);
    cfx_tensor_release(x);
    return status;
}
