"""`python -m tests.services.qdrant_stand_in PORT FOLDER`: Qdrant's requests, answered by its client's own engine.

The data are in the folder, or in memory if it is called `:memory:`. The key is in the file that KEY names, at any time.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import BaseModel
from qdrant_client import QdrantClient, models

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_MOST_BYTES = 32 * 2**20
_LACKING = "not found"


class StandIn:
    """The requests that LightRAG and cragside make."""

    def __init__(self, engine: QdrantClient, key: Path) -> None:
        self._engine = engine
        self._key = key

    def application(self) -> web.Application:
        """All requests by their paths."""
        app = web.Application(client_max_size=_MOST_BYTES, middlewares=[self._guarded])
        one, points = "/collections/{name}", "/collections/{name}/points"
        app.add_routes(
            [
                web.get("/", self._info),
                web.get("/healthz", self._info),
                web.get("/collections", self._list),
                web.get(f"{one}/exists", self._exists),
                web.get(one, self._get),
                web.put(one, self._make),
                web.delete(one, self._drop),
                web.put(f"{one}/index", self._index),
                web.post(points, self._retrieve),
                web.put(points, self._upsert),
                web.post(f"{points}/batch", self._batch),
                web.post(f"{points}/delete", self._delete),
                web.post(f"{points}/query", self._query),
                web.post(f"{points}/scroll", self._scroll),
                web.post(f"{points}/count", self._count),
            ]
        )
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        key = self._key.read_text()
        if key and request.path != "/healthz" and request.headers.get("api-key") != key:
            return web.json_response({"status": {"error": "Must provide an API key"}}, status=401)
        try:
            return await handler(request)
        except ValueError as error:
            status = 404 if _LACKING in str(error) else 400
            return web.json_response({"status": {"error": str(error)}}, status=status)

    async def _info(self, _: web.Request) -> web.Response:
        return web.json_response({"title": "a stand-in for Qdrant", "version": version("qdrant-client")})

    async def _list(self, _: web.Request) -> web.Response:
        return _told(self._engine.get_collections())

    async def _exists(self, request: web.Request) -> web.Response:
        return _told({"exists": self._engine.collection_exists(_name(request))})

    async def _get(self, request: web.Request) -> web.Response:
        return _told(self._engine.get_collection(_name(request)))

    async def _make(self, request: web.Request) -> web.Response:
        if self._engine.collection_exists(_name(request)):
            return web.json_response({"status": {"error": "it is there already"}}, status=409)
        asked = models.CreateCollection.model_validate(await request.json())
        assert asked.vectors is not None
        return _told(self._engine.create_collection(_name(request), vectors_config=asked.vectors))

    async def _drop(self, request: web.Request) -> web.Response:
        return _told(self._engine.delete_collection(_name(request)))

    async def _index(self, request: web.Request) -> web.Response:
        """The engine searches without."""
        self._engine.get_collection(_name(request))
        models.CreateFieldIndex.model_validate(await request.json())
        return _done()

    async def _retrieve(self, request: web.Request) -> web.Response:
        asked = models.PointRequest.model_validate(await request.json())
        more = {"with_payload": asked.with_payload, "with_vectors": asked.with_vector or False}
        return _told(self._engine.retrieve(_name(request), asked.ids, **more))

    async def _upsert(self, request: web.Request) -> web.Response:
        asked = models.PointsList.model_validate(await request.json())
        self._engine.upsert(_name(request), asked.points, update_filter=asked.update_filter)
        return _done()

    async def _batch(self, request: web.Request) -> web.Response:
        asked = models.UpdateOperations.model_validate(await request.json())
        self._engine.batch_update_points(_name(request), asked.operations)
        return _told([{"status": "completed"} for _ in asked.operations])

    async def _delete(self, request: web.Request) -> web.Response:
        body = await request.json()
        selector = models.FilterSelector if "filter" in body else models.PointIdsList
        self._engine.delete(_name(request), selector.model_validate(body))  # type: ignore[arg-type]
        return _done()

    async def _query(self, request: web.Request) -> web.Response:
        asked = models.QueryRequest.model_validate(await request.json())
        found = self._engine.query_points(
            _name(request),
            query=asked.query,
            query_filter=asked.filter,
            limit=asked.limit or 10,
            score_threshold=asked.score_threshold,
            with_payload=asked.with_payload or False,
        )
        return _told(found)

    async def _scroll(self, request: web.Request) -> web.Response:
        asked = models.ScrollRequest.model_validate(await request.json())
        found, following = self._engine.scroll(
            _name(request),
            scroll_filter=asked.filter,
            limit=asked.limit or 10,
            offset=asked.offset,
            with_payload=True if asked.with_payload is None else asked.with_payload,
            with_vectors=asked.with_vector or False,
        )
        return _told({"points": [_plain(each) for each in found], "next_page_offset": following})

    async def _count(self, request: web.Request) -> web.Response:
        asked = models.CountRequest.model_validate(await request.json())
        return _told(self._engine.count(_name(request), asked.filter, exact=True))


def _name(request: web.Request) -> str:
    return request.match_info["name"]


def _told(result: Any) -> web.Response:
    shown = [_plain(each) for each in result] if isinstance(result, list) else _plain(result)
    return web.json_response({"result": shown, "status": "ok", "time": 0.0})


def _done() -> web.Response:
    return _told({"operation_id": 0, "status": "completed"})


def _plain(each: Any) -> Any:
    return each.model_dump(mode="json") if isinstance(each, BaseModel) else each


if __name__ == "__main__":
    _, port, folder = sys.argv
    engine = QdrantClient(":memory:") if folder == ":memory:" else QdrantClient(path=folder)
    stand_in = StandIn(engine, Path(os.environ["KEY"]))
    web.run_app(stand_in.application(), host="127.0.0.1", port=int(port), print=None, access_log=None)
