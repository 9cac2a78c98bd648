"""Report the result of each call from a program to its test."""

import json
import sys
from collections.abc import Callable
from typing import Any

QUESTION = "What does the lamp burn?"


def attacked(ask: Callable[[str], Any]) -> dict[str, Callable[[], Any]]:
    """A feature for each hostile answer that the test has named: asking at its address."""
    hostile, *names = sys.argv[2:]
    return {name: lambda name=name: str(ask(f"{hostile}/{name}")) for name in names}


def tell(**features: Callable[[], Any]) -> None:
    """Print the outcome of each as JSON. An error is told by its class and its text."""
    print(json.dumps({name: _outcome(feature) for name, feature in features.items()}))


def _outcome(feature: Callable[[], Any]) -> Any:
    try:
        return feature()
    except Exception as error:  # the test reads it
        return f"{type(error).__name__}: {error}"
