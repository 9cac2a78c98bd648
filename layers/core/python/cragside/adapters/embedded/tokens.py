"""How many tokens a text takes, without a tokenizer."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

_LOWER, _UPPER, _DIGIT, _SPACE, _MARK, _CONTINUATION, _LEAD = range(7)
_LONG_WORD = 6


def _byte_classes() -> npt.NDArray[np.uint8]:
    classes = np.full(256, _MARK, dtype=np.uint8)
    for byte in range(256):
        character = chr(byte)
        if byte >= 0x80:
            # What begins with F0 (emoji) rarely has a piece of its own: all four bytes count.
            classes[byte] = _LEAD if 0xC0 <= byte < 0xF0 else _CONTINUATION
        elif character.islower():
            classes[byte] = _LOWER
        elif character.isupper():
            classes[byte] = _UPPER
        elif character.isdigit():
            classes[byte] = _DIGIT
        elif character == " ":
            classes[byte] = _SPACE
    return classes


_CLASSES = _byte_classes()


def count_tokens(text: str) -> int:
    """A cautious estimate of the text's tokens, 0 for the empty text; 0.04 ms for 1,000 characters, no model loaded.

    Calibrated on Llama 2's tokenizer (32,000 pieces), which splits finer than those of today's models. On CLAP-NQ's
    passages the median lies 18 % above its exact count and one in a hundred below 0.97 of it (the lowest: 0.85). What
    has no pieces of its own (digits, most scripts, emoji) is counted by the byte; base64 is underestimated by a fifth.
    """
    if len(text) > 1:
        return _estimate(text)
    return _of_a_character(text) if text else 0


@lru_cache(maxsize=4096)
def _of_a_character(character: str) -> int:
    # Where a text has no blanks, splitting asks for every single character.
    return _estimate(character)


def _estimate(text: str) -> int:
    classes = _CLASSES[np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)]
    count = np.bincount(classes, minlength=7)
    letter = classes <= _UPPER
    # Edges of words: +1 where one begins, -1 behind its last letter.
    edges = np.diff(letter.astype(np.int8), prepend=0, append=0)
    lengths = np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)
    beyond = int(np.maximum(lengths - _LONG_WORD, 0).sum())
    humps = int(np.count_nonzero((classes[1:] == _UPPER) & (classes[:-1] == _LOWER)))
    estimate = (
        1
        + 0.85 * len(lengths)
        + 0.09 * (count[_LOWER] + count[_UPPER])
        + 0.18 * beyond
        + 0.40 * count[_UPPER]
        + 0.60 * humps
        + 0.05 * count[_SPACE]
        + count[_DIGIT]
        + count[_MARK]
        + count[_CONTINUATION]
    )
    return int(np.ceil(estimate))
