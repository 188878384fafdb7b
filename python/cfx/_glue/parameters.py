"""Arguments by the signature of a captured program."""
import inspect
from typing import Any

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_MISSING = inspect.Parameter.empty


class Parameters:
    """Those of a signature, bound as inspect.Signature.bind does, but quickly where each has a name
    and gets one value: a call of a small model takes less time than that does."""

    def __init__(self, signature: inspect.Signature) -> None:
        rows = list(signature.parameters.values())
        self.signature = signature
        self._plain = all(row.kind in _NAMED for row in rows)
        self._most = sum(row.kind is _NAMED[0] for row in rows)  # by position
        self._defaults = tuple(row.default for row in rows)
        self._numbers = {row.name: i for i, row in enumerate(rows)}

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """A value for each parameter; TypeError for what the signature does not take."""
        count = len(args)
        if self._plain and count <= self._most:
            if count == len(self._defaults) and not kwargs:
                return args
            values = [*args, *self._defaults[count:]]
            for name, value in kwargs.items():
                number = self._numbers.get(name, -1)
                if number < count:
                    break  # unknown, or given twice
                values[number] = value
            else:
                if not any(value is _MISSING for value in values):
                    return tuple(values)
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())


def signature_of(parameters: Any) -> inspect.Signature:
    """The signature of the captured program: rows of (name, kind, has a default, default)."""
    made = []
    for name, kind, has_default, default in parameters:
        plain = inspect.Parameter(name, list(inspect._ParameterKind)[kind])
        made.append(plain.replace(default=default) if has_default else plain)
    return inspect.Signature(made)
