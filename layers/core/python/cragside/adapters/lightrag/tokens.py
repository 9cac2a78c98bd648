"""The tokenizer LightRAG budgets its own context with. We only read passages, so an estimate is enough."""

import numpy as np

_CHARACTERS = 3
_BITS = 21  # of a Unicode code point


class CharacterTokens:
    """Three characters are one token: English text has four to five a token, so budgets err on the safe side.

    Real tokenizers took half of a query's time (LightRAG counts every entity, relation and passage it considers).
    Encoding is reversible, since LightRAG also cuts texts with it.
    """

    def encode(self, content: str) -> list[int]:
        """Numbers that each hold three code points."""
        points = np.frombuffer(content.encode("utf-32-le", "surrogatepass"), np.uint32)
        padded = np.zeros(-(-len(points) // _CHARACTERS) * _CHARACTERS, np.int64)
        # One more than the code point, so that padding differs from NUL.
        padded[: len(points)] = points.astype(np.int64) + 1
        grouped = padded.reshape(-1, _CHARACTERS)
        tokens: list[int] = (grouped[:, 0] | grouped[:, 1] << _BITS | grouped[:, 2] << 2 * _BITS).tolist()
        return tokens

    def decode(self, tokens: list[int]) -> str:
        """The text that was encoded."""
        packed = np.asarray(tokens, np.int64)
        mask = (1 << _BITS) - 1
        points = np.stack([packed & mask, packed >> _BITS & mask, packed >> 2 * _BITS & mask], axis=1).ravel()
        return (points[points > 0] - 1).astype(np.uint32).tobytes().decode("utf-32-le", "surrogatepass")
