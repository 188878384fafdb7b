"""To torch.fx and back: the only module of cfx that knows torch.fx."""
import sys


def wrapped_names():
    """What libraries have registered with torch.fx.wrap: {(id of the globals, name): globals} and
    [(class, name)]; nothing if torch.fx is not loaded."""
    module = sys.modules.get("torch.fx._symbolic_trace")
    if module is None:
        return {}, []
    return dict(module._wrapped_fns_to_patch), list(module._wrapped_methods_to_patch)
