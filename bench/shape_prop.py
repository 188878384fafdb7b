"""What ShapeProp costs beside the model's own run, cfx and torch.fx in turns.

The own cost is the time of `propagate` less that of calling the GraphModule's generated code, both
in CPU time and the best of many rounds: what is left is walking the graph and describing values.
"""
import time

import torch
import torch.fx
from torch.fx.passes import shape_prop as theirs

import cfx
from cfx.passes import shape_prop as ours

ROUNDS = 40


def chain(x):
    for _ in range(1000):
        x = torch.relu(x)
        x = x + 1
    return x


def seconds(call, *args):
    start = time.process_time()
    call(*args)
    return time.process_time() - start


def main():
    torch.set_num_threads(1)
    x = torch.ones(2, 3)
    both = {
        "cfx": (cfx.symbolic_trace(chain), ours),
        "torch.fx": (torch.fx.symbolic_trace(chain), theirs),
    }
    plain = dict.fromkeys(both, 1e9)
    shape = dict.fromkeys(both, 1e9)
    with torch.no_grad():
        for _ in range(ROUNDS):
            for name, (gm, library) in both.items():
                plain[name] = min(plain[name], seconds(gm, x))
                shape[name] = min(shape[name], seconds(library.ShapeProp(gm).propagate, x))
    print(f"{'':10} {'run':>8} {'ShapeProp':>10} {'own cost':>9}   us per node")
    own = {}
    for name, (gm, _) in both.items():
        n = len(gm.graph.nodes) / 1e6
        own[name] = (shape[name] - plain[name]) / n
        print(f"{name:10} {plain[name] / n:8.2f} {shape[name] / n:10.2f} {own[name]:9.2f}")
    print(f"{own['torch.fx'] / own['cfx']:.1f}x less")


if __name__ == "__main__":
    main()
