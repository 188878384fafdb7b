"""What a run changes, and how it is put back: attributes, tensors, inputs, random states."""
import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch

from .witness import undisturbed


class Undo:
    """The state of a module tree before a run: attributes, and tensors that are about to change."""

    def __init__(self, root: torch.nn.Module) -> None:
        self.modules = [(path, m, dict(vars(m)), dict(m._parameters), dict(m._buffers))
                        for path, m in root.named_modules()]  # fmt: skip
        self.saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.storages: dict[int, torch.Tensor] = {}
        for tensor in (*root.parameters(), *root.buffers()):
            with contextlib.suppress(RuntimeError, NotImplementedError):  # sparse, fake: no storage
                self.storages.setdefault(tensor.untyped_storage().data_ptr(), tensor)

    def before_write(self, tensor: torch.Tensor) -> None:
        """Keeps what a tensor of the tree holds, before a call that may write to it."""
        try:
            owner = self.storages.get(tensor.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):
            return
        if owner is not None and id(owner) not in self.saved:
            with undisturbed():
                self.saved[id(owner)] = owner, owner.detach().clone()

    def before_module(self, module: torch.nn.Module) -> None:
        for tensor in (*module.buffers(), *module.parameters()):
            if not isinstance(tensor, torch.nn.Parameter) or getattr(module, "max_norm", None):
                self.before_write(tensor)

    def assigned(self) -> Iterator[tuple[str, str, str, Any, Any]]:
        """What the run assigned: module path, kind, name, old value, new value."""
        missing = object()
        for path, module, own, parameters, buffers in self.modules:
            for kind, before, now in (
                ("buffer", buffers, module._buffers),
                ("parameter", parameters, module._parameters),
                ("attribute", own, vars(module)),
            ):
                for name in before.keys() | now.keys():
                    old, new = before.get(name, missing), now.get(name, missing)
                    if old is not new and name not in ("_buffers", "_parameters"):
                        yield path, kind, name, old, new

    def put_back(self) -> None:
        with torch.no_grad(), undisturbed():
            for tensor, content in self.saved.values():
                tensor.copy_(content)
        for _, module, own, parameters, buffers in self.modules:
            for name in vars(module).keys() - own.keys():
                del vars(module)[name]
            vars(module).update(own)
            for now, before in ((module._parameters, parameters), (module._buffers, buffers)):
                now.clear()
                now.update(before)


@contextlib.contextmanager
def random_states() -> Iterator[None]:
    """Random numbers go on afterwards as if nothing had been drawn."""
    numpy = sys.modules.get("numpy.random")
    states = random.getstate(), numpy.get_state() if numpy else None
    cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=cuda):
        try:
            yield
        finally:
            random.setstate(states[0])
            if numpy:
                numpy.set_state(states[1])


def copy_inputs(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Copies that share memory where the originals do."""
    storages: dict[int, Any] = {}
    copies = []
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
            copy = storages.setdefault(storage._cdata, None) or storage.clone()
            storages[storage._cdata] = copy
            made = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
                copy, tensor.storage_offset(), tensor.shape, tensor.stride())
        except (RuntimeError, NotImplementedError, TypeError):  # sparse, quantized, a subclass
            made = tensor.detach().clone()
        copies.append(made.requires_grad_(tensor.requires_grad))
    return copies
