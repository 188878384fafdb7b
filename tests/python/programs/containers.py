"""Tuples, lists, dicts, sets; slices, unpacking, comprehensions."""
import collections

import torch
from torch import nn

from . import module, program, randn


@program(randn(3), -randn(2).abs(), tags="tuple")
def tuples(x):
    pair = (x, x + 1)
    if x.sum() > 0:
        pair = (pair[1], pair[0])
    a, b = pair
    return a - b * 2, pair


@program(randn(4), -randn(3).abs(), tags="starred")
def starred(x):
    first, *middle, last = [x, x * 2, x * 3, x * 4]
    if x.sum() > 0:
        first, last = last, first
    return [first, *middle, last], (*middle, first)


@program(randn(3, 4), randn(2, 5), tags="starred tensor")
def unpack_shape(x):
    rows, columns = x.shape
    *_, last = x.shape
    return x.reshape(columns, rows) * last


@program((randn(5), 3), (randn(3), 0), (randn(2), 6), tags="list append")
def powers(x, n: int):
    out = [x]
    for _ in range(n):
        out.append(out[-1] * x)
    return torch.stack(out)


@program(randn(6), -randn(4).abs(), randn(1), tags="list append filter")
def collect_positive(x):
    """How many there are is known only when it runs."""
    kept = []
    for value in x:
        if value > 0:
            kept.append(value)
    if len(kept) == 0:
        return torch.zeros(1)
    return torch.stack(kept)


@program((randn(3), 4), (randn(2), 1), tags="list pop insert")
def queue(x, n: int):
    """A window of the last two values."""
    window = [x, x + 1]
    for i in range(n):
        window.append(window[0] + window[1])
        window.pop(0)
    window.insert(0, x)
    window.reverse()
    return window


@program(randn(3), randn(2, 2), tags="list static")
def list_methods(x):
    items = [x] * 2 + [x + 1]
    items.extend([x - 1, x * 2])
    items[0] = items[-1]
    items[1:3] = [x * 3]
    del items[-1]
    return items, len(items)


@program(randn(3), -randn(3).abs(), tags="dict")
def dict_of_tensors(x):
    features = {"raw": x, "square": x * x}
    if x.sum() > 0:
        features["raw"] = x + 1
    features.update(cube=x ** 3)
    return features


@program(randn(3), -randn(3).abs(), tags="dict iterate")
def dict_items(x):
    weights = {"a": 1.0, "b": 2.0, "c": -1.0}
    total = torch.zeros_like(x)
    for name, weight in weights.items():
        if name != "b" or x.sum() > 0:
            total = total + weight * x
    for key in weights:
        total = total + weights.get(key, 0.0) + len(key)
    return total, sum(weights.values())


@program({"image": randn(2, 3), "scale": torch.tensor(2.0)},
         {"image": randn(1, 4), "scale": torch.tensor(-1.0)}, tags="dict input")
def dict_input(batch):
    image = batch["image"]
    if batch["scale"] > 0:
        image = image * batch["scale"]
    return {"out": image, **batch}


@program([randn(3), randn(3, seed=1)], [randn(2)], [randn(2), randn(2), randn(2)],
         tags="list input")
def list_input(tensors: list[torch.Tensor]):
    total = tensors[0]
    for t in tensors[1:]:
        total = total + t
    return total / len(tensors)


@program(((randn(2, 3), randn(2, 3, seed=1)), randn(2, 3)), ((randn(4), randn(4)), -randn(4).abs()),
         tags="tuple input nested")
def nested_input(pair: tuple[torch.Tensor, torch.Tensor], x):
    a, b = pair
    if x.sum() > 0:
        return {"sum": (a + x, b + x)}
    return {"sum": (a - x, b - x)}


@program(randn(6), randn(9), randn(2, 12), tags="comprehension")
def comprehensions(x):
    parts = [x[..., i::3].sum() * i for i in range(3) if i != 1]
    table = {f"p{i}": part for i, part in enumerate(parts)}
    grid = [[a + b for a in parts] for b in parts]
    return table, grid, sum(part for part in parts)


@program(randn(4, 3), randn(2, 5), tags="comprehension rows")
def comprehension_over_rows(x):
    """Over a size that is known only when it runs."""
    return torch.stack([row.max() - row.min() for row in x if row.sum() != 0])


@program(randn(4, 6) + 2, randn(3, 8) - 2, tags="slices")
def slices(x):
    left, right = x[:, :2], x[:, 2:]
    x = torch.cat([left * 2, right[..., 1::2]], dim=-1)
    if x.sum() > 0:
        return x[1:-1], x[..., None], x[-1, ...]
    return x[:2], x[None, :, 0], x[0, ...]


@program(randn(3, 4), randn(2, 2), tags="index mask")
def index_by_tensors(x):
    best = x.argmax(dim=-1)
    rows = torch.arange(x.size(0))
    positive = x[x > 0]
    return x[rows, best], positive.sum(), x[best > 0]


@program(randn(3) + 1, randn(2, 2) - 3, tags="set")
def sets(x):
    dims = {0, -1}
    for d in sorted(dims | {0}):
        x = x.cumsum(d)
    if 0 in dims and x.sum() > 0:
        x = -x
    return x, len(dims)


@program(randn(3), -randn(3).abs(), tags="list nested")
def nested_lists(x):
    layers = [[x], [x + 1, x + 2]]
    layers[0].append(x * 2)
    if x.sum() > 0:
        layers[1][0] = x * 10
    return layers


@program(randn(3), randn(2, 3), tags="ordered defaultdict")
def other_dicts(x):
    ordered = collections.OrderedDict(a=x, b=x * 2)
    ordered["c"] = ordered.pop("a") + 1
    sums = collections.defaultdict(float)
    for name, value in ordered.items():
        sums[name] += value.sum()
    return [sums[name] for name in ("b", "c")], list(ordered)


@module(randn(2, 6, 4), randn(1, 9, 4), randn(3, 2, 4), tags="list grow cat")
class Pyramid(nn.Module):
    """Halves its input until it is short; returns all levels."""

    def __init__(self):
        super().__init__()
        self.reduce = nn.Linear(8, 4)

    def forward(self, x):
        levels = [x]
        while x.shape[1] > 1:
            if x.shape[1] % 2 == 1:
                x = torch.cat([x, x[:, -1:]], dim=1)
            x = self.reduce(x.reshape(x.shape[0], x.shape[1] // 2, 8))
            levels.append(x)
        return torch.cat(levels, dim=1)


@program((randn(4), [2, 1, 1]), (randn(6), [6]), (randn(5), [1, 4]), tags="list int input")
def split_by_sizes(x, sizes: list[int]):
    parts, start = [], 0
    for size in sizes:
        parts.append(x[start:start + size].mean())
        start += size
    return torch.stack(parts)


@program((randn(3), randn(4)), (-randn(2), -randn(5)), tags="any all min max sorted")
def builtins_on_lists(a, b):
    sizes = [a.numel(), b.numel()]
    both = [a.sum(), b.sum()]
    if any(v > 0 for v in both) and all(s > 1 for s in sizes):
        return max(sizes), min(sizes), sorted(sizes, reverse=True), max(both)
    return sum(sizes), len(both), list(reversed(sizes)), both[0]


# ---- lists that may be one ---------------------------------------------------------------------


@program(torch.ones(2), -torch.ones(2), tags="alias list",
         refused="this list may be an alias of another object")
def changes_one_of_two(x):
    a = [x, x + 1]
    b = a if x.sum() > 0 else [x * 3, x * 4]
    b.append(x)
    return a, b


@program(torch.ones(2), -torch.ones(2), tags="alias list",
         refused="this list may be an alias of another object")
def changes_what_was_chosen(x):
    a = [x, x + 1]
    b = a if x.sum() > 0 else [x * 3]
    a[0] = x * 10
    return b[0]


@program(torch.ones(2), -torch.ones(2), tags="alias dict",
         refused="this dict may be an alias of another object")
def changes_one_of_two_dicts(x):
    a = {"x": x}
    both = (a, 1) if x.sum() > 0 else ({"x": x}, 1)
    both[0]["x"] = x * 5
    return a["x"]


@program(torch.ones(2), -torch.ones(2), tags="alias list",
         refused="this list may be an alias of another object")
def changes_what_a_loop_left(x):
    last = first = [x, x]
    while last[0].sum() < 5:
        last = [last[0] + 1, last[1] * 2]
    last.append(x)
    return len(first), len(last)


@program(torch.ones(2), -torch.ones(2), tags="alias list")
def changes_under_two_names(x):
    if x.sum() > 0:
        a = b = [x, x]
    else:
        a = b = [x + 1, x * 2]
    a.append(x)
    return b, len(b)


@program(torch.ones(2), -torch.ones(2), tags="alias list")
def changes_the_only_one(x):
    a = [x, x + 1]
    b = a if x.sum() > 0 else [x * 3, x * 4]
    b.append(x)
    if len(b) > 2 and x[0] > 0:
        b[0] = x * 7
    return b


@program(torch.ones(2), -torch.ones(2), tags="alias list")
def changes_one_of_two_lengths(x):
    a = [x, x + 1]
    if x.sum() > 0:
        a = [x * 3]
    a.append(x)
    a.extend([x, x * 2])
    return sum(a)


@program(torch.ones(3), -torch.ones(3), tags="alias set", refused="the keys of a set differ")
def methods_behind_signs_change_a_set(x):
    """s.__isub__(t) is s -= t: what the other way sees is put back."""
    s = {1, 2}
    same = s
    if x.sum() > 0:
        s.__isub__({1})
    return x * len(same)


@program((randn(3), 1), (randn(2), 2), (randn(2), 7), tags="dict get data-key")
def gets_by_data(x, k: int):
    scales = {1: 10, 2: 20}
    names = {1: "one", 2: "two"}
    y = x * scales.get(k, 5)
    name = names.get(k, "many")
    return y if name != "two" else -y, name, scales.get(k)


@program((randn(3), 1), (randn(2), 3), (randn(2), 5), tags="set keys values in")
def is_in_sets(x, k: int):
    known = {1: 2, 3: 4}
    if k in {1, 5} or k not in frozenset((1, 3)):
        x = x + 1
    return x, k in known.keys(), k in known.values(), k in known


@program((randn(3), 1), (randn(2), -1), raises=[((randn(2), 3), IndexError)],
         tags="list data-index")
def changes_by_data(x, i: int):
    items = [x, x + 1, x + 2]
    items[i] = -x
    items.insert(i, x * 10)
    items.insert(9, x * 20)
    last = items.pop(i)
    del items[i]
    return items, last, items[i:], (1, 2, 3)[:i]


@program((randn(3), 2), (randn(3), 1), raises=[((randn(3), 3), IndexError)],
         tags="list grown index")
def changes_a_grown_list(x, i: int):
    items = []
    for row in x:
        items.append(row)
    items.insert(-9, x[0])
    items.insert(9, x[1])
    first = items.pop(0)
    items.pop()
    items[i] = first + 1
    return items


@program((randn(3), 1), (randn(2), 2), tags="list index count", no_row="list.index")
def searches_for_data(x, k: int):
    return [3, 1, 2, 1].count(k), (3, 1, 2).index(k), x


@program((randn(3), 1), (randn(2), 2), tags="dict data-key")
def sets_by_data(x, k: int):
    table = {1: x, 2: x}
    table[k] = x + 1
    return len(table)


@program((randn(3), 1), (randn(2), 2), tags="set data-key", refused="cannot be a key of a dict")
def set_of_data(x, k: int):
    return len({1, k})


@program((randn(3), 3), (randn(2), 1), tags="list nested grown")
def table_of_lists(x, n: int):
    table = [[0] * (n + 1) for _ in range(n)]
    for i in range(n):
        table[i][0] = i
        for j in range(n):
            table[i][j + 1] = table[i][j] + 1
    pairs = []
    for i in range(n):
        pairs.append([0, x])
    for i in range(n):
        pairs[i][0] = i
    return table, pairs


@program((randn(3), 3), (randn(2), 1), tags="alias list nested grown",
         refused="also put into a list whose length depends on data")
def row_is_changed_later(x, n: int):
    rows, row = [], [x, x]
    for i in range(n):
        rows.append(row)
    row[0] = x + 1
    return rows


@program((randn(3), 3), (randn(2), 1), tags="alias list nested grown",
         refused="also put into a list whose length depends on data")
def rows_are_one(x, n: int):
    rows, row = [], [x, x]
    for i in range(n):
        rows.append(row)
    rows[0][0] = x + 1
    return rows


@program(torch.ones(2), -torch.ones(3), tags="list nested grown")
def holds_a_grown_list(x):
    items = [x, x + 1]
    if x.sum() > 0:
        items.append(x)
    rows = []
    for row in x:
        rows.append((items, row))
    return rows, [[x]] + rows


@program(torch.ones(2), -torch.ones(2), torch.zeros(3), tags="alias list grown choice")
def chosen_while_it_grows(x):
    items = [x]
    if x.sum() > 0:
        items.append(x + 1)
    same = items if x[0] < 1 else items
    same.append(x * 2)
    return items, len(same)
