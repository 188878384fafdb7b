/* export_conv.c - convolutions and pooling.
 *
 * ONNX always has a batch dimension; where the call has none, one of size 1 comes and goes.
 */
#include "export_impl.h"

#include <math.h>

enum { MOST_SPATIAL = 3 };

/* int[n], where one number stands for all. */
static void spread(int64_t *ints, size_t have, size_t n, int64_t otherwise)
{
    for (size_t i = have; i < n; i++)
        ints[i] = have == 1 ? ints[0] : otherwise;
}

static size_t spatial_ints(cfxi_export_call *c, size_t i, int64_t *out, size_t n, int64_t otherwise)
{
    const size_t have = cfxi_export_given(c, i) ? cfxi_export_ints(c, i, out) : 0;
    spread(out, have, n, otherwise);
    return have;
}

/* ---- convolutions -------------------------------------------------------------------------- */

typedef struct conv {
    size_t n;  /* spatial dimensions */
    int64_t stride[CFX_MAX_DIMS * 2], padding[CFX_MAX_DIMS * 2], dilation[CFX_MAX_DIMS * 2];
    int64_t output_padding[CFX_MAX_DIMS * 2];
    int64_t groups;
    bool transposed;
    bool same;  /* padding="same" */
} conv;

static void set_conv(cfxi_export_call *c, const conv *v)
{
    int64_t pads[CFX_MAX_DIMS * 2];
    for (size_t i = 0; i < v->n; i++) {
        const int64_t kernel = cfxi_export_known_size(c->x, c->args[1], (int64_t)i + 2);
        const int64_t all = v->dilation[i] * (kernel - 1);
        pads[i] = v->same ? all / 2 : v->padding[i];
        pads[i + v->n] = v->same ? all - all / 2 : v->padding[i];
    }
    SET_INTS("strides", v->stride, v->n);
    SET_INTS("pads", pads, v->n * 2);
    SET_INTS("dilations", v->dilation, v->n);
    SET_INT("group", v->groups);
    if (v->transposed)
        SET_INTS("output_padding", v->output_padding, v->n);
}

static cfxi_ev *convolve(cfxi_export_call *c, const conv *v)
{
    const bool single = c->args[0]->rank == (int)v->n + 1;
    cfxi_ev *x = single ? cfxi_export_unsqueeze(c, IN(0), 0) : IN(0);
    cfxi_ev *made = NODE(v->transposed ? "ConvTranspose" : "Conv", x, IN(1), IN(2));
    set_conv(c, v);
    return single ? cfxi_export_squeeze(c, made, 0) : made;
}

cfxi_ev *cfxi_export_conv(cfxi_export_call *c)
{
    conv v = {.n = (size_t)c->args[1]->rank - 2, .groups = cfxi_export_int(c, 6),
              .same = cfxi_export_is(c, 4, "same")};
    spatial_ints(c, 3, v.stride, v.n, 1);
    spatial_ints(c, 5, v.dilation, v.n, 1);
    if (!cfxi_export_str(c, 4))
        spatial_ints(c, 4, v.padding, v.n, 0);
    return convolve(c, &v);
}

cfxi_ev *cfxi_export_conv_transpose(cfxi_export_call *c)
{
    conv v = {.n = (size_t)c->args[1]->rank - 2, .groups = cfxi_export_int(c, 6),
              .transposed = true};
    spatial_ints(c, 3, v.stride, v.n, 1);
    spatial_ints(c, 4, v.padding, v.n, 0);
    spatial_ints(c, 5, v.output_padding, v.n, 0);
    spatial_ints(c, 7, v.dilation, v.n, 1);
    return convolve(c, &v);
}

cfxi_ev *cfxi_export_convolution(cfxi_export_call *c)
{
    conv v = {.n = (size_t)c->args[1]->rank - 2, .groups = cfxi_export_int(c, 8),
              .transposed = cfxi_export_bool(c, 6)};
    spatial_ints(c, 3, v.stride, v.n, 1);
    spatial_ints(c, 4, v.padding, v.n, 0);
    spatial_ints(c, 5, v.dilation, v.n, 1);
    spatial_ints(c, 7, v.output_padding, v.n, 0);
    return convolve(c, &v);
}

/* ---- pooling ------------------------------------------------------------------------------- */

typedef struct pool {
    size_t n;
    int64_t kernel[CFX_MAX_DIMS * 2], stride[CFX_MAX_DIMS * 2], padding[CFX_MAX_DIMS * 2];
    int64_t dilation[CFX_MAX_DIMS * 2];
    bool ceil;
} pool;

/* Kernel, stride and padding are the parameters after the input; the stride is the kernel's size
 * unless it is given. */
static pool pool_of(cfxi_export_call *c, size_t n)
{
    pool p = {.n = n};
    spatial_ints(c, 1, p.kernel, n, 1);
    if (spatial_ints(c, 2, p.stride, n, 1) == 0)
        memcpy(p.stride, p.kernel, sizeof p.stride);
    spatial_ints(c, 3, p.padding, n, 0);
    spread(p.dilation, 0, n, 1);
    return p;
}

static void set_pool(cfxi_export_call *c, const pool *p)
{
    int64_t pads[CFX_MAX_DIMS * 2];
    for (size_t i = 0; i < p->n; i++)
        pads[i] = pads[i + p->n] = p->padding[i];
    SET_INTS("kernel_shape", p->kernel, p->n);
    SET_INTS("strides", p->stride, p->n);
    SET_INTS("pads", pads, p->n * 2);
    SET_INT("ceil_mode", p->ceil);
}

static size_t spatial_of(const cfxi_export_call *c)
{
    switch ((int)c->op) {
    case CFX_OPID_max_pool1d: case CFX_OPID_max_pool1d_with_indices: case CFX_OPID_avg_pool1d:
    case CFX_OPID_adaptive_avg_pool1d: case CFX_OPID_adaptive_max_pool1d:
    case CFX_OPID_adaptive_max_pool1d_with_indices: return 1;
    case CFX_OPID_max_pool3d: case CFX_OPID_max_pool3d_with_indices: case CFX_OPID_avg_pool3d:
    case CFX_OPID_adaptive_avg_pool3d: return 3;
    default: return 2;
    }
}

/* ONNX counts places over batch and channels, too. */
static cfxi_ev *within_plane(cfxi_export_call *c, cfxi_ev *index, size_t n)
{
    cfxi_ev *plane = INT(1);
    for (size_t i = 1; i <= n; i++)
        plane = NODE("Mul", plane, SIZE(c->args[0], -(int64_t)i));
    return NODE("Mod", index, plane);
}

cfxi_ev *cfxi_export_max_pool(cfxi_export_call *c)
{
    const size_t n = spatial_of(c);
    size_t results;
    const bool places = cfx_datum_items(c->result, &results) != NULL;
    pool p = pool_of(c, n);
    cfxi_ev *made[2];
    spatial_ints(c, 4, p.dilation, n, 1);
    p.ceil = cfxi_export_bool(c, 5);
    const bool single = c->args[0]->rank == (int)n + 1;
    cfxi_ev *x = single ? cfxi_export_unsqueeze(c, IN(0), 0) : IN(0);
    cfxi_export_nodes(c->x, "MaxPool", &x, 1, made, places ? 2 : 1);
    set_pool(c, &p);
    SET_INTS("dilations", p.dilation, n);
    if (places && !made[1]->broken) {
        made[1]->dtype = CFX_DTYPE_INT64;
        made[1] = within_plane(c, made[1], n);
    }
    for (size_t i = 0; single && i < 1u + places; i++)
        made[i] = cfxi_export_squeeze(c, made[i], 0);
    return places ? cfxi_export_list(c->x, made, 2) : made[0];
}

cfxi_ev *cfxi_export_avg_pool(cfxi_export_call *c)
{
    const size_t n = spatial_of(c);
    pool p = pool_of(c, n);
    double size = 1;
    const bool other = c->n > 6 && cfxi_export_given(c, 6);
    p.ceil = cfxi_export_bool(c, 4);
    const bool single = c->args[0]->rank == (int)n + 1;
    cfxi_ev *x = single ? cfxi_export_unsqueeze(c, IN(0), 0) : IN(0);
    cfxi_ev *made = NODE("AveragePool", x);
    set_pool(c, &p);
    SET_INT("count_include_pad", other || cfxi_export_bool(c, 5));
    for (size_t i = 0; i < n; i++)
        size *= (double)p.kernel[i];
    if (other)  /* the sum by another number */
        made = NODE("Mul", made, LIKE(x, size / cfxi_export_float(c, 6)));
    return single ? cfxi_export_squeeze(c, made, 0) : made;
}

/* ---- adaptive pooling ---------------------------------------------------------------------- */

/* Which elements each result is of: a matrix of bool (sizes in, sizes out). Result i is of those
 * from i*in/out, rounded down, to (i + 1)*in/out, rounded up. */
static cfxi_ev *adaptive_mask(cfxi_export_call *c, cfxi_ev *in, cfxi_ev *out)
{
    cfxi_ev *places = cfxi_export_unsqueeze(c, cfxi_export_range(c, in), 1);
    cfxi_ev *results = cfxi_export_range(c, out);
    cfxi_ev *first = NODE("Div", NODE("Mul", results, in), out);
    cfxi_ev *next = NODE("Mul", NODE("Add", results, INT(1)), in);
    cfxi_ev *end = NODE("Div", NODE("Sub", NODE("Add", next, out), INT(1)), out);
    return NODE("And", NODE("GreaterOrEqual", places, first), NODE("Less", places, end));
}

/* Each dimension on its own: a product with the mask, divided by how many each result is of. */
static cfxi_ev *average_dims(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *const *out, size_t n)
{
    const int rank = c->args[0]->rank;
    const int64_t axis[] = {0};
    for (size_t i = 0; i < n; i++) {
        const int dim = rank - (int)n + (int)i;
        cfxi_ev *mask = adaptive_mask(c, SIZE(c->args[0], dim), out[i]);
        mask = CAST(mask, cfxi_export_result_dtype(c));
        cfxi_ev *means = NODE("Div", mask, cfxi_export_reduce(c, "ReduceSum", mask, axis, 1, true));
        x = cfxi_export_swap(c, x, (size_t)rank, (size_t)dim, (size_t)rank - 1);
        x = NODE("MatMul", x, means);
        x = cfxi_export_swap(c, x, (size_t)rank, (size_t)dim, (size_t)rank - 1);
    }
    return x;
}

/* The wanted sizes: None keeps that of the input. */
static void wanted_sizes(cfxi_export_call *c, cfxi_ev **out, size_t n)
{
    cfxi_ev **items;
    const size_t have = cfxi_export_items(c, 1, &items);
    for (size_t i = 0; i < n; i++) {
        out[i] = have == 0 ? INT(1) : items[have == 1 ? 0 : i];
        if (cfxi_export_is_none(out[i]))
            out[i] = SIZE(c->args[0], (int64_t)i - (int64_t)n);
    }
}

/* The sizes of the result; false if one of them is not known. */
static bool sizes_out(cfxi_export_call *c, int64_t *out, size_t n)
{
    const cfx_tensor *t = cfxi_export_result(c, 0);
    const size_t rank = cfx_tensor_ndim(t);
    for (size_t i = 0; i < n; i++)
        if ((out[i] = cfx_tensor_sizes(t)[rank - n + i]) < 0)
            return false;
    return true;
}

cfxi_ev *cfxi_export_adaptive_avg_pool(cfxi_export_call *c)
{
    int64_t axes[MOST_SPATIAL];
    cfxi_ev *out[MOST_SPATIAL];
    const size_t n = spatial_of(c);
    bool ones = true;
    wanted_sizes(c, out, n);
    for (size_t i = 0; i < n; i++) {
        ones = ones && cfxi_export_is_known(out[i]) && out[i]->datum.as.i == 1;
        axes[i] = (int64_t)i - (int64_t)n;
    }
    return ones ? cfxi_export_reduce(c, "ReduceMean", IN(0), axes, n, true)
                : average_dims(c, IN(0), out, n);
}

/* The greatest element where the mask is true, dimension by dimension. */
static cfxi_ev *greatest_dims(cfxi_export_call *c)
{
    const int64_t axis[] = {-2};
    const int rank = c->args[0]->rank;
    const size_t n = spatial_of(c);
    cfxi_ev *out[MOST_SPATIAL];
    cfxi_ev *x = IN(0);
    wanted_sizes(c, out, n);
    for (size_t i = 0; i < n; i++) {
        const size_t dim = (size_t)rank - n + i;
        cfxi_ev *mask = adaptive_mask(c, SIZE(c->args[0], (int64_t)dim), out[i]);
        x = cfxi_export_swap(c, x, (size_t)rank, dim, (size_t)rank - 1);
        x = NODE("Where", mask, cfxi_export_unsqueeze(c, x, -1), LIKE(x, -INFINITY));
        x = cfxi_export_reduce(c, "ReduceMax", x, axis, 1, false);
        x = cfxi_export_swap(c, x, (size_t)rank, dim, (size_t)rank - 1);
    }
    return x;
}

cfxi_ev *cfxi_export_adaptive_max_pool(cfxi_export_call *c)
{
    const size_t n = spatial_of(c);
    size_t results;
    const bool places = cfx_datum_items(c->result, &results) != NULL;
    pool p = {.n = n};
    cfxi_ev *made[2];
    int64_t out[MOST_SPATIAL];
    for (size_t i = 0; i < n; i++) {
        const int64_t in = cfxi_export_known_size(c->x, c->args[0], (int64_t)i - (int64_t)n);
        if (!sizes_out(c, out, n) || in < 0 || in % out[i] != 0)
            return !places ? greatest_dims(c)
                           : cfxi_export_refuse(c, "places of adaptive max pooling are written "
                                                "where the input size is known and a multiple of "
                                                "the output size");
        p.kernel[i] = p.stride[i] = in / out[i];
    }
    const bool single = c->args[0]->rank == (int)n + 1;
    cfxi_ev *x = single ? cfxi_export_unsqueeze(c, IN(0), 0) : IN(0);
    cfxi_export_nodes(c->x, "MaxPool", &x, 1, made, places ? 2 : 1);
    set_pool(c, &p);
    if (places && !made[1]->broken) {
        made[1]->dtype = CFX_DTYPE_INT64;
        made[1] = within_plane(c, made[1], n);
    }
    for (size_t i = 0; single && i < 1u + places; i++)
        made[i] = cfxi_export_squeeze(c, made[i], 0);
    return places ? cfxi_export_list(c->x, made, 2) : made[0];
}

cfxi_ev *cfxi_export_lp_pool(cfxi_export_call *c)
{
    pool p = {.n = 2};
    spatial_ints(c, 2, p.kernel, 2, 1);
    if (spatial_ints(c, 3, p.stride, 2, 1) == 0)
        memcpy(p.stride, p.kernel, sizeof p.stride);
    p.ceil = cfxi_export_bool(c, 4);
    const double power = cfxi_export_float(c, 1);
    cfxi_ev *x = IN(0);
    cfxi_ev *made = NODE("AveragePool", NODE("Pow", x, LIKE(x, power)));
    set_pool(c, &p);
    made = NODE("Mul", made, LIKE(x, (double)(p.kernel[0] * p.kernel[1])));
    return NODE("Pow", made, LIKE(x, 1 / power));
}

/* ---- columns ------------------------------------------------------------------------------- */

/* Where the windows of one dimension take their elements: (kernel, windows). */
static cfxi_ev *window_index(cfxi_export_call *c, cfxi_ev *size, const pool *p, size_t i)
{
    const int64_t reach = p->dilation[i] * (p->kernel[i] - 1) + 1;
    cfxi_ev *room = NODE("Sub", size, INT(reach - 2 * p->padding[i]));
    cfxi_ev *count = NODE("Add", NODE("Div", room, INT(p->stride[i])), INT(1));
    cfxi_ev *starts = NODE("Mul", cfxi_export_range(c, count), INT(p->stride[i]));
    cfxi_ev *inside = NODE("Mul", cfxi_export_range(c, INT(p->kernel[i])), INT(p->dilation[i]));
    return NODE("Add", cfxi_export_unsqueeze(c, inside, 1), starts);
}

cfxi_ev *cfxi_export_im2col(cfxi_export_call *c)
{
    pool p = {.n = 2};
    cfxi_ev *v = c->args[0];
    if (v->rank != 4)
        return cfxi_export_refuse(c, "unfold is written for four dimensions; add a batch "
                                  "dimension");
    spatial_ints(c, 1, p.kernel, 2, 1);
    spatial_ints(c, 2, p.dilation, 2, 1);
    spatial_ints(c, 3, p.padding, 2, 0);
    spatial_ints(c, 4, p.stride, 2, 1);
    const int64_t perm[] = {0, 1, 2, 4, 3, 5};
    cfxi_ev *x = NODE("Pad", IN(0), INTS(0, 0, p.padding[0], p.padding[1], 0, 0, p.padding[0],
                                         p.padding[1]));
    x = NODE("Gather", x, window_index(c, SIZE(v, 2), &p, 0));
    SET_INT("axis", 2);
    x = NODE("Gather", x, window_index(c, SIZE(v, 3), &p, 1));
    SET_INT("axis", 4);
    x = cfxi_export_transpose(c, x, perm, 6);
    cfxi_ev *channels = NODE("Mul", SIZE(v, 1), INT(p.kernel[0] * p.kernel[1]));
    return NODE("Reshape", x, cfxi_export_shape_of(
        c->x, CFXI_EVS(SIZE(v, 0), channels, cfxi_export_of_datum(c->x, cfx_datum_int(-1))), 3));
}

cfxi_ev *cfxi_export_col2im(cfxi_export_call *c)
{
    int64_t pads[4];
    int64_t ints[CFX_MAX_DIMS * 2];
    cfxi_ev **size;
    cfxi_ev **kernel;
    const size_t n = cfxi_export_items(c, 1, &size);
    const size_t m = cfxi_export_items(c, 2, &kernel);
    if (c->args[0]->rank != 3)
        return cfxi_export_refuse(c, "fold is written for three dimensions; add a batch dimension");
    cfxi_ev *made = NODE("Col2Im", IN(0), cfxi_export_shape_of(c->x, size, n),
                         cfxi_export_shape_of(c->x, kernel, m));
    spatial_ints(c, 3, ints, 2, 1);
    SET_INTS("dilations", ints, 2);
    spatial_ints(c, 4, ints, 2, 0);
    pads[0] = pads[2] = ints[0];
    pads[1] = pads[3] = ints[1];
    SET_INTS("pads", pads, 4);
    spatial_ints(c, 5, ints, 2, 1);
    SET_INTS("strides", ints, 2);
    return made;
}
