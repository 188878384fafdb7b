"""What models of public libraries (tools/zoo.py) ran into, each as a small program."""
import collections
import functools
import math

import pytest

torch = pytest.importorskip("torch")
import cfx  # noqa: E402


def same(model, gm, *inputs):
    """Whether a captured program gives what the program gives."""
    expected, found = model(*inputs), gm(*inputs)
    torch.testing.assert_close(found, expected, equal_nan=True)


# ---- a function whose evaluation is refused (mixtures of experts) --------------------------------


def experts(x):
    """Asks data for the number of rounds; its `with` block cannot be evaluated from its source."""
    total = torch.zeros_like(x)
    with torch.no_grad():
        hit = (x > 0).nonzero()
    for row in hit:
        total.index_add_(0, row[0][None], x[row[0]][None] * 2)
    return total


def test_names_after_a_refused_evaluation():
    """The evaluator calls nodes "_" until it is over. It was refused, and all that came after was
    called so, too: two variables of the code had one name."""
    x = torch.tensor([[1.0, -2.0], [3.0, -1.0]])

    def model(x):
        return experts(x * 2) + 1

    gm = cfx.capture(model, x)
    names = [node.name for node in gm.graph.nodes]
    assert len(set(names)) == len(names)
    assert not any(name.strip("_0123456789") == "" for name in names)
    assert all("_ " not in str(guard) and "(_)" not in str(guard) for guard in gm.guards)
    same(model, gm, x)


def test_names_after_an_evaluation():
    """Likewise where the evaluator has recorded a branch: what follows is named at once."""

    def decide(x):
        if x.sum() > 0:
            x = x * 2
        return x

    def model(x):
        return decide(x - 1).nonzero().squeeze()

    x = torch.arange(6.0)
    gm = cfx.capture(model, x)
    names = [node.name for node in gm.graph.nodes]
    assert len(set(names)) == len(names)
    assert "nonzero" in names and "squeeze" in names and "_" not in names
    assert any("nonzero.shape[0] == 1" in guard.expression for guard in gm.guards)
    same(model, gm, x)
    same(model, gm, x + 5)


# ---- functions behind functools.lru_cache (detr, dinov3) -----------------------------------------


def cached_method(function):
    """As decorators of libraries do it: the cache is in the closure of what they return."""
    with_cache = functools.lru_cache(maxsize=1)(function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return with_cache(*args, **kwargs)

    wrapper.cache = with_cache
    return wrapper


class Cached(torch.nn.Module):
    def __init__(self, kind="method"):
        super().__init__()
        self.kind = kind

    @functools.lru_cache(maxsize=8)  # noqa: B019: what is tested
    def method(self, shape):
        return torch.ones(shape).tril()

    @staticmethod
    @functools.lru_cache
    def static(shape):
        return torch.ones(shape).tril()

    @classmethod
    @functools.lru_cache
    def of_class(cls, shape):
        return torch.ones(shape).tril()

    @cached_method
    def decorated(self, shape):
        return torch.ones(shape).tril()

    def forward(self, x):
        made = getattr(self, self.kind)
        return x + made(x.shape) + made(x.shape)


KINDS = ["method", "static", "of_class", "decorated"]


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_do_not_get_into_a_cache(kind):
    """A cache compares what it is asked for with what it has been asked for: the sizes of the
    example were fixed."""
    x = torch.randn(2, 3)
    gm = cfx.capture(Cached(kind), x)
    assert not gm.guards
    for shape in ((2, 3), (4, 4), (1, 5)):
        same(Cached(kind), gm, torch.randn(shape))
    assert [node.target for node in gm.graph.nodes].count(torch.ones) == 1  # once, as in the cache


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_a_run_do_not_get_into_a_cache(kind):
    """The model that was captured had got tensors of the run from its cache afterwards."""
    model, x = Cached(kind), torch.randn(2, 3)
    before = dict(vars(Cached))
    gm = cfx.capture(model, x, dynamic=False)
    assert all(vars(Cached)[name] is value for name, value in before.items())
    same(model, gm, x)
    cfx.capture(model, x)
    same(model, gm, x)


def test_a_cache_that_is_asked_with_plain_values_gives_a_constant():
    """It answers once for all, also if it drew random numbers for that."""

    @functools.lru_cache
    def noise(n):
        return torch.rand(n)

    def model(x):
        return x + noise(3)

    x = torch.randn(2, 3)
    gm = cfx.capture(model, x)
    assert noise.cache_info().currsize == 1
    same(model, gm, x)
    torch.testing.assert_close(gm(x), gm(x))


def test_a_cache_in_a_function_that_data_decides():
    """The evaluator of scripts has its own way with caches, and must find the cache itself."""

    @functools.lru_cache
    def table(n):
        return torch.arange(n) * 2.0

    def decide(x):
        if x.sum() > 0:
            return x + table(x.shape[0])
        return x - table(x.shape[0])

    def model(x):
        return decide(x * 1) + table(x.shape[0])

    x = torch.ones(3)
    gm = cfx.capture(model, x)
    for given in (x, -x, torch.ones(5), -torch.ones(4)):
        same(model, gm, given)


def test_what_has_no_hash_is_refused_as_by_the_cache():
    @functools.lru_cache
    def table(sizes):
        return torch.ones(*sizes)

    def model(x):
        return x + table([x.shape[0], 2])

    with pytest.raises(TypeError, match="unhashable"):
        cfx.capture(model, torch.ones(3, 2))


# ---- functions from their source that change their arguments (caches, outputs, exceptions) -------


class Box:
    def __init__(self):
        self.value, self.seen = None, []


def fill_attribute(box, x):
    if x.sum() > 0:
        box.value = x * 2
    else:
        box.value = -x


def fill_list(box, x):
    if x.sum() > 0:
        box.append(x * 2)
    else:
        box.append(-x)


def fill_dict(box, x):
    if x.sum() > 0:
        box["value"], box["n"] = x * 2, x.shape[0]
    else:
        box["value"], box["n"] = -x, x.shape[0] + 1


def fill_inside(box, x):
    if x.sum() > 0:
        box[0].seen[-1]["value"] = x * 2
    else:
        box[0].seen[-1]["value"] = -x


def refused_half_way(box, x):
    box.append(x)
    if x.sum() > 0:
        box.append(x * len({id(part) for part in box}))
    return float(x.sum())


def returns_its_argument(box, x):
    box.append(x * 2 if x.sum() > 0 else -x)
    return box


def with_attribute(x):
    box = Box()
    fill_attribute(box, x * 1)
    return box.value + 1


def with_list(x):
    box = [x]
    fill_list(box, x * 1)
    return box


def with_dict(x):
    box = {"x": x}
    fill_dict(box, x * 1)
    return box


def with_inside(x):
    box = [Box()]
    parts = box[0].seen
    parts.append({"value": x})
    fill_inside(box, x * 1)
    return parts[0]["value"] + 1


def with_refusal(x):
    box = []
    refused_half_way(box, x * 1)
    return box


def with_alias(x):
    box = []
    again = returns_its_argument(box, x * 1)
    again.append(x)
    return box, again is box


CHANGES = [with_attribute, with_list, with_dict, with_inside, with_alias]


@pytest.mark.parametrize("model", CHANGES)
def test_what_an_evaluated_function_changes_in_its_arguments(model):
    """Containers were copied, and objects were left with proxies of the evaluator."""
    x = torch.arange(1.0, 4.0)
    gm = cfx.capture(model, x)
    for given in (x, -x, torch.ones(5), -torch.ones(2)):
        same(model, gm, given)


def fill_ordered(box, x):
    if x.sum() > 0:
        box["value"] = x * 2
    else:
        box["value"] = -x


def with_ordered(x):
    box = collections.OrderedDict(x=x)
    fill_ordered(box, x * 1)
    return box["value"] + box["x"]


def test_a_change_that_cannot_be_written_back_is_not_lost():
    """The function runs as Python then, and the graph checks what its data decided."""
    x = torch.arange(1.0, 4.0)
    gm = cfx.capture(with_ordered, x)
    same(with_ordered, gm, x + 1)
    with pytest.raises(cfx.CaptureError, match="was True"):
        gm(-x)


def test_what_a_refused_evaluation_has_changed_is_put_back():
    x = torch.arange(1.0, 4.0)
    gm = cfx.capture(with_refusal, x)
    same(with_refusal, gm, x)


# ---- texts and integers of sizes (timm's PatchEmbed, transformers' torch_int) --------------------


class PatchEmbed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Conv2d(3, 4, 4, 4)

    def forward(self, x):
        _, _, height, width = x.shape
        torch._assert(height % 4 == 0, f"the height {height} should be divisible by 4")
        torch._assert(width % 4 == 0, f"the shape {x.shape} should be divisible by 4")
        return self.proj(x).flatten(2)


class Embedded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = PatchEmbed()

    def forward(self, x):
        return self.embed(x).relu()


def test_a_text_of_a_size_does_not_fix_it():
    model = Embedded()
    gm = cfx.capture(model, torch.randn(2, 3, 8, 8))
    assert not [guard for guard in gm.guards if "%" not in guard.expression]
    for shape in ((2, 3, 8, 8), (3, 3, 12, 16), (1, 3, 4, 4)):
        same(model, gm, torch.randn(shape))
    with pytest.raises((AssertionError, RuntimeError), match="divisible by 4"):
        gm(torch.randn(2, 3, 9, 8))


def plain(n):
    return int(n)


def ratio(n):
    return float(n) / 2


@pytest.mark.parametrize("make", [plain, ratio])
def test_a_function_that_makes_a_number_of_a_size_does_not_fix_it(make):
    def model(x):
        return x * make(x.shape[0] // 2)

    gm = cfx.capture(model, torch.ones(4, 2))
    assert not gm.guards
    for size in (4, 7, 1):
        same(model, gm, torch.ones(size, 2))


# ---- in C ----------------------------------------------------------------------------------------

PRODUCTS = [  # equation, sizes; torch multiplies matrices in each, so its strides are those of that
    ("bildsk,biokl->bolsd", (2, 3, 4, 1, 5, 6), (2, 3, 7, 6, 4)),  # univnet's
    ("bildsk,biokl->bolsd", (1, 3, 4, 2, 5, 6), (1, 3, 7, 6, 4)),
    ("bildsk,biokl->bolsd", (2, 3, 4, 2, 5, 6), (2, 3, 7, 6, 4)),
    ("db,fab->fda", (3, 2), (3, 2, 2)),  # columns on both sides of the row
    ("abcg,ceb->cea", (2, 2, 2, 3), (2, 3, 2)),  # one label is summed on its own
    ("fdba,bea->bef", (2, 1, 1, 2), (1, 2, 2)),
    ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4)),
]


@pytest.mark.parametrize("equation,one,two", PRODUCTS)
def test_einsum_in_c_has_the_strides_of_torch(equation, one, two):
    """A view of the result was refused in C. Strides of dimensions of size 1 do not matter."""
    inputs = torch.randn(one), torch.randn(two)
    expected = torch.einsum(equation, *inputs)
    found = cfx.lower(cfx.capture(lambda x, y: torch.einsum(equation, x, y), *inputs))(*inputs)
    torch.testing.assert_close(found, expected)
    strides = [[s for s, n in zip(t.stride(), t.shape) if n > 1] for t in (expected, found)]
    assert strides[0] == strides[1]


def test_a_weight_norm_runs_in_c():
    """Its parametrization was a layer of its own, which no row has."""
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(4, 4, 3), dim=2)
    model = torch.nn.Sequential(layer, torch.nn.ReLU()).eval()
    x = torch.randn(2, 4, 8)
    with torch.no_grad():
        gm = cfx.capture(model, x)
        same(model, gm, torch.randn(3, 4, 9))
        torch.testing.assert_close(cfx.lower(gm)(x), model(x))
        layer.parametrizations.weight.original0.mul_(2)  # it is computed in each call
        same(model, gm, x)


# ---- torch._check in functions from their source (paligemma) -------------------------------------


def checks_all(x):
    torch._check_tensor_all(x > 0)
    return x * 2


def checks_data(x):
    torch._check(bool((x > 0).all()), lambda: f"there are negative ones among {x.shape[0]}")
    return x * 2


def checks_data_as_value(x):
    torch._check_with(ValueError, bool((x > 0).all()), lambda: "negative")
    return x * 2


def checks_all_as_value(x):
    torch._check_tensor_all_with(ValueError, x > 0, lambda: "negative")
    return x * 2


@pytest.mark.parametrize("model", [checks_all, checks_data, checks_data_as_value,
                                   checks_all_as_value])  # fmt: skip
@pytest.mark.parametrize("how", ["script", "capture"])
def test_checks_of_torch_are_checks_of_the_graph(model, how):
    """Such a function asks whether it got a tensor, and the evaluator's are proxies."""
    x = torch.ones(3)
    gm = cfx.script(model) if how == "script" else cfx.capture(lambda x: model(x * 1), x)
    same(model, gm, x)
    same(model, gm, torch.ones(5))
    with pytest.raises(Exception) as expected:  # noqa: B017: of whatever class torch has
        model(-x)
    with pytest.raises(type(expected.value)) as found:
        gm(-x)
    assert str(expected.value).startswith(str(found.value))  # torch adds where to report it


# ---- is_integer of a quotient of sizes (local-attention) -----------------------------------------


def pads(x):
    share = x.shape[0] / 4
    if share.is_integer():
        return x * 1
    return torch.nn.functional.pad(x, (0, math.ceil(share) * 4 - x.shape[0]))


@pytest.mark.parametrize("size", [6, 8])
def test_is_integer_of_a_quotient_of_sizes(size):
    """torch's own method calls itself without end."""
    gm = cfx.capture(pads, torch.ones(size))
    assert [guard.value for guard in gm.guards] == [size == 8]
    same(pads, gm, torch.ones(size + 4))
    with pytest.raises(cfx.CaptureError, match="x.shape"):
        gm(torch.ones(size + 2))
    again = cfx.capture(pads, torch.ones(size), recapture=True)
    for other in (size, size + 2, size + 3):
        same(pads, again, torch.ones(other))


def test_is_integer_of_numbers_that_are_not_finite():
    def model(x, scale):
        return x * 2 if scale.is_integer() else x

    for scale in (math.inf, math.nan):
        gm = cfx.capture(model, torch.ones(2), scale)
        torch.testing.assert_close(gm(torch.ones(2), scale), torch.ones(2))


# ---- parts of a model that only a second graph needs (vit-pytorch's SepViT) ----------------------


class Later(torch.nn.Module):
    """Uses a layer inside of another module for many rows only."""

    def __init__(self):
        super().__init__()
        self.outer = torch.nn.Module()
        self.outer.inner = torch.nn.Module()
        self.outer.inner.fc = torch.nn.Linear(3, 3)
        self.outer.inner.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        inner = self.outer.inner
        return inner.drop(inner.fc(x)) if x.shape[0] > 2 else x * 2


@pytest.mark.parametrize("train", [False, True])
def test_a_second_graph_has_the_modes_of_its_own_parts(train):
    """Modules around the layers that were new had a mode of their own: the graph refused to run."""
    model = Later().train(train)
    gm = cfx.capture(model, torch.ones(2, 3), recapture=True)
    for rows in (2, 4, 3):
        x = torch.randn(rows, 3)
        torch.manual_seed(1)
        expected = model(x)
        torch.manual_seed(1)
        torch.testing.assert_close(gm(x), expected)
    assert len(gm.graphs) == 2
    gm.train(not train)
    model.train(not train)
    torch.manual_seed(1)
    expected = model(x)
    torch.manual_seed(1)
    torch.testing.assert_close(gm(x), expected)
