"""Code generation: what torch.fx.graph offers for it, and the Python side of a run.

The generator is C (src/emit/python, python/src/codegen/codegen.c). It asks about torch's objects
and about what a CodeGen changes: how an object is written, what stands in a comment. A `_Job`
holds the answers for one run.
"""
import ast
import contextlib
import enum
import inspect
import linecache
import math
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import _core, _glue, _pytree, ops
from .._core import _get_qualified_name, _is_from_torch
from ..node import Argument

TransformCodeFunc = Callable[[list[str]], list[str]]

# ---- operators that Python writes with a sign -------------------------------------------------

reflectable_magic_methods, magic_methods, inplace_methods = _core._operator_formats()
magic_methods.update(reflectable_magic_methods)


# ---- names that every generated function may use ----------------------------------------------


class _CustomBuiltin(NamedTuple):
    """A global of all generated code: how a file imports it, and the object."""

    import_str: str
    obj: object


_custom_builtins: dict[str, _CustomBuiltin] = {}
_RESERVED = frozenset(["inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"])


def _register_custom_builtin(name: str, import_str: str, obj: object) -> None:
    """Makes `name` mean `obj` in all code that is generated from now on."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _core._Namespace._register_global(name, obj)


def _register_base() -> None:
    _register_custom_builtin("inf", "from math import inf", math.inf)
    _register_custom_builtin("nan", "from math import nan", math.nan)
    _register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
    _register_custom_builtin("fx_pytree", "import cfx._pytree as fx_pytree", _pytree)


def _register_torch(torch: Any) -> None:
    """Adds torch's names, in torch.fx's order."""
    others = dict(_custom_builtins)
    fx_pytree = others.pop("fx_pytree")
    _custom_builtins.clear()
    for name in ("inf", "nan", "NoneType"):
        _custom_builtins[name] = others.pop(name)
    _register_custom_builtin("torch", "import torch", torch)
    _register_custom_builtin("device", "from torch import device", torch.device)
    _custom_builtins["fx_pytree"] = fx_pytree
    pytree = _pytree._torch_pytree()
    _register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)
    _custom_builtins.update(others)


def _find_torch() -> Any:
    """torch if it is loaded, its names registered; else None."""
    torch = _glue.find_torch()
    if torch is not None and "torch" not in _custom_builtins:
        _register_torch(torch)
    return torch


class _DtypeAbbrs(dict):
    """Short names of torch's dtypes; filled when torch is loaded and they are first asked for."""

    _filled = False

    def _fill(self) -> "_DtypeAbbrs":
        torch = None if self._filled else _glue.find_torch()
        if torch is not None:
            self._filled = True
            for name, short in _DTYPES.items():
                if hasattr(torch, name):
                    self[getattr(torch, name)] = short
        return self

    def __missing__(self, dtype: Any) -> str:
        if dtype in self:
            return self[dtype]
        raise KeyError(dtype)

    def __contains__(self, dtype: Any) -> bool:
        return dict.__contains__(self._fill(), dtype)

    def __iter__(self) -> Any:
        return dict.__iter__(self._fill())

    def __len__(self) -> int:
        return dict.__len__(self._fill())

    def get(self, dtype: Any, default: Any = None) -> Any:
        return dict.get(self._fill(), dtype, default)

    def keys(self) -> Any:
        return dict.keys(self._fill())

    def values(self) -> Any:
        return dict.values(self._fill())

    def items(self) -> Any:
        return dict.items(self._fill())


_DTYPES = {
    "uint8": "u8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex32": "c32",
    "complex64": "c64",
    "complex128": "c128",
    "bool": "b8",
    "bfloat16": "bf16",
    "bits1x8": "b1x8",
    "bits2x4": "b2x4",
    "bits4x2": "b4x2",
    "bits8": "b8x1",
    "bits16": "b16x1",
    "float8_e5m2": "f8e5m2",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float8_e8m0fnu": "f8e8m0fnu",
    "float4_e2m1fn_x2": "f4e2m1fnx2",
}
dtype_abbrs = _DtypeAbbrs()


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


def _format_target(base: str, target: str) -> str:
    """The path `target` below `base`, with getattr for names that are not identifiers."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


# ---- colours ----------------------------------------------------------------------------------

_color_codes = {
    "yellow": "\033[33m",
    "cyan": "\033[36m",
    "green": "\033[32m",
    "blue": "\033[34m",
    "red": "\033[31m",
    "dim": "\033[2m",
    "dim_blue": "\033[2m\033[34m",
    "dim_green": "\033[2m\033[32m",
}


def _identity(x: str) -> str:
    return x


def _make_color_fn(code: str) -> Callable[[str], str]:
    return lambda text: f"{code}{text}\033[0m"


_color_fns = {name: _make_color_fn(code) for name, code in _color_codes.items()}
_no_colors = dict.fromkeys(_color_fns, _identity)


# ---- where a node comes from ------------------------------------------------------------------


@dataclass(frozen=True)
class _ParsedStackTrace:
    """The frame of a stack trace that a comment shows."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


_frame_line = re.compile(r'File "(.+)", line (\d+), in (.+)')


def _parse_stack_trace(
    stack_trace: str, filter_fn: Callable[[str, str, str], bool] | None = None
) -> _ParsedStackTrace | None:
    """The innermost frame of a stack trace as Python prints it, of those that `filter_fn(file,
    name, code)` accepts; None if there is none."""
    if stack_trace is None:
        return None
    lines = stack_trace.strip().split("\n")
    for i in range(len(lines) - 2, -1, -1):
        match = _frame_line.match(lines[i].strip())
        if match is None:
            continue
        file, lineno, name = match.groups()
        code = lines[i + 1].strip()
        if filter_fn is None or filter_fn(file, name, code):
            return _ParsedStackTrace(file, lineno, name, code)
    return None


# ---- code -------------------------------------------------------------------------------------

# Whether the user's lines are the comments. No parameter: methods have those of torch.fx.
show_source: ContextVar[bool] = ContextVar("show_source", default=False)



@dataclass
class PythonCode:
    """The generated code of a graph, with everything needed to run or save it."""

    src: str  # the function
    globals: dict[str, Any]  # what it needs beside builtins
    # line, counted from the one before the function's body, to number of its node
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0  # the line where the function's head starts


@contextlib.contextmanager
def _override_sym_repr(override: Callable[[Any], str]) -> Generator[None, None, None]:
    """Another spelling of symbolic numbers in comments, for the length of a `with` block."""
    previous = CodeGen._sym_repr
    CodeGen._sym_repr = override
    try:
        yield
    finally:
        CodeGen._sym_repr = previous


class CodeGen:
    """Defines the function around the body of a graph. Override its methods to change the
    signature, the return statement, the globals, or the form of inputs and outputs."""

    _sym_repr: Callable[[Any], str] = lambda x: repr(x)

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    # ---- lists with a remark on each line ----

    def _format_multiline_args(self, args: list[str]) -> str:
        return "".join(self._format_single_arg(arg) for arg in args)

    def _format_single_arg(self, arg: str) -> str:
        head, _, rest = _core._signature("f", ["self", arg], "", True).partition("    self,\n")
        return rest.removesuffix("):")

    def _get_delimiters(self, container: Sequence[object]) -> tuple[str, str]:
        return ("(", ")") if isinstance(container, tuple) else ("[", "]")

    def _format_multiline_container(
        self, items: Sequence[object], descs: Sequence[str] | None = None, prefix: str = "",
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:  # fmt: skip
        left, right = self._get_delimiters(items)
        texts = map(repr_fn or repr, items)
        trailers = self._get_desc_trailers(items, descs)
        lines = (f"    {text},{trailer}\n" for text, trailer in zip(texts, trailers))
        return f"{prefix}{left}\n{''.join(lines)}{right}"

    def _get_desc_trailers(self, items: Sequence[object], descs: Sequence[str] | None) -> list[str]:
        trailers = [f"  # {desc}" for desc in descs or ()]
        return trailers + [""] * (len(items) - len(trailers))

    def _call_method_with_signature_check(
        self, method: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Calls a method that may be an override from a time when it had fewer parameters."""
        known = inspect.signature(method).parameters
        return method(*args, **{key: v for key, v in kwargs.items() if key in known})

    # ---- what subclasses override ----

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """Returns the function's signature. `free_vars` are the parameters without self, each with
        its annotation and default; `maybe_return_annotation` is "" or " -> T"."""
        return _core._signature(
            f"{self._func_name}", free_vars, maybe_return_annotation, expanded_def
        )

    def generate_output(
        self, output_args: Argument, *, descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:  # fmt: skip
        """Returns the return statement. `repr_fn` formats a value in the same way as other
        arguments."""
        if descs is not None and isinstance(output_args, (list, tuple)):
            return self._format_multiline_container(output_args, descs, "return ", repr_fn)
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """Converts the function's arguments to the values of the placeholders, for an
        interpreter."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Converts the output's value to what the function returns."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Returns (name, object) for each global that the changed code needs."""
        return []

    def _gen_python_code(
        self, nodes: Any, root_module: str, namespace: Any, *, verbose: bool = False,
        include_stride: bool = False, include_device: bool = False, colored: bool = False,
        expanded_def: bool = False, record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:  # fmt: skip
        job = _Job(self, expanded_def, _color_fns if colored else _no_colors)
        if verbose:
            job.be_verbose(include_stride, include_device, additional_meta or ())
        if show_source.get():
            job.last_comment = ""
            job.comment = job.source_comment
        globals_ = {name: builtin.obj for name, builtin in _custom_builtins.items()}
        try:
            src, lines, start = _core._generate(
                nodes.graph,
                job,
                f"{root_module}",
                f"{self._func_name}",
                globals_,
                expanded_def,
                record_func,
                colored,
            )
        finally:
            vars(job).clear()  # it holds its own methods
        if src.startswith("\ncfx."):  # it begins by wrapping functions again
            globals_["cfx"] = sys.modules["cfx"]
        return PythonCode(src, globals_, lines, start)


_defaults = {
    name: vars(CodeGen)[name] for name in ("gen_fn_def", "generate_output", "additional_globals")
}


def _is_default(codegen: CodeGen, name: str) -> bool:
    return getattr(getattr(codegen, name), "__func__", None) is _defaults[name]


class _BoxedCodeGen(CodeGen):
    """Generates a function that takes its inputs in one list and clears it, so that the list does
    not keep them alive while the function runs."""

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        head = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        names = [re.split("[:=#]", var)[0].strip() for var in free_vars if var != "self"]
        if not names:
            return head
        lines = [f"{name} = next(args_iter)" for name in names]
        lines = [head, "args_iter = iter(args_list)", *lines, "args_list.clear()"]
        return "\n    ".join(lines)


class _PyTreeInfo(NamedTuple):
    """How the arguments and the result of a traced function are nested."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any

    def __deepcopy__(self, memo: dict[int, Any]) -> "_PyTreeInfo":
        return self._replace(orig_args=self.orig_args.copy())  # specs do not change


def _default_text(var: str) -> str | None:
    """The default in a parameter's text: "3" in "x : int = 3  # its description"."""
    if "=" not in var:
        return None
    value = getattr(ast.parse(var).body[0], "value", None)  # an assignment, as text
    return value and ast.get_source_segment(var, value)


def _nested_text(spec: Any, leaves: Iterator[str | None]) -> str | None:
    """The expression for a value of this structure; None if a leaf has none."""
    if spec.is_leaf():
        return next(leaves)
    texts = [_nested_text(child, leaves) for child in spec.children()]
    if not texts or None in texts:
        return None
    if spec.type is dict:
        texts = [f"{key!r}: {text}" for key, text in zip(spec.context, texts)]
    ends = {tuple: "()", list: "[]", dict: "{}"}.get(spec.type)
    lone = "," if spec.type is tuple and len(texts) == 1 else ""
    return ends and ends[0] + ", ".join(map(str, texts)) + lone + ends[1]


class _PyTreeCodeGen(CodeGen):
    """Generates a function whose arguments and result have the nested structure that they had
    during tracing; the graph works on the leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info: _PyTreeInfo = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        info = self.pytree_info
        parts = info.in_spec.children() if info is not None else []
        parts = parts[1:] if info is not None and info.orig_args[:1] == ["self"] else parts
        try:  # a container that was one input while tracing stays one
            if len(inputs) <= len(parts):
                pairs = zip(parts, inputs)
                return [leaf for part, value in pairs for leaf in part.flatten_up_to(value)]
        except ValueError:  # another structure: they may be leaves already
            pass
        return _pytree._torch_pytree().arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        leaves = out if isinstance(out, (list, tuple)) else [out]
        return _pytree._torch_pytree().tree_unflatten(leaves, self.pytree_info.out_spec)

    def _format_annotations(self, free_vars: list[str], expanded_def: bool) -> str:
        """Declarations of the leaves that have a type."""
        typed = [var for var in free_vars if ":" in var.partition("=")[0]]
        if not typed:
            return ""
        if expanded_def:
            return "".join(f"\n    {var}" for var in typed)
        return "\n    " + "".join(f"{var}; " for var in typed) + "\n"

    def _arguments(self, fn_args: list[str]) -> str:
        """The function's arguments, put together as the spec has them."""
        info = self.pytree_info
        spec = info.in_spec
        parts = spec.children() if spec.type is tuple else []
        if [part.type for part in parts] != [tuple, dict]:
            return f"[{', '.join(fn_args)}]"
        n = parts[0].num_children
        pairs = zip(parts[1].context, info.orig_args[n:])
        named = ", ".join(f"'{key}':{arg}" for key, arg in pairs)
        return f"([{', '.join(info.orig_args[:n])}], {{{named}}})"

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """Returns the statements that unpack the arguments."""
        texts = [re.split("[:#]", var)[0] for var in free_vars]
        names = ", ".join(re.sub(" *=.*", "", text) for text in texts)  # their defaults: above
        annotations = self._format_annotations(free_vars, expanded_def)
        arguments = self._arguments(fn_args)
        flatten = f"fx_pytree.tree_flatten_spec({arguments}, self._in_spec)"
        return f"{annotations}\n    {names}, = {flatten}"

    def _with_defaults(self, free_vars: list[str]) -> list[str]:
        """The function's parameters. As in any signature, those with a default come last."""
        args, parts = self.pytree_info.orig_args[:], self.pytree_info.in_spec.children()
        texts = [_default_text(var) for var in free_vars]
        if any(texts) and len(parts) == len(args):
            leaves = iter(texts)
            defaults = [_nested_text(part, leaves) for part in parts]
            while defaults and (text := defaults.pop()) is not None:
                args[len(defaults)] += f" = {text}"
        return args

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        args = self.pytree_info.orig_args
        if args and args[0] == "self":
            free_vars.insert(0, "self")
        head = super().gen_fn_def(
            self._with_defaults(free_vars), maybe_return_annotation, expanded_def=expanded_def
        )
        if free_vars:
            head += self.gen_var_bindings(args, free_vars, expanded_def)
        return head

    def generate_output(
        self, output_args: Argument, *, descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:  # fmt: skip
        plain = super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return plain
        value = plain.removeprefix("return ")
        return f"return pytree.tree_unflatten({value}, self._out_spec)"


# ---- one run ----------------------------------------------------------------------------------

_NO_STACK_TRACE = "No stacktrace found for following nodes"


def _opaque_text(obj: object) -> tuple[str, dict[str, type]] | None:
    """How torch writes a value of a class that was registered as opaque; None for others."""
    opaque = sys.modules.get("torch._library.opaque_object")
    if opaque is None or not opaque.is_opaque_value_type(type(obj)):
        return None
    return opaque.get_opaque_obj_repr(obj)


def _shorten(value: object) -> object:
    text = str(value)
    return f"{text[:40]}..." if len(text) > 40 else value


class _Job:
    """What the generator (python/src/codegen/codegen.c) asks while it writes one function: a hook
    that is None is not called. It sets the last three attributes for the time of the run."""

    begin: Any = None
    annotation: Any = None
    comment: Any = None
    remark: Any = None
    output: Any = None
    signature: Any = None
    transform: Any = None
    names: dict[Any, str]  # of the globals
    add_global: Callable[[Any, str], str]
    global_for: Callable[[str, Any], str]  # the name of the global that stands for an object
    expression: Callable[[object], str]

    def __init__(self, codegen: CodeGen, expanded_def: bool, colors: dict) -> None:
        self.codegen = codegen
        self.expanded_def = expanded_def
        self.colors = colors
        self.torch = _find_torch()
        self.names = {builtin.obj: name for name, builtin in _custom_builtins.items()}
        if len(_custom_builtins) > len(_RESERVED) or not _RESERVED.issuperset(_custom_builtins):
            self.begin = self.reserve_names
        if not _is_default(codegen, "generate_output"):
            self.output = self.call_generate_output
        if not _is_default(codegen, "gen_fn_def") or not _is_default(codegen, "additional_globals"):
            self.signature = self.call_gen_fn_def
        if codegen._body_transformer:
            self.transform = codegen._body_transformer
        if expanded_def:
            self.remark = self.description
            self.output = self.output or self.described_output

    # ---- names ----

    def reserve_names(self) -> None:
        for name, builtin in _custom_builtins.items():
            if name not in _RESERVED:
                self.names[builtin.obj] = self.add_global(builtin.obj, name)

    def value(self, obj: Any) -> str | None:
        """How an object stands among the arguments; None for its repr."""
        if isinstance(obj, enum.Enum):
            cls = type(obj)
            return f"{self.global_for(cls.__name__, cls)}.{obj.name}"
        torch = self.torch
        if torch is None:
            return None
        if isinstance(obj, torch.Tensor):
            return f"torch.Tensor(size={list(obj.size())}, dtype={str(obj.dtype)[6:]})"
        if isinstance(obj, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
            return _get_qualified_name(obj)
        opaque = _opaque_text(obj)
        if opaque is None:
            return None
        text, classes = opaque
        for name, cls in classes.items():
            self.global_for(name, cls)
        return text

    # ---- what a CodeGen overrides ----

    def call_gen_fn_def(self, free_vars: list[str], returns: str) -> str:
        for name, obj in self.codegen.additional_globals():
            self.global_for(name, obj)
        call = self.codegen._call_method_with_signature_check
        method = self.codegen.gen_fn_def
        text = call(method, free_vars, returns, expanded_def=self.expanded_def)
        return self.checked("gen_fn_def", text)

    def call_generate_output(self, node: Any) -> str:
        call = self.codegen._call_method_with_signature_check
        method = self.codegen.generate_output
        descs = node.meta.get("desc") if self.expanded_def else None
        text = call(method, node.args[0], descs=descs, repr_fn=self.expression)
        return self.checked("generate_output", text)

    def checked(self, method: str, text: Any) -> str:
        if isinstance(text, str):
            return text
        raise TypeError(f"{type(self.codegen).__name__}.{method} must return a str, got {text!r}")

    # ---- descriptions (expanded_def) ----

    def description(self, node: Any) -> str | None:
        desc = node.meta.get("desc")
        return None if desc is None else f"{desc}"

    def described_output(self, node: Any) -> str | None:
        return self.call_generate_output(node) if "desc" in node.meta else None

    # ---- comments (verbose) ----

    def be_verbose(
        self, include_stride: bool, include_device: bool, additional_meta: Sequence[str]
    ) -> None:
        self.include_stride = include_stride
        self.include_device = include_device
        self.additional_meta = additional_meta
        self.last_comment = ""
        self.annotation = self.tensor_annotation
        self.comment = self.origin_comment

    def origin_comment(self, node: Any) -> str | None:
        """Where a node comes from, if that is not where the node before it comes from."""
        if node.op in ("placeholder", "output"):
            return None
        comment = self.origin(node.meta)
        if comment == self.last_comment:
            return None
        self.last_comment = comment
        return f"\n{self.colors['dim'](comment)}\n"

    def place(self, node: Any) -> tuple[str, int] | None:
        """Where a node is in the source. Of a branch or a loop, where its condition is: that of a
        branch is a node before it."""
        if node.op != "call_function" or node.target not in (ops.cond, ops.for_loop,
                                                             ops.while_loop):
            return node._location
        inner = node.args[0].nodes if node.target is ops.while_loop else ()
        return next((n._location for n in inner if n.op not in ("placeholder", "output")), None)

    def source_comment(self, node: Any) -> str | None:
        """The user's line that a node comes from, if the node before it has another."""
        place = self.place(node)
        if node.op in ("placeholder", "output") or place is None:
            return None
        file, line = place
        text = linecache.getline(file, line).strip()
        comment = f"# {os.path.basename(file)}:{line}{': ' if text else ''}{text}"
        if comment == self.last_comment:
            return None
        self.last_comment = comment
        return f"{self.colors['dim'](comment)}\n"

    def origin(self, meta: dict) -> str:
        more = ", ".join(f"{key}: {meta[key]}" for key in self.additional_meta if key in meta)
        words = []
        if meta.get("custom"):
            words.append(f"Annotation: { {k: _shorten(v) for k, v in meta['custom'].items()} }")
        region, policy = meta.get("ac_graph_id"), meta.get("recompute")
        if region is not None:
            words.append(f"ac_graph_id: {region}" + (f" - {policy.name}" if policy else ""))
        elif policy is not None:
            words.append(f"recompute: {policy.name}")
        trace = meta.get("stack_trace")
        frame = _parse_stack_trace(trace) if trace else None
        words.append(frame.get_summary_str() if frame else _NO_STACK_TRACE)
        return (f"# {more} # " if more else "# ") + " ".join(words)

    def tensor_annotation(self, node: Any) -> str | None:
        meta = node.meta
        val = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
        text = None if val is None else self.description_of(val)
        return f': "{text}"' if text else None

    def description_of(self, val: Any) -> str | None:
        """A tensor as `f32[2, 3]`, a symbolic number as `Sym(s0)`; None for others."""
        torch = self.torch
        if torch is None:
            return None
        if isinstance(val, torch.Tensor):
            return self.tensor_text(val)
        if isinstance(val, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return f"Sym({CodeGen._sym_repr(val)})"
        if type(val).__name__ == "TensorMetadata":
            return f"{self.dtype_text(val.dtype)}[{', '.join(map(str, val.shape))}]"
        return None

    def dtype_text(self, dtype: Any) -> str:
        try:
            return dtype_abbrs[dtype]
        except KeyError:
            return str(dtype).removeprefix("torch.")

    def tensor_text(self, val: Any) -> str | None:
        if val.layout in (self.torch.sparse_csr, self.torch.sparse_csc):
            return None
        sizes = ", ".join(map(str, val.shape))
        stride = ", ".join(map(str, val.stride())) if self.include_stride else None
        text = (
            self.colors["red"](self.dtype_text(val.dtype))
            + self.colors["blue"](f"[{sizes}]")
            + self.colors["dim_blue"]("" if stride is None else f"[{stride}]")
            + self.colors["dim_green"](f"{val.device}" if self.include_device else "")
        )
        name = type(val).__name__
        return text if name in ("Tensor", "FakeTensor") else f"{name}({text})"


_register_base()
_find_torch()
for _class in (CodeGen, PythonCode, _BoxedCodeGen, _CustomBuiltin, _PyTreeCodeGen, _PyTreeInfo):
    _class.__module__ = "cfx.graph"  # where users find them
