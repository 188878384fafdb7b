"""Control flow: early exits, else, loops in loops, variables after loops, effects of operands."""
import torch

from . import equal, refused

UP = torch.tensor([1.0, 2.0, 3.0])
DOWN = torch.tensor([-1.0, -2.0, -3.0])
MIXED = torch.tensor([4.0, -2.0, 0.5, -1.0])


@equal(UP, DOWN, MIXED)
def early_returns(x):
    if x.sum() > 5:
        return x
    y = x * 2
    if y.min() < -5:
        return y
    if y.max() > 100:
        return y + 1
    return y - x


@equal((UP, 3), (DOWN, 0), (MIXED, 2))
def returns_from_two_loops(x, n):
    for i in range(n):
        for j in range(3):
            if x[0] * i > j:
                return x * i + j
            x = x + 1
    return -x


@equal((UP, 1), (DOWN, 9), (MIXED, 0))
def break_and_else(x, n):
    for i in range(4):
        if i == n:
            break
        x = x + i
    else:
        x = x * 100
    return x, i


@equal(UP, DOWN, MIXED)
def while_and_else(x):
    n = 0
    while n < 5:
        if x.sum() > 20:
            break
        x = x.abs() + 1
        n += 1
    else:
        x = -x
    return x, n


@equal((UP, 0), (DOWN, 3))
def loop_variable_after_the_loop(x, n):
    i = -1
    for i in range(n):
        x = x + i
    return x * i


@refused((UP, 2), (DOWN, 3))
def loop_variable_unbound_perhaps(x, n):
    for i in range(n):
        x = x + i
    return x * i  # refuse


@equal((UP, 3), (DOWN, 0))
def loop_variable_assigned_inside(x, n):
    for i in range(n):
        i = i * 10
        x = x + i
    return x


@equal((UP, 4), (DOWN, 1))
def continue_in_a_while(x, n):
    i = 0
    while i < n:
        i += 1
        if i % 2:
            continue
        x = x * i
    return x, i


@equal((UP, 2), (DOWN, 5))
def nested_breaks(x, n):
    count = 0
    for i in range(3):
        for j in range(4):
            if i + j == n:
                break
            count += 1
        else:
            count += 100
            continue
        if i == 2:
            break
    else:
        count += 1000
    return x * count


@equal(UP, DOWN)
def short_circuit_effects(x):
    log = []

    def say(v, r):
        log.append(v)
        return r

    a = x.sum() > 0 and say(1, True)
    b = x.sum() > 0 or say(2, False)
    return x, len(log), bool(a), bool(b)


@equal(UP, DOWN, MIXED)
def chained_comparison_once(x):
    calls = []

    def middle():
        calls.append(1)
        return x.sum()

    inside = -1 < middle() < 3
    return inside, len(calls)


@equal((1, 2, 3), (3, 2, 1), (1, 3, 2))
def chained_comparisons(a, b, c):
    return a < b < c, a < b > c, a != b != c, a == a < b, not a < b, a < b in (2, 3)


@equal(UP, DOWN)
def walrus_in_a_condition(x):
    if (s := x.sum()) > 0 and (m := x.max()) > 2:
        return s * m
    return s


@equal((UP, 7), (DOWN, 0))
def walrus_in_a_while(x, n):
    k = n
    while (k := k - 2) > 0:
        x = x + k
    return x, k


@equal(UP, DOWN)
def walrus_in_a_comprehension(x):
    last = None
    ys = [last := v * 2 for v in (1, 2, 3)]
    return x * last, ys


@equal(UP, DOWN)
def conditional_expression_with_effects(x):
    items = [1, 2, 3]
    y = x * items.pop() if x.sum() > 0 else x + items.pop(0)
    return y, len(items), items[0]


@equal(UP, DOWN, MIXED)
def nested_conditional_expressions(x):
    return x if x.sum() > 3 else (x * 2 if x.min() < -2.5 else x * 3 if x.max() > 3 else x * 4)


@equal((UP, 0), (DOWN, 3))
def loop_over_a_changing_list(x, n):
    todo = [1]
    done = 0
    while todo:
        k = todo.pop()
        done += k
        if k < 3:
            todo.append(k + 1)
    return x * done + n


@equal((UP, 0), (DOWN, 3), (MIXED, 1))
def match_on_a_number(x, n):
    match n:
        case 0:
            return x
        case 1 | 2:
            return x * 2
        case k if k > 2:
            return x * k
    return -x


@equal(UP, DOWN)
def match_on_a_structure(x):
    match {"a": [1, 2], "b": x}:
        case {"a": [1, *rest], **others}:
            return x * rest[0], list(others)
        case _:
            return x, []


@equal((UP, 2), (DOWN, 0))
def recursion_on_a_static_depth(x, n):
    def deep(v, d):
        if d == 0:
            return v
        return deep(v * 2, d - 1)

    return deep(x, 3) + n


@equal(UP, DOWN)
def branch_in_a_comprehension(x):
    return [v if v > 0 else -v for v in (1, -2, 3)], [t * 2 if t > 0 else t for t in x]


@equal(UP, DOWN, MIXED)
def condition_in_a_comprehension(x):
    return [t * 2 for t in x if t > 0], len([t for t in x if t < 0])


@equal(UP, DOWN)
def any_stops(x):
    seen = []

    def test(v):
        seen.append(v)
        return v > 1

    found = any(test(v) for v in (0, 2, 3))
    return x, found, len(seen)


@equal(UP, DOWN, MIXED)
def any_of_data(x):
    return any(v > 2 for v in x), all(v > 0 for v in x), any(x > 2), all([])


@equal((UP, 3), (DOWN, 0))
def nested_function_returns_early(x, n):
    def find(v):
        for i in range(n):
            if v[0] + i > 2:
                return i
        return -1

    return x * find(x)


@equal((UP, True), (DOWN, False))
def flag_decides(x, flag):
    if flag:
        x = x * 2
    if not flag:
        x = x * 3
    return x + 1 if flag else x


@equal((UP, None), (DOWN, UP), (DOWN, DOWN))
def none_or_tensor(x, y):
    if y is None:
        return x
    return x + y


@equal((UP, 1), (DOWN, "a"), (DOWN, 2.5), (UP, None))
def type_of_an_input(x, n):
    if isinstance(n, str):
        return x * len(n)
    if isinstance(n, (int, float)):
        return x * n
    return x


@equal(UP, DOWN, MIXED)
def del_in_a_branch(x):
    y = x * 2
    if x.sum() > 0:
        del y
        y = x
    return y


@refused(UP, DOWN)
def bound_on_one_way(x):
    if x.sum() > 0:
        y = x * 2
    return y  # refuse


@equal(UP, DOWN)
def bound_on_one_way_and_used_there(x):
    if x.sum() > 0:
        y = x * 2
        x = y + 1
    return x


@equal((UP, 3), (DOWN, 1))
def zero_step_and_negative_ranges(x, n):
    total = 0
    for i in range(n, -1, -1):
        total += i
    for i in range(2, n):
        total *= 2
    return x * total


@equal((UP, 0), (DOWN, 2))
def loop_over_tuples(x, n):
    for i, (a, b) in enumerate([(1, 2), (3, 4)], start=n):
        x = x * a + b * i
    return x


@equal(UP, DOWN, MIXED)
def while_true(x):
    while True:
        x = x.abs() * 1.5
        if x.sum() > 50:
            return x
        if x.max() > 40:
            break
    return -x


@equal(UP, DOWN, MIXED)
def loop_with_two_exits_and_state(x):
    items = []
    best = None
    for i, v in enumerate(x):
        if v < -2:
            break
        if v > 2:
            continue
        items.append(i)
        best = v
    return x, len(items), items


@equal((UP, 5), (DOWN, 0))
def counts_down(x, n):
    while n:
        x, n = x + n, n - 1
    return x, n


@equal(UP, DOWN)
def tuple_comparison(x):
    return (1, 2) < (1, 3), [1, 2] == [1, 2], (1,) + (2,) * 2, x


@equal((UP, 2), (DOWN, 0), (MIXED, 3))
def index_by_data(x, i):
    items = [x, x * 2, x * 3, x * 4]
    return items[i], items[-1 - i], items[i:][0], items[:i]


@equal(UP, DOWN, MIXED)
def truth_of_many_kinds(x):
    n = 0
    for v in (0, 1, "", "a", [], [0], None, 0.0, (), {}, {1}):
        if v:
            n += 1
    return x * n


@equal(UP, DOWN)
def truth_of_a_tensor(x):
    if x[0]:
        x = x + 1
    return x if (x > 0).all() else -x


@equal(UP, DOWN, MIXED)
def truth_of_several_elements(x):
    if x.shape[0] == 3:
        return x
    return x if x > 0 else -x


@equal((UP, [UP, DOWN]), (DOWN, []))
def for_over_an_input_list(x, items):
    for i, t in enumerate(items):
        x = x + t * i
    else:
        x = x * 2
    return x


@equal((UP, 4), (DOWN, 2))
def fibonacci(x, n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return x * a


@equal(UP, DOWN)
def lambda_with_a_branch(x):
    f = lambda v: v * 2 if v.sum() > 0 else v * 3  # noqa: E731
    return f(f(x))


@equal(UP, DOWN, MIXED)
def partial_updates_then_return(x):
    y = x.clone()
    y[0] = 100
    if x.sum() > 3:
        return y
    y[1] = 200
    if x.min() < -2:
        y[2] = 300
        return y
    return y * 2
