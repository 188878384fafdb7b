"""try, except, finally and context managers around calls that may raise when the graph runs: the
same as eager PyTorch, or refused with the line."""
import contextlib

import pytest
import torch

import cfx
from script_checks import refused

INPUTS = [
    torch.eye(3) * 2, torch.zeros(3, 3), torch.ones(2, 2), torch.full((2, 2), float("nan")),
    torch.ones(3, 4), torch.ones(3), torch.tensor(2.0),
]  # fmt: skip


def outcome(fn, x):
    x = x.clone()
    try:
        result = fn(x)
    except Exception as error:
        result = type(error), str(error).splitlines()[:1]
    return repr((result, x, torch.is_grad_enabled()))


def same(program):
    module = cfx.script(program)
    for x in INPUTS:
        wanted = outcome(program, x)
        for _ in range(3):
            assert outcome(module, x) == wanted
    return module


# ---- handlers that keep working ----------------------------------------------------------------


class Own(ValueError):
    pass


def own_class(x):
    try:
        y = x.relu()
        raise Own("a")
    except Own:
        return y * 2


def other_class(x):
    y = x
    try:
        y = torch.linalg.inv(x)
    except (KeyError, StopIteration, ImportError):
        y = x
    return y


def suppress_other(x):
    y = x
    with contextlib.suppress(KeyError):
        y = torch.linalg.inv(x) * 1.0
    return y


def known_key(x):
    try:
        n = {"a": 1}["b"]
    except KeyError:
        n = 2
    return x * n


def known_division(x):
    try:
        n = len([1, 2]) // 0
    except ZeroDivisionError:
        n = 5
    return x * n


def nothing_can_raise(x):
    n = x.dim()
    try:
        k = n * 2 + 1
    except Exception:
        k = 3
    return x * k


def missing_module(x):
    try:
        import a_module_that_is_not_there
    except ImportError:
        return x * 2
    return x


def attribute_of_torch(x):
    out = []
    for name in ("sin", "nope", "cos"):
        try:
            out.append(getattr(torch, name)(x))
        except AttributeError:
            out.append(x * 0)
    return torch.stack(out)


def sign_and_value_error(x):
    try:
        y = x * 2
    except ValueError:
        y = x
    return y


def finally_of_locals(x):
    seen = []
    try:
        y = torch.linalg.inv(x)
    finally:
        seen.append(1)
        z = x + 1
    return y, z, len(seen)


def contexts_in_finally(x):
    try:
        with torch.no_grad():
            y = torch.linalg.inv(x)
    finally:
        n = 3
    return y * n


class Recording:
    def __init__(self):
        self.events = []

    def __enter__(self):
        self.events.append("in")
        return self

    def __exit__(self, *details):
        self.events.append("out")
        return False


def manager_of_locals(x):
    recording = Recording()
    with recording:
        y = torch.linalg.inv(x)
    return y, len(recording.events)


@contextlib.contextmanager
def doubled(values):
    values.append(2.0)
    try:
        yield values[-1]
    finally:
        values.pop()


def generator_manager(x):
    scales = [1.0]
    with doubled(scales) as factor:
        y = torch.linalg.inv(x) * factor
    return y, len(scales)


SAME = [
    own_class, other_class, suppress_other, known_key, known_division, nothing_can_raise,
    missing_module, attribute_of_torch, sign_and_value_error, finally_of_locals,
    contexts_in_finally, manager_of_locals, generator_manager,
]  # fmt: skip


@pytest.mark.parametrize("program", SAME, ids=lambda p: p.__name__)
def test_same(program):
    same(program)


# ---- refused -----------------------------------------------------------------------------------


def linalg_error(x):
    try:
        y = torch.linalg.inv(x)
    except torch.linalg.LinAlgError:
        y = x
    return y


def runtime_error(x):
    try:
        y = x.reshape(2, 2)
    except RuntimeError:
        y = x
    return y


def value_error(x):
    try:
        y = x.reshape(2, 2)
    except ValueError:
        y = x
    return y


def bare(x):
    try:
        y = x.reshape(2, 2)
    except:  # noqa: E722
        y = x
    return y


def every_exception(x):
    try:
        y = x * 2
        raise KeyError("a")
    except Exception:
        return x


def lookup_error(x):
    try:
        return x[5]
    except LookupError:
        return x


def key_error(x, d=None):
    try:
        return x * d["a"]
    except KeyError:
        return x


def zero_division(x):
    try:
        return x / (x.shape[0] // (x.shape[0] - 3))
    except ZeroDivisionError:
        return x


def conversion(x):
    try:
        n = int(x.sum())
    except (OverflowError, StopIteration):
        n = 3
    return x * n


def attribute(x):
    try:
        y = x.not_there
    except AttributeError:
        y = x
    return y


def unpacking(x):
    try:
        h, w = x.shape
    except ValueError:
        h = 1
    return x * h


def in_a_function(x):
    def invert():
        try:
            return torch.linalg.inv(x)
        except (KeyError, RuntimeError):
            return x

    return invert()


def in_a_branch(x):
    try:
        if x.sum() > 0:
            y = torch.linalg.inv(x)
        else:
            y = x
    except torch.linalg.LinAlgError:
        y = x * 3
    return y


def in_a_loop(x):
    for i in range(len(x)):
        try:
            x = torch.linalg.inv(x)
        except torch.linalg.LinAlgError:
            break
    return x


@cfx.wrap
def wrapped(x):
    raise Own("a")


def own_class_of_a_wrapped_function(x):
    try:
        return wrapped(x)
    except Own:
        return x


def suppress(x):
    y = x
    with contextlib.suppress(RuntimeError):
        y = torch.linalg.inv(x)
    return y


def suppress_a_raise(x):
    y = x
    with contextlib.suppress(ValueError):
        if x.sum() > 0:
            raise ValueError("too much")
        y = x * 2
    return y


class Swallows:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return kind is RuntimeError


def swallows(x):
    y = x
    with Swallows():
        y = torch.linalg.inv(x)
    return y


@contextlib.contextmanager
def handles():
    try:
        yield
    except RuntimeError:
        pass


def generator_handles(x):
    y = x
    with handles():
        y = torch.linalg.inv(x)
    return y


class Adds:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        return self

    def __exit__(self, *details):
        self.x.add_(1)


def effect_of_exit(x):
    with Adds(x):
        y = torch.linalg.inv(x)
    return y


class Clears(Adds):
    def __exit__(self, kind, value, traceback):
        if kind is not None:
            self.x.zero_()


def effect_of_exit_after_an_exception(x):
    with Clears(x):
        y = torch.linalg.inv(x)
    return y


def effect_of_finally(x):
    try:
        y = torch.linalg.inv(x)
    finally:
        x.add_(1)
    return y


def sign_in_finally(x):
    try:
        y = torch.linalg.inv(x)
    finally:
        x += 1
    return y


def mode_in_finally(x):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        y = torch.linalg.inv(x)
    finally:
        torch.set_grad_enabled(before)
    return y


def return_in_finally(x):
    try:
        y = torch.linalg.inv(x)
    finally:
        return x


EXCEPT, MANAGER, FINALLY = "`except` cannot be", "context manager cannot be", "`finally` cannot be"
REFUSED = [
    (linalg_error, "except", EXCEPT), (runtime_error, "except", EXCEPT),
    (value_error, "except", EXCEPT), (bare, "except", EXCEPT), (every_exception, "except", EXCEPT),
    (lookup_error, "except", EXCEPT), (key_error, "except", EXCEPT),
    (zero_division, "except", EXCEPT), (conversion, "except", EXCEPT),
    (attribute, "except", EXCEPT), (unpacking, "except", EXCEPT),
    (in_a_function, "except", EXCEPT), (in_a_branch, "except", EXCEPT),
    (in_a_loop, "except", EXCEPT), (own_class_of_a_wrapped_function, "except", EXCEPT),
    (suppress, "with", MANAGER), (suppress_a_raise, "raise", "depending on data"),
    (swallows, "with", MANAGER), (generator_handles, "with", MANAGER),
    (effect_of_exit, "with", MANAGER), (effect_of_exit_after_an_exception, "with", MANAGER),
    (effect_of_finally, "x.add_", FINALLY), (sign_in_finally, "x +=", FINALLY),
    (mode_in_finally, "set_grad_enabled(before)", FINALLY),
    (return_in_finally, "return x", FINALLY),
]  # fmt: skip


@pytest.mark.parametrize("program, line, match", REFUSED, ids=lambda p: getattr(p, "__name__", ""))
def test_refused(program, line, match):
    before = torch.is_grad_enabled()
    refused(program, line, match)
    assert torch.is_grad_enabled() == before


# ---- a module's own state ----------------------------------------------------------------------


class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        try:
            y = torch.linalg.inv(x)
        finally:
            self.n = self.n + 1
        return y


def test_a_buffer_in_finally():
    with pytest.raises(cfx.ScriptError, match=FINALLY):
        cfx.script(Counts())
