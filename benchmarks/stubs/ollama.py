"""A stub Ollama with fixed latencies: chat 300 ms, embeddings 20 ms for any batch. Loopback only.

It answers all calls that the measured programs make, so that each takes its usual path: cragside's judgement of a
passage by the probability of yes, the batched grading of its earlier versions, any other JSON schema in `format`,
LightRAG's keyword, extraction and summary prompts, the tutorial's yes or no. A passage answers if it has each name,
year and noun of the question. For the tutorial every document is relevant, which spares it a rewrite and a search,
unless the question names `ABSENT_TOPIC`.
`GET /stub/calls` counts the calls by kind; `POST /stub/reset` resets the counts.
"""

import argparse
import hashlib
import itertools
import json
import math
import re
from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from benchmarks import corpus
from benchmarks.stubs.serving import Answer, Request, Route, as_json, serve, until

CHAT_MODEL = "qwen2.5:7b"
EMBEDDING_MODEL = "nomic-embed-text"
DIMENSIONS = 768
ABSENT_TOPIC = "Ostravane"

_NAME = re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")
_WORD = re.compile(r"\w+")
_NUMBERED = re.compile(r"^\W{0,3}(?:(?:document|passage|evidence|doc)[ _#]*)?(\d{1,3})\b", re.IGNORECASE | re.MULTILINE)
_QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)
_JUDGED = re.compile(r"<evidence-(\w+)[^>]*>\n(.*?)\n</evidence-\1>", re.DOTALL)
_GRADED = re.compile(r'<evidence number="(\d+)">\n(.*?)\n</evidence>', re.DOTALL)
_SURE = 0.95
_CREATED = "2026-01-01T00:00:00Z"
_METRICS = {
    "done_reason": "stop",
    "total_duration": 300_000_000,
    "load_duration": 1_000_000,
    "prompt_eval_count": 400,
    "prompt_eval_duration": 100_000_000,
    "eval_count": 40,
    "eval_duration": 199_000_000,
}


@lru_cache(maxsize=200_000)
def _word_vector(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)


@lru_cache(maxsize=50_000)
def embedding_json(text: str) -> bytes:
    """A deterministic unit vector as JSON. Texts that share words are closer, as with a real model."""
    words = [word.lower() for word in _WORD.findall(text)] or ["nothing"]
    vector = np.mean([_word_vector(word) for word in words], axis=0)
    # Real embeddings share a direction: unrelated texts have cosines well above 0.
    vector = vector / np.linalg.norm(vector) + 0.7 * _word_vector("<shared>") / np.linalg.norm(_word_vector("<shared>"))
    vector /= np.linalg.norm(vector)
    return orjson.dumps(vector, option=orjson.OPT_SERIALIZE_NUMPY)


def kind_of(prompt: str, body: dict[str, Any]) -> str:
    """The purpose of a chat call, inferred from its prompt and requested format."""
    wanted = body.get("format")
    fields = wanted.get("properties", {}) if isinstance(wanted, dict) else {}
    if body.get("logprobs") or set(fields) == {"score"}:
        return "judge"
    if "high_level_keywords" in prompt:
        return "keywords"
    if "<|COMPLETE|>" in prompt:
        return "extract"
    if "Description List" in prompt:
        return "summarise"
    if "binary_score" in fields or "'yes' or 'no'" in prompt:
        return "grade one"
    if isinstance(wanted, dict):
        return "grade batch" if fields and all(name.isdigit() for name in fields) else "fill"
    if re.search(r"re-?write|rephrase|search engine|web search", prompt, re.IGNORECASE):
        return "rewrite"
    return "answer"


def answer(kind: str, prompt: str, wanted: Any) -> str:
    """The stub's answer to a call of that kind."""
    if kind == "judge":
        passage, question = _JUDGED.search(prompt), _QUESTION.search(prompt)
        answers = passage is not None and question is not None and corpus.states(passage[2], question[1])
        return json.dumps({"score": _SURE if answers else 1 - _SURE}) if wanted else "yes" if answers else "no"
    if kind == "grade batch":
        asked = _QUESTION.search(prompt)
        graded = {number: corpus.states(text, asked[1] if asked else "") for number, text in _GRADED.findall(prompt)}
        return json.dumps({number: _SURE if answers else 0.05 for number, answers in graded.items()})
    if kind == "keywords":
        question = prompt.rsplit("User Query:", 1)[-1].split("---Output---")[0]
        names = list(dict.fromkeys(_NAME.findall(question)))[:4] or ["record"]
        return json.dumps({"high_level_keywords": ["history", "records"], "low_level_keywords": names})
    if kind == "extract":
        return _extraction(prompt)
    if kind == "grade one":
        return json.dumps({"binary_score": "no" if ABSENT_TOPIC.lower() in prompt.lower() else "yes"})
    if kind == "fill":
        count = max((int(number) for number in _NUMBERED.findall(prompt)), default=1)
        return json.dumps(filled(wanted, wanted, count=count, score=0.9))
    if kind == "rewrite":
        return prompt.strip().rsplit("\n", 1)[-1].removeprefix("Question:").strip(" ?")[:150]
    return "The description in one sentence." if kind == "summarise" else "A plain answer of the stub."


def filled(schema: dict[str, Any], root: dict[str, Any], *, count: int, score: float, position: int = 1) -> Any:
    """A value that conforms to a JSON schema: arrays get `count` items, numbers the score, counters their position."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    kind = schema.get("type")
    if kind == "object":
        members = schema.get("properties") or {}
        return {
            name: position
            if member.get("type") == "integer"
            else filled(member, root, count=count, score=score, position=position)
            for name, member in members.items()
        }
    if kind == "array":
        length = schema.get("minItems") or count
        items = schema.get("items", {"type": "number"})
        return [filled(items, root, count=count, score=score, position=i + 1) for i in range(length)]
    if kind == "integer":
        # An integer scale: its maximum or its minimum.
        return schema.get("maximum", 10) if score > 0.5 else schema.get("minimum", 0)
    if kind == "number" and schema.get("enum"):
        return min(schema["enum"], key=lambda step: abs(step - score))
    if kind == "number":
        return round(score * schema.get("maximum", 1), 2)
    if kind == "boolean":
        return score > 0.5
    return schema["enum"][0] if schema.get("enum") else "text"


def chances(said: str) -> dict[str, Any]:
    """The probabilities of a first token and of its opposite, as Ollama tells them."""
    told = ((said, _SURE), ("no" if said == "yes" else "yes", 1 - _SURE))
    top = [{"token": token, "logprob": math.log(chance)} for token, chance in told]
    return {"logprobs": [{**top[0], "top_logprobs": top}]}


def _extraction(prompt: str) -> str:
    text = prompt.rsplit("---Input Text---", 1)[-1].split("---Output---")[0]
    names = list(dict.fromkeys(name for name in _NAME.findall(text) if " " in name))[:8]
    rows = [f"entity<|#|>{name}<|#|>Organization<|#|>{name} is named in the text." for name in names]
    rows += [f"relation<|#|>{a}<|#|>{b}<|#|>cooperation<|#|>{a} worked with {b}." for a, b in itertools.pairwise(names)]
    return "\n".join([*rows, "<|COMPLETE|>"])


class StubOllama:
    """The routes, their latencies and the counts."""

    def __init__(self, chat_seconds: float, embed_seconds: float) -> None:
        self._chat_seconds = chat_seconds
        self._embed_seconds = embed_seconds
        self.calls: Counter[str] = Counter()

    def routes(self) -> dict[str, Route]:
        return {
            "/api/chat": self.chat,
            "/api/generate": self.generate,
            "/api/embed": self.embed,
            "/api/embeddings": self.embed_one,
            "/api/show": self.show,
            "/api/tags": self.tags,
            "/api/ps": self.loaded,
            "/api/version": self.version,
            "/": self.alive,
            "/stub/calls": self.counts,
            "/stub/reset": self.reset,
        }

    async def chat(self, request: Request) -> Answer:
        body = request.json()
        prompt = "\n".join(_text(message.get("content")) for message in body.get("messages", []))
        return await self._speak(
            request, body, prompt, lambda text: {"message": {"role": "assistant", "content": text}}
        )

    async def generate(self, request: Request) -> Answer:
        body = request.json()
        prompt = f"{body.get('system', '')}\n{body.get('prompt', '')}"
        return await self._speak(request, body, prompt, lambda text: {"response": text})

    async def _speak(self, request: Request, body: dict[str, Any], prompt: str, shape: Any) -> Answer:
        kind = kind_of(prompt, body)
        self.calls[kind] += 1
        text = answer(kind, prompt, body.get("format"))
        head = {"model": body.get("model", CHAT_MODEL), "created_at": _CREATED}
        told = chances(text) if body.get("logprobs") else {}
        lines = [{**head, **shape(text), **told, "done": False}, {**head, **shape(""), "done": True, **_METRICS}]
        if body.get("stream") is False:
            spoken = as_json({**lines[1], **shape(text), **told})
        else:
            spoken = Answer(b"".join(orjson.dumps(line) + b"\n" for line in lines), "application/x-ndjson")
        await until(request.arrived + self._chat_seconds)
        return spoken

    async def embed(self, request: Request) -> Answer:
        body = request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.calls["embed"] += 1
        self.calls["embedded texts"] += len(texts)
        vectors = b",".join(embedding_json(text) for text in texts)
        await until(request.arrived + self._embed_seconds)
        return Answer(b'{"model":"%b","embeddings":[%b],"prompt_eval_count":8}' % (EMBEDDING_MODEL.encode(), vectors))

    async def embed_one(self, request: Request) -> Answer:
        self.calls["embed"] += 1
        vector = embedding_json(request.json()["prompt"])
        await until(request.arrived + self._embed_seconds)
        return Answer(b'{"embedding":%b}' % vector)

    async def show(self, request: Request) -> Answer:
        body = request.json()
        embeds = EMBEDDING_MODEL in str(body.get("model") or body.get("name"))
        architecture = "nomic-bert" if embeds else "qwen2"
        return as_json(
            {
                "details": {"family": architecture, "parameter_size": "7.6B", "quantization_level": "Q4_K_M"},
                "model_info": {
                    "general.architecture": architecture,
                    f"{architecture}.context_length": 2048 if embeds else 32768,
                    f"{architecture}.embedding_length": DIMENSIONS if embeds else 3584,
                },
                "capabilities": ["embedding"] if embeds else ["completion", "tools"],
            }
        )

    async def tags(self, _request: Request) -> Answer:
        names = (f"{EMBEDDING_MODEL}:latest", CHAT_MODEL)
        return as_json({"models": [{"name": name, "model": name, "size": 1} for name in names]})

    async def loaded(self, _request: Request) -> Answer:
        return as_json({"models": [{"name": CHAT_MODEL, "model": CHAT_MODEL, "context_length": 8192}]})

    async def version(self, _request: Request) -> Answer:
        return as_json({"version": "0.17.4"})

    async def alive(self, _request: Request) -> Answer:
        return Answer(b"Ollama is running", "text/plain")

    async def counts(self, _request: Request) -> Answer:
        return as_json(dict(self.calls))

    async def reset(self, _request: Request) -> Answer:
        self.calls.clear()
        return as_json({})


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content or ""


def main() -> None:
    """Serve until the process ends; the first line printed is the port."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chat-ms", type=float, default=300)
    parser.add_argument("--embed-ms", type=float, default=20)
    arguments = parser.parse_args()
    serve(StubOllama(arguments.chat_ms / 1000, arguments.embed_ms / 1000).routes())


if __name__ == "__main__":
    main()
