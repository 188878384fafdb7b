"""@cfx.function: a function that is captured when it is called."""
import functools
import weakref
from collections.abc import Callable
from typing import Any, overload

from .module import CapturedModule, module_of
from .program import Program
from .run import Options
from .turns import turns


class Function:
    """A function that is captured at its first call, and again for each new kind of input. As a
    method it is captured for each object that it is called on."""

    def __init__(self, function: Callable[..., Any], dynamic: Any = None) -> None:
        functools.update_wrapper(self, function)
        self._function, self._dynamic = function, dynamic
        self._module: CapturedModule | None = None
        self._methods: weakref.WeakKeyDictionary[Any, Function] = weakref.WeakKeyDictionary()

    def __get__(self, owner: Any, cls: Any = None) -> "Function":
        if owner is None:
            return self
        if owner not in self._methods:
            # a weak reference: the function must not keep the object that it belongs to
            method: Any = _Method(self._function, weakref.ref(owner))
            self._methods[owner] = Function(method, self._dynamic)
        return self._methods[owner]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._module is None:
            with turns:
                module = self._capture(args, kwargs)
            return module(*args, **kwargs)
        return self._module(*args, **kwargs)

    def _capture(self, args: tuple, kwargs: dict[str, Any]) -> CapturedModule:
        if self._module is not None:
            return self._module  # another thread was first
        function = self._function
        if isinstance(function, _Method):
            function = function.bound()
        program = Program(function, Options(self._dynamic))
        home = program.root if program.root is not program.empty else None
        self._module = module_of(program, program.capture(args, kwargs), True, home)
        return self._module

    @property
    def captured(self) -> CapturedModule | None:
        """The module with its graphs; None before the first call."""
        return self._module

    def __repr__(self) -> str:
        graphs = 0 if self._module is None else len(self._module.graphs)
        return f"<cfx.function {self._function!r}: {graphs} graphs>"


class _Method:
    """A function and the object that it is a method of."""

    def __init__(self, function: Any, owner: Any) -> None:
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        self.function, self.owner = function, owner

    def bound(self) -> Any:
        return self.function.__get__(self.owner())


@overload
def function(fn: Callable[..., Any], *, dynamic: Any = None) -> Function: ...
@overload
def function(fn: None = None, *, dynamic: Any = None) -> Callable[[Any], Function]: ...
def function(fn: Any = None, *, dynamic: Any = None) -> Any:
    """A decorator for functions and methods, `forward` of a module among them. The first call
    captures the function with its arguments as example (see cfx.capture), and so does each call for
    which no graph holds. The graphs are in `.captured`."""
    if fn is None:
        return functools.partial(function, dynamic=dynamic)
    return Function(fn, dynamic)
