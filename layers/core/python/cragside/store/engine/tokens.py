"""Estimates the tokens by which LightRAG budgets its own context. We only read passages, so that is enough."""

from collections.abc import Sequence
from typing import overload

CHARACTERS_PER_TOKEN = 3


class CharacterTokens:
    """Takes three characters for a token: English text has four to five, so budgets err on the safe side.

    LightRAG counts every entity, relation and passage it considers, and a real tokenizer would read them all.
    """

    def encode(self, content: str) -> "TokenView":
        """Return the text's tokens, without computing any."""
        return TokenView(content)

    def decode(self, tokens: "TokenView") -> str:
        """Return the text that the tokens, or a slice of them, stand for."""
        return tokens.text


class TokenView(Sequence[int]):
    """Shows a text as tokens of three characters: its length and slices are all that LightRAG asks for."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __len__(self) -> int:
        return -(-len(self.text) // CHARACTERS_PER_TOKEN)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> "TokenView": ...

    def __getitem__(self, index: "int | slice") -> "int | TokenView":
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return TokenView(self.text[start * CHARACTERS_PER_TOKEN : stop * CHARACTERS_PER_TOKEN])
        position = range(len(self))[index] * CHARACTERS_PER_TOKEN
        return hash(self.text[position : position + CHARACTERS_PER_TOKEN])
