"""Every captured program in a file: the same graphs and results, and the same bytes when it is
saved again; also in a process that cannot import the program."""
import contextlib
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import cfx
import pytest

torch = pytest.importorskip("torch")

import capture_programs  # noqa: E402
import programs  # noqa: E402
from cfx._glue.structure import Flattened  # noqa: E402
from cfx.package import PackageError  # noqa: E402

# What a file cannot hold: words of the error.
NOT_SAVED = {
    "hooks_on_tensor": "without a qualified name",
    "jit_inside": "a RecursiveScriptModule, as a whole",
    "scripted_child": "a RecursiveScriptModule, as a whole",
    "scripted_counter": "a RecursiveScriptModule, as a whole",
    "traced_child": "a TopLevelTracedModule, as a whole",
    "numpy_scalar": "is a float64",
    "numpy_argument": "is a ndarray",
    "numpy_int": "is a int64",
    "ReplacesLayer": "is a Tanh",
    "flags_choose": "is a Bits",
}


@pytest.fixture(autouse=True)
def alone(one_thread):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    reset()


def reset():
    """Some programs leave modes switched on purpose."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def captured(program, made):
    """The program captured for all its calls; None if that is refused."""
    first = next(call for call in program.calls if call.raises is None).copy()
    if first.mode is not None and isinstance(made, torch.nn.Module):
        made.train(first.mode)
    try:
        with first.within() if first.within else contextlib.nullcontext():
            module = cfx.capture(made, *first.args, recapture=True, **first.kwargs)
    except Exception:
        return None
    programs.run(module, program.calls)
    reset()
    for graph in (module, *module._others):  # files cannot capture again, so this one must not
        graph.__dict__["_recaptures"] = False
    module._program.program = None
    return module


def unwrapped(code):
    """Source without the calls of wrap in front of it: node.meta, which has them, is not saved."""
    return [line for line in code.splitlines() if line and not line.startswith("cfx._symbolic")]


def check(program, made, folder):
    module = captured(program, made)
    if module is None:
        assert program.captured.startswith("refused") or program.name == "asked_by_builtins"
        return
    if program.name in NOT_SAVED:
        with pytest.raises(PackageError, match=NOT_SAVED[program.name]):
            cfx.save(module, folder / "model.cfx")
        return
    cfx.save(module, folder / "model.cfx")
    back = cfx.load(folder / "model.cfx", allow=["programs", "capture_programs"], verify=True)
    assert len(module.graphs) == len(back.graphs)
    assert all(map(cfx.equal, module.graphs, back.graphs))
    assert unwrapped(back.code) == unwrapped(module.code) and back.guards == module.guards
    cfx.save(back, folder / "again.cfx")
    assert (folder / "again.cfx").read_bytes() == (folder / "model.cfx").read_bytes()
    outcomes = []
    for one in (module, back):
        capture_programs.seed()
        outcomes.append(programs.run(one, program.calls))
        reset()
    for a, b in zip(*outcomes):
        assert not programs.disagreement(a, b)


SCRIPTS = programs.load_all()
CAPTURES = [p for p in capture_programs.load_all() if not p.defect]


@pytest.mark.parametrize("program", SCRIPTS, ids=[f"{p.topic}.{p.name}" for p in SCRIPTS])
def test_programs(program, tmp_path):
    check(program, program.make(), tmp_path)


@pytest.mark.parametrize("program", CAPTURES, ids=[f"{p.topic}.{p.name}" for p in CAPTURES])
def test_capture_programs(program, tmp_path):
    seen = capture_programs.world(program)
    try:
        check(seen.program, seen.made, tmp_path)
    finally:
        capture_programs.forget(seen)


# Its graph has transposed weights as constants, which a file keeps as they are; saving says so.
NOT_TRAINED = "MetaStep"

# ---- training ----------------------------------------------------------------------------------


def floats(value):
    """The tensors of a result that have a gradient."""
    taken = Flattened()
    taken.tree(value, ("",))
    return [leaf for leaf in taken.leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def steps(module, call, count=2):
    """The parameters after some steps of an optimizer; None if the program cannot be trained."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    for _ in range(count):
        given = call.copy()
        torch.manual_seed(1)
        try:
            loss = sum(leaf.abs().sum() for leaf in floats(module(*given.args, **given.kwargs)))
            optimizer.zero_grad()
            loss.backward()
        except Exception:
            return None
        optimizer.step()
    return {name: p.detach() for name, p in module.named_parameters()}


def test_training_goes_on_as_it_would(tmp_path):
    """Two steps of an optimizer after a file, and without: the same weights, bit by bit."""
    count = 0
    for program in SCRIPTS + CAPTURES:
        seen = capture_programs.world(program) if program in CAPTURES else None
        made = seen.made if seen else program.make()
        call = next(call for call in program.calls if call.raises is None)
        fits = isinstance(made, torch.nn.Module) and program.name not in NOT_SAVED
        module = captured(program, made) if fits else None
        if module is not None and next(module.parameters(), None) is not None:
            cfx.save(module, tmp_path / "model.cfx")
            back = cfx.load(tmp_path / "model.cfx", allow=["programs", "capture_programs"])
            before = {name: p.detach().clone() for name, p in module.named_parameters()}
            wanted, found = steps(module, call), steps(back, call)
            reset()
            if program.name == NOT_TRAINED:
                with pytest.warns(UserWarning, match=r"_constant_\d, .* computed from weights"):
                    cfx.save(module, tmp_path / "model.cfx")
                wanted = found = None
            assert (wanted is None) == (found is None), program.name
            if wanted is not None:
                assert wanted.keys() == found.keys()
                assert all(torch.equal(wanted[name], found[name]) for name in wanted), program.name
                count += any(not torch.equal(before[name], wanted[name]) for name in wanted)
        if seen:
            capture_programs.forget(seen)
    assert count > 60, count


# Programs that call functions, operators or classes of their own: these have to be allowed.
CALLS_YOURS = {"straight_through", "custom_mutation", "composite_operator", "in_place_function",
               "list_operator", "gives_dicts_of_its_own", "gives_named_tuple"}  # fmt: skip

# ---- elsewhere ---------------------------------------------------------------------------------

ELSEWHERE = """
    import pathlib, sys, warnings
    import torch, cfx
    from cfx._glue.structure import Flattened
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)

    def leaves(value):
        taken = Flattened()
        taken.tree(value, ("",))
        return taken.leaves

    def same(a, b):
        if isinstance(a, torch.Tensor):
            return a.shape == b.shape and a.dtype == b.dtype and torch.equal(
                a.nan_to_num(7) if a.is_floating_point() else a,
                b.nan_to_num(7) if b.is_floating_point() else b)
        return str(a) == str(b)

    import cfx.capturing
    count, named = 0, []
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.cfx")):
        args, kwargs, wanted = torch.load(file.with_suffix(".pt"))
        module = cfx.load(file)
        torch.manual_seed(1)  # and what programs leave switched is put back
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        try:
            found = leaves(module(*args, **kwargs))
        except (NameError, AttributeError) as error:
            named.append(file.stem.partition("-")[2])
            assert "is only a name" in str(error) or "_OpNamespace" in str(error), error
            continue
        if len(found) != len(wanted) or not all(map(same, wanted, found)):
            print(file.stem, wanted, found)
        count += 1
    print(count, "equal;", *named, [m for m in sys.modules if "programs" in m])
"""


def plain(value):
    """Whether torch.load makes a value without code of anybody's."""
    if type(value) in (list, tuple):
        return all(map(plain, value))
    if type(value) is dict:
        return all(plain(part) for pair in value.items() for part in pair)
    return type(value) in (int, float, str, bool, type(None), torch.Tensor)


def test_where_the_program_cannot_be_imported(tmp_path):
    count = 0
    for program in SCRIPTS[::3] + CAPTURES[::3]:
        seen = capture_programs.world(program) if program in CAPTURES else None
        made = seen.made if seen else program.make()
        first = next(call for call in program.calls if call.raises is None).copy()
        fits = plain(first.args) and plain(first.kwargs) and first.within is None
        module = captured(program, made) if fits and program.name not in NOT_SAVED else None
        file = tmp_path / f"{program.topic}-{program.name}.cfx"
        if module is not None:
            cfx.save(module, file)
        if seen:
            capture_programs.forget(seen)
        if module is None:
            continue
        args, kwargs = first.copy().args, first.copy().kwargs
        taken = Flattened()
        try:
            torch.manual_seed(1)
            taken.tree(module(*args, **kwargs), ("",))
        except Exception:  # the state has moved on
            file.unlink()
            continue
        finally:
            reset()
        if not all(plain(leaf) for leaf in taken.leaves):
            file.unlink()
            continue
        kept = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in taken.leaves]
        torch.save((first.args, first.kwargs, kept), file.with_suffix(".pt"))
        count += 1
    assert count > 150
    script = tmp_path / "elsewhere.py"
    script.write_text(textwrap.dedent(ELSEWHERE))
    package = str(Path(cfx.__file__).parents[1])
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True,
                          cwd=tmp_path, env={"PYTHONPATH": package, "PATH": "/usr/bin:/bin"})
    named = done.stdout.partition("; ")[2].split()[:-1]  # they call functions of the program
    assert done.stdout.startswith(f"{count - len(named)} equal;"), (
        done.stdout + done.stderr)[-4000:]
    assert done.stdout.endswith("[]\n") and set(named) <= CALLS_YOURS, named
