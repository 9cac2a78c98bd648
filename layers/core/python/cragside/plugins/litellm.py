"""A guardrail and a callback for LiteLLM's proxy: chats and completions that begin with `/rag` get evidence."""

import asyncio
import logging
import os
from threading import Thread
from typing import Any

from litellm.integrations.custom_guardrail import CustomGuardrail
from litellm.integrations.custom_logger import CustomLogger
from typing_extensions import override

from cragside.client import Client
from cragside.domain.errors import CragsideError
from cragside.domain.query import DEFAULT_PREFIX
from cragside.plugins.service import DEFAULT_ENDPOINT, Service
from cragside.plugins.smart_proxy import FailMode, PluginConfiguration, RagAgent

_log = logging.getLogger("cragside.plugins")
_CALLS = ("completion", "acompletion", "text_completion", "atext_completion")


class CragsideGuardrail(CustomGuardrail):
    """A guardrail of the mode `pre_call`. LiteLLM's configuration gives the keywords.

    On a failure, `fail_mode` `open` passes the request on unchanged, and `closed` refuses it. A keyword that cannot be
    right stops LiteLLM's start; a cragside that cannot be asked, or has another command, is logged at the start.
    """

    def __init__(
        self,
        *,
        api_base: str = DEFAULT_ENDPOINT,
        api_key: str | None = None,
        workspace: str | None = None,
        command: str = DEFAULT_PREFIX,
        fail_mode: FailMode = "open",
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self._agent = _agent(
            Client(api_base, setting="api_base", token=api_key, workspace=workspace), command, fail_mode
        )
        _check(Service(api_base, api_key, workspace, command))

    @override
    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """The request with evidence, if it begins with the command."""
        return await _enriched(self._agent, data, call_type, user_api_key_dict)


# LiteLLM looks for the hook in the class itself, not in its bases.
class CragsideCallback(CustomLogger):
    """A callback for all requests. `CRAGSIDE_ENDPOINT` and `RAG_API_TOKEN` of the environment say where cragside is."""

    def __init__(self) -> None:
        super().__init__()
        endpoint = os.environ.get("CRAGSIDE_ENDPOINT") or DEFAULT_ENDPOINT
        token = os.environ.get("RAG_API_TOKEN")
        self._agent = _agent(Client(endpoint, setting="CRAGSIDE_ENDPOINT", token=token), DEFAULT_PREFIX, "open")
        _check(Service(endpoint, token))

    @override
    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """The request with evidence, if it begins with the command."""
        return await _enriched(self._agent, data, call_type, user_api_key_dict)


def __getattr__(name: str) -> CragsideCallback:
    """`callback`, the instance that LiteLLM's configuration names; made when it is asked for."""
    if name == "callback":
        return CragsideCallback()
    raise AttributeError(name)


def _agent(client: Client, command: str, fail_mode: FailMode) -> RagAgent:
    return RagAgent(endpoint=client, configuration=PluginConfiguration(command_prefix=command), fail_mode=fail_mode)


def _check(service: Service) -> None:
    """Log what is wrong, without keeping LiteLLM from its start: cragside may start after it."""

    def check() -> None:
        try:
            asyncio.run(service.check())
        except CragsideError as error:
            _log.error("Requests will go without evidence: %s", error.message)

    Thread(target=check, daemon=True).start()


async def _enriched(agent: RagAgent, data: dict[str, Any], call_type: str, key: Any) -> dict[str, Any]:
    """LiteLLM's data, changed in place. Only prompt and user are sent to cragside: the rest has keys and objects."""
    if call_type not in _CALLS:
        return data
    prompt = {name: data[name] for name in ("messages", "prompt") if data.get(name) is not None}
    # The user whom the request names, else the one to whom LiteLLM's key belongs.
    users = (data.get("user"), *(getattr(key, name, None) for name in ("end_user_id", "user_id")))
    user = next((each for each in users if isinstance(each, str) and each), None)
    enhanced = await agent.on_retrieve({**prompt, **({"user_id": user} if user else {})})
    context = (enhanced.get("metadata") or {}).get("rag_context")
    if context is not None:
        data.update({name: enhanced[name] for name in prompt})
        data["metadata"] = {**(data.get("metadata") or {}), "rag_context": context}
    return data
