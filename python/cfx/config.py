"""Settings that torch.fx has. cfx shows no progress of its own."""

disable_progress = True
verbose_progress = False
do_not_emit_stack_traces = False
