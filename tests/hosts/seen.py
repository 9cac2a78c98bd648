"""Record the requests of the hosts to the model host."""

import json
from typing import Any

from tests.hosts.conftest import LAMP
from tests.hosts.upstream import Upstream

# Documents of a host's own may have the command as text: the program for LangChain puts one into a template.
_DOCUMENT = "/rag evil"
_LEAVES_WITHIN = 30.0


def all_enriched(upstream: Upstream) -> list[str]:
    """The routes that were asked, after seeing evidence and no command in each prompt."""
    assert upstream.asked
    for path, body in upstream.asked:
        text = json.dumps(body, ensure_ascii=False)
        assert LAMP in text, path
        assert "/rag" not in text.replace(_DOCUMENT, ""), path
        assert body["model"] in ("m", "missing")
    return sorted({path for path, _ in upstream.asked})


def all_left(upstream: Upstream, told: dict[str, Any]) -> None:
    """The model host stops speaking for each client that went away."""
    for _ in [name for name in told if name.endswith("abort")]:
        assert upstream.left.acquire(timeout=_LEAVES_WITHIN)
