"""What failed at the host, as our own errors. No message quotes a request or a key."""

from collections.abc import Iterable, Iterator

import httpx
import openai

from cragside.adapters.bounded_answers import AnswerTooLong
from cragside.adapters.model_host.key_auth import without
from cragside.adapters.model_host.refusals import Refused
from cragside.adapters.renewable import Unreadable
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.forward_proxy import way_to

COMPONENT = "model_host"
_REASON_CHARACTERS = 200


class HostSilent(ServiceUnavailable):
    """The host does not answer."""


def translated(url: str, error: Exception, keys: Iterable[str]) -> ServiceUnavailable:
    """The error for a failed call that was sent with one of the keys."""
    if isinstance(error, ServiceUnavailable):
        return error
    if wrong := next((each for each in _causes(error) if isinstance(each, ConfigurationError)), None):
        return ServiceUnavailable(COMPONENT, wrong.message).at(url)
    if unreadable := next((each for each in _causes(error) if isinstance(each, Unreadable)), None):
        return ServiceUnavailable(COMPONENT, str(unreadable)).at(url)
    if isinstance(error, openai.APIStatusError):
        return refused(url, error.status_code, error.body, keys)
    if any(isinstance(each, AnswerTooLong) for each in _causes(error)):
        return ServiceUnavailable(COMPONENT, "The model host's answer is too long").at(url)
    # httpx-aiohttp reports a refused connection as one that took too long, and OpenAI's client as a late answer.
    if any(isinstance(each, httpx.ConnectTimeout | httpx.ConnectError) for each in _causes(error)):
        return HostSilent(COMPONENT, f"The model host does not answer{way_to(url)}").at(url)
    if isinstance(error, openai.APITimeoutError | httpx.ReadTimeout):
        return ServiceUnavailable(COMPONENT, "The model host took too long to answer").at(url)
    if isinstance(error, openai.APIConnectionError | httpx.TransportError | OSError):
        return HostSilent(COMPONENT, f"The model host does not answer{way_to(url)}").at(url)
    kind = type(error).__name__
    return ServiceUnavailable(COMPONENT, f"The answer is not one of OpenAI's API ({kind}). Correct RAG_MODEL_HOST").at(
        url
    )


def refused(url: str, status: int, body: object, keys: Iterable[str]) -> Refused:
    """The error for a status other than 200. `body` is the JSON of the answer, or its text."""
    if status in (401, 403):
        # Hosts quote a part of the key in their answer.
        if not any(keys):
            return Refused(COMPONENT, status, f"The model host asks for a key ({status}). Set OPENAI_API_KEY").at(url)
        return Refused(COMPONENT, status, f"The model host refused the key ({status}). Correct OPENAI_API_KEY").at(url)
    reason = " ".join(without(keys, _message_in(body)).split())[:_REASON_CHARACTERS]
    remedy = ". Correct RAG_MODEL_HOST, or name one of its models" if status == 404 else ""
    return Refused(COMPONENT, status, f"The model host answered {status}{f': {reason}' if reason else ''}{remedy}").at(
        url
    )


def _message_in(body: object) -> str:
    """OpenAI's client hands out the object `error` itself; hosts also answer a text, or `message` or `detail` alone."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = (
            inner
            if isinstance(inner, str)
            else next((inner[name] for name in ("message", "detail") if isinstance(inner, dict) and name in inner), "")
        )
        return message if isinstance(message, str) else ""
    return body if isinstance(body, str) else ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
