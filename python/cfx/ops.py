"""Control flow as operators: the regions of a graph are arguments of these functions.

Called directly they run: a region may be any callable or a Graph.
"""


def _call(region, operands):
    from .graph import Graph

    if isinstance(region, Graph):
        from ._evaluate import evaluate

        return evaluate(region, *operands)
    return region(*operands)


def cond(pred, then, otherwise, operands=()):
    """`then(*operands)` if `pred` holds, else `otherwise(*operands)`."""
    return _call(then if pred else otherwise, operands)


def while_loop(test, body, state):
    """`state = body(*state)` as long as `test(*state)` holds; returns the last state, a tuple."""
    state = tuple(state)
    while _call(test, state):
        state = tuple(_call(body, state))
    return state


def for_loop(count, body, state):
    """`state = body(i, *state)` for i in range(count); returns the last state, a tuple."""
    state = tuple(state)
    for i in range(int(count)):
        state = tuple(_call(body, (i, *state)))
    return state


for _function in (cond, while_loop, for_loop):
    _function.__module__ = "cfx"  # how the operator table and generated code name them
