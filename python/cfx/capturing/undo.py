"""What a run changes, and how it is put back: attributes, containers, tensors, random states."""
import collections
import contextlib
import importlib
import random
import sys
import types
from collections.abc import Iterator
from typing import Any

import torch

from ..interop import presence
from .guards import CaptureError
from .protocol import undisturbed

# What every module has, which no program changes but by torch's own functions.
_OWN = frozenset(vars(torch.nn.Module())) - {"training"}
_TABLES = ("_parameters", "_buffers", "_modules")
_DEPTH = 6  # how far containers and objects are looked into


_CONTAINERS = (collections.OrderedDict, dict, list, set, collections.deque, bytearray)


class Contents:
    """What a container or an object holds. Methods that a class derived from a container has of its
    own are not asked."""

    def __init__(self, holder: Any) -> None:
        self.holder = holder
        self.base: Any = next((c for c in _CONTAINERS if isinstance(holder, c)), None)
        self.before: Any = self._now()

    def _now(self) -> Any:
        if self.base is None:
            return dict(vars(self.holder))
        if issubclass(self.base, dict):
            return dict(dict.items(self.holder))
        return list(self.base.__iter__(self.holder))

    def parts(self) -> Any:
        return self.before.values() if isinstance(self.before, dict) else self.before

    def changed(self) -> bool:
        now = self._now()
        if isinstance(now, dict):
            return now.keys() != self.before.keys() or not all(
                same(now[key], self.before[key]) for key in now)
        return len(now) != len(self.before) or not all(map(same, now, self.before))

    def put_back(self) -> None:
        if self.base is None:
            vars(self.holder).clear()
            vars(self.holder).update(self.before)
            return
        self.base.clear(self.holder)
        if isinstance(self.before, dict):
            for key, value in self.before.items():
                self.base.__setitem__(self.holder, key, value)
        else:
            fill = self.base.update if self.base is set else self.base.extend
            fill(self.holder, self.before)


def same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and type(a) in (int, float, str, bool, bytes) and a == b)


def is_holder(value: Any) -> bool:
    if isinstance(value, (dict, list, set, collections.deque)):
        return True
    whole = (type, types.FunctionType, types.ModuleType, torch.nn.Module, torch.Tensor)
    return not isinstance(value, whole) and isinstance(getattr(value, "__dict__", None), dict)


def _content(tensor: torch.Tensor) -> Any:
    """A copy of what a tensor holds: of its memory, if several elements are in one place."""
    if tensor.layout is torch.strided and 0 in tensor.stride():
        return tensor.untyped_storage().clone()
    return tensor.detach().clone()


class Undo:
    """The state of a module tree before a run: attributes, and tensors that are about to change."""

    def __init__(self, root: torch.nn.Module) -> None:
        # those of TorchScript have no attributes in Python
        self.modules = {path: m for path, m in root.named_modules() if not presence.is_scripted(m)}
        self.tables = {path: [Contents(vars(m)[name]) for name in _TABLES]
                       for path, m in self.modules.items()}  # fmt: skip
        self.own = {path: dict(vars(m)) for path, m in self.modules.items()}
        self.training = {path: m.training for path, m in self.modules.items()}
        self.holders: dict[int, tuple[str, str, Contents]] = {}  # {id: path, attribute, contents}
        for path, own in self.own.items():
            for name, value in own.items():
                if name not in _OWN:
                    self._watch(path, name, value, _DEPTH)
        self.saved: dict[int, tuple[torch.Tensor, Any]] = {}  # tensors and what they held
        self.storages: dict[int, torch.Tensor] = {}
        self.grads = [(p, p.grad) for p in root.parameters()]
        self.trained = False  # whether the run has computed gradients of parameters
        self.versions: dict[int, int] = {}
        for name, tensor in (*root.named_parameters(), *root.named_buffers()):
            if torch.nn.parameter.is_lazy(tensor):
                raise CaptureError(f"{name} is an uninitialized parameter of a lazy layer; call "
                                   "the model once, which makes it, and capture it then")
            if not tensor.is_inference():
                self.versions[id(tensor)] = tensor._version
            with contextlib.suppress(RuntimeError, NotImplementedError):  # sparse, fake: no storage
                self.storages.setdefault(tensor.untyped_storage().data_ptr(), tensor)

    def _watch(self, path: str, name: str, value: Any, depth: int) -> None:
        if depth == 0 or id(value) in self.holders or not is_holder(value):
            return
        contents = Contents(value)
        self.holders[id(value)] = path, name, contents
        for part in contents.parts():
            self._watch(path, name, part, depth - 1)

    # ---- tensors ----

    def paths(self) -> dict[int, str]:
        """{id: path} of the parameters and buffers of the tree: of tied ones the first path."""
        found: dict[int, str] = {}
        for path, (parameters, buffers, _) in self.tables.items():
            for name, tensor in (*parameters.before.items(), *buffers.before.items()):
                found.setdefault(id(tensor), f"{path}.{name}" if path else name)
        return found

    def before_write(self, tensor: torch.Tensor, outside: bool = False) -> None:
        """Keeps what a tensor of the tree holds, before a call that may write to it. `outside`: it
        is no tensor of the run, wherever it comes from."""
        try:
            owner = self.storages.get(tensor.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):
            return
        if owner is None and outside:
            owner = tensor
        if owner is not None and id(owner) not in self.saved:
            with undisturbed():
                self.saved[id(owner)] = owner, _content(owner)

    def before_module(self, module: torch.nn.Module) -> None:
        """Likewise for a layer: statistics in training mode, an embedding that is renormalised."""
        if presence.is_scripted(module):
            for tensor in module.buffers():
                self.before_write(tensor)
            return
        own = vars(module)
        plain = not presence.is_scripted(module)
        if plain and not own["_modules"] and not own["_buffers"] and "max_norm" not in own:
            return  # most layers
        if getattr(module, "max_norm", None):
            for tensor in module.parameters():
                self.before_write(tensor)
        if any(m.training for m in module.modules()):
            for tensor in module.buffers():
                self.before_write(tensor)

    # ---- attributes ----

    def changed(self) -> Iterator[tuple[str, str]]:
        """Attributes that the run assigned, deleted or changed in place: module path, name. The
        flags `training` are not among them."""
        seen = set()
        for path, module in self.modules.items():
            for contents in (*self.tables[path], None):
                before = self.own[path] if contents is None else contents.before
                now = vars(module) if contents is None else contents.holder
                for name in {**before, **now}:
                    if not same(before.get(name, _OWN), now.get(name, _OWN)):
                        seen.add((path, name))
        seen |= {(path, name) for path, name, c in self.holders.values() if c.changed()}
        yield from sorted(pair for pair in seen if pair[1] not in (*_OWN, "training"))

    def left_in_other_mode(self) -> Iterator[str]:
        """Paths of the modules whose flag `training` the run has changed."""
        for path, module in self.modules.items():
            if module.training != self.training[path]:
                yield path

    def is_changed(self, module: torch.nn.Module, path: str) -> bool:
        """Whether the run has changed a layer, or one in it, so that a call of it is not what the
        graph would call: the flag `training`, parameters and buffers (functional_call)."""
        if not module._modules:
            return self._is_changed(module, path)
        return any(self._is_changed(m, f"{path}.{below}" if below else path)
                   for below, m in module.named_modules())  # fmt: skip

    def _is_changed(self, module: torch.nn.Module, path: str) -> bool:
        if path not in self.own:
            return False
        parameters, buffers, _ = self.tables[path]
        return module.training != self.training[path] or any(
            contents.holder.get(name) is not tensor for contents in (parameters, buffers)
            for name, tensor in contents.before.items())

    def lost(self) -> Iterator[str]:
        """Paths of tensors that the run wrote to without anybody having kept what they held."""
        for path, (parameters, buffers, _) in self.tables.items():
            for name, tensor in (*parameters.before.items(), *buffers.before.items()):
                if tensor is not None and not tensor.is_inference():
                    wrote = tensor._version != self.versions.get(id(tensor), tensor._version)
                    owner = self.storages.get(tensor.untyped_storage().data_ptr(), tensor)
                    if wrote and id(owner) not in self.saved:
                        yield f"{path}.{name}" if path else name

    def install(self) -> None:
        pass

    def remove(self) -> None:
        """Puts everything back."""
        for parameter, grad in self.grads:
            if parameter.grad is not grad:
                self.trained = True
                parameter.grad = grad
        with torch.no_grad(), undisturbed():
            for tensor, content in self.saved.values():
                if isinstance(content, torch.UntypedStorage):
                    tensor.untyped_storage().copy_(content)
                else:
                    tensor.copy_(content)
        for _, _, contents in self.holders.values():
            if contents.changed():
                contents.put_back()
        for path, module in self.modules.items():
            for contents in self.tables[path]:
                if contents.changed():
                    contents.put_back()
            own = module.__dict__
            for name in own.keys() - self.own[path].keys():
                del own[name]
            own.update(self.own[path])


class RandomStates:
    """Random numbers go on afterwards as if nothing had been drawn. Those of Python and numpy are
    not part of a graph: a program that draws them is refused."""

    def __init__(self) -> None:
        self.numpy: Any = None
        if "numpy" in sys.modules:
            self.numpy = importlib.import_module("numpy.random")
            self.of_numpy = self.numpy.get_state(legacy=False)
        self.python = random.getstate()
        self.cpu = torch.get_rng_state()
        cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
        self.cuda = [(device, torch.cuda.get_rng_state(device)) for device in cuda]

    def install(self) -> None:
        pass

    def remove(self) -> None:
        torch.set_rng_state(self.cpu)
        for device, state in self.cuda:
            torch.cuda.set_rng_state(state, device)
        random.setstate(self.python)
        if self.numpy:
            self.numpy.set_state(self.of_numpy)

    def refusal(self) -> str | None:
        drawn = random.getstate() != self.python
        if drawn or (self.numpy and _differs(self.numpy.get_state(legacy=False), self.of_numpy)):
            library = "Python's random" if drawn else "numpy.random"
            return (f"the program draws numbers from {library}, which a graph would take for "
                    "constants; use torch.rand or torch.randint, or wrap the function that draws "
                    "them with cfx.wrap")  # fmt: skip
        return None


def _differs(a: Any, b: Any) -> bool:
    a, b = a["state"], b["state"]
    return a["pos"] != b["pos"] or bool((a["key"] != b["key"]).any())


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
