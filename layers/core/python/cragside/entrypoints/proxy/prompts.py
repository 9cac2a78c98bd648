"""Finds the prompt in a request to Ollama, and decides whether it gets evidence."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.types import Receive, Scope, Send

from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, ValidationError
from cragside.domain.preferences import Prompts
from cragside.domain.query import asks_why, question_of
from cragside.domain.typed import Typed, is_client_task, sets_a_client_task, text_parts, typed_in, typed_part
from cragside.entrypoints.access import Grant, workspace_of
from cragside.entrypoints.http.request_bodies import bounded
from cragside.entrypoints.proxy.messages import Body, Header, parsed, parsed_if_bounded
from cragside.entrypoints.proxy.routes import COMPLETIONS, GENERATE, MESSAGES, OLLAMA_ROUTES, RESPONSES
from cragside.entrypoints.request_headers import wish_of

_PROMPTS = frozenset({GENERATE, COMPLETIONS})
_MOST_LOGPROBS = 20
_NOTHING = Body(b"", complete=True)
# Prompts without the command wait so many seconds at most for the settings of their workspace, and not at all while
# the settings cannot be read.
_PATIENCE = 0.5
_PAUSE = 5.0
# JSON may write any letter of the name as \uXXXX.
_NAMES_WORKSPACE = re.compile(rb'"workspace"|\\u00[67]')
# Prefixes that JSON and case folding leave unchanged. k and s have relatives outside ASCII (KELVIN SIGN, LONG S).
_PLAIN_PREFIX = re.compile(r"[0-9a-jl-rt-z!#$%&()*+,./:;=?@^_`{|}~-]+", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """Place of the user's text: a message and one of its parts, or the prompt where there is no message."""

    typed: Typed
    message: int | None = None
    part: int | None = None
    last: bool = True


def ollama_form(path: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The request with `messages` or `prompt`, without fields of those names that its route ignores."""
    if path == RESPONSES:
        return _responses(request)
    ignored = "messages" if path in _PROMPTS else "prompt"
    form = {name: value for name, value in request.items() if name != ignored}
    if path == COMPLETIONS and isinstance(prompts := form.get("prompt"), list):
        # One prompt of several has no answer of its own.
        form["prompt"] = prompts[0] if len(prompts) == 1 else None
    if path == MESSAGES and "system" in form:
        form["system"] = _joined(form["system"])
    return form


def _joined(content: Any) -> Any:
    """Content as a text, if it has parts with texts."""
    return "".join(content[i]["text"] for i in text_parts(content)) if isinstance(content, list) else content


def _responses(request: Mapping[str, Any]) -> dict[str, Any]:
    form = {name: value for name, value in request.items() if name not in ("messages", "prompt", "input")}
    given = request.get("input")
    form["messages" if isinstance(given, list) else "prompt"] = given
    if isinstance(instructions := request.get("instructions"), str):
        form["system"] = instructions
    return form


def place_in(path: str, form: Mapping[str, Any], prefix: str) -> Place | None:
    """Find the place where the user typed last. None if no user did, or if that cannot be told."""
    place = _place_in(path, form, prefix)
    if place is None or has_command(place.typed.text, prefix) or not _comes_from_client(form, place):
        return place
    return None


def _comes_from_client(form: Mapping[str, Any], place: Place) -> bool:
    """Tell if the chat client itself sends the request, as for a title."""
    metadata = form.get("metadata")
    if isinstance(metadata, dict) and str(metadata.get("task")).endswith("_generation"):  # Open WebUI's
        return True
    turns = [each for each in form.get("messages") or () if each.get("role") in ("assistant", "tool")]
    return is_client_task(place.typed.text) or (not turns and sets_a_client_task(_system_of(form)))


def _system_of(form: Mapping[str, Any]) -> str:
    first: Mapping[str, Any] = next(iter(form.get("messages") or ()), {})
    system = _joined(first.get("content") if first.get("role") in ("system", "developer") else form.get("system"))
    return system if isinstance(system, str) else ""


def _place_in(path: str, form: Mapping[str, Any], prefix: str) -> Place | None:
    messages = form.get("messages")
    if messages is None:
        prompt = form.get("prompt")
        typed = typed_in(prompt, prompt=path in _PROMPTS) if isinstance(prompt, str) else None
        return None if typed is None else Place(typed)
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return None
    index = _last_of_user(messages)
    if index is None:
        return None
    content, last = messages[index].get("content"), index == len(messages) - 1
    if isinstance(content, str):
        typed = typed_in(content)
        return None if typed is None else Place(typed, index, last=last)
    part = _part(content, prefix)
    typed = None if part is None else typed_in(content[part]["text"])
    return None if typed is None else Place(typed, index, part, last)


def _last_of_user(messages: Sequence[Mapping[str, Any]]) -> int | None:
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
    """Tell if a text begins with the command, or with the one that asks why."""
    return question_of(text, prefix) is not None or asks_why(text, prefix) is not None


def asked_form(form: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return the request up to the user's last text, of which it has only what was typed, for the enricher."""
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
    message, text = messages[place.message], place.typed.with_text(question)
    content: Any = text
    if place.part is not None:
        content = [{**each, "text": text} if i == place.part else each for i, each in enumerate(message["content"])]
    if added is not None and path == MESSAGES:
        # Anthropic's messages have no role `system`, so the evidence precedes the question in the user's message.
        # Ollama puts parts together without a blank.
        block = f"{added['content']}\n\n"
        if place.part is None:
            content = block + text
        else:
            content.insert(place.part, {"type": "text", "text": block})
    messages[place.message] = {**message, "content": content}
    if added is not None and path != MESSAGES:
        messages.insert(place.message, {"type": "message", **added} if path == RESPONSES else added)
    return {**request, field: messages}


@dataclass(frozen=True, slots=True)
class EvidenceRequest:
    """A request that gets evidence, its question and its place. `why`: it asks for an explanation instead.

    `commanded`: what its user typed begins with the command.
    """

    request: dict[str, Any]
    question: str
    place: Place
    why: bool = False
    commanded: bool = True


@dataclass(slots=True)
class Call:
    """A request on its way to the host, and what its token opens.

    `text` is the body without its content coding, None if it has not been read or cannot be. `replaced` tells that
    `body` is not the client's, and `added` has further headers for the client.
    """

    grant: Grant
    scope: Scope
    receive: Receive
    send: Send
    body: Body = _NOTHING
    text: bytes | None = None
    replaced: bool = False
    asked: EvidenceRequest | None = None
    added: Sequence[Header] = ()

    @property
    def path(self) -> str:
        """The path that the host gets."""
        path: str = self.scope["path"]
        return path

    @property
    def headers(self) -> list[Header]:
        """The client's headers."""
        headers: list[Header] = self.scope["headers"]
        return headers

    def replace(self, body: bytes) -> None:
        """Send this in place of the client's body."""
        self.body, self.replaced = Body(body, complete=True), True


def user_prompt(path: str, request: Mapping[str, Any], prefix: str) -> str | None:
    """Find what the user typed last, without the command. None if no user typed it, or if the request has none.

    A generation with a `suffix` completes code, a `raw` one brings its own template, and one without a prompt loads a
    model. Clients send requests of their own, such as for the title of a chat.
    """
    if written_by_program(path, request):
        return None
    place = place_in(path, ollama_form(path, request), prefix)
    if place is None or not place.typed.text.strip():
        return None
    question = question_of(place.typed.text, prefix)
    return place.typed.text if question is None else question


def written_by_program(path: str, request: Mapping[str, Any]) -> bool:
    """Tell if a program wrote the prompt: code to complete, or a text in a template of its own."""
    return path in (GENERATE, COMPLETIONS) and bool(request.get("suffix") or request.get("raw"))


def refused_by_ollama(path: str, request: Mapping[str, Any]) -> bool:
    """Tell if Ollama refuses the request for its form, so that evidence would be wasted.

    Go reads field names in any case, and null as a missing field.
    """
    fields = [(name.lower(), value) for name, value in request.items() if value is not None]
    if not any(name == "model" and isinstance(value, str) and value.strip() for name, value in fields):
        return True
    types: dict[str, type] = {"model": str, "stream": bool, "top_logprobs": int}
    if path in OLLAMA_ROUTES:
        types["options"] = dict
    if path == MESSAGES:
        types["max_tokens"] = int
        if not any(name == "max_tokens" for name, _ in fields):
            return True
    # The exact type: in Python, but not in Go, true is an integer.
    if any(type(value) is not types.get(name, type(value)) for name, value in fields):
        return True
    return any(name == "top_logprobs" and not 0 <= value <= _MOST_LOGPROBS for name, value in fields)


class EvidenceRequests:
    """Finds the requests that get evidence.

    A request gets evidence by its command, by `X-RAG`, by the suffix of its model, or by the workspace's setting. A
    `never` in the header or the setting forbids it.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._settings = container.settings
        self._prefix = prefix = container.settings.command_prefix
        self._needle = prefix.lower().encode() if _PLAIN_PREFIX.fullmatch(prefix) else None
        self._ask_again = 0.0

    async def find(self, call: Call, text: bytes, *, welcome: bool) -> EvidenceRequest | None:
        """The request if it gets evidence. A replaced `text` had the suffix. `welcome`: its page may ask.

        None for a request that Ollama refuses: the client gets Ollama's own message. Raises `ValidationError` for an
        invalid `X-RAG`, and for a body with too many keys or values that asks for evidence.
        """
        wish = wish_of(call.headers)
        if wish == "never":
            return None
        found = self._with_command(call.path, text)
        if found is None and (wish == "always" or call.replaced):
            found = self._without_command(call.path, text)
        if found is None:
            return await self._by_setting(call, text) if welcome else None
        return None if await self._setting(call, found.request) == "never" else found

    def _with_command(self, path: str, body: bytes) -> EvidenceRequest | None:
        """The request, if what its user typed last begins with the command."""
        # JSON may write any character as \uXXXX, and a slash as \/.
        certain = self._needle is not None and self._needle in body.lower()
        if not (certain or self._needle is None or b"\\u" in body or b"\\/" in body):
            return None
        try:
            bounded(body)
        except ValidationError:
            if certain:
                raise
            return None
        found = self._typed(path, body)
        if found is None:
            return None
        text = found.place.typed.text
        if (question := question_of(text, self._prefix)) is not None:
            return replace(found, question=question)
        question = asks_why(text, self._prefix)
        return None if question is None else replace(found, question=question, why=True)

    def _without_command(self, path: str, body: bytes, *, typed_last: bool = False) -> EvidenceRequest | None:
        """The request with what a user typed last in it, for those who ask for evidence without the command.

        With `typed_last` nothing may follow that, such as the results of tools. None for what clients ask by
        themselves, for code to complete and prompts without a template, and for what cannot be told apart.
        """
        found = self._typed(path, bounded(body))
        if found is None or written_by_program(path, found.request) or (typed_last and not found.place.last):
            return None
        question = found.question.strip()
        return replace(found, question=question, commanded=False) if question else None

    def _typed(self, path: str, body: bytes) -> EvidenceRequest | None:
        """The request, with all that its user typed last as its question."""
        request = parsed(body)
        if request is None or refused_by_ollama(path, request):
            return None
        place = place_in(path, ollama_form(path, request), self._prefix)
        # Ollama reports fields of wrong types in its own words.
        return None if place is None else EvidenceRequest(request, place.typed.text, place)

    async def _by_setting(self, call: Call, body: bytes) -> EvidenceRequest | None:
        """The request if its workspace wants evidence in all prompts. Nothing about it is refused."""
        # Most bodies name no workspace and are not read.
        request = parsed_if_bounded(body) if _NAMES_WORKSPACE.search(body) else None
        if await self._setting(call, request or {}) != "always":
            return None
        try:
            found = self._without_command(call.path, body, typed_last=True)
        except ValidationError:
            return None
        return found if found and len(found.question) <= self._settings.max_prompt_characters else None

    async def _setting(self, call: Call, request: dict[str, Any]) -> Prompts:
        """The workspace's setting; `command` for a request that may not read the workspace."""
        try:
            reading = call.grant.narrowed("read")
            workspace = workspace_of(reading, call.headers, request.get("workspace"), self._settings.workspace)
            now = self._container.clock.monotonic()
            patience = _PATIENCE if now >= self._ask_again else 0.0
            preferred, outdated = await self._container.preferences.at_hand(workspace, seconds=patience)
            if outdated and patience:
                self._ask_again = self._container.clock.monotonic() + _PAUSE
            return preferred.prompts
        except CragsideError:
            return "command"
