"""Dicts whose keys data choose, and all that may hold such a dict, or a list of data length."""
import collections
import copy
import dataclasses
import functools
import types

import torch

from . import equal, refused

KEYS = torch.tensor([1.0, 3.0, 1.0, 2.0])
LESS = torch.tensor([-1.0, 1.0, -1.0, -3.0])
NONE = torch.zeros(0)
ALL = (KEYS, LESS, NONE)


def numbered(x):
    d = {}
    for i in range(len(x)):
        d[int(x[i])] = i
    return d


def listed(x):
    out = []
    for i in range(len(x)):
        out.append(i)
    return out


# ---- counting and grouping ----------------------------------------------------------------------

@equal(*ALL)
def counted(x):
    counts = {}
    same = counts
    for i in range(len(x)):
        k = int(x[i])
        if k in counts:
            counts[k] += 1
        else:
            counts[k] = 1
    return counts, same, list(counts), sorted(counts.items()), len(counts), counts is same


@equal(*ALL)
def counted_by_get(x):
    counts, total, most = {}, 0, 0
    for i in range(len(x)):
        counts[int(x[i])] = counts.get(int(x[i]), 0) + 1
    for k, n in counts.items():
        total = total + k * n
    for k in counts:
        if counts[k] > most:
            most = counts[k]
    return total, most, [k for k in counts if counts[k] > 1], counts.get(9), counts.get(9, 8)


@equal(*ALL)
def grouped(x):
    groups, again = {}, {}
    for i in range(len(x)):
        k = int(x[i])
        if k not in groups:
            groups[k] = []
        groups[k].append(i)
        again.setdefault(k, []).append(i)
    return groups, again


@equal(*ALL)
def summed(x):
    sums = {}
    for i in range(len(x)):
        k = int(x[i]) % 2
        sums[k] = sums[k] + x[i] if k in sums else x[i] * 2
    return sums


@equal(*ALL)
def most_common(x):
    counts = {}
    for i in range(len(x)):
        counts[int(x[i])] = counts.get(int(x[i]), 0) + 1
    return max(counts, key=counts.get), sorted(counts, key=lambda k: (-counts[k], k))


@equal(*ALL)
def totals(x):
    d = numbered(x)
    return sum(d.values()), sorted(d), list(d.items()), [v for v in d.values()], len(d.keys())


@equal((KEYS, ["a", "b", "a"]), (LESS, []))
def words_numbered(x, words: list):
    numbers = {}
    for w in words:
        if w not in numbers:
            numbers[w] = len(numbers)
    return [numbers[w] for w in words], numbers


@equal((KEYS, "a"), (LESS, "b"), (KEYS, ""))
def texts_as_keys(x, s: str):
    d = {"a": x}
    d[s] = x + 1
    d[s + "x"] = x + 2
    d["a"] = d["a"] * 2
    return d, "ax" in d, d.get("zz")


class Memo:
    def __init__(self):
        self.seen = {}

    def get(self, k, x):
        if k in self.seen:
            return self.seen[k]
        self.seen[k] = x * k
        return self.seen[k]


@equal(*ALL)
def memo(x):
    m, total = Memo(), 0
    for i in range(len(x)):
        total = total + m.get(int(x[i]), x)
    return total, len(m.seen)


# ---- which key it is ----------------------------------------------------------------------------

@equal((KEYS, True), (LESS, True), (KEYS, False), (torch.tensor([0.5]), False))
def numbers_that_are_equal(x, b: bool):
    d = {1: "int"}
    d[b] = "bool"
    d[float(x[0])] = "float"
    return d, list(d), d[1]


@equal(*ALL)
def pairs_as_keys(x):
    d = {}
    for i in range(len(x)):
        for j in range(2):
            d[(int(x[i]), j)] = i + j
    return d, (1, 0) in d, (1.0, False) in d


@equal((KEYS, 1), (LESS, 4))
def missing_key(x, k: int):
    d = {}
    d[k] = x
    return d[1]


@equal((KEYS, 1), (KEYS, 9))
def deletes_a_key(x, k: int):
    d = {1: x, 2: x * 2}
    e = d
    del d[k]
    return d, e


@equal((KEYS, "a"), (KEYS, "it's"))
def missing_text(x, k: str):
    return {"a": x, "b": x * 2}.pop(k)


@equal((KEYS, 1), (KEYS, 9))
def pops(x, k: int):
    d = {1: x, 2: x * 2}
    a = d.pop(k, None)
    b = d.pop(k, 5)
    return a, b, d, d.pop(2), d


@equal(*ALL)
def pops_the_last(x):
    d = numbered(x)
    return d.popitem(), d


@equal((KEYS, [1]), (KEYS, 3))
def keys_that_cannot_be_hashed(x, k):
    d = {}
    d[k] = x
    return d


# ---- names for one dict -------------------------------------------------------------------------

@equal((KEYS, 1), (LESS, 4))
def two_names(x, k: int):
    d = {}
    e = d
    d[k] = 1
    e[k + 1] = 2
    f = d.copy()
    f[0] = 9
    g = dict(e)
    g.update({k: 7})
    return d is e, d is f, d, e, f, g, d == e, d == f


@equal(*ALL)
def dict_in_a_dict(x):
    d = {}
    outer = {"in": d, "list": [d]}
    for i in range(len(x)):
        d[int(x[i])] = i
    outer["in"][7] = 9
    outer["list"][0][8] = 9
    return outer, d


@equal(*ALL)
def changed_by_a_function(x):
    def add(table, k):
        table[k] = table.get(k, 0) + 1

    d = {}
    for i in range(len(x)):
        add(d, int(x[i]))
    return d


@equal((KEYS, 1), (LESS, 4))
def union(x, k: int):
    d, e = {1: 2}, {k: 3}
    d |= e
    f = d | {9: 9}
    g = {9: 8} | d
    d |= {4: 4}
    e.update(a=1, b=x)
    return d, e, f, g, {**e, "c": 2}


@equal((KEYS, 1), (LESS, 4))
def display_and_comprehension(x, k: int):
    d = {k: x, 2: x * 2, k: x * 3}
    return d, {i: int(x[i]) for i in range(len(x))}, {int(v): 1 for v in x if v > 0}


@equal((KEYS, 1), (LESS, 4))
def of_pairs_and_names(x, k: int):
    d = {}
    d.update([(k, 1), (2, 3)])
    d.update({k: 2}, a=3)
    return d, dict([(k, 1), (k, 2), (3, x)]), dict(a=k), dict({k: 1}, b=2), dict(((k, [1]),))


@equal((KEYS, 1), (LESS, 4))
def unpacked(x, k: int):
    first, *rest = {k: 1, 5: 2}
    only, = {k: 3}
    return first, rest, only, [*{k: 1, 6: 2}]


@equal(*ALL)
def swapped_in_a_loop(x):
    a, b = {}, {0: 5}
    for i in range(len(x)):
        a[int(x[i])] = i
        a, b = b, a
    return a, b


@equal((KEYS, 1), (LESS, 4))
def new_one_of_a_branch(x, k: int):
    d = {k: 1} if x.sum() > 0 else {}
    d[k + 1] = 2
    e = {"a": 1} if x.sum() > 0 else {"b": 2, "c": 3}
    e["d"] = 4
    return d, e


@equal(*ALL)
def worklist(x):
    d = numbered(x)
    total, order = 0, []
    while d:
        k, v = d.popitem()
        total = total + v
        order.append(k)
    return total, order, d


@equal((KEYS, 1), (LESS, 0), (KEYS, 0))
def list_in_a_known_dict(x, k: int):
    d = {0: []}
    d[k] = [k]
    d[0].append(1)
    return d


@refused((KEYS, 1), (LESS, 4))
def either_of_two_dicts(x, k: int):
    a, b = {k: 1}, {5: 2}
    c = a if x.sum() > 0 else b
    c[k] = 9  # refuse
    return a, b, c


@refused((KEYS, 1), (LESS, 4))
def list_in_a_dict_and_outside(x, k: int):
    row = [1]
    d = {}
    d[k] = row
    row.append(2)  # refuse
    return d


@refused((KEYS, 1), (LESS, 4))
def dict_in_a_dict_and_outside(x, k: int):
    inner, outer = {k: 1}, {}
    outer[k] = inner
    inner[2] = 3  # refuse
    return outer


@equal(*ALL)
def key_in_one_branch(x):
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x * 2
    elif len(x) == 0:
        del d["a"]
    return d, "b" in d, len(d), list(d), (1 if d else 2), not d


@equal((KEYS, 1), (LESS, 4))
def cleared(x, k: int):
    d = {}
    d[k] = 1
    n = len(d)
    d.clear()
    d["z"] = n
    return d


@equal(*ALL)
def text_of_it(x):
    d = {}
    for i in range(len(x)):
        d[int(x[i])] = (i, "a")
    return str(d), f"{d}", repr([d])


# ---- loops over one that changes ----------------------------------------------------------------

@equal(*ALL)
def adds_while_it_goes(x):
    d = numbered(x)
    for k in d:
        d[k + 1] = 0
    return d


@equal(*ALL)
def adds_and_leaves(x):
    d = numbered(x)
    for k in d.keys():
        if k > 1:
            d[k + 10] = 0
            break
    return d


@equal(*ALL)
def adds_at_the_end(x):
    d = numbered(x)
    n = 0
    for k in d:
        n += 1
        if n == len(d):
            d[100] = 0
    return d


@equal(*ALL)
def sets_while_it_goes(x):
    d = numbered(x)
    for k, v in d.items():
        d[k] = v + 1
    for k in d:
        d[k] = d[k] * 2
    for v in d.values():
        if 1 in d:
            d[1] = d[1] + v
    return d


@equal(*ALL)
def deletes_from_a_copy(x):
    d = numbered(x)
    for k in list(d):
        if k > 1:
            del d[k]
    return d


@refused(*ALL)
def deletes_while_it_goes(x):
    d = numbered(x)
    for k in d:
        if k > 1:
            del d[k]  # refuse
    return d


@equal(*ALL)
def known_one_gets_a_key(x):
    d = {1: 0, 2: 0}
    for k in list(d):
        d[int(x.sum())] = k
    return d


@refused(*ALL)
def known_one_that_a_loop_goes_over(x):
    d = {1: 0, 2: 0}
    for k in d:
        d[int(x.sum())] = k  # refuse
    return d


@equal((KEYS, 1), (KEYS, 2))
def iterator_of_a_known_one(x, k: int):
    d = {1: x}
    it = iter(d)
    if k > 1:
        d[2] = x
        return next(it)
    return next(it)


@equal((KEYS, 1), (KEYS, 2))
def iterator_of_one_that_grows(x, k: int):
    d = {1: x, 3: x}
    it = iter(d.items())
    first = next(it)
    d[k] = x * 2
    return first, next(it)


# ---- who else may hold it -----------------------------------------------------------------------

@equal(*ALL)
def views(x):
    d = {}
    ks, vs, its = d.keys(), d.values(), d.items()
    for i in range(len(x)):
        d[int(x[i])] = i
    n = len(ks)
    d[100] = 3
    return n, len(ks), list(ks), list(vs), sorted(its), 100 in ks, 3 in vs, (100, 3) in its


@equal(*ALL)
def views_of_one_that_grew(x):
    d = numbered(x)
    ks, vs = d.keys(), d.values()
    d[50] = 6
    return [k for k in ks], sum(vs), list(reversed(list(ks)))


@equal(*ALL)
def methods_of_it(x):
    d = {}
    get, has, put = d.get, d.__contains__, d.setdefault
    for i in range(len(x)):
        d[int(x[i])] = i
        put(9, 4)
    return get(9), get(1), [get(k, -1) for k in range(4)], len(d)


@refused(*ALL)
def chain_map(x):
    d = {}
    both = collections.ChainMap({"a": 1}, d)
    for i in range(len(x)):
        d[int(x[i])] = i
    return both[1]  # refuse


@refused(*ALL)
def proxy_of_a_dict(x):
    d = {}
    shown = types.MappingProxyType(d)
    for i in range(len(x)):
        d[int(x[i])] = i
    return len(shown)  # refuse


@refused(*ALL)
def counter(x):
    counts = collections.Counter()
    for i in range(len(x)):
        counts[int(x[i])] += 1  # refuse
    return counts


@refused((KEYS, 1), (KEYS, 2))
def default_dict(x, k: int):
    d = collections.defaultdict(int)
    d[k] = 1  # refuse
    return d


@refused((KEYS, 1), (KEYS, 2))
def ordered_dict(x, k: int):
    d = collections.OrderedDict()
    d[k] = 1  # refuse
    return d


@refused((KEYS, 1), (KEYS, 2))
def set_by_data(x, k: int):
    return len({1, k})  # refuse


def watches(items):
    yield len(items)
    yield len(items)


@refused(*ALL)
def generator_that_holds_it(x):
    out = []
    sizes = watches(out)
    first = next(sizes)
    for i in range(len(x)):
        out.append(i)
    return first, next(sizes)  # refuse


@equal(*ALL)
def partial_function_that_holds_it(x):
    d, out = {}, listed(x)
    size, more = functools.partial(len, d), functools.partial(len, out)
    for i in range(len(x)):
        d[int(x[i])] = i
    out.append(5)
    return size(), more()


@refused(*ALL)
def text_of_what_holds_it(x):
    out = []
    space = types.SimpleNamespace(a=out)
    for i in range(len(x)):
        out.append(i)
    return str(space)  # refuse


@refused(*ALL)
def deep_copy_of_what_holds_it(x):
    m = Memo()
    for i in range(len(x)):
        m.seen[int(x[i])] = i
    return len(copy.deepcopy(m).seen)  # refuse


@equal(*ALL)
def copy_of_what_holds_it(x):
    m = Memo()
    for i in range(len(x)):
        m.seen[int(x[i])] = i
    n = copy.copy(m)
    n.seen[77] = 1
    return m.seen


@dataclasses.dataclass
class Holds:
    items: list
    table: dict


Pair = collections.namedtuple("Pair", "items table")


@equal(*ALL)
def objects_that_hold_it(x):
    out, d = listed(x), numbered(x)
    a, b = Holds(out, d), Pair(out, table=d)
    out.append(9)
    d[9] = out[0]
    return a.items, a.table, b.items, b.table


# ---- lists of data length, likewise -------------------------------------------------------------

@equal(*ALL)
def list_put_into_containers(x):
    out = listed(x)
    rows, table, queue = [], {}, collections.deque([out])
    rows.append(out)
    rows.insert(0, out)
    table.setdefault("a", out)
    table.update(b=out)
    queue.append(out)
    out.append(9)
    return rows, table, queue[0], queue[1], list((out, 1)), tuple([out])


@refused(*ALL)
def row_of_two_lengths(x):
    row = [1]
    rows = [row] if x.sum() > 0 else [row, row]
    row.append(2)  # refuse
    return rows


@refused(*ALL)
def row_of_two_lengths_changed_inside(x):
    row = [1]
    rows = [row] if x.sum() > 0 else [row, row]
    rows[0].append(2)  # refuse
    return rows, row


@equal(*ALL)
def lists_compared_in_lists(x):
    out = listed(x)
    return [out] == [[0, 1, 2, 3]], [0] in [out, [0]], (out, 1) != ([], 1)


@equal(*ALL)
def rows_changed_in_an_unrolled_loop(x):
    out = listed(x)
    rows = [out, [1]]
    for i, row in enumerate(rows):
        row.append(i)
    for row, k in zip(rows, [5, 6]):
        row.append(k)
    return out, rows


@equal(*ALL)
def list_read_while_it_changes(x):
    out = listed(x)
    for i, v in enumerate(out):
        if i + 1 < len(out):
            out[i + 1] = v + out[i + 1]
    return out


@refused(*ALL)
def list_that_grows_under_its_loop(x):
    out = listed(x)
    for v in out:
        if v == 1:
            out.append(7)  # refuse
    return out


@equal(*ALL)
def methods_of_a_list(x):
    out = listed(x)
    add, count = out.append, out.count
    add(9)
    out.append(9)
    return count(9), out
