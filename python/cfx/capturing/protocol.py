"""What capture uses of torch that torch does not promise to keep.

A tensor of a run is made with `_make_wrapper_subclass` and answers `__torch_dispatch__`; a number
of a run answers the methods that torch's C++ calls on the nodes of its symbolic integers. None of
this is documented, so it stands here, and a warning names a version of torch that nobody has tried
it with.

Nothing here is for users.
"""
import sys
import warnings
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, is_tensor_method_or_property
from torch.utils import _pytree

from .. import _core
from .._glue.structure import learn_torch

__all__ = ["SYMBOLS", "FunctionModes", "OpOverload", "TorchFunctionMode", "Uncompiled", "_pytree",
           "check_version", "device_mode", "is_tensor_method_or_property", "is_transformed",
           "undisturbed"]  # fmt: skip

TRIED = ((2, 11), (2, 13))  # the first and the last version that capture is tested with
SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
OpOverload = torch._ops.OpOverload
learn_torch(torch, SYMBOLS, _pytree.SUPPORTED_NODES)
is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


def undisturbed() -> Any:
    """A context in which no net is spread: torch computes on real tensors."""
    return torch._C.DisableTorchFunction()


def device_mode(device: torch.device) -> Any:
    """The function mode that makes tensors on a device."""
    return torch.utils._device.DeviceContext(device)


def is_transformed(value: Any) -> bool:
    """Whether a tensor is wrapped by vmap, grad or another transform of torch.func."""
    return isinstance(value, torch.Tensor) and is_wrapped(value)


class FunctionModes:
    """torch's function and dispatch modes: what is on their stacks, and whether they are on."""

    def __init__(self) -> None:
        self.functions = torch._C._len_torch_function_stack()
        self.dispatch = torch._C._len_torch_dispatch_stack()
        self.state = torch._C._get_torch_function_state()

    def push(self, mode: TorchFunctionMode) -> None:
        torch._C._push_on_torch_function_stack(mode)

    def put_back(self) -> None:
        """Takes away what has been pushed since."""
        while torch._C._len_torch_function_stack() > self.functions:
            torch._C._pop_torch_function_stack()
        while torch._C._len_torch_dispatch_stack() > self.dispatch:
            torch._C._pop_torch_dispatch_stack(None)
        torch._C._set_torch_function_state(self.state)


class Uncompiled:
    """While this is installed, functions that torch.compile wrapped run as they were written. If
    nobody has compiled anything, there is nothing to do."""

    def __init__(self) -> None:
        self.frames: Any = sys.modules.get("torch._dynamo.eval_frame")
        self.before = getattr(self.frames, "_stance", None)

    def install(self) -> None:
        if self.before is not None:
            self.frames._stance = type(self.before)("force_eager")

    def remove(self) -> None:
        if self.before is not None:
            self.frames._stance = self.before


def check_version() -> None:
    """Warns, once, of a version of torch that is older or newer than those tried."""
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    if not TRIED[0] <= (major, minor) <= TRIED[1]:
        (a, b), (c, d) = TRIED
        warnings.warn(
            f"cfx.capture is tested with torch {a}.{b} to {c}.{d}, not with {torch.__version__}; "
            "if it fails, use one of those, or cfx.symbolic_trace or cfx.script", stacklevel=3)


# In the order of TORCH_PARTS in python/src/capture/capture.h.
_core._register(
    symbol_classes=SYMBOLS,
    capture_torch=(
        torch._C.DisableTorchFunction,
        torch.Tensor._make_wrapper_subclass,
        torch.Size,
        torch.Generator,
        torch.strided,
        is_wrapped,
        torch.is_grad_enabled,
        torch.is_inference_mode_enabled,
        torch.is_autocast_enabled,
        torch.get_default_dtype,
        torch.get_default_device,
        torch._C._len_torch_function_stack,
    ),
)
