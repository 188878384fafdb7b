"""Loops that a turn can leave: generated code says `break` and `continue`, and is captured again as
the same graph."""
import re

import cfx
import pytest
import torch
from script_checks import is_same


def until(x):
    while True:
        x = x * 2
        if x.sum() > 10:
            break
        x = x + 1
    return x


def counted(x, n: int):
    for i in range(n):
        if x.sum() > 10:
            break
        x = x + i
    return x


def known_count(x):
    for i in range(40):
        x = x + i
        if x.sum() > 50:
            break
    return x


def while_small(x):
    while x.sum() < 20:
        x = x + 1
        if x.max() > 3:
            x = x * 2
            break
    return x


def asked_by_a_variable(x):
    small = x.sum() < 20
    while small:
        x = x + 1
        if x.max() > 5:
            break
        small = x.sum() < 20
    return x


def goes_on(x, limit: float):
    picked = torch.full((), -1.0)
    for value in x:
        if value <= 0:
            continue
        picked = value
        if value > limit:
            break
    return picked


def nested(x, n: int):
    for _ in range(n):
        for j in range(n):
            if x[j] > 2:
                break
            x = x + j
        if x.sum() > 10:
            break
    return x


def three_ways(x, n: int):
    y = x
    for _ in range(n):
        if x.sum() > 10:
            y = x * 3
            break
        if x.sum() < -10:
            y = x - 1
            break
        x, y = x * 2, x
    return x, y


def swaps(x, y):
    while x.sum() < 30:
        x, y = y, x + y
        if y.max() > 5:
            x, y = y, x
            break
    return x, y


def grows(x, n: int):
    out = []
    for i in range(n):
        x = x + i
        out.append(x)
        if x.sum() > 10:
            break
    return out


LONG = torch.arange(-2.0, 6.0)
PROGRAMS = {
    until: ((torch.ones(3),), (torch.full((2,), 6.0),)),
    counted: ((torch.ones(3), 0), (torch.ones(3), 9), (torch.ones(3), 2), (LONG * 9, 3)),
    known_count: ((torch.ones(3),), (-LONG * 20,)),
    while_small: ((torch.ones(3),), (torch.full((2,), 30.0),), (-LONG,)),
    asked_by_a_variable: ((torch.ones(3),), (torch.full((2,), 30.0),), (-LONG,)),
    goes_on: ((LONG, 2.0), (LONG, 90.0), (-LONG, 0.0), (LONG[:0], 1.0)),
    nested: ((torch.ones(3), 3), (torch.ones(3), 0), (-torch.ones(3), 3)),
    three_ways: ((torch.ones(3), 9), (-torch.ones(3), 9), (torch.ones(3), 1), (LONG, 0)),
    swaps: ((torch.ones(2), torch.zeros(2)), (torch.ones(2), LONG[4:6]), (LONG * 9, LONG)),
    grows: ((torch.ones(3), 0), (torch.ones(3), 9), (torch.ones(3), 2)),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_break(program):
    module = cfx.script(program)
    assert "break" in module.code and not re.search(r"\bgo\b|>= 2", module.code)
    for inputs in PROGRAMS[program]:
        assert is_same(module(*inputs), program(*inputs))
    again = cfx.script(module)
    assert [re.sub("  @ .*", "", cfx.text(g.graph)) for g in (module, again)] == [
        re.sub("  @ .*", "", cfx.text(module.graph))] * 2


def code(program):
    return cfx.script(program).code.strip()


def test_text():
    assert code(counted) == """\
def forward(self, x, n : int):
    for i in range(n):
        if x.sum() > 10:
            break
        x = x + i
    return x"""
    assert code(while_small) == """\
def forward(self, x):
    while x.sum() < 20:
        add = x + 1
        if add.max() > 3:
            x = add * 2
            break
        x = add
        add = None
    return x"""
    assert code(goes_on) == """\
def forward(self, x, limit : float):
    picked = torch.full((), -1.0)
    len_1 = len(x)
    for i in range(len_1):
        getitem_1 = x[i]
        if getitem_1 <= 0:
            continue
        if getitem_1 > limit:
            picked = getitem_1
            break
        picked = getitem_1
        getitem_1 = None
    return picked"""


# The same loop, from its text, with one thing changed.
LOOP = """graph():
  %x = placeholder[target=x]()
  %n = placeholder[target=n]()
  %gt = call_function[target=operator.gt](%n, 0)
  %while_loop = call_function[target=cfx.while_loop](graph {
      %x = placeholder[target=x]()
      %i = placeholder[target=i]()
      %go = placeholder[target=go]()
      %n = placeholder[target=n]()
      output(%go)
    }, graph {
      %x = placeholder[target=x]()
      %i = placeholder[target=i]()
      %go = placeholder[target=go]()
      %n = placeholder[target=n]()
      %sum = call_method[target=sum](%x)
      %gt = call_function[target=operator.gt](%sum, 10)
      %cond = call_function[target=cfx.cond](%gt, graph {
          %x = placeholder[target=x]()
          %i = placeholder[target=i]()
          output((%x, 2))
        }, graph {
          %x = placeholder[target=x]()
          %i = placeholder[target=i]()
          %add = call_function[target=operator.add](%x, %i)
          output((%add, 0))
        }, (%x, %i))
      %getitem = call_function[target=operator.getitem](%cond, 0)
      %code = call_function[target=operator.getitem](%cond, 1)
      %add = call_function[target=operator.add](%i, 1)
      %ge = call_function[target=operator.ge](%code, 2)
      %cond_1 = call_function[target=cfx.cond](%ge, graph {
          %add = placeholder[target=add]()
          %n = placeholder[target=n]()
          output(False)
        }, graph {
          %add = placeholder[target=add]()
          %n = placeholder[target=n]()
          %lt = call_function[target=operator.lt](%add, %n)
          output(%lt)
        }, (%add, %n))
      output((%getitem, %add, %cond_1, %n))
    }, (%x, 0, %gt, %n))
  %getitem = call_function[target=operator.getitem](%while_loop, 0)
  output(%getitem)
"""
CHANGES = {
    "nothing": ("", ""),
    "the counter is read": ("(%while_loop, 0)", "(%while_loop, 1)"),
    "go is read": ("(%while_loop, 0)", "(%while_loop, 2)"),
    "it begins elsewhere": ("(%x, 0, %gt", "(%x, 1, %gt"),
    "it steps by two": ("(%i, 1)", "(%i, 2)"),
    "another test": ("operator.lt](%add, %n)", "operator.le](%add, %n)"),
    "another first test": ("operator.gt](%n, 0)", "operator.gt](%n, 1)"),
    "the number is read": ("output((%getitem, %add, %cond_1, %n))",
                           "%sub = call_function[target=operator.add](%getitem, %code)\n"
                           "      output((%sub, %add, %cond_1, %n))"),
    "another number": ("(%code, 2)", "(%code, 3)"),
    "a number that is not known": ("output((%add, 0))", "output((%add, %i))"),
    "it always leaves": ("output((%add, 0))", "output((%add, 2))"),
    "never leaves": ("output((%x, 2))", "output((%x, 0))"),
    "go is used in the turn": ("      %sum = ",
                               "      %not = call_function[target=operator.not_](%go)\n"
                               "      %sum = "),
    "leaves otherwise": ("output(False)", "output(True)"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_only_where_it_is_that(change):
    old, new = CHANGES[change]
    assert old in LOOP
    graph = cfx.parse(LOOP.replace(old, new) if old else LOOP)
    module = cfx.GraphModule(torch.nn.Module(), graph)
    assert ("for i in range(n):" in module.code) == (old == new)
    for x, n in ((torch.ones(3), 0), (torch.ones(3), 1), (torch.ones(3), 3), (LONG * 2, 2)):
        if change != "leaves otherwise" or x.sum() < 10:
            assert is_same(module(x, n), cfx.Interpreter(module).run(x, n))
