"""The arguments of a function that is evaluated from its source.

The evaluator gets proxies for tensors and numbers, so it gets copies of the containers that hold
them. What it changes in these, and in other objects that the function can reach from its arguments,
is what the function changes: it is written back, with the tensors and numbers of the run.
"""
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..proxy import Proxy
from .guards import CaptureError
from .numbers import number_of
from .protocol import _pytree
from .undo import Contents, is_holder
from .witness import Witness

_DEPTH = 4  # how far objects are looked into


class Given:
    """Arguments, as the evaluator gets them."""

    def __init__(self, args: tuple, kwargs: dict[str, Any], proxy: Callable[[Any], Any]) -> None:
        self._proxy = proxy
        self._copies: dict[int, Any] = {}  # {id of a container: its copy}
        self._kept: list[tuple[Any, Any]] = []  # containers: what the evaluator got, the program's
        self._others: list[tuple[Any, Any, Any]] = []  # copies that must stay: parts, context
        self._holders: dict[int, Contents] = {}  # objects and containers of the program
        self.args = tuple(map(self._taken, args))
        self.kwargs = {name: self._taken(value) for name, value in kwargs.items()}

    @property
    def containers(self) -> tuple[Any, ...]:
        """What the evaluator must say at the end what it holds: a list that grows in a branch is a
        value of the graph from then on."""
        return tuple(handed for handed, _ in self._kept)

    def _taken(self, value: Any) -> Any:
        """A value whose tensors and numbers are proxies."""
        if isinstance(value, Witness) or number_of(value) is not None:
            return self._proxy(value)
        if id(value) in self._copies:
            return self._copies[id(value)]
        if type(value) in (tuple, torch.Size):
            return tuple(map(self._taken, value))
        if type(value) in _pytree.SUPPORTED_NODES:
            return self._copy(value)
        self._watch(value, _DEPTH)
        return value

    def _copy(self, value: Any) -> Any:
        if type(value) is list:
            made: Any = list(map(self._taken, value))
        elif type(value) is dict:
            made = {key: self._taken(part) for key, part in value.items()}
        else:
            kind = _pytree.SUPPORTED_NODES[type(value)]
            parts, context = kind.flatten_fn(value)
            made = kind.unflatten_fn(list(map(self._taken, parts)), context)
            self._others.append((made, *kind.flatten_fn(made)))
        if is_holder(value):
            self._copies[id(value)] = made
            self._keep(made, value)
        return made

    def _keep(self, handed: Any, value: Any) -> None:
        self._holders[id(value)] = Contents(value)
        if type(value) in (list, dict):
            self._kept.append((handed, value))

    def _watch(self, value: Any, depth: int) -> None:
        """Notes what an object holds, and what is in it. The context of an autograd.Function that
        is looked into is for a backward that nobody will run."""
        if depth == 0 or id(value) in self._holders or not is_holder(value) or isinstance(
            value, torch.autograd.function.FunctionCtx
        ):
            return
        self._keep(value, value)
        for part in self._holders[id(value)].parts():
            self._watch(part, depth - 1)

    def put_back(self) -> None:
        """The evaluation has failed: the function runs as if nobody had evaluated it."""
        for contents in self._holders.values():
            if contents.changed():
                contents.put_back()

    def finish(self, result: Any, kept: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
        """A result of the evaluator with `change(proxy)` for the proxies; likewise in what the
        evaluator has changed."""
        for made, parts, context in self._others:
            now, now_context = _pytree.SUPPORTED_NODES[type(made)].flatten_fn(made)
            if now_context != context or not _all_same(now, parts):
                raise CaptureError(f"the function changes a {type(made).__name__} among its "
                                   "arguments")  # fmt: skip
        replaced = _Replaced({id(handed): value for handed, value in self._kept}, change)
        for (handed, value), now in zip(self._kept, kept):
            now = change(now) if isinstance(now, Proxy) else now
            parts = now.items() if isinstance(now, dict) else enumerate(now)
            items = {key: replaced(part) for key, part in parts}
            _refill(value, items if isinstance(now, dict) else list(items.values()))
        for contents in self._holders.values():
            if contents.base is None:
                replaced.inside(contents.holder)
        return replaced(result)


def _all_same(these: Any, those: Any) -> bool:
    return len(these) == len(those) and all(a is b for a, b in zip(these, those))


def _refill(container: Any, items: Any) -> None:
    """In place, and only if something has changed."""
    old = Contents(container).before
    of_dict = isinstance(old, dict)
    same_keys = not of_dict or list(old) == list(items)
    if same_keys and _all_same(*((old.values(), items.values()) if of_dict else (old, items))):
        return
    container.clear()
    (container.update if isinstance(old, dict) else container.extend)(items)


class _Replaced:
    """Puts something else in the place of proxies, in containers and objects."""

    def __init__(self, originals: dict[int, Any], change: Callable[[Any], Any]) -> None:
        self.originals, self.change = originals, change
        self.seen: set[int] = set()

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Proxy):
            return self.change(value)
        if id(value) in self.originals:
            return self.originals[id(value)]
        if type(value) is tuple:
            parts = tuple(map(self, value))
            return value if _all_same(parts, value) else parts
        if type(value) in (list, dict):
            return self.inside(value)
        if type(value) in _pytree.SUPPORTED_NODES:
            leaves, spec = _pytree.tree_flatten(value)
            found = list(map(self, leaves))
            return value if _all_same(found, leaves) else _pytree.tree_unflatten(found, spec)
        return self.inside(value) if is_holder(value) else value

    def inside(self, holder: Any) -> Any:
        """Likewise in what a list, a dict or an object holds."""
        if id(holder) in self.seen:
            return holder
        self.seen.add(id(holder))
        for key, part in _parts(holder):
            now = self(part)
            if now is part:
                continue
            if isinstance(holder, (list, dict)):
                holder[key] = now
            else:
                object.__setattr__(holder, key, now)
        return holder


def _parts(holder: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(holder, (list, dict)):
        yield from list(holder.items() if isinstance(holder, dict) else enumerate(holder))
    else:
        yield from list(vars(holder).items())
