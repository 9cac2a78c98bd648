"""The service's description of itself."""

from typing import Any

import orjson

from cragside.entrypoints.http.openapi import openapi_document


def openapi() -> Any:
    """The OpenAPI document of a service without settings, as clients read it; a copy for each caller."""
    return orjson.loads(orjson.dumps(openapi_document(None), option=orjson.OPT_NON_STR_KEYS))
