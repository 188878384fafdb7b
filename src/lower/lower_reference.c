/* lower_reference.c - the modules of torch.ao.quantization's reference form.
 *
 *     %fc = call_module[target=fc](%x)                 of torch.ao.nn.quantized.reference.Linear
 *         =>
 *     %fc_weight = get_attr[target=fc.weight]()        float; scale and zero point likewise
 *     %q = quantize_per_channel(%fc_weight, %fc_weight_scale, %fc_weight_zero_point, 0, -128, ...)
 *     %dq = dequantize_per_channel(%q, %fc_weight_scale, %fc_weight_zero_point, 0, -128, ...)
 *     %fc = linear(%x, %dq, %fc_bias)
 *
 * And the pairs that it fuses (ConvReLU2d), which call one child after the other.
 */
#include "lower_impl.h"

#include <stdio.h>

enum { QUANTIZE_ARGS = 7, CONV_ARGS = 7 };

/* What the scale of the weights is a tensor of: 0 dimensions for all, 1 for channels. */
static bool is_per_channel(cfxi_lower *l, cfx_node *n)
{
    return cfxi_lower_int(l, n, "weight_scale.ndim") == 1;
}

/* The weights, rounded to integers and back; INVALID if that fails. */
static cfx_value rounded_weight(cfxi_lower *l, cfx_node *n)
{
    const bool channels = is_per_channel(l, n);
    const int64_t low = cfxi_lower_int(l, n, "weight_quant_min");
    const cfx_dtype dtype = low < 0 ? CFX_DTYPE_INT8 : CFX_DTYPE_UINT8;
    cfx_value args[QUANTIZE_ARGS] = {cfxi_lower_attribute(l, n, "weight"),
                                     cfxi_lower_attribute(l, n, "weight_scale"),
                                     cfxi_lower_attribute(l, n, "weight_zero_point")};
    size_t count = 3;
    if (channels)
        args[count++] = cfx_value_int(cfxi_lower_int(l, n, "weight_axis_int"));
    args[count++] = cfx_value_int(low);
    args[count++] = cfx_value_int(cfxi_lower_int(l, n, "weight_quant_max"));
    args[count++] = cfx_value_dtype(dtype);
    args[0] = cfxi_lower_row(l, n, channels ? CFX_OPID_quantize_per_channel
                                            : CFX_OPID_quantize_per_tensor_tensor, args, count);
    return cfxi_lower_row(l, n, channels ? CFX_OPID_dequantize_per_channel
                                         : CFX_OPID_dequantize_per_tensor_tensor, args, count);
}

static bool is_rounded(cfxi_lower *l, cfx_node *n)
{
    return cfxi_lower_flag(l, n, "is_decomposed") &&
           cfxi_lower_int(l, n, "weight_quant_max") > cfxi_lower_int(l, n, "weight_quant_min");
}

static cfx_status refuse(cfxi_lower *l, cfx_node *n)
{
    CFX_TRY(l->err->status);
    return cfxi_lower_refuse(l, n, "its weights are not quantized in the decomposed form: convert "
                                   "the model with _convert_to_reference_decomposed_fx");
}

static cfx_status linear(cfxi_lower *l, cfx_node *n)
{
    if (!is_rounded(l, n))
        return refuse(l, n);
    const cfx_value args[] = {cfxi_lower_argument(n, 0, "x"), rounded_weight(l, n),
                              cfxi_lower_attribute(l, n, "bias")};
    return cfxi_lower_finish(l, n, CFX_OPID_linear, args, 3);
}

static bool pads_zeros(cfxi_lower *l, cfx_node *n)
{
    const cfx_value mode = cfxi_lower_attribute(l, n, "padding_mode");
    const bool text = mode.kind == CFX_KIND_STR;
    const bool zeros = text && strcmp(cfx_value_text(mode, NULL), "zeros") == 0;
    cfx_value_discard(l->g, mode);
    return zeros;
}

static cfx_status conv(cfxi_lower *l, cfx_node *n, cfx_operator op)
{
    if (!is_rounded(l, n))
        return refuse(l, n);
    const bool zeros = pads_zeros(l, n);
    CFX_TRY(l->err->status);
    if (!zeros)
        return cfxi_lower_refuse(l, n, "reference convolutions pad with zeros only");
    const cfx_value args[CONV_ARGS] = {
        cfxi_lower_argument(n, 0, "x"),
        rounded_weight(l, n),
        cfxi_lower_attribute(l, n, "bias"),
        cfxi_lower_attribute(l, n, "stride"),
        cfxi_lower_attribute(l, n, "padding"),
        cfxi_lower_attribute(l, n, "dilation"),
        cfxi_lower_attribute(l, n, "groups"),
    };
    return cfxi_lower_finish(l, n, op, args, CONV_ARGS);
}

static cfx_status conv1d(cfxi_lower *l, cfx_node *n) { return conv(l, n, CFX_OPID_conv1d); }
static cfx_status conv2d(cfxi_lower *l, cfx_node *n) { return conv(l, n, CFX_OPID_conv2d); }
static cfx_status conv3d(cfxi_lower *l, cfx_node *n) { return conv(l, n, CFX_OPID_conv3d); }

/* ---- pairs --------------------------------------------------------------------------------- */

/* The child "0" of the module that `n` calls, called before `n`, and lowered. */
static cfx_node *call_first(cfxi_lower *l, cfx_node *n, const char *path)
{
    char first[CFX_SPELLING_SIZE * 4];
    const cfx_value args[] = {cfxi_lower_argument(n, 0, "input")};
    const int size = snprintf(first, sizeof first, "%s.0", path);
    const cfx_insert_point old = cfx_graph_insert_point(l->g);
    cfx_node *made = NULL;
    if (size >= (int)sizeof first) {
        cfx_error_set(l->err, CFX_E_LIMIT, "the path '%.100s...' is too long", path);
        return NULL;
    }
    if (cfx_graph_set_insert_point(l->g, (cfx_insert_point){n, false}, l->err) == CFX_OK)
        made = cfx_graph_call(l->g, CFX_OP_CALL_MODULE, first, args, 1, NULL, 0, l->err);
    cfx_graph_set_insert_point(l->g, old, NULL);
    if (!made)
        return NULL;
    cfxi_analysis_place_like(made, n);
    return cfxi_lower_module(l, made) == CFX_OK ? made : NULL;
}

static cfx_status pair(cfxi_lower *l, cfx_node *n)
{
    char second[CFX_SPELLING_SIZE * 4];
    const char *path = n->callee->ref->name->data;
    const int size = snprintf(second, sizeof second, "%s.1", path);
    const cfx_node *first = call_first(l, n, path);
    if (!first)
        return l->err->status;
    const cfx_value input = cfx_value_node((cfx_node *)first);
    cfx_value args = cfx_value_tuple(l->g, &input, 1, l->err);
    cfx_value none = cfx_value_seq(l->g, CFX_KIND_DICT, NULL, 0, l->err);
    if (args.kind == CFX_KIND_INVALID || none.kind == CFX_KIND_INVALID ||
        cfx_node_set_args_kwargs(n, args, none, l->err) != CFX_OK) {
        cfx_value_discard(l->g, args);
        cfx_value_discard(l->g, none);
        return l->err->status;
    }
    const cfx_target target = {.name = second, .size = (size_t)size};
    CFX_TRY(cfx_node_set_target(n, target, l->err));
    return cfxi_lower_module(l, n);
}

/* ---- the table ----------------------------------------------------------------------------- */

#define REFERENCE "torch.ao.nn.quantized.reference.modules."
#define FUSED "torch.ao.nn.intrinsic.modules.fused."

static const struct {
    const char *class_name;
    cfxi_special_fn *lower;
} classes[] = {
    {REFERENCE "linear.Linear", linear}, {REFERENCE "conv.Conv1d", conv1d},
    {REFERENCE "conv.Conv2d", conv2d},   {REFERENCE "conv.Conv3d", conv3d},
    {FUSED "LinearReLU", pair},          {FUSED "ConvReLU1d", pair},
    {FUSED "ConvReLU2d", pair},          {FUSED "ConvReLU3d", pair},
    {FUSED "BNReLU2d", pair},            {FUSED "BNReLU3d", pair},
};

cfx_status cfxi_lower_reference(cfxi_lower *l, cfx_node *n, const char *class_name, bool *done)
{
    *done = false;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(class_name, classes[i].class_name) == 0) {
            *done = true;
            return classes[i].lower(l, n);
        }
    return CFX_OK;
}
