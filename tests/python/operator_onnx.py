"""Calls of the rows that ONNX's operators need and PyTorch does not have: each with what it must
give, computed with PyTorch from the definition, or by a function of PyTorch that is a special
case."""
import math

import torch
from torch.nn.functional import adaptive_max_pool2d, conv2d, grid_sample, interpolate
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


# ---- resizing

RESIZE = {  # (mode, transform, rounding): what interpolate calls it
    ("nearest", "asymmetric", "floor"): {"mode": "nearest"},
    ("nearest", "half_pixel", "round_prefer_ceil"): {"mode": "nearest-exact"},
    ("linear", "half_pixel", "floor"): {"mode": "bilinear", "align_corners": False},
    ("linear", "align_corners", "floor"): {"mode": "bilinear", "align_corners": True},
    ("cubic", "half_pixel", "floor"): {"mode": "bicubic", "align_corners": False},
    ("cubic", "align_corners", "floor"): {"mode": "bicubic", "align_corners": True},
}


def interpolated(x, size, scales, roi, dims, *how):
    options = RESIZE[how[:3]]
    scale = scales and tuple(scales)
    if len(how) > 3:  # cubic_a, exclude_outside, antialias
        options = {**options, "antialias": True}
    return interpolate(x, size=size and tuple(size), scale_factor=scale, **options)


def resize_calls():
    image = randn(2, 3, 6, 7)
    calls = []
    for how in RESIZE:
        for size in ([9, 4], [6, 7], [1, 13]):
            calls.append((interpolated, image, size, None, None, [2, 3], *how))
        calls.append((interpolated, image, None, [2.0, 3.0], None, [-2, -1], *how))
        calls.append((interpolated, image.double(), [3, 9], None, None, [2, 3], *how))
    for mode, a in (("linear", -0.75), ("cubic", -0.5)):
        calls.append((interpolated, image, [3, 3], None, None, [2, 3], mode, "half_pixel", "floor",
                      a, True, True))
    # A region, and what is outside of it.
    def cropped(x, *args):
        y = interpolate(x[:, :, 1:4, 2:], size=(5, 9), mode="bilinear", align_corners=True)
        return y
    calls.append((cropped, image, [5, 9], None, [0.2, 2 / 6, 0.6, 1.0], [2, 3], "linear",
                  "tf_crop_and_resize"))

    def outside(x, *args):
        y = torch.full((1, 4), 7.0)
        y[0, 1:3] = x[0, [0, 1]]
        return y
    calls.append((outside, torch.tensor([[3.0, 5.0]]), [1, 4], None, [0.0, -1.0, 0.0, 2.0], None,
                  "nearest", "tf_crop_and_resize", "floor", -0.75, False, False, 7.0))

    def kept(x, *args):
        return interpolate(x, size=(12, 14), mode="nearest")
    calls.append((kept, image, [14, 14], None, None, [2, 3], "nearest", "asymmetric", "floor",
                  -0.75, False, False, 0.0, "not_larger"))
    calls.append((lambda x, *_: x.repeat_interleave(2, 0), torch.arange(6).view(2, 3), [4], None,
                  None, [0], "nearest", "asymmetric", "floor"))
    return calls


# ---- regions


def aligned(x, rois, images, size, scale=1.0, sampling=2, aligned=True, mode="avg"):
    """Points of regions inside of the image: the mean or the largest weighted neighbour."""
    h, w = x.shape[2:]
    results = []
    for (x1, y1, x2, y2), image in zip(rois.tolist(), images.tolist()):
        half = 0.5 if aligned else 0.0
        parts = []
        for begin, end, n in ((y1, y2, size[0]), (x1, x2, size[1])):
            begin, end = begin * scale - half, end * scale - half
            length = end - begin if aligned else max(end - begin, 1.0)
            steps = torch.arange(n * sampling, dtype=torch.float64) + 0.5
            parts.append(begin + steps * length / (n * sampling))
        ys, xs = torch.meshgrid(*parts, indexing="ij")
        grid = torch.stack([xs * 2 / (w - 1) - 1, ys * 2 / (h - 1) - 1], -1)[None].to(x.dtype)
        points = grid_sample(x[image][None], grid, padding_mode="border", align_corners=True)[0]
        if mode == "max":
            y0, x0 = ys.clamp(0).floor().long(), xs.clamp(0).floor().long()
            dy, dx = ys - y0, xs - x0
            y1_, x1_ = (y0 + 1).clamp(max=h - 1), (x0 + 1).clamp(max=w - 1)
            points = torch.stack([x[image][:, a, b] * f for a, b, f in (
                (y0, x0, (1 - dy) * (1 - dx)), (y0, x1_, (1 - dy) * dx),
                (y1_, x0, dy * (1 - dx)), (y1_, x1_, dy * dx))]).amax(0).to(x.dtype)
        points = points.view(-1, size[0], sampling, size[1], sampling)
        results.append(points.amax((2, 4)) if mode == "max" else points.mean((2, 4)))
    return torch.stack(results)


def pooled(x, rois, size, scale=1.0):
    results = []
    for image, x1, y1, x2, y2 in rois.tolist():
        x1, y1, x2, y2 = (math.floor(v * scale + 0.5) for v in (x1, y1, x2, y2))
        results.append(adaptive_max_pool2d(x[int(image), :, y1:y2 + 1, x1:x2 + 1], size))
    return torch.stack(results)


def region_calls():
    image = randn(2, 3, 9, 11)
    rois = torch.tensor([[1.0, 2.0, 7.5, 6.25], [0.5, 0.5, 9.0, 8.0], [3.0, 3.0, 3.5, 3.25]])
    images = torch.tensor([1, 0, 1])
    whole = torch.tensor([[1.0, 2.0, 1.0, 9.0, 7.0], [0.0, 0.0, 0.0, 10.0, 8.0]])
    return {
        "roi_align": [(aligned, image, rois, images, size, scale, sampling, half, mode)
                      for size, scale, sampling in (([2, 3], 1.0, 2), ([4, 1], 0.5, 1))
                      for half in (True, False) for mode in ("avg", "max")],
        "roi_max_pool": [(pooled, image, whole, [3, 2]),
                         (pooled, image.half(), whole.half(), [1, 4]),
                         (pooled, image.double(), whole.double(), [2, 2], 0.5)],
    }


# ---- boxes


def suppressed(boxes, scores, most=0, limit=0.0, least=None, center=False):
    if center:
        x, y, w, h = boxes.unbind(-1)
        boxes = torch.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    ends = boxes[..., :2], boxes[..., 2:]
    a, b = torch.minimum(*ends), torch.maximum(*ends)
    rows = []
    for image in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            taken = []
            for i in scores[image, kind].sort(descending=True, stable=True).indices.tolist():
                if len(taken) == most or (least is not None and scores[image, kind, i] <= least):
                    break
                overlaps = [0.0]
                for j in taken:
                    side = (torch.minimum(b[image, i], b[image, j]) -
                            torch.maximum(a[image, i], a[image, j])).clamp(min=0)
                    common = side.prod()
                    both = (b - a)[image, i].prod() + (b - a)[image, j].prod() - common
                    overlaps.append(float(common / both))
                if max(overlaps) <= limit:
                    taken.append(i)
            rows += [[image, kind, i] for i in taken]
    return torch.tensor(rows, dtype=torch.int64).view(-1, 3)


def box_calls():
    corner, size = randn(2, 12, 2), randn(2, 12, 2).abs() + 0.5
    boxes, scores = torch.cat([corner, corner + size], -1), randn(2, 3, 12).sigmoid()
    turned = boxes[..., [2, 1, 0, 3]].double()
    middle = torch.cat([corner, size], -1)
    return [(suppressed, boxes, scores, 4, 0.3), (suppressed, boxes, scores, 12, 0.5, 0.4),
            (suppressed, turned, scores.double(), 12, 0.1), (suppressed, boxes, scores, 0, 0.5),
            (suppressed, middle, scores, 3, 0.2, None, True),
            (suppressed, boxes, scores[:, :0], 3, 0.2)]


# ---- deformable convolution


def shifted(x, dy, dx):
    """x[..., i + dy, j + dx], zero outside, for whole numbers."""
    y = torch.zeros_like(x)
    h, w = x.shape[2:]
    for i in range(h):
        for j in range(w):
            if 0 <= i + dy < h and 0 <= j + dx < w:
                y[:, :, i, j] = x[:, :, i + dy, j + dx]
    return y


def deformed(dy, dx, factor):
    """What offsets that are the same everywhere give: a convolution of the shifted image. Its
    padding must not be shifted, so there is none."""
    def run(x, weight, offset, bias, mask, stride, padding, dilation, groups, offset_groups):
        a, b = math.floor(dy), math.floor(dx)
        y = sum(shifted(x, a + i, b + j) * ((dy - a) if i else 1 - (dy - a)) *
                ((dx - b) if j else 1 - (dx - b)) for i in (0, 1) for j in (0, 1))
        return conv2d(y * factor, weight, bias, stride, padding, dilation, groups)
    return run


def deform_calls():
    calls = []
    for groups, offset_groups, stride, dilation in ((1, 1, [1, 1], [1, 1]), (2, 2, [2, 1], [1, 2])):
        x, weight, bias = randn(2, 4, 7, 8), randn(6, 4 // groups, 3, 2), randn(6)
        size = conv2d(x, weight, bias, stride, 0, dilation, groups).shape[2:]
        for dy, dx, factor in ((0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (0.5, 0.25, 0.5), (0.0, 9.0, 1.0)):
            offset = torch.tensor([dy, dx]).repeat(6 * offset_groups)[None, :, None, None]
            mask = torch.full((2, 6 * offset_groups, *size), factor)
            calls.append((deformed(dy, dx, factor), x, weight, offset.expand(2, -1, *size), bias,
                          mask, stride, [0, 0], dilation, groups, offset_groups))
    offset = torch.zeros(2, 12, 9, 9)
    calls.append((deformed(0.0, 0.0, 1.0), randn(2, 4, 9, 8), randn(6, 4, 3, 2), offset, None, None,
                  [1, 1], [1, 1], [1, 1], 1, 1))
    return calls


# ---- recurrent layers

ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}  # PyTorch's gates among ONNX's


def turned(cell, t, hidden):
    """Weights with the gates in PyTorch's order."""
    return torch.cat([t[i * hidden:(i + 1) * hidden] for i in ORDER[cell]])


def by_torch(cell, x, w, r, b=None, lengths=None, h=None, c=None, p=None, direction="forward",
             activations="", *rest):
    """PyTorch's layer; its GRU multiplies before it resets."""
    count, hidden = w.shape[0], r.shape[2]
    layer = getattr(torch.nn, cell)(x.shape[2], hidden, bidirectional=count == 2,
                                    bias=b is not None, dtype=x.dtype)
    for d in range(count):
        names = "_reverse" if d else ""
        parts = {"weight_ih": w[d], "weight_hh": r[d]}
        if b is not None:
            parts["bias_ih"], parts["bias_hh"] = b[d].chunk(2)
        for name, value in parts.items():
            getattr(layer, f"{name}_l0{names}").data = turned(cell, value, hidden)
    state = None
    if h is not None:
        state = (h, c) if cell == "LSTM" else h
    if direction == "reverse":
        assert lengths is None
        x = x.flip(0)
    with torch.no_grad():
        if lengths is None:
            y, last = layer(x, state)
        else:
            packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
            y, last = layer(packed, state)
            y = pad_packed_sequence(y, total_length=x.shape[0])[0]
    y = y.view(*y.shape[:2], count, hidden).transpose(1, 2)
    if direction == "reverse":
        y = y.flip(0)
    y = y.contiguous()
    if cell == "LSTM":
        return y, *last
    return y, last, last.new_zeros(*last.shape[:2], 0)


def peeping(cell, x, w, r, b, lengths, h, c, p, direction, activations, alpha, beta, clip, linear,
            forget):
    """One direction of an LSTM from its definition."""
    n = r.shape[2]
    functions = {"HardSigmoid": lambda v: (alpha[0] * v + beta[0]).clamp(0, 1),
                 "Softsign": lambda v: v / (1 + v.abs()), "Tanh": torch.tanh,
                 "Sigmoid": torch.sigmoid}
    f, g, k = (functions[name] for name in activations.split(","))

    def cut(v):
        return v.clamp(-clip, clip) if clip else v
    h, c = h[0], c[0]
    pi, po, pf = p[0].split(n)
    out = []
    for t in range(x.shape[0]):
        i, o, fo, ce = (x[t] @ w[0].T + h @ r[0].T + b[0].view(2, -1).sum(0)).split(n, -1)
        i = f(cut(i + pi * c))
        fo = 1 - i if forget else f(cut(fo + pf * c))
        c = fo * c + i * g(cut(ce))
        h = f(cut(o + po * c)) * k(cut(c))
        out.append(h)
    return torch.stack(out)[:, None], h[None], c[None]


def resetting(cell, x, w, r, b, *rest):
    """A GRU that resets before it multiplies."""
    n = r.shape[2]
    h = torch.zeros(x.shape[1], n)
    wb, rb = b[0].chunk(2)
    out = []
    for t in range(x.shape[0]):
        g = x[t] @ w[0].T + wb
        z, s = torch.sigmoid(g[:, :2 * n] + h @ r[0, :2 * n].T + rb[:2 * n]).split(n, -1)
        new = torch.tanh(g[:, 2 * n:] + (s * h) @ r[0, 2 * n:].T + rb[2 * n:])
        h = (1 - z) * new + z * h
        out.append(h)
    return torch.stack(out)[:, None], h[None], h.new_zeros(1, h.shape[0], 0)


def recurrent_calls():
    calls = []
    for cell, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for count, direction in ((1, "forward"), (2, "bidirectional"), (1, "reverse")):
            x, h = randn(5, 3, 2), randn(count, 3, 4)
            w, r = randn(count, 4 * gates, 2), randn(count, 4 * gates, 4)
            b = randn(count, 8 * gates)
            lengths = None if direction == "reverse" else torch.tensor([5, 2, 3])
            c = h.neg() if cell == "LSTM" else None
            for dtype in (torch.float32, torch.float64):
                args = [None if t is None else t.to(dtype) for t in (x, w, r, b)]
                states = [None if t is None else t.to(dtype) for t in (h, c)]
                calls.append((by_torch, cell, *args, lengths, *states, None, direction, "", [], [],
                              0.0, True))
            calls.append((by_torch, cell, x, w, r, None, None, None, None, None, direction, "", [],
                          [], 0.0, True))
    x, w, r, b = randn(5, 3, 2), randn(1, 16, 2), randn(1, 16, 4), randn(1, 32)
    h, p = randn(1, 3, 4), randn(1, 12)
    for names, clip, forget in (("Sigmoid,Tanh,Tanh", 0.0, False), ("Sigmoid,Tanh,Tanh", 0.3, True),
                                ("HardSigmoid,Softsign,Tanh", 0.5, False)):
        calls.append((peeping, "LSTM", x, w, r, b, None, h, h.neg(), p, "forward", names, [0.3],
                      [0.4], clip, False, forget))
    calls.append((resetting, "GRU", x, w[:, :12], r[:, :12], b[:, :24]))
    return calls


# ---- linear attention


def linear_attention(q, k, v, state=None, decay=None, beta=None, rule="linear", scale=0.0):
    batch, steps, heads, size = q.shape
    kinds = k.shape[2]
    s = torch.zeros(batch, kinds, size, v.shape[3]) if state is None else state.clone()
    scale = scale or 1 / math.sqrt(size)
    out = []
    for t in range(steps):
        kt, vt = k[:, t].unsqueeze(-1), v[:, t].unsqueeze(-2)
        if "gated" in rule:
            s = s * decay[:, t].exp().unsqueeze(-1)
        if "delta" in rule:
            rate = beta[:, t].view(batch, -1, 1, 1)
            vt = rate * (vt - (s * kt).sum(-2, keepdim=True))
        s = s + kt * vt
        read = s.repeat_interleave(heads // kinds, 1)
        out.append(scale * (q[:, t].unsqueeze(-1) * read).sum(-2))
    return torch.stack(out, 1), s


def linear_calls():
    q, k, v = randn(2, 4, 6, 3), randn(2, 4, 2, 3) / 2, randn(2, 4, 2, 5)
    decay, beta, state = -randn(2, 4, 2, 3).abs(), randn(2, 4, 2).sigmoid(), randn(2, 2, 3, 5)
    return [(linear_attention, q, k, v), (linear_attention, q, k, v, state, decay, None, "gated"),
            (linear_attention, q, k, v, None, None, beta[..., :1], "delta"),
            (linear_attention, q, k, v, state, decay[..., :1], beta, "gated_delta", 0.5)]


def calls():
    return {"resize_nd": resize_calls(), "non_max_suppression": box_calls(),
            "deform_conv2d": deform_calls(), "recurrent_sequence": recurrent_calls(),
            "linear_attention": linear_calls(), **region_calls()}
