"""The parts of bench/infer.py: models, the files that engines read, workers, tables."""
