"""What goes wrong, in one line: what, where in the user's program, and what to do."""
import contextlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator

from .._glue import tracing

# Where frames come from that are nobody's program.
_PYTHON = tuple(sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib"))


class Wrong(Exception):
    """What to tell the user, in one line; `code` is what the command exits with."""

    def __init__(self, what: str, code: int = 1) -> None:
        super().__init__(what)
        self.code = code


near = tracing.near


def in_line(what: object) -> str:
    return " ".join(str(what).split())


def place_of(error: BaseException) -> str:
    """"net.py:12: ", the innermost line of the user's that an error passed; or nothing."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: "
    frames = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    mine = [(file, line) for file, line in frames
            if not (file.startswith((*_PYTHON, "<frozen ")) or tracing.is_library(file))]
    return f"{mine[-1][0]}:{mine[-1][1]}: " if mine else ""


def why_of(error: BaseException) -> str:
    return in_line(f"{type(error).__name__}: {error}") if str(error) else type(error).__name__


@contextlib.contextmanager
def users(doing: str) -> Iterator[None]:
    """Runs what the user wrote. What it prints goes to standard error: the text may go to the
    other."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except Wrong:
        raise
    except (Exception, SystemExit) as error:
        raise Wrong(f"{place_of(error)}{doing}: {why_of(error)}") from error
