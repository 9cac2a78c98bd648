import pytest

from cragside.domain.errors import ServiceUnavailable


@pytest.fixture
def notes(real, tmp_path):
    """Two folders that were ingested one after the other, each with a file of the same name."""
    folders = {"w1": {"todo.md": "Buy lamps.", "sub/caf\u00e9.txt": "Open at nine."}, "w2": {"todo.md": "Sell oil."}}
    for folder, files in folders.items():
        for name, text in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        result = real("ingest", str(tmp_path / folder), "--no-wait", "--no-enrich")
        assert result.exit_code == 0, result.stderr
    return tmp_path


def sources(real):
    return {each["source"]: each for each in real.json("documents")["documents"]}


def test_documents_are_forgotten_by_the_names_that_ingest_showed(real, notes):
    result = real("forget", "sub/cafe\u0301.txt")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["forgotten sub/caf\u00e9.txt"]
    assert len(sources(real)) == 2
    assert (notes / "w1" / "sub" / "caf\u00e9.txt").exists()


def test_an_unknown_name_is_an_error_that_says_what_to_do_and_the_others_are_forgotten(real, notes):
    result = real("forget", "notes/a.md", "w2/todo.md")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == ["unknown   notes/a.md", "forgotten w2/todo.md"]
    assert result.stderr.startswith("error: Workspace default holds nothing named notes/a.md. Give the names that")
    assert f"{notes}/w2/todo.md" not in sources(real)


def test_a_name_that_two_documents_have_is_refused_and_both_are_listed(real, notes, monkeypatch):
    known = sources(real)
    first, second = (known[f"{notes}/{folder}/todo.md"] for folder in ("w1", "w2"))
    assert [each["name"] for each in (first, second)] == ["todo.md"] * 2
    monkeypatch.chdir(notes / "w1")  # where the name is a path as well
    result = real("forget", "todo.md", "sub/caf\u00e9.txt")
    assert (result.exit_code, result.stdout.splitlines()) == (2, ["unclear   todo.md"])
    assert f"w1/todo.md ({first['id']})" in result.stderr
    assert f"w2/todo.md ({second['id']})" in result.stderr
    assert "Nothing was forgotten." in result.stderr
    assert real("forget", "sub/caf\u00e9.txt", "todo.md").exit_code == 2
    assert sources(real).keys() == known.keys()


@pytest.mark.parametrize("way", ["id", "source", "label", "./todo.md", "../w2/../w1/todo.md"])
def test_one_of_two_namesakes_is_forgotten_by_its_label(real, notes, monkeypatch, way):
    monkeypatch.chdir(notes / "w1")
    document = sources(real)[f"{notes}/w1/todo.md"]
    result = real("forget", document.get(way, way))
    assert (result.exit_code, result.stdout) == (0, "forgotten w1/todo.md\n"), result.stderr
    assert [each["label"] for each in sources(real).values()] == ["todo.md", "sub/caf\u00e9.txt"]


def test_without_a_name_nothing_is_opened(run, container):
    assert run("forget").exit_code == 2
    assert not container.opened


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


def test_a_forgotten_document_leaves_no_task(real, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text(f"Lamp {name} is lit at dusk.")
        assert real("ingest", str(tmp_path / f"{name}.md"), "--no-wait").exit_code == 0
    waiting = real.json("enrich-docs", "--stats-only")["queue"]["pending"]
    assert real("forget", "a.md").exit_code == 0
    assert real.json("enrich-docs", "--stats-only")["queue"]["pending"] == waiting / 2
