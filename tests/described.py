"""The service's description of itself."""

from functools import cache
from pathlib import Path
from typing import Any

import orjson

from cragside.bootstrap import Container
from cragside.entrypoints.http.app import create_app
from cragside.settings import Settings


def openapi() -> Any:
    """The OpenAPI document of a service without settings, as clients read it; a copy for each caller."""
    return orjson.loads(_made())


@cache
def _made() -> bytes:
    app = create_app(Container(Settings(home=Path("never-opened"))))  # type: ignore[call-arg]
    return orjson.dumps(app.openapi(), option=orjson.OPT_NON_STR_KEYS)
