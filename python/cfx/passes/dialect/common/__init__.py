"""Passes for every dialect: see cse_pass."""
