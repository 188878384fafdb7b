"""Objects that change in branches and loops: containers, arrays, iterators."""
import array
import bisect
import collections
import functools
import heapq
import itertools
import operator

import numpy as np
import torch
from torch import nn

from . import equal, refused

UP = torch.tensor([1.0, 2.0, 3.0])
DOWN = torch.tensor([-1.0, -2.0, -3.0])
SMALL = torch.tensor([0.5, 0.25])


# ---- deques --------------------------------------------------------------------------------------


@equal(UP, DOWN)
def deque_append(x):
    d = collections.deque([x])
    if x.sum() > 0:
        d.append(x * 2)
    else:
        d.append(x * 3)
    return d[0] + d[-1], len(d)


@refused(UP, DOWN)
def deque_on_one_way(x):
    d = collections.deque([x, x + 1])
    if x.sum() > 0:
        d.append(x * 2)  # refuse
    return d[-1]


@equal(UP, DOWN)
def deque_appendleft(x):
    d = collections.deque([x, x + 1])
    if x.sum() > 0:
        d.appendleft(x * 5)
        d.pop()
    return d[0] * 10 + d[1]


@equal(UP, DOWN)
def deque_with_maxlen(x):
    d = collections.deque([x, x + 1], maxlen=2)
    if x.sum() > 0:
        d.append(x * 2)
    else:
        d.appendleft(x * 3)
    return d[0] - d[1], len(d)


@equal(UP, DOWN)
def deque_rotates(x):
    d = collections.deque([x, x * 2, x * 3])
    if x.sum() > 0:
        d.rotate(1)
    return d[0], d[1], d[2]


@equal(UP, DOWN)
def deque_pops(x):
    d = collections.deque([x, x * 2])
    y = d.popleft() if x.sum() > 0 else d.pop()
    return y + d[0]


@equal(UP, DOWN)
def deque_item_set(x):
    d = collections.deque([x, x * 2])
    if x.sum() > 0:
        d[0] = x * 7
    return d[0] + d[1]


@equal(UP, DOWN, SMALL)
def deque_in_a_data_loop(x):
    d = collections.deque([x, x + 1], maxlen=2)
    while x.sum() < 20:
        x = x.abs() * 2
        d.append(x)
    return d[0] + d[1]


@equal((UP, 3), (DOWN, 0))
def deque_in_a_counted_loop(x, n):
    window = collections.deque([x, x], maxlen=2)
    for i in range(n):
        window.append(x * i)
    return window[0] - window[1]


@equal(UP)
def deque_as_a_result(x):
    d = collections.deque([x, x * 2], maxlen=3)
    d.append(x * 3)
    d.append(x * 4)
    return list(d), d.maxlen


# ---- lists and dicts through functions -----------------------------------------------------------


@equal(UP, DOWN)
def unbound_append(x):
    items = [1, 2]
    if x.sum() > 0:
        list.append(items, 5)
    else:
        list.append(items, 7)
    return x * items[-1], len(items)


@equal(UP, DOWN)
def unbound_append_one_way(x):
    items = [x]
    if x.sum() > 0:
        list.append(items, x * 3)
    return items[-1]


@equal(UP, DOWN)
def unbound_dict_setitem(x):
    d = {"a": x}
    if x.sum() > 0:
        dict.__setitem__(d, "a", x * 2)
    return d["a"]


@equal(UP, DOWN)
def operator_setitem(x):
    items = [x, x + 1]
    if x.sum() > 0:
        operator.setitem(items, 0, x * 9)
    return items[0] + items[1]


@equal(UP, DOWN)
def operator_delitem(x):
    items = [x, x + 1, x + 2]
    if x.sum() > 0:
        operator.delitem(items, 0)
    else:
        del items[1]
    return items[0] * items[1]


@equal(UP, DOWN)
def operator_iadd_of_a_list(x):
    items = [x]
    if x.sum() > 0:
        operator.iadd(items, [x * 2])
    else:
        items.__iadd__([x * 4])
    return items[-1]


@equal(UP, DOWN)
def bound_method_kept(x):
    items = [x]
    push = items.append
    if x.sum() > 0:
        push(x * 2)
    else:
        push(x * 5)
    return items[1]


@equal(UP, DOWN)
def method_by_getattr(x):
    items = [x]
    if x.sum() > 0:
        getattr(items, "append")(x * 2)
    else:
        getattr(items, "insert")(0, x * 5)
    return items[0] - items[1]


@equal(UP, DOWN)
def methodcaller(x):
    items = [x]
    grow = operator.methodcaller("append", 4)
    if x.sum() > 0:
        grow(items)
    else:
        items.append(2)
    return x * items[1]


@equal(UP, DOWN)
def slice_of_a_list_assigned(x):
    items = [x, x + 1, x + 2]
    if x.sum() > 0:
        items[0:2] = [x * 5, x * 6]
    else:
        items[:] = [x, x, x]
    return torch.stack(items)


@equal(UP, DOWN)
def reverses_and_sorts(x):
    order = [3, 1, 2]
    if x.sum() > 0:
        order.sort()
    else:
        order.reverse()
    return x * order[0] + order[2]


@equal(UP, DOWN)
def clears_and_extends(x):
    items = [x]
    if x.sum() > 0:
        items.clear()
        items.extend([x * 2])
    items.extend(v * 3 for v in [x])
    return items[0], items[-1]


@equal(UP, DOWN)
def dict_update_pop_setdefault(x):
    d = {"a": x, "b": x * 2}
    if x.sum() > 0:
        d.update(a=x * 5)
        y = d.setdefault("b", x * 100)
    else:
        y = d.pop("b")
        d["b"] = y + 1
    return d["a"], d["b"], y


@equal(UP, DOWN)
def map_that_appends(x):
    items = []
    if x.sum() > 0:
        list(map(items.append, [1, 2]))
    else:
        list(map(items.append, [3, 4]))
    return x * items[0] + items[1]


@equal(UP, DOWN)
def dict_order_by_a_branch(x):
    d = {"a": x, "b": x * 2}
    if x.sum() > 0:
        d["a"] = d.pop("a")
    else:
        d["a"] = d["a"] + 1
    return [v + i for i, v in enumerate(d.values())][0]


@equal(UP, DOWN)
def method_as_key(x):
    seen = []
    if x.sum() > 0:
        max([1], key=seen.append)
    return x + len(seen)


class Tally:
    def __init__(self):
        self.n = 0

    def add(self, item):
        self.n += 1
        return item


@equal(UP, DOWN)
def method_of_an_object_as_key(x):
    tally = Tally()
    if x.sum() > 0:
        max([1, 2], key=tally.add)
    return x + tally.n


KEPT = []


@refused(UP, DOWN)
def method_of_a_global_as_key(x):
    return x + max([1], key=KEPT.append) + len(KEPT)  # refuse


@refused(UP, DOWN)
def partial_method_as_key(x):
    return x + min([1], key=functools.partial(KEPT.insert, 0)) + len(KEPT)  # refuse


@refused(UP, DOWN)
def item_of_a_global_by_reduce(x):
    return x + functools.reduce(NAMED.setdefault, [1, 2]) + len(NAMED)  # refuse


NAMED = {}


# ---- heapq and bisect ----------------------------------------------------------------------------


@equal(UP, DOWN)
def heap_push(x):
    heap = [3, 5]
    if x.sum() > 0:
        heapq.heappush(heap, 1)
    else:
        heapq.heappush(heap, 9)
    return x * heap[0], len(heap)


@equal(UP, DOWN)
def heap_pop_on_one_way(x):
    heap = [1, 3, 5]
    if x.sum() > 0:
        heapq.heappop(heap)
    return x * heap[0]


@equal(UP, DOWN)
def heapifies(x):
    items = [5, 3, 1]
    if x.sum() > 0:
        heapq.heapify(items)
    return x * items[0]


@equal((UP, 2), (DOWN, 0))
def heap_in_a_loop(x, n):
    heap = [5, 7, 9]
    for _ in range(n):
        x = x + heapq.heapreplace(heap, 1)
    return x + heap[0]


@equal(UP, DOWN)
def insort(x):
    ranks = [1, 4, 6]
    if x.sum() > 0:
        bisect.insort(ranks, 5)
    else:
        bisect.insort_left(ranks, 0)
    return x * ranks[0] + ranks[2]


# ---- bytes and arrays ----------------------------------------------------------------------------


@refused(UP, DOWN)
def byte_array(x):
    data = bytearray(b"ab")
    if x.sum() > 0:
        data.append(5)  # refuse
        data[0] = 7  # refuse
    return x * data[0] + len(data)


@refused(UP, DOWN)
def array_of_numbers(x):
    data = array.array("d", [1.0, 2.0])
    if x.sum() > 0:
        data[0] = 10.0  # refuse
    else:
        data.append(3.0)
    return x * data[0] + len(data)


@refused(UP, DOWN)
def numpy_item(x):
    scale = np.ones(2)
    if x.sum() > 0:
        scale[0] = 5.0  # refuse
    return x * float(scale[0]) + float(scale[1])


@refused(UP, DOWN)
def numpy_fill(x):
    scale = np.ones(2)
    if x.sum() > 0:
        scale.fill(3.0)  # refuse
    else:
        scale += 1
    return x * float(scale[0])


@refused(UP, DOWN)
def numpy_through_a_view(x):
    scale = np.ones((2, 2))
    row = scale[0]
    if x.sum() > 0:
        row[1] = 4.0  # refuse
    return x * float(scale[0, 1])


@refused(UP, DOWN)
def numpy_out(x):
    scale = np.ones(2)
    if x.sum() > 0:
        np.add(scale, 2, out=scale)  # refuse
    return x * float(scale[0])


@refused(UP, DOWN)
def numpy_shares_memory_with_a_tensor(x):
    data = np.ones(3, dtype=np.float32)
    t = torch.from_numpy(data)  # refuse
    if x.sum() > 0:
        t.add_(1)
    return x * t


@refused((UP, 2), (DOWN, 0))
def numpy_in_a_loop(x, n):
    totals = np.zeros(1)
    for i in range(n):
        totals[0] += i + 1  # refuse
    return x + float(totals[0])


@refused(UP, DOWN)
def memory_view(x):
    data = bytearray(b"\x01\x02")
    view = memoryview(data)
    if x.sum() > 0:
        view[0] = 9  # refuse
    return x * data[0]


# ---- sets, counters, default dicts ---------------------------------------------------------------


@refused(UP, DOWN)
def set_add(x):
    seen = {1, 2}
    if x.sum() > 0:
        seen.add(3)  # refuse
    else:
        seen.discard(1)
    return x * len(seen)


@refused(UP, DOWN)
def set_operators(x):
    seen = {1, 2}
    if x.sum() > 0:
        seen |= {3, 4}  # refuse
    else:
        seen &= {1}
    return x * sum(sorted(seen))


@equal(UP, DOWN)
def counter_counts(x):
    count = collections.Counter("aab")
    if x.sum() > 0:
        count["a"] += 1
    else:
        count.update("bb")
    return x * count["a"] - count["b"] + count["z"]


@refused(UP, DOWN)
def default_dict_only_read(x):
    d = collections.defaultdict(int)
    if x.sum() > 0:
        y = x + d["new"]  # refuse
    else:
        y = x - 1
    return y, len(d)


@refused(UP, DOWN)
def default_dict_of_lists(x):
    groups = collections.defaultdict(list)
    groups["a"].append(x)
    if x.sum() > 0:
        groups["a"].append(x * 2)
    else:
        groups["b"].append(x * 3)  # refuse
    return len(groups), groups["a"][-1]


@refused(UP, DOWN)
def default_dict_in_a_lookup(x):
    d = collections.defaultdict(lambda: 2)
    y = x * d["k"] if x.sum() > 0 else x * 3  # refuse
    return y, "k" in d


@refused(UP, DOWN)
def ordered_dict_moves(x):
    d = collections.OrderedDict(a=1, b=2, c=3)
    if x.sum() > 0:
        d.move_to_end("a")  # refuse
    else:
        d.popitem(last=False)
    return x * list(d.values())[-1] + len(d)


@refused(UP, DOWN)
def chain_map(x):
    base, top = {"a": 1}, {}
    both = collections.ChainMap(top, base)
    if x.sum() > 0:
        both["a"] = 5
    return x * both["a"] + base["a"]  # refuse


class Missing(dict):
    def __missing__(self, key):
        self[key] = len(self) + 1
        return self[key]


@refused(UP, DOWN)
def dict_with_missing(x):
    d = Missing()
    if x.sum() > 0:
        x = x * d["a"]  # refuse
    return x * d["b"]


# ---- iterators -----------------------------------------------------------------------------------


@equal(UP, DOWN)
def next_in_a_branch(x):
    it = iter([1, 2, 3])
    if x.sum() > 0:
        x = x * next(it)
    else:
        x = x + next(it)
    return x * next(it)


@equal(UP, DOWN)
def next_on_one_way(x):
    it = iter([2, 3, 5])
    if x.sum() > 0:
        next(it)
    return x * next(it)


@equal(SMALL, DOWN, UP * 9)
def counter_in_a_data_loop(x):
    counter = itertools.count(1)
    while x.sum() < 9:
        x = x + next(counter)
    return x


@equal(UP, DOWN)
def generator_expression_twice(x):
    parts = (x * i for i in (1, 1))
    a = sum(parts)
    b = sum(parts)
    return a + b


@equal(UP, DOWN)
def generator_expression_consumed_in_parts(x):
    parts = (x * i for i in range(4))
    first = next(parts)
    rest = list(parts)
    return first, len(rest), rest[0]


@equal(UP, DOWN)
def generator_expression_in_a_branch(x):
    parts = (i for i in (2, 3, 5))
    if x.sum() > 0:
        x = x * next(parts)
    return x * next(parts)


@equal(UP, DOWN)
def generator_expression_sees_later_values(x):
    k = 1
    parts = (x * k for _ in range(2))
    k = 10
    return sum(parts)


def three(x):
    yield x
    yield x + 1
    yield x + 2


@refused(UP, DOWN)
def generator_function_in_a_branch(x):
    g = three(x)
    if x.sum() > 0:
        next(g)
    return next(g)  # refuse


@equal(UP, DOWN)
def zip_continued(x):
    pairs = zip([1, 2, 3], [4, 5, 6])
    a, b = next(pairs)
    for c, d in pairs:
        a, b = a + c, b * d
    return x * a + b


@refused(UP, DOWN)
def zip_in_a_branch(x):
    pairs = zip([1, 2], [3, 4])
    if x.sum() > 0:
        a, b = next(pairs)
        x = x * a + b
    return x + sum(map(sum, pairs))  # refuse


@equal(UP, DOWN)
def enumerate_continued(x):
    numbered = enumerate([5, 6, 7])
    if x.sum() > 0:
        next(numbered)
    i, v = next(numbered)
    return x * i + v


@equal(UP, DOWN)
def cycle_in_a_branch(x):
    signs = itertools.cycle([1, -1])
    if x.sum() > 0:
        x = x * next(signs)
    return x * next(signs) + next(signs)


@equal((UP, 3), (DOWN, 0))
def cycle_in_a_counted_loop(x, n):
    signs = itertools.cycle([1, -1])
    for _ in range(n):
        x = x + next(signs)
    return x * next(signs)


@equal(UP, DOWN)
def map_consumed_twice(x):
    doubled = map(lambda v: v * 2, [x, x])
    return sum(doubled, x) + sum(doubled, x)


@refused(UP, DOWN)
def filter_continued(x):
    odd = filter(lambda n: n % 2, [1, 2, 3, 5])
    if x.sum() > 0:
        next(odd)
    return x * next(odd)  # refuse


@equal(UP, DOWN)
def islice_shares_its_iterator(x):
    it = iter(range(10))
    first = list(itertools.islice(it, 3))
    if x.sum() > 0:
        x = x + sum(itertools.islice(it, 2))
    return x * next(it) + len(first)


@equal(UP, DOWN)
def tee_in_a_branch(x):
    a, b = itertools.tee([1, 2, 3])
    if x.sum() > 0:
        next(a)
    return x * next(a) + next(b)


@equal(UP, DOWN)
def chain_and_takewhile(x):
    it = itertools.chain([1, 2], [5, 1])
    small = list(itertools.takewhile(lambda v: v < 5, it))
    return x * len(small) + next(it)


@equal(UP, DOWN)
def reversed_in_a_branch(x):
    back = reversed([1, 2, 3])
    if x.sum() > 0:
        next(back)
    return x * next(back)


@refused(UP, DOWN)
def unpacks_an_iterator(x):
    it = iter([1, 2, 3, 4])
    if x.sum() > 0:
        a, b, *_ = it
    else:
        a, b = next(it), next(it)
    return x * a + b + sum(it)  # refuse


@equal(UP, DOWN)
def membership_consumes(x):
    it = iter([1, 2, 3, 4])
    if x.sum() > 0:
        found = 2 in it
    else:
        found = 3 in it
    return x * next(it) + found


@equal(UP, DOWN)
def iterates_a_dict_while_it_holds(x):
    d = {"a": 1, "b": 2}
    it = iter(d.items())
    key, value = next(it)
    if x.sum() > 0:
        d[key] = 7
    return x * value + d["a"] + next(it)[1]


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:  # refuse
            raise StopIteration
        self.n -= 1
        return self.n


@refused(UP, DOWN)
def own_iterator_in_a_branch(x):
    c = Countdown(3)
    if x.sum() > 0:
        next(c)
    return x * next(c) + sum(c)


@equal((UP, 2), (DOWN, 0))
def own_iterator_in_a_loop(x, n):
    c = Countdown(5)
    for _ in range(n):
        x = x * next(c)
    return x + c.n


@equal(UP, DOWN)
def iter_with_a_sentinel(x):
    items = [3, 2, 1, 0]
    it = iter(items.pop, 2)
    if x.sum() > 0:
        next(it)
    return x * len(items)


@equal(UP, DOWN)
def accumulate_in_parts(x):
    sums = itertools.accumulate([x, x, x])
    next(sums)
    if x.sum() > 0:
        x = next(sums)
    return x + next(sums)


@equal(UP, DOWN)
def iterator_in_a_while_else(x):
    it = iter([4, 3, 2])
    n = next(it)
    while n > 2:
        x = x + n
        n = next(it)
    else:
        x = x * n
    return x, next(it, None)


# ---- where the changed object lives --------------------------------------------------------------


@equal((UP, [1, 2]), (DOWN, [3]))
def input_list_changes(x, items):
    if x.sum() > 0:
        items.append(5)
    return x * len(items)


@equal((UP, collections.deque([1])), (DOWN, collections.deque([2])))
def input_deque_changes(x, items):
    items.append(5)
    return x * 2


QUEUE = collections.deque([1.0, 2.0], maxlen=2)


@refused(UP, DOWN)
def global_deque_changes(x):
    QUEUE.append(3.0)  # refuse
    return x * QUEUE[0]


HEAP = [1, 5]


@refused(UP, DOWN)
def global_heap_changes(x):
    heapq.heappush(HEAP, 3)  # refuse
    return x * HEAP[0]


TABLE = np.ones(2)


@refused(UP, DOWN)
def global_array_changes(x):
    TABLE[0] += 1  # refuse
    return x * float(TABLE[0])


TICKET = itertools.count()


@refused(UP, DOWN)
def global_iterator_advances(x):
    return x * next(TICKET)  # refuse


@refused(UP, DOWN)
class ModuleWithADeque(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = collections.deque([0.0], maxlen=2)

    def forward(self, x):
        self.history.append(1.0)  # refuse
        return x + self.history[0]


@refused(UP, DOWN)
class ModuleWithAnIterator(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = itertools.cycle([1.0, 2.0])

    def forward(self, x):
        return x * next(self.steps)  # refuse


@refused(UP, DOWN)
class ModuleWithAnArray(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = np.zeros(2)

    def forward(self, x):
        self.table[0] += 1  # refuse
        return x + float(self.table[0])


@refused(UP, DOWN)
class ModuleWithAListThatGrows(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(len(self.seen))  # refuse
        return x + len(self.seen)


@refused(UP, DOWN)
class ModuleWithADefaultDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = collections.defaultdict(int)

    def forward(self, x):
        y = x + self.table["a"]  # refuse
        return y + len(self.table)


@equal(UP, DOWN)
def list_of_lists_through_an_alias(x):
    grid = [[1, 2]] * 2
    if x.sum() > 0:
        grid[0][0] = 9
    return x * grid[1][0]


@equal(UP, DOWN)
def dict_in_a_deque(x):
    d = collections.deque([{"a": 1}])
    if x.sum() > 0:
        d[0]["a"] = 5
    return x * d[0]["a"]


@equal(UP, DOWN)
def callback_changes_a_list(x):
    log = []

    def note(n):
        log.append(n)
        return n

    if x.sum() > 0 and note(1):
        x = x * 2
    elif note(2):
        x = x * 3
    return x * len(log) + log[0]


@equal(UP, DOWN)
def sort_with_a_key_that_counts(x):
    calls = []
    order = [3, 1, 2]
    if x.sum() > 0:
        order.sort(key=lambda n: calls.append(n) or n)
    return x * order[0] + len(calls)
