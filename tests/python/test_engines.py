"""bench/infer.py and cfx bench: what their tables say, and how they talk with their workers."""
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from cfx.__main__ import main
from cfx._bench import turns

BENCH = Path(__file__).resolve().parents[2] / "bench"
RANDOM = "--random=input=2x784"


@pytest.fixture(scope="module")
def bench():
    """The script and its parts."""
    sys.path.insert(0, str(BENCH))
    try:
        import infer
        from engines import files, models, report
    finally:
        sys.path.remove(str(BENCH))
    return SimpleNamespace(infer=infer, files=files, models=models, report=report)


def engine(seconds):
    return {"time": seconds, "spread": 0.123, "rounds": [seconds], "ready": 123.4, "start": 234.5,
            "memory": 12345e6, "far": 1e-6, "how": "somehow"}


def results(bench, models, times):
    cells = [{"model": model, "batch": batch, "threads": threads,
              "facts": {"flops": 2e9, "onnx": "cfx"},
              "engines": {name: engine(t * batch / threads) if t else {"missing": "not there"}
                          for name, t in times.items()}}
             for model in models for batch in (1, 8) for threads in (1, 2)]
    return {"peaks": {"1": 100.0, "2": 200.0}, "rounds": 7, "cells": cells}


def rows(text, begin):
    """The cells of the table after the line that begins so."""
    part = text[text.index(begin):].split("\n\n")[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()[2:]]


def test_tables(bench):
    times = {"eager": 0.4, "ORT": 0.1, "cfx": 0.2, "oneDNN": None}
    found = results(bench, ["mlp", "bert"], times)
    text = bench.report.report(found, bench.models.TITLES)
    first = rows(text, "1 thread, batch 1")
    assert first[0] == ["MLP", "400 ±12%", "100 ±12%", "200 ±12%", "-"]
    assert rows(text, "The time of the best other")[1] == ["BERT-base"] + ["0.50x ORT"] * 4
    means = rows(text, "Geometric means")
    assert means[0] == ["1 thread, batch 1", "0.25x", "1.00x", "0.50x", "-"]
    # 2e9 operations in 0.1 s of 100 GFLOP/s: a fifth; cfx takes twice as long
    assert rows(text, "Shares of the machine's peak")[0][1] == "20%, 10%"
    assert "- MLP, BERT-base: oneDNN missing: not there" in text


def test_the_best_of_ours_counts(bench):
    found = results(bench, ["mlp"], {"ORT": 0.1, "cfx": 0.2, "oneDNN": 0.05})
    text = bench.report.report(found, bench.models.TITLES)
    assert rows(text, "The time of the best other")[0][1] == "2.00x ORT"


def test_rows_fit(bench):
    times = dict.fromkeys(bench.infer.ENGINES, 9.5)
    text = bench.report.report(results(bench, bench.models.TITLES, times), bench.models.TITLES)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) > 8 * len(bench.models.TITLES)
    assert max(map(len, lines)) <= 100


def test_page_has_a_place(bench):
    page = bench.infer.PAGE.read_text()
    new = bench.report.replaced(page, "new tables")
    assert "\n\nnew tables\n\n<!-- end of engines -->" in new
    assert bench.report.replaced(new, "new tables") == new


@pytest.fixture(scope="module")
def small(bench, tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines")
    bench.files.write("mlp", 2, folder)
    return folder


def worker_of(bench, name, folder):
    setting = turns.Setting(threads=1, rounds=1, seconds=0, least=1, paths=(str(BENCH),))
    return turns.start_worker(name, folder, setting)


@pytest.mark.parametrize("name", ["eager", "ORT", "cfx", "cfx file"])
def test_worker(bench, small, name):
    worker, problem = worker_of(bench, name, small)
    assert not problem
    try:
        assert worker.about["far"] < 1e-5 and worker.about["start"] > worker.about["ready"]
        found = worker.tell(do="run", seconds=0, least=3)
        assert len(found["times"]) == 3 and min(found["times"]) > 0
    finally:
        worker.end()


def test_wrong_results_are_noticed(bench, small, tmp_path):
    for name in ("inputs.npz", "model.cfx"):
        (tmp_path / name).write_bytes((small / name).read_bytes())
    with numpy.load(small / "expected.npz") as file:
        wrong = file["a0"] * 1.001
    numpy.savez(tmp_path / "expected.npz", a0=wrong)
    worker, problem = worker_of(bench, "cfx file", tmp_path)
    assert worker is None and "results differ by" in problem["failed"]
    numpy.savez(tmp_path / "expected.npz", a0=wrong[:1])
    worker, problem = worker_of(bench, "cfx file", tmp_path)
    assert worker is None and "shapes" in problem["failed"]


def test_what_fails_is_said(bench, tmp_path):
    worker, problem = worker_of(bench, "cfx file", tmp_path)  # there are no files
    assert worker is None and problem["failed"]


# ---- python -m cfx bench ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(small, tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "mlp.cfx"
    path.write_bytes((small / "model.cfx").read_bytes())
    return path


def bench_verb(capfd, *words):
    status = main(["bench", *map(str, words)])
    shown = capfd.readouterr()
    return status, shown.out, shown.err


def test_bench_against_engines(file, capfd):
    status, out, err = bench_verb(capfd, file, RANDOM, "--against", "onnxruntime,torch",
                                  "--threads", "1", "--rounds", "2", "--seconds", "0")
    assert status == 0, err
    lines = out.splitlines()
    assert lines[0] == f"{file}, threads: 1"
    assert [line.split()[0] for line in lines[2:5]] == ["cfx", "onnxruntime", "torch"]
    assert all(line.split()[-1].endswith("x") for line in lines[3:5])
    assert max(map(len, lines[1:5])) <= 80 and "ONNX Runtime" in lines[5]
    assert "[1/1] threads: 1; cfx onnxruntime torch ..\n" in err


def test_bench_as_json(file, capfd):
    status, out, err = bench_verb(capfd, "--against", "openvino", "--rounds", "1", "--seconds", "0",
                                  "--threads", "1", "--json", file, "--random", RANDOM[9:])
    found = json.loads(out)
    assert status == 0 and found["rows"][0]["engines"]["cfx"]["time"] > 0
    assert {"missing", "time"} & set(found["rows"][0]["engines"]["openvino"])


def test_bench_names_what_is_wrong(file, tmp_path, capfd):
    status, out, err = bench_verb(capfd, file, RANDOM, "--against", "torch", "--rounds", "0")
    assert status == 2 and "need numbers from 1 on" in err
    status, out, err = bench_verb(capfd, "graph.ir", "--against", "torch")
    assert status == 1 and "cfx pack" in err and out == ""
    status, out, err = bench_verb(capfd, tmp_path / "no.cfx", "--against", "torch")
    assert status == 3 and "no.cfx" in err
    status, out, err = bench_verb(capfd, file, "--against", "torch")
    assert status == 1 and "missing" in err
    with pytest.raises(SystemExit):
        main(["bench", str(file), "--against", "tourch"])
    assert "there is no engine 'tourch'" in capfd.readouterr().err
