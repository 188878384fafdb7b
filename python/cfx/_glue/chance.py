"""Functions of Python's library whose results differ between calls: random numbers, clocks, the
environment. A graph calls them; what it cannot call by name is refused.

Nothing here is for users. cfx._core calls script_chance by name, through cfx._glue.
"""
import builtins
import cmath
import copy
import datetime
import math
import operator
import os
import random
import secrets
import sys
import time
import types
import uuid
from typing import Any

import torch

from .. import _core, _glue
from .._core import Node
from ..node import _side_effectful_functions
from ..proxy import Proxy
from .contexts import Refusal


_PLAIN = (str, bool, int, float, complex, type(None))
# Modules of rows of policy.def; those that a program does not use need not be loaded.
_LOADED = (builtins, cmath, copy, math, operator, os, random, secrets, time, uuid)


def named(name: str) -> list:
    """The objects of a row of policy.def, among what is loaded."""
    home, _, function = name.rpartition(".")
    module = sys.modules.get(home)
    if function != "*":
        return [getattr(module, function)] if hasattr(module, function) else []
    public = [each for name, each in vars(module).items() if name[0] != "_"]
    return [f for f in public if isinstance(f, types.BuiltinFunctionType)]


def _changing():
    """Functions of Python's library that a graph calls each time that it runs."""
    homes = ("time", "random", "secrets", "uuid", "os", "numpy.random")
    for name, _ in _core._script_policy()[0]:
        if name.rpartition(".")[0] in homes:
            yield from named(name)


_LATER = "what it gives differs in each call; pass it as an argument, or cfx.wrap the function"
_SETS = "would change the environment once, during capture; change it before the call"
refused: dict[Any, str] = {
    random.shuffle: "random.shuffle changes a list during capture, not when the graph runs; use "
                    "random.sample(l, len(l)), or torch.randperm",
    os.putenv: f"os.putenv {_SETS}",
    os.unsetenv: f"os.unsetenv {_SETS}",
    random.SystemRandom: f"random.SystemRandom cannot be captured: {_LATER}",
    datetime.datetime.now: f"datetime.now cannot be captured: {_LATER}",
    datetime.datetime.utcnow: f"datetime.utcnow cannot be captured: {_LATER}",
    datetime.datetime.today: f"datetime.today cannot be captured: {_LATER}",
    datetime.date.today: f"date.today cannot be captured: {_LATER}",
}  # fmt: skip
# The same, if a graph value is among the arguments.
refused_of_graph: dict[Any, str] = {
    builtins.id: "the id of a graph value is not known during capture; compare with `is`",
}
_side_effectful_functions.update(f for f in _changing() if not isinstance(f, type))


def script_refused_call(function):
    raise Refusal(refused.get(function) or refused_of_graph[function])


def _numpys(function):
    """Whether it is one of numpy.random's; None: it is a method of a generator from elsewhere."""
    import numpy

    owner = getattr(function, "__self__", None)
    if isinstance(owner, (numpy.random.RandomState, numpy.random.Generator)):
        name = getattr(function, "__name__", "")
        return True if getattr(numpy.random, name, None) == function else None
    return str(getattr(function, "__module__", "")).startswith("numpy.random")


def script_chance(job):
    """A call that may be of a random generator: recorded, refused, or NotImplemented."""
    mode, function, args, kwargs = job
    owner = getattr(function, "__self__", None)
    numpys = _numpys(function) if not isinstance(owner, random.Random) else None
    name = getattr(function, "__name__", "")
    if numpys is None:
        raise Refusal(
            f"'{name}' of a random generator from outside the function would be called once, "
            "during capture; make the generator in the function, or use a torch.Generator"
        )
    if name in ("shuffle", "permuted") and numpys:
        raise Refusal(
            f"numpy.random.{name} changes its argument during capture, not when the graph runs; "
            "use numpy.random.permutation, or torch.randperm"
        )
    if not numpys:
        return NotImplemented
    _side_effectful_functions.add(function)
    return mode.tracer.create_proxy("call_function", function, args, kwargs)


def script_environment(job):
    """A method of os.environ: get is os.getenv, all else is refused."""
    mode, name, args, kwargs = job
    if name != "get" or kwargs:
        raise Refusal("os.environ is read once, during capture; use os.getenv(...) instead")
    return mode.tracer.create_proxy("call_function", os.getenv, args, {})


def _holds_values(value):
    """Whether there are graph values or tensors in it, which are printed as they are then."""
    if isinstance(value, dict):
        return any(map(_holds_values, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_holds_values, value))
    return isinstance(value, (torch.Tensor, Proxy, Node))


def _print(mode, function, args, kwargs):
    """The graph prints when it runs, and of what never changes the text that Python would print. A
    file cannot be part of a graph: to files, capture prints."""
    if kwargs.get("file") is not None:
        if not any(map(_holds_values, args)):
            return NotImplemented
        raise Refusal("a graph cannot print to a file; leave file= out, or cfx.wrap the function")
    shown = (a if type(a) in _PLAIN or _holds_values(a)
             else _core._script_call(mode.tracer, str, (a,), {}) for a in args)
    mode.tracer.create_proxy("call_function", function, tuple(shown), kwargs)
    return None


def _open(mode, function, args, kwargs):
    how = kwargs.get("mode", args[1] if len(args) > 1 else "r")
    if isinstance(how, str) and not set(how).isdisjoint("wax+"):
        raise Refusal(
            "this file would be written once, during capture, not when the graph runs; return what "
            "is to be written, or cfx.wrap the function that writes it"
        )
    return NotImplemented


asked: dict[Any, Any] = {print: _print, open: _open}


def script_asked(job):
    """A call that is recorded, refused, or made during capture (NotImplemented)."""
    mode, function, args, kwargs = job
    return asked[function](mode, function, args, kwargs)


_glue.install(script_chance, script_refused_call, script_environment, script_asked)
