"""Quantization: prepare, calibrate, convert, run in integers."""
from .preparing import convert_fx, fuse_fx, prepare_fx, prepare_qat_fx

__all__ = ["fuse_fx", "prepare_fx", "prepare_qat_fx", "convert_fx"]
