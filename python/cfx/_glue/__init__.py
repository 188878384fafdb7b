"""What the C core asks of Python: torch, its values by name, lambdas, purity.

Nothing here is for users. cfx._core calls these functions by name (python/src/base/host.c).
"""
import sys
import time

TYPE_CHECKING = False  # `import cfx` does without typing, which takes longer than the rest
if TYPE_CHECKING:
    from typing import Any

from .. import _core


class Name(str):
    """An object that is known by its qualified name only: nothing of that name is loaded, or the
    text that it comes from may not name it."""

    token = None  # (kind number, name) for a dtype, layout, memory format or device

    def __repr__(self):
        return str(self)

    def __call__(self, *args, **kwargs):
        raise NameError(
            f"'{self}' is only a name: import the module that defines it, then parse the text with "
            "allow=[module]; or set the node's target to the function"
        )


def find_torch(_=None):
    """Registers torch's own kinds of values as soon as torch is loaded; returns torch or None."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.__spec__, "_initializing", False):
        return None
    if not _tokens:
        from . import torch_values

        torch_values.register(torch, _tokens)
    return torch


def find_operator(name):
    """One of torch's operators, `torch.ops.aten.add` or `torch.ops.aten.add.Tensor`, if torch has
    it registered, or a row of the operator table, `cfx.ops.add`; else None."""
    if name.startswith("cfx.ops."):
        return _core._operator_function(name.removeprefix("cfx.ops."))
    torch = find_torch()
    space, _, rest = name.removeprefix("torch.ops.").partition(".")
    operator, _, overload = rest.partition(".")
    if torch is None or not (space.isidentifier() and operator.isidentifier()):
        return None
    if space == "quantized_decomposed":
        import importlib

        importlib.import_module("torch.ao.quantization.fx._decomposed")  # registers them
    if space == "higher_order":
        return None if overload else torch._ops._higher_order_ops.get(operator)
    known = None if hasattr(type(torch.ops), space) else _overloads(torch, space, operator)
    if known is None or (overload and ("" if overload == "default" else overload) not in known):
        return None
    packet = getattr(getattr(torch.ops, space), operator)
    return getattr(packet, overload) if overload else packet


def _overloads(torch, space, operator):
    try:
        return torch._C._jit_get_operation(f"{space}::{operator}")[1]
    except RuntimeError:  # no such name
        return None


def _leads_to(home, name, function):
    import inspect

    found = vars(sys.modules.get(home, _core)).get(name)
    return found is function or inspect.ismethod(found) and found == function


def attribute_name(function):
    """The name of a module's attribute that is this very function or bound method, where it does
    not say so itself: secrets.choice is a method of a hidden object. None if there is none."""
    home = getattr(function, "__module__", None) or type(function.__self__).__module__
    if _leads_to(home, function.__name__, function):
        return f"{home}.{function.__name__}"
    for name, _ in _core._script_policy()[0]:
        home, _, last = name.rpartition(".")
        if _leads_to(home, last, function):
            return name
    return None


# (kind, name) -> torch's object; filled by torch_values.register
_tokens: "dict[tuple[int, str], Any]" = {}


def result_type(key):
    """What makes, of a tuple, the result of a row of the operator table: (name of the row, whether
    it is to be torch's). None: it stays a tuple."""
    name, torchs = key
    torch = find_torch() if torchs else None
    if name == "size":
        return torch and torch.Size
    if torch is not None:
        return getattr(torch.return_types, name.removesuffix("_dim"), None)
    results = _core._operator(name)[1].partition(" -> (")[2].rstrip(")")
    fields = [part.partition(" ")[2] for part in results.split(", ")]
    return _named_results(name, fields) if results and all(fields) else None


def _named_results(name, fields):
    from collections import namedtuple

    made = namedtuple(name, fields, module="cfx.ops")
    made.__reduce__ = lambda self: (tuple, (tuple(self),))  # cfx.ops has the function of that name
    return made._make


def reshape_in_place(key):
    """Gives a torch tensor the sizes and strides (in bytes) that cfx has given to its memory, from
    the address of the first element on."""
    tensor, sizes, strides, address = key
    torch, width = find_torch(), tensor.element_size()
    moved = (address - tensor.data_ptr()) // width if tensor.numel() else 0
    with torch.no_grad():
        tensor.as_strided_(sizes, [s // width for s in strides], tensor.storage_offset() + moved)


def result_row(type_):
    """The row of the operator table whose results are of that type of torch's, or None."""
    torch = find_torch()
    if torch is None or type_ is torch.Size:
        return torch and "size"
    if type_.__module__ != "torch.return_types":
        return None
    names = (f"{type_.__name__}_dim", type_.__name__)
    return next((name for name in names if _core._operator(name)), None)


def token(key):
    """torch's dtype, layout, memory format or device of a name."""
    kind, name = key
    torch = find_torch()
    if torch is None:
        unknown = Name(f"torch.{name}")
        unknown.token = key
        return unknown
    found = _tokens.get(key)
    if found is None:
        found = _tokens[key] = torch.device(name)
    return found


def lambda_name(func):
    """What the source assigns a lambda to, or the source itself."""
    import inspect

    try:
        source = inspect.getsource(func)
    except (OSError, TypeError) as e:
        raise RuntimeError("Unable to represent lambda") from e
    return source.split("=")[0].strip()


def is_impure(node):
    return node.is_impure()


# ---- torch.fx ----------------------------------------------------------------------------------


def is_theirs(x):
    """Whether an object is torch.fx's (or torch.export's), or of a class derived from theirs."""
    homes = (cls.__module__ for cls in type(x).__mro__)
    return any(home.startswith(("torch.fx.", "torch.export.")) for home in homes)


def own_codegen(codegen):
    """The twin of a code generator of torch.fx, which writes torch.fx's names; one without a twin
    is given back."""
    from ..interop.convert import own_codegen as convert

    return convert(codegen)


def copy_foreign(job):
    """node_copy and graph_copy of what is not cfx's: (graph, source, how, return_output_node)."""
    if not is_theirs(job[1]):
        raise TypeError(f"expected a Node or Graph to copy, got {type(job[1])}")
    from ..interop.entry import copy_into

    return copy_into(*job)


def seen_class(cls):
    """The class that proxies of a class show; cfx.interop has another answer."""
    return cls


# ---- tracing -----------------------------------------------------------------------------------

# Classes of the metaclass ProxyableClassMeta, and the code of Tracer.trace: cfx._symbolic_trace
proxyable_classes: dict[type, None] = {}
trace_code: "Any" = None
started = time.time()  # sources that are newer than that may have changed since they were imported


def install(*functions):
    """Adds the functions that need torch, when there is something to trace."""
    for function in functions:
        globals()[function.__name__] = function


_core._register(glue=sys.modules[__name__])
