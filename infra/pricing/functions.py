"""Costs of functions."""

from collections.abc import Iterator

from infra.pricing.month import HOURS, Charge, Month
from infra.pricing.templates import Resource

_SECONDS = HOURS * 3600


def function_charges(function: Resource, month: Month) -> Iterator[Charge]:
    """Time and requests of a function that answers questions or indexes; traces; its metrics."""
    if not _ours(function):
        return  # a helper of the CDK, which runs while deploying
    calls, seconds = _indexing(month) if _indexes(function) else _answering(function, month)
    price = f"lambda-{function.properties.get('Architectures', ['x86_64'])[0]}"
    yield Charge("calls of functions", "lambda-requests", calls / 1e6)
    yield Charge("time of functions", price, seconds * _gigabytes(function))
    if not _indexes(function):
        yield Charge("metrics", "metric", month.usage["metrics"])
    if function.properties.get("TracingConfig", {}).get("Mode") == "Active":
        yield Charge("traces", "traces", _traced(calls) / 1e6)


def version_charges(version: Resource, month: Month) -> Iterator[Charge]:
    """The snapshot of a version: kept all the time, and restored for each new environment."""
    for function in version.beside("AWS::Lambda::Function"):
        if version.refers_to(function) and _snapshots(function):
            size, starts = _gigabytes(function), month.requests * month.usage["cold_share"]
            yield Charge("snapshot of a function", "snapstart-cache", size * _SECONDS)
            yield Charge("restored snapshots", "snapstart-restore", size * starts)


def billed_ms(function: Resource, month: Month) -> float:
    """The mean time that a request is billed for."""
    usage, cold = month.usage, month.usage["cold_share"]
    if month.milliseconds is not None:
        return month.milliseconds
    if "OLLAMA_BASE_URL" in _variables(function):
        local, web = usage["local_ollama_ms"], usage["web_floor_ms"] * usage["web_factor"]
    else:
        local, web = usage["local_ms"], usage["local_ms"] + usage["search_ms"]
    warm = local + (web - local) * usage["web_share"] * ("SEARXNG_HOST" in _variables(function))
    start = 0.0 if _snapshots(function) else cold * (usage["init_ms"] + usage["first_ms"])
    return warm + start


def _answering(function: Resource, month: Month) -> tuple[float, float]:
    return month.requests, month.requests * billed_ms(function, month) / 1000


def _indexing(month: Month) -> tuple[float, float]:
    return month.documents, month.documents * month.usage["chunks"] / month.usage["chunks_a_second"]


def _traced(calls: float) -> float:
    # Lambda samples the first request of each second, and 5 % of the others.
    return min(calls, _SECONDS) + 0.05 * max(0.0, calls - _SECONDS)


def _ours(function: Resource) -> bool:
    return any(name.startswith("RAG_") for name in _variables(function))


def _indexes(function: Resource) -> bool:
    return any(source.refers_to(function) for source in function.beside("AWS::Lambda::EventSourceMapping"))


def _snapshots(function: Resource) -> bool:
    return "SnapStart" in function.properties


def _variables(function: Resource) -> dict[str, object]:
    return dict(function.properties.get("Environment", {}).get("Variables", {}))


def _gigabytes(function: Resource) -> float:
    return float(function.properties.get("MemorySize", 128)) / 1024
