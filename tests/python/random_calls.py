"""Random calls of the public API, sound and unsound, with objects that fight back.

Run as a program for a longer hunt:  random_calls.py [seed [operations]]
"""
import copy
import gc
import operator
import pickle
import random
import sys
import warnings

import cfx

EXPECTED = (TypeError, ValueError, AssertionError, AttributeError, RuntimeError, KeyError,
            IndexError, NameError, ZeroDivisionError, StopIteration, OverflowError, SyntaxError,
            LookupError, pickle.PicklingError)
FUNCTIONS = [operator.add, operator.neg, len, print, int, dict, min, lambda x: x, cfx.cond,
             random.Random]
NAMES = ["x", "add", "relu_1", "", "1a", "class", "a.b", "é", "\ud800", "a\x00b", "int", "*a",
         "a b"]


class Evil:
    """Edits the graph whenever it is looked at, or dropped."""

    def __init__(self, hunt):
        self.hunt = hunt

    def act(self, *args):
        if self.hunt.depth < 2 and not self.hunt.over:
            self.hunt.depth += 1
            try:
                self.hunt.operation()
            finally:
                self.hunt.depth -= 1
        return "evil"

    __repr__ = __str__ = act
    __del__ = act

    def __eq__(self, other):
        return self.act() and self is other

    def __hash__(self):
        self.act()
        return 7

    @property
    def __name__(self):
        return self.act()

    def __call__(self, *args, **kwargs):
        return self.act()

    def __reduce__(self):
        self.act()
        return (str, ("evil",))


class Owner:
    """A module whose hooks edit or raise."""

    def __init__(self, hunt):
        hook = hunt.hook
        self._create_node_hooks, self._erase_node_hooks = [hook], [hook]
        self._replace_hooks = [hook]


class Hunt:
    def __init__(self, seed, evil=True):
        self.random = random.Random(seed)
        self.evil = evil
        self.depth = 0
        self.focus = 0
        self.over = False
        self.nodes = []  # of any graph, erased or not
        self.graphs = [cfx.Graph(), cfx.Graph()]
        self.iterators = []
        self.done = {}
        self.operations = [getattr(self, name) for name in sorted(dir(self)) if name[:3] == "do_"]

    # ---- choices ----

    def chance(self, probability):
        return self.random.random() < probability

    def graph(self):
        """Mostly the same one for some time."""
        if self.chance(0.05):
            self.focus = self.random.randrange(9)
        return self.graphs[(self.focus if self.chance(0.8) else self.random.randrange(9))
                           % len(self.graphs)]

    def node(self):
        """Of that graph and alive, mostly."""
        g = self.graph()
        if self.nodes and self.chance(0.15):
            return self.random.choice(self.nodes[-40:])
        if self.chance(0.02):
            return g._root
        nodes = list(g.nodes)
        return self.random.choice(nodes[-30:] or [g._root])

    def wrong(self):
        return self.random.choice([None, 5, "x", [], {}, object(), cfx.Graph(), self.node, int])

    def value(self, depth=0):
        r = self.random
        kind = r.randrange(16 if depth < 4 else 9)
        if kind < 5:
            return self.node()
        if kind == 5:
            return r.choice([1, -1, 2**70, 1.5, True, None, ..., 2j, float("nan"), range(3), {1}])
        if kind == 6:
            return r.choice(NAMES)
        if kind == 7:
            return Evil(self) if self.evil and self.chance(0.5) else r.choice(FUNCTIONS)
        if kind == 8:
            return r.choice([object(), self.wrong(), frozenset([1]), b"bytes", slice(1, None)])
        items = [self.value(depth + 1) for _ in range(r.randrange(4))]
        if kind < 11:
            return items
        if kind < 13:
            return tuple(items)
        if kind == 13:
            return {r.choice(NAMES): item for item in items}
        if kind == 14:
            return slice(*[*items, 1][:3])
        n = self.node()
        return r.choice([cfx.immutable_list(items), {1: items}, {n}, {(1, n): 1}])

    def args(self):
        return tuple(self.value(1) for _ in range(self.random.randrange(4)))

    def kwargs(self):
        return {self.random.choice(NAMES): self.value(1) for _ in range(self.random.randrange(3))}

    def callback(self, *args):
        if self.evil and self.depth < 2 and self.chance(0.2):
            self.depth += 1
            try:
                self.operation()
            finally:
                self.depth -= 1
        if self.chance(0.05):
            raise ZeroDivisionError
        return self.random.choice([True, False, 1, 0, None, self.node()])

    def hook(self, *args, **kwargs):
        self.callback()

    def target(self, op):
        if self.chance(0.05):
            return self.wrong()
        if op == "call_function":
            return Evil(self) if self.evil and self.chance(0.05) else self.random.choice(FUNCTIONS)
        return self.random.choice(NAMES)

    # ---- operations ----

    def operation(self):
        do = self.random.choice(self.operations)
        name = do.__name__
        try:
            result = do()
            if type(result) is cfx.Node:
                self.nodes.append(result)
            self.done[name] = self.done.get(name, 0) + 1
        except EXPECTED:
            self.done[name + " raised"] = self.done.get(name + " raised", 0) + 1

    def do_create(self):
        g = self.graph()
        op = self.random.choice(["placeholder", "call_function", "call_method", "call_module",
                                 "get_attr", "output", "bad"])
        name = self.random.choice([None, None, *NAMES])
        return g.create_node(op, self.target(op), self.args(), self.kwargs(), name,
                             self.random.choice([None, None, int, self.value()]))

    def do_call(self):
        return self.graph().call_function(self.target("call_function"), self.args(), self.kwargs())

    def do_input(self):
        return self.graph().placeholder(self.random.choice(NAMES), default_value=self.value())

    def do_output(self):
        return self.graph().output(self.value())

    def do_erase(self):
        n = self.node()
        (n.graph if self.chance(0.9) else self.graph()).erase_node(n)

    def do_erase_unused(self):
        for n in reversed(self.graph().nodes):
            if not n.users and self.chance(0.5):
                n.graph.erase_node(n)

    def do_args(self):
        self.node().args = self.args() if self.chance(0.9) else self.wrong()

    def do_kwargs(self):
        self.node().kwargs = self.kwargs() if self.chance(0.9) else self.wrong()

    def do_update_arg(self):
        self.node().update_arg(self.random.randrange(-3, 4), self.value())

    def do_insert_arg(self):
        self.node().insert_arg(self.random.randrange(-1, 4), self.value())

    def do_update_kwarg(self):
        self.node().update_kwarg(self.random.choice(NAMES), self.value())

    def do_replace(self):
        callback = self.random.choice([None, None, self.callback])
        self.node().replace_all_uses_with(self.value(), callback,
                                          propagate_meta=self.chance(0.2))

    def do_replace_input(self):
        self.node().replace_input_with(self.node(), self.value())

    def do_move(self):
        move = self.random.choice([cfx.Node.append, cfx.Node.prepend])
        move(self.node(), self.node() if self.chance(0.9) else self.wrong())

    def do_attributes(self):
        n = self.node()
        name = self.random.choice(["name", "op", "target", "type", "meta", "tag", "users", "graph",
                                   "_location", "_repr_fn", "stack_trace"])
        value = self.random.choice([*NAMES, *FUNCTIONS, {}, {"n": n}, ("file.py", 3), self.value()])
        if name == "_repr_fn":
            value = None
        setattr(n, name, value) if self.chance(0.9) else delattr(n, name)

    def do_meta(self):
        n = self.node()
        n.meta[self.random.choice(NAMES)] = self.random.choice([n, n.graph, n.users, self.value()])

    def do_rename(self):
        self.node()._rename(self.random.choice(NAMES))

    def do_read(self):
        n = self.node()
        for name in dir(n):
            if not name.startswith("__"):
                getattr(n, name)
        repr(n), hash(n), n == n, n < self.node(), n.format_node()

    def do_users(self):
        u = self.node().users
        list(u), len(u), self.node() in u, u == {}, repr(u), list(u.items()), u.copy()
        u.get(self.node()), list(reversed(u)), {**u}, u | {1: 2}, u.get(self.wrong())

    def do_iterate(self):
        g = self.graph()
        if self.chance(0.5):
            self.iterators.append(self.random.choice([iter, reversed])(g.nodes))
        for it in self.random.sample(self.iterators, min(3, len(self.iterators))):
            for _ in range(self.random.randrange(3)):
                if next(it, None) is None:
                    break
        del self.iterators[:-5]

    def do_walk(self):
        for count, n in enumerate(self.graph().nodes):
            if self.chance(0.2):
                self.operation()
            if count > 20:
                break

    def do_insert_point(self):
        g = self.graph()
        point = self.random.choice([g.inserting_before, g.inserting_after])
        where = self.random.choice([None, self.node(), self.node(), self.wrong()])
        if self.chance(0.5):
            with point(where):
                self.operation()
                return self.do_create()
        point(where)

    def do_find(self):
        op = self.random.choice(["placeholder", "call_function", "call_method", "output", "bad"])
        self.graph().find_nodes(op=op, target=self.random.choice([None, self.target(op)]),
                                sort=self.chance(0.5))

    def do_print(self):
        g = self.graph()
        self.random.choice([str, cfx.Graph._table, cfx.text, cfx.structural_hash])(g)

    def do_check(self):
        g = self.graph()
        self.random.choice([g.lint, g.verify])()

    def do_dce(self):
        self.graph().eliminate_dead_code(self.random.choice([None, self.callback]))

    def do_node_copy(self):
        if self.chance(0.5):
            return self.graph().node_copy(self.node(), lambda n: self.value())
        return self.graph().node_copy(self.node())

    def do_graph_copy(self):
        mapping = {self.node(): self.value() for _ in range(self.random.randrange(4))}
        g = self.graph()
        if len(g.nodes) < 60:
            self.graph().graph_copy(g, mapping, self.chance(0.5))
        self.nodes += [n for n in mapping.values() if type(n) is cfx.Node]

    def do_copy(self):
        g = self.graph()
        if len(g.nodes) > 60:
            return
        ways = [copy.deepcopy, copy.copy, lambda g: pickle.loads(pickle.dumps(g)),
                lambda g: cfx.parse(cfx.text(g)), lambda g: copy.deepcopy(self.node())]
        made = self.random.choice(ways)(g)
        if type(made) is cfx.Graph:
            self.graphs.append(made)
            self.nodes += list(made.nodes)[:5]

    def do_compare(self):
        cfx.equal(self.graph(), self.graph(), shape_only=self.chance(0.5))

    def do_region(self):
        inner, outer = self.graph(), self.graph()
        return outer.call_function(cfx.cond, (self.value(), inner, inner, self.args()))

    def do_owner(self):
        self.graph().owning_module = self.random.choice([None, None, Owner(self), object()])

    def do_clear(self):
        if self.chance(0.1):
            self.graph()._clear_nodes()

    def do_forget(self):
        if self.chance(0.3):
            del self.nodes[: len(self.nodes) // 2]
        if self.chance(0.1):
            self.graphs[self.random.randrange(len(self.graphs))] = cfx.Graph()
        del self.graphs[:-5]

    def do_collect(self):
        if self.chance(0.1):
            gc.collect()

    def do_code(self):
        self.graph().python_code("self")

    # ---- checks ----

    def check(self):
        """The verifier's structural findings: those that no caller can bring about."""
        self.depth = 9  # objects keep still
        for g in self.graphs:
            damage = [text for text in g.verify() if is_damage(text)]
            assert damage == [], damage
            assert len(g.nodes) == len(list(g.nodes)) == len(list(reversed(g.nodes)))
            for n in g.nodes:
                assert n.graph is g and not n._erased
                for user in n.users:
                    assert n in user.all_input_nodes and not user._erased
                for used in n.all_input_nodes:
                    assert n in used.users
        self.depth = 0

    def run(self, operations, batch=50):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i in range(operations):
                self.operation()
                if i % batch == batch - 1:
                    self.check()
            self.check()
            self.over = True
            self.nodes.clear(), self.graphs.clear(), self.iterators.clear()
            gc.collect()
        return self.done


USERS_FAULTS = ("was used before it has been defined", "its name is not an identifier",
                "redefined name", "must be a name", "does not belong to this Graph",
                "comes after", "an output must have one argument", "its argument '", "its region",
                "belongs to another graph", "cannot be the name of a parameter",
                "is not the name of a function or type", "can run code or reach files")


def is_damage(text):
    return not any(fault in text for fault in USERS_FAULTS)


if __name__ == "__main__":
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    total = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    for seed in range(first, first + max(1, total // 1_000)):
        print("seed", seed, file=sys.stderr, flush=True)
        done = Hunt(seed).run(1_000)
    print({k: v for k, v in sorted(done.items())})
