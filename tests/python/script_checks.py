"""What several tests of captured programs check in the same way."""
import inspect

import cfx
import pytest
import torch


def refused(program, line, match):
    """cfx.script refuses the program with these words, at the line that has that text."""
    with pytest.raises(cfx.ScriptError, match=match) as found:
        cfx.script(program)
    lines, first = inspect.getsourcelines(program)
    at = first + next(i for i, text in enumerate(lines) if i and line in text)
    assert f":{at}:" in str(found.value).splitlines()[0]


def is_same(got, want):
    """Whether two results are equal, with the same containers and classes."""
    (left, one), (right, two) = map(torch.utils._pytree.tree_flatten, (got, want))
    return one == two and all(
        torch.equal(a, b) if isinstance(b, torch.Tensor) else type(a) is type(b) and a == b
        for a, b in zip(left, right, strict=True)
    )
