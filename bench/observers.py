"""Observers: cfx.quantize's beside torch.ao.quantization's, in one process, alternating.

    python bench/observers.py [--rounds 25] [--threads 1]

A row is one call of both on the same tensor. With one thread, times are those that the processor
spent on the thread, so that other processes on the machine count less; otherwise those of a clock.
They are the least of all rounds. The ranges and scales are compared in the same run.
"""
import argparse
import time
import warnings

import torch
import torch.ao.quantization as ao

import cfx.quantize as ours

SHORT = 0.02  # seconds for which a short call is repeated


def least(calls, rounds):
    """The least time of each call, in seconds; they take turns."""
    now = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            n, begin = 0, now()
            while n == 0 or now() - begin < SHORT:
                call()
                n += 1
            best[i] = min(best[i], (now() - begin) / n)
    return best


def check(mine, theirs):
    for a, b in zip(mine.calculate_qparams(), theirs.calculate_qparams(), strict=True):
        assert torch.equal(a, b), (a, b)


def inputs():
    """What: (name of the observer, arguments, tensor)."""
    image = torch.randn(8, 64, 56, 56).relu()
    rows = torch.randn(2048, 1024)
    weight = torch.randn(512, 512, 3, 3)
    channel = {"dtype": torch.qint8, "qscheme": torch.per_channel_symmetric}
    return {
        "an activation of 8 x 64 x 56 x 56": ("MinMaxObserver", {}, image),
        "its moving average": ("MovingAverageMinMaxObserver", {}, image),
        "the same, channels last": ("MinMaxObserver", {},
                                    image.to(memory_format=torch.channels_last)),
        "the same, transposed": ("MinMaxObserver", {}, image.transpose(0, 1)),
        "a small one of 1 x 256": ("MinMaxObserver", {}, torch.randn(1, 256)),
        "channels of weights, 512 x 512 x 3 x 3": ("PerChannelMinMaxObserver", channel, weight),
        "channels of 2048 x 1024, the last dimension": (
            "PerChannelMinMaxObserver", {**channel, "ch_axis": 1}, rows),
        "histogram of the activation, range known": ("HistogramObserver", {}, image),
        "histogram of 2048 x 1024": ("HistogramObserver", {}, rows),
    }  # fmt: skip


def wider(observer):
    """A histogram whose range grows in each call."""
    x = torch.randn(4096)
    state = {"factor": 1.0}

    def call():
        state["factor"] *= 1.0001
        observer(x * state["factor"])
    return call


def row(what, times):
    theirs, mine = times
    print(f"| {what} | {theirs * 1e3:.3g} | {mine * 1e3:.3g} | {theirs / mine:.1f}x |")


def search_rows(rounds):
    for what, x in {"normal": torch.randn(1_000_000), "after a ReLU": torch.randn(1_000_000).relu(),
                    "cubed normal": torch.randn(1_000_000) ** 3}.items():  # fmt: skip
        mine, theirs = ours.HistogramObserver(), ao.HistogramObserver()
        mine(x), theirs(x)
        row(f"search for the scale, {what}",
            least([theirs.calculate_qparams, mine.calculate_qparams], rounds))
        check(mine, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1, help="torch's; cfx's observers use one")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    print("| milliseconds | torch.ao | cfx | ratio |\n|---|---|---|---|")
    for what, (name, kwargs, x) in inputs().items():
        mine, theirs = getattr(ours, name)(**kwargs), getattr(ao, name)(**kwargs)
        mine(x), theirs(x)
        times = least([lambda o=theirs, x=x: o(x), lambda o=mine, x=x: o(x)], options.rounds)
        row(what, times)
        if name != "MovingAverageMinMaxObserver":
            assert torch.equal(mine.min_val, theirs.min_val)
    mine, theirs = ours.HistogramObserver(), ao.HistogramObserver()
    row("histogram whose range grows, 4096 elements",
        least([wider(theirs), wider(mine)], options.rounds))
    search_rows(options.rounds)


if __name__ == "__main__":
    main()
