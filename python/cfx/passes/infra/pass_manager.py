"""PassManager: runs passes on a module, in an order that satisfies the constraints."""
import copy
import inspect
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from ... import _core
from ..._compatibility import compatibility
from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]
logger = logging.getLogger(__name__)
_Pass = Callable[..., Any]
_Constraint = Callable[[_Pass, _Pass], bool]


def _name(fn: Any) -> str:
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


@compatibility(is_backward_compatible=False)
def pass_result_wrapper(fn: _Pass) -> _Pass:
    """Wraps a pass that changes its module in place into one that returns a PassResult."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped_fn(gm):
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        return PassResult(gm if result is None else result, True)

    wrapped_fn.__name__ = _name(fn)
    return wrapped_fn


def _validate_pass_schedule_constraint(constraint: _Constraint, passes: list[_Pass]) -> None:
    _core._check_pass_order(constraint, passes)


def _topological_sort_passes(passes: list[_Pass], constraints: list[_Constraint]) -> list[_Pass]:
    """The passes in an order that all constraints allow, near the given one."""
    return _core._sort_passes(passes, constraints) if constraints else passes


@compatibility(is_backward_compatible=False)
def this_before_that_pass_constraint(this: _Pass, that: _Pass) -> _Constraint:
    """Returns the constraint that `this` comes before `that`: a function that takes two passes and
    returns whether they may run in this order."""
    return lambda a, b: a != that or b != this


class _Schedule:
    """Passes, and constraints on their order."""

    _validated: bool = False

    def __init__(self, passes: Any = None, constraints: Any = None) -> None:
        self.passes: list[_Pass] = passes or []
        self.constraints: list[_Constraint] = constraints or []

    def add_pass(self, _pass: _Pass) -> None:
        """Adds a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: _Constraint) -> None:
        """Adds a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def _validate(self) -> None:
        """Raises if the passes are in an order that a constraint forbids."""
        for constraint in () if self._validated else self.constraints:
            _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True


@compatibility(is_backward_compatible=False)
class PassManager(_Schedule):
    """Runs passes on a module, in the given order or one that satisfies the constraints; up to
    `steps` times, as long as they change something. With `run_checks_after_each_pass` the graph is
    linted and `check` called after each pass; `suppress_check_failures` only logs the failures. If
    a pass fails, a GraphModule gets back the graph it had before the first pass."""

    steps: int = 1
    validate_constraints = _Schedule._validate

    def __init__(
        self, passes: list[_Pass] | None = None, constraints: list[_Constraint] | None = None,
        steps: int | None = None, run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(passes, constraints)
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def solve_constraints(self) -> None:
        """Sorts the passes into an order that satisfies the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Any], None]) -> None:
        """Adds `check(module)`, which is called before the passes and, if checks are on, after each
        pass."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore

    def check(self, module: Any) -> None: ...

    def _check(self, module: Any, lint: bool) -> None:
        try:
            if lint and isinstance(module, GraphModule):
                module.graph.lint()
            self.check(module)
        except Exception as e:
            if not self.suppress_check_failures:
                raise
            logger.warning("a check failed: %s", e)

    def _run(self, fn: _Pass, module: Any) -> PassResult:
        result = fn(module)
        if not isinstance(result, PassResult):
            raise TypeError(f"The result of the pass {_name(fn)} should be type PassResult."
                            "Please wrap it with pass_result_wrapper()")  # fmt: skip
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self._check(result.graph_module, lint=True)
        return result

    def __call__(self, module: Any) -> PassResult:
        """Runs the passes; an error names the pass, and those that ran before it."""
        if not self._validated:
            self.solve_constraints()
        self._check(module, lint=False)
        kept = copy.deepcopy(module.graph) if isinstance(module, GraphModule) else None
        result, modified = PassResult(module, False), False
        for _ in range(self.steps):
            again = False
            for i, fn in enumerate(self.passes):
                try:
                    result = self._run(fn, result.graph_module)
                except Exception as e:
                    if kept is not None:
                        module.graph = kept
                    before = [_name(done) for done in self.passes[:i]]
                    raise Exception(
                        f"An error occurred when running the '{_name(fn)}' pass after the "
                        f"following passes: {before}\n{type(e).__name__}: {e}"
                    ) from e
                again = again or result.modified
            modified = modified or again
            if not again:
                break
        return PassResult(result.graph_module, modified)
