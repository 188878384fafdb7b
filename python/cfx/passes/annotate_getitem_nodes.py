"""annotate_getitem_nodes: types of items, from the types of what they are taken of."""
from ..graph import Graph


def annotate_getitem_nodes(graph: Graph) -> None:
    """Gives each operator.getitem node of a graph and its regions the type that the annotation of
    its sequence says: a list, a tuple or a NamedTuple. Others keep what they have."""
    graph._annotate_getitem()
