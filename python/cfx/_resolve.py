"""Objects by qualified name, among what is already loaded: text never makes cfx import a module."""
import builtins
import functools
import operator
import sys
import types

_MISSING = object()


def _attribute(obj, names):
    for name in names:
        obj = getattr(obj, name, _MISSING)
        if obj is _MISSING:
            return None
    return obj


def _dotted(name):
    parts = name.split(".")
    if len(parts) == 1 or parts[:-1] == ["builtins"]:  # types has NoneType and its like
        return getattr(builtins, parts[-1], getattr(types, parts[-1], None))
    if parts[0] == "torch":
        from ._glue import find_torch

        find_torch()
    for end in range(len(parts) - 1, 0, -1):  # the longest prefix that is a module
        module = sys.modules.get(".".join(parts[:end]))
        if module is not None:
            found = _attribute(module, parts[end:])
            if found is not None:
                return found
    return None


def _split(text, separator=","):
    """Splits `a, b[c, d], e` at its outer commas."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return parts


def _argument(text):
    if text == "...":
        return ...
    if text == "None":
        return None
    if text.startswith("[") and text.endswith("]"):
        return [_argument(part) for part in _split(text[1:-1])] if text != "[]" else []
    found = resolve(text)
    if found is None:
        raise LookupError(text)
    return found


def _union(names):
    """What `int | None` stands for, by its members."""
    try:
        return functools.reduce(operator.or_, map(_argument, names))
    except (LookupError, TypeError):
        return None


def resolve(name):
    members = _split(name, "|")
    if len(members) > 1:
        return _union(members)
    if not name.endswith("]") or "[" not in name:
        return _dotted(name)
    base, _, inner = name[:-1].partition("[")
    generic = _dotted(base)
    if generic is None:
        return None
    try:
        args = tuple(_argument(part) for part in _split(inner))
        return generic[args[0] if len(args) == 1 else args]
    except (LookupError, TypeError):
        return None
