"""cfx.script: what a program changes while it is captured.

Both ways of a branch are evaluated one after the other, and a loop several times. Whatever one of
them changes has to be put back before the next: either the graph then does what eager PyTorch does,
or the program is refused, with its line.
"""
import array
import bisect
import collections
import collections.abc
import copy
import fractions
import functools
import heapq
import inspect
import io
import itertools
import logging
import operator
import os
import random
import re
import subprocess
import types
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import cfx
from script_checks import is_same

UP, DOWN, HIGH = torch.ones(3), -torch.ones(3), torch.full((3,), 4.0)
INPUTS = (UP, DOWN, HIGH)
SAME, REFUSED = [], []


def same(fn):
    """Captured, and equal to eager on all inputs, three times."""
    SAME.append(fn)
    return fn


def refused(*words):
    """Refused; the line that is to blame ends with `# here`."""

    def note(fn):
        REFUSED.append((fn, words))
        return fn

    return note


# ---- containers of other types ------------------------------------------------------------------


@same
def deque_appended(x):
    d = collections.deque([x])
    if x.sum() > 0:
        d.append(x * 2)
        d.popleft()
    else:
        d.append(x * 3)
        d.popleft()
    return d[0], len(d)


@same
def deque_of_a_known_length(x):
    d = collections.deque([x, x], maxlen=2)
    if x.sum() > 0:
        d.append(x * 2)
    else:
        d.appendleft(x * 3)
    return d[0] + d[1] * 10, d.maxlen


@same
def deque_changed_and_put_back(x):
    d = collections.deque([1, 2, 3])
    if x.sum() > 0:
        d.rotate(1)
        y = x * d[0]
        d.rotate(-1)
    else:
        y = x * d[0]
    return y + d[0] * 100 + len(d)


@same
def deque_goes_round(x):
    d = collections.deque([x, x + 1], maxlen=2)
    while x.sum() < 20:
        d.append(x)
        x = x + d[0].abs() + 1
    return d[0], d[1], x


@same
def deque_of_its_own_branch(x):
    if x.sum() > 0:
        d = collections.deque()
        d.append(x)
        d.append(x + 1)
        y = d.pop() + len(d)
    else:
        y = x
    return y


@same
def deque_that_ends_alike(x):
    d = collections.deque()
    if x.sum() > 0:
        d.append(1)
        y = x
    else:
        d.append(1)
        y = x + 1
    return y * len(d)


@same
def deque_by_operator(x):
    d = collections.deque([1])
    e = d
    if x.sum() > 0:
        d += [2]
        y = x * len(e)
        d.pop()
    else:
        y = x * len(e)
    return y


@refused("deque", "length")
def deque_of_other_lengths(x):
    d = collections.deque([1])
    if x.sum() > 0:
        d.append(2)  # here
    return x * len(d)


@refused("deque", "loop")
def deque_grows_in_a_loop(x):
    d = collections.deque()
    while x.sum() < 9:  # here
        d.append(x)
        x = x + 2
    return len(d)


@same
def array_changed_and_put_back(x):
    a = np.zeros(3)
    if x.sum() > 0:
        a[0] = 5
        y = x + float(a.sum())
        a[0] = 0
    else:
        y = x + float(a.sum())
    return y, float(a.sum())


@same
def array_changed_before_the_branch(x):
    a = np.zeros(3)
    a[0] = 5
    a.fill(2)
    a += 1
    if x.sum() > 0:
        return x + float(a.sum())
    return x - float(a.sum())


@same
def array_changed_alike(x):
    a = np.zeros(3)
    if x.sum() > 0:
        a[0] = 5
        y = x
    else:
        a[0] = 5
        y = x * 2
    return y + float(a.sum())


@refused("ndarray")
def array_item(x):
    a = np.zeros(3)
    if x.sum() > 0:
        a[0] = 5  # here
    return x + float(a.sum())


@refused("ndarray")
def array_filled(x):
    a = np.zeros(3)
    if x.sum() > 0:
        a.fill(7)  # here
    return x + float(a.sum())


@refused("ndarray")
def array_through_a_view(x):
    a = np.zeros(3)
    if x.sum() > 0:
        part = a[1:]
        part[0] = 7  # here
    return x + float(a.sum())


@refused("ndarray")
def array_by_a_function(x):
    a = np.zeros(3)
    if x.sum() > 0:
        np.copyto(a, 7)  # here
    return x + float(a.sum())


@refused("ndarray")
def array_in_a_loop(x):
    a = np.zeros(3)
    while x.sum() < 9:  # here
        a += 1
        x = x + 1
    return x + float(a.sum())


@refused("bytearray")
def bytes_appended(x):
    b = bytearray(b"a")
    if x.sum() > 0:
        b.append(66)  # here
    return x * len(b)


@same
def bytes_changed_and_put_back(x):
    b = bytearray(b"abc")
    if x.sum() > 0:
        b[0] = 1
        y = x * b[0]
        b[0] = 97
    else:
        y = x * b[0]
    return y * b[0]


@refused("array")
def typed_array(x):
    a = array.array("i", [1, 2])
    if x.sum() > 0:
        a.append(3)  # here
    return x * len(a)


@same
def typed_array_in_both(x):
    a = array.array("i", [1, 2])
    if x.sum() > 0:
        a.append(3)
        y = x * len(a)
        a.pop()
    else:
        y = x * len(a)
    return y


# ---- functions that change their arguments -------------------------------------------------------


@same
def heap(x):
    h = [5, 1, 4]
    heapq.heapify(h)
    if x.sum() > 0:
        heapq.heappush(h, 0)
        y = x * heapq.heappop(h)
    else:
        y = x * h[0]
    return y + heapq.heappop(h), len(h)


@same
def heap_of_either(x):
    h = [2, 5]
    if x.sum() > 0:
        heapq.heappush(h, 1)
    else:
        heapq.heappush(h, 9)
    return x * h[0] + h[2] * 10


@same
def heap_replaced(x):
    h = [1, 2, 3]
    if x.sum() > 0:
        y = x * heapq.heapreplace(h, 7)
    else:
        y = x * heapq.heappushpop(h, 0)
    return y + h[0]


@same
def sorted_in(x):
    l = [1, 4]
    if x.sum() > 0:
        bisect.insort(l, 2)
    else:
        bisect.insort_left(l, 3)
    return x * l[1] + len(l)


@same
def unbound_append(x):
    l = [1]
    if x.sum() > 0:
        list.append(l, 5)
    else:
        list.append(l, 6)
    return x * l[1] * len(l)


@same
def unbound_append_one_way(x):
    l = [1]
    if x.sum() > 0:
        list.append(l, 5)
    return x * len(l)


@same
def unbound_setitem(x):
    d = {"a": 1}
    if x.sum() > 0:
        dict.__setitem__(d, "a", 5)
    else:
        dict.update(d, a=7)
    return x * d["a"]


@same
def operator_setitem(x):
    l = [1, 2]
    if x.sum() > 0:
        operator.setitem(l, 0, 5)
    return x * l[0]


@same
def operator_iadd(x):
    l = [1, 2]
    if x.sum() > 0:
        operator.iadd(l, [3])
        l.pop()
    else:
        operator.delitem(l, 0)
        l.append(2)
    return x * l[0]


@same
def itemgetter_only_reads(x):
    l = [1, 2]
    first = operator.itemgetter(0)
    if x.sum() > 0:
        return x * first(l)
    return x - first(l)


@same
def sorted_by_method_taken_before(x):
    l = [3, 1, 2]
    sort = l.sort
    if x.sum() > 0:
        sort()
    return x * l[0]


@same
def reduced(x):
    seen = []

    def add(a, b):
        seen.append(b)
        return a + b

    if x.sum() > 0:
        x = x + functools.reduce(add, [1, 2, 3])
        seen.pop()
    else:
        seen.append(4)
    return x * len(seen) if len(seen) < 3 else x


@refused("cannot be put back")
def variables_of_an_object(x):
    o = types.SimpleNamespace(a=1)
    if x.sum() > 0:
        vars(o)["a"] = 5  # here
    else:
        o.a = 7
    return x * o.a


@same
def namespace(x):
    o = types.SimpleNamespace(a=1, b=x)
    if x.sum() > 0:
        o.a = 5
        o.b = x * 2
    return o.b * o.a


@same
def defaultdict_only_read(x):
    d = collections.defaultdict(int)
    if x.sum() > 0:
        y = x + d["a"]
        del d["a"]
    else:
        y = x - 1
    return y * (len(d) + 1)


@same
def defaultdict_keeps_its_factory(x):
    d = collections.defaultdict(lambda: 3)
    d["k"] = 1
    if x.sum() > 0:
        d["k"] = 4
    return x * d["k"] + d["new"]


@refused("keys")
def defaultdict_read_one_way(x):
    d = collections.defaultdict(int)
    if x.sum() > 0:
        y = x + d["a"]  # here
    else:
        y = x
    return y * len(d)


@same
def counter(x):
    c = collections.Counter("aab")
    if x.sum() > 0:
        c["a"] += 3
    else:
        c.update("a")
    return x * c["a"] + c["missing"]


@same
def ordered(x):
    o = collections.OrderedDict(a=1, b=2)
    if x.sum() > 0:
        o.move_to_end("a")
        first = next(iter(o))
        o.move_to_end("b")
    else:
        first = next(iter(o))
    return (x, first == "b") if isinstance(first, str) else x, list(o)


# ---- iterators -----------------------------------------------------------------------------------


@same
def next_in_a_branch(x):
    it = iter([1, 2, 3])
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - 1
    return x * next(it)


@same
def next_in_both(x):
    it = iter((1, 2, 3))
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - next(it)
    return x * next(it)


@same
def next_of_a_text(x):
    it = iter("123")
    if x.sum() > 0:
        x = x + int(next(it))
    else:
        x = x - int(next(it))
    return x * int(next(it))


@same
def next_with_a_default(x):
    it = iter([1])
    a = next(it, 7)
    b = next(it, 7)
    return x * a + b


@same
def count_in_a_loop(x):
    counter = itertools.count(1)
    while x.sum() < 9:
        x = x + next(counter)
    return x * next(counter)


@same
def count_by_a_step(x):
    counter = itertools.count(start=0.5, step=0.25)
    if x.sum() > 0:
        x = x + next(counter)
    return x * next(counter)


@same
def cycle_in_a_loop(x):
    signs = itertools.cycle([1.0, 2.0, 3.0])
    while x.sum() < 20:
        x = x + next(signs)
    return x * next(signs)


@same
def enumerated(x):
    pairs = enumerate([5, 6, 7], 1)
    if x.sum() > 0:
        i, v = next(pairs)
        x = x + i * v
    i, v = next(pairs)
    return x * i + v


@same
def zipped(x):
    pairs = zip([1, 2, 3], [4, 5, 6])
    if x.sum() > 0:
        a, b = next(pairs)
        x = x + a * b
    a, b = next(pairs)
    return x * a + b


@same
def back_to_front(x):
    it = reversed([1, 2, 3])
    if x.sum() > 0:
        x = x + next(it)
    return x * next(it)


@same
def mapped(x):
    it = map(lambda v: v * 2, [1, 2, 3])
    if x.sum() > 0:
        x = x + next(it)
    return x * next(it)


@same
def filtered(x):
    it = filter(lambda v: v > 1, [1, 2, 3])
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - next(it)
    return x * next(it)


@same
def generator_twice(x):
    g = (v * 2 for v in [x, x, x])
    a = sum(g)
    b = sum(g)
    return a + b


@same
def generator_to_a_function(x):
    def twice(items):
        return len(list(items)) * 10 + len(list(items))

    return x * twice(v for v in [1, 2, 3])


@refused("depends on data")
def generator_in_a_branch(x):
    g = (v for v in [1, 2, 3])
    if x.sum() > 0:
        x = x + next(g)
    return x * sum(g)  # here


@same
def generator_and_loop(x):
    g = (v for v in [1, 2, 3, 4])
    for v in g:
        x = x + v
        if v == 2:
            break
    return x * sum(g)


@same
def mapped_twice(x):
    g = map(float, [1, 2])
    return x * len(list(g)) + len(list(g))


@same
def loop_leaves_the_rest(x):
    it = iter([1, 2, 3, 4])
    for v in it:
        if v == 2:
            break
        x = x + v
    return x * sum(it)


@same
def loop_in_a_branch(x):
    it = iter([1, 2, 3, 4])
    if x.sum() > 0:
        for v in it:
            x = x + v
            if v == 2:
                break
    else:
        next(it)
        next(it)
    return x * sum(it)


@same
def pairs_of_one_iterator(x):
    it = iter([1, 2, 3, 4])
    for a, b in zip(it, it):
        x = x * a + b
    return x


@same
def chained(x):
    it = itertools.chain([1, 2], (3,), range(4, 6))
    if x.sum() > 0:
        x = x + next(it) + next(it)
    else:
        x = x - next(it) - next(it)
    return x * next(it) + sum(it)


@same
def chained_from_one(x):
    it = itertools.chain.from_iterable([[1, 2], [3]])
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - next(it)
    return x * len(list(it))


@same
def sliced(x):
    it = itertools.islice(itertools.count(), 2, 9, 3)
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - next(it)
    return x * next(it), list(it)


@same
def sliced_leaves_the_rest(x):
    it = iter(range(9))
    first = list(itertools.islice(it, 3))
    second = list(itertools.islice(it, 1, 4))
    return x * sum(first) + sum(second) * 10 + next(it) * 100


@same
def repeated(x):
    it = itertools.repeat(3, 2)
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x * next(it)
    return x, list(it)


@same
def accumulated(x):
    it = itertools.accumulate([1, 2, 3, 4])
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - next(it)
    return x * next(it), list(it), list(itertools.accumulate([2, 3], operator.mul, initial=1))


@same
def taken_while(x):
    it = itertools.takewhile(lambda v: v < 3, [1, 2, 3, 1])
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - next(it)
    return x, list(it), list(itertools.dropwhile(lambda v: v < 3, [1, 2, 3, 1]))


@same
def star_mapped(x):
    it = itertools.starmap(operator.mul, [(1, 2), (3, 4)])
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - next(it)
    return x * next(it)


@same
def zipped_to_the_longest(x):
    it = itertools.zip_longest([1, 2], [3], fillvalue=9)
    if x.sum() > 0:
        a, b = next(it)
    else:
        b, a = next(it)
    return x * a + b, list(it)


@same
def neighbours(x):
    it = itertools.pairwise([1, 2, 3])
    if x.sum() > 0:
        a, b = next(it)
    else:
        b, a = next(it)
    return x * a + b, list(it)


@same
def arrangements(x):
    it = itertools.product([1, 2], repeat=2)
    if x.sum() > 0:
        a, b = next(it)
    else:
        b, a = next(it)
    rest = list(it)
    more = list(itertools.combinations([1, 2, 3], 2)) + list(itertools.permutations([1, 2]))
    again = list(itertools.combinations_with_replacement("ab", 2))
    return x * a + b, rest, more, again


@same
def grouped(x):
    groups = [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])]
    return x * groups[1][0] + len(groups[0][1])


@same
def left_out(x):
    it = itertools.compress([1, 2, 3], [1, 0, 1])
    odd = itertools.filterfalse(lambda v: v % 2 == 0, [1, 2, 3])
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - next(it)
    return x * next(it) + sum(odd)


@same
def teed(x):
    a, b = itertools.tee([1, 2, 3])
    if x.sum() > 0:
        x = x + next(a)
    else:
        x = x - next(a)
    return x * next(a) + sum(b)


@same
def found_by_a_pattern(x):
    it = re.finditer("[0-9]", "1 2 3 4")
    if x.sum() > 0:
        x = x + int(next(it).group())
    else:
        x = x - int(next(it).group())
    return x * int(next(it).group()), len(list(it))


@same
def keys_and_items(x):
    d = {"a": 1, "b": 2}
    keys = iter(d)
    items = iter(d.items())
    if x.sum() > 0:
        next(keys)
        k, v = next(items)
    else:
        next(keys)
        k, v = next(items)
    return x * d[next(keys)] + v, k, next(items)


@same
def two_that_share(x):
    it = iter([1, 2, 3, 4])
    pairs = zip(it, it)
    if x.sum() > 0:
        a, b = next(pairs)
    else:
        a = next(it)
        b = next(it)
    return x * a + b, list(it)


@same
def called_until(x):
    l = [1, 2, 3, 0, 4]
    it = iter(functools.partial(l.pop, 0), 0)
    return x * sum(it) + len(l)


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


@same
def own_iterator(x):
    it = Countdown(4)
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x - next(it)
    return x * next(it) + sum(it)


@same
def own_iterator_with_a_default(x):
    it = Countdown(1)
    return x + next(it, 5) * 10 + next(it, 5)


@same
def own_iterator_in_a_loop(x):
    it = Countdown(100)
    while x.sum() < 200:
        x = x + next(it)
    return x * it.n


@same
def own_iterator_by_functions(x):
    it = Countdown(5)
    if x.sum() > 0:
        x = x + sum(itertools.islice(it, 2))
    else:
        x = x + max(itertools.islice(it, 2))
    return x * it.n


@same
def iterator_in_a_list(x):
    its = [iter([1, 2, 3]), itertools.count(5)]
    if x.sum() > 0:
        x = x + next(its[0]) * next(its[1])
    return x * next(its[0]) + next(its[1])


@same
def questions_stop_early(x):
    it = iter([0, 1, 2, 3])
    found = any(it)
    return x * sum(it) + found


@same
def membership_stops_early(x):
    it = iter([0, 1, 2, 3])
    found = 1 in it
    return x * sum(it) + found


@same
def unpacked(x):
    it = iter([1, 2, 3])
    a, *rest = it
    return x * a + len(rest) + len(list(it))


@same
def dictionaries_of_pairs(x):
    d = dict(zip("ab", [1, 2]))
    e = dict(enumerate([3, 4]))
    text = ",".join(map(str, [1, 2]))
    return x * d["b"] + e[1] + len(text) + max(map(abs, [-5, 2])) + sum(v for v in d.values())


@same
def lists_change_under_their_iterator(x):
    l = [1, 2]
    it = iter(l)
    first = next(it)
    l.append(5)
    return x * first + sum(it)


@same
def rows_of_a_generator(x):
    g = (row * 2 for row in x)
    return torch.stack(list(g)), torch.stack(tuple(row + 1 for row in x))


# ---- in loops ------------------------------------------------------------------------------------


@same
def deque_rotates_in_a_loop(x):
    d = collections.deque([1, 2, 3])
    while x.sum() < 9:
        d.rotate(1)
        x = x + d[0]
    return x * d[0]


@same
def cycle_in_one_branch_of_a_loop(x):
    it = itertools.cycle([1, 2])
    n = 0
    while x.sum() < 9:
        if x.max() > 2:
            x = x + next(it)
        else:
            x = x + 1
        n += 1
    return x * next(it) + n


@same
def next_in_a_counted_loop(x):
    it = iter(range(100))
    for i in range(x.shape[0]):
        x = x + next(it)
    return x * next(it)


@same
def enumerate_beside_a_loop(x):
    e = enumerate(itertools.count(5))
    for r in x:
        i, v = next(e)
        x = x + i * v
    return x


@same
def defaultdict_goes_round(x):
    d = collections.defaultdict(int)
    d['a'] = 0
    while x.sum() < 9:
        d['a'] += 1
        x = x + d['a']
    return x * d['a']


@same
def counter_in_a_counted_loop(x):
    c = collections.Counter(a=1)
    for _ in range(x.shape[0]):
        c['a'] += 1
    return x * c['a']


@same
def array_beside_branches(x):
    a = np.zeros(2)
    for i in range(3):
        a[0] += i
        if x.sum() > 0:
            x = x + float(a[0])
    return x * float(a[0])


@same
def next_until_a_break(x):
    it = iter([1, 2, 3, 4, 5, 6, 7, 8, 9])
    while True:
        x = x + next(it)
        if x.sum() > 9:
            break
    return x * next(it)


@same
def continue_over_an_iterator(x):
    it = iter([1, 2, 3, 4, 5])
    for v in it:
        if x.sum() > 0:
            continue
        x = x + v
    return x


@same
def generator_goes_round(x):
    g = (v * x for v in [1, 2, 3])
    t = x
    while t.sum() < 5:
        t = t + next(g).abs()
    return t


@same
def tensors_of_an_iterator(x):
    g = iter([x, x + 1, x + 2, x + 9])
    t = x
    while t.sum() < 5:
        t = t + next(g).abs()
    return t


@same
def deque_of_an_object(x):

    class S:

        def __init__(self):
            self.q = collections.deque([1, 2], maxlen=2)

        def push(self, v):
            self.q.append(v)
            return self.q[0]
    s = S()
    while x.sum() < 9:
        x = x + s.push(x.abs()) + 1
    return x


@same
def map_without_an_end(x):
    m = map(lambda v: v * 2, itertools.count(1))
    while x.sum() < 9:
        x = x + next(m)
    return x * next(m)


@same
def zip_without_an_end(x):
    z = zip(itertools.count(), itertools.cycle([1, 2]))
    while x.sum() < 9:
        a, b = next(z)
        x = x + a + b
    a, b = next(z)
    return x * a + b


@same
def accumulate_without_an_end(x):
    a = itertools.accumulate(itertools.count(1))
    while x.sum() < 30:
        x = x + next(a)
    return x * next(a)


@same
def pairwise_without_an_end(x):
    p = itertools.pairwise(itertools.count(1))
    while x.sum() < 30:
        a, b = next(p)
        x = x + a * b
    return x


@same
def chain_without_an_end(x):
    c = itertools.chain([1, 2, 3], itertools.count(10))
    for _ in range(5):
        if x.sum() > 0:
            x = x + next(c)
        else:
            x = x - next(c)
    return x


@same
def islice_without_an_end(x):
    s = itertools.islice(itertools.count(), 2, None, 3)
    while x.sum() < 30:
        x = x + next(s)
    return x


@same
def deque_as_a_stack(x):
    q = collections.deque([x])
    out = []
    while len(q) > 0 and len(out) < 3:
        y = q.pop()
        out.append(y)
        if y.sum() > 0:
            q.append(y - 1)
        else:
            q.append(y + 1)
    return torch.stack(out)


@same
def next_in_a_function(x):
    it = iter([1, 2, 3, 4, 5, 6])

    def take():
        return next(it)
    while x.sum() < 9:
        x = x + take()
        for _ in range(1):
            x = x + take()
    return x


@same
def next_and_return(x):
    it = iter([1, 2, 3, 4])
    while x.sum() < 4:
        x = x + next(it)
        if x.sum() > 100:
            return x
    return x * next(it)


@same
def break_by_both(x):
    log = []
    it = iter([1, 2, 3, 4])
    for v in it:
        log.append(v)
        if x.sum() > 0 and v == 2:
            break
    return x * len(log)


# ---- what comes from outside ---------------------------------------------------------------------

QUEUE = collections.deque([1, 2])
TABLE = np.ones(3)
BYTES = bytearray(b"ab")
COUNTER = itertools.count()
ITERATOR = iter([1, 2, 3])
DEFAULTS = collections.defaultdict(int, a=1)
HEAP = [1, 2]
SPACE = types.SimpleNamespace(a=1)
RIGHT = "comes from outside"


@same
def only_reads(x):
    total = QUEUE[0] + float(TABLE.sum()) + BYTES[0] + DEFAULTS["a"] + SPACE.a + len(HEAP)
    if x.sum() > 0:
        total += max(QUEUE) + float(np.dot(TABLE, TABLE)) + heapq.nsmallest(1, HEAP)[0]
    return x * total


@refused(RIGHT)
def outside_deque(x):
    QUEUE.append(5)  # here
    return x * len(QUEUE)


@refused(RIGHT)
def outside_array(x):
    TABLE[0] = 5  # here
    return x


@refused(RIGHT)
def outside_array_method(x):
    TABLE.fill(5)  # here
    return x


@refused(RIGHT)
def outside_array_view(x):
    part = TABLE[1:]
    part += 1  # here
    return x


@refused(RIGHT)
def outside_array_function(x):
    np.copyto(TABLE, 5)  # here
    return x


@refused(RIGHT)
def outside_bytes(x):
    BYTES.append(1)  # here
    return x


@refused(RIGHT)
def outside_counter(x):
    return x + next(COUNTER)  # here


@refused(RIGHT)
def outside_iterator(x):
    for v in ITERATOR:  # here
        x = x + v
    return x


@refused(RIGHT)
def outside_iterator_summed(x):
    return x + sum(ITERATOR)  # here


@refused(RIGHT)
def outside_defaults(x):
    return x + DEFAULTS["b"]  # here


@refused(RIGHT)
def outside_heap(x):
    heapq.heappush(HEAP, 5)  # here
    return x


@refused(RIGHT)
def outside_heap_method(x):
    HEAP.append(5)  # here
    return x


@refused(RIGHT)
def outside_unbound(x):
    list.append(HEAP, 5)  # here
    return x


@refused(RIGHT)
def outside_operator(x):
    operator.setitem(HEAP, 0, 5)  # here
    return x


@refused(RIGHT)
def outside_variables(x):
    vars(SPACE)["a"] = 5  # here
    return x


@refused(RIGHT)
def outside_namespace(x):
    SPACE.a = 5  # here
    return x


@refused(RIGHT)
def outside_globals(x):
    globals()["HEAP"] = [5]  # here
    return x


# ---- what cannot be put back ---------------------------------------------------------------------


@same
def foreign_iterator(x):
    it = iter({1: 2, 3: 4}.values())
    if x.sum() > 0:
        x = x + next(it)
    else:
        x = x * next(it)
    return x * next(it)


@same
def hidden_state(x):
    r = random.Random(0)
    if x.sum() > 0:
        x = x + r.random()
    return x


@refused("cannot be put back")
def text_file(x):
    f = io.StringIO()
    if x.sum() > 0:
        f.write("a")  # here
    return x * len(f.getvalue())


@same
def text_file_in_a_known_loop(x):
    f = io.StringIO()
    for i in range(20):
        f.write("a")
        x = x + 1
    return x * len(f.getvalue())


@same
def object_of_a_library(x):
    m = collections.ChainMap({"a": 1}, {"b": 2})
    if x.sum() > 0:
        m["a"] = 5
    return x * m["a"] + m["b"]


@refused("random.sample")
def shuffled_by_the_graph(x):
    l = [1, 2, 3]
    random.shuffle(l)  # here
    return x * l[0]


@refused("random.sample")
def shuffled_by_its_own_generator(x):
    l = [1, 2, 3]
    random.Random(0).shuffle(l)  # here
    if x.sum() > 0:
        x = x + l[0]
    return x * l[1]


@same
def numbers_with_slots(x):
    half = fractions.Fraction(1, 2)
    if x.sum() > 0:
        return x * float(half.limit_denominator(3))
    return x


@same
def fails_after_a_change(x):
    l = []
    if x.sum() > 0:
        try:
            heapq.heappush(l, 1)
            heapq.heappush(l, "a")
        except TypeError:
            pass
    return x * len(l)


@same
def random_numbers_of_the_graph(x):
    if x.sum() > 0:
        x = x + random.random() * 0
    return x


@same
def random_of_its_own(x):
    rng = np.random.default_rng(0)
    if x.sum() > 0:
        x = x + float(rng.random())
    return x


class Single:
    found = None

    def __new__(cls):
        if cls.found is None:
            cls.found = super().__new__(cls)  # here
        return cls.found


@refused("comes from outside the function")
def one_object_for_all(x):
    return x if Single() is Single() else -x


class Noting(type):
    names = []

    def __call__(cls, *args):
        Noting.names.append(cls.__name__)  # here
        return super().__call__(*args)


class Noted(metaclass=Noting):
    pass


@refused("comes from outside the function")
def noted_by_its_metaclass(x):
    Noted()
    return x


class Ends(tuple):
    def __new__(cls, first, last):
        return super().__new__(cls, (first, first if first.sum() > 0 else last))


@same
def made_by_new(x):
    return Ends(x, x * 2)[1]


@refused("all calls of the function share")
def own_default(x, seen={}):  # noqa: B006
    seen["n"] = seen.get("n", 0) + 1  # here
    return x * seen["n"]


@refused("a `for` goes over")
def grows_while_a_loop_goes_over_it(x):
    items, total = [1, 2], 0
    for v in items:
        total = total + v
        if x.sum() > 10:
            items.append(v + 10)  # here
    return x * len(items), total


@refused("a `for` goes over")
def grows_while_a_loop_counts_to_its_length(x):
    rows = list(x)
    for row in rows:
        rows += [row]  # here
        if len(rows) > 5:
            break
    return len(rows)


@same
def kept_generator_computes_later(x):
    seen = []
    factor = 1
    items = [1, 2]
    g = (seen.append(v) or v * factor for v in items)
    before = len(seen)
    factor = 10
    items.append(3)
    return x * before + sum(g) + len(seen) * 1000


@refused("changes something")
def kept_generator_with_a_condition(x):
    seen = []
    g = (seen.append(v) or v for v in [1, 2, 3] if v > 1)  # here
    return x * len(seen) + sum(g)


@same
def map_computes_later(x):
    seen = []
    m = map(lambda v: seen.append(v) or v, [1, 2, 3])
    before = len(seen)
    next(m)
    return x * before + len(seen)


@same
def late_binding_by_data(x):
    factor = 1
    g = (v * factor for v in [1, 2])
    if x.sum() > 0:
        factor = 10
    return x * sum(g)


@same
def chosen_iterator(x):
    it = iter([1, 2, 3]) if x.sum() > 0 else iter([4, 5, 6])
    return x * next(it) + next(it)


@same
def classes_of_iterators(x):
    m = map(abs, [1])
    z = zip([1])
    e = enumerate([1])
    return x * isinstance(m, map) + isinstance(z, (list, zip)) + isinstance(e, map), isinstance(
        iter([1]), collections.abc.Iterator
    )


@same
def consumed_by_functions(x):
    def rest(function, *args):
        it = iter([3, 1, 2])
        return function(it, *args), len(list(it))

    n = [rest(f) for f in (list, tuple, sorted, set, sum, max, min, collections.Counter)]
    last = next(iter(n[0][0]))
    return x * last, n[0][1] + n[4][1] + n[7][1], n[2][0], rest(any), rest(all)


@refused("depends on data")
def end_depends_on_data(x):
    it = iter([1, 2, 3])
    if x.sum() > 0:
        next(it)
    for v in it:  # here
        x = x + v
    return x


# ---- diagnostics ---------------------------------------------------------------------------------

LOG = logging.getLogger("cfx.tests.changes")


@same
def says_what_it_does(x):
    if x.sum() > 0:
        LOG.info("positive %s", [1, 2])
        warnings.warn("positive")
        print("positive")
        x = x * 2
    return x


# ---- running them --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fn", SAME, ids=operator.attrgetter("__name__"))
def test_equal_to_eager(fn):
    module = cfx.script(fn)
    for _ in range(3):
        for x in INPUTS:
            assert is_same(module(x.clone()), fn(x.clone()))


@pytest.mark.parametrize("fn, words", REFUSED, ids=lambda p: getattr(p, "__name__", ""))
def test_refused_with_its_line(fn, words):
    state = copy.deepcopy((QUEUE, TABLE, BYTES, DEFAULTS, HEAP, SPACE))
    with pytest.raises(cfx.ScriptError) as error:
        cfx.script(fn)
    message = str(error.value)
    assert "# here" in message
    for word in words:
        assert word in message
    for now, before in zip((QUEUE, TABLE, BYTES, DEFAULTS, HEAP, SPACE), state):
        assert np.array_equal(now, before) if now is TABLE else now == before


# ---- the same without Python ---------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CFX_BUILD", ROOT / "build"))
HEADER = "import collections\nimport functools\nimport itertools\nimport operator\nimport torch\n"
MISSING = re.compile(
    r"\b(np|array|heapq|bisect|types|re|logging|warnings|LOG|Counter|deque|random|io|ChainMap)\b"
    r"|\b(abc|fractions)\b"
)


def in_c(fn, folder):
    """What `cfx script` makes of the function: its graph, or a message."""
    lines = inspect.getsource(fn).splitlines(keepends=True)
    text = "".join(lines[next(i for i, line in enumerate(lines) if line.startswith("def ")):])
    (folder / "case.py").write_text(HEADER + OUTSIDE + inspect.getsource(Countdown) + text)
    done = subprocess.run(
        [str(BUILD / "cfx"), "script", "--keep-modules", "--function", fn.__name__,
         str(folder / "case.py")], capture_output=True, text=True, timeout=300,
        env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})  # fmt: skip
    return cfx.parse(done.stdout) if done.returncode == 0 else None, done.stderr


OUTSIDE = "HEAP = [1, 2]\nCOUNTER = itertools.count()\nITERATOR = iter([1, 2, 3])\n"
UNKNOWN = {  # what they need is missing in that world
    "bytes_changed_and_put_back", "unbound_setitem", "itemgetter_only_reads", "ordered",
    "made_by_new",
}  # fmt: skip


def known_in_c(fn):
    return not MISSING.search(inspect.getsource(fn)) and fn.__name__ not in UNKNOWN


@pytest.mark.parametrize("fn", list(filter(known_in_c, SAME)), ids=operator.attrgetter("__name__"))
def test_equal_to_eager_in_c(fn, tmp_path):
    graph, message = in_c(fn, tmp_path)
    assert graph, message
    module = cfx.GraphModule(torch.nn.Module(), graph)
    for x in INPUTS:
        assert is_same(module(x.clone()), fn(x.clone()))


@pytest.mark.parametrize(
    "fn", [outside_heap_method, outside_counter, outside_iterator, outside_iterator_summed,
           outside_operator, end_depends_on_data, defaultdict_read_one_way],
    ids=operator.attrgetter("__name__"))  # fmt: skip
def test_refused_in_c(fn, tmp_path):
    graph, message = in_c(fn, tmp_path)
    assert not graph
    assert "# here" in message
