"""Tensors in files: .safetensors, .npz and .npy, read and written in C, without torch or NumPy.

Loading maps the file: the tensors share its memory until they are written to."""
import os
from typing import Any

from . import _core
from ._core import Tensor

_Path = str | bytes | os.PathLike[Any]


def _named(target: Any) -> dict[str, Any]:
    """The parameters and buffers by name, as tensors that share memory with the target."""
    if isinstance(target, dict):
        return target
    state = getattr(target, "state", None)
    if isinstance(state, dict):  # what cfx.lower gives
        return state
    if not hasattr(target, "state_dict"):
        raise TypeError(f"expected a module, a lowered graph or a dict of tensors, not "
                        f"{type(target).__name__}")
    return dict(target.state_dict())


def load_tensors(path: _Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors or .npz file, by name."""
    return _core._load_weights(path)


def load_weights(target: Any, path: _Path, strict: bool = True) -> None:
    """Copies the tensors of a file to the parameters and buffers of a module, or of a lowered
    graph, by name. All that is missing, not expected, or of another type or shape is told in one
    KeyError, and then nothing has changed; without `strict` only types and shapes must fit."""
    _core._take_weights(_named(target), load_tensors(path), 0 if strict else 3)


def save_weights(source: Any, path: _Path) -> None:
    """Writes the parameters and buffers of a module, or a dict of tensors, to a .safetensors file,
    which is replaced at once."""
    _core._save_weights(_named(source), path)


def save_npz(source: Any, path: _Path) -> None:
    """Writes the parameters and buffers of a module, or a dict of tensors, to a .npz file, which
    is replaced at once. NumPy reads it; it knows no bfloat16."""
    _core._save_npz(_named(source), path)


def load_npy(path: _Path) -> Tensor:
    """The tensor of a .npy file."""
    return _core._load_npy(path)


def save_npy(tensor: Any, path: _Path) -> None:
    """Writes a tensor (of cfx, torch or NumPy) to a .npy file, which is replaced at once."""
    _core._save_npy(tensor, path)
