"""Runs of plans that cannot go on: too little memory, a signal. The program works on afterwards."""
import signal

import pytest

torch = pytest.importorskip("torch")

import cfx  # noqa: E402


class Table(torch.nn.Module):
    """Its intermediate results have the square of the size of its input."""

    def forward(self, x):
        return (torch.relu(x[:, None]) * x[None, :]).sum()


@pytest.mark.parametrize("threads", (1, 2))
def test_a_plan_larger_than_memory_is_an_error(threads):
    with torch.no_grad():
        program = cfx.compile(Table(), torch.ones(8), threads=threads)
        assert program(torch.ones(9)) == 81
        with pytest.raises(MemoryError):
            program(torch.ones(2**22))  # 64 TiB
        assert program(torch.ones(10)) == 100
    assert "plan of" in program.plans


class Deep(torch.nn.Module):
    """One plan of many steps."""

    def __init__(self, depth):
        super().__init__()
        self.steps = torch.nn.ModuleList(torch.nn.Softmax(-1) for _ in range(depth))

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


def test_ctrl_c_ends_a_run_of_a_plan():
    model, x = Deep(300), torch.randn(300, 3000)
    with torch.no_grad():
        program = cfx.compile(model, x, threads=1)
        wanted = program(x)
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)}
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        try:
            with pytest.raises(KeyboardInterrupt):
                for _ in range(1000):
                    program(x)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)
        torch.testing.assert_close(program(x), wanted)
