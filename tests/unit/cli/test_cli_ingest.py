"""`cragside ingest` on a store of its own."""

import asyncio
import json
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from cli_services import errors_of, printed, refused

from cragside.adapters.documents.loader import MAX_FILE_BYTES
from cragside.application import attempts
from cragside.domain.errors import PayloadTooLarge, ServiceUnavailable
from cragside.entrypoints.cli import service
from cragside.entrypoints.cli.service import OwnService, Service
from tests.programs import CRAGSIDE
from tests.served import Served
from tests.unit.documents.pictures import SHED, joined, picture_of_text, saved, scan_of, text_pdf

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# Alpha\n\nText.")
    (folder / "sub" / "b.txt").write_text("Beta")
    return folder


def test_a_folder_is_indexed_under_relative_names(real, notes):
    assert "2 indexed. Workspace w" in printed(real("ingest", str(notes), "--workspace", "w"))
    listed = real.json("documents", "-w", "w")["documents"]
    assert {(each["name"], each["status"]) for each in listed} == {("a.md", "enriched"), ("sub/b.txt", "enriched")}


def test_a_second_run_finds_everything_unchanged_or_updated(real, notes):
    real("ingest", str(notes))
    (notes / "a.md").write_text("# Alpha\n\nOther text.")
    assert "1 updated, 1 unchanged" in printed(real("ingest", str(notes)))


def test_partial_success_is_exit_code_1_and_says_why(real, notes):
    (notes / "c.txt").write_bytes(b"\x00\x01\x02" * 9)
    (notes / "empty.md").write_text(" \n")
    said = printed(real("ingest", str(notes)), 1)
    assert (
        "failed    c.txt  (holds binary data, or text in an encoding that is not recognised: if it is text, "
        "save it as UTF-8)" in said
    )
    assert "skipped   empty.md  (is empty)" in said
    assert "2 indexed, 1 failed, 1 skipped" in said


def test_pages_that_are_not_read_are_named(real, notes):
    (notes / "log.pdf").write_bytes(joined(text_pdf(["A text layer."]), scan_of(SHED)))
    told = "page 2 was not read, because the file needs OCR data for the language 'fra'"
    said = printed(real("ingest", str(notes / "log.pdf"), RAG_OCR_LANGUAGES="fra"))
    assert f"indexed   log.pdf  (1 passage; {told}" in said
    (again,) = real.json("ingest", str(notes / "log.pdf"), RAG_OCR_LANGUAGES="fra")["documents"]
    assert again["status"] == "unchanged"
    assert again["unread"].startswith(told)


def test_what_a_folder_run_skips_is_told_in_one_line_by_kind_and_fails_nothing(real, notes):
    for name in ("a.svg", "b.SVG", "c.exe", "data"):
        (notes / name).write_bytes(b"\x89PNG\r\n")
    (notes / "empty.md").write_text(" \n")
    skipped = [line for line in printed(real("ingest", str(notes))).splitlines() if line.startswith("skipped")]
    assert skipped == [
        "skipped   5 files: 2 .svg (not supported), 1 .exe (not supported), 1 without an ending (not supported), "
        "1 empty; --json lists them"
    ]
    told = real.json("ingest", str(notes))["documents"]
    assert {line["name"]: line["reason"] for line in told if line["status"] == "skipped"}["empty.md"] == "is empty"


def test_a_row_of_a_sheet_is_found_and_cited_by_its_number(real, tmp_path):
    rows = [f"{number},tenant of {word}" for number, word in enumerate(("Arden", "Brook", "Cobalt", "Dune"), 11)]
    (tmp_path / "sheds.csv").write_text("\n".join(("boat shed,rented by", *rows)))
    assert real("ingest", str(tmp_path)).exit_code == 0
    found = real.json("query", "Who is the tenant of Cobalt?")["results"]
    assert "boat shed: 13; rented by: tenant of Cobalt" in str(found[0])
    assert "row 4" in str(found[0])


def test_other_types_in_a_folder_are_skipped_without_failing(real, notes):
    (notes / "photo.heic").write_bytes(b"\xff\xd8")
    assert "skipped   photo.heic" in printed(real("ingest", str(notes)))


def test_an_unknown_type_asked_for_by_name_fails_and_names_the_supported_ones(real, tmp_path):
    (tmp_path / "x.exe").write_bytes(b"MZ")
    said = printed(real("ingest", str(tmp_path / "x.exe")), 1)
    assert ".exe files are not supported; supported are PDF (.pdf), Word (.docx)," in said
    assert not real.home.exists(), "the store is not opened for nothing"


def test_a_missing_path_is_bad_input_before_anything_is_done(real, notes):
    assert "does not exist" in errors_of(real("ingest", str(notes), str(notes / "gone.md")), 2)
    assert not real.home.exists()


def test_a_folder_without_texts_is_bad_input(real, tmp_path):
    (tmp_path / "none").mkdir()
    assert "no file to index; supported are PDF" in errors_of(real("ingest", str(tmp_path / "none")), 2)


def test_a_huge_file_is_skipped_in_a_folder_and_fails_where_it_is_named(real, tmp_path):
    with open(tmp_path / "huge.txt", "wb") as huge:
        huge.truncate(MAX_FILE_BYTES + 1)
    for given, code, status in ((tmp_path, 0, "skipped"), (tmp_path / "huge.txt", 1, "failed ")):
        said = printed(real("ingest", str(given)), code)
        reason = "has 52,428,801 bytes, the limit is 52,428,800 (50.0 MB)"
        assert f"{status}   huge.txt  ({reason})" in said


def test_an_empty_file_fails_where_it_is_named(real, notes):
    (notes / "empty.md").write_text(" \n")
    assert real("ingest", str(notes)).exit_code == 0
    result = real("ingest", str(notes / "empty.md"))
    assert (result.exit_code, "failed    empty.md  (is empty)" in result.stdout) == (1, True)


def test_what_was_read_in_part_is_listed(real, notes):
    (notes / "rows.jsonl").write_text('{"shed": 12}\n{"shed": 13}\n{"she')
    reason = "line 3 (Unterminated string starting at) is not valid JSON and was not read"
    assert f"rows.jsonl  (1 passage; {reason})" in real("ingest", str(notes)).stdout
    (listed, total) = real("documents", "--unread").stdout.splitlines()
    assert listed.endswith(f"rows.jsonl  ({reason})")
    assert total == "1 document."
    told = real.json("documents", "--unread")
    assert [(document["name"], document["unread"]) for document in told["documents"]] == [("rows.jsonl", reason)]
    assert real.json("documents")["total"] > 1
    beyond = real.json("documents", "--unread", "--offset", "1")
    assert (beyond["documents"], beyond["total"], beyond["offset"]) == ([], 1, 1)


def test_documents_of_other_formats_are_read(real):
    result = real("ingest", str(DATA / "survey.pdf"), str(DATA / "weir.docx"))
    assert result.exit_code == 0
    best = real.json("query", "Welche Prüfzahl ist 347831?", "--topK", "5")["results"]
    assert any(found["source"] == "survey.pdf" and found["payload"]["pageNumber"] for found in best)
    assert {each["name"] for each in real.json("documents")["documents"]} == {"survey.pdf", "weir.docx"}


def test_a_damaged_document_fails_alone_and_says_why(real, notes):
    (notes / "x.pdf").write_bytes(b"%PDF-1.7 but no more")
    said = printed(real("ingest", str(notes)), 1)
    assert "failed    x.pdf  (is damaged, or no PDF)" in said
    assert "2 indexed, 1 failed" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_fails_alone(real, notes):
    (notes / "a.md").chmod(0)
    said = printed(real("ingest", str(notes)), 1)
    assert "cannot be read: Permission denied" in said
    assert "1 indexed" in said


def test_more_files_than_are_looked_at_at_once_are_all_indexed(real, tmp_path):
    many = tmp_path / "many"
    many.mkdir()
    for number in range(60):
        (many / f"{number}.txt").write_text(f"text {number}")
    result = real.json("ingest", "--dir", str(many), "--no-enrich")
    assert result["counts"] == {"indexed": 60}
    assert real.json("documents", "--status", "searchable")["total"] == 60


def test_json_is_one_document_and_nothing_else(real, notes):
    (notes / "x.pdf").write_bytes(b"%PDF-1.7 but no more")
    said = printed(real("ingest", "--json", "--file", str(notes / "a.md"), "--file", str(notes / "x.pdf")), 1)
    told = json.loads(said)
    assert (told["workspace"], told["counts"], told["stopped"]) == ("default", {"indexed": 1, "failed": 1}, None)
    assert [(each["name"], each["status"], each["passages"]) for each in told["documents"]] == [
        ("a.md", "indexed", 1),
        ("x.pdf", "failed", 0),
    ]


def test_nothing_to_index_is_bad_input(real):
    assert "error: Say what to index" in refused(real("ingest"))


def test_a_page_is_refused_with_the_reason_while_others_are_taken(real, notes):
    said = printed(
        real("ingest", str(notes / "a.md"), "--url", "http://169.254.169.254/latest", "--url", "ftp://x.example/"), 1
    )
    assert "failed    http://169.254.169.254/latest  (" in said
    assert "1 indexed, 2 failed" in said


def test_without_waiting_texts_are_only_accepted_and_a_worker_does_the_rest(real, notes):
    said = printed(real("ingest", str(notes), "--no-wait"))
    assert "accepted  a.md  (can be found; the rest follows)" in said
    assert "2 accepted." in said
    assert {each["status"] for each in real.json("documents")["documents"]} == {"searchable"}
    assert real("worker", "--until-idle").exit_code == 0
    assert {each["status"] for each in real.json("documents")["documents"]} == {"enriched"}


def test_hostile_names_cannot_steer_the_terminal(real, tmp_path):
    (tmp_path / "a\x1b[2J.txt").write_text("Some text.")
    result = real("ingest", str(tmp_path / "a\x1b[2J.txt"))
    assert "\x1b" not in result.stdout + result.stderr
    assert "indexed   a[2J.txt" in result.stdout


def test_a_model_that_is_down_ends_the_run_soon_and_loses_nothing(real, notes, monkeypatch):
    monkeypatch.setattr(service, "TRIES", 2)
    monkeypatch.setattr(service, "TRIED_SECONDS", 0.1)
    monkeypatch.setattr(attempts, "Attempts", partial(attempts.Attempts, longest_pause=0.2))
    down = {"OLLAMA_BASE_URL": "http://127.0.0.1:1", "RAG_CHAT_MODEL": "m:1"}
    result = real("ingest", str(notes / "a.md"), **down, RAG_EMBEDDING_MODEL="embedded")
    assert result.exit_code == 3, result.stderr
    assert "waiting   a.md  (can be found; the rest follows)" in result.stdout
    assert "Nothing is lost: 1 document waits in the queue, and `cragside worker`" in result.stderr
    assert real.json("query", "Alpha")["results"][0]["source"] == "a.md"
    assert real("worker", "--until-idle").exit_code == 0
    assert real.json("documents")["documents"][0]["status"] == "enriched"


def test_a_run_waits_for_documents_that_another_process_indexes(real, notes):
    other = real.container()
    told = []

    async def both() -> None:
        worker = other.worker()
        await other.queue.receive(limit=1, wait=0)  # it is the worker of this home from now on
        working = asyncio.create_task(worker.run())
        told.append(await asyncio.to_thread(_ingest, real.home, notes))
        worker.stop()
        await working
        await other.close()

    asyncio.run(both())
    assert told[0].returncode == 0, told[0].stderr
    assert "2 indexed" in told[0].stdout


def _ingest(home, notes):
    """In a process of its own: threads of one process share the connection to a store."""
    environment = {"RAG_HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(
        [*CRAGSIDE, "ingest", str(notes)], env=environment, cwd=notes, capture_output=True, text=True, timeout=60
    )


def test_an_interrupt_says_that_nothing_is_lost(real, notes, monkeypatch):
    async def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(OwnService, "progress", interrupted)
    assert "Nothing is lost: 2 documents wait in the queue" in errors_of(real("ingest", str(notes)), 130)


def stopped_after(monkeypatch, number):
    """Nothing can be taken in after so many."""
    take, taken = Service.take, []

    async def taking(self, offer, options):
        if len(taken) == number:
            raise ServiceUnavailable("knowledge_base", "The disk is full.")
        taken.append(offer)
        return await take(self, offer, options)

    monkeypatch.setattr(Service, "take", taking)


def test_an_interrupted_run_counts_the_files_that_were_not_accepted(real, notes, monkeypatch):
    for number in range(3):
        (notes / f"z{number}.md").write_text(f"Zulu has number {number}.")
    for name in ("aa.heic", "zz.heic"):
        (notes / name).write_bytes(b"\xff\xd8")
    stopped_after(monkeypatch, 2)
    said = errors_of(real("ingest", str(notes)), 3)
    assert "Nothing is lost: 2 documents wait in the queue" in said
    assert "3 more were not taken in: run the same command again." in said
    assert "The disk is full" in said


def test_a_file_that_the_service_finds_too_large_is_skipped_in_a_folder_and_fails_where_it_is_named(
    real, notes, monkeypatch
):
    async def too_large(*_):
        raise PayloadTooLarge("It is beyond 10 MB.")

    monkeypatch.setattr(Service, "take", too_large)
    assert "2 skipped" in printed(real("ingest", str(notes)))
    assert "failed    a.md  (It is beyond 10 MB.)" in printed(real("ingest", str(notes / "a.md")), 1)


def test_a_run_that_accepts_nothing_reports_only_the_failure(real, notes, monkeypatch):
    stopped_after(monkeypatch, 0)
    result = real("ingest", str(notes))
    assert (result.exit_code, len(result.stderr.splitlines())) == (3, 1)


def test_a_service_takes_files_in_and_is_waited_for(real, served, notes):
    (notes / "x.pdf").write_bytes(b"%PDF-1.7 but no more")
    said = printed(real("ingest", str(notes), "--api", served.address, "--token", "secret", "--json", "-w", "w"), 1)
    told = json.loads(said)
    assert (told["counts"], told["workspace"]) == ({"indexed": 2, "failed": 1}, "w")
    assert "is damaged" in next(each["reason"] for each in told["documents"] if each["name"] == "x.pdf")
    assert not real.home.exists()
    listed = real.json("documents", "--api", served.address, "--token", "secret", "-w", "w")
    assert {each["status"] for each in listed["documents"]} == {"enriched"}
    unnamed = real("ingest", str(notes), "--api", served.address, "--token", "secret", "--no-wait")
    assert f"In {served.address}" in unnamed.stdout


def test_a_wrong_token_ends_the_run_at_once(real, served, notes):
    said = errors_of(real("ingest", str(notes), "--api", served.address, "--token", "wrong"), 1)
    assert said == "error: The service refused the token. Set --token or RAG_API_TOKEN.\n"


def test_a_service_that_is_not_there_is_unavailable(real, notes):
    said = errors_of(real("ingest", str(notes), "--api", "http://127.0.0.1:1"), 3)
    assert "The service at http://127.0.0.1:1 cannot be reached" in said
    assert "Start `cragside serve` there, or correct --api." in said


def test_a_password_in_an_address_is_not_shown(real):
    result = real("documents", "--api", "http://somebody:hush@127.0.0.1:1")
    assert (result.exit_code, "hush" in result.stderr + result.stdout) == (3, False)


@pytest.mark.parametrize(
    ("status", "body", "code", "said"),
    [
        (500, "oops", 1, "failed    a.md  (The service at http://127.0.0.1:"),
        (200, "<html>", 1, "did not answer JSON"),
        (200, "{}", 1, "did not answer with documents"),
        (503, '{"error": {"message": "is\x1b[2J down"}}', 3, ""),
    ],
)
def test_a_service_that_answers_nonsense_is_no_success(real, stub, notes, status, body, code, said):
    with stub(status, body) as address:
        result = real("ingest", str(notes / "a.md"), "--api", address)
    assert result.exit_code == code
    assert said in result.stdout
    assert "\x1b" not in result.stdout + result.stderr


def test_two_folders_with_a_file_of_one_name_overwrite_nothing(real, tmp_path):
    for folder, text in (("w1", "Anna Berg buys lamps for the lighthouse."), ("w2", "Sven Lind sells oil in Malmo.")):
        (tmp_path / "all" / folder).mkdir(parents=True)
        (tmp_path / "all" / folder / "todo.md").write_text(text)
        result = real("ingest", str(tmp_path / "all" / folder))
        assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "indexed   todo.md  (1 passage)")
    known = real.json("documents")["documents"]
    assert [(each["name"], each["label"], each["source"]) for each in known] == [
        ("todo.md", f"{folder}/todo.md", f"{tmp_path}/all/{folder}/todo.md") for folder in ("w2", "w1")
    ]
    assert "  w1/todo.md\n" in real("documents").stdout
    for question, folder in (("Who buys lamps for the lighthouse?", "w1"), ("Who sells oil in Malmo?", "w2")):
        found = real.json("query", question, "--topK", "1")["results"]
        assert [each["source"] for each in found] == [f"{folder}/todo.md"]
        shown = real("enrich", f"/rag {question}", "--json").stdout
        assert f"{folder}/todo.md" in shown
    again = real("ingest", str(tmp_path / "all" / "w1"), str(tmp_path / "all" / "w2"))
    assert again.stdout.splitlines()[:2] == ["unchanged w1/todo.md", "unchanged w2/todo.md"]
    whole = real("ingest", str(tmp_path / "all"), "--no-wait")
    assert whole.stdout.splitlines()[:2] == ["unchanged w1/todo.md", "unchanged w2/todo.md"]
    assert len(real.json("documents")["documents"]) == 2


def test_a_service_gets_the_absolute_path(served, real, tmp_path):
    for folder in ("w1", "w2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "todo.md").write_text(f"Work of {folder}.")
        result = real("ingest", str(tmp_path / folder), "--no-wait", "--api", served.address, "--token", "secret")
        assert result.exit_code == 0, result.stderr
    known = real.json("documents", "--api", served.address, "--token", "secret")["documents"]
    assert [each["source"] for each in known] == [f"{tmp_path}/{folder}/todo.md" for folder in ("w2", "w1")]


def test_a_limit_fails_the_documents_that_it_keeps_out_and_not_the_run(real, tmp_path):
    notes = tmp_path / "four"
    notes.mkdir()
    for number in range(4):
        (notes / f"{number}.md").write_text(f"Otters sleep in kelp forest number {number}.")
    with Served(tmp_path / "limited", RAG_LIMIT_DOCUMENTS="2") as service:
        said = printed(real("ingest", str(notes), "--no-wait", "--api", service.address, "--token", "secret"), 1)
        assert "2 accepted, 2 failed" in said
        for number in (2, 3):
            assert f"failed    {number}.md  (The token's limit of 2 documents leaves no room" in said


def test_the_address_of_a_service_has_no_v1(real):
    result = real("documents", "--api", "http://127.0.0.1:1/v1/")
    assert (result.exit_code, result.stderr) == (2, "error: --api is the address of the service, without /v1.\n")


def test_a_scan_is_cited_with_its_page(real, notes):
    (notes / "scan.pdf").write_bytes(scan_of(["The harbour lamp is lit at dusk."], SHED))
    (notes / "photo.png").write_bytes(saved(picture_of_text("The ferry to the island leaves at nine."), "PNG"))
    assert real("ingest", str(notes)).exit_code == 0
    (best, *_) = real.json("query", "Who rents the boat shed?")["results"]
    assert (best["source"], best["payload"]["pageNumber"]) == ("scan.pdf", 2)
    (best, *_) = real.json("query", "When does the ferry to the island leave?")["results"]
    assert best["source"] == "photo.png"


def test_without_the_extra_pictures_are_skipped_in_one_line(real, notes, monkeypatch):
    monkeypatch.setattr("cragside.composition.files.available", lambda: False)
    for name in ("a.png", "b.png", "c.png"):
        (notes / name).write_bytes(saved(picture_of_text(*SHED), "PNG"))
    (notes / "scan.pdf").write_bytes(scan_of(SHED))
    said = printed(real("ingest", str(notes)))
    needs = "needs the extra `ocr` of cragside to read text in pictures"
    assert f"skipped   4 files: 3 .png ({needs}), 1 .pdf ({needs}); --json lists them" in said
    assert "2 indexed, 4 skipped" in said
    assert "2 unchanged, 4 skipped" in printed(real("sync", str(notes)))


def test_files_that_are_too_large_are_skipped_in_one_line(real, notes):
    for name, size in {"a.txt": 10**5, "b.txt": 10**6, "notes.txt": 40}.items():
        (notes / name).write_text("The lamp is lit at dusk. "[:20] * (size // 20))
    said = printed(real("ingest", str(notes), RAG_MAX_FILE_BYTES="2048"))
    assert "skipped   2 files: 2 .txt (too large: see RAG_MAX_FILE_BYTES); --json lists them" in said
