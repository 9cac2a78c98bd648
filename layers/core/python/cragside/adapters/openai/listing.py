"""What a host's list of models says of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# In the words of vLLM, OpenRouter and Groq.
_WINDOWS = ("max_model_len", "context_length", "context_window")


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model's longest context, and the context that the host gives it, in tokens, and its number of parameters.

    None where the host is silent.
    """

    longest: int | None = None
    window: int | None = None
    parameters: int | None = None


def models_in(answer: Any) -> Mapping[str, ListedModel]:
    """The models of `GET /v1/models`. Raises `ValueError` for an answer that is no such list."""
    listed = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        raise ValueError("no data")
    return {each["id"]: _model(each) for each in listed if isinstance(each, dict) and isinstance(each.get("id"), str)}


def _model(listed: Mapping[str, Any]) -> ListedModel:
    meta = listed.get("meta")  # llama.cpp's
    meta = meta if isinstance(meta, dict) else {}
    window = _first(*(listed.get(name) for name in _WINDOWS), meta.get("n_ctx"))
    return ListedModel(window or _first(meta.get("n_ctx_train")), window, _first(meta.get("n_params")))


def _first(*values: object) -> int | None:
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), None)
