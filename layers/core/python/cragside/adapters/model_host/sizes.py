"""Reads the number of a model's parameters out of a size or a name."""

import re

_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d{1,4}(?:\.\d{1,3})?)\s?([mMbB])(?![A-Za-z0-9])")
_UNITS = {"m": 1_000_000, "b": 1_000_000_000}


def parameters_in(text: str) -> int | None:
    """The number in a size (`134.52M`) or a name (`Qwen2.5-0.5B-Instruct`, `smollm2:135m`); None if it has none."""
    found = _SIZE.search(text)
    return int(float(found[1]) * _UNITS[found[2].lower()]) if found else None
