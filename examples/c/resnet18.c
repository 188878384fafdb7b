/* resnet18.c - ResNet-18, whole: 1000 classes, pictures of 224 by 224.
 *
 *     make build/examples/c/resnet18 && build/examples/c/resnet18
 *     build/cfx trace --pass fuse_bn --weights r18.safetensors -o r18.ir examples/c/resnet18.c
 *
 * Modules have the names that PyTorch's users know (layer2.0.downsample.0), so a file of weights
 * that was saved there fits: cfx_module_load(s, model, "resnet18.safetensors").
 */
#include <cfx/cfx.h>

/* ---- parts --------------------------------------------------------------------------------- */

static cfx_module *conv(cfx_scope *s, int in, int out, int size, int stride)
{
    return cfx_nn_conv2d(s, in, out, size, .stride = cfx_v(stride), .padding = cfx_v(size / 2),
                         .bias = cfx_v(false));
}

/* ---- a block: two convolutions and a way around them --------------------------------------- */

static cfx_var block_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var y = cfx_call_child(s, self, "bn1", cfx_call_child(s, self, "conv1", x));
    y = cfx_call_child(s, self, "relu", y);
    y = cfx_call_child(s, self, "bn2", cfx_call_child(s, self, "conv2", y));
    if (cfx_module_child(self, "downsample"))
        x = cfx_call_child(s, self, "downsample", x);
    return cfx_call_child(s, self, "relu", cfx_add(s, y, x));
}

static const cfx_class block_class = {.name = "BasicBlock", .forward = block_forward};

/* The way around is a convolution, too, where sizes change. */
static cfx_module *downsample(cfx_scope *s, int in, int out, int stride)
{
    cfx_module *m = cfx_nn_sequential(s);
    cfx_module_add(s, m, "0", conv(s, in, out, 1, stride));
    cfx_module_add(s, m, "1", cfx_nn_batch_norm2d(s, out));
    return m;
}

static cfx_module *block(cfx_scope *s, int in, int out, int stride)
{
    cfx_module *m = cfx_module_new(s, &block_class);
    cfx_module_add(s, m, "conv1", conv(s, in, out, 3, stride));
    cfx_module_add(s, m, "bn1", cfx_nn_batch_norm2d(s, out));
    cfx_module_add(s, m, "relu", cfx_nn_relu(s, .inplace = cfx_v(true)));
    cfx_module_add(s, m, "conv2", conv(s, out, out, 3, 1));
    cfx_module_add(s, m, "bn2", cfx_nn_batch_norm2d(s, out));
    if (stride != 1 || in != out)
        cfx_module_add(s, m, "downsample", downsample(s, in, out, stride));
    return m;
}

static cfx_module *layer(cfx_scope *s, int in, int out, int stride)
{
    cfx_module *m = cfx_nn_sequential(s);
    cfx_module_add(s, m, "0", block(s, in, out, stride));
    cfx_module_add(s, m, "1", block(s, out, out, 1));
    return m;
}

/* ---- the network --------------------------------------------------------------------------- */

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    static const char *const stages[] = {"conv1",  "bn1",    "relu",   "maxpool", "layer1",
                                         "layer2", "layer3", "layer4", "avgpool"};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        x = cfx_call_child(s, self, stages[i], x);
    return cfx_call_child(s, self, "fc", cfx_flatten(s, x, .start_dim = cfx_v(1)));
}

static const cfx_class resnet_class = {.name = "ResNet18", .inputs = "x", .forward = forward};

cfx_module *cfx_model(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &resnet_class);
    cfx_module_add(s, m, "conv1", conv(s, 3, 64, 7, 2));
    cfx_module_add(s, m, "bn1", cfx_nn_batch_norm2d(s, 64));
    cfx_module_add(s, m, "relu", cfx_nn_relu(s, .inplace = cfx_v(true)));
    cfx_module_add(s, m, "maxpool", cfx_nn_max_pool2d(s, 3, .stride = cfx_v(2),
                                                      .padding = cfx_v(1)));
    cfx_module_add(s, m, "layer1", layer(s, 64, 64, 1));
    cfx_module_add(s, m, "layer2", layer(s, 64, 128, 2));
    cfx_module_add(s, m, "layer3", layer(s, 128, 256, 2));
    cfx_module_add(s, m, "layer4", layer(s, 256, 512, 2));
    cfx_module_add(s, m, "avgpool", cfx_nn_adaptive_avg_pool2d(s, 1));
    cfx_module_add(s, m, "fc", cfx_nn_linear(s, 512, 1000));
    cfx_module_train(m, false);
    return m;
}

cfx_var cfx_example(cfx_scope *s) { return cfx_randn(s, cfx_ints(s, 1, 3, 224, 224)); }

#include "five_ways.h"
