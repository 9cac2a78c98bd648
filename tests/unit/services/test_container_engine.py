"""Report why the compose file cannot be brought up. Build a changed image again."""

import os
import sys
from pathlib import Path

import pytest

from tests.containers import engine
from tests.containers.engine import Engine
from tests.containers.images import Recipe
from tests.services.tools import Unavailable


@pytest.fixture(autouse=True)
def _cache_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_user_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Unavailable, match="needs Linux and root"):
        Engine().start()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="another reason is told there")
def test_a_machine_without_an_engine_is_told_which_packages_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(engine, "_is_there", lambda program: program != "ip")
    with pytest.raises(Unavailable, match=r"needs Debian's packages iproute2$"):
        Engine().start()


def test_an_image_has_another_name_when_anything_that_it_is_made_of_changes(tmp_path: Path) -> None:
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text("FROM a:1")
    first = Recipe(tmp_path).digest()
    assert Recipe(tmp_path).digest() == first
    assert Recipe(tmp_path, made_of=("another",)).digest() != first
    dockerfile.write_text("FROM a:2")
    assert Recipe(tmp_path).digest() != first
