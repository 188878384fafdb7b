"""What is the same object, and of which type: `is`, in-place results, results, printing."""
import torch
from torch import nn

from . import equal, refused

UP = torch.tensor([1.0, 2.0, 3.0])
DOWN = torch.tensor([-1.0, -2.0, -3.0, -4.0])
GRID = torch.arange(6.0).reshape(2, 3)


@equal(UP.clone(), DOWN.clone())
def in_place_returns_itself(x):
    y = x.add_(1)
    return y is x, x.mul_(2) is y, x.detach_() is x


@equal(UP.clone(), DOWN.clone())
def out_is_returned(x):
    y = torch.empty_like(x)
    z = torch.add(x, 1, out=y)
    return z is y, z


@equal(UP, DOWN)
def no_copy_where_none_is_needed(x):
    return x.to(x.dtype) is x, x.float() is x, x.contiguous() is x, x.cpu() is x


@equal(UP, DOWN)
def views_are_new_objects(x):
    return x[0] is x[0], x.view(-1) is x, x.detach() is x, x[:] is x


@equal(UP.clone(), DOWN.clone())
def augmented_keeps_the_object(x):
    y = x
    y += 1
    z = y
    z = z + 1
    return y is x, z is y


@equal((UP, UP.clone()), (DOWN, DOWN.clone()))
def equal_is_not_identical(x, y):
    return x is y, x is x, [x] == [x], (x, 1) == (x, 1)


@equal((UP, None), (DOWN, UP))
def is_none(x, y):
    return x is None, y is None, y is not None, x if y is None else y


@equal(UP, DOWN)
def choice_keeps_identity(x):
    y = x * 2
    z = x if x.sum() > 0 else y
    return z is x, z is y


@equal(UP, DOWN)
def identity_in_a_list(x):
    y = x * 2
    items = [x, y]
    return items.index(x), [t is y for t in items], items[0] is x


# ---- types of results ----------------------------------------------------------------------------


@equal(GRID, -GRID)
def named_results_of_torch(x):
    m = x.max(1)
    return m.values, m.indices, torch.topk(x, 2).values, torch.sort(x, 0)[1]


@equal(GRID, -GRID)
def named_result_returned(x):
    return x.max(1)


@equal(GRID, -GRID)
def shapes_returned(x):
    return x.shape, x.size(), x.shape[1:], x.stride(), tuple(x.shape), list(x.shape)


@equal(GRID, -GRID)
def types_returned(x):
    return x.dtype, x.device, x.layout, x.ndim, x.numel(), x.is_floating_point()


@equal(GRID, GRID.int(), GRID > 2)
def branch_on_a_dtype(x):
    if x.dtype == torch.bool:
        return x.float()
    if x.is_floating_point():
        return x * 0.5
    return x // 2


@equal(GRID, torch.ones(3), torch.tensor(2.0))
def branch_on_a_rank(x):
    if x.ndim == 0:
        return x.reshape(1)
    if x.dim() == 1:
        return x * 2
    n, *_ = x.shape
    return x / n


@equal(GRID, GRID.t())
def branch_on_memory(x):
    return x * 2 if x.is_contiguous() else x.contiguous() * 3


@equal((UP.clone().requires_grad_(), 2), (UP, 3))
def branch_on_requires_grad(x, n):
    if x.requires_grad:
        return x * n
    return x + n


@equal((3, 2), (5.0, 2), (True, 2))
def kind_of_a_number(a, b):
    if isinstance(a, bool):
        return a + b
    if isinstance(a, int):
        return a // b
    return a / b


@equal((UP, [1]), (DOWN, (1, 2)))
def kind_of_a_container(x, items):
    if isinstance(items, tuple):
        return x * len(items), items + (3,)
    return x, items + [3]


@equal((UP, 3), (DOWN, 2.5))
def tensor_of_numbers(x, n):
    return (torch.tensor(n), torch.tensor([n, 1]), torch.full((2,), n),
            torch.tensor([[1, 2], [3, 4]]), x.new_tensor([n]), torch.as_tensor(n),
            torch.scalar_tensor(n))


@equal((UP, 3), (DOWN, 2))
def factories_by_numbers(x, n):
    return (torch.arange(n), torch.arange(0, 1, 0.5), torch.arange(n * 1.0),
            torch.linspace(0, n, 3), torch.eye(n), torch.zeros(n, dtype=torch.int32),
            torch.ones(x.shape), x.new_zeros(n))


@equal((GRID, 1), (-GRID, 0))
def keyword_or_position(x, d):
    return x.sum(d), x.sum(dim=d, keepdim=True), torch.sum(x, d), x.softmax(dim=d), x.argmax(d)


@equal(UP, DOWN)
def truth_of_a_comparison(x):
    a = bool(x.sum() > 0)
    b = not (x.sum() > 0)
    c = x.sum() > 0
    return a, b, c, int(a), a & True


@equal(UP, DOWN)
def and_or_return_operands(x):
    return x.sum() > 0 and x, x.sum() > 0 or -x, None or x, 0 or "" or x


# ---- printing -----------------------------------------------------------------------------------


@equal(UP, DOWN)
def prints_a_constant(x):
    print("in the program")
    return x


@equal(UP, DOWN)
def prints_in_a_branch(x):
    if x.sum() > 0:
        print("up")
    else:
        print("down", x.shape[0])
    return x


@equal((UP, 2), (DOWN, 0))
def prints_in_a_loop(x, n):
    for i in range(n):
        print(i, end=" ")
    print(n, sep="", flush=True)
    return x


@equal(UP, DOWN)
def prints_a_tensor(x):
    print(x, x * 2)
    return x


@equal(UP, DOWN)
def prints_before_it_raises(x):
    print("before")
    if x.sum() < 0:
        raise ValueError("negative")
    print("after")
    return x


@equal(UP, DOWN)
class PrintsItsMode(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.verbose = True

    def forward(self, x):
        if self.verbose and x.sum() > 0:
            print("sum", float(x.sum()))
        return x * 2
