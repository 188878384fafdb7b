"""GraphModule.to_folder: a module as a Python package with its weights."""
import warnings
from pathlib import Path
from typing import Any

import torch

from ._codegen import _custom_builtins
from .graph_module import _format_import_statement

# Those whose repr is the call that makes them.
_SAFE = ("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")


def _imports(code: Any) -> list[str]:
    """Statements for the globals of the code that torch.fx would not import."""
    from torch.package import sys_importer

    lines = [builtin.import_str for builtin in _custom_builtins.values()]
    for name, obj in code.globals.items():
        try:
            lines += [_format_import_statement(name, obj, sys_importer)] * (
                name not in _custom_builtins
            )
        except Exception:
            warnings.warn(f"'{name}' in the generated code cannot be imported: {obj!r}")
    return lines


def to_folder(module: Any, folder: Path, module_name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(module.state_dict(), folder / "state_dict.pt")
    lines, blobs = [], []
    for name, child in module.named_children():
        made = repr(child)
        if type(child) not in [getattr(torch.nn, safe) for safe in _SAFE]:
            file = folder / f"{name}.pt"
            torch.save(child, file)
            blobs.append(name)
            remark = made.replace("\r", " ").replace("\n", " ")
            made = f"torch.load(r'{file}', weights_only=False)) # {remark}"[:-1]
            lines.append(f"setattr(self, '{name}', {made}")
        else:
            lines.append(f"setattr(self, '{name}', {made})")
