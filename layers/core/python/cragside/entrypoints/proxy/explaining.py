"""Answers prompts that begin with `/rag?`: with the explanation of their evidence instead of a model's words."""

import logging
from collections.abc import AsyncIterator

from starlette.types import Send

from cragside.domain.errors import CragsideError, ProcessingError
from cragside.domain.explanation import Explanation, rest_of, step_line
from cragside.domain.outcome import Step
from cragside.entrypoints.http.errors import for_client
from cragside.entrypoints.proxy.errors import code_of, error_body
from cragside.entrypoints.proxy.own_answers import OwnAnswer

_TITLE = "**Why this evidence**\n\n"

logger = logging.getLogger(__name__)


async def send_explanation(send: Send, path: str, answer: OwnAnswer, items: AsyncIterator[Step | Explanation]) -> None:
    """Send each step when it ends, then the rest. Raises a `CragsideError` if nothing has been sent yet."""
    pieces = _pieces(items)
    # The run fails before its first step if the store is misconfigured. Then the answer has a status of its own.
    first = await anext(pieces)
    if not answer.streams:
        text = "".join([_TITLE, first, *[piece async for piece in pieces]])
        await _start(send, answer)
        await send({"type": "http.response.body", "body": answer.whole(text)})
        return
    await _start(send, answer)
    await _send(send, answer.piece(_TITLE + first))
    try:
        async for piece in pieces:
            await _send(send, answer.piece(piece))
    except CragsideError as error:
        shown = for_client(error)
        await _send(send, answer.failure(error_body(path, code_of(shown), shown.message)), more=False)
        return
    await _send(send, answer.end(), more=False)


async def _pieces(items: AsyncIterator[Step | Explanation]) -> AsyncIterator[str]:
    try:
        async for item in items:
            if isinstance(item, Step):
                yield step_line(item)
            else:
                for piece in rest_of(item):
                    if piece:
                        yield piece
    except CragsideError:
        raise
    except Exception as failure:
        logger.exception("An explanation failed")
        raise ProcessingError("The request could not be explained.") from failure


async def _start(send: Send, answer: OwnAnswer) -> None:
    headers = [(b"content-type", answer.media_type), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _send(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
