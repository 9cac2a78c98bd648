"""Shared by the programs of the hosts: the question, and the report on their library's answers."""

import json
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

ADDRESS, KEY, *_ = [*sys.argv[1:], "none"]
QUESTION = "/rag what does the lamp burn?"
ENDLESS = "/rag what does the lamp burn? hang"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUEL = {"type": "object", "properties": {"fuel": {"type": "string"}}, "required": ["fuel"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Tells the weather.", "parameters": CITY}}


def user(text: str = QUESTION) -> list[dict[str, str]]:
    """A conversation of one message."""
    return [{"role": "user", "content": text}]


def pieces(texts: Iterable[str | None]) -> list[str]:
    """The pieces that have text."""
    return [text for text in texts if text]


def some(texts: Iterable[str | None]) -> int:
    """Count the pieces that were read before the reader went away."""
    return len(list(islice((text for text in texts if text), 2)))


def tell(**features: Callable[[], Any]) -> None:
    """Print the outcome of each as JSON. An error is told by its class and its text."""
    print(json.dumps({name: _outcome(feature) for name, feature in features.items()}))


def _outcome(feature: Callable[[], Any]) -> Any:
    try:
        return feature()
    except Exception as error:  # the test reads it
        return f"{type(error).__name__}: {error}"
