"""The use case: remember, recall, list and forget conversations.

Exchanges have their own store. They are not documents, and evidence only if a request asks for them.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cragside.application.intake import Intake
from cragside.domain.context import CountTokens, behind_blocks
from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError, CragsideError, Forbidden, ReadOnlyStore, ValidationError
from cragside.domain.evidence import Document
from cragside.domain.exchange import (
    Exchange,
    earlier_conversation,
    merely_repeats,
    moment_of,
    reason_to_forget,
    recollect,
    refuse_overlong,
    without_thoughts,
)
from cragside.domain.indexing import Acceptance, DocumentRecord
from cragside.domain.names import END_USER_FIELD, exchanges_of, memory_of
from cragside.domain.outcome import Degradation
from cragside.domain.query import Mode, SimilaritySearch, refuse_overlong_query
from cragside.domain.verdict import PLAUSIBLE

if TYPE_CHECKING:
    from cragside.store.workspaces import Workspaces

DEFAULT_LIMIT = 5
_CONVERSATION = {"kind": "conversation"}
# So many are retrieved for each that is wanted: those of other users are dropped afterwards.
_WIDE = 4
# Clients that send a request again do so at once: this many of the latest exchanges are compared.
_LATEST = 20

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remembered:
    """The outcome of remembering an exchange.

    If not, `reason` is `blank_answer`, `too_short`, `greeting`, `repeated` (the answer repeats what the model was told
    from memory), `known` (the exchange exists, as `document_id`), or what failed. After a failure that may pass,
    `retryable` is True. If it is remembered, `searchable` tells if it can be recalled already, or is queued.
    """

    indexed: bool
    reason: str = ""
    document_id: str | None = None
    retryable: bool = False
    searchable: bool | None = None


@dataclass(frozen=True, slots=True)
class Recollection:
    """Memories for a question: `text` for a system prompt ("" for none) and its passages."""

    text: str
    documents: tuple[Document, ...] = ()
    degraded: tuple[Degradation, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptExchange:
    """An exchange in memory. `at` is its time, ISO 8601 in UTC."""

    record: DocumentRecord
    text: str
    at: str


class Memory:
    """Stores and finds exchanges. Results report outages, so no conversation fails.

    A search finds the exchanges of its `end_user` alone, and without one those that name none.

    The log has the outcome and the length of an exchange, never its text.
    """

    def __init__(
        self,
        intake: Intake,
        workspaces: "Workspaces",
        *,
        least: int,
        mode: Mode,
        budget: int,
        count_tokens: CountTokens,
    ) -> None:
        self._intake = intake
        self._workspaces = workspaces
        self._least = least
        self._mode = mode
        self._budget = budget
        self._count_tokens = count_tokens
        self._storing: set[tuple[str, str, str]] = set()

    async def remember(self, exchange: Exchange, *, workspace: str, recalled: Sequence[str] = ()) -> Remembered:
        """Store an exchange durably. With the embedded model it can be recalled afterwards, else soon.

        Raises `ValidationError` if it can never be indexed, and `Forbidden` if the client has no room for it. Of an
        enriched prompt, only the question is stored, without the injected evidence, and of the answer none of the
        model's thoughts. `recalled` are the exchanges that the model got for its answer. An exchange that only repeats
        them is not stored, and neither is one that is among the latest already, whatever its time.
        """
        refuse_overlong(exchange)
        exchange = replace(exchange, user=behind_blocks(exchange.user), assistant=without_thoughts(exchange.assistant))
        reason = reason_to_forget(exchange, self._least)
        # Long texts take a tenth of a second, which must not block other requests.
        if not reason and recalled and await asyncio.to_thread(merely_repeats, exchange.assistant, recalled):
            reason = "repeated"
        if reason:
            logger.debug("Skipped an exchange: %s", reason)
            return Remembered(False, reason)
        said = workspace, exchange.end_user, _undated(exchange.text)
        if said in self._storing:
            return Remembered(False, "known")
        self._storing.add(said)
        try:
            return await self._stored(exchange, workspace)
        finally:
            self._storing.discard(said)

    async def _stored(self, exchange: Exchange, workspace: str) -> Remembered:
        try:
            if known := await self._known(exchange, workspace):
                return Remembered(False, "known", known)
            acceptance = await self.keep(
                exchange.text, name=exchange.name, workspace=workspace, end_user=exchange.end_user
            )
        except (ValidationError, Forbidden):
            raise
        except (CragsideError, OSError) as error:
            logger.warning("An exchange could not be stored in memory: %s", _message(error))
            return Remembered(False, _reason(error).reason, retryable=not isinstance(error, ReadOnlyStore))
        if acceptance.outcome == "unchanged":
            return Remembered(False, "known", acceptance.record.id)
        logger.info("Stored an exchange of %d characters in memory", len(exchange.text))
        return Remembered(True, "", acceptance.record.id, searchable=acceptance.record.searchable)

    async def keep(self, text: str, *, name: str, workspace: str, track: str = "", end_user: str = "") -> Acceptance:
        """Store an exchange that is already written as text. Raises as `Intake.text` does."""
        # Two users may say the same at the same moment.
        own = f"{end_user}/{name}" if end_user else name
        source = SourceText(name, text, metadata=_metadata(end_user), source=own)
        return await self._intake.text(source, workspace=memory_of(workspace), track=track, rename=True)

    async def _known(self, exchange: Exchange, workspace: str) -> str | None:
        """Return the id of the same exchange of the same user, if it is among the latest."""
        text, metadata = exchange.text, _metadata(exchange.end_user)
        library = (await self._workspaces.open(memory_of(workspace))).documents
        for record in (await library.documents(limit=_LATEST))[0]:
            if record.characters != len(text) or record.metadata != metadata:
                continue
            source = await library.source(record.id)
            if source is not None and _undated(source.text) == _undated(text):
                return record.id
        return None

    async def recall(
        self, query: str, *, workspace: str, mode: Mode | None = None, limit: int = DEFAULT_LIMIT, end_user: str = ""
    ) -> Recollection:
        """Return at most `limit` passages for a question, most promising first.

        Raises `ValidationError` for a blank or overlong question.
        """
        if not query.strip():
            raise ValidationError("A search of memory needs a text.", field="query")
        refuse_overlong_query(query)
        try:
            documents = await self._found(query, workspace, limit, mode, end_user)
        except ValidationError:
            raise
        except (CragsideError, OSError) as error:
            logger.warning("Memory could not be asked: %s", _message(error))
            return Recollection("", degraded=(_reason(error),))
        text = recollect(documents, budget=self._budget, count_tokens=self._count_tokens)
        logger.debug("Recalled %d characters", len(text))
        return Recollection(text, tuple(documents))

    async def evidence(
        self,
        question: str,
        *,
        workspace: str,
        tokens: int,
        seconds: float,
        mode: Mode | None = None,
        limit: int = DEFAULT_LIMIT,
        least: float = PLAUSIBLE,
        end_user: str = "",
    ) -> Recollection:
        """Exchanges for a question, as a block of at most `tokens` tokens that follows the evidence.

        `least` is the lowest relevance of a result. Failures are reported as a degradation of `memory`.
        """
        try:
            async with asyncio.timeout(seconds):
                found = await self._found(question, workspace, limit, mode, end_user)
        except (CragsideError, OSError, TimeoutError) as error:
            logger.warning("Memory could not be asked: %s", _message(error))
            reason = "No answer in time." if isinstance(error, TimeoutError) else _reason(error).reason
            return Recollection("", degraded=(Degradation("memory", reason),))
        plausible = [document for document in found if document.score is None or document.score > least]
        packed = earlier_conversation(plausible, budget=tokens, count_tokens=self._count_tokens)
        return Recollection(packed.block, packed.documents)

    async def exchanges(self, *, workspace: str, limit: int = 100, offset: int = 0) -> tuple[list[KeptExchange], int]:
        """Return a page of the exchanges, latest first, and their total number. Raises `ServiceUnavailable`."""
        library = (await self._workspaces.open(memory_of(workspace))).documents
        records, total = await library.documents(limit=limit, offset=offset)
        kept: list[KeptExchange] = []
        for record in records:
            if source := await library.source(record.id):
                at = moment_of(record.name, source.text) or record.created_at
                kept.append(KeptExchange(record, source.text, at))
        return kept, total

    async def forget(self, exchange_id: str, *, workspace: str) -> bool:
        """Forget an exchange. False if there is none with this id. Raises `ServiceUnavailable`."""
        return await self._intake.delete(exchange_id, workspace=memory_of(workspace))

    async def _found(
        self, question: str, workspace: str, limit: int, mode: Mode | None, end_user: str
    ) -> list[Document]:
        repository = (await self._workspaces.open(memory_of(workspace))).passages
        own = exchanges_of(end_user)
        retrieved = await repository.retrieve(question, limit=limit * _WIDE, mode=mode or self._mode, wanted=own)
        found = retrieved[:limit]
        if end_user and len(found) < limit:  # exchanges of many others may have been nearer
            known = {document.content for document in found}
            near = await repository.similar(SimilaritySearch(question, limit=limit, filter=own))
            found += [document for document in near if document.content not in known][: limit - len(found)]
        return found


def _metadata(end_user: str) -> dict[str, str]:
    return {**_CONVERSATION, END_USER_FIELD: end_user} if end_user else _CONVERSATION


def _undated(text: str) -> str:
    return text.partition("\n")[2]


def _message(error: Exception) -> str:
    return error.message if isinstance(error, CragsideError) else type(error).__name__


def _reason(error: Exception) -> Degradation:
    """Name what failed, without details that only the log may have."""
    if isinstance(error, ReadOnlyStore):
        return Degradation("memory", "The knowledge base is a baked store, which cannot remember exchanges.")
    if not isinstance(error, CragsideError) or isinstance(error, ConfigurationError):
        return Degradation("memory", "The store cannot be used; the log says why.")
    return Degradation(str(error.details.get("component", "memory")), error.message)
