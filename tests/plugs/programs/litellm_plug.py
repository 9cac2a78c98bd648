"""LiteLLM's own loader of guardrails and callbacks, and what calls their hooks in its proxy."""

import asyncio
import logging
import logging.handlers
import os
import queue
import sys
from typing import Any

import litellm
from litellm.caching.caching import DualCache
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.guardrails.init_guardrails import init_guardrails_v2
from litellm.proxy.types_utils.utils import get_instance_fn
from litellm.proxy.utils import ProxyLogging
from telling import QUESTION, tell

os.environ["CRAGSIDE_ENDPOINT"], os.environ["RAG_API_TOKEN"] = sys.argv[1], os.environ["TOKEN"]
PLUG, NOBODY = "cragside.plugins.litellm", "http://127.0.0.1:9"


def guardrail(name: str, **how: str) -> dict[str, Any]:
    own = {"guardrail": f"{PLUG}.CragsideGuardrail", "mode": "pre_call", **how}
    return {"guardrail_name": name, "litellm_params": own}


GUARDRAILS = [
    guardrail("evidence", api_base=sys.argv[1], api_key="os.environ/RAG_API_TOKEN"),
    guardrail("shared", api_base=sys.argv[1], api_key="os.environ/RAG_API_TOKEN"),
    guardrail("open", api_base=NOBODY),
    guardrail("closed", api_base=NOBODY, fail_mode="closed"),
]


async def call(call_type: str, *names: str, **prompt: Any) -> Any:
    data = {"model": "m", "guardrails": list(names), "secret": object(), "metadata": {"mine": 1}, **prompt}
    proxy = ProxyLogging(user_api_key_cache=DualCache())
    changed = await proxy.pre_call_hook(UserAPIKeyAuth(), data, call_type)
    context = changed["metadata"].get("rag_context")
    return {**{name: changed[name] for name in prompt}, "context": context, "mine": changed["metadata"]["mine"]}


async def chat(text: str, *names: str, call_type: str = "acompletion") -> Any:
    return await call(call_type, *names, messages=[{"role": "user", "content": text}])


async def with_callback() -> dict[str, Any]:
    litellm.callbacks = [get_instance_fn(f"{PLUG}.callback", config_file_path="config.yaml")]
    return {
        "chat": await chat(f"/rag {QUESTION}"),
        "completion": await call("atext_completion", prompt=f"/rag {QUESTION}"),
        "other_call": await chat(f"/rag {QUESTION}", call_type="anthropic_messages"),
        "other_text": await chat(QUESTION),
    }


def at_start(how: dict[str, Any]) -> str:
    """Return the first log line after a guardrail was made. Raises an error if none comes."""
    logged: queue.Queue[logging.LogRecord] = queue.Queue()
    handler = logging.handlers.QueueHandler(logged)
    logging.getLogger("cragside.plugins").addHandler(handler)
    try:
        init_guardrails_v2([guardrail("made", **how)], config_file_path="config.yaml")
        return logged.get(timeout=60).getMessage()
    finally:
        logging.getLogger("cragside.plugins").removeHandler(handler)


async def two_users() -> list[Any]:
    """One guardrail, two requests at once."""
    asked = [chat(f"/rag {QUESTION}", "shared"), chat("/rag zzz qqq xxyy", "shared")]
    return [each["messages"] for each in await asyncio.gather(*asked)]


RIGHT = {"api_base": sys.argv[1], "api_key": os.environ["TOKEN"]}
NO_WORD = guardrail("no word", **RIGHT, command="/my docs")
NO_MODE = guardrail("mode", **RIGHT, fail_mode="close")
init_guardrails_v2(GUARDRAILS, config_file_path="config.yaml")
tell(
    guardrail=lambda: asyncio.run(chat(f"/rag {QUESTION}", "evidence")),
    another_loop=lambda: asyncio.run(chat(f"/rag {QUESTION}", "evidence")),
    not_asked=lambda: asyncio.run(chat(f"/rag {QUESTION}")),
    open=lambda: asyncio.run(chat(f"/rag {QUESTION}", "open")),
    closed=lambda: asyncio.run(chat(f"/rag {QUESTION}", "closed")),
    two_users=lambda: asyncio.run(two_users()),
    callback=lambda: asyncio.run(with_callback()),
    no_word=lambda: init_guardrails_v2([NO_WORD], config_file_path="config.yaml"),
    no_mode=lambda: init_guardrails_v2([NO_MODE], config_file_path="config.yaml"),
    other_command=lambda: at_start({**RIGHT, "command": "/docs"}),
    not_there=lambda: at_start({"api_base": NOBODY}),
    refused=lambda: at_start({**RIGHT, "api_key": "wrong"}),
)
