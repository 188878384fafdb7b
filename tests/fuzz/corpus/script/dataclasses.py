
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

def f(x): return x
