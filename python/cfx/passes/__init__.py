"""Transforms under the names that torch.fx.passes gives them (they need torch)."""
