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
    "nirtorch": ["nirtorch"],
    "torch_flops": ["torch_flops"],
    "thop": ["thop"],
    "mmengine": ["mmengine"],
    "spikingjelly": ["spikingjelly"],
    "model_compression_toolkit": ["model_compression_toolkit"],
    "nncf": ["nncf", "torchao"],
    "lxt": ["lxt", "transformers"],
    "backpack": ["backpack"],
    "hls4ml": ["hls4ml"],
    "tensordict": ["tensordict"],
    "mace": ["mace", "opt_einsum_fx", "e3nn"],
    "fairscale": ["fairscale"],
    "torchpippy": ["pippy"],
    "cuequivariance_torch": ["cuequivariance_torch", "opt_einsum_fx"],
    "coremltools": ["coremltools", "torch.ao"],
    "neural_compressor": ["neural_compressor", "torch.ao", "torch.quantization"],
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


for _name in ("resnet18", "mobilenetv3_small_050", "regnetx_002", "efficientnet_lite0"):
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


def representative():
    import torch

    for _ in range(2):
        yield [torch.rand(1, 3, 8, 8)]


@use("model_compression_toolkit")
def post_training_quantization():
    import model_compression_toolkit as mct
    import torch

    model, x = small_net()
    quantized, info = mct.ptq.pytorch_post_training_quantization(model, representative)
    return [type(m).__name__ for m in quantized.modules()], quantized(x)


@use("nncf")
def nncf_quantize():
    import nncf
    import torch

    model, x = small_net()
    gm = ours(torch.export.export(model, (x,)).module())
    quantized = nncf.quantize(gm, nncf.Dataset([x]))
    return [str(n.target) for n in quantized.graph.nodes], quantized(x)


@use("nncf")
def nncf_compress_weights():
    import nncf
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    x = torch.randn(2, 64)
    gm = ours(torch.export.export(model.eval(), (x,)).module())
    compressed = nncf.compress_weights(gm)
    return [str(n.target) for n in compressed.graph.nodes], compressed(x)


@use("nncf")
def nncf_pt2e():
    import nncf
    import torch
    from nncf.experimental.torch.fx import quantize_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    model, x = small_net()
    gm = ours(torch.export.export(model, (x,)).module())
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    quantized = quantize_pt2e(gm, quantizer, nncf.Dataset([x]))
    return [str(n.target) for n in quantized.graph.nodes], quantized(x)


@use("coremltools")
def linear_quantizer():
    import torch
    from coremltools.optimize.torch.quantization import LinearQuantizer

    model, x = small_net()
    quantizer = LinearQuantizer(model.train())
    prepared = quantizer.prepare(example_inputs=(x,), inplace=False)
    prepared(x).sum().backward()
    quantizer.step()
    finished = quantizer.finalize(inplace=False)
    return [f"{n.op} {n.target}" for n in finished.graph.nodes], finished.eval()(x)


@use("neural_compressor")
def post_training():
    import torch
    import torch.quantization  # a copy of what torch.ao has
    from neural_compressor import PostTrainingQuantConfig, quantization

    model, x = small_net()
    data = torch.utils.data.DataLoader([(x[0], 0), (x[1], 1)], batch_size=1)
    quantized = quantization.fit(model, PostTrainingQuantConfig(), calib_dataloader=data)
    return [str(n.target) for n in quantized.model.graph.nodes], quantized.model(x)
