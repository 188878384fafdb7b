"""backend_config of prepare_fx: what it has is quantized as it says, what it has not stays float;
and float16, to which values are rounded."""
import copy
import enum
import operator
import types

import pytest
import quantize_models
import torch
import torch.ao.quantization.quantize_fx as ao
from torch import nn
from torch.ao.quantization import MinMaxObserver, QConfig, QConfigMapping, backend_config
from torch.ao.quantization import float16_static_qconfig, get_default_qconfig_mapping
from torch.ao.quantization.backend_config import (
    BackendConfig, BackendPatternConfig, DTypeConfig, DTypeWithConstraints, ObservationType,
)  # fmt: skip
from torch.nn import functional as F
from test_quantize_prepare import fused_in, places_of, qparams, without_tails

import cfx
from cfx.quantize import convert_fx, prepare_fx

pytestmark = pytest.mark.filterwarnings("ignore")
BYTES = DTypeConfig(torch.quint8, torch.quint8, torch.qint8, torch.float)


def entry(pattern, *types, sharing=False):
    kinds = ObservationType
    how = kinds.OUTPUT_SHARE_OBSERVER_WITH_INPUT if sharing \
        else kinds.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT  # fmt: skip
    made = BackendPatternConfig(pattern).set_dtype_configs(list(types) or [BYTES])
    return made.set_observation_type(how)


def backend(*entries):
    return BackendConfig().set_backend_pattern_configs(list(entries))


def observed(gm):
    modules = dict(gm.named_modules(remove_duplicate=False))
    return {n.args[0].name for n in gm.graph.nodes if n.op == "call_module"
            and hasattr(modules.get(n.target), "calculate_qparams")}  # fmt: skip


def names_of_backends():
    return sorted(n for n in dir(backend_config) if n.startswith("get_")
                  and n.endswith("_backend_config"))  # fmt: skip


@pytest.mark.parametrize("name", names_of_backends())
@pytest.mark.parametrize("model", ["mobile_se", "residual", "functional", "nested", "inception"])
def test_same_places_and_scales_as_torch_ao(name, model):
    config = getattr(backend_config, name)()
    float_model, inputs = quantize_models.MODELS[model]()
    mapping = get_default_qconfig_mapping("fbgemm")
    theirs = ao.prepare_fx(copy.deepcopy(float_model), mapping, inputs, backend_config=config)
    ours = prepare_fx(float_model, mapping, inputs, backend_config=config)
    for prepared in (theirs, ours):
        with torch.no_grad():
            prepared(*inputs)
    fused = fused_in(theirs, ours)
    want, their_observers = places_of(theirs)
    got, our_observers = places_of(ours)
    ours, theirs = [[qparams(o) for o in which] for which in (our_observers, their_observers)]
    if name == "get_onednn_backend_config":  # torch.ao moves a convolution behind what is added
        assert sorted(ours) == sorted(theirs)
    else:
        assert without_tails(got, fused) == without_tails(want, {}) and ours == theirs


class Three(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return F.softplus(torch.sub(self.fc(x), 1.0))


def test_only_what_the_backend_has_is_quantized():
    x, mapping = torch.randn(3, 4), get_default_qconfig_mapping("fbgemm")
    none = prepare_fx(Three().eval(), mapping, (x,), backend_config=BackendConfig())
    assert observed(none) == set()
    assert ("fc", "the backend config does not have this call") in none.meta["left_in_float"]
    more = prepare_fx(Three().eval(), mapping, (x,), backend_config=backend(
        entry(torch.sub), entry(F.softplus, sharing=True)))  # fmt: skip
    assert observed(more) == {"fc", "sub", "softplus"}
    more(x)
    converted = convert_fx(more)
    assert torch.allclose(converted(x), cfx.compile(converted, x)(x), atol=0.05)
    kinds = [str(n.target).rpartition("quantized_decomposed.")[2] for n in converted.graph.nodes]
    assert kinds.count("quantize_per_tensor.default") == 3


def test_a_configuration_has_to_fit():
    limits = DTypeWithConstraints(dtype=torch.quint8, quant_min_lower_bound=0,
                                  quant_max_upper_bound=31, scale_min_lower_bound=2**-12)
    config = backend(entry(nn.Linear, DTypeConfig(limits, limits, torch.qint8, torch.float)))

    def stays_float(**options):
        activation = MinMaxObserver.with_args(dtype=torch.quint8, **options)
        weight = MinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
        mapping = QConfigMapping().set_global(QConfig(activation, weight))
        gm = prepare_fx(Three().eval(), mapping, (torch.randn(3, 4),), backend_config=config)
        return not observed(gm)

    assert not stays_float(quant_min=0, quant_max=15, eps=2**-12)
    assert stays_float(quant_min=0, quant_max=63, eps=2**-12)
    assert stays_float(quant_min=0, quant_max=15, eps=2**-14)


class ConvAdd(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU()

    def forward(self, x):
        return self.relu(self.norm(self.conv(x)) + torch.sin(x))


@pytest.mark.parametrize("left", [True, False])
def test_a_chain_counts_as_one(left):
    inner = (nn.BatchNorm2d, nn.Conv2d)
    sides = (inner, torch.ao.quantization.fx.match_utils.MatchAllNode)
    chain = BackendPatternConfig()._set_pattern_complex_format(
        (nn.ReLU, (operator.add, *(sides if left else sides[::-1]))))  # fmt: skip
    chain.set_dtype_configs([BYTES])
    x = torch.randn(1, 2, 3, 3)
    config = backend(chain, entry(nn.Conv2d), entry(operator.add), entry(nn.ReLU))
    gm = prepare_fx(ConvAdd().eval(), get_default_qconfig_mapping("fbgemm"), (x,),
                    backend_config=config)  # fmt: skip
    assert observed(gm) == {"x", "sin", "relu"}
    gm(x)
    assert torch.allclose(convert_fx(gm)(x), ConvAdd().eval()(x), atol=5)


def test_a_backend_config_is_read_by_its_attributes():
    Kind = enum.Enum("Kind", "OUTPUT_SHARE_OBSERVER_WITH_INPUT")
    byte = types.SimpleNamespace(dtype=torch.quint8, quant_min_lower_bound=None,
                                 quant_max_upper_bound=None, scale_min_lower_bound=None,
                                 scale_exact_match=None, zero_point_exact_match=None)
    dtypes = types.SimpleNamespace(input_dtype_with_constraints=byte, is_dynamic=None,
                                   output_dtype_with_constraints=byte,
                                   weight_dtype_with_constraints=None)
    mine = types.SimpleNamespace(pattern=F.softplus, dtype_configs=[dtypes], fused_module=None,
                                 observation_type=Kind.OUTPUT_SHARE_OBSERVER_WITH_INPUT)
    gm = prepare_fx(Three().eval(), get_default_qconfig_mapping("fbgemm"), (torch.randn(3, 4),),
                    backend_config=types.SimpleNamespace(configs=[mine]))
    assert observed(gm) == {"sub", "softplus"}
    with pytest.raises(TypeError, match="expected a BackendConfig"):
        prepare_fx(Three().eval(), get_default_qconfig_mapping(), (torch.randn(3, 4),),
                   backend_config=3)  # fmt: skip


def test_captured_graphs_take_every_spelling():
    x = torch.randn(3, 4)
    gm = prepare_fx(cfx.capture(Three().eval(), x), get_default_qconfig_mapping("fbgemm"), (x,),
                    backend_config=backend(entry(nn.Linear), entry(torch.sub)))  # fmt: skip
    assert len(observed(gm)) == 3


def test_static_float16_rounds_values_and_weights():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)
            self.w, self.b = nn.Parameter(torch.randn(4, 8)), nn.Parameter(torch.randn(4))

        def forward(self, x):
            return torch.sigmoid(F.linear(self.fc(x), self.w, self.b))

    def half(t):
        return t.half().float()

    torch.manual_seed(0)
    m, x = M().eval(), torch.randn(3, 8)
    mapping = QConfigMapping().set_global(float16_static_qconfig)
    prepared = prepare_fx(m, mapping, (x,))
    converted = convert_fx(prepared)
    y = half(F.linear(half(x), half(m.fc.weight), m.fc.bias))
    y = half(F.linear(y, half(m.w), half(m.b)))
    want = half(torch.sigmoid(y))
    assert torch.equal(converted(x), want)
    torch.testing.assert_close(cfx.compile(converted, x)(x), want, rtol=0, atol=1e-3)
