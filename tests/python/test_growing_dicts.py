"""Dicts that loops add keys to: the time is linear in Python, and no other dict changes. What they
do otherwise, the programs of hostile/data_keys.py and programs/data_keys.py show."""
import time

import cfx
import pytest

torch = pytest.importorskip("torch")


def filled(n: int):
    d = {}
    for i in range(n):
        d[i * 2] = i
    return d


def counted(n: int):
    d = {}
    for i in range(n):
        d[i // 2] = d.get(i // 2, 0) + 1
    return d


def kept(n: int):
    d, before, keys = {}, {}, []
    for i in range(n):
        before = d
        d = d | {i: 1}
        keys = list(before)
    return d, before, keys


def looked_at(n: int):
    d, sizes = {}, []
    for i in range(n):
        items = d.items()
        d[i] = 1
        sizes.append(len(items))
    return d, sizes


@pytest.mark.parametrize("function", [filled, counted, kept, looked_at])
def test_results(function):
    module = cfx.script(function)
    for way in (module, cfx.lower(module), cfx.Interpreter(module).run):
        for n in (0, 1, 2, 7):
            for _ in range(2):
                assert str(way(n)) == str(function(n))


def test_items_are_added_in_place():
    assert "|=" in cfx.script(filled).code and "|=" in cfx.script(counted).code
    assert "|=" not in cfx.script(kept).code


def test_a_dict_of_the_caller_is_left_alone():
    graph = cfx.parse("""graph():
  %d = placeholder[target=d]()
  %loop = call_function[target=cfx.for_loop](3, graph {
      %i = placeholder[target=i]()
      %out = placeholder[target=out]()
      %dict = call_function[target=builtins.dict]([(%i, 0)])
      %or = call_function[target=operator.or_](%out, %dict)
      output((%or,))
    }, (%d,))
  %getitem = call_function[target=operator.getitem](%loop, 0)
  output((%getitem, %d))
""")
    module = cfx.GraphModule({}, graph)
    for way in (module, cfx.lower(module)):
        mine = {7: 7}
        assert str(way(mine)) == "({7: 7, 0: 0, 1: 0, 2: 0}, {7: 7})" and mine == {7: 7}
    assert "|=" not in module.code


def seconds(n, module):
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        module(n)
        best = min(best, time.perf_counter() - start)
    return best


def test_time_is_linear():
    module = cfx.script(counted)
    module(10)
    assert seconds(100_000, module) < 50 * max(seconds(10_000, module), 1e-2)  # not 100


def view_kept(d: dict, k: int):
    keys = d.keys()
    d[k] = 1
    return len(keys)


def view_returned(d: dict):
    return d.keys()


@pytest.mark.parametrize("function", [view_kept, view_returned])
def test_views_that_may_change_are_not_lowered(function):
    """A view of an input shows it later as it is then: lists, which C has, would not."""
    module = cfx.script(function)
    given = ({5: 0}, 3)[:function.__code__.co_argcount]
    assert str(module(*given)) == str(function(*({5: 0}, 3)[:function.__code__.co_argcount]))
    with pytest.raises(cfx.LowerError, match="views of a dict"):
        cfx.lower(module)


def missing(x, k: str):
    return {"a": x, k: x + 1}["b"]


def test_a_missing_key_is_named():
    module = cfx.script(missing)
    for way in (module, cfx.lower(module)):
        assert way(torch.ones(1), "b") == 2
        with pytest.raises(KeyError, match="'b'"):
            way(torch.ones(1), "c")
