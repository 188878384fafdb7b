"""What loops go over, when it is asked for, and what changes under them."""
import torch
from torch import nn

from . import equal, refused

UP = torch.tensor([1.0, 2.0, 3.0])
DOWN = torch.tensor([-1.0, -2.0, -3.0, -4.0])
GRID = torch.arange(6.0).reshape(2, 3)


@equal((UP, 3), (DOWN, 0))
def range_is_asked_once(x, n):
    for i in range(n):
        n = n + 5
        x = x + i
    return x, n


@equal((UP, [1, 2]), (DOWN, []))
def length_is_asked_once(x, items):
    for i in range(len(items)):
        items.append(i)
    return x, items


@refused((UP, [1, 2]), (DOWN, [5]))
def grows_the_list_it_loops_over(x, items):
    for v in items:
        if len(items) < 5:
            items.append(v + 10)  # refuse
    return x * len(items), items


@equal(GRID.clone(), -GRID)
def writes_what_it_loops_over(x):
    total = torch.zeros(3)
    for row in x:
        x[1] += 1
        total = total + row
    return total, x


@equal(UP.clone(), DOWN.clone())
def rebinds_what_it_loops_over(x):
    total = 0
    for v in x:
        x = x * 2
        total = total + v
    return total, x


@equal((UP, [UP, UP]), (DOWN, [DOWN]), (UP, []))
def zip_stops_at_the_shorter(x, items):
    for v, t in zip(x, items):
        x = x + v * t.sum()
    return x


@equal((UP, 2), (DOWN, 9))
def zip_of_a_tensor_and_a_range(x, n):
    total = 0
    for v, i in zip(x, range(n)):
        total = total + v * i
    return total


@equal(UP, DOWN)
def enumerate_from_one(x):
    total = 0
    for i, v in enumerate(x, 1):
        total = total + i * v
    return total


@equal(GRID, -GRID)
def goes_backwards(x):
    out = []
    for row in reversed(list(x)):
        out.append(row * len(out))
    return out, [i for i in reversed(range(x.shape[0]))]


@equal((UP, 3), (DOWN, 0))
def list_times_a_number(x, n):
    zeros = [0.0] * n
    for i in range(n):
        zeros[i] = i * 2.0
    return x * sum(zeros), zeros


@equal((UP, 2), (DOWN, 1))
def rows_of_one_list(x, n):
    grid = [[0] * 2] * n
    grid[0][1] = 5
    return x, grid


@equal((UP, 2), (DOWN, 3))
def rows_of_their_own(x, n):
    grid = [[0, 0] for _ in range(n)]
    grid[0][1] = 5
    return x, grid


@equal((UP, 2), (DOWN, 0))
def deletes_and_inserts_by_data(x, n):
    items = [x, x * 2, x * 3]
    y = items.pop(n)
    items.insert(n, x * 10)
    del items[n]
    return y, items


@equal((UP, "a b c"), (DOWN, "x"))
def loops_over_words(x, text):
    for word in text.split():
        x = x + len(word)
    return x


@equal((UP, "abc"), (DOWN, ""))
def loops_over_letters(x, text):
    count = 0
    for letter in text:
        if letter != "b":
            count += 1
    return x * count


@equal((UP, (1, 2.5)), (DOWN, ()))
def loops_over_a_tuple_input(x, items):
    for v in items:
        x = x * v
    return x


@equal((UP, {"a": 1.0, "b": 2.0}), (DOWN, {"z": 3.0}))
def loops_over_items_of_a_dict(x, d: dict):
    for key, value in d.items():
        x = x * value + len(key)
    return x


@equal((UP, {"a": 1.0, "b": 2.0}), (DOWN, {}))
def loops_over_values_of_a_dict(x, d: dict):
    for value in d.values():
        x = x * value
    return x, sorted(d)


@equal((UP, [[1, 2], [3]]), (DOWN, [[]]))
def loops_in_loops_over_lists(x, rows):
    for row in rows:
        for v in row:
            if v == 2:
                break
            x = x * v
        else:
            x = x + 100
    return x


@equal((UP, 4), (DOWN, 0))
def collects_and_stacks(x, n):
    out = []
    for i in range(n):
        out.append(x * i)
    return torch.stack(out) if out else x


@equal((UP, 3), (DOWN, 1))
def keeps_the_best(x, n):
    best, where = float("-inf"), None
    for i in range(n):
        score = float((x * (2 - i)).sum())
        if score > best:
            best, where = score, i
    return best, where


@equal((UP, 3), (DOWN, 0))
def list_of_pairs(x, n):
    pairs = []
    for i in range(n):
        pairs.append((i, x * i))
    return [k for k, _ in pairs], sum(t for _, t in pairs) + x


@equal((UP, 3), (DOWN, 0))
def dict_grown_in_a_loop(x, n):
    found = {}
    for i in range(3):
        found[f"k{i}"] = x * i
        if i == n:
            found["last"] = x
            break
    else:
        found["last"] = -x
    return found["last"]


@equal((UP, 3), (DOWN, 1))
def nested_comprehensions(x, n):
    grid = [[i * j for j in range(i + 1)] for i in range(3)]
    flat = [v for row in grid for v in row if v % 2 == 0]
    return x * sum(flat), [[x[0] * i for i in range(2)] for _ in range(n)]


@equal(UP, DOWN)
def comprehension_does_not_leak(x):
    i = 100
    doubled = [i * 2 for i in range(3)]
    return x * i, doubled


@equal(UP, DOWN)
def dict_and_set_comprehensions(x):
    d = {k: x * v for k, v in zip("ab", (1, 2))}
    s = {v % 2 for v in range(5)}
    return d, len(s), {v: k for k, v in {"a": 1, "b": 1}.items()}


@equal((UP, 10), (DOWN, 3))
def sieve(x, n):
    marks = [True] * n
    for i in range(2, n):
        if marks[i]:
            for j in range(i * i, n, i):
                marks[j] = False
    return x, marks


@equal(UP, DOWN)
def slides_with_zip(x):
    return [b - a for a, b in zip(x, x[1:])], [1 if a < b else 0 for a, b in zip(x, x[1:])]


@equal(torch.tensor([3, 1, 2]), torch.tensor([0]))
def to_a_list_and_back(t):
    values = t.tolist()
    values.sort()
    return torch.tensor(values), len(values), [v + 1 for v in t.tolist()]


@equal(torch.tensor([3, 1, 2]), torch.tensor([0]))
def sizes_by_elements(t):
    return [torch.ones(int(n)).sum() for n in t], torch.zeros(int(t[0]) + 1, 2).shape


@equal((UP, 0), (DOWN, 5))
def sums_of_nothing(x, n):
    return sum([x] * n), sum([], x), max([n, 1])


@equal(UP, DOWN)
def builtins_on_a_tensor(x):
    return sum(x), max(x), min(x), len(x), list(x)[0], sorted(x)[0], abs(x), any(x > 2), x[-1] in x


@equal((UP, 3), (DOWN, 0))
def else_of_an_empty_loop(x, n):
    for _ in range(n):
        if x.sum() < 0:
            x = -x
            break
    else:
        x = x + 0.5
    return x


@equal((UP, 1.5), (DOWN, 0.25))
def float_counter(x, step):
    t, rounds = 0.0, 0
    while t < 3:
        t += step
        rounds += 1
    return x * t, rounds


@equal(UP, DOWN)
def loop_carried_alias(x):
    a = b = x.clone()
    for _ in range(2):
        a += 1
        b = b * 2
    return a, b


@equal((UP, 3), (DOWN, 1))
def views_kept_in_a_list(x, n):
    y = x.clone()
    views = [y[i] for i in range(2)]
    for i in range(n):
        y += 1
    return views, y


@equal((UP, 2), (DOWN, 0))
def state_of_three_kinds(x, n):
    t, k, s = x, 0, "a"
    while k < n:
        t, k, s = t * 2, k + 1, s + "b"
    return t, k, s


@equal((UP, 2), (DOWN, 0))
def none_until_found(x, n):
    found = None
    for i in range(4):
        if i == n and found is None:
            found = x * i
    return found if found is not None else -x


@refused((UP, 3), (DOWN, 1))
def function_kept_by_a_loop(x, n):
    f = torch.relu
    for i in range(n):
        f = torch.tanh if i % 2 else torch.sin  # refuse
    return f(x)


@equal(UP.clone(), DOWN.clone())
def swaps_elements_without_copies(x):
    x[0], x[1] = x[1], x[0]
    return x


@equal(UP.clone(), DOWN.clone())
def bubble_sort(x):
    n = x.shape[0]
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1].clone(), x[j].clone()
    return x


@equal((torch.ones(2, 3), 2), (torch.ones(1, 3), 0))
class CellOverTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 3)
        self.register_buffer("h", torch.zeros(1, 3))

    def forward(self, x, n):
        h = self.h.expand(x.shape[0], 3)
        for t in range(n):
            h = self.cell(x * t, h)
        self.h = h.detach().mean(0, keepdim=True)
        return h


# ---- lists, worklists, beams ---------------------------------------------------------------------

MIXED = torch.tensor([1.0, -1.0, 2.0, 3.0])
OTHER = torch.tensor([-1.0, 1.0, -2.0, 3.0])


@equal(MIXED, OTHER)
def lists_swapped_and_extended(x):
    a, b = [1], [2]
    for i in range(len(x)):
        a, b = b + [i], a
    return a, b


@equal(MIXED, OTHER)
def tensors_swapped_and_extended(x):
    a, b = [x], [x * 2]
    for row in x:
        a, b = b + [row], a
    return a, b


@equal(MIXED, OTHER)
def appends_and_swaps(x):
    a, b = [], []
    for i in range(len(x)):
        b.append(i)
        a, b = b, a
    return a, b


@equal(MIXED, OTHER)
def best_run(x):
    best, now = [], []
    for i in range(len(x)):
        if x[i] > 0:
            now.append(i)
        else:
            now = []
        if len(now) > len(best):
            best = list(now)
    return best


@equal(MIXED, OTHER)
def best_run_without_a_copy(x):
    best, now = [], []
    for i in range(len(x)):
        if x[i] > 0:
            now.append(i)
        else:
            if len(now) > len(best):
                best = now
            now = []
    return best, now


@refused(MIXED, OTHER)
def best_run_that_is_still_appended_to(x):
    best, now = [], []
    for i in range(len(x)):
        if x[i] > 0:
            best = now
        now.append(i)  # refuse
    return best, now


@equal(MIXED, OTHER)
def both_are_appended_to(x):
    best, now = [], []
    for i in range(len(x)):
        if x[i] > 0:
            best, now = now, []
        now.append(i)
        best.append(-1)
    return best, now


@equal(MIXED, OTHER)
def worklist_that_is_replaced(x):
    todo = [i for i in range(len(x)) if x[i] > 0]
    out = []
    while todo:
        i = todo.pop(0)
        rest = []
        for j in todo:
            if (x[i] - x[j]).abs() > 1:
                rest.append(j)
        out.append(i)
        todo = rest
    return out


@refused(MIXED, OTHER)
def alias_of_one_branch_changed_in_a_loop(x):
    a = []
    c = a
    if x[0] > 0:
        a.append(7)
    else:
        a = [4, 5, 6]
    for i in range(len(x)):
        a.append(0)  # refuse
        a = [1]
    return a, c


@equal((MIXED, [0, 1, 2, 3]), (OTHER, []))
def worklist_of_the_caller(x, todo: list):
    out = []
    while todo:
        i = todo.pop(0)
        rest = []
        for j in todo:
            if x[j] > x[i]:
                rest.append(j)
        out.append(i)
        todo = rest
    return out


@equal(MIXED, OTHER)
def worklist_that_grows(x):
    seen = [False] * 4
    todo, order = [0], []
    while todo:
        i = todo.pop(0)
        if seen[i]:
            continue
        seen[i] = True
        order.append(i)
        for j in range(4):
            if x[j] > x[i] and not seen[j]:
                todo.append(j)
    return order


@equal(MIXED, OTHER)
def beam_search(x):
    beams = [([0], 0.0)]
    for t in range(len(x)):
        found = []
        for path, score in beams:
            for k in range(2):
                found.append((path + [k], score + float(x[t]) * k))
        beams = sorted(found, key=lambda beam: beam[1], reverse=True)[:2]
    return beams


@equal(torch.tensor([1.0, 3.0, 1.0, 2.0]), torch.tensor([2.0, 2.0]), torch.ones(0))
def sorted_by_a_key(x):
    pairs = []
    for i in range(len(x)):
        pairs.append((float(x[i]), i))
    up = sorted(pairs, key=lambda p: p[0])
    down = sorted(pairs, key=lambda p: p[0], reverse=True)
    pairs.sort(key=lambda p: -p[0])
    return up, down, pairs


@equal(torch.tensor([1.0, 3.0, 1.0]), torch.tensor([2.0, 2.0, -1.0]))
def known_list_sorted_by_data(x):
    items = [(x[0], 0), (x[1], 1), (x[2], 2)]
    items.sort(key=lambda item: float(item[0]), reverse=True)
    numbers = [3, 1, 2]
    numbers.sort(key=lambda n: -n)
    return items, sorted([0, 1, 2], key=lambda i: float(x[i])), numbers
