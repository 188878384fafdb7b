/* reference_layers.c - calls of layers become calls of functions with dequantized weights.
 *
 *     before                            after
 *     %fc = call_module[target=fc](%x)  %fc_weight_int8 = get_attr[target=fc.weight_int8]()
 *                                       ...
 *                                       %fc_bias = get_attr[target=fc.bias]()
 *                                       %fc = call_function[target=torch.nn.functional.linear](
 *                                           %x, %dequantize_per_channel, %fc_bias)
 *
 * The node stays, with its name, users and location.
 */
#include "reference_impl.h"

#define F "torch.nn.functional."

/* The function of a layer: after the input, weight and bias it takes these attributes; with a dot,
 * what is passed to the layer. */
typedef struct layer {
    cfx_operator op;
    const char *function;
    const char *attributes;
    bool bias;
} layer;

static const layer layers[] = {
    {CFX_OPID_linear, F "linear", "", true},
    {CFX_OPID_conv1d, F "conv1d", "stride padding dilation groups", true},
    {CFX_OPID_conv2d, F "conv2d", "stride padding dilation groups", true},
    {CFX_OPID_conv3d, F "conv3d", "stride padding dilation groups", true},
    {CFX_OPID_conv_transpose1d, F "conv_transpose1d",
     "stride padding output_padding groups dilation", true},
    {CFX_OPID_conv_transpose2d, F "conv_transpose2d",
     "stride padding output_padding groups dilation", true},
    {CFX_OPID_conv_transpose3d, F "conv_transpose3d",
     "stride padding output_padding groups dilation", true},
    {CFX_OPID_embedding, F "embedding",
     "padding_idx max_norm norm_type scale_grad_by_freq sparse", false},
    {CFX_OPID_embedding_bag, F "embedding_bag",
     ".offsets max_norm norm_type scale_grad_by_freq mode sparse .per_sample_weights "
     "include_last_offset padding_idx", false},
};
enum { MOST_ATTRIBUTES = 9, MOST_ARGS = MOST_ATTRIBUTES + 3 };

static const layer *layer_of(cfx_operator op)
{
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (layers[i].op == op)
            return &layers[i];
    return NULL;
}

/* An attribute of the layer, floating; INVALID if there is none or c->err is set. */
static cfx_value attribute(cfxi_convert *c, const char *path, const char *name)
{
    cfx_value v;
    if (cfxi_ops_module_attr(c->modules, c->g, path, name, &v, c->err) != CFX_OK)
        return cfx_value_invalid();
    return v;
}

static bool attribute_is(cfxi_convert *c, const char *path, const char *name, const char *text)
{
    cfx_value v = attribute(c, path, name);
    const char *has = cfx_value_text(v, NULL);
    const bool is = v.kind == CFX_KIND_INVALID || v.kind == CFX_KIND_NONE ||
                    (text && has && strcmp(has, text) == 0);
    cfx_value_discard(c->g, v);
    return is;
}

/* What is passed to the layer, by place or name; None if nothing is. */
static cfx_value passed(const cfx_node *n, size_t place, const char *name)
{
    size_t count;
    const cfx_value *kwargs = cfx_value_items(cfx_node_kwargs(n), &count);
    if (place < cfx_node_num_args(n))
        return cfx_node_arg(n, place);
    for (size_t i = 0; i + 1 < count; i += 2)
        if (strcmp(cfx_value_text(kwargs[i], NULL), name) == 0)
            return kwargs[i + 1];
    return cfx_value_none();
}

const char *cfxi_quantize_layer_refusal(cfxi_convert *c, const cfx_node *n, cfx_operator op)
{
    const char *path = cfxi_quantize_path(n);
    if (!layer_of(op))
        return "its weights have no reference form";
    if (cfx_node_num_inputs(n) != 1 && op != CFX_OPID_embedding_bag)
        return "it is called with more than one tensor";
    if (!attribute_is(c, path, "padding_mode", "zeros"))
        return "its padding is not of zeros";
    if (!attribute_is(c, path, "max_norm", NULL))
        return "it changes its weights when it is called";
    return NULL;
}

static cfx_value bias_of(cfxi_convert *c, cfx_node *n, const char *path)
{
    char full[CFXI_QUANTIZE_MAX_PATH];
    cfx_value bias = attribute(c, path, "bias");
    const bool none = bias.kind == CFX_KIND_NONE || bias.kind == CFX_KIND_INVALID;
    cfx_value_discard(c->g, bias);
    if (none)
        return cfx_value_none();
    cfx_node *reader = cfxi_quantize_join(full, path, ".", "bias")
                           ? cfxi_analysis_add_reader(n, full, c->err) : NULL;
    return reader ? cfx_value_node(reader) : cfx_value_invalid();
}

static size_t arguments(cfxi_convert *c, cfx_node *n, const layer *l, const char *path,
                        cfx_node *weight, cfx_value args[MOST_ARGS])
{
    size_t count = 0, place = 0;
    char name[32];
    args[count++] = passed(n, place++, "input");
    args[count++] = cfx_value_node(weight);
    if (l->bias)
        args[count++] = bias_of(c, n, path);
    for (const char *at = l->attributes; *at;) {
        const size_t size = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        args[count++] = *name == '.' ? passed(n, place++, name + 1) : attribute(c, path, name);
        at += size + (at[size] == ' ');
    }
    return count;
}

cfx_status cfxi_quantize_set_call(cfx_node *n, const char *function, const cfx_value *args,
                                  size_t count, cfx_error *err)
{
    cfx_graph *g = n->graph;
    cfx_value tuple = cfx_value_tuple(g, args, count, err);
    cfx_value none = cfx_value_seq(g, CFX_KIND_DICT, NULL, 0, err);
    cfx_value name = cfx_value_retain(cfx_value_name(g, function, strlen(function), err));
    cfx_status status = CFX_E_NOMEM;
    if (tuple.kind != CFX_KIND_INVALID && none.kind != CFX_KIND_INVALID &&
        name.kind != CFX_KIND_INVALID)
        status = cfx_node_set_args_kwargs(n, tuple, none, err);
    if (status == CFX_OK)
        status = cfx_node_set_op(n, CFX_OP_CALL_FUNCTION, err);
    const cfx_target target = {.object = cfx_value_object(name), .name = function,
                               .size = strlen(function)};
    if (status == CFX_OK)
        status = cfx_node_set_target(n, target, err);
    cfx_value_release(g, name);
    return status;
}

static cfx_status make_call(cfxi_convert *c, cfx_node *n, const char *function,
                            const cfx_value *args, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (args[i].kind == CFX_KIND_INVALID)
            return c->err->status != CFX_OK ? c->err->status
                                            : cfx_error_set(c->err, CFX_E_KEY, "the layer '%.200s' "
                                                            "lacks an attribute of its class",
                                                            cfxi_quantize_path(n));
    return cfxi_quantize_set_call(n, function, args, count, c->err);
}

cfx_status cfxi_quantize_layer(cfxi_convert *c, cfx_node *n, cfx_operator op)
{
    const layer *l = layer_of(op);
    const char *path = cfxi_base_pointers_get(&c->layers, n);
    char observer[CFXI_QUANTIZE_MAX_PATH];
    char base[CFXI_QUANTIZE_MAX_PATH];
    cfx_value args[MOST_ARGS];
    if (!l || !path || !cfxi_quantize_weight_observer(c, path, observer) ||
        !cfxi_quantize_join(base, path, ".", "weight"))
        return CFX_OK;
    const bool look = strstr(observer, "weight_observer") != NULL;
    cfx_node *weight = cfxi_quantize_weight(c, n, (cfxi_weight){base, false}, observer, look);
    if (!weight)
        return cfxi_base_failed(c->err, c->err->status);
    const size_t count = arguments(c, n, l, path, weight, args);
    return make_call(c, n, l->function, args, count);
}
