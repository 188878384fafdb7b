"""Modes of torch that a program runs in: gradients, inference, autocast, the default dtype.

The contexts that a program enters are in its graph (recorder.py). What it is called in is the
caller's: a graph holds for the autocast and default dtype that it was captured in, since dtypes
that the program has asked for follow from them, and for the grad mode if the program asked for it.
"""
import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

is_grad_enabled, _is_inference = torch.is_grad_enabled, torch.is_inference_mode_enabled
_ASKED = ("is_grad_enabled", "is_inference_mode_enabled")


def autocast() -> Any:
    """What autocast does, for each kind of device; None: nothing."""
    if not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda"):
        return None
    return tuple((device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device),
                  torch.is_autocast_cache_enabled()) for device in ("cpu", "cuda"))  # fmt: skip


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

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """A context in which it is seen whether the program of this thread asks for them."""
        plain = {name: getattr(torch, name) for name in _ASKED}
        thread = threading.get_ident()

        def question(name: str) -> Any:
            def ask() -> bool:
                caller = sys._getframe(1).f_globals.get("__name__")
                if threading.get_ident() == thread and caller != "torch.autograd.grad_mode":
                    self.asked.add(name)
                return plain[name]()

            return ask

        try:
            for name in _ASKED:
                setattr(torch, name, question(name))
            yield
        finally:
            for name, function in plain.items():
                setattr(torch, name, function)
