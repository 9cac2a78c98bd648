"""What the documentation says is held against the code."""

import re
from pathlib import Path

import pytest

from cragside.bootstrap import Container
from cragside.domain import errors
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.proxy.errors import status_of
from cragside.settings import Settings
from tests.blocks import blocks
from tests.hosts import catalogue, open_webui, smart_proxy
from tests.services import ollama
from tools.attack_table import ATTACKS, counts_on_page
from tools.configuration_reference import reference
from tools.host_table import rows_on_page

ROOT = Path(__file__).parents[3]


def test_the_configuration_page_matches_the_settings() -> None:
    assert (ROOT / "docs/configuration.md").read_text() == reference()


def test_the_readme_lists_the_hosts_that_are_tried_in_their_versions() -> None:
    tried = [(host.name, host.version) for host in (*catalogue.LIBRARIES, catalogue.LITELLM_PROXY)]
    tried += [(catalogue.COMMAND_LINE, ollama.VERSION), (catalogue.SMART_PROXY.name, smart_proxy.REVISION)]
    tried += [(catalogue.OPEN_WEBUI, open_webui.VERSION)]
    assert [(name, version) for name, version, *_ in rows_on_page()] == tried


def test_the_table_of_attacks_counts_those_of_the_suite(pytestconfig: pytest.Config) -> None:
    if pytestconfig.args != pytestconfig.getini("testpaths"):
        pytest.skip("the table counts the whole suite")
    assert counts_on_page() == pytestconfig.stash[ATTACKS]


def test_every_error_code_has_its_heading_and_status() -> None:
    page = (ROOT / "docs/api.md").read_text()
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.CragsideError)
    ]
    codes = {kind.code for kind in kinds} | {"forbidden", "bad_gateway"}
    for code in codes:
        assert f"### `{code}` ({status_of(code)})\n" in page
    assert page.count("\n### `") == len(codes)


def test_every_route_is_in_the_documentation_and_no_other(tmp_path: Path) -> None:
    paths = create_app(Container(Settings(home=tmp_path))).openapi()["paths"]  # type: ignore[call-arg]
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    named = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^` ]*)`", (ROOT / "docs/api.md").read_text()))
    named -= {"GET /openapi.json"}  # stands in no document of its own
    assert {_unnamed(route) for route in named} == {_unnamed(route) for route in routes}


def _unnamed(route: str) -> str:
    return re.sub(r"\{\w+\}", "{}", route)


def test_the_graph_in_the_documentation_is_the_graph() -> None:
    from cragside.crag.graph import build_graph

    assert build_graph().get_graph().draw_mermaid() in (ROOT / "docs/architecture.md").read_text()


def test_every_decision_record_says_when_and_whether_it_holds() -> None:
    for record in (ROOT / "docs/adr").glob("*.md"):
        assert "Status: accepted." in record.read_text()


def test_the_index_links_to_every_page() -> None:
    docs = ROOT / "docs"
    linked = re.findall(r"\]\(([^)]*)\)", (docs / "README.md").read_text())
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} - {"README.md"}
    assert sorted(linked) == sorted(pages | {"../benchmarks/README.md", "../evals/README.md"})


def test_the_readme_begins_with_an_answer_and_the_two_commands() -> None:
    answer, *commands = blocks("README.md")[:3]
    assert 'cragside ask "' in answer.text
    assert "Verdict  local" in answer.text
    assert [(command.language, command.text) for command in commands] == [("sh", "make demo\n"), ("sh", "make test\n")]
