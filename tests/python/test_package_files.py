"""Weights of a .cfx file in other files, and files from descriptors and memory."""
import gc
import io
import json
import mmap
import os
import signal
import threading
import weakref
import zipfile

import pytest
import torch
from torch import nn

import cfx
from cfx.package import PackageError


def model(seed=0, size=64):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size), nn.Linear(size, 2))
    return cfx.symbolic_trace(net)


def manifest(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("cfx.json"))


def shards(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))


X = torch.randn(3, 64)


def test_shards_are_written_and_found(tmp_path):
    gm, path = model(), tmp_path / "net.cfx"
    cfx.save(gm, path, shard_size=20000)
    said = manifest(path)
    assert said["format"] == 2 and said["reads"] == 1 and said["weights"] == "outside"
    assert [file["file"] for file in said["files"]] == shards(tmp_path)
    assert len(shards(tmp_path)) > 1
    assert shards(tmp_path)[0].startswith("net-00001-of-0000")
    assert path.stat().st_size < 5000
    for options in ({}, {"map": False}, {"verify": True}):
        assert torch.equal(cfx.load(path, **options)(X), gm(X))


def test_old_shards_go_when_the_new_ones_are_complete(tmp_path):
    path = tmp_path / "net.cfx"
    cfx.save(model(0), path, shard_size=20000)
    first, old = shards(tmp_path), cfx.load(path)
    (tmp_path / "net-00001-of-00009-other.safetensors").write_bytes(b"not one of them")
    cfx.save(model(1), path, shard_size=20000)
    second = shards(tmp_path)
    assert not set(first) & set(second) and "net-00001-of-00009-other.safetensors" in second
    assert torch.equal(cfx.load(path)(X), model(1)(X))
    assert torch.equal(old(X), model(0)(X))  # it has the removed files mapped
    cfx.save(model(1), path)
    assert shards(tmp_path) == ["net-00001-of-00009-other.safetensors"]
    assert torch.equal(cfx.load(path)(X), model(1)(X))


def test_a_failed_save_leaves_the_old_set(tmp_path):
    path = tmp_path / "net.cfx"
    cfx.save(model(0), path, shard_size=20000)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}

    class Stop(Exception):
        pass

    gm = model(1)
    calls = 0

    def stop(done, all_):
        nonlocal calls
        calls += 1
        if calls == limit:
            raise Stop

    _, tensors = cfx.package._written(gm)
    for limit in range(1, 200, 3):
        calls = 0
        try:
            cfx._core._save_package(path, "Net", {"graph.ir": cfx.text(gm.graph)}, tensors, stop,
                                    None, 20000)
            break
        except Stop:
            after = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
            assert after == before, limit
    assert limit > 10


@pytest.mark.parametrize("base", ["base.safetensors", "base.cfx"])
def test_a_head_on_shared_weights(tmp_path, base):
    gm = model()
    if base.endswith(".cfx"):
        cfx.save(gm, tmp_path / base)
    else:
        cfx.save_weights(gm, tmp_path / base)
    cfx.save(gm, tmp_path / "same.cfx", weights=base)
    assert (tmp_path / "same.cfx").stat().st_size < 6000
    assert torch.equal(cfx.load(tmp_path / "same.cfx", verify=True)(X), gm(X))
    tuned = model()
    with torch.no_grad():
        tuned.get_submodule("3").weight.add_(1)
    cfx.save(tuned, tmp_path / "tuned.cfx", weights=base)
    assert (tmp_path / "tuned.cfx").stat().st_size < 6000
    assert manifest(tmp_path / "tuned.cfx")["reads"] == 2
    assert torch.equal(cfx.load(tmp_path / "tuned.cfx")(X), tuned(X))
    # another base is noticed, by its size or its hash
    other = model(1)
    if base.endswith(".cfx"):
        cfx.save(other, tmp_path / base)
        with pytest.raises(ValueError, match="not those that this model was saved with"):
            cfx.load(tmp_path / "tuned.cfx")
    else:
        cfx.save_weights(other, tmp_path / base)
        with pytest.raises(ValueError, match="another hash"):
            cfx.load(tmp_path / "tuned.cfx", verify=True)
    os.remove(tmp_path / base)
    with pytest.raises(OSError, match=base):
        cfx.load(tmp_path / "tuned.cfx")
    assert torch.equal(cfx.load(tmp_path / "same.cfx", weights=gm)(X), gm(X))


def test_names_of_files_lead_nowhere_else(tmp_path):
    gm = model()
    for name in ("../base.safetensors", "/etc/passwd", "sub/base.safetensors", "..", "a\\b"):
        with pytest.raises((ValueError, OSError)):
            cfx._core._save_package(tmp_path / "net.cfx", "Net", {}, None, None, name, 0)
    cfx.save_weights(gm, tmp_path / "base.safetensors")
    cfx.save(gm, tmp_path / "net.cfx", weights="base.safetensors")
    data = (tmp_path / "net.cfx").read_bytes()
    for name in (b"../e.safetensors", b"/ase.safetensors", b"b/se.safetensors"):
        with pytest.raises(ValueError, match="name that is not allowed"):
            cfx.load(data.replace(b"base.safetensors", name))
    with pytest.raises(ValueError, match="load it from its path"):
        cfx.load(data)


def test_descriptors_and_files(tmp_path):
    gm, path = model(), tmp_path / "net.cfx"
    cfx.save(gm, path)
    with open(path, "rb") as file:
        file.read(10)
        assert torch.equal(cfx.load(file)(X), gm(X))
        assert torch.equal(cfx.load(file.fileno(), map=False)(X), gm(X))
        loaded = cfx.load(file)
    assert torch.equal(loaded(X), gm(X))  # the file is closed, the map is not
    assert torch.equal(cfx.load(io.BytesIO(path.read_bytes()))(X), gm(X))
    out, into = os.pipe()

    def feed():
        with open(into, "wb") as pipe:
            pipe.write(path.read_bytes())

    feeder = threading.Thread(target=feed)
    feeder.start()
    assert torch.equal(cfx.load(out)(X), gm(X))
    feeder.join()
    os.close(out)
    with pytest.raises(OSError):
        cfx.load(out)


def test_memory_is_shared_and_kept_alive(tmp_path):
    gm, path = model(size=200), tmp_path / "net.cfx"  # large: not copied to an aligned address
    cfx.save(gm, path)

    class Memory(bytearray):
        pass

    memory = Memory(path.read_bytes())
    gone = weakref.ref(memory)
    loaded = cfx.load(memory)
    before = bytes(memory)
    with torch.no_grad():
        loaded.get_submodule("0").weight.zero_()
    assert bytes(memory) != before  # it is the same memory
    with pytest.raises(BufferError):
        memory.append(0)
    copied = cfx.load(memory, map=False)
    del memory
    assert gone() is not None and not loaded.get_submodule("0").weight.any()
    weight = loaded.get_submodule("0").weight.detach()
    del loaded
    assert gone() is not None
    del weight
    gc.collect()  # modules are part of cycles
    assert gone() is None
    assert not copied.get_submodule("0").weight.any()
    with open(path, "rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    x = torch.randn(3, 200)
    assert torch.equal(cfx.load(pages)(x), gm(x))
    with pytest.raises(ValueError):
        cfx.load(bytearray(b"nothing"))


def test_constant_memory_is_left_alone(tmp_path):
    path = tmp_path / "net.cfx"
    cfx.save(model(), path)
    data = path.read_bytes()
    loaded = cfx.load(data)
    with torch.no_grad():
        loaded.get_submodule("0").weight.zero_()
    assert data == path.read_bytes()


def test_a_mapped_file_may_be_replaced(tmp_path):
    path = tmp_path / "net.cfx"
    cfx.save(model(0), path)
    old = cfx.load(path)
    cfx.save(model(1), path)
    assert torch.equal(old(X), model(0)(X)) and torch.equal(cfx.load(path)(X), model(1)(X))


def test_complex128(tmp_path):
    net = nn.Module()
    for name, shape in (("a", (3, 2)), ("b", ()), ("c", (0, 2))):
        net.register_buffer(name, torch.randn(shape, dtype=torch.complex128))
    graph = cfx.Graph()
    graph.output(tuple(graph.get_attr(name) for name in "abc"))
    gm = cfx.GraphModule(net, graph)
    for options in ({}, {"shard_size": 10}):
        cfx.save(gm, tmp_path / "net.cfx", **options)
        for was, now in zip(gm(), cfx.load(tmp_path / "net.cfx", verify=True)(), strict=True):
            assert was.dtype == now.dtype and torch.equal(was, now)
    cfx.save(gm, tmp_path / "net.cfx")
    assert manifest(tmp_path / "net.cfx")["reads"] == 2
    plain = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    with zipfile.ZipFile(tmp_path / "net.cfx") as archive:
        parts = plain.load(archive.read("weights.safetensors"))
    assert torch.equal(torch.view_as_complex(parts["a"]), gm.a)


def test_weights_outside_still_have_to_be_given(tmp_path):
    cfx.save(model(), tmp_path / "net.cfx", weights=False)
    with pytest.raises(PackageError, match="kept elsewhere"):
        cfx.load(tmp_path / "net.cfx")


def test_an_interrupt_stops_a_save(tmp_path):
    path = tmp_path / "net.cfx"
    cfx.save(model(), path)
    before = path.read_bytes()
    large = model(size=4000)  # 64 MB in each of two layers

    def stop(number, frame):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            cfx.save(large, path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["net.cfx"]
