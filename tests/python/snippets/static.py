"""Small functions without inputs, one for each thing that Python's statements and expressions do.
test_script_static.py evaluates each from its source and compares with what Python does."""
# ruff: noqa
import collections
import contextlib
import dataclasses
import functools
import itertools
import math
import operator

K = 10
TABLE = {"a": 1, "b": [2, 3]}


# ---- literals and operators
def ints(): return (0, 1_000, 0xff, 0b101, 0o17, -7, 10**30, 2**70 % 97)
def floats(): return (1.5, .25, 1e3, -2.5e-3, 7 / 2, 7 // 2, 7.0 // 2, -7 // 2, 7 % -3, 2**-1)
def complexes(): return (1 + 2j) * (3 - 1j)
def strings(): return ("a" 'b' """c
d""", r"\n", "\u00e9\x41", b"\x41a".decode(), "a" * 3, "ab"[1], "%d-%s" % (1, "x"))
def bools(): return (True + True, not 0, not [1], True & False, True | False, True ^ True)
def nothing(): return None
def nothing_at_all(): pass
def ellipsis_is(): return (... is Ellipsis, [...][0] is ...)
def bits(): return (5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 4, 256 >> 3)
def precedence(): return (2 + 3 * 4 ** 2 // 5 - -1, not 1 == 2, -2 ** 2, 1 if 0 else 2 if 0 else 3)
def unary(): return (+5, -5, ~5, not 5, - -5)
def chained(): return (1 < 2 < 3, 1 < 2 > 3, 1 == 1 != 2, 3 > 2 >= 2 > 1, 1 < 3 < 2 < 9)
def chained_once():
    calls = []
    def v(x):
        calls.append(x)
        return x
    r = v(1) < v(2) < v(1) < v(9)
    return r, calls
def membership(): return (1 in (1, 2), 3 not in [1], "b" in "abc", "k" in {"k": 1}, 2 in {1, 2})
def identity():
    a = []
    b = a
    return (a is b, a is not [], None is None, a is None)
def short_and(): return (0 and 1 / 0, 1 and 2, [] and 1, 1 and [] and 1 / 0, "" and 1)
def short_or(): return (1 or 1 / 0, 0 or 2, [] or {} or "x", None or 0)
def mixed_bool(): return (1 and 0 or 5, 0 or 1 and 7, not (1 and 0))
def conditional(): return ("a" if 1 > 2 else "b", (1 if True else 1 / 0))
def walrus():
    if (n := 10) > 5:
        m = n + 1
    return n, m, (k := 3) + k
def walrus_in_while():
    data = [1, 2, 0, 3]
    out = []
    i = -1
    while (v := data[(i := i + 1)]):
        out.append(v)
    return out, i, v
def big_sum(): return 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 - 11 * 12 + 13
def matmul_class():
    class M:
        def __init__(self, v): self.v = v
        def __matmul__(self, o): return ("mm", self.v, o.v)
        def __rmatmul__(self, o): return ("rmm", o)
    return M(1) @ M(2), 5 @ M(3)


# ---- containers
def tuples(): return ((), (1,), (1, 2), (1, (2, 3)), 1, *(4, 5))
def lists(): return [[], [1], [1, [2]], [*range(3), 7, *"ab"]]
def dicts(): return [{}, {"a": 1}, {**{"a": 1}, "b": 2, **{"a": 3}}, {1: {2: 3}}]
def sets(): return (sorted({3, 1, 2, 1}), sorted({*[1, 2], 3}), {1} == {1, 1}, len(set()))
def dict_order():
    d = {"b": 1, "a": 2}
    d["c"] = 3
    d["b"] = 4
    return list(d), list(d.items())
def slices():
    a = list(range(10))
    return a[2:5], a[:3], a[7:], a[::2], a[::-1], a[-3:-1], a[5:2:-1], a[slice(1, 3)], "hello"[1:-1]
def multi_slices():
    class A:
        def __getitem__(self, k): return k
    a = A()
    k = a[1:2, ::3, ..., 0]
    return (k[0].start, k[1].step, k[2] is ..., k[3]), a[1], a[1,]
def slice_assign():
    a = [0, 1, 2, 3, 4]
    a[1:3] = "xyz"
    del a[-1]
    a[::2] = [9, 9, 9]
    return a
def nested_items():
    d = {"a": [1, {"b": (5, 6)}]}
    return d["a"][1]["b"][-1]
def tuple_methods(): return ((1, 2, 1).count(1), (1, 2, 3).index(3))
def list_methods():
    a = [3, 1]
    a.append(2)
    a.extend([5, 4])
    a.insert(0, 9)
    p = a.pop()
    q = a.pop(0)
    a.remove(1)
    a.sort()
    b = a.copy()
    a.reverse()
    a.sort(key=lambda v: -v)
    c = a[:]
    a.clear()
    return a, b, c, p, q, b.index(5), b.count(3)
def dict_methods():
    d = {"a": 1}
    d.update(b=2)
    d.update({"c": 3})
    e = d.setdefault("d", [])
    e.append(1)
    x = d.pop("a")
    y = d.pop("zz", None)
    z = d.popitem()
    return d, x, y, z, d.get("q"), d.get("q", 5), list(d.keys()), list(d.values())
def set_methods():
    s = {1}
    s.add(2)
    s.discard(9)
    s.update([3, 4])
    s.remove(1)
    t = s | {7}
    s &= {2, 3}
    s |= {10}
    return sorted(s), sorted(t), sorted(t - s), sorted(t ^ s)
def list_alias():
    a = b = [1]
    a += [2]
    c = a
    a = a + [3]
    b.append(4)
    return a, b, c
def comparing_lists(): return ([1, 2] < [1, 3], (1, 2) == (1, 2), [1] == (1,), {"a": 1} == {"a": 1})
def strings_methods(): return ("a,b".split(","), "-".join(["a", "b"]), "aBc".upper(), " x ".strip())
def global_containers(): return TABLE["a"] + TABLE["b"][1] + K


# ---- comprehensions
def comp_list(): return [i * i for i in range(5) if i % 2]
def comp_nested(): return [(i, j) for i in range(3) for j in range(i) if i + j > 1]
def comp_inner(): return [[j for j in range(i)] for i in range(4)]
def comp_dict(): return {k: len(k) for k in ("a", "bb", "ccc")}
def comp_set(): return sorted({i % 3 for i in range(10)})
def comp_gen(): return sum(i for i in range(5)), tuple(i for i in "ab"), max(i * -1 for i in [3, 1])
def comp_next():
    g = (i * 2 for i in range(3))
    m = map(str, [1, 2])
    return next(g), next(g), next(g), next(g, "end"), next(m), next(i for i in [7, 8] if i > 7)
def comp_two_ifs(): return [i for i in range(20) if i % 2 == 0 if i % 3 == 0]
def comp_scope():
    i = "outer"
    r = [i for i in range(2)]
    return i, r
def comp_unpack(): return [a + b for a, b in [(1, 2), (3, 4)]], {k: v for k, v in {"x": 1}.items()}
def comp_star(): return [r for a, *r in [(1, 2, 3), (4,)]]
def comp_walrus():
    r = [y := x * 2 for x in range(3)]
    return r, y
def comp_closure():
    fs = [lambda: i for i in range(3)]
    gs = [lambda i=i: i for i in range(3)]
    return [f() for f in fs], [g() for g in gs]
def comp_outer_names():
    n = 3
    def f(k): return [n * k + i for i in range(n)]
    return f(2)
def comp_conditional(): return ["even" if i % 2 == 0 else "odd" for i in range(3)]
def comp_any_all():
    return any(i > 3 for i in range(5)), all(i > 3 for i in range(5)), any([]), all([])
def comp_in_call():
    return sorted((len(w) for w in ["aaa", "b"]), reverse=True), list(reversed([*range(3)]))
def comp_class_scope():
    class A:
        xs = [1, 2]
        ys = [x + 1 for x in xs]
    return A.ys
def comp_first_iter_outside():
    x = [1, 2]
    return [x for x in x]


# ---- assignment
def assign_many():
    a = b = c = 5
    return a, b, c
def assign_tuple():
    a, b = 1, 2
    a, b = b, a
    (c, d), e = (3, 4), 5
    [f, g] = "xy"
    return a, b, c, d, e, f, g
def assign_star():
    a, *b = [1, 2, 3]
    *c, d = (1,)
    e, *f, g = range(5)
    return a, b, c, d, e, f, g
def assign_nested_star():
    a, (b, *c), *d = 1, (2, 3, 4), 5, 6
    return a, b, c, d
def assign_items():
    a = [0, 0, 0]
    a[0], a[1] = 1, 2
    i = 0
    i, a[i] = 2, 9
    return a, i
def assign_attr():
    class A: pass
    a = A()
    a.x = a.y = 3
    a.x += 4
    a.z, a.w = 1, [2]
    a.w += [3]
    del a.y
    return a.x, a.z, a.w, hasattr(a, "y")
def assign_aug():
    a = 7
    a += 1; a -= 2; a *= 3; a //= 2; a %= 5; a **= 2; a <<= 2; a >>= 1; a |= 1; a &= 7; a ^= 2
    b = 1.0
    b /= 4
    return a, b
def assign_aug_items():
    d = {"a": [1]}
    d["a"] += [2]
    d["b"] = 1
    d["b"] *= 5
    return d
def assign_aug_order():
    log = []
    class L(list):
        def __getitem__(self, i):
            log.append("get")
            return 5
        def __setitem__(self, i, v): log.append(("set", i, v))
    l = L()
    l[0] += 1
    return log
def assign_swap():
    a = [1, 2, 3]
    a[0], a[2] = a[2], a[0]
    return a
def annotations():
    x: int = 3
    y: "nonsense"
    z: list[int] = [1]
    return x, z
def deleting():
    a = [1, 2, 3, 4]
    d = {"x": 1, "y": 2}
    b = 1
    del a[0], d["x"], b
    try:
        b
    except UnboundLocalError as e:
        return a, d, "gone"
def multi_target():
    a = b, c = (1, 2)
    return a, b, c


# ---- if, while, for
def if_elif():
    r = []
    for i in range(4):
        if i == 0: r.append("a")
        elif i == 1: r.append("b")
        elif i == 2: r.append("c")
        else: r.append("d")
    return r
def if_truth():
    return ["t" if v else "f" for v in (0, 1, "", "a", [], [0], {}, None, 0.0, 1j, (), ...)]
def while_else():
    n = 0
    while n < 3: n += 1
    else: n = n * 10
    m = 0
    while True:
        m += 1
        if m == 4: break
    else: m = -1
    return n, m
def while_continue():
    i = 0
    out = []
    while i < 6:
        i += 1
        if i % 2: continue
        out.append(i)
    return out
def for_else():
    r = []
    for i in range(3): r.append(i)
    else: r.append("end")
    for i in range(3):
        if i: break
    else: r.append("never")
    return r, i
def for_nested_break():
    out = []
    for i in range(4):
        for j in range(4):
            if j > i: break
            if (i + j) % 2: continue
            out.append((i, j))
    return out
def for_unpack():
    out = []
    for i, (a, *b) in enumerate([(1, 2, 3), "xy"]): out.append((i, a, b))
    return out
def for_dict():
    out = []
    for k, v in {"a": 1, "b": 2}.items(): out.append(k * v)
    for k in {"x": 1}: out.append(k)
    return out
def for_return():
    for i in range(10):
        if i * i > 20: return i
    return -1
def for_string(): return [c for c in "abc"], [*enumerate("xy", 1)]
def for_zip():
    return [a + b for a, b in zip([1, 2, 3], (10, 20))], list(zip("ab", range(5), [1, 2]))
def for_range(): return list(range(3)), list(range(1, 7, 2)), list(range(5, 0, -2)), list(range(0))
def for_attr_target():
    class A: pass
    a = A()
    for a.x in range(3): pass
    d = {}
    for d["k"] in "ab": pass
    return a.x, d
def for_changes_list():
    a = [1, 2, 3]
    out = []
    for v in a:
        out.append(v)
        if v < 3 and len(a) < 6: a.append(v + 10)
    return out, a
def for_iterator():
    it = iter([1, 2, 3, 4])
    out = []
    for v in it:
        out.append(v)
        if v == 2: break
    return out, list(it)
def for_leaves_variable():
    for i in range(3): last = i * 2
    return i, last
def loops_and_functions():
    total = 0
    def add(v):
        nonlocal total
        total += v
        return total > 5
    for i in range(10):
        if add(i): break
    return i, total
def itertools_loop():
    return [a * b for a, b in itertools.product([1, 2], [3, 4])], list(itertools.chain([1], (2,)))


# ---- functions
def call_kinds():
    def f(a, b=2, *c, d=4, **e): return a, b, c, d, e
    return f(1), f(1, 3), f(1, 3, 5, 6), f(1, d=7), f(a=1, z=9), f(*[1, 2, 3], **{"d": 5, "q": 6})
def call_positional_only():
    def f(a, b=1, /, c=2, *, d=3): return a, b, c, d
    return f(0), f(0, 5, 6, d=7), f(0, c=8)
def call_name_clash():
    def f(a, /, **k): return a, k
    return f(1, a=2)
def call_stars():
    def f(*a, **k): return a, k
    return f(), f(*(), **{}), f(*[1], 2, *(3, 4), x=1, **{"y": 2}, z=3)
def call_order():
    log = []
    def t(v):
        log.append(v)
        return v
    def f(*a, **k): return len(a) + len(k)
    n = f(t(1), *[t(2)], x=t(3), **{"y": t(4)})
    return n, log
def defaults_once():
    def f(x, acc=[]):
        acc.append(x)
        return acc
    f(1)
    return f(2)
def defaults_at_def():
    n = 1
    def f(a=n): return a
    n = 2
    return f(), n
def closures():
    def counter():
        n = 0
        def inc(by=1):
            nonlocal n
            n += by
            return n
        return inc
    a, b = counter(), counter()
    return a(), a(5), b(), a()
def closure_late():
    def f(): return g()
    def g(): return "late"
    return f()
def closure_deep():
    a = 1
    def f():
        b = 2
        def g():
            c = 3
            def h(): return a, b, c
            return h
        return g()
    return f()()
def recursion():
    def fact(n): return 1 if n <= 1 else n * fact(n - 1)
    def fib(n):
        if n < 2: return n
        return fib(n - 1) + fib(n - 2)
    return fact(10), fib(10)
def mutual_recursion():
    def even(n): return n == 0 or odd(n - 1)
    def odd(n): return n != 0 and even(n - 1)
    return even(10), odd(7), even(3)
def lambdas():
    add = lambda a, b=1, *c, **d: (a + b, c, d)
    return add(1), add(1, 2, 3, k=4), (lambda: 7)(), (lambda *a: a)(1, 2)
def lambda_in_lambda(): return (lambda x: lambda y: (x, y))(1)(2)
def functions_as_values():
    ops = {"add": lambda a, b: a + b, "mul": operator.mul}
    return ops["add"](2, 3), ops["mul"](2, 3), [f(4) for f in (str, float, lambda v: v * 2)]
def decorators():
    log = []
    def tag(name):
        log.append("make " + name)
        def deco(f):
            log.append("wrap " + name)
            def inner(*a, **k): return (name, f(*a, **k))
            return inner
        return deco
    @tag("a")
    @tag("b")
    def f(x): return x
    return f(1), log
def decorator_functools():
    def deco(f):
        @functools.wraps(f)
        def inner(*a): return f(*a) + 1
        return inner
    @deco
    def g(x): return x * 2
    return g(4)
def partials():
    def f(a, b, c=3): return a, b, c
    p = functools.partial(f, 1, c=9)
    return p(2), p(2, c=4), functools.partial(p, 5)()
def returns_many():
    def f(x):
        if x: return 1, 2
        return
    return f(1), f(0)
def docstrings():
    """A docstring."""
    def f():
        "another"
        return 1
    return f()
def nested_defs_shadow():
    x = 1
    def f():
        x = 2
        def g():
            x = 3
            return x
        return x, g()
    return x, f()
def arguments_are_local():
    def f(a):
        a = a + 1
        return a
    a = 1
    return f(a), a
def mutable_arguments():
    def f(l, d):
        l.append(1)
        d["k"] = 2
        l = []
    a, b = [], {}
    f(a, b)
    return a, b
def higher_order():
    def compose(*fs):
        def run(x):
            for f in reversed(fs): x = f(x)
            return x
        return run
    return compose(lambda v: v + 1, lambda v: v * 10)(5)
def map_filter():
    return (list(map(lambda a, b: a + b, [1, 2], [3, 4, 5])), list(filter(None, [0, 1, "", 2])),
            list(filter(lambda v: v > 1, range(4))), list(map(str, [1, 2])))
def sorting():
    words = ["bb", "a", "ccc", "dd"]
    return (sorted(words), sorted(words, key=len), sorted(words, key=lambda w: (-len(w), w)),
            sorted(words, key=len, reverse=True), sorted([3, 1, 2], reverse=True))
def reductions():
    return (sum([1, 2], 10), min(3, 1, 2), max([1, 5, 2]), max("a", "ccc", key=len), len("abc"),
            functools.reduce(lambda a, b: a * b, [1, 2, 3, 4]), abs(-3), divmod(7, 2), round(2.5))
def math_functions(): return (math.sqrt(16), math.floor(2.7), math.pi > 3, math.gcd(12, 18))
def global_read():
    def f(): return K + 1
    return f(), K
def builtin_shadow():
    len = lambda v: "mine"
    return len([1])
def star_args_default():
    def f(a, *, k=None, **rest): return a, k, sorted(rest)
    return f(1, z=1, y=2), f(a=1, k=0)
def call_result_method(): return "a b".split()[0].upper().lower()
def locals_of():
    a = 1
    b = [2]
    return dict(locals())
def generator_expression_scope():
    n = 2
    return list(n * i for i in range(3)), dict((i, n) for i in "ab")
def isinstance_checks():
    return (isinstance(1, int), isinstance("a", (int, str)), isinstance([], dict), type(1) is int,
            callable(len), callable(3), issubclass(bool, int))
def attribute_functions():
    class A:
        x = 1
    a = A()
    setattr(a, "y", 2)
    r = getattr(a, "x"), getattr(a, "y"), getattr(a, "z", "d"), hasattr(a, "x"), hasattr(a, "q")
    delattr(a, "y")
    return r, hasattr(a, "y")


# ---- classes
def class_basic():
    class A:
        kind = "A"
        def __init__(self, x, y=2):
            self.x = x
            self.y = y
        def total(self): return self.x + self.y
        def set(self, x):
            self.x = x
            return self
    a = A(1)
    return a.total(), a.set(10).total(), A(5, y=6).total(), a.kind, A.kind
def class_inherit():
    class A:
        def __init__(self): self.log = ["A"]
        def f(self): return "Af"
        def g(self): return self.f()
    class B(A):
        def __init__(self):
            super().__init__()
            self.log.append("B")
        def f(self): return "B" + super().f()
    b = B()
    return b.log, b.f(), b.g(), isinstance(b, A)
def class_super_args():
    class A:
        def f(self): return 1
    class B(A):
        def f(self): return super(B, self).f() + 1
    class C(B):
        def f(self): return super().f() * 10
    return C().f()
def class_diamond():
    class A:
        def f(self): return ["A"]
    class B(A):
        def f(self): return ["B"] + super().f()
    class C(A):
        def f(self): return ["C"] + super().f()
    class D(B, C):
        def f(self): return ["D"] + super().f()
    return D().f()
def class_properties():
    class A:
        def __init__(self): self._v = 1
        @property
        def v(self): return self._v * 10
        @v.setter
        def v(self, value): self._v = value
    a = A()
    first = a.v
    a.v = 5
    return first, a.v
def class_static():
    class A:
        n = 3
        @staticmethod
        def s(x): return x + 1
        @classmethod
        def c(cls, x): return cls.n + x
    class B(A):
        n = 5
    return A.s(1), A().s(2), A.c(1), B.c(1), B().c(2)
def class_call():
    class Adder:
        def __init__(self, n): self.n = n
        def __call__(self, x): return self.n + x
    a = Adder(3)
    return a(4), [a(i) for i in range(2)]
def class_operators():
    class V:
        def __init__(self, x): self.x = x
        def __add__(self, o): return V(self.x + o.x)
        def __neg__(self): return V(-self.x)
        def __eq__(self, o): return self.x == o.x
        def __lt__(self, o): return self.x < o.x
        def __getitem__(self, i): return self.x * i
        def __len__(self): return self.x
        def __contains__(self, v): return v == self.x
        def __bool__(self): return self.x > 1
        def __iadd__(self, o):
            self.x += o.x
            return self
    v = V(2)
    w = v
    v += V(3)
    return ((V(1) + V(2)).x, (-v).x, V(1) == V(1), V(1) < V(2), v[3], len(v), 5 in v, w is v,
            "t" if V(0) else "f", not V(5))
def class_private():
    class A:
        __secret = 4
        def __init__(self): self.__x = 1
        def get(self): return self.__x + self.__secret + self.__helper()
        def __helper(self): return 100
    a = A()
    return a.get(), a._A__x, hasattr(a, "__x")
def class_scope():
    x = "function"
    class A:
        x = "class"
        y = x
        def f(self): return x
    return A.y, A().f()
def class_loop_body():
    class A:
        total = 0
        for i in range(4): total += i
        if total > 3: flag = True
    return A.total, A.i, A.flag
def class_methods_as_values():
    class A:
        def f(self, x): return x * 2
    a = A()
    g = a.f
    h = A.f
    return g(3), h(a, 4), list(map(a.f, [1, 2]))
def class_nested():
    class A:
        class B:
            v = 7
        def f(self): return self.B().v
    return A().f(), A.B.v
def class_attributes_shared():
    class A:
        items = []
        def add(self, v): self.items.append(v)
    A().add(1)
    A().add(2)
    return A.items
def class_in_loop():
    out = []
    for i in range(2):
        class A:
            n = i
        out.append(A.n)
    return out
def class_factory():
    def make(base, k):
        class C(base):
            def f(self): return k
        return C
    return make(object, 3)().f()
def class_dunder_class():
    class A:
        def f(self): return __class__ is A, type(self) is A, self.__class__ is A
    return A().f()
def class_str():
    class A:
        def __str__(self): return "an A"
        def __repr__(self): return "A()"
    return str(A()), repr(A()), f"{A()} {A()!r}"
def class_decorated():
    def deco(cls):
        cls.extra = 1
        return cls
    @deco
    class A: pass
    return A.extra
def class_new_style_iter():
    class R:
        def __init__(self, n): self.n = n
        def __iter__(self): return iter(range(self.n))
    return [i for i in R(3)], list(R(2)), sum(R(4))
def class_getattr():
    class A:
        def __getattr__(self, name): return name * 2
    a = A()
    a.x = 1
    return a.x, a.yy
def named_tuples():
    P = collections.namedtuple("P", "x y")
    p = P(1, y=2)
    q = p._replace(x=5)
    a, b = q
    return p.x + p.y, tuple(q), a, b, p[0]
def dataclass_use():
    return Point(1).shifted(2).x, Point(3, 4) == Point(3, 4), Point(5).y


@dataclasses.dataclass
class Point:
    x: int
    y: int = 10

    def shifted(self, by): return Point(self.x + by, self.y)


class Base:
    scale = 2

    def __init__(self, v):
        self.v = v

    def run(self, x):
        return self.helper(x) + self.v

    def helper(self, x):
        return x * self.scale

    @property
    def doubled(self):
        return self.v * 2

    @classmethod
    def make(cls, v):
        return cls(v)

    @staticmethod
    def plain(a):
        return a - 1


class Derived(Base):
    scale = 3

    def __init__(self, v, w):
        super().__init__(v)
        self.w = w

    def helper(self, x):
        return super().helper(x) + self.w

    @property
    def doubled(self):
        return super().doubled + 1


def module_classes():
    d = Derived(1, 2)
    b = Base.make(5)
    return d.run(10), b.run(10), d.doubled, b.doubled, Base.plain(3), d.plain(9), d.v, d.w


# ---- exceptions
def try_except():
    try: return 1 / 0
    except ZeroDivisionError as e: return "caught", str(e)
def try_else_finally():
    log = []
    try: log.append("body")
    except ValueError: log.append("never")
    else: log.append("else")
    finally: log.append("finally")
    return log
def try_finally_return():
    log = []
    def f():
        try: return "value"
        finally: log.append("done")
    return f(), log
def try_finally_overrides():
    def f():
        try: return 1
        finally: return 2
    def g():
        try: 1 / 0
        finally: return 3
    return f(), g()
def try_nested():
    log = []
    try:
        try: raise ValueError("inner")
        except TypeError: log.append("wrong")
        finally: log.append("f1")
    except ValueError as e: log.append(str(e))
    return log
def try_reraise():
    try:
        try: {}["x"]
        except KeyError as e:
            raise
    except KeyError as e: return e.args
def try_raise_from():
    try:
        try: int("x")
        except ValueError as e: raise RuntimeError("outer") from e
    except RuntimeError as e: return str(e), type(e.__cause__) is ValueError
def try_tuple():
    out = []
    for f in (lambda: [][0], lambda: {}["a"], lambda: None.x, lambda: 1 + "a"):
        try: f()
        except (IndexError, KeyError): out.append("lookup")
        except AttributeError: out.append("attr")
        except Exception as e: out.append(type(e).__name__)
    return out
def try_bare():
    try: raise KeyError
    except: return "any"
def try_name_unbound():
    e = "before"
    try: 1 / 0
    except ZeroDivisionError as e: pass
    try: e
    except UnboundLocalError: return "unbound"
def try_in_loop():
    out = []
    for i in range(5):
        try:
            if i == 1: continue
            if i == 3: break
            out.append(i)
        finally: out.append(("f", i))
    return out
def try_custom():
    class E(Exception):
        def __init__(self, code): self.code = code
    class F(E): pass
    try: raise F(7)
    except E as e: return e.code, isinstance(e, F)
def try_raise_class():
    try: raise ValueError
    except ValueError as e: return e.args
def try_assert():
    out = []
    try: assert 1 > 2, "message"
    except AssertionError as e: out.append(str(e))
    assert True, 1 / 0
    try: assert []
    except AssertionError as e: out.append(e.args)
    return out
def try_through_calls():
    def f(n):
        if n == 0: raise ValueError("deep")
        return f(n - 1)
    try: f(5)
    except ValueError as e: return str(e)
def try_return_in_handler():
    def f(x):
        try: return 10 // x
        except ZeroDivisionError: return -1
        finally: x = 99
    return f(0), f(5)
def try_errors_of_calls():
    def f(a, b): pass
    out = []
    for c in (lambda: f(1), lambda: f(1, 2, 3), lambda: f(1, c=2), lambda: f(1, 2, a=3),
              lambda: f(*5), lambda: f(**{1: 2})):
        try: c()
        except TypeError as e: out.append("TypeError")
    return out
def try_name_error():
    try: undefined_name
    except NameError as e: return str(e)
def try_unpack_error():
    out = []
    try: a, b = [1]
    except ValueError as e: out.append(str(e))
    try: a, *b, c = [1]
    except ValueError as e: out.append(str(e))
    try: a, b = 5
    except TypeError as e: out.append("TypeError")
    return out
def try_handler_raises():
    try:
        try: 1 / 0
        except ZeroDivisionError: [][0]
    except IndexError: return "index"


# ---- with
class Manager:
    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append("enter " + self.name)
        return self.name

    def __exit__(self, kind, error, trace):
        self.log.append(("exit " + self.name, kind.__name__ if kind else None))
        return self.swallow


def with_plain():
    log = []
    with Manager(log, "a") as n: log.append(n)
    return log
def with_several():
    log = []
    with Manager(log, "a") as a, Manager(log, "b") as b:
        log.append(a + b)
    with (Manager(log, "c"), Manager(log, "d")): pass
    return log
def with_return():
    log = []
    def f():
        with Manager(log, "a"): return "r"
    return f(), log
def with_break():
    log = []
    for i in range(3):
        with Manager(log, str(i)):
            if i == 1: break
    return log
def with_swallow():
    log = []
    with Manager(log, "a", True): 1 / 0
    log.append("after")
    return log
def with_raises():
    log = []
    try:
        with Manager(log, "a"): raise ValueError("v")
    except ValueError as e: log.append(str(e))
    return log
def with_nested_swallow():
    log = []
    with Manager(log, "outer"):
        with Manager(log, "inner", True): {}["k"]
        log.append("between")
    return log
def with_contextlib():
    with contextlib.nullcontext(5) as v: pass
    with contextlib.suppress(KeyError): {}["x"]
    return v
def with_target_tuple():
    class M:
        def __enter__(self): return 1, (2, 3)
        def __exit__(self, *a): pass
    with M() as (a, (b, c)): pass
    return a, b, c


# ---- match
def match_values():
    def f(v):
        match v:
            case 1: return "one"
            case "a" | "b": return "letter"
            case None: return "none"
            case True: return "true"
            case -2: return "minus two"
            case 1.5: return "float"
            case _: return "else"
    return [f(v) for v in (1, "b", None, True, -2, 1.5, 7, "c", False)]
def match_sequences():
    def f(v):
        match v:
            case []: return "empty"
            case [x]: return ("one", x)
            case [1, *rest]: return ("from one", rest)
            case (a, b): return ("pair", a, b)
            case [a, *_, z]: return ("ends", a, z)
            case _: return "no"
    return [f(v) for v in ([], [5], (1, 2, 3), (3, 4), [2, 3, 4], "ab", 5, {"a": 1})]
def match_mappings():
    def f(v):
        match v:
            case {"kind": "a", "v": x}: return ("a", x)
            case {"kind": k, **rest}: return (k, rest)
            case {}: return "dict"
            case _: return "other"
    return [f(v) for v in ({"kind": "a", "v": 1}, {"kind": "b", "w": 2}, {}, {"z": 1}, [])]
def match_classes():
    class P:
        __match_args__ = ("x", "y")
        def __init__(self, x, y): self.x, self.y = x, y
    def f(v):
        match v:
            case P(0, y): return ("y axis", y)
            case P(x, y=0): return ("x axis", x)
            case P(x=a, y=b) if a == b: return ("diagonal", a)
            case P(): return "point"
            case int(n): return ("int", n)
            case str() as s: return ("str", s)
            case list([a, *_]): return ("list", a)
            case _: return "?"
    return [f(v) for v in (P(0, 1), P(2, 0), P(3, 3), P(1, 2), 5, "s", [9, 8], 1.5)]
def match_guards():
    def f(v):
        match v:
            case n if n < 0: return "neg"
            case 0: return "zero"
            case n if n % 2 == 0: return "even"
            case n: return ("odd", n)
    return [f(v) for v in (-1, 0, 4, 7)]
def match_nested():
    match {"p": [1, (2, {"q": 3})]}:
        case {"p": [a, (b, {"q": c})]}: return a, b, c
def match_or_bind():
    def f(v):
        match v:
            case [1, x] | [x, 1]: return x
            case (1 | 2) as small: return ("small", small)
    return f([1, 5]), f([6, 1]), f(2), f(9)
def match_dotted():
    match math.pi:
        case math.e: return "e"
        case math.pi: return "pi"
def match_falls_through():
    x = 5
    match x:
        case 6: x = 0
    return x
def match_star_middle():
    match [1, 2, 3, 4, 5]:
        case [a, *mid, b]: return a, mid, b
def match_in_loop():
    out = []
    for v in [1, "stop", 2]:
        match v:
            case "stop": break
            case int(): continue
        out.append(v)
    return out, v


# ---- f-strings
def fstrings():
    a, b = 3, "x"
    return (f"{a}", f"{a + 1:03d}|{b!r}|{b:>4}", f"{a=}", f"{3.14159:.{a}f}", f"{{}}{a}",
            f"{'n' * 2}")
def fstring_nested(): return f"{f'{1 + 1}'}-{','.join(str(i) for i in range(3))}"
def fstring_calls():
    def f(x): return x * 2
    return f"{f('ab')!s:<6}|{(lambda: 5)()}|{[1, 2][0]}|{ {'a': 1}['a'] }"
def fstring_multi(): return f"a{1}" "b" f"c{2}"


# ---- imports, names
def import_inside():
    import math
    import os.path
    import collections.abc as abc
    from math import floor, ceil as up
    from os import path
    return (math.floor(1.5), floor(2.5), up(2.5), os.path.basename("a/b"), path.sep,
            abc.Sized.__name__)
def import_error():
    try: import no_such_module_anywhere
    except ImportError as e: return "missing"
def import_from_error():
    try: from math import no_such_name
    except ImportError as e: return "missing"
def nonlocal_chain():
    a = 1
    def f():
        def g():
            nonlocal a
            a += 1
            return a
        return g
    h = f()
    h()
    return h(), a
def unbound_local():
    def f():
        if False: x = 1
        return x
    try: return f()
    except UnboundLocalError: return "unbound"
def free_unbound():
    def f():
        def g(): return x
        try: return g()
        except NameError: pass
        x = 1
        return g()
    return f()
def conditional_def():
    if K > 5:
        def f(): return "big"
    else:
        def f(): return "small"
    return f()
def passing():
    pass
    for i in range(1): pass
    if 1: pass
    class A: pass
    def f(): pass
    return f()
def semicolons(): a = 1; b = 2; return a + b
def parenthesised():
    return (1 +
            2) * \
        3
def expression_statements():
    log = []
    log.append(1)
    1 + 1
    "text"
    ...
    [log.append(2)]
    return log


# ---- uncaught exceptions
def raises_value(): raise ValueError("told", 1)
def raises_zero(): return 1 // 0
def raises_index(): return [1, 2][5]
def raises_key(): return {"a": 1}["b"]
def raises_attribute(): return (1).nothing
def raises_type(): return 1 + "a"
def raises_name(): return undefined_name
def raises_assert(): assert 1 == 2, "they differ"
def raises_assert_bare(): assert 0
def raises_custom():
    class Mine(RuntimeError): pass
    raise Mine("own")
def raises_in_call():
    def f(x): return g(x)
    def g(x): return x.missing
    return f([])
def raises_arguments():
    def f(a, b, *, c): pass
    return f(1, d=2)
def raises_missing():
    def f(a, b, *, c): pass
    return f(1)
def raises_missing_keyword():
    def f(*, c, d): pass
    return f()
def raises_many():
    def f(a): pass
    return f(1, 2, 3)
def raises_twice():
    def f(a): pass
    return f(1, a=2)
def raises_positional():
    def f(a, /): pass
    return f(a=1)
def raises_unpack():
    a, b = (1, 2, 3)
def raises_unpack_short():
    a, *b, c = (1,)
def raises_from():
    try: [][0]
    except IndexError as e: raise KeyError("k") from e
def raises_bare(): raise
def raises_not_callable():
    five = 5
    return five()
def raises_not_iterable():
    for i in 5: pass
def raises_unbound():
    if K < 0: x = 1
    return x
def raises_keyword_twice():
    def f(**k): pass
    return f(a=1, **{"a": 2})
def raises_not_exception(): raise 5
def raises_stop(): next(iter([]))
def raises_next(): return next([1])
