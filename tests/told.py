"""Collect the words of `doctor`, `/health`, `/ready` and the log about a component of a container."""

import logging
from dataclasses import dataclass

import httpx
import pytest

from cragside.bootstrap import Container
from cragside.entrypoints.component_checks import examine_components
from cragside.entrypoints.findings import FOR_OPERATORS, Finding
from cragside.entrypoints.http.app import create_app

# In no word of theirs, wherever a setting has it.
SECRET = "sesame"


@dataclass(frozen=True)
class Told:
    """The findings of `doctor`, the reasons of `/health` and the line of the log, by components."""

    doctor: dict[str, Finding]
    health: dict[str, str]
    not_ready: list[str]
    log: str


async def told_of(container: Container, caplog: pytest.LogCaptureFixture) -> Told:
    """Ask all of them. The container is closed then."""
    transport = httpx.ASGITransport(app=create_app(container), raise_app_exceptions=False)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            with caplog.at_level(logging.WARNING, "cragside"):
                ready = await client.get("/ready")
            health = await client.get("/health")
        findings = await examine_components(container, FOR_OPERATORS)
    finally:
        await container.close()
    assert SECRET not in f"{ready.text} {health.text} {findings} {caplog.text}"
    reasons = {name: each["reason"] for name, each in health.json()["components"].items() if not each["ok"]}
    lines = [line for line in caplog.messages if line.startswith("Not ready: ")]
    return Told({each.component: each for each in findings}, reasons, ready.json()["not_ready"], "".join(lines))


def check(told: Told, names: tuple[str, str | None, str | None], cause: str, remedy: str) -> None:
    """See that all who know the component tell cause and remedy. `names` are those of `doctor`, `/health`, `/ready`."""
    doctor, health, ready = names
    finding = told.doctor[doctor]
    assert cause in finding.detail
    assert remedy in finding.remedy
    if health is not None:
        assert cause in told.health[health]
        assert remedy in told.health[health]
    if ready is not None:
        assert ready in told.not_ready
        line = told.log[told.log.index(f"{ready}: ") :]
        assert cause in line
        assert remedy in line
