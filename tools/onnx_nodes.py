#!/usr/bin/env python3
"""onnx_nodes.py - runs the tests of the ONNX standard itself in cfx and in ONNX Runtime.

usage: onnx_nodes.py [--update] [--only WORD] [--reasons] [--no-ort]

The `onnx` package brings a model, inputs and expected results for every operator
(onnx.backend.test). Each case is read and run by cfx in C and by ONNX Runtime, in the same run, and
compared as the package's own runner does. --update writes the figures and the list of failures to
docs/onnx.md, and the names of the failures to tests/golden/onnx_nodes.txt, which a test compares;
--only runs the cases whose name has the word; --reasons prints why cases fail.

Aside stand cases that are not of the default domain (classical machine learning, training, preview
operators), and those with strings, sequences or optionals among their inputs or results.
"""
import argparse
import sys
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import numpy as np  # noqa: E402

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
KNOWN = ROOT / "tests" / "golden" / "onnx_nodes.txt"
BEGIN = "<!-- onnx_nodes: begin -->"
END = "<!-- onnx_nodes: end -->"


# ---- cases -------------------------------------------------------------------------------------


class Case:
    """One test of the standard: a model, and pairs of inputs and expected results."""

    def __init__(self, kind, case):
        import onnx

        self.kind = kind
        self.name = case.name
        self.rtol, self.atol = case.rtol, case.atol
        self._case = case
        self.model = case.model if case.model is not None else onnx.load(
            str(Path(case.model_dir) / "model.onnx"))
        self.bytes = self.model.SerializeToString()
        self.operators = [node.op_type for node in self.model.graph.node]

    def data(self):
        """(inputs, results) as arrays, in the order of the graph."""
        from onnx import TensorProto, numpy_helper

        if self._case.data_sets is not None:
            for sets in self._case.data_sets:
                yield tuple([numpy_helper.to_array(x) if isinstance(x, TensorProto) else x
                             for x in one] for one in sets)
            return
        for folder in sorted(Path(self._case.model_dir).glob("test_data_set_*")):
            sets = []
            for what in ("input", "output"):
                arrays = []
                for i in range(len(list(folder.glob(f"{what}_*.pb")))):
                    tensor = TensorProto()
                    tensor.ParseFromString((folder / f"{what}_{i}.pb").read_bytes())
                    arrays.append(numpy_helper.to_array(tensor))
                sets.append(arrays)
            yield tuple(sets)

    def aside(self):
        """Why the case is not counted; None if it is."""
        from onnx import TensorProto

        graph = self.model.graph
        domains = {node.domain for node in graph.node} - {"", "ai.onnx"}
        if domains:
            return f"domain {sorted(domains)[0]}"
        for value in (*graph.input, *graph.output):
            for kind in ("sequence", "optional", "map"):
                if value.type.HasField(f"{kind}_type"):
                    return kind
            if value.type.tensor_type.elem_type == TensorProto.STRING:
                return "string"
        return None


def load_cases(only=None):
    from onnx.backend.test.loader import load_model_tests

    cases = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            cases += [Case(kind, c) for c in load_model_tests(kind=kind)
                      if only is None or only in c.name]
    return cases


def operator_of(case, by_name):
    """The operator that a case is about: that of the case which it is an expansion of."""
    base = case.name.split("_expanded")[0]
    case = by_name.get(base, case)
    names = [name for name in case.operators if name != "Constant"]
    return names[0] if case.kind == "node" and names else case.kind


# ---- arrays ------------------------------------------------------------------------------------


def to_torch(array):
    """An array as a tensor: elements of fewer than 8 bits in wider types, as cfx has them."""
    import torch

    if isinstance(array, list):
        return [to_torch(item) for item in array]
    if array is None or (array.dtype == object and array.ndim == 0 and array.item() is None):
        return None  # an optional without a value
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    name = array.dtype.name
    if name in ("int4", "int2"):
        array = array.astype(np.int8)
    elif name in ("uint4", "uint2"):
        array = array.astype(np.uint8)
    elif name == "float4_e2m1fn":
        array = array.astype(np.float32)
    elif name == "bfloat16":
        return torch.from_numpy(array.view(np.uint16).copy()).view(torch.bfloat16)
    elif name.startswith("float8"):
        return torch.from_numpy(array.view(np.uint8).copy()).view(getattr(torch, name))
    return torch.from_numpy(array.copy())


def wide(array):
    """An array in a type that numpy compares, and the name of the type that cfx has for it."""
    name = array.dtype.name
    wider = {"int4": "int8", "int2": "int8", "uint4": "uint8", "uint2": "uint8",
             "float4_e2m1fn": "float32"}.get(name, name)
    if wider != name:
        return array.astype(wider), wider
    return (array.astype(np.float32), name) if array.dtype.kind == "V" or "float8" in name or \
        name == "bfloat16" else (array, name)


def from_torch(tensor):
    import torch

    if not isinstance(tensor, torch.Tensor):
        array = np.asarray(tensor)
        return array, array.dtype.name
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "bfloat16" or "float8" in name:
        tensor = tensor.to(torch.float32)
    return tensor.numpy(), name


def compare(case, expected, got):
    """Raises AssertionError as the runner of the standard does."""
    assert len(expected) == len(got), f"{len(got)} results, not {len(expected)}"
    for want, have in zip(expected, got):
        if isinstance(want, list):
            compare(case, want, have)
            continue
        want, want_type = wide(np.asarray(want))
        have, have_type = from_torch(have)
        assert want_type == have_type, f"{have_type}, not {want_type}"
        np.testing.assert_array_equal(want.shape, have.shape)
        np.testing.assert_allclose(want, have, rtol=case.rtol, atol=case.atol)


# ---- engines -----------------------------------------------------------------------------------


def reason_of(error):
    """Why a case fails, in a few words: numbers differ from run to run."""
    text = " ".join(str(error).split())
    if isinstance(error, AssertionError):
        return "another result" if "Not equal to tolerance" in text else text[:100]
    return text.split("; the first: ")[-1][:160]


def run_cfx(case):
    """None if the case passes; else why not."""
    from cfx import runtime

    try:
        model = runtime.load(case.bytes, threads=1)
        for inputs, outputs in case.data():
            got = model(*[to_torch(array) for array in inputs])
            compare(case, outputs, got if len(case.model.graph.output) > 1 else [got])
    except Exception as error:  # noqa: BLE001: whatever it is, the case fails
        return reason_of(error)
    return None


def is_plain(array):
    """Whether ONNX Runtime's Python package takes and gives arrays of this type."""
    return array.dtype.name in {"bool", "float16", "float32", "float64", "complex64", "complex128",
                                *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))}


def for_ort(case, inputs, outputs):
    """The model as ONNX Runtime can be given it: inputs of types that its Python package does not
    take are initializers, and a Cast to float32 follows results that it does not give."""
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    names = [value.name for value in graph.input]
    feeds = {}
    for name, array in zip(names, inputs):
        if is_plain(array):
            feeds[name] = array
            continue
        graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        del graph.input[[value.name for value in graph.input].index(name)]
    for i, array in enumerate(outputs):
        if not is_plain(array):
            name = graph.output[i].name
            graph.node.append(onnx.helper.make_node("Cast", [name], [f"{name}_float"],
                                                    to=onnx.TensorProto.FLOAT))
            graph.output[i].CopyFrom(onnx.helper.make_tensor_value_info(
                f"{name}_float", onnx.TensorProto.FLOAT, None))
    return model.SerializeToString(), feeds


def run_ort(case):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    try:
        for inputs, outputs in case.data():
            inputs = [np.asarray(array) for array in inputs]
            outputs = [np.asarray(array) for array in outputs]
            model, feeds = for_ort(case, inputs, outputs)
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            got = session.run(None, feeds)
            assert len(got) == len(outputs)
            for want, have in zip(outputs, got):
                want = want if is_plain(want) else want.astype(np.float32)
                assert want.dtype == have.dtype, f"{have.dtype}, not {want.dtype}"
                np.testing.assert_array_equal(want.shape, have.shape)
                np.testing.assert_allclose(want, have, rtol=case.rtol, atol=case.atol)
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    return None


# ---- figures -----------------------------------------------------------------------------------


def table(rows, failures, aside, versions):
    """The part of docs/onnx.md that --update writes."""
    total = [sum(row[i] for row in rows.values()) for i in range(3)]
    lines = [BEGIN, "",
             f"Of {total[0]:,} cases of the default domain, cfx passes {total[1]:,} and ONNX "
             f"Runtime {versions['onnxruntime']} passes {total[2]:,} (`onnx` {versions['onnx']}; "
             "`tools/onnx_nodes.py --update`). "
             "Aside stand " + ", ".join(f"{n} ({why})" for why, n in sorted(aside.items())) + ".",
             "", "| operator | cases | cfx | ONNX Runtime |", "|---|---:|---:|---:|"]
    lines += [f"| {name} | {a} | {b} | {c} |" for name, (a, b, c) in sorted(rows.items())]
    lines += [f"| **all** | **{total[0]}** | **{total[1]}** | **{total[2]}** |", "",
              f"The {len(failures)} cases that cfx does not pass:" if failures
              else "cfx passes them all.", ""]
    lines += [f"- `{name}`: {why}" for name, why in sorted(failures.items())]
    return "\n".join([*lines, "", END])


def known_failures():
    """The cases that cfx is known not to pass."""
    return {line.split(":")[0] for line in KNOWN.read_text().splitlines() if line[:1] != "#"}


def update(rows, failures, aside):
    import onnx
    import onnxruntime

    versions = {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}
    page = ROOT / "docs" / "onnx.md"
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(before + table(rows, failures, aside, versions) + rest.partition(END)[2])
    KNOWN.write_text("# Cases of the ONNX standard that cfx does not pass, and why "
                     "(tools/onnx_nodes.py --update).\n" + "".join(
                         f"{name}: {why}\n" for name, why in sorted(failures.items())))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--no-ort", action="store_true")
    options = parser.parse_args()
    cases = load_cases(options.only)
    by_name = {case.name: case for case in cases if case.kind == "node"}
    rows = defaultdict(lambda: [0, 0, 0])
    failures, aside = {}, Counter()
    times = [0.0, 0.0]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in cases:
            why = case.aside()
            if why:
                aside[why] += 1
                continue
            row = rows[operator_of(case, by_name)]
            start = time.perf_counter()
            reason = run_cfx(case)
            middle = time.perf_counter()
            other = "not run" if options.no_ort else run_ort(case)
            times[0] += middle - start
            times[1] += time.perf_counter() - middle
            row[0] += 1
            row[1] += reason is None
            row[2] += other is None
            if reason is not None:
                failures[case.name] = reason
                if options.reasons:
                    print(f"{case.name}: {reason}")
    total = [sum(row[i] for row in rows.values()) for i in range(3)]
    print(f"onnx_nodes: {total[0]} cases, cfx {total[1]} ({times[0]:.1f} s), "
          f"ONNX Runtime {total[2]} ({times[1]:.1f} s); aside: {dict(aside)}")
    if options.update:
        update(rows, failures, aside)


if __name__ == "__main__":
    main()
