"""Options of code generation against torch.fx: comments, annotations, descriptions, colours."""
import enum
import operator

import pytest
import torch
import torch.fx.graph
from codegen_cases import CFX, EXPANDED, OPTIONS, TORCH, Cls, Color, check

import cfx._glue.codegen

pytestmark = pytest.mark.filterwarnings("ignore")


def trace(line):
    return f'  File "/a.py", line {line}, in f\n    x = {line}\n'


def traced(lib, traces=(1, 1, 2, None, "", 2, "garbage", 1)):
    graph = lib.Graph()
    n = graph.placeholder("x")
    n.meta["stack_trace"] = trace(8)
    for line in traces:
        n = graph.call_function(torch.relu, (n,))
        if line is not None:
            n.meta["stack_trace"] = trace(line) if isinstance(line, int) else line
    m = graph.call_method("foo", (n,))
    m.meta["stack_trace"] = trace(1)
    q = graph.call_module("q", (graph.get_attr("w"),))
    q.meta["stack_trace"] = trace(1)
    graph.output((m, q))
    graph.output_node().meta["stack_trace"] = trace(9)
    return graph


@pytest.mark.parametrize("options", OPTIONS + EXPANDED)
def test_stack_traces(options):
    check(traced, **options)


class Policy(enum.Enum):
    MUST_SAVE = 0


METADATA = [
    {"recompute": Policy.MUST_SAVE}, {"recompute": None}, {"ac_graph_id": 3}, {"ac_graph_id": 0},
    {"ac_graph_id": 3, "recompute": Policy.MUST_SAVE}, {"seq_nr": 1}, {"custom": {"a": 1}},
    {"custom": {}}, {"custom": {"a": 1}, "recompute": Policy.MUST_SAVE},
    {"custom": {"s": "x" * 41, "t": "y" * 40, "l": ["z" * 50], 5: None}},
    {"custom": {"b": 2}, "ac_graph_id": 1, "recompute": Policy.MUST_SAVE},
    {"nn_module_stack": {"a": ("a", int)}}, {"partitioner_tag": "is_backward"}, {"tag": "t"},
]  # fmt: skip


@pytest.mark.parametrize("meta", METADATA)
@pytest.mark.parametrize("stack_trace", [None, trace(1)])
@pytest.mark.parametrize("additional", [None, [], ["seq_nr", "nope", "tag"], ["custom"]])
def test_metadata(meta, stack_trace, additional):
    def build(lib):
        graph = traced(lib, [1, 1])
        for i, node in enumerate(graph.nodes):
            node.meta.update(meta if i else {}, stack_trace=stack_trace)
        return graph

    check(build, verbose=True, additional_meta=additional)
    check(build, verbose=True, additional_meta=additional, colored=True, expanded_def=True)


def values():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import (
        DimDynamic,
        ShapeEnv,
        StatelessSymbolicContext,
    )
    from torch.fx.passes.shape_prop import _extract_tensor_metadata

    mode = FakeTensorMode(shape_env=ShapeEnv())
    dynamic = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * 2)
    fake = mode.from_tensor(torch.empty(5, 7), symbolic_context=dynamic)
    tensors = [torch.ones(2), torch.ones(()), torch.ones(3, 2).t(), torch.eye(2).to_sparse(), fake,
               torch.nn.Parameter(torch.ones(2)), torch.ones(2, device="meta")]
    others = [None, 3, 2.5, "s", [torch.ones(2)], {"a": torch.ones(2)}, ..., fake.shape[0],
              fake.shape[0] > 3, fake.shape[0] * 1.5, (fake,), torch.eye(2).to_sparse_csr()]
    dtypes = [torch.empty(2, dtype=getattr(torch, name)) for name in cfx_dtypes()]
    return tensors + others + dtypes + [_extract_tensor_metadata(torch.empty(2, 3))]


def cfx_dtypes():
    return [name for name in cfx._glue.codegen._DTYPES if not name.startswith("bits")]


SHOWN = [{}, {"include_stride": True}, {"include_device": True},
         {"include_stride": True, "include_device": True, "colored": True}]


@pytest.mark.parametrize("options", SHOWN)
@pytest.mark.parametrize("key", ["val", "tensor_meta", "example_value"])
def test_annotations(options, key):
    for value in values():
        def build(lib):
            graph = lib.Graph()
            x = graph.placeholder("x", type_expr=int, default_value=3)
            a = graph.call_function(torch.relu, (x,))
            b = graph.call_function(operator.iadd, (a, graph.get_attr("w")), type_expr=Cls)
            graph.output(b)
            for node in graph.nodes:
                node.meta[key] = value
            return graph

        check(build, verbose=True, **options)
        check(build, verbose=True, expanded_def=True, **options)
        check(build, **options)


@pytest.mark.parametrize("meta", [
    {"val": 3, "tensor_meta": torch.ones(1)}, {"val": None, "example_value": torch.ones(1)},
    {"tensor_meta": torch.ones(1), "example_value": torch.ones(2)},
    {"tensor_meta": None, "example_value": torch.ones(2)}, {"example_value": torch.ones(2)},
])
def test_which_annotation(meta):
    def build(lib):
        graph = lib.Graph()
        x = graph.placeholder("x")
        x.meta.update(meta)
        graph.output(x)
        return graph

    check(build, verbose=True)


def test_symbolic_spelling():
    symbol = next(v for v in values() if isinstance(v, torch.SymInt))
    texts = []
    overrides = (torch.fx.graph._override_sym_repr, cfx._glue.codegen._override_sym_repr)
    for lib, override in zip((TORCH, CFX), overrides):
        graph = lib.Graph()
        x = graph.placeholder("x")
        x.meta["val"] = symbol
        graph.output(x)
        with override(lambda s: f"<{s}>"):
            texts.append(graph.python_code("self", verbose=True).src)
        texts.append(graph.python_code("self", verbose=True).src)
    assert texts[:2] == texts[2:] and texts[0] != texts[1]


@pytest.mark.parametrize("options", [{}, *EXPANDED])
@pytest.mark.parametrize("descs", [["A", "B"], ["A", None], None])
@pytest.mark.parametrize("kind", [tuple, list])
def test_descriptions(options, descs, kind):
    def build(lib):
        graph = lib.Graph()
        x, y = graph.placeholder("x"), graph.placeholder("y", default_value=3)
        x.meta["desc"] = "X # D"
        y.meta["desc"] = 5
        graph.output(kind([x, (y, Color.RED)]))
        if descs:
            graph.output_node().meta["desc"] = descs
        return graph

    check(build, **options)


# ---- stack traces -----------------------------------------------------------------------------

TRACES = [
    trace(1), trace(1) + trace(2), 'File "/a.py", line 1, in f\n x', '  File "/a.py", line 1, in f',
    "", "x", '  File "a.py", line 12, in g.<locals>.h\n    code here  \n    ^^^^\n', None,
    '  File "/a.py", line 1, in f\n\n    x = 1\n', trace(1) + "junk\n",
    '  File "/a.py", line x, in f\n  c', ' File "/a.py", line 3\n c',
    'xFile "/a.py", line 3, in f\nc',
    '  File "/a.py", line 3, in f\n  File "/b.py", line 4, in g\n', 'File "", line 3, in f\nzz',
    'File "/a.py", line 3, in f extra\n  q\r\n', '   File "/a"b.py", line 3, in f\nzz',
    'File "a", line 3, in \nzz', '\tFile "a", line 3, in q\nzz\n\n  \n',
    'File "a", line 3,in q\nzz',
    'File "a", line 3, in q  \nzz', ' File "a", line 03, in q, z\nzz',
]  # fmt: skip


@pytest.mark.parametrize("text", TRACES)
def test_parsing_a_stack_trace(text):
    expected, found = torch.fx.graph._parse_stack_trace, cfx._glue.codegen._parse_stack_trace
    for accept in (None, lambda file, name, code: file != "/b.py", lambda *a: False):
        assert repr(found(text, accept)) == repr(expected(text, accept))
