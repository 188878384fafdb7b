"""Small functions of a tensor, in which what is known and what is not meet.
test_script_static.py captures each and compares it with Python on every input of INPUTS."""
# ruff: noqa
import contextlib

import torch

INPUTS = [torch.tensor(v) for v in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.0, 0.0, 0.0],
                                    [5.0, -1.0, 0.5])]


# ---- and, or, not, comparisons
def and_tensor(x): return (x.sum() > 0 and x.max()) * 1
def or_tensor(x): return (x.sum() > 0) or x.min()
def and_numbers(x):
    n = int(x.sum())
    return n and n + 1, n or 7
def and_in_if(x):
    if x.sum() > 0 and x[0] > 2: return x * 2
    return x
def or_in_if(x):
    if x.sum() > 0 or x[0] < -5: return x * 2
    return x
def not_in_if(x):
    if not x.sum() > 0: return -x
    return x
def and_skips(x):
    n = int(x.sum())
    if n != 0 and 10 // n > 1: return 1
    return 0
def chain_known_first(x):
    return 1 < 2 < float(x.sum()), 2 < 1 < float(x.sum())
def chain_graph(x):
    n = float(x.sum())
    if 0 < n < 5: return 1
    if -10 <= n <= 0: return 2
    return 3
def chain_once(x):
    log = []
    def v(k):
        log.append(k)
        return k
    r = 0 < v(float(x.sum())) < 10
    return r, len(log)
def choose(x): return x + 1 if x.sum() > 0 else x - 1
def choose_nested(x):
    n = float(x.sum())
    return "pos" if n > 0 else "zero" if n == 0 else "neg"
def known_beside(x): return (x.sum() > 0 and 3 > 4), (3 > 4 and x.sum() > 0), (1 or x.sum() > 0)
def is_none(x): return (x is None, x is not None, x.sum() is None, int(x[0]) is not None)
def compare_none(x):
    y = None
    if y is None: y = x
    return y * 2
def in_list(x):
    n = int(x.sum())
    return n in [0, 6], n not in (0, 6)


# ---- names and containers on both ways
def walrus_both(x):
    if (s := x.sum()) > 0: y = s * 2
    else: y = s - 1
    return y, s
def closure_in_branch(x):
    n = 0
    def bump(by):
        nonlocal n
        n = n + by
    if x.sum() > 0: bump(1)
    else: bump(10)
    return n
def attribute_in_branch(x):
    class Box: pass
    b = Box()
    b.v = x
    if x.sum() > 0: b.v = b.v * 2
    return b.v
def dict_in_branch(x):
    d = {"a": x, "n": 1}
    if x.sum() > 0:
        d["a"] = x * 2
        d["n"] = 2
    else: d["n"] += 5
    return d["a"], d["n"]
def list_in_branch(x):
    l = [x, x]
    if x.sum() > 0: l[0] = x + 1
    else: l[1] = x - 1
    return l[0] + l[1]
def list_append_both(x):
    l = []
    if x.sum() > 0: l.append(x)
    else: l.append(-x)
    return l[0]
def taken_method(x):
    out = [x]
    push = out.append
    if x.sum() > 0: push(x * 2)
    else: push(x - 1)
    return out[1], len(out)
def taken_method_in_loop(x):
    out = []
    push = out.append
    for row in x: push(row * 2)
    return torch.stack(out)
def method_in_branch(x):
    class A:
        def __init__(self): self.n = 0
        def bump(self, by):
            self.n += by
            return self
    a = A()
    if x.sum() > 0: a.bump(2).bump(3)
    else: a.bump(7)
    return a.n
def unpack_in_branch(x):
    if x.sum() > 0: a, b = x, x * 2
    else: a, b = x * 3, x
    return a + b
def unpack_tensor(x):
    a, b, c = x
    return a + b * c
def unpack_star(x):
    a, *b, c = x
    *d, e = x.shape
    return a, b, c, d, e
def star_displays(x): return [1, *x], (*x.shape, 2), [*x, *x], (0, *x.shape, *(1, 2))
def star_sizes(x):
    y = x.reshape(*x.shape, 1).expand(*x.shape, 2)
    return y, torch.zeros(2, *x.shape)
def sorted_data(x): return sorted([x.sum(), x.max()]), sorted([int(x[0]), int(x[2])], reverse=True)
def unpack_shape(x):
    n, = x.shape
    return n + 1
def augmented(x):
    n = int(x.sum())
    n += 1
    n *= 2
    y = x.clone()
    y += 1
    y[0] += 5
    y[1:] *= 2
    return n, y
def swap_by_data(x):
    a, b = x, x + 1
    if x.sum() > 0: a, b = b, a
    return a - b
def comprehension_values(x):
    return sum([x[i] * i for i in range(3)]), [x + k for k in (1, 2)][1]
def dict_comprehension(x): return {k: x * v for k, v in {"a": 1, "b": 2}.items()}["b"]
def deleted(x):
    y = x + 1
    z = y * 2
    del y
    return z


# ---- functions
def early_return(x):
    if x.sum() > 5: return x
    if x.sum() < 0: return -x
    return x * 0
def early_return_in_call(x):
    def f(v):
        if v.sum() > 0: return v * 2
        return v
    return f(x) + f(-x)
def recursion_known(x):
    def power(v, n): return v if n == 1 else v * power(v, n - 1)
    return power(x, 4)
def lambdas(x):
    f = lambda v, k=2: v * k if v.sum() > 0 else v
    return f(x), f(x, k=3)
def star_call(x):
    def f(*a, **k): return a[0] * k["s"] + len(a)
    return f(*[x, x], **{"s": 2})
def higher_order(x):
    fs = [torch.relu, lambda v: v * 2, torch.neg]
    for f in fs: x = f(x)
    return x
def map_over(x): return sum(map(lambda v: v * 2, [x, x + 1]))
def any_all(x):
    return (any([x.sum() > 0, x[0] > 100]), all([x.sum() > 0, x[0] > 0]), any([]),
            all([1, x.sum() > 0]))
def sorted_known(x):
    pairs = sorted([(3, x), (1, x * 2)], key=lambda p: p[0])
    return pairs[0][1]
def isinstance_tensor(x):
    if isinstance(x, torch.Tensor): return x * 2
    return None
def type_of(x): return isinstance(x.shape[0], int), isinstance(float(x.sum()), float)
def getattr_known(x): return getattr(x, "sum")() + getattr(torch, "ones")(1)
def decorated(x):
    def twice(f): return lambda v: f(f(v))
    @twice
    def g(v): return v + 1 if v.sum() > 0 else v - 1
    return g(x)
def default_is_data(x):
    s = x.sum()
    def f(v, by=s): return v + by
    return f(x)


# ---- statements
def fstring(x):
    n = int(x.sum())
    return f"{n} and {n + 1:03d} {n!r}"
def fstring_known(x): return f"{x.shape[0] * 0 + 3}" if False else "k"
def asserts(x):
    assert x.shape[0] == 3, "three"
    assert x.sum() < 1000, f"too large"
    return x + 1
def with_data(x):
    with torch.no_grad(): y = x * 2
    return y
def with_return(x):
    log = []
    class M:
        def __enter__(self): return 5
        def __exit__(self, *a): log.append("exit")
    def f(v):
        with M() as k:
            if v.sum() > 0: return v * k
            v = v + 1
        return v
    return f(x), len(log)
def with_break(x):
    total = x * 0
    for i in range(3):
        with contextlib.nullcontext(i) as k:
            if x.sum() > 5: break
            total = total + k
    return total
def finally_data(x):
    log = []
    def f(v):
        try:
            if v.sum() > 0: return v * 2
            v = v - 1
        finally: log.append(1)
        return v
    return f(x), len(log)
def try_known(x):
    try: y = {"a": x}["b"]
    except KeyError: y = x + 1
    return y
def try_else_data(x):
    try: y = x * 2
    except ValueError: y = x
    else:
        if x.sum() > 0: y = y + 1
    return y
def match_data(x):
    n = int(x.sum())
    match n:
        case 0: return "zero"
        case 6 | -6: return "six"
        case k if k > 0: return "positive"
        case _: return "other"
def match_known_with_data(x):
    match ("scale", x.sum()):
        case ("shift", v): return x + v
        case ("scale", v): return x * v
def match_tuple_items(x):
    n = int(x.sum())
    match (1, n):
        case (1, 6): return 16
        case (1, 0) | (0, 1): return 10
        case (a, b): return a + 100
def match_shape(x):
    match x.shape:
        case (): return 0
        case (2,): return 2
        case (n,): return n + 10
        case (n, m): return n * m
        case _: return -1
def match_shape_values(x):
    out = []
    for y in (x, x.reshape(1, 3), x.reshape(3, 1), x.reshape(1, 1, 3)):
        match y.shape:
            case (1, n) if n > 2: out.append(n)
            case (n, 1): out.append(n * 100)
            case (a, *rest): out.append((a, len(rest)))
    return out
def match_class(x):
    match x:
        case torch.Tensor(): return x + 1
        case _: return 0
def loop_known(x):
    for i, k in enumerate([1, 2, 3]):
        if k == 2: continue
        x = x * k + i
    else: x = x + 100
    return x
def loop_break_by_data(x):
    n = 0
    for i in range(4):
        if x.sum() + i > 3: break
        n = i
    return n
def loop_else_by_data(x):
    for i in range(3):
        if x.sum() > i + 3: break
    else: return -1
    return i
def while_data(x):
    n = 0
    while x.sum() > 1:
        x = x / 2
        n += 1
    return x, n
def raise_by_data(x):
    if x.sum() > 100: raise ValueError("too large")
    return x
def raises_by_data(x):
    if x.sum() > 5: raise ValueError("too large")
    return x
def asserts_by_data(x):
    assert x.sum() <= 5, "too large"
    return x
def set_known(x):
    names = {"a", "b"}
    if x.sum() > 0: y = x
    else: y = -x
    return y, len(names | {"c"})
def tuple_out(x): return (x, [x + 1, {"k": x * 2}], None, 3, "s")
