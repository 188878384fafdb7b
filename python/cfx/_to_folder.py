"""GraphModule.to_folder: a module as a Python package with its weights."""
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.package import sys_importer

from ._codegen import _custom_builtins
from .graph_module import _format_import_statement, _indent

# Those whose repr is a call that makes them.
_SAFE = ("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")


def _imports(globals_: dict[str, Any]) -> str:
    """Import statements: first those that torch.fx writes, then what else the code uses."""
    lines = [builtin.import_str for builtin in _custom_builtins.values()]
    for name in globals_.keys() - _custom_builtins.keys():
        try:
            lines.append(_format_import_statement(name, globals_[name], sys_importer))
        except Exception as e:
            warnings.warn(f"'{name}' cannot be imported by the code that was written: {e}")
    return "\n".join(lines)


def _attributes(module: torch.nn.Module, folder: Path) -> list[str]:
    """The statements of __init__; saves the modules that they load."""
    lines, saved = [], []
    for name, child in module.named_children():
        if type(child) in [getattr(torch.nn, kind) for kind in _SAFE]:
            lines.append(f"setattr(self, '{name}', {child!r})")
            continue
        saved.append(name)
        torch.save(child, folder / f"{name}.pt")
        load = f"torch.load(r'{folder / name}.pt', weights_only=False)"
        remark = repr(child).replace("\r", " ").replace("\n", " ")
        lines.append(f"setattr(self, '{name}', {load}) # {remark}")
    if saved:
        warnings.warn(
            "Was not able to save the following children modules as reprs -saved as pickled files "
            f"instead: {saved}", stacklevel=4,
        )  # fmt: skip
    empty = "torch.empty({0}, dtype={1.dtype})"
    for name, tensor in module._buffers.items():
        if tensor is not None:
            value = empty.format(list(tensor.shape), tensor)
            lines.append(f"self.register_buffer('{name}', {value})")
    for name, tensor in module._parameters.items():
        if tensor is not None:
            value = empty.format(list(tensor.shape), tensor)
            lines.append(f"setattr(self, '{name}', torch.nn.Parameter({value}))")
    return [*lines, f"self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))"]


def to_folder(module: Any, folder: Path, module_name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(module.state_dict(), folder / "state_dict.pt")
    head, _, forward = module.code.partition("def ")
    wraps = head.strip()  # of functions: they stand at the top of a module
    init = "\n        ".join(["super().__init__()", *_attributes(module, folder)])
    (folder / "module.py").write_text(
        f"\nimport torch\n{_imports(module._read_code('globals'))}\n{wraps}\nfrom torch.nn import *\n"
        f"class {module_name}(torch.nn.Module):\n    def __init__(self):\n        {init}\n"
        f"{_indent(f'{chr(10) * 3}def {forward}')}"
    )
    (folder / "__init__.py").write_text("from .module import *")
