"""Layers that learn with quantized weights: the weights are rounded in forward, and the gradient
passes as if they were not (the straight-through estimator of the fake quantization)."""
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights


class QuantizedTraining:
    """A layer of torch.nn that quantizes its weights in forward. With `bn`, the batch-norm behind
    it is part of it: what is quantized are the weights that folding it by its running statistics
    will give, and the result is normalized by the batch as before."""

    float_class: type[nn.Module]
    weight_fake_quant: Any

    @property
    def _norm(self) -> Any:
        modules: Any = self.__dict__["_modules"]
        return modules.get("bn")

    def _apply_weight(self, x: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        raise NotImplementedError

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        layer: Any = self
        norm = self._norm
        if norm is None:
            return self._apply_weight(x, self.weight_fake_quant(layer.weight), layer.bias)
        deviation = torch.sqrt(norm.running_var + norm.eps)
        factor = (1.0 if norm.weight is None else norm.weight) / deviation
        by_row = [-1] + [1] * (layer.weight.dim() - 1)
        by_channel = [1, -1] + [1] * (layer.weight.dim() - 2)
        weight = self.weight_fake_quant(layer.weight * factor.reshape(by_row))
        y = self._apply_weight(x, weight, None) / factor.reshape(by_channel)
        if layer.bias is not None:
            y = y + layer.bias.reshape(by_channel)
        return norm(y)

    def to_float(self) -> nn.Module:
        """The layer for inference, with the batch-norm in its weights; it keeps its
        `weight_fake_quant`, which converting asks."""
        layer: Any = self
        cls: Any = self.float_class
        plain = cls.__new__(cls)
        nn.Module.__init__(plain)
        plain.__dict__.update(
            {k: v for k, v in layer.__dict__.items() if not k.startswith("_") or k == "_reversed_"
             "padding_repeated_twice"})  # fmt: skip
        weight, bias = layer.weight, layer._parameters.get("bias")
        norm = self._norm
        if norm is not None:
            fold = fuse_linear_bn_weights if isinstance(layer, nn.Linear) else fuse_conv_bn_weights
            weight, bias = fold(weight, bias, norm.running_mean, norm.running_var, norm.eps,
                                norm.weight, norm.bias)  # fmt: skip
        plain.weight = weight
        if "bias" in layer._parameters:
            plain.bias = bias
        plain.weight_fake_quant = self.weight_fake_quant
        plain.train(layer.training)
        return plain


class Linear(QuantizedTraining, nn.Linear):
    float_class = nn.Linear

    def _apply_weight(self, x: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        return F.linear(x, weight, bias)


class _Conv(QuantizedTraining):
    def _apply_weight(self, x: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        layer: Any = self
        return layer._conv_forward(x, weight, bias)


class Conv1d(_Conv, nn.Conv1d):
    float_class = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):
    float_class = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):
    float_class = nn.Conv3d


class _ConvTranspose(QuantizedTraining):
    def _apply_weight(self, x: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        layer: Any = self
        function = getattr(F, f"conv_transpose{weight.dim() - 2}d")
        return function(x, weight, bias, layer.stride, layer.padding, layer.output_padding,
                        layer.groups, layer.dilation)  # fmt: skip


class ConvTranspose1d(_ConvTranspose, nn.ConvTranspose1d):
    float_class = nn.ConvTranspose1d


class ConvTranspose2d(_ConvTranspose, nn.ConvTranspose2d):
    float_class = nn.ConvTranspose2d


class ConvTranspose3d(_ConvTranspose, nn.ConvTranspose3d):
    float_class = nn.ConvTranspose3d


class Embedding(QuantizedTraining, nn.Embedding):
    float_class = nn.Embedding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight_fake_quant(self.weight)
        return F.embedding(x, weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)  # fmt: skip


_CLASSES: tuple[Any, ...] = (Linear, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d,
                             ConvTranspose3d, Embedding)  # fmt: skip


def trained_layer(layer: nn.Module, norm: nn.Module | None, qconfig: Any) -> nn.Module:
    """The layer as one that learns with quantized weights; it has the parameters of `layer`."""
    for cls in _CLASSES:
        if type(layer) is cls.float_class:
            break
    else:
        raise TypeError(f"{type(layer).__name__} cannot be trained with quantized weights; give it "
                        "a rule with the QConfig None")  # fmt: skip
    made = cls.__new__(cls)
    nn.Module.__init__(made)
    made.__dict__.update({k: v for k, v in layer.__dict__.items()})
    made._modules = dict(layer._modules)
    if norm is not None:
        made.add_module("bn", norm)
    made.weight_fake_quant = qconfig.weight()
    return made


def to_float(root: nn.Module) -> None:
    """Puts plain layers in the places of those that learned, everywhere below `root`."""
    done: dict[int, nn.Module] = {}
    for parent in list(root.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, QuantizedTraining):
                if id(child) not in done:
                    done[id(child)] = child.to_float()
                setattr(parent, name, done[id(child)])
