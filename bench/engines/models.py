"""The models that engines are compared on, by name: the seven of the design, then others, which
were chosen before anything was measured."""
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import zoo  # noqa: E402

from . import more_models  # noqa: E402

SEVEN = {
    "mlp": "MLP",
    "resnet18": "ResNet-18",
    "resnet50": "ResNet-50",
    "mobilenet_v3": "MobileNetV3",
    "vit_b_16": "ViT-B/16",
    "bert": "BERT-base",
    "gpt2": "GPT-2",
}
OTHERS = {
    "efficientnet_b0": "EffNet-B0",
    "densenet121": "DenseNet-121",
    "convnext": "ConvNeXt-T",
    "shufflenet": "ShuffleNetV2",
    "unet": "U-Net",
    "mixer": "Mixer-S/16",
    "lstm_lm": "LSTM",
    "recommender": "DLRM",
    "decoder": "Llama-like",
    "speech": "wav2vec-like",
}
TITLES = {**SEVEN, **OTHERS}


def widened(name, inputs, batch):
    """The inputs for a batch: the example's rows, each turned by another number of places. The
    language model of LSTMs has its batch, of 4, in the second dimension."""
    dim = 1 if name == "lstm_lm" else 0
    return tuple(torch.cat([x.roll(7 * i, -1 if dim == 0 else 0) for i in range(batch)], dim)
                 for x in inputs)


def settle(model):
    """Norms with statistics that are not the identity, so that folding them has to be right."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)


def make(name, batch):
    """(model in eval mode, inputs). Weights and inputs are the same every time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = zoo.make(name) if name in zoo.MODELS else more_models.MODELS[name]()
        model, inputs = found
        settle(model)
    return model.eval(), widened(name, inputs, batch)
