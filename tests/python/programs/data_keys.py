"""Dicts whose keys data choose: counts, groups, tables, vocabularies, caches."""
from typing import Dict, List

import torch

from . import program, randn

NUMBERS = torch.tensor([1.0, 3.0, 1.0, 2.0])
OTHERS = torch.tensor([-1.0, 1.0, -1.0])
NONE = torch.zeros(0)


@program(NUMBERS, OTHERS, NONE, tags="dict count get")
def histogram(x):
    counts: Dict[int, int] = {}
    for i in range(x.shape[0]):
        k = int(x[i])
        counts[k] = counts.get(k, 0) + 1
    return counts


@program(NUMBERS, OTHERS, NONE, tags="dict count in")
def seen_before(x):
    seen: Dict[float, int] = {}
    repeats = 0
    for i in range(x.shape[0]):
        k = float(x[i])
        if k in seen:
            repeats += 1
            seen[k] += 1
        else:
            seen[k] = 1
    return repeats, len(seen), seen


@program(NUMBERS, OTHERS, NONE, tags="dict of lists")
def groups_of_positions(x):
    groups: Dict[int, List[int]] = {}
    for i in range(x.shape[0]):
        k = int(x[i])
        if k not in groups:
            groups[k] = []
        groups[k].append(i)
    return groups


@program(NUMBERS, OTHERS, tags="dict of tensors items")
def sums_by_parity(x):
    sums: Dict[int, torch.Tensor] = {}
    for i in range(x.shape[0]):
        k = int(x[i]) % 2
        sums[k] = sums[k] + x[i] if k in sums else x[i].clone()
    total = torch.zeros(())
    for k, v in sums.items():
        total = total + v * (k + 1)
    return total, len(sums)


@program((randn(3), 1), (randn(2), 7), tags="dict display data-key")
def table_with_one_more(x, k: int):
    table = {1: x, 2: x * 2, k: x * 3}
    return table[k], len(table), k in table, 7 in table


@program((randn(3), 1), (randn(3), 2), (randn(3), 5), tags="dict pop default")
def takes_out(x, k: int):
    table = {1: x, 2: x * 2}
    found = table.pop(k, x * 0)
    return found, table


@program((randn(3), 1), (randn(3), 2), tags="dict del missing",
         raises=[((randn(3), 5), KeyError)])
def deletes(x, k: int):
    table = {1: x, 2: x * 2}
    del table[k]
    return table


@program((randn(3), 1), tags="dict KeyError", raises=[((randn(3), 5), KeyError)])
def looks_up(x, k: int):
    table: Dict[int, torch.Tensor] = {}
    table[k] = x
    return table[1] + 1


@program((["a", "b", "a"], randn(3)), ([], randn(2)), tags="dict of words")
def vocabulary(words: List[str], x):
    numbers: Dict[str, int] = {}
    for w in words:
        if w not in numbers:
            numbers[w] = len(numbers)
    return numbers, [numbers[w] for w in words], x


@program(NUMBERS, OTHERS, tags="dict cache recursion")
def remembered(x):
    """Values that are computed once for each key."""
    cache: Dict[int, torch.Tensor] = {}
    total = torch.zeros_like(x)
    for i in range(x.shape[0]):
        k = int(x[i])
        if k not in cache:
            cache[k] = torch.sin(x * k)
        total = total + cache[k]
    return total, len(cache)


@program(NUMBERS, OTHERS, NONE, tags="dict comprehension filter")
def filtered(x):
    counts = {int(v): i for i, v in enumerate(x)}
    return {k: v for k, v in counts.items() if k > 1}, sorted(counts), list(counts.values())


@program(OTHERS, NONE, tags="dict changes while iterated", raises=[(NUMBERS, RuntimeError)])
def changed_while_iterated(x):
    counts = {}
    for i in range(x.shape[0]):
        counts[int(x[i])] = i
    for k in counts:
        if k == 3:
            counts[k + 1] = 0
    return counts


@program(NUMBERS, OTHERS, NONE, tags="dict alias copy")
def two_names_and_a_copy(x):
    counts = {}
    same, copied = counts, counts.copy()
    for i in range(x.shape[0]):
        counts[int(x[i])] = i
        same[0] = len(copied)
    return counts, same is counts, copied
