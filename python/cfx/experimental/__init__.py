"""The modules of torch.fx.experimental that cfx provides. They need torch."""
