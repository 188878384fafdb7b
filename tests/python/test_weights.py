"""Tensors in files, against the packages that define them; by name into modules and programs."""
import io
import os
import struct
import zipfile

import numpy as np
import pytest
import torch

import cfx

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64]
SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 4), (1, 2, 3, 4), (2,) * 8]


def sample(dtype, shape):
    count = int(np.prod(shape, dtype=np.int64))
    return (torch.arange(count) % 100).reshape(shape).to(dtype)


@pytest.fixture
def tensors():
    return {f"{dtype}.{i}".removeprefix("torch."): sample(dtype, shape)
            for dtype in DTYPES for i, shape in enumerate(SHAPES)}


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert torch.equal(a.view(torch.uint8) if a.dim() else a, b.view(torch.uint8) if b.dim() else b)


def test_safetensors_reads_what_cfx_writes(tensors, tmp_path):
    st = pytest.importorskip("safetensors.torch")
    path = tmp_path / "w.safetensors"
    cfx.save_weights(tensors, path)
    back = st.load_file(path)
    assert back.keys() == tensors.keys()
    for name, t in tensors.items():
        same(back[name], t)
    first = path.read_bytes()
    cfx.save_weights(tensors, path)
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == ["w.safetensors"]


def test_cfx_reads_what_safetensors_writes(tensors, tmp_path):
    st = pytest.importorskip("safetensors.torch")
    path = tmp_path / "w.safetensors"
    st.save_file(tensors, path, metadata={"format": "pt", "é\n\"": "\\"})
    back = cfx.load_tensors(path)
    assert back.keys() == tensors.keys()
    for name, t in tensors.items():
        same(back[name].torch(), t)


def test_strides_do_not_matter(tmp_path):
    path = tmp_path / "w.safetensors"
    t = torch.arange(24).reshape(2, 3, 4)
    cfx.save_weights({"t": t.transpose(0, 2), "e": t[:1].expand(5, 3, 4), "s": t[:, ::2]}, path)
    back = cfx.load_tensors(path)
    assert torch.equal(back["t"].torch(), t.transpose(0, 2))
    assert torch.equal(back["e"].torch(), t[:1].expand(5, 3, 4))
    assert torch.equal(back["s"].torch(), t[:, ::2])


def test_npy_both_ways(tmp_path):
    path = tmp_path / "x.npy"
    for code in ("?", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"):
        for shape in SHAPES:
            for order in "CF":
                array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2,
                                   dtype=code, order=order)
                np.save(path, array)
                back = cfx.load_npy(path).numpy()
                assert back.dtype == array.dtype and np.array_equal(back, array)
                swapped = array.astype(array.dtype.newbyteorder(">"))
                np.save(path, swapped)
                assert np.array_equal(cfx.load_npy(path).numpy(), array)
                cfx.save_npy(array, path)
                again = np.load(path)
                assert again.dtype == array.dtype and np.array_equal(again, array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(version, tmp_path):
    path = tmp_path / "x.npy"
    with open(path, "wb") as f:
        np.lib.format.write_array(f, np.arange(5.0), version=version)
    assert cfx.load_npy(path).tolist() == [0, 1, 2, 3, 4]


def test_npz(tmp_path):
    path = tmp_path / "x.npz"
    arrays = {"a": np.arange(6, dtype="f4").reshape(2, 3), "layer.0.weight": np.array(3),
              "f": np.asfortranarray(np.arange(6).reshape(2, 3))}
    np.savez(path, **arrays)
    back = cfx.load_tensors(path)
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert np.array_equal(back[name].numpy(), array)
    np.savez_compressed(path, **arrays)
    with pytest.raises(NotImplementedError, match="compressed"):
        cfx.load_tensors(path)


def test_numpy_reads_what_cfx_writes(tensors, tmp_path):
    path = tmp_path / "w.npz"
    tensors = {name: t for name, t in tensors.items() if t.dtype != torch.bfloat16}
    tensors |= {"é": torch.zeros(3), "x" * 61: torch.arange(6).reshape(2, 3).T}
    cfx.save_npz(tensors, path)
    with np.load(path) as arrays:
        assert list(arrays) == list(tensors)
        for name, t in tensors.items():
            assert arrays[name].dtype == t.numpy().dtype and np.array_equal(arrays[name], t.numpy())
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
    back = cfx.load_tensors(path)
    for name, t in tensors.items():
        same(back[name].torch().contiguous(), t.contiguous())
    assert all(t.data_ptr() % 64 == 0 for t in back.values() if 0 not in t.shape)
    first = path.read_bytes()
    cfx.save_npz(tensors, path)
    assert path.read_bytes() == first and os.listdir(tmp_path) == ["w.npz"]
    with pytest.raises(NotImplementedError, match="'w': a tensor of bfloat16"):
        cfx.save_npz({"w": torch.zeros(2, dtype=torch.bfloat16)}, path)
    assert path.read_bytes() == first


def test_archives_of_many_files(tmp_path):
    path = tmp_path / "w.npz"
    one = cfx.Tensor([1.0])
    cfx.save_npz({str(i): one for i in range(66000)}, path)
    with zipfile.ZipFile(path) as z:
        assert len(z.namelist()) == 66000
    assert list(cfx.load_tensors(path))[-1] == "65999"


def test_archives_with_a_large_offset(tmp_path):
    """As a file has it that begins after 4 GiB: its place stands in an extra field, alone."""
    path = tmp_path / "w.npz"
    cfx.save_npz({"a": cfx.Tensor([1.0, 2.0])}, path)
    data = bytearray(path.read_bytes())
    entry, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    place = data[entry + 42 : entry + 46]
    data[entry + 42 : entry + 46] = b"\xff" * 4
    data[entry + 30 : entry + 32] = struct.pack("<H", 12)
    data[end + 12 : end + 16] = struct.pack("<I", end - entry + 12)
    data[end:end] = struct.pack("<HH", 1, 8) + place + bytes(4)
    path.write_bytes(data)
    assert cfx.load_tensors(path)["a"].tolist() == [1.0, 2.0]
    with np.load(path) as arrays:
        assert arrays["a"].tolist() == [1.0, 2.0]


def test_damaged_archives(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(100.0))
    good = path.read_bytes()
    for cut in (0, 3, 4, 50, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:cut])
        with pytest.raises(ValueError):
            cfx.load_tensors(path)
    path.write_bytes(good.replace(struct.pack("<d", 50.0), struct.pack("<d", 51.0)))
    with pytest.raises(ValueError, match="checksum"):
        cfx.load_tensors(path)
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("a.npy", b"nothing")
    with pytest.raises(ValueError, match="not a .npy file"):
        cfx.load_tensors(path)


def test_archives_that_name_one_file_often(tmp_path):
    """Reading takes as long as the archive is, not as long as it pretends to be."""
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(100.0))
    good = path.read_bytes()
    end = good.rindex(b"PK\x05\x06")
    first = struct.unpack("<I", good[end + 16:end + 20])[0]
    entry = good[first:end]
    twice = entry + entry.replace(b"a.npy", b"b.npy")
    path.write_bytes(good[:first] + twice + good[end:end + 8] + struct.pack(
        "<HHII", 2, 2, len(twice), first) + good[end + 20:])
    with pytest.raises(ValueError, match="overlap"):
        cfx.load_tensors(path)


def test_what_numpy_has_and_cfx_has_not(tmp_path):
    path = tmp_path / "x.npy"
    for array in (np.zeros(2, dtype=[("a", "f4")]), np.array(["text"]), np.array([object()]),
                  np.array(["2020-01-01"], dtype="datetime64[D]"), np.zeros((1,) * 9)):
        np.save(path, array, allow_pickle=True)
        with pytest.raises(NotImplementedError):
            cfx.load_npy(path)
    with pytest.raises(NotImplementedError, match="bfloat16"):
        cfx.save_npy(torch.zeros(2, dtype=torch.bfloat16), path)


@pytest.mark.parametrize("kind", ["u2", "u4", "u8"])
def test_wide_unsigned_integers(kind, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([1, 2**16 - 1], kind))
    assert cfx.load_npy(path).numpy().dtype == kind
    assert cfx.load_npy(path).tolist() == [1, 2**16 - 1]


def test_files_that_are_not_there(tmp_path):
    for call in (cfx.load_npy, cfx.load_tensors):
        with pytest.raises(OSError, match="No such file"):
            call(tmp_path / "none")
        with pytest.raises(OSError):
            call(tmp_path)
    with pytest.raises(OSError):
        cfx.save_npy(torch.zeros(2), tmp_path / "none" / "x.npy")
    assert os.listdir(tmp_path) == []


def test_writing_to_a_loaded_tensor_leaves_the_file_alone(tmp_path):
    path = tmp_path / "x.npy"
    cfx.save_npy(torch.zeros(3), path)
    cfx.load_npy(path).torch()[0] = 5
    assert cfx.load_npy(path).tolist() == [0, 0, 0]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 4)
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x):
        return torch.relu(self.fc(x)) + self.shift


def test_weights_of_modules_and_programs(tmp_path):
    path = tmp_path / "w.safetensors"
    a, b = Model(), Model()
    cfx.save_weights(a, path)
    lowered = cfx.lower(cfx.symbolic_trace(b))
    x = torch.randn(2, 3)
    with torch.no_grad():
        cfx.load_weights(lowered, path)  # shares memory with b
        torch.testing.assert_close(lowered(x), a(x))
        c = Model()
        cfx.load_weights(c, path)
        torch.testing.assert_close(c(x), a(x))


def test_all_that_does_not_fit_is_told(tmp_path):
    path = tmp_path / "w.safetensors"
    model = Model()
    before = {name: t.clone() for name, t in model.state_dict().items()}
    cfx.save_weights({"fc.weight": torch.ones(4, 3), "fc.bias": torch.ones(5),
                      "odd": torch.ones(1)}, path)
    with pytest.raises(KeyError) as e:
        cfx.load_weights(model, path)
    for part in ("'fc.bias' must be float32[4], not float32[5]", "'shift' is missing",
                 "'odd' is unexpected"):
        assert part in str(e.value)
    cfx.save_weights({"fc.weight": torch.ones(4, 3), "odd": torch.ones(1)}, path)
    for name, t in model.state_dict().items():
        assert torch.equal(t, before[name])
    cfx.load_weights(model, path, strict=False)
    assert torch.equal(model.fc.weight, torch.ones(4, 3))
    with pytest.raises(TypeError, match="expected a module"):
        cfx.load_weights(3, path)
    with pytest.raises(TypeError):
        cfx.save_weights({"a": "text"}, path)


def test_shapes():
    shapes = cfx.infer_shapes(cfx.symbolic_trace(Model()), "float32[N, 3]")
    assert shapes.nodes["fc"] == cfx.TensorShape("float32", ("N", 4))
    assert shapes.result == ("float32", ("N", 4))
    assert shapes.assumptions == []
    lowered = cfx.lower(cfx.symbolic_trace(Model()))
    assert lowered.infer(x=torch.zeros(5, 3)).result.shape == (5, 4)
    with pytest.raises(RuntimeError, match="linear"):
        lowered.infer("float32[N, 5]")
    with pytest.raises(SyntaxError, match="float99"):
        lowered.infer("float99[N]")


def test_assumptions():
    def add(x, y):
        return x + y

    shapes = cfx.infer_shapes(cfx.symbolic_trace(add), "float32[N, 3]", "int64[M, 1]")
    assert shapes.result == ("float32", ("N", 3))
    assert shapes.assumptions == ["N == M"]
