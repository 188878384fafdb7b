"""BERT-base, GPT-2, a Llama decoder with rotary embedding and cache, T5."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def heads_of(x, heads):
    """(batch, tokens, features) -> (batch, heads, tokens, features of one)"""
    batch, tokens, _ = x.shape
    return x.view(batch, tokens, heads, -1).transpose(1, 2)


def joined(x):
    batch, heads, tokens, width = x.shape
    return x.transpose(1, 2).reshape(batch, tokens, heads * width)


# ---- BERT-base ------------------------------------------------------------------------------


class BertLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dense = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def attention(self, x, mask):
        q, k, v = (heads_of(f(x), self.heads) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1)) + mask
        return self.dense(joined(torch.matmul(self.dropout(F.softmax(scores, dim=-1)), v)))

    def forward(self, x, mask):
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, words=30522, longest=512):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.positions = nn.Embedding(longest, width)
        self.types = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, heads, 4 * width) for _ in range(layers))
        self.pooler = nn.Linear(width, width)
        self.register_buffer("ids", torch.arange(longest).unsqueeze(0), persistent=False)

    def forward(self, tokens, types, mask):
        positions = self.ids[:, :tokens.size(1)]
        x = self.norm(self.words(tokens) + self.positions(positions) + self.types(types))
        mask = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(torch.float32).min
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


def bert(small):
    model = Bert(2, 64, 4, 100, 64) if small else Bert()
    length = 16 if small else 128
    tokens = torch.randint(1, 100, (1, length))
    mask = torch.ones(1, length, dtype=torch.long)
    mask[:, -3:] = 0
    return model, (tokens, torch.zeros_like(tokens), mask)


# ---- GPT-2 ----------------------------------------------------------------------------------


class Conv1D(nn.Module):
    """A linear layer with its weight the other way round, as GPT-2's checkpoints have it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.outputs = outputs
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.02)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        shape = x.size()[:-1] + (self.outputs,)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(shape)


def gelu_new(x):
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
    return 0.5 * x * (1.0 + torch.tanh(inner))


class GPT2Block(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = Conv1D(width, 3 * width), Conv1D(width, width)
        self.c_fc, self.c_out = Conv1D(width, 4 * width), Conv1D(4 * width, width)
        causal = torch.tril(torch.ones(longest, longest, dtype=torch.bool))
        self.register_buffer("causal", causal.view(1, 1, longest, longest), persistent=False)

    def attention(self, x):
        q, k, v = self.c_attn(x).split(x.size(-1), dim=2)
        q, k, v = heads_of(q, self.heads), heads_of(k, self.heads), heads_of(v, self.heads)
        scores = torch.matmul(q, k.transpose(-1, -2)) * (1.0 / math.sqrt(v.size(-1)))
        length = q.size(-2)
        lowest = torch.full([], torch.finfo(torch.float32).min, dtype=scores.dtype)
        scores = torch.where(self.causal[:, :, :length, :length], scores, lowest)
        return self.c_proj(joined(torch.matmul(nn.functional.softmax(scores, dim=-1), v)))

    def forward(self, x):
        x = x + self.attention(self.ln_1(x))
        return x + self.c_out(gelu_new(self.c_fc(self.ln_2(x))))


class GPT2(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, words=50257, longest=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.drop = nn.Dropout(0.1)
        self.h = nn.ModuleList(GPT2Block(width, heads, longest) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.wte.weight
        self.register_buffer("ids", torch.arange(longest).unsqueeze(0), persistent=False)

    def forward(self, tokens):
        x = self.drop(self.wte(tokens) + self.wpe(self.ids[:, :tokens.size(-1)]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def gpt2(small):
    model = GPT2(2, 64, 4, 100, 64) if small else GPT2()
    return model, (torch.randint(100, (1, 16 if small else 64)),)


# ---- Llama: rotary embedding, grouped heads, key-value cache --------------------------------


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        scale = torch.rsqrt(x.to(torch.float32).pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * (x.to(torch.float32) * scale).to(x.dtype)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class LlamaAttention(nn.Module):
    def __init__(self, width, heads, groups):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, groups * self.size, bias=False)
        self.v_proj = nn.Linear(width, groups * self.size, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin, keys, values):
        q, k = heads_of(self.q_proj(x), self.heads), heads_of(self.k_proj(x), self.groups)
        v = heads_of(self.v_proj(x), self.groups)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        keys, values = torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)
        past = keys.size(2) - q.size(2)
        allowed = x.new_ones((q.size(2), keys.size(2)), dtype=torch.bool).tril(diagonal=past)
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=allowed, enable_gqa=True)
        return self.o_proj(joined(y)), keys, values


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.input_norm, self.post_norm = RMSNorm(width), RMSNorm(width)
        self.attention = LlamaAttention(width, heads, groups)
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin, keys, values):
        y, keys, values = self.attention(self.input_norm(x), cos, sin, keys, values)
        x = x + y
        y = self.post_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y)), keys, values


class Llama(nn.Module):
    """One block after an embedding; positions go on where the cache ends."""

    def __init__(self, width, heads, groups, hidden, words):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.block = LlamaBlock(width, heads, groups, hidden)
        size = width // heads
        frequencies = 1.0 / 10000.0 ** (torch.arange(0, size, 2).float() / size)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, tokens, keys, values):
        positions = keys.size(2) + torch.cumsum(torch.ones_like(tokens), dim=1)[0] - 1
        angles = torch.outer(positions.float(), self.frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        return self.block(self.embed(tokens), angles.cos(), angles.sin(), keys, values)


def llama(small):
    width, heads, groups, hidden = (64, 8, 2, 128) if small else (2048, 32, 8, 5632)
    cache = torch.randn(2, 1, groups, 7, width // heads)
    tokens = torch.randint(100, (1, 5 if small else 32))
    return Llama(width, heads, groups, hidden, 100), (tokens, cache[0], cache[1])


# ---- T5 -------------------------------------------------------------------------------------


def relative_bucket(distance, both, buckets=32, far=128):
    """T5's buckets: exact up to a quarter (half) of them, then logarithmic up to `far`."""
    offset = torch.zeros_like(distance)
    if both:
        buckets //= 2
        offset = (distance > 0).to(torch.long) * buckets
        distance = torch.abs(distance)
    else:
        distance = -torch.min(distance, torch.zeros_like(distance))
    exact = buckets // 2
    ratio = torch.log(distance.float() / exact) / math.log(far / exact)
    large = exact + (ratio * (buckets - exact)).to(torch.long)
    large = torch.min(large, torch.full_like(large, buckets - 1))
    return offset + torch.where(distance < exact, distance, large)


class T5Attention(nn.Module):
    def __init__(self, width, heads, biased=False, both=False):
        super().__init__()
        self.heads, self.both = heads, both
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.bias = nn.Embedding(32, heads) if biased else None

    def position_bias(self, ids):
        distance = ids[None, :] - ids[:, None]
        values = self.bias(relative_bucket(distance, self.both))
        return values.permute([2, 0, 1]).unsqueeze(0)

    def forward(self, x, memory, bias):
        q = heads_of(self.q(x), self.heads)
        k, v = heads_of(self.k(memory), self.heads), heads_of(self.v(memory), self.heads)
        scores = torch.matmul(q, k.transpose(3, 2))
        if bias is not None:
            scores += bias
        weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        return self.o(joined(torch.matmul(weights, v)))


class T5Layer(nn.Module):
    def __init__(self, width, heads, hidden, decoder, first):
        super().__init__()
        self.norms = nn.ModuleList(RMSNorm(width) for _ in range(3 if decoder else 2))
        self.attention = T5Attention(width, heads, first, not decoder)
        self.cross = T5Attention(width, heads) if decoder else None
        self.wi = nn.Linear(width, hidden, bias=False)
        self.wo = nn.Linear(hidden, width, bias=False)

    def forward(self, x, memory, bias):
        y = self.norms[0](x)
        x = x + self.attention(y, y, bias)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), memory, None)
        return x + self.wo(F.relu(self.wi(self.norms[-1](x))))


class T5Stack(nn.Module):
    def __init__(self, layers, width, heads, hidden, decoder):
        super().__init__()
        self.decoder = decoder
        self.layers = nn.ModuleList(
            T5Layer(width, heads, hidden, decoder, i == 0) for i in range(layers))
        self.norm = RMSNorm(width)
        self.register_buffer("ids", torch.arange(512), persistent=False)

    def forward(self, x, memory):
        length = x.size(1)
        bias = self.layers[0].attention.position_bias(self.ids[:length])
        if self.decoder:
            bias = bias + torch.triu(x.new_full((length, length), float("-inf")), diagonal=1)
        for layer in self.layers:
            x = layer(x, memory, bias)
        return self.norm(x)


class T5(nn.Module):
    def __init__(self, layers=6, width=512, heads=8, hidden=2048, words=32128):
        super().__init__()
        self.shared = nn.Embedding(words, width)
        self.encoder = T5Stack(layers, width, heads, hidden, False)
        self.decoder = T5Stack(layers, width, heads, hidden, True)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.scale = width ** -0.5

    def forward(self, tokens, targets):
        memory = self.encoder(self.shared(tokens) * self.scale, None)
        y = self.decoder(self.shared(targets) * self.scale, memory)
        return self.lm_head(y * self.scale)


def t5(small):
    model = T5(2, 64, 4, 128, 100) if small else T5()
    return model, (torch.randint(100, (1, 12 if small else 64)), torch.randint(100, (1, 9)))
