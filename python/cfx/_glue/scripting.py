"""What the world of scripts in C asks of Python: tables of torch's functions, sources, contexts.

Nothing here is for users. cfx._core calls these functions by name, through cfx._glue.
"""
import builtins
import collections
import copy
import dataclasses
import itertools
import linecache
import operator
import os
import sys
import sysconfig
import types
import warnings
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .. import _core, _glue, ops
from . import chance, contexts
from .contexts import call_in, call_in_new
from .tracing import is_library
from ..proxy import Proxy, TraceError


class ScriptError(Exception):
    """A program cannot be captured from its source. The message says where, and what to do."""


_ERRORS: dict[str, type] = {}


def _with_line(message):
    """What was found when the program was over names the file and the line: the line is shown, as
    the evaluator does."""
    file, line, _ = (*message.split(":", 2), "", "")[:3]
    text = linecache.getline(file, int(line)).rstrip() if line.isdecimal() else ""
    return f"{os.path.basename(file)}{message[len(file):]}\n  {text}" if text else message


def script_error(job):
    """Raises what ended an evaluation: a ScriptError that is of Python's own kind, too."""
    name, message, line, column = job
    if "\n" not in message:
        message = _with_line(message)
    kind = getattr(builtins, name or "RuntimeError")
    if kind is KeyboardInterrupt:
        raise KeyboardInterrupt(message)
    if kind not in _ERRORS:
        body = {"__module__": "cfx", "__doc__": ScriptError.__doc__}
        _ERRORS[kind] = type("ScriptError", (ScriptError, kind), body)
    raise _ERRORS[kind](message)


def script_note(job):
    """Says in an exception where in the program it was raised, and by which calls."""
    error, places = job
    if not places or not hasattr(error, "add_note"):
        return
    lines = []
    for file, line, column, function in reversed(places):
        text = linecache.getline(file, line)
        lines.append(f'  File "{file}", line {line}, in {function}')
        if text.strip():
            before = len(text.encode()[:column].decode(errors="ignore").lstrip())
            lines += [f"    {text.strip()}", f"    {' ' * before}^"]
    note = "while scripting:\n" + "\n".join(lines)
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


# ---- sources ---------------------------------------------------------------------------------

_STANDARD = tuple(
    os.path.join(sysconfig.get_paths()[name], "") for name in ("stdlib", "platstdlib")
)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def script_is_users(file):
    """Whether functions of that file are looked into: not torch's, cfx's or Python's own."""
    if is_library(file) or file.startswith("<frozen "):
        return False
    return not file.startswith(_STANDARD) or any(part in file for part in _PACKAGES)


_codes: dict[str, tuple[list, set]] = {}  # of files that were written late


def _all_codes(file, lines):
    try:
        todo = [compile("".join(lines), file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return set()
    found = set()
    while todo:
        found.add(now := todo.pop())
        todo += [c for c in now.co_consts if isinstance(c, types.CodeType)]
    return found


def _same_code(code, lines):
    """Whether compiling the text gives that very code."""
    file = code.co_filename
    if file not in _codes or _codes[file][0] is not lines:
        _codes[file] = lines, _all_codes(file, lines)
    return code in _codes[file][1]


def _changed_late(file):
    """Whether the file was written after cfx was imported."""
    try:
        return os.stat(file).st_mtime > _glue.started
    except OSError:  # a cell of a notebook
        return False


_typed: dict[types.CodeType, list[str]] = {}  # sources that were found again


_CONTINUES = (" ", "\t", ")", "]", "}", "else", "elif", "except", "finally")


def _statements(lines):
    """What was typed at a prompt, statement by statement, latest first."""
    starts = [i for i, line in enumerate(lines) if not line.startswith(_CONTINUES)
              and not (i and lines[i - 1].startswith("@"))]
    for start, end in reversed([*itertools.pairwise([*starts, len(lines)])]):
        yield lines[start:end]


def _typed_texts(code):
    """Texts that may be the source of code that is in no file."""
    if lines := linecache.getlines(code.co_filename):  # Python 3.13 keeps them
        yield lines
    if code.co_filename == "<string>":  # python -c
        for option, text in itertools.pairwise(sys.orig_argv):
            if option.startswith("-") and option.endswith("c"):
                yield text.splitlines(keepends=True)
    readline = sys.modules.get("readline")
    if code.co_filename == "<stdin>" and readline is not None:
        word = code.co_name.strip("<>")
        count = readline.get_current_history_length()
        history = [f"{readline.get_history_item(i) or ''}\n" for i in range(1, count + 1)]
        yield from (text for text in _statements(history) if any(word in line for line in text))


def _typed_lines(code):
    """The source of what was typed, if there is a text that compiles to that very code: `<stdin>`
    and `<string>` name any text."""
    if code not in _typed:
        found = (text for text in _typed_texts(code) if code in _all_codes(code.co_filename, text))
        if (lines := next(found, None)) is None:
            return None
        _typed[code] = lines
    return _typed[code]


def script_lines(fn):
    """The lines of the file that a function is in; None if there are none."""
    file = fn.__code__.co_filename
    if file in ("<stdin>", "<string>"):
        return _typed_lines(fn.__code__)
    lines = linecache.getlines(file, fn.__globals__)
    if lines and _changed_late(file) and not _same_code(fn.__code__, lines):
        linecache.checkcache(file)
        lines = linecache.getlines(file, fn.__globals__)
        if not _same_code(fn.__code__, lines):
            raise ScriptError(
                f"{file}:{fn.__code__.co_firstlineno}: the source of '{fn.__qualname__}' has "
                "changed since it was imported; reload it (importlib.reload), or restart Python"
            )
    return lines or None


# ---- helpers that are evaluated, too: they have a source ----------------------------------------


def call_cached(script, cache, fn, *args, **kwargs):
    known, result = recall(script, cache, args, kwargs)
    if not known:
        result = fn(*args, **kwargs)
        remember(script, cache, args, kwargs, result)
    return result


recall, remember = _core._script_recall, _core._script_remember


def call_uncached(script, cache, fn, *args, **kwargs):
    return fn(*args, **kwargs)


def script_cached(job):
    """How a function behind a cache of functools is called: (helper, script, cache, function)."""
    if hasattr(job[1], "cache_parameters") and job[1].cache_parameters()["maxsize"] == 0:
        return call_uncached, *job
    return call_cached, *job


def call_inside(function, args, kwargs):
    return function(*args, **kwargs)


def call_keeping(kept, function, args, kwargs):
    return function(*args, **kwargs), kept


def call_with_hooks(module, *args, **kwargs):
    for key, hook in module._forward_pre_hooks.items():
        if key in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    result = module.forward(*args, **kwargs)
    for key, hook in module._forward_hooks.items():
        if key in module._forward_hooks_with_kwargs:
            changed = hook(module, args, kwargs, result)
        else:
            changed = hook(module, args, result)
        if changed is not None:
            result = changed
    return result


def is_tensor(obj):
    return isinstance(obj, torch.Tensor)


def is_of_type(obj, target_type):
    return isinstance(obj, target_type)


def check_with(error_type, cond, message=None):
    if not cond:
        raise error_type("Expected cond to be True, but got False" if message is None
                         else message())


def check(cond, message=None):
    check_with(RuntimeError, cond, message)


def check_all_with(error_type, cond, message=None):
    check_with(error_type, cond.all(), message)


def check_all(cond, message=None):
    check_with(RuntimeError, cond.all(), message)


def make_dataclass(cls, *args, **kwargs):
    made, rest = init_fields(cls, args, kwargs)
    made.__post_init__(*rest)
    return made


def init_fields(cls, args, kwargs):
    """A dataclass's instance without what its __post_init__ does, and what that is called with."""
    made, rest = cls.__new__(cls), []
    object.__setattr__(made, "__post_init__", lambda *given: rest.extend(given))
    made.__init__(*args, **kwargs)
    object.__delattr__(made, "__post_init__")
    return made, tuple(rest)


def script_dataclass(cls):
    """How a dataclass with a __post_init__ is called: (helper, class); None: as any other."""
    if not dataclasses.is_dataclass(cls) or not cls.__dictoffset__:
        return None
    return make_dataclass, cls


def make_by_new(cls, *args, **kwargs):
    made = cls.__new__(cls, *args, **kwargs)
    if isinstance(made, cls):
        made.__init__(*args, **kwargs)
    return made


def script_new(cls):
    """How a class with a user-defined __new__ is called: (helper, class); None: as any other."""
    return None if issubclass(cls, (torch.Tensor, BaseException)) else (make_by_new, cls)


def _record(value, function):
    return value.tracer.create_proxy("call_function", function, (value,), {})


def _copied(value, convert, factory):
    """As dataclasses.asdict copies what a field holds; a graph value is copied by the graph."""
    if isinstance(value, Proxy):
        return _record(value, copy.deepcopy)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return convert(value, factory)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_copied(part, convert, factory) for part in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(part, convert, factory) for part in value)
    if isinstance(value, dict):
        return {copy.deepcopy(key): _copied(part, convert, factory) for key, part in value.items()}
    return copy.deepcopy(value)


def dict_of(made, factory):
    if isinstance(made, Proxy):
        return _record(made, dataclasses.asdict)
    parts = ((f.name, getattr(made, f.name)) for f in dataclasses.fields(made))
    return factory([(name, _copied(part, dict_of, factory)) for name, part in parts])


def tuple_of(made, factory):
    if isinstance(made, Proxy):
        return _record(made, dataclasses.astuple)
    parts = (getattr(made, f.name) for f in dataclasses.fields(made))
    return factory([_copied(part, tuple_of, factory) for part in parts])


def as_dict(obj, *, dict_factory=dict):
    return dict_of(obj, dict_factory)


def as_tuple(obj, *, tuple_factory=tuple):
    return tuple_of(obj, tuple_factory)


def script_inside(root=None, concrete_args=None, **options):
    return root  # what is evaluated is captured already


def script_hooked(module):
    """What calls a module that has hooks, bound to it."""
    return types.MethodType(call_with_hooks, module)


_DICTS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)


def _dict_call(tracer, value):
    """A dict of a user-defined class, as a call of the class."""
    cls, kwargs = type(value), {}
    args = ([(key, _returned(tracer, part)) for key, part in value.items()],)
    if dataclasses.is_dataclass(cls):
        names = [f.name for f in dataclasses.fields(cls) if f.init]
        args, kwargs = (), {name: _returned(tracer, getattr(value, name)) for name in names}
    elif cls.__init__ not in [base.__init__ for base in _DICTS]:
        raise ScriptError(
            f"cannot return a {cls.__qualname__}: it is a dict with its own __init__, which a "
            "graph cannot call; return a dict, and make the object outside"
        )
    return tracer.create_proxy("call_function", cls, args, kwargs)


class _Set(Exception):
    """A result has a set in it."""


def _returned(tracer, value):
    if isinstance(value, dict) and type(value) not in _DICTS:
        return _dict_call(tracer, value)
    if type(value) in (list, tuple):
        parts = [_returned(tracer, part) for part in value]
        return value if all(map(operator.is_, parts, value)) else type(value)(parts)
    if type(value) is dict:
        return {key: _returned(tracer, part) for key, part in value.items()}
    if isinstance(value, set):
        raise _Set
    return value


# ---- modules ---------------------------------------------------------------------------------


def train_module(self, mode=True):
    if not isinstance(mode, bool):
        raise ValueError("training mode is expected to be boolean")
    self.training = mode
    for module in self.children():
        module.train(mode)
    return self


def eval_module(self):
    return self.train(False)


def apply_module(self, fn):
    for module in self.children():
        module.apply(fn)
    fn(self)
    return self


def assign_attribute(self, name, value):
    _core._script_plainly(self)
    setattr(self, name, value)


def script_watch(modules):
    """What the modules and those below them have, to see later what a call has changed."""
    seen = {module: None for root in modules for module in _below(root)}
    return [(module, [(table, dict(table)) for table in _tables_of(module)]) for module in seen]


def _below(module):
    yield module
    for child in vars(module).get("_modules", {}).values():
        if child is not None:
            yield from _below(child)


def _tables_of(module):
    own = vars(module)
    return [own, *(table for table in own.values() if isinstance(table, dict))]


def script_undo(watched):
    """Puts back what has changed since script_watch: (module, name) of the first, or None."""
    changed = None
    for module, tables in watched:
        for table, before in tables:
            names = [n for n in {**before, **table} if table.get(n, ...) is not before.get(n, ...)]
            if names:
                changed = changed or (module, str(names[0]))
                table.clear()
                table.update(before)
    return changed


def script_flag_check(job):
    """How a graph checks that its module is in the mode that it was captured in."""
    mode, training = job
    now, other = ("training", "eval") if training else ("eval", "training")
    return operator.eq, torch._assert, (
        f"this graph was captured in {now} mode only; capture it again in {other} mode\n"
        f"it could not be captured for both modes: {mode.reason}"
    )


def script_class(job):
    """A class that the program makes. Its annotations are known by their names only."""
    name, bases, body = job
    body["__module__"] = "script"
    if "__annotations__" in body:
        body["__annotations__"] = dict.fromkeys(body["__annotations__"], Any)
    return types.new_class(name, bases, {}, lambda namespace: namespace.update(body))


# ---- torch's functions -------------------------------------------------------------------------


class Recorder(TorchFunctionMode):
    """While it is entered, whatever torch computes becomes a node of the tracer's graph."""

    def __init__(self, tracer: Any) -> None:
        super().__init__()
        self.tracer = tracer
        self.reads_flags = False  # set by _core._evaluate
        self.where: tuple[str | None, int] = (None, 0)  # likewise: the last place, at its end
        self.reason = ""  # why the program was not captured for both modes
        self.contexts = contexts.Contexts(tracer)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is contexts.set_mode:
            return self.contexts.switched(*args)
        self.contexts.check()
        return _core._script_torch(self.tracer, func, args, kwargs)

    def returned(self, value):
        """What a program returns, as the graph is to give it."""
        try:
            return _returned(self.tracer, value)
        except _Set:
            file, line = self.where
            code = self.tracer.graph._co_fields
            message = (
                f"{file or code['co_filename']}:{line or code['co_firstlineno']}: "
                f"'{code['co_name']}' returns a set, which cannot be part of a graph; return a "
                "list (sorted(s)) or a tuple"
            )
        script_error(("NotImplementedError", message, line, 1))


# What is recorded, by qualified names, and what a tensor of the program answers for itself: stated
# once for all worlds, in policy.def.
_POLICY, _facts = _core._script_policy()
_FACTS = frozenset(_facts)


def _fact_functions():
    for name in _FACTS:
        found = getattr(torch.Tensor, name, None)
        if found is not None and not isinstance(found, (str, type)):
            yield found if callable(found) else found.__get__
    yield from (torch.device, torch.promote_types, torch.can_cast, torch.result_type)
    yield from (torch.is_floating_point, torch.is_complex, torch.numel, torch.is_signed)


def _methods():
    """Names of methods of tensors, except those that are fields of torch's named tuples."""
    fields = {
        field
        for type_ in vars(torch.return_types).values()
        for field in getattr(type_, "__match_args__", ())
    }
    members = ((name, getattr(torch.Tensor, name, None)) for name in dir(torch.Tensor))
    return {name for name, member in members if callable(member)} - fields


# CFX_RULE_ALWAYS, and rules of Python's world alone: see python/src/script/script_call.c.
_ITEM, _DEEP, _ALWAYS, _MODE, _REFUSED, _REFUSED_OF_GRAPH, _ASKED = 1, 3, 4, 5, 6, 7, 8
def _record_rules():
    rules = {}
    for name, rule in _POLICY:
        for function in chance.named(name):
            rules[function] = rule
    rules[torch.nn.Parameter] = _ITEM
    rules[torch.nn.utils.rnn.PackedSequence] = rules[warnings.warn] = _DEEP
    rules.update(dict.fromkeys(chance.refused, _REFUSED))
    rules.update(dict.fromkeys(chance.refused_of_graph, _REFUSED_OF_GRAPH))
    rules.update(dict.fromkeys(contexts.MODES, _MODE))
    rules[ops.check_length] = rules[ops.check_buffer] = _ALWAYS
    rules.update(dict.fromkeys(chance.asked, _ASKED))
    rules.update({t: _ALWAYS for t in vars(torch).values() if type(t) is type(torch.FloatTensor)})
    return rules


# Methods that builtin functions call: of the user's classes, they are evaluated, too.
_DUNDERS = {
    len: ("__len__",), abs: ("__abs__",), int: ("__int__", "__index__"), float: ("__float__",),
    complex: ("__complex__",), bool: ("__bool__", "__len__"), round: ("__round__",),
    str: ("__str__", "__repr__"), repr: ("__repr__",), divmod: ("__divmod__",),
    format: ("__format__",),
}  # fmt: skip


def _transforms():
    """{code: name} of torch's functions that run others on tensors of their own; and of what
    they return, if that does it."""
    table = {}
    for name in ("vmap", "grad", "grad_and_value", "jacrev", "jacfwd", "hessian"):
        table[getattr(torch.func, name)(abs).__code__] = f"torch.func.{name}"
    for name in ("vjp", "jvp", "linearize"):
        table[getattr(torch.func, name).__code__] = f"torch.func.{name}"
    table[torch.vmap(abs).__code__] = "torch.vmap"
    return table


def _specials():
    """{function: the evaluator's number for it}"""
    table = {}
    modules = {m.__name__: m for m in (builtins, itertools, operator, torch)}
    for number, name in enumerate(_core._script_specials()):
        module, _, function = name.partition(".")
        found = modules[module]
        for part in function.split("."):
            found = getattr(found, part, None)
        if found is not None:
            table[found] = number
        if module == "torch" and hasattr(ops, function):
            table[getattr(ops, function)] = number
    return table


# What is evaluated instead of functions that would ask a graph value; by the name of their module
# where that is one that cfx leaves alone.
replaced: dict[Any, Any] = {
    torch.is_tensor: is_tensor,
    torch._check: check, torch._check_with: check_with,
    torch._check_tensor_all: check_all, torch._check_tensor_all_with: check_all_with,
    dataclasses.asdict: as_dict, dataclasses.astuple: as_tuple,
    torch.nn.Module.train: train_module, torch.nn.Module.eval: eval_module,
    torch.nn.Module.apply: apply_module, torch.nn.Module.__setattr__: assign_attribute,
    "torch.jit": {"isinstance": is_of_type},
}  # fmt: skip
_core._register(
    script_specials=_specials(),
    script_builtins=_record_rules(),
    script_dunders=_DUNDERS,
    script_operators=(torch._ops.OpOverload, torch._ops.OpOverloadPacket,
                      torch._ops.HigherOrderOperator),
    script_facts=_FACTS,
    script_methods=frozenset(_methods()),
    script_plain=frozenset(_fact_functions()),
    script_contexts=contexts.KINDS,
    script_refusal=contexts.Refusal,
    script_environ=os.environ,
    script_generator=torch.Generator,
    script_set_grad=torch.set_grad_enabled,
    script_packed=torch.nn.utils.rnn.PackedSequence,
    script_requires_grad=torch.Tensor.requires_grad_,
    script_linecache=linecache,
    script_started=_glue.started,
    script_layers=os.path.join(os.path.dirname(torch.nn.__file__), "modules", ""),
    # functions with a source, although they are cfx's
    script_inlined=frozenset((
        call_in, call_in_new, call_inside, call_keeping, call_with_hooks, make_dataclass,
        make_by_new, is_tensor, is_of_type, check, check_with, check_all, check_all_with,
        as_dict, as_tuple, script_inside, ops.for_loop, ops._call, call_cached, call_uncached,
        assign_attribute, train_module, eval_module, apply_module,
    )),
    script_replaced=replaced,
    script_trace_error=TraceError,
    script_refused=_transforms(),
)  # fmt: skip
_glue.install(
    script_error, script_note, script_is_users, script_lines, script_hooked, script_class,
    script_dataclass, script_new, script_watch, script_undo, script_flag_check, script_cached,
)  # fmt: skip
