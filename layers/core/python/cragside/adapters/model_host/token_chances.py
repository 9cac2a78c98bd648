"""Reads the probabilities of an answer's first tokens, as Ollama and hosts with OpenAI's API tell them."""

import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter
from pydantic import ValidationError as Malformed

# More than five are refused by some hosts.
TOP_TOKENS = 5


class _Token(BaseModel):
    token: str
    logprob: Annotated[float, Field(le=0, allow_inf_nan=True)]


class _Place(BaseModel):
    top_logprobs: Annotated[list[_Token], Field(max_length=100)]


_PLACES = TypeAdapter(Annotated[list[_Place], Field(min_length=1, max_length=1000)])


def probabilities(told: object) -> Mapping[str, float]:
    """The likeliest first tokens with their probabilities, from the `logprobs` of an answer.

    The same word in other letters, or behind a blank, is the same token. {} if the host told none.
    """
    try:
        first = _PLACES.validate_python(told, from_attributes=True)[0]  # of langchain: dicts, or objects
    except Malformed:
        return {}
    chances: dict[str, float] = {}
    for each in first.top_logprobs:
        word = each.token.strip().lower()
        chances[word] = chances.get(word, 0.0) + math.exp(each.logprob)
    return chances
