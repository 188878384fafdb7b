"""prepare_fx, prepare_qat_fx and convert_fx against torch.ao's FX mode: the same observers at the
same places, the same scales and zero points."""
import copy
import warnings

import pytest
import quantize_models
import torch
import torch.ao.quantization.quantize_fx as ao
from torch.ao.quantization import QConfigMapping, default_dynamic_qconfig
from torch.ao.quantization import get_default_qat_qconfig_mapping, get_default_qconfig_mapping
from torch.ao.quantization.fx.tracer import QuantizationTracer

import cfx
from cfx.quantize import convert_fx, prepare_fx, prepare_qat_fx
from cfx.quantize.specs import is_observer

BACKENDS = ("x86", "fbgemm", "qnnpack")


def mapping_of(kind, backend):
    if kind == "dynamic":
        return QConfigMapping().set_global(default_dynamic_qconfig)
    make = get_default_qat_qconfig_mapping if kind == "qat" else get_default_qconfig_mapping
    return make(backend)


# ---- the structure of a prepared graph ---------------------------------------------------------


def places_of(gm):
    """[(consumer, place, value, [number of each observer between])] in the order of the graph, and
    the observers by number. Calls that count as one go by the first one's name."""
    modules = dict(gm.named_modules(remove_duplicate=False))
    nodes = list(gm.graph.nodes)
    observers, numbers, rows = [], {}, []

    def observer(node):
        module = modules.get(node.target) if node.op == "call_module" else None
        return module if is_observer(module) else None

    def number(module):
        if id(module) not in numbers:
            numbers[id(module)] = len(observers)
            observers.append(module)
        return numbers[id(module)]

    for node in nodes:
        if observer(node) is not None:
            continue
        flat = []
        collect(node.args, flat)
        collect(node.kwargs, flat)
        for i, value in enumerate(flat):
            chain = []
            while observer(value) is not None:
                chain.append(number(observer(value)))
                value = value.args[0]
            rows.append((node.name, i, value.name, chain))
    return rows, observers


def collect(value, flat):
    if hasattr(value, "op"):
        flat.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            collect(item, flat)
    elif isinstance(value, (list, tuple)):
        for item in value:
            collect(item, flat)
    elif isinstance(value, slice):
        collect((value.start, value.stop, value.step), flat)


def without_tails(rows, fused):
    """Leaves out the calls that torch.ao has merged into the module before them."""
    names = {tail: head for tail, head in fused.items()}

    def head(name):
        while name in names:
            name = names[name]
        return name

    return [(name, i, head(value), chain) for name, i, value, chain in rows if name not in names]


def fused_in(theirs, ours):
    """{tail: head} of the ReLUs that torch.ao has put into modules."""
    there = {node.name for node in theirs.graph.nodes}
    return {node.name: node.args[0].name for node in ours.graph.nodes
            if node.op != "placeholder" and node.name not in there and not is_observer(
                dict(ours.named_modules(remove_duplicate=False)).get(node.target))}  # fmt: skip


def qparams(observer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            scale, zero = observer.calculate_qparams()[:2]
        except Exception as error:  # one that has no ranges: of each run
            return type(error).__name__
    return scale.flatten().tolist(), zero.flatten().tolist()


def both(name, kind, backend):
    """(torch.ao's prepared model, ours, the inputs). Buffers are read where they are used."""
    model, inputs = quantize_models.MODELS[name]()
    model.train(kind == "qat")
    mapping = mapping_of(kind, backend)
    prepare = (ao.prepare_qat_fx, prepare_qat_fx) if kind == "qat" else (ao.prepare_fx, prepare_fx)
    theirs = prepare[0](copy.deepcopy(model), mapping, inputs)
    if name in ("bert", "gpt2"):
        model = quantize_models.zoo.trace(cfx, model)
    return theirs, prepare[1](model, mapping, inputs, every_spelling=False), inputs


# What torch.ao cannot prepare or run, and cfx can.
REFUSED = {"gpt2": ("static", "dynamic", "qat"), "recurrent": ("qat",), "bert": ("qat",),
           "lstm_lm": ("qat",), "transposed": ("qat",)}  # fmt: skip
# The same places, but cfx trains transposed convolutions with the weights that they will have.
OTHER_SCALES = {("unet", "qat")}


def cases():
    """Every model with every kind; the small ones with all default mappings, the others with one
    in turn."""
    for i, name in enumerate(quantize_models.MODELS):
        for kind in ("static", "dynamic", "qat"):
            if kind in REFUSED.get(name, ()):
                continue
            few = name in quantize_models.ZOO or kind == "dynamic"
            for backend in BACKENDS[i % 3: i % 3 + 1] if few else BACKENDS:
                yield pytest.param(name, kind, backend, id=f"{name}-{kind}-{backend}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, kind, backend", list(cases()))
def test_same_places_and_scales_as_torch_ao(monkeypatch, name, kind, backend):
    monkeypatch.setattr(QuantizationTracer, "proxy_buffer_attributes", True)
    theirs, ours, inputs = both(name, kind, backend)
    their_rows, their_observers = places_of(theirs)
    our_rows, our_observers = places_of(ours)
    assert without_tails(our_rows, fused_in(theirs, ours)) == their_rows
    kinds = [type(o).__name__ for o in their_observers]
    assert [type(o).__name__ for o in our_observers] == kinds
    for model in (theirs, ours):
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(0)
            model(*inputs)
    for a, b in zip(their_observers, our_observers):
        assert qparams(a) == qparams(b) or (name, kind) in OTHER_SCALES


def numbers_of(gm, inputs):
    """The kinds and numbers of observers in the order of the graph, each once: a script that reads
    a weight twice observes it twice."""
    with torch.no_grad():
        gm(*inputs)
    return list(dict.fromkeys(f"{type(o).__name__} {qparams(o)}" for o in places_of(gm)[1]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in quantize_models.MODELS if n in (
    "mlp", "resnet18", "mobilenet_v3") or n not in quantize_models.ZOO])  # fmt: skip
def test_every_door_gives_the_scales_of_torch_ao(monkeypatch, name):
    monkeypatch.setattr(QuantizationTracer, "proxy_buffer_attributes", True)
    model, inputs = quantize_models.MODELS[name]()
    mapping = get_default_qconfig_mapping("fbgemm")
    wanted = numbers_of(ao.prepare_fx(copy.deepcopy(model), mapping, inputs), inputs)
    for gm in (cfx.symbolic_trace(model), cfx.capture(model, *inputs), cfx.script(model)):
        # these two spell operators as torch.ao does not know them
        every = False if name in ("norms", "operators") else None
        prepared = prepare_fx(gm, mapping, inputs, every_spelling=every)
        assert numbers_of(prepared, inputs) == wanted


@pytest.mark.filterwarnings("ignore")
def test_torch_ao_observes_a_tuple_of_sizes_and_cannot_run(monkeypatch):
    """Why gpt2 is not above: `x.size()[:-1] + (n,)` is an addition of tuples."""
    monkeypatch.setattr(QuantizationTracer, "proxy_buffer_attributes", True)
    theirs, ours, inputs = both("gpt2", "static", "x86")
    with pytest.raises(AttributeError, match="Size"):
        theirs(*inputs)
    ours(*inputs)
    their_rows, ours_rows = places_of(theirs)[0], places_of(ours)[0]
    differing = {a[2] for a, b in zip(their_rows, ours_rows) if bool(a[3]) != bool(b[3])}
    sizes = {n.name for n in ours.graph.nodes if any(u.target == "view" for u in n.users)}
    assert "add_1" in differing and "add_1" in sizes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, why", [("recurrent", "Embedding weights"),
                                       ("transposed", "ConvTranspose")])  # fmt: skip
def test_torch_ao_refuses_layers_that_cfx_trains(name, why):
    model, inputs = quantize_models.MODELS[name]()
    mapping = mapping_of("qat", "x86")
    with pytest.raises(Exception, match=why):
        ao.prepare_qat_fx(copy.deepcopy(model).train(), mapping, inputs)
    prepare_qat_fx(model.train(), mapping, inputs)(*inputs)
