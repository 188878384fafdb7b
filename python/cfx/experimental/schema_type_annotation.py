"""Sets the types of nodes from the signatures of their callees."""
import inspect
from typing import Any, Dict, List, Tuple  # noqa: UP035: as torch.fx names them

from .. import Transformer
from ..graph_module import torch
from ..interpreter import _path
from ..node import Argument, Target

__all__ = ["AnnotateTypesWithSchema"]


class AnnotateTypesWithSchema(Transformer):
    """A Transformer that sets the types of nodes: for calls to torch.nn modules and
    torch.nn.functional functions from the signature, for get_attr nodes from the attribute."""

    def __init__(
        self, module: Any, annotate_functionals: bool = True, annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]):
        known = getattr(target, "__module__", None) == "torch.nn.functional"
        type_ = self._extract_python_return_type(target) if known else None
        return self._annotated(super().call_function(target, args, kwargs),
                               self.annotate_functionals, type_)  # fmt: skip

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]):
        module = self.fetch_attr(_path(target))
        known = getattr(torch.nn, type(module).__name__, None) is type(module)
        type_ = self._extract_python_return_type(type(module).forward) if known else None
        return self._annotated(super().call_module(target, args, kwargs),
                               self.annotate_modules, type_)  # fmt: skip

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]):
        type_ = _type_of(self.fetch_attr(_path(target)))
        return self._annotated(super().get_attr(target, args, kwargs),
                               self.annotate_get_attrs, type_)  # fmt: skip

    def _annotated(self, proxy, wanted, type_):
        if wanted and proxy.node.type is None:
            proxy.node.type = type_
        return proxy

    def _extract_python_return_type(self, target: Any) -> Any | None:
        """What the signature of a function says it returns; None if nothing does."""
        try:
            annotation = inspect.signature(target).return_annotation
        except (TypeError, ValueError):
            return None
        return None if annotation is inspect.Signature.empty else annotation


def _type_of(value):
    """The type of an attribute that TorchScript could name, too; None for others."""
    if isinstance(value, torch.Tensor):
        return torch.Tensor
    if type(value) in (bool, complex, float, int, str, type(None)):
        return type(value)
    if type(value) is tuple:
        types = [*map(_type_of, value)]
        return Tuple[tuple(types)] if types and None not in types else None
    if type(value) is dict:
        key, item = _type_of([*value]), _type_of([*value.values()])
        return Dict[key.__args__[0], item.__args__[0]] if key and item else None
    types = {*map(_type_of, value)} if type(value) is list else ()
    return List[types.pop()] if len(types) == 1 and None not in types else None
