"""More uses of clients: tools/clients.py runs this file in the scope of client_uses.py."""


# ---- tensors and graphs -------------------------------------------------------------------------


@use("e3nn")
def tensor_product():
    import torch
    from e3nn import o3

    product = o3.FullyConnectedTensorProduct("2x0e + 1x1o", "1x0e + 1x1o", "2x0e + 1x1o")
    x, y = torch.randn(4, 5), torch.randn(4, 4)
    return product(x, y)


@use("e3nn")
def linear_and_norm():
    import torch
    from e3nn import o3

    linear = o3.Linear("4x0e + 2x1o", "3x0e + 2x1o")
    product = o3.TensorSquare("2x0e + 1x1o")
    return linear(torch.randn(5, 10)), product(torch.randn(5, 5))


@use("e3nn")
def reduced_product():
    import torch
    from e3nn import o3

    product = o3.ReducedTensorProducts("ij=ji", i="1o")
    return product(torch.randn(2, 3), torch.randn(2, 3))


@use("opt_einsum_fx")
def optimize_einsums():
    import torch
    import torch.fx as fx
    from opt_einsum_fx import optimize_einsums_full

    def g(x, y, z):
        first = torch.einsum("ij,jk->ik", x, y)
        return torch.einsum("ik,kl->il", first, z) * 2.0

    inputs = torch.randn(3, 4), torch.randn(4, 5), torch.randn(5, 6)
    optimized = optimize_einsums_full(fx.symbolic_trace(g), inputs)
    return optimized.code, optimized(*inputs)


@use("opt_einsum_fx")
def jitable_and_shapes():
    import torch
    import torch.fx as fx
    from opt_einsum_fx import EfficientShapeProp, jitable

    def g(x, y):
        return torch.tensordot(torch.einsum("ij,jk->ik", x, y), y.T, dims=([1], [0]))

    inputs = torch.randn(3, 4), torch.randn(4, 5)
    gm = fx.symbolic_trace(g)
    EfficientShapeProp(gm).run(*inputs)
    shapes = [str(n.meta["tensor_meta"].shape) for n in gm.graph.nodes if n.op != "output"]
    return shapes, jitable(gm)(*inputs)


@use("torch_geometric")
def to_hetero():
    import torch
    from torch_geometric.nn import SAGEConv
    from torch_geometric.nn import to_hetero as convert

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = SAGEConv((-1, -1), 8)
            self.conv2 = SAGEConv((-1, -1), 4)
            self.lin = torch.nn.Linear(4, 2)

        def forward(self, x, edge_index):
            x = self.conv1(x, edge_index).relu()
            return self.lin(self.conv2(x, edge_index))

    edges = [("paper", "cites", "paper"), ("author", "writes", "paper"),
             ("paper", "rev_writes", "author")]  # fmt: skip
    model = convert(Net(), (["paper", "author"], edges), aggr="sum")
    index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    x = {"paper": torch.randn(3, 5), "author": torch.randn(3, 5)}
    torch.manual_seed(1)
    return model(x, {edge: index for edge in edges})


@use("torch_geometric")
def to_hetero_with_bases():
    import torch
    from torch_geometric.nn import GCNConv
    from torch_geometric.nn import to_hetero_with_bases as convert

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(5, 4, add_self_loops=False)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index).relu()

    edges = [("a", "to", "b"), ("b", "to", "a")]
    model = convert(Net(), (["a", "b"], edges), num_bases=2, in_channels={"x": 5})
    index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    x = {"a": torch.randn(3, 5), "b": torch.randn(3, 5)}
    return model(x, {edge: index for edge in edges})


@use("tensordict")
def trace_sequence():
    import torch
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule, TensorDictSequential
    from tensordict.prototype.fx import symbolic_trace

    first = TensorDictModule(torch.nn.Linear(4, 3), in_keys=["x"], out_keys=["h"])
    second = TensorDictModule(lambda h: (h.relu(), h.sum(-1)), in_keys=["h"], out_keys=["y", "s"])
    gm = symbolic_trace(TensorDictSequential(first, second))
    result = gm(TensorDict({"x": torch.randn(2, 4)}, [2]))
    return gm.code, dict(result.items())


@use("mace")
def symmetric_contraction():
    import torch
    from e3nn import o3
    from mace.modules.symmetric_contraction import SymmetricContraction

    module = SymmetricContraction(
        irreps_in=o3.Irreps("4x0e + 4x1o"), irreps_out=o3.Irreps("4x0e"), correlation=2,
        num_elements=2,
    )
    x, species = torch.randn(3, 4, 4), torch.eye(2)[[0, 1, 0]]
    return module(x, species)


@use("mace")
def simplify_blocks():
    import torch
    from mace.tools import compile as tools

    @tools.simplify_if_compile
    class Block(torch.nn.Module):
        def forward(self, x):
            return x.sin() + 1

    model = tools.prepare(lambda: torch.nn.Sequential(Block(), torch.nn.Linear(3, 3)))()
    return model[0].code, model(torch.randn(2, 3))


@use("cuequivariance_torch")
def segmented_polynomial():
    import cuequivariance as cue
    import cuequivariance_torch as cuet
    import torch

    e = cue.descriptors.fully_connected_tensor_product(
        *(cue.Irreps("O3", text) for text in ("4x0e + 4x1o", "0e + 1o", "4x0e + 4x1o")))
    module = cuet.SegmentedPolynomial(e.polynomial, method="naive")
    inputs = [torch.randn(2, size) for size in (e.inputs[0].dim, e.inputs[1].dim, e.inputs[2].dim)]
    return module(inputs)


# ---- transformers -------------------------------------------------------------------------------


def tiny(name, **options):
    import transformers

    sizes = {
        "Bert": dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                     intermediate_size=16, vocab_size=50),
        "Electra": dict(hidden_size=16, embedding_size=8, num_hidden_layers=2,
                        num_attention_heads=2, intermediate_size=16, vocab_size=50),
        "T5": dict(d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, vocab_size=50),
        "DistilBert": dict(dim=16, n_layers=2, n_heads=2, hidden_dim=16, vocab_size=50),
    }  # fmt: skip
    config = getattr(transformers, f"{name}Config")(**sizes[name], **options)
    return getattr(transformers, f"{name}Model")(config).eval()


def transformers_use(name, inputs):
    def function():
        import torch
        from transformers.utils.fx import symbolic_trace

        model = tiny(name)
        gm = symbolic_trace(model, input_names=inputs)
        ids = torch.arange(10).reshape(2, 5)
        values = {key: torch.ones_like(ids) if "mask" in key else ids for key in inputs}
        result = gm(**values)["last_hidden_state"]
        assert torch.allclose(result, model(**values).last_hidden_state, atol=1e-5)
        return result

    function.__name__ = f"trace_{name}"
    use("transformers")(function)


transformers_use("Bert", ["input_ids", "attention_mask"])
transformers_use("Electra", ["input_ids", "attention_mask"])
transformers_use("DistilBert", ["input_ids", "attention_mask"])
transformers_use("T5", ["input_ids", "attention_mask", "decoder_input_ids"])


@use("optimum")
def optimum_transformations():
    import torch
    from optimum.fx.optimization import ChangeTrueDivToMulByInverse, MergeLinears, compose
    from transformers.utils.fx import symbolic_trace

    model = tiny("Bert")
    gm = symbolic_trace(model, input_names=["input_ids", "attention_mask"])
    ids = torch.arange(10).reshape(2, 5)
    values = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    wanted = gm(**values)["last_hidden_state"]
    changed = compose(ChangeTrueDivToMulByInverse(), MergeLinears())(gm)
    result = changed(**values)["last_hidden_state"]
    assert torch.allclose(result, wanted, atol=1e-4)
    return [str(n.target) for n in changed.graph.nodes], result


@use("lxt")
def composite_of_bert():
    import lxt.explicit.functional as lf
    import lxt.explicit.modules as lm
    import torch
    from lxt.explicit.core import Composite

    model = tiny("Bert", attn_implementation="eager")
    composite = Composite({
        torch.nn.Linear: lm.LinearEpsilon, torch.nn.LayerNorm: lm.LayerNormEpsilon,
        torch.matmul: lf.matmul,
    })  # fmt: skip
    embeds, mask = torch.randn(2, 5, 16), torch.ones(2, 5, dtype=torch.long)
    traced = composite.register(model, {"inputs_embeds": embeds, "attention_mask": mask})
    embeds.requires_grad_()
    result = traced(inputs_embeds=embeds, attention_mask=mask)["last_hidden_state"]
    result.sum().backward()
    return traced.code, result, embeds.grad


# ---- formats and other networks -----------------------------------------------------------------


@use("onnx2torch")
def convert_onnx():
    import numpy as np
    import onnx
    import torch
    from onnx import TensorProto, helper, numpy_helper
    from onnx2torch import convert

    rng = np.random.default_rng(0)
    weight = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Add", ["f", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(weight[0, 0, 0, :1], "b")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(model)
    module = convert(model)
    return module.code, module(torch.ones(1, 3, 8, 8))


def small_classifier():
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(8 * 4 * 4, 10),
    ).eval()  # fmt: skip


@use("nirtorch")
def torch_to_nir():
    import nir
    import nirtorch
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
            self.act, self.last = torch.nn.ReLU(), torch.nn.Linear(3, 2, bias=False)

        def forward(self, x):
            return self.last(self.act(self.a(x)) + self.b(x))

    rules = {torch.nn.ReLU: lambda module: nir.Threshold(threshold=torch.zeros(3).numpy())}
    graph = nirtorch.torch_to_nir(Net(), rules)
    return sorted(graph.nodes), sorted(graph.edges)


@use("nirtorch")
def nir_to_torch():
    import nir
    import nirtorch
    import numpy as np
    import torch

    weight = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
    graph = nir.NIRGraph.from_list(nir.Affine(weight, weight[:, 0]), nir.Linear(weight[:2, :3]))

    def linear(node):
        module = torch.nn.Linear(node.weight.shape[1], node.weight.shape[0], hasattr(node, "bias"))
        module.weight.data = torch.tensor(node.weight)
        if hasattr(node, "bias"):
            module.bias.data = torch.tensor(node.bias)
        return module

    module = nirtorch.nir_to_torch(graph, {nir.Affine: linear, nir.Linear: linear})
    output = module(torch.ones(1, 4))
    return str(module.code), output


@use("spikingjelly")
def ann_to_snn():
    import torch
    from spikingjelly.activation_based import ann2snn, functional

    model = small_classifier()
    data = [(torch.rand(4, 3, 8, 8), torch.zeros(4, dtype=torch.long)) for _ in range(3)]
    snn = ann2snn.Converter(ann2snn.RateCodingRecipe(data)).convert(model)
    total = sum(snn(data[0][0]) for _ in range(8))
    functional.reset_net(snn)
    return [f"{n.op} {n.target}" for n in snn.graph.nodes], total


@use("hls4ml")
def parse_pytorch():
    import hls4ml
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    config = hls4ml.utils.config_from_pytorch_model(model.eval(), (4,))
    converted = hls4ml.converters.convert_from_pytorch_model(
        model, hls_config=config, output_dir="hls4ml", backend="Vivado")
    return [(layer.name, layer.class_name) for layer in converted.get_layers()]


# ---- counting, splitting, derivatives -----------------------------------------------------------


@use("torch_flops")
def count_flops():
    import torch
    import torchvision
    from torch_flops import TorchFLOPsByFX

    counter = TorchFLOPsByFX(torchvision.models.resnet18(weights=None), "memory_allocated")
    counter.propagate(torch.randn(1, 3, 64, 64))
    return counter.print_total_flops(show=False)


@use("thop")
def profile():
    import torch
    import torchvision
    from thop.fx_profile import fx_profile

    model = torchvision.models.resnet18(weights=None).eval()
    return fx_profile(model, torch.randn(1, 3, 64, 64))


@use("mmengine")
def efficient_conv_bn_eval():
    import torch
    import torchvision
    from mmengine.model.efficient_conv_bn_eval import turn_on_efficient_conv_bn_eval

    model = torchvision.models.resnet18(weights=None).eval()
    x = torch.randn(2, 3, 64, 64)
    wanted = model(x)
    turn_on_efficient_conv_bn_eval(model, ["layer1", "layer2"])
    got = model(x)
    assert torch.allclose(got, wanted, atol=1e-4)
    got.sum().backward()
    return got, model.conv1.weight.grad


@use("mmengine")
def stack_batch_is_wrapped():
    import torch
    import torch.fx as fx
    from mmengine.model.utils import merge_dict

    def f(x, y):
        return merge_dict({"a": x + 1}, {"b": y})["b"]

    gm = fx.symbolic_trace(f)
    return gm.code, gm(torch.ones(2), torch.zeros(2))


@use("backpack")
def second_order():
    import torch
    import torchvision
    from backpack import backpack, extend
    from backpack.extensions import BatchGrad, DiagGGNExact

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(5, 5), torch.nn.Linear(5, 2)
            self.act = torch.nn.Sigmoid()

        def forward(self, x):
            y = self.act(self.a(x)) * 0.5
            return self.b((y + x).flatten(1))

    model = extend(Block(), use_converter=True)
    loss = extend(torch.nn.CrossEntropyLoss())
    with backpack(BatchGrad(), DiagGGNExact()):
        loss(model(torch.randn(3, 5)), torch.tensor([0, 1, 0])).backward()
    found = {n: (p.grad_batch, p.diag_ggn_exact) for n, p in model.named_parameters()}
    return model.code, found


@use("fairscale")
def auto_shard():
    import torch
    from fairscale.experimental.nn.auto_shard import shard_model

    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(6)))
    x = torch.randn(2, 8)
    wanted, shards = model(x), shard_model(model, 3)
    for shard in shards:
        x = shard(x)
    assert torch.equal(x, wanted)
    return [shard.code for shard in shards], x


@use("torchpippy")
def pipeline_of_stages():
    import torch
    from pippy.IR import Pipe, PipeSplitWrapper, annotate_split_points

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (torch.nn.Linear(8, 8) for _ in range(3))

        def forward(self, x):
            return self.c(torch.relu(self.b(torch.relu(self.a(x)))))

    model, x = Net(), torch.randn(4, 8)
    wanted = model(x)
    annotate_split_points(model, {name: PipeSplitWrapper.SplitPoint.BEGINNING for name in "bc"})
    pipe = Pipe.from_tracing(model, 2, example_args=(x,))
    assert torch.allclose(pipe(x)[0], wanted)
    return pipe.split_gm.code, pipe(x)
