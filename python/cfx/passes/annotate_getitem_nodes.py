"""annotate_getitem_nodes: sets the types of items from the types of their sequences."""
from ..graph import Graph
from ..text import in_place


def annotate_getitem_nodes(graph: Graph) -> None:
    """Sets the type of each operator.getitem node in a graph and its regions from the annotation of
    its sequence: a list, a tuple or a NamedTuple. Other nodes do not change."""
    in_place(graph, "annotate_getitem_nodes")._annotate_getitem()
