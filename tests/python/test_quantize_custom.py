"""Custom configs: modules that are quantized by classes of one's own, or apart from the model
around them; and what preparing and converting leave in the modules."""
import copy

import pytest
import torch
import torch.ao.nn.quantized as nnq
import torch.ao.quantization.quantize_fx as ao
from torch import nn
from torch.ao.nn.quantized import dynamic as nnqd
from torch.ao.quantization import QConfigMapping, default_dynamic_qconfig, default_qconfig
from torch.ao.quantization.fx._equalize import default_equalization_qconfig
from torch.ao.quantization.fx.custom_config import ConvertCustomConfig, PrepareCustomConfig
from torch.ao.quantization.quant_type import QuantType

import cfx
from cfx import quantize
from cfx.quantize import convert_fx, prepare_fx

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x)


class Observed(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def forward(self, x):
        return self.linear(x)

    @classmethod
    def from_float(cls, module):
        made = cls(module.linear)
        made.qconfig = module.qconfig
        return made


class Static(Observed):
    @classmethod
    def from_observed(cls, observed):
        observed.linear.activation_post_process = observed.activation_post_process
        return cls(nnq.Linear.from_float(observed.linear))


class Dynamic(Observed):
    @classmethod
    def from_observed(cls, module):
        return cls(nnqd.Linear.from_float(module.linear))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.inner = nn.Linear(3, 3), Inner()

    def forward(self, x):
        return self.inner(self.linear(x))


def observed_values(gm):
    modules = dict(gm.named_modules(remove_duplicate=False))
    return [n.args[0].name for n in gm.graph.nodes if n.op == "call_module"
            and hasattr(modules.get(n.target), "calculate_qparams")]  # fmt: skip


def test_a_static_class_takes_and_gives_quantized_tensors():
    model, x = Model().eval(), torch.randn(8, 3)
    before = PrepareCustomConfig().set_float_to_observed_mapping(Inner, Observed)
    after = ConvertCustomConfig().set_observed_to_quantized_mapping(Observed, Static)
    results = []
    for prepare, convert in ((ao.prepare_fx, ao.convert_fx), (prepare_fx, convert_fx)):
        prepared = prepare(copy.deepcopy(model), QConfigMapping().set_global(default_qconfig),
                           (x,), prepare_custom_config=before)  # fmt: skip
        prepared(x)
        assert type(prepared.inner) is Observed
        assert observed_values(prepared) == ["x", "linear", "inner"]
        converted = convert(prepared, convert_custom_config=after)
        assert type(converted.inner) is Static
        results.append(converted(x))
    assert torch.equal(*results)


def test_a_dynamic_class_takes_and_gives_floats():
    model, x = Model().eval(), torch.randn(8, 3)
    before = PrepareCustomConfig().set_non_traceable_module_classes([Inner])
    after = ConvertCustomConfig().set_observed_to_quantized_mapping(Inner, Dynamic,
                                                                    QuantType.DYNAMIC)
    prepared = prepare_fx(model, QConfigMapping().set_global(default_dynamic_qconfig), (x,),
                          prepare_custom_config=before)  # fmt: skip
    converted = convert_fx(prepared, convert_custom_config=after)
    assert type(converted.inner) is Dynamic and type(converted.inner.linear) is nnqd.Linear
    assert torch.allclose(converted(x), model(x), atol=0.1)
    assert not torch.equal(converted(x), model(x))


def test_classes_that_give_several_tensors_stay_as_they_are():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(3, 3)

        def forward(self, x):
            return self.lstm(x)[0]

    model, x = Recurrent().eval(), torch.randn(4, 2, 3)
    config = PrepareCustomConfig().set_float_to_observed_mapping(
        nn.LSTM, torch.ao.nn.quantizable.LSTM)  # fmt: skip
    prepared = prepare_fx(model, QConfigMapping().set_global(default_qconfig), (x,),
                          prepare_custom_config=config)  # fmt: skip
    assert torch.equal(prepared(x), model(x)) and type(prepared.lstm) is nn.LSTM
    assert [name for name, _ in prepared.meta["left_in_float"]] == ["lstm"]


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("places", [[], [0]])
def test_a_module_that_stands_alone(by_name, places):
    model, x = Model().eval(), torch.randn(8, 3)
    inside = PrepareCustomConfig().set_input_quantized_indexes(places)
    inside.set_output_quantized_indexes(places)
    config = PrepareCustomConfig()
    if by_name:
        config.set_standalone_module_name("inner", None, (x,), inside, None)
    else:
        config.set_standalone_module_class(Inner, None, (x,), inside, None)
    mapping = QConfigMapping().set_global(default_qconfig)
    theirs = ao.prepare_fx(copy.deepcopy(model), mapping, (x,), prepare_custom_config=config)
    ours = prepare_fx(model, mapping, (x,), prepare_custom_config=config)
    for gm, child in ((ours, theirs), (ours.inner, theirs.inner)):
        assert len(observed_values(gm)) == len(observed_values(child))
    for prepared in (theirs, ours):
        prepared(x)
    converted = convert_fx(ours)
    assert isinstance(converted.inner, cfx.GraphModule)
    assert "inner.linear.weight_int8" in converted.state_dict()
    assert torch.allclose(converted(x), ao.convert_fx(theirs)(x), atol=1e-5)


def test_modules_know_their_qconfig_until_they_are_converted():
    model, x = Model().eval(), torch.randn(8, 3)
    mapping = QConfigMapping().set_global(default_qconfig).set_module_name("inner", None)
    prepared = prepare_fx(model, mapping, (x,))
    prepared(x)
    assert prepared.linear.qconfig is default_qconfig and prepared.inner.linear.qconfig is None
    kept = convert_fx(prepared, _remove_qconfig=False)
    assert kept.inner.linear.qconfig is None
    assert not hasattr(convert_fx(prepared).inner.linear, "qconfig")
    assert not hasattr(model.linear, "qconfig")


def test_preserved_attributes_survive_copies():
    model, x = Model().eval(), torch.randn(8, 3)
    model.version = 3
    keep = {"preserved_attributes": ["version"]}
    prepared = prepare_fx(model, quantize.get_default_qconfig_mapping(), (x,),
                          prepare_custom_config=keep)  # fmt: skip
    prepared(x)
    for gm in (prepared, copy.deepcopy(prepared), convert_fx(prepared, keep),
               copy.deepcopy(convert_fx(prepared, keep))):  # fmt: skip
        assert gm.version == 3 and gm.meta["_user_preserved_attributes"] == {"version": 3}


def test_original_weights_are_kept_on_demand():
    model, x = Model().eval(), torch.randn(8, 3)
    prepared = prepare_fx(model, quantize.get_default_qconfig_mapping(), (x,))
    prepared(x)
    converted = convert_fx(prepared, keep_original_weights=True)
    assert set(converted.original_weights_lookup) == {"linear", "inner.linear"}
    weight, bias = converted.original_weights_lookup["inner.linear"]
    assert torch.equal(weight, model.inner.linear.weight)
    assert torch.equal(bias, model.inner.linear.bias)
    assert not hasattr(convert_fx(prepared), "original_weights_lookup")


def test_an_equalization_config_equalizes():
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).eval(), torch.randn(8, 4)
    with torch.no_grad():
        model[0].weight[0] *= 100
        model[0].bias[0] *= 100
    mapping = QConfigMapping().set_global(default_qconfig)
    asked = {"object_type": [(nn.Linear, default_equalization_qconfig)]}
    plain = prepare_fx(model, mapping, (x,))
    none = prepare_fx(model, mapping, (x,), _equalization_config=QConfigMapping())
    evened = prepare_fx(model, mapping, (x,), None, asked)
    assert torch.equal(plain.get_submodule("0").weight, none.get_submodule("0").weight)
    first = evened.get_submodule("0").weight
    assert float(first.abs().max()) < float(model[0].weight.abs().max()) / 2
    torch.testing.assert_close(evened(x), model(x))
