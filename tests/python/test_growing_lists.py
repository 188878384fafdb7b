"""Lists that loops append to: the time is linear, and no other list changes."""
import time

import pytest

torch = pytest.importorskip("torch")
import cfx  # noqa: E402


def appended(x, n):
    out = []
    i = 0
    while x.sum() + i < n:
        out.append(i)
        i += 1
    return out


def extended(x, n):
    out = [x]
    for i in range(n):
        out += [i, i * 2]
    return out


def kept(x, n):
    out, keep, sizes, i = [x], [], [], 0
    while x.sum() + i < n:
        old = out
        out = out + [i]
        sizes = sizes + [len(old)]
        if i == 2:
            keep = old
        i += 1
    return out, keep, sizes


def twice(x, n):
    a, i = [0], 0
    b = a
    while x.sum() + i < n and i < 5:
        b = a
        a = a + a
        i += 1
    return a, b


def inside(x, n):
    out, i = [], 0
    while x.sum() + i < n:
        out.append([i, []])
        i += 1
    return out, out


def chosen(x, n):
    out, i = [], 0
    while x.sum() + i < n:
        if x.sum() + i > 2:
            out.append(i)
        i += 1
    return out


def shared(x, n):
    """The list of each turn is kept by another one."""
    out, all_, i = [], [], 0
    while x.sum() + i < n:
        out = out + [i]
        all_ = all_ + [out]
        i += 1
    return all_


def nested(x, n):
    out = []
    for i in range(n):
        for k in range(i):
            out.append(k)
        out.append(-i)
    return out


def chosen_and_kept(x, n):
    """One of the branches keeps the list as it was."""
    out, old, i = [], [], 0
    while x.sum() + i < n:
        if x.sum() + i > 2:
            old = out
            out = out + [i]
        else:
            out = out + [-i]
        i += 1
    return out, old


@pytest.mark.parametrize("function", [appended, extended, kept, twice, inside, chosen, shared,
                                      nested, chosen_and_kept])
def test_results(function):
    module = cfx.script(function)
    ways = [module, cfx.lower(module), cfx.Interpreter(module).run]
    for n in (0, 1, 2, 3, 7, 20):
        for way in ways:
            for _ in range(2):
                assert str(way(torch.zeros(1), n)) == str(function(torch.zeros(1), n))


def test_a_list_of_the_caller_is_left_alone():
    graph = cfx.parse("""graph():
  %x = placeholder[target=x]()
  %loop = call_function[target=cfx.for_loop](3, graph {
      %i = placeholder[target=i]()
      %out = placeholder[target=out]()
      %add = call_function[target=operator.add](%out, [%i])
      output((%add,))
    }, (%x,))
  %getitem = call_function[target=operator.getitem](%loop, 0)
  output((%getitem, %x))
""")
    module = cfx.GraphModule({}, graph)
    for way in (module, cfx.lower(module), cfx.Interpreter(module).run):
        mine = [7]
        assert str(way(mine)) == "([7, 0, 1, 2], [7])" and mine == [7]
    assert "+=" not in module.code


@pytest.mark.parametrize("collect", [True, False])
def test_values_that_the_interpreter_keeps_do_not_change(collect):
    """A list grows in place only if its last use is over and nobody else has it."""
    graph = cfx.parse("""graph():
  %x = placeholder[target=x]()
  %a = call_function[target=builtins.list](%x)
  %b = call_function[target=operator.add](%a, [1])
  %c = call_function[target=operator.add](%b, [2])
  output(%c)
""")
    _, a, b, c, _ = graph.nodes
    module = cfx.GraphModule({}, graph)
    interpreter = cfx.Interpreter(module, garbage_collect_values=collect)
    assert interpreter.run((0,)) == [0, 1, 2]
    if not collect:
        assert [interpreter.env[n] for n in (a, b, c)] == [[0], [0, 1], [0, 1, 2]]
    held = [5]
    assert interpreter.run((0,), initial_env={a: held}) == [5, 1, 2] and held == [5]

    class Keeps(cfx.Interpreter):
        def run_node(self, n):
            self.seen.append(super().run_node(n))
            return self.seen[-1]

    keeps = Keeps(module)
    keeps.seen = []
    keeps.run((0,))
    assert keeps.seen[1:4] == [[0], [0, 1], [0, 1, 2]]


def seconds(way, n):
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        way(torch.zeros(1), n)
        best = min(best, time.perf_counter() - start)
    return best


def test_time_is_linear():
    """`extended` spends next to no time on anything but its list."""
    module = cfx.script(extended)
    for way in (module, cfx.lower(module), cfx.Interpreter(module).run):
        way(torch.zeros(1), 10)
        assert seconds(way, 100_000) < 50 * max(seconds(way, 10_000), 2e-3)  # not 100


def sometimes(x, n):
    out = []
    for i in range(n):
        if i % 3 > 0:
            out.append(i)
    return out


def test_time_is_linear_in_branches():
    module = cfx.script(sometimes)
    for way in (module, cfx.lower(module)):
        assert way(torch.zeros(1), 7) == sometimes(torch.zeros(1), 7)
        assert seconds(way, 50_000) < 25 * max(seconds(way, 5_000), 2e-3)  # not 100


def alias_in_a_branch(x, n):
    """After a turn of the first branch `old` is the list itself, which must not grow then."""
    out, old, i = [], [], 0
    while x.sum() + i < n:
        if x.sum() + i == 3:
            old = out
        else:
            out = out + [i]
        i += 1
    return out, old


def other_list_in_a_branch(x, n):
    """One branch goes on with a list that is kept elsewhere, too."""
    out, other, i = [], [x.sum()], 0
    while x.sum() + i < n:
        if x.sum() + i == 3:
            out = other
        else:
            out = out + [i]
        i += 1
    return out, other


def asks_in_a_branch(x, n):
    out, count, i = [], 0, 0
    while x.sum() + i < n:
        if x.sum() + i > 2:
            out.append(i)
            if x.sum() + i > 4:
                out.append(-i)
        else:
            count += len(out)
        i += 1
    return out, count


@pytest.mark.parametrize("function", [alias_in_a_branch, other_list_in_a_branch, asks_in_a_branch])
def test_lists_of_branches(function):
    module = cfx.script(function)
    again = cfx.script(module)
    for way in (module, again, cfx.lower(module), cfx.Interpreter(module).run):
        for n in (0, 1, 3, 4, 5, 9):
            assert str(way(torch.zeros(1), n)) == str(function(torch.zeros(1), n))
