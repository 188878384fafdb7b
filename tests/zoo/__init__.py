"""Real architectures in plain PyTorch with random weights: what cfx is tried on.

    model, inputs = zoo.make("bert", small=True)

Sizes are the published ones; `small` keeps the structure and cuts depth, width and images, for
tests that should take a second. Models are in eval mode; weights are the same every time.
"""
import torch

from . import convnet, language, misc, vision

MODELS = {
    "mlp": misc.mlp,
    "resnet18": vision.resnet18,
    "resnet50": vision.resnet50,
    "mobilenet_v3": convnet.mobilenet_v3,
    "efficientnet_b0": convnet.efficientnet_b0,
    "convnext": convnet.convnext,
    "vit_b_16": vision.vit_b_16,
    "swin_t": vision.swin_t,
    "bert": language.bert,
    "gpt2": language.gpt2,
    "llama": language.llama,
    "t5": language.t5,
    "lstm_lm": misc.lstm_lm,
    "unet": misc.unet,
}


def make(name, small=False):
    """(model in eval mode, inputs) of the model of this name."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, inputs = MODELS[name](small)
    return model.eval(), inputs


def trace(fx, model):
    """A GraphModule of `model` by `fx` (cfx or torch.fx), with buffers read where they are used:
    they are sliced by sizes that are not known yet."""

    class Tracer(fx.Tracer):
        proxy_buffer_attributes = True

    return fx.GraphModule(model, Tracer().trace(model))
