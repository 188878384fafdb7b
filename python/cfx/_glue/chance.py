"""Functions of Python's library whose results differ between calls: random numbers, clocks, the
environment. A graph calls them; what it cannot call by name is refused.

Nothing here is for users. cfx._core calls script_chance by name, through cfx._glue.
"""
import builtins
import datetime
import os
import random
import secrets
import time
import types
import uuid
from typing import Any

import torch

from .. import _glue
from ..node import _side_effectful_functions, changing_functions
from .contexts import Refusal


def _functions(module, names):
    return [getattr(module, name) for name in names.split() if hasattr(module, name)]


def recorded() -> list:
    """What a graph calls each time that it runs."""
    clocks = [f for f in vars(time).values() if isinstance(f, types.BuiltinFunctionType)]
    found = [f for f in changing_functions() if f not in (random.shuffle,)]
    found += clocks + [random.Random, torch.Generator, uuid.uuid1, uuid.uuid4]
    found += _functions(os, "getenv urandom getrandom getpid getppid times getloadavg getcwd")
    found += _functions(secrets, "token_bytes token_hex token_urlsafe randbelow randbits choice")
    return found


_LATER = "what it gives differs in each call; pass it as an argument, or cfx.wrap the function"
refused: dict[Any, str] = {
    random.shuffle: "random.shuffle changes a list during capture, not when the graph runs; use "
                    "random.sample(l, len(l)), or torch.randperm",
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
_side_effectful_functions.update(f for f in recorded() if not isinstance(f, type))


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


_glue.install(script_chance, script_refused_call, script_environment)
