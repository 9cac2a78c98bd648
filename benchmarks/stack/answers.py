"""Whole answers through the proxy, one at a time: what SC-001 to SC-004 promise."""

import http.client
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from benchmarks.corpus import Passage
from benchmarks.harness import Load, post_each
from benchmarks.stack.questions import Knowledge, answer_of, turns
from tests.services.ollama import CHAT_MODEL

_ANSWER_TOKENS = 32
_ANSWER_SECONDS = 120


@dataclass
class Answers:
    """Streamed answers: their whole times, those of their first pieces, and how many have the name asked for.

    The first piece of a failure counts as the longest wait.
    """

    load: Load = field(default_factory=Load)
    first_ms: list[float] = field(default_factory=list)
    right: int = 0

    @property
    def accuracy(self) -> float:
        """The percentage of answers that have the name that was asked for."""
        return 100 * self.right / len(self.first_ms)


def ask_each(address: str, passages: Sequence[Passage], prefix: str = "/rag ") -> Answers:
    """Ask for what the passages tell, one at a time, and read the answers as they come."""
    done = Answers()
    for passage in passages:
        done.first_ms.append(_ANSWER_SECONDS * 1000)
        sent = time.perf_counter()
        try:
            _ask(address, passage, prefix, done)
        except TimeoutError:
            done.load.latencies_ms.append((time.perf_counter() - sent) * 1000)
            done.load.failures.append(f"no answer in {_ANSWER_SECONDS} s")
    done.load.seconds = sum(done.load.latencies_ms) / 1000
    return done


def _ask(address: str, passage: Passage, prefix: str, done: Answers) -> None:
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=_ANSWER_SECONDS)) as connection:
        body = chat(f"{prefix}{passage.question}", _ANSWER_TOKENS)
        sent = time.perf_counter()
        connection.request("POST", "/api/chat", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        lines = [response.readline()]
        first_ms = (time.perf_counter() - sent) * 1000
        lines += response.read().splitlines()
        spent = (time.perf_counter() - sent) * 1000
    degraded = response.headers.get("x-rag-degraded", "")
    done.load.took(spent, response.status, lines[-1], lambda last: degraded or unfinished(last))
    if response.status != http.client.OK:
        return
    done.first_ms[-1] = first_ms
    text = "".join(json.loads(line).get("message", {}).get("content", "") for line in lines if line.strip())
    done.right += answer_of(passage).lower() in text.lower()


def chat(prompt: str, tokens: int) -> dict[str, Any]:
    """The body of a streamed request to Ollama."""
    options = {"num_predict": tokens, "temperature": 0}
    return {"model": CHAT_MODEL, "messages": [{"role": "user", "content": prompt}], "options": options}


@dataclass
class Routes:
    """Answers with local evidence, the same without the command, answers from the web; then evidence alone.

    `searches` are those of SearXNG for questions with local answers, `verdicts` say where the others' evidence is from.
    """

    local: Answers
    plain: Answers
    web: Answers
    evidence: Load
    web_evidence: Load
    verdicts: list[str]
    searches: int

    @property
    def fallbacks(self) -> float:
        """The percentage of all questions without a local answer whose evidence is from the web."""
        return 100 * sum(verdict in ("web", "mixed") for verdict in self.verdicts) / len(self.web_evidence.latencies_ms)


def measure_routes(
    address: str, knowledge: Knowledge, asked_of_searxng: list[str], count: int, evidence: int
) -> Routes:
    """Ask `count` questions of each kind for an answer, and `evidence` for evidence alone."""
    known, unknown = (list(islice(telling(passages), count)) for passages in (knowledge.local, knowledge.web))
    ask_each(address, known[:1])  # loads the models
    before = len(asked_of_searxng)
    local = ask_each(address, known)
    searches = len(asked_of_searxng) - before
    plain, web = ask_each(address, known, prefix=""), ask_each(address, unknown)
    alone, _ = enriched(address, islice(turns(knowledge.local), evidence))
    web_alone, verdicts = enriched(address, islice(turns(knowledge.web), evidence))
    return Routes(local, plain, web, alone, web_alone, verdicts, searches)


def enriched(address: str, passages: Iterable[Passage]) -> tuple[Load, list[str]]:
    """Requests for evidence alone, one at a time, and where each that did not fail got it from."""
    verdicts: list[str] = []

    def check(answer: Any) -> str:
        if not (wrong := wrong_with(answer)):
            verdicts.append(answer["metadata"]["rag_context"]["verdict"])
        return wrong

    bodies = [{"prompt": f"/rag {passage.question}"} for passage in passages]
    return post_each(f"{address}/v1/enrich", bodies, check=check), verdicts


def wrong_with(answer: Any) -> str:
    """The error in an answer, or ""."""
    context = answer.get("metadata", {}).get("rag_context")
    if not context:
        return "no rag_context"
    return str(context["degraded"]) if context["degraded"] else "" if context["documents"] else "no evidence"


def telling(passages: Sequence[Passage]) -> Iterator[Passage]:
    """The passages whose question does not have its answer in it, in turn."""
    return (passage for passage in turns(passages) if answer_of(passage) not in passage.question)


def unfinished(last: dict[str, Any]) -> str:
    """The last line of a stream that is not its end, or ""."""
    return "" if last.get("done") else json.dumps(last)[:300]
