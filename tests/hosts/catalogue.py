"""The hosts that are tried, each with its program, and the row of the README's table that a run makes of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.hosts import packages
from tests.hosts.forms import CALLED
from tests.hosts.upstream import ANSWER, PIECES

PROPERTY = "host"
COLUMNS = ("host", "version", "routes", "streaming", "tools", "JSON", "abort", "errors")
# What the last word of a feature's name says of it. All others get the whole answer.
_EXPECTED: Mapping[str, Any] = {"stream": list(PIECES), "tools": CALLED, "json": {"fuel": "colza oil"}, "abort": 2}
_KINDS = {"streaming": "stream", "tools": "tools", "JSON": "json", "abort": "abort", "errors": "error"}


@dataclass(frozen=True)
class Host:
    """A host, what calls it, and the packages whose versions are told."""

    name: str
    program: str
    packages: Sequence[str]

    @property
    def node(self) -> bool:
        """Return True if the host runs in Node."""
        return self.program.endswith(".mjs")

    @property
    def version(self) -> str:
        """The versions of its packages."""
        return ", ".join(f"{name} {packages.version(name, node=self.node)}" for name in self.packages)


LIBRARIES = (
    Host("Ollama for Python", "ollama_python.py", ["ollama"]),
    Host("Ollama for JavaScript", "ollama_js.mjs", ["ollama"]),
    Host("OpenAI for Python", "openai_python.py", ["openai"]),
    Host("OpenAI for Node", "openai_node.mjs", ["openai"]),
    Host("Anthropic for Python", "anthropic_python.py", ["anthropic"]),
    Host("Anthropic for Node", "anthropic_node.mjs", ["@anthropic-ai/sdk"]),
    Host("LangChain", "langchain_python.py", ["langchain-core", "langchain-ollama", "langchain-openai"]),
    Host("LlamaIndex", "llama_index_python.py", ["llama-index-core", "llama-index-llms-ollama"]),
    Host("AI SDK", "ai_sdk.mjs", ["ai", "@ai-sdk/openai-compatible", "ollama-ai-provider-v2"]),
    Host("LiteLLM", "litellm_python.py", ["litellm"]),
)
LITELLM_PROXY = Host("LiteLLM's proxy", "openai_python.py", ["litellm"])
SMART_PROXY = Host("ollama-smart-proxy", "smart_proxy_client.py", [])
OPEN_WEBUI = "Open WebUI"
COMMAND_LINE = "Ollama's command line"


def wrong(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the faults in the report of a program."""
    return {name: outcome for name, outcome in told.items() if not _is_right(_kind(name), outcome)}


def row(name: str, version: str, routes: Sequence[str], features: Sequence[str]) -> dict[str, str]:
    """A row of the table."""
    kinds = {_kind(feature) for feature in features}
    told = {column: "yes" if kind in kinds else "" for column, kind in _KINDS.items()}
    return {"host": name, "version": version, "routes": " ".join(f"`{route}`" for route in routes), **told}


def _kind(feature: str) -> str:
    return feature.rpartition("_")[2]


def _is_right(kind: str, outcome: Any) -> bool:
    if kind == "error":
        return "model 'missing' not found" in str(outcome)
    return bool(outcome == _EXPECTED.get(kind, ANSWER))
