"""cfx on a machine without torch: graphs are built, edited, printed, copied and checked."""
import os
import subprocess
import sys

PROGRAM = r'''
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is not here")

sys.meta_path.insert(0, Blocked())

import builtins, copy, gc, math, operator, pickle
import cfx
import cfx.graph, cfx.node, cfx.ops, cfx.text, cfx.immutable_collections

g = cfx.Graph()
x, y = g.placeholder("x", int), g.placeholder("y", default_value=(1, [2]))
s = g.call_function(operator.add, (x, y), {"k": [x, {"a": y}]})
m = g.call_function(math.floor, (s, 1.5, None, 2j, b"b", slice(x, 2), ..., range(3), {1}, 10**30))
dead = g.call_method("view", (m, -1))
w = g.get_attr("layer.weight")
c = g.call_module("layer", (m, w))
g.output((c, dict(a=s)))
assert g.verify() == [] and g.lint() is None
assert "call_function[target=operator.add]" in str(g)
assert [n.name for n in g.find_nodes(op="placeholder")] == ["x", "y"]
assert m.all_input_nodes == [s, x] and list(x.users) == [s, m]

again = cfx.parse(cfx.text(g))
assert cfx.equal(g, again) and cfx.structural_hash(g) == cfx.structural_hash(again)
for copied in (copy.deepcopy(g), copy.copy(g), pickle.loads(pickle.dumps(g))):
    assert cfx.equal(g, copied)

assert g.eliminate_dead_code(lambda n: n.op in ("placeholder", "output", "call_module")) is True
assert dead._erased and len(g.nodes) == 7

s.replace_all_uses_with(x)
m.update_arg(0, y), m.insert_arg(0, 1), m.update_kwarg("k", y)
s.args = ()
s.kwargs = {}
g.erase_node(s)
y.append(w)
assert g.verify() == []
h = cfx.Graph()
h.output(h.graph_copy(g, {}))
assert "floor" in str(h) and h.verify() == []
g._table(), h.print_tabular()

p = cfx.Graph()
value = cfx.Proxy(p.placeholder("v"))
first, second = value
p.output(((first + 1).f(second, k=[value.shape]) @ -value).node)
assert [n.name for n in p.nodes][:4] == ["v", "getitem", "getitem_1", "add"] and p.verify() == []
for bad in (lambda: bool(value), lambda: value.f(object()), lambda: len(value)):
    try:
        bad()
    except (ValueError, NotImplementedError, RuntimeError) as error:
        assert "to do: " in str(error)
    else:
        raise SystemExit("a proxy answered")

then, other = cfx.Graph(), cfx.Graph()
for region, f in ((then, operator.neg), (other, operator.pos)):
    region.output(region.call_function(f, (region.placeholder("a"),)))
r = cfx.Graph()
a = r.placeholder("a")
r.output(r.call_function(cfx.cond, (a, then, other, (a,))))
assert r.verify() == [] and cfx.equal(r, cfx.parse(cfx.text(r)))
assert cfx.cond(True, lambda v: v + 1, lambda v: v - 1, (1,)) == 2
assert cfx.cond(False, then, other, (5,)) == 5

missing = cfx.parse("graph():\n  %x = placeholder[target=x]()\n"
                    "  %y = call_function[target=torch.relu](%x, dtype=torch.float32)\n"
                    "  output(%y)\n")
relu = list(missing.nodes)[1]
assert str(relu.target) == "torch.relu" and str(relu.kwargs["dtype"]) == "torch.float32"
assert cfx.equal(missing, cfx.parse(cfx.text(missing)))
assert cfx.equal(missing, copy.deepcopy(missing))
assert cfx.equal(missing, pickle.loads(pickle.dumps(missing)))
try:
    relu.target(1)
except NameError as e:
    assert "torch.relu" in str(e)
else:
    raise AssertionError("an unknown function ran")
for name in ("GraphModule", "graph_module"):
    try:
        getattr(cfx, name)
    except ImportError as e:
        assert "torch" in str(e)
    else:
        raise AssertionError(f"there is a {name} without torch")
assert not hasattr(cfx, "nonsense") and "GraphModule" in dir(cfx)
print(missing)
del g, h, r, missing, again, copied
gc.collect()
assert not any(name.split(".")[0] == "torch" for name in sys.modules)
print("done")
'''


def test_without_torch():
    env = {k: v for k, v in os.environ.items() if k != "PYTHONHOME"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True,
                          timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
