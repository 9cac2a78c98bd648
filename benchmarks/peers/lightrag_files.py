"""LightRAG in process on its own file storages, with its own defaults, except cragside's embedded models.

It is queried as cragside queries it, in mode mix with given keywords, so only the storages and their settings differ.
LightRAG's own pipeline builds the stores, which are kept in the cache folder.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightrag import LightRAG, QueryParam
from lightrag.utils import EmbeddingFunc

from benchmarks import corpus
from benchmarks.harness import OWN_PYTHON, ROOT, cache_folder, environment
from benchmarks.peers.environment import LIGHTRAG_VERSION
from benchmarks.stores import PASSAGES_A_DOCUMENT
from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.keywords import keywords_of
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel

_WARM_UP = 30


def build(passages: int, tables: str) -> Path:
    """The folder of a store with that many passages; the first call builds it, in a separate process."""
    folder = cache_folder() / f"lightrag-{LIGHTRAG_VERSION}-files-{passages}-{corpus.VERSION}"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        print(f"building LightRAG's file storages of {passages:,} passages in {folder} (once) ...", flush=True)
        command = [OWN_PYTHON, "-m", "benchmarks.peers.lightrag_files", "--build", str(passages)]
        settings = environment(TIKTOKEN_CACHE_DIR=tables, PEER_STORE=str(folder))
        subprocess.run(command, env=settings, cwd=ROOT, check=True)
        (folder / "ready").touch()
    return folder


async def opened() -> LightRAG:
    """LightRAG on the folder in `PEER_STORE`."""
    embedder, model = WordLlamaEmbedder(), EmbeddedLanguageModel()

    async def embed(texts: list[str], **_: Any) -> Any:
        return await embedder.embed(texts)

    async def complete(
        prompt: str,
        system_prompt: str | None = None,
        history_messages: Sequence[Mapping[str, str]] | None = None,
        **_: Any,
    ) -> str:
        return await model.complete(prompt, system=system_prompt, history=history_messages or ())

    rag = LightRAG(
        working_dir=os.environ["PEER_STORE"],
        embedding_func=EmbeddingFunc(embedding_dim=embedder.dimensions, func=embed),
        llm_model_func=complete,
        chunking_func=_by_blank_lines,
        entity_extract_max_gleaning=0,
    )
    await rag.initialize_storages()
    return rag


def _by_blank_lines(tokenizer: Any, content: str, *_: Any, **__: Any) -> list[dict[str, Any]]:
    # The same passages as in cragside's store.
    parts = content.split("\n\n")
    return [{"tokens": len(tokenizer.encode(p)), "content": p, "chunk_order_index": i} for i, p in enumerate(parts)]


async def fill(passages: int) -> None:
    """Index the corpus."""
    rag = await opened()
    documents = corpus.documents(corpus.passages(passages), each=PASSAGES_A_DOCUMENT)
    await rag.ainsert([text for _, text in documents], file_paths=[name for name, _ in documents])
    await rag.finalize_storages()


async def measure(passages: int, count: int) -> dict[str, float]:
    """Time to open, first query, and CPU per query: the figures of `benchmarks.scale`."""

    asked = corpus.questions(passages, count + _WARM_UP + 1)
    began = time.perf_counter()
    rag = await opened()
    open_s = time.perf_counter() - began
    await _ask(rag, asked.pop())
    first = time.perf_counter() - began
    for question in asked[:_WARM_UP]:
        await _ask(rag, question)
    cpu, began = time.process_time(), time.perf_counter()
    for question in asked[_WARM_UP:]:
        await _ask(rag, question)
    cpu_ms, wall_ms = (
        (after - before) * 1000 / count for after, before in ((time.process_time(), cpu), (time.perf_counter(), began))
    )
    await rag.finalize_storages()
    return {"open_s": open_s, "first_query_s": first, "cpu_ms": cpu_ms, "wall_ms": wall_ms}


async def _ask(rag: LightRAG, question: str) -> None:
    keywords = keywords_of(question)
    parameters = QueryParam(
        mode="mix",
        hl_keywords=keywords.high or keywords.low or [question],
        ll_keywords=keywords.low or keywords.high or [question],
        enable_rerank=False,
    )
    answer = await rag.aquery_data(question, parameters)
    if answer["status"] != "success":
        raise SystemExit(f"LightRAG found nothing: {answer.get('message')}")


def main() -> None:
    """Build or measure; figures are printed as JSON in the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=int)
    parser.add_argument("--measure", type=int)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.build:
        asyncio.run(fill(arguments.build))
    else:
        print(json.dumps(asyncio.run(measure(arguments.measure, arguments.count))))


if __name__ == "__main__":
    main()
