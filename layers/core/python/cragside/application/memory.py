"""The use case: conversations remembered and recalled."""

import logging
from dataclasses import dataclass

from cragside.application.intake import Intake
from cragside.domain.context import CountTokens
from cragside.domain.document import Document, SourceText
from cragside.domain.errors import ConfigurationError, CragsideError, ValidationError
from cragside.domain.exchange import Exchange, reason_to_forget, recollect, refuse_overlong
from cragside.domain.outcome import Degradation
from cragside.domain.query import refuse_overlong_query
from cragside.domain.search import Mode
from cragside.ports.rag_repository import Workspaces

DEFAULT_LIMIT = 5

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remembered:
    """Whether an exchange was taken into memory.

    When it was not, `reason` is `blank_answer`, `too_short`, `greeting` or `known` (the same exchange is there already,
    as `document_id`), or what failed; only then is it worth trying again, and `retryable` is True.
    """

    indexed: bool
    reason: str = ""
    document_id: str | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Recollection:
    """What memory holds on a question: `text` for a system prompt ("" for nothing) and the passages behind it."""

    text: str
    documents: tuple[Document, ...] = ()
    degraded: tuple[Degradation, ...] = ()


class Memory:
    """Takes exchanges in and finds them again. An outage is told in the result: no conversation fails by it.

    The log says what became of an exchange and how long it was, never what was said.
    """

    def __init__(
        self,
        intake: Intake,
        workspaces: Workspaces,
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

    async def remember(self, exchange: Exchange, *, workspace: str) -> Remembered:
        """Take an exchange in, durably; indexing follows. Raises `ValidationError` for what can never be indexed."""
        refuse_overlong(exchange)
        reason = reason_to_forget(exchange, self._least)
        if reason:
            logger.debug("Skipped an exchange: %s", reason)
            return Remembered(False, reason)
        text = exchange.text
        source = SourceText(exchange.name, text, metadata={"kind": "conversation"})
        try:
            acceptance = await self._intake.text(source, workspace=workspace, rename=True)
        except ValidationError:
            raise
        except (CragsideError, OSError) as error:
            logger.warning("An exchange could not be put into memory: %s", _told(error))
            return Remembered(False, _reason(error).reason, retryable=True)
        if acceptance.outcome == "unchanged":
            return Remembered(False, "known", acceptance.record.id)
        logger.info("Took an exchange of %d characters into memory", len(text))
        return Remembered(True, "", acceptance.record.id)

    async def recall(
        self, query: str, *, workspace: str, mode: Mode | None = None, limit: int = DEFAULT_LIMIT
    ) -> Recollection:
        """At most `limit` passages on a question, most promising first.

        Raises `ValidationError` for a blank or an overlong one.
        """
        if not query.strip():
            raise ValidationError("Memory needs something to look for.", field="query")
        refuse_overlong_query(query)
        try:
            repository = await self._workspaces.repository(workspace)
            documents = await repository.retrieve(query, limit=limit, mode=mode or self._mode)
        except ValidationError:
            raise
        except (CragsideError, OSError) as error:
            logger.warning("Memory could not be asked: %s", _told(error))
            return Recollection("", degraded=(_reason(error),))
        text = recollect(documents, budget=self._budget, count_tokens=self._count_tokens)
        logger.debug("Recalled %d characters", len(text))
        return Recollection(text, tuple(documents))


def _told(error: Exception) -> str:
    return error.message if isinstance(error, CragsideError) else type(error).__name__


def _reason(error: Exception) -> Degradation:
    """What failed, without what is for the log alone."""
    if not isinstance(error, CragsideError) or isinstance(error, ConfigurationError):
        return Degradation("memory", "The store cannot be used; the log says why.")
    return Degradation(str(error.details.get("component", "memory")), error.message)
