"""Promises of the specification and the contract, beside the figures of `benchmarks.stack`."""

from benchmarks.harness import Load, Target
from benchmarks.stack.answers import Routes
from benchmarks.stack.load import CONCURRENCY, Burst
from benchmarks.stack.steady import Steady
from tests.services.ollama import CHAT_MODEL

LOCAL_SECONDS, WEB_SECONDS = 5, 10
FALLBACKS = 95
MORE_RIGHT = 30
MEGABYTES = 500
CPU = 20
DRIFT = 5
NOT_MEASURED = (
    f"a model of useful size and a graphics card. {CHAT_MODEL} writes the answers, on one thread of the processor, and "
    "no model grades in the figures with a target. SC-003 is the gain of this one small model."
)


def of_answers(routes: Routes) -> list[Target]:
    """SC-001 to SC-004, and the contract's times."""
    failed = len(routes.local.load.failures)
    unknown = failed + len(routes.plain.load.failures)
    gain = routes.local.accuracy - routes.plain.accuracy
    return [
        _p95("SC-001 whole answer with local evidence", routes.local.load, LOCAL_SECONDS),
        Target("SC-002 no local answer: evidence from the web", routes.fallbacks, FALLBACKS, "%", at_most=False),
        Target("SC-003 more answers right than without /rag", gain, MORE_RIGHT, "points", False, unknown),
        _p95("SC-004 whole answer after a web search", routes.web.load, WEB_SECONDS),
        _p95("contract: local query", routes.evidence, LOCAL_SECONDS),
        _p95("contract: web search fallback", routes.web_evidence, WEB_SECONDS),
        Target("contract: web searches by local queries", routes.searches, 0, failures=failed),
    ]


def of_load(burst: Burst) -> list[Target]:
    """SC-005, and the contract's memory."""
    once = "SC-005 100 at once while indexing"
    local = [_p95(once, burst.local, LOCAL_SECONDS)] if burst.local.latencies_ms else []
    return [
        Target(f"{once}: requests", len(burst.local.latencies_ms), CONCURRENCY, at_most=False),
        Target(f"{once}: failures", len(burst.local.failures + burst.sent.failures), 0),
        *local,
        Target("SC-005 100 at once, web: failures", len(burst.web.failures), 0),
        _p95("SC-005 100 at once, web", burst.web, WEB_SECONDS),
        Target("contract: memory of the service, peak", burst.service_mb, MEGABYTES, "MB"),
        Target("contract: memory of its worker, peak", burst.worker_mb, MEGABYTES, "MB"),
    ]


def of_steady(steady: Steady) -> list[Target]:
    """The contract's CPU, and whether memory grows."""
    return [
        Target("contract: CPU of the service at the steady rate, of one core", steady.cpu, CPU, "%"),
        Target("steady rate: failures", len(steady.failures), 0),
        Target("steady rate: answers degraded or without evidence", len(steady.wrong), 0),
        Target("steady rate: memory, last quarter against the second", abs(steady.drift), DRIFT, "%"),
    ]


def _p95(name: str, load: Load, seconds: float) -> Target:
    return Target(f"{name}, p95", load.p95 / 1000, seconds, "s", failures=len(load.failures))
