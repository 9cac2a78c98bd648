"""Every panel has navigation, the token, languages, and no barriers in any look."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

import pytest

from cragside.domain.evidence import EvidenceSource
from cragside.domain.indexing import DocumentStatus, Stage
from cragside.domain.outcome import Dropped
from cragside.domain.preferences import MODES, PROMPTS, RANGES, STRATEGIES
from cragside.domain.verdict import Verdict
from cragside.entrypoints.component_checks import State
from cragside.entrypoints.http.v1.enrich import StepBody
from tests.console.acts import PATIENCE, expects, first_held
from tests.console.conftest import Axe
from tests.console.looks import EVERY_LOOK, GERMAN
from tests.console.watch import Watch
from tests.services.cragside_server import CragsideServer, Given

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

PANELS = ("ask", "documents", "graph", "memory", "settings")
TEXTS = {"swan.md": "Joseph Swan met Thomas Edison in London. Joseph Swan lit Cragside for William Armstrong in 1880."}
KNOWN = Given(documents=TEXTS)
GUARDED = Given(documents=TEXTS, token="open-sesame-open-sesame")
# What the service may answer, by the beginning of the keys of its texts.
VALUES: dict[str, Iterable[str]] = {
    "candidate.dropped": get_args(Dropped),
    "components.state": get_args(State),
    "dead.stage": get_args(Stage),
    "documents.status": get_args(DocumentStatus),
    "settings.mode": MODES,
    "settings.number": RANGES,
    "settings.prompts": PROMPTS,
    "settings.strategy": STRATEGIES,
    "source": get_args(EvidenceSource),
    "step": get_args(StepBody.model_fields["name"].annotation),
    "step.decide": get_args(StepBody.model_fields["next"].annotation),
    "verdict": get_args(Verdict),
}


@pytest.fixture(autouse=True)
def no_ollama(watch: Watch) -> None:
    """The panel Ask asks Ollama for its models; the browser logs that none answers."""
    watch.allow("/api/tags")


@pytest.mark.parametrize("look", EVERY_LOOK, ids=str)
@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("given", [KNOWN])
def test_a_panel_has_no_barriers_and_fits_the_screen(
    page: "Page", shared_service: CragsideServer, panel: str, axe: Axe
) -> None:
    page.goto(shared_service.console(f"#/{panel}"))
    expects(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("given", [GUARDED])
def test_the_token_is_asked_for_once_and_kept_for_the_tab(
    page: "Page", shared_service: CragsideServer, watch: Watch, axe: Axe
) -> None:
    watch.allow("status of 401")
    page.goto(shared_service.console())
    dialog = page.get_by_role("dialog", name="Token")
    expects(dialog).to_be_visible()
    assert axe(page) == []
    dialog.get_by_label("Token").fill("no header takes this €")
    dialog.get_by_role("button", name="Continue").click()
    expects(dialog.get_by_role("alert")).to_contain_text("does not know this token")
    dialog.get_by_label("Token").fill("wrong-wrong-wrong")
    dialog.get_by_role("button", name="Continue").click()
    expects(dialog.get_by_role("alert")).to_contain_text("does not know this token")
    dialog.get_by_label("Token").fill(GUARDED.token)
    dialog.get_by_role("button", name="Continue").click()
    expects(page.get_by_role("heading", name="Ask")).to_be_visible()
    page.reload()
    expects(page.get_by_role("heading", name="Ask")).to_be_visible()
    page.get_by_role("button", name="Forget token").click()
    expects(page.get_by_role("dialog", name="Token")).to_be_visible()


@pytest.mark.parametrize("given", [GUARDED])
def test_a_token_is_refused_once_the_service_said_so_and_not_before(
    page: "Page", shared_service: CragsideServer, watch: Watch
) -> None:
    watch.allow("status of 401")
    page.goto(shared_service.console())
    expects(page.get_by_role("dialog", name="Token")).to_be_visible()
    held: list[Route] = []
    page.route("**/v1/workspaces", lambda route: held.append(route))
    page.get_by_role("textbox", name="Token").fill(GUARDED.token)
    with page.expect_request("**/v1/workspaces", timeout=PATIENCE):
        page.get_by_role("button", name="Continue").click()
    page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert page.get_by_role("alert").inner_text() == ""
    first_held(page, held).continue_()
    expects(page.get_by_role("heading", name="Ask")).to_be_visible()
    expects(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("given", [GUARDED])
def test_who_closes_the_dialog_for_the_token_can_open_it_again(
    page: "Page", shared_service: CragsideServer, watch: Watch
) -> None:
    watch.allow("status of 401")
    page.goto(shared_service.console())
    dialog = page.get_by_role("dialog", name="Token")
    expects(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expects(page.locator("dialog")).to_have_count(0)  # closed ones too: the page hears of it a moment later
    page.get_by_role("button", name="Enter token").press("Enter")
    expects(dialog.get_by_label("Token")).to_be_focused()
    dialog.get_by_role("button", name="Close").click()
    expects(dialog).to_have_count(0)
    expects(page.get_by_role("button", name="Enter token")).to_be_focused()


@pytest.mark.parametrize(
    "given", [Given(token="all", environment={"RAG_WORKSPACE_TOKENS": json.dumps({"two-two-two": ["land", "sea"]})})]
)
def test_a_token_for_several_workspaces_opens_the_first_of_them(
    page: "Page", service: CragsideServer, watch: Watch
) -> None:
    watch.allow("status of 401")
    page.goto(service.console("#/documents"))
    page.get_by_role("textbox", name="Token").fill("two-two-two")
    page.get_by_role("button", name="Continue").click()
    expects(page.get_by_text("There is nothing here yet.")).to_be_visible()
    expects(page.get_by_role("dialog")).to_have_count(0)
    expects(page.get_by_role("combobox", name="Workspace")).to_have_value("land")


@pytest.mark.parametrize("look", [GERMAN], ids=str)
@pytest.mark.parametrize("given", [KNOWN])
def test_the_console_speaks_the_browsers_language_and_another(page: "Page", shared_service: CragsideServer) -> None:
    page.goto(shared_service.console())
    expects(page.get_by_role("heading", name="Fragen")).to_be_visible()
    page.get_by_label("Sprache").focus()
    page.get_by_label("Sprache").select_option("en")
    expects(page.get_by_role("heading", name="Ask")).to_be_visible()
    expects(page.get_by_label("Language")).to_be_focused()
    assert page.evaluate("document.documentElement.lang") == "en"


@pytest.mark.parametrize("given", [KNOWN])
def test_both_languages_have_the_same_texts_and_one_for_each_answer_of_the_service(
    page: "Page", shared_service: CragsideServer
) -> None:
    page.goto(shared_service.console())
    english, german = (
        set(page.evaluate(f"import('./texts/{language}.js').then((module) => Object.keys(module.default))"))
        for language in ("en", "de")
    )
    assert english == german
    assert {f"{beginning}.{value}" for beginning, values in VALUES.items() for value in values} <= english


@pytest.mark.parametrize("given", [KNOWN])
def test_the_keyboard_reaches_every_panel(page: "Page", shared_service: CragsideServer) -> None:
    page.goto(shared_service.console())
    expects(page.get_by_role("heading", name="Ask")).to_be_visible()
    page.keyboard.press("Tab")
    expects(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for name in ("cragside", "Ask", "Documents"):
        page.keyboard.press("Tab")
        expects(page.get_by_role("link", name=name, exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expects(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()


@pytest.mark.parametrize("given", [KNOWN])
def test_workspaces_can_be_switched(page: "Page", service: CragsideServer) -> None:
    with service.client() as client:
        other = {"name": "tart.md", "text": "Bake the lemon tart for forty minutes.", "workspace": "kitchen"}
        client.post("/v1/documents", json=other).raise_for_status()
    page.goto(service.console("#/documents"))
    page.get_by_role("combobox", name="Workspace").select_option("kitchen")
    expects(page.get_by_role("button", name="tart.md", exact=True)).to_be_visible()
    expects(page.get_by_role("button", name="swan.md", exact=True)).to_have_count(0)
