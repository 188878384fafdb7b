"""The immutable list and dict in the arguments of a Node."""
from typing import Any

from ._compatibility import compatibility
from ._core import immutable_dict, immutable_list
from ._glue.listing import public_names

__all__ = ["immutable_list", "immutable_dict"]

compatibility(is_backward_compatible=True)(immutable_list)
compatibility(is_backward_compatible=True)(immutable_dict)


def _register_with_torch() -> None:
    """Lets torch.utils._pytree look into them. Needs torch; harmless when repeated."""
    import torch.utils._pytree as pytree

    from . import _pytree

    def list_flatten(items: immutable_list) -> tuple[list[Any], None]:
        return list(items), None

    def list_flatten_with_keys(items: immutable_list) -> tuple[list[Any], None]:
        return [(pytree.SequenceKey(i), item) for i, item in enumerate(items)], None

    def list_unflatten(items: Any, context: None) -> immutable_list:
        return immutable_list(items)

    def dict_flatten(items: immutable_dict) -> tuple[list[Any], list[Any]]:
        return list(items.values()), list(items)

    def dict_flatten_with_keys(items: immutable_dict) -> tuple[list[Any], list[Any]]:
        return [(pytree.MappingKey(key), item) for key, item in items.items()], list(items)

    def dict_unflatten(items: Any, keys: list[Any]) -> immutable_dict:
        return immutable_dict(zip(keys, items))

    for cls, flatten, unflatten, flatten_with_keys in (
        (immutable_list, list_flatten, list_unflatten, list_flatten_with_keys),
        (immutable_dict, dict_flatten, dict_unflatten, dict_flatten_with_keys),
    ):
        if cls not in pytree.SUPPORTED_NODES:
            pytree.register_pytree_node(
                cls,
                flatten,
                unflatten,
                serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
                flatten_with_keys_fn=flatten_with_keys,
            )
    _pytree._register_torch_types()


__dir__ = public_names(globals())
