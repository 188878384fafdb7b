"""Methods that forward calls, and several results."""
import torch
from torch import nn
from collections import OrderedDict


class VAE(nn.Module):
    def __init__(self, n=6, latent=2):
        super().__init__()
        self.encoder = nn.Sequential(OrderedDict([("fc1", nn.Linear(n, 5)), ("act", nn.SiLU())]))
        self.mu, self.logvar = nn.Linear(5, latent), nn.Linear(5, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 5), nn.ELU(), nn.Linear(5, n))

    def encode(self, x):
        h = self.encoder(x)
        return self.mu(h), self.logvar(h)

    def sample(self, mu, logvar):
        if not self.training:
            return mu
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.sample(mu, logvar)
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return {"out": self.decoder(z), "stats": (mu, logvar), "kl": kl}


def inputs():
    return [(torch.randn(3, 6),)]
