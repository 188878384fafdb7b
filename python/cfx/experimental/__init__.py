"""What torch.fx.experimental has, as far as cfx has it: rewriter and meta_tracer (need torch)."""
