
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

def f(x): return x
