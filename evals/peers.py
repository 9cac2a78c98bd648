"""cragside beside two peers, on the everyday questions of one half.

    python evals/peers.py [--half tuning|held-out]

cragside reads the documents of `everyday.py` for all, so that only the finding is compared. The peers search the
passages that it makes of them, and the whole texts:
- plain BM25 as `bm25s` does it by default: lower-case words, English stop words;
- LightRAG's own server with its defaults and cragside's embedded models: WordLlama, and the rules that name entities.
  It is installed at the first run. It is asked at `/query/data` in the modes `naive` and `mix`, with cragside's
  keywords. It cuts whole texts into chunks of 1,200 tokens.

The questions are those in the language of their documents. A peer gets the last message of a conversation as it is. The
first passages of each count, as many as cragside may put into a prompt.
"""

import argparse
import asyncio
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
from everyday import FOLDER, HALVES, Question, ask_one, read
from figures import share
from stores import files_in, indexed, name_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.harness import get_json, scratch
from benchmarks.peers.lightrag_server import ingest, lightrag_server
from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.keywords import keywords_of
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.bootstrap import Container
from cragside.domain.evidence import Document

MODES = ("naive", "mix")
# LightRAG splits at these words alone, so that its chunks are cragside's passages.
_BETWEEN = "<the next passage>"
SPLITTING = {"CHUNK_SIZE": "8000", "CHUNK_F_SPLIT_BY_CHARACTER": _BETWEEN, "CHUNK_F_SPLIT_BY_CHARACTER_ONLY": "true"}
Search = Callable[[str], Sequence[Document]]


async def read_texts(container: Container) -> tuple[list[Document], list[Document]]:
    """The passages of the store, and the whole texts that they are from."""
    library = (await container.workspaces.open("default")).documents
    records, _ = await library.documents(limit=1_000)
    passages, whole = [], []
    for record in sorted(records, key=lambda each: each.name):
        metadata = {"filename": record.name}
        source = await library.source(record.id)
        assert source is not None
        whole.append(Document(record.id, source.text, "local", metadata=metadata))
        found = await library.passages(record.id)
        passages += [Document(each.id, each.text, "local", metadata=metadata) for each in found]
    return passages, whole


def bm25(texts: Sequence[Document]) -> Search:
    """A search by BM25. Of equal texts, the earlier one comes first."""

    def words(of: Sequence[str]) -> list[list[str]]:
        found: list[list[str]] = bm25s.tokenize(of, return_ids=False, show_progress=False)
        return found

    index = bm25s.BM25()
    index.index(words([each.content for each in texts]), show_progress=False)

    def search(question: str) -> Sequence[Document]:
        scores = index.get_scores(words([question])[0])
        return [texts[place] for place in np.argsort(-scores, kind="stable") if scores[place] > 0]

    return search


@contextmanager
def lightrag(texts: Sequence[Document], **splitting: str) -> Iterator[Mapping[str, Search]]:
    """LightRAG's server with these texts; yields a search for each mode. Texts of one name are one document."""
    embedder = WordLlamaEmbedder()
    named: dict[str, list[str]] = {}
    for each in texts:
        named.setdefault(name_of(each), []).append(each.content)
    with (
        scratch() as folder,
        embedded_models(embedder) as models,
        lightrag_server(
            folder, models, embedding=(embedder.name, embedder.dimensions), RERANK_BINDING="null", **splitting
        ) as (address, _),
    ):
        ingest(address, [(name, _BETWEEN.join(parts)) for name, parts in named.items()])
        yield {mode: partial(_chunks, address, mode) for mode in MODES}


def _chunks(address: str, mode: str, question: str) -> Sequence[Document]:
    keywords = keywords_of(question)
    body = {
        "query": question,
        "mode": mode,
        "hl_keywords": keywords.high or keywords.low or [question],
        "ll_keywords": keywords.low or keywords.high or [question],
    }
    chunks = get_json(f"{address}/query/data", body)["data"].get("chunks", ())
    return [
        Document(chunk["chunk_id"], chunk["content"], "local", metadata={"filename": chunk["file_path"]})
        for chunk in chunks
    ]


@contextmanager
def embedded_models(embedder: WordLlamaEmbedder) -> Iterator[str]:
    """An Ollama whose models are cragside's embedded ones; yields its address."""
    extractor = EmbeddedLanguageModel()

    class Models(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/api/embed":
                told: Any = {"embeddings": embedder.encode(asked["input"]).tolist()}
            else:
                *before, last = asked["messages"]
                system = next((each["content"] for each in before if each["role"] == "system"), None)
                text = asyncio.run(extractor.complete(last["content"], system=system))
                told = {"message": {"role": "assistant", "content": text}, "done": True}
            body = json.dumps({"model": asked["model"], **told}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Models) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


async def compare(folder: Path, questions: Sequence[Question]) -> dict[str, list[Sequence[Document]]]:
    """The first passages that each system finds for each question."""
    async with indexed(files_in(folder)) as container:
        found = {"cragside": [(await ask_one(container, each)).context.documents for each in questions]}
        passages, whole = await read_texts(container)
        most = container.settings.max_documents

    def ask(search: Search) -> list[Sequence[Document]]:
        return [search(each.question)[:most] for each in questions]

    for way, texts, splitting in (("passages", passages, SPLITTING), ("whole texts", whole, {})):
        found[f"plain BM25, {way}"] = ask(bm25(texts))
        with lightrag(texts, **splitting) as modes:
            found |= {f"LightRAG, {mode}, {way}": ask(search) for mode, search in modes.items()}
    return found


def report(questions: Sequence[Question], found: Mapping[str, Sequence[Sequence[Document]]]) -> None:
    """Print how often each system finds the right document first, and the answer, and in how many words."""

    def rows(title: str, figure: Callable[[Sequence[Sequence[Document]]], str]) -> None:
        print(title, *(f"  {name:28} {figure(evidence)}" for name, evidence in found.items()), sep="\n")

    def right(flag: Callable[[Question, Sequence[Document]], bool]) -> Callable[[Sequence[Sequence[Document]]], str]:
        return lambda evidence: share(list(map(flag, questions, evidence)))

    print(f"{len(questions)} questions in one language")
    rows("right document first", right(Question.found_first_in))
    rows("answer in the first passages", right(Question.answered_by))
    rows(
        "words of these passages for a question", lambda evidence: f"{sum(map(_words, evidence)) / len(evidence):6.0f}"
    )


def _words(evidence: Sequence[Document]) -> int:
    return sum(len(each.content.split()) for each in evidence)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES, default="tuning")
    half = parser.parse_args().half
    logging.disable(logging.WARNING)
    questions = [each for each in read(half) if each.documents and each.kind != "mixed"]
    report(questions, asyncio.run(compare(FOLDER / half / "documents", questions)))


if __name__ == "__main__":
    main()
