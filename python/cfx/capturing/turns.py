"""What a captured module has to do with its program: whose turn it is to run it, in which modes.

A module that comes from a file has no program, and needs nothing else of what captures programs.
"""
import threading
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .program import Program

turns = threading.RLock()  # two runs must not change the same modules and functions
running = threading.local()  # .name: of the program that this thread captures


def is_capturing() -> bool:
    """Whether a program is being captured in this thread."""
    return getattr(running, "name", None) is not None


class Flags:
    """While this is installed, the modules of a tree have the flags `training` of another tree,
    where it has modules of the same paths; others that of the module that they are in."""

    def __init__(self, root: torch.nn.Module, like: torch.nn.Module) -> None:
        self.root, self.like = root, like
        self.before = [(module, module.training) for module in root.modules()]

    def install(self) -> None:
        for path, module in self.root.named_modules():
            wanted = self.like
            for name in path.split(".") if path else ():
                found = getattr(wanted, name, None)
                if not isinstance(found, torch.nn.Module):
                    break
                wanted = found
            module.training = wanted.training

    def remove(self) -> None:
        for module, training in self.before:
            module.training = training


class Weakly:
    """A program that is captured again when it is called in another way. It is not part of copies
    and pickles: their weights are their own."""

    def __init__(self, program: "Program | None") -> None:
        self.program = program

    def __deepcopy__(self, memo: Any) -> "Weakly":
        return Weakly(None)

    def __reduce__(self) -> Any:
        return Weakly, (None,)

