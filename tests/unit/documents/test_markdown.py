import pytest

from cragside.adapters.documents.markdown_syntax import sections, title_of


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


def paths(text):
    return [(text[mark.start :].split("\n")[0], mark.section) for mark in sections(text)]


def test_headings_are_sections_with_the_path_that_leads_to_them():
    text = "intro\n\n# A\ntext\n## B\n### C #\n## D\n# E\n"
    assert paths(text) == [
        ("# A", "A"),
        ("## B", "A > B"),
        ("### C #", "A > B > C"),
        ("## D", "A > D"),
        ("# E", "E"),
    ]


def test_underlined_headings_are_headings():
    text = "Title\n=====\n\nPart\n----\n\n- item\n---\ntwo lines\nof text\n---\n"
    assert paths(text) == [("Title", "Title"), ("Part", "Title > Part")]


@pytest.mark.parametrize(
    "fenced",
    [
        "```\n# no\n```",
        "~~~~\n# no\n~~~\n# no\n~~~~",
        "````md\n```\n# no\n```\n````",
        "  ```py\n# no\n  ```",
        "```\n# no, and it is never closed",
    ],
)
def test_text_in_a_code_fence_is_no_heading(fenced):
    assert sections(fenced) == ()
    closed = "closed" not in fenced
    assert [mark.section for mark in sections(f"{fenced}\n\n# yes")] == (["yes"] if closed else [])


def test_inline_code_opens_no_fence():
    assert [mark.section for mark in sections("```a``` b\n# yes\n")] == ["yes"]


def test_front_matter_is_no_section():
    assert paths("---\n# comment\ntitle: x\n---\n# A\n") == [("# A", "A")]


def test_there_are_not_more_marks_than_can_be_kept():
    assert len(sections("# a\n" * 30_000)) == 20_000
