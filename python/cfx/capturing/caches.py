"""Functions behind functools.lru_cache while a run is captured.

Such a cache keeps results from call to call. A tensor of a run must not get into it, and the sizes
that a run asks with would have to be plain numbers, for they are compared with others. So the
variable or attribute that has the cache has a stand-in for the time of the run.
"""
import functools
from collections.abc import Callable
from typing import Any

from .decide import deciding
from .numbers import number_of
from .witness import Witness


MAY_BE_CACHES = (functools._lru_cache_wrapper, staticmethod, classmethod)


def cache_of(value: Any) -> Any:
    """The cache that a variable or an attribute of a class has; None if it is something else."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    return value if isinstance(value, functools._lru_cache_wrapper) else None


class CachedCalls:
    """The stand-in of a cache, until it is removed. What is asked for with plain values the cache
    itself answers, and the graph has the answer for a constant. What is asked for with sizes or
    tensors of the run is computed by the run, once for the same ones."""

    def __init__(self, value: Any, cache: Any, assign: Callable[[Any], None]) -> None:
        """`value` is the cache, or a method around it; `assign` puts another one in its place."""
        self.value, self.cache, self.assign = value, cache, assign
        self.known: dict[Any, tuple[Any, Any]] = {}  # arguments, so that they stay; result

        self.stand_in = self._make()

    def _make(self) -> Any:
        @functools.wraps(self.cache)
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            return self(args, kwargs)

        for name in ("cache_info", "cache_clear", "cache_parameters"):
            setattr(stand_in, name, getattr(self.cache, name))
        return stand_in if self.value is self.cache else type(self.value)(stand_in)

    def install(self) -> None:
        self.assign(self.stand_in)

    def remove(self) -> None:
        self.assign(self.value)

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        decider = deciding()
        if decider is None:
            return self.cache(*args, **kwargs)
        if not _of_run((args, *kwargs.values())):
            with decider.recorder.undisturbed():
                return self.cache(*args, **kwargs)
        key = _key((args, tuple(kwargs.items())))
        hash(key)  # raises what the cache would raise
        if key not in self.known:
            result = self.cache.__wrapped__(*args, **kwargs)
            self.known[key] = (args, kwargs), result
        return self.known[key][1]


def _of_run(value: Any) -> bool:
    """Whether a value is of the run, or has such a part; what has no hash is not looked into."""
    if isinstance(value, (tuple, frozenset)):
        return any(map(_of_run, value))
    return isinstance(value, Witness) or number_of(value) is not None


def _key(value: Any) -> Any:
    """Numbers are the same if they are the same node."""
    number = number_of(value)
    if number is not None:
        return "number", id(number.node)
    return tuple(map(_key, value)) if isinstance(value, tuple) else value
