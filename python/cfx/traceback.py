"""Metadata that new nodes inherit from the node that is being run.

Like torch.fx.traceback, but each thread has its own state (python/src/node/meta.c).
"""
import functools
import traceback
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from typing import Any

from . import _core
from ._compatibility import compatibility
from ._core import Graph, Node
from ._glue.listing import public_names

__all__ = [
    "annotate", "annotate_fn", "preserve_node_meta", "has_preserved_node_meta", "set_stack_trace",
    "set_grad_fn_seq_nr", "reset_grad_fn_seq_nr", "format_stack", "set_current_meta",
    "get_current_meta", "NodeSource", "NodeSourceAction", "get_graph_provenance_json",
    "set_current_replay_node", "get_current_replay_node",
]  # fmt: skip

GRADIENT_ACC_SPECIAL_STACK = "Gradient addition node due to multiple use of tensor around:"
_fields = {"current_meta": "meta", "current_replay_node": "replay_node"}
_fields["should_preserve_node_meta"] = "preserve"
_thread = _core._thread_meta


def __getattr__(name: str) -> Any:
    if name in _fields:
        return _thread()[_fields[name]]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


@contextmanager
def _changing(find: Callable[[], dict], key: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """One entry of the dict that `find` gives is another for a while."""
    entries = find()
    saved = {key: entries[key]} if key in entries else {}
    entries[key] = change(entries.get(key))
    try:
        yield
    finally:
        entries.pop(key, None)
        entries.update(saved)


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Gives new nodes the thread's current metadata; the previous state is restored at the end."""
    state = _thread()
    saved = {"preserve": state["preserve"], "meta": state["meta"].copy()}
    state["preserve"] = enable
    _core._count_preserving(1)
    try:
        yield
    finally:
        _core._count_preserving(-1)
        state.update(saved)


def has_preserved_node_meta() -> bool:
    return _thread()["preserve"]


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Makes the metadata of `node` current, with `node` itself as "from_node"."""
    saved = _core._enter_meta(node, pass_name)
    try:
        yield
    finally:
        _core._leave_meta(saved)


def get_current_meta() -> dict[str, Any]:
    return _thread()["meta"]


def set_stack_trace(stack: list[str]) -> None:
    if has_preserved_node_meta():
        get_current_meta().pop("stack_trace", None)
        get_current_meta().update({"stack_trace": "".join(stack)} if stack else {})


def format_stack() -> list[str]:
    if has_preserved_node_meta():
        return [get_current_meta().get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Assigns new nodes to the backward function of this number until it is reset; calls nest."""
    if has_preserved_node_meta():
        numbers = [*get_current_meta().get("grad_fn_seq_nr", ()), seq_nr]
        get_current_meta().update(grad_fn_seq_nr=numbers, in_grad_fn=len(numbers))


def reset_grad_fn_seq_nr() -> None:
    if has_preserved_node_meta():
        meta = get_current_meta()
        numbers = meta.pop("grad_fn_seq_nr", [])[:-1]
        level = meta.pop("in_grad_fn", 0)
        assert level > 0, f"Expected current_level > 0, got {level}"
        meta.update(dict(grad_fn_seq_nr=numbers, in_grad_fn=level - 1) if level > 1 else {})


def annotate(annotation_dict: dict[str, Any]) -> AbstractContextManager[None]:
    """Adds these entries to meta["custom"] of new nodes, while metadata is preserved."""
    return _changing(get_current_meta, "custom", lambda old: {**(old or {}), **annotation_dict})


def annotate_fn(annotation_dict: dict[str, Any]) -> Any:
    """Returns a decorator that applies `annotate` around every call to a function."""
    return annotate(annotation_dict)


def _preserve_node_seq_nr(preserve_seq_nr: bool = True) -> AbstractContextManager[None]:
    """New nodes get the sequence number of the current metadata, not autograd's next."""
    return _changing(_thread, "preserve_seq_nr", lambda _: preserve_seq_nr)


def _is_preserving_node_seq_nr() -> bool:
    return _thread()["preserve_seq_nr"]


def _mark_autograd_backward() -> None:
    get_current_meta()["autograd_backward"] = True


def _reset_autograd_backward() -> None:
    get_current_meta().pop("autograd_backward", None)


def _set_autograd_backward(enable: bool = True) -> AbstractContextManager[None]:
    change = _changing(get_current_meta, "autograd_backward", lambda _: True)
    return change if enable else nullcontext()


def set_current_replay_node(node: Node | None) -> AbstractContextManager[None]:
    """Marks new nodes as replacements of `node`; they inherit its provenance."""
    return _changing(_thread, "replay_node", lambda _: node)


def get_current_replay_node() -> Node | None:
    return _thread()["replay_node"]


class NodeSourceAction(Enum):
    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """The node and the pass that another node was created from, and the sources of that node in
    turn."""

    NodeInfo = namedtuple("NodeInfo", "name target graph_id")

    def __init__(
        self, node: Node | None, pass_name: str = "", action: NodeSourceAction | list | None = None
    ) -> None:
        self.pass_name = pass_name
        self.action = action if isinstance(action, list) else [] if action is None else [action]
        for one in self.action:
            assert isinstance(one, NodeSourceAction), f"Expected NodeSourceAction, got {type(one)}"
        self.node_info = node and self.NodeInfo(node.name, str(node.target), id(node.graph))
        self.from_node: list[NodeSource] = list(node.meta.get("from_node", ())) if node else []

    name = property(lambda self: self.node_info.name if self.node_info else "")
    target = property(lambda self: self.node_info.target if self.node_info else "")
    graph_id = property(lambda self: self.node_info.graph_id if self.node_info else -1)

    def _get_action_string(self) -> str:
        return "+".join(one.value for one in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """Returns one line for the node, followed by its sources, indented."""
        passed = f"pass_name={self.pass_name}, action={self._get_action_string()}"
        line = f"{'    ' * indent}(name={self.name}, {passed}, graph_id={self.graph_id})\n"
        return line + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def __repr__(self) -> str:
        return self.print_readable()

    def to_dict(self) -> dict[str, Any]:
        """Returns the source as a dict of plain values."""
        keys = ("name", "target", "graph_id", "pass_name")
        plain = {key: getattr(self, key) for key in keys} | {"action": self._get_action_string()}
        return plain | {"from_node": [source.to_dict() for source in self.from_node]}

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> "NodeSource | None":
        if d is None:
            return None
        known = {action.value: action for action in NodeSourceAction}
        actions = [known[text] for text in d.get("action", "").split("+") if text in known]
        source = cls(None, d.get("pass_name", ""), actions)
        if {"name", "target", "graph_id"} <= d.keys():
            source.node_info = cls.NodeInfo(d["name"], d["target"], d["graph_id"])
        source.from_node = [s for s in map(cls._from_dict, d.get("from_node", ())) if s]
        return source

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self))


def get_graph_provenance_json(graph: Graph) -> dict[str, Any]:
    """Returns the sources of each function call in a graph, by name."""
    calls = [node for node in graph.nodes if node.op == "call_function"]
    return {n.name: [s.to_dict() for s in n.meta.get("from_node", ())] for n in calls}


def _get_ordered_seq_nr_groups(gm: Any) -> list[list[str]]:
    """The names of the function calls with the same meta["seq_nr"], by that number."""
    groups: dict[int, list[str]] = {}
    for module in gm if isinstance(gm, list) else [gm]:
        for node in module.graph.nodes:
            if node.op == "call_function" and "seq_nr" in node.meta:
                groups.setdefault(node.meta["seq_nr"], []).append(node.name)
    return [sorted(groups[number]) for number in sorted(groups)]


for _name in __all__:
    compatibility(is_backward_compatible=False)(globals()[_name])
_core._register(node_source=functools.partial(NodeSource, action=NodeSourceAction.CREATE))

__dir__ = public_names(globals(), "GRADIENT_ACC_SPECIAL_STACK", "Graph", "Node")
