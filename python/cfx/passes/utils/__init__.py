"""What passes share, under the names that torch.fx.passes.utils gives it."""
