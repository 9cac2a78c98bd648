"""Settings from files: `.env` and `cragside.toml`, in the working directory and in RAG_HOME.

The environment beats all files, the working directory beats RAG_HOME, and `.env` beats `cragside.toml` beside it.
"""

import json
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from cragside.domain.errors import ConfigurationError
from cragside.settings import Settings, variable_of

ENVIRONMENT, DEFAULT = "environment", "default"
_HOME = "RAG_HOME"
# More than any settings need: python-dotenv takes a time that grows with the square of a line's length.
_MOST_BYTES = 64_000
_VARIABLES = frozenset(map(variable_of, Settings.model_fields))


@dataclass(frozen=True, slots=True)
class CompleteEnvironment:
    """An environment with what files add to it. `origins` tells where each variable of a setting comes from."""

    values: Mapping[str, str]
    origins: Mapping[str, str]

    def origin(self, variable: str) -> str:
        """Name where a setting comes from: the environment, the path of a file, or its default."""
        return self.origins.get(variable, DEFAULT)


def completed_environment(environment: Mapping[str, str], folder: Path) -> CompleteEnvironment:
    """Return the environment, completed from the files in `folder` and in RAG_HOME.

    An empty variable counts as unset. Raises `ConfigurationError` for a file that is unreadable, invalid, or writable
    by other users.
    """
    values = dict(environment)
    origins = {name: ENVIRONMENT for name, value in environment.items() if _is_ours(name) and value.strip()}
    _complete(values, origins, folder)
    home = Path(values.get(_HOME) or Settings.model_fields["home"].default)
    if "://" not in values.get(_HOME, "") and home.expanduser().absolute() != folder.absolute():
        chosen = origins.get(_HOME)
        _complete(values, origins, home.expanduser())
        if origins.get(_HOME) != chosen:
            raise ConfigurationError(f"{origins[_HOME]} sets RAG_HOME, by which it was found. Set RAG_HOME elsewhere.")
    return CompleteEnvironment(values, origins)


def _complete(values: dict[str, str], origins: dict[str, str], folder: Path) -> None:
    for path, read in ((folder / ".env", _from_dotenv), (folder / "cragside.toml", _from_toml)):
        text = _text(path)
        if text is None:
            continue
        for name, value in read(path, text):
            if name not in origins and value.strip():
                values[name], origins[name] = value, str(path)


def _text(path: Path) -> str | None:
    """Return the content of a file, None if there is none."""
    try:
        with open(path, "rb", opener=_at_once) as file:
            _check_owner(path, os.fstat(file.fileno()))
            content = file.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if not os.access(path.parent, os.X_OK):
            unseen = f"You may not see whether {path.parent} has settings. Start cragside in a folder of yours."
            raise ConfigurationError(unseen) from error
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}. Make it readable, or remove it.") from error
    if len(content) > _MOST_BYTES:
        raise ConfigurationError(f"{path} is longer than {_MOST_BYTES:,} bytes, so it is no file of settings.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8. Save it as UTF-8.") from None


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting, even a pipe that nobody writes into."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_owner(path: Path, found: os.stat_result) -> None:
    """Refuse a file that other users could have written: settings decide where prompts and tokens are sent."""
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"{path} is not a file. Move it away, or run cragside in another folder.")
    if not hasattr(os, "geteuid"):
        return
    if found.st_mode & stat.S_IWOTH:
        raise ConfigurationError(f"Every user can write {path}, so it is not trusted. Run chmod o-w on it.")
    if found.st_uid not in (0, os.geteuid()) and path.parent.stat().st_mode & stat.S_IWOTH:
        raise ConfigurationError(
            f"{path} is another user's file, in a folder that every user can write. Run cragside in another folder."
        )


def _from_dotenv(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Return the variables of cragside in a file. Those of other programs are ignored."""
    from dotenv import dotenv_values  # most runs find no such file

    for name, value in dotenv_values(stream=StringIO(text), interpolate=False).items():
        if _is_ours(name):
            yield name, value or ""


def _from_toml(path: Path, text: str) -> Iterator[tuple[str, str]]:
    try:
        table = tomllib.loads(text)
    except (RecursionError, OverflowError):
        raise ConfigurationError(f"{path} is not valid TOML: it is nested too deep.") from None
    except ValueError as error:
        # Only the place: the message may quote a secret.
        line = str(error).rpartition("(at ")[2].rstrip(")") if "(at " in str(error) else "an unknown place"
        raise ConfigurationError(f"{path} is not valid TOML, at {line}.") from None
    for key, value in table.items():
        name = variable_of(key) if key in Settings.model_fields else key
        # Unknown names are passed on, as they would be from the environment: `load_settings` names the nearest.
        yield (name if _is_ours(name) else f"RAG_{key.upper()}"), _written(path, key, value)


def _written(path: Path, key: str, value: Any) -> str:
    """Return a value of TOML as an environment would have it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict):
        with suppress(TypeError):  # a date
            return json.dumps(value)
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ",".join(value)
    raise ConfigurationError(f"{path}: {key} must be a text, a number, true or false, a list of texts, or a table.")


def _is_ours(name: str) -> bool:
    return name.startswith("RAG_") or name in _VARIABLES
