"""The infrastructure of passes: pass_base, pass_manager, partitioner."""
