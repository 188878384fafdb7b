/* quantize_rules.c - the rules of quantization that a few options stand for. */
#include "capture_impl.h"

#include <cfx/calibrate.h>

static cfx_status check(const cfx_quantize_options *o, cfx_error *err)
{
    if ((unsigned)o->mode >= CFX_QUANTIZE_MODE_COUNT)
        return cfx_error_set(err, CFX_E_VALUE, "there is no mode of quantization %d", (int)o->mode);
    if (o->bits != 0 && o->bits != 4 && o->bits != 8)
        return cfx_error_set(err, CFX_E_VALUE, "weights have 8 or 4 bits, not %d", o->bits);
    if (o->group < 0)
        return cfx_error_set(err, CFX_E_VALUE, "a group of weights has at least 1 element");
    if (o->group > 0 && o->mode != CFX_QUANTIZE_WEIGHTS)
        return cfx_error_set(err, CFX_E_VALUE, "weights in groups are for the mode WEIGHTS: "
                             "products of integers have one scale for each output channel");
    if (o->bits == 4 && o->mode != CFX_QUANTIZE_WEIGHTS)
        return cfx_error_set(err, CFX_E_VALUE, "weights of 4 bits are for the mode WEIGHTS");
    if (o->group > 0 && o->per_tensor)
        return cfx_error_set(err, CFX_E_VALUE, "weights have one scale (per_tensor) or one for "
                             "each group, not both");
    if (o->observer == CFX_OBSERVE_FIXED || o->observer > CFX_OBSERVE_FIXED)
        return cfx_error_set(err, CFX_E_VALUE, "values are observed by MIN_MAX, MOVING_AVERAGE, "
                             "HISTOGRAM or PERCENTILE");
    return CFX_OK;
}

static cfx_quantize_spec weights_of(const cfx_quantize_options *o)
{
    cfx_quantize_spec w;
    cfx_quantize_spec_default(&w, CFX_OBSERVE_MIN_MAX, CFX_DTYPE_INT8);
    w.symmetric = true;
    w.per = o->group > 0 ? CFX_PER_GROUP : o->per_tensor ? CFX_PER_TENSOR : CFX_PER_CHANNEL;
    w.group = o->group;
    if (o->bits == 4) {
        w.low = -8;
        w.high = 7;
    }
    return w;
}

static cfx_quantize_spec values_of(const cfx_quantize_options *o)
{
    static const cfx_observer_kind kinds[] = {CFX_OBSERVE_HISTOGRAM, CFX_OBSERVE_EACH_RUN,
                                              CFX_OBSERVE_NOTHING};
    cfx_quantize_spec x = {.observer = CFX_OBSERVE_NOTHING};
    const bool named = o->mode == CFX_QUANTIZE_STATIC && o->observer != CFX_OBSERVE_NOTHING;
    const cfx_observer_kind kind = named ? o->observer : kinds[o->mode];
    if (kind != CFX_OBSERVE_NOTHING)
        cfx_quantize_spec_default(&x, kind, CFX_DTYPE_UINT8);
    return x;
}

static cfx_status set_all(cfx_qrules *r, const char *const *types, const cfx_qconfig *config,
                          cfx_error *err)
{
    for (; *types; types++)
        CFX_TRY(cfx_qrules_set_type(r, *types, config, err));
    return CFX_OK;
}

/* What is always between 0 and 1, or -1 and 1, is not observed. */
static cfx_status set_bounded(cfx_qrules *r, const cfx_qconfig *config, cfx_error *err)
{
    static const char *const from_zero[] = {"cfx.ops.sigmoid", "cfx.ops.hardsigmoid", NULL};
    static const char *const both[] = {"cfx.ops.tanh", NULL};
    cfx_qconfig fixed = *config;
    cfx_quantize_spec_default(&fixed.activation, CFX_OBSERVE_FIXED, CFX_DTYPE_UINT8);
    fixed.activation.scale = 1.0 / 256;
    fixed.activation.zero = 0;
    CFX_TRY(set_all(r, from_zero, &fixed, err));
    fixed.activation.scale = 2.0 / 256;
    fixed.activation.zero = 128;
    return set_all(r, both, &fixed, err);
}

/* The integers of the input, whichever they are. */
static cfx_status set_shapes(cfx_qrules *r, const cfx_qconfig *config, cfx_error *err)
{
    static const char *const types[] = {"cfx.ops.reshape", NULL};
    cfx_qconfig same = *config;
    same.activation.observer = CFX_OBSERVE_AS_INPUT;
    return set_all(r, types, &same, err);
}

/* A transposed convolution has its output channels second, where groups divide them. */
static cfx_status set_transposed(cfx_qrules *r, const cfx_qconfig *config, cfx_error *err)
{
    static const char *const types[] = {"cfx.ops.conv_transpose1d", "cfx.ops.conv_transpose2d",
                                        "cfx.ops.conv_transpose3d", NULL};
    cfx_qconfig one = *config;
    one.weight.per = CFX_PER_TENSOR;
    return set_all(r, types, &one, err);
}

static cfx_status set_static(cfx_qrules *r, const cfx_qconfig *config, cfx_error *err)
{
    static const char *const floats[] = {"cfx.ops.layer_norm", "cfx.ops.group_norm",
                                         "cfx.ops.instance_norm", "cfx.ops.batch_norm",
                                         "cfx.ops.softmax", "cfx.ops.embedding", NULL};
    CFX_TRY(cfx_qrules_set_global(r, config, err));
    CFX_TRY(set_all(r, floats, NULL, err));
    CFX_TRY(set_bounded(r, config, err));
    CFX_TRY(set_shapes(r, config, err));
    return set_transposed(r, config, err);
}

cfx_status cfx_qrules_set_usual(cfx_qrules *r, const cfx_quantize_options *options, cfx_error *err)
{
    static const cfx_quantize_options none = {.bits = 0};
    static const char *const layers[] = {
        "cfx.ops.linear", "cfx.ops.lstm", "cfx.ops.gru", "cfx.ops.rnn_tanh", "cfx.ops.lstm_cell",
        "cfx.ops.gru_cell", "cfx.ops.rnn_tanh_cell", NULL};
    static const char *const tables[] = {"cfx.ops.embedding", "cfx.ops.embedding_bag", NULL};
    const cfx_quantize_options *o = options ? options : &none;
    CFX_TRY(cfxi_base_expect(r, "rules", err));
    CFX_TRY(check(o, err));
    const cfx_qconfig config = {.activation = values_of(o), .weight = weights_of(o)};
    if (o->mode == CFX_QUANTIZE_STATIC)
        return set_static(r, &config, err);
    if (o->mode == CFX_QUANTIZE_WEIGHTS)
        CFX_TRY(set_all(r, tables, &config, err));
    return set_all(r, layers, &config, err);
}
