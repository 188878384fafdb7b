"""cfx.Tensor: memory shared with torch, numpy and Python, in both directions; what it shows."""
import array
import gc
import io
import os
import pickle
import signal
import threading
import weakref

import cfx
import numpy as np
import pytest
import torch

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
          torch.complex128]


def example(dtype, shape=(2, 3)):
    n = int(np.prod(shape))
    return (torch.arange(n) % 5 - (0 if dtype in (torch.bool, torch.uint8) else 2)).to(dtype).view(
        shape)


# ---- torch


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_both_ways(dtype):
    x = example(dtype)
    t = cfx.Tensor(x)
    assert t.dtype is dtype and t.shape == (2, 3) and t.data_ptr() == x.data_ptr()
    assert t.strides == tuple(s * x.element_size() for s in x.stride())
    assert t.tolist() == x.tolist()
    back = t.torch()
    assert back.dtype is dtype and back.data_ptr() == x.data_ptr() and back.equal(x)
    assert repr(t) == repr(x)


@pytest.mark.parametrize("view", [
    lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1:1], lambda x: x[0, 0],
    lambda x: x.expand(4, 2, 3), lambda x: x.unfold(1, 2, 1),
    lambda x: x.as_strided((2, 2), (1, 1)),
])
def test_torch_views(view):
    x = view(torch.arange(6.0).view(2, 3))
    t = cfx.Tensor(x)
    assert t.shape == tuple(x.shape) and t.tolist() == x.tolist()
    assert t.torch().equal(x)
    assert t.is_contiguous() == x.is_contiguous()


def test_parameters_and_lazy_views():
    p = torch.nn.Parameter(torch.ones(2))
    t = cfx.Tensor(p)
    assert t.data_ptr() == p.data_ptr() and not t.torch().requires_grad
    z = torch.tensor([1 + 2j, 3 - 4j])
    assert cfx.Tensor(z.conj()).tolist() == [1 - 2j, 3 + 4j]
    assert cfx.Tensor(z.conj().imag).tolist() == [-2, 4]
    assert cfx.ops.relu(p).equal(torch.ones(2))


@pytest.mark.parametrize("make, message", [
    (lambda: torch.eye(2).to_sparse(), "layout torch.sparse_coo"),
    (lambda: torch.empty(2, device="meta"), "on meta"),
    (lambda: torch.ones(2, dtype=torch.complex32), "does not support elements of complex32; it"),
])
def test_torch_tensors_that_cannot_be_shared(make, message):
    with pytest.raises(TypeError, match=message):
        cfx.Tensor(make())


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_wide_unsigned_integers(name):
    dtype = getattr(torch, name)
    most = torch.iinfo(dtype).max
    x = torch.tensor([0, 1, most], dtype=dtype)
    assert cfx.Tensor(x).tolist()[:2] == [0, 1] and cfx.Tensor(x).torch().equal(x)
    assert cfx.ops.to(x, torch.float64).equal(x.to(torch.float64))
    assert cfx.ops.to(torch.tensor([3.7, 0.0]), dtype).equal(torch.tensor([3, 0], dtype=dtype))
    assert cfx.Tensor(np.array([1, 2], name)).torch().equal(torch.tensor([1, 2], dtype=dtype))


@pytest.mark.parametrize("name", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu"])
def test_floats_of_8_bits_are_converted_as_torch_does(name):
    dtype = getattr(torch, f"float8_{name}")
    every = torch.arange(256, dtype=torch.uint8).view(dtype)
    wide = cfx.ops.to(every, torch.float32)
    assert torch.allclose(wide, every.to(torch.float32), rtol=0, atol=0, equal_nan=True)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5000, generator=generator) * 2.0 ** torch.randint(-20, 20, (5000,),
                                                                      generator=generator)
    x = torch.cat([x, torch.tensor([0.0, 448, 449, 464, 465, 1e9, float("inf"), float("nan")]),
                   every.to(torch.float32)])
    x = x.abs() if name == "e8m0fnu" else torch.cat([x, -x])
    assert cfx.ops.to(x, dtype).view(torch.uint8).equal(x.to(dtype).view(torch.uint8))


def test_too_many_dimensions():
    for array_ in (torch.ones([1] * 9), np.ones([1] * 9)):
        with pytest.raises(RuntimeError, match="9 dimensions; cfx supports up to 8"):
            cfx.Tensor(array_)


# ---- lifetimes


def test_the_tensor_outlives_its_source():
    x = torch.arange(1000.0)
    t = cfx.Tensor(x)
    del x
    gc.collect()
    trash = [torch.zeros(1000) for _ in range(20)]
    assert t.tolist() == list(range(1000)) and trash
    a = np.arange(5)
    t, gone = cfx.Tensor(a), weakref.ref(a)
    del a
    assert gone() is not None and t.tolist() == [0, 1, 2, 3, 4]
    del t
    assert gone() is None


def test_what_was_given_out_outlives_the_tensor():
    t = cfx.Tensor([[1.0, 2.0]])
    gone = weakref.ref(t)
    x, a, m = t.torch(), t.numpy(), memoryview(t)
    pointer = t.data_ptr()
    del t
    assert gone() is not None  # the buffer's owner
    del a, m
    gc.collect()
    assert gone() is None
    assert x.data_ptr() == pointer and x.tolist() == [[1, 2]]


def test_capsules():
    source = np.arange(3.0)
    t = cfx.Tensor(source)
    gone = weakref.ref(source)
    unused = [t.__dlpack__(), t.__dlpack__(max_version=(1, 0))]
    assert '"dltensor"' in repr(unused[0]) and '"dltensor_versioned"' in repr(unused[1])
    del source, t
    assert gone() is not None
    del unused
    gc.collect()
    assert gone() is None
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))

    class Once:
        def __dlpack__(self, **kwargs):
            return capsule

    assert cfx.Tensor(Once()).tolist() == [1, 1]
    with pytest.raises(TypeError, match="must return an unused DLPack capsule"):
        cfx.Tensor(Once())


def test_last_reference_in_another_thread():
    a = np.arange(4.0)
    gone = weakref.ref(a)
    box = [cfx.ops.relu(cfx.Tensor(a)), cfx.Tensor(a)]
    del a
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert gone() is None


# ---- DLPack as the standard has it


class Old:
    """A library from before version 1."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, stream=None):
        return torch.utils.dlpack.to_dlpack(self.x)

    def __dlpack_device__(self):
        return (1, 0)


def test_dlpack_methods():
    t = cfx.Tensor(torch.ones(2, 3))
    assert t.__dlpack_device__() == (1, 0)
    assert cfx.Tensor(Old(torch.ones(2))).tolist() == [1, 1]
    assert np.from_dlpack(t).tolist() == [[1] * 3] * 2
    assert torch.from_dlpack(t).equal(torch.ones(2, 3))
    assert cfx.ops.relu(Old(-torch.ones(2))).tolist() == [0, 0]
    for wrong in (dict(stream=1), dict(dl_device=(2, 0))):
        with pytest.raises(BufferError):
            t.__dlpack__(**wrong)
    with pytest.raises(TypeError):
        t.__dlpack__(max_version=1)


def test_read_only():
    a = np.arange(3.0)
    a.flags.writeable = False
    t = cfx.Tensor(a)
    assert t.read_only and not t.numpy().flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    assert not np.from_dlpack(t).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        cfx.ops.relu_(t)
    assert memoryview(t).readonly


# ---- numpy and the buffer protocol


@pytest.mark.parametrize("dtype", "? u1 i1 i2 i4 i8 f2 f4 f8 c8 c16".split())
def test_numpy_both_ways(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    for view in (a, a.T, a[::-1, ::-1], a[:, :0], a[0, 0:1], a[1, 1:2].reshape(())):
        t = cfx.Tensor(view)
        assert t.shape == view.shape and (not view.size or t.strides == view.strides)
        back = t.numpy()
        assert back.dtype == a.dtype and back.tolist() == view.tolist() == t.tolist()
        assert not view.size or np.shares_memory(back, a)
        assert np.asarray(t).tolist() == view.tolist()


def test_other_buffers():
    numbers = array.array("d", [1, 2])
    t = cfx.Tensor(numbers)
    numbers[0] = 5
    assert t.tolist() == [5, 2] and t.dtype is torch.float64
    assert cfx.Tensor(memoryview(b"ab")).tolist() == [97, 98]
    for wrong in (np.array(["a"]), np.ones(2, ">f4"), np.ones(2, "g")):
        with pytest.raises(TypeError, match="does not support the buffer format"):
            cfx.Tensor(wrong)
    packed = np.zeros(2, np.dtype([("a", "i1"), ("b", "f4")]))["b"]
    with pytest.raises(ValueError, match="not aligned"):
        cfx.Tensor(packed)


def test_bfloat16_has_no_buffer():
    t = cfx.Tensor(torch.ones(2, dtype=torch.bfloat16))
    for use in (memoryview, cfx.Tensor.numpy, np.asarray):
        with pytest.raises(BufferError, match="no format for bfloat16; use __dlpack__"):
            use(t)


def test_buffer_flags():
    t = cfx.Tensor(torch.ones(2, 3).t())
    with pytest.raises(BufferError, match="not contiguous"):
        io.BytesIO().write(t)
    assert bytes(cfx.Tensor([1.0])) == np.float32(1).tobytes()


# ---- numbers and lists


@pytest.mark.parametrize("value", [
    3, 2.5, True, 1 + 2j, [], [[]], [[], []], [1, 2.0], [True, 2], [[1, 2], [3, 4]], (1, (2)), [1j],
    [float("nan")], 2**62, [[[1]]],
])
def test_lists(value):
    t, x = cfx.Tensor(value), torch.tensor(value)
    assert t.dtype is x.dtype and t.shape == tuple(x.shape) and repr(t) == repr(x)
    assert cfx.Tensor(value, dtype="complex128").dtype is torch.complex128


@pytest.mark.parametrize("value, error", [
    ([[1], [2, 3]], ValueError), ([1, [2]], ValueError), ([[1], 2], ValueError), (["a"], TypeError),
    (2**63, OverflowError), (None, TypeError), ("a", TypeError), (object(), TypeError),
])
def test_bad_lists(value, error):
    with pytest.raises(error):
        cfx.Tensor(value)


def test_deep_list():
    value = 1
    for _ in range(9):
        value = [value]
    with pytest.raises(RuntimeError, match="deeper than 8"):
        cfx.Tensor(value)


def test_as_numbers():
    t = cfx.Tensor([3])
    assert (int(t), float(t), bool(t), t.item(), [1, 2, 3, 4][t]) == (3, 3.0, True, 3, 4)
    assert len(cfx.Tensor([[1, 2]])) == 1 and cfx.Tensor([[1, 2]]).numel() == 2
    with pytest.raises(RuntimeError, match="2 elements cannot be converted to Scalar"):
        cfx.Tensor([1, 2]).item()
    with pytest.raises(TypeError, match="0-d"):
        len(cfx.Tensor(1))
    with pytest.raises(TypeError, match="index"):
        [1][cfx.Tensor(0.5)]


# ---- calls


def test_results_are_of_the_arguments_library():
    x = torch.tensor([-1.0, 2])
    assert isinstance(cfx.ops.relu(x), torch.Tensor)
    assert isinstance(cfx.ops.relu(x.numpy()), np.ndarray)
    assert isinstance(cfx.ops.relu(cfx.Tensor(x)), cfx.Tensor)
    assert isinstance(cfx.ops.relu([-1.0][0]), (float, cfx.Tensor))


def test_in_place_writes_to_the_callers_tensor():
    x = torch.tensor([-1.0, 2])
    assert cfx.ops.relu_(x) is x and x.tolist() == [0, 2]
    a = np.array([-1.0, 2])
    assert cfx.ops.relu_(a) is a and a.tolist() == [0, 2]
    t = cfx.Tensor([-1.0, 2])
    assert cfx.ops.relu_(t) is t and t.tolist() == [0, 2]
    z = torch.tensor([1 - 2j]).conj()
    with pytest.raises(TypeError, match="would write to 'self', a lazy conjugate"):
        cfx.ops.relu_(z)


def test_arguments():
    x = torch.tensor([-1.0, 2])
    assert cfx.ops.relu(self=x).equal(cfx.ops.relu(input=x))
    for args, kwargs, message in [
        ((), {}, "missing argument 'self'"), ((x, x), {}, "takes at most 1 arguments"),
        ((x,), {"self": x}, "multiple values for argument 'self'"),
        ((x,), {"y": 1}, "unexpected keyword argument 'y'"),
        ((None,), {}, "must be Tensor, not None"),
        ((object(),), {}, "cfx cannot compute with"),
    ]:
        with pytest.raises(TypeError, match=message):
            cfx.ops.relu(*args, **kwargs)


def test_functions():
    relu = cfx.ops.relu
    assert relu is cfx.ops.relu and pickle.loads(pickle.dumps(relu)) is relu
    assert (relu.__name__, relu.__module__) == ("relu", "cfx.ops")
    assert relu.schema == "(Tensor self) -> Tensor" and relu.parameters == ("self",)
    assert cfx.ops.cond is cfx.cond and cfx.ops.find(relu).name == "relu"
    with pytest.raises(AttributeError, match="no operator 'no_such'"):
        cfx.ops.no_such
    for name in cfx._core._kernels():
        function = getattr(cfx.ops, name)
        assert function.has_kernel if hasattr(function, "schema") else function is vars(cfx)[name]


def test_runtimes():
    assert cfx.Runtime(reference=True).isa == "plain" and cfx.Runtime(threads=1).threads == 1
    assert cfx.Runtime(threads=3).threads == 3
    with cfx.Runtime(threads=1, isa="plain") as runtime, cfx.Runtime(reference=True, seed=3):
        runtime.manual_seed(1)
        assert cfx.ops.relu(torch.tensor([-1.0])).tolist() == [0]
    cfx.manual_seed(-1)
    for wrong in (dict(isa="mmx"), dict(threads=-1)):
        with pytest.raises(ValueError):
            cfx.Runtime(**wrong)
    with pytest.raises(RuntimeError, match="not active"):
        runtime.__exit__(None, None, None)


def in_a_child(fn):
    """What a forked child of this process gets from fn(): a number from 0 to 100. It may not
    compute with torch, whose own threads hang there."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        os._exit(fn())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_runtime_has_as_many_threads_as_the_process_may_use():
    allowed = os.sched_getaffinity(0)
    assert 1 <= cfx.Runtime().threads <= len(allowed)

    def on_one():
        os.sched_setaffinity(0, {min(allowed)})
        return cfx.Runtime().threads

    assert in_a_child(on_one) == 1


def test_a_runtime_works_in_a_forked_child():
    x = np.sin(np.arange(300.0 * 300, dtype=np.float32).reshape(300, 300))
    with cfx.Runtime(threads=2):
        want = cfx.ops.matmul(x, x).tobytes()

        def again():
            return int(cfx.ops.matmul(x, x).tobytes() == want)

        assert again() == 1 and in_a_child(again) == 1


def test_peaks():
    peak = cfx.Runtime(threads=1, isa="plain").peak()
    assert (peak["isa"], peak["threads"]) == ("plain", 1)
    assert 0.01 < peak["gflops"] < 1e5 and 0.01 < peak["gbytes"] < 1e4


def test_threads():
    """Calls from many threads, in one runtime."""
    x = torch.randn(10000)
    wrong = []

    def work():
        for _ in range(50):
            if not cfx.ops.relu(x).equal(torch.relu(x)):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("depth", [1, 2])
def test_lists_that_are_emptied_while_they_are_read(depth):
    class Emptying:
        def __index__(self):
            for inner in given:
                if isinstance(inner, list):
                    inner.clear()
            given.clear()
            return 1

    given = [Emptying(), 2] if depth == 1 else [[Emptying(), 2], [3, 4]]
    with pytest.raises(RuntimeError, match="changed while it was read"):
        cfx.Tensor(given)
