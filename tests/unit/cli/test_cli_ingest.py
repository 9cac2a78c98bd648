import os
from pathlib import Path

import pytest

from cragside.adapters.documents.loader import MAX_FILE_BYTES

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# Alpha\n\nText.")
    (folder / "sub" / "b.txt").write_text("Beta")
    return folder


def test_a_folder_is_indexed_under_relative_names(run, container, notes):
    result = run("ingest", str(notes), "--workspace", "w")
    assert result.exit_code == 0, result.stderr
    assert set(container.repositories["w"].texts) == {"a.md", "sub/b.txt"}
    assert "2 indexed. Workspace w" in result.stdout
    assert container.closed == 1


def test_a_second_run_finds_everything_unchanged_or_updated(run, notes):
    run("ingest", str(notes))
    (notes / "a.md").write_text("# Alpha\n\nOther text.")
    result = run("ingest", str(notes))
    assert result.exit_code == 0
    assert "1 updated, 1 unchanged" in result.stdout


def test_partial_success_is_exit_code_1_and_says_why(run, container, notes):
    (notes / "c.txt").write_bytes(b"\x00\x01\x02" * 9)
    (notes / "empty.md").write_text(" \n")
    container.failing["a.md"] = "no room"
    result = run("ingest", str(notes))
    assert result.exit_code == 1
    assert (
        "failed    c.txt  (holds binary data, not text; if it is text in a rare encoding, save it as UTF-8)"
        in result.stdout
    )
    assert "failed    empty.md  (is empty)" in result.stdout
    assert "failed    a.md  (no room)" in result.stdout
    assert "1 indexed, 3 failed" in result.stdout


def test_other_types_in_a_folder_are_skipped_without_failing(run, notes):
    (notes / "photo.jpg").write_bytes(b"\xff\xd8")
    result = run("ingest", str(notes))
    assert result.exit_code == 0
    assert "skipped   photo.jpg" in result.stdout


def test_an_unknown_type_asked_for_by_name_fails_and_names_the_supported_ones(run, container, tmp_path):
    (tmp_path / "x.exe").write_bytes(b"MZ")
    result = run("ingest", str(tmp_path / "x.exe"))
    assert result.exit_code == 1
    assert ".exe files are not supported; supported are PDF (.pdf), Word (.docx)," in result.stdout
    assert container.closed == 0, "the store is not opened for nothing"


def test_a_missing_path_is_bad_input_before_anything_is_done(run, container, notes):
    result = run("ingest", str(notes), str(notes / "gone.md"))
    assert result.exit_code == 2
    assert "does not exist" in result.stderr
    assert not container.repositories


def test_a_folder_without_texts_is_bad_input(run, tmp_path):
    (tmp_path / "none").mkdir()
    result = run("ingest", str(tmp_path / "none"))
    assert result.exit_code == 2
    assert "no file to index; supported are PDF" in result.stderr


def test_a_huge_file_is_refused_with_the_limit(run, tmp_path):
    with open(tmp_path / "huge.txt", "wb") as huge:
        huge.truncate(MAX_FILE_BYTES + 1)
    result = run("ingest", str(tmp_path / "huge.txt"))
    assert result.exit_code == 1
    assert "has 52,428,801 bytes, the limit is 52,428,800 (50.0 MB)" in result.stdout


def test_documents_of_other_formats_are_read(run, container):
    result = run("ingest", str(DATA / "survey.pdf"), str(DATA / "weir.docx"))
    assert result.exit_code == 0
    texts = container.repositories["default"].texts
    assert "steht die Prüfzahl 347831" in texts["survey.pdf"]
    assert "North | 3.20 m | Jürgen" in texts["weir.docx"]


def test_a_damaged_document_fails_alone_and_says_why(run, container, notes):
    (notes / "x.pdf").write_bytes(b"%PDF-1.7 but no more")
    result = run("ingest", str(notes))
    assert result.exit_code == 1
    assert "failed    x.pdf  (is damaged, or no PDF)" in result.stdout
    assert "2 indexed, 1 failed" in result.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_fails_alone(run, notes):
    (notes / "a.md").chmod(0)
    result = run("ingest", str(notes))
    assert result.exit_code == 1
    assert "cannot be read: Permission denied" in result.stdout
    assert "1 indexed" in result.stdout


def test_more_files_than_a_batch_are_all_indexed(run, container, tmp_path):
    many = tmp_path / "many"
    many.mkdir()
    for number in range(40):
        (many / f"{number}.txt").write_text(f"text {number}")
    assert run("ingest", str(many)).exit_code == 0
    assert len(container.repositories["default"].texts) == 40
