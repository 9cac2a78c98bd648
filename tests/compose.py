"""The compose file and what belongs to it, read as a program reads it."""

import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docker-compose.local.yml"
TEXT = FILE.read_text()
EXAMPLE = ROOT / ".env.example"
# `${NAME}`, `${NAME:-default}`, `${NAME-default}` and `${NAME:?why it is refused}`.
_VARIABLE = re.compile(r"\$\{(\w+)(?:(:?[-?])([^}]*))?\}")


def services() -> dict[str, dict[str, Any]]:
    """The services by name, with anchors resolved and variables as they stand."""
    return deepcopy(_read())


@cache
def _read() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
    return found


def variables() -> dict[str, set[str]]:
    """The variables that the file asks for, each with the signs behind its name: `:-`, `-`, `:?` or nothing."""
    found: dict[str, set[str]] = {}
    for name, sign, _ in _VARIABLE.findall(TEXT):
        found.setdefault(name, set()).add(sign)
    return found


def secrets() -> set[str]:
    """The variables without which the file is refused."""
    return {name for name, signs in variables().items() if ":?" in signs}


def example() -> dict[str, str]:
    """Return the settings of .env.example."""
    lines = [line for line in EXAMPLE.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def filled_in(text: str, given: dict[str, str]) -> str:
    """The text with its variables replaced as compose does it."""

    def value(match: re.Match[str]) -> str:
        name, sign, default = match.groups()
        if name in given and (given[name] or ":" not in (sign or "")):
            return given[name]
        return default if sign in (":-", "-") else ""

    return _VARIABLE.sub(value, text)


def is_once(service: dict[str, Any]) -> bool:
    """Return True if the service ends when its work is done."""
    return service.get("restart") == "no"
