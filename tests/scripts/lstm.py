"""A recurrent layer of torch.nn, packed up by hand."""
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab=9, dim=4, hidden=3, tags=2, **kwargs):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, num_layers=2, batch_first=True,
                            bidirectional=kwargs.get("both", True))
        self.out = nn.Linear(hidden * 2, tags)

    def forward(self, words):
        h, (last, _) = self.lstm(self.embed(words))
        return self.out(h).argmax(-1), last[-1]


def inputs():
    return [(torch.tensor([[1, 2, 0], [4, 5, 6]]),)]
