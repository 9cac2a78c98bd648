"""How the programs tell what came of each call."""

import json
from collections.abc import Callable
from typing import Any

QUESTION = "What does the lamp burn?"


def tell(**features: Callable[[], Any]) -> None:
    """Print the outcome of each as JSON. An error is told by its class and its text."""
    print(json.dumps({name: _outcome(feature) for name, feature in features.items()}))


def _outcome(feature: Callable[[], Any]) -> Any:
    try:
        return feature()
    except Exception as error:  # the test reads it
        return f"{type(error).__name__}: {error}"
