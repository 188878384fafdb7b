"""How arguments and results are nested, around a graph that works on flat lists."""
import inspect
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree

from .._glue.codegen import CodeGen
from .guards import CaptureError


class FixedLeaf(NamedTuple):
    """A part of the arguments that is not a tensor: the graph holds for this value alone."""

    path: str
    value: Any


def is_fixed(value: Any) -> bool:
    """Whether a value can be compared with what a later call gets."""
    plain = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device,
             torch.layout, torch.memory_format, type)  # fmt: skip
    return isinstance(value, plain)


class Structure:
    """How arguments and results are nested, around a graph that works on flat lists."""

    def __init__(self, signature: inspect.Signature) -> None:
        self.signature = signature
        self.in_spec: Any = None
        self.fixed: list[FixedLeaf | None] = []  # one a leaf; None: a placeholder
        self.inputs: list[tuple[str, torch.dtype, int]] = []  # name, dtype, rank of each tensor
        self.out_spec: Any = None
        self.out: list[tuple[bool, Any]] = []  # for each leaf: is it of the graph, or this value

    def enter(self, values: tuple) -> list[Any]:
        """The placeholders' values; CaptureError if the call differs from the captured one."""
        leaves, spec = _pytree.tree_flatten(values)
        if spec != self.in_spec:
            raise CaptureError(
                "the arguments are nested in another way than they were when the model was "
                "captured; capture it again with such arguments")
        found = []
        for leaf, fixed in zip(leaves, self.fixed):
            if fixed is None:
                found.append(leaf)
            elif type(leaf) is not type(fixed.value) or leaf != fixed.value:
                raise CaptureError(
                    f"{fixed.path} is {leaf!r}, but the model was captured with {fixed.value!r}; "
                    "capture it again with this value")
        for (name, dtype, ndim), value in zip(self.inputs, found):
            if not isinstance(value, torch.Tensor) or (value.dtype, value.ndim) != (dtype, ndim):
                what = f"{value.dtype} with {value.ndim} dimensions" if isinstance(
                    value, torch.Tensor) else repr(value)
                raise CaptureError(
                    f"{name} is {what}, but the model was captured with a tensor of {dtype} with "
                    f"{ndim} dimensions; capture it again with such an input")
        return found

    def leave(self, results: Iterable[Any]) -> Any:
        results = iter(results)
        leaves = [next(results) if computed else value for computed, value in self.out]
        return _pytree.tree_unflatten(leaves, self.out_spec)


class StructuredCodeGen(CodeGen):
    """Generates a function with the signature of the captured one."""

    def __init__(self, structure: Structure) -> None:
        super().__init__()
        self.structure = structure

    def process_inputs(self, *inputs: Any) -> Any:
        bound = self.structure.signature.bind(*inputs)
        bound.apply_defaults()
        return self.structure.enter(tuple(bound.arguments.values()))

    def process_outputs(self, out: Any) -> Any:
        return self.structure.leave(out)

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
        parameters = _parameter_texts(self.structure.signature)
        head = super().gen_fn_def(parameters, maybe_return_annotation, expanded_def=expanded_def)
        names = ", ".join(self.structure.signature.parameters)
        if not free_vars:
            return f"{head}\n    self._enter({names})"
        inputs = ", ".join(var.split(":")[0].strip() for var in free_vars)
        return f"{head}\n    {inputs}, = self._enter({names})"

    def generate_output(self, output_args, *, descs=None, repr_fn=None):
        plain = super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return f"return self._leave({plain.removeprefix('return ')})"


def _parameter_texts(signature: inspect.Signature) -> list[str]:
    """The parameters of a signature, without annotations."""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    texts, starred = [], False
    for p in plain:
        if p.kind is p.KEYWORD_ONLY and not starred:
            texts.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        texts.append(str(p))
    return texts
