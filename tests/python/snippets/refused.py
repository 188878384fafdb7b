"""Small functions of a tensor that cannot be captured. The line that the message is to name ends
with `# refused: ` and what the message is to say; test_script_static.py reads that."""
# ruff: noqa
import torch


def generator(x):
    def g():
        yield x  # refused: a generator (yield)
    return list(g())


def asynchronous(x):
    async def f(): return 1  # refused: asynchronous function
    return f()


def async_comprehension(x):
    async def f(y):  # refused: asynchronous function
        return [i async for i in y]
    return f(x)


def writes_global(x):
    global written
    written = x  # refused: cannot assign to the global variable 'written'
    return x


def star_in_call(x):
    return max(*x)  # refused: the number of items in this value


def one_side(x):
    if x.sum() > 0:
        y = x
    return y  # refused: 'y' is assigned in line 36 only in a branch


def endless(x):
    def f(n):
        return f(n + 1)  # refused: calls are nested more than 200 deep
    return f(0)


def leaves_try(x):
    y = 1
    try:  # refused: this try statement is left early
        if x.sum() > 0: return x
    except ValueError:
        y = 2
    return y


def raises_in_try(x):
    y = 1
    try:
        if x.sum() > 0:
            raise ValueError("a")  # refused: this may raise depending on data
    except ValueError:
        y = 2
    return y


def raises_in_call_in_try(x):
    def f(v):
        if v.sum() > 0:
            raise ValueError("a")  # refused: this may raise depending on data
        return v
    try:
        return f(x)
    except ValueError:
        return -x


def asserts_in_try(x):
    try:
        assert x.sum() > 0  # refused: this may raise depending on data
    except AssertionError:
        x = -x
    return x


def metaclass(x):
    class A(metaclass=type): pass  # refused: a class with keyword arguments
    return x


def with_data(x):
    with x:  # refused: a graph value cannot be used as a context manager
        return 1


def match_length(x):
    match x.nobody_knows:
        case [a, b]: return a  # refused: the type of this value
    return x


def match_either(x):
    match x.shape:
        case (1, n) | (n, 2): return n  # refused: which of these patterns matches
    return x


def keys_in_call(x):
    def f(**k): return k
    return f(**x)  # refused: the keys of this graph value


def match_keys(x):
    match x:
        case {"a": b}: return b  # refused: the content of this value
    return x


def except_star(x):
    try: return x  # refused: 'except*' cannot be captured
    except* ValueError: pass


def filter_data(x):
    return list(filter(lambda v: v > 0, [x.sum(), x.max()]))  # refused: which items filter() keeps


def type_of_unknown(x):
    return type(x.nobody_knows)  # refused: the type of this value
