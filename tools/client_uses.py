"""What tools/clients.py does with each client: realistic uses, as the client's documentation shows
them. A use returns something that can be compared: names, code, numbers.

This file is written for torch.fx. Where cfx takes its place, `fx` is cfx.
"""
import functools
import hashlib
import re
import traceback

CLIENTS = {  # name: the packages whose sources are changed
    "torchvision": ["torchvision"],
    "timm": ["timm"],
    "torch.ao": ["torch.ao"],
    "e3nn": ["e3nn", "opt_einsum_fx"],
    "opt_einsum_fx": ["opt_einsum_fx"],
    "torch_geometric": ["torch_geometric"],
    "brevitas": ["brevitas"],
    "transformers": ["transformers"],
    "optimum": ["optimum", "transformers"],
    "onnx2torch": ["onnx2torch"],
    "torchao": ["torchao"],
}
USES = {client: [] for client in CLIENTS}


def use(client):
    def add(function):
        USES[client].append(function)
        return function

    return add


def digest(value):
    """A short text that is the same for values that are the same up to rounding."""
    import torch

    if isinstance(value, torch.Tensor):
        rounded = [f"{x:.3e}" for x in value.detach().double().flatten().tolist()[:2000]]
        return f"{tuple(value.shape)} " + hashlib.sha1(" ".join(rounded).encode()).hexdigest()[:8]
    if isinstance(value, dict):
        return {str(key): digest(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [digest(item) for item in value]
    if isinstance(value, (int, float, bool, type(None))):
        return value
    return re.sub("0x[0-9a-f]+", "0x", str(value)).replace("torch.fx", "cfx")


@functools.cache
def define_nms():
    """Where torchvision's operators cannot be loaded (a wheel for CUDA beside a torch without), it
    cannot be imported for want of two that none of its models here calls."""
    import importlib.util
    from pathlib import Path

    import torch

    spec = importlib.util.find_spec("torchvision")
    try:
        for library in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(library)
    except OSError:
        kept.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            kept[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


kept = []


def run(client):
    import torch

    define_nms()
    found = {}
    for function in USES[client]:
        torch.manual_seed(0)
        try:
            found[function.__name__] = digest(function())
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = (str(error).splitlines() or [""])[0][:120]
            name = f"{place.filename.rpartition('site-packages/')[2]}:{place.lineno}"
            found[function.__name__] = f"error: {type(error).__name__}: {text} ({name})"
    return found


def ours(gm):
    """A module that torch.export has made, as the library takes it."""
    import torch.fx as fx

    return fx.interop.from_torch(gm) if hasattr(fx, "interop") else gm


# ---- feature extraction -------------------------------------------------------------------------


def extracted(name, size=64):
    import torch
    import torchvision
    from torchvision.models.feature_extraction import create_feature_extractor
    from torchvision.models.feature_extraction import get_graph_node_names

    model = torchvision.models.get_model(name, weights=None).eval()
    train, evaluation = get_graph_node_names(model)
    wanted = evaluation[:: max(1, len(evaluation) // 6)]
    extractor = create_feature_extractor(model, return_nodes=wanted)
    x = torch.randn(1, 3, size, size)
    last = create_feature_extractor(model, return_nodes=[evaluation[-1]])(x)
    assert torch.equal(last[evaluation[-1]], model(x))
    return train, evaluation, extractor(x)


def torchvision_use(name, size=64):
    def function():
        return extracted(name, size)

    function.__name__ = name
    use("torchvision")(function)


for _name in ("resnet18", "mobilenet_v3_small", "densenet121", "shufflenet_v2_x0_5"):
    torchvision_use(_name)
torchvision_use("vit_b_32", 224)
torchvision_use("swin_t")


@use("torchvision")
def backbone_with_fpn():
    import torch
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None).eval()
    return backbone(torch.randn(1, 3, 64, 64))


def timm_use(name):
    def function():
        import timm
        import torch

        model = timm.create_model(name, features_only=True, feature_cfg={"feature_cls": "fx"})
        return model.eval()(torch.randn(1, 3, 64, 64))

    function.__name__ = f"features_of_{name}"
    use("timm")(function)


for _name in ("resnet18", "mobilenetv3_small_050", "regnetx_002", "ghostnet_050"):
    timm_use(_name)


@use("timm")
def timm_node_names():
    import timm
    from timm.models._features_fx import get_graph_node_names

    return get_graph_node_names(timm.create_model("efficientnet_b0"))


# ---- quantization -------------------------------------------------------------------------------


def small_net():
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)
            self.bn = nn.BatchNorm2d(8)
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(8, 4)

        def forward(self, x):
            y = torch.relu(self.bn(self.conv(x)))
            y = y + self.pool(y)
            return self.fc(torch.flatten(self.pool(y), 1))

    return Net().eval(), torch.randn(2, 3, 8, 8)


@use("torch.ao")
def fx_static():
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    model, x = small_net()
    prepared = prepare_fx(model, get_default_qconfig_mapping("fbgemm"), (x,))
    prepared(x)
    quantized = convert_fx(prepared)
    return [n.op + str(n.target) for n in quantized.graph.nodes], quantized(x)


@use("torch.ao")
def fx_dynamic():
    from torch.ao.quantization import QConfigMapping, default_dynamic_qconfig
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    model, x = small_net()
    mapping = QConfigMapping().set_global(default_dynamic_qconfig)
    return convert_fx(prepare_fx(model, mapping, (x,)))(x)


@use("torch.ao")
def fx_training():
    from torch.ao.quantization import get_default_qat_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_qat_fx

    model, x = small_net()
    prepared = prepare_qat_fx(model.train(), get_default_qat_qconfig_mapping("fbgemm"), (x,))
    prepared(x).sum().backward()
    return convert_fx(prepared.eval())(x)


@use("torch.ao")
def fx_fuse_and_reference():
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_to_reference_fx, fuse_fx, prepare_fx

    model, x = small_net()
    fused = fuse_fx(model)
    prepared = prepare_fx(model, get_default_qconfig_mapping("fbgemm"), (x,))
    prepared(x)
    return fused.code, fused(x), convert_to_reference_fx(prepared)(x)


@use("torchao")
def pt2e():
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    model, x = small_net()
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    gm = ours(torch.export.export(model, (x,)).module())
    prepared = prepare_pt2e(gm, quantizer)
    prepared(x)
    quantized = convert_pt2e(prepared)
    return [str(n.target) for n in quantized.graph.nodes], quantized(x)


@use("torchao")
def pt2e_training():
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    model, x = small_net()
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_qat=True))
    gm = ours(torch.export.export(model.train(), (x,)).module())
    prepared = prepare_qat_pt2e(gm, quantizer)
    prepared(x)
    return convert_pt2e(prepared)(x)


@use("brevitas")
def brevitas_preprocess():
    from brevitas.graph.quantize import preprocess_for_quantize

    model, x = small_net()
    return preprocess_for_quantize(model)(x)


@use("brevitas")
def brevitas_quantize():
    from brevitas.graph.quantize import preprocess_for_quantize, quantize

    model, x = small_net()
    quantized = quantize(preprocess_for_quantize(model))
    return [type(m).__name__ for m in quantized.modules()], quantized(x)


@use("brevitas")
def brevitas_value_trace():
    from brevitas.fx import symbolic_trace, value_trace

    model, x = small_net()
    traced = value_trace(model, {"x": x})
    return symbolic_trace(model).code, traced.code, traced(x)


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


# ---- transformers -------------------------------------------------------------------------------


def tiny(name):
    import transformers

    sizes = {
        "Bert": dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                     intermediate_size=16, vocab_size=50),
        "GPT2": dict(n_embd=16, n_layer=2, n_head=2, vocab_size=50, n_positions=32),
        "T5": dict(d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, vocab_size=50),
        "DistilBert": dict(dim=16, n_layers=2, n_heads=2, hidden_dim=16, vocab_size=50),
    }  # fmt: skip
    config = getattr(transformers, f"{name}Config")(**sizes[name])
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
transformers_use("GPT2", ["input_ids", "attention_mask"])
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
