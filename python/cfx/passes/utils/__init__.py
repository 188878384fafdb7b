"""Helpers shared by passes, under the names of torch.fx.passes.utils."""
