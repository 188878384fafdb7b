"""Runs a graph node by node: how a region is run when its operator is called from Python."""
import functools

from ._core import Graph, map_arg


def _attribute(root, path):
    for part in path.split("."):
        root = getattr(root, part)
    return root


def evaluate(graph, *inputs, root=None):
    """The output of `graph` for these inputs; `root` is where get_attr and call_module look."""
    root = graph.owning_module if root is None else root
    env = {}
    inputs = iter(inputs)
    for node in graph.nodes:
        args, kwargs = map_arg((node.args, node.kwargs), env.__getitem__)
        if node.op == "placeholder":
            env[node] = _input(node, inputs)
        elif node.op == "output":
            return args[0]
        elif node.op == "get_attr":
            env[node] = _attribute(root, node.target)
        elif node.op == "call_function":
            env[node] = node.target(*(_runnable(arg, root) for arg in args), **kwargs)
        elif node.op == "call_method":
            env[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
        else:
            env[node] = _attribute(root, node.target)(*args, **kwargs)
    return None


def _runnable(arg, root):
    """A region shares the paths of the graph around it."""
    return functools.partial(evaluate, arg, root=root) if isinstance(arg, Graph) else arg


def _input(node, inputs):
    if node.target.startswith("**"):
        return {}
    if node.target.startswith("*"):
        return tuple(inputs)
    if node.args:
        return next(inputs, node.args[0])
    try:
        return next(inputs)
    except StopIteration:
        raise TypeError(f"the graph's input '{node.target}' was not given") from None
