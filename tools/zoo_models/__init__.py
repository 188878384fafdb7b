"""Models of public libraries at small sizes, with random weights: what tools/zoo.py tries."""
from collections.abc import Callable
from typing import Any, NamedTuple


class Case(NamedTuple):
    """A model, and how its inputs are made."""

    model: Any
    inputs: Callable[[int, int], tuple[tuple, dict]]  # (batch, length) -> (args, kwargs)
    length: int = 0  # of sequences, or height and width of images
    other_length: int = 0  # one that differs; 0: this size is fixed
    # for models that are called in steps: the next inputs, from the last ones and the last result
    following: Callable[[tuple, Any], tuple[tuple, dict]] | None = None
    # inputs of the same sizes that differ in kind, as a text without padding does
    variant: Callable[[int, int], tuple[tuple, dict]] | None = None


class Library(NamedTuple):
    """A library and its models."""

    load: Callable[[], Any]  # imports it
    names: Callable[[], list[str]]
    build: Callable[[str], Case]


from . import diffusion, huggingface, others, vision  # noqa: E402  (they need what is above)

LIBRARIES = {
    "transformers": Library(huggingface.load, huggingface.names, huggingface.build),
    "transformers, decoding": Library(huggingface.load, huggingface.decoders, huggingface.decoding),
    "timm": Library(vision.load_timm, vision.timm_names, vision.timm_model),
    "torchvision": Library(
        vision.load_torchvision, lambda: list(vision.TORCHVISION), vision.torchvision_model),
    "segmentation models": Library(
        vision.load_segmentation, lambda: list(vision.SEGMENTATION), vision.segmentation_model),
    "diffusers": Library(diffusion.load, lambda: list(diffusion.MODELS), diffusion.build),
    "einops": Library(others.load_einops, lambda: list(others.EINOPS), others.einops_model),
    "torch_geometric": Library(
        others.load_geometric, lambda: [*others.LAYERS, *others.NETWORKS], others.geometric_model),
    "torch.nn": Library(lambda: None, lambda: list(others.TORCH), others.torch_model),
}
