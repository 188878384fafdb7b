"""Arguments by the names of a graph's inputs."""
TYPE_CHECKING = False  # a process that only runs a model does without typing (cfx/__init__.py)
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def bind(names: "Sequence[str]", args: "tuple[Any, ...]", kwargs: "dict[str, Any]",
         default: "Callable[[str], Any]") -> "list[Any]":  # fmt: skip
    """The arguments in the order of the inputs, "*args" and "**kwargs" among them. Those behind
    the last that is given are left out; `default` gives, or refuses, the others."""
    bound: "list[Any]" = list(args)
    rest = dict(kwargs)
    for i, name in enumerate(names):
        if name.startswith("*") and not name.startswith("**") and len(bound) >= i:
            bound[i:] = [tuple(bound[i:])]
    twice = [name for name in names[:len(bound)] if name in rest]
    if twice:
        raise TypeError(f"the input '{twice[0]}' is given twice")
    for name in names[len(bound):]:
        if not rest:
            break
        if name.startswith("**"):
            bound.append(rest)
            rest = {}
        else:
            bound.append(rest.pop(name) if name in rest else default(name))
    if rest:
        raise TypeError(f"unexpected arguments: {', '.join(rest)}")
    return bound
