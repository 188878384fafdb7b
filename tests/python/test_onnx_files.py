"""ONNX files as bytes: weights at any address, copied when they are needed; files that cfx writes
have them aligned; functions, loops and nesting at their limits. docs/onnx.md"""
import threading

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
torch = pytest.importorskip("torch")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import cfx  # noqa: E402
import cfx.onnx  # noqa: E402
import cfx.runtime  # noqa: E402

WIDTH = 256  # 256 KB for a matrix: it stays in the file until it is needed


def model_of(weights, **options):
    """y = x @ w0 @ w1 ..."""
    nodes, last = [], "x"
    for i in range(len(weights)):
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"y{i}"]))
        last = f"y{i}"
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, WIDTH])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, [2, WIDTH])],
        [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8,
                             **options)


def weights_of(count):
    numbers = np.random.default_rng(0)
    return [numbers.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 16 for _ in range(count)]


def offsets(path):
    """Where the elements of each initializer begin in the file."""
    data = path.read_bytes()
    tensors = onnx.load(path).graph.initializer
    return [data.find(t.raw_data) for t in tensors if len(t.raw_data) > 999]


@pytest.fixture
def skewed(tmp_path):
    """A model whose weights are at every address that is wrong for a float, and what it gives."""
    weights, x = weights_of(4), np.random.default_rng(1).standard_normal((2, WIDTH))
    x = x.astype(np.float32)
    path = tmp_path / "skewed.onnx"
    model = model_of(weights)
    for i, tensor in enumerate(model.graph.initializer):
        tensor.doc_string = "." * (i + 1)
    onnx.save(model, path)
    assert {at % 4 for at in offsets(path)} - {0}
    want = x
    for w in weights:
        want = want @ w
    return path, x, want, weights


# ---- reading -------------------------------------------------------------------------------------


def test_skewed_weights_run(skewed):
    path, x, want, _ = skewed
    np.testing.assert_allclose(cfx.runtime.load(path)(x), want, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        got = cfx.onnx.load(path)(torch.from_numpy(x))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)


def test_skewed_weights_are_aligned_for_who_sees_them(skewed):
    path, _, _, weights = skewed
    loaded = cfx.onnx.load(path)
    for i, w in enumerate(weights):
        assert loaded.get_parameter(f"w{i}").data_ptr() % 64 == 0 or offsets(path)[i] % 4 == 0
        np.testing.assert_array_equal(loaded.get_parameter(f"w{i}").detach().numpy(), w)


def test_threads_need_skewed_weights_at_once(skewed):
    path, x, want, _ = skewed
    for _ in range(5):
        model, results = cfx.runtime.load(path), []
        start = threading.Barrier(4)

        def run(model=model, start=start, results=results):
            start.wait()
            results.append(model(x))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for got in results:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_weights_that_nobody_needed_are_converted(skewed, tmp_path):
    path, x, want, weights = skewed
    loaded = cfx.onnx.load(path)
    cfx.package.save(loaded, tmp_path / "m.cfx")
    np.testing.assert_allclose(cfx.runtime.load(tmp_path / "m.cfx")(x), want, rtol=1e-4, atol=1e-4)


def test_a_file_may_be_replaced_while_its_weights_are_in_use(skewed):
    path, x, want, _ = skewed
    model = cfx.runtime.load(path)
    new = path.with_suffix(".new")
    new.write_bytes(b"\0" * path.stat().st_size)
    new.rename(path)  # the model keeps the old file
    np.testing.assert_allclose(model(x), want, rtol=1e-4, atol=1e-4)


# ---- writing -------------------------------------------------------------------------------------


def test_elements_are_aligned_in_files_that_cfx_writes(skewed, tmp_path):
    path, x, want, weights = skewed
    out = tmp_path / "out.onnx"
    cfx.onnx.save(cfx.onnx.load(path), out, inputs=(torch.from_numpy(x),))
    assert len(offsets(out)) == len(weights)
    assert [at % 64 for at in offsets(out)] == [0] * len(weights)
    onnx.checker.check_model(out, full_check=True)
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(out)
    got = session.run(None, {session.get_inputs()[0].name: x})[0]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(cfx.runtime.load(out)(x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 61])  # the size of the graph has 3 or 4 bytes in the file
def test_elements_are_aligned_in_files_of_any_size(count, tmp_path):
    model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(count)])
    out = tmp_path / "out.onnx"
    cfx.onnx.save(cfx.capture(model, torch.ones(2, WIDTH)), out)
    found = offsets(out)
    assert len(found) == 2 * count
    assert {at % 64 for at in found} == {0}


# ---- functions and nesting -----------------------------------------------------------------------


def functions_model(functions, name):
    node = helper.make_node(name, ["x"], ["y"], domain="own")
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])] for name in "xy"]
    graph = helper.make_graph([node], "g", *ends)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=8)


def function_of(name, calls, domain="own"):
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    nodes = [helper.make_node(calls, ["a"], ["b"], domain=domain)]
    return helper.make_function("own", name, ["a"], ["b"], nodes, opsets)


def test_functions_that_call_each_other_for_ever_are_refused():
    model = functions_model([function_of("f", "g"), function_of("g", "f")], "f")
    with pytest.raises(Exception, match="functions call one another too deep"):
        cfx.runtime.load(model.SerializeToString())
    model = functions_model([function_of("f", "f")], "f")
    with pytest.raises(Exception, match="functions call one another too deep"):
        cfx.runtime.load(model.SerializeToString())


def test_of_many_functions_the_right_one_is_called():
    names = ["Relu", "Neg", "Abs", "Exp"]
    made = [function_of(f"f{i}", names[i % 4], "") for i in range(2000)]
    x = np.array([-1.5, 2], np.float32)
    for i, want in ((1996, np.maximum(x, 0)), (1997, -x), (1998, abs(x)), (1999, np.exp(x))):
        run = cfx.runtime.load(functions_model(made, f"f{i}").SerializeToString())
        np.testing.assert_allclose(run(x), want, rtol=1e-6)


def nested(depth):
    """If in If, `depth` deep, around an Identity."""
    node = helper.make_node("Identity", ["x"], ["y"])
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
    for _ in range(depth):
        deep = helper.make_graph([node], "then", [], out)
        flat = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "else", [], out)
        node = helper.make_node("If", ["c"], ["y"], then_branch=deep, else_branch=flat)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
              helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    graph = helper.make_graph([node], "g", inputs, out)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def varint(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def deep_bytes(depth):
    """The same as bytes: the onnx package cannot write what protobuf nests deeper than 100."""
    out = field(12, field(1, b"y"))
    graph = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Identity")) + out
    for _ in range(depth):
        branch = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"
        node = field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, branch)
        graph = field(1, node) + out
    return b"\x08\x08" + field(8, field(1, b"") + b"\x10\x12") + field(7, graph)


def test_graphs_nest_and_a_thousand_deep_are_refused():
    x = np.array([-1.5, 2], np.float32)
    run = cfx.runtime.load(nested(20).SerializeToString())
    np.testing.assert_array_equal(run(x, np.array(True)), x)
    np.testing.assert_array_equal(run(x, np.array(False)), -x)
    for depth in (1000, 3000):
        with pytest.raises(ValueError, match="nested"):
            cfx.runtime.load(deep_bytes(depth))


def loop_model(trips):
    """Appends x + i at each turn: the result has as many rows as there were turns."""
    body = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
         helper.make_node("Add", ["x", "f"], ["row"]),
         helper.make_node("Identity", ["c"], ["c_out"])],
        "body", [helper.make_tensor_value_info("i", TensorProto.INT64, []),
                 helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("c_out", TensorProto.BOOL, []),
         helper.make_tensor_value_info("row", TensorProto.FLOAT, [2])])  # fmt: skip
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
    initializers = []
    if trips is None:
        inputs.append(helper.make_tensor_value_info("n", TensorProto.INT64, []))
    else:
        initializers.append(numpy_helper.from_array(np.array(trips), "n"))
    node = helper.make_node("Loop", ["n", ""], ["rows"], body=body)
    graph = helper.make_graph([node], "g", inputs,
                              [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["k", 2])],
                              initializers)  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.mark.parametrize("trips", [0, 1, 3])
@pytest.mark.parametrize("known", [False, True])
def test_a_loop_of_any_number_of_turns_stacks_its_rows(trips, known):
    x = np.array([1, 2], np.float32)
    run = cfx.runtime.load(loop_model(trips if known else None).SerializeToString())
    got = run(x) if known else run(x, np.array(trips))
    want = np.stack([x + i for i in range(trips)]) if trips else np.zeros((0, 2), np.float32)
    np.testing.assert_array_equal(got, want)
