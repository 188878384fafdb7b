"""What to say of a model that still has the observers of cfx.quantize."""
from typing import Any


def advice_if_prepared(module: Any) -> str:
    """What to do with such a model instead of running it in C or writing it to a file; "" for
    others."""
    prepared = getattr(module, "meta", {}).get("quantization") == "prepared"
    if not prepared or not any(hasattr(m, "calculate_qparams") for m in module.modules()):
        return ""
    return ("the model is prepared for quantization and not converted, and its observers only work "
            "in Python. Convert it first (cfx.quantize.convert_fx); to calibrate or convert it "
            "later, keep it with torch.save(prepared, path), or its state_dict()")
