"""A scripted Ollama on loopback: it answers as the real one does, says what it is told, and notes what it was asked."""

import asyncio
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from aiohttp import web

Say = Callable[[dict[str, Any]], str]


def relevance_by_words(asked: dict[str, Any]) -> str:
    """Yes, or a score of 0.9, for a passage that shares a long word with the question; else No, or 0.1."""
    prompt = asked["messages"][-1]["content"]
    question, _, block = prompt.partition("Question: ")[2].partition("<evidence-")
    words = {w.strip("?.,").lower() for w in question.partition("\n")[0].split() if len(w) > 4}
    passage = block.partition("</evidence-")[0].lower()
    relevant = any(word in passage for word in words)
    if {"format", "response_format"} & {name for name, value in asked.items() if value}:
        return json.dumps({"score": 0.9 if relevant else 0.1})
    return "Yes" if relevant else "No"


class StubOllama:
    """Serves what cragside asks of Ollama's API and of OpenAI's, while its context is open."""

    def __init__(self, say: Say = relevance_by_words, *, models: tuple[str, ...] = ("judge:latest",)) -> None:
        self.say = say
        self.models = list(models)
        self.cards: dict[str, dict[str, Any]] = {}
        self.loaded: dict[str, int] = {}
        self.default_context = 4096
        self.refusals: dict[str, int] = {}
        self.refusal_text = "not here"
        self.dimensions = 8
        self.seconds = 0.0
        self.status: tuple[int, str] | None = None
        self.nonsense: dict[str, str] = {}
        self.done_reason = "stop"
        self.tells_chances = True
        self.refuses_chances = False
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.authorisations: list[str | None] = []
        self.key: str | None = None
        self.schemas = True
        self.longest_text: int | None = None
        self.too_long = 400
        self.too_long_says = "the input length exceeds the context length"
        self.listed: dict[str, dict[str, Any]] = {}
        self.in_flight = 0
        self.most_in_flight = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def asked(self, path: str) -> list[dict[str, Any]]:
        """The bodies that a route was given."""
        return [body for called, body in self.calls if called == path]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start, or start again on the same port."""
        app = web.Application(client_max_size=64 * 2**20, middlewares=[self._note])
        app.router.add_get("/api/version", self._version)
        app.router.add_get("/api/tags", self._tags)
        app.router.add_get("/api/ps", self._ps)
        app.router.add_post("/api/show", self._show)
        app.router.add_post("/api/generate", self._load)
        app.router.add_post("/api/chat", self._chat)
        app.router.add_post("/api/embed", self._embed)
        app.router.add_get("/v1/models", self._listed)
        app.router.add_post("/v1/chat/completions", self._completed)
        app.router.add_post("/v1/embeddings", self._embedded)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        await self._runner.cleanup()

    @web.middleware
    async def _note(self, request: web.Request, handler: Any) -> web.StreamResponse:
        body = await request.json() if request.content_type == "application/json" and request.can_read_body else {}
        self.calls.append((request.path, body))
        self.authorisations.append(request.headers.get("Authorization"))
        working = request.path in ("/api/chat", "/api/embed", "/v1/chat/completions", "/v1/embeddings")
        if request.path in self.refusals:
            return web.Response(status=self.refusals[request.path], text=self.refusal_text)
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return web.json_response({"error": {"message": "no"}}, status=401)
        if request.path in self.nonsense:
            return web.Response(text=self.nonsense[request.path], content_type="application/json")
        if self.status and working:
            return web.json_response({"error": self.status[1]}, status=self.status[0])
        if body.get("model") is not None and not {body["model"], f"{body['model']}:latest"} & {*self.models}:
            return web.json_response({"error": f"model '{body['model']}' not found"}, status=404)
        self.in_flight += working
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await handler(request)
        finally:
            self.in_flight -= working

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "0.17.4"})

    async def _tags(self, _: web.Request) -> web.Response:
        return web.json_response({"models": [{"name": name, "model": name} for name in self.models]})

    async def _ps(self, _: web.Request) -> web.Response:
        return web.json_response({"models": [{"name": n, "context_length": c} for n, c in self.loaded.items()]})

    async def _show(self, request: web.Request) -> web.Response:
        name = (await request.json())["model"]
        card = {
            "parameters": "",
            "model_info": {"general.architecture": "llama", "llama.context_length": 32_768},
            "capabilities": ["completion"],
        }
        return web.json_response({**card, **self.cards.get(name, {})})

    async def _load(self, request: web.Request) -> web.Response:
        """Answer a request without a prompt as Ollama does."""
        asked = await request.json()
        self.loaded[asked["model"]] = self.default_context
        return web.json_response({"model": asked["model"], "response": "", "done": True, "done_reason": "load"})

    async def _chat(self, request: web.Request) -> web.Response:
        asked = await request.json()
        await asyncio.sleep(self.seconds)
        answer = {
            "model": asked["model"],
            "created_at": "2026-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": (said := self.say(asked))},
            "done": True,
            "done_reason": self.done_reason,
            "total_duration": 1,
            "prompt_eval_count": 1,
            "eval_count": 1,
        }
        return web.json_response({**answer, **self._chances(asked, said)})

    def _chances(self, asked: dict[str, Any], said: str) -> dict[str, Any]:
        """The first token of an answer at 0.9, and the opposite of yes or no at 0.1, if a request wants to know."""
        if not (asked.get("logprobs") and self.tells_chances):
            return {}
        first = said.split()[0] if said.split() else ""
        tokens = [(first, 0.9), ({"Yes": "No", "No": "Yes"}.get(first, "Of"), 0.1)]
        top = [{"token": token, "logprob": math.log(chance)} for token, chance in tokens]
        return {"logprobs": [{**top[0], "top_logprobs": top}]}

    async def _listed(self, _: web.Request) -> web.Response:
        return web.json_response(
            {"object": "list", "data": [{"id": name, **self.listed.get(name, {})} for name in self.models]}
        )

    async def _completed(self, request: web.Request) -> web.Response:
        asked = await request.json()
        await asyncio.sleep(self.seconds)
        if "logprobs" in asked and self.refuses_chances:
            return web.json_response({"error": {"message": "this model tells no logprobs"}}, status=400)
        if "response_format" in asked and not self.schemas:
            return web.json_response({"error": {"message": "unknown field response_format"}}, status=400)
        message = {"role": "assistant", "content": (said := self.say(asked))}
        answer = {"index": 0, "message": message, "finish_reason": self.done_reason}
        if told := self._chances(asked, said):
            answer["logprobs"] = {"content": told["logprobs"]}
        return web.json_response({"id": "1", "object": "chat.completion", "model": asked["model"], "choices": [answer]})

    async def _embedded(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if self.longest_text is not None and max(map(len, asked["input"])) > self.longest_text:
            return web.json_response({"error": {"message": "the input is too long"}}, status=400)
        rows = [{"index": n, "embedding": _direction(text, self.dimensions)} for n, text in enumerate(asked["input"])]
        return web.json_response({"object": "list", "model": asked["model"], "data": rows})

    async def _embed(self, request: web.Request) -> web.Response:
        asked = await request.json()
        await asyncio.sleep(self.seconds)
        if self.longest_text is not None and max(map(len, asked["input"])) > self.longest_text:
            return web.json_response({"error": self.too_long_says}, status=self.too_long)
        rows = [_direction(text, self.dimensions) for text in asked["input"]]
        return web.json_response({"model": asked["model"], "embeddings": rows})


def _direction(text: str, dimensions: int) -> list[float]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=dimensions).tolist()
