import os

import pytest

from cragside.adapters.documents.text_files import FoundFile, Refused, decode, find_texts, read_text, title_of
from cragside.domain.document import SourceText


def names(*paths):
    return [found.name for found in find_texts(paths) if isinstance(found, FoundFile)]


def refusals(*paths):
    return [found for found in find_texts(paths) if isinstance(found, Refused)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Grüße – €".encode(), "Grüße – €"),
        ("Grüße".encode("utf-8-sig"), "Grüße"),
        ("Grüße".encode("utf-16"), "Grüße"),
        (b"\xfe\xff" + "Grüße".encode("utf-16-be"), "Grüße"),
        ("Grüße".encode("utf-32"), "Grüße"),
        ("Grüße".encode("latin-1"), "Grüße"),
        ("“Grüße”".encode("cp1252"), "“Grüße”"),
        (b"caf\xe9 \x81", "café \x81"),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        (b"", ""),
    ],
)
def test_encodings_are_recognised(content, text):
    assert decode(content) == text


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n\x1a\n\x00\x00", bytes(range(256)), b"\xff\xfe\x00", "a\x00b".encode("utf-16"), b"\x01" * 9],
)
def test_binary_content_is_no_text(content):
    assert decode(content) is None


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a/sea-otter.md", "# Sea otter #\n\nText", "Sea otter"),
        ("x.md", "---\n# comment\ntitle: x\n---\n## Second\n", "Second"),
        ("x.md", "```sh\n# not this\n```\n\n# This\n", "This"),
        ("my_long-note.md", "no heading, #tag", "My long note"),
        ("notes.txt", "# not Markdown", "Notes"),
        ("x.md", "# C# and F#\n", "C# and F"),
        ("x.md", "   ###\tWide \t ## \t\n", "Wide"),
        ("an_empty.md", "# \n#  #\n## ##\n", "An empty"),
        ("x.md", "# ##\n\n# Second\n", "Second"),
    ],
)
def test_titles_come_from_the_first_heading_or_the_name(name, text, title):
    assert title_of(name, text) == title


def test_names_are_relative_to_the_given_folder_and_sorted(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("z.md", "a.TXT", "b/c.md", ".hidden.md"):
        (tmp_path / name).write_text("text")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.md").write_text("text")
    assert names(tmp_path) == ["a.TXT", "z.md", "b/c.md"]
    assert names(tmp_path / ".hidden.md") == [".hidden.md"], "asked for by name"


def test_links_that_lead_in_circles_end(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text("text")
    (tmp_path / "sub" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "again.md").symlink_to(tmp_path / "sub" / "a.md")
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")
    found = names(tmp_path)
    assert found == ["again.md", "self.md"]
    (refused,) = [read for name in found if isinstance(read := read_text(FoundFile(name, tmp_path / name)), Refused)]
    assert refused.name == "self.md"
    assert refused.reason.startswith("cannot be read")


def test_the_same_file_given_twice_is_found_once(tmp_path):
    (tmp_path / "a.md").write_text("text")
    assert names(tmp_path, tmp_path / "a.md") == ["a.md"]


def test_two_files_of_one_name_do_not_overwrite_each_other(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.md").write_text(folder)
    (refused,) = refusals(tmp_path / "x", tmp_path / "y")
    assert refused.name == "a.md"
    assert not refused.skipped
    assert "same name" in refused.reason


def test_a_name_that_is_no_unicode_is_made_one(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.md"
    with open(path, "w") as file:
        file.write("text")
    assert names(tmp_path) == ["caf�.md"]


def test_accents_are_composed_so_that_a_name_is_the_same_everywhere(tmp_path):
    (tmp_path / "cafe\u0301.md").write_text("text")
    assert names(tmp_path) == ["caf\u00e9.md"]


def test_a_named_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    assert read_text(FoundFile("pipe.txt", tmp_path / "pipe.txt")) == Refused("pipe.txt", "is not a regular file")


def test_a_file_over_the_limit_is_not_read(tmp_path):
    (tmp_path / "a.txt").write_text("x" * 11)
    assert "limit" in read_text(FoundFile("a.txt", tmp_path / "a.txt"), max_bytes=10).reason
    assert isinstance(read_text(FoundFile("a.txt", tmp_path / "a.txt"), max_bytes=11), SourceText)


def test_a_file_that_vanished_is_refused(tmp_path):
    assert "No such file" in read_text(FoundFile("a.txt", tmp_path / "a.txt")).reason


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret")
    return folder


def test_links_below_a_folder_that_lead_out_of_it_are_refused(tmp_path, outside):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "own.md").write_text("text")
    (docs / "pw.txt").symlink_to(outside / "secret.txt")
    (docs / "hop.txt").symlink_to(docs / "pw.txt")
    (docs / "deep").symlink_to(outside, target_is_directory=True)
    (tmp_path / "docs-beside").mkdir()
    (docs / "beside").symlink_to(tmp_path / "docs-beside", target_is_directory=True)
    (docs / "inside.txt").symlink_to("own.md")
    refused = refusals(docs)
    assert names(docs) == ["inside.txt"], "own.md is the same file"
    assert sorted(refusal.name for refusal in refused) == ["beside", "deep", "hop.txt", "pw.txt"]
    assert all("leads out of the folder" in refusal.reason and not refusal.skipped for refusal in refused)


def test_links_that_are_given_themselves_are_followed(tmp_path, outside):
    (tmp_path / "one.txt").symlink_to(outside / "secret.txt")
    (tmp_path / "all").symlink_to(outside, target_is_directory=True)
    assert names(tmp_path / "one.txt") == ["one.txt"]
    assert names(tmp_path / "all") == ["secret.txt"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Plain text", "Привет, мир"])
def test_utf16_without_byte_order_mark_is_told_its_remedy(tmp_path, encoding, text):
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert "save it as UTF-8" in read_text(FoundFile("a.txt", tmp_path / "a.txt")).reason
