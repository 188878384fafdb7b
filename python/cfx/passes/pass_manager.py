"""The older PassManager: runs passes on any object; each pass returns the input of the next one.
cfx.passes.infra.pass_manager has the one for modules."""
import inspect
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from .infra.pass_manager import _Constraint, _Pass, _Schedule
from .infra.pass_manager import this_before_that_pass_constraint

__all__ = [
    "PassManager", "inplace_wrapper", "log_hook", "loop_pass", "this_before_that_pass_constraint",
    "these_before_those_pass_constraint",
]  # fmt: skip
logger = logging.getLogger(__name__)


def inplace_wrapper(fn: _Pass) -> _Pass:
    """Wraps a pass that changes its object in place into one that returns the object."""

    @wraps(fn)
    def wrapped_fn(gm, *args, **kwargs):
        fn(gm, *args, **kwargs)
        return gm

    return wrapped_fn


def log_hook(fn: _Pass, level: int = logging.INFO) -> _Pass:
    """Wraps a pass so that its result is logged. Use it inside inplace_wrapper."""

    @wraps(fn)
    def wrapped_fn(*args, **kwargs):
        result = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return wrapped_fn


def loop_pass(
    base_pass: _Pass, n_iter: int | None = None, predicate: Callable[[Any], bool] | None = None
) -> _Pass:
    """Returns a pass that runs the given one `n_iter` times, or as long as `predicate` holds for
    its result."""
    assert (n_iter is None) != (predicate is None), (
        "Exactly one of `n_iter`or `predicate` must be specified."
    )

    @wraps(base_pass)
    def new_pass(source):
        if predicate is not None:
            while predicate(source):
                source = base_pass(source)
        elif n_iter and n_iter > 0:
            for _ in range(n_iter):
                source = base_pass(source)
        else:
            raise RuntimeError("loop_pass must be given positive int n_iter (given "
                               f"{n_iter}) xor predicate (given {predicate})")  # fmt: skip
        return source

    return new_pass


def these_before_those_pass_constraint(these: _Pass, those: _Pass) -> _Constraint:
    """Like this_before_that_pass_constraint, but compares the wrapped passes."""
    constraint = this_before_that_pass_constraint(these, those)
    return lambda a, b: constraint(inspect.unwrap(a), inspect.unwrap(b))


class PassManager(_Schedule):
    """Runs passes on an object, each with the result of the previous one. The order is checked
    against the constraints first."""

    def __init__(
        self, passes: list[_Pass] | None = None, constraints: list[_Constraint] | None = None
    ) -> None:
        super().__init__(passes, constraints)

    validate = _Schedule._validate

    @classmethod
    def build_from_passlist(cls, passes: list[_Pass]) -> "PassManager":
        return cls(passes)

    def remove_pass(self, _passes: list[str]) -> None:
        """Removes the passes with these names."""
        self.passes = [fn for fn in self.passes if fn.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: _Pass, _replacement: _Pass) -> None:
        """Replaces the passes that have the name of `_target`."""
        name = _target.__name__
        self.passes = [_replacement if fn.__name__ == name else fn for fn in self.passes]
        self._validated = False

    def __call__(self, source: Any) -> Any:
        self.validate()
        for fn in self.passes:
            source = fn(source)
        return source
