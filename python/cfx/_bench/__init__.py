"""Engines beside each other: `python -m cfx bench --against ...`, and bench/infer.py.

- worker.py: one engine with one model, in a process of its own
- turns.py: starts workers, lets them take turns, and sums up
- verb.py: the command
"""
