"""Rows that functions of cfx return. They are here because named tuples need typing, which takes
longer to import than everything that a process needs that only runs a model."""
from typing import NamedTuple


class Input(NamedTuple):
    """What is known of one input."""

    name: str
    kind: str  # "tensor", "int", "float", "bool" or "any"
    dtype: str | None  # of a tensor: "float32"; None: any
    sizes: tuple[int | str | None, ...] | None  # of a tensor; a text names a size that may differ
    state: bool  # kept by the model from call to call


class Format(NamedTuple):
    """A row of the table of file formats."""

    name: str
    extension: str
    content: str  # "a graph", "one tensor" or "named tensors"
    summary: str


Input.__module__, Format.__module__ = "cfx.runtime", "cfx.weights"  # where users find them
