"""What programs ask tensors: shape, dtype, device, ndim, len."""
import torch
from torch import nn

from . import module, program, randn


@program(randn(3), randn(2, 4), randn(2, 3, 4), tags="ndim")
def by_rank(x):
    if x.ndim == 1:
        x = x.unsqueeze(0)
    elif x.dim() == 3:
        x = x.flatten(1)
    return x @ x.mT


@program(randn(3), torch.tensor([1, 2, 3]), torch.tensor([True, False]), randn(2).double(),
         tags="dtype")
def by_dtype(x):
    if x.dtype == torch.bool:
        return x.sum()
    if not x.dtype.is_floating_point:
        x = x.to(torch.float32)
    if x.dtype is torch.float64:
        return x.mean().to(torch.float32)
    return x.mean()


@program(randn(2, 3), randn(4, 1), randn(1, 1), tags="shape")
def shapes_as_results(x):
    rows, columns = x.size()
    return x.shape, tuple(x.shape), list(x.shape), rows * columns, x.numel(), len(x), x.size(-1)


@program(randn(2, 3), randn(5, 1), tags="device dtype factory")
def makes_alike(x):
    mask = torch.ones(x.shape[0], x.shape[0], dtype=torch.bool, device=x.device).tril()
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    scores = (x @ x.T).masked_fill(~mask, torch.finfo(x.dtype).min)
    if x.device.type == "cpu" and not x.is_cuda:
        return scores.softmax(-1), eye
    return scores, eye  # never


@program(randn(4, 6), randn(6, 4), randn(3, 3), tags="T contiguous strides")
def transposed(x):
    if x.shape[0] > x.shape[1]:
        x = x.T
    if not x.is_contiguous():
        x = x.contiguous()
    return x.view(-1), x.stride()


@program((randn(2, 3, 8, 8), 4), (randn(1, 3, 5, 9), 3), tags="size arithmetic")
def center_crop(image, size: int):
    height, width = image.shape[-2:]
    top, left = (height - size) // 2, (width - size) // 2
    return image[..., top:top + size, left:left + size]


@program((randn(2, 3), randn(3)), (randn(4, 3), randn(4, 3)), (randn(2, 2), randn(1)),
         tags="expand shape")
def make_same_shape(a, b):
    if b.dim() < a.dim():
        b = b.unsqueeze(0)
    if a.shape != b.shape:
        b = b.expand(a.shape[0], -1) if b.shape[1] == a.shape[1] else b.expand_as(a)
    return a * b


@program(torch.zeros(0, 3), randn(2, 3), tags="empty")
def empty_batch(x):
    if len(x) == 0:
        return x.new_zeros(3)
    return x.mean(dim=0)


@module(randn(2, 3, 4), randn(2, 4), randn(5, 1, 4), tags="flatten restore")
class AnyRank(nn.Module):
    """Works on what has any number of dimensions in front."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        shape = x.shape[:-1]
        y = self.linear(x.reshape(-1, x.shape[-1]))
        if y.shape[0] > 4:
            y = y - y.mean(0, keepdim=True)
        return y.reshape(*shape, -1)


@program(torch.ones(3, requires_grad=True), torch.ones(2), tags="requires_grad",
         no_row="gradients")
def asks_for_gradients(x):
    if x.requires_grad:
        return x.detach() * 2, True
    return x + 1, x.is_leaf
