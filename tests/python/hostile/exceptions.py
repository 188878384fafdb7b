"""Exceptions: handlers, suppress, finally, raise from, nested ones; raised by data or always."""
import contextlib

import torch
from torch import nn

from . import equal, refused

UP = torch.tensor([1.0, 2.0, 3.0])
DOWN = torch.tensor([-1.0, -2.0, -3.0])
REGULAR = torch.eye(3) * 2
SINGULAR = torch.zeros(3, 3)


# ---- handlers around calls that may raise when the graph runs ------------------------------------


@refused(REGULAR, SINGULAR)
def catches_linalg_error(x):
    try:
        y = torch.linalg.inv(x)
    except torch.linalg.LinAlgError:  # refuse
        y = torch.zeros_like(x)
    return y


@refused(REGULAR, SINGULAR)
def catches_cholesky(x):
    try:
        return torch.linalg.cholesky(x)
    except torch._C._LinAlgError:  # refuse
        return x


@refused(REGULAR, SINGULAR)
def catches_runtime_error(x):
    try:
        y = torch.linalg.inv(x)
    except RuntimeError:  # refuse
        y = x
    return y


@refused(REGULAR, SINGULAR)
def catches_exception(x):
    try:
        y = torch.linalg.inv(x)
    except Exception:  # refuse
        y = x
    return y


@refused(REGULAR, SINGULAR)
def catches_everything(x):
    try:
        y = torch.linalg.inv(x)
    except:  # noqa: E722  # refuse
        y = x
    return y


@refused(REGULAR, SINGULAR)
def catches_one_of_several(x):
    try:
        y = torch.linalg.inv(x)
    except (KeyError, torch.linalg.LinAlgError):  # refuse
        y = x
    return y


@refused(REGULAR, SINGULAR)
def suppresses(x):
    y = x
    with contextlib.suppress(torch.linalg.LinAlgError):  # refuse
        y = torch.linalg.inv(x)
    return y


@refused(REGULAR, SINGULAR)
def suppresses_runtime_error(x):
    y = x
    with contextlib.suppress(RuntimeError):  # refuse
        y = torch.linalg.inv(x)
    return y


def inverse(x):
    return torch.linalg.inv(x)


@refused(REGULAR, SINGULAR)
def catches_from_a_call(x):
    try:
        y = inverse(x)
    except torch.linalg.LinAlgError:  # refuse
        y = x
    return y


@refused((UP, {"a": 1.0}), (DOWN, {}))
def catches_key_error(x, table):
    try:
        k = table["a"]
    except KeyError:  # refuse
        k = 5.0
    return x * k


@refused((UP, [1.0, 2.0]), (DOWN, []))
def catches_index_error(x, items):
    try:
        k = items[0]
    except IndexError:  # refuse
        k = 5.0
    return x * k


@refused((UP, 2), (DOWN, 0))
def catches_zero_division(x, n):
    try:
        k = 6 / n
    except ZeroDivisionError:  # refuse
        k = 5.0
    return x * k


@refused((UP, "3"), (DOWN, "three"))
def catches_value_error_of_int(x, text):
    try:
        k = int(text)
    except ValueError:  # refuse
        k = 5
    return x * k


@refused((UP, 3), (DOWN, "three"), (DOWN, None))
def catches_type_error(x, n):
    try:
        k = n + 1
    except TypeError:  # refuse
        k = 5
    return x * k


@refused((torch.ones(2, 3),), (torch.ones(3),))
def catches_an_unpacking(x):
    try:
        h, w = x.shape
    except ValueError:  # refuse
        h, w = 1, x.shape[0]
    return x * h + w


@refused((torch.ones(1),), (torch.ones(3),))
def catches_item(x):
    try:
        k = x.item()
    except RuntimeError:  # refuse
        k = -1.0
    return x * k


@refused((UP, [1, 2]), (DOWN, [1]))
def catches_stop_iteration(x, items):
    it = iter(items)  # refuse
    next(it)
    try:
        k = next(it)
    except StopIteration:  # refuse
        k = 9
    return x * k


@refused((UP, 2.0), (DOWN, 1e9))
def catches_overflow(x, n):
    try:
        k = 10.0 ** n
    except OverflowError:  # refuse
        k = 5.0
    return x * k


@refused((UP, 5), (DOWN, "no"))
def catches_attribute_error(x, n):
    try:
        k = n.bit_length()
    except AttributeError:  # refuse
        k = 7
    return x * k


@refused(REGULAR, SINGULAR)
def catches_and_raises_again(x):
    try:
        y = torch.linalg.inv(x)
    except torch.linalg.LinAlgError as e:  # refuse
        raise ValueError("not regular") from e
    return y


@refused(UP, DOWN)
def else_after_a_failure(x):
    try:
        if x.sum() < 0:
            raise KeyError("negative")  # refuse
    except KeyError:
        y = x * 2
    else:
        y = x * 3
    return y


class Negative(ValueError):
    pass


@refused(UP, DOWN)
def catches_its_own_class(x):
    try:
        if x.sum() < 0:
            raise Negative("negative")  # refuse
        y = x
    except ValueError:
        y = -x
    return y


@refused((UP, 2), (DOWN, 0))
def retries_in_a_loop(x, n):
    for i in range(3):
        try:
            if n < i:
                raise RuntimeError("again")  # refuse
            x = x * 2
        except RuntimeError:
            break
    return x


@refused(REGULAR, SINGULAR)
class CatchesAroundALayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        try:
            return self.lin(x)
        except RuntimeError:  # refuse
            return x


# ---- handlers that cannot be needed, or always are -----------------------------------------------


@equal(UP, DOWN)
def handler_for_another_class(x):
    try:
        y = x * 2
    except ImportError:
        y = x
    return y


@equal(UP, DOWN)
def optional_import(x):
    try:
        import there_is_no_such_module as m

        k = m.K
    except ImportError:
        k = 3.0
    return x * k


@equal(UP, DOWN)
def missing_attribute_of_a_module(x):
    try:
        f = torch.there_is_no_such_function
    except AttributeError:
        f = torch.tanh
    return f(x)


@equal(UP, DOWN)
def static_lookup(x):
    try:
        k = {"a": 1}["b"]
    except KeyError as e:
        k = len(str(e))
    return x * k


@equal(UP, DOWN)
def raises_from(x):
    try:
        try:
            raise KeyError("inner")
        except KeyError as e:
            raise ValueError("outer") from e
    except ValueError as e:
        k = type(e.__cause__).__name__
    return x * len(k)


@refused(UP, DOWN)
def context_of_an_exception(x):
    try:
        try:
            {}["a"]
        except KeyError:
            [][1]
    except IndexError as e:
        k = type(e.__context__).__name__  # refuse
    return x, k


@equal(UP, DOWN)
def name_is_gone_after_the_handler(x):
    e = 5
    try:
        raise ValueError("x")
    except ValueError as e:  # noqa: F841
        pass
    try:
        return x * e
    except UnboundLocalError:
        return x * 7


@equal(UP, DOWN)
def first_handler_that_fits(x):
    try:
        raise IndexError("i")
    except KeyError:
        k = 1
    except LookupError:
        k = 2
    except Exception:
        k = 3
    return x * k


@equal(UP, DOWN)
def group_of_exceptions(x):
    k = 1
    try:
        raise ExceptionGroup("both", [ValueError("v"), KeyError("k")])
    except ExceptionGroup as group:
        k = len(group.exceptions)
    return x * k


# ---- finally -------------------------------------------------------------------------------------


@equal(UP, DOWN)
def finally_after_a_return(x):
    log = []

    def inner():
        try:
            if x.sum() > 0:
                return x * 2
            return x * 3
        finally:
            log.append(1)

    y = inner()
    return y, len(log)


@refused(UP, DOWN)
def finally_overrides_a_return(x):
    try:
        if x.sum() > 0:
            return x * 2
        y = x
    finally:
        return x * 5  # noqa: B012  # refuse


@refused(torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]))
def finally_writes_before_a_raise(x):
    try:
        if x.sum() < 0:
            raise ValueError("negative")
        y = x * 2
    finally:
        x.add_(10)  # refuse
    return y


@refused(torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]))
def finally_writes_before_a_failed_call(x):
    try:
        y = x.view(2 if x.sum() > 0 else 5)
    finally:
        x.add_(10)  # refuse
    return y


@equal((UP, 1), (DOWN, 7))
def finally_in_a_loop_with_break(x, n):
    count = 0
    for i in range(4):
        try:
            if i == n:
                break
            x = x + i
        finally:
            count += 1
    return x, count


@equal((UP, 1), (DOWN, 7))
def finally_in_a_loop_with_continue(x, n):
    count = 0
    for i in range(4):
        try:
            if i == n:
                continue
            x = x * 2
        finally:
            count += i
    return x, count


@refused(torch.ones(2), -torch.ones(2))
class FinallyOnABuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        try:
            if x.sum() < 0:
                raise ValueError("negative")
            return x * self.calls
        finally:
            self.calls += 1  # refuse


@equal(torch.ones(2), -torch.ones(2))
class BufferAssignedBeforeARaise(nn.Module):
    """Eager keeps the new value although the call fails."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        if x.sum() < 0:
            raise ValueError("negative")
        return x * self.calls


@equal(torch.ones(2), -torch.ones(2), torch.full((2,), 100.0))
class BuffersSwappedBeforeAnAssertion(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.zeros(()))
        self.register_buffer("b", torch.ones(()))

    def forward(self, x):
        self.a, self.b = self.b, self.a
        assert x.sum() < 100, "large"
        self.b = self.b + 10
        if x.sum() < 0:
            raise ValueError("negative")
        return x * self.a


@equal(torch.ones(2), -torch.ones(2))
class BufferAssignedInALoopThatRaises(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        n = 0
        while x.sum() < 9:
            self.calls = self.calls + 1
            x = x * 2
            n += 1
            if n > 5:
                raise RuntimeError("does not grow")
        return x * self.calls


@equal(torch.ones(2), -torch.ones(2))
class BufferOfAPartAssignedBeforeARaise(nn.Module):
    """In a call of another function, which raises for its caller."""

    def __init__(self):
        super().__init__()
        self.part = BufferAssignedBeforeARaise()
        self.register_buffer("last", torch.zeros(2))

    def check(self, x):
        if x.sum() < 0:
            raise ValueError("negative")

    def forward(self, x):
        self.last = x
        self.part.calls = self.part.calls + self.last.sum()
        self.check(x)
        return self.part(x)


@refused(torch.ones(2), -torch.ones(2))
class SettingNotPutBackBeforeARaise(nn.Module):
    """Eager leaves the module with another eps, which a graph cannot."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(2)

    def forward(self, x):
        was = self.norm.eps
        self.norm.eps = 1.0  # refuse
        if x.sum() < 0:
            raise ValueError("negative")
        y = self.norm(x)
        self.norm.eps = was
        return y


class Eps:
    def __init__(self, norm, eps):
        self.norm, self.eps = norm, eps

    def __enter__(self):
        self.eps, self.norm.eps = self.norm.eps, self.eps

    def __exit__(self, *_):
        self.eps, self.norm.eps = self.norm.eps, self.eps


@equal(torch.ones(2), -torch.ones(2))
class SettingPutBackByAContext(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(2)

    def forward(self, x):
        with Eps(self.norm, 1.0):
            if x.sum() < 0:
                raise ValueError("negative")
            y = self.norm(x)
        return y, self.norm(x)


@equal(torch.ones(2), -torch.ones(2))
class SettingPutBackByFinally(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(2)

    def forward(self, x):
        was = self.norm.eps
        try:
            self.norm.eps = 1.0
            if x.sum() < 0:
                raise ValueError("negative")
            y = self.norm(x)
        finally:
            self.norm.eps = was
        return y, self.norm(x)


@equal(UP, DOWN)
def finally_for_the_way_that_returns(x):
    log = []

    def inner():
        try:
            if x.sum() > 0:
                return x * 2
            raise ValueError("negative")
        finally:
            log.append(1)

    y = inner()
    return y, len(log)


@equal(UP, DOWN)
def exit_for_the_way_that_returns(x):
    log = []

    class Log:
        def __enter__(self):
            log.append("in")

        def __exit__(self, *_):
            log.append("out")

    def inner():
        with Log():
            if x.sum() > 0:
                return x * 2
            raise ValueError("negative")

    y = inner()
    return y, log


@equal((3, 1), (-3, 1))
def raises_what_the_handler_does_not_catch(n: int, k: int):
    try:
        if n < 0:
            raise ValueError("negative")
        m = n + k
    except KeyError:
        m = 0
    return m


class Negative(ValueError):
    pass


@refused((3, 1), (-3, 1))
def raises_what_the_handler_catches(n: int, k: int):
    try:
        if n < 0:
            raise Negative("negative")  # refuse
        m = n + k
    except ValueError:
        m = 0
    return m


@equal((3, 1), (-3, 1))
def raises_another_class_of_the_users(n: int, k: int):
    try:
        if n < 0:
            raise ValueError("negative")
        m = n + k
    except Negative:
        m = 0
    return m


@equal((3, 1), (-3, 1))
def asserts_inside_a_handler_for_others(n: int, k: int):
    try:
        assert n > 0
        m = n + k
    except KeyError:
        m = 0
    return m


@refused((3, 1), (-3, 1))
def finally_returns_instead_of_a_raise(n: int, k: int):
    try:
        if n < 0:
            raise ValueError("negative")  # refuse
        m = n + k
    finally:
        if k > 0:
            return 5  # noqa: B012  # refuse
    return m


@equal(torch.ones(2), -torch.ones(2))
class BufferAddedToBeforeARaise(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        if x.sum() < 0:
            raise ValueError("negative")
        return x * self.calls


@equal(torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0]))
def writes_before_a_raise(x):
    x.mul_(2)
    if x.sum() < 0:
        raise ValueError("negative")
    x.mul_(2)
    return x


@equal((UP, [1]), (DOWN, [2]))
def list_changed_before_a_raise(x, items):
    items.append(5)
    if x.sum() < 0:
        raise ValueError("negative")
    items.append(6)
    return x


# ---- what is raised ------------------------------------------------------------------------------


@equal(UP, DOWN)
def asserts(x):
    assert x.sum() > 0, f"negative: {x.shape}"
    return x


@equal(UP, DOWN)
def raises_a_class_without_arguments(x):
    if x.sum() < 0:
        raise NotImplementedError
    return x


@equal(UP, DOWN)
def raises_own_class(x):
    if x.sum() < 0:
        raise Negative("sum", 3)
    return x


@equal(UP, DOWN)
def raises_key_error(x):
    if x.sum() < 0:
        raise KeyError("k")
    return x


@equal(UP, DOWN)
def raises_stop_iteration(x):
    if x.sum() < 0:
        raise StopIteration
    return x


@equal(UP, DOWN)
def raises_in_one_of_two_branches(x):
    if x.sum() > 0:
        y = x * 2
    elif x.min() < -2:
        raise TypeError("small")
    else:
        y = x * 3
    return y


@equal((UP, 0), (UP, 2), (DOWN, 5))
def raises_in_a_loop(x, n):
    for i in range(n):
        if i > 3:
            raise IndexError(i)
        x = x + i
    return x


@equal(torch.ones(2, 3), torch.ones(3), torch.ones(2, 3, 4))
def unpacks_a_shape(x):
    h, w = x.shape
    return x * h + w


@equal(torch.ones(2, 3), torch.ones(3, 3))
def unpacks_rows(x):
    a, b = x
    return a + b


@equal((UP, (1, 2)), (UP, (1, 2, 3)), (UP, (1,)))
def unpacks_an_input(x, pair):
    a, b = pair
    return x * a + b


@equal((UP, (1, 2)), (UP, (1, 2, 3)), (UP, (1,)))
def unpacks_with_a_star(x, items):
    a, b, *rest = items
    return x * a + b + len(rest)


@equal((UP, ((1, 2), 3)), (UP, ((1, 2, 3), 4)))
def unpacks_nested(x, items):
    (a, b), c = items
    return x * a + b * c


@equal((UP, [(1, 2), (3, 4)]), (UP, [(1, 2, 3)]), (UP, []))
def unpacks_in_a_loop(x, items):
    for a, b in items:
        x = x * a + b
    return x


@equal(torch.ones(4, 2), torch.ones(5, 2))
def unpacks_chunks(x):
    a, b = x.split(2)
    return a * 2 + b


@equal((UP, 1), (UP, 3), (UP, -4))
def index_out_of_range(x, i):
    items = [x, x * 2]
    return items[i]


@equal((UP, "a"), (UP, "z"))
def key_that_is_not_there(x, k):
    return {"a": x, "b": x * 2}[k]


@equal((UP, 1), (UP, 0))
def divides_by_zero(x, n):
    return x * (6 // n)


@equal((UP, 1), (UP, 0))
def modulo_zero(x, n):
    return x * (6 % n)


@equal((UP, 4.0), (UP, -4.0))
def square_root_of_a_negative(x, n):
    import math

    return x * math.sqrt(n)


@equal((UP, 1), (UP, "a"))
def type_error_at_run_time(x, n):
    return x * (n + 1)


@equal((UP, [3, 1]), (UP, []))
def maximum_of_nothing(x, items):
    return x * max(items)


@equal((UP, [3, 1]), (UP, [2]))
def removes_what_is_not_there(x, items):
    items.remove(3)
    return x * len(items)


@equal(UP, torch.tensor([1.0, 2.0]))
def shapes_do_not_fit(x):
    return x + torch.ones(3)


@equal(UP, DOWN)
def dead_code_that_would_raise(x):
    if False:
        raise ValueError("never")
    y = x.view(-1)
    _ = x[x.sum() > 0]
    return y


@equal(UP, torch.ones(2))
def unused_call_that_fails(x):
    x.view(3)
    return x * 2


@equal((UP, 2), (UP, 0))
def unused_division_that_fails(x, n):
    6 // n
    return x * 2


@equal((UP, [1, 2]), (UP, []))
def unused_item_that_fails(x, items):
    _ = items[0]
    return x * 2


@refused((torch.ones(2), -torch.ones(2)), (-torch.ones(2), torch.ones(2)))
def suppressed_raise_after_an_early_return(x, y):
    with contextlib.suppress(KeyError):  # refuse
        if x.min() < y.max() and y[0] < 2:
            return y
        raise KeyError("always")
    return y + 1
