
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
print(math.exp(0), math.sin(0.0), math.cos(0), math.pow(2, 3), math.log2(8), math.log1
def f(x): return x
