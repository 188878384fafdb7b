
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
print(isi
def f(x): return x
