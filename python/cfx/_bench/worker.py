"""One engine with one model, in a process of its own, told by lines of JSON what to do.

    python worker.py ENGINE FOLDER THREADS

The folder has what engines read:

    model.cfx     for cfx, and for PyTorch if there is no model.pt: the module
    model.onnx    for ONNX Runtime and OpenVINO
    inputs.npz    the inputs; expected.npz: the results

The worker loads the model, runs it once and says so:

    {"ready": seconds from the file to something that can be called, "first": of the first run,
     "begun", "ended": when that was, by a clock that all processes have in common,
     "cpu": the processor time that it has taken until then,
     "before": bytes in memory before it loaded, "after": after that run, "how": what was used}

or {"missing": why} if the engine cannot be had, {"failed": why} if it cannot run the model. Then
each line that it reads makes it work and answer with a line:

    {"do": "check"}                          -> {"far": ..., "largest": ...}
    {"do": "run", "seconds": s, "least": n}  -> {"times": [...], "resident": ...}

A run for timing begins with one that is not counted: it wakes the threads and fills the caches.

Until the first run is over, nothing is imported but what the engine needs.
"""
import os
import sys
import time


def resident():
    with open("/proc/self/smaps_rollup") as file:
        return int(file.read().partition("Rss:")[2].split()[0]) << 10


def given(folder):
    import numpy

    with numpy.load(f"{folder}/inputs.npz") as file:
        return [file[name] for name in file.files]


# ---- engines ------------------------------------------------------------------------------------
# A function imports what it needs, and returns a function that loads the model; that one returns
# (run, how): run() gives the results as a list of arrays, `how` says what is used.


def module_of(folder):
    if os.path.exists(f"{folder}/model.pt"):
        import torch

        return torch.load(f"{folder}/model.pt", weights_only=False)
    import cfx

    return cfx.load(f"{folder}/model.cfx")


def with_torch(folder, threads, prepare):
    import torch

    torch.set_num_threads(threads)
    inputs = [torch.from_numpy(x) for x in given(folder)]

    def load():
        model = module_of(folder)
        call, how = prepare(torch, model, inputs)

        def run():
            with torch.no_grad():
                return call(*inputs)

        return run, how

    return load


def by_eager(folder, threads):
    return with_torch(folder, threads,
                      lambda torch, model, inputs: (model, f"PyTorch {torch.__version__}"))


def by_compile(folder, threads, frozen=False):
    def prepare(torch, model, inputs):
        import torch._inductor.config

        torch._inductor.config.freezing = frozen
        return torch.compile(model), f"PyTorch {torch.__version__}"

    return with_torch(folder, threads, prepare)


def by_frozen(folder, threads):
    return by_compile(folder, threads, True)


def by_onnxruntime(folder, threads):
    import onnxruntime

    values = given(folder)

    def load():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options,
                                               providers=["CPUExecutionProvider"])
        feed = dict(zip((i.name for i in session.get_inputs()), values))
        return lambda: session.run(None, feed), f"ONNX Runtime {onnxruntime.__version__}"

    return load


def by_openvino(folder, threads):
    import openvino

    values = given(folder)

    def load():
        core = openvino.Core()
        model = core.read_model(f"{folder}/model.onnx")
        for port, value in zip(model.inputs, values):
            port.get_node().set_partial_shape(openvino.PartialShape(list(value.shape)))
        model.validate_nodes_and_infer_types()
        made = core.compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1})
        version = openvino.__version__.split("-")[0]
        return lambda: list(made(values).values()), f"OpenVINO {version}"

    return load


def by_cfx(folder, threads, backend="builtin"):
    import cfx

    def prepare(torch, model, inputs):
        with torch.no_grad():
            return (cfx.compile(model, *inputs, threads=threads, backend=backend),
                    f"cfx.compile, {backend}")

    return with_torch(folder, threads, prepare)


def by_onednn(folder, threads):
    from cfx._glue import places

    if not places.onednn():
        raise ImportError("oneDNN is not installed")
    return by_cfx(folder, threads, "onednn")


def by_cfx_file(folder, threads):
    """Without torch and NumPy: what a process that only runs a model needs."""
    import cfx.runtime

    values = cfx.load_tensors(f"{folder}/inputs.npz").values()

    def load():
        run = cfx.runtime.load(f"{folder}/model.cfx", threads=threads)
        return lambda: run(*values), "cfx.runtime.load"

    return load


ENGINES = {"eager": by_eager, "compile": by_compile, "frozen": by_frozen, "ORT": by_onnxruntime,
           "OpenVINO": by_openvino, "cfx": by_cfx, "oneDNN": by_onednn,
           "cfx file": by_cfx_file}  # fmt: skip

# ---- the conversation ---------------------------------------------------------------------------


def flat(result):
    if isinstance(result, dict):
        return [x for value in result.values() for x in flat(value)]
    if isinstance(result, (list, tuple)):
        return [x for value in result for x in flat(value)]
    return [result]


def check(run, folder):
    """The largest distance from eager PyTorch, relative to the largest magnitude of each result."""
    import numpy

    found = [numpy.asarray(x) for x in flat(run())]
    with numpy.load(f"{folder}/expected.npz") as file:
        wanted = [file[name] for name in file.files]
    if [x.shape for x in found] != [x.shape for x in wanted]:
        return {"failed": f"results have shapes {[x.shape for x in found]}, "
                          f"expected {[x.shape for x in wanted]}"}
    far = [float(abs(a - b).max() / max(abs(b).max(), 1e-30)) for a, b in zip(found, wanted)]
    return {"far": max(far) if numpy.isfinite(far).all() else float("inf")}


def run_for(run, seconds, least):
    run()
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return {"times": times, "resident": resident()}


def begin(load):
    before, start = resident(), time.perf_counter()
    run, how = load()
    begun, cpu = time.perf_counter(), time.process_time()
    run()
    ended = time.perf_counter()
    return run, {"ready": begun - start, "first": ended - begun, "begun": begun, "cpu": cpu,
                 "ended": ended, "before": before, "after": resident(), "how": how}


def main():
    engine, folder, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what engines print is not an answer

    def answer(value):
        import json

        print(json.dumps(value), file=answers)

    try:
        load = ENGINES[engine](folder, threads)
    except ImportError as error:
        return answer({"missing": str(error)})
    try:
        run, about = begin(load)
    except Exception as error:
        return answer({"failed": f"{type(error).__name__}: {error}".splitlines()[0]})
    answer(about)
    import json

    for line in sys.stdin:
        told = json.loads(line)
        if told["do"] == "check":
            answer(check(run, folder))
        else:
            answer(run_for(run, told["seconds"], told["least"]))


if __name__ == "__main__":
    main()
