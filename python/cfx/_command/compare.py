"""Inputs that the command line describes; and --check: what a module gives, beside what the files
give that were written of it."""
import pickle
import re
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from .. import _core, checking, lowering, weights
from ..text import parse as parse_text
from .errors import Wrong, in_line, near, place_of, why_of
from .target import value

_INPUT = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*([^,;\[\s]*)\s*(\[[^\]]*\])?\s*(?:[,;]|$)")
_MOST = 10  # random integers are below
_SAVED = (".pt", ".pth")  # files of torch.save


def parse(words: list[str], option: str = "--check") -> dict[str, Any]:
    """'x=float32[2, 3], n=4, ids=ids.npy': what is a tensor as (dtype, sizes)."""
    found: dict[str, Any] = {}
    for word in words:
        at = 0
        while at < len(word):
            one = _INPUT.match(word, at)
            if not one:
                raise Wrong(f"{option}: expected NAME=TYPE[SIZES], NAME=NUMBER or NAME=FILE, "
                            f"found '{word[at:].strip()}'", 2)
            if one[1] in found:
                raise Wrong(f"{option}: '{one[1]}' is given twice", 2)
            found[one[1]] = _described(one[2], one[3], option)
            at = one.end()
    return found


def _described(word: str, sizes: str | None, option: str) -> Any:
    if sizes is None:
        is_file = word.endswith((*weights.extensions("one tensor"), *_SAVED))
        return word if is_file else (value(word, option),)
    if word == "":  # a list of numbers
        return (value(sizes, option),)
    dtype = getattr(torch, word, None)
    if not isinstance(dtype, torch.dtype):
        kinds = [name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)]
        raise Wrong(f"{option}: there is no dtype '{word}'{near(word, kinds)}", 2)
    parts = [part.strip() for part in sizes[1:-1].split(",")]
    if parts == [""]:
        parts = []
    if not all(part.isdecimal() for part in parts):
        what = "graph" if option == "--check" else "model"
        raise Wrong(f"{option}: sizes must be numbers, not {sizes}, because the {what} is run", 2)
    return dtype, [int(part) for part in parts]


def _random(dtype: torch.dtype, sizes: list[int], numbers: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex128 if dtype.is_complex else torch.float64
        return torch.randn(sizes, generator=numbers, dtype=wide).to(dtype)
    most = 2 if dtype == torch.bool else _MOST
    return torch.randint(most, sizes, generator=numbers).to(dtype)


def _loaded(file: str) -> Any:
    if not file.endswith(_SAVED):
        return weights.load_tensor(file).torch()
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(f"'{file}' holds more than tensors and containers of them") from error


def make(given: dict[str, Any], seed: int, option: str = "--check") -> dict[str, Any]:
    """The inputs; those that are the same every time."""
    numbers = torch.Generator().manual_seed(seed)
    made: dict[str, Any] = {}
    for name, what in given.items():
        if isinstance(what, str):
            try:
                made[name] = _loaded(what)
            except (OSError, ValueError, RuntimeError) as error:
                raise Wrong(f"{option}: {name}: {in_line(error)}") from error
        else:
            made[name] = _random(what[0], what[1], numbers) if len(what) == 2 else what[0]
    return made


def _module_gives(root: Any, inputs: dict[str, Any]) -> Any:
    program = root if isinstance(root, nn.Module) else None
    try:
        with checking._as_it_was(program), torch.no_grad():
            return root(**checking._copied(inputs))
    except Exception as error:
        raise Wrong(f"{place_of(error)}--check: the module does not take these inputs: "
                    f"{why_of(error)}") from error


def _files_give(source: str, tensors: dict[str, Any], inputs: dict[str, Any]) -> Any:
    graph = parse_text(source)
    _core._lower(graph, None)  # branches and loops, whose regions are in rows of the table
    lowered = lowering.Lowered(graph, tensors, graph)
    try:
        return lowered.run(**checking._copied(inputs))
    except Exception as error:
        raise Wrong(f"--check: the captured graph does not take these inputs: {why_of(error)}"
                    ) from error


def _distance(want: Any, got: Any) -> tuple[float, float]:
    """The largest difference of two results of the same structure, and that in proportion to the
    largest number of the tensor it is in."""
    most = (0.0, 0.0)
    for a, b in zip(_pytree.tree_leaves(want), _pytree.tree_leaves(got)):
        if isinstance(a, torch.Tensor) and a.numel() and a.shape == b.shape:
            wide = torch.complex128 if a.is_complex() else torch.float64
            gap = (a.to(wide) - b.to(wide)).abs().nan_to_num(0.0).max().item()
            size = a.to(wide).abs().nan_to_num(0.0).max().item()
            most = max(most[0], gap), max(most[1], gap / size if size else gap)
    return most


def compare(root: Any, fixed: dict[str, Any], inputs: dict[str, Any], source: str,
            tensors: dict[str, Any], flat: Callable[[Any], Any] | None = None) -> bool:
    """Tells how far apart results are; whether they agree as far as rounding lets them. `flat`:
    what the files give for a result of the module."""
    want = _module_gives(root, {**inputs, **fixed})
    got = _files_give(source, tensors, inputs)
    want = flat(want) if flat else want
    difference = checking._compare(want, got, checking.TOLERANCES)
    if difference:
        print(f"check: result{difference.where} differs: {difference.what}; the module returns "
              f"{difference.before}, the files {difference.after}", file=sys.stderr)
        return False
    apart, share = _distance(want, got)
    print(f"check: the files agree with the module; largest difference {apart:.2g}, {share:.2g} of "
          "the largest number", file=sys.stderr)
    return True
