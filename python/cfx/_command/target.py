"""What a TARGET stands for: found, made with the arguments of --arg, given a checkpoint."""
import ast
import contextlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import weights
from .errors import Wrong, in_line, near, users, why_of

_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.S)


# ---- finding it --------------------------------------------------------------------------------


def _import_file(path: Path) -> Any:
    if not path.is_file():
        raise Wrong(f"there is no file '{path}'")
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise Wrong(f"'{path}' is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # as if Python ran it
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


def _import(name: str) -> Any:
    """The module of a file or of that name."""
    if name.endswith(".py") or os.sep in name:
        with users(f"cannot import '{name}'"):
            return _import_file(Path(name))
    if not {"", os.getcwd()} & set(sys.path):  # an installed command does not look here by itself
        sys.path.insert(0, os.getcwd())
    try:
        with users(f"cannot import '{name}'"):
            return importlib.import_module(name)
    except Wrong as wrong:
        why = wrong.__cause__
        if not isinstance(why, ModuleNotFoundError) or not f"{name}.".startswith(f"{why.name}."):
            raise
        raise Wrong(f"there is no module '{why.name}'; modules are searched for in this folder and "
                    "in PYTHONPATH; write a file as path/to/file.py:NAME") from why


def find(target: str) -> Any:
    """What package.module:NAME or path/to/file.py:NAME stands for."""
    name, colon, path = target.rpartition(":")
    if not (colon and name and path):
        raise Wrong(f"'{target}' is not a TARGET; write package.module:NAME or "
                    "path/to/file.py:NAME",
                    2)
    found = _import(name)
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise Wrong(f"'{name}' has no '{path}'{near(part, dir(found))}") from error
    return found


# ---- values of options -------------------------------------------------------------------------


def value(word: str, option: str) -> Any:
    """A Python literal, a dtype or a device."""
    word = word.strip()
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    named = getattr(torch, word.removeprefix("torch."), None)
    if isinstance(named, (torch.dtype, torch.layout, torch.memory_format)):
        return named
    with contextlib.suppress(RuntimeError):
        return torch.device(word)
    raise Wrong(f"{option}: {word} is not a Python literal, dtype or device; put text in quotes "
                f"twice: {option} \"'{word}'\"", 2)


def _arguments(words: list[str]) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in words:
        if named := _NAMED.fullmatch(word):
            if named[1] in kwargs:
                raise Wrong(f"--arg: '{named[1]}' is given twice", 2)
            kwargs[named[1]] = value(named[2], f"--arg {named[1]}=")
        else:
            args.append(value(word, "--arg"))
    return args, kwargs


def fixed_inputs(words: list[str]) -> dict[str, Any]:
    found = {}
    for word in words:
        if not (named := _NAMED.fullmatch(word)):
            raise Wrong(f"--concrete: expected NAME=VALUE, not '{word}'", 2)
        found[named[1]] = value(named[2], "--concrete")
    return found


# ---- making it ---------------------------------------------------------------------------------
def _needed(make: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> str | None:
    """Why it cannot be called so; None if it can, or if that is not known."""
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return f"{error}; the signature is {make.__name__}{signature}; pass arguments with --arg"
    return None


def make(found: Any, target: str, words: list[str]) -> Any:
    """A module, or a function of tensors."""
    args, kwargs = _arguments(words)
    is_class = isinstance(found, type)
    if isinstance(found, nn.Module):
        if words:
            raise Wrong(f"'{target}' is already a module, so it takes no --arg", 2)
        return found
    if not callable(found) or (is_class and not issubclass(found, nn.Module)):
        kind = f"the class {found.__name__}" if is_class else f"of type {type(found).__name__}"
        raise Wrong(f"'{target}' is {kind}; give a module, a module class or a function")
    why = _needed(found, args, kwargs)
    if why is None or is_class or words:
        if why is not None:
            raise Wrong(f"cannot call '{target}': {why}")
        with users(f"calling '{target}'"):
            made = found(*args, **kwargs)
        if isinstance(made, nn.Module):
            return made
        if words:
            raise Wrong(f"'{target}' returns a {type(made).__name__}, not a module")
    return found


def load(module: Any, file: str) -> None:
    """Parameters from a file. One that shares its memory with another may be missing."""
    if not isinstance(module, nn.Module):
        raise Wrong("--checkpoint: a function has no parameters", 2)
    try:
        with open(file, "rb") as f:
            start = f.read(2)
        if file.endswith(weights.extensions("named tensors")) or start not in (b"PK", b"\x80\x02"):
            state = {name: t.torch() for name, t in weights.load_tensors(file).items()}
        else:
            state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        why = in_line(error) if isinstance(error, OSError) else why_of(error)
        raise Wrong(f"--checkpoint: cannot load '{file}': {why}") from error
    if isinstance(state, dict):  # as training programs keep it, beside other things
        state = next((state[k] for k in ("state_dict", "model_state_dict", "model")
                      if isinstance(state.get(k), dict)), state)
    try:
        fit = module.load_state_dict(state, strict=False)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise Wrong(f"--checkpoint: '{file}' does not match the module: "
                    f"{in_line(error)}") from error
    given = {t.data_ptr() for name, t in module.state_dict().items() if name in state}
    missing = [name for name in fit.missing_keys
               if module.state_dict()[name].data_ptr() not in given]
    wrong = [f"{what} {', '.join(names)}" for what, names in
             (("the file lacks", missing), ("the module lacks", fit.unexpected_keys)) if names]
    if wrong:
        raise Wrong(f"--checkpoint: '{file}' does not match the module: {'; '.join(wrong)}")
