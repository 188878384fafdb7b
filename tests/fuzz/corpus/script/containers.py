
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
print(x, y, z, t[0], t[-1], t.index("b"), t.count(1), t + (4,),
def f(x): return x
