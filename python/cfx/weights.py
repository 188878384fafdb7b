"""Tensors in files: .safetensors, .npz, .npy, ..., read and written in C, without torch or NumPy.
`formats` lists them.

Loading maps the file: the tensors share its memory until they are written to.
"""
from __future__ import annotations

from . import _core
from ._glue.listing import public_names

TYPE_CHECKING = False  # a process that only runs a model does without typing (cfx/__init__.py)
if TYPE_CHECKING:
    import os
    from typing import Any

    from ._core import Tensor
    from ._glue.rows import Format

    _Path = str | bytes | os.PathLike[Any]


def __getattr__(name: str) -> Any:
    if name != "Format":
        raise AttributeError(f"module 'cfx.weights' has no attribute '{name}'")
    from ._glue.rows import Format

    return Format


def formats() -> list[Format]:
    """Returns the file formats that cfx reads and writes, in alphabetical order."""
    from ._glue.rows import Format

    return [Format(*row) for row in _core._formats()]


def extensions(content: str) -> tuple[str, ...]:
    """Returns the extensions of the files that hold this: "one tensor", "named tensors", ..."""
    return tuple(row.extension for row in formats() if row.content == content)


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
    """Returns the tensors of a file, by name, in any format that holds named tensors."""
    return _core._load_weights(path)


def load_weights(target: Any, path: _Path, strict: bool = True) -> None:
    """Copies the tensors of a file to the parameters and buffers of a module or lowered graph, by
    name. One KeyError lists all tensors that are missing, unexpected, or of another dtype or shape;
    in that case nothing changes. Without `strict`, only dtypes and shapes must match."""
    _core._take_weights(_named(target), load_tensors(path), 0 if strict else 3)


def save_weights(source: Any, path: _Path) -> None:
    """Writes the parameters and buffers of a module, or a dict of tensors, to a file, which is
    replaced atomically. The extension selects the format: .safetensors unless it is another one
    that holds named tensors."""
    _core._save_weights(_named(source), path)


def save_npz(source: Any, path: _Path) -> None:
    """Writes the parameters and buffers of a module, or a dict of tensors, to an .npz file, which
    is replaced atomically. NumPy can read it, but has no bfloat16."""
    _core._save_npz(_named(source), path)


def load_tensor(path: _Path) -> Tensor:
    """Returns the tensor of a file, in any format that holds one tensor."""
    return _core._load_tensor(path)


def save_tensor(tensor: Any, path: _Path) -> None:
    """Writes a tensor (of cfx, torch or NumPy) to a file, which is replaced atomically. The
    extension selects the format: .npy unless it is another one that holds one tensor."""
    _core._save_tensor(tensor, path)


def load_npy(path: _Path) -> Tensor:
    """Returns the tensor of a .npy file."""
    return _core._load_npy(path)


def save_npy(tensor: Any, path: _Path) -> None:
    """Writes a tensor (of cfx, torch or NumPy) to a .npy file, which is replaced atomically."""
    _core._save_npy(tensor, path)


__dir__ = public_names(globals(), "Format")
