"""Passes for one dialect of operators."""
