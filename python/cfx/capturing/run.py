"""One captured run of a model."""
import inspect
from typing import Any

import torch
from torch.utils import _pytree

from .._symbolic_trace import Tracer
from .guards import SIGNS, CaptureError
from .module import CapturedModule
from .recorder import Recorder
from .structure import FixedLeaf, Structure, StructuredCodeGen, is_fixed
from .undo import Undo, copy_inputs, random_states
from .witness import SYMBOLS, Net, Number, Witness


class CaptureTracer(Tracer):
    """Tracer whose values are real: module calls and names of nodes are the Tracer's."""

    recorder: Recorder

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, Witness):
            return a._node
        if isinstance(a, SYMBOLS) and isinstance(a.node, Number):
            return a.node.node
        return super().create_arg(a)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        return attr_val  # found by identity where it is used

    def call_module(self, m, forward, args, kwargs):
        try:
            path = self.path_of_module(m)
        except NameError:  # made during the run
            return forward(*args, **kwargs)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.recorder.call_leaf(path, m, forward, args, kwargs)


class Run:
    """One captured run of a model."""

    def __init__(self, model: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        self.model = model
        signature = inspect.signature(model.forward)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        self.arguments, self.num_positional = bound.arguments, len(args)
        self.keywords = list(kwargs)
        self.structure = Structure(signature)
        self.tracer = CaptureTracer()
        self.undo = Undo(model)
        self.recorder = self.tracer.recorder = Recorder(self.tracer, self.undo)
        self.tracer.create_args_for_root = self._arguments  # type: ignore[method-assign]

    def _placeholders(self) -> list[Any]:
        """The arguments with witnesses in the places of tensors."""
        values = tuple(self.arguments.values())
        names = list(self.arguments)
        pairs, spec = _pytree.tree_flatten_with_path(values)
        structure = self.structure
        structure.in_spec = _pytree.tree_structure(values)
        tensors = iter(copy_inputs([leaf for _, leaf in pairs if isinstance(leaf, torch.Tensor)]))
        leaves: list[Any] = []
        for path, leaf in pairs:
            text = names[path[0].idx] + "".join(map(str, path[1:]))
            if isinstance(leaf, torch.Tensor):
                name = "".join(c if c.isalnum() else "_" for c in text).strip("_")
                node = self.tracer.create_node("placeholder", name, (), {})
                structure.fixed.append(None)
                structure.inputs.append((text, leaf.dtype, leaf.ndim))
                leaves.append(Witness(self.recorder, node, next(tensors)))
            elif is_fixed(leaf):
                structure.fixed.append(FixedLeaf(text, leaf))
                leaves.append(leaf)
            else:
                raise CaptureError(
                    f"the argument {text} is a {type(leaf).__qualname__}, which capture cannot "
                    "look into; register the class with torch.utils._pytree.register_pytree_node")
        return _pytree.tree_unflatten(leaves, structure.in_spec)

    def _as_given(self, values: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments by place and by keyword, as the caller gave them: decorators look."""
        by_name = dict(zip(self.arguments, values))
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, parameter in self.structure.signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                args += by_name[name]
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs |= by_name[name]
            elif name in self.keywords:
                kwargs[name] = by_name[name]
            elif len(args) < self.num_positional:
                args.append(by_name[name])
        return args, kwargs

    def _arguments(self, function, is_module, concrete_args=None):
        def run(*_):
            args, kwargs = self._as_given(self._placeholders())
            with Net(self.recorder):
                result = self.model.forward(*args, **kwargs)
            self.recorder.follow_modes()
            self._keep_state()
            return self._results(result)

        return run, []

    def _keep_state(self) -> None:
        """Buffers that the run assigned are written by the graph."""
        for path, kind, name, old, new in self.undo.assigned():
            full = f"{path}.{name}" if path else name
            fits = (isinstance(new, Witness) and isinstance(old, torch.Tensor)
                    and new._real.shape == old.shape and new._real.dtype == old.dtype)  # fmt: skip
            if kind != "buffer" or not fits:
                raise CaptureError(
                    f"the model assigns {full}, which the graph cannot do; keep it in a buffer of "
                    "the same shape and dtype (register_buffer), or return it")
            self.recorder.method("copy_", self.recorder.constant(old), new._node)

    def _results(self, result: Any) -> tuple:
        leaves, self.structure.out_spec = _pytree.tree_flatten(result)
        nodes = []
        for leaf in leaves:
            computed = isinstance(leaf, (torch.Tensor, *SYMBOLS))
            self.structure.out.append((computed, None if computed else leaf))
            if computed:
                nodes.append(self.recorder.node(leaf))
        return tuple(nodes)

    def _module(self, graph: Any) -> CapturedModule:
        """The module around the graph, with the parts of the model that the graph names."""
        foreign = self.recorder.foreign
        try:
            for name, tensor in foreign.items():
                setattr(self.model, name, tensor)
            return CapturedModule(self.model, graph, type(self.model).__name__)
        finally:
            for name in foreign:
                delattr(self.model, name)

    def run(self) -> CapturedModule:
        with random_states():
            try:
                graph = self.tracer.trace(self.model)
            finally:
                self.undo.put_back()
        graph.set_codegen(StructuredCodeGen(self.structure))
        drop_sizes(graph)
        module = self._module(graph)
        module._guards = tuple(self.recorder.guards)
        module._captured_training = self.model.training
        module.train(self.model.training)
        return module


def drop_sizes(graph: Any) -> None:
    """Removes numbers that were computed but not used."""
    for node in reversed(list(graph.nodes)):
        size = node.op == "call_method" and node.target in (
            "size", "item", "stride", "storage_offset")
        number = node.op == "call_function" and node.target in SIGNS
        if not node.users and (size or number or node.op == "get_attr"):
            graph.erase_node(node)
