"""Random quantized graphs in the reference form, lowered: `make(seed)` gives a GraphModule and its
inputs.

All scales are powers of two, biases are multiples of the scale of the sums, and sums are short:
float32 computes all of it without rounding, so that the integer form gives the same bits.
"""
import random

import cfx
import torch

SHAPE = (2, 4, 4, 4)
BYTES = {"torch.uint8": (0, 255), "torch.int8": (-128, 127)}
UNARY = [
    ("sigmoid", ""), ("tanh", ""), ("hardswish", ""), ("hardsigmoid", ""), ("silu", ""),
    ("gelu", ', "none"'), ("elu", ""), ("leaky_relu", ", 0.25"), ("exp", ""), ("abs", ""),
    ("neg", ""), ("square", ""), ("add", ", 1.5"), ("mul", ", -0.5"), ("clamp", ", -1.0, 2.0"),
    ("relu6", ""), ("hardtanh", ", -2.0, 0.5"),
]  # fmt: skip
CLAMPS = [("relu", ""), ("relu6", ""), ("hardtanh", ", -2.0, 1.0"), ("clamp", ", -1, 3.0"),
          ("clamp_min", ", 0.5"), ("clamp_max", ", 4")]  # fmt: skip
# (row, further arguments, whether the values are as many): of a tensor of SHAPE
MOVES = [
    ("permute", ", [0, 1, 3, 2]", True), ("transpose", ", 2, 3", True), ("clone", "", True),
    ("contiguous", "", True), ("flip", ", [1, 2]", True), ("roll", ", [1], [2]", True),
    ("relu", "", True), ("dropout", ", 0.5, False", True), ("channel_shuffle", ", 2", True),
    ("max_pool2d", ", 3, 1, 1", True), ("detach", "", True), ("max_pool2d", ", 2", False),
    ("slice", ", 1, 1, 3", False), ("select", ", 1, 2", False), ("flatten", ", 1", False),
    ("reshape", ", [2, -1, 8]", False), ("view", ", [8, 16]", False), ("squeeze", "", False),
    ("unsqueeze", ", 1", False), ("pad", ", [1, 1]", False), ("repeat", ", [1, 2, 1, 1]", False),
    ("constant_pad_nd", ", [1, 0, 0, 1], 0.0", False), ("pixel_shuffle", ", 2", False),
    ("upsample_nearest2d", ", None, [2.0, 2.0]", False), ("amax", ", [1]", False),
    ("getitem", ", (0, slice(None, None, 2))", False), ("narrow", ", 2, 1, 2", False),
    ("expand", ", [3, -1, -1, -1, -1]", False), ("diagonal", ", 0, 2, 3", False),
    ("movedim", ", [1], [3]", False), ("pixel_unshuffle", ", 2", False), ("unbind", ", 1", False),
]  # fmt: skip


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.lines, self.state, self.results = [], {}, []
        self.count = 0

    def call(self, row, arguments, name=None):
        self.count += 1
        name = name or f"v{self.count}"
        self.lines.append(f"  %{name} = call_function[target=cfx.ops.{row}]({arguments})")
        return f"%{name}"

    def attribute(self, tensor):
        name = f"t{len(self.state)}"
        self.state[name] = tensor
        self.count += 1
        self.lines.append(f"  %{name}_{self.count} = get_attr[target={name}]()")
        return f"%{name}_{self.count}"

    def grid(self):
        """The arguments of quantize and dequantize behind the tensor, and the scale."""
        dtype = self.random.choice(list(BYTES))
        low, high = BYTES[dtype]
        if self.random.random() < 0.2:
            high = low + 127
        middle = 0 if low < 0 else 128
        zero = self.random.choice([low, high, middle, self.random.randint(low, high)])
        scale = 2.0 ** self.random.randint(-5, -2)
        return f"{scale}, {max(low, min(zero, high))}, {low}, {high}, {dtype}", scale

    def quantized(self, x, grid=None):
        """x quantized and dequantized: the result, and its scale."""
        grid, scale = grid or self.grid()
        q = self.call("quantize_per_tensor", f"{x}, {grid}")
        return self.call("dequantize_per_tensor", f"{q}, {grid}"), scale

    def weights(self, shape):
        """Integer weights that are dequantized, and their scales."""
        r = self.random
        w = torch.randint(-128, 128, shape, dtype=torch.int8, generator=self.generator)
        w = self.attribute(w)
        if r.random() < 0.3:
            scale, zero = 2.0 ** r.randint(-9, -6), r.choice([0, 3, -128])
            return self.call("dequantize_per_tensor",
                             f"{w}, {scale}, {zero}, -128, 127, torch.int8"), torch.tensor(scale)
        scales = 2.0 ** torch.randint(-9, -5, shape[:1], generator=self.generator).float()
        zeros = torch.randint(-3, 4, shape[:1], generator=self.generator) * r.choice([0, 1])
        scale, zero = self.attribute(scales), self.attribute(zeros)
        zero = "None" if r.random() < 0.3 and not zeros.any() else zero
        return self.call("dequantize_per_channel",
                         f"{w}, {scale}, {zero}, 0, -128, 127, torch.int8"), scales

    def bias(self, n, scales):
        if self.random.random() < 0.4:
            return "None"
        steps = torch.randint(-999, 999, (n,), generator=self.generator)
        return self.attribute(steps * scales)

    def end(self, y):
        """Clamps, and mostly a quantize."""
        for _ in range(self.random.choice([0, 0, 1, 1, 2])):
            row, more = self.random.choice(CLAMPS)
            y = self.call(row, y + more)
        if self.random.random() < 0.15:
            y = self.call("neg", y)
            self.results.append(y)
        return self.quantized(y)

    # Statements: a dequantized tensor of SHAPE and its scale become another.

    def conv(self, x, scale):
        r = self.random
        kernel, groups = r.choice([1, 3]), r.choice([1, 2, 4])
        w, scales = self.weights((4, 4 // groups, kernel, kernel))
        padding = r.choice([f"[{kernel // 2}, {kernel // 2}]", str(kernel // 2), '"same"'])
        bias = self.bias(4, scales * scale)
        return self.end(self.call("conv2d",
                                  f"{x}, {w}, {bias}, [1, 1], {padding}, 1, {groups}"))

    def linear(self, x, scale):
        w, scales = self.weights((4, 4))
        return self.end(self.call("linear", f"{x}, {w}, {self.bias(4, scales * scale)}"))

    def matmul(self, x, scale):
        y, _ = self.quantized(self.call("transpose", f"{x}, 2, 3"))
        return self.end(self.call(self.random.choice(["matmul"]), f"{x}, {y}"))

    def pair(self, x, scale):
        y, _ = self.quantized(self.call("neg", x))
        return self.end(self.call(self.random.choice(["add", "mul"]), f"{x}, {y}"))

    def mean(self, x, scale):
        row, more = self.random.choice([("mean", ", [2, 3], True"), ("adaptive_avg_pool2d", ", 1"),
                                        ("avg_pool2d", ", [1, 2], [1, 1], [0, 1], False, True, 4")])
        y, _ = self.end(self.call(row, x + more))
        if row == "avg_pool2d":
            y = self.call("slice", f"{y}, 3, 0, 4")
        return self.quantized(self.call("add", f"{x}, {y}"))

    def function(self, x, scale):
        y = x
        for _ in range(self.random.choice([1, 1, 2, 3])):
            row, more = self.random.choice(UNARY)
            y = self.call(row, y + more)
        if self.random.random() < 0.3:
            y = self.call("mul", f"{x}, {y}")
        return self.quantized(y)

    def move(self, x, scale):
        row, more, same = self.random.choice(MOVES)
        y = self.call(row, x + more)
        if row == "unbind":
            y = self.call("getitem", f"{y}, 1")
        if same and self.random.random() < 0.5:
            return self.quantized(y)
        if self.random.random() < 0.5:
            y, _ = self.quantized(y)
        self.results.append(y)
        return x, scale

    def parts(self, x, scale):
        grid = self.grid()
        x, _ = self.quantized(x, grid)
        split = self.call("chunk", f"{x}, 2, 1")
        a, b = (self.call("getitem", f"{split}, {i}") for i in range(2))
        if self.random.random() < 0.5:
            b, _ = self.quantized(self.call("relu", b), self.random.choice([grid, None]))
        return self.quantized(self.call("cat", f"[{b}, {a}], 1"), grid)

    def float(self, x, scale):
        return self.quantized(self.call("mul", self.call("softmax", f"{x}, 1") + ", 4.0"))

    def again(self, x, scale):
        return self.quantized(x)

    def make(self):
        statements = [self.conv, self.linear, self.matmul, self.pair, self.mean, self.function,
                      self.move, self.move, self.parts, self.float, self.again]
        self.lines += ["graph():", "  %x = placeholder[target=x]()"]
        x, scale = self.quantized("%x")
        made = [(x, scale)]
        for _ in range(self.random.randint(2, 8)):
            made.append(self.random.choice(statements)(*self.random.choice(made[-2:])))
        self.results.append(made[-1][0])
        self.lines.append(f"  output(({', '.join(self.results)},))")
        return "\n".join(self.lines) + "\n"


def make(seed):
    maker = Maker(seed)
    graph = cfx.parse(maker.make())
    x = torch.randint(-300, 300, SHAPE, generator=maker.generator) / 64
    return cfx.GraphModule(maker.state, graph), x
