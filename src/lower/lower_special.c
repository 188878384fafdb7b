/* lower_special.c - modules that are more than a call with their attributes: a table of classes,
 * and normalisation and convolution among them. */
#include "lower_impl.h"

/* ---- what the functions of classes are written with ---------------------------------------- */

bool cfxi_lower_flag(cfxi_lower *l, cfx_node *n, const char *name)
{
    const cfx_value v = cfxi_lower_attribute(l, n, name);
    return v.kind == CFX_KIND_BOOL && v.as.b;
}

int64_t cfxi_lower_int(cfxi_lower *l, cfx_node *n, const char *name)
{
    const cfx_value v = cfxi_lower_attribute(l, n, name);
    return v.kind == CFX_KIND_INT ? v.as.i : 0;
}

cfx_value cfxi_lower_argument(const cfx_node *n, size_t i, const char *name)
{
    cfx_value v = cfx_node_arg(n, i);
    if (v.kind == CFX_KIND_INVALID)
        v = cfx_node_kwarg(n, name);
    return v.kind == CFX_KIND_INVALID ? cfx_value_none() : v;
}

cfx_value cfxi_lower_row(cfxi_lower *l, cfx_node *n, cfx_operator op, const cfx_value *args,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (args[i].kind == CFX_KIND_INVALID)
            return cfx_value_invalid();
    cfx_node *call = cfxi_lower_add(l, n, op, args, count);
    return call ? cfx_value_node(call) : cfx_value_invalid();
}

cfx_value cfxi_lower_size(cfxi_lower *l, cfx_node *n, cfx_value x, int64_t dim)
{
    const cfx_value args[] = {x, cfx_value_int(dim)};
    return cfxi_lower_row(l, n, CFX_OPID_size, args, 2);
}

cfx_value cfxi_lower_sizes(cfxi_lower *l, cfx_node *n, cfx_value x, int64_t start, int64_t stop)
{
    const cfx_value args[] = {
        cfxi_lower_row(l, n, CFX_OPID_size, &x, 1),
        cfx_value_slice(l->g, cfx_value_int(start), cfx_value_int(stop), cfx_value_none(), l->err),
    };
    return cfxi_lower_row(l, n, CFX_OPID_getitem, args, 2);
}

cfx_value cfxi_lower_reshape(cfxi_lower *l, cfx_node *n, cfx_value x, const cfx_value *sizes,
                             size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sizes[i].kind == CFX_KIND_INVALID)
            return cfx_value_invalid();
    const cfx_value args[] = {x, cfx_value_list(l->g, sizes, count, l->err)};
    return cfxi_lower_row(l, n, CFX_OPID_reshape, args, 2);
}

cfx_value cfxi_lower_reshape_by(cfxi_lower *l, cfx_node *n, cfx_value x, cfx_value before,
                                cfx_value sizes, cfx_value after)
{
    const cfx_value first[] = {before, sizes};
    if (before.kind != CFX_KIND_INVALID)
        sizes = cfxi_lower_row(l, n, CFX_OPID_add, first, 2);
    const cfx_value second[] = {sizes, after};
    const cfx_value args[] = {x, after.kind == CFX_KIND_INVALID
                                     ? sizes : cfxi_lower_row(l, n, CFX_OPID_add, second, 2)};
    return cfxi_lower_row(l, n, CFX_OPID_reshape, args, 2);
}

cfx_status cfxi_lower_finish(cfxi_lower *l, cfx_node *n, cfx_operator op, const cfx_value *args,
                             size_t count)
{
    cfxi_lowered c;
    CFX_TRY(l->err->status);
    cfxi_lower_lowered_begin(&c, op);
    for (size_t i = 0; i < count && i < c.n; i++) {
        if (args[i].kind == CFX_KIND_INVALID)
            return cfxi_lower_refuse(l, n, "the module lacks an attribute of its class");
        c.args[i] = args[i];
    }
    return cfxi_lower_write(l, n, &c);
}

/* ---- normalisation ------------------------------------------------------------------------- */

/* Counts the batches that the statistics are of; without a momentum all of them count alike. */
static cfx_status count_batch(cfxi_lower *l, cfx_node *n, cfx_value *momentum)
{
    const cfx_value args[] = {cfxi_lower_attribute(l, n, "num_batches_tracked"), cfx_value_int(1)};
    if (args[0].kind != CFX_KIND_NODE)
        return l->err->status;
    const cfx_value count = cfxi_lower_row(l, n, CFX_OPID_add_, args, 2);
    if (cfxi_lower_value_is_none(*momentum)) {
        const cfx_value parts[] = {cfx_value_float(1),
                                   cfxi_lower_row(l, n, CFX_OPID_item, &count, 1)};
        *momentum = cfxi_lower_row(l, n, CFX_OPID_div, parts, 2);
    }
    return l->err->status;
}

typedef struct norm {
    bool use_input;  /* the statistics of the input count */
    cfx_value momentum, mean, var;
} norm;

static cfx_status read_norm(cfxi_lower *l, cfx_node *n, bool batch, norm *out)
{
    const bool training = cfxi_lower_flag(l, n, "training");
    const bool track = cfxi_lower_flag(l, n, "track_running_stats");
    *out = (norm){.mean = cfx_value_none(), .var = cfx_value_none()};
    if (track || !training) {
        out->mean = cfxi_lower_attribute(l, n, "running_mean");
        out->var = cfxi_lower_attribute(l, n, "running_var");
    }
    out->momentum = cfxi_lower_attribute(l, n, "momentum");
    CFX_TRY(l->err->status);
    if (batch && training && track)
        CFX_TRY(count_batch(l, n, &out->momentum));
    if (cfxi_lower_value_is_none(out->momentum))
        out->momentum = cfx_value_float(0);
    const bool none = cfxi_lower_value_is_none(out->mean) && cfxi_lower_value_is_none(out->var);
    out->use_input = training || (batch ? none : !track);
    return CFX_OK;
}

static cfx_status lower_norm(cfxi_lower *l, cfx_node *n, cfx_operator op, cfx_value x, norm s,
                             cfx_value *result)
{
    const cfx_value args[] = {
        x,
        cfxi_lower_attribute(l, n, "weight"),
        cfxi_lower_attribute(l, n, "bias"),
        s.mean,
        s.var,
        cfx_value_bool(s.use_input),
        s.momentum,
        cfxi_lower_attribute(l, n, "eps"),
        cfx_value_bool(false),
    };
    if (!result)
        return cfxi_lower_finish(l, n, op, args, sizeof args / sizeof *args);
    *result = cfxi_lower_row(l, n, op, args, sizeof args / sizeof *args);
    return l->err->status;
}

static cfx_status batch_norm(cfxi_lower *l, cfx_node *n)
{
    norm s;
    CFX_TRY(read_norm(l, n, true, &s));
    return lower_norm(l, n, CFX_OPID_batch_norm, cfxi_lower_argument(n, 0, "input"), s, NULL);
}

/* An input may lack the batch, which only its dimensions tell: it is seen as a batch of one, for
 * which sizes are counted from the end, and the result as the input. */
static cfx_status instance_norm(cfxi_lower *l, cfx_node *n, int64_t dims)
{
    norm s;
    cfx_value sizes[5] = {cfx_value_int(-1)};
    const cfx_value x = cfxi_lower_argument(n, 0, "input");
    CFX_TRY(read_norm(l, n, false, &s));
    for (int64_t i = 0; i <= dims; i++)
        sizes[1 + i] = cfxi_lower_size(l, n, x, i - dims - 1);
    const cfx_value batch = cfxi_lower_reshape(l, n, x, sizes, (size_t)dims + 2);
    cfx_value back[] = {cfx_value_invalid(), x};
    CFX_TRY(lower_norm(l, n, CFX_OPID_instance_norm, batch, s, &back[0]));
    return cfxi_lower_finish(l, n, CFX_OPID_view_as, back, 2);
}

static cfx_status instance_norm1d(cfxi_lower *l, cfx_node *n) { return instance_norm(l, n, 1); }
static cfx_status instance_norm2d(cfxi_lower *l, cfx_node *n) { return instance_norm(l, n, 2); }
static cfx_status instance_norm3d(cfxi_lower *l, cfx_node *n) { return instance_norm(l, n, 3); }

/* ---- convolution --------------------------------------------------------------------------- */

/* With a padding other than zeros the input is padded first. */
static cfx_status lower_conv(cfxi_lower *l, cfx_node *n, cfx_operator op, size_t dims)
{
    const cfx_value zeros[] = {cfx_value_int(0), cfx_value_int(0), cfx_value_int(0)};
    const cfx_value mode = cfxi_lower_attribute(l, n, "padding_mode");
    CFX_TRY(l->err->status);
    if (mode.kind != CFX_KIND_STR || strcmp(cfx_value_text(mode, NULL), "zeros") == 0) {
        cfx_value_discard(l->g, mode);
        return cfxi_lower_as(l, n, op, NULL);
    }
    const cfx_value pad[] = {cfxi_lower_argument(n, 0, "input"),
                             cfxi_lower_attribute(l, n, "_reversed_padding_repeated_twice"), mode};
    const cfx_value args[] = {
        cfxi_lower_row(l, n, CFX_OPID_pad, pad, 3),
        cfxi_lower_attribute(l, n, "weight"),
        cfxi_lower_attribute(l, n, "bias"),
        cfxi_lower_attribute(l, n, "stride"),
        cfx_value_list(l->g, zeros, dims, l->err),
        cfxi_lower_attribute(l, n, "dilation"),
        cfxi_lower_attribute(l, n, "groups"),
    };
    return cfxi_lower_finish(l, n, op, args, sizeof args / sizeof *args);
}

static cfx_status conv1d(cfxi_lower *l, cfx_node *n)
{
    return lower_conv(l, n, CFX_OPID_conv1d, 1);
}

static cfx_status conv2d(cfxi_lower *l, cfx_node *n)
{
    return lower_conv(l, n, CFX_OPID_conv2d, 2);
}

static cfx_status conv3d(cfxi_lower *l, cfx_node *n)
{
    return lower_conv(l, n, CFX_OPID_conv3d, 3);
}

/* ---- the table ----------------------------------------------------------------------------- */

typedef struct special {
    const char *class_name;
    cfxi_special_fn *lower;
} special;

static const special specials[] = {
    {"BatchNorm1d", batch_norm},
    {"BatchNorm2d", batch_norm},
    {"BatchNorm3d", batch_norm},
    {"SyncBatchNorm", batch_norm},
    {"InstanceNorm1d", instance_norm1d},
    {"InstanceNorm2d", instance_norm2d},
    {"InstanceNorm3d", instance_norm3d},
    {"Conv1d", conv1d},
    {"Conv2d", conv2d},
    {"Conv3d", conv3d},
    {"LSTM", cfxi_lower_lstm},
    {"GRU", cfxi_lower_gru},
    {"RNN", cfxi_lower_rnn},
    {"LSTMCell", cfxi_lower_lstm_cell},
    {"GRUCell", cfxi_lower_gru_cell},
    {"RNNCell", cfxi_lower_rnn_cell},
    {"MultiheadAttention", cfxi_lower_attention},
    {"TransformerEncoderLayer", cfxi_lower_encoder_layer},
    {"TransformerEncoder", cfxi_lower_encoder},
    {"TransformerDecoderLayer", cfxi_lower_decoder_layer},
    {"TransformerDecoder", cfxi_lower_decoder},
    {"Transformer", cfxi_lower_transformer},
};

cfx_status cfxi_lower_special(cfxi_lower *l, cfx_node *n, const char *class_name, bool *done)
{
    static const char home[] = "torch.nn.";
    *done = false;
    if (strncmp(class_name, home, sizeof home - 1) != 0)
        return cfxi_lower_reference(l, n, class_name, done);
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (strcmp(class_name + sizeof home - 1, specials[i].class_name) == 0) {
            *done = true;
            return specials[i].lower(l, n);
        }
    return CFX_OK;
}
