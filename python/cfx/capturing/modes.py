"""Modes of torch that a program runs in: gradients, inference, autocast, the default dtype.

The contexts that a program enters are in its graph (recorder.py). What it is called in is the
caller's: a graph holds for the autocast and default dtype that it was captured in, since dtypes
that the program has asked for follow from them, and for the grad mode if the program asked for it.
"""
import sys
import threading
from typing import Any, NamedTuple

import torch

from .protocol import FunctionModes

is_grad_enabled, _is_inference = torch.is_grad_enabled, torch.is_inference_mode_enabled
_ASKED = ("is_grad_enabled", "is_inference_mode_enabled")
_PLAIN = dict(zip(_ASKED, (is_grad_enabled, _is_inference)))
_DEVICES = ("cpu", "cuda")


def autocast() -> Any:
    """What autocast does, for each kind of device; None: nothing."""
    if not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda"):
        return None
    return tuple((device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device),
                  torch.is_autocast_cache_enabled()) for device in _DEVICES)  # fmt: skip


class Modes(NamedTuple):
    """What contexts change."""

    inference: bool
    grad: bool
    autocast: Any


def current_modes() -> Modes:
    return Modes(_is_inference(), is_grad_enabled(), autocast())


class Around:
    """The modes that a program is called in."""

    def __init__(self) -> None:
        self.dtype, self.autocast = torch.get_default_dtype(), autocast()
        self.device = torch.get_default_device()
        self.grad, self.inference = is_grad_enabled(), _is_inference()
        self.asked: set[str] = set()

    def alike(self, other: "Around") -> bool:
        """Whether a graph that holds in these modes holds in the same ones as another."""
        mine, theirs = ((a.dtype, a.device, a.autocast, a.asked) for a in (self, other))
        modes = (self.grad, self.inference) == (other.grad, other.inference)
        return mine == theirs and (modes or not self.asked)

    def refusal(self, gradients: bool = True) -> str | None:
        """Why a graph does not hold in the present modes; None if it does. Without `gradients`, as
        in C, the grad mode does not count."""
        if torch.get_default_dtype() != self.dtype:
            return f"the default dtype is not {self.dtype}, as it was when the model was captured"
        if torch.get_default_device() != self.device:
            return f"the default device is not {self.device}, as it was when it was captured"
        if autocast() != self.autocast:
            return "autocast is not what it was when the model was captured"
        for name, now, before in ((_ASKED[0], is_grad_enabled(), self.grad),
                                  (_ASKED[1], _is_inference(), self.inference)):  # fmt: skip
            if gradients and name in self.asked and now != before:
                return f"torch.{name}() was {before} when the model was captured, which asks for it"
        return None

    # ---- installed: it is seen whether the program of this thread asks for them ----

    def install(self) -> None:
        thread = threading.get_ident()

        def question(name: str, plain: Any) -> Any:
            def ask() -> bool:
                caller = sys._getframe(1).f_globals.get("__name__")
                if threading.get_ident() == thread and caller != "torch.autograd.grad_mode":
                    self.asked.add(name)
                return plain()

            return ask

        for name, plain in _PLAIN.items():
            setattr(torch, name, question(name, plain))

    def remove(self) -> None:
        for name, plain in _PLAIN.items():
            setattr(torch, name, plain)


class ModesKept:
    """Modes that are afterwards as they were, also where the program was interrupted while it
    entered or left a context. Meanwhile there may be more function modes."""

    def __init__(self, *function_modes: Any) -> None:
        self.more = function_modes
        self.dtype, self.modes = torch.get_default_dtype(), current_modes()
        self.autocast = [(device, torch.is_autocast_enabled(device),
                          torch.get_autocast_dtype(device)) for device in _DEVICES]  # fmt: skip
        self.cached, self.nested = torch.is_autocast_cache_enabled(), _nesting()
        self.functions = FunctionModes()

    def install(self) -> None:
        for mode in self.more:
            self.functions.push(mode)

    def remove(self) -> None:
        self.functions.put_back()
        torch.set_default_dtype(self.dtype)
        torch.set_grad_enabled(self.modes.grad)
        for device, enabled, dtype in self.autocast:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(self.cached)
        while _nesting() > self.nested:
            if torch.autocast_decrement_nesting() == 0:
                torch.clear_autocast_cache()


def _nesting() -> int:
    """In how many contexts of autocast this thread is."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()
