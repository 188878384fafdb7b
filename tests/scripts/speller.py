"""One GRU reads letters, another writes some until it ends: attention, and a while loop."""
import torch
from torch import nn

BEGIN, END = 0, 1
MOST = 12


class Glance(nn.Module):
    """What was read, weighted by how well it fits to the state."""

    def __init__(self, width):
        super().__init__()
        self.ask, self.answer = nn.Linear(width, width), nn.Linear(width, width)
        self.fit = nn.Linear(width, 1)

    def forward(self, state, read):
        fits = self.fit(torch.tanh(self.ask(state).unsqueeze(1) + self.answer(read)))
        return (fits.softmax(1) * read).sum(1)


class Speller(nn.Module):
    def __init__(self, letters=9, width=8):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.reader = nn.GRU(width, width, batch_first=True)
        self.glance = Glance(width)
        self.cell = nn.GRUCell(2 * width, width)
        self.write = nn.Linear(width, letters)

    def forward(self, word):
        read, last = self.reader(self.letters(word))
        state = last[-1]
        letter = torch.full((1,), BEGIN)
        spelled, ended = [letter], False
        while not ended and len(spelled) < MOST:
            seen = torch.cat([self.letters(letter), self.glance(state, read)], dim=-1)
            state = self.cell(seen, state)
            letter = self.write(state).argmax(-1)
            spelled.append(letter)
            ended = int(letter) == END
        return torch.stack(spelled, dim=1), state, len(spelled)


def inputs():
    return [(torch.randint(2, 9, (1, n)),) for n in (1, 4, 9)]
