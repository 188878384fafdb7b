/* nn_layers.c - modules with weights: linear, embeddings, convolution. */
#include "nn_impl.h"

/* ---- linear -------------------------------------------------------------------------------- */

static void add_bias(cfxi_making *k, int64_t size, cfxi_init init)
{
    if (cfxi_nn_flag(k, "bias"))
        cfxi_nn_parameter(k, "bias", &size, 1, init);
    else
        cfxi_nn_no_parameter(k, "bias");
}

void cfxi_nn_make_linear(cfxi_making *k)
{
    const int64_t sizes[] = {cfxi_nn_int(k, "out_features"), cfxi_nn_int(k, "in_features")};
    const cfxi_init init = cfxi_nn_uniform_of((double)sizes[1]);
    cfxi_nn_at_least(k, "in_features", 0);
    cfxi_nn_at_least(k, "out_features", 0);
    cfxi_nn_parameter(k, "weight", sizes, 2, init);
    add_bias(k, sizes[0], init);
}

void cfxi_nn_make_bilinear(cfxi_making *k)
{
    const int64_t sizes[] = {cfxi_nn_int(k, "out_features"), cfxi_nn_int(k, "in1_features"),
                             cfxi_nn_int(k, "in2_features")};
    const cfxi_init init = cfxi_nn_uniform_of((double)sizes[1]);
    cfxi_nn_at_least(k, "in1_features", 1);
    cfxi_nn_at_least(k, "in2_features", 0);
    cfxi_nn_at_least(k, "out_features", 0);
    cfxi_nn_parameter(k, "weight", sizes, 3, init);
    add_bias(k, sizes[0], init);
}

/* ---- embeddings ---------------------------------------------------------------------------- */

/* The row that stands for padding, counted from the start; -1 if there is none. */
static int64_t padding_row(cfxi_making *k, int64_t rows)
{
    const cfx_datum given = cfxi_nn_arg(k, "padding_idx");
    if (given.kind != CFX_DATUM_INT)
        return -1;
    const int64_t row = given.as.i < 0 ? given.as.i + rows : given.as.i;
    if (row < 0 || row >= rows)
        cfxi_nn_fail(k, "padding_idx must be one of the %lld rows, not %lld", (long long)rows,
                     (long long)given.as.i);
    else
        cfxi_nn_set(k, "padding_idx", cfx_datum_int(row));
    return row;
}

static void zero_row(cfxi_making *k, int64_t row, int64_t width)
{
    const cfx_datum weight = cfx_module_attribute(k->m, "weight");
    if (row < 0 || !cfx_scope_ok(k->at.scope) || weight.kind != CFX_DATUM_TENSOR)
        return;
    const size_t size = cfx_dtype_size(k->dtype) * (size_t)width;
    memset((char *)cfx_tensor_data(weight.as.tensor) + size * (size_t)row, 0, size);
}

static void given_weight(cfxi_making *k, cfx_tensor *t, const int64_t sizes[2])
{
    if (cfx_tensor_ndim(t) != 2 || cfx_tensor_sizes(t)[0] != sizes[0] ||
        cfx_tensor_sizes(t)[1] != sizes[1])
        cfxi_nn_fail(k, "_weight must have shape [%lld, %lld]", (long long)sizes[0],
                     (long long)sizes[1]);
    cfx_module_add_parameter_at(k->at, k->m, "weight", t);
}

void cfxi_nn_make_embedding(cfxi_making *k)
{
    static const char *const modes[] = {"sum", "mean", "max", NULL};
    const int64_t sizes[] = {cfxi_nn_int(k, "num_embeddings"), cfxi_nn_int(k, "embedding_dim")};
    const cfx_datum given = cfxi_nn_arg(k, "_weight");
    cfxi_nn_at_least(k, "num_embeddings", 0);
    cfxi_nn_at_least(k, "embedding_dim", 0);
    if (k->nn == CFX_NN_EmbeddingBag)
        cfxi_nn_one_of(k, "mode", modes);
    const int64_t row = cfx_scope_ok(k->at.scope) ? padding_row(k, sizes[0]) : -1;
    if (given.kind == CFX_DATUM_TENSOR) {
        given_weight(k, given.as.tensor, sizes);
        return;
    }
    cfxi_nn_parameter(k, "weight", sizes, 2, cfxi_nn_normal(1));
    zero_row(k, row, sizes[1]);
}

/* ---- convolution --------------------------------------------------------------------------- */

typedef struct conv {
    size_t dims;
    int64_t kernel[3], dilation[3], padding[3];
    bool transposed;
} conv;

/* The padding before and after each dimension, the last dimension first: what `pad` takes. */
static void set_reversed(cfxi_making *k, const conv *c, bool same)
{
    int64_t both[6] = {0};
    for (size_t i = 0; i < c->dims; i++) {
        const size_t dim = c->dims - 1 - i;
        int64_t total = 0;
        if (same && __builtin_mul_overflow(c->dilation[dim], c->kernel[dim] - 1, &total))
            cfxi_nn_fail(k, "kernel_size and dilation are too large for padding 'same'");
        both[2 * i] = same ? total / 2 : c->padding[dim];
        both[2 * i + 1] = same ? total - total / 2 : c->padding[dim];
    }
    if (cfx_scope_ok(k->at.scope))
        cfxi_nn_set(k, "_reversed_padding_repeated_twice", cfxi_nn_tuple(k, both, 2 * c->dims));
}

static bool is_one(const cfxi_making *k, const char *name)
{
    int64_t items[3] = {1, 1, 1};
    const size_t n = cfxi_nn_ints(k, name, items, 3);
    for (size_t i = 0; i < n; i++)
        if (items[i] != 1)
            return false;
    return true;
}

/* 'valid', 'same', a number, or a number for each dimension. */
static void set_padding(cfxi_making *k, conv *c)
{
    static const char *const words[] = {"valid", "same", NULL};
    const cfx_datum given = cfxi_nn_arg(k, "padding");
    const bool same = strcmp(cfxi_nn_text(k, "padding"), "same") == 0;
    if (given.kind == CFX_DATUM_STR) {
        cfxi_nn_one_of(k, "padding", words);
        if (same && !is_one(k, "stride"))
            cfxi_nn_fail(k, "padding 'same' needs a stride of 1");
        set_reversed(k, c, same);
        return;
    }
    size_t n = cfxi_nn_ints(k, "padding", c->padding, 3);
    if (given.kind == CFX_DATUM_INT)
        for (; n < c->dims; n++)
            c->padding[n] = given.as.i;
    if (n != c->dims)
        cfxi_nn_fail(k, "padding must be 'valid', 'same', an int, or %zu ints", c->dims);
    cfxi_nn_at_least(k, "padding", 0);
    if (!cfx_scope_ok(k->at.scope))
        return;
    cfxi_nn_set(k, "padding", cfxi_nn_tuple(k, c->padding, c->dims));
    set_reversed(k, c, false);
}

static void check_channels(cfxi_making *k, int64_t in, int64_t out, int64_t groups)
{
    cfxi_nn_at_least(k, "groups", 1);
    cfxi_nn_at_least(k, "in_channels", 0);
    cfxi_nn_at_least(k, "out_channels", 0);
    cfxi_nn_at_least(k, "kernel_size", 0);
    if (!cfx_scope_ok(k->at.scope))
        return;
    if (in % groups != 0)
        cfxi_nn_fail(k, "in_channels %lld is not divisible by groups %lld", (long long)in,
                     (long long)groups);
    else if (out % groups != 0)
        cfxi_nn_fail(k, "out_channels %lld is not divisible by groups %lld", (long long)out,
                     (long long)groups);
}

static void check_mode(cfxi_making *k, const conv *c)
{
    static const char *const modes[] = {"zeros", "reflect", "replicate", "circular", NULL};
    cfxi_nn_one_of(k, "padding_mode", modes);
    if (c->transposed && strcmp(cfxi_nn_text(k, "padding_mode"), "zeros") != 0)
        cfxi_nn_fail(k, "only the padding_mode 'zeros' is supported");
}

void cfxi_nn_make_conv(cfxi_making *k)
{
    static const int64_t zeros[3];
    const int64_t in = cfxi_nn_int(k, "in_channels");
    const int64_t out = cfxi_nn_int(k, "out_channels");
    const int64_t groups = cfxi_nn_int(k, "groups");
    conv c = {.transposed = cfxi_nn_arg(k, "output_padding").kind != CFX_DATUM_INVALID};
    c.dims = cfxi_nn_ints(k, "kernel_size", c.kernel, 3);
    cfxi_nn_ints(k, "dilation", c.dilation, 3);
    check_channels(k, in, out, groups);
    check_mode(k, &c);
    set_padding(k, &c);
    cfxi_nn_set(k, "transposed", cfx_datum_bool(c.transposed));
    if (!cfx_scope_ok(k->at.scope))
        return;
    if (!c.transposed)
        cfxi_nn_set(k, "output_padding", cfxi_nn_tuple(k, zeros, c.dims));
    int64_t sizes[5] = {c.transposed ? in : out, (c.transposed ? out : in) / groups};
    memcpy(sizes + 2, c.kernel, sizeof c.kernel);
    const cfxi_init init = cfxi_nn_uniform_of(cfxi_nn_fan_in(sizes, c.dims + 2));
    cfxi_nn_parameter(k, "weight", sizes, c.dims + 2, init);
    add_bias(k, out, init);
}
