from pathlib import Path

import pytest
from synthesis import Synthesiser

pytestmark = pytest.mark.infra

PAGE = Path(__file__).parents[2] / "docs" / "compliance.md"


def test_the_page_has_every_finding_of_hipaa_and_nist_with_an_answer(synthesise: Synthesiser) -> None:
    from infra.compliance.page import page

    assert page() == PAGE.read_text(), "`python -m infra.compliance > docs/compliance.md` writes it anew"


def test_a_finding_without_an_answer_is_an_error(synthesise: Synthesiser, monkeypatch: pytest.MonkeyPatch) -> None:
    from infra.compliance import page
    from infra.compliance.findings import Finding

    new = Finding("NewRule", "A rule - (Control ID: 1).", "HIPAA", "service/Api", "baked")
    monkeypatch.setattr(page, "findings_in_prod", lambda: [new])
    with pytest.raises(LookupError, match="NewRule"):
        page.page()
