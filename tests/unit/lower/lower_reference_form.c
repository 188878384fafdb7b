/* lower_reference_form.c - tests of src/lower/lower_reference.c. */
#include "check.h"
#include "modules_fixture.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/lower.h>

#define REFERENCE "torch.ao.nn.quantized.reference.modules."
#define FUSED "torch.ao.nn.intrinsic.modules.fused."

static const char text[] = "graph():\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %conv = call_module[target=conv](%x)  @ model.py:3\n"
                           "  %fc = call_module[target=fc](%conv)\n"
                           "  output(%fc)\n";

/* Tensors as what they are in a host: objects. A text is a new one each time, the caller's. */
static cfx_value get(void *ctx, cfx_graph *g, const char *path, cfx_error *err)
{
    if (strcmp(path, "conv.0.padding_mode") == 0)
        return cfx_value_str(g, "zeros", 5, err);
    const fake_entry *e = fake_find(ctx, path, strlen(path));
    return e && e->rank > 0 ? cfx_value_name(g, "a.tensor", 8, err) : fake_get(ctx, g, path, err);
}

static void add_weights(fake_tree *tree, const char *module, int64_t scales, int64_t low)
{
    char path[64];
    static const char *const tensors[] = {"weight", "weight_scale", "weight_zero_point"};
    const struct { const char *name; cfx_value value; } values[] = {
        {"bias", cfx_value_none()}, {"is_decomposed", cfx_value_bool(true)},
        {"weight_scale.ndim", cfx_value_int(scales)}, {"weight_axis_int", cfx_value_int(0)},
        {"weight_quant_min", cfx_value_int(low)}, {"weight_quant_max", cfx_value_int(low + 255)},
        {"stride", cfx_value_int(1)}, {"padding", cfx_value_int(2)},
        {"dilation", cfx_value_int(1)}, {"groups", cfx_value_int(1)},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        snprintf(path, sizeof path, "%s.%s", module, tensors[i]);
        fake_tensor(tree, path, 0.5, 1);
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        snprintf(path, sizeof path, "%s.%s", module, values[i].name);
        fake_attr(tree, path, values[i].value);
    }
}

static cfx_status lower(const cfx_allocator *a, bool decomposed, cfx_buffer *out, cfx_error *err)
{
    fake_tree tree = {0};
    fake_module(&tree, "conv", FUSED "ConvReLU1d", NULL);
    fake_module(&tree, "conv.0", REFERENCE "conv.Conv1d", NULL);
    fake_module(&tree, "conv.1", "torch.nn.ReLU", NULL);
    fake_attr(&tree, "conv.1.inplace", cfx_value_bool(false));
    fake_module(&tree, "fc", REFERENCE "linear.Linear", NULL);
    add_weights(&tree, "conv.0", 1, -128);
    add_weights(&tree, "fc", 0, 0);
    fake_attr(&tree, "fc.is_decomposed", cfx_value_bool(decomposed));
    cfx_graph *g = cfx_graph_parse(text, strlen(text), a, NULL, err);
    if (!g)
        return err->status;
    cfx_module_tree modules = fake_modules(&tree);
    modules.get = get;
    cfx_status status = cfx_graph_lower(g, &modules, NULL, err);
    if (status == CFX_OK && out)
        status = cfx_graph_text(g, cfx_buffer_sink(out), err);
    cfx_graph_release(g);
    return status;
}

TEST(layers_with_rounded_weights)
{
    cfx_buffer out;
    cfx_error err = {0};
    cfx_buffer_init(&out, NULL);
    CHECK_INT_EQ(CFX_OK, lower(NULL, true, &out, &err));
    CHECK_STR_EQ(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %conv_0_weight = get_attr[target=conv.0.weight]()  @ model.py:3\n"
        "  %conv_0_weight_scale = get_attr[target=conv.0.weight_scale]()  @ model.py:3\n"
        "  %conv_0_weight_zero_point = get_attr[target=conv.0.weight_zero_point]()"
        "  @ model.py:3\n"
        "  %quantize_per_channel = call_function[target=cfx.ops.quantize_per_channel]"
        "(%conv_0_weight, %conv_0_weight_scale, %conv_0_weight_zero_point, 0, -128, 127, "
        "torch.int8)  @ model.py:3\n"
        "  %dequantize_per_channel = call_function[target=cfx.ops.dequantize_per_channel]"
        "(%quantize_per_channel, %conv_0_weight_scale, %conv_0_weight_zero_point, 0, -128, 127, "
        "torch.int8)  @ model.py:3\n"
        "  %conv_0 = call_function[target=cfx.ops.conv1d](%x, %dequantize_per_channel, None, 1, "
        "2, 1)  @ model.py:3\n"
        "  %conv = call_function[target=cfx.ops.relu](%conv_0)  @ model.py:3\n"
        "  %fc_weight = get_attr[target=fc.weight]()\n"
        "  %fc_weight_scale = get_attr[target=fc.weight_scale]()\n"
        "  %fc_weight_zero_point = get_attr[target=fc.weight_zero_point]()\n"
        "  %quantize_per_tensor_tensor = call_function[target=cfx.ops.quantize_per_tensor_tensor]"
        "(%fc_weight, %fc_weight_scale, %fc_weight_zero_point, 0, 255, torch.uint8)\n"
        "  %dequantize_per_tensor_tensor = call_function"
        "[target=cfx.ops.dequantize_per_tensor_tensor](%quantize_per_tensor_tensor, "
        "%fc_weight_scale, %fc_weight_zero_point, 0, 255, torch.uint8)\n"
        "  %fc = call_function[target=cfx.ops.linear](%conv, %dequantize_per_tensor_tensor)\n"
        "  output(%fc)\n", out.data);
    cfx_buffer_free(&out);
}

TEST(weights_of_the_other_form)
{
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_E_TYPE, lower(NULL, false, NULL, &err));
    CHECK(strstr(err.message, "_convert_to_reference_decomposed_fx") != NULL);
    CHECK(strstr(err.message, "%fc") != NULL);
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    (void)arg;
    return lower(a, true, NULL, &err);
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(sweep, NULL) > 20);
}
