import random
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from lambda_stub import Context, close, container, event, function_of, health

from cragside.bootstrap import Container
from cragside.entrypoints.aws_lambda import runtime as snapshot

Hooks = dict[str, Callable[[], None]]


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """Lambda's module for hooks, and what was registered with it."""
    registered: Hooks = {}
    module = ModuleType("snapshot_restore_py")
    module.register_before_snapshot = lambda hook: registered.update(before=hook)  # type: ignore[attr-defined]
    module.register_after_restore = lambda hook: registered.update(after=hook)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "snapshot_restore_py", module)
    return registered


@pytest.mark.parametrize(
    ("kind", "ahead"),
    [(None, False), ("on-demand", False), ("snap-start", True), ("provisioned-concurrency", True)],
)
def test_everything_is_preloaded_for_snapshots_and_provisioned_concurrency(
    monkeypatch: pytest.MonkeyPatch, kind: str | None, ahead: bool
) -> None:
    monkeypatch.delenv("AWS_LAMBDA_INITIALIZATION_TYPE", raising=False)
    if kind:
        monkeypatch.setenv("AWS_LAMBDA_INITIALIZATION_TYPE", kind)
    assert snapshot.ahead() is ahead


def test_without_a_runtime_that_takes_snapshots_there_are_no_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snapshot_restore_py", None)
    snapshot.on_snapshot(before=lambda: pytest.fail("called"), after=lambda: pytest.fail("called"))


def test_a_query_is_answered_before_the_snapshot_and_connections_are_closed(hooks: Hooks) -> None:
    happened: list[str] = []

    def step(name: str) -> Any:
        async def note(*_: Any, **__: Any) -> None:
            happened.append(name)

        return note

    secret = SimpleNamespace(value=lambda: ("right",))
    secrets = SimpleNamespace(forget=lambda: happened.append("disconnected"), unreadable=False)
    finder, enricher = SimpleNamespace(prepare=step("prepared")), SimpleNamespace(enrich=step("asked"))
    built = container({"finder": finder, "enricher": enricher, "secret": secret, "secrets": secrets})
    function = function_of(built)
    function.load(built)
    assert happened == ["prepared", "asked"]
    hooks["before"]()
    assert happened == ["prepared", "asked", "disconnected"]
    close(function, built)


def test_a_restored_function_answers_on_the_loop_of_before(hooks: Hooks) -> None:
    built = container()
    function = function_of(built)
    function.load(built)
    loop = function._runner.get_loop()
    hooks["before"]()
    hooks["after"]()
    assert function.answer(event(), Context())["statusCode"] == 200
    assert function._runner.get_loop() is loop
    close(function, built)


def test_copies_of_a_snapshot_draw_numbers_of_their_own() -> None:
    import numpy as np

    drawn = []
    for _ in range(2):
        random.seed(7)
        np.random.seed(7)
        snapshot.reseed()
        drawn.append((random.random(), float(np.random.random())))
    assert drawn[0][0] != drawn[1][0]
    assert drawn[0][1] != drawn[1][1]


def test_a_function_without_requests_builds_nothing() -> None:
    built = Container(container().settings)
    function = function_of(built)
    function.answer(health(), Context())
    close(function, built)
    members = set(Container.names()) - {"clock"}  # it tells the time and opens nothing
    assert [name for name in members if vars(built).get(name) is not None] == []
