"""ONNX files from Python: cfx.onnx.load, cfx.load, cfx.runtime.load and the command."""
import subprocess
import sys

import numpy as np
import pytest
import torch

import cfx
from cfx.text import text

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

FLOAT = TensorProto.FLOAT


def model(nodes, inputs, outputs, initializers=(), opset=18, **more):
    """A model of these nodes; (name, sizes) of inputs and outputs, which are float32."""
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info(n, FLOAT, s) for n, s in inputs],
        [helper.make_tensor_value_info(n, FLOAT, s) for n, s in outputs], list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset),
                                                   *more.pop("opsets", ())], **more)
    return made


def linear():
    weight = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3), "fc.0.weight")
    bias = numpy_helper.from_array(np.ones(4, np.float32), "fc.0.bias")
    node = helper.make_node("Gemm", ["input.1", weight.name, bias.name], ["y"], transB=1)
    node.metadata_props.add(key="cfx.location", value="model.py:12")
    node.metadata_props.add(key="cfx.modules", value="fc.0(torch.nn.Linear) < fc(Stack)")
    return model([node, helper.make_node("Relu", ["y"], ["/out:0"])], [("input.1", ["N", 3])],
                 [("/out:0", ["N", 4])], [weight, bias])


def expected(x):
    weight = torch.arange(12.0).reshape(4, 3)
    return torch.relu(torch.nn.functional.linear(x, weight, torch.ones(4)))


def test_a_file_becomes_a_graph_module(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(linear(), path)
    gm = cfx.onnx.load(path)
    x = torch.randn(5, 3)
    assert torch.allclose(gm(x), expected(x))
    assert [name for name, _ in gm.named_parameters()] == ["fc.0.weight", "fc.0.bias"]
    assert type(gm).__name__ == "net"
    assert torch.allclose(cfx.load(path)(x), expected(x))
    assert torch.allclose(cfx.onnx.load(linear().SerializeToString())(x), expected(x))


def test_lines_and_modules_of_the_program_come_back():
    gm = cfx.onnx.load(linear().SerializeToString())
    line = next(line for line in text(gm.graph).splitlines() if "%y = " in line)
    assert "@ model.py:12" in line
    node = next(node for node in gm.graph.nodes if node.name == "y")
    assert list(node.meta["nn_module_stack"]) == ["fc", "fc.0"]


def test_it_runs_without_torch(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(linear(), path)
    run = cfx.runtime.load(path)
    x = np.ones((2, 3), np.float32)
    assert np.allclose(run(x), expected(torch.from_numpy(x)).numpy())
    code = ("import sys; sys.modules['torch'] = None\n"
            "import numpy as np; from cfx import runtime\n"
            f"print(runtime.load({str(path)!r})(np.ones((2, 3), np.float32)).shape)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "(2, 4)\n", done.stderr


def test_importing_cfx_does_not_import_onnx():
    code = ("import sys, cfx, cfx.onnx\n"
            "assert cfx.onnx.__name__ == 'cfx.onnx' and 'onnx' not in sys.modules\n"
            "import onnx; assert onnx.__name__ == 'onnx' and onnx is not cfx.onnx")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_that_cannot_be_read_is_listed():
    made = model([helper.make_node("Frob", ["x"], ["a"], name="one"),
                  helper.make_node("Fused", ["a"], ["y"], name="two", domain="com.other")],
                 [("x", [2])], [("y", [2])], opsets=[helper.make_opsetid("com.other", 1)])
    with pytest.raises(cfx.onnx.ReadError, match="2 nodes cannot be read") as caught:
        cfx.onnx.load(made.SerializeToString())
    assert [(one.node, one.op) for one in caught.value.findings] == [
        ("one", "Frob"), ("two", "com.other::Fused")]
    assert cfx.onnx.findings(linear().SerializeToString()) == []
    with pytest.raises(ValueError, match="damaged at byte"):
        cfx.onnx.load(b"\x08\x07rubbish")


def test_external_data_is_mapped_and_stays_in_its_folder(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save_model(linear(), path, save_as_external_data=True, size_threshold=0)
    x = torch.randn(2, 3)
    assert torch.allclose(cfx.onnx.load(path)(x), expected(x))
    made = linear()
    onnx.external_data_helper.set_external_data(made.graph.initializer[0], "../w.bin")
    made.graph.initializer[0].ClearField("raw_data")
    path.write_bytes(made.SerializeToString())
    with pytest.raises(ValueError, match="not in the folder of the model"):
        cfx.onnx.load(path)


def test_functions_of_the_model_are_inlined():
    """With an attribute of the call, and one that has a default."""
    soft = helper.make_node("Softmax", ["a"], ["b"])
    soft.attribute.append(onnx.AttributeProto(name="axis", ref_attr_name="dim",
                                              type=onnx.AttributeProto.INT))
    total = helper.make_node("CumSum", ["b", "zero"], ["c"])
    total.attribute.append(onnx.AttributeProto(name="reverse", ref_attr_name="back",
                                               type=onnx.AttributeProto.INT))
    zero = helper.make_node("Constant", [], ["zero"], value_int=0)
    twice = helper.make_function("my", "Twice", ["a"], ["c"], [soft, zero, total],
                                 [helper.make_opsetid("", 18)], ["dim"],
                                 [helper.make_attribute("back", 1)])
    made = model([helper.make_node("Twice", ["x"], ["y"], domain="my", dim=0)], [("x", [3, 2])],
                 [("y", [3, 2])], functions=[twice], opsets=[helper.make_opsetid("my", 1)])
    x = torch.randn(3, 2)
    want = torch.softmax(x, 0).flip(0).cumsum(0).flip(0)
    assert torch.allclose(cfx.onnx.load(made.SerializeToString())(x), want)


def test_shapes_that_nodes_compute_stay_dynamic():
    nodes = [helper.make_node("Shape", ["x"], ["s"]),
             helper.make_node("Constant", [], ["zero"], value_ints=[0]),
             helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
             helper.make_node("Constant", [], ["rest"], value_ints=[-1]),
             helper.make_node("Concat", ["n", "rest"], ["shape"], axis=0),
             helper.make_node("Reshape", ["x", "shape"], ["y"])]
    made = model(nodes, [("x", ["N", 3, 4])], [("y", ["N", 12])])
    gm = cfx.onnx.load(made.SerializeToString())
    for n in (2, 5):
        assert gm(torch.zeros(n, 3, 4)).shape == (n, 12)
    assert [node.name for node in gm.graph.nodes] == ["x", "size", "y", "output"]


def test_branches_and_loops_use_values_around_them():
    def graph(name, nodes, inputs, outputs):
        return helper.make_graph(nodes, name, inputs, outputs)

    info = helper.make_tensor_value_info
    then = graph("then", [helper.make_node("Mul", ["x", "w"], ["a"])], [], [info("a", FLOAT, [2])])
    other = graph("else", [helper.make_node("Neg", ["x"], ["b"])], [], [info("b", FLOAT, [2])])
    body = graph("body", [helper.make_node("Identity", ["c"], ["c2"]),
                          helper.make_node("Add", ["v", "r"], ["v2"])],
                 [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []),
                  info("v", FLOAT, [2])],
                 [info("c2", TensorProto.BOOL, []), info("v2", FLOAT, [2])])
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
             helper.make_node("Constant", [], ["zero"], value_float=0.0),
             helper.make_node("Greater", ["sum", "zero"], ["cond"]),
             helper.make_node("If", ["cond"], ["r"], then_branch=then, else_branch=other),
             helper.make_node("Constant", [], ["three"], value_int=3),
             helper.make_node("Loop", ["three", "", "x"], ["y"], body=body)]
    weight = numpy_helper.from_array(np.array([2.0, 3.0], np.float32), "w")
    gm = cfx.onnx.load(model(nodes, [("x", [2])], [("y", [2])], [weight]).SerializeToString())
    run = cfx.runtime.load(model(nodes, [("x", [2])], [("y", [2])], [weight]).SerializeToString())
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])):
        want = x + 3 * (x * torch.tensor([2.0, 3.0]) if x.sum() > 0 else -x)
        assert torch.allclose(gm(x), want) and torch.allclose(run(x), want)


def test_a_sequence_is_mapped():
    """Over lists and a tensor at once; the body uses a value around it, and gives a constant."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["t"]), helper.make_node("Mul", ["t", "w"], ["p"]),
         helper.make_node("Sub", ["p", "c"], ["d"]), helper.make_node("Size", ["a"], ["size"])],
        "body", [info(name, FLOAT, [2]) for name in "abc"],
        [info("d", FLOAT, [2]), info("size", TensorProto.INT64, [])])
    nodes = [helper.make_node("SequenceConstruct", ["x", "y", "x"], ["first"]),
             helper.make_node("SplitToSequence", ["z"], ["second"], axis=0, keepdims=0),
             helper.make_node("SequenceMap", ["first", "y", "second"], ["maps", "sizes"],
                              body=body),
             helper.make_node("ConcatFromSequence", ["maps"], ["out"], axis=0, new_axis=1),
             helper.make_node("ConcatFromSequence", ["sizes"], ["sizes_"], axis=0, new_axis=1),
             helper.make_node("Cast", ["sizes_"], ["count"], to=FLOAT)]
    inputs = [("x", [2]), ("y", [2]), ("z", [3, 2]), ("w", [2])]
    data = model(nodes, inputs, [("out", [3, 2]), ("count", [3])]).SerializeToString()
    x, y, z, w = torch.randn(2), torch.randn(2), torch.randn(3, 2), torch.randn(2)
    want = torch.stack([(a + y) * w - c for a, c in zip((x, y, x), z)])
    for program in (cfx.onnx.load(data), cfx.runtime.load(data)):
        out, count = program(x, y, z, w)
        assert torch.allclose(out, want) and count.tolist() == [2, 2, 2]


def test_parts_of_lengths_that_only_a_run_knows():
    """And as many as it knows: the first is left out."""
    numbers = [numpy_helper.from_array(np.array(value), name)
               for name, value in (("one", [1]), ("end", [2**62]), ("last", -1))]
    nodes = [helper.make_node("Cast", ["lengths"], ["all"], to=TensorProto.INT64),
             helper.make_node("Slice", ["all", "one", "end"], ["rest"]),
             helper.make_node("SplitToSequence", ["x", "rest"], ["parts"]),
             helper.make_node("SequenceAt", ["parts", "last"], ["y"])]
    data = model(nodes, [("lengths", ["n"]), ("x", ["m", 2])], [("y", ["k", 2])],
                 numbers).SerializeToString()
    for program in (cfx.onnx.load(data), cfx.runtime.load(data)):
        for lengths in ([9, 1, 3], [0, 2, 1, 1, 2]):
            x = torch.randn(sum(lengths[1:]), 2)
            assert torch.equal(program(torch.tensor(lengths).float(), x), x[-lengths[-1]:])


@pytest.mark.parametrize("opset", [9, 13, 18])
def test_what_torch_exports_is_read(opset, tmp_path):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3),
                              torch.nn.Softmax(-1)).eval()
    path = tmp_path / "m.onnx"
    torch.onnx.export(net, (torch.randn(2, 4),), str(path), opset_version=opset, dynamo=False,
                      input_names=["x"], dynamic_axes={"x": {0: "N"}})
    x = torch.randn(5, 4)
    assert torch.allclose(cfx.onnx.load(path)(x), net(x), atol=1e-5)
    assert torch.allclose(cfx.runtime.load(path)(x), net(x), atol=1e-5)


def scaled(ir_version, scale):
    """x * scale + w, where both have an initializer and are inputs, too."""
    inputs = [("w", (3,)), ("x", ("N", 3)), ("scale", scale.shape)]
    made = helper.make_graph(
        [helper.make_node("Mul", ["x", "scale"], ["t"]),
         helper.make_node("Add", ["t", "w"], ["y"])],
        "g", [helper.make_tensor_value_info(n, FLOAT, s) for n, s in inputs],
        [helper.make_tensor_value_info("y", FLOAT, ("N", 3))],
        [onnx.numpy_helper.from_array(np.arange(3, dtype=np.float32), "w"),
         onnx.numpy_helper.from_array(scale, "scale")])  # fmt: skip
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)],
                             ir_version=ir_version).SerializeToString()


def test_inputs_with_an_initializer_may_be_left_out():
    data = scaled(8, np.array(2, dtype=np.float32))
    gm, run = cfx.onnx.load(data), cfx.runtime.load(data)
    x, w = torch.randn(2, 3), torch.randn(3)
    for program in gm, run:
        torch.testing.assert_close(program(x), x * 2 + torch.arange(3.0))
        torch.testing.assert_close(program(x, w), x * 2 + w)
        torch.testing.assert_close(program(x, w, torch.tensor(5.0)), x * 5 + w)
        torch.testing.assert_close(program(x), x * 2 + torch.arange(3.0))
    torch.testing.assert_close(gm(x, scale=torch.tensor(3.0)), x * 3 + torch.arange(3.0))


def test_initializers_of_ir_version_3_are_constants():
    gm = cfx.onnx.load(scaled(3, np.array(2, dtype=np.float32)))
    x = torch.randn(2, 3)
    torch.testing.assert_close(gm(x), x * 2 + torch.arange(3.0))
    with pytest.raises(TypeError):
        gm(x, torch.zeros(3))


def test_sizes_with_an_initializer_are_constants():
    """A Reshape needs to know them: they cannot be given."""
    made = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])], "g",
        [helper.make_tensor_value_info("x", FLOAT, (2, 3)),
         helper.make_tensor_value_info("shape", onnx.TensorProto.INT64, (2,))],
        [helper.make_tensor_value_info("y", FLOAT, (3, 2))],
        [onnx.numpy_helper.from_array(np.array([3, -1]), "shape")])  # fmt: skip
    gm = cfx.onnx.load(helper.make_model(
        made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString())
    assert gm(torch.randn(2, 3)).shape == (3, 2)
