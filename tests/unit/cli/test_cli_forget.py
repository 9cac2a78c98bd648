import pytest
from cli_fakes import FakeRepository

from cragside.domain.errors import ServiceUnavailable


@pytest.fixture
def notes(container, tmp_path):
    texts = {"a.md": "Alpha", "sub/caf\u00e9.txt": "Beta"}
    container.repositories["w"] = FakeRepository("w", texts)
    (tmp_path / "a.md").write_text("Alpha")
    return tmp_path


def test_sources_are_forgotten_by_the_names_that_ingest_showed(run, container, notes):
    result = run("forget", "a.md", "sub/cafe\u0301.txt", "a.md", "--workspace", "w")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["forgotten a.md", "forgotten sub/caf\u00e9.txt"]
    assert not container.repositories["w"].texts
    assert (notes / "a.md").exists()


def test_an_unknown_name_is_an_error_that_says_what_to_do_and_the_others_are_forgotten(run, container, notes):
    result = run("forget", "notes/a.md", "a.md", "-w", "w")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == ["unknown   notes/a.md", "forgotten a.md"]
    assert result.stderr.startswith("error: Workspace w holds nothing named notes/a.md. Give the names that")
    assert "a.md" not in container.repositories["w"].texts


def test_without_a_name_nothing_is_opened(run, container):
    assert run("forget").exit_code == 2
    assert not container.repositories


def test_a_store_that_fails_is_exit_code_3(run, container):
    container.error = ServiceUnavailable("knowledge_base", "is damaged")
    assert run("forget", "a.md").exit_code == 3


def test_a_real_store_forgets_and_an_unborn_one_is_not_made(tmp_path):
    from typer.testing import CliRunner

    from cragside.entrypoints.cli.app import app
    from cragside.entrypoints.cli.session import Session

    home = tmp_path / "home"
    session = Session(environment={"RAG_HOME": str(home)})
    assert CliRunner().invoke(app, ["forget", "a.md"], obj=session).exit_code == 1
    assert not home.exists()
    (tmp_path / "a.md").write_text("# Otters\n\nOtters eat urchins.")
    assert CliRunner().invoke(app, ["ingest", str(tmp_path / "a.md")], obj=session).exit_code == 0
    assert CliRunner().invoke(app, ["forget", "a.md"], obj=session).exit_code == 0
    assert CliRunner().invoke(app, ["forget", "a.md"], obj=session).exit_code == 1
