"""The two forms of a rerank request, and the check of an answer in either."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, FailFast, Field, RootModel, TypeAdapter
from pydantic import ValidationError as Malformed

# `documents`: vLLM, llama.cpp, Cohere, Jina, LiteLLM. `texts`: Hugging Face's TEI.
Form = Literal["documents", "texts"]


class _Rank(BaseModel):
    index: Annotated[int, Field(ge=0, strict=True)]
    score: Annotated[
        float, Field(allow_inf_nan=False, strict=True, validation_alias=AliasChoices("relevance_score", "score"))
    ]


# Noting what is wrong with each of a million entries takes hundreds of times the memory of an answer.
class _Ranks(RootModel[list[_Rank]]):
    root: Annotated[list[_Rank], FailFast()]


class _Results(BaseModel):
    results: _Ranks


_ANSWER: TypeAdapter[_Ranks | _Results] = TypeAdapter(_Ranks | _Results)


def request(form: Form, model: str | None, query: str, texts: Sequence[str]) -> dict[str, Any]:
    """The body of a request."""
    if form == "texts":
        # TEI serves one model, and refuses a text that the model cannot read whole unless it may cut it.
        return {"query": query, "texts": list(texts), "truncate": True}
    return {**({"model": model} if model else {}), "query": query, "documents": list(texts)}


def scores_in(body: bytes, count: int) -> list[float] | None:
    """The scores in the order of the texts; None unless the answer has exactly one finite score for each."""
    try:
        answer = _ANSWER.validate_json(body)
    except Malformed:
        return None
    ranks = (answer.results if isinstance(answer, _Results) else answer).root
    scores = {rank.index: rank.score for rank in ranks}
    if len(ranks) != count or scores.keys() != set(range(count)):
        return None
    return [scores[index] for index in range(count)]
