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
    model, inputs = quantize_models.MODELS[name]()
    model.train(kind == "qat")
    mapping = mapping_of(kind, backend)
    prepare = (ao.prepare_qat_fx, prepare_qat_fx) if kind == "qat" else (ao.prepare_fx, prepare_fx)
    return prepare[0](copy.deepcopy(model), mapping, inputs), \
        prepare[1](model, mapping, inputs), inputs


# Where cfx is different on purpose; docs/quantization.md says why.
DIFFERENT = {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["static", "dynamic", "qat"])
@pytest.mark.parametrize("name", quantize_models.MODELS)
def test_same_places_and_scales_as_torch_ao(name, kind):
    for backend in BACKENDS if kind != "dynamic" else BACKENDS[:1]:
        theirs, ours, inputs = both(name, kind, backend)
        their_rows, their_observers = places_of(theirs)
        our_rows, our_observers = places_of(ours)
        fused = fused_in(theirs, ours)
        assert without_tails(our_rows, fused) == their_rows
        kinds = [type(o).__name__ for o in their_observers]
        assert [type(o).__name__ for o in our_observers] == kinds
        for model in (theirs, ours):
            with torch.no_grad(), torch.random.fork_rng():
                torch.manual_seed(0)
                for _ in range(2):
                    model(*inputs)
        for a, b in zip(their_observers, our_observers):
            assert qparams(a) == qparams(b)
