"""Writes docs/configuration.md from the settings: python tools/configuration_reference.py > docs/configuration.md."""

from pydantic_core import PydanticUndefined

from cragside.settings import Settings, variable_of

# The first setting of each group.
_GROUPS = {
    "ollama_base_url": "Servers",
    "home": "Store",
    "workspace": "Questions and evidence",
    "chat_model": "Models",
    "chunk_tokens": "Documents",
    "queue_url": "Indexing",
    "store_exchanges": "Memory",
    "similarity_results": "Defaults of a workspace",
    "api_token": "Access",
}
_INTRODUCTION = """# Configuration

All settings are environment variables. Unset and empty variables have their defaults. Without any variable, cragside
runs embedded: no server, no download, no GPU. A misspelt `RAG_` variable is an error that names the nearest setting.
This page is generated from `cragside/settings/` by `tools/configuration_reference.py`.
"""


def reference() -> str:
    """The page."""
    contents = "".join(f"- [{group}](#{group.lower().replace(' ', '-')})\n" for group in _GROUPS.values())
    return "\n".join([_INTRODUCTION, contents, *(_section(name) for name in Settings.model_fields)])


def _section(name: str) -> str:
    field = Settings.model_fields[name]
    default = field.default
    shown = "unset" if default is None or default is PydanticUndefined else f"`{default}`"
    heading = f"## {_GROUPS[name]}\n\n" if name in _GROUPS else ""
    return f"{heading}### `{variable_of(name)}`\n\n{field.description}\n\nDefault: {shown}.\n"


if __name__ == "__main__":
    print(reference(), end="")
