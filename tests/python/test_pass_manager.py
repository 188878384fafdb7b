"""Both PassManagers, beside torch.fx's: schedules, constraints, checks, errors."""
import inspect
import logging

import pytest
from parity import growth, outcome

torch = pytest.importorskip("torch")
import torch.fx  # noqa: E402
from torch.fx.passes import pass_manager as their_old  # noqa: E402
from torch.fx.passes.infra import pass_base as their_base  # noqa: E402
from torch.fx.passes.infra import pass_manager as theirs  # noqa: E402

import cfx  # noqa: E402
from cfx.passes import pass_manager as our_old  # noqa: E402
from cfx.passes.infra import pass_base as our_base  # noqa: E402
from cfx.passes.infra import pass_manager as ours  # noqa: E402

BOTH = [(cfx, ours, our_base), (torch.fx, theirs, their_base)]


def same(experiment):
    """`experiment(fx, manager, base)` gives the same for both."""
    mine, other = (experiment(*libraries) for libraries in BOTH)
    assert mine == other
    return mine


def module(fx):
    return fx.symbolic_trace(lambda x: torch.add(x, x))


def mark(base, name, modified, log):
    def fn(gm):
        log.append(name)
        return base.PassResult(gm, modified(len(log)) if callable(modified) else modified)

    fn.__name__ = name
    return fn


# ---- the manager for modules -------------------------------------------------------------------


@pytest.mark.parametrize("steps", [None, 0, 1, 2, 9])
def test_steps(steps):
    def run(fx, manager, base):
        log, gm = [], module(fx)
        passes = [mark(base, "a", lambda n: n < 5, log), mark(base, "b", False, log)]
        result = manager.PassManager(passes, steps=steps)(gm)
        return log, result.modified, result.graph_module is gm, type(result) is base.PassResult

    assert same(run)[0]


def test_modules_of_any_kind():
    def run(fx, manager, base):
        model = torch.nn.ReLU()
        other = manager.PassManager([lambda m: base.PassResult(torch.nn.Tanh(), True)])(model)
        return manager.PassManager()(model).modified, type(other.graph_module), other.modified

    assert same(run) == (False, torch.nn.Tanh, True)


def test_code_is_brought_up_to_date():
    def run(fx, manager, base):
        def multiply(gm):
            next(n for n in gm.graph.nodes if n.target is torch.add).target = torch.mul

        gm = module(fx)
        manager.PassManager([manager.pass_result_wrapper(multiply)])(gm)
        return gm.code, gm(torch.tensor(5)).item()

    assert same(run)[1] == 25


def test_wrapper():
    def run(fx, manager, base):
        class Pass(base.PassBase):
            def call(self, gm):
                pass

        class Callable:
            def __call__(self, gm):
                return torch.nn.Tanh()

        wrap, gm = manager.pass_result_wrapper, module(fx)
        wrapped = [wrap(f) for f in (Pass(), Callable(), mark(base, "c", False, []))]
        results = [(f.__name__, f(gm).modified, f(gm).graph_module is gm) for f in wrapped]
        return results, wrap(None)

    assert same(run)[0] == [("Pass", True, True), ("Callable", True, False), ("c", False, True)]


def test_order_and_constraints():
    def run(fx, manager, base):
        before = manager.this_before_that_pass_constraint
        p = [mark(base, f"p{i}", False, []) for i in range(6)]
        pairs = [(5, 0), (5, 2), (4, 0), (4, 1), (2, 3), (3, 1)]
        constraints = [before(p[i], p[j]) for i, j in pairs]
        unordered = manager.PassManager(list(p), list(constraints))
        wrong = outcome(unordered.validate_constraints)[:50]
        unordered.solve_constraints()
        sort = manager._topological_sort_passes
        ring = [before(p[0], p[1]), before(p[1], p[2]), before(p[2], p[0])]
        names = [f.__name__ for f in unordered.passes]
        cycle = outcome(lambda: manager.PassManager(p[:3], ring, steps=4)(module(fx)))[:72]
        depends = constraints[0]
        relation = [depends(p[5], p[0]), depends(p[0], p[5]), depends(p[0], p[0])]
        valid = outcome(unordered.validate_constraints)
        return wrong, names, sort(p, []) is p, cycle, relation, valid

    assert same(run)[1] == ["p4", "p5", "p0", "p2", "p3", "p1"]


def test_violations_name_the_right_places():
    def first(gm): ...
    def second(gm): ...
    def third(gm): ...

    manager = ours.PassManager([third, second, first])
    manager.add_constraint(ours.this_before_that_pass_constraint(first, second))
    with pytest.raises(RuntimeError, match="first at .*before .*second at .*index 1 .*index 2"):
        manager.validate_constraints()
    twice = [first, second, first]
    order = ours._topological_sort_passes(twice, manager.constraints)
    assert order == [first, first, second]  # torch.fx sees a circle


class Check:
    def __init__(self, fails_at):
        self.fails_at, self.seen = fails_at, 0

    def __call__(self, gm):
        self.seen += 1
        if self.seen == self.fails_at:
            raise ValueError(f"check {self.fails_at}")


def test_checks():
    def run(fx, manager, base):
        log = []
        passes = [mark(base, "a", True, log), mark(base, "b", False, log)]
        for after in (False, True):
            for fails_at in (0, 1, 2, 9):
                pm = manager.PassManager(passes, run_checks_after_each_pass=after)
                check = Check(fails_at)
                pm.add_checks(check)
                log += [outcome(lambda: pm(module(fx)).modified), check.seen]
        for bad in (lambda: 0, lambda a, b: 0, lambda a, b=1: 0, 5):
            log.append(outcome(lambda: pm.add_checks(bad)))
        return log

    same(run)


def test_suppressed_checks(caplog):
    def bad(gm):
        raise ValueError("bad check")

    pm = ours.PassManager(run_checks_after_each_pass=True, suppress_check_failures=True)
    pm.add_checks(bad)
    pm.add_pass(mark(our_base, "a", True, []))
    with caplog.at_level(logging.WARNING):
        assert pm(module(cfx)).modified
    assert [r.getMessage() for r in caplog.records] == ["a check failed: bad check"] * 2


def test_errors_name_the_pass():
    def run(fx, manager, base):
        def fails(gm):
            raise ValueError("no")

        log = []
        fine = mark(base, "fine", False, log)
        for passes in ([fails], [fine, fails], [fine, lambda gm: None], [fine, lambda gm: gm]):
            with pytest.raises(Exception) as caught:
                manager.PassManager(passes)(module(fx))
            log += [type(caught.value), str(caught.value).splitlines()[0]]
            log.append(outcome(lambda: (_ for _ in ()).throw(caught.value.__cause__)))
        return log

    assert "'fails' pass after the following passes: ['fine']" in same(run)[5]


def test_a_broken_graph_is_found():
    def breaks(gm):
        x, add = list(gm.graph.nodes)[:2]
        add.append(x)
        return our_base.PassResult(gm, True)

    fine = mark(our_base, "fine", False, [])
    pm = ours.PassManager([fine, breaks], run_checks_after_each_pass=True)
    with pytest.raises(Exception, match=r"(?s)'breaks' pass.*\['fine'\].*used before") as caught:
        pm(gm := module(cfx))
    assert "test_pass_manager.py" in str(caught.value) and "%add" in str(caught.value)
    assert gm.code == module(cfx).code and gm.graph.owning_module is gm
    gm.graph.lint()
    assert ours.PassManager([breaks])(module(cfx)).modified  # nobody asked for checks


# ---- the one for any object --------------------------------------------------------------------


def one(d):
    return {**d, "one": 1}


def two(d):
    d["two"] = 2
    return True


def old(experiment):
    mine, other = experiment(our_old), experiment(their_old)
    assert mine == other
    return mine


def test_old_wrappers(caplog):
    def run(m):
        log = []
        wrapped = m.inplace_wrapper(two)
        log += [wrapped({}), wrapped.__name__, wrapped.__wrapped__ is two]
        with caplog.at_level(logging.INFO, m.__name__):
            log += [m.log_hook(two)({}), m.log_hook(two, logging.WARNING)({})]
        log += [r.getMessage() for r in caplog.records] + [r.levelname for r in caplog.records]
        caplog.clear()
        more = lambda x: x + 1  # noqa: E731
        log += [m.loop_pass(more, 3)(0), m.loop_pass(more, predicate=lambda x: x < 5)(0)]
        for given in ({}, {"n_iter": 0}, {"n_iter": -1}, {"n_iter": 2, "predicate": bool}):
            log.append(outcome(lambda: m.loop_pass(more, **given)(0)))
        return log

    assert {"two": 2} in old(run)


def test_old_manager():
    def run(m):
        inplace = m.inplace_wrapper(two)
        pm = m.PassManager.build_from_passlist([one, inplace])
        log = [pm({}), pm._validated, type(pm) is m.PassManager]
        pm.add_constraint(m.these_before_those_pass_constraint(two, one))
        log += [pm._validated, outcome(pm.validate)[:50], outcome(lambda: pm({}))[:50]]
        pm.remove_pass(["one"])
        log += [pm({}), pm._validated]
        pm.add_pass(one)
        log += [pm({}), len(pm.passes)]
        pm.replace_pass(one, inplace)
        log += [[p.__name__ for p in pm.passes], m.PassManager()(3)]
        log.append(m.PassManager([one, one], [m.this_before_that_pass_constraint(two, one)])({}))
        log.append(outcome(lambda: pm.replace_pass(3, one)))
        return log

    assert {"one": 1, "two": 2} in old(run)


def test_signatures():
    for mine, other in ((ours, theirs), (our_old, their_old)):
        assert sorted(mine.__all__) == sorted(other.__all__)
        for name in other.__all__:
            a, b = getattr(mine, name), getattr(other, name)
            methods = [n for n in vars(other.PassManager) if not n.startswith("_")]
            pairs = [(a, b)]
            if name == "PassManager":
                methods = [n for n in methods if callable(getattr(b, n))]
                pairs += [(getattr(a, n), getattr(b, n)) for n in methods]
            for f, g in pairs:
                a, b = (inspect.signature(h).parameters.values() for h in (f, g))
                assert [(p.name, p.default) for p in a] == [(p.name, p.default) for p in b], g


def test_no_leaks():
    def first(gm): ...
    def second(gm): ...
    def fail(a, b): raise ValueError

    before = ours.this_before_that_pass_constraint
    one, circle = [before(first, second)], [before(first, second), before(second, first)]

    def work():
        ours._topological_sort_passes([second, first], one)
        for constraints in (circle, [fail]):
            with pytest.raises((RuntimeError, ValueError)):
                ours._topological_sort_passes([second, first], constraints)
        with pytest.raises(RuntimeError):
            ours._validate_pass_schedule_constraint(one[0], [second, first])

    assert growth(work, 5_000) < 1 << 20
