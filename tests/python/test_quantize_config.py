"""QConfigs and mappings against torch.ao.quantization's: the same defaults, the same rule wins."""
import copy
import functools
import random
import re

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization")

import cfx  # noqa: E402
import cfx.quantize as quantize  # noqa: E402
from torch.ao.quantization import qconfig as ao_qconfig  # noqa: E402
from torch.ao.quantization import qconfig_mapping as ao_mapping  # noqa: E402
from torch.ao.quantization.fx.qconfig_mapping_utils import (  # noqa: E402
    _generate_node_name_to_qconfig,
)
from torch.ao.quantization.fx.tracer import QuantizationTracer  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Block(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 3, 1)
        self.fc = torch.nn.Linear(4, 4)
        self.act = torch.nn.ReLU()
        self.weight = torch.nn.Parameter(torch.ones(3, 1, 1))
        self.inner = Block(depth - 1) if depth else torch.nn.Sigmoid()

    def forward(self, x):
        x = F.relu(self.conv(x)) + self.fc(x)
        x = self.act(torch.add(x, self.weight).sigmoid())
        x = F.relu(self.act(x).reshape(1, 3, 4, 4))
        return torch.sigmoid(self.inner(x))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block(1)
        self.second = torch.nn.Sequential(Block(0), torch.nn.ReLU(), Block(1))
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return F.relu(self.fc(self.second(self.first(x)) + x).sigmoid())


PATHS = ["first", "second", "second.0", "second.2.inner", "second.0.conv", "first.inner.fc", "fc",
         "first.inner", "second.1", "", "nowhere"]  # fmt: skip
TYPES = [torch.nn.Conv2d, torch.nn.Linear, torch.nn.ReLU, torch.nn.Sigmoid, Block, F.relu,
         torch.add, torch.sigmoid, torch.relu, "sigmoid", "reshape", torch.nn.Sequential]
COUNTED = [t for t in TYPES if not isinstance(t, str)]
REGEXES = ["first.*", r"second\.\d", ".*conv", "(?!first)", r"\w+\.inner$", "fc|first", "", "x"]


def random_mapping(r, module):
    """A mapping of `module`, ours or torch.ao's; a QConfig is told by its quant_max."""
    numbers = iter(range(1, 100))

    def config():
        if r.random() < 0.15:
            return None
        observer = quantize.MinMaxObserver if module is quantize else torch.ao.quantization.\
            MinMaxObserver
        class_ = quantize.QConfig if module is quantize else ao_qconfig.QConfig
        activation = observer.with_args(quant_min=0, quant_max=next(numbers))
        return class_(activation, observer)

    mapping = (quantize if module is quantize else ao_mapping).QConfigMapping()
    if r.random() < 0.8:
        mapping.set_global(config())
    for _ in range(r.randrange(5)):
        mapping.set_object_type(r.choice(TYPES), config())
    for _ in range(r.randrange(3)):
        mapping.set_module_name_regex(r.choice(REGEXES), config())
    for _ in range(r.randrange(4)):
        mapping.set_module_name(r.choice(PATHS), config())
    for _ in range(r.randrange(6)):
        mapping.set_module_name_object_type_order(r.choice(PATHS), r.choice(COUNTED),
                                                  r.randrange(3), config())
    return mapping


def number(qconfig):
    return None if qconfig is None else qconfig.activation.p.keywords["quant_max"]


def test_the_rule_that_wins():
    net = Net()
    tracer = QuantizationTracer([], [])
    graph = tracer.trace(net)
    gm = cfx.symbolic_trace(net)
    assert [n.name for n in graph.nodes] == [n.name for n in gm.graph.nodes]
    differ = set()
    for seed in range(1000):
        theirs = random_mapping(random.Random(seed), ao_mapping)
        root = torch.fx.GraphModule(net, graph)
        want = _generate_node_name_to_qconfig(root, dict(root.named_modules()), graph, theirs,
                                              tracer.node_name_to_scope)
        want = {name: number(q) for name, q in want.items()}
        for mapping in (random_mapping(random.Random(seed), quantize), theirs):
            found = quantize.find_qconfigs(gm, mapping)
            got = {name: number(found.get(name)) for name in want}
            assert got == want, (seed, mapping)
        differ |= set(want.values())
    assert len(differ) > 8  # rules of every kind won


def test_graphs_without_scopes_know_types_and_names():
    gm = cfx.symbolic_trace(Net())
    rules = quantize.rules_of(quantize.QConfigMapping().set_object_type(
        torch.nn.Conv2d, quantize.default_qconfig))
    found = rules.find(gm.graph, None)
    assert set(found.values()) == {None}  # no modules, no classes
    found = rules.find(gm.graph, gm)
    convs = {n.name for n in gm.graph.nodes if str(n.target).endswith("conv")}
    assert {n for n, q in found.items() if q is quantize.default_qconfig} == convs


# ---- defaults


def spec_pair(qconfig):
    return quantize.spec_of(qconfig.activation), quantize.spec_of(qconfig.weight)


NAMES = [n for n in ao_qconfig.__all__ if isinstance(getattr(ao_qconfig, n), tuple)]


@pytest.mark.parametrize("name", NAMES)
def test_default_configs_are_torchs(name):
    ours, theirs = getattr(quantize, name), getattr(ao_qconfig, name)
    assert spec_pair(ours) == spec_pair(theirs)
    text = repr(theirs).replace("torch.ao.quantization.", "cfx.quantize.")
    assert repr(ours) == text
    assert quantize.qconfig_equals(ours, copy.deepcopy(ours))


@pytest.mark.parametrize("backend", ["x86", "fbgemm", "onednn", "qnnpack"])
@pytest.mark.parametrize("qat", [False, True])
def test_default_mappings_are_torchs(backend, qat):
    name = "get_default_qat_qconfig_mapping" if qat else "get_default_qconfig_mapping"
    for version in (0, 1) if qat else (0,):
        ours = getattr(quantize, name)(backend, version)
        theirs = getattr(ao_mapping, name)(backend, version)
        a, b = ours.to_dict(), theirs.to_dict()
        assert a.keys() == b.keys()
        assert spec_pair(a[""]) == spec_pair(b[""])
        mine, them = dict(a["object_type"]), dict(b["object_type"])
        assert mine.keys() == them.keys()
        for type_ in mine:
            assert spec_pair(mine[type_]) == spec_pair(them[type_]), type_
        text = repr(theirs).replace("torch.ao.quantization.", "cfx.quantize.")
        assert sorted(repr(ours).splitlines()) == sorted(text.splitlines())
    with pytest.raises(AssertionError, match="backend 'abacus' is not supported"):
        getattr(quantize, name)("abacus")
    with pytest.raises(AssertionError, match="version 7"):
        getattr(quantize, name)(backend, 7)


def test_specs_of_weights_alone():
    activation, weight = spec_pair(quantize.int4_weight_only_qconfig(64))
    assert activation is None
    assert (weight["per"], weight["group"], weight["low"], weight["high"]) == ("group", 64, -8, 7)
    activation, weight = spec_pair(quantize.int8_weight_only_qconfig)
    assert activation is None and (weight["per"], weight["axis"]) == ("channel", 0)
    assert quantize.spec_of(quantize.float16_dynamic_qconfig.weight)["dtype"] == "float16"
    dynamic = quantize.spec_of(quantize.default_dynamic_qconfig.activation)
    assert (dynamic["observer"], dynamic["low"], dynamic["high"]) == ("each_run", 0, 255)
    assert quantize.spec_of(quantize.default_dynamic_fake_quant)["observer"] == "each_run"


def test_observers_of_ones_own():
    class Mine(quantize.MinMaxObserver):
        pass

    class Other(torch.nn.Module):
        pass

    assert quantize.spec_of(Mine)["observer"] == "min_max"
    with pytest.raises(TypeError, match="does not know observers of the class"):
        quantize.spec_of(Other)
    with pytest.raises(TypeError, match="does not support the dtype"):
        quantize.spec_of(torch.ao.quantization.PlaceholderObserver.with_args(
            dtype=torch.float8_e5m2, is_dynamic=True))


# ---- the objects


def test_a_config_has_constructors():
    with pytest.raises(ValueError, match="classes of observers, not observers"):
        quantize.QConfig(quantize.MinMaxObserver(), quantize.MinMaxObserver)
    config = quantize.QConfig(activation=quantize.MinMaxObserver, weight=torch.nn.Identity)
    activation, weight = config
    assert activation is quantize.MinMaxObserver and weight is torch.nn.Identity
    made = quantize.MinMaxObserver.with_args(quant_min=0).with_args(quant_max=15)()
    assert (made.quant_min, made.quant_max) == (0, 15)
    eps = iter([1.0, 2.0])
    constructor = quantize.MinMaxObserver.with_callable_args(eps=lambda: next(eps))
    assert [float(constructor().eps), float(constructor().eps)] == [1.0, 2.0]


def test_equal_configs():
    equals = quantize.qconfig_equals
    a = quantize.get_default_qconfig()
    assert equals(a, quantize.get_default_qconfig("fbgemm")) and equals(None, None)
    assert not equals(a, None) and not equals(a, quantize.get_default_qconfig("onednn"))
    fixed = quantize.get_default_qat_qconfig_mapping().object_type_qconfigs
    assert equals(fixed["tanh"], fixed[torch.tanh])
    assert not equals(fixed["tanh"], fixed["sigmoid"])


def test_dicts_of_mappings():
    mapping = random_mapping(random.Random(4), quantize)
    again = quantize.QConfigMapping.from_dict(mapping.to_dict())
    assert repr(again) == repr(mapping) and again.to_dict() == mapping.to_dict()
    theirs = ao_mapping.QConfigMapping.from_dict(mapping.to_dict())
    assert theirs.to_dict() == mapping.to_dict()
    gm = cfx.symbolic_trace(Net())
    assert quantize.find_qconfigs(gm, mapping.to_dict()) == quantize.find_qconfigs(gm, mapping)


def test_wrong_rules():
    gm = cfx.symbolic_trace(Net())
    with pytest.raises(re.error):
        quantize.rules_of(quantize.QConfigMapping().set_module_name_regex("(", None))
    with pytest.raises(TypeError, match="has no name by which a node"):
        quantize.rules_of(quantize.QConfigMapping().set_object_type(
            functools.partial(F.relu, inplace=True), None))
    rules = cfx._core.Rules(lambda regex, name: 1 / 0)
    rules.set_regex("a", None)
    with pytest.raises(ZeroDivisionError):
        rules.find(gm.graph, gm)
    with pytest.raises(TypeError, match="needs a Graph"):
        rules.find(gm, gm)
    with pytest.raises(TypeError, match="a configuration is"):
        rules.set_global(3)
    with pytest.raises(ValueError, match="NUL|null"):
        rules.set_name("a\0b", None)
