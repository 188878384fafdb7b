"""A block of TorchScript as a graph: calls of operators, numbers and lists. What calls with a
meaning of their own become is in script_special.py, and control flow in script_flow.py."""
import operator
from collections.abc import Callable
from typing import Any

import torch

from .._glue.findings import Finding
from ..graph import Graph
from ..node import Node
from . import script_calls as calls
from .script_values import (
    Number, Refused, Unknown, changes_first, is_append, items_of, kinds_of, name_of, nodes_in,
    plain, where_of, without_defaults,
)  # fmt: skip


class Job:
    """What the graphs of one conversion share."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.tensors: dict[str, Any] = {}  # that graphs read, by path
        self.assigned: set[str] = set()  # paths of attributes
        self.written: set[str] = set()  # likewise, that are also written to in place
        self.held: set[int] = set()  # lists and dicts that something else holds

    def path_of(self, tensor: Any, path: str) -> str:
        """Where a tensor is read: a parameter may be known by several names."""
        for known, other in self.tensors.items():
            if other is tensor or (other.data_ptr() == tensor.data_ptr() and tensor.numel() and
                                   other.shape == tensor.shape and other.dtype == tensor.dtype and
                                   other.stride() == tensor.stride()):
                return known
        self.tensors[path] = tensor
        return path


def output_name(node: Any) -> str:
    """What TorchScript calls the first result of a call."""
    return next((name_of(value) for value in node.outputs()), "")


class Block:
    """Converts the calls of a block into a graph."""

    def __init__(self, job: Job, graph: Graph) -> None:
        self.job, self.graph = job, graph
        self.values: dict[int, Any] = {}  # of TorchScript's values
        self.read: dict[str, Node] = {}  # tensors of modules, by path
        self.here: Any = None  # the call that is being converted

    def run(self, block: Any) -> None:
        for node in block.nodes():
            self.convert(node)

    def get(self, value: Any) -> Any:
        return self.values[value.unique()]

    def convert(self, node: Any) -> None:
        outer, self.here = self.here, node
        inputs = [self.get(value) for value in node.inputs()]
        results: Any = [Unknown()] * node.outputsSize()
        try:
            if not any(isinstance(item, Unknown) for item in items_of(inputs)):
                results = self.results(node, inputs)
        except Refused as why:
            self.refuse(node, str(why))
        except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError) as error:
            self.refuse(node, f"{type(error).__name__}: {error}")
        for value, result in zip(node.outputs(), results):
            self.values[value.unique()] = result
        self.here = outer

    def refuse(self, node: Any, why: str) -> None:
        self.job.findings.append(Finding(where_of(node) or "", output_name(node), node.kind(), why))

    # -- nodes

    def call(self, target: Any, args: Any, kwargs: Any = None) -> Node:
        """A call of a function, with the source line of TorchScript."""
        outputs = list(self.here.outputs())
        name = name_of(outputs[0]) if len(outputs) == 1 else None
        node = self.graph.create_node("call_function", target, tuple(args), kwargs or {}, name)
        where = where_of(self.here)
        if where is not None:
            path, _, line = where.rpartition(":")
            node.meta["stack_trace"] = f'  File "{path}", line {line}, in {self.here.kind()}'
        return node

    def tensor(self, tensor: Any, path: str) -> Node:
        path = self.job.path_of(tensor, path)
        if path not in self.read:
            self.read[path] = self.graph.get_attr(path)
        return self.read[path]

    def python(self, function: Callable[..., Any], args: Any) -> Any:
        """A call on numbers: computed if they are known."""
        return function(*args) if not nodes_in(args) else self.call(function, args)

    # -- calls

    def results(self, node: Any, inputs: list[Any]) -> list[Any]:
        kind = node.kind()
        special = getattr(self, "on_" + kind.replace("::", "_"), None)
        if special is not None:
            found: list[Any] = special(node, inputs)
            return found
        if kind in calls.SAME:
            return [inputs[0]]
        if kind in calls.ATTRIBUTES:
            return [self.call(getattr, (inputs[0], kind.removeprefix("prim::")))]
        if changes_first(node):
            return self.change(node, inputs)
        if any(isinstance(x, Number) for x in inputs) and kind in calls.PYTHON:
            return self.on_numbers(kind, inputs)
        if kind in calls.PYTHON and self.is_python(node):
            return [self.python(calls.PYTHON[kind], self.comparable(node, inputs))]
        if (kind.startswith("aten::") and kinds_of(node)[:1] == ["StringType"] and
                hasattr(str, kind.removeprefix("aten::"))):
            return [self.of_text(node, inputs)]
        return self.on_overload(node, inputs)

    def of_text(self, node: Any, inputs: list[Any]) -> Any:
        """A method of str."""
        name = node.kind().removeprefix("aten::")
        inputs, _ = without_defaults(calls.overload_of(node.schema()), inputs, {})
        if nodes_in(inputs):
            return self.graph.call_method(name, tuple(inputs))
        return getattr(str, name)(*inputs)

    @staticmethod
    def is_python(node: Any) -> bool:
        """Whether a call computes with Python's values: Int(x) takes a tensor, and gives none."""
        if node.kind() in ("aten::Int", "aten::Float", "aten::Bool", "aten::__is__",
                           "aten::__isnot__", "aten::__getitem__", "aten::__contains__",
                           "aten::list", "aten::len"):
            return True
        return not any(value.type().kind() == "TensorType"
                       for value in (*node.inputs(), *node.outputs()))

    def comparable(self, node: Any, inputs: list[Any]) -> list[Any]:
        """Element types are numbers in TorchScript; values that cannot be None are not."""
        kind = node.kind()
        if kind in ("aten::__is__", "aten::__isnot__"):
            types = [value.type().kind() for value in node.inputs()]
            sure = [t not in ("OptionalType", "NoneType", "UnionType") for t in types]
            if any(x is None for x in inputs) and any(sure):
                return [0, None]  # two that differ
            return inputs
        if kind in ("aten::eq", "aten::ne") and any(map(self.is_dtype, inputs)):
            return [calls.dtype_of(x) for x in inputs]
        if kind in ("aten::eq", "aten::ne", "aten::add"):  # a shape is a list, too
            return [self.call(list, (x,)) if isinstance(x, Node) and self.is_sizes(value) else x
                    for x, value in zip(inputs, node.inputs())]
        return inputs

    @staticmethod
    def is_sizes(value: Any) -> bool:
        return value.type().kind() == "ListType" and value.node().kind() == "aten::size"

    @staticmethod
    def is_dtype(value: Any) -> bool:
        return isinstance(value, Node) and value.target is getattr and value.args[1] == "dtype"

    def on_numbers(self, kind: str, inputs: list[Any]) -> list[Any]:
        plain = [x.value if isinstance(x, Number) else x for x in inputs]
        if kind in ("aten::Int", "aten::Float", "aten::Bool", "aten::ScalarImplicit",
                    "aten::IntImplicit", "aten::FloatImplicit"):
            return [plain[0]]
        if kind in ("aten::add", "aten::sub") and len(plain) == 3:
            plain = [plain[0], self.python(operator.mul, plain[1:]) if plain[2] != 1 else plain[1]]
        if kind == "aten::div" and len(plain) == 3:
            rounding = {"floor": operator.floordiv, "trunc": operator.floordiv}
            return [Number(self.python(rounding[plain[2]], plain[:2]))]
        return [Number(self.python(calls.PYTHON[kind], plain))]

    def on_overload(self, node: Any, inputs: list[Any]) -> list[Any]:
        schema = node.schema() if node.kind().split("::")[0] not in ("prim",) else ""
        target = calls.overload_of(schema) if schema and "no schema" not in schema else None
        if target is None:
            raise Refused("it has no counterpart in a graph")
        args, kwargs = [], {}
        for param, value in zip(target._schema.arguments, inputs):
            value = calls.token(self.numbers_as_tensors(value), str(param.real_type))
            if param.kwarg_only:
                kwargs[param.name] = value
            else:
                args.append(value)
        if target is torch.ops.aten._convolution.default:
            target, args = torch.ops.aten.convolution.default, args[:9]
        if target is torch.ops.aten.norm.Scalar:
            return [self.call(torch.norm, args)]
        made = self.call(target, *without_defaults(target, args, kwargs))
        count = node.outputsSize()
        return [made] if count == 1 else [self.item(made, i) for i in range(count)]

    def numbers_as_tensors(self, value: Any) -> Any:
        if isinstance(value, Number):
            return self.call(torch.tensor, (value.value,))
        if isinstance(value, list) and any(isinstance(x, Number) for x in value):
            return [x.value if isinstance(x, Number) else x for x in value]
        return value

    def item(self, value: Any, i: Any) -> Any:
        if isinstance(value, Node) or isinstance(i, Node):
            return self.graph.call_function(operator.getitem, (value, i))
        return value[i]

    # -- lists that change

    def hold(self, values: Any) -> None:
        """Notes lists and dicts that something else holds from now on."""
        for value in values:
            if value.type().kind() in ("ListType", "DictType"):
                self.job.held.add(value.unique())

    def change(self, node: Any, inputs: list[Any]) -> list[Any]:
        """A copy with the change takes the place of the list: nobody else may hold it."""
        method, (before, *rest) = calls.LIST_METHODS[node.kind()], inputs
        values = list(node.inputs())
        if (values[0].unique() in self.job.held or
                values[0].node().kind() not in calls.NEW_LISTS):
            raise Refused("it changes a list or dict that something else may hold, too; change "
                           "a copy instead")
        self.hold(values[1:])
        if isinstance(before, Node) or nodes_in(rest[:1]) and not is_append(node):
            after, result = self.changed_node(node, before, rest)
        else:
            after = before.copy()
            result = method(after, *rest)
        self.values[values[0].unique()] = after
        return [result if node.kind() in ("aten::pop", "aten::setdefault") else after
                ][:node.outputsSize()]  # fmt: skip

    def changed_node(self, node: Any, before: Any, rest: list[Any]) -> tuple[Node, Any]:
        if node.kind() == "aten::append":
            return self.call(operator.add, (before, [rest[0]])), None
        if node.kind() == "aten::extend":
            return self.call(operator.add, (before, rest[0])), None
        is_dict = next(iter(node.inputs())).type().kind() == "DictType"
        if is_dict and node.kind() == "aten::_set_item":
            return self.call(operator.or_, (before, self.call(dict, ([tuple(rest)],)))), None
        copy = self.call(dict if is_dict else list, (before,))
        method = calls.LIST_METHODS[node.kind()]
        if method in (operator.setitem, operator.delitem):
            return copy, self.call(method, (copy, *rest))
        return copy, self.graph.call_method(node.kind().removeprefix("aten::"), (copy, *rest))
