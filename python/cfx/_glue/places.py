"""Where things are on this machine that the core does not look for itself: it reads no environment
variables."""
import os
import sys
from pathlib import Path

ONEDNN = "CFX_ONEDNN"  # libdnnl.so of oneDNN 3; empty: do without
CACHE = "CFX_CACHE"  # a folder for what was measured; empty: keep nothing


def onednn(given: str | os.PathLike[str] | None = None) -> str | None:
    """The path of oneDNN's library: as given, as $CFX_ONEDNN says, or where the Python package
    onednn-cpu-gomp puts it. None if there is none. It may still be one that cannot be loaded."""
    if given is not None:
        return os.fspath(given)
    named = os.environ.get(ONEDNN)
    if named is not None:
        return named or None
    library = Path(sys.prefix) / "lib" / "libdnnl.so.3"
    return str(library) if library.is_file() else None


def cache(given: str | os.PathLike[str] | None = None) -> str | None:
    """The folder for measurements: as given, as $CFX_CACHE says, or cfx in the user's folder for
    caches. None if nothing is to be kept."""
    if given is not None:
        return os.fspath(given)
    named = os.environ.get(CACHE)
    if named is not None:
        return named or None
    home = os.environ.get("XDG_CACHE_HOME", "")
    return str(Path(home if os.path.isabs(home) else os.path.expanduser("~/.cache")) / "cfx")
