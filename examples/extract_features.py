"""Get the values in the middle of a model: a module that returns the nodes of your choice.

    PYTHONPATH=python python examples/extract_features.py
"""
import copy

import torch
from torch import nn

import cfx as fx


def extractor(module: nn.Module, wanted: dict[str, str]) -> fx.GraphModule:
    """A module that returns {key: value} for {name of a node or path of a module: key}. What is not
    needed for that is neither computed nor kept. A module that is called several times stands for
    its last call."""
    traced = fx.symbolic_trace(module)
    graph = traced.graph
    places = {n.target: n for n in graph.nodes if n.op == "call_module"}
    places.update({n.name: n for n in graph.nodes})
    unknown = [name for name in wanted if name not in places]
    if unknown:
        raise KeyError(f"no node or module {unknown}; there are {sorted(places)}")
    output = graph.output_node()
    with graph.inserting_before(output):
        graph.output({key: places[name] for name, key in wanted.items()})
    graph.erase_node(output)
    graph.eliminate_dead_code()
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x)) + x
        return self.head(x)


if __name__ == "__main__":
    torch.manual_seed(0)
    model, x = Encoder(), torch.randn(2, 8)
    # "blocks.0" is a module, "relu_2" the third call of torch.relu.
    features = extractor(model, {"blocks.0": "low", "relu_2": "high"})
    for key, value in features(x).items():
        print(f"{key}: {tuple(value.shape)}")
    print("Parameters left:", sorted({n.split(".weight")[0] for n in features.state_dict()
                                      if n.endswith("weight")}))
    assert torch.equal(features(x)["low"], model.blocks[0](x))
    assert copy.deepcopy(features)(x).keys() == {"low", "high"}
    try:
        extractor(model, {"block.0": "low"})
    except KeyError as error:
        print(str(error)[:60])
