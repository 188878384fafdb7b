"""Generated source: running it, putting off writing it, and saying where it failed."""
import functools
import itertools
import linecache
import os
import sys
import traceback
import weakref
from collections.abc import Callable
from typing import Any

from .. import _core
from .codegen import _BoxedCodeGen, _parse_stack_trace, _PyTreeCodeGen
from ..graph import CodeGen, Graph, PythonCode, _Namespace
from ..node import Node, source_line


class _Generated:
    """Marks the globals of generated code, and lives as long as they do."""


class _EvalCacheLoader:
    """The generated sources by the names of their files, for linecache and thus for tracebacks,
    inspect and pdb. A source is let go of with the globals of the code that it is of."""

    def __init__(self) -> None:
        self.eval_cache: dict[str, str] = {}
        self._numbers = itertools.count()

    def cache(
        self, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
    ) -> str:
        """Keeps `src` for as long as `globals` live; returns the name of its file."""
        key = self._get_key()
        if co_fields:
            key += " from {co_filename}:{co_firstlineno} in {co_name}".format(**co_fields)
        names = (key, os.path.abspath(key))  # pdb asks for the latter
        self.eval_cache[key] = src
        entry: Any = (functools.partial(self.get_source, key),)
        if key.endswith(">"):  # "... in <lambda>": linecache asks for no source of such a file
            entry = len(src), None, src.splitlines(True), key
        linecache.cache.update(dict.fromkeys(names, entry))
        mark = globals["__cfx_generated__"] = _Generated()
        weakref.finalize(mark, self._forget, names).atexit = False
        return key

    def get_source(self, module_name: str) -> str | None:
        return self.eval_cache.get(module_name)

    def _get_key(self) -> str:
        return f"<eval_with_key>.cfx{next(self._numbers)}"  # torch.fx's are plain numbers

    def _forget(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.eval_cache.pop(name, None)
            linecache.cache.pop(name, None)


_loader = _EvalCacheLoader()


def _exec_with_source(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> None:
    key = _loader.cache(src, globals, co_fields)
    exec(compile(src, key, "exec", dont_inherit=True), globals)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable[..., Any]:
    own = globals.copy()
    _exec_with_source(src, own, co_fields)
    return own.pop(method_name)


_forward_from_src = functools.partial(_method_from_src, "forward")


# ---- code that is not written yet --------------------------------------------------------------


class _PendingCode(PythonCode):
    """Becomes the PythonCode of a graph when it is first read, or before the graph is edited.
    `codegen` is a copy of the graph's. `old`, which it takes the place of, need not be written if
    that is pending, too: unless somebody still has it when this one is written."""

    def __init__(self, graph: Graph, codegen: CodeGen, old: PythonCode | None) -> None:
        self.graph, self.codegen, self.old = graph, codegen, None
        fields = object.__getattribute__(old, "__dict__") if is_pending(old) else {}
        if fields.get("graph") is graph:
            self.old = weakref.ref(old)  # type: ignore[assignment, arg-type]
            fields["replaced"] = True
        graph._on_edit(self)

    def __getattribute__(self, name: str) -> Any:
        _write(self)
        return getattr(self, name)

    def __call__(self) -> None:
        if not object.__getattribute__(self, "__dict__").pop("replaced", False):
            _write_or_note(self)


def is_pending(code: PythonCode | None) -> bool:
    return type(code) is _PendingCode


def _write(code: PythonCode) -> None:
    fields = object.__getattribute__(code, "__dict__")
    graph, codegen = fields.get("graph"), fields.get("codegen")
    if graph is None or codegen is None:  # another thread was faster
        return
    if "error" in fields:
        raise fields["error"]
    written = codegen._gen_python_code(graph.nodes, "self", _Namespace())
    if "graph" in fields:  # until the class changes, other threads find it pending
        fields.update(vars(written), _version=graph._version)
        code.__class__ = PythonCode
        fields.pop("graph", None), fields.pop("codegen", None)
    old = fields.pop("old", None)
    if old is not None and is_pending(old()):
        _write_or_note(old())


def _write_or_note(code: PythonCode) -> None:
    try:
        _write(code)
    except Exception as e:  # reading the code raises it again
        object.__getattribute__(code, "__dict__")["error"] = e


def code_of(graph: Graph, old: PythonCode | None) -> PythonCode:
    """The code of a graph, in the place of `old`: pending, unless code of the user has a part."""
    codegen = graph._codegen
    stock = type(codegen) in (CodeGen, _BoxedCodeGen, _PyTreeCodeGen)
    if stock and not codegen._body_transformer and type(graph).python_code is Graph.python_code:
        own = object.__new__(type(codegen))
        vars(own).update(vars(codegen))
        return _PendingCode(graph, own, old)
    code = graph.python_code("self")
    code._version = graph._version  # type: ignore[attr-defined]
    return code


def lazy_forward(code: PythonCode, co_fields: dict[str, Any]) -> Any:
    """What stands in a class for the function of `code` until it is first used."""
    make = lambda: _forward_from_src(code.src, code.globals, co_fields)
    return _core._LazyFunction("forward", make)


def touch_forward(cls: type, recompiles: int) -> None:
    """Sees to it that `forward` is there. Dynamo, which would follow the making of it and fail, is
    told to run this for its result; the number makes it look again after a recompile()."""
    cls.forward  # type: ignore[attr-defined]


touch_forward._dynamo_marked_constant = True  # type: ignore[attr-defined]


# ---- errors in generated code ------------------------------------------------------------------


def _origin(node: Node) -> str:
    """The user's line for a node, as a traceback shows it; "" if it is not known."""
    frame = _parse_stack_trace(node.meta.get("stack_trace", ""))
    if frame is not None:
        return f'\n  File "{frame.file}", line {frame.lineno}, in {frame.name}\n    {frame.code}'
    return "" if node._location is None else "\n" + source_line(*node._location)


def _node_of_line(graph: Graph, code: PythonCode, line: int) -> Node | None:
    edited = graph._version != getattr(code, "_version", None)
    number = None if edited else (code._lineno_map or {}).get(line - code._prologue_start)
    return None if number is None else next(itertools.islice(graph.nodes, number, None), None)


def surroundings(frame_summary: traceback.FrameSummary) -> str:
    """The lines around one that has failed, in torch.fx's words."""
    line = frame_summary.lineno or 0
    lines = linecache.getlines(frame_summary.filename)
    here = "".join(lines[line - 1 : line])
    return (
        f"Call using an FX-traced Module, line {line} of the traced Module's generated forward "
        f"function:\n{''.join(lines[line - 2 : line])}\n{'~' * (len(here.strip()) + 3)} <--- HERE\n"
        + "\n".join(lines[line : line + 2])
    )


def explain(module: Any, error: Exception) -> None:
    """Notes at which nodes `error` passed through the code of a module. If it was raised there,
    says where on stderr, as torch.fx does."""
    own = getattr(vars(type(module)).get("forward"), "__code__", None)
    frames = list(traceback.walk_tb(error.__traceback__))
    note = ""
    for line in [line for frame, line in frames if frame.f_code is own]:
        node = _node_of_line(module.graph, type(module)._python_code, line)
        if node is not None:
            note = f"While executing {node.format_node()}{_origin(node)}"
            error.add_note(note)
    if own is not None and frames[-1][0].f_code is own:
        summary = traceback.FrameSummary(own.co_filename, frames[-1][1], own.co_name)
        print(f"{surroundings(summary)}\n{note}", file=sys.stderr)
