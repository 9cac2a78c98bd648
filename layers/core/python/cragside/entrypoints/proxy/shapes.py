"""The routes that carry prompts, in one form: `messages` or `prompt`, as the enricher knows them, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cragside.domain.query import asks_why, question_of
from cragside.domain.typed import Typed, is_client_task, sets_a_client_task, text_parts, typed_in, typed_part

CHAT, GENERATE = "/api/chat", "/api/generate"
OPENAI_CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
MESSAGES = "/v1/messages"
ROUTES = frozenset({CHAT, GENERATE, OPENAI_CHAT, COMPLETIONS, RESPONSES, MESSAGES})
# These have a `num_ctx`, and evidence can be told in their answers' last line.
OLLAMA_ROUTES = frozenset({CHAT, GENERATE})
_PROMPTS = frozenset({GENERATE, COMPLETIONS})


@dataclass(frozen=True, slots=True)
class Place:
    """Where the user typed: in a message and one of its parts, or in the prompt where there is no message."""

    typed: Typed
    message: int | None = None
    part: int | None = None
    last: bool = True


def in_one_form(path: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The request with `messages` or `prompt`, without fields of those names that its route ignores."""
    if path == RESPONSES:
        return _responses(request)
    ignored = "messages" if path in _PROMPTS else "prompt"
    form = {name: value for name, value in request.items() if name != ignored}
    if path == COMPLETIONS and isinstance(prompts := form.get("prompt"), list):
        # One prompt of several has no answer of its own.
        form["prompt"] = prompts[0] if len(prompts) == 1 else None
    if path == MESSAGES and isinstance(system := form.get("system"), list):
        form["system"] = "".join(system[i]["text"] for i in text_parts(system))
    return form


def _responses(request: Mapping[str, Any]) -> dict[str, Any]:
    form = {name: value for name, value in request.items() if name not in ("messages", "prompt", "input")}
    given = request.get("input")
    form["messages" if isinstance(given, list) else "prompt"] = given
    if isinstance(instructions := request.get("instructions"), str):
        form["system"] = instructions
    return form


def place_in(path: str, form: Mapping[str, Any], prefix: str) -> Place | None:
    """Where the user typed last. None if no user did, or if that cannot be told. The command is always typed."""
    place = _place_in(path, form, prefix)
    if place is None or has_command(place.typed.text, prefix) or not _is_clients(form, place):
        return place
    return None


def _is_clients(form: Mapping[str, Any], place: Place) -> bool:
    """Tell if the client asks by itself, for a title or the like."""
    metadata = form.get("metadata")
    if isinstance(metadata, dict) and str(metadata.get("task")).endswith("_generation"):  # Open WebUI's
        return True
    turns = [each for each in form.get("messages") or () if each.get("role") in ("assistant", "tool")]
    return is_client_task(place.typed.text) or (not turns and sets_a_client_task(_system_of(form)))


def _system_of(form: Mapping[str, Any]) -> str:
    first: Mapping[str, Any] = next(iter(form.get("messages") or ()), {})
    system = first.get("content") if first.get("role") in ("system", "developer") else form.get("system")
    if isinstance(system, list):
        return "".join(system[i]["text"] for i in text_parts(system))
    return system if isinstance(system, str) else ""


def _place_in(path: str, form: Mapping[str, Any], prefix: str) -> Place | None:
    messages = form.get("messages")
    if messages is None:
        prompt = form.get("prompt")
        typed = typed_in(prompt, prompt=path in _PROMPTS) if isinstance(prompt, str) else None
        return None if typed is None else Place(typed)
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return None
    index = _asking(messages)
    if index is None:
        return None
    content, last = messages[index].get("content"), index == len(messages) - 1
    if isinstance(content, str):
        typed = typed_in(content)
        return None if typed is None else Place(typed, index, last=last)
    part = _part(content, prefix)
    typed = None if part is None else typed_in(content[part]["text"])
    return None if typed is None else Place(typed, index, part, last)


def _asking(messages: Sequence[Mapping[str, Any]]) -> int | None:
    """The last message of the user. With Anthropic, messages of the user also carry the results of tools."""
    users = (i for i in range(len(messages) - 1, -1, -1) if messages[i].get("role") == "user")
    return next((i for i in users if not _has_results(messages[i].get("content"))), None)


def _has_results(content: Any) -> bool:
    return isinstance(content, list) and any(isinstance(p, dict) and p.get("type") == "tool_result" for p in content)


def _part(content: Any, prefix: str) -> int | None:
    if not isinstance(content, list):
        return None
    part = typed_part(content)
    others = [content[i]["text"] for i in text_parts(content) if i != part]
    # Which of them did a person type?
    return None if any(has_command(text, prefix) for text in others) else part


def has_command(text: str, prefix: str) -> bool:
    """Whether a text begins with the command, or with the one that asks why."""
    return question_of(text, prefix) is not None or asks_why(text, prefix) is not None


def asked_form(form: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """The form up to the place where the user typed, which has nothing but that: the enricher looks at its end."""
    if place.message is None:
        return {**form, "prompt": place.typed.text}
    before = form["messages"][: place.message]
    asked = {**form["messages"][place.message], "content": place.typed.text}
    return {**form, "messages": [*before, asked]}


def with_evidence(
    path: str, request: Mapping[str, Any], place: Place, question: str, enriched: Mapping[str, Any]
) -> dict[str, Any]:
    """The request with the evidence of `enriched`, which is the enriched `asked_form`, and without the command."""
    if place.message is None:
        prompt = place.typed.with_text(question, enriched["prompt"])
        if path == RESPONSES:
            return {**request, "input": prompt}
        return {**request, "prompt": [prompt] if isinstance(request["prompt"], list) else prompt}
    field = "input" if path == RESPONSES else "messages"
    messages, found = list(request[field]), enriched["messages"]
    added = found[place.message] if len(found) > place.message + 1 else None
    text = place.typed.with_text(question)
    message = messages[place.message]
    if added is not None and path == MESSAGES:
        content = _with_block(message["content"], place.part, added["content"], text)
    else:
        content = _with_text(message["content"], place.part, text)
    messages[place.message] = {**message, "content": content}
    if added is not None and path != MESSAGES:
        messages.insert(place.message, {"type": "message", **added} if path == RESPONSES else added)
    return {**request, field: messages}


def _with_text(content: Any, part: int | None, text: str) -> Any:
    if part is None:
        return text
    return [{**piece, "text": text} if i == part else piece for i, piece in enumerate(content)]


def _with_block(content: Any, part: int | None, block: str, text: str) -> Any:
    """Anthropic's messages have no role `system`, so the evidence precedes the question in the user's message."""
    if part is None:
        return f"{block}\n\n{text}"
    evidence = {"type": "text", "text": f"{block}\n\n"}  # Ollama puts parts together without a blank
    return [*content[:part], evidence, {**content[part], "text": text}, *content[part + 1 :]]
