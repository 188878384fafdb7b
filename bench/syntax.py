"""Seconds to parse the standard library: ast.parse and cfx's parser in turns, medians, the ratio.

    python bench/syntax.py [--repeats 5]

Both parse all files that both accept, in one process; the clock is that of the process, so that
other programs on the machine count less. ast.parse makes Python objects, cfx its own tree, which it
frees.
"""
import argparse
import ast
import gc
import os
import statistics
import time
import warnings
from pathlib import Path

from cfx import _core


def accepted(parse, source):
    try:
        parse(source)
    except (SyntaxError, ValueError, NotImplementedError, RecursionError):
        return False
    return True


def by_cfx(source):
    return _core._syntax_dump(source, dump=False)


def sources():
    files = Path(os.__file__).parent.rglob("*.py")
    texts = [f.read_bytes() for f in sorted(files) if "site-packages" not in f.parts]
    return [t for t in texts if accepted(by_cfx, t) and accepted(ast.parse, t)]


def seconds(parse, texts):
    gc.disable()
    start = time.process_time()
    for text in texts:
        parse(text)
    took = time.process_time() - start
    gc.enable()
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    texts = sources()
    times = {"ast.parse": [], "cfx": []}
    for _ in range(repeats):
        times["ast.parse"].append(seconds(ast.parse, texts))
        times["cfx"].append(seconds(by_cfx, texts))
    size = sum(map(len, texts)) / 1e6
    print(f"{len(texts)} files, {size:.1f} MB, medians of {repeats}")
    for name, took in times.items():
        median = statistics.median(took)
        print(f"  {name:<10} {median:7.3f} s   {size / median:6.1f} MB/s")
    ratio = statistics.median(times["ast.parse"]) / statistics.median(times["cfx"])
    print(f"  ratio      {ratio:7.1f}")


main()
