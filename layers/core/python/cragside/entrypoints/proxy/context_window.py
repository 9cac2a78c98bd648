"""How much evidence fits into a model's context window, and when to raise `num_ctx`. All sizes are in tokens.

Ollama silently drops the oldest messages of a request that exceeds its window. So the evidence is limited to what the
request and the answer leave of the largest possible window:

- `num_ctx` in the request is the user's limit and never changed;
- without it, the window that the host reports is used. If the enriched request does not fit, it is raised, at most to
  the model's limit. It is never lowered, because each change makes Ollama reload the model, which takes seconds;
- a model that is not loaded is loaded once, with the window for as much evidence as may come. A raised window is kept:
  prompts without evidence get it too, if they fit and name none;
- OpenAI's and Anthropic's APIs have no `num_ctx`, so the window that the host reports is the limit.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cragside.domain.context import CountTokens
from cragside.domain.token_counts import ModelWindows, most_tokens

# What Ollama gives a model that it loads, at least.
SMALLEST_DEFAULT = 4096
# Each new num_ctx makes Ollama reload the model, so there are few values.
_STEP = 4096
_ANSWER = 1024
_MESSAGE_FRAME = 8
# An image's patches: 256 (Gemma 3), 576 (LLaVA), 1,601 (Llama 3.2 Vision).
_IMAGE = 1024
_TEXT_FIELDS = ("prompt", "system", "suffix", "template")
# Evidence may take more tokens than estimated: rare Chinese takes 1.47 times as many with Llama 2's tokenizer.
_EVIDENCE_MARGIN = 1.5
_ANSWER_FIELDS = ("max_completion_tokens", "max_output_tokens", "max_tokens")


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """`current` is the window for the unchanged request, `largest` the window that the proxy may set.

    `reserve` is kept for the answer. `adjustable` tells whether `num_ctx` may be set.
    """

    current: int
    largest: int
    reserve: int
    adjustable: bool = True

    def evidence_tokens(self, budget: int, request_tokens: int) -> int:
        """The evidence that fits in addition to the request and the answer: 0 to `budget`."""
        return max(0, min(budget, int((self.largest - self.reserve - request_tokens) / _EVIDENCE_MARGIN)))

    def planned(self, budget: int, request_tokens: int) -> int | None:
        """The `num_ctx` for the request with as much evidence as may come."""
        return self.num_ctx_for(request_tokens + int(budget * _EVIDENCE_MARGIN))

    def num_ctx_for(self, request_tokens: int) -> int | None:
        """The `num_ctx` for an enriched request, None if it must not be set."""
        needed = request_tokens + self.reserve
        if not self.adjustable:
            return None
        if needed <= self.current:
            return self.current
        return min(-(-needed // _STEP) * _STEP, self.largest)


def own_window(request: Mapping[str, Any]) -> int | None:
    """The window that a request brings along."""
    options = request.get("options")
    return _positive(options.get("num_ctx")) if isinstance(options, dict) else None


def with_kept_window(request: Mapping[str, Any], windows: ModelWindows) -> dict[str, Any] | None:
    """A request in the window that its model keeps; None if it keeps none, or if the request has one or does not fit.

    A request that does not fit gets the window of the host, which the model has from then on.
    """
    model, options = request.get("model"), request.get("options") or {}
    kept = windows.kept(model) if isinstance(model, str) else None
    if kept is None or not isinstance(options, dict) or "num_ctx" in options:
        return None
    if tokens_of(request, most_tokens) + _reserve(request, options, kept) > kept:
        windows.forget(str(model))
        return None
    return {**request, "options": {**options, "num_ctx": kept}}


def window_of(
    request: Mapping[str, Any], *, limit: int | None, reported: int | None, adjustable: bool
) -> ContextWindow | None:
    """The window for a request, None if neither the host nor the request defines one.

    `limit` is the model's, `reported` the host's window for requests without `num_ctx`. `adjustable` tells that the API
    has a `num_ctx`.
    """
    options = request.get("options")
    given = options if adjustable and isinstance(options, dict) else {}
    own = _positive(given.get("num_ctx"))
    current = own or reported
    if current is None:
        return None
    current = min(current, limit or current)
    changeable = adjustable and "num_ctx" not in given and (options is None or isinstance(options, dict))
    largest = max(current, limit or 0) if changeable else current
    return ContextWindow(current, largest, _reserve(request, given, largest), changeable)


def _reserve(request: Mapping[str, Any], options: Mapping[str, Any], largest: int) -> int:
    asked = (options.get("num_predict"), *(request.get(name) for name in _ANSWER_FIELDS))
    wanted = next((tokens for tokens in map(_positive, asked) if tokens), None)
    # An unlimited answer must leave room for evidence.
    return min(_ANSWER, largest // 4) if wanted is None else min(wanted, largest // 2)


def _positive(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**53:
        return None
    return int(value) or None


def tokens_of(request: Mapping[str, Any], count_tokens: CountTokens) -> int:
    """The size of a request's prompt: texts, tools, images, earlier context and the frames of messages."""
    total = sum(count_tokens(text) for name in _TEXT_FIELDS if isinstance(text := request.get(name), str))
    if tools := request.get("tools"):
        total += count_tokens(json.dumps(tools))
    total += _IMAGE * _length(request.get("images")) + _length(request.get("context"))
    messages = request.get("messages")
    if isinstance(messages, list):
        total += sum(_message_tokens(message, count_tokens) for message in messages if isinstance(message, dict))
    return total


def _message_tokens(message: Mapping[str, Any], count_tokens: CountTokens) -> int:
    total = _MESSAGE_FRAME + _IMAGE * _length(message.get("images"))
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            total += count_tokens(part)
        elif isinstance(part, dict):
            text = part.get("text")
            total += count_tokens(text) if isinstance(text, str) else _IMAGE
    for name in ("thinking", "tool_calls"):
        if value := message.get(name):
            total += count_tokens(value if isinstance(value, str) else json.dumps(value))
    return total


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 0
