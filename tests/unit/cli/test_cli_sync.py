"""`cragside sync` and `cragside ingest --prune` on a store of their own."""

import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cli_services import RealCommands, errors_of, printed

from cragside.adapters.documents.folders import root_of
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.documents.parsing import ParserProcesses
from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.application.allowance import Allowance, allow
from cragside.composition.files import TextDigests
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.tokens import Limits
from cragside.entrypoints.cli import terminal, watching
from cragside.entrypoints.cli.offers import Options
from cragside.entrypoints.cli.running import Run
from cragside.entrypoints.cli.service import OwnService
from cragside.entrypoints.cli.session import Session
from cragside.entrypoints.cli.target import Target
from tests.knowledge import leave_to_the_worker
from tests.unit.documents.pictures import text_pdf

SKIP_ENRICHMENT = "--no-enrich"


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """The folder of the notes and of the store: the same for all tests, because a store knows its files' paths."""
    return tmp_path_factory.mktemp("sync") / "place"


@pytest.fixture
def real(place) -> RealCommands:
    shutil.rmtree(place, ignore_errors=True)
    return RealCommands(place / "home")


@pytest.fixture
def notes(place, real):
    folder = place / "notes"
    (folder / "sub").mkdir(parents=True)
    for number in range(11):
        (folder / f"n{number}.md").write_text(f"# Note {number}\n\nText of note {number}.")
    (folder / "sub" / "deep.txt").write_text("Deep down.")
    return folder


@pytest.fixture
def synced(real, notes, place):
    """The notes, and a command that syncs them; it has been run once, for all tests."""

    def sync(*arguments: str, folder: Path = notes):
        return real("sync", str(folder), SKIP_ENRICHMENT, *arguments)

    once = place.with_name("synced")
    if once.exists():
        shutil.rmtree(place)
        shutil.copytree(once, place)
    else:
        assert sync().exit_code == 0
        shutil.copytree(place, once)
    return sync


@pytest.fixture
def embedded(monkeypatch) -> list[str]:
    """The texts that are embedded from now on."""
    texts: list[str] = []
    encode = WordLlamaEmbedder.encode

    def noted(self, given):
        texts.extend(given)
        return encode(self, given)

    monkeypatch.setattr(WordLlamaEmbedder, "encode", noted)
    return texts


def sources(real) -> set[str]:
    return {Path(each["source"]).name for each in real.json("documents", "--limit", "100")["documents"]}


def test_a_folder_is_taken_in_and_then_unchanged(real, notes):
    first = real("sync", str(notes), SKIP_ENRICHMENT)
    assert (first.exit_code, first.stdout.splitlines()[-1].partition(".")[0]) == (0, "12 indexed")
    assert "12 unchanged" in real("sync", f"{notes}/", SKIP_ENRICHMENT).stdout


def test_additions_changes_and_removals_are_followed(real, notes, synced):
    (notes / "new.md").write_text("New.")
    (notes / "n1.md").write_text("Changed.")
    (notes / "n2.md").unlink()
    said = printed(synced())
    assert "1 indexed, 1 updated, 10 unchanged, 1 removed" in said
    assert "removed   n2.md  (its file is gone)" in said
    assert sources(real) == {path.name for path in notes.rglob("*.*")}


def test_a_renamed_file_keeps_its_document_and_nothing_is_embedded(real, notes, synced, embedded):
    before = {each["id"] for each in real.json("documents")["documents"]}
    (notes / "n1.md").rename(notes / "sub" / "other name.md")
    (notes / "n2.md").rename(notes / "N2.md")
    result = synced()
    assert "moved     sub/other name.md  (was n1.md)" in result.stdout
    assert "2 moved" in result.stdout
    assert embedded == []
    after = real.json("documents")["documents"]
    assert {each["id"] for each in after} == before
    assert {"sub/other name.md", "N2.md"} <= {each["name"] for each in after}


def test_a_renamed_folder_is_followed(real, notes, synced, embedded):
    (notes / "sub").rename(notes / "elsewhere")
    assert "moved     elsewhere/deep.txt  (was sub/deep.txt)" in synced().stdout
    assert embedded == []


def test_a_dry_run_only_reports(real, notes, synced):
    (notes / "new.md").write_text("New.")
    (notes / "n1.md").write_text("Changed.")
    (notes / "n2.md").rename(notes / "moved.md")
    (notes / "n3.md").unlink()
    before = real.json("documents")
    said = printed(synced("--dry-run"))
    assert "Would add 1, change 1, move 1, remove 1; 9 unchanged. Nothing was done." in said
    told = json.loads(synced("--dry-run", "--json").stdout)
    assert "move      n2.md -> moved.md" in said
    assert told["removed"] == [f"{root_of(notes)}/n3.md"]
    assert told["moved"] == [{"from": f"{root_of(notes)}/n2.md", "to": f"{root_of(notes)}/moved.md"}]
    assert real.json("documents") == before


def test_many_removals_need_consent(real, notes, synced):
    for name in ("n1.md", "n2.md"):
        (notes / name).unlink()
    (notes / "new.md").write_text("New.")
    refused = errors_of(synced(), 2)
    assert f"2 of 12 documents below {notes} would be removed" in refused
    assert "--yes" in refused
    assert "new.md" not in sources(real)
    assert "1 indexed, 10 unchanged, 2 removed" in synced("--yes").stdout


@pytest.mark.parametrize(("agrees", "counts"), [(True, "10 unchanged, 2 removed"), (False, "10 unchanged. ")])
def test_at_a_terminal_it_asks(monkeypatch, notes, synced, agrees, counts):
    for name in ("n1.md", "n2.md"):
        (notes / name).unlink()
    monkeypatch.setattr(terminal, "on_terminal", lambda: True)
    asked: list[str] = []
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text) or agrees)
    assert counts in synced().stdout
    assert asked == [f"2 of 12 documents below {notes} would be removed, as their files are gone. Remove them?"]


def test_an_emptied_folder_is_not_the_end_of_its_documents(real, notes, synced):
    for path in notes.rglob("*.*"):
        path.unlink()
    assert "12 of 12 documents" in errors_of(synced(), 2)
    assert len(sources(real)) == 12


def test_one_of_two_folders_that_is_emptied_needs_consent(real, notes, synced, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "one.md").write_text("One.")
    assert real("sync", str(notes), str(other)).exit_code == 0
    (other / "one.md").unlink()
    assert f"1 of 1 documents below {other}" in errors_of(real("sync", str(notes), str(other)), 2)


def test_documents_of_a_missing_folder_are_removed_only_after_confirmation(real, notes, synced):
    notes.rename(notes.parent / "moved away")
    said = errors_of(synced("--workspace", "default"), 2)
    assert f"dir '{notes}' does not exist, and 12 documents lie below it." in said
    assert f"run: cragside sync --yes --workspace default {notes}\n" in said
    assert synced("--yes", "--watch").exit_code == 2
    assert len(sources(real)) == 12
    agreed = synced("--yes")
    assert (agreed.exit_code, "12 removed" in agreed.stdout) == (0, True), agreed.stderr
    assert sources(real) == set()


@pytest.mark.parametrize("options", [(), ("--yes",), ("--dry-run",)])
def test_a_folder_that_never_was_is_an_error(real, notes, synced, options):
    said = errors_of(synced(*options, folder=notes.parent / "nowhere"), 2)
    assert f"Invalid value for 'FOLDER...': dir '{notes.parent / 'nowhere'}' does not exist." in said
    assert len(sources(real)) == 12


def test_an_unreadable_folder_is_not_treated_as_missing(monkeypatch, real, notes, synced):
    looked_at = Path.stat

    def denied(path, **options):
        if path == notes:
            raise PermissionError(13, "Permission denied", str(path))
        return looked_at(path, **options)

    monkeypatch.setattr(Path, "stat", denied)
    result = synced("--yes")
    monkeypatch.undo()
    assert result.exit_code == 2
    assert f"{notes} cannot be read: Permission denied" in result.stderr
    assert len(sources(real)) == 12


@pytest.mark.parametrize("emptied", ["", " \n\t\n", "\ufeff", "\ufeff\n"])
def test_a_file_that_was_emptied_loses_its_document(real, notes, synced, emptied):
    (notes / "n1.md").write_text(emptied)
    foreseen = synced("--dry-run")
    assert "remove    n1.md" in foreseen.stdout
    said = printed(synced())
    assert "removed   n1.md  (its file is empty)" in said
    assert "11 unchanged, 1 removed." in said
    assert "n1.md" not in sources(real)
    again = synced()
    assert (again.exit_code, "11 unchanged, 1 skipped." in again.stdout) == (0, True)
    (notes / "n1.md").write_text("Back.")
    assert "1 indexed, 11 unchanged." in synced().stdout


@pytest.mark.parametrize("name", ["a.json", "a.pdf", "a.docx", "a.html", "a.eml", "a.vtt", "a.py"])
def test_a_file_of_any_type_can_be_emptied(name):
    async def reason() -> str:
        loader = FileLoader()
        try:
            await loader.load(b"\n", name=name)
        except ValidationError as error:
            return str(error.details["reason"])
        finally:
            await loader.close()
        return ""

    assert asyncio.run(reason()) == "is empty"


def test_many_emptied_files_need_consent(real, notes, synced):
    for name in ("n1.md", "n2.md"):
        (notes / name).write_text("")
    assert f"2 of 12 documents below {notes} would be removed, as their files are gone or empty." in errors_of(
        synced(), 2
    )
    assert len(sources(real)) == 12
    assert "10 unchanged, 2 removed" in synced("--yes").stdout


def test_a_file_that_became_a_folder_is_removed(notes, synced):
    (notes / "n1.md").unlink()
    (notes / "n1.md").mkdir()
    assert "removed   n1.md  (its file is gone)" in synced().stdout


def test_a_file_that_became_binary_keeps_its_text_and_the_report_says_how_to_remove_it(real, notes, synced):
    (notes / "n1.md").write_bytes(b"\x00\x01\x02" * 9)
    (known,) = (each["id"] for each in real.json("documents")["documents"] if each["name"] == "n1.md")
    told = f"; its earlier text is kept. To remove it: cragside forget --workspace default {known})"
    assert told in synced("--dry-run").stdout
    assert told in synced().stdout
    (line,) = (each for each in json.loads(synced("--json").stdout)["documents"] if each["status"] == "failed")
    assert (line["id"], line["source"]) == (known, f"{root_of(notes)}/n1.md")


def test_each_document_has_its_id_in_json(real, notes, synced):
    ids = {each["source"]: each["id"] for each in real.json("documents")["documents"]}
    told = {each["source"]: each["id"] for each in json.loads(synced("--json").stdout)["documents"]}
    assert told == ids


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_without_permission_keeps_its_documents(real, notes, synced):
    (notes / "sub").chmod(0)
    try:
        result = synced("--yes")
    finally:
        (notes / "sub").chmod(0o700)
    assert result.exit_code == 1
    assert "deep.txt" in sources(real)


def test_a_file_that_cannot_be_read_keeps_its_document(real, notes, synced):
    (notes / "n1.md").write_bytes(b"\x00\x01\x02" * 9)
    (notes / "n2.md").unlink()
    os.mkfifo(notes / "n2.md")
    said = printed(synced("--yes"), 1)
    assert "n1.md  (holds binary data" in said
    assert "n2.md  (is not a regular file; its earlier text is kept." in said
    assert {"n1.md", "n2.md"} <= sources(real)


def test_a_failure_to_list_a_folder_keeps_what_came_from_below_it(monkeypatch, real, notes, synced):
    listed = os.scandir

    def scandir(path):
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert "failed    sub  (cannot be read: Permission denied)" in printed(synced("--yes"), 1)
    assert "deep.txt" in sources(real)


def test_hidden_files_that_were_taken_in_by_themselves_stay(real, notes, synced):
    (notes / ".hidden.md").write_text("Hidden.")
    real("ingest", str(notes / ".hidden.md"))
    assert "12 unchanged." in synced("--yes").stdout
    assert ".hidden.md" in sources(real)


def test_a_file_of_a_type_that_is_not_supported_any_more_is_removed(real, notes, synced):
    (notes / "n1.md").rename(notes / "n1.jpg")
    assert "removed   n1.md" in synced().stdout


def test_documents_from_elsewhere_are_left_alone(real, notes, synced, tmp_path):
    (tmp_path / "notes-of-mine.md").write_text("Mine.")
    real("ingest", str(tmp_path / "notes-of-mine.md"))
    (notes / "n1.md").unlink()
    synced("--yes")
    assert "notes-of-mine.md" in sources(real)


def test_a_folder_inside_a_synced_one_and_links_to_it_are_the_same_documents(real, notes, synced, tmp_path, embedded):
    (tmp_path / "link").symlink_to(notes)
    assert "1 unchanged." in synced(folder=notes / "sub").stdout
    assert "12 unchanged." in synced(folder=tmp_path / "link").stdout
    assert "12 unchanged." in synced(str(notes / "sub")).stdout
    assert embedded == []


def test_names_that_have_to_be_escaped_are_followed(real, notes, synced):
    odd = notes / "a\\b\n\udcff.md"
    odd.write_text("Odd.")
    assert "1 indexed" in synced().stdout
    assert "13 unchanged." in synced().stdout
    odd.unlink()
    assert "1 removed" in synced().stdout


def test_a_file_is_moved_whatever_its_name_holds(real, notes, synced):
    (notes / "n1.md").rename(notes / 'n1\x1b[2J "q" %41.md')
    assert "11 unchanged, 1 moved" in synced().stdout
    assert "12 unchanged." in synced().stdout
    assert "\x1b" not in real("documents").stdout


def test_ingest_prunes_as_sync_removes(real, notes):
    real("ingest", str(notes), SKIP_ENRICHMENT)
    (notes / "n1.md").unlink()
    assert "11 unchanged. " in real("ingest", str(notes), SKIP_ENRICHMENT).stdout
    assert "11 unchanged, 1 removed" in real("ingest", str(notes), "--prune", SKIP_ENRICHMENT).stdout
    for name in ("n2.md", "n3.md"):
        (notes / name).unlink()
    assert "2 of 11 documents" in errors_of(real("ingest", str(notes), "--prune", SKIP_ENRICHMENT), 2)
    assert "2 removed" in real("ingest", str(notes), "--prune", "--yes", SKIP_ENRICHMENT).stdout


def test_ingest_prunes_emptied_files(real, notes):
    real("ingest", str(notes), SKIP_ENRICHMENT)
    (notes / "n1.md").write_text(" ")
    assert "11 unchanged, 1 removed" in printed(real("ingest", str(notes), "--prune", SKIP_ENRICHMENT))
    (notes / "n2.md").write_text("")
    (notes / "n3.md").write_text("")
    assert "2 of 11 documents" in real("ingest", str(notes), "--prune", SKIP_ENRICHMENT).stderr
    assert len(sources(real)) == 11


def test_ingest_with_prune_sends_every_file_and_takes_none_for_a_moved_one(real, notes, monkeypatch):
    real("ingest", str(notes), SKIP_ENRICHMENT)
    (notes / "n1.md").rename(notes / "other.md")
    sent: list[str] = []
    take = OwnService.take

    async def noted(self, offer, options):
        sent.append(offer.name)
        return await take(self, offer, options)

    monkeypatch.setattr(OwnService, "take", noted)
    told = printed(real("ingest", str(notes), "--prune", SKIP_ENRICHMENT))
    assert "1 indexed, 11 unchanged, 1 removed" in told
    assert len(sent) == 12


def test_ingest_prunes_no_large_file_as_it_would_have_to_be_read_twice(real, notes):
    real("ingest", str(notes), SKIP_ENRICHMENT)
    (notes / "n1.md").write_text(" " * 65_537)
    assert "11 unchanged, 1 skipped" in real("ingest", str(notes), "--prune", SKIP_ENRICHMENT).stdout
    assert len(sources(real)) == 12


def test_ingest_with_prune_says_that_an_earlier_text_is_kept(real, notes, tmp_path):
    real("ingest", str(notes), SKIP_ENRICHMENT)
    (notes / "n1.md").unlink()
    (notes / "n1.md").symlink_to(tmp_path / "elsewhere.md")
    result = real("ingest", str(notes), "--prune", SKIP_ENRICHMENT)
    assert "failed    n1.md  (is a link that leads out of the folder" in result.stdout
    assert "its earlier text is kept. To remove it: cragside forget" in result.stdout
    assert len(sources(real)) == 12


def test_an_interrupted_sync_counts_what_is_left(real, notes, monkeypatch):
    real("sync", str(notes), SKIP_ENRICHMENT)
    (notes / "n1.md").rename(notes / "other.md")
    for number in range(2):
        (notes / f"z{number}.md").write_text(f"Zulu has number {number}.")

    async def full(*_):
        raise ServiceUnavailable("knowledge_base", "The disk is full.")

    monkeypatch.setattr(OwnService, "take", full)
    assert "2 more were not taken in: run the same command again." in errors_of(
        real("sync", str(notes), SKIP_ENRICHMENT), 3
    )


def test_a_sync_waits_for_documents_that_an_earlier_one_only_queued(real, notes, monkeypatch):
    leave_to_the_worker(monkeypatch)
    assert "12 accepted" in real("sync", str(notes), SKIP_ENRICHMENT, "--no-wait").stdout
    assert real.json("documents", "--status", "pending")["total"] == 12
    assert "\n12 unchanged. " in real("sync", str(notes), SKIP_ENRICHMENT).stdout
    assert real.json("documents", "--status", "pending")["total"] == 0


def test_prune_needs_a_folder(real, notes):
    assert "--prune needs a folder" in errors_of(real("ingest", str(notes / "n1.md"), "--prune"), 2)


def test_unchanged_files_are_not_parsed_again(real, notes, monkeypatch):
    (notes / "a.pdf").write_bytes(text_pdf(["The lamp is lit at dusk."]))
    (notes / "b.pdf").write_bytes(text_pdf(["The lamp is lit at dawn."]))
    assert "14 indexed" in real("sync", str(notes), SKIP_ENRICHMENT).stdout
    parsed = []
    read = ParserProcesses.read

    def noted(self, kind, content, origin):
        parsed.append(origin.name)
        return read(self, kind, content, origin)

    monkeypatch.setattr(ParserProcesses, "read", noted)
    (notes / "a.pdf").rename(notes / "sub" / "c.pdf")
    (notes / "b.pdf").touch()
    assert "13 unchanged, 1 moved" in real("sync", str(notes), SKIP_ENRICHMENT).stdout
    assert parsed == []
    (notes / "b.pdf").write_bytes(text_pdf(["The lamp is lit at noon."]))
    assert "1 updated, 13 unchanged" in real("sync", str(notes), SKIP_ENRICHMENT).stdout
    assert set(parsed) == {"b.pdf"}


def test_a_file_that_has_an_earlier_text_again_is_updated(real, notes):
    (notes / "a.pdf").write_bytes(text_pdf(["The lamp is lit at dusk."]))
    assert real("sync", str(notes), SKIP_ENRICHMENT).exit_code == 0
    (notes / "a.pdf").rename(notes / "kept.pdf")
    (notes / "a.pdf").write_bytes(text_pdf(["The lamp is lit at noon."]))
    assert real("ingest", str(notes / "a.pdf"), SKIP_ENRICHMENT).exit_code == 0
    (notes / "kept.pdf").rename(notes / "a.pdf")
    assert "1 updated, 12 unchanged" in real("sync", str(notes), SKIP_ENRICHMENT).stdout
    assert "13 unchanged" in real("sync", str(notes), SKIP_ENRICHMENT).stdout


def test_a_service_is_synced_in_the_same_way(real, served, notes):
    at = ("--api", served.address, "--token", "secret", SKIP_ENRICHMENT)
    assert "12 indexed" in real("sync", str(notes), *at).stdout
    (notes / "n1.md").rename(notes / "other.md")
    (notes / "n2.md").unlink()
    assert "10 unchanged, 1 moved, 1 removed" in printed(real("sync", str(notes), *at))


@pytest.fixture
def followed(real, notes, capsys, monkeypatch):
    """Take steps while the notes are watched; each waits until the watch has said something."""
    monkeypatch.setattr(watching, "_QUIET", 50)
    monkeypatch.setattr(watching, "_LOOKS", 100)

    async def follow(
        steps: Callable[[Callable[[str], Awaitable[None]]], Awaitable[None]],
    ) -> None:
        container = real.container()
        digests = TextDigests(10**6)
        told = ""

        async def says(text: str) -> None:
            nonlocal told
            async with asyncio.timeout(30):
                while text not in told:
                    await asyncio.sleep(0.02)
                    captured = capsys.readouterr()
                    told += captured.out + captured.err

        service = OwnService(container)
        run = Run(Target(Session(), container.settings), Options(enrich=False))
        watch = watching.Watch(run, service, [notes], digests)
        async with digests:
            following = asyncio.create_task(watch.follow())
            try:
                await says("Following ")
                await steps(says)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                await container.close()

    return follow


async def test_a_watch_follows_changes(notes, followed):
    async def steps(says):
        (notes / "new.md").write_text("New.")
        await says("indexed   new.md")
        (notes / "new.md").rename(notes / "renamed.md")
        await says("moved     renamed.md")
        (notes / "renamed.md").unlink()
        await says("removed   renamed.md")

    await followed(steps)


async def test_a_watch_keeps_the_document_of_an_emptied_file(notes, followed):
    async def steps(says):
        (notes / "n1.md").write_text("")
        await says("n1.md  (is empty; its earlier text is kept. To remove it: cragside sync without --watch)")
        (notes / "n1.md").write_text("Written.")
        await says("updated   n1.md")

    await followed(steps)


async def test_a_watch_keeps_vanished_folders_and_resumes_when_they_return(real, notes, followed):
    async def steps(says):
        notes.rename(notes.parent / "away")
        await says("is not there at the moment. Its documents are kept until it is back.")
        notes.mkdir()
        await says(f"12 of 12 documents below {notes} would be removed")
        await says(f"cragside sync --yes '{notes}'")
        notes.rmdir()
        (notes.parent / "away").rename(notes)
        (notes / "new.md").write_text("New.")
        await says("indexed   new.md")

    await followed(steps)
    assert len(await asyncio.to_thread(sources, real)) == 13


async def test_a_watch_continues_after_a_limit_is_reached(notes, followed):
    async def steps(says):
        await says("(The token's limit of 11 documents leaves no room")
        (notes / "n0.md").unlink()
        await says("removed   n0.md")

    allow(Allowance("token", Limits(documents=11)))
    await followed(steps)


def test_a_dry_run_reports_failures_and_has_the_exit_code_of_a_real_run(notes, synced):
    for name in ("n1.md", "n2.md"):
        (notes / name).write_bytes(b"\x00\x01\x02" * 9)
    result = synced("--dry-run")
    assert (result.exit_code, synced("--dry-run", "--json").exit_code, synced().exit_code) == (1, 1, 1)
    assert "Would do nothing; 2 would fail; 10 unchanged." in result.stdout
