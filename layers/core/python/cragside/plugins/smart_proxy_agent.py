"""The plugin file for ollama-smart-proxy: copy it over its `src/plugins/rag/agent.py`. See docs/plugins.md.

It can be loaded only inside the proxy, whose `BaseAgent` it extends.
"""

import os

from src.shared.base_agent import BaseAgent  # type: ignore[import-not-found]

from cragside.plugins.smart_proxy import RagAgent

# Where `cragside serve` listens. None: cragside works inside the proxy's own process, set up by the environment.
ENDPOINT: str | None = "http://127.0.0.1:8642"


class CragsideAgent(RagAgent, BaseAgent):  # type: ignore[misc]
    """cragside as the proxy's `rag` agent."""

    def __init__(self) -> None:
        super().__init__(endpoint=ENDPOINT, token=os.environ.get("RAG_API_TOKEN") if ENDPOINT else None)
