"""The panel Ask: a question runs through the graph, candidates say why they were kept, a model answers from them."""

from typing import TYPE_CHECKING

import pytest

from tests.console.acts import expects
from tests.console.conftest import Axe
from tests.console.looks import EVERY_LOOK
from tests.console.watch import Watch
from tests.services.cragside_server import CragsideServer, Given
from tests.services.stub_ollama import StubOllama

if TYPE_CHECKING:
    from playwright.sync_api import Page

LIT = "Joseph Swan lit Cragside with his lamps in 1880. The lamps were lit in 1880."
TART = "The kitchen of Cragside is known for a lemon tart, which is baked for forty minutes."
HOSTILE = "<svg onload=alert(1)></svg> <img src=x onerror=alert(2)> Joseph Swan lit Cragside with his lamps in 1880."
QUESTION = "Who lit Cragside?"
KNOWN = Given(documents={"cragside.md": LIT, "tart.md": TART})
WITH_A_MODEL = Given(documents=KNOWN.documents, ollama="stub")


@pytest.fixture(autouse=True)
def no_ollama(watch: Watch) -> None:
    """The panel asks Ollama for its models; the browser logs that none answers."""
    watch.allow("/api/tags")


def ask(page: "Page", service: CragsideServer, question: str = QUESTION) -> None:
    page.goto(service.console("#/ask"))
    page.get_by_label("Question").fill(question)
    page.get_by_role("button", name="Find evidence").click()
    expects(page.get_by_role("heading", name="candidate")).to_be_visible()


@pytest.mark.parametrize("given", [KNOWN])
def test_a_question_shows_each_step_with_its_time(page: "Page", shared_service: CragsideServer) -> None:
    ask(page, shared_service)
    steps = page.get_by_role("list", name="Steps").get_by_role("listitem")
    expects(steps).to_have_count(4)  # once the last item, which says that it works, is gone
    assert [each.split("\n")[0] for each in steps.all_inner_texts()] == ["Retrieve", "Grade", "Decide", "Inject"]
    assert all(" ms" in each for each in steps.all_inner_texts())
    expects(page.get_by_text("Evidence from the knowledge base.")).to_be_visible()


@pytest.mark.parametrize("given", [KNOWN])
def test_a_candidate_says_why_it_was_kept_and_another_why_not(page: "Page", shared_service: CragsideServer) -> None:
    ask(page, shared_service)
    kept = page.locator(".candidate.kept")
    expects(kept).to_contain_text("In the prompt.")
    expects(kept.locator(".word", has_text="cragside")).to_be_visible()
    expects(kept.locator("mark")).to_contain_text("Joseph Swan lit Cragside")
    expects(kept).to_contain_text("the embedded grader")
    expects(page.locator(".candidate.dropped").first).to_contain_text("Not relevant enough.")


@pytest.mark.parametrize("given", [KNOWN])
def test_the_page_says_what_sufficed_without_the_web(page: "Page", shared_service: CragsideServer) -> None:
    ask(page, shared_service, "Who invented the lemon?")
    expects(page.get_by_text("A passage needs a relevance above 0.60.")).to_be_visible()
    expects(page.get_by_text("The web could not be asked, so a relevance above 0.20 was enough.")).to_be_visible()


@pytest.mark.parametrize("given", [KNOWN])
def test_without_evidence_the_nearest_passages_and_what_to_try_are_shown(
    page: "Page", shared_service: CragsideServer, axe: Axe
) -> None:
    ask(page, shared_service, "Who repairs the clock of the town hall?")
    expects(page.get_by_text("No evidence.")).to_be_visible()
    expects(page.get_by_role("heading", name="Closest, may not answer")).to_be_visible()
    expects(page.locator(".closest ol li")).to_have_count(2)
    expects(page.locator(".closest ol")).to_contain_text("tart.md")
    expects(page.get_by_text("Ask with the words of the documents.")).to_be_visible()
    expects(page.get_by_text("Have the web searched")).to_be_visible()
    assert axe(page) == []


@pytest.mark.parametrize("given", [KNOWN])
def test_a_candidate_that_nobody_graded_shows_its_similarity(page: "Page", service: CragsideServer) -> None:
    with service.client() as client:
        client.patch("/v1/settings", json={"mode": "similarity"}).raise_for_status()
    ask(page, service)
    expects(page.locator(".candidate.kept").first).to_contain_text("Similarity to the question 0.")
    expects(page.locator(".candidate svg line")).to_have_count(0)
    expects(page.get_by_text("A passage needs more than")).to_have_count(0)


@pytest.mark.parametrize("given", [KNOWN])
def test_a_workspace_without_evidence_says_so(page: "Page", service: CragsideServer) -> None:
    with service.client() as client:
        client.patch("/v1/settings", json={"mode": "off"}).raise_for_status()
    ask(page, service)
    page.get_by_role("link", name="Evidence is off in this workspace.").click()
    expects(page.get_by_role("heading", name="Evidence", exact=True)).to_be_visible()


@pytest.mark.parametrize("look", EVERY_LOOK, ids=str)
@pytest.mark.parametrize("given", [KNOWN])
def test_an_explanation_has_no_barriers(page: "Page", shared_service: CragsideServer, axe: Axe) -> None:
    page.goto(shared_service.console("#/ask"))
    page.locator("#question").fill(QUESTION)
    page.locator("form.ask [type=submit]").click()
    expects(page.locator(".candidate.kept mark")).to_be_visible()
    assert axe(page) == []


@pytest.mark.parametrize("given", [KNOWN])
def test_a_question_mark_in_the_address_belongs_to_the_question(page: "Page", shared_service: CragsideServer) -> None:
    page.goto(shared_service.console("#/ask?q=Who lit Cragside?"))
    expects(page.get_by_label("Question")).to_have_value("Who lit Cragside?")


@pytest.mark.parametrize("given", [KNOWN])
def test_a_passage_opens_in_its_document_with_the_strip_marked(page: "Page", shared_service: CragsideServer) -> None:
    ask(page, shared_service)
    page.locator(".candidate.kept").get_by_role("button", name="Open in the document").click()
    dialog = page.get_by_role("dialog", name="cragside.md")
    expects(dialog.locator("mark")).to_have_text(LIT)
    expects(dialog.locator("mark strong")).to_contain_text("Joseph Swan lit Cragside")
    dialog.get_by_role("button", name="Close").click()
    expects(dialog).to_have_count(0)
    expects(page.locator(".candidate.kept").get_by_role("button", name="Open in the document")).to_be_focused()


@pytest.mark.parametrize("given", [KNOWN])
def test_the_prompt_and_the_request_can_be_copied(page: "Page", shared_service: CragsideServer) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, shared_service, "Who lit 'Cragside'?")
    page.get_by_text("The prompt that a model gets").click()
    expects(page.locator("pre")).to_contain_text("[1]")
    page.get_by_role("button", name="Copy the request as curl").click()
    expects(page.get_by_text("Copied.")).to_be_visible()
    copied = str(page.evaluate("navigator.clipboard.readText()"))
    assert copied.startswith("curl --json '{\"prompt\":\"Who lit '\\''Cragside'\\''?\"")
    assert copied.endswith(f"'{shared_service.url}/v1/explain'")


def ask_a_model(page: "Page", service: CragsideServer) -> None:
    page.goto(service.console("#/ask"))
    page.get_by_label("Answer by").select_option("judge:latest")
    page.get_by_label("Question").fill("When were the lamps of Cragside lit?")
    page.get_by_role("button", name="Find evidence").click()


@pytest.mark.parametrize("given", [WITH_A_MODEL])
def test_a_model_answers_with_links_to_its_evidence(page: "Page", service: CragsideServer) -> None:
    ask_a_model(page, service)
    answer = page.locator(".answer")
    expects(answer).to_contain_text("The lamps were lit in 1880 [1]")
    expects(answer).to_contain_text("The citation is supported by its passage.")
    answer.get_by_role("link", name="[1]").click()
    expects(page.locator("#evidence-1")).to_be_focused()


@pytest.mark.parametrize("given", [Given(documents={"cragside.md": LIT.replace("1880", "1878")}, ollama="stub")])
def test_a_citation_that_its_passage_does_not_support_is_marked(page: "Page", service: CragsideServer) -> None:
    ask_a_model(page, service)
    expects(page.locator(".answer .cite.doubtful")).to_have_text("[1]?")
    expects(page.locator(".answer")).to_contain_text("1 of 1 citations is not supported")


@pytest.mark.parametrize("given", [WITH_A_MODEL])
def test_each_number_of_a_list_of_citations_is_linked_and_checked(
    page: "Page", service: CragsideServer, stub: StubOllama
) -> None:
    stub.say = lambda _: "Swan lit it [ 1 ]. The lamps of Cragside were lit in 1878 [1, 2]."
    ask_a_model(page, service)
    answer = page.locator(".answer")
    expects(answer.locator(".cite")).to_have_text(["[ 1 ]", "1?", "2?"])
    expects(answer.locator(".text")).to_have_text("Swan lit it [ 1 ]. The lamps of Cragside were lit in 1878 [1?, 2?].")
    expects(answer).to_contain_text("2 of 3 citations are not supported")


@pytest.mark.parametrize("given", [WITH_A_MODEL])
def test_a_question_during_an_answer_takes_its_place(page: "Page", service: CragsideServer, stub: StubOllama) -> None:
    stub.seconds = 10
    ask_a_model(page, service)
    expects(page.get_by_text("The model is writing")).to_be_visible()
    stub.seconds = 0
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_role("button", name="Find evidence").click()
    expects(page.locator(".answer")).to_contain_text("The lamps were lit in 1880 [1]")
    expects(page.locator(".answer")).to_contain_text("is supported by its passage")
    expects(page.get_by_role("button", name="Stop")).to_have_count(0)


@pytest.mark.parametrize("given", [Given(documents={"<b>bold<b>.md": HOSTILE})])
def test_mark_up_in_a_document_is_shown_as_text(page: "Page", service: CragsideServer) -> None:
    ask(page, service)
    kept = page.locator(".candidate.kept")
    expects(kept).to_contain_text("<svg onload=alert(1)></svg>")
    expects(kept).to_contain_text("<b>bold<b>.md")
    assert page.locator(".candidate img, .candidate script, .candidate b").count() == 0


@pytest.mark.parametrize("given", [KNOWN])
def test_another_workspace_shows_nothing_of_the_last_one(page: "Page", service: CragsideServer) -> None:
    with service.client() as client:
        other = {"name": "tart.md", "text": TART, "workspace": "kitchen"}
        client.post("/v1/documents", json=other).raise_for_status()
    page.goto(service.console("#/ask?q=Who+lit+Cragside%3F"))
    expects(page.locator(".candidate.kept")).to_contain_text("Joseph Swan")
    page.get_by_role("combobox", name="Workspace").select_option("kitchen")
    expects(page.locator(".candidate")).to_have_count(0)
    expects(page.locator(".steps")).to_have_count(0)
    expects(page.get_by_label("Question")).to_have_value("")


@pytest.mark.parametrize("given", [KNOWN])
def test_a_question_in_the_address_is_asked_once(page: "Page", shared_service: CragsideServer) -> None:
    page.goto(shared_service.console("#/ask"))
    expects(page.get_by_label("Question")).to_have_value("")
    page.goto(shared_service.console("#/ask?q=Who+lit+Cragside%3F"))
    expects(page.locator(".candidate.kept")).to_contain_text("Joseph Swan")
    page.get_by_label("Question").fill("How long is the lemon tart baked?")
    page.get_by_label("Question").press("Enter")
    expects(page.locator(".candidate.kept")).to_contain_text("lemon tart")
    page.get_by_role("link", name="Documents", exact=True).click()
    expects(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()
    page.go_back()
    expects(page.locator(".candidate.kept")).to_contain_text("lemon tart")
    expects(page.get_by_label("Question")).to_have_value("How long is the lemon tart baked?")


def test_an_empty_store_offers_samples_and_questions_for_them(page: "Page", service: CragsideServer) -> None:
    page.goto(service.console("#/ask"))
    page.get_by_role("button", name="Try it with 34 sample texts").click()
    questions = page.locator(".welcome li button")
    expects(questions).to_have_count(3)
    questions.first.click()
    expects(page.get_by_text("Evidence from the knowledge base.")).to_be_visible()


@pytest.mark.parametrize("given", [KNOWN])
def test_a_service_that_stops_is_told_with_a_way_out(page: "Page", service: CragsideServer, watch: Watch) -> None:
    watch.allow("ERR_CONNECTION_REFUSED")
    ask(page, service)
    service.stop()
    page.get_by_role("button", name="Find evidence").click()
    expects(page.get_by_role("alert")).to_contain_text("The service does not answer.")
    service.start()
    page.get_by_role("button", name="Try again").click()
    expects(page.get_by_text("Evidence from the knowledge base.")).to_be_visible()


@pytest.mark.parametrize(
    "given", [Given(documents={"lamp.md": LIT}, ollama="stub", environment={"RAG_STORE_EXCHANGES": "true"})]
)
def test_an_answer_is_remembered_in_the_workspace_of_its_evidence(page: "Page", service: CragsideServer) -> None:
    with service.client() as client:
        other = {"name": "tart.md", "text": TART, "workspace": "kitchen"}
        client.post("/v1/documents", json=other).raise_for_status()
        page.goto(service.console("#/ask"))
        page.get_by_role("combobox", name="Workspace").select_option("kitchen")
        page.get_by_label("Answer by").select_option(index=1)
        page.get_by_label("Question").fill("How long is the lemon tart baked?")
        page.get_by_role("button", name="Find evidence").click()
        expects(page.locator(".answer")).to_contain_text("The lamps were lit in 1880")
        for _ in range(100):
            if client.get("/v1/memories", params={"workspace": "kitchen"}).json()["total"]:
                break
            page.wait_for_timeout(100)
        totals = [
            client.get("/v1/memories", params={"workspace": name}).json()["total"] for name in ("kitchen", "default")
        ]
    assert totals == [1, 0]
