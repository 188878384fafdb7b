"""What models of public libraries (tools/zoo.py) ran into, each as a small program."""
import pytest

torch = pytest.importorskip("torch")
import cfx  # noqa: E402


def same(model, gm, *inputs):
    """Whether a captured program gives what the program gives."""
    expected, found = model(*inputs), gm(*inputs)
    torch.testing.assert_close(found, expected, equal_nan=True)


# ---- a function whose evaluation is refused (mixtures of experts) --------------------------------


def experts(x):
    """Asks data for the number of rounds; its `with` block cannot be evaluated from its source."""
    total = torch.zeros_like(x)
    with torch.no_grad():
        hit = (x > 0).nonzero()
    for row in hit:
        total.index_add_(0, row[0][None], x[row[0]][None] * 2)
    return total


def test_names_after_a_refused_evaluation():
    """The evaluator calls nodes "_" until it is over. It was refused, and all that came after was
    called so, too: two variables of the code had one name."""
    x = torch.tensor([[1.0, -2.0], [3.0, -1.0]])

    def model(x):
        return experts(x * 2) + 1

    gm = cfx.capture(model, x)
    names = [node.name for node in gm.graph.nodes]
    assert len(set(names)) == len(names)
    assert not any(name.strip("_0123456789") == "" for name in names)
    assert all("_ " not in str(guard) and "(_)" not in str(guard) for guard in gm.guards)
    same(model, gm, x)


def test_names_after_an_evaluation():
    """Likewise where the evaluator has recorded a branch: what follows is named at once."""

    def decide(x):
        if x.sum() > 0:
            x = x * 2
        return x

    def model(x):
        return decide(x - 1).nonzero().squeeze()

    x = torch.arange(6.0)
    gm = cfx.capture(model, x)
    names = [node.name for node in gm.graph.nodes]
    assert len(set(names)) == len(names)
    assert "nonzero" in names and "squeeze" in names and "_" not in names
    assert any("nonzero.shape[0] == 1" in guard.expression for guard in gm.guards)
    same(model, gm, x)
    same(model, gm, x + 5)
