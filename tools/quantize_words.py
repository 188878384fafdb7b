"""quantize_words.py - what cfx.quantize converts, in the words that torch.ao's tests look for.

torch.ao's convert_fx gives calls of PyTorch's own int8 modules and functions (nnq.Linear,
torch.ops.quantized.add_relu); cfx gives quantize, dequantize and float operators between them, and
a compiled program makes integer operators of that. A test that counts nnq.Linear asks: is this
layer in integers? `nodes_of` answers such questions about a graph of cfx. Nothing here changes a
graph.
"""
import re
from pathlib import Path

import torch
from torch.testing._internal.common_quantization import NodeSpec

LAYERS = {"BNReLU": "batch_norm_relu", "BatchNorm": "batch_norm", "InstanceNorm": "instance_norm",
          "LayerNorm": "layer_norm", "GroupNorm": "group_norm", "LeakyReLU": "leaky_relu",
          "PReLU": "prelu", "ELU": "elu", "LinearReLU": "linear_relu",
          "LinearLeakyReLU": "linear_leaky_relu", "LinearTanh": "linear_tanh",
          "Embedding": "embedding", "EmbeddingBag": "embedding_bag"}  # fmt: skip
FUNCTIONS = {"iadd": "add", "imul": "mul", "embedding_byte": "embedding",
             "embedding_bag_byte": "embedding_bag", "hardswish_": "hardswish",
             "leaky_relu_": "leaky_relu", "elu_": "elu"}  # fmt: skip
# What PyTorch has int8 calls of its own for; others take tensors of quantized types as they are.
OWN = {*(f"conv{kind}{i}d" for i in (1, 2, 3) for kind in ("", "_transpose")), "linear", "add",
       "mul", "matmul", "batch_norm", "instance_norm", "layer_norm", "group_norm", "leaky_relu",
       "prelu", "elu", "hardswish", "softmax", "dropout", "embedding", "embedding_bag"}
INSIDE = ("integers", "each run", "float16", "halves")
FIXED = {"sigmoid", "hardsigmoid", "tanh", "softmax"}
QUANTIZE = NodeSpec.call_function(torch.quantize_per_tensor)
QUANTIZE_EACH_RUN = NodeSpec.call_function(torch.quantize_per_tensor_dynamic)
DEQUANTIZE = NodeSpec.call_method("dequantize")
TO = NodeSpec.call_method("to")  # float16


# The operators that torch.ao has an integer form of: those of cfx's table, whose rows are its.
ROWS = {name.replace("_", "") for name in re.findall(
    r"CFX_QUANTIZE\((\w+)", (Path(__file__).resolve().parent.parent / "src/quantize/quantize.def")
    .read_text())}  # fmt: skip
MOVES = {"Identity": "alias", "upsample": "interpolate", "getitem": "view", "chunk": "view",
         "ChannelShuffle": "view", "channel_shuffle": "view"}
LAYERS_WITH_WEIGHTS = ("linear", "conv")


def layer_name(cls):
    """nn.Conv2d, nnq.Conv2d: conv2d; nni.ConvReLU2d: conv2d_relu."""
    name, size = re.fullmatch(r"(.*?)(\dd|)", cls.__name__).groups()
    if name in ("ConvReLU", "Conv", "ConvTranspose"):
        kind = "conv_transpose" if name == "ConvTranspose" else "conv"
        return f"{kind}{size}" + ("_relu" if name == "ConvReLU" else "")
    return LAYERS.get(name, name.lower())


def word(spec):
    """A NodeSpec of a test in words that are the same for torch.ao and cfx: (how, whether the model
    calls a module or a function, what), or the spec as it is, where torch.ao's word is cfx's."""
    if spec.op == "call_module" and isinstance(spec.target, type):
        place = spec.target.__module__
        for part, how in (("quantized.dynamic", "each run"), ("quantized.reference", "reference"),
                          ("torch.ao.nn.quantized", "integers"),
                          ("torch.ao.nn.intrinsic.quantized", "integers")):
            if part in place:
                return how, "module", layer_name(spec.target)
    if spec.op == "call_function" and str(spec.target).startswith("quantized."):
        name = str(spec.target).partition(".")[2]
        how = "float16" if name.endswith("_fp16") else "each run" if "_dynamic" in name \
            else "integers"
        name = re.sub("_dynamic|_fp16", "", name)
        name = re.sub(r"^(batch_norm)\dd", r"\1", name)
        return how, "function", FUNCTIONS.get(name, name)
    return spec


# ---- the graph ----------------------------------------------------------------------------------


def _name(node):
    return getattr(node.target, "__name__", str(node.target)) if node.op == "call_function" else ""


def _is(node, what):
    if node.op == "call_method" and node.target == what:  # an input that is quantized already
        return True
    return node.op == "call_function" and _name(node).startswith(f"{what}_per_")


def _weight(node):
    """Whether a dequantize reads a weight."""
    source = node.args[0]
    return source.op == "get_attr" or _name(source) == "unpack_int4"


def _cast(node, dtype):
    return node.op == "call_method" and node.target == "to" and dtype in node.args


def _is_half(node):
    return _cast(node, torch.float16)


def _is_back(node):
    """From float16, where _is_half or the file has rounded to it."""
    return _cast(node, torch.float32) and (_is_half(node.args[0]) or _weight(node))


def _asks_size(node):
    return _name(node) == "getattr" or node.target in ("size", "dim", "numel")


class Reader:
    def __init__(self, gm):
        self.modules = dict(gm.named_modules(remove_duplicate=False))
        self.nodes = list(gm.graph.nodes)
        self.tails = {}  # a ReLU -> the call that it is one with
        self.how = {}    # a call -> how it is computed
        self.left = {name for name, why in gm.meta.get("left_in_float", ()) if "asked" in why}
        self.each_run = False  # float16 is for what calls read, not for what they give
        for node in self.nodes:
            self.look_at(node)
        for node, how in list(self.how.items()):
            if how == "halves" and self.each_run:
                self.how[node] = "float16"
            elif how == "halves" and self.name(node) in OWN | FIXED:
                del self.how[node]

    def plain(self, node):
        target = type(self.modules[node.target]) if node.op == "call_module" else node.target
        return NodeSpec(node.op, target)

    def name(self, node):
        if node.op == "call_module":
            return layer_name(type(self.modules[node.target]))
        name = _name(node) or str(node.target)
        return FUNCTIONS.get(name, name.rstrip("_"))

    def look_at(self, node):
        read = [i for i in node.all_input_nodes if _is(i, "dequantize")]
        halves = [i for i in node.all_input_nodes if _is_back(i)]
        values = [i for i in read if not _weight(i)]
        if (not node.op.startswith("call_") or _is(node, "quantize") or _is(node, "dequantize")
                or _is_half(node) or _is_back(node)):  # fmt: skip
            return
        last = node
        if len(node.users) == 1 and self.name(next(iter(node.users))) == "relu":
            last = next(iter(node.users))
        stored = last.users and all(_is(user, "quantize") for user in last.users)
        if any(_name(i.args[0]).endswith("tensor") and not isinstance(i.args[1], float)
               for i in values):
            self.how[node] = "each run"
        elif values and stored and self.has_integers(node, read != values):
            self.how[node] = "integers"
        elif read and not values:
            self.how[node] = "integers" if self.name(node).startswith("embedding") else "weights"
        elif halves and not (last.users and all(_is_half(user) for user in last.users)):
            self.each_run = True
        if halves and node not in self.how:
            self.how[node] = "halves"
        if node in self.how and last is not node:
            self.tails[last] = node

    def has_integers(self, node, weighted):
        """Not what was asked to stay float, or has float weights, or no row: cfx computes some of
        these in integers, too, where what they read and give are integers."""
        name = self.name(node)
        whole = type(self.modules[node.target]).__name__ if node.op == "call_module" else name
        known = any(MOVES.get(n, n).lower().replace("_", "") in ROWS for n in (name, whole))
        return (node.name not in self.left and known
                and (weighted or not name.startswith(LAYERS_WITH_WEIGHTS)))  # fmt: skip

    def whole_name(self, node):
        return self.name(node) + ("_relu" if node in self.tails.values() else "")

    def called(self, node):
        """What the model calls. A call of a layer has become one of its function, but still has the
        name of the layer, which owns the weights."""
        sources = [w for i in node.all_input_nodes for w in i.all_input_nodes if w.op == "get_attr"]
        layers = [str(w.target).rpartition(".")[0].replace(".", "_") for w in sources]
        named = any(layer and node.name.lstrip("_").startswith(layer) for layer in layers)
        return "module" if named or node.op == "call_module" else "function"

    def back(self, node):
        """torch.ao rounds the weights of functions in the graph, those of layers in the layer."""
        if not _weight(node):
            yield [DEQUANTIZE]
        elif any(self.called(user) == "function" for user in node.users):
            yield from ([TO], [DEQUANTIZE])

    def as_reference(self):
        for node in self.nodes:
            if _is(node, "quantize"):
                yield [self.plain(node), QUANTIZE]
            elif _is(node, "dequantize"):
                yield [self.plain(node)] + ([] if _weight(node) else [DEQUANTIZE])
            elif _is_half(node):
                yield [QUANTIZE_EACH_RUN if self.each_run else TO]
            elif _is_back(node):
                yield from self.back(node)
            elif node.op.startswith("call_"):
                layer = any(_is(i, "dequantize") and _weight(i) for i in node.all_input_nodes)
                words = [("reference", "module", self.name(node))] if layer else []
                yield [self.plain(node), *words]

    def as_integers(self):
        """Without what only says how the operator between computes."""
        def inside(node):
            return self.how.get(self.tails.get(node, node)) in INSIDE

        for node in self.nodes:
            if _is(node, "quantize"):
                if not inside(node.args[0]) and isinstance(node.args[1], float):
                    yield [QUANTIZE]
            elif _is(node, "dequantize"):
                if not _weight(node) and not all(inside(u) or _asks_size(u) for u in node.users):
                    yield [DEQUANTIZE]
            elif _is_half(node):
                if not self.each_run and self.how.get(node.args[0]) != "halves":
                    yield [TO]
            elif _is_back(node):
                if not all(inside(user) for user in node.users):
                    yield from self.back(node)
            elif node in self.how and self.name(node) in OWN:
                name = self.called(node), self.whole_name(node)
                found = [(self.how[node], *name)]
                yield found + ([("each run", *name)] if self.how[node] == "float16" else [])
            elif node.op.startswith("call_") and node not in self.tails:
                yield [self.plain(node)]


def nodes_of(gm, form):
    """The words of a converted graph, in order; one node may be known by several."""
    reader = Reader(gm)
    return list(reader.as_integers() if form == "integers" else reader.as_reference())


def check(test, gm, form, node, occurrence, ordered):
    """What checkGraphModuleNodes of QuantizationTestCase checks, in these words."""
    found = nodes_of(gm, form)
    counts = {}
    for words in found:
        for one in words:
            counts[one] = counts.get(one, 0) + 1
    if node is not None and word(node) not in counts:
        test.fail(f"no {word(node)} among {found}")
    for spec, count in (occurrence or {}).items():
        if counts.get(word(spec), 0) != count:
            test.fail(f"{counts.get(word(spec), 0)} of {word(spec)}, not {count}, among {found}")
    left = [word(spec) for spec in ordered or ()]
    for words in found:
        if left and left[0] in words:
            left.pop(0)
    if left:
        test.fail(f"after the others, no {left[0]} among {found}")
