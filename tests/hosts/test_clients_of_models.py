"""Real clients of models ask through cragside and get evidence, whatever way they ask."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.hosts import catalogue, packages
from tests.hosts.catalogue import COMMAND_LINE, LIBRARIES, LITELLM_PROXY, PROPERTY, SMART_PROXY, Host
from tests.hosts.conftest import Run
from tests.hosts.litellm_proxy import LiteLlmProxy
from tests.hosts.seen import all_enriched, all_left
from tests.hosts.smart_proxy import REVISION, SmartProxy
from tests.hosts.upstream import ANSWER, Upstream
from tests.services import ollama, tools
from tests.services.cragside_server import CragsideServer

pytestmark = pytest.mark.hosts

Record = Callable[[str, Any], None]


@pytest.fixture(autouse=True)
def fresh(upstream: Upstream) -> None:
    upstream.asked.clear()


@pytest.mark.parametrize("host", LIBRARIES, ids=lambda host: host.program)
def test_a_library_asks_through_cragside(
    host: Host, cragside: CragsideServer, upstream: Upstream, run: Run, record_property: Record
) -> None:
    told = run(host, cragside.url)
    assert catalogue.wrong(told) == {}
    all_left(upstream, told)
    record_property(PROPERTY, catalogue.row(host.name, host.version, all_enriched(upstream), list(told)))


def test_litellms_proxy_stands_before_cragside(
    cragside: CragsideServer, upstream: Upstream, run: Run, record_property: Record
) -> None:
    with LiteLlmProxy(packages.python(), cragside.url) as proxy:
        told = run(LITELLM_PROXY, proxy.url, proxy.key)
    assert catalogue.wrong(told) == {}
    all_left(upstream, told)
    row = catalogue.row(LITELLM_PROXY.name, LITELLM_PROXY.version, all_enriched(upstream), list(told))
    record_property(PROPERTY, row)


def test_ollamas_command_line_asks_with_the_suffix(
    cragside: CragsideServer, upstream: Upstream, record_property: Record
) -> None:
    """It takes each leading slash for itself, so the model's name asks for evidence."""
    binary = ollama.server().binary
    own = {"OLLAMA_HOST": cragside.url, "HOME": str(cragside.home), "PATH": "/usr/bin:/bin"}

    def call(*words: str) -> str:
        return tools.run([str(binary), *words], env=own, inherit=False, seconds=60)

    assert "m" in call("list").split()
    assert ANSWER in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", call("run", "m+rag", "what does the lamp burn?"))
    with pytest.raises(tools.Unavailable, match="model 'missing' not found"):
        call("run", "missing+rag", "what does the lamp burn?")
    row = catalogue.row(COMMAND_LINE, ollama.VERSION, all_enriched(upstream), ["stream", "error"])
    record_property(PROPERTY, row)


def test_ollama_smart_proxy_asks_by_its_agent(
    cragside: CragsideServer, upstream: Upstream, run: Run, record_property: Record
) -> None:
    try:
        proxy = SmartProxy(upstream.address, cragside.url)
    except tools.Unavailable as missing:
        pytest.skip(str(missing))
    with proxy:
        told = run(SMART_PROXY, proxy.url)
    assert catalogue.wrong(told) == {}
    record_property(PROPERTY, catalogue.row(SMART_PROXY.name, REVISION, all_enriched(upstream), list(told)))
