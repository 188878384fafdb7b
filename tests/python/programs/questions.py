"""What is asked lazily: `in`, any, all, next, and values that a condition itself assigns."""
from . import program, randn
import torch


@program(randn(1), randn(3), randn(2, 2), tags="in sizes")
def in_containers_of_sizes(x):
    n = x.shape[0]
    found = (1 in [n], n in (2, 3), 3 not in (n, 7), len(x) in range(0, 3), n in {1: "a", 2: "b"},
             n in [y * 2 for y in (0, 1)], (n, 1) in [(3, 1), (2, 2)], [n] == [3])
    while n not in (0, 1):
        n = n - 1
        x = x * 2
    if 2 in (len(x), x.dim()):
        x = x + 1
    return x, found


@program(randn(1), randn(3), tags="index count sizes", no_row="index() and count() of a list")
def searches_among_sizes(x):
    n = x.shape[0]
    return x * [n, 3].index(3), (n, 3).count(n), (1, 2, 3).index(n)


@program(randn(1), randn(3), tags="in set", refused="or use a tuple with `in`")
def in_a_set_of_sizes(x):
    return x if 3 in {x.shape[0], 7} else -x


@program(randn(1), randn(3), tags="in range", refused="for `i in range(n)` write 0 <= i < n")
def in_a_range_of_a_size(x):
    return x if 2 in range(x.shape[0]) else -x


@program(randn(5), randn(3) - 4, -randn(3).abs(), tags="any all lazy effects")
def stops_at_the_first(x):
    seen = []

    def note(v):
        seen.append(1)
        return v > 0

    some = any(note(v) for v in (x.sum(), x.max(), x.min()))
    every = all(note(v) for v in (x.max(), x.sum()))
    static = any(note(v) for v in (0, 1, 2, 3))
    return some, every, static, len(seen)


@program(torch.tensor([0.0, 2.0, 1.0]), torch.tensor([1.0, 2.0, 0.0]), torch.tensor([4.0]),
         tags="all lazy raises", raises=[(torch.tensor([2.0, 0.0]), ZeroDivisionError)])
def raises_unless_it_stopped(x):
    return all(1 / x[i].item() < 1 for i in range(x.shape[0]) if i == 0 or x[0] != 0) \
        if x[0] != 0 else any(v > 0 for v in x)


@program(randn(3, 4), -randn(2, 2).abs(), torch.zeros(2, 2), tags="any all nested")
def nested_questions(x):
    limit = 0.5
    some = any(v > limit for row in x for v in row if v != 0)
    each = all(any(v > 0 for v in row) for row in x)
    known = all(x.sum(i).min() > 0 for i in range(2))
    return some, each, known


@program(randn(5), randn(3) - 4, -randn(3).abs(), tags="next generator")
def first_of(x):
    at = next((i for i, v in enumerate(x) if v > 0), -1)
    value = next((v for v in x if v < 0), x.sum())
    return at, value, next((n for n in (3, 4) if n > 3), 0)


@program(randn(5), randn(3) - 4, -randn(3).abs(), tags="any walrus")
def remembers_the_hit(x):
    hit = x.new_zeros(())
    if any((hit := v) > 0 for v in x):
        return hit, 1
    return hit, 0


@program((randn(2), randn(2)), (-randn(2).abs(), randn(2)), (randn(2), torch.zeros(2)),
         tags="walrus and")
def assigned_by_the_second_operand(x, y):
    if x.sum() > 0 and (total := y.sum()) > 0:
        return x * total
    return y


@program((randn(2), randn(2)), (-randn(2).abs(), randn(2)), (randn(2), torch.zeros(2)),
         tags="walrus or return")
def assigned_unless_it_returned(x, y):
    if x.sum() < 0 or (total := y.sum()) <= 0:
        return x - 1
    return y * total


@program((randn(2), randn(2)), (-randn(2).abs(), randn(2)), (randn(2), torch.zeros(2)),
         (-randn(2).abs(), -randn(2).abs()), tags="walrus and elif not")
def assigned_in_a_chain(x, y):
    if x.sum() > 0 and (m := y.sum()) > 0:
        z = x * m
    elif x.sum() <= 0 and (k := y.max()) > 0:
        z = y * k
    else:
        z = x
    if not (z.sum() > 0 and (top := z.max()) > 0.5):
        z = z - 1
    else:
        z = z * top
    return z


@program((randn(2), 3), (-randn(2).abs(), 0), (randn(2), 1), tags="walrus number")
def assigned_from_a_number(x, n: int):
    if n > 0 and (half := n // 2) and x.sum() > 0:
        x = x * half
    return x


@program({"a": randn(2), "b": randn(2)}, {"z": randn(3)}, {}, tags="dict input keys")
def goes_over_keys(d):
    total = 0
    for k in d:
        total = total + d[k].sum()
    return total, [d[k] * 2 for k in d], len(d), sorted(d)


@program([2, 0, 1], torch.tensor([1, 0]), tags="permutation not-keys")
def goes_over_indices(p):
    out = []
    for i in p:
        out.append(p[i])
    return out


@program((randn(3), 2), (randn(4), 7), tags="percent", no_row="'%' of a text")
def number_in_a_text(x, n: int):
    scales = {"k2": 1, "k7": 5}
    return x * scales["k%d" % n], "%05.2f|%s" % (n / 3, x.shape[0]), f"{n=}", str(n / 4)
