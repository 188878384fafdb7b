x = a if b else lambda *a, b=1, **k: (yield)
y = [i async for i in j if k if l] + {a: b, **c} | {*a, 1} ^ {a: b for a in c}
z = not a is not b not in c < d <= e == f != g
w = -x ** +y // ~z % 1 << 2 >> 3 & 4 @ 5
v = f(a, *b, c=1, **d)(x for x in y)[1:2, ::3, ...].e
u = (a := 1, (), (1,), [*a, b])
t = 0xff_ff + 0b1 + 0o7 + 1_0.5e-3 + 1e5j + .5 + 12345678901234567890123
s = "a\n\x41\u00e9\101\
b" 'c' r'\d' u'x'
r = b'\xff' rb"\x"
q = None, True, False, ...
