"""The operator table against torch: every spelling exists and means what its row says."""
import builtins
import importlib
import itertools
import operator
import re

import pytest
from cfx import Graph, _core, ops

torch = pytest.importorskip("torch")
import torch.ao.quantization.fx._decomposed  # noqa: E402, F401  registers quantized_decomposed
F = torch.nn.functional

ROWS = [ops.Operator(*row) for row in iter(map(_core._operator, itertools.count(1)).__next__, None)]


def spellings(prefix):
    return [(row, s) for row in ROWS for s in row.spellings if s.startswith(prefix)]


OVERLOADS = spellings("torch.ops.aten.")


def resolve(name):
    module, _, path = name.partition(".")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def schema_of(row):
    """Parsed by torch, which knows no defaults of `Any` (of what may be several types), nor lists
    that may be None but are empty by default."""
    schema = re.sub(r"\bAny (\w+='\w*')", r"str \1", row.schema)
    schema = re.sub(r"\bAny (\w+=[^,)]+)", r"Scalar? \1", schema)
    schema = schema.replace("]? stride=[]", "] stride=[]")
    return torch._C.parse_schema(f"cfx::{row.name}{schema}")


# ---- names


@pytest.mark.parametrize(
    "target",
    [torch.relu, F.relu, torch.Tensor.relu, torch.nn.ReLU, torch.ops.aten.relu.default,
     torch.ops.aten.relu, "F.relu", "onnx:Relu", "relu"],
)  # fmt: skip
def test_find(target):
    assert ops.find(target).name == "relu"


def test_find_node():
    graph = Graph()
    x = graph.placeholder("x")
    assert ops.find(graph.call_method("add_", (x, 1))).name == "add_"
    assert ops.find(graph.call_function(operator.getitem, (x, 1))).name == "getitem"
    assert ops.find(graph.call_module("fc", (x,))) is None
    assert ops.find(x) is None


def relu(x):
    return x


def test_find_nothing():
    for target in (relu, lambda x: x, 1.5, "nothing", "torch.nn.Module", torch.nn.Sequential, ""):
        assert ops.find(target) is None


def test_every_spelling_is_there_and_leads_back():
    for row, name in spellings(""):
        assert ops.find(name) == row
        if name.startswith(("onnx:", "torch.ops.transformers.")):
            continue
        owner = {"str": str, "dict": dict}.get(row.name.partition("_")[0])
        if owner and "_" in row.name:  # a method, but one of texts or dicts
            assert callable(getattr(owner, name.removeprefix("torch.Tensor.")))
            continue
        found = resolve(name) if "." in name else getattr(builtins, name)
        assert callable(found), name
        assert ops.find(found) == row, name


# The operators of 253 models of torchvision, timm and transformers.
MODELS = """
linear.default add.Tensor conv2d.default dropout.default flatten.using_ints mul.Tensor transpose.int
reshape.default adaptive_avg_pool2d.default layer_norm.default batch_norm.default view.default
gelu.default unsqueeze.default cat.default permute.default relu_.default expand.default mean.dim
scaled_dot_product_attention.default slice.Tensor arange.default _assert_tensor_metadata.default
contiguous.default embedding.default add_.Tensor max_pool2d.default softmax.int index.Tensor
to.dtype select.int matmul.default sigmoid.default sub.Tensor to.dtype_layout le.Tensor relu.default
ne.Scalar unbind.int div.Tensor ge.Scalar __and__.Tensor cumsum.default neg.default new_ones.default
pow.Tensor_Scalar to.device alias.default tanh.default pad.default zeros.default chunk.default
avg_pool2d.default cos.default sin.default diff.default eq.Tensor silu.default dropout_.default
silu_.default split_with_sizes.default stack.default rsqrt.default where.ScalarOther ones.default
arange.start lift_fresh_copy.default type_as.default linalg_vector_norm.default roll.default
clamp_min.default expand_as.default gather.default masked_fill.Scalar squeeze.dim
hardsigmoid.default eq.Scalar exp.default repeat.default split.Tensor sum.dim_IntList clamp.default
einsum.default fill_.Tensor group_norm.default new_zeros.default hardswish_.default
repeat_interleave.self_int reshape_as.default rsub.Scalar unflatten.int where.self
zeros_like.default conv1d.default log.default lt.Scalar min.other abs.default bitwise_not.default
bmm.default clone.default copy_.default detach.default detach_.default div_.Tensor full.default
full_like.default gt.Tensor hardswish.default hardtanh.default im2col.default index_select.default
pow.Scalar square.default upsample_bicubic2d.vec upsample_bilinear2d.vec upsample_nearest2d.vec
zero_.default adaptive_avg_pool1d.default addmm.default amax.default conv2d.padding div.Tensor_mode
empty_like.default floor_divide.default gt.Scalar histc.default index_put_.default max.other
meshgrid.indexing sort.default sqrt.default topk.default _upsample_bilinear2d_aa.vec acos.default
addcmul.default arange.start_step avg_pool1d.default baddbmm.default col2im.default
conv_transpose2d.input empty.memory_format ge.Tensor hardtanh_.default leaky_relu_.default
lstm.input max.dim maximum.default mul_.Tensor multiply.Tensor ne.Tensor numpy_T.default
ones_like.default pow.Tensor_Tensor reciprocal.default rms_norm.default softplus.default
squeeze.default swapaxes.default tile.default triu.default unfold.default uniform_.default
"""


def test_the_operators_of_many_models_have_rows():
    names = [f"torch.ops.aten.{name}" for name in MODELS.split()]
    names += ["operator.getitem", "torch.ops.transformers.grouped_mm_fallback.default"]
    names += ["torch.ops.higher_order.wrap_with_autocast"]
    assert [name for name in names if not ops.find(name)] == []
    assert len(names) > 160


# ---- schemas

# What a row says otherwise than torch's schema, and why.
SAYS_MORE = {  # the result may be the argument itself, which torch's schema does not say
    "alpha_dropout", "atleast_1d", "atleast_1d_each", "atleast_2d", "atleast_2d_each", "atleast_3d",
    "atleast_3d_each", "broadcast_tensors", "chain_matmul", "dropout", "einsum",
    "feature_alpha_dropout", "feature_dropout", "meshgrid", "type_as",
    "chunk", "split", "split_with_sizes", "view",  # by the overloads that torch calls unsafe
    "native_batch_norm",  # a flag of its row says when it writes, of `legit` the schema does
}  # fmt: skip


OWN_PARAMETERS = {  # they go by another name, or one is left out: the row has their own lists
    "torch.ops.aten.randint.default", "torch.ops.aten.randint_like.default",
    "torch.ops.aten.scatter.value", "torch.ops.aten.scatter.value_reduce",
    "torch.ops.aten.scatter_.value", "torch.ops.aten.scatter_.value_reduce",
    "torch.ops.aten.swapaxes.default", "torch.ops.aten.tensor_split.indices",
    "torch.ops.aten.tensor_split.tensor_indices_or_sections",
    "torch.ops.aten._native_batch_norm_legit_no_training.default",
    "torch.ops.aten.normal.float_float",
    *(name for _, name in OVERLOADS if "reflection_pad" in name or "replication_pad" in name),
    *(name for _, name in OVERLOADS if "upsample_" in name and name.endswith(".default")),
}  # fmt: skip
OWN_DEFAULTS = {  # another type, or a number in the place of a tensor: the row says what is common
    "torch.ops.aten.bernoulli_.float", "torch.ops.aten.conv1d.padding",
    "torch.ops.aten.conv2d.padding", "torch.ops.aten.conv3d.padding",
    "torch.ops.aten.normal.Tensor_float",
}  # fmt: skip


def names(arguments):
    return [a.name for a in arguments]


def positional(arguments):
    return [a.name for a in arguments if not a.kwarg_only]


def omits(row, own):
    """The parameters of the row that an overload has not."""
    return [a for a in row if a.name not in {b.name for b in own}]


def effect(argument):
    alias = argument.alias_info
    return (alias is not None, alias is not None and alias.is_write)


def test_overloads_have_the_parameters_of_their_rows():
    wrong = []
    for row, name in OVERLOADS:
        ours, torchs = schema_of(row), resolve(name)._schema
        own = list(torchs.arguments)
        left = [a for a in ours.arguments if a.name in {b.name for b in own}]
        first = positional(own)
        same = names(left)[:len(first)] == first and {*names(left)} == {*names(own)}
        if not same and names(left) != names(own):
            wrong.append((name, "parameters", [a.name for a in own], row.schema))
        if not all(a.has_default_value() for a in omits(ours.arguments, own)):
            wrong.append((name, "omits", str(torchs), row.schema))
    assert [w for w in wrong if w[0] not in OWN_PARAMETERS] == []
    assert {w[0] for w in wrong} == OWN_PARAMETERS


def test_overloads_have_the_effects_of_their_rows():
    wrong = []
    for row, name in OVERLOADS:
        ours, torchs = schema_of(row), resolve(name)._schema
        if len(ours.returns) != len(torchs.returns):
            wrong.append((name, "results", str(torchs), row.schema))
        pairs = [(a, b) for a in ours.arguments for b in torchs.arguments if a.name == b.name]
        pairs += zip(ours.returns, torchs.returns)
        if any(effect(a) != effect(b) for a, b in pairs):
            wrong.append((row.name, name, str(torchs), row.schema))
    assert [w for w in wrong if w[0] not in SAYS_MORE] == []
    assert {w[0] for w in wrong} == SAYS_MORE


def test_overloads_have_the_defaults_of_their_rows():
    wrong = []
    for row, name in OVERLOADS:
        ours = {a.name: a for a in schema_of(row).arguments}
        for b in resolve(name)._schema.arguments:
            a = ours.get(b.name)
            if a and b.has_default_value() and str(a.default_value) != str(b.default_value):
                wrong.append((name, b.name, str(b.default_value), row.schema))
    assert [w for w in wrong if w[0] not in OWN_DEFAULTS] == []
    assert {w[0] for w in wrong} == OWN_DEFAULTS


# ---- flags and pairs


def numbers(row, count):
    whole = any(part in row.name for part in ("bitwise", "gcd", "lcm"))
    kind = torch.bool if "logical" in row.name else torch.int64 if whole else None
    return [(torch.rand(4, generator=torch.manual_seed(i)) * 9).to(kind) for i in range(count)]


def test_commutes():
    tested = 0
    for row in ROWS:
        if "commutes" in row.flags and "Tensor" in row.schema:
            a, b = numbers(row, 2)
            for f in (resolve(s) for s in row.spellings if s.startswith(("torch.ops", "operator"))):
                if "Scalar" not in str(getattr(f, "_schema", "")).split("->")[0].partition("*")[0]:
                    assert torch.equal(torch.as_tensor(f(a, b)), torch.as_tensor(f(b, a))), f
                    tested += 1
    assert tested > 25
    a, b = numbers(ROWS[0], 2)
    assert not torch.equal(a - b, b - a)  # so that they could differ


def test_in_place_operators_write_what_their_functional_form_returns():
    tested = 0
    rows = {row.name: row for row in ROWS}
    for row in ROWS:
        twin = rows.get(row.name.removesuffix("_")) if row.name.endswith("_") else None
        if twin is None or "elementwise" not in row.flags or "random" in row.flags:
            continue
        args = numbers(row, 1 + str(row.schema).count(", Tensor"))
        f, g = (next(resolve(s) for s in r.spellings if "aten" in s) for r in (twin, row))
        if any(not a.has_default_value() for a in f._schema.arguments[len(args):]):
            continue
        if row.name in ("clamp_", "masked_fill_", "fill_"):  # no tensors with dimensions
            continue
        want = f(*args)
        if want.dtype == args[0].dtype:
            assert g(*args) is args[0]
            assert torch.equal(torch.nan_to_num(args[0]), torch.nan_to_num(want)), row.name
            tested += 1
    assert tested > 60


def test_elementwise_operators_commute_with_permuting_the_elements():
    tested = 0
    for row in ROWS:
        if "elementwise" not in row.flags or "random" in row.flags or row.name.endswith("_"):
            continue
        needed = [a for a in schema_of(row).arguments if not a.has_default_value()]
        args = numbers(row, sum("Tensor" in str(a.type) for a in needed))
        names = [s for s in row.spellings if s.startswith(("torch.ops", "torch.nn.functional"))]
        if not names:  # a row that only lowered graphs call
            continue
        f = resolve(names[-1])
        try:
            want, got = f(*args), f(*(a.flip(0) for a in args))
        except (RuntimeError, TypeError):  # it wants other arguments than tensors of numbers
            continue
        assert torch.equal(torch.nan_to_num(got), torch.nan_to_num(want.flip(0))), row.name
        tested += 1
    assert tested > 60


def test_only_random_operators_draw():
    for row, name in OVERLOADS:
        random = torch.Tag.nondeterministic_seeded in resolve(name).tags
        assert not random or "random" in row.flags, name


def test_torch_fx_keeps_the_same_overloads():
    from torch.fx import Graph as TorchGraph

    for row, name in OVERLOADS:
        target = resolve(name)
        kept = TorchGraph().call_function(target, (1,)).is_impure()
        assert Graph().call_function(target, (1,)).is_impure() == kept, name
        flagged = {"random", "checks"} & {*row.flags} or "legit.default" in name
        assert ("!" in row.schema or bool(flagged)) == kept, name
