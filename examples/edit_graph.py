"""Builds a graph in Python, replaces an operator, and runs the generated code. Needs no torch.

    PYTHONPATH=python python examples/edit_graph.py
"""
import math
import operator

import cfx

# A graph is a list of nodes. The methods of Graph append one node each, and give it back.
graph = cfx.Graph()
x = graph.placeholder("x")
y = graph.placeholder("y", default_value=2.0)
root = graph.call_function(math.sqrt, (x,))
product = graph.call_function(operator.mul, (root, y))
unused = graph.call_function(math.exp, (product,))
graph.output({"result": product, "inputs": (x, y)})

print("As torch.fx prints it:")
print(graph)

# Every node knows who uses it. Replace sqrt by a sum, and erase what nobody uses any more.
with graph.inserting_before(root):
    total = graph.call_function(operator.add, (x, 1.5))
root.replace_all_uses_with(total)
graph.erase_node(root)
graph.eliminate_dead_code()
graph.lint()

print("\nAs a table:")
graph.print_tabular()

# Generated code is plain Python, with the globals that it needs.
code = graph.python_code("self")
namespace = dict(code.globals)
exec(code.src, namespace)
print("\nAs Python:")
print(code.src.strip())
print("\nRun with x = 3:", namespace["forward"](None, 3.0))

# The IR text loses nothing: it reads back as the same graph, here or in C.
text = cfx.text(graph)
assert cfx.equal(cfx.parse(text), graph)
print("\nAs IR text:")
print(text)
