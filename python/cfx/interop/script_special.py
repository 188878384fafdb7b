"""Calls of TorchScript with a meaning of their own: constants, attributes of modules, containers,
contexts, and functions that torch and Python spell in another way."""
import operator
from typing import Any

import torch

from .. import ops
from ..node import Node
from . import script_calls as calls
from .script_block import Block
from .script_values import (
    Context, Number, Object, Refused, is_written, like, nodes_in, tuple_class,
)  # fmt: skip


class Special(Block):
    """A block with these calls."""

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
