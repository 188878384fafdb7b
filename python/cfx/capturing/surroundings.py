"""What a program can change outside of its module: globals, closures, default arguments.

A graph cannot do that. So whatever a run changed there is put back, and the capture fails with the
name of what was changed; but for what looks like a cache: a dict that only got more entries, none
of which is of the run.
"""
import collections
import functools
import inspect
import operator
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .._glue import scripting
from .caches import MAY_BE_CACHES, CachedCalls, cache_of
from .guards import CaptureError, line_of, program_line
from .numbers import SYMBOLS
from .._glue.structure import LIBRARIES
from .undo import Contents, is_holder, same
from .witness import Witness

_MOST = 3000  # functions that are looked at
_PLAIN = (int, float, bool, str, bytes, type(None), complex)


class _Name(NamedTuple):
    """A variable outside of functions: where it is, and how errors call it."""

    space: Any  # a dict of globals, or a cell
    key: str
    text: str
    code: types.CodeType  # of a function that has it

    @property
    def line(self) -> str:
        return f"{line_of(self.code, self.key)}: "

    def value(self) -> Any:
        if isinstance(self.space, dict):
            return self.space.get(self.key, ...)
        try:
            return self.space.cell_contents
        except ValueError:
            return ...

    def assign(self, value: Any) -> None:
        if isinstance(self.space, dict):
            self.space[self.key] = value
        elif value is not ...:
            self.space.cell_contents = value


class _Answers(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return type(*args, **kwargs)
        found = args[0].__class__ if isinstance(args[0], SYMBOLS) else type(args[0])
        if found is Witness:
            return torch.Tensor
        return cls if found is type else found

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, value: Any) -> bool:
        return issubclass(value, type)

    def __repr__(cls) -> str:
        return repr(type)


class TypeOf(metaclass=_Answers):
    """`type` for the functions of a program that is captured: numbers of the graph are of the types
    int and float, tensors of it of torch.Tensor."""


class Types:
    """The globals of the functions that call `type`; installed as hooks of functions are."""

    def __init__(self) -> None:
        self.spaces: dict[int, dict[str, Any]] = {}

    def install(self) -> None:
        for names in self.spaces.values():
            names["type"] = TypeOf

    def remove(self) -> None:
        for names in self.spaces.values():
            names.pop("type", None)


class Surroundings:
    """The variables that functions of a program can reach, before a run."""

    def __init__(self, function: Any, root: torch.nn.Module) -> None:
        self.names: dict[tuple[int, str], tuple[_Name, Any]] = {}
        self.contents: dict[int, tuple[str, str, Contents]] = {}
        self.seen: set[int] = set()
        self.changed: list[str] = []  # by the run, with the lines of those who can
        self.todo: list[Any] = [function]
        self.classes: dict[type, dict[str, Any]] = {}
        self.line = program_line(function)
        self.iterators: list[tuple[str, Any, Any]] = []
        self.caches: list[CachedCalls] = []
        self.types = Types()
        for module in root.modules():
            self._look_at_class(type(module))
            for name, value in vars(module).items():
                self._advance(value, f"the position of {name}, an iterator")
                self._note_cache(value, functools.partial(module.__dict__.__setitem__, name))
        self._hold(getattr(function, "__self__", function), "an attribute of the program")
        while self.todo and len(self.seen) < _MOST:
            self._look(self.todo.pop())

    def _look(self, function: Any) -> None:
        function = getattr(function, "__func__", function)
        if hasattr(function, "__wrapped__"):
            function = inspect.unwrap(function, stop=self._note_layer)
        if not isinstance(function, types.FunctionType) or id(function) in self.seen:
            return
        code = function.__code__
        if not scripting.script_is_users(code.co_filename):
            return
        self.seen.add(id(function))
        name = function.__qualname__
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._hold(value, f"a default argument of {name}", f"{line_of(code)}: ")
        for key, cell in zip(code.co_freevars, function.__closure__ or ()):
            self._note(_Name(cell, key, f"{key}, a variable around {name}", code))
        if "type" in code.co_names and "type" not in function.__globals__:
            self.types.spaces[id(function.__globals__)] = function.__globals__
        for key in code.co_names:
            if key in function.__globals__:
                self._note(_Name(function.__globals__, key, f"the global variable {key}", code))

    def _note_layer(self, function: Any) -> bool:
        """Looks for caches in what a decorator has made of a function."""
        if isinstance(function, types.FunctionType) and id(function) not in self.seen:
            for key, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                name = _Name(cell, key, "", function.__code__)
                self._note_cache(name.value(), name.assign)
        return False

    def _note_cache(self, value: Any, assign: Callable[[Any], None]) -> None:
        cache = cache_of(value) if type(value) in MAY_BE_CACHES else None
        if cache is not None:
            self.caches.append(CachedCalls(value, cache, assign))
            self.todo.append(cache.__wrapped__)

    def _note(self, name: _Name) -> None:
        key = id(name.space), name.key
        value = name.value()
        if key in self.names or value is ...:
            return
        self._note_cache(value, name.assign)
        if isinstance(value, (types.FunctionType, types.MethodType)):
            self.todo.append(value)
        elif isinstance(value, type):
            self._look_at_class(value)
        elif not isinstance(value, types.ModuleType):
            self.names[key] = name, value
            self._hold(value, name.text, name.line)

    def _look_at_class(self, cls: type) -> None:
        for base in cls.__mro__:
            if base in self.classes or base.__module__.partition(".")[0] in LIBRARIES:
                continue
            own = {k: v for k, v in vars(base).items() if not k.startswith("__")}
            self.classes[base] = {k: v for k, v in own.items() if type(v) in _PLAIN}
            for key, value in own.items():
                self._note_cache(value, functools.partial(setattr, base, key))
                if isinstance(value, (types.FunctionType, staticmethod, classmethod)):
                    self.todo.append(value)
                else:
                    self._hold(value, f"{key}, an attribute of the class {base.__qualname__}")

    def _advance(self, value: Any, text: str) -> None:
        if hasattr(type(value), "__next__") and not isinstance(value, torch.nn.Module):
            self.iterators.append((text, value, _position(value)))

    def _hold(self, value: Any, text: str, line: str = "") -> None:
        self._advance(value, f"the position of an iterator, {text}")
        own = type(value).__module__.partition(".")[0] not in LIBRARIES
        if not is_holder(value) or id(value) in self.contents or not (
                own or type(value) in (list, dict, set, bytearray, collections.deque)):
            return
        self.contents[id(value)] = text, line or self.line, Contents(value)

    def _covered(self, cls: type) -> list[str]:
        """Plain attributes that a class has got since, in the place of those of a base class."""
        inherited = {key for base in cls.__mro__[1:] for key in self.classes.get(base, ())}
        return [key for key, value in vars(cls).items()
                if key in inherited and key not in self.classes[cls] and type(value) in _PLAIN]

    def install(self) -> None:
        pass

    def remove(self) -> None:
        """Undoes what the run changed, and notes what that was."""
        changed = []
        for text, line, contents in self.contents.values():
            if contents.changed():
                if not _is_cache(contents):
                    changed.append(f"{line}the program changes {text}")
                if not _is_cache(contents) or _of_run(contents.holder):
                    contents.put_back()
        for cls, own in self.classes.items():
            for key, value in own.items():
                if not same(vars(cls).get(key, ...), value):
                    changed.append(f"{self.line}the program changes {key}, an attribute of the "
                                   f"class {cls.__qualname__}")  # fmt: skip
                    setattr(cls, key, value)
            for key in self._covered(cls):
                changed.append(f"{self.line}the program changes {key}, an attribute of the class "
                               f"{cls.__qualname__}")  # fmt: skip
                delattr(cls, key)
        changed += [f"{self.line}the program changes {text}"
                    for text, value, at in self.iterators if _position(value) != at]
        for name, before in self.names.values():
            now = name.value()
            if not same(now, before) and (type(before) in _PLAIN or _of_run([now])):
                changed.append(f"{name.line}the program changes {name.text}")
                name.assign(before)
        self.changed = changed

    def check(self) -> None:
        if self.changed:
            raise CaptureError(f"{self.changed[0]}, which a graph cannot do; keep it in an "
                               "attribute of the module, or pass it as an argument")  # fmt: skip


def _position(iterator: Any) -> Any:
    """Something that changes when an iterator is advanced, for those of Python's own."""
    frame = getattr(iterator, "gi_frame", ...)
    if frame is not ...:
        return frame and frame.f_lasti
    return repr(iterator), operator.length_hint(iterator, -1)


def _is_cache(contents: Contents) -> bool:
    """Whether a dict only got more entries, which do not come from the run."""
    if not isinstance(contents.holder, dict) or _of_run(contents.holder):
        return False
    now = contents.holder
    return all(key in now and same(now[key], old) for key, old in contents.before.items())


def _of_run(container: Any) -> bool:
    """Whether tensors or numbers of a run are in a container."""
    values = container.values() if isinstance(container, dict) else container
    return any(isinstance(value, (Witness, *SYMBOLS)) or (
        isinstance(value, (list, tuple, dict)) and _of_run(value)) for value in values)  # fmt: skip
