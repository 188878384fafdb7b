"""Python's corners: scopes, signs, unpacking, exceptions, as they meet with data."""
import itertools
import math
from typing import Optional

import torch

from . import program, randn


@program(randn(5), (-randn(4).abs() * 10,), tags="try except else finally static")
def try_static(x):
    out = []
    for name in ("sin", "nope", "cos"):
        try:
            out.append(getattr(torch, name)(x))
        except AttributeError as e:
            out.append(x * 0)
        else:
            if x.sum() > 0:
                out[-1] = out[-1] + 1
        finally:
            x = x + 1
    try:
        {}["k"]
    except (KeyError, IndexError) as e:
        n = len(e.args)
    try:
        try:
            int("x")
        finally:
            n += 10
    except ValueError:
        n += 100
    return torch.stack(out), n


@program(randn(3), -randn(2).abs(), tags="comprehension late-binding")
def comprehension_scope(x):
    i = 10
    fs = [lambda v: v + i for i in range(3)]
    gs = [lambda v, i=i: v + i for i in range(3)]
    total = sum(f(x) for f in fs) + sum(g(x) for g in gs)
    sq = {i: i * i for i in range(4) if i % 2}
    if x.sum() > 0:
        i += 1
    pairs = [(a, b) for a in range(3) for b in range(a)]
    return total + i, sq, pairs, {len(w) for w in ("a", "bb", "cc")} == {1, 2}


@program(randn(4), -randn(4).abs(), tags="starred nested")
def star_unpack(x):
    a, *b, c = x.unbind()
    (d, (e, *f)), g = (1, (2, 3, 4)), 5
    *h, = range(3)
    first, *_ = [x.sum(), 1, 2]
    if first > 0:
        a, c = c, a
    return a, b, c, d, e, f, g, h, [*b, *f], {**{"k": 1}, "j": a}


@program((randn(3), None), (randn(3), torch.ones(3)), (-randn(3).abs(), None), tags="none and or")
def optional_chain(x, mask: Optional[torch.Tensor] = None):
    m = mask if mask is not None else torch.ones_like(x)
    y = x * m
    if mask is None and x.sum() > 0:
        y = y + 1
    z = (mask is not None and mask.sum() > 2) or x.sum() > 0
    return y, z


@program((randn(3), 3), (-randn(3).abs(), 1), tags="str methods static")
def string_building(x, n: int):
    s = ""
    for i in range(3):
        s += str(i)
        if i % 2:
            s += ","
    parts = s.split(",")
    return (x * len(parts), s, s.upper().replace("0", "z"), "-".join(p.strip() for p in parts),
            s[::-1], s[1:3], "%s|%5.2f" % (s, 3.14159), f"{s!r:>10}", s.find("2"), "a" < "b",
            ord("a"), chr(98))


@program((randn(7), 3, 2), (randn(4), 4, 1), (randn(3), 5, 1), tags="windows step")
def sliding(x, size: int, stride: int):
    means = [x[i:i + size].mean() for i in range(0, len(x) - size + 1, stride)]
    if not means:
        return x.new_empty(0)
    return torch.stack(means)


@program((7, -2), (-7, 2), (-7, -2), (6, 3), tags="floor modulo negative",
         raises=[((1, 0), ZeroDivisionError)])
def py_division(n: int, m: int):
    return (n // m, n % m, divmod(n, m), -n // m, round(n / m), n / m, n % -m, (n + 0.5) // m,
            (n + 0.5) % m, -n % m, abs(n) % m, ~n, n >> 1, n & 3, n | m, n ^ m)


@program(randn(4), torch.tensor([float("nan"), 1.0]), torch.tensor([float("inf"), -1.0]),
         tags="nan inf min max")
def nan_ways(x):
    s = x.sum()
    a = 1 if s > 0 else 2
    b = 1 if not s <= 0 else 2
    c = 1 if s == s else 2
    m = max(x[0], x[1])
    k = min(x[1].item(), x[0].item())
    return a, b, c, m, k


@program(randn(4), -randn(3).abs(), tags="chained effects")
def chained_effects(x):
    calls = []
    def f(v):
        calls.append(v)
        return v
    if f(0) < f(x.sum()) < f(100) < f(x.numel() * 1000):
        return len(calls), x
    return len(calls), -x


@program((randn(3), randn(3)), (randn(2), randn(2)), tags="is alias")
def is_identity(x, y):
    z = x
    w = x + 0
    a = z is x
    b = w is x
    c = x is not y
    l = [x]
    d = l[0] is x
    e = (x if x.sum() > 0 else y) is x
    return a, b, c, d, e


@program((randn(4),3), (-randn(3).abs(),0), (randn(2), 6), tags="memo recursion closure")
def fib_memo(x, n: int):
    memo = {0: 0, 1: 1}
    def fib(k):
        if k not in memo:
            memo[k] = fib(k - 1) + fib(k - 2)
        return memo[k]
    return x * fib(10)


@program((randn(5), True), (-randn(4).abs(), False), tags="bool numbers")
def bool_arith(x, flag: bool):
    n = flag + 2
    m = (x.sum() > 0) + 1
    k = True + (x > 0).sum().item()
    return n, m, k, x * flag, flag and x.sum() > 0, not flag, flag == 1, int(flag), -flag, x[flag:]


@program((randn(5), 7), (-randn(4).abs(), -7), tags="round trunc ceil")
def rounding(x, n: int):
    f = n / 3
    return (round(f), round(f, 1), int(f), math.trunc(f), math.ceil(f), math.floor(f), f // 1,
            f % 1, abs(f), min(f, 1), max(n, f), round(2.5), round(-0.5), round(n, -1),
            math.fmod(n, 4), n % 4, math.isclose(f, 2.333333, rel_tol=1e-4), x)


@program((randn(3), 1.5), (randn(3), None), (-randn(3).abs(), None), tags="none best")
def maybe_none(x, scale: Optional[float] = None):
    scale = scale or 2.0
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best * scale


@program(randn(3), torch.zeros(3), tags="raise finally nested",
         raises=[(torch.full((3,), 9.0), ValueError), (-torch.ones(3), RuntimeError)])
def raises_inside(x):
    def check(v):
        if v > 20:
            raise ValueError(f"too large: {v.item()}")
        return v
    try:
        s = check(x.sum())
    finally:
        x = x + 1
    if s < 0:
        raise RuntimeError("negative")
    return x, s


@program((randn(3), 3), (randn(3), 0), tags="closure rebinding loop")
def closure_rebinding(x, n: int):
    fs = []
    k = 1
    def f(v):
        return v * k
    a = f(x)
    k = 5
    b = f(x)
    for i in range(n):
        k += i
        b = f(b)
    if x.sum() > 0:
        k = 7
    return a, b, f(x)


@program(randn(3), -randn(3).abs(), tags="operators super reflected")
def inherit(x):
    class A:
        k = 2
        def f(self, v):
            return v * self.k

        def __add__(self, o):
            return self.f(o)

        def __matmul__(self, o):
            return o - 1

        def __radd__(self, o):
            return o + 100

        def __neg__(self):
            return B()

    class B(A):
        k = 3
        def f(self, v):
            y = super().f(v)
            return y if y.sum() > 0 else -y
    a, b = A(), B()
    return (a + x, b + x, a @ x, (-a) + x, isinstance(b, A), issubclass(B, A), 1 + a,
            type(b).__name__)


@program((randn(6), 2), (randn(5), 3), tags="iter next itertools")
def iter_protocol(x, n: int):
    it = iter([x[0], x[1], x[2]])
    a = next(it)
    rest = list(it)
    pairs = list(zip(range(3), itertools.count(5)))
    chunks = [c.sum() for c in x.split(n)]
    ch = list(itertools.chain([1], (2, 3)))
    letters = list(itertools.islice(itertools.cycle("ab"), 3))
    return a, rest, pairs, chunks, ch, letters, dict(enumerate("xy"))


@program(randn(3), -randn(3).abs(), tags="finally return in-for")
def try_return(x):
    for i in range(3):
        try:
            if x.sum() > i:
                return x * i
            x = x + 1
        finally:
            x = x * 2
    return x


@program(torch.tensor([0.1, 0.2, 2.0]), randn(3), -randn(3).abs(),
         tags="break continue else nested")
def nested_break(x):
    out = []
    for i in range(3):
        for j in range(3):
            if j > i:
                break
            if x[j] > 0.5:
                continue
            out.append(x[j] * i)
        else:
            out.append(x.sum())
            continue
        if x.sum() > 2:
            break
    return out


@program((randn(3), 5), (-randn(3).abs(), 2), tags="walrus while")
def walrus_loop(x, n: int):
    total = 0
    i = 0
    while (i := i + 1) < n:
        if (y := x * i).sum() > 1:
            total += i
        x = y
    return total, x, i


@program((randn(3), 2), (-randn(3).abs(), 0), (torch.zeros(3), 1), tags="chained and or tuples")
def compare_mixed(x, n: int):
    a = 0 < n <= 2 != 3
    b = x.sum() > n > -1
    c = (n, 1) < (2, 0)
    d = [n] + [1] == [2, 1]
    e = n == 2.0
    f = not n
    g = n and x.sum() or 5
    h = (x.sum() > 0) == True
    return a, b, c, d, e, f, g, h, n is not None, "a" if n else "b"


@program(randn(4), -randn(4), torch.tensor([2.0, 1.0, 2.0]), tags="sorted reverse unknown-length")
def sorts_what_it_made(x):
    return (sorted([v.item() for v in x], reverse=True), sorted(x.tolist()),
            sorted(x, reverse=True), sorted([x[0].item(), 1.0, x[1].item()], reverse=True))


@program((randn(4), "a-b"), (-randn(4), "c"), tags="str methods data",
         no_row="split and find of a text")
def methods_of_a_text(x, name: str):
    parts = name.split("-")
    both = parts if len(parts) > 1 else []
    up = name.upper() if name.startswith("a") else "z"
    return both, isinstance(parts, list), up, name.find("b"), x


@program((randn(4), "a-b"), (-randn(4), "c"), tags="split text-or-tensor", no_row="split of a text")
def splits_anything(x, name):
    parts = name.split("-")
    return isinstance(parts, list), parts, x.split(2)[0] if x.sum() > 0 else x[:2]
