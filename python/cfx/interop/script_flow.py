"""Branches and loops of TorchScript as regions."""
import operator
from typing import Any, NamedTuple

from .. import ops
from ..graph import Graph
from ..node import Node
from .script_special import Special
from .script_values import (
    Object, Refused, constant_of, find_changed, find_free, items_of, name_of, nodes_in, plain,
    rebuilt,
)  # fmt: skip

_ENDLESS = 2**62  # the most turns of a `while`


class Flow(Special):
    """A block with branches and loops."""

    # -- control flow

    def on_prim_If(self, node: Any, inputs: list[Any]) -> list[Any]:
        blocks = list(node.blocks())
        test = inputs[0]
        if not isinstance(test, Node):
            taken = blocks[0] if test else blocks[1]
            self.run(taken)
            return [self.get(value) for value in taken.outputs()]
        changed: dict[int, None] = {}
        free: dict[int, Any] = {}
        for block in blocks:
            self.hold(block.outputs())
            find_free(block, set(), free)
            find_changed(block, changed)
        lists = [u for u in changed if u in free]
        operands = self.operands(free)
        regions = [self.branch(block, operands, lists) for block in blocks]
        if test.target is bool and isinstance(test.args[0], Node):
            test = test.args[0]  # torch.cond takes the tensor
        made = self.call(ops.cond, (test, *regions, tuple(operands)))
        return self.spread(made, node.outputsSize(), lists)

    def operands(self, free: dict[int, Any]) -> list[Node]:
        """The nodes that are passed to a region, each once."""
        return list(dict.fromkeys(n for u in free for n in nodes_in(self.values[u])))

    def inner(self, nodes: list[Node], first: list[Any]) -> tuple["Flow", list[Node]]:
        """A region with inputs for `first`, values of TorchScript, and for nodes of this graph.
        Values that hold none of these are the same inside."""
        block = Flow(self.job, Graph())
        for value in first:
            block.values[value.unique()] = block.graph.placeholder(name_of(value))
        twins = {node: block.graph.placeholder(node.name) for node in nodes}
        for unique, value in self.values.items():
            if all(node in twins for node in nodes_in(value)):
                block.values.setdefault(unique, rebuilt(value, twins.__getitem__))
        return block, list(twins.values())

    def branch(self, block: Any, operands: list[Node], lists: list[int]) -> Graph:
        inner, _ = self.inner(operands, [])
        inner.here = self.here
        inner.run(block)
        results = [inner.get(value) for value in block.outputs()]
        results += [inner.values[u] for u in lists]
        inner.finish(results[0] if len(results) == 1 else tuple(results) or None)
        return inner.graph

    def finish(self, results: Any) -> None:
        if any(isinstance(x, Object) for x in items_of(results)):
            raise Refused("a branch or loop gives a module")
        self.graph.output(rebuilt(plain(results), lambda node: node))

    def spread(self, made: Node, count: int, lists: list[int]) -> list[Any]:
        """The results of a call with regions; lists that it has changed take their places."""
        total = count + len(lists)
        items = [made] if total == 1 else [self.item(made, i) for i in range(total)]
        self.values.update(zip(lists, items[count:]))
        return items[:count]

    def on_prim_Loop(self, node: Any, inputs: list[Any]) -> list[Any]:
        turns, test, *carried = inputs
        (block,) = node.blocks()
        params, outputs = list(block.inputs()), list(block.outputs())
        changed: dict[int, None] = {}
        free: dict[int, Any] = {}
        find_changed(block, changed)
        find_free(block, set(), free)
        lists = [u for u in changed if u in free]
        self.hold(list(node.inputs())[2:])
        for u in lists:
            free.pop(u)
        loop = _Loop(self, block, params, outputs, lists, self.operands(free))
        state = [*carried, *(self.values[u] for u in lists), *loop.operands]
        if test is True and constant_of(outputs[0]) is True:
            made = self.call(ops.for_loop, (turns, loop.body(), tuple(plain(state))))
            self.check_lists(lists)
            return self.take(made, node.outputsSize(), lists, 0)
        regions = loop.test(turns), loop.turn()
        made = self.call(ops.while_loop, (*regions, (0, test, *plain(state))))
        self.check_lists(lists)
        return self.take(made, node.outputsSize(), lists, 2)

    def check_lists(self, lists: list[int]) -> None:
        if self.job.held.intersection(lists):
            raise Refused("the loop changes a list or dict that something else may hold, too; "
                           "change a copy instead")

    def take(self, made: Node, count: int, lists: list[int], skip: int) -> list[Any]:
        items = [self.item(made, skip + i) for i in range(count + len(lists))]
        self.values.update(zip(lists, items[count:]))
        return items[:count]


class _Loop(NamedTuple):
    """A loop: its state is what it carries, the lists that it changes, and what it reads."""

    outer: Flow
    block: Any
    params: list[Any]
    outputs: list[Any]
    lists: list[int]
    operands: list[Node]

    def region(self, first: list[Any]) -> tuple[Flow, list[Node]]:
        """A graph with inputs for `first` and for the state."""
        made = Flow(self.outer.job, Graph())
        made.here = self.outer.here
        for value in first:
            made.values[value.unique()] = made.graph.placeholder(name_of(value))
        lists = {u: made.graph.placeholder("items") for u in self.lists}
        made.values.update(lists)
        twins = {node: made.graph.placeholder(node.name) for node in self.operands}
        for unique, value in self.outer.values.items():
            if unique not in made.values and all(node in twins for node in nodes_in(value)):
                made.values[unique] = rebuilt(value, twins.__getitem__)
        return made, list(twins.values())

    def results(self, made: Flow, kept: list[Node]) -> list[Any]:
        return [*(made.get(v) for v in self.outputs[1:]), *(made.values[u] for u in self.lists),
                *kept]  # fmt: skip

    def body(self) -> Graph:
        """Of a for_loop: with the number of the turn."""
        made, kept = self.region(self.params)
        made.run(self.block)
        made.finish(tuple(self.results(made, kept)))
        return made.graph

    def turn(self) -> Graph:
        """Of a while_loop: the state begins with the number of the turn, and whether to go on."""
        made, kept = self.while_region()
        made.run(self.block)
        following = made.graph.call_function(operator.add, (made.get(self.params[0]), 1))
        again = made.get(self.outputs[0])
        made.finish((following, again, *self.results(made, kept)))
        return made.graph

    def while_region(self) -> tuple[Flow, list[Node]]:
        class _Again(NamedTuple):
            def unique(self) -> int:
                return -1

            def debugName(self) -> str:
                return "again"

        return self.region([self.params[0], _Again(), *self.params[1:]])

    def test(self, turns: Any) -> Graph:
        made, _ = self.while_region()
        again = made.values[-1]
        if isinstance(turns, Node) or turns < _ENDLESS:
            limit = turns
            if isinstance(turns, Node):
                twin = next((n for n in made.graph.nodes if n.name == turns.name), None)
                if twin is None:
                    raise Refused("the number of turns is not in the state of the loop")
                limit = twin
            below = made.graph.call_function(operator.lt, (made.get(self.params[0]), limit))
            again = made.graph.call_function(operator.and_, (below, again))
        made.graph.output(again)
        return made.graph
