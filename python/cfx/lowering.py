"""Captured models that run in C: `cfx.lower(graph_module)(*inputs)` computes what the module
computes, without running Python."""
import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _core
from ._core import Runtime
from ._glue.binding import bind
from ._glue.listing import public_names
from ._glue.prepared import advice_if_prepared
from ._glue.results import with_plain_results
from .graph import CodeGen, Graph
from .text import as_cfx


class Finding(NamedTuple):
    """A node that cannot be lowered."""

    node: str
    file: str | None
    line: int
    why: str


class LowerError(TypeError):
    """A module cannot be lowered; `findings` lists everything that is in the way."""

    def __init__(self, findings: list[Finding], advice: str = "") -> None:
        self.findings = findings
        count = f"{len(findings)} nodes" if len(findings) > 1 else "a node"
        lines = [f"cannot lower {count}:", *("  " + f.why for f in findings)]
        super().__init__("\n".join([advice, *lines] if advice else lines))


def _attribute(root: Any, path: str) -> Any:
    for name in path.split("."):
        root = getattr(root, name)
    return root


def read_tensors(graph: Graph, root: Any) -> dict[str, Any]:
    """The tensors that the graph and its regions read, by path. Those without gradients are the
    module's own: a program may change their sizes."""
    found = {path: _attribute(root, path) for path in _core._attributes_read(graph)}
    return {path: t.detach() if getattr(t, "requires_grad", False) else t
            for path, t in found.items()}


class _State(dict[str, _core.Tensor]):
    """The tensors that a program reads, by name. One can be replaced."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        super().__init__({name: _core.Tensor(t) for name, t in tensors.items()})
        self.given = tensors
        self.version = 0  # counts how often a tensor was replaced
        self.frozen: str | None = None  # the precision that it was compiled with,
        self.append = False             # and whether caches grow in place

    def __setitem__(self, name: str, tensor: Any) -> None:
        if self.frozen:
            raise TypeError("the program was compiled, which froze its tensors: change the module "
                            "and call cfx.compile again")
        if name not in self:
            raise KeyError(f"the program has no tensor '{name}'")
        super().__setitem__(name, _core.Tensor(tensor))
        self.given = {**self.given, name: tensor}
        self.version += 1

    def __delitem__(self, name: str) -> None:
        raise TypeError("a tensor that the program reads can be replaced, not removed")

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, tensor in dict(*args, **kwargs).items():
            self[name] = tensor


def _rebuild(graph: Graph, state: dict[str, Any], codegen: CodeGen, frozen: str | None,
             append: bool = False, runtime: Runtime | None = None) -> "Lowered":  # fmt: skip
    made = Lowered(graph, state, codegen, runtime)
    return made._freeze(precision=frozen, append=append) if frozen else made


class Lowered:
    """A program in C. It takes the same arguments and returns the same results as the module;
    result tensors belong to the library of the inputs. `state` shares memory with the module's
    parameters; if you replace a tensor in it, later runs use the new one. Copies and pickles have
    their own tensors."""

    def __init__(self, graph: Graph, state: dict[str, Any], source: Graph | CodeGen,
                 runtime: Runtime | None = None, shared: _State | None = None,
                 own: dict[str, Any] | None = None) -> None:
        self.graph = graph  #: in rows of the operator table
        self.runtime = runtime  #: what it computes with; None: the one that is current
        self.state = _State(state) if shared is None else shared
        self._own = own or {}  # tensors besides those of a state that it shares
        self._made = _core._Program(graph, {**state, **self._own}, runtime)
        self._version = self.state.version  # that the program was made from
        self._run: Callable[..., Any] = self._made.run
        # how the module takes arguments and gives results
        self._codegen = source._codegen if isinstance(source, Graph) else source
        self._takes_keywords = getattr(self._codegen, "takes_keywords", False)
        inputs = [n for n in graph.nodes if n.op == "placeholder"]
        self._inputs = [str(n.target) for n in inputs]
        self._many = any(name.startswith("*") for name in self._inputs)
        self._defaults = {str(n.target): n.args[0] for n in inputs if n.args}

    def _default(self, name: str) -> Any:
        if name not in self._defaults:
            raise TypeError(f"the input '{name}' is missing")
        return self._defaults[name]

    @property
    def _program(self) -> _core._Program:
        if self.state.version != self._version:
            self._version = self.state.version
            self._made = _core._Program(
                self.graph, {**self.state.given, **self._own}, self.runtime)
            self._run = self._made.run
        return self._made

    @property
    def _run_now(self) -> Callable[..., Any]:
        """What runs the program with the tensors that it has now."""
        return self._run if self.state.version == self._version else self._program.run

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the module returns for these arguments."""
        if self._takes_keywords:
            args, kwargs = self._codegen.process_inputs(*args, **kwargs), {}
        else:
            args = self._codegen.process_inputs(*args)
        plain = not kwargs and not self._many and len(args) == len(self._inputs)
        bound = args if plain else bind(self._inputs, args, kwargs, self._default)
        return self._codegen.process_outputs(self._run_now(*bound))

    __call__ = run

    def _freeze(self, onednn: str | None = None, tune: bool = False,
                cache: str | None = None, precision: str = "float32",
                append: bool = False) -> "Lowered":  # fmt: skip
        """For cfx.compile: takes the tensors as constants, and plans its runs."""
        state = {**self.state.given, **self._own}
        self._program.compile(self.graph, state, onednn, tune, cache, precision, append)
        self.state.frozen, self.state.append = precision, append
        return self

    @property
    def frozen(self) -> bool:
        """Whether it was made by cfx.compile: its tensors are constants."""
        return self.state.frozen is not None

    @property
    def plans(self) -> str:
        """The plans that runs of a compiled program have made so far, a line for each step."""
        return self._made.plans()

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        """Returns dtypes and shapes of all nodes, for tensors or descriptions ("float32[N, 3]");
        see cfx.infer_shapes."""
        from .shapes import infer_shapes
        return infer_shapes(self, *args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.state.given
        state = {name: t.torch() if isinstance(t, _core.Tensor) else t for name, t in given.items()}
        how = self.state.frozen, self.state.append
        return _rebuild, (self.graph, state, self._codegen, *how)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Lowered":
        make, parts = self.__reduce__()
        return make(*copy.deepcopy(parts, memo), self.runtime)

    def __repr__(self) -> str:
        frozen = ", frozen" if self.frozen else ""
        return f"Lowered({len(self.graph.nodes)} nodes, {len(self.state)} tensors{frozen})"


def _drop_guards(graph: Graph, module: Any) -> None:
    """Erases the call of an exported program that checks its inputs: it returns nothing, and
    operators check their arguments themselves."""
    for node in reversed(graph.nodes):
        if node.op == "call_module" and not node.users:
            kind = type(_attribute(module, str(node.target)))
            if kind.__name__ == "GuardsFn" and kind.__module__.startswith("torch.export."):
                graph.erase_node(node)


def _lower_clone(clone: Graph, module: Any) -> Graph:
    _drop_guards(clone, module)
    found = _core._lower(clone, module)
    if found:
        raise LowerError([Finding(*row) for row in found], advice_if_prepared(module))
    return clone


def lower_graph(module: Any) -> Graph:
    """A copy of a module's graph, lowered."""
    return _lower_clone(module.graph._clone(), module)


def lower(module: Any, *, runtime: Runtime | None = None) -> Lowered:
    """Turns a GraphModule into a program in C. Calls that have no row in the operator table, or no
    kernel, are listed together in a LowerError. The module is not changed. The program computes
    with `runtime`, or with the current one."""
    module = as_cfx(module)
    graph = getattr(module, "graph", None)
    if not isinstance(graph, Graph):
        raise TypeError(f"cfx.lower takes a cfx.GraphModule, not {type(module).__name__}: trace it "
                        "first with cfx.symbolic_trace")
    if hasattr(module, "_lowered"):  # a captured module, which may have several graphs
        return module._lowered(runtime)
    clone = graph._clone()
    codegen = with_plain_results(clone, graph._codegen)
    _lower_clone(clone, module)
    return Lowered(clone, read_tensors(clone, module), codegen, runtime)


__dir__ = public_names(globals())
