"""A decoder that keeps the keys and values of what it has read, and writes until a stop token."""
from dataclasses import dataclass
from typing import Tuple

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Shape:
    width: int = 8
    heads: int = 2
    depth: int = 2
    words: int = 13
    longest: int = 24
    stop: Tuple[int, ...] = (0, 5)


class Look(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.join = nn.Linear(shape.width, shape.width)

    def by_head(self, t):
        batch, length, width = t.shape
        return t.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, memory):
        q, k, v = (self.by_head(t) for t in self.qkv(x).chunk(3, dim=-1))
        if memory is not None:
            k = torch.cat((memory[0], k), dim=-2)
            v = torch.cat((memory[1], v), dim=-2)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=memory is None)
        return self.join(seen.transpose(1, 2).flatten(-2)), (k, v)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(shape.width) for _ in range(2))
        self.look = Look(shape)
        self.think = nn.Sequential(nn.Linear(shape.width, 16), nn.GELU(),
                                   nn.Linear(16, shape.width))

    def forward(self, x, memory=None):
        seen, memory = self.look(self.norms[0](x), memory)
        x = x + seen
        return x + self.think(self.norms[1](x)), memory


class Writer(nn.Module):
    def __init__(self, shape=None):
        super().__init__()
        self.shape = shape or Shape()
        self.parts = nn.ModuleDict({
            "word": nn.Embedding(self.shape.words, self.shape.width),
            "place": nn.Embedding(self.shape.longest, self.shape.width),
            "layers": nn.ModuleList([Layer(self.shape) for _ in range(self.shape.depth)]),
        })
        self.score = nn.Linear(self.shape.width, self.shape.words, bias=False)
        self.score.weight = self.parts.word.weight  # tied

    def read(self, words, first, memories):
        places = torch.arange(first, first + words.shape[1])
        x = self.parts["word"](words) + self.parts["place"](places)
        kept = []
        for i, layer in enumerate(self.parts["layers"]):
            x, memory = layer(x, memories[i] if memories else None)
            kept.append(memory)
        return self.score(x[:, -1]), kept

    def forward(self, words, most: int = 6):
        scores, memories = self.read(words, 0, [])
        text, place = [words], words.shape[1]
        for _ in range(most):
            word = scores.argmax(-1, keepdim=True)
            text.append(word)
            if word.item() in self.shape.stop:
                break
            scores, memories = self.read(word, place, memories)
            place += 1
        return torch.cat(text, dim=1), place


def inputs():
    return [(torch.randint(1, 13, (1, n)),) for n in (1, 3, 7)]
