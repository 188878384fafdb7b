"""The modules of torch.fx that people import for passes: each public name of theirs is one of ours,
with the same parameters; ours may have more behind them."""
import importlib
import inspect

import pytest

pytest.importorskip("torch")
MODULES = """subgraph_rewriter experimental.accelerator_partitioner experimental.const_fold
experimental.merge_matmul experimental.normalize experimental.optimization
experimental.partitioner_utils experimental.schema_type_annotation passes.annotate_getitem_nodes
passes.dialect.common.cse_pass passes.fake_tensor_prop passes.graph_drawer
passes.graph_manipulation passes.graph_transform_observer passes.infra.partitioner
passes.infra.pass_base passes.infra.pass_manager passes.net_min_base passes.operator_support
passes.param_fetch passes.pass_manager passes.reinplace passes.shape_prop passes.split_module
passes.split_utils passes.splitter_base passes.tools_common passes.utils.common
passes.utils.fuser_utils passes.utils.matcher_utils
passes.utils.matcher_with_name_node_map_utils passes.utils.source_matcher_utils""".split()
# What is not there, and why.
MISSING = {"passes.graph_transform_observer.T": "a type variable"}


def parts_of(value, path):
    """A function, or the class and its public methods: (path, object)."""
    yield path, value
    for name, member in vars(value).items() if inspect.isclass(value) else ():
        if (not name.startswith("_") or name == "__init__") and callable(member):
            yield f"{path}.{name}", getattr(value, name)


def parameters(function):
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [p.name for p in found if p.name != "self"]


@pytest.mark.parametrize("module", MODULES)
def test_names_and_parameters(module):
    theirs = importlib.import_module(f"torch.fx.{module}")
    ours = importlib.import_module(f"cfx.{module}")
    wrong = []
    for name, value in vars(theirs).items():
        if name.startswith("_") or getattr(value, "__module__", None) != theirs.__name__:
            continue
        for path, part in parts_of(value, name):
            found = ours
            for step in path.split("."):
                found = getattr(found, step, None)
            expected, actual = parameters(part), parameters(found) if found else None
            if found is None:
                wrong.append(f"{path} is missing")
            elif expected and actual is not None and actual[: len(expected)] != expected:
                wrong.append(f"{path}{actual}, torch.fx has {expected}")
    assert [text for text in wrong if f"{module}.{text.split()[0]}" not in MISSING] == []
