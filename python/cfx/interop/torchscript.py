"""Graphs of cfx from TorchScript: modules and functions of torch.jit.script and torch.jit.trace.

Calls are inlined. What is known without running (settings of modules, numbers, None) is computed
while converting, as in cfx.script: a branch on it disappears. Other branches become cfx.cond, loops
become cfx.for_loop and cfx.while_loop. TorchScript's lists can be changed; here a change makes a
new list, which takes the place of the old one, and is a part of a loop's state.

All that cannot be converted is reported together in a ScriptConversionError, with source lines.
"""
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from .. import ops
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from . import script_calls as calls
from .script_values import (
    Context, Number, Object, Refused, Unknown, changes_first, constant_of, find_changed,
    find_free, is_append, is_written, items_of, kinds_of, like, name_of, nodes_in,
    note_attributes, rebuilt, tuple_class, where_of, without_defaults,
)  # fmt: skip

_ENDLESS = 2**62  # the most turns of a `while`


class Unconverted(NamedTuple):
    """A call of TorchScript that has no counterpart."""

    call: str
    where: str | None  # file:line
    why: str


class ScriptConversionError(TypeError):
    """A program of TorchScript cannot be converted; `findings` lists all that is in the way."""

    def __init__(self, findings: list[Unconverted]) -> None:
        self.findings = findings
        rows = [f"{f.where or 'unknown line'}: {f.call}: {f.why}" for f in findings]
        head = f"cannot convert {len(rows)} calls of TorchScript:"
        super().__init__("\n  ".join([head, *rows]))


# ---- one graph ---------------------------------------------------------------------------------


class _Job:
    """What the graphs of one conversion share."""

    def __init__(self) -> None:
        self.findings: list[Unconverted] = []
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


class _Block:
    """Converts the calls of a block into a graph."""

    def __init__(self, job: _Job, graph: Graph) -> None:
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
        self.job.findings.append(Unconverted(node.kind(), where_of(node), why))

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

    # -- constants, attributes, containers

    def on_prim_Constant(self, node: Any, inputs: list[Any]) -> list[Any]:
        value = node.output().toIValue()
        if isinstance(value, torch.Tensor):
            return [self.tensor(value, f"_constant_{len(self.job.tensors)}")]
        return [value]

    def on_prim_Uninitialized(self, node: Any, inputs: list[Any]) -> list[Any]:
        return [None]

    def on_prim_GetAttr(self, node: Any, inputs: list[Any]) -> list[Any]:
        name = node.s("name")
        if not isinstance(inputs[0], Object):
            raise Refused(f"'{name}' is an attribute of an object that is not a module")
        path = inputs[0].at(name)
        return [self.attribute(getattr(inputs[0].module, name), path)]

    def attribute(self, value: Any, path: str) -> Any:
        if isinstance(value, torch.Tensor):
            read = self.tensor(value, path)
            if path in self.job.assigned and path not in self.job.written:
                return self.call(torch.clone, (read,))  # what it is now
            return read
        if path in self.job.assigned:
            raise Refused(f"the program assigns the attribute '{path}', which it reads here")
        if isinstance(value, (torch.nn.Module, torch.ScriptObject)):
            return Object(path, value)
        if isinstance(value, (list, tuple)):
            return like(value, [self.attribute(x, f"{path}_{i}") for i, x in enumerate(value)])
        if isinstance(value, dict):
            return {k: self.attribute(x, f"{path}_{i}") for i, (k, x) in enumerate(value.items())}
        return value

    def on_prim_SetAttr(self, node: Any, inputs: list[Any]) -> list[Any]:
        name, (owner, value) = node.s("name"), inputs
        if isinstance(owner, Context):
            return []
        old = getattr(owner.module, name, None) if isinstance(owner, Object) else None
        if not isinstance(old, torch.Tensor) or not isinstance(value, Node):
            raise Refused(f"it assigns the attribute '{name}', which is not a tensor; register a "
                           "buffer, or return the value")
        path = owner.at(name)
        buffer = self.tensor(old, path)
        if is_written(value, buffer):
            return []
        if path in self.job.written:
            raise Refused(f"the attribute '{name}' is both assigned and written to in place")
        self.call(ops.check_buffer, (buffer, value))
        self.call(torch.ops.aten.copy_.default, (buffer, value))
        return []

    # -- contexts

    def on_prim_CreateObject(self, node: Any, inputs: list[Any]) -> list[Any]:
        kind = str(node.output().type().annotation_str)
        for name, enabled in (("no_grad", False), ("enable_grad", True)):
            if kind.endswith(f"grad_mode.{name}"):
                return [Context(enabled, [])]
        raise Refused(f"it makes an object of the class {kind}")

    def on_prim_Enter(self, node: Any, inputs: list[Any]) -> list[Any]:
        if not isinstance(inputs[0], Context):
            raise Refused("the context is not one of torch.no_grad and torch.enable_grad")
        inputs[0].before.append(self.graph.call_function(torch.is_grad_enabled))
        self.graph.call_function(torch._C._set_grad_enabled, (inputs[0].enabled,))
        return [None] * int(node.outputsSize())

    def on_prim_Exit(self, node: Any, inputs: list[Any]) -> list[Any]:
        before = inputs[0].before.pop()
        self.graph.call_function(torch._C._set_grad_enabled, (before,))
        return [None] * int(node.outputsSize())

    def on_prim_TupleConstruct(self, node: Any, inputs: list[Any]) -> list[Any]:
        self.hold(node.inputs())
        named = tuple_class(node.output().type())
        return [tuple(inputs) if named is None else named(*inputs)]

    def on_prim_ListConstruct(self, node: Any, inputs: list[Any]) -> list[Any]:
        self.hold(node.inputs())
        return [[x.value if isinstance(x, Number) else x for x in inputs]]

    def on_prim_DictConstruct(self, node: Any, inputs: list[Any]) -> list[Any]:
        if nodes_in(inputs[::2]):
            pairs = list(zip(inputs[::2], inputs[1::2]))
            return [self.call(dict, (pairs,))]
        self.hold(node.inputs())
        return [dict(zip(inputs[::2], inputs[1::2]))]

    def on_prim_TupleUnpack(self, node: Any, inputs: list[Any]) -> list[Any]:
        return [self.item(inputs[0], i) for i in range(node.outputsSize())]

    on_prim_ListUnpack = on_prim_TupleUnpack

    def on_prim_TupleIndex(self, node: Any, inputs: list[Any]) -> list[Any]:
        return [self.item(inputs[0], inputs[1])]

    def on_prim_TupleSlice(self, node: Any, inputs: list[Any]) -> list[Any]:
        return [self.item(inputs[0], slice(node.i("beg"), node.i("end")))]

    def on_prim_NumToTensor(self, node: Any, inputs: list[Any]) -> list[Any]:
        return [Number(inputs[0])]

    def on_aten_slice(self, node: Any, inputs: list[Any]) -> list[Any]:
        if next(iter(node.inputs())).type().kind() == "TensorType":
            return self.on_overload(node, inputs)
        return [self.python(operator.getitem, (inputs[0], slice(*inputs[1:])))]

    def of_dict(self, name: str, inputs: list[Any]) -> list[Any]:
        if not isinstance(inputs[0], Node):
            return [list(getattr(inputs[0], name)())]
        return [self.call(list, (self.graph.call_method(name, (inputs[0],)),))]

    def on_aten_keys(self, node: Any, inputs: list[Any]) -> list[Any]:
        return self.of_dict("keys", inputs)

    def on_aten_values(self, node: Any, inputs: list[Any]) -> list[Any]:
        return self.of_dict("values", inputs)

    def on_aten_items(self, node: Any, inputs: list[Any]) -> list[Any]:
        return self.of_dict("items", inputs)

    def on_aten_get(self, node: Any, inputs: list[Any]) -> list[Any]:
        if isinstance(inputs[0], Node) or isinstance(inputs[1], Node):
            return [self.graph.call_method("get", tuple(inputs))]
        return [inputs[0].get(*inputs[1:])]

    def on_aten_dict(self, node: Any, inputs: list[Any]) -> list[Any]:
        return [self.python(dict, inputs)]

    def on_aten_copy(self, node: Any, inputs: list[Any]) -> list[Any]:
        kind = next(iter(node.inputs())).type().kind()
        if kind not in ("ListType", "DictType"):
            return self.on_overload(node, inputs)
        return [self.call(dict if kind == "DictType" else list, inputs)
                if isinstance(inputs[0], Node) else inputs[0].copy()]

    # -- calls with a meaning of their own

    def on_aten_tensor(self, node: Any, inputs: list[Any]) -> list[Any]:
        data, dtype, device, *_ = inputs
        given = {"dtype": calls.dtype_of(dtype), "device": device}
        return [self.call(torch.tensor, (data,), {k: v for k, v in given.items() if v is not None})]

    on_aten_as_tensor = on_aten_tensor

    def on_aten_to(self, node: Any, inputs: list[Any]) -> list[Any]:
        name = node.schema().partition("(")[0]
        if "prim_" not in name:
            return self.on_overload(node, inputs)
        args = [calls.dtype_of(x) for x in inputs[1:-2] if x is not None]
        return [self.call(torch.Tensor.to, (inputs[0], *args)) if args else inputs[0]]

    def on_aten_format(self, node: Any, inputs: list[Any]) -> list[Any]:
        if not nodes_in(inputs):
            return [inputs[0].format(*inputs[1:])]
        if any(isinstance(x, Node) and value.type().kind() == "TensorType"
               for x, value in zip(inputs, node.inputs())):
            raise Refused("a text with a tensor in it depends on data")
        return [self.graph.call_method("format", tuple(inputs))]

    def on_aten_warn(self, node: Any, inputs: list[Any]) -> list[Any]:
        self.call(calls.warn, inputs[:1])
        return []

    def on_prim_Print(self, node: Any, inputs: list[Any]) -> list[Any]:
        self.call(print, inputs)
        return []

    def on_prim_RaiseException(self, node: Any, inputs: list[Any]) -> list[Any]:
        kind = calls.exception_of(inputs[1] if len(inputs) > 1 else None)
        self.call(ops.fail, (kind, inputs[0]))
        return []

    def on_prim_rangelist(self, node: Any, inputs: list[Any]) -> list[Any]:
        if nodes_in(inputs):
            raise Refused("the length of a list must be known")
        return [list(range(inputs[0]))]

    def on_aten___range_length(self, node: Any, inputs: list[Any]) -> list[Any]:
        low, high, step = inputs
        if not nodes_in(inputs):
            return [len(range(low, high, step))]
        if isinstance(step, Node):
            return [self.call(len, (self.call(range, inputs),))]
        wide = self.python(operator.sub, (high, low) if step > 0 else (low, high))
        turns = self.python(operator.floordiv,
                            (self.python(operator.add, (wide, abs(step) - 1)), abs(step)))
        return [self.call(max, (0, turns))]

    def on_aten___derive_index(self, node: Any, inputs: list[Any]) -> list[Any]:
        i, low, step = inputs
        return [self.python(operator.add, (low, self.python(operator.mul, (i, step))))]

    def on_aten_is_autocast_enabled(self, node: Any, inputs: list[Any]) -> list[Any]:
        return [torch.is_autocast_enabled("cpu")]

    def on_aten_is_grad_enabled(self, node: Any, inputs: list[Any]) -> list[Any]:
        return [self.call(torch.is_grad_enabled, ())]

    def on_prim_isinstance(self, node: Any, inputs: list[Any]) -> list[Any]:
        raise Refused("a question about the type of a value")

    # -- control flow

    def on_prim_If(self, node: Any, inputs: list[Any]) -> list[Any]:
        blocks = list(node.blocks())
        test = inputs[0]
        if not isinstance(test, Node):
            taken = blocks[0] if test else blocks[1]
            self.run(taken)
            return [self.get(value) for value in taken.outputs()]
        changed: dict[int, None] = {}
        free: dict[int, Any] = {}
        for block in blocks:
            self.hold(block.outputs())
            find_free(block, set(), free)
            find_changed(block, changed)
        lists = [u for u in changed if u in free]
        operands = self.operands(free)
        regions = [self.branch(block, operands, lists) for block in blocks]
        if test.target is bool and isinstance(test.args[0], Node):
            test = test.args[0]  # torch.cond takes the tensor
        made = self.call(ops.cond, (test, *regions, tuple(operands)))
        return self.spread(made, node.outputsSize(), lists)

    def operands(self, free: dict[int, Any]) -> list[Node]:
        """The nodes that are passed to a region, each once."""
        return list(dict.fromkeys(n for u in free for n in nodes_in(self.values[u])))

    def inner(self, nodes: list[Node], first: list[Any]) -> tuple["_Block", list[Node]]:
        """A region with inputs for `first`, values of TorchScript, and for nodes of this graph.
        Values that hold none of these are the same inside."""
        block = _Block(self.job, Graph())
        for value in first:
            block.values[value.unique()] = block.graph.placeholder(name_of(value))
        twins = {node: block.graph.placeholder(node.name) for node in nodes}
        for unique, value in self.values.items():
            if all(node in twins for node in nodes_in(value)):
                block.values.setdefault(unique, rebuilt(value, twins.__getitem__))
        return block, list(twins.values())

    def branch(self, block: Any, operands: list[Node], lists: list[int]) -> Graph:
        inner, _ = self.inner(operands, [])
        inner.here = self.here
        inner.run(block)
        results = [inner.get(value) for value in block.outputs()]
        results += [inner.values[u] for u in lists]
        inner.finish(results[0] if len(results) == 1 else tuple(results) or None)
        return inner.graph

    def finish(self, results: Any) -> None:
        if any(isinstance(x, Object) for x in items_of(results)):
            raise Refused("a branch or loop gives a module")
        self.graph.output(rebuilt(_plain(results), lambda node: node))

    def spread(self, made: Node, count: int, lists: list[int]) -> list[Any]:
        """The results of a call with regions; lists that it has changed take their places."""
        total = count + len(lists)
        items = [made] if total == 1 else [self.item(made, i) for i in range(total)]
        self.values.update(zip(lists, items[count:]))
        return items[:count]

    def on_prim_Loop(self, node: Any, inputs: list[Any]) -> list[Any]:
        turns, test, *carried = inputs
        (block,) = node.blocks()
        params, outputs = list(block.inputs()), list(block.outputs())
        changed: dict[int, None] = {}
        free: dict[int, Any] = {}
        find_changed(block, changed)
        find_free(block, set(), free)
        lists = [u for u in changed if u in free]
        self.hold(list(node.inputs())[2:])
        for u in lists:
            free.pop(u)
        loop = _Loop(self, block, params, outputs, lists, self.operands(free))
        state = [*carried, *(self.values[u] for u in lists), *loop.operands]
        if test is True and constant_of(outputs[0]) is True:
            made = self.call(ops.for_loop, (turns, loop.body(), tuple(_plain(state))))
            self.check_lists(lists)
            return self.take(made, node.outputsSize(), lists, 0)
        regions = loop.test(turns), loop.turn()
        made = self.call(ops.while_loop, (*regions, (0, test, *_plain(state))))
        self.check_lists(lists)
        return self.take(made, node.outputsSize(), lists, 2)

    def check_lists(self, lists: list[int]) -> None:
        if self.job.held.intersection(lists):
            raise Refused("the loop changes a list or dict that something else may hold, too; "
                           "change a copy instead")

    def take(self, made: Node, count: int, lists: list[int], skip: int) -> list[Any]:
        items = [self.item(made, skip + i) for i in range(count + len(lists))]
        self.values.update(zip(lists, items[count:]))
        return items[:count]


def _plain(value: Any) -> Any:
    if isinstance(value, Number):
        return value.value
    if isinstance(value, (list, tuple)) and not isinstance(value, Object):
        return like(value, list(map(_plain, value)))
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


class _Loop(NamedTuple):
    """A loop: its state is what it carries, the lists that it changes, and what it reads."""

    outer: _Block
    block: Any
    params: list[Any]
    outputs: list[Any]
    lists: list[int]
    operands: list[Node]

    def region(self, first: list[Any]) -> tuple[_Block, list[Node]]:
        """A graph with inputs for `first` and for the state."""
        made = _Block(self.outer.job, Graph())
        made.here = self.outer.here
        for value in first:
            made.values[value.unique()] = made.graph.placeholder(name_of(value))
        lists = {u: made.graph.placeholder("items") for u in self.lists}
        made.values.update(lists)
        twins = {node: made.graph.placeholder(node.name) for node in self.operands}
        for unique, value in self.outer.values.items():
            if unique not in made.values and all(node in twins for node in nodes_in(value)):
                made.values[unique] = rebuilt(value, twins.__getitem__)
        return made, list(twins.values())

    def results(self, made: _Block, kept: list[Node]) -> list[Any]:
        return [*(made.get(v) for v in self.outputs[1:]), *(made.values[u] for u in self.lists),
                *kept]  # fmt: skip

    def body(self) -> Graph:
        """Of a for_loop: with the number of the turn."""
        made, kept = self.region(self.params)
        made.run(self.block)
        made.finish(tuple(self.results(made, kept)))
        return made.graph

    def turn(self) -> Graph:
        """Of a while_loop: the state begins with the number of the turn, and whether to go on."""
        made, kept = self.while_region()
        made.run(self.block)
        following = made.graph.call_function(operator.add, (made.get(self.params[0]), 1))
        again = made.get(self.outputs[0])
        made.finish((following, again, *self.results(made, kept)))
        return made.graph

    def while_region(self) -> tuple[_Block, list[Node]]:
        class _Again(NamedTuple):
            def unique(self) -> int:
                return -1

            def debugName(self) -> str:
                return "again"

        return self.region([self.params[0], _Again(), *self.params[1:]])

    def test(self, turns: Any) -> Graph:
        made, _ = self.while_region()
        again = made.values[-1]
        if isinstance(turns, Node) or turns < _ENDLESS:
            limit = turns
            if isinstance(turns, Node):
                twin = next((n for n in made.graph.nodes if n.name == turns.name), None)
                if twin is None:
                    raise Refused("the number of turns is not in the state of the loop")
                limit = twin
            below = made.graph.call_function(operator.lt, (made.get(self.params[0]), limit))
            again = made.graph.call_function(operator.and_, (below, again))
        made.graph.output(again)
        return made.graph


# ---- modules and functions ---------------------------------------------------------------------


def _root(tensors: dict[str, Any]) -> torch.nn.Module:
    """A tree of plain modules with these tensors."""
    root = torch.nn.Module()
    for path, tensor in tensors.items():
        *folders, name = path.split(".")
        at = root
        for folder in folders:
            if folder not in at._modules:
                at.add_module(folder, torch.nn.Module())
            at = at._modules[folder]  # type: ignore[assignment]
        if isinstance(tensor, torch.nn.Parameter):
            at.register_parameter(name, tensor)
        else:
            at.register_buffer(name, tensor)
    return root


_TYPES = {"IntType": int, "FloatType": float, "BoolType": bool, "StringType": str,
          "TensorType": torch.Tensor}  # fmt: skip


def _inputs(block: _Block, values: list[Any], schema: Any) -> None:
    arguments = {arg.name: arg for arg in schema.arguments}
    for value in values:
        name = name_of(value)
        argument = arguments.get(name)
        given = argument is not None and argument.has_default_value()
        default = [argument.default_value] if argument is not None and given else []
        made = block.graph.placeholder(name, _TYPES.get(value.type().kind()), *default)
        block.values[value.unique()] = made


def convert(program: Any) -> GraphModule:
    """A cfx.GraphModule for a ScriptModule or ScriptFunction. Tensors are shared with it; other
    settings, such as `training`, are fixed to what they are now."""
    is_module = isinstance(program, torch.jit.ScriptModule)
    method = program.forward if is_module else program
    source = program.inlined_graph if is_module else method.inlined_graph
    job = _Job()
    if is_module:
        job.tensors.update(program.named_parameters(remove_duplicate=False))
        job.tensors.update(program.named_buffers(remove_duplicate=False))
    block = _Block(job, Graph())
    values = list(source.inputs())
    if is_module:
        block.values[values[0].unique()] = Object("", program)
        note_attributes(source, {values[0].unique(): ""}, job.assigned, job.written)
    _inputs(block, values[1:] if is_module else values, method.schema)
    block.run(source)
    results = [block.get(value) for value in source.outputs()]
    if not job.findings and any(isinstance(x, Object) for x in items_of(results)):
        job.findings.append(Unconverted("return", None, "it returns a module"))
    if job.findings:
        raise ScriptConversionError(job.findings)
    block.graph.output(_plain(results[0] if len(results) == 1 else tuple(results)))
    block.graph._pass("dce", None, {"strict": 1})
    read = {str(n.target) for n in _every_get_attr(block.graph)}
    root = _root({path: job.tensors[path] for path in job.tensors if path in read})
    name = getattr(program, "original_name", None) or getattr(program, "name", None)
    made = GraphModule(root, block.graph, str(name or "Scripted"))
    made.train(getattr(program, "training", True))
    return made


def _every_get_attr(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        if node.op == "get_attr":
            yield node
        for arg in node.args:
            if isinstance(arg, Graph):
                yield from _every_get_attr(arg)


def load(path: str) -> Any:
    """What a file holds: a ScriptModule, or the module of an ExportedProgram (.pt2)."""
    if str(path).endswith(".pt2"):
        return torch.export.load(path).module()
    return torch.jit.load(path)
