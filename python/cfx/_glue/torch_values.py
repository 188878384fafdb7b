"""What cfx knows of torch, registered once torch is loaded. Reads names only; no torch.fx."""
from .. import _core


def register(torch, tokens):
    """Tells the core torch's dtypes, layouts, memory formats and devices; fills `tokens` with
    {(kind number, name): object}."""
    from .. import immutable_collections, node

    for kind, type_ in (
        ("dtype", torch.dtype),
        ("layout", torch.layout),
        ("memory_format", torch.memory_format),
    ):
        numbers = {}
        for number, name in enumerate(_core._token_names(kind)):
            obj = getattr(torch, name, None)
            if isinstance(obj, type_):
                numbers[obj] = number
                tokens[_core._kind_number(kind), name] = obj
        _core._register_tokens(type_, kind, numbers)
    _core._register_tokens(torch.device, "device", None)
    from torch.utils.dlpack import from_dlpack, to_dlpack

    _core._register(
        torch_tensor=torch.Tensor, torch_to_dlpack=to_dlpack, torch_from_dlpack=from_dlpack
    )
    immutable_collections._register_with_torch()
    node._register_side_effects(torch)
