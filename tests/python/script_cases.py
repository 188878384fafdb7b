"""script_cases.py - small programs that print: what they print here is what cfx script prints."""

NUMBERS = """
print(7 // 2, -7 // 2, 7 // -2, -7 // -2, 7 % 3, -7 % 3, 7 % -3, -7 % -3)
print(7 / 2, -7 / 2, 6 / 3, 2 ** 10, 2 ** -1, (-2) ** 3, 2.0 ** 0.5, 0 ** 0)
print(7.5 // 2, -7.5 // 2, 7.5 % -2, -7.5 % 2, 1e308 * 10, -1e308 * 10)
print(1 + True, True + True, True * 3, -True, +False, ~5, ~True, 5 & 3, 5 | 3, 5 ^ 3, 1 << 10)
print(-9 >> 1)
print(1 < 2 < 3, 1 < 3 < 2, 1 == 1.0, 1 != 2, 2 >= 2, "a" < "b", (1, 2) < (1, 3), [1, 2] == [1, 2])
print(0.1 + 0.2, 1e16, 1e-5, 123456789.0, 1.0, -0.0, 1e22, 1.5e300, float("inf"), float("nan"))
print(abs(-3), abs(-2.5), abs(3 + 4j), round(2.5), round(3.5), round(-2.5), round(2.675, 2))
print(round(1234, -2))
print(int(3.9), int(-3.9), int("42"), int("-0x1f", 16), int("0b11", 2), float("1e3"))
print(float(" 2.5 "), bool(0), bool("x"))
print(divmod(7, 3), divmod(-7, 3), divmod(7.5, 2), pow(2, 5), pow(3, 4, 5), max(1, 2.5, 2))
print(min([3, 1, 2]))
print(sum([1, 2, 3]), sum([0.1] * 3), sum([], 5), sum([[1], [2]], []), any([0, 1]), all([]))
print(all([1, 0]))
print(1 + 2j, (1 + 2j) * (3 - 1j), 1j ** 2, 2j, -1j, complex(1, -2), (1 + 2j).real, (3).imag)
print(2.5.real)
print(3 == 3.0 == 3, hash(1) == hash(1.0) == hash(True), 1 is None, None is None, not 0, not "a")
print(2 and 3, 0 and 3, 2 or 3, 0 or "", None or 5, 1 if 0 else 2)
print(10 // 3 * 3 + 10 % 3, 2 ** 3 ** 2, -2 ** 2, (1, 2) + (3,), [1] * 3, "ab" * 2, 3 * (0,))
"""

FORMATS = """
x = 3.14159
n = 1234567
print(f"{x:.2f} {x:8.3f}| {x:<8.1f}| {x:^9.2f}| {x:+.1f} {x:e} {x:g} {x:.3g} {x:.0f} {x:%} {x:.1%}")
print(f"{n:d} {n:,} {n:_} {n:x} {n:X} {n:#x} {n:b} {n:o} {n:>12}")
print(f"{n:<12}| {n:^12}| {n:012} {n:+d} {n: d}")
print(f"{'abc':>6}|{'abc':<6}|{'abc':^7}|{'abc':*^9}|{'abcdef':.3}|{'x':-<4}|")
print(f"{1e10} {1e-10:.3e} {0.5:g} {100000.0:g} {1000000.0:g} {1e20:g}")
print(f"{123456789.0:.4} {1.0:.1} {5.0:.3}")
print(f"{n!r} {'a'!r} {x!s:>10} {[1, 'b']!r} {'q'!s}", f"{{}} {n}", f"{n:{12}}", f"{x:{8}.{2}f}")
print("%d %5d %-5d| %05d %+d %x %o" % (1, 2, 3, 4, 5, 255, 8))
print("%e %f %.2f %g %s %r %% %c" % (1.5, 1.5, 2.345, 0.0001, "s", "r", "c"))
print("%s and %s" % ("a", 1), "%(k)s=%(v)d" % {"k": "x", "v": 3}, "%5s|%-5s|" % ("a", "b"))
print("%.3s" % "abcdef", "%s" % [1, 2])
print("{} {} {}".format(1, "b", 2.5), "{1} {0}".format("a", "b"), "{x}-{y}".format(x=1, y=2))
print("{:>5}|{:<5}|".format("a", 1))
print("{0.real} {1[0]} {2[k]}".format(2, [7], {"k": 9}), "{{}}".format())
print("{:{w}}|".format("a", w=4), "{!r}".format("a"))
print(repr("it's"), repr('say "hi"'), repr("a\\n\\t\\\\"), repr("\\x00\\x7f"), repr("é ü"))
print(repr(b"ab\\xff"), str(b"x"))
print((1,), (), [], {}, {1: "a", "b": [2]}, {3}, set(), frozenset([1]), slice(1, 2), range(5))
print(range(1, 9, 2), ...)
print(True, None, "s", 1.0, [None, True, 'x', 1.5, (2,)])
print(f"{True} {None} {True:d} {-5:05d} {-3.5:08.2f} {float('inf'):5}")
print(f"{float('nan'):.2f} {-0.0:.1f}")
print(f"{1234.5:,.2f} {0.000123:.2e} {12345.678:_.1f} {-1234567:,} {1234567:015,}")
print(format(3, "04d"), format(2.5, ".1f"), format("a", ">3"), str(1e5), str(1e-4), repr(0.1))
print(str(10**15))
"""

TEXTS = """
s = "Hello, World"
print(len(s), s[0], s[-1], s[1:4], s[:5], s[7:], s[::-1], s[::2], s[-5:-1], s[5:2], "x" in s)
print("World" in s, "" in s)
print(s.lower(), s.upper(), s.replace("l", "L"), s.replace("l", "L", 1), s.find("o"))
print(s.find("z"), s.count("l"), s.index("W"))
print(s.split(", "), s.split(), "a,b,,c".split(","), "a b  c".split(" "))
print("a b c d".split(" ", 2), " a  b ".split(), "".split())
print("-".join(["a", "b"]), "".join(str(i) for i in range(5)), ",".join("abc"), "-".join([]))
print("  x ".strip(), "xxaxx".strip("x"), "  x ".lstrip() + "|", "  x ".rstrip() + "|")
print(s.startswith("He"), s.endswith(("x", "ld")))
print(s.title(), "abc def".capitalize(), "12".isdigit(), "a1".isalnum(), "ab".isalpha())
print(" ".isspace(), "".isdigit())
print("a".ljust(4) + "|", "a".rjust(4, "*"), "a".center(5, "-"))
print("prefix_x".removeprefix("prefix_"), "abc" * 0 + "|")
print("abc" < "abd", "a" == "a", "a" != "b", ord("a"), chr(98), sorted("bca"), list("ab"))
print(tuple("ab"), "é"[0], len("éa"))
print([c for c in "héy"], "a" + "b", "a" "b", r"\\n", "tab\\tx", 'single', str(3) + str(2.5))
print("abc".replace("", "-"))
print("x={} y={!r}".format(1, "q"), "a\\nb".split("\\n"), "A".lower() in "abc", max("abc"))
print(min("b", "a"))
"""

CONTAINERS = """
a = [3, 1, 2]
a.append(5)
a.extend([7, 8])
a.insert(1, 9)
print(a, a.pop(), a.pop(0), a, a.index(2), a.count(9), len(a))
a.remove(9)
a.reverse()
print(a)
a.sort()
print(a)
a.sort(reverse=True)
print(a, a.copy() == a, a.copy() is a)
a.sort(key=lambda v: -v)
print(a, sorted([3, 1, 2]), sorted("hello", reverse=True))
print(sorted([(2, "b"), (1, "z")], key=lambda t: t[1]))
b = list(range(10))
print(b[2:5], b[:-1], b[::3], b[::-1], b[-3:], b[5:1:-1], b[1:100], b[-100:2])
b[2:4] = [20, 30, 40]
print(b)
del b[0]
print(b)
del b[1:3]
print(b)
b[0] = -1
print(b)
b[::2] = [0] * len(b[::2])
print(b)
b += [1]; b *= 1; print(b, 3 in b, 99 not in b, [1, [2, 3]] == [1, [2, 3]], [1] < [1, 0], [] < [0])
d = {"a": 1, "b": 2}
d["c"] = 3
d["a"] = 10
print(d, len(d), "a" in d, 1 in d, d.get("z"), d.get("z", 0), d["b"], list(d))
print(list(d.values()), list(d.items()))
d.update({"x": 1}, y=2)
print(d, d.pop("x"), d.pop("nope", None), d.setdefault("k", 5), d.setdefault("k", 6), d)
del d["a"]
print(d, {**d, "z": 1}, dict(a=1, b=2), dict([("p", 1)]), d | {"n": 0}, {1: 2} == {1: 2})
print({k: v * 2 for k, v in d.items()})
for k in d: print(k, end=" ")
print(); e = d.copy(); e.clear(); print(e, d != e, bool(e), bool(d))
s = {1, 2, 3}
s.add(4)
s.discard(9)
s.remove(1)
print(sorted(s), 2 in s, sorted(s | {9}), sorted(s & {2, 3}), sorted(s - {2}))
print(sorted(s ^ {2, 77}), s == {2, 3, 4}, {2} < s, {2} <= {2})
t = (1, "b", [3])
x, y, (z,) = t
print(x, y, z, t[0], t[-1], t.index("b"), t.count(1), t + (4,), t * 2, len(t))
print(hash((1, 2)) == hash((1, 2)))
p, *q = [1, 2, 3]; *r, u = "abc"; v, *w, o = range(5); print(p, q, r, u, v, w, o)
print(list(zip([1, 2], "ab")), list(enumerate("ab", 1)), list(map(lambda i: i * i, [1, 2])))
print(list(filter(None, [0, 1, 2])), list(reversed([1, 2])), list(range(5, 0, -2)))
print([i * j for i in range(3) for j in range(2) if i != j], {i: i * i for i in range(3)})
print(sorted({i % 3 for i in range(9)}), sum(i for i in range(5)))
print(any(i > 2 for i in range(4)))
print(range(10)[2], range(10)[-1], list(range(10)[::3]), len(range(0, 10, 3)))
print(6 in range(0, 10, 3), 5 in range(0, 10, 3), range(3) == range(0, 3), tuple(range(2)))
print(max([1, 5, 3], key=lambda v: -v), min("abc", key=ord), max([], default=7), max(3, 1))
print(next(iter([4])), next(iter([]), "end"), list(zip()), list(zip([1], [])))
m = [[0] * 2 for _ in range(2)]
m[0][1] = 5
print(m, [row[:] for row in m], sum(m, []), isinstance(m, list), isinstance(1, (int, str)))
print(isinstance(True, int), type(1) is int)
"""

FUNCTIONS = """
def f(a, b=2, *args, c=3, **kw):
    return a, b, args, c, sorted(kw.items())
print(f(1), f(1, 5), f(1, 5, 6, 7), f(1, c=9, d=4), f(*[1, 2, 3], **{"c": 0}), f(b=1, a=2))
def outer(n):
    total = 0
    def add(k):
        nonlocal total
        total += k
        return total
    for i in range(n):
        add(i)
    return total
print(outer(5), (lambda x, y=2: x * y)(3), [g(2) for g in [lambda v: v + 1, lambda v: v * 10]])
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(12), [fib(i) for i in range(8)])
count = 0
def bump():
    global count
    count += 1
    return count
print(bump(), bump(), count)
def early(v):
    for i in range(10):
        if i * i > v:
            return i
    else:
        return -1
print(early(20), early(1000))
i = 0
while True:
    i += 1
    if i % 2:
        continue
    if i > 6:
        break
else:
    print("never")
print(i)
for i in range(3):
    pass
else:
    print("done", i)
x = y = 3
x, y = y + 1, x
print(x, y, (n := 4) + n, [k for k in range(3)][-1])
import functools, itertools, math, operator, copy
print(functools.partial(f, 1, c=8)(2), functools.reduce(lambda a, b: a * b, [1, 2, 3, 4]))
print(list(itertools.chain([1], (2,))))
print(math.sqrt(16), math.floor(-2.5), math.ceil(2.1), math.pi, math.log(math.e))
print(math.gcd(12, 18), math.isqrt(17), math.inf > 1, math.prod([2, 3]), operator.add(2, 3))
print(operator.mul("a", 2))
print(math.exp(0), math.sin(0.0), math.cos(0), math.pow(2, 3), math.log2(8), math.log10(1000))
print(math.tanh(0), math.isnan(math.nan), math.fabs(-2), math.trunc(2.7))
l = [1, [2]]; k = copy.copy(l); z = copy.deepcopy(l); l[1].append(3); print(k, z)
assert x == 4, "no"
def deco(g):
    def inner(*a):
        return g(*a) + 1
    return inner
@deco
def h(v):
    return v * 2
print(h(3), callable(h), callable(3), getattr([], "nope", 5), hasattr("", "split"))
"""

CLASSES = """
from dataclasses import dataclass, field
from collections import namedtuple, OrderedDict, defaultdict
from typing import NamedTuple, Optional, List
class A:
    kind = "a"
    def __init__(self, v): self.v = v
    def get(self): return self.v
    @property
    def twice(self): return self.v * 2
    @twice.setter
    def twice(self, x): self.v = x // 2
    @staticmethod
    def st(x): return x + 1
    @classmethod
    def make(cls, x): return cls(x * 10)
    def __repr__(self): return f"A({self.v})"
    def __add__(self, o): return A(self.v + (o.v if isinstance(o, A) else o))
    def __radd__(self, o): return A(o + self.v)
    def __eq__(self, o): return isinstance(o, A) and self.v == o.v
    def __lt__(self, o): return self.v < o.v
    def __len__(self): return 3
    def __getitem__(self, i): return self.v + i
    def __call__(self, x): return self.v * x
    def __contains__(self, x): return x == self.v
    def __bool__(self): return self.v > 0
    def __neg__(self): return A(-self.v)
    def __iter__(self): return iter([self.v, self.v])
class B(A):
    kind = "b"
    def __init__(self, v, w=0):
        super().__init__(v)
        self.w = w
    def get(self): return super().get() + 100
a, b = A(2), B(3, w=4)
print(a.get(), b.get(), a.twice, A.kind, b.kind, A.st(1), a.st(2), A.make(2), B.make(1).v)
print(repr(b), str(a))
a.twice = 10
print(a.v, a + b, a + 1, 1 + a, a == A(5), a != A(5), a < b, a > b, len(a), a[1], a(3), 5 in a)
print(bool(a), not A(0), -a, list(a))
print(isinstance(b, A), isinstance(a, B), issubclass(B, A), type(b) is B, type(b).__name__)
print(B.__name__, hasattr(a, "v"), hasattr(a, "zz"), getattr(b, "w"))
setattr(a, "q", 1)
print(a.q, sorted([A(3), A(1)]), max(A(1), A(2)), sum([A(1), A(2)], A(0)), [A(1)] == [A(1)])
del a.q
print(hasattr(a, "q"))
class P:
    def who(self): return "P"
class Q(P):
    def who(self): return "Q" + super().who()
class R(P):
    def who(self): return "R" + super().who()
class S(Q, R):
    def who(self): return "S" + super().who()
print(S().who(), [c.__name__ for c in S.__mro__])
Point = namedtuple("Point", "x y")
p = Point(1, y=2)
print(p, p.x, p[1], p == (1, 2), len(p), tuple(p), p._fields, isinstance(p, tuple))
x, y = p
print(x + y)
od = OrderedDict()
od["k"] = 1
print(len(od), od["k"])
dd = defaultdict(list)
dd["a"].append(1)
dd["b"]
print(dict(dd))
class It:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0: raise StopIteration
        self.n -= 1
        return self.n
print(list(It(3)), sum(It(4)), [v for v in It(2)])
class Attr:
    def __getattr__(self, name): return name + "!"
print(Attr().foo, Attr.__name__)
"""

KEYS = """
class Key:
    def __init__(self, table, clears):
        self.table = table
        self.clears = clears
    def __hash__(self):
        return 1000003
    def __eq__(self, other):
        if self.clears:
            self.clears = False
            self.table.clear()
            for i in range(40):
                self.table[i] = i
        return False
table = {"a": 0}
for i in range(3):
    table[Key(table, i == 1)] = i
print(len(table), Key(table, False) in table, len(table), 7 in table)
table[Key(table, False)] = "b"
print(len(table), list(table)[:3])
for i in range(100):
    table[i] = i
    del table[i]
print(len(table), [k for k in table if isinstance(k, int)])
"""

DATACLASSES = """
from dataclasses import dataclass, field
from typing import NamedTuple, Optional
@dataclass
class Config:
    n: int
    name: str = "x"
    items: list = field(default_factory=list)
    opt: Optional[int] = None
    def total(self): return self.n + len(self.items)
c = Config(3, items=[1])
print(c, c.total(), c == Config(3, "x", [1]), c != Config(4), Config(1).items is Config(1).items)
@dataclass
class More(Config):
    extra: float = 0.5
print(More(1, extra=2.0), More(n=2).extra)
class NT(NamedTuple):
    a: int
    b: str = "q"
print(NT(1), NT(1, "z").b, NT(b="w", a=5)[0])
"""

EXCEPTIONS = """
def attempt(f):
    try:
        return f()
    except ZeroDivisionError as e:
        return "zero: " + str(e)
    except (KeyError, IndexError) as e:
        return type(e).__name__
    except Exception as e:
        return type(e).__name__
    finally:
        print("f", end=" ")
print(attempt(lambda: 1 / 0), attempt(lambda: {}["a"]), attempt(lambda: [][1]))
print(attempt(lambda: 1 + "a"), attempt(lambda: 5))
print(attempt(lambda: None.x), attempt(lambda: int("z")), attempt(lambda: (1).foo))
print(attempt(lambda: [1, 2][5]), attempt(lambda: {[]: 1}))
class Mine(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code
try:
    raise Mine(7)
except ValueError as e:
    print(e, e.code, isinstance(e, Mine), repr(ValueError("a", 1)), str(KeyError("k")))
try:
    try:
        raise KeyError("inner")
    except KeyError as e:
        raise RuntimeError("outer") from e
except RuntimeError as e:
    print(e)
else:
    print("no")
def g():
    try:
        return 1
    finally:
        print("cleanup")
print(g())
try:
    assert 1 == 2, "unequal"
except AssertionError as e:
    print("assert", e)
"""

ENUMS = """
from enum import Enum, IntEnum, StrEnum, auto, unique
class A(str, Enum):
    X = "x"
    Y = "y"
class Z(str, Enum):
    K = auto()
class B(IntEnum):
    P = 1
    Q = auto()
@unique
class C(Enum):
    R = auto()
    S = "s"
    def shout(self): return self.name + "!"
    @property
    def short(self): return self.name[0]
class D(StrEnum):
    KEY = auto()
class Planet(Enum):
    EARTH = (6.0, 2.0)
    MARS = (1.5, 1.0)
    def __init__(self, mass, radius):
        self.density = mass / radius
class Twice(Enum):
    ONE = 1
    UNO = 1
print(A.X, str(A.X), f"{A.X}", repr(A.X), f"{A.X:>5}|", A.X + "z", A.X == "x", A("y"))
print(A["X"].value, Z.K.value)
print(B.P, str(B.Q), f"{B.Q}", repr(B.Q), f"{B.Q:03d}", B.Q + 1, B.Q == 2, B(1).name)
print([5, 6, 7][B.Q])
print(C.R, f"{C.S}", repr(C.S), list(C), len(C), C.R.value, list(C.__members__), C.S.shout())
print(C.R.short)
print(D.KEY, repr(D.KEY), C.R in C, {C.R: 1}[C.R], C, type(C.R), C.R == 1, C.R != C.S, C.R is C(1))
print(Planet.EARTH.density, Planet.MARS.value, Twice.UNO, Twice.UNO is Twice.ONE, len(Twice))
for bad in (lambda: C(9), lambda: C["Z"], lambda: C.Z):
    try:
        bad()
    except (ValueError, KeyError, AttributeError) as e:
        print(type(e).__name__, e if not isinstance(e, AttributeError) else "")
print(isinstance(B.P, int), isinstance(B.P, B), sorted(B), max(B), [c.name for c in C], B.P < B.Q)
"""

ARRANGEMENTS = """
import itertools as it
from itertools import chain
print(list(it.combinations("abcd", 2)), list(it.combinations(range(4), 4)))
print(list(it.combinations(range(3), 0)), list(it.combinations(range(2), 3)))
print(list(it.permutations(range(3))), list(it.permutations("abc", 2)))
print(list(it.permutations([1], 2)))
print(list(it.product([1, 2], "ab")), list(it.product(range(2), repeat=3)), list(it.product()))
print(list(it.product([], [1])))
print(list(it.combinations_with_replacement("ab", 3)))
print(list(it.combinations_with_replacement([], 1)))
print(list(it.accumulate([1, 2, 3])))
print(list(it.accumulate([1, 2, 3], lambda a, b: a * b, initial=10)), list(it.accumulate([])))
print(list(it.repeat(7, 3)), list(it.repeat(times=2, object="a")))
print(list(zip(it.count(5, 2), "abc")), list(it.islice(it.count(), 3)))
print(list(it.islice("abcdef", 1, 5, 2)), list(it.islice("abc", 1, None)))
print(list(it.takewhile(lambda x: x < 3, [1, 2, 3, 1])))
print(list(it.dropwhile(lambda x: x < 3, [1, 2, 3, 1])), list(it.starmap(pow, [(2, 3), (3, 2)])))
print(list(it.pairwise("abc")), list(it.pairwise([1])))
print(list(it.zip_longest([1, 2, 3], "a", fillvalue=0)), list(it.zip_longest()))
print(list(chain([1], (2, 3), "x")), list(chain.from_iterable([[1], [2, 3]])))
print(sum(chain([1, 2], [3])))
"""

RECORDS = """
from dataclasses import dataclass, field, asdict, astuple, replace, fields, is_dataclass
from typing import Optional, List
@dataclass
class In:
    a: int = 1
    b: List[int] = field(default_factory=list)
@dataclass
class C:
    n: int
    inner: In = field(default_factory=In)
    d: Optional[dict] = None
    half: float = field(init=False)
    tag: str = field(init=False, default="t")
    def __post_init__(self):
        self.half = self.n / 2
c = C(4, In(2, [1]), {"k": In(3)})
print(c, asdict(c), astuple(c))
r = replace(c, n=10)
print(r, r == c, r.inner is c.inner, replace(c) == c, [f.name for f in fields(c)])
print([f.name for f in fields(C)])
print(is_dataclass(c), is_dataclass(C), is_dataclass(3))
d = asdict(c); d["inner"]["b"].append(5); print(c.inner.b)
for bad in (lambda: C(), lambda: asdict(3), lambda: replace(c, zz=1), lambda: C(1, 2, 3, 4)):
    try:
        print(bad())
    except TypeError as e:
        print("TypeError")
import copy
near, far = copy.copy(c), copy.deepcopy(c)
near.n, far.n = 1, 2
near.inner.a = 70
far.inner.b.append(9)
print(c.n, near.n, far.n, c.inner, near.inner is c.inner, far.inner, far.half)
from collections import namedtuple
from typing import NamedTuple
P = namedtuple("P", "x y", defaults=[5])
class Q(NamedTuple):
    a: int
    b: str = "z"
p = P(1)
print(p, p._replace(y=2), p._asdict(), p._replace(), Q(3)._replace(a=9, b="k"), Q(3)._asdict(), p)
try: p._replace(z=1)
except (ValueError, TypeError) as e: print("no")
"""

MODULES = """
import torch
from torch import nn
class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.zeros(1))
    def forward(self, x):
        return x
class Tree(nn.Module):
    def __init__(self, inner, weight):
        super().__init__()
        setattr(self, "a_name_that_only_a_program_would_choose_" * 3, inner)
        self.tied = weight
        self.same = inner
    def forward(self, x):
        return x
leaf = Leaf()
tree = Tree(leaf, leaf.w)
deep = Tree(tree, leaf.w)
print([name for name, p in deep.named_parameters()], len(list(deep.parameters())))
print([name for name, m in deep.named_modules()], len(list(deep.modules())))
print([name for name, b in deep.named_buffers()], [k for k, c in tree.named_children()])
layers = nn.ModuleList([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])
print(len(layers), isinstance(layers[-1], nn.Sigmoid), layers[1] is layers[-2], len(layers[1:]))
weights = nn.ParameterList([nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(3))])
print(weights[1].shape[0], weights[-2].shape[0], [p.shape[0] for p in weights])
named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
print(list(named.keys()), "a" in named, len(named), [k for k, m in named.items()])
for index in (3, -4):
    try:
        layers[index]
    except IndexError:
        print("no layer", index)
print(issubclass(Tree, (int, (nn.Module, str))), issubclass(Leaf, (Tree, int)))
class A: pass
class B(A): pass
class C(A): pass
class D(B, C): pass
class E(D): pass
print([c.__name__ for c in E.__mro__])
"""

DEQUES = """
import collections, copy
from collections import deque
d = deque([1, 2, 3], maxlen=4)
d.append(4)
d.append(5)
d.appendleft(0)
print(d, len(d), d.maxlen, d[0], d[-1], list(d), 3 in d, 9 in d, bool(d), bool(deque()))
d.rotate(1)
print(d, d.pop(), d.popleft(), d)
d.rotate(-5)
d.extend([7, 8])
d.extendleft("ab")
print(d, list(reversed(d)), d.count("a"), d.index("a"), [v for v in d], sorted(deque([3, 1])))
print(type(d).__name__, type(d) is deque, isinstance(d, list), isinstance(d, deque), repr(deque()))
print(deque([1, 2]) == deque([1, 2]), deque([1]) == [1], deque([1]) != deque([2]))
print(deque([1]) < deque([2]), deque([2]) <= deque([1]), deque([1]) >= deque([1]))
print(deque([1], 3) == deque([1], 5), deque([1]) + deque([2]), deque([1, 2]) * 2)
e = copy.copy(d)
f = d.copy()
e.clear()
print(len(d), len(e), f == d, f.maxlen)
d[0] = 10
del d[1]
d.insert(1, "x")
d.remove("x")
d.reverse()
print(d)
alias = d
alias += [5]
print(alias is d, d)
class Recent(deque):
    def total(self):
        return sum(self)
r = Recent([1, 2, 3], 2)
print(r.total(), len(r), isinstance(r, deque))
for wrong in (lambda: deque().pop(), lambda: deque().popleft(), lambda: deque([1])[1],
              lambda: deque([1], -1), lambda: deque([1]).remove(2),
              lambda: deque([1], 1).insert(0, 2)):
    try:
        wrong()
    except (IndexError, ValueError, TypeError) as error:
        print(type(error).__name__, error)
"""

DICTS_OF_COLLECTIONS = """
from collections import OrderedDict, defaultdict
import collections, copy
d = defaultdict(list, {"a": [1]}, b=[2])
d["c"].append(3)
print(d["a"], d["c"], len(d), sorted(d), d.get("x"), "x" in d, d.default_factory is list)
print(dict(d), type(d).__name__, isinstance(d, dict))
e = defaultdict(int)
for letter in "abracadabra":
    e[letter] += 1
print(sorted(e.items()), e == {"a": 5, "b": 2, "r": 2, "c": 1, "d": 1})
f = copy.copy(e)
f["new"]
print(len(e), len(f), f["nothing"])
try:
    defaultdict()["x"]
except KeyError as error:
    print("KeyError", error)
try:
    defaultdict(3)
except TypeError as error:
    print(error)
o = OrderedDict([("a", 1), ("b", 2)], c=3)
o.move_to_end("a")
print(list(o), o.popitem(last=False), o.popitem(), o)
o.move_to_end("c", last=False) if "c" in o else None
print(OrderedDict(a=1, b=2) == OrderedDict(b=2, a=1), OrderedDict(a=1, b=2) == {"b": 2, "a": 1})
print(type(o).__name__, isinstance(o, dict), OrderedDict(), list(OrderedDict(x=1).items()))
"""

FUNCTOOLS = """
import functools
def loud(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs) + 1
    return inner
@loud
def add(a, b=2):
    return a + b
print(add(1), add(1, b=5), add.__name__, add.__wrapped__(1))
calls = []
@functools.lru_cache(maxsize=None)
def square(n):
    calls.append(n)
    return n * n
@functools.cache
def pair(a, b=0):
    calls.append((a, b))
    return [a, b]
@functools.lru_cache
def plain(n):
    return n
print(square(3), square(3), square(4), calls, pair(1) is pair(1), pair(1) is pair(1, b=2), plain(2))
"""

CONTEXTLIB = """
import contextlib
with contextlib.nullcontext(3) as three, contextlib.suppress(KeyError, ValueError):
    print(three)
    {}["x"]
    print("never")
with contextlib.suppress(IndexError):
    [1][0]
    print("here")
try:
    with contextlib.suppress(KeyError):
        int("x")
except ValueError as error:
    print("ValueError")
"""

ABSTRACT = """
import collections.abc, numbers, typing
from collections.abc import Iterable, Mapping, Sequence
class Own:
    def __iter__(self):
        return iter([1])
    def __len__(self):
        return 1
    def __call__(self):
        return 1
class Other:
    pass
for value in ([1], (1,), "a", {1: 2}, {1}, frozenset(), range(3), 1, 1.5, True, 2j, None, len,
              Own(), Other()):
    print(isinstance(value, Sequence), isinstance(value, Mapping), isinstance(value, Iterable),
          isinstance(value, collections.abc.Set), isinstance(value, collections.abc.Sized),
          isinstance(value, collections.abc.MutableSequence), isinstance(value, (Mapping, str)),
          isinstance(value, numbers.Number), isinstance(value, numbers.Integral),
          isinstance(value, numbers.Real), isinstance(value, collections.abc.Callable))
print(isinstance([], typing.List), isinstance({}, typing.Mapping), isinstance((), typing.Sequence))
"""

IN_PLACE = """
a = {1, 2}
b = a
b |= {3}
print(a is b, sorted(a))
b -= {1}
b &= {2, 3, 4}
b ^= {4}
print(a is b, sorted(a))
c = [1]
d = c
d *= 3
d += (2,)
print(c is d, c)
e = {"a": 1}
f = e
f |= {"b": 2}
print(e is f, e)
list.append(c, 9)
dict.update(e, c=3)
set.add(a, 7)
print(c, e, sorted(a))
try:
    frozenset([1]).add(2)
except AttributeError as error:
    print(error)
"""

COPIES = """
import copy
inner = [1]
twice = [inner, inner]
deep = copy.deepcopy(twice)
deep[0].append(2)
print(deep, twice, deep[0] is deep[1], copy.copy(twice)[0] is inner)
class Point:
    def __init__(self, x):
        self.x = x
    def __copy__(self):
        return Point(-1)
    def __deepcopy__(self, memo):
        return Point(-2)
print(copy.copy(Point(3)).x, copy.deepcopy([Point(3)])[0].x)
class Equal:
    def __eq__(self, other):
        return True
class Hashed(Equal):
    def __hash__(self):
        return 5
try:
    {Equal(): 1}
except TypeError as error:
    print(error)
print({Hashed(): 1}[Hashed()])
print(slice(0, 10, 3).indices(5), slice(None, None, -1).indices(4), slice(-3, None).indices(10))
"""

DATACLASS_OPTIONS = """
import dataclasses
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Key:
    a: int
    b: str = "x"
@dataclass(eq=False)
class Same:
    a: int
@dataclass
class Shown:
    a: int
    b: list = field(default_factory=list, repr=False, compare=False)
    c: int = field(default=3, repr=False)
@dataclass(repr=False, frozen=False, order=False)
class Hidden:
    a: int
    def __repr__(self):
        return "hidden"
print({Key(1): 2}[Key(1)], Key(1) == Key(1), Key(1), dataclasses.replace(Key(1), a=5))
try:
    Key(1).a = 2
except AttributeError as error:
    print(error)
print(Same(1) == Same(1), Shown(1, [2]), Shown(1, [2]) == Shown(1), Shown(1) == Shown(1, c=4))
print(Hidden(3))
try:
    {Shown(1): 2}
except TypeError as error:
    print(error)
"""

CASES = {name.lower(): text for name, text in list(globals().items())
         if name.isupper() and isinstance(text, str)}

NET = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        {init}

    def forward(self, x):
        return {result}
"""

# Sources, and all that is said about them.
FAILURES = [
    ('def f(x):\n    return x + {"a": 1}["b"]\n',
     "case.py:2: KeyError: 'b'\n      return x + {\"a\": 1}[\"b\"]\n                 ^\n"),
    (NET.format(init="pass", result="x").replace("n=4", "n"),
     "case.py: TypeError: Net.__init__() missing 1 required positional argument: 'n'; give the "
     "call that creates it, such as 'Net(...)'\n"
     "  use --function NAME to capture a function, --call 'Net(16)' to capture its result\n"),
    ("import numpy as np\n",
     "case.py:1: ModuleNotFoundError: No module named 'numpy': scripts can import torch, and "
     "from the standard library math, typing, dataclasses, enum, collections, contextlib, "
     "functools, itertools, operator, copy and abc; capture a model that needs others in Python, "
     "with cfx.script\n"
     "  import numpy as np\n  ^\n"),
    ("import torch\n\ndef f(x):\n    return torch.relux(x)\n",
     "case.py:4: AttributeError: cfx does not support 'torch.relux': it is not in the table of "
     "operators under any name (cfx ops lists them)\n      return torch.relux(x)\n"
     "             ^\n"),
    (NET.format(init='self.fc = nn.Linear(n, "8")', result="self.fc(x)"),
     "case.py:7: ValueError: torch.nn.Linear: out_features must be an int, not str\n"
     '          self.fc = nn.Linear(n, "8")\n                    ^\n'),
    (NET.format(init="self.layers = [nn.Linear(n, n)]", result="self.layers[0](x)"),
     "case.py:10: NameError: this Linear is not part of the model; assign it to an "
     "attribute in __init__, or put it into an nn.ModuleList\n"
     "          return self.layers[0](x)\n                 ^\n"),
    ("def f(x):\n    return x\n\ndef g(x):\n    return x\n",
     "case.py: the file has several functions (f, g); name the one to capture\n"
     "  use --function NAME to capture a function, --call 'Net(16)' to capture its result\n"),
    ("x = 1\n",
     "case.py: the file has neither a class derived from torch.nn.Module nor a function\n"),
    ('def f(x):\n    raise ValueError("no " + str(3))\n',
     'case.py:2: ValueError: no 3\n      raise ValueError("no " + str(3))\n      ^\n'),
    ("def f(x):\n    return 10 ** 30\n",
     "case.py:2: OverflowError: the integer result does not fit in 64 bits; scripts support only "
     "64-bit integers\n      return 10 ** 30\n             ^\n"),
    ("import torch\ndef f(x):\n    return torch.zeros(2, 3) @ torch.zeros(2, 3)\nf(1)\n",
     "case.py:3: RuntimeError: matmul(float32[2, 3], float32[2, 3]): shapes cannot be multiplied: "
     "inner sizes 3 and 2 differ\n      return torch.zeros(2, 3) @ torch.zeros(2, 3)\n"
     "             ^\ncalled from case.py:4 in <module>\n"),
    ("def f(x):\n    class A: pass\n    return x + A()\n",
     "case.py:3: TypeError: an object of type 'A' cannot be an argument of a graph node; use "
     "numbers, strings, tensors, or lists, tuples and dicts of them\n      return x + A()"
     "\n             ^\n"),
    ("def f(x, n):\n    return x * len({n, 1})\n",
     "case.py:2: a graph value cannot be a key of a dict or an item of a "
     "set: its value is not known during capture\n"
     "      return x * len({n, 1})\n                     ^\n"),
    ("def f(x, n):\n    return [1, 2].index(n)\n",
     "case.py:2: this compares containers that hold tensors or graph values, "
     "whose equality is not known during capture; compare the items one by "
     "one\n      return [1, 2].index(n)\n             ^\n"),
    ("def f(x):\n    return [0] * 10**12\n",
     "case.py:2: MemoryError: repeating 1 items 1000000000000 times needs too much memory\n"
     "      return [0] * 10**12\n             ^\n"),
    # What would be done once, during capture, or not as PyTorch does it.
    ("LOG = []\n"
     "def f(x):\n"
     "    LOG.append(1)\n"
     "    return x * len(LOG)\n",
     "case.py:3: cannot change this list, which comes from outside the function: the chang"
     "e would happen once, during capture, not in each call; change a copy (list(...)), re"
     "turn the new value, or keep tensors in buffers\n"
     "      LOG.append(1)\n"
     "      ^\n"),
    ("class C:\n"
     "    n = 0\n"
     "def f(x):\n"
     "    C.n += 1\n"
     "    return x * C.n\n",
     "case.py:4: cannot assign to attribute 'n' of C, which comes from outside the functio"
     "n: the assignment would happen once, during capture, not in each call; return the ne"
     "w value, or keep tensors in buffers of an nn.Module\n"
     "      C.n += 1\n"
     "      ^\n"),
    ("import torch\n"
     "def f(x):\n"
     "    with torch.autocast('cpu', dtype=torch.bfloat16):\n"
     "        return x @ x\n",
     "case.py:3: torch.autocast is not supported: without PyTorch every operation computes"
     " in the dtype of its inputs; convert with .to(dtype), or capture with enabled=False\n"
     "      with torch.autocast('cpu', dtype=torch.bfloat16):\n"
     "           ^\n"),
    ("import torch\n"
     "torch.set_default_dtype(torch.float64)\n",
     "case.py:2: torch.set_default_dtype is not supported: without PyTorch the default dty"
     "pe is float32; pass dtype= where tensors and layers are made\n"
     "  torch.set_default_dtype(torch.float64)\n"
     "  ^\n"),
    ("import torch\n"
     "def f(x):\n"
     "    torch.manual_seed(3)\n"
     "    return x + torch.rand(2)\n",
     "case.py:3: torch.manual_seed cannot be captured: the graph has no call that seeds; s"
     "eed before the model runs (cfx run --seed)\n"
     "      torch.manual_seed(3)\n"
     "      ^\n"),
    ("import collections.abc\n"
     "def f(x):\n"
     "    return x if isinstance(3, collections.abc.Hashable) else -x\n",
     "case.py:3: isinstance() with collections.abc.Hashable is not supported in scripts; n"
     "ame a builtin class, such as list, tuple, dict or torch.Tensor\n"
     "      return x if isinstance(3, collections.abc.Hashable) else -x\n"
     "                  ^\n"),
    ("class Loud:\n"
     "    def __setattr__(self, name, value):\n"
     "        pass\n",
     "case.py:1: classes with __setattr__ are not supported in scripts\n"
     "  class Loud:\n"
     "  ^\n"),
    ("import torch\n"
     "class Net(torch.nn.Module):\n"
     "    def __init__(self):\n"
     "        super().__init__()\n"
     "        self.bn = torch.nn.BatchNorm1d(3)\n"
     "    def forward(self, x):\n"
     "        self.bn.eps = 1.0\n"
     "        return self.bn(x)\n",
     "case.py:8: an attribute of this BatchNorm1d is assigned in forward, and a call of th"
     "e layer would not see it; call the function of torch.nn.functional with the new valu"
     "e instead\n"
     "          return self.bn(x)\n"
     "                 ^\n"),
    ("import functools, torch\n"
     "@functools.cache\n"
     "def noise(n):\n"
     "    return torch.rand(n)\n"
     "class Net(torch.nn.Module):\n"
     "    def forward(self, x):\n"
     "        return x + noise(3)\n",
     "case.py:7: the result of a function with a cache is computed by the graph: it would "
     "be computed in each call, not once; call the function in __init__ and keep its resul"
     "t in a buffer, or remove the cache\n"
     "          return x + noise(3)\n"
     "                     ^\n"),
]
