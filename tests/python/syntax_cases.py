"""Each construct of Python: expressions by lines, statements between lines of ---."""

EXPRESSIONS = """
a
_
None, True, False, ...
()
(a)
(a,)
a, b,
(a, *b)
*a, b
[a, *b, c]
[]
{}
{a}
{a, *b, c}
{a: b, **c, d: e,}
{(a := 1): 2, **b}
{(yield): 1}
[a for b in c]
[a for b, *c in d if e if f for g in h]
[a async for b in c]
{a for b in c}
{a: b for c in d}
(a for b in c)
[(a := b) for c in d]
[a := 1, b]
a if b else c if d else e
(a if b else c) if d else e
lambda: 0
lambda a, b=1, /, c=2, *d, e, f=3, **g: a
lambda *a, b: lambda **k: 1
lambda a, /: a
a or b and not c
not not a
a or b or c and d and e
a < b <= c != d == e > f >= g
a in b not in c is d is not e
a + b - c * d / e // f % g @ h
a << b >> c & d ^ e | f
-a ** -b ** +c
~-+a
(-a) ** 2
await a ** 2
-await a.b
a.b.c
(a).b
a()
a(b, *c, d, e=f, *g, **h, i=j)
a(b for c in d)
a(b, (c for d in e))
a(b := 1, c=(d := 2))
a(*b or c, **d if e else f)
a(b,)(c)(d)
a[b]
a[b, c]
a[b,]
a[:]
a[b:c:d, ::e, :f]
a[*b]
a[*b, c:d]
a[b := 1]
a[(b := 1):2]
a[b:c].d[e](f)
1, 0, 00, 1_000, 0xFF, 0o17, 0b101, 0x_f
9223372036854775807, 9223372036854775808, 123456789012345678901234567890
0xffffffffffffffffffffffff, 0b1111111111111111111111111111111111111111111111111111111111111111111
1.5, 1., .5, 1e10, 1E-5, 1_0.0_1e+1_0, 1e400, 5e-324, 0777.5
1j, 1.5J, 1e400j, 0777j
1if a else 2
1 .real, 1..real, 1.0.real
'a', "b", '''c''', '\"', "'"
'\\n\\t\\\\\\'\\"\\a\\b\\f\\v\\r\\0\\101\\x41\\u00e9\\U0001f600'
'\\d \\
e'
r'\\d\\'', R"\\n"
b'a\\xff\\0\\101\\u1', rb'\\d', Rb"\\x", bR'', b'\\400'
u'a', u'a' 'b', 'a' u'b', U"x"
'a' "b" '''c'''
b'a' b"b"
'\\ud800\\udc00', '\\ud800'
'é' 'ü', "日本"
été + 变量
f'a', f'{a}', f'a{b}c{d}', F'', fR'\\d{a}', Rf"{a}"
f'{a!r}{b!s:x}{c!a:{d}}', f'{a:>{b}.{c}}', f'{a = }{b=!r}{c=:x}'
f'{{}}{{a}}}}{{{b}}}', f'{a:{b}x{c}}'
f'{a[1:2]}{b(c=d)}{ {1: 2}[1] }', f'{a!=b}{(lambda: 1)()}', f'{a if b else c}', f'{a,b}'
f'a' 'b' f'{c}', 'a' f'{b}' 'c'
f'''{a}
b{c:
}d'''
(yield)
(yield a), (yield a, *b), (yield from c)
(a
 +
 b  # comment

 )
a + \\
 b
"""

STATEMENTS = """
a = 1
---
a = b = c, d = *e, f = g
---
(a, [b, *c], d.e, f[0]) = x
---
[a, b] = c
---
*a, = b
---
a: int
---
a: int = 1
---
(a): int = 1
---
a.b: c = yield
---
a[0]: d = *e, f
---
a += 1; b -= 2; c *= 3; d /= 4; e //= 5; f %= 6; g @= 7; h **= 8
a <<= 1; b >>= 2; c &= 3; d |= 4; e ^= yield; f += 1, 2
---
a; b;
---
pass; break; continue
---
return
return a
return a, *b
---
raise
raise a
raise a from b
---
assert a
assert a, b
---
del a
del a, b.c, d[0],
del (a, b), [c, (d)], ()
---
global a, b
nonlocal c
---
import a
import a.b.c as d, e
---
from a import b
from a.b import c as d, e
from . import a
from ... import a
from .... a . b import (c, d as e,)
from a import *
---
if a: b
---
if a: b; c;
---
if a:
    b
elif c:
    d
elif e: f
else:
    g
---
if a:
    if b:
        c

    # comment
  # comment
    else: d
else:
    e
---
while a:
    b
else:
    c
---
while (a := b): pass
---
for a in b: pass
---
for a, *b in c, *d:
    e
else:
    f
---
for (a) in b: pass
---
for a.b, c[0] in d: pass
---
for [a, b] in c: pass
---
with a: pass
---
with a as b, c as (d, e), f as g.h: pass
---
with (a): pass
---
with (a, b): pass
---
with (a, b) as c: pass
---
with (a as b, c as d,): pass
---
with (a, b).c as d, e: pass
---
with (yield): pass
---
with (a := b, c): pass
---
with (a for b in c): pass
---
with (*a, b): pass
---
with (): pass
---
with (a), (b): pass
---
with (a) + (b): pass
---
with (lambda *a: 1, b): pass
---
with a(b)(c) as d: pass
---
try: a
except: b
---
try:
    a
except A:
    b
except (B, C) as d: e
except:
    f
else:
    g
finally:
    h
---
try: a
finally: b
---
try: a
except* A as b: c
except* B: d
---
def f(): pass
---
def f(a, b: int, c=1, d: int = 2, *e: int, f, g=3, h: int = 4, **i: int) -> int: return a
---
def f(a, /): pass
---
def f(a, b=1, /, c=2, *, d, e=3): pass
---
def f(*, a): pass
---
def f(*a: *b): pass
---
def f(
    a,
    *b,
    **c,
): pass
---
@a
@b.c(d)
@(e := f)
def g(): pass
---
async def f():
    async with a as b: pass
    async for c in d: pass
    await e
    return [f async for f in g]
---
@a
async def f(): yield
---
class A: pass
---
class A(): pass
---
@a
class A(B, *c, metaclass=D, **e):
    "doc"
    def f(self):
        return self
---
match a:
    case 1: pass
---
match a, *b:
    case -1 | 2.5 | -3j | 1 + 2j | -1.5 - 2j: pass
    case 'a' 'b' | b'c': pass
    case None | True | False: pass
    case a.b.c: pass
    case _: pass
    case x: pass
    case _ as y: pass
    case (1 | 2) as z if z > 1: pass
    case []: pass
    case (): pass
    case (a): pass
    case (a,): pass
    case [a, *b, c]: pass
    case a, *_: pass
    case *a, b: pass
    case a,: pass
    case {}: pass
    case {'a': 1, b.c: d, -1: e, None: f, **rest}: pass
    case {1 + 2j: a,}: pass
    case {**rest}: pass
    case A(): pass
    case A.B(1, c, d=2, e=f,): pass
    case A(b=[*_]) | {'a': (c | d)}: pass
    case (A() as b), c: pass
---
match (a, b):
    case _:
        match c:
            case d: pass
        e
---
match -a:
    case _: pass
---
match [a]:
    case _: pass
---
match not a:
    case _: pass
---
match *a, b:
    case _: pass
---
match a := b:
    case _: pass
---
match = 1; match.a; match(b); match[c]; match - 1; match * 2, match not in a; print(match)
---
match: int
---
case = type = _ = 1; type(a); case(b); type.c; type[d]; type, case
---
match(a)[b] = c
---
if a:
        b
        if c:
                d
---
if a:
\tb
\tif c:
\t    d
---
if a:
    b
    \x0c
\x0c
    c
---
x = 1 # comment
# comment
   # comment

y = '''
# no comment
''' ; z
---
\\
a = \\
  1
---
if a:
    x = [
1,
  2]
    y
---
def f():
    '''doc
    string'''; a
---
x = '''a
b''' + '''c
d'''
---
a = b'''x
y'''
"""
