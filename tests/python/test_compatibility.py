"""compatibility: marks, and what it writes into the documentation."""
import inspect
import sys

import pytest

from cfx import _compatibility
from cfx._compatibility import compatibility


def make(module):
    @module.compatibility(is_backward_compatible=True)
    def stable():
        """One line.

        More.
        """

    @module.compatibility(is_backward_compatible=False)
    def experimental():
        """
        Indented.
            Code.
        """

    @module.compatibility(is_backward_compatible=True)
    def bare():
        pass

    @module.compatibility(is_backward_compatible=False)
    class Thing:
        """A thing."""

    return stable, experimental, bare, Thing


def test_documentation():
    stable, experimental, bare, thing = make(_compatibility)
    indent = "" if sys.version_info >= (3, 13) else " " * 8  # which Python takes away itself
    assert stable.__doc__.startswith(f"One line.\n\n{indent}More.\n")
    assert ".. note::\n    This is stable" in stable.__doc__
    assert experimental.__doc__.startswith("\nIndented.\n    Code.\n")
    assert ".. warning::\n    This is experimental" in experimental.__doc__
    assert bare.__doc__.strip().startswith(".. note::")
    assert thing.__doc__.startswith("A thing.\n\n.. warning::")


def test_marks():
    stable, experimental, bare, thing = objects = make(_compatibility)
    for o in objects:
        assert o in _compatibility._MARKED_WITH_COMPATIBILITY
        assert (o in _compatibility._BACK_COMPAT_OBJECTS) == (o in (stable, bare))


def test_what_is_written_in_c():
    assert compatibility(is_backward_compatible=True)(len) is len
    assert len.__doc__ == "Return the number of items in a container."
    assert len in _compatibility._BACK_COMPAT_OBJECTS
    del _compatibility._BACK_COMPAT_OBJECTS[len]
    del _compatibility._MARKED_WITH_COMPATIBILITY[len]


def test_arguments():
    assert str(inspect.signature(compatibility)).startswith("(is_backward_compatible: bool)")
    with pytest.raises(TypeError):
        compatibility()


def test_like_torch():
    """The same documentation but for the wording of the note, and the same marks."""
    theirs = pytest.importorskip("torch.fx._compatibility")
    for ours, other in zip(make(_compatibility), make(theirs)):
        def shape(text):
            return [line for line in text.split("\n") if not line.startswith("    This") and
                    not line.startswith("    Backwards")]
        assert shape(ours.__doc__) == shape(other.__doc__)
        assert ours.__name__ == other.__name__
        for table in ("_BACK_COMPAT_OBJECTS", "_MARKED_WITH_COMPATIBILITY"):
            assert (ours in getattr(_compatibility, table)) == (other in getattr(theirs, table))
    public = {k for k in dir(theirs) if not k.startswith("__")}
    assert public <= set(dir(_compatibility))
