"""What stands in the way of a conversion, all of it at once: the findings of errors."""
from collections.abc import Sequence
from typing import NamedTuple


class Finding(NamedTuple):
    """Something that cannot be converted."""

    where: str  # a file, or file:line; "" if it is not known
    node: str
    op: str  # "com.microsoft::FusedConv", "aten::svd"
    why: str  # and what to do


def summary(findings: Sequence[Finding], thing: str, what: str) -> str:
    """"2 nodes cannot be read:" and a line for each, for people."""
    lines = [f"{f.where + ': ' if f.where else ''}{f.node + ' ' if f.node else ''}({f.op}): {f.why}"
             for f in findings]  # fmt: skip
    count = f"{len(lines)} {thing}{'' if len(lines) == 1 else 's'}"
    return f"{count} {what}:\n  " + "\n  ".join(lines)
