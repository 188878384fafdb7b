"""Numbers and lists that Python gets from tensors, and results whose sizes depend on data."""
import collections
import math

import numpy as np
import torch
from programs import call, ints, made, module, program, randn
from torch import nn

NAN = float("nan")


@program(ints(3, 1, 2), ints(2, 2), ints(0), tags="item as size")
def makes_as_many(x):
    return torch.arange(x.sum().item()) * 2


@program(ints(3, 1, 2), ints(5, 1, 2), ints(1, 1), tags="item arithmetic")
def item_arithmetic(x):
    n = x.max().item()
    return x * n + n // 2, n * 2, n / 4


@program(randn(3), -randn(3), tags="item branch")
def item_branch(x):
    total = x.sum().item()
    if total > 0:
        return x * total
    return x


@program(randn(3), randn(3) * NAN, -randn(3), tags="nan decides")
def nan_decides(x):
    return x if x.sum() > 0 else x + 1


@program(randn(3), randn(3) * NAN, -randn(3), tags="nan not decides")
def nan_decides_not(x):
    if not x.sum() <= 0:
        return x
    return x + 1


@program(torch.tensor(2.0), torch.tensor(NAN), torch.tensor(3.0), tags="nan item compare")
def nan_item(x):
    v = x.item()
    return (1 if v == v else 0), max(v, 1.0), min(1.0, v), v != v


@program(torch.tensor([1.0, NAN]), torch.tensor([1.0, 2.0]), tags="isnan any")
def replaces_nan(x):
    return torch.nan_to_num(x) if x.isnan().any() else x * 2


@program(ints(1, 2, 3), ints(3, 2, 1), ints(1, 2), tags="tolist")
def lists(x):
    return sorted(x.tolist(), reverse=True)


@program((ints(1, 2), randn(3, 2)), (ints(3, 1), randn(4, 2)), tags="tolist split")
def splits_by_data(lengths, x):
    return torch.split(x, lengths.tolist())


@program((ints(0, 2), randn(3, 2)), (ints(1, 1), randn(3, 2)),
         tags="tensor as index in python list", captured="equal")
def index_of_list(ids, x):
    rows = list(x.unbind(0)[:3])
    return [rows[i] for i in ids]


@program(ints(0, 1, 1, 0), ints(1, 1, 1, 1), ints(0, 0), tags="nonzero")
def positions(x):
    found = x.nonzero()
    return found, found.shape[0], len(found) * 2


@program(ints(0, 1, 1, 0), ints(0, 0, 0), tags="nonzero empty branch",
         captured="guard size")
def first_position(x):
    found = x.nonzero()
    if found.numel() == 0:
        return -1
    return found[0, 0]


@program(ints(3, 1, 1, 2), ints(5, 5), ints(1, 2, 3, 4, 5), tags="unique loop")
def each_unique(x):
    return {int(v): (x == v).sum() for v in x.unique()}


@program((randn(4, 2), ints(0, 1, 1, 0)), (randn(4, 2), ints(1, 1, 1, 1)),
         (randn(2, 2), ints(0, 0)), tags="mask index",
         captured="guard size")
def masked_mean(x, mask):
    chosen = x[mask.bool()]
    return chosen.sum(0) / max(chosen.shape[0], 1)


@program((randn(4), 0.5), (randn(4), 9.0), (randn(6), 0.0), tags="mask write")
def masked_write(x, limit):
    y = x.clone()
    y[y > limit] = 0
    y[y < -limit] *= 2
    return y


@program(ints(1, 2, 2, 5), ints(0, 0), ints(3), tags="bincount")
def histogram(x):
    counts = x.bincount()
    return counts, counts.shape[0], torch.bincount(x, minlength=4)


@program((randn(6), ints(0, 1, 0, 1, 2, 2)), (randn(3), ints(1, 1, 1)), tags="scatter groups")
def group_sums(x, group):
    n = int(group.max()) + 1
    return x.new_zeros(n).index_add_(0, group, x)


@program((randn(6, 3), ints(0, 1, 0, 1, 2, 2)), (randn(3, 3), ints(1, 1, 1)), tags="experts loop",
         captured="guard size")
def experts(x, route):
    out = torch.zeros_like(x)
    for e in range(3):
        rows = (route == e).nonzero().squeeze(-1)
        if rows.numel():
            out[rows] = x[rows] * (e + 1)
    return out


@program(ints(2, 3), ints(1, 4), tags="int()", captured="equal")
def as_python_int(x):
    a, b = int(x[0]), int(x[1])
    return torch.ones(a, b), a * b


@program(torch.tensor(0.25), torch.tensor(0.75), tags="float() math")
def as_python_float(x):
    f = float(x)
    return math.sin(f), math.floor(f * 10), round(f, 1), f"{f:.2f}"


@program(torch.tensor(3), torch.tensor(5), tags="index range", captured="equal")
def tensor_as_range(n):
    total = 0
    for i in range(n):
        total += i
    return total


@program(torch.tensor([True, False]), torch.tensor([True, True]), tags="all any and or")
def logic(x):
    return (x.all() and 1) or 2, bool(x.any()), not x[1]


@program(ints(4, 5), ints(5, 4), tags="sort by data", captured="equal")
def sorted_tensors(x):
    a, b = sorted([x[0], x[1]])
    return a, b


@program(ints(4, 5), ints(5, 4), tags="max of tensors")
def python_max(x):
    return max(x[0], x[1]) * 10, min(x.unbind())


@program(ints(1, 2, 1), ints(2, 2, 2), tags="dict by item",
         captured="guard data")
def votes(x):
    count = collections.defaultdict(int)
    for v in x.tolist():
        count[v] += 1
    return max(count, key=count.get)


@program(ints(1, 2), ints(7, 2), tags="item in set")
def item_in_set(x):
    return x[0].item() in {1, 3}, x.tolist() == [1, 2]


@program(randn(3), randn(5), tags="numpy out and in", captured="refused numpy")
def through_numpy(x):
    return torch.from_numpy(np.sort(x.detach().numpy()))


@program(randn(3), randn(5), tags="numpy of constants")
def numpy_constants(x):
    window = torch.from_numpy(np.hanning(8).astype(np.float32))
    return x.sum() * window, x * np.float32(2.5), x + np.pi


@program((randn(3), np.float64(2.0)), (randn(3), np.float64(3.0)), tags="numpy scalar argument",
         captured="guard arguments")
def numpy_scalar(x, f):
    return x * f


@program((randn(3), np.arange(3)), (randn(3), np.arange(3) + 1), tags="numpy array argument",
         captured="guard arguments")
def numpy_argument(x, a):
    return x + torch.from_numpy(a)


@program((randn(3), np.int64(2)), (randn(4), np.int64(3)), tags="numpy int",
         captured="guard arguments")
def numpy_int(x, n):
    return x.repeat(n), torch.zeros(n)


SAME = randn(4)


@program((SAME, SAME), (randn(4), randn(4)), tags="data pointer",
         captured="refused the memory of a tensor")
def by_address(a, b):
    return a if a.data_ptr() == b.data_ptr() else -b


@program(randn(4), randn(6), tags="hash tensor")
def tensors_as_keys(x):
    y = x * 2
    seen = {x: "x", y: "y"}
    return seen[x], seen[y], id(x) == id(y)


@program(randn(4), -randn(4), tags="equal allclose")
def compares_tensors(x):
    return torch.equal(x, x.abs()), torch.allclose(x, x.relu()), x.equal(x)


@program(randn(4), -randn(4), tags="tensor in list", captured="equal")
def tensor_in_list(x):
    s = x.sum()
    return s.sign() in [torch.tensor(1.0), torch.tensor(0.0)]


@program(randn(4), -randn(4), tags="str of tensor")
def text_of_tensor(x):
    return str((x.sum() > 0).item())


@program(randn(4), -randn(4), tags="repr of tensor")
def repr_of_tensor(x):
    return f"{x.sign()}"


@program(torch.tensor([3.0, 4.0]), torch.tensor([6.0, 8.0]), torch.tensor([0.0, 0.0]),
         tags="clip by norm item")
def clips(x):
    norm = x.norm().item()
    scale = 1.0 if norm == 0 else min(1.0, 5.0 / norm)
    return x * scale


@program(torch.tensor([1, 0]), torch.tensor([0, 0]), tags="raise by data",
         raises=[(torch.tensor([-1, 0]), ValueError)])
def checks_data(x):
    if (x < 0).any():
        raise ValueError("negative")
    return x * 2


@program((randn(2, 3), ints(2, 3)), (randn(2, 3), ints(1, 1)), tags="packed sequence")
def packs(x, lengths):
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, n = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    return out, n


@program(([randn(2), randn(3)],), ([randn(4), randn(1)],), ([randn(4)],), tags="pad_sequence",
         captured="guard arguments")
def pads(xs):
    return nn.utils.rnn.pad_sequence(xs, batch_first=True)


@program((randn(5), 0.0), (randn(5) + 9, 0.0), tags="while item")
def halves(x, floor):
    n = 0
    while x.abs().max().item() > 0.5 + floor:
        x, n = x / 2, n + 1
    return x, n


@program(randn(4, 4), randn(3, 3), tags="data loop through helper object")
def power_iteration(a):
    v = torch.ones(a.shape[0])
    for _ in range(20):
        new = a @ v
        new = new / new.norm()
        if torch.dist(new, v) < 1e-1:
            break
        v = new
    return v
