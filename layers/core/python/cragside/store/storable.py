"""Makes text that every store can hold."""

import re

# Neither XML nor UTF-8 can hold these. One blank for each keeps the offsets of all marks.
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
# Characters of a call: no call into C should keep other threads from running for long.
_BLOCK = 50_000


def storable(text: str) -> str:
    """Return the text with a blank for each character that cannot be stored."""
    if len(text) <= _BLOCK:
        return _UNSTORABLE.sub(" ", text)
    blocks = (text[start : start + _BLOCK] for start in range(0, len(text), _BLOCK))
    return "".join(_UNSTORABLE.sub(" ", block) for block in blocks)
