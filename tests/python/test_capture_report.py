"""What people read of a capture, on models as they are written: the report, errors, cfx.check."""
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import cfx
from cfx import CaptureError
from cfx.capturing import Guard
from cfx.capturing.report import statement


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.p = heads, 0.1
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ff = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=self.p if self.training else 0.0)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + F.dropout(self.ff(self.norm2(x)), self.p, self.training)


class Transformer(nn.Module):
    """Texts with a padding mask."""

    def __init__(self, words=50, width=16, most=32):
        super().__init__()
        self.most, self.embed = most, nn.Embedding(words, width, padding_idx=0)
        self.places = nn.Parameter(torch.randn(most, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(2))
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        length = ids.shape[1]
        if length > self.most:
            raise ValueError(f"a text of {length} words, at most {self.most}")
        mask = (ids != 0)[:, None, None, :]
        x = self.embed(ids) + self.places[:length]
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


class UNet(nn.Module):
    """Skips whose sizes are made equal where they are not."""

    def __init__(self, c=4):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 2 * c, 3, 2, 1)
        self.middle = nn.Conv2d(2 * c, 2 * c, 3, 2, 1)
        self.up1, self.up2 = (nn.ConvTranspose2d(2 * c, 2 * c, 2, 2),
                              nn.ConvTranspose2d(4 * c, c, 2, 2))  # fmt: skip
        self.out = nn.Conv2d(2 * c, 1, 1)

    def join(self, x, skip):
        if x.shape[-2:] != skip.shape[-2:]:
            x = F.interpolate(x, size=skip.shape[-2:])
        return torch.cat([x, skip], 1)

    def forward(self, x):
        assert x.shape[1] == 3, "three channels"
        a = F.relu(self.down1(x))
        b = F.relu(self.down2(a))
        y = self.join(self.up1(F.relu(self.middle(b))), b)
        return self.out(self.join(self.up2(y), a))


class Detector(nn.Module):
    """Boxes that data selects."""

    def __init__(self, kinds=5):
        super().__init__()
        self.body, self.box = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 4, 1)
        self.kind, self.most = nn.Conv2d(8, kinds, 1), 10

    def select(self, boxes, scores):
        best, kind = scores.max(-1)
        keep = best > 0.25
        if keep.sum() == 0:
            return boxes[:0], best[:0], kind[:0]
        boxes, best, kind = boxes[keep], best[keep], kind[keep]
        order = best.argsort(descending=True)[: self.most]
        return boxes[order], best[order], kind[order]

    def forward(self, images):
        features = F.relu(self.body(images))
        boxes = self.box(features).flatten(2).transpose(1, 2)
        scores = self.kind(features).flatten(2).transpose(1, 2).softmax(-1)
        found = []
        for i in range(images.shape[0]):
            b, s, k = self.select(boxes[i], scores[i])
            found.append({"boxes": b, "scores": s, "kinds": k})
        return found


def texts():
    ids = torch.randint(1, 50, (2, 7), generator=torch.Generator().manual_seed(0))
    ids[1, 5:] = 0
    return ids


def images(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def lines_of(text):
    """All fit into 100 columns."""
    lines = text.split("\n")
    assert max(map(len, lines)) <= 100
    return lines


def test_a_transformer():
    torch.manual_seed(0)
    model = Transformer()
    gm = cfx.capture(model, texts())
    report = cfx.check(model, gm, texts(), sizes={"ids": {0: [1, 4], 1: [1, 9]}}, train=True,
                       repeat=2)
    assert report, report
    flags = [n.target for n in gm.graph.nodes if str(n.target).endswith("training")]
    assert len(gm.graphs) == 1 and flags == ["blocks.0.training", "blocks.1.training"]
    lines = lines_of(str(cfx.explain(model, texts())))
    assert lines[0].startswith("Transformer: ") and "  ids.shape[1] <= 32 " in "\n".join(lines)
    with pytest.raises(CaptureError, match=r"ids.shape\[1\] > 32 was False at test_capture_report"):
        gm(texts().repeat(1, 5))


def test_a_unet():
    model = UNet()
    gm = cfx.capture(model, images(1, 3, 32, 32))
    report = cfx.check(model, gm, images(1, 3, 32, 32), sizes={"x": {0: [3], 2: [16], 3: [64]}})
    assert report, report
    lines = lines_of(str(cfx.explain(model, images(1, 3, 30, 30))))
    assert any(line.startswith("  x.shape[1] == 3 ") for line in lines)
    assert any(" != " in line for line in lines)  # the skip of an odd size, as it was
    with pytest.raises(CaptureError, match=r"x\.shape.* when the model was captured"):
        gm(images(1, 3, 30, 30))


def test_a_detector():
    torch.manual_seed(0)
    model = Detector()
    gm = cfx.capture(model, images(2, 3, 16, 16))
    for shape in ((2, 3, 16, 16), (1, 3, 16, 16), (3, 3, 20, 12)):
        for scale in (0.0, 1.0, 5.0):
            found, want = gm(images(*shape) * scale), model(images(*shape) * scale)
            assert len(found) == len(want)
            for a, b in zip(found, want):
                assert all(torch.equal(a[key], b[key]) for key in b)
    lines = lines_of(str(cfx.explain(model, images(2, 3, 16, 16))))
    assert "captured from their source, with all branches" in "\n".join(lines)


def test_long_lines_are_wrapped():
    class Odd(nn.Module):
        def pick(self, x):
            try:
                if x.sum() > 0:
                    return x * 2
            except ValueError as error:
                print(error)
            return -x

        def forward(self, x, name="a" * 200):
            return self.pick(x)

    lines = lines_of(str(cfx.explain(Odd(), torch.ones(3))))
    assert any(line.startswith("run as Python, because they cannot be captured") for line in lines)
    assert any("Odd.pick (test_capture_report.py:" in line for line in lines)


@pytest.mark.parametrize("args, why", [
    ((torch.ones(3),), "x has 1 dimensions, but had 2 when the model was captured; "),
    ((torch.ones(2, 3).double(),), "x has dtype torch.float64, but had torch.float32 when the "),
    ((None,), "x is None, but the model was captured with a tensor; "),
    ((torch.ones(2, 3), "b"), "how is 'b', but the model was captured with 'a'; "),
    ((torch.ones(1, 3),), "x.shape[0] > 1 was True at test_capture_report.py:"),
])  # fmt: skip
def test_a_call_of_another_kind(args, why):
    """What differs, and what to do."""
    gm = cfx.capture(lambda x, how="a": x * 2 if x.shape[0] > 1 else x, torch.ones(2, 3))
    with pytest.raises(CaptureError) as caught:
        gm(*args)
    text = str(caught.value)
    assert text.startswith(why)
    assert text.endswith("; capture it again with such arguments, or with recapture=True")


@pytest.mark.parametrize("expression, value, kind, text", [
    ("x.shape[0] > 1", True, "size", "x.shape[0] > 1"),
    ("x.shape[0] > 1", False, "size", "x.shape[0] <= 1"),
    ("(x.shape[0] % 2) == 0", False, "size", "x.shape[0] % 2 != 0"),
    ("x.shape[0]", 3, "size", "x.shape[0] == 3"),
    ("a < b", False, "data", "not (a < b)"),  # of nan both are false
    ("x.is_contiguous()", True, "layout", "x.is_contiguous()"),
    ("x.requires_grad", False, "grad", "not (x.requires_grad)"),
    ("len(chunk)", 3, "size", "len(chunk) == 3"),
    ("pair.0 is odd", False, "data", "not (pair.0 is odd)"),
])  # fmt: skip
def test_guards_as_statements(expression, value, kind, text):
    assert statement(Guard(kind, expression, value, "")) == text
