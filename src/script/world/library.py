# Functions and classes of Python's library and of torch for `cfx script`, which has no Python.
# library_source.c runs them like a user's program, and says what else they can use.
#
# "# in MODULE...: NAME..." begins a part. It runs if the user's program has one of its names in its
# text. Its names become attributes of the modules. Functions that both worlds evaluate are in
# ../evaluate/prelude.py instead; include/cfx/embed/special.def lists these.


# in collections: deque
class deque:
    def __init__(self, iterable=(), maxlen=None):
        if maxlen is not None and not isinstance(maxlen, int):
            raise TypeError("an integer is required")
        if maxlen is not None and maxlen < 0:
            raise ValueError("maxlen must be non-negative")
        self._items = []
        self._most = maxlen
        self.extend(iterable)

    maxlen = property(lambda self: self._most)

    def append(self, x):
        self._items.append(x)
        if self._most is not None and len(self._items) > self._most:
            self._items.pop(0)

    def appendleft(self, x):
        self._items.insert(0, x)
        if self._most is not None and len(self._items) > self._most:
            self._items.pop()

    def extend(self, iterable):
        for x in list(iterable):
            self.append(x)

    def extendleft(self, iterable):
        for x in list(iterable):
            self.appendleft(x)

    def pop(self):
        if len(self._items) == 0:
            raise IndexError("pop from an empty deque")
        return self._items.pop()

    def popleft(self):
        if len(self._items) == 0:
            raise IndexError("pop from an empty deque")
        return self._items.pop(0)

    def rotate(self, n=1):
        size = len(self._items)
        if size > 1:
            n = n % size
            self._items[:] = self._items[size - n:] + self._items[:size - n]

    def clear(self):
        self._items.clear()

    def reverse(self):
        self._items.reverse()

    def remove(self, value):
        if value not in self._items:
            raise ValueError(f"{value!r} is not in deque")
        self._items.remove(value)

    def insert(self, i, x):
        if self._most is not None and len(self._items) >= self._most:
            raise IndexError("deque already at its maximum size")
        self._items.insert(i, x)

    def count(self, x):
        return self._items.count(x)

    def index(self, x, *ends):
        if x not in self._items:
            raise ValueError(f"{x!r} is not in deque")
        return self._items.index(x, *ends)

    def copy(self):
        return deque(self._items, self._most)

    __copy__ = copy

    def __len__(self):
        return len(self._items)

    def __bool__(self):
        return len(self._items) > 0

    def __iter__(self):
        return iter(self._items)

    def __reversed__(self):
        return reversed(self._items)

    def __contains__(self, x):
        return x in self._items

    def _place(self, i):
        if not hasattr(i, "__index__") and not isinstance(i, int):
            raise TypeError(f"sequence index must be integer, not '{type(i).__name__}'")
        if not -len(self._items) <= i < len(self._items):
            raise IndexError("deque index out of range")
        return i

    def __getitem__(self, i):
        return self._items[self._place(i)]

    def __setitem__(self, i, x):
        self._items[self._place(i)] = x

    def __delitem__(self, i):
        del self._items[self._place(i)]

    def __add__(self, other):
        if not isinstance(other, deque):
            name = type(other).__name__
            raise TypeError(f'can only concatenate deque (not "{name}") to deque')
        made = self.copy()
        made.extend(other)
        return made

    def __mul__(self, n):
        return deque(self._items * n, self._most)

    def __rmul__(self, n):
        return deque(self._items * n, self._most)

    def __iadd__(self, iterable):
        self.extend(iterable)
        return self

    def __imul__(self, n):
        made = deque(self._items * n, self._most)
        self._items[:] = made._items
        return self

    def __eq__(self, other):
        return self._items == other._items if isinstance(other, deque) else NotImplemented

    def __ne__(self, other):
        return self._items != other._items if isinstance(other, deque) else NotImplemented

    def __lt__(self, other):
        return self._items < other._items if isinstance(other, deque) else NotImplemented

    def __le__(self, other):
        return self._items <= other._items if isinstance(other, deque) else NotImplemented

    def __gt__(self, other):
        return self._items > other._items if isinstance(other, deque) else NotImplemented

    def __ge__(self, other):
        return self._items >= other._items if isinstance(other, deque) else NotImplemented

    __hash__ = None

    def __repr__(self):
        if self._most is None:
            return f"deque({self._items!r})"
        return f"deque({self._items!r}, maxlen={self._most})"


# in collections: defaultdict
class defaultdict(dict):
    def __init__(self, default_factory=None, *args, **kwargs):
        if default_factory is not None and not callable(default_factory):
            raise TypeError("first argument must be callable or None")
        super().__init__(*args, **kwargs)
        self.default_factory = default_factory

    def __missing__(self, key):
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = made = self.default_factory()
        return made

    def __getitem__(self, key):
        return _item(self, key) if _has(self, key) else self.__missing__(key)

    def copy(self):
        return defaultdict(self.default_factory, self)

    __copy__ = copy

    def __repr__(self):
        return f"defaultdict({self.default_factory!r}, {dict(self.items())!r})"


# in collections: OrderedDict
class OrderedDict(dict):
    def move_to_end(self, key, last=True):
        value = self.pop(key)
        if last:
            self[key] = value
        else:
            others = list(self.items())
            self.clear()
            self[key] = value
            self.update(others)

    def popitem(self, last=True):
        if len(self) == 0:
            raise KeyError("dictionary is empty")
        key = list(self)[-1 if last else 0]
        return key, self.pop(key)

    def copy(self):
        return OrderedDict(self)

    __copy__ = copy

    def __reversed__(self):
        return reversed(list(self))

    def __eq__(self, other):
        if isinstance(other, OrderedDict):
            return list(self.items()) == list(other.items())
        return dict(self.items()) == other

    def __ne__(self, other):
        return not self == other

    def __repr__(self):
        if len(self) == 0:
            return "OrderedDict()"
        return f"OrderedDict({list(self.items())!r})"


# in functools: wraps update_wrapper
def update_wrapper(wrapper, wrapped, assigned=(), updated=()):
    for name in ("__name__", "__qualname__", "__doc__"):
        if hasattr(wrapped, name):
            setattr(wrapper, name, getattr(wrapped, name))
    wrapper.__wrapped__ = wrapped
    return wrapper


def wraps(wrapped, assigned=(), updated=()):
    return lambda wrapper: update_wrapper(wrapper, wrapped)


# in functools: lru_cache cache
def _cached(f):
    seen = {}

    def cached(*args, **kwargs):
        key = args, tuple(kwargs.items())
        if key not in seen:
            _keep(seen, key, f(*args, **kwargs))
        return seen[key]

    cached.__wrapped__ = f
    return cached


def cache(user_function):
    return _cached(user_function)


def lru_cache(maxsize=128, typed=False):
    if typed:
        _refuse("lru_cache(typed=True) is not supported in scripts")
    return _cached(maxsize) if callable(maxsize) else _cached


# in contextlib: nullcontext suppress
class nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result

    def __exit__(self, *details):
        return None


class suppress:
    def __init__(self, *exceptions):
        self._exceptions = exceptions

    def __enter__(self):
        return None

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, self._exceptions)


# in torch: no_grad enable_grad set_grad_enabled inference_mode is_grad_enabled
#     is_inference_mode_enabled
_set, _asks = "torch._C._set_grad_enabled", "torch.is_grad_enabled"
_grad, _inference = [None], [False]


def is_grad_enabled():
    return _record(_asks) if _grad[0] is None else _grad[0]


def is_inference_mode_enabled():
    return _inference[0]


def _within(context, function):
    def inside(*args, **kwargs):
        with context.clone():
            return function(*args, **kwargs)

    if not callable(function):
        _refuse("only a function can be decorated with a context of gradients")
    if isinstance(function, type):
        _refuse("a class cannot be decorated with a context of gradients; decorate its "
                "methods")
    inside.__wrapped__ = function
    return inside


class _mode:
    def __init__(self, mode):
        self.mode = mode

    def clone(self):
        return _mode(self.mode)

    def __call__(self, function):
        return _within(self, function)

    def __enter__(self):
        self._before = _grad[0], _record(_asks)
        _grad[0] = self.mode
        _record(_set, self.mode)

    def __exit__(self, *details):
        _grad[0], before = self._before
        _record(_set, before)


def no_grad(orig_func=None):
    return _mode(False) if orig_func is None else _within(_mode(False), orig_func)


def enable_grad(orig_func=None):
    return _mode(True) if orig_func is None else _within(_mode(True), orig_func)


class set_grad_enabled:
    def __init__(self, mode):
        self.mode = mode
        self._before = _grad[0], _record(_asks)
        _grad[0] = mode
        _record(_set, mode)

    def clone(self):
        return set_grad_enabled(self.mode)

    def __call__(self, function):
        self.__exit__()
        return _within(self, function)

    def __enter__(self):
        return None

    def __exit__(self, *details):
        _grad[0], before = self._before
        _record(_set, before)


class _inference_context:
    def __init__(self, mode):
        self.mode = mode

    def clone(self):
        return _inference_context(self.mode)

    def __call__(self, function):
        return _within(self, function)

    def __enter__(self):
        self._before = _grad[0], _inference[0]
        name = "torch.autograd.grad_mode._enter_inference_mode"
        self._entered = _record(name, self.mode)
        _grad[0], _inference[0] = (False if self.mode else _grad[0]), self.mode

    def __exit__(self, *details):
        _grad[0], _inference[0] = self._before
        _record("torch.autograd.grad_mode._exit_inference_mode", self._entered)


def inference_mode(mode=True):
    return _inference_context(mode) if isinstance(mode, bool) else (
        _within(_inference_context(True), mode))


# in torch: autocast
class autocast:
    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if enabled and device_type != "cuda":
            _refuse("torch.autocast is not supported: without PyTorch every operation "
                    "computes in the dtype of its inputs; convert with .to(dtype), or capture with "
                    "enabled=False")

    def __call__(self, function):
        return function

    def __enter__(self):
        return self

    def __exit__(self, *details):
        return False


# in torch: is_tensor
from torch import Tensor


def is_tensor(obj):
    return isinstance(obj, Tensor)


# in torch.profiler: record_function
class record_function:
    def __init__(self, name, args=None):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, *details):
        return None


# in torch.jit: annotate isinstance
from builtins import isinstance as _isinstance


def annotate(the_type, the_value):
    return the_value


def isinstance(obj, target_type):
    return _isinstance(obj, target_type)


# in copy: _clone deepcopy asdict astuple
from torch import Tensor


def _clone(x):
    if isinstance(x, Tensor):
        return x.clone()
    if not isinstance(x, (int, float, complex, str, type(None))):
        raise TypeError("deepcopy of a list or dict that a graph computes is not supported")
    return x


# in cfx cfx.ops: for_loop
def for_loop(count, body, state):
    state = tuple(state)
    for i in range(int(count)):
        state = tuple(body(i, *state))
    return state


# in operator: iadd iconcat imul ior iand isub ixor
def iadd(a, b):
    a += b
    return a


def iconcat(a, b):
    a += b
    return a


def imul(a, b):
    a *= b
    return a


def ior(a, b):
    a |= b
    return a


def iand(a, b):
    a &= b
    return a


def isub(a, b):
    a -= b
    return a


def ixor(a, b):
    a ^= b
    return a
