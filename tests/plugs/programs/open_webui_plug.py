"""Open WebUI's own functions: its table has the file, its loader and its runner of filters run it."""

import asyncio
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from open_webui.internal.db import Base, engine
from open_webui.models.functions import FunctionForm, FunctionMeta, Functions
from open_webui.utils.filter import get_filter_context, process_filter_functions, resolve_filter_pipeline
from open_webui.utils.plugin import extract_frontmatter, load_function_module_by_id
from telling import QUESTION, tell

ADDRESS, FILE = sys.argv[1], Path(sys.argv[2])
CONTENT = FILE.read_text()


async def install() -> str:
    Base.metadata.create_all(engine)
    _, kind, header, _ = await load_function_module_by_id("cragside", CONTENT)
    form = FunctionForm(id="cragside", name=header["title"], content=CONTENT, meta=FunctionMeta(manifest=header))
    await Functions.insert_new_function("admin", kind, form)
    await Functions.update_function_by_id("cragside", {"is_active": True, "is_global": True})
    return str(kind)


async def chat(text: str, **valves: str) -> dict[str, Any]:
    await Functions.update_function_valves_by_id("cragside", {"endpoint": ADDRESS, **valves})
    state, events = SimpleNamespace(), list[dict[str, Any]]()
    request = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace()), state=state)

    async def emit(event: dict[str, Any]) -> None:
        events.append(event)

    _, functions = await resolve_filter_pipeline(request, {}, [])
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    context, extra = get_filter_context(request), {"__event_emitter__": emit, "__user__": {"id": "admin"}}
    body, _ = await process_filter_functions(request, context, functions, "inlet", body, extra)
    return {"body": body, "events": events}


async def all_chats() -> dict[str, Any]:
    return {
        "kind": await install(),
        "asked": await chat(f"/rag {QUESTION}", token=os.environ["TOKEN"]),
        "other": await chat(QUESTION, token=os.environ["TOKEN"]),
        "refused": await chat(f"/rag {QUESTION}", token="wrong"),
        "command": await chat(f"/docs {QUESTION}", token=os.environ["TOKEN"], command="/docs"),
    }


tell(header=lambda: extract_frontmatter(CONTENT), chats=lambda: asyncio.run(all_chats()))
