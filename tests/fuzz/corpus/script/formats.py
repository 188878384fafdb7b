
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
print(repr("it's"), repr('say "hi"'), repr("a\n\t\\"), repr("\x00\x7f"), repr("é ü"))
print(repr(b"ab\xff"), str(b"x"))
print((1,), (), [], {}, {1: "a", "b": [2]}, {3}, set(), frozenset([1]), slice(1, 2), range(5))
print(range(1, 9, 2), ...)
print(True, None, "s", 1.0, [None, True, 'x', 1.5, (2,)])
print(f"{True} {None} {True:d} {-5:05d} {-3.5:08.2f} {float('inf'):5}")
print(f"{float('nan'):.2f} {-0.0:.1f}")
print(f"{1234.5:,
def f(x): return x
