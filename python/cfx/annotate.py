"""annotate: sets the type of a proxy's node."""
from typing import Any

from ._compatibility import compatibility
from ._glue.listing import public_names

__all__ = ["annotate"]


@compatibility(is_backward_compatible=False)
def annotate(val: Any, type: type) -> Any:
    """Sets the type of `val`, if it is a Proxy. Raises RuntimeError if it already has one."""
    from .proxy import Proxy

    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is "
                f"{val.node.type} and new type is {type}. An argument of the traced function gets "
                "its type from the function's signature; any other value can be annotated once"
            )
        val.node.type = type
    return val


__dir__ = public_names(globals())
