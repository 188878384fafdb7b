import a.b as c, d
from .. import (e, f as g,)
from ...h import *
@dec(1)
class A(B, metaclass=C, *d, **e):
    x: int = 1
    (y): str
    async def f(self, a, /, b: int = 2, *c: *T, d, e=3, **f) -> None:
        """doc
        string"""
        global g, h
        async with a as b, c: pass
        async for x in y: await z
        return 1, *a
while x:
	break
else:
	continue
try:
    raise a from b
except (A, B) as e: pass
except: pass
else: pass
finally: del a, (b, c[0]), d.e
try: pass
except* A: pass
if a: pass
elif b: pass
else: pass
with (a as b, c,): pass
with (a, b) as c: pass
assert a, b; x = y = z; x += 1; x @= 2
for a, *b in c, d: nonlocal q
type X[T: int = str, *U = *V, **W] = int
