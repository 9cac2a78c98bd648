"""Fields of an environment out of a file."""

import tomllib
from pathlib import Path

from infra.environments.knowledge import knowledge_of
from infra.environments.model import NotDeployable


def fields_of(file: Path) -> dict[str, object]:
    """The fields that a TOML file has. Raises `NotDeployable` for a file that cannot be read."""
    try:
        fields = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotDeployable(f"{file} cannot be read: {error}") from error
    if "name" in fields:
        raise NotDeployable(f"{file}: -c env=NAME names the environment, so that no file changes which one it is")
    if isinstance(knowledge := fields.get("knowledge"), str):
        fields["knowledge"] = knowledge_of(knowledge)
    return fields
