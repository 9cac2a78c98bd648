"""Writes docs/configuration.md from the settings: python tools/configuration_reference.py > docs/configuration.md."""

from pydantic_core import PydanticUndefined

from cragside.settings import Settings, variable_of

# The first setting of each group.
_GROUPS = {
    "postgres_uri": "Databases",
    "ollama_base_url": "Models and search",
    "home": "Store",
    "workspace": "Questions and evidence",
    "chat_model": "Models",
    "chunk_tokens": "Documents",
    "queue_url": "Indexing",
    "store_exchanges": "Memory",
    "similarity_results": "Defaults of a workspace",
    "api_token": "Access",
    "path_prefix": "Running a server",
}
_INTRODUCTION = """# Configuration

All settings are environment variables. Unset and empty variables have their defaults. Without any variable, cragside
runs embedded: no server, no download, no GPU. A misspelt `RAG_` variable is an error that names the nearest setting.
This page is generated from `cragside/settings/` by `tools/configuration_reference.py`.

The commands also read settings from files. The first place that has a setting counts:

1. the environment
2. `.env` in the working directory
3. `cragside.toml` in the working directory
4. `.env` in `RAG_HOME` (`~/.cragside` unless set)
5. `cragside.toml` in `RAG_HOME`

`.env` has lines like `RAG_THRESHOLD=0.5`; variables that are not cragside's are ignored. In `cragside.toml`, a setting
is written as its variable, or in lower case without `RAG_`. Write a comma-separated setting as a list, and a JSON
setting as a table:

```toml
ollama_base_url = "http://127.0.0.1:11434"
threshold = 0.55
allow_origins = ["https://app.example", "http://nas.lan:*"]

[workspace_tokens]
a-long-random-token = ["team"]
```

A file that every user can write is refused, and so is another user's file in a folder that every user can write. Give
files with tokens the mode 600. `cragside ingest` leaves them out. `cragside config` shows each setting, its value
(secrets masked) and where it comes from. The functions on Lambda, the plugin and the Python API read no files.
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
