"""cfx.interop.from_torch of TorchScript: modules, functions, files; what cannot be converted."""
import sys
import warnings
from pathlib import Path

import programs
import pytest
import torch
from torch import nn

import cfx
from cfx.interop import ScriptConversionError, from_torch, to_torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import zoo  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
TRACED = ["mlp", "resnet18", "mobilenet_v3", "vit_b_16", "swin_t", "bert", "gpt2", "t5", "lstm_lm"]
SCRIPTED = ["mlp", "resnet18", "convnext", "lstm_lm"]
TOPICS = ["arithmetic", "break_continue_return", "carried", "containers", "contexts", "data_keys",
          "loops_for", "loops_while"]  # fmt: skip
# Programs that TorchScript takes and runs rightly, and that cannot be converted.
REFUSED = {
    "list_grows_around_a_loop": "the loop changes a list or dict that something else may hold",
    "changes_one_of_two": "something else may hold",
    "changes_what_was_chosen": "something else may hold",
    "changes_one_of_two_dicts": "something else may hold",
    "changes_what_a_loop_left": "something else may hold",
    "changes_under_two_names": "something else may hold",
    "changes_the_only_one": "something else may hold",
    "with_autocast": "an object of the class __torch__.torch.amp.autocast_mode.autocast",
    "NamesParts": "an object of the class __torch__.torch.autograd.profiler.record_function",
}
ENDS = {"heads"}  # divides by zero, which ends the process when TorchScript runs it


@torch.no_grad()
def same(converted, model, inputs, in_c=True):
    torch.testing.assert_close(converted(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)
    if in_c:
        lowered = cfx.lower(converted)
        torch.testing.assert_close(lowered(*inputs), model(*inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", TRACED)
def test_traced_models(name):
    model, inputs = zoo.make(name, small=True)
    same(from_torch(torch.jit.trace(model, inputs, check_trace=False)), model, inputs)


@pytest.mark.parametrize("name", SCRIPTED)
def test_scripted_models(name):
    model, inputs = zoo.make(name, small=True)
    same(from_torch(torch.jit.script(model)), model, inputs)


def scripted(program):
    """TorchScript's form of a program, if it has one that does what the program does; and what the
    program does."""
    try:
        made = torch.jit.script(program.make())
    except Exception:  # of TorchScript there are many kinds
        return None, []
    want = programs.run(program.make(), program.calls)
    got = programs.run(made, program.calls)
    right = not any(programs.disagreement(a, b, exact=False, words=False)
                    for a, b in zip(want, got))
    return (torch.jit.script(program.make()) if right else None), want


@pytest.mark.parametrize("topic", TOPICS)
def test_programs(topic):
    done = 0
    for program in programs.load(topic):
        if program.name in ENDS:
            continue
        made, want = scripted(program)
        if made is None:
            continue
        done += 1
        if program.name in REFUSED:
            with pytest.raises(ScriptConversionError, match=REFUSED[program.name]):
                from_torch(made)
            continue
        got = programs.run(from_torch(made), program.calls)
        for a, b in zip(want, got):
            assert not programs.disagreement(a, b, exact=False, words=False), program.name
    assert done > 0


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x, n: int = 2):
        self.seen += 1
        for i in range(n):
            if x.sum() > 0:
                x = self.fc(x)
            else:
                x = x + i
        return x, self.seen.clone()


def test_a_graph_with_regions():
    model = Gate().eval()
    made = from_torch(torch.jit.script(model))
    assert [node.target for node in made.graph.nodes if node.op == "call_function"].count(
        cfx.for_loop) == 1
    x = torch.randn(2, 3)
    for n in (0, 3):
        want = Gate.forward(model, x, n)
        model.seen -= 1
        torch.testing.assert_close(made(x, n), want)
    assert made.fc.weight.data_ptr() == model.fc.weight.data_ptr()
    torch.testing.assert_close(made(x), model(x), check_device=False, rtol=0, atol=2)
    assert made.seen.data_ptr() == model.seen.data_ptr()


def test_files(tmp_path):
    model, inputs = zoo.make("mlp", small=True)
    script, exported = tmp_path / "m.pt", tmp_path / "m.pt2"
    torch.jit.script(model).save(str(script))
    torch.export.save(torch.export.export(model, inputs), exported)
    same(from_torch(script), model, inputs)
    same(from_torch(str(script)), model, inputs)
    same(from_torch(exported), model, inputs)


def test_what_comes_back_can_be_exported_and_compiled():
    model, inputs = zoo.make("mlp", small=True)
    theirs = to_torch(from_torch(torch.jit.script(model)))
    again = torch.export.export(theirs, inputs).module()
    torch.testing.assert_close(again(*inputs), model(*inputs))
    torch.testing.assert_close(torch.compile(theirs, backend="eager")(*inputs), model(*inputs))


class Assigns(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.ops.aten.relu(x)


def test_everything_that_is_in_the_way_is_reported():
    with pytest.raises(ScriptConversionError) as found:
        from_torch(torch.jit.script(Assigns()))
    kinds = [f.op for f in found.value.findings]
    assert kinds[0] == "prim::GetAttr" and "assigns the attribute 'calls'" in str(found.value)
    with pytest.raises(ScriptConversionError) as found:
        from_torch(torch.jit.script(programs_two_aliases))
    wheres = [f.where for f in found.value.findings]
    first = programs_two_aliases.__code__.co_firstlineno
    assert wheres == [f"{__file__}:{first + 2}", f"{__file__}:{first + 4}"]


def programs_two_aliases(x, a: list[int], b: list[int]):
    if x.sum() > 0:
        a.append(1)
    x = x + 1
    b.append(2)
    return x, len(a), len(b)


def test_warnings_are_kept():
    made = from_torch(torch.jit.script(warns))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made(torch.ones(1))
    assert [str(w.message) for w in found] == ["too large"]


def warns(x):
    if x.sum() > 0:
        torch.warnings.warn("too large")
    return x


def test_other_files_are_torchs_errors(tmp_path):
    (tmp_path / "x.pt").write_bytes(b"no file")
    with pytest.raises(RuntimeError):
        from_torch(tmp_path / "x.pt")
