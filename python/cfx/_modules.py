"""Questions about the module that a graph belongs to: glue over nn.Module's own objects."""
import warnings

_NO_REFERENCE = (
    "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! "
    "Call GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to "
    "add the necessary Parameter, or nn.Module.register_buffer to add the necessary buffer"
)


def _is_module(obj):
    from ._glue import find_torch

    torch = find_torch()
    return torch is not None and isinstance(obj, torch.nn.Module)


def _has_reference(owner, path):
    """Whether `path` leads to a sub-module, parameter or buffer of `owner`."""
    prefix, _, name = path.rpartition(".")
    try:
        module = owner.get_submodule(prefix)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {prefix}!", stacklevel=4)
        return False
    value = getattr(module, name, None)
    return _is_module(value) or name in module._parameters or name in module._buffers


def check_reference(owner, op, path):
    if not _is_module(owner) or not isinstance(path, str):
        return
    if op == "call_module":
        if owner.get_submodule(path) is None:
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule",
                stacklevel=4,
            )
    elif not _has_reference(owner, path):
        warnings.warn(_NO_REFERENCE, stacklevel=4)


def check_paths(graph):
    """The part of lint that needs the owning module: every path leads somewhere."""
    owner = graph.owning_module
    if owner is None:
        return
    for node in graph.nodes:
        if node.op not in ("get_attr", "call_module"):
            continue
        _check_path(owner, node)


def _check_path(owner, node):
    parts = node.target.split(".")
    obj = owner
    for i, part in enumerate(parts):
        parent = ".".join(parts[:i])
        where = f"Node {node} target {node.target}"
        if not hasattr(obj, part):
            raise RuntimeError(f"{where} references nonexistent attribute {part} of {parent}")
        obj = getattr(obj, part)
        if node.op == "call_module" and not _is_module(obj):
            raise RuntimeError(f"{where} {part} of {parent} does not reference an nn.Module")
