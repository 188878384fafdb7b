"""One captured run of a program."""
import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import _core
from .._symbolic_trace import Tracer
from ..interop import presence
from ..ops import check_buffer
from .boundary import AgainLeaf, Boundary, BoundaryCodeGen, FixedLeaf, NumberLeaf, TensorLeaf
from .boundary import Watched
from .decide import Askers, Decider
from .guards import CaptureError, program_line
from .installed import call_with
from .modes import ModesKept
from .net import Net
from .numbers import SYMBOLS, NotHashable, Number, number_of, spend, symbol
from .protocol import Uncompiled, device_mode, undisturbed
from .recorder import Recorder
from .state import Slots, new_input, own_attribute
from .._glue.structure import Flattened, Rebuilt, Tree
from .surroundings import Surroundings
from .undo import RandomStates, Undo, copy_inputs
from .witness import Witness


class CaptureTracer(Tracer):
    """Tracer whose values are real: module calls and names of nodes are the Tracer's."""

    recorder: Recorder

    def __init__(self) -> None:
        super().__init__()
        self.scripted: dict[str, Any] = {}  # what runs for modules that torch.jit.script has made

    def create_arg(self, a: Any) -> Any:
        recorder = self.recorder
        if isinstance(a, Witness):
            if recorder.evaluating:
                recorder.env[a._node] = a._real
                recorder.lent[a._node] = a
            return a._node
        number = number_of(a)
        if number is not None and number.recorder is not None:
            if recorder.evaluating:
                recorder.env[number.node] = number.value
                recorder.lent[number.node] = a
            return number.node
        if isinstance(a, torch.Tensor) and recorder.evaluating:
            return recorder.constant(a)
        return super().create_arg(a)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        return attr_val  # found by identity where it is used

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        if not self.recorder.evaluating:
            return False  # call_module has decided, and runs it in its scope
        return self._is_leaf(m, module_qualified_name)

    def _is_leaf(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        if presence.is_scripted(m):
            return True
        leaf = super().is_leaf_module(m, module_qualified_name) and not _has_users_code(m)
        return leaf and not self.recorder.undo.is_changed(m, module_qualified_name)

    def call_module(self, m, forward, args, kwargs):
        if self.recorder.evaluating:
            return super().call_module(m, forward, args, kwargs)
        if self.recorder.computing:
            return forward(*args, **kwargs)
        try:
            path = self.path_of_module(m)
        except NameError:  # made during the run
            return forward(*args, **kwargs)
        if m is self.root:
            return forward(*args, **kwargs)
        call = forward
        if self._is_leaf(m, path):
            if presence.is_scripted(m):  # numbers that it counts cannot be put back: a copy runs
                forward = self.scripted.setdefault(path, copy.copy(m))

            def call(*args, **kwargs):
                return self.recorder.call_leaf(path, m, forward, args, kwargs)

        return super().call_module(m, call, args, kwargs)


def _has_users_code(module: torch.nn.Module) -> bool:
    """Whether a call of a layer also runs functions that are not the layer's own, in it or in a
    layer inside: hooks, parametrizations, a forward that somebody assigned."""
    own = bool(module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
               or "parametrizations" in module._modules
               or type(module).__module__.startswith("torch.nn.utils."))  # fmt: skip
    return own or any(m is not None and _has_users_code(m) for m in module._modules.values())


class Options:
    """What a caller of `capture` chose."""

    def __init__(self, dynamic: Any = None) -> None:
        self.dynamic = dynamic

    def of_size(self, path: str, dim: int) -> bool | None:
        """Whether a size may change (True: it has to, False: it is fixed, None: it may)."""
        if self.dynamic is None or isinstance(self.dynamic, bool):
            return None if self.dynamic is not False else False
        chosen = self.dynamic.get(path)
        if isinstance(chosen, dict):
            return chosen.get(dim)
        if isinstance(chosen, (list, tuple)):
            return chosen[dim]
        return chosen

    def of_number(self, path: str) -> bool | None:
        if self.dynamic is None or isinstance(self.dynamic, bool):
            return None if self.dynamic is not False else False
        return self.dynamic.get(path)


SAYS_PLAIN = ("expected to contain only concrete integers", "sin_sp->is_int()")


def needs_plain_sizes(error: Exception) -> bool:
    """Whether a function of torch has failed because a size is not a plain number, in C++ that does
    not know others."""
    return isinstance(error, RuntimeError) and any(words in str(error) for words in SAYS_PLAIN)


class Knowledge:
    """What runs have found that the next run has to know."""

    def __init__(self, slots: list[tuple[str, str]], named: dict[str, Any]) -> None:
        self.askers = Askers()
        self.slots = slots  # attributes that the program changes: path of the module, name
        self.named = named  # tensors from outside that earlier graphs have names for
        self.hashes = False  # whether it cannot do without hashes of numbers
        self.general = True  # whether it is told that it is being traced
        self.plain_sizes = False  # whether torch cannot do with symbolic ones below its API

    def has_another_way(self, error: Exception) -> bool:
        """Whether a run that failed is to be tried in another way: with numbers that have hashes,
        with the sizes of the example, or as if nobody captured it, for models that expect sizes to
        be tensors when they are traced."""
        if isinstance(error, NotHashable) and not self.hashes:
            self.hashes = True
            return True
        if needs_plain_sizes(error) and not self.plain_sizes:
            self.plain_sizes = True
            return True
        retries = self.general and not isinstance(error, CaptureError)
        self.general = self.general and not retries
        return retries

    def learn(self, run: "Run") -> bool:
        """Takes what a run has found; whether there is anything new."""
        new = [key for key in run.changed if key not in self.slots]
        self.slots += new
        if self.askers.learn() or new:
            return True
        # no caller of them could be evaluated: then nothing is won by evaluating them
        useless = {c: why for c, why in run.decider.useless.items() if c not in self.askers.refused}
        self.askers.refused.update(useless)
        return bool(useless)


class Captured:
    """What a run gives: a graph, its boundary, and what it needs of the program's tensors."""

    runs = 0  # how many runs it took

    def __init__(self, graph: Any, boundary: Boundary, run: "Run") -> None:
        self.root, self.graph, self.boundary = run.root, graph, boundary
        self.pending = run.recorder.pending  # guards; the graph checks all of them
        self.examples = run.examples
        self.writes = bool(run.undo.saved) or run.writes  # whether the graph writes to the model
        self.foreign = run.recorder.foreign
        self.evaluated = run.decider.evaluated  # codes of functions, from their source
        self.refused = dict(run.known.askers.refused)  # {code: why} of those that cannot be

    # ---- installed: the model has the tensors from outside that the graph reads ----

    def install(self) -> None:
        for path, tensor in self.foreign.items():
            setattr(self.root, path, tensor)

    def remove(self) -> None:
        for path in self.foreign:
            with contextlib.suppress(AttributeError):
                delattr(self.root, path)

    def take_script(self, module: Any) -> None:
        """The whole program was captured from its source: nothing is assumed."""
        self.root, self.graph, self.pending, self.foreign = module, module.graph, [], {}
        self.boundary, self.writes = Boundary(self.boundary.signature), True


class Run:
    """One captured run of a program: `root` is a module whose `forward` is the program."""

    def __init__(self, root: torch.nn.Module, function: Callable[..., Any], args: tuple,
                 kwargs: dict[str, Any], known: Knowledge, options: Options) -> None:  # fmt: skip
        self.root, self.function, self.options = root, function, options
        self.known = known
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
        self.given = set(bound.arguments)
        bound.apply_defaults()
        self.arguments, self.num_positional = bound.arguments, len(args)
        self.keywords = list(kwargs)
        self.boundary = Boundary(signature)
        self.tracer = CaptureTracer()
        self.undo = Undo(root)
        self.recorder = self.tracer.recorder = Recorder(self.tracer, self.undo, known.askers)
        self.recorder.hashes, self.recorder.plain_sizes = known.hashes, known.plain_sizes
        self.recorder.named = known.named
        self.decider = Decider(self.recorder, known.askers)
        self.slots = Slots(root, known.slots)
        self.surroundings = Surroundings(function, root)
        self.decider.recorded += self.surroundings.caches
        self.decider.recorded.append(self.surroundings.types)
        self.changed: list[tuple[str, str]] = []  # attributes, but for buffers that are written
        self.writes = False
        self.examples: list[Any] = []  # of the inputs: numbers, sizes of tensors
        self.tracer.create_args_for_root = self._arguments  # type: ignore[method-assign]

    # ---- arguments ----

    def _placeholders(self) -> Any:
        """The arguments with witnesses in the places of tensors, numbers in those of numbers."""
        taken = Flattened()
        trees = [taken.tree(value, (name,)) for name, value in self.arguments.items()]
        self.boundary.tree = Tree("tuple", tuple, None, tuple(trees))
        tensors = iter(copy_inputs([v for v in taken.leaves if isinstance(v, torch.Tensor)]))
        leaves: list[Any] = []
        first: dict[int, int] = {}
        for leaf, path, setting in zip(taken.leaves, taken.paths, taken.settings):
            copied = next(tensors) if isinstance(leaf, torch.Tensor) else None
            same = first.setdefault(id(leaf), len(leaves))
            if copied is not None and same < len(leaves):
                self.boundary.leaves.append(AgainLeaf(str(path), same))
                leaves.append(leaves[same])
            else:
                leaves.append(self._leaf(leaf, str(path), path[0], setting, copied))
        rebuilt = Rebuilt(leaves, [])
        values = [rebuilt.value(tree) for tree in trees]
        objects = [rebuilt.objects[i] for i in range(len(taken.objects))]
        self.watched = Watched(objects, _kinds(trees, len(objects)))
        return values

    def _leaf(self, leaf: Any, path: str, name: str, setting: bool, copied: Any) -> Any:
        rules, recorder = self.boundary.leaves, self.recorder
        if isinstance(leaf, torch.Tensor):
            if leaf.is_nested:
                raise CaptureError(f"{path} is a nested tensor, whose sizes a graph cannot "
                                   "describe; pass a padded tensor and the lengths")  # fmt: skip
            node = new_input(self.tracer, path)
            self.examples.append(tuple(leaf.shape))
            fixes = (False, None) if self.known.plain_sizes else (False,)
            sizes = tuple(leaf.shape[d] if self.options.of_size(path, d) in fixes else None
                          for d in range(leaf.ndim))  # fmt: skip
            rules.append(TensorLeaf(path, leaf.dtype, leaf.ndim, leaf.device, sizes))
            recorder.fixed.update({(node, d): n for d, n in enumerate(sizes) if n is not None})
            witness = recorder.witness(node, copied)
            for d in range(leaf.ndim):
                if self.options.of_size(path, d) is True:
                    recorder.dynamic[witness.size_of(d).node.node] = f"{path}.shape[{d}]"
            return witness
        live = type(leaf) in (int, float) and self.options.of_number(path) is not False
        if live and name in self.given and not setting:
            node = new_input(self.tracer, path, type(leaf))
            self.examples.append(leaf)
            rules.append(NumberLeaf(path, type(leaf)))
            if self.options.of_number(path) is True:
                recorder.dynamic[node] = path
            return symbol(Number(recorder, node, leaf))
        rules.append(FixedLeaf(path, leaf))
        return leaf

    def _as_given(self, values: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments by place and by keyword, as the caller gave them: decorators look."""
        by_name = dict(zip(self.arguments, values))
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, parameter in self.boundary.signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                args += by_name[name]
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs |= by_name[name]
            elif name in self.keywords:
                kwargs[name] = by_name[name]
            elif len(args) < self.num_positional:
                args.append(by_name[name])
        return args, kwargs

    # ---- the run ----

    def _arguments(self, function, is_module, concrete_args=None):
        def run(*_):
            args, kwargs = self._as_given(self._placeholders())
            self.slots.prepare(self.recorder)
            general = [presence.GeneralCode()] if self.known.general else []
            nets = [Net(self.recorder)]
            device = self.boundary.around.device
            if device.type != "cpu":  # the net is above the caller's own mode for it
                nets.append(device_mode(device))
            result = call_with([self.surroundings, *general, Uncompiled(), self.boundary.around,
                                self.decider, self.slots, ModesKept(*nets)],
                               functools.partial(self._call, args, kwargs))  # fmt: skip
            self.surroundings.check()
            return self._results(result)

        return run, []

    def _call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        # a module by its call: hooks and a __call__ of its own are part of it
        program = self.root if self.function == self.root.forward else self.function
        result = program(*args, **kwargs)
        with undisturbed():
            self.recorder.follow_modes()
        return result

    def _assigned_buffers(self) -> list[tuple[torch.Tensor, Witness]]:
        """Buffers that the run assigned and that the graph can write: the old tensor and the new
        one. Other attributes that it changed are noted."""
        found = []
        for path in self.undo.left_in_other_mode():
            self._refuse(f"the program leaves {path or 'the module'} in another mode, training or "
                         "evaluation; put it back before it returns")  # fmt: skip
        for path, name in self.undo.changed():
            leaves = self.recorder.leaves
            inside = any(path == leaf or path.startswith(f"{leaf}.") for leaf in leaves)
            now = own_attribute(self.undo.modules[path], name)
            if inside and isinstance(now, torch.Tensor) and not isinstance(now, Witness):
                continue  # the layer that the graph calls does that itself
            old = self.undo.modules[path]._buffers.get(name)
            before = self.undo.tables[path][1].before.get(name)
            fits = (isinstance(old, Witness) and isinstance(before, torch.Tensor)
                    and (path, name) not in self.known.slots
                    and old._real.shape == before.shape and old._real.dtype == before.dtype)
            if fits:
                found.append((before, old))
            else:
                self.changed.append((path, name))
        return found

    def _results(self, result: Any) -> tuple:
        """The results of the graph: what the arguments have now that changed, what is assigned to
        attributes, then the result."""
        assigned = self._assigned_buffers()
        taken = Flattened()
        taken.objects = list(self.watched.objects)
        taken._numbers = {id(o): number for number, o in enumerate(taken.objects)}
        for number, kind, key, parts in self.watched.changed():
            described = tuple(taken.tree(part, ("",)) for part in parts)
            owner = type(self.watched.objects[number])
            self.boundary.after.append(Tree(kind, owner, key, described, number))
        self._end_slots(taken)
        self.boundary.result = taken.tree(result, ("",))
        nodes = []
        for leaf in taken.leaves:
            computed = isinstance(leaf, (torch.Tensor, *SYMBOLS))
            self.boundary.out.append((computed, None if computed else leaf))
            if computed:
                nodes.append(self._kept(leaf, assigned))
            else:
                self._refuse(_refusal_of_result(leaf))
        self._write(assigned)
        return tuple(nodes)

    def _end_slots(self, taken: Flattened) -> None:
        """What the program leaves in the attributes that it changes."""
        for key, slot in self.slots.slots.items():
            value = self.slots.value(key)
            count = len(taken.paths)
            self.boundary.slots.append(slot)
            self.boundary.assigned.append(taken.tree(value, (slot.path,)))
            self.boundary.names.append([str(path) for path in taken.paths[count:]])

    def _drop_unread(self) -> None:
        boundary = self.boundary
        boundary.num_arguments = len(self.examples)
        for leaf in self.slots.drop_unread():
            is_tensor = isinstance(leaf, torch.Tensor)
            self.examples.append(tuple(leaf.shape) if is_tensor else leaf)
        boundary.read = [key in self.slots.read for key in self.slots.slots]

    def _kept(self, leaf: Any, assigned: list[tuple[torch.Tensor, Witness]]) -> Any:
        """The node of a result: a copy if it is the memory of a buffer that will be written."""
        node = self.recorder.node(leaf)
        if not assigned or not isinstance(leaf, torch.Tensor):
            return node
        real = leaf._real if isinstance(leaf, Witness) else leaf
        shared = any(_share_memory(real, old) for old, _ in assigned)
        return self.recorder.method("clone", node) if shared else node

    def _write(self, assigned: list[tuple[torch.Tensor, Witness]]) -> None:
        """Buffers that the run assigned are written by the graph, all of them from old values."""
        recorder = self.recorder
        self.writes = bool(assigned)
        nodes = [self._kept(new, assigned) for _, new in assigned]
        for (old, _), node in zip(assigned, nodes):
            buffer = recorder.constant(old)
            recorder.call(check_buffer, buffer, node)
            recorder.method("copy_", buffer, node)

    def _refuse(self, why: str | None) -> None:
        """Fails with the line of the program, if there is a reason to."""
        if why is not None:
            raise CaptureError(f"{program_line(self.function)}{why}")

    def install(self) -> None:
        pass

    def remove(self) -> None:
        """The run is over."""
        self.recorder.thread = None
        spend(self.recorder)

    def run(self) -> Captured:
        random = RandomStates()

        def trace() -> Any:
            graph = self.tracer.trace(self.root)
            self._refuse(random.refusal())
            return graph, list(self.undo.lost())

        graph, lost = call_with([random, ModesKept(), self.undo, self], trace)
        if self.undo.trained:
            self._refuse("the program computes gradients of its parameters (backward) while it is "
                         "captured; capture the forward, and train what you get")  # fmt: skip
        if lost:
            self._refuse(f"the program wrote to {lost[0]} in a way that capture has not seen, and "
                         "that it cannot undo; write to it with a function of torch")  # fmt: skip
        if self.decider.evaluated:
            _core._script_tidy(graph)
        if self.recorder.insists_on_grad:  # the graph has nothing that would set it
            self.boundary.around.asked.add("is_grad_enabled")
        self._drop_unread()
        graph.set_codegen(BoundaryCodeGen(self.boundary))
        return Captured(graph, self.boundary, self)


def _refusal_of_result(leaf: Any) -> str | None:
    """A result that is not of the graph must not lead to anything that is."""
    parts = list(leaf) if isinstance(leaf, (set, frozenset)) else []
    for cell in getattr(leaf, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # empty
            parts.append(cell.cell_contents)
    if isinstance(leaf, Iterator) or any(isinstance(p, (Witness, *SYMBOLS)) for p in parts):
        return (f"the program returns a {type(leaf).__name__}, which a graph cannot make anew in "
                "each call; return a list or a tuple")  # fmt: skip
    return None


def _share_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    try:
        return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return a is b


def _kinds(trees: Any, count: int) -> list[str]:
    """The kinds of the objects in trees, by number."""
    kinds = [""] * count
    todo = list(trees)
    while todo:
        tree = todo.pop()
        if tree.number is not None:
            kinds[tree.number] = tree.kind
        todo += tree.parts
    return kinds

