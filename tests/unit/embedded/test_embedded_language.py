"""The embedded model that tells languages."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from py3langid.langid import LanguageIdentifier

from cragside.adapters.embedded import language

ENGLISH = "The lighthouse keeper lit the lamp at dusk."


@pytest.fixture
def _not_loaded() -> Iterator[None]:
    language._load.cache_clear()
    yield
    language._load.cache_clear()


@pytest.mark.usefixtures("_not_loaded")
def test_threads_that_ask_at_once_load_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    class Model:
        @staticmethod
        def classify(_: str) -> tuple[str, float]:
            return "en", 1.0

    def load(*_: object, **__: object) -> Model:
        loaded.append(1)
        time.sleep(0.02)
        return Model()

    monkeypatch.setattr(LanguageIdentifier, "from_model_file", load)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(language.iso_639_1, [ENGLISH] * 4)) == ["en"] * 4
    assert len(loaded) == 1
