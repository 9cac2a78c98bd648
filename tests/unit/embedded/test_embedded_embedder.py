import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cragside.adapters.embedded import embedder as module
from cragside.adapters.embedded.embedder import EMBEDDED_MODEL, WordLlamaEmbedder
from cragside.domain.errors import ServiceUnavailable


async def test_vectors_are_unit_float32_rows_of_256() -> None:
    vectors = await WordLlamaEmbedder().embed(["bees dance", "a second text"])
    assert vectors.shape == (2, 256)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


async def test_the_model_names_itself() -> None:
    assert (WordLlamaEmbedder().name, WordLlamaEmbedder().dimensions) == (EMBEDDED_MODEL, 256)


async def test_text_without_tokens_gets_the_zero_vector() -> None:
    vectors = await WordLlamaEmbedder().embed(["", "bees"])
    assert not vectors[0].any()
    assert np.isfinite(vectors).all()


async def test_no_texts_give_no_rows() -> None:
    assert (await WordLlamaEmbedder().embed([])).shape == (0, 256)


async def test_the_end_of_a_very_long_text_still_counts() -> None:
    filler = "The weather was mild and the road was long. " * 2000
    one, other = await WordLlamaEmbedder().embed([filler, filler + "Insulin lowers glucose. " * 200])
    assert not np.allclose(one, other)


async def test_batches_do_not_change_a_vector() -> None:
    texts = [f"passage number {i} about topic {i % 7}" for i in range(600)]
    together = await WordLlamaEmbedder().embed(texts)
    alone = await WordLlamaEmbedder().embed(texts[555:556])
    assert np.allclose(together[555], alone[0], atol=1e-6)


async def test_large_batches_leave_the_loop_and_give_the_same() -> None:
    embedder = WordLlamaEmbedder()
    texts = ["a passage about bees and honey " * 20] * 100
    assert np.allclose(await embedder.embed(texts), embedder.encode(texts))


async def test_lone_surrogates_and_control_characters_are_accepted() -> None:
    assert np.isfinite(await WordLlamaEmbedder().embed(["\ud800 bees \x00\u202e", "😀" * 50])).all()


def test_vectors_equal_those_of_the_wordllama_package() -> None:
    import wordllama

    reference = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    texts = ["What is the function of insulin?", "Bees dance.", "Größe und Übermut, 日本語"]
    ours = WordLlamaEmbedder().encode(texts)
    assert np.allclose(ours, reference.embed(texts, norm=True), atol=1e-5)


def test_nothing_is_read_at_import_or_construction_and_wordllama_stays_unimported() -> None:
    program = (
        "import sys, logging; from cragside.adapters.embedded.embedder import WordLlamaEmbedder;"
        "e = WordLlamaEmbedder();"
        "assert not {'tokenizers', 'wordllama'} & set(sys.modules);"
        "e.encode(['bees']); assert 'wordllama' not in sys.modules and not logging.getLogger().handlers"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_missing_package_is_a_service_that_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    module._load.cache_clear()
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ServiceUnavailable) as caught:
        WordLlamaEmbedder().encode(["bees"])
    module._load.cache_clear()
    assert caught.value.component == "embedder"


def test_damaged_files_are_a_service_that_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Spec:
        submodule_search_locations = (str(tmp_path),)

    module._load.cache_clear()
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: Spec)
    with pytest.raises(ServiceUnavailable):
        WordLlamaEmbedder().encode(["bees"])
    module._load.cache_clear()


def test_halves_are_widened_as_numpy_does() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    assert np.array_equal(module._widened(finite), finite.astype(np.float32))
