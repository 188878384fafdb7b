"""What a step of the interpreter costs: chains of operators on tensors of one element, run by a
lowered program, by PyTorch eagerly and by the GraphModule, in microseconds for each operator."""
import time

import torch

import cfx

LENGTH = 1000


def chain(step):
    def run(x, y):
        for _ in range(LENGTH):
            x = step(x, y)
        return x

    return run


STEPS = {
    "relu(x)": lambda x, y: torch.relu(x),
    "x + y": lambda x, y: x + y,
    "x.view(1)": lambda x, y: x.view(1),
    "cat([x, y])[1]": lambda x, y: torch.cat([x, y])[1:],
    "x.shape[0]": lambda x, y: x.view(x.shape[0]),
}


def seconds(function, *args):
    """The best of several runs."""
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        function(*args)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    x, y = torch.ones(1), torch.ones(1)
    print(f"{'operator':<18}{'lowered':>10}{'module':>10}{'eager':>10}   us for each step")
    for name, step in STEPS.items():
        run = chain(step)
        module = cfx.symbolic_trace(run)
        with torch.no_grad():
            times = [seconds(f, x, y) / LENGTH * 1e6 for f in (cfx.lower(module), module, run)]
        print(f"{name:<18}" + "".join(f"{t:>10.3f}" for t in times))


if __name__ == "__main__":
    main()
