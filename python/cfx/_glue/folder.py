"""GraphModule.to_folder: a module as a Python package with its weights."""
import keyword
import re
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.package import sys_importer

from .codegen import _custom_builtins
from ..graph_module import _format_import_statement, _indent

# Those whose repr is a call that makes them.
_SAFE = ("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")


def _imports(globals_: dict[str, Any]) -> str:
    """Import statements: first those that torch.fx writes, then what else the code uses."""
    lines = [builtin.import_str for builtin in _custom_builtins.values()]
    for name in globals_.keys() - _custom_builtins.keys():
        try:
            lines.append(_format_import_statement(name, globals_[name], sys_importer))
        except Exception as e:
            warnings.warn(f"the written code cannot import '{name}': {e}")
    return "\n".join(lines)


def _raw(path: object) -> str:
    """A path as torch.fx writes it, r'a/b', unless it would not be read back."""
    text = f"{path}"
    return f"r'{text}'" if text.isprintable() and "'" not in text else repr(text)


def _attributes(module: torch.nn.Module, folder: Path) -> list[str]:
    """The statements of __init__; saves the modules that they load."""
    lines, saved = [], []
    for i, (name, child) in enumerate(module.named_children()):
        value = text = repr(child)
        if type(child) not in [getattr(torch.nn, kind) for kind in _SAFE]:
            saved.append(name)
            file = folder / f"{name if re.fullmatch('[0-9A-Za-z_]+', name) else f'_{i}'}.pt"
            torch.save(child, file)
            value = f"torch.load({_raw(file)}, weights_only=False)"
        remark = " # " + re.sub("[\r\n\0]", " ", text) if value != text else ""
        lines.append(f"setattr(self, {name!r}, {value}){remark}")
    if saved:
        warnings.warn(
            "Was not able to save the following children modules as reprs -saved as pickled files "
            f"instead: {saved}", stacklevel=4,
        )  # fmt: skip
    form = "self.register_buffer({!r}, {})", "setattr(self, {!r}, torch.nn.Parameter({}))"
    for tensors, statement in zip((module._buffers, module._parameters), form):
        for name, t in tensors.items():
            if t is not None:
                value = f"torch.empty({list(t.shape)}, dtype={t.dtype})"
                lines.append(statement.format(name, value))
    return [*lines, f"self.load_state_dict(torch.load({_raw(f'{folder}/state_dict.pt')}))"]


def to_folder(module: Any, folder: Path, module_name: str) -> None:
    if not module_name.isidentifier() or keyword.iskeyword(module_name):
        raise ValueError(f"{module_name!r} cannot be a class name; use an identifier")
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(module.state_dict(), folder / "state_dict.pt")
    head, _, forward = module.code.partition("def ")
    init = "\n        ".join(["super().__init__()", *_attributes(module, folder)])
    method = _indent(f"\n\n\ndef {forward}")
    wraps = head.strip()  # it registers functions, at the top of a module
    (folder / "module.py").write_text(
        f"\nimport torch\n{_imports(module._of_code('globals'))}\n{wraps}\nfrom torch.nn import *\n"
        f"class {module_name}(torch.nn.Module):\n    def __init__(self):\n        {init}\n{method}"
    )
    (folder / "__init__.py").write_text("from .module import *")
