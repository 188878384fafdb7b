"""A program that runs is ended by signals whose handlers raise, as Python code is."""
import signal
import threading
import time

import pytest

import cfx

torch = pytest.importorskip("torch")


def region(names, build):
    graph = cfx.Graph()
    graph.output(build(graph, *[graph.placeholder(name) for name in names]))
    return graph


def endless(body):
    """while True: x = body(x)"""
    graph = cfx.Graph()
    x = graph.placeholder("x")
    test = region(["x"], lambda g, x: True)
    loop = graph.call_function(cfx.while_loop, (test, region(["x"], body), (x,)))
    graph.output(loop)
    return cfx.lower(cfx.GraphModule(torch.nn.Module(), graph))


BODIES = {
    "computing": lambda g, x: (g.call_function(torch.sin, (x,)),),
    "empty": lambda g, x: (x,),
}


class Alarm(Exception):
    pass


@pytest.fixture
def handler():
    """Sets the handler of a signal until the test ends; a timer that is left over is stopped."""
    before = {}

    def set_handler(number, function):
        before[number] = signal.signal(number, function)

    yield set_handler
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, function in before.items():
        signal.signal(number, function)


@pytest.mark.parametrize("body", BODIES)
def test_ctrl_c_ends_a_loop_that_does_not_end(handler, body):
    handler(signal.SIGINT, signal.default_int_handler)
    handler(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    program = endless(BODIES[body])
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(KeyboardInterrupt):
        program(torch.ones(3))


def test_what_the_handler_raises_comes_through(handler):
    def alarm(number, frame):
        raise Alarm("too long")

    handler(signal.SIGALRM, alarm)
    program = endless(BODIES["computing"])
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(Alarm, match="too long"):
        program(torch.ones(3))


def test_a_handler_that_returns_does_not_end_it(handler):
    seen = []

    def alarm(number, frame):
        seen.append(number)
        if len(seen) == 3:
            raise Alarm

    handler(signal.SIGALRM, alarm)
    program = endless(BODIES["computing"])
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    with pytest.raises(Alarm):
        program(torch.ones(3))
    assert len(seen) == 3


def test_the_runtime_works_on_afterwards(handler):
    """And another thread that computed with it meanwhile has noticed nothing."""
    handler(signal.SIGALRM, signal.default_int_handler)
    runtime = cfx.Runtime(threads=2)
    graph = cfx.Graph()
    graph.output(graph.call_function(torch.add, (graph.placeholder("x"), 1)))
    small = cfx.lower(cfx.GraphModule(torch.nn.Module(), graph), runtime=runtime)
    results = []

    def other():
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            results.append(float(small(torch.tensor(1.0))))

    thread = threading.Thread(target=other)
    thread.start()
    program = endless(BODIES["computing"])
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with runtime, pytest.raises(KeyboardInterrupt):
        program(torch.ones(3))
    thread.join()
    assert results and set(results) == {2.0}
    assert float(small(torch.tensor(2.0))) == 3.0
